//! Drops at the head of a queue: what a packet that is dropped when its turn comes does to those behind it.

use crate::common::*;
use fanin_telemetry::QueueRow;
use std::collections::VecDeque;

fn text(sources: &str, switch: &str, ports: &str) -> String {
    format!(
        "[engine]\nports = \"{ports}\"\n[telemetry]\nsample = \"off\"\nqueues = [\"left->right\", \"right->h3\"]\n\
         [topology]\nkind = \"dumbbell\"\nleft = 3\nright = 1\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nbottleneck = {{ rate = \"10Gbps\", delay = \"2us\" }}\n\
         [[switch.except]]\nports = [\"left->right\"]\n{switch}\n[switch]\nbuffer = {{ kind = \"static\", per_port = \"40KB\" }}\n{sources}"
    )
}

/// A packet that is dropped at the head takes no time on the wire: the next one is asked about at the same picosecond.
///
/// Three sources at 130 % of the port, of different sizes, and limits in each unit. A reference of a few lines (arrivals in, a queue, a clock)
/// predicts from the recorded arrivals which packets are dropped and when, and when the others reach the next switch.
/// Tolerance: none, with departures as events or not.
#[test]
fn a_dropped_packet_takes_no_time_and_the_others_keep_their_order() {
    let sources: String = [(0, "3Gbps", 300, 900), (1, "4Gbps", 1472, 300), (2, "6Gbps", 800, 800)]
        .map(|(src, rate, packet, count)| {
            format!(
                "[[traffic]]\nkind = \"cbr\"\nname = \"s{src}\"\nsrc = \"h{src}\"\ndst = \"h3\"\nrate = \"{rate}\"\ncounts = \"wire\"\npacket = \"{packet}B\"\nsize = \"{}B\"\n",
                packet * count
            )
        })
        .concat();
    for (limit, unit) in [("12 packets", 1), ("15000B", 0), ("200 cells", 80)] {
        let switch = format!("marking = {{ kind = \"front_drop\", limit = \"{limit}\" }}");
        let ran = run(&text(&sources, &switch, "auto"));
        let explicit = run(&text(&sources, &switch, "explicit"));
        assert_eq!((&ran.kept, ran.outcome()), (&explicit.kept, explicit.outcome()));

        let rows = |port: &str| ran.kept.queues.iter().filter(|r| r.port.to_string() == port).collect::<Vec<&QueueRow>>();
        let (arrivals, seen) = (rows("left->right"), rows("right->h3"));
        let size = |row: &QueueRow| match unit {
            0 => u64::from(row.frame_bytes),
            1 => 1,
            cell => u64::from(row.frame_bytes).div_ceil(cell),
        };
        let limit: u64 = limit.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number");

        let (mut queue, mut free, mut next) = (VecDeque::<&QueueRow>::new(), 0, 0);
        let (mut sent, mut dropped) = (Vec::new(), Vec::new());
        while next < arrivals.len() || !queue.is_empty() {
            // What arrives when the wire becomes free is handled after the departure (ARCHITECTURE.md).
            while next < arrivals.len() && (queue.is_empty() || arrivals[next].time_ps < free) {
                let row = arrivals[next];
                free = free.max(if queue.is_empty() { row.time_ps } else { 0 });
                let waits: u64 = queue.iter().map(|row| u64::from(row.frame_bytes)).sum();
                let refused = row.time_ps < free && waits + u64::from(row.frame_bytes) > 40_000;
                assert_eq!((waits, queue.len() as u32), (row.queue_bytes, row.queue_packets));
                assert!(!refused, "the buffer is there for the rest of the queue only");
                queue.push_back(row);
                next += 1;
                if row.time_ps == free && queue.len() == 1 {
                    break;
                }
            }
            let depth: u64 = queue.iter().map(|row| size(row)).sum();
            let Some(row) = queue.pop_front() else { continue };
            if depth >= limit {
                let left: u64 = queue.iter().map(|row| u64::from(row.frame_bytes)).sum();
                dropped.push((free, row.flow, row.frame_bytes, left));
                assert!(row.dropped && !row.marked);
            } else {
                assert!(!row.dropped);
                free += tx_ps(u64::from(row.frame_bytes) + 20, 10);
                sent.push((free + 2_000_000, row.flow, row.frame_bytes));
            }
        }
        let drops: Vec<_> = ran.kept.drops.iter().map(|d| (d.time_ps, d.flow, d.frame_bytes, d.queue_bytes)).collect();
        assert_eq!(drops, dropped);
        assert!(ran.kept.drops.iter().all(|d| d.reason.to_string() == "front_drop"));
        assert_eq!(seen.iter().map(|row| (row.time_ps, row.flow, row.frame_bytes)).collect::<Vec<_>>(), sent);
        assert_eq!(ran.port("left->right").drops, dropped.len() as u64);
        assert_eq!(sent.len() + dropped.len(), 2_000);
        println!("front drop at {limit}: {} of 2000 dropped", dropped.len());
        assert!(dropped.len() > 200);
    }
}
