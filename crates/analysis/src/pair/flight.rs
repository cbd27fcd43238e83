//! Packets that arrived at the port and have not been seen behind it yet.

use super::side::NEVER;
use fanin_units::prefetch;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

const NONE: u64 = u64::MAX;
const NO_CHAIN: u32 = u32::MAX;
/// Wait of a packet that has not been seen behind the port.
const NOT_OUT: i64 = i64::MIN;
const MOST_WAIT: i128 = i64::MAX as i128;

/// Packets of a chain in front of a packet and after it, by the number of places to each; 0: there is none.
type Links = [u32; 2];

/// A packet at the port. There are up to a million of them: one fills a line of the cache.
#[derive(Clone, Debug)]
pub struct Held<T> {
    /// Arrival of the packet [ps].
    pub time: i128,
    key: u64,
    tag: u64,
    /// Time from its arrival until it was seen behind the port, on the clock before it [ps].
    wait: i64,
    /// Links to packets that have its key and tag, and to those that have its key.
    equal: Links,
    alike: Links,
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

/// Packets that are at the port and have one identity, in order of arrival.
#[derive(Clone, Copy, Debug)]
struct Chain {
    name: u64,
    last: u64,
    /// Number of the first packet that arrived after the last that left, as far as that was followed; [`NONE`]: all arrived
    /// before.
    later: u64,
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
    const FREE: Place = Place { chain: NO_CHAIN, marks: 0 };
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

    fn add(&mut self, name: u64, number: u64) {
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
        let chain = Chain { name, last: number, later: number, next, below };
        let at = match self.free {
            Some(at) => {
                self.free = Some(self.chains[at as usize].next).filter(|next| *next != NO_CHAIN);
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
            let marks = if next == NO_CHAIN { 0 } else { self.chains[gone as usize].below };
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
        self.chains[gone as usize].next = self.free.unwrap_or(NO_CHAIN);
        self.free = Some(gone);
        self.used -= 1;
    }
}

/// Packets at the port, in order of arrival; they go by numbers.
#[derive(Clone, Debug)]
pub struct Flight<T> {
    held: VecDeque<Held<T>>,
    /// Number of the first packet that is kept.
    first: u64,
    by_name: Index,
    /// Index by key alone; made once a packet comes out without tag, and then kept.
    by_key: Option<Index>,
    /// The latest arrival that was seen behind.
    pub last: Option<u64>,
    latest: i128,
    /// Packets that left after one that had arrived later.
    pub overtaken: u64,
    /// Largest number of places by which a packet was late; also of packets of one moment, whose order stamps do not tell.
    pub late: u64,
    /// Packets that left while another of their identity was at the port, of which it may have been either.
    pub alike: u64,
}

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Flight {
            held: VecDeque::new(),
            first: 0,
            by_name: Index::default(),
            by_key: None,
            last: None,
            latest: NEVER,
            overtaken: 0,
            late: 0,
            alike: 0,
        }
    }
}

/// The identity of a packet with a tag.
fn name(key: u64, tag: u64) -> u64 {
    (key.rotate_left(29) ^ tag).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ key
}

impl<T> Flight<T> {
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Adds a packet that arrives at the port.
    pub fn push(&mut self, time: i128, (key, tag): (u64, u64), what: T) {
        let number = self.first + self.held.len() as u64;
        self.held.push_back(Held { time, key, tag, wait: NOT_OUT, equal: [0; 2], alike: [0; 2], what });
        append(&mut self.by_name, &mut self.held, self.first, (name(key, tag), number), |held| &mut held.equal);
        if let Some(index) = &mut self.by_key {
            append(index, &mut self.held, self.first, (key, number), |held| &mut held.alike);
        }
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
        if let Some(held) = self.newest(packet).and_then(|chain| self.held.get((chain.last - self.first) as usize)) {
            prefetch(held);
        }
    }

    fn newest(&self, packet: Option<(u64, u64)>) -> Option<&Chain> {
        packet.and_then(|(key, tag)| self.by_name.newest(name(key, tag)))
    }

