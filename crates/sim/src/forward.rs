//! What a switch does with a packet: route → admit → mark → queue. Only here are verdicts carried out and counted.

use crate::fib::NextHop;
use crate::link::flag;
use crate::pool::PacketId;
use crate::port::{Limit, Owner};
use crate::world::World;
use fanin_packet::Ecn;
use fanin_switch::{cells, DropReason, MarkReason, MarkVerdict};
use fanin_telemetry::{DropRow, Name, QueueRow};
use fanin_units::{Amount, Bytes, Time};

/// What becomes of a packet that comes to a port's queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is taken.
    Taken,
    /// It is taken in the place of the last one.
    Replaces,
    /// It is not.
    Refused,
}

impl World {
    /// A packet has reached a switch.
    #[inline(always)]
    pub(crate) fn forward(&mut self, s: u32, packet: PacketId) {
        let p = &mut self.pool[packet];
        p.ttl -= 1;
        if p.ttl == 0 {
            return self.drop_at_switch(s, packet, DropReason::TTL);
        }
        let out = match self.fib.lookup(s, p.dst) {
            NextHop::One(link) => link as usize,
            NextHop::Several(links) => {
                let switch = &mut self.switches[s as usize];
                let i = switch.paths.pick(self.now, p, links.len(), switch.seed, &mut switch.rng);
                links[i] as usize
            }
            NextHop::None => return self.drop_at_switch(s, packet, DropReason::NO_ROUTE),
        };
        self.offer(out, packet);
    }

    /// Offers a packet to a switch's output port.
    ///
    /// The common port, inline: FIFO, with a static limit and a marking threshold at enqueue, in bytes or packets. Link,
    /// port and packet are looked up once: stores through any of them would make the compiler look them up again.
    #[inline(always)]
    pub(crate) fn offer(&mut self, l: usize, packet: PacketId) {
        let link = &mut self.links[l];
        if link.flags & flag::SPECIAL != 0 {
            return self.offer_special(l, packet);
        }
        let port = &mut self.ports[l];
        let now = self.now;
        while let Some((_, entry)) = link.next_departure(&self.rings, now) {
            port.count_sent(entry.frame);
        }
        let p = &mut self.pool[packet];
        let frame = p.frame;
        if link.free_at > now.ps() {
            let packets = link.queue_packets();
            let would = if link.flags & flag::LIMIT_PACKETS != 0 { packets + 1 } else { link.queue_bytes + u32::from(frame) };
            if would > link.limit {
                return self.drop_packet(l, packet, DropReason::BUFFER_FULL);
            }
            let found = if link.flags & flag::MARK_PACKETS != 0 { packets } else { link.queue_bytes };
            if found > link.threshold && p.ecn != Ecn::NotEct {
                p.ecn = Ecn::Ce;
                port.marks += 1;
            }
            port.note_queue(now, link.queue_bytes + u32::from(frame), packets + 1);
        } else {
            port.count_sent(frame);
        }
        if link.push(&mut self.rings, now, packet, frame) {
            self.wheel.set((self.arrivals + l) as u32, Time::from_ps(link.front(&self.rings).arrive));
        }
    }

    /// Offers a packet to a port that does more than the straight path.
    #[inline(never)]
    fn offer_special(&mut self, l: usize, packet: PacketId) {
        if self.links[l].flags & flag::EXPLICIT != 0 {
            return self.offer_explicit(l, packet);
        }
        self.catch_up(l);
        if self.admit(l, packet) {
            self.send(l, packet, false);
            let link = &self.links[l];
            let (bytes, packets) = (link.queue_bytes, link.queue_packets());
            self.ports[l].note_queue(self.now, bytes, packets);
        }
    }

    /// Bytes and packets that wait at a port, of either kind.
    pub(crate) fn queue(&self, l: usize) -> (u64, u32) {
        match &self.ports[l].explicit {
            Some(explicit) => (explicit.bytes, explicit.packets),
            None => (u64::from(self.links[l].queue_bytes), self.links[l].queue_packets()),
        }
    }

    /// The whole pipeline of a port: admission, marking, record. The queue is up to now. False when the packet is gone.
    ///
    /// A packet that finds the port idle goes onto the wire at once and takes no buffer.
    pub(crate) fn admit(&mut self, l: usize, packet: PacketId) -> bool {
        let (bytes, packets) = self.queue(l);
        let waits = self.links[l].free_at > self.now.ps();
        let view = self.ports[l].view(self.now, bytes, packets, Time::from_ps(self.links[l].free_at));
        let frame = self.pool[packet].frame;
        let class = self.class_at(l, self.pool[packet].class);
        if waits {
            let refused = match self.ports[l].limit {
                Limit::Unlimited => None,
                Limit::Static(limit) => {
                    let would = match limit {
                        Amount::Bytes(_) => bytes + u64::from(frame),
                        Amount::Packets(_) => u64::from(packets) + 1,
                        Amount::Cells(_) => u64::from(view.queue_cells + cells(frame, self.cell)),
                    };
                    (would > limit.count()).then_some(DropReason::BUFFER_FULL)
                }
                Limit::Shared => self.shared_refuses(l, class, packet),
            };
            if let Some(reason) = refused {
                if self.trim.is_some() && self.take_the_last_place(l, class, packet) {
                    return false;
                }
                self.ports[l].marker.on_refused(&view, &self.pool[packet]);
                self.refuse(l, packet, reason);
                return false;
            }
        }
        let port = &mut self.ports[l];
        let verdict = port.marker.on_enqueue(&view, &self.pool[packet], &mut port.rng);
        let marked = match verdict {
            MarkVerdict::Pass => false,
            MarkVerdict::Mark(reason) => self.mark(l, packet, reason),
            MarkVerdict::Drop(reason) => {
                self.refuse(l, packet, reason);
                return false;
            }
        };
        self.record_arrival(l, packet, marked, Fate::Taken);
        if waits {
            self.ports[l].queue_cells += cells(frame, self.cell);
        }
        true
    }

