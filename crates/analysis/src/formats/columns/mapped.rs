//! Tables with mapped columns: code that text and files of columns share, and the reader of the latter.

use crate::display::count;
use crate::formats::columns::Table;
use crate::formats::mapping::{Binding, Bound, Role, Unit};
use crate::formats::{REPORTED, UNZONED};
use crate::input::context::{Context, Flows, Origin, Ports};
use crate::input::number::{decimal_comma, NumberError, OUTSIDE};
use crate::input::problem::{Problem, Problems};
use crate::input::reader::TraceReader;
use crate::input::reader::{Batch, BATCH};
use crate::{Record, AT_HEAD, DROPPED, MARKED, NO_DATA, NO_FLOW, NO_QUEUE, REPLACED};
use fanin_units::Time;

/// Longest queue [bytes]: a switch has no terabyte of buffer.
const QUEUE_LIMIT: u128 = 1_000_000_000_000;

/// Largest frame [bytes]: the most that a capture of segmented sends can hold.
const FRAME_LIMIT: u128 = 1 << 24;

/// A queue in bytes.
///
/// # Errors
/// It is longer than any.
#[inline]
pub fn queue(steps: u128) -> Result<u64, NumberError> {
    if steps > QUEUE_LIMIT {
        return Err(NumberError::TooLarge);
    }
    Ok(steps as u64)
}

/// A frame in bytes.
///
/// # Errors
/// It is larger than any.
#[inline]
pub fn frame(steps: u128) -> Result<u32, NumberError> {
    if steps > FRAME_LIMIT {
        return Err(NumberError::TooLarge);
    }
    Ok(steps as u32)
}

/// True if a mark or a drop is set.
///
/// # Errors
/// It is neither.
#[inline]
pub fn flag(unit: Unit, number: u128) -> Result<bool, NumberError> {
    match (unit, number) {
        (Unit::Ecn, 0..=3) => Ok(number == 3),
        (Unit::Flag, 0 | 1) => Ok(number == 1),
        _ => Err(NumberError::TooLarge),
    }
}

/// True if text says that a mark or a drop is set.
///
/// # Errors
/// It says neither.
pub fn flag_text(unit: Unit, text: &[u8]) -> Result<bool, NumberError> {
    // What is usual first.
    match (unit, text) {
        (Unit::Flag | Unit::Ecn, b"0") => return Ok(false),
        (Unit::Flag, b"1") | (Unit::Ecn, b"3") => return Ok(true),
        _ => {}
    }
    let text = text.trim_ascii();
    let is = |words: &[&str]| words.iter().any(|w| text.eq_ignore_ascii_case(w.as_bytes()));
    match unit {
        Unit::Ecn if is(&["ce", "3", "11", "0x3", "0x03"]) => Ok(true),
        Unit::Ecn
            if is(&[
                "0", "1", "2", "00", "01", "10", "0x0", "0x1", "0x2", "0x00", "0x01", "0x02", "ect", "ect0", "ect1", "not-ect",
            ]) =>
        {
            Ok(false)
        }
        Unit::Flag if is(&["1", "true", "t", "yes", "y", "1.0"]) => Ok(true),
        Unit::Flag if is(&["0", "false", "f", "no", "n", "0.0"]) => Ok(false),
        _ => Err(NumberError::NotANumber),
    }
}

