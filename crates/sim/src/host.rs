//! Hosts: endpoints, the NIC that they share, and delivery.
//!
//! A NIC pulls: data stays in its socket until the wire has room, as with TCP small queues, so no packet is ever lost in a
//! host. What an endpoint must send at once (acknowledgements, handshakes) is a packet of its own in the same round.

use crate::flow::Flow;
use crate::pool::PacketId;
use crate::world::World;
use fanin_engine::Table;
use fanin_packet::{Packet, Side};
use fanin_traffic::DatagramClock;
use fanin_transport::{TcpEndpoint, TcpEvent, TransportConfig};
use fanin_units::{FlowId, Time};
use std::collections::VecDeque;

/// A connection's place.
pub type ConnId = u32;
const NO_CONN: ConnId = u32::MAX;

/// Who is next at a NIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ready {
    /// A packet that is made already.
    Packet(PacketId),
    /// A connection end that may send data.
    Turn(ConnId, Side),
}

/// A host's NIC.
pub struct Host {
    /// Its output port.
    pub nic: u32,
    /// In order of becoming ready; each has one turn, then goes to the end.
    pub ready: VecDeque<Ready>,
    /// Whether a departure event is set.
    pub armed: bool,
}

impl Host {
    /// Packets that are made and not yet sent.
    pub fn waiting_packets(&self) -> u64 {
        self.ready.iter().filter(|r| matches!(r, Ready::Packet(_))).count() as u64
    }
}

/// What sits at one end of a flow.
#[allow(clippy::large_enum_variant)] // the large one is the common one, and its connection is boxed
pub enum Protocol {
    Tcp(TcpEndpoint),
    /// A datagram source: its clock, and the datagram that is next.
    Source {
        clock: Box<DatagramClock>,
        next: Option<(Time, u32)>,
        sent: u64,
    },
    /// Counts datagrams.
    Sink {
        packets: u64,
        bytes: u64,
        marked: u64,
    },
}

/// One end of a flow.
pub struct End {
    pub protocol: Protocol,
    /// The earliest entry of this end among the timers; later ones are stale.
    pub armed: Time,
    /// Whether it has a turn waiting at the NIC.
    pub queued: bool,
}

/// A connection: both ends and the flow that it carries.
pub struct Conn {
    pub ends: [End; 2],
    pub flow: Flow,
}

/// All connections that exist, and where each flow's is.
#[derive(Default)]
pub struct Conns {
    slab: Table<Option<Box<Conn>>>,
    free: Vec<ConnId>,
    /// Connection of flow `first + i`.
    of_flow: Vec<ConnId>,
    first: u32,
    ended_in_front: usize,
}

impl Conns {
    /// Adds the connection of the next flow.
    pub fn insert(&mut self, conn: Conn) -> ConnId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slab.push(None);
            (self.slab.len() - 1) as ConnId
        });
        self.slab[id as usize] = Some(Box::new(conn));
        self.of_flow.push(id);
        id
    }

    /// The number that the next flow gets.
    pub fn next_flow(&self) -> FlowId {
        FlowId(self.first + self.of_flow.len() as u32)
    }

    /// The connection of a flow, unless it has ended.
    #[inline(always)]
    pub fn of(&self, flow: FlowId) -> Option<ConnId> {
        let id = *self.of_flow.get(flow.0.wrapping_sub(self.first) as usize)?;
        (id != NO_CONN).then_some(id)
    }

    /// Takes out a connection that has ended. Flows that have ended cost nothing once all before them have.
    pub fn remove(&mut self, id: ConnId) -> Option<Box<Conn>> {
        let conn = self.slab[id as usize].take()?;
        self.free.push(id);
        self.of_flow[(conn.flow.id.0 - self.first) as usize] = NO_CONN;
        while self.of_flow.get(self.ended_in_front) == Some(&NO_CONN) {
            self.ended_in_front += 1;
        }
        if self.ended_in_front > 4096 && self.ended_in_front * 2 > self.of_flow.len() {
            self.of_flow.drain(..self.ended_in_front);
            self.first += self.ended_in_front as u32;
            self.ended_in_front = 0;
        }
        Some(conn)
    }

    /// Connections that exist.
    pub fn active(&self) -> usize {
        self.slab.len() - self.free.len()
    }

    /// The connections that exist, in order of flows.
    pub fn iter(&self) -> impl Iterator<Item = &Conn> {
        self.of_flow.iter().filter(|id| **id != NO_CONN).filter_map(|id| self.slab[*id as usize].as_deref())
    }

    /// Connections that exist, in order of flows, by place.
    pub fn ids(&self) -> Vec<ConnId> {
        self.of_flow.iter().copied().filter(|id| *id != NO_CONN).collect()
    }

    /// Whether a connection is (still) there.
    pub fn exists(&self, id: ConnId) -> bool {
        self.slab[id as usize].is_some()
    }

    /// Up to `n` connections in words, in order of flows: who waits for what.
    pub fn describe_waiting(&self, n: usize) -> Vec<String> {
        self.iter().take(n).map(Conn::describe).collect()
    }

    /// Bytes that one connection takes.
    pub const fn bytes_each() -> usize {
        std::mem::size_of::<Conn>()
    }
}

