//! Priority flow control (PFC): a switch asks the neighbour whose packets take too much of its memory to pause a priority, before
//! it has to drop one. Source: IEEE 802.1Q §36 and Annex N, IEEE 802.3 Annex 31A and 31B.
//!
//! The memory is counted where packets come in: by port and priority. What each may hold is a reservation, then a share of a
//! common pool up to a threshold (XOFF); what still arrives until the neighbour has stopped goes into headroom. So a lossless
//! priority loses nothing as long as its headroom is what the link can deliver after XOFF. Other priorities are dropped there.

use super::{
    message_frame, Arrival, Dropped, Effect, Effects, Hooks, Mechanism, Message, Node, PortNo, PortSite, Site, Surroundings,
    Verdict,
};
use crate::{DropReason, Gate, Pause, PRIORITIES, QUANTUM_BITS};
use fanin_packet::{Control, Envelope, Kind, PacketId};
use fanin_params::{choice, counters, params, CounterDef, Cx, Param};
use fanin_units::{BitRate, Bytes, Span, Time};
use std::collections::BTreeSet;

params! {
    /// A fixed amount for each port and priority.
    pub struct StaticXoff {
        /// What packets of one priority from one neighbour may take, beside the reservation.
        pub bytes: Bytes = Bytes(100_000);
    }
}

params! {
    /// A share of what is free: each port and priority may take α times what nobody uses of the pool. Source: DT.
    pub struct DynamicXoff {
        /// α. Source: HPCC, its simulator (1/8).
        pub alpha: f64 = 0.125, in 0.001..=64.0;
    }
}

choice! {
    /// From what on the neighbour has to pause.
    pub enum Xoff {
        /// A fixed amount.
        "static" => Static(StaticXoff),
        /// A share of what is free.
        "dynamic" => Dynamic(DynamicXoff),
    }
}

params! {
    /// Priority flow control: lossless classes, by pauses of the neighbours. Source: IEEE 802.1Q §36.
    pub struct PfcParams {
        /// Classes that lose nothing; the number of a class is its priority in PFC frames. The others are dropped where their share
        /// of the pool is used up.
        pub classes: Vec<u8> = vec![0, 1, 2, 3, 4, 5, 6, 7], in 0_u8..=7;
        /// Memory of a switch: reservations, headroom, and a pool of what is left. Source: DCQCN §4 (12 MB, a shared-buffer chip of 32
        /// ports).
        pub memory: Bytes = Bytes(12_000_000), in Bytes(1)..=Bytes(4_000_000_000);
        /// Of it, for each port and class.
        pub reserved: Bytes = Bytes(0);
        /// For each port and lossless class, beside the rest: what may arrive after XOFF. Absent: what the link can deliver until the
        /// neighbour has stopped, by its rate and length. Source: IEEE 802.1Q Annex N.
        pub headroom: Option<Bytes>;
        /// From what on a neighbour has to pause.
        pub xoff: Xoff = Xoff::Dynamic(DynamicXoff { alpha: 0.125 });
        /// How far below XOFF it may send again. Source: HPCC, its simulator (3 KB).
        pub xon_gap: Bytes = Bytes(3_000);
        /// Time to pause that frames ask for, in quanta of 512 bit times; a pause that has to last is asked for again when half of it
        /// is over. Source: IEEE 802.3 §31B.2 (65,535 at most).
        pub quanta: u32 = 65_535, in 2..=65_535;
        /// From a packet's reaching XOFF to its frame's being ready, and what the neighbour takes to obey: both together. Source: IEEE
        /// 802.3 §31B.3.7 (60 quanta at 40 Gb/s: 0.8 us).
        pub response: Span = Span::ZERO, in Span::ZERO..=Span::from_ms(1);
        /// The largest frame on the links, for the headroom. Source: IEEE 802.3 §3.2.7 (1518 bytes).
        pub max_frame: Bytes = Bytes(1_518), in Bytes(64)..=Bytes(65_535);
    }
}

