//! The packet, in two parts: the [`Envelope`], which is all that a switch may see, and the [`Header`], which only the two
//! ends of a flow read.
//!
//! Sizes follow Ethernet: `frame` is header + IP packet + FCS, padded to the minimum frame, without preamble and
//! inter-packet gap: what a queue holds.

use fanin_units::{FlowId, HostId};

pub mod address;
mod control;
mod framing;
mod ip;
mod roce;
mod shim;
mod signal;
mod tcp;
mod telemetry;

pub use control::{Control, CONTROL_BODY};
pub use framing::Framing;
pub use ip::IpVersion;
pub use roce::{RoceHeader, RoceOp, Syndrome};
pub use shim::{Extra, Shim, LONGEST_SHIM, SHIM_BODY};
pub use signal::{Lost, Part, Reference, Signal, Signals};
pub use tcp::{Nack, SackBlock, Segment, SegmentMut, SynOptions, TcpFlags, TcpHeader, Timestamps, NACK_OPTION_BYTES};
pub use telemetry::{rate_code, Departure, HopSample, Record, Stack, MAX_HOPS, RECORD_BYTES};

/// A packet's place in the pool of all packets that exist: what stands for it where it waits.
pub type PacketId = u32;

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

/// Which end of its connection a packet travels to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
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

/// What nodes on the way see of a packet: addresses, sizes, class, ECN field. Half a cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(32))]
pub struct Envelope {
    /// The flow that it belongs to: with `to` it stands for the ports of the 5-tuple.
    pub flow: FlowId,
    /// Source host.
    pub src: HostId,
    /// Destination host.
    pub dst: HostId,
    /// Hash of the 5-tuple as hardware computes it once per packet; path choice and flow tables start from it.
    pub hash: u32,
    /// The same with source and destination exchanged: the hash of what `dst` answers.
    pub reverse_hash: u32,
    /// Frame bytes: what a queue counts.
    pub frame: u16,
    /// Bytes behind the transport header; of a trimmed packet those that it had.
    pub payload: u16,
    /// Bytes of the transport header, or of a control frame's body.
    pub header: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// Traffic class, 0 is served first by strict priority.
    pub class: u8,
    /// Hops left.
    pub ttl: u8,
    /// Which end of the flow it travels to; with `flow` this is the demultiplexing key.
    pub to: Side,
    /// What the header is.
    pub kind: Kind,
    /// A switch has cut its payload off: headers are all there is.
    pub trimmed: bool,
    /// What its frame has besides, which is so much longer.
    pub extra: Extra,
}

const _: () = assert!(std::mem::size_of::<Envelope>() == 32);

/// What a packet is, as its EtherType and IP header name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Kind {
    /// Carries a transport that sends again what is lost.
    #[default]
    Reliable,
    /// Carries datagrams, which nobody sends again.
    Datagram,
    /// A message between nodes.
    Control,
}

impl Default for Envelope {
    fn default() -> Self {
        Envelope {
            flow: FlowId(0),
            src: HostId(0),
            dst: HostId(0),
            hash: 0,
            reverse_hash: 0,
            frame: 0,
            payload: 0,
            header: 0,
            ecn: Ecn::NotEct,
            class: 0,
            ttl: 64,
            to: Side::Responder,
            kind: Kind::Reliable,
            trimmed: false,
            extra: Extra::NONE,
        }
    }
}

impl Envelope {
    /// Cuts the payload off: the frame is `frame` bytes from now on, and `payload` keeps how much there was.
    pub fn trim(&mut self, frame: u16) {
        self.trimmed = true;
        self.frame = frame;
    }
}

/// A UDP datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UdpHeader {
    /// Its number within the flow, which stands for content that real ones would have.
    pub number: u32,
}

/// What only the ends of a flow read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Tcp(TcpHeader),
    Udp(UdpHeader),
    Roce(RoceHeader),
    /// A message of a switch, to a host or to another switch.
    Control(Control),
}

const _: () = assert!(std::mem::size_of::<Header>() == 48);

impl Default for Header {
    fn default() -> Self {
        Header::Tcp(TcpHeader::default())
    }
}

impl Header {
    /// What the envelope says of it.
    #[inline(always)]
    pub fn kind(&self) -> Kind {
        match self {
            Header::Tcp(_) | Header::Roce(_) => Kind::Reliable,
            Header::Udp(_) => Kind::Datagram,
            Header::Control(_) => Kind::Control,
        }
    }

    /// Bytes of a transport's header, options padded to four bytes. Zero for a control frame, whose envelope has its size.
    #[inline(always)]
    pub fn bytes(&self) -> u16 {
        match self {
            Header::Tcp(tcp) => tcp.bytes(),
            Header::Roce(roce) => roce.bytes(),
            Header::Udp(_) => 8, // Source: RFC 768.
            Header::Control(_) => 0,
        }
    }

