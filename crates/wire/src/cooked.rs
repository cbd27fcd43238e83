//! Linux "cooked" headers: captures of several interfaces at once (`tcpdump -i any`). Source: linktypes (LINKTYPE_LINUX_SLL and
//! LINKTYPE_LINUX_SLL2).

use crate::capture::Direction;
use crate::headers::LinkType;

/// Bytes of the two kinds of cooked headers.
const SLL: usize = 16;
const SLL2: usize = 20;

/// Address types of links whose frames are Ethernet's: Ethernet, loopback.
const ETHERNET: [u16; 2] = [1, 772];

/// A cooked header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cooked {
    /// EtherType of the payload.
    pub ether_type: u16,
    /// Bytes of the header.
    pub size: usize,
    pub direction: Option<Direction>,
    /// Number of the interface, in the second version.
    pub interface: Option<u32>,
    /// The link's own frames are Ethernet's.
    pub ethernet: bool,
}

impl Cooked {
    /// The header of a frame; none where the link type has none, or it was cut.
    #[inline]
    pub fn of(link: LinkType, frame: &[u8]) -> Option<Cooked> {
        if link == LinkType::Ethernet {
            return None;
        }
        Self::read(link, frame)
    }

    fn read(link: LinkType, frame: &[u8]) -> Option<Cooked> {
        let (ether_type, kind, hardware, interface, size) = match link {
            LinkType::LinuxSll => {
                let h = frame.first_chunk::<SLL>()?;
                let kind = u16::from_be_bytes([h[0], h[1]]);
                (u16::from_be_bytes([h[14], h[15]]), kind, u16::from_be_bytes([h[2], h[3]]), None, SLL)
            }
            LinkType::LinuxSll2 => {
                let h = frame.first_chunk::<SLL2>()?;
                let interface = Some(u32::from_be_bytes([h[4], h[5], h[6], h[7]]));
                (u16::from_be_bytes([h[0], h[1]]), u16::from(h[10]), u16::from_be_bytes([h[8], h[9]]), interface, SLL2)
            }
            _ => return None,
        };
        let direction = match kind {
            // To this host, broadcast, multicast, to another host.
            0..=3 => Some(Direction::In),
            4 => Some(Direction::Out),
            _ => None,
        };
        Some(Cooked { ether_type, size, direction, interface, ethernet: ETHERNET.contains(&hardware) })
    }
}
