//! Bursts, phases, laws and culprits from the queue records of a port, in one pass and bounded memory.
//!
//! One [`PortAnalyzer`] per port takes [`Record`]s in order of time and makes a [`PortReport`]. How it decides: docs/analysis-methods.md.
//!
//! Memory by port: 64 B for each flow (at most 2^20 are distinguished), 8 B for each packet that waits or waited at the last peak (at
//! most 2^20), 0.3 MB for the burst that is open, and about 3 KB for each burst that is listed.
//!
//! Speed, one core of the reference machine, processor time (`cargo run --release -p fanin-analysis --example speed`): 46 million records
//! a second where there is no burst, 8 million where a tenth of the records lie in bursts of some hundred packets, 5 million on a queue of
//! white noise, 4 million on 4,000 bursts of 600 packets back to back. There, half of the time are the phases of the highest bursts: one fit
//! costs about a millisecond, so longer traces are faster.

mod before;
mod burst;
mod by_rate;
mod ends;
pub mod explain;
mod finish;
mod flows;
mod growth;
mod histogram;
mod laws;
mod many;
mod noise;
mod nothing;
mod past;
mod phases;
#[cfg(test)]
mod phases_tests;
mod port;
mod rate;
pub mod read;
mod record;
mod report;
mod rounds;
mod say;
mod scale;
mod series;
mod settings;
mod standing;
mod student;
mod verdict;

pub use port::PortAnalyzer;
pub use record::{Disorder, Fates, Record, AT_HEAD, DROPPED, MARKED, NO_DATA, NO_FLOW, NO_QUEUE, REPLACED};
pub use report::{
    Background, Burst, Culprit, DetectReport, HistogramReport, Histograms, Law, Nothing, NoticeFlow, NoticeReport, NoticeValue,
    Phase, PortReport, RateFrom, Round, Steady, SCHEMA,
};
pub use settings::{unknown_flows, Detect, FlowInfo, FlowLookup, SettingError, Settings};
