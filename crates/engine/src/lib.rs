//! The event queue: knows times and slots, and has never heard of a packet.
//!
//! Two containers, because two kinds of event exist. A [`Wheel`] holds events that are never moved once set (a
//! link's next arrival, a port's next departure): bucketed by time, a cache line a bucket. [`Timers`]
//! holds events that move (a connection's next timeout): a heap whose stale entries their owner recognises.

mod pages;
mod table;
mod timers;
mod wheel;

pub use pages::vec_in_huge_pages;
pub use table::{Id, Items, Table};
pub use timers::Timers;
pub use wheel::{Ahead, Due, Ties, Wheel};
