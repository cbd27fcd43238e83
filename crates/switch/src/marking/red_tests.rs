use super::*;
use crate::tests::{packet, stream, view};
use fanin_units::{BitRate, Time};

fn params() -> RedParams {
    RedParams {
        min: Amount::Packets(5),
        max: Amount::Packets(15),
        max_p: 0.1,
        weight: 1.0,
        gentle: true,
        spacing: Spacing::Uniform,
        ecn: true,
        hard_drop: true,
        drop_others: true,
        by_size: false,
        mean_packet: Bytes(1518),
    }
}

fn busy(red: &mut Red, queue: u32, ecn: Ecn) -> MarkVerdict {
    red.on_enqueue(&view(queue), &packet(1518, ecn), &mut stream())
}

/// Gaps between marks at a constant queue.
fn gaps(spacing: Spacing, queue: u32, marks: usize) -> Vec<u64> {
    let mut red = Red::new(&RedParams { spacing, ..params() });
    let mut rng = stream();
    let mut gaps = Vec::new();
    let mut gap = 0;
    while gaps.len() < marks {
        gap += 1;
        if red.on_enqueue(&view(queue), &packet(1518, Ecn::Ect0), &mut rng) != MarkVerdict::Pass {
            gaps.push(gap);
            gap = 0;
        }
    }
    // The first gap also counts the step into the band.
    gaps.split_off(1)
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

#[test]
fn the_average_is_the_papers_recursion() {
    let mut red = Red::new(&RedParams { weight: 0.25, ..params() });
    let mut expected = 0.0;
    for q in [4, 8, 0, 12, 3] {
        busy(&mut red, q, Ecn::Ect0);
        expected = 0.75 * expected + 0.25 * f64::from(q);
        assert_eq!(red.avg, expected);
    }
}

#[test]
fn idle_time_decays_the_average_as_if_small_packets_had_passed() {
    let mut red = Red::new(&RedParams { weight: 0.002, ..params() });
    red.avg = 10.0;
    // Ten frames of 1518 B at 10 Gb/s take 12.144 us.
    let now = Time::from_ps(50_000_000);
    let idle = PortView {
        now,
        free_at: now - Span::from_ns(12_144),
        queue_bytes: 0,
        queue_packets: 0,
        queue_cells: 0,
        rate: BitRate::from_gbps(10),
        overhead: 20,
    };
    let expected = 10.0 * libm::pow(0.998, 11.0); // ten, and the packet's own sample
    assert!((red.average(&idle) - expected).abs() < 1e-9, "{}", red.average(&idle));
    // Empty queue, busy wire: one sample of zero and no more.
    let sending = PortView { free_at: now + Span::from_ns(100), ..idle };
    assert!((red.average(&sending) - 9.98).abs() < 1e-12);
}

#[test]
fn below_min_nothing_above_the_limit_everything() {
    let mut red = Red::new(&params());
    assert!((0..1000).all(|_| busy(&mut red, 4, Ecn::Ect0) == MarkVerdict::Pass));
    assert_eq!(busy(&mut red, 30, Ecn::Ect0), MarkVerdict::Drop(DROP_FORCED));
    assert_eq!(busy(&mut red, 30, Ecn::NotEct), MarkVerdict::Drop(DROP_FORCED));
    let mut soft = Red::new(&RedParams { hard_drop: false, ..params() });
    assert_eq!(busy(&mut soft, 30, Ecn::Ect0), MarkVerdict::Mark(MARK_FORCED));
    assert_eq!(busy(&mut soft, 30, Ecn::NotEct), MarkVerdict::Drop(DROP_FORCED));
    let mut sharp = Red::new(&RedParams { gentle: false, ..params() });
    assert_eq!(busy(&mut sharp, 15, Ecn::Ect0), MarkVerdict::Drop(DROP_FORCED));
}

#[test]
fn in_the_band_ecn_capable_packets_are_marked_and_others_dropped() {
    for (ecn, enabled, expected) in [
        (Ecn::Ect0, true, MarkVerdict::Mark(MARK_BY_CHANCE)),
        (Ecn::NotEct, true, MarkVerdict::Drop(DROP_BY_CHANCE)),
        (Ecn::Ect0, false, MarkVerdict::Drop(DROP_BY_CHANCE)),
    ] {
        let mut red = Red::new(&RedParams { ecn: enabled, ..params() });
        let mut rng = stream();
        let first = (0..1000).map(|_| red.on_enqueue(&view(10), &packet(1518, ecn), &mut rng)).find(|v| *v != MarkVerdict::Pass);
        assert_eq!(first, Some(expected));
    }
}

#[test]
fn others_pass_where_only_ecn_capable_packets_are_meant() {
    let marks = RedParams { hard_drop: false, drop_others: false, ..params() };
    assert!(Red::drops(&params()) && !Red::drops(&marks));
    assert!(Red::drops(&RedParams { hard_drop: true, ..marks.clone() }));
    let mut red = Red::new(&marks);
    let mut rng = stream();
    for queue in [10, 25, 30, 1000] {
        assert!((0..1000).all(|_| red.on_enqueue(&view(queue), &packet(1518, Ecn::NotEct), &mut rng) == MarkVerdict::Pass));
        let capable = (0..1000).map(|_| red.on_enqueue(&view(queue), &packet(1518, Ecn::Ect0), &mut rng));
        assert!(capable.filter(|verdict| matches!(verdict, MarkVerdict::Mark(_))).count() > 50, "{queue}");
    }
    let mut limited = Red::new(&RedParams { hard_drop: true, ..marks });
    assert_eq!(busy(&mut limited, 30, Ecn::NotEct), MarkVerdict::Drop(DROP_FORCED));
}

#[test]
fn gaps_between_marks_follow_the_chosen_spacing() {
    // Queue 10: p_b = 0.1 · 5/10 = 1/20.
    let n = 4_000;
    let geometric = gaps(Spacing::Geometric, 10, n);
    assert!((mean(&geometric) - 20.0).abs() < 4.5 * 19.5 / (n as f64).sqrt(), "{}", mean(&geometric));
    let uniform = gaps(Spacing::Uniform, 10, n);
    assert!(uniform.iter().all(|g| (1..=19).contains(g)));
    assert!((mean(&uniform) - 10.0).abs() < 4.5 * 5.48 / (n as f64).sqrt(), "{}", mean(&uniform));
    // Each gap from 1 to 19 equally often: chi-square with 18 degrees of freedom, 0.1 % quantile 42.3.
    let expected = uniform.len() as f64 / 19.0;
    let chi: f64 =
        (1..=19).map(|g| uniform.iter().filter(|x| **x == g).count() as f64 - expected).map(|d| d * d / expected).sum();
    assert!(chi < 42.3, "{chi}");
    let wait = gaps(Spacing::Wait, 10, n);
    assert!(wait.iter().all(|g| (20..=39).contains(g)));
    assert!((mean(&wait) - 29.5).abs() < 4.5 * 5.77 / (n as f64).sqrt(), "{}", mean(&wait));
}

#[test]
fn gentle_red_rises_to_one_between_max_and_twice_max() {
    let red = Red::new(&params());
    let pb = |avg| match red.zone(avg, 1518) {
        Zone::Between(pb) => pb,
        zone => panic!("{zone:?}"),
    };
    for (avg, expected) in [(5.0, 0.0), (10.0, 0.05), (15.0, 0.1), (22.5, 0.55), (29.999, 0.99994)] {
        assert!((pb(avg) - expected).abs() < 1e-9, "{avg}: {}", pb(avg));
    }
    assert_eq!(red.zone(30.0, 64), Zone::Above);
}

#[test]
fn by_size_a_small_packet_is_marked_in_proportion() {
    let by_bytes = RedParams { min: Amount::Bytes(5_000), max: Amount::Bytes(15_000), by_size: true, ..params() };
    let red = Red::new(&by_bytes);
    assert_eq!((red.zone(10_000.0, 1518), red.zone(10_000.0, 759)), (Zone::Between(0.05), Zone::Between(0.025)));
    let by_packets = Red::new(&RedParams { by_size: true, ..params() });
    assert_eq!(by_packets.zone(10.0, 759), Zone::Between(0.05));
}

#[test]
fn packets_that_admission_refuses_are_samples_too() {
    let mut red = Red::new(&RedParams { weight: 0.5, ..params() });
    red.on_refused(&view(8), &packet(1518, Ecn::Ect0));
    assert_eq!((red.avg, red.count), (4.0, -1));
    red.on_refused(&view(8), &packet(1518, Ecn::Ect0));
    assert_eq!((red.avg, red.count), (6.0, 0));
}
