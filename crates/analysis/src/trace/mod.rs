//! One trace, from its files to the report.

mod counted;
mod estimate;
mod explain;
mod export;
mod inspect;
mod line_check;
mod live;
mod options;
mod order;
mod range;
mod source;
#[cfg(test)]
mod tests;
mod time_argument;
mod transfers;
mod window;

pub use crate::bursts::{EstimateError, EstimateReport};
pub use crate::capture::filter::{CaptureFilter, Target};
pub use crate::capture::selection::{Selection, Stream};
pub use crate::checks::{Finding, Level, Plausibility, Trust};
pub use crate::formats::{parquet_rows, titles as format_titles, Mapping};
pub use crate::input::at::{Files, Found, ReadAt, Shelf};
pub use crate::input::problem::{Failure, Problem, Problems};
pub use crate::pair::{ClockReport, FlowWait, LeftOut, Match, PairReport, WaitReport};
pub use estimate::Buffer;
pub use explain::{explain, ExplainedTransfer};
pub use export::{each_record, export};
pub use fanin_telemetry::{Name, RecordRow};
pub use live::{Ended, Live, Watching};
pub use options::{By, Options};
pub use time_argument::Dated;
pub use transfers::{AtPort, TransferReport, TransferRow};
pub use window::Records;

use crate::checks::nothing_in;
use crate::checks::records::PortChecks;
use crate::formats::learn_flows;
use crate::input::context::Context;
use crate::input::facts::{Facts, Shape};
use crate::input::file::SourceFile;
use crate::input::manifest::Manifest;
use crate::input::number::DATES;
use crate::input::problem::{did_you_mean, listed};
use crate::input::reader::{Batch, TraceReader, NO_WAIT};
use crate::input::sorter::unsorted;
use crate::pair::Pair;
use crate::{Fates, NoticeReport, PortReport, Record, Settings, SCHEMA};
use counted::PortSink;
use estimate::Estimated;
use fanin_units::{Bytes, Span, Time};
use inspect::{inspected, survey};
use order::{Lane, Order, Sink, WINDOW};
use range::{joined, Estimate};
use serde::Serialize;
use serde_json::Value;
use source::{origin, Source};
use std::path::Path;
use window::Windows;

/// Report of an analysis.
#[derive(Clone, Debug, Serialize)]
pub struct TraceReport {
    pub schema: &'static str,
    pub settings: Value,
    /// Notes on the trace as a whole.
    pub notes: Vec<String>,
    /// Second of the trace's own clock from which times count.
    pub origin_s: u64,
    pub sources: Vec<SourceReport>,
    /// Findings that contradict the trace, and how far the result can be trusted.
    pub plausibility: Plausibility,
    /// Drop notifications in captures; absent where there are none.
    pub notifications: Option<NoticeReport>,
    /// Packets that captures before and behind a port have in common; absent where there are not two.
    pub pair: Option<PairReport>,
    /// Transfers over TCP in captures; absent where they were not asked for.
    pub transfers: Option<TransferReport>,
    /// The port with the largest queue first.
    pub ports: Vec<PortReport>,
}

/// A file of the trace.
#[derive(Clone, Debug, Serialize)]
pub struct SourceReport {
    pub path: String,
    /// Name of the file's format.
    pub kind: &'static str,
    /// Records in the file, including those of ports that were not asked for; null for a capture behind a port, whose packets
    /// belong to records of that before.
    pub records: Option<u64>,
    /// Selection of the capture's frames that is analysed; null where it is no capture, or stamps say at which port each packet was.
    pub taken: Option<Selection>,
}

/// Progress of the reading.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Share of the work that is done, 0 … 1.
    pub done: f64,
    pub records: u64,
}

/// Answer of an observer to the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    Continue,
    Stop,
}

/// Observer of an analysis; called about every 10 ms.
pub trait Observer {
    fn progress(&mut self, progress: Progress) -> Control;
}

