//! Events that stay where they are set, in buckets of time.

mod instant;
#[cfg(test)]
mod tests;

use crate::Table;
use fanin_units::{Span, Time};
use instant::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Low bits of an event's word: its slot; above them the low bits of its time, as many as there is room for. While a bucket is
/// sorted its place among those of the same time stands between them.
const SLOT_BITS: u32 = 24;
const PLACE_BITS: u32 = 14;
const TIME_AT: u32 = SLOT_BITS + PLACE_BITS;
const SLOT: u64 = (1 << SLOT_BITS) - 1;
/// Widest bucket: what is left for the time within it while it is sorted, 67 us. All buckets together so span less than the time
/// that a word has room for.
const WIDEST: u32 = 64 - TIME_AT;
/// Most buckets: their lines are 256 KiB then. Fewer where the horizon needs fewer, so that the lines stay in the cache.
const MOST_BUCKETS: u64 = 1 << 12;
/// Events that are popped and still stand before those that are known: moving these costs more than the room.
const MOST_POPPED: usize = 64;
/// Events that fit into a bucket's line.
const ROOM: usize = 8;
/// In place of their number: the events of this bucket are in a crowd, whose number stands in its line. The bucket at which far
/// events are looked at is one too, whether it has any or not.
const CROWD: u8 = u8::MAX;
/// Crowds of no more events than this are sorted one by one.
const FEW: usize = 12;
/// Buckets whose numbers of events are read at once; and where none is near, after so many. So many zeros stand behind the last bucket's.
const WINDOW: usize = 8;
const BLOCK: usize = 8 * WINDOW;

/// A bucket's events, one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; ROOM]);

