//! One port, record by record.

use crate::{Disorder, FlowLookup, PortReport, Record, Settings};

/// Analysis of one port: records in order of time, then the report.
pub struct PortAnalyzer;

impl PortAnalyzer {
    /// Settings must have no [problems](Settings::problems).
    ///
    /// # Panics
    /// On settings with problems.
    pub fn new(_settings: &Settings, _port: &str, _flows: FlowLookup) -> Self {
        PortAnalyzer
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// A record earlier than the one before; the record is not taken, and the analysis may go on.
    pub fn push(&mut self, _record: &Record) -> Result<(), Disorder> {
        todo!("in the making")
    }

    /// The report.
    pub fn finish(self) -> PortReport {
        todo!("in the making")
    }
}
