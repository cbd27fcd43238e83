//! Admission and marking at a port off the fast path. One order for all of them, whoever brings the packet: its own buffer, the
//! buffer that its switch's ports share, the marking policy of the port or of the packet's class.

use super::link::flag;
use super::port::at_dequeue;
use super::Core;
use crate::ledger::Fate;
use fanin_packet::{Ecn, Envelope, PacketId};
use fanin_switch::{Admission, DropReason, MarkReason, MarkVerdict, Marker, PortView, Way};
use fanin_units::{LinkId, QueueClass, Time};

/// Reason for which a port does not accept a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: DropReason,
    /// True if the port has no room; else marking drops the packet.
    pub room: bool,
}

impl Core {
    /// Admission of a frame of a class that finds a port in this state; of a shared buffer as far as its state is known.
    ///
    /// # Errors
    /// With the reason where they have none.
    #[inline(always)]
    pub fn admit(&self, l: LinkId, class: QueueClass, found: &PortView, frame: u16) -> Result<(), DropReason> {
        let port = &self.ports[l];
        match &port.admission {
            Admission::Shared { alpha, queued } => self.shared[port.owner.switch()].check(*alpha, queued[class], frame),
            own => own.check(found, frame, self.cell),
        }
    }

    /// The queue that a port's marking policy sees of `view`: all of it, or with a policy for each class, that of the class.
    pub fn policy_view(&self, l: LinkId, class: QueueClass, view: &PortView) -> PortView {
        if self.ports[l].by_class {
            return self.class_view(l, class, view);
        }
        *view
    }

    /// The queue of a class of `view`.
    #[inline(never)]
    pub fn class_view(&self, l: LinkId, class: QueueClass, view: &PortView) -> PortView {
        let mut of_class = PortView { queue_cells: 0, ..*view };
        let queues = self.ports[l].queues.as_deref().filter(|_| self.links[l].flags & flag::GENERAL != 0);
        if let Some((queues, heads)) = queues.and_then(|queues| Some((queues, queues.heads.as_deref()?))) {
            of_class.queue_bytes = heads[class].bytes;
            of_class.queue_packets = queues.of(class).len() as u32;
        }
        of_class
    }

    /// Asks the marking policy about a packet of a class that finds a queue like this ([`Core::policy_view`]); true: it is
    /// marked.
    ///
    /// # Errors
    /// With the reason why the policy drops it.
    #[inline(always)]
    pub fn mark_at_enqueue(
        &mut self,
        l: LinkId,
        class: QueueClass,
        found: &PortView,
        packet: PacketId,
    ) -> Result<bool, DropReason> {
        if let Some(marked) = self.held.take_decision(l, packet) {
            return Ok(marked);
        }
        match self.ask_at_enqueue(l, class, found, packet) {
            MarkVerdict::Pass => Ok(false),
            MarkVerdict::Mark(reason) => Ok(self.mark(l, packet, reason)),
            MarkVerdict::Drop(reason) => Err(reason),
            MarkVerdict::Undecided => Ok(self.undecided(l, class)),
        }
    }

    /// Ends the run as soon as the inner loop does, where nobody decides about a packet of a class any more. The packet passes.
    #[cold]
    #[inline(never)]
    pub fn undecided(&mut self, l: LinkId, class: QueueClass) -> bool {
        let port = &self.ports[l];
        let markers = port.queues.as_deref().and_then(|queues| queues.markers.as_deref());
        let marker = markers.and_then(|markers| markers.get(class.index())).unwrap_or(&port.marker);
        let reason = marker.failure().unwrap_or_else(|| "there is no block".to_string());
        self.stuck.get_or_insert_with(|| format!("nobody decides about packets at port {} any more: {reason}", port.name));
        self.barrier = Time::ZERO;
        false
    }

    /// The marking policy's verdict on a packet of a class that finds a queue like this.
    #[inline(always)]
    pub fn ask_at_enqueue(&mut self, l: LinkId, class: QueueClass, found: &PortView, packet: PacketId) -> MarkVerdict {
        let port = &mut self.ports[l];
        if port.by_class {
            return self.ask_class_at_enqueue(l, class, found, packet);
        }
        port.marker.on_enqueue(found, &self.pool[packet], &mut port.rng)
    }

    #[inline(never)]
    fn ask_class_at_enqueue(&mut self, l: LinkId, class: QueueClass, found: &PortView, packet: PacketId) -> MarkVerdict {
        let port = &mut self.ports[l];
        match port.queues.as_deref_mut().and_then(|queues| queues.markers.as_deref_mut()?.get_mut(class.index())) {
            Some(marker) => marker.on_enqueue(found, &self.pool[packet], &mut port.rng),
            None => MarkVerdict::Pass,
        }
    }

