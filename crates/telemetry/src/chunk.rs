//! Column chunks of Parquet files, encoded for the tables of a run: many rows with few different values.
//!
//! The writer of the `parquet` crate hashes every value with a general hash function, compares every text with the smallest and
//! the largest so far, and takes over 100 instructions per value. Here a value costs some 20: numbers are looked up in a table
//! made for them, or packed as differences where most are new (times); a name is known by the address that its rows share.
//!
//! Source: Parquet, Encodings.md: PLAIN, RLE_DICTIONARY, DELTA_BINARY_PACKED; data pages of version 1, one per chunk.

use crate::column::Name;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::collections::BTreeMap;

/// Storage of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integer {
    /// Four bytes each: Parquet's `int32`.
    Four,
    /// Eight bytes each: Parquet's `int64`.
    Eight,
}

/// New values that a dictionary takes in any case; beyond, no more than a quarter of all values may be new.
const NEW: usize = 256;

/// Size of two page headers, approximately [bytes].
const HEADERS: usize = 256;

/// Longest text of which the statistics say the smallest and largest [bytes].
const LONGEST: usize = 64;

/// Memory that encoding uses again and again.
pub struct Encoder {
    index: Index,
    uniques: Vec<u64>,
    codes: Vec<u32>,
    values: Vec<u64>,
    levels: Vec<u32>,
    plain: Vec<u8>,
    data: Vec<u8>,
    compressed: Vec<u8>,
    snappy: snap::raw::Encoder,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder {
            index: Index::default(),
            uniques: Vec::new(),
            codes: Vec::new(),
            values: Vec::new(),
            levels: Vec::new(),
            plain: Vec::new(),
            data: Vec::new(),
            compressed: Vec::new(),
            snappy: snap::raw::Encoder::new(),
        }
    }
}

/// A column of a row group, to be encoded.
pub struct Chunk<'a> {
    encoder: &'a mut Encoder,
    column: ColumnDescPtr,
    append: &'a mut dyn FnMut(bytes::Bytes, ColumnCloseResult) -> Result<(), ParquetError>,
    rows: usize,
    /// Bytes that the levels take in front of the values.
    head: usize,
}

/// A row group in the making, column by column.
pub struct RowGroup<'a, 'w> {
    encoder: &'a mut Encoder,
    columns: std::slice::Iter<'a, ColumnDescPtr>,
    group: SerializedRowGroupWriter<'w, Vec<u8>>,
    rows: usize,
}

impl<'a, 'w> RowGroup<'a, 'w> {
    pub(crate) fn new(
        encoder: &'a mut Encoder,
        columns: &'a [ColumnDescPtr],
        group: SerializedRowGroupWriter<'w, Vec<u8>>,
        rows: usize,
    ) -> Self {
        RowGroup { encoder, columns: columns.iter(), group, rows }
    }

    /// Encodes the next column by `encode`.
    ///
    /// # Errors
    /// Where there is none, or its own.
    pub fn column(&mut self, encode: impl FnOnce(Chunk<'_>) -> Result<(), ParquetError>) -> Result<(), ParquetError> {
        let Some(column) = self.columns.next().cloned() else {
            return Err(ParquetError::General("more columns than the schema has".to_string()));
        };
        let group = &mut self.group;
        let mut append = |bytes: bytes::Bytes, close: ColumnCloseResult| group.append_column(&bytes, close);
        encode(Chunk { encoder: self.encoder, column, append: &mut append, rows: self.rows, head: 0 })
    }

    pub(crate) fn into_inner(self) -> SerializedRowGroupWriter<'w, Vec<u8>> {
        self.group
    }
}

/// Encoded values of a chunk.
struct Encoded {
    /// Number of values that are not null.
    values: usize,
    /// Number of entries of the dictionary in `plain`; `None`: the chunk has no dictionary.
    dictionary: Option<usize>,
    encoding: Encoding,
    /// Statistics of the values that are not null.
    statistics: Option<Statistics>,
}

