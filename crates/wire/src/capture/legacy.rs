//! Reader of pcap files. Source: pcap.

use super::{Capture, CaptureError, Clock, Found, Interface, Trouble, LARGEST_BLOCK, ZEROS};
use crate::headers::LinkType;
use pcap_parser::parse_pcap_header;
use std::io::Read;

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// First numbers of files: stamps in microseconds, and in nanoseconds.
const MAGIC: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];

/// Files that are often given instead of a capture, by their first bytes.
const STRANGERS: [(&[u8], &str); 8] = [
    (&[0x1f, 0x8b], "it is compressed with gzip: unpack it first"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "it is compressed with zstd: unpack it first"),
    (&[0xfd, 0x37, 0x7a, 0x58], "it is compressed with xz: unpack it first"),
    (&[0x04, 0x22, 0x4d, 0x18], "it is compressed with lz4: unpack it first"),
    (b"PAR1", "it is a Parquet file"),
    (b"snoo", "it is a snoop capture: convert it to pcapng, for example with editcap"),
    (&[0x34, 0xcd, 0xb2, 0xa1], "it is a pcap file of the modified format: convert it to pcapng, for example with editcap"),
    (&[0xa1, 0xb2, 0xcd, 0x34], "it is a pcap file of the modified format: convert it to pcapng, for example with editcap"),
];

/// True if a pcap file begins with these bytes, in either order.
fn begins(bytes: [u8; 4]) -> bool {
    MAGIC.iter().any(|magic| bytes == magic.to_le_bytes() || bytes == magic.to_be_bytes())
}

impl<R: Read> Capture<R> {
    /// The file's header, of which the first four bytes have been read.
    pub(super) fn legacy_header(&mut self, magic: [u8; 4]) -> Result<(), CaptureError> {
        if let Some((_, what)) = STRANGERS.iter().find(|(first, _)| magic.starts_with(first)) {
            return Err(self.source.error(Trouble::Unsupported, *what));
        }
        if !begins(magic) {
            let [a, b, c, d] = magic;
            let what = format!("neither pcap nor pcapng: the file begins with {a:02x} {b:02x} {c:02x} {d:02x}");
            return Err(self.source.error(Trouble::Unsupported, what));
        }
        self.source.all(FILE_HEADER)?;
        let Ok((_, header)) = parse_pcap_header(self.source.data()) else {
            return Err(self.source.error(Trouble::Malformed, "the header of a pcap file cannot be decoded"));
        };
        if header.version_major != 2 {
            let what = format!("pcap of version {}.{}; 2 is read", header.version_major, header.version_minor);
            return Err(self.source.error(Trouble::Unsupported, what));
        }
        self.big_endian = header.is_bigendian();
        // The upper four bits: length of the FCS in units of two bytes, if the next bit but one says so.
        let network = header.network.0 as u32;
        self.interfaces.push(Interface {
            link: LinkType::of(network & 0xffff),
            name: String::new(),
            speed: None,
            fcs: (network & 0x0400_0000 != 0).then_some((network >> 28) as u8 * 2),
            snap: Some(header.snaplen).filter(|bytes| *bytes > 0),
            lost: 0,
            clock: if header.is_nanosecond_precision() { Clock::NANOSECONDS } else { Clock::MICROSECONDS },
        });
        Ok(())
    }

    /// Reads the next record.
    pub(super) fn legacy_record(&mut self) -> Result<Option<Found>, CaptureError> {
        match self.source.begin(RECORD_HEADER)? {
            0 => return Ok(None),
            RECORD_HEADER => {}
            _ => return Err(self.source.truncated(RECORD_HEADER as u64)),
        }
        let header: [u8; RECORD_HEADER] = self.source.data().first_chunk().copied().unwrap_or_default();
        let field = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            if self.big_endian {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }
        };
        let (seconds, fraction, kept, length) = (field(0), field(4), field(8), field(12));
        // An empty frame at time zero looks the same, and more follows it.
        if header == [0; RECORD_HEADER] && self.source.ends_in_zeros()? {
            return Err(self.source.error(Trouble::Truncated, ZEROS));
        }
        // The version, the zone and the accuracy of stamps are where a packet's time and lengths would be.
        if [kept, length] == [0, 0] && begins([header[0], header[1], header[2], header[3]]) {
            let what =
                "another capture begins here, as where files were put together with cat: give the files one by one, or join \
                        them with mergecap";
            return Err(self.source.error(Trouble::Malformed, what));
        }
        if u64::from(kept) > LARGEST_BLOCK {
            let what = format!("a packet of {kept} captured bytes; at most {LARGEST_BLOCK} are read");
            return Err(self.source.error(Trouble::Malformed, what));
        }
        let end = RECORD_HEADER + kept as usize;
        self.source.all(end)?;
        let unit = if self.interfaces[0].clock == Clock::NANOSECONDS { 1_000 } else { 1_000_000 };
        Ok(Some(Found {
            interface: 0,
            time_ps: i128::from(seconds) * 1_000_000_000_000 + i128::from(u64::from(fraction) * unit),
            length: length.max(kept),
            data: RECORD_HEADER..end,
            fcs: None,
            direction: None,
        }))
    }
}
