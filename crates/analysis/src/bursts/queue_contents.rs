//! Contents of a port's queue: the packets that stand in it.
//!
//! A FIFO queue of q bytes holds the last packets it accepted whose bytes make q: each arrival reports q anew, so the front is
//! known without knowing the port's speed. Where records are missing, the suffix would reach back to packets that have long left; what
//! is then certain is kept apart as unknown bytes, in two ways: the queue grew by more than was accepted; and, once that has been
//! seen and where the speed is known, packets that the port must have sent meanwhile leave the front.

use crate::bursts::flows::{Flows, Shares, UNKNOWN};
use fanin_units::BPS;
use std::collections::VecDeque;

/// Packets that are remembered; the oldest of more count as unattributed.
const MAX_PACKETS: usize = 1 << 20;

#[derive(Clone, Copy, Debug)]
struct Packet {
    slot: u32,
    frame: u32,
}

/// Queue at its last peak, in numbers of packets since the beginning.
#[derive(Clone, Copy, Debug)]
struct Peak {
    front: u64,
    back: u64,
    queue: u64,
    /// Bytes from front to back, more than `queue` when the front has left in part.
    bytes: u64,
    /// Last packet at that time, if its place has been taken since.
    last: Option<Packet>,
}

/// Count of the bytes that the port must have sent, by its speed.
#[derive(Clone, Copy, Debug)]
struct Pace {
    bytes_per_ps: f64,
    overhead: u64,
    tick: u64,
    since: u64,
    sent: f64,
}

/// Facts about the packets before that an arrival shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Bytes in the queue that no record explains.
    pub unexplained: u64,
}

#[derive(Debug)]
pub struct Standing {
    /// Packets `base ..`, the standing ones from `front`.
    ring: VecDeque<Packet>,
    base: u64,
    front: u64,
    bytes: u64,
    peak: Option<Peak>,
    at_peak: Option<Shares>,
    pace: Option<Pace>,
    /// Records are certainly missing.
    pub holes: bool,
    /// Packets that were sent.
    pub departed: u64,
    /// Packets that were or will be dropped at the front, by number.
    doomed: VecDeque<u64>,
    /// First doomed packet that still stands in the queue; `u64::MAX`: none.
    next_doomed: u64,
    /// Bytes that left the queue by drops at its front.
    pub unsent: u64,
    last_time: u64,
    last_queue: u64,
    /// Bytes of unknown packets at the front that were sent: they stand there as one.
    worn: u64,
}

impl Standing {
    pub fn new(rate_bps: Option<u64>, overhead: u64, tick: u64) -> Self {
        let pace = rate_bps.map(|bps| Pace { bytes_per_ps: bps as f64 / BPS, overhead, tick, since: 0, sent: 0.0 });
        Standing {
            ring: VecDeque::new(),
            base: 0,
            front: 0,
            bytes: 0,
            peak: None,
            at_peak: None,
            pace,
            holes: false,
            departed: 0,
            doomed: VecDeque::new(),
            next_doomed: u64::MAX,
            unsent: 0,
            last_time: 0,
            last_queue: 0,
            worn: 0,
        }
    }

    /// Records are certainly missing: from now on the port's speed tells what must have left.
    #[cold]
    pub fn miss(&mut self, now: u64) {
        if let (false, Some(pace)) = (self.holes, &mut self.pace) {
            (pace.since, pace.sent) = (now, 0.0);
        }
        self.holes = true;
    }

    /// Bytes of the packet at the front that still stand.
    #[inline(always)]
    fn front_bytes(&self) -> u64 {
        u64::from(self.ring[(self.front - self.base) as usize].frame) - self.worn
    }

    #[inline(always)]
    fn pop(&mut self) -> Packet {
        let packet = self.ring[(self.front - self.base) as usize];
        if self.front == self.next_doomed {
            return self.pop_doomed();
        }
        let bytes = self.front_bytes();
        self.front += 1;
        self.departed += 1;
        self.bytes -= bytes;
        self.worn = 0;
        if let (true, Some(pace)) = (self.holes, &mut self.pace) {
            pace.sent += (bytes + pace.overhead) as f64;
        }
        packet
    }

    /// Removes the packet at the front, which was dropped there: the port sent nothing.
    #[inline(never)]
    fn pop_doomed(&mut self) -> Packet {
        let packet = self.ring[(self.front - self.base) as usize];
        self.front += 1;
        self.bytes -= u64::from(packet.frame);
        self.unsent += u64::from(packet.frame);
        self.doomed.pop_front();
        self.next_doomed = self.doomed.front().copied().unwrap_or(u64::MAX);
        packet
    }

    /// Brings the contents up to an arrival at `now` that found `queue`; `largest`: the largest frame so far.
    #[inline(always)]
    pub fn found(&mut self, now: u64, queue: u64, largest: u64, flows: &mut Flows, top: usize) -> Seen {
        while self.bytes > queue && self.bytes - self.front_bytes() >= queue {
            self.pop();
        }
        if self.holes {
            self.keep_pace(now, queue, largest);
        }
        let mut seen = Seen::default();
        if self.bytes < queue {
            seen.unexplained = queue - self.bytes;
            self.push(UNKNOWN, u32::try_from(seen.unexplained).unwrap_or(u32::MAX));
        }
        if self.peak.is_some_and(|peak| self.front >= peak.back) {
            self.fold(flows, top);
        }
        self.release();
        self.last_time = now;
        self.last_queue = self.bytes;
        seen
    }

