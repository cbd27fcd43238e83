//! Hosts: endpoints, the NIC that they share, and delivery.
//!
//! A NIC pulls: data stays in its socket until the wire has room, so no packet is lost in a host, unless hosts have queues of their
//! own ([`fifo`]). What an endpoint must send at once (acknowledgments, handshakes) is a packet of its own in the same round.

pub mod ends;
pub mod fifo;
mod flows;
mod follow;
pub mod header;
mod ideal;
pub mod order;
pub mod pause;
pub mod receive;
pub mod round;
mod sequence;
pub mod storm;
mod straight;

use crate::core::message::message_of;
use crate::core::Core;
use crate::ledger::Input;
use ends::{side, EndId, EndKind, Ends};
use fanin_engine::Table;
use fanin_packet::{Envelope, Framing, Header, Kind, PacketId, Side};
use fanin_switch::{Mechanisms, Message, Patience};
use fanin_telemetry::Name;
use fanin_traffic::FlowSpec;
use fanin_transport::{Event, Kinds, Parameters, SignalCounts};
use fanin_units::{FlowId, Span, Time};
use fifo::Standing;
use header::Headers;
use order::Reordering;
use pause::{NicCounts, NicGate, GATE, WATCH};
use receive::Receivers;
use round::Round;
use std::collections::BTreeMap;
use std::sync::Arc;
use storm::{Storms, STORM};
use straight::Way;

/// Who is next at a NIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ready {
    /// A packet that is made already.
    Packet(PacketId),
    /// An end that may send data.
    Turn(EndId),
}

/// A host's NIC, one cache line.
#[repr(align(64))]
pub struct Host {
    /// Its output port.
    pub nic: u32,
    pub ready: Round,
    /// Whether its next turn is known: as an event, or because its link is [followed](crate::core::link::Link::is_followed).
    pub armed: bool,
    /// Its turns are always events.
    pub watched: bool,
    /// They are for now: an end is in the round that may set a timeout before anybody else would know of its turn.
    pub hasty: bool,
    /// Classes that the switch has paused, a bit for each.
    pub closed: u8,
    /// Where the switch may pause classes.
    pub gate: Option<Box<NicGate>>,
}

impl Host {
    /// What is ready goes on when the wire is free, which it is not.
    ///
    /// That is no event of its own where nothing depends on it before the last packet on the wire arrives, or something else happens at
    /// this host: then it is [caught up with](Hosts::catch_up).
    #[inline(always)]
    fn wait_for_wire(&mut self, core: &mut Core) {
        if !self.armed {
            self.armed = true;
            let link = &mut core.links[self.nic as usize];
            if self.watched || self.hasty {
                core.wheel.set(self.nic, Time::from_ps(link.free_at));
            } else {
                link.follow();
            }
        }
    }

    /// An end joins the round.
    #[inline(always)]
    fn join(&mut self, id: EndId) {
        if self.ready.is_empty() {
            self.hasty = false;
        }
        self.ready.push_back(Ready::Turn(id));
    }

    /// From now on turns are events, until nothing is ready.
    #[cold]
    #[inline(never)]
    fn hurry(&mut self, core: &mut Core) {
        self.hasty = true;
        let link = &mut core.links[self.nic as usize];
        if link.is_followed() {
            link.unfollow();
            core.wheel.set(self.nic, Time::from_ps(link.free_at));
        }
    }
}

/// What an end of a connection knows: so many bytes have arrived, or are acknowledged where they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress {
    pub conn: (u16, u64),
    pub at_sender: bool,
    pub total: u64,
}

/// A timer of an end: what it is for.
const TIMEOUT: u64 = 0;
/// The other end's host lets it know that the flow is over there.
const PEER_OVER: u64 = 1;
/// The same, and that it was aborted.
const PEER_ABORTED: u64 = 2;
/// Not an end's, but its host's own; of flow 0: packets wait between NIC and transport.
const RECEIVE: u64 = 3;

