//! The scenarios of the S-ECN paper, simulated and analysed: phases, rounds, laws (S-ECN §III-B, C).

use crate::common::{analyse, gigabit, simulate, Trace};
use fanin_analysis::{Background, Burst, PortReport, RateFrom, Settings};
use fanin_units::Time;

/// 1 Gb/s in frame bytes, for frames of 1518 B.
const R: f64 = 1e9 * 1518.0 / 1538.0;

fn paper(name: &str) -> Trace {
    let path = format!("{}/../../scenarios/papers/s-ecn/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    // The analysis is held to traces whose phases are known: those of ties by link, and of background flows that all send. With windows of
    // 4 MiB the first of prev-hop keeps the others out (docs/papers/s-ecn-observations.md).
    let text = std::fs::read_to_string(path).expect("a scenario") + "\n[engine]\nties = \"by_link\"\n";
    let text = match name {
        "prev-hop" => text.replace("{ kind = \"auto\", max_buffer = \"4MiB\" }", "{ kind = \"fixed\", size = \"256KiB\" }"),
        _ => text,
    };
    simulate(&text, "root->tor3")
}

/// The burst of the fan-in; `background`: it begins after half a second.
fn first(name: &str, background: bool) -> (PortReport, Burst) {
    let trace = paper(name);
    let from = background.then(|| Time::from_ps(500_000_000_000));
    let report = analyse(&Settings { from, ..gigabit() }, &trace.records, &trace.flows);
    assert_eq!(report.jumps, 0, "a simulated trace is whole");
    let burst = report.bursts[0].clone();
    (report, burst)
}

#[test]
fn synchronous_fan_in_is_steep_then_at_port_speed_then_full() {
    let (_, b) = first("sync", false);
    let p = &b.phases;
    assert!(p.len() >= 3, "{p:?}");
    assert!(p[0].slope_bps > 1.4 * R, "{:?}", p[0]);
    assert!(p[1].slope_bps > 0.95 * R && p[1].slope_bps < 1.05 * R, "{:?}", p[1]);
    assert!(p[2].slope_bps.abs() < 0.02 * R && p[2].start_bytes > 500_000.0, "{:?}", p[2]);
    // Phase 1 ends with the first round.
    assert_eq!((b.rounds[0].flows, b.flows), (18, 18));
    let lag = p[0].end_ps as f64 - b.rounds[0].end_ps as f64;
    assert!(lag.abs() < 0.2e9, "{lag}");
    let law = b.law.as_ref().expect("a law");
    assert_eq!((law.law, law.background, law.phase, law.holds), (1, Background::None, 1, Some(true)), "{}", law.words);
    assert_eq!((b.direct_unattributed_bytes, b.indirect_unattributed_bytes), (0, 0));
}

#[test]
fn asynchronous_fan_in_starts_gently_and_goes_on_at_port_speed() {
    let (_, b) = first("async", false);
    let (_, sync) = first("sync", false);
    assert!(b.phases[0].slope_bps < sync.phases[0].slope_bps, "{:?}", b.phases[0]);
    let law = b.law.as_ref().unwrap_or_else(|| panic!("{:?}", b.words));
    assert_eq!((law.law, law.background), (1, Background::None), "{}", law.words);
    assert!(law.holds != Some(false), "{}", law.words);
}

#[test]
fn one_background_flow_makes_the_second_phase_gentler() {
    let (_, b) = first("one-bg", true);
    let law = b.law.as_ref().expect("a law");
    assert_eq!(
        (law.law, law.background, law.background_flows, law.holds),
        (2, Background::OneFlow, 1, Some(true)),
        "{}",
        law.words
    );
    assert!(b.phases[0].slope_bps > R);
}

#[test]
fn background_that_queues_here_is_law_2_and_elsewhere_law_3() {
    let (_, same) = first("same-hop", true);
    let law = same.law.as_ref().unwrap_or_else(|| panic!("{:?}", same.words));
    assert_eq!(
        (law.law, law.background, law.background_flows, law.holds),
        (2, Background::SameHop, 3, Some(true)),
        "{}",
        law.words
    );
    // From the beginning of the trace, the burst opens with long flows: the fan-in that starts half a second later is not judged.
    let (_, whole) = first("same-hop", false);
    assert!(
        whole.law.is_none() && whole.words.as_ref().is_some_and(|w| w.contains("there is no fan-in")),
        "{:?} {:?}",
        whole.law,
        whole.words
    );
    let (_, previous) = first("prev-hop", true);
    let law = previous.law.as_ref().unwrap_or_else(|| panic!("{:?}", previous.words));
    assert_eq!((law.law, law.background, law.background_flows), (3, Background::PreviousHop, 3), "{}", law.words);
    assert!(law.holds != Some(false), "{}", law.words);
    let a = law.first_round_bps.expect("a first round");
    assert!((law.bound_bps - 2.0 * a * R / (a + R)).abs() < 0.01 * R);
    assert!(law.words.contains("previous hop"), "{}", law.words);
}

#[test]
fn without_flows_no_law_is_claimed_but_the_slope_is_compared() {
    let trace = paper("sync");
    let bare: Vec<_> = trace.records.iter().map(|r| fanin_analysis::Record { flow: fanin_analysis::NO_FLOW, ..*r }).collect();
    let report = analyse(&gigabit(), &bare, &fanin_analysis::unknown_flows());
    let b = &report.bursts[0];
    assert!(b.law.is_none() && b.rounds.is_empty());
    let words = b.words.as_ref().expect("words");
    assert!(words.contains("background flows cannot be identified") && words.contains("times the port's speed"), "{words}");
}

#[test]
fn the_speed_of_the_port_can_be_estimated() {
    let trace = paper("sync");
    let report = analyse(&Settings { rate: None, ..gigabit() }, &trace.records, &trace.flows);
    assert_eq!(report.rate_from, RateFrom::Estimated);
    let rate = report.rate_bps.expect("an estimate") as f64;
    assert!((rate / 1e9 - 1.0).abs() < 0.01, "{rate}");
}

/// What the missing records brought was sent too: what is left gives no more than a lower bound, and no law.
#[test]
fn the_speed_is_a_lower_bound_where_records_are_missing() {
    let trace = paper("sync");
    let kept: Vec<_> = trace.records.iter().enumerate().filter(|(i, _)| (i * 7919) % 2 != 0).map(|(_, r)| *r).collect();
    let report = analyse(&Settings { rate: None, ..gigabit() }, &kept, &trace.flows);
    assert_eq!(report.rate_from, RateFrom::LowerBound);
    assert!(report.rate_bps.is_some_and(|bps| bps < 1_000_000_000));
    assert!(report.bursts.iter().all(|b| b.law.is_none()));
    assert!(report.notes.iter().any(|n| n.contains("at least that")), "{:?}", report.notes);
}

/// One in five records is missing: what is lacking is said, nothing is invented, and the phases are the same.
#[test]
fn missing_records_are_noticed_and_change_no_phase() {
    let trace = paper("sync");
    let kept: Vec<_> = trace.records.iter().enumerate().filter(|(i, _)| (i * 7919) % 5 != 0).map(|(_, r)| *r).collect();
    let report = analyse(&gigabit(), &kept, &trace.flows);
    // At least so much is missing: not more than was taken out, and most of it, though what arrived while no queue stood leaves no sign.
    let taken = trace.records.iter().enumerate().filter(|(i, r)| (i * 7919) % 5 == 0 && !r.dropped());
    let taken: u64 = taken.map(|(_, r)| u64::from(r.frame)).sum();
    let missing = report.missing_bytes;
    assert!(report.jumps > 0 && (taken * 7 / 10..=taken).contains(&missing), "{missing} of {taken}");
    let b = &report.bursts[0];
    assert!(b.direct_unattributed_bytes > 0);
    let shares: f64 = b.direct.iter().map(|c| c.share).sum();
    assert!(shares < 1.0, "{shares}");
    assert!(b.phases[0].slope_bps > 1.4 * R && (b.phases[1].slope_bps / R - 1.0).abs() < 0.1, "{:?}", b.phases);
}
