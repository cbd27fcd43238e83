//! Tables in text, whatever stands around the values: from the texts of a row to its record, and errors in them.

pub mod counted;
pub mod lines;

use crate::counters::{Running, Step};
use crate::formats::columns::file::{doubt, learn, step};
use crate::formats::columns::mapped::{flag, flag_text, frame, is_without_data, queue, steps, wrong, Missing};
use crate::formats::mapping::{counts, Bound, Role, Unit};
use crate::formats::{REPORTED, UNZONED};
use crate::input::context::{Context, Flows, Origin, Ports};
use crate::input::facts::{Facts, Shape};
use crate::input::file::{Gauge, Packing, SourceFile};
use crate::input::number::{decimal_comma, from_date, from_integer, from_text, NumberError, LIMIT};
use crate::input::problem::{Problem, Problems};
use crate::input::reader::TraceReader;
use crate::input::reader::{Batch, BATCH};
use crate::{Record, ANEW, AT_HEAD, DROPPED, MARKED, NO_DATA, NO_FLOW, NO_QUEUE, REPLACED, SAMPLE};
use fanin_units::BitRate;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

/// Reason for which a row cannot be had.
pub enum RowError {
    /// The row is wrong, and the next one may be right.
    Row(Problem),
    /// Nothing more can be read.
    End(Problem),
    /// More of a stream has not come yet.
    Pause,
}

/// Error of reading text: there is nothing yet, or nothing more.
pub fn unreadable(error: &std::io::Error) -> RowError {
    if error.kind() == std::io::ErrorKind::WouldBlock {
        return RowError::Pause;
    }
    RowError::End(Problem::new(format!("cannot be read: {error}")))
}

/// Drops of a row that are told one by one, at most: a count that rises by more is no count of packets.
const MOST_DROPS: u64 = 1 << 20;

/// Running counts of drops by port.
#[derive(Debug, Default)]
pub struct NewDrops(BTreeMap<u32, Running>);

/// Drops since the count before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct More {
    pub drops: u64,
    /// True if there may have been more: the count began anew.
    pub at_least: bool,
}

impl NewDrops {
    /// Drops of a port since the count before, which may have wrapped; none of the first count, and all of one that began anew. None: there
    /// are too many.
    pub fn since(&mut self, port: u32, total: u64) -> Option<More> {
        let more = match self.0.entry(port).or_default().step(total, None, Some(MOST_DROPS)) {
            Step::First => More::default(),
            Step::By(drops) => More { drops, at_least: false },
            Step::Reset | Step::Narrow | Step::Rollover => More { drops: total, at_least: true },
        };
        (more.drops <= MOST_DROPS).then_some(more)
    }

    /// Hands a record over with its drops: its own, and more of the same moment.
    pub fn push(record: &mut Record, More { drops, at_least }: More, (port, row): (u32, u32), batch: &mut Batch) {
        record.flags |= if drops > 0 { DROPPED } else { 0 } | if at_least { ANEW } else { 0 };
        batch.packet(*record, port, row);
        let more = Record { frame: 0, flow: NO_FLOW, flags: SAMPLE | NO_DATA | DROPPED, ..*record };
        (1..drops).for_each(|_| batch.packet(more, port, row));
    }
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// Text without blanks around it; empty where there is no value.
    Text(&'a [u8]),
    /// Whole numbers of a file that has them as such.
    Signed(i64),
    Unsigned(u64),
}

impl<'a> Cell<'a> {
    pub fn is_empty(self) -> bool {
        matches!(self, Cell::Text(text) if text.is_empty())
    }

    /// The number times `scale` base steps, rounded down to a step.
    ///
    /// # Errors
    /// See [`NumberError`].
    #[inline]
    pub fn number(self, scale: u64) -> Result<u128, NumberError> {
        let steps = match self {
            Cell::Text(text) => return from_text(text, scale),
            Cell::Signed(value) => from_integer(value, scale)?,
            Cell::Unsigned(value) => u128::from(value) * u128::from(scale),
        };
        if steps > LIMIT {
            return Err(NumberError::TooLarge);
        }
        Ok(steps)
    }

    /// A time on the trace's own clock [ps], and true if it gives its zone or needs none.
    #[inline]
    pub fn time(self, unit: Unit) -> Result<(u128, bool), NumberError> {
        match unit {
            Unit::Iso => from_date(&self.text()),
            _ => self.number(steps(unit)).map(|ps| (ps, true)),
        }
    }

    /// True if it says that a mark or a drop is set.
    #[inline]
    fn flag(self, unit: Unit) -> Result<bool, NumberError> {
        match self {
            Cell::Text(text) => flag_text(unit, text),
            number => number.number(1).and_then(|number| flag(unit, number)),
        }
    }

