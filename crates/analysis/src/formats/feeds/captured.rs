//! Captures of datagrams that carry telemetry: the frames of a pcap as they come.

use fanin_wire::{Headers, LinkType};

/// The header of a capture.
#[derive(Clone, Copy)]
pub struct Pcap {
    big_endian: bool,
    /// Picoseconds of the fraction's unit.
    unit: u128,
    pub link: LinkType,
}

/// A captured packet, and the length of its record.
pub struct Packet<'a> {
    pub time: u128,
    pub data: &'a [u8],
    pub length: usize,
}

impl Pcap {
    /// Reads the header at the start of a file.
    pub fn of(start: &[u8]) -> Option<Pcap> {
        let magic: [u8; 4] = *start.first_chunk()?;
        let (big_endian, unit) = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1_000_000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1_000),
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1_000_000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1_000),
            _ => return None,
        };
        let link = Self::word(big_endian, start.get(20..)?)?;
        Some(Pcap { big_endian, unit, link: LinkType::of(link & 0xffff) })
    }

    fn word(big_endian: bool, bytes: &[u8]) -> Option<u32> {
        let word = *bytes.first_chunk()?;
        Some(if big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }

    /// The record at the front of bytes, if it has come whole.
    pub fn packet<'a>(&self, bytes: &'a [u8]) -> Option<Packet<'a>> {
        let word = |at: usize| Self::word(self.big_endian, bytes.get(at..)?);
        let (seconds, fraction, length) = (word(0)?, word(4)?, word(8)? as usize);
        let data = bytes.get(16..16_usize.checked_add(length)?)?;
        let time = u128::from(seconds) * 1_000_000_000_000 + u128::from(fraction) * self.unit;
        Some(Packet { time, data, length: 16 + length })
    }
}

/// The first frame at the start of a file, as far as the start goes.
pub fn first_frame(start: &[u8]) -> Option<(LinkType, &[u8])> {
    let (pcap, record) = (Pcap::of(start)?, start.get(24..)?);
    let length = Pcap::word(pcap.big_endian, record.get(8..)?)? as usize;
    Some((pcap.link, record.get(16..)?.get(..length).unwrap_or(&record[16..])))
}

/// The UDP datagram in a frame.
pub fn datagram(link: LinkType, frame: &[u8]) -> Option<(Headers, &[u8])> {
    let headers = Headers::parse(link, frame)?;
    if headers.protocol != 17 || headers.fragment {
        return None;
    }
    let data = frame.get(headers.transport_at + 8..headers.end.min(frame.len()))?;
    Some((headers, data))
}
