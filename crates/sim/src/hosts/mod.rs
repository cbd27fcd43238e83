//! Hosts: endpoints, the NIC that they share, and delivery.
//!
//! A NIC pulls: data stays in its socket until the wire has room, so no packet is lost in a host, unless hosts have queues of their
//! own ([`tx_queue`]). What an endpoint must send at once (acknowledgments, handshakes) is a packet of its own in the same round.

mod discipline;
pub mod ends;
mod fast_path;
mod flows;
mod follow;
pub mod header;
mod ideal;
mod nic;
pub mod order;
pub mod pause;
mod protocol;
pub mod receive;
pub mod round;
mod rules;
mod sequence;
pub mod storm;
pub mod tx_queue;

use crate::core::message::message_of;
use crate::core::{Core, TimerKey};
use crate::ledger::Input;
use ends::{EndGone, EndId, EndKind, Ends};
use fanin_engine::Table;
use fanin_packet::{Envelope, Framing, Header, Kind, PacketId, Side};
use fanin_scenario::Notice;
use fanin_switch::{Mechanisms, Message, WatchdogTimes};
use fanin_telemetry::Name;
use fanin_traffic::FlowSpec;
use fanin_transport::{Event, Parameters, SignalCounts};
use fanin_units::{FlowId, HostId, LinkId, NodeId, Span, Time};
use header::Headers;
pub use nic::{Host, Ready};
use order::Reordering;
use pause::{NicCounts, GATE, LINK, WATCH};
use receive::Receivers;
use rules::{Arm, Deliver, GoOn, Respond, Then};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use storm::{Storms, STORM};
use tx_queue::TxQueue;

/// Progress of a connection at one of its ends: bytes that have arrived, or at their sender bytes that are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress {
    pub conn: (u16, u64),
    pub at_sender: bool,
    pub total: u64,
}

/// The timer of an end for its own timeout.
const TIMEOUT: u64 = 0;
/// Timer of an end by which the other end's host lets it know that the flow is over there.
const PEER_OVER: u64 = 1;
/// Timer of an end by which the other end's host lets it know that the flow was aborted.
const PEER_ABORTED: u64 = 2;
/// The timer of a host at which packets wait between NIC and transport; flow 0 has no such timer.
const RECEIVE: u64 = 3;

/// The feeder of a link that a switch feeds.
pub const NO_HOST: HostId = HostId(u32::MAX);

/// All hosts, with the state that they share.
pub struct Hosts {
    pub hosts: Table<Host, HostId>,
    /// Host that feeds each link; [`NO_HOST`] where a switch feeds it.
    pub feeders: Table<HostId, LinkId>,
    pub ends: Ends,
    pub transports: Table<(Name, Arc<Parameters>)>,
    /// Bytes around a packet in its frame, with room for stamps.
    pub framing: Framing,
    /// Time from the arrival of a packet until its transport sees it: a part of the delay of links to hosts.
    pub processing: Span,
    /// Time to live that hosts send with.
    pub ttl: u8,
    /// True if NICs pull, and nothing is put into frames or observed there: packets may go the [fast path](fast_path).
    pub pulls_untapped: bool,
    /// Times after which a NIC's watchdog takes a pause for a storm, and a storm for over; `None`: no watchdogs.
    pub watchdog_times: Option<WatchdogTimes>,
    /// NICs that ask for pauses without need.
    pub storms: Storms,
    pub pause_counts: NicCounts,
    /// Changes of its own link that each host will notice, in order.
    pub notices: BTreeMap<HostId, VecDeque<Notice>>,
    /// Queues in front of wires, by host, where NICs are first in, first out.
    pub tx_queues: Option<Table<TxQueue, HostId>>,
    pub seed: u64,
    /// The names of the traffic entries as numbers (FNV-1a 64).
    pub entry_keys: Vec<u64>,
    /// Flows that are complete, and of which the applications have not been notified yet: an application has all that it asked
    /// for, or a source of datagrams has sent all.
    pub completed: Vec<FlowSpec>,
    /// Messages that have arrived or are acknowledged, of which the applications have not been notified yet.
    pub progress: Vec<Progress>,
    /// Flows that are connections of jobs, by traffic entry and number.
    pub connections: BTreeMap<(u16, u64), FlowId>,
    /// Messages that came to a host at which their flow had ended, by group of counters.
    pub after_end: BTreeMap<&'static str, u64>,
    /// Counts of signals at ends that are gone.
    pub signals: SignalCounts,
    /// Order of arrivals at ends that have ended.
    pub reordering: Reordering,
    /// Ends that are gone of flows whose rows are written in other parts of the network, and the hosts that opened these.
    pub gone: Vec<(HostId, EndGone)>,
    /// Packets between NIC and transport, where any may wait there.
    pub receivers: Option<Box<Receivers>>,
    /// Headers that hosts put into frames for switches, where these want them.
    pub headers: Option<Box<Headers>>,
}

