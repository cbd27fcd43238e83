//! Between NIC and transport: delays that vary, a buffer that puts packets in order, interrupts that are coalesced, polls that merge
//! segments. A packet passes them in this order.
//!
//! Telemetry and captures see packets when they reach the host; what is here is later.

use super::sequence::{Placed, Sequence};
use super::{observe_delivery, stray, Hosts, RECEIVE};
use crate::core::Core;
use fanin_engine::Table;
use fanin_packet::{Envelope, Header, PacketId, Side};
use fanin_scenario::{Host as Params, Napi, Noise, Receive};
use fanin_units::{FlowId, HostId, NodeId, Purpose, Span, Stream, Time};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Packets between NIC and transport, at all hosts.
pub struct Receivers {
    noise: Noise,
    napi: Option<Napi>,
    /// Longest time that packets wait for those before them; `None`: not at all.
    reorder: Option<Span>,
    /// Packets that came too early and waited; gaps that were given up.
    waited: u64,
    given_up: u64,
    /// Time at which each packet reached its host, by place in the pool.
    arrived: Vec<Time>,
    hosts: Table<Waiting, HostId>,
}

/// Packets between NIC and transport, at one host.
struct Waiting {
    random: Stream,
    /// Packets whose delay is not over, with the time of its end, in order.
    delayed: VecDeque<(Time, PacketId)>,
    /// Sequences of flows with a packet that waits for earlier ones, or whose transport waits for them.
    sequences: BTreeMap<(FlowId, Side), Sequence>,
    /// Packets that the next poll takes.
    ring: VecDeque<PacketId>,
    /// Time of the next poll.
    poll_at: Time,
    /// The latest entry of this host among the timers; others are stale.
    armed: Time,
}

/// Segments of one flow that a poll merges into one for the transport.
struct Merged {
    flow: FlowId,
    to: Side,
    payload: u64,
    packets: Vec<PacketId>,
}

impl Receivers {
    /// `None` where nothing ever waits.
    pub fn new(params: &Params, hosts: usize, seed: u64) -> Option<Box<Receivers>> {
        let waiting = |host: usize| Waiting {
            random: Stream::new(seed, Purpose::HostNoise, host as u64),
            delayed: VecDeque::new(),
            sequences: BTreeMap::new(),
            ring: VecDeque::new(),
            poll_at: Time::MAX,
            armed: Time::MAX,
        };
        params.holds_packets().then(|| {
            Box::new(Receivers {
                noise: params.noise.clone(),
                reorder: params.reorder.as_ref().map(|buffer| buffer.timeout),
                waited: 0,
                given_up: 0,
                arrived: Vec::new(),
                napi: match &params.receive {
                    Receive::Napi(napi) => Some(napi.clone()),
                    Receive::AtOnce(_) => None,
                },
                hosts: (0..hosts).map(waiting).collect::<Vec<_>>().into(),
            })
        })
    }
}

impl Receivers {
    fn note_arrival(&mut self, packet: PacketId, now: Time) {
        if self.arrived.len() <= packet.index() {
            self.arrived.resize(packet.index() + 1, Time::ZERO);
        }
        self.arrived[packet.index()] = now;
    }

    /// Packets that wait, at all hosts.
    pub fn packets(&self) -> u64 {
        let early = |waiting: &Waiting| waiting.sequences.values().map(Sequence::packets).sum::<usize>();
        self.hosts.iter().map(|waiting| (waiting.delayed.len() + waiting.ring.len() + early(waiting)) as u64).sum()
    }

    /// Adds the counts of the hosts of another part of the network.
    pub fn absorb(&mut self, other: &Receivers) {
        self.waited += other.waited;
        self.given_up += other.given_up;
    }

    /// Counts of the reordering buffer, where there is one: packets that waited, gaps that were given up.
    pub fn put_in_order(&self) -> Option<(u64, u64)> {
        self.reorder.map(|_| (self.waited, self.given_up))
    }
}

