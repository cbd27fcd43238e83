//! Ports and switches with settings of their own: each port does what its own settings say, whichever way it is simulated.

use fanin_scenario::Scenario;
use fanin_sim::{world, Destination, Kept, Pause, PortNow, World};
use std::path::Path;

fn ended(text: &str) -> World {
    let scenario = Scenario::from_toml(text, Path::new("."));
    let scenario = scenario.unwrap_or_else(|problems| panic!("{}", fanin_scenario::render(&problems, "scenario")));
    let mut world = world(&scenario, &Destination::Memory).expect("a world");
    while world.advance(100_000).expect("tables in memory") == Pause::Budget {}
    world
}

fn port<'a>(ports: &'a [PortNow], name: &str) -> &'a PortNow {
    ports.iter().find(|port| port.name == name).unwrap_or_else(|| panic!("no port {name}"))
}

/// Hosts at 1 Gb/s, 10 Gb/s between switches, K = 20 and 65 as in DCTCP §4. Two flows meet at `leaf1->h18`, and sixteen at
/// `leaf0->spine0`: DCTCP over unlimited buffers.
fn two_rates(telemetry: &str, ports: &str) -> String {
    // To all hosts of the other leaf but h18.
    let up = |i: u32| {
        let to = if i == 15 { 19 } else { 16 + (i + 3) % 16 };
        format!("{{ src = \"h{i}\", dst = \"h{to}\", size = \"100MB\" }}")
    };
    format!(
        r#"
        duration = "40ms"
        [topology]
        kind = "leaf_spine"
        leaves = 2
        hosts_per_leaf = 16
        spines = 1
        host_link = {{ rate = "1Gbps", delay = "1us" }}
        uplink = {{ rate = "10Gbps", delay = "1us" }}
        [switch]
        buffer = "unlimited"
        [[switch.except]]
        rate = "1Gbps"
        marking = {{ kind = "threshold", k = "20 packets" }}
        [[switch.except]]
        rate = "10Gbps"
        marking = {{ kind = "threshold", k = "65 packets" }}
        [transport]
        kind = "tcp"
        congestion_control = "dctcp"
        handshake = false
        ack_every = 1
        rto_min = "10ms"
        clock_granularity = "10us"
        [[traffic]]
        name = "across"
        kind = "incast"
        receiver = "h18"
        senders = ["h16", "h17"]
        size = "100MB"
        [[traffic]]
        name = "up"
        kind = "flows"
        flows = [{}]
        [engine]
        ports = "{ports}"
        [telemetry]
        {telemetry}
        "#,
        (0..16).map(up).collect::<Vec<_>>().join(", ")
    )
}

/// Each data packet is marked when it finds more than its port's K, and the queues of long DCTCP flows stay near it.
///
/// Source: DCTCP §3.1 (1) and §3.3: Q_max = K + N with N flows. Tolerance: none for marks; in the second half the mean queue
/// lies between K/2 and K + N, and no packet finds more than K + 2N.
#[test]
fn ports_of_two_rates_mark_at_two_thresholds() {
    let watched = [("leaf1->h18", 20, 2), ("leaf0->spine0", 65, 16)];
    let kept: Kept =
        ended(&two_rates("sample = \"off\"\nqueues = [\"leaf1->h18\", \"leaf0->spine0\"]", "auto")).into_kept().expect("tables");
    for (name, k, flows) in watched {
        let rows: Vec<_> = kept.queues.iter().filter(|row| row.port.to_string() == name && row.frame_bytes == 1518).collect();
        for row in &rows {
            assert_eq!(row.marked, row.queue_packets > k, "{name}: {row:?}");
        }
        let late: Vec<f64> =
            rows.iter().filter(|row| row.time_ps > 20_000_000_000).map(|row| f64::from(row.queue_packets)).collect();
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        let most = late.iter().copied().fold(0.0, f64::max);
        println!("{name}: K {k}, {} packets, mean queue {mean:.1}, most {most}", rows.len());
        let (k, flows) = (f64::from(k), f64::from(flows));
        assert!(late.len() > 1_000 && mean > k / 2.0 && mean < k + flows && most > k && most <= k + 2.0 * flows, "{name}");
    }
}

