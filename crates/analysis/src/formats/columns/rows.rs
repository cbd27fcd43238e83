//! Rows of a file of columns one by one: for counters and running counts, whose readers go from row to row.

use super::Table;
use crate::formats::mapping::Bound;
use crate::formats::text::{Cell, MappedText, Origins, RowError, Rows};
use crate::input::file::{Gauge, SourceFile};
use crate::input::problem::Problems;
use crate::input::reader::BATCH;
use std::io::Write;
use std::sync::Arc;

/// Values of a column in a batch: whole numbers as such, others as texts, one behind another; none has memory of its own.
#[derive(Default)]
pub struct Cells {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    whole: Vec<u64>,
    /// True for the rows that have a whole number.
    there: Vec<bool>,
    signed: bool,
}

impl Cells {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.whole.clear();
        self.there.clear();
    }

    /// Takes the whole number of the next row.
    #[inline]
    pub fn signed(&mut self, value: Option<i64>) {
        self.signed = true;
        self.whole.push(value.unwrap_or_default() as u64);
        self.there.push(value.is_some());
    }

    /// Takes the whole number of the next row.
    #[inline]
    pub fn unsigned(&mut self, value: Option<u64>) {
        self.signed = false;
        self.whole.push(value.unwrap_or_default());
        self.there.push(value.is_some());
    }

    /// Takes the text of the next row.
    #[inline]
    pub fn text(&mut self, text: Option<&[u8]>) {
        self.bytes.extend_from_slice(text.unwrap_or_default());
        self.ends.push(self.bytes.len());
    }

    /// Takes a value of the next row as it is displayed: of a floating-point number the shortest text that means it.
    pub fn shown(&mut self, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            let _ = write!(self.bytes, "{value}");
        }
        self.ends.push(self.bytes.len());
    }

    /// The value of a row; empty where there is none.
    #[inline]
    fn get(&self, row: usize) -> Cell<'_> {
        match (self.there.get(row), self.whole.get(row)) {
            (Some(true), Some(value)) if self.signed => Cell::Signed(*value as i64),
            (Some(true), Some(value)) => Cell::Unsigned(*value),
            (Some(false), _) => Cell::Text(&[]),
            _ => Cell::Text(self.text_of(row).unwrap_or_default().trim_ascii()),
        }
    }

    fn text_of(&self, row: usize) -> Option<&[u8]> {
        let begin = if row == 0 { 0 } else { *self.ends.get(row - 1)? };
        self.bytes.get(begin..*self.ends.get(row)?)
    }
}

/// Rows of the chosen columns.
pub struct TableRows {
    table: Table,
    /// Values of the present batch, by column and row.
    cells: Vec<Cells>,
    rows: usize,
    row: usize,
}

impl TableRows {
    /// A table with these columns, to be read row by row.
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
            self.cells.resize_with(self.table.width(), Cells::default);
            for (chosen, cells) in self.cells.iter_mut().enumerate() {
                match self.rows {
                    0 => cells.clear(),
                    _ => self.table.all_cells(chosen, cells),
                }
            }
        }
        Ok(self.rows > 0)
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        self.cells.get(index)?.text_of(self.row)
    }

    #[inline]
    fn cell(&self, index: usize) -> Cell<'_> {
        self.cells.get(index).map_or(Cell::Text(&[]), |cells| cells.get(self.row))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_values_of_their_rows() {
        let mut cells = Cells::default();
        [Some(i64::MIN), None, Some(7)].into_iter().for_each(|value| cells.signed(value));
        let signed = [Cell::Signed(i64::MIN), Cell::Text(b""), Cell::Signed(7), Cell::Text(b"")];
        assert_eq!([0, 1, 2, 3].map(|row| cells.get(row)), signed);
        cells.clear();
        [Some(u64::MAX), None].into_iter().for_each(|value| cells.unsigned(value));
        assert_eq!([0, 1, 2].map(|row| cells.get(row)), [Cell::Unsigned(u64::MAX), Cell::Text(b""), Cell::Text(b"")]);
        cells.clear();
        cells.text(None);
        cells.text(Some(b" e1 "));
        cells.shown(Some(1.5));
        cells.shown(None::<f64>);
        let texts = [&b""[..], b"e1", b"1.5", b"", b""].map(Cell::Text);
        assert_eq!([0, 1, 2, 3, 4].map(|row| cells.get(row)), texts);
    }
}
