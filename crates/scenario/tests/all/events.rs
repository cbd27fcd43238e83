//! What is said of links that fail or have bit errors, and what follows from an event for each link.

use crate::common::edited;
use fanin_scenario::{render, Scenario};
use fanin_units::{Span, Time};
use std::path::Path;

const SOUND: &str = r#"name = "x"
duration = "20ms"
[topology]
kind = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[[events]]
kind = "down"
links = ["leaf0->spine1"]
start = "1ms"
end = "3ms"
every = "5ms"
times = 3
[[events]]
kind = "bit_errors"
links = ["leaf1->*"]
rate = 1e-9
[failover]
detect = "50us"
converge = "1ms"
[[traffic]]
kind = "incast"
receiver = "h3"
size = "10KB"
[transport]
kind = "tcp"
rto_min = "10ms"
ack_every = 1
"#;

/// All that is said of it, errors and warnings.
fn said(changes: &[(&str, &str)]) -> String {
    match Scenario::from_toml(&edited(SOUND, changes, ""), Path::new(".")) {
        Ok(scenario) => render(scenario.warnings(), "s.toml"),
        Err(problems) => render(&problems, "s.toml"),
    }
}

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_ms(n)
}

#[test]
fn a_flap_is_of_both_directions_and_bit_errors_of_the_one_that_is_named() {
    assert_eq!(said(&[]), "");
    let scenario = Scenario::from_toml(SOUND, Path::new(".")).unwrap();
    let topology = scenario.topology();
    let link = topology.find_link("leaf0->spine1").unwrap();
    for link in [link, topology.link(link).reverse] {
        let outages: Vec<_> = scenario.outages_of(link).iter().map(|outage| (outage.start, outage.end, outage.detect)).collect();
        let detect = Span::from_us(50);
        assert_eq!(outages, [(ms(1), ms(3), detect), (ms(6), ms(8), detect), (ms(11), ms(13), detect)]);
    }
    assert!(scenario.outages_of(topology.find_link("leaf1->spine1").unwrap()).is_empty());
    let wrong: Vec<String> = scenario.bit_errors().keys().map(|link| topology.link_name(*link)).collect();
    assert_eq!(wrong, ["leaf1->h2", "leaf1->h3", "leaf1->spine0", "leaf1->spine1"]);
    // Without a number of times a flap lasts as long as the run; without an end it is no flap.
    let long = Scenario::from_toml(&edited(SOUND, &[("times = 3\n", "")], ""), Path::new(".")).unwrap();
    assert_eq!(long.outages_of(link).iter().map(|outage| outage.start).collect::<Vec<_>>(), [ms(1), ms(6), ms(11), ms(16)]);
    let ever = edited(SOUND, &[("end = \"3ms\"\nevery = \"5ms\"\ntimes = 3\n", "")], "");
    let ever = Scenario::from_toml(&ever, Path::new(".")).unwrap();
    assert_eq!(ever.outages_of(link).iter().map(|outage| (outage.start, outage.end)).collect::<Vec<_>>(), [(ms(1), Time::MAX)]);
}

#[test]
fn links_that_are_none_are_named_with_a_suggestion() {
    let few = "accepted: names and patterns such as \"leaf0->spine*\"; the links are h0->leaf0, leaf0->h0, h1->leaf0, leaf0->h1, … (16 links)";
    assert_eq!(
        said(&[("leaf0->spine1", "leaf0->spine7"), ("leaf1->*", "left->*")]),
        format!(
            "s.toml: events[0].links[0], line 10: \"leaf0->spine7\" is no link; {few}; did you mean 'leaf0->spine0'?\n\
             s.toml: events[1].links[0], line 17: \"left->*\" matches no link; {few}\n"
        )
    );
    assert_eq!(
        said(&[("links = [\"leaf0->spine1\"]", "links = []")]),
        "s.toml: events[0].links, line 10: is empty: nothing happens; accepted: at least one link\n"
    );
}

/// One change, and what is said of it.
#[track_caller]
fn says(from: &str, to: &str, expected: &str) {
    assert_eq!(said(&[(from, to)]), format!("s.toml: {expected}\n"), "{to}");
}

#[test]
fn times_out_of_order_and_flaps_that_are_none_are_errors() {
    says(
        "start = \"1ms\"\nend = \"3ms\"",
        "start = \"20ms\"\nend = \"23ms\"",
        "events[0].start, line 11: \"20ms\" is not before the end of the run; accepted: before 20ms, or a longer duration",
    );
    says("start = \"1ms\"", "start = \"3ms\"", "events[0].end, line 12: \"3ms\" is not after the start; accepted: after 3ms");
    says(
        "every = \"5ms\"",
        "every = \"2ms\"",
        "events[0].every, line 13: \"2ms\" is not longer than a failure, which lasts 2ms: the links would fail again before they work; accepted: more than 2ms",
    );
    says(
        "every = \"5ms\"\n",
        "",
        "events[0].times, line 13: 3 has no effect: the links fail once; accepted: an `every`, or no `times`",
    );
    says(
        "end = \"3ms\"\n",
        "",
        "events[0].every, line 12: \"5ms\" has no effect: the links do not come back; accepted: an `end` for the first failure, or no `every`",
    );
    assert_eq!(
        said(&[("duration = \"20ms\"\n", ""), ("times = 3\n", "")]),
        "s.toml: events[0].times, line 7: is missing: the flap would never end; accepted: a number of failures, or a duration of the scenario\n"
    );
    says("rate = 1e-9", "rate = 0.5", "events[1].rate, line 18: 0.5 is out of range; accepted: above 0, at most 0.01");
    assert_eq!(
        said(&[("end = \"3ms\"\nevery = \"5ms\"\ntimes = 3", "end = \"1000001ns\"\nevery = \"2ns\"\ntimes = 1000000"), ("leaf0->spine1", "*")]),
        "s.toml: events[0], line 8: makes more than 1000000 failures of all links together; accepted: fewer links, a longer `every`, or fewer `times`\n"
    );
}

