//! A table: discarded, kept, or streamed to a Parquet file a row group at a time.

use crate::chunk::{Encoder, RowGroup};
use crate::moment::{EventClock, Moment};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows per row group: what a table holds in memory at most.
const GROUP: usize = 1 << 16;

/// A table that could not be written.
#[derive(Debug)]
pub struct TableError {
    pub path: PathBuf,
    pub cause: String,
}

impl std::fmt::Display for TableError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: cannot be written: {}", self.path.display(), self.cause)
    }
}

impl std::error::Error for TableError {}

/// Name, unit and meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnInfo {
    pub name: &'static str,
    /// `ps`, `B`, or empty for a count, an id or a name.
    pub unit: &'static str,
    pub doc: &'static str,
    pub parquet: (&'static str, Option<&'static str>),
    pub optional: bool,
}

/// A row type; declared with the `rows!` macro.
pub trait Row: Sized {
    /// Name of the table.
    const TABLE: &'static str;
    /// Schema version: raised by any change of meaning.
    const VERSION: u32;
    /// Columns of the table in order.
    fn columns() -> Vec<ColumnInfo>;
    /// Encodes a row group, column by column.
    ///
    /// # Errors
    /// Parquet's; none are known.
    fn encode(rows: &[Self], group: &mut RowGroup<'_, '_>) -> Result<(), ParquetError>;
}

enum Output<R> {
    Discard,
    Keep(Vec<R>),
    /// Rows wait for those of other worlds, each with its event.
    Held(Arc<EventClock>, Vec<(Moment, R)>),
    File(Box<Stream<R>>),
}

/// Storage of a file's bytes.
trait Storage: Send {
    /// Makes the file `bytes` from `offset` on, whatever was there before.
    fn replace_tail(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()>;
}

impl Storage for File {
    fn replace_tail(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.set_len(offset)?;
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes).inspect_err(|_| {
            // Half a row group is of no use, and its space may be what another file needs.
            let _ = self.set_len(offset);
        })
    }
}

/// A table that is written to a file: row groups are encoded in memory and then written whole, so that a disk that refuses one
/// leaves those before it intact and the encoder able to go on.
struct Stream<R> {
    path: PathBuf,
    storage: Box<dyn Storage>,
    /// Parquet writer, in whose buffer are encoded bytes that the file does not have yet.
    writer: SerializedFileWriter<Vec<u8>>,
    /// The footer has been encoded too.
    finished: bool,
    /// Row groups in the file, and where they end.
    groups: Vec<RowGroupMetaData>,
    end: u64,
    /// Row groups encoded and not in the file yet.
    pending: Vec<RowGroupMetaData>,
    encoder: Encoder,
    /// Rows that are not encoded yet.
    rows: Vec<R>,
}

/// Writer of one table.
pub struct Table<R: Row> {
    output: Output<R>,
    rows: u64,
}

impl<R: Row> Table<R> {
    /// Counts rows and forgets them.
    pub fn discard() -> Self {
        Table { output: Output::Discard, rows: 0 }
    }

    /// Keeps rows in memory, for tests and small runs.
    pub fn keep() -> Self {
        Table { output: Output::Keep(Vec::new()), rows: 0 }
    }

    /// Holds rows, each with the event of `clock` that has written it, until they are taken.
    pub fn held(clock: Arc<EventClock>) -> Self {
        Table { output: Output::Held(clock, Vec::new()), rows: 0 }
    }

    /// Takes the rows that are held of events up to a time \[ps\].
    pub fn take_held(&mut self, until: u64) -> Vec<(Moment, R)> {
        let Output::Held(_, rows) = &mut self.output else { return Vec::new() };
        let (taken, left) = std::mem::take(rows).into_iter().partition(|(moment, _)| moment.time <= until);
        *rows = left;
        taken
    }

