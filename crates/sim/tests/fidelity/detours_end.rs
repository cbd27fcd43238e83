//! RIMM's detours end: whatever shuffles them, joins them, or is lost of them and of their messages.

use crate::common::finish;
use fanin_scenario::Scenario;
use fanin_sim::{world, Destination, Kept};
use serde_json::Value;
use std::path::Path;

/// A scenario of `tests/scenarios` with some texts replaced, run to its end: RIMM's counters, drops, and the tables.
fn play(name: &str, changes: &[(&str, &str)]) -> (Value, Kept) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut text = std::fs::read_to_string(folder.join(name)).expect(name);
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    let scenario = Scenario::from_toml(&text, &folder).unwrap_or_else(|problems| panic!("{problems:?}"));
    let mut played = world(&scenario, &Destination::Memory).expect("a world");
    while matches!(played.advance(1 << 20).expect("tables in memory"), fanin_sim::Pause::Budget) {}
    let (summary, _) = fanin_sim::finish(&mut played).expect("tables");
    (summary["mechanisms"]["rimm"].clone(), finish(played).kept)
}

fn number(counted: &Value, name: &str) -> u64 {
    counted[name].as_u64().unwrap_or_else(|| panic!("{name} in {counted:#}"))
}

/// Completion of the last flow [us].
fn end_us(kept: &Kept, group: &str) -> u64 {
    let finished = kept.flows.iter().filter(|flow| flow.group.to_string().starts_with(group));
    finished.map(|flow| flow.finish_ps.expect("it completes") / 1_000_000).max().expect("flows")
}

/// Datagrams that forwarding delivers within 2.8 ms, detoured by two neighbours in turn, so that a pass releases one or two of 600 packets:
/// the last was there after 93 ms. Now the pair is given up 1 ms after the port has run empty.
#[test]
fn shuffled_detours_end_soon_after_the_alert() {
    let off = ("[switch.mechanisms.rimm]\nalpha=\"60 packets\"\nrelease=\"drained\"\nneighbour=\"per_packet\"\nhash_bits=12\nhops=\"restored\"\ngive_up=\"1ms\"\nalert=\"at_once\"\n", "");
    let forwarded = end_us(&play("rimm-shuffled.toml", &[off]).1, "c");
    let (counted, kept) = play("rimm-shuffled.toml", &[]);
    println!("forwarding {forwarded} us, RIMM {} us: {counted:#}", end_us(&kept, "c"));
    assert!(kept.drops.is_empty() && end_us(&kept, "c") < forwarded + 2_000, "{}", end_us(&kept, "c"));
    assert!(number(&counted, "outlived") > 0 && number(&counted, "late") > 0);
    assert!(number(&counted, "longest_detour_ps") < 5_000_000_000);
    assert!(number(&counted, "longest_idle_ps") < 1_300_000_000, "1 ms and one way around");
    // The letter of the paper: 1 ms in all, and then what is out goes on however full the queue is.
    let (letter, _) = play("rimm-shuffled.toml", &[("give_up=\"1ms\"", "give_up=\"1ms\"\ngive_up_when=\"outstanding\"")]);
    println!("letter: {letter:#}");
    assert!(number(&letter, "longest_detour_ps") < 1_600_000_000 && number(&letter, "overlong") > 0);
}

/// A flow of 9.4 Gb/s whose packets went around for good after a burst: with each packet's choice until the port stood idle, with one
/// neighbour at 6.5 Gb/s, as each way around took as many new packets as it released. Now the line is used as without detours.
#[test]
fn after_a_burst_the_line_is_used_again() {
    let short = [("400MB", "120MB"), ("sample = \"1ms\"", "sample = \"off\"")];
    let with = |rimm: &str| {
        let changes =
            [&short[..], &[("[switch.mechanisms.rimm]\nalpha = \"20000 cells\"\nhops = \"restored\"\n", rimm)]].concat();
        play("rimm-persist.toml", &changes)
    };
    let (_, forwarded) = with("");
    let forwarded = end_us(&forwarded, "background");
    for more in ["hops = \"restored\"", "neighbour = \"per_flow\"", "release = \"flowlet\"", ""] {
        let (counted, kept) = with(&format!("[switch.mechanisms.rimm]\nalpha = \"20000 cells\"\n{more}\n"));
        let ended = end_us(&kept, "background");
        println!("{more}: {ended} us, forwarding {forwarded} us; {counted:#}");
        assert!(ended < forwarded + forwarded / 20, "{more}: {ended} us, forwarding {forwarded} us");
        assert!(number(&counted, "detoured") > 0);
        assert!(number(&counted, "longest_detour_ps") < 12_000_000_000, "{more}");
    }
}