    /// A packet is not taken by a port: it is dropped, or goes on without its payload.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(&mut self, l: usize, packet: PacketId, reason: DropReason) {
        self.record_arrival(l, packet, false, Fate::Refused);
        if self.trim.is_none() || !self.trim_refused(l, packet, reason) {
            self.drop_packet(l, packet, reason);
        }
    }

    /// Sets CE on an ECN-capable packet.
    pub(crate) fn mark(&mut self, l: usize, packet: PacketId, reason: MarkReason) -> bool {
        let p = &mut self.pool[packet];
        if p.ecn == Ecn::NotEct {
            return false;
        }
        p.ecn = Ecn::Ce;
        self.ports[l].marks += 1;
        *self.recorder.mark_counts.entry(reason.0).or_default() += 1;
        true
    }

    /// A packet's serialisation has begun, at `start`, which lies at or before now: cells, marking at dequeue.
    /// `waited`: it stood in the queue before, which it has left.
    pub(crate) fn after_dequeue(&mut self, l: usize, start: Time, packet: PacketId, waited: bool) {
        if waited {
            self.ports[l].queue_cells -= cells(self.queued_frame(packet), self.cell);
        }
        let (bytes, packets) = self.queue(l);
        let port = &mut self.ports[l];
        if port.marker.acts_at_dequeue() {
            let view = port.view(start, bytes, packets, start);
            let verdict = port.marker.on_dequeue(&view, &self.pool[packet], &mut port.rng);
            let marked = match verdict {
                MarkVerdict::Mark(reason) => self.mark(l, packet, reason),
                _ => false,
            };
            let result = self.recorder.queue_dequeued(packet, marked);
            self.check(result);
        }
    }

    /// Counts and records a packet that is dropped at a port, and takes it out of the world.
    #[cold]
    #[inline(never)]
    pub(crate) fn drop_packet(&mut self, l: usize, packet: PacketId, reason: DropReason) {
        self.ports[l].drops += 1;
        if self.notify.is_some() {
            self.raise_notice(l, packet, reason);
        }
        let (queue_bytes, _) = self.queue(l);
        let port = self.ports[l].name.clone();
        self.drop_with(packet, reason, port, queue_bytes);
    }

    /// The same for a packet that no port of the switch can take; its place is the switch.
    #[cold]
    #[inline(never)]
    fn drop_at_switch(&mut self, s: u32, packet: PacketId, reason: DropReason) {
        let name = self.switches[s as usize].name.clone();
        self.drop_with(packet, reason, name, 0);
    }

    fn drop_with(&mut self, packet: PacketId, reason: DropReason, port: Name, queue_bytes: u64) {
        let p = &self.pool[packet];
        let row = DropRow {
            time_ps: self.now.ps(),
            port,
            flow: p.flow.0,
            frame_bytes: p.frame,
            payload_bytes: p.payload,
            seq: p.seq,
            reason: reason.name().into(),
            queue_bytes,
        };
        let result = self.recorder.drop(row, reason);
        self.check(result);
        self.discard(packet);
    }

    fn discard(&mut self, packet: PacketId) {
        self.totals.dropped += 1;
        if let Some(trim) = &mut self.trim {
            trim.note_drop(&self.pool[packet]);
        }
        if self.observed {
            self.observe_drop(packet);
        }
        let flow = self.pool[packet].flow;
        self.pool.free(packet);
        self.datagram_lost(flow);
    }

    /// Records an arrival at a watched port: what comes of the packet in its queue.
    pub(crate) fn record_arrival(&mut self, l: usize, packet: PacketId, marked: bool, fate: Fate) {
        let Some(number) = self.ports[l].watched else { return };
        let (queue_bytes, queue_packets) = self.queue(l);
        let dropped = fate == Fate::Refused;
        if !dropped {
            self.stamp_at(l, packet);
        }
        let p = &self.pool[packet];
        let row = QueueRow {
            time_ps: self.now.ps(),
            port: self.ports[l].name.clone(),
            queue_bytes,
            queue_packets,
            flow: p.flow.0,
            frame_bytes: p.frame,
            marked,
            dropped,
            replaced: fate == Fate::Replaces,
        };
        let later = !dropped && self.ports[l].marker.acts_at_dequeue();
        let result = self.recorder.queue(number, row, later.then_some(packet));
        self.check(result);
    }

    /// Writes the registers of port `l` into a packet that it sends on, where it is watched.
    pub(crate) fn stamp_at(&mut self, l: usize, packet: PacketId) {
        if let Some(number) = self.ports[l].watched {
            self.stamp(packet, number, Bytes(self.queue(l).0));
        }
    }

    /// The switch that a port belongs to.
    pub(crate) fn switch_of(&self, l: usize) -> usize {
        match self.ports[l].owner {
            Owner::Switch(s) => s as usize,
            Owner::Host(_) => unreachable!("hosts have no switch ports"),
        }
    }
}
