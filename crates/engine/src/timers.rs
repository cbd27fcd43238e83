//! Timers that are re-armed often: a heap in which an owner may have several entries, all but one stale.

use fanin_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap of timeouts ordered by (time, key). The owner re-arms by pushing again and ignores entries that no longer match.
#[derive(Debug)]
pub struct Timers<K: Ord + Copy> {
    heap: BinaryHeap<Reverse<(Time, K)>>,
}

impl<K: Ord + Copy> Default for Timers<K> {
    fn default() -> Self {
        Timers { heap: BinaryHeap::new() }
    }
}

impl<K: Ord + Copy> Extend<(Time, K)> for Timers<K> {
    fn extend<I: IntoIterator<Item = (Time, K)>>(&mut self, entries: I) {
        self.heap.extend(entries.into_iter().map(Reverse));
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Adds a timeout of `key` at `at`.
    pub fn push(&mut self, at: Time, key: K) {
        self.heap.push(Reverse((at, key)));
    }

    /// Time of the earliest entry, stale ones included; `Time::MAX` if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.heap.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    /// Removes and returns the earliest entry, stale or not.
    pub fn pop(&mut self) -> Option<(Time, K)> {
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// All entries, in no order.
    pub fn into_entries(self) -> impl Iterator<Item = (Time, K)> {
        self.heap.into_iter().map(|Reverse(entry)| entry)
    }

    /// Number of entries, stale ones included.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if the heap has no entries.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}
