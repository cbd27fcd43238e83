//! A packet is about to join the queue of an output port.
//!
//! On the fast path (first in, first out, a limit and a threshold) it goes into the link's ring, where its departure is known at once. All
//! other ports take the general path: mechanisms, admission, marking, then the ring, as long as all that wait are of one class and nobody
//! has to act when they leave, or the queue of its class. Only here are verdicts of both carried out.

use super::switch::Fabric;
use crate::core::departures::full_queue;
use crate::core::link::flag;
use crate::core::marking::Refusal;
use crate::core::queues::Waiting;
use crate::core::Core;
use crate::ledger::Fate;
use fanin_packet::{Ecn, Kind, PacketId};
use fanin_switch::{DropReason, Hooks, PortNo, PortView, Verdict};
use fanin_telemetry::Name;
use fanin_units::{LinkId, QueueClass, SwitchId};

impl Fabric {
    /// Attempts to enqueue a packet at a switch's output port. `via`: the link that it came by, if any.
    #[inline(always)]
    pub fn enqueue(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId) {
        if core.links[l].flags & flag::OFF_FAST_PATH == 0 {
            self.enqueue_fast(core, l, via, packet);
        } else {
            self.enqueue_general(core, l, via, packet);
        }
    }

    /// [`Fabric::enqueue`] where code is cold.
    #[inline(never)]
    pub fn enqueue_anywhere(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId) {
        self.enqueue(core, l, via, packet);
    }

    #[inline(always)]
    fn enqueue_fast(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId) {
        let now = core.now;
        let (link, rings) = core.links.with_rings(l);
        let busy = link.catch_up_if_busy(rings.read(), now);
        self.join_fast(core, l, via, packet, busy);
    }

    /// [`Fabric::enqueue_fast`] where the queue is up to now, unless the port is idle.
    #[inline(always)]
    fn join_fast(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId, busy: bool) {
        let link = &mut core.links[l];
        let envelope = &mut core.pool[packet];
        let frame = envelope.frame;
        if !busy {
            return core.send_idle(l, packet, frame);
        }
        let (bytes, packets) = (link.queue_bytes.saturating_add(u32::from(frame)), link.queue_packets()); // 4 GiB end the run
        let would = if link.flags & flag::LIMIT_PACKETS != 0 { packets + 1 } else { bytes };
        if would > link.limit {
            return self.refuse_fast(core, l, via, packet);
        }
        let queue = if link.flags & flag::MARK_PACKETS != 0 { packets } else { link.queue_bytes };
        if queue > link.threshold && envelope.ecn != Ecn::NotEct {
            envelope.ecn = Ecn::Ce;
            core.ports[l].marks += 1;
        }
        core.note_one_more(l, frame);
        core.send_busy(l, packet, frame);
    }

    #[cold]
    #[inline(never)]
    fn refuse_fast(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId) {
        let class = core.class_of(l, &core.pool[packet]);
        self.refuse(core, (l, class), via, packet, Refusal { reason: DropReason::BUFFER_FULL, room: true });
    }

    /// Attempts to enqueue on the general path: mechanisms, then the port. One call, and nothing but calls at its ends: what it
    /// would save and restore, each packet on the fast path would pay.
    #[inline(never)]
    fn enqueue_general(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId) {
        core.catch_up(l);
        if core.is_down(l) {
            return self.refuse_at_dead_port(core, l, packet);
        }
        if core.links[l].flags & flag::MECHANISMS != 0 && self.before_queue(core, l, via, packet) {
            return;
        }
        self.enqueue_at_port(core, l, via, packet);
    }

    /// Enqueues a packet that has crossed a combined switch.
    #[inline(never)]
    pub fn enqueue_crossed(&mut self, core: &mut Core, l: LinkId, packet: PacketId) {
        core.catch_up(l);
        self.enqueue_at_port(core, l, None, packet);
    }

    /// Shows a packet to the mechanisms that want to see it before it joins a queue, which is up to now. True when one of them
    /// has another use for it.
    #[inline(always)]
    fn before_queue(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId) -> bool {
        if core.pool[packet].frame > self.seen_up_to {
            return false;
        }
        let busy = core.links[l].free_at > core.now.ps();
        let idle = !busy && core.ports[l].closed == 0;
        if idle && !self.sees_all && !self.detouring {
            return false;
        }
        // Of most that have to wait nothing is to be known but that: no call for them.
        if busy {
            let at = core.switch_port(l);
            if self.counts_calmly(core, at, via, packet) {
                self.notify(core);
                return false;
            }
        }
        self.ask_before_queue(core, l, via, packet, idle)
    }

    #[inline(never)]
    fn ask_before_queue(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId, idle: bool) -> bool {
        if core.combined {
            self.join_virtual_queue(core, l, via, packet);
            return true;
        }
        let (s, _) = core.switch_port(l);
        let switch = &self.switches[s];
        if let Some(headers) = switch.headers {
            return switch.mechanisms[usize::from(headers)].overtakes(|m| m.is_express(&core.pool[packet])) == Some(true)
                && self.join_headers(core, l, packet);
        }
        // Some want to know only of packets that have to wait, and of those that they have seen at another port.
        if idle && !self.detouring && !switch.hooks.any(Hooks::OFFER.with(Hooks::RANKS)) {
            return false;
        }
        self.run_offer_hooks(core, l, via, packet)
    }

