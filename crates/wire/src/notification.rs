//! Drop notifications as bytes at the end of a frame. Source: PDN §IV, fig. 3 and 4.
//!
//! A frame with one has the EtherType 0xA800 (IPv4) or 0xA6DD (IPv6) in place of 0x0800 or 0x86DD, and the notification
//! behind everything else, before the frame check sequence. The EtherType is that of the frame's own packet; the IP version of
//! the packet that was dropped is given by the notification's type, as a frame with an IPv4 packet may carry
//! one of an IPv6 connection.

use crate::control::ether_type;
use fanin_packet::IpVersion;
use std::net::{Ipv4Addr, Ipv6Addr};

/// EtherTypes of frames with a notification.
pub const IPV4_WITH_NOTICE: u16 = 0xA800;
pub const IPV6_WITH_NOTICE: u16 = 0xA6DD;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;
/// Addresses before the EtherType, and the shortest frame without its check sequence. Source: IEEE 802.3 §3.2.
const MACS: usize = 12;
const SHORTEST: usize = 60;

/// The type of notifications with IPv4 addresses, 20 bytes, and with IPv6 addresses, 44 bytes.
///
/// The paper's 20 bytes have room for IPv4 addresses only, and it gives the type field no values. Types that are not known
/// here are reserved: their length is not known either.
const DROP_IPV4: u8 = 1;
const DROP_IPV6: u8 = 2;
/// Bytes besides addresses and ports: sequence number, length, type, operation. Source: PDN fig. 3.
const FIELDS: u16 = 8;

/// Name of a type; none where it is not defined.
pub fn type_name(kind: u8) -> Option<&'static str> {
    match kind {
        DROP_IPV4 => Some("drop_ipv4"),
        DROP_IPV6 => Some("drop_ipv6"),
        _ => None,
    }
}

/// Name of an operation; none where it is not defined.
pub fn operation_name(operation: u8) -> Option<&'static str> {
    match operation {
        1 => Some("retransmit_and_halve"),
        2 => Some("retransmit"),
        3 => Some("acknowledge"),
        _ => None,
    }
}

/// Addresses of the dropped packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    V4 { src: Ipv4Addr, dst: Ipv4Addr },
    V6 { src: Ipv6Addr, dst: Ipv6Addr },
}

/// Notice of a dropped packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub addresses: Addresses,
    /// Source and destination port of the packet.
    pub ports: (u16, u16),
    pub seq: u32,
    /// Payload bytes of the dropped packet.
    pub length: u16,
    /// Operation that the sender shall do: 1 retransmit and halve, 2 retransmit; others are not defined, and not the parser's to judge.
    pub operation: u8,
}

/// Reason for which a frame carries no valid notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadNotice {
    /// Too short for a frame, or for the notification that the frame claims to have.
    Short,
    /// A type that is not defined.
    Type(u8),
    /// The frame carries no IP, so that there is no EtherType for it with a notification.
    NotIp(u16),
    /// The frame has a notification already: there is room for one.
    Full,
    /// The end of the notification was not captured.
    Cut,
}

impl std::fmt::Display for BadNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BadNotice::Short => write!(f, "the frame is too short for its drop notification"),
            BadNotice::Type(n) => write!(f, "a drop notification of type {n}, which is not defined"),
            BadNotice::NotIp(n) => write!(f, "a frame of EtherType {n:#06x} carries no drop notification"),
            BadNotice::Full => write!(f, "the frame carries a drop notification already"),
            BadNotice::Cut => write!(f, "the frame was cut before its drop notification"),
        }
    }
}

impl std::error::Error for BadNotice {}

impl Notice {
    /// Type of the notification on the wire.
    pub fn kind(&self) -> u8 {
        match self.addresses {
            Addresses::V4 { .. } => DROP_IPV4,
            Addresses::V6 { .. } => DROP_IPV6,
        }
    }

    /// Bytes of the notification on the wire.
    pub fn size(&self) -> usize {
        let ip = match self.addresses {
            Addresses::V4 { .. } => IpVersion::V4,
            Addresses::V6 { .. } => IpVersion::V6,
        };
        usize::from(ip.tuple() + FIELDS)
    }

