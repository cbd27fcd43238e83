//! In-band network telemetry: each port that a packet leaves appends a record to its frame, and the receiver returns the
//! records with the acknowledgment. Source: HPCC §4.1 (fields and their widths; units as in its authors' simulator).
//!
//! On the wire a stack is a [`Shim`]: EtherType, then 4 bits for the number of records, 12 bits for the path, and the records.

use crate::Shim;
use fanin_units::{BitRate, Span, Time};

/// Largest number of records in a stack.
pub const MAX_HOPS: usize = 8;
/// Length of a record \[bytes\].
pub const RECORD_BYTES: u16 = 8;
/// EtherType of a stack on its way to the receiver, into which ports write. Not registered.
const GOING: u16 = 0xA8F6;
/// EtherType of a stack that the receiver sends back, into which nobody writes. Not registered.
const ECHO: u16 = 0xA8F7;
/// Units of the queue length and of the byte counter in a record \[bytes\].
const QUEUE_UNIT: u64 = 80;
const SENT_UNIT: u64 = 128;
/// Widths in bits of time, byte counter and queue length in a record; the rate's code has the four bits above them.
const TIME_BITS: u32 = 24;
const SENT_BITS: u32 = 20;
const QUEUE_BITS: u32 = 16;
/// Link rates by their code in records, in Mb/s; code zero is "no code".
const RATES: [u64; 16] = [
    0, 100, 1_000, 2_500, 5_000, 10_000, 20_000, 25_000, 40_000, 50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000,
];

const fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// Code of a link rate in records; `None` if it has none.
pub fn rate_code(rate: BitRate) -> Option<u8> {
    (1..16).find(|code| RATES[usize::from(*code)] * 1_000_000 == rate.bps())
}

/// State of a port when the first bit of a frame leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    pub at: Time,
    /// Frame bytes that remain in the port's queue.
    pub queue_bytes: u64,
    /// Frame bytes that the port has sent before this frame.
    pub sent_bytes: u64,
    /// Code of the rate of the port's link ([`rate_code`]); zero: it has none.
    pub code: u8,
}

/// Record of one port: code of its rate (4 bits), nanoseconds (24), units of 128 B sent (20), units of 80 B in the queue
/// (16). Time and counter are rounded down and wrap around; the queue is rounded up, as cells of a buffer are, and saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record(u64);

impl Record {
    /// Encodes a departure.
    #[inline]
    pub fn of(d: &Departure) -> Record {
        let rate = u64::from(d.code);
        let time = (d.at.ps() / 1_000) & low(TIME_BITS);
        let sent = (d.sent_bytes / SENT_UNIT) & low(SENT_BITS);
        let queue = d.queue_bytes.div_ceil(QUEUE_UNIT).min(low(QUEUE_BITS));
        Record(((rate << TIME_BITS | time) << SENT_BITS | sent) << QUEUE_BITS | queue)
    }

    /// Encodes the record for the wire.
    pub const fn to_bytes(self) -> [u8; RECORD_BYTES as usize] {
        self.0.to_be_bytes()
    }

    /// Decodes the record at time `now`; its 24-bit timestamp is unwrapped to the latest time ≤ `now`.
    pub fn sample(self, now: Time) -> HopSample {
        let field = |shift: u32, bits: u32| self.0 >> shift & low(bits);
        let now = now.ps() / 1_000;
        let age = now.wrapping_sub(field(QUEUE_BITS + SENT_BITS, TIME_BITS)) & low(TIME_BITS);
        HopSample {
            queue_bytes: field(0, QUEUE_BITS) * QUEUE_UNIT,
            tx_bytes: field(QUEUE_BITS, SENT_BITS) * SENT_UNIT,
            at: Time::from_ps(now.saturating_sub(age) * 1_000),
            rate: BitRate(RATES[field(QUEUE_BITS + SENT_BITS + TIME_BITS, 4) as usize] * 1_000_000),
        }
    }
}

/// Decoded record of a port on a packet's path, as the sender reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopSample {
    /// Bytes that the packet left behind in the port's queue.
    pub queue_bytes: u64,
    /// Bytes that the port had sent before the packet, modulo 2^27: see [`HopSample::sent_since`].
    pub tx_bytes: u64,
    /// Time at which the packet left the port.
    pub at: Time,
    /// Rate of the port's link.
    pub rate: BitRate,
}

impl HopSample {
    /// True if the bytes sent since `earlier` can be computed: neither the port's counter nor its clock can have wrapped
    /// around.
    pub fn is_comparable(&self, earlier: &HopSample) -> bool {
        let clock = Span::from_ns(1 << TIME_BITS);
        let elapsed = Span::from_ps(self.at.ps().saturating_sub(earlier.at.ps()));
        self.at >= earlier.at && elapsed < clock && self.rate.bytes_in(elapsed).get() < SENT_UNIT << SENT_BITS
    }

    /// Bytes that the port has sent between `earlier` and this sample.
    pub const fn sent_since(&self, earlier: &HopSample) -> u64 {
        self.tx_bytes.wrapping_sub(earlier.tx_bytes) & ((SENT_UNIT << SENT_BITS) - 1)
    }
}

/// Telemetry stack in a packet's frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// True on the way back to the sender of the data.
    pub echo: bool,
    /// Hash of the ports that have written into the stack (12 bits); a different value means a different path.
    pub path: u16,
    hops: u8,
    records: [Record; MAX_HOPS],
}

