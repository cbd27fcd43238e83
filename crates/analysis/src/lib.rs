//! Bursts, phases, laws and culprits from the queue records of a port, in one pass and bounded memory.

mod before;
mod burst;
mod finish;
mod flows;
mod histogram;
mod laws;
mod noise;
mod phases;
#[cfg(test)]
mod phases_tests;
mod port;
mod rate;
pub mod read;
mod record;
mod report;
mod rounds;
mod series;
mod settings;
mod standing;
mod student;

pub use port::PortAnalyzer;
pub use record::{Disorder, Record, DROPPED, MARKED, NO_FLOW, NO_QUEUE};
pub use report::{
    Background, Burst, Culprit, DetectReport, HistogramReport, Histograms, Law, Phase, PortReport, RateFrom, Round, SCHEMA,
};
pub use settings::{unknown_flows, Detect, FlowInfo, FlowLookup, SettingError, Settings};
