//! Shims: headers that switches and hosts insert into a frame for switches, and their summary in the envelope.

use crate::telemetry::{MAX_HOPS, RECORD_BYTES};
use crate::Envelope;

/// Largest body of a shim, without records \[bytes\].
pub const SHIM_BODY: usize = 10;
/// Largest number of bytes that a shim adds to a frame.
pub const LONGEST_SHIM: u16 = 2 + SHIM_BODY as u16 + MAX_HOPS as u16 * RECORD_BYTES;

/// Content of a frame besides its packet, in one byte: the length of its shim, and whether a control message follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extra(u8);

impl Extra {
    /// A frame without shim and control message.
    pub const NONE: Extra = Extra(0);
    const MESSAGE: u8 = 1 << 7;

    /// True if a control message is appended to the frame, which makes it longer.
    #[inline(always)]
    pub const fn message(self) -> bool {
        self.0 & Extra::MESSAGE != 0
    }

    /// Length of the frame's [`Shim`] in bytes; zero if it has none.
    #[inline(always)]
    pub const fn shim(self) -> u16 {
        (self.0 & !Extra::MESSAGE) as u16
    }

    /// These extras with or without a control message.
    #[must_use]
    pub const fn with_message(self, message: bool) -> Extra {
        Extra(self.shim() as u8 | if message { Extra::MESSAGE } else { 0 })
    }
}

/// A header that a switch or a host inserts into a frame for switches. On the wire it stands in front of the original
/// EtherType, like a VLAN tag: its own EtherType (2 B), then its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shim {
    /// EtherType of the shim, by which a switch knows how to read the body.
    pub ether_type: u16,
    /// Unit \[bytes\] of the queue depth that the port writes into the first two bytes of the body when the frame leaves: the
    /// queue that it leaves behind, rounded up, at most 65,535 units. Zero: nothing is written.
    pub unit: u16,
    length: u8,
    /// Number of records behind the body, which are stored separately ([`Record`](crate::Record)); with [`DUE`], the last one
    /// is still to be written.
    records: u8,
    body: [u8; SHIM_BODY],
}

/// Flag in `records`: the last record is room that the port fills when the frame leaves.
const DUE: u8 = 1 << 7;

const _: () = assert!(std::mem::size_of::<Shim>() == 16);

impl Shim {
    /// A shim with the given EtherType and body; `unit` as in [`Shim::unit`].
    ///
    /// # Panics
    /// When the body is longer than [`SHIM_BODY`], or too short for the depth that is to be written into it: the mechanism
    /// that defines a header knows its length.
    pub fn new(ether_type: u16, body: &[u8], unit: u16) -> Shim {
        assert!(unit == 0 || body.len() >= 2, "no room for a depth");
        let mut bytes = [0; SHIM_BODY];
        bytes[..body.len()].copy_from_slice(body);
        Shim { ether_type, unit, length: body.len() as u8, records: 0, body: bytes }
    }

    /// This shim with `records` records behind the body.
    #[must_use]
    pub const fn with_records(self, records: usize) -> Shim {
        Shim { records: records as u8, ..self }
    }

    /// Number of records behind the body.
    #[inline]
    pub const fn records(&self) -> usize {
        (self.records & !DUE) as usize
    }

    /// Adds room for one more record, which the port writes when the frame leaves.
    #[inline]
    pub fn add_record(&mut self) {
        self.records = (self.records + 1) | DUE;
    }

    /// True if the port by which the frame leaves has something to write into it.
    #[inline]
    pub const fn is_written_at_departure(&self) -> bool {
        self.records & DUE != 0 || self.unit > 0
    }

    /// Index of the record that the port is to write as the frame leaves, if any; clears the flag.
    #[inline]
    pub fn take_due(&mut self) -> Option<usize> {
        let due = self.records & DUE != 0;
        self.records &= !DUE;
        due.then(|| self.records() - 1)
    }

