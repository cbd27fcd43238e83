//! Report on two captures of one port, and on the trust that it deserves.

use super::align::Alignment;
use super::coarse::Coarse;
use super::identity::Match;
use super::side::Passed;
use super::waits::WaitReport;
use crate::capture::survey::tunnels_note;
use crate::display::{count, size, span, was};
use fanin_units::{BitRate, Span};
use serde::Serialize;

/// Two captures of one port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairReport {
    pub before: Vec<String>,
    pub behind: Vec<String>,
    /// Fields that had to be the same on both sides, besides IP id, sequence number and length.
    pub matched_by: Match,
    /// Packets in both captures.
    pub matched: u64,
    /// Packets before that never came out, and packets behind with a mark that they did not bring.
    pub dropped: u64,
    pub marked: u64,
    /// Share of the packets that came out which was captured before, by number.
    pub share_behind: f64,
    /// Packets behind that were not captured before, and their bytes. They are in the queue, with a wait like that of the packet in
    /// front of them.
    pub only_behind: u64,
    pub only_behind_bytes: u64,
    pub left_out: LeftOut,
    pub clock: ClockReport,
    /// Packets that left after one that had arrived later.
    pub overtaken: u64,
    /// Bit/s of frame bytes, and with the overhead, that the port sent while packets waited; and that time's share of all.
    pub busy_bps: Option<f64>,
    pub busy_wire_bps: Option<f64>,
    pub busy_share: Option<f64>,
    /// Number of negative waits, and the largest of them [ps].
    pub negative: u64,
    pub most_negative_ps: u64,
    /// RMS of the difference between the queue that a packet found and the bytes that the port sent during its wait.
    pub queue_error_bytes: Option<f64>,
    pub waiting: Option<WaitReport>,
    pub notes: Vec<String>,
}

/// Packets that are in no record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LeftOut {
    /// Packets before the other capture had begun; packets so near the end that they may still have been in the port.
    pub at_start: u64,
    pub at_end: u64,
    /// Packets sent by hosts behind the port, in both captures.
    pub other_way: u64,
    /// Packets at other interfaces, in both captures.
    pub other_place: u64,
    /// Packets to hosts that no packet behind goes to.
    pub elsewhere: u64,
    /// Packets behind, before any captured packet came out; packets behind after the capture before had ended.
    pub behind_at_start: u64,
    pub behind_at_end: u64,
    /// Packets without IP, or without a time, in both captures.
    pub not_ip: u64,
    /// Packets that were captured twice.
    pub copies: u64,
}

/// Alignment of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockReport {
    /// Lead of the clock behind at the start, with the least time between both captures [ns].
    pub offset_ns: f64,
    /// Gain in millionths; none where too few packets passed without waiting for one to be seen.
    pub drift_ppm: Option<f64>,
    /// True if times behind are those of frames' ends; else of their starts.
    pub behind_at_end: bool,
    /// Share of up to 32 parts of the time in which a packet passed nearly without waiting, by which clocks can be aligned there.
    pub idle_parts: f64,
}

/// Sums of the second pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub matched: u64,
    pub dropped: u64,
    pub marked: u64,
    pub only_behind: u64,
    pub only_behind_bytes: u64,
    pub overtaken: u64,
    /// Packets that left while another of their identity was at the port.
    pub alike: u64,
    pub negative: u64,
    pub most_negative: i128,
    pub left_out: LeftOut,
    /// Packets that left right behind another while they waited, and the bytes and time before them.
    pub busy: u64,
    pub busy_bytes: u128,
    pub busy_wire: u128,
    pub busy_time: u128,
    /// Departures less than a quarter of the time after the packet before that it takes on the wire.
    pub together: u64,
    /// Sums over waits w and queues q that belong together: number, ww, wq, qq.
    pub pairs: [f64; 4],
    pub first: Option<i128>,
    pub last: i128,
    /// The largest queue [bytes].
    pub peak: u64,
}

/// Parts are idle where the least wait is below this [ps].
const NEARLY: f64 = 1e7;
/// Least delay below which both captures have one clock [ns].
const ONE_CLOCK: f64 = 1e5;
/// A wait that any device makes [ps].
const NO_QUEUE: u64 = 20_000_000;
/// Share of packets that leave after later ones above which a port has several queues.
const SEVERAL: f64 = 0.01;
/// Share of the given rate beyond which a measured one is off.
pub const OFF: f64 = 0.02;

