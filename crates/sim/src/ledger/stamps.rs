//! Stamps, which watched ports write into packets and receivers read. A table beside the pool; there is none where there are no
//! stamps.

use fanin_engine::Table;
use fanin_packet::PacketId;
use fanin_telemetry::{Registers, Stamp};

const _: () = assert!(Stamp::BYTES == fanin_scenario::STAMP_BYTES as usize);

/// The stamps of all packets that exist.
pub struct Stamps {
    pub registers: Registers,
    /// Stamps by the packet's place in the pool. A place that is free holds an empty stamp: a packet that leaves the network
    /// takes its stamp along.
    of: Table<Stamp>,
}

impl Stamps {
    pub fn new(registers: Registers) -> Self {
        Stamps { registers, of: Vec::new().into() }
    }

    /// The stamp of a packet as it is now.
    pub fn of(&self, packet: PacketId) -> Stamp {
        self.of.get(packet.index()).copied().unwrap_or(Stamp::EMPTY)
    }

    pub fn write(&mut self, packet: PacketId, stamp: Stamp) {
        self.of.grow(packet.index() + 1, Stamp::EMPTY);
        self.of[packet.index()] = stamp;
    }

    /// Takes the stamp of a packet that leaves this world.
    pub fn take(&mut self, packet: PacketId) -> Stamp {
        let stamp = self.of(packet);
        self.clear(packet);
        stamp
    }

    pub fn clear(&mut self, packet: PacketId) {
        if (packet.index()) < self.of.len() {
            self.of[packet.index()] = Stamp::EMPTY;
        }
    }
}
