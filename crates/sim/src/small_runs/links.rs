//! Links that fail and come back, against models of a few lines: each datagram is by itself, as nothing waits.

use super::{cbr, ended, flow, star, Changed, DELAY, FULL};
use std::collections::BTreeMap;

/// 100 datagrams at 1 Gb/s on the wire, one each so many picoseconds.
const EVERY: u64 = 12_304_000;
const PACKETS: u64 = 100;

fn slow(src: u32, dst: u32) -> String {
    cbr(src, dst, 147_200).changed("10Gbps", "1Gbps")
}

fn down(link: &str, start: u64, end: u64, more: &str) -> String {
    format!("[[events]]\nkind = \"down\"\nlinks = [\"{link}\"]\nstart = \"{start}ps\"\nend = \"{end}ps\"\n{more}\n")
}

fn failover(detect: u64, converge: u64) -> String {
    format!("[failover]\ndetect = \"{detect}ps\"\nconverge = \"{converge}ps\"\n")
}

/// Drops by reason, and what each port has sent.
fn ran(text: &str) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let mut world = ended(text);
    let sent = world.ports_now().into_iter().map(|port| (port.name, port.tx_packets)).collect();
    let mut drops = BTreeMap::new();
    for drop in &world.into_kept().expect("tables").drops {
        *drops.entry(drop.reason.to_string()).or_default() += 1;
    }
    (drops, sent)
}

fn counted(all: &[(&str, u64)]) -> BTreeMap<String, u64> {
    all.iter().filter(|(_, n)| *n > 0).map(|(reason, n)| (reason.to_string(), *n)).collect()
}

/// Frames on a link while that is down are lost, what reaches the switch while it knows is dropped, and all else arrives: thrice.
#[test]
fn a_flap_loses_what_a_model_of_one_link_loses() {
    let (start, lasts, every, times, detect) = (100_001, 170_000_003, 310_000_007, 3, 30_000_011);
    let flap = down("h1->switch0", start, start + lasts, &format!("every = \"{every}ps\"\ntimes = {times}"));
    let (mut lost, mut dropped) = (0, 0);
    for i in 0..PACKETS {
        let first = i * EVERY + FULL + DELAY; // at the switch, and onto the second link at once
        let last = first + FULL + DELAY;
        let outages = || (0..times).map(|n| (start + n * every, start + n * every + lasts));
        if outages().any(|(down, up)| first > down + detect && first < up + detect) {
            dropped += 1;
        } else if outages().any(|(down, up)| first < up && last > down) {
            lost += 1;
        }
    }
    assert!(lost > 5 && dropped > 30, "{lost} {dropped}");
    for mechanism in ["", "[switch]\nmechanisms.pdn = {}\n", "[switch]\nscheduling = { kind = \"strict\", classes = 2 }\n"] {
        let text = star(2, &format!("{mechanism}{}{flap}[failover]\ndetect = \"{detect}ps\"\n", slow(0, 1)));
        let (drops, sent) = ran(&text);
        assert_eq!(drops, counted(&[("link_lost", lost), ("link_down", dropped)]), "{mechanism}");
        assert_eq!((sent["h0->switch0"], sent["switch0->h1"]), (PACKETS, PACKETS - dropped));
    }
}

/// A leaf goes round its own dead uplink as soon as it knows; a dead link behind the spine costs the time in which tables converge as well, and the
/// spine drops for want of a way. When the link works again and tables have it, the old path is taken again.
#[test]
fn the_near_end_goes_round_at_once_and_others_when_tables_converge() {
    let text = |more: &str| {
        format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 1\nspines = 2\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             uplink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[telemetry]\nsample = \"off\"\n{}{more}",
            slow(0, 1)
        )
    };
    let (_, intact) = ran(&text(""));
    let used = (0..2).find(|spine| intact[&format!("leaf0->spine{spine}")] > 0).expect("a spine");
    let (start, end, detect, converge) = (100_000_001, 600_000_001, 30_000_003, 170_000_009);
    for (far, link, hops) in [(false, format!("leaf0->spine{used}"), 1), (true, format!("spine{used}->leaf1"), 2)] {
        let (drops, sent) = ran(&text(&format!("{}{}", down(&link, start, end, ""), failover(detect, converge))));
        let (mut lost, mut stranded, mut around) = (0, 0, 0);
        for i in 0..PACKETS {
            let leaf = i * EVERY + FULL + DELAY;
            let first = i * EVERY + hops * (FULL + DELAY); // at the switch before the link
            let known = first > start + detect && first < end + detect;
            let table = leaf > start + detect + converge && leaf < end + detect + converge;
            if table || (known && !far) {
                around += 1;
            } else if known {
                stranded += 1;
            } else if first < end && first + FULL + DELAY > start {
                lost += 1;
            }
        }
        assert!(lost > 1 && around > 20 && (stranded > 5) == far, "{lost} {stranded} {around}");
        assert_eq!(drops, counted(&[("link_lost", lost), ("no_route", stranded)]), "{link}");
        assert_eq!(sent[&format!("leaf0->spine{}", 1 - used)], around, "{link}");
    }
}

