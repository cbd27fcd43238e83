//! Analysis of one port: bursts and their phases, laws, rounds and culprits.

mod background;
mod burst;
mod burst_end;
mod by_rate;
mod doubling;
mod finish;
mod flows;
mod growth;
mod histogram;
mod history;
mod laws;
mod no_burst_hint;
mod noise;
mod patience;
mod phases;
#[cfg(test)]
mod phases_tests;
mod port;
mod quantiles;
mod queue_contents;
mod rate;
mod report;
mod rounds;
pub(crate) mod scale;
mod series;
mod settings;
mod threshold_hint;
mod unseen;
mod verdict;

#[cfg(feature = "files")]
pub(crate) use by_rate::ALIKE;
#[cfg(feature = "files")]
pub(crate) use histogram::Histogram;
#[cfg(feature = "files")]
pub(crate) use patience::Patience;
pub use port::PortAnalyzer;
pub use report::{
    Background, Burst, CountedBurst, CountedPort, Culprit, DetectReport, HistogramReport, Histograms, Law, Nothing, NoticeFlow,
    NoticeReport, NoticeValue, Phase, PortReport, Proof, RateFrom, Round, Sawtooth, Steady, UnknownTime, SCHEMA,
};
#[cfg(feature = "files")]
pub use report::{Confirmed, EstimateError, EstimateRange, EstimateReport, Sure};
#[cfg(feature = "files")]
pub(crate) use scale::FULL_FRAME;
pub use settings::{unknown_flows, Detect, FlowInfo, FlowLookup, Sender, SettingError, Settings};