/// All hosts.
pub struct Hosts {
    pub hosts: Table<Host>,
    /// By link, the host that feeds it; of those that a switch feeds nothing that could be used.
    pub feeders: Table<u32>,
    pub ends: Ends,
    pub transports: Table<(Name, Arc<Parameters>)>,
    /// With room for stamps.
    pub framing: Framing,
    /// From the arrival of a packet until its transport sees it: a part of the delay of links to hosts.
    pub processing: Span,
    /// Time to live that hosts send with.
    pub ttl: u8,
    pub fifo_nic: bool,
    /// Packets may go the [straight way](straight).
    pub straight: bool,
    /// When NICs take a pause for a storm, where they have a watchdog.
    pub patience: Option<Patience>,
    /// NICs that ask for pauses without need.
    pub storms: Storms,
    pub pause_counts: NicCounts,
    /// What stands in hosts, where that is bounded.
    pub standing: Option<Box<Standing>>,
    pub seed: u64,
    /// The names of the traffic entries as numbers (FNV-1a 64).
    pub entry_keys: Vec<u64>,
    /// Flows that are complete, as an application has all that it asked for or a source of datagrams has sent all, and of which the
    /// applications have not been notified yet.
    pub completed: Vec<FlowSpec>,
    /// Messages that have arrived or are acknowledged, of which the applications have not been notified yet.
    pub progress: Vec<Progress>,
    /// Flows that are connections of jobs, by traffic entry and number.
    pub connections: BTreeMap<(u16, u64), FlowId>,
    /// Messages that came to a host at which their flow had ended, by group of counters.
    pub after_end: BTreeMap<&'static str, u64>,
    /// Signals of ends that have ended.
    pub signals: SignalCounts,
    /// Order of arrivals at ends that have ended.
    pub reordering: Reordering,
    /// What waits between NIC and transport, where packets may wait there.
    pub receivers: Option<Box<Receivers>>,
    /// What hosts put into frames for switches, where these want it.
    pub headers: Option<Box<Headers>>,
    /// Packets get headers when they go to a NIC, or are observed.
    pub at_nic: bool,
}

impl Hosts {
    /// Packets that are made and not yet sent.
    pub fn waiting_packets(&self) -> u64 {
        let ready = self.hosts.iter().flat_map(|host| host.ready.iter());
        ready.filter(|ready| matches!(ready, Ready::Packet(_))).count() as u64 + self.paused_packets().count() as u64
    }

    /// Hints that the first in the round of a NIC has its turn soon: which end it is, if it is one.
    #[inline(always)]
    pub fn prefetch_turn(&self, host: u32) -> Option<EndId> {
        let Some(Ready::Turn(id)) = self.hosts[host as usize].ready.front() else { return None };
        self.ends.prefetch_end(id);
        Some(id)
    }

    /// A packet has reached a host to which frames may carry messages.
    #[inline(never)]
    pub fn deliver_hooked(&mut self, core: &mut Core, host: u32, packet: PacketId) {
        self.catch_up(core, host);
        if let Some(message) = core.pool.detach(packet) {
            self.take_message(core, host, &message, false);
        }
        if core.pool.is_message(packet) {
            let message = core.pool.free_message(packet);
            return self.take_message(core, host, &message, true);
        }
        if self.receivers.is_some() {
            return self.hold(core, host, packet);
        }
        self.hand_telemetry(core, packet);
        if core.ledger.observed {
            return self.deliver_observed(core, host, packet);
        }
        self.deliver(core, host, packet);
    }

    /// The telemetry in a packet's frame goes to the endpoint before the packet does.
    #[inline(always)]
    pub(super) fn hand_telemetry(&mut self, core: &Core, packet: PacketId) {
        if core.pool[packet].extra.shim() > 0 {
            self.hand_stack(core, packet);
        }
    }

    #[inline(never)]
    fn hand_stack(&mut self, core: &Core, packet: PacketId) {
        let envelope = &core.pool[packet];
        if let (Some(id), Some(stack)) = (self.ends.of(envelope.flow, envelope.to), core.pool.telemetry(packet)) {
            self.ends[id].protocol.on_telemetry(&stack);
        }
    }

