//! A stream that is analysed as it comes: bytes go in, bursts come out as they end, in memory that does not grow.
//!
//! The readers of files read it too: a [`Pipe`] hands whole lines to them, and they stop where no more have come. Nothing is read twice, so
//! what a file would be refused for is passed over and counted: wrong rows, records before an earlier one. A time in which samples are
//! missing ends a burst that is open, as nobody knows what was in between.
//!
//! Memory: ports are at most as many as a trace may have, and those without records for an hour give theirs back. Names of flows are
//! forgotten when half a million have gathered, at a moment without an open burst if there is one; then times get a new origin, too.

mod clock;
mod datagrams;
mod ended;
mod pipe;
mod port;
mod report;
#[cfg(test)]
mod tests;

pub use ended::Ended;
pub use port::{Cell, Gap};

use self::clock::{Clock, Told, UNPLACED};
use self::datagrams::Datagrams;
use self::ended::EndedBurst;
use self::pipe::{OneStream, Pipe};
use self::port::{Away, LivePort};
use super::counted::PortSink;
use super::estimate::Buffer;
use super::{detection, By, Options, Source};
use crate::counters::Reading;
use crate::formats::{feed, has_values, is_header, is_schema, tells, Tells};
use crate::input::at::Shelf;
use crate::input::context::{Context, Origin, Refused, SharedFlows, SECOND};
use crate::input::facts::Facts;
use crate::input::file::Place;
use crate::input::number::OUTSIDE;
use crate::input::problem::{Problem, Problems};
use crate::input::reader::{Batch, TraceReader};
use crate::{Fates, Settings};
use fanin_units::{Bytes, Span, Time};
use serde_json::{json, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// Lines by which the columns of a stream are found out, if so many come at once.
const LOOK: usize = 1_000;
/// Bytes that are inspected at most before a stream is refused.
const START: usize = 4 << 20;
/// Bytes of messages that are inspected before a second of patience is over.
const MESSAGES: usize = 64 << 10;
/// First bytes of a stream by which telemetry is recognised.
const RECOGNISED: usize = 512;
/// Bytes of one record, or behind the end of a stream, at most.
const MOST_WAITING: usize = 256 << 20;
/// Askings after which the beginning of a slow stream must do.
const PATIENCE: u32 = 8;
/// Flows that are remembered until there is a moment without bursts, and at most; those of each port count.
const FLOWS: (usize, usize) = (1 << 19, 1 << 20);
/// Time after the origin from which there is a new one [ps]: 53 days.
const LATE: u64 = 1 << 62;
/// Bursts of a port that are held until they are taken.
const HELD_BURSTS: usize = 1_024;
/// Cells that are held until they are taken.
const HELD_CELLS: usize = 1 << 17;
/// Refusals of one thing at one place, one after another, after which a reader goes no further.
const STUCK: u32 = 8;
/// Askings between two looks for ports that have gone.
const LOOKS: u64 = 256;

/// Choices beside the settings of the analysis.
#[derive(Clone, Copy, Debug)]
pub struct Watching {
    /// Time between two records of a port that is a gap; none: ten times the usual step of samples.
    pub gap: Option<Span>,
    /// Width of a cell.
    pub cell: Span,
    /// Time after which a port without records gives its memory back.
    pub retire: Span,
}

impl Default for Watching {
    fn default() -> Self {
        Watching { gap: None, cell: Span::from_ps(SECOND as u64), retire: Span::from_ps(3_600 * SECOND as u64) }
    }
}

/// Facts about a stream, and the quantity by which its bursts are found.
struct Known {
    facts: Facts,
    by: By,
}

/// Beginnings of files that are no streams of rows.
const NO_ROWS: [(&[u8], &str); 9] = [
    (b"PAR1", "Parquet"),
    (b"ARROW1", "an Arrow file, not a stream"),
    (&[0xd4, 0xc3, 0xb2, 0xa1], "a capture"),
    (&[0xa1, 0xb2, 0xc3, 0xd4], "a capture"),
    (&[0x4d, 0x3c, 0xb2, 0xa1], "a capture"),
    (&[0xa1, 0xb2, 0x3c, 0x4d], "a capture"),
    (&[0x0a, 0x0d, 0x0d, 0x0a], "a capture"),
    (&[0x1f, 0x8b], "packed with gzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "packed with zstd"),
];

/// A port, by its name's place among those of the context.
enum Slot {
    /// Not asked for.
    Ignored,
    Watched(Box<LivePort>),
    /// No records for a long time: only counts are left.
    Retired(Box<Away>),
}

/// A stream that is analysed as it comes.
pub struct Live {
    name: PathBuf,
    options: Options,
    watching: Watching,
    pipe: Pipe,
    context: Context,
    reader: Option<Box<dyn TraceReader>>,
    /// Facts about the present file, or the last one.
    known: Option<Arc<Known>>,
    /// First line of a table, if it names the columns.
    header: Vec<u8>,
    /// Bytes that were put in front of the present file.
    added: u64,
    /// Bytes of the present file before those of the pipe.
    base: u64,
    /// Bytes of the present file after which nothing is lost by a new start.
    safe: u64,
    /// True while bytes come that an earlier watch has counted.
    replaying: bool,
    /// True after an error: what comes of the present file is passed over.
    broken: bool,
    datagrams: Datagrams,
    /// True once the first bytes have shown whether the stream is one of messages.
    recognised: bool,
    askings: u32,
    /// Bytes that waited at the last asking.
    asked_with: usize,
    takings: u64,
    batch: Batch,
    ports: Vec<Slot>,
    clock: Clock,
    /// Records that were taken since one leapt ahead.
    since_leap: u64,
    /// Times that the stream went on far ahead of where it was.
    leaps: u64,
    /// Rows outside the times that a trace can have, since the last record.
    unplaced: u64,
    /// True where the next file sets the origin of time.
    wants_origin: bool,
    cells: Vec<(u32, Cell)>,
    cells_lost: u64,
    bursts: Vec<EndedBurst>,
    gaps: Vec<Value>,
    /// Times that names of flows were forgotten.
    renewals: u64,
}

impl Live {
    /// A stream of that name, of which nothing has come.
    pub fn new(name: &str, options: &Options, watching: Watching) -> Self {
        let settings = Settings { max_bursts: options.settings.max_bursts.min(HELD_BURSTS), ..options.settings.clone() };
        let context = Context {
            overhead: settings.overhead.get(),
            rate: settings.rate,
            rtt_given: settings.rtt.is_some(),
            refused: Some(Refused::default()),
            ..Context::default()
        };
        Live {
            name: PathBuf::from(name),
            options: Options { settings, ..options.clone() },
            watching,
            pipe: Pipe::new(),
            context,
            reader: None,
            known: None,
            header: Vec::new(),
            added: 0,
            base: 0,
            safe: 0,
            replaying: false,
            broken: false,
            datagrams: Datagrams::default(),
            recognised: false,
            askings: 0,
            asked_with: 0,
            takings: 0,
            batch: Batch::default(),
            ports: Vec::new(),
            clock: Clock::default(),
            since_leap: 0,
            leaps: 0,
            unplaced: 0,
            wants_origin: true,
            cells: Vec::new(),
            cells_lost: 0,
            bursts: Vec::new(),
            gaps: Vec::new(),
            renewals: 0,
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// The stream is of no format that can be read as it comes, or lacks what bursts are found by. What comes of the file after an error is
    /// passed over.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Problems> {
        self.trying(|live| {
            live.replayed()?;
            live.take_in(bytes)
        })
    }

    /// Takes a datagram: lines of text, or of sFlow or IPFIX; `ns`: when it came, since 1970. One of another kind is passed over.
    ///
    /// # Errors
    /// As for [`Live::push`].
    pub fn push_datagram(&mut self, bytes: &[u8], ns: u64) -> Result<(), Problems> {
        if let Some(stray) = self.datagrams.begin_anew_with(bytes, self.reader.is_some()) {
            // What can be read of those before is; the rest is the stray one.
            let _ = self.reopen();
            self.refuse(vec![stray.file(&self.name)]);
        }
        match self.datagrams.take(bytes, ns) {
            Ok(bytes) => self.push(&bytes),
            Err(problem) => {
                self.refuse(vec![problem.file(&self.name)]);
                Ok(())
            }
        }
    }

    /// Takes bytes of a stream of telemetry that an earlier watch has counted: what they say of later ones is kept, and nothing is counted.
    ///
    /// # Errors
    /// As for [`Live::push`].
    pub fn replay(&mut self, bytes: &[u8]) -> Result<(), Problems> {
        self.replaying = true;
        self.safe += bytes.len() as u64;
        self.trying(|live| live.take_in(bytes))
    }

    /// True for a beginning of a file of which a later part cannot be read alone.
    pub fn needs_beginning(start: &[u8]) -> bool {
        feed(start).0
    }

    /// Does something with the stream, unless it is broken.
    fn trying(&mut self, what: impl FnOnce(&mut Self) -> Result<(), Problems>) -> Result<(), Problems> {
        if self.broken {
            return Ok(());
        }
        let done = what(self);
        self.broken = done.is_err();
        done
    }

    /// Reads the rest of what an earlier watch has counted.
    fn replayed(&mut self) -> Result<(), Problems> {
        if self.replaying {
            self.begin()?;
            self.replaying = false;
            self.context.refused = Some(Refused::default());
        }
        Ok(())
    }

    fn take_in(&mut self, bytes: &[u8]) -> Result<(), Problems> {
        self.pipe.push(bytes);
        if self.reader.is_some() {
            return self.read();
        }
        let waiting = self.pipe.waiting();
        if !self.recognised && waiting >= RECOGNISED {
            self.recognised = true;
            self.recognise();
        }
        if self.pipe.is_bytes() {
            if waiting < MESSAGES {
                return Ok(());
            }
            return match self.inspect() {
                // What shows bursts may be in a later message.
                Err(_) if waiting < START => Ok(()),
                other => other.and_then(|()| self.read()),
            };
        }
        let (lines, _) = self.pipe.units(LOOK);
        // Of Arrow: the schema, perhaps a dictionary, and a record batch.
        let most = if self.pipe.is_arrow() { 3 } else { LOOK };
        if lines < most && waiting < START {
            return Ok(());
        }
        self.inspect()?;
        if self.reader.is_none() && waiting > MOST_WAITING {
            return Err(Problem::new(format!("has no record in {MOST_WAITING} bytes")).file(&self.name).into());
        }
        self.read()
    }

    /// Finds out from its first bytes whether the stream is one of messages that are no lines.
    fn recognise(&mut self) {
        let begins = self.base == 0 && self.reader.is_none() && !self.pipe.is_bytes();
        if begins && matches!(feed(&self.pipe.start(RECOGNISED)), (true, false)) {
            self.pipe.take_bytes();
        }
    }

    /// Begins with what has come, be it little.
    fn begin(&mut self) -> Result<(), Problems> {
        if self.reader.is_none() && self.pipe.waiting() > 0 {
            self.recognise();
            self.inspect()?;
        }
        self.read()
    }

    /// Goes on with what there is, if the stream is slow: called a few times a second.
    ///
    /// # Errors
    /// As for [`Live::push`].
    pub fn settle(&mut self) -> Result<(), Problems> {
        self.trying(Live::settle_now)
    }

    fn settle_now(&mut self) -> Result<(), Problems> {
        self.replayed()?;
        if self.reader.is_some() || self.pipe.waiting() == 0 {
            return Ok(());
        }
        self.askings += 1;
        self.recognise();
        let (lines, first) = self.pipe.units(2);
        // A table needs its names and a row.
        let enough = self.pipe.is_bytes() || lines > 1 || (lines == 1 && first.trim_ascii_start().starts_with(b"{"));
        if !enough || self.askings < 2 {
            return Ok(());
        }
        let waiting = self.pipe.waiting();
        let grows = std::mem::replace(&mut self.asked_with, waiting) != waiting;
        match self.inspect() {
            // A document may lack its end.
            Err(_) if grows || self.askings < PATIENCE => Ok(()),
            other => other.and_then(|()| self.read()),
        }
    }

    /// Ends the present file: what comes next is another one, as after a rotation. Ports go on.
    ///
    /// # Errors
    /// As for [`Live::push`].
    pub fn reopen(&mut self) -> Result<(), Problems> {
        self.pipe.end();
        let ended = self.trying(|live| live.replayed().and_then(|()| live.begin()));
        if let Some(mut reader) = self.reader.take() {
            reader.finish(&mut self.context);
            // A file each hour for years: the notes of the last ones do.
            let Context { notes, findings, .. } = &mut self.context;
            notes.drain(..notes.len().saturating_sub(LOOK));
            findings.drain(..findings.len().saturating_sub(LOOK));
        }
        for slot in &mut self.ports {
            if let Slot::Watched(port) = slot {
                port.resume();
            }
        }
        (self.pipe, self.added, self.base, self.safe, self.recognised) = (Pipe::new(), 0, 0, 0, false);
        (self.askings, self.asked_with, self.broken, self.datagrams) = (0, 0, false, Datagrams::default());
        ended
    }

    /// Ends the stream, and bursts that are open.
    ///
    /// # Errors
    /// As for [`Live::push`].
    pub fn end(&mut self) -> Result<(), Problems> {
        let reopened = self.reopen();
        self.stop();
        reopened
    }

    /// Ends bursts that are open; an unfinished last line stays unread.
    pub fn stop(&mut self) {
        self.end_ahead();
        for slot in &mut self.ports {
            if let Slot::Watched(port) = slot {
                port.analyzer.interrupt();
            }
        }
    }

    /// Remembers the first line of a file that is read on from a later place.
    pub fn remember_header(&mut self, line: &[u8]) {
        if is_schema(line) || !has_values(line) {
            self.header = line.to_vec();
        }
    }

    /// Bytes of the present file that need not be read again.
    pub fn used(&self) -> u64 {
        self.safe
    }

    /// Finds out the format; nothing happens while there is no record yet.
    fn inspect(&mut self) -> Result<(), Problems> {
        let (_, first) = self.pipe.units(1);
        let is_bytes = self.pipe.is_bytes();
        if let Some((_, what)) = NO_ROWS.iter().find(|(start, _)| !is_bytes && self.pipe.starts_with(start)) {
            return Err(self.only_whole(what).into());
        }
        let headless = if self.pipe.is_arrow() { !is_schema(&first) } else { first != self.header && has_values(&first) };
        if !self.header.is_empty() && headless && self.added == 0 && !is_bytes {
            self.pipe.put_first(&self.header);
            self.added = self.header.len() as u64;
        }
        let shelf = Shelf(Arc::new(OneStream { path: self.name.clone(), pipe: self.pipe.clone() }));
        let place = Place { path: self.name.clone(), shown: self.name.clone(), shelf, format: self.options.format };
        let source = [Source::find(&place, self.options.columns.as_ref())?];
        let facts = source[0].facts().clone();
        if let Tells::AtEnd(what) = tells(facts.kind) {
            return Err(self.only_whole(what).into());
        }
        let by = detection(&self.options, &source)?;
        let [source] = source;
        if facts.first.is_none() {
            return Ok(());
        }
        if std::mem::take(&mut self.wants_origin) {
            self.context.origin = Origin::of(facts.first.unwrap_or(0));
        }
        self.pipe.go_on();
        self.reader = Some(source.open(&mut self.context)?);
        if is_header(facts.kind, &first) {
            self.header = first;
        }
        self.known = Some(Arc::new(Known { facts, by }));
        Ok(())
    }

    fn only_whole(&self, what: &str) -> Problem {
        let problem = Problem::new(format!("is {what}, which cannot be read as it comes")).file(&self.name);
        problem.suggestion("fanin analyze reads it when it is complete")
    }

    /// Reads all that has come.
    ///
    /// # Errors
    /// The stream is damaged so that it cannot go on.
    fn read(&mut self) -> Result<(), Problems> {
        let (Some(mut reader), Some(known)) = (self.reader.take(), self.known.clone()) else { return Ok(()) };
        self.pipe.was_blocked();
        let rows = self.refused_rows();
        let (mut failures, mut refused) = (0, Problems::new());
        loop {
            let more = reader.next(&mut self.context, &mut self.batch);
            let (ended, failed) = (matches!(more, Ok(false)), more.is_err());
            self.take_batch(&known);
            if let Err(problems) = more {
                // A reader that does not pass over what it refuses would do so for ever.
                failures = if problems == refused { failures + 1 } else { 0 };
                if failures == STUCK || reader.is_lost() || problems.iter().any(|problem| problem.asks) {
                    return Err(problems);
                }
                refused.clone_from(&problems);
                self.refuse(problems);
            }
            // Behind a wrong message there may be more that has come.
            if ended || (self.pipe.was_blocked() && !(failed && reader.unread() > 0)) {
                break;
            }
        }
        if self.is_outside() {
            self.unplaced += self.refused_rows() - rows;
        }
        if self.pipe.waiting() > MOST_WAITING {
            let problem = Problem::new(format!("goes on with {MOST_WAITING} bytes that are no whole record"));
            return Err(problem.file(&self.name).into());
        }
        if reader.is_between() {
            let read = self.pipe.read().saturating_sub(self.added + reader.unread());
            self.safe = self.safe.max(self.base + read);
        }
        for port in reader.mixed() {
            if let Some(Slot::Watched(port)) = self.ports.get_mut(port as usize) {
                port.analyzer.mix();
            }
        }
        self.reader = Some(reader);
        if self.unplaced >= UNPLACED && !self.replaying {
            self.begin_anew();
        } else if self.clock.latest > LATE || self.flows() > FLOWS.0 {
            self.renew(&known);
        }
        Ok(())
    }

    fn refused_rows(&self) -> u64 {
        self.context.refused.as_ref().map_or(0, |refused| refused.rows)
    }

    /// True if the latest wrong row has a time that the trace cannot have.
    fn is_outside(&self) -> bool {
        let latest = self.context.refused.as_ref().and_then(|refused| refused.latest.back());
        latest.is_some_and(|problem| OUTSIDE.contains(&&*problem.message))
    }

    /// Counts a row that is wrong.
    fn refuse(&mut self, problems: Problems) {
        if let Some(refused) = &mut self.context.refused {
            refused.add(1, problems);
        }
    }

    fn take_batch(&mut self, known: &Known) {
        for name in &self.context.ports.names()[self.ports.len()..] {
            let asked = self.options.ports.is_empty() || self.options.ports.iter().any(|port| port == name);
            let port = || Slot::Watched(Box::new(port_of(name, known, &self.options, &self.watching, &self.context)));
            self.ports.push(if asked { port() } else { Slot::Ignored });
        }
        let mut batch = std::mem::take(&mut self.batch);
        let to = self.options.stop.unwrap_or(Time::MAX);
        if self.replaying {
            batch.records.clear();
            batch.readings.retain(|(_, reading)| matches!(reading, Reading::Speed(_)));
        }
        if batch.len() > 0 {
            self.unplaced = 0;
        }
        for (record, place) in batch.records.iter().zip(&batch.ports) {
            if record.time > to {
                continue;
            }
            let now = record.time.ps();
            if self.leaps(*place, now) && self.waits(*place, Told::Record(*record), known) {
                continue;
            }
            if let Some(port) = self.port_at(*place, now, known) {
                port.take(record);
            }
        }
        for (place, reading) in &batch.readings {
            let time = reading.time();
            if time > to {
                continue;
            }
            if let Reading::Speed(_) = reading {
                if let Slot::Watched(port) = &mut self.ports[*place as usize] {
                    port.take_reading(reading);
                }
                continue;
            }
            if self.leaps(*place, time.ps()) && self.waits(*place, Told::Reading(*reading), known) {
                continue;
            }
            if let Some(port) = self.port_at(*place, time.ps(), known) {
                port.take_reading(reading);
            }
        }
        batch.clear();
        self.batch = batch;
    }

    /// The port of a record that is taken, if it is asked for, with its cell open.
    #[inline]
    fn port_at(&mut self, place: u32, now: u64, known: &Known) -> Option<&mut LivePort> {
        self.clock.see(now);
        if let Slot::Retired(_) = &self.ports[place as usize] {
            self.wake(place, known);
        }
        if matches!(&self.ports[place as usize], Slot::Watched(port) if now < port.last) {
            self.turn_back(place, now, known);
        }
        let Slot::Watched(port) = &mut self.ports[place as usize] else { return None };
        if now >= port.cell_ends {
            let clock = (&self.watching, self.context.origin);
            next_cell(port, Time::from_ps(now), place, clock, (&mut self.cells, &mut self.cells_lost));
        }
        self.since_leap += 1;
        Some(port)
    }

    /// Takes up a port again that had no records for a long time.
    #[cold]
    fn wake(&mut self, place: u32, known: &Known) {
        let slot = &mut self.ports[place as usize];
        if let Slot::Retired(away) = slot {
            let away = Away { counts: std::mem::take(&mut away.counts), ..**away };
            let name = &self.context.ports.names()[place as usize];
            let port = port_of(name, known, &self.options, &self.watching, &self.context);
            *slot = Slot::Watched(Box::new(port.after(away)));
        }
    }

    fn flows(&self) -> usize {
        let of_ports = self.ports.iter().map(|slot| if let Slot::Watched(port) = slot { port.analyzer.flows_seen() } else { 0 });
        of_ports.sum::<usize>().max(self.context.flows.lock().remembered())
    }

    /// Forgets the names of flows, and moves the origin of time, at a good moment or when it must be.
    fn renew(&mut self, known: &Known) {
        let inside = |slot: &Slot| matches!(slot, Slot::Watched(port) if port.analyzer.open_burst().is_some());
        let must = self.clock.latest > LATE + LATE / 2 || self.flows() > FLOWS.1;
        if !must && self.ports.iter().any(inside) {
            return;
        }
        self.renewals += 1;
        for slot in &mut self.ports {
            if let Slot::Watched(port) = slot {
                port.leave_out();
                port.analyzer.interrupt();
            }
        }
        self.gather();
        let old = self.context.origin;
        let now = u128::from(old.seconds()) * SECOND + u128::from(self.clock.latest);
        self.context.flows = SharedFlows::default();
        self.context.origin = Origin::of(now);
        let shift = u64::try_from(u128::from(self.context.origin.seconds() - old.seconds()) * SECOND).unwrap_or(0);
        self.clock.set(self.clock.latest - shift);
        for (slot, name) in self.ports.iter_mut().zip(self.context.ports.names()) {
            if let Slot::Watched(port) = slot {
                port.renew(analyzer_of(name, known, &self.options, &self.context), shift);
            } else if let Slot::Retired(away) = slot {
                away.since = away.since.map(|since| since.saturating_sub(shift));
            }
        }
    }

    /// Gathers what has ended at each port.
    fn gather(&mut self) {
        let retire = self.watching.retire.ps();
        let looks = self.takings % LOOKS == 0;
        for place in 0..self.ports.len() {
            let latest = self.clock.latest;
            let Slot::Watched(port) = &mut self.ports[place] else { continue };
            let gone = looks && latest.saturating_sub(port.last) > retire;
            if gone {
                port.leave_out();
                port.analyzer.interrupt();
            }
            if gone || (port.cell_ends > 0 && latest >= port.cell_ends) {
                self.close(place);
            }
            self.collect(place);
            if let (true, Slot::Watched(port)) = (gone, &self.ports[place]) {
                self.ports[place] = Slot::Retired(Box::new(port.retired()));
            }
        }
    }

    /// Gathers the bursts of a port that have ended, and its gaps.
    fn collect(&mut self, place: usize) {
        let origin_s = self.context.origin.seconds();
        let fates = self.known.as_ref().map_or(Fates::ALL, |known| known.facts.fates);
        let Slot::Watched(port) = &mut self.ports[place] else { return };
        let name = &self.context.ports.names()[place];
        for burst in port.bursts(fates) {
            self.bursts.push(EndedBurst { port: name.clone(), origin_s, burst });
        }
        for Gap { from, to, why } in port.gaps.drain(..) {
            self.gaps.push(json!({ "port": name, "origin_s": origin_s, "from_ps": from, "to_ps": to, "why": why }));
        }
    }

    /// Ends the cell of a port that is open.
    fn close(&mut self, place: usize) {
        if let Slot::Watched(port) = &mut self.ports[place] {
            self.cells.extend(port.close_cell().map(|cell| (place as u32, cell)));
        }
    }

    /// All that has ended since this was last asked: bursts, gaps, cells of the strip.
    pub fn take(&mut self) -> Ended {
        self.gather();
        self.takings += 1;
        let names = self.context.ports.names();
        let cells = std::mem::take(&mut self.cells);
        let cell = |(place, cell): &(u32, Cell)| json!([names[*place as usize], cell.told()]);
        let (bursts, gaps) = (std::mem::take(&mut self.bursts), std::mem::take(&mut self.gaps));
        Ended::new(bursts, gaps, cells.iter().map(cell).collect(), std::mem::take(&mut self.cells_lost))
    }
}

/// Ends the cell of a port before a time, and opens the one that the time is in.
#[cold]
fn next_cell(
    port: &mut LivePort,
    time: Time,
    place: u32,
    (watching, origin): (&Watching, Origin),
    (cells, lost): (&mut Vec<(u32, Cell)>, &mut u64),
) {
    port.come_back(time.ps(), watching.cell.ps());
    if let Some(cell) = port.close_cell() {
        if cells.len() < HELD_CELLS {
            cells.push((place, cell));
        } else {
            *lost += 1;
        }
    }
    let (zero, width) = (u128::from(origin.seconds()) * SECOND, u128::from(watching.cell.ps().max(1)));
    let number = (zero + u128::from(time.ps())) / width;
    port.cell.number = u64::try_from(number).unwrap_or(u64::MAX);
    port.cell_ends = u64::try_from((number + 1) * width - zero).unwrap_or(u64::MAX);
}

fn analyzer_of(name: &str, known: &Known, options: &Options, context: &Context) -> PortSink {
    let Facts { speed, tick, unit, .. } = known.facts;
    let mut settings = Settings { tick, unit, ..options.detecting(known.by) };
    if settings.rate.is_none() && known.by == By::Rate {
        (settings.rate, settings.rate_of_result) = (speed, speed.is_some());
    }
    let buffer = match options.buffer {
        Some(Buffer::Bytes(bytes)) => Some(Bytes(bytes)),
        _ => None,
    };
    PortSink::new(&settings, buffer, name, context.flows.lookup())
}

fn port_of(name: &str, known: &Known, options: &Options, watching: &Watching, context: &Context) -> LivePort {
    let events = tells(known.facts.kind) == Tells::Events;
    LivePort::new(analyzer_of(name, known, options, context), watching.gap.map(Span::ps), events)
}