    /// The value as text, for names and messages.
    pub fn text(self) -> Cow<'a, [u8]> {
        match self {
            Cell::Text(text) => Cow::Borrowed(text),
            Cell::Signed(value) => Cow::Owned(value.to_string().into_bytes()),
            Cell::Unsigned(value) => Cow::Owned(value.to_string().into_bytes()),
        }
    }

    /// A problem with it.
    #[cold]
    fn wrong(self, role: Role, unit: Unit, error: NumberError) -> Problem {
        let text = self.text();
        wrong(role, unit, error).value(String::from_utf8_lossy(&text)).maybe(decimal_comma(&text))
    }
}

/// Rows of text, one after another.
pub trait Rows: Send {
    /// Name of a place in messages.
    const PLACE: &'static str = "line";

    /// Reads the next row; false at the end.
    ///
    /// # Errors
    /// See [`RowError`]; problems have neither file nor place.
    fn read(&mut self) -> Result<bool, RowError>;

    /// The text of the present row's value that has this index in [`Bound`].
    fn get(&self, index: usize) -> Option<&[u8]>;

    /// The present row's value of this index, as a number where the file has it as one.
    #[inline]
    fn cell(&self, index: usize) -> Cell<'_> {
        Cell::Text(self.get(index).unwrap_or_default().trim_ascii())
    }

    /// The line that the present row ends in, from 1; 0 before the first.
    fn line(&self) -> u64;

    /// Note for the end of the reading.
    fn ended(&self) -> Option<String> {
        None
    }

    /// Share of the file that has been read, where the bytes that its reader took do not say it.
    fn progress(&self) -> Option<f64> {
        None
    }
}

/// Problems of a file: the first ones, and the number of the others.
#[derive(Default)]
struct Bad {
    problems: Problems,
    more: u64,
    last: u64,
}

impl Bad {
    fn add(&mut self, problem: impl FnOnce() -> Problem, line: u64) {
        if self.problems.len() < REPORTED {
            self.problems.push(problem());
        } else {
            self.more += 1;
        }
        self.last = line;
    }

    fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    fn count(&self) -> u64 {
        self.problems.len() as u64 + self.more
    }

    fn finish(self, path: &std::path::Path) -> Problems {
        let mut problems = self.problems;
        if self.more > 0 {
            let (more, values) = (self.more, if self.more == 1 { "value or line is" } else { "values or lines are" });
            problems.push(Problem::new(format!("{more} more {values} wrong, the last in line {}", self.last)).file(path));
        }
        problems
    }
}

/// A table in text whose columns are mapped.
pub struct MappedText<R> {
    path: PathBuf,
    rows: R,
    /// Names of bound columns, by index.
    names: Vec<String>,
    bound: Vec<Bound>,
    notes: Vec<String>,
    /// True if the present row was read already, to find out units.
    ahead: bool,
    port: String,
    missing: Missing,
    bad: Bad,
    /// True if a date lacked its zone.
    unzoned: bool,
    drops: NewDrops,
    size: u64,
    packing: Packing,
    gauge: Arc<Gauge>,
}

/// Origin of a table in text.
pub struct Origins {
    /// Name of the file in messages.
    pub path: PathBuf,
    /// Length of the file [bytes].
    pub size: u64,
    pub packing: Packing,
    pub gauge: Arc<Gauge>,
    /// Name of the port where no column names it.
    pub port: String,
}

impl Origins {
    /// A file, opened at its start.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(file: &SourceFile) -> Result<(Box<dyn BufRead + Send>, Origins), Problem> {
        let (input, gauge) = file.open_text()?;
        let SourceFile { path, size, packing, .. } = file;
        Ok((input, Origins { path: path.clone(), size: *size, packing: *packing, gauge, port: file.port_name() }))
    }
}

/// Finds out facts that the first rows of a table in text show.
pub fn inspect<R: Rows>(kind: &'static str, mut table: MappedText<R>) -> Facts {
    let mut facts = Facts::of(kind, if counts(table.bound()) { Shape::Counters } else { Shape::Text });
    learn(table.bound(), &mut facts);
    doubt(&table.bound, &table.names, &mut facts, &table.path);
    let (first, steps, speed) = table.look(BATCH);
    step(steps, &mut facts);
    Facts { first, speed, ..facts }
}

impl<R: Rows> MappedText<R> {
    /// `names`: of the columns, by the indices that `bound` has. `ahead`: the present row of `rows` is the first one.
    pub fn new(from: Origins, rows: R, names: Vec<String>, (bound, notes): (Vec<Bound>, Vec<String>), ahead: bool) -> Self {
        let Origins { path, size, packing, gauge, port } = from;
        let (missing, bad) = (Missing::default(), Bad::default());
        MappedText {
            path,
            rows,
            names,
            bound,
            notes,
            ahead,
            port,
            missing,
            bad,
            unzoned: false,
            drops: NewDrops::default(),
            size,
            packing,
            gauge,
        }
    }

