//! The world: all state of a run, and the loop that moves it.
//!
//! Order of events of the same time: (1) departures, by link; (2) arrivals, by link; (3) timeouts, by host, flow and side;
//! (4) applications, in order of the traffic entries; (5) sampling. Links are numbered in order of creation by the
//! topology, flows in order of creation, so no order depends on when an event was set.

use crate::fib::Fib;
use crate::host::{Conns, Host};
use crate::link::{flag, FarEnd, Link, Rings};
use crate::notify::Notify;
use crate::pool::{PacketId, Pool};
use crate::port::{Owner, Port};
use crate::record::Recorder;
use crate::stamp::Stamps;
use crate::trim::Trim;
use fanin_engine::{Table, Timers, Wheel};
use fanin_packet::Framing;
use fanin_switch::{PathChooser, SharedBuffer};
use fanin_telemetry::{Name, TableError};
use fanin_traffic::Traffic;
use fanin_transport::TransportConfig;
use fanin_units::{LinkId, Span, Stream, Time};

/// A switch's own state.
pub struct SwitchNode {
    pub name: Name,
    /// Distinguishes its hash from every other switch's.
    pub seed: u32,
    pub paths: PathChooser,
    pub rng: Stream,
    /// The buffer that its ports share, if they do.
    pub shared: Option<SharedBuffer>,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that crossed a link.
    pub packet_hops: u64,
    /// Events handled.
    pub events: u64,
    /// Departures among the events of the present budget.
    departures: u64,
    /// Packets that hosts gave to their NICs.
    pub sent: u64,
    /// Packets that reached their endpoint.
    pub delivered: u64,
    /// Packets that reached a host whose flow had ended.
    pub stray: u64,
    /// Packets dropped, all reasons.
    pub dropped: u64,
    /// Flows started.
    pub started: u64,
    /// Flows ended: complete or aborted.
    pub ended: u64,
}

/// A timeout's place in the order: host, then flow and side.
pub type TimerKey = (u32, u64);

/// Why a call of [`World::advance`] came back.
#[derive(Debug, PartialEq)]
pub enum Pause {
    /// The budget is used up; there is more to do.
    Budget,
    /// Nothing is left to do, or the stop time is reached.
    Done,
    /// It cannot go on; the message says who waits for what.
    Stuck(String),
}

/// A run in progress.
pub struct World {
    pub(crate) now: Time,
    pub(crate) stop: Time,
    pub(crate) wheel: Wheel,
    pub(crate) timers: Timers<TimerKey>,
    /// The earliest thing that is not in the wheel; the inner loop runs up to it.
    pub(crate) barrier: Time,
    /// Slots of departures are link numbers, those of arrivals follow from here on.
    pub(crate) arrivals: usize,
    pub(crate) links: Table<Link>,
    pub(crate) ports: Table<Port>,
    pub(crate) rings: Rings,
    pub(crate) pool: Pool,
    pub(crate) fib: Fib,
    pub(crate) switches: Table<SwitchNode>,
    pub(crate) cell: u32,
    /// Switches that a packet may cross.
    pub(crate) ttl: u8,
    pub(crate) hosts: Table<Host>,
    pub(crate) host_names: Vec<Name>,
    pub(crate) conns: Conns,
    pub(crate) transports: Table<(Name, TransportConfig)>,
    pub(crate) traffic: Traffic,
    /// The names of the traffic entries as numbers (FNV-1a 64).
    pub(crate) entry_keys: Vec<u64>,
    pub(crate) framing: Framing,
    pub(crate) seed: u64,
    pub(crate) fifo_nic: bool,
    pub(crate) next_app: Time,
    /// Whether anything is written down of packets that reach hosts or are dropped.
    pub(crate) observed: bool,
    /// Stamps, where packets carry them.
    pub(crate) stamps: Option<Box<Stamps>>,
    /// Drop notifications, where switches send them.
    pub(crate) notify: Option<Box<Notify>>,
    /// Trimming, where switches trim.
    pub(crate) trim: Option<Box<Trim>>,
    /// The ports that are watched, by their numbers.
    pub(crate) watched: Vec<LinkId>,
    pub(crate) sample_period: Span,
    pub(crate) next_sample: Time,
    pub(crate) recorder: Recorder,
    pub(crate) totals: Totals,
    /// The first table error; ends the run.
    pub(crate) failure: Option<TableError>,
    /// Events handled without time moving on, as far as has been looked.
    pub(crate) standstill: (Time, u64),
    /// After so many of them the run is taken to hang.
    pub(crate) stall_events: u64,
    pub(crate) max_events: u64,
}

