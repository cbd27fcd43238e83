//! Flows: from the application's wish to the row in the table.
//!
//! An end is over when it has nothing more to do by what it knows: the sender's data is acknowledged, the receiver has it all, and
//! where connections close, the end is closed. Its host lets the other know, which takes what a smallest frame takes on an
//! idle network; an end leaves its host when it is over and knows that the other is. Nothing else passes between the two but
//! packets.

use super::ends::{End, EndGone, EndId, EndKind, EndReport, NewEnd, OpenFlow};
use super::ideal::{crossing, Paths};
use super::rules::SendControl;
use super::{timer_key, Hosts, Progress, Ready, PEER_ABORTED, PEER_OVER};
use crate::core::network::Network;
use crate::core::Core;
use crate::ledger::{kind, Input};
use fanin_packet::{Envelope, Kind, Side};
use fanin_switch::five_tuple_hash;
use fanin_telemetry::{FlowRow, Moment, Name};
use fanin_traffic::{DatagramClock, FlowKind, FlowSpec, Traffic, Write};
use fanin_transport::{AbortReason, Endpoint, Place, TransportParams, UdpEndpoint};
use fanin_units::{Bytes, FlowId, HostId, Purpose, Span, Stream, Time, TrafficClass};

/// The port that servers listen on.
const SERVER_PORT: u16 = 5_001;
/// Bytes of a UDP header. Source: RFC 768.
const UDP_HEADER: u16 = 8;

impl Hosts {
    /// Starts a flow: makes its ends, and lets the initiator's application ask.
    pub fn start(&mut self, core: &mut Core, network: &impl Network, spec: FlowSpec) {
        let here = [spec.src, spec.dst].map(|host| core.has_host(host));
        if here == [false; 2] {
            return self.ends.skip();
        }
        [spec.src, spec.dst].iter().for_each(|host| self.catch_up(core, *host));
        core.ledger.totals.started += u64::from(here[0]);
        let id = self.ends.next_flow();
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
        let nic = |host: fanin_units::HostId| self.hosts[host].nic;
        let there = network.path(core, nic(spec.src), spec.dst, hash[data_side as usize]);
        let asks = !datagrams && self.transports[usize::from(spec.transport)].1.needs_telemetry().is_some();
        let paths = Paths {
            telemetry: if asks { network.telemetry(core, &there) } else { Vec::new() },
            there,
            back: network.path(core, nic(spec.dst), spec.src, hash[data_side.other() as usize]),
        };
        let (ideal, base_rtt) = self.idle_network(core, &spec, &paths);
        let rate = |host: fanin_units::HostId| core.ports[nic(host)].rate;
        let place = Place {
            framing: self.framing,
            rates: if data_side == Side::Initiator { [spec.src, spec.dst] } else { [spec.dst, spec.src] }.map(rate),
            base_rtt,
            hops: paths.there.len().saturating_sub(1) as u32,
            processing: self.processing,
        };
        let protocols = self.endpoints(core, &spec, &place);
        let latency = |side: Side| {
            let path = if side == data_side { &paths.there } else { &paths.back };
            Span::from_ps(crossing(core, path, self.framing.frame(0)))
        };
        let mut sides = [Side::Initiator, Side::Responder].into_iter();
        let ends = protocols.map(|protocol| {
            let side = sides.next().unwrap_or_default();
            let sends_data = side == data_side;
            let asked = sends_data && side == Side::Initiator;
            let (host, peer) = if sends_data { (spec.src, spec.dst) } else { (spec.dst, spec.src) };
            if !core.has_host(host) {
                return None;
            }
            let sends = Envelope {
                flow: id,
                src: host,
                dst: peer,
                hash: hash[side as usize],
                reverse_hash: hash[side.other() as usize],
                class: TrafficClass(spec.class),
                ttl: self.ttl,
                to: side.other(),
                kind: if datagrams { Kind::Datagram } else { Kind::Reliable },
                ..Envelope::default()
            };
            Some(End::from(NewEnd {
                protocol,
                sends,
                route: network.source_route(core, nic(host), &sends),
                params: self.transports[usize::from(spec.transport)].1.clone(),
                telemetry: asks,
                sends_data,
                asked,
                kind: match (datagrams, sends_data) {
                    (false, _) => EndKind::Transfer,
                    (true, true) => EndKind::Source,
                    (true, false) => EndKind::Sink,
                },
                size: spec.size,
                mark: match (sends_data, asked) {
                    (true, true) => spec.size,
                    (true, false) => spec.request,
                    (false, _) => spec.first.unwrap_or(spec.size),
                },
                latency: latency(side),
            }))
        });
        let (request, first) = (spec.request, spec.first);
        if first.is_some() {
            self.connections.insert((spec.entry, spec.index), id);
        }
        let flow = OpenFlow {
            id,
            spec,
            data_side,
            ideal,
            base_rtt,
            reports: [None, None],
            first_gone: Moment::default(),
            written_elsewhere: !here[0],
        };
        let place = self.ends.insert(flow, ends);
        self.begin(core, id, EndId::both(place), (datagrams, first.is_none().then_some(request)));
    }