    /// The same where the flow may be followed.
    #[cold]
    #[inline(never)]
    fn deliver_observed(&mut self, core: &mut Core, host: u32, packet: PacketId) {
        let followed = self.begin_delivery(core, packet);
        observe_delivery(core, host, packet);
        self.deliver(core, host, packet);
        if let Some((flow, side)) = followed {
            self.settle_input(core, flow, side);
        }
    }

    /// A message for the endpoint of a flow.
    fn take_message(&mut self, core: &mut Core, host: u32, packet: &fanin_packet::Packet, alone: bool) {
        let Some(Message { envelope, control }) = message_of(packet) else { return };
        if let Some(capture) = core.ledger.tables.capture.as_deref_mut() {
            capture.message(core.now, host, (&envelope, &control), alone);
        }
        if let Some(pause) = Mechanisms::pause(&control, envelope.header) {
            return self.pause_nic(core, host, &pause);
        }
        let Some((group, signal)) = Mechanisms::signal(&control, envelope.header) else { return };
        let Some(id) = self.ends.of(envelope.flow, envelope.to) else {
            *self.after_end.entry(group).or_default() += 1;
            return;
        };
        let end = &mut self.ends[id];
        debug_assert_eq!(end.host(), host, "a message at another host");
        if core.ledger.observed {
            self.begin_signal(core, id, &signal);
        }
        let end = &mut self.ends[id];
        end.protocol.on_signal(&end.params, core.now, &signal);
        self.after_input(core, id);
        if core.ledger.observed {
            self.settle_input(core, envelope.flow, envelope.to);
        }
    }

    /// A packet has reached its host.
    #[inline(always)]
    pub fn deliver(&mut self, core: &mut Core, host: u32, packet: PacketId) {
        let envelope = &core.pool[packet];
        debug_assert_eq!(envelope.dst.0, host, "a packet at a host that it was not sent to");
        let Some(id) = self.ends.place(envelope.flow, envelope.to) else { return stray(core, packet) };
        if envelope.kind == Kind::Datagram {
            return self.deliver_datagram(core, id, packet);
        }
        self.deliver_reliable(core, host, id, packet);
    }

    /// A packet of a connection has reached its end: all that it brings about there, in one frame of the stack.
    #[inline(never)]
    fn deliver_reliable(&mut self, core: &mut Core, host: u32, id: EndId, packet: PacketId) {
        self.catch_up(core, host);
        let Some(end) = self.ends.get_mut(id) else { return stray(core, packet) };
        core.ledger.totals.delivered += 1;
        if !self.straight {
            return self.deliver_in_general(core, id, packet);
        }
        let host = &mut self.hosts[host as usize];
        match straight::deliver(core, host, &self.framing, (end, id), packet) {
            Way::All => {}
            Way::Part => self.after_input(core, id),
            Way::Closed => self.deliver_in_general(core, id, packet),
        }
    }

    #[inline(never)]
    fn deliver_in_general(&mut self, core: &mut Core, id: EndId, packet: PacketId) {
        let envelope = &core.pool[packet];
        let end = &mut self.ends[id];
        end.protocol.on_packet(&end.params, core.now, envelope, core.pool.header(packet));
        end.note_order(envelope, core.pool.number(packet), core.now);
        core.pool.free(packet);
        self.after_input(core, id);
    }

    /// A datagram has reached its sink, which counts it and asks for nothing.
    #[inline(never)]
    fn deliver_datagram(&mut self, core: &mut Core, id: EndId, packet: PacketId) {
        let Some(end) = self.ends.get_mut(id) else { return stray(core, packet) };
        core.ledger.totals.delivered += 1;
        let envelope = &core.pool[packet];
        debug_assert_eq!(end.kind, EndKind::Sink, "a datagram at its source");
        if end.protocol.count_datagram(envelope) {
            end.finish = core.now; // so far
        }
        end.note_order(envelope, core.pool.number(packet), core.now);
        core.pool.free(packet);
    }