impl World {
    /// Moves on by at most about `budget` events.
    ///
    /// # Errors
    /// When a result table cannot be written.
    pub fn advance(&mut self, budget: u64) -> Result<Pause, TableError> {
        let end = self.totals.events.saturating_add(budget).min(self.max_events);
        while self.totals.events < end {
            self.find_barrier();
            fanin_run_loop(self, end - self.totals.events);
            if let Some(error) = self.failure.take() {
                return Err(error);
            }
            if self.totals.events < end {
                if let Some(pause) = self.beyond_the_wheel() {
                    return Ok(pause);
                }
            }
        }
        Ok(self.still_going())
    }

    /// Counts so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Packets that exist now: queued, on a wire, or waiting at a NIC. At any moment
    /// sent = delivered + stray + dropped + in flight, where `sent` counts what NICs have sent. Frames with nothing but a
    /// notification in them are no packets.
    pub fn in_flight(&self) -> u64 {
        self.pool.in_flight() as u64
            - self.hosts.iter().map(|h| h.waiting_packets()).sum::<u64>()
            - self.notify.as_deref().map_or(0, |notify| notify.alone)
    }

    /// Simulated time reached.
    pub fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn find_barrier(&mut self) {
        self.next_app = self.traffic.next_start().unwrap_or(Time::MAX);
        self.barrier = self.timers.next().min(self.next_app).min(self.next_sample).min(self.stop);
    }

    /// The wheel has nothing up to the barrier: whatever stands there is next.
    fn beyond_the_wheel(&mut self) -> Option<Pause> {
        let barrier = self.barrier;
        let idle = self.conns.active() == 0 && self.next_app == Time::MAX;
        if idle && self.stop == Time::MAX {
            // A flow that waits for one that was aborted never starts.
            let all_started = self.traffic.blocked().is_empty();
            return Some(if all_started { Pause::Done } else { Pause::Stuck(self.who_waits("nothing is left to happen")) });
        }
        if self.wheel.is_empty() && self.timers.is_empty() && self.next_app == Time::MAX && self.stop == Time::MAX {
            return Some(Pause::Stuck(self.who_waits("nothing is left to happen")));
        }
        if barrier >= self.stop && self.timers.next() > barrier && self.next_app > barrier && self.next_sample > barrier {
            self.now = self.stop;
            return Some(Pause::Done);
        }
        self.now = barrier;
        self.totals.events += 1;
        if self.timers.next() == barrier {
            self.timeout();
        } else if self.next_app == barrier {
            self.start_next_flow();
        } else {
            self.sample();
        }
        None
    }

    /// The watchdog: whether the last budget has moved time on, and whether any is left.
    fn still_going(&mut self) -> Pause {
        let (since, events) = self.standstill;
        if self.now > since {
            self.standstill = (self.now, self.totals.events);
        } else if self.totals.events - events > self.stall_events {
            return Pause::Stuck(self.who_waits("simulated time stands still"));
        }
        if self.totals.events >= self.max_events {
            return Pause::Stuck(self.who_waits(&format!("max_events ({}) is reached", self.max_events)));
        }
        Pause::Budget
    }

    /// Names up to ten flows that wait, and for what.
    fn who_waits(&self, what: &str) -> String {
        let mut message = format!("{what} at {}", self.now);
        let waiting = self.conns.describe_waiting(10);
        if !waiting.is_empty() {
            message.push_str(&format!("; {} flows wait: {}", self.conns.active(), waiting.join("; ")));
        }
        let blocked = self.traffic.blocked();
        if !blocked.is_empty() {
            message.push_str(&format!("; not started: {}", blocked.iter().take(10).cloned().collect::<Vec<_>>().join("; ")));
        }
        message
    }

    /// Fetches what the next events need, a step of the chain link → ring entry → packet for each: in large fabrics a hop is
    /// memory latency, and the wheel knows what comes.
    #[inline(always)]
    fn look_ahead(&self) {
        let Some(slots) = self.wheel.next_slots() else { return };
        let link = |slot: u32| &self.links[slot as usize - if slot as usize >= self.arrivals { self.arrivals } else { 0 }];
        crate::link::prefetch(link(slots[2]));
        link(slots[1]).prefetch_front(&self.rings);
        self.pool.prefetch(link(slots[0]).front(&self.rings).packet);
    }

