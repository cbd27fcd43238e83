//! Control messages at the end of frames that carry a packet.

use crate::shim;

/// Addresses before the EtherType. Source: IEEE 802.3 §3.2.
pub(crate) const MACS: usize = 12;
/// Tags of IEEE 802.1Q and 802.1ad, four bytes each, before the EtherType.
const TAGS: [u16; 2] = [0x8100, 0x88A8];

/// Place and value of a frame's EtherType, behind any tags and headers of switches.
pub(crate) fn ether_type(frame: &[u8]) -> Option<(usize, u16)> {
    let mut at = MACS;
    loop {
        let kind = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
        at = match shim::body(kind, &frame[at + 2..]) {
            Some(body) => at + 2 + body,
            None if TAGS.contains(&kind) => at + 4,
            None => return Some((at, kind)),
        };
    }
}

/// Puts a message at the end of a frame, whose EtherType becomes that of the message.
///
/// # Panics
/// When the frame is too short to have an EtherType.
pub fn attach(frame: &mut Vec<u8>, ether_type: u16, body: &[u8]) {
    let (at, _) = self::ether_type(frame).expect("a frame with an EtherType");
    frame[at..at + 2].copy_from_slice(&ether_type.to_be_bytes());
    frame.extend(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_at_the_end_names_itself_in_the_ether_type_behind_tags() {
        let mut plain = [vec![0; 12], vec![0x08, 0x00], vec![9; 46]].concat();
        attach(&mut plain, 0xA800, &[7; 20]);
        assert_eq!((plain.len(), &plain[12..14], &plain[60..]), (80, &[0xA8, 0x00][..], &[7; 20][..]));
        let mut tagged = [vec![0; 12], vec![0x81, 0x00, 0, 5, 0x08, 0x00], vec![9; 46]].concat();
        attach(&mut tagged, 0xA800, &[7]);
        assert_eq!((&tagged[12..14], &tagged[16..18]), (&[0x81, 0x00][..], &[0xA8, 0x00][..]));
    }
}
