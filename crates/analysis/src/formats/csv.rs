//! Tables in text: commas, semicolons, tabs or bars between the values, names of the columns in the first line.

use super::{Format, Inspected, OpenRows, RowsFile, Start};
use crate::formats::mapping::{bind, Column, Mapping};
use crate::formats::text::lines::{Lines, MAX_VALUES};
use crate::formats::text::{inspect, unreadable, MappedText, Origins, RowError, Rows};
use crate::formats::REPORTED;
use crate::input::facts::Facts;
use crate::input::file::SourceFile;
use crate::input::number::{from_date, from_text};
use crate::input::problem::{Problem, Problems};
use crate::input::reader::TraceReader;
use std::io::BufRead;

/// Largest number of columns.
const MAX_COLUMNS: usize = MAX_VALUES - 1;

/// Wrong lines that are passed over in search of the first values.
const LOOK: usize = 1_000;

/// Delimiters between the values of a line.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// Lines that have as many values as the first one.
struct CsvRows {
    lines: Lines,
    width: usize,
    /// Bytes of the last value of the row before; 0 before the first.
    before: usize,
    /// The line that was cut and is left out, and true where one was read that may have been cut.
    left_out: Option<u64>,
    open: bool,
}

/// Note on a last line that was read and has no end.
const OPEN: &str = "its last line has no end: if the file was cut there, the last value of that line is a part of one";

impl Rows for CsvRows {
    #[inline]
    fn read(&mut self) -> Result<bool, RowError> {
        let read = self.lines.read();
        if self.lines.is_open() && matches!(read, Ok(true)) {
            // Nothing tells a value from a part of one, but that it is shorter than the one before.
            if self.before > 0 && (self.lines.len() < self.width || self.lines.last_length() < self.before) {
                self.left_out = Some(self.lines.line());
                return Ok(false);
            }
            self.open = true;
        }
        match read {
            Ok(true) if self.lines.len() == self.width => {
                self.before = self.lines.last_length();
                Ok(true)
            }
            Ok(true) => {
                let message = format!("there are {} values, and {} in the first line", self.lines.len(), self.width);
                Err(RowError::Row(Problem::new(message)))
            }
            Ok(false) => Ok(false),
            Err(error) => Err(unreadable(&error)),
        }
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&[u8]> {
        self.lines.get(index)
    }

    #[inline]
    fn line(&self) -> u64 {
        self.lines.line()
    }

    fn ended(&self) -> Option<String> {
        let left_out = |line| format!("the file ends within line {line}: that row was left out");
        self.left_out.map(left_out).or_else(|| self.open.then(|| OPEN.into()))
    }
}

/// Tables in text, with or without names of columns.
pub struct Csv;

impl Format for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn title(&self) -> &'static str {
        "CSV or TSV with a header line"
    }

    fn recognises(&self, start: Start<'_>) -> bool {
        matches!(start, Start::Bytes(bytes) if super::is_plain_text(bytes))
    }

    fn is_header(&self, first: &[u8]) -> bool {
        !has_values(first)
    }

    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
        let rows = CsvFile { mapping: mapping.cloned() };
        let facts = Facts { may_hold_totals: true, ..inspect(self.name(), rows.table(&file)?) };
        Ok(Inspected::Rows(Box::new(RowsFile { file, facts, notes: Vec::new(), rows: Box::new(rows) })))
    }
}

/// A table with the user's mapping of its columns.
struct CsvFile {
    mapping: Option<Mapping>,
}

impl CsvFile {
    fn table(&self, file: &SourceFile) -> Result<MappedText<CsvRows>, Problems> {
        let (input, from) = Origins::open(file)?;
        open(input, from, self.mapping.as_ref())
    }
}

impl OpenRows for CsvFile {
    fn open(&self, file: &SourceFile) -> Result<Box<dyn TraceReader>, Problems> {
        Ok(self.table(file)?.reader())
    }
}

/// The delimiter between the values of a line.
fn delimiter_of(line: &[u8]) -> u8 {
    let count = |d: u8| line.iter().filter(|b| **b == d).count();
    DELIMITERS.into_iter().max_by_key(|d| (count(*d), std::cmp::Reverse(*d))).unwrap_or(b',')
}

