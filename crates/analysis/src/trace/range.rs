//! Estimate of a queue over the range of the port's possible speed, and the file's own evidence on it.

use super::estimate::{Buffer, Lindley};
use crate::bursts::{Confirmed, EstimateRange, EstimateReport, Sure};
use crate::checks::{Finding, Level};
use crate::display::{count, rate as rate_of};
use crate::input::problem::Problem;
use crate::Record;
use fanin_units::{BitRate, Bytes};

/// Factor by which more than the port's speed may seem to be acknowledged: ends of stretches, and headers of other sizes.
const MORE: f64 = 1.05;
/// Drops that may have other explanations, as a share of those that the file can explain and as a number.
const SOME: (f64, u64) = (1.1, 5);
/// Drops that may have other explanations where no acknowledgment says what was still to come again: as a multiple of those that
/// the file can explain, and as a share of all packets.
const MANY: (f64, f64) = (2.0, 0.1);
/// Share of the segments that may have come again for nothing.
const NOTHING: f64 = 0.01;
/// Share of a port's packets that must be of TCP, with data, for their numbers to speak of its drops.
const MOSTLY: f64 = 0.8;

/// A port whose queue is calculated at its speed, and at the lowest and highest that it may have.
#[derive(Debug)]
pub struct Estimate {
    pub middle: Lindley,
    bounds: Option<(Lindley, Lindley)>,
    tolerance: f64,
    rate: BitRate,
}

impl Estimate {
    pub fn new(rate: BitRate, overhead: Bytes, buffer: Buffer, tolerance: f64) -> Self {
        let at = |factor: f64| BitRate((rate.bps() as f64 * factor).max(1.0) as u64);
        let bound = |factor: f64| Lindley::new(at(factor), overhead, buffer);
        let bounds = (tolerance > 0.0).then(|| (bound(1.0 - tolerance), bound(1.0 + tolerance)));
        Estimate { middle: Lindley::new(rate, overhead, buffer), bounds, tolerance, rate }
    }

    /// Takes an arrival as [`Lindley::take`] does, and returns the estimate in the middle of the range.
    #[inline]
    pub fn take(&mut self, record: &Record) -> Option<(Record, Option<u64>)> {
        if let Some((slow, fast)) = &mut self.bounds {
            slow.take(record);
            fast.take(record);
        }
        self.middle.take(record)
    }

    /// Report of the estimate, notes, a finding, and a problem if it is impossible. `confirmed`: what the file says of this port; `port`: its name.
    pub fn finish(
        &self,
        confirmed: Option<Confirmed>,
        port: &str,
    ) -> (EstimateReport, Vec<String>, Option<Finding>, Option<Problem>) {
        let (mut report, mut notes, problem) = self.middle.finish();
        let ends: Vec<EstimateReport> = self.bounds.iter().flat_map(|(slow, fast)| [slow.finish().0, fast.finish().0]).collect();
        let all = || ends.iter().chain([&report]);
        let between = |of: &dyn Fn(&EstimateReport) -> u64| (all().map(of).min().unwrap_or(0), all().map(of).max().unwrap_or(0));
        let (peaks, drops, waits) =
            (between(&|e| e.peak_bytes), between(&|e| e.dropped.unwrap_or(0)), between(&|e| e.longest_wait_ps));
        report.range = EstimateRange {
            peak_low_bytes: peaks.0,
            peak_high_bytes: peaks.1,
            dropped_low: drops.0,
            dropped_high: drops.1,
            longest_wait_low_ps: waits.0,
            longest_wait_high_ps: waits.1,
        };
        report.rate_tolerance = self.tolerance;
        report.confirmed = confirmed.filter(|c| c.data_packets > 0 || c.rate_bps.is_some());
        let (sure, words) = if report.used { self.judge(&report) } else { (Sure::Unchecked, String::new()) };
        report.sure = sure;
        if report.used {
            notes.insert(0, self.say(&report, &words));
        }
        let found = match sure {
            Sure::Confirmed => None,
            Sure::Unchecked => Some(("estimate_unchecked", Level::Doubt)),
            Sure::Doubted => Some(("estimate_doubted", Level::Doubt)),
            Sure::Refuted => Some(("estimate_refuted", Level::Wrong)),
        };
        let finding = found.filter(|_| report.used).map(|(code, level)| Finding {
            code,
            level,
            place: port.to_string(),
            count: report.confirmed.map_or(0, |c| c.again),
            bytes: None,
            words,
            hint: "check --rate, --buffer and --overhead, and that the capture was taken right before this port".into(),
        });
        if sure == Sure::Refuted {
            report.dropped = None;
        }
        (report, notes, finding, problem)
    }

