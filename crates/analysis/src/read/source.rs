//! What kind of file it is, by its content, and how it is opened.

use super::context::{Context, Known, Origin, BATCH};
use super::input::{self, Input, Packing, Place};
use super::json::{self, JsonRows};
use super::mapped::MappedTable;
use super::mapping::{bind, Binding, Bound, Mapping, Role, Unit};
use super::packets::{look, Look, Packets, Surveyed};
use super::pair::{Pair, PairReader};
use super::problem::{Problem, Problems};
use super::stamps::Stamps;
use super::table::Table;
use super::taken::Taken;
use super::text::{MappedText, Origins, UNZONED};
use super::{csv, TraceReader};
use crate::{Fates, NO_FLOW};
use fanin_telemetry::Registers;
use fanin_units::{BitRate, Bytes, Span, Time};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Kinds of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Result,
    Stamps,
    Parquet,
    Arrow,
    Csv,
    /// JSON lines.
    Jsonl,
    Pcap,
    PcapNg,
}

/// A watched port, as a manifest describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    pub rate: Option<BitRate>,
    pub overhead: Option<Bytes>,
    pub index: Option<u8>,
}

/// What a manifest says about a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    pub watched: BTreeMap<String, Watched>,
    pub registers: Option<Registers>,
    pub status: String,
    pub reason: Option<String>,
    /// Rows of each table.
    pub rows: BTreeMap<String, u64>,
}

/// Largest manifest [bytes]: the resolved scenario in it may be long, not endless.
const MANIFEST_LIMIT: u64 = 256 << 20;

impl Manifest {
    /// Reads `manifest.json` of a folder.
    ///
    /// # Errors
    /// It cannot be read, or is none of a result folder.
    pub fn read(folder: &Path) -> Result<Manifest, Problem> {
        let path = folder.join("manifest.json");
        let wrong = |message: String| Problem::new(message).file(&path);
        let file = File::open(&path).map_err(|e| wrong(format!("cannot be opened: {e}")))?;
        let mut text = String::new();
        file.take(MANIFEST_LIMIT).read_to_string(&mut text).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        let document: Value = serde_json::from_str(&text).map_err(|e| wrong(format!("is damaged: {e}")))?;
        let schema = document["schema"].as_str().unwrap_or_default();
        if !schema.starts_with("manifest/") {
            return Err(wrong(format!("is no manifest of a result: its schema is '{schema}'")).accepted("manifest/1"));
        }
        let mut manifest = Manifest {
            status: document["status"].as_str().unwrap_or("running").to_string(),
            reason: document["reason"].as_str().map(str::to_string),
            ..Manifest::default()
        };
        for entry in document["watched"].as_array().into_iter().flatten() {
            let Some(port) = entry["port"].as_str() else { continue };
            let watched = Watched {
                rate: entry["rate_bps"].as_u64().filter(|r| *r > 0).map(BitRate),
                overhead: entry["overhead_bytes"].as_u64().filter(|b| *b <= 1_000_000).map(Bytes),
                index: entry["index"].as_u64().and_then(|i| u8::try_from(i).ok()),
            };
            manifest.watched.insert(port.to_string(), watched);
        }
        for (table, rows) in document["files"].as_object().into_iter().flatten() {
            manifest.rows.extend(rows.as_u64().map(|rows| (table.clone(), rows)));
        }
        let registers = &document["registers"];
        if let (Some(tick), Some(unit)) = (registers["tick_ps"].as_u64(), registers["unit_bytes"].as_u64()) {
            if tick > 0 && unit > 0 && unit <= 1 << 20 {
                manifest.registers = Some(Registers { tick: Span::from_ps(tick), unit: Bytes(unit) });
            }
        }
        Ok(manifest)
    }
}