/// Analyses a trace.
///
/// # Errors
/// See [`Failure`].
pub fn analyze(options: &Options, observer: &mut dyn Observer) -> Result<TraceReport, Failure> {
    let options = &*options.dated()?;
    let buffer = match options.buffer {
        Some(Buffer::Bytes(bytes)) => Some(Bytes(bytes)),
        _ => None,
    };
    let make = |settings: &Settings, name: &str, context: &Context| PortSink::new(settings, buffer, name, context.flows.lookup());
    let (trace, run) = read(options, &make, true, observer)?;
    run.report(&trace.sources, trace.context)
}

/// Gives the records of one port in stretches of time, whose ends are included; of each, more than `most` are reduced to the
/// smallest and the largest queue of each part of the time. The trace is read once.
///
/// # Errors
/// See [`Failure`].
pub fn records(
    options: &Options,
    port: &str,
    stretches: &[(Time, Time)],
    most: usize,
    observer: &mut dyn Observer,
) -> Result<Vec<Records>, Failure> {
    let to = stretches.iter().map(|stretch| stretch.1).max();
    let options = Options { ports: vec![port.to_string()], stop: to, ..options.dated()?.into_owned() };
    let make = |_: &Settings, _: &str, _: &Context| Windows::new(stretches, most);
    let (_, mut run) = read(&options, &make, true, observer)?;
    let found = match std::mem::take(&mut run.lanes).into_iter().flatten().next() {
        Some(lane) => lane.finish().map_err(|error| unsorted(&error))?.sink,
        None => Windows::new(stretches, most),
    };
    Ok(found.finish())
}

/// Reads a whole trace.
///
/// Most traces have the records of each port in order: what they need is no window of records that may overtake one another (4 MB by
/// port), so where one is `hopeful`, they are read without one. Where a record comes late after all, everything begins again, with the window.
pub(super) fn read<'a, S: Sink>(
    options: &'a Options,
    make: Make<'a, S>,
    mut hopeful: bool,
    observer: &mut dyn Observer,
) -> Result<(Trace, Run<'a, S>), Failure> {
    let mut sources = inspected(options, observer)?;
    let surveyed = survey(&mut sources, options, observer)?;
    loop {
        let mut trace = Trace::open(sources, options)?;
        let mut run = trace.run(options, make, hopeful);
        run.before = surveyed;
        match run.read(&trace.sources, &mut trace.context, observer) {
            Ok(()) => return Ok((trace, run)),
            Err(Halt::Disorder) => (hopeful, sources) = (false, trace.sources),
            Err(Halt::Failure(failure)) => return Err(failure),
        }
    }
}

/// Reason for which the reading ended early.
enum Halt {
    Failure(Failure),
    /// The records of a port are not in order, although the analysis relied on that.
    Disorder,
}

impl<T: Into<Failure>> From<T> for Halt {
    fn from(failure: T) -> Self {
        Halt::Failure(failure.into())
    }
}

/// A trace whose files have been inspected.
pub(super) struct Trace {
    pub(super) sources: Vec<Source>,
    pub(super) context: Context,
    by: By,
}

/// Maker of the sink for the records of a port.
type Make<'a, S> = &'a dyn Fn(&Settings, &str, &Context) -> S;

impl Trace {
    pub(super) fn open(mut sources: Vec<Source>, options: &Options) -> Result<Trace, Failure> {
        let captures = sources.iter().any(|s| s.facts().is_capture());
        if options.without_fcs && !captures {
            return Err(Problem::new("has no effect: only captures lack the check sequence of frames").column("fcs").into());
        }
        let without_fcs = options.without_fcs;
        let mut context = Context { origin: origin(&sources), without_fcs, ..Context::default() };
        context.notes.extend(context.origin.note());
        context.overhead = options.settings.overhead.get();
        context.rate = options.settings.rate;
        context.rtt_given = options.settings.rtt.is_some();
        context.notices.until = options.stop.unwrap_or(Time::MAX);
        let by = detection(options, &sources)?;
        for source in &sources {
            let folder = source.path().parent().unwrap_or(Path::new("."));
            let facts = source.facts();
            let of_result = matches!(facts.shape, Shape::Result | Shape::Stamps) || facts.kind == "parquet";
            if let (Some(manifest), 1, true) = (&facts.manifest, sources.len(), of_result) {
                learn_flows(folder, manifest, &mut context);
            }
            if let Some(manifest) = facts.manifest.as_ref().filter(|m| m.status != "complete") {
                let reason = manifest.reason.as_ref().map_or(String::new(), |r| format!(": {r}"));
                context.note(format!("{}: the result is {}{reason}", folder.display(), manifest.status));
            }
        }
        // Of equal starts the order on the command line decides.
        sources.sort_by_key(|s| s.facts().first.unwrap_or(u128::MAX));
        Ok(Trace { sources, context, by })
    }

