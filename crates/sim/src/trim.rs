//! Trimming between the port that cut a packet and the end that sent it: headers that wait, and what is heard of them.
//!
//! A trimmed packet stays a packet: it is in flight until its receiver has its headers, or they are dropped. Its receiver answers
//! with a NACK, which is an acknowledgment and travels as one.

use crate::forward::Fate;
use crate::host::{Protocol, Ready};
use crate::link::FarEnd;
use crate::pool::PacketId;
use crate::world::World;
use fanin_packet::{Framing, Packet};
use fanin_switch::{cells, header_frame, is_header, is_trimmable, Cut, DropReason, HeaderQueue, MarkVerdict, NdpParams};
use fanin_transport::{NoticeOutcome, TransportConfig, TrimOutcome};
use fanin_units::{Bytes, Time};
use std::collections::{BTreeMap, VecDeque};

/// What has become of trimmed packets and of NACKs. At any time trimmed = headers_lost + headers on the way + nacked + unheard +
/// not_open + ended, and nacked = nacks_lost + NACKs on the way + nacks_ended + repaired + known + arrived + unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrimCounts {
    /// Packets that lost their payload.
    pub trimmed: u64,
    /// Those among them that were the last of a queue, and gave their place to the packet that came.
    pub tails: u64,
    /// Trimmed packets that were dropped after all.
    pub headers_lost: u64,
    /// Made the receiver send a NACK.
    pub nacked: u64,
    /// Came to a transport without `trim_nack`.
    pub unheard: u64,
    /// Came to an end that is not open.
    pub not_open: u64,
    /// Came after the flow's end.
    pub ended: u64,
    /// NACKs that were dropped.
    pub nacks_lost: u64,
    /// NACKs that came after the flow's end.
    pub nacks_ended: u64,
    /// Made the sender send something again.
    pub repaired: u64,
    /// Told what the sender knew.
    pub known: u64,
    /// Told of data that had arrived.
    pub arrived: u64,
    /// Told of what the sender does not have in flight.
    pub unknown: u64,
}

impl TrimCounts {
    /// Trimmed packets that are no longer on the way.
    pub fn headers_gone(&self) -> u64 {
        self.headers_lost + self.nacked + self.unheard + self.not_open + self.ended
    }

    /// NACKs that are no longer on the way.
    pub fn nacks_gone(&self) -> u64 {
        self.nacks_lost + self.nacks_ended + self.repaired + self.known + self.arrived + self.unknown
    }
}

/// The headers of one port.
struct Headers {
    queue: HeaderQueue,
    waiting: VecDeque<PacketId>,
}

/// All of a world's trimming.
pub struct Trim {
    cut: Cut,
    framing: Framing,
    /// Bytes behind the IP packet, which `framing` counts: stamps.
    trailer: u16,
    /// By link; none where it is a host's, or that of a switch which does not trim.
    ports: Vec<Option<Headers>>,
    pub counts: TrimCounts,
    /// Why packets were trimmed; those that were the last of a queue, for want of room.
    pub reasons: BTreeMap<&'static str, u64>,
}

impl Trim {
    /// Trimming as `params` has it, and no port. `trailer`: bytes behind each IP packet, for stamps.
    pub fn new(params: &NdpParams, framing: Framing, trailer: u16) -> Self {
        let framing = framing.with_trailer(trailer);
        Trim { cut: params.cut, framing, trailer, ports: Vec::new(), counts: TrimCounts::default(), reasons: BTreeMap::new() }
    }

    /// Adds the next port.
    pub fn add_port(&mut self, params: &NdpParams, trims: bool) {
        let headers = || Headers { queue: HeaderQueue::new(params.headers, params.ratio), waiting: VecDeque::new() };
        self.ports.push(trims.then(headers));
    }

    /// The longest queue of headers that there was: port and bytes; the first port of several.
    pub fn peak(&self) -> Option<(usize, Bytes)> {
        let peaks = self.ports.iter().enumerate().filter_map(|(l, headers)| Some((l, headers.as_ref()?.queue.peak())));
        peaks.rev().max_by_key(|(_, bytes)| *bytes).filter(|(_, bytes)| bytes.get() > 0)
    }

    /// A packet is dropped.
    pub fn note_drop(&mut self, p: &Packet) {
        self.counts.headers_lost += u64::from(p.is_trimmed());
        self.counts.nacks_lost += u64::from(p.nack().is_some());
    }

    fn can_cut(&self, p: &Packet) -> bool {
        is_trimmable(p, &self.framing, self.trailer)
    }

    fn cut_off(&mut self, p: &mut Packet, reason: DropReason) {
        p.trim(header_frame(p, &self.framing));
        self.counts.trimmed += 1;
        *self.reasons.entry(reason.name()).or_default() += 1;
    }
}

