//! Hooks of mechanisms: each runs with its own switch in view, and its verdict and effects are carried out here.

use super::failover::FAILOVER;
use super::switch::Fabric;
use super::switch_view::SwitchView;
use crate::core::departures::Departed;
use crate::core::link::{flag, FarEnd};
use crate::core::marking::Refusal;
use crate::core::message::{message_of, packet_alone, packet_of};
use crate::core::Core;
use fanin_packet::{Envelope, Extra, Kind, Packet, PacketId};
use fanin_switch::{
    Arrival, DropReason, Dropped, Effect, Effects, Hooks, MechanismState, Mechanisms, Message, Node, PortNo, PortView, Refused,
    Turn, Verdict, Way,
};
use fanin_units::{LinkId, SwitchId};

/// Timer of a switch that has made messages; the timers of its mechanisms are their numbers.
const OUTBOX: u64 = u64::MAX;
/// The timer of a switch that has dropped heads of queues.
const DROPPED: u64 = u64::MAX - 1;

/// Hooks at which `on_offer` runs, before a packet is enqueued at a port.
const OFFERS: Hooks = Hooks::OFFER.with(Hooks::QUEUE);

/// True if a mechanism learns of packets dropped at heads of queues only after the departures of that instant. A mechanism that
/// sees departures itself, or counts packets in memory, acts by timers; it must learn of them before the packet's place is used
/// again.
fn learns_later(mechanism: &MechanismState) -> bool {
    mechanism.hooks().any(Hooks::MESSAGES) && !mechanism.hooks().any(Hooks::EGRESS.with(Hooks::DEPARTED))
}

