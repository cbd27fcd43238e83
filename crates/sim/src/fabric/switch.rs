//! What a switch does with a packet: route → admit → mark → queue. Only here are verdicts carried out and counted.

use super::express::ExpressBy;
use super::fifo::{Any, ByPolicy, Classes, Dequeues, Fifo, Plain, Shared};
use super::link::{flag, prefetch, FarEnd};
use super::port::{at_dequeue, Found, Owner};
use super::route::Route;
use super::table::{Fib, NextHop};
use crate::core::Core;
use crate::ledger::Fate;
use fanin_engine::Table;
use fanin_packet::{Ecn, Envelope, Kind, Packet, PacketId, Stack};
use fanin_switch::{DropReason, Effects, Hooks, Links, Marker, MechanismState, PathChooser, PortNo, PortView};
use fanin_telemetry::Name;
use fanin_units::{HostId, Stream};
use std::collections::VecDeque;

/// A switch's own state.
pub struct SwitchNode {
    pub name: Name,
    /// Seed of its ECMP hash.
    pub seed: u32,
    pub paths: PathChooser,
    pub rng: Stream,
    pub mechanisms: Vec<MechanismState>,
    /// Those of all its mechanisms.
    pub hooks: Hooks,
    /// Which of them has express queues.
    pub express: ExpressBy,
    /// Who of them wants to know of packets before they are offered to ports.
    pub offered: Offered,
    /// Its outgoing links, by port.
    pub ports: Vec<u32>,
    /// By port, frame bytes here that came in by it; empty where no mechanism asks for them ([`Hooks::INPUTS`]).
    pub inputs: Vec<u64>,
    /// Messages that are about to be offered to ports, each with its link.
    pub outbox: VecDeque<(u32, PacketId)>,
    /// Packets dropped at the heads of queues, of which mechanisms that send messages have not been told yet.
    pub dropped: VecDeque<(PacketId, Packet, DropReason)>,
}

/// All switches and their forwarding tables.
pub struct Fabric {
    pub fib: Fib,
    pub switches: Table<SwitchNode>,
    /// Hosts, which come before switches in the order of timers.
    pub hosts: u32,
    /// The largest frame that a mechanism wants to know of before it is offered to a port.
    pub offered_up_to: u16,
    /// Where mechanisms write what shall happen; empty between events.
    pub effects: Effects,
    /// The packet that is being offered was detoured here: a port that refuses it drops it.
    pub detouring: bool,
    /// A port has its turn: other ports may have theirs at this very instant.
    pub departing: bool,
    /// By link, the ingress port of the switch at its far end; `u16::MAX` where a host is there.
    pub ingress: Vec<u16>,
    /// By packet, the port of its switch that it came in by and its frame bytes, while it counts there; empty where nobody asks.
    pub entered: Vec<(u16, u16)>,
    /// By link, the one in the other direction.
    pub reverse: Vec<u32>,
    /// The framing without stamps, for messages alone in a frame.
    pub framing: fanin_packet::Framing,
}

/// Who at a switch wants to know of packets before they are offered to ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offered {
    /// Mechanisms, but of packets that find their port idle ([`Hooks::QUEUE`]).
    Queued,
    /// Mechanisms.
    All,
    /// Some of them only because of express queues.
    ForExpress,
}

/// Equal-cost links as a path choice sees them.
struct EqualCost<'a> {
    links: &'a [u32],
    core: &'a Core,
}

impl Links for EqualCost<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.links.len()
    }

    fn number(&self, i: usize) -> u32 {
        self.links[i]
    }

    fn queue(&self, i: usize) -> PortView {
        self.core.view_ahead(self.links[i] as usize)
    }
}

impl Offered {
    /// At a switch with these hooks.
    pub fn of(hooks: Hooks, express: &ExpressBy) -> Offered {
        if express.alone.is_some() {
            Offered::ForExpress
        } else if hooks.any(Hooks::OFFER.with(Hooks::RANKS)) {
            Offered::All
        } else {
            Offered::Queued
        }
    }
}

impl SwitchNode {
    /// The link by which it would forward a packet now.
    #[inline(always)]
    pub fn next_hop(&mut self, core: &Core, fib: &Fib, s: u32, envelope: &Envelope) -> Option<usize> {
        match fib.lookup(s, envelope.dst) {
            NextHop::One(link) => Some(link as usize),
            NextHop::Several(links) => {
                let equal = EqualCost { links, core };
                Some(links[self.paths.pick(core.now, envelope, &equal, self.seed, &mut self.rng)] as usize)
            }
            NextHop::None => None,
        }
    }
}

