//! Priority flow control: lossless with its own headroom and not with a byte less than is used; pauses spread to hosts, hold up only
//! their class, and circles of them are found.

use crate::common::*;
use fanin_sim::{Pause, World};
use fanin_telemetry::PauseRow;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

struct Outcome {
    ran: Ran,
    summary: Value,
    frames: u64,
}

impl Outcome {
    fn pfc(&self, name: &str) -> u64 {
        self.summary["mechanisms"]["pfc"][name].as_u64().expect(name)
    }

    /// Pauses of the ports of a node.
    fn pauses(&self, port: &str) -> Vec<&PauseRow> {
        self.ran.kept.pauses.iter().filter(|row| row.port.to_string().starts_with(port)).collect()
    }

    fn complete(&self) -> bool {
        self.ran.kept.flows.iter().all(|flow| flow.status.to_string() == "complete")
    }
}

/// What must hold at any time.
pub fn balance(world: &mut World) {
    let ports = world.ports_now();
    let t = world.totals();
    assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
    let exist = ports.iter().map(|p| p.on_wire + p.queue_packets).sum::<u64>() + world.held();
    assert_eq!(exist, world.in_flight() + world.messages_on_the_way() - world.control_frames_waiting());
}

fn play(text: &str) -> Outcome {
    let mut world = run_in_steps(text, balance);
    let (ports, totals, now) = (world.ports_now(), world.totals(), world.now());
    let frames = world.counter("pfc", "frames_sent");
    let (summary, _) = fanin_sim::finish(&mut world).expect("tables");
    Outcome { ran: Ran { kept: world.into_kept().expect("tables"), ports, totals, now }, summary, frames }
}

/// Datagrams of 1 kB at line rate: what they lose nobody makes good.
pub fn cbr(src: &str, dst: &str, class: u8, size: &str) -> String {
    format!(
        "[[traffic]]\nkind = \"cbr\"\nname = \"{src}-{dst}-{class}\"\nsrc = \"{src}\"\ndst = \"{dst}\"\nrate = \"10Gbps\"\ncounts = \"wire\"\npacket = \"1472B\"\nsize = \"{size}\"\nclass = {class}\n"
    )
}

pub fn switch(pfc: &str, more: &str) -> String {
    format!("[switch]\nlatency = \"300ns\"\nbuffer = \"unlimited\"\nmechanisms.pfc = {{ {pfc} }}\n{more}\n[telemetry]\nsample = \"off\"\n")
}

pub fn star(hosts: u32, pfc: &str, more: &str) -> String {
    let link = "link = { rate = \"10Gbps\", delay = \"1us\" }";
    format!("[topology]\nkind = \"single_switch\"\nhosts = {hosts}\n{link}\n{}", switch(pfc, more))
}

/// h0 and h1 send at line rate to h2: each is paused half of the time.
fn two_to_one(pfc: &str) -> String {
    format!("{}{}{}", star(3, pfc, ""), cbr("h0", "h2", 0, "2MB"), cbr("h1", "h2", 0, "2MB"))
}

const SMALL: &str = "memory = \"500KB\", classes = [0], xoff = { kind = \"static\", bytes = \"30KB\" }";

/// Everything arrives, the line is never idle, and each NIC waits for half of the time.
#[test]
fn a_fan_in_loses_nothing_and_keeps_the_line_busy() {
    let ran = play(&two_to_one(SMALL));
    assert!(ran.complete() && ran.ran.totals.dropped == 0);
    assert!(ran.pfc("xoff") > 10 && ran.pfc("xoff") == ran.pfc("xon"), "{}", ran.summary["mechanisms"]);
    assert_eq!((ran.pfc("frames_sent"), ran.frames), (ran.pfc("xoff") + ran.pfc("xon") + ran.pfc("refreshed"), ran.frames));
    let packets = 2.0 * (2_000_000.0 / 1472.0_f64).ceil();
    let busy = packets * 1538.0 * 800.0;
    near("time of both", ran.ran.now.ps() as f64, busy, 0.005);
    for nic in ["h0->", "h1->"] {
        let paused: u64 = ran.pauses(nic).iter().map(|row| row.end_ps.expect("it ended") - row.start_ps).sum();
        near(nic, paused as f64, busy / 2.0, 0.02);
    }
    assert!(ran.ran.kept.pauses.iter().all(|row| row.port.to_string().starts_with('h')), "the switch is paused by nobody");
}

