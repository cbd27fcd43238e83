//! Stamps, which watched ports write into packets from registers that a switch has for them.

use fanin_units::{Bytes, Span, Time};

/// A port's reading, as a packet carries it: the last eight bytes of the frame before the FCS, after the IP datagram and
/// any padding, big-endian: `0xFA | port u8 | length u16 | time u32`.
///
/// Source: S-ECN §II-C (registers of 16 bits for the queue length and 32 bits for the time).
/// Deviation: the paper writes into the payload; a trailer leaves the checksums of IP and TCP true and what applications
/// receive whole. A port number is added, so that a receiver can distinguish the ports of several paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Number of the watched port, `index` in the manifest; [`Stamp::NO_PORT`]: none has stamped the packet.
    pub port: u8,
    /// Queue length that the packet found [units of [`Registers::unit`]]; 65535 also stands for anything longer.
    pub length: u16,
    /// Arrival of the packet [ticks of [`Registers::tick`]], modulo 2^32.
    pub time: u32,
}

impl Stamp {
    /// Bytes that a stamp takes in a frame.
    pub const BYTES: usize = 8;
    /// First byte of a stamp.
    pub const MAGIC: u8 = 0xfa;
    /// The port of a stamp that no port has filled in.
    pub const NO_PORT: u8 = u8::MAX;
    /// Empty stamp, for which a sending host leaves room.
    pub const EMPTY: Stamp = Stamp { port: Self::NO_PORT, length: 0, time: 0 };

    /// True if a watched port has filled the stamp in.
    pub const fn is_stamped(&self) -> bool {
        self.port != Self::NO_PORT
    }

    /// The stamp's bytes in a frame.
    pub const fn to_bytes(&self) -> [u8; Self::BYTES] {
        let [l0, l1] = self.length.to_be_bytes();
        let [t0, t1, t2, t3] = self.time.to_be_bytes();
        [Self::MAGIC, self.port, l0, l1, t0, t1, t2, t3]
    }

    /// Stamp in a frame; `None` where the first byte is not a stamp's.
    pub const fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Stamp> {
        let [magic, port, l0, l1, t0, t1, t2, t3] = *bytes;
        if magic != Self::MAGIC {
            return None;
        }
        Some(Stamp { port, length: u16::from_be_bytes([l0, l1]), time: u32::from_be_bytes([t0, t1, t2, t3]) })
    }
}

/// Units of a switch's registers.
///
/// Source: S-ECN §II-C: ticks of 800 ns, units of 8 B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// Step of the time register.
    pub tick: Span,
    /// Step of the length register.
    pub unit: Bytes,
}

impl Default for Registers {
    fn default() -> Self {
        Registers { tick: Span::from_ns(800), unit: Bytes(8) }
    }
}

impl Registers {
    /// Stamp that port number `port` writes into a packet that finds `queue` waiting; both registers round down, the length
    /// stays at its largest where it does not fit, the time starts again from 0.
    #[inline]
    pub fn read(&self, port: u8, now: Time, queue: Bytes) -> Stamp {
        let length = queue.get() / self.unit.get().max(1);
        Stamp { port, length: u16::try_from(length).unwrap_or(u16::MAX), time: (now.ps() / self.tick.ps().max(1)) as u32 }
    }

    /// The shortest queue that reads as `length`; a queue is less than one [`Registers::unit`] longer, unless `length` is
    /// 65535.
    pub const fn queue(&self, length: u16) -> Bytes {
        Bytes(self.unit.get().saturating_mul(length as u64))
    }

    /// Time at which the tick number `ticks` (see [`Unwrap`]) began; the packet came less than one [`Registers::tick`] later.
    pub const fn time(&self, ticks: u64) -> Time {
        Time::from_ps(self.tick.ps().saturating_mul(ticks))
    }

    /// Time after which the time register starts again: 2^32 ticks, 57 min at 800 ns.
    pub const fn wrap(&self) -> Span {
        self.tick.saturating_mul(WRAP)
    }

