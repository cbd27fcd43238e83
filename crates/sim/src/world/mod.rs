//! The world: all state of a run, and the loop that moves it.
//!
//! Order of events of the same time: (1) departures, by link; (2) arrivals, in the order of `engine.ties`; (3) timeouts, by
//! host, flow and side, then those of switches; (4) applications, in order of the traffic entries; (5) sampling. Links are
//! numbered in order of creation by the topology, flows in order of their start, so no order depends on when an event was set.

mod fetch;
pub(crate) mod part;
pub(crate) mod sample;

use crate::core::gate::PortGate;
use crate::core::link::{flag, FarEnd};
use crate::core::port::Owner;
use crate::core::Core;
use crate::fabric::Fabric;
use crate::hosts::Hosts;
use crate::ledger::{kind, Totals};
use crate::outside::Blocks;
use fanin_packet::{Kind, PacketId};
use fanin_switch::DropReason;
use fanin_telemetry::TableError;
use fanin_traffic::{Completion, FlowSpec, Traffic};
use fanin_units::{HostId, LinkId, Span, SwitchId, Time};
use sample::Samples;
use std::collections::BTreeMap;

/// Reason for which [`World::advance`] has returned.
#[derive(Debug, PartialEq)]
pub enum Pause {
    /// The budget is used up; there is more to do.
    Budget,
    /// Nothing is left to do, or the stop time is reached.
    Done,
    /// The run cannot go on; the message lists the flows that wait, and for what.
    Stuck(String),
}

/// A run in progress.
pub struct World {
    pub(crate) core: Core,
    pub(crate) fabric: Fabric,
    pub(crate) hosts: Hosts,
    pub(crate) traffic: Traffic,
    pub(crate) outside: Blocks,
    /// Flows whose opener does not know yet that they may start, by the time when it will know.
    pub(crate) informed: BTreeMap<(Time, u16, u64), FlowSpec>,
    /// True if links and ports do not fit into a core's cache: memory that the next events need is fetched ahead of them.
    pub(crate) prefetches: bool,
    pub(crate) stop: Time,
    pub(crate) next_app: Time,
    pub(crate) samples: Samples,
    /// Number of events handled without time moving on, at the last check.
    pub(crate) standstill: (Time, u64),
    /// Times of the last check for a deadlock of pauses and of the next one; [`Time::MAX`] where nothing can be paused.
    pub(crate) looked: Time,
    pub(crate) next_look: Time,
    /// Number of events without time moving on after which the run is taken to hang.
    pub(crate) stall_events: u64,
    pub(crate) max_events: u64,
    /// Time of the last timer for which no end was left here; only kept where the network is divided.
    pub(crate) idle_timer: Time,
    /// Everything is brought up to the end of the run, and in the tables.
    pub(crate) wound_up: bool,
    /// Time up to and at which all has happened here but starts of flows; only kept where the network is divided.
    pub(crate) reached: Time,
    /// Completions here that other parts of the network have not been notified of; `None` where nothing follows completions elsewhere.
    pub(crate) news: Option<Vec<Completion>>,
    /// Time up to and at which flows may start: later ones wait until all completions before them are known in all parts of the network.
    pub(crate) starts_until: Time,
    /// Events that the inner loop may still handle. Here and not in a register, of which it has too few.
    pub(crate) left: u64,
}

/// Time between two checks for a deadlock of pauses: far longer than a pause that nobody renews, 65,535 quanta or 34 ms at 1 Gb/s.
pub(crate) const DEADLOCK_PERIOD: Span = Span::from_ms(100);

impl World {
    /// Moves on by at most about `budget` events.
    ///
    /// # Errors
    /// When a result table cannot be written.
    pub fn advance(&mut self, budget: u64) -> Result<Pause, TableError> {
        let end = self.core.ledger.totals.events.saturating_add(budget).min(self.max_events);
        while self.core.ledger.totals.events < end {
            self.find_barrier();
            let barrier = self.core.barrier;
            fanin_run_loop(self, end - self.core.ledger.totals.events);
            if let Some(error) = self.core.failure.take() {
                return Err(error);
            }
            if let Some(message) = self.core.stuck.take() {
                return Ok(Pause::Stuck(format!("{message} (at {})", self.core.now)));
            }
            if self.core.ledger.totals.events < end {
                if let Some(pause) = self.beyond_the_wheel(barrier) {
                    return Ok(pause);
                }
            }
        }
        Ok(self.still_going())
    }

