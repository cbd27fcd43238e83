//! Random lossless fabrics: every control that queue pairs have, telemetry in their frames, jobs of collective operations, TCP beside.

use crate::common::*;
use crate::pfc::balance;
use fanin_params::{Param, Schema};
use fanin_transport::CongestionControl;
use proptest::prelude::*;
use proptest::sample::select;

/// A control of queue pairs, and what switches have for it.
fn control() -> impl Strategy<Value = (String, &'static str)> {
    let kinds = [("none", false), ("dcqcn", false), ("timely", false), ("swift", false), ("theta_powertcp", false)];
    let with_telemetry = [("hpcc", true), ("powertcp", true), ("hpcc", true), ("powertcp", true)];
    select([&kinds[..], &with_telemetry[..]].concat())
        .prop_map(|(kind, int)| (format!("congestion_control = \"{kind}\"\n"), if int { "mechanisms.int = {}\n" } else { "" }))
}

/// Paths that go up and down again: no circle of pauses.
fn topology() -> impl Strategy<Value = String> {
    let kinds = select(vec![
        "kind = \"single_switch\"\nhosts = 8\nlink = { rate = \"RATE\", delay = \"DELAY\" }",
        "kind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\nhost_link = { rate = \"25Gbps\", delay = \"500ns\" }\nuplink = { rate = \"RATE\", delay = \"DELAY\" }",
        "kind = \"fat_tree\"\nk = 4\nlink = { rate = \"RATE\", delay = \"DELAY\" }",
    ]);
    let rate = select(vec!["10Gbps", "25Gbps", "40Gbps", "100Gbps"]);
    (kinds, rate, select(vec!["0ps", "700ns", "3us"]))
        .prop_map(|(text, rate, delay)| text.replace("RATE", rate).replace("DELAY", delay))
}

fn switch() -> impl Strategy<Value = String> {
    let scheduling = select(vec!["{ kind = \"strict\", classes = 2 }", "{ kind = \"drr\", quanta = [\"1518B\", \"3036B\"] }"]);
    let xoff = select(vec![
        "{ kind = \"static\", bytes = \"5KB\" }",
        "{ kind = \"static\", bytes = \"20KB\" }",
        "{ kind = \"dynamic\", alpha = 0.01 }",
        "{ kind = \"dynamic\", alpha = 0.5 }",
    ]);
    let marking = select(vec![
        "{ kind = \"threshold\", k = \"20KB\" }",
        "{ kind = \"red\", min = \"5KB\", max = \"100KB\", max_p = 0.1, weight = 1.0, gentle = false, hard_drop = false, drop_others = false }",
    ]);
    let lossy = select(vec!["", ", lossy = { memory = \"300KB\", alpha = 1.0 }"]);
    (scheduling, xoff, marking, lossy, select(vec!["0ps", "800ns"])).prop_map(|(scheduling, xoff, marking, lossy, response)| {
        format!(
            "latency = \"300ns\"\nbuffer = \"unlimited\"\nscheduling = {scheduling}\nmarking = {marking}\n\
             mechanisms.pfc = {{ memory = \"2MB\", classes = [0], xoff = {xoff}, response = \"{response}\", max_frame = \"4300B\"{lossy} }}\n"
        )
    })
}

fn transports() -> impl Strategy<Value = String> {
    let Schema::Choice(choice) = CongestionControl::schema() else { panic!("no choice") };
    let tcp: Vec<&str> = choice.variants.iter().map(|variant| variant.kind).collect();
    let recovery = select(vec!["\"go_back_n\"", "\"selective_repeat\""]);
    (control(), recovery, select(vec![512_u32, 1_024, 4_096]), select(tcp)).prop_map(|((control, int), recovery, mtu, tcp)| {
        format!(
            "{int}[transports.rdma]\nkind = \"roce\"\nmtu = {mtu}\nrecovery = {recovery}\n{control}\
             [transports.web]\nkind = \"tcp\"\ncongestion_control = \"{tcp}\"\nhandshake = false\nrto_min = \"500us\"\nrto_initial = \"500us\"\n"
        )
    })
}

