//! CoDel under the traffic that it is published with.

use crate::common::*;
use fanin_telemetry::QueueRow;

/// As many flows as hosts through one port with this marking, recorded there and behind it; `delay` of each of three links.
fn bottleneck(flows: u32, (host, rate): (&str, &str), delay: &str, marking: &str, transport: &str, duration: &str) -> Ran {
    run(&format!(
        "duration = \"{duration}\"\n[topology]\nkind = \"dumbbell\"\nleft = {flows}\nright = 1\n\
         host_link = {{ rate = \"{host}\", delay = \"{delay}\" }}\nbottleneck = {{ rate = \"{rate}\", delay = \"{delay}\" }}\n\
         [switch]\nbuffer = {{ kind = \"static\", per_port = \"1000 packets\" }}\n\
         [[switch.except]]\nports = [\"left->right\"]\nmarking = {marking}\n\
         [transport]\nkind = \"tcp\"\n{transport}\n[telemetry]\nqueues = [\"left->right\", \"right->h{flows}\"]\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h{flows}\"\nsize = \"1GB\"\n"
    ))
}

/// The rows of a port from a time on.
fn rows<'a>(ran: &'a Ran, port: &str, from_ps: u64) -> Vec<&'a QueueRow> {
    ran.kept.queues.iter().filter(|row| row.port.to_string() == port && row.time_ps >= from_ps).collect()
}

/// Mean and percentiles (50, 95, 100) of what packets find in the queue, in milliseconds at `mbps`; share of the port's time that
/// it sends.
fn found(ran: &Ran, from_ps: u64, mbps: f64) -> (f64, [f64; 3], f64) {
    let mut bytes: Vec<u64> = rows(ran, "left->right", from_ps).iter().map(|row| row.queue_bytes).collect();
    bytes.sort_unstable();
    let ms = |bytes: f64| bytes * 8.0 / mbps / 1e3;
    let mean = ms(bytes.iter().map(|b| *b as f64).sum::<f64>() / bytes.len() as f64);
    let port = ran.port("left->right");
    let busy = (port.tx_bytes + 20 * port.tx_packets) as f64 * 8.0 / mbps / (ran.now.ps() as f64 / 1e6);
    (mean, [50, 95, 100].map(|p| ms(bytes[(bytes.len() - 1) * p / 100] as f64)), busy)
}

/// CoDel holds the queue of long flows near its target, where drop tail fills whatever buffer there is, and keeps the port busy.
///
/// CUBIC at 10 Mb/s over 100 ms, one flow and four, dropped or marked. Source: RFC 8289 §1 and §3.2 (a standing queue of `target`
/// costs next to no throughput; a lone loss-based flow loses what its window falls below the bandwidth–delay product: CUBIC
/// falls to 0.7 of it and is back after seconds). Tolerance: a lone flow's 95th percentile at most the target and a frame, the
/// mean of four below the target, none beyond four targets after the start; the port busy for 0.85 and 0.93 of the time.
#[test]
fn codel_holds_the_queue_near_its_target() {
    let cubic = "profile = \"linux\"\ncongestion_control = \"cubic\"";
    let path = ("1Gbps", "10Mbps");
    for (flows, least_busy) in [(1, 0.85), (4, 0.93)] {
        let ran = bottleneck(flows, path, "16667us", "\"none\"", cubic, "60s");
        let (mean, ..) = found(&ran, 10 * SECOND as u64, 10.0);
        println!("{flows} CUBIC, drop tail: mean {mean:.1} ms");
        assert!(mean > 100.0);
        for (marking, ecn) in [("\"codel\"", false), ("{ kind = \"codel\", ecn = true }", true)] {
            let ran = bottleneck(flows, path, "16667us", marking, &format!("{cubic}\necn = {ecn}"), "60s");
            let (mean, [p50, p95, most], busy) = found(&ran, 10 * SECOND as u64, 10.0);
            let port = ran.port("left->right");
            println!(
                "{flows} CUBIC, CoDel, ecn {ecn}: mean {mean:.2} ms, p50 {p50:.2}, p95 {p95:.2}, most {most:.2}, busy {busy:.3}, {} drops, {} marks",
                port.drops, port.marks
            );
            let frame = FRAME as f64 * 8.0 / 10e3;
            assert!(if flows == 1 { p95 <= 5.0 + frame } else { mean < 5.0 && p50 > 0.0 });
            assert!(most < 20.0 && busy > least_busy, "{most} ms, {busy}");
            assert_eq!((port.drops == 0, port.marks == 0), (ecn, !ecn));
            assert!(ran.kept.drops.iter().all(|drop| drop.reason.to_string() == "codel"));
        }
    }
}

/// `ce_threshold` marks exactly the packets whose wait is longer, and DCTCP behind it does what it does behind the K that is as
/// long.
///
/// 10 Gb/s, 50 µs, 1 to 8 flows. The wait of each packet follows from its arrival at the next switch. 50 µs on the wire are 61,687 B
/// of full frames. Source: Linux codel_dequeue; DCTCP §3.1. Tolerance: none; mean queues within a frame and a half.
#[test]
fn ce_threshold_marks_by_the_wait_and_dctcp_is_as_behind_k() {
    let dctcp = "congestion_control = \"dctcp\"\nrto_min = \"5ms\"";
    for flows in [1, 2, 8] {
        let run = |marking| bottleneck(flows, ("40Gbps", "10Gbps"), "7us", marking, dctcp, "60ms");
        let ran = run("{ kind = \"codel\", ce_threshold = \"50us\" }");
        let (arrivals, next) = (rows(&ran, "left->right", 0), rows(&ran, &format!("right->h{flows}"), 0));
        let mut marked = 0;
        for (row, seen) in arrivals.iter().zip(&next) {
            assert_eq!((row.flow, row.frame_bytes), (seen.flow, seen.frame_bytes));
            let wait = seen.time_ps - 7_000_000 - tx_ps(u64::from(row.frame_bytes) + 20, 10) - row.time_ps;
            assert_eq!(row.marked, wait > 50_000_000, "{wait} ps");
            marked += u64::from(row.marked);
        }
        let (by_wait, [_, _, most], busy) = found(&ran, 20_000_000_000, 10_000.0);
        let (by_k, ..) = found(&run("{ kind = \"threshold\", k = \"61687B\" }"), 20_000_000_000, 10_000.0);
        let us = |ms: f64| 1e3 * ms;
        println!(
            "DCTCP, {flows} flows, ce_threshold 50 us: mean {:.2} us, most {:.2}, busy {busy:.3}, {marked} marks; K: {:.2}",
            us(by_wait),
            us(most),
            us(by_k)
        );
        assert!(marked > 1000 && arrivals.len() > 40_000 && ran.port("left->right").drops == 0);
        assert!((by_wait - by_k).abs() < 1.5 * FRAME as f64 * 8.0 / 10e6, "{by_wait} {by_k}");
    }
}
