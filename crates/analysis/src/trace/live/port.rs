//! One port of a stream: its analysis, its counts, and what is known of it by stretch of time.

use crate::bursts::Patience;
use crate::counters::{sum, Interval, Reading, State};
use crate::input::context::SECOND;
use crate::trace::counted::PortSink;
use crate::trace::live::clock::{Clock, Told, SET_BACK};
use crate::trace::order::Sink;
use crate::{Burst, Fates, Record, ANEW, MARKED, NO_QUEUE};
use fanin_units::Time;
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Counts of a port since the stream began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortCounts {
    pub records: u64,
    /// Packets that were dropped by packets and looks at the queue, and by counters: of one port both tell the same drops. Absent where none
    /// of them was told.
    pub dropped: Option<u64>,
    pub dropped_counted: Option<u64>,
    /// True where more may have been dropped: a counter began anew.
    pub dropped_at_least: bool,
    /// True if several sources were mixed under the port's name: what was dropped is unknown.
    pub mixed: bool,
    /// Packets that were marked; absent as drops are.
    pub marked: Option<u64>,
    /// Largest queue; absent where no record has one.
    pub peak_bytes: Option<u64>,
    /// True where the largest queue is one that a counter happened to see: a lower bound.
    pub peak_at_least: bool,
    /// Records that came after a later one, and were left out.
    pub late: u64,
    /// Records that leapt ahead while the port went on as before, and were left out.
    pub far: u64,
    /// Times that the clock of the port was set back.
    pub set_back: u64,
    /// Times in which samples are missing; those that are unknown for another reason (resets, contradictions) do not count.
    pub gaps: u64,
    pub gap_ps: u64,
    /// True once something was known of the port.
    pub known: bool,
    pub bursts: u64,
    pub burst_ps: u64,
    /// Time that is unknown, by the reason [ps].
    pub unknown_ps: BTreeMap<&'static str, u64>,
}

/// Knowledge of a port in one stretch of time; there is none where nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Number of the stretch, from second 0 of the stream's clock.
    pub number: u64,
    /// Largest queue; absent where no record has one.
    pub queue: Option<u64>,
    pub records: u64,
    pub bytes: u64,
    pub dropped: u64,
}

impl PortCounts {
    /// Packets that were dropped, if that was told, and true if there may be more.
    pub fn drops(&self) -> (Option<u64>, bool) {
        let both = self.dropped > Some(0) && self.dropped_counted > Some(0);
        // Of what is late nothing counts: it may be a repetition.
        (self.dropped.max(self.dropped_counted), self.dropped_at_least || both || self.late > 0)
    }

    /// Adds a time that is unknown [ps], and its reason.
    #[cold]
    fn leave_unknown(&mut self, why: &'static str, ps: u64) {
        if ps == 0 {
            return;
        }
        let sum = self.unknown_ps.entry(why).or_default();
        *sum = sum.saturating_add(ps);
    }

    /// The counts with a time that is unknown and has not ended [ps], if there is one.
    pub fn with(mut self, lost: Option<Lost>) -> Self {
        if let Some(Lost { why: GAP, ps }) = lost {
            self.gaps += 1;
            self.gap_ps = self.gap_ps.saturating_add(ps);
            self.leave_unknown(GAP, ps);
        }
        self
    }
}

impl Cell {
    /// The cell as a list: number, largest queue, records, bytes, dropped packets.
    pub fn told(&self) -> Value {
        json!([self.number, self.queue, self.records, self.bytes, self.dropped])
    }
}

/// A stretch of time of which nothing is known [ps], and the reason: `gap` where samples of a port are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub from: u64,
    pub to: u64,
    pub why: &'static str,
}

/// Reason for which nothing is known of a port now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub why: &'static str,
    /// Time since its last record [ps].
    pub ps: u64,
}

/// Reason where records of a port are missing.
const GAP: &str = State::Gap.name();
/// Reason where records of a port come after later ones, and are left out.
const LATE: &str = "late";

/// A port that had no records for a long time.
pub struct Away {
    pub counts: PortCounts,
    /// Time of its last record [ps]; none where its silence says that the queue is below a threshold.
    pub since: Option<u64>,
    /// Queue that is known all the same.
    pub queue: Option<u64>,
}

