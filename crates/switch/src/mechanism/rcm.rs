//! Regional congestion mitigation (RCM): switches detect a region of congestion around its root, hold the flows that cause it at
//! their own ports, and move others to less congested paths. Source: RCM §3.
//!
//! Queues are sampled as packets arrive, output and input ([`fanin_dataplane::rcm`]). A congested input queue notifies the neighbour
//! upstream of its degree and of the harmful flows that came in there; at that neighbour's port they share a window, as at the port
//! where they meet. What is held counts where it came in, so that PFC pushes back along its path alone. At a combined switch it waits
//! there, too, and crosses when its window permits ([`crossing`]).

mod cfr;
mod crossing;
mod holding;
mod message;
mod rcc;
mod region;
mod sar;
mod settings;

pub use settings::{Decrease, LocalFlag, RcmCounts, RcmParams, Recognise, WhenIdle};

use super::{
    names_it, Arrival, Context, Dropped, Effect, Effects, Holds, Hooks, Listens, Mechanism, Message, Messages, Node, Peaks,
    PortNo, PortSite, Profile, Sends, Site, Timed, Turn, Verdict, Watches,
};
use cfr::{Cam, Harmful, Named, Tuple};
use fanin_dataplane::rcm::{passed_on, Bounds, Detector, Setting, WEIGHT};
use fanin_packet::{IpVersion, Kind, PacketId};
use fanin_params::Cx;
use fanin_units::{BitRate, Bytes, Span, Stream, Time, TrafficClass};
use rcc::{Control, Settings};
use sar::{least, Flows, Severity};
use std::collections::BTreeSet;

/// Separates the draws of RCM from those of other mechanisms.
const SALT: u32 = 5;
/// Part of a reserved buffer above which it counts as almost full. Source: RCM §3.1 ("almost full").
const ALMOST: (u64, u64) = (3, 4);
/// Change of the degree, one step of the sampling table, at which states are recorded.
const STEP: u8 = 8;

/// Role of a port in its region. Source: RCM §3.2.
const NONE: &str = "none";
const ROOT: &str = "root";
const INNER: &str = "inner";
const EDGE: &str = "edge";
/// An input queue with a degree above zero.
const CONGESTED: &str = "congested";

