//! The packet: one cache line, with typed access to its headers.
//!
//! A packet is what crosses links. Switches read size, class, ECN, destination and hash; only transports read the rest.
//! Sizes follow Ethernet: `frame` is header + IP packet + FCS, padded to the minimum frame, without preamble and
//! inter-packet gap: what a queue holds.

use fanin_units::{FlowId, HostId};

mod framing;
mod ip;
mod notice;
mod tcp;

pub use framing::Framing;
pub use ip::IpVersion;
pub use notice::{DropNotice, Notification, Operation};
pub use tcp::{Nack, SackBlock, SynOptions, TcpFlags, Timestamps, NACK_OPTION_BYTES};

/// ECN field of the IP header. Source: RFC 3168 §5.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: a congested queue can only drop it.
    #[default]
    NotEct = 0,
    /// ECN-capable, codepoint ECT(1).
    Ect1 = 1,
    /// ECN-capable, codepoint ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// Transport protocol, as the IP header names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Protocol {
    #[default]
    Tcp = 6,
    Udp = 17,
}

/// Which end of its connection a packet travels to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Side {
    /// To the end that opened the connection.
    #[default]
    Initiator = 0,
    /// To the end that accepted it.
    Responder = 1,
}

impl Side {
    /// The other end.
    pub const fn other(self) -> Side {
        match self {
            Side::Initiator => Side::Responder,
            Side::Responder => Side::Initiator,
        }
    }
}

/// A packet in flight: exactly one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Packet {
    /// The flow (connection) it belongs to.
    pub flow: FlowId,
    /// Destination host.
    pub dst: HostId,
    /// Hash of the 5-tuple as hardware computes it once per packet; path choice and flow tables start from it.
    pub hash: u32,
    /// Frame bytes: what a queue counts.
    pub frame: u16,
    /// Transport payload bytes; of a trimmed packet those that it had.
    pub payload: u16,
    /// ECN field.
    pub ecn: Ecn,
    /// Traffic class, 0 is served first by strict priority.
    pub class: u8,
    /// Hops left.
    pub ttl: u8,
    /// Which end it travels to; with `flow` this is the demultiplexing key.
    pub to: Side,
    /// TCP: sequence number of the first payload byte. UDP: datagram number.
    pub seq: u32,
    /// TCP: next sequence number expected.
    pub ack: u32,
    /// TCP: receive window as on the wire (scaled).
    pub window: u16,
    /// TCP flags.
    pub flags: TcpFlags,
    /// Protocol, option presence and whether the payload is there, see [`Packet::protocol`], [`Packet::timestamps`],
    /// [`Packet::sack`], [`Packet::nack`], [`Packet::is_trimmed`].
    shape: u8,
    /// TCP options that take space: timestamps first, then SACK blocks, or the SYN's options; a NACK last.
    options: [u32; 8],
}

const _: () = assert!(std::mem::size_of::<Packet>() == 64);

impl Default for Packet {
    fn default() -> Self {
        Packet {
            flow: FlowId(0),
            dst: HostId(0),
            hash: 0,
            frame: 0,
            payload: 0,
            ecn: Ecn::NotEct,
            class: 0,
            ttl: 64,
            to: Side::Responder,
            seq: 0,
            ack: 0,
            window: 0,
            flags: TcpFlags::NONE,
            shape: 0,
            options: [0; 8],
        }
    }
}

impl Packet {
    /// The transport protocol.
    #[inline(always)]
    pub fn protocol(&self) -> Protocol {
        if self.shape & tcp::UDP == 0 {
            Protocol::Tcp
        } else {
            Protocol::Udp
        }
    }

    /// Turns this into a UDP datagram number `seq` with `payload` bytes.
    pub fn set_udp(&mut self, seq: u32, payload: u16) {
        self.shape = tcp::UDP;
        self.flags = TcpFlags::NONE;
        self.seq = seq;
        self.payload = payload;
    }

    /// Whether a switch has cut its payload off: headers are all there is.
    #[inline]
    pub fn is_trimmed(&self) -> bool {
        self.shape & tcp::TRIMMED != 0
    }

    /// Cuts the payload off: the frame is `frame` bytes from now on, and `payload` tells how much there was.
    pub fn trim(&mut self, frame: u16) {
        self.shape |= tcp::TRIMMED;
        self.frame = frame;
    }

    /// Bytes of the transport header, options padded to four bytes.
    #[inline]
    pub fn transport_header(&self) -> u16 {
        if self.protocol() == Protocol::Udp {
            8
        } else {
            20 + self.tcp_option_bytes()
        }
    }
}

#[cfg(test)]
mod tests;
