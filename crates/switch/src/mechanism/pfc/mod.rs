//! Priority flow control (PFC): a switch asks the neighbour whose packets take too much of its memory to pause a priority, before
//! it has to drop one. Source: IEEE 802.1Q §36 and Annex N, IEEE 802.3 Annex 31A and 31B.
//!
//! The memory is counted where packets come in: by port and priority. What each may hold is a reservation, then a share of a
//! common pool up to a threshold (XOFF); what still arrives until the neighbour has stopped goes into headroom. So a lossless
//! priority loses nothing as long as its headroom is what the link can deliver after XOFF. Other priorities are dropped there.

mod check;
mod held;
mod memory;
mod watchdog;

pub use watchdog::{StormAction, Watchdog};

use super::{
    Arrival, Claims, Context, Dropped, Effect, Effects, Hooks, Listens, Mechanism, Message, Messages, Node, PacketMemory,
    PauseFrames, Peaks, PortNo, PortSite, Profile, Site, Timed, Verdict,
};
use crate::{DropReason, Gate, Pause, Waiting, Watch, WatchdogTimes, PRIORITIES};
use check::needed;
use fanin_packet::{Control, Envelope, Kind, PacketId};
use fanin_params::{choice, counters, params, CounterDef, Cx, Ground, Setting};
use fanin_units::{BitRate, Bytes, Span, Time, TrafficClass};
use held::Held;
use memory::Memory;
use std::collections::BTreeSet;

params! {
    /// Fixed XOFF threshold for each port and priority.
    pub struct StaticXoff {
        /// Memory that packets of one priority from one neighbour may take, besides the reservation.
        pub bytes: Bytes = Bytes(100_000);
    }
}

params! {
    /// Dynamic XOFF threshold: each port and priority may take α times the free part of the pool. Source: DT.
    pub struct DynamicXoff {
        /// α: threshold as a multiple of the free part of the pool. Source: HPCC, its simulator (1/8).
        pub alpha: f64 = 0.125, in 0.001..=64.0;
    }
}

choice! {
    /// XOFF threshold, from which the neighbour is paused.
    pub enum Xoff {
        /// Fixed XOFF threshold for each port and priority.
        "static" => Static(StaticXoff),
        /// Dynamic XOFF threshold: each port and priority may take α times the free part of the pool. Source: DT.
        "dynamic" => Dynamic(DynamicXoff),
    }
}

params! {
    /// Separate pool of the lossy classes: neither kind takes the other's memory.
    pub struct LossyPool {
        /// Size of the pool, taken from `memory`.
        pub memory: Bytes = Bytes(2_000_000), in Bytes(1)..=Bytes(4_000_000_000);
        /// α: limit of one port and class, as a multiple of the pool's free part. Source: DT.
        pub alpha: f64 = 1.0, in 0.001..=64.0;
    }
}