    /// Lets the only mechanism that sees packets which have to wait count one; false where there is none, or it has to be asked.
    #[inline(always)]
    fn counts_calmly(&mut self, core: &mut Core, (s, port): (SwitchId, PortNo), via: Option<LinkId>, packet: PacketId) -> bool {
        let switch = &mut self.switches[s];
        let (Some(i), Some(via), 0) = (switch.counts, via, core.pool.note(packet)) else { return false };
        let (envelope, from) = (&core.pool[packet], PortNo(self.ingress[via]));
        let note = switch.mechanisms[usize::from(i)].packet_memory_mut(|m| m.take_calmly(envelope, from, port)).flatten();
        if let Some(note) = note {
            core.pool.set_note(packet, note);
        }
        note.is_some()
    }

    /// Enqueues a packet, after the mechanisms have seen it, at a port that is up to now.
    #[inline(always)]
    fn enqueue_at_port(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId) {
        let class = core.class_of(l, &core.pool[packet]);
        let busy = core.links[l].free_at > core.now.ps();
        if busy && core.links[l].flags & (flag::CLASSES | flag::GENERAL) == flag::CLASSES {
            core.keep_one_class(l, class);
        }
        if core.links[l].flags & flag::ADMITS == 0 {
            self.join_fast(core, l, via, packet, busy);
            return self.notify(core);
        }
        let idle = !busy && !core.ports[l].is_closed(class);
        let verdict = match core.ports[l].takes_all {
            true => {
                core.held.forget_decision(packet);
                Ok(())
            }
            false => {
                let found = core.view(l);
                self.admit_and_mark(core, l, class, (&found, idle), packet)
            }
        };
        match verdict {
            Err(refusal) => self.refuse(core, (l, class), via, packet, refusal),
            Ok(()) if core.links[l].flags & flag::GENERAL == 0 => join_ring(core, l, (class, idle), packet),
            Ok(()) if idle => self.start_at_once(core, l, class, packet),
            Ok(()) => join(core, l, class, packet),
        }
        self.notify(core);
    }

    /// Admits and marks a packet that finds a queue in this state, and records it. `idle`: it would leave at once, goes onto the
    /// wire and takes no buffer.
    ///
    /// # Errors
    /// With the reason where the port does not accept it; nothing is recorded then.
    #[inline(always)]
    fn admit_and_mark(
        &self,
        core: &mut Core,
        l: LinkId,
        class: QueueClass,
        (found, idle): (&PortView, bool),
        packet: PacketId,
    ) -> Result<(), Refusal> {
        let frame = core.pool[packet].frame;
        if !idle {
            self.admit(core, l, class, found, frame).map_err(|reason| Refusal { reason, room: true })?;
        }
        let of_class;
        let policy = match core.ports[l].by_class {
            false => found,
            true => {
                of_class = core.class_view(l, class, found);
                &of_class
            }
        };
        let marked = core.mark_at_enqueue(l, class, policy, packet).map_err(|reason| Refusal { reason, room: false })?;
        if core.ports[l].watched.is_some() {
            core.record_arrival(l, (found.queue_bytes, found.queue_packets), packet, frame, (marked, Fate::Taken));
        }
        Ok(())
    }

    /// Admission of a frame at a port.
    ///
    /// Frames that other ports have sent since they were last read still counts as used in a shared buffer, so that a frame which fits now fits
    /// all the more then; only one that does not makes the switch read all its ports.
    #[inline(always)]
    pub fn admit(&self, core: &mut Core, l: LinkId, class: QueueClass, found: &PortView, frame: u16) -> Result<(), DropReason> {
        core.admit(l, class, found, frame).or_else(|reason| match core.ports[l].admission.is_shared() {
            true => self.admit_anew(core, l, class, found, frame),
            false => Err(reason),
        })
    }

    #[cold]
    #[inline(never)]
    fn admit_anew(&self, core: &mut Core, l: LinkId, class: QueueClass, found: &PortView, frame: u16) -> Result<(), DropReason> {
        self.switches[core.ports[l].owner.switch()].ports.iter().for_each(|port| core.catch_up(*port));
        core.admit(l, class, found, frame)
    }

    /// An accepted packet goes onto the wire, which is free, through no queue and no buffer.
    #[inline(always)]
    fn start_at_once(&mut self, core: &mut Core, l: LinkId, class: QueueClass, packet: PacketId) {
        if core.links[l].flags & flag::EVENTS != 0 {
            return self.depart_at_once(core, l, class, packet);
        }
        let frame = core.pool[packet].frame;
        core.start(l, core.now, (packet, frame), None);
        if !core.ports[l].general {
            core.follow(l);
        }
    }

