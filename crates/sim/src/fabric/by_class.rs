//! Ports whose classes are marked by policies of their own, each by the queue of its class.

use super::link::flag;
use super::port::Explicit;
use crate::core::Core;
use fanin_packet::{Envelope, PacketId};
use fanin_switch::{DropReason, MarkVerdict, Marker, PortView};
use fanin_units::Time;

impl Explicit {
    /// The policy of a class, where each has its own.
    fn marker(&mut self, class: usize) -> Option<&mut Marker> {
        self.markers.as_deref_mut()?.get_mut(class)
    }
}

impl Core {
    /// What of the queue of `view` is of a class. While departures are no events, all of it is: of other classes nothing waits.
    pub fn class_view(&self, l: usize, class: usize, view: &PortView) -> PortView {
        let mut of_class = PortView { queue_cells: 0, ..*view };
        let explicit = self.ports[l].explicit.as_deref().filter(|_| self.links[l].flags & flag::EXPLICIT != 0);
        if let Some((explicit, heads)) = explicit.and_then(|explicit| Some((explicit, explicit.heads.as_deref()?))) {
            of_class.queue_bytes = heads[class].bytes;
            of_class.queue_packets = explicit.queues[class].len() as u32;
        }
        of_class
    }

    /// Asks the policy of a class about a packet that finds its queue like this.
    pub fn mark_class_at_enqueue(&mut self, l: usize, class: usize, found: &PortView, packet: PacketId) -> MarkVerdict {
        let port = &mut self.ports[l];
        match port.explicit.as_deref_mut().and_then(|explicit| explicit.marker(class)) {
            Some(marker) => marker.on_enqueue(found, &self.pool[packet], &mut port.rng),
            None => MarkVerdict::Pass,
        }
    }

    /// [`Core::mark_by_policy`] where each class has its own policy.
    #[inline(never)]
    pub fn mark_by_class(&mut self, l: usize, class: usize, packet: PacketId) -> Result<bool, DropReason> {
        let found = self.class_view(l, class, &self.view(l));
        let verdict = self.mark_class_at_enqueue(l, class, &found, packet);
        self.marked(l, packet, verdict)
    }

    /// A mechanism holds a packet for a port: the policy decides about it as if what is held before it were in the queue, and drops
    /// nothing. It is not asked again when the packet joins the queue.
    #[inline(never)]
    pub fn mark_held(&mut self, l: usize, packet: PacketId) {
        if self.held.is_decided(l, packet) {
            return;
        }
        self.catch_up(l);
        let (by_class, class) = (self.ports[l].by_class, self.class_of(l, &self.pool[packet]));
        let (before, mut found) = (self.held.before(l, packet, by_class), self.view(l));
        if by_class {
            found = self.class_view(l, class, &found);
        } else {
            found.queue_cells += before.cells; // by class none are counted
        }
        found.queue_bytes += before.bytes;
        found.queue_packets += before.packets;
        let verdict = if by_class {
            self.mark_class_at_enqueue(l, class, &found, packet)
        } else {
            let port = &mut self.ports[l];
            port.marker.on_enqueue(&found, &self.pool[packet], &mut port.rng)
        };
        let marked = matches!(verdict, MarkVerdict::Mark(reason) if self.mark(l, packet, reason));
        if marked {
            self.marked_while_held(packet);
        }
        self.held.decide(l, packet, marked);
    }

    /// The same about a packet that has left its queue at `start`.
    #[inline(never)]
    pub fn mark_class_at_dequeue(&mut self, l: usize, start: Time, packet: PacketId) -> MarkVerdict {
        let (bytes, packets) = self.queue(l);
        let view = self.ports[l].view(start, bytes, packets, start);
        let class = self.class_of(l, &self.pool[packet]);
        let left = self.class_view(l, class, &view);
        let port = &mut self.ports[l];
        match port.explicit.as_deref_mut().and_then(|explicit| explicit.marker(class)) {
            Some(marker) => marker.on_dequeue(&left, &self.pool[packet], &mut port.rng),
            None => MarkVerdict::Pass,
        }
    }

    /// For want of room a packet was refused at a port with this queue.
    pub fn refused_of_class(&mut self, l: usize, view: &PortView, refused: &Envelope) {
        let class = self.class_of(l, refused);
        let found = self.class_view(l, class, view);
        if let Some(marker) = self.ports[l].explicit.as_deref_mut().and_then(|explicit| explicit.marker(class)) {
            marker.on_refused(&found, refused);
        }
    }

    /// The class of a packet's queue at a port.
    pub fn class_of(&self, l: usize, packet: &Envelope) -> usize {
        self.ports[l].explicit.as_deref().map_or(0, |explicit| explicit.class_of(packet.class))
    }
}
