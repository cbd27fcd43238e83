//! Input queues that set the local flag.

use super::*;

fn flagged() -> RcmParams {
    RcmParams { local_flag: LocalFlag::Either, rcc: false, sar: false, ..params() }
}

/// A packet comes in by `IN`, where `waiting` bytes wait for several outputs, and leaves by the idle `OUT`.
fn congested_input(play: &mut Play, waiting: u64) {
    for _ in 0..40 {
        play.node.inputs = waiting;
        play.node.now = play.node.free_at;
        assert_eq!(play.arrive(flow(1)), Verdict::Pass);
        while play.turn() {}
    }
}

/// The output has no queue: without the input's flag it is no root and the neighbour has no flow to hear of, with it both are.
#[test]
fn a_congested_input_makes_the_output_of_its_packets_a_root_where_asked_to() {
    for combined in [false, true] {
        let mut without = Play::at(&RcmParams { local_flag: LocalFlag::Output, ..flagged() }, combined);
        congested_input(&mut without, 60_000);
        assert!(without.states.iter().all(|state| (state.0, state.1) == (IN, "input")), "{:?}", without.states);
        assert!(without.sent.is_empty() && without.rcm.counts.not_notified > 0);

        let mut play = Play::at(&flagged(), combined);
        congested_input(&mut play, 60_000);
        // 63 · (60,000 − 26,000) / 130,000, rounded up, once the queue no longer grows.
        assert!(play.states.contains(&(IN, "input", "congested", 17)), "{:?}", play.states);
        let root = play.states.iter().find(|state| (state.0, state.2) == (OUT, "root")).unwrap();
        assert_eq!((root.1, root.3), ("output", 63), "the first sample has the queue's growth, 2 · 60,000");
        let (port, message) = &play.sent[0];
        let said = message::read(IpVersion::V4, message.body()).unwrap();
        assert_eq!((*port, said.degree, said.flows[0].flow), (IN, 63, FlowId(1)));
        assert_eq!(play.rcm.ports[OUT.index()].state(), NONE, "an idle wire ends it as the packet leaves");
    }
}

/// A flag of an input ends with the input's degree, and the output's own degree stays what it is.
#[test]
fn the_flag_of_an_input_ends_with_its_congestion() {
    let mut play = Play::new(&flagged());
    play.pause(true);
    (0..40).for_each(|_| {
        play.node.inputs = 60_000;
        assert_eq!(play.arrive(flow(1)), Verdict::Pass);
    });
    let out = &play.rcm.ports[OUT.index()];
    assert_eq!((out.inputs.as_slice(), out.local), ([(IN, 17)].as_slice(), out.own.max(17)));
    let own = out.own;
    assert!(own > 17, "{own}");
    play.node.inputs = 0;
    play.timer(play.node.now + Span::from_us(10));
    let out = &play.rcm.ports[OUT.index()];
    assert_eq!((out.inputs.len(), out.own, out.local), (0, own, own));
    assert_eq!((out.state(), play.rcm.ports[IN.index()].arriving), (ROOT, 0));
}

/// The degree of the output is the largest of what its own queue and its inputs say, and a link that fails ends all of them.
#[test]
fn the_largest_degree_counts_until_the_link_is_down() {
    let mut play = Play::new(&flagged());
    let at = &mut play.rcm.ports[OUT.index()];
    at.set_input(IN, 20);
    at.set_input(OTHER, 9);
    assert_eq!((at.local, at.own), (20, 0));
    at.set_own(30);
    at.set_input(IN, 12);
    assert_eq!((at.local, at.inputs.len()), (30, 2));
    at.set_own(0);
    assert_eq!(at.local, 12);
    at.set_input(IN, 0);
    assert_eq!(at.local, 9);
    let mut fx = Effects::default();
    play.rcm.on_link(&mut play.node, OUT, false, &mut fx);
    let at = &play.rcm.ports[OUT.index()];
    assert_eq!((at.local, at.inputs.len(), at.state()), (0, 0, NONE));
}

/// Each port keeps a degree of six bits for each input, if those set its flag.
#[test]
fn flags_of_inputs_take_six_bits_for_each_pair_of_ports() {
    let site = site(&["s1", "h1", "s2", "s3"]);
    let state = |local_flag| RcmParams { local_flag, sar: false, ..params() }.state(&site).get();
    assert_eq!(state(LocalFlag::Either) - state(LocalFlag::Output), 4 * 4 * 6 / 8);
}
