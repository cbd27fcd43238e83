//! What results say of RCM: states, and counts by hand.

use super::*;

/// A state is recorded when a degree has moved to another step of the sampling table, which are eight degrees wide.
#[test]
fn a_row_for_each_step_of_the_degree() {
    let mut play = Play::new(&RcmParams { sar: false, ..params() });
    [8, 15, 16, 9, 63, 56, 55].into_iter().for_each(|degree| play.hear(OUT, degree, &[1]));
    assert_eq!(play.states, [8, 16, 9, 63, 55].map(|degree| (OUT, "output", "edge", degree)));
    assert_eq!((play.rcm.counts.regions, play.rcm.counts.notifications_received), (1, 7));
    play.hear(OUT, 0, &[]);
    play.hear(OUT, 1, &[1]);
    assert_eq!(play.states[5..], [(OUT, "output", "none", 0), (OUT, "output", "edge", 1)]);
    assert_eq!(play.rcm.counts.regions, 2);
}

/// Each packet of a flow that was moved is counted, the first among them.
#[test]
fn packets_that_take_another_port_are_counted() {
    let mut play = Play::new(&params());
    (0..3).for_each(|_| play.hear(OUT, 40, &[1]));
    (0..4).for_each(|_| assert_eq!(play.route(flow(2)), Verdict::Detour(OTHER)));
    assert_eq!((play.rcm.counts.flows_moved, play.rcm.counts.packets_moved), (1, 4));
    assert_eq!(play.route(Envelope { kind: Kind::Control, ..flow(2) }), Verdict::Pass, "a message has its way");
}

/// Frames and bytes that are held, windows that end, the largest values: 40 frames of a flow that is alone, W of 16.5 kB.
#[test]
fn what_is_held_is_counted_in_packets_and_bytes() {
    let mut play = Play::new(&RcmParams { sar: false, q_eq: Bytes(10_000_000), ..params() });
    play.hear(OUT, 63, &[1]);
    (0..30).for_each(|_| assert!(play.arrive(flow(1)) != Verdict::Take));
    (0..12).for_each(|_| assert!(play.turn()));
    (0..10).for_each(|_| assert_eq!(play.arrive(flow(1)), Verdict::Hold));
    let counts = play.rcm.counts();
    assert_eq!((counts.held, counts.held_bytes, counts.released), (10, 15_000, 0));
    assert_eq!(play.rcm.peaks()[0], 15_000);
    assert_eq!(play.rcm.longest_queue(), Some((OUT, Bytes(15_000))));
    assert_eq!(play.rcm.held().len(), 10);
    assert!(
        play.rcm.holds_for(OUT, TrafficClass(0))
            && !play.rcm.holds_for(OUT, TrafficClass(1))
            && !play.rcm.holds_for(OTHER, TrafficClass(0))
    );
    while play.turn() {}
    let counts = play.rcm.counts();
    assert_eq!((counts.held, counts.released, play.rcm.held().len()), (10, 10, 0));
    assert!(counts.windows > 0 && !play.rcm.holds_for(OUT, TrafficClass(0)));
    assert_eq!(play.rcm.peaks()[0], 15_000, "the most stays");
}

/// At a combined switch what is held and may go on crosses at the instant at which it is looked at, not with the next departure.
#[test]
fn what_may_go_on_crosses_when_it_is_looked_at() {
    let mut play = Play::at(&RcmParams { sar: false, q_eq: Bytes(10_000_000), ..params() }, true);
    play.hear(OUT, 63, &[1]);
    (0..14).for_each(|_| assert!(play.arrive(flow(1)) != Verdict::Take));
    while play.turn() {}
    assert!(play.rcm.ports[OUT.index()].control.is_running());
    play.node.paused_class = Some(TrafficClass(0));
    assert_eq!(play.arrive(flow(1)), Verdict::Hold, "its class is paused");
    play.node.paused_class = None;
    let left = play.left.len() + play.node.queue.len();
    play.timer(play.node.now);
    assert!(play.rcm.ports[OUT.index()].control.is_empty());
    assert_eq!(play.left.len() + play.node.queue.len(), left + 1);
}

/// A port that paced and is no longer notified, but congested itself, lets what is held go on at once: nothing else would wake it.
#[test]
fn a_root_goes_on_when_its_neighbour_is_calm() {
    let mut play = Play::new(&RcmParams { sar: false, q_eq: Bytes(1_000), when_idle: WhenIdle::Wait, ..params() });
    play.hear(OUT, 63, &[1]);
    (0..60).for_each(|_| assert!(play.arrive(flow(1)) != Verdict::Take));
    while play.turn() {}
    (0..30).for_each(|_| assert!(play.arrive(flow(1)) != Verdict::Take));
    while play.turn() {}
    let control = &play.rcm.ports[OUT.index()].control;
    assert!(control.is_stalled() && !play.armed && play.rcm.ports[OUT.index()].local > 0);
    play.hear(OUT, 0, &[]);
    assert_eq!(play.rcm.ports[OUT.index()].state(), ROOT);
    assert!(play.armed && play.turn());
}

/// What RCM asks to see depends on its parts: turns of the wire for windows, routes for moved flows, all else for detection.
#[test]
fn parts_that_are_off_are_not_asked() {
    for (rcc, sar) in [(true, true), (true, false), (false, true), (false, false)] {
        let hooks = Play::new(&RcmParams { rcc, sar, ..params() }).rcm.hooks();
        assert_eq!((hooks.any(Hooks::TURN), hooks.any(Hooks::ROUTE)), (rcc, sar));
        let detects = [Hooks::OFFER, Hooks::EGRESS, Hooks::DROP, Hooks::MESSAGES, Hooks::INPUTS];
        assert!(detects.into_iter().all(|hook| hooks.any(hook)));
    }
}

/// A packet that is dropped while it is held is held no longer, and counted once.
#[test]
fn what_is_dropped_is_held_no_longer() {
    let mut play = Play::new(&RcmParams { sar: false, q_eq: Bytes(10_000_000), ..params() });
    play.hear(OUT, 63, &[1]);
    (0..30).for_each(|_| assert!(play.arrive(flow(1)) != Verdict::Take));
    (0..12).for_each(|_| assert!(play.turn()));
    let held = fanin_packet::PacketId(play.next);
    assert_eq!(play.arrive(flow(1)), Verdict::Hold);
    for counted in [1, 1] {
        let (envelope, mut fx) = (flow(1), Effects::default());
        let dropped = Dropped { packet: held, envelope: &envelope, reference: None, reason: crate::DropReason::BUFFER_FULL };
        play.rcm.on_drop(&mut play.node, &dropped, &mut fx);
        play.note(fx);
        assert_eq!((play.rcm.counts.held_dropped, play.rcm.held().len()), (counted, 0));
    }
}
