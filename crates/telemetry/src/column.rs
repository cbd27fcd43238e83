//! The types that table columns can hold.

use crate::chunk::{Chunk, Integer};
use parquet::errors::ParquetError;
use std::sync::Arc;

/// A string that many rows share: cloning costs a reference count.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Name(pub(crate) Arc<str>);

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name(text.into())
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A type that a column can hold.
pub trait Cell: Sized {
    /// Type of the column in Parquet's schema language, for example `int64` and `INTEGER(64,false)`.
    const PARQUET: (&'static str, Option<&'static str>);
    /// True if a value may be null.
    const OPTIONAL: bool = false;
    /// Encodes a column of a row group.
    ///
    /// # Errors
    /// Parquet's; none are known.
    fn encode<'a>(cells: impl Iterator<Item = &'a Self> + Clone, chunk: Chunk<'_>) -> Result<(), ParquetError>
    where
        Self: 'a;
}

macro_rules! int_cell {
    ($ty:ty, $integer:expr, $parquet:literal, $logical:literal) => {
        impl Cell for $ty {
            const PARQUET: (&'static str, Option<&'static str>) = ($parquet, Some($logical));
            fn encode<'a>(cells: impl Iterator<Item = &'a Self> + Clone, mut chunk: Chunk<'_>) -> Result<(), ParquetError> {
                chunk.integers($integer, cells.map(|cell| u64::from(*cell)))
            }
        }
        impl Cell for Option<$ty> {
            const PARQUET: (&'static str, Option<&'static str>) = ($parquet, Some($logical));
            const OPTIONAL: bool = true;
            fn encode<'a>(cells: impl Iterator<Item = &'a Self> + Clone, mut chunk: Chunk<'_>) -> Result<(), ParquetError> {
                chunk.levels(cells.clone().map(Option::is_some));
                chunk.integers($integer, cells.flatten().map(|cell| u64::from(*cell)))
            }
        }
    };
}
int_cell!(u8, Integer::Four, "int32", "INTEGER(8,false)");
int_cell!(u16, Integer::Four, "int32", "INTEGER(16,false)");
int_cell!(u32, Integer::Four, "int32", "INTEGER(32,false)");
int_cell!(u64, Integer::Eight, "int64", "INTEGER(64,false)");

impl Cell for bool {
    const PARQUET: (&'static str, Option<&'static str>) = ("boolean", None);
    fn encode<'a>(cells: impl Iterator<Item = &'a Self> + Clone, mut chunk: Chunk<'_>) -> Result<(), ParquetError> {
        chunk.booleans(cells.copied())
    }
}

impl Cell for Name {
    const PARQUET: (&'static str, Option<&'static str>) = ("binary", Some("STRING"));
    fn encode<'a>(cells: impl Iterator<Item = &'a Self> + Clone, mut chunk: Chunk<'_>) -> Result<(), ParquetError> {
        chunk.names(cells)
    }
}

impl Cell for Option<Name> {
    const PARQUET: (&'static str, Option<&'static str>) = ("binary", Some("STRING"));
    const OPTIONAL: bool = true;
    fn encode<'a>(cells: impl Iterator<Item = &'a Self> + Clone, mut chunk: Chunk<'_>) -> Result<(), ParquetError> {
        chunk.levels(cells.clone().map(Option::is_some));
        chunk.names(cells.flatten())
    }
}