impl PairReport {
    /// Report from the findings of both passes.
    pub fn new(
        (before, behind): (Vec<String>, Vec<String>),
        (coarse, alignment): (&Coarse, &Alignment),
        sums: &Sums,
        passed: [&Passed; 2],
        waiting: Option<WaitReport>,
    ) -> PairReport {
        let out = sums.matched + sums.only_behind;
        let rate = |bytes: u128| (sums.busy_time > 0).then(|| bytes as f64 * fanin_units::BPS / sums.busy_time as f64);
        let span = sums.first.map_or(0, |first| sums.last - first);
        let [count, ww, wq, qq] = sums.pairs;
        let idle = alignment.above.iter().filter(|above| **above < NEARLY).count();
        PairReport {
            before,
            behind,
            matched_by: coarse.matching,
            matched: sums.matched,
            dropped: sums.dropped,
            marked: sums.marked,
            share_behind: if out > 0 { sums.matched as f64 / out as f64 } else { 0.0 },
            only_behind: sums.only_behind,
            only_behind_bytes: sums.only_behind_bytes,
            left_out: LeftOut {
                other_way: passed[0].other_way + passed[1].other_way,
                other_place: passed[0].other_place + passed[1].other_place,
                not_ip: passed.iter().map(|p| p.not_ip + p.undated).sum(),
                copies: passed[0].copies + passed[1].copies,
                ..sums.left_out
            },
            clock: ClockReport {
                offset_ns: alignment.offset() as f64 / 1e3,
                drift_ppm: alignment.drift_seen.then_some(alignment.drift * 1e6),
                behind_at_end: alignment.by_byte > 0.0,
                idle_parts: idle as f64 / alignment.above.len().max(1) as f64,
            },
            overtaken: sums.overtaken,
            busy_bps: rate(sums.busy_bytes),
            busy_wire_bps: rate(sums.busy_wire),
            busy_share: (span > 0).then(|| (sums.busy_time as f64 / span as f64).min(1.0)),
            negative: sums.negative,
            most_negative_ps: u64::try_from(sums.most_negative).unwrap_or(u64::MAX),
            queue_error_bytes: (count >= 2.0 && ww > 0.0).then(|| ((qq - wq * wq / ww) / count).max(0.0).sqrt()),
            waiting,
            notes: Vec::new(),
        }
    }

    /// Says how far the report can be trusted. `swapped`: the sides are, and that is why packets are missing on one of them.
    pub fn judge(&mut self, given: Option<BitRate>, passed: [&Passed; 2], never_left: (u64, u64), swapped: bool) {
        let mut notes = vec![format!(
            "{} of {} behind the port {} found before it ({} %); {} never came out",
            self.matched,
            count(self.out(), "packet"),
            was(self.out()),
            percent(self.share_behind),
            count(self.dropped, "packet")
        )];
        notes.extend(self.clock.words());
        notes.extend(self.matched_by.words().map(String::from));
        notes.extend(self.speed(given, swapped));
        notes.extend(self.strangers().filter(|_| !swapped));
        notes.extend(self.without_queue());
        notes.extend(self.order());
        notes.extend(self.astray(never_left).filter(|_| !swapped));
        for (side, passed) in ["before", "behind"].into_iter().zip(passed) {
            notes.extend(tunnels_note(&passed.tunnels).map(|note| format!("{side} the port, {note}")));
        }
        notes.extend(self.left_out.words());
        notes.extend(passed.iter().flat_map(|passed| passed.truncated.iter().cloned()));
        self.notes = notes;
    }

    /// Number of packets that came out.
    fn out(&self) -> u64 {
        self.matched + self.only_behind
    }

    /// Notes on the speed of the port, and on what of the `given` one is not used.
    fn speed(&self, given: Option<BitRate>, swapped: bool) -> Vec<String> {
        let Some((frames, wire)) = self.busy_bps.zip(self.busy_wire_bps) else { return Vec::new() };
        let mut notes = vec![format!(
            "the port sent {} Mb/s of frames while packets waited ({} Mb/s on the wire), in {} % of the time",
            short(frames / 1e6),
            short(wire / 1e6),
            percent(self.busy_share.unwrap_or(0.0))
        )];
        let share = given.map_or(1.0, |rate| wire / rate.bps() as f64);
        if share < 1.0 - OFF && !swapped {
            let why = "other traffic that was not captured, pauses, or a shaper took the rest";
            notes.push(format!("that is {} % of the speed given: {why}", percent(share)));
        }
        notes
    }

