//! The stamp at the end of a frame.

use fanin_telemetry::Stamp;

/// Bytes of an Ethernet frame check sequence.
const FCS: usize = 4;

/// Stamp in a whole Ethernet frame whose datagram ends at `end` and whose last `fcs` bytes are its check sequence.
pub(crate) fn stamp(frame: &[u8], end: usize, fcs: u8) -> Option<Stamp> {
    let stop = frame.len().checked_sub(usize::from(fcs))?;
    let start = stop.checked_sub(Stamp::BYTES).filter(|start| *start >= end)?;
    Stamp::from_bytes(frame[start..stop].first_chunk()?)
}

/// True if an Ethernet frame ends where its IP datagram does, so that there is no room for a check sequence. False where that takes
/// more than a look.
pub(crate) fn ends_with_datagram(frame: &[u8]) -> bool {
    let Some(header) = frame.first_chunk::<20>() else { return false };
    let end = match header[12..15] {
        [0x08, 0x00, 0x40..=0x4f] => 14 + usize::from(u16::from_be_bytes([header[16], header[17]])),
        [0x86, 0xdd, 0x60..=0x6f] => 54 + usize::from(u16::from_be_bytes([header[18], header[19]])),
        _ => return false,
    };
    end == frame.len()
}

/// True if the last four bytes are the frame's check sequence. Source: IEEE 802.3 §3.2.9.
pub(crate) fn has_check_sequence(frame: &[u8]) -> bool {
    frame.split_last_chunk::<FCS>().is_some_and(|(rest, fcs)| crc32fast::hash(rest).to_le_bytes() == *fcs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { port: 3, length: 700, time: 0xfa00_0001 };

    fn frame(fcs: bool) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..54).collect();
        frame.extend(STAMP.to_bytes());
        if fcs {
            frame.extend(crc32fast::hash(&frame).to_le_bytes());
        }
        frame
    }

    #[test]
    fn it_lies_between_datagram_and_check_sequence() {
        assert_eq!(stamp(&frame(false), 54, 0), Some(STAMP));
        assert_eq!(stamp(&frame(true), 54, 4), Some(STAMP));
        // Four bytes on, the first byte of its time is the magic number too.
        assert_ne!(stamp(&frame(true), 54, 0), Some(STAMP));
        assert_eq!(stamp(&frame(false), 55, 0), None);
        assert_eq!(stamp(&frame(true), 55, 4), None);
        assert_eq!(stamp(&[0xfa; 7], 0, 0), None);
        assert_eq!(stamp(&[0xfa; 3], 0, 15), None);
    }

    #[test]
    fn the_check_sequence_is_that_of_ethernet() {
        // Judged by the check value of CRC-32/ISO-HDLC: "123456789" gives 0xcbf43926, sent from its lowest byte on.
        let mut frame = b"123456789".to_vec();
        frame.extend([0x26, 0x39, 0xf4, 0xcb]);
        assert!(has_check_sequence(&frame));
        frame[3] ^= 1;
        assert!(!has_check_sequence(&frame));
        assert!(!has_check_sequence(&frame[..3]));
    }
}