params! {
    /// Priority flow control (PFC): lossless classes, by pausing the neighbours. Source: IEEE 802.1Q §36.
    pub struct PfcParams {
        /// Lossless classes, by their priority in PFC frames. Other classes drop when their share of the pool is used up.
        pub classes: Vec<u8> = vec![0, 1, 2, 3, 4, 5, 6, 7], in 0_u8..=7;
        /// Memory of a switch: reservations, headroom, the rest a pool. Source: DCQCN §4 (12 MB, a shared-buffer chip of 32
        /// ports).
        pub memory: Bytes = Bytes(12_000_000), in Bytes(1)..=Bytes(4_000_000_000);
        /// Reserved memory of each port and class, taken from `memory`.
        pub reserved: Bytes = Bytes(0);
        /// Separate pool for the other classes; if absent, they share the lossless one under the same XOFF threshold.
        pub lossy: Option<LossyPool>;
        /// Headroom of each port and lossless class: memory for packets that arrive after XOFF. If absent, what the link can
        /// deliver until the neighbour has stopped. Source: IEEE 802.1Q Annex N.
        pub headroom: Option<Bytes>;
        /// XOFF threshold, from which a neighbour is paused.
        pub xoff: Xoff = Xoff::Dynamic(DynamicXoff { alpha: 0.125 });
        /// Hysteresis: distance below XOFF at which the pause ends. Source: HPCC, its simulator (3 KB).
        pub xon_gap: Bytes = Bytes(3_000);
        /// Pause time in a PFC frame, in quanta of 512 bit times; asked for again after half of it. Source: IEEE 802.3
        /// §31B.2 (65,535 at most).
        pub quanta: u32 = 65_535, in 2..=65_535;
        /// Reaction time: from XOFF until the PFC frame is ready, plus the neighbour's time to obey it. Source: IEEE 802.3
        /// §31B.3.7 (60 quanta at 40 Gb/s: 0.8 us).
        pub response: Span = Span::ZERO, in Span::ZERO..=Span::from_ms(1);
        /// Largest frame on the links, by which headroom is computed. Source: IEEE 802.3 §3.2.7 (1518 bytes).
        pub max_frame: Bytes = Bytes(1_518), in Bytes(64)..=Bytes(65_535);
        /// Watchdog that ends overlong pauses of a class; if absent, the class waits.
        pub watchdog: Option<Watchdog>;
    }
}

impl PfcParams {
    /// A bit for each lossless class.
    fn lossless(&self) -> u8 {
        self.classes.iter().filter(|class| usize::from(**class) < PRIORITIES).fold(0, |all, class| all | 1 << class)
    }

    /// Headroom of one class at a port.
    fn headroom_at(&self, site: &Site, port: &PortSite) -> u64 {
        self.headroom.map_or_else(|| needed(self, site, port), Bytes::get)
    }
}

counters! {
    /// Activity of priority flow control.
    pub struct PfcCounts in "pfc" {
        /// Pauses requested, as a port and class reached XOFF.
        xoff,
        /// Pauses ended, as a port and class fell below XON.
        xon,
        /// Pauses requested again because they had to last.
        refreshed,
        /// Pauses forgotten because the link of the port went down, the port's own and those requested.
        forgotten,
        /// PFC frames sent by switches.
        frames_sent,
        /// PFC frames that switches received from their neighbours.
        frames_received,
        /// Lossless packets dropped because the headroom was full.
        dropped_lossless: failure,
        /// Lossy packets dropped because their share of the memory was used up.
        dropped_lossy: failure,
        /// Times that the watchdog found a class paused for too long.
        storms: failure,
        /// Storms that have ended.
        storms_over,
        /// Packets that the watchdog dropped.
        dropped_watchdog: failure,
    }
}

const PEAKS: &[CounterDef] = &[
    CounterDef::step("headroom_peak_bytes", "Most that one port and class had in its headroom."),
    CounterDef::step("memory_peak_bytes", "Most of its memory that a switch had in use."),
];

/// EtherType and opcode of PFC frames. Source: IEEE 802.3 §31 and Annex 31A.
const MAC_CONTROL: u16 = 0x8808;
const PFC: u16 = 0x0101;
/// Opcode 2, enable vector 2, eight times of 2.
const BODY: usize = 20;

impl DropReason {
    /// The headroom of a lossless class was full.
    pub const HEADROOM_FULL: DropReason = DropReason("headroom_full");
    /// The watchdog of a port drops a class whose pause did not end.
    pub const WATCHDOG: DropReason = DropReason("pfc_watchdog");
}

/// Body of a PFC frame with this request. Source: IEEE 802.3 §31B.3 and Annex 31A.
fn body(pause: &Pause) -> [u8; BODY] {
    let mut body = [0; BODY];
    body[..2].copy_from_slice(&PFC.to_be_bytes());
    for (priority, quanta) in pause.0.iter().enumerate() {
        let Some(quanta) = quanta else { continue };
        body[3] |= 1 << priority;
        body[4 + 2 * priority..][..2].copy_from_slice(&quanta.to_be_bytes());
    }
    body
}

