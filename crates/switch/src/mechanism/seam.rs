//! The seam between a switch and its mechanisms: what a mechanism sees, what it answers, and the trait that it implements.

use super::Surroundings;
use crate::{DropReason, ExpressParams, Pause, PortView};
use fanin_packet::{Control, Envelope, Framing, PacketId, Reference, Shim, Signal, Signals};
use fanin_params::{pattern, CounterDef, Counters, Cx, Ground, Param, Setting};
use fanin_units::{Amount, BitRate, Bytes, LinkId, Purpose, Span, Stream, Time};

/// A port of a switch: its place among the switch's links.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PortNo(pub u16);

impl PortNo {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a switch knows of one of its ports from the start.
#[derive(Clone, Debug)]
pub struct PortSite {
    /// Its outgoing link, which names its random streams.
    pub link: LinkId,
    pub rate: BitRate,
    /// Wire bytes of each frame besides its own.
    pub overhead: u16,
    /// Name of the node at the far end.
    pub peer: String,
    /// Whether that is a host.
    pub to_host: bool,
    /// Keys of the mechanisms that run there, if it is a switch.
    pub peer_runs: Vec<&'static str>,
    /// Propagation there and back, and what both ends take from a last bit until they act on the frame.
    pub round_trip: Span,
}

/// What a switch knows of itself from the start.
#[derive(Clone, Debug)]
pub struct Site {
    pub name: String,
    pub ports: Vec<PortSite>,
    /// How packets sit on the wire, without [`Site::trailer`].
    pub framing: Framing,
    /// Bytes of each frame behind the IP packet: room for stamps.
    pub trailer: u16,
    /// Switches that a packet or message may cross.
    pub ttl: u8,
    /// Bytes of a buffer cell.
    pub cell: u32,
    /// No frame of the traffic is larger, whatever switches put into it.
    pub largest_frame: Bytes,
    /// A combined input- and output-queued switch.
    pub combined: bool,
    pub seed: u64,
}

impl Site {
    /// The stream of a mechanism's draws at a port; `salt` differs between mechanisms.
    pub fn stream(&self, salt: u32, port: &PortSite) -> Stream {
        Stream::new(self.seed, Purpose::Mechanism, u64::from(salt) << 32 | u64::from(port.link.0))
    }
}

/// Whether one of the patterns names a node.
pub(crate) fn names_it(patterns: &[String], node: &str) -> bool {
    patterns.iter().any(|wanted| pattern::fits(wanted, node))
}

/// The longest of the queues of a switch's ports, in order of ports; the first of several, none where all are empty.
pub(crate) fn longest(bytes: impl Iterator<Item = u64>) -> Option<(PortNo, Bytes)> {
    let mut most = None;
    for (port, bytes) in (0..).map(PortNo).zip(bytes.map(Bytes)) {
        if bytes > most.map_or(Bytes(0), |(_, most)| most) {
            most = Some((port, bytes));
        }
    }
    most
}

/// Hooks of a mechanism that do something; the others are not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hooks(u32);

impl Hooks {
    pub const NONE: Hooks = Hooks(0);
    pub const ROUTE: Hooks = Hooks(1 << 1);
    pub const OFFER: Hooks = Hooks(1 << 2);
    pub const REFUSAL: Hooks = Hooks(1 << 3);
    pub const DROP: Hooks = Hooks(1 << 4);
    pub const DEPARTURE: Hooks = Hooks(1 << 5);
    /// [`Mechanism::on_turn`].
    pub const TURN: Hooks = Hooks(1 << 6);
    /// It sends messages, and gets those of others of its kind.
    pub const MESSAGES: Hooks = Hooks(1 << 7);
    /// [`Mechanism::on_egress`].
    pub const EGRESS: Hooks = Hooks(1 << 8);
    /// It puts headers into frames, into which ports write what they leave behind ([`Shim::unit`], [`Shim::add_record`]).
    pub const SHIMS: Hooks = Hooks(1 << 9);
    /// It pauses classes of its ports ([`Effect::Gate`]) and NICs of its hosts ([`Mechanism::pause`]).
    pub const GATES: Hooks = Hooks(1 << 10);
    /// [`Mechanism::rank`]: packets of a class leave by rank.
    pub const RANKS: Hooks = Hooks(1 << 11);
    /// [`Mechanism::on_refusal`] also for packets that were detoured to the port; others are not asked about them.
    pub const DETOURED: Hooks = Hooks(1 << 12);
    /// [`Mechanism::on_offer`], but for packets that find their port idle and no class of it paused: those leave at once, and it has
    /// nothing to say of them.
    pub const QUEUE: Hooks = Hooks(1 << 13);
    /// It asks for bytes by the port that they came in by ([`Node::input_bytes`]). With [`Hooks::EGRESS`]. Crossbars know them anyway.
    pub const INPUTS: Hooks = Hooks(1 << 14);
    /// [`Mechanism::on_crossing`].
    pub const CROSSING: Hooks = Hooks(1 << 16);
    /// [`Mechanism::on_departed`].
    pub const DEPARTED: Hooks = Hooks(1 << 15);
    /// Not of a mechanism: the switch is a combined input- and output-queued one, whose ports get packets over its crossbar alone.
    pub const COMBINED: Hooks = Hooks(1 << 17);
    /// Any by which packets are seen before they are offered to a port.
    pub const BEFORE_PORTS: Hooks = Hooks::OFFER.with(Hooks::QUEUE).with(Hooks::RANKS);

