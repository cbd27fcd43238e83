//! Queues of a port off the fast path. The link's ring holds only packets whose serialisation has begun.
//!
//! The next packet is chosen when the wire is free: control frames, then headers ([`Express`]), then the class that the scheduler names.

use super::pool::Pool;
use fanin_packet::PacketId;
use fanin_switch::{Express, Marker, Scheduler};
use fanin_units::{prefetch, prefetch_lines, QueueClass, Time};
use std::collections::VecDeque;

/// A packet in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub packet: PacketId,
    /// Frame bytes for which the packet counts in the queue.
    pub frame: u16,
}

/// Cache lines of [`Queues`] that a packet needs.
const LINES: usize = 2;

/// The queues of a port.
#[repr(C, align(64))]
pub struct Queues {
    /// Queue of class 0, kept apart as most ports have no other.
    first: VecDeque<Waiting>,
    /// Frame bytes and packets that wait in all queues of classes.
    pub bytes: u64,
    pub packets: u32,
    /// True if a departure event is set.
    pub armed: bool,
    /// Departures are always events.
    pub always: bool,
    /// The marking policy decides at the heads of queues. Departures are always events there.
    pub decided: bool,
    /// Packets of a class leave by rank.
    pub ranked: bool,
    /// True with `heads` or `ranked`: more is to be done when a packet joins.
    besides: bool,
    /// Queue of trimmed packets, apart from those of classes, where a mechanism wants one.
    pub express: Option<Box<Express>>,
    /// Control frames, which leave before anything else: a pause, of which at most one waits, then the others.
    pub control: VecDeque<PacketId>,
    /// True if the first control frame is a pause.
    pub pauses: bool,
    /// State of each class's queue, where `decided`, or where each class has a policy of its own.
    pub heads: Option<Box<[Heads]>>,
    /// Marking policy of each class, where each has its own.
    pub markers: Option<Box<[Marker]>>,
    /// The queues of further classes.
    others: Box<[VecDeque<Waiting>]>,
    pub scheduler: Scheduler,
}

/// The state of a class's queue that some policies ask for: when packets joined, and its bytes.
#[derive(Clone, Default)]
pub struct Heads {
    /// Times at which the packets of the queue joined it; kept where a policy decides at its head.
    pub joined: VecDeque<Time>,
    /// Frame bytes of the queue.
    pub bytes: u64,
}

impl Queues {
    /// Empty queues of this discipline. `always`: departures are always events; `decided`: the marking policy decides at the head of a
    /// queue; `ranked`: packets of a class leave by rank; `markers`: a policy for each class, if they have their own.
    pub fn new(scheduler: Scheduler, always: bool, (decided, ranked): (bool, bool), markers: Option<Box<[Marker]>>) -> Self {
        let classes = scheduler.classes();
        let heads = decided || markers.is_some();
        Queues {
            first: VecDeque::new(),
            bytes: 0,
            packets: 0,
            armed: false,
            always: always || decided,
            decided,
            ranked,
            besides: heads || ranked,
            express: None,
            control: VecDeque::new(),
            pauses: false,
            heads: heads.then(|| vec![Heads::default(); classes].into()),
            markers,
            others: vec![VecDeque::new(); classes - 1].into(),
            scheduler,
        }
    }

