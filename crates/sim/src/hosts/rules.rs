//! The rules of a host, written once for every transport and every discipline of NICs.
//!
//! An end answers an input in this order: control packets at once, then events, then data, if it has any: a transmission opportunity now
//! where the NIC is idle, a place in its round otherwise; at last its timeout. What concerns more than the end and its NIC is left to
//! [`Hosts`](super::Hosts).

use super::discipline::Discipline;
use super::ends::EndId;
use super::order::{Next, Order};
use super::protocol::Protocol;
use super::tx_queue::{drop_at_host, Queued};
use super::{address, timer_key, Host, Ready, TIMEOUT};
use crate::core::route::Route;
use crate::core::Core;
use fanin_packet::{Envelope, Framing, PacketId, Side};
use fanin_switch::DropReason;
use fanin_telemetry::DropRow;
use fanin_transport::{Kinds, Refused};
use fanin_units::{FlowId, HostId, Time};

/// Everything of an end but its endpoint, with its host and the state that both share with the fabric.
pub struct AtHost<'a, D> {
    pub core: &'a mut Core,
    pub host: &'a mut Host,
    pub framing: &'a Framing,
    pub nic: D,
    pub id: EndId,
    pub sends: &'a Envelope,
    pub route: &'a Route,
    /// Bytes delivered, and bytes acknowledged, from which on the application hears of more.
    pub hears: [u64; 2],
    pub queued: &'a mut bool,
    pub armed: &'a mut Time,
    pub telemetry: bool,
    pub next: &'a mut Next,
    pub order: &'a mut Order,
}

/// The step at the host that follows an end's answer to an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Then {
    Nothing,
    /// The end has its transmission opportunity at once.
    Transmit,
    /// The end has had its transmission opportunity.
    Transmitted(Used),
    /// The end's events are to be handled.
    Events,
    /// The end is a source of datagrams that has sent all.
    Over,
    /// The NIC can serve its round.
    Drive,
}

/// Result of a transmission opportunity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Used {
    /// The opportunity was used; the end is in the round again if it has more.
    All,
    /// The end is a source of datagrams that has sent all.
    Over,
    /// The end is TSQ-throttled: it may send more when some of its data has left the host.
    TsqThrottled,
}

/// A rule that is applied to an end.
pub trait Rule: Copy {
    /// The result of the rule.
    type Out;
    /// True where the rule is compiled for the common transport.
    const IS_HOT: bool;

    /// Applies the rule.
    fn apply<D: Discipline>(self, at: AtHost<'_, D>, end: &mut impl Protocol) -> Self::Out;
}

/// A packet has come to the end.
#[derive(Clone, Copy)]
pub struct Deliver(pub PacketId);

/// Rule for an end after any input that has no rule of its own.
#[derive(Clone, Copy)]
pub struct Respond;

/// The events of the end have been handled.
#[derive(Clone, Copy)]
pub struct GoOn;

/// The end must send control packets now.
#[derive(Clone, Copy)]
pub struct SendControl;

/// Rule for an end that has its transmission opportunity.
#[derive(Clone, Copy)]
pub struct Transmit;

/// The end's timeout is among the timers again.
#[derive(Clone, Copy)]
pub struct Arm;

impl Rule for Deliver {
    type Out = Then;
    const IS_HOT: bool = true;

    #[inline(always)]
    fn apply<D: Discipline>(self, mut at: AtHost<'_, D>, end: &mut impl Protocol) -> Then {
        let Deliver(packet) = self;
        let core = &mut *at.core;
        let envelope = &core.pool[packet];
        end.on_packet(core.now, envelope, core.pool.header(packet));
        if envelope.payload > 0 && !envelope.trimmed {
            at.order.arrived(at.next, core.pool.number(packet), core.now);
        }
        core.pool.free(packet);
        at.respond(end)
    }
}

impl Rule for Respond {
    type Out = Then;
    const IS_HOT: bool = false;

    /// Also lets the end transmit, if it can: sources of datagrams do nearly each time.
    fn apply<D: Discipline>(self, mut at: AtHost<'_, D>, end: &mut impl Protocol) -> Then {
        match at.respond(end) {
            Then::Transmit => Then::Transmitted(at.transmit(end)),
            then => then,
        }
    }
}

impl Rule for GoOn {
    type Out = Then;
    const IS_HOT: bool = false;

    fn apply<D: Discipline>(self, mut at: AtHost<'_, D>, end: &mut impl Protocol) -> Then {
        at.go_on(end)
    }
}

impl Rule for SendControl {
    type Out = ();
    const IS_HOT: bool = false;

    fn apply<D: Discipline>(self, mut at: AtHost<'_, D>, end: &mut impl Protocol) {
        at.send_control(end);
    }
}

impl Rule for Transmit {
    type Out = Used;
    const IS_HOT: bool = true;

