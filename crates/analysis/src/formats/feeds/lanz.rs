//! Arista LANZ: the stream of its protobuf messages (TCP port 50001), and the table of `show queue-monitor length csv`.
//!
//! Source: goarista lanz/proto/lanz.proto (fields and numbers) and lanz/client.go (each message behind its length as a varint). A switch sends its
//! configuration first, which says how large a segment is; the table does not say it. A queue is congested from its upper threshold
//! on (`START`) until it falls below the lower one (`END`).
//!
//! Times are microseconds by lanz.proto, and tens of microseconds by the example client of EOS and by goarista's own test values: the unit
//! is the one that makes them dates from 2001 to 2100.

use super::{each_line, Decode, Feed, PassedOver, Streamed, Tells};
use crate::counters::{Interval, State};
use crate::formats::mapping::{Mapping, Role, Unit};
use crate::input::number::{from_date, from_text, DATES};
use crate::input::problem::Problem;
use fanin_units::Time;
use prost::Message;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The stream of messages.
pub const STREAM: Streamed =
    Streamed { name: "lanz", title: "LANZ stream", recognises: is_stream, make: stream, tells: Tells::Events };

/// The table of the command line.
pub const TABLE: Streamed =
    Streamed { name: "lanz-csv", title: "LANZ CSV", recognises: is_table, make: table, tells: Tells::Events };

/// Longest message [bytes]: a configuration of some thousand ports.
const LONGEST: u64 = 1 << 20;
/// Bytes of a varint, at most.
const LONGEST_VARINT: usize = 10;
/// Ports whose thresholds are told in notes, at most.
const NAMED: usize = 5;
/// Picoseconds in a microsecond.
const US: u128 = 1_000_000;

#[derive(Clone, PartialEq, Message)]
struct LanzRecord {
    #[prost(message, optional, tag = "1")]
    config: Option<ConfigRecord>,
    #[prost(message, optional, tag = "2")]
    congestion: Option<CongestionRecord>,
    #[prost(message, optional, tag = "3")]
    error: Option<ErrorRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct ConfigRecord {
    #[prost(uint32, required, tag = "4")]
    segment_size: u32,
    #[prost(uint32, required, tag = "5")]
    max_queue_size: u32,
    #[prost(message, repeated, tag = "6")]
    ports: Vec<PortConfigRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct PortConfigRecord {
    #[prost(string, required, tag = "1")]
    name: String,
    #[prost(uint32, required, tag = "5")]
    high: u32,
    #[prost(uint32, required, tag = "6")]
    low: u32,
}

#[derive(Clone, PartialEq, Message)]
struct CongestionRecord {
    #[prost(uint64, required, tag = "1")]
    timestamp: u64,
    #[prost(string, required, tag = "2")]
    name: String,
    #[prost(uint32, required, tag = "5")]
    queue_size: u32,
    #[prost(int32, optional, tag = "6")]
    entry_type: Option<i32>,
    #[prost(uint32, optional, tag = "7")]
    traffic_class: Option<u32>,
    #[prost(uint64, optional, tag = "8")]
    time_of_max: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    drops: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct ErrorRecord {
    #[prost(string, required, tag = "2")]
    message: String,
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Start,
    Update,
    End,
    Polling,
}

/// One entry about a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    kind: Kind,
    time: Time,
    /// Bytes in the queue; at the end of a congestion, the most of it where `is_most`.
    queue: u64,
    is_most: bool,
    /// Packets that were dropped since the entry before.
    drops: Option<u64>,
}

/// Last entries of ports, and the time since which the congestion goes on.
#[derive(Debug, Default)]
struct Congestions(BTreeMap<u32, (Entry, Option<Time>)>);

impl Congestions {
    fn take(&mut self, port: u32, entry: Entry, feed: &mut Feed<'_>) {
        let Entry { kind, time, queue, is_most, drops } = entry;
        let last = self.0.get(&port).copied();
        if last.is_some_and(|(last, _)| last == entry) {
            feed.interval(port, Interval::unknown(time, time, State::Repeated));
            return;
        }
        let since = match kind {
            Kind::Start | Kind::Polling => None,
            Kind::Update | Kind::End => last.and_then(|(_, since)| since),
        };
        // Entries are read in their own order: one that is earlier than the last says nothing that could be placed.
        if since.is_some_and(|since| since > time) {
            feed.interval(port, Interval { dropped: drops, ..Interval::unknown(time, time, State::Contradicting) });
            return;
        }
        if kind == Kind::Start {
            // Below the upper threshold until now.
            feed.interval(port, Interval { start: time, end: time, queue: Some(0), ..Interval::default() });
        }
        let mut interval = Interval { start: since.unwrap_or(time), end: time, dropped: drops, ..Interval::default() };
        if is_most {
            interval.watermark = Some(queue);
        } else {
            interval.queue = Some(queue);
        }
        feed.interval(port, interval);
        let goes_on = match kind {
            Kind::Start | Kind::Update => Some(time),
            Kind::Polling => last.and_then(|(_, since)| since),
            Kind::End => None,
        };
        self.0.insert(port, (entry, goes_on));
        if kind == Kind::End {
            // Below the lower threshold, which is all that is known of it: for the burst that is over.
            feed.interval(port, Interval { start: time, end: time, queue: Some(0), ..Interval::default() });
        }
    }
}

/// A number of 7 bits by byte at the front of bytes, and its length; none where it has not come whole.
///
/// # Errors
/// It does not end.
pub fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, Problem> {
    let mut value = 0;
    for (place, byte) in bytes.iter().take(LONGEST_VARINT).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place).min(63);
        if byte & 0x80 == 0 {
            return Ok(Some((value, place + 1)));
        }
    }
    if bytes.len() < LONGEST_VARINT {
        return Ok(None);
    }
    Err(Problem::new("is no length of a message: it does not end").accepted("a number of 10 bytes at most (varint)"))
}

