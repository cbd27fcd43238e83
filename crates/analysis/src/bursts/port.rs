//! Analysis of one port, record by record.

use crate::bursts::background::{short, Rtt};
use crate::bursts::burst::Closed;
use crate::bursts::burst_end::LastIn;
use crate::bursts::by_rate::ByRate;
use crate::bursts::flows::{Flows, Shares};
use crate::bursts::histogram::Histogram;
use crate::bursts::history::{Before, Recent};
use crate::bursts::patience::Patience;
use crate::bursts::queue_contents::Standing;
use crate::bursts::rate::RateEstimator;
use crate::bursts::scale::FULL_FRAME;
use crate::bursts::series::Series;
use crate::bursts::unseen::{Between, Unseen};
use crate::{Disorder, FlowLookup, Record, Settings, ANEW, MARKED, NO_QUEUE, REPLACED, SAMPLE};
use fanin_units::BPS;
use std::collections::{BTreeMap, BTreeSet};

/// Busy windows that show the speed of a port.
#[cfg(feature = "files")]
const FEWEST_WINDOWS: u64 = 3;

/// Largest frame that may be nothing but headers: 66 B of an acknowledgment in IPv4, 122 B with all options of TCP, IPv6 and a VLAN tag.
pub(crate) const HEADERS: u32 = 128;

/// Least speed by which the idle time of a slower port is counted [bit/s]: a frame's time then fits 64 bits, whatever its size.
const SLOWEST: u64 = 1_000_000;

/// Times that a queue needs to be sent in which it may be seen without a packet: a pause, and other queues of the port, make it last longer.
const DRAINS: u64 = 100;

/// Counts of a burst up to some moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub records: u64,
    pub bytes: u64,
    pub dropped_packets: u64,
    pub dropped_at_least: bool,
    pub dropped_bytes: u64,
    pub marked: u64,
    pub unsized_packets: u64,
    pub flows: usize,
}

/// The burst that is open, or would be if one began now.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    /// Number of the burst, from 1.
    number: u64,
    pub start: u64,
    pub start_queue: u64,
    pub cut: bool,
    pub counts: Counts,
    /// Slots of the burst's flows.
    pub flows: Vec<u32>,
    /// Flows that paused during the burst, with the time since when they had been active when it began.
    pub resumed: BTreeMap<u32, u64>,
    pub unnamed: bool,
    /// First lost packet, and first marked one, where `counts` have any: time, and the queue that it found.
    pub first_loss: (u64, u64),
    pub first_mark: (u64, u64),
    pub peak: u64,
    pub peak_time: u64,
    pub before: Option<Before>,
    pub direct: Shares,
    pub indirect: Shares,
    /// The peak is later than `direct` and `indirect`.
    pub dirty: bool,
    settled: bool,
}

impl Candidate {
    /// Counts a flow with its first packet.
    fn appears(&mut self, slot: u32) {
        if slot == crate::bursts::flows::UNKNOWN {
            self.unnamed = true;
        } else {
            self.flows.push(slot);
        }
    }
}

/// End of a burst, unless it goes on.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub time: u64,
    pub counts: Counts,
    /// Peak and its time, and culprits, where the candidate already includes records beyond the end (detection by rate).
    pub at: Option<(u64, u64, Shares, Shares)>,
    /// Time and queue of the last packet, where no other came until the queue was empty.
    pub drained: Option<(u64, u64)>,
    /// Most wire bytes of a window (detection by rate).
    pub busiest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Outside,
    Inside,
    /// Ended, unless it begins again within the span to merge.
    Ending,
}

/// All that is counted over the whole trace.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub records: u64,
    pub first: u64,
    pub accepted: u64,
    pub largest_frame: u64,
    pub peak: Option<(u64, u64)>,
    pub dropped: u64,
    pub dropped_at_least: bool,
    pub marked: u64,
    pub without_frame: u64,
    pub without_queue: u64,
    pub without_flow: u64,
    pub before_from: u64,
    pub jumps: u64,
    pub missing: u64,
    pub duplicates: u64,
    pub bursts: u64,
    pub burst_ps: u128,
    /// Times in which records are missing, and their sum [ps].
    pub holes: u64,
    pub hole_ps: u64,
    pub unseen: Unseen,
}

