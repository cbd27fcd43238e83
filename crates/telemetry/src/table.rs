//! A table: discarded, kept, or streamed to a Parquet file a row group at a time.

use crate::column::Column;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
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
    /// Table name.
    const TABLE: &'static str;
    /// Schema version: raised by any change of meaning.
    const VERSION: u32;
    /// The columns in order.
    fn columns() -> Vec<ColumnInfo>;
    /// Empty buffers, one per column.
    fn buffers() -> Vec<Column>;
    /// Appends to the buffers.
    fn push(&self, buffers: &mut [Column]);
}

enum Output<R> {
    Discard,
    Keep(Vec<R>),
    File(Box<Stream>),
}

struct Stream {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    buffers: Vec<Column>,
    waiting: usize,
}

/// Where the rows of one table go.
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

    /// Streams rows to `<folder>/<table>.parquet`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn file(folder: &Path) -> Result<Self, TableError> {
        let path = folder.join(format!("{}.parquet", R::TABLE));
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
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("fanin ", env!("CARGO_PKG_VERSION")).to_string())
            .set_key_value_metadata(Some(vec![
                KeyValue::new("fanin.schema".to_string(), format!("{}/{}", R::TABLE, R::VERSION)),
                KeyValue::new("fanin.units".to_string(), serde_json::Value::Object(units).to_string()),
            ]))
            .build();
        let file = File::create(&path).map_err(|e| fail(e.to_string()))?;
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(|e| fail(e.to_string()))?;
        let stream = Stream { path: path.clone(), writer, buffers: R::buffers(), waiting: 0 };
        Ok(Table { output: Output::File(Box::new(stream)), rows: 0 })
    }

    /// Whether rows go anywhere; where not, the work of making them can be saved.
    pub fn is_on(&self) -> bool {
        !matches!(self.output, Output::Discard)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When a full row group cannot be written.
    pub fn push(&mut self, row: R) -> Result<(), TableError> {
        self.rows += 1;
        match &mut self.output {
            Output::Discard => Ok(()),
            Output::Keep(rows) => {
                rows.push(row);
                Ok(())
            }
            Output::File(stream) => {
                row.push(&mut stream.buffers);
                stream.waiting += 1;
                if stream.waiting >= GROUP {
                    stream.flush::<R>()
                } else {
                    Ok(())
                }
            }
        }
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

    /// Writes what waits and closes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&mut self) -> Result<u64, TableError> {
        if let Output::File(mut stream) = std::mem::replace(&mut self.output, Output::Discard) {
            stream.flush::<R>()?;
            let path = stream.path.clone();
            stream.writer.close().map_err(|e| TableError { path, cause: e.to_string() })?;
        }
        Ok(self.rows)
    }
}

impl Stream {
    fn flush<R: Row>(&mut self) -> Result<(), TableError> {
        if self.waiting == 0 {
            return Ok(());
        }
        self.waiting = 0;
        let buffers = std::mem::replace(&mut self.buffers, R::buffers());
        let write = |writer: &mut SerializedFileWriter<File>| -> Result<(), ParquetError> {
            let mut group = writer.next_row_group()?;
            for buffer in &buffers {
                write_column(&mut group, buffer)?;
            }
            group.close()?;
            Ok(())
        };
        write(&mut self.writer).map_err(|e| TableError { path: self.path.clone(), cause: e.to_string() })
    }
}

fn write_column(group: &mut SerializedRowGroupWriter<'_, File>, buffer: &Column) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more buffers than columns".to_string()));
    };
    match buffer {
        Column::Int32(v, levels) => column.typed::<Int32Type>().write_batch(v, levels.as_deref(), None)?,
        Column::Int64(v, levels) => column.typed::<Int64Type>().write_batch(v, levels.as_deref(), None)?,
        Column::Bool(v) => column.typed::<BoolType>().write_batch(v, None, None)?,
        Column::Text(v, levels) => column.typed::<ByteArrayType>().write_batch(v, levels.as_deref(), None)?,
    };
    column.close()
}
