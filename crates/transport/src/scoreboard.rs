//! SACK scoreboard of a sender. Source: RFC 6675 §4.

use std::collections::VecDeque;

/// Scoreboard: SACKed ranges, and the bytes believed lost or retransmitted.
///
/// RFC 6675 scans its scoreboard for SetPipe and IsLost; here the same numbers are kept up to date. IsLost is monotone: all
/// un-SACKed bytes below [`Scoreboard::lost_edge`] are lost, none above.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    /// SACKed ranges above SND.UNA, ascending, disjoint, not adjacent.
    ranges: VecDeque<(u64, u64)>,
    una: u64,
    /// Number of bytes in `ranges`.
    sacked: u64,
    lost_edge: u64,
    /// Number of un-SACKed bytes below `lost_edge`.
    lost: u64,
    /// HighRxt: all holes below it have been retransmitted in this recovery.
    high_rxt: u64,
    /// Number of un-SACKed bytes below `high_rxt`.
    again: u64,
}

impl Scoreboard {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn high_rxt(&self) -> u64 {
        self.high_rxt
    }

    /// Edge below which all un-SACKed bytes are lost.
    pub fn lost_edge(&self) -> u64 {
        self.lost_edge
    }

    /// Number of lost bytes: un-SACKed ones below [`Scoreboard::lost_edge`].
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// End of the highest SACKed range.
    pub fn highest(&self) -> u64 {
        self.ranges.back().map_or(self.una, |r| r.1)
    }

    /// Number of SACKed bytes in [from, to).
    fn sacked_in(&self, from: u64, to: u64) -> u64 {
        let first = self.ranges.partition_point(|r| r.1 <= from);
        self.ranges.iter().skip(first).take_while(|r| r.0 < to).map(|r| r.1.min(to) - r.0.max(from)).sum()
    }

    /// Number of un-SACKed bytes in [from, to), nothing below `una` counted.
    fn holes_in(&self, from: u64, to: u64) -> u64 {
        let from = from.max(self.una);
        if to <= from {
            0
        } else {
            to - from - self.sacked_in(from, to)
        }
    }

    /// Bytes in flight: outstanding, without SACKed and lost bytes, plus retransmitted ones. Source: RFC 6675 §4 SetPipe.
    pub fn pipe(&self, una: u64, nxt: u64) -> u64 {
        nxt - una - self.sacked - self.lost + self.again
    }

