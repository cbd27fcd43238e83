//! What `fanin check` warns of, and that it does not where there is no reason to.

use crate::common::edited;
use fanin_scenario::{render, Scenario};
use std::path::Path;

/// An incast that nothing is to be said against.
const SOUND: &str = r#"name = "x"
[topology]
kind = "single_switch"
hosts = 9
[switch]
buffer = { kind = "static", per_port = "512KB" }
marking = { kind = "threshold", k = "65 packets" }
[transport]
kind = "tcp"
congestion_control = "dctcp"
rto_min = "10ms"
delayed_ack_timeout = "1ms"
[[traffic]]
kind = "incast"
receiver = "h8"
size = "100KB"
"#;

fn warnings(text: &str) -> String {
    match Scenario::from_toml(text, Path::new(".")) {
        Ok(scenario) => render(scenario.warnings(), "s.toml"),
        Err(problems) => panic!("{}", render(&problems, "s.toml")),
    }
}

fn changed(changes: &[(&str, &str)], added: &str) -> String {
    warnings(&edited(SOUND, changes, added))
}

fn line(text: &str) -> String {
    format!("s.toml: warning: {text}\n")
}

#[test]
fn nothing_is_said_of_a_sound_scenario() {
    assert_eq!(warnings(SOUND), "");
}

#[test]
fn a_threshold_above_the_buffer() {
    let found = changed(&[("\"512KB\"", "\"64KB\""), ("\"65 packets\"", "\"64KB\"")], "");
    assert!(found.contains("switch.marking, line 7: never acts: its threshold, 64KB, is not below the buffer, 64KB"), "{found}");
    // One below it acts.
    assert!(!changed(&[("\"65 packets\"", "\"511KB\"")], "").contains("never acts"));
}