impl Chunk<'_> {
    /// Encodes which rows have a value. To be called before the values are encoded.
    pub fn levels(&mut self, present: impl Iterator<Item = bool>) {
        self.encoder.levels.clear();
        self.encoder.levels.extend(present.map(u32::from));
    }

    /// Encodes the unsigned integers of a column that are not null.
    ///
    /// # Errors
    /// Parquet's.
    pub fn integers(&mut self, integer: Integer, values: impl Iterator<Item = u64> + Clone) -> Result<(), ParquetError> {
        self.begin();
        let encoder = &mut *self.encoder;
        let encoded = if encoder.look_up(self.rows, values.clone()) {
            let Encoder { uniques, codes, plain, data, .. } = encoder;
            for value in uniques.iter() {
                match integer {
                    Integer::Four => plain.extend((*value as u32).to_le_bytes()),
                    Integer::Eight => plain.extend(value.to_le_bytes()),
                }
            }
            indices(codes, uniques.len(), data);
            let statistics = of_integers(integer, bounds(uniques), self.rows - codes.len());
            Encoded { values: codes.len(), dictionary: Some(uniques.len()), encoding: Encoding::RLE_DICTIONARY, statistics }
        } else {
            encoder.values.clear();
            encoder.values.extend(values);
            let Encoder { values, data, .. } = encoder;
            differences(integer, values, data);
            let statistics = of_integers(integer, bounds(values), self.rows - values.len());
            Encoded { values: values.len(), dictionary: None, encoding: Encoding::DELTA_BINARY_PACKED, statistics }
        };
        self.finish(encoded)
    }

    /// Encodes the texts of a column that are not null.
    ///
    /// # Errors
    /// Parquet's.
    pub fn names<'n>(&mut self, names: impl Iterator<Item = &'n Name>) -> Result<(), ParquetError> {
        self.begin();
        let Encoder { index, codes, plain, data, .. } = &mut *self.encoder;
        codes.clear();
        // The rows keep all names alive while this lasts, so that an address stands for one text. A text may have several.
        let mut texts: BTreeMap<&str, u32> = BTreeMap::new();
        index.clear();
        for name in names {
            let address = std::sync::Arc::as_ptr(&name.0).cast::<u8>().addr() as u64;
            let code = match index.find(address) {
                Ok(code) => code,
                Err(place) => {
                    let next = texts.len() as u32;
                    let code = *texts.entry(&name.0).or_insert_with(|| {
                        plain.extend((name.0.len() as u32).to_le_bytes());
                        plain.extend(name.0.as_bytes());
                        next
                    });
                    index.insert(place, address, code);
                    code
                }
            };
            codes.push(code);
        }
        indices(codes, texts.len(), data);
        let text =
            |text: Option<&&str>| text.filter(|text| text.len() <= LONGEST).map(|text| ByteArray::from(text.as_bytes().to_vec()));
        let (min, max) = (text(texts.keys().next()), text(texts.keys().next_back()));
        let nulls = Some((self.rows - codes.len()) as u64);
        let statistics = (min.is_some() && max.is_some()).then(|| Statistics::byte_array(min, max, None, nulls, false));
        let encoded =
            Encoded { values: codes.len(), dictionary: Some(texts.len()), encoding: Encoding::RLE_DICTIONARY, statistics };
        self.finish(encoded)
    }

    /// Encodes truth values, none of them null.
    ///
    /// # Errors
    /// Parquet's.
    pub fn booleans(&mut self, values: impl Iterator<Item = bool> + Clone) -> Result<(), ParquetError> {
        self.begin();
        let data = &mut self.encoder.data;
        let start = data.len();
        data.resize(start + self.rows.div_ceil(8), 0);
        // Most columns have none that is true.
        let mut ones = 0;
        if values.clone().any(|value| value) {
            for (at, _) in values.enumerate().filter(|(_, value)| *value) {
                data[start + at / 8] |= 1 << (at % 8);
                ones += 1;
            }
        }
        let bits = self.rows;
        let statistics = Some(Statistics::boolean(Some(ones == bits), Some(ones > 0), None, Some(0), false));
        self.finish(Encoded { values: bits, dictionary: None, encoding: Encoding::PLAIN, statistics })
    }

    /// Empty pages, but for the levels.
    fn begin(&mut self) {
        let Encoder { levels, plain, data, .. } = &mut *self.encoder;
        plain.clear();
        data.clear();
        if self.column.max_def_level() > 0 {
            data.extend([0; 4]);
            hybrid(levels, 1, data);
            let length = (data.len() - 4) as u32;
            data[..4].copy_from_slice(&length.to_le_bytes());
        }
        self.head = data.len();
    }

    /// Writes the pages of the column chunk.
    fn finish(&mut self, encoded: Encoded) -> Result<(), ParquetError> {
        let encoder = &mut *self.encoder;
        // A column of nulls needs no dictionary.
        let empty = encoded.values == 0;
        let (dictionary, encoding) = if empty { (None, Encoding::PLAIN) } else { (encoded.dictionary, encoded.encoding) };
        if empty {
            encoder.data.truncate(self.head);
        }
        let mut file = TrackedWrite::new(Vec::with_capacity(encoder.plain.len() + encoder.data.len() + HEADERS));
        let mut pages = SerializedPageWriter::new(&mut file);
        let mut page_stats = Vec::new();
        let (mut compressed, mut uncompressed, mut data_offset) = (0, 0, 0);
        let mut write = |page: Page, size: usize| {
            page_stats.push(PageEncodingStats { page_type: page.page_type(), encoding: page.encoding(), count: 1 });
            if page.page_type() == PageType::DATA_PAGE {
                data_offset = compressed;
            }
            let written = pages.write_page(CompressedPage::new(page, size))?;
            compressed += written.compressed_size as i64;
            uncompressed += written.uncompressed_size as i64;
            Ok::<_, ParquetError>(())
        };
        let (snappy, packed) = (&mut encoder.snappy, &mut encoder.compressed);
        let mut snap = |bytes: &[u8]| {
            packed.resize(packed.len().max(snap::raw::max_compress_len(bytes.len())), 0);
            let length = snappy.compress(bytes, packed).map_err(|e| ParquetError::General(e.to_string()))?;
            Ok::<_, ParquetError>(bytes::Bytes::copy_from_slice(&packed[..length]))
        };
        let parts = [&encoder.data, &encoder.plain].map(|page| sample(page));
        let whole: usize = parts.iter().map(|part| part.len()).sum();
        let length = snap(parts[0])?.len() + snap(parts[1])?.len();
        let codec = if length <= whole / 2 { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
        let mut stored = |bytes: &[u8]| match codec {
            Compression::SNAPPY => snap(bytes),
            _ => Ok(bytes::Bytes::copy_from_slice(bytes)),
        };
        if let Some(entries) = dictionary {
            let page = Page::DictionaryPage {
                buf: stored(&encoder.plain)?,
                num_values: entries as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            write(page, encoder.plain.len())?;
        }
        let page = Page::DataPage {
            buf: stored(&encoder.data)?,
            num_values: self.rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        write(page, encoder.data.len())?;
        let encodings = [Encoding::PLAIN, Encoding::RLE, encoding];
        let used = encodings.into_iter().filter(|e| *e != Encoding::PLAIN || dictionary.is_some() || encoding == *e);
        let mut metadata = ColumnChunkMetaData::builder(self.column.clone())
            .set_compression(codec)
            .set_encodings(used.collect())
            .set_page_encoding_stats(page_stats)
            .set_total_compressed_size(compressed)
            .set_total_uncompressed_size(uncompressed)
            .set_num_values(self.rows as i64)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset(dictionary.map(|_| 0));
        if let Some(statistics) = encoded.statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written: self.rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        (self.append)(file.into_inner()?.into(), close)
    }
}

impl Encoder {
    /// Makes a dictionary of the values of a column, of at most `rows` rows, with their codes in order of first appearance;
    /// false: too many of the values are new.
    fn look_up(&mut self, rows: usize, values: impl Iterator<Item = u64>) -> bool {
        let Encoder { index, uniques, codes, .. } = self;
        uniques.clear();
        index.clear();
        codes.resize(rows, 0);
        let mut count = 0;
        for (code, value) in codes.iter_mut().zip(values) {
            *code = match index.find(value) {
                Ok(code) => code,
                Err(place) => {
                    if uniques.len() >= NEW + count / 4 {
                        return false;
                    }
                    let code = uniques.len() as u32;
                    uniques.push(value);
                    index.insert(place, value, code);
                    code
                }
            };
            count += 1;
        }
        codes.truncate(count);
        true
    }
}

/// Codes of numbers: of small ones in a table, of others by open addressing. What it gives does not depend on how they lie in it.
#[derive(Default)]
struct Index {
    /// Codes of numbers below [`Index::SMALL`], plus 1; 0: none.
    small: Vec<u32>,
    /// Numbers that have a code.
    known: Vec<usize>,
    /// Number, and its code + 1; 0: free.
    slots: Vec<(u64, u32)>,
    taken: usize,
    shift: u32,
}

impl Index {
    /// Frames, packets in a queue, and flows of a short run are below.
    const SMALL: usize = 1 << 14;
    /// Number of slots at the beginning.
    const FIRST: usize = 1 << 12;

    fn clear(&mut self) {
        self.small.resize(Self::SMALL, 0);
        for number in self.known.drain(..) {
            self.small[number] = 0;
        }
        if self.taken > 0 || self.slots.is_empty() {
            self.slots.clear();
            self.slots.resize(Self::FIRST, (0, 0));
            self.taken = 0;
            self.shift = u64::BITS - Self::FIRST.ilog2();
        }
    }

    /// Code of a number.
    ///
    /// # Errors
    /// The slot where it belongs, if it is not there.
    #[inline(always)]
    fn find(&self, number: u64) -> Result<u32, usize> {
        if let Some(code) = self.small.get(number as usize) {
            return code.checked_sub(1).ok_or(number as usize);
        }
        let mask = self.slots.len() - 1;
        // Source: TAOCP §6.4, multiplicative hashing by the golden ratio.
        let mut at = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        loop {
            let (here, code) = self.slots[at & mask];
            if code == 0 {
                return Err(at & mask);
            }
            if here == number {
                return Ok(code - 1);
            }
            at += 1;
        }
    }

    /// Gives a number a code, in the slot that [`Index::find`] gave.
    fn insert(&mut self, slot: usize, number: u64, code: u32) {
        if let Some(small) = self.small.get_mut(number as usize) {
            *small = code + 1;
            self.known.push(slot);
            return;
        }
        self.slots[slot] = (number, code + 1);
        self.taken += 1;
        if self.taken * 2 > self.slots.len() {
            let larger = vec![(0, 0); self.slots.len() * 2];
            let old = std::mem::replace(&mut self.slots, larger);
            self.shift -= 1;
            for (number, code) in old.into_iter().filter(|(_, code)| *code > 0) {
                if let Err(slot) = self.find(number) {
                    self.slots[slot] = (number, code);
                }
            }
        }
    }
}

/// Smallest and largest of the values.
fn bounds(values: &[u64]) -> Option<(u64, u64)> {
    let first = *values.first()?;
    Some(values.iter().fold((first, first), |(min, max), value| (min.min(*value), max.max(*value))))
}

fn of_integers(integer: Integer, bounds: Option<(u64, u64)>, nulls: usize) -> Option<Statistics> {
    let nulls = Some(nulls as u64);
    bounds.map(|(min, max)| match integer {
        Integer::Four => Statistics::int32(Some(min as i32), Some(max as i32), None, nulls, false),
        Integer::Eight => Statistics::int64(Some(min as i64), Some(max as i64), None, nulls, false),
    })
}

/// The data of a page of codes: their width, then the codes.
fn indices(codes: &[u32], entries: usize, data: &mut Vec<u8>) {
    let width = u32::BITS - (entries.max(1) as u32 - 1).leading_zeros();
    data.push(width as u8);
    hybrid(codes, width, data);
}

/// Parquet's mix of runs and of packed groups of eight.
fn hybrid(codes: &[u32], width: u32, data: &mut Vec<u8>) {
    let (mut at, mut unpacked) = (0, 0);
    while at < codes.len() {
        let code = codes[at];
        if codes.get(at + 7) != Some(&code) {
            at += 8;
            continue;
        }
        let run = codes[at..].iter().take_while(|next| **next == code).count();
        if run < 8 {
            at += 8;
            continue;
        }
        groups(&codes[unpacked..at], width, data);
        number((run as u64) << 1, data);
        data.extend(&code.to_le_bytes()[..width.div_ceil(8) as usize]);
        at += run;
        unpacked = at;
    }
    groups(&codes[unpacked..], width, data);
}

/// Part of a page that decides if compressing all of it is worth while: looking for repetitions in packed numbers costs as much
/// as packing them, and most have few.
fn sample(data: &[u8]) -> &[u8] {
    const SAMPLE: usize = 4096;
    let from = (data.len() / 2).saturating_sub(SAMPLE / 2);
    &data[from..data.len().min(from + SAMPLE)]
}

/// Packed groups of eight, the last one filled up with zeros.
fn groups(codes: &[u32], width: u32, data: &mut Vec<u8>) {
    let count = codes.len().div_ceil(8);
    if count > 0 {
        number((count as u64) << 1 | 1, data);
        pack(codes, width, data);
    }
}

/// Bits of values, the lowest first, in groups of eight; the last one is filled up with zeros.
#[inline]
fn pack<T: Copy + Default + Into<u64>>(values: &[T], width: u32, data: &mut Vec<u8>) {
    let mut at = data.len();
    let end = at + values.len().div_ceil(8) * width as usize;
    // What is stored reaches beyond its group, where the next one comes.
    data.resize(end + 64, 0);
    let mut store = |group: &[T; 8]| {
        if width <= 16 {
            // Half of a group are 64 bits at most.
            let half = |half: &[T]| half.iter().rev().fold(0, |bits, value| bits << width | (*value).into());
            let (low, high) = (half(&group[..4]), half(&group[4..]));
            if width <= 8 {
                data[at..at + 8].copy_from_slice(&(low | high << (4 * width)).to_le_bytes());
            } else {
                let bits = u128::from(low) | u128::from(high) << (4 * width);
                data[at..at + 16].copy_from_slice(&bits.to_le_bytes());
            }
        } else {
            let (mut bits, mut filled, mut to) = (0_u128, 0, at);
            for value in group {
                bits |= u128::from((*value).into()) << filled;
                filled += width;
                if filled >= 64 {
                    data[to..to + 8].copy_from_slice(&(bits as u64).to_le_bytes());
                    bits >>= 64;
                    filled -= 64;
                    to += 8;
                }
            }
            data[to..to + 8].copy_from_slice(&(bits as u64).to_le_bytes());
        }
        at += width as usize;
    };
    let mut whole = values.chunks_exact(8);
    for group in &mut whole {
        if let Ok(group) = group.try_into() {
            store(group);
        }
    }
    let rest = whole.remainder();
    if !rest.is_empty() {
        let mut last = [T::default(); 8];
        last[..rest.len()].copy_from_slice(rest);
        store(&last);
    }
    data.truncate(end);
}

/// Values of a block, and of each of its four parts.
const BLOCK: usize = 128;
const PART: usize = 32;

/// Differences between neighbours, packed; of four bytes they wrap around at 2^32, of eight at 2^64.
fn differences(integer: Integer, values: &[u64], data: &mut Vec<u8>) {
    let signed = |value: u64| match integer {
        Integer::Four => i64::from(value as i32),
        Integer::Eight => value as i64,
    };
    let step = |pair: &[u64]| match integer {
        Integer::Four => i64::from((pair[1] as i32).wrapping_sub(pair[0] as i32)),
        Integer::Eight => (pair[1] as i64).wrapping_sub(pair[0] as i64),
    };
    number(BLOCK as u64, data);
    number((BLOCK / PART) as u64, data);
    number(values.len() as u64, data);
    zigzag(values.first().map_or(0, |first| signed(*first)), data);
    let mut steps = [0; BLOCK];
    let mut at = 0;
    while at + 1 < values.len() {
        let block = &mut steps[..BLOCK.min(values.len() - 1 - at)];
        let mut least = i64::MAX;
        for (to, pair) in block.iter_mut().zip(values[at..].windows(2)) {
            *to = step(pair);
            least = least.min(*to);
        }
        zigzag(least, data);
        let widths = data.len();
        data.extend([0; BLOCK / PART]);
        for (i, part) in block.chunks(PART).enumerate() {
            let mut bits = 0;
            let mut above = [0_u64; PART];
            for (above, step) in above.iter_mut().zip(part) {
                *above = step.wrapping_sub(least) as u64;
                bits |= *above;
            }
            let width = u64::BITS - bits.leading_zeros();
            data[widths + i] = width as u8;
            pack(&above, width, data);
        }
        at += block.len();
    }
}

fn zigzag(value: i64, data: &mut Vec<u8>) {
    number(((value << 1) ^ (value >> 63)) as u64, data);
}

/// A number in groups of seven bits.
fn number(mut value: u64, data: &mut Vec<u8>) {
    while value >= 0x80 {
        data.push(value as u8 | 0x80);
        value >>= 7;
    }
    data.push(value as u8);
}

#[cfg(test)]
mod tests {
    use crate::{FlowRow, Name, QueueRow, Row, Table};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Row as Record, RowAccessor};
    use proptest::prelude::*;

    /// Rows of a table as an independent reader (the `parquet` crate) finds them in its file.
    fn read<R: Row + Clone>(rows: &[R]) -> (Vec<Record>, SerializedFileReader<std::fs::File>) {
        let folder = tempfile::tempdir().unwrap();
        let mut table = Table::<R>::file(folder.path()).unwrap();
        rows.iter().for_each(|row| table.push(row.clone()).unwrap());
        table.finish().unwrap();
        let open =
            || SerializedFileReader::new(std::fs::File::open(folder.path().join(format!("{}.parquet", R::TABLE))).unwrap());
        let reader = open().unwrap();
        (reader.get_row_iter(None).unwrap().map(Result::unwrap).collect(), open().unwrap())
    }

    /// Few numbers, runs of them, a rising series, or any numbers at all.
    fn numbers(most: u64) -> impl Strategy<Value = Vec<u64>> {
        let any = prop_oneof![Just(0), Just(most), Just(most / 2), 0..=most];
        prop_oneof![
            prop::collection::vec(0..=most.min(3), 1..700),
            prop::collection::vec((0..=most, 1_usize..200), 1..12)
                .prop_map(|runs| runs.iter().flat_map(|(value, times)| vec![*value; *times]).collect::<Vec<_>>()),
            (0..=most / 2, prop::collection::vec(0..=most / 4096, 1..1200)).prop_map(|(from, steps)| {
                let steps = steps.iter().scan(from, |at, step| {
                    *at += step;
                    Some(*at)
                });
                steps.collect::<Vec<_>>()
            }),
            prop::collection::vec(any, 1..1200),
        ]
    }

    fn flow(i: usize, long: &[u64], short: &[u64], names: &[Name]) -> FlowRow {
        let long = |n: usize| long[(i + n) % long.len()];
        let short = |n: usize| short[(i + n) % short.len()] as u32;
        let name = |n: usize| names[(short(n) as usize + n) % names.len()].clone();
        FlowRow {
            flow: short(0),
            id: (short(1) % 3 == 0).then(|| name(1)),
            group: name(2),
            query: (short(2) % 5 > 0).then(|| short(3)),
            src: name(3),
            dst: name(0).to_string().as_str().into(), // its own address in each row
            transport: names[0].clone(),
            class: short(4) as u8,
            size_bytes: long(0),
            request_bytes: 0,
            start_ps: long(1),
            finish_ps: None,
            acked_ps: (long(2) % 2 == 0).then(|| long(2)),
            ideal_ps: long(3),
            base_rtt_ps: long(4) >> 63,
            status: name(4),
            delivered_bytes: long(5),
            packets_sent: long(6),
            retransmits: long(7),
            timeouts: short(5),
            recoveries: short(6),
            ecn_reductions: short(7),
            marked: long(8),
            reordered: long(9),
            reordered_3: 0,
            reordering_extent: short(8),
            reordering_late_ps: long(10),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Every type, null or not, in runs, in few values and in any: what was written is read.
        #[test]
        fn flows_are_read_as_written(long in numbers(u64::MAX), short in numbers(u64::from(u32::MAX)), names in 1_usize..40) {
            let names: Vec<Name> = (0..names).map(|i| format!("h\u{fc}{i}").repeat(i % 30).as_str().into()).collect();
            let rows: Vec<FlowRow> = (0..long.len().max(short.len())).map(|i| flow(i, &long, &short, &names)).collect();
            let (records, _) = read(&rows);
            prop_assert_eq!(records.len(), rows.len());
            for (r, row) in records.iter().zip(&rows) {
                let text = |i: usize| Name::from(r.get_string(i).unwrap().as_str());
                let optional = |i: usize| (!r.is_null(i).unwrap()).then(|| r.get_ulong(i).unwrap());
                let found = FlowRow {
                    flow: r.get_uint(0).unwrap(),
                    id: (!r.is_null(1).unwrap()).then(|| text(1)),
                    group: text(2),
                    query: (!r.is_null(3).unwrap()).then(|| r.get_uint(3).unwrap()),
                    src: text(4),
                    dst: text(5),
                    transport: text(6),
                    class: r.get_ubyte(7).unwrap(),
                    size_bytes: r.get_ulong(8).unwrap(),
                    request_bytes: r.get_ulong(9).unwrap(),
                    start_ps: r.get_ulong(10).unwrap(),
                    finish_ps: optional(11),
                    acked_ps: optional(12),
                    ideal_ps: r.get_ulong(13).unwrap(),
                    base_rtt_ps: r.get_ulong(14).unwrap(),
                    status: text(15),
                    delivered_bytes: r.get_ulong(16).unwrap(),
                    packets_sent: r.get_ulong(17).unwrap(),
                    retransmits: r.get_ulong(18).unwrap(),
                    timeouts: r.get_uint(19).unwrap(),
                    recoveries: r.get_uint(20).unwrap(),
                    ecn_reductions: r.get_uint(21).unwrap(),
                    marked: r.get_ulong(22).unwrap(),
                    reordered: r.get_ulong(23).unwrap(),
                    reordered_3: r.get_ulong(24).unwrap(),
                    reordering_extent: r.get_uint(25).unwrap(),
                    reordering_late_ps: r.get_ulong(26).unwrap(),
                };
                prop_assert_eq!(&found, row);
            }
        }

        /// Truth values, and what the statistics of a row group say: readers leave whole groups out by them.
        #[test]
        fn queues_are_read_as_written_and_their_bounds_hold(values in numbers(u64::MAX)) {
            let names: Vec<Name> = ["leaf0->h3", "spine1->leaf0", "h3->leaf0"].map(Name::from).to_vec();
            let row = |v: &u64| QueueRow {
                time_ps: *v,
                port: names[(*v % 3) as usize].clone(),
                queue_bytes: v >> 7,
                queue_packets: (v >> 9) as u32,
                flow: *v as u32,
                frame_bytes: *v as u16,
                marked: v & 4 > 0,
                dropped: v & 8 > 0,
                replaced: false,
                at_head: v & 24 == 24,
            };
            let rows: Vec<QueueRow> = values.iter().map(row).collect();
            let (records, reader) = read(&rows);
            for (r, row) in records.iter().zip(&rows) {
                let found = QueueRow {
                    time_ps: r.get_ulong(0).unwrap(),
                    port: r.get_string(1).unwrap().as_str().into(),
                    queue_bytes: r.get_ulong(2).unwrap(),
                    queue_packets: r.get_uint(3).unwrap(),
                    flow: r.get_uint(4).unwrap(),
                    frame_bytes: r.get_ushort(5).unwrap(),
                    marked: r.get_bool(6).unwrap(),
                    dropped: r.get_bool(7).unwrap(),
                    replaced: r.get_bool(8).unwrap(),
                    at_head: r.get_bool(9).unwrap(),
                };
                prop_assert_eq!(&found, row);
            }
            prop_assert_eq!(records.len(), rows.len());
            let group = reader.metadata().row_group(0);
            let bounds = |i: usize| {
                let s = group.column(i).statistics().unwrap();
                (s.min_bytes_opt().unwrap().to_vec(), s.max_bytes_opt().unwrap().to_vec())
            };
            let (min, max) = (values.iter().min().unwrap(), values.iter().max().unwrap());
            prop_assert_eq!(bounds(0), (min.to_le_bytes().to_vec(), max.to_le_bytes().to_vec()));
            let ports = || rows.iter().map(|row| row.port.to_string().into_bytes());
            prop_assert_eq!(bounds(1), (ports().min().unwrap(), ports().max().unwrap()));
            let flows = || rows.iter().map(|row| row.flow);
            prop_assert_eq!(bounds(4), (flows().min().unwrap().to_le_bytes().to_vec(), flows().max().unwrap().to_le_bytes().to_vec()));
            prop_assert_eq!(bounds(8), (vec![0], vec![0]));
        }
    }

    /// Whatever lies at which address: the bytes are those of the rows.
    #[test]
    fn the_same_rows_are_the_same_bytes() {
        let written = || {
            let folder = tempfile::tempdir().unwrap();
            let mut table = Table::<FlowRow>::file(folder.path()).unwrap();
            let names: Vec<Name> = (0..300).map(|i| format!("h{}", i % 70).as_str().into()).collect();
            let numbers: Vec<u64> = (0..999).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64)).collect();
            (0..5_000).for_each(|i| table.push(flow(i, &numbers, &numbers, &names)).unwrap());
            table.finish().unwrap();
            let bytes = std::fs::read(folder.path().join("flows.parquet")).unwrap();
            (bytes, names) // so that the next names lie elsewhere
        };
        let (first, second) = (written(), written());
        assert!(first.0 == second.0);
    }

    #[test]
    fn a_table_without_rows_is_a_table() {
        assert_eq!(read::<FlowRow>(&[]).0.len(), 0);
    }
}