/// True for a length, then a message of just that length that holds one of the records, which begins with a time or a kind.
fn is_stream(start: &[u8]) -> bool {
    let known = varint(start).ok().flatten().filter(|(length, _)| (4..=LONGEST).contains(length));
    let Some((length, begin)) = known else { return false };
    let Some((tag @ (0x0a | 0x12 | 0x1a | 0x22), rest)) = start.get(begin..).and_then(<[u8]>::split_first) else { return false };
    let Ok(Some((inner, size))) = varint(rest) else { return false };
    1 + size as u64 + inner == length && (rest.get(size) == Some(&0x08) || *tag == 0x22)
}

fn stream(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    super::no_columns(mapping, "a LANZ stream")?;
    Ok(Box::new(Stream {
        segment: None,
        congestions: Congestions::default(),
        messages: 0,
        thresholds: BTreeMap::new(),
        over: PassedOver::default(),
    }))
}

/// Decoder of the stream.
struct Stream {
    /// Bytes of a segment.
    segment: Option<u64>,
    congestions: Congestions,
    messages: u64,
    /// Upper thresholds of ports [bytes].
    thresholds: BTreeMap<String, u64>,
    over: PassedOver,
}

/// A time of LANZ [ps].
fn time_of(timestamp: u64) -> Option<u128> {
    let is_date = |per_second: u64| DATES.contains(&(timestamp / per_second));
    [(1_000_000, US), (100_000, 10 * US)]
        .into_iter()
        .find(|(per_second, _)| is_date(*per_second))
        .map(|(_, ps)| u128::from(timestamp) * ps)
}

