//! Reading captures: pcap and pcapng as a stream of frames, from files that need not be well-formed.

mod legacy;
mod ng;
mod source;

use crate::cooked::Cooked;
use crate::headers::{Headers, LinkType};
use crate::notification::{self, BadNotice, Notice};
use crate::trailer;
use fanin_telemetry::Stamp;
use source::Source;
use std::io::Read;

/// Size of the largest block or packet of a file; more is damage, or a format that is not read here.
pub const LARGEST_BLOCK: u64 = 16 << 20;

/// Interfaces of all sections of a file together.
pub const MOST_INTERFACES: usize = 1 << 16;

/// Text about a file that ends in zeros, as one does whose end was not on the disk when the power failed.
pub const ZEROS: &str = "zeros in the place of the next packet";

/// Format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Pcap,
    PcapNg,
}

/// Reason that a capture cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The file ends within a block, as that of a killed capture does, or goes on in zeros; all before it has been read.
    Truncated,
    /// The content of a block contradicts the format.
    Malformed,
    /// No capture, or one of a kind that is not read here.
    Unsupported,
    /// The file could not be read.
    Io,
}

/// An error, and its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureError {
    pub trouble: Trouble,
    /// Byte offset of the block (pcapng), record (pcap) or header at fault.
    pub offset: u64,
    /// Number of the block, from 1: the file's header is the first.
    pub block: u64,
    pub what: String,
}

impl std::fmt::Display for CaptureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "block {} at byte {}: {}", self.block, self.offset, self.what)
    }
}

impl std::error::Error for CaptureError {}

/// Direction of a frame, seen from the place of capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
}

/// Interface at which frames were captured.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    pub link: LinkType,
    /// Empty where the file gives none.
    pub name: String,
    /// Speed of the interface [bit/s].
    pub speed: Option<u64>,
    /// Bytes of frame check sequence at the end of each frame, where the file says.
    pub fcs: Option<u8>,
    /// Bytes that are kept of each frame at most, where the file says.
    pub snap: Option<u32>,
    /// Frames that the capturing side reports as lost.
    pub lost: u64,
    clock: Clock,
}

/// Conversion of an interface's ticks to time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Clock {
    /// `if_tsresol`: a power of ten, or of two with the highest bit set; negative.
    resolution: u8,
    /// Seconds to add to the interface's times.
    offset: i64,
}

impl Clock {
    const MICROSECONDS: Clock = Clock { resolution: 6, offset: 0 };
    const NANOSECONDS: Clock = Clock { resolution: 9, offset: 0 };

    /// Picoseconds since the epoch, rounded down.
    fn ps(self, ticks: u64) -> i128 {
        const SECOND: u128 = 1_000_000_000_000;
        let exponent = u32::from(self.resolution & 0x7f);
        let ticks = u128::from(ticks);
        let ps = if self.resolution & 0x80 != 0 {
            (ticks * SECOND) >> exponent // below 2^104
        } else if exponent <= 12 {
            ticks * 10_u128.pow(12 - exponent)
        } else {
            10_u128.checked_pow(exponent - 12).map_or(0, |divisor| ticks / divisor)
        };
        ps as i128 + i128::from(self.offset) * SECOND as i128
    }
}

/// Blocks that were passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Skipped {
    /// Blocks that hold no packets, known or not.
    pub blocks: u64,
    /// Packets without a time (simple packet blocks).
    pub untimed: u64,
}

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Byte offset of the frame's block or record in the file.
    pub offset: u64,
    /// Index of the interface in [`Capture::interfaces`].
    pub interface: usize,
    pub link: LinkType,
    /// Picoseconds since the epoch: 1970-01-01 00:00 UTC, or the start of a simulation.
    pub time_ps: i128,
    /// Bytes that the frame had on the wire, as far as the capturing side saw them.
    pub length: u32,
    /// Bytes of the frame that were kept.
    pub data: &'a [u8],
    /// Bytes of frame check sequence in the frame, where the file says.
    pub fcs: Option<u8>,
    pub direction: Option<Direction>,
}

