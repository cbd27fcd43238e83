//! Mechanisms: what a switch does beyond forwarding, queueing and marking.
//!
//! A mechanism is a state machine at one switch. The switch runs its hooks along a packet's way: route → offer →
//! refusal or departure → drop; when a port's wire is free; when a message of its own kind arrives; when its timer expires. A
//! hook sees the envelope of the packet and the queues of its own switch, and answers by a [`Verdict`]; what else shall happen it
//! writes into [`Effects`], which are carried out after it. So nothing that it does reaches beyond its switch except by packets:
//! `seam.rs`.
//!
//! A mechanism is one file with its parameters, its state and its [`Mechanism`], one line in the registry below, and one page
//! in docs/switch.

mod around;
mod dibs;
mod int;
mod pabo;
mod pdn;
mod pfc;
pub(crate) mod rcm;
pub(crate) mod rimm;
mod seam;
#[cfg(test)]
pub(crate) mod testing;
mod trimming;
mod vertigo;

pub use around::{Surroundings, TransportInUse};
pub use dibs::{DibsCounts, DibsParams};
pub use int::{IntCounts, IntParams};
pub use pabo::{Exponential, Growth, Linear, PaboCounts, PaboParams};
pub use pdn::{NoticeCounts, Operations, PdnParams};
pub use pfc::{DynamicXoff, LossyPool, PfcCounts, PfcParams, StaticXoff, StormAction, Watchdog, Xoff};
pub use rcm::{Decrease, RcmCounts, RcmParams, Recognise, WhenIdle};
pub use rimm::{
    AlertBy, DrainedParams, FlowletGap, GiveUpWhen, Hops, Neighbour, Release, RimmCounts, RimmParams, UnorderedParams,
};
pub use seam::{
    message_frame, Arrival, Dropped, Effect, Effects, Hooks, Message, Node, PortNo, PortSite, Refused, Sent, Site, Turn, Verdict,
};
pub use trimming::{Cut, TrimCounts, TrimmingParams};
pub use vertigo::{ServeBy, VertigoCounts, VertigoParams};

pub(crate) use seam::{longest, names_it, Mechanism};

use crate::{DropReason, ExpressParams, Pause};
use fanin_packet::{Control, Envelope, PacketId, Shim, Signal, Signals};
use fanin_params::{params, CounterDef, Counters, Cx, Ground, Trial};
use fanin_units::{Amount, Bytes};

/// A group of counters: its name in summary.json, what it is about, and its counters with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountGroup {
    pub name: &'static str,
    pub doc: &'static str,
    pub counters: Vec<(&'static CounterDef, u64)>,
}

impl CountGroup {
    /// The group of some counters.
    pub fn of<C: Counters>(counts: &C) -> CountGroup {
        CountGroup { name: C::GROUP, doc: C::DOC, counters: C::defs().iter().zip(counts.values()).collect() }
    }
}

/// What is known of a mechanism that need not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MechanismKind {
    /// Its key among the scenario's mechanisms.
    pub key: &'static str,
    /// What it lets hosts know.
    pub signals: Signals,
    /// Whether it defines messages.
    pub sends_messages: bool,
    /// Whether these pause hosts, and hosts switches.
    pub pauses_hosts: bool,
    /// Its counters, all zero.
    pub counts: CountGroup,
    /// Largest values that it keeps.
    pub peaks: &'static [CounterDef],
}

/// Refuses a second mechanism that puts headers into frames.
fn one_header(first: Option<&str>, second: &str, cx: &mut Cx) {
    if let Some(first) = first {
        let message = format!("puts headers into frames, as {first} does, and a frame has one at most");
        let accepted = format!("either {first} or {second}");
        cx.key(second, |cx| cx.error(None, message, Some(accepted)).severity);
    }
}