    /// Appends the notification's bytes, in network order.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        match self.addresses {
            Addresses::V4 { src, dst } => {
                bytes.extend(src.octets());
                bytes.extend(dst.octets());
            }
            Addresses::V6 { src, dst } => {
                bytes.extend(src.octets());
                bytes.extend(dst.octets());
            }
        }
        bytes.extend(self.ports.0.to_be_bytes());
        bytes.extend(self.ports.1.to_be_bytes());
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.length.to_be_bytes());
        bytes.extend([self.kind(), self.operation]);
    }

    /// Notification at the end of `bytes`.
    ///
    /// # Errors
    /// Where its type is not defined, or the bytes are too few.
    pub fn at_the_end_of(bytes: &[u8]) -> Result<Notice, BadNotice> {
        let (_, [high, low, kind, operation]) = bytes.split_last_chunk().ok_or(BadNotice::Short)?;
        let rest = &bytes[..bytes.len() - 4];
        let (rest, [a, b, c, d, seq @ ..]) = rest.split_last_chunk::<8>().ok_or(BadNotice::Short)?;
        let addresses = match *kind {
            DROP_IPV4 => {
                let (rest, dst) = rest.split_last_chunk::<4>().ok_or(BadNotice::Short)?;
                let (_, src) = rest.split_last_chunk::<4>().ok_or(BadNotice::Short)?;
                Addresses::V4 { src: Ipv4Addr::from(*src), dst: Ipv4Addr::from(*dst) }
            }
            DROP_IPV6 => {
                let (rest, dst) = rest.split_last_chunk::<16>().ok_or(BadNotice::Short)?;
                let (_, src) = rest.split_last_chunk::<16>().ok_or(BadNotice::Short)?;
                Addresses::V6 { src: Ipv6Addr::from(*src), dst: Ipv6Addr::from(*dst) }
            }
            other => return Err(BadNotice::Type(other)),
        };
        Ok(Notice {
            addresses,
            ports: (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])),
            seq: u32::from_be_bytes(*seq),
            length: u16::from_be_bytes([*high, *low]),
            operation: *operation,
        })
    }

    /// A frame with this notification and no packet, without check sequence: padding lies before it.
    pub fn alone(&self, to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
        let ether_type = match self.addresses {
            Addresses::V4 { .. } => IPV4_WITH_NOTICE,
            Addresses::V6 { .. } => IPV6_WITH_NOTICE,
        };
        let mut frame = [to, from].concat();
        frame.extend(ether_type.to_be_bytes());
        frame.resize((MACS + 2).max(SHORTEST - self.size()), 0);
        self.write(&mut frame);
        frame
    }
}

/// True if frames of this EtherType carry a notification.
pub(crate) const fn is_carrier(ether_type: u16) -> bool {
    matches!(ether_type, IPV4_WITH_NOTICE | IPV6_WITH_NOTICE)
}

/// Place where the packet begins in a frame with a notification, and the EtherType that the frame would have without.
#[inline]
pub(crate) fn carrier(frame: &[u8]) -> Option<(usize, u16)> {
    // Nearly all frames are plain IP.
    if matches!(frame.get(12..14), Some([0x08, 0x00] | [0x86, 0xdd])) {
        return None;
    }
    let (at, kind) = ether_type(frame)?;
    match kind {
        IPV4_WITH_NOTICE => Some((at + 2, IPV4)),
        IPV6_WITH_NOTICE => Some((at + 2, IPV6)),
        _ => None,
    }
}

/// Appends a notification to a frame, without check sequence, that carries an IP packet.
///
/// # Errors
/// Where it carries no IP, or a notification already; the frame stays as it is.
pub fn attach(frame: &mut Vec<u8>, notice: &Notice) -> Result<(), BadNotice> {
    let (at, kind) = ether_type(frame).ok_or(BadNotice::Short)?;
    let new = match kind {
        IPV4 => IPV4_WITH_NOTICE,
        IPV6 => IPV6_WITH_NOTICE,
        IPV4_WITH_NOTICE | IPV6_WITH_NOTICE => return Err(BadNotice::Full),
        other => return Err(BadNotice::NotIp(other)),
    };
    frame[at..at + 2].copy_from_slice(&new.to_be_bytes());
    notice.write(frame);
    Ok(())
}

