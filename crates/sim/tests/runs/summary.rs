//! What summary.json says agrees with what happened.

use fanin_scenario::Scenario;
use fanin_sim::{finish, world, Destination, Pause};
use serde_json::Value;
use std::path::Path;

fn summary(marking: &str) -> Value {
    let text = format!(
        "[topology]\nkind = \"single_switch\"\nhosts = 9\n[switch]\nmarking = {marking}\n[transport]\nkind = \"tcp\"\n\
         congestion_control = \"dctcp\"\nhandshake = false\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsize = \"200KB\"\n"
    );
    run(&text)
}

fn run(text: &str) -> Value {
    let scenario = Scenario::from_toml(text, Path::new(".")).expect("a valid scenario");
    let mut world = world(&scenario, &Destination::Memory).expect("a world");
    while world.advance(100_000).expect("tables in memory") == Pause::Budget {}
    finish(&mut world).expect("tables in memory").0
}

/// Every mark has a reason, whether the inner loop or the pipeline made it, at enqueue or at dequeue.
#[test]
fn marks_are_counted_by_reason() {
    for (marking, reason) in [
        ("{ kind = \"threshold\", k = \"20 packets\" }", "threshold"),
        ("{ kind = \"threshold\", k = \"20 packets\", at = \"dequeue\" }", "threshold"),
        ("{ kind = \"red\", hard_drop = false, weight = 1.0 }", "red"),
    ] {
        let summary = summary(marking);
        let by_reason = summary["marks_by_reason"].as_object().expect("a table");
        let sum: u64 = by_reason.values().filter_map(Value::as_u64).sum();
        assert!(by_reason[reason].as_u64() > Some(100), "{marking}: {by_reason:?}");
        assert_eq!(Some(sum), summary["marks"].as_u64(), "{marking}");
    }
}

/// A sender that waits for a delayed acknowledgment of its last segment keeps the run going, and changes nothing that is per time.
#[test]
fn goodput_and_utilisation_end_with_the_last_flow() {
    let [short, long] = ["1ms", "400ms"].map(|timeout| {
        let text = format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 3\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [transport]\nkind = \"tcp\"\ndelayed_ack_timeout = \"{timeout}\"\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h2\"\nsize = \"101360B\"\n"
        );
        let all = run(&text);
        let until = all["flows_until_ps"].as_u64().expect("a time");
        let goodput = (2 * 101_360 * 8) as f64 * 1e12 / until as f64;
        assert!((all["goodput_bps"].as_f64().expect("a rate") / goodput - 1.0).abs() < 1e-6);
        let port = &all["ports"][0];
        (until, all["goodput_bps"].clone(), port["utilisation"].clone(), port["port"].clone())
    });
    assert_eq!(short, long);
    let used = short.2.as_f64().expect("a share");
    assert!(used > 0.5 && used <= 1.0, "{used}");
}

/// A link's wire overhead is its own: a packet of 1040 IP bytes holds each of two links for 1040 + overhead bytes of time.
#[test]
fn wire_overhead_is_a_parameter_of_the_link() {
    for (key, overhead) in [("", 38), (", wire_overhead = \"100B\"", 100), (", wire_overhead = \"18B\"", 18)] {
        let text = format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"1us\"{key} }}\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\ntimestamps = false\nack_every = 1\nrto_initial = \"10ms\"\n\
             [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"1000B\" }}]\n"
        );
        let all = run(&text)["fct"][0].clone();
        assert_eq!(all["p50_ps"].as_u64(), Some(2 * (1_000_000 + (1040 + overhead) * 800)));
        assert_eq!(all["slowdown_mean"].as_f64(), Some(1.0), "the ideal knows of it");
    }
}

/// What the summary counts of mechanisms, and what the reference page says that there is, are the same.
#[test]
fn mechanisms_have_the_counters_that_are_declared() {
    let counted = |keys: &[&str]| {
        let tables: String = keys.iter().map(|key| format!("[switch.mechanisms.{key}]\n")).collect();
        let text = format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 9\n[switch]\nbuffer = {{ kind = \"static\", per_port = \"16 packets\" }}\n{tables}\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\ntrim_nack = true\ndrop_notification = true\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsize = \"200KB\"\n"
        );
        let scenario = Scenario::from_toml(&text, Path::new(".")).expect("a valid scenario");
        let mut world = world(&scenario, &Destination::Memory).expect("a world");
        while world.advance(100_000).expect("tables in memory") == Pause::Budget {}
        finish(&mut world).expect("tables in memory").0["mechanisms"].clone()
    };
    // One mechanism alone may put headers into frames.
    let runs: [&[&str]; 5] =
        [&["pdn", "rimm", "trimming"], &["dibs", "pabo", "pdn", "trimming"], &["int", "pfc"], &["vertigo"], &["rcm"]];
    let all = runs.map(counted);
    for group in fanin_sim::counters() {
        let counted = all.iter().find_map(|mechanisms| mechanisms[group.name].as_object()).expect(group.name);
        let mut there: Vec<&str> = counted.keys().map(String::as_str).collect();
        there.retain(|key| !["by_reason", "largest_queue"].contains(key));
        let mut declared: Vec<&str> = group.counters.iter().chain(group.peaks).map(|def| def.name).collect();
        there.sort_unstable();
        declared.sort_unstable();
        assert_eq!(there, declared);
    }
}
