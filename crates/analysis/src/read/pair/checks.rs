//! What in two captures of one port cannot be as they were given: sides that are swapped, packets that were lost behind the port,
//! times out of order.

use super::align::Alignment;
use super::reader::Left;
use super::report::Sums;
use super::side::Passed;
use crate::read::frame_checks::{lost, GRAVE};
use crate::read::plausibility::{Finding, Level};
use crate::read::record_checks::coarse;
use crate::say::{count, rate as rate_of, span};
use fanin_units::{BitRate, Span};

/// Share of packets out of order from which a capture is not in order at all.
const SHUFFLED: f64 = 0.01;
/// How much faster packets must come out than they went in for the sides to be swapped.
const FASTER: f64 = 1.5;
/// Clocks that are nearer to one another than this are one clock [ps].
const ONE_CLOCK: i128 = 1_000_000_000_000;
/// Share of packets that a device on the way may change against the rules.
const AGAINST: f64 = 0.01;
/// Gaps that a share is judged by, standard errors that it must be from none, and the least that matters.
const GAPS: f64 = 8.0;
const SURE: f64 = 4.0;
const MATTERS: f64 = 0.05;

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

    /// Variance of what a gap has room for beyond its packet [bytes^2], at so many bytes in a picosecond.
    fn variance(&self, speed: f64) -> f64 {
        ((speed * speed * self.tt - 2.0 * speed * self.tb + self.bb) / self.count.max(1.0)).max(0.0)
    }
}

/// What the second pass notices.
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
    /// Packets with more hops left behind than before, and that lost their mark.
    pub risen: u64,
    pub unmarked: u64,
}

impl Checks {
    /// A packet of that number left, in order; `missing`: bytes on the wire and number of the packets between it and the last to leave that
    /// were not seen behind.
    pub fn leaves(&mut self, number: u64, left: Left, overhead: u64, missing: (u64, u64)) {
        let Some((_, last)) = self.last.replace((number, left)).filter(|(last, _)| *last < number) else { return };
        if left.arrived > last.left || left.left <= last.left {
            return;
        }
        let (time, bytes) = ((left.left - last.left) as f64, (u64::from(last.bytes) + overhead) as f64);
        if missing.1 == 0 {
            self.whole.add(time, bytes);
        } else {
            self.holed.add(time, bytes);
            self.missing = (self.missing.0 + missing.0 as f64, self.missing.1 + missing.1 as f64);
        }
    }

    /// The packet before is not that which arrived before.
    pub fn interrupted(&mut self) {
        self.last = None;
    }

    /// How many of the packets that never came out the port has sent, nearly.
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

    fn lost_behind(&self, dropped: u64) -> Option<Finding> {
        let sent = libm::round(self.sent()) as u64;
        let some = (sent + self.at_empty).min(dropped);
        if some as f64 <= dropped as f64 * MATTERS {
            return None;
        }
        let mut why = Vec::new();
        if sent > 0 {
            why.push(format!("the port stood still for as long as {sent} of them take on the wire, so it has sent them"));
        }
        if self.at_empty > 0 {
            why.push(format!("{} found nothing waiting, where no queue is full", self.at_empty));
        }
        Some(Finding {
            code: "lost_behind",
            level: if 2 * some > dropped { Level::Wrong } else { Level::Doubt },
            place: String::new(),
            count: some,
            bytes: None,
            words: format!("{} never came out, and {}", count(dropped, "packet"), why.join("; ")),
            hint: "they were lost behind the port or by the second capture, and are no drops of this port: tcpdump -B 65536 -s 128, \
                   and capture right behind it"
                .into(),
        })
    }

    fn swapped(&self, sums: &Sums, alignment: &Alignment) -> Option<Finding> {
        let (level, number, words) = if self.risen as f64 > sums.matched as f64 * AGAINST {
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
            let by = || span(u64::try_from(early).unwrap_or(u64::MAX));
            if early > 0 {
                let level = if early < ONE_CLOCK { Level::Wrong } else { Level::Doubt };
                (level, sums.matched, format!("{faster}, and each was captured behind it at least {} before it went in", by()))
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

    /// What was found; `names`: the files before and behind.
    pub fn findings(
        &self,
        names: [&[String]; 2],
        (sums, alignment): (&Sums, &Alignment),
        passed: [&Passed; 2],
        findings: &mut Vec<Finding>,
    ) {
        let [before, behind] = names.map(|files| files.join(", "));
        let both = format!("{before} and {behind}");
        let of_both = [self.swapped(sums, alignment), self.lost_behind(sums.dropped)];
        findings.extend(of_both.into_iter().flatten().map(|finding| Finding { place: both.clone(), ..finding }));
        for (place, passed) in [before, behind].iter().zip(passed) {
            let packets = passed.checks.frames();
            passed.checks.findings(place, passed.snap, findings);
            findings.extend(lost(place, passed.lost, packets));
            findings.extend(disorder(place, passed, packets));
            let rate = BitRate(alignment.rate as u64);
            let tick = passed.grain.step().map(Span::from_ps).filter(|_| rate.bps() > 0);
            findings.extend(tick.and_then(|tick| coarse(tick, rate, place)));
        }
    }
}

/// Packets that were captured later than they were stamped, by more places than are put in order.
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
            span(u64::try_from(passed.late_by).unwrap_or(u64::MAX))
        ),
        hint: "--sort sorts both captures in memory first".into(),
    })
}
