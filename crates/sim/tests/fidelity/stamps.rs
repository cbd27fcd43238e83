//! What switches write into packets and hosts read, and what is kept of the records of watched ports.

use crate::common::*;
use crate::random::{classes, fifo, Random};
use fanin_scenario::Scenario;
use fanin_sim::Kept;
use fanin_telemetry::{QueueRow, Registers, StampRow, Unwrap};
use fanin_units::{Bytes, Span};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

fn config(cases: u32) -> ProptestConfig {
    property(cases, 20_27)
}

fn accepted(text: &str) -> bool {
    Scenario::from_toml(text, Path::new(".")).is_ok()
}

/// Records by port and flow, each in order.
type ByFlow<R> = BTreeMap<(String, u32), Vec<R>>;

fn accepted_rows(kept: &Kept) -> ByFlow<QueueRow> {
    let mut rows = ByFlow::new();
    for row in kept.queues.iter().filter(|r| !r.dropped) {
        rows.entry((row.port.to_string(), row.flow)).or_default().push(row.clone());
    }
    rows
}

fn stamps(kept: &Kept) -> ByFlow<StampRow> {
    let mut rows = ByFlow::new();
    for row in &kept.stamps {
        rows.entry((row.port.to_string(), row.flow)).or_default().push(row.clone());
    }
    rows
}

/// Holds the stamps of a run, decoded, to its exact records: within a tick and a unit. The ports towards hosts are watched, so
/// that each packet that arrives was stamped by the last of its ports. Gives how many there were.
fn decoded_is_exact(ran: &Ran, registers: Registers) -> usize {
    let (exact, mut ports) = (accepted_rows(&ran.kept), BTreeMap::new());
    // Unwrapped port by port, in the order in which receivers had them.
    let mut unwrap: BTreeMap<String, Unwrap> = BTreeMap::new();
    let mut taken: BTreeMap<(String, u32), usize> = BTreeMap::new();
    for stamp in &ran.kept.stamps {
        let port = stamp.port.to_string();
        let key = (port.clone(), stamp.flow);
        let nth = taken.entry(key.clone()).or_default();
        let row = &exact[&key][*nth];
        *nth += 1;
        let time = registers.time(unwrap.entry(port.clone()).or_default().ticks(stamp.stamp_time)).ps();
        assert!(time <= row.time_ps && row.time_ps - time < registers.tick.ps(), "{} ps read as {time}", row.time_ps);
        let queue = registers.queue(stamp.stamp_length).get();
        let saturated = stamp.stamp_length == u16::MAX;
        assert!(queue <= row.queue_bytes && (saturated || row.queue_bytes - queue < registers.unit.get()), "{row:?}: {queue}");
        assert_eq!((stamp.frame_bytes, &port), (row.frame_bytes, &row.port.to_string()));
        assert!(stamp.received_ps > row.time_ps && port.ends_with(&format!("->{}", stamp.host)), "{stamp:?}");
        assert!(stamp.marked || !row.marked, "a mark is never taken away");
        *ports.entry(port).or_insert(0) += 1;
    }
    // What was accepted and did not arrive is where it can still be: in the queue or on the wire.
    for port in ran.ports.iter().filter(|p| p.switch.is_some() && p.leads_to.is_none()) {
        let accepted: usize = exact.iter().filter(|((name, _), _)| *name == port.name).map(|(_, rows)| rows.len()).sum();
        let arrived = ports.get(&port.name).copied().unwrap_or(0);
        assert_eq!(accepted, arrived + (port.queue_packets + port.on_wire) as usize, "{}", port.name);
        let dropped = ran.kept.queues.iter().filter(|r| r.dropped && r.port.to_string() == port.name).count();
        assert_eq!(dropped as u64, port.drops, "{}", port.name);
    }
    ran.kept.stamps.len()
}

fn with(random: &Random, ports: &str, telemetry: &str) -> String {
    format!("{}[engine]\nports = \"{ports}\"\n[telemetry]\n{telemetry}\n", random.plain().text)
}

