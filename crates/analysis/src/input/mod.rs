//! Everything that readers of traces share: files, errors, numbers, names, and the batches that they hand over.

pub mod at;
pub mod context;
pub mod facts;
pub mod file;
pub mod manifest;
pub mod notices;
pub mod number;
pub mod problem;
pub mod reader;
pub mod sorter;
pub mod spill;
pub mod zstd;