    /// Streams rows to `<folder>/<table>.parquet`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn file(folder: &Path) -> Result<Self, TableError> {
        let path = folder.join(format!("{}.parquet", R::TABLE));
        let file = File::create(&path).map_err(|e| TableError { path: path.clone(), cause: e.to_string() })?;
        Self::stream(path, Box::new(file))
    }

    fn stream(path: PathBuf, storage: Box<dyn Storage>) -> Result<Self, TableError> {
        let fail = |cause: String| TableError { path: path.clone(), cause };
        let columns = R::columns();
        let mut message = format!("message {} {{\n", R::TABLE);
        for c in &columns {
            let repetition = if c.optional { "optional" } else { "required" };
            let logical = c.parquet.1.map_or(String::new(), |l| format!(" ({l})"));
            message.push_str(&format!("  {repetition} {} {}{logical};\n", c.parquet.0, c.name));
        }
        message.push('}');
        let schema = parse_message_type(&message).map_err(|e| fail(e.to_string()))?;
        let units: serde_json::Map<String, serde_json::Value> =
            columns.iter().map(|c| (c.name.to_string(), c.unit.into())).collect();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("fanin ", env!("CARGO_PKG_VERSION")).to_string())
            .set_key_value_metadata(Some(vec![
                KeyValue::new("fanin.schema".to_string(), format!("{}/{}", R::TABLE, R::VERSION)),
                KeyValue::new("fanin.units".to_string(), serde_json::Value::Object(units).to_string()),
            ]))
            .build();
        let writer =
            SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties)).map_err(|e| fail(e.to_string()))?;
        let mut stream = Stream {
            path,
            storage,
            writer,
            finished: false,
            groups: Vec::new(),
            end: 0,
            pending: Vec::new(),
            encoder: Encoder::default(),
            rows: Vec::new(),
        };
        stream.write()?;
        Ok(Table { output: Output::File(Box::new(stream)), rows: 0 })
    }

    /// True if rows go anywhere; where not, the work of making them can be saved.
    pub fn is_on(&self) -> bool {
        !matches!(self.output, Output::Discard)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When a full row group cannot be written.
    #[inline(always)]
    pub fn push(&mut self, row: R) -> Result<(), TableError> {
        self.rows += 1;
        match &mut self.output {
            Output::Discard => Ok(()),
            Output::Keep(rows) => {
                rows.push(row);
                Ok(())
            }
            Output::Held(clock, rows) => {
                rows.push((clock.now(), row));
                Ok(())
            }
            Output::File(stream) => {
                stream.rows.push(row);
                if stream.rows.len() >= GROUP {
                    stream.flush()
                } else {
                    Ok(())
                }
            }
        }
    }

    /// Adds a row that belongs to an earlier event, where rows are held.
    ///
    /// # Errors
    /// As [`Table::push`].
    pub fn push_at(&mut self, moment: Moment, row: R) -> Result<(), TableError> {
        if let Output::Held(_, rows) = &mut self.output {
            self.rows += 1;
            rows.push((moment, row));
            return Ok(());
        }
        self.push(row)
    }

    /// Number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The rows kept so far; empty unless made by [`Table::keep`].
    pub fn kept(&self) -> &[R] {
        match &self.output {
            Output::Keep(rows) => rows,
            _ => &[],
        }
    }

    /// Writes what waits and closes the file; gives the number of rows.
    ///
    /// # Errors
    /// When it cannot be written. The file is then as [`Table::seal`] leaves it, if that is possible, and this may be tried
    /// again once there is space.
    pub fn finish(&mut self) -> Result<u64, TableError> {
        if let Output::File(stream) = &mut self.output {
            if let Err(error) = stream.finish() {
                let _ = stream.seal();
                return Err(error);
            }
            self.output = Output::Discard;
        }
        Ok(self.rows)
    }

    /// Makes the file readable as far as it has been written: a footer after the row groups that are in it. Gives the number
    /// of their rows. What is not in it still waits.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn seal(&mut self) -> Result<u64, TableError> {
        match &mut self.output {
            Output::File(stream) => stream.seal(),
            _ => Ok(self.rows),
        }
    }
}

impl<R: Row> Stream<R> {
    fn fail(&self, cause: impl ToString) -> TableError {
        TableError { path: self.path.clone(), cause: cause.to_string() }
    }

    #[cold]
    #[inline(never)]
    fn flush(&mut self) -> Result<(), TableError> {
        if !self.rows.is_empty() {
            let group = self.encode();
            self.rows.clear();
            self.pending.push(group.map_err(|e| self.fail(e))?);
        }
        self.write()
    }

    fn encode(&mut self) -> Result<RowGroupMetaData, ParquetError> {
        let columns = self.writer.schema_descr().columns().to_vec();
        let group = self.writer.next_row_group()?;
        let mut group = RowGroup::new(&mut self.encoder, &columns, group, self.rows.len());
        R::encode(&self.rows, &mut group)?;
        Ok(group.into_inner().close()?.as_ref().clone())
    }

    /// Moves what is encoded into the file.
    fn write(&mut self) -> Result<(), TableError> {
        self.writer.flush().map_err(|e| self.fail(e))?;
        let bytes = self.writer.inner();
        if !bytes.is_empty() {
            self.storage.replace_tail(self.end, bytes).map_err(|e| self.fail(e))?;
            self.end += self.writer.inner().len() as u64;
            self.writer.inner_mut().clear();
        }
        self.groups.append(&mut self.pending);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), TableError> {
        if !self.finished {
            if !self.rows.is_empty() {
                self.flush()?;
            }
            self.writer.finish().map_err(|e| self.fail(e))?;
            self.finished = true;
        }
        self.write()
    }