    #[inline(always)]
    fn apply<D: Discipline>(self, mut at: AtHost<'_, D>, end: &mut impl Protocol) -> Used {
        at.transmit(end)
    }
}

impl Rule for Arm {
    type Out = ();
    const IS_HOT: bool = false;

    fn apply<D: Discipline>(self, mut at: AtHost<'_, D>, end: &mut impl Protocol) {
        at.arm(end);
    }
}

impl<D: Discipline> AtHost<'_, D> {
    /// Carries out what an endpoint asks for after any input.
    #[inline(always)]
    fn respond(&mut self, end: &mut impl Protocol) -> Then {
        self.send_control(end);
        if !end.is_quiet_below(self.hears[0], self.hears[1]) {
            return Then::Events;
        }
        self.go_on(end)
    }

    /// Sends data or queues the end for the NIC, and sets its timeout.
    #[inline(always)]
    fn go_on(&mut self, end: &mut impl Protocol) -> Then {
        let now = self.core.now;
        if self.is_idle() {
            if end.may_have_data(now) {
                return Then::Transmit; // no need to queue for it
            }
            if end.has_sent_all() {
                return Then::Over;
            }
            self.arm(end);
        } else if end.due(now, Kinds::DATA) {
            self.queue_up(end);
        } else {
            self.arm(end);
        }
        self.run_nic()
    }

    /// Serves the NIC's round, as far as the wire has room.
    #[inline(always)]
    fn run_nic(&mut self) -> Then {
        if self.host.ready.is_empty() {
            return Then::Nothing;
        }
        if D::QUEUES || self.host.takes_now(self.core) {
            return Then::Drive;
        }
        self.host.wait_for_wire(self.core);
        Then::Nothing
    }

    #[inline(always)]
    fn is_idle(&self) -> bool {
        self.host.is_idle(self.core)
    }

    /// Makes the packets that an endpoint must send now, and sends or queues them.
    #[inline(always)]
    fn send_control(&mut self, end: &mut impl Protocol) {
        while end.due(self.core.now, Kinds::CONTROL) {
            let Some(packet) = self.next_packet(end, Kinds::CONTROL) else { unreachable!("a control packet that was due") };
            if self.is_idle() {
                self.send_idle(end, packet);
            } else {
                self.host.ready.push_back(Ready::Packet(packet));
            }
        }
    }

    /// A transmission opportunity: one packet or burst of a NIC that pulls, all that the queue takes of one that is first in, first out.
    #[inline(always)]
    fn transmit(&mut self, end: &mut impl Protocol) -> Used {
        if D::QUEUES {
            return self.transmit_all(end);
        }
        *self.queued = false;
        self.send_burst(end);
        self.after_burst(end)
    }

    fn transmit_all(&mut self, end: &mut impl Protocol) -> Used {
        if self.is_tsq_throttled(end) {
            return Used::TsqThrottled;
        }
        *self.queued = false;
        loop {
            let now = self.core.now;
            if self.nic.is_full(now) && self.refuse(end) || !self.send_burst(end) {
                return self.after_burst(end);
            }
            if self.is_tsq_throttled(end) {
                *self.queued = true;
                self.arm(end);
                return Used::TsqThrottled;
            }
        }
    }

    /// The end's data has gone to the NIC.
    #[inline(always)]
    fn after_burst(&mut self, end: &mut impl Protocol) -> Used {
        self.send_control(end); // the FIN that follows the last data
        if end.has_sent_all() {
            return Used::Over;
        }
        if end.due(self.core.now, Kinds::DATA) {
            self.queue_up(end);
        } else {
            self.arm(end);
        }
        Used::All
    }

    /// Puts an end that can send into its NIC's round, and its timeout among the timers.
    #[inline(always)]
    fn queue_up(&mut self, end: &impl Protocol) {
        if !std::mem::replace(self.queued, true) {
            self.host.join(self.id);
        }
        if !end.is_patient(self.core.delay(self.host.nic)) {
            self.host.hurry(self.core);
        }
        self.arm(end);
    }

    /// Puts the end's timeout among the timers.
    #[inline(always)]
    fn arm(&mut self, end: &impl Protocol) {
        if end.times_out_before(*self.armed) {
            let timeout = end.next_timeout();
            *self.armed = timeout;
            set_timer(self.core, timeout, (self.sends.src, self.sends.flow, self.id));
        }
    }

    /// Sends data back to back, up to the endpoint's burst size; false when there is none to send.
    #[inline(always)]
    fn send_burst(&mut self, end: &mut impl Protocol) -> bool {
        let limit = end.burst(self.core.now);
        if D::QUEUES || limit > 0 {
            return self.send_burst_of(end, limit);
        }
        let Some(packet) = self.next_packet(end, Kinds::DATA) else { return false };
        self.send_idle(end, packet);
        true
    }

