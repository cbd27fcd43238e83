//! A directed link with the output port that feeds it: one cache line, and a ring of the packets queued or in flight
//! ([`links`](super::links)).
//!
//! A FIFO port of constant rate needs no event of its own. When a packet arrives, its departure is
//! max(now, port free) + size / rate, and its arrival at the far end follows. The ring holds packets in that order;
//! `head` is the next to arrive, `served` the first that still waits, `tail` the end. Entries before `served` have begun
//! serialisation and are no longer in the queue. What happened at a dequeue in the meantime is caught up with, in order,
//! before the queue is asked for anything else ([`Link::next_departure`]).
//!
//! The sending end writes `served`, `tail`, `queue_bytes`, `free_at` and the counters; the receiving end writes `head`. Nothing that either
//! decides depends on what the other has written: a run could be cut in two here.

use super::links::{Rings, RingsMut, FIRST};
use fanin_packet::PacketId;
use fanin_units::{prefetch, BitRate, Bytes, HostId, Span, SwitchId, Time};

/// A packet on its way, 16 bytes.
#[derive(Clone, Copy, Default)]
pub struct Entry {
    /// Arrival of the packet's last bit at the far end, plus the latency of the switch there \[ps\].
    pub arrive: u64,
    pub packet: PacketId,
    /// Frame bytes of the packet; kept here so that the queue's length needs no look at the packet.
    pub frame: u16,
}

/// Properties of a port that decide which path its packets take through the code.
pub mod flag {
    /// `limit` counts packets, not bytes.
    pub const LIMIT_PACKETS: u8 = 1;
    /// `threshold` counts packets, not bytes.
    pub const MARK_PACKETS: u8 = 1 << 1;
    /// Packets wait in [`Queues`](crate::core::queues::Queues), not in the ring.
    pub const GENERAL: u8 = 1 << 2;
    /// Departures of the port are events. Only with [`GENERAL`].
    pub const EVENTS: u8 = 1 << 3;
    /// Mechanisms see packets before they join a queue of this port.
    pub const MECHANISMS: u8 = 1 << 4;
    /// Admission, marking and records are more than a limit and a threshold in bytes or packets. Packets still wait in the ring, as long as
    /// the port is not [`GENERAL`].
    pub const POLICY: u8 = 1 << 5;
    /// A packet that leaves the ring frees shared buffer, or has other consequences
    /// ([`at_dequeue`](crate::core::port::at_dequeue)).
    pub const DEQUEUE: u8 = 1 << 6;
    /// The port has several classes. Packets wait in the ring as long as they are all of one.
    pub const CLASSES: u8 = 1 << 7;
    /// Admission and marking at the port are those of the general path.
    pub const ADMITS: u8 = GENERAL | POLICY;
    /// Anything that the fast path does not do.
    pub const OFF_FAST_PATH: u8 = ADMITS | MECHANISMS | DEQUEUE | CLASSES;
}

/// Flags of a link's far end: a host; an ingress hook runs there; it passes over packets without messages.
const TO_HOST: u32 = 1 << 31;
const HOOKED: u32 = 1 << 30;
const ONLY_MESSAGES: u32 = 1 << 28;
/// Lazy dequeue: the sender goes on when the last packet on its wire has left, which nobody has to know before that packet
/// arrives.
const FOLLOWED: u32 = 1 << 27;
/// A byte does not take a whole number of picoseconds here.
const INEXACT: u32 = 1 << 29;

/// The hot half of a link; the cold half is [`Port`](super::port::Port), which most packets do not touch.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Link {
    /// Place of the ring's first entry.
    pub(super) base: u32,
    /// Ring capacity − 1.
    pub(super) mask: u32,
    pub head: u32,
    pub served: u32,
    /// Packets that the port has accepted, modulo 2^32.
    pub tail: u32,
    /// Frame bytes that wait (the packet being serialised not counted).
    pub queue_bytes: u32,
    /// Frame bytes that the port has accepted, modulo 2^32.
    pub bytes: u32,
    /// Largest queue that may wait, packet by packet, in bytes or packets.
    pub limit: u32,
    /// Time at which the wire has sent all packets that the port has accepted \[ps\].
    pub free_at: u64,
    /// Propagation, plus the latency of the switch at the far end.
    delay: u64,
    /// Picoseconds that a byte takes; where that is no whole number (`INEXACT`), the rate in kb/s.
    ps_per_byte: u32,
    /// A packet that finds more than this waiting is marked; `u32::MAX`: never.
    pub threshold: u32,
    to: u32,
    /// Wire bytes of a frame besides its own: preamble and gap.
    gap: u16,
    pub flags: u8,
    /// Largest queue since the last sample in whole steps of 4 KiB, or fewer ([`Link::may_exceed`]).
    peak_step: u8,
}

