//! No marking.

use super::Policy;
use fanin_params::params;
use fanin_units::Bytes;

params! {
    /// No marking.
    pub struct NoMarking { }
}

/// State of no policy: every packet passes.
#[derive(Clone, Debug)]
pub struct Never;

impl Policy for Never {
    type Params = NoMarking;

    /// Memory: none.
    fn memory(_params: &NoMarking) -> Option<Bytes> {
        Some(Bytes(0))
    }

    fn new(_params: &NoMarking) -> Self {
        Never
    }

    fn marks(_params: &NoMarking) -> bool {
        false
    }

    fn acts_at_enqueue(&self) -> bool {
        false
    }
}