/// A port: the queue of packets that leave by it, and the queue of packets that came in by it.
#[derive(Debug)]
struct Port {
    /// True if a switch with RCM is at the far end.
    aware: bool,
    rate: BitRate,
    output: Detector,
    input: Detector,
    /// Local degree: of the output queue at its last sample, or more of an input queue that has set the flag.
    local: u8,
    /// Degree of the output queue alone, and of input queues whose packets leave here, where those set the flag.
    own: u8,
    inputs: Vec<(PortNo, u8)>,
    /// Degree heard from downstream, and the time until which it counts.
    remote: u8,
    until: Time,
    /// Degree of the input queue, and the time of its next sample. `notified`: the upstream neighbour takes this port for
    /// congested.
    arriving: u8,
    arriving_until: Time,
    notified: bool,
    recognise: Recognise,
    cam: Cam,
    /// Flows that were in the CAM when the output queue became congested; used with [`Recognise::AtDetection`].
    recognised: Vec<Harmful>,
    named: Named,
    control: Control,
    severity: Severity,
    draws: Stream,
    /// States and degrees as recorded: of output and input.
    shown: [(&'static str, u8); 2],
}

impl Port {
    fn is_congested(&self) -> bool {
        self.local > 0 || self.remote > 0
    }

    fn heard(&self) -> Option<u8> {
        (self.remote > 0).then_some(self.remote)
    }

    /// Root with the local flag alone, edge with the remote one alone, inner with both. Source: RCM §3.2.
    fn state(&self) -> &'static str {
        match (self.local > 0, self.remote > 0) {
            (false, false) => NONE,
            (true, false) => ROOT,
            (true, true) => INNER,
            (false, true) => EDGE,
        }
    }

    /// True if the port itself has recognised a flow as harmful.
    fn has_recognised(&self, tuple: &Tuple) -> bool {
        match self.recognise {
            Recognise::Now => self.cam.has(tuple),
            Recognise::AtDetection => self.recognised.iter().any(|flow| flow.tuple == *tuple),
        }
    }

    fn recognised(&self) -> Vec<Harmful> {
        match self.recognise {
            Recognise::Now => self.cam.flows(),
            Recognise::AtDetection => self.recognised.clone(),
        }
    }

    /// The degree of the output queue.
    fn set_own(&mut self, degree: u8) {
        self.own = degree;
        self.set_local();
    }

    /// The degree of an input queue, of which a packet leaves here.
    fn set_input(&mut self, input: PortNo, degree: u8) {
        self.inputs.retain(|(other, _)| *other != input);
        if degree > 0 {
            self.inputs.push((input, degree));
        }
        self.set_local();
    }

    /// With the first degree the port recognises flows.
    fn set_local(&mut self) {
        let degree = self.inputs.iter().fold(self.own, |most, (_, degree)| most.max(*degree));
        if self.local == 0 && degree > 0 && self.recognise == Recognise::AtDetection {
            self.recognised = self.cam.flows();
        }
        self.local = degree;
    }

    /// Nothing waits for the port any more.
    fn clear_local(&mut self) {
        (self.local, self.own) = (0, 0);
        self.inputs.clear();
        self.output.clear();
    }

    /// True if a flow is harmful here: named from downstream, or else recognised by the port itself.
    fn is_harmful(&self, tuple: &Tuple) -> bool {
        if self.remote > 0 {
            self.named.has(tuple)
        } else {
            self.local > 0 && self.has_recognised(tuple)
        }
    }

    fn harmful(&self) -> Vec<Harmful> {
        if self.remote > 0 {
            self.named.flows()
        } else {
            self.recognised()
        }
    }
}

/// Task at a time, at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// A notification from downstream may have expired.
    Heard,
    /// An input queue is sampled again.
    Arriving,
    /// The window of a port expires.
    Window,
    /// Held packets of the port may leave, once all other events of this instant are over.
    Look,
}

/// RCM at one switch.
#[derive(Debug)]
pub struct Rcm {
    rcc: bool,
    sar: bool,
    /// True if the switch is a combined input- and output-queued one.
    combined: bool,
    detect: Setting,
    /// Weight w of the degree from downstream.
    weight: u32,
    control: Settings,
    paces: bool,
    local_flag: LocalFlag,
    expiry: Span,
    severe: (u32, u32, Span),
    loss: f64,
    ip: IpVersion,
    ports: Vec<Port>,
    moved: Flows,
    tasks: BTreeSet<(Time, u16, Task)>,
    counts: RcmCounts,
}

impl Rcm {
    fn at(&mut self, time: Time, port: PortNo, task: Task, fx: &mut Effects) {
        if self.tasks.insert((time, port.0, task)) {
            fx.push(Effect::Timer(time));
        }
    }

    /// F_b' of an output port.
    fn regional(&self, port: PortNo) -> u8 {
        let at = &self.ports[port.index()];
        passed_on(at.local, at.heard(), self.weight)
    }

    /// Records a port's role and degree, where they have changed.
    fn show(&mut self, port: PortNo, fx: &mut Effects) {
        let at = &self.ports[port.index()];
        let output = match at.state() {
            EDGE => (EDGE, at.remote),
            state => (state, self.regional(port)),
        };
        let input = (if at.arriving > 0 { CONGESTED } else { NONE }, at.arriving);
        let at = &mut self.ports[port.index()];
        for (about, shown, now) in [("output", 0, output), ("input", 1, input)] {
            let (state, degree) = at.shown[shown];
            if (state, degree / STEP) == (now.0, now.1 / STEP) {
                continue;
            }
            self.counts.regions += u64::from(shown == 0 && state == NONE);
            at.shown[shown] = now;
            fx.push(Effect::State { port, about, state: now.0, degree: u32::from(now.1) });
        }
    }