    /// `hopeful`: as if the records of each port were in order, as long as they are.
    fn run<'a, S>(&self, options: &'a Options, make: Make<'a, S>, hopeful: bool) -> Run<'a, S> {
        let sources = &self.sources;
        let facts = || sources.iter().map(Source::facts);
        let sure = sources.len() == 1 && sources[0].facts().in_order;
        Run {
            options,
            make,
            by: self.by,
            order: if options.sort && !sure {
                Order::Any
            } else if sure || hopeful {
                Order::Sorted
            } else {
                Order::Nearly
            },
            hopeful: hopeful && !sure,
            manifest: facts().find_map(|f| f.manifest.clone()).unwrap_or_default(),
            registers: facts().find_map(|f| f.registers),
            steps: (facts().map(|f| f.tick).max().unwrap_or_default(), facts().map(|f| f.unit).max().unwrap_or(Bytes(1))),
            speed: facts().find_map(|f| f.speed),
            lanes: Vec::new(),
            records: 0,
            counts: vec![0; sources.len()],
            before: 0.0,
            checks: Vec::new(),
            checked: false,
            fates: Vec::new(),
        }
    }
}

/// Note on the sources for which drops or marks of some port are unknown.
fn untold(sources: &[Source], ports: &[PortReport], mixed: &[&String]) -> Option<String> {
    // Where sources are mixed a finding says so.
    let is_mixed = |p: &&PortReport| p.counted.as_ref().is_some_and(|counted| counted.mixed) || mixed.contains(&&p.port);
    let told = ports.iter().filter(|p| !is_mixed(p));
    let (drops, marks) = told.fold((false, false), |(d, m), p| (d || p.dropped.is_none(), m || p.marked.is_none()));
    let lacks = |f: &&Facts| (drops && !f.fates.drops) || (marks && !f.fates.marks);
    let lacking: Vec<&Facts> = sources.iter().map(Source::facts).filter(lacks).collect();
    let (what, befell, columns) = match (drops, marks) {
        (true, true) => ("drops and marks", "dropped or marked", "dropped=COLUMN,marked=COLUMN"),
        (true, false) => ("drops", "dropped", "dropped=COLUMN"),
        (false, true) => ("marks", "marked", "marked=COLUMN"),
        (false, false) => return None,
    };
    let why = if lacking.iter().all(|f| f.shape == Shape::Stamps || (f.is_capture() && f.has_queue)) {
        "packets that are dropped carry no stamps".into()
    } else if lacking.is_empty() || lacking.iter().all(|f| f.shape == Shape::Counters) {
        "no counter of them is in what was read".into()
    } else if lacking.iter().all(|f| f.shape == Shape::Samples) {
        "samples are of queues, not of packets".into()
    } else if lacking.iter().all(|f| f.is_capture()) {
        let estimate = if drops { ", and --buffer SIZE estimates drops" } else { "" };
        format!("a capture does not show what became of packets at the port; --behind CAPTURE does{estimate}")
    } else {
        let only = if lacking.len() < sources.len() { " of some files" } else { "" };
        format!("no column{only} says which packets were {befell}; --columns {columns} says it")
    };
    Some(format!("{what} are unknown: {why}"))
}

