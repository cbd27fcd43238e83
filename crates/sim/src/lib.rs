//! The simulator: the only place where topology, switches, transports and traffic meet.
//!
//! [`run`] takes a validated scenario to a result folder. [`world`] and [`drive`] do the same in steps, for tests.

mod bench;
mod capture;
mod explicit;
mod fib;
mod flow;
mod folder;
mod forward;
mod host;
mod inspect;
mod link;
mod notify;
mod pool;
mod port;
mod record;
mod sample;
mod setup;
mod stamp;
mod summary;
mod trim;
mod watched;
mod world;

pub use bench::{measure, workload, Measured, Workload, WORKLOADS};
pub use folder::{drive, finish, run, Control, Observer, Outcome, Progress, Rows, RunError};
pub use inspect::{Kept, PortNow};
pub use notify::NoticeCounts;
pub use record::Destination;
pub use setup::world;
pub use trim::TrimCounts;
pub use world::{Pause, Totals, World};