counters! {
    /// What priority flow control did.
    pub struct PfcCounts in "pfc" {
        /// Times that a port and class reached XOFF: pauses asked for.
        xoff,
        /// Times that one fell below XON again.
        xon,
        /// Pauses asked for again as they had to last.
        refreshed,
        /// PFC frames sent by switches.
        frames_sent,
        /// PFC frames that switches got from their neighbours.
        frames_received,
        /// Lossless packets dropped as the headroom was full.
        dropped_lossless: failure,
        /// Other packets dropped as their share of the memory was used up.
        dropped_lossy: failure,
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
}

/// A PFC frame's body. Source: IEEE 802.3 §31B.3 and Annex 31A.
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

/// What a PFC frame asks for; `None`: it is none.
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

/// What a link can deliver from the moment on at which a switch wants its neighbour to pause, the packet that made it so included:
/// while the frame waits for one that is being sent, is sent itself, crosses the link, until the neighbour has sent the frame that it has
/// begun, and that has crossed the link. Source: IEEE 802.1Q Annex N.
fn needed(params: &PfcParams, port: &PortSite, pause_frame: u16) -> u64 {
    let full = params.max_frame.get();
    let gap = u64::from(port.overhead);
    let on_the_wire = port.rate.time_to_send(Bytes(2 * (full + gap) + u64::from(pause_frame) + gap));
    full + port.rate.bytes_in(on_the_wire + port.round_trip + params.response).get()
}

/// What packets of one class from one neighbour take.
#[derive(Clone, Copy, Debug, Default)]
struct Ingress {
    /// Of reservation and pool.
    used: u64,
    headroom: u64,
    /// The neighbour was asked to pause.
    paused: bool,
}

/// A packet that takes memory.
#[derive(Clone, Copy, Debug)]
struct Held {
    port: PortNo,
    class: u8,
    bytes: u16,
}

/// A port and the link that comes in there.
#[derive(Debug)]
struct Port {
    rate: BitRate,
    /// Headroom of each lossless class.
    headroom: u64,
    ingress: [Ingress; PRIORITIES],
    /// Classes whose state the neighbour does not know yet, a bit for each.
    news: u8,
    /// Its own pauses, which the neighbour asks for.
    gate: Gate,
    closed: u8,
    /// When pauses are asked for again.
    refresh: Option<Time>,
}

/// What happens at a time, at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// A pause of its own may end.
    Gate,
    /// A frame is ready to leave.
    Send,
    /// Pauses are asked for again.
    Refresh,
}

/// PFC at one switch.
#[derive(Debug)]
pub struct Pfc {
    params: PfcParams,
    /// A bit for each lossless class.
    lossless: u8,
    ports: Vec<Port>,
    /// By packet; absent where it takes no memory.
    held: Vec<Option<Held>>,
    /// Bytes of the pool, and what is used of it.
    pool: u64,
    pool_used: u64,
    /// Used in all.
    used: u64,
    tasks: BTreeSet<(Time, u16, Task)>,
    counts: PfcCounts,
    headroom_peak: u64,
    used_peak: u64,
}

impl Pfc {
    fn is_lossless(&self, class: u8) -> bool {
        self.lossless >> class & 1 != 0
    }

    /// What one port and class may take of the pool now.
    fn threshold(&self) -> u64 {
        let free = self.pool - self.pool_used.min(self.pool);
        match &self.params.xoff {
            Xoff::Static(xoff) => xoff.bytes.get().min(self.pool),
            Xoff::Dynamic(xoff) => (xoff.alpha * free as f64) as u64,
        }
    }

    /// What an amount takes of the pool beside its reservation.
    fn shared(&self, used: u64) -> u64 {
        used.saturating_sub(self.params.reserved.get())
    }

    fn set_used(&mut self, port: PortNo, class: u8, used: u64) {
        let before = self.ports[port.index()].ingress[usize::from(class)].used;
        self.pool_used = self.pool_used + self.shared(used) - self.shared(before);
        self.used = self.used + used - before;
        self.ports[port.index()].ingress[usize::from(class)].used = used;
    }

