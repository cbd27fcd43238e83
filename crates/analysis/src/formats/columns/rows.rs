//! Rows of a file of columns one by one, as texts: for counters and running counts, whose readers go from row to row.

use super::Table;
use crate::formats::mapping::Bound;
use crate::formats::text::{MappedText, Origins, RowError, Rows};
use crate::input::file::{Gauge, SourceFile};
use crate::input::problem::Problems;
use crate::input::reader::BATCH;
use std::sync::Arc;

/// Rows of the chosen columns.
pub struct TableRows {
    table: Table,
    /// Texts of the present batch, by column and row.
    cells: Vec<Vec<Vec<u8>>>,
    rows: usize,
    row: usize,
}

impl TableRows {
    /// A table as rows of text with these columns.
    ///
    /// # Errors
    /// Columns that cannot be read.
    pub fn table(mut table: Table, bound: &[Bound], file: &SourceFile) -> Result<MappedText<TableRows>, Problems> {
        let indices: Vec<usize> = bound.iter().map(|bound| bound.index).collect();
        table.choose(&indices)?;
        let names = (0..indices.len()).map(|chosen| table.name(chosen)).collect();
        let by_place = bound.iter().enumerate().map(|(index, bound)| Bound { index, ..*bound }).collect();
        let from = Origins {
            path: file.path.clone(),
            size: file.size,
            packing: file.packing,
            gauge: Arc::new(Gauge::default()),
            port: file.port_name(),
        };
        let rows = TableRows { table, cells: Vec::new(), rows: 0, row: 0 };
        Ok(MappedText::new(from, rows, names, (by_place, Vec::new()), false))
    }
}

impl Rows for TableRows {
    const PLACE: &'static str = "row";

    fn read(&mut self) -> Result<bool, RowError> {
        self.row += 1;
        if self.row >= self.rows {
            self.rows = self.table.next(BATCH).map_err(RowError::End)?;
            self.row = 0;
            self.cells.clear();
            if self.rows > 0 {
                self.cells.extend((0..self.table.width()).map(|chosen| self.table.all_texts(chosen)));
            }
        }
        Ok(self.rows > 0)
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        self.cells.get(index)?.get(self.row).map(Vec::as_slice)
    }

    fn line(&self) -> u64 {
        self.table.first_row() + self.row as u64 + 1
    }

    fn ended(&self) -> Option<String> {
        self.table.ended()
    }

    fn progress(&self) -> Option<f64> {
        Some(self.table.progress())
    }
}
