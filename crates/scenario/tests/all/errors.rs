//! Wrong scenarios and the exact words that they are refused with.

use crate::common::{edited, errors, folder, lines, wrong, SOUND};
use fanin_scenario::{render, Scenario};
use std::path::Path;

const TOPOLOGIES: &str = "single_switch, dumbbell, racks, leaf_spine, fat_tree, chain, file";
const SIZE: &str = "a size such as \"1500B\", \"512KB\" (1000), \"64KiB\" (1024)";

#[test]
fn the_scenario_without_changes_is_sound() {
    assert_eq!(errors(SOUND), "sound");
}

#[test]
fn tcp_is_the_transport_that_needs_no_kind() {
    let scenario = |text: &str| match Scenario::from_toml(text, &folder()) {
        Ok(scenario) => scenario.doc().clone(),
        Err(problems) => panic!("{}", render(&problems, "s.toml")),
    };
    assert_eq!(scenario(&edited(SOUND, &[("kind = \"tcp\"\n", "")], "")), scenario(SOUND));
    assert_eq!(
        wrong(&[("kind = \"tcp\"", "rto_mni = \"1ms\"")], "[transports.web]\nkind = \"udp\"\n").lines().count(),
        2,
        "keys are known without it, other kinds are not"
    );
}

#[test]
fn names_of_other_tools_are_understood() {
    let switch = "[switch]\nbuffer = { kind = \"shared\", size = \"1MB\" }\nmarking = { kind = \"ecn\", k = \"30KB\" }\n";
    assert_eq!(
        wrong(&[], switch),
        lines(&[
            "switch.buffer, line 14: \"shared\" is not a known kind; accepted: static, dynamic, unlimited; did you mean 'dynamic'? It is \
             one buffer that all ports share, each up to alpha times what is free",
            "switch.marking, line 15: \"ecn\" is not a known kind; accepted: none, threshold, red, s_ecn, codel, front_drop, external; did you \
             mean 'threshold', a step at k as DCTCP has it, or 'red', by chance from the average queue?",
        ])
    );
    for (given, meant) in [("dctcp", "threshold"), ("wred", "red"), ("fq_codel", "codel"), ("sECN", "s_ecn")] {
        let text = wrong(&[], &format!("[switch]\nmarking = \"{given}\"\n"));
        assert!(text.contains(&format!("did you mean '{meant}'")), "{text}");
    }
    for (given, meant) in [("drop_tail", "static"), ("dt", "dynamic"), ("infinite", "unlimited")] {
        let text = wrong(&[], &format!("[switch]\nbuffer = \"{given}\"\n"));
        assert!(text.contains(&format!("did you mean '{meant}'")), "{text}");
    }
}

#[test]
fn an_unknown_key_says_which_kind_is_set_and_which_has_it() {
    let found = wrong(&[], "[switch]\nmarking = { kind = \"threshold\", k = \"5 packets\", max_p = 0.1 }\n");
    let expected =
        "switch.marking.max_p, line 14: \"max_p\" is not a known key of kind \"threshold\"; accepted: k, at; kind \"red\" has it";
    assert_eq!(found, lines(&[expected]));
    let found = wrong(&[("kind = \"incast\"", "kind = \"incasts\""), ("receiver", "zzz")], "");
    let keys = found.lines().find(|line| line.contains("zzz")).and_then(|line| line.split("accepted: ").nth(1)).unwrap();
    let keys: Vec<&str> = keys.split(", ").collect();
    assert!(keys.contains(&"fanout") && keys.contains(&"receiver"), "{found}");
    assert!(keys.iter().all(|key| keys.iter().filter(|other| *other == key).count() == 1), "{found}");
}

#[test]
fn an_amount_without_unit_is_offered_in_all_that_it_can_count() {
    let found = wrong(&[], "[switch.mechanisms.rimm]\nalpha = 20000\n");
    let expected = "write \"20000KB\" or \"20000 packets\" or \"20000 cells\" whichever you mean";
    assert!(found.contains(expected), "{found}");
}

#[test]
fn mistakes_in_the_topology_hide_none_in_the_traffic() {
    let found = wrong(&[("hosts = 4", "hosts = 1"), ("size = \"10KB\"", "size = \"10KB\"\ntransport = \"nope\"")], "");
    assert_eq!(
        found,
        lines(&[
            "topology.hosts, line 4: 1 is out of range; accepted: from 2 to 65535",
            "traffic[0].transport, line 13: \"nope\" is not a known transport; accepted: default",
        ]),
        "and nothing of h3, of which nobody knows"
    );
}

