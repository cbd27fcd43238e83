//! `switch.except`: where entries hold, what they are refused for, and what else takes them into account.

use crate::common::edited;
use fanin_scenario::{render, Scenario};
use fanin_switch::{Marking, PortSettings};
use fanin_units::{Amount, LinkId};
use std::path::Path;

/// Two leaves of two hosts at 1 Gb/s, one spine, 10 Gb/s in between: `leaf0->spine0` and back, `leaf0->h0` …
const FABRIC: &str = r#"name = "x"
[topology]
kind = "leaf_spine"
leaves = 2
hosts_per_leaf = 2
spines = 1
host_link = { rate = "1Gbps", delay = "1us" }
uplink = { rate = "10Gbps", delay = "1us" }
[switch]
buffer = "static"
[transport]
kind = "tcp"
rto_min = "10ms"
delayed_ack_timeout = "1ms"
[[traffic]]
kind = "incast"
receiver = "h3"
size = "10KB"
"#;
/// The first line of what is added.
const NEXT: u32 = 19;

fn read(changes: &[(&str, &str)], added: &str) -> Result<Scenario, String> {
    Scenario::from_toml(&edited(FABRIC, changes, added), Path::new(".")).map_err(|problems| render(&problems, "s"))
}

fn sound(changes: &[(&str, &str)], added: &str) -> Scenario {
    read(changes, added).unwrap_or_else(|problems| panic!("{problems}"))
}

fn errors(changes: &[(&str, &str)], added: &str) -> String {
    read(changes, added).err().unwrap_or_else(|| "sound".to_string())
}

fn warnings(changes: &[(&str, &str)], added: &str) -> String {
    render(sound(changes, added).warnings(), "s")
}

fn port<'a>(scenario: &'a Scenario, name: &str) -> PortSettings<'a> {
    let link = scenario.topology().find_link(name).unwrap_or_else(|| panic!("no port {name}"));
    scenario.port(link)
}

fn k(settings: PortSettings) -> Option<Amount> {
    match settings.marking {
        Marking::Threshold(params) => Some(params.k),
        _ => None,
    }
}

const BOTH_K: &str = "[[switch.except]]\nrate = \"1Gbps\"\nmarking = { kind = \"threshold\", k = \"20 packets\" }\n\
                      [[switch.except]]\nrate = \"10Gbps\"\nmarking = { kind = \"threshold\", k = \"65 packets\" }\n";

/// DCTCP §4: K = 20 at 1 Gb/s and 65 at 10 Gb/s.
#[test]
fn ports_of_two_rates_have_two_thresholds() {
    let scenario = sound(&[("kind = \"tcp\"", "kind = \"tcp\"\ncongestion_control = \"dctcp\"")], BOTH_K);
    assert_eq!(render(scenario.warnings(), "s"), "");
    for (name, expected) in [("leaf0->h1", 20), ("leaf1->h3", 20), ("leaf0->spine0", 65), ("spine0->leaf1", 65)] {
        assert_eq!(k(port(&scenario, name)), Some(Amount::Packets(expected)), "{name}");
    }
}

#[test]
fn the_example_of_the_page_is_sound() {
    let page = include_str!("../../../../docs/switch/except.md");
    let example = page.split("```").nth(1).and_then(|block| block.strip_prefix("toml\n")).expect("a block of TOML");
    let text = FABRIC.replace("[switch]\nbuffer = \"static\"\n", example);
    let text = text.replace("kind = \"tcp\"", "kind = \"tcp\"\ncongestion_control = \"dctcp\"\ndrop_notification = true");
    let scenario = Scenario::from_toml(&text, Path::new(".")).unwrap_or_else(|problems| panic!("{}", render(&problems, "s")));
    assert_eq!(render(scenario.warnings(), "s"), "");
    let (slow, fast) = (port(&scenario, "leaf1->h2"), port(&scenario, "leaf0->spine0"));
    assert_eq!((k(slow), slow.buffer), (Some(Amount::Packets(20)), Some(Amount::Packets(100))));
    assert_eq!((k(fast), fast.buffer), (Some(Amount::Packets(65)), Some(Amount::Bytes(512_000))));
}

