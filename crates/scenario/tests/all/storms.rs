//! What is said of pauses that hosts ask for, and of what hosts do about those that do not end.

use crate::common::edited;
use fanin_scenario::{render, Scenario};
use std::path::Path;

const SOUND: &str = r#"name = "x"
duration = "20ms"
[topology]
kind = "single_switch"
hosts = 4
link = { rate = "10Gbps", delay = "1us" }
[switch]
buffer = "unlimited"
scheduling = { kind = "strict", classes = 4 }
[switch.mechanisms.pfc]
memory = "1MB"
classes = [3]
[host]
storms = [{ hosts = ["h3"], classes = [3], start = "1ms", end = "2ms" }]
[[traffic]]
kind = "cbr"
src = "h0"
dst = "h3"
class = 3
rate = "1Gbps"
size = "1MB"
[[traffic]]
kind = "cbr"
name = "other"
src = "h1"
dst = "h3"
rate = "1Gbps"
size = "1MB"
[telemetry]
sample = "off"
"#;

/// All that is said of it, errors and warnings.
fn said(changes: &[(&str, &str)]) -> String {
    match Scenario::from_toml(&edited(SOUND, changes, ""), Path::new(".")) {
        Ok(scenario) => render(scenario.warnings(), "s.toml"),
        Err(problems) => render(&problems, "s.toml"),
    }
}

const STORM: &str = "storms = [{ hosts = [\"h3\"], classes = [3], start = \"1ms\", end = \"2ms\" }]";
const NO_PFC: &[(&str, &str)] = &[("[switch.mechanisms.pfc]\nmemory = \"1MB\"\nclasses = [3]\n", "")];

#[test]
fn storms_of_hosts_that_there_are_in_classes_that_pause() {
    assert_eq!(said(&[]), "");
    assert_eq!(
        said(&[("hosts = [\"h3\"], classes = [3]", "hosts = [\"h9\"], classes = [3, 0]")]),
        "s.toml: host.storms[0].hosts[0], line 14: \"h9\" is no host; accepted: names and patterns such as \"h*\"; the hosts are h0, h1, h2, h3; did you mean 'h0'?\n\
         s.toml: host.storms[0].classes[1], line 14: 0 has no effect: no switch pauses this class; accepted: of switch.mechanisms.pfc.classes: 3\n"
    );
    let empty = said(&[("hosts = [\"h3\"], classes = [3]", "hosts = [], classes = []")]);
    assert_eq!(
        empty,
        "s.toml: host.storms[0].hosts, line 14: is empty: the storm does nothing; accepted: at least one\n\
         s.toml: host.storms[0].classes, line 14: is empty: the storm does nothing; accepted: at least one\n"
    );
    let without: Vec<String> = said(NO_PFC).lines().map(str::to_string).collect();
    let error =
        "s.toml: host.storms[0].classes[0], line 11: 3 has no effect: no switch obeys pauses; accepted: switch.mechanisms.pfc";
    assert!(without.iter().any(|line| line == error), "{without:?}");
}

#[test]
fn storms_have_a_time_in_the_run() {
    assert_eq!(
        said(&[("start = \"1ms\"", "start = \"2ms\"")]),
        "s.toml: host.storms[0].end, line 14: \"2ms\" is not after the start; accepted: after 2ms\n"
    );
    assert_eq!(
        said(&[("start = \"1ms\", end = \"2ms\"", "start = \"20ms\"")]),
        "s.toml: host.storms[0].start, line 14: \"20ms\" is after the end of the run; accepted: before the end of the run: duration\n"
    );
    assert_eq!(said(&[(", end = \"2ms\"", "")]), "", "the run ends");
    assert_eq!(
        said(&[("duration = \"20ms\"\n", ""), (", end = \"2ms\"", "")]),
        "s.toml: host.storms[0], line 13: never ends, so a run with a flow that waits for it never ends either; accepted: an end, or the scenario's duration\n"
    );
}

#[test]
fn what_hosts_do_about_pauses_has_an_effect() {
    let with = |keys: &str| said(&[(STORM, &format!("{STORM}\n{keys}"))]);
    assert_eq!(with("stall_prevention = \"100us\""), "");
    assert_eq!(
        said(&[(STORM, "stall_prevention = \"100us\"")]),
        "s.toml: host.stall_prevention, line 14: \"100us\" has no effect: no NIC asks for pauses; accepted: host.storms, or no stall_prevention\n"
    );
    assert_eq!(
        with("pause_watchdog = { detection = \"1ms\" }"),
        "s.toml: warning: host.pause_watchdog, line 15: may lose packets: a NIC sends a class, whether the switch has room or not, after 1ms of pause; no pause_watchdog, where nothing may be lost\n"
    );
    assert_eq!(
        with("pause_watchdog = {}"),
        "s.toml: warning: host.pause_watchdog.detection, line 15: \"200ms\" finds no storm: a run of 20ms is over before a pause has lasted so long; less than 20ms, or a longer run\n"
    );
    let fifo = with("nic = \"fifo\"\npause_watchdog = {}");
    let error = "s.toml: host.pause_watchdog, line 16: has no effect: NICs that are one queue, first in, first out, ignore pauses; accepted: host.nic = \"fair\", or no pause_watchdog\n";
    assert!(fifo.contains(error), "{fifo}");
    let changes = [NO_PFC[0], (STORM, "pause_watchdog = {}")];
    let error = "s.toml: host.pause_watchdog, line 11: has no effect: no switch pauses hosts; accepted: switch.mechanisms.pfc, or no pause_watchdog\n";
    assert!(said(&changes).contains(error), "{}", said(&changes));
}
