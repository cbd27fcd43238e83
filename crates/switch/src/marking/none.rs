//! No marking.

use super::Policy;
use fanin_params::params;

params! {
    /// Packets are never marked.
    pub struct NoMarking { }
}

/// Says nothing to any packet.
#[derive(Clone, Debug)]
pub struct Never;

impl Policy for Never {
    type Params = NoMarking;

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
