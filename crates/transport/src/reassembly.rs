//! Reassembly queue of data that arrived out of order.

use std::collections::VecDeque;

/// Ranges above RCV.NXT, and the order in which SACK options report them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    /// Received ranges: ascending, disjoint, not adjacent.
    ranges: VecDeque<(u64, u64)>,
    /// Starts of ranges, most recently changed first; zero means none.
    recent: [u64; 4],
}

impl Reassembly {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges in the queue.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Number of bytes in the queue.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|r| r.1 - r.0).sum()
    }

    /// End of the last range; `next`, which is RCV.NXT, if the queue is empty.
    pub fn end(&self, next: u64) -> u64 {
        self.ranges.back().map_or(next, |r| r.1)
    }

    /// First part of a segment that the queue holds already, in one piece.
    pub fn overlap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let first = self.ranges.partition_point(|r| r.1 <= start);
        let range = self.ranges.get(first).filter(|r| r.0 < end)?;
        Some((range.0.max(start), range.1.min(end)))
    }

    /// Adds a segment; returns the number of new bytes.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        let first = self.ranges.partition_point(|r| r.1 < start);
        let after = self.ranges.partition_point(|r| r.0 <= end);
        let merged = if first == after {
            self.ranges.insert(first, (start, end));
            (start, end)
        } else {
            let merged = (start.min(self.ranges[first].0), end.max(self.ranges[after - 1].1));
            let had: u64 = self.ranges.range(first..after).map(|r| r.1 - r.0).sum();
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..after);
            self.touch(merged);
            return merged.1 - merged.0 - had;
        };
        self.touch(merged);
        end - start
    }

    /// Advances RCV.NXT to `next`; returns where queued data takes it from there.
    pub fn advance(&mut self, next: u64) -> u64 {
        let mut next = next;
        while self.ranges.front().is_some_and(|r| r.0 <= next) {
            if let Some(r) = self.ranges.pop_front() {
                next = next.max(r.1);
            }
        }
        next
    }

    /// SACK blocks to report: first the one with the latest segment, then those reported last. Source: RFC 2018 §4.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.recent.iter().filter(|start| **start != 0).filter_map(|start| {
            let at = self.ranges.binary_search_by_key(start, |r| r.0).ok()?;
            Some(self.ranges[at])
        })
    }

    /// Records `range` as the one changed last; starts of ranges that it swallowed are dropped.
    fn touch(&mut self, range: (u64, u64)) {
        let mut recent = [range.0, 0, 0, 0];
        let mut n = 1;
        for start in self.recent {
            let swallowed = (range.0..range.1).contains(&start);
            if start != 0 && !swallowed && n < recent.len() && self.ranges.binary_search_by_key(&start, |r| r.0).is_ok() {
                recent[n] = start;
                n += 1;
            }
        }
        self.recent = recent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_latest_block_comes_first_then_the_ones_before() {
        let mut r = Reassembly::default();
        r.insert(100, 200);
        r.insert(300, 400);
        r.insert(500, 600);
        assert_eq!(r.blocks().collect::<Vec<_>>(), [(500, 600), (300, 400), (100, 200)]);
        r.insert(200, 250);
        assert_eq!(r.blocks().collect::<Vec<_>>(), [(100, 250), (500, 600), (300, 400)]);
        r.insert(250, 500); // joins all
        assert_eq!(r.blocks().collect::<Vec<_>>(), [(100, 600)]);
        assert_eq!(r.advance(100), 600);
        assert!(r.is_empty() && r.blocks().next().is_none());
    }

    proptest! {
        #[test]
        fn it_equals_a_bitmap(segments in prop::collection::vec((1u64..100, 1u64..20), 1..50)) {
            let mut r = Reassembly::default();
            let mut bitmap = [false; 128];
            for (start, len) in segments {
                let mut again = (start..start + len).filter(|i| bitmap[*i as usize]);
                let overlap = again.next().map(|first| (first, (first..start + len).find(|i| !bitmap[*i as usize]).unwrap_or(start + len)));
                prop_assert_eq!(r.overlap(start, start + len), overlap);
                let news = bitmap[start as usize..(start + len) as usize].iter().filter(|b| !**b).count() as u64;
                bitmap[start as usize..(start + len) as usize].fill(true);
                prop_assert_eq!(r.insert(start, start + len), news);
                let (from, to) = r.blocks().next().unwrap();
                prop_assert!(from <= start && to >= start + len);
                prop_assert!(bitmap[from as usize..to as usize].iter().all(|b| *b));
                prop_assert!(!bitmap[from as usize - 1] && !bitmap[to as usize]);
            }
            prop_assert_eq!(r.bytes(), bitmap.iter().filter(|b| **b).count() as u64);
            prop_assert_eq!(r.end(0), bitmap.iter().rposition(|b| *b).unwrap_or(0) as u64 + 1);
            let run = bitmap[1..].iter().take_while(|b| **b).count() as u64;
            prop_assert_eq!(r.advance(1), 1 + run);
        }
    }
}