/// Problem with a value of a role.
pub fn wrong(role: Role, unit: Unit, error: NumberError) -> Problem {
    let (message, accepted) = match role {
        Role::Time => match (unit, error) {
            (Unit::Iso, NumberError::NotANumber) => {
                ("is no date and time", "2026-11-21T08:00:00.000000001Z, 2026-11-21 09:00:00.5+01:00, without a zone UTC")
            }
            (_, NumberError::Negative) => (OUTSIDE[0], "times from 0 on, or since 1970"),
            (_, NumberError::TooLarge) => (OUTSIDE[1], "one trace"),
            _ => (error.message(), "a number"),
        },
        Role::Queue => (error.message(), "a number from 0 to 1 TB"),
        Role::Frame | Role::Payload => (error.message(), "a number from 0 to 16777216 B"),
        Role::Marked if unit == Unit::Ecn => ("is not a value of the ECN bits", "0, 1, 2, 3 (CE)"),
        Role::Marked | Role::Dropped | Role::Replaced | Role::AtHead | Role::Syn => {
            ("is neither yes nor no", "1, 0, true, false, yes, no, of each packet alone (a running count is none)")
        }
        Role::Port | Role::Flow => (error.message(), "text, or a number from 0 on"),
        Role::Watermark => (error.message(), "a number from 0 to 1 TB"),
        Role::Interval => (error.message(), "a length of time, above 0 and up to a day"),
        _ if matches!(unit, Unit::TotalIn(_) | Unit::SinceIn(_) | Unit::Rate(_)) => (error.message(), "a number from 0 on"),
        Role::Bytes | Role::Arrived | Role::Packets | Role::Drops | Role::Marks | Role::Speed => {
            (error.message(), "a whole number from 0 to 2^64 - 1")
        }
    };
    Problem::new(message).accepted(accepted)
}

/// True if a packet brought no payload: by its length where that is known, else because it opens a connection.
pub fn is_without_data(payload: Option<u32>, opens: bool) -> bool {
    payload.map_or(opens, |bytes| bytes == 0)
}

/// Number of steps that a unit stands for.
pub fn steps(unit: Unit) -> u64 {
    match unit {
        Unit::Steps(steps) => steps,
        _ => 1,
    }
}

/// A file of columns that are mapped.
pub struct MappedTable {
    table: Table,
    bound: Vec<Bound>,
    /// Port of all rows where no column names it.
    port: Option<String>,
    /// Flow numbers stand for themselves, as in a result.
    own_flows: bool,
    /// True if a date lacked its zone.
    unzoned: bool,
    rows: Rows,
    missing: Missing,
}

/// Columns of a batch, as the analysis has them.
#[derive(Default)]
struct Rows {
    time: Vec<u64>,
    queue: Vec<u64>,
    port: Vec<u32>,
    flow: Vec<u32>,
    frame: Vec<u64>,
    flags: Vec<u8>,
    /// Payload where it is known.
    payload: Vec<Option<u32>>,
    /// True if the packet opens a connection, where that is known.
    opens: Vec<Option<bool>>,
    skip: Vec<bool>,
    /// Buffer for the columns above, before they are brought into their type.
    wide: Vec<u64>,
}

/// Rows that were passed over because they lack a value that a record needs.
#[derive(Default)]
pub struct Missing {
    pub rows: u64,
    pub first: Option<(String, String)>,
}

impl Missing {
    pub fn add(&mut self, column: impl FnOnce() -> String, place: impl FnOnce() -> String) {
        self.rows += 1;
        self.first.get_or_insert_with(|| (column(), place()));
    }

    /// Note for the end of the reading.
    pub fn note(&self, file: &str) -> Option<String> {
        let (column, place) = self.first.as_ref()?;
        let rows = count(self.rows, "row");
        Some(format!("{file}: {rows} passed over, for lack of a value that is needed; first '{column}' in {place}"))
    }
}

impl MappedTable {
    /// Opens a reader of a table with these columns.
    ///
    /// # Errors
    /// Columns that cannot be read.
    pub fn new(mut table: Table, binding: &Binding, port: Option<String>, own_flows: bool) -> Result<Self, Problems> {
        let indices: Vec<usize> = binding.columns.iter().map(|b| b.index).collect();
        table.choose(&indices)?;
        let bound = binding.columns.clone();
        let (rows, missing) = (Rows::default(), Missing::default());
        Ok(MappedTable { table, bound, port, own_flows, unzoned: false, rows, missing })
    }

    fn problem(&self, chosen: usize, row: usize, error: NumberError) -> Problem {
        let bound = self.bound[chosen];
        wrong(bound.role, bound.unit, error)
            .file(self.table.path())
            .place(format!("row {}", self.table.first_row() + row as u64 + 1))
            .column(self.table.name(chosen))
            .value(self.table.shown(chosen, row))
            .maybe(decimal_comma(self.table.shown(chosen, row).as_bytes()))
    }

