//! The calendar queue of events that are never rescheduled.

mod instant;
#[cfg(test)]
mod tests;

use crate::Table;
use fanin_units::{Span, Time};
use instant::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of the slot in an event's word, which are its lowest. The low bits of its time are above them, as many as fit; while
/// a bucket is sorted, the place of the event among those of equal time is between the two.
const SLOT_BITS: u32 = 24;
const PLACE_BITS: u32 = 14;
const TIME_AT: u32 = SLOT_BITS + PLACE_BITS;
const SLOT: u64 = (1 << SLOT_BITS) - 1;
/// Largest bucket width, as a shift \[log2 ps\]: 67 us, as many bits as a sorted word has left for the time. All buckets
/// together then span less than the time that an unsorted word can hold.
const WIDEST: u32 = 64 - TIME_AT;
/// Largest number of buckets: their lines take 256 KiB then. A shorter horizon needs fewer, so that the lines stay in the
/// cache.
const MOST_BUCKETS: u64 = 1 << 12;
/// Popped events that may remain at the front of `due` before the others are moved down: moving costs more than the space.
const MOST_POPPED: usize = 64;
/// Events that fit into a bucket's line.
const ROOM: usize = 8;
/// Marks an overflow bucket in place of its number of events; its line then holds the index of its vector in `overflow`. The
/// bucket at which far events are fetched is always marked so, with or without events.
const OVERFLOW: u8 = u8::MAX;
/// Overflow buckets of at most this many events are sorted one by one.
const FEW: usize = 12;
/// Buckets whose event counts are read in one word (`WINDOW`), and in one step of a longer search (`BLOCK`); as many zero
/// counts follow the last bucket's.
const WINDOW: usize = 8;
const BLOCK: usize = 8 * WINDOW;

/// The events of one bucket: one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; ROOM]);

const _: () = assert!(std::mem::size_of::<Line>() == 64);

/// An event whose bucket is opened, so that its place in the order is known.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    time: u64,
    /// Slot of the event.
    pub slot: u32,
    /// Scratch value for the wheel's user, who may read and write it before the event is popped ([`Wheel::known`]). Zero at
    /// first.
    pub note: u32,
}

impl Due {
    #[inline(always)]
    fn new(time: u64, slot: u32) -> Self {
        Due { time, slot, note: 0 }
    }

    /// Time at which the event is due.
    #[inline(always)]
    pub fn time(&self) -> Time {
        Time::from_ps(self.time)
    }
}

/// Order in which events of equal time are popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// Events of equal time are popped by slot.
    BySlot,
    /// Events of slots below `from` are popped by slot, the others afterwards in a pseudo-random order, drawn anew for each
    /// time: by a hash of seed, time and slot, so that it depends on nothing else.
    Drawn { seed: u64, from: u32 },
}

/// Lookahead: how far ahead buckets are opened, so that the wheel's user knows the next events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Further buckets are opened when at most this many events are known.
    pub events: usize,
    /// Bound of the lookahead, measured from the next event: setting an event within it costs an insertion into a sorted
    /// list.
    pub span: Span,
}

impl Ahead {
    /// No lookahead: one bucket is opened at a time.
    pub const NOTHING: Ahead = Ahead { events: 0, span: Span::ZERO };
}

/// A calendar of events, popped in the total order of time and [`Ties`].
///
/// Slots are numbered by the user so that their order is the order wanted among events of the same time; neither it nor a
/// drawn one depends on the order of insertion. An event in the near future costs a word in its bucket's line, a byte that counts
/// them, and its share of sorting a bucket of a few; one beyond the horizon goes through a heap first.
pub struct Wheel {
    lines: Table<Line>,
    /// Number of events of each bucket, or [`OVERFLOW`]; zeros follow the last bucket's.
    counts: Table<u8>,
    /// Bucket width as a shift, and as the mask of the time within a bucket \[ps\].
    shift: u32,
    width: u64,
    /// Number of buckets − 1, as a mask.
    mask: u64,
    /// Start of the first bucket that is not yet opened; events before it go into `due` \[ps\].
    opened: u64,
    /// Index of the first bucket that is not yet opened; the number of buckets stands for index 0.
    start: usize,
    /// Span from `opened` on within which lines are used: all buckets but one \[ps\]. Zero: all lines are known to be empty,
    /// and need not be searched until an event is set.
    reach: u64,
    /// Events of opened buckets, in order; those before index `next` are popped.
    due: Vec<Due>,
    next: usize,
    /// Index in `due` from which fewer events are known than the lookahead wants.
    low: usize,
    ahead: Ahead,
    /// Events of overflow buckets: more than a line has room for.
    overflow: Table<Vec<u64>>,
    /// Indices of unused vectors of `overflow`.
    spare: Vec<usize>,
    /// Sorter of overflow buckets whose events all have one time.
    instant: Instant,
    /// Events beyond the horizon, as (time, slot).
    far: BinaryHeap<Reverse<(u64, u32)>>,
    /// Start of the bucket at which far events are fetched; none of them is due before.
    far_fetch_at: u64,
    order: Order,
    /// Time of the event popped last; kept in debug builds only.
    popped: u64,
}

