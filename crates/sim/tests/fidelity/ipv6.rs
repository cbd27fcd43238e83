//! `framing.ip = "v6"`: headers of 40 B, drop notifications of 44 B, and nothing else is different.

use crate::common::*;
use fanin_sim::Pause;
use fanin_units::{Span, Time};

const V6: &str = "[framing]\nip = \"v6\"\n";

/// A connection costs SYN, SYN/ACK and then its data, as over IPv4 (`nic.rs`), each packet 20 B longer: SYN and SYN/ACK are 80 bytes of
/// IP, frames of 98; a segment of 1000 B with timestamps is a frame of 1090, and leaves after an ACK of 90. Source: RFC 8200 §3.
/// Tolerance: none, and none for the recorded ideal time.
#[test]
fn a_connection_opens_sends_and_closes() {
    let text = |handshake: bool, more: &str| {
        format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[transport]\nkind = \"tcp\"\nhandshake = {handshake}\n\
             [telemetry]\nqueues = [\"*\"]\n[[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"1000B\"{more} }}]\n{V6}"
        )
    };
    let one_way = |frame: u64| 2 * 1_000_000 + 2 * tx_ps(frame + 20, 10);
    let ran = run(&text(true, ""));
    let sizes: Vec<u16> = ran.kept.queues.iter().map(|r| r.frame_bytes).collect();
    assert_eq!(sizes[..4], [98, 98, 90, 1090]);
    let flow = &ran.kept.flows[0];
    assert_eq!(flow.finish_ps, Some(2 * one_way(98) + tx_ps(90 + 20, 10) + one_way(1090)));
    assert_eq!(flow.finish_ps, Some(flow.ideal_ps));
    let asked = run(&text(false, ", request = \"300B\""));
    let flow = &asked.kept.flows[0];
    assert_eq!(flow.finish_ps, Some(one_way(390) + one_way(1090)));
    assert_eq!(flow.finish_ps, Some(flow.ideal_ps));
}

