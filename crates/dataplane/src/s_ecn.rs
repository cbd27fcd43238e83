//! S-ECN's slope in registers: two adders, a multiplier and comparators. Source: S-ECN §IV-C.

/// Fraction bits of bytes in the registers: R is exact to 0.01 % from 10 Mb/s and 8 ns on.
pub const FRACTION: u32 = 20;
/// The longest interval that the registers can hold \[clocks\]: 134 ms at 8 ns, in which 10 Mb/s send 167 KB.
pub const LONGEST: u64 = (1 << 24) - 1;

/// Amount that a mark subtracts from the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterMark {
    /// A mark subtracts R·I, this packet's share of marks.
    Subtract,
    /// A mark resets the sum to zero.
    Reset,
}

/// S-ECN's registers, updated when a packet of P wire bytes arrives I clocks after the previous one: sum ← max (sum + P −
/// R·I, −credit); marked when P > R·I and sum > R·I; then sum ← min (sum − R·I, R·I).
///
/// | register | width | unit |
/// |---|---|---|
/// | R | 32 | 2⁻²⁰ B per clock |
/// | I | 24, saturating | clocks |
/// | P, credit | 16 | B |
/// | R·I | 56 | 2⁻²⁰ B |
/// | sum | 37, signed | 2⁻²⁰ B |
///
/// The sum needs no more than 37 bits: while P > R·I it ends at R·I < 2¹⁶ B at most, otherwise it falls.
///
/// Source: S-ECN §IV-C. What the paper leaves open: docs/switch/s-ecn.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// R, the port's rate [2⁻²⁰ B per clock].
    rate: u64,
    /// Lower bound of the sum: minus the credit [2⁻²⁰ B].
    floor: i64,
    after_mark: AfterMark,
    /// Clock of the last arrival; before the first, as long ago as the interval can hold.
    last: u64,
    sum: i64,
}

/// Result of one arrival: the registers' values and the mark decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// I, the clocks since the previous arrival.
    pub interval: u64,
    /// R·I, the bytes that the port can send in that interval [2⁻²⁰ B].
    pub sendable: i64,
    /// The sum with this packet, before a mark is subtracted [2⁻²⁰ B].
    pub added: i64,
    /// The sum after this packet [2⁻²⁰ B].
    pub sum: i64,
    /// True if the slope asks for a mark.
    pub mark: bool,
}

impl Registers {
    /// Registers of a port that sends `rate` \[2⁻²⁰ B per clock\], before the first packet; `credit` \[B\].
    pub fn new(rate: u64, credit: u32, after_mark: AfterMark) -> Self {
        Registers { rate, floor: -(i64::from(credit) << FRACTION), after_mark, last: 0u64.wrapping_sub(LONGEST), sum: 0 }
    }

    /// R, the port's rate [2⁻²⁰ B per clock].
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// The present sum [2⁻²⁰ B].
    pub fn sum(&self) -> i64 {
        self.sum
    }

    /// Updates the registers for a packet of `wire` bytes, preamble and gap included, that arrives at `clock`. `markable`: a
    /// packet that cannot carry a mark leaves the sum at R·I at most, so that the next one that can is marked.
    #[inline(always)]
    pub fn on_arrival(&mut self, clock: u64, wire: u32, markable: bool) -> Step {
        let interval = clock.wrapping_sub(self.last).min(LONGEST);
        self.last = clock;
        let sendable = (self.rate * interval) as i64;
        let arrived = i64::from(wire) << FRACTION;
        let added = (self.sum + arrived - sendable).max(self.floor);
        let mark = arrived > sendable && added > sendable;
        self.sum = match (mark, markable, self.after_mark) {
            (false, ..) => added,
            // It waits for the next packet that can be marked, and no more than that.
            (true, false, _) => sendable,
            (true, true, AfterMark::Subtract) => (added - sendable).min(sendable),
            (true, true, AfterMark::Reset) => 0,
        };
        Step { interval, sendable, added, sum: self.sum, mark }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 125 B per clock a packet of 250 B every clock is twice the rate: every one after the first is marked; one every three
    /// clocks is below it: none is.
    #[test]
    fn twice_the_rate_is_marked_and_less_than_the_rate_is_not() {
        let marks = |every: u64| {
            let mut registers = Registers::new(125 << FRACTION, 0, AfterMark::Subtract);
            (1..=100).filter(|i| registers.on_arrival(i * every, 250, true).mark).count()
        };
        assert_eq!((marks(1), marks(3)), (98, 0));
    }

    /// Registers by hand at 125 B per clock, each arrival: interval, R·I, sum with the packet, sum, mark.
    #[test]
    fn arrivals_add_what_the_port_could_not_send() {
        let byte = 1_i64 << FRACTION;
        let mut registers = Registers::new(125 << FRACTION, 500, AfterMark::Subtract);
        assert_eq!((registers.rate(), registers.sum()), (125 << FRACTION, 0));
        let first = registers.on_arrival(1_000, 1_500, true);
        assert_eq!((first.interval, first.sum, first.mark), (LONGEST, -500 * byte, false), "the credit, after a long time");
        for (clock, wire, markable, sendable, added, sum, mark) in [
            (1_004, 1_500, true, 500, 500, 500, false), // −500 + 1500 − 500 = R·I, which is not above it
            (1_008, 1_501, true, 500, 1_501, 500, true), // 1501 − 500 = 1001, R·I at most
            (1_010, 250, true, 250, 500, 500, false),   // no more than the port sends, however large the sum
            (1_014, 700, true, 500, 700, 200, true),    // 700 − 500
            (1_018, 1_400, false, 500, 1_100, 500, true), // cannot be marked: it waits for the next
            (1_022, 501, true, 500, 501, 1, true),      // is marked for it
            (1_062, 1_500, true, 5_000, -500, -500, false), // 1 + 1500 − 5000, not below the credit
        ] {
            let step = registers.on_arrival(clock, wire, markable);
            let expected = (sendable * byte, added * byte, sum * byte, mark);
            assert_eq!((step.sendable, step.added, step.sum, step.mark), expected, "{clock}");
            assert_eq!((step.interval, registers.sum()), (sendable as u64 / 125, step.sum), "{clock}");
        }
    }

    /// With a reset nothing of the sum is left after a mark, also where it was more than twice R·I.
    #[test]
    fn a_mark_may_reset_the_sum() {
        let mut registers = Registers::new(125 << FRACTION, 0, AfterMark::Reset);
        registers.on_arrival(0, 1_500, true);
        let step = registers.on_arrival(4, 1_500, true);
        assert_eq!((step.added, step.sum, step.mark), (1_000 << FRACTION, 0, true));
        let step = registers.on_arrival(8, 1_500, false);
        assert_eq!((step.sum, step.mark), (500 << FRACTION, true));
    }

    /// Clocks wrap around, and an interval is the longest at most.
    #[test]
    fn clocks_wrap_around() {
        assert_eq!((LONGEST, FRACTION), (0x00ff_ffff, 20), "24 bits, and as the vectors have it");
        let mut registers = Registers::new(1, 0, AfterMark::Subtract);
        registers.on_arrival(u64::MAX - 1, 1, true);
        assert_eq!(registers.on_arrival(3, 1, true).interval, 5);
        assert_eq!([LONGEST, LONGEST + 1].map(|gap| registers.clone().on_arrival(3 + gap, 1, true).interval), [LONGEST; 2]);
    }
}
