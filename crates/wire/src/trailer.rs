//! The stamp at the end of a frame.

use fanin_telemetry::Stamp;

/// Bytes of an Ethernet frame check sequence.
const FCS: usize = 4;

/// The stamp of a whole Ethernet frame whose datagram ends at `end`. `fcs`: the check sequence's bytes, where they are known;
/// where not, a stamp before four bytes that are the right CRC is one.
pub(crate) fn stamp(frame: &[u8], end: usize, fcs: Option<u8>) -> Option<Stamp> {
    let before = |tail: usize| {
        let stop = frame.len().checked_sub(tail)?;
        let start = stop.checked_sub(Stamp::BYTES).filter(|start| *start >= end)?;
        Stamp::from_bytes(frame[start..stop].first_chunk()?)
    };
    match fcs {
        Some(bytes) => before(usize::from(bytes)),
        None => before(FCS).filter(|_| has_check_sequence(frame)).or_else(|| before(0)),
    }
}

/// Whether the last four bytes are the frame's check sequence. Source: IEEE 802.3 §3.2.9.
fn has_check_sequence(frame: &[u8]) -> bool {
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
    fn it_is_found_with_and_without_a_check_sequence() {
        // The first byte of its time is the magic number too.
        assert_eq!(stamp(&frame(false), 54, None), Some(STAMP));
        assert_eq!(stamp(&frame(true), 54, None), Some(STAMP));
        assert_eq!(stamp(&frame(true), 54, Some(4)), Some(STAMP));
        assert_eq!(stamp(&frame(false), 54, Some(0)), Some(STAMP));
    }

    #[test]
    fn a_datagram_is_no_stamp() {
        assert_eq!(stamp(&frame(false), 55, None), None);
        assert_eq!(stamp(&frame(true), 55, Some(4)), None);
        assert_eq!(stamp(&[0xfa; 7], 0, None), None);
        assert_eq!(stamp(&[0xfa; 3], 0, Some(15)), None);
    }

    #[test]
    fn four_bytes_that_are_no_check_sequence_are_not_taken_for_one() {
        let mut wrong = frame(true);
        wrong[66 - 1] ^= 1;
        assert_ne!(stamp(&wrong, 54, None), Some(STAMP));
    }

    #[test]
    fn the_check_sequence_is_that_of_ethernet() {
        // Judged by the check value of CRC-32/ISO-HDLC: "123456789" gives 0xcbf43926, sent from its lowest byte on.
        let mut frame = b"123456789".to_vec();
        frame.extend([0x26, 0x39, 0xf4, 0xcb]);
        assert!(has_check_sequence(&frame));
    }
}
