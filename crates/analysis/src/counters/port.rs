//! Bursts in the intervals of one port, as they come.

use super::interval::{Interval, State};
use super::series::{most_bytes, on_wire};
use super::steady::{Alike, Is};
use crate::bursts::{Patience, FULL_FRAME};
use crate::{Detect, Settings};
use fanin_units::{BitRate, Bytes, Time, BPS};

/// Intervals without a byte that are held back, at most: if the next one then brings what the line carries in all of them, the counters
/// had stood still.
const HELD: u32 = 16;
/// Part of an interval by which it may begin before the end of the one before: of rounded times, and of polls that are late.
const ROUNDED: u64 = 8;

/// Signs by which a burst was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Intervals in which more than a share of the line was counted.
    pub rate: bool,
    /// Queues above the threshold.
    pub queue: bool,
    /// Drops.
    pub drops: bool,
}

/// A burst as intervals show it: it lies within them, and may be shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterBurst {
    /// Start of its first interval, and end of its last.
    pub start: Time,
    pub end: Time,
    /// End of the interval with the largest queue; without queues, of the busiest one.
    pub peak_time: Time,
    /// Largest queue that is known.
    pub queue: Option<u64>,
    /// True if the queue was at least so long; false if a watermark says how long it was.
    pub at_least: bool,
    /// Frame bytes that left, and that arrived.
    pub sent: Option<u64>,
    pub arrived: Option<u64>,
    pub dropped: Option<u64>,
    pub marked: Option<u64>,
    /// Load of the busiest interval [bit/s].
    pub busiest_bps: Option<f64>,
    pub intervals: u32,
    /// Longest interval [ps]: start and end are known to within it.
    pub within: u64,
    /// True if nothing is known of the time before, or behind it.
    pub cut: bool,
    pub open: bool,
    pub shown: Shown,
}

/// Adds a count that may be unknown: a sum of which nothing was told is unknown, too.
pub(crate) fn sum(to: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *to = Some(to.unwrap_or(0).saturating_add(more));
    }
}

/// Count of a finding, and its gravest case.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cases {
    pub count: u64,
    /// Time, length [ps], value and limit of the gravest.
    pub at: u64,
    pub length: u64,
    pub value: u64,
    pub limit: u64,
}

impl Cases {
    fn add(&mut self, interval: &Interval, value: u64, limit: u64) {
        self.count += 1;
        // The ratio decides: intervals differ in length.
        if self.count == 1 || u128::from(value) * u128::from(self.limit) > u128::from(self.value) * u128::from(limit) {
            (self.at, self.length, self.value, self.limit) = (interval.start.ps(), interval.length(), value, limit);
        }
    }
}

/// All that is counted of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counted {
    pub intervals: u64,
    pub first: Option<Time>,
    pub last: Time,
    /// Time of known intervals [ps], and the shortest of them.
    pub known: u64,
    pub shortest: u64,
    /// Time that is unknown [ps], and intervals of it, by the reason.
    pub unknown: [(u64, u64); State::UNKNOWN.len()],
    pub dropped: Option<u64>,
    pub dropped_at_least: bool,
    pub marked: Option<u64>,
    pub peak: Option<(u64, u64)>,
    pub peak_at_least: bool,
    /// Load of the busiest interval, its start and its bytes.
    pub busiest: Option<(f32, u64, u64)>,
    /// Steady load above the share [ps], and its sum by time.
    pub steady: (u64, f64),
    pub over_line: Cases,
    pub over_buffer: Cases,
    pub over_watermark: Cases,
    pub without_queue: Cases,
    /// Counters that stood still and then jumped.
    pub stale: Cases,
}

/// Intervals without a byte that are held back.
#[derive(Clone, Copy, Debug)]
struct Held {
    interval: Interval,
    count: u32,
}

/// State of ports whose queue is looked at, or whose clock goes back.
#[derive(Clone, Copy, Debug, Default)]
struct Rare {
    /// Usual step between looks at a queue, and the time of the last one.
    patience: Patience,
    looked: Option<Time>,
    /// Readings earlier than what was told before, and the farthest back [ps].
    back: (u64, u64),
    /// True if the reading before was one of these, and if it counted nothing, as looks at running counts do until a later one comes.
    is_back: bool,
    is_uncounted: bool,
    /// Counts of 64 bits that fell as those of 32 bits wrap, and the time of the first [ps].
    narrow: (u64, u64),
    /// Looks that say something else than the one before of their time.
    twice: u64,
    /// Intervals that begin well before the end of the one before, and those of the same time that count other bytes.
    overlaps: (u64, u64),
}