proptest! {
    #![proptest_config(config(150))]

    /// Stamps read at hosts, decoded, are the exact records of the last port, for every packet that arrived; all others are
    /// dropped, queued or on the wire. Both kinds of ports write the same. Tolerance: a tick, a unit.
    #[test]
    fn stamps_give_back_the_exact_record(
        random in prop_oneof![fifo(), classes()],
        (tick, unit) in (1_u64..100_000, 1_u64..3_000),
    ) {
        let registers = Registers { tick: Span::from_ns(tick), unit: Bytes(unit) };
        let telemetry = format!("sample = \"off\"\nqueues = [\"*\"]\nregisters = {{ tick = \"{tick}ns\", unit = \"{unit}B\" }}");
        let text = with(&random, "auto", &telemetry);
        prop_assume!(accepted(&text));
        let ran = run(&text);
        decoded_is_exact(&ran, registers);
        let received = ran.totals.delivered + ran.totals.stray;
        prop_assert_eq!(ran.kept.stamps.len() as u64, received, "each packet that arrives has a stamp");
        let explicit = run(&with(&random, "explicit", &telemetry));
        prop_assert_eq!(&explicit.kept.stamps, &ran.kept.stamps);
        prop_assert_eq!(explicit.outcome(), ran.outcome());
    }

    /// A rule about what is kept changes nothing but what is kept: the rows that it keeps are those of a full record, marks at
    /// dequeue included. Tolerance: none.
    #[test]
    fn what_is_kept_is_part_of_the_full_record(
        random in prop_oneof![fifo(), classes()],
        records in 1_usize..50,
        above in 0_u64..6_000,
        (before, after) in (0_u64..20, 0_u64..20),
    ) {
        let all = with(&random, "auto", "sample = \"off\"\nqueues = [\"*\"]");
        prop_assume!(accepted(&all));
        let all = run(&all);
        let last = run(&with(&random, "auto", &format!("sample = \"off\"\nqueues = [\"*\"]\nkeep = {{ kind = \"last\", records = {records} }}")));
        let around = run(&with(&random, "auto", &format!(
            "sample = \"off\"\nqueues = [\"*\"]\nkeep = {{ kind = \"around\", above = \"{above}B\", before = \"{before}us\", after = \"{after}us\" }}"
        )));
        prop_assert_eq!(last.outcome(), all.outcome());
        prop_assert_eq!(around.outcome(), all.outcome());
        let mut by_port: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (i, row) in all.kept.queues.iter().enumerate() {
            by_port.entry(row.port.to_string()).or_default().push(i);
        }
        let (mut ends, mut windows) = (Vec::new(), Vec::new());
        for rows in by_port.values() {
            ends.extend(rows.iter().rev().take(records));
            let found = |i: usize| all.kept.queues[rows[i]].queue_bytes;
            let time = |i: usize| all.kept.queues[i].time_ps;
            let crossings: Vec<u64> =
                (0..rows.len()).filter(|i| found(*i) > above && (*i == 0 || found(i - 1) <= above)).map(|i| time(rows[i])).collect();
            let close = |t: u64| crossings.iter().any(|c| t + before * 1_000_000 >= *c && t <= c + after * 1_000_000);
            windows.extend(rows.iter().copied().filter(|i| close(time(*i))));
        }
        for (kept, mut expected) in [(&last, ends), (&around, windows)] {
            expected.sort_unstable();
            let expected: Vec<&QueueRow> = expected.iter().map(|i| &all.kept.queues[*i]).collect();
            prop_assert_eq!(kept.kept.queues.iter().collect::<Vec<_>>(), expected);
        }
    }
}

/// A packet a second on a port whose time register starts again every 4.29 s: 30 s are seven times around.
/// Tolerance: a tick.
#[test]
fn times_come_back_across_wrap_arounds() {
    let ran = run(
        "duration = \"30s\"\n[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = { rate = \"1Gbps\", delay = \"1us\" }\n\
         [telemetry]\nsample = \"off\"\nqueues = [\"*->h1\"]\nregisters = { tick = \"1ns\" }\n\
         [[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"8000bps\"\npacket = \"1000B\"\n",
    );
    let registers = Registers { tick: Span::from_ns(1), unit: Bytes(8) };
    assert_eq!(decoded_is_exact(&ran, registers), 30);
    assert!(ran.kept.stamps.windows(2).filter(|w| w[1].stamp_time < w[0].stamp_time).count() >= 6);
}

