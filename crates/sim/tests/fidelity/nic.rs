//! Hosts: connections that share a NIC, bursts, handshake and close, requests, datagrams.

use crate::common::*;

/// Flows from `h0` to `h1`, `h2`, … over a switch and another, so that what the NIC sends is recorded in its order; every
/// window is larger than the flow.
fn shared_nic(flows: u32, nic: &str, more: &str, size: u64) -> Ran {
    run(&format!(
        "[topology]\nkind = \"dumbbell\"\nleft = 1\nright = {flows}\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nbottleneck = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [switch]\nbuffer = {{ kind = \"unlimited\" }}\n[host]\nnic = \"{nic}\"\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 1000\nrto_initial = \"100ms\"\n{more}\n\
         [telemetry]\nqueues = [\"left->right\"]\n{}",
        (1..=flows)
            .map(|i| format!("[[traffic]]\nkind = \"flows\"\nname = \"f{i}\"\nflows = [{{ src = \"h0\", dst = \"h{i}\", size = \"{size}B\" }}]\n"))
            .collect::<String>()
    ))
}

/// The flows in the order in which their packets left the NIC, as (flow, packets in a row).
fn runs(ran: &Ran) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for row in &ran.kept.queues {
        match runs.last_mut() {
            Some((flow, n)) if *flow == row.flow => *n += 1,
            _ => runs.push((row.flow, 1)),
        }
    }
    runs
}

/// "fair": one packet each in turn; "fifo": one connection after the other; with TSO bursts of up to 64 KiB in turn. Always back
/// to back: the wire does not idle while there is something to send.
///
/// Source: Linux sch_fq, pfifo_fast; GSO_MAX_SIZE. Tolerance: none.
#[test]
fn connections_take_turns_at_the_nic() {
    let size = 1448 * 90;
    let t = tx_ps(WIRE, 10);
    // The first flow has one packet on the wire and its next turn before the others have begun; then they alternate, and it
    // ends two turns of each of them earlier.
    let fair = shared_nic(3, "fair", "", size);
    let order = runs(&fair);
    assert!(order[1..].iter().all(|r| r.1 == 1) && order[0].1 <= 2, "{order:?}");
    for flow in 0..3 {
        assert_eq!(order.iter().filter(|r| r.0 == flow).map(|r| r.1).sum::<u32>(), 90);
    }
    let fct: Vec<u64> = fair.kept.flows.iter().map(|f| f.finish_ps.expect("complete")).collect();
    assert!(fct.iter().max().expect("three") - fct.iter().min().expect("three") <= 4 * t, "{fct:?}");

    assert_eq!(runs(&shared_nic(3, "fifo", "", size)), [(0, 90), (1, 90), (2, 90)]);

    // 45 whole segments fit into 64 KiB. The first flow has two bursts before the second begins, as above.
    let bursts = shared_nic(2, "fair", "tso = true", 1448 * 225);
    let full = 65_536 / 1448;
    let order = runs(&bursts);
    println!("TSO bursts: {order:?}");
    assert_eq!(order[0], (0, 2 * full));
    assert_eq!(order[1..7], [(1, full), (0, full), (1, full), (0, full), (1, full), (0, full)]);

    for ran in [&fair, &bursts] {
        for w in ran.kept.queues.windows(2) {
            assert_eq!(w[1].time_ps - w[0].time_ps, t, "a gap on the wire");
        }
    }
}