impl std::ops::Index<ConnId> for Conns {
    type Output = Conn;
    #[inline(always)]
    fn index(&self, id: ConnId) -> &Conn {
        debug_assert!(self.exists(id));
        // SAFETY: ids come from `insert` and are forgotten at `remove`: `of` gives only connections that exist, and ready
        // lists are cleared of a connection before it is removed. Debug builds check.
        unsafe { self.slab[id as usize].as_deref().unwrap_unchecked() }
    }
}

impl std::ops::IndexMut<ConnId> for Conns {
    #[inline(always)]
    fn index_mut(&mut self, id: ConnId) -> &mut Conn {
        debug_assert!(self.exists(id));
        // SAFETY: as above.
        unsafe { self.slab[id as usize].as_deref_mut().unwrap_unchecked() }
    }
}

impl Conn {
    fn describe(&self) -> String {
        let flow = &self.flow;
        let state = match &self.ends[flow.data_side as usize].protocol {
            Protocol::Tcp(e) => {
                format!(
                    "{:?}, {} B in flight, {} B unsent, cwnd {} B, RTO {}",
                    e.state(),
                    e.inflight(),
                    e.unsent(),
                    e.cwnd(),
                    e.rto()
                )
            }
            _ => "sends datagrams".to_string(),
        };
        let wish = if flow.asked { "data to be acknowledged" } else { "the request to arrive" };
        format!(
            "flow {} (host {} to host {}, {} B) waits for {wish}: {state}",
            flow.id, flow.spec.src, flow.spec.dst, flow.spec.size
        )
    }
}

/// What an endpoint asks for after an input.
struct Asks {
    turn: bool,
    timeout: Time,
}

