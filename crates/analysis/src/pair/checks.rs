//! Checks for two captures that cannot be of one port as they were given: swapped sides, packets that were lost behind the port,
//! times out of order.

use super::align::{float, Alignment};
use super::coarse::Way;
use super::identity::{spread, Match, Seen};
use super::idle::{Apart, Idle, Stood, SLOWER};
use super::reader::Left;
use super::report::{Sums, OFF};
use super::side::Passed;
use super::Pair;
use crate::capture::frame_checks::{lost, GRAVE};
use crate::capture::{Connections, FlowKey};
use crate::checks::records::coarse;
use crate::checks::{Finding, Level};
use crate::display::{count, rate as rate_of, size, span};
use fanin_units::{BitRate, Span, BPS};
use std::collections::{BTreeMap, BTreeSet};

/// Share of packets out of order from which a capture is not in order at all.
const SHUFFLED: f64 = 0.01;
/// Factor by which packets must come out faster than they went in for the sides to be swapped.
const FASTER: f64 = 1.5;
/// Factor by which the other direction must carry more than the one that was taken for the captures to be swapped for certain.
const MOST_BYTES: u64 = 4;
/// Clocks that are nearer to one another than this are one clock [ps].
const ONE_CLOCK: i128 = 1_000_000_000_000;
/// Share of the packets behind, in flows that are not in the capture before, above which that saw only a part of the traffic into
/// the port.
const OTHERS: f64 = 0.1;
/// Number of parts of the time whose least delays must agree on both sides of a step of a clock, and the tolerance [ps].
const PARTS: usize = 3;
const AGREE: f64 = 2e7;
/// Shortest step that is said [ps].
const STEP: f64 = 1e8;
/// Difference of two clocks below which they are one [ps], and the most by which they drift apart. Source: IEEE 802.3 §40.6.1.2.6, 100 ppm.
const NEAR: u128 = 100_000_000;
const TOLERANCE: f64 = 1e-4;
/// Share of packets that a device on the way may change against the rules.
const AGAINST: f64 = 0.01;
/// Number of gaps by which a share is judged, its least distance from none in standard errors, and its least value that matters.
const GAPS: f64 = 8.0;
const SURE: f64 = 4.0;
const MATTERS: f64 = 0.05;
/// Packets that are no drops from which that is said, and their share of what never came out.
const SOME: u64 = 2;
const FALSE: f64 = 0.01;
/// Protocol whose data comes again when it was dropped, and the most bytes of its headers in a frame over IPv4.
const TCP: u8 = 6;
const HEADERS: u32 = 14 + 4 + 20 + 32 + 4;
/// Packets in a row that show a speed; shares of the speed given above which it is wrong, and below which it is doubted.
const ROW: u64 = 64;
const ABOVE: f64 = 1.05;
const BELOW: f64 = 0.5;
/// Share of the packets behind, of flows that were captured before, above which the capture before is not whole at all.
const MISSED: f64 = 0.01;
/// Share of packets that cannot be told from others above which a finding says so.
const ALIKE: f64 = 0.01;
/// Share of those that left from which nothing is known of which were dropped, nor how many.
const MOST_ALIKE: f64 = 0.9;
/// Share of packets that leave together above which stamps are doubted; shapers in kernels let one in fifty do so.
const GROUPED: f64 = 0.25;
/// Flows that are distinguished, and flows that are at hand.
const FLOWS: usize = 1 << 18;
const LATELY: usize = 1 << 10;

/// Flows of the capture before, and packets behind that it lacks, by flow.
#[derive(Debug)]
pub struct Known {
    matching: Match,
    /// Flows that are known, each in the place that its hosts and ports give.
    lately: Vec<Option<FlowKey>>,
    before: BTreeSet<FlowKey>,
    behind_only: BTreeMap<FlowKey, u64>,
    /// Packets of TCP with data that never came out, and the bytes of these, by flow.
    dropped: BTreeMap<FlowKey, (u64, u64)>,
}