    /// Asks the marking policy about a packet that has left its queue at `start`, where it decides at dequeue.
    #[inline(never)]
    pub(super) fn mark_at_dequeue(&mut self, l: LinkId, start: Time, packet: PacketId) {
        let (bytes, packets) = self.queue(l);
        let left = self.ports[l].view(start, bytes, packets, start);
        let class = self.class_of(l, &self.pool[packet]);
        let of_class = self.ports[l].by_class.then(|| self.class_view(l, class, &left));
        let port = &mut self.ports[l];
        let verdict = match of_class {
            None => port.marker.on_dequeue(&left, &self.pool[packet], &mut port.rng),
            Some(left) => {
                match port.queues.as_deref_mut().and_then(|queues| queues.markers.as_deref_mut()?.get_mut(class.index())) {
                    Some(marker) => marker.on_dequeue(&left, &self.pool[packet], &mut port.rng),
                    None => MarkVerdict::Pass,
                }
            }
        };
        let marked = match verdict {
            MarkVerdict::Mark(reason) => self.mark(l, packet, reason),
            MarkVerdict::Undecided => self.undecided(l, class),
            MarkVerdict::Pass | MarkVerdict::Drop(_) => false,
        };
        if self.ports[l].watched.is_some() {
            let result = self.ledger.tables.queue_dequeued(packet, marked, None);
            self.check(result);
        }
    }

    /// Sets CE on an ECN-capable packet.
    #[inline]
    pub fn mark(&mut self, l: LinkId, packet: PacketId, reason: MarkReason) -> bool {
        let envelope = &mut self.pool[packet];
        if envelope.ecn == Ecn::NotEct {
            return false;
        }
        envelope.ecn = Ecn::Ce;
        self.ports[l].marks += 1;
        self.ledger.count_mark(reason);
        true
    }

    /// Records a packet that a port does not accept and that had `frame` bytes. For want of room, policies that average over arrivals see it
    /// too.
    pub fn note_refusal(&mut self, l: LinkId, view: &PortView, packet: PacketId, frame: u16, refusal: Refusal) {
        if refusal.room {
            let whole = Envelope { frame, ..self.pool[packet] };
            self.refused(l, view, &whole);
        }
        self.record_arrival(l, (view.queue_bytes, view.queue_packets), packet, frame, (false, Fate::Refused));
    }

    fn refused(&mut self, l: LinkId, view: &PortView, whole: &Envelope) {
        if !self.ports[l].by_class {
            return self.ports[l].marker.on_refused(view, whole);
        }
        let class = self.class_of(l, whole);
        let found = self.class_view(l, class, view);
        let markers = self.ports[l].queues.as_deref_mut().and_then(|queues| queues.markers.as_deref_mut());
        if let Some(marker) = markers.and_then(|markers| markers.get_mut(class.index())) {
            marker.on_refused(&found, whole);
        }
    }

    fn marker_of(&mut self, l: LinkId, class: QueueClass) -> &mut Marker {
        let port = &mut self.ports[l];
        let markers = port.queues.as_deref_mut().and_then(|queues| queues.markers.as_deref_mut());
        match markers.and_then(|markers| markers.get_mut(class.index())) {
            Some(marker) if port.by_class => marker,
            _ => &mut port.marker,
        }
    }

    /// True if the marking policy may send elsewhere a packet of a class that the port does not take.
    pub fn finds_ways(&mut self, l: LinkId, class: QueueClass, refusal: &Refusal) -> bool {
        self.marker_of(l, class).finds_ways(refusal.reason, refusal.room)
    }

    /// The port that the marking policy gives a packet of a class which its own does not take; `None`: no other.
    #[cold]
    pub fn way(&mut self, l: LinkId, class: QueueClass, view: &PortView, packet: PacketId, ways: &[Way]) -> Option<LinkId> {
        let found = if self.ports[l].by_class { self.class_view(l, class, view) } else { *view };
        let envelope = self.pool[packet];
        let chosen = self.marker_of(l, class).way(&found, &envelope, ways);
        if chosen.is_none() {
            self.undecided(l, class);
        }
        chosen.flatten().map(LinkId)
    }

    /// The queue of a traffic class at a port.
    #[inline(always)]
    pub fn class_of(&self, l: LinkId, packet: &Envelope) -> QueueClass {
        self.ports[l].class_of(packet.class)
    }

    /// True if the record of an arrival is complete only when the packet leaves.
    #[inline(always)]
    pub(super) fn decides_later(&self, l: LinkId) -> bool {
        let port = &self.ports[l];
        port.at_dequeue & at_dequeue::MARK != 0 || port.queues.as_deref().is_some_and(|queues| queues.decided)
    }

    /// Takes room of a shared buffer for a frame that has joined a queue.
    #[inline(always)]
    pub fn joined_shared(&mut self, l: LinkId, class: QueueClass, frame: u16) {
        let port = &mut self.ports[l];
        if let Admission::Shared { queued, .. } = &mut port.admission {
            self.shared[port.owner.switch()].commit(&mut queued[class], frame);
        }
    }

    /// A frame has left a queue, and gives the room back.
    #[inline(always)]
    pub fn left_shared(&mut self, l: LinkId, class: QueueClass, frame: u16) {
        let port = &mut self.ports[l];
        if let Admission::Shared { queued, .. } = &mut port.admission {
            self.shared[port.owner.switch()].release(&mut queued[class], frame);
        }
    }
}
