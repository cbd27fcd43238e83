//! Ports with classes, schedulers, mechanisms.
//!
//! Departures are events there only while they must be: while packets of several classes wait, or two of them where a mechanism
//! ranks packets, or something of a mechanism, or a control frame. At all other times such a port is a FIFO one ([`Link`](super::link::Link)), and bit-identical. Where the
//! marking policy decides at the head of a queue, departures of packets that have waited are always events: one that is dropped
//! then takes no time on the wire, so that nobody knows before when the next one leaves.

use super::link::flag;
use super::port::{at_dequeue, Heads};
use super::switch::{Fabric, Refusal};
use crate::core::{full_queue, Core};
use fanin_packet::PacketId;
use fanin_switch::{DropReason, Head, Hooks, MarkVerdict, PortView, Verdict, PRIORITIES};
use fanin_units::{Span, Time};

impl Fabric {
    /// Offers a packet to any port: with classes, cells, departures as events.
    #[inline(never)]
    pub fn offer_by_pipeline(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        core.catch_up(l);
        let (mut class, mut paused) = (0, false);
        if let Some(explicit) = core.ports[l].explicit.as_deref() {
            class = explicit.class_of(core.pool[packet].class);
            paused = explicit.is_closed(class);
            if core.links[l].queue_packets() > 0 && class != explicit.class {
                core.make_explicit(l);
            }
        }
        let idle = core.links[l].free_at <= core.now.ps() && !paused;
        match self.admit(core, l, class, idle, packet) {
            Ok(()) => self.enqueue(core, l, class, packet, idle),
            Err(refusal) => {
                let view = core.view(l);
                self.refuse(core, l, class, &view, via, packet, refusal);
            }
        }
    }

