//! All links, each with its ring, in one piece of memory.
//!
//! A link and the first places of its ring are two cache lines side by side, so that who knows a link's number can fetch both. A ring that
//! needs more places moves behind all links, and from then on is found by the same sum of its beginning and a number.

use super::link::{Carry, Entry, Link};
use fanin_engine::vec_in_huge_pages;
use fanin_packet::PacketId;
use fanin_units::{prefetch, prefetch_lines, LinkId, Time};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// Places of a ring that stand beside its link.
pub const FIRST: u32 = 4;
/// Places in the room of a block: a ring that has moved takes whole blocks.
const PLACES: u32 = 8;

/// A link and the first places of its ring, in two lines: many processors fetch the second with the first.
#[derive(Clone, Copy)]
#[repr(C)]
struct Pair {
    link: Link,
    ring: [Entry; FIRST as usize],
}

/// A link with its ring, or a part of a ring that has moved.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
union Block {
    pair: Pair,
    ring: [Entry; PLACES as usize],
}

const _: () = assert!(std::mem::size_of::<Block>() == 128 && std::mem::size_of::<Entry>() == 16);
const _: () = assert!(std::mem::offset_of!(Pair, ring) == 64);

/// All links and their rings. As with [`Table`](fanin_engine::Table), indices are ids that were handed out for it: only debug builds check
/// them.
pub struct Links {
    /// Blocks of the links, up to `count`; behind them, rings that grew and have moved.
    blocks: Vec<Block>,
    count: usize,
}

impl From<Vec<Link>> for Links {
    fn from(links: Vec<Link>) -> Self {
        let count = links.len();
        assert!(count < (u32::MAX / PLACES) as usize, "{count} links");
        let block = |(l, link): (u32, Link)| {
            let mut link = link;
            (link.base, link.mask) = (l * PLACES + FIRST, FIRST - 1);
            Block { pair: Pair { link, ring: [Entry::default(); FIRST as usize] } }
        };
        // Room for rings that become longer; memory that is not used is not there.
        let mut blocks = vec_in_huge_pages(2 * count);
        blocks.extend((0..).zip(links).map(block));
        Links { blocks, count }
    }
}

/// The rings of all links, to be read.
#[derive(Clone, Copy)]
pub struct Rings<'a> {
    entries: *const Entry,
    places: usize,
    of: PhantomData<&'a Links>,
}

impl Rings<'_> {
    /// The entry at a place.
    #[inline(always)]
    pub fn at(self, place: usize) -> Entry {
        debug_assert!(place < self.places);
        // SAFETY: places are those of rings, which lie in the blocks and stay there while these are borrowed.
        unsafe { *self.entries.add(place) }
    }
}

impl Rings<'_> {
    /// Address of the entry at a place.
    #[inline(always)]
    pub fn address(self, place: usize) -> *const Entry {
        self.entries.wrapping_add(place)
    }
}

/// The rings of all links, to be written.
pub struct RingsMut<'a> {
    entries: *mut Entry,
    places: usize,
    of: PhantomData<&'a mut Links>,
}

impl RingsMut<'_> {
    /// Writes an entry at a place.
    #[inline(always)]
    pub fn write(&self, place: usize, entry: Entry) {
        debug_assert!(place < self.places);
        // SAFETY: as for reading; nobody else has the rings.
        unsafe { *self.entries.add(place) = entry }
    }

    /// The rings, for reading only.
    #[inline(always)]
    pub fn read(&self) -> Rings<'_> {
        Rings { entries: self.entries, places: self.places, of: PhantomData }
    }
}

impl Links {
    /// Number of links.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Ids of all links.
    pub fn ids(&self) -> impl Iterator<Item = LinkId> {
        (0..self.count as u32).map(LinkId)
    }

