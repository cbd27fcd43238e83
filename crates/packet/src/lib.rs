//! The packet, in two parts: the [`Envelope`], which is all that a switch may see, and the [`Header`], which only the two
//! ends of a flow read.
//!
//! Sizes follow Ethernet: `frame` is header + IP packet + FCS, padded to the minimum frame, without preamble and
//! inter-packet gap: what a queue holds.

use fanin_units::{FlowId, HostId, TrafficClass};

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

/// Index of a packet in the pool of all packets; queues and events hold it instead of the packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PacketId(pub u32);

impl PacketId {
    /// The place as an index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for PacketId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// ECN codepoint in the IP header. Source: RFC 3168 §5.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable transport: a congested queue can only drop the packet.
    #[default]
    NotEct = 0,
    /// ECN-capable transport, codepoint ECT(1).
    Ect1 = 1,
    /// ECN-capable transport, codepoint ECT(0).
    Ect0 = 2,
    /// Congestion experienced: a queue has marked the packet.
    Ce = 3,
}

/// End of a connection, as a packet's destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Side {
    /// The end that opened the connection.
    #[default]
    Initiator = 0,
    /// The end that accepted the connection.
    Responder = 1,
}

impl Side {
    /// The side of the peer.
    pub const fn other(self) -> Side {
        match self {
            Side::Initiator => Side::Responder,
            Side::Responder => Side::Initiator,
        }
    }
}

/// Envelope of a packet, the part that nodes on its way may read: addresses, sizes, class, ECN field. Half a cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(32))]
pub struct Envelope {
    /// Flow of the packet; with `to` it stands for the ports of the 5-tuple.
    pub flow: FlowId,
    /// Source host.
    pub src: HostId,
    /// Destination host.
    pub dst: HostId,
    /// Hash of the 5-tuple, computed once per packet; path choice and flow tables start from it.
    pub hash: u32,
    /// Hash of the 5-tuple with source and destination exchanged: the `hash` of packets in the opposite direction.
    pub reverse_hash: u32,
    /// Frame size in bytes, as queues count it.
    pub frame: u16,
    /// Payload bytes behind the transport header; for a trimmed packet, those that it had.
    pub payload: u16,
    /// Bytes of the transport header, or of a control frame's body.
    pub header: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// Traffic class, 0 is served first by strict priority.
    pub class: TrafficClass,
    /// Remaining hops (IP time to live).
    pub ttl: u8,
    /// Destination end of the flow; with `flow` this is the demultiplexing key.
    pub to: Side,
    /// Kind of the packet's header.
    pub kind: Kind,
    /// True if a switch has trimmed the packet: its payload is cut off.
    pub trimmed: bool,
    /// Control message and shim in the frame, which make it longer.
    pub extra: Extra,
}

const _: () = assert!(std::mem::size_of::<Envelope>() == 32);

/// Kind of a packet, as its EtherType and IP header tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Kind {
    /// Segment of a transport that retransmits lost data.
    #[default]
    Reliable,
    /// Datagram, which nobody retransmits.
    Datagram,
    /// Control frame: a message between nodes.
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
            class: TrafficClass::FIRST,
            ttl: 64,
            to: Side::Responder,
            kind: Kind::Reliable,
            trimmed: false,
            extra: Extra::NONE,
        }
    }
}

impl Envelope {
    /// Trims the packet: cuts the payload off and sets the frame's new size to `frame` bytes; `payload` keeps its length.
    pub fn trim(&mut self, frame: u16) {
        self.trimmed = true;
        self.frame = frame;
    }
}

/// Header of a UDP datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UdpHeader {
    /// Number of the datagram within its flow, in place of the content that a real one would have.
    pub number: u32,
}

/// Header of a packet, read only by the two ends of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Tcp(TcpHeader),
    Udp(UdpHeader),
    Roce(RoceHeader),
    /// Message of a switch, to a host or to another switch.
    Control(Control),
}

const _: () = assert!(std::mem::size_of::<Header>() == 48);

impl Default for Header {
    fn default() -> Self {
        Header::Tcp(TcpHeader::default())
    }
}

impl Header {
    /// Kind of packet that this header makes, for its envelope.
    #[inline(always)]
    pub fn kind(&self) -> Kind {
        match self {
            Header::Tcp(_) | Header::Roce(_) => Kind::Reliable,
            Header::Udp(_) => Kind::Datagram,
            Header::Control(_) => Kind::Control,
        }
    }

