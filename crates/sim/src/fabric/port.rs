//! The cold half of an output port: counters, marking state, and the queues of ports that need departures as events.

use super::link::{prefetch, prefetch_lines, Link};
use super::pool::Pool;
use fanin_packet::{Envelope, PacketId};
use fanin_switch::{Admission, Express, MarkVerdict, Marker, PortNo, PortView, Scheduler, Unit, View};
use fanin_telemetry::Name;
use fanin_units::{BitRate, Span, Stream, Time};
use std::collections::VecDeque;

/// Whose output port it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Owner {
    Host(u32),
    /// A switch by number, and which of its ports.
    Switch(u32, PortNo),
}

impl Owner {
    /// Its number among hosts or among switches.
    #[inline(always)]
    pub fn node(self) -> usize {
        match self {
            Owner::Host(node) | Owner::Switch(node, _) => node as usize,
        }
    }
}

/// What happens to a packet that leaves a queue, besides.
pub mod at_dequeue {
    /// The marking policy decides about it.
    pub const MARK: u8 = 1;
    /// What the port is like then is written into its shim.
    pub const LEFT: u8 = 1 << 1;
    /// Express packets stand in the ring, or have left it before the others that wait.
    pub const EXPRESS: u8 = 1 << 2;
}

/// The cold half of an output port, its counters first: those of what does not happen to every packet. The others are the link's.
#[repr(C, align(64))]
pub struct Port {
    /// How often the link's counters of bytes and packets have passed 2^32.
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
    /// When the queue was largest.
    pub peak_time: Time,

    pub owner: Owner,
    pub rate: BitRate,
    /// Wire bytes of each frame besides its own.
    pub overhead: u16,
    /// See [`at_dequeue`].
    pub at_dequeue: u8,
    /// Each class has a marking policy of its own ([`Explicit::markers`]).
    pub by_class: bool,
    pub explicit: Option<Box<Explicit>>,
    /// Its number among watched ports.
    pub watched: Option<u32>,
    /// Limits and thresholds that the straight path knows stand in the link too.
    pub admission: Admission,
    pub marker: Marker,
    pub rng: Stream,
    pub name: Name,
    /// Counters at the last sample: bytes, packets, marks, drops.
    pub sampled: [u64; 4],
    /// Frame bytes and packets that mechanisms hold for it, which its queue does not have.
    pub held_bytes: u32,
    pub held_packets: u32,
    /// Largest queue with what is held since the last sample, while anything is.
    pub held_max: u32,
}

/// The queue that a packet finds. Policies are compiled for each of these by itself: much of what they ask for is nothing then.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// None: it leaves at once.
    Idle,
    /// Bytes and packets of a port at which it will wait.
    Busy(u64, u32),
    /// Of any port.
    Any(u64, u32),
}

impl Found {
    /// Bytes and packets.
    #[inline(always)]
    pub fn queue(self) -> (u64, u32) {
        match self {
            Found::Idle => (0, 0),
            Found::Busy(bytes, packets) | Found::Any(bytes, packets) => (bytes, packets),
        }
    }

    /// See [`View::idle`]; `free_at`: when the wire is free of all that the port was given.
    #[inline(always)]
    pub fn idle(self, now: Time, free_at: Time) -> Span {
        match self {
            Found::Idle | Found::Any(_, 0) => now.since(free_at),
            Found::Busy(..) | Found::Any(..) => Span::ZERO,
        }
    }
}

/// Lines of an [`Explicit`].
const EXPLICIT_LINES: usize = std::mem::size_of::<Explicit>() / 64;

/// What a port with classes or mechanisms has besides: its queues while departures are events.
#[repr(align(64))]
pub struct Explicit {
    /// Departures are always events.
    pub always: bool,
    /// While they are not: the class of all that waits, and the bytes sent when the first of it came.
    pub class: usize,
    pub since: u64,
    pub queues: Vec<VecDeque<PacketId>>,
    /// Control frames that leave before anything else.
    pub control: VecDeque<PacketId>,
    pub scheduler: Scheduler,
    /// Whether a departure event is set.
    pub armed: bool,
    /// Queues that are paused, a bit for each. Departures are events as long as there are any.
    pub closed: u8,
    pub bytes: u64,
    pub packets: u32,
    /// The marking policy decides at the heads of queues. Departures are always events there.
    pub decided: bool,
    /// By class, where it does, or where each class has a policy of its own.
    pub heads: Option<Box<[Heads]>>,
    /// Those policies.
    pub markers: Option<Box<[Marker]>>,
    /// Packets of a class leave by rank.
    pub ranked: bool,
    /// `heads` or `ranked`: more is to be done when a packet joins.
    besides: bool,
    /// Packets that overtake all others, where a mechanism wants that.
    pub express: Option<Express>,
}