    /// Converts one column; gives the rows that are wrong.
    fn convert(&mut self, chosen: usize, rows: usize, context: &mut Context) -> Result<Vec<(usize, NumberError)>, Problem> {
        let Bound { role, unit, .. } = self.bound[chosen];
        let table = &self.table;
        let r = &mut self.rows;
        let mut column = Conversion { table, chosen, unit, wrong: Vec::new(), absent: Vec::new() };
        let mut refused = None;
        match role {
            Role::Time => column.times(context.origin, &mut r.time, &mut self.unzoned),
            Role::Queue => column.sizes(QUEUE_LIMIT, true, &mut r.queue),
            Role::Frame => column.sizes(FRAME_LIMIT, false, &mut r.frame),
            Role::Payload => column.payloads(&mut r.payload),
            Role::Syn => column.flags(|row, set| r.opens[row] = Some(set)),
            Role::Marked => column.flags(|row, set| r.flags[row] |= MARKED * u8::from(set)),
            Role::Dropped => column.flags(|row, set| r.flags[row] |= DROPPED * u8::from(set)),
            Role::Replaced => column.flags(|row, set| r.flags[row] |= REPLACED * u8::from(set)),
            Role::AtHead => column.flags(|row, set| r.flags[row] |= AT_HEAD * u8::from(set)),
            Role::Port => refused = column.ports(&mut context.ports, &mut r.port),
            Role::Flow => refused = column.flows(&mut context.flows.lock(), self.own_flows, r),
            // Tables of counters are read row by row.
            _ => {}
        }
        let Conversion { wrong, absent, .. } = column;
        if let Some((row, problem)) = refused {
            return Err(self.placed(problem, chosen, row));
        }
        if !absent.is_empty() {
            r.skip.resize(rows, false);
            for row in absent {
                if !r.skip[row] {
                    r.skip[row] = true;
                    self.missing.add(|| table.name(chosen), || format!("row {}", table.first_row() + row as u64 + 1));
                }
            }
        }
        Ok(wrong)
    }

    fn placed(&self, problem: Problem, chosen: usize, row: usize) -> Problem {
        let place = format!("row {}", self.table.first_row() + row as u64 + 1);
        problem.file(self.table.path()).place(place).column(self.table.name(chosen))
    }
}

/// One column of a batch on its way into the types of the analysis.
struct Conversion<'a> {
    table: &'a Table,
    chosen: usize,
    unit: Unit,
    /// Rows whose value is wrong, as many as are reported.
    wrong: Vec<(usize, NumberError)>,
    /// Rows that lack a value that is needed.
    absent: Vec<usize>,
}

/// The first row that is refused, and why.
type Refused = Option<(usize, Problem)>;

fn note_wrong(wrong: &mut Vec<(usize, NumberError)>, row: usize, error: NumberError) {
    if wrong.len() < REPORTED {
        wrong.push((row, error));
    }
}