impl Hosts {
    /// Adds the counts of the hosts of another part of the network.
    pub fn absorb(&mut self, other: &mut Hosts) {
        self.signals.add(&other.signals);
        self.reordering.add(&other.reordering);
        other.after_end.iter().for_each(|(group, n)| *self.after_end.entry(group).or_default() += n);
        self.pause_counts.storms += other.pause_counts.storms;
        self.pause_counts.storms_over += other.pause_counts.storms_over;
        self.pause_counts.frames += other.pause_counts.frames;
        if let (Some(ours), Some(theirs)) = (self.receivers.as_deref_mut(), other.receivers.as_deref()) {
            ours.absorb(theirs);
        }
    }

    /// Packets that are made and not yet sent.
    pub fn waiting_packets(&self) -> u64 {
        let ready = self.hosts.iter().flat_map(|host| host.ready.iter());
        ready.filter(|ready| matches!(ready, Ready::Packet(_))).count() as u64 + self.paused_packets().count() as u64
    }

    /// Hints that the first end in a NIC's round transmits soon; gives that end, if the first is one.
    #[inline(always)]
    pub fn prefetch_next(&self, host: HostId) -> Option<EndId> {
        let Some(Ready::End(id)) = self.hosts[host].ready.front() else { return None };
        self.ends.prefetch_end(id);
        Some(id)
    }