impl Stream {
    fn message(&mut self, bytes: &[u8], feed: &mut Feed<'_>) -> Result<(), Problem> {
        let record = LanzRecord::decode(bytes)
            .map_err(|error| Problem::new(format!("is no LANZ message: {error}")).accepted("a LanzRecord in protobuf"))?;
        if let Some(config) = record.config {
            if !(1..=65_535).contains(&config.segment_size) {
                let problem = Problem::new("is no size of a segment").value(config.segment_size.to_string());
                return Err(problem.accepted("from 1 B to 65535 B"));
            }
            let segment = u64::from(config.segment_size);
            self.segment = Some(segment);
            for port in config.ports.into_iter().take(NAMED) {
                if self.thresholds.len() < NAMED || self.thresholds.contains_key(&port.name) {
                    self.thresholds.insert(port.name, u64::from(port.high) * segment);
                }
            }
        }
        if let Some(error) = record.error {
            self.over.add(|| format!("message of the switch '{}'", crate::input::problem::shortened(&error.message)));
        }
        let Some(congestion) = record.congestion else { return Ok(()) };
        let Some(segment) = self.segment else {
            let problem = Problem::new("counts segments, and no configuration before says how large they are");
            return Err(problem
                .value(congestion.queue_size.to_string())
                .suggestion("capture the stream from its beginning: the switch sends its configuration first"));
        };
        let Some(ps) = time_of(congestion.timestamp) else {
            let problem = Problem::new("is no time from 2001 to 2100").value(congestion.timestamp.to_string());
            return Err(problem.accepted("microseconds, or tens of them, since 1970"));
        };
        let kind = match congestion.entry_type {
            Some(1) => Kind::Start,
            Some(2) => Kind::Update,
            Some(3) => Kind::End,
            // Switches that do not say the kind report one look after another.
            Some(4) | None => Kind::Polling,
            Some(other) => {
                self.over.add(|| format!("entries of the unknown type {other}"));
                return Ok(());
            }
        };
        let name = match congestion.traffic_class {
            Some(class) => format!("{}({class})", congestion.name),
            None => congestion.name,
        };
        let port = feed.port(name.as_bytes())?;
        let entry = Entry {
            kind,
            time: feed.time(ps)?,
            queue: u64::from(congestion.queue_size) * segment,
            is_most: kind == Kind::End && congestion.time_of_max.is_some(),
            drops: congestion.drops.map(u64::from),
        };
        self.congestions.take(port, entry, feed);
        Ok(())
    }
}

impl Decode for Stream {
    fn decode(&mut self, bytes: &[u8], _end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let mut at = 0;
        let placed = |problem: Problem, messages: u64| problem.place(format!("message {}", messages + 1));
        while let Some((length, size)) = varint(&bytes[at..]).map_err(|problem| placed(problem, self.messages))? {
            if length > LONGEST {
                let problem = Problem::new("is no length of a LANZ message").value(length.to_string());
                return Err(problem.accepted(format!("up to {LONGEST} bytes")));
            }
            let Some(message) = bytes.get(at + size..at + size + length as usize) else { break };
            self.messages += 1;
            feed.pass(at + size + length as usize);
            self.message(message, feed).map_err(|problem| problem.place(format!("message {}", self.messages)))?;
            at += size + length as usize;
        }
        Ok(at)
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        notes.push(format!("{} messages of LANZ: {LIMITS}", self.messages));
        for (port, threshold) in &self.thresholds {
            notes.push(format!("{port}: LANZ tells queues above {threshold} B; --above should be no lower"));
        }
        self.over.notes(notes);
    }
}

const LIMITS: &str = "of a queue below its threshold nothing is told, and flows are in no entry";

/// Column names of the table, as EOS writes them: those that it begins with, and others of which one shows that it is LANZ's.
const HEADER: [&str; 3] = ["type", "time", "interface"];
const OTHERS: [&str; 5] = ["queue-length", "duration(usecs)", "time-of-max-queue", "latency(usecs)", "tx-drops"];
const QUEUE: &str = "queue-length";

/// True for the report's first line, or the names of its columns.
fn is_table(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    text.lines().map(str::trim).filter(|line| !line.is_empty()).take(2).any(is_header)
}

fn is_header(line: &str) -> bool {
    let names: Vec<String> = line.split(',').map(|name| name.trim().to_lowercase()).collect();
    names.len() > HEADER.len()
        && HEADER.iter().zip(&names).all(|(known, name)| name == known)
        && OTHERS.iter().any(|known| names.iter().any(|name| name.starts_with(known)))
}

