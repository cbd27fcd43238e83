//! Control messages as packets: alone in a frame, forwarded as packets are, or at the end of another packet's frame.

use fanin_packet::{Control, Envelope, Framing, Header, Kind, Packet};
use fanin_switch::{message_frame, Message};

/// A message as a packet of the pool, with this frame; at the end of another packet's frame it has none of its own.
pub fn packet_of(message: &Message, frame: u16) -> Packet {
    Packet { envelope: Envelope { frame, kind: Kind::Control, ..message.envelope }, header: Header::Control(message.control) }
}

/// A message of a host, alone in a frame.
pub fn packet_alone(framing: &Framing, message: &Message) -> Packet {
    packet_of(message, message_frame(framing, message.envelope.header))
}

/// The message that a packet of the pool is.
pub fn message_of(packet: &Packet) -> Option<Message> {
    match packet.header {
        Header::Control(control) => Some(Message { envelope: packet.envelope, control }),
        _ => None,
    }
}

/// The message that a host reads in a packet which has reached it, with its envelope; one whose hop limit is zero was lost on the way.
pub fn message_at_host(packet: &Packet) -> Option<(Envelope, Control)> {
    message_of(packet).filter(|message| message.envelope.ttl > 0).map(|message| (message.envelope, message.control))
}
