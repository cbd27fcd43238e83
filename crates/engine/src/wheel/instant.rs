//! Sorting of many events of one time.

use super::{insert, Order, PLACE_BITS, SLOT, SLOT_BITS};
use crate::Table;

/// Longest run of events with nearly equal places that insertion sorts; longer ones, as without drawn places, go to the
/// library's sort.
const MOST_TOGETHER: u32 = 24;

/// Sorts many events of one time: where thousands of hosts send in step, most events are tied with a hundred others. Their
/// drawn places spread evenly: each event is put near its final position at once, and neighbours are compared.
#[derive(Default)]
pub(super) struct Instant {
    /// Number of events per range of places; later the position of the range's next event.
    ranges: Table<u32>,
    /// Place and slot of each event, in order at the end.
    events: Table<u64>,
}

impl Instant {
    /// The slots of events of one `time`, in order; the low bits of `words` hold them, and are overwritten.
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
