//! The report: times in ps, sizes in frame bytes, rates in bit/s of frame bytes unless a field says otherwise.

use crate::Fates;
use serde::Serialize;
use std::ops::Not;

/// Name and version of the report's form.
pub const SCHEMA: &str = "analysis/1";

/// Origin of the port's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateFrom {
    /// Speed that the user gave.
    Given,
    /// Speed from the trace's manifest.
    Result,
    /// Speed estimated from the records: the port was busy, and the bytes that it sent could be counted.
    Estimated,
    /// Lower bound of the speed, from the records.
    LowerBound,
    /// The speed is not known.
    Unknown,
}

/// Report of one port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortReport {
    pub port: String,
    pub records: u64,
    pub first_ps: Option<u64>,
    pub last_ps: Option<u64>,
    /// Speed of the port on the wire.
    pub rate_bps: Option<u64>,
    pub rate_from: RateFrom,
    /// Middle half of the estimates that `rate_bps` is the result of.
    pub rate_low_bps: Option<u64>,
    pub rate_high_bps: Option<u64>,
    pub overhead_bytes: u64,
    /// Thresholds in force.
    pub detect: DetectReport,
    pub peak_bytes: Option<u64>,
    pub peak_ps: Option<u64>,
    /// Absent where the records do not say.
    pub dropped: Option<u64>,
    /// True if `dropped` is a lower bound: a running count began anew.
    #[serde(skip_serializing_if = "Not::not")]
    pub dropped_at_least: bool,
    pub marked: Option<u64>,
    /// Records whose queue cannot be explained by the packets before: at least one packet has no record.
    pub jumps: u64,
    /// Bytes that those jumps lack, at least.
    pub missing_bytes: u64,
    pub duplicates: u64,
    pub bursts_found: u64,
    /// Largest queue and load where there are no bursts.
    pub nothing: Option<Nothing>,
    /// Steady load above the share that makes a burst; absent where there is none, or bursts are found by the queue.
    pub steady: Option<Steady>,
    /// Bursts that are counted but not listed.
    pub bursts_left_out: u64,
    /// Time inside bursts.
    pub burst_ps: u64,
    /// Time between the first and the last record of which nothing is known.
    pub unknown_ps: u64,
    pub histograms: Histograms,
    /// Estimate of the queue from the arrivals; absent where no buffer was given.
    pub estimate: Option<EstimateReport>,
    /// Time that counters tell of; absent where the port has records of packets or samples of its queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedPort>,
    pub notes: Vec<String>,
    pub bursts: Vec<Burst>,
}

/// Time of a port of which counters tell, and of which they do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CountedPort {
    /// Time that is known.
    pub known_ps: u64,
    /// Shortest interval of it.
    pub interval_ps: u64,
    /// True if `peak_bytes` is a lower bound.
    pub peak_at_least: bool,
    /// True if counts of several sources are mixed: drops and marks are unknown.
    #[serde(skip)]
    pub mixed: bool,
    /// Time that is unknown, by the reason.
    pub unknown: Vec<UnknownTime>,
}

/// Time of which nothing is known, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnknownTime {
    /// `gap`, `reset`, `rollover`, `repeated` or `contradicting`.
    pub state: &'static str,
    pub intervals: u64,
    pub ps: u64,
}

/// Limits of what counters tell of a burst.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CountedBurst {
    /// Longest interval of the burst: it may have begun so much later and ended so much earlier.
    pub within_ps: u64,
    /// True if `peak_bytes` is a lower bound.
    pub peak_at_least: bool,
    /// Frame bytes that left; absent where they were not counted.
    pub sent_bytes: Option<u64>,
    /// Signs by which the burst was found: `rate`, `queue`, `drops`.
    pub shown_by: Vec<&'static str>,
}

impl PortReport {
    /// Withholds counts that the records could not tell. Marks that were seen were given, if not at this port.
    pub fn telling(&mut self, fates: Fates) {
        let marks = fates.marks || self.marked > Some(0);
        self.dropped = self.dropped.filter(|_| fates.drops);
        self.dropped_at_least &= self.dropped.is_some();
        self.marked = self.marked.filter(|_| marks);
        self.bursts.iter_mut().for_each(|burst| burst.telling(Fates { marks, ..fates }));
    }
}