impl Known {
    pub fn new(matching: Match) -> Known {
        Known {
            matching,
            lately: vec![None; LATELY],
            before: BTreeSet::new(),
            behind_only: BTreeMap::new(),
            dropped: BTreeMap::new(),
        }
    }

    /// Notes a packet of a flow that was captured before.
    #[inline]
    pub fn before(&mut self, seen: &Seen) {
        if self.matching == Match::Flow {
            self.know(seen);
        }
    }

    /// Notes a packet that was found before, by its flow as it is called behind: so flows are known whose addresses are
    /// rewritten.
    #[inline]
    pub fn found(&mut self, seen: &Seen) {
        if self.matching != Match::Flow {
            self.know(seen);
        }
    }

    #[inline]
    fn know(&mut self, seen: &Seen) {
        let lately = &mut self.lately[spread(seen.hosts, seen.flow.3) as usize % LATELY];
        if *lately != Some(seen.flow) && self.before.len() < FLOWS {
            self.before.insert(seen.flow);
            *lately = Some(seen.flow);
        }
    }

    /// Notes a packet of a flow that was captured behind only.
    pub fn behind_only(&mut self, flow: FlowKey) {
        if self.behind_only.len() < FLOWS || self.behind_only.contains_key(&flow) {
            *self.behind_only.entry(flow).or_default() += 1;
        }
    }

    /// Notes a packet with data that never came out.
    pub fn dropped(&mut self, flow: &FlowKey, bytes: u32) {
        if flow.2 == TCP && (self.dropped.len() < FLOWS || self.dropped.contains_key(flow)) {
            let (packets, payload) = self.dropped.entry(*flow).or_default();
            let headers = if flow.0.is_ipv6() { HEADERS + 20 } else { HEADERS };
            (*packets, *payload) = (*packets + 1, *payload + u64::from(bytes.saturating_sub(headers)));
        }
    }

    /// Number of packets, at least, that never came out and whose bytes were acknowledged, though they did not come again.
    fn acknowledged(&self, connections: &Connections) -> u64 {
        let of = |(flow, (packets, payload)): (&FlowKey, &(u64, u64))| {
            let missing = payload.saturating_sub(connections.again(flow)?);
            Some((missing as f64 / (*payload).max(1) as f64 * *packets as f64) as u64)
        };
        self.dropped.iter().filter_map(of).sum()
    }

    /// Number of packets that came past the capture before, as others of their flows are in it.
    fn missed(&self) -> u64 {
        self.behind_only.iter().filter(|(flow, _)| self.before.contains(flow)).map(|(_, packets)| packets).sum()
    }
}

/// Packets that left one right after the other, the second waiting meanwhile: times t between them [ps], and bytes b of the first.
#[derive(Clone, Copy, Debug, Default)]
struct Gaps {
    count: f64,
    t: f64,
    b: f64,
    tt: f64,
    tb: f64,
    bb: f64,
}

impl Gaps {
    fn add(&mut self, t: f64, b: f64) {
        let sums = [1.0, t, b, t * t, t * b, b * b];
        let all = [&mut self.count, &mut self.t, &mut self.b, &mut self.tt, &mut self.tb, &mut self.bb];
        all.into_iter().zip(sums).for_each(|(sum, x)| *sum += x);
    }

    /// Variance of the bytes for which a gap has room beyond its packet [bytes^2], at a speed in bytes per picosecond.
    fn variance(&self, speed: f64) -> f64 {
        ((speed * speed * self.tt - 2.0 * speed * self.tb + self.bb) / self.count.max(1.0)).max(0.0)
    }
}