#[test]
fn all_selectors_of_an_entry_hold_together() {
    let added =
        "[[switch.except]]\nports = [\"*0->*\"]\nswitches = [\"leaf*\"]\nrate = \"1Gbps\"\ntier = 0\nbuffer = \"9 packets\"\n";
    let scenario = sound(&[], added);
    let (topology, all) = (scenario.topology(), Amount::Bytes(512_000));
    for link in (0..topology.links.len() as u32).map(LinkId) {
        let name = topology.link_name(link);
        let expected = if ["leaf0->h0", "leaf0->h1"].contains(&name.as_str()) { Amount::Packets(9) } else { all };
        assert_eq!(scenario.port(link).buffer, Some(expected), "{name}");
    }
}

#[test]
fn entries_that_set_different_things_of_a_port_add_up() {
    let scenario = sound(
        &[],
        "class = 1\n[[switch.except]]\ntier = 0\nbuffer = \"9 packets\"\nscheduling = { kind = \"strict\", classes = 2 }\n\
         [[switch.except]]\nports = [\"leaf0->*\"]\nmarking = { kind = \"red\", ecn = false }\n",
    );
    let both = port(&scenario, "leaf0->h0");
    assert_eq!((both.buffer, both.marking.kind(), both.scheduling.classes()), (Some(Amount::Packets(9)), "red", 2));
    let one = port(&scenario, "leaf1->h2");
    assert_eq!((one.buffer, one.marking.kind(), one.scheduling.classes()), (Some(Amount::Packets(9)), "none", 2));
    assert_eq!(port(&scenario, "spine0->leaf0").scheduling.classes(), 1);
}

#[test]
fn the_resolved_form_keeps_the_entries() {
    let added = format!("{BOTH_K}[[switch.except]]\nswitches = [\"spine0\"]\nmechanisms = {{}}\n[switch.mechanisms.trimming]\n");
    let scenario = sound(&[], &added);
    let again = Scenario::from_json(&scenario.resolved().to_string(), Path::new(".")).expect("the same scenario");
    assert_eq!((&again, again.hash()), (&scenario, scenario.hash()));
    assert_eq!(again.doc().switch.except.len(), 3);
    assert_eq!(again.doc().switch.except[2].mechanisms.as_ref().map(|m| m.trimming.is_some()), Some(false));
}

#[test]
fn mechanisms_run_at_the_switches_that_are_selected() {
    let runs = |added: &str| {
        let scenario = sound(&[("kind = \"tcp\"", "kind = \"tcp\"\ntrim_nack = true")], added);
        assert_eq!(render(scenario.warnings(), "s"), "");
        ["leaf0", "leaf1", "spine0"].map(|name| {
            let node = scenario.topology().node(name).expect("a switch");
            scenario.mechanisms(node).trimming.is_some()
        })
    };
    assert_eq!(runs("[[switch.except]]\ntier = 0\n[switch.except.mechanisms.trimming]\n"), [true, true, false]);
    assert_eq!(runs("[switch.mechanisms.trimming]\n[[switch.except]]\ntier = 0\nmechanisms = {}\n"), [false, false, true]);
    let both = "[[switch.except]]\ntier = 0\nswitches = [\"*1\", \"spine*\"]\n[switch.except.mechanisms.trimming]\n";
    assert_eq!(runs(both), [false, true, false]);
}

#[test]
fn selectors_that_select_nothing() {
    let ports = "accepted: names and patterns such as \"leaf0->*\"; the ports are leaf0->h0, leaf0->h1, leaf1->h2, leaf1->h3, … (8 ports)";
    let set = "buffer = \"9 packets\"\n";
    let added = [
        format!("[[switch.except]]\nports = [\"leaf0->h0\", \"h0->*\", \"leaf0->h3\"]\n{set}"),
        format!("[[switch.except]]\nswitches = [\"leef0\", \"core*\"]\n{set}"),
        format!("[[switch.except]]\nrate = \"40Gbps\"\ntier = 2\n{set}"),
        format!("[[switch.except]]\nrate = \"1Gbps\"\ntier = 1\n{set}"),
    ];
    let (a, b, c) = (NEXT + 1, NEXT + 4, NEXT + 7);
    let switches = "accepted: names and patterns such as \"leaf*\"; the switches are leaf0, leaf1, spine0";
    assert_eq!(
        errors(&[], &added.concat()),
        [
            format!("s: switch.except[0].ports[1], line {a}: \"h0->*\" matches no port; {ports}"),
            format!("s: switch.except[0].ports[2], line {a}: \"leaf0->h3\" is no port; {ports}; did you mean 'leaf0->h0'?"),
            format!("s: switch.except[1].switches[0], line {b}: \"leef0\" is no switch; {switches}; did you mean 'leaf0'?"),
            format!("s: switch.except[1].switches[1], line {b}: \"core*\" matches no switch; {switches}"),
            format!("s: switch.except[2].rate, line {c}: \"40Gbps\" is the rate of no port of a switch; accepted: 1Gbps, 10Gbps"),
            format!("s: switch.except[2].tier, line {}: 2 is no tier of this topology; accepted: 0, 1", c + 1),
            format!("s: switch.except[3], line {}: selects no port: each selector matches some, and no port meets all of them; accepted: selectors with a port in common\n", c + 3),
        ]
        .join("\n")
    );
}