    /// Lets the ends of a flow that is there begin: a source of datagrams sends, the initiator of a transfer opens and writes its
    /// `request`, if it may write by now.
    fn begin(
        &mut self,
        core: &mut Core,
        id: FlowId,
        [initiator, responder]: [EndId; 2],
        (datagrams, request): (bool, Option<u64>),
    ) {
        if core.ledger.observed {
            self.follow(core, initiator);
        }
        if datagrams {
            if self.ends.exists(initiator) && self.source_is_over(initiator) {
                return self.end_source(core, initiator); // it has nothing to send
            }
        } else {
            if let Some((end, request)) = self.ends.get_mut(initiator).zip(request) {
                let cfg = &end.params;
                let bytes = if end.sends_data { end.size } else { request };
                end.protocol.write(cfg, core.now, bytes);
                end.protocol.close(cfg, core.now);
                if core.ledger.observed {
                    self.note_write(core, initiator, bytes);
                }
            }
            if self.ends.exists(responder) {
                self.after_input(core, responder);
            }
        }
        if self.ends.exists(initiator) {
            self.after_input(core, initiator);
        }
        if core.ledger.observed {
            self.settle_input(core, id, Side::Responder);
            self.settle_input(core, id, Side::Initiator);
        }
    }

    /// Time at which the opener of a flow knows of the completions that the flow waits for: at once where the application saw
    /// them, elsewhere when a smallest frame from there has crossed an idle network.
    pub fn informed_at(&self, core: &Core, network: &impl Network, spec: &FlowSpec) -> Time {
        self.notified_at(core, network, spec.opener(), spec.known.as_deref().unwrap_or_default())
    }

    /// Time at which host `to` knows of completions, each known since a time at a host.
    pub fn notified_at(&self, core: &Core, network: &impl Network, to: HostId, known: &[(Time, HostId)]) -> Time {
        let informed = known.iter().filter(|(_, host)| *host != to).map(|(at, host)| {
            let path = network.path(core, self.hosts[*host].nic, to, 0);
            *at + Span::from_ps(crossing(core, &path, self.framing.frame(0)))
        });
        informed.max().unwrap_or(Time::ZERO)
    }

    /// Name of a flow's random streams, by its entry's name and its number there, so that flows of other entries, which shift
    /// `FlowId`s, do not move it to other ports and paths.
    fn flow_key(&self, spec: &FlowSpec) -> u64 {
        self.entry_keys[usize::from(spec.entry)].wrapping_add(spec.index)
    }

    fn endpoints(&self, core: &Core, spec: &FlowSpec, place: &Place) -> [Endpoint; 2] {
        if let FlowKind::Datagrams(datagrams) = &spec.kind {
            let frame = self.framing.frame(UDP_HEADER + datagrams.packet.get() as u16);
            let nic = self.hosts[spec.src].nic;
            let wire = u64::from(frame) + u64::from(core.links[nic].gap());
            let clock = DatagramClock::new(datagrams, spec, Bytes(wire), self.seed);
            return [UdpEndpoint::source(Box::new(clock)), UdpEndpoint::sink()].map(Endpoint::from);
        }
        let cfg = &self.transports[usize::from(spec.transport)].1;
        let mut draws = Stream::new(self.seed, Purpose::Transport, self.flow_key(spec));
        Endpoint::pair(cfg, place, spec.start, &mut draws)
    }

    /// Completion time on an idle network, and the round trip of a full packet and its answer; for datagrams, of one without
    /// payload.
    fn idle_network(&self, core: &Core, spec: &FlowSpec, paths: &Paths) -> (Span, Span) {
        let (segment, opening) = match &spec.kind {
            FlowKind::Datagrams(d) => ((d.packet.get(), UDP_HEADER, 0), None),
            FlowKind::Transfer => {
                let shape = Endpoint::shape(&self.transports[usize::from(spec.transport)].1, self.framing.ip);
                ((shape.payload, shape.header, shape.first), shape.opening)
            }
        };
        let ideal = paths.ideal(core, &self.framing, (spec.size, spec.request), segment, opening);
        (ideal, paths.round_trip(core, &self.framing, segment))
    }

