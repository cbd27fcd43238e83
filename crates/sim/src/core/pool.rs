//! Packets in flight: a pool with a free list, so that no packet is ever allocated on its own. What switches read lies apart from what only
//! the ends read: a cache line each.

use super::route::Route;
use fanin_engine::{Items, Table};
use fanin_packet::{Departure, Envelope, Header, Kind, Packet, PacketId, Record, Shim, Stack, MAX_HOPS};
use fanin_units::{prefetch, LinkId};

/// The part of a packet that switches read, in one cache line.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub struct Outer {
    pub envelope: Envelope,
    pub route: Route,
}

const _: () = assert!(std::mem::size_of::<Outer>() == 64);

impl Outer {
    /// The link by which the packet leaves the switch that it has reached over link `via`, if it has a source route.
    #[inline(always)]
    pub fn next(&self, via: LinkId) -> Option<LinkId> {
        self.route.next(via, self.envelope.ttl)
    }
}

/// Inner part of a packet, in one cache line, which only the ends of its flow read.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Inner {
    header: Header,
    /// Place of the packet among those with payload that its sender has sent in this flow, by which hosts measure reordering. It
    /// is no part of the packet, and nobody decides by it.
    number: u32,
}

/// Records of ports behind a packet's shim, in one cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Records([Record; MAX_HOPS]);

/// A packet that goes from one pool to another, with all that travels in its frame. Its parts are packed: thousands go at once.
pub struct Carried {
    envelope: Envelope,
    route: Route,
    header: Header,
    number: u32,
    /// Parts of a frame that few packets have.
    besides: Option<Box<Besides>>,
    /// The packet is a control message, alone in its frame or forwarded as packets are.
    control: bool,
}

/// Headers of switches and a message in the frame of a packet that goes from one pool to another.
struct Besides {
    shim: Option<Shim>,
    records: Option<Records>,
    message: Option<Packet>,
}

/// All packets that exist. The most recently freed place is used first: it is still in the cache.
#[derive(Default)]
pub struct Pool {
    outer: Table<Outer>,
    inner: Table<Inner>,
    free: Vec<PacketId>,
    /// Control message at the end of a packet's frame, by packet: the message is itself a packet here.
    messages: Table<PacketId>,
    /// Headers of switches in a packet's frame, by packet, where its envelope says that there are any.
    shims: Table<Shim>,
    /// Rank of each packet at the port at which it was last to be enqueued, where packets leave by rank.
    ranks: Table<u32>,
    /// Records of ports behind a packet's shim, by packet, where it has any.
    records: Table<Records>,
    /// Notes of switches on packets, by packet; grown where a mechanism uses them.
    notes: Table<u64>,
    /// Places that hold control messages.
    control: u64,
}

/// Bytes of a packet's two parts.
pub const BYTES_EACH: usize = std::mem::size_of::<Outer>() + std::mem::size_of::<Inner>();

/// Id that stands for no message.
const NONE: PacketId = PacketId(u32::MAX);

