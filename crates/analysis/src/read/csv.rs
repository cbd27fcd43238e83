//! Tables in text: commas, semicolons, tabs or bars between the values, names of the columns in the first line.

use super::context::{Batch, Context, BATCH};
use super::mapped::{flag_text, frame, queue, steps, wrong, Missing, REPORTED};
use super::mapping::{bind, Binding, Bound, Column, Mapping, Role, Unit};
use super::number::{from_date, from_text, NumberError};
use super::problem::{Problem, Problems};
use super::TraceReader;
use crate::{Record, DROPPED, MARKED, NO_FLOW, NO_QUEUE, REPLACED};
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// Longest line [bytes].
const LINE_LIMIT: usize = 1 << 20;

/// Columns, at most.
const MAX_COLUMNS: usize = 10_000;

/// What may stand between the values of a line.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// Text as its lines: each ends in a line feed, the last one too, and none is endless, for a line is held in memory.
struct Bounded<R> {
    inner: R,
    since_line: usize,
    last: u8,
}

impl<R: Read> Bounded<R> {
    fn new(inner: R) -> Self {
        Bounded { inner, since_line: 0, last: b'\n' }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let most = buf.len().min(LINE_LIMIT / 4);
        loop {
            let read = self.inner.read(&mut buf[..most])?;
            if read == 0 {
                let missing = self.last != b'\n' && most > 0;
                if missing {
                    (buf[0], self.last) = (b'\n', b'\n');
                }
                return Ok(usize::from(missing));
            }
            let mut kept = 0;
            for at in 0..read {
                let byte = buf[at];
                if byte != b'\r' {
                    buf[kept] = byte;
                    kept += 1;
                }
            }
            if kept == 0 {
                continue;
            }
            self.last = buf[kept - 1];
            self.since_line = match buf[..kept].iter().rposition(|b| *b == b'\n') {
                Some(at) => kept - at,
                None => self.since_line + kept,
            };
            if self.since_line > LINE_LIMIT {
                return Err(std::io::Error::other(format!("a line is longer than {LINE_LIMIT} bytes")));
            }
            return Ok(kept);
        }
    }
}

type Lines = csv::Reader<Bounded<Box<dyn Read + Send>>>;

/// A table in text whose columns are mapped.
pub struct MappedCsv {
    path: PathBuf,
    lines: Lines,
    names: Vec<String>,
    bound: Vec<Bound>,
    notes: Vec<String>,
    /// The first line of values, which was read ahead to find out units.
    first: Option<csv::ByteRecord>,
    /// Number of its line.
    first_line: u64,
    record: csv::ByteRecord,
    /// Number of the line of `record`, from 1.
    line: u64,
    port: String,
    missing: Missing,
    size: u64,
}