impl World {
    /// A packet comes to port `l`: where it is nothing but headers and the port trims, it goes among them. True when it did.
    pub(crate) fn offer_header(&mut self, l: usize, packet: PacketId) -> bool {
        let Some(trim) = self.trim.as_deref() else { return false };
        if trim.ports[l].is_none() || !is_header(&self.pool[packet], &trim.framing, trim.trailer) {
            return false;
        }
        self.join_headers(l, packet, true);
        true
    }

    /// Port `l` does not take a packet: where it trims, the packet goes on without its payload. True when it does, or its
    /// headers found no room either.
    pub(crate) fn trim_refused(&mut self, l: usize, packet: PacketId, reason: DropReason) -> bool {
        let Some(trim) = self.trim.as_deref_mut() else { return false };
        if trim.ports[l].is_none() || !trim.can_cut(&self.pool[packet]) {
            return false;
        }
        trim.cut_off(&mut self.pool[packet], reason);
        self.join_headers(l, packet, true);
        true
    }

    /// Port `l` has no room for a packet: with one chance in two it takes the place of the last one of its class, which loses
    /// its payload instead. True when that was decided and the packet is looked after.
    ///
    /// Only where both can be trimmed and are of the same size, so that neither buffer nor scheduler see a difference. Marking
    /// decides of the packet as if it had found the queue without the other.
    ///
    /// Source: NDP §3.1. Deviation: the paper does not speak of packets of different sizes.
    pub(crate) fn take_the_last_place(&mut self, l: usize, class: usize, packet: PacketId) -> bool {
        let Some(trim) = self.trim.as_deref() else { return false };
        if trim.ports[l].is_none() || trim.cut != Cut::Either {
            return false;
        }
        let Some(last) = self.ports[l].explicit.as_deref().and_then(|e| e.queues[class].back().copied()) else { return false };
        let (mine, other) = (&self.pool[packet], &self.pool[last]);
        let alike = mine.frame == other.frame && trim.can_cut(mine) && trim.can_cut(other);
        if !alike || self.ports[l].rng.below(2) == 0 {
            return false;
        }
        let frame = mine.frame;
        let (bytes, packets) = self.queue(l);
        let mut view = self.ports[l].view(self.now, bytes, packets, Time::from_ps(self.links[l].free_at));
        view.queue_bytes -= u64::from(frame);
        view.queue_packets -= 1;
        view.queue_cells -= cells(frame, self.cell);
        let port = &mut self.ports[l];
        let marked = match port.marker.on_enqueue(&view, &self.pool[packet], &mut port.rng) {
            MarkVerdict::Pass => false,
            MarkVerdict::Mark(reason) => self.mark(l, packet, reason),
            MarkVerdict::Drop(reason) => {
                self.refuse(l, packet, reason);
                return true;
            }
        };
        self.record_arrival(l, packet, marked, Fate::Replaces);
        if let Some(place) = self.ports[l].explicit.as_deref_mut().and_then(|e| e.queues[class].back_mut()) {
            *place = packet;
        }
        if let Some(trim) = self.trim.as_deref_mut() {
            trim.cut_off(&mut self.pool[last], DropReason::BUFFER_FULL);
            trim.counts.tails += 1;
        }
        let result = self.recorder.queue_dequeued(last, false); // nothing marks it when it leaves
        self.check(result);
        self.join_headers(l, last, false);
        true
    }

    /// A packet without payload goes onto the wire of an idle port, or waits among the headers, or is dropped. `comes`: it has
    /// just arrived here. No row and no marking: the queue that has rows and marks is that of data.
    fn join_headers(&mut self, l: usize, packet: PacketId, comes: bool) {
        let Some(headers) = self.trim.as_deref_mut().and_then(|trim| trim.ports[l].as_mut()) else { return };
        let frame = self.pool[packet].frame;
        let idle = self.links[l].free_at <= self.now.ps();
        let fits = idle || headers.queue.fits(frame);
        if !idle && fits {
            headers.queue.push(frame);
            headers.waiting.push_back(packet);
        }
        if comes && fits {
            self.stamp_at(l, packet);
        }
        if idle {
            self.put_on_wire(l, packet);
        } else if fits {
            self.arm_for_headers(l);
        } else {
            self.drop_packet(l, packet, DropReason::HEADERS_FULL);
        }
    }

    /// A header leaves port `l`, whose wire is free.
    fn put_on_wire(&mut self, l: usize, packet: PacketId) {
        let frame = self.pool[packet].frame;
        let link = &mut self.links[l];
        if link.push(&mut self.rings, self.now, packet, frame) {
            self.wheel.set((self.arrivals + l) as u32, Time::from_ps(link.front(&self.rings).arrive));
        }
        self.ports[l].count_sent(frame);
    }

