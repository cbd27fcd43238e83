//! A run that is divided among parts, against the same run in one world.

use crate::random::{classes, combined, fifo, Random};
use fanin_scenario::Scenario;
use fanin_sim::{
    run_parts, workload, world, Control, Destination, Division, Kept, Observer, Order, Pause, Progress, Totals, Undivided, World,
};
use fanin_units::{Span, Time};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
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
        .or_else(|| of("pauses", &found.pauses, &expected.pauses))
        .or_else(|| of("states", &found.states, &expected.states))
        .or_else(|| of("voqs", &found.voqs, &expected.voqs))
        .or_else(|| of("stamps", &found.stamps, &expected.stamps))
        .unwrap_or_else(|| {
            format!("{} {}, expected {} {}", found.fingerprint, found.summary, expected.fingerprint, expected.summary)
        })
}

/// Each switch on its own, up to 64.
fn apart(scenario: &Scenario) -> Division {
    Division::of_switches(scenario, (0..scenario.topology().switch_count() as u32).map(|s| s % 64).collect())
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
        ("W2-128/registers", 0.01),
        ("L1", 0.01),
        ("W2-128/sample-10us", 0.01),
    ] {
        let scenario = workload(name, scale).expect("a workload").scenario;
        let expected = whole(&scenario).expect("an end");
        for (division, order) in [
            (Division::balanced(&scenario, 2), Order::Shuffled(2)),
            (apart(&scenario), Order::Shuffled(4)),
            (Division::balanced(&scenario, 2), Order::Threads(2)),
            (Division::balanced(&scenario, 4), Order::Threads(3)),
        ] {
            let about = format!("{name}, {} parts, {order:?}", division.parts);
            let found = divided(&scenario, &division, order).unwrap_or_else(|why| panic!("{about}: {why:?}"));
            assert_eq!((found.totals, found.now), (expected.totals, expected.now), "{about}");
            assert!(found.kept == expected.kept, "{about}: {}", difference(&found.kept, &expected.kept));
        }
    }
}

#[test]
fn parts_are_of_about_the_same_work_and_pods_stay_together() {
    for (name, parts) in [("W2-128", 4), ("W2-432", 6), ("W2-1024", 16)] {
        let scenario = workload(name, 0.01).expect("a workload").scenario;
        let division = Division::balanced(&scenario, parts);
        let count = |of: &[u32], part: usize| of.iter().filter(|p| **p as usize == part).count();
        let (hosts, switches) = (division.hosts.len() / parts, division.switches.len() / parts);
        for part in 0..parts {
            assert_eq!(count(&division.hosts, part), hosts, "{name}, part {part}");
            assert!(count(&division.switches, part).abs_diff(switches) <= 2, "{name}, part {part}");
        }
        // Hosts of a part are neighbours, so that only what leaves their pods crosses a border.
        assert!(division.hosts.is_sorted(), "{name}");
        assert_eq!(division.window, Span::from_us(1), "{name}");
    }
}

#[test]
fn links_without_delay_are_not_cut() {
    let text =
        "[topology]\nkind = \"racks\"\nracks = 3\nhosts_per_rack = 2\nroot_link = { rate = \"10Gbps\", delay = \"0ps\" }\n\
                [[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    let scenario = Scenario::from_toml(text, Path::new(".")).expect("valid");
    assert_eq!(apart(&scenario).parts, 1);
    let why = divided(&scenario, &apart(&scenario), Order::Threads(2)).expect_err("nothing to divide");
    assert_eq!(why.0, "one switch, or links without delay: nothing to divide");
}

/// Stops a run when it is asked for the third time.
struct Impatient(u32);

impl Observer for Impatient {
    fn progress(&mut self, progress: &Progress) -> Control {
        self.0 += 1;
        assert!(self.0 == 1 || progress.totals.packet_hops > 0);
        if self.0 < 3 {
            Control::Continue
        } else {
            Control::Stop
        }
    }
    fn cost(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }
}

#[test]
fn a_divided_run_is_stopped_by_its_observer_and_keeps_what_there_is() {
    let scenario = workload("W2-128", 0.2).expect("a workload").scenario;
    for order in [Order::Shuffled(1), Order::Threads(2)] {
        let (mut world, mut observer) = (make(&scenario), Impatient(0));
        let stopped = run_parts(&mut world, &scenario, &Division::balanced(&scenario, 2), order, &mut observer);
        assert_eq!(stopped.expect("tables in memory"), Ok(true), "{order:?}");
        let now = world.now();
        let kept = world.into_kept().expect("tables in memory");
        assert_eq!((kept.flows.len(), kept.summary["flows"]["total"].as_u64()), (128, Some(128)));
        assert!(kept.flows.iter().all(|flow| flow.status.to_string() == "incomplete") && now > Time::ZERO);
    }
}

/// Runs a random scenario under random divisions; the number of parts of those that were divided.
fn compare(random: &Random, draws: &[u32], ends: bool) -> Result<Vec<usize>, TestCaseError> {
    let recorded = draws[1] % 2 == 0;
    let text = random.with("auto", recorded).replace("\nhosts = [\"*\"]", "");
    let text = if ends { text.replace("duration = \"4ms\"\n", "") } else { text };
    let Ok(scenario) = Scenario::from_toml(&text, Path::new(".")) else { return Ok(Vec::new()) };
    let switches = scenario.topology().switch_count();
    let mut compared = Vec::new();
    for (i, most) in [2u32, 8].into_iter().enumerate() {
        let of = (0..switches).map(|s| draws[(s + i) % draws.len()] % most).collect();
        let division = Division::of_switches(&scenario, of);
        let Ok(found) = divided(&scenario, &division, Order::Shuffled(u64::from(draws[0]))) else { continue };
        let Some(expected) = whole(&scenario) else {
            return Err(TestCaseError::fail(format!("only the divided run ended\n{text}")));
        };
        let totals = [(found.totals, found.now), (expected.totals, expected.now)];
        prop_assert!(found == expected, "{division:?}: {}\n{totals:?}\n{text}", difference(&found.kept, &expected.kept));
        compared.push(division.parts);
    }
    Ok(compared)
}

/// Random scenarios under random divisions, parts in random order: 400 of them here, and more as
/// `PROPTEST_CASES` asks.
#[test]
fn random_scenarios_come_to_the_same() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let strategy = (prop_oneof![fifo(), classes(), combined()], prop::collection::vec(any::<u32>(), 6), any::<bool>());
    let mut runner = TestRunner::new_with_rng(
        Config { cases, max_shrink_iters: 200, ..Config::default() },
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let divided = std::cell::RefCell::new(Vec::new());
    let outcome = runner.run(&strategy, |(random, draws, ends)| {
        divided.borrow_mut().extend(compare(&random, &draws, ends)?);
        Ok(())
    });
    outcome.unwrap_or_else(|why| panic!("{why}"));
    let divided = divided.into_inner();
    // A third of the scenarios have traffic that follows completions, and one switch has nothing to divide.
    assert!(divided.len() >= cases as usize / 3, "{} of {cases} were divided", divided.len());
    assert!([2, 3, 4].iter().all(|parts| divided.contains(parts)), "{divided:?}");
}
