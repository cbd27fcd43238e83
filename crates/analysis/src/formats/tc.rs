//! Queues of Linux, as `tc -s -j qdisc` prints them: one document, or a series of them with a time before each.
//!
//! A document is a list of qdiscs with counters. `backlog` is bytes and `qlen` is packets, whatever their names say (iproute2, `tc_util.c`,
//! `print_tcstats2_attr`); `drops` counts from the qdisc's creation on. There is no time in it, so a line with one stands before each document
//! of a series: seconds since 1970, as `date +%s.%N` writes them, or a date.

use super::{Format, Inspected, Mapping, OpenRows, RowsFile, Start};
use crate::checks::{Finding, Level};
use crate::counters::{again, are_mixed, falling, mixed_sources, most_bytes};
use crate::display::{self, count, size, span};
use crate::formats::text::{NewDrops, Origins};
use crate::input::context::Context;
use crate::input::facts::{Facts, Shape};
use crate::input::file::{Gauge, Packing, SourceFile};
use crate::input::number::{from_date, from_text};
use crate::input::problem::{Problem, Problems};
use crate::input::reader::{Batch, TraceReader, BATCH};
use crate::{Fates, Record, NO_DATA, NO_FLOW, NO_QUEUE, SAMPLE};
use fanin_units::{BitRate, Span, Time, BPS};
use serde_json::Value;
use std::hash::{DefaultHasher, Hasher};
use std::io::{BufRead, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// Longest document [bytes]: it is held in memory.
const LIMIT: usize = 16 << 20;
/// Picoseconds in a second.
const SECOND: u64 = 1_000_000_000_000;
/// Longest queue [bytes]: as in tables.
const QUEUE_LIMIT: u64 = 1_000_000_000_000;
/// Ports that notes name, at most.
const NAMED: usize = 5;

/// Output of `tc -s -j qdisc`.
pub struct Tc;

/// The text behind a first line that is a time, or stands where one should.
fn behind_time(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    let Some(end) = text.iter().position(|b| *b == b'\n') else { return text };
    if text.starts_with(b"[") {
        return text;
    }
    text[end..].trim_ascii_start()
}

/// A time on the trace's own clock [ps].
fn time_of(text: &[u8]) -> Option<u128> {
    from_date(text).map(|(ps, _)| ps).or_else(|_| from_text(text, SECOND)).ok()
}

impl Format for Tc {
    fn name(&self) -> &'static str {
        "tc"
    }

    fn title(&self) -> &'static str {
        "JSON of tc -s -j qdisc"
    }

    fn recognises(&self, start: Start<'_>) -> bool {
        let Some(list) = behind_time(start.bytes()).strip_prefix(b"[") else { return false };
        let Some(first) = list.trim_ascii_start().strip_prefix(b"{") else { return list.trim_ascii_start().starts_with(b"]") };
        let key = first.trim_ascii_start();
        key.starts_with(b"\"kind\"") || key.starts_with(b"\"dev\"")
    }

    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
        if let Some(mapping) = mapping.filter(|m| !m.0.is_empty()) {
            let problem = Problem::new("has no effect: what tc prints has no columns").file(&file.path).column("columns");
            return Err(problem.value(mapping.to_string()).into());
        }
        let mut documents = Documents::open(&file)?;
        let first = documents.next()?.and_then(|document| document.time);
        let facts = Facts {
            fates: Fates { drops: true, marks: false },
            first: Some(first.unwrap_or(0)),
            ..Facts::of(self.name(), Shape::Samples)
        };
        Ok(Inspected::Rows(Box::new(RowsFile { file, facts, notes: Vec::new(), rows: Box::new(TcFile) })))
    }
}

struct TcFile;

impl OpenRows for TcFile {
    fn open(&self, file: &SourceFile) -> Result<Box<dyn TraceReader>, Problems> {
        let documents = Documents::open(file)?;
        Ok(Box::new(Looks {
            documents,
            drops: NewDrops::default(),
            before: Vec::new(),
            sent: Vec::new(),
            latest: Time::ZERO,
            back: (0, Span::ZERO),
            over: (0, None),
            ports: 0,
            looks: 0,
            last: None,
            again: 0,
        }))
    }
}

/// A document: the time at which it was printed, the line in which it begins, a hash of its text, and its qdiscs.
struct Document {
    time: Option<u128>,
    line: u64,
    hash: u64,
    qdiscs: Vec<Value>,
}

/// Beginning of a document, as far as it has come.
#[derive(Default)]
struct Begun {
    time: Option<u128>,
    text: Vec<u8>,
    line: u64,
    /// Brackets that are open; true if a text is, and if a backslash stands before.
    depth: u32,
    inside: bool,
    escaped: bool,
}

