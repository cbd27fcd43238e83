//! Buffers of Arrow's record batches, piece by piece: bits, numbers, texts.

use crate::formats::arrow::flat::{Broken, Flat, Walked};
use crate::formats::columns::texts::Dictionary;
use crate::formats::columns::{Chosen, Values};
use crate::input::at::ReadAt;
use crate::input::zstd;
use bytes::Bytes;
use parquet::data_type::ByteArray;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

/// Texts of a batch of rows, buffers of texts that are held at once, and texts of a dictionary [bytes].
const TEXT_LIMIT: usize = 256 << 20;

/// Texts of a dictionary, at most.
const DICTIONARY_LIMIT: u64 = 1 << 23;

/// Largest window of zstd as a power of two [bytes], of which each column has one.
const ZSTD_WINDOW: u32 = 25;

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A type that cannot be read.
    None,
    /// No value in any row.
    Null,
    Bool,
    /// Numbers of so many bytes.
    Number {
        width: usize,
        signed: bool,
        float: bool,
    },
    /// Texts one behind the other, with the places between them as numbers of 32 or 64 bits.
    Text {
        wide: bool,
    },
    /// Texts that are pointed into several buffers (views).
    Views,
}

/// Compression of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    None,
    Lz4,
    Zstd,
}

/// A part of a file [bytes].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub at: u64,
    pub length: u64,
}

/// Layout of a record batch.
pub struct Places {
    pub rows: u64,
    pub nodes: Vec<u64>,
    /// Number of missing values of each field; unless they were not counted, 0 means none.
    pub nulls: Vec<i64>,
    pub buffers: Vec<Part>,
    pub variadic: Vec<usize>,
    codec: Codec,
}

impl Places {
    /// Reads the layout of a RecordBatch with this body; every buffer lies in it.
    pub fn of(header: &Flat<'_>, body: Part) -> Walked<Self> {
        let rows = u64::try_from(header.long(0)?).map_err(|_| Broken)?;
        let (mut nodes, mut nulls) = (Vec::new(), Vec::new());
        for [length, null] in header.longs(1)? {
            nodes.push(u64::try_from(length).map_err(|_| Broken)?);
            nulls.push(null);
        }
        let buffer = |[offset, length]: [i64; 2]| {
            let (offset, length) = (u64::try_from(offset).map_err(|_| Broken)?, u64::try_from(length).map_err(|_| Broken)?);
            match offset.checked_add(length) {
                Some(end) if end <= body.length => Ok(Part { at: body.at + offset, length }),
                _ => Err(Broken),
            }
        };
        let buffers = header.longs(2)?.map(buffer).collect::<Walked<Vec<_>>>()?;
        let count = |[count]: [i64; 1]| usize::try_from(count).map_err(|_| Broken);
        let variadic = header.longs(4)?.map(count).collect::<Walked<Vec<_>>>()?;
        Ok(Places { rows, nodes, nulls, buffers, variadic, codec: Codec::of(header)? })
    }
}

/// Result with the reason, in words, for which a column cannot be read.
type Outcome<T> = Result<T, String>;

/// A part of a file as a stream.
struct Slice {
    file: Arc<dyn ReadAt>,
    part: Part,
}

impl Read for Slice {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let most = buf.len().min(usize::try_from(self.part.length).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut buf[..most], self.part.at)?;
        self.part.at += read as u64;
        self.part.length -= read as u64;
        Ok(read)
    }
}

/// A buffer that is read once, from its begin.
enum Stream {
    Plain(Slice),
    Lz4(Box<lz4_flex::frame::FrameDecoder<BufReader<Slice>>>),
    Zstd(Box<zstd::Decoder<BufReader<Slice>>>),
}

