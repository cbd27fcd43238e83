//! Packets in flight: a pool with a free list, so that no packet is ever allocated on its own.

use fanin_engine::Table;
use fanin_packet::Packet;

/// A packet's place in the pool.
pub type PacketId = u32;

/// All packets that exist. The most recently freed place is used first: it is still in the cache.
#[derive(Default)]
pub struct Pool {
    packets: Table<Packet>,
    free: Vec<PacketId>,
}

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
        self.packets.push(Packet::default());
        (self.packets.len() - 1) as PacketId
    }

    /// Gives a place back.
    #[inline(always)]
    pub fn free(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// Packets that exist now: queued, on a wire, or waiting at a NIC.
    pub fn in_flight(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Bytes held, the most there ever were.
    pub fn bytes(&self) -> usize {
        self.packets.capacity() * std::mem::size_of::<Packet>() + self.free.capacity() * std::mem::size_of::<PacketId>()
    }

    /// Asks the processor to fetch a packet that is needed soon.
    #[inline(always)]
    pub fn prefetch(&self, id: PacketId) {
        crate::link::prefetch(self.packets.as_ptr().wrapping_add(id as usize));
    }
}

impl std::ops::Index<PacketId> for Pool {
    type Output = Packet;
    #[inline(always)]
    fn index(&self, id: PacketId) -> &Packet {
        &self.packets[id as usize]
    }
}

impl std::ops::IndexMut<PacketId> for Pool {
    #[inline(always)]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id as usize]
    }
}
