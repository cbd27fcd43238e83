//! RoCEv2 in a network: completion as the closed form has it, nothing lost where pauses are, repair where they are not.

use crate::common::*;
use fanin_analysis::explain::Kind;
use fanin_telemetry::{FlowRow, SegmentRow};
use fanin_units::{Span, Time};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;

pub fn star(hosts: u32, more: &str) -> String {
    format!(
        "[topology]\nkind = \"single_switch\"\nhosts = {hosts}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[telemetry]\nsample = \"off\"\n{more}\n"
    )
}

pub fn flow(src: u32, dst: u32, size: &str) -> String {
    format!("{{ src = \"h{src}\", dst = \"h{dst}\", size = \"{size}\" }}")
}

pub fn flows(all: &[String]) -> String {
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

const LOSSY: &str = "[switch]\nbuffer = { kind = \"static\", per_port = \"150KB\" }\n";

/// Eight into one port of 150 KB: both kinds of repair bring all, and selective repeat with a window of one bandwidth-delay product sends
/// far less again.
#[test]
fn a_lossy_class_costs_go_back_n_far_more() {
    let all: Vec<String> = (0..8).map(|h| flow(h, 8, "500KB")).collect();
    let transport = |rest: &str| format!("[transport]\nkind = \"roce\"\n{rest}\n{LOSSY}{}", flows(&all));
    let back = run(&star(9, &transport("recovery = { kind = \"go_back_n\", ack_timeout = 6 }")));
    let repeat = run(&star(9, &transport("recovery = \"selective_repeat\"\nwindow = \"bdp\"")));
    let sums = |ran: &Ran| {
        assert!(ran.kept.flows.iter().all(|f| f.status.to_string() == "complete" && f.delivered_bytes == 500_000));
        assert!(ran.totals.dropped > 0);
        (ran.kept.flows.iter().map(|f| f.retransmits).sum::<u64>(), ran.kept.flows.iter().map(fct).max().unwrap())
    };
    let ((again_back, last_back), (again, last)) = (sums(&back), sums(&repeat));
    println!("go-back-N: {again_back} packets again, {last_back} ps; selective repeat: {again}, {last} ps");
    assert_eq!(again, repeat.totals.dropped, "nothing but what was lost");
    assert!(again_back > 3 * again && last_back > last, "{again_back} {again} {last_back} {last}");
}

/// The second half of 100 ms.
#[derive(Debug)]
pub struct Steady {
    /// Mean queue \[B\] by samples.
    pub queue: f64,
    /// The least and the largest rate over the mean, and the share of the line in use.
    pub least: f64,
    pub most: f64,
    pub used: f64,
    /// Of the first flow \[s\].
    base_rtt: f64,
    pub dropped: u64,
}

/// `n` endless flows of as many hosts, or of forty, to another.
pub fn steady(transport: &str, switch: &str, rate: &str, n: u32) -> Steady {
    let senders = n.min(40);
    let all: Vec<String> = (0..n).map(|h| flow(h % senders, senders, "1GB")).collect();
    let text = format!(
        "duration = \"100ms\"\n[topology]\nkind = \"single_switch\"\nhosts = {}\nlink = {{ rate = \"{rate}\", delay = \"1us\" }}\n[telemetry]\nsample = \"10us\"\n[transport]\nkind = \"roce\"\n{transport}\n[switch]\nbuffer = \"unlimited\"\n{switch}\n{}",
        senders + 1,
        flows(&all)
    );
    let mut world = make(&text);
    let port = format!("switch0->h{senders}");
    let received = |world: &fanin_sim::World| (0..n).map(|i| world.received(i).expect("open")).collect::<Vec<u64>>();
    let sent = |world: &mut fanin_sim::World| world.ports_now().iter().find(|p| p.name == port).expect("a port").clone();
    advance_to(&mut world, Time::ZERO + Span::from_ms(50));
    let (before, port_before) = (received(&world), sent(&mut world));
    advance_to(&mut world, Time::ZERO + Span::from_ms(100));
    let rates: Vec<f64> = received(&world).iter().zip(before).map(|(after, before)| (after - before) as f64).collect();
    let now = sent(&mut world);
    let wire = (now.tx_bytes - port_before.tx_bytes + 20 * (now.tx_packets - port_before.tx_packets)) as f64;
    let gbps: f64 = rate.trim_end_matches("Gbps").parse().expect("a rate");
    let ran = finish(world);
    let fair = rates.iter().sum::<f64>() / f64::from(n);
    let late = ran.kept.ports.iter().filter(|row| row.port.to_string() == port && row.time_ps > 50_000_000_000);
    Steady {
        // Rows that are not there are zeros.
        queue: late.map(|row| row.queue_bytes as f64).sum::<f64>() / 5_000.0,
        least: rates.iter().copied().fold(f64::MAX, f64::min) / fair,
        most: rates.iter().copied().fold(0.0, f64::max) / fair,
        used: wire * 8.0 / (gbps * 1e9 * 0.05),
        base_rtt: ran.kept.flows[0].base_rtt_ps as f64 / SECOND,
        dropped: ran.totals.dropped,
    }
}

/// Swift's delay is its target, which grows as windows shrink: T = base + ħ·hops + a/√w − a/√max, with the w that fills the path for T.
#[test]
fn swift_keeps_its_target() {
    for (n, increase, first, least) in [(4, 0.2, 8.0, 0.95), (32, 0.02, 1.5, 0.8), (400, 0.01, 0.25, 0.65)] {
        let control = format!("congestion_control = {{ kind = \"swift\", increase = {increase}, initial_window = {first} }}");
        let ran = steady(&control, "", "10Gbps", n);
        let (range, low, high) = (100e-6, libm::sqrt(0.1), libm::sqrt(100.0));
        let a = range / (1.0 / low - 1.0 / high);
        let mut target: f64 = 50e-6;
        for _ in 0..200 {
            let window = 10e9 / 8.0 * target / 1_106.0 / f64::from(n);
            target = 23e-6 + (a / libm::sqrt(window) - a / high).clamp(0.0, range);
        }
        let delay = ran.base_rtt + ran.queue * (1_106.0 / 1_086.0) * 8.0 / 10e9;
        println!("Swift, {n:3} flows: delay {:.1} us, target {:.1} us; {ran:?}", delay * 1e6, target * 1e6);
        // The smaller the windows, the more the queue varies, and a window falls faster than it rises: the target is a bound then.
        assert!((least..1.05).contains(&(delay / target)), "{n}: {delay} against {target}");
        assert!(ran.used > 0.95, "{ran:?}");
    }
}

/// TIMELY keeps the line busy and RTTs below its upper threshold.
#[test]
fn timely_keeps_rtts_below_its_threshold() {
    for n in [2, 10] {
        let control = format!("{{ kind = \"timely\", initial_rate = \"{}Mbps\", min_rtt = \"20us\" }}", 8_000 / n);
        let ran = steady(&format!("congestion_control = {control}"), "", "10Gbps", n);
        let delay = ran.base_rtt + ran.queue * 8.0 / 10e9;
        println!("TIMELY, {n:2} flows: delay {:.1} us; {ran:?}", delay * 1e6);
        assert!((ran.base_rtt..500e-6).contains(&delay) && ran.used > 0.9 && ran.dropped == 0, "{n}: {delay} {ran:?}");
    }
}

/// TCP and RoCEv2 in one network: the class of RoCEv2 is paused and loses nothing, TCP's is dropped from and repairs.
#[test]
fn tcp_and_roce_share_a_fabric() {
    let entry = |transport: &str, class: u8, size: &str| {
        format!("[[traffic]]\nkind = \"incast\"\nname = \"{transport}\"\nreceiver = \"h8\"\nsize = \"{size}\"\ntransport = \"{transport}\"\nclass = {class}\n")
    };
    let switch = "[switch]\nbuffer = \"unlimited\"\nscheduling = { kind = \"strict\", classes = 2 }\nmechanisms.pfc = { memory = \"2MB\", classes = [0] }\n";
    let transports = "[transports.rdma]\nkind = \"roce\"\n[transports.web]\nkind = \"tcp\"\nrto_min = \"1ms\"\n";
    let text = star(9, &format!("{switch}{transports}{}{}", entry("rdma", 0, "4MB"), entry("web", 1, "4MB")));
    let ran = run(&text);
    let of = |name: &'static str| ran.kept.flows.iter().filter(move |f| f.transport.to_string() == name);
    assert_eq!((of("rdma").count(), of("web").count()), (8, 8));
    assert!(ran.kept.flows.iter().all(|f| f.status.to_string() == "complete" && f.delivered_bytes == f.size_bytes));
    let classes = |flow: u32| ran.kept.flows.iter().find(|f| f.flow == flow).map(|f| f.class);
    assert!(!ran.kept.drops.is_empty() && ran.kept.drops.iter().all(|drop| classes(drop.flow) == Some(1)), "only TCP's");
    assert!(of("rdma").all(|f| f.retransmits == 0) && of("web").any(|f| f.retransmits > 0));
}

/// What followed queue pairs send is named, and places in the stream are those of bytes.
#[test]
fn followed_queue_pairs_name_their_packets() {
    let text = star(5, "hosts = [\"*\"]\n[transport]\nkind = \"roce\"\ncongestion_control = \"dcqcn\"\nrecovery = { kind = \"go_back_n\", ack_timeout = 6 }\n[switch]\nmarking = { kind = \"threshold\", k = \"20KB\" }\nbuffer = { kind = \"static\", per_port = \"60KB\" }\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h4\"\nsize = \"200KB\"\n");
    let ran = run(&text);
    let kinds: std::collections::BTreeSet<String> = ran.kept.segments.iter().map(|s| s.kind.to_string()).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["ack", "cnp", "data", "nack"]);
    for flow in &ran.kept.flows {
        let sent: Vec<_> = ran.kept.segments.iter().filter(|s| s.flow == flow.flow && s.kind.to_string() == "data").collect();
        assert_eq!(sent.len() as u64, flow.packets_sent);
        assert_eq!(sent.iter().filter(|s| s.again > 0).count() as u64, flow.retransmits);
        assert_eq!(sent.iter().map(|s| s.seq_bytes + u64::from(s.payload_bytes)).max(), Some(flow.size_bytes));
        assert!(sent.iter().all(|s| s.seq_bytes % 1_024 == 0));
        let acked =
            ran.kept.segments.iter().filter(|s| s.flow == flow.flow && s.kind.to_string() == "ack").map(|s| s.ack_bytes).max();
        assert_eq!(acked, Some(flow.size_bytes));
    }
}

