//! Departures that are events: the wire of a port is free, and somebody has to act at that instant. Mechanisms that send something of
//! their own, policies that decide at the head of a queue, crossbars that wait for room; and gates, flushes and what becomes of ports then.

use super::switch::Fabric;
use crate::core::link::flag;
use crate::core::queues::Waiting;
use crate::core::Core;
use fanin_packet::PacketId;
use fanin_switch::{DropReason, Head, Hooks, MarkVerdict, PRIORITIES};
use fanin_units::{LinkId, QueueClass, Span};

impl Fabric {
    /// Puts a packet of a port whose departures are events onto the wire: a message may go at the end of its frame. `queued`: its
    /// frame bytes in the queue that it has left, if it was in one.
    #[inline(always)]
    fn depart(&mut self, core: &mut Core, l: LinkId, packet: PacketId, queued: Option<u16>) {
        let (s, _) = core.switch_port(l);
        let hooks = self.switches[s].hooks;
        if hooks.any(Hooks::DEPARTURE) {
            self.run_departure_hooks(core, l, packet);
        }
        let frame = core.pool[packet].frame;
        core.start(l, core.now, (packet, frame), queued);
        self.notify(core);
        if hooks.any(Hooks::EGRESS.with(Hooks::COMBINED)) {
            self.departed(core, l, packet, queued);
        }
    }

    /// Puts a packet onto the free wire of a port whose departures are events.
    #[inline(never)]
    pub fn depart_at_once(&mut self, core: &mut Core, l: LinkId, class: QueueClass, packet: PacketId) {
        if let Err(reason) = core.decide_unqueued(l, class, packet) {
            return self.drop_packet(core, l, packet, reason);
        }
        self.depart(core, l, packet, None);
    }

    #[inline(never)]
    fn departed(&mut self, core: &mut Core, l: LinkId, packet: PacketId, queued: Option<u16>) {
        let (s, _) = core.switch_port(l);
        let hooks = self.switches[s].hooks;
        if let Some(frame) = queued.filter(|_| hooks.any(Hooks::COMBINED)) {
            self.left_output(core, l, packet, frame);
        }
        if hooks.any(Hooks::EGRESS) {
            self.run_egress_hooks(core, l, packet);
        }
    }

    /// Chooses what leaves a port whose wire is free: control frames first, then messages and packets of mechanisms, then the
    /// scheduler's next packet.
    pub fn departure(&mut self, core: &mut Core, l: LinkId) {
        let (s, _) = core.switch_port(l);
        let down = core.ports[l].down;
        let Some(queues) = core.ports[l].queues.as_deref_mut() else { return };
        queues.armed = false;
        if down {
            return; // it is armed again as it comes up
        }
        if core.links[l].free_at > core.now.ps() {
            return core.arm(l); // a packet that came at this instant has found the wire free
        }
        if let Some(frame) = queues.pop_control() {
            core.start_past_queue(l, core.now, frame);
            // What mechanisms hold may wait for this opportunity, not for a packet that leaves.
            return if self.switches[s].hooks.any(Hooks::TURN) { core.arm(l) } else { self.arm_if_waiting(core, l) };
        }
        let (data, decided) = (queues.has_next(), queues.decided);
        if self.switches[s].hooks.any(Hooks::TURN) && self.run_turn_hooks(core, l, data) {
            return self.arm_if_waiting(core, l);
        }
        if core.links[l].free_at > core.now.ps() {
            return self.arm_if_waiting(core, l); // what a mechanism has let go has taken the wire
        }
        if decided {
            return self.departure_decided(core, l);
        }
        if let Some((packet, frame)) = core.take_next(l) {
            self.depart(core, l, packet, Some(frame));
        }
        self.arm_if_waiting(core, l);
    }

    /// Chooses the next packet at a port whose marking policy decides at the head: the first that it does not drop is sent.
    #[inline(never)]
    fn departure_decided(&mut self, core: &mut Core, l: LinkId) {
        let mut dropped = Vec::new();
        while let Some((packet, frame, verdict)) = core.next_head(l) {
            let Err(reason) = verdict else {
                self.depart(core, l, packet, Some(frame));
                break;
            };
            dropped.push((packet, reason, core.standing(l).0));
        }
        self.arm_if_waiting(core, l);
        // What mechanisms make of drops comes after the port's departure: they find its wire busy, if anything was left to send.
        let before = std::mem::replace(&mut self.departing, true);
        for (packet, reason, queue_bytes) in dropped {
            self.left_output(core, l, packet, core.pool[packet].frame);
            self.drop_dequeued(core, l, packet, reason, queue_bytes);
        }
        self.departing = before;
    }