impl Stream {
    fn new(file: &Arc<dyn ReadAt>, part: Part, codec: Codec) -> Outcome<Self> {
        let mut slice = Slice { file: file.clone(), part };
        if codec == Codec::None || part.length == 0 {
            return Ok(Stream::Plain(slice));
        }
        let mut head = [0; 8];
        slice.read_exact(&mut head).map_err(|_| "a compressed buffer lacks its length".to_string())?;
        if i64::from_le_bytes(head) == -1 {
            return Ok(Stream::Plain(slice));
        }
        let input = BufReader::with_capacity(1 << 14, slice);
        Ok(if codec == Codec::Lz4 {
            Stream::Lz4(Box::new(lz4_flex::frame::FrameDecoder::new(input)))
        } else {
            Stream::Zstd(Box::new(zstd::decoder(input, ZSTD_WINDOW).map_err(|e| e.to_string())?))
        })
    }

    /// Bytes of the file that are still to be read.
    fn left(&self) -> u64 {
        match self {
            Stream::Plain(slice) => slice.part.length,
            Stream::Lz4(decoder) => decoder.get_ref().get_ref().part.length,
            Stream::Zstd(decoder) => decoder.get_ref().get_ref().part.length,
        }
    }

    /// Reads `count` bytes; memory grows with those that are there.
    fn take(&mut self, count: usize, out: &mut Vec<u8>) -> Outcome<()> {
        out.clear();
        if matches!(self, Stream::Plain(slice) if slice.part.length < count as u64) {
            return Err("a buffer is shorter than its rows".to_string());
        }
        let mut input: Box<dyn Read + '_> = match self {
            Stream::Plain(slice) => {
                out.resize(count, 0);
                return slice.read_exact(out).map_err(|e| format!("cannot be read: {e}"));
            }
            Stream::Lz4(decoder) => Box::new(decoder),
            Stream::Zstd(decoder) => Box::new(decoder),
        };
        let read = input.by_ref().take(count as u64).read_to_end(out).map_err(|e| format!("a buffer does not unpack: {e}"))?;
        if read < count {
            return Err("a buffer is shorter than its rows".to_string());
        }
        Ok(())
    }

    /// Reads all, up to a limit.
    fn all(&mut self) -> Outcome<Vec<u8>> {
        let mut out = Vec::new();
        let mut input: Box<dyn Read + '_> = match self {
            Stream::Plain(slice) => Box::new(slice),
            Stream::Lz4(decoder) => Box::new(decoder),
            Stream::Zstd(decoder) => Box::new(decoder),
        };
        let most = TEXT_LIMIT as u64 + 1;
        input.by_ref().take(most).read_to_end(&mut out).map_err(|e| format!("a buffer does not unpack: {e}"))?;
        if out.len() > TEXT_LIMIT {
            return Err(format!("a buffer of texts has more than {TEXT_LIMIT} bytes: write smaller record batches"));
        }
        Ok(out)
    }

    /// Skips `count` bytes.
    fn skip(&mut self, count: u64) -> Outcome<()> {
        let mut scratch = Vec::new();
        let mut left = count;
        while left > 0 {
            let part = left.min(1 << 16);
            self.take(part as usize, &mut scratch)?;
            left -= part;
        }
        Ok(())
    }
}

/// A buffer of bits, the lowest of each byte first.
struct Bits {
    stream: Stream,
    byte: u8,
    /// Bits of `byte` that are still to come.
    left: u32,
    scratch: Vec<u8>,
}

impl Bits {
    fn read(&mut self, rows: usize, mut each: impl FnMut(usize, bool)) -> Outcome<()> {
        let fresh = rows.saturating_sub(self.left as usize).div_ceil(8);
        let mut scratch = std::mem::take(&mut self.scratch);
        self.stream.take(fresh, &mut scratch)?;
        let mut next = scratch.iter();
        for row in 0..rows {
            if self.left == 0 {
                self.byte = *next.next().unwrap_or(&0);
                self.left = 8;
            }
            each(row, self.byte & 1 == 1);
            self.byte >>= 1;
            self.left -= 1;
        }
        self.scratch = scratch;
        Ok(())
    }
}

/// Buffers of texts into which views point.
struct Pointed {
    file: Arc<dyn ReadAt>,
    codec: Codec,
    parts: Vec<Part>,
    held: BTreeMap<usize, Bytes>,
    size: usize,
    /// Number of times that each buffer was read.
    reads: BTreeMap<usize, u32>,
}