/// Documents one after another.
struct Documents {
    input: Box<dyn BufRead + Send>,
    gauge: Arc<Gauge>,
    path: PathBuf,
    size: u64,
    packing: Packing,
    port: String,
    line: u64,
    read: u64,
    /// True once a document has come whole; and the line in which one begins that was cut.
    whole: bool,
    cut: Option<u64>,
    /// Beginning of the next document, while the rest has not come.
    begun: Begun,
    paused: bool,
}

impl Documents {
    fn open(file: &SourceFile) -> Result<Self, Problem> {
        let (input, Origins { path, size, packing, gauge, port }) = Origins::open(file)?;
        Ok(Documents {
            input,
            gauge,
            path,
            size,
            packing,
            port,
            line: 0,
            read: 0,
            whole: false,
            cut: None,
            begun: Begun::default(),
            paused: false,
        })
    }

    fn problem(&self, what: impl Into<String>, line: u64) -> Problem {
        Problem::new(what).file(&self.path).place(format!("line {line}"))
    }

    /// The next document; none at the end, where the last one is not whole, or where the rest has not come (`paused`).
    fn next(&mut self) -> Result<Option<Document>, Problem> {
        let Begun { mut time, mut text, line: mut begin, mut depth, mut inside, mut escaped } = std::mem::take(&mut self.begun);
        self.paused = false;
        loop {
            let at = text.len();
            let mut limited = (&mut self.input).take((LIMIT - at.min(LIMIT)) as u64 + 1);
            let read = limited.read_until(b'\n', &mut text);
            if read.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                self.begun = Begun { time, text, line: begin, depth, inside, escaped };
                self.paused = true;
                return Ok(None);
            }
            let read = read.map_err(|e| self.problem(format!("cannot be read: {e}"), self.line.max(1)))?;
            if read == 0 {
                return match depth {
                    0 => Ok(None),
                    _ if self.gauge.is_cut() => Ok(None),
                    _ if self.whole => {
                        self.cut = Some(begin);
                        Ok(None)
                    }
                    _ => Err(self
                        .problem("begins a list that does not end: the only document was cut", begin)
                        .accepted("whole outputs of tc -s -j qdisc")),
                };
            }
            self.line += 1;
            self.read += read as u64;
            if text.len() > LIMIT {
                return Err(self.problem(format!("begins a document of more than {LIMIT} bytes"), begin.max(1)));
            }
            let line = &text[at..];
            let first = line.trim_ascii();
            if depth == 0 && !first.starts_with(b"[") {
                let first = if self.line == 1 { first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first) } else { first };
                if !first.is_empty() && !first.starts_with(b"[") {
                    let Some(found) = time_of(first) else {
                        let problem = self.problem("is neither a time nor a list of qdiscs", self.line);
                        let problem = problem.value(String::from_utf8_lossy(&first[..first.len().min(80)]));
                        return Err(
                            problem.accepted("the output of date +%s.%N, or of date -Ins, before each output of tc -s -j qdisc")
                        );
                    };
                    time = Some(found);
                    text.clear();
                    continue;
                }
                if first.is_empty() {
                    text.clear();
                    continue;
                }
            }
            if depth == 0 {
                begin = self.line;
            }
            for byte in &text[at..] {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if inside => escaped = true,
                    b'"' => inside = !inside,
                    b'[' | b'{' if !inside => depth += 1,
                    b']' | b'}' if !inside => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            if depth == 0 {
                let whole = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
                let document: Value =
                    serde_json::from_slice(whole).map_err(|e| self.problem(format!("is no JSON: {e}"), begin))?;
                let Value::Array(qdiscs) = document else { return Err(self.problem("is no list of qdiscs", begin)) };
                self.whole = true;
                let mut hasher = DefaultHasher::new();
                hasher.write(whole);
                return Ok(Some(Document { time, line: begin, hash: hasher.finish(), qdiscs }));
            }
        }
    }
}

/// Documents as samples of queues.
struct Looks {
    documents: Documents,
    drops: NewDrops,
    /// Ports with drops before the first document, and their number.
    before: Vec<(String, u64)>,
    /// Bytes that each port sent.
    sent: Vec<Sent>,
    /// Time of the latest document; and documents behind it that are earlier, and by how much at most.
    latest: Time,
    back: (u64, Span),
    /// Queues longer than their bfifo may be, and the longest in words.
    over: (u64, Option<(u64, String)>),
    ports: usize,
    looks: u64,
    /// Time and hash of the latest document, and those that were the one before once more.
    last: Option<(Option<u128>, u64)>,
    again: u64,
}

/// Bytes that a port sent: the last count, and the busiest time between two documents.
#[derive(Clone, Debug, Default)]
struct Sent {
    name: String,
    last: Option<(Time, u64)>,
    /// Times between two counts, and those in which the count fell.
    steps: u64,
    falls: u64,
    busiest: f64,
    /// Times between documents with more than the line carries, and the first of the highest rate among them.
    over: u64,
    worst: Option<Worst>,
}

