//! Ends of flows, each at its host, and the ledger's record of a flow until both have ended.
//!
//! An end knows what its host knows. The two ends of a flow stand side by side here, and neither reads the other.

use super::order::{Next, Order, Reordering};
use crate::core::route::Route;
use fanin_engine::Table;
use fanin_packet::{Envelope, Side};
use fanin_telemetry::{Moment, Name};
use fanin_traffic::FlowSpec;
use fanin_transport::{AbortReason, Endpoint, Parameters, SignalCounts, Stats};
use fanin_units::{prefetch, prefetch_lines, FlowId, HostId, Span, Time};
use std::sync::Arc;

/// Place of an end: that of its flow, with its side in the lowest bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndId(pub u32);

const NONE: u32 = u32::MAX;
/// Cache lines of an endpoint that are fetched first, besides the one that its host has: they point to the others
/// ([`Endpoint::apart`]).
const PREFETCHED: usize = 2;

impl EndId {
    /// The end on a side of the flow at a place.
    #[inline(always)]
    pub fn at(place: u32, side: Side) -> EndId {
        EndId(place << 1 | side as u32)
    }

    /// The two ends of the flow at a place, the initiator first.
    pub fn both(place: u32) -> [EndId; 2] {
        [Side::Initiator, Side::Responder].map(|side| EndId::at(place, side))
    }

    /// The side of its flow that the end is on.
    #[inline(always)]
    pub fn side(self) -> Side {
        if self.0 & 1 == 0 {
            Side::Initiator
        } else {
            Side::Responder
        }
    }

    /// The place of its flow.
    #[inline(always)]
    fn place(self) -> usize {
        self.0 as usize >> 1
    }

    /// The place of the end itself.
    #[inline(always)]
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// One end of a flow, at its host. The fields stand in the order of their cache lines.
#[repr(C, align(64))]
pub struct End {
    pub protocol: Endpoint,

    // One line: what each packet needs.
    /// Envelope common to all packets of the end, with frame, payload, header and ECN field still to be written.
    pub sends: Envelope,
    /// Parameters with which the endpoint was made.
    pub params: Arc<Parameters>,
    /// The earliest entry of this end among the timers; later ones are stale.
    pub armed: Time,
    /// Bytes from which on news is heard ([`End::listen`]).
    from: u64,
    /// Next expected packet of the other end, while all are in order.
    pub next: Next,
    /// True if the end is in its NIC's round.
    pub queued: bool,
    /// True if the endpoint works by telemetry, which its packets carry.
    pub telemetry: bool,
    /// -1 for news that is not heard at all: of delivered, and of acknowledged bytes.
    deaf: [i8; 2],

    // One line: what else each packet needs that it sends.
    /// Source route of the packets that the end sends, as far as it has one.
    pub route: Route,

    // Seldom.
    /// Progress that the application waits for: bytes that have arrived here, or bytes sent here that are acknowledged, of the
    /// whole flow or of a message and all before it. Before the application is asked to send: the request.
    pub mark: u64,
    /// Bytes of data.
    pub size: u64,
    /// Time at which the last byte was handed to the receiving application; `Time::MAX`: not yet.
    pub finish: Time,
    /// Time at which the sender learned that the last byte has arrived; `Time::MAX`: not yet.
    pub acked: Time,
    /// Time that a message to the other end's host takes on an idle network.
    pub latency: Span,
    /// Order in which packets of the other end have arrived, where it is not that of sending.
    pub order: Order,
    /// True if this end sends the flow's data; the other end sends the request, if there is one.
    pub sends_data: bool,
    /// The application of the data's sender has been asked to send.
    pub asked: bool,
    pub kind: EndKind,
    /// True if the end has nothing more to do, as far as it knows.
    pub over: bool,
    /// True once the other end's host has let this end know that the flow is over there.
    pub peer_over: bool,
    pub aborted: Option<AbortReason>,
}

/// Checks the layout: a packet needs two lines of the endpoint and one of the host's part; at a sender, two more of the endpoint.
const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(offset_of!(End, sends) % 64 == 0 && offset_of!(End, deaf) + 2 == offset_of!(End, sends) + 64);
    assert!(offset_of!(End, route) == offset_of!(End, sends) + 64);
    assert!(size_of::<End>() <= 704 && size_of::<Option<End>>() == size_of::<End>());
};