/// Part of an interval that contradicts something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wrong {
    Nothing,
    /// The lengths of its queue; what it counts may be right.
    Queue,
    All,
}

/// Bursts in the intervals of one port, which come in order of time.
#[derive(Clone, Debug)]
pub struct CounterPort {
    rate: Option<BitRate>,
    overhead: Bytes,
    /// Share of the line that makes a burst; absent where bursts are found by the queue.
    share: Option<f32>,
    above: u64,
    until: u64,
    merge: u64,
    from: Time,
    buffer: Option<u64>,
    alike: Alike,
    /// Lower bound of the queue at the end of the last interval, from arrivals and the line.
    least: f64,
    held: Option<Held>,
    /// State that few ports need.
    rare: Option<Box<Rare>>,
    burst: Option<CounterBurst>,
    /// The open burst before the present stretch of alike intervals.
    before: Option<CounterBurst>,
    /// True if nothing is known of the time before the next interval.
    cut: bool,
    /// Latest interval that has a length: its begin, its end, and its bytes.
    latest: (Time, Time, Option<u64>),
    pub(super) counted: Counted,
}

impl CounterPort {
    /// A port without intervals yet. `buffer`: bytes that can wait at it, where that is known.
    pub fn new(settings: &Settings, buffer: Option<Bytes>) -> Self {
        let (above, until) = settings.thresholds();
        CounterPort {
            rate: settings.rate,
            overhead: settings.overhead,
            share: match settings.detect {
                Detect::Rate { share, .. } => Some(share as f32),
                Detect::Queue { .. } => None,
            },
            above: above.0,
            until: until.0,
            merge: settings.merge.ps(),
            from: settings.from.unwrap_or(Time::ZERO),
            buffer: buffer.map(|buffer| buffer.0),
            alike: Alike::default(),
            least: 0.0,
            held: None,
            rare: None,
            burst: None,
            before: None,
            cut: true,
            latest: (Time::ZERO, Time::ZERO, None),
            counted: Counted::default(),
        }
    }

    /// Sets the speed that the switch tells of the port.
    pub fn set_rate(&mut self, rate: BitRate) {
        self.rate = Some(rate);
    }

    /// Speed of the port, where it is known.
    pub fn rate(&self) -> Option<BitRate> {
        self.rate
    }

    /// The burst that has not ended yet.
    pub fn open(&self) -> Option<&CounterBurst> {
        self.burst.as_ref()
    }

    /// Takes the next interval; `ended`: takes each burst that has ended by it.
    #[inline]
    pub fn push(&mut self, interval: &Interval, ended: &mut dyn FnMut(CounterBurst)) {
        if let Some(rate) = self.rate.filter(|_| interval.state == State::Known && interval.end > interval.start) {
            let zero = |value: Option<u64>| value.unwrap_or(0) == 0;
            // Levels that stand still with the counts are below what makes a burst, and contradict nothing.
            let levels = |of: &Interval| (of.queue.unwrap_or(0), of.watermark.unwrap_or(0));
            let still = interval.sent == Some(0)
                && zero(interval.arrived)
                && zero(interval.dropped)
                && levels(interval).0.max(levels(interval).1) <= self.until
                && interval.watermark.is_none_or(|most| levels(interval).0 <= most);
            match &mut self.held {
                Some(held)
                    if still
                        && held.count < HELD
                        && held.interval.end == interval.start
                        && levels(&held.interval) == levels(interval) =>
                {
                    held.interval.end = interval.end;
                    held.interval.state = State::Known;
                    held.count += 1;
                    return;
                }
                None if still => {
                    self.held = Some(Held { interval: *interval, count: 1 });
                    return;
                }
                Some(held) => {
                    let (start, sent) = (held.interval.start, interval.sent.unwrap_or(0) as f64);
                    let jumps = held.interval.end == interval.start
                        && sent > most_bytes(rate, interval.length())
                        && sent <= most_bytes(rate, interval.end.since(start).ps());
                    if jumps {
                        let stood = held.interval.length();
                        self.held = None;
                        self.counted.stale.add(interval, stood, interval.length());
                        return self.take(&Interval { start, ..*interval }, ended);
                    }
                }
                None => {}
            }
        }
        self.let_go(ended);
        self.take(interval, ended);
    }

