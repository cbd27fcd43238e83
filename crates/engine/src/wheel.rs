//! Events that stay where they are set, in buckets of time.

use crate::Table;
use fanin_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;
/// Low bits of an event's word: its slot. Above them, while a bucket is sorted, its place among those of the same time, and
/// above that the time within the bucket; in a bucket's line the low bits of the time, as many as there is room for.
const SLOT_BITS: u32 = 24;
const PLACE_BITS: u32 = 14;
const TIME_AT: u32 = SLOT_BITS + PLACE_BITS;
const SLOT: u64 = (1 << SLOT_BITS) - 1;
/// Widest bucket: what is left for the time within it, 67 us.
const WIDEST: u32 = 64 - TIME_AT;
/// Most buckets: their lines are 256 KiB then. Fewer where the horizon needs fewer, so that the lines stay in the cache.
const MOST_BUCKETS: u64 = 1 << 12;
/// Events that are popped and still stand before those that are known: moving these costs more than the room.
const MOST_POPPED: usize = 64;
/// Events that fit into a bucket's line.
const ROOM: usize = 7;

/// A bucket, one cache line: setting an event writes it and touches nothing else. One that is full moves into a line of the
/// overflow, to which it then points.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    events: [u64; ROOM],
    count: u32,
    /// The line in the overflow with further events.
    more: u32,
}

const EMPTY: Line = Line { events: [0; ROOM], count: 0, more: NONE };

/// An event that is due soon.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    time: u64,
    /// Its slot.
    pub slot: u32,
    /// For the user, who may read and write events before they are popped ([`Wheel::known`]): what it has found out about
    /// this one. Zero at first.
    pub note: u32,
}

impl Due {
    #[inline(always)]
    fn new(time: u64, slot: u32) -> Self {
        Due { time, slot, note: 0 }
    }

    /// When it is due.
    #[inline(always)]
    pub fn time(&self) -> Time {
        Time::from_ps(self.time)
    }
}

/// In which order events of the same time are popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// By slot.
    BySlot,
    /// By slot up to `from`; slots from there on afterwards, in an order drawn anew for each time: by a hash of seed, time and
    /// slot, so that it depends on nothing else.
    Drawn { seed: u64, from: u32 },
}

/// How far ahead buckets are opened, so that the user knows what is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// When no more than so many events are known, further buckets are opened.
    pub events: usize,
    /// But no further than this after the next event: what is set within it costs an insertion into a sorted list.
    pub span: Span,
}

impl Ahead {
    /// One bucket at a time.
    pub const NOTHING: Ahead = Ahead { events: 0, span: Span::ZERO };
}

/// A calendar of events, popped in the total order of time and [`Ties`].
///
/// Slots are numbered by the user so that their order is the order wanted among events of the same time; neither it nor a
/// drawn one depends on the order of insertion. An event in the near future costs a word in its bucket's line and its share of
/// sorting a bucket of a few; one beyond the horizon goes through a heap first.
pub struct Wheel {
    lines: Table<Line>,
    /// One bit per bucket with events.
    occupied: Table<u64>,
    /// Width of a bucket, as a shift and as a mask of the time within it.
    shift: u32,
    width: u64,
    /// Number of buckets − 1.
    mask: u64,
    /// The last bucket (absolute, not modulo) whose events, if there are any, are in `due`; buckets after it are in lines.
    open: u64,
    /// Events of the opened buckets, in order; those before `next` are popped.
    due: Vec<Due>,
    next: usize,
    /// From here on too few are known: as many as are wanted ahead before the end of `due`.
    low: usize,
    ahead: Ahead,
    overflow: Table<Line>,
    /// Lines of the overflow that are not in use.
    spare: Vec<u32>,
    /// A bucket being sorted.
    sorting: Vec<u64>,
    /// Beyond the horizon.
    far: BinaryHeap<Reverse<(u64, u32)>>,
    /// Bucket of the first of them.
    next_far: u64,
    order: Order,
    /// Time of the event that was popped last; kept in debug builds.
    popped: u64,
}

/// The order of events of the same time.
#[derive(Clone, Copy)]
struct Order {
    /// Slots from here on have a drawn order.
    drawn_from: u32,
    seed: u64,
}

