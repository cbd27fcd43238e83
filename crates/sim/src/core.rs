//! What fabric and hosts share: the clock, the events, links with their output ports, the packets, and the ledger.

use crate::fabric::combined::Crossbar;
use crate::fabric::gate::PortGate;
use crate::fabric::held::Held;
use crate::fabric::link::{flag, Carry, Entry};
use crate::fabric::links::Links;
use crate::fabric::pool::Pool;
use crate::fabric::port::{at_dequeue, Found, Port};
use crate::ledger::{Fate, Ledger};
use fanin_engine::{Table, Timers, Wheel};
use fanin_packet::{Departure, Ecn, Envelope, Packet, PacketId, Shim};
use fanin_switch::{cells, Admission, DropReason, MarkReason, MarkVerdict, PortNo, PortView, SharedBuffer};
use fanin_telemetry::{DropRow, Name, QueueRow, Stamp, TableError};
use fanin_units::{Bytes, LinkId, Span, Time};
use std::collections::BTreeMap;

/// A timeout's place in the order: node (hosts, then switches), then what it is for.
pub type TimerKey = (u32, u64);

/// See the module.
pub struct Core {
    pub now: Time,
    pub wheel: Wheel,
    pub timers: Timers<TimerKey>,
    /// The earliest event that is not in the wheel; the inner loop runs up to it.
    pub barrier: Time,
    /// Slots of departures are link numbers, those of crossbars follow, and those of arrivals from here on.
    pub arrivals: usize,
    pub links: Links,
    pub ports: Table<Port>,
    pub pool: Pool,
    /// By switch, the buffer that its ports share; empty where none do.
    pub shared: Table<SharedBuffer>,
    /// By switch, its crossbar; empty where switches are output queued.
    pub crossbars: Table<Crossbar>,
    /// By slot behind those of departures, the switch, and which of its crossbar's.
    pub crossbar_slots: Vec<(u32, u16)>,
    /// By link, the pauses of ports that may be paused.
    pub gates: BTreeMap<usize, PortGate>,
    /// Bytes of a buffer cell; zero where nothing counts in cells.
    pub cell: u32,
    /// What mechanisms hold for ports.
    pub held: Held,
    pub ledger: Ledger,
    /// The first table error; ends the run.
    pub failure: Option<TableError>,
    /// Why it cannot go on.
    pub stuck: Option<String>,
}

/// Something at a port has passed 2^32.
#[cold]
#[inline(never)]
fn carried(port: &mut Port, stuck: &mut Option<String>, barrier: &mut Time, carry: Carry) {
    match carry {
        Carry::Bytes => port.carried[0] += 1,
        Carry::Packets => port.carried[1] += 1,
        Carry::Queue => full_queue(port, stuck, barrier),
    }
}

/// A queue has reached 4 GiB, which is as much as can be counted: the run ends as soon as the inner loop does.
pub fn full_queue(port: &Port, stuck: &mut Option<String>, barrier: &mut Time) {
    let message = || format!("the queue of port {} has reached 4 GiB; give switch.buffer a limit, or send less", port.name);
    stuck.get_or_insert_with(message);
    *barrier = Time::ZERO;
}

impl Core {
    /// Brings a port's queue up to now: whatever has begun serialisation since it was last read leaves it.
    #[inline(always)]
    pub fn catch_up(&mut self, l: usize) {
        let (link, rings) = self.links.with_rings(l);
        if link.flags & flag::DEQUEUE != 0 {
            return self.catch_up_dequeues(l);
        }
        link.catch_up(rings.read(), self.now);
    }

    /// The same where dequeues have consequences.
    #[inline(never)]
    pub fn catch_up_dequeues(&mut self, l: usize) {
        while let Some((start, entry)) = self.next_departure(l) {
            if self.ports[l].admission.is_shared() {
                let class = self.ports[l].explicit.as_deref().map_or(0, |explicit| explicit.class);
                self.left_shared(l, class, entry.frame);
            }
            self.after_dequeue(l, start, entry.packet, Some(entry.frame));
        }
    }

