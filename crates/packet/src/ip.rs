//! Versions of IP, and the sizes that depend on them.

/// Version of the Internet Protocol. Its discriminant is the length of its header, so that computing a packet's size takes no
/// branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum IpVersion {
    /// IPv4. Source: RFC 791 §3.1, without options.
    #[default]
    V4 = 20,
    /// IPv6. Source: RFC 8200 §3, without extension headers.
    V6 = 40,
}

impl IpVersion {
    /// Length of the IP header \[bytes\].
    #[inline(always)]
    pub const fn header(self) -> u16 {
        self as u16
    }

    /// Bytes of two addresses and two ports, which identify a flow in a control message.
    pub const fn tuple(self) -> u16 {
        let address = match self {
            IpVersion::V4 => 4,
            IpVersion::V6 => 16,
        };
        2 * address + 4
    }
}
