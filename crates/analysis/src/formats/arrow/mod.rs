//! Arrow IPC, files and streams: the messages' content as columns.
//!
//! A file is read by its footer; one that lacks it, because it was cut short, as the stream that it contains. Whole buffers are never
//! held, however long a record batch is, but for those of texts that are pointed into.
//!
//! Why not the `arrow-ipc` crate (60.1): it holds whole record batches, however long, and allocates as many bytes as a compressed buffer
//! says that it unpacks to, so each length would have to be checked here before it may see the file; and with all that it needs it takes
//! 93 s of CPU to build (one job, link-time optimisation; a part of it is needed anyway), where the whole extension took about 300 s.
//!
//! The format: Arrow columnar format 1.5, "Serialization and Interprocess Communication (IPC)"; Message.fbs, Schema.fbs.

pub mod buffers;
pub mod flat;
pub mod schema;

use super::columns::{self, Table};
use super::{Format, Inspected, Mapping, Start};
use crate::formats::arrow::buffers::{BatchColumn, Codec, Kind, Part, Places};
use crate::formats::arrow::flat::{Broken, Flat, Walked};
use crate::formats::arrow::schema::{Leaf, Schema};
use crate::formats::columns::texts::Dictionary;
use crate::formats::columns::{Chosen, MAX_COLUMNS};
use crate::formats::mapping::Column;
use crate::input::at::ReadAt;
use crate::input::file::{Place, SourceFile};
use crate::input::problem::{Problem, Problems};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// Longest metadata of a message [bytes]: a schema of 10,000 columns takes about 2 MB.
const METADATA_LIMIT: u64 = 16 << 20;

const MAGIC: &[u8; 6] = b"ARROW1";

/// Format of Arrow files and streams.
pub struct Arrow;

impl Format for Arrow {
    fn name(&self) -> &'static str {
        "arrow"
    }

    fn title(&self) -> &'static str {
        "Arrow"
    }

    fn recognises(&self, start: Start<'_>) -> bool {
        matches!(start.bytes(), [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..])
    }

    fn may_be_packed(&self) -> bool {
        false
    }

    fn is_header(&self, first: &[u8]) -> bool {
        is_schema(first)
    }

    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
        columns::file::inspect(file, self.name(), Table::open_arrow, mapping)
    }
}

/// Bytes of a stream's first message with its body, where all of it is there.
pub fn message_length(bytes: &[u8]) -> Option<usize> {
    let (head, length) = match bytes {
        [0xff, 0xff, 0xff, 0xff, a, b, c, d, ..] => (8, u32::from_le_bytes([*a, *b, *c, *d])),
        [0xff, 0xff, 0xff, 0xff, ..] => return None,
        [a, b, c, d, ..] => (4, u32::from_le_bytes([*a, *b, *c, *d])),
        _ => return None,
    };
    // What does not decode is as long as its head: the reader says what is wrong.
    let metadata = match usize::try_from(length) {
        Ok(length) if u64::from(length as u32) <= METADATA_LIMIT => bytes.get(head..head + length)?,
        _ => return Some(head),
    };
    let body = Flat::root(metadata).and_then(|root| root.long(3)).ok().and_then(|body| usize::try_from(body).ok()).unwrap_or(0);
    Some(head + metadata.len() + body).filter(|all| *all <= bytes.len())
}

/// True if a message tells the columns of a stream.
pub fn is_schema(message: &[u8]) -> bool {
    let metadata = message.strip_prefix(&[0xff; 4]).and_then(|message| message.get(4..));
    metadata.is_some_and(|metadata| matches!(Flat::root(metadata).and_then(|root| root.byte(1, 0)), Ok(1)))
}