    /// Finds the packet of that identity that leaves at `out`: of equal ones the earliest after the last that left, as a port
    /// keeps the order; if there is none, the latest before it. [`Flight::alike`] counts if `out` is on the clock before the
    /// port.
    pub fn leave(&mut self, key: u64, tag: u64, out: i128) -> Option<&mut Held<T>> {
        let after = self.last.map_or(0, |last| last + 1);
        let mut found = self.earliest_after(name(key, tag), after);
        if found.is_none() && tag != 0 {
            // The one whose tag was not captured.
            found = self.earliest_after(name(key, 0), after);
        } else if found.is_none() {
            self.tagless();
            let Flight { held, by_key, first, .. } = self;
            found = by_key.as_mut().and_then(|index| choose(index, held, *first, (key, after), |held| &mut held.alike));
            found = found.map(|choice| Choice { of_key: true, ..choice });
        }
        let Choice { number, next, .. } = found?;
        // One that is captured ahead and has not arrived yet is no rival.
        let rival = next.and_then(|next| self.held.get((next - self.first) as usize));
        self.alike += u64::from(rival.is_some_and(|rival| rival.time <= out));
        match (found, &self.by_key) {
            (Some(Choice { of_key: false, chain, .. }), None) => {
                unlink(&mut self.by_name, &mut self.held, self.first, (chain, number), |held| &mut held.equal);
            }
            _ => self.forget(number),
        }
        self.late = self.late.max(after.saturating_sub(number + 1));
        self.last = self.last.max(Some(number));
        let held = self.held.get_mut((number - self.first) as usize)?;
        self.overtaken += u64::from(held.time < self.latest);
        self.latest = self.latest.max(held.time);
        // A wait of months is none.
        held.wait = (out - held.time).clamp(-MOST_WAIT, MOST_WAIT) as i64;
        Some(held)
    }

    fn earliest_after(&mut self, name: u64, after: u64) -> Option<Choice> {
        choose(&mut self.by_name, &mut self.held, self.first, (name, after), |held| &mut held.equal)
    }

    /// Adds an index by which packets are found by their keys alone.
    fn tagless(&mut self) {
        if self.by_key.is_some() {
            return;
        }
        let mut index = Index::default();
        for at in 0..self.held.len() {
            if !self.held[at].is_out() {
                let (key, number) = (self.held[at].key, self.first + at as u64);
                append(&mut index, &mut self.held, self.first, (key, number), |held| &mut held.alike);
            }
        }
        self.by_key = Some(index);
    }

    /// Takes a packet out of the chains.
    fn forget(&mut self, number: u64) {
        let Some(held) = self.held.get((number - self.first) as usize) else { return };
        let (key, tag) = (held.key, held.tag);
        if let Some(chain) = self.by_name.find(name(key, tag)) {
            unlink(&mut self.by_name, &mut self.held, self.first, (chain, number), |held| &mut held.equal);
        }
        if let Some((index, chain)) = self.by_key.as_mut().and_then(|index| index.find(key).map(|chain| (index, chain))) {
            unlink(index, &mut self.held, self.first, (chain, number), |held| &mut held.alike);
        }
    }

    /// Packets of these numbers that have not been seen behind.
    pub fn unseen(&self, from: u64, to: u64) -> impl Iterator<Item = &T> {
        let at = |number: u64| (number.saturating_sub(self.first) as usize).min(self.held.len());
        self.held.range(at(from)..at(to).max(at(from))).filter(|held| !held.is_out()).map(|held| &held.what)
    }

    /// The earliest packet, and its number.
    pub fn front(&self) -> Option<(u64, &Held<T>)> {
        self.held.front().map(|held| (self.first, held))
    }