impl Away {
    /// Reason for which nothing is known of the port now, at a time of its stream [ps].
    pub fn lost(&self, latest: u64) -> Option<Lost> {
        self.since.map(|since| Lost { why: GAP, ps: latest.saturating_sub(since) })
    }

    /// Ends the time of which nothing is known, as times count from another second from here on.
    pub fn settle(&mut self, latest: u64) {
        self.counts = std::mem::take(&mut self.counts).with(self.lost(latest));
        self.since = self.since.map(|_| 0);
    }
}

/// Step of a port's time from which a record that is followed by earlier ones went ahead alone [ps]: a second.
const AHEAD: u64 = SECOND as u64;
/// Gaps of a port that are held until they are taken.
const HELD_GAPS: usize = 64;

/// A port that is watched.
pub struct LivePort {
    pub analyzer: PortSink,
    pub counts: PortCounts,
    /// Counts of the analyzers before this one: bursts and time in them [ps].
    before: (u64, u64),
    /// Records before the port was away.
    earlier: u64,
    /// Queue and time of the last record [ps].
    pub queue: Option<u64>,
    pub last: u64,
    /// Time of the record before the last one, if that one is later [ps].
    before_last: u64,
    /// Usual step between two intervals of counters; none where silence says that the queue is below a threshold.
    steps: Option<Patience>,
    /// Time after the last record from which the next one ends a gap [ps], where the user says it.
    gap: Option<u64>,
    pub cell: Cell,
    /// End of the cell [ps of the analysis].
    pub cell_ends: u64,
    pub gaps: Vec<Gap>,
    /// Records that leap ahead, until it is known whether the stream does.
    pub ahead: Vec<Told>,
    /// Records before the last one, one after another: all, and those that show that the clock was set back.
    behind: (u32, u32),
    /// Earliest and latest time of these [ps].
    late: (u64, u64),
    /// Time without records that the next one ends, and that was told as unknown [ps]: what the analysis leaves of it known is not.
    away: u64,
    /// Time of the last record before the port gave its memory back, if nothing is known since then [ps].
    gone: Option<u64>,
    /// True until the first interval of another file or connection: its reader does not know what was counted before.
    resumed: bool,
}

impl LivePort {
    /// `gap`: the least one between records, where the user says it [ps]; `events`: the source tells of events alone, so that its silence
    /// is no gap.
    pub fn new(analyzer: PortSink, gap: Option<u64>, events: bool) -> Self {
        LivePort {
            analyzer,
            counts: PortCounts::default(),
            before: (0, 0),
            earlier: 0,
            queue: None,
            last: 0,
            before_last: 0,
            steps: (!events).then(Patience::default),
            gap,
            cell: Cell::default(),
            cell_ends: 0,
            gaps: Vec::new(),
            ahead: Vec::new(),
            behind: (0, 0),
            late: (0, 0),
            away: 0,
            gone: None,
            resumed: false,
        }
    }

    /// Goes on with another file or connection, whose counters begin anew.
    pub fn resume(&mut self) {
        self.resumed = true;
    }

    /// A port that comes back, with its counts.
    pub fn after(mut self, Away { counts, since, .. }: Away) -> Self {
        self.before = (counts.bursts, counts.burst_ps);
        self.earlier = counts.records;
        self.counts = PortCounts { records: 0, ..counts };
        self.gone = since;
        self
    }

    /// All that is kept of a port without records.
    pub fn retired(&self) -> Away {
        let known = self.steps.is_none();
        Away {
            counts: self.counted(),
            since: (!known).then_some(self.gone.unwrap_or(self.last)),
            queue: self.queue.filter(|_| known),
        }
    }

    /// Notes a record before the last one; true where so many are far behind, or behind a last one that went ahead alone, that the clock
    /// was set back.
    #[cold]
    pub fn is_set_back(&mut self, now: u64, clock: &Clock) -> bool {
        let leaps = self.last.saturating_sub(now) > clock.leap();
        let alone = now >= self.before_last && self.last.saturating_sub(self.before_last) > AHEAD;
        let shown = if leaps || alone { self.behind.1.saturating_add(1) } else { 0 };
        self.behind = (self.behind.0.saturating_add(1), shown);
        self.behind.1 >= SET_BACK
    }