    #[inline(always)]
    fn next_departure(&mut self, l: usize) -> Option<(Time, Entry)> {
        let (link, rings) = self.links.with_rings(l);
        link.next_departure(rings.read(), self.now)
    }

    /// From the end of a frame's serialisation on a link until it is at the far end.
    #[inline(always)]
    pub fn delay(&self, l: u32) -> Span {
        Span::from_ps(self.links[l as usize].delay())
    }

    /// Cells that a frame takes; zero where nothing counts in cells.
    #[inline(always)]
    pub fn cells(&self, frame: u16) -> u32 {
        if self.cell > 0 {
            cells(frame, self.cell)
        } else {
            0
        }
    }

    /// Gives a packet to a port's serialiser or FIFO; all admission is done. The queue is up to now. `queued`: its frame in
    /// the queue that it has left, where departures are events.
    #[inline(always)]
    pub fn send(&mut self, l: usize, packet: PacketId, queued: Option<u16>) {
        let frame = self.pool[packet].frame;
        let idle = self.links[l].free_at <= self.now.ps();
        self.push(l, packet, frame);
        if idle && self.links[l].flags & flag::DEQUEUE != 0 {
            self.begins_at_once(l, packet, queued);
        }
    }

    /// The same at a wire that is free, whose queue need not be up to now: the packet leaves at once.
    #[inline(always)]
    pub fn send_at_once(&mut self, l: usize, packet: PacketId, frame: u16) {
        if self.links[l].flags & flag::DEQUEUE != 0 {
            return self.send_at_once_with_consequences(l, packet);
        }
        self.push_idle(l, packet, frame);
    }

    #[inline(never)]
    fn send_at_once_with_consequences(&mut self, l: usize, packet: PacketId) {
        self.catch_up_dequeues(l);
        self.send(l, packet, None);
    }

    /// The last packet that an idle port was given leaves at once: what happens at its dequeue.
    #[inline(never)]
    fn begins_at_once(&mut self, l: usize, packet: PacketId, queued: Option<u16>) {
        self.after_dequeue(l, self.now, packet, queued);
    }

    /// Puts a packet at the end of a link.
    #[inline(always)]
    pub fn push(&mut self, l: usize, packet: PacketId, frame: u16) {
        let (ports, stuck, barrier) = (&mut self.ports, &mut self.stuck, &mut self.barrier);
        let carry = |carry| carried(&mut ports[l], stuck, barrier, carry);
        if let Some(arrives) = self.links.push(l, self.now, packet, frame, carry) {
            self.wheel.set((self.arrivals + l) as u32, arrives);
        }
    }

    /// The same at a port whose wire is not free.
    #[inline(always)]
    pub fn push_busy(&mut self, l: usize, packet: PacketId, frame: u16) {
        let (ports, stuck, barrier) = (&mut self.ports, &mut self.stuck, &mut self.barrier);
        let carry = |carry| carried(&mut ports[l], stuck, barrier, carry);
        if let Some(arrives) = self.links.push_busy(l, packet, frame, carry) {
            self.wheel.set((self.arrivals + l) as u32, arrives);
        }
    }

    /// The same at a port whose wire is free.
    #[inline(always)]
    pub fn push_idle(&mut self, l: usize, packet: PacketId, frame: u16) {
        let (ports, stuck, barrier) = (&mut self.ports, &mut self.stuck, &mut self.barrier);
        let carry = |carry| carried(&mut ports[l], stuck, barrier, carry);
        if let Some(arrives) = self.links.push_idle(l, self.now, packet, frame, carry) {
            self.wheel.set((self.arrivals + l) as u32, arrives);
        }
    }

    /// Puts a frame onto the wire of a port, which is free, past its queue and what happens at dequeue.
    pub fn send_past_the_queue(&mut self, l: usize, packet: PacketId) {
        self.catch_up(l);
        let frame = self.pool[packet].frame;
        self.push(l, packet, frame);
        if self.ports[l].at_dequeue & at_dequeue::LEFT != 0 {
            self.write_departure(l, self.now, packet);
        }
    }