impl Frame<'_> {
    /// True if not all bytes of the frame were kept.
    pub fn is_cut(&self) -> bool {
        self.data.len() < self.length as usize
    }

    /// Headers of the frame's innermost packet, as far as they were kept; none where it carries no IP.
    pub fn headers(&self) -> Option<Headers> {
        Headers::parse_cut(self.link, self.data, self.length as usize)
    }

    /// Outermost headers of IP: those of a tunnel where the packet is in one.
    pub fn outer_headers(&self) -> Option<Headers> {
        Headers::outermost(self.link, self.data, self.length as usize)
    }

    /// The number of the interface on the capturing host, where one capture is of several (`tcpdump -i any`).
    pub fn interface_number(&self) -> Option<u32> {
        Cooked::of(self.link, self.data)?.interface
    }

    /// Bytes of frame check sequence at the frame's end: as the file says, or where it does not, 4 if they are the right ones.
    pub fn check_sequence(&self) -> u8 {
        self.fcs.unwrap_or_else(|| {
            let whole = self.link == LinkType::Ethernet && !self.is_cut();
            let found = whole && !trailer::ends_with_datagram(self.data) && trailer::has_check_sequence(self.data);
            if found {
                4
            } else {
                0
            }
        })
    }

    /// Stamp at the frame's end, if there is one: after the datagram that `headers` describe, before the frame check sequence
    /// where that was captured. A frame that was cut has none.
    pub fn stamp(&self, headers: &Headers) -> Option<Stamp> {
        if self.link != LinkType::Ethernet || self.is_cut() {
            return None;
        }
        let end = if self.is_trimmed(headers) { headers.payload_at } else { headers.end };
        let end = headers.wrap.map_or(end, |wrap| end.max(wrap.outer_end as usize));
        if end + Stamp::BYTES > self.data.len() {
            return None;
        }
        match self.notice() {
            Some(notice) => trailer::stamp(&self.data[..self.end_of_data() - notice.size()], end, 0),
            None => trailer::stamp(self.data, end, self.check_sequence()),
        }
    }

    /// True if a switch has cut the payload off: `headers`, which are TCP's, speak of more than the frame had on the wire.
    /// Source: NDP §3.1.
    pub fn is_trimmed(&self, headers: &Headers) -> bool {
        let whole = self.link == LinkType::Ethernet && headers.wrap.is_none() && !self.is_cut();
        whole && headers.tcp.is_some() && headers.end > self.end_of_data()
    }

    /// Drop notification at the frame's end, if there is one that can be read; a frame that was cut has none. Source: PDN §IV.
    pub fn notice(&self) -> Option<Notice> {
        self.notification()?.ok()
    }

    /// Drop notification of the frame, where its EtherType promises one, or the reason for which that cannot be read.
    pub fn notification(&self) -> Option<Result<Notice, BadNotice>> {
        let start = self.carrier()?;
        Some(if self.is_cut() {
            Err(BadNotice::Cut)
        } else {
            Notice::at_the_end_of(self.data.get(start..self.end_of_data()).unwrap_or_default())
        })
    }

    /// True if the frame carries no packet: padding and a drop notification, or the notification alone.
    pub fn is_notice_only(&self) -> bool {
        let Some(start) = self.carrier() else { return false };
        // An IP packet begins with its version.
        let padding = self.data.get(start) == Some(&0);
        padding || self.notice().is_some_and(|notice| start + notice.size() == self.end_of_data())
    }

    /// Place where the packet begins in a frame with a drop notification.
    #[inline]
    fn carrier(&self) -> Option<usize> {
        let start = (self.link == LinkType::Ethernet).then(|| notification::carrier(self.data))??.0;
        (start <= self.end_of_data()).then_some(start)
    }

    /// Place where the frame check sequence begins, or would.
    fn end_of_data(&self) -> usize {
        self.data.len().saturating_sub(usize::from(self.check_sequence()))
    }

    /// Bytes that the frame takes in a queue: on Ethernet with frame check sequence and padding, which most captures lack, and
    /// without a drop notification, which is attached when the frame has left its queue. Of a cooked frame from an Ethernet, the
    /// same.
    pub fn frame_bytes(&self) -> u32 {
        match self.link {
            LinkType::Ethernet => {
                let notice = self.notice().map_or(0, |notice| notice.size() as u32);
                self.length.saturating_sub(notice).saturating_add(4 - u32::from(self.check_sequence().min(4))).max(64)
            }
            _ => match Cooked::of(self.link, self.data) {
                Some(cooked) if cooked.ethernet => (self.length - cooked.size as u32).saturating_add(18).max(64),
                _ => self.length,
            },
        }
    }
}

/// Place of a frame in the source's buffer.
struct Found {
    interface: usize,
    time_ps: i128,
    length: u32,
    data: std::ops::Range<usize>,
    fcs: Option<u8>,
    direction: Option<Direction>,
}

/// A capture that is being read, block by block: it holds one block at a time.
///
/// ```
/// # fn main() -> Result<(), fanin_wire::CaptureError> {
/// # let file: &[u8] = &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
/// let mut capture = fanin_wire::Capture::new(file)?;
/// while let Some(frame) = capture.next_frame()? {
///     if let Some(headers) = frame.headers() {
///         println!("{} ps: {} to {}, {:?}", frame.time_ps, headers.src, headers.dst, frame.stamp(&headers));
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Capture<R> {
    source: Source<R>,
    format: Format,
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// The first interface of the present section.
    section: usize,
    skipped: Skipped,
    ended: bool,
}

impl<R: Read> Capture<R> {
    /// Reads the file's header. There is no need to buffer `reader`.
    ///
    /// # Errors
    /// When it is not the header of a capture.
    pub fn new(reader: R) -> Result<Self, CaptureError> {
        let mut capture = Capture {
            source: Source::new(reader),
            format: Format::Pcap,
            big_endian: false,
            interfaces: Vec::new(),
            section: 0,
            skipped: Skipped::default(),
            ended: false,
        };
        let magic = capture.source.begin(4)?;
        if magic == 0 {
            return Err(capture.source.error(Trouble::Unsupported, "the file is empty"));
        }
        let magic: [u8; 4] = match capture.source.data().first_chunk() {
            Some(magic) => *magic,
            None => return Err(capture.source.truncated(4)),
        };
        match magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                capture.format = Format::PcapNg;
                capture.first_section()?;
            }
            _ => capture.legacy_header(magic)?,
        }
        Ok(capture)
    }

    /// The next frame in the file; none at its end. Nothing is read after an error.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        if self.ended {
            return Ok(None);
        }
        let found = match self.format {
            Format::Pcap => self.legacy_record(),
            Format::PcapNg => self.next_packet(),
        };
        let found = match found {
            Ok(Some(found)) => found,
            other => {
                self.ended = true;
                return other.map(|_| None);
            }
        };
        let link = self.interfaces[found.interface].link;
        let data = &self.source.data()[found.data];
        Ok(Some(Frame {
            offset: self.source.offset(),
            interface: found.interface,
            link,
            time_ps: found.time_ps,
            length: found.length,
            data,
            fcs: found.fcs.or(self.interfaces[found.interface].fcs),
            direction: found.direction.or_else(|| Cooked::of(link, data)?.direction),
        }))
    }

    /// Format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Interfaces found so far, those of all sections one after another.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Blocks that were passed over so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }
}