impl Conversion<'_> {
    /// Times after the origin [ps].
    fn times(&mut self, origin: Origin, out: &mut Vec<u64>, unzoned: &mut bool) {
        let Conversion { table, chosen, unit, wrong, absent } = self;
        if *unit != Unit::Iso && table.integers(*chosen, steps(*unit), origin.range(), out) {
            return;
        }
        out.clear();
        let mut each = |row: usize, value: Option<Result<u128, NumberError>>| {
            let time = value.map(|value| value.and_then(|ps| origin.time(ps)).map(Time::ps));
            out.push(match time {
                Some(Ok(time)) => time,
                Some(Err(error)) => {
                    note_wrong(wrong, row, error);
                    0
                }
                None => {
                    absent.push(row);
                    0
                }
            });
        };
        if *unit == Unit::Iso {
            table.dates(*chosen, |row, value| {
                *unzoned |= matches!(value, Some(Ok((_, false))));
                each(row, value.map(|v| v.map(|(ps, _)| ps)));
            });
        } else {
            table.numbers(*chosen, steps(*unit), &mut each);
        }
    }

    /// Numbers of bytes, of which the largest is `limit`; `needed`: a row without one is no record.
    fn sizes(&mut self, limit: u128, needed: bool, out: &mut Vec<u64>) {
        let Conversion { table, chosen, unit, wrong, absent } = self;
        if table.integers(*chosen, steps(*unit), (0, limit + 1), out) {
            return;
        }
        out.clear();
        table.numbers(*chosen, steps(*unit), |row, value| {
            let within = |v: u128| if v > limit { Err(NumberError::TooLarge) } else { Ok(v as u64) };
            out.push(match value.map(|value| value.and_then(within)) {
                Some(Ok(size)) => size,
                Some(Err(error)) => {
                    note_wrong(wrong, row, error);
                    0
                }
                None => {
                    if needed {
                        absent.push(row);
                    }
                    0
                }
            });
        });
    }

    /// Bytes of payload, where they are known.
    fn payloads(&mut self, out: &mut [Option<u32>]) {
        let Conversion { table, chosen, unit, wrong, .. } = self;
        table.numbers(*chosen, steps(*unit), |row, value| {
            out[row] = value.and_then(|v| v.and_then(frame).map_err(|error| note_wrong(wrong, row, error)).ok());
        });
    }

    /// Flags of rows that have one.
    fn flags(&mut self, mut set: impl FnMut(usize, bool)) {
        let Conversion { table, chosen, unit, wrong, .. } = self;
        let mut each = |row: usize, value: Option<Result<bool, NumberError>>| match value {
            Some(Ok(value)) => set(row, value),
            Some(Err(error)) => note_wrong(wrong, row, error),
            None => {}
        };
        if table.is_text(*chosen) {
            table.texts(*chosen, |row, value| each(row, value.map(|text| flag_text(*unit, text))));
        } else if let Some(values) = table.flags(*chosen).filter(|_| *unit == Unit::Flag) {
            values.iter().enumerate().for_each(|(row, value)| each(row, Some(Ok(*value))));
        } else {
            table.numbers(*chosen, 1, |row, value| each(row, value.map(|v| v.and_then(|n| flag(*unit, n)))));
        }
    }

    /// Indices of ports that go by names or by numbers.
    fn ports(&mut self, ports: &mut Ports, out: &mut Vec<u32>) -> Refused {
        let Conversion { table, chosen, wrong, absent, .. } = self;
        if table.is_text(*chosen) {
            return table.names(*chosen, |text| ports.index(text), (0, |row| absent.push(row)), out);
        }
        out.clear();
        let (mut refused, mut last) = (None, None);
        let mut number = |row: usize, name: &[u8]| {
            ports.index(name).unwrap_or_else(|problem| {
                refused.get_or_insert((row, problem));
                0
            })
        };
        table.numbers(*chosen, 1, |row, value| {
            out.push(match value {
                None => {
                    absent.push(row);
                    0
                }
                Some(Ok(value)) => match last {
                    Some((same, port)) if same == value => port,
                    _ => {
                        let port = number(row, value.to_string().as_bytes());
                        last = Some((value, port));
                        port
                    }
                },
                Some(Err(error)) => {
                    note_wrong(wrong, row, error);
                    number(row, b"?")
                }
            });
        });
        refused
    }

    /// Numbers of flows that go by names or by numbers; `own`: numbers stand for themselves.
    fn flows(&mut self, flows: &mut Flows, own: bool, rows: &mut Rows) -> Refused {
        let Conversion { table, chosen, wrong, .. } = self;
        let out = &mut rows.flow;
        if table.is_text(*chosen) {
            return table.names(*chosen, |text| flows.named(text), (NO_FLOW, |_| {}), out);
        }
        out.clear();
        let mut refused = None;
        let mut numbered = |row: usize, number: u64| {
            let flow = if own { Ok(u32::try_from(number).unwrap_or(NO_FLOW)) } else { flows.numbered(number) };
            flow.unwrap_or_else(|problem| {
                refused.get_or_insert((row, problem));
                NO_FLOW
            })
        };
        if table.integers(*chosen, 1, (0, 1 << 64), &mut rows.wide) {
            out.extend(rows.wide.iter().enumerate().map(|(row, number)| numbered(row, *number)));
            return refused;
        }
        table.numbers(*chosen, 1, |row, value| {
            out.push(match value {
                None => NO_FLOW,
                Some(Ok(number)) => numbered(row, u64::try_from(number).unwrap_or(u64::MAX)),
                Some(Err(error)) => {
                    note_wrong(wrong, row, error);
                    NO_FLOW
                }
            });
        });
        refused
    }
}