    /// The TCP header.
    ///
    /// # Panics
    /// When it is another.
    #[inline(always)]
    pub fn tcp(&self) -> &TcpHeader {
        match self {
            Header::Tcp(tcp) => tcp,
            other => panic!("no TCP header: {other:?}"),
        }
    }

    /// The place of a TCP header, whatever was there before.
    #[inline(always)]
    pub fn make_tcp(&mut self) -> &mut TcpHeader {
        if !matches!(self, Header::Tcp(_)) {
            *self = Header::Tcp(TcpHeader::default());
        }
        match self {
            Header::Tcp(tcp) => tcp,
            _ => unreachable!("just made"),
        }
    }

    /// What the envelope says of it: gives [`Header::bytes`], and writes the class that it travels in, where that is not its flow's.
    #[inline(always)]
    pub fn outline(&self, class: &mut u8) -> u16 {
        // Nearly always; one comparison instead of a table of jumps.
        if let Header::Tcp(tcp) = self {
            return tcp.bytes();
        }
        self.outline_of_others(class)
    }

    #[inline(never)]
    fn outline_of_others(&self, class: &mut u8) -> u16 {
        match self {
            Header::Roce(roce) => {
                *class = roce.class.unwrap_or(*class);
                roce.bytes()
            }
            other => other.bytes(),
        }
    }

    /// The number that tables of packets show: sequence number, or number of the datagram.
    pub fn number(&self) -> u32 {
        match self {
            Header::Tcp(tcp) => tcp.seq,
            Header::Udp(udp) => udp.number,
            Header::Roce(roce) => roce.psn,
            Header::Control(_) => 0,
        }
    }

    /// The place of its first byte of payload among those of its flow, modulo 2^32; `None` where packets have none.
    pub fn place(&self) -> Option<u32> {
        match self {
            Header::Tcp(tcp) => Some(tcp.seq),
            Header::Roce(roce) => roce.op.is_data().then_some(roce.place),
            Header::Udp(_) | Header::Control(_) => None,
        }
    }

    /// How a switch that drops the packet may name it to its sender; `None` where there is nothing to send again (datagrams,
    /// resets, control frames), or nobody who would act on it (RoCEv2). `payload`: as in the envelope.
    pub fn reference(&self, payload: u16) -> Option<Reference> {
        match self {
            Header::Tcp(tcp) => tcp.reference(payload),
            Header::Udp(_) | Header::Roce(_) | Header::Control(_) => None,
        }
    }

    /// Whether a packet with this header and `payload` bytes continues an earlier one of its flow, so that a host may hand both to the
    /// transport as one: see [`TcpHeader::continues`]. Datagrams never do.
    pub fn continues(&self, payload: u16, earlier: (&Header, u16)) -> bool {
        match (self, earlier) {
            (Header::Tcp(tcp), (Header::Tcp(before), length)) => tcp.continues(payload, (before, length)),
            _ => false,
        }
    }

    /// Whether it carries a signal for its receiver besides data and acknowledgments (TCP's NACK option).
    pub fn carries_signal(&self) -> bool {
        matches!(self, Header::Tcp(tcp) if tcp.nack().is_some())
    }
}

/// A packet by value: what transports make and take, and captures write. In the simulator its two parts lie apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    pub envelope: Envelope,
    pub header: Header,
}

impl Packet {
    /// A TCP segment without options.
    pub fn of_tcp(flags: TcpFlags, seq: u32, ack: u32, window: u16, payload: u16) -> Packet {
        let mut p = Packet::default();
        p.segment_mut().set(flags, seq, ack, window, payload);
        p
    }

    /// A packet of RoCEv2.
    pub fn of_roce(header: RoceHeader, payload: u16) -> Packet {
        Packet { envelope: Envelope { payload, ..Envelope::default() }, header: Header::Roce(header) }
    }

    /// A datagram.
    pub fn of_udp(number: u32, payload: u16) -> Packet {
        let envelope = Envelope { payload, kind: Kind::Datagram, ..Envelope::default() };
        Packet { envelope, header: Header::Udp(UdpHeader { number }) }
    }

    /// It as a TCP segment, to be read.
    ///
    /// # Panics
    /// When it is none.
    pub fn segment(&self) -> Segment<'_> {
        Segment { envelope: &self.envelope, tcp: self.header.tcp() }
    }

    /// It as a TCP segment, to be written; it becomes one.
    pub fn segment_mut(&mut self) -> SegmentMut<'_> {
        SegmentMut { envelope: &mut self.envelope, tcp: self.header.make_tcp() }
    }

    /// Bytes of the transport header, as [`Header::bytes`].
    pub fn header_bytes(&self) -> u16 {
        self.header.bytes()
    }
}

#[cfg(test)]
mod tests;