/// The headroom that is computed suffices; what was used of it does too, and with a byte less a packet is lost.
#[test]
fn one_byte_less_than_the_headroom_in_use_loses() {
    let own = play(&two_to_one(SMALL));
    let used = own.pfc("headroom_peak_bytes");
    // A frame that begins as the pause comes, one before the PFC frame, there and back, in whole frames.
    assert!(used > 3_000 && own.pfc("dropped_lossless") == 0);
    let exact = play(&two_to_one(&format!("{SMALL}, headroom = \"{used}B\"")));
    assert_eq!((exact.ran.totals.dropped, exact.pfc("headroom_peak_bytes")), (0, used));
    let less = play(&two_to_one(&format!("{SMALL}, headroom = \"{}B\"", used - 1)));
    assert!(less.ran.totals.dropped > 0 && less.pfc("dropped_lossless") == less.ran.totals.dropped);
    assert_eq!(less.summary["drops_by_reason"]["headroom_full"].as_u64(), Some(less.ran.totals.dropped));
}

/// A port that XOFF leaves 1 frame after the pause: the pause frame leaves, crosses the link, and the NIC ends the frame that it sends.
/// The times are those of the definition, to the picosecond.
#[test]
fn a_pause_begins_when_its_frame_has_arrived() {
    let ran =
        play(&two_to_one("memory = \"500KB\", classes = [0], xoff = { kind = \"static\", bytes = \"1B\" }, xon_gap = \"1B\""));
    // Both first frames arrive at once; the second of them waits, is the first byte above XOFF, and its PFC frame leaves at once.
    let (frame, pfc, link, latency) = (tx_ps(1538, 10), tx_ps(84, 10), 1_000_000, 300_000);
    let first: u64 = ran.ran.kept.pauses.iter().map(|row| row.start_ps).min().expect("a pause");
    assert_eq!(first, frame + link + latency + pfc + link);
}

/// Classes that are not paused go on: h0 sends both to a port that is full and to one that is free.
#[test]
fn only_the_class_that_is_asked_for_waits() {
    let strict = "scheduling = { kind = \"strict\", classes = 4 }";
    let pfc = SMALL.replace("[0]", "[2]");
    let senders = ["h0", "h1", "h4", "h5"].map(|src| cbr(src, "h2", 2, "500KB")).concat();
    let traffic = |class| format!("{senders}{}", cbr("h0", "h3", class, "300KB"));
    let victim = |ran: &Outcome| {
        let flow = ran.ran.kept.flows.iter().find(|flow| flow.dst.to_string() == "h3").expect("the victim");
        flow.finish_ps.expect("complete") - flow.start_ps
    };
    let same = play(&format!("{}{}", star(6, &pfc, strict), traffic(2)));
    let other = play(&format!("{}{}", star(6, &pfc, strict), traffic(1)));
    for ran in [&same, &other] {
        assert!(ran.complete() && ran.ran.totals.dropped == 0);
        assert!(ran.ran.kept.pauses.iter().all(|row| row.class == 2));
    }
    // In its own class it waits with the paused flow; in another it shares the NIC with it alone.
    assert!(victim(&same) > victim(&other) * 5 / 4, "{} and {}", victim(&same), victim(&other));
}

