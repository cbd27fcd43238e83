//! What is said of captures that cannot be, and of those that lose what they are for.

use fanin_scenario::{render, Scenario};
use std::path::Path;

fn checked(capture: &str, more: &str) -> String {
    let text = format!(
        "name = \"x\"\n[topology]\nkind = \"single_switch\"\nhosts = 9\n[switch]\nmarking = {{ kind = \"threshold\", k = \"65 packets\" }}\n\
         [transport]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\nrto_min = \"10ms\"\ndelayed_ack_timeout = \"1ms\"\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsize = \"100KB\"\n{more}\n[telemetry.capture]\n{capture}\n"
    );
    match Scenario::from_toml(&text, Path::new(".")) {
        Ok(scenario) if scenario.warnings().is_empty() => {
            scenario.captured().iter().map(|h| h.0.to_string()).collect::<Vec<_>>().join(" ")
        }
        Ok(scenario) => render(scenario.warnings(), "s.toml"),
        Err(problems) => render(&problems, "s.toml"),
    }
}

#[test]
fn hosts_are_named_one_by_one_or_by_patterns() {
    assert_eq!(checked("hosts = [\"h8\", \"h1\", \"h1\"]", ""), "1 8");
    assert_eq!(checked("hosts = [\"h*\"]\nsnap = \"96B\"", ""), "0 1 2 3 4 5 6 7 8");
}

#[test]
fn all_that_is_wrong_is_reported() {
    let named = "accepted: names and patterns such as \"h*\"; the hosts are h0, h1, h2, h3, … (9 hosts)";
    let framed =
        "accepted: header = \"18B\" with min_frame = \"64B\", or \"22B\" (a priority tag) with \"64B\" or \"68B\"; or no capture";
    assert_eq!(
        checked("hosts = [\"h9\", \"leaf*\"]", "[framing]\nheader = \"30B\"\nmin_frame = \"0B\""),
        format!(
            "s.toml: telemetry.capture, line 19: holds Ethernet frames, but in this scenario framing.header is 30B and framing.min_frame is 0B; {framed}\n\
             s.toml: telemetry.capture.hosts[0], line 20: \"h9\" is no host; {named}; did you mean 'h0'?\n\
             s.toml: telemetry.capture.hosts[1], line 20: \"leaf*\" matches no host; {named}\n"
        )
    );
    assert_eq!(
        checked("hosts = []", ""),
        "s.toml: telemetry.capture.hosts, line 18: is empty: nothing is captured; accepted: names of hosts, or of ports in links, or no capture\n"
    );
    let nothing = "is empty: nothing is captured; accepted: names of hosts, or of ports in links, or no capture";
    assert_eq!(checked("", ""), format!("s.toml: telemetry.capture.hosts, line 17: {nothing}\n"));
    let found = checked("links = [\"h0->switch0\", \"spine0->h9\"]", "");
    let expected = [
        "links[0], line 18: \"h0->switch0\" is the port of a host, where frames are captured by hosts",
        "links[1], line 18: \"spine0->h9\" is no port",
    ];
    assert!(expected.iter().all(|text| found.contains(text)), "{found}");
    assert_eq!(
        checked("hosts = [\"h8\"]\nsnap = \"63B\"", ""),
        "s.toml: telemetry.capture.snap, line 19: \"63B\" is out of range; accepted: from 64B to 65535B\n"
    );
}

#[test]
fn a_snap_that_cuts_stamps_off() {
    let registers = "[telemetry]\nqueues = [\"switch0->h8\"]\nregisters = {}";
    assert_eq!(checked("hosts = [\"h8\"]\nsnap = \"1514B\"", registers), "8");
    assert_eq!(checked("hosts = [\"h8\"]", registers), "8");
    let cuts = |snap: u32, line: u32, longest: u32| {
        format!(
            "s.toml: warning: telemetry.capture.snap, line {line}: \"{snap}B\" cuts the stamps of telemetry.registers off: they are the \
             last 8 B of a frame, and frames are up to {longest} B long here; \"{longest}B\", or no snap\n"
        )
    };
    assert_eq!(checked("hosts = [\"h8\"]\nsnap = \"96B\"", registers), cuts(96, 21, 1514));
    let datagrams =
        "[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"\nsize = \"9000B\"\npacket = \"8000B\"\n";
    assert_eq!(checked("hosts = [\"h8\"]\nsnap = \"1514B\"", &format!("{datagrams}{registers}")), cuts(1514, 28, 8050));
}