    /// A packet is about to wait: whether there is room for it.
    fn take(&mut self, held: Held) -> Result<(), DropReason> {
        let Held { port, class, bytes } = held;
        let (at, bytes) = (self.ports[port.index()].ingress[usize::from(class)], u64::from(bytes));
        let more = self.shared(at.used + bytes);
        let fits = self.pool_used + more - self.shared(at.used) <= self.pool;
        if at.headroom == 0 && (more == 0 || more <= self.threshold() && fits) {
            self.set_used(port, class, at.used + bytes);
        } else if !self.is_lossless(class) {
            self.counts.dropped_lossy += 1;
            return Err(DropReason::DYNAMIC_THRESHOLD);
        } else if at.headroom + bytes <= self.ports[port.index()].headroom {
            let ingress = &mut self.ports[port.index()].ingress[usize::from(class)];
            ingress.headroom += bytes;
            self.headroom_peak = self.headroom_peak.max(ingress.headroom);
            self.used += bytes;
        } else {
            self.counts.dropped_lossless += 1;
            return Err(DropReason::HEADROOM_FULL);
        }
        self.used_peak = self.used_peak.max(self.used);
        Ok(())
    }

    /// A packet has left.
    fn release(&mut self, held: Held) {
        let Held { port, class, bytes } = held;
        let ingress = &mut self.ports[port.index()].ingress[usize::from(class)];
        let from_headroom = ingress.headroom.min(u64::from(bytes));
        ingress.headroom -= from_headroom;
        let rest = u64::from(bytes) - from_headroom;
        let used = ingress.used - rest;
        self.used -= from_headroom;
        self.set_used(port, class, used);
    }

    /// Asks the neighbour to pause or to go on, where one of both is due.
    fn decide(&mut self, now: Time, port: PortNo, class: u8, fx: &mut Effects) {
        if !self.is_lossless(class) {
            return;
        }
        let ingress = self.ports[port.index()].ingress[usize::from(class)];
        let (shared, threshold) = (self.shared(ingress.used), self.threshold());
        let pause = match ingress.paused {
            false => ingress.headroom > 0 || shared > 0 && shared >= threshold,
            true => ingress.headroom > 0 || shared > 0 && shared + self.params.xon_gap.get() > threshold,
        };
        if pause == ingress.paused {
            return;
        }
        self.counts.xoff += u64::from(pause);
        self.counts.xon += u64::from(!pause);
        let p = &mut self.ports[port.index()];
        p.ingress[usize::from(class)].paused = pause;
        let ready = p.news != 0; // a frame is on its way to the wire
        p.news |= 1 << class;
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
    fn send(&mut self, now: Time, port: PortNo, fx: &mut Effects) {
        let p = &mut self.ports[port.index()];
        let mut pause = Pause::default();
        for (class, quanta) in pause.0.iter_mut().enumerate() {
            let paused = p.ingress[class].paused;
            let asked = if paused { self.params.quanta as u16 } else { 0 };
            *quanta = (paused || p.news >> class & 1 != 0).then_some(asked);
        }
        p.news = 0;
        let pauses = p.ingress.iter().any(|ingress| ingress.paused);
        let again = pauses.then(|| now + Pause::lasts(self.params.quanta as u16, p.rate) / 2);
        if let Some(before) = std::mem::replace(&mut p.refresh, again) {
            self.tasks.remove(&(before, port.0, Task::Refresh));
        }
        if let Some(time) = again {
            self.at(time, port, Task::Refresh, fx);
        }
        let bytes = body(&pause);
        let envelope = Envelope { header: bytes.len() as u8, ttl: 1, kind: Kind::Control, ..Envelope::default() };
        let message = Message { envelope, control: Control::new(MAC_CONTROL, &bytes) };
        self.counts.frames_sent += 1;
        fx.push(Effect::Emit { port, message });
    }

    /// A port's own pauses have changed, or may have.
    fn update_gate(&mut self, now: Time, port: PortNo, fx: &mut Effects) {
        let p = &mut self.ports[port.index()];
        let closed = p.gate.closed(now) & self.lossless;
        if closed != p.closed {
            p.closed = closed;
            fx.push(Effect::Gate { port, closed });
        }
        if let Some(end) = p.gate.next_end(now) {
            self.at(end, port, Task::Gate, fx);
        }
    }

    /// A packet that may have taken memory is no longer here.
    fn gone(&mut self, now: Time, packet: PacketId, fx: &mut Effects) {
        let Some(held) = self.held.get_mut(packet as usize).and_then(Option::take) else { return };
        self.release(held);
        self.decide(now, held.port, held.class, fx);
    }
}

impl Mechanism for Pfc {
    type Params = PfcParams;
    type Counts = PfcCounts;