    /// All links, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Link> {
        self.ids().map(|l| &self[l])
    }

    #[inline(always)]
    fn places(&self) -> usize {
        self.blocks.len() * PLACES as usize
    }

    /// The rings.
    #[inline(always)]
    pub fn rings(&self) -> Rings<'_> {
        Rings { entries: self.blocks.as_ptr().cast(), places: self.places(), of: PhantomData }
    }

    /// A link, together with all rings to read from.
    #[inline(always)]
    pub fn with_rings(&mut self, l: LinkId) -> (&mut Link, RingsMut<'_>) {
        let l = l.index();
        debug_assert!(l < self.count);
        let places = self.places();
        let blocks = self.blocks.as_mut_ptr();
        // SAFETY: the first `count` blocks are links. No place of a ring lies in the first half of such a block, so that the link and
        // the entries are apart, and no block is added while they are borrowed.
        let link = unsafe { &mut (*blocks.add(l)).pair.link };
        (link, RingsMut { entries: blocks.cast(), places, of: PhantomData })
    }

    /// Hints that a link is read soon, and its ring, if that stands beside it.
    #[inline(always)]
    pub fn prefetch(&self, l: LinkId) {
        self.items().prefetch(l);
    }

    /// A view of all links and rings in memory, for code that reads them often.
    #[inline(always)]
    pub fn items(&self) -> Items<'_> {
        Items { blocks: self.blocks.as_ptr(), count: self.count, rings: self.rings() }
    }

    /// Gives link `l` a packet: see [`Link::push`].
    #[inline(always)]
    pub fn push(&mut self, l: LinkId, now: Time, packet: PacketId, frame: u16, carry: impl FnMut(Carry)) -> Option<Time> {
        let (link, rings) = self.with_room(l);
        link.push(rings, now, packet, frame, carry)
    }

    /// Gives link `l`, whose wire is not free, a packet: see [`Link::push_busy`].
    #[inline(always)]
    pub fn push_busy(&mut self, l: LinkId, packet: PacketId, frame: u16, carry: impl FnMut(Carry)) -> Option<Time> {
        let (link, rings) = self.with_room(l);
        link.push_busy(rings, packet, frame, carry)
    }

    /// Gives link `l`, whose wire is free at `start`, a packet: see [`Link::start`].
    #[inline(always)]
    pub fn start(&mut self, l: LinkId, start: Time, packet: PacketId, frame: u16, carry: impl FnMut(Carry)) -> Option<Time> {
        let (link, rings) = self.with_room(l);
        link.start(rings, start, packet, frame, carry)
    }

    /// Puts a packet onto the wire of link `l` whose sender is elsewhere; true where it is the only one there: then its arrival must be scheduled.
    pub fn import(&mut self, l: LinkId, entry: Entry) -> bool {
        let (link, rings) = self.with_room(l);
        let first = link.head == link.tail;
        rings.write(link.place(link.tail), entry);
        link.tail = link.tail.wrapping_add(1);
        link.served = link.tail;
        first
    }

    /// Takes the counters of a link that was used elsewhere; nothing is sent over it any more.
    pub fn take_counters(&mut self, l: LinkId, used: &Link) {
        let (base, mask) = (self[l].base, self[l].mask);
        self[l] = *used;
        (self[l].base, self[l].mask) = (base, mask);
    }

    /// A link whose ring has room for another packet, together with all rings to write to.
    #[inline(always)]
    fn with_room(&mut self, l: LinkId) -> (&mut Link, RingsMut<'_>) {
        if self[l].is_full() {
            self.lengthen(l);
        }
        self.with_rings(l)
    }

    /// Gives a full ring twice as many places, the first time four times as many. The old place is not used again: rings become longer
    /// a few times in a run and are then stable, and all abandoned places together are smaller than the rings.
    #[cold]
    #[inline(never)]
    fn lengthen(&mut self, l: LinkId) {
        let old = self[l];
        let places = (old.mask + 1) * if old.has_long_ring() { 2 } else { 4 };
        let base = u32::try_from(self.places()).expect("less than 2^32 places in all rings");
        for _ in 0..places / PLACES {
            self.blocks.push(Block { ring: [Entry::default(); PLACES as usize] });
        }
        let (link, rings) = self.with_rings(l);
        (link.base, link.mask) = (base, places - 1);
        for number in (0..=old.mask).map(|i| old.head.wrapping_add(i)) {
            let entry = rings.read().at(old.place(number));
            rings.write(link.place(number), entry);
        }
    }

    /// Bytes of memory that links and rings take.
    pub fn bytes(&self) -> usize {
        self.blocks.len() * std::mem::size_of::<Block>()
    }
}