    /// Does what an endpoint asks for after any input: packets that go at once, events, a turn at the NIC, a timeout.
    #[inline(never)]
    pub fn after_input(&mut self, core: &mut Core, id: EndId) {
        let host = self.ends[id].host();
        self.send_control(core, id, host);
        let end = &mut self.ends[id];
        let [delivered, acked] = end.hears();
        if !end.protocol.is_quiet_below(delivered, acked) && self.take_events(core, id) {
            return; // the end is gone
        }
        if !self.has_data(core, id) {
            if self.source_is_over(id) && self.nic_is_idle(core, host) {
                self.end_source(core, id);
            } else {
                self.arm(core, id, host);
            }
        } else if self.nic_is_idle(core, host) {
            // Its turn would come at once: no need to queue for it.
            let nic = self.hosts[host as usize].nic as usize;
            if self.fifo_nic {
                return self.turn_fifo_at_once(core, host, nic, id);
            }
            self.turn_in_general(core, host, nic, id);
        } else {
            self.queue_up(core, id, host);
        }
        self.run_nic(core, host);
    }

    #[inline(always)]
    fn nic_is_idle(&self, core: &Core, host: u32) -> bool {
        let host = &self.hosts[host as usize];
        host.ready.is_empty() && host.closed == 0 && core.links[host.nic as usize].free_at <= core.now.ps()
    }

    /// Makes the packets that an endpoint must send now, and sends or queues them.
    #[inline(always)]
    fn send_control(&mut self, core: &mut Core, id: EndId, host: u32) {
        if self.has_control(core, id) {
            self.send_all_control(core, id, host);
        }
    }

    #[inline(always)]
    fn has_control(&self, core: &Core, id: EndId) -> bool {
        let end = &self.ends[id];
        end.protocol.due(&end.params, core.now, Kinds::CONTROL)
    }

    /// Apart from those who call it for each packet: what it keeps in registers would drive out theirs.
    #[inline(never)]
    fn send_all_control(&mut self, core: &mut Core, id: EndId, host: u32) {
        while self.has_control(core, id) {
            let Some(packet) = self.next_packet(core, id, Kinds::CONTROL) else { unreachable!("a control packet that was due") };
            if self.nic_is_idle(core, host) {
                let nic = self.hosts[host as usize].nic as usize;
                self.transmit_at_once(core, host, nic, packet);
            } else {
                self.hosts[host as usize].ready.push_back(Ready::Packet(packet));
            }
        }
    }

    /// Puts an end that can send into its NIC's round, and its timeout among the timers.
    #[inline(always)]
    fn queue_up(&mut self, core: &mut Core, id: EndId, host: u32) {
        let (end, state) = (&mut self.ends[id], &mut self.hosts[host as usize]);
        if !std::mem::replace(&mut end.queued, true) {
            state.join(id);
        }
        if !end.protocol.is_patient(&end.params, core.delay(state.nic)) {
            state.hurry(core);
        }
        self.arm(core, id, host);
    }

    #[inline(always)]
    fn has_data(&self, core: &Core, id: EndId) -> bool {
        let end = &self.ends[id];
        end.protocol.due(&end.params, core.now, Kinds::DATA)
    }

    /// Puts an end's timeout among the timers.
    #[inline(always)]
    fn arm(&mut self, core: &mut Core, id: EndId, host: u32) {
        let end = &mut self.ends[id];
        let timeout = end.protocol.next_timeout();
        if timeout < end.armed {
            end.armed = timeout;
            core.set_timer(timeout, timer_key(host, end.flow(), side(id), TIMEOUT));
        }
    }

    /// Lets the NIC send what is ready, as far as the wire has room.
    #[inline(always)]
    fn run_nic(&mut self, core: &mut Core, host: u32) {
        let state = &mut self.hosts[host as usize];
        if state.ready.is_empty() {
            return;
        }
        if self.fifo_nic || state.closed != 0 || core.links[state.nic as usize].free_at <= core.now.ps() {
            return self.drive_nic(core, host);
        }
        state.wait_for_wire(core);
    }

