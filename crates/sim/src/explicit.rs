//! Ports whose departures are events: classes, schedulers, shared buffers. Bit-identical to FIFO ports where both apply.

use crate::pool::PacketId;
use crate::world::World;
use fanin_switch::DropReason;
use fanin_units::Time;

impl World {
    /// Offers a packet to a port with explicit departures.
    pub(crate) fn offer_explicit(&mut self, l: usize, packet: PacketId) {
        if (self.trim.is_some() && self.offer_header(l, packet)) || !self.admit(l, packet) {
            return;
        }
        let p = &self.pool[packet];
        let (frame, class) = (p.frame, self.class_at(l, p.class));
        if self.links[l].free_at <= self.now.ps() {
            // Idle: onto the wire at once, through no queue and no buffer, as at a FIFO port.
            self.attach_notice(l, packet);
            self.send(l, packet, false);
            return;
        }
        self.shared_commit(l, class, frame);
        let Some(explicit) = self.ports[l].explicit.as_deref_mut() else { return };
        explicit.queues[class].push_back(packet);
        explicit.scheduler.enqueue(class, frame);
        explicit.bytes += u64::from(frame);
        explicit.packets += 1;
        let (bytes, packets) = (u32::try_from(explicit.bytes).expect("a queue of less than 4 GiB"), explicit.packets);
        self.ports[l].note_queue(self.now, bytes, packets);
        self.arm(l);
    }

    /// Sets the departure event of a port that has something to send, where none is set: when its wire is free.
    pub(crate) fn arm(&mut self, l: usize) {
        let Some(explicit) = self.ports[l].explicit.as_deref_mut() else { return };
        if !explicit.armed {
            explicit.armed = true;
            self.wheel.set(l as u32, Time::from_ps(self.links[l].free_at));
        }
    }

    /// The wire is free: the scheduler says whose packet is next.
    pub(crate) fn explicit_departure(&mut self, l: usize) {
        let Some(explicit) = self.ports[l].explicit.as_deref_mut() else { return };
        explicit.armed = false;
        if self.trim.is_some() && self.header_departs(l) {
            return;
        }
        let Some(explicit) = self.ports[l].explicit.as_deref_mut() else { return };
        let Some(class) = explicit.scheduler.next() else {
            self.send_notice_alone(l);
            return self.arm_for_notices(l);
        };
        let Some(packet) = explicit.queues[class].pop_front() else { return };
        let frame = self.pool[packet].frame;
        explicit.scheduler.dequeued(class, frame);
        explicit.bytes -= u64::from(frame);
        explicit.packets -= 1;
        let more = explicit.packets > 0;
        self.shared_release(l, class, frame);
        self.attach_notice(l, packet);
        self.send(l, packet, true);
        if more {
            self.arm(l);
        } else {
            self.arm_for_notices(l);
            self.arm_for_headers(l);
        }
    }

    /// Whether the switch's shared buffer has no room for a packet of `class` at this port.
    pub(crate) fn shared_refuses(&self, l: usize, class: usize, packet: PacketId) -> Option<DropReason> {
        let shared = self.switches[self.switch_of(l)].shared.as_ref()?;
        let queued = self.ports[l].explicit.as_deref()?.class_used[class];
        shared.check(queued, self.pool[packet].frame).err()
    }

    /// The queue of a traffic class at a port: classes beyond the last share it.
    pub(crate) fn class_at(&self, l: usize, class: u8) -> usize {
        let queues = self.ports[l].explicit.as_deref().map_or(1, |e| e.queues.len());
        usize::from(class).min(queues - 1)
    }

    fn shared_commit(&mut self, l: usize, class: usize, frame: u16) {
        let s = self.switch_of(l);
        if let (Some(shared), Some(explicit)) = (&mut self.switches[s].shared, self.ports[l].explicit.as_deref_mut()) {
            shared.commit(explicit.class_used[class], frame);
            explicit.class_used[class] += shared.size(frame);
        }
    }

    fn shared_release(&mut self, l: usize, class: usize, frame: u16) {
        let s = self.switch_of(l);
        if let (Some(shared), Some(explicit)) = (&mut self.switches[s].shared, self.ports[l].explicit.as_deref_mut()) {
            shared.release(explicit.class_used[class], frame);
            explicit.class_used[class] -= shared.size(frame);
        }
    }
}
