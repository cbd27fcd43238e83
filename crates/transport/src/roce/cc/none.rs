//! No congestion control: a fixed rate, or the line's.

use super::{ControlParams, Path, RateControl, Sending};
use fanin_units::BitRate;

fanin_params::params! {
    /// No congestion control: each queue pair sends at its rate, limited by pauses alone.
    pub struct NoRateControl {
        /// Rate of each queue pair, counting all bytes on the wire; if absent, the NIC's.
        pub rate: Option<BitRate> = None, in BitRate(1_000_000)..=BitRate(10_000_000_000_000);
    }
}

impl ControlParams for NoRateControl {}

/// State of a queue pair without congestion control: none.
#[derive(Clone, Debug)]
pub struct NoControl;

impl NoControl {
    pub fn new(params: &NoRateControl, path: &Path, s: &mut Sending) -> Self {
        s.rate = params.rate.unwrap_or(path.line_rate).min(path.line_rate);
        NoControl
    }
}

impl RateControl for NoControl {}
