//! The order of events. Knows times and slots; has never heard of a packet.
//!
//! Two containers, because two kinds of event exist. A [`Wheel`] holds events that are never moved once set, at most one
//! per slot (a link's next arrival, a port's next departure): bucketed by time, intrusive lists, no allocation. [`Timers`]
//! holds events that move (a connection's next timeout): a heap whose stale entries their owner recognises.

mod table;
mod timers;
mod wheel;

pub use table::Table;
pub use timers::Timers;
pub use wheel::{Ties, Wheel};