/// Finding about times that are no dates of a network as they are read, and are some in a smaller unit.
fn beyond_dates(file: &str, facts: &Facts) -> Option<Finding> {
    let seconds = u64::try_from(facts.first? / 1_000_000_000_000).unwrap_or(u64::MAX);
    let factor = [1_000, 1_000_000, 1_000_000_000].into_iter().find(|factor| DATES.contains(&(seconds / factor)))?;
    (seconds >= DATES.end).then(|| Finding {
        code: "time_beyond_dates",
        level: Level::Doubt,
        place: file.to_string(),
        count: 1,
        bytes: None,
        words: format!("its times begin in the year {}", 1_970 + seconds / 31_556_952),
        hint: format!(
            "in a unit that is {factor} times smaller they are dates of this century: ns, us, ms or s behind the time's column"
        ),
    })
}

/// Quantity by which bursts are found, if the trace has it.
fn detection(options: &Options, sources: &[Source]) -> Result<By, Problems> {
    // With the buffer's size what has no queue gets one.
    let estimated = |facts: &Facts| options.buffer.is_some() && facts.shape != Shape::Counters;
    let queueless: Vec<&Source> = sources.iter().filter(|s| !s.facts().has_queue && !estimated(s.facts())).collect();
    let all = !queueless.is_empty() && queueless.len() == sources.len();
    let by = match options.by {
        By::Auto if all && options.above.is_none() && options.until.is_none() => By::Rate,
        By::Auto => By::Queue,
        by => by,
    };
    let mut problems = Vec::new();
    if by == By::Queue {
        problems.extend(queueless.iter().map(|source| {
            let capture = source.facts().is_capture();
            let why = if capture { "there is no queue in it: its packets carry no stamps" } else { "there is no queue in it" };
            Problem::new(why).file(source.path()).suggestion("by the arrival rate bursts can be found: --by rate --rate SPEED")
        }));
    }
    if by == By::Rate && options.settings.rate.is_none() {
        let known =
            |f: &Facts| f.speed.is_some() || f.manifest.as_ref().is_some_and(|m| m.watched.values().any(|w| w.rate.is_some()));
        problems.extend(sources.iter().filter(|s| !known(s.facts())).map(|source| {
            let table = matches!(source.facts().shape, Shape::Columns | Shape::Text);
            let why = match (source.facts().has_queue, table) {
                (true, _) => "",
                (false, true) => "no column of it is known as the queue (--columns names one), and without it only the arrival rate shows bursts; ",
                (false, false) => "there is no queue in it, so that only the arrival rate shows bursts; ",
            };
            let column = source.facts().speed_choice.as_ref().map_or(String::new(), |choice| format!(", or {choice} in --columns"));
            Problem::new(format!("{why}the speed of the port is not known"))
                .file(source.path())
                .suggestion(format!("give it, for example --rate 10Gbps{column}"))
        }));
    }
    if problems.is_empty() {
        Ok(by)
    } else {
        Err(problems)
    }
}

/// Reading under way.
pub(super) struct Run<'a, S> {
    options: &'a Options,
    make: Make<'a, S>,
    by: By,
    order: Order,
    /// True if the order is only hoped for.
    hopeful: bool,
    manifest: Manifest,
    registers: Option<fanin_telemetry::Registers>,
    /// Steps of times and queue lengths, the coarsest of all files.
    steps: (Span, Bytes),
    speed: Option<fanin_units::BitRate>,
    /// Records on their way, by port; `None`: not asked for.
    lanes: Vec<Option<Lane<Estimated<S>>>>,
    records: u64,
    counts: Vec<u64>,
    /// Share of the work that was done before.
    before: f64,
    /// Checks of each port's records against what can be.
    checks: Vec<PortChecks>,
    /// True if any port has checks.
    checked: bool,
    /// Fates of packets that all files with records of a port tell, by port.
    fates: Vec<Fates>,
}

/// A file that is open, and its present batch.
struct Open {
    source: usize,
    reader: Box<dyn TraceReader>,
    batch: Batch,
    at: usize,
}

impl Open {
    /// Time of the next record.
    fn next_time(&self) -> Time {
        self.batch.time(self.at).unwrap_or(Time::MAX)
    }
}

