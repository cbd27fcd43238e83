//! Packets that arrived at the port and have not been seen behind it yet.

use super::side::NEVER;
use std::collections::{BTreeSet, VecDeque};

/// Packets of equal key and other tags that are compared where a tag was not captured.
const COMPARED: usize = 16;

/// A packet at the port.
#[derive(Clone, Debug)]
pub struct Held<T> {
    /// When it arrived [ps].
    pub time: i128,
    key: u64,
    tag: u64,
    /// When it was seen behind the port, on the clock before it [ps].
    pub out: Option<i128>,
    pub what: T,
}

/// All of them, in order of arrival; they go by numbers.
#[derive(Clone, Debug)]
pub struct Flight<T> {
    held: VecDeque<Held<T>>,
    /// Number of the first.
    first: u64,
    unmatched: BTreeSet<(u64, u64, u64)>,
    /// The latest arrival that was seen behind.
    pub last: Option<u64>,
    latest: i128,
    /// Packets that left after one that had arrived later.
    pub overtaken: u64,
    /// By how many places one was late, at most; also of packets of one moment, for which of these came first stamps do not say.
    pub late: u64,
}

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Flight { held: VecDeque::new(), first: 0, unmatched: BTreeSet::new(), last: None, latest: NEVER, overtaken: 0, late: 0 }
    }
}

impl<T> Flight<T> {
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// A packet arrives.
    pub fn push(&mut self, time: i128, (key, tag): (u64, u64), what: T) {
        let number = self.first + self.held.len() as u64;
        self.unmatched.insert((key, tag, number));
        self.held.push_back(Held { time, key, tag, out: None, what });
    }

    /// The packet of that identity that leaves now: of equal ones the earliest after the last that left, for a port keeps the order;
    /// if there is none, the latest before it.
    pub fn leave(&mut self, key: u64, tag: u64, out: i128) -> Option<&mut Held<T>> {
        let after = self.last.map_or(0, |last| last + 1);
        let among = |tag: u64| {
            let mut later = self.unmatched.range((key, tag, after)..=(key, tag, u64::MAX));
            let mut earlier = self.unmatched.range((key, tag, 0)..(key, tag, after));
            later.next().or_else(|| earlier.next_back()).copied()
        };
        let found = if tag != 0 {
            among(tag).or_else(|| among(0))
        } else {
            let all = self.unmatched.range((key, 0, 0)..=(key, u64::MAX, u64::MAX)).take(COMPARED);
            all.copied().min_by_key(|(_, _, number)| (*number < after, *number))
        };
        let number = found?;
        self.unmatched.remove(&number);
        let number = number.2;
        self.late = self.late.max(after.saturating_sub(number + 1));
        self.last = self.last.max(Some(number));
        let held = self.held.get_mut((number - self.first) as usize)?;
        self.overtaken += u64::from(held.time < self.latest);
        self.latest = self.latest.max(held.time);
        held.out = Some(out);
        Some(held)
    }

    /// Packets of these numbers that have not been seen behind.
    pub fn unseen(&self, from: u64, to: u64) -> impl Iterator<Item = &T> {
        let at = |number: u64| (number.saturating_sub(self.first) as usize).min(self.held.len());
        self.held.range(at(from)..at(to).max(at(from))).filter(|held| held.out.is_none()).map(|held| &held.what)
    }

    /// The earliest, and its number.
    pub fn front(&self) -> Option<(u64, &Held<T>)> {
        self.held.front().map(|held| (self.first, held))
    }

    /// Takes the earliest away.
    pub fn pop(&mut self) -> Option<Held<T>> {
        let held = self.held.pop_front()?;
        if held.out.is_none() {
            self.unmatched.remove(&(held.key, held.tag, self.first));
        }
        self.first += 1;
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_packets_leave_in_order_and_what_was_dropped_before_is_passed_over() {
        let mut flight = Flight::default();
        for (i, key) in [7, 7, 8, 7].into_iter().enumerate() {
            flight.push(i as i128, (key, 0), i);
        }
        assert_eq!(flight.leave(7, 0, 10).unwrap().what, 0);
        assert_eq!(flight.leave(8, 0, 11).unwrap().what, 2);
        assert_eq!(flight.leave(7, 0, 12).unwrap().what, 3, "the second was dropped: the third packet has left already");
        assert_eq!((flight.leave(7, 0, 13).unwrap().what, flight.overtaken), (1, 1), "unless it comes after all");
        assert!(flight.leave(7, 0, 14).is_none());
        let outs: Vec<_> = std::iter::from_fn(|| flight.pop()).map(|held| held.out.unwrap()).collect();
        assert_eq!(outs, [10, 13, 11, 12]);
    }

    #[test]
    fn tags_count_where_both_sides_have_them() {
        let mut flight = Flight::default();
        for (i, tag) in [5, 6, 0].into_iter().enumerate() {
            flight.push(0, (1, tag), i);
        }
        assert_eq!(flight.leave(1, 6, 0).unwrap().what, 1);
        assert_eq!(flight.leave(1, 9, 0).unwrap().what, 2, "the one whose tag was not captured");
        assert!(flight.leave(1, 9, 0).is_none());
        assert_eq!(flight.leave(1, 0, 0).unwrap().what, 0, "any");
        flight.push(0, (1, 5), 3);
        while flight.pop().is_some() {}
        assert!(flight.leave(1, 5, 0).is_none() && flight.len() == 0);
    }
}
