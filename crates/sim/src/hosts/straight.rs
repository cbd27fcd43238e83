//! The straight way of a packet through its host: what it brings about at its endpoint, and what that sends at once, where hosts
//! have no queues of their own and nothing is put into frames or observed there.
//!
//! Whose endpoint it is, its parameters, its NIC and the time are found out once. Whatever is unusual is left to the general way
//! ([`Hosts`](super::Hosts)), which goes on from there.

use super::ends::{side, End, EndId};
use super::order::{Next, Order};
use super::{address, timer_key, Host, TIMEOUT};
use crate::core::route::Route;
use crate::core::Core;
use fanin_packet::{Envelope, Framing, PacketId};
use fanin_transport::{Act, Kinds, Transport};
use fanin_units::{FlowId, Time};

/// How far the straight way has led.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// Nowhere.
    Closed,
    /// The endpoint is to be asked what else it wants.
    Part,
    /// To the end.
    All,
}

/// What follows a packet that has come.
enum Then {
    Done(Way),
    /// The end may have data, and its NIC is idle: it has its turn at once, with the place of the packet.
    Turn,
}

/// An end without its endpoint, its host, and all that both share with the fabric.
pub struct Straight<'a> {
    core: &'a mut Core,
    host: &'a mut Host,
    framing: &'a Framing,
    id: EndId,
    sends: &'a Envelope,
    route: &'a Route,
    hears: [u64; 2],
    queued: &'a mut bool,
    armed: &'a mut Time,
    next: &'a mut Next,
    order: &'a mut Order,
}

/// A packet has come.
struct Delivery<'a>(Straight<'a>, PacketId);

/// It is the end's turn at its NIC, whose wire is free; what it sends takes this place.
struct Turn<'a>(Straight<'a>, PacketId);

/// Borrows the parts of an end apart from its endpoint.
macro_rules! straight {
    ($way:ident, $core:ident, $host:ident, $framing:ident, $end:ident, $id:ident) => {
        let $way = Straight {
            core: $core,
            host: $host,
            framing: $framing,
            id: $id,
            sends: &$end.sends,
            route: &$end.route,
            hears: $end.hears(),
            queued: &mut $end.queued,
            armed: &mut $end.armed,
            next: &mut $end.next,
            order: &mut $end.order,
        };
    };
}

/// Delivers a packet of a connection.
#[inline(always)]
pub fn deliver(core: &mut Core, host: &mut Host, framing: &Framing, (end, id): (&mut End, EndId), packet: PacketId) -> Way {
    if host.closed != 0 || end.telemetry {
        return Way::Closed;
    }
    straight!(way, core, host, framing, end, id);
    match end.protocol.act(&end.params, Delivery(way, packet)) {
        None => Way::Closed,
        Some(Then::Done(way)) => way,
        Some(Then::Turn) => match take_turn(core, host, framing, (end, id), packet) {
            Way::Closed => Way::Part,
            way => way,
        },
    }
}

/// One turn of an end that has been taken out of the round of its NIC.
#[inline(always)]
pub fn turn(core: &mut Core, host: &mut Host, framing: &Framing, (end, id): (&mut End, EndId)) -> Way {
    if end.telemetry {
        return Way::Closed;
    }
    let packet = core.pool.take();
    take_turn(core, host, framing, (end, id), packet)
}

/// Apart: what those who call it keep would not stay in registers.
#[inline(never)]
fn take_turn(core: &mut Core, host: &mut Host, framing: &Framing, (end, id): (&mut End, EndId), packet: PacketId) -> Way {
    straight!(way, core, host, framing, end, id);
    match end.protocol.act(&end.params, Turn(way, packet)) {
        Some(way) => way,
        None => {
            core.pool.free(packet);
            Way::Closed
        }
    }
}

impl Act for Delivery<'_> {
    type Out = Then;

    #[inline(always)]
    fn act<E: Transport>(self, end: &mut E, cfg: &E::Params) -> Then {
        let Delivery(mut way, packet) = self;
        let core = &mut *way.core;
        let envelope = &core.pool[packet];
        end.on_packet(cfg, core.now, envelope, core.pool.header(packet));
        if envelope.payload > 0 && !envelope.trimmed {
            way.order.arrived(way.next, core.pool.number(packet), core.now);
        }
        way.respond(end, cfg, packet)
    }
}

