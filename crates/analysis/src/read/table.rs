//! Columns of a Parquet file, batch by batch. Whatever is wrong with the file becomes an error that names it.

use super::guard::{Checked, Guarded};
use super::mapping::{Column, Unit};
use super::number::{from_date, from_float, from_integer, from_text, NumberError};
use super::problem::{Problem, Problems};
use super::texts::{placed, Placed, Shared};
use parquet::basic::{Encoding, LogicalType, TimeUnit, Type};
use parquet::column::reader::{get_column_reader, get_typed_column_reader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Columns of a file, at most: more is no trace.
const MAX_COLUMNS: usize = 10_000;

enum Reader {
    Bool(ColumnReaderImpl<BoolType>, Vec<bool>),
    Int32(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Int64(ColumnReaderImpl<Int64Type>, Vec<i64>),
    Float(ColumnReaderImpl<FloatType>, Vec<f32>),
    Double(ColumnReaderImpl<DoubleType>, Vec<f64>),
    Text(ColumnReaderImpl<ByteArrayType>, Vec<ByteArray>),
    /// Text with a dictionary.
    Placed(ColumnReaderImpl<Int64Type>, Vec<i64>, Shared),
}

/// One column that is read.
struct Chosen {
    index: usize,
    unsigned: bool,
    max_definition: i16,
    /// Of the current row group.
    reader: Option<Reader>,
    /// Of the current batch; a value is there where its level is `max_definition`. Empty where none can be missing.
    levels: Vec<i16>,
}

/// A Parquet file that is being read.
pub struct Table {
    path: PathBuf,
    file: Guarded,
    metadata: Arc<ParquetMetaData>,
    columns: Vec<Chosen>,
    /// The next row group.
    group: usize,
    /// Rows of the current one that are still to come.
    left: u64,
    /// Rows before the current batch.
    first_row: u64,
    /// Rows of the current batch.
    rows: usize,
}

impl Table {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened, or is damaged.
    pub fn open(path: &Path) -> Result<Self, Problem> {
        let file = File::open(path).map_err(|e| Problem::new(format!("cannot be opened: {e}")).file(path))?;
        let (file, metadata) = guarded(path, || {
            let file = Guarded::new(file)?;
            let tail = file.get_bytes(file.len() - 8, 4)?;
            let length = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
            let bytes = file.get_bytes(file.len() - 8 - u64::from(length), length as usize)?;
            let metadata = ParquetMetaDataReader::decode_metadata(&bytes)?;
            Ok((file, metadata))
        })?;
        let there = metadata.file_metadata().schema_descr().num_columns();
        if there > MAX_COLUMNS {
            return Err(Problem::new(format!("has {there} columns; accepted: up to {MAX_COLUMNS}")).file(path));
        }
        Ok(Table {
            path: path.to_path_buf(),
            file,
            metadata: Arc::new(metadata),
            columns: Vec::new(),
            group: 0,
            left: 0,
            first_row: 0,
            rows: 0,
        })
    }

    /// Rows in all, as the metadata say.
    pub fn num_rows(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// A note that its writer left in the file, such as `fanin.schema`.
    pub fn note(&self, key: &str) -> Option<String> {
        let notes = self.metadata.file_metadata().key_value_metadata()?;
        notes.iter().find(|kv| kv.key == key).and_then(|kv| kv.value.clone())
    }

    /// The columns of the file, with the units that their types declare.
    pub fn columns(&self) -> Vec<Column> {
        let schema = self.metadata.file_metadata().schema_descr();
        let unit = |index: usize| match schema.column(index).logical_type_ref() {
            Some(LogicalType::Timestamp(t)) => Some(Unit::Steps(match t.unit {
                TimeUnit::MILLIS => 1_000_000_000,
                TimeUnit::MICROS => 1_000_000,
                TimeUnit::NANOS => 1_000,
            })),
            _ => match schema.column(index).converted_type() {
                parquet::basic::ConvertedType::TIMESTAMP_MILLIS => Some(Unit::Steps(1_000_000_000)),
                parquet::basic::ConvertedType::TIMESTAMP_MICROS => Some(Unit::Steps(1_000_000)),
                _ => None,
            },
        };
        (0..schema.num_columns())
            .map(|i| Column { name: schema.column(i).path().string(), declared: unit(i), first: None })
            .collect()
    }

    /// Chooses the columns to read, by index in the file; they are then called by their place in `indices`.
    ///
    /// # Errors
    /// Everything that cannot be read.
    pub fn choose(&mut self, indices: &[usize]) -> Result<(), Problems> {
        let schema = self.metadata.file_metadata().schema_descr();
        let mut problems = Vec::new();
        self.columns = indices
            .iter()
            .map(|&index| {
                let column = schema.column(index);
                let problem = |message: String, accepted: &str| {
                    Problem::new(message).file(&self.path).column(column.path().string()).accepted(accepted)
                };
                let types = "BOOLEAN, INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY";
                match column.physical_type() {
                    Type::INT96 => {
                        problems.push(problem("is of type INT96".into(), types).suggestion("write it as a timestamp of 64 bits"))
                    }
                    Type::FIXED_LEN_BYTE_ARRAY => problems.push(problem("is of type FIXED_LEN_BYTE_ARRAY".into(), types)),
                    _ => {}
                }
                if column.max_rep_level() > 0 {
                    problems.push(problem("is a list".into(), "one value by row"));
                }
                let unsigned = match column.logical_type_ref() {
                    Some(LogicalType::Decimal(_)) => {
                        problems.push(
                            problem("is a decimal of fixed point".into(), "integers and floating point").suggestion("cast it"),
                        );
                        false
                    }
                    Some(LogicalType::Integer(t)) => !t.is_signed,
                    _ => {
                        use parquet::basic::ConvertedType as C;
                        matches!(column.converted_type(), C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64)
                    }
                };
                Chosen { index, unsigned, max_definition: column.max_def_level(), reader: None, levels: Vec::new() }
            })
            .collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// Name of a chosen column.
    pub fn name(&self, chosen: usize) -> String {
        self.metadata.file_metadata().schema_descr().column(self.columns[chosen].index).path().string()
    }

    /// Row of the file, counted from 0, at which the current batch begins.
    pub fn first_row(&self) -> u64 {
        self.first_row
    }

    /// Reads the next `most` rows at most; gives how many, 0 at the end.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn next(&mut self, most: usize) -> Result<usize, Problem> {
        self.first_row += self.rows as u64;
        self.rows = 0;
        while self.left == 0 {
            if self.group == self.metadata.num_row_groups() {
                return Ok(0);
            }
            self.open_group()?;
        }
        let rows = most.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let (path, first_row) = (&self.path, self.first_row);
        for column in &mut self.columns {
            let read = guarded(path, || column.read(rows))?;
            if read != rows {
                let message =
                    format!("is damaged: a column ends at row {}, before its row group does", first_row + read as u64 + 1);
                return Err(Problem::new(message).file(path));
            }
        }
        self.rows = rows;
        self.left -= rows as u64;
        Ok(rows)
    }

    fn open_group(&mut self) -> Result<(), Problem> {
        let metadata = self.metadata.clone();
        let group = metadata.row_group(self.group);
        self.group += 1;
        let rows =
            u64::try_from(group.num_rows()).map_err(|_| damaged(&self.path, "a row group has a negative number of rows"))?;
        for column in &mut self.columns {
            let file = &self.file;
            let reader = guarded(&self.path, || {
                let chunk = group.columns().get(column.index).ok_or_else(|| general("a row group lacks a column"))?;
                let description = metadata.file_metadata().schema_descr().column(column.index);
                if chunk.column_type() != description.physical_type() {
                    return Err(general("a row group has a column of another type than the schema says"));
                }
                let codec = chunk.compression();
                let pages = SerializedPageReader::new(Arc::new(file.for_codec(codec)), chunk, rows as usize, None)?;
                let pages = Checked::new(Box::new(pages), codec, column.max_definition)?;
                let dictionary = chunk.dictionary_page_offset().is_some()
                    && !chunk.encodings().any(|encoding| encoding == Encoding::DELTA_LENGTH_BYTE_ARRAY);
                if dictionary && description.physical_type() == Type::BYTE_ARRAY {
                    let texts = Shared::default();
                    let pages = Placed { pages, texts: texts.clone(), max_definition: column.max_definition };
                    let reader = ColumnReaderImpl::new(Arc::new(placed(&description)?), Box::new(pages));
                    return Ok(Reader::Placed(reader, Vec::new(), texts));
                }
                let reader = get_column_reader(description.clone(), Box::new(pages));
                Ok(match description.physical_type() {
                    Type::BOOLEAN => Reader::Bool(get_typed_column_reader(reader), Vec::new()),
                    Type::INT32 => Reader::Int32(get_typed_column_reader(reader), Vec::new()),
                    Type::INT64 => Reader::Int64(get_typed_column_reader(reader), Vec::new()),
                    Type::FLOAT => Reader::Float(get_typed_column_reader(reader), Vec::new()),
                    Type::DOUBLE => Reader::Double(get_typed_column_reader(reader), Vec::new()),
                    Type::BYTE_ARRAY => Reader::Text(get_typed_column_reader(reader), Vec::new()),
                    other => return Err(general(&format!("a column is of type {other}"))),
                })
            })?;
            column.reader = Some(reader);
        }
        self.left = rows;
        Ok(())
    }

    /// Calls `each` with the row within the batch and the number in it times `scale`; None where it is missing.
    pub fn numbers(&self, chosen: usize, scale: u64, mut each: impl FnMut(usize, Option<Result<u128, NumberError>>)) {
        let column = &self.columns[chosen];
        let unsigned = column.unsigned;
        match &column.reader {
            None => {}
            Some(Reader::Bool(_, v)) => column.values(v, |row, v| each(row, v.map(|v| Ok(u128::from(*v) * u128::from(scale))))),
            Some(Reader::Int32(_, v)) => column.values(v, |row, v| {
                let wide = |v: i32| if unsigned { i64::from(v as u32) } else { i64::from(v) };
                each(row, v.map(|v| from_integer(wide(*v), scale)));
            }),
            Some(Reader::Int64(_, v)) if unsigned => {
                column.values(v, |row, v| each(row, v.map(|v| Ok(u128::from(*v as u64) * u128::from(scale)))));
            }
            Some(Reader::Int64(_, v)) => column.values(v, |row, v| each(row, v.map(|v| from_integer(*v, scale)))),
            Some(Reader::Float(_, v)) => column.values(v, |row, v| each(row, v.map(|v| from_float(f64::from(*v), scale)))),
            Some(Reader::Double(_, v)) => column.values(v, |row, v| each(row, v.map(|v| from_float(*v, scale)))),
            Some(Reader::Text(..) | Reader::Placed(..)) => {
                self.texts(chosen, |row, v| each(row, v.map(|v| from_text(v, scale))));
            }
        }
    }

    /// Puts the column's whole numbers times `scale` less `from` into `out` if every row has one and all of them, times `scale`, are
    /// from `from` to below `to`. Otherwise gives false: [`Table::numbers`] reads them one by one.
    pub fn integers(&self, chosen: usize, scale: u64, (from, to): (u128, u128), out: &mut Vec<u64>) -> bool {
        out.clear();
        let column = &self.columns[chosen];
        let bounds = (
            u64::try_from(from.div_ceil(u128::from(scale.max(1)))),
            to.checked_sub(1).map(|last| last / u128::from(scale.max(1))),
        );
        let (Ok(low), Some(high)) = bounds else { return false };
        let largest = if column.unsigned { u64::MAX } else { i64::MAX as u64 };
        let Some(span) = (high.min(u128::from(largest)) as u64).checked_sub(low) else { return false };
        // What is below 2^64 in the end is exact modulo 2^64.
        let mut right = true;
        let mut step = |v: u64| {
            right &= v.wrapping_sub(low) <= span;
            v.wrapping_mul(scale).wrapping_sub(from as u64)
        };
        match &column.reader {
            Some(Reader::Int32(_, v)) if v.len() == self.rows && column.unsigned => {
                out.extend(v.iter().map(|v| step(u64::from(*v as u32))))
            }
            Some(Reader::Int32(_, v)) if v.len() == self.rows => out.extend(v.iter().map(|v| step(i64::from(*v) as u64))),
            Some(Reader::Int64(_, v)) if v.len() == self.rows => out.extend(v.iter().map(|v| step(*v as u64))),
            _ => return false,
        }
        right
    }

    /// The column's flags, if every row has one.
    pub fn flags(&self, chosen: usize) -> Option<&[bool]> {
        match &self.columns[chosen].reader {
            Some(Reader::Bool(_, v)) if v.len() == self.rows => Some(v),
            _ => None,
        }
    }

    /// As [`Table::numbers`], of dates in text.
    pub fn dates(&self, chosen: usize, mut each: impl FnMut(usize, Option<Result<u128, NumberError>>)) {
        if self.is_text(chosen) {
            self.texts(chosen, |row, v| each(row, v.map(from_date)));
        } else {
            self.numbers(chosen, 1, |row, v| each(row, v.map(|_| Err(NumberError::NotANumber))));
        }
    }

    /// Whether a column of the file holds whole numbers.
    pub fn is_integer(&self, index: usize) -> bool {
        let kind = self.metadata.file_metadata().schema_descr().column(index).physical_type();
        matches!(kind, Type::INT32 | Type::INT64)
    }

    /// Whether the column holds text.
    pub fn is_text(&self, chosen: usize) -> bool {
        matches!(self.columns[chosen].reader, Some(Reader::Text(..) | Reader::Placed(..)))
    }

    /// Whether the column holds floating-point numbers.
    pub fn is_float(&self, chosen: usize) -> bool {
        matches!(self.columns[chosen].reader, Some(Reader::Float(..) | Reader::Double(..)))
    }

    /// Calls `each` with the row within the batch and its text; None where it is missing. Nothing is called for a column that
    /// holds no text.
    pub fn texts(&self, chosen: usize, mut each: impl FnMut(usize, Option<&[u8]>)) {
        let column = &self.columns[chosen];
        match &column.reader {
            Some(Reader::Text(_, v)) => column.values(v, |row, v| each(row, v.map(bytes))),
            Some(Reader::Placed(_, v, texts)) => {
                let texts = texts.lock();
                column.values(v, |row, v| each(row, v.map(|v| texts.get(*v))));
            }
            _ => {}
        }
    }

    /// Puts what `look_up` makes of each row's text into `out`, and `blank` where there is none, of which `absent` learns the row. Of a
    /// dictionary's text it is asked once. Gives the first row whose text it refuses, and why.
    pub fn names<E>(
        &self,
        chosen: usize,
        mut look_up: impl FnMut(&[u8]) -> Result<u32, E>,
        (blank, mut absent): (u32, impl FnMut(usize)),
        out: &mut Vec<u32>,
    ) -> Option<(usize, E)> {
        let mut refused = None;
        let mut look_up = |row: usize, text: &[u8]| {
            look_up(text).unwrap_or_else(|error| {
                refused.get_or_insert((row, error));
                blank
            })
        };
        out.clear();
        out.reserve(self.rows);
        let column = &self.columns[chosen];
        let mut each = |row: usize, name: Option<u32>| {
            out.push(name.unwrap_or_else(|| {
                absent(row);
                blank
            }));
        };
        if let Some(Reader::Placed(_, v, texts)) = &column.reader {
            let mut texts = texts.lock();
            column.values(v, |row, v| each(row, v.map(|v| texts.name(*v, |text| look_up(row, text)))));
        } else {
            self.texts(chosen, |row, v| each(row, v.map(|text| look_up(row, text))));
        }
        refused
    }

    /// A value as text, for messages.
    pub fn shown(&self, chosen: usize, row: usize) -> String {
        let column = &self.columns[chosen];
        let at = if column.max_definition == 0 {
            Some(row)
        } else {
            let there = |level: &i16| *level == column.max_definition;
            column.levels.get(row).filter(|l| there(l)).map(|_| column.levels[..row].iter().filter(|l| there(l)).count())
        };
        let Some(at) = at else { return String::new() };
        match &column.reader {
            Some(Reader::Bool(_, v)) => v.get(at).map_or(String::new(), ToString::to_string),
            Some(Reader::Int32(_, v)) if column.unsigned => v.get(at).map_or(String::new(), |v| (*v as u32).to_string()),
            Some(Reader::Int32(_, v)) => v.get(at).map_or(String::new(), ToString::to_string),
            Some(Reader::Int64(_, v)) if column.unsigned => v.get(at).map_or(String::new(), |v| (*v as u64).to_string()),
            Some(Reader::Int64(_, v)) => v.get(at).map_or(String::new(), ToString::to_string),
            Some(Reader::Float(_, v)) => v.get(at).map_or(String::new(), ToString::to_string),
            Some(Reader::Double(_, v)) => v.get(at).map_or(String::new(), ToString::to_string),
            Some(Reader::Text(_, v)) => v.get(at).map_or(String::new(), |v| String::from_utf8_lossy(bytes(v)).into_owned()),
            Some(Reader::Placed(_, v, texts)) => {
                v.get(at).map_or(String::new(), |v| String::from_utf8_lossy(texts.lock().get(*v)).into_owned())
            }
            None => String::new(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Chosen {
    /// Reads the next rows of the column; gives how many there were.
    fn read(&mut self, rows: usize) -> Result<usize, ParquetError> {
        self.levels.clear();
        let levels = &mut self.levels;
        let read = match &mut self.reader {
            None => return Ok(0),
            Some(Reader::Bool(reader, v)) => fill(reader, v, levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v)),
            Some(Reader::Int32(reader, v)) => fill(reader, v, levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v)),
            Some(Reader::Int64(reader, v)) => fill(reader, v, levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v)),
            Some(Reader::Float(reader, v)) => fill(reader, v, levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v)),
            Some(Reader::Double(reader, v)) => fill(reader, v, levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v)),
            Some(Reader::Text(reader, v)) => {
                let read = fill(reader, v, levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v));
                // Panics here, where it is caught, for a value without data.
                v.iter().for_each(|value| {
                    std::hint::black_box(value.data());
                });
                read
            }
            Some(Reader::Placed(reader, v, texts)) => {
                texts.lock().forget();
                fill(reader, v, levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v))
            }
        }?;
        // What follows takes the levels' word for which values are there.
        let there =
            if self.max_definition == 0 { read } else { self.levels.iter().filter(|l| **l == self.max_definition).count() };
        let values = match &self.reader {
            None => 0,
            Some(Reader::Bool(_, v)) => v.len(),
            Some(Reader::Int32(_, v)) => v.len(),
            Some(Reader::Int64(_, v)) => v.len(),
            Some(Reader::Float(_, v)) => v.len(),
            Some(Reader::Double(_, v)) => v.len(),
            Some(Reader::Text(_, v)) => v.len(),
            Some(Reader::Placed(_, v, _)) => v.len(),
        };
        if values != there || (self.max_definition > 0 && self.levels.len() != read) {
            return Err(general("a column has another number of values than its rows"));
        }
        Ok(read)
    }

    #[inline]
    fn values<'a, T>(&self, values: &'a [T], mut each: impl FnMut(usize, Option<&'a T>)) {
        if self.max_definition == 0 || values.len() == self.levels.len() {
            values.iter().enumerate().for_each(|(row, value)| each(row, Some(value)));
            return;
        }
        let mut values = values.iter();
        for (row, level) in self.levels.iter().enumerate() {
            each(row, if *level == self.max_definition { values.next() } else { None });
        }
    }
}