/// Time between two documents with more bytes than the line carries.
#[derive(Clone, Copy, Debug)]
struct Worst {
    bps: f64,
    bytes: u64,
    within: Span,
    at: Time,
}

impl Sent {
    /// Takes the next count; `rate`: what the user says of the line.
    fn take(&mut self, time: Time, bytes: u64, rate: Option<BitRate>) {
        let Some((before, last)) = self.last.replace((time, bytes)) else { return };
        (self.steps, self.falls) = (self.steps + 1, self.falls + u64::from(bytes < last));
        // A count that fell began anew.
        let (Some(more), within) = (bytes.checked_sub(last), time.since(before)) else { return };
        if within == Span::default() {
            return;
        }
        let bps = more as f64 * BPS / within.ps() as f64;
        self.busiest = self.busiest.max(bps);
        if rate.is_some_and(|rate| more as f64 > most_bytes(rate, within.ps())) {
            self.over += 1;
            if self.worst.is_none_or(|worst| bps > worst.bps) {
                self.worst = Some(Worst { bps, bytes: more, within, at: before });
            }
        }
    }

    /// The finding on more bytes than the line carries.
    fn finding(&self, rate: BitRate) -> Option<Finding> {
        let Worst { bps, bytes, within, at } = self.worst?;
        Some(Finding {
            code: "counters_above_line",
            level: Level::Doubt,
            place: self.name.clone(),
            count: self.over,
            bytes: Some(bytes),
            words: format!(
                "{} between documents with more bytes than the line carries: {} within {} at {}, {} on a port of {}",
                count(self.over, "time"),
                size(bytes as f64),
                span(within.ps()),
                span(at.ps()),
                display::rate(bps),
                display::rate(rate.bps() as f64)
            ),
            hint: "the speed (--rate), or the times before the documents, are wrong".into(),
        })
    }
}

impl Looks {
    /// Ports that sent anything, the busiest first.
    fn busiest(&self) -> Vec<&Sent> {
        let mut busy: Vec<&Sent> = self.sent.iter().filter(|sent| sent.busiest > 0.0).collect();
        busy.sort_by(|a, b| b.busiest.total_cmp(&a.busiest));
        busy
    }

    fn take(&mut self, document: &Document, context: &mut Context, batch: &mut Batch) -> Result<(), Problems> {
        let wrong = |what: &str, documents: &Documents| documents.problem(what, document.line);
        if document.time.is_none() && self.looks > 0 {
            let problem = wrong("has no time before it, and it is not the only document", &self.documents);
            let how = "while sleep 0.01; do date +%s.%N; tc -s -j qdisc show dev eth0; done > queues.json";
            return Err(problem.suggestion(format!("write the time before each: {how}")).into());
        }
        self.looks += 1;
        if self.last.replace((document.time, document.hash)) == Some((document.time, document.hash)) {
            self.again += 1;
            return Ok(());
        }
        let time = context.origin.time(document.time.unwrap_or(0)).map_err(|e| wrong(e.message(), &self.documents))?;
        if time < self.latest {
            let by = self.latest.since(time);
            self.back = (self.back.0 + 1, self.back.1.max(by));
        }
        self.latest = self.latest.max(time);
        for qdisc in &document.qdiscs {
            let text = |key: &str| qdisc[key].as_str();
            let (Some(kind), Some(handle)) = (text("kind"), text("handle")) else {
                return Err(wrong("holds something that is no qdisc: it has no kind and handle", &self.documents).into());
            };
            let device = text("dev").unwrap_or(&self.documents.port);
            // Children of multi-queue devices have no handle of their own.
            let parent = text("parent").filter(|_| handle == "0:").map_or(String::new(), |parent| format!(" at {parent}"));
            let name = format!("{device} {kind} {handle}{parent}");
            let Some(mut queue) = qdisc["backlog"].as_u64().filter(|queue| *queue <= QUEUE_LIMIT) else {
                let problem = wrong("has a qdisc without a backlog in bytes", &self.documents).value(name);
                return Err(problem.suggestion("tc prints it with -s: tc -s -j qdisc").into());
            };
            // A bfifo takes no packet beyond its limit of bytes; other limits are of packets.
            if let Some(limit) = qdisc["options"]["limit"].as_u64().filter(|limit| kind == "bfifo" && queue > *limit) {
                self.over.0 += 1;
                if self.over.1.as_ref().is_none_or(|(longest, _)| queue > *longest) {
                    let (long, limit) = (size(queue as f64), size(limit as f64));
                    self.over.1 = Some((queue, format!("{long} at {}, in {name} with a limit of {limit}", span(time.ps()))));
                }
                queue = NO_QUEUE;
            }
            let port = context.ports.index(name.as_bytes())?;
            let mut record = Record { time, queue, frame: 0, flow: NO_FLOW, flags: SAMPLE | NO_DATA };
            let row = u32::try_from(document.line - 1 - batch.first_row).unwrap_or(u32::MAX);
            let total = qdisc["drops"].as_u64().unwrap_or(0);
            let more = match self.drops.since(port, total) {
                Some(more) => more,
                None => {
                    return Err(wrong("has a count of drops that rises by more than packets can come", &self.documents)
                        .value(total.to_string())
                        .into())
                }
            };
            if let Some(bytes) = qdisc["bytes"].as_u64() {
                let place = port as usize;
                if self.sent.len() <= place {
                    self.sent.resize(place + 1, Sent::default());
                }
                if self.sent[place].last.is_none() {
                    self.sent[place].name.clone_from(&name);
                }
                self.sent[place].take(time, bytes, context.rate);
            }
            if total > 0 && self.looks == 1 {
                self.before.push((name, total));
            }
            NewDrops::push(&mut record, more, (port, row), batch);
            self.ports = self.ports.max(port as usize + 1);
        }
        Ok(())
    }
}

