//! The simulator: the only place where topology, switches, transports and traffic meet.
//!
//! [`run`] takes a validated scenario to a result folder. [`world`] and [`drive`] do the same in steps, for tests.
//!
//! `fabric` and `hosts` share a `core` (events, links, packets) and know nothing of each other; `ledger` writes down what
//! happens and decides nothing; `world` moves all of them and takes samples; `run` begins and ends it. Mechanisms and transports are called
//! by their seams.
//!
//! Modules here know each other in one direction only: `ledger`, then `core`, then `fabric`, `hosts` and `outside` (blocks that decide in
//! the place of a policy), then `world`, then `run`.

mod core;
mod fabric;
mod hosts;
mod ledger;
mod outside;
mod run;
#[cfg(test)]
mod small_runs;
mod world;

pub use core::faults::LinkCounts;
pub use ledger::{Destination, Totals};
pub use outside::{asked_at, KeepWaiting};
pub use run::bench::{measure, prepare, workload, Measured, Section, Workload, FEATURES, WORKLOADS};
pub use run::counters::{counters, counters_page, CounterGroup};
pub use run::folder::{drive, finish, run, summarize, Control, Observer, Outcome, Progress, Rows, RunError};
pub use run::inspect::{Kept, PortNow};
pub use run::parts::{expected, one_thread, run_parts, Division, Expected, Order, Undivided};
pub use run::setup::{world, world_fetching};
pub use world::{Pause, World};