    /// The wire of port `l` is free: a header leaves if it is their turn. True when one did; otherwise data is next.
    pub(crate) fn header_departs(&mut self, l: usize) -> bool {
        let data = self.ports[l].explicit.as_deref().is_some_and(|explicit| explicit.packets > 0);
        let Some(headers) = self.trim.as_deref_mut().and_then(|trim| trim.ports[l].as_mut()) else { return false };
        if !headers.queue.is_next(data) {
            headers.queue.turn_over();
            return false;
        }
        let Some(packet) = headers.waiting.pop_front() else { return false };
        headers.queue.sent(self.pool[packet].frame, data);
        self.put_on_wire(l, packet);
        if data {
            self.arm(l);
        } else {
            self.arm_for_headers(l);
        }
        true
    }

    /// Sets a departure event where headers wait and none is set.
    pub(crate) fn arm_for_headers(&mut self, l: usize) {
        let headers = self.trim.as_deref().and_then(|trim| trim.ports[l].as_ref());
        if headers.is_some_and(|headers| !headers.queue.is_empty()) {
            self.arm(l);
        }
    }

    /// What has come over a link to a host: a trimmed packet or a NACK goes to its endpoint here, and what comes of it is
    /// counted. False when it is neither.
    pub(crate) fn deliver_trimmed(&mut self, l: usize, packet: PacketId) -> bool {
        let p = self.pool[packet];
        let FarEnd::Host(host) = self.links[l].far_end() else { return false };
        if !p.is_trimmed() && p.nack().is_none() {
            return false;
        }
        if self.observed {
            self.observe_delivery(host, packet);
        }
        self.pool.free(packet);
        let Some(trim) = self.trim.as_deref_mut() else { return true };
        let counts = &mut trim.counts;
        let Some(id) = self.conns.of(p.flow) else {
            self.totals.stray += 1;
            *(if p.is_trimmed() { &mut counts.ended } else { &mut counts.nacks_ended }) += 1;
            return true;
        };
        self.totals.delivered += 1;
        let conn = &mut self.conns[id];
        let Protocol::Tcp(endpoint) = &mut conn.ends[p.to as usize].protocol else { return true };
        let TransportConfig::Tcp(cfg) = &self.transports[usize::from(conn.flow.spec.transport)].1;
        let counter = if p.is_trimmed() {
            match endpoint.on_trimmed(cfg, self.now, &p) {
                TrimOutcome::Nacked => &mut counts.nacked,
                TrimOutcome::NotOpen => &mut counts.not_open,
                TrimOutcome::Off => &mut counts.unheard,
            }
        } else {
            match endpoint.on_nack(cfg, self.now, &p) {
                NoticeOutcome::Repairs => &mut counts.repaired,
                NoticeOutcome::Known => &mut counts.known,
                NoticeOutcome::Arrived => &mut counts.arrived,
                NoticeOutcome::Unknown | NoticeOutcome::Refused | NoticeOutcome::Off => &mut counts.unknown,
            }
        };
        *counter += 1;
        self.after_input(id, p.to);
        true
    }

    /// What has become of trimmed packets so far; `None` where no switch trims.
    pub fn trims(&self) -> Option<TrimCounts> {
        self.trim.as_deref().map(|trim| trim.counts)
    }

    /// Headers that wait at all ports.
    pub fn headers_waiting(&self) -> u64 {
        self.trim.iter().flat_map(|trim| trim.ports.iter().flatten()).map(|headers| u64::from(headers.queue.len())).sum()
    }

    /// Trimmed packets and NACKs that are on the way: every packet that exists is looked at.
    pub fn trims_on_the_way(&self) -> (u64, u64) {
        let on_links = self.links.iter().flat_map(|link| link.packets(&self.rings));
        let queued =
            self.ports.iter().filter_map(|port| port.explicit.as_deref()).flat_map(|e| e.queues.iter().flatten().copied());
        let headers = self.trim.iter().flat_map(|trim| trim.ports.iter().flatten()).flat_map(|h| h.waiting.iter().copied());
        let made = self.hosts.iter().flat_map(|host| &host.ready).filter_map(|ready| match ready {
            Ready::Packet(packet) => Some(*packet),
            Ready::Turn(..) => None,
        });
        let mut on_the_way = (0, 0);
        for packet in on_links.chain(queued).chain(headers).chain(made) {
            on_the_way.0 += u64::from(self.pool[packet].is_trimmed());
            on_the_way.1 += u64::from(self.pool[packet].nack().is_some());
        }
        on_the_way
    }
}