/// A connection costs SYN, SYN/ACK and then its data; it closes with FINs, and the run ends with nothing left over.
///
/// SYN and SYN/ACK with MSS, window scale, SACK-permitted and timestamps are 60 bytes of IP: frames of 78. One data segment of 1000 B is a frame
/// of 1070, which leaves after the ACK of the SYN/ACK, 70. Each goes over two links of 1 µs. Source: RFC 9293 §3.5.
/// Tolerance: none, and none for the recorded ideal time, which is this.
#[test]
fn a_connection_opens_sends_and_closes() {
    let text = |handshake: bool, more: &str| {
        format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[transport]\nkind = \"tcp\"\nhandshake = {handshake}\n\
             [telemetry]\nqueues = [\"*\"]\n[[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"1000B\"{more} }}]\n"
        )
    };
    let one_way = |frame: u64| 2 * 1_000_000 + 2 * tx_ps(frame + 20, 10);
    let ran = run(&text(true, ""));
    let sizes: Vec<u16> = ran.kept.queues.iter().map(|r| r.frame_bytes).collect();
    let flow = &ran.kept.flows[0];
    let syn = u64::from(sizes[0]);
    let ack = tx_ps(u64::from(sizes[2]) + 20, 10);
    println!("handshake: frames {sizes:?}, FCT {:?} ps, ideal {}", flow.finish_ps, flow.ideal_ps);
    assert_eq!(flow.finish_ps, Some(2 * one_way(syn) + ack + one_way(1070)));
    assert_eq!(Some(flow.ideal_ps), flow.finish_ps);
    // Data once; the rest are SYN, SYN/ACK, ACKs and FINs, one FIN from each side.
    assert_eq!(sizes.iter().filter(|s| **s == 1070).count(), 1);
    assert!((6..=8).contains(&sizes.len()), "{sizes:?}");
    assert_eq!((flow.status.to_string().as_str(), flow.timeouts, flow.retransmits), ("complete", 0, 0));

    let open = run(&text(false, ""));
    assert_eq!(open.kept.flows[0].finish_ps, Some(one_way(1070)));
    assert_eq!(open.kept.flows[0].ideal_ps, one_way(1070));

    // A request of 300 B first: 370 of frame, then the data returns the same way on the connection that the client opened.
    let asked = run(&text(false, ", request = \"300B\""));
    let flow = &asked.kept.flows[0];
    assert_eq!((flow.finish_ps, flow.request_bytes), (Some(one_way(370) + one_way(1070)), 300));
    assert_eq!(flow.ideal_ps, one_way(370) + one_way(1070));
    // The request carries the client's FIN, which is acknowledged at once, ahead of the response.
    let both = run(&text(true, ", request = \"300B\""));
    assert_eq!(both.kept.flows[0].finish_ps, Some(2 * one_way(syn) + ack + one_way(370) + ack + one_way(1070)));
    assert_eq!(Some(both.kept.flows[0].ideal_ps), both.kept.flows[0].finish_ps);
}

/// Alone on an idle network a flow takes its ideal time, whatever its size, options and request, where the window allows.
/// Tolerance: none.
#[test]
fn a_flow_alone_takes_its_ideal_time() {
    for size in ["1B", "1448B", "1449B", "100KB"] {
        for more in ["", ", request = \"1B\"", ", request = \"1000B\""] {
            for options in ["timestamps = true", "timestamps = false", "timestamps = false\nsack = false", "handshake = false"] {
                let ran = run(&format!(
                    "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
                     [transport]\nkind = \"tcp\"\ninitial_window = 1000\nrto_initial = \"1s\"\n{options}\n\
                     [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"{size}\"{more} }}]\n"
                ));
                let flow = &ran.kept.flows[0];
                assert_eq!(flow.finish_ps, Some(flow.ideal_ps), "{size}{more}, {options}");
            }
        }
    }
}

/// Flows that wait for one another in a chain start when the one before has been delivered, and after their delay.
#[test]
fn dependent_flows_start_when_their_predecessor_is_delivered() {
    let ran = run(
        "[topology]\nkind = \"single_switch\"\nhosts = 3\n[transport]\nkind = \"tcp\"\nhandshake = false\n\
         [[traffic]]\nkind = \"flows\"\nflows = [{ id = \"a\", src = \"h0\", dst = \"h1\", size = \"100KB\" }, \
         { id = \"b\", src = \"h1\", dst = \"h2\", size = \"100KB\", after = [\"a\"] }, { id = \"c\", src = \"h2\", dst = \"h0\", size = \"100KB\", after = [\"b\"], delay = \"7us\" }]\n",
    );
    let flow = |id: &str| ran.kept.flows.iter().find(|f| f.id.as_ref().is_some_and(|i| i.to_string() == id)).expect("a row");
    assert_eq!(flow("b").start_ps, flow("a").finish_ps.expect("complete"));
    assert_eq!(flow("c").start_ps, flow("b").finish_ps.expect("complete") + 7_000_000);
}

