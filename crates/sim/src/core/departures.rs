//! Lazy dequeue: packets leave their queues when the queue is next read, each with the time at which it left.
//!
//! A port off the fast path decides who is next when its wire is free. That is no event where nobody has to act at that instant: it is
//! caught up with before anything reads or changes the port, and when the last packet on its wire has arrived at the far end, which is
//! before the next one can be there.

use super::link::{flag, Carry};
use super::port::{at_dequeue, Port};
use super::queues::Waiting;
use super::Core;
use fanin_packet::{Departure, PacketId};
use fanin_units::{LinkId, QueueClass, Time};

/// A packet that has left its queue, of which mechanisms are to be notified.
#[derive(Clone, Copy, Debug)]
pub struct Departed {
    pub link: LinkId,
    pub packet: PacketId,
    pub at: Time,
}

/// Handles an overflow of a port's 32-bit counters.
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
    /// Brings a port's queue up to now: packets whose serialisation has begun since it was last read leave it.
    #[inline(always)]
    pub fn catch_up(&mut self, l: LinkId) {
        let (link, rings) = self.links.with_rings(l);
        if link.flags & (flag::GENERAL | flag::DEQUEUE) != 0 {
            return self.catch_up_apart(l);
        }
        link.catch_up(rings.read(), self.now);
    }

    /// [`Core::catch_up`] where departures have consequences.
    #[inline(always)]
    fn catch_up_apart(&mut self, l: LinkId) {
        if self.links[l].flags & flag::GENERAL != 0 {
            return self.catch_up_general(l);
        }
        if self.links[l].queue_packets() > 0 {
            self.leave_ring(l);
        }
    }

    /// Takes out of the ring all packets whose serialisation has begun, with all consequences.
    #[inline(never)]
    fn leave_ring(&mut self, l: LinkId) {
        // What the port does when packets leave is found out once for all of them.
        let port = &self.ports[l];
        let (class, shared, also) = (port.in_ring, port.admission.is_shared(), port.at_dequeue);
        loop {
            let (link, rings) = self.links.with_rings(l);
            let Some((start, entry)) = link.next_departure(rings.read(), self.now) else { return };
            if shared {
                self.left_shared(l, class, entry.frame);
            }
            if also != 0 {
                if let Some(next) = self.links[l].next_to_leave(self.links.rings()) {
                    self.pool.prefetch_leaving(next);
                }
                self.has_left(l, start, (entry.packet, entry.frame), (also, true));
            }
        }
    }

    /// [`Core::catch_up`] of a port off the fast path. Where departures are events nothing is behind.
    #[inline(always)]
    pub fn catch_up_general(&mut self, l: LinkId) {
        let link = &self.links[l];
        if link.is_followed() && link.free_at <= self.now.ps() {
            self.start_all(l);
        }
    }

    #[inline(never)]
    fn start_all(&mut self, l: LinkId) {
        loop {
            let free_at = self.links[l].free_at;
            if free_at > self.now.ps() {
                return self.follow(l);
            }
            if !self.start_next(l, Time::from_ps(free_at)) {
                return self.rest(l);
            }
        }
    }

    /// Lets a port with lazy dequeue send on when its wire is free, which it is not now, if it has anything to send.
    #[inline(always)]
    pub fn follow(&mut self, l: LinkId) {
        let may_send = self.ports[l].queues.as_deref().is_some_and(|queues| queues.may_send());
        let link = &mut self.links[l];
        if may_send {
            link.follow();
        } else {
            self.rest(l);
        }
    }

    /// Starts the next packet, or waits for the wire, at a port whose departures are no events or need not be any more.
    pub fn go_on(&mut self, l: LinkId) {
        if self.links[l].free_at <= self.now.ps() && !self.start_next(l, self.now) {
            return self.rest(l);
        }
        self.follow(l);
    }

    /// Notes that a port with lazy dequeue has nothing to send.
    #[inline(always)]
    fn rest(&mut self, l: LinkId) {
        let (link, port) = (&mut self.links[l], &self.ports[l]);
        link.unfollow();
        if !port.general && !port.down && port.closed == 0 && port.queues.as_deref().is_some_and(|queues| queues.packets == 0) {
            link.flags &= !flag::GENERAL;
        }
    }

    /// Puts the next packet of a port onto its wire, which is free at `start`. False where nothing waits that may be sent.
    #[inline(always)]
    fn start_next(&mut self, l: LinkId, start: Time) -> bool {
        let Some(queues) = self.ports[l].queues.as_deref_mut() else { return false };
        if !queues.control.is_empty() || queues.express.is_some() {
            if let Some(packet) = self.take_before_classes(l) {
                self.start_past_queue(l, start, packet);
                return true;
            }
        }
        let Some((packet, frame)) = self.take_next(l) else { return false };
        self.start(l, start, (packet, frame), Some(frame));
        true
    }

    /// The control frame or the header that leaves next.
    #[inline(never)]
    fn take_before_classes(&mut self, l: LinkId) -> Option<PacketId> {
        let queues = self.ports[l].queues.as_deref_mut()?;
        if let Some(frame) = queues.pop_control() {
            return Some(frame);
        }
        let data = queues.has_next();
        queues.express.as_mut()?.pop(data)
    }

    /// Takes the packet that the scheduler chooses off its queue, with its frame bytes there.
    #[inline(always)]
    pub fn take_next(&mut self, l: LinkId) -> Option<(PacketId, u16)> {
        let port = &mut self.ports[l];
        let queues = port.queues.as_deref_mut()?;
        let (class, next) = queues.pop()?;
        if port.at_dequeue != 0 {
            if let Some(after) = queues.after_next() {
                self.pool.prefetch_leaving(after); // its transmission opportunity is two serialisations later
            }
        }
        if port.admission.is_shared() {
            self.left_shared(l, class, next.frame);
        }
        Some((next.packet, next.frame))
    }

    /// Puts a packet of `frame` bytes onto a wire that is free at `start`, at or before now. `queued`: its frame bytes in the queue that it has
    /// left, if it was in one.
    #[inline(always)]
    pub fn start(&mut self, l: LinkId, start: Time, (packet, frame): (PacketId, u16), queued: Option<u16>) {
        self.put(l, start, packet, frame);
        if self.cell > 0 {
            self.ports[l].queue_cells -= queued.map_or(0, |frame| fanin_switch::cells(frame, self.cell));
        }
        let also = self.ports[l].at_dequeue;
        if also != 0 {
            self.has_left(l, start, (packet, frame), (also, queued.is_some()));
        }
    }

    /// Handles the consequences of a packet's departure at `start` other than its arrival: `also`, as the port has them
    /// ([`at_dequeue`]). `queued`: it has waited.
    #[inline(always)]
    fn has_left(&mut self, l: LinkId, start: Time, (packet, frame): (PacketId, u16), (also, queued): (u8, bool)) {
        if also & at_dequeue::LEFT != 0 {
            self.write_departure(l, start, packet, frame);
        }
        if also & at_dequeue::MARK != 0 {
            self.mark_at_dequeue(l, start, packet);
        }
        // A packet that finds the wire free may have been held for the port: then its departures are events.
        if also & at_dequeue::NOTIFY != 0 && (queued || self.links[l].flags & flag::EVENTS != 0) {
            self.departed.push(Departed { link: l, packet, at: start });
        }
    }

    /// Puts a frame onto a wire that is free at `start`, past the queues of classes.
    pub fn start_past_queue(&mut self, l: LinkId, start: Time, packet: PacketId) {
        let frame = self.pool[packet].frame;
        self.put(l, start, packet, frame);
        let also = self.ports[l].at_dequeue;
        if also & at_dequeue::LEFT != 0 {
            self.write_departure(l, start, packet, frame);
        }
        if also & at_dequeue::NOTIFY != 0 {
            self.departed.push(Departed { link: l, packet, at: start });
        }
    }

    #[inline(always)]
    fn put(&mut self, l: LinkId, start: Time, packet: PacketId, frame: u16) {
        let (ports, stuck, barrier) = (&mut self.ports, &mut self.stuck, &mut self.barrier);
        let carry = |carry| carried(&mut ports[l], stuck, barrier, carry);
        if let Some(arrives) = self.links.start(l, start, packet, frame, carry) {
            self.wheel.set(self.slot_of_arrival(l), arrives);
        }
    }

    /// Gives a packet to a port on the fast path, whose queue is up to now: onto the wire, or behind the packets that wait.
    #[inline(always)]
    pub fn send(&mut self, l: LinkId, packet: PacketId, frame: u16) {
        let (ports, stuck, barrier) = (&mut self.ports, &mut self.stuck, &mut self.barrier);
        let carry = |carry| carried(&mut ports[l], stuck, barrier, carry);
        if let Some(arrives) = self.links.push(l, self.now, packet, frame, carry) {
            self.wheel.set(self.slot_of_arrival(l), arrives);
        }
    }

    /// [`Core::send`] where the wire is not free.
    #[inline(always)]
    pub fn send_busy(&mut self, l: LinkId, packet: PacketId, frame: u16) {
        let (ports, stuck, barrier) = (&mut self.ports, &mut self.stuck, &mut self.barrier);
        let carry = |carry| carried(&mut ports[l], stuck, barrier, carry);
        if let Some(arrives) = self.links.push_busy(l, packet, frame, carry) {
            self.wheel.set(self.slot_of_arrival(l), arrives);
        }
    }

    /// [`Core::send`] where the wire is free; the queue need not be up to now.
    #[inline(always)]
    pub fn send_idle(&mut self, l: LinkId, packet: PacketId, frame: u16) {
        self.put(l, self.now, packet, frame);
    }

    /// A packet is about to join the ring of a port with several classes, which is up to now and whose wire is not free: what waits there is
    /// of one class, or stands in the queues from now on.
    #[inline(always)]
    pub fn keep_one_class(&mut self, l: LinkId, class: QueueClass) {
        let (link, port) = (&self.links[l], &mut self.ports[l]);
        if link.queue_packets() == 0 {
            (port.in_ring, port.since) = (class, port.sent(link)[0]);
        } else if port.in_ring != class {
            self.leave_fast_path(l);
        }
    }

    /// Takes a port off the fast path: packets wait in its queues, until none does.
    #[inline(never)]
    pub fn leave_fast_path(&mut self, l: LinkId) {
        self.catch_up(l);
        let ((link, rings), port) = (self.links.with_rings(l), &mut self.ports[l]);
        // Only now is it known whether anything waits there: a port at which nothing does is on the fast path again.
        if link.flags & flag::GENERAL != 0 || port.queues.is_none() {
            return;
        }
        link.flags |= flag::GENERAL;
        if link.queue_packets() == 0 {
            return;
        }
        let (class, sent) = (port.in_ring, port.sent(link)[0] - port.since);
        let mut waiting = Vec::with_capacity(link.queue_packets() as usize);
        let uncounted = link.take_back(rings.read(), |packet, frame| waiting.push(Waiting { packet, frame }));
        if let Some(queues) = port.queues.as_deref_mut() {
            queues.resume(class, sent, &waiting);
        }
        for (carried, borrowed) in port.carried.iter_mut().zip(uncounted) {
            *carried -= u32::from(borrowed);
        }
        link.follow();
    }

    /// Makes departures of a port events, until nothing waits there.
    pub fn make_events(&mut self, l: LinkId) {
        if self.links[l].flags & flag::EVENTS != 0 {
            return;
        }
        self.leave_fast_path(l);
        let link = &mut self.links[l];
        debug_assert!(link.flags & flag::GENERAL != 0, "events at a port on the fast path");
        link.unfollow();
        link.flags |= flag::EVENTS;
        if self.ports[l].queues.as_deref().is_some_and(|queues| queues.may_send()) {
            self.arm(l);
        }
    }

    /// Sets the departure event of a port with packets to send, if none is set, for the time when its wire is free.
    #[inline]
    pub fn arm(&mut self, l: LinkId) {
        let Some(queues) = self.ports[l].queues.as_deref_mut() else { return };
        if !queues.armed {
            queues.armed = true;
            self.wheel.set(l.0, Time::from_ps(self.links[l].free_at.max(self.now.ps())));
        }
    }

    /// Plans the departure of a packet that has joined the queues of a port: when the wire is free, which it is not, or by an
    /// event.
    #[inline(always)]
    pub fn send_later(&mut self, l: LinkId) {
        let link = &mut self.links[l];
        if link.flags & flag::EVENTS != 0 {
            self.arm(l);
        } else {
            link.follow();
        }
    }

    /// Writes the port's state at a packet's departure into the packet's frame, where there is a place for it.
    #[inline]
    fn write_departure(&mut self, l: LinkId, start: Time, packet: PacketId, frame: u16) {
        if !self.pool.is_written_at_departure(packet) {
            return;
        }
        let port = &self.ports[l];
        let sent_bytes = port.sent_bytes(&self.links[l]) - u64::from(frame);
        let departure = Departure { at: start, queue_bytes: self.queue(l).0, sent_bytes, code: port.rate_code };
        self.pool.write_departure(packet, &departure);
    }
}