/// What becomes of each message of a followed queue pair: cut as `message` says, in order, its packets and those sent again as many as
/// the flow's in all, its times between those of the flow. Tolerance: none.
#[test]
fn followed_queue_pairs_name_their_messages() {
    let text = star(5, "hosts = [\"*\"]\n[transport]\nkind = \"roce\"\ncongestion_control = \"dcqcn\"\nmessage = \"64KiB\"\nrecovery = { kind = \"go_back_n\", ack_timeout = 6 }\n[switch]\nmarking = { kind = \"threshold\", k = \"20KB\" }\nbuffer = { kind = \"static\", per_port = \"60KB\" }\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h4\"\nsize = \"200KB\"\n");
    let ran = run(&text);
    assert!(ran.kept.flows.iter().any(|flow| flow.retransmits > 0));
    for flow in &ran.kept.flows {
        let all: Vec<_> = ran.kept.messages.iter().filter(|row| row.flow == flow.flow).collect();
        let places: Vec<_> = all.iter().map(|row| (row.message, row.offset_bytes, row.size_bytes, row.posted_ps)).collect();
        let start = flow.start_ps;
        assert_eq!(
            places,
            [(0, 0, 65_536, start), (1, 65_536, 65_536, start), (2, 131_072, 65_536, start), (3, 196_608, 3_392, start)]
        );
        assert_eq!(all.iter().map(|row| u64::from(row.packets)).sum::<u64>(), flow.packets_sent);
        assert_eq!(all.iter().map(|row| u64::from(row.retransmits)).sum::<u64>(), flow.retransmits);
        assert_eq!((all[3].delivered_ps, all[3].acked_ps), (flow.finish_ps, flow.acked_ps));
        for row in &all {
            let times = [Some(row.posted_ps), row.sent_ps, row.delivered_ps, row.acked_ps].map(|time| time.expect("complete"));
            assert!(times.is_sorted(), "{row:?}");
        }
        assert!(all.windows(2).all(|two| two[0].delivered_ps < two[1].delivered_ps && two[0].sent_ps < two[1].sent_ps));
    }
}

