//! Bursts, phases, laws and culprits from the queue records of a port, in one pass and bounded memory.
//!
//! [`trace::analyze`] reads files, of this machine or of whoever has them ([`trace::Files`]), and reports on all ports in them. Of one port, a [`PortAnalyzer`] takes [`Record`]s in order of time
//! and makes a [`PortReport`]. How it decides: docs/analysis-methods.md.
//!
//! Memory by port: 64 B for each flow (at most 2^20 are distinguished), 8 B for each packet that waits or waited at the last peak (at
//! most 2^20), 0.3 MB for the burst that is open, and about 3 KB for each burst that is listed.
//!
//! Speed, one core of the reference machine, processor time (`cargo run --release -p fanin-analysis --example speed`): 46 million records
//! a second where there is no burst, 8 million where a tenth of the records lie in bursts of some hundred packets, 5 million on a queue of
//! white noise, 4 million on 4,000 bursts of 600 packets back to back. There, half of the time are the phases of the highest bursts: one fit
//! costs about a millisecond, so longer traces are faster.
//!
//! Folders, each of which uses only those before it (a test in `testkit`): `record` and `display`; `bursts`, the analysis of one port;
//! `checks`, plausibility of records; `counters`, bursts in intervals of counters and watermarks; `input`, files, context and errors that all readers share; `capture`, packets; `formats`, a
//! registry of file formats; `pair`, two captures of one port; `trace`, from options to the report, and streams as they come. `explain` stands apart. Without the
//! feature `files` there are only records in memory: `record`, `display`, `bursts` and `explain`.

mod bursts;
#[cfg(feature = "files")]
mod capture;
#[cfg(feature = "files")]
mod checks;
#[cfg(feature = "files")]
pub mod counters;
mod display;
pub mod explain;
#[cfg(feature = "files")]
mod formats;
#[cfg(feature = "files")]
mod input;
#[cfg(feature = "files")]
mod pair;
mod record;
#[cfg(feature = "files")]
pub mod trace;

pub use bursts::{
    unknown_flows, Background, Burst, CountedBurst, CountedPort, Culprit, Detect, DetectReport, FlowInfo, FlowLookup,
    HistogramReport, Histograms, Law, Nothing, NoticeFlow, NoticeReport, NoticeValue, Phase, PortAnalyzer, PortReport, Proof,
    RateFrom, Round, Sawtooth, Sender, SettingError, Settings, Steady, UnknownTime, SCHEMA,
};
pub use record::{Disorder, Fates, Record, Sample, ANEW, AT_HEAD, DROPPED, MARKED, NO_DATA, NO_FLOW, NO_QUEUE, REPLACED, SAMPLE};
