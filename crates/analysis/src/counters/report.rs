//! The report of a port of which counters are known.

use super::interval::{Interval, Reading, State};
use super::port::{Cases, CounterBurst, CounterPort};
use crate::bursts::Histogram;
use crate::checks::{Finding, Level};
use crate::display::{count, percent, rate as rate_of, size, span};
use crate::{
    Burst, CountedBurst, CountedPort, Culprit, Detect, DetectReport, Fates, FlowLookup, Histograms, Nothing, PortReport,
    RateFrom, Settings, Steady, UnknownTime,
};
use fanin_units::{BitRate, Bytes, BPS};
use std::collections::BTreeMap;

/// Flows of an interval, or of a burst, that are told apart, at most.
const MOST_FLOWS: usize = 1 << 12;
/// Resets from which, as a fifth of all intervals, several sources are mixed.
const MIXED: u64 = 8;
/// Interval from which a burst that is shorter leaves no sign in a mean load.
const LONG: u64 = 10_000_000_000;

/// Bytes by flow.
#[derive(Clone, Debug, Default)]
struct Talkers {
    bytes: BTreeMap<u32, u64>,
    others: u64,
}

impl Talkers {
    fn add(&mut self, flow: u32, bytes: u64) {
        let room = self.bytes.len() < MOST_FLOWS;
        match self.bytes.get_mut(&flow) {
            Some(sum) => *sum = sum.saturating_add(bytes),
            None if room => _ = self.bytes.insert(flow, bytes),
            None => self.others = self.others.saturating_add(bytes),
        }
    }

    /// Moves all into another.
    fn move_to(&mut self, other: &mut Talkers) {
        std::mem::take(&mut self.bytes).into_iter().for_each(|(flow, bytes)| other.add(flow, bytes));
        other.others = other.others.saturating_add(std::mem::take(&mut self.others));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.others = 0;
    }
}

/// Collects the bursts of one port, and what its counters contradict.
pub struct CounterReport {
    port: CounterPort,
    settings: Settings,
    name: String,
    lookup: FlowLookup,
    /// The listed bursts by height and age.
    kept: BTreeMap<(u64, std::cmp::Reverse<u64>), Burst>,
    found: u64,
    burst_ps: u64,
    previous_end: Option<u64>,
    durations: Histogram,
    peaks: Histogram,
    gaps: Histogram,
    /// Flows since the last interval, and those of the open burst.
    lately: Talkers,
    talkers: Talkers,
    sampled: bool,
    /// Speed that the switch tells, and the last other one that it told.
    told: Option<BitRate>,
    changed: Option<BitRate>,
}

impl CounterReport {
    /// A port without readings yet. `buffer`: bytes that can wait at it, where that is known.
    pub fn new(settings: &Settings, buffer: Option<Bytes>, name: &str, lookup: FlowLookup) -> Self {
        CounterReport {
            port: CounterPort::new(settings, buffer),
            settings: settings.clone(),
            name: name.to_string(),
            lookup,
            kept: BTreeMap::new(),
            found: 0,
            burst_ps: 0,
            previous_end: None,
            durations: Histogram::new(),
            peaks: Histogram::new(),
            gaps: Histogram::new(),
            lately: Talkers::default(),
            talkers: Talkers::default(),
            sampled: false,
            told: None,
            changed: None,
        }
    }

    /// Takes what a source tells about the port.
    pub fn take(&mut self, reading: &Reading) {
        match reading {
            Reading::Interval(interval) => self.push(interval),
            Reading::Flow { flow, bytes, .. } => {
                self.sampled = true;
                self.lately.add(*flow, *bytes);
            }
            Reading::Speed(rate) => {
                if self.told.is_some_and(|told| told != *rate) {
                    self.changed = Some(*rate);
                }
                self.told.get_or_insert(*rate);
                // What the user says of the port goes before what the switch does.
                if self.settings.rate.is_none() || self.settings.rate_of_result {
                    self.port.set_rate(*rate);
                }
            }
        }
    }

    fn push(&mut self, interval: &Interval) {
        let mut ended = [None, None, None];
        let mut next = 0;
        self.port.push(interval, &mut |burst| {
            if let Some(place) = ended.get_mut(next) {
                *place = Some(burst);
            }
            next += 1;
        });
        debug_assert!(next <= ended.len(), "an interval ends the burst before it, and what was held back");
        for burst in ended.into_iter().flatten() {
            self.close(&burst);
        }
        let goes_on = self.port.open().is_some_and(|burst| burst.end == interval.end);
        if goes_on {
            self.lately.move_to(&mut self.talkers);
        } else if interval.end > interval.start {
            self.lately.clear();
        }
    }