    /// Counts so far.
    pub fn totals(&self) -> Totals {
        self.core.ledger.totals
    }

    /// The fingerprint so far.
    pub fn fingerprint(&self) -> u64 {
        self.core.ledger.fingerprint()
    }

    /// Packets that exist now: queued, held by a mechanism, on a wire, or waiting at a NIC. At any moment
    /// sent = delivered + stray + dropped + in flight, where `sent` counts what NICs have sent. Frames with nothing but a
    /// control message in them are no packets.
    pub fn in_flight(&self) -> u64 {
        self.core.pool.in_flight() - self.hosts.waiting_packets()
    }

    /// Simulated time reached.
    pub fn now(&self) -> Time {
        self.core.now
    }

    /// The earliest event that is not in the wheel. Completions of the present instant are one of the applications'.
    #[inline(always)]
    fn find_barrier(&mut self) {
        let present = if self.applications_are_next() { self.core.now } else { Time::MAX };
        let starts = self.starts_at();
        let wake = self.traffic.next_wake().unwrap_or(Time::MAX);
        self.next_app = match starts > self.starts_until {
            false => starts.min(wake).min(present),
            // Ranks go on behind the starts of the same time.
            true => present.min(if wake < starts { wake } else { Time::MAX }),
        };
        let others = self.core.timers.next().min(self.next_app).min(self.samples.next).min(self.stop);
        self.core.barrier = others.min(self.next_look);
    }

    /// Time at which the next flow starts, or its opener has to be found out.
    #[inline(always)]
    pub(crate) fn starts_at(&self) -> Time {
        let informed = self.informed.first_key_value().map_or(Time::MAX, |((at, ..), _)| *at);
        self.traffic.next_start().unwrap_or(Time::MAX).min(informed)
    }

    /// True where applications have something to hear of at the present instant.
    #[inline(always)]
    fn applications_are_next(&self) -> bool {
        !self.hosts.completed.is_empty() || !self.hosts.progress.is_empty()
    }

    /// Handles the earliest event beyond the wheel, which has nothing up to the barrier.
    fn beyond_the_wheel(&mut self, found: Time) -> Option<Pause> {
        // What was set in the inner loop may stand before the barrier that was found at its beginning.
        if self.core.barrier != found || self.applications_are_next() {
            self.find_barrier();
        }
        let timers = self.core.timers.next();
        let barrier = timers.min(self.next_app).min(self.samples.next).min(self.stop);
        if self.next_look < barrier && (barrier < Time::MAX || !self.core.wheel.is_empty()) {
            return self.look_for_deadlock();
        }
        let drained = self.hosts.ends.sinks() == 0 || (self.core.wheel.is_empty() && !self.hosts.holds_packets());
        if self.hosts.ends.active() == 0 && self.next_app == Time::MAX && self.stop == Time::MAX && drained {
            self.hosts.finish_turns(&mut self.core, barrier);
            // A flow that waits for one that was aborted never starts.
            let all_started = self.traffic.blocked().is_empty();
            return Some(if all_started { Pause::Done } else { self.stuck("nothing is left to happen") });
        }
        if self.next_app == Time::MAX && self.stop == Time::MAX && self.core.timers.is_empty() && self.core.wheel.is_empty() {
            return Some(self.stuck("nothing is left to happen"));
        }
        if barrier >= self.stop && timers > barrier && self.next_app > barrier && self.samples.next > barrier {
            self.core.now = self.stop;
            self.hosts.catch_up_all(&mut self.core);
            let half = Time::from_ps(self.core.now.ps() / 2);
            return Some(self.deadlock(half).map_or(Pause::Done, |deadlock| self.stuck(&deadlock)));
        }
        self.core.now = barrier;
        self.core.ledger.totals.events += 1;
        if timers == barrier {
            self.timeout();
        } else if self.next_app == barrier {
            self.applications();
        } else {
            self.sample();
        }
        None
    }