fn table(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    let unit = "the queue counts segments, and the table does not say how large they are";
    let how = "ask the switch (show platform … segment size) and say it: --columns queue=Queue-Length:segments(480B)";
    let choices = mapping.map(|mapping| mapping.0.as_slice()).unwrap_or_default();
    let segment = match choices {
        [choice] if choice.role == Role::Queue && choice.column.eq_ignore_ascii_case(QUEUE) => match choice.unit {
            Some(Unit::Steps(bytes)) if choice.is_counted() => bytes,
            None => return Err(Problem::new(unit).column("queue").suggestion(how)),
            Some(_) => {
                let problem = Problem::new(format!("is not its unit: {unit}")).column("queue").value(choice.unit_as_written());
                return Err(problem.accepted("segments(SIZE)").suggestion(how));
            }
        },
        [] => return Err(Problem::new(unit).column("queue").suggestion(how)),
        _ => {
            let problem = Problem::new("names columns of LANZ's table, which are known, but for the size of a segment");
            return Err(problem.column("columns").value(mapping.map(Mapping::to_string).unwrap_or_default()).suggestion(how));
        }
    };
    Ok(Box::new(Table {
        segment,
        columns: None,
        congestions: Congestions::default(),
        line: 0,
        entries: 0,
        follows: false,
        block: Vec::new(),
        order: None,
    }))
}

/// Entries of a table that are held, at most: a switch keeps some thousand.
const ENTRIES: usize = 1 << 22;

/// Places of the columns that are read.
#[derive(Clone, Copy, Debug)]
struct Columns {
    /// Cells of a row.
    width: usize,
    queue: usize,
    of_most: Option<usize>,
    drops: Option<usize>,
}

impl Columns {
    fn of(names: &[String]) -> Columns {
        let find = |known: &str| names.iter().position(|name| name.starts_with(known));
        let queue = find(QUEUE).unwrap_or(names.len());
        Columns { width: names.len(), queue, of_most: find("time-of-max"), drops: find("tx-drops") }
    }
}

/// Decoder of the table. The newest entry may stand first: entries are held until the end, and taken in order of time. Of one that grows, rows are
/// taken as they come once two of them show that the oldest stands first; with the newest first, a report ends where another begins.
struct Table {
    segment: u64,
    /// Columns by the names in the first line, and by those that are not empty: EOS 4.12 writes one name too many, and no cell for it.
    columns: Option<[Columns; 2]>,
    congestions: Congestions,
    line: u64,
    entries: u64,
    follows: bool,
    /// Rows of the report that are not taken yet.
    block: Vec<(u128, u32, Entry)>,
    /// Order of the present report's rows, once it is known: of the times of its first two that differ.
    order: Option<Ordering>,
}

impl Table {
    /// Takes the rows that wait, in order of time.
    fn flush(&mut self, feed: &mut Feed<'_>) {
        // Of equal times the order of the table, read from its older end.
        let newest_first = self.block.first().zip(self.block.last()).is_some_and(|(first, last)| first.0 > last.0);
        if newest_first {
            self.block.reverse();
        }
        self.block.sort_by_key(|(ps, _, _)| *ps);
        for (_, port, entry) in self.block.drain(..) {
            self.congestions.take(port, entry, feed);
        }
    }