/// Packets that wait for a link are dropped when the switch learns that it has failed, wherever they wait: in one queue, in queues of classes, or in
/// virtual output queues. Until then what leaves is lost, and nothing else is.
#[test]
fn what_waits_for_a_dead_link_is_dropped() {
    let (start, detect) = (20_000_001, 10_000_000);
    // Three send 40 frames each at once; the link is dead for the rest of the run.
    let dead = format!("{}{}", down("switch0->h3", start, 2_000_000_000, ""), failover(detect, 0));
    let knows = start + detect;
    let sends = |class: bool| -> String {
        (0..3_u32)
            .map(|src| cbr(src, 3, 58_880) + &if class { format!("class = {}\n", src % 2) } else { String::new() })
            .collect()
    };
    let first = FULL + DELAY;
    // Those whose last bit would arrive when the link is dead, and that have begun before the switch knows.
    let frames = |from: u64, to: u64| {
        (0..120).map(|n| first + n * FULL).filter(|begin| begin + FULL + DELAY > from && *begin < to).count() as u64
    };
    let (arrived, lost) = ((0..120).filter(|n| first + n * FULL + FULL + DELAY <= start).count() as u64, frames(start, knows));
    for (switch, class) in [
        ("buffer = \"unlimited\"", false),
        ("buffer = { kind = \"dynamic\", total = \"1MB\", alpha = 8.0 }", false),
        ("buffer = \"unlimited\"\nscheduling = { kind = \"strict\", classes = 2 }", true),
        ("buffer = { kind = \"dynamic\", total = \"1MB\", alpha = 8.0 }\nscheduling = { kind = \"drr\", quanta = [\"1518B\", \"1518B\"] }", true),
        ("buffer = \"unlimited\"\nmechanisms.pdn = {}", false),
    ] {
        let world = ended(&star(4, &format!("[switch]\n{switch}\n{}{dead}", sends(class))));
        let (t, now) = (world.totals(), world.now().ps());
        let kept = world.into_kept().expect("tables");
        let of = |reason: &str| kept.drops.iter().filter(|drop| drop.reason.to_string() == reason).collect::<Vec<_>>();
        assert_eq!((t.delivered, of("link_lost").len() as u64), (arrived, lost), "{switch}");
        assert_eq!(of("link_down").len() as u64, 120 - arrived - lost, "{switch}");
        // Those that waited, at the moment at which it knows, each with what it leaves behind; the others when they come.
        let waited: Vec<u64> = of("link_down").iter().filter(|drop| drop.time_ps == knows).map(|drop| drop.queue_bytes).collect();
        let came = (0..40).filter(|n| first + n * FULL < knows).count() as u64 * 3;
        assert_eq!(waited.len() as u64, came - arrived - lost, "{switch}");
        assert!(class || waited.iter().rev().zip(0..).all(|(left, n)| *left == n * 1_518), "{switch}: {waited:?}");
        assert!(of("link_down").iter().filter(|drop| drop.time_ps > knows).all(|drop| drop.queue_bytes == 0));
        assert!(now <= first + 40 * FULL, "{now}");
    }
    let set = "architecture = { kind = \"combined\", voq = \"90KB\", output = \"9KB\", speedup = 2.0 }\nscheduling = { kind = \"strict\", classes = 2 }";
    let world = ended(&star(4, &format!("[switch]\n{set}\n{}{dead}", sends(true))));
    let t = world.totals();
    assert_eq!(world.crossbar_packets(), [0]);
    assert_eq!((t.sent, t.delivered + t.dropped), (120, 120));
}

/// A segment that a failed link loses, the switch's or the host's own, is sent again after RTOs of 100, 200 and 400 us, and arrives once the link is
/// back.
#[test]
fn a_host_comes_back_at_the_first_timeout_after_the_failure() {
    let tcp = "[transport]\nkind = \"tcp\"\ncongestion_control = \"newreno\"\nhandshake = false\nrto_initial = \"100us\"\nrto_min = \"100us\"\nack_every = 1\nclock_granularity = \"1ns\"\n";
    for link in ["switch0->h1", "h0->switch0"] {
        let text = star(2, &format!("{tcp}{}{}", flow(0, 1, 1_000), down(link, 0, 500_000_000, "")));
        let kept = ended(&text).into_kept().expect("tables");
        let flow = &kept.flows[0];
        assert_eq!((flow.finish_ps, flow.timeouts), (Some(710_000_000 + flow.ideal_ps), 3), "{link}");
        let reasons: Vec<String> = kept.drops.iter().map(|drop| drop.reason.to_string()).collect();
        assert_eq!(reasons.len(), 3, "{reasons:?}");
    }
}

/// A NIC that is paused when its link fails sends at once when its host notices: nobody is there who would end the pause.
#[test]
fn a_pause_ends_with_its_link() {
    let text = |more: &str| {
        star(
            3,
            &format!(
                "[switch]\nbuffer = \"unlimited\"\nmechanisms.pfc = {{ memory = \"100KB\", classes = [0], xoff = {{ kind = \"static\", bytes = \"9KB\" }} }}\n\
                 [host]\nstorms = [{{ hosts = [\"h2\"], classes = [0], start = \"10us\", end = \"800us\" }}]\n{}{more}",
                cbr(0, 2, 58_880)
            ),
        )
    };
    let pauses = |more: &str| {
        let kept = ended(&text(more)).into_kept().expect("tables");
        let rows: Vec<_> = kept
            .pauses
            .iter()
            .filter(|row| row.port.to_string() == "h0->switch0")
            .map(|row| (row.start_ps, row.end_ps))
            .collect();
        (rows, kept.drops.len())
    };
    let (rows, lost) = pauses("");
    assert!(rows.iter().any(|(_, end)| end.is_some_and(|end| end > 800_000_000)) && lost == 0, "{rows:?}");
    let (rows, lost) = pauses(&format!("{}{}", down("h0->switch0", 200_000_000, 500_000_000, ""), failover(30_000_000, 0)));
    assert!(rows.iter().any(|(_, end)| *end == Some(230_000_000)), "{rows:?}");
    assert!(lost > 10, "{lost}");
}