macro_rules! registry {
    ($( $(#[doc = $doc:expr])* $key:ident => $name:ident($params:ty, $state:ty), )*) => {
        params! {
            /// Mechanisms of switches beyond forwarding, queueing and marking; each mechanism whose table is present is
            /// enabled.
            pub struct Mechanisms {
                $( $(#[doc = $doc])* pub $key: Option<$params>; )*
            }
        }

        /// A mechanism's state at one switch.
        #[derive(Debug)]
        pub enum MechanismState {
            $( $(#[doc = $doc])* $name(Box<$state>), )*
        }

        impl Mechanisms {
            /// None runs.
            pub const NONE: Mechanisms = Mechanisms { $( $key: None, )* };

            /// Each as it is tried on a scenario.
            pub fn trials(at: &Ground) -> Vec<(Trial, Signals)> {
                vec![$( {
                    let own = (format!("switch.mechanisms.{}", stringify!($key)), "{}".to_string());
                    let authors = <$state as Mechanism>::authors(at);
                    let trial = Trial::new("switch.mechanisms", stringify!($key), &[$($doc),*], own, authors);
                    (trial, <$state as Mechanism>::SIGNALS)
                }, )*]
            }

            /// Memory that those that run at a switch take there; `None`: that of one of them is not known.
            pub fn memory(&self, site: &Site) -> Option<Bytes> {
                let mut sum = Bytes(0);
                $(
                    if let Some(params) = self.$key.as_ref().filter(|params| <$state as Mechanism>::runs_at(params, &site.name)) {
                        sum += <$state as Mechanism>::memory(params, site)?;
                    }
                )*
                Some(sum)
            }

            /// Those that run at a switch.
            pub fn at(&self, site: &Site) -> Vec<MechanismState> {
                let mut found = Vec::new();
                $(
                    let state = self.$key.as_ref().and_then(|params| <$state as Mechanism>::new(params, site));
                    found.extend(state.map(|state| MechanismState::$name(Box::new(state))));
                )*
                found
            }

            /// The keys of those that run at a switch of this name.
            pub fn keys_at(&self, switch: &str) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $(
                    if self.$key.as_ref().is_some_and(|params| <$state as Mechanism>::runs_at(params, switch)) {
                        keys.push(stringify!($key));
                    }
                )*
                keys
            }

            /// Reports what parameters cannot show to be wrong by themselves.
            pub fn check(&self, around: &Surroundings<'_>, cx: &mut Cx) {
                let mut with_headers = None;
                $(
                    if self.$key.is_some() && <$state as Mechanism>::HEADERS {
                        one_header(with_headers, stringify!($key), cx);
                        with_headers = Some(stringify!($key));
                    }
                )*
                $(
                    if let Some(params) = &self.$key {
                        cx.key(stringify!($key), |cx| <$state as Mechanism>::check(params, around, cx));
                    }
                )*
            }

            /// Whether one may drop packets of one of these classes for want of room, or by design.
            pub fn drop_any_of(&self, classes: &[u8]) -> bool {
                let mut drops = false;
                $( drops |= self.$key.as_ref().is_some_and(|params| <$state as Mechanism>::drops(params, classes)); )*
                drops
            }

            /// The largest frame that may have a message at its end; `None` where no frame has.
            pub fn largest_frame(&self) -> Option<Bytes> {
                let mut all = None;
                $( all = all.max(self.$key.as_ref().and_then(<$state as Mechanism>::largest_frame)); )*
                all
            }

            /// Bytes that their headers add to a frame at most.
            pub fn header_bytes(&self) -> u16 {
                let mut most = 0;
                $( if self.$key.is_some() { most = most.max(<$state as Mechanism>::HEADER_BYTES); } )*
                most
            }

            /// The key of the one that puts headers into frames; `None` where none does.
            pub fn with_headers(&self) -> Option<&'static str> {
                $( if self.$key.is_some() && <$state as Mechanism>::HEADERS { return Some(stringify!($key)); } )*
                None
            }

            /// The header that hosts put into each frame that they send.
            pub fn host_header(&self) -> Option<fn(&Sent) -> Shim> {
                $( if let (Some(_), Some(header)) = (&self.$key, <$state as Mechanism>::HOST_HEADER) { return Some(header); } )*
                None
            }

            /// Amounts of their parameters, for what they count.
            pub fn amounts(&self) -> Vec<Amount> {
                let mut all = Vec::new();
                $( all.extend(self.$key.iter().flat_map(<$state as Mechanism>::amounts)); )*
                all
            }

            /// The keys of those that cannot run at combined input- and output-queued switches.
            pub fn not_at_combined(&self) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $( if self.$key.is_some() && !<$state as Mechanism>::AT_COMBINED { keys.push(stringify!($key)); } )*
                keys
            }

            /// The keys of all that can.
            pub fn that_run_at_combined() -> Vec<&'static str> {
                let mut keys = Vec::new();
                $( if <$state as Mechanism>::AT_COMBINED { keys.push(stringify!($key)); } )*
                keys
            }

            /// Whether ports write telemetry into frames.
            pub fn telemetry(&self) -> bool {
                false $( || self.$key.is_some() && <$state as Mechanism>::TELEMETRY )*
            }

            /// Whether one of them records what it makes of ports.
            pub fn states(&self) -> bool {
                false $( || self.$key.is_some() && <$state as Mechanism>::STATES )*
            }

            /// The key of the mechanism that would let them.
            pub fn that_writes_telemetry() -> Option<&'static str> {
                let mut keys = [$( <$state as Mechanism>::TELEMETRY.then_some(stringify!($key)), )*].into_iter().flatten();
                keys.next()
            }

            /// The classes whose packets they keep from being dropped for want of room, a bit each.
            pub fn lossless(&self) -> u8 {
                let mut all = 0;
                $( all |= self.$key.as_ref().map_or(0, <$state as Mechanism>::lossless); )*
                all
            }

            /// The memory of a switch in which packets are counted; `None` where nothing counts them.
            pub fn packet_memory(&self) -> Option<Bytes> {
                let mut least: Option<Bytes> = None;
                $(
                    let memory = self.$key.as_ref().and_then(<$state as Mechanism>::packet_memory);
                    least = [least, memory].into_iter().flatten().min();
                )*
                least
            }

            /// The keys of the mechanisms that may do so.
            pub fn that_keep_all() -> Vec<&'static str> {
                let mut keys = Vec::new();
                $( if <$state as Mechanism>::KEEPS_ALL { keys.push(stringify!($key)); } )*
                keys
            }

            /// What they let hosts know.
            pub fn signals(&self) -> Signals {
                let mut all = Signals::NONE;
                $( if self.$key.is_some() { all = all.with(<$state as Mechanism>::SIGNALS); } )*
                all
            }

            /// The keys of the mechanisms that would let hosts know this.
            pub fn that_signal(signal: Signals) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $( if <$state as Mechanism>::SIGNALS.has(signal) { keys.push(stringify!($key)); } )*
                keys
            }

            /// All mechanisms, in order of the registry.
            pub fn all() -> Vec<MechanismKind> {
                vec![$( MechanismKind {
                    key: stringify!($key),
                    signals: <$state as Mechanism>::SIGNALS,
                    sends_messages: !<$state as Mechanism>::ETHER_TYPES.is_empty(),
                    pauses_hosts: <$state as Mechanism>::ask(&Pause::default()).is_some(),
                    counts: CountGroup::of(&<<$state as Mechanism>::Counts as Default>::default()),
                    peaks: <$state as Mechanism>::PEAKS,
                }, )*]
            }

            /// What a host makes of a message, by its EtherType; `None` where no mechanism defines it. With it the name of
            /// the mechanism's group of counters.
            pub fn signal(control: &Control, length: u8) -> Option<(&'static str, Signal)> {
                $(
                    if <$state as Mechanism>::ETHER_TYPES.contains(&control.ether_type) {
                        let group = <<$state as Mechanism>::Counts as Counters>::GROUP;
                        return Some((group, <$state as Mechanism>::signal(control.body(length))));
                    }
                )*
                None
            }
        }

        impl Mechanisms {
            /// What a message asks of a host's NIC; `None`: it is for an endpoint, or nobody's.
            pub fn pause(control: &Control, length: u8) -> Option<Pause> {
                $(
                    if <$state as Mechanism>::ETHER_TYPES.contains(&control.ether_type) {
                        return <$state as Mechanism>::pause(control.body(length));
                    }
                )*
                None
            }
        }

        impl Mechanisms {
            /// The message by which a host's NIC asks its switch to pause; `None`: no mechanism has such messages.
            pub fn ask(pause: &Pause) -> Option<Message> {
                None $( .or_else(|| <$state as Mechanism>::ask(pause)) )*
            }
        }

        impl MechanismState {
            pub fn hooks(&self) -> Hooks {
                match self { $( Self::$name(m) => m.hooks(), )* }
            }

            /// The largest frame that a port has to ask it about before it is offered; zero where it wants to know of none.
            pub fn offered_up_to(&self) -> u16 {
                if self.hooks().any(Hooks::BEFORE_PORTS) {
                    match self { $( Self::$name(m) => m.offered_up_to(), )* }
                } else {
                    0
                }
            }

            pub fn express(&self) -> Option<ExpressParams> {
                match self { $( Self::$name(m) => m.express(), )* }
            }

            #[inline]
            pub fn is_express(&self, envelope: &Envelope) -> bool {
                match self { $( Self::$name(m) => m.is_express(envelope), )* }
            }

            /// Its key among the scenario's mechanisms.
            pub fn key(&self) -> &'static str {
                match self { $( Self::$name(_) => stringify!($key), )* }
            }

            pub fn counts(&self) -> CountGroup {
                match self { $( Self::$name(m) => CountGroup::of(&m.counts()), )* }
            }

            /// Largest values so far, each with what it is.
            pub fn peaks(&self) -> Vec<(&'static CounterDef, u64)> {
                match self { $( Self::$name(m) => <$state as Mechanism>::PEAKS.iter().zip(m.peaks()).collect(), )* }
            }

            pub fn by_reason(&self) -> Vec<(&'static str, u64)> {
                match self { $( Self::$name(m) => m.by_reason(), )* }
            }

            pub fn breaks_deadlocks(&self) -> bool {
                match self { $( Self::$name(m) => m.breaks_deadlocks(), )* }
            }

            pub fn holds_for(&self, port: PortNo, class: u8) -> bool {
                match self { $( Self::$name(m) => m.holds_for(port, class), )* }
            }

            pub fn waits_behind(&self, from: PortNo, class: u8) -> Vec<PortNo> {
                match self { $( Self::$name(m) => m.waits_behind(from, class), )* }
            }

            pub fn peak(&self) -> Option<(PortNo, Bytes)> {
                match self { $( Self::$name(m) => m.peak(), )* }
            }

            /// Records of telemetry that a frame may hold behind its switch.
            pub fn telemetry(&self) -> usize {
                match self { $( Self::$name(m) => m.telemetry(), )* }
            }

            pub fn held(&self) -> Vec<PacketId> {
                match self { $( Self::$name(m) => m.held(), )* }
            }

            pub fn messages(&self) -> u64 {
                match self { $( Self::$name(m) => m.messages(), )* }
            }

            pub fn signals(&self) -> Signals {
                match self { $( Self::$name(_) => <$state as Mechanism>::SIGNALS, )* }
            }

            /// Whether it defines messages.
            pub fn sends_messages(&self) -> bool {
                match self { $( Self::$name(_) => !<$state as Mechanism>::ETHER_TYPES.is_empty(), )* }
            }

            /// Whether its messages pause hosts.
            pub fn pauses_hosts(&self) -> bool {
                match self { $( Self::$name(_) => <$state as Mechanism>::ask(&Pause::default()).is_some(), )* }
            }

            pub fn owns(&self, ether_type: u16) -> bool {
                match self { $( Self::$name(_) => <$state as Mechanism>::ETHER_TYPES.contains(&ether_type), )* }
            }

            pub fn on_route(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, to: PortNo, fx: &mut Effects) -> Verdict {
                match self { $( Self::$name(m) => m.on_route(node, p, to, fx), )* }
            }

            pub fn on_offer(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, fx: &mut Effects) -> Verdict {
                match self { $( Self::$name(m) => m.on_offer(node, p, port, fx), )* }
            }

            pub fn on_taken(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, fx: &mut Effects) -> Verdict {
                match self { $( Self::$name(m) => m.on_taken(node, p, port, fx), )* }
            }

            pub fn on_crossing(&mut self, node: &mut dyn Node, packet: PacketId, from: PortNo, to: PortNo, fx: &mut Effects) {
                match self { $( Self::$name(m) => m.on_crossing(node, packet, from, to, fx), )* }
            }

            pub fn on_refusal(&mut self, node: &mut dyn Node, refused: &mut Refused<'_>, fx: &mut Effects) -> Verdict {
                match self { $( Self::$name(m) => m.on_refusal(node, refused, fx), )* }
            }

            pub fn on_displaced(
                &mut self,
                node: &mut dyn Node,
                p: &mut Arrival<'_>,
                port: PortNo,
                for_detoured: bool,
                fx: &mut Effects,
            ) -> Verdict {
                match self { $( Self::$name(m) => m.on_displaced(node, p, port, for_detoured, fx), )* }
            }

            pub fn rank(&self, envelope: &Envelope, shim: Option<&Shim>) -> u32 {
                match self { $( Self::$name(m) => m.rank(envelope, shim), )* }
            }

            pub fn on_drop(&mut self, node: &mut dyn Node, dropped: &Dropped<'_>, fx: &mut Effects) {
                match self { $( Self::$name(m) => m.on_drop(node, dropped, fx), )* }
            }

            #[inline(always)]
            pub fn kept(&self, from: Option<PortNo>, port: PortNo, fetch: impl Fn(*const u8)) {
                match self { $( Self::$name(m) => m.kept(from, port, fetch), )* }
            }

            pub fn on_departure(&mut self, port: PortNo, envelope: &Envelope) -> Option<Message> {
                match self { $( Self::$name(m) => m.on_departure(port, envelope), )* }
            }

            pub fn on_egress(&mut self, node: &mut dyn Node, packet: PacketId, port: PortNo, fx: &mut Effects) {
                match self { $( Self::$name(m) => m.on_egress(node, packet, port, fx), )* }
            }

            pub fn on_departed(&mut self, node: &mut dyn Node, packet: PacketId, fx: &mut Effects) {
                match self { $( Self::$name(m) => m.on_departed(node, packet, fx), )* }
            }

            pub fn on_lost(&mut self, shim: &Shim, reason: DropReason) {
                match self { $( Self::$name(m) => m.on_lost(shim, reason), )* }
            }

            pub fn on_turn(&mut self, node: &mut dyn Node, port: PortNo, data: bool, fx: &mut Effects) -> Turn {
                match self { $( Self::$name(m) => m.on_turn(node, port, data, fx), )* }
            }

            pub fn waits(&self, port: PortNo) -> bool {
                match self { $( Self::$name(m) => m.waits(port), )* }
            }

            pub fn on_message(&mut self, node: &mut dyn Node, from: PortNo, message: &Message, fx: &mut Effects) {
                match self { $( Self::$name(m) => m.on_message(node, from, message, fx), )* }
            }

            pub fn on_timer(&mut self, node: &mut dyn Node, fx: &mut Effects) {
                match self { $( Self::$name(m) => m.on_timer(node, fx), )* }
            }

            pub fn loses(&mut self, port: PortNo) -> bool {
                match self { $( Self::$name(m) => m.loses(port), )* }
            }
        }
    };
}

