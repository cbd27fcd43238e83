//! Shim headers that hosts put below the transport header for a mechanism of switches, which defines them.
//!
//! What it may say of a packet is what a shim at the NIC can know: the size of the flow, as the application has announced it, and by the
//! places of payload what was sent before.

use crate::core::Core;
use fanin_packet::{Envelope, Header, PacketId, Shim, Side};
use fanin_switch::Sent;
use fanin_units::FlowId;
use std::collections::BTreeMap;

/// Headers that hosts put into frames for the mechanisms of switches.
pub struct Headers {
    write: fn(&Sent) -> Shim,
    flows: BTreeMap<(FlowId, Side), Sending>,
}

/// The bytes that one end of a flow has sent.
#[derive(Debug, Default)]
struct Sending {
    /// Place of the end's first byte, as headers have it.
    first: u32,
    /// All bytes below were sent at least once.
    reached: u64,
    /// Number of retransmissions, by the first byte of the payload that was sent again.
    again: BTreeMap<u64, u32>,
}

impl Sending {
    /// Bytes of the flow before a packet's payload, and earlier transmissions of that payload.
    fn sends(&mut self, place: Option<u32>, payload: u64) -> (u64, u32) {
        let Some(place) = place else {
            self.reached += payload; // never sent again
            return (self.reached - payload, 0);
        };
        if self.reached == 0 {
            self.first = place;
        }
        let ahead = place.wrapping_sub(self.first.wrapping_add(self.reached as u32)) as i32;
        let before = self.reached.saturating_add_signed(i64::from(ahead));
        let mut again = 0;
        if ahead < 0 {
            let times = self.again.entry(before).or_default();
            *times += 1;
            again = *times;
        }
        self.reached = self.reached.max(before + payload);
        (before, again)
    }
}

impl Headers {
    pub fn new(write: fn(&Sent) -> Shim) -> Box<Headers> {
        Box::new(Headers { write, flows: BTreeMap::new() })
    }

    /// Puts a header into the frame of a packet that goes to its NIC, whose end has `size` bytes to send in all.
    pub fn put(&mut self, core: &mut Core, packet: PacketId, size: u64) {
        let shim = self.of(&core.pool[packet], core.pool.header(packet), size);
        core.pool[packet].set_shim(Some(&shim));
        core.pool.keep_shim(packet, shim);
    }

    /// Header of a packet whose end has `size` bytes to send in all; zero: without limit.
    pub fn of(&mut self, envelope: &Envelope, header: &Header, size: u64) -> Shim {
        let payload = u64::from(envelope.payload);
        if payload == 0 {
            return (self.write)(&Sent { left: 0, again: 0 });
        }
        let key = (envelope.flow, envelope.to.other());
        let (before, again) = self.flows.entry(key).or_default().sends(header.place(), payload);
        let left = if size == 0 { u64::MAX } else { size.saturating_sub(before).max(payload) };
        (self.write)(&Sent { left, again })
    }

    /// Forgets the bytes sent by an end that is gone.
    pub fn forget(&mut self, flow: FlowId, side: Side) {
        self.flows.remove(&(flow, side));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_packet::{Packet, TcpFlags};

    fn headers() -> Box<Headers> {
        Headers::new(|sent| Shim::new(1, &[&(sent.left as u32).to_be_bytes()[..], &[sent.again as u8]].concat(), 0))
    }

    /// What is said of a packet: left, and how often it was sent before.
    fn said(headers: &mut Headers, packet: &Packet, size: u64) -> (u32, u8) {
        let shim = headers.of(&packet.envelope, &packet.header, size);
        let [a, b, c, d, again] = shim.body().try_into().unwrap();
        (u32::from_be_bytes([a, b, c, d]), again)
    }

    #[test]
    fn bytes_left_count_down_and_retransmissions_up_also_across_zero() {
        for start in [1, u32::MAX - 1_500] {
            let mut headers = headers();
            let mut send = |n: u32, payload| {
                let segment = Packet::of_tcp(TcpFlags::ACK, start.wrapping_add(1_000 * n), 1, 1, payload);
                said(&mut headers, &segment, 3_500)
            };
            assert_eq!([send(0, 1_000), send(1, 1_000), send(2, 1_000)], [(3_500, 0), (2_500, 0), (1_500, 0)]);
            assert_eq!([send(1, 1_000), send(1, 1_000), send(0, 1_000)], [(2_500, 1), (2_500, 2), (3_500, 1)]);
            assert_eq!([send(3, 500), send(9, 0), send(3, 500)], [(500, 0), (0, 0), (500, 1)]);
        }
    }

    #[test]
    fn datagrams_are_never_sent_again_and_without_a_size_most_is_left() {
        let mut headers = headers();
        let mut send = |size| said(&mut headers, &Packet::of_udp(7, 400), size);
        assert_eq!([send(1_000), send(1_000), send(1_000)], [(1_000, 0), (600, 0), (400, 0)]);
        assert_eq!(send(0), (u32::MAX, 0));
    }

    #[test]
    fn ends_are_told_apart_and_forgotten() {
        let mut headers = headers();
        let mut packet = Packet::of_tcp(TcpFlags::ACK, 5, 1, 1, 100);
        assert_eq!(said(&mut headers, &packet, 200), (200, 0));
        packet.envelope.to = Side::Initiator;
        assert_eq!(said(&mut headers, &packet, 300), (300, 0));
        assert_eq!(said(&mut headers, &packet, 300), (300, 1));
        headers.forget(FlowId(0), Side::Responder);
        assert_eq!(said(&mut headers, &packet, 300), (300, 0), "a new flow");
        headers.forget(FlowId(0), Side::Initiator);
        assert!(headers.flows.keys().eq([&(FlowId(0), Side::Responder)]));
    }
}