    /// The first timer is due: of a host's end, or of a mechanism at a switch.
    fn timeout(&mut self) {
        let Some((at, (node, key))) = self.core.timers.pop() else { return };
        self.core.ledger.note_event(at, kind::TIMER, [u64::from(node.0), key]);
        match node.0.checked_sub(self.fabric.hosts) {
            None => self.hosts.timeout(&mut self.core, HostId(node.0), at, key),
            Some(s) => self.fabric.timeout(&mut self.core, SwitchId(s), key),
        }
    }

    /// Lets applications see messages and completions, in the order of their flows; then flows start, then ranks of jobs go on.
    ///
    /// A flow that follows completions at other hosts starts when a message from there would have reached its opener on an idle
    /// network, and not before its time.
    fn applications(&mut self) {
        let now = self.core.now;
        if !self.hosts.progress.is_empty() {
            return self.hosts.tell(&mut self.core, &mut self.traffic);
        }
        if !self.hosts.completed.is_empty() {
            let mut completed = std::mem::take(&mut self.hosts.completed);
            completed.sort_unstable_by_key(|spec| (spec.entry, spec.index));
            return completed.iter().for_each(|spec| self.complete(spec.completion(now)));
        }
        // In a part of the network these may be flows of others that have started a while ago.
        let until = now.min(self.starts_until);
        let starts = self.traffic.next_start().is_some_and(|at| at <= until);
        if starts {
            let Some(mut spec) = self.traffic.pop() else { return };
            spec.start = spec.start.max(self.hosts.informed_at(&self.core, &self.fabric, &spec));
            let key = (spec.start, spec.entry, spec.index);
            if spec.start <= until && self.informed.first_key_value().is_none_or(|(first, _)| key < *first) {
                return self.start(spec);
            }
            self.informed.insert(key, spec);
        }
        let informed = self.informed.first_key_value().is_some_and(|((at, ..), _)| *at <= until);
        if informed {
            if let Some((_, spec)) = self.informed.pop_first() {
                return self.start(spec);
            }
        }
        if starts {
            return; // another may start now, before ranks go on
        }
        let (hosts, core, fabric) = (&self.hosts, &self.core, &self.fabric);
        let woken = self.traffic.wake(now, |host, known| hosts.notified_at(core, fabric, host, known));
        if let Some((entry, rank)) = woken {
            self.core.ledger.note_event(now, kind::RANK, [u64::from(entry), u64::from(rank)]);
            self.hosts.write_messages(&mut self.core, &mut self.traffic);
        }
    }

    /// Completes a flow here: flows and entries that wait for it may start.
    fn complete(&mut self, completion: Completion) {
        self.traffic.on_complete(completion);
        if let Some(news) = &mut self.news {
            if completion.at <= self.starts_until {
                // Others start flows of this time already.
                self.core.stuck = Some("a flow completes as it starts".to_string());
            }
            news.push(completion);
        }
    }

    /// Starts a flow.
    fn start(&mut self, spec: FlowSpec) {
        self.core.ledger.note_event(self.core.now, kind::START, [u64::from(spec.entry), spec.index]);
        self.hosts.start(&mut self.core, &self.fabric, spec);
    }

    /// Checks that the last budget has moved time on, and that anything is left to do.
    fn still_going(&mut self) -> Pause {
        if self.stands_still() {
            return self.stuck("simulated time stands still");
        }
        if self.core.ledger.totals.events >= self.max_events {
            return self.stuck(&format!("max_events ({}) is reached", self.max_events));
        }
        Pause::Budget
    }

    /// True where more events have happened at the present time than a run may take for it.
    pub(crate) fn stands_still(&mut self) -> bool {
        let (since, events) = self.standstill;
        let (now, all) = (self.core.now, self.core.ledger.totals.events);
        if now > since {
            self.standstill = (now, all);
        }
        now <= since && all - events > self.stall_events
    }

    /// Looks for a deadlock of pauses at a fixed time, for which all else has happened.
    fn look_for_deadlock(&mut self) -> Option<Pause> {
        let before = std::mem::replace(&mut self.looked, self.next_look);
        self.next_look = self.next_look.saturating_add(DEADLOCK_PERIOD);
        if !self.pauses_last(before) {
            return None;
        }
        self.core.now = self.looked;
        let deadlock = self.deadlock(before)?;
        Some(self.stuck(&deadlock))
    }