impl Pool {
    /// Takes a place for a new packet; its content is left over from an earlier one.
    #[inline(always)]
    pub fn take(&mut self) -> PacketId {
        match self.free.pop() {
            Some(id) => id,
            None => self.grow(),
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> PacketId {
        self.outer.push(Outer::default());
        self.inner.push(Inner::default());
        PacketId((self.outer.len() - 1) as u32)
    }

    /// Returns a place to the pool.
    #[inline(always)]
    pub fn free(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// Packets that exist now: queued, on a wire, or waiting at a NIC. Control messages do not count.
    pub fn in_flight(&self) -> u64 {
        (self.outer.len() - self.free.len()) as u64 - self.control
    }

    /// The packets that exist, in no particular order; control messages too. Walks all places.
    pub fn existing(&self) -> impl Iterator<Item = PacketId> {
        let mut free = vec![false; self.outer.len()];
        self.free.iter().for_each(|id| free[id.index()] = true);
        (0..).zip(free).filter(|(_, free)| !free).map(|(id, _)| PacketId(id))
    }

    /// The header of a packet.
    #[inline(always)]
    pub fn header(&self, id: PacketId) -> &Header {
        &self.inner[id.index()].header
    }

    /// Fills the place of a packet from an envelope; gives both parts, for the rest to be written.
    #[inline(always)]
    pub fn make(&mut self, id: PacketId, envelope: &Envelope, route: &Route) -> (&mut Envelope, &mut Header) {
        let outer = &mut self.outer[id.index()];
        // One after the other: as a whole it would go by the stack.
        outer.envelope = *envelope;
        outer.route = *route;
        (&mut outer.envelope, &mut self.inner[id.index()].header)
    }

    /// The part of a packet that switches read.
    #[inline(always)]
    pub fn outer(&mut self, id: PacketId) -> &mut Outer {
        &mut self.outer[id.index()]
    }

    /// Writes an envelope that a mechanism may have changed. With another destination or hash, nothing is settled of its route any more.
    #[inline(always)]
    pub fn rewrite(&mut self, id: PacketId, envelope: &Envelope) {
        let outer = &mut self.outer[id.index()];
        if (envelope.dst, envelope.hash) != (outer.envelope.dst, outer.envelope.hash) {
            outer.route = Route::NONE;
        }
        outer.envelope = *envelope;
    }

    /// Place of a packet among those with payload of its flow and sender.
    #[inline(always)]
    pub fn number(&self, id: PacketId) -> u32 {
        self.inner[id.index()].number
    }

    /// Sets the place of a packet among those with payload of its flow and sender.
    #[inline(always)]
    pub fn set_number(&mut self, id: PacketId, number: u32) {
        self.inner[id.index()].number = number;
    }

    /// A copy of a packet.
    pub fn packet(&self, id: PacketId) -> Packet {
        Packet { envelope: self[id], header: *self.header(id) }
    }

    /// True for a control message alone in its frame, not for one that is forwarded as packets are. Most packets are told by
    /// their envelope, without a look at the header.
    #[inline(always)]
    pub fn is_message(&self, id: PacketId) -> bool {
        self[id].kind == Kind::Control && matches!(self.header(id), Header::Control(_))
    }

    /// True for a control message, forwarded or alone in its frame, and for a packet with one at the end of its frame.
    #[inline(always)]
    pub fn has_message(&self, id: PacketId) -> bool {
        self[id].kind == Kind::Control || self[id].extra.message()
    }

    /// A place for a control message.
    pub fn take_message(&mut self, message: &Packet) -> PacketId {
        let id = self.take();
        *self.make(id, &message.envelope, &Route::NONE).1 = message.header;
        self.control += 1;
        id
    }

    /// Gives the place of a control message back.
    pub fn free_message(&mut self, id: PacketId) -> Packet {
        let message = self.packet(id);
        self.control -= 1;
        self.free(id);
        message
    }

    /// Puts a control message at the end of a packet's frame.
    pub fn attach(&mut self, id: PacketId, message: &Packet) {
        let bytes = u16::from(message.envelope.header);
        let message = self.take_message(message);
        self.messages.grow(id.index() + 1, NONE);
        self.messages[id.index()] = message;
        let envelope = &mut self[id];
        envelope.extra = envelope.extra.with_message(true);
        envelope.frame += bytes;
    }

    /// Takes the message off that a packet's frame carries; `None`: it carries none.
    #[inline(always)]
    pub fn detach(&mut self, id: PacketId) -> Option<Packet> {
        match self[id].extra.message() {
            true => self.detach_existing(id),
            false => None,
        }
    }

    #[inline(never)]
    fn detach_existing(&mut self, id: PacketId) -> Option<Packet> {
        let message = std::mem::replace(&mut self.messages[id.index()], NONE);
        let message = self.free_message(message);
        let envelope = &mut self[id];
        envelope.extra = envelope.extra.with_message(false);
        envelope.frame -= u16::from(message.envelope.header);
        Some(message)
    }

    /// The message at the end of a packet's frame.
    pub fn message(&self, id: PacketId) -> Option<Packet> {
        self[id].extra.message().then(|| self.packet(self.messages[id.index()]))
    }

    /// The headers of switches in a packet's frame.
    #[inline]
    pub fn shim(&self, id: PacketId) -> Option<Shim> {
        (self[id].extra.shim() > 0).then(|| self.shims[id.index()])
    }

    /// Keeps a shim for a packet whose envelope has room for it.
    pub fn keep_shim(&mut self, id: PacketId, shim: Shim) {
        self.shims.grow(id.index() + 1, Shim::default());
        self.shims[id.index()] = shim;
    }

    /// The note that its switch keeps with a packet; zero: none.
    #[inline(always)]
    pub fn note(&self, id: PacketId) -> u64 {
        self.notes.get(id.index()).copied().unwrap_or(0)
    }

    /// Keeps a note with a packet; the mechanism that does so takes it back before the packet is elsewhere.
    #[inline(always)]
    pub fn set_note(&mut self, id: PacketId, note: u64) {
        if self.notes.len() <= id.index() {
            self.grow_notes();
        }
        self.notes[id.index()] = note;
    }

    #[cold]
    #[inline(never)]
    fn grow_notes(&mut self) {
        self.notes.grow(self.outer.len(), 0);
    }

    /// Hints that a packet's note is read soon.
    #[inline(always)]
    pub fn prefetch_note(&self, id: PacketId) {
        prefetch(self.notes.as_ptr().wrapping_add(id.index()));
    }

    /// Rank of a packet at the port at which it was last to be enqueued, where packets leave by rank.
    pub fn rank(&self, id: PacketId) -> u32 {
        self.ranks[id.index()]
    }

    /// Sets the rank of a packet.
    pub fn set_rank(&mut self, id: PacketId, rank: u32) {
        self.ranks.grow(id.index() + 1, 0);
        self.ranks[id.index()] = rank;
    }

    /// Puts telemetry into the frame of a packet that has no shim.
    pub fn set_telemetry(&mut self, id: PacketId, stack: &Stack) {
        let shim = stack.shim();
        self[id].set_shim(Some(&shim));
        if self.records.len() <= id.index() {
            self.grow_telemetry();
        }
        self.shims[id.index()] = shim;
        self.records[id.index()] = Records(stack.places());
    }

    #[cold]
    #[inline(never)]
    fn grow_telemetry(&mut self) {
        self.shims.grow(self.outer.len(), Shim::default());
        self.records.grow(self.outer.len(), Records::default());
    }

    /// The telemetry in a packet's frame.
    pub fn telemetry(&self, id: PacketId) -> Option<Stack> {
        let shim = self.shim(id)?;
        Stack::of(&shim, self.records.get(id.index())?.0)
    }

    /// Takes a packet out, with all that travels in its frame.
    #[inline(always)]
    pub fn lift(&mut self, id: PacketId) -> Carried {
        debug_assert_eq!(self.note(id), 0, "packet {id} is still known where it was");
        let extra = self[id].extra;
        let besides = if extra.message() || extra.shim() > 0 { Some(self.lift_besides(id)) } else { None };
        let control = self[id].kind == Kind::Control;
        self.control -= u64::from(control);
        self.free(id);
        let (Outer { envelope, route }, Inner { header, number }) = (self.outer[id.index()], self.inner[id.index()]);
        Carried { envelope, route, header, number, besides, control }
    }

    #[inline(never)]
    fn lift_besides(&mut self, id: PacketId) -> Box<Besides> {
        let shim = self.shim(id);
        let records = shim.and_then(|_| self.records.get(id.index()).copied());
        let message = self[id].extra.message().then(|| {
            let message = std::mem::replace(&mut self.messages[id.index()], NONE);
            self.free_message(message)
        });
        Box::new(Besides { shim, records, message })
    }

    /// Takes a packet in that another pool has let go.
    #[inline(always)]
    pub fn land(&mut self, carried: &mut Carried) -> PacketId {
        let id = self.take();
        let outer = &mut self.outer[id.index()];
        // One after the other: as a whole it would go by the stack.
        outer.envelope = carried.envelope;
        outer.route = carried.route;
        let inner = &mut self.inner[id.index()];
        inner.header = carried.header;
        inner.number = carried.number;
        self.control += u64::from(carried.control);
        if let Some(besides) = carried.besides.take() {
            self.land_besides(id, *besides);
        }
        id
    }

    #[inline(never)]
    fn land_besides(&mut self, id: PacketId, Besides { shim, records, message }: Besides) {
        if let Some(shim) = shim {
            self.keep_shim(id, shim);
        }
        if let Some(records) = records {
            self.records.grow(id.index() + 1, Records::default());
            self.records[id.index()] = records;
        }
        if let Some(message) = message {
            let message = self.take_message(&message);
            self.messages.grow(id.index() + 1, NONE);
            self.messages[id.index()] = message;
        }
    }

    /// Takes copies of all packets in that exist in another pool, to be counted: nothing else is known of them here.
    pub fn absorb(&mut self, other: &Pool) {
        for other_id in other.existing() {
            let id = self.take();
            self.outer[id.index()] = other.outer[other_id.index()];
            self.inner[id.index()] = other.inner[other_id.index()];
        }
        self.control += other.control;
    }

    /// The shim in a packet's frame as it is on the wire: its EtherType, and the bytes behind that.
    #[inline(always)]
    pub fn shim_on_wire(&self, id: PacketId) -> Option<(u16, Vec<u8>)> {
        (self[id].extra.shim() > 0).then(|| self.existing_shim_on_wire(id))
    }

    #[inline(never)]
    fn existing_shim_on_wire(&self, id: PacketId) -> (u16, Vec<u8>) {
        let shim = &self.shims[id.index()];
        let mut bytes = shim.body().to_vec();
        if shim.records() > 0 {
            let records = &self.records[id.index()].0[..shim.records()];
            bytes.extend(records.iter().flat_map(|record| record.to_bytes()));
        }
        (shim.ether_type, bytes)
    }

    /// True if ports may write their state into a packet's frame as it leaves.
    #[inline(always)]
    pub fn has_shim(&self, id: PacketId) -> bool {
        self[id].extra.shim() > 0
    }

    /// Lets a mechanism change the header of a packet that has one; `change` says if it did, and the frame's size follows.
    #[inline(always)]
    pub fn change_shim(&mut self, id: PacketId, change: impl FnOnce(&mut Shim) -> bool) {
        let shim = &mut self.shims[id.index()];
        if change(shim) {
            self.outer[id.index()].envelope.set_shim(Some(shim));
        }
    }

    /// True if a packet has a shim into which the port writes as the packet leaves: few have that come back with an acknowledgment.
    #[inline(always)]
    pub fn is_written_at_departure(&self, id: PacketId) -> bool {
        self.has_shim(id) && self.shims[id.index()].is_written_at_departure()
    }

    /// Writes a port's state at a packet's departure into its shim, which it has, where that has a place for it.
    #[inline(always)]
    pub fn write_departure(&mut self, id: PacketId, departure: &Departure) {
        let shim = &mut self.shims[id.index()];
        shim.write_depth(departure.queue_bytes);
        if let Some(place) = shim.take_due() {
            self.records[id.index()].0[place] = Record::of(departure);
        }
    }

    /// Bytes that the pool has taken, at its largest.
    pub fn bytes(&self) -> usize {
        let ids = self.free.capacity() + self.messages.capacity();
        let shims = self.shims.capacity() * std::mem::size_of::<Shim>()
            + self.records.capacity() * std::mem::size_of::<Records>()
            + self.ranks.capacity() * std::mem::size_of::<u32>()
            + self.notes.capacity() * std::mem::size_of::<u64>();
        self.outer.capacity() * BYTES_EACH + ids * std::mem::size_of::<PacketId>() + shims
    }

    /// A view of the outer parts of packets, which switches read.
    #[inline(always)]
    pub fn items(&self) -> Items<'_, Outer> {
        self.outer.items()
    }

    /// Hints that all parts of a packet that switches and ports use are read soon.
    #[inline(always)]
    pub fn prefetch_all(&self, id: PacketId) {
        prefetch(self.outer.as_ptr().wrapping_add(id.index()));
        self.prefetch_shim(id);
    }

    /// Hints that both parts of a packet are read soon.
    #[inline(always)]
    pub fn prefetch_whole(&self, id: PacketId) {
        prefetch(self.outer.as_ptr().wrapping_add(id.index()));
        prefetch(self.inner.as_ptr().wrapping_add(id.index()));
    }

    /// Hints that the place is written soon which is taken after so many others.
    #[inline(always)]
    pub fn prefetch_place(&self, after: usize) {
        if let Some(id) = self.free.len().checked_sub(after + 1).and_then(|i| self.free.get(i)) {
            self.prefetch_whole(*id);
        }
    }

    /// Hints that a packet is about to leave its queue.
    #[inline(always)]
    pub fn prefetch_leaving(&self, id: PacketId) {
        self.prefetch_all(id);
        self.prefetch_note(id);
    }

    /// Hints that ports are about to write into a packet's frame.
    #[inline(always)]
    pub fn prefetch_shim(&self, id: PacketId) {
        if !self.shims.is_empty() {
            prefetch(self.shims.as_ptr().wrapping_add(id.index()));
            prefetch(self.records.as_ptr().wrapping_add(id.index()));
        }
    }
}

/// The envelope of a packet.
impl std::ops::Index<PacketId> for Pool {
    type Output = Envelope;
    #[inline(always)]
    fn index(&self, id: PacketId) -> &Envelope {
        &self.outer[id.index()].envelope
    }
}

/// Mutable access to a packet's envelope: all but destination and hash, by which it is forwarded ([`Pool::rewrite`]).
impl std::ops::IndexMut<PacketId> for Pool {
    #[inline(always)]
    fn index_mut(&mut self, id: PacketId) -> &mut Envelope {
        &mut self.outer[id.index()].envelope
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::HostId;

    #[test]
    fn a_packet_with_another_destination_or_hash_is_looked_up_again() {
        let envelope = Envelope { dst: HostId(4), hash: 7, ttl: 64, ..Envelope::default() };
        let route = Route::along(&[2, 5, 9].map(LinkId), envelope.ttl);
        for (changed, next) in [
            (Envelope { class: fanin_units::TrafficClass(3), frame: 84, ..envelope }, Some(LinkId(5))),
            (Envelope { dst: HostId(3), ..envelope }, None),
            (Envelope { hash: 8, ..envelope }, None),
        ] {
            let mut pool = Pool::default();
            let id = pool.take();
            pool.make(id, &envelope, &route);
            pool.rewrite(id, &changed);
            assert_eq!((pool[id], pool.outer(id).next(LinkId(2))), (changed, next));
        }
    }

    #[test]
    fn the_place_of_a_packet_that_is_gone_has_no_route_for_a_message() {
        let mut pool = Pool::default();
        let id = pool.take();
        let envelope = Envelope::default();
        pool.make(id, &envelope, &Route::along(&[2, 5, 9].map(LinkId), envelope.ttl));
        pool.free(id);
        let message = pool.take_message(&Packet { envelope, header: Header::default() });
        assert_eq!((message, pool.outer(message).next(LinkId(2))), (id, None));
    }
}
