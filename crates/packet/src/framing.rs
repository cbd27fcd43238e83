//! How an IP packet sits on the wire.

use crate::IpVersion;

/// Bytes that the link layer and IP add. The defaults are Ethernet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Header and frame check sequence, and a trailer where there is one: counted in queues and on the wire (14 + 4).
    pub header: u16,
    /// Smallest frame, shorter ones are padded (64).
    pub min_frame: u16,
    /// Preamble and inter-packet gap: wire time only (8 + 12).
    pub gap: u16,
    /// Version of IP.
    pub ip: IpVersion,
}

impl Framing {
    /// IEEE 802.3: 38 bytes in all over the packet, which is one of IPv4.
    pub const ETHERNET: Framing = Framing { header: 18, min_frame: 64, gap: 20, ip: IpVersion::V4 };

    /// The same with `bytes` more in each frame behind the IP packet, before the frame check sequence. They count towards the
    /// smallest frame: padding lies between the IP packet and them.
    pub const fn with_trailer(self, bytes: u16) -> Framing {
        Framing { header: self.header + bytes, ..self }
    }

    /// Frame bytes of an IP packet with a transport header and payload of `transport` bytes together.
    #[inline(always)]
    pub fn frame(&self, transport: u16) -> u16 {
        (transport + self.ip.header() + self.header).max(self.min_frame)
    }

    /// Bytes of wire time that a frame occupies.
    #[inline(always)]
    pub fn on_wire(&self, frame: u16) -> u32 {
        u32::from(frame) + u32::from(self.gap)
    }
}
