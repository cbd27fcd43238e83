//! Packets that arrived at the port and have not been seen behind it yet, and the search among them.

use super::matching::Partner;
use fanin_units::prefetch;
use std::hash::{BuildHasher, RandomState};

/// No slot, and no chain.
const NONE: u32 = u32::MAX;

/// Slots of the packets in front of a packet and after it, in a chain or in order of arrival.
type Links = [u32; 2];

/// A packet at the port. There are up to a million of them: one fills a line of the cache.
#[derive(Clone, Debug)]
struct Held<T> {
    /// Arrival of the packet after the first of all [ps].
    time: i64,
    /// Number of the packet among all that arrived.
    number: u64,
    key: u64,
    tag: u64,
    /// Links to packets that have its key and tag, to those that have its key, and to all.
    equal: Links,
    alike: Links,
    age: Links,
    what: T,
}

/// A packet that has been found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<T> {
    pub number: u64,
    /// Number of a packet that would have been found without it, of the same identity.
    pub rival: Option<u64>,
    /// Time of its arrival [ps].
    pub time: i128,
    pub what: T,
}

impl<T> Found<T> {
    /// The packet, and its rival, by number.
    pub fn partner(&self) -> Partner {
        Partner { number: self.number, rival: self.rival }
    }
}

/// Packets that are at the port and have one identity, in order of arrival.
#[derive(Clone, Copy, Debug)]
struct Chain {
    name: u64,
    last: u32,
    /// The first packet that arrived after the last that left, as far as that was followed; [`NONE`]: all arrived before.
    later: u32,
    /// The next chain in the same place of the index, or that is free.
    next: u32,
    /// Marks of the place without this chain.
    below: u32,
}

/// A place of the index.
#[derive(Clone, Copy, Debug)]
struct Place {
    chain: u32,
    /// A bit for each chain here: one that is not there is mostly known without a look at those of packets that were dropped, which are
    /// out of the cache.
    marks: u32,
}

impl Place {
    const FREE: Place = Place { chain: NONE, marks: 0 };
}

/// Chains by the hash of their identity.
///
/// Which names share a place nobody can know beforehand, so that no packets can be made that all do (Dietzfelbinger et al. 1997, universal
/// hashing by multiplication); what is found does not depend on it.
#[derive(Clone, Debug)]
struct Index {
    factor: u64,
    places: Vec<Place>,
    chains: Vec<Chain>,
    free: Option<u32>,
    used: usize,
}

impl Default for Index {
    fn default() -> Self {
        Index { factor: RandomState::new().hash_one(0) | 1, places: Vec::new(), chains: Vec::new(), free: None, used: 0 }
    }
}

impl Index {
    fn place(&self, name: u64) -> usize {
        (name.wrapping_mul(self.factor) >> 32) as usize & (self.places.len() - 1)
    }

    fn mark(name: u64) -> u32 {
        1 << (name >> 59)
    }

    /// Hints that a name is sought soon.
    #[inline]
    fn prefetch_place(&self, name: u64) {
        if !self.places.is_empty() {
            prefetch(&self.places[self.place(name)]);
        }
    }

    /// The chain at a name's place that was added last, where there is any: mostly that of the name.
    #[inline]
    fn newest(&self, name: u64) -> Option<&Chain> {
        if self.places.is_empty() {
            return None;
        }
        let place = self.places[self.place(name)];
        self.chains.get(place.chain as usize).filter(|_| place.marks & Self::mark(name) > 0)
    }