    fn close(&mut self, burst: &CounterBurst) {
        let (start, end) = (burst.start.ps(), burst.end.ps());
        let gap = self.previous_end.map(|previous| start.saturating_sub(previous));
        let index = self.found;
        self.found += 1;
        self.previous_end = Some(end);
        self.burst_ps += end - start;
        self.durations.add(end - start);
        burst.queue.into_iter().for_each(|queue| self.peaks.add(queue));
        gap.into_iter().for_each(|gap| self.gaps.add(gap));
        let talkers = std::mem::take(&mut self.talkers);
        let (indirect, unattributed) = self.culprits(&talkers);
        let shown = [(burst.shown.rate, "rate"), (burst.shown.queue, "queue"), (burst.shown.drops, "drops")];
        let report = Burst {
            index,
            start_ps: start,
            end_ps: end,
            duration_ps: end - start,
            peak_ps: burst.peak_time.ps().clamp(start, end),
            peak_bytes: burst.queue,
            start_bytes: None,
            records: u64::from(burst.intervals),
            arrived_bytes: burst.arrived,
            dropped_packets: burst.dropped,
            dropped_at_least: false,
            dropped_bytes: None,
            marked_packets: burst.marked,
            busiest_bps: burst.busiest_bps,
            rise_bps: None,
            fall_bps: None,
            gap_ps: gap,
            open: burst.open,
            cut: burst.cut,
            flows: talkers.bytes.len() as u64,
            notifications: None,
            direct: Vec::new(),
            direct_unattributed_bytes: 0,
            indirect,
            indirect_unattributed_bytes: unattributed,
            phases: Vec::new(),
            rounds: Vec::new(),
            law: None,
            words: Some(words(burst)),
            counted: Some(CountedBurst {
                within_ps: burst.within,
                peak_at_least: burst.at_least,
                sent_bytes: burst.sent,
                shown_by: shown.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect(),
            }),
        };
        let height = burst.queue.unwrap_or(burst.busiest_bps.unwrap_or(0.0) as u64);
        self.kept.insert((height, std::cmp::Reverse(index)), report);
        if self.kept.len() > self.settings.max_bursts {
            self.kept.pop_first();
        }
    }

    fn culprits(&self, talkers: &Talkers) -> (Vec<Culprit>, u64) {
        let all = talkers.bytes.values().fold(talkers.others, |all, bytes| all.saturating_add(*bytes));
        let mut list: Vec<(u32, u64)> = talkers.bytes.iter().map(|(flow, bytes)| (*flow, *bytes)).collect();
        list.sort_by_key(|(flow, bytes)| (std::cmp::Reverse(*bytes), *flow));
        list.truncate(self.settings.top);
        let culprit = |(flow, bytes): (u32, u64)| {
            let name = (self.lookup)(flow).name;
            let name = if name.is_empty() { flow.to_string() } else { name.to_string() };
            Culprit { flow, name, bytes, share: bytes as f64 / all.max(1) as f64 }
        };
        (list.into_iter().map(culprit).collect(), talkers.others)
    }

    /// Takes out the bursts that have ended, in order of time.
    pub fn take_bursts(&mut self) -> Vec<Burst> {
        let mut bursts: Vec<Burst> = std::mem::take(&mut self.kept).into_values().collect();
        bursts.sort_by_key(|burst| burst.index);
        bursts
    }

    /// Ends a burst that is open, as nothing is known from here on.
    pub fn interrupt(&mut self) {
        let mut ended = Vec::new();
        self.port.interrupt(&mut |burst| ended.push(burst));
        ended.iter().for_each(|burst| self.close(burst));
    }

    /// Beginning of the burst that is open [ps], and its largest queue so far; none outside.
    pub fn open_burst(&self) -> Option<(u64, Option<u64>)> {
        self.port.open().map(|burst| (burst.start.ps(), burst.queue))
    }

    /// Number of bursts that have ended, and time in them [ps].
    pub fn burst_totals(&self) -> (u64, u64) {
        (self.found, self.burst_ps)
    }

    /// Time that is unknown [ps] by the reason, where there is any.
    pub fn unknown_time(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = State::UNKNOWN.into_iter().zip(self.port.unknown_time());
        all.filter(|(_, (_, intervals))| *intervals > 0).map(|(state, (ps, _))| (state.name(), ps))
    }