    /// Sets the departure event of a port where something waits; where nothing does, departures are no events any more.
    pub fn arm_if_waiting(&self, core: &mut Core, l: LinkId) {
        let (s, port) = core.switch_port(l);
        let at = &core.ports[l];
        let Some(queues) = at.queues.as_deref() else { return };
        let switch = &self.switches[s];
        let mechanisms =
            || switch.hooks.any(Hooks::TURN) && switch.mechanisms.iter().any(|m| m.sends(|m| m.waits(port)) == Some(true));
        if queues.may_send() || mechanisms() {
            core.arm(l);
        } else if !queues.always && queues.packets == 0 && at.closed == 0 {
            core.links[l].flags &= !flag::EVENTS;
            core.follow(l);
        }
    }

    /// Drops all packets in the queues of these classes of a port, which are paused.
    #[cold]
    pub fn flush(&mut self, core: &mut Core, l: LinkId, classes: u8, reason: DropReason) {
        core.make_events(l);
        let queues = core.ports[l].queues_of(classes);
        for class in QueueClass::all(PRIORITIES).filter(|class| class.is_in(queues)) {
            if core.combined {
                self.flush_inputs(core, l, class, reason);
            }
            let dropped = core.take_queue(l, class);
            for (packet, queue_bytes) in dropped {
                self.left_output(core, l, packet, core.pool[packet].frame);
                self.drop_dequeued(core, l, packet, reason, queue_bytes);
            }
        }
    }
}

impl Core {
    /// Takes the next packet off the queues of a port whose policy decides at the head, with its frame bytes and the verdict; an
    /// error is a drop.
    fn next_head(&mut self, l: LinkId) -> Option<(PacketId, u16, Result<(), DropReason>)> {
        let port = self.view(l);
        let (class, Waiting { packet, frame }, joined, class_bytes) = self.ports[l].queues.as_deref_mut()?.pop_head()?;
        self.left_shared(l, class, frame);
        let head = Head { port, class, class_bytes, waited: self.now.since(joined) };
        let verdict = self.decide_at_head(l, &head, packet, true);
        let cells = self.cells(frame);
        let port = &mut self.ports[l];
        let scheduler = &mut port.queues.as_deref_mut()?.scheduler;
        if verdict.is_ok() {
            scheduler.dequeued(class, frame);
        } else {
            scheduler.dropped(class, frame);
            port.queue_cells -= cells;
        }
        Some((packet, frame, verdict))
    }

    /// Takes all packets off a queue whose class is closed, each with the bytes that are left at the port.
    fn take_queue(&mut self, l: LinkId, class: QueueClass) -> Vec<(PacketId, u64)> {
        let Some(queues) = self.ports[l].queues.as_deref_mut() else { return Vec::new() };
        let mut taken = Vec::new();
        for Waiting { packet, frame } in queues.take_all(class) {
            let cells = self.cells(frame);
            let port = &mut self.ports[l];
            port.queue_cells -= cells;
            let Some(queues) = port.queues.as_deref_mut() else { continue };
            queues.bytes -= u64::from(frame);
            queues.packets -= 1;
            taken.push((packet, queues.bytes + u64::from(port.held_bytes)));
            self.left_shared(l, class, frame);
            if self.ports[l].watched.is_some() {
                let result = self.ledger.tables.queue_dequeued(packet, false, Some(true));
                self.check(result);
            }
        }
        taken
    }

    /// The policy's verdict on a packet that has found the port idle; passes where it does not decide at the head.
    fn decide_unqueued(&mut self, l: LinkId, class: QueueClass, packet: PacketId) -> Result<(), DropReason> {
        if self.ports[l].queues.as_deref().is_none_or(|queues| !queues.decided) {
            return Ok(());
        }
        let frame = self.pool[packet].frame;
        let mut port = self.view(l);
        port.queue_bytes += u64::from(frame);
        port.queue_packets += 1;
        port.queue_cells += self.cells(frame);
        let head = Head { port, class, class_bytes: u64::from(frame), waited: Span::ZERO };
        self.decide_at_head(l, &head, packet, false)
    }

    /// Asks the policy, marks, and closes the record of the arrival. `queued`: the packet was in a queue.
    fn decide_at_head(&mut self, l: LinkId, head: &Head, packet: PacketId, queued: bool) -> Result<(), DropReason> {
        let port = &mut self.ports[l];
        let marker = match port.queues.as_deref_mut().and_then(|queues| queues.markers.as_deref_mut()) {
            Some(markers) => &mut markers[head.class],
            None => &mut port.marker,
        };
        let closes = port.watched.is_some() && marker.decides_at_head();
        let (marked, verdict) = match marker.on_head(head, &self.pool[packet]) {
            MarkVerdict::Pass => (false, Ok(())),
            MarkVerdict::Mark(reason) => (self.mark(l, packet, reason), Ok(())),
            MarkVerdict::Drop(reason) => (false, Err(reason)),
            MarkVerdict::Undecided => (self.undecided(l, head.class), Ok(())),
        };
        if closes {
            let result = self.ledger.tables.queue_dequeued(packet, marked, verdict.err().map(|_| queued));
            self.check(result);
        }
        verdict
    }
}
