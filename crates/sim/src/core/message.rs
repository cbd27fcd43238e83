//! Control messages as packets of the pool.

use fanin_packet::{Envelope, Framing, Header, Kind, Packet};
use fanin_switch::{message_frame, Message};

/// A message as a packet of the pool: alone in a frame of `frame` bytes, or with zero at the end of another's.
pub fn packet_of(message: &Message, frame: u16) -> Packet {
    Packet { envelope: Envelope { frame, kind: Kind::Control, ..message.envelope }, header: Header::Control(message.control) }
}

/// A message alone in a frame of the length that it needs.
pub fn packet_alone(framing: &Framing, message: &Message) -> Packet {
    packet_of(message, message_frame(framing, message.envelope.header))
}

/// The message in a packet of the pool, if the packet's hop limit lets it be read.
pub fn message_of(packet: &Packet) -> Option<Message> {
    match packet.header {
        Header::Control(control) if packet.envelope.ttl > 0 => Some(Message { envelope: packet.envelope, control }),
        _ => None,
    }
}
