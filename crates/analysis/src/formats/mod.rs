//! Formats of traces: a registry. A format recognises its files, finds out facts about one, and opens it as batches of records.
//!
//! A new format is one file here that implements [`Format`], a line in [`FORMATS`], and a page in docs/formats.

mod arrow;
mod capture;
mod columns;
mod csv;
mod feeds;
mod flows;
mod json;
mod mapping;
mod parquet;
mod result;
mod samples;
mod stamps;
mod tc;
mod text;

pub use self::arrow::{is_schema, message_length};
pub use self::csv::has_values;
pub use self::feeds::captured::{received, RECEIVED};
pub use self::feeds::ipfix::is_whole as is_ipfix;
pub use self::feeds::netflow::{is_version_9 as is_netflow, PORT as NETFLOW_PORT};
pub use self::feeds::sflow::{is_datagram as is_sflow, PORT as SFLOW_PORT};
pub use self::parquet::rows as parquet_rows;
pub use flows::learn_flows;
pub use mapping::Mapping;

/// Wrong values of a file that are reported one by one, at most.
pub const REPORTED: usize = 20;

/// Note on dates that say no zone.
pub const UNZONED: &str = "its dates have no time zone and are taken as UTC";

use crate::capture::CaptureFile;
use crate::input::at::Found;
use crate::input::context::Context;
use crate::input::facts::Facts;
use crate::input::file::{Packing, Place, SourceFile};
use crate::input::problem::{Problem, Problems};
use crate::input::reader::TraceReader;

/// Formats in the order in which they are asked. CSV takes any text, so formats of text stand before it.
pub const FORMATS: &[&dyn Format] = &[
    // Folders.
    &result::ResultFolder,
    // Columns.
    &parquet::Parquet,
    &arrow::Arrow,
    // Streams of telemetry; sFlow also in captures, of which it is what the first packet carries.
    &feeds::sflow::SFLOW,
    &feeds::int_reports::REPORTS,
    &feeds::lanz::STREAM,
    &feeds::netflow::NETFLOW,
    &feeds::ipfix::SONIC,
    &feeds::otlp::PROTOBUF,
    // Captures.
    &capture::Pcap,
    &capture::PcapNg,
    // Text.
    &feeds::lanz::TABLE,
    &feeds::nxos::TABLE,
    &feeds::nxos::JSON,
    &feeds::bst::BST,
    &feeds::timed::SNMP,
    &feeds::timed::ETHTOOL,
    &feeds::pfc::HISTORY,
    &feeds::otlp::JSON,
    &feeds::gnmi::GNMI,
    &feeds::millisampler::MILLISAMPLER,
    &tc::Tc,
    &json::JsonLines,
    &csv::Csv,
];

/// The beginning of a file or a folder, by which formats recognise theirs.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    Folder,
    /// The first bytes of a file, some hundred, unpacked.
    Bytes(&'a [u8]),
}

impl Start<'_> {
    /// The bytes of a file; none of a folder.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Start::Folder => &[],
            Start::Bytes(bytes) => bytes,
        }
    }
}

/// Time of which a source tells while it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tells {
    /// Every stretch: where nothing comes, nothing is known.
    #[default]
    All,
    /// Events alone: silence says that the queue is below a threshold.
    Events,
    /// None before its end: records come by queue, not by time; with words for what this is.
    AtEnd(&'static str),
}

/// A format of traces.
pub trait Format: Sync {
    /// Name of the format in reports, and of its page, docs/formats/NAME.md, which tells of all its forms.
    fn name(&self) -> &'static str;

    /// Name of the format in messages.
    fn title(&self) -> &'static str;

    /// True if a file with this beginning is of the format.
    fn recognises(&self, start: Start<'_>) -> bool;

    /// True if a file may be packed with gzip or zstd. Columns cannot: they are not read in order.
    fn may_be_packed(&self) -> bool {
        true
    }

    /// True for telemetry that a source streams: what a message means may be in those before it.
    fn is_feed(&self) -> bool {
        false
    }

    /// Time of which a source tells while it goes on.
    fn tells(&self) -> Tells {
        Tells::All
    }

    /// True if the first line or message of a stream says what the rows of files after it hold, too.
    fn is_header(&self, _first: &[u8]) -> bool {
        false
    }

    /// Finds out facts about a file; `mapping` is the user's choice of its columns.
    ///
    /// # Errors
    /// Everything that is wrong with the file, or with the mapping.
    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems>;
}

/// Rows that can be read from the start, as often as they are opened.
pub trait OpenRows: Send + Sync {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// It cannot be opened any more.
    fn open(&self, file: &SourceFile) -> Result<Box<dyn TraceReader>, Problems>;
}

/// A file of rows, and the facts that are known of it.
pub struct RowsFile {
    pub file: SourceFile,
    pub facts: Facts,
    /// Notes for the report.
    pub notes: Vec<String>,
    pub rows: Box<dyn OpenRows>,
}

impl RowsFile {
    /// Opens the rows for reading from the start.
    ///
    /// # Errors
    /// They cannot be opened any more.
    pub fn open(&self, context: &mut Context) -> Result<Box<dyn TraceReader>, Problems> {
        let file = self.file.path.display();
        for note in &self.notes {
            context.note(format!("{file}: {note}"));
        }
        self.rows.open(&self.file)
    }
}

/// A file that has been inspected.
pub enum Inspected {
    Rows(Box<RowsFile>),
    /// A capture, which is surveyed before its packets are records.
    Capture(Box<CaptureFile>),
}

/// Files that are often met in the place of a trace.
const STRANGERS: [(&[u8], &str); 7] = [
    (&[0xff, 0xfe], "is text in UTF-16: write it in UTF-8, for example with iconv -f UTF-16 -t UTF-8"),
    (&[0xfe, 0xff], "is text in UTF-16: write it in UTF-8, for example with iconv -f UTF-16 -t UTF-8"),
    (&[0xfd, 0x37, 0x7a, 0x58], "is compressed with xz: unpack it first"),
    (&[0x42, 0x5a, 0x68], "is compressed with bzip2: unpack it first"),
    (&[0x04, 0x22, 0x4d, 0x18], "is compressed with lz4: unpack it first"),
    (b"PK\x03\x04", "is a zip archive: unpack it first"),
    (b"[", "is one JSON list: write each of its objects in a line, for example with jq -c '.[]'"),
];

/// True for a byte that is in no text, whatever its encoding: control characters but for tabs and ends of lines and pages.
fn is_no_text(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c)
}

