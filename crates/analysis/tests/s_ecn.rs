//! The scenarios of the S-ECN paper, simulated and analysed.

mod common;

use common::{analyse, gigabit, simulate, Trace};
use fanin_units::Time;

fn paper(name: &str) -> Trace {
    let path = format!("{}/../../scenarios/papers/s-ecn/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    simulate(&std::fs::read_to_string(path).expect("a scenario"), "root->tor3")
}

#[test]
#[ignore]
fn look() {
    for name in ["sync", "async", "one-bg", "same-hop", "prev-hop"] {
        let trace = paper(name);
        let mut settings = gigabit();
        if !name.ends_with("sync") {
            settings.from = Some(Time::from_ps(500_000_000_000));
        }
        let report = analyse(&settings, &trace.records, &trace.flows);
        println!("=== {name}: {} records, {} bursts {:?}", report.records, report.bursts_found, report.notes);
        for b in report.bursts.iter().take(3) {
            println!(
                " burst {} {:.3}..{:.3} ms peak {:?} at {:.3} flows {} drops {} direct {:.3} ({}) indirect {:.3} ({})",
                b.index,
                b.start_ps as f64 / 1e9,
                b.end_ps as f64 / 1e9,
                b.peak_bytes,
                b.peak_ps as f64 / 1e9,
                b.flows,
                b.dropped_packets,
                b.direct.iter().map(|c| c.share).sum::<f64>(),
                b.direct_unattributed_bytes,
                b.indirect.iter().map(|c| c.share).sum::<f64>(),
                b.indirect_unattributed_bytes
            );
            for p in b.phases.iter().take(10) {
                println!(
                    "   {:9.3} .. {:9.3} ms  {:8.3} Gb/s [{:.3}, {:.3}]  {:.0} -> {:.0}  n={}",
                    (p.start_ps - b.start_ps) as f64 / 1e9,
                    (p.end_ps - b.start_ps) as f64 / 1e9,
                    p.slope_bps / 1e9,
                    p.low_bps / 1e9,
                    p.high_bps / 1e9,
                    p.start_bytes,
                    p.end_bytes,
                    p.records
                );
            }
            for r in b.rounds.iter().take(4) {
                println!(
                    "   round {} {:.3}..{:.3} flows {} packets {}",
                    r.round,
                    (r.start_ps - b.start_ps) as f64 / 1e9,
                    (r.end_ps - b.start_ps) as f64 / 1e9,
                    r.flows,
                    r.packets
                );
            }
            println!("   {:?} {:?}", b.law, b.words);
        }
    }
}
#[test]
#[ignore]
fn dump() {
    let trace = paper("same-hop");
    for r in trace.records.iter().filter(|r| r.time.ps() > 500_000_000_000 && r.time.ps() < 507_000_000_000) {
        println!("DUMP {} {} {} {}", r.time.ps(), r.queue, r.flow, r.flags);
    }
}
