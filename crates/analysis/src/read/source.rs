//! What kind of file it is, by its content, and how it is opened.

use super::context::{Context, Known, Origin, BATCH};
use super::csv::MappedCsv;
use super::mapped::MappedParquet;
use super::mapping::{bind, Binding, Bound, Mapping, Role, Unit};
use super::packets::{look, Look, Packets};
use super::problem::{Problem, Problems};
use super::stamps::Stamps;
use super::table::Table;
use super::TraceReader;
use crate::NO_FLOW;
use fanin_telemetry::Registers;
use fanin_units::{BitRate, Bytes, Span, Time};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Kinds of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Result,
    Stamps,
    Parquet,
    Csv,
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
    /// The file.
    pub path: PathBuf,
    /// What the user gave: of a result its folder.
    pub given: PathBuf,
    pub kind: Kind,
    /// Whether its records know the queue.
    pub has_queue: bool,
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
    gzip: bool,
    size: u64,
    binding: Binding,
    look: Look,
    own_flows: bool,
}

const ACCEPTED: &str =
    "a result folder of fanin, Parquet, CSV or TSV with a header line, pcap, pcapng; CSV and captures also with gzip";

/// Files that are often met in the place of a trace.
const STRANGERS: [(&[u8], &str); 7] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "is compressed with zstd: unpack it first"),
    (&[0xfd, 0x37, 0x7a, 0x58], "is compressed with xz: unpack it first"),
    (&[0x42, 0x5a, 0x68], "is compressed with bzip2: unpack it first"),
    (&[0x04, 0x22, 0x4d, 0x18], "is compressed with lz4: unpack it first"),
    (b"PK\x03\x04", "is a zip archive: unpack it first"),
    (b"ARROW1", "is an Arrow IPC file: write it as Parquet"),
    (b"{", "is JSON, it seems: write it as CSV or Parquet"),
];

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
    pub fn find(path: &Path, mapping: Option<&Mapping>) -> Result<Source, Problems> {
        let metadata = std::fs::metadata(path).map_err(|e| {
            let message = if e.kind() == std::io::ErrorKind::NotFound { "there is no such file".into() } else { e.to_string() };
            Problem::new(message).file(path)
        })?;
        if metadata.is_dir() {
            return Self::find_result(path, mapping);
        }
        if !metadata.is_file() {
            return Err(Problem::new("is neither a file nor a folder").file(path).accepted(ACCEPTED).into());
        }
        let mut source = Source {
            path: path.to_path_buf(),
            given: path.to_path_buf(),
            kind: Kind::Csv,
            has_queue: true,
            in_order: false,
            first: None,
            speed: None,
            registers: None,
            tick: Span::ZERO,
            unit: Bytes(1),
            manifest: None,
            gzip: false,
            size: metadata.len(),
            binding: Binding::default(),
            look: Look::default(),
            own_flows: false,
        };
        let unreadable = |e: std::io::Error| Problem::new(format!("cannot be read: {e}")).file(path);
        let mut magic = source.start().map_err(unreadable)?;
        if magic.is_empty() {
            return Err(Problem::new("is empty").file(path).accepted(ACCEPTED).into());
        }
        if magic.starts_with(&[0x1f, 0x8b]) {
            source.gzip = true;
            magic = source.start().map_err(|e| Problem::new(format!("cannot be unpacked: {e}")).file(path))?;
        }
        if magic.starts_with(b"PAR1") {
            if source.gzip {
                return Err(Problem::new("is Parquet inside gzip: unpack it first").file(path).into());
            }
            source.parquet(mapping)?;
        } else if let Some(kind) = captures(&magic) {
            source.kind = kind;
            if let Some(mapping) = mapping.filter(|m| !m.0.is_empty()) {
                let problem = Problem::new("has no effect: a capture has no columns").file(path).column("columns");
                return Err(problem.value(mapping.to_string()).into());
            }
            source.capture()?;
        } else if let Some((_, what)) = STRANGERS.iter().find(|(first, _)| magic.starts_with(first)) {
            return Err(Problem::new(*what).file(path).accepted(ACCEPTED).into());
        } else if magic.contains(&0) {
            return Err(Problem::new("is of no kind that is known").file(path).accepted(ACCEPTED).into());
        } else {
            source.csv(mapping)?;
        }
        Ok(source)
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
        let mut source = Source::find(&folder.join(table), None)?;
        if source.kind == Kind::Parquet {
            source.kind = Kind::Result;
        }
        source.manifest = Some(manifest);
        source.given = folder.to_path_buf();
        Ok(source)
    }

    /// A table of this result or capture beside the file.
    fn beside(&self) -> Option<Manifest> {
        let folder = self.path.parent()?;
        folder.join("manifest.json").is_file().then(|| Manifest::read(folder).ok()).flatten()
    }

    fn start(&self) -> std::io::Result<Vec<u8>> {
        let mut start = Vec::new();
        self.input()?.take(512).read_to_end(&mut start)?;
        Ok(start)
    }

    fn input(&self) -> std::io::Result<Box<dyn BufRead + Send>> {
        let file = BufReader::with_capacity(1 << 16, File::open(&self.path)?);
        Ok(if self.gzip {
            Box::new(BufReader::with_capacity(1 << 16, flate2::bufread::MultiGzDecoder::new(file)))
        } else {
            Box::new(file)
        })
    }

    fn opened(&self) -> Result<Box<dyn BufRead + Send>, Problem> {
        self.input().map_err(|e| Problem::new(format!("cannot be opened: {e}")).file(&self.path))
    }

    fn parquet(&mut self, mapping: Option<&Mapping>) -> Result<(), Problems> {
        self.kind = Kind::Parquet;
        let mut table = Table::open(&self.path)?;
        let schema = table.note("fanin.schema").unwrap_or_default();
        if mapping.is_none() && schema.starts_with("stamps/") {
            self.kind = Kind::Stamps;
            self.manifest = self.beside();
            self.registers = Some(self.manifest.as_ref().and_then(|m| m.registers).unwrap_or_default());
            self.own_flows = true;
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
            if !schema.is_empty() && mapping.is_none() {
                let problem = Problem::new(format!("is the table {schema} of a result, which has no records of single packets"));
                return Err(problem.file(&self.path).accepted("queues.parquet, stamps.parquet").into());
            }
            // The first values show units that names do not.
            let all: Vec<usize> = (0..columns.len().min(256)).collect();
            for index in all {
                if columns[index].declared.is_none() && table.choose(&[index]).is_ok() {
                    let mut once = Table::open(&self.path)?;
                    once.choose(&[index])?;
                    if once.next(1).is_ok_and(|rows| rows > 0) {
                        columns[index].first = Some(once.shown(0, 0)).filter(|v| !v.is_empty());
                    }
                }
            }
            self.binding = bind(mapping, &columns).map_err(|problems| self.all(problems))?;
        }
        self.has_queue = self.binding.get(Role::Queue).is_some();
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
                Unit::Iso => table.dates(0, &mut see),
                other => table.numbers(0, super::mapped::steps(other), &mut see),
            }
        }
        self.first = first;
        Ok(())
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

    fn csv(&mut self, mapping: Option<&Mapping>) -> Result<(), Problems> {
        self.kind = Kind::Csv;
        let mut lines = MappedCsv::new(&self.path, self.opened()?, self.size, mapping, String::new())?;
        self.has_queue = lines.has_queue();
        let (time, queue) = (lines.whole(Role::Time), lines.whole(Role::Queue));
        self.step(time, queue);
        self.first = lines.first_time(BATCH);
        Ok(())
    }

    fn capture(&mut self) -> Result<(), Problems> {
        self.manifest = self.beside();
        let registers = self.manifest.as_ref().and_then(|m| m.registers).unwrap_or_default();
        self.look = look(&self.path, Box::new(self.opened()?), registers)?;
        self.has_queue = self.look.stamped;
        self.registers = self.look.stamped.then_some(registers);
        self.first = if self.look.stamped && !self.look.same_clock { Some(0) } else { self.look.first };
        self.speed = self.look.speed.map(BitRate);
        Ok(())
    }

    /// What a port is called that no column names: the file's name without its ending.
    fn port_name(&self) -> String {
        let name = self.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_string()
    }

    /// Opens it for reading from the start.
    ///
    /// # Errors
    /// It cannot be opened any more.
    pub fn open(&self, mapping: Option<&Mapping>, context: &mut Context) -> Result<Box<dyn TraceReader>, Problems> {
        let file = self.path.display();
        for note in &self.binding.notes {
            context.note(format!("{file}: {note}"));
        }
        Ok(match self.kind {
            Kind::Stamps => Box::new(Stamps::new(Table::open(&self.path)?, self.registers.unwrap_or_default())?),
            Kind::Result | Kind::Parquet => {
                let table = Table::open(&self.path)?;
                Box::new(MappedParquet::new(table, &self.binding, Some(self.port_name()), self.own_flows)?)
            }
            Kind::Csv => Box::new(MappedCsv::new(&self.path, self.opened()?, self.size, mapping, self.port_name())?),
            Kind::Pcap | Kind::PcapNg => {
                let registers = self.registers.unwrap_or_default();
                let watched = self.manifest.iter().flat_map(|m| &m.watched);
                let names = watched.filter_map(|(name, w)| Some((w.index?, name.clone()))).collect();
                let input = Box::new(self.opened()?);
                let look = self.look.clone();
                Box::new(Packets::new(&self.path, input, self.size, look, (registers, names), self.port_name())?)
            }
        })
    }
}

/// The columns of a result's own table; older results do not report places that were taken.
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
    let mut table = Table::open(path)?;
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