    #[inline(always)]
    fn handle(&mut self, slot: u32) {
        let slot = slot as usize;
        if slot >= self.arrivals {
            self.arrival(slot - self.arrivals);
        } else {
            self.departure(slot);
        }
    }

    /// The packet at the head of a link has reached its far end.
    #[inline(always)]
    fn arrival(&mut self, l: usize) {
        let link = &mut self.links[l];
        if link.served == link.head {
            // Nobody has looked at the queue since this packet left it.
            self.catch_up(l);
        }
        let link = &mut self.links[l];
        let packet = link.front(&self.rings).packet;
        link.head = link.head.wrapping_add(1);
        if link.head != link.tail {
            self.wheel.set((self.arrivals + l) as u32, Time::from_ps(link.front(&self.rings).arrive));
        }
        // One place each where packets are forwarded and delivered: another, and the compiler would inline neither.
        let far_end = link.far_end();
        if link.is_looked_at() && self.look_at_arrival(l, packet) {
            return;
        }
        match far_end {
            FarEnd::Switch(s) => self.forward(s, packet),
            FarEnd::Host(h) => self.deliver(h, packet),
        }
    }

    /// Drop notifications are taken off what arrives, trimmed packets and NACKs go their own way. True when nothing is left.
    #[inline(never)]
    fn look_at_arrival(&mut self, l: usize, packet: PacketId) -> bool {
        if self.trim.is_some() {
            self.deliver_trimmed(l, packet)
        } else {
            self.detach_notice(l, packet)
        }
    }

    /// A port whose departures are events has sent a packet.
    fn departure(&mut self, l: usize) {
        self.totals.departures += 1;
        match self.ports[l].owner {
            Owner::Host(h) => {
                self.hosts[h as usize].armed = false;
                self.run_nic(h);
            }
            Owner::Switch(_) => self.explicit_departure(l),
        }
    }

    /// Brings a FIFO port's queue up to now: whatever has begun serialisation since the last look leaves it.
    #[inline(always)]
    pub(crate) fn catch_up(&mut self, l: usize) {
        let link = &mut self.links[l];
        if link.flags & flag::DEQUEUE != 0 {
            return self.catch_up_dequeues(l);
        }
        let port = &mut self.ports[l];
        while let Some((_, entry)) = link.next_departure(&self.rings, self.now) {
            port.count_sent(entry.frame);
        }
    }

    #[inline(never)]
    fn catch_up_dequeues(&mut self, l: usize) {
        while let Some((start, entry)) = self.links[l].next_departure(&self.rings, self.now) {
            self.ports[l].count_sent(entry.frame);
            self.after_dequeue(l, start, entry.packet, true);
        }
    }

    /// Gives a packet to a port's serialiser or FIFO; all admission is done. The queue is up to now. `waited`: it comes out
    /// of a queue of its own (explicit departures).
    #[inline(always)]
    pub(crate) fn send(&mut self, l: usize, packet: u32, waited: bool) {
        let frame = self.pool[packet].frame;
        let link = &mut self.links[l];
        let now = self.now;
        let idle = link.free_at <= now.ps();
        if link.push(&mut self.rings, now, packet, frame) {
            self.wheel.set((self.arrivals + l) as u32, Time::from_ps(link.front(&self.rings).arrive));
        }
        if idle {
            self.ports[l].count_sent(frame);
            if link.flags & flag::DEQUEUE != 0 {
                self.after_dequeue(l, now, packet, waited);
            }
        }
    }

    /// Adds a timeout; the inner loop must not run past it.
    #[inline]
    pub(crate) fn set_timer(&mut self, at: Time, key: TimerKey) {
        self.timers.push(at, key);
        self.barrier = self.barrier.min(at);
    }

    /// Records the first table error; the run ends at the next look.
    pub(crate) fn check(&mut self, result: Result<(), TableError>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
            self.barrier = Time::ZERO;
        }
    }
}

/// The inner loop: all events of the wheel up to the barrier. A function of its own, with a name that profilers and
/// instruction counters find.
#[no_mangle]
#[inline(never)]
pub extern "Rust" fn fanin_run_loop(world: &mut World, budget: u64) {
    let mut left = budget;
    while left > 0 {
        let Some((time, slot)) = world.wheel.pop_until(world.barrier) else { break };
        world.now = time;
        left -= 1;
        world.look_ahead();
        world.handle(slot);
    }
    let (events, departures) = (budget - left, std::mem::take(&mut world.totals.departures));
    world.totals.events += events;
    world.totals.packet_hops += events - departures; // the rest are arrivals
}