impl Burst {
    /// Withholds counts that the records could not tell.
    pub fn telling(&mut self, fates: Fates) {
        self.dropped_packets = self.dropped_packets.filter(|_| fates.drops);
        self.dropped_bytes = self.dropped_bytes.filter(|_| fates.drops);
        self.dropped_at_least &= self.dropped_packets.is_some();
        self.marked_packets = self.marked_packets.filter(|_| fates.marks);
    }
}

impl PortReport {
    /// Takes back all that follows from an estimate of the queue, as the file refutes it.
    pub fn refute(&mut self) {
        for burst in &mut self.bursts {
            burst.law = None;
            burst.words = Some("No law can be judged: the file refutes the estimate of the queue.".into());
        }
    }

    /// Says in the sentences that the queue is estimated, as the tables do by a sign.
    pub fn say_estimated(&mut self) {
        let of_laws = self.bursts.iter_mut().map(|burst| match &mut burst.law {
            Some(law) => &mut law.words,
            None => burst.words.get_or_insert_default(),
        });
        for words in of_laws.filter(|words| !words.is_empty()) {
            words.insert_str(0, "By the estimated queue (≈): ");
        }
        if let Some(nothing) = &mut self.nothing {
            nothing.words = nothing.words.replacen("largest queue was ", "largest queue was ≈ ", 1);
        }
    }
}

/// Method of detection, and its values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum DetectReport {
    /// `words`: the same as people read it, with where defaults come from.
    Queue {
        above_bytes: u64,
        until_bytes: u64,
        words: String,
    },
    Rate {
        window_ps: u64,
        share: f64,
        words: String,
    },
}

/// A load that stays the same: no burst, however high.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Steady {
    /// Duration of the load in all.
    pub ps: u64,
    /// Mean load, as a part of the port's speed.
    pub share: f64,
    pub words: String,
}

/// Hint for a port without a burst: the reason, and the option that would show its largest queue or busiest window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nothing {
    /// Time at which the largest queue was found, or at which the busiest window began.
    pub at_ps: u64,
    /// Largest queue that an arrival found; detection by the queue.
    pub queue_bytes: Option<u64>,
    /// Wire bytes of the busiest window, and their share of what the port could send; detection by rate.
    pub window_bytes: Option<u64>,
    pub share: Option<f64>,
    /// Option that shows the largest queue or the busiest window, and its value; absent where none does.
    pub option: Option<&'static str>,
    pub value: Option<String>,
    pub words: String,
}

/// Over all bursts of the port, listed or not. `counts[i]` is of `edges[i] <= x < edges[i + 1]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histograms {
    pub duration_ps: HistogramReport,
    pub peak_bytes: HistogramReport,
    /// End of a burst to start of the next.
    pub gap_ps: HistogramReport,
}

/// A histogram; only the range that has counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HistogramReport {
    pub edges: Vec<u64>,
    pub counts: Vec<u64>,
}