    /// Whether the buffer that a switch's ports share has room, as far as it is known; true where they share none.
    #[inline(always)]
    pub fn check_shared(&self, l: usize, class: usize, frame: u16) -> Result<(), DropReason> {
        let port = &self.ports[l];
        match &port.admission {
            Admission::Shared { alpha, queued } => self.shared[port.owner.node()].check(*alpha, queued[class], frame),
            _ => Ok(()),
        }
    }

    /// A frame has joined a queue: of a shared buffer it takes its room.
    #[inline(always)]
    pub fn joined_shared(&mut self, l: usize, class: usize, frame: u16) {
        let port = &mut self.ports[l];
        if let Admission::Shared { queued, .. } = &mut port.admission {
            self.shared[port.owner.node()].commit(&mut queued[class], frame);
        }
    }

    /// A frame has left a queue.
    #[inline(always)]
    pub fn left_shared(&mut self, l: usize, class: usize, frame: u16) {
        let port = &mut self.ports[l];
        if let Admission::Shared { queued, .. } = &mut port.admission {
            self.shared[port.owner.node()].release(&mut queued[class], frame);
        }
    }

    /// Lets the marking policy of a port decide about a packet that finds it so: whether it marks it. Compiled for the policy `N`.
    ///
    /// # Errors
    /// With the reason why it drops it.
    #[inline(always)]
    pub fn mark_by_policy<const N: u8>(&mut self, l: usize, found: Found, packet: PacketId) -> Result<bool, DropReason> {
        let (link, now) = (&self.links[l], self.now);
        let idle = || found.idle(now, Time::from_ps(link.free_at));
        let verdict = self.ports[l].mark_at_enqueue::<N>(now, found, idle, &self.pool[packet]);
        if matches!(verdict, MarkVerdict::Pass) {
            return Ok(false);
        }
        self.marked(l, packet, verdict)
    }

    /// Does what a policy has decided at enqueue: whether the packet is marked, or why it is dropped.
    #[inline(never)]
    pub fn marked(&mut self, l: usize, packet: PacketId, verdict: MarkVerdict) -> Result<bool, DropReason> {
        match verdict {
            MarkVerdict::Pass => Ok(false),
            MarkVerdict::Mark(reason) => Ok(self.mark(l, packet, reason)),
            MarkVerdict::Drop(reason) => Err(reason),
        }
    }

    /// Remembers the queue of a port whose departures are no events, with a frame that is about to join it.
    #[inline(always)]
    pub fn note_one_more(&mut self, l: usize, frame: u16) {
        let link = &mut self.links[l];
        let (bytes, packets) = (link.queue_bytes.saturating_add(u32::from(frame)), link.queue_packets() + 1); // 4 GiB end the run
        self.note_fifo_queue(l, bytes, packets);
    }

    /// Remembers the queue of such a port as it is with a frame that is about to join it.
    #[inline(always)]
    pub fn note_fifo_queue(&mut self, l: usize, bytes: u32, packets: u32) {
        let link = &mut self.links[l];
        if link.may_exceed(bytes) {
            self.ports[l].note_queue(link, self.now, bytes, packets);
        }
    }

    /// Bytes and packets that wait at a port, of either kind.
    #[inline]
    pub fn queue(&self, l: usize) -> (u64, u32) {
        let link = &self.links[l];
        match &self.ports[l].explicit {
            Some(explicit) if link.flags & flag::EXPLICIT != 0 => (explicit.bytes, explicit.packets),
            Some(explicit) if link.flags & flag::DEQUEUE != 0 => explicit.behind_express(link),
            _ => (u64::from(link.queue_bytes), link.queue_packets()),
        }
    }

    /// The queue of a port as policies see it; it is up to now.
    #[inline]
    pub fn view(&self, l: usize) -> PortView {
        let (bytes, packets) = self.queue(l);
        self.ports[l].view(self.now, bytes, packets, self.links[l].wire_free_at(self.links.rings()))
    }

    /// The same of a port that may not be up to now; what its dequeues entail still waits.
    pub fn view_ahead(&self, l: usize) -> PortView {
        let (mut link, mut view) = (self.links[l], self.view(l));
        let mut express = link.queue_packets() - view.queue_packets.min(link.queue_packets());
        while let Some((_, entry)) = link.next_departure(self.links.rings(), self.now) {
            if express > 0 {
                express -= 1; // they go first
                continue;
            }
            view.queue_bytes -= u64::from(entry.frame);
            view.queue_packets -= 1;
            view.queue_cells -= self.cells(entry.frame);
        }
        view.free_at = link.wire_free_at(self.links.rings());
        view
    }