impl<S: Sink> Run<'_, S> {
    fn read(&mut self, sources: &[Source], context: &mut Context, observer: &mut dyn Observer) -> Result<(), Halt> {
        let mut waiting = 0;
        let mut open: Vec<Open> = Vec::new();
        let mut finished = 0;
        loop {
            // The file that goes on first, and until when.
            let earliest = (0..open.len()).min_by_key(|i| open[*i].next_time());
            let next = earliest.map_or(Time::MAX, |i| open[i].next_time());
            if waiting < sources.len() {
                let first = sources[waiting].facts().first.and_then(|t| context.origin.time(t).ok()).unwrap_or(Time::MAX);
                if first <= next || open.is_empty() {
                    let reader = sources[waiting].open(context)?;
                    let mut opened = Open { source: waiting, reader, batch: Batch::default(), at: 0 };
                    waiting += 1;
                    match self.refill(&mut opened, context, observer) {
                        Ok(true) => open.push(opened),
                        Ok(false) => {
                            opened.reader.finish(context);
                            finished += 1;
                        }
                        Err(failure) => return Err(self.all_wrong(failure, (open, sources, waiting), context, observer).into()),
                    }
                    continue;
                }
            }
            let Some(i) = earliest else { return Ok(()) };
            let others = (0..open.len()).filter(|j| *j != i).map(|j| open[j].next_time()).min().unwrap_or(Time::MAX);
            let pending = match sources.get(waiting) {
                Some(source) => source.facts().first.and_then(|t| context.origin.time(t).ok()).unwrap_or(Time::MAX),
                None => Time::MAX,
            };
            let until = others.min(pending);
            let this = &mut open[i];
            let count = if until == Time::MAX {
                this.batch.len() - this.at
            } else {
                let here = |at: &usize| this.batch.time(*at).is_some_and(|time| time <= until);
                (this.at..this.batch.len()).take_while(here).count().max(1)
            };
            self.take(&sources[this.source], this, count, context)?;
            if this.at == this.batch.len() {
                let sum: f64 = open.iter().map(|o| o.reader.progress()).sum();
                let done = ((sum + f64::from(finished)) / sources.len() as f64).clamp(0.0, 1.0);
                let done = self.before + (1.0 - self.before) * done;
                if observer.progress(Progress { done, records: self.records }) == Control::Stop {
                    return Err(Failure::Stopped.into());
                }
                match self.refill(&mut open[i], context, observer) {
                    Ok(true) => {}
                    Ok(false) => {
                        open[i].reader.finish(context);
                        open.remove(i);
                        finished += 1;
                    }
                    Err(failure) => {
                        open.remove(i);
                        return Err(self.all_wrong(failure, (open, sources, waiting), context, observer).into());
                    }
                }
            }
        }
    }

    /// Problems of a file, and of the other tables of text.
    fn all_wrong(
        &self,
        failure: Failure,
        (open, sources, waiting): (Vec<Open>, &[Source], usize),
        context: &mut Context,
        observer: &mut dyn Observer,
    ) -> Failure {
        let Failure::Problems(mut problems) = failure else { return failure };
        let records = self.records;
        let mut goes_on = |done| observer.progress(Progress { done, records }) == Control::Continue;
        let open = open.into_iter().filter(|open| is_text(sources[open.source].facts())).map(|open| open.reader).collect();
        if all_wrong(&mut problems, (open, &sources[waiting..]), context, &mut goes_on) {
            problems.into()
        } else {
            Failure::Stopped
        }
    }

    /// Reads the next batch that has records; false at the end.
    fn refill(&self, open: &mut Open, context: &mut Context, observer: &mut dyn Observer) -> Result<bool, Failure> {
        open.at = 0;
        loop {
            if !open.reader.next(context, &mut open.batch)? {
                return Ok(false);
            }
            if open.batch.len() > 0 {
                return Ok(true);
            }
            let done = open.reader.progress().clamp(0.0, 1.0);
            if observer.progress(Progress { done, records: self.records }) == Control::Stop {
                return Err(Failure::Stopped);
            }
        }
    }

    fn take(&mut self, source: &Source, open: &mut Open, count: usize, context: &Context) -> Result<(), Halt> {
        let names = context.ports.names();
        let counted = source.facts().shape == Shape::Counters;
        for name in &names[self.lanes.len()..] {
            let lane = self.lane(name, source.facts(), context)?;
            self.lanes.push(lane);
            let settings = self.settings(name);
            let (by_rate, table) = (self.by == By::Rate, source.facts().may_hold_totals);
            let estimated = self.options.buffer.is_some() && source.pair().is_none();
            let rate = settings.rate.filter(|_| !counted && (by_rate || estimated));
            let checks = PortChecks::new(rate, settings.overhead, (by_rate, table));
            self.checked |= !checks.is_empty();
            self.checks.push(checks);
            self.fates.push(Fates::ALL);
        }
        let to = self.options.stop.unwrap_or(Time::MAX);
        let told = source.facts().fates;
        let batch = &open.batch;
        let readings = batch.readings.get(open.at..open.at + count).unwrap_or_default();
        for (port, reading) in readings {
            let fates = &mut self.fates[*port as usize];
            *fates = Fates { drops: fates.drops & told.drops, marks: fates.marks & told.marks };
            if let Some(lane) = self.lanes[*port as usize].as_mut().filter(|_| reading.time() <= to) {
                lane.push_reading(reading);
            }
        }
        let records = if readings.is_empty() { open.at..open.at + count } else { 0..0 };
        for index in records {
            let record: &Record = &batch.records[index];
            let fates = &mut self.fates[batch.ports[index] as usize];
            *fates = Fates { drops: fates.drops & told.drops, marks: fates.marks & told.marks };
            let Some(lane) = &mut self.lanes[batch.ports[index] as usize] else { continue };
            if record.time > to {
                continue;
            }
            if self.checked {
                self.checks[batch.ports[index] as usize].see(record);
            }
            let pushed = match batch.waits.get(index) {
                Some(wait) => lane.push_measured(record, Some(*wait).filter(|wait| *wait != NO_WAIT)),
                None => lane.push(record),
            };
            if let Err(late) = pushed {
                if self.hopeful {
                    return Err(Halt::Disorder);
                }
                let (after, time) = (Span::from_ps(late.after.ps()), Span::from_ps(late.time.ps()));
                let what = if self.order == Order::Sorted {
                    format!("is at {time}, after a record at {after}: the records are not in order of time")
                } else {
                    format!("is at {time}, which is before {after}, {WINDOW} records and more ahead of it: too much disorder for one pass")
                };
                let problem = Problem::new(what).file(source.path()).place(open.reader.place(batch.row(index)));
                return Err(problem.suggestion("--sort sorts the whole trace first").into());
            }
        }
        if self.order == Order::Any {
            if let Some(error) = self.lanes.iter().flatten().find_map(Lane::unsorted) {
                return Err(unsorted(error).file(source.path()).into());
            }
        }
        self.records += count as u64;
        self.counts[open.source] += count as u64;
        open.at += count;
        Ok(())
    }

    /// The settings of a port.
    fn settings(&self, port: &str) -> Settings {
        let mut settings = self.options.detecting(self.by);
        if let Some(watched) = self.manifest.watched.get(port) {
            if settings.rate.is_none() && watched.rate.is_some() {
                settings.rate = watched.rate;
                settings.rate_of_result = true;
            }
            settings.overhead = watched.overhead.unwrap_or(settings.overhead);
        } else if settings.rate.is_none() && self.speed.is_some() && (self.by == By::Rate || self.options.buffer.is_some()) {
            settings.rate = self.speed;
            settings.rate_of_result = true;
        }
        (settings.tick, settings.unit) = match self.registers {
            Some(registers) => (registers.tick, registers.unit),
            None => self.steps,
        };
        settings
    }

    fn lane(&self, name: &str, facts: &Facts, context: &Context) -> Result<Option<Lane<Estimated<S>>>, Problems> {
        if !self.options.ports.is_empty() && !self.options.ports.iter().any(|p| p == name) {
            return Ok(None);
        }
        let counted = facts.shape == Shape::Counters;
        let mut settings = self.settings(name);
        settings.held_to_rate = facts.may_hold_totals && !settings.rate_of_result && self.options.buffer.is_none();
        let problems: Problems = settings
            .problems()
            .into_iter()
            .map(|e| Problem::new(e.message).column(e.setting).place(format!("port {name}")))
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        // Counters have no arrivals by which a queue could be calculated: the buffer limits what they can tell.
        let estimate = match (self.options.buffer.filter(|_| !counted), settings.rate) {
            (None, _) => None,
            (Some(buffer), Some(rate)) => {
                Some(Box::new(Estimate::new(rate, settings.overhead, buffer, self.options.tolerance())))
            }
            (Some(buffer), None) => {
                let what = "needs the speed of the port, by which the queue is calculated";
                let problem = Problem::new(what).column("buffer").place(format!("port {name}")).value(buffer.to_string());
                return Err(problem.suggestion("give it, for example --rate 10Gbps").into());
            }
        };
        Ok(Some(Lane::new(Estimated { sink: (self.make)(&settings, name, context), estimate }, self.order)))
    }
}

