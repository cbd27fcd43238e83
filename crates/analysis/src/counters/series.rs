//! A series of looks at the counters of a port, as intervals.

use super::apart::Apart;
use super::interval::{Interval, State};
use super::running::{Running, Step};
use fanin_units::{BitRate, Bytes, Span, Time, BPS};

/// Frames that a counter may be behind or ahead of its time [bytes]: two of the largest.
pub(super) const SLACK: f64 = 2.0 * 9_216.0;
/// Part of the line that inexact times of looks explain.
pub(super) const INEXACT: f64 = 0.02;
/// Smallest frame on the wire [bytes], by which packets are limited.
const SMALLEST: u64 = 64;
/// Distance of two looks, as a multiple of the usual one, from which looks between them are missing.
const MISSING: u64 = 4;

/// Most frame bytes that a line carries in a time, as looks with inexact times may show it.
pub(crate) fn most_bytes(rate: BitRate, ps: u64) -> f64 {
    rate.bps() as f64 / BPS * ps as f64 * (1.0 + INEXACT) + SLACK
}

/// Looks before an earlier one after which a stream's clock is believed to have been set back.
const SET_BACK: u8 = 3;

/// Places of packets, drops and marks among the counters.
const PACKETS: usize = 2;
const DROPPED: usize = 3;
const MARKED: usize = 4;

/// A counter's value: a running total, or what was counted since the look before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A running total, of so many bits where that is known.
    Total(u64, Option<u8>),
    /// Counted since the look before.
    Since(u64),
    /// Mean rate since the look before, in thousandths of a bit each second; 8000 of one count each second.
    Rate(u64),
}

/// One look at the counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub time: Time,
    /// Length of the interval that ends at `time`, where the source says it.
    pub span: Option<Span>,
    pub sent: Option<Value>,
    pub arrived: Option<Value>,
    pub packets: Option<Value>,
    pub dropped: Option<Value>,
    pub marked: Option<Value>,
    pub queue: Option<u64>,
    /// Most bytes that waited since the look before.
    pub watermark: Option<u64>,
}

impl Look {
    /// Counts that it tells, in the order of a series' totals.
    pub(super) fn counts(&self) -> [Option<Value>; 5] {
        [self.sent, self.arrived, self.packets, self.dropped, self.marked]
    }
}

/// Looks at the counters of one port, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Series {
    last: Option<Look>,
    /// Sent, arrived, packets, dropped, marked.
    totals: [Running; 5],
    /// Totals, by bit, that looks since their last value did not tell: their next step is over more than one interval.
    untold: u8,
    /// Usual distance of two looks [ps]; 0: none was seen.
    usual: u64,
    /// True for a stream, whose clock may be set back, or have leapt ahead in a look that was wrong.
    live: bool,
    /// Time of the look before the last one.
    before: Time,
    /// Looks since the last one that are before it, each after the other.
    earlier: u8,
    latest_earlier: Time,
    /// Kinds of values that were ever told, by bit.
    told: u8,
    /// Looks that are being joined, where counters come apart; and true where they have paces of their own.
    pub(super) apart: Option<Box<Apart>>,
    paced: bool,
}

impl Series {
    /// A series without looks; `live`: of a stream.
    pub fn new(live: bool) -> Self {
        Series { live, ..Series::default() }
    }

    /// Takes a look before the last one; true if the clock goes on from it.
    #[cold]
    fn is_set_back(&mut self, look: &Look) -> bool {
        self.earlier = if look.time > self.latest_earlier { self.earlier.saturating_add(1) } else { 1 };
        self.latest_earlier = look.time;
        self.live && self.earlier >= SET_BACK
    }

