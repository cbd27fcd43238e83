//! Streams of telemetry: messages one after another, whatever brings them, as readings of counters.
//!
//! A [`Decode`] takes messages off the front of the bytes that have come, and tells a [`Feed`] what they say. Files are read by it, and so are
//! sockets and pipes: an input that has nothing yet ends a batch, not the stream.

pub mod gnmi;
pub mod ipfix;
pub mod lanz;
pub mod millisampler;
pub mod sflow;
pub mod timed;

use crate::counters::{Interval, Look, Reading, Series};
use crate::formats::{Format, Inspected, Mapping, OpenRows, RowsFile, Start, UNZONED};
use crate::input::context::Context;
use crate::input::facts::{Facts, Shape};
use crate::input::file::{Gauge, Packing, SourceFile};
use crate::input::number::{from_date, from_text};
use crate::input::problem::{Problem, Problems};
use crate::input::reader::{Batch, TraceReader, BATCH};
use crate::Fates;
use fanin_units::{BitRate, Time};
use std::collections::BTreeMap;
use std::io::{BufRead, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

/// Longest message [bytes]: it is held in memory.
const LONGEST: usize = 16 << 20;
/// Bytes from the start of a file that are decoded to find out facts.
const LOOK: usize = 1 << 20;

/// Decoder of a stream.
pub trait Decode: Send {
    /// Takes messages off the front of `bytes`; gives how many bytes are done with: none where more must come first. `end`: no more will.
    ///
    /// # Errors
    /// Everything that is wrong with a message; without a file, and with a place where that is no number of bytes.
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem>;

    /// Notes that the stream has no end: what could wait for it in a file is told as it comes.
    fn follows(&mut self) {}

    /// Adds notes for the end of the stream.
    fn finish(&mut self, _notes: &mut Vec<String>) {}
}

/// Facts that the beginning of a stream shows.
#[derive(Debug, Default)]
struct Seen {
    first: Option<u128>,
    queue: bool,
    drops: bool,
    marks: bool,
    speed: Option<BitRate>,
}

/// Receiver of what messages tell.
pub struct Feed<'a> {
    context: &'a mut Context,
    batch: &'a mut Batch,
    ports: &'a mut Vec<(Series, Option<BitRate>)>,
    seen: Option<&'a mut Seen>,
    /// Bytes at the front up to which all is done with, also if something in them is wrong.
    passed: usize,
}

impl Feed<'_> {
    /// Notes that the next message lies before this byte: if it is wrong, a stream that has no end goes on behind it.
    pub fn pass(&mut self, to: usize) {
        self.passed = to;
    }

    /// The index of a port.
    ///
    /// # Errors
    /// There are too many.
    pub fn port(&mut self, name: &[u8]) -> Result<u32, Problem> {
        self.context.ports.index(name)
    }

    /// The number of a flow.
    ///
    /// # Errors
    /// There are too many.
    pub fn flow(&mut self, name: &str) -> Result<u32, Problem> {
        self.context.flows.lock().named(name.as_bytes())
    }

    /// A time of the stream's clock [ps] as time of the analysis.
    ///
    /// # Errors
    /// It is before the start of the trace, or too long after it.
    pub fn time(&mut self, ps: u128) -> Result<Time, Problem> {
        if let Some(seen) = &mut self.seen {
            seen.first = Some(seen.first.map_or(ps, |first| first.min(ps)));
            return Ok(Time::ZERO);
        }
        self.context.origin.time(ps).map_err(|error| {
            let seconds = ps / 1_000_000_000_000;
            Problem::new(format!("is no time of this trace: it {}", error.message())).value(format!("{seconds} s"))
        })
    }

    /// Notes that a date had no time zone.
    pub fn unzoned(&mut self, file: &str) {
        self.context.note(format!("{file}: {UNZONED}"));
    }

    fn see(&mut self, queue: bool, drops: bool, marks: bool) {
        if let Some(seen) = &mut self.seen {
            seen.queue |= queue;
            seen.drops |= drops;
            seen.marks |= marks;
        }
    }

    /// Takes a look at running totals or counts of a port.
    pub fn look(&mut self, port: u32, look: &Look) {
        self.see(look.queue.is_some() || look.watermark.is_some(), look.dropped.is_some(), look.marked.is_some());
        let given = self.context.rate;
        let (series, speed) = self.of(port);
        let intervals = series.look(look, given.or(*speed));
        self.batch.readings.extend(intervals.into_iter().flatten().map(|interval| (port, Reading::Interval(interval))));
    }

    /// Takes an interval of a port.
    pub fn interval(&mut self, port: u32, interval: Interval) {
        let queue = interval.queue.is_some() || interval.watermark.is_some();
        self.see(queue, interval.dropped.is_some(), interval.marked.is_some());
        self.batch.readings.push((port, Reading::Interval(interval)));
    }

    /// Takes the speed of a port.
    pub fn speed(&mut self, port: u32, rate: BitRate) {
        if let Some(seen) = &mut self.seen {
            seen.speed.get_or_insert(rate);
        }
        let (_, speed) = self.of(port);
        if *speed != Some(rate) {
            *speed = Some(rate);
            self.batch.readings.push((port, Reading::Speed(rate)));
        }
    }

    /// Takes bytes of a flow at a port.
    pub fn bytes(&mut self, port: u32, time: Time, flow: u32, bytes: u64) {
        self.batch.readings.push((port, Reading::Flow { time, flow, bytes }));
    }

    fn of(&mut self, port: u32) -> &mut (Series, Option<BitRate>) {
        let place = port as usize;
        if self.ports.len() <= place {
            let series = Series::new(self.context.is_live());
            self.ports.resize(place + 1, (series, None));
        }
        &mut self.ports[place]
    }
}

