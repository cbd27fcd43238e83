//! Mechanisms: functions of a switch beyond forwarding, queueing and marking.
//!
//! A mechanism is a state machine at one switch. The switch runs its hooks along a packet's way: route → offer →
//! refusal or departure → drop; when a port's wire is free; when a message of its own kind arrives; when its timer expires. A
//! hook sees the envelope of the packet and the queues of its own switch, and answers by a [`Verdict`]; what else shall happen it
//! writes into [`Effects`], which are carried out after it. So nothing that it does reaches beyond its switch except by packets.
//! What all mechanisms have is in `api.rs`, what only some have in `capability.rs`.
//!
//! A mechanism is one file with its parameters, its state and its [`Mechanism`], one line in the registry below, and one page
//! in docs/switch.

mod api;
mod capability;
mod context;
mod dibs;
mod hooks;
mod int;
mod node;
mod pabo;
pub(crate) mod pdn;
mod pfc;
pub(crate) mod rcm;
mod registry;
pub(crate) mod rimm;
mod site;
#[cfg(test)]
pub(crate) mod testing;
mod trimming;
mod verdict;
mod vertigo;

pub use api::{Claims, Headers, Messages, PauseFrames, Profile, Sent, Strays};
pub use capability::*;
pub use context::{Context, Frames, Hosts, Network, Retries, Traffic, TransportInUse};
pub use dibs::{DibsCounts, DibsParams};
pub use hooks::Hooks;
pub use int::{IntCounts, IntParams};
pub use node::Node;
pub use pabo::{Exponential, Growth, Linear, PaboCounts, PaboParams};
pub use pdn::{NoticeCounts, Operations, PdnParams};
pub use pfc::{DynamicXoff, LossyPool, PfcCounts, PfcParams, StaticXoff, StormAction, Watchdog, Xoff};
pub use rcm::{Decrease, LocalFlag, RcmCounts, RcmParams, Recognise, WhenIdle};
pub use registry::{CountGroup, MechanismKind};
pub use rimm::{
    AlertBy, DrainedParams, FlowletGap, GiveUpWhen, Hops, Neighbour, Release, RimmCounts, RimmParams, UnorderedParams,
};
pub use site::{PortNo, PortSite, Site};
pub use trimming::{Cut, TrimCounts, TrimmingParams};
pub use verdict::{message_frame, Arrival, Dropped, Effect, Effects, Message, Refused, Turn, Verdict};
pub use vertigo::{ServeBy, VertigoCounts, VertigoParams};

pub(crate) use api::Mechanism;
pub(crate) use site::{longest, names_it};

use capability::provide;
use fanin_params::params;
use registry::{registry, Set, Tuned};

// Hooks run in this order, up to the first verdict that is not `Pass`: what changes frames comes before what keeps them.
registry! { $
    /// In-band network telemetry: ports write queue, bytes sent, time and rate into frames. Off if absent.
    int => Int(IntParams, int::Int): [Telemetry],
    /// Packet drop notification: the sender of a dropped packet is notified at once. Off if absent.
    pdn => Pdn(PdnParams, pdn::Pdn): [Sends, Attaches, Listens, Peaks],
    /// Priority flow control: a neighbour whose packets occupy too much memory is paused. Off if absent.
    pfc => Pfc(PfcParams, pfc::Pfc): [PacketMemory, Listens, Timed, Peaks],
    /// RIMM: packets for a queue that is too long take a detour by a neighbour. Off if absent.
    rimm => Rimm(RimmParams, rimm::Rimm): [Watches, Clones, Peaks],
    /// PABO: packets for a growing queue return to the switch upstream. Off if absent.
    pabo => Pabo(PaboParams, pabo::Pabo): [Peaks],
    /// DIBS: packets that find no room take another port, at random. Off if absent.
    dibs => Dibs(DibsParams, dibs::Dibs): [],
    /// Vertigo: without room, the packet whose flow has most left to send takes another port. Off if absent.
    vertigo => Vertigo(VertigoParams, vertigo::Vertigo): [Ranks, Displaces],
    /// Trimming: packets that find no room lose their payload instead of being dropped. Off if absent.
    trimming => Trimming(TrimmingParams, trimming::Trimming): [Overtakes, Displaces, Sends],
    /// RCM: flows that cause congestion are held at the ports of its region, and others change their path. Off if absent.
    rcm => Rcm(RcmParams, rcm::Rcm): [Sends, Holds, Watches, Listens, Timed, Peaks],
}
