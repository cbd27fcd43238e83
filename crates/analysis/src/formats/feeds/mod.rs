//! Streams of telemetry: messages one after another, whatever brings them, as readings of counters.
//!
//! A [`Decode`] takes messages off the front of the bytes that have come, and tells a [`Feed`] what they say. Files are read by it, and so are
//! sockets and pipes: an input that has nothing yet ends a batch, not the stream.

pub mod bst;
pub mod captured;
mod documents;
pub mod gnmi;
pub mod hft;
pub mod int_reports;
pub mod ipfix;
pub mod lanz;
mod looks;
pub mod millisampler;
pub mod netflow;
pub mod nxos;
pub mod otlp;
pub mod pfc;
mod repeats;
pub mod sflow;
mod templates;
pub mod timed;

use crate::checks::Finding;
use crate::counters::{Interval, Look, Reading, Series};
use crate::formats::{Format, Inspected, Mapping, OpenRows, RowsFile, Start, Tells, UNZONED};
use crate::input::context::Context;
use crate::input::facts::{Facts, Shape};
use crate::input::file::{Gauge, Packing, SourceFile};
use crate::input::number::{from_date, from_text};
use crate::input::problem::{Problem, Problems};
use crate::input::reader::{Batch, TraceReader, BATCH};
use crate::Fates;
use fanin_units::{BitRate, Time};
use fanin_wire::Frame;
use std::collections::BTreeMap;
use std::io::{BufRead, ErrorKind};
use std::path::{Path, PathBuf};
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

    /// True if the facts of a file need all of it, as what is first may stand last.
    fn is_read_whole(&self) -> bool {
        false
    }

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

impl Seen {
    /// True if nothing is known but a time: whatever else is asked, what is wrong comes first.
    fn is_bare(&self) -> bool {
        !self.queue && !self.drops && !self.marks && self.speed.is_none()
    }
}

