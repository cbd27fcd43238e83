//! Sides of a link: a frame goes from one side to the other, so that source and destination are on different ones.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Hosts that are distinguished.
const MOST: usize = 1 << 18;

/// A host, as far as frames identify it: by its MAC address, its IP address, or that and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    Mac(u64),
    Ip(IpAddr),
    Port(IpAddr, u16),
}

/// Hosts of a link, in groups that exchange frames.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    numbers: BTreeMap<Host, u32>,
    /// Another host that each host was compared with, and true if that is on the other side.
    next: Vec<(u32, bool)>,
    /// True if no two sides explain all frames, or there are too many hosts.
    pub conflict: bool,
}

impl Sides {
    fn number(&mut self, host: Host) -> Option<u32> {
        if let Some(number) = self.numbers.get(&host) {
            return Some(*number);
        }
        if self.numbers.len() == MOST {
            self.conflict = true;
            return None;
        }
        let number = self.next.len() as u32;
        self.numbers.insert(host, number);
        self.next.push((number, false));
        Some(number)
    }

    /// Host that stands for a host's group, and true if the host is on the other side of it.
    fn root(&mut self, host: u32) -> (u32, bool) {
        let (mut at, mut other) = (host, false);
        while self.next[at as usize].0 != at {
            other ^= self.next[at as usize].1;
            at = self.next[at as usize].0;
        }
        // The next time it is one step from each.
        let (mut from, mut side) = (host, other);
        while from != at {
            let (next, crossed) = self.next[from as usize];
            self.next[from as usize] = (at, side);
            side ^= crossed;
            from = next;
        }
        (at, other)
    }

    /// Takes a frame from one host to another.
    pub fn cross(&mut self, from: Host, to: Host) {
        let (Some(a), Some(b)) = (self.number(from), self.number(to)) else { return };
        let ((a, a_side), (b, b_side)) = (self.root(a), self.root(b));
        if a == b {
            self.conflict |= a_side == b_side;
        } else {
            self.next[a as usize] = (b, a_side == b_side);
        }
    }

    /// Adds a host whose frames have no known destination.
    pub fn add(&mut self, host: Host) {
        self.number(host);
    }

    /// A host's group, and its side in it.
    pub fn side(&mut self, host: Host) -> Option<(u32, bool)> {
        let number = *self.numbers.get(&host)?;
        Some(self.root(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Host::Mac;

    #[test]
    fn hosts_are_on_two_sides_or_they_are_not() {
        let mut sides = Sides::default();
        (1..=1000).for_each(|host| sides.cross(Mac(host), Mac(0)));
        sides.cross(Mac(0), Mac(7));
        assert_eq!(sides.side(Mac(3)), sides.side(Mac(999)));
        assert_ne!(sides.side(Mac(3)), sides.side(Mac(0)));
        // Another group is on neither side of this one.
        sides.cross(Mac(5000), Mac(5001));
        let (group, _) = sides.side(Mac(5000)).unwrap();
        assert_ne!(group, sides.side(Mac(0)).unwrap().0);
        sides.cross(Mac(5001), Mac(0));
        assert_eq!(sides.side(Mac(5000)), sides.side(Mac(0)));
        assert!(!sides.conflict && sides.side(Mac(9999)).is_none());
        sides.cross(Mac(1), Mac(2));
        assert!(sides.conflict);
    }

    #[test]
    fn a_host_cannot_be_on_both_sides() {
        let mut sides = Sides::default();
        sides.cross(Mac(1), Mac(1));
        assert!(sides.conflict);
        let mut many = Sides::default();
        (0..2 * MOST as u64).for_each(|host| many.cross(Mac(2 * host), Mac(2 * host + 1)));
        assert!(many.conflict && many.numbers.len() <= MOST);
    }
}