    /// Begins anew at a look: drops and marks since the last one are counted, at no known time, and of all else nothing is known.
    #[cold]
    fn begin_at(&mut self, look: &Look) -> Interval {
        let mut interval = Interval::unknown(self.before.min(look.time), look.time, State::Contradicting);
        let (mut totals, mut untold) = (self.totals, 0);
        for (place, (running, value)) in totals.iter_mut().zip(look.counts()).enumerate() {
            match value {
                Some(Value::Total(total, bits)) => match (running.step(total, bits, None), place) {
                    (Step::By(count), DROPPED) => interval.dropped = Some(count),
                    (Step::Reset | Step::Narrow, DROPPED) => {
                        (interval.dropped, interval.dropped_at_least) = (Some(total), true);
                    }
                    (Step::By(count), MARKED) => interval.marked = Some(count),
                    _ => {}
                },
                _ => untold |= u8::from(running.has_begun()) << place,
            }
        }
        *self = Series { totals, untold, told: self.told, last: Some(*look), before: look.time, ..Series::new(self.live) };
        interval
    }

    /// Leaves what all totals rise by until the next look to no interval alone.
    #[cold]
    fn leave_untold(&mut self) {
        for (place, running) in self.totals.iter().enumerate() {
            self.untold |= u8::from(running.has_begun()) << place;
        }
    }

    /// Takes the next look; gives the intervals that it ends, the earlier one first: at most a gap, and what was counted.
    ///
    /// The first look at running totals only shows where counting begins. A look at the time of the one before is a repetition where it says the
    /// same, and else a contradiction; one before that contradicts the order of time, and is passed over.
    /// Looks whose counters come apart are joined: what one tells may come with those that follow.
    #[inline]
    pub fn look(&mut self, look: &Look, rate: Option<BitRate>) -> [Option<Interval>; 2] {
        self.told |= look.kinds();
        let lacks = look.sent.is_none() && look.span.is_none() && self.totals[0].has_begun() && !self.paced;
        if lacks || self.apart.is_some() {
            return self.joined(look, rate);
        }
        // The bytes come for the first time, behind what else is told of that time.
        if let (Some(last), Some(_), false) = (&mut self.last, look.sent, self.totals[0].has_begun()) {
            if look.time == last.time && last.kinds() & look.kinds() == 0 {
                self.begin(look);
                return [None, None];
            }
        }
        self.whole(look, rate)
    }

    /// True if a look tells a rate and no total, which would be of all the time since the last one, and the usual length of rows is known.
    fn is_of_a_row(&self, look: &Look) -> bool {
        let is_rate = |value: Option<Value>| matches!(value, Some(Value::Rate(_)));
        let is_total = |value: Option<Value>| matches!(value, Some(Value::Total(..)));
        let of_a_row = self.usual > 0 && look.span.is_none() && (is_rate(look.sent) || is_rate(look.arrived));
        of_a_row && !look.counts().into_iter().any(is_total)
    }

    /// Begins those totals that have not begun at a look that tells no interval. The others rise by what they tell later.
    pub(super) fn begin(&mut self, look: &Look) {
        for (running, value) in self.totals.iter_mut().zip(look.counts()) {
            if let (Some(Value::Total(total, bits)), false) = (value, running.has_begun()) {
                running.step(total, bits, None);
            }
        }
    }

    /// True if a look tells all kinds of values that were ever told.
    pub(super) fn tells_all(&self, look: &Look) -> bool {
        self.told & !look.kinds() == 0
    }

    /// Time of the last look that was told.
    pub(super) fn last_time(&self) -> Time {
        self.last.as_ref().map_or(Time::ZERO, |last| last.time)
    }

    /// Usual distance of two looks [ps]; 0: none was seen.
    pub(super) fn usual(&self) -> u64 {
        self.usual
    }

    /// Takes a distance as the usual one, where none was seen.
    pub(super) fn expect(&mut self, distance: u64) {
        if self.usual == 0 {
            self.usual = distance;
        }
    }

    /// Notes that the other counters come at paces of their own.
    pub(super) fn own_pace(&mut self) {
        self.paced = true;
    }

