//! When segments left, for congestion controls that take the RTT of each ACK.

use fanin_units::{Span, Time};
use std::collections::VecDeque;

/// A segment that is not acknowledged; it begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    /// None: it was sent again, so that its acknowledgment is ambiguous, or it was acknowledged selectively.
    at: Option<Time>,
}

/// Send times of outstanding segments. Source: RFC 6298 §3 (Karn's algorithm) for those that were sent again.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendTimes {
    sent: VecDeque<Sent>,
    /// Latest send time of what the present ACK acknowledges.
    latest: Option<Time>,
}

impl SendTimes {
    /// New data up to `end` leaves.
    #[inline(never)]
    pub fn sent(&mut self, now: Time, end: u64) {
        self.sent.push_back(Sent { end, at: Some(now) });
    }

    /// [from, to) is sent again: no segment in it gives a sample any more.
    pub fn sent_again(&mut self, from: u64, to: u64) {
        let first = self.sent.partition_point(|s| s.end <= from);
        let mut begin = first.checked_sub(1).map_or(0, |i| self.sent[i].end);
        for s in self.sent.iter_mut().skip(first) {
            if begin >= to {
                break;
            }
            s.at = None;
            begin = s.end;
        }
    }

    /// [from, to) is newly acknowledged selectively.
    pub fn arrived(&mut self, from: u64, to: u64) {
        let first = self.sent.partition_point(|s| s.end <= from);
        for s in self.sent.iter_mut().skip(first).take_while(|s| s.end <= to) {
            self.latest = self.latest.max(s.at.take());
        }
    }

    /// The present ACK acknowledges all below `una`: the RTT of the segment that left last among those that it acknowledges
    /// newly, if they were sent once.
    #[inline(never)] // few controllers ask for it
    pub fn take_rtt(&mut self, now: Time, una: u64) -> Option<Span> {
        while let Some(front) = self.sent.front().filter(|s| s.end <= una) {
            self.latest = self.latest.max(front.at);
            self.sent.pop_front();
        }
        self.latest.take().map(|at| now.since(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn the_last_segment_that_an_ack_covers_gives_its_rtt() {
        let mut times = SendTimes::default();
        for i in 1..=4 {
            times.sent(at(i), 1000 * i);
        }
        assert_eq!(times.take_rtt(at(10), 2000), Some(Span::from_us(8)));
        assert_eq!(times.take_rtt(at(11), 2500), None); // a part of a segment
        times.arrived(3000, 4000);
        assert_eq!(times.take_rtt(at(12), 2500), Some(Span::from_us(8)));
        assert_eq!(times.take_rtt(at(20), 4000), Some(Span::from_us(17)));
        assert_eq!(times.take_rtt(at(21), 4000), None);
    }

    #[test]
    fn what_was_sent_again_gives_none() {
        let mut times = SendTimes::default();
        for i in 1..=3 {
            times.sent(at(i), 1000 * i);
        }
        times.sent_again(0, 1000);
        assert_eq!(times.take_rtt(at(9), 1000), None);
        times.sent_again(2500, 2600);
        assert_eq!(times.take_rtt(at(9), 3000), Some(Span::from_us(7))); // by the second segment
    }

    proptest! {
        /// Against a list of segments with all that happened to them.
        #[test]
        fn samples_equal_those_of_a_list(ops in prop::collection::vec((0u8..4, 0u64..40, 1u64..8), 1..60)) {
            let mut times = SendTimes::default();
            let mut list: Vec<(u64, u64, bool, bool)> = Vec::new(); // end, sent at, sent again, acknowledged
            let mut una = 0;
            for (now, (op, place, len)) in (1..).zip(ops) {
                let end = list.last().map_or(0, |s| s.0);
                let (from, to) = (place.min(end), (place + len).min(end));
                match op {
                    0 => {
                        list.push((end + len, now, false, false));
                        times.sent(at(now), end + len);
                    }
                    1 => {
                        let from = from.max(una);
                        let mut begin = 0;
                        for s in &mut list {
                            s.2 |= begin < to && from < s.0 && from < to;
                            begin = s.0;
                        }
                        if from < to {
                            times.sent_again(from, to);
                        }
                    }
                    _ => {
                        let mut latest = None;
                        let mut begin = 0;
                        let mut note = |s: &mut (u64, u64, bool, bool)| {
                            if !s.3 && !s.2 {
                                latest = latest.max(Some(s.1));
                            }
                            s.3 = true;
                        };
                        if op == 2 {
                            let blocks: Vec<(u64, u64)> = list.iter().map(|s| (std::mem::replace(&mut begin, s.0), s.0)).collect();
                            for ((a, b), s) in blocks.into_iter().zip(&mut list) {
                                if a >= from.max(una) && b <= to && !s.3 {
                                    note(s);
                                    times.arrived(a, b);
                                }
                            }
                        } else {
                            una = una.max(to);
                            list.iter_mut().filter(|s| s.0 <= una).for_each(note);
                        }
                        prop_assert_eq!(times.take_rtt(at(now), una), latest.map(|sent| Span::from_us(now - sent)));
                    }
                }
            }
        }
    }
}
