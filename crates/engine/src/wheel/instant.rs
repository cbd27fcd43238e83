//! Many events of one instant.

use super::{insert, Order, PLACE_BITS, SLOT, SLOT_BITS};
use crate::Table;

/// More events with nearly the same place than this, as where no places are drawn, are left to the library's sort.
const MOST_TOGETHER: u32 = 24;

/// Puts many events of one instant in order: where thousands of hosts send in step, most events are tied with a hundred others. Their places are
/// drawn, so they spread evenly: each is put near where it belongs at once, and neighbours are compared.
#[derive(Default)]
pub(super) struct Instant {
    /// By range of places, so many events; then where the next one of these goes.
    ranges: Table<u32>,
    /// The events, in order at last: place, and slot.
    events: Table<u64>,
}

impl Instant {
    /// The slots of events of one time, which the low bits of `words` are, in order. The words are changed.
    #[inline(always)]
    pub fn in_order(&mut self, order: Order, time: u64, words: &mut [u64]) -> impl ExactSizeIterator<Item = u32> + '_ {
        let count = words.len();
        // A range for an event or more.
        let bits = (usize::BITS - count.leading_zeros()).min(PLACE_BITS);
        let (ranges, shift) = (1 << bits, SLOT_BITS + PLACE_BITS - bits);
        self.ranges.grow(ranges, 0);
        self.events.grow(count, 0);
        self.ranges.iter_mut().take(ranges).for_each(|range| *range = 0);
        let instant = order.instant(time);
        for word in words.iter_mut() {
            let slot = (*word & SLOT) as u32;
            *word = order.place_at(instant, slot) | u64::from(slot);
            self.ranges[(*word >> shift) as usize] += 1;
        }
        let (mut next, mut most) = (0, 0);
        for range in self.ranges.iter_mut().take(ranges) {
            let events = std::mem::replace(range, next);
            (next, most) = (next + events, most.max(events));
        }
        if most > MOST_TOGETHER {
            words.sort_unstable();
            self.events.iter_mut().zip(words).for_each(|(event, word)| *event = *word);
        } else {
            for word in words.iter() {
                let place = &mut self.ranges[(*word >> shift) as usize];
                self.events[*place as usize] = *word;
                *place += 1;
            }
            insert(self.events.slice_mut(0, count));
        }
        self.events.slice(0, count).iter().map(|event| (event & SLOT) as u32)
    }
}
