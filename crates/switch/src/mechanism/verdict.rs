//! Packets at hooks, and the answers of mechanisms.

use super::PortNo;
use crate::{DropReason, PortView};
use fanin_packet::{Control, Envelope, Framing, PacketId, Reference, Shim};
use fanin_units::{Time, TrafficClass};

/// A message of a mechanism: alone in a frame, or at the end of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// Headers of the message: a node on the way takes it as its own and may send it on. `header` is the length of the body.
    pub envelope: Envelope,
    pub control: Control,
}

impl Message {
    /// Bytes of the message on the wire, without a frame of its own.
    pub fn body(&self) -> &[u8] {
        self.control.body(self.envelope.header)
    }
}

/// Bytes of a frame with nothing but a message of `body` bytes.
pub fn message_frame(framing: &Framing, body: u8) -> u16 {
    (framing.header + u16::from(body)).max(framing.min_frame)
}

/// A packet at a hook.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// Handle of the packet where it waits.
    pub id: PacketId,
    pub envelope: &'a mut Envelope,
    /// Port by which the packet came in; `None` where the switch itself made or held it.
    pub from: Option<PortNo>,
    /// Header in the packet's frame, of a switch or of its host; there is one at most. [`Arrival::set_shim`] changes it.
    pub shim: &'a mut Option<Shim>,
}

impl Arrival<'_> {
    /// Puts a header into the frame in place of the one before, or takes that off.
    pub fn set_shim(&mut self, shim: Option<Shim>) {
        self.envelope.set_shim(shim.as_ref());
        *self.shim = shim;
    }
}

/// Decision of a hook about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The switch goes on as it would without the mechanism.
    Pass,
    Drop(DropReason),
    /// The packet goes onto the wire of its port at once, which must be free. Not at route.
    Send,
    /// The mechanism holds the packet: it sends it at a transmission opportunity of a port, or by [`Effect::Forward`]. Only at
    /// offer.
    Hold,
    /// The packet waits in the express queue of its port, which has room for it and is not idle ([`super::Overtakes`]). Not at route.
    Express,
    /// The packet goes to another port of the switch, whose admission decides anew.
    Detour(PortNo),
    /// A message that the mechanism made by [`Effect::Clone`] ends here. Only at route.
    Take,
    /// The refused packet joins its queue, and packets of its class that the mechanism names by [`Effects::displace`] make room: each leaves
    /// the queue and goes to [`super::Displaces`]. Only at refusal for want of room, and only where there is room then
    /// ([`super::Node::has_room_without`]) or they are as large together.
    Displace,
}

/// A packet that a port does not accept.
#[derive(Debug)]
pub struct Refused<'a> {
    pub packet: Arrival<'a>,
    pub port: PortNo,
    pub view: PortView,
    pub reason: DropReason,
    /// True if there is no room; else marking drops it.
    pub room: bool,
    /// True if the packet was detoured to this port: without room it is dropped, as a packet is detoured once at a switch.
    pub detoured: bool,
}

/// A packet that was dropped.
#[derive(Clone, Copy, Debug)]
pub struct Dropped<'a> {
    /// Handle of the packet until now.
    pub packet: PacketId,
    pub envelope: &'a Envelope,
    /// Reference by which its sender knows it.
    pub reference: Option<Reference>,
    pub reason: DropReason,
}

/// Packet or message that a mechanism sends at a transmission opportunity, when a port's wire is free.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Turn {
    /// The mechanism sends nothing: the scheduler is next.
    Pass,
    /// A packet that the mechanism holds. Not at a combined switch, where it has to cross.
    Packet(PacketId),
    /// The first packet of the express queue, if that queue may send now ([`super::Overtakes`]).
    Express,
    /// A message in a frame of its own.
    Message(Message),
}

/// Wish of a mechanism besides its verdict, carried out in order after the hook.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Effect {
    /// Enqueues a packet that the mechanism holds at a port, as if it had been routed there.
    Forward { packet: PacketId, port: PortNo },
    /// A packet that the mechanism holds is dropped.
    Drop { packet: PacketId, port: PortNo, reason: DropReason },
    /// Asks for a port's transmission opportunities, as something of the mechanism waits there: [`super::Sends::on_turn`] runs
    /// when its wire is free, and [`super::Attaches::on_departure`] for each frame until nothing waits any more.
    Arm(PortNo),
    /// Sends a message by a port in a frame of its own, before everything that waits there but earlier ones. A pause frame leaves
    /// before these, too, and says what one says that waits.
    Emit { port: PortNo, message: Message },
    /// Runs [`super::Timed::on_timer`] at this time. Earlier timers stay.
    Timer(Time),
    /// Makes departures of a port events while packets wait there, so that [`super::Watches::on_egress`] runs for each of them.
    Watch(PortNo),
    /// A packet that the mechanism has just held for a port waits behind what is held for that port: the policy that marks at enqueue
    /// decides about it as if all of that were in the port's queue, or what is of the packet's class where classes have policies of their
    /// own. It drops none of them, and is not asked again when the packet joins that queue.
    Mark { packet: PacketId, port: PortNo },
    /// Pauses these classes of a port, a bit for each, and lets all others send. The frame on the wire is not interrupted.
    Gate { port: PortNo, closed: u8 },
    /// Drops all packets in the queues of these classes of a port, a bit for each; the classes are paused.
    Flush { port: PortNo, classes: u8, reason: DropReason },
    /// For the record: the neighbour at a port is asked to pause a class, mostly for packets that wait at `behind`.
    /// `held_up`: that class of `behind` has been paused itself since its queue was last empty.
    Asks { port: PortNo, class: TrafficClass, behind: Option<PortNo>, held_up: bool },
    /// For the record: the state of a port from now on, as the mechanism sees it. `about`: side of the port; `state` and
    /// `degree`: the state. Rows of states.parquet ([`super::Profile::states`]).
    State { port: PortNo, about: &'static str, state: &'static str, degree: u32 },
    /// A message that is forwarded as packets are: the headers of `packet`, and `shim`. It joins the queue of a port as a
    /// packet does, and may be dropped wherever a packet may ([`super::Clones::on_lost`]).
    /// `class`: that of the packet where it is absent.
    Clone { packet: PacketId, port: PortNo, ttl: u8, class: Option<TrafficClass>, shim: Shim },
}

/// Wishes of the mechanisms whose hooks run.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Effects, each with the number of its mechanism at the switch.
    pub list: Vec<(u8, Effect)>,
    /// Number of the mechanism whose hook runs.
    pub mechanism: u8,
    /// Places of packets that make room, with [`Verdict::Displace`].
    pub displaced: Vec<usize>,
}

impl Effects {
    pub fn push(&mut self, effect: Effect) {
        self.list.push((self.mechanism, effect));
    }

    /// The packet at a place ([`super::Node::waiting_at`]) makes room for the one that was refused.
    pub fn displace(&mut self, place: usize) {
        self.displaced.push(place);
    }
}
