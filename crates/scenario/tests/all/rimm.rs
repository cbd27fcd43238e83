//! Warnings about RIMM beside the rest of a scenario, and their absence.

use crate::common::edited;
use fanin_scenario::{render, Scenario};
use std::path::Path;

const SOUND: &str = r#"name = "x"
[topology]
kind = "leaf_spine"
leaves = 4
spines = 2
hosts_per_leaf = 8
host_link = { rate = "25Gbps", delay = "500ns" }
uplink = { rate = "100Gbps", delay = "500ns" }
[switch]
latency = "500ns"
buffer = { kind = "static", per_port = "600KB" }
[switch.mechanisms.rimm]
alpha = "500KB"
[transport]
profile = "linux"
congestion_control = "cubic"
rto_min = "5ms"
delayed_ack_timeout = "1ms"
[[traffic]]
name = "in"
kind = "incast"
receiver = "h31"
senders = ["h0..h15"]
size = "200KB"
[telemetry]
sample = "10us"
"#;

fn said(changes: &[(&str, &str)], added: &str) -> String {
    match Scenario::from_toml(&edited(SOUND, changes, added), Path::new(".")) {
        Ok(scenario) => render(scenario.warnings(), "s.toml"),
        Err(problems) => panic!("{}", render(&problems, "s.toml")),
    }
}

#[test]
fn an_alpha_that_no_queue_reaches() {
    assert_eq!(said(&[], ""), "");
    let dynamic = ("{ kind = \"static\", per_port = \"600KB\" }", "{ kind = \"dynamic\", total = \"1MB\", alpha = 1.0 }");
    let defaults = ("alpha = \"500KB\"", "");
    let none = said(&[dynamic, defaults], "");
    let expected = "is more than any port may hold, 500KB: there are no detours; five sixths of it, as the paper has: 416666B";
    assert!(none.contains(&format!("\"20000 cells\" {expected}")), "{none}");
    assert_eq!(said(&[dynamic], ""), "", "500 KB of 1 MB");
    let more = said(&[dynamic, ("500KB", "501KB")], "");
    assert!(more.contains("\"501KB\"") && more.contains(expected), "{more}");
    let reserved =
        ("{ kind = \"static\", per_port = \"600KB\" }", "{ kind = \"dynamic\", total = \"1MB\", reserved = \"20KB\" }");
    assert_eq!(said(&[reserved, ("500KB", "510KB")], ""), "", "what is reserved comes on top");
    let one = "[[switch.except]]\nrate = \"25Gbps\"\nalpha = 4.0\n";
    assert_eq!(said(&[dynamic, ("500KB", "700KB")], one), "", "ports to hosts may hold 800 KB");
}

#[test]
fn an_alpha_that_marks_keep_queues_from() {
    let marks = |k: &str| format!("buffer = {{ kind = \"static\", per_port = \"600KB\" }}\nmarking = {k}");
    let buffer = "buffer = { kind = \"static\", per_port = \"600KB\" }";
    let dctcp = ("congestion_control = \"cubic\"", "congestion_control = \"dctcp\"");
    let threshold = marks("{ kind = \"threshold\", k = \"65 packets\" }");
    let found = said(&[dctcp, (buffer, &threshold)], "");
    assert!(
        found.contains("is above the queue from which ports mark every packet, 65packets") || found.contains("65 packets"),
        "{found}"
    );
    assert!(found.contains("senders that act on marks keep it below"), "{found}");
    let far = marks("{ kind = \"threshold\", k = \"550KB\" }");
    assert_eq!(said(&[dctcp, (buffer, &far)], ""), "");
    // RED marks a few of the packets from 5 KB on: a queue of 500 KB is no wonder below its upper threshold.
    let red = marks("{ kind = \"red\", min = \"5KB\", max = \"550KB\", max_p = 0.01, hard_drop = false }");
    assert!(!said(&[dctcp, (buffer, &red)], "").contains("mark every packet"));
    let udp = "[[traffic]]\nkind = \"cbr\"\nsrc = \"h1\"\ndst = \"h31\"\nrate = \"1Gbps\"\nsize = \"1MB\"\n";
    assert!(!said(&[dctcp, (buffer, &threshold)], udp).contains("mark every packet"), "datagrams do not care");
}

