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

/// An instant of simulated time: picoseconds since the start of the run, at most 2^64 ps (213 days).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// The latest representable instant, used for "never".
    pub const MAX: Time = Time(u64::MAX);

    /// The instant `ps` picoseconds after the start of the run.
    #[inline(always)]
    pub const fn from_ps(ps: u64) -> Self {
        Time(ps)
    }

    /// Picoseconds since the start of the run.
    #[inline(always)]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Seconds since the start of the run as a float; for people and plots only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// Time elapsed since `earlier`; zero if `earlier` is later than `self`.
    #[inline(always)]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, or `Time::MAX` on overflow.
    #[inline(always)]
    pub const fn saturating_add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// The span of zero length.
    pub const ZERO: Span = Span(0);
    /// The longest representable span, used for "never".
    pub const MAX: Span = Span(u64::MAX);

    /// The span of `ps` picoseconds.
    #[inline(always)]
    pub const fn from_ps(ps: u64) -> Self {
        Span(ps)
    }

    /// The span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Span(ns * 1_000)
    }

    /// The span of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Span(us * 1_000_000)
    }

    /// The span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Span(ms * 1_000_000_000)
    }

    /// The span of `s` seconds.
    pub const fn from_s(s: u64) -> Self {
        Span(s * 1_000_000_000_000)
    }

    /// The span of `s` seconds, rounded to a picosecond; negative and NaN give zero, overflow saturates.
    pub fn from_secs_f64(s: f64) -> Self {
        Span(libm::round(s * 1e12) as u64)
    }

    /// This span in picoseconds.
    #[inline(always)]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// This span in seconds as a float; for people and plots only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// `self * n`, or `Span::MAX` on overflow.
    pub const fn saturating_mul(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }

    /// This span times `factor`, rounded to a picosecond.
    pub fn scale(self, factor: f64) -> Span {
        Span(libm::round(self.0 as f64 * factor) as u64)
    }

    /// This span rounded up to a multiple of `grain`; unchanged if `grain` is zero.
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