    /// Bytes of the transport header, options padded to four bytes. Zero for a control frame, whose length is in the
    /// envelope.
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
    /// When the packet has another header.
    #[inline(always)]
    pub fn tcp(&self) -> &TcpHeader {
        match self {
            Header::Tcp(tcp) => tcp,
            other => panic!("no TCP header: {other:?}"),
        }
    }

    /// Mutable TCP header; replaces a header of another kind.
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

    /// Outline of the header for the envelope: returns [`Header::bytes`], and overwrites `class` if the packet does not
    /// travel in its flow's class.
    #[inline(always)]
    pub fn outline(&self, class: &mut TrafficClass) -> u16 {
        // Nearly always; one comparison instead of a table of jumps.
        if let Header::Tcp(tcp) = self {
            return tcp.bytes();
        }
        self.outline_of_others(class)
    }

    #[inline(never)]
    fn outline_of_others(&self, class: &mut TrafficClass) -> u16 {
        match self {
            Header::Roce(roce) => {
                *class = roce.class.unwrap_or(*class);
                roce.bytes()
            }
            other => other.bytes(),
        }
    }

    /// Number of the packet in tables and captures: sequence number, or number of the datagram.
    pub fn number(&self) -> u32 {
        match self {
            Header::Tcp(tcp) => tcp.seq,
            Header::Udp(udp) => udp.number,
            Header::Roce(roce) => roce.psn,
            Header::Control(_) => 0,
        }
    }

    /// Position of the first payload byte in the flow's byte stream, modulo 2^32; `None` if the packet's kind has none.
    pub fn place(&self) -> Option<u32> {
        match self {
            Header::Tcp(tcp) => Some(tcp.seq),
            Header::Roce(roce) => roce.op.is_data().then_some(roce.place),
            Header::Udp(_) | Header::Control(_) => None,
        }
    }

    /// Reference by which a switch that drops this packet may name it to its sender; `None` if there is nothing to retransmit
    /// (datagrams, resets, control frames), or no transport in use acts on it (RoCEv2). `payload`: as in the envelope.
    pub fn reference(&self, payload: u16) -> Option<Reference> {
        match self {
            Header::Tcp(tcp) => tcp.reference(payload),
            Header::Udp(_) | Header::Roce(_) | Header::Control(_) => None,
        }
    }

    /// True if a packet with this header and `payload` bytes continues an `earlier` one of its flow, so that receive offload
    /// may merge the two: see [`TcpHeader::continues`]. Datagrams never do.
    pub fn continues(&self, payload: u16, earlier: (&Header, u16)) -> bool {
        match (self, earlier) {
            (Header::Tcp(tcp), (Header::Tcp(before), length)) => tcp.continues(payload, (before, length)),
            _ => false,
        }
    }

    /// True if the header carries a signal for its receiver besides data and acknowledgments (TCP's NACK option).
    pub fn carries_signal(&self) -> bool {
        matches!(self, Header::Tcp(tcp) if tcp.nack().is_some())
    }
}

/// A packet by value, as transports make and take them and captures write them. The simulator stores its two parts
/// separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    pub envelope: Envelope,
    pub header: Header,
}

impl Packet {
    /// Makes a TCP segment without options.
    pub fn of_tcp(flags: TcpFlags, seq: u32, ack: u32, window: u16, payload: u16) -> Packet {
        let mut p = Packet::default();
        p.segment_mut().set(flags, seq, ack, window, payload);
        p
    }

    /// Makes a RoCEv2 packet.
    pub fn of_roce(header: RoceHeader, payload: u16) -> Packet {
        Packet { envelope: Envelope { payload, ..Envelope::default() }, header: Header::Roce(header) }
    }

    /// Makes a UDP datagram.
    pub fn of_udp(number: u32, payload: u16) -> Packet {
        let envelope = Envelope { payload, kind: Kind::Datagram, ..Envelope::default() };
        Packet { envelope, header: Header::Udp(UdpHeader { number }) }
    }

    /// Reads the packet as a TCP segment.
    ///
    /// # Panics
    /// When the packet is no TCP segment.
    pub fn segment(&self) -> Segment<'_> {
        Segment { envelope: &self.envelope, tcp: self.header.tcp() }
    }

    /// Writes the packet as a TCP segment; a header of another kind is replaced.
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
