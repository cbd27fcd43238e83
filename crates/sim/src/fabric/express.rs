//! Express queues: packets that overtake the others at their port, so many for each of those ([`Express`]).
//!
//! Both kinds leave in an order that is known when they come, as long as none of the others has its turn between express packets that
//! wait. Then departures are no events: what comes stands in the link's ring before the others that wait, which are as much later, and
//! [`Express`] counts how many it is. Where the others have their turn earlier, or so many wait that moving them would cost more, the
//! port's departures are events ([`super::queue`]), and the results the same.

use super::link::{flag, Link};
use super::port::{at_dequeue, Explicit, Port};
use super::switch::{Fabric, SwitchNode};
use crate::core::Core;
use fanin_packet::PacketId;
use fanin_switch::{Express, Hooks, MechanismState, PortNo};
use fanin_units::Bytes;

/// Packets that wait and are moved for one that goes before them. More are cheaper by events, each of which costs as much as moving some
/// thirty.
const MOVED: u32 = 32;

/// Hooks of other mechanisms beside which departures need not be events while express packets wait.
const BESIDE: Hooks = Hooks::ROUTE.with(Hooks::REFUSAL).with(Hooks::DETOURED).with(Hooks::DROP);

/// The mechanism of a switch that has express queues, as the fabric asks for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpressBy {
    /// Its place among the switch's, where no other has a say in what is offered to ports.
    pub alone: Option<u8>,
    /// Departures need not be events.
    pub in_order: bool,
}

impl ExpressBy {
    /// Of the mechanisms of a switch.
    pub fn of(mechanisms: &[MechanismState]) -> ExpressBy {
        let Some(at) = mechanisms.iter().position(|m| m.express().is_some()) else { return ExpressBy::default() };
        let others =
            mechanisms.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, m)| m.hooks()).fold(Hooks::NONE, Hooks::with);
        let alone = !others.any(Hooks::BEFORE_PORTS.with(Hooks::INPUTS).with(Hooks::EGRESS));
        ExpressBy { alone: alone.then_some(at as u8), in_order: others.without(BESIDE) == Hooks::NONE }
    }
}

impl Explicit {
    /// Bytes and packets of a link's queue without express packets; departures are no events.
    #[inline]
    pub fn behind_express(&self, link: &Link) -> (u64, u32) {
        let (bytes, packets) = self.express.as_ref().map_or((0, 0), |express| (express.bytes(), express.packets()));
        (u64::from(link.queue_bytes) - bytes, link.queue_packets() - packets)
    }
}

impl Port {
    /// The same of a port that may have none.
    #[inline(always)]
    pub fn behind_express(&self, link: &Link) -> (u64, u32) {
        match self.explicit.as_deref() {
            Some(explicit) if self.at_dequeue & at_dequeue::EXPRESS != 0 => explicit.behind_express(link),
            _ => (u64::from(link.queue_bytes), link.queue_packets()),
        }
    }
}

impl SwitchNode {
    /// The longest express queue that there was, by port: the first of several, none where all were empty.
    pub fn express_peak(&self, core: &Core) -> Option<(PortNo, Bytes)> {
        let mut most = None;
        for (port, l) in (0..).map(PortNo).zip(&self.ports) {
            let explicit = core.ports[*l as usize].explicit.as_deref();
            let peak = explicit.and_then(|explicit| explicit.express.as_ref()).map_or(Bytes(0), Express::peak);
            if peak > most.map_or(Bytes(0), |(_, most)| most) {
                most = Some((port, peak));
            }
        }
        most
    }
}