#[test]
fn two_entries_that_set_the_same_thing_of_the_same_port() {
    let twice = "[[switch.except]]\ntier = 0\nbuffer = \"9 packets\"\n[switch.except.mechanisms.trimming]\n\
                 [[switch.except]]\nswitches = [\"*1\", \"spine0\"]\nbuffer = \"8 packets\"\nmechanisms = {}\n\
                 [[switch.except]]\nports = [\"*->spine0\"]\nbuffer = \"7 packets\"\nmarking = \"threshold\"\n";
    let one = |what: &str| format!("accepted: one entry for each setting of a {what}");
    let found = errors(&[], &format!("[switch.mechanisms.pdn]\n{twice}"));
    for expected in [
        format!("switch.except[1].buffer, line {}: is also set for leaf1->h2 by switch.except[0]; {}", NEXT + 7, one("port")),
        format!("switch.except[1].mechanisms, line {}: is also set for leaf1 by switch.except[0]; {}", NEXT + 8, one("switch")),
        format!(
            "switch.except[2].buffer, line {}: is also set for leaf0->spine0 by switch.except[0]; {}",
            NEXT + 11,
            one("port")
        ),
        format!(
            "switch.except[2].buffer, line {}: is also set for leaf1->spine0 by switch.except[1]; {}",
            NEXT + 11,
            one("port")
        ),
    ] {
        assert!(found.contains(&expected), "{expected}\n--\n{found}");
    }
    // With what else will not do what was meant: a first round that is lost, settings that are replaced everywhere, trimming without ears.
    assert_eq!(found.lines().filter(|line| line.contains(": warning: ")).count(), 3, "{found}");
    assert_eq!(found.lines().count(), 7, "{found}");
}

/// Mistakes of entries and of everything else are reported together.
#[test]
fn all_mistakes_at_once() {
    let added =
        "class = 1\n[[switch.except]]\nmarking = \"threshold\"\n[[switch.except]]\nports = [\"nowhere\"]\nrate = \"1Gbps\"\n\
                 scheduling = { kind = \"strict\", classes = 2 }\n[switch.except.mechanisms.pdn]\n";
    let found = errors(&[("receiver = \"h3\"", "receiver = \"h9\"")], added);
    for expected in ["switch.except[0], line", "switch.except[1].ports[0], line", "switch.except[1].mechanisms, line", "h9"] {
        assert!(found.contains(expected), "{expected}\n--\n{found}");
    }
    assert!(!found.contains("class"), "the entry that selects nothing would have the class\n{found}");
}

#[test]
fn classes_are_held_against_the_port_with_the_most() {
    let strict = "[[switch.except]]\ntier = 0\nscheduling = { kind = \"strict\", classes = 2 }\n";
    let class = |class: u8| format!("class = {class}\n[[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n{strict}");
    let scenario = sound(&[], &class(1));
    assert_eq!(render(scenario.warnings(), "s"), "");
    let note = "switch.scheduling \"fifo\" has classes up to 0: at its ports, packets of higher classes belong to that one";
    assert_eq!(scenario.notes(), [note]);
    let found = errors(&[], &class(2));
    let expected =
        "is a class that the switches do not have; accepted: from 0 to 1, the classes of switch.except[0].scheduling \"strict\"";
    assert_eq!(found, format!("s: traffic[0].class, line {NEXT}: 2 {expected}\n"));
    let found = warnings(&[], strict);
    let expected = "has nothing to choose between: all traffic is of class 0";
    assert_eq!(found, format!("s: warning: switch.except[0].scheduling, line {}: {expected}\n", NEXT + 2));
    assert!(sound(&[], strict).notes().is_empty());
}