/// Full segments fill 1518 B frames with 20 B less than over IPv4: 1428 B and 1440 B (RFC 9293 §3.7.1), 8 B less with stamps, 44 B less
/// where senders act on notifications. n of them cross two links in (n + 1) times 1538 B. Tolerance: none.
#[test]
fn a_full_segment_is_20_bytes_smaller() {
    for (options, telemetry, mss) in [
        ("", "", 1428),
        ("timestamps = false", "", 1440),
        ("", "registers = {}", 1420),
        ("drop_notification = true", "", 1384),
        ("drop_notification = true\ntimestamps = false", "registers = {}", 1388),
    ] {
        for n in [1_u64, 7] {
            let ran = run(&format!(
                "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
                 [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 100\nack_every = 1\n{options}\n\
                 [telemetry]\nqueues = [\"switch0->*\"]\n{telemetry}\n\
                 [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"{}B\" }}]\n{V6}",
                mss * n
            ));
            let data: Vec<u16> =
                ran.kept.queues.iter().filter(|row| row.port.to_string() == "switch0->h1").map(|r| r.frame_bytes).collect();
            let frame = if options.contains("notification") { 1474 } else { 1518 };
            assert_eq!(data, vec![frame; n as usize], "{options} {telemetry}");
            let flow = &ran.kept.flows[0];
            let t = tx_ps(u64::from(frame) + 20, 10);
            assert_eq!(flow.finish_ps, Some(2_000_000 + (n + 1) * t), "{options} {telemetry}");
            assert_eq!(flow.finish_ps, Some(flow.ideal_ps));
            if n == 1 {
                assert_eq!(flow.acked_ps, Some(flow.base_rtt_ps));
            }
        }
    }
}

/// Alone on an idle network a flow takes its ideal time, with MSS from the handshake too. Tolerance: none.
#[test]
fn a_flow_alone_takes_its_ideal_time() {
    for size in ["1B", "1428B", "1429B", "100KB"] {
        for options in ["timestamps = true", "timestamps = false", "timestamps = false\nsack = false", "handshake = false"] {
            let ran = run(&format!(
                "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
                 [transport]\nkind = \"tcp\"\ninitial_window = 1000\nrto_initial = \"1s\"\n{options}\n\
                 [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"{size}\", request = \"1000B\" }}]\n{V6}"
            ));
            assert_eq!(ran.kept.flows[0].finish_ps, Some(ran.kept.flows[0].ideal_ps), "{size}, {options}");
        }
    }
}

/// Datagrams of 1452 B fill frames of 1518 B, and their rate on the wire counts the header. Tolerance: none.
#[test]
fn datagrams_take_their_headers_along() {
    for (packet, frame) in [(1452_u64, 1518_u64), (1, 67)] {
        let ran = run(&format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[telemetry]\nqueues = [\"*\"]\n\
             [[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"5Gbps\"\ncounts = \"wire\"\npacket = \"{packet}B\"\nsize = \"{}B\"\n{V6}",
            10 * packet
        ));
        let times: Vec<(u64, u64)> = ran.kept.queues.iter().map(|row| (row.time_ps, u64::from(row.frame_bytes))).collect();
        let first = 1_000_000 + tx_ps(frame + 20, 10);
        let expected: Vec<(u64, u64)> = (0..10).map(|i| (first + i * tx_ps(frame + 20, 5), frame)).collect();
        assert_eq!(times, expected);
        assert_eq!(ran.kept.flows[0].delivered_bytes, 10 * packet);
    }
}

/// Flows take the same ports and paths over either version: in frames of one length all else is the same, time for time. With 20 B less
/// of Ethernet's header IPv6 has frames as long as IPv4's.
#[test]
fn only_sizes_differ() {
    let text = |framing: &str, mtu: u16| {
        format!(
            "[framing]\n{framing}\n[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 3\nspines = 3\n\
             [switch]\nbuffer = {{ kind = \"static\", per_port = \"4KB\" }}\n\
             [transport]\nkind = \"tcp\"\nmtu = {mtu}\nrto_min = \"1ms\"\n[telemetry]\nqueues = [\"*\"]\n[[traffic]]\nkind = \"all_to_all\"\nsize = \"50KB\"\n"
        )
    };
    let v4 = run(&text("ip = \"v4\"\nheader = \"38B\"\nmin_frame = \"0B\"", 1480));
    let v6 = run(&text("ip = \"v6\"\nmin_frame = \"0B\"", 1500));
    assert!(v4.totals.dropped > 0);
    assert_eq!(v4, v6);
}

/// A notification of IPv6, to the picosecond: it travels in an empty frame, of 64 B as one of IPv4 does (`notices.rs`), with a tag of
/// 66 B; full segments leave 44 B for it.
#[test]
fn a_notification_comes_as_soon_as_its_frame() {
    for (header, empty, full) in [(18_u16, 64, 1474), (22, 66, 1478)] {
        let mut world = make(&format!(
            r#"
            [framing]
            ip = "v6"
            header = "{header}B"
            [topology]
            kind = "single_switch"
            hosts = 3
            link = {{ rate = "1Gbps", delay = "10us" }}
            [switch]
            buffer = {{ kind = "static", per_port = "20 packets" }}
            mechanisms.pdn = {{}}
            [transport]
            kind = "tcp"
            timestamps = false
            handshake = false
            initial_window = 30
            drop_notification = true
            [[traffic]]
            kind = "incast"
            receiver = "h2"
            senders = ["h0", "h1"]
            size = "41880B"
            [telemetry]
            sample = "off"
            "#
        ));
        let heard = loop {
            assert_eq!(world.advance(1).expect("tables"), Pause::Budget);
            if Notices::of(&world).retransmitted == 1 {
                break world.now();
            }
        };
        let ran = finish(world);
        let first = &ran.kept.drops[0];
        assert_eq!(heard, Time::from_ps(first.time_ps) + Span::from_ns((empty + 20) * 8) + Span::from_us(10));
        assert_eq!(first.frame_bytes, full);
        assert!(ran.kept.flows.iter().all(|f| f.timeouts == 0 && f.status.to_string() == "complete"));
    }
}

/// Bytes are conserved: what a switch sends is what it got, less what it dropped, and 44 B for each notification behind a packet, 64 B
/// for each that leaves alone. A queue of 87 B holds one. Hosts send in a circle, and three flows to one of them.
#[test]
fn a_notification_is_44_bytes() {
    for queue in [87, 2000] {
        let flows = [("h0", "h1"), ("h2", "h1"), ("h1", "h2"), ("h0", "h2"), ("h1", "h0"), ("h2", "h0"), ("h3", "h0")];
        let flows = flows.map(|(src, dst)| format!("{{ src = \"{src}\", dst = \"{dst}\", size = \"5MB\" }}")).join(", ");
        let mut world = make(&format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = {{ rate = \"1Gbps\", delay = \"5us\" }}\n\
             [switch]\nbuffer = {{ kind = \"static\", per_port = \"30KB\" }}\nmechanisms.pdn = {{ queue = \"{queue}B\" }}\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 60\ndrop_notification = true\n\
             [telemetry]\nsample = \"off\"\n[[traffic]]\nkind = \"flows\"\nflows = [{flows}]\n{V6}"
        ));
        while world.advance(1 << 20).expect("tables") == Pause::Budget {}
        let (counts, ports) = (Notices::of(&world), world.ports_now());
        let summary = fanin_sim::finish(&mut world).expect("tables").0;
        let kept = world.into_kept().expect("tables");
        let sent = |by_switch: bool| ports.iter().filter(|p| p.switch.is_some() == by_switch).map(|p| p.tx_bytes).sum::<u64>();
        let dropped: u64 = kept.drops.iter().map(|row| u64::from(row.frame_bytes)).sum();
        assert_eq!(sent(true) + dropped, sent(false) + 44 * counts.attached + 64 * counts.empty_frames);
        assert!(counts.attached > 20 && counts.empty_frames > 0, "{counts:?}");
        let largest = summary["mechanisms"]["notifications"]["largest_queue"]["bytes"].as_u64().expect("a queue");
        assert!(if queue < 88 { largest == 44 } else { largest > 44 && largest % 44 == 0 }, "{largest}");
    }
}