/// Observations of the second pass over two captures.
///
/// A packet that the port drops takes no time on the wire: the packets around it leave one right after the other. One that was sent and is
/// lost later leaves a gap behind the port, as long as it took. So the gaps with missing packets, less those without, give the bytes
/// that the port sent of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checks {
    last: Option<(u64, Left)>,
    whole: Gaps,
    holed: Gaps,
    /// Bytes on the wire, and number, of packets that are missing in holed gaps.
    missing: (f64, f64),
    /// Packets that were dropped though nothing waited.
    pub at_empty: u64,
    /// Packets with more hops left behind than before, and packets that lost their mark.
    pub risen: u64,
    pub unmarked: u64,
    /// Packets that left after one of their own flow that had arrived later, and by how much it had, at most [ps].
    behind_own: (u64, i128),
}

impl Checks {
    /// Takes packet `number`, which left in order; `missing`: bytes on the wire and number of the packets between it and the last
    /// to leave that were not seen behind.
    pub fn leaves(&mut self, number: u64, left: Left, overhead: u64, missing: (u64, u64)) {
        let Some((_, last)) = self.last.replace((number, left)).filter(|(last, _)| *last < number) else { return };
        if left.arrived > last.left || left.left <= last.left {
            return;
        }
        let (time, bytes) = (float(left.left - last.left), (u64::from(last.bytes) + overhead) as f64);
        if missing.1 == 0 {
            self.whole.add(time, bytes);
        } else {
            self.holed.add(time, bytes);
            self.missing = (self.missing.0 + missing.0 as f64, self.missing.1 + missing.1 as f64);
        }
    }

    /// A packet left after one of its own flow that had arrived later by so much [ps].
    #[inline]
    pub fn behind_own_flow(&mut self, late: i128) {
        self.behind_own = (self.behind_own.0 + 1, self.behind_own.1.max(late));
    }

    /// The packet before is not that which arrived before.
    pub fn interrupted(&mut self) {
        self.last = None;
    }

    /// Estimate of the packets that the port has sent among those that never came out.
    fn sent(&self) -> f64 {
        let (whole, holed) = (&self.whole, &self.holed);
        if holed.count < GAPS || whole.count < GAPS || whole.t <= 0.0 {
            return 0.0;
        }
        let speed = whole.b / whole.t;
        let sent = speed * holed.t - holed.b;
        let (error, share) = ((whole.variance(speed) * holed.count).sqrt(), sent / self.missing.0.max(1.0));
        if sent > SURE * error && share > MATTERS {
            share.min(1.0) * self.missing.1
        } else {
            0.0
        }
    }

    fn lost_behind(&self, dropped: u64, acknowledged: u64) -> Option<Finding> {
        let sent = libm::round(self.sent()) as u64;
        let some = (sent + self.at_empty).max(acknowledged).min(dropped);
        if some < SOME || some as f64 <= dropped as f64 * FALSE {
            return None;
        }
        let mut why = Vec::new();
        if sent > 0 {
            why.push(format!("the port stood still for as long as {sent} take on the wire, so it has sent them"));
        }
        if self.at_empty > 0 {
            why.push(format!("{} found nothing waiting, where no queue is full", self.at_empty));
        }
        if acknowledged > 0 {
            why.push(format!("{acknowledged} were acknowledged and never came again, so they arrived"));
        }
        Some(Finding {
            code: "lost_behind",
            level: if 2 * some > dropped { Level::Wrong } else { Level::Doubt },
            place: String::new(),
            count: some,
            bytes: None,
            words: format!(
                "at least {some} of the {} that never came out are no drops of this port: {}",
                count(dropped, "packet"),
                why.join("; ")
            ),
            hint:
                "these were lost behind the port or by the second capture: tcpdump -B 65536 -s 128, and capture right behind it"
                    .into(),
        })
    }

