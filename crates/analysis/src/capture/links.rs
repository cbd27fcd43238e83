//! Flows of a capture, each at every place where it was captured.

use fanin_wire::{Direction, Frame, Headers, LinkType, Mirror};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Number of flows that are distinguished (some 150 B each); frames of others are judged one by one.
const MOST: usize = 1 << 20;

/// Places in a row of the index that are looked at.
const PROBES: usize = 64;

/// Places of capture that are distinguished.
const MOST_CHANNELS: usize = 4096;

/// Entry of frames that belong to none.
pub const NONE: u32 = u32::MAX;

/// Place where frames were captured, with their direction if the file says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Index among the capture's interfaces.
    pub interface: usize,
    /// Number of the interface on the capturing host, or of a mirror's session, where one capture is of several.
    pub number: Option<u32>,
    /// Direction: 0 unknown, 1 in, 2 out.
    way: u8,
}

impl Place {
    pub fn of(frame: &Frame<'_>, headers: Option<&Headers>) -> Place {
        let mirror = headers.and_then(|headers| headers.wrap?.mirror);
        // What was mirrored went in or out at the port, whatever it did where it was captured.
        let way = match mirror.map_or(frame.direction, |mirror| mirror.direction) {
            None => 0,
            Some(Direction::In) => 1,
            Some(Direction::Out) => 2,
        };
        Place { interface: frame.interface, number: number_of(frame, mirror.as_ref()), way }
    }

    pub fn direction(self) -> Option<Direction> {
        match self.way {
            1 => Some(Direction::In),
            2 => Some(Direction::Out),
            _ => None,
        }
    }

    /// The interface, whatever the direction.
    pub fn anyway(self) -> (usize, Option<u32>) {
        (self.interface, self.number)
    }
}

/// Bit that marks the numbers of mirror sessions.
const SESSION: u32 = 1 << 31;

/// Number of the interface at which a frame was captured on its host, or of the session by which a switch mirrored it.
pub fn number_of(frame: &Frame<'_>, mirror: Option<&Mirror>) -> Option<u32> {
    let session = mirror.and_then(|mirror| mirror.session).map(|session| SESSION | u32::from(session));
    session.or_else(|| frame.interface_number())
}

/// Name of an interface or mirror session by its number: `if4`, `session7`.
pub fn name_of_number(number: u32) -> String {
    match number & SESSION {
        0 => format!("if{number}"),
        _ => format!("session{}", number & !SESSION),
    }
}

/// The number of that name, in which `if` may be left out.
pub fn number_named(name: &str) -> Option<u32> {
    match name.strip_prefix("session") {
        Some(session) => session.parse::<u16>().ok().map(|session| SESSION | u32::from(session)),
        None => name.strip_prefix("if").unwrap_or(name).parse().ok(),
    }
}