/// PFC frame with this request, as its sender makes it.
fn message(pause: &Pause) -> Message {
    let bytes = body(pause);
    let envelope = Envelope { header: bytes.len() as u8, ttl: 1, kind: Kind::Control, ..Envelope::default() };
    Message { envelope, control: Control::new(MAC_CONTROL, &bytes) }
}

/// Request of a PFC frame; `None`: the body is no PFC frame.
fn read(body: &[u8]) -> Option<Pause> {
    let body: &[u8; BODY] = body.get(..BODY)?.try_into().ok()?;
    if u16::from_be_bytes([body[0], body[1]]) != PFC {
        return None;
    }
    let mut pause = Pause::default();
    for (priority, quanta) in pause.0.iter_mut().enumerate() {
        let at = 4 + 2 * priority;
        *quanta = (body[3] >> priority & 1 != 0).then(|| u16::from_be_bytes([body[at], body[at + 1]]));
    }
    Some(pause)
}

/// A port, and its link in the other direction.
#[derive(Debug)]
struct Port {
    rate: BitRate,
    /// Classes that the neighbour was asked to pause, a bit for each.
    asked: u8,
    /// Classes whose state the neighbour does not know yet, a bit for each.
    news: u8,
    /// Pauses of the port itself, which the neighbour asks for.
    gate: Gate,
    closed: u8,
    /// Time at which pauses are asked for again.
    refresh: Option<Time>,
    waiting: Waiting,
    /// Classes that have been paused since their queue was last empty, a bit for each.
    held_up: u8,
    watch: Watch,
}

/// Task at a time, at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// A pause of the port's own may end.
    Gate,
    /// A frame is ready to leave.
    Send,
    /// Pauses are asked for again.
    Refresh,
    /// The watchdog checks for a pause that has lasted too long, or a storm that is over.
    Watch,
}

/// Precision with which departures are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exact {
    /// Departures are not seen until a value is asked for: until then, packets that have left count as waiting.
    No,
    /// Departures are events while a class is paused or close to it; after this many packets that is checked again.
    For(u32),
    Always,
}

/// Number of waiting packets after which it is checked again that departures must be events.
const LOOK: u32 = 64;

/// PFC at one switch.
#[derive(Debug)]
pub struct Pfc {
    params: PfcParams,
    /// Times of the watchdog, where there is one.
    times: Option<WatchdogTimes>,
    ports: Vec<Port>,
    memory: Memory,
    /// Precision with which departures are seen: as events, if a class may have to pause or to go on at that instant.
    exact: Exact,
    tasks: BTreeSet<(Time, u16, Task)>,
    counts: PfcCounts,
}

impl Pfc {
    /// Asks the neighbour to pause or to go on, where one of both is due. Mostly none is.
    #[inline(always)]
    fn decide(&mut self, now: Time, port: PortNo, class: TrafficClass, fx: &mut Effects) {
        if !self.memory.is_lossless(class) {
            return;
        }
        let before = class.is_in(self.ports[port.index()].asked);
        let pause = self.memory.wants_pause(port, class, before);
        if pause != before {
            self.change(now, port, class, pause, fx);
        }
    }

    /// The neighbour is to pause, or to go on.
    #[inline(never)]
    fn change(&mut self, now: Time, port: PortNo, class: TrafficClass, pause: bool, fx: &mut Effects) {
        self.counts.xoff += u64::from(pause);
        self.counts.xon += u64::from(!pause);
        if pause {
            let behind = self.memory.mostly_for(port, class);
            let held_up = behind.is_some_and(|behind| class.is_in(self.ports[behind.index()].held_up));
            fx.push(Effect::Asks { port, class, behind, held_up });
        }
        let p = &mut self.ports[port.index()];
        p.asked ^= class.bit();
        let ready = p.news != 0; // a frame is on its way to the wire
        p.news |= class.bit();
        if !ready {
            // By a timer also at once: other ports may have a departure at this very instant, which comes first.
            self.at(now + self.params.response, port, Task::Send, fx);
        }
    }

