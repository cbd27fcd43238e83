//! Sizes in bytes, and amounts of buffer in bytes, packets or cells.

use crate::quantity::{write_scaled, Quantity, QuantityError};
use std::ops::{Add, AddAssign, Sub};

const UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("bytes", 1),
    ("byte", 1),
];

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// The number of bytes.
    #[inline(always)]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// This size in bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_scaled(f, self.0, &UNITS[..5])
    }
}

impl Quantity for Bytes {
    const WHAT: &'static str = "a size";
    const EXAMPLES: &'static str = "\"1500B\", \"512KB\" (1000), \"64KiB\" (1024)";
    const UNITS: &'static [(&'static str, u64)] = UNITS;
    fn from_base(steps: u64) -> Self {
        Bytes(steps)
    }
}

/// An amount of buffer, in the unit in which the switch accounts for its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Amount {
    /// Buffer counted in frame bytes.
    Bytes(u64),
    /// Buffer counted in packets of any size.
    Packets(u64),
    /// Buffer counted in cells of the switch's cell size; a packet occupies a whole number of them.
    Cells(u64),
}

impl Amount {
    /// The number in front of the unit, in whichever unit the amount has.
    pub const fn count(self) -> u64 {
        match self {
            Self::Bytes(n) | Self::Packets(n) | Self::Cells(n) => n,
        }
    }

    /// Parses an amount such as `512KB`, `65 packets` or `20000 cells`.
    ///
    /// # Errors
    /// As for [`Quantity::read`].
    pub fn read(text: &str) -> Result<Self, QuantityError> {
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '_')).unwrap_or(trimmed.len());
        let number = trimmed[..split].replace('_', "");
        let of = |make: fn(u64) -> Self| {
            number.parse().map(make).map_err(|_| if number.is_empty() { QuantityError::Syntax } else { QuantityError::TooLarge })
        };
        match trimmed[split..].trim() {
            "packets" | "packet" | "pkts" | "p" => of(Self::Packets),
            "cells" | "cell" => of(Self::Cells),
            _ => Bytes::read(text).map(|b| Self::Bytes(b.0)),
        }
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(n) => Bytes(*n).fmt(f),
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Cells(n) => write!(f, "{n} cells"),
        }
    }
}
