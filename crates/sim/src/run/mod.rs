//! From a scenario to a result: set-up, the result folder, the summary, the benchmark.

pub mod bench;
mod collectives;
pub mod counters;
pub mod folder;
pub mod inspect;
pub mod parts;
pub mod setup;
mod summary;
mod watched;