const _: () = assert!(std::mem::size_of::<Line>() == 64);

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
/// drawn one depends on the order of insertion. An event in the near future costs a word in its bucket's line, a byte that counts
/// them, and its share of sorting a bucket of a few; one beyond the horizon goes through a heap first.
pub struct Wheel {
    lines: Table<Line>,
    /// By bucket, its events, or [`CROWD`]; then zeros.
    counts: Table<u8>,
    /// Width of a bucket, as a shift and as a mask of the time within it.
    shift: u32,
    width: u64,
    /// Number of buckets − 1.
    mask: u64,
    /// Where the first bucket begins whose events are in its line; what is set before goes into `due` \[ps\].
    opened: u64,
    /// That bucket, or the number of buckets in place of 0.
    start: usize,
    /// How far from there on lines are used: all buckets but one \[ps\]. Zero: all of them have been found empty, so that they need not be
    /// searched again until an event is set.
    reach: u64,
    /// Events of the opened buckets, in order; those before `next` are popped.
    due: Vec<Due>,
    next: usize,
    /// From here on too few are known: as many as are wanted ahead before the end of `due`.
    low: usize,
    ahead: Ahead,
    /// Buckets with more events than a line has room for.
    crowds: Table<Vec<u64>>,
    /// Those that are not in use.
    spare: Vec<usize>,
    /// Puts crowds of one instant in order.
    instant: Instant,
    /// Beyond the horizon.
    far: BinaryHeap<Reverse<(u64, u32)>>,
    /// Where the bucket begins at which they are looked at: none of them is due before.
    look_far: u64,
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
        self.place_at(self.instant(time), slot)
    }

    /// The same, by what all events of the time have in common.
    #[inline(always)]
    fn place_at(self, instant: u64, slot: u32) -> u64 {
        if slot < self.drawn_from {
            0
        } else {
            self.draw(instant, slot)
        }
    }

    /// What all events of a time have in common.
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

    /// Whether two events of the same time, the second of a later slot, are popped the other way round.
    #[inline(always)]
    fn turns(self, time: u64, first: u32, second: u32) -> bool {
        let instant = self.instant(time);
        first >= self.drawn_from && self.draw(instant, first) > self.draw(instant, second)
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
            crowds: Vec::new().into(),
            spare: Vec::new(),
            instant: Instant::default(),
            far: BinaryHeap::new(),
            look_far: 0,
            order,
            popped: 0,
        }
    }

    /// Sets an event of `slot` at `at`, which must not be before the last popped event.
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
            return self.set_in_crowd(index, word);
        }
        // SAFETY: `count` is below `ROOM`.
        unsafe { *self.lines[index].0.get_unchecked_mut(usize::from(count)) = word };
        self.counts[index] = count + 1;
    }

    /// Many events in a bucket.
    #[inline(never)]
    fn set_in_crowd(&mut self, index: usize, word: u64) {
        if self.counts[index] != CROWD {
            self.make_crowd(index);
        }
        let crowd = self.lines[index].0[0] as usize;
        self.crowds[crowd].push(word);
    }

    /// What a bucket has in its line becomes a crowd, if it is none yet.
    #[inline(never)]
    fn make_crowd(&mut self, index: usize) {
        let (count, line) = (self.counts[index], &mut self.lines[index].0);
        if count == CROWD {
            return;
        }
        let number = self.spare.pop().unwrap_or(self.crowds.len());
        if number == self.crowds.len() {
            self.crowds.push(Vec::new());
        }
        self.crowds[number].extend_from_slice(&line[..usize::from(count)]);
        (self.counts[index], line[0]) = (CROWD, number as u64);
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
                self.look_when_it_can_be_reached();
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
        self.note_known();
    }

    /// Far events are looked at in the last bucket that has a line now. They are all due after it.
    fn look_when_it_can_be_reached(&mut self) {
        self.look_far = (self.opened + self.reach - 1) & !self.width;
        self.make_crowd((self.look_far >> self.shift & self.mask) as usize);
    }

    /// Takes the next event if it is not after `limit`. `AHEAD`: with those that are wanted ahead known afterwards; without it they
    /// need not be.
    #[inline(always)]
    pub fn pop_until<const AHEAD: bool>(&mut self, limit: Time) -> Option<(Time, Due)> {
        if AHEAD {
            if self.next >= self.low && !self.know(limit.ps()) {
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
                if first.time == second.time && self.order.turns(first.time, first.slot, second.slot) {
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

    /// Takes an event of a bucket that is the first with any; the others of it are in `due`.
    #[inline(always)]
    fn pop_first(&mut self, index: usize, event: Due) -> (Time, Due) {
        self.counts[index] = 0;
        self.start = index + 1;
        self.opened = (event.time | self.width) + 1;
        self.popped(event)
    }

    /// Goes on to the next bucket with events, if it does not begin after `limit`; there is none among the next few.
    #[inline(never)]
    fn seek(&mut self, limit: u64) -> bool {
        let next = self.next_occupied_further(limit);
        match next {
            Some((index, begin)) => (self.start, self.opened) = (index, begin),
            None => self.note_nothing(limit),
        }
        next.is_some()
    }

    /// Takes the next known event, of which there is one.
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

    /// Opens a bucket with several events, the first that has any. False: it had none after all, nor has any other up to `limit`.
    #[inline(never)]
    fn open_several(&mut self, index: usize, limit: u64) -> bool {
        self.due.clear();
        (self.next, self.low) = (0, 0);
        let begin = self.opened + (((index - self.start) as u64) << self.shift);
        self.open(index, begin, limit) || self.open_next(limit)
    }

    /// Opens buckets until one event is known at least, and as many as are wanted. False: there is none up to `limit`.
    #[inline(never)]
    fn know(&mut self, limit: u64) -> bool {
        if self.next == self.due.len() {
            self.due.clear();
            (self.next, self.low) = (0, 0);
            if !self.open_next(limit) {
                self.note_nothing(limit);
                return false;
            }
        }
        self.look_further();
        self.note_known();
        true
    }

    /// There is nothing up to `limit`: it is not searched again before the bucket of that, nor at all until an event is set if there is none.
    fn note_nothing(&mut self, limit: u64) {
        // Where many have been searched in vain, it is worth to search them all.
        if limit.saturating_sub(self.opened) >> self.shift >= self.mask / 4 && self.has_no_lines() {
            self.reach = 0;
        }
        self.move_to(self.opened.max(limit & !self.width));
    }

    /// The first bucket that is not open begins here; there is nothing before.
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

    /// The events that follow the one that was popped last, in order, as far as they are known.
    #[inline(always)]
    pub fn known(&mut self) -> &mut [Due] {
        debug_assert!(self.next <= self.due.len());
        // SAFETY: `next` counts events of `due` that are popped.
        unsafe { self.due.get_unchecked_mut(self.next..) }
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.next == self.due.len() && self.far.is_empty() && self.has_no_lines()
    }

    /// Whether no bucket that is not open has events, nor is one where far events are looked at.
    fn has_no_lines(&self) -> bool {
        self.reach == 0 || (0..self.lines.len()).step_by(BLOCK).all(|at| self.block_is_empty(at))
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
        while self.due.len() < wanted && self.open_next(until) {}
    }

    /// Opens the next bucket that has events, unless it begins after `limit`. Whether it did.
    #[inline(always)]
    fn open_next(&mut self, limit: u64) -> bool {
        while let Some((index, begin)) = self.next_occupied(limit) {
            if self.open(index, begin, limit) {
                return true;
            }
        }
        false
    }

    /// Opens a bucket, before which none has events. Whether it had any.
    #[inline(always)]
    fn open(&mut self, index: usize, begin: u64, limit: u64) -> bool {
        let count = usize::from(std::mem::take(&mut self.counts[index]));
        (self.opened, self.start) = (begin + self.width + 1, index + 1);
        let known = self.due.len();
        if count > ROOM {
            self.open_crowd(index, begin, limit);
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

    /// Opens a bucket whose events are in a crowd, or at which far ones are looked at.
    #[inline(never)]
    fn open_crowd(&mut self, index: usize, begin: u64, limit: u64) {
        let number = self.lines[index].0[0] as usize;
        let mut crowd = std::mem::take(&mut self.crowds[number]);
        let within = |event: u64| event >> SLOT_BITS & self.width;
        let first = crowd.first().copied().unwrap_or_default();
        if crowd.len() > FEW && crowd.iter().fold(0, |differ, event| differ | event ^ first) <= SLOT {
            let time = begin | within(first);
            self.due.extend(self.instant.in_order(self.order, time, &mut crowd).map(|slot| Due::new(time, slot)));
        } else {
            for event in &mut crowd {
                let (within, slot) = (within(*event), (*event & SLOT) as u32);
                *event = within << TIME_AT | self.order.place(begin | within, slot) | u64::from(slot);
            }
            sort(&mut crowd);
            self.due.extend(crowd.iter().map(|word| Due::new(begin | word >> TIME_AT, (word & SLOT) as u32)));
        }
        crowd.clear();
        self.crowds[number] = crowd;
        self.spare.push(number);
        if begin == self.look_far {
            self.fetch_far(limit);
        }
    }

    /// Moves far events that the horizon has reached into lines. Where nothing else is left it goes on to the first of them at once, but
    /// not beyond `limit`.
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
                return self.look_when_it_can_be_reached();
            }
            self.far.pop();
            self.set(slot, Time::from_ps(time));
        }
    }

    /// The numbers of events of the next buckets from `index` on, the first of them in the low bits.
    #[inline(always)]
    fn window_at(&self, index: usize) -> u64 {
        debug_assert!(index + WINDOW <= self.counts.len());
        // SAFETY: as asserted: no bucket is beyond the last, and as many zeros stand behind that.
        u64::from_le(unsafe { self.counts.as_ptr().add(index).cast::<u64>().read_unaligned() })
    }

    /// Whether none of a block of buckets from `index` on has events.
    #[inline(always)]
    fn block_is_empty(&self, index: usize) -> bool {
        (0..BLOCK).step_by(WINDOW).fold(0, |all, at| all | self.window_at(index + at)) == 0
    }

    /// The first bucket that is not open and has events, and where it begins, unless that is after `limit`.
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

    /// The same where none is among the next few.
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

/// Of all buckets but one, by the masks of the time in a bucket and of the number of one.
fn whole_reach(width: u64, mask: u64) -> u64 {
    mask * (width + 1)
}

/// Two words in order, without a branch.
#[inline(always)]
fn ascending(a: u64, b: u64) -> (u64, u64) {
    (a.min(b), a.max(b))
}

/// Sorting networks: which places are compared, one pair after the other.
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

/// Sorts by a network, without a branch.
#[inline(always)]
fn exchange<const N: usize>(keys: &mut [u64; ROOM], network: [(usize, usize); N]) {
    for (a, b) in network {
        (keys[a], keys[b]) = ascending(keys[a], keys[b]);
    }
}

/// Crowds are small mostly: insertion sort beats the library's below about twenty.
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
