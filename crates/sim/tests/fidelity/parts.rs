//! A run that is divided among parts, against the same run in one world.

use crate::random::{classes, combined, fifo, Random};
use fanin_scenario::Scenario;
use fanin_sim::{
    run_parts, workload, world, Control, Destination, Division, Kept, Observer, Order, Pause, Progress, Totals, Undivided, World,
};
use fanin_units::Time;
use proptest::prelude::*;
use std::path::Path;

/// What a run comes to, with all its rows.
#[derive(Debug, PartialEq)]
struct Outcome {
    kept: Kept,
    totals: Totals,
    now: Time,
}

struct Patient;

impl Observer for Patient {
    fn progress(&mut self, _: &Progress) -> Control {
        Control::Continue
    }
    fn cost(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }
}

fn make(scenario: &Scenario) -> World {
    world(scenario, &Destination::Memory).expect("a world")
}

/// The counts of a run, but for events: what a port needs of these depends on when it is looked at.
fn counts(world: &World) -> Totals {
    let mut totals = world.totals();
    totals.events = 0;
    totals
}

fn whole(scenario: &Scenario) -> Option<Outcome> {
    let mut world = make(scenario);
    loop {
        match world.advance(1 << 24).expect("tables in memory") {
            Pause::Budget => {}
            Pause::Done => break,
            Pause::Stuck(_) => return None,
        }
    }
    let (totals, now) = (counts(&world), world.now());
    Some(Outcome { kept: world.into_kept().expect("tables in memory"), totals, now })
}

fn divided(scenario: &Scenario, division: &Division, order: Order) -> Result<Outcome, Undivided> {
    let mut world = make(scenario);
    run_parts(&mut world, scenario, division, order, &mut Patient).expect("tables in memory")?;
    let (totals, now) = (counts(&world), world.now());
    Ok(Outcome { kept: world.into_kept().expect("tables in memory"), totals, now })
}

/// The first difference between the tables of two runs.
fn difference(found: &Kept, expected: &Kept) -> String {
    fn of<R: std::fmt::Debug + PartialEq>(name: &str, found: &[R], expected: &[R]) -> Option<String> {
        let i = (0..found.len().max(expected.len())).find(|i| found.get(*i) != expected.get(*i))?;
        Some(format!(
            "{name}, row {i} of {} and {}: {:?}, expected {:?}",
            found.len(),
            expected.len(),
            found.get(i),
            expected.get(i)
        ))
    }
    of("flows", &found.flows, &expected.flows)
        .or_else(|| of("queries", &found.queries, &expected.queries))
        .or_else(|| of("ports", &found.ports, &expected.ports))
        .or_else(|| of("queues", &found.queues, &expected.queues))
        .or_else(|| of("drops", &found.drops, &expected.drops))
        .or_else(|| of("states", &found.states, &expected.states))
        .or_else(|| of("voqs", &found.voqs, &expected.voqs))
        .or_else(|| of("stamps", &found.stamps, &expected.stamps))
        .unwrap_or_else(|| {
            format!("{} {}, expected {} {}", found.fingerprint, found.summary, expected.fingerprint, expected.summary)
        })
}

/// Each switch on its own.
fn apart(scenario: &Scenario) -> Division {
    Division::of_switches(scenario, (0..scenario.topology().switch_count() as u32).collect())
}

#[test]
fn workloads_come_to_the_same() {
    for (name, scale) in [
        ("W2-128", 0.02),
        ("W3", 0.001),
        ("demo", 0.004),
        ("W2-128/spray", 0.01),
        ("W2-128/dynamic-buffer", 0.01),
        ("W2-128/pdn-drops", 0.02),
    ] {
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
            let about = format!("{name}, {} parts, {order:?}", division.parts);
            assert_eq!((found.totals, found.now), (expected.totals, expected.now), "{about}");
            assert!(found.kept == expected.kept, "{about}: {}", difference(&found.kept, &expected.kept));
        }
    }
}

/// Runs a random scenario under random divisions; true where it was divided.
fn compare(random: &Random, draws: &[u32], ends: bool) -> Result<bool, TestCaseError> {
    let recorded = draws[1] % 2 == 0;
    let text = random.with("auto", recorded).replace("\nhosts = [\"*\"]", "");
    let text = if ends { text.replace("duration = \"4ms\"\n", "") } else { text };
    let Ok(scenario) = Scenario::from_toml(&text, Path::new(".")) else { return Ok(false) };
    let switches = scenario.topology().switch_count();
    let mut compared = false;
    for (i, most) in [2u32, 8].into_iter().enumerate() {
        let of = (0..switches).map(|s| draws[(s + i) % draws.len()] % most).collect();
        let division = Division::of_switches(&scenario, of);
        let found = match divided(&scenario, &division, Order::Shuffled(u64::from(draws[0]))) {
            Ok(found) => found,
            Err(why) => {
                if std::env::var("FANIN_WHY").is_ok() {
                    eprintln!("whole: {}", why.0);
                }
                continue;
            }
        };
        let Some(expected) = whole(&scenario) else {
            return Err(TestCaseError::fail(format!("only the divided run ended\n{text}")));
        };
        let same = found == expected;
        let totals = [(found.totals, found.now), (expected.totals, expected.now)];
        prop_assert!(same, "{division:?}: {}\n{totals:?}\n{text}", difference(&found.kept, &expected.kept));
        if std::env::var("FANIN_WHY").is_ok() {
            eprintln!("divided: {}", division.parts);
        }
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
