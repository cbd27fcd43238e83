//! Interface of mechanisms: the members that every mechanism has. What only some have are capabilities (`capability.rs`).

use super::{Arrival, Context, Dropped, Effects, Hooks, Message, Node, PortNo, Provides, Refused, Site, Verdict};
use crate::Pause;
use fanin_packet::{Shim, Signal, Signals};
use fanin_params::{CounterDef, Counters, Cx, Ground, Param, Setting};
use fanin_units::{Amount, Bytes};

/// State machine that runs at one switch besides forwarding, queueing and marking.
///
/// Its line in the registry names its capabilities, which are traits of their own. No hook but those here and of these capabilities is
/// called, and of these only the ones that [`Mechanism::hooks`] names.
pub(crate) trait Mechanism: Provides + Sized {
    /// Settings of the mechanism in a scenario.
    type Params: Param;
    /// Counters, which appear in the summary, the report and the reference.
    type Counts: Counters;

    /// Properties that do not depend on settings.
    const PROFILE: Profile = Profile::PLAIN;

    /// Properties that depend on settings.
    fn claims(_params: &Self::Params) -> Claims {
        Claims::default()
    }

    /// Memory of the mechanism at a switch besides the buffers of ports: registers, tables and queues; `None`: not known.
    fn memory(_params: &Self::Params, _site: &Site) -> Option<Bytes> {
        None
    }

    /// Sizes that follow from the settings and a switch, each with a name; those of ports have one name each.
    fn sizes(_params: &Self::Params, _site: &Site) -> Vec<(&'static str, Bytes)> {
        Vec::new()
    }

    /// True if the mechanism runs at the switch of this name.
    fn runs_at(_params: &Self::Params, _switch: &str) -> bool {
        true
    }

