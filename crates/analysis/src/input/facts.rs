//! Facts that a format finds out about a file before the file is read.

use super::manifest::Manifest;
use crate::checks::Finding;
use crate::Fates;
use fanin_telemetry::Registers;
use fanin_units::{BitRate, Bytes, Span};

/// Shape of a file's contents, as far as messages and checks depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A table of a result, whose columns are known.
    Result,
    /// Stamps of a switch's registers, as receivers saw them.
    Stamps,
    /// Samples of queues, without packets.
    Samples,
    /// Counters and watermarks of intervals.
    Counters,
    /// Typed columns that are mapped.
    Columns,
    /// Rows of text, of which many may be wrong.
    Text,
    /// Captured packets.
    Capture,
}

/// Facts about a file.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Name of the format in the report.
    pub kind: &'static str,
    pub shape: Shape,
    /// The records know the queue.
    pub has_queue: bool,
    /// Fates of packets that the records tell.
    pub fates: Fates,
    /// The records are in order of time.
    pub in_order: bool,
    /// Earliest of the first times, on the clock of the file [ps]; None: the file is empty.
    pub first: Option<u128>,
    /// Speed of the captured interface.
    pub speed: Option<BitRate>,
    /// Tick and unit of stamps.
    pub registers: Option<Registers>,
    /// Step of the times, where they are whole numbers of microseconds or more.
    pub tick: Span,
    /// Step of the queue lengths, where they are whole numbers of cells, packets or kilobytes.
    pub unit: Bytes,
    pub manifest: Option<Manifest>,
    /// True if a column may hold a running total instead of a value of each packet: this is checked.
    pub may_hold_totals: bool,
    /// Choice of a column that would say the speed of each port.
    pub speed_choice: Option<String>,
    /// Doubts about how columns are read.
    pub doubts: Vec<Finding>,
}

impl Facts {
    /// Facts of a file that has not been inspected.
    pub fn of(kind: &'static str, shape: Shape) -> Facts {
        Facts {
            kind,
            shape,
            has_queue: true,
            fates: Fates::ALL,
            in_order: false,
            first: None,
            speed: None,
            registers: None,
            tick: Span::ZERO,
            unit: Bytes(1),
            manifest: None,
            may_hold_totals: false,
            speed_choice: None,
            doubts: Vec::new(),
        }
    }

    pub fn is_capture(&self) -> bool {
        self.shape == Shape::Capture
    }
}