const _: () = assert!(std::mem::size_of::<Link>() == 64);

/// A count that has passed 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// The count of accepted bytes has wrapped.
    Bytes,
    /// The count of accepted packets has wrapped.
    Packets,
    /// Bytes that wait: the run cannot go on.
    Queue,
}

/// The node at the far end of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FarEnd {
    /// A host, by number.
    Host(HostId),
    /// A switch, by number among switches.
    Switch(SwitchId),
}

impl FarEnd {
    /// The switch that a link leads to which leads to no host.
    #[inline(always)]
    pub fn switch(self) -> SwitchId {
        match self {
            FarEnd::Switch(s) => s,
            FarEnd::Host(host) => {
                debug_assert!(false, "host {host} is no switch");
                SwitchId(host.0)
            }
        }
    }
}

impl Link {
    /// An idle link, without a ring: the ring comes with its place among [`Links`](super::links::Links).
    ///
    /// # Panics
    /// At a rate that is no multiple of 1 kb/s or above 4 Tb/s, which validation refuses.
    pub fn new(delay: Span, rate: BitRate, gap: u16, to: FarEnd) -> Self {
        assert!(Self::supports(rate), "a link of {rate}");
        let byte = rate.time_to_send(Bytes(1)).ps();
        let exact = u32::try_from(byte).is_ok()
            && BitRate::of(Bytes(1), Span::from_ps(byte)) == rate
            && rate.time_to_send(Bytes(1 << 20)).ps() == byte << 20;
        Link {
            base: 0,
            mask: 0,
            head: 0,
            served: 0,
            tail: 0,
            queue_bytes: 0,
            bytes: 0,
            free_at: 0,
            delay: delay.ps(),
            ps_per_byte: if exact { byte as u32 } else { (rate.bps() / 1000) as u32 },
            limit: u32::MAX,
            threshold: u32::MAX,
            to: if exact { 0 } else { INEXACT }
                | match to {
                    FarEnd::Host(h) => h.0 | TO_HOST,
                    FarEnd::Switch(s) => s.0,
                },
            gap,
            flags: 0,
            peak_step: 0,
        }
    }

    /// True for rates that a link can have: a multiple of 1 kb/s up to 4 Tb/s.
    pub fn supports(rate: BitRate) -> bool {
        rate.bps() > 0 && rate.bps() % 1000 == 0 && rate.bps() / 1000 <= u64::from(u32::MAX)
    }

    /// The node at the far end.
    #[inline(always)]
    pub fn far_end(&self) -> FarEnd {
        let node = self.to & !(TO_HOST | HOOKED | INEXACT | ONLY_MESSAGES | FOLLOWED);
        if self.to & TO_HOST != 0 {
            FarEnd::Host(HostId(node))
        } else {
            FarEnd::Switch(SwitchId(node))
        }
    }

    /// True if a hook runs at the far end before a packet is forwarded or delivered: a mechanism's, or the reading of a control
    /// message at the end of its frame.
    #[inline(always)]
    pub fn has_ingress_hook(&self) -> bool {
        self.to & HOOKED != 0
    }

    /// True if the far end is a switch that forwards packets without any hook before.
    #[inline(always)]
    pub fn leads_to_a_plain_switch(&self) -> bool {
        self.to & (TO_HOST | HOOKED) == 0
    }

    /// True if the only hook at the far end is the reading of control messages: packets that neither are nor carry one go on as
    /// they are.
    #[inline(always)]
    pub fn reads_only_messages(&self) -> bool {
        self.to & ONLY_MESSAGES != 0
    }

    /// Sets [`Link::has_ingress_hook`], and with `only_messages` [`Link::reads_only_messages`].
    pub fn hook_ingress(&mut self, only_messages: bool) {
        self.to |= HOOKED | if only_messages { ONLY_MESSAGES } else { 0 };
    }

    /// True for a link that has an ingress hook, is followed, or both.
    #[inline(always)]
    pub fn is_hooked_or_followed(&self) -> bool {
        self.to & (HOOKED | FOLLOWED) != 0
    }