/// Where the opener of a flow is another host than the one at which its predecessor completed, it starts when a smallest frame
/// from there has crossed the idle network: two links of 10 us, 84 B at 10 Gb/s each. A delay that is longer hides that.
#[test]
fn a_host_learns_of_a_completion_elsewhere_by_a_message() {
    let start = |delay: &str| {
        let ran = run(&format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = {{ rate = \"10Gbps\", delay = \"10us\" }}\n[transport]\nkind = \"tcp\"\nhandshake = false\n\
             [[traffic]]\nkind = \"flows\"\nflows = [{{ id = \"a\", src = \"h0\", dst = \"h1\", size = \"100KB\" }}, \
             {{ id = \"b\", src = \"h0\", dst = \"h2\", size = \"50KB\" }}, \
             {{ id = \"c\", src = \"h2\", dst = \"h3\", size = \"100KB\", after = [\"a\", \"b\"]{delay} }}]\n"
        ));
        let flow = |id: &str| ran.kept.flows.iter().find(|f| f.id.as_ref().is_some_and(|i| i.to_string() == id)).expect("a row");
        let finish = |id| flow(id).finish_ps.expect("complete");
        assert!(finish("a") > finish("b"));
        flow("c").start_ps - finish("a")
    };
    assert_eq!(start(""), 2 * (10_000_000 + 84 * 800));
    assert_eq!(start(", delay = \"30us\""), 30_000_000);
}

/// A run ends when its sources have sent all and the network is empty; nobody knows of a datagram that was dropped, so a flow of
/// which one is missing is incomplete. Such flows have their own numbers in the summary and none among completion times.
#[test]
fn datagram_flows_end_though_packets_were_lost() {
    let source = |i: u32| {
        format!("[[traffic]]\nkind = \"cbr\"\nname = \"s{i}\"\nsrc = \"h{i}\"\ndst = \"h2\"\nrate = \"8Gbps\"\ncounts = \"wire\"\nsize = \"{}B\"\n", 1472 * 1000)
    };
    let text = format!(
        "[topology]\nkind = \"single_switch\"\nhosts = 3\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[switch]\nbuffer = {{ kind = \"static\", per_port = \"10 packets\" }}\n{}{}",
        source(0),
        source(1)
    );
    let ran = run(&text);
    assert!(ran.totals.dropped > 300);
    for flow in &ran.kept.flows {
        let lost = ran.kept.drops.iter().filter(|d| d.flow == flow.flow).count() as u64;
        let status = if lost == 0 { "complete" } else { "incomplete" };
        assert_eq!((flow.status.to_string().as_str(), flow.packets_sent), (status, 1000));
        assert_eq!(flow.finish_ps.is_some(), lost == 0);
        assert_eq!(flow.delivered_bytes, 1472 * (1000 - lost));
    }
    // 16 Gb/s into 10: three eighths are lost, but for what the buffer holds at the end.
    near("datagrams lost of 2000", ran.totals.dropped as f64, 750.0, 0.02);
    assert_eq!((ran.totals.started, ran.totals.ended), (2, 2));
    let mut world = make(&text);
    while world.advance(1 << 20).expect("tables") == fanin_sim::Pause::Budget {}
    let summary = fanin_sim::finish(&mut world).expect("tables").0;
    assert_eq!((&summary["flows"]["total"], &summary["fct"][0]["flows"]), (&0.into(), &0.into()));
    let datagrams = serde_json::json!({
        "flows": 2, "sent": 2000, "received": 2000 - ran.totals.dropped, "delivered_bytes": 1472 * (2000 - ran.totals.dropped)
    });
    assert_eq!(summary["datagrams"], datagrams);
}

/// One flow of 3 MB whose window is `window` segments at first, over a NIC with a queue of its own; `others`: more traffic.
fn queued_host(nic: &str, window: u32, transport: &str, others: &str) -> Ran {
    run(&format!(
        "[topology]\nkind = \"single_switch\"\nhosts = 3\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[switch]\nbuffer = \"unlimited\"\n[host]\nnic = {nic}\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = {window}\n{transport}\n\
         [[traffic]]\nkind = \"flows\"\nname = \"data\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"3MB\" }}]\n{others}"
    ))
}

/// A queue of `txqueuelen` packets holds that many besides the one on the wire. What it does not accept stays in the socket: no
/// loss, nothing is sent again, and the window is halved as if a mark had been echoed, once: the rest goes out by ACKs and never fills
/// the queue again. With and without SACK and RACK.
///
/// Source: Linux pfifo_fast_enqueue, __tcp_transmit_skb, tcp_enter_cwr. Tolerance: none.
#[test]
fn a_full_queue_of_the_host_halves_the_window_and_loses_nothing() {
    let reno = "congestion_control = \"newreno\"\n";
    for (profile, sack) in [("linux", "true"), ("linux", "false"), ("rfc", "true"), ("rfc", "false")] {
        let transport =
            format!("profile = \"{profile}\"\nsack = {sack}\n{reno}receive_window = {{ kind = \"fixed\", size = \"16MiB\" }}\n");
        let small = if profile == "linux" { "small_queues = false\n" } else { "" };
        let ran = queued_host("{ kind = \"fifo\", txqueuelen = 400 }", 500, &format!("{transport}{small}"), "");
        let flow = &ran.kept.flows[0];
        let drops: Vec<_> = ran.kept.drops.iter().map(|row| (row.time_ps, row.reason.to_string(), row.queue_bytes)).collect();
        println!("{profile}, sack {sack}: {drops:?}, {} retransmits, {:?}", flow.retransmits, flow.finish_ps);
        assert_eq!(drops, [(0, "txqueue_full".to_string(), 400 * FRAME)]);
        assert_eq!((flow.retransmits, flow.timeouts, flow.recoveries, flow.ecn_reductions), (0, 0, 0, 0));
        assert_eq!((flow.status.to_string().as_str(), flow.packets_sent), ("complete", 3_000_000u64.div_ceil(1448)));
        // All but a window's first part goes out at line rate: 1,000 segments halved are more than 8 us hold.
        let least = tx_ps(WIRE, 10) * 3_000_000 / 1448;
        assert!(flow.finish_ps.is_some_and(|at| at < least + 30_000_000), "{:?} {least}", flow.finish_ps);
    }
}

/// ACKs and datagrams that a full queue does not accept are lost, and counted.
#[test]
fn a_full_queue_of_the_host_loses_datagrams() {
    let cbr = |name: &str| {
        format!("[[traffic]]\nkind = \"cbr\"\nname = \"{name}\"\nsrc = \"h0\"\ndst = \"h2\"\nrate = \"9Gbps\"\ncounts = \"wire\"\npacket = \"1472B\"\nsize = \"147200B\"\n")
    };
    let ran = queued_host("{ kind = \"fifo\", txqueuelen = 200 }", 1000, "", &(cbr("a") + &cbr("b")));
    let sources: Vec<_> = ran.kept.flows.iter().filter(|row| row.transport.to_string() == "udp").collect();
    let mut lost = 0;
    for source in &sources {
        let own = ran.kept.drops.iter().filter(|row| row.flow == source.flow).count() as u64;
        assert_eq!(source.delivered_bytes, (source.packets_sent - own) * 1472);
        lost += own;
    }
    // 200 datagrams come in 100 packets' time at nine tenths each: as many too many as that, less one in ten.
    println!("{lost} of 200 datagrams");
    assert!((80..=100).contains(&lost), "{lost}");
    assert_eq!(ran.totals.dropped as usize, ran.kept.drops.len());
}

/// TCP small queues: before an RTT is known 1 MiB of a connection stands in its host, then what cwnd / SRTT sends in a
/// millisecond; a second connection does not wait for the rest of the first one's window. The NIC never idles.
///
/// Source: Linux tcp_small_queue_check. Tolerance: none.
#[test]
fn small_queues_leave_the_rest_in_the_socket() {
    let second = "[[traffic]]\nkind = \"flows\"\nname = \"second\"\nflows = [{ src = \"h0\", dst = \"h2\", size = \"1448B\", start = \"1us\" }]\n";
    let frames = (1u64 << 20).div_ceil(FRAME); // the last one finds 1 MiB or less
    for (small, stood) in [(true, frames), (false, 1000)] {
        let ran = queued_host("\"fifo\"", 1000, &format!("small_queues = {small}"), second);
        let (first, second) = (&ran.kept.flows[0], &ran.kept.flows[1]);
        let at = second.finish_ps.expect("complete") - tx_ps(WIRE, 10) - 2_000_000;
        println!("small {small}: second on the wire at {at} ps, first over at {:?}", first.finish_ps);
        assert_eq!(at, (stood + 1) * tx_ps(WIRE, 10), "behind {stood} frames");
        let least = tx_ps(WIRE, 10) * (3_000_000u64.div_ceil(1448) + 1);
        assert!(first.finish_ps.is_some_and(|at| at < least + 10_000_000), "{:?} {least}", first.finish_ps);
    }
}