    /// The application at an end has `total` bytes in order.
    #[inline(always)]
    pub(super) fn delivered(&mut self, core: &mut Core, id: EndId, total: u64) {
        let end = &mut self.ends[id];
        if end.sends_data {
            if !end.asked && total >= end.mark {
                end.asked = true;
                end.mark = end.size;
                let cfg = &end.params;
                let size = end.size;
                end.protocol.write(cfg, core.now, size);
                end.protocol.close(cfg, core.now);
                if core.ledger.observed {
                    self.note_write(core, id, size);
                }
            }
        } else if end.kind == EndKind::Sink {
            end.finish = core.now; // so far
        } else if total >= end.mark && end.finish == Time::MAX {
            self.reached(core, id, total);
        }
    }

    /// The data has arrived that the application at an end waits for.
    #[inline(never)]
    fn reached(&mut self, core: &mut Core, id: EndId, total: u64) {
        self.progress(core, id, total);
        let end = &mut self.ends[id];
        if total >= end.size {
            end.finish = core.now;
            self.completed(core, id);
        }
    }

    /// Queues news of progress for the application of a connection that is written to message by message: it is told at this
    /// instant.
    fn progress(&mut self, core: &mut Core, id: EndId, total: u64) {
        let Some(spec) = self.ends.flow(id).map(|flow| &flow.spec).filter(|spec| spec.first.is_some()) else { return };
        self.progress.push(Progress { conn: (spec.entry, spec.index), at_sender: self.ends[id].sends_data, total });
        core.barrier = core.now;
    }

    /// Notifies applications of messages that have arrived, and of messages that are acknowledged, in the order of their
    /// connections; they write what follows from that.
    pub fn tell(&mut self, core: &mut Core, traffic: &mut Traffic) {
        let mut progress = std::mem::take(&mut self.progress);
        progress.sort_unstable();
        for Progress { conn, at_sender, total } in progress {
            core.ledger.note_event(core.now, kind::PROGRESS, [u64::from(conn.0), conn.1 << 1 | u64::from(at_sender)]);
            if at_sender {
                traffic.acknowledged(conn, total, core.now);
            } else {
                let mark = traffic.arrived(conn, total, core.now);
                if let Some(id) = self.connections.get(&conn).and_then(|flow| self.ends.of(*flow, Side::Responder)) {
                    let end = &mut self.ends[id];
                    end.mark = mark.min(end.size);
                    end.listen();
                }
            }
            self.write_messages(core, traffic);
        }
    }

    /// Writes the messages that ranks of jobs have decided to send.
    pub fn write_messages(&mut self, core: &mut Core, traffic: &mut Traffic) {
        while let Some(message) = traffic.pop_write() {
            self.write(core, &message);
        }
    }

    /// An application writes a message.
    fn write(&mut self, core: &mut Core, message: &Write) {
        let Some(flow) = self.connections.get(&(message.entry, message.index)).copied() else { return };
        let Some(id) = self.ends.of(flow, Side::Initiator) else { return };
        self.catch_up(core, self.ends[id].host());
        if core.ledger.observed {
            self.begin_input(core, id, Input::Application);
            self.note_write(core, id, message.bytes);
        }
        let end = &mut self.ends[id];
        end.mark = message.tells.unwrap_or(end.size);
        end.listen();
        let cfg = &end.params;
        end.protocol.write(cfg, core.now, message.bytes);
        if message.last {
            end.protocol.close(cfg, core.now);
        }
        self.after_input(core, id);
        if core.ledger.observed {
            self.settle_input(core, flow, Side::Initiator);
        }
    }

    /// Closes an end whose peer has sent all it will: this end does so too, once what it was asked for is written.
    pub(super) fn close(&mut self, core: &mut Core, id: EndId) {
        let end = &mut self.ends[id];
        end.protocol.close(&end.params, core.now);
        self.apply_in_general(core, id, SendControl);
    }

    /// The stack of an end knows that `total` bytes have arrived.
    #[inline(always)]
    pub(super) fn acked(&mut self, core: &mut Core, id: EndId, total: u64) {
        let end = &mut self.ends[id];
        if end.sends_data && end.asked && total >= end.mark && end.acked == Time::MAX {
            self.acknowledged(core, id, total);
        }
    }

    /// The data is acknowledged that the application at an end wants to hear of.
    #[inline(never)]
    fn acknowledged(&mut self, core: &mut Core, id: EndId, total: u64) {
        let end = &mut self.ends[id];
        if total >= end.size {
            end.acked = core.now;
        }
        self.progress(core, id, total);
    }