impl TraceReader for MappedTable {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        let rows = self.table.next(BATCH)?;
        batch.first_row = self.table.first_row();
        if rows == 0 {
            return Ok(false);
        }
        self.rows.flags.clear();
        self.rows.flags.resize(rows, 0);
        self.rows.skip.clear();
        self.rows.payload.clear();
        self.rows.payload.resize(rows, None);
        self.rows.opens.clear();
        self.rows.opens.resize(rows, None);
        let mut problems = Vec::new();
        for chosen in 0..self.bound.len() {
            let errors = self.convert(chosen, rows, context)?;
            problems.extend(errors.into_iter().map(|(row, error)| self.problem(chosen, row, error)));
            if self.bound[chosen].role == Role::Time && self.table.is_float(chosen) && context.origin.seconds() > 0 {
                let step = 2.4e-16 * context.origin.seconds() as f64;
                context.note(format!(
                    "{}: times are floating-point seconds since 1970 or so, which resolve no less than {:.0} ns",
                    self.table.path().display(),
                    step * 1e9
                ));
            }
        }
        if !problems.is_empty() {
            problems.truncate(REPORTED);
            return Err(problems);
        }
        let has = |role: Role| self.bound.iter().any(|b| b.role == role);
        if !has(Role::Queue) {
            self.rows.queue.clear();
            self.rows.queue.resize(rows, NO_QUEUE);
        }
        if !has(Role::Frame) {
            self.rows.frame.clear();
            self.rows.frame.resize(rows, 0);
        }
        if !has(Role::Flow) {
            self.rows.flow.clear();
            self.rows.flow.resize(rows, NO_FLOW);
        }
        if !has(Role::Port) {
            let name = self.port.clone().unwrap_or_default();
            let port = context.ports.index(name.as_bytes())?;
            self.rows.port.clear();
            self.rows.port.resize(rows, port);
        }
        let r = &mut self.rows;
        if has(Role::Payload) || has(Role::Syn) {
            for row in 0..rows {
                let without = is_without_data(r.payload[row], r.opens[row].unwrap_or(false));
                r.flags[row] |= if without { NO_DATA } else { 0 };
            }
        }
        if has(Role::Syn) {
            let mut flows = context.flows.lock();
            for row in (0..rows).filter(|row| r.skip.get(*row) != Some(&true)) {
                if let Some(opens) = r.opens[row] {
                    flows.saw(r.flow[row], opens.then(|| Time::from_ps(r.time[row])));
                }
            }
        }
        let r = &self.rows;
        let record = |i: usize| Record {
            time: Time::from_ps(r.time[i]),
            queue: r.queue[i],
            frame: r.frame[i] as u32,
            flow: r.flow[i],
            flags: r.flags[i],
        };
        if r.skip.is_empty() {
            batch.records.extend((0..rows).map(record));
            batch.ports.extend_from_slice(&r.port);
        } else {
            for i in (0..rows).filter(|i| !r.skip[*i]) {
                batch.records.push(record(i));
                batch.ports.push(r.port[i]);
                batch.rows.push(i as u32);
            }
        }
        Ok(true)
    }

    fn place(&self, row: u64) -> String {
        format!("row {row}")
    }

    fn progress(&self) -> f64 {
        self.table.progress()
    }

    fn finish(&mut self, context: &mut Context) {
        let file = self.table.path().display().to_string();
        if self.unzoned {
            context.note(format!("{file}: {UNZONED}"));
        }
        context.notes.extend(self.missing.note(&file));
        context.notes.extend(self.table.ended().map(|ended| format!("{file}: {ended}")));
    }
}
