//! Packets that take memory, by number: a table as large as what waits at this switch, not as all packets that exist. A table by
//! number at each of 80 switches was most of what a run with many packets read and wrote.

use crate::mechanism::PortNo;
use fanin_packet::PacketId;

/// A packet that takes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// Where it came in, and the port that it waits for.
    pub port: PortNo,
    pub output: PortNo,
    pub class: u8,
    pub bytes: u16,
    /// It has crossed to its port, and takes no memory of its input any more.
    pub crossed: bool,
}

/// No packet.
const NONE: PacketId = PacketId::MAX;
/// A place where nothing is.
const EMPTY: (PacketId, Held) = (NONE, Held { port: PortNo(0), output: PortNo(0), class: 0, bytes: 0, crossed: false });

/// See the module. Open addressing with linear probing: a packet is at its own place or behind it, with no empty one between.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    /// None, or a power of two, at most half of it in use.
    places: Vec<(PacketId, Held)>,
    count: usize,
}

impl Waits {
    /// A packet's own place.
    #[inline]
    fn home(&self, packet: PacketId) -> usize {
        // By the golden ratio: numbers in use are often neighbours.
        (u64::from(packet).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.places.len() - 1)
    }

    /// The place of a packet, or the empty one where it would be. Some place is empty.
    #[inline]
    fn find(&self, packet: PacketId) -> usize {
        let mut place = self.home(packet);
        while self.places[place].0 != packet && self.places[place].0 != NONE {
            place = (place + 1) & (self.places.len() - 1);
        }
        place
    }

    /// Where a packet's own place is.
    #[inline]
    pub(super) fn address(&self, packet: PacketId) -> *const u8 {
        let home = if self.places.is_empty() { 0 } else { self.home(packet) };
        self.places.as_ptr().wrapping_add(home).cast()
    }

    /// A packet waits; it did not before.
    pub(super) fn insert(&mut self, packet: PacketId, held: Held) {
        if 2 * self.count >= self.places.len() {
            self.grow();
        }
        let place = self.find(packet);
        debug_assert_eq!(self.places[place].0, NONE, "packet {packet} waits twice");
        self.places[place] = (packet, held);
        self.count += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![EMPTY; (2 * self.places.len()).max(16)];
        for (packet, held) in std::mem::replace(&mut self.places, larger) {
            if packet != NONE {
                let place = self.find(packet);
                self.places[place] = (packet, held);
            }
        }
    }

    /// Whether a packet waits.
    pub(super) fn has(&self, packet: PacketId) -> bool {
        self.count > 0 && self.places[self.find(packet)].0 == packet
    }

    /// A packet has left its input, and waits at its port; `None` where it did not wait.
    pub(super) fn cross(&mut self, packet: PacketId) -> Option<Held> {
        if self.count == 0 {
            return None;
        }
        let place = self.find(packet);
        let (_, held) = self.places.get_mut(place).filter(|(found, _)| *found == packet)?;
        Some(std::mem::replace(held, Held { crossed: true, ..*held }))
    }

    /// A packet waits no longer; `None` where it did not.
    pub(super) fn remove(&mut self, packet: PacketId) -> Option<Held> {
        if self.count == 0 {
            return None;
        }
        let mut hole = self.find(packet);
        if self.places[hole].0 != packet {
            return None;
        }
        let held = self.places[hole].1;
        let mask = self.places.len() - 1;
        // Those behind it that are not at their own places move up where the hole is not before these.
        let mut place = (hole + 1) & mask;
        while self.places[place].0 != NONE {
            let home = self.home(self.places[place].0);
            if place.wrapping_sub(home) & mask >= place.wrapping_sub(hole) & mask {
                self.places[hole] = self.places[place];
                hole = place;
            }
            place = (place + 1) & mask;
        }
        self.places[hole] = EMPTY;
        self.count -= 1;
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_holds_what_a_map_would() {
        let (mut waits, mut map) = (Waits::default(), BTreeMap::new());
        let mut state = 1_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut largest = 0;
        for step in 0..200_000 {
            // Few numbers, then many, so that places are often taken and the table has to grow.
            let packet = below(if step < 100_000 { 24 } else { 3_000 }) as PacketId;
            let held = Held { port: PortNo(below(9) as u16), output: PortNo(1), class: 3, bytes: step as u16, crossed: false };
            assert_eq!(waits.cross(packet), map.get(&packet).copied());
            map.entry(packet).and_modify(|held: &mut Held| held.crossed = true);
            let before = map.remove(&packet);
            assert_eq!(waits.remove(packet), before);
            if before.is_none() {
                waits.insert(packet, held);
                map.insert(packet, held);
            }
            largest = largest.max(map.len());
            assert_eq!(waits.count, map.len());
        }
        assert!(waits.places.len() <= 4 * largest, "{} places for {largest}", waits.places.len());
        for (packet, held) in map {
            assert_eq!(waits.remove(packet), Some(held));
        }
        assert!(waits.count == 0 && waits.places.iter().all(|place| *place == EMPTY));
    }
}
