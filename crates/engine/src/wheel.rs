//! Events that stay: one per slot, in buckets of time.

use crate::Table;
use fanin_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;
/// Low bits of a due event: its slot.
const SLOT_BITS: u32 = 24;
/// Widest bucket, so that the time since its start fits above the slot: half a second.
const WIDEST: u32 = 63 - SLOT_BITS;
/// 4096 list heads are 16 KiB: half of a first-level cache.
const BUCKETS: usize = 1 << 12;
const WORDS: usize = BUCKETS / 64;

#[derive(Clone, Copy)]
struct Slot {
    time: u64,
    next: u32,
}

/// A calendar of at most one event per slot, popped in the total order (time, slot).
///
/// Slots are numbered by the user so that their order is the order wanted among events of the same time; it does not
/// depend on the order of insertion. An event in the near future costs one list insertion and its share of sorting a
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
    /// Events of the open bucket, latest first, so that the next is popped from the end. Each is one word, time since
    /// `base` above the slot, which sorts in half the instructions of a pair.
    due: Vec<u64>,
    /// Beyond the horizon.
    far: BinaryHeap<Reverse<(u64, u32)>>,
    /// Bucket of the first of them.
    next_far: u64,
}

impl Wheel {
    /// A wheel of `slots` slots that handles events up to about `horizon` ahead without the heap, with buckets at least
    /// `spacing` wide: the time in which a few events fall due, since opening a bucket costs as much as an event.
    pub fn new(slots: usize, horizon: Span, spacing: Span) -> Self {
        assert!(slots < 1 << SLOT_BITS, "{slots} slots");
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
        let event = self.pack(time, slot);
        let at = self.due.partition_point(|&other| other > event);
        self.due.insert(at, event);
    }

    /// Makes room before the open bucket: somebody has looked further ahead than the next event and then set an earlier one.
    ///
    /// # Panics
    /// When that bucket lies more than half a second ahead.
    fn rebase(&mut self, base: u64) {
        let further = self.base - base;
        assert!(further < 1 << WIDEST, "an event set {further} ps before the open bucket");
        self.due.iter_mut().for_each(|event| *event += further << SLOT_BITS);
        self.base = base;
    }

    #[inline(always)]
    fn pack(&self, time: u64, slot: u32) -> u64 {
        (time - self.base) << SLOT_BITS | u64::from(slot)
    }

    #[inline(always)]
    fn unpack(&self, event: u64) -> (u64, u32) {
        (self.base + (event >> SLOT_BITS), event as u32 & ((1 << SLOT_BITS) - 1))
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
            while slot != NONE {
                let event = self.slots[slot as usize];
                self.due.push((event.time - self.base) << SLOT_BITS | u64::from(slot));
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
        // One word more than there are: the first is looked at twice, for its low bits last.
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
            let mut wheel = Wheel::new(3, Span::from_us(1), Span::ZERO);
            order.iter().for_each(|&slot| wheel.set(slot, Time::from_ps(5_000)));
            let popped: Vec<u32> = std::iter::from_fn(|| wheel.pop_until(Time::MAX)).map(|(_, slot)| slot).collect();
            assert_eq!(popped, [0, 1, 2]);
        }
    }

    #[test]
    fn nothing_after_the_limit_is_popped() {
        let mut wheel = Wheel::new(2, Span::from_us(1), Span::ZERO);
        wheel.set(0, Time::from_ps(10));
        wheel.set(1, Time::from_ps(11));
        assert_eq!(wheel.pop_until(Time::from_ps(10)), Some((Time::from_ps(10), 0)));
        assert_eq!(wheel.pop_until(Time::from_ps(10)), None);
        assert_eq!(wheel.pop_until(Time::from_ps(11)), Some((Time::from_ps(11), 1)));
        assert!(wheel.is_empty());
    }

    proptest! {
        /// Against a sorted set: any mix of near, far, same-bucket and same-time events, any horizon, any limits.
        #[test]
        fn pops_in_total_order(
            horizon in 1u64..1 << 24,
            spacing in 0u64..1 << 16,
            steps in prop::collection::vec((0u32..40, 0u64..1 << 26, any::<bool>(), 0u64..1 << 25), 1..400),
        ) {
            let mut wheel = Wheel::new(40, Span::from_ps(horizon), Span::from_ps(spacing));
            let mut model: BTreeSet<(u64, u32)> = BTreeSet::new();
            let mut now = 0;
            for (slot, ahead, tiny, reach) in steps {
                if !model.iter().any(|&(_, s)| s == slot) {
                    let time = now + if tiny { ahead % 7 } else { ahead };
                    wheel.set(slot, Time::from_ps(time));
                    model.insert((time, slot));
                }
                let limit = now + reach;
                if let Some((time, slot)) = wheel.pop_until(Time::from_ps(limit)) {
                    prop_assert_eq!(model.pop_first(), Some((time.ps(), slot)));
                    prop_assert!(time.ps() <= limit);
                    now = time.ps();
                } else {
                    prop_assert!(model.first().is_none_or(|&(time, _)| time > limit));
                }
            }
            while let Some((time, slot)) = wheel.pop_until(Time::MAX) {
                prop_assert_eq!(model.pop_first(), Some((time.ps(), slot)));
            }
            prop_assert!(model.is_empty() && wheel.is_empty());
        }
    }
}