// Hooks run in this order, up to the first verdict that is not `Pass`: what changes frames comes before what keeps them.
registry! {
    /// In-band network telemetry: ports write queue, bytes sent, time and rate into frames. Off if absent.
    int => Int(IntParams, int::Int),
    /// Packet drop notification: the sender of a dropped packet is notified at once. Off if absent.
    pdn => Pdn(PdnParams, pdn::Pdn),
    /// Priority flow control: a neighbour whose packets occupy too much memory is paused. Off if absent.
    pfc => Pfc(PfcParams, pfc::Pfc),
    /// RIMM: packets for a queue that is too long take a detour by a neighbour. Off if absent.
    rimm => Rimm(RimmParams, rimm::Rimm),
    /// PABO: packets for a growing queue return to the switch upstream. Off if absent.
    pabo => Pabo(PaboParams, pabo::Pabo),
    /// DIBS: packets that find no room take another port, at random. Off if absent.
    dibs => Dibs(DibsParams, dibs::Dibs),
    /// Vertigo: without room, the packet whose flow has most left to send takes another port. Off if absent.
    vertigo => Vertigo(VertigoParams, vertigo::Vertigo),
    /// Trimming: packets that find no room lose their payload instead of being dropped. Off if absent.
    trimming => Trimming(TrimmingParams, trimming::Trimming),
    /// RCM: flows that cause congestion are held at the ports of its region, and others change their path. Off if absent.
    rcm => Rcm(RcmParams, rcm::Rcm),
}