    /// A packet that a port does not accept: it is dropped, unless a mechanism has another use for it.
    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)] // a packet, its port and what was found there
    pub fn refuse(
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
        core.make_explicit(l); // what waits may change its place
        let frame = core.pool[packet].frame;
        let (i, verdict) = self.run_refusal_hooks(core, (l, via), packet, view, refusal);
        if verdict == Verdict::Displace {
            return self.displace(core, (l, class), view, via, packet, i);
        }
        // The row is that of the whole packet, whatever a mechanism has made of it.
        core.note_refusal(l, view, packet, frame, refusal.room);
        self.carry_out(core, (l, via), packet, verdict, refusal.reason);
    }

    /// An accepted packet joins its queue, or leaves at once where the wire is free.
    fn enqueue(&mut self, core: &mut Core, l: usize, class: usize, packet: PacketId, idle: bool) {
        if idle {
            // Onto the wire at once, through no queue and no buffer, as at a FIFO port.
            if core.links[l].flags & flag::EXPLICIT != 0 {
                if let Err(reason) = core.decide_unqueued(l, class, packet) {
                    return self.drop_packet(core, l, packet, reason);
                }
            }
            return self.depart(core, l, packet, None);
        }
        let frame = core.pool[packet].frame;
        core.joined_shared(l, class, frame);
        let (link, port) = (&mut core.links[l], &mut core.ports[l]);
        if link.flags & flag::EXPLICIT == 0 {
            if link.queue_packets() == 0 {
                core.begin_class(l, packet);
            }
            core.note_one_more(l, frame);
            return core.push(l, packet, frame);
        }
        let Some(explicit) = port.explicit.as_deref_mut() else { return };
        explicit.join(&core.pool, class, (packet, frame), core.now);
        let (bytes, packets) = (u32::try_from(explicit.bytes), explicit.packets);
        let sendable = !explicit.is_closed(class);
        if bytes.is_err() {
            full_queue(port, &mut core.stuck, &mut core.barrier);
        }
        port.note_queue(link, core.now, bytes.unwrap_or(u32::MAX), packets);
        if sendable {
            core.arm(l);
        }
    }

    /// A packet's first bit leaves a port: a message may go at the end of its frame.
    #[inline(always)]
    fn depart(&mut self, core: &mut Core, l: usize, packet: PacketId, queued: Option<u16>) {
        if core.links[l].flags & flag::EXPLICIT != 0 {
            let (s, _) = core.switch_port(l);
            let hooks = self.switches[s as usize].hooks;
            if hooks.any(Hooks::DEPARTURE) {
                self.run_departure_hooks(core, l, packet);
            }
            core.send(l, packet, queued);
            if hooks.any(Hooks::EGRESS.with(Hooks::COMBINED)) {
                self.departed(core, l, packet, queued);
            }
            return;
        }
        core.send(l, packet, queued);
    }

    /// What is to be done besides when a frame has left a port whose departures are events. `queued`: its frame, if it has waited.
    #[inline(never)]
    fn departed(&mut self, core: &mut Core, l: usize, packet: PacketId, queued: Option<u16>) {
        let (s, _) = core.switch_port(l);
        let hooks = self.switches[s as usize].hooks;
        if let Some(frame) = queued.filter(|_| hooks.any(Hooks::COMBINED)) {
            core.left_output(l, packet, frame);
        }
        if hooks.any(Hooks::EGRESS) {
            self.run_egress_hooks(core, l, packet);
        }
    }

    /// The wire is free: control frames first, then mechanisms, then the scheduler says whose packet is next.
    pub fn departure(&mut self, core: &mut Core, l: usize) {
        let (s, _) = core.switch_port(l);
        let Some(explicit) = core.ports[l].explicit.as_deref_mut() else { return };
        explicit.armed = false;
        if let Some(frame) = explicit.control.pop_front() {
            core.send_past_the_queue(l, frame);
            // What mechanisms hold may wait for this turn, not for a packet that leaves.
            return if self.switches[s as usize].hooks.any(Hooks::TURN) { core.arm(l) } else { self.arm_if_waiting(core, l) };
        }
        let data = explicit.has_next();
        if self.switches[s as usize].hooks.any(Hooks::TURN) && self.run_turn_hooks(core, l, data) {
            return self.arm_if_waiting(core, l);
        }
        let Some(explicit) = core.ports[l].explicit.as_deref_mut() else { return };
        if explicit.decided {
            return self.departure_decided(core, l);
        }
        let Some(class) = explicit.scheduler.next() else { return self.arm_if_waiting(core, l) };
        let Some(packet) = explicit.queues[class].pop_front() else { return };
        if let Some(next) = explicit.queues[class].front() {
            core.pool.prefetch_all(*next); // it may have waited for long
        }
        let frame = core.pool[packet].frame;
        explicit.scheduler.dequeued(class, frame);
        explicit.left(class, frame);
        core.left_shared(l, class, frame);
        self.depart(core, l, packet, Some(frame));
        self.arm_if_waiting(core, l);
    }

    /// Drops what waits in the queues of these classes of a port, which are paused.
    #[cold]
    pub fn flush(&mut self, core: &mut Core, l: usize, classes: u8, reason: DropReason) {
        core.make_explicit(l);
        let queues = core.ports[l].explicit.as_deref().map_or(0, |explicit| explicit.queues_of(classes));
        for class in (0..PRIORITIES).filter(|class| queues >> class & 1 != 0) {
            // As where heads are dropped: what mechanisms make of them comes after departures of this instant.
            let before = std::mem::replace(&mut self.departing, true);
            if !core.crossbars.is_empty() {
                self.flush_inputs(core, l, class, reason);
            }
            let dropped = core.take_queue(l, class);
            for (packet, queue_bytes) in dropped {
                core.left_output(l, packet, core.pool[packet].frame);
                self.drop_dequeued(core, l, packet, reason, queue_bytes);
            }
            self.departing = before;
        }
    }

    /// The same where the marking policy decides about each packet: the first that it does not drop is sent.
    #[inline(never)]
    fn departure_decided(&mut self, core: &mut Core, l: usize) {
        match core.next_head(l) {
            Some((packet, Err(reason))) => return self.departure_after_drops(core, l, packet, reason),
            Some((packet, Ok(()))) => {
                let frame = core.pool[packet].frame;
                self.depart(core, l, packet, Some(frame));
            }
            None => {}
        }
        self.arm_if_waiting(core, l);
    }

    /// The same where the first packet is dropped.
    #[inline(never)]
    fn departure_after_drops(&mut self, core: &mut Core, l: usize, packet: PacketId, reason: DropReason) {
        let mut dropped = vec![(packet, reason, core.standing(l).0)];
        while let Some((packet, verdict)) = core.next_head(l) {
            let Err(reason) = verdict else {
                let frame = core.pool[packet].frame;
                self.depart(core, l, packet, Some(frame));
                break;
            };
            dropped.push((packet, reason, core.standing(l).0));
        }
        self.arm_if_waiting(core, l);
        // What mechanisms make of drops comes after the port's turn: they find its wire busy, if anything was left to send.
        let before = std::mem::replace(&mut self.departing, true);
        for (packet, reason, queue_bytes) in dropped {
            core.left_output(l, packet, core.pool[packet].frame);
            self.drop_dequeued(core, l, packet, reason, queue_bytes);
        }
        self.departing = before;
    }

    /// Sets the departure event of a port where something waits; where nothing does, departures are no events any more.
    pub fn arm_if_waiting(&self, core: &mut Core, l: usize) {
        let (s, port) = core.switch_port(l);
        let Some(explicit) = core.ports[l].explicit.as_deref() else { return };
        let switch = &self.switches[s as usize];
        let mechanisms = || switch.hooks.any(Hooks::TURN) && switch.mechanisms.iter().any(|m| m.waits(port));
        if explicit.has_next() || !explicit.control.is_empty() || explicit.express_waits() || mechanisms() {
            core.arm(l);
        } else if !explicit.always && explicit.packets == 0 && explicit.closed == 0 {
            core.links[l].flags &= !flag::EXPLICIT;
        }
    }
}

