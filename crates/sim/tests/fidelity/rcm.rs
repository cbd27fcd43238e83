//! RCM in a network: lossless stays lossless, nothing is stranded or reordered by windows, regions dissolve, and victims go on.

use crate::common::*;
use crate::rivals::counts;
use fanin_sim::World;
use std::collections::BTreeMap;

/// Datagrams of 1 kB at so many Gb/s.
fn cbr(name: &str, src: &str, dst: &str, gbps: u32, more: &str) -> String {
    format!(
        "[[traffic]]\nkind = \"cbr\"\nname = \"{name}\"\nsrc = \"{src}\"\ndst = \"{dst}\"\nrate = \"{gbps}Gbps\"\ncounts = \"wire\"\npacket = \"1000B\"\n{more}\n"
    )
}

/// Two leaves of eight hosts, links of 100 Gb/s everywhere.
fn fabric(spines: u32, rcm: &str, more: &str) -> String {
    format!(
        r#"
        duration = "2ms"
        [topology]
        kind = "leaf_spine"
        leaves = 2
        hosts_per_leaf = 8
        spines = {spines}
        host_link = {{ rate = "100Gbps", delay = "500ns" }}
        uplink = {{ rate = "100Gbps", delay = "500ns" }}
        [switch]
        latency = "300ns"
        buffer = "unlimited"
        mechanisms.pfc = {{ memory = "4MB", classes = [0], xoff = {{ kind = "static", bytes = "100KB" }} }}
        {rcm}
        {more}
        [telemetry]
        sample = "off"
        hosts = ["*"]
        "#
    )
}

struct Outcome {
    ran: Ran,
    rcm: BTreeMap<&'static str, u64>,
    pfc: BTreeMap<&'static str, u64>,
}

fn play(text: &str) -> Outcome {
    let mut world: World = run_in_steps(text, |world| {
        let (ports, t) = (world.ports_now(), world.totals());
        assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
        let exist = ports.iter().map(|p| p.on_wire + p.queue_packets).sum::<u64>() + world.held();
        assert_eq!(exist, world.in_flight() + world.messages_on_the_way() - world.control_frames_waiting());
    });
    let (rcm, pfc) = (counts(&world, "rcm"), counts(&world, "pfc"));
    let (summary, _) = fanin_sim::finish(&mut world).expect("tables");
    println!("{}", summary["mechanisms"]["rcm"]);
    let _ = &summary;
    let (ports, totals, now) = (world.ports_now(), world.totals(), world.now());
    Outcome { ran: Ran { kept: world.into_kept().expect("tables"), ports, totals, now }, rcm, pfc }
}

#[test]
fn smoke() {
    for rcm in ["", "mechanisms.rcm = {}", "mechanisms.rcm = { when_idle = \"wait\" }"] {
        let mut traffic = String::new();
        for i in 0..4 {
            traffic += &cbr(&format!("s{i}"), &format!("h{i}"), "h8", 60, "size = \"2MB\"");
        }
        traffic += &cbr("victim", "h4", "h9", 50, "size = \"2MB\"");
        let ran = play(&fabric(1, rcm, &traffic));
        println!("{rcm}: {:?} {:?}", ran.rcm, ran.pfc);
        for f in &ran.ran.kept.flows {
            println!("{} {:?} {}", f.group, f.finish_ps.map(|t| (t - f.start_ps) / 1_000_000), f.reordered);
        }
        println!("{} states, dropped {}, now {}", ran.ran.kept.states.len(), ran.ran.totals.dropped, ran.ran.now);
        for row in ran.ran.kept.states.iter().take(40) {
            println!("{row:?}");
        }
    }
}
