//! Whatever is written, reading it ends with a scenario or with problems, never with a panic.

use fanin_scenario::{json_schema, read_json, read_toml, render, Scenario};
use proptest::prelude::*;
use std::path::Path;

/// A scenario that uses most of what there is.
const RICH: &str = r#"name = "rich"
seed = 7
duration = "2ms"
[topology]
kind = "leaf_spine"
leaves = 2
hosts_per_leaf = 3
spines = 2
host_link = { rate = "10Gbps", delay = "1us" }
[framing]
header = "18B"
[switch]
latency = "500ns"
cell = "80B"
buffer = { kind = "dynamic", total = "20000 cells", alpha = 0.5 }
marking = { kind = "red", min = "20 packets", max = "60 packets", max_p = 0.1 }
scheduling = { kind = "strict", classes = 2 }
routing = { kind = "flowlet", gap = "100us" }
[[switch.except]]
ports = ["leaf*->h*"]
switches = ["leaf*"]
rate = "10Gbps"
alpha = 2.0
marking = { kind = "threshold", k = "300 cells" }
[[switch.except]]
tier = 1
scheduling = { kind = "drr", quanta = ["1518B", "3036B"] }
[switch.except.mechanisms.trimming]
[host]
nic = "fifo"
processing_delay = "1us"
[[events]]
kind = "down"
links = ["leaf0->spine1"]
start = "100us"
end = "900us"
[failover]
detect = "20us"
[transport]
kind = "tcp"
profile = "linux"
congestion_control = { kind = "dctcp", g = 0.125 }
rto_min = "10ms"
pacing = { kind = "fq", gain = 1.2 }
[transports.bulk]
kind = "tcp"
congestion_control = "cubic"
[[traffic]]
kind = "poisson"
name = "background"
sizes = "web-search"
load = 0.3
transport = "bulk"
class = 1
[[traffic]]
kind = "incast"
receiver = "h5"
senders = ["all", "!h0"]
total = "100KB"
start = "100us"
[[traffic]]
kind = "flows"
after = ["incast"]
flows = [{ id = "a", src = "h0", dst = "h4", size = "1MB" }, { src = "h1", dst = "h2", size = "1B", after = ["a"] }]
[[traffic]]
kind = "cbr"
src = "h0"
dst = "h3"
rate = "1Gbps"
[telemetry]
sample = "10us"
queues = ["leaf1->*"]
[engine]
ports = "explicit"
max_events = 1000000
"#;

fn look(text: &str) {
    let here = Path::new(".");
    for result in [Scenario::from_toml(text, here), Scenario::from_json(text, here)] {
        match result {
            Ok(scenario) => assert_eq!(scenario.hash().len(), 64),
            Err(problems) => assert!(!render(&problems, "x").is_empty(), "refused without a reason"),
        }
    }
}

#[test]
fn the_rich_scenario_is_sound_and_its_resolved_form_is_the_same() {
    let scenario = Scenario::from_toml(RICH, Path::new(".")).unwrap_or_else(|problems| panic!("{}", render(&problems, "rich")));
    let again = Scenario::from_json(&scenario.resolved().to_string(), Path::new("."))
        .unwrap_or_else(|problems| panic!("{}", render(&problems, "rich")));
    assert_eq!((again.resolved(), again.hash()), (scenario.resolved(), scenario.hash()));
    assert_eq!(again, scenario);
    assert_eq!(scenario.watched().len(), 5, "three hosts and two spines");
    assert_ne!(Scenario::from_toml(&RICH.replace("seed = 7", "seed = 8"), Path::new(".")).unwrap().hash(), scenario.hash());
}

/// What mutations put in.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "0",
            "-1",
            "nan",
            "inf",
            "1e309",
            "9999999999999999999",
            "\"\"",
            "\"0B\"",
            "\"1e9\"",
            "\"18446744073709551615B\"",
            "\"99999999999999999999s\"",
            "\"all\"",
            "\"h0..h99999\"",
            "\"rack:7\"",
            "[",
            "]",
            "{",
            "}",
            "[[",
            "=",
            "\"",
            "'",
            "#",
            "\n",
            "true",
            "[]",
            "{}",
            "\"65 cells\"",
            "\"1ps\"",
            "\"off\"",
            "1979-05-27",
            "\"\"\"",
            ".",
            ",",
            "\u{0}",
            "\u{feff}",
            "kind = \"file\"\npath = \"/\"",
            "\"*\"",
            "65535",
            "4294967295",
        ])
        .prop_map(str::to_string),
        "\\PC{0,8}",
    ]
}

proptest! {
    #[test]
    fn arbitrary_text(text in "\\PC{0,200}") {
        look(&text);
    }

    #[test]
    fn arbitrary_toml_lines(lines in prop::collection::vec(("[a-z_]{1,12}", fragment()), 0..12)) {
        look(&lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect::<String>());
    }

    /// A value of a sound scenario replaced: what is left is mostly well-formed.
    #[test]
    fn a_value_replaced(line in 0usize..64, value in fragment()) {
        let mut lines: Vec<String> = RICH.lines().map(str::to_string).collect();
        let line = line % lines.len();
        if let Some((key, _)) = lines[line].split_once(" = ") {
            lines[line] = format!("{key} = {value}");
        }
        look(&lines.join("\n"));
    }

    /// A piece of the text replaced, wherever it is.
    #[test]
    fn a_piece_replaced(at in any::<prop::sample::Index>(), length in 0usize..12, with in fragment()) {
        let letters: Vec<char> = RICH.chars().collect();
        let from = at.index(letters.len());
        let to = (from + length).min(letters.len());
        let text: String = letters[..from].iter().copied().chain(with.chars()).chain(letters[to..].iter().copied()).collect();
        look(&text);
    }

    /// Lines left out, given twice or exchanged.
    #[test]
    fn lines_moved(a in 0usize..64, b in 0usize..64, how in 0..3) {
        let mut lines: Vec<&str> = RICH.lines().collect();
        let (a, b) = (a % lines.len(), b % lines.len());
        match how {
            0 => { lines.remove(a); }
            1 => lines.insert(b, lines[a]),
            _ => lines.swap(a, b),
        }
        look(&lines.join("\n"));
    }

    #[test]
    fn readers_alone(text in "[\\[\\]{}=\"'a-c0-9.,\\n# -]{0,80}") {
        let (_, problems) = read_toml(&text);
        prop_assert!(problems.iter().all(|p| p.line.is_some()));
        let _ = read_json(&text);
    }
}

/// What the JSON Schema names is what the parser takes: each key of each table, and no other.
#[test]
fn the_schema_and_a_resolved_scenario_have_the_same_keys() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    let known: Vec<&String> = schema["$defs"]["ScenarioDoc"]["properties"].as_object().unwrap().keys().collect();
    let resolved = Scenario::from_toml(RICH, Path::new(".")).unwrap().resolved();
    let present: Vec<&String> = resolved.as_object().unwrap().keys().collect();
    assert_eq!(known.iter().filter(|key| **key != "description").collect::<Vec<_>>(), present.iter().collect::<Vec<_>>());
}
