//! Random scenarios whose links fail, flap, come back and have bit errors: nothing is made up, and results are the same bits however they are
//! simulated.

use crate::common::*;
use crate::determinism::{accepted, config, fetching};
use crate::random::{classes, combined, fifo, Random};
use fanin_sim::{LinkCounts, Pause, World};
use proptest::prelude::*;
use proptest::sample::select;

/// Links of the fabric of a random scenario, in one direction.
fn of_fabric(text: &str) -> &'static [&'static str] {
    if text.contains("\"dumbbell\"") {
        &["left->right"]
    } else if text.contains("\"leaf_spine\"") {
        &["leaf0->spine0", "spine1->leaf1", "leaf0->spine*"]
    } else if text.contains("\"racks\"") {
        &["tor1->root"]
    } else {
        &["h0->switch0"]
    }
}

/// A failure or a flap of some links, which begins within the first millisecond; other events have other links.
fn down() -> impl Strategy<Value = String> {
    let detect = select(vec!["", "detect = \"0ps\"\n", "detect = \"3us\"\n", "detect = \"60us\"\n"]);
    (0..900u32, prop::option::of(1..400u32), any::<bool>(), detect).prop_map(|(start, lasts, flaps, detect)| {
        let end = lasts.map_or(String::new(), |lasts| format!("end = \"{}us\"\n", start + lasts));
        let flap = match lasts {
            Some(lasts) if flaps => format!("every = \"{}us\"\ntimes = 4\n", lasts + 37),
            _ => String::new(),
        };
        format!("kind = \"down\"\nstart = \"{start}us\"\n{end}{flap}{detect}")
    })
}

/// Events, and how the network reacts.
fn events() -> impl Strategy<Value = (Vec<(usize, String)>, String)> {
    let errors = (0..900u32, select(vec!["1e-6", "1e-5", "1e-3"])).prop_map(|(start, rate)| {
        format!("kind = \"bit_errors\"\nstart = \"{start}us\"\nend = \"{}us\"\nrate = {rate}\n", start + 700)
    });
    let one = prop_oneof![3 => down(), 1 => errors];
    let reaction = (select(vec!["0ps", "5us", "100us"]), select(vec!["0ps", "20us", "300us"]))
        .prop_map(|(detect, converge)| format!("[failover]\ndetect = \"{detect}\"\nconverge = \"{converge}\"\n"));
    (prop::collection::vec((any::<prop::sample::Index>(), one), 1..4), reaction)
        .prop_map(|(some, reaction)| (some.into_iter().map(|(which, event)| (which.index(6), event)).collect(), reaction))
}

/// A scenario with events.
fn with(random: &Random, (events, reaction): &(Vec<(usize, String)>, String)) -> Random {
    let mut text = random.text.clone();
    for (place, (which, event)) in events.iter().enumerate() {
        let fabric = of_fabric(&text);
        // No two failures of the same links.
        let links = match place {
            0 => fabric[which % fabric.len()],
            1 => "*->h5",
            _ => "*->h1",
        };
        text.push_str(&format!("[[events]]\nlinks = [\"{links}\"]\n{event}"));
    }
    if events.iter().any(|(_, event)| event.contains("\"down\"")) {
        text.push_str(reaction);
    }
    let all_own = events.iter().filter(|(_, event)| event.contains("\"down\"")).all(|(_, event)| event.contains("detect"));
    if all_own {
        text = text
            .lines()
            .filter(|line| !(line.starts_with("detect") && reaction.contains(line)))
            .map(|line| format!("{line}\n"))
            .collect();
    }
    Random { text }
}

/// Moves a world to its end and balances its books on the way; how it has ended.
fn balanced(random: &Random) -> (Pause, World) {
    let mut world = make(&random.with("auto", false));
    let mut step = 1;
    loop {
        let pause = world.advance(step).expect("no tables");
        balance(&mut world);
        if pause != Pause::Budget {
            return (pause, world);
        }
        step = step % 211 + 17;
    }
}