    /// Intervals that contradict something, and queues that contradict the buffer or a watermark.
    #[inline]
    pub fn doubted(&self) -> (u64, u64) {
        let c = &self.port.counted;
        (self.port.unknown_of(State::Contradicting).1, c.over_buffer.count + c.over_watermark.count)
    }

    /// True if counts fall so often that several sources are mixed under one name: what was counted is of none of them.
    pub fn is_mixed(&self) -> bool {
        are_mixed(self.port.unknown_of(State::Reset).1, self.port.counted.intervals)
    }

    /// True once anything is known of the port's time.
    pub fn is_known(&self) -> bool {
        self.port.counted.known > 0 || self.port.counted.peak.is_some()
    }

    /// Time that is unknown because looks are missing [ps].
    #[inline]
    pub fn gap_ps(&self) -> u64 {
        self.port.unknown_of(State::Gap).0
    }

    /// Ends the port's time; gives its report, and what its counters contradict.
    pub fn finish(mut self) -> (PortReport, Vec<Finding>) {
        let mut last = None;
        self.port.finish(&mut |burst| last = Some(burst));
        last.iter().for_each(|burst| self.close(burst));
        self.port.counted.dropped_at_least |= self.port.lacks_drops();
        let (findings, mixed) = (self.findings(), self.is_mixed());
        let c = self.port.counted;
        let unknown: Vec<UnknownTime> = State::UNKNOWN
            .into_iter()
            .zip(c.unknown)
            .filter(|(_, (_, intervals))| *intervals > 0)
            .map(|(state, (ps, intervals))| UnknownTime { state: state.name(), intervals, ps })
            .collect();
        let steady = (c.steady.0 > 0).then(|| {
            let share = c.steady.1 / c.steady.0 as f64;
            let speed = self.port.rate().map_or(0.0, |rate| rate.bps() as f64);
            let words = format!(
                "the load is steady, {} of {} for {}: that is no burst, and one on top of it needs more than {}",
                percent(share),
                rate_of(speed),
                span(c.steady.0),
                percent(f64::midpoint(share, 1.0))
            );
            Steady { ps: c.steady.0, share, words }
        });
        let left_out = self.found - self.kept.len() as u64;
        let mut notes = self.notes(&unknown, left_out);
        notes.extend(steady.as_ref().filter(|_| self.found > 0).map(|steady| steady.words.clone()));
        let from = match (self.settings.rate, self.port.rate()) {
            (_, None) => RateFrom::Unknown,
            (Some(given), Some(rate)) if given == rate && !self.settings.rate_of_result => RateFrom::Given,
            _ => RateFrom::Result,
        };
        let unknown_ps: u64 = unknown.iter().map(|unknown| unknown.ps).sum();
        // A lower bound of zero says nothing where other time is unknown.
        let peak = c.peak.filter(|(peak, _)| *peak > 0 || !c.peak_at_least || unknown_ps == 0);
        let nothing = if self.found == 0 { self.nothing(&unknown, if c.known > 0 { c.peak } else { peak }) } else { None };
        let mut bursts: Vec<Burst> = std::mem::take(&mut self.kept).into_values().collect();
        bursts.sort_by_key(|burst| burst.index);
        let mut report = PortReport {
            records: c.intervals,
            first_ps: c.first.map(|first| first.ps()),
            last_ps: c.first.map(|_| c.last.ps()),
            rate_bps: self.port.rate().map(|rate| rate.bps()),
            rate_from: from,
            rate_low_bps: None,
            rate_high_bps: None,
            overhead_bytes: self.settings.overhead.0,
            detect: self.detect(),
            peak_bytes: peak.map(|(peak, _)| peak),
            peak_ps: peak.map(|(_, time)| time),
            dropped: c.dropped,
            dropped_at_least: c.dropped_at_least,
            marked: c.marked.filter(|_| !mixed),
            jumps: 0,
            missing_bytes: 0,
            duplicates: 0,
            bursts_found: self.found,
            nothing,
            steady,
            bursts_left_out: left_out,
            burst_ps: self.burst_ps,
            unknown_ps,
            histograms: Histograms {
                duration_ps: self.durations.report(),
                peak_bytes: self.peaks.report(),
                gap_ps: self.gaps.report(),
            },
            estimate: None,
            counted: Some(CountedPort {
                known_ps: c.known,
                interval_ps: c.shortest,
                peak_at_least: c.peak_at_least,
                mixed,
                unknown,
            }),
            notes,
            bursts,
            port: self.name,
        };
        if mixed {
            report.telling(Fates { drops: false, marks: false });
        }
        (report, findings)
    }