/// A file of the trace, found and inspected.
pub struct Source {
    /// The file, as messages call it.
    pub path: PathBuf,
    /// What the user gave: of a result its folder.
    pub given: PathBuf,
    /// Where it is.
    place: Place,
    pub kind: Kind,
    /// Whether its records know the queue.
    pub has_queue: bool,
    /// What its records tell of packets' fates.
    pub fates: Fates,
    /// Whether its records are in order of time.
    pub in_order: bool,
    /// Earliest of its first times on its own clock [ps]; None: it is empty.
    pub first: Option<u128>,
    /// Speed of the captured interface.
    pub speed: Option<BitRate>,
    /// What its stamps count in.
    pub registers: Option<Registers>,
    /// Step of the times, where they are whole numbers of microseconds or more.
    pub tick: Span,
    /// Step of the queue lengths, where they are whole numbers of cells, packets or kilobytes.
    pub unit: Bytes,
    pub manifest: Option<Manifest>,
    /// Captures before and behind a port, of which this is the first.
    pub pair: Option<Arc<Pair>>,
    packing: Packing,
    size: u64,
    binding: Binding,
    /// Of JSON lines, the names of the columns.
    keys: Vec<String>,
    look: Look,
    /// What the first reading of a capture found.
    surveyed: Option<Arc<Surveyed>>,
    /// It goes on where another capture ends.
    pub follows: bool,
    own_flows: bool,
}

const ACCEPTED: &str =
    "a result folder of fanin, Parquet, Arrow, CSV or TSV with a header line, JSON lines, pcap, pcapng; text and captures also with gzip or zstd";

/// Files that are often met in the place of a trace.
const STRANGERS: [(&[u8], &str); 7] = [
    (&[0xff, 0xfe], "is text in UTF-16: write it in UTF-8, for example with iconv -f UTF-16 -t UTF-8"),
    (&[0xfe, 0xff], "is text in UTF-16: write it in UTF-8, for example with iconv -f UTF-16 -t UTF-8"),
    (&[0xfd, 0x37, 0x7a, 0x58], "is compressed with xz: unpack it first"),
    (&[0x42, 0x5a, 0x68], "is compressed with bzip2: unpack it first"),
    (&[0x04, 0x22, 0x4d, 0x18], "is compressed with lz4: unpack it first"),
    (b"PK\x03\x04", "is a zip archive: unpack it first"),
    (b"[", "is one JSON list: write each of its objects in a line, for example with jq -c '.[]'"),
];

/// Whether a byte is in no text, whatever its encoding: control characters but for tabs and ends of lines and pages.
fn is_no_text(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c)
}

fn captures(magic: &[u8]) -> Option<Kind> {
    match magic.first_chunk::<4>()? {
        [0x0a, 0x0d, 0x0d, 0x0a] => Some(Kind::PcapNg),
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xd4, 0xc3, 0xb2, 0xa1] | [0xa1, 0xb2, 0x3c, 0x4d] | [0x4d, 0x3c, 0xb2, 0xa1] => {
            Some(Kind::Pcap)
        }
        _ => None,
    }
}