    /// Takes the next look, which is no part of another.
    #[inline]
    pub(super) fn whole(&mut self, look: &Look, rate: Option<BitRate>) -> [Option<Interval>; 2] {
        let since = match (look.span, &self.last) {
            (Some(span), _) => Some(Time::from_ps(look.time.ps().saturating_sub(span.ps()))),
            (None, last) => last.as_ref().map(|last| last.time),
        };
        let mut gap = None;
        if let Some(last) = &self.last {
            if look.time <= last.time {
                let same = look == last;
                let state = if same { State::Repeated } else { State::Contradicting };
                if look.time < last.time {
                    // The count has gone on, so the clock was set back: until it is later again nobody knows how long it took.
                    if matches!((look.sent, last.sent), (Some(Value::Total(now, _)), Some(Value::Total(before, _))) if now > before)
                    {
                        self.leave_untold();
                    }
                    if self.is_set_back(look) {
                        return [Some(self.begin_at(look)), None];
                    }
                }
                return [Some(Interval::unknown(look.time, look.time, state)), None];
            }
            if let Some(start) = since.filter(|start| *start > last.time) {
                // A tick of rounding is no gap.
                if start.since(last.time).ps() > look.span.map_or(0, |span| span.ps() / 8) {
                    gap = Some(Interval::unknown(last.time, start, State::Gap));
                }
            }
        }
        let first = self.last.is_none();
        let distance = since.map_or(0, |start| look.time.since(start).ps());
        let length = match self.is_of_a_row(look) {
            // A rate is of the last row alone: of what rows that are missing would have told nothing is known.
            true if distance > self.usual / 4 * 7 => {
                let start = Time::from_ps(look.time.ps() - self.usual);
                gap = self.last.map(|last| Interval::unknown(last.time, start, State::Gap));
                self.usual
            }
            _ => distance,
        };
        let most = rate.filter(|_| length > 0).map(|rate| most_bytes(rate, length) as u64);
        let frames = most.map(|most| most / SMALLEST);
        let mut interval = Interval {
            start: Time::from_ps(look.time.ps() - length),
            end: look.time,
            queue: look.queue,
            watermark: look.watermark,
            ..Interval::default()
        };
        let counters = [
            (look.sent, most, &mut interval.sent),
            (look.arrived, None, &mut interval.arrived),
            (look.packets, frames, &mut interval.packets),
            (look.dropped, None, &mut interval.dropped),
            (look.marked, frames, &mut interval.marked),
        ];
        let (mut state, mut began, mut narrow) = (State::Known, false, false);
        let mut at_least = false;
        let bytes_begin = look.sent.is_some() && !self.totals[0].has_begun();
        for (place, (running, (value, most, out))) in self.totals.iter_mut().zip(counters).enumerate() {
            match value {
                None if bytes_begin => {}
                None => self.untold |= u8::from(running.has_begun()) << place,
                Some(Value::Since(count)) => *out = Some(count),
                Some(Value::Rate(rate)) => *out = Some(at_rate(rate, length)),
                Some(Value::Total(total, bits)) => {
                    let step = running.step(total, bits, most.filter(|_| self.untold & (1 << place) == 0));
                    // What a count of drops that began anew shows was dropped since.
                    if place == DROPPED && matches!(step, Step::Reset | Step::Narrow) {
                        (*out, at_least) = (Some(total), true);
                    }
                    match step {
                        // Bytes, drops and marks of the looks between are not of this interval alone: they are counted, and no burst.
                        Step::By(count) if self.untold & (1 << place) != 0 => {
                            self.untold &= !(1 << place);
                            if place != PACKETS {
                                *out = Some(count);
                                if state == State::Known && (place < PACKETS || count > 0) {
                                    state = State::Gap;
                                }
                            }
                        }
                        Step::By(count) => *out = Some(count),
                        Step::First => began = true,
                        // Packets only say how much the bytes took on the wire.
                        _ if place == PACKETS => {}
                        Step::Reset => state = State::Reset,
                        Step::Narrow => (state, narrow) = (State::Reset, true),
                        Step::Rollover if state != State::Reset => state = State::Rollover,
                        Step::Rollover => {}
                    }
                }
            }
        }
        if let (State::Reset, Some(Value::Total(total, _)), Some(dropped)) = (state, look.dropped, interval.dropped) {
            // The drops may have begun anew with what fell, and be more again already.
            (interval.dropped, at_least) = (Some(dropped.min(total)), true);
        }
        self.before = self.last.map_or(look.time, |last| last.time);
        self.earlier = 0;
        self.last = Some(*look);
        if first && (look.span.is_none() || began) {
            return [None, None];
        }
        if look.span.is_none() {
            if self.usual > 0 && length > MISSING * self.usual && state == State::Known {
                state = State::Gap;
            }
            // The usual distance follows what comes: at once where looks come closer, soon where they come further apart. That of looks
            // before the first bytes is none.
            self.usual = match self.usual {
                _ if bytes_begin && began => 0,
                0 => distance,
                usual if distance < usual => distance.max(usual / 2),
                usual => usual + (distance - usual) / 4,
            };
        }
        (interval.state, interval.narrow, interval.dropped_at_least) = (state, narrow, at_least);
        [gap, Some(interval)]
    }
}