    fn at(&mut self, time: Time, port: PortNo, task: Task, fx: &mut Effects) {
        self.tasks.insert((time, port.0, task));
        fx.push(Effect::Timer(time));
    }

    /// Sends the state of the classes of a port: those with news, and those that pause.
    fn send(&mut self, node: &mut dyn Node, port: PortNo, fx: &mut Effects) {
        let now = node.now();
        let p = &mut self.ports[port.index()];
        let mut pause = Pause::default();
        for class in TrafficClass::all(PRIORITIES) {
            let paused = class.is_in(p.asked);
            let asked = if paused { self.params.quanta as u16 } else { 0 };
            pause.0[class] = (paused || class.is_in(p.news)).then_some(asked);
        }
        p.news = 0;
        let again = (p.asked != 0).then(|| now + Pause::lasts(self.params.quanta as u16, p.rate) / 2);
        if let Some(before) = std::mem::replace(&mut p.refresh, again) {
            self.tasks.remove(&(before, port.0, Task::Refresh));
        }
        if let Some(time) = again {
            self.at(time, port, Task::Refresh, fx);
        }
        let message = message(&pause);
        self.counts.frames_sent += u64::from(!node.pause_waits(port));
        fx.push(Effect::Emit { port, message });
    }

    /// A port's own pauses have changed, or may have.
    fn update_gate(&mut self, now: Time, port: PortNo, fx: &mut Effects) {
        let lossless = self.params.lossless();
        let p = &mut self.ports[port.index()];
        let paused = p.gate.closed(now) & lossless;
        p.watch.paused(paused);
        let look = self.times.and_then(|times| p.watch.update(times, now, &p.waiting));
        let closed = paused & !p.watch.storm();
        if closed != p.closed {
            let empty =
                TrafficClass::all(PRIORITIES).filter(|class| p.waiting[*class] == 0).fold(0, |all, class| all | class.bit());
            p.held_up = p.held_up & !empty | closed;
            p.closed = closed;
            fx.push(Effect::Gate { port, closed });
        }
        if let Some(end) = p.gate.next_end(now) {
            self.at(end, port, Task::Gate, fx);
        }
        if let Some(time) = look {
            self.at(time, port, Task::Watch, fx);
        }
    }

    /// The watchdog looks at a port. In a storm its pauses are ignored; what waits is dropped, where that is the action.
    fn watch(&mut self, now: Time, port: PortNo, fx: &mut Effects) {
        let Some(watchdog) = &self.params.watchdog else { return };
        let p = &mut self.ports[port.index()];
        let (found, look) = p.watch.look(watchdog.times(), now, &p.waiting);
        self.counts.storms += u64::from(found.begun.count_ones());
        self.counts.storms_over += u64::from(found.over.count_ones());
        if found.begun != 0 && watchdog.action == StormAction::Drop {
            fx.push(Effect::Flush { port, classes: found.begun, reason: DropReason::WATCHDOG });
        }
        if let Some(time) = look {
            self.at(time, port, Task::Watch, fx);
        }
        self.update_gate(now, port, fx);
    }

    /// True if the watchdog drops packets of a class at a port.
    fn is_cut(&self, port: PortNo, class: TrafficClass) -> bool {
        let drops = self.params.watchdog.as_ref().is_some_and(|watchdog| watchdog.action == StormAction::Drop);
        drops && class.is_in(self.ports[port.index()].watch.storm())
    }

