//! What the walk-throughs of CONTRIBUTING.md build works in whole networks. `make drills` puts this beside the tests of the
//! simulator in a copy of the project to which the walk-throughs were applied.

use fanin_scenario::Scenario;
use fanin_sim::{world, Destination, Pause, World};
use serde_json::Value;
use std::path::Path;

/// Runs a scenario to its end; the identity of packets holds after every step.
fn play(text: &str) -> (Value, World) {
    let scenario = Scenario::from_toml(text, Path::new("."))
        .unwrap_or_else(|problems| panic!("{}\n{text}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")));
    let mut world = world(&scenario, &Destination::Memory).expect("a world");
    while world.advance(1_000).expect("tables") == Pause::Budget {
        let t = world.totals();
        assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
    }
    let (summary, _) = fanin_sim::finish(&mut world).expect("tables");
    (summary, world)
}

fn incast(switch: &str, transport: &str) -> String {
    format!(
        r#"
        [topology]
        kind = "leaf_spine"
        leaves = 3
        hosts_per_leaf = 4
        spines = 2
        host_link = {{ rate = "10Gbps", delay = "1us" }}
        uplink = {{ rate = "10Gbps", delay = "1us" }}
        [switch]
        buffer = {{ kind = "static", per_port = "60KB" }}
        {switch}
        [transport]
        {transport}
        [[traffic]]
        kind = "incast"
        receiver = "h0"
        size = "100KB"
        [telemetry]
        sample = "off"
        "#
    )
}

const TCP: &str = "kind = \"tcp\"\nhandshake = false\ninitial_window = 10\nrto_min = \"10ms\"\nrto_initial = \"10ms\"";

fn complete(summary: &Value) {
    assert_eq!(summary["flows"]["complete"], summary["flows"]["total"], "{summary:#}");
    assert!(summary["flows"]["total"].as_u64() > Some(3));
}

#[test]
fn the_marking_policy_marks() {
    let (summary, _) = play(&incast("marking = { kind = \"every_nth\", n = 5 }", &format!("{TCP}\necn = true")));
    complete(&summary);
    assert!(summary["marks_by_reason"]["every_nth"].as_u64() > Some(10), "{summary:#}");
}

#[test]
fn the_congestion_control_keeps_the_queue_short() {
    let long = |control: &str| {
        let text = incast("", &format!("{TCP}\ncongestion_control = \"{control}\"")).replace("100KB", "3MB");
        let (summary, _) = play(&text);
        complete(&summary);
        summary["drops"].as_u64().expect("a number")
    };
    let (by_delay, by_loss) = (long("swiftlike"), long("newreno"));
    assert!(by_delay < by_loss / 2, "{by_delay} drops, NewReno {by_loss}");
}

#[test]
fn the_transport_delivers_and_retransmits() {
    let (summary, _) = play(&incast("", "kind = \"hurry\""));
    complete(&summary);
    assert!(summary["drops"].as_u64() > Some(0) && summary["retransmits"].as_u64() > Some(0), "{summary:#}");
}

#[test]
fn the_detour_takes_other_ports_and_loses_less() {
    let (plain, _) = play(&incast("", TCP));
    let (detour, _) = play(&incast("mechanisms.sidestep = {}", TCP));
    complete(&detour);
    assert!(detour["mechanisms"]["sidestep"]["detoured"].as_u64() > Some(10), "{detour:#}");
    assert!(detour["drops"].as_u64() < plain["drops"].as_u64());
}