#[test]
fn a_mistake_in_telemetry_hides_none_beside_it() {
    let port = "telemetry.queues[0], line 14: \"sw->h7\" is no port";
    for (more, beside) in [
        ("queues = [\"sw->h7\", 5]\n", "telemetry.queues[1], line 14: 5 is an integer"),
        ("queues = [\"sw->h7\"]\nkeep = \"x\"\n", "telemetry.keep, line 15: \"x\" is not a known kind"),
        ("queues = [\"sw->h7\"]\nsample = 3\n", "telemetry.sample, line 15: 3 "),
        ("queues = [\"sw->h7\"]\n[switch]\nports = 3\n", "switch.ports, line 16: \"ports\" is not a known key"),
    ] {
        let found = wrong(&[], &format!("[telemetry]\n{more}"));
        assert!(found.contains(port) && found.contains(beside), "{found}");
        assert_eq!(found.lines().count(), 2, "{found}");
    }
}

#[test]
fn a_sweep_is_not_a_scenario() {
    let found = wrong(&[], "[sweep]\nseeds = 3\n");
    assert!(found.contains("\"sweep\" is not a known key"), "{found}");
    assert!(found.trim_end().ends_with("; fanin sweep runs a file with a [sweep] table"), "{found}");
}

#[test]
fn an_unknown_key() {
    assert_eq!(
        wrong(&[("receiver", "reciever")], "[swich]\n"),
        lines(&[
            "traffic[0].receiver, line 9: is missing",
            "traffic[0].reciever, line 11: \"reciever\" is not a known key of kind \"incast\"; accepted: name, transport, class, start, after, delay, kind, \
             receiver, senders, count, flows_per_sender, size, total, request, jitter, repetitions, interval, gap; did you mean 'receiver'?",
            "swich, line 13: \"swich\" is not a known key; accepted: name, description, seed, duration, topology, framing, switch, host, \
             transport, transports, traffic, events, failover, telemetry, engine; did you mean 'switch'?",
        ])
    );
}

#[test]
fn wrong_and_missing_units() {
    assert_eq!(
        wrong(&[("\"10KB\"", "\"10kilo\""), ("hosts = 4", "hosts = 4\nlink = { rate = \"10gbps\", delay = 5 }")], ""),
        lines(&[
            "topology.link.rate, line 5: \"10gbps\" has the unknown unit 'gbps'; accepted: a bit rate such as \"10Gbps\", \"400 Gb/s\", \
             \"100Mbps\"; did you mean 'Gbps'?",
            "topology.link.delay, line 5: 5 has no unit; accepted: a duration such as \"10us\", \"1.5ms\", \"200ns\"; write \"5us\" if that is \
             what you mean",
            &format!("traffic[0].size, line 13: \"10kilo\" has the unknown unit 'kilo'; accepted: {SIZE}; units: B, KB, MB, GB, TB, KiB, MiB, GiB, kB, bytes, byte"),
        ])
    );
}

#[test]
fn missing_files() {
    let missing = |name: &str| format!("\"{name}\" cannot be read: No such file or directory (os error 2)");
    let found = wrong(&[("kind = \"single_switch\"\nhosts = 4", "kind = \"file\"\npath = \"gone.graphml\"")], "");
    assert!(found.starts_with(&format!("s.toml: topology.path, line 4: {}", missing("gone.graphml"))), "{found}");
    let found = wrong(
        &[],
        "[[traffic]]\nkind = \"poisson\"\nload = 0.1\nstop = \"1ms\"\nsizes = { kind = \"file\", path = \"gone.csv\" }\n",
    );
    assert!(found.starts_with("s.toml: traffic[1].sizes.path, line 17: \"gone.csv\" "), "{found}");
    assert!(found.contains("No such file or directory"), "{found}");
}

#[test]
fn a_host_that_does_not_exist() {
    assert_eq!(
        wrong(&[("\"h3\"", "\"h7\"")], "senders = [\"h1..h9\"]\n"),
        lines(&[
            "traffic[0].receiver, line 11: \"h7\" is not a known host; accepted: h0, h1, h2, h3; did you mean 'h0'?",
            "traffic[0].senders[0], line 13: \"h9\" is not a known host; accepted: h0, h1, h2, h3; did you mean 'h0'?",
        ])
    );
}

#[test]
fn a_rate_of_zero() {
    assert_eq!(
        wrong(&[("hosts = 4", "hosts = 4\nlink = { rate = \"0bps\" }")], ""),
        lines(&["topology.link.rate, line 5: \"0bps\" is out of range; accepted: from 1Kbps to 4Tbps"])
    );
}

#[test]
fn a_negative_size_and_a_negative_number() {
    assert_eq!(
        wrong(&[("\"10KB\"", "\"-10KB\""), ("hosts = 4", "hosts = -4")], ""),
        lines(&[
            "topology.hosts, line 4: -4 is negative; accepted: an integer from 2 to 65535",
            &format!("traffic[0].size, line 12: \"-10KB\" is negative; accepted: {SIZE}"),
        ])
    );
}

