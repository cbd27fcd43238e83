//! Writing captures: pcapng, block by block. Source: pcapng.
//!
//! Three kinds of blocks in one byte order are all there is to it; pcap-parser's serialiser would bring an asynchronous
//! runtime along and copy each packet twice.

use crate::address;
use crate::capture::Direction;
use fanin_packet::IpVersion;
use fanin_units::{BitRate, HostId, Time};
use std::net::IpAddr;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const ETHERNET: u16 = 1;
/// Ticks of 10^-9 s. Wireshark 4.0 reads 10^-12 wrongly: its arithmetic overflows 18 ms into each second.
const NANOSECONDS: u8 = 9;
/// Longest text of an option; a length has 16 bits, and padding must fit as well.
const TEXT: usize = 65_532;

/// Encodes blocks into a buffer.
pub struct Encoder<'a>(pub &'a mut Vec<u8>);

impl Encoder<'_> {
    /// Begins a block; gives the place of its length.
    fn begin(&mut self, kind: u32) -> usize {
        self.0.extend(kind.to_le_bytes());
        self.0.extend([0; 4]);
        self.0.len() - 4
    }

    fn end(&mut self, length_at: usize) {
        let length = (self.0.len() + 4 - (length_at - 4)) as u32;
        self.0[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
        self.0.extend(length.to_le_bytes());
    }

    fn pad(&mut self, bytes: usize) {
        self.0.extend(&[0; 3][..bytes.next_multiple_of(4) - bytes]);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.0.extend(code.to_le_bytes());
        self.0.extend((value.len() as u16).to_le_bytes());
        self.0.extend(value);
        self.pad(value.len());
    }

    fn text(&mut self, code: u16, text: &str) {
        let end = (0..=text.len().min(TEXT)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        self.option(code, &text.as_bytes()[..end]);
    }

    fn end_of_options(&mut self) {
        self.0.extend([0; 4]);
    }

    /// Writes the file's header: the application that wrote it, and a comment.
    pub fn section(&mut self, application: &str, comment: &str) {
        let at = self.begin(SECTION_HEADER);
        self.0.extend(BYTE_ORDER.to_le_bytes());
        self.0.extend(1_u16.to_le_bytes());
        self.0.extend(0_u16.to_le_bytes());
        self.0.extend(u64::MAX.to_le_bytes()); // the section's length: not given
        self.text(1, comment);
        self.text(4, application);
        self.end_of_options();
        self.end(at);
    }

    /// Describes a host's NIC with its address of `ip`. Interfaces are numbered in order, from 0. `snap`: bytes that are kept of
    /// each frame at most.
    pub fn interface(&mut self, (host, ip): (HostId, IpVersion), name: &str, rate: BitRate, snap: Option<u32>) {
        let at = self.begin(INTERFACE);
        self.0.extend(ETHERNET.to_le_bytes());
        self.0.extend([0; 2]);
        self.0.extend(snap.unwrap_or(0).to_le_bytes());
        self.text(2, name);
        self.text(3, &format!("simulated NIC of {name}, {rate}"));
        match address::ip(host, ip) {
            IpAddr::V4(address) => self.option(4, &[address.octets(), [255, 0, 0, 0]].concat()),
            IpAddr::V6(address) => self.option(5, &[&address.octets()[..], &[64]].concat()),
        }
        self.option(6, &address::mac(host));
        self.option(8, &rate.bps().to_le_bytes());
        self.option(9, &[NANOSECONDS]);
        self.option(13, &[0]); // bytes of frame check sequence
        self.end_of_options();
        self.end(at);
    }

    /// Describes a link, as a tap on it would capture it.
    pub fn link(&mut self, name: &str, rate: BitRate, snap: Option<u32>) {
        let at = self.begin(INTERFACE);
        self.0.extend(ETHERNET.to_le_bytes());
        self.0.extend([0; 2]);
        self.0.extend(snap.unwrap_or(0).to_le_bytes());
        self.text(2, name);
        self.text(3, &format!("simulated link {name}, {rate}"));
        self.option(8, &rate.bps().to_le_bytes());
        self.option(9, &[NANOSECONDS]);
        self.option(13, &[0]); // bytes of frame check sequence
        self.end_of_options();
        self.end(at);
    }

    /// Writes a frame at an interface: its first `snap` bytes, or all. Its time is rounded down to nanoseconds.
    pub fn packet(&mut self, interface: u32, time: Time, frame: &[u8], snap: Option<u32>, direction: Direction) {
        let kept = &frame[..frame.len().min(snap.map_or(usize::MAX, |snap| snap as usize))];
        let at = self.begin(ENHANCED_PACKET);
        let ns = time.ps() / 1000;
        for number in [interface, (ns >> 32) as u32, ns as u32, kept.len() as u32, frame.len() as u32] {
            self.0.extend(number.to_le_bytes());
        }
        self.0.extend(kept);
        self.pad(kept.len());
        let flags: u32 = match direction {
            Direction::In => 1,
            Direction::Out => 2,
        };
        self.option(2, &flags.to_le_bytes());
        self.end_of_options();
        self.end(at);
    }
}