    /// Certainty of the estimate, and why.
    fn judge(&self, report: &EstimateReport) -> (Sure, String) {
        let range = &report.range;
        let Some(c) = report.confirmed else {
            return (Sure::Unchecked, "nothing in the file confirms it: no segments of TCP, no acknowledgments".into());
        };
        let fastest = self.rate.bps() as f64 * (1.0 + self.tolerance);
        if let Some(rate) = c.rate_bps.filter(|rate| *rate > fastest * MORE) {
            let words = format!(
                "acknowledgments confirm that {} passed, more than a port of {} can send: the estimate is of another port",
                rate_of(rate),
                rate_of(self.rate.bps() as f64)
            );
            return (Sure::Refuted, words);
        }
        if (c.data_packets as f64) < MOSTLY * report.records as f64 {
            return (
                Sure::Unchecked,
                "nothing in the file confirms it: too little of it is data of TCP, which come again when dropped".into(),
            );
        }
        let explained = c.again + c.outstanding.unwrap_or(0);
        // Segments that may only have been overtaken were sent again at the most.
        let least = c.again - c.unclear;
        let said = match c.unclear {
            0 => format!("{} came again", count(c.again, "segment")),
            unclear => format!("{least} to {} came again ({unclear} may only have been overtaken)", count(c.again, "segment")),
        };
        let too_many = match c.outstanding {
            Some(_) => range.dropped_low as f64 > SOME.0 * explained as f64 + SOME.1 as f64,
            None => {
                let low = range.dropped_low as f64;
                low > MANY.0 * explained as f64 + SOME.1 as f64 && low > MANY.1 * report.records as f64
            }
        };
        if too_many {
            let words = format!(
                "at {} the port would have dropped {} to {} packets, and only {said} in the file: TCP sends again what was dropped",
                rate_of(self.rate.bps() as f64),
                range.dropped_low,
                range.dropped_high
            );
            return (Sure::Refuted, words);
        }
        if least as f64 > 2.0 * range.dropped_high as f64 + 10.0 {
            let words = format!(
                "{said}, and the estimate drops {}: losses elsewhere, a slower port, a smaller buffer, or segments sent again for nothing",
                range.dropped_high
            );
            return (Sure::Doubted, words);
        }
        if range.dropped_high as f64 > SOME.0 * (explained - c.unclear) as f64 + SOME.1 as f64 {
            return (Sure::Unchecked, format!("{said}, so fewer may have been dropped than it says"));
        }
        // Where nothing was dropped by the estimate, a segment in a hundred may have come again for nothing.
        let none = range.dropped_high == 0 && least as f64 > NOTHING * c.data_packets as f64;
        if none || c.again as f64 > SOME.0 * range.dropped_high as f64 + SOME.1 as f64 {
            return (
                Sure::Unchecked,
                format!("{said}, so more may have been dropped than it says, or segments were sent again for nothing"),
            );
        }
        let acked = c.rate_bps.map_or(String::new(), |rate| format!(", and acknowledgments confirm {}", rate_of(rate)));
        // A port of another speed with another buffer may drop as many: what came again says nothing of the queue's length.
        let given = if range.dropped_high > 0 { "; the largest queue follows from --rate and --buffer as given" } else { "" };
        (Sure::Confirmed, format!("the file agrees with the number of drops: {said}{acked}{given}"))
    }

    /// Answer in one sentence: the middle, the range, and the certainty.
    fn say(&self, report: &EstimateReport, why: &str) -> String {
        let range = &report.range;
        if report.sure == Sure::Refuted {
            return format!("no drops are estimated: {why}");
        }
        let between = if self.bounds.is_none() {
            String::new()
        } else {
            let share = 100.0 * self.tolerance;
            let (low, high) = (Bytes(range.peak_low_bytes), Bytes(range.peak_high_bytes));
            format!(
                " ({} to {} drops and {low} to {high} if the port's speed is off by {share} %)",
                range.dropped_low, range.dropped_high
            )
        };
        let middle = report.dropped.unwrap_or(0);
        format!("estimated: {} and a largest queue of {}{between}; {why}", count(middle, "drop"), Bytes(report.peak_bytes))
    }
}

