//! Counters and watermarks of ports: intervals of known or unknown contents, bursts in them, and what they contradict.
//!
//! A switch tells what happened in intervals: bytes that were counted, the largest queue, drops. A [`Series`] makes [`Interval`]s of looks at
//! running totals; a [`CounterPort`] finds bursts in the intervals of one port, at some 400 B of memory; a [`CounterReport`] collects
//! them. Time that is unknown is never a burst and never a zero: [`State`].

mod apart;
mod interval;
mod port;
mod report;
mod running;
mod series;
mod steady;
#[cfg(test)]
mod tests;

pub use interval::{Interval, Reading, State};
pub(crate) use port::sum;
pub use port::{CounterBurst, CounterPort, Shown};
pub use report::CounterReport;
pub(crate) use report::{again, are_mixed, falling, mixed_sources};
pub use running::{Running, Step};
pub(crate) use series::most_bytes;
pub use series::{Look, Series, Value};