/// Messages of all flows without the rest of what is recorded of followed ones: the same rows, of queue pairs and of TCP beside losses,
/// no row of packets but of the flow that is followed, and the same result. Tolerance: none.
#[test]
fn messages_are_recorded_of_flows_that_are_not_followed() {
    let roce = "kind = \"roce\"\nmessage = \"64KiB\"\n[switch]\nbuffer = { kind = \"static\", per_port = \"60KB\" }\n";
    let tcp = "kind = \"tcp\"\n[switch]\nbuffer = { kind = \"static\", per_port = \"60KB\" }\n";
    let incast = "[[traffic]]\nkind = \"incast\"\nreceiver = \"h4\"\nsize = \"200KB\"\n";
    for transport in [roce, tcp] {
        let of = |telemetry: &str| run(&star(5, &format!("{telemetry}\n[transport]\n{transport}{incast}")));
        let (followed, alone, mixed) =
            (of("hosts = [\"*\"]"), of("messages = [\"*\"]"), of("hosts = [\"h2\"]\nmessages = [\"h1\", \"h2\"]"));
        assert!(alone.kept.flows.iter().any(|flow| flow.retransmits > 0));
        let rows = |ran: &Ran| ran.kept.messages.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>();
        assert!(rows(&followed).len() >= 4 && rows(&alone) == rows(&followed));
        assert_eq!((alone.kept.hosts.len(), alone.kept.segments.len(), alone.kept.hops.len()), (0, 0, 0));
        assert_eq!(format!("{:?}", alone.kept.flows), format!("{:?}", followed.kept.flows));
        let of_h2 = |src: &str| src == "h2";
        let h2 = followed.kept.flows.iter().find(|flow| of_h2(&flow.src.to_string())).expect("a sender").flow;
        let segments = |ran: &Ran| ran.kept.segments.iter().filter(|row| row.flow == h2).count();
        assert!(segments(&mixed) == segments(&followed) && mixed.kept.segments.len() == segments(&mixed));
        let senders: BTreeSet<String> = mixed.kept.messages.iter().map(|row| row.src.to_string()).collect();
        assert_eq!(senders, ["h1", "h2"].map(String::from).into());
    }
}