    /// Before anything else happens at a host, its NIC has the turns that it would have had by now.
    #[inline(always)]
    pub fn catch_up(&mut self, core: &mut Core, host: u32) {
        let state = &self.hosts[host as usize];
        if state.armed {
            self.catch_up_turns(core, host);
        }
    }

    /// The same of a NIC that waits for its wire.
    #[inline(never)]
    pub fn catch_up_turns(&mut self, core: &mut Core, host: u32) {
        let nic = self.hosts[host as usize].nic as usize;
        let now = core.now;
        while self.hosts[host as usize].armed {
            let link = &core.links[nic];
            if link.free_at > now.ps() || !link.is_followed() {
                break;
            }
            core.now = Time::from_ps(link.free_at);
            match self.hosts[host as usize].ready.pop_front() {
                None => {}
                Some(Ready::Packet(packet)) => self.transmit_at_once(core, host, nic, packet),
                Some(Ready::Turn(id)) => self.turn(core, host, nic, id),
            }
            let state = &mut self.hosts[host as usize];
            if state.ready.is_empty() {
                state.armed = false;
                core.links[nic].unfollow();
            }
        }
        core.now = now;
        debug_assert!(core.timers.next() >= now, "a timeout before the turn that set it was noticed");
    }

    /// The same of all hosts. Whether any had a turn.
    pub fn catch_up_all(&mut self, core: &mut Core) -> bool {
        let sent = core.ledger.totals.sent;
        (0..self.hosts.len() as u32).for_each(|host| self.catch_up(core, host));
        core.ledger.totals.sent > sent
    }

    /// NICs have the turns that they have until `end`, where nothing else happens any more: the time of the last of them is the present.
    pub fn finish_turns(&mut self, core: &mut Core, end: Time) {
        loop {
            let nics = self.hosts.iter().map(|host| &core.links[host.nic as usize]);
            let due = nics.filter(|nic| nic.is_followed() && nic.free_at <= end.ps()).map(|nic| nic.free_at);
            let Some(last) = due.max() else { return };
            core.now = core.now.max(Time::from_ps(last));
            self.catch_up_all(core);
        }
    }

    /// The wire of a NIC is free.
    pub fn departure(&mut self, core: &mut Core, host: u32) {
        let state = &mut self.hosts[host as usize];
        state.armed = false;
        if !state.ready.is_empty() {
            self.drive_nic(core, host);
        }
    }

    #[inline(never)]
    fn drive_nic(&mut self, core: &mut Core, host: u32) {
        if self.hosts[host as usize].closed != 0 {
            self.put_paused_aside(core, host);
        }
        if self.fifo_nic {
            return self.drive_fifo(core, host);
        }
        let nic = self.hosts[host as usize].nic as usize;
        loop {
            if core.links[nic].free_at > core.now.ps() {
                let state = &mut self.hosts[host as usize];
                if !state.ready.is_empty() {
                    state.wait_for_wire(core);
                }
                return;
            }
            match self.hosts[host as usize].ready.pop_front() {
                None => return,
                Some(Ready::Packet(packet)) => self.transmit_at_once(core, host, nic, packet),
                Some(Ready::Turn(id)) => self.turn(core, host, nic, id),
            }
        }
    }

    /// One turn of an end at a wire that is free: a segment, or a burst of up to its TSO size.
    #[inline(always)]
    fn turn(&mut self, core: &mut Core, host: u32, nic: usize, id: EndId) {
        if !self.at_nic {
            let (end, state) = (&mut self.ends[id], &mut self.hosts[host as usize]);
            match straight::turn(core, state, &self.framing, (end, id)) {
                Way::All => return,
                Way::Part => return self.after_turn(core, host, id),
                Way::Closed => {}
            }
        }
        self.turn_in_general(core, host, nic, id);
    }