/// True if a text with this beginning is a table, as far as its first bytes show.
fn is_plain_text(start: &[u8]) -> bool {
    !STRANGERS.iter().any(|(first, _)| start.starts_with(first)) && !start.iter().any(|byte| is_no_text(*byte))
}

/// Names of all formats, for messages and help.
pub fn titles() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.title()).collect()
}

/// Names of all formats, by which the user says one.
pub fn names() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name()).collect()
}

/// True if a stream with this beginning is telemetry, and whether its messages are lines.
pub fn feed(start: &[u8]) -> (bool, bool) {
    let format = FORMATS.iter().find(|format| format.recognises(Start::Bytes(start)));
    (format.is_some_and(|format| format.is_feed()), is_plain_text(start))
}

/// Time of which a source of the format with this name tells.
pub fn tells(name: &str) -> Tells {
    of_name(name).map_or(Tells::All, Format::tells)
}

/// True if the first line or message of a stream of the format with this name says what the rows of files after it hold, too.
pub fn is_header(name: &str, first: &[u8]) -> bool {
    of_name(name).is_some_and(|format| format.is_header(first))
}

fn of_name(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}

/// True if bytes are text.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.is_empty() && !bytes.iter().any(|byte| is_no_text(*byte))
}

/// Formats that are accepted, for messages.
fn accepted() -> String {
    format!("{}; text and captures also with gzip or zstd", titles().join(", "))
}

/// Finds out the format of a file, and facts about it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn inspect(place: &Place, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
    let path = place.shown.as_path();
    let found = place.shelf.0.find(&place.path).map_err(|e| {
        let message = if e.kind() == std::io::ErrorKind::NotFound { "there is no such file".into() } else { e.to_string() };
        Problem::new(message).file(path)
    })?;
    let mut file = SourceFile::new(place, if let Found::File(size) = found { size } else { 0 });
    let mut bytes = Vec::new();
    if let Found::File(_) = found {
        bytes = file.start()?;
        if bytes.is_empty() {
            let problem = Problem::new("is empty: nothing was written to it").file(path);
            return Err(problem.suggestion("was what should write it stopped at once, or without the right to capture?").into());
        }
        file.packing = Packing::of(&bytes);
        if file.packing != Packing::Plain {
            bytes = file.start()?;
            if bytes.is_empty() {
                return Err(Problem::new(format!("has nothing in its {} data", file.packing.name())).file(path).into());
            }
        }
    } else if found != Found::Folder {
        return Err(Problem::new("is neither a file nor a folder").file(path).accepted(accepted()).into());
    }
    // A short text may end in zeros, as a loss of power leaves it.
    let text = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if text < bytes.len() && bytes[..text].contains(&b'\n') && is_plain_text(&bytes[..text]) {
        bytes.truncate(text);
    }
    let start = if found == Found::Folder { Start::Folder } else { Start::Bytes(&bytes) };
    let is_it = |format: &&&dyn Format| match place.format {
        Some(name) => format.name() == name,
        None => format.recognises(start),
    };
    let Some(format) = FORMATS.iter().find(is_it) else {
        return Err(unknown(&bytes).file(path).accepted(accepted()).into());
    };
    if file.packing != Packing::Plain && !format.may_be_packed() {
        let what = format!("is {} inside {}: unpack it first", format.title(), file.packing.name());
        return Err(Problem::new(what).file(path).into());
    }
    format.inspect(file, mapping)
}

/// A file that no format recognises.
fn unknown(bytes: &[u8]) -> Problem {
    if let Some((_, what)) = STRANGERS.iter().find(|(first, _)| bytes.starts_with(first)) {
        return Problem::new(*what);
    }
    let start: String = bytes.iter().take(8).map(|byte| format!(" {byte:02x}")).collect();
    Problem::new(format!("is of no kind that is known, and no text: it begins with the bytes{start}"))
}

/// Names the file in problems that do not.
fn in_file(problems: Problems, file: &SourceFile) -> Problems {
    problems.into_iter().map(|p| if p.file.is_none() { p.file(&file.path) } else { p }).collect()
}

#[cfg(test)]
mod tests {
    use super::FORMATS;
    use std::path::Path;

    #[test]
    fn each_format_has_a_name_of_its_own_and_a_page() {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats");
        let mut names: Vec<String> = FORMATS.iter().map(|format| format!("{}.md", format.name())).collect();
        for name in &names {
            let text = std::fs::read_to_string(pages.join(name)).unwrap_or_else(|e| panic!("docs/formats/{name}: {e}"));
            assert!(text.starts_with("# "), "docs/formats/{name} has no title");
        }
        names.sort();
        let there = std::fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut there: Vec<String> = there.collect();
        there.sort();
        assert_eq!(names, there, "formats and pages");
    }
}