impl World {
    /// A packet has reached its host.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, host: u32, packet: PacketId) {
        if self.observed {
            self.observe_delivery(host, packet);
        }
        let p = &self.pool[packet];
        debug_assert_eq!(p.dst.0, host, "a packet at a host that it was not sent to");
        let side = p.to;
        let Some(id) = self.conns.of(p.flow) else {
            self.totals.stray += 1;
            self.pool.free(packet);
            return;
        };
        self.totals.delivered += 1;
        let conn = &mut self.conns[id];
        match &mut conn.ends[side as usize].protocol {
            Protocol::Tcp(endpoint) => {
                let TransportConfig::Tcp(cfg) = &self.transports[usize::from(conn.flow.spec.transport)].1;
                endpoint.on_packet(cfg, self.now, p);
            }
            Protocol::Sink { packets, bytes, marked } => {
                *packets += 1;
                *bytes += u64::from(p.payload);
                *marked += u64::from(p.ecn == fanin_packet::Ecn::Ce);
            }
            Protocol::Source { .. } => {}
        }
        self.pool.free(packet);
        self.after_input(id, side);
    }

    /// Does what an endpoint asks for after any input: packets that go at once, events, a turn at the NIC, a timeout.
    pub(crate) fn after_input(&mut self, id: ConnId, side: Side) {
        let host = self.conns[id].flow.host(side);
        while self.control_due(id, side) {
            self.send_control(id, side, host);
        }
        if self.take_events(id, side) {
            return; // the flow has ended
        }
        if self.nic_is_idle(host) {
            // Its turn would come at once: no need to queue for it.
            let nic = self.hosts[host as usize].nic as usize;
            self.turn(host, nic, id, side);
        } else {
            self.ask(id, side, host);
        }
        self.run_nic(host);
    }

    #[inline(always)]
    fn nic_is_idle(&self, host: u32) -> bool {
        let host = &self.hosts[host as usize];
        host.ready.is_empty() && self.links[host.nic as usize].free_at <= self.now.ps()
    }

    #[inline(always)]
    pub(crate) fn control_due(&self, id: ConnId, side: Side) -> bool {
        matches!(&self.conns[id].ends[side as usize].protocol, Protocol::Tcp(endpoint) if endpoint.control_due())
    }

    /// Makes the packet that an endpoint must send now, and sends or queues it.
    #[inline(always)]
    pub(crate) fn send_control(&mut self, id: ConnId, side: Side, host: u32) {
        let packet = self.pool.take();
        let conn = &mut self.conns[id];
        let Protocol::Tcp(endpoint) = &mut conn.ends[side as usize].protocol else { return };
        let TransportConfig::Tcp(cfg) = &self.transports[usize::from(conn.flow.spec.transport)].1;
        let made = endpoint.poll_control(cfg, self.now, &mut self.pool[packet]);
        debug_assert!(made, "a control packet that was due");
        self.address(packet, id, side);
        if self.nic_is_idle(host) {
            let nic = self.hosts[host as usize].nic as usize;
            self.transmit(nic, packet);
        } else {
            self.hosts[host as usize].ready.push_back(Ready::Packet(packet));
        }
    }

    /// Puts an end into its NIC's round if it can send, and its timeout among the timers.
    #[inline(always)]
    fn ask(&mut self, id: ConnId, side: Side, host: u32) {
        let asks = self.asks(id, side);
        let conn = &mut self.conns[id];
        let end = &mut conn.ends[side as usize];
        if asks.turn && !end.queued {
            end.queued = true;
            self.hosts[host as usize].ready.push_back(Ready::Turn(id, side));
        }
        if asks.timeout < end.armed {
            end.armed = asks.timeout;
            let key = (host, u64::from(conn.flow.id.0) << 1 | side as u64);
            self.set_timer(asks.timeout, key);
        }
    }

    #[inline(always)]
    fn asks(&self, id: ConnId, side: Side) -> Asks {
        let conn = &self.conns[id];
        match &conn.ends[side as usize].protocol {
            Protocol::Tcp(endpoint) => {
                let TransportConfig::Tcp(cfg) = &self.transports[usize::from(conn.flow.spec.transport)].1;
                Asks { turn: endpoint.wants_to_send(cfg, self.now), timeout: endpoint.next_timeout() }
            }
            Protocol::Source { next: Some((at, _)), .. } => {
                let due = *at <= self.now;
                Asks { turn: due, timeout: if due { Time::MAX } else { *at } }
            }
            _ => Asks { turn: false, timeout: Time::MAX },
        }
    }

    /// Lets the NIC send what is ready, as far as the wire has room.
    #[inline(always)]
    pub(crate) fn run_nic(&mut self, host: u32) {
        if self.hosts[host as usize].ready.is_empty() {
            return;
        }
        self.drive_nic(host);
    }

    fn drive_nic(&mut self, host: u32) {
        let nic = self.hosts[host as usize].nic as usize;
        loop {
            let free_at = self.links[nic].free_at;
            if free_at > self.now.ps() && !self.fifo_nic {
                let host = &mut self.hosts[host as usize];
                if !host.armed && !host.ready.is_empty() {
                    host.armed = true;
                    self.wheel.set(nic as u32, Time::from_ps(free_at));
                }
                return;
            }
            match self.hosts[host as usize].ready.pop_front() {
                None => return,
                Some(Ready::Packet(packet)) => self.transmit(nic, packet),
                Some(Ready::Turn(id, side)) => self.turn(host, nic, id, side),
            }
        }
    }

    /// One turn of an end: a segment, or a burst of up to its TSO size; under a FIFO NIC, all that it may send.
    fn turn(&mut self, host: u32, nic: usize, id: ConnId, side: Side) {
        let limit = self.burst(id, side);
        let mut burst = 0;
        loop {
            let packet = self.pool.take();
            if !self.pull(id, side, packet) {
                self.pool.free(packet);
                break;
            }
            burst += u64::from(self.pool[packet].payload);
            self.address(packet, id, side);
            self.transmit(nic, packet);
            if !self.fifo_nic && burst >= limit {
                break;
            }
        }
        self.conns[id].ends[side as usize].queued = false;
        while self.control_due(id, side) {
            self.send_control(id, side, host); // the FIN that follows the last data
        }
        self.ask(id, side, host);
    }

    /// Bytes that one turn at the NIC may send: one segment, or a TSO burst.
    #[inline(always)]
    fn burst(&self, id: ConnId, side: Side) -> u64 {
        let conn = &self.conns[id];
        match &conn.ends[side as usize].protocol {
            Protocol::Tcp(endpoint) => {
                let TransportConfig::Tcp(cfg) = &self.transports[usize::from(conn.flow.spec.transport)].1;
                if cfg.tso {
                    endpoint.tso_bytes(cfg, self.now)
                } else {
                    0
                }
            }
            _ => 0,
        }
    }

    /// Makes the next data packet of an end; false when it may send none now.
    #[inline(always)]
    fn pull(&mut self, id: ConnId, side: Side, packet: PacketId) -> bool {
        let conn = &mut self.conns[id];
        match &mut conn.ends[side as usize].protocol {
            Protocol::Tcp(endpoint) => {
                let TransportConfig::Tcp(cfg) = &self.transports[usize::from(conn.flow.spec.transport)].1;
                endpoint.poll_data(cfg, self.now, &mut self.pool[packet])
            }
            Protocol::Source { clock, next, sent } => {
                let Some((_, payload)) = next.filter(|(at, _)| *at <= self.now) else { return false };
                let p = &mut self.pool[packet];
                p.set_udp(*sent as u32, payload as u16);
                p.ecn = fanin_packet::Ecn::NotEct;
                *sent += 1;
                *next = clock.next();
                conn.flow.source_ended = next.is_none();
                true
            }
            Protocol::Sink { .. } => false,
        }
    }

    /// Writes what the host's stack knows and the endpoint does not.
    #[inline(always)]
    fn address(&mut self, packet: PacketId, id: ConnId, side: Side) {
        let flow = &self.conns[id].flow;
        let p: &mut Packet = &mut self.pool[packet];
        p.flow = flow.id;
        p.dst = flow.peer(side);
        p.hash = flow.hash[side as usize];
        p.to = side.other();
        p.class = flow.spec.class;
        p.ttl = self.ttl;
        p.frame = self.framing.frame(p.transport_header() + p.payload);
    }

    /// Puts a packet onto the host's link.
    #[inline(always)]
    fn transmit(&mut self, nic: usize, packet: PacketId) {
        self.totals.sent += 1;
        if self.observed {
            self.capture_sent(nic, packet);
        }
        self.catch_up(nic);
        self.send(nic, packet, false);
    }

    /// A timeout is due: that of the first timer. Entries that their end has moved since are stale.
    pub(crate) fn timeout(&mut self) {
        let Some((at, (_, key))) = self.timers.pop() else { return };
        let side = if key & 1 == 0 { Side::Initiator } else { Side::Responder };
        let Some(id) = self.conns.of(FlowId((key >> 1) as u32)) else { return };
        let conn = &mut self.conns[id];
        let end = &mut conn.ends[side as usize];
        if end.armed != at {
            return;
        }
        end.armed = Time::MAX;
        if let Protocol::Tcp(endpoint) = &mut end.protocol {
            // Re-arming later only writes a field: the entry may stand before the timeout that it was for.
            if endpoint.next_timeout() <= self.now {
                let TransportConfig::Tcp(cfg) = &self.transports[usize::from(conn.flow.spec.transport)].1;
                endpoint.on_timer(cfg, self.now);
            }
        }
        self.after_input(id, side);
    }

    /// Handles what an endpoint has to tell. True when the flow has ended and its connection is gone.
    #[inline(always)]
    fn take_events(&mut self, id: ConnId, side: Side) -> bool {
        loop {
            let event = match &mut self.conns[id].ends[side as usize].protocol {
                Protocol::Tcp(endpoint) => endpoint.poll_event(),
                Protocol::Sink { .. } => return self.datagrams_arrived(id),
                Protocol::Source { .. } => None,
            };
            match event {
                None => return false,
                Some(TcpEvent::Delivered { total }) => self.delivered(id, side, total),
                Some(TcpEvent::Acked { total }) => self.acked(id, side, total),
                Some(TcpEvent::Aborted(reason)) => {
                    self.conns[id].flow.aborted = Some(reason);
                    self.end_flow(id);
                    return true;
                }
                Some(TcpEvent::PeerClosed) => self.close(id, side),
                Some(TcpEvent::Connected | TcpEvent::Closed) => {}
            }
            if self.conns[id].flow.is_over() && self.may_release(id) {
                self.end_flow(id);
                return true;
            }
        }
    }
}