/// The last watched port on the way is the one whose stamp arrives, and a queue of 65535 units and more reads as 65535.
#[test]
fn the_last_watched_port_wins_and_a_long_queue_saturates() {
    let text = |watch: &str| {
        format!(
            "[topology]\nkind = \"dumbbell\"\nleft = 20\nright = 1\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nbottleneck = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = {{ kind = \"unlimited\" }}\n[transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 30\n\
             [telemetry]\nsample = \"off\"\nqueues = [{watch}]\nregisters = {{ unit = \"2B\" }}\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h20\"\nsenders = [\"h0..h19\"]\nsize = \"40KB\"\n"
        )
    };
    let data = |ran: &Ran| -> Vec<StampRow> { ran.kept.stamps.iter().filter(|s| s.host.to_string() == "h20").cloned().collect() };
    let both = data(&run(&text("\"left->right\", \"right->h20\"")));
    assert!(!both.is_empty() && both.iter().all(|s| s.port.to_string() == "right->h20" && s.stamp_length == 0));
    let first = run(&text("\"left->right\""));
    let first = (data(&first), first.kept);
    assert!(first.0.iter().all(|s| s.port.to_string() == "left->right"));
    let longest = first.1.queues.iter().map(|r| r.queue_bytes).max();
    assert!(longest > Some(2 * 65_536), "{longest:?}");
    let saturated = first.1.queues.iter().filter(|r| r.queue_bytes >= 2 * 65_535).count();
    assert_eq!(first.0.iter().filter(|s| s.stamp_length == u16::MAX).count(), saturated);
    // ACKs cross no watched port: they carry room for a stamp, and none.
    assert_eq!(first.1.stamps.len(), first.0.len());
    assert!(stamps(&first.1).keys().all(|(port, _)| port == "left->right"));
}

/// A packet that is stamped and then dropped takes its stamp along: what crosses no watched port has none, wherever in memory.
#[test]
fn stamps_of_dropped_packets_do_not_come_back() {
    let ran = run("[topology]\nkind = \"dumbbell\"\nleft = 20\nright = 1\nhost_link = { rate = \"10Gbps\", delay = \"1us\" }\nbottleneck = { rate = \"100Gbps\", delay = \"1us\" }\n\
         [switch]\nbuffer = { kind = \"static\", per_port = \"20 packets\" }\n[transport]\nkind = \"tcp\"\nhandshake = false\nrto_min = \"1ms\"\nclock_granularity = \"10us\"\ninitial_window = 30\n\
         [telemetry]\nsample = \"off\"\nqueues = [\"left->right\"]\nregisters = {}\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h20\"\nsenders = [\"h0..h19\"]\nsize = \"100KB\"\n\
         [[traffic]]\nkind = \"cbr\"\nsrc = \"h20\"\ndst = \"h0\"\nrate = \"5Gbps\"\npacket = \"100B\"\nsize = \"1MB\"\n");
    assert!(ran.port("right->h20").drops > 100);
    assert!(ran.totals.delivered > ran.kept.stamps.len() as u64 + 1_000, "much crossed no watched port");
    assert!(ran.kept.stamps.iter().all(|s| s.host.to_string() == "h20"));
}

