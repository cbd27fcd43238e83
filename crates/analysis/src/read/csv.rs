//! Tables in text: commas, semicolons, tabs or bars between the values, names of the columns in the first line.

use super::context::{Batch, Context, Flows, Origin, Ports, BATCH};
use super::lines::{Lines, MAX_VALUES};
use super::mapped::{flag_text, frame, queue, steps, wrong, Missing, REPORTED};
use super::mapping::{bind, Binding, Bound, Column, Mapping, Role, Unit};
use super::number::{from_date, from_text, NumberError};
use super::problem::{Problem, Problems};
use super::TraceReader;
use crate::{Record, DROPPED, MARKED, NO_FLOW, NO_QUEUE, REPLACED};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Columns, at most.
const MAX_COLUMNS: usize = MAX_VALUES - 1;

/// What may stand between the values of a line.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// A table in text whose columns are mapped.
pub struct MappedCsv {
    path: PathBuf,
    lines: Lines,
    names: Vec<String>,
    bound: Vec<Bound>,
    notes: Vec<String>,
    /// Whether the present line is the first one of values, which was read ahead to find out units.
    ahead: bool,
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
        let mut lines = Lines::new(input, delimiter);
        if !lines.read().map_err(|e| unreadable(&e))? {
            return Err(Problem::new("is empty").file(path).accepted("a line with the names of the columns, then values").into());
        }
        if lines.len() > MAX_COLUMNS {
            return Err(Problem::new(format!("has more than {MAX_COLUMNS} columns")).file(path).into());
        }
        let text =
            |lines: &Lines| lines.values().map(|v| String::from_utf8_lossy(v.trim_ascii()).into_owned()).collect::<Vec<_>>();
        let cells = text(&lines);
        // Without names the columns go by their numbers, and the first line is a row like the others.
        let headless = cells.iter().all(|c| from_text(c.as_bytes(), 1).is_ok());
        let names: Vec<String> = if headless { (1..=cells.len()).map(|n| n.to_string()).collect() } else { cells };
        let ahead = headless || read(&mut lines, names.len()).map_err(|e| unreadable(&e))?;
        let values = if ahead { text(&lines) } else { Vec::new() };
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
        Ok(MappedCsv { path: path.to_path_buf(), lines, names, bound, notes, ahead, port, missing: Missing::default(), size })
    }

    /// Whether a column holds the queue.
    pub fn has_queue(&self) -> bool {
        self.bound.iter().any(|b| b.role == Role::Queue)
    }

    /// The unit of a role whose first value is a whole number.
    pub fn whole(&self, role: Role) -> Option<Unit> {
        let bound = self.bound.iter().find(|b| b.role == role)?;
        let text = self.lines.get(bound.index).filter(|_| self.ahead)?.trim_ascii();
        (!text.is_empty() && text.iter().all(u8::is_ascii_digit)).then_some(bound.unit)
    }

    /// The earliest time of the first `lines` lines [ps on the trace's clock].
    pub fn first_time(&mut self, lines: usize) -> Option<u128> {
        let time = *self.bound.iter().find(|b| b.role == Role::Time)?;
        let mut first: Option<u128> = None;
        for _ in 0..lines {
            if !std::mem::take(&mut self.ahead) && !read(&mut self.lines, self.names.len()).is_ok_and(|more| more) {
                break;
            }
            let text = self.lines.get(time.index).unwrap_or_default();
            let ps = if time.unit == Unit::Iso { from_date(text) } else { from_text(text, steps(time.unit)) };
            first = ps.ok().into_iter().chain(first).min();
        }
        first
    }

    #[inline]
    fn record_of(
        &mut self,
        (ports, flows, origin): (&mut Ports, &mut Flows, Origin),
        problems: &mut Problems,
    ) -> Result<Option<(u32, Record)>, Problem> {
        let line = self.lines.line();
        let mut out = Record { time: fanin_units::Time::ZERO, queue: NO_QUEUE, frame: 0, flow: NO_FLOW, flags: 0 };
        let mut port = None;
        for bound in &self.bound {
            let text = self.lines.get(bound.index).unwrap_or_default().trim_ascii();
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
                    ps.and_then(|ps| origin.time(ps)).map(|t| out.time = t)
                }
                Role::Queue => from_text(text, steps(bound.unit)).and_then(queue).map(|q| out.queue = q),
                Role::Frame => from_text(text, steps(bound.unit)).and_then(frame).map(|f| out.frame = f),
                Role::Marked => flag_text(bound.unit, text).map(|set| out.flags |= if set { MARKED } else { 0 }),
                Role::Dropped => flag_text(bound.unit, text).map(|set| out.flags |= if set { DROPPED } else { 0 }),
                Role::Replaced => flag_text(bound.unit, text).map(|set| out.flags |= if set { REPLACED } else { 0 }),
                Role::Port => {
                    port = Some(ports.index(text).map_err(placed)?);
                    Ok(())
                }
                Role::Flow => {
                    let digits = text.strip_prefix(b"+").unwrap_or(text).iter().all(u8::is_ascii_digit);
                    let text_of = |text| std::str::from_utf8(text).ok().and_then(|t| t.parse::<u64>().ok());
                    let flow = match Some(text).filter(|_| digits).and_then(text_of) {
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
            None => ports.index(self.port.as_bytes())?,
        };
        Ok(Some((port, out)))
    }
}

/// Reads the next line, which must have as many values as the first one.
fn read(lines: &mut Lines, values: usize) -> std::io::Result<bool> {
    let more = lines.read()?;
    if more && lines.len() != values {
        let message = format!("there are {} values, and {values} in the first line", lines.len());
        return Err(std::io::Error::other(message));
    }
    Ok(more)
}

impl TraceReader for MappedCsv {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        std::mem::take(&mut self.notes).into_iter().for_each(|note| context.note(format!("{}: {note}", self.path.display())));
        let mut problems = Vec::new();
        let mut rows = 0_u32;
        let shared = context.flows.clone();
        let mut flows = shared.lock();
        while (rows as usize) < BATCH {
            if !std::mem::take(&mut self.ahead) {
                match read(&mut self.lines, self.names.len()) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        let problem = Problem::new(format!("cannot be read: {error}")).file(&self.path);
                        problems.push(problem.place(format!("line {}", self.lines.line().max(1))));
                        break;
                    }
                }
            }
            let line = self.lines.line();
            if rows == 0 {
                batch.first_row = line - 1;
            }
            rows += 1;
            if let Some((port, record)) = self.record_of((&mut context.ports, &mut flows, context.origin), &mut problems)? {
                batch.records.push(record);
                batch.ports.push(port);
                batch.rows.push(u32::try_from(line - 1 - batch.first_row).unwrap_or(u32::MAX));
            }
            if problems.len() == REPORTED {
                break;
            }
        }
        if problems.is_empty() {
            Ok(rows > 0)
        } else {
            Err(problems)
        }
    }

    fn place(&self, row: u64) -> String {
        format!("line {row}")
    }

    fn progress(&self) -> f64 {
        self.lines.position() as f64 / self.size.max(1) as f64
    }

    fn finish(&mut self, context: &mut Context) {
        context.notes.extend(self.missing.note(&self.path.display().to_string()));
    }
}