/// The rate of a followed queue pair over time: the line's at first, less after each notification that reduces it, more by timers of the
/// control; between two rows it stays what it is.
#[test]
fn followed_queue_pairs_show_their_rate() {
    let text = star(9, "hosts = [\"*\"]\n[transport]\nkind = \"roce\"\ncongestion_control = \"dcqcn\"\n[switch]\nmarking = { kind = \"threshold\", k = \"20KB\" }\nbuffer = \"unlimited\"\nmechanisms.pfc = { memory = \"12MB\", classes = [0] }\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsize = \"1MB\"\n");
    let ran = run(&text);
    let (mut reductions, mut raised) = (0, 0);
    for flow in &ran.kept.flows {
        let rows: Vec<_> = ran.kept.hosts.iter().filter(|row| row.flow == flow.flow).collect();
        assert_eq!(rows[0].rate_bps, Some(100_000_000_000));
        for two in rows.windows(2) {
            let (before, after, event) = (two[0].rate_bps, two[1].rate_bps, two[1].event.to_string());
            assert_eq!(event == "ecn", after < before, "{event}: {before:?} {after:?}");
            raised += u32::from(event == "timer" && after > before);
        }
        let cuts = rows.iter().filter(|row| row.event.to_string() == "ecn").count();
        assert_eq!(cuts, flow.ecn_reductions as usize);
        reductions += cuts;
    }
    assert!(reductions > 20 && raised > 100, "{reductions} {raised}");
}

