//! A Parquet file, row group by row group. Whatever is wrong with it becomes an error that names it.

pub mod limits;

use super::columns::{self, Table};
use super::{Format, Inspected, Mapping, Start};
use crate::formats::columns::texts::{placed, Placed, Shared};
use crate::formats::columns::{Chosen, MAX_COLUMNS};
use crate::formats::mapping::{Column, Unit};
use crate::formats::parquet::limits::{Checked, Guarded};
use crate::input::file::{Place, SourceFile};
use crate::input::problem::{Problem, Problems};
use parquet::basic::{Encoding, LogicalType, TimeUnit, Type};
use parquet::column::reader::{get_column_reader, get_typed_column_reader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Format of Parquet files.
pub struct Parquet;

impl Format for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn title(&self) -> &'static str {
        "Parquet"
    }

    fn recognises(&self, start: Start<'_>) -> bool {
        start.bytes().starts_with(b"PAR1")
    }

    fn may_be_packed(&self) -> bool {
        false
    }

    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
        let mut inspected = columns::file::inspect(file, self.name(), Table::open, mapping)?;
        if let Inspected::Rows(rows) = &mut inspected {
            rows.facts.may_hold_totals = rows.facts.kind == self.name();
        }
        Ok(inspected)
    }
}

/// Rows of a Parquet file, by its footer.
///
/// # Errors
/// It cannot be opened, or is damaged.
pub fn rows(path: &Path) -> Result<u64, Problem> {
    Ok(ParquetFile::open(&Place::of(path))?.num_rows())
}

/// Decoder of a column of the current row group.
enum Reader {
    Bool(ColumnReaderImpl<BoolType>),
    Int32(ColumnReaderImpl<Int32Type>),
    Int64(ColumnReaderImpl<Int64Type>),
    Float(ColumnReaderImpl<FloatType>),
    Double(ColumnReaderImpl<DoubleType>),
    Text(ColumnReaderImpl<ByteArrayType>),
    /// Text with a dictionary.
    Placed(ColumnReaderImpl<Int64Type>, Shared),
}

/// A Parquet file that is being read.
pub struct ParquetFile {
    /// Name of the file in messages.
    path: PathBuf,
    file: Guarded,
    metadata: Arc<ParquetMetaData>,
    /// Readers of the columns of the current row group.
    readers: Vec<Reader>,
    /// Index of the next row group.
    group: usize,
    /// Rows of the current one that are still to come.
    left: u64,
}

impl ParquetFile {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened, or is damaged.
    pub fn open(place: &Place) -> Result<Self, Problem> {
        let (path, file) = (&place.shown, place.open()?);
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
        let metadata = Arc::new(metadata);
        Ok(ParquetFile { path: path.clone(), file, metadata, readers: Vec::new(), group: 0, left: 0 })
    }

