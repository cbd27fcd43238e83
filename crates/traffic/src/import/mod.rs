//! Flows from files: each file is read once for checking; its flows then come from memory, or from a second reading during
//! the run.

mod csv_flows;
mod hpcc;
mod htsim;

pub use csv_flows::CsvFlows;
pub use hpcc::HpccFlows;
pub use htsim::{HtsimMatrix, TimeUnit};

use crate::context::{Build, HostNames, LONGEST};
use crate::generate::{Draft, Generate};
use crate::lines::{open, report, FileError};
use crate::list::{Gate, List, Listed, On, Place, Wait};
use fanin_params::{choice, params};
use fanin_units::{HostId, Span, Time};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

impl FlowFile {
    /// Path of the file, relative to the scenario's folder.
    pub fn path(&self) -> &str {
        match self {
            FlowFile::Csv(csv) => &csv.path,
            FlowFile::HpccFlow(hpcc) => &hpcc.path,
            FlowFile::HtsimCm(htsim) => &htsim.path,
        }
    }
}

choice! {
    /// Format and path of a file of flows.
    pub enum FlowFile {
        /// Comma-separated values with a heading.
        "csv" => Csv(CsvFlows),
        /// Flow list of HPCC, `flow.txt`.
        "hpcc_flow" => HpccFlow(HpccFlows),
        /// Connection matrix of htsim, `.cm`.
        "htsim_cm" => HtsimCm(HtsimMatrix),
    }
}

params! {
    /// Flows read from a file.
    pub struct ImportedFlows {
        /// Format and path of the file.
        pub format: FlowFile;
    }
}

/// A flow as a file describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub line: u32,
    pub src: HostId,
    pub dst: HostId,
    pub size: u64,
    pub request: u64,
    pub start: Span,
    pub delay: Span,
    pub class: Option<u8>,
    pub id: Option<Box<str>>,
    pub after: Vec<String>,
    /// htsim only: the trigger that starts the flow, and the triggers that its completion activates.
    pub trigger: Option<u32>,
    pub activates: Vec<u32>,
}

impl Row {
    fn plain(&self) -> bool {
        self.id.is_none() && self.after.is_empty() && self.trigger.is_none() && self.activates.is_empty()
    }

    fn listed(self) -> Listed {
        Listed {
            src: self.src,
            dst: self.dst,
            size: self.size,
            request: self.request,
            start: self.start,
            delay: self.delay,
            class: self.class,
            id: self.id,
            gate: Gate::Open,
        }
    }
}

/// Reader of one file format.
pub(crate) trait Rows: Send {
    /// Reads the next flow. After an erroneous line, the next call continues with the following line.
    fn next_row(&mut self) -> Option<Result<Row, FileError>>;

    /// Finishes reading: returns notes, and the triggers of the file.
    fn finish(&mut self) -> Result<End, Vec<FileError>> {
        Ok(End::default())
    }
}

#[derive(Default)]
pub(crate) struct End {
    pub notes: Vec<String>,
    pub triggers: Vec<htsim::Trigger>,
}

/// Largest number of flows kept in memory. Longer files are read a second time during the run, if they are in order of start
/// and without ids.
pub(crate) const IN_MEMORY: usize = 1_000_000;

/// Arguments for opening the reader of a file, repeatedly.
#[derive(Clone)]
struct Recipe {
    path: PathBuf,
    format: FlowFile,
    hosts: Arc<HostNames>,
}

impl Recipe {
    fn rows(&self) -> Result<Box<dyn Rows>, FileError> {
        rows(&self.format, Box::new(open(&self.path)?), self.hosts.clone())
    }
}

/// Makes the reader of a format.
pub(crate) fn rows(
    format: &FlowFile,
    source: Box<dyn BufRead + Send>,
    hosts: Arc<HostNames>,
) -> Result<Box<dyn Rows>, FileError> {
    Ok(match format {
        FlowFile::Csv(_) => Box::new(csv_flows::Reader::new(source, hosts)?),
        FlowFile::HpccFlow(params) => Box::new(hpcc::Reader::new(source, hosts, params)?),
        FlowFile::HtsimCm(params) => Box::new(htsim::Reader::new(source, hosts, params)),
    })
}

/// Result of the first reading of a file.
pub(crate) struct Checked {
    /// Flows of the file, if they are to be kept.
    pub kept: Option<Vec<Row>>,
    pub count: u64,
    /// Number of flows that start after the end of the run.
    pub late: u64,
    pub end: End,
}

/// Limits on the contents of a file.
pub(crate) struct Limits {
    pub flows: u64,
    /// Largest number of flows that are kept in memory.
    pub in_memory: usize,
    /// Offset of the end of the run: flows that start at or after it are too late.
    pub too_late: Span,
}