    /// Removes the earliest packet; false if there is none.
    pub fn pop(&mut self) -> bool {
        let Some(held) = self.held.front() else { return false };
        if !held.is_out() {
            self.forget(self.first);
        }
        self.held.pop_front();
        self.first += 1;
        true
    }
}

/// A packet of a chain, and the packet that would be chosen without it.
#[derive(Clone, Copy)]
struct Choice {
    number: u64,
    next: Option<u64>,
    chain: u32,
    /// True if the chain has packets of equal key, whatever their tags are.
    of_key: bool,
}

/// The links of a packet in one kind of chains.
type LinksOf<T> = fn(&mut Held<T>) -> &mut Links;

/// Puts a packet at the end of its chain.
fn append<T>(index: &mut Index, held: &mut VecDeque<Held<T>>, first: u64, (name, number): (u64, u64), links: LinksOf<T>) {
    let Some(at) = index.find(name) else {
        index.add(name, number);
        return;
    };
    let chain = &mut index.chains[at as usize];
    let before = std::mem::replace(&mut chain.last, number);
    if chain.later == NONE {
        chain.later = number;
    }
    let places = (number - before) as u32;
    links(&mut held[(before - first) as usize])[1] = places;
    links(&mut held[(number - first) as usize])[0] = places;
}

/// The earliest of a chain from `after` on, or else the latest before.
fn choose<T>(
    index: &mut Index,
    held: &mut VecDeque<Held<T>>,
    first: u64,
    (name, after): (u64, u64),
    links: LinksOf<T>,
) -> Option<Choice> {
    let at = index.find(name)?;
    let chain = &mut index.chains[at as usize];
    // What left last only grows: each packet is passed over once.
    while chain.later != NONE && chain.later < after {
        chain.later = behind(chain.later, links(&mut held[(chain.later - first) as usize])).unwrap_or(NONE);
    }
    let late = chain.later == NONE;
    let number = if late { chain.last } else { chain.later };
    let links = links(&mut held[(number - first) as usize]);
    let next = if late { before(number, links) } else { behind(number, links) };
    Some(Choice { number, next, chain: at, of_key: false })
}

/// The packet of a chain in front of another.
#[inline]
fn before(number: u64, [places, _]: &Links) -> Option<u64> {
    (*places > 0).then(|| number - u64::from(*places))
}

/// The packet of a chain after another.
#[inline]
fn behind(number: u64, [_, places]: &Links) -> Option<u64> {
    (*places > 0).then(|| number + u64::from(*places))
}

/// Takes a packet out of its chain.
fn unlink<T>(index: &mut Index, held: &mut VecDeque<Held<T>>, first: u64, (at, number): (u32, u64), links: LinksOf<T>) {
    let own = *links(&mut held[(number - first) as usize]);
    let (before, behind) = (before(number, &own), behind(number, &own));
    let chain = &mut index.chains[at as usize];
    if chain.later == number {
        chain.later = behind.unwrap_or(NONE);
    }
    let places = before.zip(behind).map_or(0, |(before, behind)| (behind - before) as u32);
    if let Some(before) = before {
        links(&mut held[(before - first) as usize])[1] = places;
    }
    match (before, behind) {
        (_, Some(behind)) => links(&mut held[(behind - first) as usize])[0] = places,
        (Some(before), None) => chain.last = before,
        (None, None) => index.remove(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pop<T: Clone>(flight: &mut Flight<T>) -> Option<Held<T>> {
        let held = flight.front().map(|(_, held)| held.clone());
        assert_eq!(flight.pop(), held.is_some());
        held
    }

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
        let outs: Vec<_> = std::iter::from_fn(|| pop(&mut flight)).map(|held| held.out().unwrap()).collect();
        assert_eq!(outs, [10, 13, 11, 12]);
    }

    #[test]
    fn alike_are_those_that_were_at_the_port_together() {
        let mut flight = Flight::default();
        let mut leave = |arrivals: &[i128], outs: &[i128]| {
            arrivals.iter().for_each(|time| flight.push(*time, (1, 5), ()));
            let before = flight.alike;
            outs.iter().for_each(|out| assert!(flight.leave(1, 5, *out).is_some()));
            while flight.pop() {}
            flight.alike - before
        };
        // Three at once: the third is the only one that is left.
        assert_eq!(leave(&[0, 1, 2], &[10, 11, 12]), 2);
        // What was read ahead but arrived later is another packet for certain, also where it is dropped.
        assert_eq!(leave(&[20, 31], &[30, 41]), 0);
        assert_eq!(leave(&[50, 61], &[60]), 0);
        assert_eq!(leave(&[70, 71], &[80]), 1);
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
        while flight.pop() {}
        assert!(flight.leave(1, 5, 0).is_none() && flight.len() == 0);
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
                    0 | 1 if flight.len() < 300 => {
                        flight.push(step as i128, (key, tag), simple.0.len());
                        simple.0.push((key, tag, false));
                    }
                    4 => {
                        assert_eq!(pop(&mut flight).map(|held| held.what), (simple.1 < simple.0.len()).then_some(simple.1));
                        simple.1 = (simple.1 + 1).min(simple.0.len());
                    }
                    _ => {
                        let expected = simple.leave(key, tag);
                        assert_eq!(flight.leave(key, tag, step as i128).map(|held| held.what), expected, "{keys} {step}");
                        found += u64::from(expected.is_some());
                    }
                }
            }
            assert!(found > 200 && flight.by_key.is_some(), "{keys}: {found}");
            assert!(keys > 100 || flight.alike > 1_000);
        }
    }
}
