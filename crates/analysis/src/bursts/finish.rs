//! The report of a port.

use crate::bursts::burst::Closed;
use crate::bursts::by_rate::ByRate;
use crate::bursts::laws::{judge, Speed};
use crate::bursts::no_burst_hint::frames_in_window;
use crate::bursts::port::{PortAnalyzer, State, Totals};
use crate::bursts::rate::Estimate;
use crate::bursts::unseen::holes;
use crate::{Burst, Detect, DetectReport, Histograms, PortReport, RateFrom, Steady};
use std::collections::BTreeMap;

impl PortAnalyzer {
    /// Speed of the port on the wire as far as known, its origin, and the estimate, where it is one; `jumps`: records that are missing.
    fn port_speed(&self, jumps: u64) -> (Option<u64>, RateFrom, Option<Estimate>) {
        let estimate = if self.settings.rate.is_none() { self.estimator.estimate(self.standing.holes) } else { None };
        let (rate, from) = match (self.settings.rate, estimate, self.estimator.lower_bound()) {
            (Some(rate), ..) if self.settings.rate_of_result => (Some(rate.bps()), RateFrom::Result),
            (Some(rate), ..) => (Some(rate.bps()), RateFrom::Given),
            // What the missing records brought was sent too.
            (None, Some(e), _) if jumps > 0 => (Some(e.middle as u64), RateFrom::LowerBound),
            (None, Some(e), _) => (Some(e.middle as u64), RateFrom::Estimated),
            (None, None, Some(bound)) => (Some(bound as u64), RateFrom::LowerBound),
            (None, None, None) => (None, RateFrom::Unknown),
        };
        (rate, from, estimate)
    }

    /// Speed by which laws are judged; none where it is only a bound.
    fn judging_speed(&self, rate: Option<u64>, from: RateFrom) -> Option<Speed> {
        let overhead = self.settings.overhead.0 as f64;
        match from {
            RateFrom::Given | RateFrom::Result | RateFrom::Estimated => {
                rate.map(|bps| Speed { wire: bps as f64, overhead, estimated: from == RateFrom::Estimated })
            }
            RateFrom::LowerBound | RateFrom::Unknown => None,
        }
    }

    /// Judges the law of a burst that has ended.
    fn judge(&self, closed: &mut Closed, speed: Option<Speed>, dropped: u64) {
        match closed.evidence.take() {
            Some(evidence) => judge(&mut closed.burst, &evidence, speed, self.settings.rate_of_result || dropped > 0),
            None => closed.burst.words = Some("not among the highest bursts, of which phases are sought".into()),
        }
    }