    /// A packet that came in by a port is about to wait for another.
    fn wait(&mut self, node: &mut dyn Node, p: &Arrival<'_>, (from, port): (PortNo, PortNo), fx: &mut Effects) -> Verdict {
        let class = p.envelope.class.min(TrafficClass(PRIORITIES as u8 - 1));
        let held = Held { port: from, output: port, class, bytes: p.envelope.frame, crossed: false };
        if self.exact == Exact::No {
            // Most of these are all right but for more memory in use than ever before, and that only as long as those are counted that have left:
            // these are looked for until it is clear.
            let calmly = loop {
                if self.memory.take_calmly(held) {
                    break true;
                }
                match node.next_departed() {
                    Some(packet) => self.gone(node, packet, fx),
                    None => break self.memory.take_at_peak(held),
                }
            };
            if calmly {
                held.keep(node, p.id);
                self.ports[port.index()].waiting[class] += 1;
                return Verdict::Pass;
            }
            if !self.memory.becomes_calm(held) {
                self.exact = Exact::For(LOOK);
                (0..).map(PortNo).zip(&self.ports).for_each(|(port, _)| fx.push(Effect::Watch(port)));
            }
        }
        if let Err(reason) = self.memory.take(held) {
            let lossless = self.memory.is_lossless(class);
            self.counts.dropped_lossless += u64::from(lossless);
            self.counts.dropped_lossy += u64::from(!lossless);
            return Verdict::Drop(reason);
        }
        held.keep(node, p.id);
        if self.exact != Exact::No {
            self.wait_exactly(port, fx);
        }
        let waits = &mut self.ports[port.index()];
        waits.waiting[class] += 1;
        if let Some(times) = self.times {
            if let Some(time) = waits.watch.update(times, node.now(), &waits.waiting) {
                self.at(time, port, Task::Watch, fx);
            }
        }
        if self.exact != Exact::No {
            self.decide(node.now(), from, class, fx);
        }
        Verdict::Pass
    }

    /// Counts a packet that waits for a port where its departure is seen at once.
    #[inline(never)]
    fn wait_exactly(&mut self, port: PortNo, fx: &mut Effects) {
        fx.push(Effect::Watch(port));
        if let Exact::For(more) = &mut self.exact {
            *more -= 1;
            if *more == 0 {
                let quiet = self.ports.iter().all(|port| port.asked == 0) && self.memory.is_low();
                self.exact = if quiet { Exact::No } else { Exact::For(LOOK) };
            }
        }
    }

    /// Learns of all packets that have left until now.
    #[inline(never)]
    fn settle(&mut self, node: &mut dyn Node, fx: &mut Effects) {
        while let Some(packet) = node.next_departed() {
            self.gone(node, packet, fx);
        }
    }

    /// A packet that may have taken memory is no longer here.
    fn gone(&mut self, node: &mut dyn Node, packet: PacketId, fx: &mut Effects) {
        let Some(held) = Held::take(node, packet) else { return };
        if let (true, Some(times)) = (self.uncount(held), self.times) {
            let p = &mut self.ports[held.output.index()];
            p.watch.update(times, node.now(), &p.waiting); // nothing that could be stuck any more
        }
        if self.exact != Exact::No {
            self.decide(node.now(), held.port, held.class, fx);
        }
    }
}

impl Pfc {
    /// Ends the count of a packet. True if no other of its class waits for the port.
    #[inline(always)]
    fn uncount(&mut self, held: Held) -> bool {
        if !held.crossed {
            self.memory.release(held);
        }
        let p = &mut self.ports[held.output.index()];
        let waiting = &mut p.waiting[held.class];
        *waiting -= 1;
        let last = *waiting == 0;
        if last {
            p.held_up &= p.closed | !held.class.bit();
        }
        last
    }
}

/// Settings of authors: ports have no bounds of their own, as memory is counted where packets come in.
fn authors(_at: &Ground) -> Vec<Setting> {
    vec![("switch.buffer", "\"unlimited\"".to_string())]
}

impl Mechanism for Pfc {
    type Params = PfcParams;
    type Counts = PfcCounts;

    const PROFILE: Profile = Profile {
        messages: Some(Messages { pauses: Some(PauseFrames { read, write: message }), ..Messages::of(&[MAC_CONTROL]) }),
        peaks: PEAKS,
        keeps_all: true,
        at_combined: true,
        authors,
        ..Profile::PLAIN
    };