    /// True for a link that leads to a host, is followed, or both.
    #[inline(always)]
    pub fn leads_to_a_host_or_is_followed(&self) -> bool {
        self.to & (TO_HOST | FOLLOWED) != 0
    }

    /// True with lazy dequeue: the sender's next transmission opportunity comes when the last packet on the link has left,
    /// without an event; it is caught up with.
    #[inline(always)]
    pub fn is_followed(&self) -> bool {
        self.to & FOLLOWED != 0
    }

    /// Makes dequeues lazy ([`Link::is_followed`]). Something must be on its way.
    #[inline(always)]
    pub fn follow(&mut self) {
        debug_assert_ne!(self.head, self.tail, "nothing is on the way");
        self.to |= FOLLOWED;
    }

    /// Ends lazy dequeue at the transmission opportunity for which it stood.
    #[inline(always)]
    pub fn unfollow(&mut self) {
        self.to &= !FOLLOWED;
    }

    /// Serialisation time of a frame, in picoseconds.
    #[inline(always)]
    pub fn tx(&self, frame: u16) -> u64 {
        let bytes = u64::from(frame) + u64::from(self.gap);
        if self.to & INEXACT == 0 {
            bytes * u64::from(self.ps_per_byte)
        } else {
            self.tx_inexact(bytes)
        }
    }

    #[cold]
    fn tx_inexact(&self, bytes: u64) -> u64 {
        BitRate(u64::from(self.ps_per_byte) * 1000).time_to_send(Bytes(bytes)).ps()
    }

    /// Propagation, plus the latency of the switch at the far end, in picoseconds.
    pub fn delay(&self) -> u64 {
        self.delay
    }

    /// Preamble and gap of a packet here.
    pub fn gap(&self) -> u16 {
        self.gap
    }

    /// Brings the queue up to now, where dequeues have no consequences. Whether the port is busy.
    #[inline(always)]
    pub fn catch_up(&mut self, rings: Rings<'_>, now: Time) -> bool {
        let busy = self.catch_up_if_busy(rings, now);
        if !busy {
            // All that it was given has left.
            self.served = self.tail;
            self.queue_bytes = 0;
        }
        busy
    }

    /// Brings the queue of a busy port up to now. That of an idle one stays as it was, for a packet that is about to be put onto its wire.
    #[inline(always)]
    pub fn catch_up_if_busy(&mut self, rings: Rings<'_>, now: Time) -> bool {
        let busy = self.free_at > now.ps();
        if busy {
            while self.next_departure(rings, now).is_some() {}
        }
        busy
    }

    /// True if a queue of this length may be larger than any since the last sample: then the port knows. Most packets need not
    /// ask it, and do not touch its memory.
    #[inline(always)]
    pub fn may_exceed(&self, queue_bytes: u32) -> bool {
        queue_bytes >> 12 >= u32::from(self.peak_step)
    }

    /// The largest queue since the last sample.
    pub fn set_peak(&mut self, queue_bytes: u32) {
        self.peak_step = (queue_bytes >> 12).min(255) as u8;
    }

    /// Number of packets that wait.
    #[inline(always)]
    pub fn queue_packets(&self) -> u32 {
        self.tail.wrapping_sub(self.served)
    }

    /// An entry's place in the rings.
    #[inline(always)]
    pub(super) fn place(&self, number: u32) -> usize {
        (self.base + (number & self.mask)) as usize
    }

