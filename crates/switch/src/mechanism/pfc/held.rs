//! Notes kept with packets while they take memory.

use crate::mechanism::{Node, PortNo};
use fanin_packet::PacketId;
use fanin_units::TrafficClass;

/// A packet that takes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// Port that the packet came in by, and the port that it waits for.
    pub port: PortNo,
    pub output: PortNo,
    pub class: TrafficClass,
    /// More than none.
    pub bytes: u16,
    /// True once the packet has crossed to its port, and takes no memory of its input any more.
    pub crossed: bool,
}

impl Held {
    /// Note of a packet; `None`: the packet takes no memory.
    pub(super) fn of(node: &dyn Node, packet: PacketId) -> Option<Held> {
        Held::read(node.note(packet))
    }

    /// Packet of a note; `None`: it takes no memory.
    #[inline(always)]
    pub(super) fn read(note: u64) -> Option<Held> {
        (note != 0).then_some(Held {
            port: PortNo(note as u16),
            output: PortNo((note >> 16) as u16),
            class: TrafficClass((note >> 48) as u8),
            bytes: (note >> 32) as u16,
            crossed: note >> 56 != 0,
        })
    }

    /// The note.
    #[inline(always)]
    pub(super) fn note(self) -> u64 {
        let Held { port, output, class, bytes, crossed } = self;
        debug_assert!(bytes > 0, "a packet without bytes");
        let [port, output, bytes, class] = [port.0.into(), output.0.into(), u64::from(bytes), class.0.into()];
        port | output << 16 | bytes << 32 | class << 48 | u64::from(crossed) << 56
    }

    /// Keeps the note with a packet.
    pub(super) fn keep(self, node: &mut dyn Node, packet: PacketId) {
        node.set_note(packet, self.note());
    }

    /// Takes the note off a packet that takes no memory any more; `None`: it took none.
    pub(super) fn take(node: &mut dyn Node, packet: PacketId) -> Option<Held> {
        let held = Held::of(node, packet)?;
        node.set_note(packet, 0);
        Some(held)
    }
}