    fn find(&self, name: u64) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let Place { chain: mut at, marks } = self.places[self.place(name)];
        if marks & Self::mark(name) == 0 {
            return None;
        }
        loop {
            let chain = self.chains.get(at as usize)?;
            if chain.name == name {
                return Some(at);
            }
            at = chain.next;
        }
    }

    fn add(&mut self, name: u64, slot: u32) {
        // Two chains share a place, the later one in front: earlier ones are mostly of packets that were dropped.
        if self.used >= 2 * self.places.len() {
            let all = std::mem::take(&mut self.places);
            self.places = vec![Place::FREE; (all.len() * 2).max(1 << 10)];
            for Place { chain: mut at, .. } in all {
                while let Some(chain) = self.chains.get(at as usize).copied() {
                    let place = self.place(chain.name);
                    let Place { chain: next, marks: below } = self.places[place];
                    (self.chains[at as usize].next, self.chains[at as usize].below) = (next, below);
                    self.places[place] = Place { chain: at, marks: below | Self::mark(chain.name) };
                    at = chain.next;
                }
            }
        }
        let place = self.place(name);
        let Place { chain: next, marks: below } = self.places[place];
        let chain = Chain { name, last: slot, later: slot, next, below };
        let at = match self.free {
            Some(at) => {
                self.free = Some(self.chains[at as usize].next).filter(|next| *next != NONE);
                self.chains[at as usize] = chain;
                at
            }
            None => {
                self.chains.push(chain);
                self.chains.len() as u32 - 1
            }
        };
        self.places[place] = Place { chain: at, marks: below | Self::mark(name) };
        self.used += 1;
    }

    /// Takes a chain away that has no packets.
    fn remove(&mut self, gone: u32) {
        let place = self.place(self.chains[gone as usize].name);
        let next = self.chains[gone as usize].next;
        if self.places[place].chain == gone {
            let marks = if next == NONE { 0 } else { self.chains[gone as usize].below };
            self.places[place] = Place { chain: next, marks };
        } else {
            // Its mark stays, which costs a look at most.
            let mut at = self.places[place].chain;
            while let Some(chain) = self.chains.get_mut(at as usize) {
                if chain.next == gone {
                    chain.next = next;
                    break;
                }
                at = chain.next;
            }
        }
        self.chains[gone as usize].next = self.free.unwrap_or(NONE);
        self.free = Some(gone);
        self.used -= 1;
    }
}

/// Packets at the port, in slots; they are numbered in order of arrival.
#[derive(Clone, Debug)]
pub struct Flight<T> {
    slots: Vec<Held<T>>,
    /// Slots without a packet, the packets that are there, and the earliest and latest of these.
    free: Vec<u32>,
    count: usize,
    ends: Links,
    by_name: Index,
    /// Index by key alone; made once a packet comes out without tag, and then kept.
    by_key: Option<Index>,
    /// Time of the first arrival [ps]; none has arrived yet without one.
    zero: Option<i128>,
    /// Number of the next packet that arrives, and that of the latest arrival that was seen behind.
    next: u64,
    last: Option<u64>,
    /// Largest number of places by which a packet was late; also of packets of one moment, whose order stamps do not tell.
    pub late: u64,
}

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Flight {
            slots: Vec::new(),
            free: Vec::new(),
            count: 0,
            ends: [NONE; 2],
            by_name: Index::default(),
            by_key: None,
            zero: None,
            next: 0,
            last: None,
            late: 0,
        }
    }
}

/// The identity of a packet with a tag.
fn name(key: u64, tag: u64) -> u64 {
    (key.rotate_left(29) ^ tag).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ key
}