impl Source {
    /// Finds out what a path is, and binds its columns.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn find(place: &Place, mapping: Option<&Mapping>) -> Result<Source, Problems> {
        let path = place.shown.as_path();
        let metadata = std::fs::metadata(&place.path).map_err(|e| {
            let message = if e.kind() == std::io::ErrorKind::NotFound { "there is no such file".into() } else { e.to_string() };
            Problem::new(message).file(path)
        })?;
        if metadata.is_dir() {
            return Self::find_result(path, mapping);
        }
        if !metadata.is_file() {
            return Err(Problem::new("is neither a file nor a folder").file(path).accepted(ACCEPTED).into());
        }
        let mut source = Source::blank(place, metadata.len());
        let mut magic = source.start()?;
        if magic.is_empty() {
            return Err(Problem::new("is empty").file(path).accepted(ACCEPTED).into());
        }
        source.packing = Packing::of(&magic);
        let packing = source.packing;
        if packing != Packing::Plain {
            magic = source.start()?;
            if magic.is_empty() {
                return Err(Problem::new(format!("has nothing in its {} data", packing.name())).file(path).into());
            }
        }
        let of_columns = match magic.as_slice() {
            [b'P', b'A', b'R', b'1', ..] => Some((Kind::Parquet, "Parquet")),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => Some((Kind::Arrow, "Arrow")),
            _ => None,
        };
        if let Some((kind, name)) = of_columns {
            if packing != Packing::Plain {
                return Err(Problem::new(format!("is {name} inside {}: unpack it first", packing.name())).file(path).into());
            }
            source.columns(kind, mapping)?;
        } else if let Some(kind) = captures(&magic) {
            source.kind = kind;
            if let Some(mapping) = mapping.filter(|m| !m.0.is_empty()) {
                let problem = Problem::new("has no effect: a capture has no columns").file(path).column("columns");
                return Err(problem.value(mapping.to_string()).into());
            }
            source.capture()?;
        } else if magic.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&magic).trim_ascii_start().starts_with(b"{") {
            source.json(mapping)?;
        } else if let Some((_, what)) = STRANGERS.iter().find(|(first, _)| magic.starts_with(first)) {
            return Err(Problem::new(*what).file(path).accepted(ACCEPTED).into());
        } else if magic.iter().any(|byte| is_no_text(*byte)) {
            let start: String = magic.iter().take(8).map(|byte| format!(" {byte:02x}")).collect();
            let what = format!("is of no kind that is known, and no text: it begins with the bytes{start}");
            return Err(Problem::new(what).file(path).accepted(ACCEPTED).into());
        } else {
            source.csv(mapping)?;
        }
        Ok(source)
    }

    fn blank(place: &Place, size: u64) -> Source {
        Source {
            path: place.shown.clone(),
            given: place.shown.clone(),
            place: place.clone(),
            kind: Kind::Csv,
            has_queue: true,
            fates: Fates::ALL,
            in_order: false,
            first: None,
            speed: None,
            registers: None,
            tick: Span::ZERO,
            unit: Bytes(1),
            manifest: None,
            pair: None,
            packing: Packing::Plain,
            size,
            binding: Binding::default(),
            keys: Vec::new(),
            look: Look::default(),
            surveyed: None,
            follows: false,
            own_flows: false,
        }
    }

    /// Two captures of one port as one source.
    pub fn of_pair(pair: Arc<Pair>) -> Source {
        let before = pair.before();
        Source {
            kind: before.kind,
            first: pair.first(),
            in_order: true,
            tick: pair.tick().map_or(Span::ZERO, Span::from_ps),
            pair: Some(pair.clone()),
            ..Source::blank(&before.place, before.size)
        }
    }

    /// Whether it is a table of text, which may have many wrong lines.
    pub fn is_text(&self) -> bool {
        matches!(self.kind, Kind::Csv | Kind::Jsonl)
    }

    fn find_result(folder: &Path, mapping: Option<&Mapping>) -> Result<Source, Problems> {
        if !folder.join("manifest.json").is_file() {
            let problem = Problem::new("is a folder, but not a result folder: it has no manifest.json").file(folder);
            return Err(problem.accepted(ACCEPTED).suggestion("give the files in it").into());
        }
        let manifest = Manifest::read(folder)?;
        if let Some(mapping) = mapping {
            let problem = Problem::new("has no effect: the columns of a result are known").file(folder).column("columns");
            return Err(problem.value(mapping.to_string()).into());
        }
        let there = |name: &str| folder.join(name).is_file();
        let table = ["queues.parquet", "stamps.parquet"].into_iter().find(|name| there(name)).ok_or_else(|| {
            Problem::new("has neither queues.parquet nor stamps.parquet: the run watched no port")
                .file(folder)
                .suggestion("name ports in telemetry.queues and run again")
        })?;
        let path = folder.join(table);
        if let Some(expected) = manifest.rows.get(table.trim_end_matches(".parquet")) {
            let found = super::parquet_rows(&path)?;
            if found != *expected {
                let problem = Problem::new(format!("has {found} rows; manifest.json says {expected}: it is of another run"));
                return Err(problem.file(&path).suggestion("run the scenario again, with --force").into());
            }
        }
        let mut source = match Source::find(&Place::of(&path), None) {
            Err(_) if manifest.status == "running" => {
                let what = "is of a run that has not ended, or was killed: its tables are not whole";
                return Err(Problem::new(what).file(&path).suggestion("wait for its end").into());
            }
            found => found?,
        };
        if source.kind == Kind::Parquet {
            source.kind = Kind::Result;
        }
        source.manifest = Some(manifest);
        source.given = folder.to_path_buf();
        Ok(source)
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A table of this result or capture beside the file.
    fn beside(&self) -> Option<Manifest> {
        let folder = self.path.parent()?;
        folder.join("manifest.json").is_file().then(|| Manifest::read(folder).ok()).flatten()
    }

    fn start(&self) -> Result<Vec<u8>, Problem> {
        let mut start = Vec::new();
        let what = if self.packing == Packing::Plain { "read" } else { "unpacked" };
        let read = self.opened()?.0.take(512).read_to_end(&mut start);
        read.map_err(|e| Problem::new(format!("cannot be {what}: {e}")).file(&self.path))?;
        Ok(start)
    }

    pub fn opened(&self) -> Result<Input, Problem> {
        input::open(&self.place, self.packing)
    }

    fn table(&self) -> Result<Table, Problem> {
        if self.kind == Kind::Arrow {
            Table::open_arrow(&self.place)
        } else {
            Table::open(&self.place)
        }
    }

    /// A file of columns.
    fn columns(&mut self, kind: Kind, mapping: Option<&Mapping>) -> Result<(), Problems> {
        self.kind = kind;
        let mut table = self.table()?;
        let schema = table.note("fanin.schema").unwrap_or_default();
        if mapping.is_none() && schema.starts_with("stamps/") {
            self.kind = Kind::Stamps;
            self.manifest = self.beside();
            self.registers = Some(self.manifest.as_ref().and_then(|m| m.registers).unwrap_or_default());
            self.own_flows = true;
            // Packets that were dropped carry none.
            self.fates = Fates { drops: false, marks: true };
            self.first = Stamps::new(table, Registers::default())?.first_time()?;
            return Ok(());
        }
        let mut columns = table.columns();
        if mapping.is_none() && schema.starts_with("queues/") {
            self.manifest = self.beside();
            self.in_order = true;
            self.own_flows = true;
            self.binding = of_queues(&columns)
                .ok_or_else(|| Problem::new("says it is a table of queues, and lacks one of its columns").file(&self.path))?;
        } else {
            if !schema.is_empty() && !schema.starts_with("records/") && mapping.is_none() {
                let problem = Problem::new(format!("is the table {schema} of a result, which has no records of single packets"));
                return Err(problem.file(&self.path).accepted("queues.parquet, stamps.parquet").into());
            }
            // The first values show units that names do not.
            let all: Vec<usize> = (0..columns.len().min(256)).collect();
            for index in all {
                if columns[index].declared.is_none() && table.choose(&[index]).is_ok() {
                    let mut once = self.table()?;
                    once.choose(&[index])?;
                    if once.next(1).is_ok_and(|rows| rows > 0) {
                        columns[index].first = Some(once.shown(0, 0)).filter(|v| !v.is_empty());
                    }
                }
            }
            self.binding = bind(mapping, &columns).map_err(|problems| self.all(problems))?;
        }
        let bound = self.binding.columns.clone();
        self.learn(&bound);
        let whole = |role: Role| self.binding.get(role).filter(|b| table.is_integer(b.index)).map(|b| b.unit);
        let (time, queue) = (whole(Role::Time), whole(Role::Queue));
        self.step(time, queue);
        let Some(Bound { index, unit, .. }) = self.binding.get(Role::Time) else { return Ok(()) };
        table.choose(&[index])?;
        let mut first: Option<u128> = None;
        if table.next(BATCH)? > 0 {
            let mut see = |_: usize, v: Option<Result<u128, super::number::NumberError>>| {
                if let Some(Ok(v)) = v {
                    first = Some(first.map_or(v, |f: u128| f.min(v)));
                }
            };
            match unit {
                Unit::Iso => table.dates(0, |row, v| see(row, v.map(|v| v.map(|(ps, _)| ps)))),
                other => table.numbers(0, super::mapped::steps(other), &mut see),
            }
        }
        self.first = first;
        if table.is_unzoned(index) && first.is_some_and(|first| Origin::of(first).seconds() > 0) {
            self.binding.notes.push(UNZONED.to_string());
        }
        Ok(())
    }

    /// Notes what the columns of a table tell of each packet.
    fn learn(&mut self, bound: &[Bound]) {
        let has = |roles: &[Role]| bound.iter().any(|b| roles.contains(&b.role));
        self.has_queue = has(&[Role::Queue]);
        let drops = has(&[Role::Dropped, Role::Replaced, Role::AtHead]);
        self.fates = Fates { drops, marks: has(&[Role::Marked]) };
    }

    /// Notes in what steps times and queues are counted, if they are whole numbers of a unit.
    fn step(&mut self, time: Option<Unit>, queue: Option<Unit>) {
        if let Some(Unit::Steps(ps)) = time.filter(|u| matches!(u, Unit::Steps(ps) if *ps >= 1_000_000)) {
            self.tick = Span::from_ps(ps);
        }
        if let Some(Unit::Steps(bytes)) = queue {
            self.unit = Bytes(bytes);
        }
    }

    fn all(&self, problems: Problems) -> Problems {
        problems.into_iter().map(|p| if p.file.is_none() { p.file(&self.path) } else { p }).collect()
    }

    fn origins(&self, gauge: Arc<input::Gauge>) -> Origins {
        Origins { path: self.path.clone(), size: self.size, packing: self.packing, gauge, port: self.port_name() }
    }

    fn opened_csv(&self, mapping: Option<&Mapping>) -> Result<MappedText<csv::CsvRows>, Problems> {
        let (input, gauge) = self.opened()?;
        csv::open(input, self.origins(gauge), mapping)
    }

    fn csv(&mut self, mapping: Option<&Mapping>) -> Result<(), Problems> {
        self.kind = Kind::Csv;
        let mut lines = self.opened_csv(mapping)?;
        self.learn(lines.bound());
        let (first, [time, queue]) = lines.look(BATCH);
        self.step(time, queue);
        self.first = first;
        Ok(())
    }

    fn opened_json(&self) -> Result<MappedText<JsonRows>, Problems> {
        let (input, gauge) = self.opened()?;
        let mut bound = self.binding.columns.clone();
        let rows = JsonRows::new(input, gauge.clone(), &self.keys, &mut bound);
        let names = rows.names();
        Ok(MappedText::new(self.origins(gauge), rows, names, (bound, Vec::new()), false))
    }

    fn json(&mut self, mapping: Option<&Mapping>) -> Result<(), Problems> {
        self.kind = Kind::Jsonl;
        let (input, gauge) = self.opened()?;
        let columns = json::columns(input, gauge, &self.path)?;
        self.binding = bind(mapping, &columns).map_err(|problems| self.all(problems))?;
        self.keys = columns.into_iter().map(|column| column.name).collect();
        let mut lines = self.opened_json()?;
        self.learn(lines.bound());
        let (first, [time, queue]) = lines.look(BATCH);
        self.step(time, queue);
        self.first = first;
        Ok(())
    }

    fn capture(&mut self) -> Result<(), Problems> {
        self.manifest = self.beside();
        let registers = self.manifest.as_ref().and_then(|m| m.registers).unwrap_or_default();
        self.look = look(&self.path, Box::new(self.opened()?.0), registers)?;
        self.has_queue = self.look.stamped;
        // A dropped packet is in no capture behind the port, and is like any other in one before it.
        self.fates = Fates { drops: false, marks: self.look.stamped };
        self.registers = self.look.stamped.then_some(registers);
        self.first = if self.look.stamped && !self.look.same_clock { Some(0) } else { self.look.first };
        self.speed = self.look.speed.map(BitRate);
        Ok(())
    }

    /// Whether it is a capture, and its packets carry no stamps that say where they queued.
    pub fn is_plain_capture(&self) -> bool {
        self.is_surveyed() && !self.look.stamped
    }

    /// Whether it is read twice: captures, but for two of one port, of which both are.
    pub fn is_surveyed(&self) -> bool {
        matches!(self.kind, Kind::Pcap | Kind::PcapNg) && self.pair.is_none()
    }

    /// Whether stamps in its packets say where they queued.
    pub fn is_stamped(&self) -> bool {
        self.look.stamped
    }

    /// Whether another capture may be the next file of the same one: of the same name but for digits, at the same interfaces.
    pub fn is_like(&self, next: &Source) -> bool {
        let name = |source: &Source| source.file_name().chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        let plain = |source: &Source| source.is_plain_capture() && source.path == source.place.path;
        plain(self) && plain(next) && name(self) == name(next) && self.look.interfaces == next.look.interfaces
    }

    /// Takes what the first reading found; `follows`: of it and of captures before it, the first of which reports it.
    pub fn know(&mut self, found: Arc<Surveyed>, follows: bool) {
        self.tick = if self.look.stamped { self.tick } else { found.tick().unwrap_or(self.tick) };
        (self.surveyed, self.follows) = (Some(found), follows);
    }

    /// What of a capture is analysed.
    pub fn taken(&self) -> Option<Taken> {
        self.surveyed.as_ref().filter(|_| !self.follows).and_then(|surveyed| surveyed.taken.clone())
    }

    /// What a port is called that no column names: the file's name without its ending.
    pub fn port_name(&self) -> String {
        let name = self.file_name();
        // A number that the shell chose says nothing.
        if self.path.parent().is_some_and(|folder| folder.ends_with("fd")) && name.bytes().all(|b| b.is_ascii_digit()) {
            return "pipe".into();
        }
        name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem).to_string()
    }

    /// The file's name, without the ending of its packing.
    fn file_name(&self) -> String {
        let name = self.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).map_or(name.clone(), str::to_string)
    }

    /// Opens it for reading from the start.
    ///
    /// # Errors
    /// It cannot be opened any more.
    pub fn open(&self, mapping: Option<&Mapping>, context: &mut Context) -> Result<Box<dyn TraceReader>, Problems> {
        if let Some(pair) = &self.pair {
            return Ok(Box::new(PairReader::new(pair.clone())));
        }
        let file = self.path.display();
        for note in &self.binding.notes {
            context.note(format!("{file}: {note}"));
        }
        Ok(match self.kind {
            Kind::Stamps => Box::new(Stamps::new(self.table()?, self.registers.unwrap_or_default())?),
            Kind::Result | Kind::Parquet | Kind::Arrow => {
                Box::new(MappedTable::new(self.table()?, &self.binding, Some(self.port_name()), self.own_flows)?)
            }
            Kind::Csv => Box::new(self.opened_csv(mapping)?),
            Kind::Jsonl => Box::new(self.opened_json()?),
            Kind::Pcap | Kind::PcapNg => {
                let registers = self.registers.unwrap_or_default();
                let watched = self.manifest.iter().flat_map(|m| &m.watched);
                let names = watched.filter_map(|(name, w)| Some((w.index?, name.clone()))).collect();
                let input = Box::new(self.opened()?.0);
                let seen = (self.look.clone(), self.surveyed.clone().unwrap_or_default(), self.follows);
                Box::new(Packets::new(&self.path, (input, self.size), seen, (registers, names))?)
            }
        })
    }
}

