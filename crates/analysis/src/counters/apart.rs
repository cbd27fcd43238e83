//! Looks whose counters come apart, each at a time of its own: joined to the look whose bytes are nearest.
//!
//! Devices stream each leaf in a message of its own, some microseconds apart, and tables may have one counter in a row. Of such looks those with
//! the bytes that left end intervals. What comes between two of them belongs to the nearer one: a look is told once the middle between it and
//! the next is passed, or at the end. Rates are of the time since the row before, and stay on their own.

use super::interval::{Interval, State};
use super::series::{Look, Series, Value};
use fanin_units::BitRate;

/// Looks without the bytes between two that have them after which they have a pace of their own: of levels each counts as [`LEVEL`].
const MOST: u32 = 256;
const LEVEL: u32 = 32;

/// Looks that are being joined.
#[derive(Clone, Debug, Default)]
pub(super) struct Apart {
    /// The last look with bytes, while more may belong to it.
    held: Option<Look>,
    /// Totals that came behind the middle of the interval: they belong to the next bytes.
    next: Option<Look>,
    /// Totals that came between the first two looks with bytes, whose distance was not known yet.
    early: Vec<Look>,
    /// Kinds that came since the last bytes, and how often one came again.
    kinds: u8,
    again: u32,
}

impl Look {
    /// Kinds of values that it tells, by bit: totals in the order of a series, and levels.
    pub(super) fn kinds(&self) -> u8 {
        let [sent, arrived, packets, dropped, marked] = self.counts().map(|value| u8::from(value.is_some()));
        let levels = u8::from(self.queue.is_some()) << 5 | u8::from(self.watermark.is_some()) << 6;
        sent | arrived << 1 | packets << 2 | dropped << 3 | marked << 4 | levels
    }

    /// Takes the values of a later look: totals, what was counted in all, and the largest levels.
    fn join(&mut self, other: &Look) {
        let add = |mine: &mut Option<Value>, more: Option<Value>| {
            *mine = match (*mine, more) {
                (Some(Value::Since(mine)), Some(Value::Since(more))) => Some(Value::Since(mine.saturating_add(more))),
                (mine, more) => more.or(mine),
            }
        };
        add(&mut self.sent, other.sent);
        add(&mut self.arrived, other.arrived);
        add(&mut self.packets, other.packets);
        add(&mut self.dropped, other.dropped);
        add(&mut self.marked, other.marked);
        self.queue = self.queue.max(other.queue);
        // A queue that was seen at another time than the watermark is no contradiction to it.
        self.watermark = self.watermark.max(other.watermark).map(|most| most.max(self.queue.unwrap_or(0)));
    }

    /// True if it tells a rate, which is of the time since the look before and cannot be joined.
    fn has_a_rate(&self) -> bool {
        self.counts().into_iter().any(|value| matches!(value, Some(Value::Rate(_))))
    }
}

/// Kinds that are levels.
const LEVELS: u8 = 0b110_0000;

impl Series {
    /// Takes a look of a series whose counters come apart; gives the intervals that end by it.
    #[cold]
    pub(super) fn joined(&mut self, look: &Look, rate: Option<BitRate>) -> [Option<Interval>; 2] {
        let mut apart = self.apart.take().unwrap_or_default();
        let look = Look { span: None, ..*look };
        let told = if look.sent.is_some() {
            self.with_bytes(&mut apart, &look, rate)
        } else {
            self.without_bytes(&mut apart, &look, rate)
        };
        let ended = apart.held.is_none() && apart.again == MOST;
        // A look that tells all that was ever told is no part of one.
        let is_whole = apart.held.is_none() && apart.next.is_none() && apart.early.is_empty();
        let goes_on = !ended && (!is_whole || !self.tells_all(&look));
        if goes_on {
            self.apart = Some(apart);
        }
        told
    }

