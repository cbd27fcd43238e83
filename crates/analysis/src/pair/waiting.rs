//! Packets at the port in order of arrival, until their fate is known.

use super::matching::Partner;
use super::side::NEVER;
use std::collections::VecDeque;

/// Wait of a packet that has not been seen behind the port.
const NOT_OUT: i64 = i64::MIN;
const MOST_WAIT: i128 = i64::MAX as i128;

/// A packet at the port.
#[derive(Clone, Debug)]
pub struct Held<T> {
    /// Arrival of the packet [ps].
    pub time: i128,
    /// Time from its arrival until it was seen behind the port, on the clock before it [ps].
    wait: i64,
    pub what: T,
}

impl<T> Held<T> {
    /// Time at which the packet was seen behind the port, on the clock before it [ps].
    #[inline]
    pub fn out(&self) -> Option<i128> {
        self.is_out().then(|| self.time + i128::from(self.wait))
    }

    /// True if the packet was seen behind the port.
    #[inline]
    pub fn is_out(&self) -> bool {
        self.wait != NOT_OUT
    }
}

/// Packets at the port, by number in order of arrival.
#[derive(Clone, Debug)]
pub struct Waiting<T> {
    held: VecDeque<Held<T>>,
    /// Number of the first packet that is kept.
    first: u64,
    /// The latest arrival that was seen behind.
    pub last: Option<u64>,
    latest: i128,
    /// Packets that left after one that had arrived later.
    pub overtaken: u64,
    /// Packets that left while another of their identity was at the port, of which it may have been either.
    pub alike: u64,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Waiting { held: VecDeque::new(), first: 0, last: None, latest: NEVER, overtaken: 0, alike: 0 }
    }
}

impl<T> Waiting<T> {
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Adds a packet that arrives at the port.
    #[inline]
    pub fn push(&mut self, time: i128, what: T) {
        self.held.push_back(Held { time, wait: NOT_OUT, what });
    }

    fn get(&self, number: u64) -> Option<&Held<T>> {
        self.held.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The packet that leaves at `out`, on the clock before the port; none if it has not arrived, or was given up.
    #[inline]
    pub fn leave(&mut self, Partner { number, rival }: Partner, out: i128) -> Option<&mut Held<T>> {
        // One that is captured ahead and has not arrived yet is no rival.
        let rival = rival.and_then(|rival| self.get(rival)).is_some_and(|rival| rival.time <= out);
        let held = self.held.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)?;
        self.alike += u64::from(rival);
        self.last = self.last.max(Some(number));
        self.overtaken += u64::from(held.time < self.latest);
        self.latest = self.latest.max(held.time);
        // A wait of months is none.
        held.wait = (out - held.time).clamp(-MOST_WAIT, MOST_WAIT) as i64;
        Some(held)
    }

    /// Packets of these numbers that have not been seen behind.
    pub fn unseen(&self, from: u64, to: u64) -> impl Iterator<Item = &T> {
        let at = |number: u64| (number.saturating_sub(self.first) as usize).min(self.held.len());
        self.held.range(at(from)..at(to).max(at(from))).filter(|held| !held.is_out()).map(|held| &held.what)
    }

    /// The earliest packet, and its number.
    #[inline]
    pub fn front(&self) -> Option<(u64, &Held<T>)> {
        self.held.front().map(|held| (self.first, held))
    }

    /// Removes the earliest packet.
    #[inline]
    pub fn pop(&mut self) {
        self.first += u64::from(self.held.pop_front().is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partner(number: u64, rival: Option<u64>) -> Partner {
        Partner { number, rival }
    }

    #[test]
    fn alike_are_those_that_were_at_the_port_together() {
        let mut waiting = Waiting::default();
        [0, 1, 20, 31].into_iter().for_each(|time| waiting.push(time, time));
        assert_eq!(waiting.leave(partner(0, Some(1)), 10).map(|held| held.what), Some(0));
        assert_eq!((waiting.leave(partner(1, None), 11).unwrap().what, waiting.alike), (1, 1));
        // What was read ahead but arrived later is another packet for certain.
        assert_eq!((waiting.leave(partner(2, Some(3)), 30).unwrap().what, waiting.alike), (20, 1));
        assert!(waiting.leave(partner(4, Some(3)), 50).is_none(), "has not arrived yet");
        waiting.pop();
        assert!(waiting.leave(partner(0, Some(3)), 50).is_none(), "was given up");
        assert_eq!((waiting.alike, waiting.last, waiting.len()), (1, Some(2), 3));
    }

    #[test]
    fn packets_in_between_are_unseen_and_those_behind_later_ones_overtaken() {
        let mut waiting = Waiting::default();
        (0..5).for_each(|number| waiting.push(number, number));
        for (number, overtaken) in [(0, 0), (3, 0), (1, 1), (4, 1)] {
            assert!(waiting.leave(partner(number, None), 10 + i128::from(number)).is_some());
            assert_eq!(waiting.overtaken, overtaken, "{number}");
        }
        assert_eq!(waiting.unseen(0, 9).collect::<Vec<_>>(), [&2]);
        assert_eq!((waiting.unseen(3, 2).count(), waiting.unseen(3, 9).count()), (0, 0));
        let outs = std::iter::from_fn(|| {
            let out = waiting.front().map(|(number, held)| (number, held.out()));
            waiting.pop();
            out
        });
        assert_eq!(outs.collect::<Vec<_>>(), [(0, Some(10)), (1, Some(11)), (2, None), (3, Some(13)), (4, Some(14))]);
    }
}