/// The order of events of equal time.
#[derive(Clone, Copy)]
struct Order {
    /// First slot whose events have a drawn order.
    drawn_from: u32,
    seed: u64,
}

impl Order {
    /// The drawn place of an event among those of equal time, shifted to its position in a sorted word; zero if the order is
    /// not drawn.
    #[inline(always)]
    fn place(self, time: u64, slot: u32) -> u64 {
        self.place_at(self.instant(time), slot)
    }

    /// The drawn place of `slot` at the time whose hash is `instant` ([`Order::instant`]).
    #[inline(always)]
    fn place_at(self, instant: u64, slot: u32) -> u64 {
        if slot < self.drawn_from {
            0
        } else {
            self.draw(instant, slot)
        }
    }

    /// Hash of a time and the seed, which all events of that time share.
    #[inline(always)]
    fn instant(self, time: u64) -> u64 {
        (time ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }

    #[inline(always)]
    fn draw(self, instant: u64, slot: u32) -> u64 {
        let x = (instant ^ u64::from(slot)).wrapping_mul(0xd1b5_4a32_d192_ed03);
        let x = (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x >> (64 - PLACE_BITS) << SLOT_BITS
    }

    /// True if, of two events at `time`, the one of the later slot `second` is popped before the one of `first`.
    #[inline(always)]
    fn swaps(self, time: u64, first: u32, second: u32) -> bool {
        let instant = self.instant(time);
        first >= self.drawn_from && self.draw(instant, first) > self.draw(instant, second)
    }
}

impl Wheel {
    /// Makes a wheel for slots below `slots` that handles events up to about `horizon` ahead without the heap. Its buckets
    /// are at least `spacing` wide, the time in which a few events fall due, since opening a bucket costs as much as an
    /// event.
    pub fn new(slots: usize, horizon: Span, spacing: Span, ties: Ties, ahead: Ahead) -> Self {
        assert!(slots <= 1 << SLOT_BITS, "{slots} slots");
        let order = match ties {
            Ties::BySlot => Order { seed: 0, drawn_from: u32::MAX },
            Ties::Drawn { seed, from } => Order { seed, drawn_from: from },
        };
        let width = (horizon.ps() / (MOST_BUCKETS - 2)).max(spacing.ps()).clamp(2, 1 << WIDEST).next_power_of_two();
        let buckets = (horizon.ps() / width + 2).next_power_of_two().clamp(64, MOST_BUCKETS);
        Wheel {
            lines: vec![Line([0; ROOM]); buckets as usize].into(),
            counts: vec![0; buckets as usize + BLOCK].into(),
            shift: width.trailing_zeros(),
            width: width - 1,
            mask: buckets - 1,
            opened: 0,
            start: 0,
            reach: whole_reach(width - 1, buckets - 1),
            due: Vec::with_capacity(64),
            next: 0,
            low: 0,
            ahead,
            overflow: Vec::new().into(),
            spare: Vec::new(),
            instant: Instant::default(),
            far: BinaryHeap::new(),
            far_fetch_at: 0,
            order,
            popped: 0,
        }
    }

    /// Schedules an event of `slot` at `at`, which must not be before the last popped event.
    #[inline(always)]
    pub fn set(&mut self, slot: u32, at: Time) {
        let time = at.ps();
        debug_assert!(time >= self.popped, "an event at {time} ps, before the one that was popped last, at {}", self.popped);
        // One comparison separates the common case (a later bucket within the horizon) from both others.
        if time.wrapping_sub(self.opened) >= self.reach {
            return self.set_elsewhere(slot, time);
        }
        let index = (time >> self.shift & self.mask) as usize;
        let (count, word) = (self.counts[index], time << SLOT_BITS | u64::from(slot));
        if usize::from(count) >= ROOM {
            return self.set_in_overflow(index, word);
        }
        // SAFETY: `count` is below `ROOM`.
        unsafe { *self.lines[index].0.get_unchecked_mut(usize::from(count)) = word };
        self.counts[index] = count + 1;
    }

    /// Adds an event to a bucket whose line is full.
    #[inline(never)]
    fn set_in_overflow(&mut self, index: usize, word: u64) {
        if self.counts[index] != OVERFLOW {
            self.make_overflow(index);
        }
        let events = self.lines[index].0[0] as usize;
        self.overflow[events].push(word);
    }

    /// Moves the events of a bucket from its line to an overflow vector, unless they are in one already.
    #[inline(never)]
    fn make_overflow(&mut self, index: usize) {
        let (count, line) = (self.counts[index], &mut self.lines[index].0);
        if count == OVERFLOW {
            return;
        }
        let number = self.spare.pop().unwrap_or(self.overflow.len());
        if number == self.overflow.len() {
            self.overflow.push(Vec::new());
        }
        self.overflow[number].extend_from_slice(&line[..usize::from(count)]);
        (self.counts[index], line[0]) = (OVERFLOW, number as u64);
    }

    #[cold]
    #[inline(never)]
    fn set_elsewhere(&mut self, slot: u32, time: u64) {
        if time >= self.opened {
            if self.reach == 0 {
                self.reach = whole_reach(self.width, self.mask);
                return self.set(slot, Time::from_ps(time));
            }
            self.far.push(Reverse((time, slot)));
            if self.far.len() == 1 {
                self.schedule_far_fetch();
            }
            return;
        }
        if self.next == self.due.len() {
            self.due.clear();
            self.next = 0;
        }
        let key = |time, slot| (time, self.order.place(time, slot), slot);
        let event = key(time, slot);
        let at = self.due[self.next..].partition_point(|other| other.time < time || key(other.time, other.slot) < event);
        self.due.insert(self.next + at, Due::new(time, slot));
        self.update_low();
    }

    /// Marks the last bucket that has a line now as the one at which far events are fetched; all of them are due after it.
    fn schedule_far_fetch(&mut self) {
        self.far_fetch_at = (self.opened + self.reach - 1) & !self.width;
        self.make_overflow((self.far_fetch_at >> self.shift & self.mask) as usize);
    }

    /// Pops the next event if it is not after `limit`; `AHEAD`: then tops up the lookahead.
    #[inline(always)]
    pub fn pop_until<const AHEAD: bool>(&mut self, limit: Time) -> Option<(Time, Due)> {
        if AHEAD {
            if self.next >= self.low && !self.open_until_known(limit.ps()) {
                return None;
            }
        } else if self.next == self.due.len() {
            let mut window = self.window_at(self.start);
            if window == 0 {
                if !self.seek(limit.ps()) {
                    return None;
                }
                window = self.window_at(self.start);
            }
            let index = self.start + (window.trailing_zeros() / 8) as usize;
            let (count, line, base) = (self.counts[index], &self.lines[index].0, self.opened);
            // The time since `base`, and the slot.
            let since = |word: u64| word.wrapping_sub(base << SLOT_BITS);
            let due = |event: u64| Due::new(base + (event >> SLOT_BITS), (event & SLOT) as u32);
            // Most buckets have one event or two, of which the first goes straight to the user.
            if count == 1 {
                let event = due(since(line[0]));
                return if event.time <= limit.ps() { Some(self.pop_first(index, event)) } else { None };
            }
            if count == 2 {
                let (first, second) = ascending(since(line[0]), since(line[1]));
                let (mut first, mut second) = (due(first), due(second));
                if first.time > limit.ps() {
                    return None;
                }
                if first.time == second.time && self.order.swaps(first.time, first.slot, second.slot) {
                    std::mem::swap(&mut first, &mut second);
                }
                self.next = 0;
                // SAFETY: `due` never has less room than at first, and nothing in it is still wanted.
                unsafe {
                    self.due.as_mut_ptr().write(second);
                    self.due.set_len(1);
                }
                return Some(self.pop_first(index, first));
            }
            if !self.open_several(index, limit.ps()) {
                return None;
            }
        }
        self.pop_known(limit)
    }

    /// Pops the first event of the first occupied bucket, whose other events are in `due`.
    #[inline(always)]
    fn pop_first(&mut self, index: usize, event: Due) -> (Time, Due) {
        self.counts[index] = 0;
        self.start = index + 1;
        self.opened = (event.time | self.width) + 1;
        self.popped(event)
    }

    /// Advances to the next bucket with events, if none of the next few has any; false if there is none up to `limit`.
    #[inline(never)]
    fn seek(&mut self, limit: u64) -> bool {
        let next = self.next_occupied_further(limit);
        match next {
            Some((index, begin)) => (self.start, self.opened) = (index, begin),
            None => self.note_empty(limit),
        }
        next.is_some()
    }

    /// Pops the next known event, which must exist.
    #[inline(always)]
    fn pop_known(&mut self, limit: Time) -> Option<(Time, Due)> {
        debug_assert!(self.next < self.due.len());
        // SAFETY: as asserted.
        let event = unsafe { *self.due.get_unchecked(self.next) };
        if event.time > limit.ps() {
            return None;
        }
        self.next += 1;
        Some(self.popped(event))
    }

    /// Opens a bucket with several events, the first that may have any. False: neither it nor any other bucket has an event
    /// up to `limit`.
    #[inline(never)]
    fn open_several(&mut self, index: usize, limit: u64) -> bool {
        self.due.clear();
        (self.next, self.low) = (0, 0);
        let begin = self.opened + (((index - self.start) as u64) << self.shift);
        self.open(index, begin, limit) || self.open_next(limit)
    }

    /// Opens buckets until at least one event is known, and as many as the lookahead wants. False: there is no event up to
    /// `limit`.
    #[inline(never)]
    fn open_until_known(&mut self, limit: u64) -> bool {
        if self.next == self.due.len() {
            self.due.clear();
            (self.next, self.low) = (0, 0);
            if !self.open_next(limit) {
                self.note_empty(limit);
                return false;
            }
        }
        self.top_up_lookahead();
        self.update_low();
        true
    }

    /// Records that there is no event up to `limit`, so that the search resumes at its bucket, or is skipped until an event
    /// is set if there is none at all.
    fn note_empty(&mut self, limit: u64) {
        // Where many have been searched in vain, it is worth to search them all.
        if limit.saturating_sub(self.opened) >> self.shift >= self.mask / 4 && self.has_no_lines() {
            self.reach = 0;
        }
        self.move_to(self.opened.max(limit & !self.width));
    }

    /// Moves the boundary between opened and unopened buckets to `begin`; no bucket before has events.
    fn move_to(&mut self, begin: u64) {
        (self.opened, self.start) = (begin, (begin >> self.shift & self.mask) as usize);
    }

    #[inline(always)]
    fn popped(&mut self, event: Due) -> (Time, Due) {
        if cfg!(debug_assertions) {
            self.popped = event.time;
        }
        (Time::from_ps(event.time), event)
    }

    /// The known events that follow the one popped last, in order.
    #[inline(always)]
    pub fn known(&mut self) -> &mut [Due] {
        debug_assert!(self.next <= self.due.len());
        // SAFETY: `next` counts events of `due` that are popped.
        unsafe { self.due.get_unchecked_mut(self.next..) }
    }

    /// Time of the next event; [`Time::MAX`] if there is none.
    pub fn next(&self) -> Time {
        if let Some(event) = self.due.get(self.next) {
            return event.time();
        }
        let far = self.far.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
        let buckets = self.mask + 1;
        let first = self.next_occupied(u64::MAX).and_then(|(_, begin)| {
            let from = (begin - self.opened) >> self.shift;
            // The bucket at which far events are fetched may be the first, and have none of its own.
            (from..buckets).find_map(|further| {
                let (begin, index) =
                    (self.opened + (further << self.shift), ((self.start as u64 + further) & self.mask) as usize);
                let line = &self.lines[index].0;
                let events = match self.counts[index] {
                    OVERFLOW => &self.overflow[line[0] as usize][..],
                    count => &line[..usize::from(count)],
                };
                events.iter().map(|event| begin | event >> SLOT_BITS & self.width).min()
            })
        });
        Time::from_ps(first.unwrap_or(u64::MAX).min(far))
    }

    /// Place of a slot's event among those of one time, before its slot decides.
    pub fn place(&self, time: Time, slot: u32) -> u64 {
        self.order.place(time.ps(), slot)
    }

    /// True if no event is scheduled.
    pub fn is_empty(&self) -> bool {
        self.next == self.due.len() && self.far.is_empty() && self.has_no_lines()
    }

    /// True if no unopened bucket has events or is the one at which far events are fetched.
    fn has_no_lines(&self) -> bool {
        self.reach == 0 || (0..self.lines.len()).step_by(BLOCK).all(|at| self.block_is_empty(at))
    }

    /// Updates `low`, the index in `due` from which fewer events are known than the lookahead wants.
    #[inline(always)]
    fn update_low(&mut self) {
        self.low = self.due.len().saturating_sub(self.ahead.events);
    }

    /// Opens buckets until twice as many events are known as the lookahead wants, so that this is seldom done.
    #[inline(never)]
    fn top_up_lookahead(&mut self) {
        if self.next > MOST_POPPED {
            self.due.drain(..self.next);
            self.next = 0;
        }
        let until = self.due[self.next].time + self.ahead.span.ps();
        let wanted = self.next + 2 * self.ahead.events;
        while self.due.len() < wanted && self.open_next(until) {}
    }

    /// Opens the next bucket that has events, unless it begins after `limit`. True if there was one.
    #[inline(always)]
    fn open_next(&mut self, limit: u64) -> bool {
        while let Some((index, begin)) = self.next_occupied(limit) {
            if self.open(index, begin, limit) {
                return true;
            }
        }
        false
    }

    /// Opens a bucket before which none has events. True if it had any.
    #[inline(always)]
    fn open(&mut self, index: usize, begin: u64, limit: u64) -> bool {
        let count = usize::from(std::mem::take(&mut self.counts[index]));
        (self.opened, self.start) = (begin + self.width + 1, index + 1);
        let known = self.due.len();
        if count > ROOM {
            self.open_overflow(index, begin, limit);
            return self.due.len() > known;
        }
        let (width, order, events) = (self.width, self.order, self.lines[index].0);
        let within = |event: u64| event >> SLOT_BITS & width;
        if count == 1 {
            // Nothing to sort, and no place to draw.
            self.due.push(Due::new(begin | within(events[0]), (events[0] & SLOT) as u32));
            return true;
        }
        let key = |event: u64| {
            let (within, slot) = (within(event), (event & SLOT) as u32);
            within << TIME_AT | order.place(begin | within, slot) | u64::from(slot)
        };
        self.due.reserve(ROOM);
        let end = self.due.as_mut_ptr().wrapping_add(known);
        // SAFETY: there is room for `ROOM` more, and `count` is no more than that.
        let put = |i: usize, key: u64| unsafe { end.add(i).write(Due::new(begin | key >> TIME_AT, (key & SLOT) as u32)) };
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
                // What is missing comes last, and is not counted.
                let mut keys = [u64::MAX; ROOM];
                keys.iter_mut().zip(events).take(count).for_each(|(word, event)| *word = key(event));
                if count <= 6 {
                    exchange(&mut keys, SIX);
                } else {
                    exchange(&mut keys, EIGHT);
                }
                keys.iter().enumerate().for_each(|(i, key)| put(i, *key));
            }
        }
        // SAFETY: so many have just been written.
        unsafe { self.due.set_len(known + count) };
        true
    }