/// What policies ask about the queue of a class besides, while departures are events.
#[derive(Clone, Default)]
pub struct Heads {
    /// When each packet joined the queue; where a policy decides at its head.
    pub joined: VecDeque<Time>,
    /// Frame bytes that wait.
    pub bytes: u64,
}

impl Explicit {
    /// Empty queues of this discipline. `decided`: the marking policy decides at the head of a queue; `ranked`: packets of a class leave
    /// by rank; `markers`: a policy for each class, if they have their own.
    pub fn new(scheduler: Scheduler, always: bool, (decided, ranked): (bool, bool), markers: Option<Box<[Marker]>>) -> Self {
        let classes = scheduler.classes();
        let heads = decided || markers.is_some();
        Explicit {
            always: always || decided,
            class: 0,
            since: 0,
            queues: vec![VecDeque::new(); classes],
            control: VecDeque::new(),
            scheduler,
            armed: false,
            closed: 0,
            bytes: 0,
            packets: 0,
            decided,
            heads: heads.then(|| vec![Heads::default(); classes].into()),
            markers,
            ranked,
            besides: heads || ranked,
            express: None,
        }
    }

    /// A packet joins the queue of a class.
    #[inline(always)]
    pub fn join(&mut self, pool: &Pool, class: usize, (packet, frame): (PacketId, u16), now: Time) {
        self.queues[class].push_back(packet);
        self.scheduler.enqueue(class, frame);
        self.bytes += u64::from(frame);
        self.packets += 1;
        if self.besides {
            if self.ranked {
                return self.take_its_place(pool, class, now);
            }
            if let Some(heads) = self.heads.as_deref_mut() {
                if self.decided {
                    heads[class].joined.push_back(now);
                }
                heads[class].bytes += u64::from(frame);
            }
        }
    }

    /// The packet that has joined a queue of ranks goes before those of higher ranks.
    #[inline(never)]
    fn take_its_place(&mut self, pool: &Pool, class: usize, now: Time) {
        let queue = &mut self.queues[class];
        let Some(last) = queue.len().checked_sub(1) else { return };
        let packet = queue[last];
        queue.pop_back();
        let rank = pool.rank(packet);
        let place = queue.partition_point(|other| pool.rank(*other) <= rank);
        queue.insert(place, packet);
        if place < last {
            self.scheduler.moved(class, place);
        }
        if let Some(heads) = self.heads.as_deref_mut() {
            if self.decided {
                heads[class].joined.insert(place, now);
            }
            heads[class].bytes += u64::from(pool[packet].frame);
        }
    }

    /// A packet leaves the queue of a class from wherever it stands; gives its frame bytes, `None` where it is not there.
    pub fn take_out(&mut self, pool: &Pool, class: usize, packet: PacketId) -> Option<u16> {
        let place = self.queues[class].iter().position(|other| *other == packet)?;
        let frame = pool[packet].frame;
        self.queues[class].remove(place);
        self.scheduler.removed(class, place, frame);
        self.bytes -= u64::from(frame);
        self.packets -= 1;
        if let Some(heads) = self.heads.as_deref_mut() {
            if self.decided {
                heads[class].joined.remove(place);
            }
            heads[class].bytes -= u64::from(frame);
        }
        Some(frame)
    }

    /// A frame has left the queue of a class, where nobody decides about it.
    #[inline(always)]
    pub fn left(&mut self, class: usize, frame: u16) {
        self.bytes -= u64::from(frame);
        self.packets -= 1;
        if self.markers.is_some() {
            self.left_class(class, frame);
        }
    }

    #[inline(never)]
    fn left_class(&mut self, class: usize, frame: u16) {
        if let Some(heads) = self.heads.as_deref_mut() {
            heads[class].bytes -= u64::from(frame);
        }
    }

    /// The queues of these classes, a bit for each: classes beyond the last share it.
    pub fn queues_of(&self, classes: u8) -> u8 {
        let last = self.queues.len() - 1;
        classes & ((1 << last) - 1) | u8::from(classes >> last != 0) << last
    }

    /// From now on these classes wait; the last queue waits with any that belongs to it.
    pub fn close(&mut self, classes: u8) {
        self.closed = self.queues_of(classes);
        self.scheduler.gate(self.closed);
    }

    /// Whether a queue is paused.
    #[inline(always)]
    pub fn is_closed(&self, class: usize) -> bool {
        self.closed >> class & 1 != 0
    }

    /// Whether express packets wait.
    #[inline]
    pub fn express_waits(&self) -> bool {
        self.express.as_ref().is_some_and(|express| express.packets() > 0)
    }

    /// Whether a packet waits that may be sent.
    pub fn has_next(&self) -> bool {
        self.packets > 0 && (self.closed == 0 || self.scheduler.next().is_some())
    }