impl SwitchNode {
    /// Whether the buffer that its ports share has room, all of them read up to now.
    pub fn check_shared(&self, core: &mut Core, l: usize, class: usize, frame: u16) -> Result<(), DropReason> {
        self.ports.iter().for_each(|port| core.catch_up(*port as usize));
        core.check_shared(l, class, frame)
    }

    /// Hints that its mechanisms are asked about a packet soon, which came in by port `from` and is about to be offered to `port`, or to
    /// leave it.
    #[inline(always)]
    pub fn prefetch_kept(&self, packet: PacketId, from: Option<u16>, port: PortNo) {
        for mechanism in &self.mechanisms {
            mechanism.kept(packet, from.map(PortNo), port, prefetch);
        }
    }
}

impl Fabric {
    /// A packet has reached a switch over link `via`.
    #[inline(always)]
    pub fn forward<K: Fifo>(&mut self, core: &mut Core, s: u32, via: usize, packet: PacketId) {
        if let Some(out) = self.take_hop(core, s, via, packet) {
            self.offer::<K>(core, out, Some(via), packet);
        }
    }

    /// One hop less is left to a packet that has reached a switch over link `via`: the link by which it leaves. Without any it is dropped.
    #[inline(always)]
    pub fn take_hop(&mut self, core: &mut Core, s: u32, via: usize, packet: PacketId) -> Option<usize> {
        let outer = core.pool.outer(packet);
        let settled = outer.next(via);
        outer.envelope.ttl -= 1;
        if outer.envelope.ttl == 0 {
            self.drop_at_switch(core, s, packet, DropReason::TTL);
            return None;
        }
        match settled {
            Some(out) => {
                debug_assert!(self.is_by_tables(core, s, packet, out));
                Some(out)
            }
            None => self.look_up(core, s, packet),
        }
    }

    /// The link by which a packet leaves a switch by its tables and its path choice. Without any it is dropped.
    #[inline(never)]
    fn look_up(&mut self, core: &mut Core, s: u32, packet: PacketId) -> Option<usize> {
        let out = self.switches[s as usize].next_hop(core, &self.fib, s, &core.pool[packet]);
        if out.is_none() {
            self.drop_at_switch(core, s, packet, DropReason::NO_ROUTE);
        }
        out
    }

    /// Whether a switch's tables lead a packet by a link, as its route does.
    fn is_by_tables(&self, core: &Core, s: u32, packet: PacketId, out: usize) -> bool {
        let Envelope { dst, hash, .. } = core.pool[packet];
        self.foresee(s, dst, hash) == Some(out as u32)
    }

    /// The link by which a switch forwards packets to a host with this hash, if nothing but its tables and these decides it.
    pub fn foresee(&self, s: u32, dst: HostId, hash: u32) -> Option<u32> {
        let switch = &self.switches[s as usize];
        match self.fib.lookup(s, dst) {
            NextHop::One(link) => Some(link),
            NextHop::Several(links) => switch.paths.foresee(dst, hash, links.len(), switch.seed).map(|i| links[i]),
            NextHop::None => None,
        }
    }

    /// The route of packets with this envelope that leave their host over its link `nic`: all of it or nothing.
    pub fn settled_route(&self, core: &Core, nic: u32, envelope: &Envelope) -> Route {
        let path = self.walk(core, nic, |s| self.foresee(s, envelope.dst, envelope.hash));
        match core.links[path[path.len() - 1] as usize].far_end() {
            FarEnd::Host(_) => Route::along(&path, envelope.ttl),
            FarEnd::Switch(_) => Route::NONE,
        }
    }

    /// The links of a path that begins with `nic`, until no switch gives a next one, or it goes in circles.
    fn walk(&self, core: &Core, nic: u32, next: impl Fn(u32) -> Option<u32>) -> Vec<u32> {
        let mut path = vec![nic];
        while let FarEnd::Switch(s) = core.links[path[path.len() - 1] as usize].far_end() {
            match next(s) {
                Some(link) if path.len() <= self.switches.len() => path.push(link),
                _ => break,
            }
        }
        path
    }

    /// Offers a packet to a switch's output port; `via`: the link that it came by, if it came by one. Ports of kind `K` are served
    /// in place.
    #[inline(always)]
    pub fn offer<K: Fifo>(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        if K::CROSSES {
            self.offer_to_crossbar(core, l, via, packet);
        } else if core.links[l].flags & flag::SPECIAL == K::FLAGS && (!K::OFFERED || core.links[l].free_at <= core.now.ps()) {
            self.offer_fifo::<K>(core, l, via, packet);
        } else {
            self.offer_special(core, l, via, packet);
        }
    }

