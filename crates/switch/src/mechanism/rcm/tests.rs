//! Tests of RCM at one switch: a port whose queue and wire are played by hand.

mod local_flag;
mod older_frames;
mod results;
mod steps;

use super::*;
use crate::mechanism::testing::site;
use crate::PortView;
use fanin_packet::{Envelope, Framing};
use fanin_params::defaults;
use fanin_units::{FlowId, HostId, TrafficClass};
use std::collections::{BTreeMap, VecDeque};

/// Port 0 leads to the sender's switch, port 1 to the bottleneck, port 2 to another switch.
const IN: PortNo = PortNo(0);
const OUT: PortNo = PortNo(1);
const OTHER: PortNo = PortNo(2);
const FRAME: u16 = 1_500;

/// A switch whose port `OUT` has a FIFO queue.
struct Play {
    rcm: Rcm,
    node: Here,
    /// Packets in the order in which they left.
    left: Vec<(u32, PacketId)>,
    sent: Vec<(PortNo, Message)>,
    states: Vec<(PortNo, &'static str, &'static str, u32)>,
    /// What packets that are held have found to be held before them.
    marks: Vec<PacketId>,
    next: u32,
    /// A departure event is set, as the switch would have it.
    armed: bool,
}

struct Here {
    now: Time,
    packets: BTreeMap<PacketId, Envelope>,
    queue: VecDeque<PacketId>,
    inputs: u64,
    free_at: Time,
    paused: bool,
    paused_class: Option<TrafficClass>,
    ways: Vec<PortNo>,
    /// At a combined switch; then the queue is what waits in virtual output queues, too.
    combined: bool,
    /// Queues of the port, of which the tests fill one.
    queues: usize,
}

impl Node for Here {
    fn now(&self) -> Time {
        self.now
    }
    fn view(&mut self, port: PortNo) -> PortView {
        let waiting = if port == OUT { self.queue.iter().map(|id| u64::from(self.packets[id].frame)).sum() } else { 0 };
        let count = if port == OUT { self.queue.len() as u32 } else { 0 };
        PortView { now: self.now, queue_bytes: waiting, queue_packets: count, free_at: self.free_at, ..crate::tests::view(0) }
    }
    fn is_idle(&mut self, port: PortNo) -> bool {
        !self.combined && self.view(port).is_idle()
    }
    fn queues(&self, _: PortNo) -> usize {
        self.queues
    }
    fn sendable_bytes(&self, port: PortNo) -> u64 {
        if self.paused {
            0
        } else {
            let waits = self.queue.iter().filter(|_| port == OUT);
            waits.map(|id| u64::from(self.packets[id].frame)).sum()
        }
    }
    fn route(&mut self, _: &Envelope) -> Option<PortNo> {
        Some(OUT)
    }
    fn ways(&self, _: &Envelope) -> Vec<PortNo> {
        self.ways.clone()
    }
    fn input_bytes(&self, port: PortNo) -> u64 {
        if port == IN {
            self.inputs
        } else {
            0
        }
    }
    fn is_paused(&self, port: PortNo, class: TrafficClass) -> bool {
        port == OUT && (self.paused || self.paused_class == Some(class))
    }
    fn packet(&self, packet: PacketId) -> Option<Envelope> {
        self.packets.get(&packet).copied()
    }
    fn waiting(&self, _: PortNo, _: TrafficClass) -> usize {
        self.queue.len()
    }
    fn waiting_at(&self, _: PortNo, _: TrafficClass, place: usize) -> Option<(Envelope, Option<fanin_packet::Shim>)> {
        Some((self.packets[self.queue.get(place)?], None))
    }
}

fn flow(n: u32) -> Envelope {
    Envelope {
        flow: FlowId(n),
        src: HostId(n),
        dst: HostId(99),
        hash: n.wrapping_mul(0x9e37_79b9),
        frame: FRAME,
        ..Envelope::default()
    }
}

fn params() -> RcmParams {
    RcmParams { sample: Bytes(3_000), cam_period: Bytes(3_000), decrease: Decrease::Measured, ..defaults() }
}

impl Play {
    fn new(params: &RcmParams) -> Play {
        Play::at(params, false)
    }

    /// At an output-queued switch whose ports have several classes.
    fn with_classes(params: &RcmParams) -> Play {
        let mut play = Play::at(params, false);
        play.node.queues = 2;
        play
    }

