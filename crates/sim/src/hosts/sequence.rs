//! Packets that come too early wait for those before them, in front of the transport, for a bounded time.

use fanin_packet::PacketId;
use fanin_units::Time;
use std::collections::VecDeque;

/// A packet with payload, by its place in its flow's bytes modulo 2^32.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub packet: PacketId,
    pub from: u32,
    /// Place behind the packet's last byte.
    pub to: u32,
    /// The packet goes on at this time at the latest.
    pub until: Time,
}

/// One direction of a flow at its receiver.
#[derive(Debug)]
pub struct Sequence {
    /// The place behind all that went on.
    reached: u32,
    /// Packets that have come too early, by place.
    early: VecDeque<Placed>,
}

impl Sequence {
    /// The packet that begins at `reached` is next.
    pub fn new(reached: u32) -> Self {
        Sequence { reached, early: VecDeque::new() }
    }

    /// Bytes from the end of what went on to a place; negative: the place went on before.
    fn ahead(&self, place: u32) -> i32 {
        place.wrapping_sub(self.reached) as i32
    }

    /// Handles a packet that has come: it goes on, with packets that have waited for it, or waits. True: it went on.
    pub fn arrived(&mut self, packet: Placed, mut go_on: impl FnMut(PacketId)) -> bool {
        let ahead = self.ahead(packet.from);
        if ahead > 0 {
            let at = self.early.partition_point(|other| self.ahead(other.from) <= ahead);
            self.early.insert(at, packet);
            return false;
        }
        self.passes(packet, &mut go_on);
        true
    }

    /// Lets a packet go on, and all that follow it.
    fn passes(&mut self, packet: Placed, go_on: &mut impl FnMut(PacketId)) {
        let mut next = Some(packet);
        while let Some(packet) = next {
            if self.ahead(packet.to) > 0 {
                self.reached = packet.to;
            }
            go_on(packet.packet);
            next = match self.early.front() {
                Some(first) if self.ahead(first.from) <= 0 => self.early.pop_front(),
                _ => None,
            };
        }
    }

    /// Lets packets that have waited for too long go on, and with them those that stand before them; gives the number of gaps
    /// that were given up.
    pub fn expire(&mut self, now: Time, mut go_on: impl FnMut(PacketId)) -> u64 {
        let mut gaps = 0;
        while self.next_timeout() <= now {
            let Some(first) = self.early.pop_front() else { return gaps };
            self.passes(first, &mut go_on);
            gaps += 1;
        }
        gaps
    }

    /// Time at which a packet has waited for too long; `Time::MAX`: none waits.
    pub fn next_timeout(&self) -> Time {
        self.early.iter().map(|packet| packet.until).min().unwrap_or(Time::MAX)
    }

    /// Packets that wait.
    pub fn packets(&self) -> usize {
        self.early.len()
    }

    /// True if all that is to be known is that a transport is at this place: nothing waits, and no gap was given up behind it.
    pub fn is_at(&self, place: u32) -> bool {
        self.early.is_empty() && self.ahead(place) >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Span;
    use proptest::prelude::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Packet `n` of 100 bytes, the first of which begins at `start`; it goes on 10 us after it came at the latest.
    fn placed(start: u32, n: u32, now: u64) -> Placed {
        let from = start.wrapping_add(100 * n);
        Placed { packet: PacketId(n), from, to: from.wrapping_add(100), until: at(now + 10) }
    }

    fn arrive(sequence: &mut Sequence, start: u32, n: u32, now: u64) -> Vec<u32> {
        let mut on = Vec::new();
        sequence.arrived(placed(start, n, now), |packet| on.push(packet.0));
        on
    }

    #[test]
    fn early_packets_wait_for_those_before_them_also_across_zero() {
        for start in [0, u32::MAX - 150] {
            let mut s = Sequence::new(start);
            assert_eq!(arrive(&mut s, start, 0, 0), [0]);
            assert!(arrive(&mut s, start, 3, 1).is_empty() && arrive(&mut s, start, 2, 2).is_empty());
            assert_eq!((s.next_timeout(), s.is_at(start.wrapping_add(100))), (at(11), false));
            assert_eq!(arrive(&mut s, start, 1, 3), [1, 2, 3]);
            assert_eq!((s.next_timeout(), s.is_at(start.wrapping_add(400))), (Time::MAX, true));
            assert_eq!(arrive(&mut s, start, 2, 4), [2], "what was there already is the transport's to see");
        }
    }

    #[test]
    fn a_gap_is_given_up_when_the_first_behind_it_has_waited() {
        let mut s = Sequence::new(0);
        for (n, now) in [(1, 0), (2, 3), (4, 5)] {
            assert!(arrive(&mut s, 0, n, now).is_empty());
        }
        let mut on = Vec::new();
        assert_eq!(s.expire(at(9), |packet| on.push(packet.0)), 0);
        assert_eq!(s.expire(at(10), |packet| on.push(packet.0)), 1);
        assert_eq!((&on[..], s.next_timeout()), (&[1, 2][..], at(15)));
        // What was missing passes; the next is not early any more.
        assert_eq!(arrive(&mut s, 0, 0, 11), [0]);
        assert!(!s.is_at(100));
        assert_eq!(arrive(&mut s, 0, 3, 12), [3, 4]);
        assert!(s.is_at(500));
    }

    proptest! {
        /// Each packet goes on once, none waits longer than 10 us, and without losses all in order where none waits so long.
        #[test]
        fn each_goes_on_once(order in prop::collection::vec((0u32..6, 0u64..4), 1..80), lose in any::<bool>(), start in any::<u32>()) {
            let mut packets: Vec<u32> = (0..order.len() as u32).collect();
            packets.sort_by_key(|n| n + order[*n as usize].0);
            let (mut s, mut now) = (Sequence::new(start), 0);
            let (mut on, mut came, mut given_up) = (Vec::new(), Vec::new(), 0);
            for n in packets {
                now += order[n as usize].1;
                given_up += s.expire(at(now), |packet| on.push(packet.0));
                if lose && order[n as usize].0 == 5 {
                    continue;
                }
                came.push(n);
                on.extend(arrive(&mut s, start, n, now));
                prop_assert!(s.next_timeout() > at(now), "none waits longer");
            }
            given_up += s.expire(at(now + 10), |packet| on.push(packet.0));
            prop_assert_eq!(s.next_timeout(), Time::MAX);
            prop_assert!(given_up > 0 || on.windows(2).all(|two| two[0] < two[1]));
            on.sort_unstable();
            came.sort_unstable();
            prop_assert_eq!(on, came);
        }
    }
}
