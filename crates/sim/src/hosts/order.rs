//! Reordering: the order in which a flow's packets arrive, compared with the order in which its sender's host sent them.
//!
//! Each transmission has a number of its own, so that a retransmission is a packet like any other and a loss is no reordering. A packet is
//! **reordered** when one that was sent later has arrived before it; its **extent** is how many packets have arrived since the first
//! such one, that one included; its **late time** is how long ago that was; it is **3-reordered** when the three arrivals before it were all
//! sent later, which a sender takes for a loss after three duplicate ACKs. **Displacement** is the place of an arrival among arrivals,
//! lost packets' places left out, less its number: positive when late, negative when early.
//!
//! Source: RFC 4737 §3.3 (reordered), §4.2 (extent), §4.3 (late time offset), §5 (n-reordering); RFC 5236 §4 (reorder density).

use fanin_units::{Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// A packet that has not come within this many arrivals after one that was sent later counts as lost in the reorder density.
///
/// Source: RFC 5236 §3.4 (displacement threshold), which leaves the value open.
pub const THRESHOLD: u32 = 128;

/// Number of ranges of missing numbers that are remembered, besides those that the density waits for. A packet of an older one
/// that comes all the same is reordered, without extent and late time.
const GAPS: usize = 3 * THRESHOLD as usize;

/// Value of the expected number while packets are out of order: there is none.
const NEVER: u32 = u32::MAX;

/// Range of numbers that had not arrived when a later one did.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gap {
    from: u32,
    to: u32,
    /// Place among arrivals of the packet that came instead, and the time of its arrival.
    place: u32,
    at: Time,
}

/// The arrivals of a flow whose packets have not all arrived in order.
#[derive(Clone, Debug, Default)]
struct Late {
    /// One more than the highest number that has arrived.
    next: u32,
    /// Numbers below that which have not.
    missing: u32,
    /// Missing numbers in ranges, ascending.
    gaps: VecDeque<Gap>,
    /// The latest arrivals, latest first.
    latest: [u32; 3],
    /// Arrivals whose displacement depends on packets that may still come.
    waiting: VecDeque<u32>,
    /// Place of the first waiting arrival, as soon as it is known that the packet of that number is not lost.
    place: u32,
    seen: Reordering,
}

/// Counts of reordering, of one flow or of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    pub packets: u64,
    pub reordered: u64,
    pub three: u64,
    pub extent_max: u32,
    pub late_max: Span,
    /// Number of flows, and of flows with reordered packets.
    pub flows: u64,
    pub flows_reordered: u64,
    /// Reordered packets by extent: up to 1, 2, 4, 8 … packets.
    pub extents: BTreeMap<u32, u64>,
    /// Packets by displacement, without those of displacement zero.
    pub displaced: BTreeMap<i32, u64>,
    /// Packets that arrived after they had been counted as lost.
    pub beyond: u64,
}

/// The number that comes next in one direction, while all is in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Next(u32);

/// Order of arrivals besides the next expected number: kept apart from that, as packets in order need none of it.
#[derive(Clone, Debug, Default)]
pub struct Order(Option<Box<Late>>);

