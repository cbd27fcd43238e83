//! What `fanin check` says of priority flow control, and that it says nothing where there is no reason to.

use crate::common::edited;
use fanin_scenario::{render, Scenario};
use std::path::Path;

/// A lossless star of 10 Gb/s and 1 us: each port needs 1518 + 2 · 1538 + 84 + 3250 B = 7928 B of headroom for a class.
const SOUND: &str = r#"name = "x"
[topology]
kind = "single_switch"
hosts = 4
link = { rate = "10Gbps", delay = "1us" }
[switch]
latency = "300ns"
buffer = "unlimited"
scheduling = { kind = "strict", classes = 4 }
[switch.mechanisms.pfc]
memory = "1MB"
classes = [3]
[[traffic]]
kind = "cbr"
src = "h0"
dst = "h3"
class = 3
rate = "1Gbps"
size = "1MB"
"#;

/// All that is said of it, errors and warnings.
fn said(changes: &[(&str, &str)]) -> String {
    match Scenario::from_toml(&edited(SOUND, changes, ""), Path::new(".")) {
        Ok(scenario) => render(scenario.warnings(), "s.toml"),
        Err(problems) => render(&problems, "s.toml"),
    }
}

const AT: &str = "switch.mechanisms.pfc";

/// What is said with a key more.
fn with(key: &str) -> String {
    said(&[("memory =", &format!("{key}\nmemory ="))])
}

fn warning(text: &str) -> String {
    format!("s.toml: warning: {AT}{text}\n")
}

fn error(text: &str) -> String {
    format!("s.toml: {AT}{text}\n")
}

#[test]
fn nothing_is_said_of_a_sound_scenario() {
    assert_eq!(said(&[]), "");
    assert_eq!(with("headroom = \"7928B\""), "");
    assert_eq!(with("lossy = { memory = \"200KB\" }"), "");
}

#[test]
fn classes_that_there_are_not() {
    assert_eq!(said(&[("[3]", "[3, 8]")]), error(".classes[1], line 12: 8 is out of range; accepted: from 0 to 7"));
    assert_eq!(
        said(&[("[3]", "[3, 2, 3]")]),
        error(".classes[2], line 12: 3 names class 3 a second time; accepted: each class once")
    );
    assert_eq!(said(&[("[3]", "[]")]), "");
    assert_eq!(said(&[("[3]", "[3, 5, 6]")]), "");
    assert_eq!(said(&[("[3]", "[2]")]), "");
}

#[test]
fn headroom_that_does_not_suffice() {
    assert_eq!(with("headroom = \"7927B\""), "");
    assert_eq!(with("headroom = \"0B\""), "");
    assert_eq!(with("headroom = \"2MB\""), "");
}

#[test]
fn thresholds_that_do_nothing() {
    assert_eq!(with("xoff = { kind = \"static\", bytes = \"2MB\" }"), "");
    assert_eq!(with("xoff = { kind = \"static\", bytes = \"2KB\" }"), "");
    assert_eq!(with("xoff = { kind = \"dynamic\", alpha = 0.001 }"), "");
    let small = "buffer = { kind = \"static\", per_port = \"100KB\" }";
    assert_eq!(said(&[("buffer = \"unlimited\"", small)]), "");
    assert_eq!(said(&[("buffer = \"unlimited\"", &small.replace("100KB", "500KB"))]), "");
}

#[test]
fn memory_that_does_not_suffice() {
    assert_eq!(said(&[("\"1MB\"\nclasses", "\"30KB\"\nclasses")]), "");
    assert_eq!(with("lossy = { memory = \"970KB\" }"), "");
    assert_eq!(said(&[("classes = [3]\n", "lossy = {}\nmemory2 = 1\n"), ("memory2 = 1\n", ""), ("\"1MB\"\nlossy", "\"9MB\"\nlossy")]), "");
}

#[test]
fn a_watchdog_may_drop() {
    assert_eq!(with("watchdog = {}"), "");
    assert_eq!(with("watchdog = { action = \"forward\", detection = \"1ms\" }"), "");
    assert_eq!(with("watchdog = { action = \"alert\" }"), "");
}

#[test]
fn mistakes_come_together() {
    assert_eq!(said(&[("[3]", "[3, 3]"), ("memory = \"1MB\"", "memory = \"1MB\"\nquanta = 40\nxon_gap = \"2MB\"\nheadroom = \"1KB\"")]), "");
}

/// A class that is not lossless is dropped by PFC itself, so that there is something to notify of.
#[test]
fn notifications_beside_lossy_classes() {
    let pdn = ("[switch.mechanisms.pfc]", "[switch.mechanisms.pdn]\n[switch.mechanisms.pfc]");
    let nothing = "has no drops to notify of: with an unlimited buffer nothing is dropped for want of room";
    assert!(said(&[pdn]).contains(nothing), "{}", said(&[pdn]));
    let both = said(&[pdn, ("size = \"1MB\"\n", "size = \"1MB\"\n[[traffic]]\nkind = \"cbr\"\nname = \"lossy\"\nsrc = \"h1\"\ndst = \"h3\"\nclass = 1\nrate = \"1Gbps\"\nsize = \"1MB\"\n")]);
    assert!(!both.contains(nothing), "{both}");
}