    /// Takes what was held back: it was zero.
    fn let_go(&mut self, ended: &mut dyn FnMut(CounterBurst)) {
        if let Some(held) = self.held.take() {
            self.counted.intervals += u64::from(held.count - 1);
            self.take(&held.interval, ended);
        }
    }

    /// Ends the port's time; `ended` takes the burst that is still open.
    pub fn finish(&mut self, ended: &mut dyn FnMut(CounterBurst)) {
        self.let_go(ended);
        if let Some(burst) = self.burst.take() {
            ended(CounterBurst { open: true, ..burst });
        }
    }

    /// Ends a burst that is open, as nothing is known from here on.
    pub fn interrupt(&mut self, ended: &mut dyn FnMut(CounterBurst)) {
        self.finish(ended);
        self.least = 0.0;
        self.alike.cut();
        self.before = None;
        self.rare.iter_mut().for_each(|rare| rare.looked = None);
        self.cut = true;
    }

    /// Time that is unknown [ps], and intervals of it, for each of [`State::UNKNOWN`].
    pub fn unknown_time(&self) -> [(u64, u64); State::UNKNOWN.len()] {
        self.counted.unknown
    }

    /// True if looks at running counts came last that lie before what was told: what they rose by is not counted.
    pub fn lacks_drops(&self) -> bool {
        self.counted.dropped.is_some() && self.rare.as_ref().is_some_and(|rare| rare.is_uncounted)
    }

    /// Time that is unknown for one reason [ps], and its intervals.
    #[inline]
    pub fn unknown_of(&self, reason: State) -> (u64, u64) {
        State::UNKNOWN.iter().position(|state| *state == reason).map_or((0, 0), |place| self.counted.unknown[place])
    }

    #[inline]
    fn take(&mut self, interval: &Interval, ended: &mut dyn FnMut(CounterBurst)) {
        if interval.end < self.counted.last || interval.end < interval.start {
            // It lies before what was told, as a clock that went back has it: it is of no known time, and only what it counts is taken.
            let instant = Interval::unknown(interval.end, interval.end, State::Contradicting);
            let c = &mut self.counted;
            c.intervals += 1;
            let back = c.last.ps().saturating_sub(interval.end.ps());
            let rare = self.rare.get_or_insert_default();
            (rare.back, rare.is_back) = ((rare.back.0 + 1, rare.back.1.max(back)), true);
            rare.is_uncounted = interval.dropped.is_none() && interval.state == State::Contradicting;
            if interval.end >= self.from {
                sum(&mut c.dropped, interval.dropped);
                c.dropped_at_least |= interval.dropped_at_least;
                sum(&mut c.marked, interval.marked);
            }
            return self.unknown(&instant, State::Contradicting, ended);
        }
        // Looks at one time, such as drops and depths of single packets, lie within intervals.
        if interval.start < interval.end {
            self.rare.iter_mut().for_each(|rare| (rare.is_back, rare.is_uncounted) = (false, false));
            if interval.start < self.latest.1 {
                self.overlaps(interval);
            }
            self.latest = (interval.start, interval.end, interval.sent);
        }
        let c = &mut self.counted;
        c.intervals += 1;
        c.first.get_or_insert(interval.start);
        c.last = c.last.max(interval.end);
        if interval.start >= self.from {
            sum(&mut c.dropped, interval.dropped);
            c.dropped_at_least |= interval.dropped_at_least;
            sum(&mut c.marked, interval.marked);
        }
        if interval.state != State::Known {
            return self.unknown(interval, interval.state, ended);
        }
        let length = interval.length();
        if length == 0 && interval.queue.is_some() {
            self.misses_looks(interval.end, ended);
        }
        let mut believed = *interval;
        match self.contradicts(interval, length) {
            // Packets that were dropped are a burst, however long the queue was.
            Wrong::Queue if interval.dropped > Some(0) => (believed.queue, believed.watermark) = (None, None),
            Wrong::Nothing => {}
            Wrong::Queue | Wrong::All => return self.unknown(interval, State::Contradicting, ended),
        }
        let interval = &believed;
        let (top, exact) = self.largest_queue(interval, length);
        let could = self.rate.map(|rate| rate.bps() as f64 / BPS * length as f64).filter(|could| *could > 0.0);
        let counted = interval.sent.max(interval.arrived);
        let wire = counted.map(|bytes| on_wire(bytes, interval.packets, self.overhead));
        let load = could.zip(wire).map(|(could, wire)| (wire / could) as f32);
        let drops = interval.dropped.is_some_and(|dropped| dropped > 0);
        let c = &mut self.counted;
        if let Some(top) = top.filter(|_| interval.start >= self.from) {
            if c.peak.is_none_or(|(peak, _)| top > peak) {
                c.peak = Some((top, interval.end.ps()));
                c.peak_at_least = !exact;
            }
        }
        let known = if self.share.is_some() { load.is_some() } else { top.is_some() };
        if !known && !drops {
            // Of this interval nothing is known by which a burst would be found. Of an instant nothing has to be.
            if length > 0 {
                self.unknown(interval, State::Gap, ended);
            }
            return;
        }
        c.known += length;
        if length > 0 {
            c.shortest = if c.shortest == 0 { length } else { c.shortest.min(length) };
        }
        if interval.start < self.from {
            return;
        }
        let mut shown = Shown { rate: false, queue: false, drops };
        if let (Some(share), Some(load)) = (self.share, load) {
            let c = &mut self.counted;
            if c.busiest.is_none_or(|busiest| load > busiest.0) {
                c.busiest = Some((load, interval.start.ps(), counted.unwrap_or(0)));
            }
            match self.alike.see(load) {
                Is::New => self.before = self.burst,
                Is::Alike => {}
                Is::Steady => {
                    if load > share {
                        c.steady = (c.steady.0 + length, c.steady.1 + f64::from(load) * length as f64);
                    }
                    // The burst was over before the load became steady, or there was none.
                    if self.burst.is_some_and(|burst| burst.dropped.unwrap_or(0) == 0) {
                        self.burst = None;
                        self.before.take().into_iter().for_each(&mut *ended);
                    }
                }
            }
            shown.rate = load > self.alike.threshold(share);
        } else if let Some(top) = top {
            shown.queue = top > self.above || (self.burst.is_some() && top > self.until);
        }
        if shown.rate || shown.queue || shown.drops {
            let bps = wire.filter(|_| length > 0).map(|wire| wire * BPS / length as f64);
            self.extend(interval, (top, exact), bps, shown);
        } else if self.burst.is_some_and(|burst| interval.end.ps().saturating_sub(burst.end.ps()) >= self.merge) {
            self.burst.take().into_iter().for_each(ended);
        }
        self.cut = false;
    }