#[test]
fn a_distribution_that_is_not_monotone() {
    assert_eq!(
        wrong(&[], "[[traffic]]\nkind = \"poisson\"\nload = 0.1\nstop = \"1ms\"\nsizes = { kind = \"file\", path = \"falling.csv\" }\n"),
        lines(&["traffic[1].sizes.path (falling.csv), line 4: \"0.4\" is a smaller probability than the 0.5 before it; accepted: probabilities that never decrease"])
    );
}

#[test]
fn overlapping_ids() {
    let flow = |from: &str, to: &str| format!("{{ id = \"a\", src = \"{from}\", dst = \"{to}\", size = \"1KB\" }}");
    let added = format!("[[traffic]]\nkind = \"flows\"\nflows = [{}, {}]\n[[traffic]]\nname = \"incast\"\nkind = \"permutation\"\nsize = \"1KB\"\n", flow("h0", "h1"), flow("h1", "h2"));
    assert_eq!(
        wrong(&[], &added),
        lines(&[
            "traffic[1].flows[1].id, line 15: \"a\" is also the name of another entry or flow; accepted: ids that differ",
            "traffic[2].name, line 17: \"incast\" is also the name of another entry or flow; accepted: names that differ",
        ])
    );
}

#[test]
fn a_topology_with_a_hole() {
    let found = wrong(&[("kind = \"single_switch\"\nhosts = 4", "kind = \"file\"\npath = \"hole.json\"")], "");
    assert!(found.contains("s.toml: topology.path (hole.json)"), "{found}");
    assert!(
        found.contains(
            "\"h2\" is a host that cannot be reached: the network has 2 unconnected parts; accepted: a connected network"
        ),
        "{found}"
    );
}

#[test]
fn a_thousand_million_flows() {
    let fewer =
        "accepted: at most 50000000 in a run; ask for fewer flows, a shorter run or a lower load, or raise the limit on flows";
    assert_eq!(
        wrong(
            &[("size = \"10KB\"", "size = \"10KB\"\nrepetitions = 1000000000\ngap = \"1us\"")],
            "[[traffic]]\nkind = \"poisson\"\nsizes = { kind = \"fixed\", size = \"1B\" }\nper_second = 1e9\nstop = \"1s\"\n"
        ),
        lines(&[
            &format!("traffic[0].repetitions, line 13: 3000000000 flows exceed the limit; {fewer}"),
            &format!("traffic[1].per_second, line 18: 1000000000 flows exceed the limit; {fewer}"),
        ])
    );
}

#[test]
fn wrong_kinds() {
    assert_eq!(
        wrong(&[("single_switch", "single_swich"), ("\"incast\"", "\"incest\"")], ""),
        lines(&[
            &format!("topology, line 3: \"single_swich\" is not a known kind; accepted: {TOPOLOGIES}; did you mean 'single_switch'?"),
            "traffic[0], line 10: \"incest\" is not a known kind; accepted: flows, incast, query, poisson, permutation, all_to_all, hot_spot, collective, cbr, \
             on_off, file; did you mean 'incast'?",
        ])
    );
}

#[test]
fn wrong_types() {
    assert_eq!(
        errors("topology = 3\ntraffic = \"x\"\nseed = -1\nname = 5\ntransport = { kind = \"tcp\", sack = \"yes\" }\n"),
        lines(&[
            &format!("topology, line 1: 3 is an integer; accepted: one of {TOPOLOGIES}, or a table with that `kind`"),
            "traffic, line 2: \"x\" is a string; accepted: a list",
            "seed, line 3: -1 is negative; accepted: an integer from 0 to 9223372036854775807",
            "name, line 4: 5 is an integer; accepted: a string",
            "transport.sack, line 5: \"yes\" is a string; accepted: true or false",
        ])
    );
}

#[test]
fn numbers_that_are_none() {
    assert_eq!(
        wrong(&[], "[[traffic]]\nkind = \"poisson\"\nsizes = \"web-search\"\nload = nan\nstop = \"1ms\"\n"),
        lines(&["traffic[1].load, line 16: NaN is not finite; accepted: a finite number"])
    );
}

#[test]
fn a_key_given_twice_beside_other_mistakes() {
    assert_eq!(
        wrong(&[("hosts = 4", "hosts = 4\nhosts = 5"), ("\"h3\"", "h3"), ("\"10ms\"", "\"10\"")], ""),
        lines(&[
            "line 5: \"hosts\" is given twice; accepted: each key once",
            "transport.rto_min, line 8: \"10\" has no unit; accepted: a duration such as \"10us\", \"1.5ms\", \"200ns\"; write \"10us\" if that is what \
             you mean",
            "line 12: \"h3\" is neither a number, true nor false; accepted: text in quotes, for example \"10us\"",
        ])
    );
}