    /// Claims: all classes but the lossless ones may be dropped; with a watchdog, all may.
    fn claims(params: &PfcParams) -> Claims {
        let lossless = params.lossless();
        Claims {
            lossless,
            drops: if params.watchdog.is_some() { u8::MAX } else { !lossless },
            packet_memory: Some(params.memory),
            ..Claims::default()
        }
    }

    /// Headroom and reservations, which nothing else may use.
    fn memory(params: &PfcParams, site: &Site) -> Option<Bytes> {
        let classes = u64::from(params.lossless().count_ones());
        let port = |port: &PortSite| classes * (params.headroom_at(site, port) + params.reserved.get());
        Some(Bytes(site.ports.iter().map(port).sum()))
    }

    fn sizes(params: &PfcParams, site: &Site) -> Vec<(&'static str, Bytes)> {
        check::sizes(params, site)
    }

    fn new(params: &PfcParams, site: &Site) -> Option<Self> {
        let headroom = site.ports.iter().map(|port| params.headroom_at(site, port)).collect();
        let port = |port: &PortSite| Port {
            rate: port.rate,
            asked: 0,
            news: 0,
            gate: Gate::default(),
            closed: 0,
            refresh: None,
            waiting: Waiting::default(),
            held_up: 0,
            watch: Watch::default(),
        };
        Some(Pfc {
            params: params.clone(),
            times: params.watchdog.as_ref().map(Watchdog::times),
            ports: site.ports.iter().map(port).collect(),
            memory: Memory::new(params, headroom),
            exact: if params.watchdog.is_some() || site.combined { Exact::Always } else { Exact::No },
            tasks: BTreeSet::new(),
            counts: PfcCounts::default(),
        })
    }

    fn check(params: &PfcParams, context: &Context<'_>, cx: &mut Cx) {
        check::check(params, context, cx);
    }

    fn hooks(&self) -> Hooks {
        // The watchdog drops also what finds its port idle.
        let offers = if self.params.watchdog.is_some() { Hooks::OFFER } else { Hooks::QUEUE };
        offers.with(Hooks::DROP).with(Hooks::DEPARTED).with(Hooks::MESSAGES).with(Hooks::GATES).with(Hooks::CROSSING)
    }

    fn counts(&self) -> PfcCounts {
        self.counts
    }

    fn on_offer(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, fx: &mut Effects) -> Verdict {
        let class = p.envelope.class.min(TrafficClass(PRIORITIES as u8 - 1));
        if self.is_cut(port, class) {
            self.gone(node, p.id, fx);
            return Verdict::Drop(DropReason::WATCHDOG);
        }
        let open = !class.is_in(self.ports[port.index()].closed);
        if p.from.is_none() && Held::of(node, p.id).is_some() {
            fx.push(Effect::Watch(port)); // it was held, and takes memory until it is seen to leave
        }
        let Some(from) = p.from else { return Verdict::Pass };
        // A packet that another port of the switch has refused, or that a mechanism has sent here instead.
        self.gone(node, p.id, fx);
        // One that finds its port idle goes onto the wire and takes no memory.
        if open && node.is_idle(port) {
            return Verdict::Pass;
        }
        self.wait(node, p, (from, port), fx)
    }

    fn on_drop(&mut self, node: &mut dyn Node, dropped: &Dropped<'_>, fx: &mut Effects) {
        self.counts.dropped_watchdog += u64::from(dropped.reason == DropReason::WATCHDOG);
        self.gone(node, dropped.packet, fx);
    }

    /// Ends the pauses of a link that goes down, in both directions. When it works again, who has too much in memory asks anew.
    fn on_link(&mut self, node: &mut dyn Node, port: PortNo, up: bool, fx: &mut Effects) {
        let now = node.now();
        self.settle(node, fx);
        if up {
            return TrafficClass::all(PRIORITIES).for_each(|class| self.decide(now, port, class, fx));
        }
        let p = &mut self.ports[port.index()];
        let paused = p.gate.closed(now) & self.params.lossless();
        self.counts.forgotten += u64::from(p.asked.count_ones() + paused.count_ones());
        (p.asked, p.news, p.gate) = (0, 0, Gate::default());
        if let Some(refresh) = p.refresh.take() {
            self.tasks.remove(&(refresh, port.0, Task::Refresh));
        }
        self.update_gate(now, port, fx);
    }
}

