//! Byte ranges named by drop notifications and NACKs: lost for certain, waiting for retransmission or retransmitted.

use std::collections::VecDeque;

/// A range of the stream that a switch has reported as dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub from: u64,
    pub to: u64,
    /// True if the range was retransmitted since.
    pub sent: bool,
}

/// Named ranges above SND.UNA, ascending and disjoint, without SACKed bytes.
///
/// They stand beside the [`Scoreboard`](crate::scoreboard::Scoreboard), whose watermarks (all below is lost, all below was
/// retransmitted) cannot distinguish single packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notified {
    ranges: VecDeque<Range>,
    /// Number of bytes that wait for retransmission.
    waiting: u64,
}

impl Notified {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Range> {
        self.ranges.iter()
    }

    /// True if the byte at `at` is in a named range.
    pub fn covers(&self, at: u64) -> bool {
        self.ranges.get(self.first_above(at)).is_some_and(|r| r.from <= at)
    }

    /// Index of the first range that ends above `at`.
    fn first_above(&self, at: u64) -> usize {
        self.ranges.partition_point(|r| r.to <= at)
    }

    /// Marks [from, to) as lost and waiting for retransmission; returns the number of bytes that did not wait already.
    pub fn lose(&mut self, from: u64, to: u64) -> u64 {
        let before = self.waiting;
        self.put(Range { from, to, sent: false });
        self.waiting - before
    }

    /// Marks [from, to), which waited, as retransmitted.
    pub fn sent_again(&mut self, from: u64, to: u64) {
        self.put(Range { from, to, sent: true });
    }

    /// Removes [from, to), which has arrived.
    pub fn remove(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let first = self.first_above(from);
        let after = self.ranges.partition_point(|r| r.from < to);
        if first >= after {
            return;
        }
        let (left, right) = (self.ranges[first], self.ranges[after - 1]);
        let gone: u64 = self.ranges.range(first..after).filter(|r| !r.sent).map(|r| r.to.min(to) - r.from.max(from)).sum();
        self.waiting -= gone;
        let rest = [Range { to: from.min(left.to), ..left }, Range { from: to.max(right.from), ..right }];
        self.ranges.drain(first..after);
        for (i, r) in rest.into_iter().filter(|r| r.from < r.to).enumerate() {
            self.ranges.insert(first + i, r);
        }
    }

    fn put(&mut self, new: Range) {
        if new.from >= new.to {
            return;
        }
        self.remove(new.from, new.to);
        if !new.sent {
            self.waiting += new.to - new.from;
        }
        let at = self.first_above(new.from);
        let joins = |r: &Range| r.sent == new.sent;
        let before = at > 0 && self.ranges[at - 1].to == new.from && joins(&self.ranges[at - 1]);
        let behind = self.ranges.get(at).is_some_and(|r| r.from == new.to && joins(r));
        match (before, behind) {
            (true, true) => {
                self.ranges[at - 1].to = self.ranges[at].to;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].to = new.to,
            (false, true) => self.ranges[at].from = new.from,
            (false, false) => self.ranges.insert(at, new),
        }
    }

    /// First range that waits for retransmission.
    pub fn next(&self) -> Option<(u64, u64)> {
        if self.waiting == 0 {
            return None;
        }
        self.ranges.iter().find(|r| !r.sent).map(|r| (r.from, r.to))
    }

    /// Removes all ranges: after a timeout all outstanding data is lost alike.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.waiting = 0;
    }

    /// First part of [from, to) that no notification has named.
    pub fn not_notified(&self, mut from: u64, to: u64) -> Option<(u64, u64)> {
        for r in self.ranges.range(self.first_above(from)..) {
            if r.from > from {
                return (from < to).then_some((from, to.min(r.from)));
            }
            from = r.to;
        }
        (from < to).then_some((from, to))
    }

    #[cfg(test)]
    fn check(&self) {
        let mut at = 0;
        for r in &self.ranges {
            assert!(r.from < r.to && r.from >= at, "{self:?}");
            at = r.to;
        }
        assert_eq!(self.waiting, self.ranges.iter().filter(|r| !r.sent).map(|r| r.to - r.from).sum::<u64>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any sequence of operations gives what a table of bytes gives.
        #[test]
        fn ranges_equal_a_table_of_bytes(ops in prop::collection::vec((0u8..4, 0u64..60, 1u64..20), 1..60)) {
            let mut notified = Notified::default();
            let mut bytes = [0u8; 100]; // 0 not_notified, 1 waiting, 2 sent again
            for (op, from, len) in ops {
                let to = from + len;
                let part = &mut bytes[from as usize..to as usize];
                match op {
                    0 => {
                        let news = part.iter().filter(|b| **b != 1).count() as u64;
                        prop_assert_eq!(notified.lose(from, to), news);
                        part.fill(1);
                    }
                    1 => {
                        notified.sent_again(from, to);
                        part.fill(2);
                    }
                    2 => {
                        notified.remove(from, to);
                        part.fill(0);
                    }
                    _ => {
                        notified.remove(0, from);
                        bytes[..from as usize].fill(0);
                    }
                }
                notified.check();
                let mut shown = [0u8; 100];
                notified.iter().for_each(|r| shown[r.from as usize..r.to as usize].fill(1 + u8::from(r.sent)));
                prop_assert_eq!(shown, bytes);
                prop_assert_eq!(notified.next().map(|r| r.0), bytes.iter().position(|b| *b == 1).map(|i| i as u64));
                prop_assert_eq!(notified.covers(from), bytes[from as usize] > 0);
                let not_notified = bytes.iter().enumerate().skip(from as usize).position(|(_, b)| *b == 0);
                let first = notified.not_notified(from, 100);
                prop_assert_eq!(first.map(|r| r.0), not_notified.map(|i| i as u64 + from));
                if let Some((a, b)) = first {
                    prop_assert!(bytes[a as usize..b as usize].iter().all(|b| *b == 0));
                    prop_assert!(b == 100 || bytes[b as usize] > 0);
                }
            }
        }
    }

    #[test]
    fn neighbours_of_one_kind_are_one_range() {
        let mut notified = Notified::default();
        for at in [1, 3, 2] {
            notified.lose(at * 1000, at * 1000 + 1000);
        }
        assert_eq!(notified.ranges, [Range { from: 1000, to: 4000, sent: false }]);
        notified.sent_again(1000, 2000);
        assert_eq!(notified.next(), Some((2000, 4000)));
        assert_eq!(notified.ranges.len(), 2);
    }
}