impl Order {
    /// The drawn place of an event among those of the same time, as it stands in a word that is sorted.
    #[inline(always)]
    fn place(self, time: u64, slot: u32) -> u64 {
        if slot < self.drawn_from {
            return 0;
        }
        let x = (time ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x >> 32 ^ u64::from(slot)).wrapping_mul(0xd1b5_4a32_d192_ed03);
        let x = (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x >> (64 - PLACE_BITS) << SLOT_BITS
    }
}

impl Wheel {
    /// A wheel for slots below `slots` that handles events up to about `horizon` ahead without the heap, with buckets at least
    /// `spacing` wide: the time in which a few events fall due, since opening a bucket costs as much as an event.
    pub fn new(slots: usize, horizon: Span, spacing: Span, ties: Ties, ahead: Ahead) -> Self {
        assert!(slots <= 1 << SLOT_BITS, "{slots} slots");
        let order = match ties {
            Ties::BySlot => Order { seed: 0, drawn_from: u32::MAX },
            Ties::Drawn { seed, from } => Order { seed, drawn_from: from },
        };
        let width = (horizon.ps() / (MOST_BUCKETS - 2)).max(spacing.ps()).clamp(2, 1 << WIDEST).next_power_of_two();
        let buckets = (horizon.ps() / width + 2).next_power_of_two().clamp(64, MOST_BUCKETS);
        Wheel {
            lines: vec![EMPTY; buckets as usize].into(),
            occupied: vec![0; buckets as usize / 64].into(),
            shift: width.trailing_zeros(),
            width: width - 1,
            mask: buckets - 1,
            open: 0,
            due: Vec::with_capacity(64),
            next: 0,
            low: 0,
            ahead,
            overflow: Vec::new().into(),
            spare: Vec::new(),
            sorting: Vec::new(),
            far: BinaryHeap::new(),
            next_far: u64::MAX,
            order,
            popped: 0,
        }
    }

    /// Sets an event of `slot` at `at`, which must not be before the last popped event.
    #[inline(always)]
    pub fn set(&mut self, slot: u32, at: Time) {
        let time = at.ps();
        debug_assert!(time >= self.popped, "an event at {time} ps, before the one that was popped last, at {}", self.popped);
        let bucket = time >> self.shift;
        // One comparison separates the common case (a later bucket within the horizon) from both others.
        if bucket.wrapping_sub(self.open + 1) < self.mask {
            let index = (bucket & self.mask) as usize;
            let line = &mut self.lines[index];
            let count = line.count as usize;
            if count == ROOM {
                return self.set_in_full(slot, time, index);
            }
            // SAFETY: `count` is below `ROOM`, as it is never set to more.
            unsafe { *line.events.get_unchecked_mut(count) = time << SLOT_BITS | u64::from(slot) };
            line.count = count as u32 + 1;
            self.occupied[index / 64] |= 1 << (index % 64);
        } else {
            self.set_elsewhere(slot, time, bucket);
        }
    }

    /// Many events at one time: the full line moves to the overflow.
    #[cold]
    #[inline(never)]
    fn set_in_full(&mut self, slot: u32, time: u64, index: usize) {
        let full = self.lines[index];
        let more = match self.spare.pop() {
            Some(line) => {
                self.overflow[line as usize] = full;
                line
            }
            None => {
                self.overflow.push(full);
                (self.overflow.len() - 1) as u32
            }
        };
        let line = &mut self.lines[index];
        (line.count, line.more) = (1, more);
        line.events[0] = time << SLOT_BITS | u64::from(slot);
    }

    #[cold]
    #[inline(never)]
    fn set_elsewhere(&mut self, slot: u32, time: u64, bucket: u64) {
        if bucket > self.open {
            self.far.push(Reverse((time, slot)));
            self.next_far = self.next_far.min(bucket);
            return;
        }
        let key = |time, slot| (time, self.order.place(time, slot), slot);
        let event = key(time, slot);
        let at = self.due[self.next..].partition_point(|other| other.time < time || key(other.time, other.slot) < event);
        self.due.insert(self.next + at, Due::new(time, slot));
        self.note_known();
    }

    /// Takes the next event if it is not after `limit`.
    #[inline(always)]
    pub fn pop_until(&mut self, limit: Time) -> Option<(Time, Due)> {
        if self.next >= self.low {
            if self.next == self.due.len() {
                self.due.clear();
                self.next = 0;
                match self.open_next(limit.ps()) {
                    Opened::Nothing => {
                        self.low = 0;
                        // Nothing is left before the limit: it is not searched again.
                        self.open = self.open.max((limit.ps() >> self.shift).saturating_sub(1));
                        return None;
                    }
                    // Most buckets: the event goes straight to the user.
                    Opened::One(event) if self.ahead.events == 0 && event.time <= limit.ps() => {
                        self.low = 0;
                        return Some(self.popped(event));
                    }
                    Opened::One(event) => self.due.push(event),
                    Opened::Several => {}
                }
            }
            if self.ahead.events > 0 {
                self.look_further();
            }
            self.note_known();
        }
        // SAFETY: `next` is below the length of `due`: it is below `low`, which is no more than that, or has just been found to
        // be, or the bucket that has just been opened had events.
        let event = unsafe { *self.due.get_unchecked(self.next) };
        if event.time > limit.ps() {
            return None;
        }
        self.next += 1;
        Some(self.popped(event))
    }