impl Core {
    /// Takes the next packet off the queues of a port whose policy decides at their heads, in the scheduler's order; with what
    /// the policy says, an error being a drop.
    fn next_head(&mut self, l: usize) -> Option<(PacketId, Result<(), DropReason>)> {
        let port = self.view(l);
        let now = self.now;
        let explicit = self.ports[l].explicit.as_deref_mut()?;
        let class = explicit.scheduler.next()?;
        let packet = explicit.queues[class].pop_front()?;
        let heads = &mut explicit.heads.as_deref_mut()?[class];
        let waited = now.since(heads.joined.pop_front()?);
        let head = Head { port, class, class_bytes: heads.bytes, waited };
        let frame = self.pool[packet].frame;
        heads.bytes -= u64::from(frame);
        explicit.bytes -= u64::from(frame);
        explicit.packets -= 1;
        self.left_shared(l, class, frame);
        let verdict = self.decide_at_head(l, &head, packet, true);
        let cells = self.cells(frame);
        let port = &mut self.ports[l];
        let scheduler = &mut port.explicit.as_deref_mut()?.scheduler;
        if verdict.is_ok() {
            scheduler.dequeued(class, frame);
        } else {
            scheduler.dropped(class, frame);
            port.queue_cells -= cells;
        }
        Some((packet, verdict))
    }

    /// Takes all packets off a queue whose class is closed, each with the bytes that are left at the port.
    fn take_queue(&mut self, l: usize, class: usize) -> Vec<(PacketId, u64)> {
        let Some(explicit) = self.ports[l].explicit.as_deref_mut() else { return Vec::new() };
        explicit.scheduler.flush(class);
        if let Some(heads) = explicit.heads.as_deref_mut() {
            heads[class] = Heads::default();
        }
        let packets = std::mem::take(&mut explicit.queues[class]);
        let mut taken = Vec::with_capacity(packets.len());
        for packet in packets {
            let frame = self.pool[packet].frame;
            let cells = self.cells(frame);
            let port = &mut self.ports[l];
            port.queue_cells -= cells;
            let Some(explicit) = port.explicit.as_deref_mut() else { continue };
            explicit.bytes -= u64::from(frame);
            explicit.packets -= 1;
            taken.push((packet, explicit.bytes + u64::from(port.held_bytes)));
            self.left_shared(l, class, frame);
            if self.ports[l].watched.is_some() {
                let result = self.ledger.tables.queue_dequeued(packet, false, Some(true));
                self.check(result);
            }
        }
        taken
    }