/// Each packet is somewhere, once, and what was lost on links is counted there.
fn balance(world: &mut World) {
    let (ports, t) = (world.ports_now(), world.totals());
    assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
    let exist = ports.iter().map(|p| p.on_wire + p.queue_packets).sum::<u64>() + world.held();
    assert_eq!(world.in_flight() + world.control_frames_on_wire(), exist);
    assert_eq!(t.packet_hops, ports.iter().map(|p| p.tx_packets - p.on_wire).sum::<u64>());
    let links = world.lossy_links();
    let sum = |of: fn(&LinkCounts) -> u64| links.iter().map(|(_, counts)| of(counts)).sum::<u64>();
    let on_links = sum(|counts| counts.lost + counts.corrupted);
    let at_ports = ports.iter().map(|p| p.drops).sum::<u64>();
    // Without a path a packet is dropped by its switch, before a port.
    assert!(t.dropped >= at_ports + on_links && at_ports >= sum(|counts| counts.dropped), "{t:?}");
    let plain = world.mechanism_counts().is_empty();
    if plain {
        let at_hosts = |name: &str| ports.iter().any(|p| p.name == name && p.leads_to.is_none());
        let there =
            links.iter().filter(|(name, _)| at_hosts(name)).map(|(_, counts)| counts.lost + counts.corrupted).sum::<u64>();
        let arrived = ports.iter().filter(|p| p.leads_to.is_none()).map(|p| p.tx_packets - p.on_wire).sum::<u64>();
        assert_eq!(t.delivered + t.stray + there, arrived, "{t:?}");
    }
    assert_eq!(world.down_ports_with_packets(), Vec::<String>::new());
}

proptest! {
    #![proptest_config(config(120))]

    /// Nothing is lost without being counted, whatever fails, with any transport and any mechanisms. Tolerance: none.
    #[test]
    fn what_is_lost_on_links_is_counted(random in prop_oneof![fifo(), classes(), combined()], events in events()) {
        let random = with(&random, &events);
        prop_assume!(accepted(&random));
        let (pause, _) = balanced(&random);
        prop_assert_eq!(pause, Pause::Done);
    }
}

proptest! {
    #![proptest_config(config(80))]

    /// Both kinds of ports, with and without telemetry, and fetching ahead give the same bits. Tolerance: none.
    #[test]
    fn failures_are_the_same_bits(random in prop_oneof![fifo(), classes()], events in events()) {
        let random = with(&random, &events);
        prop_assume!(accepted(&random));
        let auto = run(&random.with("auto", true));
        let explicit = run(&random.with("explicit", true));
        prop_assert_eq!(&auto.kept.flows, &explicit.kept.flows);
        prop_assert_eq!(&auto.kept.drops, &explicit.kept.drops);
        prop_assert_eq!(&auto.kept, &explicit.kept);
        prop_assert_eq!(auto.outcome(), explicit.outcome());
        prop_assert_eq!(run(&random.with("auto", false)).outcome(), auto.outcome(), "without telemetry");
        prop_assert_eq!(fetching(&random.with("auto", true), true), auto, "fetching ahead");
    }

    /// A failure that is over before anything is sent, and before anybody notices, changes nothing. Tolerance: none.
    #[test]
    fn a_failure_that_meets_no_packet_changes_nothing(random in prop_oneof![fifo(), classes()]) {
        let text = random.text.replace("start = \"0us\"", "start = \"1us\"");
        let events = "[[events]]\nlinks = [\"*\"]\nkind = \"down\"\nend = \"1ns\"\n[failover]\ndetect = \"1ms\"\n";
        let (without, with) = (Random { text: text.clone() }, Random { text: format!("{text}{events}") });
        prop_assume!(accepted(&with));
        let (without, with) = (run(&without.with("auto", false)), run(&with.with("auto", false)));
        prop_assert_eq!(without.outcome(), with.outcome());
    }
}