impl Pointed {
    fn get(&mut self, view: &Bytes) -> Outcome<Bytes> {
        let word = |at: usize| view[at..].first_chunk().map_or(0, |b| i32::from_le_bytes(*b));
        let outside = || "a text is outside of its buffer".to_string();
        let length = usize::try_from(word(0)).map_err(|_| outside())?;
        if length <= 12 {
            return Ok(view.slice(4..4 + length));
        }
        let buffer = usize::try_from(word(8)).map_err(|_| outside())?;
        let from = usize::try_from(word(12)).map_err(|_| outside())?;
        let held = match self.held.get(&buffer) {
            Some(held) => held,
            None => {
                let part = *self.parts.get(buffer).ok_or_else(outside)?;
                let reads = self.reads.entry(buffer).or_default();
                *reads += 1;
                if *reads > 2 {
                    return Err(format!("its texts are strewn over more than {TEXT_LIMIT} bytes: write smaller record batches"));
                }
                let bytes = Stream::new(&self.file, part, self.codec)?.all()?;
                if self.size + bytes.len() > TEXT_LIMIT {
                    self.held.clear();
                    self.size = 0;
                }
                self.size += bytes.len();
                self.held.entry(buffer).or_insert(Bytes::from(bytes))
            }
        };
        let end = from.checked_add(length).filter(|end| *end <= held.len()).ok_or_else(outside)?;
        Ok(held.slice(from..end))
    }
}

enum Data {
    Null,
    Bool(Bits),
    Numbers(Stream),
    Text { places: Stream, wide: bool, data: Stream, last: Option<u64> },
    Views(Stream, Pointed),
}

/// A column of a record batch, row by row.
pub struct BatchColumn {
    /// True if there is a value, of the column and of the structures around it.
    valid: Vec<Bits>,
    data: Data,
    kind: Kind,
    there: Vec<bool>,
    scratch: Vec<u8>,
}

impl BatchColumn {
    /// Column in the buffers `own` of the batch; `valid` are those that say which values are there.
    ///
    /// # Errors
    /// They are not those of the kind.
    pub fn new(file: &Arc<dyn ReadAt>, places: &Places, kind: Kind, valid: &[usize], own: Range<usize>) -> Outcome<Self> {
        let lacks = || "it has other buffers than its type needs".to_string();
        let part = |index: usize| places.buffers.get(index).copied().ok_or_else(lacks);
        let stream = |index: usize| Stream::new(file, part(index)?, places.codec);
        let bits = |stream: Stream| Bits { stream, byte: 0, left: 0, scratch: Vec::new() };
        let own_stream = |nth: usize| stream(own.clone().nth(nth).ok_or_else(lacks)?);
        let data = match kind {
            Kind::None => return Err(lacks()),
            // It has no buffers, not even one that says that nothing is there.
            Kind::Null => {
                return Ok(BatchColumn { valid: Vec::new(), data: Data::Null, kind, there: Vec::new(), scratch: Vec::new() })
            }
            Kind::Bool => Data::Bool(bits(own_stream(1)?)),
            Kind::Number { .. } => Data::Numbers(own_stream(1)?),
            Kind::Text { wide } => Data::Text { places: own_stream(1)?, wide, data: own_stream(2)?, last: None },
            Kind::Views => {
                let parts = places.buffers.get(own.start + 2..own.end).ok_or_else(lacks)?.to_vec();
                let held = BTreeMap::new();
                let pointed = Pointed { file: file.clone(), codec: places.codec, parts, held, size: 0, reads: BTreeMap::new() };
                Data::Views(own_stream(1)?, pointed)
            }
        };
        // A buffer of no length says that all values are there.
        let mut checks = Vec::new();
        for index in valid {
            if part(*index)?.length > 0 {
                checks.push(bits(stream(*index)?));
            }
        }
        Ok(BatchColumn { valid: checks, data, kind, there: Vec::new(), scratch: Vec::new() })
    }

    /// Bytes of the column's largest buffer that are still to be read.
    pub fn left(&self) -> u64 {
        match &self.data {
            Data::Null => 0,
            Data::Bool(bits) => bits.stream.left(),
            Data::Numbers(stream) | Data::Views(stream, _) => stream.left(),
            Data::Text { places, data, .. } => places.left().max(data.left()),
        }
    }