    /// Reason for which nothing is known of the port now, though its stream is at a later time [ps]; `cell`: width of a cell [ps].
    pub fn lost(&self, latest: u64, cell: u64) -> Option<Lost> {
        let since = latest.saturating_sub(self.last);
        if self.behind.0 >= SET_BACK {
            return Some(Lost { why: LATE, ps: since });
        }
        if let Some(gone) = self.gone {
            return Some(Lost { why: GAP, ps: latest.saturating_sub(gone) });
        }
        (since > cell && self.is_overdue(since)).then_some(Lost { why: GAP, ps: since })
    }

    /// True if records are missing by now, so long after the last one [ps].
    fn is_overdue(&self, since: u64) -> bool {
        let by_user = || self.gap.is_some_and(|gap| since > gap && self.last > 0 && self.analyzer.has_packets());
        self.steps.is_some_and(|steps| steps.is_over(since)) || self.analyzer.is_overdue(since) || by_user()
    }

    /// Notes that a record comes now, after a time that may have been told as unknown [ps]; `cell`: width of a cell [ps].
    pub fn come_back(&mut self, now: u64, cell: u64) {
        self.away = self.lost(now, cell).filter(|lost| lost.why == GAP).map_or(0, |lost| lost.ps);
        self.gone = None;
    }

    /// Leaves unknown what was told as such before the record or interval that begins now [ps], but for what the analysis says of it [ps].
    #[cold]
    fn settle(&mut self, now: u64, said: u64) {
        let rest = std::mem::take(&mut self.away).saturating_sub(said);
        if rest > 0 {
            self.miss(Gap { from: now.saturating_sub(rest), to: now, why: GAP });
            self.counts.leave_unknown(GAP, rest);
        }
    }

    /// Counts a record, or an interval that begins at `from`, that comes after a later one: it is left out [ps].
    #[cold]
    fn come_late(&mut self, from: u64, now: u64) {
        self.counts.late += 1;
        let (first, last) = if self.behind.0 > 1 { self.late } else { (now, now) };
        let all = (first.min(from), last.max(now));
        self.counts.leave_unknown(LATE, (all.1 - all.0) - (last - first));
        self.late = all;
    }

    /// Goes on at an earlier time with another analyzer; the bursts and the cell of this one must have been taken.
    pub fn set_back(&mut self, analyzer: PortSink, now: u64) {
        self.renew(analyzer, 0);
        // The record at which it goes on did not go ahead alone.
        (self.last, self.before_last, self.behind) = (now, now, (0, 0));
        self.counts.set_back += 1;
    }

    /// Leaves out what leapt ahead: the stream did not.
    #[cold]
    pub fn leave_out(&mut self) {
        self.counts.far += self.ahead.len() as u64;
        self.ahead.clear();
    }

    /// Takes a record, whose cell is open.
    #[inline]
    pub fn take(&mut self, record: &Record) {
        let now = record.time.ps();
        let unseen = self.analyzer.unseen_ps();
        match self.gap {
            None if record.frame == 0 => self.analyzer.see_look(record),
            None => {}
            Some(gap) => {
                self.analyzer.step_to(record);
                self.keep_to(gap, now);
            }
        }
        if self.analyzer.push(record).is_err() {
            self.come_late(now, now);
            return;
        }
        let missed = self.analyzer.unseen_ps() - unseen;
        if missed > 0 {
            self.miss_looks(missed, now);
            self.counts.leave_unknown(GAP, missed);
        }
        if self.away > 0 {
            self.settle(now, missed);
        }
        self.come_to(now);
        let (lost, marked) = (u64::from(record.loses()), u64::from(record.flags & MARKED != 0));
        self.counts.records += 1;
        sum(&mut self.counts.dropped, Some(lost));
        self.counts.dropped_at_least |= record.flags & ANEW != 0;
        sum(&mut self.counts.marked, Some(marked));
        self.cell.records += 1;
        self.cell.bytes += u64::from(record.frame);
        self.cell.dropped += lost;
        if record.queue != NO_QUEUE {
            self.queue = Some(record.queue);
            self.cell.queue = self.cell.queue.max(self.queue);
        }
    }