/// A class that is not paused is as if the paused one were not there, but for the frame on the wire and PFC frames before each of its own: at
/// the NIC that is paused and at the switch. In the paused class the same flow is late by far more.
#[test]
fn classes_are_isolated() {
    let strict = "scheduling = { kind = \"strict\", classes = 4 }";
    let pfc = SMALL.replace("[0]", "[2]");
    let finish = |class: u8, beside: bool| {
        let slow = cbr("h0", "h3", class, "200KB").replace("10Gbps", "1Gbps");
        let others = if beside { ["h0", "h1", "h4"].map(|src| cbr(src, "h2", 2, "1MB")).concat() } else { String::new() };
        let ran = play(&format!("{}{slow}{others}", star(5, &pfc, strict)));
        assert!(ran.complete() && ran.ran.totals.dropped == 0);
        assert_eq!(beside, ran.pauses("h0->").iter().any(|row| row.class == 2));
        let flow = ran.ran.kept.flows.iter().find(|flow| flow.dst.to_string() == "h3").expect("the flow");
        flow.finish_ps.expect("complete")
    };
    let most = 2 * (tx_ps(1538, 10) + tx_ps(84, 10));
    let late = |class| finish(class, true) - finish(class, false);
    assert!(late(1) <= most, "{} of {most}", late(1));
    assert!(late(2) > 10 * most, "{}", late(2));
}

/// A lossy class that overloads a port takes nothing from a lossless one: that loses nothing, and with a pool of its own for the lossy class
/// it is not even paused.
#[test]
fn a_lossy_class_does_not_hurt_a_lossless_one() {
    let drr = "scheduling = { kind = \"drr\", quanta = [\"1538B\", \"1538B\"] }";
    let flood = ["h0", "h1"].map(|src| cbr(src, "h2", 0, "4MB")).concat();
    let lossless = cbr("h4", "h2", 1, "1MB").replace("10Gbps", "4Gbps");
    let run = |lossy: &str| {
        let pfc = format!("memory = \"400KB\", classes = [1], xoff = {{ kind = \"dynamic\", alpha = 1.0 }}{lossy}");
        play(&format!("{}{flood}{lossless}", star(5, &pfc, drr)))
    };
    for (lossy, own) in [("", false), (", lossy = { memory = \"200KB\" }", true)] {
        let ran = run(lossy);
        assert!(ran.pfc("dropped_lossy") > 500 && ran.pfc("dropped_lossless") == 0);
        let flow = ran.ran.kept.flows.iter().find(|flow| flow.class == 1).expect("the flow");
        assert_eq!((flow.status.to_string(), flow.delivered_bytes), ("complete".to_string(), 1_000_000));
        if own {
            assert_eq!(ran.pfc("xoff"), 0);
            assert!(ran.pfc("memory_peak_bytes") <= 200_000 + 20_000, "{}", ran.summary["mechanisms"]);
        }
    }
}

/// Other classes are no lossless ones: their packets are dropped at their share of the pool, and nobody is paused for them.
#[test]
fn other_classes_are_dropped() {
    let strict = "scheduling = { kind = \"strict\", classes = 2 }";
    let text = format!("{}{}{}", star(3, SMALL, strict), cbr("h0", "h2", 1, "1MB"), cbr("h1", "h2", 1, "1MB"));
    let ran = play(&text);
    assert!(ran.pfc("dropped_lossy") > 100 && ran.pfc("dropped_lossy") == ran.ran.totals.dropped);
    assert_eq!((ran.pfc("xoff"), ran.ran.kept.pauses.len()), (0, 0));
}