    /// Number of queues.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.others.len() + 1
    }

    /// The queue of a class.
    #[inline(always)]
    pub fn of(&self, class: QueueClass) -> &VecDeque<Waiting> {
        match class.index().checked_sub(1) {
            None => &self.first,
            Some(further) => &self.others[further],
        }
    }

    #[inline(always)]
    fn of_mut(&mut self, class: QueueClass) -> &mut VecDeque<Waiting> {
        match class.index().checked_sub(1) {
            None => &mut self.first,
            Some(further) => &mut self.others[further],
        }
    }

    /// Appends a packet to the queue of a class.
    #[inline(always)]
    pub fn join(&mut self, pool: &Pool, class: QueueClass, waiting: Waiting, now: Time) {
        self.of_mut(class).push_back(waiting);
        self.scheduler.enqueue(class, waiting.frame);
        self.bytes += u64::from(waiting.frame);
        self.packets += 1;
        if self.besides {
            self.joined(pool, class, waiting, now);
        }
    }

    /// Moves packets that have waited in the ring, all of one class, into this queue, which is empty. `sent`: bytes that have
    /// left since the first of that class began to wait.
    pub fn resume(&mut self, class: QueueClass, sent: u64, waiting: &[Waiting]) {
        debug_assert!(self.packets == 0 && !self.besides, "queues that cannot be taken up");
        let frames: Vec<u16> = waiting.iter().map(|waiting| waiting.frame).collect();
        self.scheduler.resume(class, sent, &frames);
        self.of_mut(class).extend(waiting);
        self.bytes += frames.iter().map(|frame| u64::from(*frame)).sum::<u64>();
        self.packets += waiting.len() as u32;
    }

    /// Places a packet that has joined a queue before those of higher ranks, and counts it in the queue of its class.
    #[inline(never)]
    fn joined(&mut self, pool: &Pool, class: QueueClass, waiting: Waiting, now: Time) {
        let mut place = self.of(class).len() - 1;
        if self.ranked {
            let (last, rank) = (place, pool.rank(waiting.packet));
            let queue = self.of_mut(class);
            queue.pop_back();
            place = queue.partition_point(|other| pool.rank(other.packet) <= rank);
            queue.insert(place, waiting);
            if place < last {
                self.scheduler.moved(class, place);
            }
        }
        if let Some(heads) = self.heads.as_deref_mut() {
            if self.decided {
                heads[class].joined.insert(place, now);
            }
            heads[class].bytes += u64::from(waiting.frame);
        }
    }

    /// Takes the next packet off its queue, as the scheduler says, where no policy decides at the head.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(QueueClass, Waiting)> {
        let class = self.scheduler.next()?;
        let next = self.of_mut(class).pop_front()?;
        self.scheduler.dequeued(class, next.frame);
        self.bytes -= u64::from(next.frame);
        self.packets -= 1;
        if self.markers.is_some() {
            self.left_class(class, next.frame);
        }
        Some((class, next))
    }

    #[inline(never)]
    fn left_class(&mut self, class: QueueClass, frame: u16) {
        if let Some(heads) = self.heads.as_deref_mut() {
            heads[class].bytes -= u64::from(frame);
        }
    }

    /// Takes the head of the next queue off it, where a policy decides about it; with the time when it joined, and the bytes of
    /// its class, its own included.
    pub fn pop_head(&mut self) -> Option<(QueueClass, Waiting, Time, u64)> {
        let class = self.scheduler.next()?;
        let next = self.of_mut(class).pop_front()?;
        let heads = &mut self.heads.as_deref_mut()?[class];
        let (joined, bytes) = (heads.joined.pop_front()?, heads.bytes);
        heads.bytes -= u64::from(next.frame);
        self.bytes -= u64::from(next.frame);
        self.packets -= 1;
        Some((class, next, joined, bytes))
    }

    /// Takes a packet out of the queue of a class, wherever it stands; gives its frame bytes, `None` where it is not there.
    pub fn take_out(&mut self, class: QueueClass, packet: PacketId) -> Option<u16> {
        let place = self.of(class).iter().position(|other| other.packet == packet)?;
        let frame = self.of_mut(class).remove(place)?.frame;
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

    /// Takes all packets of a queue whose class is closed, in order; the port's counts still have them.
    pub fn take_all(&mut self, class: QueueClass) -> VecDeque<Waiting> {
        self.scheduler.flush(class);
        if let Some(heads) = self.heads.as_deref_mut() {
            heads[class] = Heads::default();
        }
        std::mem::take(self.of_mut(class))
    }

    /// Takes the next control frame off its queue.
    #[inline]
    pub fn pop_control(&mut self) -> Option<PacketId> {
        self.pauses = false;
        self.control.pop_front()
    }

    /// True while a packet of a class waits that may be sent.
    #[inline(always)]
    pub fn has_next(&self) -> bool {
        self.packets > 0 && self.scheduler.next().is_some()
    }

    /// True while trimmed packets wait in the express queue.
    #[inline(always)]
    pub fn has_headers(&self) -> bool {
        self.express.as_ref().is_some_and(|express| express.packets() > 0)
    }

    /// True while anything waits that may be sent.
    #[inline(always)]
    pub fn may_send(&self) -> bool {
        self.has_next() || !self.control.is_empty() || self.has_headers()
    }

    /// Frame bytes of classes that wait and are not `closed`, a bit for each.
    pub fn open_bytes(&self, closed: u8) -> u64 {
        if closed == 0 {
            return self.bytes;
        }
        let open = QueueClass::all(self.count()).filter(|class| !class.is_in(closed));
        open.flat_map(|class| self.of(class)).map(|waiting| u64::from(waiting.frame)).sum()
    }

    /// Hints that the queues are used soon.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch_lines::<LINES, _>(self);
    }

    /// Hints that the first packet of class 0 is.
    #[inline(always)]
    pub fn prefetch_next(&self) {
        if let Some(front) = self.first.front() {
            prefetch(front);
        }
    }

    /// The first packet of class 0.
    #[inline(always)]
    pub fn next(&self) -> Option<PacketId> {
        self.first.front().map(|waiting| waiting.packet)
    }

    /// The second packet of class 0.
    #[inline(always)]
    pub fn after_next(&self) -> Option<PacketId> {
        self.first.get(1).map(|waiting| waiting.packet)
    }
}
