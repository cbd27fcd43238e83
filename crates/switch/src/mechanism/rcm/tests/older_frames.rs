//! Frames of harmful flows that came before the congestion, and what is held behind them.

use super::*;

/// A port that paces, with classes or combined: its queue has 52 frames of flow 1 that came before the congestion, its window of 12 kB is
/// used up, and four frames of flow 1 are held. With the time at which the window began.
fn held_behind_older_frames(combined: bool) -> (Play, Time) {
    let settings =
        RcmParams { sar: false, q_eq: Bytes(10_000_000), window_max: Bytes(12_000), decrease: Decrease::Each, ..params() };
    let settings = RcmParams { when_idle: WhenIdle::Wait, window_min: Some(Bytes(4_000)), ..settings };
    let mut play = if combined { Play::at(&settings, true) } else { Play::with_classes(&settings) };
    (0..60).for_each(|_| assert_eq!(play.arrive(flow(1)), Verdict::Pass));
    play.hear(OUT, 63, &[1, 2]);
    (0..8).for_each(|_| assert!(play.turn()));
    // 12 kB of flow 1 alone: W = W_c = 12 kB, then half, a quarter, and a frame.
    (0..3).for_each(|_| play.hear(OUT, 63, &[1, 2]));
    let began = play.node.now;
    let verdicts: Vec<Verdict> = (0..6).map(|_| play.arrive(flow(1))).collect();
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Hold).count(), 4, "{verdicts:?}");
    (play, began)
}

/// The time of a window is over while the wire is busy, and the queue has frames of harmful flows that came before the congestion: what is
/// held joins the queue as the next of those leaves, which does not use the window up. Else it waits for as long as there are some.
#[test]
fn what_is_held_is_the_first_of_a_window_that_begins_by_time() {
    for combined in [false, true] {
        let (mut play, began) = held_behind_older_frames(combined);
        assert!(play.turn() && play.turn() && play.turn());
        let rate = play.rcm.ports[OUT.index()].rate;
        for window in 1..=4 {
            play.hear(OUT, 63, &[1, 2]); // so that it does not end
            play.timer(began + rate.time_to_send(Bytes(12_000)) * window);
            assert!(play.turn());
            assert_eq!(play.rcm.counts.released, window, "one in each window, combined: {combined}");
        }
        while play.turn() {}
        assert!(play.left.iter().map(|(_, id)| id.0).eq(0..66), "in order");
        assert_eq!(
            play.rcm.peaks()[2],
            if combined { 4_500 } else { 6_000 },
            "the frames that left in the first window, and one"
        );
    }
}

/// A window begins by time during a pause: what is held is the first of it when the pause ends.
#[test]
fn what_is_held_is_the_first_of_a_window_that_begins_in_a_pause() {
    for combined in [false, true] {
        let (mut play, began) = held_behind_older_frames(combined);
        assert!(play.turn());
        play.pause(true);
        play.hear(OUT, 63, &[1, 2]);
        play.timer(began + play.rcm.ports[OUT.index()].rate.time_to_send(Bytes(12_000)));
        assert_eq!(play.rcm.counts.released, 0, "its class waits");
        play.pause(false);
        assert!(play.turn());
        assert_eq!(
            (play.rcm.counts.released, play.rcm.peaks()[2]),
            (1, if combined { 1_500 } else { 3_000 }),
            "combined: {combined}"
        );
    }
}