    /// True where any port has been paused since a time at the latest: without one there is no deadlock.
    pub(crate) fn pauses_last(&self, since: Time) -> bool {
        self.core.gates.values().any(|gate| gate.closed != 0 && gate.closed_since() <= since)
    }

    /// Names the ports that wait for each other: a paused port leads to a switch with a paused port, and so on in a circle, and none of them has
    /// been open since a time.
    fn deadlock(&mut self, before: Time) -> Option<String> {
        let circle = self.fabric.circle_of_pauses(&mut self.core)?;
        let since = circle.iter().filter_map(|l| self.core.gates.get(l)).map(PortGate::closed_since).max()?;
        if since > before {
            return None;
        }
        let names: Vec<String> = circle.iter().map(|l| self.core.ports[*l].name.to_string()).collect();
        Some(format!("deadlock: paused ports have waited for each other since {since}: {}", names.join(", ")))
    }

    /// Ends a run that cannot go on, with up to ten waiting flows, and what each waits for, in the message.
    fn stuck(&mut self, what: &str) -> Pause {
        self.hosts.catch_up_all(&mut self.core);
        let mut message = format!("{what} at {}", self.core.now);
        let waiting = self.hosts.ends.describe_waiting(10, &self.core.ledger.host_names);
        if !waiting.is_empty() {
            message.push_str(&format!("; {} flows wait: {}", self.hosts.ends.open(), waiting.join("; ")));
        }
        let blocked = self.traffic.blocked();
        if !blocked.is_empty() {
            message.push_str(&format!("; not started: {}", blocked.iter().take(10).cloned().collect::<Vec<_>>().join("; ")));
        }
        Pause::Stuck(message)
    }

    #[inline(always)]
    fn handle(&mut self, slot: usize) {
        if slot >= self.core.arrivals {
            self.arrival(slot);
        } else {
            self.departure(slot);
        }
    }

    /// The packet at the head of a link has reached its far end.
    #[inline(always)]
    fn arrival(&mut self, slot: usize) {
        let core = &mut self.core;
        let l = LinkId((slot - core.arrivals) as u32);
        let link = &mut core.links[l];
        if link.served == link.head {
            // The sending end has not noted this departure: it does so before the packet is handed over.
            if link.flags & flag::DEQUEUE != 0 {
                self.note_departure(l);
            } else {
                core.catch_up(l);
            }
        }
        let core = &mut self.core;
        let (link, rings) = core.links.with_rings(l);
        let packet = link.front(rings.read()).packet;
        link.head = link.head.wrapping_add(1);
        if link.head != link.tail {
            core.wheel.set(slot as u32, Time::from_ps(link.front(rings.read()).arrive));
        } else if link.is_followed() {
            self.sender_goes_on(l);
        }
        let core = &mut self.core;
        let link = &core.links[l];
        // One place each where packets are forwarded and delivered: another, and the compiler would inline neither.
        let far_end = link.far_end();
        if !link.leads_to_a_plain_switch() {
            // Where mechanisms send messages, most links bring some, and most packets are and have none.
            if link.has_ingress_hook() && (!link.reads_only_messages() || core.pool.has_message(packet)) {
                return self.arrival_hooked(l, packet);
            }
            if let FarEnd::Host(h) = far_end {
                return self.hosts.deliver(core, h, packet);
            }
        }
        self.fabric.forward(core, far_end.switch(), l, packet);
    }

    /// The departure of the packet that arrives over a link has consequences, and has not been noted.
    #[inline(never)]
    fn note_departure(&mut self, l: LinkId) {
        self.core.catch_up(l);
        self.fabric.notify(&mut self.core);
    }

    /// Lets the sender of a link, whose last packet has arrived, go on: it went on in truth when that packet had left.
    #[inline(never)]
    fn sender_goes_on(&mut self, l: LinkId) {
        match self.core.ports[l].owner {
            Owner::Host(h) => self.hosts.catch_up_turns(&mut self.core, h),
            Owner::Switch(..) => {
                self.core.catch_up(l);
                self.fabric.notify(&mut self.core);
            }
        }
    }