    fn flow_order(&self, sums: &Sums) -> Option<Finding> {
        let (packets, late) = self.behind_own;
        let share = packets as f64 / sums.matched.max(1) as f64;
        (share > SHUFFLED).then(|| Finding {
            code: "flow_order",
            level: Level::Doubt,
            place: String::new(),
            count: packets,
            bytes: None,
            words: format!(
                "{} ({:.1} %) left after one of their own flow that had arrived up to {} later, and hardly a port changes the order within a \
                 flow: stamps are off by as much, or between the captures there are several ways",
                count(packets, "packet"),
                100.0 * share,
                span_of(late)
            ),
            hint: "stamp in hardware, or in one queue of the NIC; capture right before and right behind the port".into(),
        })
    }

    fn swapped(&self, sums: &Sums, alignment: &Alignment, ways: [Way; 2]) -> Option<Finding> {
        let [taken, other] = ways;
        let (level, number, words) = if other.bytes > taken.bytes && other.wait() > taken.wait() {
            let few = sums.dropped == 0 && taken.bytes * MOST_BYTES < other.bytes;
            let words = format!(
                "the direction that enters the port as given has {} B in both captures and passes in {}; the other has {} B and takes up to {} longer at times than at others, so it is that which waits",
                taken.bytes,
                span_of(taken.wait()),
                other.bytes,
                span_of(other.wait())
            );
            (if few { Level::Wrong } else { Level::Doubt }, other.packets, words)
        } else if self.risen as f64 > sums.matched as f64 * AGAINST {
            let words =
                "have more hops left (TTL) behind the port than before it, and every device on the way can only take some";
            (Level::Wrong, self.risen, format!("{} {words}", count(self.risen, "packet")))
        } else if self.unmarked > sums.marked && self.unmarked as f64 > sums.matched as f64 * AGAINST {
            let words = "are marked (CE) before the port and not behind it, and no device on the way takes a mark away";
            (Level::Wrong, self.unmarked, format!("{} {words}", count(self.unmarked, "packet")))
        } else {
            let (into, out) = alignment.paces;
            if into <= 0.0 || out <= FASTER * into {
                return None;
            }
            let faster = format!(
                "packets come out at up to {} that went in at {} at most, as if the port were between them the other way round",
                rate_of(out),
                rate_of(into)
            );
            let early = -alignment.latest;
            if early > 0 {
                let level = if early < ONE_CLOCK { Level::Wrong } else { Level::Doubt };
                (
                    level,
                    sums.matched,
                    format!("{faster}, and each was captured behind it at least {} before it went in", span_of(early)),
                )
            } else if sums.only_behind > 0 && sums.dropped == 0 {
                let none = format!("{faster}, and {} come out that never went in", count(sums.only_behind, "packet"));
                (Level::Doubt, sums.only_behind, none)
            } else {
                return None;
            }
        };
        Some(Finding {
            code: "swapped",
            level,
            place: String::new(),
            count: number,
            bytes: None,
            words,
            hint: "the captures are swapped: give that before the port first, and that behind it as --behind".into(),
        })
    }

