//! Packets of different senders that arrive in the same picosecond: who is first decides who loses.

use crate::common::*;

/// scenarios/incast.toml with NewReno: 40 senders with equal links start at once.
fn incast(ties: &str, seed: u64) -> String {
    format!(
        "seed = {seed}\n[topology]\nkind = \"single_switch\"\nhosts = 41\nlink = {{ rate = \"10Gbps\", delay = \"10us\" }}\n\
         [switch]\nbuffer = {{ kind = \"static\", per_port = \"1MB\" }}\n\
         [transport]\nkind = \"tcp\"\ncongestion_control = \"newreno\"\nhandshake = false\ninitial_window = 10\nrto_min = \"10ms\"\n\
         rto_initial = \"10ms\"\ndelayed_ack_timeout = \"1ms\"\n[engine]\nties = \"{ties}\"\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h40\"\nsize = \"256KB\"\n[telemetry]\nsample = \"off\"\n"
    )
}

/// Completion times in ms, by host.
fn completions(ties: &str, seed: u64) -> Vec<f64> {
    let mut flows = run(&incast(ties, seed)).kept.flows;
    flows.sort_by_key(|flow| flow.src.to_string()[1..].parse::<u32>().expect("h and a number"));
    flows.iter().map(|flow| flow.finish_ps.expect("complete") as f64 / 1e9).collect()
}

/// Spearman's rank correlation of place and value.
fn rank_correlation(values: &[f64]) -> f64 {
    let n = values.len();
    // The mean rank of those that are equal.
    let rank = |x: f64| {
        let below = values.iter().filter(|v| **v < x).count() as f64;
        below + (values.iter().filter(|v| **v == x).count() as f64 - 1.0) / 2.0
    };
    let ranks: Vec<f64> = values.iter().map(|v| rank(*v)).collect();
    let middle = (n as f64 - 1.0) / 2.0;
    let sum = |f: &dyn Fn(f64, f64) -> f64| (0..n).map(|i| f(i as f64 - middle, ranks[i] - middle)).sum::<f64>();
    sum(&|place, rank| place * rank) / (sum(&|place, _| place * place) * sum(&|_, rank| rank * rank)).sqrt()
}

/// By link the first hosts win every tie and finish first. Drawn, host number and completion are not correlated: the mean of ten
/// correlations is within 2.58 standard errors of zero (1 %), each of standard deviation 1/√(n − 1).
#[test]
fn drawn_ties_favour_no_host() {
    const SEEDS: u64 = 10;
    let by_link = completions("by_link", 1);
    let fixed = rank_correlation(&by_link);
    println!(
        "by link: rank correlation {fixed:.3}, h0 {:.2} ms, others {:.2} to {:.2} ms",
        by_link[0],
        by_link[1..].iter().copied().fold(f64::INFINITY, f64::min),
        by_link.iter().copied().fold(0.0, f64::max)
    );
    assert!(fixed > 0.95, "{fixed}");
    assert_eq!(completions("by_link", 2), by_link, "no draw in it");
    let drawn: Vec<f64> = (1..=SEEDS).map(|seed| rank_correlation(&completions("drawn", seed))).collect();
    let bound = 2.58 / ((SEEDS * (by_link.len() as u64 - 1)) as f64).sqrt();
    println!("drawn: {drawn:.3?}, mean {:+.3}, bound {bound:.3}", mean(&drawn));
    assert!(mean(&drawn).abs() < bound, "{drawn:?}");
}
