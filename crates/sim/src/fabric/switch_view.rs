//! The view that a mechanism has of its own switch while one of its hooks runs.

use super::switch::Fabric;
use super::table::NextHop;
use crate::core::queues::{Queues, Waiting};
use crate::core::Core;
use fanin_packet::{Envelope, PacketId, Shim};
use fanin_switch::{Node, PortNo, PortView};
use fanin_units::{LinkId, SwitchId, Time, TrafficClass};
use std::collections::VecDeque;

/// A switch as its mechanisms see it; while they run, they are not in their place in it.
pub(super) struct SwitchView<'a> {
    pub core: &'a mut Core,
    pub fabric: &'a mut Fabric,
    pub s: SwitchId,
}

impl SwitchView<'_> {
    /// The link of a port.
    pub fn link(&self, port: PortNo) -> LinkId {
        self.fabric.switches[self.s].ports[port.index()]
    }

    /// True while the switch knows a link to be down.
    fn is_down(&self, l: LinkId) -> bool {
        self.core.is_down(l)
    }

    fn queues(&self, port: PortNo) -> Option<&Queues> {
        self.core.ports[self.link(port)].queues.as_deref()
    }

    /// The queue of a traffic class at a port.
    fn queue(&self, port: PortNo, class: TrafficClass) -> Option<&VecDeque<Waiting>> {
        let at = &self.core.ports[self.link(port)];
        Some(at.queues.as_deref()?.of(at.class_of(class)))
    }
}

impl Node for SwitchView<'_> {
    fn now(&self) -> Time {
        self.core.now
    }

    fn view(&mut self, port: PortNo) -> PortView {
        let l = self.link(port);
        self.core.catch_up(l);
        self.core.view(l)
    }

    /// True if a packet would leave at once. At a combined switch none does: it crosses before.
    fn is_idle(&mut self, port: PortNo) -> bool {
        let l = self.link(port);
        self.core.catch_up(l);
        !self.core.combined && !self.is_down(l) && self.core.links[l].free_at <= self.core.now.ps()
    }

    fn next_departed(&mut self) -> Option<PacketId> {
        if self.core.departed.is_empty() {
            // Port by port: who asks may have enough.
            for port in &self.fabric.switches[self.s].ports {
                self.core.catch_up(*port);
                if !self.core.departed.is_empty() {
                    break;
                }
            }
        }
        self.core.departed.pop().map(|departed| departed.packet)
    }

    fn has_room(&mut self, port: PortNo, envelope: &Envelope) -> bool {
        let l = self.link(port);
        self.core.catch_up(l);
        if self.is_down(l) {
            return false;
        }
        let (view, frame) = (self.core.view(l), envelope.frame);
        if view.is_idle() && !self.core.combined {
            return true;
        }
        let class = self.core.class_of(l, envelope);
        match self.fabric.crossbars.get(self.s.index()) {
            Some(crossbar) => crossbar.has_room(port, class),
            None => self.fabric.admit(self.core, l, class, &view, frame).is_ok(),
        }
    }

    fn has_express_room(&mut self, port: PortNo, frame: u16) -> bool {
        let l = self.link(port);
        !self.is_down(l) && self.core.has_express_room(l, frame)
    }

    fn ways(&self, envelope: &Envelope) -> Vec<PortNo> {
        match self.fabric.fib.lookup(self.s, envelope.dst) {
            NextHop::One(link) => vec![self.core.switch_port(link).1],
            NextHop::Several(links) => links.iter().map(|link| self.core.switch_port(*link).1).collect(),
            NextHop::None => Vec::new(),
        }
    }

    fn input_bytes(&self, port: PortNo) -> u64 {
        match self.fabric.crossbars.get(self.s.index()) {
            Some(crossbar) => crossbar.input_bytes(port),
            None => self.fabric.switches[self.s].inputs.get(port.index()).copied().unwrap_or_default(),
        }
    }

    fn sendable_bytes(&self, port: PortNo) -> u64 {
        let at = &self.core.ports[self.link(port)];
        match self.fabric.crossbars.get(self.s.index()) {
            Some(crossbar) => crossbar.sendable_bytes(port, at.closed),
            None => at.queues.as_deref().map_or(0, |queues| queues.open_bytes(at.closed)),
        }
    }

    fn queues(&self, port: PortNo) -> usize {
        self.queues(port).map_or(1, Queues::count)
    }

    fn is_paused(&self, port: PortNo, class: TrafficClass) -> bool {
        let at = &self.core.ports[self.link(port)];
        at.is_closed(at.class_of(class))
    }

    fn pause_waits(&mut self, port: PortNo) -> bool {
        let l = self.link(port);
        self.core.catch_up(l);
        self.queues(port).is_some_and(|queues| queues.pauses)
    }

    fn note(&self, packet: PacketId) -> u64 {
        self.core.pool.note(packet)
    }

    fn set_note(&mut self, packet: PacketId, note: u64) {
        self.core.pool.set_note(packet, note);
    }

    fn packet(&self, packet: PacketId) -> Option<Envelope> {
        Some(self.core.pool[packet])
    }

    fn waiting(&self, port: PortNo, class: TrafficClass) -> usize {
        self.queue(port, class).map_or(0, VecDeque::len)
    }

    fn waiting_at(&self, port: PortNo, class: TrafficClass, place: usize) -> Option<(Envelope, Option<Shim>)> {
        let packet = self.queue(port, class)?.get(place)?.packet;
        Some((self.core.pool[packet], self.core.pool.shim(packet)))
    }

    fn has_room_without(&mut self, port: PortNo, envelope: &Envelope, frames: &[u16]) -> bool {
        let l = self.link(port);
        self.core.catch_up(l);
        let class = self.core.class_of(l, envelope);
        self.core.has_room_without(l, class, envelope.frame, frames.iter().copied())
    }

    fn route(&mut self, envelope: &Envelope) -> Option<PortNo> {
        let Fabric { switches, fib, .. } = &mut *self.fabric;
        let link = switches[self.s].next_hop(self.core, fib, self.s, envelope)?;
        Some(self.core.switch_port(link).1)
    }
}