/// The same marks at the same ports when nothing is recorded, and when departures are events. Tolerance: none.
#[test]
fn thresholds_of_ports_do_not_depend_on_how_ports_are_simulated() {
    let run = |telemetry: &str, ports: &str| {
        let mut world = ended(&two_rates(telemetry, ports));
        let marks: Vec<(String, u64)> = world.ports_now().iter().map(|port| (port.name.clone(), port.marks)).collect();
        (marks, world.into_kept().expect("tables").fingerprint)
    };
    let plain = run("sample = \"off\"", "auto");
    assert_eq!(run("sample = \"off\"", "explicit"), plain);
    assert_eq!(run("sample = \"off\"\nqueues = [\"*\"]", "auto"), plain);
    let marks = |name: &str| plain.0.iter().find(|(port, _)| port == name).map(|(_, marks)| *marks);
    assert!(marks("leaf1->h18") > Some(100) && marks("leaf0->spine0") > Some(100), "{:?}", plain.0);
    assert_eq!(marks("leaf1->spine0"), Some(0));
}

/// A port with a buffer of its own holds that; the others have theirs.
#[test]
fn a_port_may_have_a_buffer_of_its_own() {
    for ports in ["auto", "explicit"] {
        let mut world = ended(&format!(
            "[topology]\nkind = \"racks\"\n[switch]\nbuffer = {{ kind = \"static\", per_port = \"100 packets\" }}\n\
             [[switch.except]]\nswitches = [\"tor2\"]\nbuffer = \"20 packets\"\n\
             [[switch.except]]\nports = [\"tor1->root\"]\nbuffer = \"30360B\"\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 200\n[engine]\nports = \"{ports}\"\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h9\"\nsenders = [\"h0..h8\"]\nsize = \"200KB\"\n"
        ));
        let all = world.ports_now();
        let most = |name: &str| port(&all, name).peak_bytes / 1518;
        assert_eq!(["tor0->root", "tor1->root", "tor2->root", "root->tor3"].map(most), [100, 20, 20, 100], "{ports}");
    }
}

/// Two hot ports of a shared buffer B, with α₁ and α₂: T_i = α_i·(B − Q₁ − Q₂) gives Q_i = α_i·B/(1 + α₁ + α₂).
///
/// Source: DT, with an α for each queue. Tolerance: a frame above, and two and the one that has just left below.
#[test]
fn ports_of_a_shared_buffer_have_an_alpha_each() {
    let sources: String = (0..6)
        .map(|i| {
            let (dst, size) = (6 + i % 2, 1472 * 600);
            format!("[[traffic]]\nkind = \"cbr\"\nsrc = \"h{i}\"\ndst = \"h{dst}\"\nrate = \"10Gbps\"\ncounts = \"wire\"\npacket = \"1472B\"\nsize = \"{size}B\"\n")
        })
        .collect();
    for alpha in [0.25, 2.0] {
        let mut world = ended(&format!(
            "duration = \"600us\"\n[topology]\nkind = \"single_switch\"\nhosts = 8\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = {{ kind = \"dynamic\", total = \"600KB\", alpha = 1.0 }}\n\
             [[switch.except]]\nports = [\"*->h7\"]\nalpha = {alpha}\n{sources}"
        ));
        for (name, own) in [("switch0->h6", 1.0), ("switch0->h7", alpha)] {
            let (theory, queue) = (600_000.0 * own / (2.0 + alpha), port(&world.ports_now(), name).queue_bytes as f64);
            println!("{name}, α 1 and {alpha}: theory {theory:.0} B, measured {queue} B");
            assert!(queue <= theory + 1518.0 && queue > theory - 3.0 * 1518.0, "{name}, α {alpha}: {queue} of {theory}");
        }
    }
}