/// The columns of a result's own table; older results do not report places that were taken, nor drops at the head.
fn of_queues(columns: &[super::mapping::Column]) -> Option<Binding> {
    let roles = [
        ("time_ps", Role::Time, Unit::Steps(1)),
        ("queue_bytes", Role::Queue, Unit::Steps(1)),
        ("port", Role::Port, Unit::Name),
        ("flow", Role::Flow, Unit::Name),
        ("frame_bytes", Role::Frame, Unit::Steps(1)),
        ("marked", Role::Marked, Unit::Flag),
        ("dropped", Role::Dropped, Unit::Flag),
    ];
    let bound = |(name, role, unit): (&str, Role, Unit)| {
        let index = columns.iter().position(|c| c.name == name)?;
        Some(Bound { role, index, unit })
    };
    let mut columns: Vec<Bound> = roles.into_iter().map(bound).collect::<Option<_>>()?;
    columns.extend(bound(("replaced", Role::Replaced, Unit::Flag)));
    columns.extend(bound(("at_head", Role::AtHead, Unit::Flag)));
    Some(Binding { columns, notes: Vec::new() })
}

/// Reads the flows of a result into what is known; a table that cannot be read is said, not fatal.
pub fn learn_flows(folder: &Path, context: &mut Context) {
    let path = folder.join("flows.parquet");
    if !path.is_file() {
        return;
    }
    if let Err(problems) = flows_of(&path, context) {
        context.know(BTreeMap::new());
        context.notes.extend(problems.iter().map(|p| format!("flows go by their numbers: {p}")));
    }
}