    /// Rows in all, as the metadata say.
    pub fn num_rows(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// Note that the file's writer left in it, such as `fanin.schema`.
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

    /// True if a column holds dates of which the file does not say the zone.
    pub fn is_unzoned(&self, index: usize) -> bool {
        let column = self.metadata.file_metadata().schema_descr().column(index);
        matches!(column.logical_type_ref(), Some(LogicalType::Timestamp(t)) if !t.is_adjusted_to_u_t_c)
    }

    /// True if a column of the file holds whole numbers.
    pub fn is_integer(&self, index: usize) -> bool {
        let kind = self.metadata.file_metadata().schema_descr().column(index).physical_type();
        matches!(kind, Type::INT32 | Type::INT64)
    }

    /// The columns of these indices, to be filled.
    ///
    /// # Errors
    /// Everything that cannot be read.
    pub fn choose(&self, indices: &[usize]) -> Result<Vec<Chosen>, Problems> {
        let schema = self.metadata.file_metadata().schema_descr();
        let mut problems = Vec::new();
        let chosen = indices
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
                Chosen::new(index, column.path().string(), unsigned, column.max_def_level())
            })
            .collect();
        if problems.is_empty() {
            Ok(chosen)
        } else {
            Err(problems)
        }
    }

    /// Reads the next `most` rows at most into `columns`, behind `before` rows; gives how many, 0 at the end.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn next(&mut self, columns: &mut [Chosen], most: usize, before: u64) -> Result<usize, Problem> {
        while self.left == 0 {
            if self.group == self.metadata.num_row_groups() {
                return Ok(0);
            }
            self.open_group(columns)?;
        }
        let rows = most.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        for (column, reader) in columns.iter_mut().zip(&mut self.readers) {
            let read = guarded(&self.path, || reader.read(column, rows))?;
            if read != rows {
                let message = format!("is damaged: a column ends at row {}, before its row group does", before + read as u64 + 1);
                return Err(Problem::new(message).file(&self.path));
            }
        }
        self.left -= rows as u64;
        Ok(rows)
    }

    fn open_group(&mut self, columns: &[Chosen]) -> Result<(), Problem> {
        let metadata = self.metadata.clone();
        let group = metadata.row_group(self.group);
        self.group += 1;
        let rows =
            u64::try_from(group.num_rows()).map_err(|_| damaged(&self.path, "a row group has a negative number of rows"))?;
        self.readers.clear();
        for column in columns {
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
                    return Ok(Reader::Placed(reader, texts));
                }
                let reader = get_column_reader(description.clone(), Box::new(pages));
                Ok(match description.physical_type() {
                    Type::BOOLEAN => Reader::Bool(get_typed_column_reader(reader)),
                    Type::INT32 => Reader::Int32(get_typed_column_reader(reader)),
                    Type::INT64 => Reader::Int64(get_typed_column_reader(reader)),
                    Type::FLOAT => Reader::Float(get_typed_column_reader(reader)),
                    Type::DOUBLE => Reader::Double(get_typed_column_reader(reader)),
                    Type::BYTE_ARRAY => Reader::Text(get_typed_column_reader(reader)),
                    other => return Err(general(&format!("a column is of type {other}"))),
                })
            })?;
            self.readers.push(reader);
        }
        self.left = rows;
        Ok(())
    }
}

impl Reader {
    /// Reads the next rows of a column; gives how many there were.
    fn read(&mut self, column: &mut Chosen, rows: usize) -> Result<usize, ParquetError> {
        column.levels.clear();
        let (levels, values) = (&mut column.levels, &mut column.values);
        let read = match self {
            Reader::Bool(reader) => fill(reader, values.bools(), levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v)),
            Reader::Int32(reader) => {
                fill(reader, values.int32s(), levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v))
            }
            Reader::Int64(reader) => {
                fill(reader, values.int64s(), levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v))
            }
            Reader::Float(reader) => {
                fill(reader, values.floats(), levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v))
            }
            Reader::Double(reader) => {
                fill(reader, values.doubles(), levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v))
            }
            Reader::Text(reader) => {
                let v = values.texts();
                let read = fill(reader, v, levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v));
                // Panics here, where it is caught, for a value without data.
                v.iter().for_each(|value| {
                    std::hint::black_box(value.data());
                });
                read
            }
            Reader::Placed(reader, texts) => {
                texts.lock().forget();
                fill(reader, values.places(texts), levels, rows, |r, n, l, v| r.read_records(n, Some(l), None, v))
            }
        }?;
        // What follows takes the levels' word for which values are there.
        let there =
            if column.max_definition == 0 { read } else { column.levels.iter().filter(|l| **l == column.max_definition).count() };
        if column.values.len() != there || (column.max_definition > 0 && column.levels.len() != read) {
            return Err(general("a column has another number of values than its rows"));
        }
        Ok(read)
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

fn general(message: &str) -> ParquetError {
    ParquetError::General(message.to_string())
}

fn damaged(path: &Path, message: &str) -> Problem {
    Problem::new(format!("is damaged: {message}")).file(path)
}

/// Calls into the `parquet` crate; a panic there is reported as damage of the file.
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
