//! TCP header of a packet. Source: RFC 9293 §3.1, RFC 7323 §3.2, RFC 2018 §3.

use crate::{Envelope, Kind, Part, Reference};

const TIMESTAMPS: u8 = 0x08;
const SACK_COUNT: u8 = 0x07;
const NACK: u8 = 0x20;
/// Index of the NACK option in `options`: with it there is room for one SACK block less, beside timestamps for two less.
const NACK_AT: usize = 6;

/// TCP flag bits. Source: RFC 9293 §3.1, RFC 3168 §6.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    pub const NONE: TcpFlags = TcpFlags(0);
    pub const FIN: TcpFlags = TcpFlags(0x01);
    pub const SYN: TcpFlags = TcpFlags(0x02);
    pub const RST: TcpFlags = TcpFlags(0x04);
    pub const PSH: TcpFlags = TcpFlags(0x08);
    pub const ACK: TcpFlags = TcpFlags(0x10);
    pub const ECE: TcpFlags = TcpFlags(0x40);
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// True if every flag of `other` is set.
    #[inline(always)]
    pub const fn has(self, other: TcpFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Union of the two sets of flags.
    #[inline(always)]
    pub const fn with(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

/// A block of received data, `start` inclusive to `end` exclusive. Source: RFC 2018 §3.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    pub start: u32,
    pub end: u32,
}

/// The timestamps option. Source: RFC 7323 §3.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: clock of the segment's sender.
    pub value: u32,
    /// TSecr: the latest TSval received from the peer.
    pub echo: u32,
}

/// The NACK option: reports a packet that arrived without its payload, which a switch had trimmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nack {
    /// Sequence number of the trimmed payload.
    pub seq: u32,
    /// Length of the trimmed payload \[bytes\].
    pub length: u16,
}

/// Length of the NACK option with its padding \[bytes\]. Source: RFC 6994 §3 (kind, length, two bytes of experiment), and a
/// sequence number and a length.
pub const NACK_OPTION_BYTES: u16 = 12;

/// Options that only a SYN carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SynOptions {
    /// Maximum segment size (RFC 9293 §3.7.1).
    pub mss: u16,
    /// Window scale shift (RFC 7323 §2); `None` if not offered.
    pub window_scale: Option<u8>,
    /// SACK-permitted option present (RFC 2018 §2).
    pub sack_permitted: bool,
}

/// The TCP header of a packet; two are equal if they have equal fields and options.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpHeader {
    /// Sequence number of the first payload byte.
    pub seq: u32,
    /// Acknowledgment number: next sequence number expected.
    pub ack: u32,
    /// Receive window as on the wire (scaled).
    pub window: u16,
    pub flags: TcpFlags,
    /// Bits that tell which options are present, see [`TcpHeader::timestamps`], [`TcpHeader::sack`], [`TcpHeader::nack`].
    shape: u8,
    /// Options that take space: timestamps first, then SACK blocks or the SYN's options; a NACK last.
    options: [u32; 8],
}

impl PartialEq for TcpHeader {
    fn eq(&self, other: &TcpHeader) -> bool {
        (self.seq, self.ack, self.window, self.flags) == (other.seq, other.ack, other.window, other.flags)
            && self.has_options_of(other)
    }
}

impl Eq for TcpHeader {}

/// A TCP segment borrowed for reading, as its receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    pub envelope: &'a Envelope,
    pub tcp: &'a TcpHeader,
}

impl std::ops::Deref for Segment<'_> {
    type Target = TcpHeader;
    #[inline(always)]
    fn deref(&self) -> &TcpHeader {
        self.tcp
    }
}

/// A TCP segment borrowed for writing: its sender fills in header, payload and ECN field; the host sets the rest.
#[derive(Debug)]
pub struct SegmentMut<'a> {
    pub envelope: &'a mut Envelope,
    pub tcp: &'a mut TcpHeader,
}

impl std::ops::Deref for SegmentMut<'_> {
    type Target = TcpHeader;
    #[inline(always)]
    fn deref(&self) -> &TcpHeader {
        self.tcp
    }
}

impl std::ops::DerefMut for SegmentMut<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut TcpHeader {
        self.tcp
    }
}

impl SegmentMut<'_> {
    /// Reborrows the segment as a value, so that the two references may stay in registers.
    #[inline(always)]
    pub fn again(&mut self) -> SegmentMut<'_> {
        SegmentMut { envelope: self.envelope, tcp: self.tcp }
    }

    /// Makes this a segment of `payload` bytes without options.
    #[inline(always)]
    pub fn set(&mut self, flags: TcpFlags, seq: u32, ack: u32, window: u16, payload: u16) {
        self.tcp.set(flags, seq, ack, window);
        self.envelope.payload = payload;
        self.envelope.kind = Kind::Reliable;
        self.envelope.trimmed = false;
    }
}

impl TcpHeader {
    /// Overwrites the header with one without options.
    #[inline(always)]
    pub fn set(&mut self, flags: TcpFlags, seq: u32, ack: u32, window: u16) {
        self.shape = 0;
        self.flags = flags;
        self.seq = seq;
        self.ack = ack;
        self.window = window;
    }

