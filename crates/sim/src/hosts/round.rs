//! Round of the ends and packets that are ready at a NIC, in order. Mostly it has one entry, which stands in the NIC's own cache
//! line.

use super::Ready;
use std::collections::VecDeque;

/// Ends and packets that wait for the wire, in order of becoming ready; each has one transmission opportunity, then goes to the end.
#[derive(Debug, Default)]
pub struct Round {
    first: Option<Ready>,
    /// Further entries; empty where there is no first.
    rest: VecDeque<Ready>,
}

impl Round {
    /// True if nobody is ready.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The end or packet whose transmission opportunity is next.
    #[inline(always)]
    pub fn front(&self) -> Option<Ready> {
        self.first
    }

    /// Puts an end or packet at the end of the round.
    #[inline(always)]
    pub fn push_back(&mut self, ready: Ready) {
        if self.first.is_none() {
            self.first = Some(ready);
        } else {
            self.rest.push_back(ready);
        }
    }

    /// Puts an end or packet at the front of the round.
    pub fn push_front(&mut self, ready: Ready) {
        if let Some(before) = self.first.replace(ready) {
            self.rest.push_front(before);
        }
    }

    /// Takes the next end or packet out.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<Ready> {
        let next = if self.rest.is_empty() { None } else { self.rest.pop_front() };
        std::mem::replace(&mut self.first, next)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = Ready> + '_ {
        self.first.into_iter().chain(self.rest.iter().copied())
    }

    /// Removes entries for which `stays` is false.
    pub fn retain(&mut self, stays: impl Fn(Ready) -> bool) {
        *self = self.iter().filter(|ready| stays(*ready)).collect();
    }
}

impl FromIterator<Ready> for Round {
    fn from_iter<I: IntoIterator<Item = Ready>>(all: I) -> Self {
        let mut all = all.into_iter();
        Round { first: all.next(), rest: all.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ends::EndId;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_round_is_a_queue(steps in proptest::collection::vec((0..5_u8, 0..20_u32), 1..60)) {
            let (mut round, mut queue) = (Round::default(), VecDeque::new());
            for (step, id) in steps {
                let ready = Ready::End(EndId(id));
                match step {
                    0 | 1 => {
                        round.push_back(ready);
                        queue.push_back(ready);
                    }
                    2 => {
                        round.push_front(ready);
                        queue.push_front(ready);
                    }
                    3 => prop_assert_eq!(round.pop_front(), queue.pop_front()),
                    _ => {
                        round.retain(|other| other != ready);
                        queue.retain(|other| *other != ready);
                    }
                }
                prop_assert!(round.iter().eq(queue.iter().copied()));
                prop_assert_eq!((round.front(), round.is_empty()), (queue.front().copied(), queue.is_empty()));
            }
        }
    }
}
