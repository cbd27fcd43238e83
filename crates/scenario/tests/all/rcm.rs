//! What `fanin check` says of RCM, and that it says nothing where there is no reason to.

use fanin_scenario::{render, Scenario};
use std::path::Path;

/// All that is said of a chain of two switches whose mechanisms are set like this, errors and warnings.
fn said(mechanisms: &str, more: &str) -> String {
    let text = format!(
        "[topology]\nkind = \"chain\"\nswitches = 2\nlink = {{ rate = \"100Gbps\" }}\n\
         [transport]\nkind = \"roce\"\n[switch]\n{more}\n{mechanisms}\n\
         [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"1MB\" }}]\n"
    );
    match Scenario::from_toml(&text, Path::new(".")) {
        Ok(scenario) => render(scenario.warnings(), "s.toml"),
        Err(problems) => render(&problems, "s.toml"),
    }
}

const LOSSLESS: &str = "buffer = \"unlimited\"\nmechanisms.pfc = { memory = \"2MB\" }";

fn with(rcm: &str) -> String {
    said(&format!("mechanisms.rcm = {{ {rcm} }}"), LOSSLESS)
}

#[test]
fn a_sound_one_is_not_spoken_of() {
    for rcm in ["", "rcc = false", "sar = false", "w = 0.0", "w = 1.0", "reserved = \"2MB\""] {
        assert!(!with(rcm).contains("rcm"), "{}", with(rcm));
    }
}

#[test]
fn ranges_are_named_with_what_would_do() {
    for (rcm, wanted) in [
        ("w = 1.5", "rcm.w, line 10: 1.5 is out of range; accepted: from 0 to 1"),
        ("cam = 0", "rcm.cam, line 10: 0 is out of range; accepted: from 1 to 256"),
        ("severe_degree = 64", "rcm.severe_degree, line 10: 64 is out of range; accepted: from 1 to 63"),
        (
            "window_min = \"3KB\", max_frame = \"1518B\"",
            "is too short: a frame of harmful flows fits into each window, and is at most half of it; accepted: at least 3036 B",
        ),
        ("window_max = \"15KB\"", "is less than window_min, 16KB; accepted: at least 16KB"),
        ("q_eq = \"3MB\"", "is never exceeded: the memory of a switch is 2000000 B; accepted: less than 2000000 B"),
        ("reserved = \"3MB\"", "is more than the memory of a switch, 2000000 B; accepted: at most 2000000 B"),
        ("max_frame = \"1000B\"", "is less than the largest frame of the traffic"),
        (
            "cam = 2, cam_hits = 3",
            "rcm.cam_hits, line 10: 3 is more than the places of a CAM, 2: no flow is harmful; accepted: at most 2",
        ),
        ("loss = 1.0", "loses every notification: no neighbour hears of congestion"),
    ] {
        let found = with(rcm);
        println!("{rcm}: {found}");
        assert!(found.contains(wanted), "{rcm}: {found}");
    }
    let found = with("w = 2.0, cam = 0, window_max = \"1KB\"");
    assert!(["rcm.w", "rcm.cam"].iter().all(|key| found.contains(key)), "all at once: {found}");
}

/// Larger frames of a transport need no setting: windows suit the largest frame.
#[test]
fn defaults_suit_any_frame() {
    for (mtu, frame) in [(1_024, 1_518), (4_096, 4_174), (9_000, 9_084)] {
        let pfc = format!(
            "buffer = \"unlimited\"\nmechanisms.pfc = {{ memory = \"4MB\", max_frame = \"{frame}B\" }}\nmechanisms.rcm = {{}}"
        );
        let text = format!(
            "[topology]\nkind = \"chain\"\nswitches = 2\nlink = {{ rate = \"100Gbps\" }}\n[transport]\nkind = \"roce\"\nmtu = {mtu}\n\
             [switch]\n{pfc}\n[[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"1MB\" }}]\n"
        );
        let found = match Scenario::from_toml(&text, Path::new(".")) {
            Ok(scenario) => render(scenario.warnings(), "s.toml"),
            Err(problems) => render(&problems, "s.toml"),
        };
        assert!(!found.contains("rcm"), "{found}");
    }
}

#[test]
fn settings_of_a_part_that_is_off_do_nothing() {
    for (off, key) in
        [("rcc = false", "window_min = \"20KB\""), ("rcc = false", "when_idle = \"wait\""), ("sar = false", "moved_flows = 7")]
    {
        let found = with(&format!("{off}, {key}"));
        assert!(found.contains("has no effect") && found.contains(off.split(' ').next().unwrap()), "{found}");
    }
}

#[test]
fn without_pfc_nothing_pushes_back() {
    let found = said("mechanisms.rcm = {}", "buffer = { kind = \"static\", per_port = \"200KB\" }");
    assert!(
        found.contains("without PFC what is held takes nobody's memory") && found.contains("switch.mechanisms.pfc"),
        "{found}"
    );
    let found = said("mechanisms.rcm = { q_eq = \"300KB\" }", "buffer = { kind = \"static\", per_port = \"200KB\" }");
    assert!(found.contains("is never exceeded: the buffer of a port is 200000 B"), "{found}");
}

#[test]
fn switches_without_it_are_checked_by_name() {
    let found = with("unaware = [\"leaf*\"]");
    assert!(found.contains("rcm.unaware") && found.contains("matches no switch"), "{found}");
    let found = with("unaware = [\"*\"]");
    assert!(found.contains("nobody detects congestion"), "{found}");
}