impl Order {
    /// Records that a packet of this number has arrived, with its payload.
    #[inline(always)]
    pub fn arrived(&mut self, next: &mut Next, number: u32, now: Time) {
        if number == next.0 {
            next.0 += 1;
        } else {
            self.out_of_order(next, number, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn out_of_order(&mut self, Next(expected): &mut Next, number: u32, now: Time) {
        let late = self.0.get_or_insert_with(Box::default);
        if *expected != NEVER {
            // Up to here all is in its place, but for what is lost.
            for number in late.next.max(expected.saturating_sub(3))..*expected {
                late.latest.rotate_right(1);
                late.latest[0] = number;
            }
            late.next = *expected;
            late.place = *expected;
        }
        late.arrived(number, now);
        *expected = if late.waiting.is_empty() { late.next } else { NEVER };
    }

    /// Counts of reordering so far.
    pub fn counts(&self, Next(expected): Next) -> Reordering {
        let Some(late) = &self.0 else {
            return Reordering { packets: u64::from(expected), flows: 1, ..Reordering::default() };
        };
        let next = if expected == NEVER { late.next } else { expected };
        let mut late = late.clone();
        late.settle(true);
        let flows_reordered = u64::from(late.seen.reordered > 0);
        Reordering { packets: u64::from(next - late.missing), flows: 1, flows_reordered, ..late.seen }
    }
}

impl Late {
    fn arrived(&mut self, number: u32, now: Time) {
        if number >= self.next {
            if number > self.next {
                self.missing += number - self.next;
                let place = number + 1 - self.missing;
                self.gaps.push_back(Gap { from: self.next, to: number, place, at: now });
            }
            self.next = number + 1;
            self.waiting.push_back(number);
        } else {
            self.came_late(number, now);
        }
        self.latest.rotate_right(1);
        self.latest[0] = number;
        self.settle(false);
        if self.gaps.len() > GAPS && self.gaps[0].to <= self.place {
            self.gaps.pop_front();
        }
    }

    fn came_late(&mut self, number: u32, now: Time) {
        self.missing -= 1;
        let seen = &mut self.seen;
        seen.reordered += 1;
        seen.three += u64::from(self.latest.iter().all(|before| *before > number));
        let at = self.gaps.partition_point(|gap| gap.to <= number);
        if let Some(gap) = self.gaps.get(at).copied().filter(|gap| gap.from <= number) {
            let extent = self.next - self.missing - gap.place;
            seen.extent_max = seen.extent_max.max(extent);
            seen.late_max = seen.late_max.max(now.since(gap.at));
            *seen.extents.entry(extent.next_power_of_two()).or_default() += 1;
            self.gaps.remove(at);
            for (from, to) in [(number + 1, gap.to), (gap.from, number)] {
                if from < to {
                    self.gaps.insert(at, Gap { from, to, ..gap });
                }
            }
        }
        if number < self.place {
            seen.beyond += 1;
        } else {
            self.waiting.push_back(number);
        }
    }

    /// Gives places to waiting arrivals, as far as it is known which packets are lost; `end`: all packets that have not come are.
    fn settle(&mut self, end: bool) {
        let arrivals = self.next - self.missing;
        while let Some(first) = self.waiting.front() {
            let at = self.gaps.partition_point(|gap| gap.to <= self.place);
            let gap = self.gaps.get(at).filter(|gap| gap.from <= self.place);
            match gap {
                Some(gap) if end || arrivals - gap.place >= THRESHOLD => self.place = gap.to,
                Some(_) => return,
                None => {
                    let displacement = self.place as i32 - *first as i32;
                    if displacement != 0 {
                        *self.seen.displaced.entry(displacement).or_default() += 1;
                    }
                    self.waiting.pop_front();
                    self.place += 1;
                }
            }
        }
    }
}

impl Reordering {
    /// Adds the counts of another flow.
    pub fn add(&mut self, other: &Reordering) {
        self.packets += other.packets;
        self.reordered += other.reordered;
        self.three += other.three;
        self.extent_max = self.extent_max.max(other.extent_max);
        self.late_max = self.late_max.max(other.late_max);
        self.flows += other.flows;
        self.flows_reordered += other.flows_reordered;
        self.beyond += other.beyond;
        other.extents.iter().for_each(|(extent, n)| *self.extents.entry(*extent).or_default() += n);
        other.displaced.iter().for_each(|(by, n)| *self.displaced.entry(*by).or_default() += n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(arrivals: &[u32]) -> Reordering {
        let (mut order, mut next) = (Order::default(), Next::default());
        for (i, number) in (0..).zip(arrivals) {
            order.arrived(&mut next, *number, Time::from_ps(1_000 * i));
        }
        order.counts(next)
    }

    /// The definitions, word for word, over the whole list. `lost`: numbers that never arrive.
    fn defined(arrivals: &[u32], lost: &[u32]) -> Reordering {
        let mut r = Reordering { packets: arrivals.len() as u64, flows: 1, ..Reordering::default() };
        let mut place = 0;
        for (i, number) in arrivals.iter().enumerate() {
            if let Some(first) = arrivals[..i].iter().position(|earlier| earlier > number) {
                let extent = (i - first) as u32;
                r.reordered += 1;
                r.extent_max = r.extent_max.max(extent);
                r.late_max = r.late_max.max(Span::from_ps(1_000 * u64::from(extent)));
                *r.extents.entry(extent.next_power_of_two()).or_default() += 1;
                r.three += u64::from(i >= 3 && arrivals[i - 3..i].iter().all(|earlier| earlier > number));
            }
            while lost.contains(&place) {
                place += 1;
            }
            if place != *number {
                *r.displaced.entry(place as i32 - *number as i32).or_default() += 1;
            }
            place += 1;
        }
        r.flows_reordered = u64::from(r.reordered > 0);
        r
    }

    #[test]
    fn the_examples_of_the_rfcs() {
        // RFC 4737 §7.1: 1 2 3 7 8 9 10 4 5 6 11.
        let r = of(&[0, 1, 2, 6, 7, 8, 9, 3, 4, 5, 10]);
        assert_eq!((r.packets, r.reordered, r.extent_max, r.late_max), (11, 3, 6, Span::from_ps(6_000)));
        assert_eq!(r.three, 1, "4 is 4-reordered; before 5 stands 4");
        // RFC 5236 §3: 1 4 3 5 3 8 7 6 without the duplicate and the lost 2: displacements 0, -1, 1 ...
        let r = of(&[0, 3, 2, 4, 7, 6, 5]);
        assert_eq!(r, defined(&[0, 3, 2, 4, 7, 6, 5], &[1]));
        assert_eq!(r.displaced, BTreeMap::from([(-2, 1), (-1, 1), (1, 1), (2, 1)]));
    }

    #[test]
    fn losses_are_no_reordering_and_a_packet_that_counted_as_lost_is_beyond() {
        let all: Vec<u32> = (0..1_000).filter(|n| n % 10 != 3).collect();
        let r = of(&all);
        assert_eq!((r.packets, r.reordered, r.flows_reordered), (900, 0, 0));
        assert!(r.displaced.is_empty());
        let mut late: Vec<u32> = (0..400).filter(|n| *n != 7).collect();
        late.push(7);
        let r = of(&late);
        assert_eq!((r.reordered, r.three, r.extent_max, r.beyond), (1, 1, 392, 1));
        assert!(r.displaced.is_empty(), "{:?}", r.displaced);
        // In order again; a new loss does not make the old one come in its place.
        late.extend([400, 403, 401, 402]);
        assert_eq!(of(&late).displaced, BTreeMap::from([(-2, 1), (1, 2)]));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut order, mut next) = (Order::default(), Next::default());
        (0..1_000_000).step_by(2).for_each(|number| order.arrived(&mut next, number, Time::ZERO));
        let late = order.0.as_ref().unwrap();
        assert!(late.gaps.len() <= 4 * THRESHOLD as usize && late.waiting.len() <= 4 * THRESHOLD as usize);
        assert_eq!((order.counts(next).packets, order.counts(next).reordered), (500_000, 0));
    }

    proptest! {
        #[test]
        fn it_equals_the_definitions(keys in prop::collection::vec((0u32..40, any::<bool>(), 0u32..8), 1..300)) {
            // Sent in order, each delayed by up to 40 places; an eighth is lost.
            let mut packets: Vec<(u32, u32)> = (0..).zip(&keys).filter(|(_, k)| k.2 != 0)
                .map(|(n, k)| (if k.1 { n + k.0 } else { n }, n)).collect();
            packets.sort_by_key(|p| (p.0, p.1));
            let arrivals: Vec<u32> = packets.iter().map(|p| p.1).collect();
            let lost: Vec<u32> = (0..keys.len() as u32).filter(|n| !arrivals.contains(n)).collect();
            prop_assert_eq!(of(&arrivals), defined(&arrivals, &lost));
        }

        /// Figures by their definition, all but the density, of packets so late that the density counts them as lost.
        #[test]
        fn very_late_packets_have_their_extent(keys in prop::collection::vec((0u32..900, 0u32..12), 1..2_000)) {
            let mut packets: Vec<(u32, u32)> = (0..).zip(&keys).filter(|(_, k)| k.1 != 0)
                .map(|(n, k)| (if k.1 < 3 { n + k.0 } else { n }, n)).collect();
            packets.sort_by_key(|p| (p.0, p.1));
            let arrivals: Vec<u32> = packets.iter().map(|p| p.1).collect();
            let without = |r: Reordering| Reordering { displaced: BTreeMap::new(), beyond: 0, ..r };
            prop_assert_eq!(without(of(&arrivals)), without(defined(&arrivals, &[])));
        }
    }
}