    const ETHER_TYPES: &'static [u16] = &[MAC_CONTROL];
    const PEAKS: &'static [CounterDef] = PEAKS;

    fn new(params: &PfcParams, site: &Site) -> Option<Self> {
        let frame = message_frame(&site.framing, BODY as u8);
        let classes = Self::lossless(params);
        let port = |port: &PortSite| Port {
            rate: port.rate,
            headroom: params.headroom.map_or_else(|| needed(params, port, frame), Bytes::get),
            ingress: Default::default(),
            news: 0,
            gate: Gate::default(),
            closed: 0,
            refresh: None,
        };
        let ports: Vec<Port> = site.ports.iter().map(port).collect();
        let headroom: u64 = ports.iter().map(|port| port.headroom).sum::<u64>() * u64::from(u8::count_ones(classes));
        let reserved = params.reserved.get() * (ports.len() * PRIORITIES) as u64;
        Some(Pfc {
            params: params.clone(),
            lossless: classes,
            pool: params.memory.get().saturating_sub(headroom + reserved),
            ports,
            held: Vec::new(),
            pool_used: 0,
            used: 0,
            tasks: BTreeSet::new(),
            counts: PfcCounts::default(),
            headroom_peak: 0,
            used_peak: 0,
        })
    }

    const KEEPS_ALL: bool = true;

    fn lossless(params: &PfcParams) -> u8 {
        params.classes.iter().fold(0, |all, class| all | 1 << class)
    }

