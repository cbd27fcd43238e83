//! Drawn steps at one switch: whatever comes, nothing is stranded and no flow is reordered.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(u32, u16),
    Turn,
    Hear(u8, u32),
    Over,
    Pause(bool),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u32..6, 64_u16..=1_518).prop_map(|(flow, frame)| Step::Arrive(flow, frame)),
        4 => Just(Step::Turn),
        1 => (1_u8..=63, 0_u32..6).prop_map(|(degree, flow)| Step::Hear(degree, flow)),
        1 => Just(Step::Over),
        1 => any::<bool>().prop_map(Step::Pause),
        1 => (0_u64..30).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever is notified, paused and sent: packets of a flow leave in the order in which they came, none is stranded, none leaves
    /// twice, and the first that is held leaves before a window and a frame have.
    #[test]
    fn windows_strand_and_reorder_nothing(
        steps in proptest::collection::vec(step(), 1..600),
        each in any::<bool>(),
        paces in any::<bool>(),
        kind in 0_u8..3,
        reserved in 1_000_u64..50_000,
    ) {
        let decrease = if each { Decrease::Each } else { Decrease::Measured };
        let when_idle = if paces { WhenIdle::Wait } else { WhenIdle::Send };
        let settings = RcmParams {
            decrease, when_idle, sar: false, q_eq: Bytes(6_000), window_min: Some(Bytes(4_000)), window_max: Bytes(12_000),
            reserved: Bytes(reserved), ..params()
        };
        let mut play = if kind == 2 { Play::with_classes(&settings) } else { Play::at(&settings, kind == 1) };
        for step in steps {
            match step {
                Step::Arrive(n, frame) => { play.arrive(Envelope { frame, ..flow(n) }); }
                Step::Turn => { play.turn(); }
                Step::Hear(degree, n) => play.hear(OUT, degree, &[n, n + 1]),
                Step::Over => play.hear(OUT, 0, &[]),
                Step::Pause(paused) => play.pause(paused),
                Step::Wait(us) => { let now = play.node.now + Span::from_us(us); play.timer(now); }
            }
        }
        play.pause(false);
        for _ in 0..10_000 {
            if !play.turn() {
                let now = play.node.now + Span::from_us(1);
                play.timer(now);
            }
        }
        prop_assert_eq!(play.left.len(), play.next as usize);
        let mut last: BTreeMap<u32, PacketId> = BTreeMap::new();
        for (flow, id) in &play.left {
            let before = last.insert(*flow, *id);
            prop_assert!(before.is_none_or(|before| before < *id), "flow {} packet {}", flow, id);
        }
        let counts = play.rcm.counts;
        prop_assert_eq!(counts.held, counts.released);
        let most = settings.window_max.get() + 2 * 1_518;
        prop_assert!(play.rcm.peaks()[2] <= most, "{} B", play.rcm.peaks()[2]);
    }
}
