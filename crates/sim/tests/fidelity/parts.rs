//! A run that is divided among parts, against the same run in one world.

use crate::random::{classes, combined, fifo, Random};
use fanin_scenario::Scenario;
use fanin_sim::{close, finish, run_parts, workload, world, Destination, Division, Order, Pause, Totals, Undivided, World};
use fanin_units::Time;
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;

/// What a run comes to.
#[derive(Debug, PartialEq)]
struct Outcome {
    fingerprint: u64,
    totals: Totals,
    now: Time,
    summary: Value,
}

fn outcome(world: &World, summary: Value) -> Outcome {
    Outcome { fingerprint: world.fingerprint(), totals: world.totals(), now: world.now(), summary }
}

fn whole(scenario: &Scenario) -> Option<Outcome> {
    let mut world = world(scenario, &Destination::Nowhere).expect("a world");
    loop {
        match world.advance(1 << 24).expect("no tables") {
            Pause::Budget => {}
            Pause::Done => break,
            Pause::Stuck(_) => return None,
        }
    }
    let (summary, _) = finish(&mut world).expect("no tables");
    Some(outcome(&world, summary))
}

fn divided(scenario: &Scenario, division: &Division, order: Order) -> Result<Outcome, Undivided> {
    let mut world = run_parts(scenario, division, order).expect("worlds")?;
    let (summary, _) = close(&mut world).expect("no tables");
    Ok(outcome(&world, summary))
}

/// Each switch on its own.
fn apart(scenario: &Scenario) -> Division {
    Division::of_switches(scenario, (0..scenario.topology().switch_count() as u32).collect())
}

#[test]
fn workloads_come_to_the_same() {
    for (name, scale) in [("W2-128", 0.02), ("W3", 0.001), ("demo", 0.004), ("W2-128/spray", 0.01), ("W2-128/dynamic-buffer", 0.01), ("W2-128/pdn-drops", 0.02)] {
        let scenario = workload(name, scale).expect("a workload").scenario;
        let expected = whole(&scenario).expect("an end");
        for (division, order) in [
            (Division::balanced(&scenario, 1), Order::Shuffled(1)),
            (Division::balanced(&scenario, 2), Order::Shuffled(2)),
            (Division::balanced(&scenario, 3), Order::Shuffled(3)),
            (apart(&scenario), Order::Shuffled(4)),
            (Division::balanced(&scenario, 2), Order::Threads(2)),
        ] {
            let found = divided(&scenario, &division, order);
            let found = found.unwrap_or_else(|why| panic!("{name}, {} parts: {why:?}", division.parts));
            assert_eq!((found.totals, found.now), (expected.totals, expected.now), "{name}, {} parts, {order:?}", division.parts);
            assert_eq!(found.summary, expected.summary, "{name}, {} parts, {order:?}", division.parts);
            assert_eq!(found.fingerprint, expected.fingerprint, "{name}, {} parts, {order:?}", division.parts);
        }
    }
}

/// Runs a random scenario under random divisions; true where it was divided.
fn compare(random: &Random, draws: &[u32], ends: bool) -> Result<bool, TestCaseError> {
    let text = random.with("auto", false);
    let text = if ends { text.replace("duration = \"4ms\"\n", "") } else { text };
    let Ok(scenario) = Scenario::from_toml(&text, Path::new(".")) else { return Ok(false) };
    let switches = scenario.topology().switch_count();
    let mut compared = false;
    for (i, most) in [2u32, 8].into_iter().enumerate() {
        let of = (0..switches).map(|s| draws[(s + i) % draws.len()] % most).collect();
        let division = Division::of_switches(&scenario, of);
        let found = match divided(&scenario, &division, Order::Shuffled(u64::from(draws[0]))) {
            Ok(found) => found,
            Err(_) => continue,
        };
        let Some(expected) = whole(&scenario) else {
            return Err(TestCaseError::fail(format!("only the divided run ended\n{text}")));
        };
        prop_assert_eq!(&found, &expected, "{} parts of {}\n{}", division.parts, switches, &text);
        compared |= division.parts > 1;
    }
    Ok(compared)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_scenarios_come_to_the_same(random in prop_oneof![fifo(), classes(), combined()], draws in prop::collection::vec(any::<u32>(), 6), ends in any::<bool>()) {
        compare(&random, &draws, ends)?;
    }
}