/// Count of an interval [ps] at a rate in thousandths of a bit each second, rounded.
#[cold]
fn at_rate(rate: u64, ps: u64) -> u64 {
    const UNIT: u128 = 8_000 * 1_000_000_000_000;
    u64::try_from((u128::from(rate) * u128::from(ps) + UNIT / 2) / UNIT).unwrap_or(u64::MAX)
}

/// Frame bytes by frame that take time on the wire and are in no counter.
pub(super) fn on_wire(bytes: u64, packets: Option<u64>, overhead: Bytes) -> f64 {
    bytes as f64 + packets.map_or(0.0, |packets| packets as f64 * overhead.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;

    fn at(us: u64, total: u64) -> Look {
        Look { time: Time::from_ps(us * US), sent: Some(Value::Total(total, None)), ..Look::default() }
    }

    fn all(looks: &[Look], rate: Option<BitRate>) -> Vec<(u64, u64, Option<u64>, State)> {
        let mut series = Series::default();
        let intervals = looks.iter().flat_map(|look| series.look(look, rate)).flatten();
        intervals.map(|i| (i.start.ps() / US, i.end.ps() / US, i.sent, i.state)).collect()
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_burst_of_the_bytes_meanwhile() {
        let rate = Some(BitRate::from_gbps(1));
        let with = |us: u64, n: u64| Look { dropped: Some(Value::Total(n / 4, None)), ..at(us, n * 10) };
        let times = [0, 10, 20, 30, 40, 10, 20, 30, 40, 50, 60];
        let looks: Vec<Look> = times.into_iter().zip(0..).map(|(us, n)| with(us, n)).collect();
        for live in [false, true] {
            let mut series = Series::new(live);
            let told: Vec<Interval> = looks.iter().flat_map(|look| series.look(look, rate)).flatten().collect();
            let known = told.iter().filter(|told| told.state == State::Known);
            assert!(known.clone().all(|told| told.sent == Some(10) && told.length() == 10 * US), "{told:?}");
            assert_eq!(told.iter().filter_map(|told| told.dropped).sum::<u64>(), 2, "each drop counts");
            let gaps: Vec<_> = told.iter().filter(|told| told.state == State::Gap).map(|i| (i.end.ps() / US, i.sent)).collect();
            assert_eq!(gaps, if live { vec![] } else { vec![(50, Some(50))] });
        }
        // A row that stands behind a later one is no clock that was set back.
        let told = all(&[at(0, 0), at(10, 10), at(30, 30), at(20, 20), at(40, 40)], rate);
        assert_eq!(told.last(), Some(&(30, 40, Some(10), State::Known)));
    }

    #[test]
    fn a_rate_of_one_row_does_not_shorten_the_time_of_a_total() {
        let look = |us: u64| Look { arrived: Some(Value::Rate(8_000_000)), ..at(us, us * 60) };
        let told = all(&[look(0), look(10), look(20), look(40), look(50)], Some(BitRate::from_gbps(1)));
        assert_eq!(told[2], (20, 40, Some(1_200), State::Known), "one row is missing");
        assert_eq!(told.len(), 4);
    }

    #[test]
    fn what_looks_without_a_value_left_out_is_of_no_interval_alone() {
        let rate = BitRate::from_gbps(1);
        let untold = |us: u64| Look { sent: None, ..at(us, 0) };
        // 50 % of the line; two looks do not tell the total, which then rises by three intervals' bytes: they end no interval.
        let looks = [at(0, 0), at(10, 625), untold(20), untold(30), at(40, 2_500), at(50, 3_125)];
        let known = |start, end, sent| (start, end, sent, State::Known);
        let expected = [known(0, 10, Some(625)), known(10, 40, Some(1_875)), known(40, 50, Some(625))];
        assert_eq!(all(&looks, Some(rate)), expected);
        let gone = [at(0, 0), at(10, 625), untold(20), untold(30), untold(40), untold(50), at(60, 3_750)];
        assert_eq!(all(&gone, Some(rate))[1], (10, 60, Some(3_125), State::Gap), "too long without one");
        // Drops that did not rise are of no matter; those that did are of all three.
        let with = |us: u64, sent: u64, drops: Option<u64>| Look {
            dropped: drops.map(|drops| Value::Total(drops, None)),
            ..at(us, sent)
        };
        let states = |last: u64| -> Vec<State> {
            let looks = [with(0, 0, Some(4)), with(10, 5, None), with(20, 10, Some(last)), with(30, 15, Some(last))];
            all(&looks, Some(rate)).into_iter().map(|(.., state)| state).collect()
        };
        assert_eq!(states(4), [State::Known; 3]);
        assert_eq!(states(5), [State::Known, State::Gap, State::Known]);
    }

    #[test]
    fn drops_of_a_look_in_which_counts_began_anew_are_a_lower_bound() {
        let look = |us: u64, sent: u64, drops: u64| Look { dropped: Some(Value::Total(drops, None)), ..at(us, sent) };
        let of = |looks: &[Look]| -> Vec<(Option<u64>, bool, State)> {
            let mut series = Series::default();
            let intervals = looks.iter().flat_map(|look| series.look(look, None)).flatten();
            intervals.map(|i| (i.dropped, i.dropped_at_least, i.state)).collect()
        };
        // Drops alone, and with the bytes: what is on the counter came since.
        let told = of(&[look(0, 0, 90), look(10, 10, 95), look(20, 20, 7), look(30, 30, 9)]);
        assert_eq!(told, [(Some(5), false, State::Known), (Some(7), true, State::Reset), (Some(2), false, State::Known)]);
        assert_eq!(of(&[look(0, 1_000, 90), look(10, 5, 7)]), [(Some(7), true, State::Reset)]);
        // The bytes alone: the drops rose at least by so much, and no wrap is believed.
        assert_eq!(of(&[look(0, 1_000, 90), look(10, 5, 97)]), [(Some(7), true, State::Reset)]);
        assert_eq!(of(&[look(0, 1_000, u64::from(u32::MAX)), look(10, 5, 7)]), [(Some(7), true, State::Reset)]);
        assert_eq!(of(&[look(0, 1_000, 90), look(10, 5, 90)]), [(Some(0), true, State::Reset)]);
    }

    #[test]
    fn the_first_look_shows_where_counting_begins() {
        assert_eq!(
            all(&[at(0, 500), at(10, 700), at(20, 700)], None),
            [(0, 10, Some(200), State::Known), (10, 20, Some(0), State::Known)]
        );
    }

    #[test]
    fn repetitions_disorder_gaps_and_resets_are_unknown() {
        let looks =
            [at(0, 0), at(10, 100), at(10, 100), at(10, 101), at(5, 99), at(20, 200), at(70, 900), at(80, 30), at(90, 40)];
        assert_eq!(
            all(&looks, None),
            [
                (0, 10, Some(100), State::Known),
                (10, 10, None, State::Repeated),
                (10, 10, None, State::Contradicting),
                (5, 5, None, State::Contradicting),
                (10, 20, Some(100), State::Known),
                (20, 70, Some(700), State::Gap),
                (70, 80, None, State::Reset),
                (80, 90, Some(10), State::Known),
            ]
        );
    }

    #[test]
    fn one_look_far_ahead_costs_a_stream_three_looks_and_no_more() {
        let looks = [at(0, 0), at(10, 100), at(9_000_000, 200), at(20, 300), at(30, 400), at(40, 500), at(50, 600), at(60, 600)];
        let of = |live| {
            let mut series = Series::new(live);
            let intervals = looks.iter().flat_map(|look| series.look(look, None)).flatten();
            intervals.map(|i| (i.start.ps() / US, i.end.ps() / US, i.sent, i.state)).collect::<Vec<_>>()
        };
        let far = 9_000_000;
        let wrong = |at| (at, at, None, State::Contradicting);
        let begun = [(0, 10, Some(100), State::Known), (10, far, Some(100), State::Gap), wrong(20), wrong(30)];
        assert_eq!(of(true)[..4], begun);
        let after = [(10, 40, None, State::Contradicting), (40, 50, Some(100), State::Known), (50, 60, Some(0), State::Known)];
        assert_eq!(of(true)[4..], after);
        // A file is put in order where the user asks for it.
        assert_eq!(of(false)[4..], [wrong(40), wrong(50), wrong(60)]);
    }

    #[test]
    fn of_rows_that_are_missing_a_rate_tells_nothing() {
        let row = |us: u64, value: Option<Value>| Look { sent: value, ..at(us, 0) };
        let rate = Some(Value::Rate(800_000_000_000));
        let looks: Vec<Look> = [0, 10, 20, 50, 60, 75, 85].iter().map(|us| row(*us, rate)).collect();
        let gap = |start, end| (start, end, None, State::Gap);
        let known = |start, end, sent| (start, end, Some(sent), State::Known);
        let told = all(&looks, None);
        assert_eq!(told[1..4], [known(10, 20, 1_000), gap(20, 40), known(40, 50, 1_000)]);
        assert_eq!(told[4..], [known(50, 60, 1_000), known(60, 75, 1_500), known(75, 85, 1_000)], "a row that is late");
        // A row without a value says nothing of its interval, and the next one nothing about it.
        let told = all(&[row(0, rate), row(10, rate), row(20, None), row(30, rate)], None);
        assert_eq!(told[1..], [(10, 20, None, State::Known), (20, 30, Some(1_000), State::Known)]);
    }

    #[test]
    fn looks_that_come_less_often_from_now_on_are_no_gaps_for_ever() {
        let slow: Vec<Look> = (0..4).map(|i| at(i * 10, i)).chain((1..20).map(|i| at(30 + i * 100, i + 4))).collect();
        let gaps = all(&slow, None).iter().filter(|interval| interval.3 == State::Gap).count();
        assert_eq!(gaps, 1);
    }

    #[test]
    fn intervals_with_a_length_of_their_own_leave_gaps_between_them() {
        let of = |us, count| Look {
            time: Time::from_ps(us * US),
            span: Some(Span::from_us(10)),
            sent: Some(Value::Since(count)),
            ..Look::default()
        };
        assert_eq!(
            all(&[of(10, 1), of(20, 2), of(50, 3)], None),
            [
                (0, 10, Some(1), State::Known),
                (10, 20, Some(2), State::Known),
                (20, 40, None, State::Gap),
                (40, 50, Some(3), State::Known)
            ]
        );
    }
}