    #[inline(always)]
    fn popped(&mut self, event: Due) -> (Time, Due) {
        if cfg!(debug_assertions) {
            self.popped = event.time;
        }
        (Time::from_ps(event.time), event)
    }

    /// The events that follow the one that was popped last, in order, as far as they are known.
    #[inline(always)]
    pub fn known(&mut self) -> &mut [Due] {
        debug_assert!(self.next <= self.due.len());
        // SAFETY: `next` counts events of `due` that are popped.
        unsafe { self.due.get_unchecked_mut(self.next..) }
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.next == self.due.len() && self.far.is_empty() && self.occupied.iter().all(|word| *word == 0)
    }

    /// Remembers from where on too few events are known.
    #[inline(always)]
    fn note_known(&mut self) {
        self.low = self.due.len().saturating_sub(self.ahead.events);
    }

    /// Opens buckets until the events that the user wants to know are known: twice as many, so that it is seldom done.
    #[inline(never)]
    fn look_further(&mut self) {
        if self.next > MOST_POPPED {
            self.due.drain(..self.next);
            self.next = 0;
        }
        let until = self.due[self.next].time + self.ahead.span.ps();
        let wanted = self.next + 2 * self.ahead.events;
        while self.due.len() < wanted {
            match self.open_next(until) {
                Opened::Nothing => return,
                Opened::One(event) => self.due.push(event),
                Opened::Several => {}
            }
        }
    }

    /// Opens the next bucket that has events, unless it begins after `limit`: it is looked for no further.
    #[inline(always)]
    fn open_next(&mut self, limit: u64) -> Opened {
        let bucket = self.next_occupied(limit >> self.shift).min(self.next_far);
        // Buckets are at least 2 ps wide, so that `u64::MAX`, for none, is beyond any limit.
        if bucket > limit >> self.shift {
            return Opened::Nothing;
        }
        self.open = bucket;
        let index = (bucket & self.mask) as usize;
        self.occupied[index / 64] &= !(1 << (index % 64));
        if self.next_far <= bucket + self.mask {
            self.fetch_far();
            self.open_many(index);
            return Opened::Several;
        }
        let (base, width, order) = (bucket << self.shift, self.width, self.order);
        let line = &mut self.lines[index];
        if line.more != NONE {
            self.open_many(index);
            return Opened::Several;
        }
        let events = &line.events;
        let count = std::mem::take(&mut line.count) as usize;
        let within = |event: u64| event >> SLOT_BITS & width;
        if count == 1 {
            // Nothing to sort, and no place to draw.
            return Opened::One(Due::new(base | within(events[0]), (events[0] & SLOT) as u32));
        }
        let key = |event: u64| {
            let (within, slot) = (within(event), (event & SLOT) as u32);
            within << TIME_AT | order.place(base | within, slot) | u64::from(slot)
        };
        self.due.reserve(ROOM);
        let known = self.due.len();
        let end = self.due.as_mut_ptr().wrapping_add(known);
        // SAFETY: there is room for `ROOM` more, and `count` is never more than that.
        let put = |i: usize, key: u64| unsafe { end.add(i).write(Due::new(base | key >> TIME_AT, (key & SLOT) as u32)) };
        // Two to four are sorted without a branch: what is tied is in no order that could be predicted.
        match count {
            2 => {
                let (a, b) = ascending(key(events[0]), key(events[1]));
                put(0, a);
                put(1, b);
            }
            3 => {
                let (a, b) = ascending(key(events[0]), key(events[1]));
                let (b, c) = ascending(b, key(events[2]));
                let (a, b) = ascending(a, b);
                put(0, a);
                put(1, b);
                put(2, c);
            }
            4 => {
                let (a, b) = ascending(key(events[0]), key(events[1]));
                let (c, d) = ascending(key(events[2]), key(events[3]));
                let ((a, c), (b, d)) = (ascending(a, c), ascending(b, d));
                let (b, c) = ascending(b, c);
                put(0, a);
                put(1, b);
                put(2, c);
                put(3, d);
            }
            _ => {
                let mut keys = [0; ROOM];
                keys.iter_mut().zip(events).take(count).for_each(|(word, event)| *word = key(*event));
                let keys = &mut keys[..count.min(ROOM)];
                sort(keys);
                keys.iter().enumerate().for_each(|(i, key)| put(i, *key));
            }
        }
        // SAFETY: so many have just been written.
        unsafe { self.due.set_len(known + count) };
        Opened::Several
    }