/// Everything from which an end is made.
pub struct NewEnd {
    pub protocol: Endpoint,
    pub sends: Envelope,
    pub route: Route,
    pub params: Arc<Parameters>,
    pub telemetry: bool,
    pub sends_data: bool,
    pub asked: bool,
    pub kind: EndKind,
    pub mark: u64,
    pub size: u64,
    pub latency: Span,
}

impl From<NewEnd> for End {
    fn from(new: NewEnd) -> End {
        End {
            protocol: new.protocol,
            sends: new.sends,
            route: new.route,
            params: new.params,
            armed: Time::MAX,
            from: 0,
            next: Next::default(),
            queued: false,
            telemetry: new.telemetry,
            deaf: [0, 0],
            sends_data: new.sends_data,
            mark: new.mark,
            size: new.size,
            finish: Time::MAX,
            acked: Time::MAX,
            latency: new.latency,
            order: Order::default(),
            asked: new.asked,
            kind: new.kind,
            over: false,
            peer_over: false,
            aborted: None,
        }
    }
}

/// Role of an end in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// Sends data, or receives it: both ends learn from packets when they are over.
    Transfer,
    /// Sends datagrams.
    Source,
    /// Counts datagrams.
    Sink,
}

/// The counts and times that an end leaves behind.
#[derive(Clone, Debug)]
pub struct EndReport {
    pub stats: Stats,
    /// Datagrams that the end has received.
    pub received: u64,
    /// Order in which datagrams and other packets with payload have arrived.
    pub reordering: Reordering,
    /// True if the end is over, as far as it knows.
    pub ended: bool,
    pub finish: Option<Time>,
    pub acked: Option<Time>,
    pub aborted: Option<AbortReason>,
}

/// An end that has been taken out.
pub struct Gone {
    pub flow: FlowId,
    pub signals: SignalCounts,
    pub report: EndReport,
}

/// An end that is gone, for the world that writes its flow's row.
pub struct EndGone {
    pub flow: FlowId,
    pub side: Side,
    pub at: Moment,
    pub report: EndReport,
}

/// A flow under way, as the ledger knows it.
pub struct OpenFlow {
    pub id: FlowId,
    pub spec: FlowSpec,
    pub data_side: Side,
    pub ideal: Span,
    pub base_rtt: Span,
    /// Reports of the flow's ends that are gone, by side.
    pub reports: [Option<EndReport>; 2],
    /// Event at which the first of the flow's ends was gone.
    pub first_gone: Moment,
    /// The other end is in another part of the network, and the flow's row is written there.
    pub written_elsewhere: bool,
}

impl End {
    /// The flow that the end belongs to.
    #[inline(always)]
    pub fn flow(&self) -> FlowId {
        self.sends.flow
    }

    /// The end's host.
    #[inline(always)]
    pub fn host(&self) -> HostId {
        self.sends.src
    }

    /// Sets the byte counts from which on progress may change anything here: the one that the application waits for, and any once
    /// that is reached, as the end may be over then.
    pub fn listen(&mut self) {
        (self.deaf, self.from) = match self.sends_data {
            true if self.acked == Time::MAX => (if self.asked { [-1, 0] } else { [0, -1] }, self.mark),
            false if self.finish == Time::MAX => ([0, -1], self.mark),
            _ => ([0, 0], 0),
        };
    }

    /// Bytes delivered, and bytes acknowledged, from which on news of more is heard.
    #[inline(always)]
    pub fn hears(&self) -> [u64; 2] {
        let from = |deaf: i8| self.from | i64::from(deaf) as u64;
        [from(self.deaf[0]), from(self.deaf[1])]
    }

    /// A packet of this number has arrived. Of a trimmed one only the headers have.
    #[inline(always)]
    pub fn note_order(&mut self, envelope: &Envelope, number: u32, now: Time) {
        if envelope.payload > 0 && !envelope.trimmed {
            self.order.arrived(&mut self.next, number, now);
        }
    }