/// Receiver of what messages tell.
pub struct Feed<'a> {
    context: &'a mut Context,
    batch: &'a mut Batch,
    ports: &'a mut Vec<(Series, Option<BitRate>)>,
    seen: Option<&'a mut Seen>,
    /// Name of the stream in messages.
    path: &'a Path,
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

    /// Takes a finding about the source.
    pub fn finding(&mut self, finding: Finding) {
        if self.seen.is_none() {
            self.context.findings.push(finding);
        }
    }

    /// Takes a captured packet, if it is a drop notification; true if it is.
    fn notice(&mut self, packet: &captured::Packet<'_>) -> bool {
        let length = u32::try_from(packet.data.len()).unwrap_or(u32::MAX);
        let (link, data) = (packet.link, packet.data);
        let frame = Frame { offset: 0, interface: 0, link, time_ps: 0, length, data, fcs: None, direction: None };
        let is_one = frame.is_notice_only();
        if is_one && self.seen.is_none() {
            self.context.notices.see(&frame, self.context.origin.time(packet.time).ok());
        }
        is_one
    }

    /// Notes that a date had no time zone.
    pub fn unzoned(&mut self) {
        self.context.note(format!("{}: {UNZONED}", self.path.display()));
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

    /// Takes what is still held of ports whose counters come apart: no more will come.
    fn finish(&mut self) {
        let given = self.context.rate;
        for (port, (series, speed)) in self.ports.iter_mut().enumerate() {
            let intervals = series.finish(given.or(*speed));
            self.batch.readings.extend(intervals.into_iter().flatten().map(|i| (port as u32, Reading::Interval(i))));
        }
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
    pub tells: Tells,
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

    fn tells(&self) -> Tells {
        self.tells
    }

    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
        let made = StreamedFile { make: self.make, mapping: mapping.cloned() };
        let (mut reader, grows) = (made.reader(&file)?, file.place.open()?.grows());
        let (mut context, mut batch, mut seen) = (Context::default(), Batch::default(), Seen::default());
        while reader.taken < LOOK as u64 || reader.decoder.is_read_whole() {
            batch.clear();
            // What is wrong is told when the file is read, with all that is before it.
            match reader.step(&mut context, &mut batch, Some(&mut seen)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(problem) if seen.first.is_none() || problem.asks || (!grows && seen.is_bare()) => {
                    return Err(problem.into());
                }
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
            done: 0,
            taken: 0,
            end: false,
            behind: false,
            lost: false,
            finished: false,
            cut: 0,
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
    /// Bytes that have come, the first of which are done with.
    held: Vec<u8>,
    done: usize,
    /// Bytes of the stream that are done with.
    taken: u64,
    end: bool,
    /// True behind a wrong message: what has come with it is not decoded yet.
    behind: bool,
    /// True after an error behind which no message can be told from another.
    lost: bool,
    /// Looks that were held, of ports whose counters come apart, have been told.
    finished: bool,
    /// Bytes at the end that are no whole message.
    cut: usize,
    ports: Vec<(Series, Option<BitRate>)>,
}

impl Reader {
    /// Reads on; false at the end, and where nothing has come.
    fn step(&mut self, context: &mut Context, batch: &mut Batch, seen: Option<&mut Seen>) -> Result<bool, Problem> {
        if self.lost || (self.end && self.done == self.held.len()) {
            // Once, also behind a wrong message at the end.
            let goes_on = !std::mem::replace(&mut self.finished, true);
            if goes_on {
                Feed { context, batch, ports: &mut self.ports, seen, path: &self.path, passed: 0 }.finish();
            }
            return Ok(goes_on);
        }
        if !self.behind && !self.come()? {
            return Ok(false);
        }
        self.behind = false;
        let held = &self.held[self.done..];
        let mut feed = Feed { context, batch, ports: &mut self.ports, seen, path: &self.path, passed: 0 };
        let used = match self.decoder.decode(held, self.end, &mut feed) {
            Ok(used) => used,
            Err(problem) => {
                let place = format!("byte {}", self.taken + 1);
                let passed = feed.passed.min(held.len());
                (self.behind, self.lost) = (passed > 0, passed == 0);
                self.done += passed;
                self.taken += passed as u64;
                return Err(if problem.place.is_none() { problem.place(place) } else { problem }.file(&self.path));
            }
        };
        self.done += used;
        self.taken += used as u64;
        if self.held.len() - self.done > LONGEST {
            self.lost = true;
            let problem = Problem::new(format!("begins a message of more than {LONGEST} bytes")).file(&self.path);
            return Err(problem.place(format!("byte {}", self.taken + 1)));
        }
        if self.end {
            let rest = &self.held[self.done..];
            self.cut = if rest.trim_ascii().is_empty() { 0 } else { rest.len() };
            self.done = self.held.len();
        }
        Ok(true)
    }

    /// Takes what has come behind what is held; false where nothing has.
    fn come(&mut self) -> Result<bool, Problem> {
        let come = loop {
            match self.input.fill_buf() {
                Ok(come) => break come,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                // The rest of a file that was cut short.
                Err(_) if self.gauge.is_cut() => break &[],
                Err(error) => return Err(Problem::new(format!("cannot be read: {error}")).file(&self.path)),
            }
        };
        self.end = come.is_empty();
        // What is done with gives its room back once for all the messages in it.
        self.held.drain(..std::mem::take(&mut self.done));
        // No more is held than the longest message and what has come with its end.
        let room = (LONGEST + 1).saturating_sub(self.held.len()).max(1);
        let come = &come[..come.len().min(room)];
        self.held.extend_from_slice(come);
        let count = come.len();
        self.input.consume(count);
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
        (self.held.len() - self.done) as u64
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
        if self.cut > 0 {
            notes.push(format!("ends within a message or a line: its last {} bytes are not read", self.cut));
        }
        notes.into_iter().for_each(|note| context.note(format!("{file}: {note}")));
        context.notes.extend(self.gauge.note(self.packing, &file));
    }
}

/// Hands each whole line of a text over, trimmed, and counts it; gives the number of bytes done with. A last line without its end was cut: a
/// number in it may be a part of one.
///
/// # Errors
/// What `each` says, with its line.
fn each_line<'a>(
    bytes: &[u8],
    number: &mut u64,
    feed: &mut Feed<'a>,
    mut each: impl FnMut(&str, &mut Feed<'a>) -> Result<(), Problem>,
) -> Result<usize, Problem> {
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let Some(length) = memchr::memchr(b'\n', rest).map(|length| length + 1) else { break };
        *number += 1;
        at += length;
        feed.pass(at);
        let text = String::from_utf8_lossy(&rest[..length]);
        each(text.trim_start_matches('\u{feff}').trim(), feed).map_err(|problem| problem.place(format!("line {number}")))?;
    }
    Ok(at)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Read};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Bytes without end, all of a kind, and how many of them were read.
    struct Endless(Arc<AtomicUsize>);

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            into.fill(b'\n');
            self.0.fetch_add(into.len(), Ordering::Relaxed);
            Ok(into.len())
        }
    }

    /// Finds each byte wrong.
    struct Wrong;

    impl Decode for Wrong {
        fn decode(&mut self, bytes: &[u8], _: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
            if bytes.is_empty() {
                return Ok(0);
            }
            feed.pass(1);
            Err(Problem::new("is wrong").value(bytes.len().to_string()))
        }
    }

    #[test]
    fn what_has_come_with_a_wrong_message_is_done_with_before_more_is_read() {
        let read = Arc::new(AtomicUsize::new(0));
        let mut reader = Reader {
            input: Box::new(BufReader::with_capacity(1_000, Endless(read.clone()))),
            gauge: Arc::default(),
            decoder: Box::new(Wrong),
            path: PathBuf::from("stream"),
            size: 0,
            packing: Packing::Plain,
            held: Vec::new(),
            done: 0,
            taken: 0,
            end: false,
            behind: false,
            lost: false,
            finished: false,
            cut: 0,
            ports: Vec::new(),
        };
        let (mut context, mut batch) = (Context::default(), Batch::default());
        for wrong in 1..=2_500 {
            let problem = (0..2).find_map(|_| reader.step(&mut context, &mut batch, None).err()).unwrap();
            assert_eq!(problem.place.as_deref(), Some(&*format!("byte {wrong}")));
            let come = read.load(Ordering::Relaxed);
            assert!(come as u64 - reader.unread() == wrong && reader.unread() < 2_000, "{come} bytes were read for {wrong}");
            assert!(reader.held.len() <= 2_000, "room is given back");
        }
    }
}
