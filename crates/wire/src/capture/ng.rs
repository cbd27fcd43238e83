//! Reader of pcapng files. Source: pcapng.

use super::{Capture, CaptureError, Clock, Direction, Found, Interface, Trouble, LARGEST_BLOCK, MOST_INTERFACES, ZEROS};
use crate::headers::LinkType;
use pcap_parser::pcapng::{
    Block, InterfaceDescriptionBlock, PcapNGOption, EPB_MAGIC, IDB_MAGIC, ISB_MAGIC, SHB_MAGIC, SPB_MAGIC,
};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{parse_block_be, parse_block_le};
use std::io::Read;

/// Bytes of a block's type and length.
const BLOCK_HEADER: usize = 8;
/// Bytes of the smallest block: type and both lengths.
const SMALLEST_BLOCK: u64 = 12;
/// Type of packet blocks in files of old; pcap-parser does not know it.
const PB_MAGIC: u32 = 2;
/// Bytes of a packet block before the packet, and of an enhanced one, each with the block's header.
const PACKET_AT: usize = 28;
/// Characters of an interface's name that are kept.
const NAME: usize = 256;

/// Codes of options, for which `pcap-parser` has names by their meaning in one kind of block.
mod code {
    pub const END: u16 = 0;
    pub const IF_NAME: u16 = 2;
    pub const IF_SPEED: u16 = 8;
    pub const IF_TSRESOL: u16 = 9;
    pub const IF_FCSLEN: u16 = 13;
    pub const IF_TSOFFSET: u16 = 14;
    pub const EPB_FLAGS: u16 = 2;
    pub const EPB_DROPCOUNT: u16 = 4;
    pub const ISB_IFDROP: u16 = 5;
    pub const ISB_OSDROP: u16 = 7;
}

/// Meaning of a block.
enum Meaning {
    Packet(Found),
    Section,
    Nothing,
}

impl<R: Read> Capture<R> {
    /// The first section header, of which four bytes have been read.
    pub(super) fn first_section(&mut self) -> Result<(), CaptureError> {
        self.source.all(BLOCK_HEADER)?;
        self.block().map(|_| ())
    }

    /// Reads the next packet.
    pub(super) fn next_packet(&mut self) -> Result<Option<Found>, CaptureError> {
        loop {
            match self.source.begin(BLOCK_HEADER)? {
                0 => return Ok(None),
                BLOCK_HEADER => {}
                _ => return Err(self.source.truncated(BLOCK_HEADER as u64)),
            }
            match self.block()? {
                Meaning::Packet(found) => return Ok(Some(found)),
                Meaning::Section => {}
                Meaning::Nothing => self.skipped.blocks += 1,
            }
        }
    }

    fn malformed<T>(&self, what: impl Into<String>) -> Result<T, CaptureError> {
        Err(self.source.error(Trouble::Malformed, what))
    }