    /// Note on packets that were captured behind only.
    fn strangers(&self) -> Option<String> {
        (self.only_behind > 0).then(|| {
            format!(
                "{} behind the port ({}) {} not captured before it: another way led there, or the capture missed some; in the queue \
                 each stands as long as the packet in front of it, so the queue may be off by as much",
                count(self.only_behind, "packet"),
                size(self.only_behind_bytes as f64),
                was(self.only_behind)
            )
        })
    }

    /// Note on captures between which no queue stood.
    fn without_queue(&self) -> Option<String> {
        let longest = self.waiting.as_ref().map(|w| w.max_ps)?;
        (self.matched >= 1_000 && longest < NO_QUEUE).then(|| {
            format!(
                "no packet took more than {} longer than another between both captures: no queue stood there; if one was expected, \
                 check where they were taken",
                span(longest)
            )
        })
    }

    /// Notes on packets that leave before they arrive, and after later ones.
    fn order(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.negative > 0 {
            let most = Span::from_ps(self.most_negative_ps);
            let packets = count(self.negative, "packet");
            notes.push(format!("{packets} came out before going in, by up to {most}: such a wait counts as 0"));
        }
        if self.overtaken > 0 {
            let share = self.overtaken as f64 / self.out().max(1) as f64;
            let why = if share > SEVERAL {
                "the port may have several queues (classes, one for each flow), and then culprits are not certain"
            } else {
                "too few to tell of several queues"
            };
            let packets = count(self.overtaken, "packet");
            notes.push(format!("{packets} ({} %) left after one that had arrived later: {why}", percent(share)));
        }
        notes
    }

    /// Note on drops that may have gone another way: flows none of whose packets left, and packets of these.
    fn astray(&self, (flows, packets): (u64, u64)) -> Option<String> {
        (flows > 0 && self.dropped > 0).then(|| {
            format!(
                "{} of {} {} of {} of which no packet came out: these may have gone another way",
                packets,
                count(self.dropped, "drop"),
                if packets == 1 { "is" } else { "are" },
                count(flows, "flow")
            )
        })
    }
}

fn short(x: f64) -> String {
    format!("{x:.2}").trim_end_matches('0').trim_end_matches('.').to_string()
}

fn percent(share: f64) -> String {
    short(share * 100.0)
}

impl ClockReport {
    fn words(&self) -> Vec<String> {
        let ns = self.offset_ns;
        let shown = Span::from_ps((ns.abs() * 1e3) as u64);
        let drift = match self.drift_ppm {
            Some(0.0) => "no drift".to_string(),
            Some(ppm) => format!("a drift of {ppm:+.3} ppm"),
            None => "drift unknown".to_string(),
        };
        let mut notes = vec![format!(
            "clocks were aligned by the least delay of all packets: {}{shown}, {drift}",
            if ns < 0.0 { "-" } else { "" }
        )];
        if self.behind_at_end {
            notes.push("times behind are those of frames' ends: what a frame takes on the wire is no wait".into());
        }
        let two_clocks = ns.abs() > ONE_CLOCK || self.drift_ppm.is_some_and(|ppm| ppm != 0.0);
        if two_clocks && self.idle_parts < 0.5 {
            notes.push(format!(
                "in {} % of the time some packet passed without waiting: a drift of the clocks would not show in the rest",
                percent(self.idle_parts)
            ));
        }
        notes
    }
}

impl Match {
    /// Note on what packets were matched without.
    fn words(self) -> Option<&'static str> {
        match self {
            Match::Flow => None,
            Match::InnerFlow => Some(
                "tunnels end at the port, or go on with another number (VNI, key of GRE): packets were matched without it, so those of tenants with equal addresses are not told apart",
            ),
            Match::Ports => Some("addresses are rewritten at the port (NAT): packets were matched without them"),
            Match::Contents => Some("addresses and ports are rewritten at the port (NAT): packets were matched without them"),
        }
    }
}

impl LeftOut {
    fn words(&self) -> Vec<String> {
        let all = [
            (self.at_start, "captured before the port when the capture behind it had not begun"),
            (self.at_end, "captured before the port when the capture behind it had ended"),
            (
                self.behind_at_start,
                "captured behind the port when the capture before it had no packet yet; what waits then is in the queue",
            ),
            (self.behind_at_end, "captured behind the port when the capture before it had ended"),
            (self.other_way, "sent by hosts behind the port"),
            (self.elsewhere, "to hosts that no packet behind goes to"),
            (self.not_ip, "without IP or without a time"),
            (self.copies, "captured twice"),
        ];
        let there = all.into_iter().filter(|(packets, _)| *packets > 0);
        there.map(|(packets, why)| format!("{} left out: {why}", count(packets, "packet"))).collect()
    }
}