    fn at(params: &RcmParams, combined: bool) -> Play {
        let mut site = Site { combined, ..site(&["s1", "h1", "s2"]) };
        site.ports.iter_mut().filter(|port| !port.to_host).for_each(|port| port.peer_runs.push("rcm"));
        let node = Here {
            now: Time::ZERO,
            packets: BTreeMap::new(),
            queue: VecDeque::new(),
            inputs: 0,
            free_at: Time::ZERO,
            paused: false,
            paused_class: None,
            ways: vec![OUT, OTHER],
            combined,
            queues: 1,
        };
        let rcm = Rcm::new(params, &site).unwrap();
        Play { rcm, node, left: Vec::new(), sent: Vec::new(), states: Vec::new(), marks: Vec::new(), next: 0, armed: false }
    }

    fn note(&mut self, fx: Effects) {
        for (_, effect) in fx.list {
            match effect {
                Effect::Emit { port, message } => self.sent.push((port, message)),
                Effect::State { port, about, state, degree } => self.states.push((port, about, state, degree)),
                Effect::Forward { packet, port } => self.forward(packet, port),
                Effect::Mark { packet, port } => {
                    assert_eq!(port, OUT);
                    self.marks.push(packet);
                }
                Effect::Arm(port) => self.armed |= port == OUT,
                Effect::Watch(_) | Effect::Timer(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// A packet comes in by `IN` for `OUT`.
    fn arrive(&mut self, envelope: Envelope) -> Verdict {
        let id = PacketId(self.next);
        self.next += 1;
        self.node.packets.insert(id, envelope);
        let (mut e, mut fx) = (envelope, Effects::default());
        let idle = self.node.is_idle(OUT) && !self.node.paused;
        let mut p = Arrival { id, envelope: &mut e, from: Some(IN), shim: &mut None };
        let verdict = self.rcm.on_offer(&mut self.node, &mut p, OUT, &mut fx);
        self.note(fx);
        match verdict {
            Verdict::Pass if idle && self.node.queue.is_empty() => self.leave(id),
            Verdict::Pass => {
                self.node.inputs += u64::from(envelope.frame);
                self.node.queue.push_back(id);
                self.armed = true;
            }
            Verdict::Hold => self.node.inputs += u64::from(envelope.frame),
            other => panic!("{other:?}"),
        }
        verdict
    }

    /// What was held is offered again.
    fn forward(&mut self, id: PacketId, port: PortNo) {
        assert_eq!(port, OUT);
        let (mut e, mut fx) = (self.node.packets[&id], Effects::default());
        let idle = self.node.is_idle(OUT) && !self.node.paused;
        let mut p = Arrival { id, envelope: &mut e, from: None, shim: &mut None };
        assert_eq!(self.rcm.on_offer(&mut self.node, &mut p, OUT, &mut fx), Verdict::Pass);
        self.note(fx);
        if idle && self.node.queue.is_empty() {
            self.node.inputs -= u64::from(e.frame);
            self.leave(id);
        } else {
            self.node.queue.push_back(id);
            self.armed = true;
        }
    }

    fn leave(&mut self, id: PacketId) {
        let envelope = self.node.packets[&id];
        self.node.free_at = self.node.now + BitRate::from_gbps(10).time_to_send(Bytes(u64::from(envelope.frame)));
        let mut fx = Effects::default();
        self.rcm.on_egress(&mut self.node, id, OUT, &mut fx);
        self.note(fx);
        self.left.push((envelope.flow.0, id));
    }

    /// The wire is free, if a departure was set: what leaves.
    fn turn(&mut self) -> bool {
        if !std::mem::take(&mut self.armed) {
            return false;
        }
        self.node.now = self.node.now.max(self.node.free_at);
        let (data, mut fx) = (!self.node.queue.is_empty() && !self.node.paused, Effects::default());
        let turn = self.rcm.on_turn(&mut self.node, OUT, data, &mut fx);
        self.note(fx);
        let id = match turn {
            Turn::Packet(id) => {
                assert!(!self.node.combined && self.node.queues == 1, "past the crossbar, or past a scheduler");
                Some(id)
            }
            Turn::Pass if data || self.node.combined && !self.node.paused => self.node.queue.pop_front(),
            Turn::Pass => None,
            other => panic!("{other:?}"),
        };
        if let Some(id) = id {
            assert!(!self.node.paused, "a packet of a class that waits");
            self.node.inputs -= u64::from(self.node.packets[&id].frame);
            self.leave(id);
        }
        self.armed |= !self.node.queue.is_empty() && !self.node.paused || self.rcm.waits(OUT);
        assert!(!self.armed || id.is_some(), "a departure without end");
        id.is_some()
    }

    /// Its class waits, or goes on.
    fn pause(&mut self, paused: bool) {
        self.armed |= self.node.paused && !paused;
        self.node.paused = paused;
    }

    fn timer(&mut self, now: Time) {
        self.node.now = now;
        let mut fx = Effects::default();
        self.rcm.on_timer(&mut self.node, &mut fx);
        self.note(fx);
    }

    fn hear(&mut self, from: PortNo, degree: u8, flows: &[u32]) {
        frames(degree, flows).iter().for_each(|message| self.hear_frame(from, message));
    }

    fn hear_frame(&mut self, from: PortNo, message: &Message) {
        let mut fx = Effects::default();
        self.rcm.on_message(&mut self.node, from, message, &mut fx);
        self.note(fx);
    }

    fn route(&mut self, envelope: Envelope) -> Verdict {
        let (mut e, mut fx) = (envelope, Effects::default());
        let mut p = Arrival { id: PacketId(0), envelope: &mut e, from: Some(IN), shim: &mut None };
        self.rcm.on_route(&mut self.node, &mut p, OUT, &mut fx)
    }

    /// Flows 1 and 2 in turn, two for each that leaves.
    fn overload(&mut self, pairs: u32) {
        for _ in 0..pairs {
            self.arrive(flow(1));
            self.arrive(flow(2));
            self.turn();
        }
    }
}

/// A queue beyond Q_eq makes its port the root, and the neighbour whose packets they are hears of it with the flows that the port has
/// recognised; when the queue has gone so has the region, and the neighbour hears of that.
#[test]
fn a_root_notifies_upstream_and_the_region_dissolves() {
    for combined in [false, true] {
        let mut play = Play::at(&RcmParams { rcc: false, sar: false, ..params() }, combined);
        play.overload(40);
        assert!(play.states.contains(&(OUT, "output", "root", play.states.iter().find(|s| s.2 == "root").unwrap().3)));
        let (port, message) = &play.sent[0];
        let said = message::read(IpVersion::V4, message.body()).unwrap();
        assert_eq!((*port, said.port, said.more), (IN, IN, false));
        assert!(said.degree > 0 && said.flows.iter().all(|t| [1, 2].contains(&t.flow.0)) && !said.flows.is_empty());
        assert_eq!(play.rcm.counts.notifications_sent as usize, play.sent.len());
        while play.turn() {}
        assert_eq!(play.states.last().map(|s| (s.0, s.1, s.2)), Some((OUT, "output", "none")));
        play.timer(play.node.now + Span::from_us(10));
        let (_, last) = play.sent.last().unwrap();
        assert_eq!(message::read(IpVersion::V4, last.body()).unwrap().degree, 0);
        assert!(play.rcm.ports.iter().all(|port| port.state() == NONE && port.arriving == 0));
        let n = play.sent.len();
        play.timer(play.node.now + Span::from_ms(1));
        assert_eq!(play.sent.len(), n, "and nothing comes after it");
    }
}

/// Nobody is notified of flows that did not come in there, and neither are hosts and switches without RCM.
#[test]
fn those_are_notified_whose_input_holds_harmful_packets() {
    let mut play = Play::new(&RcmParams { rcc: false, sar: false, unaware: vec!["s7".into()], ..params() });
    play.rcm.ports[IN.index()].aware = false;
    play.overload(40);
    assert!(play.sent.is_empty() && play.rcm.counts.not_notified > 0);
}

fn frames(degree: u8, flows: &[u32]) -> Vec<Message> {
    let flows: Vec<Tuple> = flows.iter().map(|n| Tuple::of(&flow(*n))).collect();
    message::messages(IpVersion::V4, degree, PortNo(7), &flows)
}

/// Four flows take two frames: what is harmful is known with the second, and nothing that is held is let go in between.
#[test]
fn a_notification_of_several_frames_counts_when_all_have_come() {
    let mut play = Play::new(&RcmParams { sar: false, q_eq: Bytes(10_000_000), ..params() });
    let both = frames(63, &[1, 2, 3, 4]);
    assert_eq!(both.len(), 2);
    play.hear_frame(OUT, &both[0]);
    assert!(play.states.is_empty() && !play.rcm.ports[OUT.index()].control.is_on());
    play.hear_frame(OUT, &both[1]);
    assert_eq!(play.states, [(OUT, "output", "edge", 63)]);
    (0..60).for_each(|_| {
        play.arrive(flow(4));
        play.arrive(flow(5));
    });
    (0..100).for_each(|_| {
        play.turn();
        play.hear(OUT, 63, &[1, 2, 3, 4]);
        play.arrive(flow(4));
        play.arrive(flow(5));
    });
    let held = play.rcm.ports[OUT.index()].control.bytes();
    assert!(held > 0);
    both.iter().for_each(|message| {
        play.hear_frame(OUT, message);
        assert_eq!(play.rcm.ports[OUT.index()].control.bytes(), held);
    });
}

/// Harmless flows move as soon as what is held takes three quarters of what is reserved for it, however small the degree.
#[test]
fn flows_move_when_what_is_reserved_is_nearly_full() {
    let mut play = Play::new(&RcmParams { q_eq: Bytes(10_000_000), severe_count: 1_000, ..params() });
    play.hear(OUT, 63, &[1]);
    (0..60).for_each(|_| {
        play.arrive(flow(1));
        play.arrive(flow(2));
    });
    (0..100).for_each(|_| {
        play.turn();
        play.hear(OUT, 63, &[1]);
        play.arrive(flow(1));
        play.arrive(flow(2));
    });
    let held = play.rcm.ports[OUT.index()].control.bytes();
    assert!(held > 0);
    for (reserved, verdict) in [(held * 4 / 3 + 1, Verdict::Pass), (held * 4 / 3, Verdict::Detour(OTHER))] {
        play.rcm.control.reserved = reserved;
        assert_eq!(play.route(flow(9)), verdict, "{held} of {reserved}");
    }
}

/// A class that is paused keeps its own packets alone: those of another leave, though both are held.
#[test]
fn a_paused_class_holds_up_no_other() {
    for (combined, when_idle) in
        [(false, WhenIdle::Send), (true, WhenIdle::Send), (false, WhenIdle::Wait), (true, WhenIdle::Wait)]
    {
        let mut play = Play::at(&RcmParams { sar: false, q_eq: Bytes(10_000_000), when_idle, ..params() }, combined);
        let other = Envelope { class: TrafficClass(1), ..flow(2) };
        play.hear(OUT, 63, &[1, 2]);
        (0..20).for_each(|_| {
            play.arrive(flow(1));
            play.arrive(other);
            play.turn();
            play.turn();
        });
        while !play.rcm.ports[OUT.index()].control.is_empty() {
            play.hear(OUT, 63, &[1, 2]);
            play.timer(play.node.now + Span::from_us(5));
            while play.turn() {}
        }
        assert!(play.rcm.ports[OUT.index()].control.is_running());
        play.node.paused_class = Some(TrafficClass(0));
        play.hear(OUT, 63, &[1, 2]);
        assert_eq!(play.arrive(flow(1)), Verdict::Hold, "it is paused");
        play.timer(play.node.now);
        while play.turn() {}
        let before = play.left.len();
        play.arrive(other);
        play.timer(play.node.now);
        while play.turn() {}
        assert_eq!(play.left[before..].iter().map(|(flow, _)| *flow).collect::<Vec<_>>(), [2], "{combined} {when_idle:?}");
    }
}

/// Formula 5 by hand: half of what was sent is of flow 1, W = 16.5 KB in whole frames; F_b of 63 leaves 4.5 KB of it: three frames of
/// eleven.
#[test]
fn a_notified_port_gives_harmful_flows_their_window_alone() {
    let mut play = Play::new(&RcmParams { sar: false, q_eq: Bytes(10_000_000), ..params() });
    play.hear(OUT, 63, &[1]);
    assert_eq!(play.states, [(OUT, "output", "edge", 63)]);
    (0..60).for_each(|_| {
        play.arrive(flow(1));
        play.arrive(flow(2));
    });
    (0..13).for_each(|_| assert!(play.turn()));
    (0..60).for_each(|_| {
        play.arrive(flow(1));
        play.arrive(flow(2));
    });
    while !play.node.queue.is_empty() {
        play.turn();
        // So that the notification does not end.
        play.hear(OUT, 63, &[1]);
    }
    let window = play.rcm.ports[OUT.index()].control.window().unwrap();
    assert_eq!(window, 16_500);
    // Of the last 55 frames, five windows, flow 1 has 15: W_c = 8250 · ½ in frames of 1500, what is over counting in the next.
    let last = play.left.len() - 44..play.left.len();
    let harmful = play.left[last].iter().filter(|(flow, _)| *flow == 1).count();
    assert!((11..=13).contains(&harmful), "{harmful} of 44 frames, theory 44 · 4125/16500 = 11");
    assert!(play.rcm.counts.held > 0 && play.rcm.ports[OUT.index()].control.bytes() > 0);
    while play.turn() {}
    assert_eq!(play.left.len(), 240);
}

/// At an idle port a packet of a harmful flow leaves at once while the window is open, and where the port paces it waits for the next
/// window when that is used up: harmful flows do not use what others leave.
#[test]
fn at_an_idle_port_harmful_flows_wait_only_where_it_paces() {
    for (when_idle, waits) in [(WhenIdle::Send, false), (WhenIdle::Wait, true)] {
        let mut play = Play::new(&RcmParams { sar: false, q_eq: Bytes(10_000_000), when_idle, ..params() });
        play.hear(OUT, 63, &[1]);
        (0..40).for_each(|_| {
            play.arrive(flow(1));
            play.arrive(flow(2));
            play.turn();
        });
        while !(play.rcm.ports[OUT.index()].control.is_empty() && play.node.queue.is_empty()) {
            play.hear(OUT, 63, &[1]);
            play.timer(play.node.now + Span::from_us(5));
            while play.turn() {}
        }
        // A window that has just begun.
        play.hear(OUT, 63, &[1]);
        let end = play.rcm.window_ends(OUT).expect("windows run");
        play.timer(end.max(play.node.free_at));
        let window = play.rcm.ports[OUT.index()].control.window().expect("windows run");
        let all = window / u32::from(FRAME);
        let mut verdicts = Vec::new();
        for _ in 0..all {
            play.node.now = play.node.now.max(play.node.free_at);
            verdicts.push(play.arrive(flow(1)));
        }
        let gone = verdicts.iter().take_while(|verdict| **verdict == Verdict::Pass).count() as u32;
        if waits {
            assert!((1..=all / 2).contains(&gone), "{gone} of {all} frames: W_c is a part of what the flow had, which was half");
            assert!(verdicts[gone as usize..].iter().all(|verdict| *verdict == Verdict::Hold), "{verdicts:?}");
        } else {
            assert_eq!(gone, all, "{verdicts:?}");
        }
    }
}

/// An input queue that is congested once is looked at again after half of the time for which the neighbour keeps what it heard, though
/// nothing arrives: one look is due, however often it is found congested.
#[test]
fn a_congested_input_is_looked_at_again_in_time() {
    let mut play = Play::new(&params());
    let looks = |play: &Play| play.rcm.tasks.iter().filter(|(_, _, task)| *task == Task::Arriving).copied().collect::<Vec<_>>();
    let half = play.rcm.expiry / 2;
    let set = |play: &mut Play, us, degree| {
        play.node.now = Time::ZERO + Span::from_us(us);
        let mut fx = Effects::default();
        play.rcm.set_arriving(play.node.now, IN, degree, &mut fx);
        looks(play)
    };
    assert_eq!(set(&mut play, 0, 0), []);
    let first = (Time::ZERO + half, IN.0, Task::Arriving);
    assert_eq!(set(&mut play, 0, 5), [first]);
    assert_eq!(set(&mut play, 1, 9), [first], "the same look, which finds that it is early");
    assert_eq!((play.rcm.ports[IN.index()].arriving, play.rcm.ports[OTHER.index()].arriving), (9, 0));
    assert_eq!(play.rcm.ports[IN.index()].arriving_until, Time::ZERO + Span::from_us(1) + half);
}

/// With nothing else to send harmful flows go on, unless the port paces.
#[test]
fn no_port_idles_but_one_that_paces() {
    for (when_idle, waits, combined) in [
        (WhenIdle::Send, false, false),
        (WhenIdle::Wait, true, false),
        (WhenIdle::Send, false, true),
        (WhenIdle::Wait, true, true),
    ] {
        let mut play = Play::at(&RcmParams { sar: false, q_eq: Bytes(10_000_000), when_idle, ..params() }, combined);
        play.hear(OUT, 63, &[1]);
        (0..40).for_each(|_| assert!(play.arrive(flow(1)) != Verdict::Take));
        (0..12).for_each(|_| assert!(play.turn()));
        // At a combined switch those that the window permits join the queue.
        let held = (0..60).filter(|_| play.arrive(flow(1)) == Verdict::Hold).count();
        assert!(if combined { (50..60).contains(&held) } else { held == 60 }, "{held}");
        while !play.node.queue.is_empty() {
            assert!(play.turn());
        }
        let before = play.left.len();
        while play.turn() {}
        assert_eq!(play.rcm.ports[OUT.index()].control.is_empty(), !waits, "{when_idle:?}");
        if waits {
            // Each window's time lets half of it pass.
            let w = play.rcm.ports[OUT.index()].control.window().unwrap();
            let span = BitRate::from_gbps(10).time_to_send(Bytes(u64::from(w)));
            play.hear(OUT, 63, &[1]);
            let since = play.rcm.ports[OUT.index()].control.since;
            play.timer(since + span);
            let mut n = 0;
            while play.turn() {
                n += 1;
            }
            assert!((4..=7).contains(&n), "{n} frames of a window of {w} B, and {before} before");
        }
    }
}

/// The same shares at a combined switch, where packets count when they are let go: of a wire that others could fill alone, harmful flows
/// have W_c / W = 4125 / 16500, and what they send joins the queue behind what is there.
#[test]
fn at_a_combined_switch_harmful_flows_cross_by_their_window() {
    let mut play = Play::at(&RcmParams { sar: false, q_eq: Bytes(10_000_000), ..params() }, true);
    play.hear(OUT, 63, &[1]);
    for _ in 0..430 {
        play.arrive(flow(1));
        while play.node.queue.len() < 10 || play.left.len() < 13 && play.node.queue.len() < 26 {
            play.arrive(flow(2));
            if play.left.len() < 13 {
                play.arrive(flow(1));
            }
        }
        assert!(play.turn());
        play.hear(OUT, 63, &[1]);
    }
    let (w, harmful) = (play.rcm.ports[OUT.index()].control.window().unwrap(), |(flow, _): &&(u32, PacketId)| *flow == 1);
    assert!((16_000..18_000).contains(&w), "{w}");
    let harmful = play.left[130..].iter().filter(harmful).count();
    assert!((65..=85).contains(&harmful), "{harmful} of 300 frames, theory 75");
    assert!(play.rcm.counts.released > 60 && play.rcm.ports[OUT.index()].control.bytes() > 100_000);
}

/// Another flow that finds a pacing port idle ends the window: what is held goes on then, not when the next notification comes.
#[test]
fn a_window_that_others_end_at_an_idle_port_lets_what_is_held_go_on() {
    let settings = RcmParams { sar: false, q_eq: Bytes(10_000_000), when_idle: WhenIdle::Wait, ..params() };
    let mut play = Play::new(&settings);
    play.hear(OUT, 63, &[1]);
    (0..40).for_each(|_| assert!(play.arrive(flow(1)) != Verdict::Take));
    while play.turn() {}
    (0..40).for_each(|_| assert!(play.arrive(flow(1)) != Verdict::Take));
    while play.turn() {}
    let held = play.rcm.ports[OUT.index()].control.bytes();
    assert!(held > 0 && !play.armed);
    for _ in 0..12 {
        play.node.now = play.node.now.max(play.node.free_at);
        assert_eq!(play.arrive(flow(2)), Verdict::Pass);
        if play.armed {
            break;
        }
    }
    assert!(play.armed && play.turn() && play.rcm.ports[OUT.index()].control.bytes() < held);
}

/// Without news the notification ends, and what is held leaves.
#[test]
fn a_notification_ends_by_time_or_by_word() {
    for word in [false, true] {
        let mut play = Play::new(&RcmParams { sar: false, ..params() });
        play.hear(OUT, 20, &[1]);
        if word {
            play.hear(OUT, 0, &[]);
        } else {
            play.timer(Time::ZERO + Span::from_us(19));
            assert_eq!(play.rcm.ports[OUT.index()].state(), EDGE);
            play.timer(Time::ZERO + Span::from_us(20));
        }
        assert_eq!(play.rcm.ports[OUT.index()].state(), NONE);
        assert!(!play.rcm.ports[OUT.index()].control.is_on());
        assert_eq!(play.states.last(), Some(&(OUT, "output", "none", 0)));
    }
}

/// Formula 2 by hand: an input queue with a degree of 63 whose harmful flows a neighbour with 32 has named passes on 48; the ids are
/// the neighbour's.
#[test]
fn an_inner_point_passes_on_the_weighed_degree_with_the_roots_flows() {
    let mut play = Play::new(&RcmParams { rcc: false, sar: false, ..params() });
    play.hear(OUT, 32, &[1]);
    play.node.inputs = 10_000_000;
    play.arrive(flow(1));
    play.arrive(flow(2));
    play.arrive(flow(2));
    let said = message::read(IpVersion::V4, play.sent[0].1.body()).unwrap();
    assert_eq!((said.degree, said.flows), (48, vec![Tuple::of(&flow(1))]));
}

/// Severe notifications move flows that are not named, each to the port with the least degree, where it stays.
#[test]
fn only_flows_that_do_no_harm_are_moved() {
    let mut play = Play::new(&params());
    (0..9).for_each(|_| play.hear(OUT, 31, &[1]));
    assert_eq!(play.route(flow(2)), Verdict::Pass, "severe degrees begin at 32");
    (0..2).for_each(|_| play.hear(OUT, 40, &[1]));
    assert_eq!(play.route(flow(2)), Verdict::Pass, "two are not severe yet");
    play.hear(OUT, 40, &[1]);
    assert_eq!((play.route(flow(1)), play.route(flow(2))), (Verdict::Pass, Verdict::Detour(OTHER)));
    assert_eq!((play.rcm.counts.harmful_stayed, play.rcm.counts.flows_moved), (1, 1));
    // It stays there when the congestion is over, until it pauses.
    play.hear(OUT, 0, &[]);
    play.node.now = Time::ZERO + Span::from_us(90);
    assert_eq!(play.route(flow(2)), Verdict::Detour(OTHER));
    play.node.now = Time::ZERO + Span::from_us(191);
    assert_eq!(play.route(flow(2)), Verdict::Pass);
    // Nor does it stay behind a link that is down; the region behind one is over, another's is not.
    (0..3).for_each(|_| play.hear(OUT, 40, &[1]));
    assert_eq!(play.route(flow(2)), Verdict::Detour(OTHER));
    let link = |play: &mut Play, port, up| {
        let mut fx = Effects::default();
        play.rcm.on_link(&mut play.node, port, up, &mut fx);
        play.note(fx);
    };
    link(&mut play, OTHER, true);
    assert_eq!((play.route(flow(2)), play.rcm.ports[OUT.index()].remote), (Verdict::Detour(OTHER), 40));
    link(&mut play, OTHER, false);
    assert_eq!(play.rcm.moved.port(play.node.now, flow(2).hash, &Tuple::of(&flow(2))), None);
    assert_eq!((play.rcm.ports[OUT.index()].remote, play.rcm.ports[OUT.index()].state()), (40, EDGE));
    link(&mut play, OUT, false);
    assert_eq!((play.rcm.ports[OUT.index()].remote, play.rcm.ports[OUT.index()].state()), (0, NONE));
    play.node.now = Time::ZERO + Span::from_us(500);
    // Without another path, or with one that is as bad, nothing moves.
    (0..3).for_each(|_| play.hear(OUT, 40, &[1]));
    play.node.ways = vec![OUT];
    assert_eq!(play.route(flow(3)), Verdict::Pass);
    play.node.ways = vec![OUT, OTHER];
    play.hear(OTHER, 41, &[1]);
    assert_eq!(play.route(flow(3)), Verdict::Pass);
    assert_eq!(play.rcm.counts.no_better_path, 2);
}

#[test]
fn a_lost_notification_is_counted_and_does_not_arrive() {
    let mut play = Play::new(&RcmParams { loss: 1.0, rcc: false, sar: false, ..params() });
    play.overload(40);
    assert!(!play.sent.is_empty() && play.sent.iter().all(|(_, message)| message.envelope.ttl == 0));
    assert_eq!(play.rcm.counts.notifications_lost as usize, play.sent.len());
}

#[test]
fn an_unaware_switch_has_none_and_frames_are_of_the_least_size() {
    let unaware = RcmParams { unaware: vec!["s*".to_string()], ..params() };
    assert!(Rcm::new(&unaware, &site(&["s1"])).is_none());
    let message = &message::messages(IpVersion::V4, 1, PortNo(1), &[Tuple::of(&flow(1)); 3])[0];
    assert_eq!(super::super::message_frame(&Framing::ETHERNET, message.envelope.header), 64);
}

/// The marking policy is asked about each packet that is held, once, as it comes.
#[test]
fn held_packets_are_put_to_the_marking_policy() {
    for combined in [false, true] {
        let mut play = Play::at(&RcmParams { sar: false, q_eq: Bytes(10_000_000), ..params() }, combined);
        play.hear(OUT, 63, &[1]);
        (0..40).for_each(|_| assert!(play.arrive(flow(1)) != Verdict::Take));
        (0..12).for_each(|_| assert!(play.turn()));
        assert!(play.marks.is_empty(), "nothing was held yet");
        let first = play.next;
        let held: Vec<PacketId> = (first..first + 30).map(PacketId).filter(|_| play.arrive(flow(1)) == Verdict::Hold).collect();
        assert!(held.len() > 15 && held == play.marks, "{held:?} {:?}", play.marks);
        while play.turn() {}
        assert_eq!(held, play.marks, "and not again when it goes on");
    }
}

/// At a port with several classes what may go on joins its queue, so that the scheduler's order holds: never past it (asserted in `turn`), one
/// at a time where the wire is free, and within the window.
#[test]
fn where_a_port_has_classes_held_packets_join_their_queue() {
    let mut play = Play::with_classes(&RcmParams { sar: false, q_eq: Bytes(10_000_000), ..params() });
    play.hear(OUT, 63, &[1]);
    for _ in 0..430 {
        play.arrive(flow(1));
        while play.node.queue.len() < 10 || play.left.len() < 13 && play.node.queue.len() < 26 {
            play.arrive(flow(2));
            if play.left.len() < 13 {
                play.arrive(flow(1));
            }
        }
        assert!(play.turn());
        play.hear(OUT, 63, &[1]);
    }
    let harmful = play.left[130..].iter().filter(|(flow, _)| *flow == 1).count();
    assert!((65..=85).contains(&harmful), "{harmful} of 300 frames, theory W_c / W = 4125 / 16500: 75");
    assert!(play.rcm.counts.released > 60);
    // With nothing else to send they go on.
    assert!(play.rcm.ports[OUT.index()].control.bytes() > 100_000);
    while play.turn() {}
    assert!(play.rcm.ports[OUT.index()].control.is_empty());
    assert!(play.left.windows(2).all(|w| w[0].0 != w[1].0 || w[0].1 < w[1].1), "in order");
}

/// A packet that is dropped before it has joined the queue, or at another port, is none of those that leave before what is held.
#[test]
fn drops_on_arrival_do_not_let_held_packets_overtake() {
    let mut play = Play::new(&RcmParams { sar: false, q_eq: Bytes(10_000_000), ..params() });
    play.hear(OUT, 63, &[1]);
    (0..30).for_each(|_| assert!(play.arrive(flow(1)) != Verdict::Take));
    (0..12).for_each(|_| assert!(play.turn()));
    assert_eq!(play.arrive(flow(1)), Verdict::Hold);
    assert!(play.node.queue.len() > 3, "of the same flow, before it");
    for id in (9_000..9_030).map(PacketId) {
        let (envelope, mut fx) = (flow(1), Effects::default());
        let dropped = Dropped { packet: id, envelope: &envelope, reference: None, reason: crate::DropReason::BUFFER_FULL };
        play.rcm.on_drop(&mut play.node, &dropped, &mut fx);
        play.note(fx);
    }
    while play.turn() {}
    assert!(play.left.iter().map(|(_, id)| id.0).eq(0..31), "{:?}", play.left);
}

/// A flow is harmful with enough places of the CAM; with `at_detection` those are that had them when the queue became congested,
/// whatever passes later.
#[test]
fn flows_are_recognised_by_places_now_or_at_detection() {
    let tuple = |n: u32| Tuple::of(&flow(n));
    for (recognise, then) in [(Recognise::Now, [false, true]), (Recognise::AtDetection, [true, false])] {
        let settings = RcmParams { rcc: false, sar: false, cam: 4, cam_hits: 3, cam_period: Bytes(1_500), recognise, ..params() };
        let mut play = Play::new(&settings);
        while play.rcm.ports[OUT.index()].local == 0 {
            [1, 1, 1, 2].into_iter().for_each(|n| {
                play.arrive(flow(n));
            });
        }
        let harmful = |play: &Play| [1, 2].map(|n| play.rcm.ports[OUT.index()].is_harmful(&tuple(n)));
        assert_eq!(harmful(&play), [true, false]);
        (0..8).for_each(|_| {
            play.arrive(flow(2));
        });
        assert!(play.rcm.ports[OUT.index()].local > 0);
        assert_eq!(harmful(&play), then, "{recognise:?}");
    }
}

/// By hand, two ports and IPv4, tuples of 96 bits. A port: detection 2·70 + 83, CAM 8·112 + 40, names 8·144, control 192 + 8 + 8·128, severity
/// 4·32: 3,663 bits. Moved flows: 1,024·144 bits.
#[test]
fn memory_is_that_of_its_registers_and_tables() {
    let at = site(&["s1", "s2"]);
    let of = |params: RcmParams| Rcm::memory(&params, &at).unwrap();
    assert_eq!(of(defaults()), Bytes((2 * 3_663_u64 + 1_024 * 144).div_ceil(8)));
    let small = RcmParams { sar: false, ..defaults() };
    assert_eq!(of(RcmParams { cam: 16, ..small.clone() }) - of(small.clone()), Bytes(2 * (112 + 144 + 1 + 128)));
    assert_eq!(of(small.clone()), Bytes((2 * 3_535_u64).div_ceil(8)));
    assert!(of(RcmParams { rcc: false, ..small.clone() }) < of(small));
}

/// Without a setting W_c never falls below the largest frame of the traffic, and W not below two of them.
#[test]
fn windows_suit_the_largest_frame() {
    let bounds = |params: &RcmParams, largest| {
        let site = Site { largest_frame: Bytes(largest), ..site(&["s1"]) };
        let bounds = Rcm::new(params, &site).unwrap().control.bounds;
        (bounds.floor, bounds.least)
    };
    assert_eq!(bounds(&defaults(), 1_522), (1_522, 16_000));
    assert_eq!(bounds(&defaults(), 9_022), (9_022, 18_044));
    let set = RcmParams { max_frame: Some(Bytes(2_000)), window_min: Some(Bytes(5_000)), ..defaults() };
    assert_eq!(bounds(&set, 1_522), (2_000, 5_000));
}