/// Report of one burst.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Burst {
    /// Number of the burst at its port, from 0, including bursts that are left out here.
    pub index: u64,
    pub start_ps: u64,
    pub end_ps: u64,
    pub duration_ps: u64,
    pub peak_ps: u64,
    /// Largest queue found; absent where the records know no queue.
    pub peak_bytes: Option<u64>,
    /// Queue at the start.
    pub start_bytes: Option<u64>,
    pub records: u64,
    /// Frame bytes that arrived, dropped ones included; absent where frames are unknown.
    pub arrived_bytes: Option<u64>,
    /// Absent where the records do not say.
    pub dropped_packets: Option<u64>,
    /// True if `dropped_packets` is a lower bound: a running count began anew.
    #[serde(skip_serializing_if = "Not::not")]
    pub dropped_at_least: bool,
    pub dropped_bytes: Option<u64>,
    pub marked_packets: Option<u64>,
    /// Load of the busiest window of the burst, on the wire; absent where bursts are found by the queue.
    pub busiest_bps: Option<f64>,
    /// Mean slope from start to peak and from peak to end.
    pub rise_bps: Option<f64>,
    pub fall_bps: Option<f64>,
    /// Time since the end of the burst before.
    pub gap_ps: Option<u64>,
    /// True if the trace ended inside the burst.
    pub open: bool,
    /// The trace began inside, or the window asked for did.
    pub cut: bool,
    /// Distinct flows that arrived; unknown flows are not counted.
    pub flows: u64,
    /// Drop notifications that were captured during the burst, of whatever flow; absent where the trace has none.
    pub notifications: Option<u64>,
    /// Flows whose packets stood in the queue at the peak.
    pub direct: Vec<Culprit>,
    pub direct_unattributed_bytes: u64,
    /// Flows whose packets arrived between the time when the queue was last empty and the peak.
    pub indirect: Vec<Culprit>,
    pub indirect_unattributed_bytes: u64,
    pub phases: Vec<Phase>,
    pub rounds: Vec<Round>,
    pub law: Option<Law>,
    /// Slope compared with the port's speed where no law can be claimed, and why.
    pub words: Option<String>,
    /// Limits of what counters tell; absent where the port has records of packets or samples of its queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedBurst>,
}

/// A flow's part in a burst.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Culprit {
    pub flow: u32,
    pub name: String,
    pub bytes: u64,
    /// Share of all bytes in question, unattributed ones included.
    pub share: f64,
}

/// Drop notifications of a trace. frames = read + cut + short + those of `types` that have no name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoticeReport {
    /// Frames whose EtherType says that they carry a notification.
    pub frames: u64,
    /// Frames with only a notification, and notifications at the end of other frames.
    pub alone: u64,
    pub attached: u64,
    /// Notifications that could be read.
    pub read: u64,
    /// Frames whose end was not captured, and frames too short for the notification that they should carry.
    pub cut: u64,
    pub short: u64,
    /// Counts by the type byte; types without a name are not defined and were not read.
    pub types: Vec<NoticeValue>,
    /// Counts by the operation byte, of those that were read; without a name: not defined.
    pub operations: Vec<NoticeValue>,
    /// Payload bytes of the packets that were dropped.
    pub told_bytes: u64,
    /// Notifications about a segment for which there was one before.
    pub repeated: u64,
    /// Times of the first and the last notification that was read; absent where the trace's queues have another clock.
    pub first_ps: Option<u64>,
    pub last_ps: Option<u64>,
    /// Flows with a notification that was read.
    pub flows: u64,
    /// Flows with the most notifications.
    pub top: Vec<NoticeFlow>,
    pub notes: Vec<String>,
}

/// Number of times that a value occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoticeValue {
    pub value: u8,
    pub name: Option<&'static str>,
    pub count: u64,
}

/// The notifications of a flow's dropped packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoticeFlow {
    pub name: String,
    pub count: u64,
    pub repeated: u64,
    pub bytes: u64,
    pub first_ps: Option<u64>,
    pub last_ps: Option<u64>,
}

/// A stretch of constant slope.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    pub start_ps: u64,
    pub end_ps: u64,
    pub slope_bps: f64,
    /// Confidence interval of the slope.
    pub low_bps: f64,
    pub high_bps: f64,
    /// Records in the phase, as far as they were kept for the fit.
    pub records: u64,
    pub start_bytes: f64,
    pub end_bytes: f64,
    /// Teeth of a queue that goes up and down again and again, so that a line says little; else absent.
    pub sawtooth: Option<Sawtooth>,
}

/// Ups and downs within a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sawtooth {
    /// Number of times that the queue rose and fell by a tenth of its peak.
    pub teeth: u32,
    /// Smallest and largest queue.
    pub low_bytes: u64,
    pub high_bytes: u64,
}

/// One round of all flows of a burst.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Round {
    pub round: u32,
    pub start_ps: u64,
    /// Arrival of the round's last packet.
    pub end_ps: u64,
    pub flows: u64,
    pub packets: u64,
    pub bytes: u64,
}

/// State of the background of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Background {
    None,
    OneFlow,
    SameHop,
    PreviousHop,
}

