//! Stamps as receivers saw them (stamps.parquet): readings of a switch's registers, turned back into time and bytes.

use super::{OpenRows, RowsFile};
use crate::formats::columns::file::OpenTable;
use crate::formats::columns::Table;
use crate::formats::mapping::Column;
use crate::input::context::Context;
use crate::input::facts::{Facts, Shape};
use crate::input::file::SourceFile;
use crate::input::number::NumberError;
use crate::input::problem::{listed, Problem, Problems};
use crate::input::reader::TraceReader;
use crate::input::reader::{Batch, BATCH};
use crate::{Fates, Record, MARKED, NO_FLOW};
use fanin_telemetry::Registers;
use fanin_units::Time;

const COLUMNS: [&str; 7] = ["received_ps", "port", "stamp_time", "stamp_length", "flow", "frame_bytes", "marked"];

/// A file of stamps that has been inspected.
pub struct StampsFile {
    table: OpenTable,
    registers: Registers,
}

impl StampsFile {
    /// Finds out facts about a table of stamps.
    ///
    /// # Errors
    /// It lacks a column, or is damaged.
    pub fn inspect(file: SourceFile, table: Table, open: OpenTable) -> Result<RowsFile, Problems> {
        let manifest = file.manifest();
        let registers = manifest.as_ref().and_then(|m| m.registers).unwrap_or_default();
        let facts = Facts {
            registers: Some(registers),
            manifest,
            // Packets that were dropped carry none.
            fates: Fates { drops: false, marks: true },
            first: Stamps::new(table, Registers::default())?.first_time()?,
            ..Facts::of("stamps", Shape::Stamps)
        };
        Ok(RowsFile { file, facts, notes: Vec::new(), rows: Box::new(StampsFile { table: open, registers }) })
    }
}

impl OpenRows for StampsFile {
    fn open(&self, file: &SourceFile) -> Result<Box<dyn TraceReader>, Problems> {
        Ok(Box::new(Stamps::new((self.table)(&file.place)?, self.registers)?))
    }
}

/// A table of stamps.
struct Stamps {
    table: Table,
    registers: Registers,
    /// Number of length registers that stood at their largest value.
    saturated: u64,
    received: Vec<u64>,
    records: Vec<Record>,
    ports: Vec<u32>,
}

impl Stamps {
    /// Opens a reader of a table of stamps from these registers.
    ///
    /// # Errors
    /// It lacks a column.
    pub fn new(mut table: Table, registers: Registers) -> Result<Self, Problems> {
        let there: Vec<Column> = table.columns();
        let mut indices = Vec::new();
        let mut lacks = Vec::new();
        for name in COLUMNS {
            match there.iter().position(|c| c.name == name) {
                Some(index) => indices.push(index),
                None => lacks.push(name),
            }
        }
        if !lacks.is_empty() {
            let there = listed(there.iter().map(|c| c.name.as_str()));
            let problem =
                Problem::new(format!("says it is a table of stamps, and lacks: {}", lacks.join(", "))).file(table.path());
            return Err(problem.suggestion(format!("its columns are: {there}")).into());
        }
        table.choose(&indices)?;
        Ok(Stamps { table, registers, saturated: 0, received: Vec::new(), records: Vec::new(), ports: Vec::new() })
    }

    /// Time at which the first packet was received [ps].
    ///
    /// # Errors
    /// The file is damaged.
    pub fn first_time(&mut self) -> Result<Option<u128>, Problems> {
        let mut first: Option<u128> = None;
        if self.table.next(BATCH)? > 0 {
            self.table.numbers(0, 1, |_, v| {
                if let Some(Ok(v)) = v {
                    first = Some(first.map_or(v, |f| f.min(v)));
                }
            });
        }
        Ok(first)
    }
}

impl TraceReader for Stamps {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        let rows = self.table.next(BATCH)?;
        batch.first_row = self.table.first_row();
        if rows == 0 {
            return Ok(false);
        }
        let blank = Record { time: Time::ZERO, queue: 0, frame: 0, flow: NO_FLOW, flags: 0 };
        self.received.clear();
        self.received.resize(rows, 0);
        self.records.clear();
        self.records.resize(rows, blank);
        self.ports.clear();
        self.ports.resize(rows, 0);
        let Stamps { table, registers, saturated, received, records, ports, .. } = self;
        let mut wrong: Option<(usize, usize)> = None;
        let mut number = |chosen: usize, limit: u128, set: &mut dyn FnMut(usize, u64)| {
            table.numbers(chosen, 1, |row, value: Option<Result<u128, NumberError>>| match value {
                Some(Ok(v)) if v <= limit => set(row, v as u64),
                _ => {
                    wrong.get_or_insert((chosen, row));
                }
            });
        };
        number(0, u128::from(u64::MAX), &mut |row, v| received[row] = v);
        number(2, u128::from(u32::MAX), &mut |row, v| {
            records[row].time = registers.time_near(v as u32, Time::from_ps(received[row]));
        });
        number(3, u128::from(u16::MAX), &mut |row, v| {
            *saturated += u64::from(v == u64::from(u16::MAX));
            records[row].queue = registers.queue(v as u16).get();
        });
        number(4, u128::from(u32::MAX), &mut |row, v| records[row].flow = v as u32);
        number(5, u128::from(u16::MAX), &mut |row, v| records[row].frame = v as u32);
        number(6, 1, &mut |row, v| records[row].flags = if v == 1 { MARKED } else { 0 });
        let mut refused = None;
        if !table.is_text(1) {
            wrong.get_or_insert((1, 0));
        }
        let mut last: (usize, usize, u32) = (0, 0, 0);
        table.texts(1, |row, text| {
            let text = text.unwrap_or_default();
            let at = (text.as_ptr() as usize, text.len());
            if at != (last.0, last.1) {
                match context.ports.index(text) {
                    Ok(port) => last = (at.0, at.1, port),
                    Err(problem) => {
                        refused.get_or_insert((row, problem));
                    }
                }
            }
            ports[row] = last.2;
        });
        let place = |row: usize| format!("row {}", table.first_row() + row as u64 + 1);
        if let Some((chosen, row)) = wrong {
            let problem =
                Problem::new("is not what a stamp holds").file(table.path()).place(place(row)).column(table.name(chosen));
            return Err(problem.value(table.shown(chosen, row)).into());
        }
        if let Some((row, problem)) = refused {
            return Err(problem.file(table.path()).place(place(row)).into());
        }
        batch.records.append(records);
        batch.ports.append(ports);
        Ok(true)
    }

    fn place(&self, row: u64) -> String {
        format!("row {row}")
    }

    fn progress(&self) -> f64 {
        self.table.progress()
    }

    fn finish(&mut self, context: &mut Context) {
        if self.saturated > 0 {
            let longest = self.registers.queue(u16::MAX);
            context.notes.push(format!(
                "{}: {} stamps have the largest length that the register holds ({longest}); those queues were that or longer",
                self.table.path().display(),
                self.saturated
            ));
        }
    }
}