impl Act for Turn<'_> {
    type Out = Way;

    #[inline(always)]
    fn act<E: Transport>(self, end: &mut E, cfg: &E::Params) -> Way {
        let Turn(mut way, packet) = self;
        if end.burst(cfg, way.core.now) > 0 {
            way.core.pool.free(packet);
            return Way::Closed;
        }
        *way.queued = false;
        way.send(end, cfg, Kinds::DATA, packet);
        way.after_turn(end, cfg)
    }
}

impl Straight<'_> {
    /// What an endpoint asks for after a packet, whose place the next one takes that it sends.
    #[inline(always)]
    fn respond<E: Transport>(&mut self, end: &mut E, cfg: &E::Params, packet: PacketId) -> Then {
        let now = self.core.now;
        if end.due(cfg, now, Kinds::CONTROL) {
            if !self.nic_is_idle() {
                self.core.pool.free(packet);
                return Then::Done(Way::Part);
            }
            self.send(end, cfg, Kinds::CONTROL, packet);
            if end.due(cfg, now, Kinds::CONTROL) || !end.is_quiet_below(self.hears[0], self.hears[1]) {
                return Then::Done(Way::Part);
            }
            return Then::Done(self.after_turn(end, cfg));
        }
        if end.may_have_data(cfg, now) && end.is_quiet_below(self.hears[0], self.hears[1]) && self.nic_is_idle() {
            return Then::Turn;
        }
        self.core.pool.free(packet);
        if !end.is_quiet_below(self.hears[0], self.hears[1]) {
            return Then::Done(Way::Part);
        }
        if end.due(cfg, now, Kinds::DATA) {
            return Then::Done(self.queue_up(end, cfg));
        }
        self.arm(end);
        Then::Done(if self.host.ready.is_empty() || self.host.armed { Way::All } else { Way::Part })
    }

    /// The end has had its turn.
    #[inline(always)]
    fn after_turn<E: Transport>(&mut self, end: &mut E, cfg: &E::Params) -> Way {
        let now = self.core.now;
        if end.due(cfg, now, Kinds::CONTROL) {
            return Way::Part; // the FIN that follows the last data
        }
        if end.due(cfg, now, Kinds::DATA) {
            return self.queue_up(end, cfg);
        }
        self.arm(end);
        Way::All
    }

    /// It can send when the wire is free again.
    #[inline(always)]
    fn queue_up<E: Transport>(&mut self, end: &E, cfg: &E::Params) -> Way {
        if self.core.links[self.host.nic].free_at <= self.core.now.ps() {
            return Way::Part;
        }
        if !std::mem::replace(self.queued, true) {
            self.host.join(self.id);
        }
        if !end.is_patient(cfg, self.core.delay(self.host.nic)) {
            self.host.hurry(self.core);
        }
        self.arm(end);
        self.host.wait_for_wire(self.core);
        Way::All
    }

    #[inline(always)]
    fn nic_is_idle(&self) -> bool {
        self.host.ready.is_empty() && self.core.links[self.host.nic].free_at <= self.core.now.ps()
    }

    /// Sends the next packet of these kinds, if there is one, over a wire that is free; it takes the place of `packet`.
    #[inline(always)]
    fn send<E: Transport>(&mut self, end: &mut E, cfg: &E::Params, kinds: Kinds, packet: PacketId) {
        let core = &mut *self.core;
        let (envelope, header) = core.pool.make(packet, self.sends, self.route);
        if !end.poll(cfg, core.now, kinds, envelope, header) {
            return core.pool.free(packet);
        }
        address(self.framing, envelope, header);
        let frame = envelope.frame;
        if envelope.payload > 0 {
            core.pool.set_number(packet, end.sent().wrapping_sub(1));
        }
        core.ledger.totals.sent += 1;
        core.send_idle(self.host.nic, packet, frame);
    }

    /// Puts the end's timeout among the timers.
    #[inline(always)]
    fn arm<E: Transport>(&mut self, end: &E) {
        if end.times_out_before(*self.armed) {
            let timeout = end.next_timeout();
            *self.armed = timeout;
            set_timer(self.core, timeout, (self.sends.src.0, self.sends.flow, self.id));
        }
    }
}

/// Apart, and without the rest, which stays in registers then.
#[inline(never)]
fn set_timer(core: &mut Core, timeout: Time, (host, flow, id): (u32, FlowId, EndId)) {
    core.set_timer(timeout, timer_key(host, flow, side(id), TIMEOUT));
}