impl<S: Sink> Run<'_, S> {
    /// Hands all records on that are still held.
    ///
    /// # Errors
    /// An estimate is impossible.
    pub(super) fn finish_all(self) -> Result<(), Failure> {
        let mut wrong = Problems::new();
        for lane in self.lanes.into_iter().flatten() {
            let estimate = lane.finish().map_err(|error| unsorted(&error))?.estimate;
            wrong.extend(estimate.and_then(|estimate| estimate.middle.finish().2));
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(wrong.into())
        }
    }
}

impl Run<'_, PortSink> {
    fn report(self, sources: &[Source], context: Context) -> Result<TraceReport, Failure> {
        let names = context.ports.names();
        let missing: Problems = self
            .options
            .ports
            .iter()
            .filter(|p| !names.contains(p))
            .map(|port| {
                let there = names.iter().map(String::as_str);
                let problem = Problem::new("is no port of this trace").column("port").value(port);
                problem.accepted(listed(there.clone())).maybe(did_you_mean(port, there))
            })
            .collect();
        if !missing.is_empty() && !names.is_empty() {
            return Err(missing.into());
        }
        let mixed: Vec<&String> = context.mixed.iter().map(|port| &names[*port as usize]).collect();
        let mut findings = context.findings;
        findings.extend(sources.iter().flat_map(|source| source.facts().doubts.clone()));
        findings.extend(sources.iter().filter_map(|source| beyond_dates(&source.path().display().to_string(), source.facts())));
        for (name, checks) in names.iter().zip(&self.checks) {
            let senders = context.senders.iter().filter(|(port, _)| port == name).map(|(_, hosts)| *hosts).max().unwrap_or(1);
            checks.findings(name, senders, self.steps.0, &mut findings);
        }
        let mut ports = Vec::new();
        for ((lane, fates), name) in self.lanes.into_iter().zip(self.fates).zip(names) {
            let Some(lane) = lane else { continue };
            let said = (lane.overtaken > 0).then(|| {
                let (count, lag) = (lane.overtaken, lane.lag);
                let records = if count == 1 { "1 record".into() } else { format!("{count} records") };
                format!("{records} came after a later one, by {lag} at most, and were put in order")
            });
            let Estimated { mut sink, estimate } = lane.finish().map_err(|error| unsorted(&error))?;
            if mixed.contains(&name) {
                sink.mix();
            }
            let (mut report, counted) = sink.finish(&mut findings);
            ports.extend(counted);
            report.notes.splice(0..0, said);
            if let Some(estimate) = estimate {
                findings.extend(estimate.middle.finding(&report.port));
                let (estimate, said, finding, wrong) = estimate.finish(joined(&context.confirmed, &report.port), &report.port);
                findings.extend(finding);
                if let Some(problem) = wrong {
                    return Err(problem.place(format!("port {}", report.port)).into());
                }
                report.estimate = Some(estimate);
                report.notes.splice(0..0, said);
            }
            let estimated = report.estimate.as_ref().is_some_and(|estimate| estimate.used);
            let refuted = report.estimate.as_ref().is_some_and(|estimate| estimate.dropped.is_none());
            report.telling(Fates { drops: fates.drops || (estimated && !refuted), ..fates });
            if refuted {
                report.refute();
            } else if estimated {
                report.say_estimated();
            }
            ports.push(report);
        }
        if self.records == 0 {
            findings.extend(sources.iter().take(1).map(|source| nothing_in(&source.path().display().to_string())));
        }
        let plausibility = Plausibility::of(findings);
        let mut notes = context.notes;
        notes.extend(plausibility.notes());
        if self.records == 0 {
            notes.push("the trace has no records".into());
        }
        if self.by == By::Rate && self.options.buffer.is_none() && sources.iter().all(|s| !s.facts().has_queue) {
            notes.push(
                "there is no queue in this trace: bursts are those of the arrival rate, and there are neither peaks nor slopes"
                    .into(),
            );
        }
        if let Some(registers) = self.registers {
            notes.push(format!(
                "times are stamps in ticks of {}, queues in units of {}: both are rounded down",
                registers.tick, registers.unit
            ));
        }
        notes.extend(untold(sources, &ports, &mixed));
        ports.sort_by(|a, b| b.peak_bytes.cmp(&a.peak_bytes).then_with(|| a.port.cmp(&b.port)));
        let notifications = context.notices.finish(self.options.settings.top, &mut ports);
        let report = |file: &SourceFile, kind, records, taken| {
            let path = file.given.display().to_string();
            SourceReport { path, kind, records, taken }
        };
        let counted = sources.iter().zip(&self.counts);
        let mut files: Vec<SourceReport> =
            counted.map(|(s, records)| report(s.file(), s.facts().kind, Some(*records), s.selection())).collect();
        let behind = sources.iter().filter_map(Source::pair).flat_map(Pair::behind);
        files.extend(behind.map(|capture| report(&capture.file, capture.facts.kind, None, None)));
        Ok(TraceReport {
            schema: SCHEMA,
            settings: self.options.reported(self.by),
            notes,
            origin_s: context.origin.seconds(),
            sources: files,
            plausibility,
            notifications,
            pair: sources.iter().filter_map(Source::pair).find_map(Pair::report),
            transfers: self.options.transfers.then(|| transfers::report(sources, context.origin, self.options)),
            ports,
        })
    }
}

