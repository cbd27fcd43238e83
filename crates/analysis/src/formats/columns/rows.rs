//! Rows of a file of columns one by one, as texts: for counters and running counts, whose readers go from row to row.

use super::Table;
use crate::formats::mapping::Bound;
use crate::formats::text::{MappedText, Origins, RowError, Rows};
use crate::input::file::{Gauge, SourceFile};
use crate::input::problem::Problems;
use crate::input::reader::BATCH;
use std::sync::Arc;

/// Texts of a column, one behind another: a value costs no memory of its own.
#[derive(Default)]
pub struct Cells {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Cells {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Ends all rows before `row`.
    #[inline]
    pub fn end(&mut self, row: usize) {
        while self.ends.len() < row {
            self.ends.push(self.bytes.len());
        }
    }

    /// Takes the text of a row; rows come in order.
    #[inline]
    pub fn text(&mut self, row: usize, text: &[u8]) {
        self.end(row);
        self.bytes.extend_from_slice(text);
        self.end(row + 1);
    }

    /// Takes a whole number of at most 64 bits.
    #[inline]
    pub fn whole(&mut self, row: usize, value: Option<i128>) {
        let Some(value) = value else { return self.end(row + 1) };
        let (mut digits, mut at) = ([0_u8; 21], 21);
        let mut rest = value.unsigned_abs() as u64;
        while at == 21 || rest > 0 {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        if value < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        self.text(row, &digits[at..]);
    }

    /// Takes a value as it is displayed.
    pub fn shown(&mut self, row: usize, value: Option<impl std::fmt::Display>) {
        self.text(row, value.map(|value| value.to_string()).unwrap_or_default().as_bytes());
    }

    fn get(&self, row: usize) -> Option<&[u8]> {
        let begin = if row == 0 { 0 } else { *self.ends.get(row - 1)? };
        self.bytes.get(begin..*self.ends.get(row)?)
    }
}

/// Rows of the chosen columns.
pub struct TableRows {
    table: Table,
    /// Texts of the present batch, by column and row.
    cells: Vec<Cells>,
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
            self.cells.resize_with(self.table.width(), Cells::default);
            for (chosen, cells) in self.cells.iter_mut().enumerate() {
                match self.rows {
                    0 => cells.clear(),
                    _ => self.table.all_texts(chosen, cells),
                }
            }
        }
        Ok(self.rows > 0)
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        self.cells.get(index)?.get(self.row)
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
    fn cells_have_the_texts_of_their_rows() {
        let mut cells = Cells::default();
        let whole = [0, 7, -12, i128::from(u64::MAX), i128::from(i64::MIN)];
        whole.iter().enumerate().for_each(|(row, value)| cells.whole(row, Some(*value)));
        cells.whole(5, None);
        cells.text(7, b"e1");
        cells.shown(8, Some(1.5));
        cells.end(10);
        let texts = |cells: &Cells| {
            (0..11).map(|row| cells.get(row).map(|text| String::from_utf8_lossy(text).into_owned())).collect::<Vec<_>>()
        };
        let said = ["0", "7", "-12", "18446744073709551615", "-9223372036854775808", "", "", "e1", "1.5", ""];
        let said: Vec<Option<String>> = said.iter().map(|text| Some((*text).to_string())).chain([None]).collect();
        assert_eq!(texts(&cells), said);
        cells.clear();
        assert_eq!(cells.get(0), None);
    }
}