/// A flow is written at once: what its queue pair waits for later is its rate limiter, also where a timer of the control ends the wait.
#[test]
fn a_rate_that_a_timer_raises_is_no_wait_for_the_application() {
    let text = star(9, "hosts = [\"*\"]\n[transport]\nkind = \"roce\"\ncongestion_control = \"dcqcn\"\n[switch]\nmarking = { kind = \"threshold\", k = \"20KB\" }\nbuffer = \"unlimited\"\nmechanisms.pfc = { memory = \"12MB\", classes = [0] }\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsize = \"1MB\"\n");
    let ran = run(&text);
    let paced = |s: &&SegmentRow| s.cause.to_string() == "pacing" && s.armed_packet.is_none();
    assert!(ran.kept.segments.iter().filter(paced).count() > 10, "timers of the control end waits");
    for flow in &ran.kept.flows {
        let explanation = crate::explain::explained(&ran, flow.flow);
        let [application, pacing] = [Kind::Application, Kind::Pacing].map(|kind| crate::explain::time(&explanation, kind));
        assert!(application == 0 && pacing > 0, "{:?}", explanation.parts);
    }
}

proptest! {
    #![proptest_config(property(48, 20_30))]
    /// Any control and repair over any fabric: all bytes arrive, once; ports with events for departures give the same bits; where classes
    /// are lossless nothing is dropped.
    #[test]
    fn everything_arrives_once_in_any_fabric(
        topology in select(vec![
            "kind = \"single_switch\"\nhosts = 5\nlink = { rate = \"25Gbps\", delay = \"1us\" }",
            "kind = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\nhost_link = { rate = \"25Gbps\", delay = \"1us\" }",
            "kind = \"fat_tree\"\nk = 4\nlink = { rate = \"25Gbps\", delay = \"1us\" }",
        ]),
        control in select(vec!["none", "dcqcn", "timely", "swift"]),
        repeat in any::<bool>(),
        lossless in any::<bool>(),
        mtu in select(vec![256, 1_024, 4_096]),
        message in any::<bool>(),
        seed in 0_u32..1_000,
        sizes in prop::collection::vec((0_u32..3, 1_u64..200_000, 0_u64..30), 2..8),
    ) {
        let recovery = if repeat { "\"selective_repeat\"" } else { "{ kind = \"go_back_n\", ack_timeout = 5 }" };
        let buffer = if lossless {
            "buffer = \"unlimited\"\nmechanisms.pfc = { memory = \"9MB\", classes = [0], max_frame = \"4200B\" }"
        } else {
            "buffer = { kind = \"static\", per_port = \"60KB\" }"
        };
        let message = if message { format!("message = \"{}B\"\n", 4 * mtu) } else { String::new() };
        let flows: Vec<String> = sizes
            .iter()
            .map(|(src, size, at)| format!("{{ src = \"h{src}\", dst = \"h3\", size = \"{size}B\", start = \"{at}us\" }}"))
            .collect();
        let text = |ports: &str| format!(
            "seed = {seed}\n[engine]\nports = \"{ports}\"\n[topology]\n{topology}\n[transport]\nkind = \"roce\"\ncongestion_control = \"{control}\"\nrecovery = {recovery}\nmtu = {mtu}\n{message}[switch]\nmarking = {{ kind = \"threshold\", k = \"30KB\" }}\n{buffer}\n[[traffic]]\nkind = \"flows\"\nflows = [{}]\n",
            flows.join(", ")
        );
        let world = run_in_steps(&text("auto"), |world| if !lossless { conserved(world) });
        let ran = finish(world);
        for flow in &ran.kept.flows {
            // A queue pair whose packet is lost eight times in a row fails, and says so.
            if flow.status.to_string() == "aborted" {
                prop_assert!(!lossless);
                continue;
            }
            prop_assert_eq!((flow.status.to_string(), flow.delivered_bytes), ("complete".to_string(), flow.size_bytes));
        }
        if lossless {
            prop_assert_eq!(ran.totals.dropped, 0);
            prop_assert!(ran.kept.flows.iter().all(|f| f.retransmits == 0 || f.timeouts > 0));
        }
        let explicit = run(&text("explicit"));
        prop_assert_eq!(ran.outcome(), explicit.outcome());
    }
}

