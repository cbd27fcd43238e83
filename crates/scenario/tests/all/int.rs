//! In-band telemetry that contradicts the rest of a scenario.

use fanin_scenario::{render, Scenario};
use std::path::Path;

/// A chain of switches with a host at each end, and what is said of it: errors and warnings.
fn said(switches: u32, rate: &str, control: &str, switch: &str) -> String {
    let text = format!(
        "[topology]\nkind = \"chain\"\nswitches = {switches}\nhost_link = {{ rate = \"{rate}\" }}\ntrunk = {{ rate = \"{rate}\" }}\n\
         [transport]\nkind = \"roce\"\ncongestion_control = \"{control}\"\n{switch}\n\
         [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"1MB\" }}]\n"
    );
    match Scenario::from_toml(&text, Path::new(".")) {
        Ok(scenario) => render(scenario.warnings(), "s.toml"),
        Err(problems) => render(&problems, "s.toml"),
    }
}

const INT: &str = "[switch]\nmechanisms.int = {}";

#[test]
fn a_control_by_telemetry_needs_switches_that_write_it() {
    for (control, name) in [("hpcc", "HPCC"), ("powertcp", "PowerTCP")] {
        let found = said(2, "100Gbps", control, "");
        let expected = format!("is controlled by {name}, which needs telemetry, and no switch writes any; accepted: switches with [switch.mechanisms.int]");
        assert!(found.contains(&expected), "{found}");
        assert!(!said(2, "100Gbps", control, INT).contains("telemetry"), "{}", said(2, "100Gbps", control, INT));
    }
    assert!(!said(2, "100Gbps", "theta_powertcp", "").contains("telemetry"));
}

#[test]
fn telemetry_that_nobody_reads_is_said() {
    let found = said(2, "100Gbps", "theta_powertcp", INT);
    assert!(found.contains("switch.mechanisms.int") && found.contains("no transport in use asks for telemetry"), "{found}");
}

#[test]
fn paths_longer_than_a_stack_are_refused_with_the_length_that_would_do() {
    let found = said(6, "100Gbps", "hpcc", INT);
    assert!(found.contains("switch.mechanisms.int.hops") && found.contains("the longest path, 6"), "{found}");
    assert!(found.contains("accepted: from 6 to 8"), "{found}");
    assert!(!said(6, "100Gbps", "hpcc", "[switch]\nmechanisms.int = { hops = 6 }").contains("hops"));
    let found = said(9, "100Gbps", "hpcc", "[switch]\nmechanisms.int = { hops = 8 }");
    assert!(found.contains("accepted: paths over at most 8 switches"), "{found}");
}

#[test]
fn rates_without_a_code_are_refused() {
    let found = said(2, "11Gbps", "hpcc", INT);
    assert!(found.contains("has no code for 11Gbps, the rate from"), "{found}");
    assert!(found.contains("accepted: 0.1, 1, 2.5, 5, 10,"), "{found}");
}

#[test]
fn a_frame_has_one_header() {
    let found = said(2, "100Gbps", "hpcc", "[switch]\nmechanisms.int = {}\nmechanisms.pabo = {}");
    assert!(found.contains("puts headers into frames, as int does, and a frame has one at most; accepted: either int or pabo"), "{found}");
}

#[test]
fn pauses_know_how_long_frames_are_with_telemetry() {
    let pfc = |frame: &str| {
        let switch = format!(
            "[switch]\nbuffer = \"unlimited\"\nmechanisms.int = {{}}\nmechanisms.pfc = {{ memory = \"4MB\", classes = [0], max_frame = \"{frame}\" }}"
        );
        said(2, "100Gbps", "hpcc", &switch)
    };
    // 20 + 8 + 12 + 16 + 1024 + 4 of IP, 18 of Ethernet, 4 + 2 · 8 of telemetry.
    assert!(!pfc("1122B").contains("max_frame"), "{}", pfc("1122B"));
    let found = pfc("1121B");
    assert!(found.contains("is less than the largest frame of the traffic, 1122 B"), "{found}");
}