    /// To a port that is not of the common kind. A call of its own, and nothing but calls at its ends: what it would save and
    /// restore, each packet would pay.
    #[inline(never)]
    fn offer_special(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        let link = &core.links[l];
        if link.flags & flag::OFFERED != 0 && core.pool[packet].frame <= self.offered_up_to {
            return self.offer_unless_idle(core, l, via, packet);
        }
        self.offer_by_kind(core, l, via, packet);
    }

    /// To mechanisms, if they want to know also of packets that find their port idle, or this one does not.
    #[inline(never)]
    fn offer_unless_idle(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        let link = &core.links[l];
        // Where departures are no events no class is paused.
        match self.switches[core.ports[l].owner.node()].offered {
            Offered::ForExpress => self.offer_express(core, l, via, packet),
            Offered::Queued if link.flags & flag::EXPLICIT == 0 && link.free_at <= core.now.ps() => {
                self.offer_by_kind(core, l, via, packet);
            }
            _ => self.offer_to_mechanisms(core, l, via, packet),
        }
    }

    #[inline(never)]
    pub fn offer_to_mechanisms(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        if !self.run_offer_hooks(core, l, via, packet) {
            self.offer_by_kind(core, l, via, packet);
        }
    }

    /// To a port of any kind; mechanisms have seen the packet, if they want to.
    #[inline(always)]
    pub fn offer_by_kind(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        match core.links[l].flags & (flag::SPECIAL & !flag::OFFERED) {
            0 => self.offer_plain(core, l, via, packet),
            flag::POLICY => self.offer_by_policy(core, l, via, packet),
            Classes::FLAGS => self.offer_in_class(core, l, via, packet),
            flags if flags & (flag::PIPELINE | flag::EXPLICIT) != 0 => self.offer_by_pipeline(core, l, via, packet),
            flags if flags & flag::WATCHED != 0 => self.offer_to_any(core, l, via, packet),
            _ => match (core.ports[l].admission.is_shared(), core.ports[l].at_dequeue) {
                (true, 0) => self.offer_shared(core, l, via, packet),
                (true, _) | (false, at_dequeue::EXPRESS) => self.offer_to_any(core, l, via, packet),
                (false, _) => self.offer_with_dequeues(core, l, via, packet),
            },
        }
    }

    /// To a FIFO port of any kind, also one whose arrivals are recorded.
    #[inline(never)]
    fn offer_to_any(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        self.offer_fifo::<Any>(core, l, via, packet);
    }

    /// To a port with a share of its switch's buffer.
    #[inline(never)]
    fn offer_shared(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        self.offer_fifo::<Shared>(core, l, via, packet);
    }

    /// To a port at which something happens to packets that leave.
    #[inline(never)]
    fn offer_with_dequeues(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        self.offer_fifo::<Dequeues>(core, l, via, packet);
    }

    /// To a port with a marking policy that is more than a threshold.
    #[inline(never)]
    fn offer_by_policy(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        self.offer_fifo::<ByPolicy<{ Marker::ANY }>>(core, l, via, packet);
    }

    /// To a port with classes, of which one waits at most.
    #[inline(never)]
    fn offer_in_class(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        self.offer_fifo::<Classes>(core, l, via, packet);
    }

    /// To a port of the common kind, elsewhere than in the inner loop itself.
    #[inline(never)]
    fn offer_plain(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        self.offer_fifo::<Plain>(core, l, via, packet);
    }