impl Stack {
    /// A stack without records.
    pub const EMPTY: Stack = Stack { echo: false, path: 0, hops: 0, records: [Record(0); MAX_HOPS] };

    /// Records of the stack, in the order of ports on the path.
    pub fn records(&self) -> &[Record] {
        &self.records[..usize::from(self.hops)]
    }

    /// This stack as the receiver sends it back.
    #[must_use]
    pub const fn echoed(self) -> Stack {
        Stack { echo: true, ..self }
    }

    /// The stack's header as a shim; the records are stored separately.
    pub fn shim(&self) -> Shim {
        let kind = if self.echo { ECHO } else { GOING };
        Shim::new(kind, &body(usize::from(self.hops), self.path), 0).with_records(usize::from(self.hops))
    }

    /// Records of the stack, padded to the largest number.
    pub const fn places(&self) -> [Record; MAX_HOPS] {
        self.records
    }

    /// Decodes a shim and its records; `None` if the shim is not telemetry.
    pub fn of(shim: &Shim, records: [Record; MAX_HOPS]) -> Option<Stack> {
        let echo = match shim.ether_type {
            GOING => false,
            ECHO => true,
            _ => return None,
        };
        Some(Stack { echo, path: path(shim), hops: shim.records() as u8, records })
    }

    /// True if ports write records into a shim of this kind.
    #[inline]
    pub const fn is_written(shim: &Shim) -> bool {
        shim.ether_type == GOING
    }

    /// Bytes that a stack of `hops` records adds to a frame.
    pub const fn bytes(hops: usize) -> u16 {
        4 + hops as u16 * RECORD_BYTES
    }
}

#[inline]
fn path(shim: &Shim) -> u16 {
    u16::from_be_bytes(shim.first()) & 0xFFF
}

#[inline]
fn body(hops: usize, path: u16) -> [u8; 2] {
    ((hops as u16) << 12 | path & 0xFFF).to_be_bytes()
}

impl Shim {
    /// Adds room for the record of a port, whose number `port` enters the path's hash.
    #[inline]
    pub fn add_hop(&mut self, port: u16) {
        self.set_first(body(self.records() + 1, path(self) ^ port));
        self.add_record();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departure(ns: u64, queue_bytes: u64, sent_bytes: u64) -> Departure {
        let code = rate_code(BitRate::from_gbps(100)).expect("a code");
        Departure { at: Time::from_ps(ns * 1_000 + 999), queue_bytes, sent_bytes, code }
    }

    #[test]
    fn fields_are_rounded_and_wrap_as_documented() {
        let now = Time::from_ps(20_000_000_000_000); // 20 ms, beyond the 16.8 ms of the clock
        let said = Record::of(&departure(19_990_000_123, 81, 1_279)).sample(Time::from_ps(19_990_900_000_000));
        assert_eq!((said.at.ps(), said.queue_bytes, said.tx_bytes), (19_990_000_123_000, 160, 1_152));
        assert_eq!(said.rate, BitRate::from_gbps(100));
        let first = Record::of(&departure(19_999_990, 0, (1 << 27) - 128)).sample(now);
        let second = Record::of(&departure(20_000_000, 0, (1 << 27) + 256)).sample(now);
        assert_eq!(second.sent_since(&first), 384);
        assert!(second.is_comparable(&first) && !first.is_comparable(&second));
        let later = |us: u64| HopSample { at: first.at + Span::from_us(us), ..first };
        assert!(later(10_737).is_comparable(&first) && !later(10_738).is_comparable(&first)); // 2^27 B at 100 Gb/s
        assert_eq!(Record::of(&departure(1, u64::MAX, 0)).sample(now).queue_bytes, 65_535 * 80);
        let other = Record::of(&Departure { code: 0, ..departure(1, 0, 0) });
        assert_eq!((rate_code(BitRate::from_gbps(11)), other.sample(now).rate), (None, BitRate(0)));
    }

    #[test]
    fn a_record_is_eight_bytes_in_the_order_of_its_fields() {
        let d = departure(0x12_3456, 80 * 0xABCD, 128 * 0x9_8765);
        assert_eq!(Record::of(&d).to_bytes(), [0xA1, 0x23, 0x45, 0x69, 0x87, 0x65, 0xAB, 0xCD]);
    }

    #[test]
    fn a_stack_survives_its_header() {
        let mut shim = Stack::EMPTY.shim();
        assert_eq!((shim.bytes(), Stack::bytes(0)), (4, 4));
        shim.add_hop(0x0F0);
        shim.add_hop(0xF00);
        let mut records = Stack::EMPTY.places();
        records[1] = Record::of(&departure(5, 6, 7));
        let stack = Stack::of(&shim, records).expect("telemetry");
        assert_eq!((stack.path, stack.records().len(), stack.records()[1]), (0xFF0, 2, records[1]));
        assert!(Stack::is_written(&shim) && !Stack::is_written(&stack.echoed().shim()));
        assert_eq!(Stack::of(&stack.echoed().shim(), records), Some(stack.echoed()));
        assert_eq!((shim.bytes(), shim.body()), (Stack::bytes(2), &[0x2F, 0xF0][..]));
        assert_eq!(Stack::of(&Shim::new(0xA8F0, &[0, 0], 80), records), None);
    }
}
