//! Import of flows from comma-separated values.

use super::{decimal, hpcc, Row, Rows};
use crate::context::HostNames;
use crate::lines::{FileError, MAX_LINE};
use ::csv::{ReaderBuilder, StringRecord};
use fanin_params::params;
use fanin_units::{Bytes, Quantity, Span};
use std::io::{BufRead, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

params! {
    /// Flows from comma-separated values with a heading: `src`, `dst`, `size`, `start`, and optionally `id`, `request`,
    /// `class`, `after`, `delay`, in any order. Sizes and times carry their unit in each cell (`10KB`, `5us`) or once in the
    /// heading (`size_bytes`, `start_us`, `start (us)`, `size [KB]`). `after` holds flow ids or entry names, separated by
    /// `;`.
    pub struct CsvFlows {
        /// Path of the file, relative to the scenario's folder.
        pub path: String;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Src,
    Dst,
    Size(Option<u64>),
    Start(Option<u64>),
    Id,
    Request(Option<u64>),
    Class,
    After,
    Delay(Option<u64>),
}

const COLUMNS: &str = "src, dst, size, start, id, request, class, after, delay";

/// Reader that passes bytes on until the current record's allowance is used up.
struct Bounded {
    source: Box<dyn BufRead + Send>,
    left: Arc<AtomicUsize>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                format!("a record is longer than {MAX_LINE} bytes"),
            ));
        }
        let take = buffer.len().min(left);
        let read = self.source.read(&mut buffer[..take])?;
        self.left.store(left - read, Ordering::Relaxed);
        Ok(read)
    }
}

pub(crate) struct Reader {
    records: ::csv::Reader<Bounded>,
    record: StringRecord,
    columns: Vec<Column>,
    left: Arc<AtomicUsize>,
    hosts: Arc<HostNames>,
    broken: bool,
}

/// Allowance of a record \[bytes\]: the CSV reader looks ahead by its buffer, so that a record may use that much more.
const ALLOWANCE: usize = 2 * MAX_LINE;

impl Reader {
    pub fn new(source: Box<dyn BufRead + Send>, hosts: Arc<HostNames>) -> Result<Self, FileError> {
        let left = Arc::new(AtomicUsize::new(ALLOWANCE));
        let bounded = Bounded { source, left: left.clone() };
        let mut records = ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(::csv::Trim::All)
            .buffer_capacity(MAX_LINE)
            .flexible(true)
            .from_reader(bounded);
        let heading = records.headers().map_err(|error| broken(&error, 1))?.clone();
        let line = heading.position().map_or(1, |position| u32::try_from(position.line()).unwrap_or(u32::MAX));
        let columns = heading.iter().map(|name| column(name, line)).collect::<Result<Vec<Column>, FileError>>()?;
        let same = |a: &Column, b: &Column| std::mem::discriminant(a) == std::mem::discriminant(b);
        for (i, column) in columns.iter().enumerate() {
            if columns[..i].iter().any(|other| same(other, column)) {
                return Err(FileError::at(line, heading.get(i).unwrap_or(""), "is a duplicate column", COLUMNS));
            }
        }
        for (needed, name) in
            [(Column::Src, "src"), (Column::Dst, "dst"), (Column::Size(None), "size"), (Column::Start(None), "start")]
        {
            if !columns.iter().any(|column| same(column, &needed)) {
                return Err(FileError { value: None, ..FileError::at(line, "", &format!("has no column `{name}`"), COLUMNS) });
            }
        }
        Ok(Reader { records, record: StringRecord::new(), columns, left, hosts, broken: false })
    }