impl MappedCsv {
    /// Reads the first lines of `input`, which has `size` bytes in the file.
    ///
    /// # Errors
    /// It is no table; columns are not there.
    pub fn new(
        path: &Path,
        mut input: Box<dyn BufRead + Send>,
        size: u64,
        mapping: Option<&Mapping>,
        port: String,
    ) -> Result<Self, Problems> {
        let unreadable = |e: &dyn std::fmt::Display| Problem::new(format!("cannot be read: {e}")).file(path);
        let start = input.fill_buf().map_err(|e| unreadable(&e))?;
        let bom = start.starts_with(b"\xef\xbb\xbf");
        let line = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        let line = line.split(|b| *b == b'\n').find(|l| !l.trim_ascii().is_empty() && !l.starts_with(b"#")).unwrap_or_default();
        let count = |d: u8| line.iter().filter(|b| **b == d).count();
        let delimiter = DELIMITERS.into_iter().max_by_key(|d| (count(*d), std::cmp::Reverse(*d))).unwrap_or(b',');
        if bom {
            input.consume(3);
        }
        let mut lines = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .comment(Some(b'#'))
            .trim(csv::Trim::Headers)
            .has_headers(false)
            .from_reader(Bounded::new(input as Box<dyn Read + Send>));
        let mut header = csv::ByteRecord::new();
        let mut record = csv::ByteRecord::new();
        if !lines.read_byte_record(&mut header).map_err(|e| unreadable(&said(&e)))? {
            return Err(Problem::new("is empty").file(path).accepted("a line with the names of the columns, then values").into());
        }
        if header.len() > MAX_COLUMNS {
            return Err(Problem::new(format!("has {} columns; accepted: up to {MAX_COLUMNS}", header.len())).file(path).into());
        }
        let text =
            |record: &csv::ByteRecord| record.iter().map(|v| String::from_utf8_lossy(v.trim_ascii()).into_owned()).collect();
        let cells: Vec<String> = text(&header);
        // Without names the columns go by their numbers, and the first line is a row like the others.
        let headless = cells.iter().all(|c| from_text(c.as_bytes(), 1).is_ok());
        let names: Vec<String> = if headless { (1..=cells.len()).map(|n| n.to_string()).collect() } else { cells };
        let there = if headless {
            record.clone_from(&header);
            true
        } else {
            lines.read_byte_record(&mut record).map_err(|e| unreadable(&said(&e)))?
        };
        let values: Vec<String> = if there { text(&record) } else { Vec::new() };
        let columns: Vec<Column> = names
            .iter()
            .enumerate()
            .map(|(i, name)| Column {
                name: name.clone(),
                declared: None,
                first: values.get(i).cloned().filter(|v| !v.is_empty()),
            })
            .collect();
        if headless && mapping.is_none() {
            let problem =
                Problem::new("has no names of columns in its first line").file(path).place("line 1").value(values.join(","));
            return Err(problem.suggestion("give the columns by number: --columns time=1:ns,queue=2:B").into());
        }
        let binding =
            bind(mapping, &columns).map_err(|problems| problems.into_iter().map(|p| p.file(path)).collect::<Problems>())?;
        let Binding { columns: bound, notes } = binding;
        let first = there.then(|| record.clone());
        let first_line = lines.position().line().saturating_sub(1);
        Ok(MappedCsv {
            path: path.to_path_buf(),
            lines,
            names,
            bound,
            notes,
            first,
            first_line,
            record,
            line: 0,
            port,
            missing: Missing::default(),
            size,
        })
    }

    /// Whether a column holds the queue.
    pub fn has_queue(&self) -> bool {
        self.bound.iter().any(|b| b.role == Role::Queue)
    }

    /// The unit of a role whose first value is a whole number.
    pub fn whole(&self, role: Role) -> Option<Unit> {
        let bound = self.bound.iter().find(|b| b.role == role)?;
        let text = self.first.as_ref()?.get(bound.index)?.trim_ascii();
        (!text.is_empty() && text.iter().all(u8::is_ascii_digit)).then_some(bound.unit)
    }

    /// The earliest time of the first `lines` lines [ps on the trace's clock].
    pub fn first_time(&mut self, lines: usize) -> Option<u128> {
        let time = *self.bound.iter().find(|b| b.role == Role::Time)?;
        let mut first: Option<u128> = None;
        for _ in 0..lines {
            match self.first.take() {
                Some(record) => self.record = record,
                None if self.lines.read_byte_record(&mut self.record).is_ok_and(|more| more) => {}
                None => break,
            }
            let text = self.record.get(time.index).unwrap_or_default();
            let ps = if time.unit == Unit::Iso { from_date(text) } else { from_text(text, steps(time.unit)) };
            first = ps.ok().into_iter().chain(first).min();
        }
        first
    }

