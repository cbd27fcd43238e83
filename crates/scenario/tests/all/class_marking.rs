//! What is said of marking by class, and of transports whose class is not marked.

use crate::common::edited;
use fanin_scenario::{render, Scenario};
use std::path::Path;

const SOUND: &str = r#"name = "x"
[topology]
kind = "single_switch"
hosts = 4
link = { rate = "100Gbps", delay = "1us" }
[switch]
buffer = "unlimited"
scheduling = { kind = "strict", classes = 2 }
mechanisms.pfc = { memory = "12MB", classes = [0] }
marking = { kind = "threshold", k = "65 packets" }
class_marking = [{ classes = [0], marking = { kind = "red", min = "12500B", max = "500KB", max_p = 0.01, weight = 1.0, gentle = false, hard_drop = false, drop_others = false, spacing = "geometric" } }]
[transports.rdma]
kind = "roce"
congestion_control = "dcqcn"
[transports.web]
kind = "tcp"
congestion_control = "dctcp"
[[traffic]]
kind = "permutation"
transport = "rdma"
size = "1MB"
[[traffic]]
kind = "permutation"
name = "web"
transport = "web"
class = 1
size = "1MB"
[telemetry]
sample = "off"
"#;

fn said(changes: &[(&str, &str)]) -> String {
    match Scenario::from_toml(&edited(SOUND, changes, ""), Path::new(".")) {
        Ok(scenario) => render(scenario.warnings(), "s.toml"),
        Err(problems) => render(&problems, "s.toml"),
    }
}

const AT: &str = "switch.class_marking";

#[test]
fn entries_that_contradict_each_other_or_have_no_queue() {
    assert_eq!(said(&[]), "");
    let error = |text: &str| format!("s.toml: {AT}{text}\n");
    assert_eq!(
        said(&[("classes = [0], marking", "classes = [], marking")]).lines().next(),
        Some(&*format!("s.toml: {AT}[0].classes, line 11: is empty: nothing is marked so; accepted: classes from 0 to 7"))
    );
    assert_eq!(
        said(&[("classes = [0], marking", "classes = [0, 0, 9], marking")]),
        error("[0].classes[1], line 11: 0 is there twice; accepted: each class once")
            + &error("[0].classes[2], line 11: 9 is no class; accepted: classes from 0 to 7")
            + &error("[0].classes, line 11: names class 9, which no port has a queue for: classes from 1 on share one; accepted: switch.scheduling with more classes, or only classes that there are")
    );
    let twice = "class_marking = [{ classes = [0], marking = \"none\" }, ";
    assert!(said(&[("class_marking = [", twice)])
        .contains(&error("[1].classes[0], line 11: 0 is in entry 0, too; accepted: each class once")));
    let cells = said(&[("kind = \"red\", min = \"12500B\", max = \"500KB\", max_p = 0.01, weight = 1.0, gentle = false, hard_drop = false, drop_others = false, spacing = \"geometric\"", "kind = \"threshold\", k = \"90 cells\"")]);
    assert!(
        cells.contains(&error(
            "[0].marking, line 11: compares queues in cells, which are counted for whole ports only; accepted: bytes or packets"
        )),
        "{cells}"
    );
    let one = said(&[("scheduling = { kind = \"strict\", classes = 2 }", ""), ("class = 1", "")]);
    assert!(one.contains(&error(", line 11: has no effect: ports have one queue for all classes; accepted: switch.scheduling with classes, for example { kind = \"strict\", classes = 2 }")), "{one}");
}

/// PFC asks about its own classes: TCP's may be dropped from.
#[test]
fn lossless_classes_are_judged_by_their_own_marking() {
    let red = |more: &str| format!("marking = {{ kind = \"red\", min = \"30 packets\", max = \"90 packets\"{more} }}\nclass");
    let port = ("marking = { kind = \"threshold\", k = \"65 packets\" }\nclass", &*red(", hard_drop = false"));
    assert_eq!(said(&[port]), "", "it drops what is not ECN-capable in class 1");
    let drops = said(&[("drop_others = false", "drop_others = true")]);
    assert!(
        drops.contains("switch.mechanisms.pfc, line 9: does not keep marking from dropping packets of lossless classes"),
        "{drops}"
    );
}

/// A curve in proportion to the rate for controls that want one, a step for the others.
#[test]
fn transports_in_classes_without_marks_are_warned_of_with_an_example_that_fits() {
    let red = "{ kind = \"red\", min = \"12500B\", max = \"500KB\", max_p = 0.01, weight = 1.0, gentle = false, hard_drop = false, drop_others = false, spacing = \"geometric\" }";
    let marking = format!("marking = {red}");
    assert_eq!(
        said(&[(&marking, "marking = \"none\"")]),
        format!("s.toml: warning: transports.rdma, line 12: uses ECN in class 0, and no switch marks that; set a switch.class_marking entry for class 0, for example {red}\n")
    );
    assert_eq!(
        said(&[("marking = { kind = \"threshold\", k = \"65 packets\" }\nclass", "class")]),
        "s.toml: warning: transports.web, line 14: uses ECN in class 1, and no switch marks that; set a switch.class_marking entry for class 1, for example { kind = \"threshold\", k = \"65 packets\" }\n"
    );
    let list = format!("class_marking = [{{ classes = [0], {marking} }}]\n");
    let none = said(&[("marking = { kind = \"threshold\", k = \"65 packets\" }\nclass", "class"), (&list, "")]);
    assert!(
        none.contains(&format!(
            "transports.rdma, line 10: uses ECN, and no switch marks; set switch.marking, for example {red}\n"
        )),
        "{none}"
    );
}

/// A marking of whole ports by which no queue is marked has no effect; one that some port goes by, has.
#[test]
fn entries_for_all_queues_leave_the_marking_of_ports_without_effect() {
    let message = |at: &str, line: u32, kind: &str| {
        format!("s.toml: {at}.kind, line {line}: \"{kind}\" has no effect: switch.class_marking has an entry for each queue of its ports; accepted: no marking, or a class without an entry\n")
    };
    let all = ("classes = [0], marking", "classes = [0, 1], marking");
    assert_eq!(said(&[all]), message("switch.marking", 10, "threshold"));
    assert_eq!(said(&[all, ("marking = { kind = \"threshold\", k = \"65 packets\" }\n", "")]), "");
    let except = (
        "[transports.rdma]",
        "[[switch.except]]\nports = [\"switch0->h1\"]\nmarking = { kind = \"threshold\", k = \"20 packets\" }\n[transports.rdma]",
    );
    assert_eq!(said(&[except]), "");
    assert_eq!(
        said(&[all, except]),
        message("switch.marking", 10, "threshold") + &message("switch.except[0].marking", 14, "threshold")
    );
    // At a port with one queue entries change nothing.
    let fifo = ("[transports.rdma]", "[[switch.except]]\nports = [\"switch0->h1\"]\nscheduling = \"fifo\"\n[transports.rdma]");
    let of_fifo = said(&[all, fifo]);
    assert!(!of_fifo.contains("has no effect"), "{of_fifo}");
}
