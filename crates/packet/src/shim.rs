//! Shims: headers that switches put into a frame for other switches, and what an envelope says of them.

use crate::telemetry::{MAX_HOPS, RECORD_BYTES};
use crate::Envelope;

/// Bytes of a body at most, without records.
pub const SHIM_BODY: usize = 10;
/// Bytes that a frame is longer with a shim, at most.
pub const LONGEST_SHIM: u16 = 2 + SHIM_BODY as u16 + MAX_HOPS as u16 * RECORD_BYTES;

/// What travels in a frame besides its packet: headers of switches, a control message. One byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extra(u8);

impl Extra {
    /// Nothing.
    pub const NONE: Extra = Extra(0);
    const MESSAGE: u8 = 1 << 7;

    /// Whether a control message is at the end of the frame, which is so much longer.
    #[inline(always)]
    pub const fn message(self) -> bool {
        self.0 & Extra::MESSAGE != 0
    }

    /// Bytes of the frame's [`Shim`]; zero where it has none.
    #[inline(always)]
    pub const fn shim(self) -> u16 {
        (self.0 & !Extra::MESSAGE) as u16
    }

    /// The same with or without a control message.
    #[must_use]
    pub const fn with_message(self, message: bool) -> Extra {
        Extra(self.shim() as u8 | if message { Extra::MESSAGE } else { 0 })
    }
}

/// A header that one switch puts into a frame and another takes off. On the wire it stands where the EtherType was, which
/// follows it, as with a VLAN tag: its own EtherType (2 B), then its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shim {
    /// By which a switch knows what the body is.
    pub ether_type: u16,
    /// Bytes that stand for one in the first two bytes of the body, which the port writes when the frame leaves: the queue
    /// that it leaves behind, rounded up, at most 65,535. Zero: nothing is written.
    pub unit: u16,
    length: u8,
    /// Records behind the body, which lie apart ([`Record`](crate::Record)); [`DUE`]: of the last there is no more than its room.
    records: u8,
    body: [u8; SHIM_BODY],
}

/// See [`Shim::records`].
const DUE: u8 = 1 << 7;

const _: () = assert!(std::mem::size_of::<Shim>() == 16);

impl Shim {
    /// A header of these bytes behind its EtherType.
    ///
    /// # Panics
    /// When there are more than [`SHIM_BODY`], or a depth is to be written into fewer than two: who defines a header knows.
    pub fn new(ether_type: u16, body: &[u8], unit: u16) -> Shim {
        assert!(unit == 0 || body.len() >= 2, "no room for a depth");
        let mut bytes = [0; SHIM_BODY];
        bytes[..body.len()].copy_from_slice(body);
        Shim { ether_type, unit, length: body.len() as u8, records: 0, body: bytes }
    }

    /// The same with these records behind the body.
    #[must_use]
    pub const fn with_records(self, records: usize) -> Shim {
        Shim { records: records as u8, ..self }
    }

    /// Records behind the body.
    #[inline]
    pub const fn records(&self) -> usize {
        (self.records & !DUE) as usize
    }

    /// Makes room for one more record, which the port writes when the frame leaves.
    #[inline]
    pub fn add_record(&mut self) {
        self.records = (self.records + 1) | DUE;
    }

    /// A frame leaves: the place of the record that its port is to write, if there is one.
    #[inline]
    pub fn take_due(&mut self) -> Option<usize> {
        let due = self.records & DUE != 0;
        self.records &= !DUE;
        due.then(|| self.records() - 1)
    }

    /// Writes the body anew.
    ///
    /// # Panics
    /// When it has another length.
    pub fn set_body(&mut self, body: &[u8]) {
        self.body[..usize::from(self.length)].copy_from_slice(body);
    }

    /// Its bytes behind the EtherType, without records.
    pub fn body(&self) -> &[u8] {
        &self.body[..usize::from(self.length)]
    }

    /// Bytes that a frame is longer with it.
    pub const fn bytes(&self) -> u16 {
        2 + self.length as u16 + self.records() as u16 * RECORD_BYTES
    }

    /// Writes the queue that the frame leaves behind, where it is wanted.
    pub fn write_depth(&mut self, queue_bytes: u64) {
        if self.unit > 0 {
            let steps = queue_bytes.div_ceil(u64::from(self.unit));
            let [high, low] = u16::try_from(steps).unwrap_or(u16::MAX).to_be_bytes();
            (self.body[0], self.body[1]) = (high, low);
        }
    }
}

impl Envelope {
    /// Makes room for a shim in the place of the one before it, or for none.
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