    /// Opens an overflow bucket, or the bucket at which far events are fetched.
    #[inline(never)]
    fn open_overflow(&mut self, index: usize, begin: u64, limit: u64) {
        let number = self.lines[index].0[0] as usize;
        let mut events = std::mem::take(&mut self.overflow[number]);
        let within = |event: u64| event >> SLOT_BITS & self.width;
        let first = events.first().copied().unwrap_or_default();
        if events.len() > FEW && events.iter().fold(0, |differ, event| differ | event ^ first) <= SLOT {
            let time = begin | within(first);
            self.due.extend(self.instant.in_order(self.order, time, &mut events).map(|slot| Due::new(time, slot)));
        } else {
            for event in &mut events {
                let (within, slot) = (within(*event), (*event & SLOT) as u32);
                *event = within << TIME_AT | self.order.place(begin | within, slot) | u64::from(slot);
            }
            sort(&mut events);
            self.due.extend(events.iter().map(|word| Due::new(begin | word >> TIME_AT, (word & SLOT) as u32)));
        }
        events.clear();
        self.overflow[number] = events;
        self.spare.push(number);
        if begin == self.far_fetch_at {
            self.fetch_far(limit);
        }
    }

    /// Moves the far events that the horizon has reached into lines. If nothing else is scheduled, goes on to the first of
    /// them at once, but not beyond `limit`.
    #[cold]
    #[inline(never)]
    fn fetch_far(&mut self, limit: u64) {
        if let Some(Reverse((first, _))) = self.far.peek() {
            let begin = (*first).min(limit) & !self.width;
            if begin > self.opened && self.has_no_lines() {
                self.move_to(begin);
            }
        }
        while let Some(Reverse((time, slot))) = self.far.peek().copied() {
            if time - self.opened >= self.reach {
                return self.schedule_far_fetch();
            }
            self.far.pop();
            self.set(slot, Time::from_ps(time));
        }
    }

