//! Targets of hostile bytes, and conditions on each answer: no panic, no hang, no memory that a length field asks for, and
//! nothing that contradicts itself.
//!
//! `make fuzz` looks for such bytes, guided by coverage; the tests of this crate run what it has found, and some more.

mod frames;
mod live;
mod traces;

/// A fuzz target: a reader of files or frames that others wrote.
pub struct Target {
    pub name: &'static str,
    /// Reader of bytes, which panics when a condition on its answer fails.
    pub run: fn(&[u8]),
    /// Longest input that is tried, and the most that may be allocated at once [bytes].
    pub longest: usize,
    pub allocation: usize,
}

/// All fuzz targets. A capture's reader holds one block and doubles its buffer; pages of Parquet may unpack to 256 MiB, and so
/// may texts of Arrow, in a buffer that doubles.
pub const TARGETS: [Target; 12] = [
    Target { name: "notification", run: frames::notification, longest: 256, allocation: 1 << 20 },
    Target { name: "frame", run: frames::frame, longest: 2_048, allocation: 1 << 20 },
    Target { name: "stamp", run: frames::stamp, longest: 1_024, allocation: 1 << 20 },
    Target { name: "capture", run: frames::capture, longest: 16_384, allocation: 2 << 20 },
    Target { name: "packets", run: traces::packets, longest: 16_384, allocation: 32 << 20 },
    Target { name: "pair", run: traces::pair, longest: 16_384, allocation: 32 << 20 },
    Target { name: "csv", run: traces::table, longest: 8_192, allocation: 32 << 20 },
    Target { name: "json", run: traces::table, longest: 8_192, allocation: 32 << 20 },
    Target { name: "feed", run: traces::feed, longest: 8_192, allocation: 32 << 20 },
    Target { name: "live", run: live::stream, longest: 8_192, allocation: 32 << 20 },
    Target { name: "arrow", run: traces::table, longest: 32_768, allocation: 600 << 20 },
    Target { name: "parquet", run: traces::table, longest: 32_768, allocation: 300 << 20 },
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
