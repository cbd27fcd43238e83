//! Packets in flight: a pool with a free list, so that no packet is ever allocated on its own. Envelopes and headers lie apart:
//! a hop touches half a cache line, and two envelopes share one.

use fanin_engine::Table;
use fanin_packet::{Envelope, Header, Packet, PacketId};

/// All packets that exist. The most recently freed place is used first: it is still in the cache.
#[derive(Default)]
pub struct Pool {
    envelopes: Table<Envelope>,
    headers: Table<Header>,
    free: Vec<PacketId>,
    /// By the packet at the end of whose frame a control message travels: the message, itself a packet here.
    messages: Table<PacketId>,
    /// Places that hold control messages.
    control: u64,
}

/// Bytes of a packet's two parts.
pub const BYTES_EACH: usize = std::mem::size_of::<Envelope>() + std::mem::size_of::<Header>();

/// No message.
const NONE: PacketId = PacketId::MAX;

impl Pool {
    /// A place for a new packet; what it holds is left over.
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
        self.envelopes.push(Envelope::default());
        self.headers.push(Header::default());
        (self.envelopes.len() - 1) as PacketId
    }

    /// Gives a place back.
    #[inline(always)]
    pub fn free(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// Packets that exist now: queued, on a wire, or waiting at a NIC. Control messages do not count.
    pub fn in_flight(&self) -> u64 {
        (self.envelopes.len() - self.free.len()) as u64 - self.control
    }

    /// The packets that exist, in no particular order; control messages too. Walks all places.
    pub fn existing(&self) -> impl Iterator<Item = PacketId> {
        let mut free = vec![false; self.envelopes.len()];
        self.free.iter().for_each(|id| free[*id as usize] = true);
        (0..).zip(free).filter(|(_, free)| !free).map(|(id, _)| id)
    }

    /// The header of a packet.
    #[inline(always)]
    pub fn header(&self, id: PacketId) -> &Header {
        &self.headers[id as usize]
    }

    /// Both parts of a packet, to be written.
    #[inline(always)]
    pub fn parts(&mut self, id: PacketId) -> (&mut Envelope, &mut Header) {
        (&mut self.envelopes[id as usize], &mut self.headers[id as usize])
    }

    /// A copy of a packet.
    pub fn packet(&self, id: PacketId) -> Packet {
        Packet { envelope: self[id], header: *self.header(id) }
    }

    /// A place for a control message.
    pub fn take_message(&mut self, message: &Packet) -> PacketId {
        let id = self.take();
        let (envelope, header) = self.parts(id);
        (*envelope, *header) = (message.envelope, message.header);
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
        self.messages.grow(id as usize + 1, NONE);
        self.messages[id as usize] = message;
        let envelope = &mut self[id];
        envelope.carries = true;
        envelope.frame += bytes;
    }

    /// Takes the message off that a packet's frame carries; `None` where it carries none.
    pub fn detach(&mut self, id: PacketId) -> Option<Packet> {
        if !self[id].carries {
            return None;
        }
        let message = std::mem::replace(&mut self.messages[id as usize], NONE);
        let message = self.free_message(message);
        let envelope = &mut self[id];
        envelope.carries = false;
        envelope.frame -= u16::from(message.envelope.header);
        Some(message)
    }

    /// Bytes held, the most there ever were.
    pub fn bytes(&self) -> usize {
        let ids = self.free.capacity() + self.messages.capacity();
        self.envelopes.capacity() * BYTES_EACH + ids * std::mem::size_of::<PacketId>()
    }

    /// Asks the processor to fetch the envelope of a packet that is needed soon.
    #[inline(always)]
    pub fn prefetch(&self, id: PacketId) {
        super::link::prefetch(self.envelopes.as_ptr().wrapping_add(id as usize));
    }
}

/// Its envelope.
impl std::ops::Index<PacketId> for Pool {
    type Output = Envelope;
    #[inline(always)]
    fn index(&self, id: PacketId) -> &Envelope {
        &self.envelopes[id as usize]
    }
}

impl std::ops::IndexMut<PacketId> for Pool {
    #[inline(always)]
    fn index_mut(&mut self, id: PacketId) -> &mut Envelope {
        &mut self.envelopes[id as usize]
    }
}
