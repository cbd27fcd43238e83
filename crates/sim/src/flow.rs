//! Flows: from the application's wish to the row in the table.

use crate::fib::NextHop;
use crate::host::{Conn, ConnId, End, Protocol};
use crate::link::FarEnd;
use crate::world::World;
use fanin_packet::{Packet, Side, SynOptions, TcpFlags, Timestamps};
use fanin_switch::five_tuple_hash;
use fanin_telemetry::{FlowRow, Name};
use fanin_traffic::{DatagramClock, FlowKind, FlowSpec};
use fanin_transport::{AbortReason, Connection, Tcp, TcpEndpoint, TcpState, TcpStats, TransportConfig};
use fanin_units::{Bytes, FlowId, HostId, Purpose, Span, Stream, Time};

/// A flow under way.
pub struct Flow {
    pub id: FlowId,
    pub spec: FlowSpec,
    /// Hash of the 5-tuple of packets sent by each side.
    pub hash: [u32; 2],
    /// The side that sends the data; the other sends the request, if there is one.
    pub data_side: Side,
    /// When the last byte was handed to the receiving application.
    pub finish: Option<Time>,
    /// When the last byte was acknowledged.
    pub acked: Option<Time>,
    /// The application of the data side has been asked to send.
    pub asked: bool,
    /// Datagrams that were dropped on the way.
    pub lost: u64,
    /// A datagram source has nothing more to send.
    pub source_ended: bool,
    pub aborted: Option<AbortReason>,
    pub ideal: Span,
    pub base_rtt: Span,
}

impl Flow {
    /// The host at `side`.
    pub fn host(&self, side: Side) -> u32 {
        if side == self.data_side {
            self.spec.src.0
        } else {
            self.spec.dst.0
        }
    }

    /// The host that packets sent by `side` go to.
    pub fn peer(&self, side: Side) -> HostId {
        if side == self.data_side {
            self.spec.dst
        } else {
            self.spec.src
        }
    }

    /// Whether all data has arrived and its sender knows.
    pub fn is_over(&self) -> bool {
        self.finish.is_some() && self.acked.is_some()
    }
}

/// What is kept of a flow that has ended, for the summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    pub size: u64,
    /// Completion time; none when it did not complete.
    pub fct: Option<Span>,
    pub ideal: Span,
}

impl World {
    /// Starts the flow that traffic has next.
    pub(crate) fn start_next_flow(&mut self) {
        let Some(spec) = self.traffic.pop() else { return };
        let id = self.conns.next_flow();
        self.totals.started += 1;
        let mut ports = Stream::new(self.seed, Purpose::Ports, self.flow_key(&spec));
        // Ephemeral ports as Linux draws them; the server's port is fixed.
        let client = 32_768 + ports.below(28_232) as u16;
        let datagrams = matches!(spec.kind, FlowKind::Datagrams(_));
        let data_side = if spec.request > 0 && !datagrams { Side::Responder } else { Side::Initiator };
        let (from, to) = if data_side == Side::Initiator { (spec.src, spec.dst) } else { (spec.dst, spec.src) };
        let protocol = if datagrams { 17 } else { 6 };
        let hash = [
            five_tuple_hash(from.0, to.0, client, SERVER_PORT, protocol),
            five_tuple_hash(to.0, from.0, SERVER_PORT, client, protocol),
        ];
        let ends = if let FlowKind::Datagrams(datagrams) = &spec.kind {
            let frame = self.framing.frame(8 + datagrams.packet.get() as u16);
            let nic = self.hosts[spec.src.index()].nic as usize;
            let wire = u32::from(frame) + u32::from(self.links[nic].gap());
            let mut clock = DatagramClock::new(datagrams, &spec, Bytes(u64::from(wire)), self.seed);
            let next = clock.next();
            [Protocol::Source { clock: Box::new(clock), next, sent: 0 }, Protocol::Sink { packets: 0, bytes: 0, marked: 0 }]
        } else {
            self.endpoints(&spec)
        };
        let (ideal, base_rtt) = self.ideal(&spec, hash, data_side);
        let empty = matches!(&ends[0], Protocol::Source { next: None, .. });
        let conn = Conn {
            ends: ends.map(|protocol| End { protocol, armed: Time::MAX, queued: false }),
            flow: Flow {
                id,
                spec,
                hash,
                data_side,
                finish: None,
                acked: None,
                asked: false,
                lost: 0,
                source_ended: empty,
                aborted: None,
                ideal,
                base_rtt,
            },
        };
        let id = self.conns.insert(conn);
        if empty {
            self.datagrams_arrived(id);
            return;
        }
        self.ask_application(id);
        if self.conns.exists(id) {
            self.after_input(id, Side::Responder);
        }
        if self.conns.exists(id) {
            self.after_input(id, Side::Initiator);
        }
    }