    /// Another port for a flow at a severely congested one.
    fn other_way(&mut self, node: &mut dyn Node, p: &Arrival<'_>, to: PortNo) -> Option<PortNo> {
        let (now, tuple, hash) = (node.now(), Tuple::of(p.envelope), p.envelope.hash);
        let at = &self.ports[to.index()];
        let full = at.control.bytes() * ALMOST.1 >= self.control.reserved * ALMOST.0;
        if !full && !at.severity.is_severe(now) {
            return None;
        }
        if at.is_harmful(&tuple) || at.control.holds(&tuple) {
            self.counts.harmful_stayed += 1;
            return None;
        }
        let ways = node.ways(p.envelope);
        let Some(port) = least(&ways, to, |port| self.regional(port), hash) else {
            self.counts.no_better_path += 1;
            return None;
        };
        if !self.moved.set(now, hash, tuple, port) {
            self.counts.table_full += 1;
            return None;
        }
        self.counts.flows_moved += 1;
        Some(port)
    }
}

/// Length of a queue as registers have it.
fn bytes(queue: u64) -> u32 {
    u32::try_from(queue).unwrap_or(u32::MAX)
}

/// Bytes of a parameter as registers have them.
fn register(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}

impl Mechanism for Rcm {
    type Params = RcmParams;
    type Counts = RcmCounts;

    const PROFILE: Profile = Profile {
        messages: Some(Messages::of(&[message::NOTIFICATION])),
        peaks: settings::PEAKS,
        at_combined: true,
        states: true,
        ..Profile::PLAIN
    };

    /// Registers of detectors, windows and severity, CAMs and tables. What is held takes PFC's memory.
    fn memory(params: &RcmParams, site: &Site) -> Option<Bytes> {
        Some(params.state(site))
    }

    fn runs_at(params: &RcmParams, switch: &str) -> bool {
        !names_it(&params.unaware, switch)
    }

    fn new(params: &RcmParams, site: &Site) -> Option<Self> {
        if !Self::runs_at(params, &site.name) {
            return None;
        }
        let detect = Setting { q_eq: register(params.q_eq), w_q: params.w_q, base: register(params.sample) };
        let port = |port: &PortSite| {
            let mut draws = site.stream(SALT, port);
            Port {
                aware: port.peer_runs.contains(&"rcm"),
                rate: port.rate,
                output: Detector::new(detect.interval(0, draws.next_u32())),
                input: Detector::new(detect.interval(0, draws.next_u32())),
                local: 0,
                own: 0,
                inputs: Vec::new(),
                remote: 0,
                until: Time::ZERO,
                arriving: 0,
                arriving_until: Time::ZERO,
                notified: false,
                recognise: params.recognise,
                recognised: Vec::new(),
                cam: Cam::new(params.cam, params.cam_hits, register(params.cam_period)),
                named: Named::new(params.cam),
                control: Control::new(),
                severity: Severity::default(),
                draws,
                shown: [(NONE, 0); 2],
            }
        };
        Some(Rcm {
            rcc: params.rcc,
            sar: params.sar,
            combined: site.combined,
            detect,
            weight: libm::round(params.w * f64::from(1 << WEIGHT)) as u32,
            control: Settings {
                bounds: Bounds {
                    least: register(params.least_window(site)),
                    most: register(params.window_max),
                    floor: register(params.floor(site)),
                },
                again: params.decrease == Decrease::Each,
                reserved: params.reserved.get(),
            },
            paces: params.when_idle == WhenIdle::Wait,
            local_flag: params.local_flag,
            expiry: params.expiry,
            severe: (params.severe_degree, params.severe_count, params.severe_within),
            loss: params.loss,
            ip: site.framing.ip,
            ports: site.ports.iter().map(port).collect(),
            moved: Flows::new(params.moved_flows, params.moved_stay),
            tasks: BTreeSet::new(),
            counts: RcmCounts::default(),
        })
    }

    fn check(params: &RcmParams, context: &Context<'_>, cx: &mut Cx) {
        params.check(context, cx);
    }