/// Reads a whole file: collects errors (up to a limit), and the flows if they fit into memory or must be sorted.
pub(crate) fn check(rows: &mut dyn Rows, limits: &Limits) -> Result<Checked, Vec<FileError>> {
    let Limits { flows: max_flows, in_memory, too_late } = *limits;
    let mut errors = Vec::new();
    let mut kept = Some(Vec::new());
    let (mut count, mut late, mut latest, mut streamable) = (0u64, 0u64, Span::ZERO, true);
    let mut delays = 0u64;
    while let Some(row) = rows.next_row() {
        let row = row.and_then(|row| {
            delays = delays.saturating_add(row.delay.ps());
            let long = [("start", row.start), ("delay", row.delay), ("sum of delays", Span::from_ps(delays))];
            match long.iter().find(|(_, span)| *span > LONGEST) {
                Some((what, span)) => {
                    let message = format!("is a {what} beyond what is simulated");
                    Err(FileError::at(row.line, &span.to_string(), &message, &format!("at most {LONGEST}")))
                }
                None => Ok(row),
            }
        });
        match row {
            Ok(row) => {
                count += 1;
                streamable &= row.plain() && row.start >= latest;
                latest = row.start;
                late += u64::from(row.start >= too_late);
                if count > max_flows {
                    errors.push(FileError::whole("has too many flows", &format!("at most {max_flows} in a run")));
                    break;
                }
                if count > in_memory as u64 {
                    if !streamable {
                        let message =
                            format!("has more than {in_memory} flows that are not in order of start or have ids or dependencies");
                        let error = FileError::at(row.line, "", &message, "a file sorted by start, without ids");
                        errors.push(FileError { value: None, ..error });
                        break;
                    }
                    kept = None;
                }
                if let Some(kept) = &mut kept {
                    kept.push(row);
                }
            }
            Err(error) => errors.push(error),
        }
        if errors.len() >= FileError::MOST {
            break;
        }
    }
    let complete = errors.len() < FileError::MOST && count <= max_flows;
    let end = match rows.finish() {
        Ok(end) => end,
        Err(more) => {
            if complete {
                errors.extend(more);
            }
            End::default()
        }
    };
    if errors.is_empty() && count == 0 {
        errors.push(FileError::whole("has no flow", "at least one"));
    }
    if errors.is_empty() {
        Ok(Checked { kept, count, late, end })
    } else {
        Err(errors)
    }
}

/// Parses a decimal such as `12`, `0.5` or `1e-5` as a number of units of `scale` base steps; rounded to the nearest step.
pub(crate) fn decimal(text: &str, scale: u64) -> Option<u64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let mantissa = mantissa.strip_prefix('+').unwrap_or(mantissa);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 30 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let value = digits.parse::<u128>().ok()?;
    if value == 0 {
        return Some(0);
    }
    let steps = if shift >= 0 {
        value.checked_mul(10u128.checked_pow(u32::try_from(shift).ok()?)?)?.checked_mul(u128::from(scale))?
    } else {
        let Some(divisor) = 10u128.checked_pow(shift.unsigned_abs()) else { return Some(0) };
        let scaled = value.checked_mul(u128::from(scale))?;
        scaled / divisor + u128::from(scaled % divisor >= divisor.div_ceil(2))
    };
    u64::try_from(steps).ok()
}

/// Generator of a file's flows: from memory ([`List`]), or by a second reading.
pub(crate) enum Import {
    List(List),
    Stream(StreamedFile),
}

impl Import {
    pub fn build(build: &mut Build, params: &ImportedFlows) -> Option<Import> {
        let path = params.format.path();
        let recipe =
            Recipe { path: build.ctx.base_dir.join(path), format: params.format.clone(), hosts: build.hosts.by_name.clone() };
        let limits = Limits { flows: build.ctx.max_flows, in_memory: IN_MEMORY, too_late: build.too_late() };
        let checked = recipe.rows().map_err(|error| vec![error]).and_then(|mut rows| check(&mut *rows, &limits));
        let checked = match checked {
            Ok(checked) => checked,
            Err(errors) => {
                report(build, "format.path", path, errors);
                return None;
            }
        };
        build.notes.extend(checked.end.notes.iter().map(|note| format!("{}: {path}: {note}", build.name)));
        if checked.late > 0 {
            let message = format!(
                "has {} of {} flows that would start at or after the end of the run: they never do",
                checked.late, checked.count
            );
            build.warn("format.path", Some(format!("\"{path}\"")), message);
        }
        if let Some(rows) = checked.kept {
            let waits = waits(path, &rows, &checked.end.triggers);
            return Some(Import::List(List::new(rows.into_iter().map(Row::listed).collect(), waits)));
        }
        match recipe.rows() {
            Ok(rows) => Some(Import::Stream(StreamedFile {
                rows,
                path: path.to_string(),
                begin: Time::ZERO,
                next: None,
                count: checked.count,
                given: 0,
                failure: None,
            })),
            Err(error) => {
                report(build, "format.path", path, vec![error]);
                None
            }
        }
    }
}