    /// Leaves the time since the last record unknown if it is longer than the user's gap.
    fn keep_to(&mut self, gap: u64, now: u64) {
        if self.last > 0 && now.saturating_sub(self.last) > gap {
            self.miss(Gap { from: self.last, to: now, why: GAP });
            self.counts.leave_unknown(GAP, now - self.last);
            self.away = 0;
            self.analyzer.interrupt();
        }
    }

    /// Notes the time of what is taken [ps].
    #[inline]
    fn come_to(&mut self, now: u64) {
        if now > self.last {
            self.before_last = self.last;
            self.last = now;
        }
        self.behind = (0, 0);
    }

    /// Notes that nothing is known of a stretch of time.
    #[cold]
    fn miss(&mut self, gap: Gap) {
        // Where a count began anew no sample is missing.
        if gap.why == GAP {
            self.counts.gaps += 1;
            self.counts.gap_ps = self.counts.gap_ps.saturating_add(gap.to - gap.from);
        }
        let goes_on = |last: &&mut Gap| last.to == gap.from && last.why == gap.why;
        if let Some(last) = self.gaps.last_mut().filter(goes_on) {
            last.to = gap.to;
        } else if self.gaps.len() < HELD_GAPS {
            self.gaps.push(gap);
        }
    }

    /// Takes what a source tells about the port, whose cell is open.
    pub fn take_reading(&mut self, reading: &Reading) {
        match reading {
            // Until a later one comes, what has the time of the last one is late as well.
            Reading::Interval(interval)
                if interval.end.ps() < self.last || (interval.end.ps() == self.last && self.behind.0 > 0) =>
            {
                self.come_late(interval.start.ps().min(interval.end.ps()), interval.end.ps());
            }
            Reading::Interval(interval) if self.away > 0 => self.take_back(interval),
            _ => self.take_in(reading),
        }
    }

    /// Takes the interval that ends a time which was told as unknown: what it does not cover stays so.
    #[cold]
    fn take_back(&mut self, interval: &Interval) {
        let sum = |port: &Self| port.unknown().values().fold(0, |sum: u64, ps| sum.saturating_add(*ps));
        let (before, last) = (sum(self), interval.end.ps().saturating_sub(self.away));
        self.take_in(&Reading::Interval(*interval));
        let from = interval.start.ps().clamp(last, interval.end.ps());
        let covered = if interval.state == State::Known { interval.end.ps() - from } else { 0 };
        self.settle(from, sum(self).saturating_sub(before).saturating_add(covered));
    }

    fn take_in(&mut self, reading: &Reading) {
        if let Reading::Interval(interval) = reading {
            if std::mem::take(&mut self.resumed) {
                self.bridge(interval);
            }
        }
        let (unseen, doubted) = (self.analyzer.unseen_ps(), self.analyzer.doubted());
        self.analyzer.take_reading(reading);
        if let Reading::Interval(interval) = reading {
            let now = self.analyzer.doubted();
            let mut believed = *interval;
            if now.0 > doubted.0 {
                believed.state = State::Contradicting;
            } else if now.1 > doubted.1 {
                (believed.queue, believed.watermark) = (None, None);
            }
            self.count(&believed);
        }
        if let Reading::Interval(Interval { state: State::Known, end, .. }) = reading {
            self.miss_looks(self.analyzer.unseen_ps() - unseen, end.ps());
        }
    }

    /// Notes so much time before a look as a gap, if the analysis misses looks there.
    #[inline]
    fn miss_looks(&mut self, missed: u64, now: u64) {
        if missed > 0 {
            self.miss(Gap { from: now - missed, to: now, why: State::Gap.name() });
        }
    }

    /// Leaves unknown what no reader has counted: from the last interval of one to the first of the next.
    #[cold]
    fn bridge(&mut self, next: &Interval) {
        let length = next.end.ps().saturating_sub(next.start.ps());
        // A tick of rounding is no gap.
        if self.last > 0 && next.start.ps().saturating_sub(self.last) > length / 8 {
            let (from, to, why) = (self.last, next.start.ps(), State::Gap);
            self.miss(Gap { from, to, why: why.name() });
            self.analyzer.take_reading(&Reading::Interval(Interval::unknown(Time::from_ps(from), next.start, why)));
        }
    }