    /// Length of the header \[bytes\], options padded to four.
    #[inline(always)]
    pub fn bytes(&self) -> u16 {
        20 + self.option_bytes()
    }

    /// Reference for drop notifications, see [`Header::reference`](crate::Header::reference); SYN and FIN count as data of no
    /// bytes.
    pub(crate) fn reference(&self, payload: u16) -> Option<Reference> {
        if self.flags.has(TcpFlags::RST) {
            return None;
        }
        let data = payload > 0 || self.flags.has(TcpFlags::SYN) || self.flags.has(TcpFlags::FIN);
        Some(if data {
            Reference { number: self.seq, length: payload, part: Part::Data }
        } else {
            Reference { number: self.ack, length: 0, part: Part::Acknowledgment }
        })
    }

    /// The timestamps option, if present.
    #[inline(always)]
    pub fn timestamps(&self) -> Option<Timestamps> {
        (self.shape & TIMESTAMPS != 0).then(|| Timestamps { value: self.options[0], echo: self.options[1] })
    }

    /// Adds the timestamps option; must be called before [`TcpHeader::push_sack`].
    #[inline(always)]
    pub fn set_timestamps(&mut self, ts: Timestamps) {
        debug_assert_eq!(self.shape & SACK_COUNT, 0);
        self.shape |= TIMESTAMPS;
        self.options[0] = ts.value;
        self.options[1] = ts.echo;
    }

    /// Number of SACK blocks that still fit into the 40 bytes of options: 3 in all beside timestamps, 4 without; with a NACK
    /// 1 and 3.
    /// 3. Source: RFC 2018 §3.
    pub fn sack_room(&self) -> usize {
        let total = match (self.shape & TIMESTAMPS != 0, self.shape & NACK != 0) {
            (false, false) => 4,
            (true, false) | (false, true) => 3,
            (true, true) => 1,
        };
        total - self.sack_len()
    }

    /// The NACK option, if present.
    #[inline]
    pub fn nack(&self) -> Option<Nack> {
        let [seq, length] = [self.options[NACK_AT], self.options[NACK_AT + 1]];
        (self.shape & NACK != 0).then_some(Nack { seq, length: length as u16 })
    }

    /// Adds the NACK option; must be called before [`TcpHeader::push_sack`], and not on a SYN.
    pub fn set_nack(&mut self, nack: Nack) {
        debug_assert!(self.shape & SACK_COUNT == 0 && !self.flags.has(TcpFlags::SYN));
        self.shape |= NACK;
        self.options[NACK_AT] = nack.seq;
        self.options[NACK_AT + 1] = u32::from(nack.length);
    }

    /// The acknowledgment in a segment whose payload was trimmed: this header as a pure ACK.
    pub fn acknowledgment(&self) -> TcpHeader {
        TcpHeader { flags: TcpFlags::ACK, ..*self }
    }

    /// This header without the NACK option, as an end that does not know the option reads it. Source: RFC 9293 §3.2 (MUST-6).
    pub fn without_nack(&self) -> TcpHeader {
        TcpHeader { shape: self.shape & !NACK, ..*self }
    }

    /// True if receive offload may merge a segment with this header and `payload` bytes with an `earlier` one: it holds the
    /// bytes that follow, and differs only in sequence number, PSH and FIN; the earlier one is no shorter and ends nothing,
    /// and this one has no CWR. Source: Linux tcp_gro_receive.
    pub fn continues(&self, payload: u16, (earlier, length): (&TcpHeader, u16)) -> bool {
        let ends = TcpFlags::FIN.0 | TcpFlags::PSH.0;
        let differs = (self.flags.0 ^ earlier.flags.0) & !(ends | TcpFlags::CWR.0);
        let special = TcpFlags::SYN.0 | TcpFlags::RST.0;
        payload > 0
            && payload <= length
            && self.seq == earlier.seq.wrapping_add(u32::from(length))
            && differs == 0
            && earlier.flags.0 & (ends | special) == 0
            && !self.flags.has(TcpFlags::CWR)
            && (self.ack, self.window) == (earlier.ack, earlier.window)
            && self.has_options_of(earlier)
    }

    /// True if the two headers have equal options. Words of options that are not present are ignored, as headers are reused.
    fn has_options_of(&self, other: &TcpHeader) -> bool {
        self.shape == other.shape
            && self.timestamps() == other.timestamps()
            && self.sack().eq(other.sack())
            && self.nack() == other.nack()
            && self.syn_options() == other.syn_options()
    }