/// Makes the decoder of a stream. The mapping is the user's; the name is that of the port where the stream has none.
///
/// # Errors
/// A choice of the user has no meaning there.
type Make = fn(Option<&Mapping>, &str) -> Result<Box<dyn Decode>, Problem>;

/// A format of streams.
pub struct Streamed {
    pub name: &'static str,
    pub title: &'static str,
    pub recognises: fn(&[u8]) -> bool,
    pub make: Make,
}

impl Format for Streamed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn recognises(&self, start: Start<'_>) -> bool {
        (self.recognises)(start.bytes())
    }

    fn is_feed(&self) -> bool {
        true
    }

    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
        let made = StreamedFile { make: self.make, mapping: mapping.cloned() };
        let mut reader = made.reader(&file)?;
        let (mut context, mut batch, mut seen) = (Context::default(), Batch::default(), Seen::default());
        while reader.taken < LOOK as u64 {
            batch.clear();
            // What is wrong is told when the file is read, with all that is before it.
            match reader.step(&mut context, &mut batch, Some(&mut seen)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(problem) if seen.first.is_none() => return Err(problem.into()),
                Err(_) => break,
            }
        }
        let facts = Facts {
            has_queue: seen.queue,
            fates: Fates { drops: seen.drops, marks: seen.marks },
            first: seen.first,
            speed: seen.speed,
            ..Facts::of(self.name, Shape::Counters)
        };
        Ok(Inspected::Rows(Box::new(RowsFile { file, facts, notes: Vec::new(), rows: Box::new(made) })))
    }
}

/// A stream with the user's choices.
struct StreamedFile {
    make: Make,
    mapping: Option<Mapping>,
}

impl StreamedFile {
    fn reader(&self, file: &SourceFile) -> Result<Reader, Problem> {
        let in_file = |problem: Problem| if problem.file.is_none() { problem.file(&file.path) } else { problem };
        let mut decoder = (self.make)(self.mapping.as_ref(), &file.port_name()).map_err(in_file)?;
        if file.place.open()?.grows() {
            decoder.follows();
        }
        let (input, gauge) = file.open()?;
        Ok(Reader {
            input,
            gauge,
            decoder,
            path: file.path.clone(),
            size: file.size,
            packing: file.packing,
            held: Vec::new(),
            taken: 0,
            end: false,
            behind: false,
            lost: false,
            ports: Vec::new(),
        })
    }
}

impl OpenRows for StreamedFile {
    fn open(&self, file: &SourceFile) -> Result<Box<dyn TraceReader>, Problems> {
        Ok(Box::new(self.reader(file)?))
    }
}

/// A stream that is being read.
struct Reader {
    input: Box<dyn BufRead + Send>,
    gauge: Arc<Gauge>,
    decoder: Box<dyn Decode>,
    path: PathBuf,
    size: u64,
    packing: Packing,
    /// Bytes that have come and are no whole message yet.
    held: Vec<u8>,
    /// Bytes before them.
    taken: u64,
    end: bool,
    /// True behind a wrong message: what has come with it is not decoded yet.
    behind: bool,
    /// True after an error behind which no message can be told from another.
    lost: bool,
    ports: Vec<(Series, Option<BitRate>)>,
}

