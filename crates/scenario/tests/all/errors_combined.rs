//! Combined input- and output-queued switches: what is wrong with their settings, and what is not.

use crate::common::{errors, wrong};
use fanin_scenario::Scenario;
use std::path::Path;

const LOSSLESS: &str = r#"name = "x"
[topology]
kind = "single_switch"
hosts = 4
link = { rate = "10Gbps", delay = "1us" }
[switch]
latency = "300ns"
architecture = { kind = "combined", voq = "100KB" }
[switch.mechanisms.pfc]
memory = "1MB"
classes = [0]
xoff = { kind = "static", bytes = "90KB" }
[[traffic]]
kind = "cbr"
src = "h0"
dst = "h3"
rate = "1Gbps"
size = "1MB"
[telemetry]
sample = "off"
"#;

#[test]
fn settings_without_the_architecture_are_errors() {
    for key in ["voq = \"50KB\"", "output = \"50KB\"", "speedup = 2.0", "scheduler = \"islip\""] {
        let found = wrong(&[], &format!("[switch.architecture]\nkind = \"output_queued\"\n{key}\n"));
        assert!(found.contains("switch.architecture.") && found.contains("combined"), "{key}: {found}");
        assert_ne!(wrong(&[], &format!("[switch.architecture]\n{key}\n")), "sound", "{key}");
    }
    assert_eq!(wrong(&[], "[switch]\narchitecture = \"combined\"\n"), "sound");
}

#[test]
fn values_out_of_range_are_said_all_at_once() {
    let found = wrong(
        &[],
        "[switch.architecture]\nkind = \"combined\"\nvoq = \"10B\"\nspeedup = 0.5\nscheduler = { kind = \"islip\", iterations = 0 }\n",
    );
    for expected in [
        "switch.architecture.voq, line 15: \"10B\" is out of range",
        "switch.architecture.speedup, line 16: 0.5 is out of range; accepted: from 1 to 64",
        "switch.architecture.scheduler.iterations, line 17: 0 is out of range; accepted: from 1 to 64",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let found = wrong(&[], "[switch.architecture]\nkind = \"combined\"\nscheduler = \"pim\"\n");
    assert!(found.contains("\"pim\" is not a known kind; accepted: islip, round_robin"), "{found}");
}

#[test]
fn queues_that_hold_no_frame() {
    let found = wrong(&[], "[switch]\narchitecture = { kind = \"combined\", voq = \"1517B\", output = \"1500B\" }\n");
    for expected in [
        "switch.architecture.voq, line 14: \"1517B\" does not hold the largest frame of the traffic, 1518B; accepted: at least 1518B",
        "switch.architecture.output, line 14: \"1500B\" has no room for the largest frame of the traffic, 1518B: nothing ever crosses; accepted: at least 1518B",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let exact = "[switch]\narchitecture = { kind = \"combined\", voq = \"1518B\", output = \"1518B\" }\n";
    assert_eq!(wrong(&[], exact), "sound");
    assert!(wrong(&[("kind = \"tcp\"", "kind = \"tcp\"\nmtu = 9000")], exact).contains("9018B"));
}

#[test]
fn buffers_of_output_queued_switches_have_no_effect() {
    let found = wrong(
        &[],
        "[switch]\narchitecture = \"combined\"\nbuffer = \"unlimited\"\n[[switch.except]]\nports = [\"*->h3\"]\nbuffer = \"20KB\"\n",
    );
    for expected in [
        "switch.buffer, line 15: \"unlimited\" has no effect: combined switches have the buffers of switch.architecture",
        "switch.except[0].buffer, line 18: \"20KB\" has no effect: combined switches have the buffers of switch.architecture",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let resolved = Scenario::from_toml(&LOSSLESS.replace("90KB", "50KB"), Path::new(".")).expect("sound").resolved();
    assert!(resolved["switch"].get("buffer").is_none(), "{}", resolved["switch"]);
    assert_eq!(resolved["switch"]["architecture"]["speedup"], 2.0);
}

#[test]
fn mechanisms_that_need_ports_that_refuse() {
    for (more, at) in [
        ("mechanisms.dibs = {}\n", "switch.mechanisms.dibs"),
        ("[[switch.except]]\ntier = 0\nmechanisms.trimming = {}\n", "switch.except[0].mechanisms.trimming"),
    ] {
        let found = wrong(&[], &format!("[switch]\narchitecture = \"combined\"\n{more}"));
        let line = found.lines().find(|line| line.contains(at)).unwrap_or_else(|| panic!("{at}\n{found}"));
        let accepted = "accepted: switch.architecture = \"output_queued\"; or of the mechanisms int, pdn, pfc, rcm";
        assert!(line.contains("which a combined switch does not do") && line.contains(accepted), "{line}");
    }
}

/// XOFF and headroom of an input may all wait for one port: 7553 B of headroom, and 100 KB of queue.
#[test]
fn xoff_above_a_virtual_output_queue() {
    let found = errors(&LOSSLESS.replace("90KB", "95KB"));
    let expected = "switch.mechanisms.pfc.xoff, line 12: is above what a virtual output queue holds, 100KB: XOFF at 95KB and headroom of 7553B are 102553B, \
                    all of which may wait for one port; accepted: xoff = { kind = \"static\", bytes = \"92447B\" } or less, or switch.architecture.voq of at least 102553B";
    assert!(found.contains(expected), "{found}");
    for (xoff, sound) in [("92447B", true), ("92448B", false)] {
        assert_eq!(errors(&LOSSLESS.replace("90KB", xoff)) == "sound", sound, "{xoff}");
    }
    // The default, a share of the memory, is far more.
    let found = errors(&LOSSLESS.replace("xoff = { kind = \"static\", bytes = \"90KB\" }\n", ""));
    assert!(
        found.contains("switch.mechanisms.pfc.xoff") && found.contains("is above what a virtual output queue holds"),
        "{found}"
    );
    let small = errors(&LOSSLESS.replace("100KB", "8KB"));
    assert!(small.contains("accepted: switch.architecture.voq of at least"), "{small}");
}

#[test]
fn a_sound_one_has_no_warning() {
    let sound = Scenario::from_toml(LOSSLESS, Path::new(".")).expect("sound");
    let said: Vec<String> = sound.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(said, [] as [String; 0]);
}