    /// A packet's serialisation has begun, at `start`, which lies at or before now: cells, marking at dequeue. `queued`: its
    /// frame in the queue, if it was in one.
    #[inline(always)]
    pub fn after_dequeue(&mut self, l: usize, start: Time, packet: PacketId, queued: Option<u16>) {
        if let Some(frame) = queued {
            self.ports[l].queue_cells -= self.cells(frame);
        }
        let also = self.ports[l].at_dequeue;
        if also & at_dequeue::LEFT != 0 {
            self.write_departure(l, start, packet);
        }
        if also & at_dequeue::MARK != 0 {
            self.mark_at_dequeue(l, start, packet);
        } else if also & at_dequeue::EXPRESS != 0 {
            self.left_express(l, queued);
        }
    }

    /// A packet has left a port at `start`: what that knows of itself then is written into its frame, where there is a place for it.
    #[inline]
    fn write_departure(&mut self, l: usize, start: Time, packet: PacketId) {
        let [sent, _] = self.ports[l].sent(&self.links[l]);
        let departure = Departure {
            at: start,
            queue_bytes: self.queue(l).0,
            sent_bytes: sent - u64::from(self.pool[packet].frame),
            rate: self.ports[l].rate,
        };
        self.pool.write_departure(packet, &departure);
    }

    #[inline(always)]
    fn mark_at_dequeue(&mut self, l: usize, start: Time, packet: PacketId) {
        let queue = self.queue(l);
        let verdict = if self.ports[l].by_class {
            self.mark_class_at_dequeue(l, start, packet)
        } else {
            self.ports[l].mark_at_dequeue(start, queue, &self.pool[packet])
        };
        let marked = match verdict {
            MarkVerdict::Mark(reason) => self.mark(l, packet, reason),
            _ => false,
        };
        if self.ports[l].watched.is_some() {
            let result = self.ledger.tables.queue_dequeued(packet, marked, None);
            self.check(result);
        }
    }

    /// Sets CE on an ECN-capable packet.
    #[inline]
    pub fn mark(&mut self, l: usize, packet: PacketId, reason: MarkReason) -> bool {
        let envelope = &mut self.pool[packet];
        if envelope.ecn == Ecn::NotEct {
            return false;
        }
        envelope.ecn = Ecn::Ce;
        self.ports[l].marks += 1;
        self.ledger.count_mark(reason);
        true
    }

    /// Adds a timeout; the inner loop must not run past it.
    #[inline]
    pub fn set_timer(&mut self, at: Time, key: TimerKey) {
        self.timers.push(at, key);
        self.barrier = self.barrier.min(at);
    }

