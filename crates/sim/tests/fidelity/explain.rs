//! `fanin explain`: the parts of any flow's time add up to it, and say what a closed form or the scenario says.

use super::common::{property, run, Ran, WIRE};
use super::random::{classes, fifo, Random};
use fanin_analysis::explain::{explain, Explanation, Hop, Kind, Pause, Records, Segment};
use fanin_scenario::Scenario;
use proptest::prelude::*;
use std::path::Path;

/// Where the time of flow number `flow` went.
pub fn explained(ran: &Ran, flow: u32) -> Explanation {
    let row = ran.kept.flows.iter().find(|row| row.flow == flow).expect("a flow");
    let segments: Vec<Segment> = ran.kept.segments.iter().filter(|s| s.flow == flow).map(Segment::from).collect();
    let hops: Vec<Hop> = ran.kept.hops.iter().filter(|hop| hop.flow == flow).map(Hop::from).collect();
    let of_class = ran.kept.pauses.iter().filter(|pause| pause.class == row.class);
    let pauses: Vec<Pause> = of_class.map(Pause::from).collect();
    let (src, start_ps, finish_ps) = (row.src.to_string(), row.start_ps, row.finish_ps);
    let explanation = explain(&Records { src: &src, start_ps, finish_ps, segments: &segments, hops: &hops, pauses: &pauses });
    let mut at = start_ps;
    for step in &explanation.steps {
        assert!(step.from_ps == at && step.to_ps > at, "flow {flow}: {step:?} after {at}");
        at = step.to_ps;
    }
    assert_eq!(at, finish_ps.unwrap_or(at), "flow {flow}");
    let sum: u64 = explanation.parts.iter().map(|part| part.time_ps).sum();
    assert_eq!(sum, at - start_ps, "flow {flow}");
    explanation
}

pub fn time(explanation: &Explanation, kind: Kind) -> u64 {
    explanation.parts.iter().filter(|part| part.kind == kind).map(|part| part.time_ps).sum()
}

/// Everything that a random scenario's flows waited for is known.
fn nothing_is_unknown(random: &Random) -> Result<(), TestCaseError> {
    let text = format!("{}[telemetry]\nsample = \"off\"\nhosts = [\"*\"]\n", random.text);
    prop_assume!(Scenario::from_toml(&text, Path::new(".")).is_ok()); // not a combination without effect
    let ran = run(&text);
    for row in &ran.kept.flows {
        let explanation = explained(&ran, row.flow);
        let unknown = explanation.steps.iter().position(|step| step.kind == Kind::Unknown);
        let next = unknown.and_then(|i| explanation.steps.get(i + 1)).and_then(|step| step.packet);
        let packet = ran.kept.segments.iter().find(|s| Some(s.packet) == next);
        prop_assert!(unknown.is_none(), "flow {}: {unknown:?} before {packet:?}\n{:?}\n{text}", row.flow, explanation.steps);
    }
    Ok(())
}

pub fn config(cases: u32) -> ProptestConfig {
    property(cases, 20_26)
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn parts_add_up_at_fifo_ports(random in fifo()) {
        nothing_is_unknown(&random)?;
    }

    #[test]
    fn parts_add_up_with_classes(random in classes()) {
        nothing_is_unknown(&random)?;
    }

    #[test]
    fn parts_add_up_at_hosts_that_wait(random in fifo(), poll in any::<bool>(), noise in any::<bool>()) {
        let poll = if poll { "receive = \"napi\"\n" } else { "" };
        let noise = if noise { "noise = { kind = \"exponential\", mean = \"3us\" }\n" } else { "" };
        let text = random.text.replace("[host]\n", &format!("[host]\n{poll}{noise}"));
        nothing_is_unknown(&Random { text })?;
    }
}

/// A flow alone whose window never ends: its own bytes and the network are all there is, and as much as the idle network takes.
#[test]
fn a_flow_alone_takes_the_ideal() {
    for (host, bottleneck) in [("10Gbps", "10Gbps"), ("25Gbps", "10Gbps"), ("10Gbps", "25Gbps")] {
        let ran = run(&format!(
            r#"
            [topology]
            kind = "dumbbell"
            left = 1
            right = 1
            host_link = {{ rate = "{host}", delay = "1us" }}
            bottleneck = {{ rate = "{bottleneck}", delay = "3us" }}
            [transport]
            kind = "tcp"
            handshake = false
            initial_window = 100
            [[traffic]]
            kind = "flows"
            flows = [{{ src = "h0", dst = "h1", size = "144800B" }}]
            [telemetry]
            hosts = ["0"]
            "#
        ));
        let row = &ran.kept.flows[0];
        let explanation = explained(&ran, 0);
        assert_eq!(row.finish_ps.unwrap() - row.start_ps, row.ideal_ps);
        assert_eq!(time(&explanation, Kind::Serialisation) + time(&explanation, Kind::Path), row.ideal_ps, "{host}");
        assert_eq!(time(&explanation, Kind::Serialisation), 99 * WIRE * 800, "{host} {bottleneck}: 10 Gb/s is the slowest");
    }
}

