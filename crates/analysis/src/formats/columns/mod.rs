//! Columns of a table, batch by batch, whatever file they come from.

pub mod file;
pub mod mapped;
pub mod rows;
pub mod texts;

use crate::formats::arrow::ArrowFile;
use crate::formats::columns::rows::Cells;
use crate::formats::columns::texts::Shared;
use crate::formats::mapping::Column;
use crate::formats::parquet::ParquetFile;
use crate::input::file::Place;
use crate::input::number::{from_date, from_float, from_integer, from_text, NumberError};
use crate::input::problem::{Problem, Problems};
use parquet::data_type::ByteArray;
use std::path::{Path, PathBuf};

/// Columns of a file, at most: more is no trace.
pub const MAX_COLUMNS: usize = 10_000;

/// Values of a column, those that are there.
pub enum Values {
    /// No values: the column has not been read.
    None,
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Text(Vec<ByteArray>),
    /// Text with a dictionary.
    Placed(Vec<i64>, Shared),
}

/// Gives the values of a column as those of one kind, to be filled.
macro_rules! of_kind {
    ($($name:ident: $kind:ident, $type:ty;)*) => {
        $(pub fn $name(&mut self) -> &mut Vec<$type> {
            if !matches!(self, Values::$kind(_)) {
                *self = Values::$kind(Vec::new());
            }
            match self {
                Values::$kind(values) => values,
                _ => unreachable!("it was made so"),
            }
        })*
    };
}

impl Values {
    of_kind! {
        bools: Bool, bool;
        int32s: Int32, i32;
        int64s: Int64, i64;
        floats: Float, f32;
        doubles: Double, f64;
        texts: Text, ByteArray;
    }

    /// Makes the values of a column places in a dictionary, and gives these to be filled.
    pub fn places(&mut self, texts: &Shared) -> &mut Vec<i64> {
        match self {
            Values::Placed(_, shared) => *shared = texts.clone(),
            _ => *self = Values::Placed(Vec::new(), texts.clone()),
        }
        match self {
            Values::Placed(values, _) => values,
            _ => unreachable!("it was made so"),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Values::None => 0,
            Values::Bool(v) => v.len(),
            Values::Int32(v) => v.len(),
            Values::Int64(v) | Values::Placed(v, _) => v.len(),
            Values::Float(v) => v.len(),
            Values::Double(v) => v.len(),
            Values::Text(v) => v.len(),
        }
    }
}

/// One column that is read.
pub struct Chosen {
    /// Index of the column in the file.
    pub index: usize,
    pub name: String,
    pub unsigned: bool,
    pub max_definition: i16,
    /// Values of the current batch.
    pub values: Values,
    /// Definition levels of the current batch: a value is there where its level is `max_definition`. Empty where none can be
    /// missing.
    pub levels: Vec<i16>,
}

enum Source {
    Parquet(ParquetFile),
    Arrow(ArrowFile),
}

/// A file of columns that is being read.
pub struct Table {
    path: PathBuf,
    source: Source,
    columns: Vec<Chosen>,
    /// Rows before the current batch.
    first_row: u64,
    /// Rows of the current batch.
    rows: usize,
}

/// Calls the same of either file.
macro_rules! of_source {
    ($self:ident, $file:ident => $call:expr) => {
        match &$self.source {
            Source::Parquet($file) => $call,
            Source::Arrow($file) => $call,
        }
    };
}

impl Table {
    /// Opens a Parquet file.
    ///
    /// # Errors
    /// It cannot be opened, or is damaged.
    pub fn open(place: &Place) -> Result<Self, Problem> {
        Ok(Self::of(place, Source::Parquet(ParquetFile::open(place)?)))
    }

    /// Opens an Arrow file or stream.
    ///
    /// # Errors
    /// It cannot be opened, or is damaged.
    pub fn open_arrow(place: &Place) -> Result<Self, Problem> {
        Ok(Self::of(place, Source::Arrow(ArrowFile::open(place)?)))
    }

    fn of(place: &Place, source: Source) -> Self {
        Table { path: place.shown.clone(), source, columns: Vec::new(), first_row: 0, rows: 0 }
    }

    /// Share of the file that has been read.
    pub fn progress(&self) -> f64 {
        match &self.source {
            Source::Parquet(file) => self.first_row as f64 / file.num_rows().max(1) as f64,
            Source::Arrow(file) => file.progress(),
        }
    }

    /// Note for the end of the reading.
    pub fn ended(&self) -> Option<String> {
        match &self.source {
            Source::Parquet(_) => None,
            Source::Arrow(file) => file.ended(),
        }
    }

    /// Note that the file's writer left in it, such as `fanin.schema`.
    pub fn note(&self, key: &str) -> Option<String> {
        of_source!(self, file => file.note(key))
    }

    /// The columns of the file, with the units that their types declare.
    pub fn columns(&self) -> Vec<Column> {
        of_source!(self, file => file.columns())
    }

    /// True if a column of the file holds whole numbers.
    pub fn is_integer(&self, index: usize) -> bool {
        of_source!(self, file => file.is_integer(index))
    }