impl TraceReader for Looks {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        let Begun { text, line, .. } = &self.documents.begun;
        batch.first_row = if text.is_empty() { self.documents.line } else { line - 1 };
        let mut any = false;
        while batch.records.len() < BATCH {
            let Some(document) = self.documents.next()? else {
                any |= self.documents.paused;
                break;
            };
            any = true;
            self.take(&document, context, batch)?;
        }
        Ok(any)
    }

    fn place(&self, row: u64) -> String {
        format!("line {row}")
    }

    fn is_between(&self) -> bool {
        let Begun { time, text, .. } = &self.documents.begun;
        time.is_none() && text.is_empty()
    }

    fn progress(&self) -> f64 {
        self.documents.read as f64 / self.documents.size.max(1) as f64
    }

    fn mixed(&self) -> Vec<u32> {
        (0..).zip(&self.sent).filter(|(_, sent)| are_mixed(sent.falls, sent.steps)).map(|(port, _)| port).collect()
    }

    fn findings(&self, context: &Context) -> Vec<Finding> {
        let file = self.documents.path.display().to_string();
        let mut findings: Vec<Finding> = Vec::new();
        if let Some(rate) = context.rate {
            findings.extend(self.busiest().iter().filter_map(|sent| sent.finding(rate)));
        }
        if let (over, Some((longest, words))) = (self.over.0, &self.over.1) {
            findings.push(Finding {
                code: "queue_above_buffer",
                level: Level::Doubt,
                place: file.clone(),
                count: over,
                bytes: Some(*longest),
                words: format!("{} with a queue longer than the buffer: {words}", count(over, "look")),
                hint: "they count as unknown: backlog or limit is of another qdisc, or was changed by what wrote the file".into(),
            });
        }
        findings.extend(again(self.again, &file));
        let mixed = self.mixed().into_iter().map(|port| &self.sent[port as usize]);
        findings.extend(mixed.map(|sent| mixed_sources(&sent.name, sent.falls, falling(sent.falls, sent.steps))));
        let (back, farthest) = self.back;
        if back > 0 {
            findings.push(Finding {
                code: "clock_back",
                level: Level::Doubt,
                place: file.clone(),
                count: back,
                bytes: None,
                words: format!(
                    "{} earlier than one before, by {} at most: the clock was set back, or leapt ahead before",
                    if back == 1 { "1 document is".into() } else { format!("{back} documents are") },
                    span(farthest.ps())
                ),
                hint: "their samples stand among earlier ones: --start and --stop choose one stretch of time".into(),
            });
        }
        findings
    }

    fn finish(&mut self, context: &mut Context) {
        let file = self.documents.path.display().to_string();
        context.note(format!(
            "{file}: each document is a sample: the queue is tc's backlog, in bytes (its qlen counts packets); what a queue was between two is unknown"
        ));
        if self.looks == 1 {
            context
                .note(format!("{file}: one look at the queues, which shows no burst: a series has a time before each document"));
        }
        context.notes.extend(
            self.documents
                .cut
                .map(|line| format!("{file}: ends within the document that begins in line {line}, which is not read")),
        );
        for (name, count) in self.before.iter().take(NAMED) {
            context.note(format!("{file}: {name}: {count} packets had been dropped before the first document"));
        }
        for sent in self.busiest().iter().take(NAMED) {
            let busiest = display::rate(sent.busiest);
            context.note(format!("{file}: {}: sent {busiest} at most, as a mean between two documents", sent.name));
        }
        let findings = self.findings(context);
        context.findings.extend(findings);
        context.mixed.extend(self.mixed());
        context.notes.extend(self.documents.gauge.note(self.documents.packing, &file));
    }
}