    /// Those of the first that are not in the second.
    #[must_use]
    pub const fn without(self, other: Hooks) -> Hooks {
        Hooks(self.0 & !other.0)
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Hooks) -> Hooks {
        Hooks(self.0 | other.0)
    }

    /// Whether one of `other` is in it.
    #[inline(always)]
    pub const fn any(self, other: Hooks) -> bool {
        self.0 & other.0 != 0
    }
}

/// What a hook may ask of its switch.
pub trait Node {
    /// The present.
    fn now(&self) -> Time;

    /// The queue of a port.
    fn view(&mut self, port: PortNo) -> PortView;

    /// Whether the wire of a port is free, so that a packet would leave at once.
    fn is_idle(&mut self, port: PortNo) -> bool {
        self.view(port).is_idle()
    }

    /// A packet that has left its queue, of which [`Mechanism::on_departed`] has not been notified; none: it knows of all that have until now.
    fn next_departed(&mut self) -> Option<PacketId> {
        None
    }

    /// Whether the buffer of a port has room for a packet now, or its wire is free; always where buffers have no bounds. Marking may
    /// still drop it.
    fn has_room(&mut self, _port: PortNo, _envelope: &Envelope) -> bool {
        true
    }

    /// Whether the express queue of a port has room for a frame ([`Mechanism::express`]).
    fn has_express_room(&mut self, _port: PortNo, _frame: u16) -> bool {
        false
    }

    /// The port by which the switch would forward a packet now; `None` where it knows no way. Path choices that keep state
    /// count it as a packet.
    fn route(&mut self, envelope: &Envelope) -> Option<PortNo>;

    /// The ports by which the switch may forward a packet, all at equal cost.
    fn ways(&self, _envelope: &Envelope) -> Vec<PortNo> {
        Vec::new()
    }

    /// Frame bytes in this switch that came in by a port and have not left yet, those that mechanisms hold among them. A packet that
    /// is being offered is none of them yet. At a combined switch those in its virtual output queues alone. Only known with
    /// [`Hooks::INPUTS`].
    fn input_bytes(&self, _port: PortNo) -> u64 {
        0
    }

    /// Frame bytes that are to leave by a port and may: in its queue, and at a combined switch in its virtual output queues and on the
    /// crossbar, those of paused classes left out. Elsewhere only known of ports whose departures are events ([`Effect::Watch`]).
    fn sendable_bytes(&self, _port: PortNo) -> u64 {
        0
    }

    /// Queues of a port, one for each class.
    fn queues(&self, _port: PortNo) -> usize {
        1
    }

    /// Whether a traffic class of a port is paused.
    fn is_paused(&self, _port: PortNo, _class: u8) -> bool {
        false
    }

    /// What the mechanism that counts packets in memory keeps with one, from its wait here until it is gone; zero: nothing.
    fn note(&self, _packet: PacketId) -> u64 {
        0
    }

    /// Keeps that. Zero is due before the packet is elsewhere.
    fn set_note(&mut self, _packet: PacketId, _note: u64) {}

    /// A packet that is here, or is just leaving.
    fn packet(&self, _packet: PacketId) -> Option<Envelope> {
        None
    }

    /// Packets that wait at a port in the queue of a traffic class. Only known of the port that refuses a packet, and of one whose
    /// departures are events ([`Effect::Watch`]).
    fn waiting(&self, _port: PortNo, _class: u8) -> usize {
        0
    }