impl Fabric {
    /// Runs `body` for the mechanisms of switch `s`, then carries out what they wrote into effects.
    fn with_mechanisms<T>(
        &mut self,
        core: &mut Core,
        s: SwitchId,
        body: impl FnOnce(&mut [MechanismState], &mut SwitchView<'_>, &mut Effects) -> T,
    ) -> T {
        let mut mechanisms = std::mem::take(&mut self.switches[s].mechanisms);
        let mut effects = std::mem::take(&mut self.effects);
        let result = body(&mut mechanisms, &mut SwitchView { core: &mut *core, fabric: self, s }, &mut effects);
        let empty = std::mem::replace(&mut self.switches[s].mechanisms, mechanisms);
        std::mem::forget(empty); // nothing to drop, which the compiler does not know
        std::mem::forget(std::mem::replace(&mut self.effects, effects)); // nor here
        if !self.effects.list.is_empty() {
            self.carry_out_effects(core, s);
        }
        self.notify(core);
        result
    }

    /// Notifies mechanisms of packets that have left their queues, each with its time.
    #[inline(always)]
    pub fn notify(&mut self, core: &mut Core) {
        if !core.departed.is_empty() {
            self.notify_all(core);
        }
    }

    #[inline(never)]
    fn notify_all(&mut self, core: &mut Core) {
        let now = core.now;
        while let Some(last) = core.departed.pop() {
            let s = core.ports[last.link].owner.switch();
            if self.leaves_calmly(core, s, last.packet) {
                continue;
            }
            self.with_mechanisms(core, s, |mechanisms, view, fx| {
                let mut next = Some(last);
                while let Some(Departed { packet, at, .. }) = next.take() {
                    view.core.now = at;
                    for (i, mechanism) in mechanisms.iter_mut().enumerate().filter(|(_, m)| m.hooks().any(Hooks::DEPARTED)) {
                        fx.mechanism = i as u8;
                        mechanism.packet_memory_mut(|m| m.on_departed(view, packet, fx));
                    }
                    // Others of the same switch at once, unless something has to be carried out first.
                    let same = view.core.departed.last().is_some_and(|other| view.core.switch_port(other.link).0 == s);
                    if same && fx.list.is_empty() {
                        next = view.core.departed.pop();
                    }
                }
            });
            core.now = now;
        }
    }

    /// Lets the only mechanism that learns of departures end its count of a packet; false where there is none, or more follows from it.
    #[inline(always)]
    fn leaves_calmly(&mut self, core: &mut Core, s: SwitchId, packet: PacketId) -> bool {
        let switch = &mut self.switches[s];
        let Some(i) = switch.leaves else { return false };
        let note = core.pool.note(packet);
        let calm = switch.mechanisms[usize::from(i)].packet_memory_mut(|m| m.leave_calmly(note)) == Some(true);
        if calm && note != 0 {
            core.pool.set_note(packet, 0);
        }
        calm
    }

    #[inline(never)]
    fn carry_out_effects(&mut self, core: &mut Core, s: SwitchId) {
        if let [(_, Effect::Watch(port))] = self.effects.list[..] {
            // The most frequent by far: what leaves a queue is seen.
            self.effects.list.clear();
            return core.make_events(self.switches[s].ports[port.index()]);
        }
        self.carry_out_all(core, s);
    }

    #[inline(never)]
    fn carry_out_all(&mut self, core: &mut Core, s: SwitchId) {
        let mut list = std::mem::take(&mut self.effects.list);
        for (mechanism, effect) in list.drain(..) {
            self.carry_out_effect(core, s, mechanism, effect);
        }
        self.effects.list = list; // its room is used again
    }

    /// Asks the mechanisms one after the other until one says something other than `Pass`; gives its number and its verdict.
    fn ask(
        &mut self,
        core: &mut Core,
        (l, via): (LinkId, Option<LinkId>),
        s: SwitchId,
        packet: PacketId,
        hook: Hooks,
        mut question: impl FnMut(&mut MechanismState, &mut dyn Node, &mut Arrival<'_>, PortNo, &mut Effects) -> Verdict,
    ) -> (usize, Verdict) {
        let (_, port) = core.switch_port(l);
        let from = via.map(|via| PortNo(self.ingress[via]));
        let (mut envelope, mut shim) = (core.pool[packet], core.pool.shim(packet));
        self.with_mechanisms(core, s, |mechanisms, view, fx| {
            for (i, mechanism) in mechanisms.iter_mut().enumerate().filter(|(_, m)| m.hooks().any(hook)) {
                fx.mechanism = i as u8;
                let mut arrival = Arrival { id: packet, envelope: &mut envelope, from, shim: &mut shim };
                let verdict = question(mechanism, view, &mut arrival, port, fx);
                view.core.pool.rewrite(packet, &envelope);
                if let Some(shim) = shim {
                    view.core.pool.keep_shim(packet, shim);
                }
                if verdict == Verdict::Hold {
                    view.core.hold(l, packet, mechanism.kind().key); // before its effects
                }
                if verdict != Verdict::Pass {
                    return (i, verdict);
                }
            }
            (0, Verdict::Pass)
        })
    }

    /// A packet has reached a switch at which something runs on arrival, over link `via`.
    #[inline(never)]
    pub fn arrive_hooked(&mut self, core: &mut Core, s: SwitchId, via: LinkId, packet: PacketId) {
        if core.pool.has_message(packet) && self.take_messages(core, s, via, packet) {
            return;
        }
        let Some(out) = self.take_hop(core, s, via, packet) else { return };
        if let Some(i) = self.switches[s].stamps {
            self.stamp(core, (s, i), out, packet);
        } else if self.switches[s].hooks.any(Hooks::ROUTE) && self.ask_at_route(core, s, (out, via), packet) {
            return;
        }
        self.enqueue(core, out, Some(via), packet);
    }

    /// Takes the messages of a frame, few of which have any. True where nothing is left of it.
    #[inline(never)]
    fn take_messages(&mut self, core: &mut Core, s: SwitchId, via: LinkId, packet: PacketId) -> bool {
        if let Some(message) = core.pool.detach(packet) {
            self.take_message(core, s, via, &message);
        }
        let alone = core.pool.is_message(packet);
        if alone {
            let message = core.pool.free_message(packet);
            self.take_message(core, s, via, &message);
        }
        alone
    }

    /// Asks mechanisms about a packet that would leave by link `out`; true when one of them has another use for it.
    fn ask_at_route(&mut self, core: &mut Core, s: SwitchId, (out, via): (LinkId, LinkId), packet: PacketId) -> bool {
        let (_, verdict) =
            self.ask(core, (out, Some(via)), s, packet, Hooks::ROUTE, |m, node, p, to, fx| m.on_route(node, p, to, fx));
        match verdict {
            Verdict::Pass => return false,
            Verdict::Take => drop(core.end_clone(packet)),
            Verdict::Send | Verdict::Displace | Verdict::Hold => unreachable!("{verdict:?} at route"),
            other => self.carry_out(core, (out, Some(via)), packet, other, DropReason::NO_ROUTE),
        }
        true
    }

    /// Lets mechanism `i` of a switch make room for the record of the port by which a packet is to leave.
    #[inline(always)]
    fn stamp(&mut self, core: &mut Core, (s, i): (SwitchId, u8), out: LinkId, packet: PacketId) {
        if core.pool.has_shim(packet) {
            let (_, to) = core.switch_port(out);
            let mechanism = &mut self.switches[s].mechanisms[usize::from(i)];
            core.pool.change_shim(packet, |shim| mechanism.telemetry_mut(|m| m.stamp(shim, to)) == Some(true));
        }
        self.notify(core);
    }

    /// A message for the mechanisms of a switch. One whose hop limit is zero was lost on the way.
    fn take_message(&mut self, core: &mut Core, s: SwitchId, via: LinkId, packet: &Packet) {
        let Some(message) = message_of(packet) else { return };
        let from = PortNo(self.ingress[via]);
        if let Some(pause) = Mechanisms::pause(&message.control, message.envelope.header) {
            core.note_pause_frame(self.switches[s].ports[from.index()], &pause);
        }
        self.with_mechanisms(core, s, |mechanisms, view, fx| {
            let owner = mechanisms.iter_mut().enumerate().find(|(_, m)| m.kind().profile.owns(message.control.ether_type));
            if let Some((i, mechanism)) = owner {
                fx.mechanism = i as u8;
                mechanism.listens_mut(|m| m.on_message(view, from, &message, fx));
            }
        });
    }

    /// A packet is about to be offered to port `l`. True when a mechanism has another use for it.
    #[inline(always)]
    pub fn run_offer_hooks(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId) -> bool {
        let (s, _) = core.switch_port(l);
        let hooks = self.switches[s].hooks;
        if hooks.any(Hooks::RANKS) {
            self.rank(core, l, packet);
        }
        self.run_mechanisms_offer(core, (l, via), s, packet)
    }

    /// Asks a switch's mechanisms about a packet before a queue gets it; true when one of them has another use for it.
    pub fn run_mechanisms_offer(
        &mut self,
        core: &mut Core,
        (l, via): (LinkId, Option<LinkId>),
        s: SwitchId,
        packet: PacketId,
    ) -> bool {
        if !self.switches[s].hooks.any(OFFERS) {
            return false;
        }
        let (i, mut verdict) = self.ask(core, (l, via), s, packet, OFFERS, |m, node, p, port, fx| m.on_offer(node, p, port, fx));
        if matches!(verdict, Verdict::Hold | Verdict::Express) {
            let holds = verdict == Verdict::Hold;
            verdict = self.tell_others(core, (l, via), s, packet, (i, verdict));
            if holds && verdict != Verdict::Hold {
                core.let_go(packet);
                core.settle_held(packet, Some(false));
            }
        }
        if self.switches[s].hooks.any(Hooks::INPUTS) {
            match via {
                Some(via) => self.count_input(core, (l, via), s, packet, verdict),
                None => core.make_events(l), // it may have been held, and counts until it is seen to leave
            }
        }
        if verdict == Verdict::Pass {
            return false;
        }
        self.carry_out(core, (l, via), packet, verdict, DropReason::BUFFER_FULL);
        true
    }

    /// Tells the other mechanisms that mechanism `i` holds a packet that was about to be enqueued at port `l`, or has put it into
    /// the port's express queue; one of them may drop it.
    fn tell_others(
        &mut self,
        core: &mut Core,
        (l, via): (LinkId, Option<LinkId>),
        s: SwitchId,
        packet: PacketId,
        (i, taken): (usize, Verdict),
    ) -> Verdict {
        let (_, verdict) = self.ask(core, (l, via), s, packet, OFFERS, |m, node, p, port, fx| {
            if usize::from(fx.mechanism) == i {
                Verdict::Pass
            } else {
                m.packet_memory_mut(|m| m.on_taken(node, p, port, fx)).unwrap_or(Verdict::Pass)
            }
        });
        debug_assert!(
            matches!(verdict, Verdict::Pass | Verdict::Drop(_)),
            "{verdict:?} of a packet that another mechanism has taken"
        );
        if verdict == Verdict::Pass {
            taken
        } else {
            verdict
        }
    }

    /// Counts a packet that came by link `via` at its input port while it waits for port `l` or is held for it.
    fn count_input(&mut self, core: &mut Core, (l, via): (LinkId, LinkId), s: SwitchId, packet: PacketId, verdict: Verdict) {
        self.uncount_input(s, packet);
        let waits = match verdict {
            Verdict::Hold | Verdict::Express => true,
            Verdict::Pass => {
                core.catch_up(l);
                let class = core.class_of(l, &core.pool[packet]);
                core.ports[l].is_closed(class) || core.links[l].free_at > core.now.ps()
            }
            _ => false,
        };
        if !waits {
            return;
        }
        core.make_events(l); // so that its departure is seen
        let (port, frame) = (self.ingress[via], core.pool[packet].frame);
        if self.entered.len() <= packet.index() {
            self.entered.resize(packet.index() + 1, (0, 0));
        }
        self.entered[packet.index()] = (port, frame);
        let inputs = &mut self.switches[s].inputs;
        if inputs.len() <= usize::from(port) {
            inputs.resize(usize::from(port) + 1, 0);
        }
        inputs[usize::from(port)] += u64::from(frame);
    }

    /// Ends the count of a packet at its input port: it has left the switch, or is about to be enqueued at another port.
    fn uncount_input(&mut self, s: SwitchId, packet: PacketId) {
        let Some(entered) = self.entered.get_mut(packet.index()) else { return };
        let (port, frame) = std::mem::take(entered);
        if frame > 0 {
            self.switches[s].inputs[usize::from(port)] -= u64::from(frame);
        }
    }

    /// Sets the rank of a packet that is about to join a queue, at a port whose packets leave by rank.
    fn rank(&self, core: &mut Core, l: LinkId, packet: PacketId) {
        let (s, _) = core.switch_port(l);
        let shim = core.pool.shim(packet);
        let mut ranking = self.switches[s].mechanisms.iter().filter(|m| m.hooks().any(Hooks::RANKS));
        let rank = ranking.next().and_then(|m| m.ranks(|m| m.rank(&core.pool[packet], shim.as_ref()))).unwrap_or(0);
        core.pool.set_rank(packet, rank);
    }

    /// Asks the mechanisms about a packet that port `l` does not accept, until one has a use for it.
    pub fn run_refusal_hooks(
        &mut self,
        core: &mut Core,
        (l, via): (LinkId, Option<LinkId>),
        packet: PacketId,
        view: &PortView,
        refusal: Refusal,
    ) -> (usize, Verdict) {
        let (s, _) = core.switch_port(l);
        let detoured = self.detouring;
        let hook = if detoured { Hooks::DETOURED } else { Hooks::REFUSAL };
        self.ask(core, (l, via), s, packet, hook, |m, node, p, port, fx| {
            let packet = Arrival { id: p.id, envelope: &mut *p.envelope, from: p.from, shim: &mut *p.shim };
            let Refusal { reason, room } = refusal;
            let mut refused = Refused { packet, port, view: *view, reason, room, detoured };
            let verdict = m.on_refusal(node, &mut refused, fx);
            debug_assert!(verdict != Verdict::Hold, "a refused packet is held");
            debug_assert!(!detoured || !matches!(verdict, Verdict::Detour(_)), "a packet is detoured once at a switch");
            verdict
        })
    }

    /// The other ports of the switch to which a packet may go that port `l` does not take.
    #[cold]
    pub fn ways(&mut self, core: &mut Core, (l, via): (LinkId, Option<LinkId>), packet: PacketId) -> Vec<Way> {
        let (s, own) = core.switch_port(l);
        let (envelope, from) = (core.pool[packet], via.map(|via| self.ingress[via]));
        let others: Vec<PortNo> = (0..self.switches[s].ports.len() as u16).map(PortNo).filter(|port| *port != own).collect();
        self.with_mechanisms(core, s, |_, view, _| {
            let way = |port: PortNo| {
                let (link, queue_bytes) = (view.link(port), view.view(port).queue_bytes);
                let to_host = matches!(view.core.links[link].far_end(), FarEnd::Host(_));
                Way { port: link.0, queue_bytes, room: view.has_room(port, &envelope), to_host, back: from == Some(port.0) }
            };
            others.into_iter().map(way).collect()
        })
    }

    /// A packet has left a queue of port `l` to make room for another, at the wish of mechanism `i`.
    pub fn run_displaced_hook(&mut self, core: &mut Core, l: LinkId, packet: PacketId, i: usize) {
        let (s, port) = core.switch_port(l);
        let for_detoured = self.detouring;
        let (mut envelope, mut shim) = (core.pool[packet], core.pool.shim(packet));
        let verdict = self.with_mechanisms(core, s, |mechanisms, view, fx| {
            fx.mechanism = i as u8;
            let mut arrival = Arrival { id: packet, envelope: &mut envelope, from: None, shim: &mut shim };
            let verdict = mechanisms[i].displaces_mut(|m| m.on_displaced(view, &mut arrival, port, for_detoured, fx));
            view.core.pool.rewrite(packet, &envelope);
            if let Some(shim) = shim {
                view.core.pool.keep_shim(packet, shim);
            }
            verdict.unwrap_or(Verdict::Drop(DropReason::BUFFER_FULL))
        });
        debug_assert!(!for_detoured || !matches!(verdict, Verdict::Detour(_)), "a packet is detoured once at a switch");
        match verdict {
            Verdict::Hold => unreachable!("a displaced packet is held"),
            Verdict::Express => self.join_express(core, l, packet),
            other => self.carry_out(core, (l, None), packet, other, DropReason::BUFFER_FULL),
        }
    }

    /// A packet was dropped at switch `s`. Where it was the head of a queue, other ports may have a departure at this very instant, which
    /// comes first: mechanisms that send something because of it learn of it by a timeout of the switch.
    #[cold]
    pub fn note_drop(&mut self, core: &mut Core, s: SwitchId, packet: PacketId, dropped: &Packet, reason: DropReason) {
        if self.switches[s].hooks.any(Hooks::INPUTS) {
            self.uncount_input(s, packet);
        }
        let switch = &mut self.switches[s];
        if self.departing && switch.mechanisms.iter().any(learns_later) {
            switch.dropped.push_back((packet, *dropped, reason));
            core.set_timer(core.now, (self.node(s), DROPPED));
            return self.run_drop_hooks(core, s, packet, dropped, reason, |m| !learns_later(m));
        }
        self.run_drop_hooks(core, s, packet, dropped, reason, |_| true);
    }

    fn run_drop_hooks(
        &mut self,
        core: &mut Core,
        s: SwitchId,
        packet: PacketId,
        dropped: &Packet,
        reason: DropReason,
        learns: impl Fn(&MechanismState) -> bool,
    ) {
        let envelope = &dropped.envelope;
        let dropped = Dropped { packet, envelope, reference: dropped.header.reference(envelope.payload), reason };
        for i in 0..self.switches[s].mechanisms.len() {
            if !learns(&self.switches[s].mechanisms[i]) {
                continue;
            }
            self.with_mechanisms(core, s, |mechanisms, view, fx| {
                fx.mechanism = i as u8;
                mechanisms[i].on_drop(view, &dropped, fx);
            });
        }
    }

    /// Asks the mechanisms for a message at the end of a frame that is about to leave port `l`.
    pub fn run_departure_hooks(&mut self, core: &mut Core, l: LinkId, packet: PacketId) {
        let (s, port) = core.switch_port(l);
        for mechanism in self.switches[s].mechanisms.iter_mut().filter(|m| m.sends(|m| m.waits(port)).unwrap_or(false)) {
            let attached = mechanism.attaches_mut(|m| Some((m.on_departure(port, &core.pool[packet])?, m.loses(port))));
            let Some((mut message, lost)) = attached.flatten() else { continue };
            if lost {
                message.envelope.ttl = 0;
            }
            return core.pool.attach(packet, &packet_of(&message, 0));
        }
    }

    /// Tells the mechanisms that a frame's first bit has left port `l`, whose departures are events.
    #[inline(never)]
    pub fn run_egress_hooks(&mut self, core: &mut Core, l: LinkId, packet: PacketId) {
        let (s, port) = core.switch_port(l);
        if self.switches[s].hooks.any(Hooks::INPUTS) {
            self.uncount_input(s, packet);
        }
        self.with_mechanisms(core, s, |mechanisms, view, fx| {
            for (i, mechanism) in mechanisms.iter_mut().enumerate().filter(|(_, m)| m.hooks().any(Hooks::EGRESS)) {
                fx.mechanism = i as u8;
                mechanism.watches_mut(|m| m.on_egress(view, packet, port, fx));
            }
        });
    }

    /// Tells the mechanisms of port `l`'s switch that its link is down, or works again.
    #[cold]
    pub fn tell_of_link(&mut self, core: &mut Core, l: LinkId, up: bool) {
        let (s, port) = core.switch_port(l);
        self.with_mechanisms(core, s, |mechanisms, view, fx| {
            for (i, mechanism) in mechanisms.iter_mut().enumerate() {
                fx.mechanism = i as u8;
                mechanism.on_link(view, port, up, fx);
            }
        });
    }

    /// Tells the mechanisms that a packet leaves its virtual output queue for the crossbar. `from`, `to`: input and output port.
    #[inline(never)]
    pub fn run_crossing_hooks(&mut self, core: &mut Core, s: SwitchId, packet: PacketId, [from, to]: [PortNo; 2]) {
        self.with_mechanisms(core, s, |mechanisms, view, fx| {
            for (i, mechanism) in mechanisms.iter_mut().enumerate().filter(|(_, m)| m.hooks().any(Hooks::CROSSING)) {
                fx.mechanism = i as u8;
                mechanism.packet_memory_mut(|m| m.on_crossing(view, packet, from, to, fx));
            }
        });
    }

    /// A message that travels as packets do was dropped at switch `s`.
    #[cold]
    pub fn lose_clone(&mut self, core: &mut Core, s: SwitchId, packet: PacketId, reason: DropReason) {
        // It may have counted where packets wait, as any other.
        let link = self.switches[s].ports[0];
        core.departed.push(Departed { link, packet, at: core.now });
        self.notify(core);
        self.uncount_input(s, packet);
        if let Some(crossbar) = self.crossbars.get_mut(s.index()) {
            crossbar.forget(packet);
        }
        let Some(shim) = core.end_clone(packet) else { return };
        for mechanism in &mut self.switches[s].mechanisms {
            mechanism.clones_mut(|m| m.on_lost(&shim, reason));
        }
    }

    /// Asks the mechanisms for a packet or message of their own when the wire of port `l` is free; true when one sends.
    pub fn run_turn_hooks(&mut self, core: &mut Core, l: LinkId, data: bool) -> bool {
        let (s, port) = core.switch_port(l);
        let turn = self.with_mechanisms(core, s, |mechanisms, view, fx| {
            for (i, mechanism) in mechanisms.iter_mut().enumerate() {
                fx.mechanism = i as u8;
                match mechanism.sends_mut(|m| m.on_turn(view, port, data, fx)).unwrap_or(Turn::Pass) {
                    Turn::Pass => {}
                    Turn::Express => {
                        if let Some(packet) = view.core.pop_express(view.link(port), data) {
                            return Turn::Packet(packet);
                        }
                    }
                    Turn::Message(mut message) => {
                        if mechanism.attaches_mut(|m| m.loses(port)).unwrap_or(false) {
                            message.envelope.ttl = 0;
                        }
                        return Turn::Message(message);
                    }
                    packet => return packet,
                }
            }
            Turn::Pass
        });
        match turn {
            Turn::Pass | Turn::Express => return false,
            Turn::Packet(packet) => self.send_past_the_queue(core, l, packet),
            Turn::Message(message) => {
                let packet = core.pool.take_message(&packet_alone(&self.framing, &message));
                core.start_past_queue(l, core.now, packet);
            }
        }
        true
    }

    /// Puts a packet of a mechanism onto the wire of port `l`, which is free.
    fn send_past_the_queue(&mut self, core: &mut Core, l: LinkId, packet: PacketId) {
        core.let_go(packet);
        core.settle_held(packet, None);
        core.held.forget_decision(packet);
        core.start_past_queue(l, core.now, packet);
        self.notify(core);
        let (s, _) = core.switch_port(l);
        if let Some(crossbar) = self.crossbars.get_mut(s.index()) {
            crossbar.forget(packet);
        }
        if self.switches[s].hooks.any(Hooks::EGRESS) {
            self.run_egress_hooks(core, l, packet);
        }
    }

    /// Handles an expired timer of a switch: a mechanism's, that of its outbox, or that of drops.
    pub fn timeout(&mut self, core: &mut Core, s: SwitchId, what: u64) {
        if what == OUTBOX {
            if let Some((l, message)) = self.switches[s].outbox.pop_front() {
                self.enqueue_anywhere(core, l, None, message);
            }
            return;
        }
        if what == FAILOVER {
            return self.fail_over(core, s);
        }
        if what == DROPPED {
            if let Some((packet, dropped, reason)) = self.switches[s].dropped.pop_front() {
                self.run_drop_hooks(core, s, packet, &dropped, reason, learns_later);
            }
            return;
        }
        let i = what as usize;
        self.with_mechanisms(core, s, |mechanisms, view, fx| {
            fx.mechanism = i as u8;
            mechanisms[i].timed_mut(|m| m.on_timer(view, fx));
        });
    }

    /// Carries out a mechanism's decision about a packet at port `l`. `reason`: why it is dropped where nobody has a use for it.
    pub fn carry_out(
        &mut self,
        core: &mut Core,
        (l, via): (LinkId, Option<LinkId>),
        packet: PacketId,
        verdict: Verdict,
        reason: DropReason,
    ) {
        if verdict != Verdict::Hold {
            core.held.forget_decision(packet); // it does not join the queue of this port
        }
        match verdict {
            Verdict::Pass | Verdict::Displace => self.drop_packet(core, l, packet, reason),
            Verdict::Drop(reason) => self.drop_packet(core, l, packet, reason),
            Verdict::Hold => self.note_held(core, l, via, packet),
            Verdict::Express => {
                core.stamp_at(l, packet);
                self.join_express(core, l, packet);
            }
            Verdict::Take => unreachable!("{verdict:?} at a port"),
            Verdict::Send => {
                debug_assert!(core.links[l].free_at <= core.now.ps(), "a wire that is not free");
                core.stamp_at(l, packet);
                self.send_past_the_queue(core, l, packet);
            }
            Verdict::Detour(port) => {
                let (s, _) = core.switch_port(l);
                let other = self.switches[s].ports[port.index()];
                let before = std::mem::replace(&mut self.detouring, true);
                self.enqueue_anywhere(core, other, via, packet);
                self.detouring = before;
            }
        }
    }

    /// Notes the input of a packet that a mechanism holds, at a combined switch.
    fn note_held(&mut self, core: &Core, l: LinkId, via: Option<LinkId>, packet: PacketId) {
        let ((s, output), frame) = (core.switch_port(l), core.pool[packet].frame);
        if let (Some(crossbar), Some(via)) = (self.crossbars.get_mut(s.index()), via) {
            crossbar.hold((self.ingress[via], output), packet, frame);
        }
    }

    /// Puts a message in a frame of its own among the control frames of a port, which is off the fast path: a pause goes before
    /// the others. One that waits there says what the new one does besides, as a MAC writes the frame when it leaves. Source:
    /// IEEE 802.3 Annex 31B.
    fn join_control(&self, core: &mut Core, l: LinkId, message: &Message) {
        let pause = Mechanisms::pause(&message.control, message.envelope.header);
        let Some(queues) = core.ports[l].queues.as_deref_mut() else { return };
        let Some(mut pause) = pause else {
            let packet = core.pool.take_message(&packet_alone(&self.framing, message));
            return queues.control.push_back(packet);
        };
        let waits = std::mem::replace(&mut queues.pauses, true);
        if let Some(first) = waits.then(|| queues.control.pop_front()).flatten() {
            let before = message_of(&core.pool.free_message(first));
            let before = before.and_then(|message| Mechanisms::pause(&message.control, message.envelope.header));
            pause.follows(&before.unwrap_or_default());
        }
        let message = Mechanisms::ask(&pause).unwrap_or(*message);
        let packet = core.pool.take_message(&packet_alone(&self.framing, &message));
        queues.control.push_front(packet);
        core.note_pause_sent(l, waits);
    }

    fn carry_out_effect(&mut self, core: &mut Core, s: SwitchId, mechanism: u8, effect: Effect) {
        let link = |fabric: &Fabric, port: PortNo| fabric.switches[s].ports[port.index()];
        match effect {
            Effect::Forward { packet, port } => {
                let l = link(self, port);
                core.let_go(packet);
                if core.held.is_decided(l, packet) {
                    core.leave_fast_path(l); // which knows of no decisions
                } else {
                    core.held.forget_decision(packet); // of another port
                }
                self.enqueue_anywhere(core, l, None, packet);
                core.settle_held(packet, None);
            }
            Effect::Drop { packet, port, reason } => {
                let l = link(self, port);
                core.let_go(packet);
                self.drop_packet(core, l, packet, reason);
            }
            Effect::Arm(port) => {
                let l = link(self, port);
                core.make_events(l);
                let armed = core.ports[l].queues.as_deref().is_some_and(|queues| queues.armed);
                if core.links[l].free_at <= core.now.ps() && !armed {
                    self.departure(core, l);
                } else {
                    core.arm(l);
                }
            }
            Effect::Emit { port, message } => {
                let l = link(self, port);
                if core.is_down(l) {
                    return core.count_lost_message(l, DropReason::LINK_DOWN);
                }
                core.leave_fast_path(l);
                self.join_control(core, l, &message);
                let Some(queues) = core.ports[l].queues.as_deref_mut() else { return };
                let (free, armed) = (core.links[l].free_at <= core.now.ps(), queues.armed);
                let events = core.links[l].flags & flag::EVENTS != 0;
                if !free || armed {
                    core.send_later(l);
                } else if events {
                    self.departure(core, l);
                } else {
                    core.go_on(l);
                }
            }
            Effect::Mark { packet, port } => core.mark_held(link(self, port), packet),
            Effect::Gate { port, closed } => {
                let l = link(self, port);
                self.gate(core, l, closed);
            }
            Effect::Flush { port, classes, reason } => {
                let l = link(self, port);
                // As where heads are dropped: what mechanisms make of them comes after departures of this instant.
                let before = std::mem::replace(&mut self.departing, true);
                self.flush(core, l, classes, reason);
                self.departing = before;
            }
            Effect::Asks { port, class, behind, held_up } => {
                let behind = behind.map(|port| link(self, port));
                core.note_ask(link(self, port), class, behind, held_up);
            }
            Effect::Watch(port) => core.make_events(link(self, port)),
            Effect::State { port, about, state, degree } => {
                let name = self.switches[s].mechanisms[usize::from(mechanism)].kind().key;
                let port = core.ports[link(self, port)].name.clone();
                let result = core.ledger.tables.state(core.now, port, [name, about, state], degree);
                core.check(result);
            }
            Effect::Clone { packet, port, ttl, class, shim } => {
                let mut message = core.pool.packet(packet);
                message.envelope = Envelope {
                    frame: self.framing.frame(u16::from(message.envelope.header)),
                    payload: 0,
                    ttl,
                    class: class.unwrap_or(message.envelope.class),
                    kind: Kind::Control,
                    trimmed: false,
                    extra: Extra::NONE,
                    ..message.envelope
                };
                message.envelope.set_shim(Some(&shim));
                let message = core.pool.take_message(&message);
                core.pool.keep_shim(message, shim);
                // Other ports may have a departure at this very instant, which comes first: the offer is a timeout of the switch.
                let l = link(self, port);
                self.switches[s].outbox.push_back((l, message));
                core.set_timer(core.now, (self.node(s), OUTBOX));
            }
            Effect::Timer(at) => core.set_timer(at.max(core.now), (self.node(s), u64::from(mechanism))),
        }
    }
}