fn flows_of(path: &Path, context: &mut Context) -> Result<(), Problems> {
    let mut table = Table::open(&Place::of(path))?;
    let columns = table.columns();
    let find = |name: &str| columns.iter().position(|c| c.name == name);
    let lacks = || Problem::new("lacks one of its columns").file(path);
    let mut indices = Vec::new();
    for name in ["flow", "src", "dst", "id", "start_ps"] {
        indices.push(find(name).ok_or_else(lacks)?);
    }
    let rtt = find("base_rtt_ps");
    indices.extend(rtt);
    table.choose(&indices)?;
    let mut known: BTreeMap<u32, Known> = BTreeMap::new();
    let mut names: BTreeMap<Vec<u8>, Arc<str>> = BTreeMap::new();
    let blank: Arc<str> = "".into();
    loop {
        let rows = table.next(BATCH)?;
        if rows == 0 {
            break;
        }
        let mut intern = |text: Option<&[u8]>| -> Arc<str> {
            let text = text.unwrap_or_default();
            if let Some(name) = names.get(text) {
                return name.clone();
            }
            let name: Arc<str> = String::from_utf8_lossy(text).into();
            names.insert(text.to_vec(), name.clone());
            name
        };
        let mut numbers = vec![NO_FLOW; rows];
        let nobody = Known { src: blank.clone(), dst: blank.clone(), id: None, start: Time::ZERO, base_rtt: None };
        let mut batch = vec![nobody; rows];
        let ps = |v: Option<Result<u128, super::number::NumberError>>| v.and_then(Result::ok).and_then(|v| u64::try_from(v).ok());
        table.numbers(0, 1, |row, v| numbers[row] = ps(v).and_then(|v| u32::try_from(v).ok()).unwrap_or(NO_FLOW));
        table.texts(1, |row, text| batch[row].src = intern(text));
        table.texts(2, |row, text| batch[row].dst = intern(text));
        table.texts(3, |row, text| batch[row].id = text.map(|t| String::from_utf8_lossy(t).into()));
        table.numbers(4, 1, |row, v| batch[row].start = Time::from_ps(ps(v).unwrap_or(0)));
        if rtt.is_some() {
            table.numbers(5, 1, |row, v| batch[row].base_rtt = ps(v).map(Span::from_ps));
        }
        known.extend(numbers.into_iter().zip(batch).filter(|(number, _)| *number != NO_FLOW));
    }
    context.know(known);
    Ok(())
}

/// Where time zero lies, given all files.
pub fn origin(sources: &[Source]) -> Origin {
    sources.iter().filter_map(|s| s.first).min().map_or(Origin::default(), Origin::of)
}
