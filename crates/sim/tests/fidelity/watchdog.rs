//! Runs that cannot end well end with a message that says who waits for what.

use crate::common::*;
use fanin_sim::Pause;
use fanin_units::Time;

/// A dead path: a port without buffer that datagrams at line rate keep busy.
const DEAD: &str = "[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = { rate = \"1Gbps\", delay = \"1us\" }\n\
    [switch]\nbuffer = { kind = \"static\", per_port = \"0 packets\" }\n\
    [transport]\nkind = \"tcp\"\nhandshake = false\nrto_initial = \"1ms\"\nrto_min = \"1ms\"\nmax_retries = 3\n\
    [[traffic]]\nkind = \"cbr\"\nname = \"noise\"\nsrc = \"h0\"\ndst = \"h2\"\nrate = \"1Gbps\"\ncounts = \"wire\"\nstop = \"200ms\"\n";

/// A flow that waits for one that was aborted never starts: the run says which, and for what, instead of ending as if all
/// were well.
#[test]
fn a_flow_that_waits_for_an_aborted_one_is_named() {
    let (message, world) = run_stuck(
        &format!(
            "{DEAD}[[traffic]]\nkind = \"flows\"\nname = \"jobs\"\nstart = \"10us\"\nflows = [{{ id = \"first\", src = \"h1\", dst = \"h2\", size = \"10KB\" }}, \
             {{ id = \"second\", src = \"h1\", dst = \"h3\", size = \"10KB\", after = [\"first\"] }}]\n"
        ),
        1 << 20,
    );
    println!("{message}");
    assert!(message.contains("second") && message.contains("first") && message.contains("waits for"), "{message}");
    let rows = world.into_kept().expect("tables in memory").flows;
    let first = rows.iter().find(|f| f.id.as_ref().is_some_and(|id| id.to_string() == "first")).expect("a row");
    assert_eq!((first.status.to_string().as_str(), first.timeouts), ("aborted", 4));
    assert_eq!(rows.len(), 2, "the second has none: it never started");
}

/// Aborted flows end a run: nobody waits.
#[test]
fn a_dead_path_ends_the_run_and_not_the_patience() {
    let ran = run(&format!("{DEAD}[[traffic]]\nkind = \"flows\"\nname = \"victim\"\nstart = \"10us\"\nflows = [{{ src = \"h1\", dst = \"h2\", size = \"10KB\" }}]\n"));
    let status: Vec<String> = ran.kept.flows.iter().map(|f| f.status.to_string()).collect();
    assert_eq!(status, ["aborted", "complete"]);
}

/// `max_events` ends the run there, whatever the budget of a call, with the flows under way and what they wait for.
#[test]
fn max_events_is_a_limit() {
    for budget in [1, 7, 1 << 20] {
        let (message, world) = run_stuck(
            "[topology]\nkind = \"single_switch\"\nhosts = 4\n[engine]\nmax_events = 500\n[[traffic]]\nkind = \"permutation\"\nsize = \"10MB\"\n",
            budget,
        );
        assert_eq!(world.totals().events, 500, "budget {budget}");
        assert!(
            message.contains("max_events (500)")
                && message.contains("4 flows wait")
                && message.contains("flow 0 (h0 to h")
                && message.contains("in flight"),
            "{message}"
        );
    }
}

/// Events without end at one instant are taken for a hang after `stall_events`; time that moves on is not.
#[test]
fn time_that_stands_still_is_noticed() {
    let text = |jitter: &str| {
        format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 4\n[engine]\nstall_events = 1000\n[transport]\nkind = \"tcp\"\nhandshake = false\nrto_initial = \"1ms\"\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h3\"\nflows_per_sender = 1000\nsize = \"100B\"\njitter = \"{jitter}\"\n"
        )
    };
    let (message, world) = run_stuck(&text("0ps"), 100);
    println!("{}", &message[..200]);
    assert!(message.contains("simulated time stands still at 0") && message.contains("flow 0"), "{message}");
    assert!((1000..1300).contains(&world.totals().events), "{}", world.totals().events);
    let mut world = make(&text("1ms"));
    while world.advance(100).expect("tables in memory") == Pause::Budget {}
    assert_eq!(world.totals().ended, 3000);
}

/// A queue can be counted up to 4 GiB. One that reaches it ends the run with the port's name, at both kinds of ports.
#[test]
fn a_queue_of_4_gib_ends_the_run() {
    for ports in ["auto", "explicit"] {
        let (message, world) = run_stuck(
            &format!(
                r#"
                [topology]
                kind = "dumbbell"
                left = 1
                right = 1
                host_link = {{ rate = "400Gbps", delay = "1us" }}
                bottleneck = {{ rate = "1Mbps", delay = "1us" }}
                [switch]
                buffer = "unlimited"
                [engine]
                ports = "{ports}"
                [[traffic]]
                kind = "cbr"
                src = "h0"
                dst = "h1"
                rate = "400Gbps"
                packet = "8972B"
                size = "4400MB"
                [telemetry]
                sample = "off"
                "#
            ),
            1 << 20,
        );
        assert!(message.starts_with("the queue of port left->right has reached 4 GiB"), "{message}");
        assert!(world.now() > Time::from_ps(80_000_000_000) && world.now() < Time::from_ps(90_000_000_000), "{}", world.now());
    }
}