    /// Records a SACK block; returns the number of newly SACKed bytes. Source: RFC 6675 §4 Update.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        let start = start.max(self.una);
        if start >= end {
            return 0;
        }
        let news = self.holes_in(start, end);
        if news == 0 {
            return 0;
        }
        self.lost -= self.holes_in(start, end.min(self.lost_edge));
        self.again -= self.holes_in(start, end.min(self.high_rxt));
        self.sacked += news;
        let first = self.ranges.partition_point(|r| r.1 < start);
        let after = self.ranges.partition_point(|r| r.0 <= end);
        if first == after {
            self.ranges.insert(first, (start, end));
        } else {
            let merged = (start.min(self.ranges[first].0), end.max(self.ranges[after - 1].1));
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..after);
        }
        news
    }

    /// Advances the cumulative ACK to `una`; returns the number of SACKed bytes that it covers.
    pub fn advance(&mut self, una: u64) -> u64 {
        self.lost -= self.holes_in(self.una, una.min(self.lost_edge));
        self.again -= self.holes_in(self.una, una.min(self.high_rxt));
        let mut covered = 0;
        while let Some(front) = self.ranges.front_mut() {
            if front.1 <= una {
                covered += front.1 - front.0;
                self.ranges.pop_front();
            } else {
                if front.0 < una {
                    covered += una - front.0;
                    front.0 = una;
                }
                break;
            }
        }
        self.sacked -= covered;
        self.una = una;
        self.lost_edge = self.lost_edge.max(una);
        self.high_rxt = self.high_rxt.max(una);
        covered
    }

    /// Finds lost bytes: below `dup_thresh` SACKed ranges, or below more than (dup_thresh − 1) segments of SACKed bytes.
    /// Source: RFC 6675 §4 IsLost.
    pub fn find_lost(&mut self, dup_thresh: u32, mss: u32) {
        let enough = u64::from(dup_thresh - 1) * u64::from(mss);
        let mut bytes = 0;
        for (count, range) in (1..).zip(self.ranges.iter().rev()) {
            bytes += range.1 - range.0;
            if count >= dup_thresh || bytes > enough {
                let edge = range.0;
                self.lost += self.holes_in(self.lost_edge, edge);
                self.lost_edge = self.lost_edge.max(edge);
                return;
            }
        }
    }

    /// Begins a recovery, with nothing retransmitted. Source: RFC 6675 §5 step 4.
    pub fn begin(&mut self, una: u64) {
        self.una = una;
        self.lost_edge = self.lost_edge.max(una);
        self.high_rxt = una;
        self.again = 0;
    }

    /// Marks all outstanding data as lost. Source: RFC 6675 §5.1, RFC 5681 §3.1.
    pub fn all_lost(&mut self, una: u64, nxt: u64) {
        self.begin(una);
        self.lost_edge = nxt;
        self.lost = self.holes_in(una, nxt);
    }

    /// Reverts a spurious timeout: nothing is lost, nothing was retransmitted.
    pub fn none_lost(&mut self) {
        self.lost_edge = self.una;
        self.lost = 0;
        self.high_rxt = self.una;
        self.again = 0;
    }

    /// First hole at or above `at`, up to `limit`.
    pub fn hole_from(&self, at: u64, limit: u64) -> Option<(u64, u64)> {
        let mut start = at.max(self.una);
        let first = self.ranges.partition_point(|r| r.1 <= start);
        let mut end = limit;
        if let Some(r) = self.ranges.get(first) {
            if r.0 <= start {
                start = r.1;
                end = self.ranges.get(first + 1).map_or(limit, |r| r.0.min(limit));
            } else {
                end = r.0.min(limit);
            }
        }
        (start < end).then_some((start, end))
    }

    /// Holes in [from, to).
    pub fn holes(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = from;
        std::iter::from_fn(move || {
            let hole = self.hole_from(at, to)?;
            at = hole.1;
            Some(hole)
        })
    }

    /// Last un-SACKed bytes below `nxt`, at most `mss` of them. Source: RFC 6675 §4 NextSeg rule 4.
    pub fn last_hole(&self, nxt: u64, mss: u64) -> Option<(u64, u64)> {
        let mut end = nxt;
        let mut below = self.ranges.iter().rev();
        let mut range = below.next();
        if let Some(r) = range {
            if r.1 >= end {
                end = r.0;
                range = below.next();
            }
        }
        let floor = range.map_or(self.una, |r| r.1);
        (floor < end).then(|| (floor.max(end.saturating_sub(mss)), end))
    }

    /// Records the retransmission of a hole, or of its part, that ends at `end`; skipped holes count as retransmitted as
    /// well.
    pub fn sent_again(&mut self, end: u64) {
        self.again += self.holes_in(self.high_rxt, end);
        self.high_rxt = self.high_rxt.max(end);
    }

    #[cfg(test)]
    fn next_lost(&self) -> Option<(u64, u64)> {
        self.hole_from(self.high_rxt, self.lost_edge)
    }

    #[cfg(test)]
    pub fn check(&self) {
        let mut at = self.una;
        for (i, r) in self.ranges.iter().enumerate() {
            assert!(r.0 < r.1 && r.0 >= at && (i == 0 || r.0 > at), "{self:?}");
            at = r.1;
        }
        assert_eq!(self.sacked, self.ranges.iter().map(|r| r.1 - r.0).sum::<u64>());
        assert_eq!(self.lost, self.holes_in(self.una, self.lost_edge));
        assert_eq!(self.again, self.holes_in(self.una, self.high_rxt));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 6675 §4, byte by byte.
    struct Literal {
        sacked: Vec<bool>,
        una: u64,
        high_rxt: u64,
        /// What was lost at some time: blocks that grow together are fewer, which the RFC's scan would take for an undoing.
        ever_lost: Vec<bool>,
    }

    impl Literal {
        fn is_lost(&self, at: u64, dup_thresh: u32, mss: u32) -> bool {
            let above: Vec<bool> = self.sacked[at as usize + 1..].to_vec();
            let bytes = above.iter().filter(|s| **s).count() as u64;
            let runs = (0..above.len()).filter(|i| above[*i] && (*i == 0 || !above[i - 1])).count() as u32;
            runs >= dup_thresh || bytes > u64::from((dup_thresh - 1) * mss)
        }
        fn pipe(&self, nxt: u64, dup_thresh: u32, mss: u32) -> u64 {
            (self.una..nxt)
                .filter(|s| !self.sacked[*s as usize])
                .map(|s| u64::from(!self.is_lost(s, dup_thresh, mss)) + u64::from(s < self.high_rxt))
                .sum()
        }
    }

    proptest! {
        /// Blocks, cumulative ACKs and retransmissions in any order give the numbers of the RFC's scan.
        #[test]
        fn counters_equal_the_rfcs_scan(ops in prop::collection::vec((0u8..4, 0u64..100, 1u64..30), 1..60)) {
            const NXT: u64 = 120;
            let mut board = Scoreboard::default();
            let mut literal = Literal { sacked: vec![false; NXT as usize], una: 0, high_rxt: 0, ever_lost: vec![false; NXT as usize] };
            board.begin(0);
            for (op, at, len) in ops {
                match op {
                    0 | 1 => {
                        let (start, end) = (at, (at + len).min(NXT));
                        let expected = (start.max(literal.una)..end).filter(|s| !literal.sacked[*s as usize]).count() as u64;
                        prop_assert_eq!(board.insert(start, end), expected);
                        (start.max(literal.una)..end).for_each(|s| literal.sacked[s as usize] = true);
                    }
                    2 => {
                        let una = (literal.una + len / 3).min(NXT);
                        let expected = (literal.una..una).filter(|s| literal.sacked[*s as usize]).count() as u64;
                        prop_assert_eq!(board.advance(una), expected);
                        (0..una).for_each(|s| literal.sacked[s as usize] = false);
                        literal.una = una;
                        literal.high_rxt = literal.high_rxt.max(una);
                    }
                    _ => {
                        board.find_lost(3, 10);
                        if let Some((start, end)) = board.next_lost() {
                            let first = (literal.high_rxt.max(literal.una)..NXT).find(|s| !literal.sacked[*s as usize]);
                            prop_assert_eq!(Some(start), first);
                            prop_assert!(literal.ever_lost[start as usize]);
                            let end = end.min(start + 10);
                            board.sent_again(end);
                            literal.high_rxt = end;
                        }
                    }
                }
                board.find_lost(3, 10);
                board.check();
                let lost: Vec<u64> = (literal.una..NXT).filter(|s| !literal.sacked[*s as usize] && literal.is_lost(*s, 3, 10)).collect();
                prop_assert!(lost.is_empty() || board.lost() > 0);
                lost.iter().for_each(|s| literal.ever_lost[*s as usize] = true);
                // Losses are not taken back when the cumulative ACK eats the SACKed bytes above them, so pipe can only be smaller.
                prop_assert!(board.pipe(literal.una, NXT) <= literal.pipe(NXT, 3, 10));
            }
        }
    }

    #[test]
    fn pipe_counts_what_is_in_the_network() {
        let mut b = Scoreboard::default();
        b.begin(1);
        let nxt = 10_001;
        assert_eq!(b.pipe(1, nxt), 10_000);
        assert_eq!(b.insert(1_001, 2_001), 1_000);
        b.find_lost(3, 1_000);
        assert_eq!(b.lost(), 0);
        assert_eq!(b.pipe(1, nxt), 9_000);
        b.insert(2_001, 3_001);
        b.insert(3_001, 4_001); // 3000 bytes above: lost
        b.find_lost(3, 1_000);
        assert!(b.lost() > 0);
        assert_eq!(b.pipe(1, nxt), 6_000);
        assert_eq!(b.next_lost(), Some((1, 1_001)));
        b.sent_again(1_001);
        assert_eq!((b.pipe(1, nxt), b.next_lost()), (7_000, None));
        assert_eq!(b.advance(4_001), 3_000);
        assert_eq!(b.pipe(4_001, nxt), 6_000);
    }

    #[test]
    fn the_rescue_is_the_last_hole() {
        let mut b = Scoreboard::default();
        b.begin(1);
        b.insert(5_001, 6_001);
        assert_eq!(b.last_hole(8_001, 1_000), Some((7_001, 8_001)));
        b.insert(6_001, 8_001);
        assert_eq!(b.last_hole(8_001, 1_000), Some((4_001, 5_001)));
        b.insert(1, 5_001);
        assert_eq!(b.last_hole(8_001, 1_000), None);
    }

    #[test]
    fn after_a_timeout_all_holes_are_lost() {
        let mut b = Scoreboard::default();
        b.begin(1);
        b.insert(2_001, 3_001);
        b.all_lost(1, 5_001);
        assert_eq!(b.pipe(1, 5_001), 0);
        assert_eq!(b.next_lost(), Some((1, 2_001)));
        b.sent_again(2_001);
        assert_eq!(b.next_lost(), Some((3_001, 5_001)));
        b.none_lost();
        assert_eq!(b.pipe(1, 5_001), 4_000);
    }
}
