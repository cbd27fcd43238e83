//! No marking.

use super::Policy;
use fanin_params::params;
use fanin_units::Bytes;

params! {
    /// No marking.
    pub struct NoMarking { }
}

/// Says nothing to any packet.
#[derive(Clone, Debug)]
pub struct Never;

impl Policy for Never {
    type Params = NoMarking;

    /// None.
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