    #[inline(never)]
    fn arrival_hooked(&mut self, l: LinkId, packet: PacketId) {
        // A call of its own: with one in the middle the whole would save its registers first.
        if self.core.inspects {
            return self.arrival_inspected(l, packet);
        }
        self.hook_arrival(l, packet);
    }

    #[cold]
    #[inline(never)]
    fn arrival_inspected(&mut self, l: LinkId, packet: PacketId) {
        if let Some(reason) = self.core.fault(l, packet) {
            return self.lose(l, packet, reason);
        }
        if self.core.ledger.observed {
            self.core.trace_crossing(l, packet);
        }
        self.hook_arrival(l, packet);
    }

    /// Removes a frame that does not arrive, or that its receiver discards, with all its content.
    #[cold]
    fn lose(&mut self, l: LinkId, packet: PacketId, reason: DropReason) {
        let core = &mut self.core;
        if let Some(message) = core.pool.detach(packet) {
            core.lose_message(l, &message, reason);
        }
        if core.pool.is_message(packet) {
            let message = core.pool.free_message(packet);
            return core.lose_message(l, &message, reason);
        }
        if core.pool[packet].kind != Kind::Control {
            return core.lose_packet(l, packet, reason);
        }
        core.count_lost_message(l, reason);
        // A message that travels as packets do is counted where its like are.
        match core.links[l].far_end() {
            FarEnd::Switch(s) => self.fabric.lose_clone(core, s, packet, reason),
            FarEnd::Host(_) => self.fabric.lose_clone(core, core.ports[l].owner.switch(), packet, reason),
        }
    }

    #[inline(always)]
    fn hook_arrival(&mut self, l: LinkId, packet: PacketId) {
        match self.core.links[l].far_end() {
            FarEnd::Switch(s) => self.fabric.arrive_hooked(&mut self.core, s, l, packet),
            FarEnd::Host(h) => self.hosts.deliver_hooked(&mut self.core, h, packet),
        }
    }

    /// A port whose departures are events has sent a packet, or a crossbar goes on.
    #[inline(never)]
    fn departure(&mut self, slot: usize) {
        self.core.ledger.totals.departures += 1; // no hop
        if let Some(slot) = slot.checked_sub(self.core.links.len()) {
            return self.fabric.crossbar_event(&mut self.core, slot);
        }
        let l = LinkId(slot as u32);
        match self.core.ports[l].owner {
            Owner::Host(h) => self.hosts.departure(&mut self.core, h),
            Owner::Switch(..) => self.fabric.departure(&mut self.core, l),
        }
    }
}

/// The inner loop: all events of the wheel up to the barrier. A function of its own, with a name that profilers and
/// instruction counters find.
#[no_mangle]
#[inline(never)]
pub extern "Rust" fn fanin_run_loop(world: &mut World, budget: u64) {
    match (world.prefetches, world.core.ledger.tables.clock.is_some()) {
        (true, false) => run_loop::<true, false>(world, budget),
        (false, false) => run_loop::<false, false>(world, budget),
        (true, true) => run_loop::<true, true>(world, budget),
        (false, true) => run_loop::<false, true>(world, budget),
    }
}

/// The loop with or without fetching ahead, which would take registers from networks that go without. `HELD`: rows are to know the event that
/// writes them. `budget` is one event at least.
#[inline(never)]
fn run_loop<const FETCHES: bool, const HELD: bool>(world: &mut World, budget: u64) {
    world.left = budget;
    while let Some((time, due)) = world.core.wheel.pop_until::<FETCHES>(world.core.barrier) {
        world.core.now = time;
        if FETCHES {
            world.prefetch();
        }
        if HELD {
            world.core.ledger.note_event(time, kind::SLOT, [u64::from(due.slot), 0]);
        }
        world.handle(due.slot as usize);
        world.left -= 1;
        if world.left == 0 {
            break;
        }
    }
    let totals = &mut world.core.ledger.totals;
    let (events, departures) = (budget - world.left, std::mem::take(&mut totals.departures));
    totals.events += events;
    totals.packet_hops += events - departures; // the rest are arrivals
}