    /// Time that a reading of the register stands for, given a time less than half a wrap away from it: a receiver's own clock
    /// bridges gaps of any length.
    pub fn time_near(&self, time: u32, about: Time) -> Time {
        self.time(near(time, about.ps() / self.tick.ps().max(1)))
    }
}

/// Values of the time register.
const WRAP: u64 = 1 << 32;

/// Count of ticks next to `about` whose lower 32 bits are `time`, never below 0.
fn near(time: u32, about: u64) -> u64 {
    let ahead = time.wrapping_sub(about as u32) as i32;
    let ticks = about.saturating_add_signed(i64::from(ahead));
    // Saturated at either end: nothing with these lower bits is so near.
    if ticks as u32 == time {
        ticks
    } else {
        u64::from(time)
    }
}

/// Undoes the wrap-around of one port's time register.
///
/// Readings may come in any order, as long as each lies less than half a wrap ([`Registers::wrap`]) from the latest before it,
/// gaps included; where packets can be further apart, a receiver's clock decides ([`Registers::time_near`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unwrap {
    /// Latest reading so far.
    latest: Option<u64>,
    wraps: u32,
}

impl Unwrap {
    /// Unwraps readings whose first one lies within the first 2^32 ticks: a simulation, a switch that was just reset.
    pub const fn new() -> Self {
        Self::after(0)
    }

    /// Unwraps readings whose first one lies after `wraps` wrap-arounds. A trace that starts anywhere takes 1, so that one that
    /// is out of order across the first wrap-around has somewhere to go; its times then are relative.
    pub const fn after(wraps: u32) -> Self {
        Unwrap { latest: None, wraps }
    }

