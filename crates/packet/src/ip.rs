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

    /// Bytes of two addresses and two ports: what names a flow in a message about it.
    pub const fn tuple(self) -> u16 {
        let address = match self {
            IpVersion::V4 => 4,
            IpVersion::V6 => 16,
        };
        2 * address + 4
    }
}