    /// What the policy says of a packet that has found the port idle; passes where it decides nothing then.
    #[inline(always)]
    fn decide_unqueued(&mut self, l: usize, class: usize, packet: PacketId) -> Result<(), DropReason> {
        match self.ports[l].explicit.as_deref() {
            Some(explicit) if explicit.decided => self.decide_alone(l, class, packet),
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn decide_alone(&mut self, l: usize, class: usize, packet: PacketId) -> Result<(), DropReason> {
        let frame = self.pool[packet].frame;
        let mut port = self.view(l);
        port.queue_bytes += u64::from(frame);
        port.queue_packets += 1;
        port.queue_cells += self.cells(frame);
        let head = Head { port, class, class_bytes: u64::from(frame), waited: Span::ZERO };
        self.decide_at_head(l, &head, packet, false)
    }

    /// Asks the policy, marks, and closes the record of the arrival. `queued`: the packet was in a queue.
    fn decide_at_head(&mut self, l: usize, head: &Head, packet: PacketId, queued: bool) -> Result<(), DropReason> {
        let port = &mut self.ports[l];
        let marker = match port.explicit.as_deref_mut().and_then(|explicit| explicit.markers.as_deref_mut()) {
            Some(markers) => &mut markers[head.class],
            None => &mut port.marker,
        };
        let closes = port.watched.is_some() && marker.decides_at_head();
        let (marked, verdict) = match marker.on_head(head, &self.pool[packet]) {
            MarkVerdict::Pass => (false, Ok(())),
            MarkVerdict::Mark(reason) => (self.mark(l, packet, reason), Ok(())),
            MarkVerdict::Drop(reason) => (false, Err(reason)),
        };
        if closes {
            let result = self.ledger.tables.queue_dequeued(packet, marked, verdict.err().map(|_| queued));
            self.check(result);
        }
        verdict
    }

    /// Whether other classes than a packet's wait at a port whose departures are no events.
    #[inline(always)]
    pub fn is_of_another_class(&self, l: usize, packet: PacketId) -> bool {
        let explicit = self.ports[l].explicit.as_deref();
        explicit.is_some_and(|explicit| explicit.class_of(self.pool[packet].class) != explicit.class)
    }

    /// A packet is about to be the first that waits at a port whose departures are no events: all that wait are of its class then.
    #[inline(always)]
    pub fn begin_class(&mut self, l: usize, packet: PacketId) {
        let class = self.pool[packet].class;
        let (link, port) = (&self.links[l], &mut self.ports[l]);
        let [sent, _] = port.sent(link);
        if let Some(explicit) = port.explicit.as_deref_mut() {
            (explicit.class, explicit.since) = (explicit.class_of(class), sent);
        }
    }

    /// From now on departures of a port are events, until nothing waits there.
    pub fn make_explicit(&mut self, l: usize) {
        if self.links[l].flags & flag::EXPLICIT != 0 {
            return;
        }
        self.catch_up(l);
        let ((link, rings), port) = (self.links.with_rings(l), &mut self.ports[l]);
        link.flags |= flag::EXPLICIT;
        if link.queue_packets() == 0 {
            return;
        }
        let [sent, _] = port.sent(link);
        let Some(explicit) = port.explicit.as_deref_mut() else { return };
        (explicit.bytes, explicit.packets) = explicit.behind_express(link);
        if let Some(heads) = explicit.heads.as_deref_mut() {
            heads[explicit.class].bytes = explicit.bytes;
        }
        let (queue, class) = (&mut explicit.queues[explicit.class], explicit.class);
        let mut frames = Vec::with_capacity(explicit.packets as usize);
        let mut express = explicit.express.as_mut();
        let mut first = express.as_ref().map_or(0, |express| express.packets());
        let uncounted = link.take_back(rings.read(), |packet, frame| match express.as_mut() {
            Some(express) if first > 0 => {
                express.keep(packet, frame);
                first -= 1;
            }
            _ => {
                queue.push_back(packet);
                frames.push(frame);
            }
        });
        if port.at_dequeue & at_dequeue::EXPRESS != 0 {
            port.at_dequeue &= !at_dequeue::EXPRESS;
            link.flags &= !flag::DEQUEUE;
        }
        explicit.scheduler.resume(class, sent - explicit.since, &frames);
        for (carried, borrowed) in port.carried.iter_mut().zip(uncounted) {
            *carried -= u32::from(borrowed);
        }
        self.arm(l);
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