    /// Records the first table error; the run ends as soon as the inner loop does.
    pub fn check(&mut self, result: Result<(), TableError>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
            self.barrier = Time::ZERO;
        }
    }

    /// The switch that a port belongs to, and which of its ports it is.
    #[inline]
    pub fn switch_port(&self, l: usize) -> (u32, PortNo) {
        self.ports[l].switch()
    }

    /// Records an arrival at a watched port: what its queue, of `found` bytes and packets besides what is held, made of a packet that had
    /// `frame` bytes.
    pub fn record_arrival(&mut self, l: usize, found: (u64, u32), packet: PacketId, frame: u16, (marked, fate): (bool, Fate)) {
        let port = &self.ports[l];
        let Some(number) = port.watched else { return };
        let found = (found.0 + u64::from(port.held_bytes), found.1 + port.held_packets);
        let decided = port.explicit.as_deref().is_some_and(|explicit| explicit.decided);
        let later = fate != Fate::Refused && (port.at_dequeue & at_dequeue::MARK != 0 || decided);
        if self.record_again(l, packet, (marked, fate), later) {
            return;
        }
        if fate != Fate::Refused && self.ledger.stamps.is_some() {
            self.ledger.stamp(packet, number, self.now, Bytes(found.0));
        }
        let row = self.queue_row(l, found, packet, frame, (marked, fate));
        let result = self.ledger.tables.queue(number, row, later.then_some(packet));
        self.check(result);
    }

    /// The row of a packet that reaches a watched port.
    pub fn queue_row(&self, l: usize, found: (u64, u32), packet: PacketId, frame: u16, (marked, fate): (bool, Fate)) -> QueueRow {
        QueueRow {
            time_ps: self.now.ps(),
            port: self.ports[l].name.clone(),
            queue_bytes: found.0,
            queue_packets: found.1,
            flow: self.pool[packet].flow.0,
            frame_bytes: frame,
            marked,
            dropped: fate == Fate::Refused,
            replaced: fate == Fate::Replaces,
            at_head: false,
        }
    }

    /// A port does not accept a packet that had `frame` bytes. `room`: for want of room, which marking policies that average over
    /// arrivals see too.
    pub fn note_refusal(&mut self, l: usize, view: &PortView, packet: PacketId, frame: u16, room: bool) {
        if room {
            let whole = Envelope { frame, ..self.pool[packet] };
            if self.ports[l].by_class {
                self.refused_of_class(l, view, &whole);
            } else {
                self.ports[l].marker.on_refused(view, &whole);
            }
        }
        self.record_arrival(l, (view.queue_bytes, view.queue_packets), packet, frame, (false, Fate::Refused));
    }

    /// A message that travels as packets do has come to its end; gives its shim.
    pub fn end_clone(&mut self, packet: PacketId) -> Option<Shim> {
        let shim = self.pool.shim(packet);
        if let Some(stamps) = &mut self.ledger.stamps {
            stamps.clear(packet);
        }
        self.pool.free_message(packet);
        shim
    }

    /// Writes the registers of port `l` into a packet that passes it, where it is watched.
    pub fn stamp_at(&mut self, l: usize, packet: PacketId) {
        if let Some(number) = self.ports[l].watched {
            self.catch_up(l);
            let queue = Bytes(self.standing(l).0);
            self.ledger.stamp(packet, number, self.now, queue);
        }
    }

    /// A packet has come to the far end of link `l`: recorded where its flow is followed, or the link is captured.
    #[inline]
    pub fn trace_crossing(&mut self, l: usize, packet: PacketId) {
        if self.ledger.tables.capture.is_some() {
            self.capture_crossing(l, packet);
        }
        let Some(trace) = self.ledger.trace.as_deref_mut() else { return };
        let link = &self.links[l];
        let left = self.now.ps() - link.delay();
        let row = trace.crossed(self.now, packet, &self.ports[l].name, [left - link.tx(self.pool[packet].frame), left]);
        let result = self.ledger.tables.follow(None, None, row);
        self.check(result);
    }

    /// The same where the link is captured.
    #[inline(never)]
    fn capture_crossing(&mut self, l: usize, id: PacketId) {
        let Some(capture) = self.ledger.tables.capture.as_deref_mut() else { return };
        let Some(interface) = capture.interface_of(LinkId(l as u32)) else { return };
        let left = Time::from_ps(self.now.ps() - self.links[l].delay());
        let stamp = self.ledger.stamps.as_ref().map_or(Stamp::EMPTY, |stamps| stamps.of(id));
        let besides = (self.pool.shim_on_wire(id), stamp, self.pool.message(id));
        let result = capture.crossed((self.now, left), interface, self.pool.packet(id), besides);
        self.check(result);
    }

    /// Records and counts a drop.
    pub fn record_drop(&mut self, packet: PacketId, dropped: &Packet, reason: DropReason, port: Name, queue_bytes: u64) {
        let row = DropRow {
            time_ps: self.now.ps(),
            port,
            flow: dropped.envelope.flow.0,
            frame_bytes: dropped.envelope.frame,
            payload_bytes: dropped.envelope.payload,
            seq: dropped.header.number(),
            reason: reason.name().into(),
            queue_bytes,
        };
        let result = self.ledger.record_drop(packet, dropped, row, reason);
        self.check(result);
    }
}