impl PacketMemory for Pfc {
    fn breaks_deadlocks(&self) -> bool {
        self.params.watchdog.is_some()
    }

    fn waits_behind(&self, from: PortNo, class: TrafficClass) -> Vec<PortNo> {
        self.memory.outputs(from, class).map(|(port, _)| port).collect()
    }

    #[inline]
    fn kept(&self, from: Option<PortNo>, port: PortNo, fetch: &dyn Fn(*const u8)) {
        fetch(self.ports.as_ptr().wrapping_add(port.index()).cast());
        if let Some(from) = from {
            fetch(self.memory.address(from));
        }
    }

    /// A packet that another mechanism holds takes memory as one that waits for the wire does.
    fn on_taken(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, fx: &mut Effects) -> Verdict {
        match p.from {
            Some(from) if Held::of(node, p.id).is_none() => self.wait(node, p, (from, port), fx),
            _ => Verdict::Pass,
        }
    }

    /// Takes memory where departures are not seen until a value is asked for: nobody is close to a pause then.
    #[inline(always)]
    fn take_calmly(&mut self, envelope: &Envelope, from: PortNo, port: PortNo) -> Option<u64> {
        if self.exact != Exact::No {
            return None;
        }
        let class = envelope.class.min(TrafficClass(PRIORITIES as u8 - 1));
        let held = Held { port: from, output: port, class, bytes: envelope.frame, crossed: false };
        self.memory.take_calmly(held).then(|| {
            self.ports[port.index()].waiting[class] += 1;
            held.note()
        })
    }

    /// Gives memory back where nobody is close to a pause: no neighbour is to go on, and no watchdog looks.
    #[inline(always)]
    fn leave_calmly(&mut self, note: u64) -> bool {
        if self.exact != Exact::No {
            return false;
        }
        if let Some(held) = Held::read(note) {
            self.uncount(held);
        }
        true
    }

    /// Ends the count of a packet at its input, when it has crossed.
    fn on_crossing(&mut self, node: &mut dyn Node, packet: PacketId, _from: PortNo, _to: PortNo, fx: &mut Effects) {
        if let Some(held) = Held::of(node, packet) {
            Held { crossed: true, ..held }.keep(node, packet);
            self.memory.release(held);
            self.decide(node.now(), held.port, held.class, fx);
        }
    }

    fn on_departed(&mut self, node: &mut dyn Node, packet: PacketId, fx: &mut Effects) {
        self.gone(node, packet, fx);
    }
}

impl Peaks for Pfc {
    fn peaks(&self) -> Vec<u64> {
        self.memory.peaks()
    }
}

impl Listens for Pfc {
    fn on_message(&mut self, node: &mut dyn Node, from: PortNo, message: &Message, fx: &mut Effects) {
        let Some(pause) = read(message.body()) else { return };
        self.counts.frames_received += 1;
        self.settle(node, fx);
        let p = &mut self.ports[from.index()];
        p.gate.on_pause(node.now(), p.rate, &pause);
        self.update_gate(node.now(), from, fx);
    }
}

impl Timed for Pfc {
    fn on_timer(&mut self, node: &mut dyn Node, fx: &mut Effects) {
        let now = node.now();
        self.settle(node, fx);
        while let Some((time, port, task)) = self.tasks.first().copied().filter(|(time, ..)| *time <= now) {
            self.tasks.remove(&(time, port, task));
            let port = PortNo(port);
            match task {
                Task::Gate => self.update_gate(now, port, fx),
                Task::Send => self.send(node, port, fx),
                Task::Refresh => {
                    self.ports[port.index()].refresh = None;
                    self.counts.refreshed += 1;
                    self.send(node, port, fx);
                }
                Task::Watch => self.watch(now, port, fx),
            }
        }
    }
}

#[cfg(test)]
mod tests;
