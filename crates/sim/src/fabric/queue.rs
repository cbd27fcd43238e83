//! Ports whose departures are events: classes, schedulers, shared buffers, mechanisms. Bit-identical to FIFO ports where both
//! apply.

use super::switch::{Fabric, Refusal};
use crate::core::Core;
use crate::ledger::Fate;
use fanin_packet::PacketId;
use fanin_switch::{cells, Hooks, MarkVerdict, PortView, Verdict};
use fanin_units::Time;

impl Fabric {
    /// Offers a packet to a port with explicit departures.
    pub fn offer_explicit(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        let (s, _) = core.switch_port(l);
        let hooks = self.switches[s as usize].hooks;
        if hooks.any(Hooks::OFFER) && self.run_offer_hooks(core, l, via, packet) {
            return;
        }
        let Some(explicit) = core.ports[l].explicit.as_deref() else { return };
        let class = explicit.class_of(core.pool[packet].class);
        let view = core.explicit_view(l);
        match self.admit(core, l, class, &view, packet) {
            Ok(()) => self.enqueue(core, l, class, packet, view.is_idle()),
            Err(refusal) => self.refuse(core, l, class, &view, via, packet, refusal),
        }
    }

    /// A packet that a port does not accept: it is dropped, unless a mechanism has another use for it.
    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)] // a packet, its port and what was found there
    fn refuse(
        &mut self,
        core: &mut Core,
        l: usize,
        class: usize,
        view: &PortView,
        via: Option<usize>,
        packet: PacketId,
        refusal: Refusal,
    ) {
        let (s, _) = core.switch_port(l);
        if !self.switches[s as usize].hooks.any(Hooks::REFUSAL) {
            return self.drop_refused(core, l, view, packet, refusal);
        }
        let frame = core.pool[packet].frame;
        let tail = core.ports[l].explicit.as_deref().and_then(|e| e.queues[class].back().copied()).filter(|_| refusal.room);
        let (i, verdict) = self.run_refusal_hooks(core, (l, via), packet, tail, view, refusal.reason);
        match (verdict, tail) {
            (Verdict::Replace, Some(tail)) => {
                // Marking decides about the packet as if it had found the queue without the other.
                let mut found = *view;
                found.queue_bytes -= u64::from(frame);
                found.queue_packets -= 1;
                found.queue_cells = found.queue_cells.saturating_sub(cells(frame, core.cell)); // zero where they are not counted
                let port = &mut core.ports[l];
                let marked = match port.marker.on_enqueue(&found, &core.pool[packet], &mut port.rng) {
                    MarkVerdict::Pass => false,
                    MarkVerdict::Mark(reason) => core.mark(l, packet, reason),
                    MarkVerdict::Drop(reason) => {
                        let refusal = Refusal { reason, room: false };
                        return self.refuse(core, l, class, view, via, packet, refusal);
                    }
                };
                core.record_arrival(l, view, packet, frame, (marked, Fate::Replaces));
                if let Some(place) = core.ports[l].explicit.as_deref_mut().and_then(|e| e.queues[class].back_mut()) {
                    *place = packet;
                }
                let result = core.ledger.tables.queue_dequeued(tail, false); // nothing marks it when it leaves
                core.check(result);
                self.run_tail_hook(core, l, tail, i);
            }
            (verdict, _) => {
                // The row is that of the whole packet, whatever a mechanism has made of it.
                core.note_refusal(l, view, packet, frame, refusal.room);
                self.carry_out(core, (l, via), packet, verdict, refusal.reason);
            }
        }
    }

    /// An accepted packet joins its queue, or leaves at once where the wire is free.
    fn enqueue(&mut self, core: &mut Core, l: usize, class: usize, packet: PacketId, idle: bool) {
        if idle {
            // Onto the wire at once, through no queue and no buffer, as at a FIFO port.
            self.depart(core, l, packet, None);
            return;
        }
        let frame = core.pool[packet].frame;
        let (s, _) = core.switch_port(l);
        let port = &mut core.ports[l];
        if port.admission.keeps_books() {
            port.admission.joined(self.switches[s as usize].shared.as_mut(), class, frame);
        }
        let Some(explicit) = port.explicit.as_deref_mut() else { return };
        explicit.queues[class].push_back(packet);
        explicit.scheduler.enqueue(class, frame);
        explicit.bytes += u64::from(frame);
        explicit.packets += 1;
        let (bytes, packets) = (u32::try_from(explicit.bytes), explicit.packets);
        if bytes.is_err() {
            core.stop_at_full_queue(l);
        }
        core.note_queue(l, bytes.unwrap_or(u32::MAX), packets);
        core.arm(l);
    }

    /// A packet's first bit leaves a port: a message may go at the end of its frame.
    fn depart(&mut self, core: &mut Core, l: usize, packet: PacketId, queued: Option<u16>) {
        let (s, _) = core.switch_port(l);
        if self.switches[s as usize].hooks.any(Hooks::DEPARTURE) {
            self.run_departure_hooks(core, l, packet);
        }
        core.send(l, packet, queued);
    }

    /// The wire is free: control frames first, then mechanisms, then the scheduler says whose packet is next.
    pub fn departure(&mut self, core: &mut Core, l: usize) {
        let (s, _) = core.switch_port(l);
        let Some(explicit) = core.ports[l].explicit.as_deref_mut() else { return };
        explicit.armed = false;
        if let Some(frame) = explicit.control.pop_front() {
            core.send_past_the_queue(l, frame);
            return self.arm_if_waiting(core, l);
        }
        let data = explicit.packets > 0;
        if self.switches[s as usize].hooks.any(Hooks::TURN) && self.run_turn_hooks(core, l, data) {
            return self.arm_if_waiting(core, l);
        }
        let Some(explicit) = core.ports[l].explicit.as_deref_mut() else { return };
        let Some(class) = explicit.scheduler.next() else { return };
        let Some(packet) = explicit.queues[class].pop_front() else { return };
        let frame = core.pool[packet].frame;
        explicit.scheduler.dequeued(class, frame);
        explicit.bytes -= u64::from(frame);
        explicit.packets -= 1;
        let port = &mut core.ports[l];
        if port.admission.keeps_books() {
            port.admission.left(self.switches[s as usize].shared.as_mut(), class, frame);
        }
        self.depart(core, l, packet, Some(frame));
        self.arm_if_waiting(core, l);
    }

    /// Sets the departure event of a port where something waits.
    fn arm_if_waiting(&self, core: &mut Core, l: usize) {
        let (s, port) = core.switch_port(l);
        let Some(explicit) = core.ports[l].explicit.as_deref() else { return };
        let switch = &self.switches[s as usize];
        let mechanisms = || switch.hooks.any(Hooks::TURN) && switch.mechanisms.iter().any(|m| m.waits(port));
        if explicit.packets > 0 || !explicit.control.is_empty() || mechanisms() {
            core.arm(l);
        }
    }
}

impl Core {
    /// The queue of a port with explicit departures.
    pub fn explicit_view(&self, l: usize) -> PortView {
        let (bytes, packets) = self.queue(l);
        self.ports[l].view(self.now, bytes, packets, Time::from_ps(self.links[l].free_at))
    }

    /// Sets the departure event of a port that has something to send, where none is set: when its wire is free.
    pub fn arm(&mut self, l: usize) {
        let Some(explicit) = self.ports[l].explicit.as_deref_mut() else { return };
        if !explicit.armed {
            explicit.armed = true;
            self.wheel.set(l as u32, Time::from_ps(self.links[l].free_at.max(self.now.ps())));
        }
    }
}