    /// Packets that the port must have sent since leave the front.
    #[inline(never)]
    fn keep_pace(&mut self, now: u64, queue: u64, largest: u64) {
        let Some(mut pace) = self.pace else { return };
        let slack = (largest + pace.overhead) as f64 + pace.bytes_per_ps * pace.tick as f64;
        let since_last = pace.bytes_per_ps * (now - self.last_time) as f64;
        let elapsed = pace.bytes_per_ps * (now - pace.since) as f64;
        // It may have been idle, it is idle, or it is faster than said: begin anew.
        if queue == 0 || since_last > self.last_queue as f64 || pace.sent > elapsed + slack {
            pace.since = now;
            pace.sent = 0.0;
            self.pace = Some(pace);
            return;
        }
        while let Some(pace) = self.pace.filter(|pace| pace.sent < elapsed - slack && self.bytes > 0) {
            let front = self.ring[(self.front - self.base) as usize];
            let due = (elapsed - slack - pace.sent) as u64;
            // Bytes without a record are several packets, of which some have left. What is dropped at the front goes whole.
            let may_wear = front.slot == UNKNOWN && self.front != self.next_doomed;
            if may_wear && due < self.front_bytes() {
                self.worn += due;
                self.bytes -= due;
                break;
            }
            self.pop();
        }
        if let Some(pace) = &mut self.pace {
            pace.sent = pace.sent.max(elapsed - slack);
        }
    }

    /// Appends a packet that the queue has accepted.
    #[inline(always)]
    pub fn push(&mut self, slot: u32, frame: u32) {
        if frame == 0 {
            return;
        }
        if self.ring.len() >= MAX_PACKETS {
            self.shed();
        }
        self.ring.push_back(Packet { slot, frame });
        self.bytes += u64::from(frame);
        self.last_queue = self.bytes;
    }

    /// Adds a packet that will be dropped when it has come to the front.
    pub fn push_doomed(&mut self, slot: u32, frame: u32) {
        if frame == 0 {
            return;
        }
        self.push(slot, frame);
        self.doomed.push_back(self.base + self.ring.len() as u64 - 1);
        self.next_doomed = self.doomed[0];
    }

    /// Replaces the last packet by another, with the last one's size, so that the queue stays as long as it was. Gives the slot
    /// of that one; none where none is known to stand here.
    #[inline(never)]
    pub fn replace(&mut self, slot: u32, frame: u32) -> Option<u32> {
        let end = self.base + self.ring.len() as u64;
        let back = if end > self.front { self.ring.back_mut() } else { None };
        let Some(back) = back else {
            self.push(slot, frame);
            return None;
        };
        let was = *back;
        if let Some(peak) = self.peak.as_mut().filter(|peak| peak.back == end && peak.last.is_none()) {
            peak.last = Some(was);
        }
        let worn = if end == self.front + 1 { self.worn } else { 0 };
        if was.slot == UNKNOWN && u64::from(was.frame) > u64::from(frame) + worn {
            // Of several packets without a record, only one has left.
            back.frame -= frame;
            self.bytes -= u64::from(frame);
            self.push(slot, frame);
        } else {
            back.slot = slot;
        }
        Some(was.slot)
    }

    /// Forgets the oldest half of the contents, whose bytes become unknown.
    #[inline(never)]
    fn shed(&mut self) {
        let end = self.base + (MAX_PACKETS / 2) as u64;
        if let Some(peak) = &mut self.peak {
            // The peak's oldest packets are forgotten: the rest of its queue stays unattributed.
            while peak.front < end.min(peak.back) {
                peak.bytes -= u64::from(self.ring[(peak.front - self.base) as usize].frame);
                peak.front += 1;
            }
        }
        let standing = self.bytes;
        while self.front < end {
            self.pop();
        }
        let lost = standing - self.bytes;
        // In the place of the last one: all that was forgotten, as one unknown lump.
        if lost > 0 {
            let frame = u32::try_from(lost).unwrap_or(u32::MAX);
            self.front -= 1;
            let at = (self.front - self.base) as usize;
            self.ring[at] = Packet { slot: UNKNOWN, frame };
            self.bytes += u64::from(frame);
        }
        self.release();
    }

    /// Packets that nobody will ask for go.
    #[inline(always)]
    fn release(&mut self) {
        let keep = self.peak.map_or(self.front, |peak| peak.front.min(self.front));
        while self.base < keep {
            self.ring.pop_front();
            self.base += 1;
        }
    }

    /// Notes that the queue is at a new peak.
    #[inline(always)]
    pub fn peak(&mut self, queue: u64) {
        self.peak =
            Some(Peak { front: self.front, back: self.base + self.ring.len() as u64, queue, bytes: self.bytes, last: None });
        self.at_peak = None;
    }

    /// Forgets the last peak, which was of no burst.
    pub fn forget_peak(&mut self) {
        self.peak = None;
        self.at_peak = None;
    }

    /// Sums the queue at the peak by flow.
    fn fold(&mut self, flows: &mut Flows, top: usize) {
        let Some(peak) = self.peak.take() else { return };
        let (from, to) = ((peak.front - self.base) as usize, (peak.back - self.base) as usize);
        let mut surplus = peak.bytes.saturating_sub(peak.queue);
        let last = peak.last.filter(|_| to > from);
        let known = if last.is_some() { to - 1 } else { to };
        let mut sum = flows.sum(
            self.ring.range(from..known).chain(last.as_ref()).map(|packet| {
                let gone = surplus.min(u64::from(packet.frame));
                surplus -= gone;
                (packet.slot, u64::from(packet.frame) - gone)
            }),
            top,
        );
        sum.unattributed = peak.queue - sum.attributed.min(peak.queue);
        self.at_peak = Some(sum);
    }

    /// Shares of flows in the queue at the last peak. The peak is taken: there is none afterwards.
    pub fn take_peak(&mut self, flows: &mut Flows, top: usize) -> Shares {
        self.fold(flows, top);
        self.release();
        self.at_peak.take().unwrap_or_default()
    }
}