fn traffic() -> impl Strategy<Value = String> {
    let job = select(vec![
        "{ kind = \"all_reduce\", size = \"90KB\", channels = 2, message = \"2KB\" }",
        "{ kind = \"all_reduce\", algorithm = \"double_tree\", size = \"40KB\", work = \"300ns\" }",
        "{ kind = \"all_to_all\", size = \"120KB\" }, { kind = \"reduce_scatter\", size = \"30KB\" }",
        "{ kind = \"all_to_all\", size = \"60KB\", staggered = true }, { kind = \"all_gather\", size = \"30KB\", compute = \"2us\" }",
    ]);
    let flow = (0..8_u32, 0..8_u32, 1_u64..150_000, 0..40_u32, any::<bool>());
    (prop::option::of(job), prop::collection::vec(flow, 1..9), 20_000_u64..200_000).prop_map(|(job, flows, incast)| {
        let job = job.map_or(String::new(), |operations| {
            format!("[[traffic]]\nkind = \"collective\"\nname = \"job\"\ntransport = \"rdma\"\nranks = [\"h0..h7\"]\noperations = [{operations}]\n")
        });
        let mut lists = [Vec::new(), Vec::new()];
        for (src, dst, size, at, tcp) in flows {
            let dst = if src == dst { (dst + 1) % 8 } else { dst };
            lists[usize::from(tcp)].push(format!("{{ src = \"h{src}\", dst = \"h{dst}\", size = \"{size}B\", start = \"{at}us\" }}"));
        }
        let list = |class: usize| {
            let name = ["rdma", "web"][class];
            let head = format!("[[traffic]]\nkind = \"flows\"\nname = \"{name}\"\ntransport = \"{name}\"\nclass = {class}\n");
            if lists[class].is_empty() { String::new() } else { format!("{head}flows = [{}]\n", lists[class].join(", ")) }
        };
        let incast = |class: usize| {
            let name = ["rdma", "web"][class];
            format!("[[traffic]]\nkind = \"incast\"\nname = \"incast-{name}\"\nreceiver = \"h7\"\nsenders = [\"h0..h6\"]\nsize = \"{incast}B\"\ntransport = \"{name}\"\nclass = {class}\n")
        };
        format!("{job}{}{}{}{}", list(0), list(1), incast(0), incast(1))
    })
}

proptest! {
    #![proptest_config(property(60, 20_31))]

    /// With the headroom that links need nothing of a lossless class is ever dropped, under any control, and pauses end: all bytes arrive,
    /// jobs complete. Packets are somewhere at any time, a run is the same again, and so it is where all departures are events.
    #[test]
    fn nothing_is_lost_under_any_control(
        topology in topology(),
        switch in switch(),
        transports in transports(),
        traffic in traffic(),
        seed in 1..1_000_u32,
    ) {
        let text = |ports: &str| format!("seed = {seed}\n[engine]\nports = \"{ports}\"\n[topology]\n{topology}\n[telemetry]\nsample = \"off\"\n[switch]\n{switch}{transports}{traffic}");
        let world = run_in_steps(&text("auto"), balance);
        let [xoff, xon] = ["xoff", "xon"].map(|name| world.counter("pfc", name));
        let ran = finish(world);
        let class = |flow: u32| ran.kept.flows.iter().find(|f| f.flow == flow).map(|f| f.class);
        prop_assert!(ran.kept.drops.iter().all(|drop| class(drop.flow) == Some(1)), "{:?}\n{}", ran.kept.drops, text("auto"));
        prop_assert_eq!(xoff, xon);
        println!("{xoff} pauses, {} dropped of other classes", ran.kept.drops.len());
        for flow in &ran.kept.flows {
            prop_assert_eq!((flow.status.to_string(), flow.delivered_bytes), ("complete".to_string(), flow.size_bytes), "{}", text("auto"));
            prop_assert!(flow.class == 1 || flow.retransmits == 0 || flow.timeouts > 0);
        }
        prop_assert!(ran.kept.collectives.iter().all(|row| row.finish_ps.is_some()));
        prop_assert_eq!(&ran, &run(&text("auto")));
        prop_assert_eq!(ran.outcome(), run(&text("explicit")).outcome());
    }
}