/// An Arrow file or stream that is being read.
pub struct ArrowFile {
    /// Name of the file in messages.
    path: PathBuf,
    file: Arc<dyn ReadAt>,
    len: u64,
    /// Place at which the next message begins.
    at: u64,
    whole_file: bool,
    /// Places at which the messages begin that are still to come, if a footer lists them.
    blocks: Option<VecDeque<u64>>,
    schema: Schema,
    dictionaries: BTreeMap<i64, Dictionary>,
    batch: Vec<BatchColumn>,
    /// Number of record batches so far.
    batches: u64,
    left: u64,
    over: bool,
    ended: Option<String>,
}

/// A message and its body.
struct Message {
    metadata: Vec<u8>,
    body: Part,
}

impl ArrowFile {
    /// Opens a file or a stream, and reads its schema.
    ///
    /// # Errors
    /// It cannot be opened, or is damaged.
    pub fn open(place: &Place) -> Result<Self, Problem> {
        let file = place.open()?;
        let path = place.shown.clone();
        let unreadable = |e: std::io::Error| Problem::new(format!("cannot be read: {e}")).file(&path);
        let len = file.size().map_err(unreadable)?;
        let mut magic = [0; 6];
        let whole_file = len >= 8 && file.read_exact_at(&mut magic, 0).is_ok() && magic == *MAGIC;
        let mut this = ArrowFile {
            path: path.clone(),
            file,
            len,
            at: if whole_file { 8 } else { 0 },
            whole_file,
            blocks: None,
            schema: Schema::default(),
            dictionaries: BTreeMap::new(),
            batch: Vec::new(),
            batches: 0,
            left: 0,
            over: false,
            ended: None,
        };
        let read = match this.footer().map_err(unreadable)? {
            Some(footer) => Flat::root(&footer).and_then(|root| {
                this.blocks = Some(blocks(&root)?);
                Schema::of(&root.table(1)?.ok_or(Broken)?, root.short(0, 0)?)
            }),
            None => {
                let Some(message) = this.message()? else { return Err(this.damaged("it ends before its schema does")) };
                Flat::root(&message.metadata).and_then(|root| match (root.byte(1, 0)?, root.table(2)?) {
                    (1, Some(schema)) => Schema::of(&schema, root.short(0, 0)?),
                    _ => Err(Broken),
                })
            }
        };
        this.schema = read.map_err(|Broken| this.damaged("its schema does not decode"))?;
        if this.schema.big_endian {
            return Err(Problem::new("has numbers in big-endian order").file(&this.path).accepted("little-endian"));
        }
        let there = this.schema.leaves.len();
        if there > MAX_COLUMNS {
            return Err(Problem::new(format!("has {there} columns; accepted: up to {MAX_COLUMNS}")).file(&this.path));
        }
        Ok(this)
    }

    /// Footer of a file; `None` for a stream, or where the file lacks it.
    fn footer(&self) -> std::io::Result<Option<Vec<u8>>> {
        let mut tail = [0; 10];
        if !self.whole_file || self.len < 8 + 10 {
            return Ok(None);
        }
        self.file.read_exact_at(&mut tail, self.len - 10)?;
        let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        if &tail[4..] != MAGIC || length > METADATA_LIMIT || length > self.len - 18 {
            return Ok(None);
        }
        let mut footer = vec![0; length as usize];
        self.file.read_exact_at(&mut footer, self.len - 10 - length)?;
        Ok(Some(footer))
    }

    fn damaged(&self, what: &str) -> Problem {
        Problem::new(format!("is damaged: {what}")).file(&self.path)
    }

    fn wrong(&self, what: &str) -> Problem {
        self.damaged(what).place(format!("record batch {}", self.batches.max(1)))
    }