    /// Opens a bucket that has outgrown its line, or to which far events may belong.
    #[cold]
    #[inline(never)]
    fn open_many(&mut self, index: usize) {
        let base = self.open << self.shift;
        let mut sorting = std::mem::take(&mut self.sorting);
        let mut line = std::mem::replace(&mut self.lines[index], EMPTY);
        loop {
            for event in &line.events[..line.count as usize] {
                let (within, slot) = (event >> SLOT_BITS & self.width, (event & SLOT) as u32);
                sorting.push(within << TIME_AT | self.order.place(base | within, slot) | u64::from(slot));
            }
            if line.more == NONE {
                break;
            }
            self.spare.push(line.more);
            line = self.overflow[line.more as usize];
        }
        sort(&mut sorting);
        self.due.extend(sorting.iter().map(|word| Due::new(base | word >> TIME_AT, (word & SLOT) as u32)));
        sorting.clear();
        self.sorting = sorting;
    }

    /// Moves far events that the horizon has reached into lines, those of the bucket that is opened into what is sorted.
    #[cold]
    #[inline(never)]
    fn fetch_far(&mut self) {
        while let Some(Reverse((time, slot))) = self.far.peek().copied() {
            self.next_far = time >> self.shift;
            if self.next_far > self.open + self.mask {
                return;
            }
            self.far.pop();
            if self.next_far == self.open {
                let within = time & self.width;
                self.sorting.push(within << TIME_AT | self.order.place(time, slot) | u64::from(slot));
            } else {
                self.set(slot, Time::from_ps(time));
            }
        }
        self.next_far = u64::MAX;
    }

    /// The first bucket after the open one with events; where there is none, or none up to bucket `limit`, any one after that.
    #[inline(always)]
    fn next_occupied(&self, limit: u64) -> u64 {
        let first = self.open + 1;
        let start = (first & self.mask) as usize;
        let bits = self.occupied[start / 64] >> (start % 64);
        if bits != 0 {
            return first + u64::from(bits.trailing_zeros());
        }
        self.next_occupied_further(first, start, limit)
    }