    /// Reports a row that was read before and is wrong.
    pub fn is_wrong(&mut self, problem: Problem, line: u64) {
        self.bad.add(|| problem.file(&self.path).place(format!("{} {line}", R::PLACE)), line);
    }

    /// The columns that are read.
    pub fn bound(&self) -> &[Bound] {
        &self.bound
    }

    /// Reads the first `most` rows: their earliest time [ps on the trace's clock], and the units of time and queue where the
    /// first row has a whole number, and the first speed of a port.
    pub fn look(&mut self, most: usize) -> (Option<u128>, [Option<Unit>; 2], Option<BitRate>) {
        let find = |role: Role| self.bound.iter().copied().find(|b| b.role == role);
        let (time, queue, interval) = (find(Role::Time), find(Role::Queue), find(Role::Interval));
        let (speed, mut told_speed) = (find(Role::Speed), None);
        let (mut first, mut whole): (Option<u128>, Option<[Option<Unit>; 2]>) = (None, None);
        for _ in 0..most {
            if !std::mem::take(&mut self.ahead) {
                match self.rows.read() {
                    Ok(true) => {}
                    Err(RowError::Row(_)) => continue,
                    Ok(false) | Err(RowError::End(_) | RowError::Pause) => break,
                }
            }
            let cell = |bound: Bound| self.rows.cell(bound.index);
            let span = || interval.and_then(|b| cell(b).number(steps(b.unit)).ok()).unwrap_or(0);
            let integer = |bound: Option<Bound>| {
                let bound = bound.filter(|b| cell(*b).text().iter().all(u8::is_ascii_digit) && !cell(*b).is_empty())?;
                Some(bound.unit)
            };
            whole.get_or_insert_with(|| [integer(time), integer(queue)]);
            let told = speed.and_then(|b| cell(b).number(steps(b.unit)).ok()).and_then(|bps| u64::try_from(bps).ok());
            told_speed = told_speed.or(told.filter(|bps| *bps > 0).map(BitRate));
            let begin = time.and_then(|time| cell(time).time(time.unit).ok()).map(|(ps, _)| ps.saturating_sub(span()));
            first = begin.into_iter().chain(first).min();
        }
        (first, whole.unwrap_or_default(), told_speed)
    }

    #[inline]
    fn record_of(
        &mut self,
        (ports, flows, origin): (&mut Ports, &mut Flows, Origin),
    ) -> Result<Option<(u32, Record, More)>, Problem> {
        let line = self.rows.line();
        let mut out = Record { time: fanin_units::Time::ZERO, queue: NO_QUEUE, frame: 0, flow: NO_FLOW, flags: 0 };
        let mut port = None;
        let (mut payload, mut opens) = (None, None);
        let (mut total, mut drops) = (None, More::default());
        let mut complete = true;
        for bound in &self.bound {
            let cell = self.rows.cell(bound.index);
            if cell.is_empty() {
                if matches!(bound.role, Role::Time | Role::Queue | Role::Port) && complete {
                    self.missing.add(|| self.names[bound.index].clone(), || format!("{} {line}", R::PLACE));
                    complete = false;
                }
                continue;
            }
            let placed = |problem: Problem| {
                problem.file(&self.path).place(format!("{} {line}", R::PLACE)).column(self.names[bound.index].clone())
            };
            let done: Result<(), NumberError> = match bound.role {
                Role::Time => cell.time(bound.unit).and_then(|(ps, zoned)| {
                    self.unzoned |= !zoned;
                    origin.time(ps).map(|t| out.time = t)
                }),
                Role::Queue => cell.number(steps(bound.unit)).and_then(queue).map(|q| out.queue = q),
                Role::Frame => cell.number(steps(bound.unit)).and_then(frame).map(|f| out.frame = f),
                Role::Marked => cell.flag(bound.unit).map(|set| out.flags |= if set { MARKED } else { 0 }),
                Role::Dropped if bound.unit == Unit::Total => {
                    cell.number(1).and_then(|n| u64::try_from(n).map_err(|_| NumberError::TooLarge)).map(|n| total = Some(n))
                }
                Role::Dropped => cell.flag(bound.unit).map(|set| out.flags |= if set { DROPPED } else { 0 }),
                Role::Replaced => cell.flag(bound.unit).map(|set| out.flags |= if set { REPLACED } else { 0 }),
                Role::AtHead => cell.flag(bound.unit).map(|set| out.flags |= if set { AT_HEAD } else { 0 }),
                Role::Payload => cell.number(steps(bound.unit)).and_then(frame).map(|bytes| payload = Some(bytes)),
                Role::Syn => cell.flag(bound.unit).map(|set| opens = Some(set)),
                // A row that is wrong names no port.
                Role::Port => {
                    port = Some((cell, bound.index));
                    Ok(())
                }
                Role::Flow => {
                    let number = match cell {
                        Cell::Text(text) if text.strip_prefix(b"+").unwrap_or(text).iter().all(u8::is_ascii_digit) => {
                            std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
                        }
                        Cell::Text(_) => None,
                        Cell::Signed(number) => u64::try_from(number).ok(),
                        Cell::Unsigned(number) => Some(number),
                    };
                    let flow = match number {
                        Some(number) => flows.numbered(number),
                        None => flows.named(&cell.text()),
                    };
                    out.flow = flow.map_err(placed)?;
                    Ok(())
                }
                // A table with one of these is read by `counted`.
                _ => Ok(()),
            };
            if let Err(error) = done {
                let problem = || placed(cell.wrong(bound.role, bound.unit, error));
                self.bad.add(problem, line);
                complete = false;
            }
        }
        if !complete {
            return Ok(None);
        }
        if is_without_data(payload, opens.unwrap_or(false)) {
            out.flags |= NO_DATA;
        }
        if let Some(opens) = opens {
            flows.saw(out.flow, opens.then_some(out.time));
        }
        let port = match port {
            Some((cell, index)) => ports.index(&cell.text()).map_err(|problem| {
                problem.file(&self.path).place(format!("{} {line}", R::PLACE)).column(self.names[index].clone())
            })?,
            None => ports.index(self.port.as_bytes())?,
        };
        if let Some(total) = total {
            let Some(more) = self.drops.since(port, total) else {
                let problem = Problem::new("is a count of drops that rises by more than packets can come");
                return Err(problem.file(&self.path).place(format!("{} {line}", R::PLACE)).value(total.to_string()));
            };
            drops = more;
            // A count since the row before: the row is a look.
            out.flags |= if out.frame == 0 { SAMPLE } else { 0 };
        }
        Ok(Some((port, out, drops)))
    }
}