    /// The one of them at `place`, the first to leave being at zero, with the header in its frame.
    fn waiting_at(&self, _port: PortNo, _class: u8, _place: usize) -> Option<(Envelope, Option<Shim>)> {
        None
    }

    /// Whether the buffer of a port would have room for a packet if frames of these sizes left the queue of its class.
    fn has_room_without(&mut self, port: PortNo, envelope: &Envelope, _frames: &[u16]) -> bool {
        self.has_room(port, envelope)
    }
}

/// A message of a mechanism: alone in a frame, or at the end of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// Where it goes: a node on the way takes it as its own and may send it on. `header` is the length of the body.
    pub envelope: Envelope,
    pub control: Control,
}

impl Message {
    /// Its bytes on the wire, without a frame of its own.
    pub fn body(&self) -> &[u8] {
        self.control.body(self.envelope.header)
    }
}

/// Bytes of a frame with nothing in it but a message of `body` bytes.
pub fn message_frame(framing: &Framing, body: u8) -> u16 {
    (framing.header + u16::from(body)).max(framing.min_frame)
}

/// A packet at a hook.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// What stands for it where it waits.
    pub id: PacketId,
    pub envelope: &'a mut Envelope,
    /// The port that it came in by; `None` where the switch itself made or held it.
    pub from: Option<PortNo>,
    /// The header in its frame, of a switch or of its host; there is one at most. [`Arrival::set_shim`] changes it.
    pub shim: &'a mut Option<Shim>,
}

impl Arrival<'_> {
    /// Puts a header into the frame in the place of the one before it, or takes that off.
    pub fn set_shim(&mut self, shim: Option<Shim>) {
        self.envelope.set_shim(shim.as_ref());
        *self.shim = shim;
    }
}

/// What a hook decides about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The switch goes on as it would without the mechanism.
    Pass,
    Drop(DropReason),
    /// The packet goes onto the wire of its port at once, which must be free. Not at route.
    Send,
    /// The mechanism keeps the packet: it sends it when its turn at a port is there, or by [`Effect::Forward`]. Only at offer.
    Hold,
    /// The packet waits in the express queue of its port, which has room for it and is not idle ([`Mechanism::express`]). Not at route.
    Express,
    /// The packet goes to another port of the switch, whose admission decides anew.
    Detour(PortNo),
    /// A message that the mechanism made by [`Effect::Clone`] ends here. Only at route.
    Take,
    /// This one joins its queue, and those of its class that the mechanism names by [`Effects::displace`] make room: each leaves the queue
    /// and goes to [`Mechanism::on_displaced`]. Only at refusal for want of room, and only where there is room then
    /// ([`Node::has_room_without`]) or they are as large together.
    Displace,
}

/// A packet that a port does not accept.
#[derive(Debug)]
pub struct Refused<'a> {
    pub packet: Arrival<'a>,
    pub port: PortNo,
    pub view: PortView,
    pub reason: DropReason,
    /// For want of room; else marking drops it.
    pub room: bool,
    /// It was detoured to this port, and is dropped if there is no room: a packet is detoured once at a switch.
    pub detoured: bool,
}

/// A packet that was dropped.
#[derive(Clone, Copy, Debug)]
pub struct Dropped<'a> {
    /// What stood for it until now.
    pub packet: PacketId,
    pub envelope: &'a Envelope,
    /// How it can be named to its sender.
    pub reference: Option<Reference>,
    pub reason: DropReason,
}

/// What a mechanism sends when a port's wire is free.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Turn {
    /// Nothing: the scheduler is next.
    Pass,
    /// A packet that it holds. Not at a combined switch, where it has to cross.
    Packet(PacketId),
    /// The first of the express queue, if it is their turn ([`Mechanism::express`]).
    Express,
    /// A message in a frame of its own.
    Message(Message),
}