    /// Finds out which of the next rows have a value; gives their number.
    fn check(&mut self, rows: usize) -> Outcome<usize> {
        let there = &mut self.there;
        there.clear();
        there.resize(rows, true);
        for bits in &mut self.valid {
            bits.read(rows, |row, set| there[row] &= set)?;
        }
        Ok(if self.valid.is_empty() { rows } else { there.iter().filter(|there| **there).count() })
    }

    /// Reads the next rows into a column.
    ///
    /// # Errors
    /// The buffers are damaged.
    pub fn read(&mut self, rows: usize, column: &mut Chosen, dictionary: Option<&Dictionary>) -> Outcome<()> {
        let values = self.check(rows)?;
        column.levels.clear();
        if values == rows {
            column.levels.resize(rows, 1);
        } else {
            column.levels.extend(self.there.iter().map(|there| i16::from(*there)));
        }
        let there = (values < rows).then_some(self.there.as_slice());
        let scratch = &mut self.scratch;
        match (&mut self.data, self.kind) {
            (Data::Null, _) => {
                column.values.int32s().clear();
                column.levels.fill(0);
            }
            (Data::Bool(bits), _) => {
                let out = column.values.bools();
                out.clear();
                bits.read(rows, |row, set| {
                    if there.is_none_or(|there| there[row]) {
                        out.push(set);
                    }
                })?;
            }
            (Data::Numbers(stream), Kind::Number { width, signed, float }) => {
                stream.take(rows * width, scratch)?;
                match dictionary {
                    Some(dictionary) => {
                        let out = column.values.places(dictionary.texts());
                        let place = |index: i64| usize::try_from(index).ok().and_then(|index| dictionary.place(index));
                        let mut missing = false;
                        let mut place = |index: i64| {
                            place(index).unwrap_or_else(|| {
                                missing = true;
                                0
                            })
                        };
                        match width {
                            1 => each(scratch, there, out, |b: [u8; 1]| place(i64::from(b[0] as i8))),
                            2 => each(scratch, there, out, |b| place(i64::from(i16::from_le_bytes(b)))),
                            4 => each(scratch, there, out, |b| place(i64::from(i32::from_le_bytes(b)))),
                            _ => each(scratch, there, out, |b| place(i64::from_le_bytes(b))),
                        }
                        if missing {
                            return Err("a row has a text that its dictionary lacks".to_string());
                        }
                    }
                    None => numbers(scratch, there, &mut column.values, (width, signed, float)),
                }
            }
            (Data::Text { places, wide, data, last }, _) => {
                let all = texts(rows, (places, *wide), data, last, scratch)?;
                let out = column.values.texts();
                out.clear();
                let present = all.into_iter().enumerate().filter(|(row, _)| there.is_none_or(|there| there[*row]));
                out.extend(present.map(|(_, text)| ByteArray::from(text)));
            }
            (Data::Views(stream, pointed), _) => {
                let mut views = Vec::new();
                stream.take(rows * 16, &mut views)?;
                let views = Bytes::from(views);
                let out = column.values.texts();
                out.clear();
                for row in (0..rows).filter(|row| there.is_none_or(|there| there[*row])) {
                    out.push(ByteArray::from(pointed.get(&views.slice(16 * row..16 * row + 16))?));
                }
            }
            (Data::Numbers(_), _) => return Err("it is no column of numbers".to_string()),
        }
        Ok(())
    }