    /// What a flow's random streams are named by: its entry's name and its number there, so that flows of other entries,
    /// which shift `FlowId`s, do not move it to other ports and paths.
    fn flow_key(&self, spec: &FlowSpec) -> u64 {
        self.entry_keys[usize::from(spec.entry)].wrapping_add(spec.index)
    }

    fn endpoints(&self, spec: &FlowSpec) -> [Protocol; 2] {
        let TransportConfig::Tcp(cfg) = &self.transports[usize::from(spec.transport)].1;
        let mut draws = Stream::new(self.seed, Purpose::Transport, self.flow_key(spec));
        let iss = [draws.next_u32(), draws.next_u32()];
        let ts_offset = [draws.next_u32(), draws.next_u32()];
        Connection::pair(cfg, self.framing.ip, iss, ts_offset)
            .map(|connection| Protocol::Tcp(TcpEndpoint::new(cfg, connection, self.now)))
    }

    /// The application's first wish: the request, or the data where there is none.
    fn ask_application(&mut self, id: ConnId) {
        let conn = &mut self.conns[id];
        let flow = &mut conn.flow;
        let bytes = if flow.data_side == Side::Initiator { flow.spec.size } else { flow.spec.request };
        flow.asked = flow.data_side == Side::Initiator;
        if let Protocol::Tcp(endpoint) = &mut conn.ends[0].protocol {
            let TransportConfig::Tcp(cfg) = &self.transports[usize::from(flow.spec.transport)].1;
            endpoint.write(cfg, self.now, bytes);
            endpoint.close(cfg, self.now);
        }
    }

    /// The application at `side` has `total` bytes in order.
    #[inline(always)]
    pub(crate) fn delivered(&mut self, id: ConnId, side: Side, total: u64) {
        let conn = &mut self.conns[id];
        let flow = &mut conn.flow;
        if side != flow.data_side {
            if total >= flow.spec.size && flow.finish.is_none() {
                flow.finish = Some(self.now);
                self.completed(id);
            }
        } else if !flow.asked && total >= flow.spec.request {
            flow.asked = true;
            if let Protocol::Tcp(endpoint) = &mut conn.ends[side as usize].protocol {
                let TransportConfig::Tcp(cfg) = &self.transports[usize::from(flow.spec.transport)].1;
                endpoint.write(cfg, self.now, flow.spec.size);
                endpoint.close(cfg, self.now);
            }
        }
    }

    /// The other end has sent all it will: so has this one, once what it was asked for is written.
    pub(crate) fn close(&mut self, id: ConnId, side: Side) {
        let conn = &mut self.conns[id];
        if let Protocol::Tcp(endpoint) = &mut conn.ends[side as usize].protocol {
            let TransportConfig::Tcp(cfg) = &self.transports[usize::from(conn.flow.spec.transport)].1;
            endpoint.close(cfg, self.now);
        }
        let host = self.conns[id].flow.host(side);
        while self.control_due(id, side) {
            self.send_control(id, side, host);
        }
    }

    /// The stack at `side` knows that `total` bytes have arrived.
    #[inline(always)]
    pub(crate) fn acked(&mut self, id: ConnId, side: Side, total: u64) {
        let flow = &mut self.conns[id].flow;
        if side == flow.data_side && flow.asked && total >= flow.spec.size && flow.acked.is_none() {
            flow.acked = Some(self.now);
        }
    }

    /// Whether nothing more is to come on the connection: at once where connections stay open, after both FINs elsewhere.
    pub(crate) fn may_release(&self, id: ConnId) -> bool {
        let conn = &self.conns[id];
        let TransportConfig::Tcp(cfg) = &self.transports[usize::from(conn.flow.spec.transport)].1;
        !cfg.handshake
            || conn.ends.iter().all(|end| match &end.protocol {
                Protocol::Tcp(endpoint) => matches!(endpoint.state(), TcpState::Closed | TcpState::TimeWait),
                _ => true,
            })
    }

    /// Ends a flow of datagrams when each has arrived or been dropped; true when it did.
    pub(crate) fn datagrams_arrived(&mut self, id: ConnId) -> bool {
        let conn = &mut self.conns[id];
        let (Protocol::Source { sent, .. }, Protocol::Sink { packets, .. }) = (&conn.ends[0].protocol, &conn.ends[1].protocol)
        else {
            return false;
        };
        let over = conn.flow.source_ended && *packets + conn.flow.lost >= *sent;
        if over {
            conn.flow.finish = Some(self.now);
            conn.flow.acked = Some(self.now);
            self.completed(id);
            self.end_flow(id);
        }
        over
    }

