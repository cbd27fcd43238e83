//! What the applications ask of the network.
//!
//! A scenario's `[[traffic]]` tables ([`Entry`]) become one [`Traffic`]: a lazy merge of every entry's flows in order of
//! start, with the dependencies between them. The simulator pops flows as their time comes and reports completions back,
//! which releases whatever waited for them.
//!
//! Every random choice has its own stream per (seed, purpose, entry and host, by name): another entry, or another host,
//! moves no arrival time and no size of those that were there.

mod arrivals;
mod context;
mod datagrams;
mod depend;
mod entry;
mod generate;
mod import;
mod incast;
mod lines;
mod list;
mod pattern;
mod poisson;
mod query;
mod sizes;
mod spec;
mod traffic;

pub use arrivals::LoadOf;
pub use context::{HostInfo, TrafficContext, MAX_FLOWS};
pub use datagrams::{Cbr, OnOff};
pub use entry::{Entry, TrafficKind, MAX_CLASS};
pub use import::{CsvFlows, FlowFile, HpccFlows, HtsimMatrix, ImportedFlows, TimeUnit};
pub use incast::Incast;
pub use list::{FlowList, ListedFlow};
pub use pattern::{AllToAll, Permutation};
pub use poisson::{HotSpot, PoissonTraffic};
pub use query::{Aggregate, QueryTraffic};
pub use sizes::{published, Cdf, ExponentialSize, FixedSize, Probability, Published, SizeFile, Sizes, UniformSize};
pub use spec::{DatagramClock, DatagramSpec, FlowKind, FlowSpec, Query, RateCounts};
pub use traffic::Traffic;
