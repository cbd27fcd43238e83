//! Bit rates, and the only conversion between bytes and time.

use crate::quantity::{write_scaled, Quantity};
use crate::{Bytes, Span};

const UNITS: &[(&str, u64)] = &[
    ("bps", 1),
    ("Kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("Tbps", 1_000_000_000_000),
    ("b/s", 1),
    ("kb/s", 1_000),
    ("Kb/s", 1_000),
    ("Mb/s", 1_000_000),
    ("Gb/s", 1_000_000_000),
    ("Tb/s", 1_000_000_000_000),
    ("kbps", 1_000),
];

/// Conversion factor of serialisation time: 8 bits per byte times 10^12 ps per second.
const BIT_PS: u64 = 8 * 1_000_000_000_000;

/// One byte per picosecond in bits per second; converts slopes and rates that are fitted, not counted.
pub const BPS: f64 = BIT_PS as f64;

/// A bit rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BitRate(pub u64);

impl BitRate {
    /// The rate of `gbps` gigabits per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        BitRate(gbps * 1_000_000_000)
    }

    /// The rate of `mbps` megabits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        BitRate(mbps * 1_000_000)
    }

    /// The rate in bits per second.
    #[inline(always)]
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// This rate times `factor`, rounded to a bit per second.
    pub fn scale(self, factor: f64) -> BitRate {
        BitRate(libm::round(self.0 as f64 * factor) as u64)
    }

    /// Serialisation time of `size` at this rate, rounded up to a picosecond; `Span::MAX` at rate zero or on overflow.
    pub fn time_to_send(self, size: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        let ps = (u128::from(size.0) * u128::from(BIT_PS)).div_ceil(u128::from(self.0));
        Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// Bytes sent in `span` at this rate, rounded down.
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.ps()) / u128::from(BIT_PS);
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Mean rate of `size` bytes over `span`; zero if `span` is zero.
    pub fn of(size: Bytes, span: Span) -> BitRate {
        if span.ps() == 0 {
            return BitRate(0);
        }
        let bps = u128::from(size.0) * u128::from(BIT_PS) / u128::from(span.ps());
        BitRate(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

impl std::fmt::Display for BitRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_scaled(f, self.0, &UNITS[..5])
    }
}

impl Quantity for BitRate {
    const WHAT: &'static str = "a bit rate";
    const EXAMPLES: &'static str = "\"10Gbps\", \"400 Gb/s\", \"100Mbps\"";
    const UNITS: &'static [(&'static str, u64)] = UNITS;
    fn from_base(steps: u64) -> Self {
        BitRate(steps)
    }
}

/// Serialisation times at one rate, precomputed for the inner loop: one multiplication where the rate allows it.
///
/// Exact at every rate that divides 8·10^12 bit·ps (10 Mb/s … 1.6 Tb/s in all common steps); rounds up elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireClock {
    ps_per_byte: u64,
    inexact_rate: u64,
}

impl WireClock {
    /// Precomputes the serialisation time of a byte at `rate`.
    ///
    /// # Panics
    /// At rate zero, which scenario validation refuses.
    pub fn new(rate: BitRate) -> Self {
        assert!(rate.0 > 0, "a link of rate zero");
        if BIT_PS % rate.0 == 0 {
            WireClock { ps_per_byte: BIT_PS / rate.0, inexact_rate: 0 }
        } else {
            WireClock { ps_per_byte: 0, inexact_rate: rate.0 }
        }
    }

    /// Serialisation time of `wire_bytes`, rounded up to a picosecond.
    #[inline(always)]
    pub fn tx(&self, wire_bytes: u32) -> Span {
        if self.inexact_rate == 0 {
            Span::from_ps(u64::from(wire_bytes) * self.ps_per_byte)
        } else {
            BitRate(self.inexact_rate).time_to_send(Bytes(u64::from(wire_bytes)))
        }
    }
}