impl Fabric {
    /// Offers a packet that express queues may be for, where no other mechanism has a say.
    #[inline(never)]
    pub fn offer_express(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        let switch = &self.switches[core.ports[l].owner.node()];
        let Some(alone) = switch.express.alone else { return self.offer_to_mechanisms(core, l, via, packet) };
        let envelope = &core.pool[packet];
        if !switch.mechanisms[usize::from(alone)].is_express(envelope) {
            return self.offer_by_kind(core, l, via, packet);
        }
        let (frame, in_order) = (envelope.frame, switch.express.in_order);
        let (link, rings) = core.links.with_rings(l);
        if link.free_at <= core.now.ps() && link.flags & flag::SPECIAL & !(flag::OFFERED | flag::POLICY) == 0 {
            link.catch_up(rings.read(), core.now);
            return core.push(l, packet, frame);
        }
        if !(in_order && core.ports[l].watched.is_none() && core.insert_express(l, packet, frame)) {
            self.offer_to_mechanisms(core, l, via, packet);
        }
    }

    /// A packet joins the express queue of a port, which has room for it and is not idle.
    pub fn join_express(&mut self, core: &mut Core, l: usize, packet: PacketId) {
        let (frame, s) = (core.pool[packet].frame, core.ports[l].owner.node());
        if self.switches[s].express.in_order && core.insert_express(l, packet, frame) {
            return;
        }
        core.make_explicit(l);
        if let Some(express) = core.express(l) {
            express.push(packet, frame);
        }
        core.arm(l);
    }
}

impl Core {
    pub fn express(&mut self, l: usize) -> Option<&mut Express> {
        self.ports[l].explicit.as_deref_mut()?.express.as_mut()
    }

    /// Whether the express queue of a port has room for a frame.
    pub fn has_express_room(&mut self, l: usize, frame: u16) -> bool {
        self.catch_up(l);
        self.express(l).is_some_and(|express| express.fits(frame))
    }

    /// Puts a packet before those that wait at a port, if it has room and that is its order, and departures need not be events for that. The
    /// wire is not free.
    fn insert_express(&mut self, l: usize, packet: PacketId, frame: u16) -> bool {
        self.catch_up(l);
        let (link, port) = (&mut self.links[l], &mut self.ports[l]);
        let counts = link.flags & flag::DEQUEUE != 0 && port.at_dequeue & at_dequeue::EXPRESS == 0;
        if counts || link.flags & (flag::EXPLICIT | flag::PIPELINE) != 0 || link.free_at <= self.now.ps() {
            return false;
        }
        let Some(express) = port.explicit.as_deref_mut().and_then(|explicit| explicit.express.as_mut()) else { return false };
        let others = link.queue_packets() - express.packets();
        if others > MOVED || others > 0 && !express.goes_before() || !express.fits(frame) {
            return false;
        }
        express.join(frame);
        link.flags |= flag::DEQUEUE;
        port.at_dequeue |= at_dequeue::EXPRESS;
        self.push(l, packet, frame);
        if others > 0 {
            let (link, rings) = self.links.with_rings(l);
            link.advance_last(rings, others);
        }
        true
    }

    /// A packet that comes to a port with express packets would leave before some of those: from now on departures are events.
    #[inline(never)]
    pub fn express_waits_for_others(&mut self, l: usize) -> bool {
        self.catch_up(l);
        let packets = self.links[l].queue_packets();
        let waits = self.express(l).is_some_and(|express| packets == express.packets() && !express.all_go_before());
        if waits {
            self.make_explicit(l);
        }
        waits
    }

    /// A packet has left the queue of a port in whose ring express packets stand, or have stood.
    #[inline(never)]
    pub fn left_express(&mut self, l: usize, frame: Option<u16>) {
        let (link, port) = (&mut self.links[l], &mut self.ports[l]);
        let Some(express) = port.explicit.as_deref_mut().and_then(|explicit| explicit.express.as_mut()) else { return };
        match frame {
            Some(frame) if express.packets() > 0 => express.left(frame, link.queue_packets() >= express.packets()),
            Some(_) => express.other_left(),
            None => {}
        }
        if express.is_over() {
            link.flags &= !flag::DEQUEUE;
            port.at_dequeue &= !at_dequeue::EXPRESS;
        }
    }
}