    fn u32_at(&self, at: usize) -> u32 {
        let bytes = self.source.data().get(at..).and_then(|rest| rest.first_chunk().copied()).unwrap_or_default();
        if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    /// Reads a block whose type and length have been read.
    fn block(&mut self) -> Result<Meaning, CaptureError> {
        let mut kind = self.u32_at(0);
        if kind == SHB_MAGIC {
            // The same in either order; the next field shows which.
            self.source.all(12)?;
            self.big_endian = match self.source.data()[8..12] {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => return self.malformed("a section header without a byte-order magic"),
            };
            kind = SHB_MAGIC;
        }
        let length = u64::from(self.u32_at(4));
        if kind == 0 && length == 0 {
            return Err(self.source.error(Trouble::Truncated, ZEROS));
        }
        if length < SMALLEST_BLOCK || length % 4 != 0 {
            return self
                .malformed(format!("a block of type {kind:#x} with a length of {length} B; at least 12 B, a multiple of 4"));
        }
        if !matches!(kind, SHB_MAGIC | IDB_MAGIC | EPB_MAGIC | SPB_MAGIC | ISB_MAGIC | PB_MAGIC) {
            self.source.skip(length)?;
            return Ok(Meaning::Nothing);
        }
        if length > LARGEST_BLOCK {
            return self.malformed(format!("{} of {length} B; at most {LARGEST_BLOCK} B are read", name(kind)));
        }
        self.source.all(length as usize)?;
        let again = u64::from(self.u32_at(length as usize - 4));
        if again != length {
            return self.malformed(format!("{} of {length} B whose end says {again} B", name(kind)));
        }
        if kind == PB_MAGIC {
            return self.old_packet(length as usize);
        }
        let parse = if self.big_endian { parse_block_be } else { parse_block_le };
        let big_endian = self.big_endian;
        let meaning = match parse(self.source.data()) {
            Ok((_, Block::SectionHeader(section))) => {
                if section.major_version != 1 {
                    let what = format!("pcapng of version {}.{}; 1 is read", section.major_version, section.minor_version);
                    return Err(self.source.error(Trouble::Unsupported, what));
                }
                self.section = self.interfaces.len();
                return Ok(Meaning::Section);
            }
            Ok((_, Block::InterfaceDescription(block))) => interface(&block, big_endian).map(Parsed::Interface),
            Ok((_, Block::InterfaceStatistics(block))) => {
                let options = Options { list: &block.options, big_endian };
                let lost =
                    [code::ISB_IFDROP, code::ISB_OSDROP].iter().filter_map(|c| options.u64(*c)).fold(0, u64::saturating_add);
                Ok(Parsed::Lost { interface: block.if_id, lost })
            }
            Ok((_, Block::EnhancedPacket(block))) => {
                let options = Options { list: &block.options, big_endian };
                let flags = options.u32(code::EPB_FLAGS).unwrap_or(0);
                Ok(Parsed::Packet {
                    interface: block.if_id,
                    ticks: u64::from(block.ts_high) << 32 | u64::from(block.ts_low),
                    length: block.origlen.max(block.caplen),
                    kept: block.packet_data().len(),
                    fcs: Some((flags >> 5 & 0xf) as u8).filter(|bytes| *bytes > 0),
                    direction: match flags & 3 {
                        1 => Some(Direction::In),
                        2 => Some(Direction::Out),
                        _ => None,
                    },
                    lost: options.u64(code::EPB_DROPCOUNT).unwrap_or(0),
                })
            }
            Ok((_, Block::SimplePacket(_))) => Ok(Parsed::Untimed),
            _ => Err("cannot be decoded: its fields do not fit its length".to_string()),
        };
        match meaning {
            Ok(parsed) => self.carry_out(parsed),
            Err(what) => self.malformed(format!("{} {what}", name(kind))),
        }
    }

    /// An interface of the present section, by its number there.
    fn interface(&self, number: u32) -> Result<usize, CaptureError> {
        let there = self.interfaces.len() - self.section;
        if number as usize >= there {
            return self.malformed(format!("interface {number} of a section that has described {there}"));
        }
        Ok(self.section + number as usize)
    }

    fn carry_out(&mut self, parsed: Parsed) -> Result<Meaning, CaptureError> {
        match parsed {
            Parsed::Interface(_) if self.interfaces.len() >= MOST_INTERFACES => {
                self.malformed(format!("more than {MOST_INTERFACES} interfaces"))
            }
            Parsed::Interface(interface) => {
                self.interfaces.push(interface);
                Ok(Meaning::Section)
            }
            Parsed::Lost { interface, lost } => {
                let interface = self.interface(interface)?;
                // A running total.
                let known = &mut self.interfaces[interface].lost;
                *known = lost.max(*known);
                Ok(Meaning::Section)
            }
            Parsed::Untimed => {
                self.skipped.untimed += 1;
                Ok(Meaning::Section)
            }
            Parsed::Packet { interface, ticks, length, kept, fcs, direction, lost } => {
                let interface = self.interface(interface)?;
                let there = &mut self.interfaces[interface];
                there.lost = there.lost.saturating_add(lost);
                let time_ps = there.clock.ps(ticks);
                Ok(Meaning::Packet(Found { interface, time_ps, length, data: PACKET_AT..PACKET_AT + kept, fcs, direction }))
            }
        }
    }

    /// A packet block: interface u16, drops u16, time, captured length, length, packet. Options are passed over.
    fn old_packet(&mut self, length: usize) -> Result<Meaning, CaptureError> {
        if length < PACKET_AT + 4 {
            return self.malformed(format!("a packet block of {length} B; at least {} B", PACKET_AT + 4));
        }
        let kept = self.u32_at(20) as usize;
        if kept > length - PACKET_AT - 4 {
            return self.malformed(format!("a packet block of {length} B with {kept} captured bytes"));
        }
        let both: [u8; 4] = self.source.data()[8..12].first_chunk().copied().unwrap_or_default();
        let (number, drops) = ([both[0], both[1]], [both[2], both[3]]);
        let short = |b: [u8; 2]| if self.big_endian { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) };
        self.carry_out(Parsed::Packet {
            interface: u32::from(short(number)),
            ticks: u64::from(self.u32_at(12)) << 32 | u64::from(self.u32_at(16)),
            length: self.u32_at(24).max(kept as u32),
            kept,
            fcs: None,
            direction: None,
            lost: u64::from(Some(short(drops)).filter(|n| *n != u16::MAX).unwrap_or(0)),
        })
    }
}