    /// A packet of `flow` was dropped: for datagrams nobody will send it again.
    pub(crate) fn datagram_lost(&mut self, flow: FlowId) {
        if let Some(id) = self.conns.of(flow) {
            self.conns[id].flow.lost += 1;
            self.datagrams_arrived(id);
        }
    }

    /// The receiving application has everything: whoever waited for that may start.
    fn completed(&mut self, id: ConnId) {
        let flow = &self.conns[id].flow;
        self.traffic.on_complete(&flow.spec, self.now);
        self.recorder.query_answered(flow.spec.query, self.now);
        self.find_barrier();
    }

    /// Takes a flow out of the world and into the table.
    pub(crate) fn end_flow(&mut self, id: ConnId) {
        let Some(conn) = self.conns.remove(id) else { return };
        self.totals.ended += 1;
        let host = |side: Side| conn.flow.host(side) as usize;
        for side in [Side::Initiator, Side::Responder] {
            if conn.ends[side as usize].queued {
                let ready = &mut self.hosts[host(side)].ready;
                ready.retain(|r| *r != crate::host::Ready::Turn(id, side));
            }
        }
        self.record_flow(&conn);
    }

    /// Writes a flow's row and keeps its outcome.
    pub(crate) fn record_flow(&mut self, conn: &Conn) {
        let flow = &conn.flow;
        let spec = &flow.spec;
        let data = flow.data_side as usize;
        let (sender, receiver) = (&conn.ends[data].protocol, &conn.ends[1 - data].protocol);
        let status = match (flow.finish, &flow.aborted) {
            (Some(_), _) => "complete",
            (None, Some(_)) => "aborted",
            (None, None) => "incomplete",
        };
        let none = TcpStats::default();
        let (tx, rx) = match (sender, receiver) {
            (Protocol::Tcp(s), Protocol::Tcp(r)) => (*s.stats(), *r.stats()),
            (Protocol::Source { sent, .. }, Protocol::Sink { bytes, marked, .. }) => {
                (TcpStats { packets_sent: *sent, ..none }, TcpStats { delivered: *bytes, marked: *marked, ..none })
            }
            _ => (none, none),
        };
        let row = FlowRow {
            flow: flow.id.0,
            id: spec.id.as_deref().map(Name::from),
            group: self.recorder.group(spec.entry),
            query: spec.query,
            src: self.host_names[spec.src.index()].clone(),
            dst: self.host_names[spec.dst.index()].clone(),
            transport: match spec.kind {
                FlowKind::Transfer => self.transports[usize::from(spec.transport)].0.clone(),
                FlowKind::Datagrams(_) => "udp".into(),
            },
            class: spec.class,
            size_bytes: spec.size,
            request_bytes: spec.request,
            start_ps: spec.start.ps(),
            finish_ps: flow.finish.map(Time::ps),
            acked_ps: flow.acked.map(Time::ps),
            ideal_ps: flow.ideal.ps(),
            base_rtt_ps: flow.base_rtt.ps(),
            status: status.into(),
            delivered_bytes: rx.delivered,
            packets_sent: tx.packets_sent,
            retransmits: tx.retransmits,
            timeouts: tx.timeouts,
            recoveries: tx.recoveries,
            ecn_reductions: tx.ecn_reductions,
            marked: rx.marked,
        };
        if let (None, Some(reason)) = (flow.finish, flow.aborted) {
            self.recorder.flow_aborted(&row, reason);
        }
        let result = self.recorder.flow(row, flow.finish.map(|at| at.since(spec.start)));
        self.check(result);
    }

    /// Completion time of a flow alone on an idle network: its data and before that, where there are any, SYN, SYN/ACK and the
    /// request. What follows a SYN/ACK waits for the ACK that its host sends first; so does what follows a request with FIN.
    ///
    /// And the round trip of a full data packet and its acknowledgement, for datagrams one without payload.
    fn ideal(&self, spec: &FlowSpec, hash: [u32; 2], data_side: Side) -> (Span, Span) {
        let path = self.path(spec.src, spec.dst, hash[data_side as usize]);
        let back = self.path(spec.dst, spec.src, hash[data_side.other() as usize]);
        let cfg = match (&spec.kind, &self.transports[usize::from(spec.transport)].1) {
            (FlowKind::Transfer, TransportConfig::Tcp(cfg)) => cfg,
            (FlowKind::Datagrams(d), _) => {
                let ideal = self.stream(&path, None, spec.size, (d.packet.get(), 8));
                return (Span::from_ps(ideal), self.round_trip([&path, &back], (d.packet.get(), 8)));
            }
        };
        let header = if cfg.timestamps { 32 } else { 20 };
        let segment = (u64::from(cfg.payload(cfg.mtu, self.framing.ip, cfg.timestamps)), header);
        let ack = cfg.handshake.then(|| self.framing.frame(header));
        let mut total = self.stream(&path, ack, spec.size, segment);
        if spec.request > 0 {
            total = total.saturating_add(self.stream(&back, ack, spec.request, segment));
        }
        if cfg.handshake {
            let syn = self.framing.frame(syn_header(cfg));
            for path in [&path, &back] {
                let links = path.iter().map(|l| &self.links[*l as usize]);
                total = total.saturating_add(links.map(|l| l.delay() + l.tx(syn)).sum());
            }
        }
        (Span::from_ps(total), self.round_trip([&path, &back], segment))
    }

