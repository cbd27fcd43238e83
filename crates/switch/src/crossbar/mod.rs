//! The crossbar of a combined input- and output-queued switch: which free inputs send to which free outputs.
//!
//! An arbiter is a pure state machine over requests: an input requests an output when a packet waits for that in one of its virtual
//! output queues. What it answers is a matching. Who moves packets, and when arbiters are asked, is the caller's. docs/switch/combined.md.

mod islip;
mod round_robin;

pub use islip::IslipParams;
pub use round_robin::RoundRobinArbiterParams;

use fanin_params::{choice, params};
use fanin_units::Bytes;

params! {
    /// Output-queued: packets wait at their output ports only, as if the switch could move all of them there at once.
    pub struct OutputQueued { }
}

params! {
    /// Combined input- and output-queued: packets wait at the input, in a virtual output queue for each input, output and
    /// class, cross a crossbar whole, and wait at their output port. Source: CIOQ.
    pub struct Combined {
        /// Buffer of each virtual output queue; what does not fit is dropped. Source: RCM §4.1 (100 KB).
        pub voq: Bytes = Bytes(100_000), in Bytes(64)..=Bytes(4_000_000_000);
        /// Buffer of each output port and class. Nothing is dropped there: an output without room for a largest frame gets
        /// no packet. Source: RCM §4.1 (100 KB).
        pub output: Bytes = Bytes(100_000), in Bytes(64)..=Bytes(4_000_000_000);
        /// Speedup: rate of each crossbar input and output, over that of the fastest port. Source: CIOQ (2 - 1/N is needed,
        /// and enough, to behave as an output-queued switch of N ports).
        pub speedup: f64 = 2.0, in 1.0..=64.0;
        /// Scheduler that matches inputs with outputs of the crossbar.
        pub scheduler: Arbitration = Arbitration::Islip(IslipParams { iterations: 3 });
    }
}

impl Default for Combined {
    fn default() -> Self {
        fanin_params::defaults()
    }
}

choice! {
    /// Architecture of a switch: the places where packets wait.
    pub enum Architecture {
        /// Output-queued: packets wait at output ports only.
        "output_queued" => OutputQueued(OutputQueued),
        /// Combined input- and output-queued: packets wait at the input, in a virtual output queue for each input, output
        /// and class, cross a crossbar whole, and wait at their output port. Source: CIOQ.
        "combined" => Combined(Combined),
    }
}

impl Architecture {
    /// The settings of a combined switch, where switches are that.
    pub fn combined(&self) -> Option<&Combined> {
        match self {
            Architecture::Combined(combined) => Some(combined),
            Architecture::OutputQueued(_) => None,
        }
    }
}

/// A set of inputs of a crossbar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs(Vec<u64>);

impl Inputs {
    /// Empty set of `inputs`.
    pub fn none(inputs: usize) -> Self {
        Inputs(vec![0; inputs.div_ceil(64)])
    }

    /// Puts an input into the set, or takes it out.
    #[inline]
    pub fn set(&mut self, input: usize, is_in: bool) {
        let (word, bit) = (&mut self.0[input / 64], 1 << (input % 64));
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    #[inline]
    pub fn has(&self, input: usize) -> bool {
        self.0[input / 64] >> (input % 64) & 1 != 0
    }

    /// True if the sets have no input in common.
    #[inline]
    pub fn is_disjoint(&self, other: &Inputs) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & b == 0)
    }

    /// Replaces the set by the inputs that are in one of `these` and in `free`.
    #[inline]
    pub fn set_any_of<'a>(&mut self, these: impl Iterator<Item = &'a Inputs>, free: &Inputs) {
        self.0.fill(0);
        for set in these {
            self.0.iter_mut().zip(&set.0).for_each(|(word, more)| *word |= more);
        }
        self.0.iter_mut().zip(&free.0).for_each(|(word, free)| *word &= free);
    }

    /// First input of the set, from `start` on and then from zero, that is not in `but`.
    #[inline]
    fn next_from(&self, start: usize, but: &Inputs) -> Option<usize> {
        let (first, low) = (start / 64, (1_u64 << (start % 64)) - 1);
        let word = |i: usize| self.0[i] & !but.0[i];
        let found = |i: usize, bits: u64| (bits != 0).then(|| 64 * i + bits.trailing_zeros() as usize);
        found(first, word(first) & !low)
            .or_else(|| (first + 1..self.0.len()).chain(0..first).find_map(|i| found(i, word(i))))
            .or_else(|| found(first, word(first) & low))
    }
}

/// Requests to an arbiter: by output that is free, the free inputs with a packet for it.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Requesting inputs, by output.
    rows: Vec<Inputs>,
    /// Outputs with a row that counts.
    open: Vec<u16>,
}

impl Requests {
    /// Empty requests for a crossbar of this size.
    pub fn new(inputs: usize, outputs: usize) -> Self {
        Requests { rows: vec![Inputs::none(inputs); outputs], open: Vec::new() }
    }

    /// Takes all requests back.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    /// The requests of an output that has none yet: `fill` writes them all. Outputs come in ascending order.
    #[inline]
    pub fn add(&mut self, output: usize, fill: impl FnOnce(&mut Inputs)) {
        debug_assert!(self.open.last().is_none_or(|last| usize::from(*last) < output));
        fill(&mut self.rows[output]);
        self.open.push(output as u16);
    }
}

/// An input and an output that are connected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Match {
    pub input: u16,
    pub output: u16,
}

/// A way to match inputs with outputs.
pub(crate) trait Arbiter: Sized {
    /// Parameters of the arbiter.
    type Params;

    /// Arbiter at the start of a run.
    fn new(params: &Self::Params, inputs: usize, outputs: usize) -> Self;

    /// Connects inputs with outputs that they request, each with one at most.
    fn arbitrate(&mut self, requests: &Requests, matches: &mut Vec<Match>);
}

macro_rules! registry {
    ($( $(#[doc = $doc:expr])* $kind:literal => $name:ident($params:ty, $state:ty), )*) => {
        choice! {
            /// Scheduler of a crossbar, which matches inputs with outputs.
            pub enum Arbitration {
                $( $(#[doc = $doc])* $kind => $name($params), )*
            }
        }

        /// The state of an arbiter at one switch.
        #[derive(Clone, Debug)]
        pub enum CrossbarArbiter {
            $( $(#[doc = $doc])* $name($state), )*
        }

        impl CrossbarArbiter {
            /// Arbiter at the start of a run.
            pub fn new(kind: &Arbitration, inputs: usize, outputs: usize) -> Self {
                match kind {
                    $( Arbitration::$name(params) => CrossbarArbiter::$name(<$state as Arbiter>::new(params, inputs, outputs)), )*
                }
            }

            /// Connects inputs with outputs that they request: `matches` holds them then, and nothing else.
            pub fn arbitrate(&mut self, requests: &Requests, matches: &mut Vec<Match>) {
                matches.clear();
                match self { $( CrossbarArbiter::$name(state) => state.arbitrate(requests, matches), )* }
            }
        }
    };
}

registry! {
    /// iSLIP: request, grant, accept, with round-robin pointers that desynchronise by themselves. Source: iSLIP.
    "islip" => Islip(IslipParams, islip::Islip),
    /// Round-robin matching (RRM): pointers of outputs and inputs move with every grant.
    "round_robin" => RoundRobin(RoundRobinArbiterParams, round_robin::RoundRobin),
}

#[cfg(test)]
mod tests;
