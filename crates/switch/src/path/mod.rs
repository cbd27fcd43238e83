//! Path choice: which of several equal-cost links a packet takes.

mod by_destination;
mod drill;
mod ecmp;
mod flowlet;
mod hash;
mod round_robin;
mod spray;

pub use by_destination::ByDestinationParams;
pub use drill::DrillParams;
pub use ecmp::{ecmp, Ecmp};
pub use flowlet::FlowletParams;
pub use hash::five_tuple_hash;
pub(crate) use hash::{mix32, reduce};
pub use round_robin::RoundRobinParams;
pub use spray::Spray;

use crate::PortView;
use fanin_packet::Envelope;
use fanin_params::{choice, Ground, Setting, Trial};
use fanin_units::{Bytes, HostId, Stream, Time};

/// Links that a packet may take, as a path choice sees them.
pub trait Links {
    /// Number of links.
    fn count(&self) -> usize;

    /// Number of one of the links, which no other link has.
    fn number(&self, i: usize) -> u32;

    /// Queue of a link's port.
    fn queue(&mut self, i: usize) -> PortView;
}

/// A path-choice policy's state at one switch.
pub(crate) trait Chooser: Sized {
    /// Parameters of the policy.
    type Params;

    /// True if packets of a flow take several paths, whatever the time between them, so that they may overtake each other.
    const PER_PACKET: bool = false;

    /// Further settings of a scenario in which the path choice is tried: those of its authors.
    fn authors(_at: &Ground) -> Vec<Setting> {
        Vec::new()
    }

    /// Memory of the policy at one switch; `None`: not known.
    fn memory(_params: &Self::Params) -> Option<Bytes> {
        None
    }

    /// The state at the start of a run.
    fn new(params: &Self::Params) -> Self;

    /// Link that packets to `dst` with this hash of their 5-tuple take, now and later, if nothing else decides it: one of `0..n`.
    /// Routes are settled by it when flows start.
    #[inline(always)]
    fn foresee(&self, _dst: HostId, _hash: u32, _n: usize, _switch_seed: u32) -> Option<usize> {
        None
    }

    /// Chooses one of the links for a packet; gives its index.
    fn pick(&mut self, now: Time, p: &Envelope, links: &mut impl Links, switch_seed: u32, rng: &mut Stream) -> usize;
}

macro_rules! registry {
    ($( $(#[doc = $doc:expr])* $kind:literal => $name:ident($params:ty, $state:ty), )*) => {
        choice! {
            /// Choice among several shortest paths.
            pub enum PathChoice {
                $( $(#[doc = $doc])* $kind => $name($params), )*
            }
        }

        impl PathChoice {
            /// One trial for each path choice.
            pub fn trials(at: &Ground) -> Vec<Trial> {
                vec![$( {
                    let own = ("switch.routing".to_string(), format!("{:?}", $kind));
                    Trial::new("switch.routing", $kind, &[$($doc),*], own, <$state as Chooser>::authors(at))
                }, )*]
            }

            /// True if packets of a flow take several paths, whatever the time between them.
            pub fn per_packet(&self) -> bool {
                match self { $( PathChoice::$name(_) => <$state as Chooser>::PER_PACKET, )* }
            }

            /// Memory of the path choice at one switch; `None`: not known.
            pub fn memory(&self) -> Option<Bytes> {
                match self { $( PathChoice::$name(params) => <$state as Chooser>::memory(params), )* }
            }
        }

        /// The state of a path-choice policy at one switch.
        #[derive(Clone, Debug)]
        pub enum PathChooser {
            $( $(#[doc = $doc])* $name($state), )*
        }

        impl PathChooser {
            /// The state at the start of a run.
            pub fn new(choice: &PathChoice) -> Self {
                match choice { $( PathChoice::$name(params) => PathChooser::$name(<$state as Chooser>::new(params)), )* }
            }

            /// Link that packets to `dst` with this hash take, if nothing else decides it.
            #[inline(always)]
            pub fn foresee(&self, dst: HostId, hash: u32, n: usize, switch_seed: u32) -> Option<usize> {
                match self { $( PathChooser::$name(state) => state.foresee(dst, hash, n, switch_seed), )* }
            }

            /// The link that `p` takes; `switch_seed` is the per-switch ECMP hash seed, `rng` the
            /// switch's own stream.
            #[inline(always)]
            pub fn pick(&mut self, now: Time, p: &Envelope, links: &mut impl Links, switch_seed: u32, rng: &mut Stream) -> usize {
                match self { $( PathChooser::$name(state) => state.pick(now, p, links, switch_seed, rng), )* }
            }
        }
    };
}

registry! {
    /// ECMP: per flow, by a hash of the 5-tuple.
    "ecmp" => Ecmp(Ecmp, ecmp::ByHash),
    /// Spraying: per packet, at random.
    "spray" => Spray(Spray, spray::AtRandom),
    /// Round robin: per packet, in turn for each destination.
    "round_robin" => RoundRobin(RoundRobinParams, round_robin::InTurn),
    /// Flowlets: a flow that has paused for longer than the gap draws a new path.
    "flowlet" => Flowlet(FlowletParams, flowlet::Flowlets),
    /// DRILL(d, m): each packet takes the shortest queue among d links drawn at random and the m best of the last
    /// comparison. Source: DRILL §3.2.
    "drill" => Drill(DrillParams, drill::Drill),
    /// Per destination: all packets to a host take the same link of a switch.
    "by_destination" => ByDestination(ByDestinationParams, by_destination::ByDestination),
}

#[cfg(test)]
mod tests;