/// Analysis of one port: records in order of time, then the report.
pub struct PortAnalyzer {
    pub(crate) settings: Settings,
    pub(crate) name: String,
    pub(crate) lookup: FlowLookup,
    pub(crate) above: u64,
    pub(crate) until: u64,
    /// Picoseconds that the port takes for a byte; 0 where its speed is unknown.
    drain: u64,
    /// Time at which all that arrived has been sent, and the time before that in which the port had nothing to send [ps].
    busy_until: u64,
    idle: u64,
    /// Usual step between looks at the queue.
    pub(crate) patience: Patience,
    pub(super) between: Between,
    pub(crate) last_in: LastIn,
    from: u64,
    pub(crate) merge: u64,
    pub(crate) by_rate: Option<ByRate>,
    pub(crate) last: Record,
    pub(crate) totals: Totals,
    pub(crate) flows: Flows,
    pub(crate) standing: Standing,
    pub(crate) estimator: RateEstimator,
    recent: Recent,
    pub(crate) series: Series,
    pub(crate) candidate: Candidate,
    pub(crate) state: State,
    pub(crate) begun: bool,
    pub(crate) end: Option<End>,
    pub(crate) previous_end: Option<u64>,
    pub(crate) durations: Histogram,
    pub(crate) peaks: Histogram,
    pub(crate) gaps: Histogram,
    /// Highest bursts, by height and then by age.
    pub(crate) kept: BTreeMap<(u64, u64), Closed>,
    /// Bursts among the kept ones that have phases.
    pub(crate) detailed: BTreeSet<(u64, u64)>,
}