    /// Frame bytes that wait and may be sent.
    pub fn sendable_bytes(&self, pool: &Pool) -> u64 {
        let open = self.queues.iter().enumerate().filter(|(class, _)| !self.is_closed(*class));
        match self.closed {
            0 => self.bytes,
            _ => open.flat_map(|(_, queue)| queue).map(|packet| u64::from(pool[*packet].frame)).sum(),
        }
    }

    /// The queue of a traffic class: classes beyond the last share it.
    pub fn class_of(&self, class: u8) -> usize {
        usize::from(class).min(self.queues.len() - 1)
    }
}

/// Hints, step by step: each needs what the one before it has fetched.
impl Port {
    /// What it has besides is used soon, if it has anything.
    #[inline(always)]
    pub fn prefetch_queues(&self) {
        if let Some(explicit) = self.explicit.as_deref() {
            prefetch_lines::<EXPLICIT_LINES, _>(explicit);
        }
    }

    /// The queue of its first class is.
    #[inline(always)]
    pub fn prefetch_queue(&self) {
        if let Some(explicit) = self.explicit.as_deref() {
            prefetch(explicit.queues.as_ptr());
        }
    }

    /// The place of the packet that is first there.
    #[inline(always)]
    pub fn prefetch_next(&self) {
        if let Some(front) = self.explicit.as_deref().and_then(|explicit| explicit.queues[0].front()) {
            prefetch(front);
        }
    }

    /// That packet.
    #[inline(always)]
    pub fn next(&self) -> Option<PacketId> {
        self.explicit.as_deref()?.queues[0].front().copied()
    }
}

impl Port {
    /// Frame bytes and frames whose serialisation has begun; the queue is up to now.
    pub fn sent(&self, link: &Link) -> [u64; 2] {
        let [bytes, packets] = self.carried.map(|n| u64::from(n) << 32);
        let given = [bytes + u64::from(link.bytes), packets + u64::from(link.tail)];
        [given[0] - u64::from(link.queue_bytes), given[1] - u64::from(link.queue_packets())]
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

    /// The switch that it belongs to, and which of its ports it is.
    pub fn switch(&self) -> (u32, PortNo) {
        match self.owner {
            Owner::Switch(s, port) => (s, port),
            Owner::Host(_) => unreachable!("hosts have no switch ports"),
        }
    }

    /// Asks the marking policy about a packet that finds the port so; `idle`: see [`View::idle`]. Compiled for the policy `N` ([`Marker::on_enqueue_at`]).
    #[inline(always)]
    pub fn mark_at_enqueue<const N: u8>(
        &mut self,
        now: Time,
        found: Found,
        idle: impl Fn() -> Span,
        p: &Envelope,
    ) -> MarkVerdict {
        if N != Marker::ANY && self.marker.number() != N {
            return self.mark_by_another(now, found.queue(), idle(), p);
        }
        let Port { marker, rng, queue_cells, rate, overhead, .. } = self;
        let (queue, queue_cells) = (found.queue(), if matches!(found, Found::Idle) { &0 } else { &*queue_cells });
        marker.on_enqueue_at::<N>(&Asked { now, queue, queue_cells, rate, overhead, idle }, p, rng)
    }

    #[cold]
    #[inline(never)]
    fn mark_by_another(&mut self, now: Time, queue: (u64, u32), idle: Span, p: &Envelope) -> MarkVerdict {
        let view = self.view(now, queue.0, queue.1, Time::from_ps(now.ps() - idle.ps()));
        self.marker.on_enqueue(&view, p, &mut self.rng)
    }

    /// The same about a packet that has left the queue at `now` and is about to be sent.
    #[inline(always)]
    pub fn mark_at_dequeue(&mut self, now: Time, queue: (u64, u32), p: &Envelope) -> MarkVerdict {
        let Port { marker, rng, queue_cells, rate, overhead, .. } = self;
        marker.on_dequeue(&Asked { now, queue, queue_cells, rate, overhead, idle: || Span::ZERO }, p, rng)
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

/// A port that answers its marking policy by itself: what no question asks for is not read.
struct Asked<'a, F> {
    now: Time,
    queue: (u64, u32),
    queue_cells: &'a u32,
    rate: &'a BitRate,
    overhead: &'a u16,
    idle: F,
}

impl<F: Fn() -> Span> View for Asked<'_, F> {
    #[inline(always)]
    fn now(&self) -> Time {
        self.now
    }

    #[inline(always)]
    fn queue(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Bytes => self.queue.0,
            Unit::Packets => u64::from(self.queue.1),
            Unit::Cells => u64::from(*self.queue_cells),
        }
    }

    #[inline(always)]
    fn rate(&self) -> BitRate {
        *self.rate
    }

    #[inline(always)]
    fn overhead(&self) -> u16 {
        *self.overhead
    }

    #[inline(always)]
    fn idle(&self) -> Span {
        (self.idle)()
    }
}