    /// Offers a packet to a FIFO port with a limit in bytes or packets, the common case; compiled for each kind of them.
    #[inline(always)]
    fn offer_fifo<K: Fifo>(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        // Where nothing else brought it here, the port has a policy, and no threshold.
        let only_policy = K::POLICY && !K::SHARED && !K::DEQUEUES && !K::WATCHED;
        let now = core.now;
        if K::EXPRESS && core.ports[l].at_dequeue & at_dequeue::EXPRESS != 0 && core.express_waits_for_others(l) {
            return self.offer_by_pipeline(core, l, via, packet);
        }
        if (K::SHARED || K::DEQUEUES) && core.links[l].queue_packets() > 0 {
            core.catch_up_dequeues(l);
        }
        let (link, rings) = core.links.with_rings(l);
        let frame = core.pool[packet].frame;
        let waits = if K::SHARED || K::DEQUEUES {
            link.free_at > now.ps()
        } else if K::POLICY || K::WATCHED {
            link.catch_up(rings.read(), now)
        } else {
            link.catch_up_if_busy(rings.read(), now) // of an idle port nothing is asked
        };
        let found =
            if K::EXPRESS { core.ports[l].behind_express(link) } else { (u64::from(link.queue_bytes), link.queue_packets()) };
        let mut marked = false;
        if K::CLASSES && waits && found.1 > 0 && core.is_of_another_class(l, packet) {
            return self.offer_by_pipeline(core, l, via, packet);
        }
        let link = &core.links[l];
        if waits {
            let (queue_bytes, packets) =
                if K::EXPRESS { (found.0 as u32, found.1) } else { (link.queue_bytes, link.queue_packets()) };
            let bytes = queue_bytes.saturating_add(u32::from(frame)); // 4 GiB end the run
            let would = if link.flags & flag::LIMIT_PACKETS != 0 { packets + 1 } else { bytes };
            if would > link.limit {
                return self.refuse_fifo(core, l, via, packet, DropReason::BUFFER_FULL, true);
            }
            if K::SHARED {
                if let Err(reason) = self.check_shared(core, l, 0, frame) {
                    return self.refuse_fifo(core, l, via, packet, reason, true);
                }
            }
            let (link, envelope) = (&core.links[l], &mut core.pool[packet]);
            let queue = if link.flags & flag::MARK_PACKETS != 0 {
                packets
            } else if K::EXPRESS {
                queue_bytes
            } else {
                link.queue_bytes
            };
            if !only_policy && queue > link.threshold && envelope.ecn != Ecn::NotEct {
                envelope.ecn = Ecn::Ce;
                core.ports[l].marks += 1;
                marked = true;
            }
        }
        if only_policy {
            // An idle port by itself: much of what policies ask for is nothing there.
            let asked = if waits {
                K::mark(core, l, Found::Busy(found.0, found.1), packet)
            } else {
                K::mark(core, l, Found::Idle, packet)
            };
            if let Err(reason) = asked {
                return self.refuse_fifo(core, l, via, packet, reason, false);
            }
        } else if K::POLICY && core.links[l].flags & flag::POLICY != 0 {
            match K::mark(core, l, Found::Any(found.0, found.1), packet) {
                Ok(by_policy) => marked = by_policy,
                Err(reason) => return self.refuse_fifo(core, l, via, packet, reason, false),
            }
        }
        if K::WATCHED {
            core.record_arrival(l, found, packet, frame, (marked, Fate::Taken));
        }
        if waits {
            if K::SHARED {
                core.joined_shared(l, 0, frame);
            }
            if K::CLASSES && found.1 == 0 {
                core.begin_class(l, packet);
            }
            if K::EXPRESS {
                core.note_fifo_queue(l, (found.0 as u32).saturating_add(u32::from(frame)), found.1 + 1);
            } else {
                core.note_one_more(l, frame);
            }
        }
        if waits {
            return core.push_busy(l, packet, frame);
        }
        core.push_idle(l, packet, frame);
        if K::DEQUEUES {
            core.after_dequeue(l, now, packet, None);
        }
    }

    /// A FIFO port does not accept a packet; `room`: for want of room.
    #[cold]
    #[inline(never)]
    fn refuse_fifo(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId, reason: DropReason, room: bool) {
        let view = core.view(l);
        let class = core.ports[l].explicit.as_deref().map_or(0, |explicit| explicit.class_of(core.pool[packet].class));
        self.refuse(core, l, class, &view, via, packet, Refusal { reason, room });
    }

    /// The whole pipeline of a port: admission, marking, record. `view` is the queue that the packet finds, up to now; `idle`: it would leave
    /// at once.
    ///
    /// A packet that finds the port idle goes onto the wire at once and takes no buffer.
    ///
    /// # Errors
    /// With the reason where the port does not accept it; nothing is recorded then.
    #[inline(always)]
    pub fn admit(&self, core: &mut Core, l: usize, class: usize, idle: bool, packet: PacketId) -> Result<(), Refusal> {
        let frame = core.pool[packet].frame;
        let queue = core.queue(l);
        if !idle {
            let own = core.ports[l].admission.check(&core.view(l), frame, core.cell);
            if let Err(reason) = own.and_then(|()| self.check_shared(core, l, class, frame)) {
                return Err(Refusal { reason, room: true });
            }
        }
        let asked = if let Some(marked) = core.held.take_decision(l, packet) {
            Ok(marked)
        } else if core.ports[l].by_class {
            core.mark_by_class(l, class, packet)
        } else {
            core.mark_by_policy::<{ Marker::ANY }>(l, Found::Any(queue.0, queue.1), packet)
        };
        let marked = asked.map_err(|reason| Refusal { reason, room: false })?;
        if !idle {
            core.ports[l].queue_cells += core.cells(frame);
        }
        if core.ports[l].watched.is_some() {
            core.record_arrival(l, queue, packet, frame, (marked, Fate::Taken));
        }
        Ok(())
    }