    fn count(&mut self, interval: &Interval) {
        let now = interval.end.ps();
        if let Some(steps) = self.steps.as_mut().filter(|_| self.last > 0 && now > self.last) {
            steps.misses(now - self.last);
        }
        self.come_to(now);
        self.counts.records += 1;
        sum(&mut self.counts.dropped_counted, interval.dropped);
        self.counts.dropped_at_least |= interval.dropped_at_least;
        sum(&mut self.counts.marked, interval.marked);
        if interval.state != State::Known {
            self.queue = None;
            let (from, to) = (interval.start.ps(), interval.end.ps().max(interval.start.ps()));
            self.miss(Gap { from, to, why: interval.state.name() });
            return;
        }
        self.queue = interval.queue;
        self.cell.records += 1;
        self.cell.bytes = self.cell.bytes.saturating_add(interval.sent.max(interval.arrived).unwrap_or(0));
        self.cell.dropped = self.cell.dropped.saturating_add(interval.dropped.unwrap_or(0));
        if interval.watermark.max(interval.queue) > self.counts.peak_bytes.max(self.cell.queue) {
            self.counts.peak_at_least = interval.watermark.is_none();
        }
        self.cell.queue = self.cell.queue.max(interval.watermark).max(interval.queue);
    }

    /// The cell that is open, if it has something.
    pub fn open_cell(&self) -> Option<Cell> {
        (self.cell.records > 0).then_some(self.cell)
    }

    /// Ends the cell that is open, if it has something.
    pub fn close_cell(&mut self) -> Option<Cell> {
        self.counts.peak_bytes = self.counts.peak_bytes.max(self.cell.queue);
        let cell = std::mem::take(&mut self.cell);
        self.cell_ends = 0;
        (cell.records > 0).then_some(cell)
    }

    /// Bursts that have ended since this was last asked.
    pub fn bursts(&mut self, fates: Fates) -> Vec<Burst> {
        let mut bursts = self.analyzer.take_bursts();
        let fates = Fates { drops: fates.drops && !self.counts.mixed && !self.analyzer.is_mixed(), ..fates };
        bursts.iter_mut().for_each(|burst| burst.telling(fates));
        bursts
    }

    /// The counts by now.
    pub fn counted(&self) -> PortCounts {
        let (bursts, ps) = self.analyzer.burst_totals();
        PortCounts {
            records: self.earlier + self.counts.records,
            bursts: self.before.0 + bursts,
            burst_ps: self.before.1.saturating_add(ps),
            unknown_ps: self.unknown(),
            mixed: self.counts.mixed || self.analyzer.is_mixed(),
            known: self.counts.known || self.analyzer.is_known(),
            peak_bytes: self.counts.peak_bytes.max(self.cell.queue),
            ..self.counts.clone()
        }
    }

    /// Time that is unknown, by the reason [ps].
    fn unknown(&self) -> BTreeMap<&'static str, u64> {
        let mut all = self.counts.unknown_ps.clone();
        for (why, ps) in self.analyzer.unknown_time() {
            *all.entry(why).or_default() += ps;
        }
        all
    }

    /// Goes on with another analyzer; the bursts of this one must have been taken. `shift`: what is later is earlier by so much [ps].
    pub fn renew(&mut self, analyzer: PortSink, shift: u64) {
        let counted = self.counted();
        self.before = (counted.bursts, counted.burst_ps);
        (self.counts.unknown_ps, self.counts.mixed, self.counts.known) = (counted.unknown_ps, counted.mixed, counted.known);
        self.analyzer = analyzer.after(&self.analyzer);
        self.last = self.last.saturating_sub(shift);
        self.before_last = self.before_last.saturating_sub(shift);
        self.late = (self.late.0.saturating_sub(shift), self.late.1.saturating_sub(shift));
        self.gone = self.gone.map(|gone| gone.saturating_sub(shift));
        self.cell_ends = self.cell_ends.saturating_sub(shift);
    }
}