    fn seal(&mut self) -> Result<u64, TableError> {
        let rows: i64 = self.groups.iter().map(RowGroupMetaData::num_rows).sum();
        let properties = self.writer.properties();
        let file = FileMetaData::new(
            properties.writer_version().as_num(),
            rows,
            Some(properties.created_by().to_string()),
            properties.key_value_metadata().cloned(),
            Arc::new(self.writer.schema_descr().clone()),
            None,
        );
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &ParquetMetaData::new(file, self.groups.clone()))
            .finish()
            .map_err(|e| self.fail(e))?;
        self.storage.replace_tail(self.end, &footer).map_err(|e| self.fail(e))?;
        Ok(rows.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueryRow;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use std::sync::Mutex;

    /// A disk with so many bytes of space.
    #[derive(Default)]
    struct Disk {
        bytes: Vec<u8>,
        space: usize,
    }

    impl Storage for Arc<Mutex<Disk>> {
        fn replace_tail(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
            let mut disk = self.lock().unwrap();
            disk.bytes.truncate(offset as usize);
            let fits = bytes.len().min(disk.space - disk.bytes.len());
            disk.bytes.extend_from_slice(&bytes[..fits]);
            if fits < bytes.len() {
                return Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
            }
            Ok(())
        }
    }

    fn row(i: u32) -> QueryRow {
        // Does not compress, nor do its differences.
        let mixed = u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let start_ps = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        QueryRow { query: i, group: "g".into(), client: "h1".into(), start_ps, finish_ps: None, responses: 3, size_bytes: 9 }
    }

    fn numbers(disk: &Mutex<Disk>) -> Vec<u32> {
        use parquet::record::RowAccessor;
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(&disk.lock().unwrap().bytes).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let metadata = reader.metadata().file_metadata();
        assert!(metadata.key_value_metadata().unwrap().iter().any(|kv| kv.value.as_deref() == Some("queries/1")));
        reader.get_row_iter(None).unwrap().map(|r| r.unwrap().get_uint(0).unwrap()).collect()
    }

    /// Enough for one row group of such rows and a part of the next.
    const SPACE: usize = 800_000;

    /// The disk is full in the middle of the second row group.
    fn full() -> (Arc<Mutex<Disk>>, Table<QueryRow>) {
        let disk = Arc::new(Mutex::new(Disk { space: SPACE, ..Disk::default() }));
        let mut table = Table::stream("q.parquet".into(), Box::new(disk.clone())).unwrap();
        for i in 0..2 * GROUP as u32 - 1 {
            table.push(row(i)).unwrap();
        }
        let error = table.push(row(2 * GROUP as u32 - 1)).unwrap_err();
        assert!(error.to_string().starts_with("q.parquet: cannot be written: "), "{error}");
        assert!(!error.to_string().contains("External"), "{error}");
        assert_eq!(disk.lock().unwrap().bytes.len(), SPACE);
        (disk, table)
    }

    #[test]
    fn a_table_that_did_not_fit_is_readable_up_to_there() {
        let (disk, mut table) = full();
        assert!(table.finish().is_err());
        assert!(table.finish().is_err());
        assert_eq!(numbers(&disk), (0..GROUP as u32).collect::<Vec<_>>());
        assert_eq!(table.seal().unwrap(), GROUP as u64);
        assert_eq!(numbers(&disk).len(), GROUP);
    }

    #[test]
    fn nothing_is_lost_when_there_is_space_again() {
        let (disk, mut table) = full();
        assert_eq!(table.seal().unwrap(), GROUP as u64);
        disk.lock().unwrap().space = 10_000_000;
        table.push(row(2 * GROUP as u32)).unwrap();
        assert_eq!(table.finish().unwrap(), 2 * GROUP as u64 + 1);
        assert_eq!(numbers(&disk), (0..=2 * GROUP as u32).collect::<Vec<_>>());
    }

    #[test]
    fn a_table_of_which_nothing_was_written_can_be_sealed() {
        let disk = Arc::new(Mutex::new(Disk { space: 4_000, ..Disk::default() }));
        let mut table = Table::stream("q.parquet".into(), Box::new(disk.clone())).unwrap();
        (0..1000).for_each(|i| table.push(row(i)).unwrap());
        assert!(table.finish().is_err());
        assert_eq!(numbers(&disk), Vec::<u32>::new());
        disk.lock().unwrap().space = 100_000;
        assert_eq!(table.finish().unwrap(), 1000);
        assert_eq!(numbers(&disk).len(), 1000);
    }
}