#[test]
fn two_events_of_a_link_follow_each_other() {
    let errors = "kind = \"bit_errors\"\nlinks = [\"leaf1->*\"]\nrate = 1e-9";
    says(
        errors,
        "kind = \"down\"\nlinks = [\"*->spine1\"]\nstart = \"7ms\"\nend = \"9ms\"",
        "events[1], line 15: finds leaf0->spine1 down at 7ms already, by events[0] until 8ms; accepted: events of a link that follow each other",
    );
    says(
        errors,
        &format!("{errors}\n[[events]]\n{}\nstart = \"1ms\"", errors.replace("leaf1->*", "*->h2")),
        "events[2], line 19: finds leaf1->h2 with bit errors at 1ms already, by events[1] until the end; accepted: events of a link that follow each other",
    );
    // Both at once are two things, and a failure that begins after another has ended is sound.
    assert_eq!(said(&[("leaf1->*", "leaf0->spine1")]), "");
    assert_eq!(said(&[(errors, "kind = \"down\"\nlinks = [\"*->spine1\"]\nstart = \"14ms\"")]), "");
}

#[test]
fn reactions_without_effect_are_errors_and_failures_that_nobody_notices_are_warned_of() {
    says(
        "times = 3",
        "times = 3\ndetect = \"1us\"",
        "failover.detect, line 21: \"50us\" has no effect: each event has a detect of its own; accepted: no failover.detect",
    );
    let down =
        "[[events]]\nkind = \"down\"\nlinks = [\"leaf0->spine1\"]\nstart = \"1ms\"\nend = \"3ms\"\nevery = \"5ms\"\ntimes = 3\n";
    says(
        down,
        "",
        "failover, line 12: a table of 2 keys has no effect: no link fails; accepted: an event with kind = \"down\", or no failover",
    );
    let unnoticed = "warning: events[0], line 8: is noticed by neither end of leaf0->spine1, which takes 50us: frames are lost, and nothing reacts; a failure that lasts longer, or a shorter detect, where it is to be noticed";
    says("end = \"3ms\"", "end = \"1050us\"", unnoticed);
    says("start = \"1ms\"\nend = \"3ms\"\nevery = \"5ms\"\ntimes = 3", "start = \"19960us\"", unnoticed);
}

/// Scenarios without failures have no trace of what would react to them.
#[test]
fn without_failures_there_is_no_failover_in_the_document() {
    let scenario = Scenario::from_toml(SOUND, Path::new(".")).unwrap();
    assert!(scenario.resolved()["failover"]["converge"].is_string());
    let down =
        "[[events]]\nkind = \"down\"\nlinks = [\"leaf0->spine1\"]\nstart = \"1ms\"\nend = \"3ms\"\nevery = \"5ms\"\ntimes = 3\n";
    let failover = "[failover]\ndetect = \"50us\"\nconverge = \"1ms\"\n";
    let scenario = Scenario::from_toml(&edited(SOUND, &[(down, ""), (failover, "")], ""), Path::new(".")).unwrap();
    assert!(scenario.resolved().get("failover").is_none());
}

/// Leaf 0 has no way to spine 0 and leaf 1 none to spine 1: what goes between them turns around at other leaves, and those are in each
/// other's way.
#[test]
fn tables_that_go_round_failures_are_searched_for_circles() {
    let lossless = "[switch.mechanisms.pfc]\nmemory = \"8MB\"\nclasses = [0]\n";
    let found = |leaves: u32, links: &str, converge: &str, pfc: &str| {
        let text = format!(
            "name = \"x\"\nduration = \"20ms\"\n[topology]\nkind = \"leaf_spine\"\nleaves = {leaves}\nspines = 2\nhosts_per_leaf = 2\n[[events]]\nkind = \"down\"\nlinks = [{links}]\nstart = \"1ms\"\n[failover]\ndetect = \"50us\"\nconverge = \"{converge}\"\n[switch]\nbuffer = \"unlimited\"\n{pfc}[[traffic]]\nkind = \"incast\"\nreceiver = \"h3\"\nsize = \"10KB\"\n[transport]\nkind = \"roce\"\n"
        );
        match Scenario::from_toml(&text, Path::new(".")) {
            Ok(scenario) => render(scenario.warnings(), "s.toml"),
            Err(problems) => panic!("{}", render(&problems, "s.toml")),
        }
    };
    let both = "\"leaf0->spine0\", \"leaf1->spine1\"";
    let around = "with leaf0->spine0 and leaf1->spine1 down, routes go around in a circle, ";
    let said = found(4, both, "1ms", lossless);
    assert!(said.contains("may block itself for ever: ") && said.contains(around), "{said}");
    for link in ["spine0->leaf2", "leaf2->spine1", "spine1->leaf3", "leaf3->spine0"] {
        assert!(said.contains(link), "{link}: {said}");
    }
    let without = |said: String| assert!(!said.contains("in a circle"), "{said}");
    without(found(4, "\"leaf0->spine0\"", "1ms", lossless));
    without(found(3, both, "1ms", lossless)); // one leaf alone, where all turn around: up, down, and no further
    without(found(4, both, "1s", lossless)); // the run ends before
    without(found(4, both, "1ms", &format!("{lossless}watchdog = {{ detection = \"10ms\" }}\n")));
    without(found(4, both, "1ms", ""));
}