    /// Takes out the bursts that have ended and can no longer be taken back, in order of time.
    ///
    /// A stretch of steady load takes back bursts by rate that began with it: until that is settled, they stay.
    pub fn take_bursts(&mut self) -> Vec<Burst> {
        if self.kept.is_empty() {
            return Vec::new();
        }
        let pending: Vec<(u64, u64)> = self.by_rate.as_ref().map(|w| w.pending().collect()).unwrap_or_default();
        let (kept, taken): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.kept).into_iter().partition(|(key, _)| pending.contains(key));
        self.kept = kept;
        let (rate, from, _) = self.port_speed(self.totals.jumps);
        let speed = self.judging_speed(rate, from);
        let mut taken: Vec<Closed> = taken.into_values().collect();
        taken.sort_by_key(|c| c.burst.index);
        taken.iter_mut().for_each(|closed| self.judge(closed, speed, self.totals.dropped));
        taken.into_iter().map(|closed| closed.named(&self.lookup)).collect()
    }

    /// Ends a burst that is open, as nothing is known from here on: what comes next begins anew, and inside a burst if the queue is high.
    pub fn interrupt(&mut self) {
        self.end_of_trace();
        self.state = State::Outside;
        self.between.is_hole = true;
        self.begun = false;
        self.end = None;
        self.by_rate = ByRate::new(&self.settings);
    }

    /// Beginning of the burst that is open [ps], and its largest queue so far; none outside.
    pub fn open_burst(&self) -> Option<(u64, u64)> {
        (self.state != State::Outside).then_some((self.candidate.start, self.candidate.peak))
    }

    /// Number of flows that the port has seen, each of which takes memory.
    pub fn flows_seen(&self) -> usize {
        self.flows.seen()
    }

    /// Number of bursts that have ended, and time in them [ps].
    pub fn burst_totals(&self) -> (u64, u128) {
        (self.totals.bursts, self.totals.burst_ps)
    }

    /// Notes for the readers of the report: how the speed is known, what records lack, what is left out. `speed`: by which laws are judged.
    fn notes(
        &self,
        t: &Totals,
        (from, estimate): (RateFrom, Option<Estimate>),
        steady: Option<&Steady>,
        speed: Option<f64>,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |condition: bool, text: String| {
            if condition {
                notes.push(text);
            }
        };
        if let Some(e) = estimate {
            note(
                true,
                format!(
                    "the port's speed is estimated from {} busy windows: {:.4} Gb/s on the wire, middle half {:.4} to {:.4} Gb/s",
                    e.windows,
                    e.middle / 1e9,
                    e.low / 1e9,
                    e.high / 1e9
                ),
            );
        }
        note(
            from == RateFrom::LowerBound && estimate.is_some(),
            "records are missing: the port's speed is at least that; no law is judged by it".into(),
        );
        note(
            from == RateFrom::LowerBound && estimate.is_none(),
            "frames are unknown: the port's speed is at least the steepest fall of its queue; no law is judged by that".into(),
        );
        note(
            t.jumps > 0,
            format!(
                "{} times the queue grew by more than arrived: at least {} bytes have no record; they count as unattributed",
                t.jumps, t.missing
            ),
        );
        note(t.holes > 0, holes(t.hole_ps, t.holes));
        note(t.duplicates > 0, format!("{} records repeat the one before and were left out", t.duplicates));
        note(
            t.without_frame > 0,
            format!("{} of {} records have no frame size: their bytes are unattributed", t.without_frame, t.records),
        );
        note(
            t.without_flow > 0,
            format!("{} of {} records have no flow: their bytes are unattributed", t.without_flow, t.records),
        );
        let some = t.without_queue > 0 && t.without_queue < t.records;
        note(some, format!("{} of {} records have no queue", t.without_queue, t.records));
        note(
            self.by_rate_unset() && t.records > 0 && t.without_queue == t.records,
            "no record has a queue: bursts can be found by arrival rate only".into(),
        );
        note(
            self.flows.overflow > 0,
            format!(
                "{} packets of flows beyond the first {} are unattributed",
                self.flows.overflow,
                crate::bursts::flows::MAX_FLOWS
            ),
        );
        note(
            t.before_from > 0,
            format!("{} records before the time asked for: only who was there, and what stood", t.before_from),
        );
        if let Some(few) = frames_in_window(&self.settings, t.largest_frame) {
            note(true, few);
        }
        if let Some(steady) = steady.filter(|_| t.bursts > 0) {
            note(true, steady.words.clone());
        }
        if let Some(hint) = self.many(t, speed) {
            note(true, hint);
        }
        let left_out = t.bursts - self.kept.len() as u64;
        note(
            left_out > 0,
            format!("{left_out} of {} bursts are counted, but only the {} highest are listed", t.bursts, self.kept.len()),
        );
        let plain = self.kept.values().filter(|c| c.evidence.is_none()).count();
        note(
            plain > 0,
            format!(
                "phases and laws are sought of the {} highest bursts; {plain} more are listed without",
                self.kept.len() - plain
            ),
        );
        notes
    }

    /// Ends the analysis of the port; gives its report.
    pub fn finish(mut self) -> PortReport {
        self.end_of_trace();
        let t = std::mem::take(&mut self.totals);
        let (rate, from, estimate) = self.port_speed(t.jumps);
        let overhead = self.settings.overhead.0;
        let speed = self.judging_speed(rate, from);
        let steady = self.by_rate.as_ref().zip(self.settings.rate).and_then(|(w, rate)| w.steady_load(rate.bps() as f64, false));
        let notes = self.notes(&t, (from, estimate), steady.as_ref(), speed.as_ref().map(|speed| speed.wire));
        let left_out = t.bursts - self.kept.len() as u64;
        let mut closed: Vec<_> = std::mem::take(&mut self.kept).into_values().collect();
        closed.sort_by_key(|c| c.burst.index);
        closed.iter_mut().for_each(|c| self.judge(c, speed, t.dropped));
        PortReport {
            port: std::mem::take(&mut self.name),
            records: t.records,
            first_ps: (t.records > 0).then_some(t.first),
            last_ps: (t.records > 0).then(|| self.last_time()),
            rate_bps: rate,
            rate_from: from,
            rate_low_bps: estimate.map(|e| e.low as u64),
            rate_high_bps: estimate.map(|e| e.high as u64),
            overhead_bytes: overhead,
            detect: match self.settings.detect {
                Detect::Queue { .. } => {
                    DetectReport::Queue { above_bytes: self.above, until_bytes: self.until, words: self.settings.detect_words() }
                }
                Detect::Rate { share, .. } => DetectReport::Rate {
                    window_ps: self.settings.window().map_or(0, |(window, _)| window.ps()),
                    share,
                    words: self.settings.detect_words(),
                },
            },
            peak_bytes: t.peak.map(|p| p.0),
            peak_ps: t.peak.map(|p| p.1),
            dropped: Some(t.dropped),
            dropped_at_least: t.dropped_at_least,
            marked: Some(t.marked),
            jumps: t.jumps,
            missing_bytes: t.missing,
            duplicates: t.duplicates,
            bursts_found: t.bursts,
            nothing: if t.bursts == 0 { self.nothing(&t) } else { None },
            steady,
            bursts_left_out: left_out,
            burst_ps: u64::try_from(t.burst_ps).unwrap_or(u64::MAX),
            unknown_ps: t.hole_ps,
            histograms: Histograms {
                duration_ps: self.durations.report(),
                peak_bytes: self.peaks.report(),
                gap_ps: self.gaps.report(),
            },
            estimate: None,
            counted: None,
            notes,
            bursts: closed.into_iter().map(|c| c.named(&self.lookup)).collect(),
        }
    }
}
