//! Traces from files: result folders, tables, captures. Streaming, in bounded memory, whatever the files hold.
//!
//! docs/analyze.md is the contract.

mod aim;
mod arrow;
#[cfg(test)]
mod arrow_tests;
mod buffers;
#[cfg(test)]
mod captures_tests;
mod chains;
mod connections;
mod context;
mod csv;
mod direction;
mod export;
mod flat;
mod frame_checks;
mod guard;
mod input;
mod json;
mod lindley;
mod line_check;
mod lines;
mod links;
mod mapped;
mod mapping;
mod moment;
mod notices;
mod number;
mod options;
mod order;
mod packets;
mod pair;
mod parquet;
mod plausibility;
mod problem;
mod record_checks;
mod schema;
mod sides;
mod source;
mod stamps;
mod survey;
mod table;
#[cfg(test)]
mod table_tests;
mod taken;
#[cfg(test)]
mod tests;
mod text;
#[cfg(test)]
mod text_tests;
mod texts;
mod trace;
mod window;

pub use aim::{Aim, Target};
pub use export::export;
pub use lindley::{Buffer, EstimateError, EstimateReport};
pub use mapping::Mapping;
pub use moment::Dated;
pub use options::{By, Options};
pub use pair::{ClockReport, FlowWait, LeftOut, Match, PairReport, WaitReport};
pub use plausibility::{Finding, Level, Plausibility, Trust};
pub use problem::{Problem, Problems};
pub use source::Kind;
pub use taken::{Stream, Taken};
pub use trace::{analyze, records, Control, Failure, Observer, Progress, SourceReport, TraceReport};
pub use window::Records;

use context::{Batch, Context};

/// Rows of a Parquet file, as its footer says.
///
/// # Errors
/// It cannot be opened, or is damaged.
pub fn parquet_rows(path: &std::path::Path) -> Result<u64, Problem> {
    Ok(parquet::ParquetFile::open(&input::Place::of(path))?.num_rows())
}

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
