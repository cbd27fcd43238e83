//! Questions that a mechanism may ask of its own switch.

use super::PortNo;
use crate::PortView;
use fanin_packet::{Envelope, PacketId, Shim};
use fanin_units::{Time, TrafficClass};

/// Questions of a hook to its switch.
pub trait Node {
    /// Present time.
    fn now(&self) -> Time;

    /// View of a port's queue.
    fn view(&mut self, port: PortNo) -> PortView;

    /// True if the wire of a port is free, so that a packet would leave at once.
    fn is_idle(&mut self, port: PortNo) -> bool {
        self.view(port).is_idle()
    }

    /// Next packet that has left its queue without [`super::PacketMemory::on_departed`] having been notified; `None`: there is
    /// none up to now.
    fn next_departed(&mut self) -> Option<PacketId> {
        None
    }

    /// True if the buffer of a port has room for a packet now, or its wire is free; always where buffers have no bounds. Marking
    /// may still drop it.
    fn has_room(&mut self, _port: PortNo, _envelope: &Envelope) -> bool {
        true
    }

    /// True if the express queue of a port has room for a frame ([`super::Overtakes`]).
    fn has_express_room(&mut self, _port: PortNo, _frame: u16) -> bool {
        false
    }

    /// Port by which the switch would forward a packet now; `None` where it knows no way. Path choices that keep state count it
    /// as a packet.
    fn route(&mut self, envelope: &Envelope) -> Option<PortNo>;

    /// The ports by which the switch may forward a packet, all at equal cost.
    fn ways(&self, _envelope: &Envelope) -> Vec<PortNo> {
        Vec::new()
    }

    /// Frame bytes in this switch that came in by a port and have not left yet, including those that mechanisms hold. A packet
    /// that is being offered is none of them yet. At a combined switch those in its virtual output queues alone. Only known with
    /// [`super::Hooks::INPUTS`].
    fn input_bytes(&self, _port: PortNo) -> u64 {
        0
    }

    /// Frame bytes that may leave by a port: in its queue, and at a combined switch in its virtual output queues and on the
    /// crossbar, without those of paused classes. Elsewhere only known of ports whose departures are events
    /// ([`super::Effect::Watch`]).
    fn sendable_bytes(&self, _port: PortNo) -> u64 {
        0
    }

    /// Queues of a port, one for each class.
    fn queues(&self, _port: PortNo) -> usize {
        1
    }

    /// True if a traffic class of a port is paused.
    fn is_paused(&self, _port: PortNo, _class: TrafficClass) -> bool {
        false
    }

    /// True while a pause frame waits at a port for its wire: a further one says what both do ([`super::Effect::Emit`]).
    fn pause_waits(&mut self, _port: PortNo) -> bool {
        false
    }

    /// Note on a packet by the mechanism that counts packets in memory, from the packet's wait here until it is gone; zero: none.
    fn note(&self, _packet: PacketId) -> u64 {
        0
    }

    /// Keeps a note with a packet. Zero is due before the packet is elsewhere.
    fn set_note(&mut self, _packet: PacketId, _note: u64) {}

    /// A packet that is here, or is just leaving.
    fn packet(&self, _packet: PacketId) -> Option<Envelope> {
        None
    }

    /// Packets that wait at a port in the queue of a traffic class. Only known of the port that refuses a packet, and of one whose
    /// departures are events ([`super::Effect::Watch`]).
    fn waiting(&self, _port: PortNo, _class: TrafficClass) -> usize {
        0
    }

    /// Packet at `place` in the queue of a traffic class, the first to leave being at zero, with the header in its frame.
    fn waiting_at(&self, _port: PortNo, _class: TrafficClass, _place: usize) -> Option<(Envelope, Option<Shim>)> {
        None
    }

    /// True if the buffer of a port would have room for a packet if frames of these sizes left the queue of its class.
    fn has_room_without(&mut self, port: PortNo, envelope: &Envelope, _frames: &[u16]) -> bool {
        self.has_room(port, envelope)
    }
}
