//! Samples of all ports of a simulation (ports.parquet): the queue at the end of each interval, and the largest in the interval.
//!
//! A port is left out of a sample where nothing happened; its queue was empty then, as its last row says.

use super::columns::file::OpenTable;
use super::columns::Table;
use super::{OpenRows, RowsFile};
use crate::input::context::Context;
use crate::input::facts::{Facts, Shape};
use crate::input::file::SourceFile;
use crate::input::problem::{Problem, Problems};
use crate::input::reader::{Batch, TraceReader, BATCH};
use crate::{Fates, Sample};

const COLUMNS: [&str; 4] = ["time_ps", "port", "queue_bytes", "queue_max_bytes"];

/// A table of samples that has been inspected.
pub struct SamplesFile {
    table: OpenTable,
}

impl SamplesFile {
    /// Finds out facts about a table of samples.
    ///
    /// # Errors
    /// It lacks a column, or is damaged.
    pub fn inspect(file: SourceFile, table: Table, open: OpenTable) -> Result<RowsFile, Problems> {
        let facts = Facts {
            manifest: file.manifest(),
            // Counters of drops and marks are of intervals, not of packets.
            fates: Fates { drops: false, marks: false },
            first: Samples::new(table)?.first_time()?,
            in_order: true,
            ..Facts::of("samples", Shape::Samples)
        };
        Ok(RowsFile { file, facts, notes: Vec::new(), rows: Box::new(SamplesFile { table: open }) })
    }
}

impl OpenRows for SamplesFile {
    fn open(&self, file: &SourceFile) -> Result<Box<dyn TraceReader>, Problems> {
        Ok(Box::new(Samples::new((self.table)(&file.place)?)?))
    }
}

/// A table of samples.
struct Samples {
    table: Table,
    /// Values of the current batch.
    times: Vec<u64>,
    queues: Vec<u64>,
    watermarks: Vec<u64>,
    ports: Vec<u32>,
}

impl Samples {
    fn new(mut table: Table) -> Result<Self, Problems> {
        let there = table.columns();
        let find = |name: &str| there.iter().position(|column| column.name == name);
        let lacks = |name: &str| Problem::new(format!("says it is a table of samples, and lacks '{name}'")).file(table.path());
        let indices = COLUMNS.iter().map(|name| find(name).ok_or_else(|| lacks(name))).collect::<Result<Vec<_>, _>>()?;
        table.choose(&indices)?;
        let none = Vec::new;
        Ok(Samples { table, times: none(), queues: none(), watermarks: none(), ports: Vec::new() })
    }

    /// The end of the first interval [ps].
    fn first_time(&mut self) -> Result<Option<u128>, Problems> {
        self.table.next(BATCH)?;
        self.table.whole(0, &mut self.times)?;
        Ok(self.times.iter().min().map(|first| u128::from(*first)))
    }
}

impl TraceReader for Samples {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        let rows = self.table.next(BATCH)?;
        batch.first_row = self.table.first_row();
        if rows == 0 {
            return Ok(false);
        }
        let Samples { table, times, queues, watermarks, ports } = self;
        for (chosen, values) in [(0, &mut *times), (2, &mut *queues), (3, &mut *watermarks)] {
            table.whole(chosen, values)?;
        }
        let mut unnamed = None;
        let refused = table.names(1, |name| context.ports.index(name), (0, |row| unnamed = Some(row)), ports);
        if let Some((row, problem)) = refused {
            return Err(problem.file(table.path()).place(self.place(batch.first_row + row as u64 + 1)).into());
        }
        if let Some(row) = unnamed.or((ports.len() < rows).then_some(0)) {
            return Err(table.problem("is no name of a port", 1, row).into());
        }
        for row in 0..rows {
            let time = context.origin.time(u128::from(times[row])).map_err(|error| table.problem(error.message(), 0, row))?;
            let sample = Sample { time, queue: Some(queues[row]), watermark: Some(watermarks[row]) };
            batch.sample(&sample, ports[row], row as u32);
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
        context.note(format!(
            "{}: records are samples: times are ends of intervals, and of a burst within one only the largest queue is known",
            self.table.path().display()
        ));
    }
}