/// True if a packet joins the packets of its flow merged so far, which have `so_far` bytes of payload, the last of them being
/// `before`. Source: Linux tcp_gro_receive, inet_gro_receive, skb_gro_receive.
fn joins(napi: &Napi, so_far: u64, before: (&Envelope, &Header), packet: (&Envelope, &Header)) -> bool {
    let (was, is) = (before.0, packet.0);
    (was.ecn, was.class, was.trimmed) == (is.ecn, is.class, is.trimmed)
        && so_far + u64::from(is.payload) <= napi.gro_max.get()
        && packet.1.continues(is.payload, (before.1, was.payload))
}

impl Waiting {
    /// Draws the delay of the next packet.
    fn draw(&mut self, noise: &Noise) -> Span {
        match noise {
            Noise::None(_) => Span::ZERO,
            Noise::Uniform(noise) => Span::from_ps(self.random.below(noise.max.ps() + 1)),
            Noise::Exponential(noise) => noise.mean.scale(self.random.exponential(1.0)),
        }
    }

    /// Time of the next thing to do at this host; `Time::MAX`: nothing.
    fn next(&self) -> Time {
        let early = self.sequences.values().map(Sequence::next_timeout).min().unwrap_or(Time::MAX);
        self.delayed.front().map_or(Time::MAX, |(at, _)| *at).min(self.poll_at).min(early)
    }
}

impl Hosts {
    /// True where a packet waits between NIC and transport somewhere.
    pub fn holds_packets(&self) -> bool {
        let waits = |waiting: &Waiting| waiting.next() < Time::MAX;
        self.receivers.as_deref().is_some_and(|receivers| receivers.hosts.iter().any(waits))
    }

    /// A packet has reached a host at which packets may wait.
    pub(super) fn hold(&mut self, core: &mut Core, host: HostId, packet: PacketId) {
        self.catch_up(core, host);
        observe_delivery(core, host, packet);
        let Some(receivers) = self.receivers.as_deref_mut() else { return };
        if receivers.reorder.is_some() {
            // The order of arrival is that before anything puts it right.
            let envelope = &core.pool[packet];
            if let Some(id) = self.ends.of(envelope.flow, envelope.to) {
                self.ends[id].note_order(envelope, core.pool.number(packet), core.now);
            }
        }
        receivers.note_arrival(packet, core.now);
        let waiting = &mut receivers.hosts[host];
        let at = core.now + waiting.draw(&receivers.noise);
        // In order: a packet waits for those before it.
        let at = waiting.delayed.back().map_or(at, |(last, _)| at.max(*last));
        waiting.delayed.push_back((at, packet));
        if at <= core.now {
            self.advance_held(core, host);
        }
        self.arm_receiver(core, host);
    }

    /// The timer of a host's packets that wait.
    pub(super) fn receive_held(&mut self, core: &mut Core, host: HostId, at: Time) {
        let Some(receivers) = self.receivers.as_deref_mut() else { return };
        if receivers.hosts[host].armed != at {
            return;
        }
        receivers.hosts[host].armed = Time::MAX;
        self.advance_held(core, host);
        self.arm_receiver(core, host);
    }

    fn arm_receiver(&mut self, core: &mut Core, host: HostId) {
        let Some(receivers) = self.receivers.as_deref_mut() else { return };
        let waiting = &mut receivers.hosts[host];
        let next = waiting.next();
        if next < waiting.armed {
            waiting.armed = next;
            core.set_timer(next, (NodeId(host.0), RECEIVE));
        }
    }