    /// Ends an open burst at the look before this one, where looks between the two are missing.
    fn misses_looks(&mut self, now: Time, ended: &mut dyn FnMut(CounterBurst)) {
        let rare = self.rare.get_or_insert_default();
        let Some(last) = rare.looked.replace(now).filter(|last| now > *last) else { return };
        // Intervals that have a length tell of the time between looks.
        if rare.patience.misses(now.since(last).ps()) && self.counted.shortest == 0 && self.burst.is_some() {
            self.unknown(&Interval::unknown(last, now, State::Gap), State::Gap, ended);
        }
    }

    /// Largest queue that is known of an interval, and true if it is that, not a lower bound.
    #[inline]
    fn largest_queue(&mut self, interval: &Interval, length: u64) -> (Option<u64>, bool) {
        // What arrives and cannot have left waits: without the frame on the wire.
        let mut least = None;
        if let Some((rate, arrived)) = self.rate.zip(interval.arrived) {
            let rest = self.least + arrived as f64 - rate.bps() as f64 / BPS * length as f64;
            self.least = rest.max(0.0);
            least = Some((self.least - FULL_FRAME as f64).max(0.0) as u64);
        } else {
            self.least = 0.0;
        }
        if let Some(queue) = interval.queue {
            self.least = queue as f64;
        }
        match interval.watermark {
            Some(watermark) => (Some(watermark), true),
            None => (interval.queue.max(least), false),
        }
    }

    /// Takes an interval into the open burst, or begins one.
    fn extend(&mut self, interval: &Interval, (top, exact): (Option<u64>, bool), bps: Option<f64>, shown: Shown) {
        let burst = self.burst.get_or_insert_with(|| CounterBurst {
            start: interval.start,
            peak_time: interval.end,
            cut: self.cut,
            ..CounterBurst::default()
        });
        if top > burst.queue {
            (burst.queue, burst.at_least, burst.peak_time) = (top, !exact, interval.end);
        }
        if bps > burst.busiest_bps {
            burst.busiest_bps = bps;
            if burst.queue.is_none() {
                burst.peak_time = interval.end;
            }
        }
        burst.end = interval.end;
        sum(&mut burst.sent, interval.sent);
        sum(&mut burst.arrived, interval.arrived);
        sum(&mut burst.dropped, interval.dropped);
        sum(&mut burst.marked, interval.marked);
        burst.intervals = burst.intervals.saturating_add(1);
        burst.within = burst.within.max(interval.length());
        burst.shown.rate |= shown.rate;
        burst.shown.queue |= shown.queue;
        burst.shown.drops |= shown.drops;
    }