#[test]
fn ecn_counts_where_ports_mark() {
    let dctcp = [("kind = \"tcp\"", "kind = \"tcp\"\ncongestion_control = \"dctcp\"")];
    let at =
        |rate: &str| format!("[[switch.except]]\nrate = \"{rate}\"\nmarking = {{ kind = \"threshold\", k = \"20 packets\" }}\n");
    assert_eq!(warnings(&dctcp, &at("1Gbps")), "");
    let found = warnings(&[], &at("1Gbps"));
    let expected =
        "marks ECN-capable packets, and no transport in use sends any; set ecn = true, or congestion_control = \"dctcp\"";
    assert_eq!(found, format!("s: warning: switch.except[0].marking, line {}: {expected}\n", NEXT + 2));
    // Marking that exceptions take away everywhere is not in use.
    let marking = ("buffer = \"static\"", "marking = \"threshold\"");
    let found = warnings(&[dctcp[0], marking], "[[switch.except]]\nports = [\"*\"]\nmarking = \"none\"\n");
    assert!(found.contains("transport, line 11: uses ECN, and no switch marks"), "{found}");
    let red = "[[switch.except]]\ntier = 1\nmarking = \"red\"\n";
    let expected = format!("switch.except[0].marking.hard_drop, line {}: true drops packets of DCTCP", NEXT + 3);
    assert!(warnings(&dctcp, red).contains(&expected), "{}", warnings(&dctcp, red));
    let red = "[[switch.except]]\ntier = 1\nmarking = { kind = \"red\", ecn = false, hard_drop = false }\n";
    assert!(errors(&[], red).contains("switch.except[0].marking.hard_drop"), "{}", errors(&[], red));
}

#[test]
fn thresholds_are_held_against_the_buffer_of_their_ports() {
    let marking = "marking = { kind = \"threshold\", k = \"20KB\" }\n";
    let dctcp = [("kind = \"tcp\"", "kind = \"tcp\"\ncongestion_control = \"dctcp\"")];
    let small = "[[switch.except]]\ntier = 1\nbuffer = \"20KB\"\n";
    let at = |selector: &str| warnings(&dctcp, &format!("{small}[[switch.except]]\n{selector}\n{marking}"));
    assert_eq!(at("tier = 0"), "", "leaves have 512 KB");
    let expected = "never acts: its threshold, 20KB, is not below the buffer of switch.except[0], 20KB";
    assert_eq!(at("rate = \"10Gbps\""), format!("s: warning: switch.except[1].marking, line {}: {expected}\n", NEXT + 6));
}

#[test]
fn what_a_port_holds_is_its_own() {
    let dynamic = ("buffer = \"static\"", "buffer = { kind = \"dynamic\", total = \"400KB\" }");
    let half = "[[switch.except]]\nports = [\"leaf1->h3\"]\nalpha = 0.25\n";
    assert_eq!(port(&sound(&[dynamic], half), "leaf1->h3").alpha, Some(0.25));
    // A watched port's registers, 65535 units of 1 B: 0.25/1.25 of 400 KB.
    let stamped = "[telemetry]\nsample = \"off\"\nqueues = [\"leaf1->h3\"]\nregisters = { unit = \"1B\" }\n";
    let found = warnings(&[dynamic], &format!("{half}{stamped}"));
    assert!(found.contains("and a port holds 80KB"), "{found}");
    // The first windows of an incast meet the receiver's port.
    let small = |port: &str| format!("[[switch.except]]\nports = [\"{port}\"]\nbuffer = \"5KB\"\n");
    assert_eq!(warnings(&[], &small("leaf1->h2")), "");
    assert!(warnings(&[], &small("leaf1->h3")).contains("to a port that holds 5KB: packets are lost in the first round"));
    // Greed, per alpha.
    let found = warnings(&[dynamic], &half.replace("0.25", "64.0"));
    let line = NEXT + 2;
    assert_eq!(found, format!("s: warning: switch.except[0].alpha, line {line}: 64.0 lets a single queue take 98 % of the buffer; chips offer 1/128 to 8\n"));
    // A sample is too long for bursts only where it is for those of all ports: 512 KB drain in 4 ms at 1 Gb/s, 5 KB in 40 us.
    let every = "[telemetry]\nsample = \"1ms\"\n";
    assert_eq!(warnings(&[], every), "");
    let found = warnings(&[], &format!("[[switch.except]]\nrate = \"1Gbps\"\nbuffer = \"40 packets\"\n{every}"));
    let drain = "in which a full buffer of 60720B drains at 1Gbps";
    assert!(found.contains(drain), "{found}");
}