    /// Handles all that is due: packets whose delay is over go to the transport or to the next poll, which may be due too.
    fn advance_held(&mut self, core: &mut Core, host: HostId) {
        loop {
            let Some(receivers) = self.receivers.as_deref_mut() else { return };
            let waiting = &mut receivers.hosts[host];
            if waiting.poll_at <= core.now {
                waiting.poll_at = Time::MAX;
                self.poll(core, host);
                continue;
            }
            let packet = waiting.delayed.front().filter(|(at, _)| *at <= core.now).map(|(_, packet)| *packet);
            if packet.is_some() {
                waiting.delayed.pop_front();
            }
            match (packet, receivers.reorder) {
                (None, None) => return,
                (Some(packet), None) => self.go_on(core, host, &[packet]),
                (Some(packet), Some(timeout)) => {
                    let on = self.in_order(core, host, packet, core.now + timeout);
                    self.go_on(core, host, &on);
                }
                (None, Some(_)) => {
                    let mut on = Vec::new();
                    let expired = |s: &mut Sequence| s.expire(core.now, |packet| on.push(packet));
                    receivers.given_up += waiting.sequences.values_mut().map(expired).sum::<u64>();
                    if on.is_empty() {
                        return;
                    }
                    self.go_on(core, host, &on);
                }
            }
        }
    }

    /// Passes a packet through the reordering buffer, where it waits for a bounded time; gives the packets that go on.
    fn in_order(&mut self, core: &Core, host: HostId, packet: PacketId, until: Time) -> Vec<PacketId> {
        let Some(receivers) = self.receivers.as_deref_mut() else { return vec![packet] };
        let envelope = &core.pool[packet];
        let place = core.pool.header(packet).place().filter(|_| envelope.payload > 0 && !envelope.trimmed);
        let Some(from) = place else { return vec![packet] };
        let key = (envelope.flow, envelope.to);
        let sequences = &mut receivers.hosts[host].sequences;
        let sequence = match sequences.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let next = self.ends.of(key.0, key.1).and_then(|id| self.ends[id].protocol.next_place());
                let Some(next) = next else { return vec![packet] };
                new.insert(Sequence::new(next))
            }
        };
        let mut on = Vec::new();
        let to = from.wrapping_add(u32::from(envelope.payload));
        let placed = Placed { packet, from, to, until };
        receivers.waited += u64::from(!sequence.arrived(placed, |packet| on.push(packet)));
        on
    }

    /// Packets go to the transport, or to the next poll.
    fn go_on(&mut self, core: &mut Core, host: HostId, packets: &[PacketId]) {
        for packet in packets {
            let Some(receivers) = self.receivers.as_deref_mut() else { return };
            let waiting = &mut receivers.hosts[host];
            match &receivers.napi {
                None => self.hand_over(core, host, &[*packet]),
                Some(napi) => {
                    waiting.ring.push_back(*packet);
                    waiting.poll_at = waiting.poll_at.min(core.now + napi.interrupt_delay);
                }
            }
        }
    }

    /// Takes all that waits, in polls of `budget` packets. Source: Linux napi_poll, which ends the merging at the end of each poll:
    /// of all segments with HZ below 1000, with 1000 of those that are older than a tick.
    fn poll(&mut self, core: &mut Core, host: HostId) {
        loop {
            let Some(receivers) = self.receivers.as_deref_mut() else { return };
            let Some(napi) = receivers.napi.clone() else { return };
            let ring = &mut receivers.hosts[host].ring;
            if ring.is_empty() {
                return;
            }
            let taken: Vec<PacketId> = ring.drain(..ring.len().min(napi.budget as usize)).collect();
            let mut merged: Vec<Merged> = Vec::new();
            for packet in taken {
                self.merge(core, host, &napi, &mut merged, packet);
            }
            for one in merged {
                self.hand_over(core, host, &one.packets);
            }
        }
    }

    /// Merges a packet of a poll with the packets of its flow before it, or hands those over first. What cannot be followed by
    /// anything does not wait for the end of the poll.
    fn merge(&mut self, core: &mut Core, host: HostId, napi: &Napi, merged: &mut Vec<Merged>, packet: PacketId) {
        let envelope = core.pool[packet];
        let header = *core.pool.header(packet);
        let payload = u64::from(envelope.payload);
        if let Some(i) = merged.iter().position(|one| (one.flow, one.to) == (envelope.flow, envelope.to)) {
            let one = &mut merged[i];
            let last = one.packets.last().copied().unwrap_or(packet);
            if joins(napi, one.payload, (&core.pool[last], core.pool.header(last)), (&envelope, &header)) {
                one.payload += payload;
                one.packets.push(packet);
                return;
            }
            let one = merged.remove(i);
            self.hand_over(core, host, &one.packets);
        }
        if napi.gro && payload > 0 && !envelope.trimmed {
            merged.push(Merged { flow: envelope.flow, to: envelope.to, payload, packets: vec![packet] });
        } else {
            self.hand_over(core, host, &[packet]);
        }
    }

    /// Hands packets of one flow to its transport, which answers once.
    fn hand_over(&mut self, core: &mut Core, host: HostId, packets: &[PacketId]) {
        let flow = packets.first().map(|packet| (core.pool[*packet].flow, core.pool[*packet].to));
        let mut answers = None;
        let mut followed = None;
        for packet in packets {
            if core.ledger.observed {
                followed = self.begin_delivery(core, *packet);
            }
            let envelope = &core.pool[*packet];
            let Some(id) = self.ends.of(envelope.flow, envelope.to) else {
                stray(core, *packet);
                continue;
            };
            core.ledger.totals.delivered += 1;
            self.hand_telemetry(core, *packet);
            let envelope = &core.pool[*packet];
            let end = &mut self.ends[id];
            if let Some(receivers) = self.receivers.as_deref() {
                end.protocol.arrived_at(receivers.arrived[packet.index()]);
            }
            let cfg = &end.params;
            end.protocol.on_packet(cfg, core.now, envelope, core.pool.header(*packet));
            if self.receivers.as_deref().is_some_and(|receivers| receivers.reorder.is_none()) {
                end.note_order(envelope, core.pool.number(*packet), core.now);
            }
            core.pool.free(*packet);
            answers = Some(id);
        }
        if let Some(id) = answers {
            self.after_input(core, id);
        }
        if let Some(flow) = flow {
            self.forget_order(host, flow);
        }
        if let Some((flow, side)) = followed {
            self.settle_input(core, flow, side);
        }
    }
}