    fn row(&mut self, text: &str, columns: [Columns; 2], feed: &mut Feed<'_>) -> Result<(u128, u32, Entry), Problem> {
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        let Some(columns) = columns.into_iter().find(|columns| columns.width == cells.len()) else {
            let widths = if columns[0].width == columns[1].width { String::new() } else { format!(" or {}", columns[1].width) };
            let problem = Problem::new(format!("has {} values", cells.len())).value(text);
            return Err(problem.accepted(format!("{}{widths}, as many as there are names of columns", columns[0].width)));
        };
        let cell = |place: usize| cells.get(place).copied().unwrap_or_default();
        let wrong = |what: &str, column: &str, value: &str| Problem::new(what).column(column).value(value);
        let kind = match cell(0) {
            "S" => Kind::Start,
            "U" => Kind::Update,
            "E" => Kind::End,
            "P" => Kind::Polling,
            other => return Err(wrong("is no type of an entry", "Type", other).accepted("S, U, E, P")),
        };
        let (ps, zoned) = from_date(cell(1).as_bytes())
            .map_err(|_| wrong("is no date and time", "Time", cell(1)).accepted("for example 2013-08-12 21:55:59.53203"))?;
        if !zoned {
            feed.unzoned();
        }
        let whole = |place: usize, column: &str| {
            let limit = 1 << 40;
            let number = from_text(cell(place).as_bytes(), 1).ok().filter(|n| *n < limit);
            number.map(|n| n as u64).ok_or_else(|| {
                wrong("is no number of segments or packets", column, cell(place)).accepted("a whole number from 0 to 2^40 - 1")
            })
        };
        let queue = whole(columns.queue, "Queue-Length")?.saturating_mul(self.segment);
        let is_there = |place: &usize| !cell(*place).is_empty() && cell(*place) != "N/A";
        let drops = match columns.drops.filter(is_there) {
            Some(place) => Some(whole(place, "Tx-Drops")?),
            None => None,
        };
        if cell(2).is_empty() {
            return Err(wrong("names no interface", "Interface", text).accepted("for example Et4(1)"));
        }
        let port = feed.port(cell(2).as_bytes())?;
        let is_most = kind == Kind::End && columns.of_most.filter(is_there).is_some();
        Ok((ps, port, Entry { kind, time: feed.time(ps)?, queue, is_most, drops }))
    }
}

impl Table {
    /// Takes a line without its end.
    fn take(&mut self, text: &str, feed: &mut Feed<'_>) -> Result<(), Problem> {
        if text.is_empty() || text.starts_with("Report generated") {
            return Ok(());
        }
        if is_header(text) {
            let names: Vec<String> = text.split(',').map(|name| name.trim().to_lowercase()).collect();
            if !names.iter().any(|name| name.starts_with(QUEUE)) {
                let problem = Problem::new("lacks the column 'Queue-Length', by which LANZ tells the queue");
                return Err(problem.suggestion(format!("the columns are: {text}")));
            }
            let filled: Vec<String> = names.iter().filter(|name| !name.is_empty()).cloned().collect();
            self.columns = Some([Columns::of(&names), Columns::of(&filled)]);
            if self.follows {
                self.flush(feed);
                self.order = None;
            }
            return Ok(());
        }
        let Some(columns) = self.columns else {
            let problem = Problem::new("stands before the names of the columns").value(text);
            return Err(problem.accepted("Type,Time,Interface,…,Queue-Length,… in a line before the entries"));
        };
        if self.block.len() == ENTRIES {
            return Err(
                Problem::new(format!("is one entry too many: {ENTRIES} are accepted")).suggestion("cut the table in parts")
            );
        }
        let row = self.row(text, columns, feed)?;
        feed.see(true, row.2.drops.is_some(), false);
        if let Some((before, _, _)) = self.block.last().filter(|_| self.order.is_none()) {
            self.order = Some(row.0.cmp(before)).filter(|order| *order != Ordering::Equal);
        }
        self.block.push(row);
        self.entries += 1;
        if self.follows && self.order == Some(Ordering::Greater) {
            self.flush(feed);
        }
        Ok(())
    }
}

impl Decode for Table {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let mut line = self.line;
        let at = each_line(bytes, &mut line, feed, |text, feed| self.take(text, feed));
        self.line = line;
        let at = at?;
        if end {
            self.flush(feed);
        }
        Ok(at)
    }

    fn is_read_whole(&self) -> bool {
        true
    }

    fn follows(&mut self) {
        self.follows = true;
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        notes.push(format!("{} entries of LANZ: {LIMITS}", self.entries));
    }
}