    /// Reports problems that show only beside the rest of the scenario.
    fn check(_params: &Self::Params, _context: &Context<'_>, _cx: &mut Cx) {}

    /// State at the start of a run; `None` at a switch where the mechanism does not run.
    fn new(params: &Self::Params, site: &Site) -> Option<Self>;

    /// Hooks of the mechanism that the switch has to run.
    fn hooks(&self) -> Hooks;

    /// Counters of the mechanism so far.
    fn counts(&self) -> Self::Counts;

    /// Reasons for which the mechanism acted, each with its count, where they are worth distinguishing.
    fn by_reason(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Decides about a packet that has reached the switch with hops left, and would leave by port `to`.
    fn on_route(&mut self, _node: &mut dyn Node, _p: &mut Arrival<'_>, _to: PortNo, _fx: &mut Effects) -> Verdict {
        Verdict::Pass
    }

    /// A packet is about to be enqueued at a port, before admission.
    fn on_offer(&mut self, _node: &mut dyn Node, _p: &mut Arrival<'_>, _port: PortNo, _fx: &mut Effects) -> Verdict {
        Verdict::Pass
    }

    /// A port does not accept a packet.
    fn on_refusal(&mut self, _node: &mut dyn Node, _refused: &mut Refused<'_>, _fx: &mut Effects) -> Verdict {
        Verdict::Pass
    }

    /// A packet was dropped, at a port or before one.
    fn on_drop(&mut self, _node: &mut dyn Node, _dropped: &Dropped<'_>, _fx: &mut Effects) {}

    /// The switch has noticed that the link of a port is down, or works again. What waited for the port is gone before the hook runs; while
    /// it is down, packets are dropped there without a question to mechanisms, and messages for it are lost.
    fn on_link(&mut self, _node: &mut dyn Node, _port: PortNo, _up: bool, _fx: &mut Effects) {}
}

/// Properties of a mechanism that do not depend on its settings.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Signals that the mechanism sends to hosts.
    pub signals: Signals,
    /// Messages between switches, and to hosts.
    pub messages: Option<Messages>,
    /// Headers that the mechanism puts into frames, of which a frame has one at most.
    pub headers: Option<Headers>,
    /// Largest values that the mechanism keeps besides counters ([`super::Peaks`]): the summary shows the largest of all
    /// switches.
    pub peaks: &'static [CounterDef],
    /// True if the mechanism can keep packets from being dropped ([`Claims::lossless`]).
    pub keeps_all: bool,
    /// True if the mechanism can run at combined input- and output-queued switches: it takes no packets that ports refuse, and
    /// there ([`Site::combined`]) it sends none past queues and moves none.
    pub at_combined: bool,
    /// True if the mechanism lets ports write telemetry into frames, of transports that ask for it.
    pub telemetry: bool,
    /// True if the mechanism sends packets to neighbours that send them back, of which it learns by `PortSite::back`.
    pub returns: bool,
    /// True if the mechanism records states of ports ([`super::Effect::State`]).
    pub states: bool,
    /// Further settings of a scenario in which the mechanism is tried: those of its authors, where they are no defaults. What
    /// transports must be told of its signals, they say themselves.
    pub authors: fn(&Ground) -> Vec<Setting>,
}

impl Profile {
    /// Profile of a mechanism that does nothing out of the ordinary.
    pub const PLAIN: Profile = Profile {
        signals: Signals::NONE,
        messages: None,
        headers: None,
        peaks: &[],
        keeps_all: false,
        at_combined: false,
        telemetry: false,
        returns: false,
        states: false,
        authors: |_| Vec::new(),
    };

    /// Bytes of the largest header, EtherType included; zero without headers.
    pub fn header_bytes(&self) -> u16 {
        self.headers.map_or(0, |headers| headers.bytes)
    }

    /// True if messages of this EtherType belong to the mechanism.
    pub fn owns(&self, ether_type: u16) -> bool {
        self.messages.is_some_and(|messages| messages.ether_types.contains(&ether_type))
    }

    /// Pause frames, if the mechanism's messages are such.
    pub fn pauses(&self) -> Option<PauseFrames> {
        self.messages.and_then(|messages| messages.pauses)
    }
}

/// Messages of a mechanism.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    /// EtherTypes of the messages, and of frames that carry one behind a packet of IPv4 or IPv6.
    pub ether_types: &'static [u16],
    /// Reads a message for the endpoint of the flow that it names.
    pub signal: fn(&[u8]) -> Signal,
    /// Pause frames, where the messages are such: for NICs, and not for endpoints.
    pub pauses: Option<PauseFrames>,
}

impl Messages {
    /// Messages between switches only.
    pub const fn of(ether_types: &'static [u16]) -> Messages {
        Messages { ether_types, signal: |_| Signal::Undefined, pauses: None }
    }
}

/// Pause frames on the wire.
#[derive(Clone, Copy, Debug)]
pub struct PauseFrames {
    /// Reads a pause frame; `None`: it is malformed.
    pub read: fn(&[u8]) -> Option<Pause>,
    /// Writes the pause frame by which a NIC asks its switch to pause.
    pub write: fn(&Pause) -> Message,
}

/// Headers that a mechanism puts into frames.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    /// Bytes that headers of the mechanism add to a frame at most, EtherType included. Zero: they go only into frames that have
    /// room for them.
    pub bytes: u16,
    /// Makes the header that hosts put into each frame that they send; switches without the mechanism forward it unchanged.
    pub of_host: Option<fn(&Sent) -> Shim>,
}

/// Facts about a packet that a host sends, for headers that hosts write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Bytes that the sending end still has to send, the packet's payload included; zero for packets without payload.
    pub left: u64,
    /// Number of earlier transmissions of this payload.
    pub again: u32,
}

/// Properties of a mechanism that depend on its settings.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Classes whose packets the mechanism keeps from being dropped for want of room, a bit each.
    pub lossless: u8,
    /// Classes whose packets the mechanism may drop for want of room or by design, a bit each.
    pub drops: u8,
    /// Memory of a switch in which the mechanism counts packets.
    pub packet_memory: Option<Bytes>,
    /// Largest frame that may have a message at its end.
    pub largest_frame: Option<Bytes>,
    /// Amounts among the mechanism's settings, for the unit that they are in.
    pub amounts: Vec<Amount>,
    /// Packets that the mechanism sends to neighbours which lie on no way to their destination, and may send them back.
    pub strays: Strays,
}

/// Packets that a mechanism sends by ports that do not lead to their destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strays {
    /// No packets, or only where `PortSite::back` says that they come back ([`Profile::returns`]).
    #[default]
    None,
    /// Packets for which a port has no room.
    Refused,
    /// Packets that find a queue, whether their port has room or not.
    Queued,
}