/// Room for a stamp: a full frame stays as it is and carries 8 B less, all others are 8 B longer, short ones up to the padding.
/// Source: IEEE 802.3 §3.2 for the padding. Tolerance: none.
#[test]
fn every_frame_has_room_for_a_stamp() {
    let frames = |registers: &str, entry: &str| {
        let ran = run(&format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[transport]\nkind = \"tcp\"\nhandshake = false\nack_every = 1\n\
             [telemetry]\nqueues = [\"*\"]\n{registers}\n[[traffic]]\n{entry}\n"
        ));
        let mut frames: Vec<u16> = ran.kept.queues.iter().map(|r| r.frame_bytes).collect();
        frames.sort_unstable();
        frames
    };
    let flow = "kind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"2880B\" }]";
    assert_eq!(frames("", flow), [70, 70, 70 + 2880 - 1448, 1518]);
    assert_eq!(frames("registers = {}", flow), [78, 78, 1518, 1518], "two full segments of 1440 B");
    let datagrams = |bytes: u64| {
        format!("kind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"\npacket = \"{bytes}B\"\nsize = \"{bytes}B\"")
    };
    for (bytes, without, stamped) in [(1, 64, 64), (10, 64, 64), (11, 64, 65), (18, 64, 72), (1464, 1510, 1518)] {
        assert_eq!(
            (frames("", &datagrams(bytes)), frames("registers = {}", &datagrams(bytes))),
            (vec![without], vec![stamped]),
            "{bytes}"
        );
    }
}

/// Three long flows through one port: goodput over line rate is 1440/1538 with stamps and 1448/1538 without.
/// Tolerance: 0.03 % for the start, of which the round trip before the first segment arrives and the first windows take 0.1 ms.
#[test]
fn goodput_with_and_without_stamps() {
    let mut goodput = Vec::new();
    for (registers, payload) in [("", 1448), ("registers = {}", 1440)] {
        let ran = run(&format!(
            "duration = \"400ms\"\n[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = {{ rate = \"1Gbps\", delay = \"5us\" }}\n\
             [switch]\nbuffer = {{ kind = \"unlimited\" }}\n[transport]\nkind = \"tcp\"\nhandshake = false\nack_every = 1\n\
             [telemetry]\nsample = \"off\"\nqueues = [\"*->h3\"]\n{registers}\n\
             [[traffic]]\nkind = \"flows\"\nflows = [{}]\n",
            (0..3).map(|i| format!("{{ src = \"h{i}\", dst = \"h3\", size = \"1GB\" }}")).collect::<Vec<_>>().join(", ")
        ));
        let delivered: u64 = ran.kept.flows.iter().map(|f| f.delivered_bytes).sum();
        goodput.push(delivered as f64 * 8.0 / 400e-3 / 1e9);
        near("goodput, Gb/s", delivered as f64 * 8.0 / 400e-3 / 1e9, f64::from(payload) / 1538.0, 0.0003);
    }
    near("ratio", goodput[1] / goodput[0], 1440.0 / 1448.0, 1e-5);
}