    /// Removes an end that is over and whose peer is; true when it is gone.
    #[inline(always)]
    pub(super) fn end_if_over(&mut self, core: &mut Core, id: EndId) -> bool {
        let end = &self.ends[id];
        let done = if end.sends_data { end.acked } else { end.finish } != Time::MAX;
        done && end.kind == EndKind::Transfer && self.end_when_over(core, id)
    }

    #[inline(never)]
    fn end_when_over(&mut self, core: &mut Core, id: EndId) -> bool {
        let end = &mut self.ends[id];
        if !end.protocol.is_over(&end.params) {
            return false;
        }
        if !end.over {
            end.over = true;
            let key = timer_key(end.sends.dst, end.flow(), id.side().other(), PEER_OVER);
            core.notify_peer(core.now + end.latency, end.sends.dst, key);
        }
        let gone = self.ends[id].peer_over;
        if gone {
            self.release(core, id);
        }
        gone
    }

    /// Records that the other end is over.
    pub(super) fn peer_is_over(&mut self, core: &mut Core, id: EndId, aborted: bool) {
        let end = &mut self.ends[id];
        end.peer_over = true;
        if end.over || aborted {
            self.release(core, id);
        }
    }

    /// Handles the abort of a connection at an end, which has given up or was reset by the other.
    pub(super) fn abort(&mut self, core: &mut Core, id: EndId, reason: AbortReason) {
        let end = &mut self.ends[id];
        end.aborted = Some(reason);
        let key = timer_key(end.sends.dst, end.flow(), id.side().other(), PEER_ABORTED);
        core.notify_peer(core.now + end.latency, end.sends.dst, key);
        self.release(core, id);
    }

    /// True where an end is a source of datagrams that has sent all.
    #[inline(always)]
    pub(super) fn source_is_over(&self, id: EndId) -> bool {
        let end = &self.ends[id];
        end.kind == EndKind::Source && end.protocol.is_over(&end.params)
    }

    /// Ends a source of datagrams that has sent all: the flow is complete for those that wait for it. Its receiver counts
    /// arrivals until the end of the run, as it is not notified how many there are.
    pub(super) fn end_source(&mut self, core: &mut Core, id: EndId) {
        self.ends[id].over = true;
        self.completed(core, id);
        core.ledger.totals.ended += 1;
        self.release(core, id);
    }

    /// Records that a flow is complete, so that those that wait for it may start.
    fn completed(&mut self, core: &mut Core, id: EndId) {
        let Some(flow) = self.ends.flow(id) else { return };
        let spec = flow.spec.clone();
        core.ledger.tables.query_answered(spec.query, core.now);
        self.completed.push(spec);
        core.barrier = core.now; // the applications are next at this instant
    }

    /// Takes an end out of its host; with the flow's second end, its row is written.
    fn release(&mut self, core: &mut Core, id: EndId) {
        if self.ends.exists(id) && self.ends[id].queued {
            let host = &mut self.hosts[self.ends[id].host()];
            host.ready.retain(|r| r != Ready::End(id));
            if let Some(gate) = host.gate.as_deref_mut() {
                gate.held.retain(|r| *r != Ready::End(id));
            }
        }
        let Some((end, flow)) = self.ends.remove(id, core.ledger.moment(core.now)) else { return };
        if let Some(headers) = self.headers.as_deref_mut() {
            headers.forget(end.flow, id.side());
        }
        self.signals.add(&end.signals);
        self.reordering.add(&end.report.reordering);
        if let Some(flow) = flow {
            if flow.spec.first.is_some() {
                self.connections.remove(&(flow.spec.entry, flow.spec.index));
            }
            self.count_ended(core, &flow);
            self.write_row(core, &flow, id.side(), core.now);
        }
    }

    /// Counts a flow that has ended, where its row is written.
    fn count_ended(&self, core: &mut Core, flow: &OpenFlow) {
        let counts = matches!(flow.spec.kind, FlowKind::Transfer) && !flow.written_elsewhere;
        core.ledger.totals.ended += u64::from(counts);
    }

    /// An end of a flow that was opened here is gone in another part of the network; `by_itself`: not as the run has ended.
    pub fn ended_elsewhere(&mut self, core: &mut Core, end: EndGone, by_itself: bool) {
        let (side, at) = (end.side, end.at);
        let Some(flow) = self.ends.gone_elsewhere(end) else { return };
        if by_itself {
            self.count_ended(core, &flow);
        }
        let at = at.max(flow.first_gone);
        core.ledger.note_event(Time::from_ps(at.time), at.kind, at.place);
        self.write_row(core, &flow, side, Time::from_ps(at.time));
    }