/// Evidence of several files of one port.
pub fn joined(all: &[(String, Confirmed)], port: &str) -> Option<Confirmed> {
    let mut of = all.iter().filter(|(name, _)| name == port).map(|(_, confirmed)| *confirmed);
    let first = of.next()?;
    Some(of.fold(first, |a, b| Confirmed {
        rate_bps: a.rate_bps.into_iter().chain(b.rate_bps).reduce(f64::max),
        again: a.again + b.again,
        unclear: a.unclear + b.unclear,
        outstanding: a.outstanding.zip(b.outstanding).map(|(a, b)| a + b).or(a.outstanding).or(b.outstanding),
        data_packets: a.data_packets + b.data_packets,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NO_FLOW, NO_QUEUE};
    use fanin_units::Time;

    /// 1000 frames of 1000 B at twice the speed of 1 Gb/s, into a buffer of 100 KB.
    fn overloaded(confirmed: Option<Confirmed>, tolerance: f64) -> (EstimateReport, Vec<String>, Option<Finding>) {
        let mut estimate = Estimate::new(BitRate::from_gbps(1), Bytes(0), Buffer::Bytes(100_000), tolerance);
        for i in 0..1_000 {
            let time = Time::from_ps(i * 4_000_000);
            estimate.take(&Record { time, queue: NO_QUEUE, frame: 1000, flow: NO_FLOW, flags: 0 });
        }
        let (report, notes, finding, problem) = estimate.finish(confirmed, "p");
        assert!(problem.is_none());
        (report, notes, finding)
    }

    fn confirmed(rate_mbps: Option<f64>, again: u64, outstanding: Option<u64>) -> Option<Confirmed> {
        Some(Confirmed { rate_bps: rate_mbps.map(|mbps| mbps * 1e6), again, unclear: 0, outstanding, data_packets: 1_000 })
    }

    #[test]
    fn the_answer_is_a_range_and_says_how_sure_it_is() {
        let (report, notes, finding) = overloaded(None, 0.01);
        let (low, high) = (report.range.dropped_low, report.range.dropped_high);
        assert!(low < high && (low..=high).contains(&report.dropped.unwrap()) && high - low <= 12, "{report:?}");
        assert_eq!((report.sure, finding.map(|f| f.code)), (Sure::Unchecked, Some("estimate_unchecked")));
        assert!(
            notes[0].contains("if the port's speed is off by 1 %") && notes[0].contains("nothing in the file confirms it"),
            "{notes:?}"
        );
        let (exact, notes, _) = overloaded(None, 0.0);
        assert_eq!((exact.range.dropped_low, exact.range.dropped_high), (exact.dropped.unwrap(), exact.dropped.unwrap()));
        assert!(!notes[0].contains("off by"), "{notes:?}");
    }

    #[test]
    fn what_the_file_says_confirms_doubts_or_refutes_it() {
        let drops = overloaded(None, 0.01).0.dropped.unwrap();
        let of = |c: Option<Confirmed>| {
            let (report, notes, finding) = overloaded(c, 0.01);
            (report.sure, report.dropped, finding.map(|f| (f.code, f.level)), notes)
        };
        let (sure, dropped, finding, notes) = of(confirmed(Some(980.0), drops + 3, Some(2)));
        assert_eq!((sure, dropped, finding), (Sure::Confirmed, Some(drops), None), "{notes:?}");
        assert!(
            notes[0].contains("the file agrees with the number of drops: ")
                && notes[0].ends_with("; the largest queue follows from --rate and --buffer as given"),
            "{notes:?}"
        );
        for c in [confirmed(Some(1_200.0), drops, Some(0)), confirmed(Some(900.0), 10, Some(20)), confirmed(None, 10, None)] {
            let (sure, dropped, finding, notes) = of(c);
            assert_eq!((sure, dropped, finding), (Sure::Refuted, None, Some(("estimate_refuted", Level::Wrong))), "{c:?}");
            assert!(notes[0].starts_with("no drops are estimated"), "{notes:?}");
        }
        let (sure, dropped, finding, _) = of(confirmed(Some(980.0), 3 * drops, Some(0)));
        assert_eq!((sure, dropped, finding), (Sure::Doubted, Some(drops), Some(("estimate_doubted", Level::Doubt))));
        // Segments that may only have been overtaken confirm nothing, refute nothing and raise no doubt.
        let unclear = |again, unclear| Some(Confirmed { unclear, ..confirmed(Some(980.0), again, Some(0)).unwrap() });
        for (c, sure) in [
            (unclear(drops + 3, 3), Sure::Confirmed),
            (unclear(drops + 3, drops), Sure::Unchecked),
            (unclear(3 * drops, 2 * drops), Sure::Unchecked),
            (unclear(3 * drops, 3), Sure::Doubted),
            (unclear(10, 10), Sure::Refuted),
        ] {
            let (found, .., notes) = of(c);
            assert_eq!(found, sure, "{c:?} {notes:?}");
        }
        let (.., notes) = of(unclear(drops + 3, 3));
        assert!(
            notes[0].contains(&format!("{drops} to {} segments came again (3 may only have been overtaken)", drops + 3)),
            "{notes:?}"
        );
        // Nothing was dropped, and four of a thousand or of fifty came again.
        for (again, of, sure) in [(4, 1_000, Sure::Confirmed), (4, 50, Sure::Unchecked)] {
            let mut idle = Estimate::new(BitRate::from_gbps(1), Bytes(0), Buffer::Bytes(100_000), 0.01);
            for i in 0..of {
                let time = Time::from_ps(i * 16_000_000);
                idle.take(&Record { time, queue: NO_QUEUE, frame: 1000, flow: NO_FLOW, flags: 0 });
            }
            let few = Confirmed { data_packets: of, ..confirmed(None, again, Some(0)).unwrap() };
            let (report, notes, ..) = idle.finish(Some(few), "p");
            assert_eq!((report.dropped, report.sure), (Some(0), sure), "{notes:?}");
        }
        // Mostly no TCP.
        let few = Confirmed { data_packets: 100, ..confirmed(None, 3, Some(0)).unwrap() };
        assert_eq!(of(Some(few)).0, Sure::Unchecked);
    }
}