/// Key of a flow at a place: the place, MAC addresses where the direction must be found out, protocol, ports, addresses, and the VNI of
/// packets in tunnels.
#[derive(Clone, Copy, Debug, Eq, PartialOrd, Ord)]
pub struct Key([u64; 8]);

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Key) -> bool {
        // In place: for so few words a call takes longer.
        self.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

const IP: u64 = 1 << 40;
const V6: u64 = 1 << 41;
const PORTS: u64 = 1 << 42;
const TENANT: u64 = 1 << 43;
/// Bits of the first word that are not the channel's number.
const ABOUT_IP: u64 = !0xffff_ffff;
/// The bits of the second and third word that are ports.
const PORT: u64 = 0xffff << 48;

fn mac(frame: &Frame<'_>, at: usize) -> u64 {
    frame.data.get(at..at + 6).map_or(0, |b| b.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

impl Key {
    pub fn of(channel: u32, place: Place, frame: &Frame<'_>, headers: Option<&Headers>) -> Key {
        let mut words = [u64::from(channel), 0, 0, 0, 0, 0, 0, 0];
        // A mirror's own addresses say nothing of the port.
        let mirror = headers.and_then(|headers| headers.wrap?.mirror);
        let at = mirror.map_or((frame.link == LinkType::Ethernet).then_some(0), |mirror| mirror.at);
        if let Some(at) = at.filter(|_| place.way == 0) {
            words[1] = mac(frame, at as usize + 6);
            words[2] = mac(frame, at as usize);
        }
        let Some(headers) = headers else { return Key(words) };
        words[0] |= IP | u64::from(headers.protocol) << 32;
        if let Some((from, to)) = headers.ports {
            words[0] |= PORTS;
            words[1] |= u64::from(from) << 48;
            words[2] |= u64::from(to) << 48;
        }
        if let Some(tenant) = headers.wrap.and_then(|wrap| wrap.tenant) {
            words[0] |= TENANT;
            words[7] = u64::from(tenant);
        }
        for (at, address) in [(3, headers.src), (5, headers.dst)] {
            match address {
                IpAddr::V4(v4) => words[at] = u64::from(v4.to_bits()),
                IpAddr::V6(v6) => {
                    words[0] |= V6;
                    (words[at], words[at + 1]) = ((v6.to_bits() >> 64) as u64, v6.to_bits() as u64);
                }
            }
        }
        Key(words)
    }

    pub fn channel(&self) -> u32 {
        self.0[0] as u32
    }

    pub fn protocol(&self) -> u8 {
        (self.0[0] >> 32) as u8
    }

    pub fn has_ip(&self) -> bool {
        self.0[0] & IP != 0
    }

    /// Source and destination MAC address; zeros where there are none.
    pub fn macs(&self) -> (u64, u64) {
        (self.0[1] & !PORT, self.0[2] & !PORT)
    }

    pub fn addresses(&self) -> (IpAddr, IpAddr) {
        let of = |at: usize| {
            if self.0[0] & V6 != 0 {
                IpAddr::V6(Ipv6Addr::from_bits(u128::from(self.0[at]) << 64 | u128::from(self.0[at + 1])))
            } else {
                IpAddr::V4(Ipv4Addr::from_bits(self.0[at] as u32))
            }
        };
        (of(3), of(5))
    }

    pub fn ports(&self) -> Option<(u16, u16)> {
        (self.0[0] & PORTS != 0).then_some(((self.0[1] >> 48) as u16, (self.0[2] >> 48) as u16))
    }

    pub fn tenant(&self) -> Option<u32> {
        (self.0[0] & TENANT != 0).then_some(self.0[7] as u32)
    }

    /// Key of the flow wherever it was captured.
    pub fn flow(&self) -> Key {
        let w = &self.0;
        Key([w[0] & ABOUT_IP, w[1] & PORT, w[2] & PORT, w[3], w[4], w[5], w[6], w[7]])
    }

    /// Key of the flow's other direction, wherever it was captured.
    pub fn reverse(&self) -> Key {
        let w = &self.0;
        Key([w[0] & ABOUT_IP, w[2] & PORT, w[1] & PORT, w[5], w[6], w[3], w[4], w[7]])
    }

    /// Key of the flow without its tunnel: at its end it is in none, and routers may answer in another.
    pub fn unwrapped(&self) -> Key {
        let mut flow = self.flow();
        flow.0[0] &= !TENANT;
        flow.0[7] = 0;
        flow
    }

    fn hash(&self, more: u64) -> u64 {
        let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Two chains, which do not wait for one another.
        let (left, right) = self.0.split_at(4);
        let left = left.iter().fold(more ^ 0x243f_6a88_85a3_08d3, |hash, word| mix(hash, *word));
        let right = right.iter().fold(0x1319_8a2e_0370_7344, |hash, word| mix(hash, *word));
        let hash = mix(left, right);
        hash ^ hash >> 29
    }
}

/// Numbers of entries by hash. A row of taken places that is too long, as hostile keys make it, ends the search: the key is then none
/// that is known.
#[derive(Clone, Debug)]
struct Index {
    slots: Vec<u32>,
    used: usize,
}

impl Index {
    fn new() -> Self {
        Index { slots: vec![NONE; 1 << 10], used: 0 }
    }

    /// Entry of a key, or the free place for it.
    #[inline]
    fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Result<u32, Option<usize>> {
        let mask = self.slots.len() - 1;
        for probe in 0..PROBES {
            let slot = (hash as usize).wrapping_add(probe) & mask;
            match self.slots[slot] {
                NONE => return Err(Some(slot)),
                entry if is(entry) => return Ok(entry),
                _ => {}
            }
        }
        Err(None)
    }

    fn put(&mut self, slot: usize, entry: u32, hash_of: impl Fn(u32) -> u64) {
        self.slots[slot] = entry;
        self.used += 1;
        if self.used * 2 <= self.slots.len() {
            return;
        }
        let old = std::mem::replace(&mut self.slots, vec![NONE; self.used.next_power_of_two() * 4]);
        for entry in old.into_iter().filter(|entry| *entry != NONE) {
            if let Err(Some(slot)) = self.find(hash_of(entry), |_| false) {
                self.slots[slot] = entry;
            }
        }
    }
}

/// A flow at a place.
#[derive(Clone, Debug)]
pub struct Link<T> {
    pub key: Key,
    pub packets: u64,
    pub bytes: u64,
    /// Entry of the flow where it was captured first.
    pub first: u32,
    /// Entry of the connection's other direction, wherever it was captured first; [`NONE`]: not captured.
    pub reverse: u32,
    /// Further facts about the flow.
    pub more: T,
}

/// Links of a capture, in order of appearance.
#[derive(Clone, Debug)]
pub struct Links<T> {
    pub places: Vec<Place>,
    numbers: BTreeMap<Place, u32>,
    pub links: Vec<Link<T>>,
    by_key: Index,
    by_flow: Index,
    by_unwrapped: Index,
}

/// The place of the last frame: most have the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastPlace(Option<(Place, u32)>);

impl<T: Default> Links<T> {
    pub fn new() -> Self {
        let (by_key, by_flow, by_unwrapped) = (Index::new(), Index::new(), Index::new());
        Links { places: Vec::new(), numbers: BTreeMap::new(), links: Vec::new(), by_key, by_flow, by_unwrapped }
    }

    /// The number of a place that is known.
    #[inline]
    pub fn channel(&self, place: Place, last: &mut LastPlace) -> Option<u32> {
        match last.0 {
            Some((known, number)) if known == place => Some(number),
            _ => {
                let number = *self.numbers.get(&place)?;
                last.0 = Some((place, number));
                Some(number)
            }
        }
    }

    /// Number of a place, new or known; `None` where there are too many.
    pub fn new_channel(&mut self, place: Place, last: &mut LastPlace) -> Option<u32> {
        if let Some(number) = self.channel(place, last) {
            return Some(number);
        }
        if self.places.len() == MOST_CHANNELS {
            return None;
        }
        let number = self.places.len() as u32;
        self.places.push(place);
        self.numbers.insert(place, number);
        Some(number)
    }

    /// Flow of an entry, at the place where it was captured first.
    pub fn first(&self, entry: u32) -> &Link<T> {
        &self.links[self.links[entry as usize].first as usize]
    }

    /// The number of a flow that is known.
    #[inline]
    pub fn find(&self, key: &Key) -> Option<u32> {
        self.by_key.find(key.hash(0), |entry| self.links[entry as usize].key == *key).ok()
    }

    /// Entry of a flow, new or known; `None` where there are too many.
    #[inline]
    pub fn entry(&mut self, key: &Key) -> Option<u32> {
        let hash = key.hash(0);
        match self.by_key.find(hash, |entry| self.links[entry as usize].key == *key) {
            Ok(entry) => Some(entry),
            Err(Some(slot)) if self.links.len() < MOST => Some(self.add(key, slot)),
            Err(_) => None,
        }
    }

    fn add(&mut self, key: &Key, slot: usize) -> u32 {
        let entry = self.links.len() as u32;
        self.links.push(Link { key: *key, packets: 0, bytes: 0, first: entry, reverse: NONE, more: T::default() });
        let Links { links, by_key, by_flow, by_unwrapped, .. } = self;
        by_key.put(slot, entry, |e| links[e as usize].key.hash(0));
        if key.has_ip() {
            let find = |flow: Key| by_flow.find(flow.hash(1), |e| links[e as usize].key.flow() == flow);
            match find(key.flow()) {
                Ok(first) => links[entry as usize].first = first,
                Err(slot) => {
                    let inner = |flow: Key| by_unwrapped.find(flow.hash(2), |e| links[e as usize].key.unwrapped() == flow);
                    let known = inner(key.unwrapped());
                    if let Ok(other) = find(key.reverse()) {
                        links[entry as usize].reverse = other;
                        links[other as usize].reverse = entry;
                    } else if let Ok(other) = inner(key.reverse().unwrapped()) {
                        links[entry as usize].reverse = other;
                        let back = &mut links[other as usize].reverse;
                        *back = if *back == NONE { entry } else { *back };
                    }
                    if let Err(Some(slot)) = known {
                        by_unwrapped.put(slot, entry, |e| links[e as usize].key.unwrapped().hash(2));
                    }
                    if let Some(slot) = slot {
                        by_flow.put(slot, entry, |e| links[e as usize].key.flow().hash(1));
                    }
                }
            }
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Key {
        Key([IP | PORTS | 6 << 32, 5 << 48, 80 << 48, n, 0, 7, 0, 0])
    }

    fn within(key: Key, tenant: u64) -> Key {
        let mut key = key;
        key.0[0] |= TENANT;
        key.0[7] = tenant;
        key
    }

    #[test]
    fn tenants_have_flows_of_their_own_and_answers_come_in_any_tunnel() {
        let mut links: Links<()> = Links::new();
        let mut add = |key: Key| links.entry(&key).unwrap();
        let (a, b) = (add(within(key(1), 5)), add(within(key(1), 6)));
        let (back, other) = (add(within(key(1), 6).reverse()), add(within(key(1), 9).reverse()));
        let plain = add(key(1));
        let reverse = |entry: u32| links.links[entry as usize].reverse;
        assert_eq!((reverse(back), reverse(b)), (b, back));
        assert_eq!((reverse(other), reverse(a)), (a, other));
        // It finds an answer, and takes it from nobody.
        assert_eq!(reverse(plain), back);
        assert_eq!([a, b, plain].map(|entry| links.first(entry).key.tenant()), [Some(5), Some(6), None]);
        assert_eq!(within(key(1), 6).unwrapped(), key(1));
    }

    #[test]
    fn flows_are_found_again_and_with_their_other_direction() {
        let mut links: Links<()> = Links::new();
        let place = Place { interface: 0, number: None, way: 0 };
        assert_eq!(links.new_channel(place, &mut LastPlace::default()), Some(0));
        for n in 0..100_000 {
            assert_eq!(links.entry(&key(n)), Some(n as u32));
        }
        let reverse = key(77_777).reverse();
        let entry = links.entry(&reverse).unwrap();
        assert_eq!((links.links[entry as usize].reverse, links.links[77_777].reverse), (77_777, entry));
        assert!((0..100_000).all(|n| links.find(&key(n)) == Some(n as u32)));
        assert_eq!(links.find(&key(100_000)), None);
        assert_eq!(reverse.reverse(), key(77_777).flow());
    }

    #[test]
    fn there_is_a_bound() {
        let mut links: Links<()> = Links::new();
        links.new_channel(Place { interface: 0, number: None, way: 0 }, &mut LastPlace::default());
        let found = (0..MOST as u64 + 10).filter(|n| links.entry(&key(*n)).is_some()).count();
        assert!(found <= MOST && found > MOST - 1000, "{found}");
        let mut last = LastPlace::default();
        let places = (0..5_000).filter(|n| links.new_channel(Place { interface: *n, number: None, way: 1 }, &mut last).is_some());
        assert_eq!(places.count(), MOST_CHANNELS - 1);
    }
}
