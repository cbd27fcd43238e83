//! Policies as they are tried on a scenario, and what a scenario simulates.

use fanin_scenario::Scenario;
use std::path::Path;

fn scenario(switch: &str, transport: &str) -> Scenario {
    let text = format!(
        r#"
        duration = "1ms"
        [topology]
        kind = "leaf_spine"
        leaves = 2
        hosts_per_leaf = 2
        spines = 2
        host_link = {{ rate = "40Gbps", delay = "1us" }}
        uplink = {{ rate = "40Gbps", delay = "1us" }}
        [switch]
        {switch}
        [transport]
        {transport}
        [[traffic]]
        kind = "flows"
        flows = [{{ src = "h0", dst = "h2", size = "1460KB" }}, {{ src = "h0", dst = "h1", size = "1460KB" }}]
        "#
    );
    Scenario::from_toml(&text, Path::new(".")).unwrap_or_else(|problems| panic!("{problems:?}"))
}

const TCP: &str = "kind = \"tcp\"\ntimestamps = false\nhandshake = false";

/// Each setting is TOML, and the first one is the policy.
#[test]
fn settings_can_be_read() {
    let trials = scenario("", TCP).trials();
    assert!(trials.len() > 25, "{}", trials.len());
    for trial in &trials {
        for (path, value) in &trial.settings {
            let text = format!("value = {value}");
            let (document, problems) = fanin_scenario::read_toml(&text);
            assert!(document.is_some() && problems.is_empty(), "{}: {path} = {value}", trial.kind);
        }
        let (path, value) = &trial.settings[0];
        assert!(path.contains(trial.kind) || value.contains(trial.kind), "{trial:?}");
        assert!(!trial.doc.is_empty(), "{}", trial.kind);
    }
}

#[test]
fn settings_follow_rate_and_buffer() {
    let value = |scenario: &Scenario, kind: &str, path: &str| {
        let trial = scenario.trials().into_iter().find(|trial| trial.kind == kind).expect("a trial");
        trial.settings.into_iter().find(|(own, _)| own == path).map(|(_, value)| value)
    };
    let cells = scenario("buffer = { kind = \"static\", per_port = \"24000 cells\" }", TCP);
    assert_eq!(value(&cells, "threshold", "switch.marking.k").as_deref(), Some("\"260 packets\""));
    assert_eq!(value(&cells, "rimm", "switch.mechanisms.rimm.alpha").as_deref(), Some("\"20000 cells\""));
    assert_eq!(value(&cells, "pdn", "transport.drop_notification").as_deref(), Some("true"));
    assert_eq!(value(&cells, "hpcc", "switch.mechanisms.int").as_deref(), Some("{}"));
    assert_eq!(value(&cells, "hpcc", "switch.buffer").as_deref(), Some("\"unlimited\""));
    assert_eq!(value(&cells, "newreno", "switch.mechanisms.pfc"), None);
    let endless = scenario("buffer = \"unlimited\"", TCP);
    assert_eq!(value(&endless, "rimm", "switch.mechanisms.rimm.alpha"), None);
}

#[test]
fn memory_is_that_of_the_switch_with_most() {
    let memory = |switch: &str| scenario(switch, TCP).switch_memory().map(|bytes| bytes.get());
    assert_eq!(memory(""), Some(0));
    assert_eq!(memory("mechanisms.trimming = {}"), Some(4 * 72_000), "a leaf has four ports");
    assert_eq!(memory("routing = { kind = \"drill\", d = 2, m = 3 }"), Some(6));
    assert_eq!(memory("routing = \"flowlet\""), None, "one that does not say");
    let by_class = "scheduling = { kind = \"strict\", classes = 2 }\nclass_marking = [{ classes = [1], marking = \"s_ecn\" }]";
    assert!(memory("marking = \"s_ecn\"") > Some(0) && memory(by_class) == memory("marking = \"s_ecn\""));
    let rimm = "buffer = { kind = \"static\", per_port = \"24000 cells\" }\nrouting = \"by_destination\"\nmechanisms.rimm = {}";
    assert_eq!(memory(rimm), Some((117 * 4 + (177 << 12)) / 8 + 1));
}

/// Loads by hand: 1000 full segments each; half of what crosses the fabric by each spine.
#[test]
fn loads_are_spread_over_equal_paths() {
    let facts = scenario("", TCP).facts().expect("facts");
    let load = |name: &str| {
        let links = facts["links"].as_array().expect("links");
        links.iter().find(|link| link["name"] == name).expect("a link")["load"].as_f64().expect("a number")
    };
    let flow = 1000.0 * 1538.0 * 8.0 / (40e9 * 1e-3);
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(close(load("h0->leaf0"), 2.0 * flow) && close(load("leaf0->h1"), flow) && close(load("leaf1->h2"), flow));
    assert!(close(load("leaf0->spine0"), flow / 2.0) && close(load("spine1->leaf1"), flow / 2.0));
    assert_eq!(load("h2->leaf1"), 0.0);
    // Four links there and two, half an acknowledgment for each packet back.
    assert!(close(facts["packet_hops"].as_f64().expect("a number"), 1000.0 * 1.5 * (4.0 + 2.0)));
    let rtt = |links: f64| 2.0 * links * 1e6 + links * (1538.0 + 84.0) * 200.0;
    assert_eq!(facts["base_rtt_ps"], serde_json::json!([rtt(2.0) as u64, rtt(4.0) as u64]));
    // At combined switches a frame crosses a crossbar of twice the rate as well, without preamble and gap: one switch, or three.
    let facts = scenario("architecture = { kind = \"combined\", speedup = 2.0 }", TCP).facts().expect("facts");
    let crossing = |switches: f64| switches * (1518.0 + 64.0) * 100.0;
    let rtts = [rtt(2.0) + crossing(1.0), rtt(4.0) + crossing(3.0)].map(|rtt| rtt as u64);
    assert_eq!(facts["base_rtt_ps"], serde_json::json!(rtts));
}
