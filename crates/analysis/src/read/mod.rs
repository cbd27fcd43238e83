//! Traces from files: result folders, tables, captures. Streaming, in bounded memory, whatever the files hold.
//!
//! docs/analyze.md is the contract.

mod context;
mod csv;
mod guard;
mod lines;
mod mapped;
mod mapping;
mod notices;
mod number;
mod options;
mod order;
mod packets;
mod problem;
mod source;
mod stamps;
mod table;
#[cfg(test)]
mod tests;
mod texts;
mod trace;
mod window;

pub use mapping::Mapping;
pub use options::{By, Options};
pub use problem::{Problem, Problems};
pub use source::Kind;
pub use trace::{analyze, records, Control, Failure, Observer, Progress, SourceReport, TraceReport};
pub use window::Records;

use context::{Batch, Context};

/// A file that is being read.
trait TraceReader {
    /// Reads on; false at the end, where the batch is empty. A batch may be empty before the end.
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems>;
    /// How a row is called in messages.
    fn place(&self, row: u64) -> String;
    /// Share of the file that has been read.
    fn progress(&self) -> f64;
    /// Says at the end what is to be said.
    fn finish(&mut self, context: &mut Context);
}