    /// True for a ring without room for another packet.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.tail.wrapping_sub(self.head) > self.mask
    }

    /// Appends a packet, where the ring has room: it is sent after all before it. When it arrives, if it is the only one on the
    /// way: then its arrival must be scheduled. `carry` is called with what passes 2^32.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        rings: RingsMut<'_>,
        now: Time,
        packet: PacketId,
        frame: u16,
        carry: impl FnMut(Carry),
    ) -> Option<Time> {
        if self.free_at > now.ps() {
            self.push_busy(rings, packet, frame, carry)
        } else {
            self.start(rings, now, packet, frame, carry)
        }
    }

    /// Appends a packet where the wire is not free: it waits.
    #[inline(always)]
    pub(super) fn push_busy(
        &mut self,
        rings: RingsMut<'_>,
        packet: PacketId,
        frame: u16,
        mut carry: impl FnMut(Carry),
    ) -> Option<Time> {
        let arrives = self.append(rings, self.free_at, packet, frame, &mut carry);
        let full;
        (self.queue_bytes, full) = self.queue_bytes.overflowing_add(u32::from(frame));
        if full {
            carry(Carry::Queue);
        }
        arrives
    }

    /// Puts a packet onto a wire that is free at `start`: all packets before it have left, noted or not.
    #[inline(always)]
    pub(super) fn start(
        &mut self,
        rings: RingsMut<'_>,
        start: Time,
        packet: PacketId,
        frame: u16,
        mut carry: impl FnMut(Carry),
    ) -> Option<Time> {
        debug_assert!(self.free_at <= start.ps());
        self.queue_bytes = 0;
        self.served = self.tail.wrapping_add(1);
        self.append(rings, start.ps(), packet, frame, &mut carry)
    }

    /// Appends a packet whose serialisation begins at `start`.
    #[inline(always)]
    fn append(
        &mut self,
        rings: RingsMut<'_>,
        start: u64,
        packet: PacketId,
        frame: u16,
        carry: &mut impl FnMut(Carry),
    ) -> Option<Time> {
        let (head, tail) = (self.head, self.tail);
        self.free_at = start + self.tx(frame);
        let arrive = self.free_at + self.delay;
        rings.write(self.place(tail), Entry { arrive, packet, frame });
        let (bytes, packets);
        (self.bytes, bytes) = self.bytes.overflowing_add(u32::from(frame));
        if bytes {
            carry(Carry::Bytes);
        }
        (self.tail, packets) = tail.overflowing_add(1);
        if packets {
            carry(Carry::Packets);
        }
        (head == tail).then_some(Time::from_ps(arrive))
    }

    /// The packet that leaves the ring next.
    #[inline(always)]
    pub fn next_to_leave(&self, rings: Rings<'_>) -> Option<PacketId> {
        (self.served != self.tail).then(|| rings.at(self.place(self.served)).packet)
    }

    /// True if the packet that is next to arrive has left without a note of it, and that has consequences.
    #[inline(always)]
    pub fn has_departed_unnoted(&self) -> bool {
        self.served == self.head && self.flags & flag::DEQUEUE != 0
    }

    /// The entry that is next to arrive.
    #[inline(always)]
    pub fn front(&self, rings: Rings<'_>) -> Entry {
        rings.at(self.place(self.head))
    }

    /// The entry of a number between the first and the last in the ring.
    pub fn at(&self, rings: Rings<'_>, number: u32) -> Entry {
        rings.at(self.place(number))
    }

    /// Hints that the entry of a number is read soon, if there is one already.
    #[inline(always)]
    pub fn prefetch(&self, rings: Rings<'_>, number: u32) {
        if self.tail != number {
            prefetch(rings.address(self.place(number)));
        }
    }

    /// Hints that the entry which is next to arrive is read soon, where its ring does not stand beside the link.
    #[inline(always)]
    pub fn prefetch_long_ring(&self, rings: Rings<'_>) {
        if self.has_long_ring() {
            prefetch(rings.address(self.place(self.head)));
        }
    }

    /// Hints that the entry which leaves the ring next is read soon, where the ring does not stand beside the link.
    #[inline(always)]
    pub fn prefetch_leaving(&self, rings: Rings<'_>) {
        if self.has_long_ring() {
            prefetch(rings.address(self.place(self.served)));
        }
    }

    /// True for a ring that has moved away from its link, as it grew longer.
    #[inline(always)]
    pub fn has_long_ring(&self) -> bool {
        self.mask >= FIRST
    }

    /// Takes the next packet whose serialisation begins at or before `now` off the queue, and gives that time; `None`: there is
    /// none. Before a queue is read, this is called until it gives `None`.
    #[inline(always)]
    pub fn next_departure(&mut self, rings: Rings<'_>, now: Time) -> Option<(Time, Entry)> {
        if self.served == self.tail {
            return None;
        }
        let entry = rings.at(self.place(self.served));
        let start = entry.arrive - self.delay - self.tx(entry.frame);
        if start > now.ps() {
            return None;
        }
        self.served = self.served.wrapping_add(1);
        self.queue_bytes -= u32::from(entry.frame);
        Some((Time::from_ps(start), entry))
    }
}