    /// True for the usual segment of an open connection: ACK set, no SYN, FIN or RST, and no NACK option.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        const FLAGS: u8 = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0 | TcpFlags::ACK.0;
        const ALL: u16 = u16::from_le_bytes([FLAGS, NACK]);
        u16::from_le_bytes([self.flags.0, self.shape]) & ALL == TcpFlags::ACK.0 as u16
    }

    /// Signature of the segment's shape in one number, to compare with [`TcpHeader::usual`]: SYN, FIN, RST and ACK, and the
    /// options that it has.
    #[inline(always)]
    pub fn looks(&self) -> u16 {
        const FLAGS: u8 = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0 | TcpFlags::ACK.0;
        // One load, as long as not all of the second byte is taken.
        u16::from_le_bytes([self.flags.0, self.shape]) & u16::from_le_bytes([FLAGS, TIMESTAMPS | SACK_COUNT | NACK])
    }

    /// Signature ([`TcpHeader::looks`]) of the usual segment of an open connection, with or without timestamps.
    pub const fn usual(timestamps: bool) -> u16 {
        u16::from_le_bytes([TcpFlags::ACK.0, if timestamps { TIMESTAMPS } else { 0 }])
    }

    /// Number of SACK blocks in the header.
    #[inline(always)]
    pub fn sack_len(&self) -> usize {
        if self.flags.has(TcpFlags::SYN) {
            0
        } else {
            usize::from(self.shape & SACK_COUNT)
        }
    }

    /// True if a segment that is no SYN has SACK blocks.
    #[inline(always)]
    pub fn has_sack(&self) -> bool {
        self.shape & SACK_COUNT != 0
    }

    /// Appends a SACK block.
    ///
    /// # Panics
    /// When there is no room for it.
    pub fn push_sack(&mut self, block: SackBlock) {
        assert!(self.sack_room() > 0, "no room for a SACK block");
        let at = self.sack_at(self.sack_len());
        self.options[at] = block.start;
        self.options[at + 1] = block.end;
        self.shape += 1;
    }

    fn sack_at(&self, i: usize) -> usize {
        2 * i + if self.shape & TIMESTAMPS != 0 { 2 } else { 0 }
    }

    /// The SACK blocks, in order.
    pub fn sack(&self) -> impl Iterator<Item = SackBlock> + '_ {
        (0..self.sack_len()).map(|i| {
            let at = self.sack_at(i);
            SackBlock { start: self.options[at], end: self.options[at + 1] }
        })
    }

    /// Sets the options that only a SYN has.
    pub fn set_syn_options(&mut self, syn: SynOptions) {
        debug_assert!(self.flags.has(TcpFlags::SYN));
        let scale = syn.window_scale.map_or(0xff, u32::from);
        self.options[2] = u32::from(syn.mss) | scale << 16 | u32::from(syn.sack_permitted) << 24;
    }

    /// The options that only a SYN has, if this is one.
    pub fn syn_options(&self) -> Option<SynOptions> {
        let word = self.options[2];
        let scale = (word >> 16) as u8;
        self.flags.has(TcpFlags::SYN).then_some(SynOptions {
            mss: word as u16,
            window_scale: (scale != 0xff).then_some(scale),
            sack_permitted: word >> 24 & 1 == 1,
        })
    }

    /// Length of the TCP options on the wire, padded to a multiple of four: timestamps 12, SACK 4 + 8 n, and on a SYN MSS 4,
    /// window scale 4, SACK-permitted 4 (2 when it shares its word with the timestamps, as Linux packs it); NACK 12.
    #[inline(always)]
    pub fn option_bytes(&self) -> u16 {
        const UNUSUAL: u16 = u16::from_le_bytes([TcpFlags::SYN.0, SACK_COUNT | NACK]);
        if u16::from_le_bytes([self.flags.0, self.shape]) & UNUSUAL == 0 {
            return if self.shape & TIMESTAMPS != 0 { 12 } else { 0 };
        }
        self.unusual_option_bytes()
    }

    #[inline(never)]
    fn unusual_option_bytes(&self) -> u16 {
        let ts = self.shape & TIMESTAMPS != 0;
        if let Some(syn) = self.syn_options() {
            let mut bytes = 4 + if syn.window_scale.is_some() { 4 } else { 0 };
            bytes += match (ts, syn.sack_permitted) {
                (true, _) => 12, // NOP NOP or SACK-permitted, then timestamps
                (false, true) => 4,
                (false, false) => 0,
            };
            return bytes;
        }
        let others = match self.shape & (SACK_COUNT | NACK) {
            0 => 0,
            NACK => NACK_OPTION_BYTES,
            n => 4 + 8 * u16::from(n & SACK_COUNT) + if n & NACK != 0 { NACK_OPTION_BYTES } else { 0 },
        };
        others + if ts { 12 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of a header is used again, by one with fewer options: what the one before had there is no part of it.
    #[test]
    fn what_an_earlier_header_left_behind_says_nothing() {
        let mut used = TcpHeader::default();
        used.set(TcpFlags::ACK, 1, 1, 1);
        used.set_timestamps(Timestamps { value: 7, echo: 5 });
        used.push_sack(SackBlock { start: 3000, end: 4000 });
        used.set(TcpFlags::ACK, 1000, 1, 9);
        let mut fresh = TcpHeader::default();
        fresh.set(TcpFlags::ACK, 1000, 1, 9);
        assert_eq!(used, fresh);
        let mut before = fresh;
        before.seq = 0;
        assert!(used.continues(1000, (&before, 1000)));
        used.set_timestamps(Timestamps { value: 7, echo: 5 });
        assert_ne!(used, fresh);
        assert!(!used.continues(1000, (&before, 1000)), "another option");
    }
}