impl PortAnalyzer {
    /// Analysis of the port called `port`.
    ///
    /// # Panics
    /// On settings with [problems](Settings::problems).
    pub fn new(settings: &Settings, port: &str, flows: FlowLookup) -> Self {
        let problems = settings.problems();
        assert!(problems.is_empty(), "{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        let (above, until) = settings.thresholds();
        PortAnalyzer {
            name: port.to_string(),
            lookup: flows,
            above: above.0,
            until: until.0,
            drain: settings.rate.map_or(0, |rate| BPS as u64 / rate.bps().max(SLOWEST)),
            busy_until: 0,
            idle: 0,
            patience: Patience::default(),
            between: Between::default(),
            last_in: LastIn::default(),
            from: settings.from.map_or(0, |t| t.ps()),
            merge: settings.merge.ps(),
            by_rate: ByRate::new(settings),
            last: Record { time: fanin_units::Time::ZERO, queue: NO_QUEUE, frame: 0, flow: 0, flags: 0 },
            totals: Totals::default(),
            flows: Flows::new(),
            standing: Standing::new(settings.rate.map(|r| r.bps()), settings.overhead.0, settings.tick.ps()),
            estimator: RateEstimator::default(),
            recent: Recent::new(settings.background().ps().max(1)),
            series: Series::default(),
            candidate: Candidate::default(),
            state: State::Outside,
            begun: false,
            end: None,
            previous_end: None,
            durations: Histogram::new(),
            peaks: Histogram::new(),
            gaps: Histogram::new(),
            kept: BTreeMap::new(),
            detailed: BTreeSet::new(),
            settings: settings.clone(),
        }
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// A record earlier than the one before: it is not taken, and the analysis may go on without it.
    #[inline]
    pub fn push(&mut self, r: &Record) -> Result<(), Disorder> {
        self.push_waited(r, None)
    }

    /// Takes the next record, of a packet whose wait [ps] is known.
    ///
    /// # Errors
    /// As for [`PortAnalyzer::push`].
    #[inline]
    pub fn push_waited(&mut self, r: &Record, wait: Option<u64>) -> Result<(), Disorder> {
        let now = r.time.ps();
        if now <= self.last.time.ps() && self.totals.records > 0 {
            if now < self.last.time.ps() {
                return Err(Disorder { after: self.last.time, time: r.time });
            }
            // The same packet twice: a second one would have found the first in front of it. A drop leaves no such trace: it is a
            // copy where others are.
            let copy = !r.loses() || self.totals.duplicates > 0;
            if *r == self.last && copy && r.frame > 0 && r.queue > 0 && r.queue != NO_QUEUE && self.settings.tick.ps() == 0 {
                self.totals.duplicates += 1;
                return Ok(());
            }
        }
        self.count(r, now);
        let slot = self.flows.slot(r.flow, now);
        if r.queue == NO_QUEUE {
            self.totals.without_queue += 1;
        } else {
            self.found(r, now);
        }
        if now < self.from {
            self.totals.before_from += 1;
        } else if self.by_rate.is_some() {
            self.step_by_rate(r, now);
        } else if r.queue != NO_QUEUE {
            if r.frame > 0 && self.state == State::Inside && r.queue > self.until && self.is_hole(now) {
                self.hole(now);
            }
            self.step(r, now);
        }
        self.accept(r, now, slot, wait);
        self.last = *r;
        Ok(())
    }

    /// Takes the step to a look at the queue that is no packet, however long it is.
    pub fn step_to(&mut self, r: &Record) {
        let last = self.last.time.ps();
        if r.time.ps() > last {
            self.between = Between { since: last, in_burst: self.state == State::Inside, is_hole: false };
        }
    }

    /// Takes the step to a look at the queue that is no packet: where looks are missing, what was between is unknown.
    pub fn see_look(&mut self, r: &Record) {
        self.step_to(r);
        let (last, now) = (self.last.time.ps(), r.time.ps());
        let looks = r.queue != NO_QUEUE && self.by_rate.is_none() && self.totals.records > 0;
        if looks && now > last && last >= self.from && self.patience.misses(now - last) && self.outlasts(now) {
            self.hole(now);
        }
    }

    /// Time between records in which others are missing, up to now [ps].
    #[cfg(feature = "files")]
    #[inline]
    pub(crate) fn unseen_ps(&self) -> u64 {
        self.totals.hole_ps
    }

    /// Times at which the queue grew by more than arrived, the bytes that have no record by these, and those that were accepted.
    #[cfg(feature = "files")]
    pub(crate) fn missing(&self) -> (u64, u64, u64) {
        (self.totals.jumps, self.totals.missing, self.totals.accepted)
    }

    /// Number of drops between looks that saw no burst, and where they may have been; none where there are none.
    #[cfg(feature = "files")]
    pub(crate) fn unseen_drops(&self) -> Option<(u64, String)> {
        let unseen = &self.totals.unseen;
        (unseen.drops > 0).then(|| (unseen.drops, unseen.words()))
    }

    /// Forgets what was dropped while no look saw a burst: it is of several ports that are mixed.
    #[cfg(feature = "files")]
    pub(crate) fn forget_unseen_drops(&mut self) {
        self.totals.unseen = Unseen::default();
    }

    /// Speed on the wire that was given, those of the busy windows (low quarter, middle, high quarter) [bit/s], and their number; none
    /// unless the records are held to it, or too few.
    #[cfg(feature = "files")]
    pub(crate) fn speeds(&self) -> Option<(f64, [f64; 3], u64)> {
        let given = self.settings.rate.filter(|_| self.settings.held_to_rate)?.bps() as f64;
        // Lengths in packets say little of bytes.
        let fine = self.settings.unit.0 * 2 <= self.totals.largest_frame;
        let shown = self.estimator.estimate(false).filter(|shown| fine && shown.windows >= FEWEST_WINDOWS)?;
        // Each end of a window may be off by a tick.
        let slack = 1.0 + 2.0 * self.settings.tick.ps() as f64 / RateEstimator::shortest(self.totals.largest_frame, shown.middle);
        Some((given, [shown.low / slack, shown.middle, shown.high * slack], shown.windows))
    }

    /// True if the queue that the last record found would have been sent by now, where the speed is known.
    fn outlasts(&self, now: u64) -> bool {
        let waited = if self.last.queue == NO_QUEUE { 0 } else { self.last.queue };
        let bytes = waited.saturating_add(u64::from(self.last.frame)).saturating_add(self.settings.overhead.0);
        now - self.last.time.ps() > bytes.saturating_mul(self.drain)
    }

    /// True if a queue between two packets lasts much longer than the port takes to send it: packets have no record.
    #[inline]
    fn is_hole(&self, now: u64) -> bool {
        let waited = if self.last.queue == NO_QUEUE { u64::MAX } else { self.last.queue };
        let bytes = waited.saturating_add(self.totals.largest_frame).saturating_add(self.settings.overhead.0);
        self.drain > 0 && now - self.last.time.ps() > bytes.saturating_mul(self.drain).saturating_mul(DRAINS)
    }

    /// Notes that nothing is known of the time up to now: a burst that is open has no known end.
    #[cold]
    fn hole(&mut self, now: u64) {
        self.totals.holes += 1;
        self.totals.hole_ps += now - self.last.time.ps();
        self.interrupt();
    }

    #[inline(always)]
    fn count(&mut self, r: &Record, now: u64) {
        let t = &mut self.totals;
        if t.records == 0 {
            t.first = now;
        }
        t.records += 1;
        if now >= self.from {
            t.dropped += u64::from(r.loses());
            t.dropped_at_least |= r.flags & ANEW != 0;
            t.marked += u64::from(r.flags & MARKED != 0);
        }
        t.without_frame += u64::from(r.frame == 0);
        t.without_flow += u64::from(r.flow == crate::NO_FLOW);
        t.largest_frame = t.largest_frame.max(u64::from(r.frame));
    }

    /// Learns from the queue that a packet finds about the packets before.
    #[inline(always)]
    fn found(&mut self, r: &Record, now: u64) {
        let largest = self.totals.largest_frame;
        let seen = self.standing.found(now, r.queue, largest, &mut self.flows, self.settings.top);
        if seen.unexplained > 0 {
            self.unexplained(now, seen.unexplained);
        }
        if self.settings.rate.is_none() || self.settings.held_to_rate {
            let known = (largest, self.settings.overhead.0, seen.unexplained == 0);
            self.estimator.found(now, r.queue, self.totals.accepted - self.standing.unsent, self.standing.departed, known);
        }
        let t = &mut self.totals;
        if t.peak.is_none_or(|peak| r.queue > peak.0) {
            t.peak = Some((r.queue, now));
        }
    }

    #[inline(never)]
    fn unexplained(&mut self, now: u64, bytes: u64) {
        self.flows.add(crate::bursts::flows::UNKNOWN, bytes);
        let known = self.totals.records > 1 && self.last.frame > 0 && self.last.queue != NO_QUEUE;
        // Within a tick of the clock the order of arrivals is unknown.
        let tick = self.settings.tick.ps();
        let close = tick > 0 && now - self.last.time.ps() <= tick;
        let slack = if !close {
            0
        } else {
            self.settings.rate.map_or(4 * FULL_FRAME, |rate| rate.bytes_in(self.settings.tick).0 + self.totals.largest_frame)
        };
        // A length is as coarse as its unit.
        let unit = self.settings.unit.0.saturating_sub(1);
        if known && bytes > slack + unit {
            self.totals.jumps += 1;
            self.totals.missing = self.totals.missing.saturating_add(bytes);
            self.standing.miss(now);
        }
    }

    /// Detection by the queue.
    #[inline(always)]
    fn step(&mut self, r: &Record, now: u64) {
        let q = r.queue;
        let low = q <= self.until;
        match self.state {
            State::Outside => {
                if low || !self.begun {
                    self.begin(now, q, !low);
                }
                if q > self.above {
                    self.enter();
                }
            }
            State::Inside => {
                if low {
                    self.is_low(r, now);
                }
            }
            State::Ending => self.step_ending(q, now, low),
        }
        self.may_be_empty(q);
        if q > self.candidate.peak && self.state == State::Inside {
            self.peak(q, now);
        }
    }

    fn step_ending(&mut self, q: u64, now: u64, low: bool) {
        let ended = self.end.as_ref().map_or(now, |end| end.time);
        if low && now - ended >= self.merge {
            self.close(false);
            self.begin(now, q, false);
        } else if q > self.above {
            self.state = State::Inside;
        }
    }

    /// Most bytes in a queue that counts as empty.
    #[inline(always)]
    pub(crate) fn one_frame(&self) -> u64 {
        if self.totals.largest_frame == 0 {
            FULL_FRAME
        } else {
            self.totals.largest_frame
        }
    }

    #[inline(always)]
    pub(crate) fn may_be_empty(&mut self, q: u64) {
        if q <= self.one_frame() {
            if self.candidate.dirty {
                self.settle();
            }
            self.flows.empty();
        }
    }

    #[inline(always)]
    pub(crate) fn peak(&mut self, q: u64, now: u64) {
        self.candidate.peak = q;
        self.candidate.peak_time = now;
        self.candidate.dirty = true;
        self.standing.peak(q);
        self.flows.peak();
    }

    /// Settles the culprits at the last peak, before the data for them go.
    pub(crate) fn settle(&mut self) {
        let top = self.settings.top;
        self.candidate.dirty = false;
        self.candidate.settled = true;
        self.candidate.direct = self.standing.take_peak(&mut self.flows, top);
        self.candidate.indirect = self.flows.upto_peak(top);
    }

    /// Begins a possible burst.
    #[inline(always)]
    pub(crate) fn begin(&mut self, now: u64, queue: u64, cut: bool) {
        self.begun = true;
        if self.candidate.dirty {
            self.standing.forget_peak();
        }
        let c = &mut self.candidate;
        c.number += 1;
        c.start = now;
        c.start_queue = queue;
        c.cut = cut;
        c.counts = Counts::default();
        c.flows.clear();
        if !c.resumed.is_empty() {
            c.resumed.clear();
        }
        c.unnamed = false;
        c.peak = 0;
        c.peak_time = now;
        c.before = None;
        if c.settled {
            c.settled = false;
            c.direct = Shares::default();
            c.indirect = Shares::default();
        }
        c.dirty = false;
        self.series.clear();
    }

    /// Enters the state of a burst.
    pub(crate) fn enter(&mut self) {
        self.state = State::Inside;
        self.candidate.before = self.recent.before(self.candidate.start, self.totals.first);
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts { flows: self.candidate.flows.len(), ..self.candidate.counts }
    }

    /// Takes the packet itself into the burst and the queue.
    #[inline(always)]
    fn accept(&mut self, r: &Record, now: u64, slot: u32, wait: Option<u64>) {
        let wire = u64::from(r.frame) + self.settings.overhead.0;
        self.idle += now.saturating_sub(self.busy_until);
        if r.joins() {
            let turn = if self.drain > 0 { self.busy_until.max(now) } else { 0 };
            self.last_in = LastIn { time: now, queue: r.queue, frame: u64::from(r.frame), wait, turn };
        }
        self.busy_until = self.busy_until.max(now).saturating_add(if r.dropped() { 0 } else { wire * self.drain });
        if r.has_data() {
            let s = self.flows.get(slot);
            if s.pause == 0 || (self.idle - s.idle) >> 16 > u64::from(s.pause) {
                self.resume(r, now, slot);
            }
            let s = self.flows.get(slot);
            if r.frame > HEADERS || r.frame == 0 || s.pause == 0 {
                (s.last, s.idle) = (now, self.idle);
                if self.begun && s.epoch != self.candidate.number {
                    s.epoch = self.candidate.number;
                    self.candidate.appears(slot);
                }
            }
        }
        if self.begun {
            let c = &mut self.candidate;
            c.counts.records += 1;
            c.counts.bytes += u64::from(r.frame);
            c.counts.unsized_packets += u64::from(r.frame == 0);
            if r.flags & MARKED != 0 {
                if c.counts.marked == 0 {
                    c.first_mark = (now, r.queue);
                }
                c.counts.marked += 1;
            }
            c.counts.dropped_at_least |= r.flags & ANEW != 0;
            if r.loses() && !(self.between.is_hole && r.flags & SAMPLE != 0) {
                if c.counts.dropped_packets == 0 {
                    c.first_loss = (now, r.queue);
                }
                // What gives up its place is as large as what takes it.
                c.counts.dropped_packets += 1;
                c.counts.dropped_bytes += u64::from(r.frame);
            }
            self.series.push(r, slot);
        }
        if !r.loses() {
            self.totals.accepted += u64::from(r.frame);
            self.flows.add(slot, u64::from(r.frame));
            if r.queue != NO_QUEUE {
                self.standing.push(slot, r.frame);
            }
        } else {
            self.accept_unsent(r, slot);
        }
        let queue = (r.queue != NO_QUEUE).then_some(r.queue);
        self.recent.add(now, wire, queue);
    }

    /// Handles the first payload of a flow, or the first after a pause.
    ///
    /// Where a capture does not say what has payload, small frames are handshakes and acknowledgments unless nothing else came: with the
    /// first larger one the flow begins.
    #[inline(never)]
    fn resume(&mut self, r: &Record, now: u64, slot: u32) {
        let headers = r.frame != 0 && r.frame <= HEADERS;
        let s = self.flows.get(slot);
        if headers && s.pause != 0 {
            return;
        }
        let since = (s.pause != 0).then_some(s.active_since);
        let mut pause = s.pause;
        if slot == crate::bursts::flows::UNKNOWN {
            pause = u32::MAX;
        } else if pause == 0 && headers {
            pause = short(Rtt::of(&crate::FlowInfo::default(), &self.settings).pause);
        } else if pause == 0 {
            pause = short(Rtt::of(&(self.lookup)(s.flow), &self.settings).pause);
        }
        let paused = s.idle > 0 && (self.idle - s.idle) >> 16 > u64::from(pause);
        if paused || (s.pause == 0 && !headers) {
            s.active_since = now;
        }
        if !headers || slot == crate::bursts::flows::UNKNOWN {
            s.pause = pause;
        }
        if let (true, Some(since)) = (paused && s.epoch == self.candidate.number, since) {
            self.candidate.resumed.entry(slot).or_insert(since);
        }
    }

    /// Accounts for an arrival by which a packet is lost.
    #[inline(never)]
    fn accept_unsent(&mut self, r: &Record, slot: u32) {
        if r.flags & SAMPLE != 0 && self.by_rate.is_none() && r.time.ps() >= self.from {
            let Between { since, in_burst, is_hole } = self.between;
            if is_hole || !(in_burst || self.state == State::Inside) {
                self.totals.unseen.add((since, r.time.ps()), is_hole);
                self.totals.unseen.at_least |= r.flags & ANEW != 0;
            }
        }
        if r.dropped_at_head() {
            self.totals.accepted += u64::from(r.frame);
            self.flows.add(slot, u64::from(r.frame));
            if r.queue != NO_QUEUE {
                self.standing.push_doomed(slot, r.frame);
            }
        } else if !r.dropped() {
            self.replace(r, slot);
        }
    }

    /// Handles a packet that takes the place of the last one: one flow's bytes for another's, so that the accepted bytes stay as
    /// many.
    #[inline(never)]
    fn replace(&mut self, r: &Record, slot: u32) {
        debug_assert!(r.flags & REPLACED != 0);
        self.flows.add(slot, u64::from(r.frame));
        if r.queue != NO_QUEUE {
            if let Some(cut) = self.standing.replace(slot, r.frame) {
                self.flows.cut(cut, u64::from(r.frame));
            }
        }
    }
}

impl PortAnalyzer {
    pub(crate) fn by_rate_unset(&self) -> bool {
        self.by_rate.is_none()
    }

    pub(crate) fn last_time(&self) -> u64 {
        self.last.time.ps()
    }
}
