//! Small networks whose outcome can be worked out by hand, beside hosts and fabric: what a mistake there changes first.

mod hosts;
mod links;
mod ports;
mod same;

use crate::{world, Destination, Kept, Pause, World};
use fanin_scenario::Scenario;
use std::path::Path;

/// Wire time of a full frame of 1538 bytes at 10 Gb/s, and delay of a link [ps].
const FULL: u64 = 1_230_400;
const DELAY: u64 = 1_000_000;

/// An edit of a scenario that must find what it changes.
trait Changed {
    fn changed(&self, from: &str, to: &str) -> String;
}

impl Changed for str {
    fn changed(&self, from: &str, to: &str) -> String {
        assert!(self.contains(from), "nothing to change: {from:?} in {self}");
        self.replace(from, to)
    }
}

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

/// Each packet is somewhere, once; inputs of a switch count the bytes that wait in it; and nothing waits at a port that is known to be down.
fn looked_at(world: &mut World) {
    let (ports, t) = (world.ports_now(), world.totals());
    assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
    assert_eq!(t.packet_hops, ports.iter().map(|port| port.tx_packets - port.on_wire).sum::<u64>());
    if world.messages_on_the_way() == 0 {
        let exist = ports.iter().map(|port| port.on_wire + port.queue_packets).sum::<u64>();
        assert_eq!(exist + world.held(), world.in_flight());
    }
    if world.crossbar_packets().is_empty() {
        for (s, counted) in (0..).zip(world.input_bytes()) {
            let of = ports.iter().filter(|port| port.switch == Some(s));
            let waits: u64 = of.map(|port| port.queue_bytes + port.held_bytes).sum();
            assert!(counted.is_none_or(|counted| counted == waits), "switch {s}: {counted:?} of {waits}");
        }
    }
    assert_eq!(world.down_ports_with_packets(), [""; 0]);
}

