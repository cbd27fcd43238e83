//! The seam between formats and the analysis: a reader hands over batches of records.

use super::context::Context;
use super::problem::Problems;
use crate::checks::Finding;
use crate::counters::Reading;
use crate::{Record, Sample};
use fanin_units::Time;

/// Rows that a reader hands over at once, at most.
pub const BATCH: usize = 1 << 14;

/// The wait of a packet that was dropped and never left.
pub const NO_WAIT: u64 = u64::MAX;

/// A file that is being read.
pub trait TraceReader: Send {
    /// Reads on; false at the end, where the batch is empty. A batch may be empty before the end.
    ///
    /// # Errors
    /// Everything that is wrong with the file.
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems>;
    /// Name of a row in messages, for example `line 17`.
    fn place(&self, row: u64) -> String;
    /// True if a stream that ended here would have lost nothing: no record has come in part.
    fn is_between(&self) -> bool {
        true
    }
    /// Bytes that have been taken and are no whole record yet.
    fn unread(&self) -> u64 {
        0
    }
    /// True if no more can be read after an error: what comes behind it cannot be told apart.
    fn is_lost(&self) -> bool {
        false
    }
    /// Share of the file that has been read.
    fn progress(&self) -> f64;
    /// Ports under whose names it has seen several sources mixed up to now; [`TraceReader::finish`] adds them to the context.
    fn mixed(&self) -> Vec<u32> {
        Vec::new()
    }
    /// Findings up to now that are its own, and that [`TraceReader::finish`] adds to the context.
    fn findings(&self, _context: &Context) -> Vec<Finding> {
        Vec::new()
    }
    /// Notes and findings that are known only at the end.
    fn finish(&mut self, context: &mut Context);
}

/// Records with their ports, in the order of the file; or readings of counters.
#[derive(Debug, Default)]
pub struct Batch {
    pub records: Vec<Record>,
    /// Readings of counters and their ports; where there are any, there are no records.
    pub readings: Vec<(u32, Reading)>,
    /// Port of each record: its index in `Ports`.
    pub ports: Vec<u32>,
    /// The first row of the batch, counted from 0.
    pub first_row: u64,
    /// Wait of each record [ps], [`NO_WAIT`] where it was dropped; empty where waits are not measured.
    pub waits: Vec<u64>,
    /// Row of each record after `first_row`; empty where no row was passed over.
    pub rows: Vec<u32>,
}

impl Batch {
    /// Adds a packet of a port; `row`: its row after `first_row`.
    #[inline]
    pub fn packet(&mut self, record: Record, port: u32, row: u32) {
        self.records.push(record);
        self.ports.push(port);
        self.rows.push(row);
    }

    /// Adds a sample of a port's queue; `row`: its row after `first_row`.
    pub fn sample(&mut self, sample: &Sample, port: u32, row: u32) {
        sample.records().for_each(|record| self.packet(record, port, row));
    }

    /// Number of records or readings.
    #[inline]
    pub fn len(&self) -> usize {
        self.records.len().max(self.readings.len())
    }

    /// Time of a record or a reading, by which files are merged.
    #[inline]
    pub fn time(&self, index: usize) -> Option<Time> {
        let reading = || self.readings.get(index).map(|(_, reading)| reading.time());
        self.records.get(index).map(|record| record.time).or_else(reading)
    }

    pub fn clear(&mut self) {
        self.readings.clear();
        self.records.clear();
        self.ports.clear();
        self.rows.clear();
        self.waits.clear();
    }

    /// The row of a record, counted from 1.
    pub fn row(&self, index: usize) -> u64 {
        let offset = self.rows.get(index).map_or(index as u64, |row| u64::from(*row));
        self.first_row + offset + 1
    }
}