    /// The event counts of [`WINDOW`] buckets from `index` on, the first in the lowest byte.
    #[inline(always)]
    fn window_at(&self, index: usize) -> u64 {
        debug_assert!(index + WINDOW <= self.counts.len());
        // SAFETY: as asserted: no bucket is beyond the last, and as many zeros stand behind that.
        u64::from_le(unsafe { self.counts.as_ptr().add(index).cast::<u64>().read_unaligned() })
    }

    /// True if none of the [`BLOCK`] buckets from `index` on has events.
    #[inline(always)]
    fn block_is_empty(&self, index: usize) -> bool {
        (0..BLOCK).step_by(WINDOW).fold(0, |all, at| all | self.window_at(index + at)) == 0
    }

    /// Index and start of the first unopened bucket that has events, unless it begins after `limit`.
    #[inline(always)]
    fn next_occupied(&self, limit: u64) -> Option<(usize, u64)> {
        let window = self.window_at(self.start);
        if window == 0 {
            return self.next_occupied_further(limit);
        }
        let further = (window.trailing_zeros() / 8) as usize;
        let begin = self.opened + ((further as u64) << self.shift);
        (begin <= limit).then_some((self.start + further, begin))
    }

    /// Searches all unopened buckets for the first that has events, if none of the next few has.
    #[inline(always)]
    fn next_occupied_further(&self, limit: u64) -> Option<(usize, u64)> {
        // Buckets from the first one that is not open: how far it may be, and how far it is.
        if self.reach == 0 {
            return None;
        }
        let most = limit.checked_sub(self.opened)? >> self.shift;
        let end = most.min(self.mask) as usize;
        let (mut at, mut further) = (self.start, 0);
        loop {
            // The window here has none.
            let step = if further >= BLOCK && self.block_is_empty(at) { BLOCK } else { WINDOW };
            let step = step.min(self.lines.len() - at);
            (at, further) = (at + step, further + step);
            if further > end {
                return None;
            }
            if at == self.lines.len() {
                at = 0;
            }
            let window = self.window_at(at);
            if window != 0 {
                let skip = (window.trailing_zeros() / 8) as usize;
                let further = (further + skip) as u64;
                return (further <= most).then_some((at + skip, self.opened + (further << self.shift)));
            }
        }
    }
}