    /// Handles a packet that a port does not accept: it is dropped, unless a mechanism has another use for it. The queue is up to
    /// now.
    #[cold]
    #[inline(never)]
    pub fn refuse(
        &mut self,
        core: &mut Core,
        (l, class): (LinkId, QueueClass),
        via: Option<LinkId>,
        packet: PacketId,
        refusal: Refusal,
    ) {
        let view = core.view(l);
        let (s, _) = core.switch_port(l);
        let frame = core.pool[packet].frame;
        if !self.detouring && core.finds_ways(l, class, &refusal) {
            let ways = self.ways(core, (l, via), packet);
            if let Some(other) = core.way(l, class, &view, packet, &ways) {
                core.make_events(l);
                core.note_refusal(l, &view, packet, frame, refusal);
                let (_, port) = core.switch_port(other);
                return self.carry_out(core, (l, via), packet, Verdict::Detour(port), refusal.reason);
            }
        }
        if !self.switches[s].hooks.any(Hooks::REFUSAL) {
            core.note_refusal(l, &view, packet, frame, refusal);
            return self.drop_packet(core, l, packet, refusal.reason);
        }
        core.make_events(l); // what waits may change its place
        let (i, verdict) = self.run_refusal_hooks(core, (l, via), packet, &view, refusal);
        if verdict == Verdict::Displace {
            return self.displace(core, (l, class), &view, via, packet, i);
        }
        // The row is that of the whole packet, whatever a mechanism has made of it.
        core.note_refusal(l, &view, packet, frame, refusal);
        self.carry_out(core, (l, via), packet, verdict, refusal.reason);
    }

    /// Counts and records a packet that is dropped at a port, and takes it out of the world.
    #[cold]
    #[inline(never)]
    pub fn drop_packet(&mut self, core: &mut Core, l: LinkId, packet: PacketId, reason: DropReason) {
        core.catch_up(l);
        let (queue_bytes, _) = core.standing(l);
        self.drop_dequeued(core, l, packet, reason, queue_bytes);
    }

    /// [`Fabric::drop_packet`] of a packet that left `queue_bytes` in the queue behind it.
    #[cold]
    #[inline(never)]
    pub fn drop_dequeued(&mut self, core: &mut Core, l: LinkId, packet: PacketId, reason: DropReason, queue_bytes: u64) {
        let (s, _) = core.switch_port(l);
        if core.pool[packet].kind == Kind::Control {
            if reason == DropReason::LINK_DOWN {
                core.count_lost_message(l, reason);
            }
            return self.lose_clone(core, s, packet, reason);
        }
        core.ports[l].drops += 1;
        if reason == DropReason::LINK_DOWN {
            core.count_dropped_at(l);
        }
        let port = core.ports[l].name.clone();
        self.drop_with(core, s, packet, reason, port, queue_bytes);
    }

    /// Drops a packet for which a switch has no port; it is recorded at the switch.
    #[cold]
    #[inline(never)]
    pub fn drop_at_switch(&mut self, core: &mut Core, s: SwitchId, packet: PacketId, reason: DropReason) {
        if core.pool[packet].kind == Kind::Control {
            return self.lose_clone(core, s, packet, reason);
        }
        let name = self.switches[s].name.clone();
        self.drop_with(core, s, packet, reason, name, 0);
    }

    fn drop_with(&mut self, core: &mut Core, s: SwitchId, packet: PacketId, reason: DropReason, port: Name, queue_bytes: u64) {
        self.notify(core); // before the packet's place is used again
        let dropped = core.pool.packet(packet);
        core.record_drop(packet, &dropped, reason, port, queue_bytes);
        core.settle_held(packet, Some(true));
        core.held.forget_decision(packet);
        core.pool.free(packet);
        if let Some(crossbar) = self.crossbars.get_mut(s.index()) {
            crossbar.forget(packet);
        }
        if self.switches[s].hooks.any(Hooks::DROP) {
            self.note_drop(core, s, packet, &dropped, reason);
        }
    }
}

/// An accepted packet joins the ring of a port where one class waits.
#[inline(always)]
fn join_ring(core: &mut Core, l: LinkId, (class, idle): (QueueClass, bool), packet: PacketId) {
    let frame = core.pool[packet].frame;
    if idle {
        return core.start(l, core.now, (packet, frame), None);
    }
    core.joined_shared(l, class, frame);
    core.note_one_more(l, frame);
    core.send_busy(l, packet, frame);
}

/// Appends an accepted packet to the queue of its class.
#[inline(always)]
fn join(core: &mut Core, l: LinkId, class: QueueClass, packet: PacketId) {
    let frame = core.pool[packet].frame;
    core.joined_shared(l, class, frame);
    let cells = core.cells(frame);
    let (link, port) = (&mut core.links[l], &mut core.ports[l]);
    port.queue_cells += cells;
    let Some(queues) = port.queues.as_deref_mut() else { return };
    queues.join(&core.pool, class, Waiting { packet, frame }, core.now);
    let (bytes, packets) = (u32::try_from(queues.bytes), queues.packets);
    let open = !class.is_in(port.closed);
    if bytes.is_err() {
        full_queue(port, &mut core.stuck, &mut core.barrier);
    }
    port.note_queue(link, core.now, bytes.unwrap_or(u32::MAX), packets);
    if open {
        core.send_later(l);
    }
}