impl Index<LinkId> for Links {
    type Output = Link;
    #[inline(always)]
    fn index(&self, l: LinkId) -> &Link {
        let l = l.index();
        debug_assert!(l < self.count);
        // SAFETY: numbers of links are ids that were handed out for these, and the first `count` blocks are links.
        unsafe { &self.blocks.get_unchecked(l).pair.link }
    }
}

impl IndexMut<LinkId> for Links {
    #[inline(always)]
    fn index_mut(&mut self, l: LinkId) -> &mut Link {
        let l = l.index();
        debug_assert!(l < self.count);
        // SAFETY: as above.
        unsafe { &mut self.blocks.get_unchecked_mut(l).pair.link }
    }
}

/// A view of all links and rings in memory: their addresses are read once.
#[derive(Clone, Copy)]
pub struct Items<'a> {
    blocks: *const Block,
    count: usize,
    /// All rings of these links.
    pub rings: Rings<'a>,
}

impl<'a> Items<'a> {
    /// A link.
    #[inline(always)]
    pub fn at(&self, l: LinkId) -> &'a Link {
        let l = l.index();
        debug_assert!(l < self.count);
        // SAFETY: as for indices of `Links`, which are borrowed.
        unsafe { &(*self.blocks.add(l)).pair.link }
    }

    /// Hints that a link is read soon.
    #[inline(always)]
    pub fn prefetch_link(&self, l: LinkId) {
        prefetch(self.blocks.wrapping_add(l.index()));
    }

    /// Hints that a link is read soon, and its ring, if that stands beside it.
    #[inline(always)]
    pub fn prefetch(&self, l: LinkId) {
        prefetch_lines::<2, _>(self.blocks.wrapping_add(l.index()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::link::FarEnd;
    use super::*;
    use fanin_units::{BitRate, Span};
    use std::collections::VecDeque;

    fn links(n: usize) -> Links {
        vec![Link::new(Span::from_us(1), BitRate::from_gbps(10), 20, FarEnd::Host(fanin_units::HostId(0))); n].into()
    }

    #[test]
    fn a_ring_that_no_longer_fits_beside_its_link_moves_with_all_that_it_holds() {
        // Numbers pass 2^32 on the way; rings become longer at every place of their beginning.
        for offset in 0..2 * FIRST {
            let mut links = links(3);
            let from = u32::MAX - 20 + offset;
            let mut held = [const { VecDeque::new() }; 3];
            (links[LinkId(1)].head, links[LinkId(1)].served, links[LinkId(1)].tail) = (from, from, from);
            for id in 0..200 {
                let l = LinkId(id % 3);
                links.push(l, Time::ZERO, PacketId(id), 64, |_| {});
                held[l.index()].push_back(PacketId(id));
                assert_eq!(links[l].has_long_ring(), links[l].mask + 1 > FIRST);
                if id % 5 == 4 {
                    let (link, rings) = links.with_rings(l);
                    assert_eq!(Some(link.front(rings.read()).packet), held[l.index()].pop_front());
                    link.head = link.head.wrapping_add(1);
                }
            }
            for (l, held) in (0..).map(LinkId).zip(held.iter_mut()) {
                let (link, rings) = links.with_rings(l);
                while link.head != link.tail {
                    assert_eq!(Some(link.front(rings.read()).packet), held.pop_front());
                    link.head = link.head.wrapping_add(1);
                }
                assert!(held.is_empty() && link.has_long_ring());
            }
        }
    }

    #[test]
    fn a_short_ring_goes_round_beside_its_link() {
        let mut links = links(2);
        for id in 0..1000 {
            links.push(LinkId(1), Time::ZERO, PacketId(id), 64, |_| {});
            if id >= FIRST - 1 {
                let (link, rings) = links.with_rings(LinkId(1));
                assert_eq!(link.front(rings.read()).packet, PacketId(id + 1 - FIRST));
                assert_eq!(link.place(link.head) / FIRST as usize, 3, "the second line of the second block");
                link.head += 1;
            }
        }
        assert!(!links[LinkId(1)].has_long_ring() && links.bytes() == 2 * 128);
    }
}