    #[inline(never)]
    fn next_occupied_further(&self, first: u64, start: usize, limit: u64) -> u64 {
        let words = self.occupied.len();
        // Words that hold the buckets up to the limit.
        let wanted = words.min((limit.saturating_sub(first) / 64) as usize + 1);
        // The first word is read again at the end, for the bits before the start.
        for n in 1..wanted + 1 {
            let word = (start / 64 + n) & (words - 1);
            if self.occupied[word] != 0 {
                let index = (word * 64 + self.occupied[word].trailing_zeros() as usize) as u64;
                return first + (index.wrapping_sub(start as u64) & self.mask);
            }
        }
        u64::MAX
    }
}

/// What opening a bucket gave: one event, or several in `due`.
enum Opened {
    Nothing,
    One(Due),
    Several,
}

/// Two words in order, without a branch.
#[inline(always)]
fn ascending(a: u64, b: u64) -> (u64, u64) {
    (a.min(b), a.max(b))
}

/// Buckets hold a few events: insertion sort beats the library's below about twenty.
#[inline]
fn sort(events: &mut [u64]) {
    if events.len() > 20 {
        return events.sort_unstable();
    }
    for i in 1..events.len() {
        let event = events[i];
        let mut j = i;
        while j > 0 && events[j - 1] > event {
            events[j] = events[j - 1];
            j -= 1;
        }
        events[j] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn same_time_events_come_in_slot_order_whatever_the_order_of_insertion() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2], [0, 2, 1], [2, 0, 1]] {
            let mut wheel = Wheel::new(3, Span::from_us(1), Span::ZERO, Ties::BySlot, Ahead::NOTHING);
            order.iter().for_each(|&slot| wheel.set(slot, Time::from_ps(5_000)));
            let popped: Vec<u32> = std::iter::from_fn(|| wheel.pop_until(Time::MAX)).map(|(_, due)| due.slot).collect();
            assert_eq!(popped, [0, 1, 2]);
        }
    }

    #[test]
    fn nothing_after_the_limit_is_popped() {
        let mut wheel = Wheel::new(2, Span::from_us(1), Span::ZERO, Ties::BySlot, Ahead::NOTHING);
        wheel.set(0, Time::from_ps(10));
        wheel.set(1, Time::from_ps(11));
        let mut pop = |limit| wheel.pop_until(Time::from_ps(limit)).map(|(time, due)| (time.ps(), due.slot));
        assert_eq!([pop(10), pop(10), pop(11)], [Some((10, 0)), None, Some((11, 1))]);
        assert!(wheel.is_empty());
    }

    /// Of n events that fall due at the same times again and again, each is first as often as every other, and the order of
    /// any two says nothing about a third.
    #[test]
    fn drawn_orders_favour_nobody() {
        let (n, rounds) = (6u32, 6_000u64);
        let mut wheel = Wheel::new(10, Span::from_us(1), Span::ZERO, Ties::Drawn { seed: 7, from: 4 }, Ahead::NOTHING);
        let (mut first, mut sorted) = ([0u32; 10], 0);
        for round in 1..=rounds {
            let at = Time::from_ps(round * 1_000_003);
            (0..10).rev().for_each(|slot| wheel.set(slot, at));
            let order: Vec<u32> = std::iter::from_fn(|| wheel.pop_until(at)).map(|(_, due)| due.slot).collect();
            assert_eq!(order[..4], [0, 1, 2, 3]);
            first[order[4] as usize] += 1;
            sorted += u32::from(order[4..7].is_sorted());
        }
        let expected = rounds as f64 / f64::from(n);
        for slot in 4..10 {
            assert!((f64::from(first[slot]) - expected).abs() < 4.0 * expected.sqrt(), "{first:?}");
        }
        assert!((f64::from(sorted) - 1_000.0).abs() < 4.0 * 30.0, "{sorted} of {rounds} are sorted, one in six is expected");
    }

    proptest! {
        /// Against a sorted set: any mix of near, far, same-bucket and same-time events, any horizon, any limits.
        #[test]
        fn pops_in_total_order(
            horizon in 1u64..1 << 24,
            spacing in 0u64..1 << 16,
            drawn in any::<Option<(u64, u8)>>(),
            (events, span) in (0usize..6, 0u64..1 << 20),
            steps in prop::collection::vec((0u32..40, 0u64..1 << 26, any::<bool>(), 0u64..1 << 25), 1..400),
        ) {
            let ties = drawn.map_or(Ties::BySlot, |(seed, from)| Ties::Drawn { seed, from: u32::from(from % 40) });
            let mut wheel = Wheel::new(40, Span::from_ps(horizon), Span::from_ps(spacing), ties, Ahead { events, span: Span::from_ps(span) });
            let places = Wheel::new(1, Span::from_us(1), Span::ZERO, ties, Ahead::NOTHING);
            let key = |time: u64, slot: u32| places.order.place(time, slot);
            let mut model: BTreeSet<(u64, u64, u32)> = BTreeSet::new();
            let mut now = 0;
            for (slot, ahead, tiny, reach) in steps {
                if !model.iter().any(|&(_, _, s)| s == slot) {
                    let time = now + if tiny { ahead % 7 } else { ahead };
                    wheel.set(slot, Time::from_ps(time));
                    model.insert((time, key(time, slot), slot));
                }
                // A note stays with its event, whatever is set before it.
                if let Some(due) = wheel.known().get_mut(slot as usize % 4) {
                    prop_assert!(due.note == 0 || due.note == due.slot + 1);
                    due.note = due.slot + 1;
                }
                let limit = now + reach;
                if let Some((time, due)) = wheel.pop_until(Time::from_ps(limit)) {
                    prop_assert!(due.note == 0 || due.note == due.slot + 1);
                    let slot = due.slot;
                    prop_assert_eq!(model.pop_first(), Some((time.ps(), key(time.ps(), slot), slot)));
                    prop_assert!(time.ps() <= limit);
                    now = time.ps();
                } else {
                    prop_assert!(model.first().is_none_or(|&(time, ..)| time > limit));
                }
            }
            while let Some((time, slot)) = wheel.pop_until(Time::MAX).map(|(time, due)| (time, due.slot)) {
                prop_assert_eq!(model.pop_first(), Some((time.ps(), key(time.ps(), slot), slot)));
            }
            prop_assert!(model.is_empty() && wheel.is_empty());
        }
    }
}
