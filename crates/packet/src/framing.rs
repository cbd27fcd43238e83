//! Framing: the bytes that the link layer adds to an IP packet.

use crate::IpVersion;

/// Bytes per packet of link layer and IP; the defaults are Ethernet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Header, frame check sequence and trailer, if any: counted in queues and on the wire (14 + 4).
    pub header: u16,
    /// Smallest frame; shorter ones are padded (64).
    pub min_frame: u16,
    /// Preamble and inter-packet gap: counted in wire time only (8 + 12).
    pub gap: u16,
    /// Version of IP, which gives the length of the IP header.
    pub ip: IpVersion,
}

impl Framing {
    /// Framing of IEEE 802.3 with IPv4: 38 bytes per packet beyond IP.
    pub const ETHERNET: Framing = Framing { header: 18, min_frame: 64, gap: 20, ip: IpVersion::V4 };

    /// This framing with a trailer of `bytes` between IP packet and frame check sequence. The trailer counts towards the
    /// smallest frame: padding lies between the IP packet and it.
    pub const fn with_trailer(self, bytes: u16) -> Framing {
        Framing { header: self.header + bytes, ..self }
    }

    /// Size of the frame that carries `transport` bytes of transport header and payload.
    #[inline(always)]
    pub fn frame(&self, transport: u16) -> u16 {
        (transport + self.ip.header() + self.header).max(self.min_frame)
    }

    /// Bytes of wire time that a frame occupies, preamble and gap included.
    #[inline(always)]
    pub fn on_wire(&self, frame: u16) -> u32 {
        u32::from(frame) + u32::from(self.gap)
    }
}
