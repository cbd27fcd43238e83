//! Small networks whose outcome can be worked out by hand, beside hosts and fabric: what a mistake there changes first.

use crate::{world, Destination, Kept, Pause, World};
use fanin_scenario::Scenario;
use std::path::Path;

/// Wire time of a full frame of 1538 bytes at 10 Gb/s, and delay of a link [ps].
const FULL: u64 = 1_230_400;
const DELAY: u64 = 1_000_000;

fn star(hosts: u32, more: &str) -> String {
    format!(
        "[topology]\nkind = \"single_switch\"\nhosts = {hosts}\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [telemetry]\nsample = \"off\"\n{more}\n"
    )
}

fn cbr(src: u32, dst: u32, size: u64) -> String {
    format!("[[traffic]]\nkind = \"cbr\"\nsrc = \"h{src}\"\ndst = \"h{dst}\"\nrate = \"10Gbps\"\ncounts = \"wire\"\nsize = \"{size}B\"\n")
}

fn flow(src: u32, dst: u32, size: u64) -> String {
    format!("[[traffic]]\nkind = \"flows\"\nstart = \"10us\"\nflows = [{{ src = \"h{src}\", dst = \"h{dst}\", size = \"{size}B\" }}]\n")
}

/// Runs to the end; no packet is lost sight of on the way.
fn ended(text: &str) -> World {
    let scenario = Scenario::from_toml(text, Path::new(".")).unwrap_or_else(|problems| panic!("{problems:?}"));
    let mut world = world(&scenario, &Destination::Memory).expect("a world");
    loop {
        let pause = world.advance(37).expect("tables in memory");
        let (ports, t) = (world.ports_now(), world.totals());
        assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
        assert_eq!(t.packet_hops, ports.iter().map(|port| port.tx_packets - port.on_wire).sum::<u64>());
        match pause {
            Pause::Budget => {}
            Pause::Done => return world,
            Pause::Stuck(why) => panic!("{why}"),
        }
    }
}

fn finished(kept: &Kept) -> Vec<Option<u64>> {
    kept.flows.iter().map(|flow| flow.finish_ps).collect()
}

/// Three hosts send 20 full frames each at once to a fourth. Output-queued: the last byte arrives when 60 frames have followed the first. The
/// peak is what 57 have brought when 20 have left, less the one on the wire.
#[test]
fn a_fan_in_leaves_back_to_back() {
    let text = star(4, &format!("{}{}{}", cbr(0, 3, 29_440), cbr(1, 3, 29_440), cbr(2, 3, 29_440)));
    let mut world = ended(&text);
    assert_eq!(world.now().ps(), 61 * FULL + 2 * DELAY);
    let ports = world.ports_now();
    let port = ports.iter().find(|port| port.name == "switch0->h3").expect("a port");
    assert_eq!((port.tx_packets, port.drops), (60, 0));
    assert_eq!(port.peak_bytes, (60 - 20) * 1518);
}

/// The crossbar refuses what its virtual output queues and output have no room for, counts each refusal once, and lets the rest through at the
/// line's rate.
#[test]
fn a_crossbar_loses_what_has_no_room_and_nothing_else() {
    let switch = "[switch]\narchitecture = { kind = \"combined\", voq = \"10KB\", output = \"10KB\", speedup = 1.0 }\n";
    let text = star(4, &format!("{switch}{}{}{}", cbr(0, 3, 58_880), cbr(1, 3, 58_880), cbr(2, 3, 58_880)));
    let mut world = ended(&text);
    let (t, ports) = (world.totals(), world.ports_now());
    let drops: u64 = ports.iter().map(|port| port.drops).sum();
    assert_eq!((t.sent, t.delivered + t.dropped, drops), (120, 120, t.dropped));
    // Some 40 frames leave while 120 arrive, and what all queues hold leaves afterwards: six full frames each, at three inputs and the output.
    assert!((40..=70).contains(&t.delivered), "{t:?}");
    let port = ports.iter().find(|port| port.name == "switch0->h3").expect("a port");
    assert_eq!(port.tx_packets, t.delivered);
    assert!(port.peak_bytes <= 10_000 + 1518, "{}", port.peak_bytes);
}

