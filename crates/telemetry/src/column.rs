//! Column buffers and the types that go into them.

use parquet::data_type::ByteArray;

/// A string that many rows share: cloning costs a reference count.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Name(pub(crate) ByteArray);

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name(ByteArray::from(text.as_bytes().to_vec()))
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_utf8().unwrap_or("?"))
    }
}

/// Values of one column that wait to be written.
#[derive(Debug)]
pub enum Column {
    Int32(Vec<i32>, Option<Vec<i16>>),
    Int64(Vec<i64>, Option<Vec<i16>>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>, Option<Vec<i16>>),
}

/// A type that a column can hold.
pub trait Cell {
    /// Its type in Parquet's schema language, for example `int64` and `INTEGER(64,false)`.
    const PARQUET: (&'static str, Option<&'static str>);
    /// Whether it may be null.
    const OPTIONAL: bool = false;
    /// An empty buffer.
    fn column() -> Column;
    /// Appends to a buffer made by [`Cell::column`].
    fn push(&self, column: &mut Column);
}

macro_rules! int_cell {
    ($ty:ty, $variant:ident, $stored:ty, $parquet:literal, $logical:literal) => {
        impl Cell for $ty {
            const PARQUET: (&'static str, Option<&'static str>) = ($parquet, Some($logical));
            fn column() -> Column {
                Column::$variant(Vec::new(), None)
            }
            #[inline]
            fn push(&self, column: &mut Column) {
                if let Column::$variant(values, _) = column {
                    values.push(*self as $stored);
                }
            }
        }
        impl Cell for Option<$ty> {
            const PARQUET: (&'static str, Option<&'static str>) = ($parquet, Some($logical));
            const OPTIONAL: bool = true;
            fn column() -> Column {
                Column::$variant(Vec::new(), Some(Vec::new()))
            }
            fn push(&self, column: &mut Column) {
                if let Column::$variant(values, Some(levels)) = column {
                    levels.push(i16::from(self.is_some()));
                    values.extend(self.map(|v| v as $stored));
                }
            }
        }
    };
}
int_cell!(u8, Int32, i32, "int32", "INTEGER(8,false)");
int_cell!(u16, Int32, i32, "int32", "INTEGER(16,false)");
int_cell!(u32, Int32, i32, "int32", "INTEGER(32,false)");
int_cell!(u64, Int64, i64, "int64", "INTEGER(64,false)");

impl Cell for bool {
    const PARQUET: (&'static str, Option<&'static str>) = ("boolean", None);
    fn column() -> Column {
        Column::Bool(Vec::new())
    }
    #[inline]
    fn push(&self, column: &mut Column) {
        if let Column::Bool(values) = column {
            values.push(*self);
        }
    }
}

impl Cell for Name {
    const PARQUET: (&'static str, Option<&'static str>) = ("binary", Some("STRING"));
    fn column() -> Column {
        Column::Text(Vec::new(), None)
    }
    #[inline]
    fn push(&self, column: &mut Column) {
        if let Column::Text(values, _) = column {
            values.push(self.0.clone());
        }
    }
}

impl Cell for Option<Name> {
    const PARQUET: (&'static str, Option<&'static str>) = ("binary", Some("STRING"));
    const OPTIONAL: bool = true;
    fn column() -> Column {
        Column::Text(Vec::new(), Some(Vec::new()))
    }
    fn push(&self, column: &mut Column) {
        if let Column::Text(values, Some(levels)) = column {
            levels.push(i16::from(self.is_some()));
            values.extend(self.as_ref().map(|name| name.0.clone()));
        }
    }
}