    /// Adds what was found. `names`: the files before and behind.
    pub fn findings(
        &self,
        names: [&[String]; 2],
        (pair, sums, known, idle): (&Pair, &Sums, &Known, &Idle),
        passed: [&Passed; 2],
        findings: &mut Vec<Finding>,
    ) {
        let [before, behind] = names.map(|files| files.join(", "));
        let both = format!("{before} and {behind}");
        let alignment = &pair.alignment;
        let swapped = self.swapped(sums, alignment, pair.coarse.ways);
        // Of captures that are swapped, the rest follows.
        let whole = swapped.is_none();
        let missed = known.missed();
        // What came again may have been among what the capture before lost.
        let acknowledged = if missed == 0 { known.acknowledged(&pair.connections) } else { 0 };
        let rest = || {
            let slower = sums.busy_wire as f64 * BPS < SLOWER * alignment.rate * sums.busy_time as f64;
            let (apart, stood) = (idle.apart(), idle.stood(sums.peak, slower));
            let clocks = stepped(alignment, sums, apart).or_else(|| unsteady(apart)).or_else(|| unknown(alignment, sums, idle));
            let groups = grouped(alignment, sums, stood);
            let off = stood.filter(|_| clocks.is_none() && groups.is_none()).map(stands);
            [
                pair.rate.and_then(|given| speed(given, sums)),
                lost_before(missed, sums),
                other_ingress(missed, sums),
                clocks,
                self.flow_order(sums),
                groups,
                off,
            ]
        };
        let rest = if whole { rest() } else { [const { None }; 7] };
        let of_both = [swapped, indistinct(sums, passed), self.lost_behind(sums.dropped, acknowledged)].into_iter().chain(rest);
        findings.extend(of_both.flatten().map(|finding| Finding { place: both.clone(), ..finding }));
        for (place, passed) in [before, behind].iter().zip(passed) {
            let packets = passed.checks.frames();
            passed.checks.findings(place, passed.snap, findings);
            findings.extend(lost(place, passed.lost, packets));
            findings.extend(disorder(place, passed, packets));
            let tick = passed.grain.step().map(Span::from_ps);
            // Where no gap shows a speed, so many packets leave in a step at least.
            let least = |tick: Span| (ROW * 64) as f64 * BPS / tick.ps() as f64;
            let rate =
                |tick| Some(alignment.rate).filter(|rate| *rate > 0.0 || sums.matched < ROW).unwrap_or_else(|| least(tick));
            findings.extend(tick.and_then(|tick| coarse(tick, BitRate(rate(tick) as u64), place)));
        }
    }
}