    #[inline(never)]
    fn turn_in_general(&mut self, core: &mut Core, host: u32, nic: usize, id: EndId) {
        let end = &self.ends[id];
        let limit = end.protocol.burst(&end.params, core.now);
        if limit > 0 {
            self.send_burst(core, host, nic, id, limit);
        } else if let Some(packet) = self.next_packet(core, id, Kinds::DATA) {
            self.transmit_at_once(core, host, nic, packet);
        }
        self.after_turn(core, host, id);
    }

    /// Packets back to back, up to so many bytes of payload.
    #[inline(never)]
    fn send_burst(&mut self, core: &mut Core, host: u32, nic: usize, id: EndId, limit: u64) {
        let mut burst = 0;
        while burst < limit {
            let Some(packet) = self.next_packet(core, id, Kinds::DATA) else { return };
            burst += u64::from(core.pool[packet].payload);
            self.transmit(core, host, nic, packet);
        }
    }

    /// The next packet of these kinds of an end, if it has one now.
    #[inline(always)]
    fn next_packet(&mut self, core: &mut Core, id: EndId, kinds: Kinds) -> Option<PacketId> {
        let packet = core.pool.take();
        let end = &mut self.ends[id];
        let (envelope, header) = core.pool.make(packet, &end.sends, &end.route);
        if !end.protocol.poll(&end.params, core.now, kinds, envelope, header) {
            core.pool.free(packet);
            return None;
        }
        address(&self.framing, envelope, header);
        if envelope.payload > 0 {
            core.pool.set_number(packet, end.protocol.sent().wrapping_sub(1));
        }
        if end.telemetry {
            self.add_telemetry(core, packet, id);
        }
        Some(packet)
    }

    #[inline(never)]
    fn after_turn(&mut self, core: &mut Core, host: u32, id: EndId) {
        self.send_control(core, id, host); // the FIN that follows the last data
        if self.source_is_over(id) {
            self.ends[id].queued = false;
            return self.end_source(core, id);
        }
        self.ends[id].queued = false;
        if self.has_data(core, id) {
            self.queue_up(core, id, host);
        } else {
            self.arm(core, id, host);
        }
    }

    /// Puts into a frame what its endpoint has for it.
    #[inline(never)]
    fn add_telemetry(&mut self, core: &mut Core, packet: PacketId, id: EndId) {
        if let Some(stack) = self.ends[id].protocol.telemetry() {
            core.pool.set_telemetry(packet, &stack);
        }
    }

    /// Puts a packet onto the host's link.
    #[inline(always)]
    fn transmit(&mut self, core: &mut Core, host: u32, nic: usize, packet: PacketId) {
        core.ledger.totals.sent += 1;
        if self.at_nic {
            self.at_nic(core, host, nic, packet);
        }
        core.catch_up(nic);
        let frame = core.pool[packet].frame;
        core.send(nic, packet, frame);
    }

    /// The same where the wire is free.
    #[inline(always)]
    fn transmit_at_once(&mut self, core: &mut Core, host: u32, nic: usize, packet: PacketId) {
        core.ledger.totals.sent += 1;
        if self.at_nic {
            self.at_nic(core, host, nic, packet);
        }
        let frame = core.pool[packet].frame;
        core.send_idle(nic, packet, frame);
    }

    /// The same where hosts put headers into frames, or packets are observed.
    #[cold]
    #[inline(never)]
    fn at_nic(&mut self, core: &mut Core, host: u32, nic: usize, packet: PacketId) {
        if self.headers.is_some() {
            self.put_header(core, packet);
        }
        if core.ledger.observed {
            self.observe_sent(core, host, nic, packet);
        }
    }

    #[inline(never)]
    fn put_header(&mut self, core: &mut Core, packet: PacketId) {
        let Some(headers) = self.headers.as_deref_mut() else { return };
        let envelope = &core.pool[packet];
        let id = self.ends.of(envelope.flow, envelope.to.other());
        let flow = id.and_then(|id| Some((self.ends.flow(id)?, self.ends[id].sends_data)));
        let size = flow.map_or(0, |(flow, data)| if data { flow.spec.size } else { flow.spec.request });
        let shim = headers.of(envelope, core.pool.header(packet), size);
        core.pool[packet].set_shim(Some(&shim));
        core.pool.keep_shim(packet, shim);
    }