impl Link {
    /// Takes the waiting packets off the ring, as if the port had not accepted them. `keep` gets each with its frame, in order.
    /// The queue is up to now. What has been counted too much: whether bytes, packets had passed 2^32 with them.
    pub fn take_back(&mut self, rings: Rings<'_>, mut keep: impl FnMut(PacketId, u16)) -> [bool; 2] {
        let free_at = self.wire_free_at(rings).ps();
        for number in (0..self.queue_packets()).map(|i| self.served.wrapping_add(i)) {
            let entry = rings.at(self.place(number));
            keep(entry.packet, entry.frame);
        }
        let (bytes, packets);
        (self.bytes, bytes) = self.bytes.overflowing_sub(self.queue_bytes);
        packets = self.served > self.tail;
        (self.tail, self.queue_bytes, self.free_at) = (self.served, 0, free_at);
        [bytes, packets]
    }

    /// Time at which the frame on the wire has been sent. The queue must be up to date.
    #[inline]
    pub fn wire_free_at(&self, rings: Rings<'_>) -> Time {
        if self.served == self.tail {
            return Time::from_ps(self.free_at);
        }
        let next = rings.at(self.place(self.served));
        Time::from_ps(next.arrive - self.delay - self.tx(next.frame))
    }
}

#[cfg(test)]
mod tests {
    use super::super::links::Links;
    use super::*;
    use fanin_units::LinkId;

    fn links(n: usize) -> Links {
        let link = Link::new(Span::from_us(1), BitRate::from_gbps(10), 20, FarEnd::Switch(SwitchId(3)));
        vec![link; n].into()
    }

    #[test]
    fn a_packet_that_finds_the_port_idle_never_waits() {
        let mut links = links(1);
        let arrives = links.push(LinkId(0), Time::ZERO, PacketId(7), 1518, |_| unreachable!());
        assert_eq!(arrives, Some(Time::from_ps(1538 * 800 + 1_000_000)));
        let link = &links[LinkId(0)];
        assert_eq!((link.queue_bytes, link.queue_packets()), (0, 0));
        assert_eq!(link.front(links.rings()).arrive, 1538 * 800 + 1_000_000);
        assert_eq!(link.far_end(), FarEnd::Switch(SwitchId(3)));
    }

    #[test]
    fn waiting_packets_are_served_when_their_first_bit_leaves() {
        let mut links = links(1);
        for id in 0..20 {
            assert_eq!(links.push(LinkId(0), Time::ZERO, PacketId(id), 1518, |_| unreachable!()).is_some(), id == 0);
            // its ring becomes longer three times
        }
        let (link, rings) = links.with_rings(LinkId(0));
        let rings = rings.read();
        assert_eq!((link.queue_bytes, link.queue_packets()), (19 * 1518, 19));
        let second = Time::from_ps(1538 * 800);
        assert!(link.next_departure(rings, Time::from_ps(second.ps() - 1)).is_none());
        let (start, entry) = link.next_departure(rings, second).unwrap();
        assert_eq!((start, entry.packet, link.queue_packets()), (second, PacketId(1), 18));
        assert!(link.next_departure(rings, second).is_none());
        assert_eq!(link.front(rings).packet, PacketId(0));
        assert_eq!(link.wire_free_at(rings), Time::from_ps(2 * 1538 * 800), "not when all of them have left");
    }

    #[test]
    fn counters_carry_at_4_gib_and_2_to_the_32_packets() {
        let mut links = links(1);
        let link = &mut links[LinkId(0)];
        (link.head, link.served, link.tail) = (u32::MAX, u32::MAX, u32::MAX);
        link.bytes = u32::MAX - 2_000;
        let mut push = |packet| {
            let mut carried = Vec::new();
            links.push(LinkId(0), Time::ZERO, packet, 1518, |carry| carried.push(carry));
            carried
        };
        assert_eq!(push(PacketId(0)), [Carry::Packets]);
        assert_eq!(push(PacketId(1)), [Carry::Bytes]);
        assert_eq!((links[LinkId(0)].bytes, links[LinkId(0)].tail), (2 * 1518 - 2_001, 1));
    }

    #[test]
    fn serialisation_agrees_with_the_rate_at_exact_and_inexact_rates() {
        for bps in [1_000, 10_000_000, 1_000_000_000, 56_000_000_000, 10_312_500_000, 400_000_000_000, 1_600_000_000_000] {
            let link = Link::new(Span::ZERO, BitRate(bps), 20, FarEnd::Host(HostId(0)));
            for frame in [64u16, 1518, 9018] {
                assert_eq!(link.tx(frame), BitRate(bps).time_to_send(Bytes(u64::from(frame) + 20)).ps(), "{bps}");
            }
        }
        assert!(!Link::supports(BitRate(0)) && !Link::supports(BitRate(1500)));
    }
}
