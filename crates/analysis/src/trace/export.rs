//! The records of a trace one by one, and as a table for other tools: queues, drops and waits as they are measured, estimated or read.

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

/// Takes a row; its problem ends the reading.
pub type Take<'a> = &'a mut (dyn FnMut(RecordRow) -> Result<(), Problem> + Send);

/// The rows being told.
struct Rows<'a> {
    take: Take<'a>,
    told: u64,
    names: BTreeMap<u32, Name>,
    lookup: Option<FlowLookup>,
    failed: Option<Problem>,
}

impl Rows<'_> {
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
        self.told += 1;
        self.failed = (self.take)(row).err();
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

/// The rows being told, shared by all ports.
#[derive(Clone)]
struct Shared<'a>(Arc<Mutex<Rows<'a>>>);

impl<'a> Shared<'a> {
    fn lock(&self) -> MutexGuard<'_, Rows<'a>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, flows: &SharedFlows) {
        self.lock().lookup.get_or_insert_with(|| flows.lookup());
    }
}

/// Tells the records of one port.
struct Writer<'a> {
    rows: Shared<'a>,
    port: Name,
}

impl Sink for Writer<'_> {
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
    let unwritten = |error: TableError| Problem::new(format!("cannot be written: {}", error.cause)).file(&error.path);
    let mut table = Table::<RecordRow>::file(folder).map_err(unwritten)?;
    each_record(options, &mut |row| table.push(row).map_err(unwritten), observer)?;
    Ok(table.finish().map_err(unwritten)?)
}

/// Tells the records of a trace, each port's in order of time; gives how many there are.
///
/// # Errors
/// See [`Failure`]; and the problem of who takes them.
pub fn each_record(options: &Options, take: Take<'_>, observer: &mut dyn Observer) -> Result<u64, Failure> {
    let options = &*options.dated()?;
    let rows = Shared(Arc::new(Mutex::new(Rows { take, told: 0, names: BTreeMap::new(), lookup: None, failed: None })));
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
    match rows.failed.take() {
        Some(problem) => Err(problem.into()),
        None => Ok(rows.told),
    }
}

/// Tells the records of two captures of one port, whose waits are known.
fn measured(options: &Options, rows: &Shared<'_>, observer: &mut dyn Observer) -> Result<(), Failure> {
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