/// What shall happen besides, in order, after the hook.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Effect {
    /// A packet that the mechanism holds is offered to a port, as if it had been routed there.
    Forward { packet: PacketId, port: PortNo },
    /// A packet that the mechanism holds is dropped.
    Drop { packet: PacketId, port: PortNo, reason: DropReason },
    /// Something of the mechanism waits at a port: [`Mechanism::on_turn`] runs when its wire is free, and
    /// [`Mechanism::on_departure`] for each frame until nothing waits any more.
    Arm(PortNo),
    /// A message leaves by a port in a frame of its own, before everything that waits there.
    Emit { port: PortNo, message: Message },
    /// [`Mechanism::on_timer`] runs then. Earlier timers stay.
    Timer(Time),
    /// Departures of a port are events while packets wait there, so that [`Mechanism::on_egress`] runs for each of them.
    Watch(PortNo),
    /// A packet that the mechanism has just held for a port waits behind what is held for that port: the policy that marks at enqueue
    /// decides about it as if all of that were in the port's queue, or what is of the packet's class where classes have policies of their
    /// own. It drops none of them, and is not asked again when the packet joins that queue.
    Mark { packet: PacketId, port: PortNo },
    /// From now on these classes of a port wait, a bit for each, and all others may send. The frame on the wire is not interrupted.
    Gate { port: PortNo, closed: u8 },
    /// What waits in the queues of these classes of a port is dropped, a bit for each; the classes are paused.
    Flush { port: PortNo, classes: u8, reason: DropReason },
    /// For the record: the neighbour at a port is to pause a class from now on, mostly for packets that wait at `behind`.
    /// `held_up`: that class of `behind` has been paused itself since its queue was last empty.
    Asks { port: PortNo, class: u8, behind: Option<PortNo>, held_up: bool },
    /// For the record: what the mechanism makes of a port from now on. `about`: which side of it; `state` and `degree`: what it says
    /// of that. Rows of states.parquet ([`Mechanism::STATES`]).
    State { port: PortNo, about: &'static str, state: &'static str, degree: u32 },
    /// A message that is forwarded as packets are: the headers of `packet`, and `shim`. It joins the queue of a port as a
    /// packet does, and may be dropped wherever a packet may ([`Mechanism::on_lost`]).
    /// `class`: that of the packet where it is absent.
    Clone { packet: PacketId, port: PortNo, ttl: u8, class: Option<u8>, shim: Shim },
}

/// See [`Effect`].
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Each with the number of its mechanism at the switch.
    pub list: Vec<(u8, Effect)>,
    /// Whose hook runs.
    pub mechanism: u8,
    /// Places of packets that make room, with [`Verdict::Displace`].
    pub displaced: Vec<usize>,
}

impl Effects {
    pub fn push(&mut self, effect: Effect) {
        self.list.push((self.mechanism, effect));
    }

    /// The packet at a place ([`Node::waiting_at`]) makes room for the one that was refused.
    pub fn displace(&mut self, place: usize) {
        self.displaced.push(place);
    }
}

/// What a host knows of a packet that it sends, for headers that hosts write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Bytes that its end still has to send, the packet's payload included; zero for packets without payload.
    pub left: u64,
    /// How often this payload was sent before.
    pub again: u32,
}

/// A mechanism at one switch.
pub(crate) trait Mechanism: Sized {
    /// Its parameters.
    type Params: Param;
    /// What it counts.
    type Counts: Counters;

    /// What it lets hosts know.
    const SIGNALS: Signals = Signals::NONE;
    /// The EtherTypes of its messages, and of frames that carry one behind a packet of IPv4 or IPv6.
    const ETHER_TYPES: &'static [u16] = &[];
    /// Bytes of the largest header that it puts into the frames of all packets, EtherType included; zero: none.
    const HEADER_BYTES: u16 = 0;
    /// Whether it puts headers into frames, of which a frame has one at most.
    const HEADERS: bool = Self::HEADER_BYTES > 0;
    /// The header that hosts put into each frame that they send; switches without the mechanism forward it as it is.
    const HOST_HEADER: Option<fn(&Sent) -> Shim> = None;
    /// Whether it can keep the packets of classes from being dropped ([`Mechanism::lossless`]).
    const KEEPS_ALL: bool = false;
    /// Whether it can run at combined input- and output-queued switches: it takes no packets that ports refuse, and there ([`Site::combined`])
    /// it sends none past queues and moves none between them.
    const AT_COMBINED: bool = false;
    /// Whether it lets ports write telemetry into frames, of transports that ask for it.
    const TELEMETRY: bool = false;
    /// Whether it records what it makes of ports ([`Effect::State`]).
    const STATES: bool = false;
    /// Largest values that it keeps besides its counters: of all switches the largest is shown.
    const PEAKS: &'static [CounterDef] = &[];

    /// What a scenario gets besides its table when it is tried there: what its authors had set, where that is no default. What
    /// transports must be told of its signals, they say themselves.
    fn authors(_at: &Ground) -> Vec<Setting> {
        Vec::new()
    }

