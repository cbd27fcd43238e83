//! Versions of IP, and what follows from them for sizes.

/// Version of the Internet Protocol. Its number here is the length of its header, so that a packet's size costs no branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum IpVersion {
    /// Source: RFC 791 §3.1, without options.
    #[default]
    V4 = 20,
    /// Source: RFC 8200 §3, without extension headers.
    V6 = 40,
}

impl IpVersion {
    /// Bytes of the header.
    #[inline(always)]
    pub const fn header(self) -> u16 {
        self as u16
    }

    /// Bytes of a drop notification: two addresses, ports 2 + 2, sequence number 4, length 2, type 1, operation 1.
    /// Source: PDN fig. 3 for the 20 bytes of IPv4; with its fields and addresses of 16 bytes they are 44.
    pub const fn notice(self) -> u16 {
        let address = match self {
            IpVersion::V4 => 4,
            IpVersion::V6 => 16,
        };
        2 * address + 12
    }
}
