//! What a mechanism may ask of its own switch while one of its hooks runs.

use super::switch::SwitchNode;
use super::table::{Fib, NextHop};
use crate::core::Core;
use fanin_packet::{Envelope, PacketId, Shim};
use fanin_switch::{Hooks, Node, PortNo, PortView};
use fanin_units::Time;

/// A switch as its mechanisms see it.
pub(super) struct Here<'a> {
    pub core: &'a mut Core,
    pub fib: &'a Fib,
    pub switch: &'a mut SwitchNode,
    pub s: u32,
}

impl Node for Here<'_> {
    fn now(&self) -> Time {
        self.core.now
    }

    fn view(&self, port: PortNo) -> PortView {
        self.core.view_ahead(self.switch.ports[port.index()] as usize)
    }

    /// No packet leaves a combined switch at once: it crosses before.
    fn is_idle(&self, port: PortNo) -> bool {
        !self.switch.hooks.any(Hooks::COMBINED)
            && self.core.links[self.switch.ports[port.index()] as usize].free_at <= self.core.now.ps()
    }

    fn has_room(&mut self, port: PortNo, envelope: &Envelope) -> bool {
        let l = self.switch.ports[port.index()] as usize;
        self.core.catch_up(l);
        let (view, frame) = (self.core.view(l), envelope.frame);
        if view.is_idle() && self.core.crossbars.is_empty() {
            return true;
        }
        let class = self.core.ports[l].explicit.as_deref().map_or(0, |explicit| explicit.class_of(envelope.class));
        if let Some(crossbar) = self.core.crossbars.get(self.s as usize) {
            return crossbar.has_room(port, class);
        }
        let own = self.core.ports[l].admission.check(&view, frame, self.core.cell);
        own.and_then(|()| self.switch.check_shared(self.core, l, class, frame)).is_ok()
    }

    fn has_express_room(&mut self, port: PortNo, frame: u16) -> bool {
        self.core.has_express_room(self.switch.ports[port.index()] as usize, frame)
    }

    fn ways(&self, envelope: &Envelope) -> Vec<PortNo> {
        match self.fib.lookup(self.s, envelope.dst) {
            NextHop::One(link) => vec![self.core.switch_port(link as usize).1],
            NextHop::Several(links) => links.iter().map(|link| self.core.switch_port(*link as usize).1).collect(),
            NextHop::None => Vec::new(),
        }
    }

    fn input_bytes(&self, port: PortNo) -> u64 {
        match self.core.crossbars.get(self.s as usize) {
            Some(crossbar) => crossbar.input_bytes(port),
            None => self.switch.inputs.get(port.index()).copied().unwrap_or_default(),
        }
    }

    fn sendable_bytes(&self, port: PortNo) -> u64 {
        let explicit = self.core.ports[self.switch.ports[port.index()] as usize].explicit.as_deref();
        let closed = explicit.map_or(0, |explicit| explicit.closed);
        match self.core.crossbars.get(self.s as usize) {
            Some(crossbar) => crossbar.sendable_bytes(port, closed),
            None => explicit.map_or(0, |explicit| explicit.sendable_bytes(&self.core.pool)),
        }
    }

    fn queues(&self, port: PortNo) -> usize {
        self.core.ports[self.switch.ports[port.index()] as usize].explicit.as_deref().map_or(1, |explicit| explicit.queues.len())
    }

    fn is_paused(&self, port: PortNo, class: u8) -> bool {
        let explicit = self.core.ports[self.switch.ports[port.index()] as usize].explicit.as_deref();
        explicit.is_some_and(|explicit| explicit.is_closed(explicit.class_of(class)))
    }

    fn packet(&self, packet: PacketId) -> Option<Envelope> {
        Some(self.core.pool[packet])
    }

    fn waiting(&self, port: PortNo, class: u8) -> usize {
        let explicit = self.core.ports[self.switch.ports[port.index()] as usize].explicit.as_deref();
        explicit.map_or(0, |explicit| explicit.queues[explicit.class_of(class)].len())
    }

    fn waiting_at(&self, port: PortNo, class: u8, place: usize) -> Option<(Envelope, Option<Shim>)> {
        let explicit = self.core.ports[self.switch.ports[port.index()] as usize].explicit.as_deref()?;
        let packet = *explicit.queues[explicit.class_of(class)].get(place)?;
        Some((self.core.pool[packet], self.core.pool.shim(packet)))
    }

    fn has_room_without(&mut self, port: PortNo, envelope: &Envelope, frames: &[u16]) -> bool {
        let l = self.switch.ports[port.index()] as usize;
        self.core.catch_up(l);
        let class = self.core.ports[l].explicit.as_deref().map_or(0, |explicit| explicit.class_of(envelope.class));
        self.core.has_room_without(l, class, envelope.frame, frames)
    }

    fn route(&mut self, envelope: &Envelope) -> Option<PortNo> {
        let link = self.switch.next_hop(self.core, self.fib, self.s, envelope)?;
        Some(self.core.switch_port(link).1)
    }
}
