//! Clocks that are apart, drift and jitter: what was delivered is no drop, and a drift is said where it was seen.

use super::trust::random;
use super::*;

/// Mostly idle: a frame every 15 to 40 µs, with bursts that overflow the buffer.
fn light(count: usize, seed: u64) -> (Vec<(i64, Packet)>, Port) {
    let mut below = random(seed);
    let mut arrivals = arrivals(count, seed, |_, _| {});
    let mut now = arrivals[0].0;
    for (i, (ns, packet)) in arrivals.iter_mut().enumerate() {
        now += if i % 4_000 < 3_000 { 15_000 + below(25_000) as i64 } else { 5_000 };
        (*ns, packet.payload) = (now, 1_448);
    }
    let port = port(&arrivals, 60_000);
    (arrivals, port)
}

#[test]
fn what_was_delivered_is_no_drop_whatever_the_clocks_do() {
    let (arrivals, port) = light(9_000, 3);
    let drops = port.all.iter().filter(|p| p.3.is_none()).count() as u64;
    assert!(drops > 100, "{drops}");
    let mut below = random(7);
    for ppm in [0.0, 50.0, -50.0] {
        for (jitter, quick, early) in [(0, 0, 0), (3_000, 0, 0), (3_000, 2_500, 0), (0, 2_500, 0), (3_000, 0, 40)] {
            let mut behind = left(&port, 7_000_000, ppm);
            // A quick packet comes late in the file.
            let late = behind.len() - 500;
            for (i, (ns, _)) in behind.iter_mut().enumerate() {
                *ns += 3_000 + if jitter > 0 { below(jitter) as i64 } else { 0 } - if i == late { quick } else { 0 };
            }
            behind.sort_by_key(|(ns, _)| *ns);
            // The capture before begins long before the other.
            let alone =
                |i: i64| (arrivals[0].0 - i * 1_000_000_000, Packet { id: 60_000 + i as u16, seq: 1 << 31, ..arrivals[0].1 });
            let before: Vec<_> = (1..=early).rev().map(alone).chain(arrivals.clone()).collect();
            let captures = Captures::new(&before, &behind, Changed::default());
            let (_, pair) = captures.report(json!({"rate": "1Gbps"}));
            let what = format!("{ppm} {jitter} {quick} {early}: {:?}", pair.clock);
            assert_eq!((pair.dropped, pair.only_behind, pair.left_out.at_start), (drops, 0, early as u64), "{what}");
            let off = pair.clock.drift_ppm.expect(&what) - ppm;
            assert!(off.abs() < 3.0, "{what}");
        }
    }
}

/// Hull points are where the line lies on: of fractions of a picosecond none may be early.
#[test]
fn packets_on_the_line_do_not_leave_before_they_arrive() {
    let mut arrivals = arrivals(6_000, 1, |_, _| {});
    let first = arrivals[0].0;
    arrivals.iter_mut().enumerate().for_each(|(i, (ns, packet))| (*ns, packet.payload) = (first + 20_000 * i as i64, 1_448));
    let port = port(&arrivals, 60_000);
    for ppm in [-50.0, -33.3, 50.0] {
        let captures = Captures::new(&arrivals, &left(&port, -40_000_000, ppm), Changed::default());
        let (_, pair) = captures.report(json!({"rate": "1Gbps"}));
        assert_eq!((pair.matched, pair.dropped, pair.only_behind, pair.negative), (6_000, 0, 0, 0), "{ppm}");
    }
}

#[test]
fn a_drift_that_cannot_be_seen_is_unknown() {
    // The port is never idle: its queue rises and falls slowly.
    let mut arrivals = arrivals(4_000, 5, |_, _| {});
    let mut now = arrivals[0].0;
    for (i, (ns, packet)) in arrivals.iter_mut().enumerate() {
        now += if i < 30 {
            1_000
        } else if i / 200 % 2 == 0 {
            11_900
        } else {
            12_300
        };
        (*ns, packet.payload) = (now, 1_448);
    }
    let port = port(&arrivals, 1 << 30);
    let captures = Captures::new(&arrivals, &left(&port, 7_000_000, 30.0), Changed::default());
    let (_, pair) = captures.report(json!({"rate": "1Gbps"}));
    assert_eq!(pair.clock.drift_ppm, None);
    assert!(pair.notes.iter().any(|note| note.contains("drift unknown")), "{:?}", pair.notes);
}

/// Groups of packets of which a port of 1 Gb/s drops some, each with packets behind it that find the port idle.
fn groups() -> (Vec<(i64, Packet)>, Port) {
    let (mut now, mut arrivals) = (1_795_000_000_000_000_000, Vec::new());
    for (i, (_, packet)) in plain(6_000, 7).0.into_iter().enumerate() {
        now += if i % 60 < 40 { 3_000 } else { 400_000 };
        arrivals.push((now, packet));
    }
    let port = port(&arrivals, 20_000);
    (arrivals, port)
}

fn found_of(arrivals: &[(i64, Packet)], behind: &[(i64, Packet)]) -> Vec<(&'static str, crate::checks::Level, u64)> {
    let (report, _) = Captures::new(arrivals, behind, Changed::default()).report(json!({"rate": "1Gbps"}));
    report.plausibility.findings.iter().map(|found| (found.code, found.level, found.count)).collect()
}

/// A step is said though packets are dropped, for others stand before an idle port; one that is shorter than a step is a clock that is unsteady.
#[test]
fn clocks_that_are_not_apart_by_as_much_all_the_time_are_doubted() {
    let (arrivals, port) = groups();
    let drops = port.all.iter().filter(|(.., left)| left.is_none()).count();
    assert!((500..1_000).contains(&drops), "{drops}");
    let middle = arrivals[3_000].0;
    for (step, code) in [
        (0, None),
        (10_000, None),
        (60_000, Some("unsteady_clock")),
        (500_000, Some("clock_step")),
        (-500_000, Some("clock_step")),
    ] {
        let mut behind = left(&port, 5_000, 0.0);
        behind.iter_mut().filter(|(ns, _)| *ns > middle).for_each(|(ns, _)| *ns += step);
        let mut found: Vec<_> = found_of(&arrivals, &behind).into_iter().map(|(code, level, _)| (code, level)).collect();
        // While packets seem to wait for a long step, the port sends little.
        found.retain(|(code, _)| step.abs() < 500_000 || *code != "speed");
        assert_eq!(found, code.map(|code| (code, crate::checks::Level::Doubt)).into_iter().collect::<Vec<_>>(), "{step}");
    }
}

#[test]
fn stamps_that_no_port_gives_are_doubted() {
    let (arrivals, port) = groups();
    // Stamps that are off by up to 1 ms turn the order of flows around.
    let mut behind = left(&port, 5_000, 0.0);
    behind.iter_mut().enumerate().for_each(|(i, (ns, _))| *ns += i as i64 * 7_919 % 1_000 * 1_000);
    behind.sort_by_key(|(ns, _)| *ns);
    let found = found_of(&arrivals, &behind);
    let order = found.iter().find(|(code, ..)| *code == "flow_order").unwrap();
    assert!((400..3_000).contains(&order.2), "{found:?}");
    // Stamps that are given to all packets of 50 us.
    let mut behind = left(&port, 5_000, 0.0);
    behind.iter_mut().for_each(|(ns, _)| *ns = (*ns / 50_000 + 1) * 50_000);
    let found = found_of(&arrivals, &behind);
    assert_eq!(found.iter().map(|(code, ..)| *code).collect::<Vec<_>>(), ["grouped_stamps"]);
    assert!((1_000..3_000).contains(&found[0].2), "{found:?}");
}