/// A block that pcap-parser has decoded, without its borrows.
enum Parsed {
    Interface(Interface),
    Lost { interface: u32, lost: u64 },
    Untimed,
    Packet { interface: u32, ticks: u64, length: u32, kept: usize, fcs: Option<u8>, direction: Option<Direction>, lost: u64 },
}

fn name(kind: u32) -> &'static str {
    match kind {
        SHB_MAGIC => "a section header",
        IDB_MAGIC => "an interface description",
        EPB_MAGIC => "an enhanced packet block",
        SPB_MAGIC => "a simple packet block",
        ISB_MAGIC => "an interface statistics block",
        _ => "a packet block",
    }
}

fn interface(block: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Result<Interface, String> {
    let options = Options { list: &block.options, big_endian };
    // A time resolution that is lost in damage would make all times wrong by a factor.
    let taken: usize = options.list.iter().map(|option| 4 + option.value.len()).sum();
    if taken + 20 != block.block_len1 as usize && !options.list.iter().any(|option| option.code.0 == code::END) {
        return Err("has options that do not fit".to_string());
    }
    let resolution = options.bytes::<1>(code::IF_TSRESOL).map(|[b]| b);
    let offset = options.u64(code::IF_TSOFFSET).unwrap_or(0) as i64;
    Ok(Interface {
        link: LinkType::of(block.linktype.0 as u32),
        name: options.text(code::IF_NAME),
        speed: options.u64(code::IF_SPEED),
        fcs: options.bytes::<1>(code::IF_FCSLEN).map(|[b]| b),
        snap: Some(block.snaplen).filter(|bytes| *bytes > 0),
        lost: 0,
        clock: Clock { resolution: resolution.unwrap_or(Clock::MICROSECONDS.resolution), offset },
    })
}

/// Options of a block up to the one that ends them.
struct Options<'a> {
    list: &'a [PcapNGOption<'a>],
    big_endian: bool,
}

impl Options<'_> {
    fn find(&self, code: u16) -> Option<&[u8]> {
        let mut valid = self.list.iter().take_while(|option| option.code.0 != code::END);
        valid.find(|option| option.code.0 == code)?.as_bytes().ok()
    }

    fn bytes<const N: usize>(&self, code: u16) -> Option<[u8; N]> {
        self.find(code)?.try_into().ok()
    }

    fn u32(&self, code: u16) -> Option<u32> {
        let bytes = self.bytes(code)?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn u64(&self, code: u16) -> Option<u64> {
        let bytes = self.bytes(code)?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    fn text(&self, code: u16) -> String {
        String::from_utf8_lossy(self.find(code).unwrap_or_default()).trim_end_matches('\0').chars().take(NAME).collect()
    }
}