/// RED with a highest threshold above the output queue of a combined switch marks from its lowest on, so it acts; one whose lowest is
/// above it does not.
#[test]
fn red_acts_where_its_lowest_threshold_is_reached() {
    let text = |min: &str| {
        format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 9\nspines = 2\n[switch]\narchitecture = {{ kind = \"combined\", voq = \"200KB\", output = \"100KB\" }}\nmarking = {{ kind = \"red\", min = \"{min}\", max = \"2000KB\", max_p = 0.5, weight = 1.0, gentle = false, hard_drop = false, drop_others = false, spacing = \"geometric\" }}\nmechanisms.pfc = {{ memory = \"32MB\", xoff = {{ kind = \"static\", bytes = \"60KB\" }} }}\n[transport]\nkind = \"roce\"\ncongestion_control = \"dcqcn\"\n[[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h1\", dst = \"h0\", size = \"100MB\" }}]\n"
        )
    };
    assert!(!warnings(&text("5KB")).contains("never acts"), "{}", warnings(&text("5KB")));
    let never = warnings(&text("150KB"));
    assert!(never.contains("switch.marking, line 8: never acts: its threshold, 150KB, is not below"), "{never}");
}

#[test]
fn a_threshold_above_what_one_queue_may_take_of_a_shared_buffer() {
    let dynamic = "{ kind = \"dynamic\", total = \"1MB\", alpha = 1.0 }";
    let found = changed(&[("{ kind = \"static\", per_port = \"512KB\" }", dynamic), ("\"65 packets\"", "\"600KB\"")], "");
    let expected = "switch.marking, line 7: never acts: its threshold, 600KB, is not below what one queue may hold, alpha/(1 + alpha) of the buffer";
    assert_eq!(found, line(expected));
    assert_eq!(changed(&[("{ kind = \"static\", per_port = \"512KB\" }", dynamic), ("\"65 packets\"", "\"400KB\"")], ""), "");
}

#[test]
fn odd_alphas() {
    let with = |alpha: &str| {
        changed(
            &[(
                "{ kind = \"static\", per_port = \"512KB\" }",
                &format!("{{ kind = \"dynamic\", total = \"4MB\", alpha = {alpha} }}"),
            )],
            "",
        )
    };
    assert_eq!(
        with("100.0"),
        line("switch.buffer.alpha, line 6: 100.0 lets a single queue take 99 % of the buffer; chips offer 1/128 to 8")
    );
    assert!(
        with("0.001").contains(&line("switch.buffer.alpha, line 6: 0.001 lets a single queue hold no more than 2 full frames"))
    );
    assert_eq!(with("8.0"), "");
}

#[test]
fn ecn_at_one_end_only() {
    let found = changed(&[("marking = { kind = \"threshold\", k = \"65 packets\" }\n", "")], "");
    let remedy = "set switch.marking, for example { kind = \"threshold\", k = \"65 packets\" }";
    assert_eq!(found, line(&format!("transport, line 7: uses ECN, and no switch marks; {remedy}")));
    let found = changed(&[("\"dctcp\"", "\"cubic\"")], "");
    let remedy = "set ecn = true, or congestion_control = \"dctcp\"";
    assert_eq!(
        found,
        line(&format!("switch.marking, line 7: marks ECN-capable packets, and no transport in use sends any; {remedy}"))
    );
    // A second transport that is not in use does not make up for it; one that is does.
    let named =
        "[transports.other]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\nrto_min = \"10ms\"\ndelayed_ack_timeout = \"1ms\"\n";
    assert!(changed(&[("\"dctcp\"", "\"cubic\"")], named).contains("transports.other, line 17: is used by no traffic"));
    let found = changed(&[("\"dctcp\"", "\"cubic\"")], &format!("transport = \"other\"\n{named}"));
    assert_eq!(found, line("transport, line 8: is used by no traffic"));
    // RED drops what it cannot mark.
    assert_eq!(
        changed(
            &[("\"dctcp\"", "\"cubic\""), ("{ kind = \"threshold\", k = \"65 packets\" }", "{ kind = \"red\", ecn = false }")],
            ""
        ),
        ""
    );
}

#[test]
fn a_retransmission_timeout_far_above_the_rtt() {
    let found = changed(&[("rto_min = \"10ms\"\n", "")], "");
    let remedy = "each lost tail of a burst costs that much; data centers use 1ms to 10ms";
    assert_eq!(
        found,
        line(&format!("transport.rto_min, line 8: \"1s\" is 151625 times the RTT of traffic[0] (6600ns): {remedy}"))
    );
    // Without a handshake the first timeout is rto_initial.
    let found = changed(&[("[transport]\n", "[transport]\nhandshake = false\n")], "");
    let remedy = "without a handshake no RTT is known when the first window is lost; data centers use 1ms to 10ms";
    assert_eq!(
        found,
        line(&format!("transport.rto_initial, line 8: \"1s\" is 151625 times the RTT of traffic[0] (6600ns): {remedy}"))
    );
    assert_eq!(changed(&[("[transport]\n", "[transport]\nhandshake = false\nrto_initial = \"10ms\"\n")], ""), "");
    // Long transfers of one sender do not lose their tails together.
    assert_eq!(
        changed(&[("rto_min = \"10ms\"\n", ""), ("kind = \"incast\"\nreceiver = \"h8\"", "kind = \"permutation\"")], ""),
        ""
    );
    // Nor is anything lost in a buffer without limit.
    assert_eq!(
        changed(&[("rto_min = \"10ms\"\n", ""), ("{ kind = \"static\", per_port = \"512KB\" }", "\"unlimited\"")], ""),
        ""
    );
}

#[test]
fn acknowledgements_delayed_beyond_the_timeout() {
    let found = changed(&[("delayed_ack_timeout = \"1ms\"\n", "")], "");
    let expected = "transport.delayed_ack_timeout, line 8: \"200ms\" is not below rto_min (10ms): a sender whose last segment waits for its ACK times out \
                    for nothing; lower delayed_ack_timeout, or set ack_every = 1";
    assert_eq!(found, line(expected));
    assert_eq!(changed(&[("delayed_ack_timeout = \"1ms\"\n", "ack_every = 1\n")], ""), "");
}

#[test]
fn a_load_above_capacity() {
    let poisson = |load: &str, destinations: &str| {
        let entry = format!("[[traffic]]\nkind = \"poisson\"\nsizes = {{ kind = \"exponential\", mean = \"20KB\" }}\nload = {load}\nstop = \"20ms\"\n{destinations}");
        changed(&[], &entry)
    };
    assert_eq!(poisson("0.8", ""), "");
    assert!(poisson("1.5", "").contains("traffic[1].load, line 20: 1.5 is more than the network can carry"));
    // 30 % of eight links, all of it to one.
    let found = poisson("0.3", "destinations = [\"h0\"]\nsources = [\"!h0\"]\n");
    assert!(found.starts_with("s.toml: warning: traffic, line 13: asks more than a link carries: h0 receives 2."), "{found}");
    assert!(found.contains(" times its 10Gbps, about 2"), "{found}");
    assert!(
        found.ends_with("; queues and completion times grow with the run; lower the load, or its share for this host\n"),
        "{found}"
    );
}

#[test]
fn loads_that_are_too_much_together() {
    let entry = |name: &str| {
        format!("[[traffic]]\nname = \"{name}\"\nkind = \"poisson\"\nsizes = {{ kind = \"fixed\", size = \"20KB\" }}\nload = 0.7\nstop = \"20ms\"\n")
    };
    let found = changed(&[], &(entry("a") + &entry("b")));
    assert!(
        found.contains("traffic, line 13: asks more than a link carries") && found.contains("hosts are overloaded)"),
        "{found}"
    );
    assert_eq!(changed(&[], &entry("a")), "");
}

#[test]
fn a_sampling_period_above_the_bursts() {
    let found = changed(&[], "[telemetry]\nsample = \"1ms\"\n");
    let expected = "telemetry.sample, line 18: \"1ms\" is above 409600ns, in which a full buffer of 512KB drains at 10Gbps: bursts fall between two samples; \
                    a shorter period, or list ports in telemetry.queues to record each packet";
    assert_eq!(found, line(expected));
    assert_eq!(changed(&[], "[telemetry]\nsample = \"off\"\n"), "");
}

#[test]
fn a_run_that_ends_before_its_traffic_begins() {
    let found = warnings(&format!("duration = \"1ms\"\n{SOUND}start = \"2ms\"\n"));
    assert!(found.contains("traffic[0].start, line 18: 2ms is not before the end of the run, 1ms"), "{found}");
}

#[test]
fn first_windows_above_the_buffer() {
    let found =
        changed(&[("\"512KB\"", "\"100KB\""), ("rto_min", "initial_window = 10\nrto_min")], "[telemetry]\nsample = \"10us\"\n");
    let expected = "traffic[0], line 14: sends 121440B in the first windows of 8 flows to a port that holds 100KB: packets are lost in the first round";
    assert_eq!(found, line(expected));
    assert_eq!(
        changed(&[("\"512KB\"", "\"122KB\""), ("rto_min", "initial_window = 10\nrto_min")], "[telemetry]\nsample = \"10us\"\n"),
        ""
    );
}

#[test]
fn a_receive_window_below_the_product_of_rate_and_rtt() {
    let found = changed(&[("rto_min", "receive_window = { kind = \"fixed\", size = \"4KB\" }\nrto_min")], "");
    let expected = "transport.receive_window, line 11: of at most 4KB is below 8244B, what 10Gbps carry in an RTT of 6600ns: it limits the rate";
    assert_eq!(found, line(expected));
}

#[test]
fn choices_without_alternatives() {
    let found =
        changed(&[("[transport]\n", "routing = \"spray\"\nscheduling = { kind = \"strict\", classes = 2 }\n[transport]\n")], "");
    assert_eq!(
        found,
        line("switch.routing, line 8: has nothing to choose between: the topology has one shortest path for each pair of hosts")
            + &line("switch.scheduling, line 9: has nothing to choose between: all traffic is of class 0")
    );
    let fabric = [
        ("kind = \"single_switch\"\nhosts = 9", "kind = \"fat_tree\"\nk = 4"),
        ("[transport]\n", "routing = \"spray\"\n[transport]\n"),
    ];
    assert_eq!(changed(&fabric, ""), "");
}

#[test]
fn a_transport_that_no_traffic_uses() {
    let cbr = "kind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"";
    let found = changed(
        &[("kind = \"incast\"\nreceiver = \"h8\"", cbr), ("marking = { kind = \"threshold\", k = \"65 packets\" }\n", "")],
        "",
    );
    assert_eq!(found, line("transport, line 7: is used by no traffic"));
}

#[test]
fn red_that_drops_what_dctcp_wants_marked() {
    let red =
        |more: &str| changed(&[("{ kind = \"threshold\", k = \"65 packets\" }", &format!("{{ kind = \"red\"{more} }}"))], "");
    let expected = "switch.marking.hard_drop, line 7: true drops packets of DCTCP above its upper limit, where DCTCP takes marks; set hard_drop = false";
    assert!(red("").contains(expected), "{}", red(""));
    assert!(!red(", hard_drop = false").contains("hard_drop"));
}

#[test]
fn a_shortest_timeout_below_the_tick_of_its_clock() {
    let below = |more: &str| {
        changed(
            &[
                ("rto_min = \"10ms\"", &format!("ack_every = 1\nrto_min = \"200us\"{more}")),
                ("delayed_ack_timeout = \"1ms\"\n", ""),
            ],
            "",
        )
    };
    assert_eq!(
        below(""),
        line("transport.rto_min, line 12: \"200us\" is below clock_granularity (1ms): no RTO is shorter than that; lower clock_granularity too")
    );
    assert_eq!(below("\nclock_granularity = \"200us\""), "");
}

/// 65535 units of 8 B are 524280 B.
#[test]
fn a_length_register_that_is_too_short() {
    let watch = "[telemetry]\nsample = \"off\"\nqueues = [\"*->h8\"]\n";
    let stamped = |unit: &str| format!("{watch}registers = {{ {unit} }}\n");
    assert_eq!(changed(&[], &stamped("")), "", "512 KB fit");
    let found = changed(&[("\"512KB\"", "\"600KB\"")], &stamped(""));
    assert_eq!(found, line("telemetry.registers.unit, line 20: \"8B\" cannot report queues above 524280B (65535 units), and a port holds 600KB; \"10B\""));
    assert_eq!(changed(&[("\"512KB\"", "\"600KB\"")], &stamped("unit = \"10B\"")), "");
    let unlimited = [("{ kind = \"static\", per_port = \"512KB\" }", "{ kind = \"unlimited\" }")];
    let found = changed(&unlimited, &stamped(""));
    assert_eq!(found, line("telemetry.registers.unit, line 20: \"8B\" cannot report queues above 524280B (65535 units), and the buffer is unlimited"));
    // Only the ports that are watched matter.
    let own = |host: &str| format!("[[switch.except]]\nports = [\"*->{host}\"]\nbuffer = \"9MB\"\n{}", stamped(""));
    assert!(!changed(&[], &own("h7")).contains("registers"));
    assert!(changed(&[], &own("h8")).contains("a port holds 9MB; \"138B\""));
}

#[test]
fn a_time_register_that_starts_again_too_soon() {
    let stamped = "[telemetry]\nsample = \"off\"\nqueues = [\"*->h8\"]\nregisters = { tick = \"1ns\" }\n";
    let during = |duration: &str| warnings(&format!("duration = \"{duration}\"\n{SOUND}{stamped}"));
    assert_eq!(during("2s"), "");
    let found = during("3s");
    let expected = "telemetry.registers.tick, line 21: \"1ns\" makes the time register wrap around every 4.3 s: packets of a port that are half of that apart cannot be distinguished from earlier ones without the receiver's clock; a longer tick";
    assert_eq!(found, line(expected));
}

#[test]
fn datagrams_that_leave_no_room_for_a_stamp() {
    let stamped = "[telemetry]\nsample = \"off\"\nqueues = [\"*->h8\"]\nregisters = {}\n";
    let datagrams = |packet: u32| {
        format!("[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h8\"\nrate = \"1Gbps\"\nsize = \"1MB\"\npacket = \"{packet}B\"\n{stamped}")
    };
    let expected = "traffic[1].packet, line 23: \"1472B\" leaves no room for the stamp of telemetry.registers in a frame of Ethernet: its frames are longer than others can be; \"1464B\"";
    assert_eq!(changed(&[], &datagrams(1472)), line(expected));
    assert_eq!(changed(&[], &datagrams(1464)), "");
    assert_eq!(changed(&[], &datagrams(8972)), "", "a jumbo frame already");
    let both = changed(&[], &(datagrams(1465) + "[framing]\nip = \"v6\"\n"));
    assert!(
        both.contains("no room for the header of IPv6 and the stamp of telemetry.registers in") && both.contains("\"1444B\""),
        "{both}"
    );
}

#[test]
fn datagrams_that_leave_no_room_for_a_longer_header() {
    let datagrams = |packet: &str| {
        format!("[framing]\nip = \"v6\"\n[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h8\"\nrate = \"1Gbps\"\nsize = \"1MB\"\n{packet}")
    };
    let expected = "traffic[1].packet, line 19: \"1472B\" leaves no room for the header of IPv6 in a frame of Ethernet: its frames are longer than others can be; \"1452B\"";
    assert_eq!(changed(&[], &datagrams("")), line(expected), "the default is that of IPv4");
    assert_eq!(changed(&[], &datagrams("packet = \"1452B\"\n")), "");
    assert_eq!(changed(&[], &datagrams("packet = \"1473B\"\n")), "", "a jumbo frame over IPv4 already");
}

/// First windows, receive windows and the room of notifications count with what IPv6 leaves of a frame.
#[test]
fn warnings_follow_the_version_of_ip() {
    let first = |ip: &str, buffer: &str| {
        let buffer = format!("per_port = \"{buffer}\"");
        changed(
            &[("per_port = \"512KB\"", &buffer), ("marking", "# marking"), ("dctcp", "newreno")],
            &format!("[telemetry]\nsample = \"off\"\n[framing]\nip = \"{ip}\"\n"),
        )
    };
    // Eight windows of three segments of 1448 B, or of 1428 B, in frames of 1518 B.
    let short = "sends 36432B in the first windows of 8 flows to a port that holds 36431B";
    for ip in ["v4", "v6"] {
        assert!(first(ip, "36431B").contains(short), "{}", first(ip, "36431B"));
        assert_eq!(first(ip, "36432B"), "");
    }
    // Smaller segments are smaller frames: 1000 B and 90 B of headers, four of them (RFC 5681), of 20 B less over IPv4.
    for (ip, fits) in [("v4", "34240B"), ("v6", "34880B")] {
        let small = |buffer: &str| {
            let buffer = format!("per_port = \"{buffer}\"");
            let more = format!("[telemetry]\nsample = \"off\"\n[framing]\nip = \"{ip}\"\n");
            changed(
                &[("per_port = \"512KB\"", &buffer), ("marking", "# marking"), ("congestion_control = \"dctcp\"", "mss = 1000")],
                &more,
            )
        };
        assert_eq!(small(fits), "");
        assert!(small("34239B").contains("packets are lost in the first round"));
    }
    let max_frame = |frame: &str| {
        let pdn = format!("[switch]\nmechanisms.pdn = {{ max_frame = \"{frame}\" }}");
        changed(&[("[switch]", &pdn), ("rto_min", "drop_notification = true\nrto_min")], "[framing]\nip = \"v6\"\n")
    };
    assert_eq!(max_frame("1518B"), "");
    assert!(max_frame("1517B").contains("it takes 1518 B with it"), "{}", max_frame("1517B"));
}

#[test]
fn a_trigger_that_is_never_set_off() {
    let keep = |above: &str| {
        format!("[telemetry]\nsample = \"off\"\nqueues = [\"*->h8\"]\nkeep = {{ kind = \"around\", above = \"{above}\" }}\n")
    };
    assert_eq!(changed(&[], &keep("511KB")), "");
    let expected = "telemetry.keep.above, line 20: \"512KB\" is never crossed: a port holds at most 512KB; a lower threshold, or keep = \"all\"";
    assert_eq!(changed(&[], &keep("512KB")), line(expected));
}

#[test]
fn rings_that_take_much_memory() {
    let keep = |records: u64| {
        format!(
            "[telemetry]\nsample = \"off\"\nqueues = [\"*->h8\", \"*->h7\"]\nkeep = {{ kind = \"last\", records = {records} }}\n"
        )
    };
    assert_eq!(changed(&[], &keep(12_500_000)), "");
    let expected = "telemetry.keep.records, line 20: 50000000 holds up to 100000000 records of 2 ports in memory, about 7 GB; fewer records, or fewer ports in telemetry.queues";
    assert_eq!(changed(&[], &keep(50_000_000)), line(expected));
}

/// What stamps cost is said beside the warnings.
#[test]
fn the_cost_of_stamps_is_reported() {
    let stamped = "[telemetry]\nsample = \"off\"\nqueues = [\"*->h8\"]\nregisters = {}\n";
    let notes = |text: &str| Scenario::from_toml(text, Path::new(".")).expect("a sound scenario").notes().join("\n");
    assert_eq!(notes(SOUND), "");
    assert_eq!(
        notes(&format!("{SOUND}{stamped}")),
        "telemetry.registers takes 8 B of every frame: with transport default, a full segment carries 1440 B instead of 1448 B, 0.55 % less; other frames are 8 B longer"
    );
    let small = SOUND.replace("rto_min", "mss = 1000\nrto_min");
    assert!(notes(&format!("{small}{stamped}")).contains("full segments still carry 1000 B"));
}

#[test]
fn drop_notifications_with_one_end_only() {
    let pdn = |more: &str| format!("[switch]\nmechanisms.pdn = {{ {} }}\n", more.trim_start_matches(", "));
    let found = changed(&[("[switch]\n", &pdn(""))], "");
    assert_eq!(found, "s.toml: warning: switch.mechanisms.pdn, line 6: no transport in use acts on notifications; set drop_notification = true at a transport\n");
    let notified = ("kind = \"tcp\"", "kind = \"tcp\"\ndrop_notification = true");
    let found = changed(&[notified], "");
    assert_eq!(
        found,
        "s.toml: warning: transport.drop_notification, line 10: true acts on signals that no switch sends; add [switch.mechanisms.pdn]\n"
    );
    assert_eq!(changed(&[notified, ("[switch]\n", &pdn(""))], ""), "");
    let found = changed(&[notified, ("[switch]\n", &pdn(", loss = 1.0"))], "");
    assert!(found.contains("switch.mechanisms.pdn.loss, line 6: 1.0 loses every notification: no sender is notified"), "{found}");
    let found = changed(&[notified, ("[switch]\n", &pdn(", unaware = [\"h*\"]"))], "");
    assert!(
        found.contains("switch.mechanisms.pdn.unaware, line 6: names every host: no sender is notified of a drop"),
        "{found}"
    );
    let capture = "[telemetry]\nsample = \"off\"\ncapture = { hosts = [\"h8\"], snap = \"1513B\" }\n";
    let found = changed(&[notified, ("[switch]\n", &pdn(""))], capture);
    assert!(
        found.contains("cuts control messages off: they are the end of a frame, and frames with one are up to 1514 B long"),
        "{found}"
    );
    assert_eq!(changed(&[notified, ("[switch]\n", &pdn(""))], &capture.replace("1513", "1514")), "");
    let found = changed(&[notified, ("[switch]\n", &pdn(", max_frame = \"1500B\""))], "");
    assert!(found.contains("switch.mechanisms.pdn.max_frame, line 6: \"1500B\" has no room for a notification in a full frame of transport default: it takes 1518 B with it"), "{found}");
    let unlimited = ("{ kind = \"static\", per_port = \"512KB\" }", "\"unlimited\"");
    let found = changed(&[notified, ("[switch]\n", &pdn("")), unlimited], "");
    assert!(
        found.contains(
            "switch.mechanisms.pdn, line 6: has no drops to notify of: with an unlimited buffer nothing is dropped for want of room"
        ),
        "{found}"
    );
}

#[test]
fn trimming_with_one_end_only() {
    let trims = ("[switch]\n", "[switch]\nmechanisms.trimming = {}\n");
    let found = changed(&[trims], "");
    assert_eq!(
        found,
        "s.toml: warning: switch.mechanisms.trimming, line 6: no transport in use acts on trimmed packets; set trim_nack = true at a transport\n"
    );
    let answers = ("kind = \"tcp\"", "kind = \"tcp\"\ntrim_nack = true\ndrop_resend = \"window\"");
    let found = changed(&[answers], "");
    assert_eq!(
        found,
        "s.toml: warning: transport.trim_nack, line 10: true acts on signals that no switch sends; add [switch.mechanisms.trimming]\n"
    );
    assert_eq!(changed(&[answers, trims], ""), "");
    let unlimited = ("{ kind = \"static\", per_port = \"512KB\" }", "\"unlimited\"");
    let found = changed(&[answers, trims, unlimited], "");
    assert!(found.contains("switch.mechanisms.trimming, line 6: has nothing to trim: with an unlimited buffer"), "{found}");
}

#[test]
fn more_packets_than_anyone_waits_for() {
    // Eight senders, 1448 B of each packet.
    let remedy = "a shorter duration or an earlier stop, a lower load, fewer or smaller flows";
    let found = changed(&[("\"100KB\"", "\"2TB\"")], "[telemetry]\nsample = \"off\"\n");
    let expected = format!("traffic, line 13: asks for about 1.1e10 packets: the run will take hours, or days; {remedy}");
    assert!(found.contains(&line(&expected)), "{found}");
    assert!(!changed(&[("\"100KB\"", "\"1TB\"")], "").contains("packets: the run"));
    // In a second the receiver's link carries a million.
    assert_eq!(changed(&[("\"100KB\"", "\"2TB\""), ("name = \"x\"", "name = \"x\"\nduration = \"1s\"")], ""), "");
    // More flows than are sampled: 50,000 of 10 million.
    let poisson = "[[traffic]]\nkind = \"poisson\"\nper_second = 1000000\nstop = \"10s\"\nsizes = { kind = \"fixed\", size = \"2MB\" }\n[telemetry]\nsample = \"off\"\n";
    assert!(changed(&[], poisson).contains("asks for about 1.4e10 packets"), "{}", changed(&[], poisson));
    // Datagrams, and flows that wait for others.
    let cbr = "[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"10Gbps\"\nstop = \"20000s\"\n[telemetry]\nsample = \"off\"\n";
    assert!(changed(&[], cbr).contains("asks for about 1.7e10 packets"), "{}", changed(&[], cbr));
    let later = "[[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsize = \"2TB\"\nafter = [\"incast\"]\n[telemetry]\nsample = \"off\"\n";
    assert!(changed(&[], later).contains("asks for about 1.1e10 packets"), "{}", changed(&[], later));
}

#[test]
fn tables_that_fill_the_disk() {
    // 3.5e8 packets over two links, half as many acknowledgments, and frames of 1.23 periods.
    let busy = [("\"100KB\"", "\"62500MB\"")];
    let samples = "telemetry.sample, line 18: \"1us\" makes up to 2.3e9 rows for 18 ports in 400.000 s: ports.parquet will have about 23.1 GB; a longer period, or \"off\"";
    assert_eq!(changed(&busy, "[telemetry]\nsample = \"1us\"\n"), line(samples));
    assert_eq!(changed(&[("\"100KB\"", "\"6250MB\"")], "[telemetry]\nsample = \"1us\"\n"), "");
    // Long and idle: what is written is what happens.
    assert_eq!(changed(&[("name = \"x\"", "name = \"x\"\nduration = \"100s\"")], "[telemetry]\nsample = \"1us\"\n"), "");
    // Each packet crosses the watched port once, and no acknowledgment does.
    let watched = "[telemetry]\nsample = \"off\"\nqueues = [\"*->h8\"]\n";
    let found = changed(&[("\"100KB\"", "\"100GB\"")], watched);
    let records = "telemetry.queues, line 19: records about 5.5e8 packets at 1 port: queues.parquet will have about 5.8 GB; fewer ports, or telemetry.keep of kind \"last\" or \"around\"";
    assert_eq!(found, line(records));
    let stamped = changed(&[("\"100KB\"", "\"50GB\"")], &format!("{watched}registers = {{}}\n"));
    assert!(stamped.contains("packets at 1 port: queues.parquet and stamps.parquet will have about 5.8 GB"), "{stamped}");
    assert_eq!(changed(&[("\"100KB\"", "\"100GB\"")], &format!("{watched}keep = \"last\"\n")), "");
    assert_eq!(changed(&[("\"100KB\"", "\"100GB\"")], "[telemetry]\nsample = \"off\"\nqueues = [\"*->h0\"]\n"), "");
    // Packets of one sender in eight, of all flows.
    assert_eq!(changed(&[("\"100KB\"", "\"50GB\"")], "[telemetry]\nsample = \"off\"\nhosts = [\"h0\"]\n"), "");
    let followed = changed(&[("\"100KB\"", "\"100GB\"")], "[telemetry]\nsample = \"off\"\nhosts = [\"*\"]\n");
    let rows = "telemetry.hosts, line 19: follows about 5.5e8 packets of data: hosts.parquet, segments.parquet and hops.parquet will have about 38.1 GB; fewer flows";
    assert_eq!(followed, line(rows));
    // A row for each flow.
    let many = "[[traffic]]\nkind = \"poisson\"\nper_second = 100000000\nstop = \"1s\"\nsizes = { kind = \"fixed\", size = \"1KB\" }\n[telemetry]\nsample = \"off\"\n[engine]\nmax_flows = 200000000\n";
    let found = changed(&[], many);
    assert!(found.contains("traffic, line 13: asks for about 1.0e8 flows: flows.parquet will have about 4.0 GB"), "{found}");
}

/// A setting of all switches that entries replace at every port, or at every switch, holds nowhere.
#[test]
fn settings_that_are_replaced_everywhere_have_no_effect() {
    let everywhere = "[[switch.except]]\nswitches = [\"*\"]\n";
    let replaced = |entry: &str| changed(&[], &format!("{everywhere}{entry}"));
    let marking = replaced("marking = { kind = \"threshold\", k = \"20 packets\" }\n");
    assert_eq!(marking, "s.toml: warning: switch.marking, line 7: has no effect: switch.except replaces it everywhere\n");
    let own = [("per_port = \"512KB\"", "per_port = \"600KB\"")]; // 512 KB are the default: given or not
    let buffer = changed(&own, &format!("{everywhere}buffer = \"400KB\"\n"));
    assert_eq!(buffer, "s.toml: warning: switch.buffer, line 6: has no effect: switch.except replaces it everywhere\n");
    // The default of scheduling was not given; below, ports are left to which marking applies.
    assert!(!replaced("scheduling = \"fifo\"\n").contains("everywhere"));
    let some = "[[switch.except]]\nports = [\"*->h0\"]\nmarking = { kind = \"threshold\", k = \"20 packets\" }\n";
    assert_eq!(changed(&[], some), "");
    let pdn = "[switch.mechanisms.pdn]\n";
    let found = changed(&[], &format!("{pdn}{everywhere}mechanisms = {{}}\n"));
    assert!(
        found.contains("switch.mechanisms, line") && found.contains("has no effect: switch.except replaces it everywhere"),
        "{found}"
    );
}

#[test]
fn a_bound_for_detours_that_no_header_can_state() {
    let with = |room: &str| {
        let text = format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[switch.mechanisms.rimm]\nroom = \"{room}\"\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h3\"\nsize = \"10KB\"\n"
        );
        let scenario = fanin_scenario::Scenario::from_toml(&text, std::path::Path::new(".")).expect("sound");
        scenario.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let said = "switch.mechanisms.rimm.room, line 7: \"6MB\" has no effect: no header can state more than 5242800B, 65535 cells of switch.cell";
    assert!(with("6MB").contains(said), "{}", with("6MB"));
    let said = "is less than a frame of 1518 B: a neighbour in whose queue one waits gets no detours; more than 1518 B";
    assert!(with("1517B").contains(said) && !with("1518B").contains("rimm.room"), "{}", with("1517B"));
    assert!(!with("5MB").contains("rimm.room"), "{}", with("5MB"));
}

/// Detours that nobody takes: the neighbours are hosts, or do not run what they must, or the time to live is too short.
#[test]
fn detours_without_a_neighbour_or_hops() {
    let on = |topology: &str, switch: &str| {
        warnings(&format!(
            "[topology]\n{topology}\n[switch]\n{switch}\n[host]\nreorder = {{}}\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h3\"\nsize = \"10KB\"\n"
        ))
    };
    let fabric = "kind = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2";
    let single = "kind = \"single_switch\"\nhosts = 4";
    let small = |key: &str, more: &str| match key {
        "rimm" => format!("buffer = {{ kind = \"static\", per_port = \"2MB\" }}\nmechanisms.rimm = {{ {more} }}"),
        _ => format!("mechanisms.{key} = {{ {more} }}"),
    };
    for key in ["rimm", "pabo", "dibs", "vertigo"] {
        let found = on(single, &small(key, ""));
        assert!(
            found.contains(&format!("switch.mechanisms.{key}")) && found.contains("has no effect: no neighbour is a switch"),
            "{found}"
        );
        assert!(!on(fabric, &small(key, "")).contains("no neighbour"), "{}", on(fabric, &small(key, "")));
    }
    assert!(!on(single, &small("vertigo", "choices = 0")).contains("no neighbour"), "nothing is deflected");
    for key in ["rimm", "pabo"] {
        let found = on(fabric, &small(key, "unaware = [\"spine*\"]"));
        let expected = format!(
            "has no effect: no neighbour has {key}, so that none gets packets; {key} at both ends of a link between switches"
        );
        assert!(found.contains(&expected), "{found}");
        let ttl = |ttl: u8| on(fabric, &format!("ttl = {ttl}\n{}", small(key, "")));
        let expected = "has no effect: a packet must have 8 hops left, and hosts send with switch.ttl = 8; switch.ttl = 9 at the first switch of a way, \
                        one more for each further one, and two for each further detour";
        assert!(ttl(8).contains(expected) && !ttl(9).contains("hops"), "{}", ttl(8));
    }
    // Unaware neighbours get packets of these.
    assert!(["dibs", "vertigo"].iter().all(|key| !on(fabric, &small(key, "unaware = [\"spine*\"]")).contains("no neighbour")));
    let found = on(&fabric.replace("leaves = 2", "leaves = 3"), &small("rimm", "unaware = [\"spine1\", \"leaf1\", \"leaf2\"]"));
    assert!(!found.contains("no neighbour"), "leaf0 and spine0 have each other: {found}");
}

/// Queues by what is left turn flows around, which hosts should put right.
#[test]
fn queues_that_reorder_and_hosts_that_do_not_put_in_order() {
    let vertigo = |keys: &str, host: &str| {
        let text = format!("[switch]\nmechanisms.vertigo = {{ {keys} }}\n");
        changed(&[("[switch]\n", &text)], host)
    };
    let said = "\"least_left\" lets packets of a flow overtake each other, and hosts do not put them in order; host.reorder = { timeout = \"360us\" }";
    assert!(vertigo("", "").contains(said), "{}", vertigo("", ""));
    assert!(!vertigo("", "[host]\nreorder = {}\n").contains("overtake"));
    assert!(!vertigo("serve = \"arrival\"", "").contains("overtake"));
}

/// RoCEv2 with DCQCN in a lossless class, that nothing is to be said against.
const ROCE: &str = r#"name = "x"
[topology]
kind = "single_switch"
hosts = 9
[switch]
buffer = "unlimited"
marking = { kind = "threshold", k = "65 packets" }
mechanisms.pfc = { memory = "12MB", classes = [0] }
[transport]
kind = "roce"
congestion_control = "dcqcn"
[[traffic]]
kind = "incast"
receiver = "h8"
size = "100KB"
"#;

#[test]
fn roce_where_packets_are_dropped() {
    assert_eq!(warnings(ROCE), "");
    let found = warnings(&edited(ROCE, &[("classes = [0]", "classes = [1]")], ""));
    let expected = "is in class 0, which may drop packets: after each loss all packets behind it are retransmitted; switch.mechanisms.pfc with class 0, or recovery = \"selective_repeat\"";
    assert!(found.contains(expected), "{found}");
    let dropping = "buffer = { kind = \"static\", per_port = \"200KB\" }";
    let no_pfc = [("buffer = \"unlimited\"", dropping), ("mechanisms.pfc = { memory = \"12MB\", classes = [0] }\n", "")];
    assert!(warnings(&edited(ROCE, &no_pfc, "")).contains(expected));
    let repeats = [no_pfc[0], no_pfc[1], ("kind = \"roce\"", "kind = \"roce\"\nrecovery = \"selective_repeat\"")];
    assert!(!warnings(&edited(ROCE, &repeats, "")).contains("may drop"));
    // Queues without bound drop nothing.
    assert!(!warnings(&edited(ROCE, &no_pfc[1..], "")).contains("may drop"));
}

#[test]
fn dcqcn_without_marks() {
    let found = warnings(&edited(ROCE, &[("marking = { kind = \"threshold\", k = \"65 packets\" }\n", "")], ""));
    assert!(found.contains("uses ECN, and no switch marks"), "{found}");
}
