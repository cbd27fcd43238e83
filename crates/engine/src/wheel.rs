//! Events that stay: one per slot, in buckets of time.

use crate::Table;
use fanin_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;
/// Low bits of a due event: its slot. Above them its place among those of the same time, and above that the time.
const SLOT_BITS: u32 = 24;
const PLACE_BITS: u32 = 14;
const TIME_AT: u32 = SLOT_BITS + PLACE_BITS;
/// Widest bucket, so that twice its width fits into a due event: 16 us.
const WIDEST: u32 = 62 - TIME_AT;
/// 4096 list heads are 16 KiB: half of a first-level cache.
const BUCKETS: usize = 1 << 12;
const WORDS: usize = BUCKETS / 64;

#[derive(Clone, Copy)]
struct Slot {
    time: u64,
    next: u32,
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

/// A calendar of at most one event per slot, popped in the total order of time and [`Ties`].
///
/// Slots are numbered by the user so that their order is the order wanted among events of the same time; neither it nor a
/// drawn one depends on the order of insertion. An event in the near future costs one list insertion and its share of sorting a
/// bucket of a few; one beyond the horizon goes through a heap first.
pub struct Wheel {
    slots: Table<Slot>,
    heads: Table<u32>,
    /// One bit per non-empty bucket.
    occupied: [u64; WORDS],
    shift: u32,
    /// The bucket (absolute, not modulo) whose events are in `due`; buckets after it are in lists.
    open: u64,
    /// Start of the open bucket, or earlier.
    base: u64,
    /// Events of the open bucket, latest first, so that the next is popped from the end. Each is one word, which sorts in half
    /// the instructions of a pair: time since `base`, place among those of the same time, slot.
    due: Vec<u64>,
    /// Beyond the horizon.
    far: BinaryHeap<Reverse<(u64, u32)>>,
    /// Bucket of the first of them.
    next_far: u64,
    /// Slots from here on have a drawn order among events of the same time.
    drawn_from: u32,
    seed: u64,
}

impl Wheel {
    /// A wheel of `slots` slots that handles events up to about `horizon` ahead without the heap, with buckets at least
    /// `spacing` wide: the time in which a few events fall due, since opening a bucket costs as much as an event.
    pub fn new(slots: usize, horizon: Span, spacing: Span, ties: Ties) -> Self {
        assert!(slots < 1 << SLOT_BITS, "{slots} slots");
        let (seed, drawn_from) = match ties {
            Ties::BySlot => (0, u32::MAX),
            Ties::Drawn { seed, from } => (seed, from),
        };
        let width = (horizon.ps() / (BUCKETS as u64 - 1)).max(spacing.ps()).clamp(1, 1 << WIDEST).next_power_of_two();
        Wheel {
            slots: vec![Slot { time: 0, next: NONE }; slots].into(),
            heads: vec![NONE; BUCKETS].into(),
            occupied: [0; WORDS],
            shift: width.trailing_zeros(),
            open: 0,
            base: 0,
            due: Vec::with_capacity(64),
            far: BinaryHeap::new(),
            next_far: u64::MAX,
            drawn_from,
            seed,
        }
    }

    /// Sets the event of `slot`, which must have none, at `at`, which must not be before the last popped event.
    #[inline(always)]
    pub fn set(&mut self, slot: u32, at: Time) {
        let time = at.ps();
        let bucket = time >> self.shift;
        // One comparison separates the common case (a later bucket within the horizon) from both others.
        if bucket.wrapping_sub(self.open + 1) < BUCKETS as u64 - 1 {
            let index = bucket as usize & (BUCKETS - 1);
            self.slots[slot as usize] = Slot { time, next: self.heads[index] };
            self.heads[index] = slot;
            self.occupied[index / 64] |= 1 << (index % 64);
        } else {
            self.set_elsewhere(slot, time, bucket);
        }
    }

    #[cold]
    #[inline(never)]
    fn set_elsewhere(&mut self, slot: u32, time: u64, bucket: u64) {
        if bucket > self.open {
            self.far.push(Reverse((time, slot)));
            self.next_far = self.next_far.min(bucket);
            return;
        }
        if time < self.base {
            self.rebase(time);
        }
        if let [alone] = self.due[..] {
            let (time, slot) = self.unpack(alone);
            self.due[0] = self.pack(time, slot);
        }
        let event = self.pack(time, slot);
        let at = self.due.partition_point(|&other| other > event);
        self.due.insert(at, event);
    }

