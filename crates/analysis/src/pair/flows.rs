//! Flows of the packets that are at the port: a packet carries the place of its flow instead of addresses and ports.

use super::identity::{spread, Seen};
use super::side::NEVER;
use crate::capture::FlowKey;

/// Number of flows that are at hand.
const LATELY: usize = 1 << 12;
const NONE: u32 = u32::MAX;

/// A flow.
#[derive(Clone, Copy, Debug)]
struct Slot {
    key: FlowKey,
    /// Receiver, as a number.
    to: u64,
    /// Number of the flow in the trace, once a record has asked for it.
    number: Option<u32>,
    /// Packets at the port.
    packets: u32,
    /// The latest arrival of those that have left [ps].
    latest: i128,
    /// True once it was asked if the flow is new.
    asked: bool,
    /// Place among those at hand.
    place: u16,
}

/// Flows of packets at the port, and a few more that were there lately.
#[derive(Debug)]
pub struct Flows {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots at the places that hosts and ports give.
    lately: Vec<u32>,
}

impl Default for Flows {
    fn default() -> Self {
        Flows { slots: Vec::new(), free: Vec::new(), lately: vec![NONE; LATELY] }
    }
}

impl Flows {
    /// Takes a packet; gives the slot of its flow.
    #[inline]
    pub fn take(&mut self, seen: &Seen) -> u32 {
        let place = spread(seen.hosts, seen.flow.3) as usize % LATELY;
        let lately = self.lately[place];
        if let Some(slot) = self.slots.get_mut(lately as usize).filter(|slot| slot.key == seen.flow) {
            slot.packets += 1;
            return lately;
        }
        self.add(seen, place)
    }

    #[cold]
    fn add(&mut self, seen: &Seen, place: usize) -> u32 {
        let before = self.lately[place];
        if self.slots.get(before as usize).is_some_and(|slot| slot.packets == 0) {
            self.free.push(before);
        }
        let slot =
            Slot { key: seen.flow, to: seen.hosts.1, number: None, packets: 1, latest: NEVER, asked: false, place: place as u16 };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.lately[place] = at;
        at
    }

    /// Lets a packet of a flow go.
    #[inline]
    pub fn leave(&mut self, at: u32) {
        let slot = &mut self.slots[at as usize];
        slot.packets -= 1;
        if slot.packets == 0 && self.lately[usize::from(slot.place)] != at {
            self.free.push(at);
        }
    }

    /// Takes a packet's departure, by its arrival [ps]; gives by how much it arrived before one of its flow that has left [ps].
    #[inline]
    pub fn left(&mut self, at: u32, arrived: i128) -> Option<i128> {
        let latest = &mut self.slots[at as usize].latest;
        if arrived >= *latest {
            *latest = arrived;
            return None;
        }
        Some(*latest - arrived)
    }

    /// True when it is asked of a slot for the first time: its flow may be new.
    #[inline]
    pub fn may_be_new(&mut self, at: u32) -> bool {
        !std::mem::replace(&mut self.slots[at as usize].asked, true)
    }

    /// Key of a flow.
    #[inline]
    pub fn key(&self, at: u32) -> &FlowKey {
        &self.slots[at as usize].key
    }

    /// Receiver of a flow's packets, as a number.
    #[inline]
    pub fn receiver(&self, at: u32) -> u64 {
        self.slots[at as usize].to
    }

    /// The number of a flow in the trace; where it has none yet, `find` gives it.
    ///
    /// # Errors
    /// Those of `find`.
    #[inline]
    pub fn number<E>(&mut self, at: u32, find: impl FnOnce(&FlowKey) -> Result<u32, E>) -> Result<u32, E> {
        let slot = &mut self.slots[at as usize];
        match slot.number {
            Some(number) => Ok(number),
            None => Ok(*slot.number.insert(find(&slot.key)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn slots_are_used_again_once_their_packets_have_left() {
        let seen = |n: u32| {
            let address = IpAddr::V4(Ipv4Addr::from_bits(n));
            // All share a place.
            Seen { flow: (address, address, 6, None, None), hosts: (0, u64::from(n) << 32), ..Seen::NONE }
        };
        let mut flows = Flows::default();
        let first = flows.take(&seen(0));
        assert!(flows.may_be_new(first) && flows.take(&seen(0)) == first && !flows.may_be_new(first));
        assert_eq!(flows.number(first, |key| Ok::<_, ()>(u32::from(key.2))), Ok(6));
        let late = [5, 9, 9, 7, 10].map(|arrived| flows.left(first, arrived));
        assert_eq!(late, [None, None, None, Some(2), None]);
        // Another flow takes the place, and the packets of the first are still known.
        let other = flows.take(&seen(1));
        assert_ne!(first, other);
        assert_eq!((flows.receiver(first), flows.receiver(other)), (0, 1 << 32));
        assert_eq!(flows.number(first, |_| Err(())), Ok(6));
        flows.leave(first);
        flows.leave(first);
        let third = flows.take(&seen(2));
        assert_eq!((third, flows.receiver(third)), (first, 2 << 32));
        assert_eq!(flows.number(third, |_| Ok::<_, ()>(9)), Ok(9));
        // With or without packets at the port there are no more slots than flows that were there together, and those at hand.
        flows.leave(other);
        flows.leave(third);
        for n in 3..1_000 {
            let at = flows.take(&seen(n));
            assert!(flows.may_be_new(at));
            flows.leave(at);
        }
        assert!(flows.slots.len() <= 3, "{}", flows.slots.len());
    }
}
