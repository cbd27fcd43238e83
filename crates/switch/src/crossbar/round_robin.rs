//! Plain round-robin matching. Source: iSLIP §II.A (RRM, the algorithm that iSLIP mends).

use super::islip::Pointers;
use super::{Arbiter, Match, Requests};
use fanin_params::params;

params! {
    /// Plain round-robin matching (RRM), with one iteration per arbitration. Source: iSLIP §II.A.
    pub struct RoundRobinArbiterParams { }
}

/// RRM at one switch: as iSLIP with one round, but the pointer of an output moves beyond the input that it has granted whether that accepts
/// or not. Under load the pointers then move in step, and inputs get several grants of which they can use one.
#[derive(Clone, Debug)]
pub struct RoundRobin(Pointers<false>);

impl Arbiter for RoundRobin {
    type Params = RoundRobinArbiterParams;

    fn new(_: &RoundRobinArbiterParams, inputs: usize, outputs: usize) -> Self {
        RoundRobin(Pointers::new(inputs, outputs))
    }

    fn arbitrate(&mut self, requests: &Requests, matches: &mut Vec<Match>) {
        self.0.round(requests, true, matches);
    }
}