    fn record_of(&mut self, context: &mut Context, problems: &mut Problems) -> Result<Option<(u32, Record)>, Problem> {
        let line = self.line;
        let mut out = Record { time: fanin_units::Time::ZERO, queue: NO_QUEUE, frame: 0, flow: NO_FLOW, flags: 0 };
        let mut port = None;
        for bound in &self.bound {
            let text = self.record.get(bound.index).unwrap_or_default().trim_ascii();
            if text.is_empty() {
                if matches!(bound.role, Role::Time | Role::Queue | Role::Port) {
                    self.missing.add(|| self.names[bound.index].clone(), || format!("line {line}"));
                    return Ok(None);
                }
                continue;
            }
            let placed =
                |problem: Problem| problem.file(&self.path).place(format!("line {line}")).column(self.names[bound.index].clone());
            let done: Result<(), NumberError> = match bound.role {
                Role::Time => {
                    let ps = if bound.unit == Unit::Iso { from_date(text) } else { from_text(text, steps(bound.unit)) };
                    ps.and_then(|ps| context.origin.time(ps)).map(|t| out.time = t)
                }
                Role::Queue => from_text(text, steps(bound.unit)).and_then(queue).map(|q| out.queue = q),
                Role::Frame => from_text(text, steps(bound.unit)).and_then(frame).map(|f| out.frame = f),
                Role::Marked => flag_text(bound.unit, text).map(|set| out.flags |= if set { MARKED } else { 0 }),
                Role::Dropped => flag_text(bound.unit, text).map(|set| out.flags |= if set { DROPPED } else { 0 }),
                Role::Replaced => flag_text(bound.unit, text).map(|set| out.flags |= if set { REPLACED } else { 0 }),
                Role::Port => {
                    port = Some(context.ports.index(text).map_err(placed)?);
                    Ok(())
                }
                Role::Flow => {
                    let mut flows = context.flows.lock();
                    let number = std::str::from_utf8(text).ok().and_then(|t| t.parse::<u64>().ok());
                    let flow = match number {
                        Some(number) => flows.numbered(number),
                        None => flows.named(text),
                    };
                    out.flow = flow.map_err(placed)?;
                    Ok(())
                }
            };
            if let Err(error) = done {
                problems.push(placed(wrong(bound.role, bound.unit, error)).value(String::from_utf8_lossy(text)));
                return Ok(None);
            }
        }
        let port = match port {
            Some(port) => port,
            None => context.ports.index(self.port.as_bytes())?,
        };
        Ok(Some((port, out)))
    }
}

/// What the `csv` crate says, without its record numbers.
fn said(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Io(e) => e.to_string(),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("there are {len} values, and {expected_len} in the first line")
        }
        _ => error.to_string(),
    }
}

impl TraceReader for MappedCsv {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        std::mem::take(&mut self.notes).into_iter().for_each(|note| context.note(format!("{}: {note}", self.path.display())));
        let mut problems = Vec::new();
        let mut read = 0_u32;
        while (read as usize) < BATCH {
            match self.first.take() {
                Some(first) => (self.record, self.line) = (first, self.first_line),
                None => match self.lines.read_byte_record(&mut self.record) {
                    // What was read ended in a line feed.
                    Ok(true) => self.line = self.lines.position().line().saturating_sub(1),
                    Ok(false) => break,
                    Err(error) => {
                        let line = self.lines.position().line().saturating_sub(1).max(1);
                        let problem = Problem::new(format!("cannot be read: {}", said(&error))).file(&self.path);
                        problems.push(problem.place(format!("line {line}")));
                        break;
                    }
                },
            }
            let line = self.line.max(1);
            if read == 0 {
                batch.first_row = line - 1;
            }
            read += 1;
            if let Some((port, record)) = self.record_of(context, &mut problems)? {
                batch.records.push(record);
                batch.ports.push(port);
                batch.rows.push(u32::try_from(line - 1 - batch.first_row).unwrap_or(u32::MAX));
            }
            if problems.len() == REPORTED {
                break;
            }
        }
        if problems.is_empty() {
            Ok(read > 0)
        } else {
            Err(problems)
        }
    }

    fn place(&self, row: u64) -> String {
        format!("line {row}")
    }

    fn progress(&self) -> f64 {
        self.lines.position().byte() as f64 / self.size.max(1) as f64
    }

    fn finish(&mut self, context: &mut Context) {
        context.notes.extend(self.missing.note(&self.path.display().to_string()));
    }
}