    /// Overwrites the body.
    ///
    /// # Panics
    /// When the new body has another length.
    pub fn set_body(&mut self, body: &[u8]) {
        self.body[..usize::from(self.length)].copy_from_slice(body);
    }

    /// Overwrites the first two bytes of the body.
    #[inline(always)]
    pub(crate) fn set_first(&mut self, [a, b]: [u8; 2]) {
        debug_assert!(self.length >= 2, "a body of {} bytes", self.length);
        (self.body[0], self.body[1]) = (a, b);
    }

    /// The first two bytes of the body.
    #[inline(always)]
    pub(crate) const fn first(&self) -> [u8; 2] {
        [self.body[0], self.body[1]]
    }

    /// Body of the shim: its bytes behind the EtherType, without records.
    pub fn body(&self) -> &[u8] {
        &self.body[..usize::from(self.length)]
    }

    /// Number of bytes that the shim adds to a frame.
    #[inline]
    pub const fn bytes(&self) -> u16 {
        2 + self.length as u16 + self.records() as u16 * RECORD_BYTES
    }

    /// Writes the depth of the queue that the frame leaves behind into the body, if the shim has a `unit`.
    #[inline]
    pub fn write_depth(&mut self, queue_bytes: u64) {
        if self.unit > 0 {
            let steps = queue_bytes.div_ceil(u64::from(self.unit));
            let [high, low] = u16::try_from(steps).unwrap_or(u16::MAX).to_be_bytes();
            (self.body[0], self.body[1]) = (high, low);
        }
    }
}

impl Envelope {
    /// Inserts, replaces or removes the packet's shim, and adjusts the frame's size.
    #[inline]
    pub fn set_shim(&mut self, shim: Option<&Shim>) {
        let bytes = shim.map_or(0, Shim::bytes);
        self.frame = self.frame - self.extra.shim() + bytes;
        self.extra = Extra(bytes as u8 | self.extra.0 & Extra::MESSAGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_as_much_longer_as_its_shim() {
        let mut e = Envelope { frame: 1518, extra: Extra::NONE.with_message(true), ..Envelope::default() };
        let (short, long) = (Shim::new(0xA8F0, &[0, 0], 80), Shim::new(0xA8F1, &[1; SHIM_BODY], 0));
        let mut sizes = Vec::new();
        for shim in [Some(&short), Some(&long), Some(&short), None, None] {
            e.set_shim(shim);
            sizes.push((e.frame, e.extra.shim(), e.extra.message()));
        }
        assert_eq!(sizes, [(1522, 4, true), (1530, 12, true), (1522, 4, true), (1518, 0, true), (1518, 0, true)]);
        assert!(!e.extra.with_message(false).message());
    }

    #[test]
    fn a_record_has_its_room_before_it_is_written() {
        let mut shim = Shim::new(0xA8F6, &[0x10, 7], 0).with_records(1);
        assert_eq!((shim.bytes(), shim.take_due()), (12, None));
        shim.add_record();
        shim.set_body(&[0x20, 9]);
        assert_eq!((shim.bytes(), shim.records(), shim.body()), (20, 2, &[0x20, 9][..]));
        assert_eq!((shim.take_due(), shim.take_due(), shim.records()), (Some(1), None, 2));
    }

    #[test]
    fn a_depth_is_rounded_up_and_saturates() {
        let mut shim = Shim::new(0xA8F0, &[0, 0, 9], 80);
        for (queue, written) in [(0, 0), (1, 1), (80, 1), (81, 2), (1_920_000, 24_000), (u64::MAX, u16::MAX)] {
            shim.write_depth(queue);
            assert_eq!(shim.body(), [&written.to_be_bytes()[..], &[9]].concat());
        }
        let mut other = Shim::new(0xA8F0, &[7], 0);
        other.write_depth(1_000);
        assert_eq!((other.body(), other.bytes()), (&[7][..], 3));
    }
}