type Counts = Result<(usize, usize, usize), ParquetError>;

fn fill<R, T>(
    reader: &mut R,
    values: &mut Vec<T>,
    levels: &mut Vec<i16>,
    rows: usize,
    mut read: impl FnMut(&mut R, usize, &mut Vec<i16>, &mut Vec<T>) -> Counts,
) -> Result<usize, ParquetError> {
    values.clear();
    let mut done = 0;
    while done < rows {
        let (records, _, _) = read(reader, rows - done, levels, values)?;
        if records == 0 {
            break;
        }
        done += records;
    }
    Ok(done)
}

fn bytes(value: &ByteArray) -> &[u8] {
    value.data()
}

fn general(message: &str) -> ParquetError {
    ParquetError::General(message.to_string())
}

fn damaged(path: &Path, message: &str) -> Problem {
    Problem::new(format!("is damaged: {message}")).file(path)
}

/// Calls into the `parquet` crate; what panics there is damage of the file.
fn guarded<T>(path: &Path, call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Problem> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let text = error.to_string();
            let text = text.strip_prefix("Parquet error: ").unwrap_or(&text);
            Err(Problem::new(format!("cannot be read as Parquet: {}", text.trim_end())).file(path))
        }
        Err(_) => Err(damaged(path, "its pages do not decode")),
    }
}