fn span_of(ps: i128) -> String {
    span(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// Finding about a port that sends faster than its line, or far slower though packets wait.
fn speed(given: BitRate, sums: &Sums) -> Option<Finding> {
    if sums.busy < ROW || sums.busy_time == 0 {
        return None;
    }
    let sent = sums.busy_wire as f64 * BPS / sums.busy_time as f64;
    let share = sent / given.bps() as f64;
    let (level, why, hint) = if share > 1.0 + OFF {
        let level = if share > ABOVE { Level::Wrong } else { Level::Doubt };
        let hint = "check --rate (and --overhead, --no-fcs), and that stamps behind are not given to many packets at once \
                    (interrupt coalescing)";
        (level, "and no port sends faster than its line", hint)
    } else if share < BELOW {
        let hint = "check --rate; else a shaper, pauses, or traffic that was not captured takes the rest";
        (Level::Doubt, "and a port that has packets waiting sends at its line's", hint)
    } else {
        return None;
    };
    Some(Finding {
        code: "speed",
        level,
        place: String::new(),
        count: sums.busy,
        bytes: None,
        words: format!(
            "while packets waited the port sent {} on the wire, {:.2} % of the speed given, {why}",
            rate_of(sent),
            100.0 * share
        ),
        hint: hint.into(),
    })
}

/// Packets that the capture before lost.
fn lost_before(missed: u64, sums: &Sums) -> Option<Finding> {
    let out = sums.matched + sums.only_behind;
    let share = missed as f64 / out.max(1) as f64;
    if share <= GRAVE {
        return None;
    }
    // What was lost of the packets that came out was lost of those that were dropped.
    let drops = libm::round(sums.dropped as f64 * share / (1.0 - share).max(GRAVE));
    Some(Finding {
        code: "lost_before",
        level: if share > MISSED { Level::Wrong } else { Level::Doubt },
        place: String::new(),
        count: missed,
        bytes: None,
        words: format!(
            "{missed} of the {} behind ({:.2} %) are not in the capture before the port, though it has others of their flows: it lost \
             them, and as many of those that were dropped, about {drops}, which are not counted",
            count(out, "packet"),
            100.0 * share
        ),
        hint: "tcpdump -B 65536 -s 128 in front of the port, or the flows reach it by another way too".into(),
    })
}

/// Finding about packets that nothing tells apart: they are matched in order, whichever was dropped.
fn indistinct(sums: &Sums, passed: [&Passed; 2]) -> Option<Finding> {
    let packets = passed[0].checks.frames();
    let share = sums.alike as f64 / packets.max(1) as f64;
    let nearly_all = sums.alike as f64 > MOST_ALIKE * sums.matched as f64;
    (share > ALIKE).then(|| Finding {
        code: "indistinct",
        level: if nearly_all { Level::Wrong } else { Level::Doubt },
        place: String::new(),
        count: sums.alike,
        bytes: None,
        words: format!(
            "{} of {} ({:.1} %) left while another was at the port from which nothing captured tells them: equal hosts, ports, length, \
             number and first bytes. They are matched in order, so that drops and waits may be those of others",
            sums.alike,
            count(packets, "packet"),
            100.0 * share
        ),
        hint: "capture more of each frame (tcpdump -s 192), so that TCP timestamps and what is inside tunnels are there; of a tunnel that \
               is not unpacked (encrypted, or at another port), capture where it ends"
            .into(),
    })
}

/// Flows that enter the port past the capture before.
fn other_ingress(missed: u64, sums: &Sums) -> Option<Finding> {
    let (out, others) = (sums.matched + sums.only_behind, sums.only_behind.saturating_sub(missed));
    let share = others as f64 / out.max(1) as f64;
    (share > OTHERS).then(|| Finding {
        code: "other_ingress",
        level: Level::Doubt,
        place: String::new(),
        count: others,
        bytes: Some(sums.only_behind_bytes),
        words: format!(
            "{others} of the {} behind ({:.2} %) are of flows that the capture before the port has nothing of: it saw a part of what \
             enters, and neither queue nor drops of the rest",
            count(out, "packet"),
            100.0 * share
        ),
        hint: "check which interface is before the port (--before-interface), or capture all that enters it".into(),
    })
}

/// Finding about a clock that was set: from one moment on, all packets that do not wait take longer, or less long, by the same
/// time. A queue that stands does not stand still, and one that is full drops packets; or packets stand so long before an idle port.
fn stepped(alignment: &Alignment, sums: &Sums, apart: Option<Apart>) -> Option<Finding> {
    let above = &alignment.above;
    let alike = |parts: &[f64]| {
        let (low, high) = parts.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), part| (low.min(*part), high.max(*part)));
        (parts.len() >= PARTS && high - low < AGREE).then_some(low)
    };
    let step = (PARTS..=above.len().saturating_sub(PARTS)).find_map(|at| {
        // The part in which it was set belongs to neither.
        let (left, right) = (alike(&above[..at])?, alike(&above[at..]).or_else(|| alike(&above[at + 1..]))?);
        ((left - right).abs() > STEP).then_some(right - left)
    })?;
    let few = (sums.dropped as f64) < AGAINST * sums.matched as f64;
    (few || apart.is_some_and(|apart| apart.parts >= PARTS)).then(|| Finding {
        code: "clock_step",
        level: Level::Doubt,
        place: String::new(),
        count: 1,
        bytes: None,
        words: format!(
            "from one moment on even the quickest packets take {} {} from one capture to the other, and all as much: a clock was set",
            span(step.abs() as u64),
            if step > 0.0 { "longer" } else { "less" }
        ),
        hint: "waits on one side of that moment are wrong by as much: analyse the time before and after it apart (--stop, --start), and \
               slew the clock instead of setting it"
            .into(),
    })
}