    /// Makes room before the open bucket: a caller has asked further ahead than the next event and then set an earlier one.
    fn rebase(&mut self, base: u64) {
        let further = self.base - base;
        if further <= 1 << WIDEST && self.due.first().is_none_or(|latest| latest >> TIME_AT <= 1 << WIDEST) {
            self.due.iter_mut().for_each(|event| *event += further << TIME_AT);
            self.base = base;
        } else {
            self.start_over(base);
        }
    }

    /// Opens the bucket of `time`, which lies long before all that is set: everything goes through the heap once more.
    #[cold]
    fn start_over(&mut self, time: u64) {
        for event in std::mem::take(&mut self.due) {
            self.far.push(Reverse(self.unpack(event)));
        }
        for head in self.heads.iter_mut() {
            let mut slot = std::mem::replace(head, NONE);
            while slot != NONE {
                let event = self.slots[slot as usize];
                self.far.push(Reverse((event.time, slot)));
                slot = event.next;
            }
        }
        self.occupied = [0; WORDS];
        self.next_far = self.far.peek().map_or(u64::MAX, |Reverse((time, _))| time >> self.shift);
        self.open = time >> self.shift;
        self.base = time;
    }

    #[inline(always)]
    fn pack(&self, time: u64, slot: u32) -> u64 {
        (time - self.base) << TIME_AT | self.place(time, slot) | u64::from(slot)
    }