#[test]
fn mechanisms_are_checked_where_they_run() {
    let nack = [("kind = \"tcp\"", "kind = \"tcp\"\ntrim_nack = true")];
    let at = |tier: u8, more: &str| format!("[[switch.except]]\ntier = {tier}\n[switch.except.mechanisms.trimming]\n{more}");
    assert_eq!(warnings(&nack, &at(1, "")), "");
    assert!(warnings(&nack, "").contains("acts on signals that no switch sends"));
    let path = "switch.except[0].mechanisms.trimming";
    let found = warnings(&[], &at(0, ""));
    assert!(found.contains(&format!("{path}, line {}: no transport in use acts on trimmed packets", NEXT + 2)), "{found}");
    let unlimited = [nack[0], ("buffer = \"static\"", "buffer = \"unlimited\"")];
    let room = |tier: u8| format!("[[switch.except]]\ntier = {tier}\nbuffer = \"9 packets\"\n");
    assert_eq!(warnings(&unlimited, &format!("{}{}", at(1, ""), room(1))), "");
    let found = warnings(&unlimited, &format!("{}{}", at(1, ""), room(0)));
    assert!(found.contains(&format!("{path}, line {}: has nothing to trim", NEXT + 3)), "{found}");
    let found = errors(&nack, &at(1, "unaware = [\"spine*\"]\n"));
    let expected = format!("{path}.unaware, line {}: [\"spine*\"] names every switch that has it; accepted", NEXT + 4);
    assert!(found.contains(&expected), "{found}");
    assert_eq!(errors(&nack, &at(0, "unaware = [\"spine*\"]\n")), "sound");
}

#[test]
fn codel_is_warned_of_where_its_times_mean_nothing() {
    let at = |rate: &str, codel: &str| format!("[[switch.except]]\nrate = \"{rate}\"\nmarking = {{ kind = \"codel\"{codel} }}\n");
    // 512 KB hold a wait of 0.54 ms at 10 Gb/s at most, of the smallest frames, and one of 5.4 ms at 1 Gb/s.
    let found = warnings(&[], &at("10Gbps", ""));
    let expected = "\"5ms\" never acts: in this buffer no packet waits longer than 539us";
    assert_eq!(found, format!("s: warning: switch.except[0].marking.target, line {}: {expected}\n", NEXT + 2));
    assert_eq!(warnings(&[], &at("1Gbps", "")), "");
    let short = ", target = \"10us\", interval = \"1ms\"";
    assert_eq!(warnings(&[], &at("10Gbps", short)), "");
    let found = warnings(&[], &at("1Gbps", short));
    let expected =
        "\"10us\" is below the time of one full frame at 1Gbps, 13us: every packet behind one waits longer; \"13us\" or more";
    assert_eq!(found, format!("s: warning: switch.except[0].marking.target, line {}: {expected}\n", NEXT + 2));
    // Marks, and the buffer, in packets.
    let dctcp = ("kind = \"tcp\"", "kind = \"tcp\"\ncongestion_control = \"dctcp\"");
    let buffer = ("buffer = \"static\"", "buffer = { kind = \"static\", per_port = \"9 packets\" }");
    let codel =
        |threshold: &str| at("1Gbps", &format!(", target = \"100us\", interval = \"1ms\", ce_threshold = \"{threshold}\""));
    assert_eq!(warnings(&[dctcp, buffer], &codel("123us")), "");
    let found = warnings(&[dctcp, buffer], &codel("125us"));
    assert!(found.contains("ce_threshold") && found.contains("no packet waits longer than 124us"), "{found}");
    assert!(warnings(&[dctcp], &at("1Gbps", "")).contains("uses ECN, and no switch marks"));
}