    /// Counts and times that the end leaves behind.
    pub fn report(&self) -> EndReport {
        EndReport {
            stats: self.protocol.stats(),
            received: self.protocol.received(),
            reordering: self.order.counts(self.next),
            ended: self.over,
            finish: Some(self.finish).filter(|at| *at != Time::MAX),
            acked: Some(self.acked).filter(|at| *at != Time::MAX),
            aborted: self.aborted,
        }
    }
}

/// All ends that exist, and where each flow's are.
#[derive(Default)]
pub struct Ends {
    /// Ends, side by side, so that an end's place follows from its flow's.
    slab: Table<Option<End>>,
    flows: Vec<Option<Box<OpenFlow>>>,
    free: Vec<u32>,
    /// Place of flow `first + i`.
    of_flow: Vec<u32>,
    first: u32,
    ended_in_front: usize,
    /// Number of ends that exist, including sinks.
    active: usize,
    sinks: usize,
    /// Time at which the last end was gone.
    last_gone: Time,
}

impl Ends {
    /// Passes over the next flow: none of its ends is here.
    pub fn skip(&mut self) {
        self.of_flow.push(NONE);
        self.forget_ended();
    }

    /// Adds the ends of the next flow: both, or the one that is here.
    pub fn insert(&mut self, flow: OpenFlow, ends: [Option<End>; 2]) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slab.push(None);
            self.slab.push(None);
            self.flows.push(None);
            (self.flows.len() - 1) as u32
        });
        for (id, end) in EndId::both(place).into_iter().zip(ends) {
            self.active += usize::from(end.is_some());
            self.sinks += usize::from(end.as_ref().is_some_and(|end| end.kind == EndKind::Sink));
            *self.slot_mut(id) = end;
        }
        self.flows[place as usize] = Some(Box::new(flow));
        self.of_flow.push(place);
        place
    }

    /// The number that the next flow gets.
    pub fn next_flow(&self) -> FlowId {
        FlowId(self.first + self.of_flow.len() as u32)
    }

    /// An end of a flow, unless it has ended.
    #[inline(always)]
    pub fn of(&self, flow: FlowId, side: Side) -> Option<EndId> {
        self.place(flow, side).filter(|id| self.exists(*id))
    }

    /// Place where an end of a flow is or was, unless the flow has ended.
    #[inline(always)]
    pub fn place(&self, flow: FlowId, side: Side) -> Option<EndId> {
        let place = *self.of_flow.get(flow.0.wrapping_sub(self.first) as usize)?;
        (place != NONE).then(|| EndId::at(place, side))
    }

    /// An end, unless it is gone.
    #[inline(always)]
    pub fn get_mut(&mut self, id: EndId) -> Option<&mut End> {
        self.slot_mut(id).as_mut()
    }

    #[inline(always)]
    fn slot(&self, id: EndId) -> &Option<End> {
        &self.slab[id.index()]
    }

    #[inline(always)]
    fn slot_mut(&mut self, id: EndId) -> &mut Option<End> {
        &mut self.slab[id.index()]
    }

    /// Hints that an end is read and written soon, if it still exists; gives its id.
    #[inline(always)]
    pub fn prefetch(&self, flow: FlowId, side: Side) -> Option<EndId> {
        let id = self.place(flow, side)?;
        self.prefetch_end(id);
        Some(id)
    }

    /// [`Ends::prefetch`] of an end whose place is known.
    #[inline(always)]
    pub fn prefetch_end(&self, id: EndId) {
        let end: *const Option<End> = self.slot(id);
        prefetch_lines::<PREFETCHED, _>(end);
        prefetch_lines::<2, _>(end.cast::<u8>().wrapping_add(std::mem::offset_of!(End, sends)));
    }

    /// Hints that memory to which an endpoint points is used soon, if the end still exists: first what it points to, in the next
    /// step what that points to. Gives its host.
    #[inline(always)]
    pub fn prefetch_apart(&self, id: EndId, step: usize) -> Option<HostId> {
        let end = self.slot(id).as_ref()?;
        end.protocol.apart(step, prefetch);
        Some(end.host())
    }

    /// Takes out an end that is over. With the second end goes the flow, or with the only one here where its row is written elsewhere.
    pub fn remove(&mut self, id: EndId, at: Moment) -> Option<(Gone, Option<Box<OpenFlow>>)> {
        let slot = self.slot_mut(id);
        let end = slot.as_ref()?;
        let gone = Gone { flow: end.flow(), signals: end.protocol.signals(), report: end.report() };
        let sink = end.kind == EndKind::Sink;
        *slot = None;
        self.active -= 1;
        self.last_gone = Time::from_ps(at.time);
        self.sinks -= usize::from(sink);
        let flow = self.report(id, gone.report.clone(), at);
        Some((gone, flow))
    }

    /// An end that is in another part of the network is gone: gives the flow, where this was the second.
    pub fn gone_elsewhere(&mut self, end: EndGone) -> Option<Box<OpenFlow>> {
        let id = self.place(end.flow, end.side)?;
        self.report(id, end.report, end.at)
    }

    /// Keeps the report of an end that is gone. Gives the flow, if nothing more is to come of it here.
    fn report(&mut self, id: EndId, report: EndReport, at: Moment) -> Option<Box<OpenFlow>> {
        let place = id.place();
        let flow = self.flows[place].as_deref_mut()?;
        flow.reports[id.side() as usize] = Some(report);
        if flow.reports.iter().any(Option::is_none) && !flow.written_elsewhere {
            flow.first_gone = at;
            return None;
        }
        let flow = self.flows[place].take()?;
        self.free.push(place as u32);
        self.of_flow[(flow.id.0 - self.first) as usize] = NONE;
        self.forget_ended();
        Some(flow)
    }

    /// Frees the records of flows that have ended, once all flows before them have.
    fn forget_ended(&mut self) {
        while self.of_flow.get(self.ended_in_front) == Some(&NONE) {
            self.ended_in_front += 1;
        }
        if self.ended_in_front > 4096 && self.ended_in_front * 2 > self.of_flow.len() {
            self.of_flow.drain(..self.ended_in_front);
            self.first += self.ended_in_front as u32;
            self.ended_in_front = 0;
        }
    }

    /// Number of ends to which something may still happen; ends that only count datagrams are left out.
    pub fn active(&self) -> usize {
        self.active - self.sinks
    }

    /// Time at which the last end was gone; zero before.
    pub fn last_gone(&self) -> Time {
        self.last_gone
    }

    /// Ends that only count datagrams.
    pub fn sinks(&self) -> usize {
        self.sinks
    }

    /// The flow of a place.
    pub fn flow(&self, id: EndId) -> Option<&OpenFlow> {
        self.flows[id.place()].as_deref()
    }

    /// The ends that exist, in order of flows, initiators first.
    pub fn ids(&self) -> Vec<EndId> {
        let places = self.of_flow.iter().copied().filter(|place| *place != NONE);
        places.flat_map(EndId::both).filter(|id| self.exists(*id)).collect()
    }

    /// True if an end still exists.
    #[inline(always)]
    pub fn exists(&self, id: EndId) -> bool {
        self.slot(id).is_some()
    }

    /// Describes up to `n` waiting flows in words, in order, with what each waits for.
    pub fn describe_waiting(&self, n: usize, hosts: &[Name]) -> Vec<String> {
        let flows = self.of_flow.iter().filter(|place| **place != NONE).take(n);
        flows.filter_map(|place| self.describe(*place, hosts)).collect()
    }

    /// Flows of which an end exists.
    pub fn open(&self) -> usize {
        self.flows.iter().flatten().count()
    }

    fn describe(&self, place: u32, hosts: &[Name]) -> Option<String> {
        let flow = self.flow(EndId::at(place, Side::Initiator))?;
        let sender = self.slot(EndId::at(place, flow.data_side)).as_ref();
        let (wish, state) = match sender {
            Some(end) if flow.spec.first.is_some() => ("messages to be written or acknowledged", end.protocol.describe()),
            Some(end) if end.asked => ("data to be acknowledged", end.protocol.describe()),
            Some(end) => ("the request to arrive", end.protocol.describe()),
            None => ("its receiver to end", "the sender has ended".to_string()),
        };
        let spec = &flow.spec;
        let [src, dst] = [spec.src, spec.dst].map(|host| &hosts[host.index()]);
        Some(format!("flow {} ({src} to {dst}, {} B) waits for {wish}: {state}", flow.id, spec.size))
    }

    /// Bytes that one flow takes.
    pub const fn bytes_each() -> usize {
        2 * std::mem::size_of::<End>() + std::mem::size_of::<OpenFlow>()
    }
}