    /// Memory that it takes at a switch besides the buffers of ports, in registers, tables and queues of its own; `None`: not known.
    fn memory(_params: &Self::Params, _site: &Site) -> Option<Bytes> {
        None
    }

    /// Whether it runs at a switch of this name.
    fn runs_at(_params: &Self::Params, _switch: &str) -> bool {
        true
    }

    /// Its state at the start of a run; `None` at a switch where it does not run.
    fn new(params: &Self::Params, site: &Site) -> Option<Self>;

    /// The classes whose packets it keeps from being dropped for want of room, a bit each.
    fn lossless(_params: &Self::Params) -> u8 {
        0
    }

    /// The memory of a switch in which it counts packets.
    fn packet_memory(_params: &Self::Params) -> Option<Bytes> {
        None
    }

    /// Reports what parameters cannot show to be wrong by themselves.
    fn check(_params: &Self::Params, _around: &Surroundings<'_>, _cx: &mut Cx) {}

    /// Whether it may drop packets of one of these classes for want of room, or by design.
    fn drops(_params: &Self::Params, _classes: &[u8]) -> bool {
        false
    }

    /// Amounts of its parameters, for what they count.
    fn amounts(_params: &Self::Params) -> Vec<Amount> {
        Vec::new()
    }

    /// The largest frame that may have a message at its end.
    fn largest_frame(_params: &Self::Params) -> Option<Bytes> {
        None
    }

    /// The hooks to run.
    fn hooks(&self) -> Hooks;

    /// The largest frame of which `on_offer` may say anything but `Pass`: it is not asked about others.
    fn offered_up_to(&self) -> u16 {
        u16::MAX
    }

    /// The queue that it wants at each port for packets that overtake all others: [`Verdict::Express`], [`Turn::Express`]. With
    /// [`Hooks::TURN`].
    fn express(&self) -> Option<ExpressParams> {
        None
    }

    /// Where it has [`Mechanism::express`], all that its `on_offer` does: whether a packet goes straight onto an idle wire, waits in that
    /// queue, or is dropped where that has no room; any other passes.
    fn is_express(&self, _envelope: &Envelope) -> bool {
        false
    }

    /// What it has counted.
    fn counts(&self) -> Self::Counts;

    /// Largest values so far, one for each of [`Mechanism::PEAKS`].
    fn peaks(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Why it acted, where that is worth distinguishing: reasons and how often.
    fn by_reason(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether a class of a port that is paused for too long goes on all the same, so that no deadlock lasts.
    fn breaks_deadlocks(&self) -> bool {
        false
    }

    /// Whether it holds packets of a class for a port.
    fn holds_for(&self, _port: PortNo, _class: u8) -> bool {
        false
    }

    /// The ports for which packets of a class wait that came in by a port, where it counts them to pause the neighbour there.
    fn waits_behind(&self, _from: PortNo, _class: u8) -> Vec<PortNo> {
        Vec::new()
    }

    /// The longest queue of its own, by port: the port and its bytes.
    fn peak(&self) -> Option<(PortNo, Bytes)> {
        None
    }

    /// Records of telemetry that a frame may hold behind this switch; zero where it has its ports write none.
    fn telemetry(&self) -> usize {
        0
    }

    /// Packets that it holds.
    fn held(&self) -> Vec<PacketId> {
        Vec::new()
    }

    /// Messages that wait at this switch.
    fn messages(&self) -> u64 {
        0
    }

    /// A packet has reached the switch, its hop limit is counted, and it would leave by `to`.
    fn on_route(&mut self, _node: &mut dyn Node, _p: &mut Arrival<'_>, _to: PortNo, _fx: &mut Effects) -> Verdict {
        Verdict::Pass
    }

    /// It is about to be offered to a port, before admission.
    fn on_offer(&mut self, _node: &mut dyn Node, _p: &mut Arrival<'_>, _port: PortNo, _fx: &mut Effects) -> Verdict {
        Verdict::Pass
    }

    /// Another mechanism has taken a packet that was about to be offered to a port: it holds it, or has put it into the port's express
    /// queue. The packet waits, whether the wire is free or not. Anything but `Pass` is `Drop`.
    fn on_taken(&mut self, _node: &mut dyn Node, _p: &mut Arrival<'_>, _port: PortNo, _fx: &mut Effects) -> Verdict {
        Verdict::Pass
    }

    /// A packet that came in by `from` leaves its virtual output queue and crosses to port `to`, at a combined input- and output-queued
    /// switch. There `on_offer` is asked before it joins that queue, and marking decides when it has crossed.
    fn on_crossing(&mut self, _node: &mut dyn Node, _packet: PacketId, _from: PortNo, _to: PortNo, _fx: &mut Effects) {}

    /// A port does not accept it.
    fn on_refusal(&mut self, _node: &mut dyn Node, _refused: &mut Refused<'_>, _fx: &mut Effects) -> Verdict {
        Verdict::Pass
    }

    /// A packet of a queue that has made room for another after [`Verdict::Displace`]; `for_detoured`: for one that was detoured there,
    /// so that this one cannot be.
    fn on_displaced(
        &mut self,
        _node: &mut dyn Node,
        _p: &mut Arrival<'_>,
        _port: PortNo,
        _for_detoured: bool,
        _fx: &mut Effects,
    ) -> Verdict {
        Verdict::Drop(DropReason::BUFFER_FULL)
    }

    /// The rank of a packet among those of its class at a port: the smallest leaves first, of equal ones the first that came. Run with
    /// [`Hooks::RANKS`], when the packet is offered.
    fn rank(&self, _envelope: &Envelope, _shim: Option<&Shim>) -> u32 {
        0
    }

    /// A packet was dropped, at a port or before one.
    fn on_drop(&mut self, _node: &mut dyn Node, _dropped: &Dropped<'_>, _fx: &mut Effects) {}

    /// Where it keeps what it knows of a packet that is about to be offered to a port, or to leave it, to be fetched ahead: a line of
    /// memory each. `from`: the port that the packet came in by, if it is about to be offered.
    fn kept(&self, _from: Option<PortNo>, _port: PortNo, _fetch: impl Fn(*const u8)) {}

    /// A frame's first bit is about to leave a port: the message that goes at its end. Only run while the mechanism waits there
    /// ([`Mechanism::waits`]).
    fn on_departure(&mut self, _port: PortNo, _envelope: &Envelope) -> Option<Message> {
        None
    }

    /// A frame's first bit has left a port whose departures are events. `packet` stands for it until the hook's effects are
    /// carried out.
    fn on_egress(&mut self, _node: &mut dyn Node, _packet: PacketId, _port: PortNo, _fx: &mut Effects) {}

    /// A packet has left its queue, or the wire of its port was free and its departures are events. `node.now()` is when it did; where departures
    /// are no events this runs later, and nothing that the hook wants of others may depend on it ([`Node::next_departed`]).
    fn on_departed(&mut self, _node: &mut dyn Node, _packet: PacketId, _fx: &mut Effects) {}

    /// A message made by [`Effect::Clone`] was dropped at this switch.
    fn on_lost(&mut self, _shim: &Shim, _reason: DropReason) {}

    /// The wire of a port is free. `data`: the scheduler has a packet that may be sent. Only run while something waits there, and for data alone
    /// not always: then it answers `Pass`.
    fn on_turn(&mut self, _node: &mut dyn Node, _port: PortNo, _data: bool, _fx: &mut Effects) -> Turn {
        Turn::Pass
    }

    /// Whether [`Mechanism::on_turn`] or [`Mechanism::on_departure`] has something to send at a port. From the first moment on
    /// it says so by [`Effect::Arm`]: until then the port may do without departures as events.
    fn waits(&self, _port: PortNo) -> bool {
        false
    }

    /// A message of one of its EtherTypes has arrived.
    fn on_message(&mut self, _node: &mut dyn Node, _from: PortNo, _message: &Message, _fx: &mut Effects) {}

    /// A timer of [`Effect::Timer`] has expired.
    fn on_timer(&mut self, _node: &mut dyn Node, _fx: &mut Effects) {}

    /// Whether the message at the end of a frame that leaves by a port is lost on the link. The frame arrives.
    fn loses(&mut self, _port: PortNo) -> bool {
        false
    }

    /// What a host hands to the endpoint of the flow that a message names.
    fn signal(_body: &[u8]) -> Signal {
        Signal::Undefined
    }

    /// What a message asks of a host's NIC; `None`: it is for an endpoint.
    fn pause(_body: &[u8]) -> Option<Pause> {
        None
    }

    /// The message by which a host's NIC asks its switch for that; `None`: none has such messages.
    fn ask(_pause: &Pause) -> Option<Message> {
        None
    }
}