    fn check(params: &PfcParams, around: &Surroundings<'_>, cx: &mut Cx) {
        let warn = |cx: &mut Cx, message: String, suggestion: &str| {
            cx.warn(None, message, None).suggestion = Some(suggestion.to_string());
        };
        if !around.unlimited {
            let remedy = "switch.buffer = { kind = \"unlimited\" }: PFC counts the memory itself, where packets come in";
            warn(cx, "loses packets all the same where a port has no room".into(), remedy);
        }
        if around.fifo_nics {
            warn(
                cx,
                "does not stop hosts: NICs that are one queue, first in, first out, ignore pauses".into(),
                "host.nic = \"fair\"",
            );
        }
        if around.all_traffic && !around.classes_in_use.iter().any(|class| params.classes.contains(class)) {
            cx.key("classes", |cx| {
                let used: Vec<String> = around.classes_in_use.iter().map(ToString::to_string).collect();
                let value = params.classes.to_value().into();
                let message = format!("names no class of the traffic, which is of class {}", used.join(", "));
                cx.warn(Some(&value), message, None).severity
            });
        }
        let deaf = around.sites.iter().flat_map(|site| site.ports.iter().map(move |port| (site, port)));
        let deaf = deaf.filter(|(_, port)| !port.to_host && !port.peer_runs.contains(&"pfc"));
        if let Some((site, port)) = deaf.clone().next() {
            let others = match deaf.count() - 1 {
                0 => String::new(),
                more => format!(", and {more} others"),
            };
            let message =
                format!("may lose packets: {}, a neighbour of {}, has no PFC and does not pause{others}", port.peer, site.name);
            warn(cx, message, "PFC at all switches");
        }
        // A frame that asks again leaves after half of the time, and may wait for a full frame and take its own time then.
        let gap = u64::from(around.framing.gap);
        let late = params.max_frame.get() + u64::from(message_frame(&around.framing, BODY as u8)) + 2 * gap;
        let least = (2 * late * 8).div_ceil(QUANTUM_BITS);
        if u64::from(params.quanta) < least {
            cx.key("quanta", |cx| {
                let message =
                    "is too short: a frame that asks again comes after the pause has ended, so lossless packets are lost";
                cx.error(Some(&params.quanta.to_value().into()), message, Some(format!("from {least} to 65535"))).severity
            });
        }
        for transport in around.transports.iter().filter(|transport| transport.bursts) {
            let message = format!("does not stop what transport {} has given to the NIC at once", transport.name);
            warn(cx, message, "tso = false, or more headroom");
        }
        if let Some(circle) = (around.circle)() {
            let message = format!("may block itself for ever: routes go around in a circle, {}", circle.join(", "));
            warn(cx, message, "routes that go up and then down, as in fat trees");
        }
        if around.marking_drops {
            cx.warn(None, "does not keep marking from dropping packets of lossless classes", None);
        }
        if params.classes.is_empty() {
            cx.key("classes", |cx| cx.error(None, "names no class", Some("at least one of 0 to 7".into())).severity);
        }
        let largest = around.transports.iter().map(|t| u64::from(t.mtu) + u64::from(t.telemetry) + u64::from(around.framing.header)).max();
        let largest = largest.map(|bytes| bytes + u64::from(around.trailer));
        if let Some(bytes) = largest.filter(|bytes| *bytes > params.max_frame.get() && params.headroom.is_none()) {
            cx.key("max_frame", |cx| {
                let message =
                    format!("is less than the largest frame of the traffic, {bytes} B: the headroom is too small by as much");
                cx.error(Some(&params.max_frame.to_value().into()), message, Some(format!("at least {bytes} B"))).severity
            });
        }
        for site in around.sites {
            let frame = message_frame(&site.framing, BODY as u8);
            let all = |port: &PortSite| params.headroom.map_or_else(|| needed(params, port, frame), Bytes::get);
            let headroom: u64 = site.ports.iter().map(all).sum::<u64>() * params.classes.len() as u64;
            let fixed = headroom + params.reserved.get() * (site.ports.len() * PRIORITIES) as u64;
            if fixed >= params.memory.get() {
                cx.key("memory", |cx| {
                    let message = format!(
                        "leaves no pool at {}: headroom and reservations of {} ports and {} lossless classes take {fixed} B",
                        site.name,
                        site.ports.len(),
                        params.classes.len()
                    );
                    let value = params.memory.to_value().into();
                    cx.error(Some(&value), message, Some("more memory, fewer classes, or less headroom".into())).severity
                });
                break;
            }
        }
        let short = around.sites.iter().flat_map(|site| site.ports.iter().map(move |port| (site, port)));
        let short = short.map(|(site, port)| (needed(params, port, message_frame(&site.framing, BODY as u8)), site, port));
        if let (Some(given), Some((need, site, port))) = (params.headroom, short.max_by_key(|(need, ..)| *need)) {
            if given.get() < need {
                cx.key("headroom", |cx| {
                    let missing = need - given.get();
                    let message = format!(
                        "may lose packets: what {} can send to {} after XOFF is up to {need} B, {missing} B more",
                        port.peer, site.name
                    );
                    cx.warn(Some(&given.to_value().into()), message, None).suggestion =
                        Some(format!("at least {need} B, or none"));
                });
            }
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks::OFFER.with(Hooks::DROP).with(Hooks::EGRESS).with(Hooks::MESSAGES).with(Hooks::GATES)
    }

    fn counts(&self) -> PfcCounts {
        self.counts
    }

    fn peaks(&self) -> Vec<u64> {
        vec![self.headroom_peak, self.used_peak]
    }

    fn on_offer(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, fx: &mut Effects) -> Verdict {
        let class = p.envelope.class.min(PRIORITIES as u8 - 1);
        let open = self.ports[port.index()].closed >> class & 1 == 0;
        // A packet that finds its port idle goes onto the wire and takes no memory.
        let Some(from) = p.from.filter(|_| !open || !node.is_idle(port)) else { return Verdict::Pass };
        // A packet that another port of the switch has refused.
        self.gone(node.now(), p.id, fx);
        let held = Held { port: from, class, bytes: p.envelope.frame };
        if let Err(reason) = self.take(held) {
            return Verdict::Drop(reason);
        }
        let place = p.id as usize;
        if self.held.len() <= place {
            self.held.resize(place + 1, None);
        }
        self.held[place] = Some(held);
        fx.push(Effect::Watch(port));
        self.decide(node.now(), from, class, fx);
        Verdict::Pass
    }

    fn on_egress(&mut self, node: &mut dyn Node, packet: PacketId, _port: PortNo, fx: &mut Effects) {
        self.gone(node.now(), packet, fx);
    }

    fn on_drop(&mut self, node: &mut dyn Node, dropped: &Dropped<'_>, fx: &mut Effects) {
        self.gone(node.now(), dropped.packet, fx);
    }

    fn on_message(&mut self, node: &mut dyn Node, from: PortNo, message: &Message, fx: &mut Effects) {
        let Some(pause) = read(message.body()) else { return };
        self.counts.frames_received += 1;
        let p = &mut self.ports[from.index()];
        p.gate.on_pause(node.now(), p.rate, &pause);
        self.update_gate(node.now(), from, fx);
    }

    fn on_timer(&mut self, node: &mut dyn Node, fx: &mut Effects) {
        let now = node.now();
        while let Some((time, port, task)) = self.tasks.first().copied().filter(|(time, ..)| *time <= now) {
            self.tasks.remove(&(time, port, task));
            let port = PortNo(port);
            match task {
                Task::Gate => self.update_gate(now, port, fx),
                Task::Send => self.send(now, port, fx),
                Task::Refresh => {
                    self.ports[port.index()].refresh = None;
                    self.counts.refreshed += 1;
                    self.send(now, port, fx);
                }
            }
        }
    }

    fn pause(body: &[u8]) -> Option<Pause> {
        read(body)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bench, site};
    use super::*;

    fn params(headroom: u64) -> PfcParams {
        PfcParams {
            classes: vec![3],
            memory: Bytes(200_000),
            reserved: Bytes(1_000),
            headroom: Some(Bytes(headroom)),
            xoff: Xoff::Static(StaticXoff { bytes: Bytes(5_000) }),
            xon_gap: Bytes(2_000),
            quanta: 100,
            response: Span::ZERO,
            max_frame: Bytes(1_518),
        }
    }

    struct Switch {
        pfc: Pfc,
        now: Time,
        /// Bodies of the frames that were sent, with their ports.
        sent: Vec<(PortNo, Pause)>,
        effects: Vec<Effect>,
    }

    impl Switch {
        fn new(params: &PfcParams) -> Switch {
            let pfc = Pfc::new(params, &site(&["h0", "s1", "h2"])).expect("a state");
            Switch { pfc, now: Time::from_ps(1_000), sent: Vec::new(), effects: Vec::new() }
        }

        fn run<T>(&mut self, hook: impl FnOnce(&mut Pfc, &mut dyn Node, &mut Effects) -> T) -> T {
            let mut node = bench(3);
            (node.now, node.free_at) = (self.now, Time::MAX);
            let mut fx = Effects::default();
            let result = hook(&mut self.pfc, &mut node, &mut fx);
            for (_, effect) in fx.list {
                match effect {
                    Effect::Emit { port, message } => self.sent.push((port, read(message.body()).expect("a PFC frame"))),
                    other => self.effects.push(other),
                }
            }
            if self.pfc.tasks.first().is_some_and(|(time, ..)| *time <= self.now) {
                self.run(Pfc::on_timer);
            }
            result
        }

        fn packet(&mut self, id: PacketId, from: u16, class: u8) -> Verdict {
            let mut envelope = Envelope { frame: 1_000, class, ..Envelope::default() };
            let mut shim = None;
            self.run(|pfc, node, fx| {
                let mut arrival = Arrival { id, envelope: &mut envelope, from: Some(PortNo(from)), shim: &mut shim };
                pfc.on_offer(node, &mut arrival, PortNo(2), fx)
            })
        }

        fn leaves(&mut self, id: PacketId) {
            self.run(|pfc, node, fx| pfc.on_egress(node, id, PortNo(2), fx));
        }

        fn gets(&mut self, from: u16, pause: Pause) {
            let bytes = body(&pause);
            let envelope = Envelope { header: bytes.len() as u8, ..Envelope::default() };
            let message = Message { envelope, control: Control::new(MAC_CONTROL, &bytes) };
            self.run(|pfc, node, fx| pfc.on_message(node, PortNo(from), &message, fx));
        }
    }

    fn pause(class: usize, quanta: u16) -> Pause {
        let mut pause = Pause::default();
        pause.0[class] = Some(quanta);
        pause
    }

    /// Opcode 0x0101, the enable vector's bit 3 and the fourth time. Source: IEEE 802.3 Annex 31A.
    #[test]
    fn frames_are_as_on_the_wire() {
        let bytes = body(&pause(3, 0x1234));
        assert_eq!(bytes[..4], [1, 1, 0, 8]);
        assert_eq!((bytes[10..12].to_vec(), bytes.iter().filter(|b| **b == 0).count()), (vec![0x12, 0x34], 15));
        assert_eq!(read(&bytes), Some(pause(3, 0x1234)));
        assert_eq!(read(&bytes[..19]), None);
        assert_eq!(read(&[0, 1, 0, 0].repeat(5)), None, "a pause of the whole link");
    }

    /// 1 kB is reserved and 5 kB are XOFF: with the sixth packet XOFF is reached, and from the seventh on packets take headroom. Below XON,
    /// 2 kB under it and with the headroom empty, the neighbour goes on.
    #[test]
    fn reservation_pool_headroom_and_back() {
        let mut s = Switch::new(&params(3_000));
        for id in 0..5 {
            assert_eq!(s.packet(id, 0, 3), Verdict::Pass);
        }
        assert!(s.sent.is_empty() && s.pfc.pool_used == 4_000);
        s.packet(5, 0, 3);
        assert_eq!(s.sent, [(PortNo(0), pause(3, 100))]);
        for id in 6..9 {
            assert_eq!(s.packet(id, 0, 3), Verdict::Pass, "in the headroom");
        }
        assert_eq!((s.pfc.peaks(), s.pfc.pool_used, s.pfc.used), (vec![3_000, 9_000], 5_000, 9_000));
        assert_eq!(s.packet(9, 0, 3), Verdict::Drop(DropReason::HEADROOM_FULL));
        assert_eq!(s.packet(10, 1, 3), Verdict::Pass, "another neighbour has its own");
        for id in 0..4 {
            s.leaves(id);
            assert_eq!(s.sent.len(), 1, "{id}");
        }
        s.leaves(4);
        assert_eq!(s.sent.last(), Some(&(PortNo(0), pause(3, 0))), "4 kB are left, 3 of them of the pool");
        (5..11).for_each(|id| s.leaves(id));
        assert_eq!((s.pfc.pool_used, s.pfc.used), (0, 0));
        let counts = s.pfc.counts();
        assert_eq!((counts.xoff, counts.xon, counts.frames_sent, counts.dropped_lossless), (1, 1, 2, 1));
    }

    #[test]
    fn other_classes_are_dropped_and_nobody_is_asked() {
        let mut s = Switch::new(&params(3_000));
        let verdicts: Vec<Verdict> = (0..8).map(|id| s.packet(id, 0, 1)).collect();
        assert!(verdicts[..6].iter().all(|verdict| *verdict == Verdict::Pass));
        assert!(verdicts[6..].iter().all(|verdict| *verdict == Verdict::Drop(DropReason::DYNAMIC_THRESHOLD)));
        assert!(s.sent.is_empty() && s.pfc.counts().dropped_lossy == 2);
    }

    /// With a dynamic threshold the pool is never overdrawn, and what is free halves as neighbours take of it.
    #[test]
    fn a_dynamic_threshold_is_a_share_of_what_is_free() {
        let xoff = Xoff::Dynamic(DynamicXoff { alpha: 1.0 });
        let mut s = Switch::new(&PfcParams { xoff, reserved: Bytes(0), memory: Bytes(19_000), ..params(3_000) });
        assert_eq!(s.pfc.pool, 10_000);
        (0..6).for_each(|id| assert_eq!(s.packet(id, 0, 3), Verdict::Pass));
        assert_eq!((s.pfc.pool_used, s.sent.len()), (5_000, 1), "5 of 10 kB, then headroom");
        (10..14).for_each(|id| assert_eq!(s.packet(id, 1, 3), Verdict::Pass));
        assert_eq!(s.pfc.pool_used, 8_000, "3 of the 5 kB that were left");
    }

    /// A pause that has to last is asked for again after half of its time; a frame that waits for `response` says what holds when it
    /// leaves.
    #[test]
    fn pauses_are_asked_for_again_and_late_news_are_as_they_are() {
        let mut s = Switch::new(&params(3_000));
        (0..6).for_each(|id| assert_eq!(s.packet(id, 0, 3), Verdict::Pass));
        let half = s.now + Pause::lasts(100, BitRate::from_gbps(10)) / 2;
        assert!(s.effects.contains(&Effect::Timer(half)));
        s.now = half;
        s.run(|pfc, node, fx| pfc.on_timer(node, fx));
        assert_eq!((s.sent.len(), s.pfc.counts().refreshed), (2, 1));
        let mut late = Switch::new(&PfcParams { response: Span::from_us(1), ..params(3_000) });
        (0..6).for_each(|id| assert_eq!(late.packet(id, 0, 3), Verdict::Pass));
        assert!(late.sent.is_empty() && late.effects.contains(&Effect::Timer(late.now + Span::from_us(1))));
        (0..6).for_each(|id| late.leaves(id));
        late.now += Span::from_us(1);
        late.run(|pfc, node, fx| pfc.on_timer(node, fx));
        assert_eq!(late.sent, [(PortNo(0), pause(3, 0))], "one frame, of what holds now");
    }

    /// A pause closes the gate of its port, for lossless classes only, until its time is over or a frame says so.
    #[test]
    fn a_pause_closes_the_gate_of_its_port() {
        let mut s = Switch::new(&params(3_000));
        let mut both = pause(3, 10);
        both.0[1] = Some(10);
        s.gets(1, both);
        assert!(s.effects.contains(&Effect::Gate { port: PortNo(1), closed: 1 << 3 }));
        s.effects.clear();
        s.now += Pause::lasts(10, BitRate::from_gbps(10));
        s.run(|pfc, node, fx| pfc.on_timer(node, fx));
        assert_eq!(s.effects, [Effect::Gate { port: PortNo(1), closed: 0 }]);
        s.gets(1, pause(3, 10));
        s.gets(1, pause(3, 0));
        assert_eq!(s.effects.last(), Some(&Effect::Gate { port: PortNo(1), closed: 0 }));
        assert_eq!(s.pfc.counts().frames_received, 3);
    }

    /// Two full frames, the PFC frame, there and back, and the packet that was too much: at 10 Gb/s and 2 us.
    #[test]
    fn the_headroom_is_what_a_link_can_deliver() {
        let port = &site(&["h0"]).ports[0];
        let wire = 2 * 1_538 + 84;
        assert_eq!(needed(&params(0), port, 64), 1_518 + wire + 2_500);
        let slow = PfcParams { response: Span::from_us(4), max_frame: Bytes(9_018), ..params(0) };
        assert_eq!(needed(&slow, port, 64), 9_018 + 2 * 9_038 + 84 + 7_500);
    }
}
