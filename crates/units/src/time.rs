//! Simulated time in picoseconds.

use crate::quantity::{write_scaled, Quantity};
use std::ops::{Add, AddAssign, Div, Mul, Sub};

const UNITS: &[(&str, u64)] = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
    ("µs", 1_000_000),
    ("min", 60_000_000_000_000),
];

/// An instant: picoseconds since the start of the run. 2^64 ps are 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than everything: "never".
    pub const MAX: Time = Time(u64::MAX);

    /// From picoseconds since the start.
    #[inline(always)]
    pub const fn from_ps(ps: u64) -> Self {
        Time(ps)
    }

    /// Picoseconds since the start.
    #[inline(always)]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Seconds since the start; for people and plots only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// `self - earlier`, zero when `earlier` is later.
    #[inline(always)]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, `Time::MAX` when that does not fit.
    #[inline(always)]
    pub const fn saturating_add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// No time.
    pub const ZERO: Span = Span(0);
    /// The longest span: "never".
    pub const MAX: Span = Span(u64::MAX);

    /// From picoseconds.
    #[inline(always)]
    pub const fn from_ps(ps: u64) -> Self {
        Span(ps)
    }

    /// From nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Span(ns * 1_000)
    }

    /// From microseconds.
    pub const fn from_us(us: u64) -> Self {
        Span(us * 1_000_000)
    }

    /// From milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Span(ms * 1_000_000_000)
    }

    /// From seconds.
    pub const fn from_s(s: u64) -> Self {
        Span(s * 1_000_000_000_000)
    }

    /// From seconds, rounded to the nearest picosecond; negative and NaN give zero, too large saturates.
    pub fn from_secs_f64(s: f64) -> Self {
        Span(libm::round(s * 1e12) as u64)
    }

    /// Picoseconds.
    #[inline(always)]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Whole milliseconds, rounded down (the tick of the TCP timestamp clock).
    pub const fn whole_ms(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// `self * n`, `Span::MAX` when that does not fit.
    pub const fn saturating_mul(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }

    /// Scaled by a factor, rounded to the nearest picosecond.
    pub fn scale(self, factor: f64) -> Span {
        Span(libm::round(self.0 as f64 * factor) as u64)
    }

    /// Rounded up to a multiple of `grain` (`grain` zero: unchanged).
    pub const fn round_up(self, grain: Span) -> Span {
        if grain.0 == 0 {
            self
        } else {
            Span(self.0.div_ceil(grain.0) * grain.0)
        }
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline(always)]
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}
impl AddAssign<Span> for Time {
    #[inline(always)]
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    #[inline(always)]
    fn sub(self, span: Span) -> Time {
        Time(self.0 - span.0)
    }
}
impl Sub for Time {
    type Output = Span;
    #[inline(always)]
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl Add for Span {
    type Output = Span;
    #[inline(always)]
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}
impl Sub for Span {
    type Output = Span;
    #[inline(always)]
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}
impl Mul<u64> for Span {
    type Output = Span;
    #[inline(always)]
    fn mul(self, n: u64) -> Span {
        Span(self.0 * n)
    }
}
impl Div<u64> for Span {
    type Output = Span;
    #[inline(always)]
    fn div(self, n: u64) -> Span {
        Span(self.0 / n)
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_scaled(f, self.0, &UNITS[..5])
    }
}
impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_scaled(f, self.0, &UNITS[..5])
    }
}

impl Quantity for Span {
    const WHAT: &'static str = "a duration";
    const EXAMPLES: &'static str = "\"10us\", \"1.5ms\", \"200ns\"";
    const UNITS: &'static [(&'static str, u64)] = UNITS;
    fn from_base(steps: u64) -> Self {
        Span(steps)
    }
}
impl Quantity for Time {
    const WHAT: &'static str = "an instant";
    const EXAMPLES: &'static str = "\"0s\", \"500ms\", \"1.25s\"";
    const UNITS: &'static [(&'static str, u64)] = UNITS;
    fn from_base(steps: u64) -> Self {
        Time(steps)
    }
}