    /// A timer of an end is due. Entries that the end has moved since are stale.
    pub fn timeout(&mut self, core: &mut Core, host: u32, at: Time, key: u64) {
        self.catch_up(core, host);
        if key & 3 == RECEIVE {
            return self.timeout_of_host(core, host, at, key);
        }
        let to = if key >> 2 & 1 == 0 { Side::Initiator } else { Side::Responder };
        let Some(id) = self.ends.of(FlowId((key >> 3) as u32), to) else { return };
        match key & 3 {
            PEER_OVER => return self.peer_is_over(core, id, false),
            PEER_ABORTED => return self.peer_is_over(core, id, true),
            _ => {}
        }
        let end = &mut self.ends[id];
        if end.armed != at {
            return;
        }
        end.armed = Time::MAX;
        // Re-arming later only writes a field: the entry may stand before the timeout that it was for.
        // Then nothing has happened, and the end is not asked for anything.
        if end.protocol.next_timeout() > core.now {
            return self.arm(core, id, host);
        }
        if core.ledger.observed {
            self.begin_input(core, id, Input::Timeout);
        }
        let end = &mut self.ends[id];
        end.protocol.on_timer(&end.params, core.now);
        let flow = end.flow();
        self.after_input(core, id);
        if core.ledger.observed {
            self.settle_input(core, flow, to);
        }
    }

    /// The same of a timer that is the host's own.
    #[inline(never)]
    fn timeout_of_host(&mut self, core: &mut Core, host: u32, at: Time, key: u64) {
        match key {
            RECEIVE => self.receive_held(core, host, at),
            GATE => self.update_gate(core, host),
            STORM => self.storm(core, host),
            WATCH => self.look_at_pauses(core, host),
            other => unreachable!("timer {other} of host {host}"),
        }
    }

    /// Handles what an endpoint reports. True when the end is gone.
    #[inline(never)]
    fn take_events(&mut self, core: &mut Core, id: EndId) -> bool {
        loop {
            match self.ends[id].protocol.poll_event() {
                None => {
                    self.ends[id].listen();
                    return false;
                }
                Some(Event::Delivered { total }) => self.delivered(core, id, total),
                Some(Event::Acked { total }) => self.acked(core, id, total),
                Some(Event::Aborted(reason)) => {
                    self.abort(core, id, reason);
                    return true;
                }
                Some(Event::PeerClosed) => self.close(core, id),
                Some(Event::Connected | Event::Closed) => {}
            }
            if self.end_if_over(core, id) {
                return true;
            }
        }
    }
}

/// The place of an end's timer in the order: by host, then flow, side, and what it is for.
fn timer_key(host: u32, flow: FlowId, side: Side, what: u64) -> (u32, u64) {
    (host, u64::from(flow.0) << 3 | (side as u64) << 2 | what)
}

/// Writes what the host's stack knows and the endpoint does not into an envelope that has what all packets of its end share.
#[inline(always)]
fn address(framing: &Framing, envelope: &mut Envelope, header: &Header) {
    let bytes = header.outline(&mut envelope.class);
    envelope.frame = framing.frame(bytes + envelope.payload);
    envelope.header = bytes as u8;
}

/// Records that a packet has reached its host.
#[inline(always)]
fn observe_delivery(core: &mut Core, host: u32, packet: PacketId) {
    if core.ledger.observed {
        let copy = core.pool.packet(packet);
        let shim = core.pool.shim_on_wire(packet);
        let result = core.ledger.record_delivery(core.now, host, (packet, &copy), shim);
        core.check(result);
    }
}

/// A packet at a host at which its flow has ended.
#[cold]
#[inline(never)]
fn stray(core: &mut Core, packet: PacketId) {
    let totals = &mut core.ledger.totals;
    totals.stray += 1;
    totals.stray_trimmed += u64::from(core.pool[packet].trimmed);
    totals.stray_signals += u64::from(core.pool.header(packet).carries_signal());
    core.pool.free(packet);
}
