//! Followed flows: reports of their endpoints to the ledger's trace. Off the hot path: without `telemetry.hosts` and
//! `telemetry.messages` nothing here is called.

use super::ends::EndId;
use super::{Hosts, Ready};
use crate::core::Core;
use crate::ledger::{Input, Known, Seen};
use fanin_packet::{PacketId, Side, Signal};
use fanin_transport::{Kinds, TransportParams};
use fanin_units::{Bytes, FlowId, HostId, LinkId, Time};

impl Hosts {
    /// Begins to follow a flow whose ends have just been made.
    #[cold]
    #[inline(never)]
    pub(super) fn follow(&self, core: &mut Core, id: EndId) {
        let (now, ledger) = (core.now, &mut core.ledger);
        let (Some(trace), Some(flow)) = (ledger.trace.as_deref_mut(), self.ends.flow(id)) else { return };
        let spec = &flow.spec;
        let group = ledger.tables.group(spec.entry).to_string();
        let hosts = [spec.src, spec.dst].map(|host| ledger.host_names[host.index()].to_string());
        let known =
            Known { number: flow.id.0, id: spec.id.as_deref(), group: &group, hosts: [hosts[0].as_str(), hosts[1].as_str()] };
        trace.start(&known, [Side::Initiator, Side::Responder].map(|side| side == flow.data_side));
        for side in [Side::Initiator, Side::Responder] {
            trace.begin(now, flow.id.0, side, Input::Application);
        }
    }

    /// Notes that the application at an end writes, if the flow is followed and the end sends its data.
    #[cold]
    #[inline(never)]
    pub(super) fn note_write(&self, core: &mut Core, id: EndId, bytes: u64) {
        let (now, ledger) = (core.now, &mut core.ledger);
        let (Some(trace), Some(flow)) = (ledger.trace.as_deref_mut(), self.ends.flow(id)) else { return };
        let end = &self.ends[id];
        if end.sends_data {
            let hosts = [flow.spec.src, flow.spec.dst].map(|host| ledger.host_names[host.index()].clone());
            let largest = end.params.largest_message().map(Bytes::get);
            trace.wrote(now, (end.flow().0, hosts), bytes, largest);
        }
    }

    /// An endpoint is about to handle something.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_input(&self, core: &mut Core, id: EndId, input: Input) {
        let (now, flow) = (core.now, self.ends[id].flow().0);
        if let Some(trace) = core.ledger.trace.as_deref_mut() {
            trace.begin(now, flow, id.side(), input);
        }
    }

    /// An endpoint is about to handle a signal.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_signal(&self, core: &mut Core, id: EndId, signal: &Signal) {
        let (now, flow) = (core.now, self.ends[id].flow().0);
        let Some(trace) = core.ledger.trace.as_deref_mut() else { return };
        let packet = match signal {
            Signal::Lost(lost) => trace.lost(flow, id.side(), lost.packet.number),
            Signal::Undefined => None,
        };
        trace.begin(now, flow, id.side(), Input::Notification(packet));
    }

    /// Reports an endpoint after it has handled an input, unless it is gone.
    #[cold]
    #[inline(never)]
    pub(super) fn settle_input(&self, core: &mut Core, flow: FlowId, side: Side) {
        let now = core.now;
        if !core.ledger.trace.as_deref().is_some_and(|trace| trace.follows(flow.0)) {
            return;
        }
        let Some(id) = self.ends.of(flow, side) else { return };
        let seen = self.seen(now, id);
        let host = self.ends[id].host();
        let held = self.hosts[host].gate.iter().flat_map(|gate| &gate.held).copied();
        let waits = self.hosts[host].ready.iter().chain(held).filter_map(|ready| match ready {
            Ready::Packet(packet) => Some(packet),
            Ready::End(_) => None,
        });
        let pool = &core.pool;
        let made: Vec<PacketId> = waits.filter(|packet| (pool[*packet].flow, pool[*packet].to) == (flow, side.other())).collect();
        let ledger = &mut core.ledger;
        let Some(trace) = ledger.trace.as_deref_mut() else { return };
        let row = trace.settle(now, (flow.0, side, &ledger.host_names[host.index()]), &seen, &made);
        let acked = seen.state.filter(|_| self.ends[id].sends_data).map(|state| state.acked.saturating_sub(1));
        let complete = acked.map_or_else(Vec::new, |acked| trace.acked(now, flow.0, acked));
        let result = ledger.tables.follow(row, None, None).and_then(|()| ledger.tables.complete(complete));
        core.check(result);
    }

    /// The state of an endpoint as the tables of followed flows show it.
    pub(super) fn seen(&self, now: Time, id: EndId) -> Seen {
        let end = &self.ends[id];
        let ready = end.protocol.due(&end.params, now, Kinds::DATA);
        Seen { state: end.protocol.snapshot(), stats: end.protocol.stats(), ready }
    }

    /// Notes the end that is about to handle a packet which has reached its host.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_delivery(&self, core: &mut Core, packet: PacketId) -> Option<(FlowId, Side)> {
        let (now, envelope) = (core.now, core.pool[packet]);
        let ledger = &mut core.ledger;
        let trace = ledger.trace.as_deref_mut()?;
        let (number, row) = trace.received(now, packet, &envelope)?;
        trace.begin(now, envelope.flow.0, envelope.to, Input::Arrival(number));
        let result = ledger.tables.follow(None, row, None);
        core.check(result);
        Some((envelope.flow, envelope.to))
    }
}

/// Reports a packet that goes to its NIC. `seen`: the state of its sender, unless that is gone.
#[cold]
#[inline(never)]
pub(super) fn observe_sent(core: &mut Core, host: HostId, nic: LinkId, packet: PacketId, seen: impl FnOnce() -> Option<Seen>) {
    let copy = core.pool.packet(packet);
    let start = Time::from_ps(core.links[nic].free_at.max(core.now.ps()));
    let (now, flow) = (core.now, copy.envelope.flow);
    if let Some(capture) = core.ledger.tables.capture.as_deref_mut() {
        let result = capture.sent((now, start), host, &copy, core.pool.shim_on_wire(packet));
        core.check(result);
    }
    let ledger = &mut core.ledger;
    let Some(trace) = ledger.trace.as_deref_mut().filter(|trace| trace.follows(flow.0)) else { return };
    let Some(seen) = seen() else { return };
    let row = trace.sent((now, start), packet, &copy, &ledger.host_names[host.index()], &seen);
    let result = ledger.tables.follow(row, None, None);
    core.check(result);
}