    fn with_bytes(&mut self, apart: &mut Apart, look: &Look, rate: Option<BitRate>) -> [Option<Interval>; 2] {
        let last = self.last_time();
        let at = apart.held.map_or(last, |held| held.time);
        let told = self.tell(&mut apart.held, rate);
        if look.time <= at {
            let repeated = self.alone(look, rate);
            return [told, repeated];
        }
        (apart.kinds, apart.again) = (0, 0);
        for early in std::mem::take(&mut apart.early) {
            if early.time.ps().saturating_sub(at.ps()) < look.time.ps().saturating_sub(early.time.ps()) {
                // What it tells is of the time before; its totals count from there.
                self.begin(&early);
            } else {
                apart.next.get_or_insert_default().join(&early);
            }
        }
        let mut whole = apart.next.take().unwrap_or_default();
        whole.join(look);
        whole.time = look.time;
        if self.tells_all(look) {
            return [told, self.alone(&whole, rate)];
        }
        self.expect(look.time.ps() - at.ps());
        apart.held = Some(whole);
        [told, None]
    }

    fn without_bytes(&mut self, apart: &mut Apart, look: &Look, rate: Option<BitRate>) -> [Option<Interval>; 2] {
        let kinds = look.kinds();
        if kinds == 0 || look.has_a_rate() {
            // A look that tells nothing only shows that time has passed.
            let is_over = look.time.ps() > apart.held.map_or(0, |held| held.time.ps()).saturating_add(self.usual() / 2);
            let told = if is_over || kinds != 0 { self.tell(&mut apart.held, rate) } else { None };
            return [told, if kinds == 0 { None } else { self.alone(look, rate) }];
        }
        if apart.kinds & kinds != 0 {
            apart.again = (apart.again + if kinds & LEVELS == 0 { 1 } else { LEVEL }).min(MOST);
        }
        apart.kinds |= kinds;
        let usual = self.usual();
        if apart.again == MOST {
            // They are no parts of looks with bytes.
            self.own_pace();
            let told = self.tell(&mut apart.held, rate);
            self.settle_early(apart);
            let mut whole = apart.next.take().unwrap_or_default();
            whole.join(look);
            whole.time = look.time;
            return [told, self.alone(&whole, rate)];
        }
        match &mut apart.held {
            None if usual == 0 => apart.early.push(*look),
            // The look to which it belonged was told.
            None if look.time <= self.last_time() => return [self.alone(look, rate), None],
            Some(_) if look.time <= self.last_time() => {
                return [Some(Interval::unknown(look.time, look.time, State::Contradicting)), None];
            }
            Some(held) if look.time.ps() <= held.time.ps().saturating_add(usual / 2) => held.join(look),
            held => {
                let told = self.tell(held, rate);
                let next = apart.next.get_or_insert_default();
                next.join(look);
                next.time = next.time.max(look.time);
                return [told, None];
            }
        }
        [None, None]
    }

    /// Tells the look that is held.
    fn tell(&mut self, held: &mut Option<Look>, rate: Option<BitRate>) -> Option<Interval> {
        held.take().and_then(|held| self.alone(&held, rate))
    }

    /// Puts looks behind the only one with bytes together: their totals begin with the first, and rise by the last.
    fn settle_early(&mut self, apart: &mut Apart) {
        for early in std::mem::take(&mut apart.early) {
            self.begin(&early);
            let next = apart.next.get_or_insert_default();
            next.join(&early);
            next.time = next.time.max(early.time);
        }
    }

    /// Takes a look on its own: without a span it ends one interval, or is one that contradicts.
    fn alone(&mut self, look: &Look, rate: Option<BitRate>) -> Option<Interval> {
        let [first, second] = self.whole(look, rate);
        second.or(first)
    }