    /// Time in which a full packet crosses an idle path and one without payload comes back on another.
    fn round_trip(&self, [there, back]: [&[u32]; 2], (mss, header): (u64, u16)) -> Span {
        let crossing = |path: &[u32], frame: u16| -> u64 {
            let links = path.iter().map(|l| &self.links[*l as usize]);
            links.fold(0, |sum, l| sum.saturating_add(l.delay() + l.tx(frame)))
        };
        let [data, ack] = [header + mss as u16, header].map(|bytes| self.framing.frame(bytes));
        Span::from_ps(crossing(there, data).saturating_add(crossing(back, ack)))
    }

    /// Time in which `size` bytes cross a path that is idle but for a frame `ahead` of them, by the tandem-queue recursion:
    /// n − 1 full packets and a last one, store and forward at each hop h, no window limit.
    ///
    /// T = Σ delay + max over hops i ≤ j of Σ_{h ≤ i} tx_h(ahead) + Σ_{i ≤ h ≤ j} tx_h(full) + (n − 2)·max_{i ≤ h ≤ j} tx_h(full)
    /// + Σ_{h ≥ j} tx_h(last); a single packet is a last one.
    fn stream(&self, path: &[u32], ahead: Option<u16>, size: u64, (mss, header): (u64, u16)) -> u64 {
        let links = || path.iter().map(|l| &self.links[*l as usize]);
        let times = |frame: u16| links().map(|l| l.tx(frame)).collect::<Vec<u64>>();
        let packets = size.div_ceil(mss).max(1);
        let last = times(self.framing.frame(header + (size.max(1) - (packets - 1) * mss) as u16));
        let full = times(self.framing.frame(header + mss as u16));
        // Departure of the packet before, at its latest, from each hop; then of the full ones; then of the last.
        let mut before = vec![0; path.len()];
        let mut left = 0;
        for (b, time) in before.iter_mut().zip(ahead.map(times).unwrap_or_default()) {
            left += time;
            *b = left;
        }
        if packets > 1 {
            let starts = before;
            before = vec![0; path.len()];
            for (i, start) in starts.iter().enumerate() {
                let (mut sum, mut slowest) = (*start, 0);
                for (j, time) in full.iter().enumerate().skip(i) {
                    sum += time;
                    slowest = slowest.max(*time);
                    before[j] = before[j].max(sum.saturating_add((packets - 2).saturating_mul(slowest)));
                }
            }
        }
        let mut done = 0_u64;
        for (b, time) in before.iter().zip(&last) {
            done = done.max(*b).saturating_add(*time);
        }
        done.saturating_add(links().map(|l| l.delay()).sum())
    }

    /// The links from one host to another for a packet with this hash, as per-flow ECMP would choose them.
    pub(crate) fn path(&self, from: HostId, to: HostId, hash: u32) -> Vec<u32> {
        let mut path = vec![self.hosts[from.index()].nic];
        while let FarEnd::Switch(s) = self.links[path[path.len() - 1] as usize].far_end() {
            match self.fib.lookup(s, to) {
                NextHop::One(link) => path.push(link),
                NextHop::Several(links) => {
                    let i = fanin_switch::ecmp(hash, self.switches[s as usize].seed, links.len());
                    path.push(links[i]);
                }
                NextHop::None => break,
            }
            if path.len() > self.switches.len() + 1 {
                break;
            }
        }
        path
    }
}

/// Bytes of the TCP header of a SYN with its options.
fn syn_header(cfg: &Tcp) -> u16 {
    let mut syn = Packet::default();
    syn.set_tcp(TcpFlags::SYN, 0, 0, 0, 0);
    if cfg.timestamps {
        syn.set_timestamps(Timestamps::default());
    }
    syn.set_syn_options(SynOptions { mss: 0, window_scale: Some(cfg.window_scale()), sack_permitted: cfg.sack });
    syn.transport_header()
}

/// The port that servers listen on.
const SERVER_PORT: u16 = 5_001;