/// The tutorials of docs/tutorials show what the command prints with a walk-through applied: here are its fingerprints.
#[test]
fn the_tutorials_show_what_comes_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("a file of the project");
    let shown = |page: &str, command: &str| {
        let after = page.split_once(command).unwrap_or_else(|| panic!("no {command}")).1;
        after.split_once("fingerprint ").expect("a fingerprint").1[..16].to_string()
    };
    let ran = |text: &str| {
        let scenario = Scenario::from_toml(text, &root).expect("a scenario");
        let mut world = world(&scenario, &Destination::Memory).expect("a world");
        while world.advance(1_000_000).expect("tables") == Pause::Budget {}
        format!("{:016x}", world.into_kept().expect("tables").fingerprint)
    };
    let (control, mechanism) = (read("docs/tutorials/congestion-control.md"), read("docs/tutorials/mechanism.md"));
    let incast = |control: &str| {
        let text = read("scenarios/incast.toml").replace("\"dctcp\"", control);
        text.replace("{ kind = \"threshold\", k = \"65 packets\" }", "\"none\"")
    };
    assert_eq!(ran(&incast("\"swiftlike\"")), shown(&control, "-o out/swiftlike"));
    assert_eq!(ran(&incast("{ kind = \"swiftlike\", target = \"100us\" }")), shown(&control, "-o out/target"));
    let fabric = mechanism.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```")).expect("a scenario").0;
    let sidestep = fabric.replace("[switch]\n", "[switch]\nmechanisms.sidestep = {}\n");
    assert_eq!(ran(&sidestep), shown(&mechanism, "-o out/sidestep"));
}

/// What was added is tried by whoever compares policies: nothing else names it.
#[test]
fn what_was_added_is_tried_without_further_work() {
    let text = incast("mechanisms.pfc = {}", TCP)
        .replace("buffer = { kind = \"static\", per_port = \"60KB\" }", "buffer = \"unlimited\"");
    let scenario = Scenario::from_toml(&text, Path::new(".")).expect("a scenario");
    let trials = scenario.trials();
    let added = [
        ("switch.mechanisms", "sidestep", "switch.mechanisms.sidestep", "{}"),
        ("switch.mechanisms", "heads_up", "switch.mechanisms.heads_up", "{}"),
        ("switch.mechanisms", "who_pauses", "switch.mechanisms.who_pauses", "{}"),
        ("switch.marking", "every_nth", "switch.marking", "\"every_nth\""),
        (
            "transport.congestion_control",
            "swiftlike",
            "transport",
            "{ kind = \"tcp\", congestion_control = { kind = \"swiftlike\" } }",
        ),
        ("transport", "hurry", "transport", "{ kind = \"hurry\" }"),
    ];
    for (part, kind, path, value) in added {
        let trial = trials.iter().find(|trial| (trial.part, trial.kind) == (part, kind));
        let trial = trial.unwrap_or_else(|| panic!("{kind} is not tried"));
        assert_eq!(trial.settings[0], (path.to_string(), value.to_string()));
        assert!(!trial.doc.is_empty());
    }
}

#[test]
fn the_control_frame_reaches_the_switch_upstream() {
    let (plain, without) = play(&incast("", TCP));
    let (summary, with) = play(&incast("mechanisms.heads_up = {}", TCP));
    complete(&summary);
    let counts = &summary["mechanisms"]["heads_up"];
    assert!(counts["sent"].as_u64() > Some(5) && counts["sent"] == counts["received"], "{counts:#}");
    assert!(with.totals().packet_hops > without.totals().packet_hops, "frames cross links");
    assert_eq!(plain["flows"], summary["flows"]);
}

/// A need of its own: it hears what another mechanism takes, and changes nothing.
#[test]
fn messages_of_another_mechanism_are_overheard() {
    let lossless = |more: &str| {
        let pfc = "mechanisms.pfc = { memory = \"4MB\", xoff = { kind = \"static\", bytes = \"20KB\" } }";
        let text = incast(&format!("{pfc}\n{more}"), TCP);
        play(&text.replace("buffer = { kind = \"static\", per_port = \"60KB\" }", "buffer = \"unlimited\"")).0
    };
    let (plain, heard) = (lossless(""), lossless("mechanisms.who_pauses = {}"));
    complete(&heard);
    let count = |group: &str, name: &str| heard["mechanisms"][group][name].as_u64().expect("a counter");
    assert!(count("who_pauses", "by_switches") > 5, "{heard:#}");
    assert_eq!(count("who_pauses", "by_hosts") + count("who_pauses", "by_switches"), count("pfc", "frames_received"));
    assert_eq!(plain["flows"], heard["flows"]);
}