    /// Counts an interval of which nothing is concluded. A burst that is open has no known end.
    #[cold]
    fn unknown(&mut self, interval: &Interval, state: State, ended: &mut dyn FnMut(CounterBurst)) {
        let length = interval.length();
        // A look of the series that contradicts the one before; behind a clock that went back it is none of that time.
        if length == 0 && interval.state == State::Contradicting && interval.end == self.counted.last {
            let rare = self.rare.get_or_insert_default();
            rare.twice += u64::from(!rare.is_back);
        }
        if interval.narrow {
            let (count, first) = &mut self.rare.get_or_insert_default().narrow;
            (*count, *first) = (*count + 1, if *count == 0 { interval.end.ps() } else { *first });
        }
        if let Some((time, count)) = State::UNKNOWN.iter().position(|s| *s == state).map(|i| &mut self.counted.unknown[i]) {
            *time += length;
            *count += 1;
        }
        if length == 0 {
            return;
        }
        self.least = 0.0;
        self.alike.cut();
        self.before = None;
        self.cut = true;
        if let Some(burst) = self.burst.take() {
            ended(CounterBurst { open: true, ..burst });
        }
    }

    /// Finds and counts contradictions of an interval with itself, the line and the buffer.
    #[inline]
    fn contradicts(&mut self, interval: &Interval, length: u64) -> Wrong {
        let c = &mut self.counted;
        let mut wrong = Wrong::Nothing;
        if let (Some(rate), Some(sent), true) = (self.rate, interval.sent, length > 0) {
            if sent as f64 > most_bytes(rate, length) {
                c.over_line.add(interval, sent, (rate.bps() as f64 / BPS * length as f64) as u64);
                wrong = Wrong::All;
            }
        }
        let longest = interval.watermark.max(interval.queue);
        if let (Some(buffer), Some(longest)) = (self.buffer, longest) {
            if longest > buffer {
                c.over_buffer.add(interval, longest, buffer);
                wrong = wrong.max(Wrong::Queue);
            }
        }
        if let (Some(watermark), Some(queue)) = (interval.watermark, interval.queue) {
            if watermark < queue {
                c.over_watermark.add(interval, queue, watermark.max(1));
                wrong = wrong.max(Wrong::Queue);
            }
        }
        if interval.watermark == Some(0) && interval.queue.unwrap_or(0) == 0 {
            if let Some(dropped) = interval.dropped.filter(|dropped| *dropped > 0) {
                c.without_queue.add(interval, dropped, 1);
                wrong = Wrong::All;
            }
        }
        wrong
    }

    /// Readings earlier than what was told before, and the farthest back [ps].
    pub(super) fn back(&self) -> (u64, u64) {
        self.rare.as_ref().map_or((0, 0), |rare| rare.back)
    }

    /// Notes an interval that begins before the end of the one before, by more than times are rounded or polls are late.
    #[cold]
    fn overlaps(&mut self, interval: &Interval) {
        let (start, end, sent) = self.latest;
        if end.since(interval.start).ps() <= interval.length() / ROUNDED {
            return;
        }
        let is_other = start == interval.start && end == interval.end && sent != interval.sent;
        let (count, others) = &mut self.rare.get_or_insert_default().overlaps;
        (*count, *others) = (*count + 1, *others + u64::from(is_other && sent.is_some() && interval.sent.is_some()));
    }

    /// Looks that contradict the one before of their time; intervals that begin before the end of the one before, and those of the same time that
    /// count other bytes.
    pub(super) fn mixed(&self) -> (u64, (u64, u64)) {
        self.rare.as_ref().map_or((0, (0, 0)), |rare| (rare.twice, rare.overlaps))
    }

    /// Counts of 64 bits that fell as those of 32 bits wrap, and the time of the first [ps].
    pub(super) fn narrow(&self) -> (u64, u64) {
        self.rare.as_ref().map_or((0, 0), |rare| rare.narrow)
    }

    /// The steady load at the end, as a part of the port's speed.
    pub(super) fn level(&self) -> Option<f32> {
        self.alike.level()
    }
}