/// `base_rtt_ps` is what a full segment and its ACK take alone, ECMP and unequal links included, with and without stamps.
/// Tolerance: none.
#[test]
fn the_base_rtt_is_that_of_a_full_segment_alone() {
    for (registers, mss) in [("", 1448), ("registers = { }", 1440)] {
        let ran = run(&format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 2\nspines = 3\nhost_link = {{ rate = \"10Gbps\", delay = \"700ns\" }}\nuplink = {{ rate = \"40Gbps\", delay = \"2us\" }}\n\
             [switch]\nlatency = \"300ns\"\n[host]\nprocessing_delay = \"900ns\"\n[transport]\nkind = \"tcp\"\nhandshake = false\nack_every = 1\n\
             [telemetry]\nqueues = [\"leaf1->*\"]\n{registers}\n\
             [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h3\", size = \"{mss}B\" }}]\n"
        ));
        let flow = &ran.kept.flows[0];
        assert_eq!(flow.acked_ps, Some(flow.base_rtt_ps));
        assert_eq!(flow.finish_ps, Some(flow.ideal_ps));
    }
}

struct Patient;

impl fanin_sim::Observer for Patient {
    fn progress(&mut self, _: &fanin_sim::Progress) -> fanin_sim::Control {
        fanin_sim::Control::Continue
    }
    fn cost(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }
}

/// The manifest states what a reader of the records needs, and how many it will not find.
#[test]
fn the_manifest_describes_watched_ports() {
    let manifest = |telemetry: &str| {
        let text = format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 9\nlink = {{ rate = \"10Gbps\", delay = \"1us\", wire_overhead = \"50B\" }}\n\
             [switch]\nbuffer = {{ kind = \"static\", per_port = \"100KB\" }}\n[[switch.except]]\nports = [\"*->h7\"]\nbuffer = \"20 packets\"\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\nrto_min = \"1ms\"\nclock_granularity = \"10us\"\n[telemetry]\nqueues = [\"*->h8\", \"*->h7\"]\n{telemetry}\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsize = \"100KB\"\n"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let manifest = fanin_sim::run(&scenario(&text), folder.path(), &mut Patient).expect("a result").manifest;
        let written = std::fs::read_to_string(folder.path().join("manifest.json")).expect("a manifest");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).expect("JSON"), manifest);
        manifest
    };
    let all = manifest("registers = { unit = \"16B\" }");
    assert_eq!(all["registers"], serde_json::json!({"tick_ps": 800_000, "unit_bytes": 16}));
    let (seen, seven) = (all["watched"][1]["seen"].clone(), all["watched"][0]["seen"].clone());
    assert!(seen.as_u64() > Some(560), "{seen}");
    // 50 B beyond the IP packet, of which 18 are in the frame.
    let port = |name: &str, buffer: Option<u64>, index: u32, seen: &serde_json::Value| serde_json::json!({"port": name, "rate_bps": 10_000_000_000_u64, "overhead_bytes": 32, "buffer_bytes": buffer, "index": index, "seen": seen, "left_out": 0});
    assert_eq!(
        all["watched"],
        serde_json::json!([port("switch0->h7", None, 0, &seven), port("switch0->h8", Some(100_000), 1, &seen)])
    );
    assert_eq!(all["files"]["queues"].as_u64(), Some(seen.as_u64().unwrap_or(0) + seven.as_u64().unwrap_or(0)));
    assert!(all["files"]["stamps"].as_u64() > Some(560));

    let last = manifest("keep = { kind = \"last\", records = 100 }");
    assert!(last.get("registers").is_none());
    assert_eq!(last["files"]["stamps"], 0);
    let of = |manifest: &serde_json::Value, i: usize, key: &str| manifest["watched"][i][key].as_u64().unwrap_or(u64::MAX);
    let kept: Vec<u64> = (0..2).map(|i| of(&last, i, "seen") - of(&last, i, "left_out")).collect();
    assert_eq!(kept, [of(&last, 0, "seen").min(100), 100]);
    assert_eq!(last["files"]["queues"].as_u64(), Some(kept.iter().sum()));

    let around = manifest("keep = { kind = \"around\", above = \"50KB\", before = \"100us\", after = \"20us\", records = 10 }");
    assert_eq!((of(&around, 0, "crossings"), of(&around, 1, "crossings").min(1)), (0, 1));
    assert!(of(&around, 1, "cut_short") >= 1, "10 records are fewer than 100 us have");
    let kept: u64 = (0..2).map(|i| of(&around, i, "seen") - of(&around, i, "left_out")).sum();
    assert_eq!(around["files"]["queues"].as_u64(), Some(kept));
}

/// A header that passes the queue of data, which was last read long ago, is stamped with the queue of now.
#[test]
fn a_header_is_stamped_with_the_queue_of_now() {
    let text = |ports: &str| {
        format!(
            r#"
            duration = "3ms"
            [topology]
            kind = "single_switch"
            hosts = 9
            link = {{ rate = "10Gbps", delay = "100us" }}
            [switch]
            buffer = {{ kind = "static", per_port = "2MB" }}
            mechanisms.trimming = {{}}
            [transport]
            kind = "tcp"
            trim_nack = true
            rto_min = "1ms"
            [[traffic]]
            kind = "incast"
            receiver = "h0"
            senders = ["h1", "h2", "h3", "h4", "h5", "h6", "h7"]
            size = "14KB"
            [[traffic]]
            kind = "flows"
            flows = [{{ src = "h0", dst = "h8", size = "1KB", start = "290us" }}]
            [engine]
            ports = "{ports}"
            [telemetry]
            queues = ["*->h0"]
            registers = {{}}
            "#
        )
    };
    let [auto, explicit] = ["auto", "explicit"].map(|ports| run(&text(ports)).kept.stamps);
    assert!(auto.len() > 50, "{}", auto.len());
    assert_eq!(auto, explicit);
}