    /// The full count of ticks of the next reading.
    pub fn ticks(&mut self, time: u32) -> u64 {
        let ticks = match self.latest {
            None => u64::from(self.wraps) * WRAP + u64::from(time),
            Some(latest) => near(time, latest),
        };
        self.latest = self.latest.max(Some(ticks));
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stamp_is_eight_bytes_in_network_order() {
        let stamp = Stamp { port: 3, length: 0x0102, time: 0x0a0b_0c0d };
        assert_eq!(stamp.to_bytes(), [0xfa, 3, 1, 2, 0x0a, 0x0b, 0x0c, 0x0d]);
        assert_eq!(Stamp::from_bytes(&[0xfb, 3, 1, 2, 0x0a, 0x0b, 0x0c, 0x0d]), None, "no stamp");
        assert_eq!(Stamp::EMPTY.to_bytes(), [0xfa, 0xff, 0, 0, 0, 0, 0, 0]);
        assert!(stamp.is_stamped() && !Stamp::EMPTY.is_stamped());
    }

    #[test]
    fn the_papers_registers() {
        let registers = Registers::default();
        let stamp = registers.read(0, Time::from_ps(1_599_999), Bytes(1_518));
        assert_eq!((stamp.time, stamp.length), (1, 189), "799.999 ns and 6 B are lost");
        assert_eq!(registers.queue(stamp.length), Bytes(1_512));
        assert_eq!(registers.queue(u16::MAX), Bytes(524_280), "the longest queue that can be reported");
        assert_eq!(registers.read(0, Time::ZERO, Bytes(524_288)).length, u16::MAX);
        assert_eq!(registers.wrap(), Span::from_ps(3_435_973_836_800_000), "57 min");
    }

    #[test]
    fn a_register_without_a_step_does_not_divide_by_zero() {
        let stamp = Registers { tick: Span::ZERO, unit: Bytes(0) }.read(0, Time::from_ps(7), Bytes(9));
        assert_eq!((stamp.time, stamp.length), (7, 9));
    }

    #[test]
    fn disorder_across_a_wrap_around() {
        let mut port = Unwrap::new();
        assert_eq!(port.ticks(u32::MAX - 1), WRAP - 2);
        assert_eq!(port.ticks(1), WRAP + 1);
        assert_eq!(port.ticks(u32::MAX), WRAP - 1, "late, not a wrap-around further");
        assert_eq!(port.ticks(2), WRAP + 2);
    }

    #[test]
    fn the_first_reading_may_be_late() {
        let mut anywhere = Unwrap::after(1);
        assert_eq!(anywhere.ticks(1), WRAP + 1);
        assert_eq!(anywhere.ticks(u32::MAX), WRAP - 1);
        let mut from_reset = Unwrap::new();
        assert_eq!(from_reset.ticks(1), 1);
        assert_eq!(from_reset.ticks(u32::MAX), u64::from(u32::MAX), "nothing is before 0");
    }

    #[test]
    fn the_ends_of_the_count() {
        assert_eq!(near(5, u64::MAX), 5, "past the end there is nothing near");
        assert_eq!(near(u32::MAX, u64::MAX - 3), u64::MAX);
        assert_eq!(Registers::default().time(u64::MAX), Time::MAX);
    }

    /// Steps between readings, less than half a wrap.
    const STEP: u64 = WRAP / 2 - 1;

    proptest! {
        #[test]
        fn bytes_are_read_as_written(port: u8, length: u16, time: u32) {
            let stamp = Stamp { port, length, time };
            prop_assert_eq!(Stamp::from_bytes(&stamp.to_bytes()), Some(stamp));
        }

        /// Exact rows and what is left of them: within one tick and one unit, over several wrap-arounds.
        #[test]
        fn a_series_comes_back_within_the_quantisation(
            tick in 1_u64..=100_000_000,
            unit in 1_u64..=65_536,
            rows in prop::collection::vec((0..STEP, 0_u64..=6_000_000_000), 1..60),
        ) {
            let registers = Registers { tick: Span::from_ps(tick), unit: Bytes(unit) };
            let mut port = Unwrap::new();
            let (mut ticks, mut wraps) = (0, 0);
            for (step, queue) in rows {
                ticks += step;
                // Anywhere inside the tick.
                let now = Time::from_ps(ticks * tick + queue % tick);
                let stamp = registers.read(7, now, Bytes(queue));
                let read = port.ticks(stamp.time);
                wraps = wraps.max(read / WRAP);
                let time = registers.time(read);
                prop_assert!(time <= now && now.since(time) < registers.tick, "{now} read as {time}");
                prop_assert_eq!(registers.time_near(stamp.time, now), time);
                let length = registers.queue(stamp.length).get();
                prop_assert!(length <= queue);
                prop_assert!(queue - length < unit || stamp.length == u16::MAX, "{queue} B read as {length} B");
                prop_assert_eq!(stamp.length == u16::MAX, queue / unit >= u64::from(u16::MAX));
            }
            prop_assert_eq!(wraps, ticks / WRAP);
        }

        /// Each reading may be late by less than half a wrap.
        #[test]
        fn readings_out_of_order(rows in prop::collection::vec((0..WRAP / 4, 0..WRAP / 4), 1..60)) {
            let mut port = Unwrap::after(1);
            let mut latest = WRAP + WRAP / 4;
            for (step, late) in rows {
                latest += step;
                let ticks = latest - late;
                prop_assert_eq!(port.ticks(ticks as u32), ticks);
            }
        }

        /// A clock that is off by less than half a wrap determines which wrap-around a reading belongs to.
        #[test]
        fn a_clock_close_by_is_enough(ticks in 0..1_u64 << 50, off in 0..STEP) {
            let registers = Registers { tick: Span::from_ps(800), unit: Bytes(8) };
            let now = registers.time(ticks);
            for about in [ticks + off, ticks.saturating_sub(off)] {
                prop_assert_eq!(registers.time_near(ticks as u32, registers.time(about)), now);
            }
        }
    }
}