    /// The drawn place of an event among those of the same time, as it stands in a due event.
    #[inline(always)]
    fn place(&self, time: u64, slot: u32) -> u64 {
        if slot < self.drawn_from {
            return 0;
        }
        let x = (time ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x >> 32 ^ u64::from(slot)).wrapping_mul(0xd1b5_4a32_d192_ed03);
        let x = (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x >> (64 - PLACE_BITS) << SLOT_BITS
    }

    #[inline(always)]
    fn unpack(&self, event: u64) -> (u64, u32) {
        (self.base + (event >> TIME_AT), event as u32 & ((1 << SLOT_BITS) - 1))
    }

    /// Takes the next event if it is not after `limit`.
    #[inline(always)]
    pub fn pop_until(&mut self, limit: Time) -> Option<(Time, u32)> {
        if self.due.is_empty() && !self.open_next(limit) {
            return None;
        }
        let (time, slot) = self.unpack(*self.due.last()?);
        if time > limit.ps() {
            return None;
        }
        self.due.pop();
        Some((Time::from_ps(time), slot))
    }

    /// The slots of the next three events, when as many are known already; for prefetching.
    #[inline(always)]
    pub fn next_slots(&self) -> Option<[u32; 3]> {
        match self.due[..] {
            [.., c, b, a] => Some([a, b, c].map(|event| self.unpack(event).1)),
            _ => None,
        }
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty() && self.far.is_empty() && self.occupied.iter().all(|word| *word == 0)
    }

    /// Opens the next bucket that has events, unless it begins after `limit`; `due` is empty before.
    fn open_next(&mut self, limit: Time) -> bool {
        let next_listed = self.next_occupied();
        let bucket = next_listed.min(self.next_far);
        if bucket > limit.ps() >> self.shift || bucket == u64::MAX {
            return false;
        }
        self.open = bucket;
        self.base = bucket << self.shift;
        if self.next_far < bucket + BUCKETS as u64 {
            self.fetch_far(bucket);
        }
        if next_listed == bucket {
            let index = bucket as usize & (BUCKETS - 1);
            let mut slot = std::mem::replace(&mut self.heads[index], NONE);
            self.occupied[index / 64] &= !(1 << (index % 64));
            let event = self.slots[slot as usize];
            if event.next == NONE && self.due.is_empty() {
                // Alone in its bucket, as most are: nothing to sort, and no place to draw.
                self.due.push((event.time - self.base) << TIME_AT | u64::from(slot));
                return true;
            }
            while slot != NONE {
                let event = self.slots[slot as usize];
                let word = self.pack(event.time, slot);
                self.due.push(word);
                slot = event.next;
            }
        }
        if self.due.len() > 1 {
            sort_latest_first(&mut self.due);
        }
        true
    }

    /// Moves far events that the horizon has reached into lists, those of the opened bucket into `due`.
    #[cold]
    fn fetch_far(&mut self, bucket: u64) {
        while let Some(Reverse((time, slot))) = self.far.peek().copied() {
            self.next_far = time >> self.shift;
            if self.next_far >= bucket + BUCKETS as u64 {
                return;
            }
            self.far.pop();
            if self.next_far == bucket {
                let event = self.pack(time, slot);
                self.due.push(event);
            } else {
                self.set(slot, Time::from_ps(time));
            }
        }
        self.next_far = u64::MAX;
    }

    /// The first non-empty bucket after the open one; `u64::MAX` when there is none.
    fn next_occupied(&self) -> u64 {
        let first = self.open + 1;
        let start = first as usize & (BUCKETS - 1);
        let mut word = start / 64;
        let mut bits = self.occupied[word] & (!0u64 << (start % 64));
        // One word more than there are: the first is read twice, for its low bits last.
        for _ in 0..=WORDS {
            if bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                let ahead = (index + BUCKETS - start) & (BUCKETS - 1);
                return first + ahead as u64;
            }
            word = (word + 1) % WORDS;
            bits = self.occupied[word];
        }
        u64::MAX
    }
}

/// Buckets hold a few events: insertion sort beats the library's below about twenty.
#[inline]
fn sort_latest_first(events: &mut [u64]) {
    if events.len() > 20 {
        events.sort_unstable_by(|a, b| b.cmp(a));
        return;
    }
    for i in 1..events.len() {
        let event = events[i];
        let mut j = i;
        while j > 0 && events[j - 1] < event {
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
            let mut wheel = Wheel::new(3, Span::from_us(1), Span::ZERO, Ties::BySlot);
            order.iter().for_each(|&slot| wheel.set(slot, Time::from_ps(5_000)));
            let popped: Vec<u32> = std::iter::from_fn(|| wheel.pop_until(Time::MAX)).map(|(_, slot)| slot).collect();
            assert_eq!(popped, [0, 1, 2]);
        }
    }

    #[test]
    fn nothing_after_the_limit_is_popped() {
        let mut wheel = Wheel::new(2, Span::from_us(1), Span::ZERO, Ties::BySlot);
        wheel.set(0, Time::from_ps(10));
        wheel.set(1, Time::from_ps(11));
        assert_eq!(wheel.pop_until(Time::from_ps(10)), Some((Time::from_ps(10), 0)));
        assert_eq!(wheel.pop_until(Time::from_ps(10)), None);
        assert_eq!(wheel.pop_until(Time::from_ps(11)), Some((Time::from_ps(11), 1)));
        assert!(wheel.is_empty());
    }

    /// Of n events that fall due at the same times again and again, each is first as often as every other, and the order of
    /// any two says nothing about a third.
    #[test]
    fn drawn_orders_favour_nobody() {
        let (n, rounds) = (6u32, 6_000u64);
        let mut wheel = Wheel::new(10, Span::from_us(1), Span::ZERO, Ties::Drawn { seed: 7, from: 4 });
        let (mut first, mut sorted) = ([0u32; 10], 0);
        for round in 1..=rounds {
            let at = Time::from_ps(round * 1_000_003);
            (0..10).rev().for_each(|slot| wheel.set(slot, at));
            let order: Vec<u32> = std::iter::from_fn(|| wheel.pop_until(at)).map(|(_, slot)| slot).collect();
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
            steps in prop::collection::vec((0u32..40, 0u64..1 << 26, any::<bool>(), 0u64..1 << 25), 1..400),
        ) {
            let ties = drawn.map_or(Ties::BySlot, |(seed, from)| Ties::Drawn { seed, from: u32::from(from % 40) });
            let mut wheel = Wheel::new(40, Span::from_ps(horizon), Span::from_ps(spacing), ties);
            let places = Wheel::new(1, Span::from_us(1), Span::ZERO, ties);
            let key = |time: u64, slot: u32| places.place(time, slot);
            let mut model: BTreeSet<(u64, u64, u32)> = BTreeSet::new();
            let mut now = 0;
            for (slot, ahead, tiny, reach) in steps {
                if !model.iter().any(|&(_, _, s)| s == slot) {
                    let time = now + if tiny { ahead % 7 } else { ahead };
                    wheel.set(slot, Time::from_ps(time));
                    model.insert((time, key(time, slot), slot));
                }
                let limit = now + reach;
                if let Some((time, slot)) = wheel.pop_until(Time::from_ps(limit)) {
                    prop_assert_eq!(model.pop_first(), Some((time.ps(), key(time.ps(), slot), slot)));
                    prop_assert!(time.ps() <= limit);
                    now = time.ps();
                } else {
                    prop_assert!(model.first().is_none_or(|&(time, ..)| time > limit));
                }
            }
            while let Some((time, slot)) = wheel.pop_until(Time::MAX) {
                prop_assert_eq!(model.pop_first(), Some((time.ps(), key(time.ps(), slot), slot)));
            }
            prop_assert!(model.is_empty() && wheel.is_empty());
        }
    }
}
