//! Stamps: watched ports write them into packets, receivers read them. A table beside the pool, since a packet is one cache
//! line; there is none where there are no stamps.

use crate::pool::PacketId;
use crate::world::World;
use fanin_engine::Table;
use fanin_packet::Ecn;
use fanin_telemetry::{Registers, Stamp, StampRow};
use fanin_units::Bytes;

const _: () = assert!(Stamp::BYTES == fanin_scenario::STAMP_BYTES as usize);

/// The stamps of all packets that exist.
pub struct Stamps {
    pub registers: Registers,
    /// By the packet's place in the pool. A place that is free holds an empty stamp: what leaves the world takes its stamp
    /// along.
    of: Table<Stamp>,
}

impl Stamps {
    pub fn new(registers: Registers) -> Self {
        Stamps { registers, of: Vec::new().into() }
    }

    /// The stamp of a packet as it is now.
    pub fn of(&self, packet: PacketId) -> Stamp {
        self.of.get(packet as usize).copied().unwrap_or(Stamp::EMPTY)
    }

    fn write(&mut self, packet: PacketId, stamp: Stamp) {
        self.of.grow(packet as usize + 1, Stamp::EMPTY);
        self.of[packet as usize] = stamp;
    }

    fn clear(&mut self, packet: PacketId) {
        if (packet as usize) < self.of.len() {
            self.of[packet as usize] = Stamp::EMPTY;
        }
    }
}

impl World {
    /// A packet was accepted at watched port number `port`, where it found `queue`.
    #[inline(never)]
    pub(crate) fn stamp(&mut self, packet: PacketId, port: u32, queue: Bytes) {
        if let Some(stamps) = &mut self.stamps {
            let stamp = stamps.registers.read(port as u8, self.now, queue);
            stamps.write(packet, stamp);
        }
    }

    /// What a host writes down of a packet that has reached it, before anything else happens to it.
    #[cold]
    #[inline(never)]
    pub(crate) fn observe_delivery(&mut self, host: u32, packet: PacketId) {
        let stamp = self.stamps.as_ref().map_or(Stamp::EMPTY, |stamps| stamps.of(packet));
        self.capture_received(host, packet, stamp);
        self.read_stamp(host, packet);
    }

    /// What is written down of a packet that is dropped.
    #[cold]
    #[inline(never)]
    pub(crate) fn observe_drop(&mut self, packet: PacketId) {
        if let Some(stamps) = &mut self.stamps {
            stamps.clear(packet);
        }
    }

    fn read_stamp(&mut self, host: u32, packet: PacketId) {
        let Some(stamps) = &mut self.stamps else { return };
        let stamp = stamps.of(packet);
        if !stamp.is_stamped() {
            return;
        }
        stamps.clear(packet);
        let p = &self.pool[packet];
        let row = StampRow {
            received_ps: self.now.ps(),
            host: self.host_names[host as usize].clone(),
            port: self.ports[self.watched[usize::from(stamp.port)].index()].name.clone(),
            stamp_time: stamp.time,
            stamp_length: stamp.length,
            flow: p.flow.0,
            frame_bytes: p.frame,
            marked: p.ecn == Ecn::Ce,
        };
        let result = self.recorder.stamps.push(row);
        self.check(result);
    }
}
