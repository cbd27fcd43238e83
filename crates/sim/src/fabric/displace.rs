//! Packets that leave a queue out of their order, to make room for one that a port would refuse.

use super::switch::Fabric;
use crate::core::marking::Refusal;
use crate::core::queues::Waiting;
use crate::core::Core;
use crate::ledger::Fate;
use fanin_packet::PacketId;
use fanin_switch::{Admission, PortView};
use fanin_units::{LinkId, QueueClass};

impl Fabric {
    /// Enqueues a packet at a port whose departures are events, while packets that mechanism `i` has named leave the queue.
    pub fn displace(
        &mut self,
        core: &mut Core,
        (l, class): (LinkId, QueueClass),
        view: &PortView,
        via: Option<LinkId>,
        packet: PacketId,
        i: usize,
    ) {
        let places = std::mem::take(&mut self.effects.displaced);
        let Some(queues) = core.ports[l].queues.as_deref() else { return };
        let out: Vec<Waiting> = places.iter().filter_map(|place| queues.of(class).get(*place).copied()).collect();
        let frame = core.pool[packet].frame;
        debug_assert!(
            core.has_room_without(l, class, frame, out.iter().map(|out| out.frame))
                || out.iter().map(|out| u32::from(out.frame)).sum::<u32>() >= frame.into(),
            "packets that make room do not make enough"
        );
        // Marking decides about the packet as if it had found the queue without the others.
        let mut found = core.policy_view(l, class, view);
        for out in &out {
            found.queue_bytes -= u64::from(out.frame);
            found.queue_packets -= 1;
            found.queue_cells = found.queue_cells.saturating_sub(core.cells(out.frame));
            // none are counted by class
        }
        let marked = match core.mark_at_enqueue(l, class, &found, packet) {
            Ok(marked) => marked,
            Err(reason) => return self.refuse(core, (l, class), via, packet, Refusal { reason, room: false }),
        };
        core.record_arrival(l, (view.queue_bytes, view.queue_packets), packet, frame, (marked, Fate::Replaces));
        core.change_places(l, class, packet, &out);
        for displaced in out {
            self.run_displaced_hook(core, l, displaced.packet, i);
        }
    }
}

impl Core {
    /// Lets a packet join the queue of a class, and others leave it. The scheduler never sees an empty queue between.
    fn change_places(&mut self, l: LinkId, class: QueueClass, packet: PacketId, out: &[Waiting]) {
        let (now, frame) = (self.now, self.pool[packet].frame);
        if let Some(queues) = self.ports[l].queues.as_deref_mut() {
            queues.join(&self.pool, class, Waiting { packet, frame }, now);
        }
        for Waiting { packet, .. } in out {
            let queues = self.ports[l].queues.as_deref_mut();
            let Some(frame) = queues.and_then(|queues| queues.take_out(class, *packet)) else { continue };
            self.ports[l].queue_cells -= self.cells(frame);
            self.left_shared(l, class, frame);
            let result = self.ledger.tables.queue_dequeued(*packet, false, None); // nothing marks it when it leaves
            self.check(result);
        }
        self.ports[l].queue_cells += self.cells(frame);
        self.joined_shared(l, class, frame);
        let (bytes, packets) = self.queue(l);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.ports[l].note_queue(&mut self.links[l], now, bytes, packets);
    }

    /// True if the buffer of a port whose departures are events would have room for a frame once others left the queue of its
    /// class.
    pub fn has_room_without(&self, l: LinkId, class: QueueClass, frame: u16, others: impl Iterator<Item = u16> + Clone) -> bool {
        let mut view = self.view(l);
        for other in others.clone() {
            view.queue_bytes -= u64::from(other);
            view.queue_packets -= 1;
            view.queue_cells -= self.cells(other);
        }
        let port = &self.ports[l];
        let Admission::Shared { alpha, queued } = &port.admission else {
            return port.admission.check(&view, frame, self.cell).is_ok();
        };
        let (mut buffer, mut queued) = (self.shared[port.owner.switch()].clone(), queued[class]);
        others.for_each(|other| buffer.release(&mut queued, other));
        buffer.check(*alpha, queued, frame).is_ok()
    }
}