/// Pauses spread: the port to h2 is the bottleneck, so its switch pauses the other switch, which pauses its hosts; a flow of theirs to
/// a free host waits too.
#[test]
fn a_pause_spreads_from_switch_to_switch() {
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         bottleneck = {{ rate = \"40Gbps\", delay = \"1us\" }}\n{}{}{}",
        switch(SMALL, ""),
        cbr("h0", "h2", 0, "2MB"),
        cbr("h1", "h2", 0, "2MB")
    );
    let ran = play(&text);
    assert!(ran.complete() && ran.ran.totals.dropped == 0);
    let first = |node| ran.pauses(node).iter().map(|row| row.start_ps).min().expect(node);
    assert!(first("left->") < first("h0->") && first("left->") < first("h1->"));
    assert!(ran.pauses("right->").is_empty());
    let with = play(&format!("{text}{}", cbr("h0", "h3", 0, "200KB")));
    let victim = with.ran.kept.flows.iter().find(|flow| flow.dst.to_string() == "h3").expect("the victim");
    let alone = 136 * tx_ps(1538, 10);
    let took = victim.finish_ps.expect("complete") - victim.start_ps;
    assert!(took > alone * 5 / 2, "{took} for {alone}, of which sharing the NIC explains the double: its other links were free");
}

/// A pause ends by itself when nobody asks for it again, and is asked for again while it has to last.
#[test]
fn pauses_are_asked_for_again_in_time() {
    let ran = play(&two_to_one(&format!("{SMALL}, quanta = 60")));
    assert!(ran.complete() && ran.ran.totals.dropped == 0 && ran.pfc("refreshed") > 10, "{}", ran.summary["mechanisms"]);
    // No row ends by time: each lasts until the frame that ends it, which comes a round trip after the queue is below XON.
    let shortest = ran.ran.kept.pauses.iter().map(|row| row.end_ps.expect("it ended") - row.start_ps).min();
    assert!(shortest > Some(1_000_000), "{shortest:?}");
}

/// Five switches in a ring, each with a host that sends to the one two switches on; and two hosts more, at the first of them.
fn ring(pfc: &str, beside: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let link = |a: String, b: String| format!("{{\"a\": \"{a}\", \"b\": \"{b}\"}}");
    let ring = (0..5).flat_map(|i| [link(format!("h{i}"), format!("s{i}")), link(format!("s{i}"), format!("s{}", (i + 1) % 5))]);
    let more = ["h5", "h6"].map(|h| link(h.into(), "s0".into()));
    let links: Vec<String> = ring.chain(more).collect();
    std::fs::write(folder.path().join("ring.json"), format!("{{\"links\": [{}]}}", links.join(", "))).expect("a file");
    let head = "[topology]\nkind = \"file\"\npath = \"ring.json\"\nrate = \"10Gbps\"\ndelay = \"1us\"\n";
    let flows: String = (0..5).map(|i| cbr(&format!("h{i}"), &format!("h{}", (i + 2) % 5), 0, "2MB")).collect();
    (folder, format!("{head}{}{flows}{beside}", switch(pfc, "")))
}

/// All links of the ring wait for each other, and the run ends and says which.
#[test]
fn a_circle_of_pauses_is_named() {
    // Alone; beside traffic that goes on, in a run that ends by its duration.
    for (duration, beside) in [("", String::new()), ("duration = \"10ms\"\n", cbr("h5", "h6", 0, "20MB"))] {
        let (folder, text) = ring(&SMALL.replace("30KB", "3KB"), &beside);
        let scenario = fanin_scenario::Scenario::from_toml(&format!("{duration}{text}"), folder.path()).expect("a scenario");
        let mut world = fanin_sim::world(&scenario, &fanin_sim::Destination::Memory).expect("a world");
        let message = loop {
            match world.advance(1 << 16).expect("tables in memory") {
                Pause::Budget => {}
                Pause::Done => panic!("it ended"),
                Pause::Stuck(message) => break message,
            }
        };
        println!("{message}");
        assert!(message.starts_with("deadlock: paused ports have waited for each other since "), "{message}");
        for i in 0..5 {
            assert!(message.contains(&format!("s{i}->s{}", (i + 1) % 5)), "{message}");
        }
    }
}

/// Pauses that spread up and down a fat tree in both directions of a link at once are no circle: what waits upwards waits for links
/// downwards, never the other way round.
#[test]
fn pauses_both_ways_of_a_link_are_no_circle() {
    let incast = |dst: u32, from: std::ops::Range<u32>| {
        from.map(|src| cbr(&format!("h{src}"), &format!("h{dst}"), 0, "1MB")).collect::<String>()
    };
    let text = format!(
        "[topology]\nkind = \"fat_tree\"\nk = 4\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n{}{}{}",
        switch(SMALL, ""),
        incast(12, 0..8),
        incast(0, 8..12) + &incast(0, 13..16),
    );
    let mut both_ways = 0;
    let mut world = run_in_steps(&text, |world| {
        let paused = world.paused_ports();
        let back = |port: &String| port.split_once("->").map(|(a, b)| format!("{b}->{a}"));
        let core = |port: &&String| port.starts_with("core");
        both_ways += paused.iter().filter(core).filter_map(back).filter(|back| paused.contains(back)).count();
        assert_eq!(world.circle_of_pauses(), None, "{paused:?}");
    });
    assert!(both_ways > 0, "no link was paused both ways");
    assert_eq!(world.totals().dropped, 0);
    assert!(world.ports_now().iter().all(|port| port.queue_packets == 0));
}

/// The watchdog resolves the same circle: what it drops is all that is missing, and the ports go on.
#[test]
fn the_watchdog_breaks_a_circle() {
    for action in ["drop", "forward"] {
        let watchdog = format!("watchdog = {{ detection = \"200us\", restoration = \"50us\", action = \"{action}\" }}");
        let (folder, text) = ring(&format!("{}, {watchdog}", SMALL.replace("30KB", "3KB")), "");
        let scenario = fanin_scenario::Scenario::from_toml(&text, folder.path()).expect(&text);
        let mut world = fanin_sim::world(&scenario, &fanin_sim::Destination::Memory).expect("a world");
        loop {
            match world.advance(1 << 10).expect("tables in memory") {
                Pause::Budget => balance(&mut world),
                Pause::Done => break,
                Pause::Stuck(message) => panic!("{action}: {message}"),
            }
        }
        let (totals, now) = (world.totals(), world.now());
        let (summary, _) = fanin_sim::finish(&mut world).expect("tables");
        let pfc = |name: &str| summary["mechanisms"]["pfc"][name].as_u64().expect(name);
        assert!(pfc("storms") > 0 && pfc("storms") >= pfc("storms_over"), "{action}: {}", summary["mechanisms"]);
        let kept = world.into_kept().expect("tables");
        // No pause outlasts the detection time, but for the hosts, which have no watchdog.
        let longest = kept
            .pauses
            .iter()
            .filter(|row| row.port.to_string().starts_with('s'))
            .map(|row| row.end_ps.unwrap_or(now.ps()) - row.start_ps)
            .max();
        assert!(longest <= Some(200_000_000 + 2_000_000), "{action}: {longest:?}");
        match action {
            "drop" => {
                let by_reason = summary["drops_by_reason"]["pfc_watchdog"].as_u64();
                assert!(totals.dropped > 0 && by_reason == Some(totals.dropped), "{summary}");
                assert_eq!((pfc("dropped_watchdog"), pfc("dropped_lossless")), (totals.dropped, 0));
                assert_eq!(kept.drops.len() as u64, totals.dropped);
            }
            // What was sent without leave may find no room.
            _ => assert_eq!((pfc("dropped_watchdog"), pfc("dropped_lossless")), (0, totals.dropped)),
        }
        assert_eq!(totals.sent, totals.delivered + totals.dropped, "everything else has arrived");
    }
}

/// A pause says since when the neighbour wanted it and for which port of its own, to the picosecond; one that it causes upstream names
/// the port that is paused.
#[test]
fn pauses_say_why() {
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         bottleneck = {{ rate = \"10Gbps\", delay = \"1us\" }}\n{}{}{}",
        switch("memory = \"500KB\", classes = [0], quanta = 100, xoff = { kind = \"static\", bytes = \"30KB\" }", ""),
        cbr("h0", "h2", 0, "2MB"),
        cbr("h3", "h2", 0, "2MB")
    );
    let ran = play(&text);
    let [uplink, nic] = ["left->right", "h0->left"].map(|port| ran.pauses(port));
    assert!(uplink.len() > 3 && nic.len() > 3);
    let behind = |row: &PauseRow| row.behind.as_ref().expect("why").to_string();
    assert!(uplink.iter().all(|row| behind(row) == "right->h2"));
    assert!(nic.iter().all(|row| behind(row) == "left->right"));
    // The frame takes its own time, the link's and the switch's, and waits for at most one frame.
    let least = tx_ps(84, 10) + 1_000_000;
    for (row, latency) in uplink.iter().map(|row| (row, 300_000)).chain(nic.iter().map(|row| (row, 0))) {
        let took = row.start_ps - row.asked_ps.expect("why") - least - latency;
        assert!(took <= tx_ps(1538, 10), "{took} {row:?}");
    }
    // Frames that asked: all that the summary counts, less those that ended a pause.
    let frames: u64 = ran.ran.kept.pauses.iter().map(|row| u64::from(row.frames)).sum();
    assert_eq!(frames, ran.pfc("frames_sent") - ran.pfc("xon"));
    assert!(ran.pfc("refreshed") > 0, "{}", ran.summary["mechanisms"]);
}

pub fn fabric() -> impl Strategy<Value = String> {
    let leaf_spine = "kind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 3\nspines = 2\nhost_link = { rate = \"10Gbps\", delay = \"500ns\" }\nuplink = { rate = \"RATE\", delay = \"DELAY\" }";
    let fat_tree = "kind = \"fat_tree\"\nk = 4\nlink = { rate = \"RATE\", delay = \"DELAY\" }";
    (select(vec![leaf_spine, fat_tree]), select(vec!["10Gbps", "25Gbps", "40Gbps"]), select(vec!["0ps", "700ns", "3us"]))
        .prop_map(|(text, rate, delay)| text.replace("RATE", rate).replace("DELAY", delay))
}

proptest! {
    #![proptest_config(property(12, 20_30))]

    /// With its own headroom nothing is lost, whatever the traffic, and everything ends.
    #[test]
    fn a_lossless_fabric_never_drops(
        topology in fabric(),
        scheduling in select(vec!["\"fifo\"", "{ kind = \"strict\", classes = 3 }", "{ kind = \"drr\", quanta = [\"1518B\", \"3036B\", \"600B\"] }"]),
        xoff in select(vec!["{ kind = \"static\", bytes = \"3KB\" }", "{ kind = \"static\", bytes = \"60KB\" }", "{ kind = \"dynamic\", alpha = 0.05 }", "{ kind = \"dynamic\", alpha = 2.0 }"]),
        reserved in select(vec!["0B", "2KB"]),
        response in select(vec!["0ps", "800ns"]),
        quanta in select(vec![100_u32, 65_535]),
        flows in prop::collection::vec((0..6_u32, 0..6_u32, 0..3_u8, 20..200_u32), 2..7),
        ports in select(vec!["auto", "explicit"]),
    ) {
        let classes = if scheduling.contains("fifo") { 1 } else { 3 };
        let pfc = format!("memory = \"3MB\", classes = [0, 1, 2], xoff = {xoff}, reserved = \"{reserved}\", response = \"{response}\", quanta = {quanta}");
        let mut text = format!("[topology]\n{topology}\n{}[engine]\nports = \"{ports}\"\n", switch(&pfc, &format!("scheduling = {scheduling}")));
        for (i, (src, dst, class, kilobytes)) in flows.iter().enumerate() {
            let dst = if src == dst { (dst + 1) % 6 } else { *dst };
            text.push_str(&cbr(&format!("h{src}"), &format!("h{dst}"), class % classes, &format!("{kilobytes}KB")).replace("name = \"", &format!("name = \"{i}-")));
        }
        let ran = play(&text);
        prop_assert_eq!(ran.ran.totals.dropped, 0);
        prop_assert!(ran.complete());
        prop_assert_eq!(ran.pfc("xoff"), ran.pfc("xon"));
    }
}