/// Finding about packets that leave together, as no line sends them.
fn grouped(alignment: &Alignment, sums: &Sums, stood: Option<Stood>) -> Option<Finding> {
    let share = sums.together as f64 / sums.busy.max(1) as f64;
    let tick = alignment.tick.unwrap_or(0) as f64;
    let frame = sums.busy_bytes as f64 / sums.busy.max(1) as f64 * BPS / alignment.rate.max(1.0);
    let faster = sums.busy_bytes as f64 * BPS > ABOVE * alignment.rate * sums.busy_time as f64;
    if sums.busy < ROW || share < GROUPED || faster || tick > frame / 4.0 {
        return None;
    }
    let between = sums.busy_time / u128::from(sums.busy - sums.together).max(1);
    Some(Finding {
        code: "grouped_stamps",
        level: Level::Doubt,
        place: String::new(),
        count: sums.together,
        bytes: None,
        words: format!(
            "{:.0} % of the packets that left right behind another did so in less than a quarter of the time that it takes on the wire, in groups \
             {} apart: if stamps behind are given to groups (interrupt coalescing), waits are off by as much; a shaper that lets groups go does so{}",
            100.0 * share,
            span(u64::try_from(between).unwrap_or(u64::MAX)),
            stood.map(|stood| format!("; {}", stood.words())).unwrap_or_default()
        ),
        hint: "turn coalescing off where the capture behind is taken (ethtool -C IF rx-usecs 0), or stamp in hardware".into(),
    })
}

/// Finding about clocks that are not apart by as much all the time, however that came.
fn unsteady(apart: Option<Apart>) -> Option<Finding> {
    let apart = apart?;
    Some(Finding {
        code: "unsteady_clock",
        level: Level::Doubt,
        place: String::new(),
        count: apart.parts as u64,
        bytes: None,
        words: apart.words(),
        hint: "stamp both captures by one clock (one host, or PTP); or analyse shorter parts of the time (--start, --stop)"
            .into(),
    })
}

/// Finding about two clocks whose drift nothing shows, where it may matter.
fn unknown(alignment: &Alignment, sums: &Sums, idle: &Idle) -> Option<Finding> {
    let time = float(alignment.behind.1 - alignment.behind.0) * TOLERANCE;
    let bytes = time * alignment.rate / BPS;
    let two = alignment.offset().unsigned_abs() > NEAR;
    let matters = idle.matters(bytes, sums.peak);
    (two && !alignment.drift_seen && !idle.covers() && matters).then(|| Finding {
        code: "unknown_drift",
        level: Level::Doubt,
        place: String::new(),
        count: 1,
        bytes: Some(bytes as u64),
        words: format!(
            "two clocks stamped the captures, and too few packets found the port idle to see their drift: 100 ppm, as Ethernet allows, are {} \
             over the whole time, by which waits may be off, and the queue by {}",
            span(time as u64),
            size(bytes)
        ),
        hint: "stamp both captures by one clock (one host, or PTP); or capture until the port is idle again and again".into(),
    })
}

/// Finding about packets that seem to stand before an idle port.
fn stands(stood: Stood) -> Finding {
    Finding {
        code: "idle_waits",
        level: Level::Doubt,
        place: String::new(),
        count: stood.packets,
        bytes: Some(stood.bytes as u64),
        words: format!(
            "{}: stamps or clocks are off by as much, unless the port pauses, wakes up slowly, or sends what was not captured",
            stood.words()
        ),
        hint: "turn coalescing off where captures are taken (ethtool -C IF rx-usecs 0), or stamp both in hardware by one clock"
            .into(),
    }
}

/// Finding about packets that were captured later than they were stamped, by more places than are put in order.
fn disorder(place: &str, passed: &Passed, packets: u64) -> Option<Finding> {
    let share = passed.late as f64 / packets.max(1) as f64;
    (passed.late > 0).then(|| Finding {
        code: "disorder",
        level: if share > SHUFFLED {
            Level::Wrong
        } else if share > GRAVE {
            Level::Doubt
        } else {
            Level::Note
        },
        place: place.to_string(),
        count: passed.late,
        bytes: None,
        words: format!(
            "{} of {} are up to {} earlier than one ahead of them, by more places than are put in order; the later time counts",
            passed.late,
            count(packets, "packet"),
            span_of(passed.late_by)
        ),
        hint: "--sort sorts both captures first".into(),
    })
}
