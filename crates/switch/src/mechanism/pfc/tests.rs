//! PFC at one switch of three ports.

use super::*;
use crate::mechanism::testing::{bench, site};
use fanin_packet::Framing;
use std::collections::BTreeMap;

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
        lossy: None,
        watchdog: None,
    }
}

struct Switch {
    pfc: Pfc,
    now: Time,
    /// Bodies of the frames that were sent, with their ports.
    sent: Vec<(PortNo, Pause)>,
    effects: Vec<Effect>,
    /// Kept with packets from one hook to the next.
    notes: BTreeMap<PacketId, u64>,
}

impl Switch {
    fn new(params: &PfcParams) -> Switch {
        let pfc = Pfc::new(params, &site(&["h0", "s1", "h2"])).expect("a state");
        Switch { pfc, now: Time::from_ps(1_000), sent: Vec::new(), effects: Vec::new(), notes: BTreeMap::new() }
    }

    fn run<T>(&mut self, hook: impl FnOnce(&mut Pfc, &mut dyn Node, &mut Effects) -> T) -> T {
        let mut node = bench(3);
        (node.now, node.free_at) = (self.now, Time::MAX);
        node.notes = std::mem::take(&mut self.notes);
        let mut fx = Effects::default();
        let result = hook(&mut self.pfc, &mut node, &mut fx);
        self.notes = node.notes;
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

    fn packet(&mut self, id: u32, from: u16, class: u8) -> Verdict {
        self.packet_for(id, from, class, 2)
    }

    fn packet_for(&mut self, id: u32, from: u16, class: u8, to: u16) -> Verdict {
        let mut envelope = Envelope { frame: 1_000, class: TrafficClass(class), ..Envelope::default() };
        let mut shim = None;
        self.run(|pfc, node, fx| {
            let mut arrival = Arrival { id: PacketId(id), envelope: &mut envelope, from: Some(PortNo(from)), shim: &mut shim };
            pfc.on_offer(node, &mut arrival, PortNo(to), fx)
        })
    }

    /// Time passes, and timers expire.
    fn after(&mut self, span: Span) {
        let until = self.now + span;
        while let Some((at, ..)) = self.pfc.tasks.first().copied().filter(|(at, ..)| *at <= until) {
            self.now = at.max(self.now);
            self.run(|pfc, node, fx| pfc.on_timer(node, fx));
        }
        self.now = until;
    }

    fn is_dropped(&mut self, id: u32) {
        let envelope = Envelope::default();
        let dropped = Dropped { packet: PacketId(id), envelope: &envelope, reference: None, reason: DropReason::WATCHDOG };
        self.run(|pfc, node, fx| pfc.on_drop(node, &dropped, fx));
    }

    fn leaves(&mut self, id: u32) {
        self.run(|pfc, node, fx| pfc.on_departed(node, PacketId(id), fx));
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
    let frame = message(&pause(3, 0x1234));
    assert_eq!(
        (frame.body(), frame.envelope.kind, frame.envelope.ttl),
        (&bytes[..], Kind::Control, 1),
        "it ends at the neighbour"
    );
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
    assert!(s.sent.is_empty() && s.pfc.memory.in_use().1 == 4_000);
    s.packet(5, 0, 3);
    assert_eq!(s.sent, [(PortNo(0), pause(3, 100))]);
    for id in 6..9 {
        assert_eq!(s.packet(id, 0, 3), Verdict::Pass, "in the headroom");
    }
    assert_eq!((s.pfc.peaks(), s.pfc.memory.in_use()), (vec![3_000, 9_000], (167_000, 5_000, 9_000)));
    assert_eq!(s.packet(9, 0, 3), Verdict::Drop(DropReason::HEADROOM_FULL));
    assert_eq!(s.packet(10, 1, 3), Verdict::Pass, "another neighbour has its own");
    for id in 0..4 {
        s.leaves(id);
        assert_eq!(s.sent.len(), 1, "{id}");
    }
    s.leaves(4);
    assert_eq!(s.sent.last(), Some(&(PortNo(0), pause(3, 0))), "4 kB are left, 3 of them of the pool");
    (5..11).for_each(|id| s.leaves(id));
    assert_eq!(s.pfc.memory.in_use(), (167_000, 0, 0));
    let counts = s.pfc.counts();
    assert_eq!((counts.xoff, counts.xon, counts.frames_sent, counts.dropped_lossless), (1, 1, 2, 1));
}

/// Neither end of a dead link pauses the other: what was asked is not asked again by time, and the port's own pause is over. When the link works
/// again, the neighbour is asked anew, as its packets still take too much.
#[test]
fn a_link_that_fails_takes_its_pauses_along() {
    let mut s = Switch::new(&params(3_000));
    (0..6).for_each(|id| assert_eq!(s.packet(id, 0, 3), Verdict::Pass));
    s.gets(0, pause(3, 100));
    let gates = |s: &Switch| s.effects.iter().filter(|effect| matches!(effect, Effect::Gate { .. })).count();
    assert_eq!((s.sent.len(), gates(&s)), (1, 1));
    s.run(|pfc, node, fx| pfc.on_link(node, PortNo(0), false, fx));
    assert!(matches!(s.effects.last(), Some(Effect::Gate { port: PortNo(0), closed: 0 })), "{:?}", s.effects);
    assert_eq!((s.pfc.counts().forgotten, s.pfc.ports[0].asked), (2, 0));
    s.after(Pause::lasts(300, BitRate::from_gbps(10)));
    assert_eq!((s.sent.len(), gates(&s)), (1, 2), "nothing is asked of a dead link, and its pause does not end once more");
    s.run(|pfc, node, fx| pfc.on_link(node, PortNo(0), true, fx));
    assert_eq!(s.sent[1..], [(PortNo(0), pause(3, 100))]);
    // Another port has nothing to forget, and one with little in memory nothing to ask for.
    s.run(|pfc, node, fx| pfc.on_link(node, PortNo(1), false, fx));
    s.run(|pfc, node, fx| pfc.on_link(node, PortNo(1), true, fx));
    assert_eq!((s.pfc.counts().forgotten, s.sent.len()), (2, 2));
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
    assert_eq!(s.pfc.memory.in_use().0, 10_000);
    (0..6).for_each(|id| assert_eq!(s.packet(id, 0, 3), Verdict::Pass));
    assert_eq!((s.pfc.memory.in_use().1, s.sent.len()), (5_000, 1), "5 of 10 kB, then headroom");
    (10..14).for_each(|id| assert_eq!(s.packet(id, 1, 3), Verdict::Pass));
    assert_eq!(s.pfc.memory.in_use().1, 8_000, "3 of the 5 kB that were left");
}

/// A neighbour goes on when its headroom is empty, not before, though others have left room in the pool meanwhile. Source: IEEE 802.1Q
/// Annex N: what the headroom is for may still be on its way.
#[test]
fn a_neighbour_waits_until_its_headroom_is_empty() {
    let xoff = Xoff::Dynamic(DynamicXoff { alpha: 1.0 });
    let mut s = Switch::new(&PfcParams { xoff, reserved: Bytes(0), memory: Bytes(19_000), ..params(3_000) });
    (10..14).for_each(|id| assert_eq!(s.packet(id, 1, 3), Verdict::Pass));
    (0..5).for_each(|id| assert_eq!(s.packet(id, 0, 3), Verdict::Pass));
    assert_eq!((s.pfc.memory.in_use(), s.sent.len()), ((10_000, 7_000, 9_000), 1), "3 of the 6 kB, and 2 kB of headroom");
    (10..14).for_each(|id| s.leaves(id));
    s.leaves(0);
    assert_eq!((s.pfc.memory.in_use(), s.sent.len()), ((10_000, 3_000, 4_000), 1), "3 kB are well below the threshold of 7");
    s.leaves(1);
    assert_eq!(s.sent[1..], [(PortNo(0), pause(3, 0))]);
}

/// A neighbour that takes nothing of the pool is not paused where others have filled it: its reservation is its own.
#[test]
fn a_full_pool_pauses_no_neighbour_within_its_reservation() {
    let xoff = Xoff::Dynamic(DynamicXoff { alpha: 16.0 });
    let mut s = Switch::new(&PfcParams { xoff, memory: Bytes(43_000), ..params(3_000) });
    (0..10).for_each(|id| assert_eq!(s.packet(id, 0, 3), Verdict::Pass));
    (10..12).for_each(|id| assert_eq!(s.packet(id, 1, 3), Verdict::Pass));
    assert_eq!((s.pfc.memory.in_use(), s.pfc.memory.threshold()), ((10_000, 10_000, 12_000), Bytes(0)));
    let before = s.sent.len();
    assert_eq!(s.packet(20, 2, 3), Verdict::Pass);
    assert_eq!((s.sent.len(), s.pfc.ports[2].asked), (before, 0));
}

/// A packet that another mechanism holds takes memory as one that waits does, and takes it once.
#[test]
fn what_another_mechanism_holds_takes_memory_once() {
    let mut s = Switch::new(&params(3_000));
    let held = |s: &mut Switch, id| {
        let mut envelope = Envelope { frame: 1_000, class: TrafficClass(3), ..Envelope::default() };
        let mut shim = None;
        s.run(|pfc, node, fx| {
            let mut arrival = Arrival { id: PacketId(id), envelope: &mut envelope, from: Some(PortNo(0)), shim: &mut shim };
            pfc.on_taken(node, &mut arrival, PortNo(2), fx)
        })
    };
    assert_eq!((held(&mut s, 1), s.pfc.memory.in_use().2), (Verdict::Pass, 1_000));
    assert_eq!((held(&mut s, 1), s.pfc.memory.in_use().2), (Verdict::Pass, 1_000), "it has taken its memory");
    assert_eq!((s.packet(2, 0, 3), s.pfc.memory.in_use().2), (Verdict::Pass, 2_000));
    assert_eq!((held(&mut s, 2), s.pfc.memory.in_use().2), (Verdict::Pass, 2_000));
    (1..3).for_each(|id| s.leaves(id));
    assert_eq!(s.pfc.memory.in_use().2, 0);
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
    let site = site(&["h0"]);
    let port = &site.ports[0];
    let wire = 2 * 1_538 + 84;
    assert_eq!(needed(&params(0), &site, port), 1_518 + wire + 2_500);
    let slow = PfcParams { response: Span::from_us(4), max_frame: Bytes(9_018), ..params(0) };
    assert_eq!(needed(&slow, &site, port), 9_018 + 2 * 9_038 + 84 + 7_500);
    // Either frame on the link may have a message at its end; what arrives has none when it waits.
    let attached = Site { attached_frame: Bytes(1_538), ..site.clone() };
    assert_eq!(needed(&params(0), &attached, port), 1_518 + wire + 40 + 2_500);
    // No frame of the traffic is larger than a message, 44 bytes in 64.
    let small = PfcParams { max_frame: Bytes(64), ..params(0) };
    assert_eq!(needed(&small, &site, port), 64 + 3 * 84 + 2_500);
    let long = Site { framing: Framing { header: 40, ..site.framing }, ..site.clone() };
    assert_eq!(needed(&small, &long, port), 64 + 3 * 104 - 20 + 2_500, "a header of 40 bytes, 20 less in the PFC frame");
    // A record of 8 bytes is hidden by a gap of 20; without one each of the frames that arrive takes 8 more.
    assert_eq!(needed(&params(0), &Site { growth: 8, ..site.clone() }, port), 1_518 + wire + 2_500);
    let bare = Site { growth: 8, ..site.clone() };
    let tight = PortSite { overhead: 0, ..port.clone() };
    let arrive = 2 * 1_518 + 64 + 2_500;
    assert_eq!(needed(&params(0), &bare, &tight), 1_518 + arrive + arrive / 64 * 8);
}

/// A frame states every class whose state the neighbour is to know: one enable vector, one time each. Source: IEEE 802.1Q §36.1.3.3.
#[test]
fn one_frame_states_all_classes() {
    let mut s = Switch::new(&PfcParams { classes: vec![3, 4], ..params(3_000) });
    (0..6).for_each(|id| assert_eq!(s.packet(id, 0, 3), Verdict::Pass));
    (6..12).for_each(|id| assert_eq!(s.packet(id, 0, 4), Verdict::Pass));
    let mut both = pause(3, 100);
    both.0[4] = Some(100);
    assert_eq!(s.sent, [(PortNo(0), pause(3, 100)), (PortNo(0), both)], "the second says the first again");
    (0..6).for_each(|id| s.leaves(id));
    let mut one = pause(3, 0);
    one.0[4] = Some(100);
    assert_eq!(s.sent.last(), Some(&(PortNo(0), one)), "XON of one, and a refresh of the other");
}

/// XOFF says behind which port most of what came in waits.
#[test]
fn what_a_neighbour_is_asked_for() {
    let mut s = Switch::new(&params(3_000));
    (0..2).for_each(|id| assert_eq!(s.packet_for(id, 0, 3, 1), Verdict::Pass));
    (2..5).for_each(|id| assert_eq!(s.packet_for(id, 0, 3, 2), Verdict::Pass));
    assert!(!s.effects.iter().any(|effect| matches!(effect, Effect::Asks { .. })));
    s.packet_for(5, 0, 3, 1);
    let asks = |behind| Effect::Asks { port: PortNo(0), class: TrafficClass(3), behind: Some(PortNo(behind)), held_up: false };
    assert!(s.effects.contains(&asks(1)), "3 kB wait for either: the first of them");
    s.leaves(0);
    s.leaves(1);
    s.leaves(5);
    s.effects.clear();
    (6..9).for_each(|id| assert_eq!(s.packet_for(id, 0, 3, 1 + id as u16 % 2), Verdict::Pass));
    assert!(s.effects.contains(&asks(2)), "{:?}", s.effects);
}

/// A port is held up from its pause on until its queue is empty again: until then its pause is why others are asked. Packets of another
/// class that leave change nothing.
#[test]
fn a_port_is_held_up_until_its_queue_is_empty() {
    let mut s = Switch::new(&PfcParams { classes: vec![3, 4], ..params(3_000) });
    let asked = |s: &mut Switch, ids: std::ops::Range<u32>| {
        s.effects.clear();
        ids.for_each(|id| assert_eq!(s.packet(id, 0, 3), Verdict::Pass));
        let held = |effect: &Effect| if let Effect::Asks { held_up, .. } = effect { Some(*held_up) } else { None };
        s.effects.iter().find_map(held)
    };
    s.gets(2, pause(3, u16::MAX));
    assert_eq!(asked(&mut s, 0..6), Some(true), "paused");
    assert_eq!(s.packet(50, 0, 4), Verdict::Pass);
    s.gets(2, pause(3, 0));
    s.leaves(50);
    (0..5).for_each(|id| s.leaves(id));
    assert_eq!(asked(&mut s, 6..11), Some(true), "a packet of then still waits");
    (5..11).for_each(|id| s.leaves(id));
    assert_eq!(asked(&mut s, 11..17), Some(false), "all of that has left");
}

/// The pause of one class holds up no other, whatever waits there.
#[test]
fn a_pause_holds_up_its_own_class() {
    let mut s = Switch::new(&PfcParams { classes: vec![3, 4], ..params(3_000) });
    assert_eq!(s.packet(50, 0, 4), Verdict::Pass);
    s.gets(2, pause(3, u16::MAX));
    (0..6).for_each(|id| assert_eq!(s.packet(id, 0, 4), Verdict::Pass));
    let (port, class) = (PortNo(0), TrafficClass(4));
    assert!(s.effects.contains(&Effect::Asks { port, class, behind: Some(PortNo(2)), held_up: false }), "{:?}", s.effects);
}

/// Lossless classes are claimed to be dropped only where a watchdog may do so.
#[test]
fn what_is_claimed_of_classes() {
    let claims = |watchdog| {
        let claims = Pfc::claims(&PfcParams { watchdog, ..params(3_000) });
        (claims.lossless, claims.drops, claims.packet_memory)
    };
    assert_eq!(claims(None), (0b1000, !0b1000, Some(Bytes(200_000))));
    let watchdog = Watchdog { detection: Span::from_us(100), restoration: Span::from_us(50), action: StormAction::Drop };
    assert_eq!(claims(Some(watchdog)), (0b1000, u8::MAX, Some(Bytes(200_000))));
}

/// With a pool of their own, other classes take nothing of the lossless ones' and the other way round.
#[test]
fn pools_apart() {
    let lossy = LossyPool { memory: Bytes(20_000), alpha: 1.0 };
    let mut s = Switch::new(&PfcParams { lossy: Some(lossy), reserved: Bytes(0), ..params(3_000) });
    let pool = 200_000 - 3 * 3_000 - 20_000;
    assert_eq!((s.pfc.memory.in_use().0, s.pfc.memory.threshold()), (pool, Bytes(5_000)));
    let taken = (0..20).filter(|id| s.packet(*id, 0, 1) == Verdict::Pass).count();
    assert_eq!((taken, s.pfc.memory.lossy_in_use(), s.pfc.memory.in_use()), (10, 10_000, (pool, 0, 10_000)), "half is free then");
    (20..25).for_each(|id| assert_eq!(s.packet(id, 0, 3), Verdict::Pass));
    assert_eq!((s.sent.len(), s.pfc.memory.in_use().1, s.pfc.memory.lossy_in_use()), (1, 5_000, 10_000));
}

fn watched(action: StormAction) -> Switch {
    let watchdog = Watchdog { detection: Span::from_us(100), restoration: Span::from_us(50), action };
    Switch::new(&PfcParams { watchdog: Some(watchdog), quanta: 65_535, ..params(3_000) })
}

/// A class that is paused while a packet waits, without a break for the detection time, is dropped: what waits, and what comes. When
/// the class has not been paused for the restoration time, it is as before.
#[test]
fn the_watchdog_drops_a_class_that_stays_paused() {
    let mut s = watched(StormAction::Drop);
    s.gets(2, pause(3, u16::MAX));
    s.after(Span::from_us(40));
    assert_eq!(s.packet(0, 0, 3), Verdict::Pass);
    assert!(s.effects.contains(&Effect::Timer(s.now + Span::from_us(100))), "since something waits");
    s.after(Span::from_us(99));
    assert_eq!((s.pfc.counts().storms, s.packet(1, 1, 3)), (0, Verdict::Pass));
    s.effects.clear();
    s.after(Span::from_us(1));
    let (port, classes, reason) = (PortNo(2), 1 << 3, DropReason::WATCHDOG);
    assert_eq!(s.effects[..2], [Effect::Flush { port, classes, reason }, Effect::Gate { port, closed: 0 }]);
    [0, 1].into_iter().for_each(|id| s.is_dropped(id));
    assert_eq!((s.packet(2, 0, 3), s.packet(3, 0, 1)), (Verdict::Drop(DropReason::WATCHDOG), Verdict::Pass));
    s.is_dropped(2);
    s.after(Span::from_us(30));
    s.gets(2, pause(3, 0));
    s.after(Span::from_us(49));
    assert_eq!((s.pfc.counts().storms_over, s.packet(4, 0, 3)), (0, Verdict::Drop(DropReason::WATCHDOG)));
    s.after(Span::from_us(1));
    assert_eq!((s.pfc.counts().storms_over, s.packet(5, 0, 3)), (1, Verdict::Pass));
    s.gets(2, pause(3, 10));
    assert_eq!(s.effects.last(), Some(&Effect::Timer(s.now + Span::from_us(100))), "paused again, and watched again");
    let counts = s.pfc.counts();
    assert_eq!((counts.storms, counts.dropped_watchdog, counts.dropped_lossless), (1, 3, 0));
}

/// A pause that ends in between begins anew, and one that keeps nothing waiting is no storm.
#[test]
fn short_pauses_are_no_storm() {
    let mut s = watched(StormAction::Drop);
    assert_eq!(s.packet(0, 0, 3), Verdict::Pass);
    for _ in 0..5 {
        s.gets(2, pause(3, u16::MAX));
        s.after(Span::from_us(90));
        s.gets(2, pause(3, 0));
        s.after(Span::from_us(5));
    }
    s.leaves(0);
    s.gets(2, pause(3, u16::MAX));
    s.after(Span::from_us(500));
    assert_eq!(s.pfc.counts().storms, 0);
}

/// The other action: pauses are ignored, nothing is dropped.
#[test]
fn the_watchdog_may_send_what_stays_paused() {
    let mut s = watched(StormAction::Forward);
    assert_eq!(s.packet(0, 0, 3), Verdict::Pass);
    s.gets(2, pause(3, u16::MAX));
    s.effects.clear();
    s.after(Span::from_us(100));
    assert_eq!(s.effects[0], Effect::Gate { port: PortNo(2), closed: 0 });
    assert_eq!(s.packet(1, 0, 3), Verdict::Pass);
    s.gets(2, pause(3, u16::MAX));
    assert!(!s.effects.iter().any(|effect| matches!(effect, Effect::Gate { closed: 8, .. })));
    assert_eq!((s.pfc.counts().storms, s.pfc.counts().dropped_watchdog), (1, 0));
}

/// Classes above the seventh count as the seventh, wherever they come from; a class that there is not is lossless nowhere.
#[test]
fn a_class_too_high_is_the_highest() {
    assert_eq!(PfcParams { classes: vec![3, 8, 200], ..params(3_000) }.lossless(), 1 << 3);
    let mut s = Switch::new(&PfcParams { classes: vec![7], ..params(3_000) });
    (0..6).for_each(|id| assert_eq!(s.packet(id, 0, 200), Verdict::Pass));
    assert_eq!((s.sent.as_slice(), s.pfc.memory.in_use().2), ([(PortNo(0), pause(7, 100))].as_slice(), 6_000));
    // One that a mechanism holds takes memory as others do.
    let (mut envelope, mut shim) = (Envelope { frame: 1_000, class: TrafficClass(9), ..Envelope::default() }, None);
    let verdict = s.run(|pfc, node, fx| {
        let mut arrival = Arrival { id: PacketId(6), envelope: &mut envelope, from: Some(PortNo(1)), shim: &mut shim };
        pfc.on_taken(node, &mut arrival, PortNo(2), fx)
    });
    assert_eq!(
        (verdict, s.pfc.memory.in_use().2, s.pfc.waits_behind(PortNo(1), TrafficClass(7))),
        (Verdict::Pass, 7_000, vec![PortNo(2)])
    );
    (0..7).for_each(|id| s.leaves(id));
    assert_eq!((s.pfc.memory.in_use().2, s.pfc.waits_behind(PortNo(1), TrafficClass(7))), (0, vec![]));
}

/// A circle of pauses ends where a watchdog drops what waits, and not without.
#[test]
fn a_watchdog_breaks_deadlocks() {
    assert!(!Switch::new(&params(3_000)).pfc.breaks_deadlocks());
    assert!(watched(StormAction::Drop).pfc.breaks_deadlocks());
}

/// Packets come and leave at random, of a lossless class and another, to a memory that is asked the short way first, as a switch does, and
/// to one that is not; exactly, once somebody may have to pause, until that is far. Both decide alike and hold the same; where the short way was enough nobody is to pause. It is enough for most packets
/// where little waits.
#[test]
fn the_short_way_decides_as_the_long_one() {
    let xoffs = [Xoff::Static(StaticXoff { bytes: Bytes(5_000) }), Xoff::Dynamic(DynamicXoff { alpha: 0.5 })];
    for (xoff, lossy, most, least_calm) in [
        (xoffs[0].clone(), None, 12, 9_500),
        (xoffs[1].clone(), None, 40, 4_200),
        (xoffs[0].clone(), Some(LossyPool { memory: Bytes(20_000), alpha: 1.0 }), 12, 8_600),
        (xoffs[1].clone(), Some(LossyPool { memory: Bytes(9_000), alpha: 2.0 }), 120, 250),
    ] {
        let params = PfcParams { xoff, lossy, memory: Bytes(60_000), ..params(3_000) };
        let [mut short, mut long] = [0; 2].map(|_| Memory::new(&params, vec![3_000; 3]));
        let at = site(&["h0"]);
        let (mut waiting, mut draws, mut exact) = (Vec::new(), at.stream(77, &at.ports[0]), false);
        let (mut calm, mut peaks, mut asked) = (0, 0, 0);
        for step in 0..20_000_u32 {
            // The queue grows and shrinks over and over.
            let draw = draws.next_u32();
            if draw % most < waiting.len() as u32 && !waiting.is_empty() || step % 4_000 > 3_800 && !waiting.is_empty() {
                let held = waiting.swap_remove(draws.next_u32() as usize % waiting.len());
                short.release(held);
                long.release(held);
            } else {
                let [port, output] = [draw >> 8, draw >> 12].map(|bits| PortNo((bits % 3) as u16));
                let class = TrafficClass(if draw >> 20 & 3 == 0 { 1 } else { 3 });
                let held = Held { port, output, class, bytes: 64 + (draws.next_u32() % 1_455) as u16, crossed: false };
                asked += 1;
                exact &= step % 16 != 0 || !short.is_low();
                let quick = !exact && short.take_calmly(held);
                calm += u32::from(quick);
                let at_peak = !quick && !exact && step % 2 == 0 && short.take_at_peak(held);
                peaks += u32::from(at_peak);
                let quick = quick || at_peak;
                let decided = if quick {
                    Ok(())
                } else {
                    exact |= !exact && !short.becomes_calm(held);
                    short.take(held)
                };
                assert_eq!(decided, long.take(held), "{held:?}");
                if decided.is_ok() {
                    waiting.push(held);
                }
                let pauses = |memory: &Memory| (0..3).any(|port| memory.wants_pause(PortNo(port), TrafficClass(3), false));
                assert!(!(quick && pauses(&long)), "{held:?} was taken the short way, and somebody has to pause");
            }
            assert_eq!((short.in_use(), short.lossy_in_use(), short.peaks()), (long.in_use(), long.lossy_in_use(), long.peaks()));
            for (port, class) in [(0, 1), (1, 1), (2, 3)].map(|(port, class)| (port, TrafficClass(class))) {
                assert!(short.outputs(PortNo(port), class).eq(long.outputs(PortNo(port), class)));
            }
        }
        assert!((least_calm..least_calm + 500).contains(&calm), "{calm} of {asked} the short way");
        assert!(peaks > 0, "none at a peak");
    }
}

/// Packets that have to wait, and those that leave, are counted without a question where that is enough: verdicts, notes, effects and state are those of a switch
/// that asks about each.
#[test]
fn counting_without_a_question_changes_nothing() {
    let params = PfcParams { xoff: Xoff::Dynamic(DynamicXoff { alpha: 0.5 }), memory: Bytes(60_000), ..params(3_000) };
    let [mut quick, mut asked] = [0; 2].map(|_| Switch::new(&params));
    let at = site(&["h0"]);
    let (mut draws, mut waiting, mut calm, mut left, mut packets) = (at.stream(78, &at.ports[0]), Vec::new(), 0, 0, 0);
    for id in 0..3_000 {
        let draw = draws.next_u32();
        if draw % 30 < waiting.len() as u32 || id % 500 > 450 && !waiting.is_empty() {
            let gone = waiting.swap_remove((draw >> 8) as usize % waiting.len());
            let note = quick.notes.get(&PacketId(gone)).copied().unwrap_or_default();
            if quick.pfc.leave_calmly(note) {
                left += 1;
                quick.notes.insert(PacketId(gone), 0);
            } else {
                quick.leaves(gone);
            }
            asked.leaves(gone);
        } else {
            let [from, to] = [draw >> 8, draw >> 12].map(|bits| (bits % 3) as u16);
            let class = [1, 200, 3, 3, 3, 3, 3, 3][(draw >> 20) as usize % 8]; // 200 is taken for the highest
            let envelope = Envelope { frame: 1_000, class: TrafficClass(class), ..Envelope::default() };
            let note = quick.pfc.take_calmly(&envelope, PortNo(from), PortNo(to));
            calm += u32::from(note.is_some());
            packets += 1;
            let verdict = match note {
                None => quick.packet_for(id, from, class, to),
                Some(note) => {
                    quick.notes.insert(PacketId(id), note);
                    Verdict::Pass
                }
            };
            assert_eq!(verdict, asked.packet_for(id, from, class, to), "packet {id}");
            if verdict == Verdict::Pass {
                waiting.push(id);
            }
        }
        let state = |switch: &Switch| format!("{:?} {:?} {:?} {:?}", switch.pfc, switch.notes, switch.sent, switch.effects);
        assert_eq!(state(&quick), state(&asked), "after packet {id}");
        [&mut quick, &mut asked].into_iter().for_each(|switch| switch.effects.clear());
    }
    assert!((packets / 10..packets * 9 / 10).contains(&calm), "{calm} of {packets} without a question");
    assert!((packets / 10..packets * 9 / 10).contains(&left), "{left} of {packets} have left without a question");
}

/// Each lossless class has its headroom at each port, and each class its reservation: 3 ports of 2 · 3 kB and 8 · 1 kB.
#[test]
fn what_is_fixed_of_the_memory_counts_classes_and_ports() {
    let two = PfcParams { classes: vec![3, 4], ..params(3_000) };
    assert_eq!(memory::fixed(&two, [3_000; 3].into_iter()), 3 * (2 * 3_000 + 8 * 1_000));
    let own = PfcParams { lossy: Some(LossyPool { memory: Bytes(20_000), alpha: 1.0 }), ..two };
    assert_eq!(memory::common(&own, 42_000), 200_000 - 42_000 - 20_000);
}