/// One frame alone through a crossbar: two links and one crossing at the line's rate of frame bytes.
#[test]
fn a_frame_crosses_once() {
    let switch = "[switch]\nlatency = \"300ns\"\narchitecture = { kind = \"combined\", speedup = 1.0 }\n";
    let world = ended(&star(2, &format!("{switch}{}", cbr(0, 1, 1_472))));
    assert_eq!(world.now().ps(), 2 * (FULL + DELAY) + 300_000 + 1_214_400);
}

/// A flow alone takes its ideal time with each kind of connection: handshake or none, request, TSO, either queue of the NIC.
#[test]
fn a_flow_alone_takes_its_ideal_time() {
    for tcp in ["", "handshake = false", "timestamps = false\nsack = false"] {
        for nic in ["fair", "fifo"] {
            let set = format!(
                "[host]\nnic = \"{nic}\"\n[transport]\nkind = \"tcp\"\ninitial_window = 1000\nrto_initial = \"1s\"\n{tcp}\n"
            );
            let kept = ended(&star(2, &format!("{set}{}", flow(0, 1, 50_000)))).into_kept().expect("tables");
            let flow = &kept.flows[0];
            assert_eq!(flow.finish_ps, Some(flow.start_ps + flow.ideal_ps), "{tcp} {nic}");
        }
    }
}

/// Where nothing arrives a flow is given up after its retries, and so is the other end's connection: the run ends then and not later.
#[test]
fn a_flow_that_gives_up_ends_at_both_ends() {
    let tcp = "[switch]\nbuffer = { kind = \"static\", per_port = \"0 packets\" }\n\
               [transport]\nkind = \"tcp\"\nhandshake = false\nrto_initial = \"20us\"\nrto_min = \"10us\"\nmax_retries = 3\n";
    let text = star(3, &format!("{tcp}{}{}", cbr(0, 2, 1_472_000), flow(1, 2, 1_000)));
    let kept = ended(&text).into_kept().expect("tables");
    let flow = kept.flows.iter().find(|flow| flow.timeouts > 0).expect("the flow");
    // Its segment meets the datagrams' frame each time: 20, 40, 80 and 160 us.
    assert_eq!((flow.status.to_string().as_str(), flow.timeouts, flow.delivered_bytes), ("aborted", 4, 0));
}

/// Detours keep what has no room below α: nothing is lost where forwarding loses, each detour is released, and the messages arrive.
#[test]
fn detours_come_back_and_nothing_is_lost() {
    let text = |rimm: &str| {
        format!(
            "duration = \"5ms\"\n[topology]\nkind = \"leaf_spine\"\nleaves = 3\nhosts_per_leaf = 2\nspines = 1\n\
             host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"40Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = {{ kind = \"static\", per_port = \"60 packets\" }}\n{rimm}\n[telemetry]\nsample = \"off\"\n{}{}",
            cbr(2, 0, 117_760),
            cbr(4, 0, 117_760)
        )
    };
    let plain = ended(&text(""));
    let world = ended(&text("mechanisms.rimm = { alpha = \"40 packets\" }"));
    let counted = |name| world.counter("rimm", name);
    let (detoured, released, late) = (counted("detoured"), counted("released"), counted("late"));
    assert_eq!(plain.totals().dropped, 160 - 80 - 60, "what two bring while one leaves, less the queue");
    assert_eq!(world.totals().dropped, 0);
    // The queue has 40 when 80 have come and 40 have left: the other 80 go round.
    assert_eq!((detoured, released + late), (80, 80));
    assert!(counted("messages_sent") > 0 && counted("messages_returned") > 0);
}

/// RoCEv2 behind a pause: the fan-in waits at its senders, nothing is lost, and the last byte arrives within a tenth of the line's time.
#[test]
fn pauses_hold_a_fan_in_at_its_senders() {
    let set = "[switch]\nbuffer = \"unlimited\"\nmechanisms.pfc = { memory = \"1MB\", classes = [0], xoff = { kind = \"static\", bytes = \"20KB\" } }\n\
               [transport]\nkind = \"roce\"\n";
    let text = star(4, &format!("{set}{}{}{}", flow(0, 3, 200_000), flow(1, 3, 200_000), flow(2, 3, 200_000)));
    let world = ended(&text);
    let xoff = world.counter("pfc", "xoff");
    assert!((3..200).contains(&xoff) && world.totals().dropped == 0, "{xoff}");
    let last = finished(&world.into_kept().expect("tables")).into_iter().map(|at| at.expect("complete")).max().expect("flows");
    let line = 10_000_000 + 600_000 * 800;
    assert!((line..line + line / 6).contains(&last), "{last} of {line}");
}