    /// Reads all rows as texts of a dictionary, behind those that it has.
    ///
    /// # Errors
    /// The buffers are damaged, or the dictionary is too large.
    pub fn read_dictionary(&mut self, rows: u64, dictionary: &mut Dictionary) -> Outcome<()> {
        if rows > DICTIONARY_LIMIT {
            return Err(format!("a dictionary has {rows} texts; accepted: up to {DICTIONARY_LIMIT}"));
        }
        let mut column = Chosen::new(0, String::new(), false, 1);
        let (mut left, mut size) = (rows as usize, 0);
        while left > 0 {
            let part = left.min(1 << 14);
            self.read(part, &mut column, None)?;
            let Values::Text(texts) = &column.values else { return Err("a dictionary holds no text".to_string()) };
            let mut texts = texts.iter();
            for there in &self.there {
                let text = if *there { texts.next().map(ByteArray::data) } else { None }.unwrap_or_default();
                size += text.len();
                if size > TEXT_LIMIT {
                    return Err(format!("a dictionary has more than {TEXT_LIMIT} bytes"));
                }
                dictionary.push(text);
            }
            left -= part;
        }
        dictionary.finish();
        Ok(())
    }
}

/// Puts the result of `value` for each row's bytes into `out`, of rows that have a value.
#[inline]
fn each<const N: usize, T>(bytes: &[u8], there: Option<&[bool]>, out: &mut Vec<T>, mut value: impl FnMut([u8; N]) -> T) {
    out.clear();
    let rows = bytes.chunks_exact(N).map(|chunk| *chunk.first_chunk().unwrap_or(&[0; N]));
    match there {
        None => out.extend(rows.map(value)),
        Some(there) => out.extend(rows.zip(there).filter(|(_, there)| **there).map(|(bytes, _)| value(bytes))),
    }
}

fn numbers(bytes: &[u8], there: Option<&[bool]>, out: &mut Values, kind: (usize, bool, bool)) {
    match kind {
        (4, _, true) => each(bytes, there, out.floats(), f32::from_le_bytes),
        (_, _, true) => each(bytes, there, out.doubles(), f64::from_le_bytes),
        (1, true, _) => each(bytes, there, out.int32s(), |b: [u8; 1]| i32::from(b[0] as i8)),
        (1, false, _) => each(bytes, there, out.int32s(), |b: [u8; 1]| i32::from(b[0])),
        (2, true, _) => each(bytes, there, out.int32s(), |b| i32::from(i16::from_le_bytes(b))),
        (2, false, _) => each(bytes, there, out.int32s(), |b| i32::from(u16::from_le_bytes(b))),
        // What is unsigned is read as such by the table.
        (4, ..) => each(bytes, there, out.int32s(), i32::from_le_bytes),
        _ => each(bytes, there, out.int64s(), i64::from_le_bytes),
    }
}

/// The next texts, whose ends are in `places`.
fn texts(
    rows: usize,
    (places, wide): (&mut Stream, bool),
    data: &mut Stream,
    last: &mut Option<u64>,
    scratch: &mut Vec<u8>,
) -> Outcome<Vec<Bytes>> {
    let width = if wide { 8 } else { 4 };
    let mut ends: Vec<i64> = Vec::with_capacity(rows + 1);
    let more = rows + usize::from(last.is_none());
    places.take(more * width, scratch)?;
    if wide {
        each(scratch, None, &mut ends, i64::from_le_bytes);
    } else {
        each(scratch, None, &mut ends, |b| i64::from(i32::from_le_bytes(b)));
    }
    let astray = || "the places of its texts are damaged".to_string();
    let begin = match *last {
        Some(last) => last,
        None => {
            let first = u64::try_from(ends.remove(0)).map_err(|_| astray())?;
            data.skip(first)?;
            first
        }
    };
    let end = ends.last().map_or(Ok(begin), |end| u64::try_from(*end).map_err(|_| astray()))?;
    let size = end.checked_sub(begin).ok_or_else(astray)?;
    if size > TEXT_LIMIT as u64 {
        return Err(format!("{rows} texts have {size} bytes; accepted: up to {TEXT_LIMIT}"));
    }
    let mut bytes = Vec::new();
    data.take(size as usize, &mut bytes)?;
    let bytes = Bytes::from(bytes);
    let mut from = 0;
    let mut out = Vec::with_capacity(rows);
    for end in ends {
        let to = u64::try_from(end).ok().and_then(|end| end.checked_sub(begin)).ok_or_else(astray)? as usize;
        if to < from || to > bytes.len() {
            return Err(astray());
        }
        out.push(bytes.slice(from..to));
        from = to;
    }
    *last = Some(end);
    Ok(out)
}