impl std::ops::Index<EndId> for Ends {
    type Output = End;
    #[inline(always)]
    fn index(&self, id: EndId) -> &End {
        debug_assert!(self.exists(id));
        // SAFETY: ids come from `of`, which gives only ends that exist, and are forgotten at `remove`: ready lists are cleared
        // of an end before it is removed. Debug builds check.
        unsafe { self.slot(id).as_ref().unwrap_unchecked() }
    }
}

impl std::ops::IndexMut<EndId> for Ends {
    #[inline(always)]
    fn index_mut(&mut self, id: EndId) -> &mut End {
        debug_assert!(self.exists(id));
        // SAFETY: as above.
        unsafe { self.slot_mut(id).as_mut().unwrap_unchecked() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_traffic::FlowKind;
    use fanin_transport::{TransportConfig, UdpEndpoint};

    /// Inserts a flow with these ends.
    fn insert(ends: &mut Ends, kinds: [Option<EndKind>; 2], written_elsewhere: bool) -> [EndId; 2] {
        let id = ends.next_flow();
        let spec = FlowSpec {
            src: HostId(0),
            dst: HostId(1),
            size: 700,
            request: 0,
            start: Time::ZERO,
            transport: 0,
            class: 0,
            entry: 0,
            index: 0,
            query: None,
            id: None,
            kind: FlowKind::Transfer,
            first: None,
            known: None,
        };
        let mut sides = [Side::Initiator, Side::Responder].into_iter();
        let made = kinds.map(|kind| {
            let side = sides.next().unwrap_or_default();
            let host = HostId(side as u32);
            Some(End::from(NewEnd {
                protocol: UdpEndpoint::sink().into(),
                sends: Envelope { flow: id, src: host, dst: HostId(1 - host.0), to: side.other(), ..Envelope::default() },
                route: Route::NONE,
                params: Arc::new(Parameters::from(TransportConfig::default())),
                telemetry: false,
                sends_data: side == Side::Initiator,
                asked: side == Side::Initiator,
                kind: kind?,
                mark: 700,
                size: 700,
                latency: Span::ZERO,
            }))
        });
        let flow = OpenFlow {
            id,
            spec,
            data_side: Side::Initiator,
            ideal: Span::ZERO,
            base_rtt: Span::ZERO,
            reports: [None, None],
            first_gone: Moment::default(),
            written_elsewhere,
        };
        EndId::both(ends.insert(flow, made))
    }

    fn at(time: u64) -> Moment {
        Moment { time, ..Moment::default() }
    }

    const BOTH: [Option<EndKind>; 2] = [Some(EndKind::Transfer); 2];

    #[test]
    fn ends_are_counted_found_and_their_places_used_again() {
        let mut ends = Ends::default();
        let first = insert(&mut ends, BOTH, false);
        let second = insert(&mut ends, [Some(EndKind::Source), Some(EndKind::Sink)], false);
        assert_eq!((ends.active(), ends.sinks(), ends.open(), ends.last_gone()), (3, 1, 2, Time::ZERO));
        assert_eq!(ends.ids(), [first, second].concat());
        for (flow, ids) in [(0, first), (1, second)] {
            let sides = [Side::Initiator, Side::Responder];
            assert_eq!(sides.map(|side| ends.of(FlowId(flow), side)), ids.map(Some));
            assert_eq!(ids.map(EndId::side), sides);
            assert_eq!(ids.map(|id| ends[id].flow()), [FlowId(flow); 2]);
            assert_eq!(ids.map(|id| ends[id].host()), [HostId(0), HostId(1)]);
        }
        assert_eq!((ends.of(FlowId(2), Side::Initiator), ends.next_flow()), (None, FlowId(2)));

        // The first end's flow stays for the second, which gets it with the times of both.
        let (gone, flow) = ends.remove(first[1], at(5)).expect("an end");
        assert!(flow.is_none() && gone.flow == FlowId(0) && !ends.exists(first[1]) && ends.exists(first[0]));
        assert_eq!((ends.of(FlowId(0), Side::Responder), ends.place(FlowId(0), Side::Responder)), (None, Some(first[1])));
        assert!(ends.remove(first[1], at(6)).is_none(), "it is gone");
        assert_eq!((ends.active(), ends.sinks(), ends.open(), ends.last_gone()), (2, 1, 2, Time::from_ps(5)));
        let (_, flow) = ends.remove(first[0], at(9)).expect("an end");
        let flow = flow.expect("the flow");
        assert_eq!((flow.id, flow.first_gone.time, ends.last_gone()), (FlowId(0), 5, Time::from_ps(9)));
        assert!(flow.reports.iter().all(Option::is_some));
        assert_eq!((ends.place(FlowId(0), Side::Initiator), ends.open(), ends.active()), (None, 1, 1));
        assert_eq!(ends.ids(), second);

        // Its place is used again, under the next number.
        ends.skip();
        assert_eq!((ends.next_flow(), ends.of(FlowId(2), Side::Initiator)), (FlowId(3), None));
        assert_eq!(insert(&mut ends, BOTH, false), first);
        assert_eq!((ends.of(FlowId(3), Side::Initiator), ends.slab.len()), (Some(first[0]), 4));
        ends.remove(second[1], at(10)).expect("the sink");
        assert_eq!((ends.active(), ends.sinks()), (3, 0));
        assert_eq!(ends.prefetch(FlowId(3), Side::Responder), Some(first[1]));
        assert_eq!((ends.prefetch_apart(first[1], 0), ends.prefetch_apart(second[1], 0)), (Some(HostId(1)), None));
    }

    /// A flow with one end here: its row is written with that end where the other part writes rows, else with the other's report.
    #[test]
    fn a_flow_with_an_end_elsewhere_waits_for_its_report() {
        let mut ends = Ends::default();
        let here = insert(&mut ends, [Some(EndKind::Transfer), None], false);
        let there = insert(&mut ends, [None, Some(EndKind::Transfer)], true);
        assert_eq!((ends.active(), ends.ids()), (2, vec![here[0], there[1]]));
        let (gone, flow) = ends.remove(there[1], at(3)).expect("an end");
        assert!(flow.is_some_and(|flow| flow.reports[0].is_none()), "nothing more is to come of it here");
        assert!(ends.remove(here[0], at(4)).expect("an end").1.is_none());
        let report = gone.report;
        assert!(ends
            .gone_elsewhere(EndGone { flow: FlowId(1), side: Side::Responder, at: at(7), report: report.clone() })
            .is_none());
        let flow = ends.gone_elsewhere(EndGone { flow: FlowId(0), side: Side::Responder, at: at(7), report }).expect("the flow");
        assert_eq!((flow.id, flow.first_gone.time, ends.open()), (FlowId(0), 4, 0));
    }

    /// Records of flows that have ended go once they are many and the most; what is still there keeps its number.
    #[test]
    fn records_of_ended_flows_are_forgotten_in_order() {
        let mut ends = Ends::default();
        let first = insert(&mut ends, BOTH, false);
        (0..4_096).for_each(|_| ends.skip());
        assert_eq!((ends.first, ends.ended_in_front, ends.of_flow.len()), (0, 0, 4_097), "the first is still there");
        let last = insert(&mut ends, BOTH, false);
        let end = |ends: &mut Ends, ids: [EndId; 2]| ids.map(|id| ends.remove(id, at(1)).expect("an end").1.is_some());
        assert_eq!(end(&mut ends, first), [false, true]);
        assert_eq!((ends.first, ends.ended_in_front, ends.of_flow.len()), (4_097, 0, 1));
        assert_eq!((ends.of(FlowId(4_097), Side::Responder), ends.next_flow()), (Some(last[1]), FlowId(4_098)));
        assert_eq!((ends.of(FlowId(0), Side::Initiator), ends.of(FlowId(4_096), Side::Initiator)), (None, None));

        // As long as they are 4,096 or no more than half of all, they stay.
        let mut ends = Ends::default();
        (0..4_096).for_each(|_| ends.skip());
        assert_eq!((ends.first, ends.ended_in_front), (0, 4_096));
        let mut ends = Ends::default();
        let ids: Vec<[EndId; 2]> = (0..4_097).map(|_| insert(&mut ends, BOTH, false)).collect();
        for _ in 0..4_097 {
            insert(&mut ends, BOTH, false);
        }
        for ids in ids {
            end(&mut ends, ids);
        }
        assert_eq!((ends.first, ends.ended_in_front, ends.of_flow.len()), (0, 4_097, 8_194));
        assert_eq!((ends.open(), ends.active()), (4_097, 2 * 4_097));
    }

    #[test]
    fn an_end_hears_what_its_application_waits_for() {
        const DEAF: u64 = u64::MAX;
        let mut ends = Ends::default();
        let [sender, receiver] = insert(&mut ends, BOTH, false);
        // Delivered, and acknowledged.
        let mut hears = |id: EndId, change: fn(&mut End)| {
            change(&mut ends[id]);
            ends[id].listen();
            ends[id].hears()
        };
        assert_eq!(hears(sender, |_| {}), [DEAF, 700]);
        assert_eq!(hears(sender, |end| end.asked = false), [700, DEAF], "a request");
        assert_eq!(hears(sender, |end| end.acked = Time::ZERO), [0, 0]);
        assert_eq!(hears(receiver, |end| end.mark = 300), [300, DEAF]);
        assert_eq!(hears(receiver, |end| end.finish = Time::ZERO), [0, 0]);
    }

    #[test]
    fn flows_that_wait_are_described_by_what_they_wait_for() {
        let mut ends = Ends::default();
        let hosts = ["a", "b"].map(Name::from);
        let ids: Vec<[EndId; 2]> = (0..4).map(|_| insert(&mut ends, BOTH, false)).collect();
        ends[ids[1][0]].asked = false;
        ends.remove(ids[2][0], at(1)).expect("an end");
        ends.flows[ids[3][0].place()].as_deref_mut().expect("a flow").spec.first = Some(9);
        let said = ends.describe_waiting(9, &hosts);
        assert_eq!(said.len(), 4);
        for (flow, (said, wish)) in
            said.iter().zip(["data to be ack", "the request to", "its receiver to", "messages to be"]).enumerate()
        {
            assert!(said.starts_with(&format!("flow {flow} (a to b, 700 B) waits for {wish}")), "{said}");
        }
        assert_eq!(ends.describe_waiting(2, &hosts).len(), 2);
    }

    /// Of a packet without payload, or a trimmed one, nobody takes the number.
    #[test]
    fn data_alone_has_its_place_in_the_order() {
        let mut ends = Ends::default();
        let [_, receiver] = insert(&mut ends, BOTH, false);
        let end = &mut ends[receiver];
        for (payload, trimmed, number) in [(1, false, 0), (0, false, 7), (9, true, 8), (1, false, 1)] {
            end.note_order(&Envelope { payload, trimmed, ..Envelope::default() }, number, Time::ZERO);
        }
        let report = end.report();
        assert_eq!((report.reordering.packets, report.reordering.reordered), (2, 0));
        assert_eq!((report.ended, report.finish, report.acked, report.received), (false, None, None, 0));
        (end.finish, end.acked, end.over) = (Time::from_ps(3), Time::from_ps(4), true);
        let report = end.report();
        assert_eq!((report.ended, report.finish, report.acked), (true, Some(Time::from_ps(3)), Some(Time::from_ps(4))));
    }
}