    fn hooks(&self) -> Hooks {
        let detects = Hooks::OFFER.with(Hooks::EGRESS).with(Hooks::DROP).with(Hooks::MESSAGES).with(Hooks::INPUTS);
        let controls = if self.rcc { Hooks::TURN } else { Hooks::NONE };
        let moves = if self.sar { Hooks::ROUTE } else { Hooks::NONE };
        detects.with(controls).with(moves)
    }

    fn counts(&self) -> RcmCounts {
        RcmCounts { windows: self.ports.iter().map(|port| port.control.windows).sum(), ..self.counts }
    }

    /// Keeps flows that were moved at their port, and moves others away from a port that keeps being congested.
    fn on_route(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, to: PortNo, _: &mut Effects) -> Verdict {
        if p.envelope.kind == Kind::Control {
            return Verdict::Pass;
        }
        let moved = self.moved.port(node.now(), p.envelope.hash, &Tuple::of(p.envelope));
        let port = moved.or_else(|| self.other_way(node, p, to));
        self.counts.packets_moved += u64::from(port.is_some());
        port.filter(|port| *port != to).map_or(Verdict::Pass, Verdict::Detour)
    }

    fn on_offer(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, fx: &mut Effects) -> Verdict {
        if p.envelope.kind == Kind::Control {
            return Verdict::Pass;
        }
        let at = &mut self.ports[port.index()];
        // What was held and comes again has been sampled before.
        if let Some(from) = p.from {
            let written = at.cam.pass(p.envelope, from);
            self.counts.cam_writes += u64::from(written);
            if at.remote > 0 {
                at.named.seen(&Tuple::of(p.envelope), from);
            }
            self.sample_output(node, port, p.envelope.frame, fx);
            self.sample_input(node, (from, port), p.envelope.frame, fx);
        }
        if self.rcc {
            self.control(node, p, port, fx)
        } else {
            Verdict::Pass
        }
    }

    fn on_drop(&mut self, node: &mut dyn Node, dropped: &Dropped<'_>, fx: &mut Effects) {
        let (tuple, class) = (Tuple::of(dropped.envelope), dropped.envelope.class);
        for port in (0..self.ports.len() as u16).map(PortNo) {
            let at = &mut self.ports[port.index()];
            if at.control.is_empty() && !at.control.has_counted() {
                continue;
            }
            let stalled = at.control.is_stalled();
            let joins = self.combined || node.queues(port) > 1;
            let before = || if joins { 0 } else { holding::queued(node, port, class, &tuple) };
            self.counts.held_dropped += u64::from(at.control.dropped(dropped.packet, &tuple, before));
            if joins {
                self.look_soon(port, fx);
            } else if stalled && at.control.waits() {
                fx.push(Effect::Arm(port));
            }
        }
    }

    /// Ends the congested region behind a link that goes down, and the use of the link by flows that were moved there.
    fn on_link(&mut self, _node: &mut dyn Node, port: PortNo, up: bool, fx: &mut Effects) {
        if up {
            return;
        }
        self.moved.leave(port);
        let at = &mut self.ports[port.index()];
        (at.remote, at.notified) = (0, false);
        at.named.clear();
        at.clear_local();
        self.calm(port, fx);
        self.wake(port, fx);
    }
}

impl Peaks for Rcm {
    fn peaks(&self) -> Vec<u64> {
        let most = |of: fn(&rcc::Peaks) -> u64| self.ports.iter().map(|port| of(&port.control.peaks)).max().unwrap_or(0);
        vec![most(|peaks| peaks.bytes), most(|peaks| peaks.longest), most(|peaks| peaks.head)]
    }

    fn longest_queue(&self) -> Option<(PortNo, Bytes)> {
        super::longest(self.ports.iter().map(|port| port.control.peaks.bytes))
    }
}

impl Holds for Rcm {
    fn held(&self) -> Vec<PacketId> {
        self.ports.iter().flat_map(|port| port.control.packets()).collect()
    }