#[test]
fn nothing_at_all() {
    let empty = "the scenario is empty; accepted: at least [topology] and [[traffic]]; docs/scenario.md begins with an example";
    assert_eq!(errors(""), lines(&[empty]));
    assert_eq!(errors("# a comment\n\n"), lines(&[empty]));
    assert_eq!(errors("[topology]\nkind = \"chain\"\n"), lines(&["traffic, line 1: is missing"]));
    let no_traffic = "traffic, line 1: is empty: there is nothing to simulate; accepted: at least one [[traffic]] table";
    assert_eq!(errors("traffic = []\n[topology]\nkind = \"chain\"\n"), lines(&[no_traffic]));
}

#[test]
fn a_file_that_cannot_be_read() {
    let problems = Scenario::load(Path::new("/nowhere/s.toml")).unwrap_err();
    assert_eq!(
        render(&problems, "s.toml"),
        lines(&["\"/nowhere/s.toml\" cannot be read: No such file or directory (os error 2)"])
    );
    let problems = Scenario::load(&folder().join("not-text.toml")).unwrap_err();
    assert!(render(&problems, "s.toml").contains("cannot be read: byte 8 is not UTF-8"));
}

/// To open a pipe that nobody writes into waits for ever: it is refused before, whichever input names it.
#[test]
fn a_pipe_in_place_of_a_file() {
    let dir = std::env::temp_dir().join(format!("fanin-pipe-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let pipe = dir.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (sender, answer) = std::sync::mpsc::channel();
    let here = dir.clone();
    std::thread::spawn(move || {
        let with = |traffic: &str, topology: &str| {
            let text = format!("[topology]\n{topology}\n[[traffic]]\n{traffic}\n");
            render(&Scenario::from_toml(&text, &here).unwrap_err(), "s.toml")
        };
        let incast = "kind = \"incast\"\nreceiver = \"h0\"\nsize = \"1KB\"";
        let single = "kind = \"single_switch\"";
        let flows = |format: &str| with(&format!("kind = \"file\"\nformat = {{ path = \"pipe\", {format} }}"), single);
        let sizes = "kind = \"poisson\"\nload = 0.1\nstop = \"1ms\"\nsizes = { kind = \"file\", path = \"pipe\" }";
        sender.send(with(incast, "kind = \"file\"\nformat = \"hpcc\"\npath = \"pipe\"")).unwrap();
        sender.send(with(sizes, single)).unwrap();
        sender.send(flows("kind = \"csv\"")).unwrap();
        sender.send(flows("kind = \"hpcc_flow\"")).unwrap();
        sender.send(flows("kind = \"htsim_cm\", time_unit = \"ps\"")).unwrap();
        sender.send(render(&Scenario::load(&here.join("pipe")).unwrap_err(), "s.toml")).unwrap();
    });
    for (input, path) in [
        ("topology", "topology.path"),
        ("sizes", "traffic[0].sizes.path"),
        ("csv", "traffic[0].format.path"),
        ("hpcc_flow", "traffic[0].format.path"),
        ("htsim_cm", "traffic[0].format.path"),
        ("scenario", "it is a pipe or a device"),
    ] {
        let found = answer.recv_timeout(std::time::Duration::from_secs(20)).expect(input);
        let named = found.contains("is not a regular file") || input == "scenario";
        assert!(named && found.contains(path) && found.contains(&pipe.display().to_string()), "{input}: {found}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_transport_that_does_not_exist() {
    assert_eq!(
        wrong(&[], "transport = \"dctp\"\n[transports.dctcp]\nkind = \"tcp\"\n[transports.default]\nkind = \"tcp\"\n"),
        lines(&[
            "traffic[0].transport, line 13: \"dctp\" is not a known transport; accepted: default, dctcp; did you mean 'dctcp'?",
            "transports.default, line 16: is the name of [transport]; accepted: any other name; [transport] is the one that is called default",
        ])
    );
}

/// Flows that are followed: by the number that they will have, or by a name that there is.
#[test]
fn flows_that_are_none() {
    let accepted = "accepted: names and patterns such as \"h*\"";
    let found = wrong(&[], "[telemetry]\nhosts = [\"h9\", \"rack*\", \"h1\", \"17\", \"*\"]\nmessages = [\"h2\", \"h8\"]\n");
    let expected = [
        "telemetry.hosts[0], line 14: \"h9\" is no flow, traffic entry or host",
        "telemetry.hosts[1], line 14: \"rack*\" matches no flow, traffic entry or host",
        "telemetry.messages[1], line 15: \"h8\" is no flow, traffic entry or host",
    ];
    assert!(expected.iter().all(|text| found.contains(&format!("{text}; {accepted}"))), "{found}");
    assert_eq!(found.lines().count(), 3, "{found}");
}

#[test]
fn ports_that_match_nothing() {
    let ports = "accepted: names and patterns such as \"leaf0->*\"; the ports are h0->switch0, switch0->h0, h1->switch0, switch0->h1, … (8 ports)";
    assert_eq!(
        wrong(&[], "[telemetry]\nqueues = [\"switch0->h9\", \"leaf*\", \"*->h1\"]\n"),
        lines(&[
            &format!("telemetry.queues[0], line 14: \"switch0->h9\" is no port; {ports}; did you mean 'switch0->h0'?"),
            &format!("telemetry.queues[1], line 14: \"leaf*\" matches no port; {ports}"),
        ])
    );
}

#[test]
fn classes_that_the_switches_do_not_have() {
    assert_eq!(
        wrong(&[], "class = 3\n"),
        lines(&["traffic[0].class, line 13: 3 is a class that the switches do not have; accepted: 0, the classes of switch.scheduling \"fifo\""])
    );
    assert_eq!(
        wrong(&[], "class = 3\n[switch]\nscheduling = { kind = \"strict\", classes = 2 }\n"),
        lines(&[
            "traffic[0].class, line 13: 3 is a class that the switches do not have; accepted: from 0 to 1, the classes of switch.scheduling \"strict\"",
            "warning: switch.scheduling, line 15: has nothing to choose between: all traffic is of class 3",
        ])
    );
}

#[test]
fn frames_that_no_length_field_holds() {
    let added =
        "[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"\nsize = \"1MB\"\npacket = \"65507B\"\n";
    assert_eq!(
        wrong(&[("[[traffic]]", "mtu = 65000\n[framing]\nheader = \"600B\"\n[[traffic]]")], added),
        lines(&[
            "transport.mtu, line 9: 65000 does not fit a frame with framing.header; accepted: at most 64935",
            "traffic[1].packet, line 22: \"65507B\" does not fit a frame with its headers; accepted: at most 64907B",
        ])
    );
}

#[test]
fn packets_too_small_for_ipv6_and_segments_too_large() {
    let v6 = "[framing]\nip = \"v6\"\n";
    let suggestion = |mtu: u16| format!("mtu = {mtu}, with mss for smaller segments; or framing.ip = \"v4\"");
    let mtu = |mtu: u16| format!("mtu = {mtu}\n[[traffic]]");
    assert_eq!(wrong(&[("[[traffic]]", &mtu(1280))], v6), "sound");
    assert_eq!(
        wrong(&[("[[traffic]]", &mtu(1279))], v6),
        lines(&[&format!(
            "transport.mtu, line 9: 1279 is too small for IPv6; accepted: at least 1280: the 1280 B that every link of IPv6 carries (RFC 8200); {}",
            suggestion(1280)
        )])
    );
    let stamps = format!("{v6}[telemetry]\nqueues = [\"*\"]\nregisters = {{}}\n");
    let found = wrong(&[("[[traffic]]", &mtu(1287))], &stamps);
    assert!(found.contains("at least 1288: the 1280 B that every link of IPv6 carries (RFC 8200) and 8 B for stamps"), "{found}");
    assert_eq!(wrong(&[("[[traffic]]", &mtu(1288))], &stamps), "sound");
    let notified = "drop_notification = true\nmss = 1385\n[switch]\nmechanisms.pdn = { queue = \"43B\" }\n[[traffic]]";
    assert_eq!(
        wrong(&[("[[traffic]]", notified)], v6),
        lines(&[
            "transport.mss, line 10: 1385 does not fit the MTU; accepted: at most 1384: the MTU of 1500 less 116B of headers and drop notification",
            "switch.mechanisms.pdn.queue, line 12: \"43B\" has no room for one notification of IPv6; accepted: at least 44B",
        ])
    );
    assert_eq!(
        wrong(&[("[[traffic]]", "mss = 1449\n[[traffic]]")], ""),
        lines(&["transport.mss, line 9: 1449 does not fit the MTU; accepted: at most 1448: the MTU of 1500 less 52B of headers"])
    );
    let long = "[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"\nsize = \"1MB\"\npacket = \"65470B\"\n";
    assert_eq!(wrong(&[], long), "sound");
    assert_eq!(
        wrong(&[], &format!("{long}{v6}")),
        lines(&["traffic[1].packet, line 19: \"65470B\" does not fit a frame with its headers; accepted: at most 65469B"])
    );
    assert_eq!(
        wrong(&[], "[framing]\nip = \"6\"\n"),
        lines(&["framing.ip, line 14: \"6\" is not a known name; accepted: v4, v6; did you mean 'v6'?"])
    );
}

#[test]
fn values_that_do_nothing() {
    assert_eq!(
        wrong(&[("[[traffic]]", "tso_max = \"32KB\"\nack_every = 1\necn_echo = \"dctcp\"\n[switch]\ncell = \"208B\"\n[[traffic]]")], "delay = \"1us\"\n"),
        lines(&[
            "transport.delayed_ack_timeout, line 8: \"1ms\" has no effect without delayed ACKs; accepted: ack_every above 1, or no delayed_ack_timeout",
            "transport.tso_max, line 9: \"32KB\" has no effect while tso is off; accepted: tso = true, or no tso_max",
            "transport.ecn_echo, line 11: \"dctcp\" has no effect while ecn is off; accepted: ecn = true, or no ecn_echo",
            "switch.cell, line 13: \"208B\" has no effect: nothing counts in cells; accepted: a buffer or threshold such as \"20000 cells\", or no cell",
            "traffic[0].delay, line 18: \"1us\" has no effect without `after`; accepted: `start`, or `after` and `delay`",
        ])
    );
    let found = wrong(&[("[[traffic]]", "slow_start = \"hystart\"\n[[traffic]]")], "");
    assert_eq!(
        found,
        "s.toml: transport.slow_start, line 9: \"hystart\" is a part of CUBIC, and has no effect with newreno; accepted: \"hystart++\" or \"standard\", or congestion_control = \"cubic\"\n"
    );
    // A key of another kind is not a key at all.
    let found = wrong(&[], "[switch]\nrouting = { kind = \"ecmp\", gap = \"1us\" }\n");
    assert!(found.starts_with("s.toml: switch.routing.gap, line 14: \"gap\" is not a known key"), "{found}");
}

/// Whether it is the default or not: a value that is written was meant to do something. What is not written is no mistake, and a
/// resolved scenario leaves it out.
#[test]
fn defaults_that_are_written_and_do_nothing() {
    let added =
        "profile = \"linux\"\nsack = false\nloss_detection = \"rack\"\ntso_max = \"64KiB\"\nsmall_queues = true\n[[traffic]]";
    let host = "[host]\nreceive = { kind = \"napi\", gro = false, budget = 64 }\n[switch]\ncell = \"80B\"\nmarking = { kind = \"red\", min = \"5KB\", max = \"15KB\", ecn = false, hard_drop = true }\n";
    assert_eq!(
        wrong(&[("[[traffic]]", added)], host),
        lines(&[
            "transport.loss_detection, line 11: \"rack\" has no effect without sack; accepted: sack = true, or no loss_detection",
            "transport.tso_max, line 12: \"64KiB\" has no effect while tso is off; accepted: tso = true, or no tso_max",
            "transport.small_queues, line 13: true has no effect where the NIC takes packets from sockets; accepted: host.nic = \"fifo\", or no small_queues",
            "host.receive.budget, line 19: 64 has no effect while gro is off; accepted: gro = true, or leave it out",
            "switch.cell, line 21: \"80B\" has no effect: nothing counts in cells; accepted: a buffer or threshold such as \"20000 cells\", or no cell",
            "switch.marking.hard_drop, line 22: true has no effect: without ecn all packets are dropped; accepted: ecn = true, or no hard_drop",
        ])
    );
    let scenario = Scenario::from_toml(SOUND, &folder()).expect("sound");
    let resolved = scenario.resolved();
    let tcp = &resolved["transport"];
    assert!(tcp.get("tso_max").is_none() && tcp.get("small_queues").is_none() && tcp["tso"] == false && tcp["sack"] == true);
    assert!(resolved["switch"].get("cell").is_none());
    let again = Scenario::from_json(&resolved.to_string(), &folder()).expect("the same scenario");
    assert_eq!((again.hash(), &again), (scenario.hash(), &scenario));
}

/// A number that cannot be read hides no other mistake of its table, and causes none. A name does: what else makes sense depends
/// on it.
#[test]
fn mistakes_of_one_table_come_together() {
    let added =
        "rto_max = \"5 hops\"\nmss = 99000\necn_echo = \"dctcp\"\ntimestamps = false\nrtt_sampling = \"timestamps\"\n[[traffic]]";
    let found =
        wrong(&[("[[traffic]]", added), ("rto_min = \"10ms\"", "rto_min = \"70s\"")], "jitter = \"-1us\"\nrequest = \"5kb\"\n");
    let keys: Vec<&str> = found.lines().filter_map(|line| line.strip_prefix("s.toml: ")?.split(',').next()).collect();
    let expected = [
        "transport.rto_min",
        "transport.rto_max",
        "transport.mss",
        "transport.ecn_echo",
        "transport.rtt_sampling",
        "traffic[0].jitter",
        "traffic[0].request",
    ];
    assert_eq!(keys, expected, "{found}");
    let found = wrong(&[("[[traffic]]", "congestion_control = \"dctpc\"\necn_echo = \"dctcp\"\n[[traffic]]")], "");
    assert!(found.lines().count() == 1 && found.contains("did you mean 'dctcp'"), "{found}");
}

#[test]
fn values_that_contradict_one_another() {
    assert_eq!(
        wrong(
            &[("rto_min = \"10ms\"", "rto_min = \"2s\"\nrto_max = \"1500ms\"\nrtt_sampling = \"timestamps\"\ntimestamps = false\nmss = 1480\necn = false\ncongestion_control = \"dctcp\"")],
            ""
        ),
        lines(&[
            "transport.rto_min, line 7: \"2s\" is above rto_max; accepted: at most 1500ms",
            "transport.rtt_sampling, line 9: \"timestamps\" needs timestamps; accepted: \"timed_segment\", or timestamps = true",
            "transport.mss, line 11: 1480 does not fit the MTU; accepted: at most 1460: the MTU of 1500 less 40B of headers",
            "transport.ecn, line 12: false disables ECN, which DCTCP requires; accepted: true, or another congestion_control",
        ])
    );
}

#[test]
fn mistakes_of_different_parts_come_together() {
    // A transport that cannot be read hides neither the topology's mistakes nor the traffic's.
    let found = wrong(
        &[("\"10ms\"", "\"10 parsecs\""), ("\"h3\"", "\"h9\"")],
        "[[traffic]]\nkind = \"cbr\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\nhosts = [\"h8\"]\n",
    );
    for expected in [
        "transport.rto_min, line 7: ",
        "traffic[0].receiver, line 11: \"h9\"",
        "traffic[1].src, line 13: is missing",
        "traffic[2].hosts[0], line 18: \"h8\" is not a known host",
    ] {
        assert!(found.contains(expected), "{expected}\n--\n{found}");
    }
}

#[test]
fn json_says_paths_without_lines() {
    let problems = Scenario::from_json("{\"topology\": {\"kind\": \"chain\", \"switches\": 0}, \"traffic\": [{\"kind\": \"cbr\", \"src\": \"h0\", \"dst\": \"h9\", \"rate\": \"1Gbps\", \"size\": null}]}", Path::new(".")).unwrap_err();
    assert_eq!(render(&problems, "scenario"), "scenario: topology.switches: 0 is out of range; accepted: from 1 to 1024\nscenario: traffic[0].stop: is missing: the run has no duration, so this would never end; accepted: `stop`, `size`, or a duration of the run\n");
}

#[test]
fn a_time_to_live_that_ends_on_the_way() {
    let chain = |switches: u32| {
        errors(&format!(
            "[topology]\nkind = \"chain\"\nswitches = {switches}\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h1\"\nsize = \"1KB\"\n"
        ))
    };
    assert_eq!(chain(63), "sound");
    assert_eq!(
        chain(64),
        lines(&[
            "switch.ttl, line 1: 64 drops packets on the way: between some hosts they cross 64 switches; accepted: from 65 to 255",
            "warning: transport.rto_min, line 1: \"1s\" is 4665 times the RTT of traffic[0] (214300ns): each lost tail of a burst costs that much; data centers use 1ms to 10ms",
        ])
    );
}

#[test]
fn a_receiver_whose_parts_contradict_one_another() {
    let found = wrong(
        &[(
            "kind = \"tcp\"",
            "kind = \"tcp\"\nprofile = \"linux\"\nack_every = 1\nsack = false\ntimestamps = false\npaws = false\ndsack = false\n\
             sack_compression = \"none\"\ndelayed_acks = \"fixed\"\ndelayed_ack_max = \"100ms\"\n\
             receive_window = { kind = \"auto\", buffer = \"8MiB\" }",
        )],
        "[host]\nreceive = { kind = \"napi\", gro = false, budget = 8, gro_max = \"3000B\" }\n",
    );
    for expected in [
        "transport.paws, line 11: false has no effect while timestamps are off; accepted: timestamps = true, or no paws",
        "transport.dsack, line 12: false has no effect without sack; accepted: sack = true, or no dsack",
        "transport.sack_compression, line 13: \"none\" has no effect without sack",
        "transport.delayed_acks, line 14: \"fixed\" has no effect without delayed ACKs",
        "transport.delayed_ack_max, line 15: \"100ms\" has no effect without delayed ACKs",
        "transport.receive_window.buffer, line 16: \"8388608B\" is above max_buffer; accepted: at most 6291456B",
        "host.receive.budget, line 24: 8 has no effect while gro is off; accepted: gro = true, or leave it out",
        "host.receive.gro_max, line 24: \"3000B\" has no effect while gro is off",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let tcp = |more: &str| wrong(&[("kind = \"tcp\"", &format!("kind = \"tcp\"\n{more}"))], "");
    let found = tcp("delayed_acks = \"adaptive\"\ndelayed_ack_max = \"500us\"");
    assert!(found.contains("delayed_ack_timeout, line 10: \"1ms\" is above delayed_ack_max; accepted: at most 500us"), "{found}");
    let found = tcp("timer_ticks = true");
    assert!(found.contains("timer_ticks, line 7: true has no effect without RACK and adaptive delayed ACKs"), "{found}");
    let found = tcp("profile = \"linux\"\ntimer_ticks = true\nclock_granularity = \"0s\"");
    assert!(found.contains("timer_ticks, line 8: true has no effect where clock_granularity is 0"), "{found}");
    let found = tcp("push = { kind = \"half_window\", writes = [\"1KB\", \"0B\"] }");
    assert!(found.contains("push.writes[1], line 7: \"0B\" writes nothing; accepted: at least 1B"), "{found}");
    let found = tcp("delayed_ack_max = \"100ms\"");
    assert!(found.contains("delayed_ack_max, line 7: \"100ms\" has no effect where delayed ACKs are fixed"), "{found}");
}

#[test]
fn a_clock_that_nothing_reads_and_a_drop_that_always_happens() {
    let found = wrong(
        &[("kind = \"tcp\"", "kind = \"tcp\"\ntimestamps = true\nrtt_sampling = \"timed_segment\"\nspurious_rto = \"none\"\ntimestamp_tick = \"2ms\"")],
        "[switch]\nmarking = { kind = \"red\", ecn = false, hard_drop = false }\n",
    );
    assert!(found.contains("transport.timestamp_tick, line 10: \"2ms\" has no effect where nothing reads timestamps"), "{found}");
    assert!(
        found.contains("switch.marking.hard_drop, line 18: false has no effect: without ecn all packets are dropped"),
        "{found}"
    );
}

#[test]
fn an_unknown_host_is_reported_beside_errors_of_other_sections() {
    let found =
        wrong(&[("name = \"x\"", "seed = -1"), ("\"h3\"", "\"h99\"")], "[switch]\nttl = \"x\"\n[engine]\nmax_flows = 0\n");
    for expected in [
        "engine.max_flows, line 16",
        "seed, line 1",
        "traffic[0].receiver, line 11: \"h99\" is not a known host",
        "switch.ttl, line 14",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}

#[test]
fn a_link_that_takes_less_than_a_header() {
    assert_eq!(
        wrong(&[("hosts = 4", "hosts = 4\nlink = { wire_overhead = \"17B\" }")], ""),
        lines(&["topology, line 2: gives h0->switch0 a wire_overhead of 17B, less than framing.header; accepted: at least 18B"])
    );
}

/// Queue pairs: everything wrong at once.
#[test]
fn roce_that_contradicts_itself() {
    let roce = |keys: &str| {
        let changes = [("kind = \"tcp\"\n", ""), ("rto_min = \"10ms\"\n", ""), ("delayed_ack_timeout = \"1ms\"\n", keys)];
        wrong(&changes, "")
    };
    let found = roce(
        "kind = \"roce\"\nmtu = 1500\nmessage = \"4000B\"\nack_every = 4\ncnp_class = 3\nwindow = \"bdp\"\nrecovery = { kind = \"selective_repeat\", rto_low = \"1ms\" }\n",
    );
    for expected in [
        "transport.mtu, line 7: 1500 is no path MTU; accepted: 256, 512, 1024, 2048 or 4096",
        "transport.message, line 8: \"4KB\" is not a multiple of mtu; accepted: a multiple of 1500",
        "transport.ack_every, line 9: 4 leaves packets unacknowledged, and recovery = \"selective_repeat\" needs an acknowledgment for each; accepted: 1",
        "transport.cnp_class, line 10: 3 has no effect: nothing sends notifications; accepted: a congestion_control that works by CNPs, or no cnp_class",
        "transport.recovery.rto_low, line 12: \"1ms\" is above rto_high; accepted: at most 320us",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let found = roce("kind = \"roce\"\nack_class = 2\ncongestion_control = { kind = \"timely\", t_low = \"1ms\" }\n");
    for expected in [
        "transport.ack_class, line 7: 2 is a class that the switches do not have; accepted: below 1, the classes of switch.scheduling \"fifo\"",
        "transport.congestion_control.t_low, line 8: \"1ms\" is above t_high; accepted: at most 500us",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let swift = "{ kind = \"swift\", scaling_min = 200.0, initial_window = 50.0, max_window = 40.0 }";
    let found = roce(&format!("kind = \"roce\"\nack_every = 2\ncongestion_control = {swift}\n"));
    for expected in [
        "transport.ack_every, line 7: 2 leaves packets unacknowledged, and this congestion_control needs an acknowledgment for each; accepted: 1",
        "transport.congestion_control.scaling_min, line 8: 200.0 is not below scaling_max; accepted: below 100",
        "transport.congestion_control.initial_window, line 8: 50.0 is above max_window; accepted: at most 40",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}
