//! Events that move: a heap in which an owner may have several entries, all but one stale.

use fanin_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Timeouts, ordered by (time, key). The owner re-arms by pushing again and ignores entries that no longer match.
#[derive(Debug)]
pub struct Timers<K: Ord + Copy> {
    heap: BinaryHeap<Reverse<(Time, K)>>,
}

impl<K: Ord + Copy> Default for Timers<K> {
    fn default() -> Self {
        Timers { heap: BinaryHeap::new() }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Adds an entry.
    pub fn push(&mut self, at: Time, key: K) {
        self.heap.push(Reverse((at, key)));
    }

    /// Time of the earliest entry, `Time::MAX` when there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.heap.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    /// Takes the earliest entry.
    pub fn pop(&mut self) -> Option<(Time, K)> {
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Entries held, stale ones included.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}