    fn detect(&self) -> DetectReport {
        match self.settings.detect {
            Detect::Rate { share, .. } => {
                let speed = self.port.rate().map_or(0.0, |rate| rate.bps() as f64);
                let or = if self.port.counted.dropped.is_some() { ", or with drops" } else { "" };
                let words = format!("an interval with more than {} of {}{or}", percent(share), rate_of(speed));
                DetectReport::Rate { window_ps: self.port.counted.shortest, share, words }
            }
            Detect::Queue { .. } => {
                let (above, until) = self.settings.thresholds();
                let or = if self.port.counted.dropped.is_some() { "; or drops" } else { "" };
                let words = format!("{}{or}", self.settings.detect_words());
                DetectReport::Queue { above_bytes: above.0, until_bytes: until.0, words }
            }
        }
    }

    fn notes(&self, unknown: &[UnknownTime], left_out: u64) -> Vec<String> {
        let c = &self.port.counted;
        let mut notes = Vec::new();
        if c.intervals > 0 {
            let what = if c.peak.is_none() {
                "of the queue nothing is known"
            } else if c.peak_at_least {
                "queues are lower bounds: what a queue was between two looks is unknown"
            } else {
                "of a queue only the largest length in each interval is known"
            };
            notes.push(if c.shortest == 0 {
                format!("records are looks at a queue: what it was between two is unknown; {what}")
            } else {
                format!(
                    "records are intervals of counters, the shortest of {}: a burst lies within them; {what}",
                    span(c.shortest)
                )
            });
        }
        if c.shortest >= LONG && matches!(self.settings.detect, Detect::Rate { .. }) {
            notes.push(format!(
                "intervals of {} show load, not microbursts: a port may be full for {} in each, and none of them be a burst here",
                span(c.shortest),
                span(c.shortest / 2)
            ));
        }
        let all: u64 = unknown.iter().map(|unknown| unknown.ps).sum();
        if !unknown.is_empty() {
            let parts: Vec<String> =
                unknown.iter().map(|u| format!("{} {} ({})", u.state, span(u.ps), count(u.intervals, "interval"))).collect();
            notes.push(format!(
                "{} of {} are unknown, neither bursts nor zeros: {}",
                span(all),
                span(all.saturating_add(c.known).max(c.first.map_or(0, |first| c.last.ps().saturating_sub(first.ps())))),
                parts.join(", ")
            ));
        }
        if self.sampled {
            notes.push("flows are known from samples or flow records: culprits are shares of those, not of all packets".into());
        }
        if let Some(changed) = self.changed {
            let first = self.told.map_or(0.0, |told| told.bps() as f64);
            notes.push(format!("the port's speed changed from {} to {}", rate_of(first), rate_of(changed.bps() as f64)));
        }
        if left_out > 0 {
            let kept = self.kept.len();
            notes.push(format!("{left_out} of {} bursts are counted, but only the {kept} highest are listed", self.found));
        }
        notes
    }

    fn nothing(&self, unknown: &[UnknownTime], peak: Option<(u64, u64)>) -> Option<Nothing> {
        let c = &self.port.counted;
        let mut nothing = Nothing {
            at_ps: 0,
            queue_bytes: None,
            window_bytes: None,
            share: None,
            option: None,
            value: None,
            words: String::new(),
        };
        if let Some(dropped) = c.dropped.filter(|dropped| *dropped > 0 && !self.is_mixed()) {
            let states: Vec<&str> = unknown.iter().map(|unknown| unknown.state).collect();
            let least = if c.dropped_at_least { "at least " } else { "" };
            let words = format!(
                "whether there was a burst is unknown: {least}{} dropped, at times that are unknown ({})",
                match dropped {
                    1 => "1 packet was".to_string(),
                    many => format!("{many} packets were"),
                },
                states.join(", ")
            );
            return Some(Nothing { words, ..nothing });
        }
        if let (Detect::Rate { share, .. }, Some((load, at, bytes))) = (self.settings.detect, c.busiest) {
            let speed = self.port.rate().map_or(0.0, |rate| rate.bps() as f64);
            let words = format!(
                "no burst: the busiest interval (from {} on) had {}, {} of {}, and a burst needs more than {}",
                span(at),
                size(bytes as f64),
                percent(f64::from(load)),
                rate_of(speed),
                percent(share)
            );
            nothing = Nothing { at_ps: at, window_bytes: Some(bytes), share: Some(f64::from(load)), words, ..nothing };
            // A little less than it, in two digits.
            let value = f64::from((load * 95.0) as u32) / 100.0;
            if value > 0.0 && self.port.level().is_none() {
                nothing.words.push_str(&format!("; --share {value} shows it"));
                (nothing.option, nothing.value) = (Some("share"), Some(value.to_string()));
            }
            return Some(nothing);
        }
        let Some((peak, at)) = peak else {
            let states: Vec<&str> = unknown.iter().map(|unknown| unknown.state).collect();
            let words = format!("whether there was a burst is unknown: all of its time is ({})", states.join(", "));
            return (!unknown.is_empty()).then_some(Nothing { words, ..nothing });
        };
        let (above, _) = self.settings.thresholds();
        let least = if c.peak_at_least { "at least " } else { "" };
        let words = format!(
            "no burst: the largest queue was {least}{} (at {}), and a burst needs more than {}",
            size(peak as f64),
            span(at),
            size(above.0 as f64)
        );
        Some(Nothing { at_ps: at, queue_bytes: Some(peak), words, ..nothing })
    }