/// True for a first line that has values instead of names of columns.
fn are_values(cells: &[String]) -> bool {
    cells.iter().all(|c| from_text(c.as_bytes(), 1).is_ok()) || cells.iter().any(|c| from_date(c.as_bytes()).is_ok())
}

/// True for a line of text that has a number or a date, and so is no line of names.
pub fn has_values(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let is_value = |cell: &[u8]| from_text(cell, 1).is_ok() || from_date(cell).is_ok();
    line.split(|b| *b == delimiter_of(line)).any(|cell| is_value(cell.trim_ascii()))
}

/// Reads the first lines of a table, and binds its columns.
///
/// # Errors
/// It is no table; columns are not there.
fn open(mut input: Box<dyn BufRead + Send>, from: Origins, mapping: Option<&Mapping>) -> Result<MappedText<CsvRows>, Problems> {
    let path = from.path.clone();
    let failed = |e: &dyn std::fmt::Display| Problem::new(format!("cannot be read: {e}")).file(&path);
    let start = input.fill_buf().map_err(|e| failed(&e))?;
    let bom = start.starts_with(b"\xef\xbb\xbf");
    let line = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let line = line.split(|b| *b == b'\n').find(|l| !l.trim_ascii().is_empty() && !l.starts_with(b"#")).unwrap_or_default();
    let delimiter = delimiter_of(line);
    if bom {
        input.consume(3);
    }
    let mut lines = Lines::new(input, delimiter, from.gauge.clone());
    if !lines.read().map_err(|e| failed(&e))? {
        return Err(Problem::new("is empty").file(&path).accepted("a line with the names of the columns, then values").into());
    }
    if lines.len() > MAX_COLUMNS {
        return Err(Problem::new(format!("has more than {MAX_COLUMNS} columns")).file(&path).into());
    }
    let text = |lines: &Lines| lines.values().map(|v| String::from_utf8_lossy(v.trim_ascii()).into_owned()).collect::<Vec<_>>();
    let cells = text(&lines);
    // Without names the columns go by their numbers, and the first line is a row like the others.
    let headless = are_values(&cells);
    let names: Vec<String> = if headless { (1..=cells.len()).map(|n| n.to_string()).collect() } else { cells };
    let mut rows = CsvRows { lines, width: names.len(), before: 0, left_out: None, open: false };
    // The first values show units that names do not. A first line of values that is wrong is reported with the others.
    let (mut ahead, mut wrong) = (headless, Vec::new());
    while !ahead && wrong.len() < LOOK {
        match rows.read() {
            Ok(true) => ahead = true,
            Ok(false) | Err(RowError::Pause) => break,
            Err(RowError::Row(problem)) => wrong.push((problem, rows.line())),
            Err(RowError::End(problem)) => return Err(problem.file(&path).place(format!("line {}", rows.line().max(1))).into()),
        }
    }
    let values = if ahead { text(&rows.lines) } else { Vec::new() };
    let column = |(i, name): (usize, &String)| Column {
        name: name.clone(),
        declared: None,
        first: values.get(i).cloned().filter(|v| !v.is_empty()),
    };
    let columns: Vec<Column> = names.iter().enumerate().map(column).collect();
    if headless && mapping.is_none() {
        let problem =
            Problem::new("has no names of columns in its first line").file(&path).place("line 1").value(values.join(","));
        return Err(problem.suggestion("give the columns by number: --columns time=1:ns,queue=2:B").into());
    }
    let placed = |(problem, line): (Problem, u64)| problem.file(&path).place(format!("line {line}"));
    let binding = match bind(mapping, &columns) {
        Ok(binding) => binding,
        Err(problems) => {
            let of_columns = problems.into_iter().map(|p| p.file(&path));
            return Err(of_columns.chain(wrong.into_iter().map(placed).take(REPORTED)).collect());
        }
    };
    let mut table = MappedText::new(from, rows, names, (binding.columns, binding.notes), ahead);
    wrong.into_iter().for_each(|(problem, line)| table.is_wrong(problem, line));
    Ok(table)
}
