//! The cold half of an output port: counters, buffer, marking state, and the queues of ports off the fast path.

use super::link::Link;
use super::queues::Queues;
use fanin_packet::PacketId;
use fanin_switch::{Admission, Marker, PortNo, PortView};
use fanin_telemetry::Name;
use fanin_units::{BitRate, HostId, QueueClass, Stream, SwitchId, Time, TrafficClass};

/// The node that owns an output port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Owner {
    Host(HostId),
    /// A switch by number, and the number of its port.
    Switch(SwitchId, PortNo),
}

impl Owner {
    /// The switch of a port that is no host's.
    #[inline(always)]
    pub fn switch(self) -> SwitchId {
        match self {
            Owner::Switch(s, _) => s,
            Owner::Host(host) => {
                debug_assert!(false, "host {host} is no switch");
                SwitchId(host.0)
            }
        }
    }
}

/// Consequences of a dequeue besides the departure itself.
pub mod at_dequeue {
    /// The marking policy decides about the packet.
    pub const MARK: u8 = 1;
    /// The state of the port at that instant is written into the packet's shim.
    pub const LEFT: u8 = 1 << 1;
    /// Mechanisms of the switch are notified, not necessarily at that instant.
    pub const NOTIFY: u8 = 1 << 2;
}

/// The cold half of an output port, counters first: those of events that do not happen to every packet. The link has the others.
#[repr(C, align(64))]
pub struct Port {
    /// Times that the link's 32-bit counters of bytes and packets have wrapped.
    pub carried: [u32; 2],
    /// Packets marked here.
    pub marks: u64,
    /// Packets dropped here.
    pub drops: u64,
    /// Largest queue since the last sample; zero while anything is held, so that each arrival is noted ([`Port::most`]).
    pub interval_max: u32,
    /// Largest queue ever.
    pub peak_bytes: u32,
    /// Packets in the largest queue.
    pub peak_packets: u32,
    /// Cells that wait; kept only where something counts in cells.
    pub queue_cells: u32,
    /// Time at which the queue was largest.
    pub peak_time: Time,

    pub owner: Owner,
    pub rate: BitRate,
    /// Wire bytes of each frame besides the frame's own.
    pub overhead: u16,
    /// Code of `rate` in records of telemetry ([`fanin_packet::rate_code`]); zero: it has none.
    pub rate_code: u8,
    /// Consequences of a dequeue ([`at_dequeue`]).
    pub at_dequeue: u8,
    /// True if each class has a marking policy of its own ([`Queues::markers`]).
    pub by_class: bool,
    /// Queues that are paused, a bit for each.
    pub closed: u8,
    /// True if the switch knows that the link is down: packets are dropped at the port, and nothing leaves it. Off the fast path
    /// meanwhile.
    pub down: bool,
    /// True if the port accepts every packet as it is, and nobody wants a record of that: it is asked for neither admission nor marks.
    pub takes_all: bool,
    /// Queue of the last class, which all classes beyond it share.
    pub last_class: u8,
    /// True if packets never wait in the ring of the link.
    pub general: bool,
    /// The class whose packets wait in the ring, and the bytes that had been sent when the first of them began to wait.
    pub in_ring: QueueClass,
    pub since: u64,
    /// Packets that wait while the port is off the fast path; none where it never is.
    pub queues: Option<Box<Queues>>,
    /// Number of the port among watched ports.
    pub watched: Option<u32>,
    /// Admission policy; the link has copies of the limits and thresholds that the fast path needs.
    pub admission: Admission,
    pub marker: Marker,
    pub rng: Stream,
    pub name: Name,
    /// Counters at the last sample: bytes, packets, marks, drops.
    pub sampled: [u64; 4],
    /// Frame bytes and packets that mechanisms hold for the port, which its queue does not include.
    pub held_bytes: u32,
    pub held_packets: u32,
    /// Largest queue with what is held since the last sample, while anything is.
    pub held_max: u32,
}

/// Prefetching of a port, step by step: each step needs what the one before it has fetched.
impl Port {
    /// Hints that the queues are used soon.
    #[inline(always)]
    pub fn prefetch_queues(&self) {
        if let Some(queues) = self.queues.as_deref() {
            queues.prefetch();
        }
    }

    /// Hints that the place of the first packet of class 0 is used soon.
    #[inline(always)]
    pub fn prefetch_next(&self) {
        if let Some(queues) = self.queues.as_deref() {
            queues.prefetch_next();
        }
    }

    /// The first packet of class 0.
    #[inline(always)]
    pub fn next(&self) -> Option<PacketId> {
        self.queues.as_deref()?.next()
    }
}

impl Port {
    /// Frame bytes whose serialisation has begun; the queue is up to now.
    #[inline(always)]
    pub fn sent_bytes(&self, link: &Link) -> u64 {
        (u64::from(self.carried[0]) << 32) + u64::from(link.bytes) - u64::from(link.queue_bytes)
    }

    /// Frame bytes and frames whose serialisation has begun; the queue is up to now.
    pub fn sent(&self, link: &Link) -> [u64; 2] {
        let [bytes, packets] = self.carried.map(|n| u64::from(n) << 32);
        let given = [bytes + u64::from(link.bytes), packets + u64::from(link.tail)];
        [given[0] - u64::from(link.queue_bytes), given[1] - u64::from(link.queue_packets())]
    }

    /// The queue of a traffic class.
    #[inline(always)]
    pub fn class_of(&self, class: TrafficClass) -> QueueClass {
        QueueClass(class.0.min(self.last_class))
    }

    /// True while a queue is paused.
    #[inline(always)]
    pub fn is_closed(&self, class: QueueClass) -> bool {
        class.is_in(self.closed)
    }

    /// Closes these classes; the last queue waits with any class that belongs to it.
    pub fn close(&mut self, classes: u8) {
        self.closed = self.queues_of(classes);
        if let Some(queues) = self.queues.as_deref_mut() {
            queues.scheduler.gate(self.closed);
        }
    }

    /// The queues of these classes, a bit for each.
    pub fn queues_of(&self, classes: u8) -> u8 {
        let last = self.last_class;
        classes & ((1 << last) - 1) | u8::from(classes >> last != 0) << last
    }

    /// Remembers the queue after an arrival, if it is the largest.
    #[inline(always)]
    pub fn note_queue(&mut self, link: &mut Link, now: Time, bytes: u32, packets: u32) {
        if link.may_exceed(bytes) && bytes > self.interval_max {
            if self.held_packets > 0 {
                return self.note_with_held(now, bytes, packets);
            }
            self.interval_max = bytes;
            link.set_peak(bytes);
            if bytes > self.peak_bytes {
                self.peak_bytes = bytes;
                self.peak_packets = packets;
                self.peak_time = now;
            }
        }
    }

    /// The switch that the port belongs to, and the port's number there.
    #[inline(always)]
    pub fn switch(&self) -> (SwitchId, PortNo) {
        match self.owner {
            Owner::Switch(s, port) => (s, port),
            Owner::Host(_) => unreachable!("hosts have no switch ports"),
        }
    }

    /// The queue as policies see it.
    #[inline(always)]
    pub fn view(&self, now: Time, queue_bytes: u64, queue_packets: u32, free_at: Time) -> PortView {
        PortView {
            now,
            queue_bytes,
            queue_packets,
            queue_cells: self.queue_cells,
            rate: self.rate,
            overhead: self.overhead,
            free_at,
        }
    }
}