impl<T: Copy> Flight<T> {
    /// Adds a packet that arrives at the port.
    pub fn push(&mut self, time: i128, (key, tag): (u64, u64), what: T) {
        let [_, latest] = self.ends;
        let held = Held {
            time: self.since(time),
            number: self.next,
            key,
            tag,
            equal: [NONE; 2],
            alike: [NONE; 2],
            age: [latest, NONE],
            what,
        };
        self.next += 1;
        self.count += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = held;
                slot
            }
            None => {
                self.slots.push(held);
                self.slots.len() as u32 - 1
            }
        };
        match self.slots.get_mut(latest as usize) {
            Some(latest) => latest.age[1] = slot,
            None => self.ends[0] = slot,
        }
        self.ends[1] = slot;
        append(&mut self.by_name, &mut self.slots, (name(key, tag), slot), |held| &mut held.equal);
        if let Some(index) = &mut self.by_key {
            append(index, &mut self.slots, (key, slot), |held| &mut held.alike);
        }
    }

    /// A time after the first arrival [ps]; years after it, and before, are as far as can be told.
    fn since(&mut self, time: i128) -> i64 {
        (time - *self.zero.get_or_insert(time)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Hints that packets are pushed soon, or leave: of the second of them the place in the index is fetched, of the first, whose place is
    /// there by now, the chain.
    #[inline]
    pub fn soon(&self, [first, second]: [Option<(u64, u64)>; 2]) {
        if let Some((key, tag)) = second {
            self.by_name.prefetch_place(name(key, tag));
        }
        if let Some(chain) = self.newest(first) {
            prefetch(chain);
        }
    }

    /// Hints that a packet leaves soon, whose chain is there by now: it is fetched itself.
    #[inline]
    pub fn leaving(&self, packet: Option<(u64, u64)>) {
        if let Some(held) = self.newest(packet).and_then(|chain| self.slots.get(chain.last as usize)) {
            prefetch(held);
        }
    }

    fn newest(&self, packet: Option<(u64, u64)>) -> Option<&Chain> {
        packet.and_then(|(key, tag)| self.by_name.newest(name(key, tag)))
    }

    /// Finds the packet of that identity that leaves, and takes it away: of equal ones the earliest after the last that left, as a port keeps
    /// the order; if there is none that arrived until then, the latest before it.
    pub fn leave(&mut self, key: u64, tag: u64, until: i128) -> Option<Found<T>> {
        let sought = Sought { after: self.last.map_or(0, |last| last + 1), until: self.since(until) };
        let equal: LinksOf<T> = |held| &mut held.equal;
        let mut found = choose(&mut self.by_name, &mut self.slots, (name(key, tag), sought), equal);
        if found.is_none() && tag != 0 {
            // The one whose tag was not captured.
            found = choose(&mut self.by_name, &mut self.slots, (name(key, 0), sought), equal);
        } else if found.is_none() {
            self.tagless();
            let Flight { slots, by_key, .. } = self;
            found = by_key.as_mut().and_then(|index| choose(index, slots, (key, sought), |held| &mut held.alike));
            found = found.map(|choice| Choice { of_key: true, ..choice });
        }
        let Choice { slot, next, chain, of_key } = found?;
        let rival = self.slots.get(next as usize).map(|rival| rival.number);
        if !of_key && self.by_key.is_none() {
            unlink(&mut self.by_name, &mut self.slots, (chain, slot), equal);
            self.remove(slot);
        } else {
            self.forget(slot);
        }
        let Held { number, time, what, .. } = self.slots[slot as usize];
        self.late = self.late.max(sought.after.saturating_sub(number + 1));
        self.last = self.last.max(Some(number));
        Some(Found { number, rival, time: self.zero.unwrap_or(0) + i128::from(time), what })
    }

    /// Adds an index by which packets are found by their keys alone.
    fn tagless(&mut self) {
        if self.by_key.is_some() {
            return;
        }
        let mut index = Index::default();
        let [mut slot, _] = self.ends;
        while let Some(held) = self.slots.get(slot as usize) {
            let (key, next) = (held.key, held.age[1]);
            append(&mut index, &mut self.slots, (key, slot), |held| &mut held.alike);
            slot = next;
        }
        self.by_key = Some(index);
    }

    /// Takes a packet out of the chains, and away.
    fn forget(&mut self, slot: u32) {
        let Held { key, tag, .. } = self.slots[slot as usize];
        if let Some(chain) = self.by_name.find(name(key, tag)) {
            unlink(&mut self.by_name, &mut self.slots, (chain, slot), |held| &mut held.equal);
        }
        if let Some((index, chain)) = self.by_key.as_mut().and_then(|index| index.find(key).map(|chain| (index, chain))) {
            unlink(index, &mut self.slots, (chain, slot), |held| &mut held.alike);
        }
        self.remove(slot);
    }

    /// Takes a packet away that is in no chain.
    fn remove(&mut self, slot: u32) {
        let [before, behind] = self.slots[slot as usize].age;
        match self.slots.get_mut(before as usize) {
            Some(before) => before.age[1] = behind,
            None => self.ends[0] = behind,
        }
        match self.slots.get_mut(behind as usize) {
            Some(behind) => behind.age[0] = before,
            None => self.ends[1] = before,
        }
        self.free.push(slot);
        self.count -= 1;
    }

    /// Takes packets away that arrived before a time, and the earliest of more than `most`.
    #[inline]
    pub fn expire(&mut self, before: i128, most: usize) {
        let before = self.since(before);
        while let Some(held) = self.slots.get(self.ends[0] as usize) {
            if held.time >= before && self.count <= most {
                break;
            }
            self.forget(self.ends[0]);
        }
    }
}

/// Packets that are sought: those of numbers from `after` on, which arrived `until` then, rather than others.
#[derive(Clone, Copy)]
struct Sought {
    after: u64,
    until: i64,
}

/// A packet of a chain, and the packet that would be chosen without it.
#[derive(Clone, Copy)]
struct Choice {
    slot: u32,
    next: u32,
    chain: u32,
    /// True if the chain has packets of equal key, whatever their tags are.
    of_key: bool,
}

/// The links of a packet in one kind of chains.
type LinksOf<T> = fn(&mut Held<T>) -> &mut Links;

/// Puts a packet at the end of its chain.
fn append<T>(index: &mut Index, slots: &mut [Held<T>], (name, slot): (u64, u32), links: LinksOf<T>) {
    let Some(at) = index.find(name) else {
        index.add(name, slot);
        return;
    };
    let chain = &mut index.chains[at as usize];
    let before = std::mem::replace(&mut chain.last, slot);
    if chain.later == NONE {
        chain.later = slot;
    }
    links(&mut slots[before as usize])[1] = slot;
    links(&mut slots[slot as usize])[0] = before;
}

/// The earliest of a chain that is sought, or else the latest before; where there is none either, the earliest after.
fn choose<T>(index: &mut Index, slots: &mut [Held<T>], (name, sought): (u64, Sought), links: LinksOf<T>) -> Option<Choice> {
    let at = index.find(name)?;
    let chain = &mut index.chains[at as usize];
    // What left last only grows: each packet is passed over once.
    while slots.get(chain.later as usize).is_some_and(|held| held.number < sought.after) {
        chain.later = links(&mut slots[chain.later as usize])[1];
    }
    let earlier = match slots.get_mut(chain.later as usize) {
        None => chain.last,
        Some(later) if later.time > sought.until => links(later)[0],
        Some(_) => NONE,
    };
    let slot = if earlier == NONE { chain.later } else { earlier };
    let [before, behind] = *links(&mut slots[slot as usize]);
    Some(Choice { slot, next: if earlier == NONE { behind } else { before }, chain: at, of_key: false })
}

/// Takes a packet out of its chain.
fn unlink<T>(index: &mut Index, slots: &mut [Held<T>], (at, slot): (u32, u32), links: LinksOf<T>) {
    let [before, behind] = *links(&mut slots[slot as usize]);
    let chain = &mut index.chains[at as usize];
    if chain.later == slot {
        chain.later = behind;
    }
    if let Some(before) = slots.get_mut(before as usize) {
        links(before)[1] = behind;
    }
    match (slots.get_mut(behind as usize), before) {
        (Some(behind), before) => links(behind)[0] = before,
        (None, NONE) => index.remove(at),
        (None, before) => chain.last = before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time after all arrivals.
    const LATE: i128 = 1 << 60;

    /// Removes the earliest packet.
    fn pop<T: Copy>(flight: &mut Flight<T>) -> Option<T> {
        let what = flight.slots.get(flight.ends[0] as usize).map(|held| held.what);
        flight.expire(i128::MIN / 2, flight.count.saturating_sub(1));
        what
    }

    #[test]
    fn equal_packets_leave_in_order_and_what_was_dropped_before_is_passed_over() {
        let mut flight = Flight::default();
        for (i, key) in [7, 7, 8, 7].into_iter().enumerate() {
            flight.push(i as i128, (key, 0), i);
        }
        let mut leave = |key: u64| flight.leave(key, 0, LATE).map(|found| (found.what, found.rival, found.time));
        assert_eq!(leave(7), Some((0, Some(1), 0)));
        assert_eq!(leave(8), Some((2, None, 2)));
        assert_eq!(leave(7), Some((3, None, 3)), "the second was dropped: the third packet has left already");
        assert_eq!(leave(7), Some((1, None, 1)), "unless it comes after all");
        assert_eq!((leave(7), flight.late, flight.count), (None, 2, 0));
    }

    #[test]
    fn packets_that_have_not_arrived_yet_leave_last() {
        let mut flight = Flight::default();
        for (time, key) in [(0, 7), (1, 8), (50, 7), (60, 7)] {
            flight.push(time, (key, 0), ());
        }
        let mut leave = |key: u64, until: i128| flight.leave(key, 0, until).map(|found| (found.number, found.rival));
        assert_eq!(leave(8, 10), Some((1, None)));
        assert_eq!(leave(7, 10), Some((0, None)), "overtaken, rather than one that comes later");
        assert_eq!(leave(7, 10), Some((2, Some(3))), "the only ones there are, if clocks are off");
        assert_eq!(leave(7, 70), Some((3, None)));
    }

    #[test]
    fn old_packets_go_and_the_earliest_of_too_many() {
        let mut flight = Flight::default();
        (0..10).for_each(|i| flight.push(i, (i as u64, 1), i));
        flight.expire(3, 100);
        assert_eq!((flight.count, flight.leave(2, 1, LATE)), (7, None));
        assert!(flight.leave(5, 1, LATE).is_some());
        flight.expire(0, 4);
        assert_eq!((flight.count, flight.leave(4, 1, LATE)), (4, None));
        assert!(flight.leave(6, 1, LATE).is_some_and(|found| found.number == 6 && found.what == 6));
        // Slots are used again.
        (10..14).for_each(|i| flight.push(i, (i as u64, 1), i));
        assert_eq!((flight.count, flight.slots.len()), (7, 10));
    }

    #[test]
    fn tags_count_where_both_sides_have_them() {
        let mut flight = Flight::default();
        for (i, tag) in [5, 6, 0].into_iter().enumerate() {
            flight.push(0, (1, tag), i);
        }
        assert_eq!(flight.leave(1, 6, LATE).unwrap().what, 1);
        assert_eq!(flight.leave(1, 9, LATE).unwrap().what, 2, "the one whose tag was not captured");
        assert!(flight.leave(1, 9, LATE).is_none());
        assert_eq!(flight.leave(1, 0, LATE).unwrap().what, 0, "any");
        flight.push(0, (1, 5), 3);
        while pop(&mut flight).is_some() {}
        assert!(flight.leave(1, 5, LATE).is_none() && flight.count == 0);
    }

    /// As a list is searched from end to end.
    #[derive(Default)]
    struct Simple(Vec<(u64, u64, bool)>, usize, Option<usize>);

    impl Simple {
        fn leave(&mut self, key: u64, tag: u64) -> Option<usize> {
            let after = self.2.map_or(0, |last| last + 1);
            let among = |is: &dyn Fn(u64) -> bool| {
                let all = || (self.1..self.0.len()).filter(|i| self.0[*i].0 == key && is(self.0[*i].1) && !self.0[*i].2);
                all().find(|i| *i >= after).or_else(|| all().next_back())
            };
            let found = among(&|t| t == tag).or_else(|| among(&|t| tag == 0 || t == 0))?;
            self.0[found].2 = true;
            self.2 = self.2.max(Some(found));
            Some(found)
        }

        /// Removes the earliest packet that has not left.
        fn pop(&mut self) -> Option<usize> {
            let first = (self.1..self.0.len()).find(|i| !self.0[*i].2);
            self.1 = first.map_or(self.0.len(), |first| first + 1);
            first
        }
    }

    #[test]
    fn chains_find_what_a_search_finds() {
        let mut state = 5_u64;
        let mut below = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for keys in [1, 3, 40, 5_000] {
            let (mut flight, mut simple) = (Flight::default(), Simple::default());
            let mut found = 0;
            for step in 0..20_000_u64 {
                let (key, tag) = (below(keys), if below(20) == 0 { 0 } else { 1 + below(3) });
                match below(5) {
                    0 | 1 if flight.count < 300 => {
                        flight.push(step as i128, (key, tag), simple.0.len());
                        simple.0.push((key, tag, false));
                    }
                    4 => {
                        assert_eq!(pop(&mut flight), simple.pop());
                    }
                    _ => {
                        let expected = simple.leave(key, tag);
                        assert_eq!(flight.leave(key, tag, LATE).map(|found| found.what), expected, "{keys} {step}");
                        found += u64::from(expected.is_some());
                    }
                }
            }
            assert!(found > 200 && flight.by_key.is_some(), "{keys}: {found}");
        }
    }
}
