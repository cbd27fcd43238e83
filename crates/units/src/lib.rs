//! Quantities, identifiers and random streams shared by every Fanin crate.
//!
//! Time is counted in picoseconds: a nanosecond clock would charge 64 B at 400 Gb/s 56 % too much.
//! Sizes are decimal where written with `KB`, `MB`, `GB` (1000) and binary with `KiB`, `MiB`, `GiB` (1024).

mod ids;
mod prefetch;
mod quantity;
mod rate;
mod rng;
mod size;
mod time;

pub use ids::{FlowId, HostId, LinkId, NodeId, QueueClass, SwitchId, TrafficClass};
pub use prefetch::{prefetch, prefetch_lines};
pub use quantity::{Quantity, QuantityError};
pub use rate::{BitRate, WireClock, BPS};
pub use rng::{Purpose, Stream};
pub use size::{Amount, Bytes};
pub use time::{Span, Time};

#[cfg(test)]
mod tests;