    /// Tells what is still held at the end of the series.
    pub fn finish(&mut self, rate: Option<BitRate>) -> [Option<Interval>; 2] {
        let Some(mut apart) = self.apart.take() else { return [None, None] };
        let told = self.tell(&mut apart.held, rate);
        self.settle_early(&mut apart);
        [told, apart.next.and_then(|next| self.alone(&next, rate))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Time;

    const US: u64 = 1_000_000;

    #[derive(Clone, Copy)]
    enum Of {
        Bytes(u64),
        Drops(u64),
        Most(u64),
    }
    use Of::{Bytes, Drops, Most};

    fn look(us: u64, of: Of) -> Look {
        let mut look = Look { time: Time::from_ps(us * US), ..Look::default() };
        match of {
            Bytes(total) => look.sent = Some(Value::Total(total, Some(64))),
            Drops(total) => look.dropped = Some(Value::Total(total, Some(64))),
            Most(bytes) => look.watermark = Some(bytes),
        }
        look
    }

    type Told = (u64, u64, Option<u64>, Option<u64>, Option<u64>, State);

    fn all(looks: impl IntoIterator<Item = (u64, Of)>) -> Vec<Told> {
        let rate = Some(BitRate::from_gbps(10));
        let mut series = Series::default();
        let mut told: Vec<Interval> = Vec::new();
        for (us, of) in looks {
            told.extend(series.look(&look(us, of), rate).into_iter().flatten());
        }
        told.extend(series.finish(rate).into_iter().flatten());
        told.iter().map(|i| (i.start.ps() / US, i.end.ps() / US, i.sent, i.dropped, i.watermark, i.state)).collect()
    }

    /// Looks each millisecond: bytes at its begin, drops and the largest queue so many microseconds later.
    fn apart(drops: i64, most: i64, bytes_first: bool) -> Vec<(u64, Of)> {
        let of = |n: u64| {
            let at = |after: i64| (10_000 + n * 1_000).checked_add_signed(after).unwrap();
            let mut all = vec![(at(0), Bytes(n * n * 1_000)), (at(drops), Drops(n)), (at(most), Most(n * 10))];
            if !bytes_first {
                all.reverse();
            }
            all
        };
        (0..6).flat_map(of).collect()
    }

    #[test]
    fn one_counter_at_a_time_tells_what_all_at_once_would() {
        let expected: Vec<Told> = (1..6)
            .map(|n| {
                let start = 10_000 + (n - 1) * 1_000;
                (start, start + 1_000, Some((2 * n - 1) * 1_000), Some(1), Some(n * 10), State::Known)
            })
            .collect();
        for (drops, most) in [(3, 5), (0, 0), (-3, 5), (3, -5), (-3, -5), (400, -400)] {
            assert_eq!(all(apart(drops, most, true))[..], expected, "{drops} {most}");
        }
        // What comes before the first bytes tells when their totals began.
        for (drops, most) in [(-3, -5), (-200, -400)] {
            let told = all(apart(drops, most, false));
            let known: Vec<&Told> = told.iter().filter(|told| told.2.is_some()).collect();
            assert_eq!(known, expected.iter().collect::<Vec<_>>(), "{drops} {most}");
            assert!(told[..told.len() - 5].iter().all(|told| told.1 <= 10_000), "{told:?}");
        }
    }

    #[test]
    fn a_counter_that_is_lost_costs_what_it_would_have_told_alone() {
        let lacks = |kind: fn(&Of) -> bool| {
            let looks = apart(3, 5, true).into_iter().filter(move |(us, of)| !((12_900..13_500).contains(us) && kind(of)));
            all(looks)
                .into_iter()
                .map(|(start, end, sent, drops, most, state)| (end - start, sent, drops, most, state))
                .collect::<Vec<_>>()
        };
        // The look of 13 ms without bytes: those of 14 ms are of both intervals.
        let told = lacks(|of| matches!(of, Bytes(_)));
        assert_eq!(told.len(), 4);
        assert_eq!(told[2], (2_000, Some(12_000), Some(2), Some(40), State::Known));
        let told = lacks(|of| matches!(of, Most(_)));
        assert_eq!(told[2], (1_000, Some(5_000), Some(1), None, State::Known));
        // Drops of two intervals are of neither alone.
        let told = lacks(|of| matches!(of, Drops(_)));
        assert_eq!(
            told[2..4],
            [(1_000, Some(5_000), None, Some(30), State::Known), (1_000, Some(7_000), Some(2), Some(40), State::Gap)]
        );
    }

    #[test]
    fn levels_much_more_often_than_bytes_keep_their_pace() {
        let of = |n: u64| {
            let levels = (1..20).map(move |i| (10_000 + n * 1_000 + i * 50, Most(i)));
            std::iter::once((10_000 + n * 1_000, Bytes(n * 1_000))).chain(levels)
        };
        let told = all((0..6).flat_map(of));
        let levels = told.iter().filter(|told| told.1 - told.0 == 50 && told.4.is_some()).count();
        // Those of the first 9 times are one: until then they may be parts of looks with bytes.
        assert_eq!(levels, 114 - 9);
        assert!(told.iter().any(|told| told.4 == Some(9) && told.1 - told.0 == 450), "{told:?}");
    }

    #[test]
    fn totals_without_bytes_are_told_when_these_stop() {
        let looks = apart(3, 5, true).into_iter().chain((20..400).map(|n| (n * 1_000, Drops(n))));
        let told = all(looks);
        assert_eq!(told.iter().filter_map(|told| told.3).sum::<u64>(), 399, "each drop counts once");
        let last = told.last().unwrap();
        assert!(last.1 == 399_000 && told.iter().filter(|told| told.1 > 15_000).all(|told| told.2.is_none()));
    }

    fn in_all(looks: &[Look]) -> Vec<Interval> {
        let mut series = Series::default();
        let mut told: Vec<Interval> = looks.iter().flat_map(|look| series.look(look, None)).flatten().collect();
        told.extend(series.finish(None).into_iter().flatten());
        told
    }

    #[test]
    fn counts_and_levels_of_looks_without_the_bytes_are_of_the_interval() {
        let since = |count| Some(Value::Since(count));
        let with = |us: u64, total: Option<u64>, queue: u64, drops: u64| Look {
            sent: total.map(|total| Value::Total(total, None)),
            queue: Some(queue),
            dropped: since(drops),
            ..Look { time: Time::from_ps(us * US), ..Look::default() }
        };
        let looks = [with(0, Some(0), 0, 0), with(10, Some(10), 0, 0), with(20, None, 900, 3), with(30, Some(30), 0, 5)];
        let told: Vec<_> = in_all(&looks).iter().map(|i| (i.start.ps() / US, i.sent, i.queue, i.dropped, i.state)).collect();
        let known = |start, sent, queue, drops| (start, Some(sent), Some(queue), Some(drops), State::Known);
        assert_eq!(told, [known(0, 10, 0, 0), known(10, 20, 900, 8)]);
        // A queue that stands after the watermark was read contradicts nothing.
        let mut joined = look(1, Most(5));
        joined.join(&Look { queue: Some(7), ..look(2, Most(0)) });
        assert_eq!((joined.watermark, joined.queue), (Some(7), Some(7)));
    }

    #[test]
    fn all_that_comes_behind_the_only_bytes_is_told_and_empty_looks_are_not_kept() {
        let drops = (1..40).map(|n| look(1_000 + n, Drops(n)));
        let looks: Vec<Look> = std::iter::once(look(1_000, Bytes(5))).chain(drops).collect();
        let told: Vec<_> = in_all(&looks).iter().map(|i| (i.length() / US, i.sent, i.dropped)).collect();
        assert_eq!(told, [(39, None, Some(38))]);
        let mut series = Series::default();
        series.look(&look(0, Bytes(0)), None);
        for us in 1..10_000 {
            assert_eq!(series.look(&Look { time: Time::from_ps(us * US), ..Look::default() }, None), [None, None]);
        }
        assert!(series.apart.as_ref().is_none_or(|apart| apart.early.is_empty()));
        assert_eq!(series.finish(None), [None, None]);
    }

    #[test]
    fn a_look_without_the_bytes_does_not_end_the_interval_of_a_whole_series() {
        let whole = |us: u64, n: u64| {
            let mut whole = look(us, Bytes(n * 1_000));
            whole.join(&look(us, Drops(n)));
            whole
        };
        let looks = [whole(1_000, 0), whole(2_000, 1), look(3_000, Drops(2)), whole(4_000, 3), whole(5_000, 4)];
        let mut series = Series::default();
        let told: Vec<Interval> = looks.iter().flat_map(|look| series.look(look, None)).flatten().collect();
        let told: Vec<_> = told.iter().map(|i| (i.length() / US, i.sent, i.dropped, i.state)).collect();
        let known = |length, sent, drops| (length, Some(sent), Some(drops), State::Known);
        assert_eq!(told, [known(1_000, 1_000, 1), known(2_000, 2_000, 2), known(1_000, 1_000, 1)]);
        assert!(series.apart.is_none(), "whole again");
    }
}