fn waits(path: &str, rows: &[Row], triggers: &[htsim::Trigger]) -> Vec<Wait> {
    let named = (0u32..).zip(rows).filter(|(_, row)| !row.after.is_empty()).map(|(i, row)| Wait {
        on: On::Names(row.after.clone()),
        targets: vec![i],
        one_by_one: false,
        place: Place::Line(path.to_string(), row.line),
    });
    let mut sources: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut targets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (i, row) in (0u32..).zip(rows) {
        row.activates.iter().for_each(|trigger| sources.entry(*trigger).or_default().push(i));
        row.trigger.iter().for_each(|trigger| targets.entry(*trigger).or_default().push(i));
    }
    let triggered = triggers.iter().map(|trigger| Wait {
        on: On::Flows(sources.get(&trigger.id).cloned().unwrap_or_default()),
        targets: targets.get(&trigger.id).cloned().unwrap_or_default(),
        one_by_one: trigger.one_by_one,
        place: Place::Line(path.to_string(), trigger.line),
    });
    named.chain(triggered).collect()
}

/// Flows of a file in order of start, read while the run needs them.
pub(crate) struct StreamedFile {
    rows: Box<dyn Rows>,
    path: String,
    begin: Time,
    next: Option<Row>,
    count: u64,
    given: u64,
    failure: Option<String>,
}

impl StreamedFile {
    fn advance(&mut self) {
        let before = self.next.take().map_or(Span::ZERO, |row| row.start);
        self.next = match self.rows.next_row() {
            Some(Ok(row)) if row.start >= before && self.given < self.count => Some(row),
            None if self.given == self.count => None,
            other => {
                let what = match other {
                    Some(Err(error)) => format!(" (line {}: {})", error.line.unwrap_or(0), error.message),
                    _ => String::new(),
                };
                self.failure = Some(format!("{} changed while it was read{what}: its remaining flows are missing", self.path));
                None
            }
        };
    }
}

impl Generate for StreamedFile {
    fn begin(&mut self, at: Time) {
        self.begin = at;
        self.advance();
    }

    fn next_start(&self) -> Option<Time> {
        self.next.as_ref().map(|row| self.begin.saturating_add(row.start))
    }

    fn pop(&mut self) -> Option<Draft> {
        let (start, row) = (self.next_start()?, self.next.as_ref()?);
        let draft = Draft::transfer(row.src, row.dst, row.size, start, self.given).request(row.request);
        let draft = Draft { class: row.class, ..draft };
        self.given += 1;
        self.advance();
        Some(draft)
    }

    fn total(&self) -> Option<u64> {
        Some(self.count)
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly_and_rounded_at_a_step() {
        let second = Span::from_s(1).ps();
        for (text, expected) in [
            ("2", Some(2 * second)),
            ("2.000000001", Some(2 * second + 1000)),
            ("+1.5", Some(second + second / 2)),
            ("1e-5", Some(10_000_000)),
            ("2.5E3", Some(2500 * second)),
            (".5", Some(second / 2)),
            ("0.0000000000005", Some(1)),
            ("0.00000000000049", Some(0)),
            ("0e999", Some(0)),
            ("1e-999", Some(0)),
            ("1e400", None),
            ("99999999999", None),
            ("1.2.3", None),
            ("-1", None),
            ("", None),
            (".", None),
            ("e5", None),
            ("nan", None),
            ("1e99999999999", None),
        ] {
            assert_eq!(decimal(text, second), expected, "{text}");
        }
    }

    /// Files beyond what is kept must be in order and plain.
    #[test]
    fn what_is_not_kept_must_be_streamable() {
        let hosts = Arc::new(HostNames::new(["a", "b"].into_iter()));
        let csv = FlowFile::Csv(CsvFlows { path: String::new() });
        let read = |content: &'static str, in_memory| {
            let limits = Limits { flows: 100, in_memory, too_late: Span::from_us(3) };
            let mut rows = rows(&csv, Box::new(content.as_bytes()), hosts.clone()).unwrap();
            check(&mut *rows, &limits)
                .map(|checked| (checked.kept.map(|rows| rows.len()), checked.count, checked.late))
                .map_err(|errors| errors[0].line)
        };
        let sorted = "src,dst,size_B,start_us\na,b,1,1\na,b,1,2\na,b,1,3\n";
        assert_eq!(read(sorted, 3), Ok((Some(3), 3, 1)));
        assert_eq!(read(sorted, 2), Ok((None, 3, 1)));
        assert_eq!(read("src,dst,size_B,start_us\na,b,1,1\na,b,1,0\na,b,1,3\n", 2), Err(Some(4)));
        assert_eq!(read("src,dst,size_B,start_us,id\na,b,1,1,x\na,b,1,2,\na,b,1,3,\n", 2), Err(Some(4)));
    }
}
