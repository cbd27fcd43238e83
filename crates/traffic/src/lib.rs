//! Traffic: the flows, datagram streams and queries that applications ask of the network.
//!
//! A scenario's `[[traffic]]` tables ([`Entry`]) become one [`Traffic`]: a lazy merge of every entry's flows in order of
//! start, with the dependencies between them. The simulator pops flows when they are due and reports completions back,
//! which releases whatever waited for them.
//!
//! Every random choice has its own stream per (seed, purpose, entry and host, by name): another entry, or another host,
//! moves no arrival time and no size of those that were there.
//!
//! ```
//! use fanin_traffic::{Entry, HostInfo, Permutation, Traffic, TrafficContext, TrafficKind, MAX_FLOWS};
//! use fanin_units::{BitRate, Bytes, Span, Time};
//!
//! let pattern = Permutation { hosts: vec!["all".into()], size: Bytes(2_000_000), request: Bytes(0), jitter: Span::ZERO };
//! let kind = TrafficKind::Permutation(pattern);
//! let entry = Entry { name: None, transport: None, class: 0, start: Time::ZERO, after: vec![], delay: Span::ZERO, kind };
//! let context = TrafficContext {
//!     hosts: ["a", "b", "c"].into_iter().map(|name| HostInfo { name, rate: BitRate::from_gbps(10), rack: 0 }).collect(),
//!     transports: &["dctcp".to_string()],
//!     core_rate: None,
//!     seed: 1,
//!     duration: None,
//!     base_dir: ".".as_ref(),
//!     max_flows: MAX_FLOWS,
//! };
//! let mut traffic = Traffic::new(&[entry], &context).unwrap();
//! while let Some(flow) = traffic.pop() {
//!     assert_ne!(flow.src, flow.dst);
//!     traffic.on_complete(flow.completion(flow.start + Span::from_ms(2))); // once the network has delivered it
//! }
//! assert!(traffic.is_complete());
//! ```

mod arrivals;
mod assemble;
mod collective;
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
pub use collective::{
    AllGather, AllReduce, AllReduceAlgorithm, Collective, CollectiveJob, CollectiveOp, CollectiveRun, Exchange, Operation,
    RankOrder, ReduceScatter, Together, Write,
};
pub use context::{HostInfo, TrafficContext, LATEST, LONGEST, MAX_FLOWS};
pub use datagrams::{Cbr, OnOff};
pub use entry::{Entry, TrafficKind, MAX_CLASS};
pub use import::{CsvFlows, FlowFile, HpccFlows, HtsimMatrix, ImportedFlows, TimeUnit};
pub use incast::Incast;
pub use list::{FlowList, ListedFlow};
pub use pattern::{AllToAll, Permutation};
pub use poisson::{HotSpot, PoissonTraffic};
pub use query::{Aggregate, QueryTraffic};
pub use sizes::{published, Cdf, ExponentialSize, FixedSize, Probability, Published, SizeFile, Sizes, UniformSize};
pub use spec::{Completion, DatagramClock, DatagramSpec, FlowKind, FlowSpec, Query, RateCounts};
pub use traffic::Traffic;