    fn parse(&self, line: u32) -> Result<Row, FileError> {
        if self.record.len() != self.columns.len() {
            let message = format!("has {} fields", self.record.len());
            return Err(FileError {
                value: None,
                ..FileError::at(line, "", &message, &format!("{} as the heading has", self.columns.len()))
            });
        }
        let (mut src, mut dst) = ("", "");
        let mut row = Row {
            line,
            src: fanin_units::HostId(0),
            dst: fanin_units::HostId(0),
            size: 0,
            request: 0,
            start: Span::ZERO,
            delay: Span::ZERO,
            class: None,
            id: None,
            after: Vec::new(),
            trigger: None,
            activates: Vec::new(),
        };
        for (column, cell) in self.columns.iter().zip(self.record.iter()) {
            match column {
                Column::Src => src = cell,
                Column::Dst => dst = cell,
                Column::Size(unit) => row.size = quantity::<Bytes>(cell, *unit, line)?.get(),
                Column::Start(unit) => row.start = quantity::<Span>(cell, *unit, line)?,
                _ if cell.is_empty() => {}
                Column::Id => row.id = Some(cell.into()),
                Column::Request(unit) => row.request = quantity::<Bytes>(cell, *unit, line)?.get(),
                Column::Class => row.class = Some(hpcc::class(line, cell)?),
                Column::After => {
                    row.after = cell.split(';').map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).collect()
                }
                Column::Delay(unit) => row.delay = quantity::<Span>(cell, *unit, line)?,
            }
        }
        (row.src, row.dst) = hpcc::ends(&self.hosts, line, src, dst)?;
        if row.size == 0 {
            return Err(FileError::at(line, "0", "is not a size: a flow has at least 1 byte", "at least 1 byte"));
        }
        if row.after.is_empty() && row.delay != Span::ZERO {
            return Err(FileError::at(
                line,
                &row.delay.to_string(),
                "is a delay without `after`",
                "`start`, or `after` and `delay`",
            ));
        }
        Ok(row)
    }
}

impl Rows for Reader {
    fn next_row(&mut self) -> Option<Result<Row, FileError>> {
        if self.broken {
            return None;
        }
        self.left.store(ALLOWANCE, Ordering::Relaxed);
        match self.records.read_record(&mut self.record) {
            Ok(false) => None,
            Ok(true) => {
                let line = self.record.position().map_or(0, |position| u32::try_from(position.line()).unwrap_or(u32::MAX));
                Some(self.parse(line))
            }
            Err(error) => {
                self.broken = !matches!(error.kind(), ::csv::ErrorKind::Utf8 { .. });
                let line = u32::try_from(self.records.position().line()).unwrap_or(u32::MAX);
                Some(Err(broken(&error, line)))
            }
        }
    }
}

fn broken(error: &::csv::Error, line: u32) -> FileError {
    let line = error.position().map_or(line, |position| u32::try_from(position.line()).unwrap_or(u32::MAX));
    FileError { value: None, ..FileError::at(line, "", &format!("cannot be read: {error}"), "comma-separated values, UTF-8") }
}

/// Column that a heading names, with the unit that it gives.
fn column(heading: &str, line: u32) -> Result<Column, FileError> {
    let heading = heading.trim_start_matches('\u{feff}');
    let split = heading.find(['_', ' ', '(', '[']).unwrap_or(heading.len());
    let (name, unit) = (&heading[..split], heading[split..].trim_matches(['_', ' ', '(', ')', '[', ']']));
    let of = |units: &[(&str, u64)]| -> Result<Option<u64>, FileError> {
        if unit.is_empty() {
            return Ok(None);
        }
        let known: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        let scale = units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
        scale.map(Some).ok_or_else(|| FileError::at(line, heading, "has an unknown unit", &known.join(", ")))
    };
    let plain = |column: Column| {
        if unit.is_empty() {
            Ok(column)
        } else {
            Err(FileError::at(line, heading, "is not a known column", COLUMNS))
        }
    };
    match name {
        "src" => plain(Column::Src),
        "dst" => plain(Column::Dst),
        "id" => plain(Column::Id),
        "class" => plain(Column::Class),
        "after" => plain(Column::After),
        "size" => of(Bytes::UNITS).map(Column::Size),
        "request" => of(Bytes::UNITS).map(Column::Request),
        "start" => of(Span::UNITS).map(Column::Start),
        "delay" => of(Span::UNITS).map(Column::Delay),
        _ => Err(FileError::at(line, heading, "is not a known column", COLUMNS)),
    }
}

/// Parses a cell: a number in the heading's unit, or a number with its own.
fn quantity<Q: Quantity>(cell: &str, unit: Option<u64>, line: u32) -> Result<Q, FileError> {
    let own = match unit {
        Some(scale) => {
            return decimal(cell, scale)
                .map(Q::from_base)
                .ok_or_else(|| FileError::at(line, cell, "is not a number that fits", "a number that is not negative"))
        }
        None => Q::read(cell),
    };
    own.map_err(|error| {
        FileError::at(line, cell, &error.to_string(), &format!("{} such as {}, or a unit in the heading", Q::WHAT, Q::EXAMPLES))
    })
}