impl Reader {
    /// Reads on; false at the end, and where nothing has come.
    fn step(&mut self, context: &mut Context, batch: &mut Batch, seen: Option<&mut Seen>) -> Result<bool, Problem> {
        if self.end && self.held.is_empty() {
            return Ok(false);
        }
        if self.lost {
            return Ok(false);
        }
        let come = loop {
            match self.input.fill_buf() {
                Ok(come) => break Some(come),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && self.behind => break None,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                // The rest of a file that was cut short.
                Err(_) if self.gauge.is_cut() => break Some(&[]),
                Err(error) => return Err(Problem::new(format!("cannot be read: {error}")).file(&self.path)),
            }
        };
        if let Some(come) = come {
            self.end = come.is_empty();
            // No more is held than the longest message and what has come with its end.
            let room = (LONGEST + 1).saturating_sub(self.held.len()).max(1);
            let come = &come[..come.len().min(room)];
            self.held.extend_from_slice(come);
            let count = come.len();
            self.input.consume(count);
        }
        self.behind = false;
        let mut feed = Feed { context, batch, ports: &mut self.ports, seen, passed: 0 };
        let used = match self.decoder.decode(&self.held, self.end, &mut feed) {
            Ok(used) => used,
            Err(problem) => {
                let place = format!("byte {}", self.taken + 1);
                let passed = feed.passed.min(self.held.len());
                (self.behind, self.lost) = (passed > 0, passed == 0);
                self.held.drain(..passed);
                self.taken += passed as u64;
                return Err(if problem.place.is_none() { problem.place(place) } else { problem }.file(&self.path));
            }
        };
        self.held.drain(..used);
        self.taken += used as u64;
        if self.held.len() > LONGEST {
            self.lost = true;
            let problem = Problem::new(format!("begins a message of more than {LONGEST} bytes")).file(&self.path);
            return Err(problem.place(format!("byte {}", self.taken + 1)));
        }
        if self.end {
            self.held.clear();
        }
        Ok(true)
    }
}

impl TraceReader for Reader {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        let mut any = false;
        while batch.readings.len() < BATCH && self.step(context, batch, None)? {
            any = true;
        }
        // A stream that has nothing yet goes on later.
        Ok(any || !self.end)
    }

    fn place(&self, row: u64) -> String {
        format!("reading {row}")
    }

    fn unread(&self) -> u64 {
        self.held.len() as u64
    }

    fn is_lost(&self) -> bool {
        self.lost
    }

    fn progress(&self) -> f64 {
        self.gauge.used() as f64 / self.size.max(1) as f64
    }

    fn finish(&mut self, context: &mut Context) {
        let file = self.path.display().to_string();
        let mut notes = Vec::new();
        self.decoder.finish(&mut notes);
        notes.into_iter().for_each(|note| context.note(format!("{file}: {note}")));
        context.notes.extend(self.gauge.note(self.packing, &file));
    }
}

/// Largest queue so far, as a switch tells it, and true once it has fallen: then it is of each interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Most {
    last: Option<u64>,
    falls: bool,
}

impl Most {
    /// The largest queue of the interval that ends: a value that stays is no news, unless the switch begins each interval anew.
    pub fn of_interval(&mut self, value: u64) -> Option<u64> {
        let last = self.last.replace(value);
        self.falls |= last.is_some_and(|last| value < last);
        match last {
            // It may be of any time before.
            None => None,
            Some(last) if value == last && !self.falls => None,
            Some(_) => Some(value),
        }
    }
}

/// A time of its own in a line [ps]: seconds since 1970, or a date.
fn time_of(text: &str) -> Option<u128> {
    let seconds = |_| from_text(text.as_bytes(), 1_000_000_000_000);
    from_date(text.as_bytes()).map(|(ps, _)| ps).or_else(seconds).ok()
}

/// Refuses a mapping of columns where there are none.
///
/// # Errors
/// There is one.
pub fn no_columns(mapping: Option<&Mapping>, what: &str) -> Result<(), Problem> {
    match mapping.filter(|mapping| !mapping.0.is_empty()) {
        Some(mapping) => {
            let problem = Problem::new(format!("has no effect: {what} has no columns")).column("columns");
            Err(problem.value(mapping.to_string()))
        }
        None => Ok(()),
    }
}

/// Numbers of things that were passed over, by what they are: for notes.
#[derive(Debug, Default)]
pub struct PassedOver(BTreeMap<String, u64>);

/// Kinds of things that are told apart.
const KINDS: usize = 50;

impl PassedOver {
    pub fn add(&mut self, what: impl FnOnce() -> String) {
        let what = what();
        if self.0.len() < KINDS || self.0.contains_key(&what) {
            *self.0.entry(what).or_default() += 1;
        }
    }

    pub fn notes(&self, notes: &mut Vec<String>) {
        notes.extend(self.0.iter().map(|(what, count)| format!("{what}: {count}, passed over")));
    }
}
