//! RoCEv2 in a network: completion as the closed form has it, nothing lost where pauses are, repair where they are not.

use crate::common::*;
use fanin_telemetry::FlowRow;

fn star(hosts: u32, more: &str) -> String {
    format!(
        "[topology]\nkind = \"single_switch\"\nhosts = {hosts}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[telemetry]\nsample = \"off\"\n{more}\n"
    )
}

fn flow(src: u32, dst: u32, size: &str) -> String {
    format!("{{ src = \"h{src}\", dst = \"h{dst}\", size = \"{size}\" }}")
}

fn flows(all: &[String]) -> String {
    format!("[[traffic]]\nkind = \"flows\"\nflows = [{}]\n", all.join(", "))
}

fn fct(flow: &FlowRow) -> u64 {
    flow.finish_ps.expect("complete") - flow.start_ps
}

const PFC: &str = "[switch]\nbuffer = \"unlimited\"\nmechanisms.pfc = { memory = \"4MB\", classes = [0] }\n";

/// Alone, a flow takes what its packets take on the wire.
#[test]
fn a_lone_flow_takes_its_ideal_time() {
    for (size, recovery) in [("4B", "go_back_n"), ("1MB", "go_back_n"), ("1MB", "selective_repeat"), ("10MB", "go_back_n")] {
        let text =
            star(2, &format!("[transport]\nkind = \"roce\"\nrecovery = \"{recovery}\"\n{PFC}{}", flows(&[flow(0, 1, size)])));
        let ran = run(&text);
        let flow = &ran.kept.flows[0];
        assert_eq!(
            (flow.status.to_string().as_str(), flow.retransmits, flow.transport.to_string().as_str()),
            ("complete", 0, "default")
        );
        assert_eq!(fct(flow), flow.ideal_ps, "{size} {recovery}");
        assert_eq!(flow.acked_ps.expect("acked") - flow.finish_ps.expect("complete"), 2_000_000 + 2 * (66 + 20) * 80);
    }
}

/// Sixteen at line rate into one port: pauses keep all, and each gets its share.
#[test]
fn an_incast_over_pauses_loses_nothing() {
    let all: Vec<String> = (0..16).map(|h| flow(h, 16, "1MB")).collect();
    let ran = run(&star(17, &format!("[transport]\nkind = \"roce\"\n{PFC}{}", flows(&all))));
    assert_eq!(ran.totals.dropped, 0);
    assert!(ran.kept.flows.iter().all(|f| f.status.to_string() == "complete" && f.retransmits == 0 && f.timeouts == 0));
    let last = ran.kept.flows.iter().map(fct).max().unwrap() as f64;
    let busy = 16.0 * 977.0 * (1_024.0 + 24.0 + 38.0 + 20.0) * 80.0;
    assert!(last < 1.02 * busy + 5e6, "{last} against {busy}");
}