/// Takes the notification off a frame, without check sequence; none where it carries none. What is left is the frame as it was
/// before, or padding where there was nothing else in it.
///
/// # Errors
/// Where the EtherType says that there is one, and there is none that can be read; the frame stays as it is.
pub fn detach(frame: &mut Vec<u8>) -> Result<Option<Notice>, BadNotice> {
    let (at, kind) = ether_type(frame).ok_or(BadNotice::Short)?;
    let old = match kind {
        IPV4_WITH_NOTICE => IPV4,
        IPV6_WITH_NOTICE => IPV6,
        _ => return Ok(None),
    };
    let notice = Notice::at_the_end_of(&frame[at + 2..])?;
    frame[at..at + 2].copy_from_slice(&old.to_be_bytes());
    frame.truncate(frame.len() - notice.size());
    Ok(Some(notice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4() -> Notice {
        let addresses = Addresses::V4 { src: Ipv4Addr::new(10, 0, 0, 1), dst: Ipv4Addr::new(10, 0, 1, 2) };
        Notice { addresses, ports: (50_000, 80), seq: 0x0102_0304, length: 1_428, operation: 1 }
    }

    fn v6() -> Notice {
        let addresses = Addresses::V6 { src: "2001:db8::1".parse().unwrap(), dst: "2001:db8::2".parse().unwrap() };
        Notice { addresses, operation: 2, ..v4() }
    }

    /// Fig. 3: source and destination address, source and destination port, sequence number, length, type, operation.
    #[test]
    fn its_bytes_are_those_of_figure_3() {
        let mut bytes = Vec::new();
        v4().write(&mut bytes);
        let expected = [10, 0, 0, 1, 10, 0, 1, 2, 0xC3, 0x50, 0, 80, 1, 2, 3, 4, 0x05, 0x94, 1, 1];
        assert_eq!(bytes, expected);
        assert_eq!((bytes.len(), v4().size(), v6().size()), (20, 20, 44));
        let mut long = Vec::new();
        v6().write(&mut long);
        assert_eq!(long.len(), 44);
        assert_eq!(long[32..], [0xC3, 0x50, 0, 80, 1, 2, 3, 4, 0x05, 0x94, 2, 2]);
    }

    /// Fig. 4, with and without tags, and one family's notification behind the other's packet.
    #[test]
    fn it_goes_behind_a_frame_and_comes_off_again() {
        for (kind, with) in [(0x0800u16, 0xA800u16), (0x86DD, 0xA6DD)] {
            for tags in [&[][..], &[0x81, 0, 0, 5][..], &[0x88, 0xA8, 0, 1, 0x81, 0, 0, 5][..]] {
                for notice in [v4(), v6()] {
                    let mut frame: Vec<u8> = (0..12).collect();
                    frame.extend(tags);
                    frame.extend(kind.to_be_bytes());
                    frame.extend([7; 46]);
                    let before = frame.clone();
                    attach(&mut frame, &notice).unwrap();
                    assert_eq!(frame.len(), before.len() + notice.size());
                    assert_eq!(frame[12 + tags.len()..][..2], with.to_be_bytes());
                    assert_eq!(attach(&mut frame, &notice), Err(BadNotice::Full));
                    assert_eq!(detach(&mut frame), Ok(Some(notice)));
                    assert_eq!(frame, before);
                    assert_eq!(detach(&mut frame), Ok(None));
                }
            }
        }
    }

    #[test]
    fn an_empty_frame_is_as_short_as_a_frame_can_be() {
        for (notice, kind) in [(v4(), 0xA800u16), (v6(), 0xA6DD)] {
            let mut frame = notice.alone([1; 6], [2; 6]);
            assert_eq!(frame.len(), 60);
            assert_eq!(frame[12..14], kind.to_be_bytes());
            assert_eq!(detach(&mut frame), Ok(Some(notice)));
            assert!(frame[14..].iter().all(|b| *b == 0));
        }
    }

    #[test]
    fn what_is_no_notification_is_refused_and_left_alone() {
        let mut arp: Vec<u8> = vec![0; 12];
        arp.extend([0x08, 0x06]);
        assert_eq!(attach(&mut arp.clone(), &v4()), Err(BadNotice::NotIp(0x0806)));
        assert_eq!(detach(&mut arp), Ok(None));
        assert_eq!(attach(&mut vec![0; 13], &v4()), Err(BadNotice::Short));
        let mut frame: Vec<u8> = vec![0; 12];
        frame.extend([0xA8, 0x00]);
        frame.extend([9; 20]);
        let before = frame.clone();
        assert_eq!(detach(&mut frame), Err(BadNotice::Type(9)));
        // An IPv6 notification of which there are 20 bytes; an IPv4 one that would begin in the header.
        *frame.iter_mut().rev().nth(1).unwrap() = 2;
        assert_eq!(detach(&mut frame), Err(BadNotice::Short));
        *frame.iter_mut().rev().nth(1).unwrap() = 1;
        frame.truncate(14);
        frame.extend([1; 19]);
        assert_eq!(detach(&mut frame), Err(BadNotice::Short));
        assert_eq!(before.len(), 34);
        assert_eq!(BadNotice::Type(9).to_string(), "a drop notification of type 9, which is not defined");
    }

    proptest! {
        /// Hostile bytes never panic, and what is taken off goes back on.
        #[test]
        fn any_bytes_are_refused_or_read(head in prop::collection::vec(any::<u8>(), 0..16), ours in any::<bool>(), tail in prop::collection::vec(any::<u8>(), 0..60), kind in 0u8..4) {
            let mut frame = head;
            if ours {
                frame.resize(12, 0);
                frame.extend(if kind % 2 == 0 { [0xA8, 0x00] } else { [0xA6, 0xDD] });
            }
            frame.extend(&tail);
            if let (true, Some(byte)) = (ours && tail.len() > 1, frame.iter_mut().rev().nth(1)) {
                *byte = kind;
            }
            let before = frame.clone();
            match detach(&mut frame) {
                Ok(Some(notice)) => {
                    prop_assert_eq!(frame.len() + notice.size(), before.len());
                    attach(&mut frame, &notice).unwrap();
                    prop_assert_eq!(frame, before);
                }
                Ok(None) | Err(_) => prop_assert_eq!(frame, before),
            }
            let _ = Notice::at_the_end_of(&tail);
        }
    }
}