    /// Contradictions of the counters up to now.
    pub fn findings(&self) -> Vec<Finding> {
        let c = &self.port.counted;
        let mut found = Vec::new();
        let bps = |cases: &Cases| rate_of(cases.value as f64 * BPS / cases.length.max(1) as f64);
        let speed = self.port.rate().map_or(0.0, |rate| rate.bps() as f64);
        let mut say = |code, level, cases: &Cases, bytes, words: String, hint: &str| {
            if cases.count > 0 {
                let (place, hint) = (self.name.clone(), hint.to_string());
                found.push(Finding { code, level, place, count: cases.count, bytes, words, hint });
            }
        };
        let several = |cases: &Cases| count(cases.count, "interval");
        say(
            "counters_above_line",
            Level::Doubt,
            &c.over_line,
            Some(c.over_line.value),
            format!(
                "{} above what the line carries: {} within {} at {}, {} on a port of {}",
                several(&c.over_line),
                size(c.over_line.value as f64),
                span(c.over_line.length),
                span(c.over_line.at),
                bps(&c.over_line),
                rate_of(speed)
            ),
            "they count as unknown: the speed (--rate), the unit of the counter or the times of the looks are wrong",
        );
        say(
            "queue_above_buffer",
            Level::Doubt,
            &c.over_buffer,
            Some(c.over_buffer.value),
            format!(
                "{} with a queue longer than the buffer: {} at {}, in {}",
                several(&c.over_buffer),
                size(c.over_buffer.value as f64),
                span(c.over_buffer.at),
                size(c.over_buffer.limit as f64)
            ),
            "they count as unknown: the unit of the queue (cells, segments, packets) or the buffer (--buffer) is wrong",
        );
        say(
            "queue_above_watermark",
            Level::Doubt,
            &c.over_watermark,
            Some(c.over_watermark.value),
            format!(
                "{} with a queue longer than the largest of their time: {} at {}",
                several(&c.over_watermark),
                size(c.over_watermark.value as f64),
                span(c.over_watermark.at)
            ),
            "they count as unknown: the watermark may be of another queue, or cleared by someone else who reads it",
        );
        say(
            "drops_without_queue",
            Level::Doubt,
            &c.without_queue,
            None,
            format!(
                "{} with drops and without a queue: {} at {}",
                several(&c.without_queue),
                count(c.without_queue.value, "packet"),
                span(c.without_queue.at)
            ),
            "they count as unknown: a filter, a policer or errors drop without a queue, and a watermark may be of another queue",
        );
        say(
            "stale_counters",
            Level::Doubt,
            &c.stale,
            None,
            format!(
                "counters stood still and then jumped by more than the line carries in {}: {}, for {} at most",
                span(c.stale.length),
                count(c.stale.count, "time"),
                span(c.stale.value)
            ),
            "the switch renews its counters less often than it is asked, and what they show is a mean over that time; or the speed (--rate) or the unit of the counter is wrong",
        );
        let (narrow, first) = self.port.narrow();
        say(
            "narrow_counter",
            Level::Doubt,
            &Cases { count: narrow, ..Cases::default() },
            None,
            format!(
                "{} a count of 64 bits fell by nearly 2^32, as one of 32 bits does that wraps: first at {}",
                count(narrow, "time"),
                span(first)
            ),
            "what was counted there is unknown: name the width that it has (--columns bytes=COLUMN:total(32)); a switch may fill 32 bits under a name for 64",
        );
        let resets = if self.is_mixed() { self.port.unknown_of(State::Reset).1 } else { 0 };
        let (twice, (overlaps, others)) = self.port.mixed();
        let parts = [
            (resets, falling(resets, c.intervals)),
            (twice, format!("{} something else than the one before of the same time", says(twice, "look"))),
            (
                overlaps,
                format!(
                    "{} before the end of the one before, and {others} of the same time {} other bytes: what they count is added up",
                    if overlaps == 1 { "1 interval begins".into() } else { format!("{overlaps} intervals begin") },
                    if others == 1 { "has" } else { "have" }
                ),
            ),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
        let (back, farthest) = self.port.back();
        say(
            "clock_back",
            Level::Doubt,
            &Cases { count: back, ..Cases::default() },
            None,
            format!(
                "{} earlier than what was told before, by {} at most: the clock was set back, or leapt ahead before",
                match back {
                    1 => "1 reading is".to_string(),
                    many => format!("{many} readings are"),
                },
                span(farthest)
            ),
            "their drops and marks are counted, at no known time, once a later reading comes, and nothing else is concluded from them: --start and --stop choose one stretch of time, and --sort puts files in order",
        );
        if let (Some(told), Some(given)) = (self.told, self.settings.rate.filter(|_| !self.settings.rate_of_result)) {
            if told != given {
                let cases = Cases { count: 1, ..Cases::default() };
                let words = format!(
                    "the switch says that the port has {}, and {} was given",
                    rate_of(told.bps() as f64),
                    rate_of(given.bps() as f64)
                );
                say(
                    "speed_contradicts",
                    Level::Doubt,
                    &cases,
                    None,
                    words,
                    "without --rate, the speed that each port has counts",
                );
            }
        }
        let all = resets + twice + overlaps;
        found.extend((all > 0).then(|| mixed_sources(&self.name, all, parts.join("; "))));
        found.extend(again(self.port.unknown_of(State::Repeated).1, &self.name));
        found
    }
}

/// Finding that sources are mixed under one name, as counts or looks contradict one another.
pub(crate) fn mixed_sources(place: &str, count: u64, words: String) -> Finding {
    Finding {
        code: "mixed_sources",
        level: Level::Doubt,
        place: place.to_string(),
        count,
        bytes: None,
        words,
        hint: "two sources, or several queues, are mixed under one name: give each its own port, or one of them alone; of a single source, times are too coarse".into(),
    }
}

/// Counts that fall in so many of all intervals, in words.
pub(crate) fn falling(falls: u64, all: u64) -> String {
    format!("running counts fall in {falls} of {}", count(all, "interval"))
}

/// True if running counts fall in so many of all intervals that several sources are mixed.
pub(crate) fn are_mixed(falls: u64, all: u64) -> bool {
    falls >= MIXED && falls * 5 >= all
}

/// Finding on looks that came twice.
pub(crate) fn again(looks: u64, place: &str) -> Option<Finding> {
    (looks > 0).then(|| Finding {
        code: "repeated_looks",
        level: Level::Note,
        place: place.to_string(),
        count: looks,
        bytes: None,
        words: format!("{} again what the one before of the same time said", says(looks, "look")),
        hint: "they count once: a collector asks more often than the switch looks, or writes rows twice".into(),
    })
}

/// `1 look says`, `2 looks say`.
fn says(n: u64, what: &str) -> String {
    format!("{} {}", count(n, what), if n == 1 { "says" } else { "say" })
}

/// A burst in words.
fn words(burst: &CounterBurst) -> String {
    let mut text = match burst.intervals {
        looks if burst.within == 0 => format!("It shows in {} at the queue", count(u64::from(looks), "look")),
        1 => format!("It lies within one interval of {}", span(burst.within)),
        many => format!("It lies within {many} intervals of up to {}", span(burst.within)),
    };
    text.push_str(match (burst.queue, burst.at_least) {
        (None, _) => "; of its queue nothing is known.",
        (Some(_), true) => "; its queue was at least so long.",
        (Some(_), false) => "; of its queue only the largest length is known.",
    });
    if burst.cut || burst.open {
        text.push_str(match (burst.cut, burst.open) {
            (true, true) => " Nothing is known of the time before it and after it.",
            (true, false) => " Nothing is known of the time before it.",
            _ => " Nothing is known of the time after it.",
        });
    }
    text
}