    /// True if a column holds dates of which the file does not say the zone.
    pub fn is_unzoned(&self, index: usize) -> bool {
        of_source!(self, file => file.is_unzoned(index))
    }

    /// Chooses the columns to read, by index in the file; they are then called by their place in `indices`.
    ///
    /// # Errors
    /// Everything that cannot be read.
    pub fn choose(&mut self, indices: &[usize]) -> Result<(), Problems> {
        self.columns = of_source!(self, file => file.choose(indices))?;
        Ok(())
    }

    /// True if a column of the file is of a type that can be read.
    pub fn can_read(&self, index: usize) -> bool {
        of_source!(self, file => file.choose(&[index])).is_ok()
    }

    /// Name of a chosen column.
    pub fn name(&self, chosen: usize) -> String {
        self.columns[chosen].name.clone()
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
        self.rows = match &mut self.source {
            Source::Parquet(file) => file.next(&mut self.columns, most, self.first_row)?,
            Source::Arrow(file) => file.next(&mut self.columns, most)?,
        };
        Ok(self.rows)
    }

    /// Calls `each` with the row within the batch and the number in it times `scale`; None where it is missing.
    pub fn numbers(&self, chosen: usize, scale: u64, mut each: impl FnMut(usize, Option<Result<u128, NumberError>>)) {
        let column = &self.columns[chosen];
        let unsigned = column.unsigned;
        match &column.values {
            Values::None => {}
            Values::Bool(v) => column.values(v, |row, v| each(row, v.map(|v| Ok(u128::from(*v) * u128::from(scale))))),
            Values::Int32(v) => column.values(v, |row, v| {
                let wide = |v: i32| if unsigned { i64::from(v as u32) } else { i64::from(v) };
                each(row, v.map(|v| from_integer(wide(*v), scale)));
            }),
            Values::Int64(v) if unsigned => {
                column.values(v, |row, v| each(row, v.map(|v| Ok(u128::from(*v as u64) * u128::from(scale)))));
            }
            Values::Int64(v) => column.values(v, |row, v| each(row, v.map(|v| from_integer(*v, scale)))),
            Values::Float(v) => column.values(v, |row, v| each(row, v.map(|v| from_float(f64::from(*v), scale)))),
            Values::Double(v) => column.values(v, |row, v| each(row, v.map(|v| from_float(*v, scale)))),
            Values::Text(_) | Values::Placed(..) => {
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
        match &column.values {
            Values::Int32(v) if v.len() == self.rows && column.unsigned => {
                out.extend(v.iter().map(|v| step(u64::from(*v as u32))))
            }
            Values::Int32(v) if v.len() == self.rows => out.extend(v.iter().map(|v| step(i64::from(*v) as u64))),
            Values::Int64(v) if v.len() == self.rows => out.extend(v.iter().map(|v| step(*v as u64))),
            _ => return false,
        }
        right
    }

    /// The first whole numbers of rows, times 1, of a column that must have one in each row.
    ///
    /// # Errors
    /// The first row that has none.
    pub fn whole(&self, chosen: usize, out: &mut Vec<u64>) -> Result<(), Problem> {
        if self.integers(chosen, 1, (0, 1 << 64), out) {
            return Ok(());
        }
        let mut wrong = None;
        out.clear();
        out.resize(self.rows, 0);
        self.numbers(chosen, 1, |row, value| match value.and_then(Result::ok).and_then(|value| u64::try_from(value).ok()) {
            Some(value) => out[row] = value,
            None => {
                wrong.get_or_insert(row);
            }
        });
        let wrong = wrong.or((self.is_text(chosen) || self.is_float(chosen)).then_some(0));
        wrong.map_or(Ok(()), |row| Err(self.problem("is no whole number", chosen, row)))
    }

    /// A problem with a value of the current batch.
    pub fn problem(&self, message: &str, chosen: usize, row: usize) -> Problem {
        let place = format!("row {}", self.first_row + row as u64 + 1);
        Problem::new(message).file(&self.path).place(place).column(self.name(chosen)).value(self.shown(chosen, row))
    }

    /// The column's flags, if every row has one.
    pub fn flags(&self, chosen: usize) -> Option<&[bool]> {
        match &self.columns[chosen].values {
            Values::Bool(v) if v.len() == self.rows => Some(v),
            _ => None,
        }
    }

    /// Calls `each` with the dates of a column, as [`Table::numbers`] does with numbers.
    pub fn dates(&self, chosen: usize, mut each: impl FnMut(usize, Option<Result<(u128, bool), NumberError>>)) {
        if self.is_text(chosen) {
            self.texts(chosen, |row, v| each(row, v.map(from_date)));
        } else {
            self.numbers(chosen, 1, |row, v| each(row, v.map(|_| Err(NumberError::NotANumber))));
        }
    }

    /// True if the column holds text.
    pub fn is_text(&self, chosen: usize) -> bool {
        matches!(self.columns[chosen].values, Values::Text(_) | Values::Placed(..))
    }

    /// True if the column holds floating-point numbers.
    pub fn is_float(&self, chosen: usize) -> bool {
        matches!(self.columns[chosen].values, Values::Float(_) | Values::Double(_))
    }

    /// Calls `each` with the row within the batch and its text; None where it is missing. Nothing is called for a column that
    /// holds no text.
    pub fn texts(&self, chosen: usize, mut each: impl FnMut(usize, Option<&[u8]>)) {
        let column = &self.columns[chosen];
        match &column.values {
            Values::Text(v) => column.values(v, |row, v| each(row, v.map(bytes))),
            Values::Placed(v, texts) => {
                let texts = texts.lock();
                column.values(v, |row, v| each(row, v.map(|v| texts.get(*v))));
            }
            _ => {}
        }
    }

    /// Puts the result of `look_up` for each row's text into `out`, and `blank` where there is none, of which `absent` learns the
    /// row. Of a dictionary's text it is asked once. Gives the first row whose text it refuses, and why.
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
        if let Values::Placed(v, texts) = &column.values {
            let mut texts = texts.lock();
            column.values(v, |row, v| each(row, v.map(|v| texts.name(*v, |text| look_up(row, text)))));
        } else {
            self.texts(chosen, |row, v| each(row, v.map(|text| look_up(row, text))));
        }
        refused
    }

    /// Number of chosen columns.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Puts all values of the current batch into `out`.
    pub fn all_cells(&self, chosen: usize, out: &mut Cells) {
        let column = &self.columns[chosen];
        out.clear();
        match &column.values {
            Values::None => {}
            Values::Bool(v) => column.values(v, |_, v| out.shown(v)),
            Values::Int32(v) if column.unsigned => column.values(v, |_, v| out.unsigned(v.map(|v| u64::from(*v as u32)))),
            Values::Int32(v) => column.values(v, |_, v| out.signed(v.map(|v| i64::from(*v)))),
            Values::Int64(v) if column.unsigned => column.values(v, |_, v| out.unsigned(v.map(|v| *v as u64))),
            Values::Int64(v) => column.values(v, |_, v| out.signed(v.copied())),
            Values::Float(v) if are_whole(v, 24) => column.values(v, |_, v| out.unsigned(v.map(|v| *v as u64))),
            Values::Double(v) if are_whole(v, 53) => column.values(v, |_, v| out.unsigned(v.map(|v| *v as u64))),
            Values::Float(v) => column.values(v, |_, v| out.shown(v)),
            Values::Double(v) => column.values(v, |_, v| out.shown(v)),
            Values::Text(_) | Values::Placed(..) => self.texts(chosen, |_, text| out.text(text)),
        }
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
        match &column.values {
            Values::Bool(v) => v.get(at).map_or(String::new(), ToString::to_string),
            Values::Int32(v) if column.unsigned => v.get(at).map_or(String::new(), |v| (*v as u32).to_string()),
            Values::Int32(v) => v.get(at).map_or(String::new(), ToString::to_string),
            Values::Int64(v) if column.unsigned => v.get(at).map_or(String::new(), |v| (*v as u64).to_string()),
            Values::Int64(v) => v.get(at).map_or(String::new(), ToString::to_string),
            Values::Float(v) => v.get(at).map_or(String::new(), ToString::to_string),
            Values::Double(v) => v.get(at).map_or(String::new(), ToString::to_string),
            Values::Text(v) => v.get(at).map_or(String::new(), |v| String::from_utf8_lossy(bytes(v)).into_owned()),
            Values::Placed(v, texts) => {
                v.get(at).map_or(String::new(), |v| String::from_utf8_lossy(texts.lock().get(*v)).into_owned())
            }
            Values::None => String::new(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Chosen {
    /// A column of which nothing has been read.
    pub fn new(index: usize, name: String, unsigned: bool, max_definition: i16) -> Self {
        Chosen { index, name, unsigned, max_definition, values: Values::None, levels: Vec::new() }
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

/// True if all floating-point numbers are whole and have so many bits at most, as whole counts do: each then is what its text says.
fn are_whole<T: Copy + Into<f64>>(values: &[T], bits: u32) -> bool {
    let most = (1_u64 << bits) as f64;
    values.iter().map(|value| (*value).into()).all(|value| value.is_sign_positive() && value <= most && value == value.trunc())
}

fn bytes(value: &ByteArray) -> &[u8] {
    value.data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_that_are_whole_are_what_their_texts_say() {
        let most = 9_007_199_254_740_992.0;
        assert!(are_whole(&[0.0, 7.0, 1e15, most - 1.0, most], 53) && are_whole(&[16_777_216.0_f32], 24));
        for whole in [0.0, 7.0, 1e15, most - 1.0, most] {
            assert_eq!(whole.to_string(), (whole as u64).to_string());
        }
        for other in [-0.0, -1.0, 0.5, most + 2.0, f64::NAN, f64::INFINITY] {
            assert!(!are_whole(&[1.0, other], 53), "{other}");
        }
        // Of the texts that mean it, the shortest is another number.
        assert!(!are_whole(&[123_456_792.0_f32], 24));
        assert_eq!(123_456_792.0_f32.to_string(), "123456790");
    }
}