/// Time that all buckets but one span \[ps\], from the masks of the time in a bucket and of the bucket index.
fn whole_reach(width: u64, mask: u64) -> u64 {
    mask * (width + 1)
}

/// The two words in ascending order, without a branch.
#[inline(always)]
fn ascending(a: u64, b: u64) -> (u64, u64) {
    (a.min(b), a.max(b))
}

/// Sorting networks: pairs of places to compare, in order.
const SIX: [(usize, usize); 12] =
    [(0, 5), (1, 3), (2, 4), (1, 2), (3, 4), (0, 3), (2, 5), (0, 1), (2, 3), (4, 5), (1, 2), (3, 4)];
const EIGHT: [(usize, usize); 19] = [
    (0, 2),
    (1, 3),
    (4, 6),
    (5, 7),
    (0, 4),
    (1, 5),
    (2, 6),
    (3, 7),
    (0, 1),
    (2, 3),
    (4, 5),
    (6, 7),
    (2, 4),
    (3, 5),
    (1, 4),
    (3, 6),
    (1, 2),
    (3, 4),
    (5, 6),
];

/// Sorts by a sorting network, without a branch.
#[inline(always)]
fn exchange<const N: usize>(keys: &mut [u64; ROOM], network: [(usize, usize); N]) {
    for (a, b) in network {
        (keys[a], keys[b]) = ascending(keys[a], keys[b]);
    }
}

/// Sorts the events of an overflow bucket: mostly few, so that insertion sort beats the library's (below about twenty).
#[inline]
fn sort(events: &mut [u64]) {
    if events.len() > 20 {
        return events.sort_unstable();
    }
    insert(events);
}

/// Sorts by insertion.
#[inline(always)]
fn insert(events: &mut [u64]) {
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