    /// A packet has reached a host to which frames may carry messages.
    #[inline(never)]
    pub fn deliver_hooked(&mut self, core: &mut Core, host: HostId, packet: PacketId) {
        self.catch_up(core, host);
        if core.pool.has_message(packet) && self.take_messages(core, host, packet) {
            return;
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

    /// Takes the messages of a frame, few of which have any. True where nothing is left of it.
    #[inline(never)]
    fn take_messages(&mut self, core: &mut Core, host: HostId, packet: PacketId) -> bool {
        if let Some(message) = core.pool.detach(packet) {
            self.take_message(core, host, &message, false);
        }
        let alone = core.pool.is_message(packet);
        if alone {
            let message = core.pool.free_message(packet);
            self.take_message(core, host, &message, true);
        }
        alone
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

    /// [`Hosts::deliver`] where the flow may be followed.
    #[cold]
    #[inline(never)]
    fn deliver_observed(&mut self, core: &mut Core, host: HostId, packet: PacketId) {
        let followed = self.begin_delivery(core, packet);
        observe_delivery(core, host, packet);
        self.deliver(core, host, packet);
        if let Some((flow, side)) = followed {
            self.settle_input(core, flow, side);
        }
    }

    /// A message for the endpoint of a flow.
    fn take_message(&mut self, core: &mut Core, host: HostId, packet: &fanin_packet::Packet, alone: bool) {
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

    /// Delivers a packet that has reached its host.
    #[inline(always)]
    pub fn deliver(&mut self, core: &mut Core, host: HostId, packet: PacketId) {
        let envelope = &core.pool[packet];
        debug_assert_eq!(envelope.dst, host, "a packet at a host that it was not sent to");
        let Some(id) = self.ends.place(envelope.flow, envelope.to) else { return stray(core, packet) };
        if envelope.kind == Kind::Datagram {
            return self.deliver_datagram(core, id, packet);
        }
        self.deliver_reliable(core, host, id, packet);
    }

    /// Delivers a packet of a connection to its end, with all consequences there, in one frame of the stack.
    #[inline(never)]
    fn deliver_reliable(&mut self, core: &mut Core, host: HostId, id: EndId, packet: PacketId) {
        self.catch_up(core, host);
        if !self.ends.exists(id) {
            return stray(core, packet);
        }
        core.ledger.totals.delivered += 1;
        let then = self.apply(core, id, Deliver(packet));
        self.carry_out(core, host, id, then);
    }

    /// Delivers a datagram to its sink, which counts it.
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

    /// Carries out what an endpoint asks for after any input: packets that go at once, events, a transmission opportunity, a
    /// timeout.
    #[inline(never)]
    pub fn after_input(&mut self, core: &mut Core, id: EndId) {
        let host = self.ends[id].host();
        let then = self.apply_in_general(core, id, Respond);
        self.carry_out(core, host, id, then);
    }

    /// Carries out the step that an end's answer asks for.
    #[inline(always)]
    fn carry_out(&mut self, core: &mut Core, host: HostId, id: EndId, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Transmit => self.transmit_at_once(core, host, id),
            Then::Transmitted(used) => self.after_transmission(core, host, id, used),
            Then::Events => self.handle_events(core, host, id),
            Then::Over => {
                self.end_source(core, id);
                self.run_nic(core, host);
            }
            Then::Drive => self.drive_nic(core, host),
        }
    }

    /// Handles an end's events, then its other wishes.
    #[inline(never)]
    fn handle_events(&mut self, core: &mut Core, host: HostId, id: EndId) {
        if self.take_events(core, id) {
            return; // the end is gone
        }
        match self.apply_in_general(core, id, GoOn) {
            Then::Events => unreachable!("events of an end that has none"),
            then => self.carry_out_all(core, host, id, then),
        }
    }

    /// [`Hosts::carry_out`], not inlined, as it is called from within itself.
    #[inline(never)]
    fn carry_out_all(&mut self, core: &mut Core, host: HostId, id: EndId, then: Then) {
        self.carry_out(core, host, id, then);
    }

    /// Handles a timer of an end that is due. Entries that the end has moved since are stale.
    pub fn timeout(&mut self, core: &mut Core, host: HostId, at: Time, key: u64) {
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
            return self.apply_in_general(core, id, Arm);
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

    /// A timer that is the host's own is due.
    #[inline(never)]
    fn timeout_of_host(&mut self, core: &mut Core, host: HostId, at: Time, key: u64) {
        match key {
            RECEIVE => self.receive_held(core, host, at),
            GATE => self.update_gate(core, host),
            STORM => self.storm(core, host),
            WATCH => self.look_at_pauses(core, host),
            LINK => self.notice_link(core, host),
            other => unreachable!("timer {other} of host {host}"),
        }
    }

    /// Handles the events that an endpoint reports. True when the end is gone.
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

/// Place of an end's timer in the order: by host, then flow, side and purpose.
fn timer_key(host: HostId, flow: FlowId, side: Side, what: u64) -> TimerKey {
    (NodeId(host.0), u64::from(flow.0) << 3 | (side as u64) << 2 | what)
}

/// Completes an envelope, which has the fields that all packets of an end share, by those that the host's stack knows and the
/// endpoint does not.
#[inline(always)]
fn address(framing: &Framing, envelope: &mut Envelope, header: &Header) {
    let bytes = header.outline(&mut envelope.class);
    envelope.frame = framing.frame(bytes + envelope.payload);
    envelope.header = bytes as u8;
}

/// Records that a packet has reached its host.
#[inline(always)]
fn observe_delivery(core: &mut Core, host: HostId, packet: PacketId) {
    if core.ledger.observed {
        let copy = core.pool.packet(packet);
        let shim = core.pool.shim_on_wire(packet);
        let result = core.ledger.record_delivery(core.now, host, (packet, &copy), shim);
        core.check(result);
    }
}

/// Counts and frees a packet that has reached a host at which its flow has ended.
#[cold]
#[inline(never)]
fn stray(core: &mut Core, packet: PacketId) {
    let totals = &mut core.ledger.totals;
    totals.stray += 1;
    totals.stray_trimmed += u64::from(core.pool[packet].trimmed);
    totals.stray_signals += u64::from(core.pool.header(packet).carries_signal());
    core.pool.free(packet);
}