    /// Reads the next message; None at the end, or where the file is cut short.
    fn message(&mut self) -> Result<Option<Message>, Problem> {
        if self.file.grows() {
            self.file.let_go(self.at);
            let size = self.file.size();
            self.len = size.map_err(|e| Problem::new(format!("cannot be read: {e}")).file(&self.path))?;
            if self.len <= self.at {
                return Ok(None);
            }
        }
        if let Some(blocks) = &mut self.blocks {
            let Some(next) = blocks.pop_front() else { return Ok(None) };
            self.at = next;
        }
        let begin = self.at;
        let rest = self.len.saturating_sub(begin);
        let mut head = [0; 8];
        let there = rest.min(8) as usize;
        let unreadable = |e: std::io::Error| Problem::new(format!("cannot be read: {e}")).file(&self.path);
        self.file.read_exact_at(&mut head[..there], begin).map_err(unreadable)?;
        // Before version 0.15 there was the length only.
        let (head, length) = match head {
            [0xff, 0xff, 0xff, 0xff, a, b, c, d] => (8, u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, ..] => (4, u32::from_le_bytes([a, b, c, d])),
        };
        if there == 0 && !self.whole_file {
            return Ok(None);
        }
        if there < head {
            self.cut(begin);
            return Ok(None);
        }
        if length == 0 {
            return Ok(None);
        }
        let length = u64::from(length);
        if length > METADATA_LIMIT {
            return Err(self.damaged(&format!(
                "a message at byte {begin} has {length} bytes of metadata; accepted: up to {METADATA_LIMIT}"
            )));
        }
        let body = begin + head as u64 + length;
        if body > self.len {
            self.cut(begin);
            return Ok(None);
        }
        let mut metadata = vec![0; length as usize];
        self.file.read_exact_at(&mut metadata, begin + head as u64).map_err(unreadable)?;
        let size = Flat::root(&metadata).and_then(|root| root.long(3));
        let size = size.ok().and_then(|size| u64::try_from(size).ok());
        let Some(size) = size else { return Err(self.damaged(&format!("the message at byte {begin} is no FlatBuffers"))) };
        if size > self.len - body {
            self.cut(begin);
            return Ok(None);
        }
        self.at = body + size;
        Ok(Some(Message { metadata, body: Part { at: body, length: size } }))
    }

    fn cut(&mut self, at: u64) {
        let what = if self.batches == 0 { "no record batch is whole" } else { "the record batches before were read" };
        self.ended = Some(format!("the file is cut short inside the message at byte {at}, or was not closed: {what}"));
    }

    pub fn note(&self, key: &str) -> Option<String> {
        self.schema.notes.get(key).cloned()
    }

    pub fn columns(&self) -> Vec<Column> {
        let column = |leaf: &Leaf| Column { name: leaf.name.clone(), declared: leaf.declared, first: None };
        self.schema.leaves.iter().map(column).collect()
    }

    pub fn is_integer(&self, index: usize) -> bool {
        let leaf = &self.schema.leaves[index];
        leaf.dictionary.is_none() && matches!(leaf.kind, Kind::Number { float: false, .. })
    }

    pub fn is_unzoned(&self, index: usize) -> bool {
        self.schema.leaves[index].unzoned
    }

    /// Columns of these indices, to be filled.
    ///
    /// # Errors
    /// Everything that cannot be read.
    pub fn choose(&self, indices: &[usize]) -> Result<Vec<Chosen>, Problems> {
        let mut problems = Vec::new();
        let mut chosen = Vec::new();
        for &index in indices {
            let leaf = &self.schema.leaves[index];
            if let Some(refused) = &leaf.refused {
                let problem = Problem::new(refused.as_str()).file(&self.path).column(leaf.name.as_str());
                problems.push(problem.accepted("Bool, whole numbers, Float32, Float64, text, times, dictionaries of text"));
            }
            let unsigned = matches!(leaf.kind, Kind::Number { signed: false, .. });
            chosen.push(Chosen::new(index, leaf.name.clone(), unsigned, 1));
        }
        if problems.is_empty() {
            Ok(chosen)
        } else {
            Err(problems)
        }
    }

    /// Share of the file that has been read.
    pub fn progress(&self) -> f64 {
        if self.over {
            return 1.0;
        }
        let left: u64 = self.batch.iter().map(BatchColumn::left).max().unwrap_or(0);
        self.at.saturating_sub(left) as f64 / self.len.max(1) as f64
    }