/// Proof that the new flows of a burst are in slow start, which the laws are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// A result names the transport of the flows.
    Transport,
    /// Senders sent twice what was acknowledged.
    Acks,
    /// Second rounds were twice the first windows.
    Rounds,
}

/// Law of S-ECN §III-C that applies, and the test that it held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Law {
    pub law: u8,
    pub background: Background,
    pub background_flows: u64,
    /// a: arrival rate of the fan-in flows in phase 1; where no phase precedes the judged one, over their first round.
    pub first_round_bps: Option<f64>,
    /// Bound of the law on the slope: equal (law 1), less (law 2), at most (law 3).
    pub bound_bps: f64,
    pub slope_bps: f64,
    pub low_bps: f64,
    pub high_bps: f64,
    /// Index of the first phase that is judged.
    pub phase: usize,
    /// Index of the last judged phase: a rise without a pause is judged as a whole.
    pub last_phase: usize,
    /// Result of the test by the confidence interval; absent: it cannot say.
    pub holds: Option<bool>,
    /// Proofs that the new flows are in slow start; at least one.
    pub evidence: Vec<Proof>,
    pub words: String,
}

/// The estimate of a port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EstimateReport {
    /// True if this estimate serves as the port's queue; false: the trace knows the queue, which is only compared with the
    /// estimate.
    pub used: bool,
    pub buffer: String,
    pub rate_bps: u64,
    /// Bytes by frame that take time on the wire and no room in the queue.
    pub overhead_bytes: u64,
    pub records: u64,
    pub peak_bytes: u64,
    /// Packets that the port drops at that rate; absent where the file itself refutes it.
    pub dropped: Option<u64>,
    /// Longest wait of a packet [ps].
    pub longest_wait_ps: u64,
    /// Share that the rate may be off by, and the estimate over that range.
    pub rate_tolerance: f64,
    pub range: EstimateRange,
    /// Evidence of the file itself; absent where it shows neither acknowledgments nor TCP.
    pub confirmed: Option<Confirmed>,
    /// Certainty of the estimate: `confirmed` by the file, `unchecked`, `doubted` or `refuted`.
    pub sure: Sure,
    /// Time in which the port sent, of the time of the trace.
    pub busy_share: Option<f64>,
    /// Difference from the queue that the trace knows.
    pub error: Option<EstimateError>,
}

/// Least and most of an estimate over the range of the port's possible speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EstimateRange {
    pub peak_low_bytes: u64,
    pub peak_high_bytes: u64,
    pub dropped_low: u64,
    pub dropped_high: u64,
    pub longest_wait_low_ps: u64,
    pub longest_wait_high_ps: u64,
}

/// Evidence of TCP's own numbers in a capture of frames that passed a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Confirmed {
    /// Fastest rate at which data were acknowledged, over 50 ms or more between silences, on the wire of the port; absent where no acknowledgments were captured.
    pub rate_bps: Option<f64>,
    /// Data segments that came again.
    pub again: u64,
    /// Segments among these that filled a gap and may only have been overtaken: neither timestamps nor the round trip tell.
    pub unclear: u64,
    /// Segments that were sent and neither acknowledged nor sent again by the end; absent where no acknowledgments were captured.
    pub outstanding: Option<u64>,
    /// Packets of TCP with data, of all.
    pub data_packets: u64,
}

/// Certainty of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sure {
    /// Segments came again, as many as the estimate says were dropped, and no more was acknowledged than the port sends.
    Confirmed,
    /// Nothing in the file supports or refutes the estimate.
    Unchecked,
    /// The file contradicts the estimate, which may have other reasons.
    Doubted,
    /// The file shows that the estimate cannot be true.
    Refuted,
}

/// The estimate less the measured queue, over all records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EstimateError {
    pub records: u64,
    pub rms_bytes: f64,
    pub mean_bytes: f64,
    pub largest_bytes: u64,
    pub measured_peak_bytes: u64,
    pub measured_dropped: u64,
    pub estimated_dropped: u64,
    /// Packets that were dropped in both.
    pub dropped_in_both: u64,
}