impl<R: Rows> TraceReader for MappedText<R> {
    /// Reads the next records. After the first wrong value there are no more: the rest is read for further errors.
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        std::mem::take(&mut self.notes).into_iter().for_each(|note| context.note(format!("{}: {note}", self.path.display())));
        let (mut rows, mut paused) = (0_u32, false);
        let shared = context.flows.clone();
        let mut flows = shared.lock();
        while (rows as usize) < BATCH {
            if !std::mem::take(&mut self.ahead) {
                match self.rows.read() {
                    Ok(true) => {}
                    Ok(false) => break,
                    // The last row of a file that was cut short.
                    Err(_) if self.gauge.is_cut() => break,
                    Err(RowError::Pause) => {
                        paused = true;
                        break;
                    }
                    Err(error) => {
                        let (line, ends) = (self.rows.line().max(1), matches!(error, RowError::End(_)));
                        let (RowError::Row(problem) | RowError::End(problem)) = error else { break };
                        if ends {
                            // It may be why what is before is wrong.
                            let mut bad = std::mem::take(&mut self.bad);
                            bad.problems.insert(0, problem.file(&self.path).place(format!("{} {line}", R::PLACE)));
                            return Err(bad.finish(&self.path));
                        }
                        self.is_wrong(problem, line);
                        rows += 1;
                        continue;
                    }
                }
            }
            let line = self.rows.line();
            if rows == 0 {
                batch.first_row = line - 1;
            }
            rows += 1;
            if let Some((port, mut record, drops)) = self.record_of((&mut context.ports, &mut flows, context.origin))? {
                let row = u32::try_from(line - 1 - batch.first_row).unwrap_or(u32::MAX);
                NewDrops::push(&mut record, drops, (port, row), batch);
            }
        }
        if self.bad.is_empty() {
            return Ok(rows > 0 || paused);
        }
        if let Some(refused) = &mut context.refused {
            let bad = std::mem::take(&mut self.bad);
            refused.add(bad.count(), bad.problems);
            return Ok(rows > 0 || paused);
        }
        batch.clear();
        if rows > 0 {
            return Ok(true);
        }
        Err(std::mem::take(&mut self.bad).finish(&self.path))
    }

    fn place(&self, row: u64) -> String {
        format!("{} {row}", R::PLACE)
    }

    fn progress(&self) -> f64 {
        self.rows.progress().unwrap_or_else(|| self.gauge.used() as f64 / self.size.max(1) as f64)
    }

    fn finish(&mut self, context: &mut Context) {
        let file = self.path.display().to_string();
        if self.unzoned {
            context.note(format!("{file}: {UNZONED}"));
        }
        context.notes.extend(self.missing.note(&file));
        context.notes.extend(self.rows.ended().map(|ended| format!("{file}: {ended}")));
        context.notes.extend(self.gauge.note(self.packing, &file));
    }
}
