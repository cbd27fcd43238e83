//! The records of a trace as a table, for other tools: queues, drops and waits as they are measured, estimated or read.

use crate::input::context::{Context, SharedFlows};
use crate::input::problem::Problem;
use crate::input::reader::Batch;
use crate::input::reader::NO_WAIT;
use crate::trace::options::Options;
use crate::trace::order::Sink;
use crate::trace::{read, Control, Failure, Observer, Progress, Trace};
use crate::{FlowLookup, Record, Settings, DROPPED, MARKED, NO_FLOW, NO_QUEUE, REPLACED};
use fanin_telemetry::{Name, RecordRow, Table, TableError};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names of flows that are kept at hand.
const NAMES: usize = 1 << 16;

/// The table being written.
struct Rows {
    table: Table<RecordRow>,
    names: BTreeMap<u32, Name>,
    lookup: Option<FlowLookup>,
    failed: Option<TableError>,
}

impl Rows {
    fn push(&mut self, port: &Name, record: &Record, (wait, estimated): (Option<u64>, bool)) {
        if self.failed.is_some() {
            return;
        }
        let row = RecordRow {
            time_ps: record.time.ps(),
            port: port.clone(),
            queue_bytes: Some(record.queue).filter(|queue| *queue != NO_QUEUE),
            frame_bytes: record.frame,
            flow: self.name(record.flow),
            marked: record.flags & MARKED > 0,
            dropped: record.flags & DROPPED > 0,
            replaced: record.flags & REPLACED > 0,
            wait_ps: wait,
            estimated,
        };
        self.failed = self.table.push(row).err();
    }

    fn name(&mut self, flow: u32) -> Option<Name> {
        if flow == NO_FLOW {
            return None;
        }
        if let Some(name) = self.names.get(&flow) {
            return Some(name.clone());
        }
        let name = self.lookup.as_ref().map_or_else(|| Name::from(&*flow.to_string()), |lookup| Name::from(&*lookup(flow).name));
        if self.names.len() < NAMES {
            self.names.insert(flow, name.clone());
        }
        Some(name)
    }
}

/// The table being written, shared by all ports.
#[derive(Clone)]
struct Shared(Arc<Mutex<Rows>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, flows: &SharedFlows) {
        self.lock().lookup.get_or_insert_with(|| flows.lookup());
    }
}

/// Writes the records of one port.
struct Writer {
    rows: Shared,
    port: Name,
}

impl Sink for Writer {
    fn take(&mut self, record: &Record) {
        self.rows.lock().push(&self.port, record, (None, false));
    }

    fn take_estimated(&mut self, record: &Record, wait: Option<u64>) {
        self.rows.lock().push(&self.port, record, (wait, true));
    }
}

/// Writes the records of a trace to `records.parquet` in `folder`, each port's in order of time; gives their number.
///
/// # Errors
/// See [`Failure`]; the table cannot be written.
pub fn export(options: &Options, folder: &Path, observer: &mut dyn Observer) -> Result<u64, Failure> {
    let options = &*options.dated()?;
    let unwritten = |error: TableError| Problem::new(format!("cannot be written: {}", error.cause)).file(&error.path);
    let table = Table::<RecordRow>::file(folder).map_err(unwritten)?;
    let rows = Shared(Arc::new(Mutex::new(Rows { table, names: BTreeMap::new(), lookup: None, failed: None })));
    if options.behind.is_empty() {
        let make = |_: &Settings, name: &str, context: &Context| {
            rows.learn(&context.flows);
            Writer { rows: rows.clone(), port: Name::from(name) }
        };
        let (_, run) = read(options, &make, false, observer)?;
        run.finish_all()?;
    } else {
        measured(options, &rows, observer)?;
    }
    let mut rows = rows.lock();
    if let Some(error) = rows.failed.take() {
        return Err(unwritten(error).into());
    }
    Ok(rows.table.finish().map_err(unwritten)?)
}

/// Writes the records of two captures of one port, whose waits are known.
fn measured(options: &Options, rows: &Shared, observer: &mut dyn Observer) -> Result<(), Failure> {
    let mut trace = Trace::open(super::inspect::inspected(options, observer)?, options)?;
    rows.learn(&trace.context.flows);
    let to = options.stop.unwrap_or(fanin_units::Time::MAX);
    for source in &trace.sources {
        let mut reader = source.open(&mut trace.context)?;
        let (mut batch, mut records, mut ports) = (Batch::default(), 0, Vec::<(Name, bool)>::new());
        while reader.next(&mut trace.context, &mut batch)? {
            let names = trace.context.ports.names();
            let asked = |name: &String| options.ports.is_empty() || options.ports.contains(name);
            ports.extend(names[ports.len()..].iter().map(|name| (Name::from(name.as_str()), asked(name))));
            let mut rows = rows.lock();
            let all = batch.records.iter().zip(&batch.ports).zip(&batch.waits);
            for ((record, port), wait) in all.filter(|((record, _), _)| record.time <= to) {
                let (port, asked) = &ports[*port as usize];
                if *asked {
                    rows.push(port, record, (Some(*wait).filter(|wait| *wait != NO_WAIT), false));
                }
            }
            records += batch.records.len() as u64;
            if observer.progress(Progress { done: reader.progress(), records }) == Control::Stop {
                return Err(Failure::Stopped);
            }
        }
    }
    Ok(())
}
