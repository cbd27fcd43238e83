//! SAR: flows that do no harm leave a port that keeps being congested. Source: RCM §3.4.

use super::cfr::Tuple;
use crate::mechanism::PortNo;
use crate::path::{mix32, reduce};
use fanin_units::{Span, Time};
use std::collections::VecDeque;

/// Record of severe notifications at one port, which tells if they keep coming.
#[derive(Clone, Debug, Default)]
pub(super) struct Severity {
    /// Times of the latest severe notifications, at most as many as must come in time for flows to be moved.
    latest: VecDeque<Time>,
    /// End of the time during which flows are moved away.
    until: Time,
}

impl Severity {
    /// Notes a severe notification, or a severe sample; true where enough of them have come in time.
    pub(super) fn note(&mut self, now: Time, count: u32, within: Span) -> bool {
        self.latest.push_back(now);
        if self.latest.len() > count as usize {
            self.latest.pop_front();
        }
        let all = self.latest.len() == count as usize;
        if all && self.latest.front().is_some_and(|first| now.since(*first) <= within) {
            self.until = now + within;
        }
        self.is_severe(now)
    }

    pub(super) fn is_severe(&self, now: Time) -> bool {
        now < self.until
    }
}

/// A flow that was moved.
#[derive(Clone, Copy, Debug)]
struct Moved {
    tuple: Tuple,
    port: PortNo,
    last: Time,
}

/// Flows that were moved, in a table by their hash: each place has one. Empty until the first.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    places: Vec<Option<Moved>>,
    most: usize,
    stay: Span,
}

impl Flows {
    pub(super) fn new(most: u32, stay: Span) -> Flows {
        Flows { places: Vec::new(), most: most as usize, stay }
    }

    fn place(&self, hash: u32) -> usize {
        reduce(mix32(hash), self.most)
    }

    /// Port of a flow that was moved; the flow stays there until it has paused.
    pub(super) fn port(&mut self, now: Time, hash: u32, tuple: &Tuple) -> Option<PortNo> {
        if self.places.is_empty() {
            return None;
        }
        let place = self.place(hash);
        let moved = self.places[place].as_mut().filter(|moved| moved.tuple == *tuple)?;
        if now.since(moved.last) > self.stay {
            self.places[place] = None;
            return None;
        }
        moved.last = now;
        Some(moved.port)
    }

    /// Moves a flow; false where its place in the table is taken by another that has not paused.
    pub(super) fn set(&mut self, now: Time, hash: u32, tuple: Tuple, port: PortNo) -> bool {
        if self.places.is_empty() {
            self.places = vec![None; self.most];
        }
        let (place, stay) = (self.place(hash), self.stay);
        if self.places[place].is_some_and(|moved| now.since(moved.last) <= stay) {
            return false;
        }
        self.places[place] = Some(Moved { tuple, port, last: now });
        true
    }

    /// Forgets all flows that were moved to this port.
    pub(super) fn leave(&mut self, port: PortNo) {
        self.places.iter_mut().filter(|place| place.is_some_and(|moved| moved.port == port)).for_each(|place| *place = None);
    }
}

/// The port with the least degree among equal ones that is better than the present; the flow's hash decides between several.
pub(super) fn least(ways: &[PortNo], present: PortNo, degree: impl Fn(PortNo) -> u8, hash: u32) -> Option<PortNo> {
    let best = ways.iter().map(|port| degree(*port)).min()?;
    if best >= degree(present) {
        return None;
    }
    let equal: Vec<PortNo> = ways.iter().copied().filter(|port| degree(*port) == best).collect();
    // Not the bits that per-flow ECMP takes.
    Some(equal[reduce(mix32(hash ^ 0x5a5a_5a5a), equal.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_packet::Envelope;
    use fanin_units::FlowId;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn tuple(flow: u32) -> Tuple {
        Tuple::of(&Envelope { flow: FlowId(flow), ..Envelope::default() })
    }

    #[test]
    fn three_within_the_time_are_severe_and_it_ends() {
        let mut severity = Severity::default();
        let note = |severity: &mut Severity, us| severity.note(at(us), 3, Span::from_us(20));
        assert!(!note(&mut severity, 100) && !note(&mut severity, 119));
        assert!(!note(&mut severity, 130), "the first was 30 us ago");
        assert!(!note(&mut severity, 140) && note(&mut severity, 150));
        assert!(severity.is_severe(at(169)) && !severity.is_severe(at(170)));
        // At a steady rhythm it lasts; and a lone one before three others does not hide them.
        let mut steady = Severity::default();
        assert!((0..10).filter(|i| note(&mut steady, 10 * i)).eq(2..10));
        let mut lone = Severity::default();
        assert!([100, 119, 121].iter().all(|us| !note(&mut lone, *us)) && note(&mut lone, 122));
    }

    #[test]
    fn the_least_degree_wins_and_hashes_spread_equal_ones() {
        let ways = [0, 1, 2, 3].map(PortNo);
        let degree = |port: PortNo| [40, 0, 7, 0][port.index()];
        let mut taken = [0; 4];
        (0..1_000).for_each(|hash| taken[least(&ways, PortNo(0), degree, mix32(hash)).unwrap().index()] += 1);
        assert!(taken[0] + taken[2] == 0 && taken[1] > 400 && taken[3] > 400, "{taken:?}");
        assert_eq!(least(&ways[..1], PortNo(0), degree, 1), None);
        assert_eq!(least(&ways, PortNo(1), degree, 1), None);
    }

    #[test]
    fn a_moved_flow_stays_until_it_pauses_and_places_are_not_shared() {
        let mut flows = Flows::new(1, Span::from_us(10));
        assert!(flows.set(at(0), 1, tuple(1), PortNo(3)));
        assert_eq!(flows.port(at(9), 1, &tuple(1)), Some(PortNo(3)));
        assert_eq!(flows.port(at(19), 1, &tuple(1)), Some(PortNo(3)));
        assert_eq!(flows.port(at(19), 1, &tuple(2)), None);
        assert!(!flows.set(at(20), 1, tuple(2), PortNo(4)));
        assert_eq!(flows.port(at(30), 1, &tuple(1)), None);
        assert!(flows.set(at(30), 1, tuple(2), PortNo(4)));
    }

    #[test]
    fn flows_of_a_port_that_is_left_are_forgotten_and_no_others() {
        let mut flows = Flows::new(64, Span::from_us(10));
        assert_eq!(flows.port(at(0), 1, &tuple(1)), None);
        // Hashes with places of their own.
        let hashes: Vec<u32> = (0..3).map(|n| (0..).find(|hash| flows.place(*hash) == n).expect("a hash")).collect();
        let all = |flows: &mut Flows| [0, 1, 2].map(|n| flows.port(at(1), hashes[n], &tuple(n as u32)).map(|port| port.0));
        for (n, port) in [3, 4, 3].into_iter().enumerate() {
            assert!(flows.set(at(0), hashes[n], tuple(n as u32), PortNo(port)));
        }
        assert_eq!(all(&mut flows), [Some(3), Some(4), Some(3)]);
        flows.leave(PortNo(3));
        assert_eq!(all(&mut flows), [None, Some(4), None]);
        assert!(flows.set(at(1), hashes[0], tuple(7), PortNo(4)), "its place is free");
    }
}