#[test]
fn a_gap_that_decides_and_one_that_does_not() {
    let with = |more: &str| {
        said(
            &[("alpha = \"500KB\"", &format!("alpha = \"500KB\"\nrelease = {{ kind = \"flowlet\", chi = \"5ms\" }}\n{more}"))],
            "",
        )
    };
    assert_eq!(with(""), "");
    assert!(with("longest = \"5ms\"").contains("has no effect: after longest, 5ms, detours end anyway"));
    assert!(with("give_up_when = \"outstanding\"").contains("has no effect: after give_up, 1ms, detours end anyway"));
}

#[test]
fn detours_that_go_astray() {
    let all = said(&[("alpha = \"500KB\"", "alpha = \"500KB\"\ndetours = \"all\"")], "");
    let expected = "sends packets astray that would leave by leaf0->spine0 and 15 other ports: some neighbour has another way to what is behind it; \"returning\"";
    assert!(all.contains(expected), "{all}");
    // Two leaves and a spine: what the spine sends to a leaf comes back from no other.
    let one = [("spines = 2", "spines = 1"), ("alpha = \"500KB\"", "alpha = \"500KB\"\ndetours = \"all\"")];
    assert!(said(&one, "").is_empty(), "{}", said(&one, ""));
}

/// Packets that go to a neighbour and come back wait in a circle, which routes without detours have not.
#[test]
fn detours_beside_lossless_classes_are_a_circle() {
    let changes = [
        ("[switch.mechanisms.rimm]", "[switch.mechanisms.pfc]\nclasses = [0]\nmemory = \"4MB\"\n[switch.mechanisms.rimm]"),
        ("{ kind = \"static\", per_port = \"600KB\" }", "\"unlimited\""),
        (
            "profile = \"linux\"\ncongestion_control = \"cubic\"\nrto_min = \"5ms\"\ndelayed_ack_timeout = \"1ms\"",
            "kind = \"roce\"",
        ),
    ];
    let found = said(&changes, "");
    assert!(found.contains("may block itself for ever: detours go around in a circle, leaf0->spine0, spine0->leaf0"), "{found}");
    let watched = [&changes[..], &[("memory = \"4MB\"", "memory = \"4MB\"\nwatchdog = {}")]].concat();
    assert!(!said(&watched, "").contains("in a circle"), "{}", said(&watched, ""));
    // PABO sends back what finds a queue, the others what finds no room: ports without bounds refuse nothing.
    let rival = |rival: &str, buffer: &str| {
        let others = [
            (changes[0].0, changes[0].1.replace("rimm", rival)),
            ("alpha = \"500KB\"\n", String::new()),
            (changes[1].0, buffer.to_string()),
            (changes[2].0, changes[2].1.to_string()),
        ];
        said(&others.each_ref().map(|(before, after)| (*before, after.as_str())), "")
    };
    let bounded = "{ kind = \"static\", per_port = \"600KB\" }";
    let circle = "detours go around in a circle, leaf0->spine0, spine0->leaf0";
    for (key, refused, unlimited) in
        [("pabo", true, true), ("dibs", true, false), ("vertigo", true, false), ("rcm", false, false)]
    {
        assert_eq!(rival(key, bounded).contains(circle), refused, "{key}: {}", rival(key, bounded));
        assert_eq!(rival(key, "\"unlimited\"").contains(circle), unlimited, "{key}: {}", rival(key, "\"unlimited\""));
    }
    let spines = rival("pabo]\nunaware = [\"leaf*\"", bounded);
    assert!(spines.contains("detours go around in a circle, spine0->leaf0, leaf0->spine0"), "{spines}");
}

/// RED whose upper threshold no queue reaches marks from its lower one on all the same.
#[test]
fn red_acts_from_its_lower_threshold_on() {
    let red = |min: &str, max: &str| {
        format!("buffer = {{ kind = \"static\", per_port = \"600KB\" }}\nmarking = {{ kind = \"red\", min = \"{min}\", max = \"{max}\", hard_drop = false }}")
    };
    let with = |min: &str, max: &str| {
        said(&[("buffer = { kind = \"static\", per_port = \"600KB\" }", &red(min, max)), ("\"cubic\"", "\"dctcp\"")], "")
    };
    assert_eq!(with("5KB", "2MB"), "");
    let never = with("600KB", "2MB");
    assert!(never.matches("never acts").count() == 1 && never.contains("its threshold, 600KB, is not below"), "{never}");
}
