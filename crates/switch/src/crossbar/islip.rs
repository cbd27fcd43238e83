//! iSLIP: iterative round-robin matching with slip. Source: iSLIP §II and §V.

use super::{Arbiter, Inputs, Match, Requests};
use fanin_params::params;

params! {
    /// iSLIP: request, grant, accept, with round-robin pointers that desynchronise by themselves. Source: iSLIP.
    pub struct IslipParams {
        /// Iterations of request, grant and accept in one arbitration. Source: iSLIP §V (log2 N suffice on average: 3 or 4
        /// at 12 or 16 ports).
        pub iterations: u32 = 3, in 1..=64;
    }
}

/// No offer. An offer is the distance of an output from the input's pointer, and the output.
const NO_OFFER: (u16, u16) = (u16::MAX, u16::MAX);

/// Grant and accept by pointers; `SLIPS`: a pointer moves only with a grant that was accepted in the first round.
#[derive(Clone, Debug)]
pub(super) struct Pointers<const SLIPS: bool> {
    /// Grant pointer of each output: the input that is first in turn.
    grant: Vec<u16>,
    /// Accept pointer of each input: the output that is first in turn.
    accept: Vec<u16>,
    /// Inputs that are connected, within an arbitration.
    taken: Inputs,
    /// Best offer of a round, by input.
    offers: Vec<(u16, u16)>,
    /// Inputs with an offer, in order of their first offer.
    offered: Vec<u16>,
    /// Outputs that are not connected.
    left: Vec<u16>,
}

impl<const SLIPS: bool> Pointers<SLIPS> {
    pub(super) fn new(inputs: usize, outputs: usize) -> Self {
        Pointers {
            grant: vec![0; outputs],
            accept: vec![0; inputs],
            taken: Inputs::none(inputs),
            offers: vec![NO_OFFER; inputs],
            offered: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Runs one round of request, grant and accept; true if it has connected anything.
    pub(super) fn round(&mut self, requests: &Requests, first: bool, matches: &mut Vec<Match>) -> bool {
        let (inputs, outputs) = (self.accept.len(), self.grant.len());
        let after = |n: usize, of: usize| if n + 1 == of { 0 } else { n as u16 + 1 };
        if first {
            self.taken.0.fill(0);
            self.left.clone_from(&requests.open);
        }
        for output in self.left.iter().map(|output| usize::from(*output)) {
            let start = usize::from(self.grant[output]);
            let Some(input) = requests.rows[output].next_from(start, &self.taken) else { continue };
            if !SLIPS {
                self.grant[output] = after(input, inputs);
            }
            let from = usize::from(self.accept[input]);
            let far = if output >= from { output - from } else { output + outputs - from };
            if self.offers[input] == NO_OFFER {
                self.offered.push(input as u16);
            }
            self.offers[input] = self.offers[input].min((far as u16, output as u16));
        }
        let any = !self.offered.is_empty();
        for input in self.offered.drain(..) {
            let (_, output) = std::mem::replace(&mut self.offers[usize::from(input)], NO_OFFER);
            self.taken.set(usize::from(input), true);
            self.left.retain(|other| *other != output);
            matches.push(Match { input, output });
            if SLIPS && first {
                self.grant[usize::from(output)] = after(usize::from(input), inputs);
            }
            if first || !SLIPS {
                self.accept[usize::from(input)] = after(usize::from(output), outputs);
            }
        }
        any
    }
}

/// iSLIP at one switch.
///
/// In a round each output that is free grants the request whose input is first from its pointer on, and each input accepts the grant whose
/// output is first from its own. Pointers move one beyond what was accepted, and only for what was accepted in the first round: so no
/// connection starves, and under load the pointers of outputs come apart, until each grants another input.
///
/// Source: iSLIP §II.B, §V. Deviation: none here; that packets cross as a whole, at any time, is the switch's.
#[derive(Clone, Debug)]
pub struct Islip {
    iterations: u32,
    pointers: Pointers<true>,
}

impl Arbiter for Islip {
    type Params = IslipParams;

    fn new(params: &IslipParams, inputs: usize, outputs: usize) -> Self {
        Islip { iterations: params.iterations, pointers: Pointers::new(inputs, outputs) }
    }

    fn arbitrate(&mut self, requests: &Requests, matches: &mut Vec<Match>) {
        for i in 0..self.iterations {
            if !self.pointers.round(requests, i == 0, matches) {
                break;
            }
        }
    }
}