/// A window of two segments: each further pair costs a round trip, which the closed form knows.
#[test]
fn a_small_window_costs_round_trips() {
    let ran = run(r#"
        [topology]
        kind = "single_switch"
        hosts = 2
        link = { rate = "10Gbps", delay = "50us" }
        [transport]
        kind = "tcp"
        handshake = true
        receive_window = { kind = "fixed", size = "2896B" }
        [[traffic]]
        kind = "flows"
        flows = [{ id = "slow", src = "h0", dst = "h1", size = "14480B" }]
        [telemetry]
        hosts = ["slow"]
        "#);
    let explanation = explained(&ran, 0);
    let window = explanation.parts.iter().find(|part| part.kind == Kind::ReceiveWindow).expect("the window");
    assert_eq!(window.times, 4, "{:?}", explanation.parts);
    let base = ran.kept.flows[0].base_rtt_ps;
    assert!(window.time_ps.abs_diff(4 * base) < base / 50, "{window:?} {base}");
    assert!(time(&explanation, Kind::Handshake) > 200_000_000, "two crossings of two links: {:?}", explanation.steps);
}

/// Forty servers, a buffer that holds few of their first windows: a flow whose tail is lost waits for the timer.
#[test]
fn a_lost_tail_is_a_timeout() {
    let ran = run(r#"
        [topology]
        kind = "single_switch"
        hosts = 41
        link = { rate = "10Gbps", delay = "5us" }
        [switch]
        buffer = { kind = "static", per_port = "100 packets" }
        [transport]
        kind = "tcp"
        handshake = false
        initial_window = 10
        ack_every = 1
        rto_min = "200ms"
        [[traffic]]
        kind = "incast"
        receiver = "h40"
        size = "30KB"
        [telemetry]
        hosts = ["h40"]
        "#);
    let timed_out: Vec<_> = ran.kept.flows.iter().filter(|row| row.finish_ps > Some(200_000_000_000)).collect();
    assert!(timed_out.len() > 3, "{}", timed_out.len());
    for row in timed_out {
        let explanation = explained(&ran, row.flow);
        let fct = row.finish_ps.unwrap() - row.start_ps;
        let rto = time(&explanation, Kind::Rto);
        assert!(rto >= 200_000_000_000 && rto < fct, "{row:?} {:?}", explanation.parts);
        let waited = &explanation.waited[0];
        let drop = ran.kept.drops.iter().find(|drop| drop.flow == row.flow && Some(drop.time_ps) == waited.dropped_ps);
        let drop = drop.expect("the drop that the timeout repaired");
        assert_eq!((waited.dropped_at.as_deref(), drop.port.to_string().as_str()), (Some("switch0->h40"), "switch0->h40"));
    }
    let soon = ran.kept.flows.iter().filter(|row| row.finish_ps < Some(100_000_000_000));
    let plain = soon.max_by_key(|row| row.finish_ps).expect("a flow without a timeout");
    let explanation = explained(&ran, plain.flow);
    assert!(explanation.parts[0].kind == Kind::Queue && explanation.parts[0].place == "switch0->h40", "{:?}", explanation.parts);
}

/// A request, and the data that answers it.
#[test]
fn a_request_comes_before_the_data() {
    let ran = run(r#"
        [topology]
        kind = "single_switch"
        hosts = 2
        link = { rate = "10Gbps", delay = "10us" }
        [transport]
        kind = "tcp"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", size = "1KB", request = "100B" }]
        [telemetry]
        hosts = ["*"]
        "#);
    let explanation = explained(&ran, 0);
    let kinds: Vec<Kind> = explanation.parts.iter().map(|part| part.kind).collect();
    assert_eq!(kinds, [Kind::Handshake, Kind::Path, Kind::Serialisation], "{:?}", explanation.steps);
    assert_eq!(explanation.end_ps - explanation.start_ps, ran.kept.flows[0].ideal_ps);
}

/// Datagrams leave by their schedule: the application decides.
#[test]
fn datagrams_wait_for_their_schedule() {
    let ran = run(r#"
        [topology]
        kind = "single_switch"
        hosts = 2
        link = { rate = "10Gbps", delay = "10us" }
        [[traffic]]
        kind = "cbr"
        src = "h0"
        dst = "h1"
        rate = "1Gbps"
        packet = "1000B"
        size = "100KB"
        [telemetry]
        hosts = ["h0"]
        "#);
    let explanation = explained(&ran, 0);
    assert_eq!(explanation.parts[0].kind, Kind::Application, "{:?}", explanation.parts);
    assert_eq!(time(&explanation, Kind::Unknown), 0);
}