    /// Note for the end of the reading.
    pub fn ended(&self) -> Option<String> {
        self.ended.clone()
    }

    /// Reads the next `most` rows at most into `columns`; gives how many, 0 at the end.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn next(&mut self, columns: &mut [Chosen], most: usize) -> Result<usize, Problem> {
        while self.left == 0 {
            if self.over || !self.open_batch(columns)? {
                self.over = !self.file.grows();
                return Ok(0);
            }
        }
        let rows = most.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let mut wrong = None;
        for (column, from) in columns.iter_mut().zip(&mut self.batch) {
            let dictionary = self.schema.leaves[column.index].dictionary;
            let read = match dictionary.map(|id| self.dictionaries.get(&id)) {
                None => from.read(rows, column, None),
                Some(Some(dictionary)) => from.read(rows, column, Some(dictionary)),
                Some(None) => Err("its dictionary is not in front of it".to_string()),
            };
            if let Err(what) = read {
                wrong = Some((what, column.name.clone()));
                break;
            }
        }
        if let Some((what, name)) = wrong {
            return Err(self.wrong(&what).column(name));
        }
        self.left -= rows as u64;
        Ok(rows)
    }

    /// Goes to the next record batch; false at the end.
    fn open_batch(&mut self, columns: &[Chosen]) -> Result<bool, Problem> {
        while let Some(message) = self.message()? {
            let broken = |Broken| self.wrong("its metadata are no FlatBuffers");
            let root = Flat::root(&message.metadata).map_err(broken)?;
            let header = root.table(2).map_err(broken)?;
            match (root.byte(1, 0).map_err(broken)?, header) {
                (2, Some(header)) => self.dictionary(&header, message.body, columns)?,
                (3, Some(header)) => {
                    self.batches += 1;
                    self.left = self.record_batch(&header, message.body, columns)?;
                    return Ok(true);
                }
                _ => return Err(self.wrong("a message is neither a record batch nor a dictionary")),
            }
        }
        Ok(false)
    }

    /// Values of the lists of whole numbers in the next record batch, one behind another; each list is a column. None at the end.
    ///
    /// # Errors
    /// The file is damaged, has other columns, or more than `most` values in one.
    pub fn lists(&mut self, most: u64) -> Result<Option<Vec<Vec<u64>>>, Problem> {
        let Some(message) = self.message()? else {
            self.over = !self.file.grows();
            return Ok(None);
        };
        self.batches += 1;
        let broken = |Broken| self.wrong("its metadata are damaged");
        let root = Flat::root(&message.metadata).map_err(broken)?;
        let header = root.table(2).map_err(broken)?.filter(|_| root.byte(1, 0) == Ok(3));
        let header = header.ok_or_else(|| self.wrong("a message is no record batch"))?;
        let places = Places::of(&header, message.body).map_err(broken)?;
        // Of each list its places, and of its values a field of their own.
        if places.nodes.len() != 2 * self.schema.leaves.len() || places.buffers.len() != 2 * places.nodes.len() {
            return Err(self.wrong("it has other buffers than lists of whole numbers have"));
        }
        let kind = Kind::Number { width: 8, signed: false, float: false };
        let mut lists = Vec::new();
        for (place, count) in places.nodes.iter().enumerate().skip(1).step_by(2) {
            if *count > most {
                return Err(self.wrong(&format!("a list has {count} values; accepted: up to {most}")));
            }
            let mut values = Chosen::new(0, String::new(), true, 1);
            let column = BatchColumn::new(&self.file, &places, kind, &[], 2 * place..2 * place + 2);
            let read = column.and_then(|mut column| column.read(*count as usize, &mut values, None));
            read.map_err(|what| self.wrong(&what))?;
            lists.push(values.values.int64s().iter().map(|value| *value as u64).collect());
        }
        Ok(Some(lists))
    }

    fn record_batch(&mut self, header: &Flat<'_>, body: Part, columns: &[Chosen]) -> Result<u64, Problem> {
        let broken = |Broken| self.wrong("its metadata are damaged");
        let places = Places::of(header, body).map_err(broken)?;
        // Where the buffers of each field begin.
        let mut firsts = Vec::with_capacity(self.schema.nodes.len());
        let (mut first, mut variadic) = (0_usize, places.variadic.iter());
        for node in &self.schema.nodes {
            firsts.push(first);
            let more = if node.variadic { variadic.next().copied().unwrap_or(0) } else { 0 };
            first = first.saturating_add(node.buffers).saturating_add(more);
        }
        if places.nodes.len() != self.schema.nodes.len() || places.buffers.len() != first {
            return Err(self.wrong("it has other buffers than the schema says"));
        }
        let mut batch = Vec::with_capacity(columns.len());
        for column in columns {
            let leaf = &self.schema.leaves[column.index];
            let buffers = firsts[leaf.node]..firsts.get(leaf.node + 1).copied().unwrap_or(first);
            let around: Vec<usize> =
                leaf.above.iter().copied().chain([leaf.node]).filter(|node| places.nulls[*node] != 0).collect();
            let valid: Vec<usize> = around.into_iter().map(|node| firsts[node]).collect();
            let made = BatchColumn::new(&self.file, &places, leaf.kind, &valid, buffers);
            batch.push(made.map_err(|what| self.wrong(&what).column(column.name.clone()))?);
        }
        self.batch = batch;
        Ok(places.rows)
    }

    /// Takes the texts of a dictionary that a column needs.
    fn dictionary(&mut self, header: &Flat<'_>, body: Part, columns: &[Chosen]) -> Result<(), Problem> {
        let broken = |Broken| self.wrong("the metadata of a dictionary are damaged");
        let id = header.long(0).map_err(broken)?;
        let needed = columns.iter().any(|column| self.schema.leaves[column.index].dictionary == Some(id));
        let Some(kind) = self.schema.texts.get(&id).copied().filter(|_| needed) else { return Ok(()) };
        let data = header.table(1).and_then(|data| data.ok_or(Broken)).map_err(broken)?;
        let places = Places::of(&data, body).map_err(broken)?;
        let (count, delta) = (places.buffers.len(), header.byte(2, 0).map_err(broken)? != 0);
        if places.nodes.len() != 1 {
            return Err(self.wrong("a dictionary has more than one column"));
        }
        let valid: &[usize] = if places.nulls[0] != 0 { &[0] } else { &[] };
        let read = BatchColumn::new(&self.file, &places, kind, valid, 0..count).and_then(|mut column| {
            let mut texts = self.dictionaries.remove(&id).filter(|_| delta).unwrap_or_default();
            column.read_dictionary(places.rows, &mut texts)?;
            Ok(texts)
        });
        let texts = read.map_err(|what| self.wrong(&what))?;
        self.dictionaries.insert(id, texts);
        Ok(())
    }
}

/// Places of dictionaries and record batches, as a footer lists them; each is there once.
fn blocks(footer: &Flat<'_>) -> Walked<VecDeque<u64>> {
    let mut all = VecDeque::new();
    for id in [2, 3] {
        let mut last = None;
        for [offset, _, _] in footer.longs::<3>(id)? {
            if last.is_some_and(|last| last >= offset) {
                return Err(Broken);
            }
            last = Some(offset);
            all.push_back(u64::try_from(offset).map_err(|_| Broken)?);
        }
    }
    Ok(all)
}

impl Codec {
    /// Compression of the buffers of a batch.
    pub fn of(header: &Flat<'_>) -> Walked<Self> {
        let Some(compression) = header.table(3)? else { return Ok(Codec::None) };
        match (compression.byte(0, 0)?, compression.byte(1, 0)?) {
            (0, 0) => Ok(Codec::Lz4),
            (1, 0) => Ok(Codec::Zstd),
            _ => Err(Broken),
        }
    }
}