    #[inline(never)]
    fn send_burst_of(&mut self, end: &mut impl Protocol, limit: u64) -> bool {
        let nic = self.host.nic;
        let (mut payload, mut bytes) = (0, 0);
        let starts = self.core.links[nic].free_at.max(self.core.now.ps());
        let full = self.nic.is_full(self.core.now); // datagrams
                                                    // A NIC that may be paused has its turn again after each frame: the rest of the burst waits, before all others.
        let by_frame = !D::QUEUES && self.host.gate.is_some();
        let mut rest = Vec::new();
        while let Some(packet) = self.next_packet(end, Kinds::DATA) {
            payload += u64::from(self.core.pool[packet].payload);
            if full {
                drop_at_host(self.core, nic, packet);
            } else if by_frame && payload > u64::from(self.core.pool[packet].payload) {
                rest.push(packet);
            } else {
                bytes += self.send(end, packet);
            }
            if payload >= limit {
                break;
            }
        }
        rest.into_iter().rev().for_each(|packet| self.host.ready.push_front(Ready::Packet(packet)));
        if bytes > 0 {
            let leaves = self.core.links[nic].free_at;
            self.nic.join(Queued { starts, leaves, end: self.key(), bytes });
        }
        payload > 0
    }

    fn key(&self) -> (FlowId, Side) {
        (self.sends.flow, self.id.side())
    }

    /// True if the end is TSQ-throttled: so much of its data stands in its host that it must send no more (TCP small queues).
    fn is_tsq_throttled(&mut self, end: &impl Protocol) -> bool {
        let now = self.core.now;
        let bytes = self.nic.bytes_of(now, self.key());
        bytes > 0 && u64::from(bytes) > end.output_limit(now) && end.due(now, Kinds::DATA)
    }

    /// Makes the next packet of these kinds, if the end has one now.
    #[inline(always)]
    fn next_packet<P: Protocol>(&mut self, end: &mut P, kinds: Kinds) -> Option<PacketId> {
        let core = &mut *self.core;
        let packet = core.pool.take();
        let (envelope, header) = core.pool.make(packet, self.sends, self.route);
        if !end.poll(core.now, kinds, envelope, header) {
            core.pool.free(packet);
            return None;
        }
        address(self.framing, envelope, header);
        if envelope.payload > 0 {
            core.pool.set_number(packet, end.sent().wrapping_sub(1));
        }
        if P::HAS_TELEMETRY && self.telemetry {
            add_telemetry(core, end, packet);
        }
        Some(packet)
    }

    /// Puts a packet onto the host's link, which is free.
    #[inline(always)]
    fn send_idle(&mut self, end: &impl Protocol, packet: PacketId) {
        let nic = self.host.nic;
        self.core.ledger.totals.sent += 1;
        self.nic.on_transmit(self.core, self.sends.src, nic, packet, end);
        let frame = self.core.pool[packet].frame;
        self.core.send_idle(nic, packet, frame);
    }

    /// Puts a packet onto the host's link, behind the packets that wait there; gives the bytes of its frame.
    #[inline(always)]
    fn send(&mut self, end: &impl Protocol, packet: PacketId) -> u32 {
        let nic = self.host.nic;
        self.core.ledger.totals.sent += 1;
        self.nic.on_transmit(self.core, self.sends.src, nic, packet, end);
        self.core.catch_up(nic);
        let frame = self.core.pool[packet].frame;
        self.core.send(nic, packet, frame);
        u32::from(frame)
    }

    /// Refuses the data of an end at a full queue; the end keeps it. False where it has none, or does not notice.
    #[inline(never)]
    fn refuse(&mut self, end: &mut impl Protocol) -> bool {
        let core = &mut *self.core;
        let nic = self.host.nic;
        let Some(Refused { number, header, payload }) = end.on_refusal(core.now) else { return false };
        core.catch_up(nic);
        let row = DropRow {
            time_ps: core.now.ps(),
            port: core.ports[nic].name.clone(),
            flow: self.sends.flow.0,
            frame_bytes: self.framing.frame(header + payload),
            payload_bytes: payload,
            seq: number,
            reason: DropReason::TXQUEUE_FULL.name().into(),
            queue_bytes: core.queue(nic).0,
        };
        core.ports[nic].drops += 1;
        core.ledger.totals.sent += 1;
        core.ledger.totals.dropped += 1;
        let result = core.ledger.tables.drop(row, DropReason::TXQUEUE_FULL);
        core.check(result);
        true
    }
}

/// Puts the endpoint's telemetry into the frame of a packet that it has made. Not a method: the rest stays in registers.
#[inline(never)]
fn add_telemetry(core: &mut Core, end: &impl Protocol, packet: PacketId) {
    if let Some(stack) = end.telemetry(core.pool.header(packet)) {
        core.pool.set_telemetry(packet, &stack);
    }
}

/// Sets a timer, in a function of its own so that the rest stays in registers.
#[inline(never)]
fn set_timer(core: &mut Core, timeout: Time, (host, flow, id): (HostId, FlowId, EndId)) {
    core.set_timer(timeout, timer_key(host, flow, id.side(), TIMEOUT));
}