/// Problems of a trace, at most.
const MOST_PROBLEMS: usize = 50;

/// True for a file of rows, of which many may be wrong.
fn is_text(facts: &Facts) -> bool {
    matches!(facts.shape, Shape::Text | Shape::Counters)
}

/// Adds the problems in tables of text, once one has any: in tables that are open, and in those still to be opened. False: it was
/// stopped.
fn all_wrong(
    problems: &mut Problems,
    (open, waiting): (Vec<Box<dyn TraceReader>>, &[Source]),
    context: &mut Context,
    goes_on: &mut dyn FnMut(f64) -> bool,
) -> bool {
    let mut batch = Batch::default();
    let mut opened = open.into_iter();
    let mut waiting = waiting.iter().filter(|source| is_text(source.facts()));
    while problems.len() < MOST_PROBLEMS {
        let Some(mut reader) = opened.next().or_else(|| waiting.find_map(|source| source.open(context).ok())) else {
            break;
        };
        loop {
            match reader.next(context, &mut batch) {
                Ok(false) => break,
                Ok(true) if !goes_on(reader.progress().clamp(0.0, 1.0)) => return false,
                Ok(true) => {}
                Err(more) => {
                    problems.extend(more);
                    break;
                }
            }
        }
    }
    problems.truncate(MOST_PROBLEMS);
    true
}