    /// Writes a flow's row, the last end of which is gone here, at a time; or reports that end to where the row is written.
    fn write_row(&mut self, core: &mut Core, flow: &OpenFlow, side: Side, at: Time) {
        match &flow.reports[side as usize] {
            Some(report) if flow.written_elsewhere => {
                let at = core.ledger.moment(at);
                self.gone.push((flow.spec.src, EndGone { flow: flow.id, side, at, report: report.clone() }));
            }
            _ => self.record(core, flow, at),
        }
    }

    /// The run has ended: rows of flows that have not.
    pub fn wind_up(&mut self, core: &mut Core) {
        for id in self.ends.ids() {
            core.ledger.note_event(core.now, kind::END, [u64::from(self.ends[id].flow().0), 0]);
            let Some((end, flow)) = self.ends.remove(id, core.ledger.moment(core.now)) else { continue };
            self.signals.add(&end.signals);
            self.reordering.add(&end.report.reordering);
            if let Some(flow) = flow {
                self.write_row(core, &flow, id.side(), core.now);
            }
        }
    }

    /// Writes a flow's row.
    fn record(&self, core: &mut Core, flow: &OpenFlow, at: Time) {
        let spec = &flow.spec;
        let [Some(first), Some(second)] = &flow.reports else { return };
        let (tx, rx): (&EndReport, &EndReport) =
            if flow.data_side == Side::Initiator { (first, second) } else { (second, first) };
        let datagrams = matches!(spec.kind, FlowKind::Datagrams(_));
        // Datagrams: all that were sent have arrived, and no more would have been sent.
        let all = rx.received == tx.stats.packets_sent && tx.ended;
        let finish = rx.finish.filter(|_| !datagrams || all);
        // A sender that gave up before it knew that all had arrived has failed, whatever arrived.
        let aborted = tx.aborted.or(rx.aborted).filter(|_| tx.acked.is_none());
        let status = match (finish, aborted) {
            (_, Some(_)) => "aborted",
            _ if datagrams && all => "complete",
            (Some(_), None) => "complete",
            (None, None) => "incomplete",
        };
        // An incomplete transfer lasts to the end of the run; datagrams that were lost do not, once all are sent.
        let until = match (status, datagrams && tx.ended) {
            ("complete", _) | (_, true) => rx.finish.unwrap_or(Time::ZERO),
            _ => at,
        };
        core.ledger.tables.flows_until = core.ledger.tables.flows_until.max(until);
        let ledger = &mut core.ledger;
        let messages = ledger.trace.as_deref_mut().map_or_else(Vec::new, |trace| trace.forget(flow.id.0, rx.finish, tx.acked));
        let written = ledger.tables.complete(messages);
        let row = FlowRow {
            flow: flow.id.0,
            id: spec.id.as_deref().map(Name::from),
            group: ledger.tables.group(spec.entry),
            query: spec.query,
            src: ledger.host_names[spec.src.index()].clone(),
            dst: ledger.host_names[spec.dst.index()].clone(),
            transport: match spec.kind {
                FlowKind::Transfer => self.transports[usize::from(spec.transport)].0.clone(),
                FlowKind::Datagrams(_) => "udp".into(),
            },
            class: spec.class,
            size_bytes: spec.size,
            request_bytes: spec.request,
            start_ps: spec.start.ps(),
            finish_ps: finish.map(Time::ps),
            acked_ps: tx.acked.map(Time::ps),
            ideal_ps: flow.ideal.ps(),
            base_rtt_ps: flow.base_rtt.ps(),
            status: status.into(),
            delivered_bytes: rx.stats.delivered,
            packets_sent: tx.stats.packets_sent,
            retransmits: tx.stats.retransmits,
            timeouts: tx.stats.timeouts,
            recoveries: tx.stats.recoveries,
            ecn_reductions: tx.stats.ecn_reductions,
            marked: rx.stats.marked,
            reordered: rx.reordering.reordered,
            reordered_3: rx.reordering.three,
            reordering_extent: rx.reordering.extent_max,
            reordering_late_ps: rx.reordering.late_max.ps(),
        };
        let result = if datagrams {
            ledger.tables.datagrams(row, rx.received)
        } else {
            if let Some(reason) = aborted {
                ledger.tables.flow_aborted(&row, reason);
            }
            // How long a connection is used says nothing of the network.
            let fct = finish.filter(|_| aborted.is_none() && spec.first.is_none()).map(|at| at.since(spec.start));
            ledger.tables.transfer(row, fct)
        };
        core.check(written.and(result));
    }
}