    /// Whether the buffer that the switch's ports share has room, if they share one.
    ///
    /// What other ports have sent since they were last read still counts as used, so that a frame which fits now fits all the
    /// more then; only one that does not makes the switch read all its ports.
    #[inline(always)]
    fn check_shared(&self, core: &mut Core, l: usize, class: usize, frame: u16) -> Result<(), DropReason> {
        core.check_shared(l, class, frame).or_else(|_| self.check_shared_anew(core, l, class, frame))
    }

    #[cold]
    #[inline(never)]
    fn check_shared_anew(&self, core: &mut Core, l: usize, class: usize, frame: u16) -> Result<(), DropReason> {
        let (s, _) = core.switch_port(l);
        self.switches[s as usize].check_shared(core, l, class, frame)
    }

    /// A packet that a port does not accept, and for which nobody has another use.
    #[cold]
    #[inline(never)]
    pub fn drop_refused(&mut self, core: &mut Core, l: usize, view: &PortView, packet: PacketId, refusal: Refusal) {
        core.note_refusal(l, view, packet, core.pool[packet].frame, refusal.room);
        self.drop_packet(core, l, packet, refusal.reason);
    }

    /// Counts and records a packet that is dropped at a port, and takes it out of the world.
    #[cold]
    #[inline(never)]
    pub fn drop_packet(&mut self, core: &mut Core, l: usize, packet: PacketId, reason: DropReason) {
        core.catch_up(l);
        let (queue_bytes, _) = core.standing(l);
        self.drop_dequeued(core, l, packet, reason, queue_bytes);
    }

    /// The same for a packet that left `queue_bytes` in the queue behind it.
    #[cold]
    #[inline(never)]
    pub fn drop_dequeued(&mut self, core: &mut Core, l: usize, packet: PacketId, reason: DropReason, queue_bytes: u64) {
        let (s, _) = core.switch_port(l);
        if core.pool[packet].kind == Kind::Control {
            return self.lose_clone(core, s, packet, reason);
        }
        core.ports[l].drops += 1;
        let port = core.ports[l].name.clone();
        self.drop_with(core, s, packet, reason, port, queue_bytes);
    }

    /// The same for a packet that no port of the switch can take; its place is the switch.
    #[cold]
    #[inline(never)]
    pub fn drop_at_switch(&mut self, core: &mut Core, s: u32, packet: PacketId, reason: DropReason) {
        if core.pool[packet].kind == Kind::Control {
            return self.lose_clone(core, s, packet, reason);
        }
        let name = self.switches[s as usize].name.clone();
        self.drop_with(core, s, packet, reason, name, 0);
    }

    fn drop_with(&mut self, core: &mut Core, s: u32, packet: PacketId, reason: DropReason, port: Name, queue_bytes: u64) {
        let dropped = core.pool.packet(packet);
        core.record_drop(packet, &dropped, reason, port, queue_bytes);
        core.settle_held(packet, Some(true));
        core.held.forget_decision(packet);
        core.pool.free(packet);
        if let Some(crossbar) = core.crossbars.get_mut(s as usize) {
            crossbar.forget(packet);
        }
        if self.switches[s as usize].hooks.any(Hooks::DROP) {
            self.note_drop(core, s, packet, &dropped, reason);
        }
    }

    /// The links from one host to another for a packet with this hash, as per-flow ECMP would choose them; the first is
    /// the host's own.
    pub fn path(&self, core: &Core, nic: u32, to: HostId, hash: u32) -> Vec<u32> {
        self.walk(core, nic, |s| match self.fib.lookup(s, to) {
            NextHop::One(link) => Some(link),
            NextHop::Several(links) => Some(links[fanin_switch::ecmp(hash, self.switches[s as usize].seed, links.len())]),
            NextHop::None => None,
        })
    }
}

impl Fabric {
    /// Bytes of telemetry in a frame that asks for it, on each link of a path from a host.
    pub fn telemetry(&self, core: &Core, path: &[u32]) -> Vec<u16> {
        let mut records = 0;
        let bytes = |l: &u32| {
            if let Owner::Switch(s, _) = core.ports[*l as usize].owner {
                let limit = self.switches[s as usize].mechanisms.iter().map(MechanismState::telemetry).max();
                records += usize::from(limit.is_some_and(|limit| records < limit));
            }
            Stack::bytes(records)
        };
        path.iter().map(bytes).collect()
    }
}

/// Why a port does not accept a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: DropReason,
    /// For want of room; else marking drops it.
    pub room: bool,
}