/// Acknowledgments and CNPs are not ECN-capable: RED drops them in a lossless class, too, unless it is told to mark only.
#[test]
fn marking_only_keeps_acknowledgments_of_a_lossless_class() {
    let dropped = |others: &str| {
        // All to all, so that acknowledgments meet queues of data.
        let all: Vec<String> = (0..6).flat_map(|a| (0..6).filter(move |b| *b != a).map(move |b| flow(a, b, "500KB"))).collect();
        let red = format!("marking = {{ kind = \"red\", min = \"5KB\", max = \"50KB\", max_p = 0.5, weight = 1.0, gentle = false, hard_drop = false{others} }}\n");
        let text = format!("[transport]\nkind = \"roce\"\ncongestion_control = \"dcqcn\"\n{PFC}{red}{}", flows(&all));
        let ran = run(&star(6, &text));
        assert!(ran.kept.flows.iter().all(|f| f.status.to_string() == "complete"));
        ran.totals.dropped
    };
    let [as_ever, marks_only] = ["", ", drop_others = false"].map(dropped);
    println!("dropped: {as_ever}, and {marks_only} where RED marks only");
    assert!(as_ever > 100 && marks_only == 0, "{as_ever} {marks_only}");
}

/// Four or ten flows of TIMELY to one host at the paper's 10 Gb/s and 20 us, each begun at its share: the share of the line that is used
/// from 50 to 100 ms, and the largest queue.
fn timely_incast(flows: u64, burst: Option<u64>, keys: &str) -> (f64, u64) {
    let share = 9_000 / flows;
    let (bursts, segment) =
        burst.map_or_else(Default::default, |b| (format!("burst = \"{b}B\"\n"), format!(", segment = \"{b}B\"")));
    let ran = run(&format!(
        "duration = \"100ms\"\n[topology]\nkind = \"single_switch\"\nhosts = 11\nlink = {{ rate = \"10Gbps\", delay = \"4500ns\" }}\n\
         [switch]\nbuffer = \"unlimited\"\n[transport]\nkind = \"roce\"\n{bursts}\
         congestion_control = {{ kind = \"timely\"{segment}, initial_rate = \"{share}Mbps\"{keys} }}\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h10\"\nsenders = [\"h0..h{}\"]\nsize = \"1GB\"\njitter = \"100us\"\n[telemetry]\nsample = \"100us\"\n",
        flows - 1
    ));
    let rows = ran.kept.ports.iter().filter(|row| row.port.to_string() == "switch0->h10" && row.time_ps > 50_000_000_000);
    let (sent, most) = rows.fold((0, 0), |(sent, most), row| (sent + row.tx_bytes, row.queue_max_bytes.max(most)));
    let used = sent as f64 * 1_106.0 / 1_086.0 / (1.25e9 * 0.05);
    println!("TIMELY, {flows} flows, bursts of {burst:?} B{keys}: {used:.3} of the line, queue at most {most} B");
    (used, most)
}

/// The paper's bursts cost TIMELY most of the line where several flows share it, and single packets do not: one burst of 16 KB before a
/// segment is 13 us of RTT, a gradient of 0.875 · 13 / 20, and nearly half of the rate. It is the gradient: with D_minRTT of ten times as
/// much the line is used.
#[test]
fn bursts_of_others_are_gradients_to_timely() {
    let used = |burst, keys| timely_incast(4, burst, keys).0;
    assert!(used(None, "") > 0.9);
    assert!(used(Some(16_384), "") < 0.5);
    assert!(used(Some(16_384), ", min_rtt = \"200us\"") > 0.95);
    assert!(used(Some(16_384), ", beta = 0.2") > 0.9);
}
