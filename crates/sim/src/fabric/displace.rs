//! Packets that leave a queue out of turn, to make room for one that a port would refuse.

use super::switch::{Fabric, Refusal};
use crate::core::Core;
use crate::ledger::Fate;
use fanin_packet::PacketId;
use fanin_switch::{Admission, PortView};

impl Fabric {
    /// A packet joins a queue of a port whose departures are events; those that mechanism `i` has named leave it.
    pub fn displace(
        &mut self,
        core: &mut Core,
        (l, class): (usize, usize),
        view: &PortView,
        via: Option<usize>,
        packet: PacketId,
        i: usize,
    ) {
        let places = std::mem::take(&mut self.effects.displaced);
        let Some(explicit) = core.ports[l].explicit.as_deref() else { return };
        let out: Vec<PacketId> = places.iter().filter_map(|place| explicit.queues[class].get(*place).copied()).collect();
        let frames: Vec<u16> = out.iter().map(|id| core.pool[*id].frame).collect();
        let frame = core.pool[packet].frame;
        debug_assert!(
            core.has_room_without(l, class, frame, &frames) || frames.iter().map(|f| u32::from(*f)).sum::<u32>() >= frame.into(),
            "packets that make room do not make enough"
        );
        // Marking decides about the packet as if it had found the queue without the others.
        let by_class = core.ports[l].by_class;
        let mut found = if by_class { core.class_view(l, class, view) } else { *view };
        for frame in &frames {
            found.queue_bytes -= u64::from(*frame);
            found.queue_packets -= 1;
            found.queue_cells = found.queue_cells.saturating_sub(core.cells(*frame));
            // none are counted by class
        }
        let asked = if let Some(marked) = core.held.take_decision(l, packet) {
            Ok(marked)
        } else {
            let port = &mut core.ports[l];
            let verdict = if by_class {
                core.mark_class_at_enqueue(l, class, &found, packet)
            } else {
                port.marker.on_enqueue(&found, &core.pool[packet], &mut port.rng)
            };
            core.marked(l, packet, verdict)
        };
        let marked = match asked {
            Ok(marked) => marked,
            Err(reason) => return self.refuse(core, l, class, view, via, packet, Refusal { reason, room: false }),
        };
        core.record_arrival(l, (view.queue_bytes, view.queue_packets), packet, frame, (marked, Fate::Replaces));
        core.change_places(l, class, packet, &out);
        for displaced in out {
            self.run_displaced_hook(core, l, displaced, i);
        }
    }
}

impl Core {
    /// A packet joins the queue of a class, and others leave it. The scheduler never sees an empty queue between.
    fn change_places(&mut self, l: usize, class: usize, packet: PacketId, out: &[PacketId]) {
        let (now, frame) = (self.now, self.pool[packet].frame);
        if let Some(explicit) = self.ports[l].explicit.as_deref_mut() {
            explicit.join(&self.pool, class, (packet, frame), now);
        }
        for id in out {
            let explicit = self.ports[l].explicit.as_deref_mut();
            let Some(frame) = explicit.and_then(|explicit| explicit.take_out(&self.pool, class, *id)) else { continue };
            self.ports[l].queue_cells -= self.cells(frame);
            self.left_shared(l, class, frame);
            let result = self.ledger.tables.queue_dequeued(*id, false, None); // nothing marks it when it leaves
            self.check(result);
        }
        self.ports[l].queue_cells += self.cells(frame);
        self.joined_shared(l, class, frame);
        let (bytes, packets) = self.queue(l);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.ports[l].note_queue(&mut self.links[l], now, bytes, packets);
    }

    /// Whether the buffer of a port whose departures are events would have room for a frame, if others left the queue of its class.
    pub fn has_room_without(&self, l: usize, class: usize, frame: u16, others: &[u16]) -> bool {
        let mut view = self.view(l);
        for other in others {
            view.queue_bytes -= u64::from(*other);
            view.queue_packets -= 1;
            view.queue_cells -= self.cells(*other);
        }
        let port = &self.ports[l];
        let Admission::Shared { alpha, queued } = &port.admission else {
            return port.admission.check(&view, frame, self.cell).is_ok();
        };
        let (mut buffer, mut queued) = (self.shared[port.owner.node()].clone(), queued[class]);
        others.iter().for_each(|other| buffer.release(&mut queued, *other));
        buffer.check(*alpha, queued, frame).is_ok()
    }
}