/// Eight hosts of two leaves send to those of a third, DCTCP, buffers of 20 packets: the ports to the spine and the spine's port
/// to the third leaf are congested.
fn three_leaves(switch: &str, transport: &str) -> World {
    ended(&format!(
        r#"
        [topology]
        kind = "leaf_spine"
        leaves = 3
        hosts_per_leaf = 4
        spines = 1
        host_link = {{ rate = "10Gbps", delay = "1us" }}
        uplink = {{ rate = "10Gbps", delay = "1us" }}
        [switch]
        buffer = {{ kind = "static", per_port = "20 packets" }}
        marking = {{ kind = "threshold", k = "10 packets" }}
        {switch}
        [transport]
        kind = "tcp"
        congestion_control = "dctcp"
        handshake = false
        initial_window = 40
        rto_min = "1ms"
        rto_initial = "1ms"
        clock_granularity = "10us"
        {transport}
        [[traffic]]
        kind = "flows"
        flows = [{}]
        [[traffic]]
        name = "rack"
        kind = "incast"
        receiver = "h3"
        senders = ["h0", "h1", "h2"]
        size = "100KB"
        [telemetry]
        sample = "off"
        "#,
        (0..8)
            .map(|i| format!("{{ src = \"h{i}\", dst = \"h{}\", size = \"200KB\" }}", 8 + i % 4))
            .collect::<Vec<_>>()
            .join(", ")
    ))
}

/// Trimming at one tier: there packets are trimmed and not dropped for want of room, at the other they are dropped.
#[test]
fn trimming_at_one_tier_only() {
    let at = |tier: u8| {
        let world =
            three_leaves(&format!("[[switch.except]]\ntier = {tier}\n[switch.except.mechanisms.trimming]"), "trim_nack = true");
        let trimmed = world.counter("trimming", "trimmed");
        let kept = world.into_kept().expect("tables");
        assert!(kept.flows.iter().all(|flow| flow.finish_ps.is_some()), "all flows complete");
        let full = kept.drops.iter().filter(|drop| drop.reason.to_string() == "buffer_full");
        let (spine, leaf): (Vec<_>, Vec<_>) = full.partition(|drop| drop.port.to_string().starts_with("spine"));
        println!("trimming at tier {tier}: {trimmed} trimmed, {} dropped at leaves, {} at the spine", leaf.len(), spine.len());
        (trimmed, leaf.len(), spine.len())
    };
    let (trimmed, leaf, spine) = at(0);
    assert!(trimmed > 20 && leaf == 0 && spine > 20, "at leaves: {trimmed} trimmed, {leaf} and {spine} dropped");
    let (trimmed, leaf, spine) = at(1);
    assert!(trimmed > 20 && leaf > 20 && spine == 0, "at the spine: {trimmed} trimmed, {leaf} and {spine} dropped");
}

/// Switches notify of drops only where PDN runs, and a notification never goes to a switch without it: it is counted there and
/// then. raised = overflowed + next_hop_unaware + expired + lost + those that reach hosts.
#[test]
fn notifications_end_at_switches_without_pdn() {
    let counts = |switch: &str| {
        let world = three_leaves(switch, "drop_notification = true");
        let count = |name| world.counter("notifications", name);
        let signals = world.signals().notifications;
        let reached = signals.retransmitted
            + signals.redundant
            + signals.arrived
            + signals.unknown
            + signals.undefined
            + signals.ignored
            + world.after_end("notifications");
        let (raised, unaware) = (count("raised"), count("next_hop_unaware"));
        assert_eq!(raised, count("overflowed") + unaware + count("expired") + count("lost") + reached, "{switch}");
        println!("{switch:?}: {raised} raised, {unaware} not aware, {reached} at hosts, {} dropped", world.totals().dropped);
        (raised, unaware, reached, world.totals().dropped)
    };
    let (raised, unaware, reached, dropped) = counts("[switch.mechanisms.pdn]");
    assert!(raised == dropped && unaware == 0 && reached > 20, "everywhere: {raised} of {dropped}, {unaware}");
    // Leaves notify hosts of their own; the spine, which is on the way to all others, takes no notification.
    let (raised, unaware, reached, dropped) = counts("[switch.mechanisms.pdn]\n[[switch.except]]\ntier = 1\nmechanisms = {}");
    assert!(
        raised < dropped && reached > 20 && reached + unaware == raised,
        "at leaves: {raised} of {dropped}, {unaware} unaware"
    );
    // The spine drops packets of hosts behind leaves without PDN.
    let (raised, unaware, reached, dropped) = counts("[switch.mechanisms.pdn]\n[[switch.except]]\ntier = 0\nmechanisms = {}");
    assert!(raised < dropped && unaware == raised && raised > 20 && reached == 0, "at the spine: {raised} of {dropped}");
}