    fn holds_for(&self, port: PortNo, class: TrafficClass) -> bool {
        self.ports[port.index()].control.holds_class(class)
    }
}

impl Sends for Rcm {
    fn on_turn(&mut self, node: &mut dyn Node, port: PortNo, data: bool, fx: &mut Effects) -> Turn {
        let paces = self.paces(port);
        let control = &mut self.ports[port.index()].control;
        if control.is_empty() {
            return Turn::Pass;
        }
        if self.combined {
            self.let_cross(node, port, fx);
            return Turn::Pass;
        }
        if node.queues(port) > 1 {
            // The scheduler takes what it has; then the wire is busy, or has nothing.
            control.stall();
            self.look_soon(port, fx);
            return Turn::Pass;
        }
        match control.turn(node.now(), &self.control, (data, paces), |class| node.is_paused(port, class)) {
            Some(packet) => {
                self.counts.released += 1;
                Turn::Packet(packet)
            }
            None => {
                if paces && control.is_stalled() {
                    self.wait_for_window(port, fx);
                }
                Turn::Pass
            }
        }
    }

    fn waits(&self, port: PortNo) -> bool {
        self.ports[port.index()].control.waits()
    }
}

impl Watches for Rcm {
    fn on_egress(&mut self, node: &mut dyn Node, packet: PacketId, port: PortNo, fx: &mut Effects) {
        let at = &self.ports[port.index()];
        let seen = at.local > 0 || at.control.is_on() || !at.control.is_empty() || at.control.has_counted();
        let Some(envelope) = node.packet(packet).filter(|_| seen) else { return };
        let tuple = Tuple::of(&envelope);
        let harmful = at.is_harmful(&tuple);
        let joins = self.joins(node, port);
        let at = &mut self.ports[port.index()];
        let stalled = at.control.is_stalled();
        at.control.sent(node.now(), &self.control, (packet, envelope.frame), &tuple, (harmful, joins));
        if joins {
            self.let_cross(node, port, fx);
        } else if stalled && at.control.waits() {
            fx.push(Effect::Arm(port)); // a packet that found the port idle has ended the window
        }
        let at = &mut self.ports[port.index()];
        // Samples are taken of arrivals, and the last of them may have left.
        if at.local > 0 && at.control.is_empty() && node.view(port).queue_packets == 0 {
            at.clear_local();
            self.calm(port, fx);
        }
    }
}

impl Listens for Rcm {
    fn on_message(&mut self, node: &mut dyn Node, from: PortNo, message: &Message, fx: &mut Effects) {
        let Some(notification) = message::read(self.ip, message.body()) else { return };
        self.counts.notifications_received += 1;
        let (now, until) = (node.now(), node.now() + self.expiry);
        let at = &mut self.ports[from.index()];
        at.named.expire(now);
        if notification.degree == 0 {
            at.remote = 0;
            at.named.clear();
            self.calm(from, fx);
            return self.wake(from, fx);
        }
        notification.flows.iter().for_each(|tuple| at.named.name(*tuple, until));
        if notification.more {
            return; // which flows are harmful is known when all frames have come
        }
        let news = at.remote == 0;
        (at.remote, at.until) = (notification.degree, until);
        if news {
            self.at(until, from, Task::Heard, fx);
        }
        self.congested(now, from, notification.degree, fx);
        self.let_go(from, fx);
        self.show(from, fx);
    }
}

impl Timed for Rcm {
    fn on_timer(&mut self, node: &mut dyn Node, fx: &mut Effects) {
        let now = node.now();
        while let Some((time, port, task)) = self.tasks.first().copied().filter(|(time, ..)| *time <= now) {
            self.tasks.remove(&(time, port, task));
            let port = PortNo(port);
            match task {
                Task::Heard => self.forget(now, port, fx),
                Task::Arriving => self.look_again(node, port, fx),
                Task::Window => self.next_window(now, port, fx),
                Task::Look if self.joins(node, port) => self.let_cross(node, port, fx),
                Task::Look => {
                    self.ports[port.index()].control.wake();
                    fx.push(Effect::Arm(port));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