/// Runs to the end; no packet is lost sight of on the way.
fn ended(text: &str) -> World {
    let scenario = Scenario::from_toml(text, Path::new(".")).unwrap_or_else(|problems| panic!("{problems:?}"));
    let mut world = world(&scenario, &Destination::Memory).expect("a world");
    loop {
        let pause = world.advance(37).expect("tables in memory");
        looked_at(&mut world);
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

/// A flow to which nothing arrives is given up after its retries, and so is the other end: the run ends then and not later.
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

/// Two hosts of other leaves send 80 frames each to one whose port holds 60.
fn over_a_spine(switch: &str) -> String {
    format!(
        "duration = \"5ms\"\n[topology]\nkind = \"leaf_spine\"\nleaves = 3\nhosts_per_leaf = 2\nspines = 1\n\
         host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"40Gbps\", delay = \"1us\" }}\n\
         [switch]\nbuffer = {{ kind = \"static\", per_port = \"60 packets\" }}\n{switch}\n[telemetry]\nsample = \"off\"\n{}{}",
        cbr(2, 0, 117_760),
        cbr(4, 0, 117_760)
    )
}

/// Detours keep what has no room below α: nothing is lost where forwarding loses, each detour is released, and the messages arrive.
#[test]
fn detours_come_back_and_nothing_is_lost() {
    let plain = ended(&over_a_spine(""));
    let world = ended(&over_a_spine("mechanisms.rimm = { alpha = \"40 packets\" }"));
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

/// Lost packets by reason.
fn lost(world: World) -> std::collections::BTreeMap<String, usize> {
    let mut lost = std::collections::BTreeMap::new();
    for drop in &world.into_kept().expect("tables").drops {
        *lost.entry(drop.reason.to_string()).or_default() += 1;
    }
    lost
}

/// A leaf's two uplinks are dead from 100 to 200 us, and its ends know 10 us later each time: so long frames are lost on the wire, then for want of
/// a route, and from then on none.
#[test]
fn a_leaf_without_uplinks_loses_what_it_sends_until_it_knows() {
    let text = |events: &str| {
        format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 1\nspines = 2\n\
             host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [failover]\ndetect = \"10us\"\nconverge = \"1ms\"\n[telemetry]\nsample = \"off\"\n{events}{}",
            cbr(0, 1, 294_400)
        )
    };
    let down = |link: &str| format!("[[events]]\nkind = \"down\"\nlinks = [\"{link}\"]\nstart = \"100us\"\nend = \"200us\"\n");
    let world = ended(&text(&down("leaf0->spine*")));
    assert_eq!(world.totals().sent, 200);
    let all = lost(world);
    // A frame takes 1.23 us: 8 in 10 us, 81 in 100 us. Two more are on the link when it fails, and one when it works again.
    assert!((8..=12).contains(&all["link_lost"]) && (80..=83).contains(&all["no_route"]) && all.len() == 2, "{all:?}");
    // With one of two uplinks dead a flow loses what it sends until its switch knows, or nothing.
    let mut each = [0, 1].map(|spine| lost(ended(&text(&down(&format!("leaf0->spine{spine}"))))));
    each.sort_by_key(|lost| lost.len());
    assert!(each[0].is_empty() && each[1].len() == 1 && (8..=11).contains(&each[1]["link_lost"]), "{each:?}");
}

/// A NIC that asks for pauses of 100 us holds up its switch for as long; nothing is lost, and the frames leave behind it as they would have before.
#[test]
fn a_storm_of_pauses_takes_its_time() {
    let set = |storm: &str| {
        format!(
            "[switch]\nbuffer = \"unlimited\"\nmechanisms.pfc = {{ memory = \"1MB\", classes = [0] }}\n[host]\n{storm}\n{}",
            cbr(0, 1, 147_200)
        )
    };
    let calm = ended(&star(2, &set("")));
    let world = ended(&star(2, &set("storms = [{ hosts = [\"h1\"], classes = [0], start = \"10us\", end = \"110us\" }]")));
    // One frame of 65,535 quanta, which last 3.4 ms, and one of none.
    assert_eq!((world.counter("pfc", "frames_received"), world.totals().dropped), (2, 0));
    let later = world.now().ps() - calm.now().ps();
    assert!(later.abs_diff(100_000_000) <= 2 * FULL, "{later}");
}

/// The class that goes first is not held up by the other for longer than a frame, and the other leaves behind it.
#[test]
fn a_strict_class_waits_for_one_frame_at_most() {
    let set = "[switch]\nbuffer = \"unlimited\"\nscheduling = { kind = \"strict\", classes = 2 }\n\
               [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 1000\nrto_initial = \"1s\"\n";
    let with = |class: u32, text: String| format!("{text}class = {class}\n");
    let text = star(3, &format!("{set}{}{}", with(0, flow(0, 2, 100_000)), with(1, flow(1, 2, 100_000))));
    let kept = ended(&text).into_kept().expect("tables");
    let later = |class: usize| {
        let flow = &kept.flows[class];
        flow.finish_ps.expect("complete") - flow.start_ps - flow.ideal_ps
    };
    let (first, second) = if later(0) < later(1) { (later(0), later(1)) } else { (later(1), later(0)) };
    assert!(first <= FULL, "{first}");
    // It leaves when the 69 frames of the other have.
    assert!(second.abs_diff(69 * FULL) <= 2 * FULL, "{second}");
}

/// Interrupts that are coalesced keep the last segment of a flow for their delay; a host's processing is part of the ideal time.
#[test]
fn a_host_keeps_what_it_receives_for_its_delay() {
    let set = |host: &str| {
        let tcp = "[transport]\nkind = \"tcp\"\nhandshake = false\nrto_initial = \"1s\"\n";
        let kept = ended(&star(2, &format!("[host]\n{host}\n{tcp}{}", flow(0, 1, 1_000)))).into_kept().expect("tables");
        let flow = &kept.flows[0];
        (flow.finish_ps.expect("complete") - flow.start_ps - flow.ideal_ps, flow.ideal_ps)
    };
    let (none, ideal) = set("");
    assert_eq!((none, set("processing_delay = \"3us\"")), (0, (0, ideal + 3_000_000)));
    assert_eq!(set("receive = { kind = \"napi\", interrupt_delay = \"8us\" }"), (8_000_000, ideal));
}

/// A burst of 40 segments into a queue of ten of the host's own: the queue and the wire take eleven, one is refused and stays with its sender, and all arrive.
#[test]
fn a_full_queue_of_the_host_refuses_a_segment_and_loses_none() {
    let set = "[host]\nnic = { kind = \"fifo\", txqueuelen = 10 }\n[transport]\nkind = \"tcp\"\nprofile = \"linux\"\nhandshake = false\n\
               tso = false\nsmall_queues = false\ninitial_window = 1000\n";
    let kept = ended(&star(2, &format!("{set}{}", flow(0, 1, 40 * 1_448)))).into_kept().expect("tables");
    let flow = &kept.flows[0];
    assert_eq!((flow.delivered_bytes, flow.retransmits, flow.timeouts), (40 * 1_448, 0, 0));
    let reasons: Vec<String> = kept.drops.iter().map(|drop| drop.reason.to_string()).collect();
    assert!(!reasons.is_empty() && reasons.len() < 30 && reasons.iter().all(|reason| reason == "txqueue_full"), "{reasons:?}");
}

/// Trimming keeps the headers of what has no room: the receiver asks for each again, and no sender waits for its timer.
#[test]
fn what_is_trimmed_is_sent_again_without_a_timeout() {
    let run = |mechanism: &str, nack: bool| {
        let set = format!(
            "[switch]\nbuffer = {{ kind = \"static\", per_port = \"8 packets\" }}\n{mechanism}\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 1000\ntrim_nack = {nack}\n"
        );
        ended(&star(4, &format!("{set}{}{}{}", flow(0, 3, 29_000), flow(1, 3, 29_000), flow(2, 3, 29_000))))
    };
    let timeouts = |world: World| world.into_kept().expect("tables").flows.iter().map(|flow| flow.timeouts).sum::<u32>();
    let plain = run("", false);
    // 20 or 21 segments leave while 60 come, and eight wait.
    assert!(plain.totals().dropped >= 30, "{:?}", plain.totals());
    assert!(timeouts(plain) > 0);
    let world = run("mechanisms.trimming = {}", true);
    let trimmed = world.counter("trimming", "trimmed");
    // Two of three from the ninth on; in a round trip of some six frames the first NACKs halve windows, else there would be 33.
    assert!((12..=33).contains(&trimmed) && world.totals().dropped == 0, "{trimmed} {:?}", world.totals());
    assert_eq!(timeouts(world), 0);
}

/// A packet that a full port refuses goes to the only other switch, which sends it back: round until there is room, and nothing is lost.
#[test]
fn what_finds_no_room_goes_round() {
    for mechanism in ["dibs", "vertigo"] {
        let world = ended(&over_a_spine(&format!("ttl = 255\nmechanisms.{mechanism} = {{}}")));
        let counted = |name| world.counter(mechanism, name);
        assert_eq!((world.totals().dropped, counted("out_of_hops")), (0, 0), "{mechanism}");
        let detours = counted(if mechanism == "dibs" { "detoured" } else { "deflected" });
        // Twenty find no room, and each as often as it comes back to a full port.
        assert!((20..2_000).contains(&detours), "{mechanism}: {detours}");
        assert!(counted("back") > 0 && counted("back") <= detours, "{mechanism}");
        // An idle port has room for a frame, whatever its queue holds.
        let none = ended(&over_a_spine(&format!("ttl = 255\nmechanisms.{mechanism} = {{}}")).changed("60 packets", "0 packets"));
        assert!(none.counter(mechanism, if mechanism == "dibs" { "detoured" } else { "deflected" }) > 0, "{mechanism}");
    }
}

/// Each data frame gets a record at its switch, and nothing else does; a flow alone is not held up by what it reads.
#[test]
fn frames_with_telemetry_get_a_record_at_each_switch() {
    let set =
        "[switch]\nbuffer = \"unlimited\"\nmechanisms.int = {}\n[transport]\nkind = \"roce\"\ncongestion_control = \"hpcc\"\n";
    let mut world = ended(&star(2, &format!("{set}{}", flow(0, 1, 100_000))));
    let ports = world.ports_now();
    let port = ports.iter().find(|port| port.name == "switch0->h1").expect("a port");
    assert_eq!((world.counter("int", "stamped"), world.counter("int", "full")), (port.tx_packets, 0));
    let kept = world.into_kept().expect("tables");
    let flow = &kept.flows[0];
    let took = flow.finish_ps.expect("complete") - flow.start_ps;
    assert!((flow.ideal_ps..flow.ideal_ps * 11 / 10).contains(&took), "{took} of {}", flow.ideal_ps);
}

/// With twice the quantum a class gets two thirds of the line while both wait, and the other what is left.
#[test]
fn quanta_divide_the_line() {
    let set = "[switch]\nbuffer = \"unlimited\"\nscheduling = { kind = \"drr\", quanta = [\"1518B\", \"3036B\"] }\n\
               [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 1000\nrto_initial = \"1s\"\n";
    let text = star(3, &format!("{set}{}class = 0\n{}class = 1\n", flow(0, 2, 100_000), flow(1, 2, 100_000)));
    let kept = ended(&text).into_kept().expect("tables");
    let later = |src: &str| {
        let flow = kept.flows.iter().find(|flow| flow.src.to_string() == src).expect("a flow");
        flow.finish_ps.expect("complete") - flow.start_ps - flow.ideal_ps
    };
    let (half, whole) = (later("h1"), later("h0"));
    // 69 frames each: the one ends when half as many of the other have left beside its own, the other when all have.
    assert!(half.abs_diff(69 * FULL / 2) <= 3 * FULL && whole.abs_diff(69 * FULL) <= 3 * FULL, "{half} {whole}");
}

/// With α = 1 a single port may hold half of a shared buffer, and loses what does not fit.
#[test]
fn a_port_holds_its_share_of_the_buffer() {
    let set = "[switch]\nbuffer = { kind = \"dynamic\", total = \"120KB\", alpha = 1.0 }\n";
    let mut world = ended(&star(4, &format!("{set}{}{}{}", cbr(0, 3, 58_880), cbr(1, 3, 58_880), cbr(2, 3, 58_880))));
    let ports = world.ports_now();
    let port = ports.iter().find(|port| port.name == "switch0->h3").expect("a port");
    // The fortieth finds 39 and takes 60,720 B with them, of 60,798 that are free; the next finds less free than that.
    assert_eq!(port.peak_bytes, 40 * 1518);
    // 120 come while some 40 leave, and 40 wait.
    assert!(port.drops.abs_diff(40) <= 2 && port.drops == world.totals().dropped, "{}", port.drops);
}
