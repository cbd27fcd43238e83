//! Headers that switches and hosts put before the EtherType of a frame, as bytes. Source: RIMM §III, PABO §III, Vertigo, HPCC §4.1;
//! the papers name no EtherTypes.
//!
//! A header is an EtherType of its own and a body, and the frame's EtherType follows, as behind a VLAN tag.

use crate::control::{ether_type, MACS};
use fanin_packet::RECORD_BYTES;

/// EtherTypes of headers, with the bytes that follow each of them before the frame's own: a depth; a depth and a number, on
/// the way out and back; a message, on the way out and back; how often a packet was bounced; by hosts, what its flow has left and
/// how often it was sent before. None is registered.
const BODIES: [(u16, usize); 7] = [(0xA8F0, 2), (0xA8F1, 6), (0xA8F2, 6), (0xA8F3, 10), (0xA8F4, 10), (0xA8F5, 2), (0xA8F8, 6)];
/// EtherTypes of telemetry, on its way and back: records in the first four bits, path in twelve, then the records.
const TELEMETRY: [u16; 2] = [0xA8F6, 0xA8F7];

/// Puts a header before the EtherType of a frame, behind any VLAN tags.
///
/// # Panics
/// When the frame is too short to have an EtherType, or the body has not the length that readers expect.
pub fn insert(frame: &mut Vec<u8>, kind: u16, body: &[u8]) {
    assert!(body_fits(kind, body), "{} B behind {kind:#06x}", body.len());
    let (at, _) = ether_type(frame).expect("a frame with an EtherType");
    frame.splice(at..at, kind.to_be_bytes().into_iter().chain(body.iter().copied()));
}

/// Bytes of the body behind the EtherType of a shim header, which begins with `bytes`; none where it is another's.
pub(crate) fn body(kind: u16, bytes: &[u8]) -> Option<usize> {
    if TELEMETRY.contains(&kind) {
        return bytes.first().map(|first| 2 + usize::from(first >> 4) * usize::from(RECORD_BYTES));
    }
    BODIES.iter().find(|(known, _)| *known == kind).map(|(_, body)| *body)
}

fn body_fits(kind: u16, bytes: &[u8]) -> bool {
    body(kind, bytes) == Some(bytes.len())
}

/// Place where the packet begins behind a shim header, and its EtherType. Tags before the header are passed over.
pub(crate) fn carrier(frame: &[u8]) -> Option<(usize, u16)> {
    let mut at = MACS;
    let (end, kind) = ether_type(frame)?;
    while at < end {
        let here = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
        if body(here, &frame[at + 2..]).is_some() {
            return Some((end + 2, kind));
        }
        at += 4;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_stands_before_the_ether_type_and_behind_tags() {
        let mut plain = [vec![1; 12], vec![0x08, 0x00, 0x45]].concat();
        insert(&mut plain, 0xA8F0, &[0, 7]);
        assert_eq!(plain[12..], [0xA8, 0xF0, 0, 7, 0x08, 0x00, 0x45]);
        let mut tagged = [vec![1; 12], vec![0x81, 0x00, 0, 5, 0x86, 0xDD]].concat();
        insert(&mut tagged, 0xA8F1, &[0, 7, 0, 0, 0, 9]);
        assert_eq!(tagged[12..], [0x81, 0x00, 0, 5, 0xA8, 0xF1, 0, 7, 0, 0, 0, 9, 0x86, 0xDD]);
        assert_eq!((carrier(&tagged), ether_type(&plain)), (Some((26, 0x86DD)), Some((16, 0x0800))));
        let mut longer = [vec![1; 12], vec![0x08, 0x00, 0x45]].concat();
        insert(&mut longer, 0xA8F6, &[[0x2A, 0xBC].as_slice(), &[8; 16]].concat());
        assert_eq!((carrier(&longer), ether_type(&longer), longer.len()), (Some((34, 0x0800)), Some((32, 0x0800)), 35));
        assert_eq!((carrier(&longer[..14]), carrier(&longer[..30])), (None, None));
        assert_eq!((carrier(&[1; 30]), carrier(&[0xA8; 13]), carrier(&plain[..15])), (None, None, None));
    }
}