impl Hosts {
    /// Forgets the order of a flow's packets that went on, where its transport knows as much or is gone.
    fn forget_order(&mut self, host: HostId, flow: (FlowId, Side)) {
        let Some(receivers) = self.receivers.as_deref_mut() else { return };
        let sequences = &mut receivers.hosts[host].sequences;
        let next = self.ends.of(flow.0, flow.1).map(|id| self.ends[id].protocol.next_place());
        let known = |s: &Sequence| match next {
            None => s.next_timeout() == Time::MAX,
            Some(next) => next.is_some_and(|next| s.is_at(next)),
        };
        if sequences.get(&flow).is_some_and(known) {
            sequences.remove(&flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_packet::{Ecn, Packet, TcpFlags};
    use fanin_units::{Bytes, TrafficClass};

    /// Marks end what is merged, or the transport could not echo them; so do another class and the bound.
    #[test]
    fn a_mark_a_class_and_the_bound_end_what_is_merged() {
        let napi = Napi { interrupt_delay: Span::from_us(8), gro: true, budget: 64, gro_max: Bytes(3000) };
        let segment = |seq, ecn, class| {
            let mut p = Packet::of_tcp(TcpFlags::ACK, seq, 1, 1, 1000);
            (p.envelope.ecn, p.envelope.class) = (ecn, TrafficClass(class));
            p
        };
        let first = segment(0, Ecn::Ect0, 0);
        let follows = |so_far, p: Packet| joins(&napi, so_far, (&first.envelope, &first.header), (&p.envelope, &p.header));
        assert!(follows(1000, segment(1000, Ecn::Ect0, 0)));
        assert!(!follows(1000, segment(1000, Ecn::Ce, 0)));
        assert!(!follows(1000, segment(1000, Ecn::Ect0, 1)));
        assert!(!follows(1000, segment(2000, Ecn::Ect0, 0)));
        assert!(follows(2000, segment(1000, Ecn::Ect0, 0)) && !follows(2001, segment(1000, Ecn::Ect0, 0)));
    }
}