/// The message that the first burst is over is lost. The ingress takes the port for congested until the next message, whose number shows
/// what is missing: the second burst has its detours.
#[test]
fn a_lost_message_is_mended_by_the_next() {
    let (counted, kept) = play("rimm-lost-below.toml", &[]);
    let at_port = |drop: &&fanin_telemetry::DropRow| drop.time_ps > 6_000_000_000 && drop.port.to_string() == "sB->hD";
    let second = kept.drops.iter().filter(at_port).count();
    println!("{second} of {} drops are of the second burst at its port; {counted:#}", kept.drops.len());
    assert_eq!((number(&counted, "messages_lost"), number(&counted, "messages_missed")), (2, 2), "and that it is empty");
    assert!(number(&counted, "alerts") == 2 && number(&counted, "released") > 100);
    assert_eq!(second, 0);
    // What the second burst loses on its way to the one neighbour is the same, to the picosecond, where no message was lost: the flows that fill
    // sA->sB come after it. That port has 10 Gb/s for what arrives, 18.9 Gb/s, and for what is back.
    let later = [("start=\"610000000ps\"", "start=\"15000000000ps\""), ("start=\"610091000ps\"", "start=\"15000091000ps\"")];
    let (heard, as_heard) = play("rimm-lost-below.toml", &later);
    let lost_by_second = |kept: &Kept| -> Vec<(u64, String)> {
        let during = kept.drops.iter().filter(|drop| (6_000_000_000..15_000_000_000).contains(&drop.time_ps));
        during.map(|drop| (drop.time_ps, drop.port.to_string())).collect()
    };
    assert_eq!((number(&heard, "messages_lost"), number(&heard, "messages_missed")), (0, 0));
    let lost = lost_by_second(&kept);
    assert_eq!(lost, lost_by_second(&as_heard));
    assert!(lost.len() == 139 && lost.iter().all(|(_, port)| port == "sB->sA"), "{lost:?}");
}

/// Uplinks of leaves: the neighbours know other ways to what is behind them, so that their packets would not come back. They take no
/// detours; a permutation, which meets at uplinks alone, is forwarded as ever.
#[test]
fn ports_whose_packets_would_go_astray_have_no_detours() {
    let (counted, kept) = play("rimm-uplinks.toml", &[]);
    let plain = play("rimm-uplinks.toml", &[("[switch.mechanisms.rimm]\nalpha = \"200KB\"\n", "")]).1;
    assert_eq!((number(&counted, "astray"), number(&counted, "messages_sent"), number(&counted, "detoured")), (0, 0, 0));
    println!("{} drops, forwarding {}", kept.drops.len(), plain.drops.len());
    assert!(kept.drops.len() < plain.drops.len() * 5 / 4);
    let all = play("rimm-uplinks.toml", &[("alpha = \"200KB\"", "alpha = \"200KB\"\ndetours = \"all\"")]);
    println!("all: {} drops, {:#}", all.1.drops.len(), all.0);
    assert!(number(&all.0, "astray") > 1_000 && all.1.drops.len() > plain.drops.len());
}

/// HyStart ends the burst's slow start before the queue is full where a NIC serves its flows in turn; where it is one queue, delay at the
/// host hides the network's from HyStart. α is 1.6 MB. Figures of docs/papers/rimm.md.
#[test]
fn delay_at_the_host_hides_a_queue_from_hystart() {
    for (nic, lost, share) in [("fifo", 65, 1.2), ("fair", 0, 0.42)] {
        let (_, kept) = play("rimm-hystart.toml", &[("nic = \"fifo\"", &format!("nic = \"{nic}\""))]);
        let largest = kept.queues.iter().map(|row| row.queue_bytes).max().expect("records");
        assert_eq!(kept.drops.len(), lost, "{nic}");
        assert!((largest as f64 / 1.6e6 - share).abs() < 0.01, "{nic}: {largest} B");
    }
}

/// Why RIMM's burst is complete in three quarters of forwarding's time with these hosts: detours keep its window whole, and hold the
/// background's packets, so that the burst's round trips are shorter and its share of the line larger. The background pays: it is sent
/// 1,400 segments again, and ends later.
#[test]
fn with_hystart_and_one_queue_the_burst_gains_what_the_background_loses() {
    let short = [("400MB", "120MB"), ("1560ms", "400ms")];
    let rimm = [&short[..], &[("[switch.mechanisms.rimm]\nalpha = \"20000 cells\"\nneighbour = \"per_flow\"\n", "")]].concat();
    let (with, without) = (play("rimm-linux-hosts.toml", &short).1, play("rimm-linux-hosts.toml", &rimm).1);
    let ratio = |group: &str, from_us: u64| {
        let took = |kept: &Kept| (end_us(kept, group) - from_us) as f64;
        took(&with) / took(&without)
    };
    println!("burst {}, background {}", ratio("burst", 60_500), ratio("background", 0));
    assert!((0.70..0.76).contains(&ratio("burst", 60_500)), "{}", ratio("burst", 60_500));
    assert!((1.01..1.04).contains(&ratio("background", 0)), "{}", ratio("background", 0));
    assert!(with.flows.iter().chain(&without.flows).all(|flow| flow.timeouts == 0));
    let again = |kept: &Kept| kept.flows.iter().find(|flow| flow.group.to_string() == "background").expect("it").retransmits;
    assert!((1_000..2_000).contains(&again(&with)) && again(&without) < 30, "{} and {}", again(&with), again(&without));
}
