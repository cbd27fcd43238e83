//! Hosts: what leaves a NIC when and in which order, what a transport gets when, and what is said of it afterwards.

use super::{cbr, ended, flow, lost, star, Changed, DELAY, FULL};
use crate::{Kept, World};

/// Wire time of a frame at 10 Gb/s [ps].
const fn wire(frame: u64) -> u64 {
    (frame + 20) * 800
}

fn kept(text: &str) -> Kept {
    ended(text).into_kept().expect("tables")
}

/// Time at which the last of these frames has crossed links of these rates [Gb/s], each of 1 us: all of them at once at the first link, store and
/// forward, one after the other.
fn crossed(frames: &[u64], rates: &[u64]) -> u64 {
    let mut free = vec![0; rates.len()];
    for frame in frames {
        let mut at = 0;
        for (free, gbps) in free.iter_mut().zip(rates) {
            at = at.max(*free) + (frame + 20) * 8_000 / gbps;
            *free = at;
        }
    }
    free[rates.len() - 1] + DELAY * rates.len() as u64
}

/// The ideal time of a flow is that of its frames alone on the network, and its round trip that of a full frame and an acknowledgment: of each
/// size around whole packets, with and without what goes before the data, on links of which each may be the slowest.
#[test]
fn ideal_times_are_those_of_the_frames_alone() {
    // TCP with timestamps: 1448 B in 1518, an ACK 70, a SYN 78. RoCE: 1024 B in 1086, and 16 B more in the first; without payload a frame is a smallest one.
    for rates in [[10, 40, 10], [10, 2, 10], [40, 10, 40]] {
        for (size, request) in
            [(1, 0), (1_448, 0), (1_449, 300), (4_344, 1_448), (5_000, 2_000), (20_000, 0), (1_024, 0), (1_028, 0)]
        {
            for kind in ["tcp", "open", "roce"] {
                let set = match kind {
                    "tcp" => "kind = \"tcp\"\nhandshake = false\ninitial_window = 100",
                    "open" => "kind = \"tcp\"\ninitial_window = 100",
                    _ => "kind = \"roce\"",
                };
                if kind == "roce" && (request > 0 || size % 4 > 0) {
                    continue; // payload is filled up to words
                }
                let text = format!(
                    "[topology]\nkind = \"dumbbell\"\nleft = 1\nright = 1\nhost_link = {{ rate = \"{}Gbps\", delay = \"1us\" }}\n\
                     bottleneck = {{ rate = \"{}Gbps\", delay = \"1us\" }}\n[transport]\n{set}\n[telemetry]\nsample = \"off\"\n\
                     [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"{size}B\", request = \"{request}B\" }}]\n",
                    rates[0], rates[1]
                );
                let flow = &kept(&text).flows[0];
                let (mss, header, more, ack) = if kind == "roce" { ROCE } else { (1_448, 70, 0, 70) };
                let stream = |bytes: u64| {
                    let mut frames: Vec<u64> = (kind == "open").then_some(ack).into_iter().collect();
                    let packets = bytes.div_ceil(mss);
                    frames.extend((0..packets).map(|i| (bytes - i * mss).min(mss) + header + if i == 0 { more } else { 0 }));
                    crossed(&frames, &rates)
                };
                let opening = if kind == "open" { 2 * crossed(&[78], &rates) } else { 0 };
                let asking = if request > 0 { stream(request) } else { 0 };
                let about = format!("{size} B after {request} of {kind} at {rates:?}");
                assert_eq!(flow.ideal_ps, opening + asking + stream(size), "{about}");
                assert_eq!(flow.base_rtt_ps, crossed(&[mss + header], &rates) + crossed(&[ack], &rates), "{about}");
                // Two segments of a request are acknowledged, before the data.
                if request <= 1_448 {
                    assert_eq!(flow.finish_ps, Some(flow.ideal_ps), "{about}: it is alone");
                }
            }
        }
    }
}

/// Payload of a packet, header bytes of its frame, bytes more in the first, and the frame of an acknowledgment, of RoCEv2.
const ROCE: (u64, u64, u64, u64) = (1_024, 62, 16, 64);

/// Flows from `h0` to `h1`, `h2`, … over two switches; the numbers of flows in the order in which their frames pass, as (flow, frames in a row).
fn order(flows: u32, host: &str, transport: &str, size: u64) -> (Vec<(u32, u32)>, Kept) {
    let each: String = (1..=flows)
        .map(|i| {
            format!("[[traffic]]\nkind = \"flows\"\nname = \"f{i}\"\nflows = [{{ src = \"h0\", dst = \"h{i}\", size = \"{size}B\" }}]\n")
        })
        .collect();
    let kept = kept(&format!(
        "[topology]\nkind = \"dumbbell\"\nleft = 1\nright = {flows}\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         bottleneck = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[switch]\nbuffer = \"unlimited\"\n[host]\n{host}\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 1000\nrto_initial = \"100ms\"\n{transport}\n\
         [telemetry]\nsample = \"off\"\nqueues = [\"left->right\"]\n{each}"
    ));
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for row in &kept.queues {
        match runs.last_mut() {
            Some((flow, n)) if *flow == row.flow => *n += 1,
            _ => runs.push((row.flow, 1)),
        }
    }
    // The wire is not idle while anybody has something to send.
    for pair in kept.queues.windows(2) {
        assert_eq!(pair[1].time_ps - pair[0].time_ps, wire(pair[1].frame_bytes.into()), "{host} {transport}");
    }
    (runs, kept)
}

/// One packet each in turn where a NIC is fair, one connection after the other where it is first in, first out, and bursts in turn with TSO.
#[test]
fn ends_take_turns_at_a_nic() {
    const SIZE: u64 = 12 * 1_448;
    let (fair, rows) = order(3, "nic = \"fair\"", "", SIZE);
    // The first flow has one frame on the wire and its next turn before the others have begun.
    assert!(fair[0].1 <= 2 && fair[1..=18].iter().all(|run| run.1 == 1), "{fair:?}");
    assert!((0..3).all(|flow| fair.iter().filter(|run| run.0 == flow).map(|run| run.1).sum::<u32>() == 12));
    let last: Vec<u64> = rows.flows.iter().map(|flow| flow.finish_ps.expect("complete")).collect();
    assert_eq!(last.iter().max(), Some(&(38 * FULL + 3 * DELAY)));
    assert_eq!(order(3, "nic = \"fifo\"", "", SIZE).0, [(0, 12), (1, 12), (2, 12)]);
    // A burst has 45 segments, as many as go into 64 KiB.
    let (bursts, _) = order(2, "", "tso = true", 135 * 1_448);
    assert_eq!(bursts[0].1 + bursts[2].1, 135, "{bursts:?}");
    assert!(bursts[..3].iter().all(|run| run.1 % 45 == 0), "{bursts:?}");
}

/// TCP small queues: 1 MiB of the first flow stands in its host when the second has its turn; without them all of it does, and with a queue of
/// 30 packets what it takes besides the one on the wire.
#[test]
fn small_queues_leave_the_rest_of_a_flow_in_its_socket() {
    let fifo = |queue: &str, small: bool| {
        let nic = format!("nic = {{ kind = \"fifo\"{queue} }}");
        order(2, &nic, &format!("small_queues = {small}"), 800 * 1_448)
    };
    assert_eq!(fifo("", false).0, [(0, 800), (1, 800)]);
    let (runs, _) = fifo("", true);
    // The last frame finds 1 MiB or less.
    let most = (1_u32 << 20).div_ceil(1_518);
    assert_eq!(runs[..2], [(0, most), (1, most)], "{runs:?}");
    assert_eq!(
        (0..2).map(|f| runs.iter().filter(|run| run.0 == f).map(|run| run.1).sum::<u32>()).collect::<Vec<_>>(),
        [800, 800]
    );
}

/// Two hosts send to one, which makes their switch pause both after one frame; the victim of the pause waits for what is left of it and a class
/// that nobody pauses does not.
#[test]
fn a_pause_holds_up_its_class_until_it_ends() {
    let (pfc, latency) = (wire(64), 300_000);
    let came = FULL + DELAY + latency;
    let [begin, end] = [came + 100_000, came + FULL].map(|asked| asked + pfc + DELAY);
    let start = begin + 50_000;
    let one = |src: u32, dst: u32, start: u64, class: u8| {
        cbr(src, dst, 1_472).changed(
            "kind = \"cbr\"",
            &format!("kind = \"cbr\"\nname = \"{src}-{dst}-{class}\"\nstart = \"{start}ps\"\nclass = {class}"),
        )
    };
    let set = "[switch]\nlatency = \"300ns\"\nbuffer = \"unlimited\"\nscheduling = { kind = \"strict\", classes = 2 }\n\
               mechanisms.pfc = { memory = \"500KB\", classes = [0], xoff = { kind = \"static\", bytes = \"1B\" }, xon_gap = \"1B\" }\n";
    for class in [0, 1] {
        let world = ended(&star(4, &format!("{set}{}{}{}", one(0, 2, 0, 0), one(1, 2, 100_000, 0), one(1, 3, start, class))));
        assert_eq!(world.counter("pfc", "frames_sent"), 2, "a pause, and its end");
        let kept = world.into_kept().expect("tables");
        let rows: Vec<_> = kept.pauses.iter().map(|row| (row.port.to_string(), row.start_ps, row.end_ps, row.asked_ps)).collect();
        assert_eq!(rows, [("h1->switch0".to_string(), begin, Some(end), Some(came + 100_000))]);
        let victim = kept.flows.iter().find(|row| row.dst.to_string() == "h3").expect("the victim");
        let sent = if class == 0 { end } else { start };
        assert_eq!(victim.finish_ps, Some(sent + 2 * (FULL + DELAY) + latency), "class {class}");
    }
}

/// Packets that a pause has held are sent in their order when it ends, and the line is never idle for another reason.
#[test]
fn what_a_pause_has_held_keeps_its_order() {
    let set = "[switch]\nbuffer = \"unlimited\"\nmechanisms.pfc = { memory = \"1MB\", classes = [0], xoff = { kind = \"static\", bytes = \"9KB\" } }\n\
               [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 1000\nrto_initial = \"100ms\"\n";
    for tso in ["", "tso = true\n"] {
        let text =
            format!("{set}{tso}[[traffic]]\nkind = \"incast\"\nreceiver = \"h3\"\nsize = \"60KB\"\nflows_per_sender = 2\n");
        let world = ended(&star(4, &text));
        assert!(world.counter("pfc", "xoff") > 6 && world.totals().dropped == 0);
        let kept = world.into_kept().expect("tables");
        // 6 flows of 42 segments share a line that is never idle; no packet overtakes another of its flow.
        let frames = 6 * 41 * FULL + 6 * wire(60_000 - 41 * 1_448 + 70);
        let last = kept.flows.iter().map(|flow| flow.finish_ps.expect("complete")).max().expect("flows");
        assert!((frames..frames + frames / 20).contains(&last), "{last} of {frames}");
        assert!(kept.flows.iter().all(|flow| (flow.reordered, flow.retransmits, flow.timeouts) == (0, 0, 0)));
        let paused: u64 = kept
            .pauses
            .iter()
            .filter(|row| row.port.to_string().starts_with("h0->"))
            .map(|row| row.end_ps.expect("it ended") - row.start_ps)
            .sum();
        // Each of three hosts may send for a third of the time.
        assert!((frames / 2..frames * 3 / 4).contains(&paused), "{paused} of {frames}");
    }
}

/// A NIC asks for pauses from the start of its storm to its end, and again after half of each; the port waits from the moment at which it has the
/// frame. A watchdog of the sender's NIC ends such a pause after its time, and obeys again when there was none for another.
#[test]
fn storms_are_asked_for_again_and_watchdogs_do_not_wait_for_their_end() {
    const US: u64 = 1_000_000;
    let text = |host: &str| {
        let half = |dst: u32| {
            cbr(0, dst, 735_000)
                .changed("rate = \"10Gbps\"", "rate = \"4Gbps\"")
                .changed("kind = \"cbr\"", &format!("kind = \"cbr\"\nname = \"to{dst}\""))
        };
        star(
            3,
            &format!(
                "[switch]\nlatency = \"300ns\"\nbuffer = \"unlimited\"\n\
                 mechanisms.pfc = {{ memory = \"200KB\", classes = [0], xoff = {{ kind = \"static\", bytes = \"30KB\" }} }}\n[host]\n{host}\n{}{}",
                half(1),
                half(2)
            ),
        )
    };
    let of = |world: &World, name| world.counter("pfc", name);
    let storm = "storms = [{ hosts = [\"h2\"], classes = [0], start = \"100us\", end = \"5.1ms\" }]";
    let frame = wire(64) + DELAY + 300_000;
    let world = ended(&text(storm));
    assert_eq!(of(&world, "frames_received"), 4, "a pause lasts 3.355 ms: asked for, twice again, and ended");
    let kept = world.into_kept().expect("tables");
    assert_eq!(kept.summary["mechanisms"]["pfc"]["nic_frames_sent"], 4);
    let pauses = |kept: &Kept, port: &str| -> Vec<(u64, u64)> {
        let rows = kept.pauses.iter().filter(|row| row.port.to_string() == port);
        rows.map(|row| (row.start_ps, row.end_ps.expect("it ended"))).collect()
    };
    assert_eq!(pauses(&kept, "switch0->h2"), [(100 * US + frame, 5_100 * US + frame)]);
    assert!(pauses(&kept, "h0->switch0").iter().any(|(start, end)| end - start > 4_000 * US), "the memory is full");
    assert!(kept.flows.iter().all(|flow| flow.status.to_string() == "complete"));

    let watchdog =
        format!("pause_watchdog = {{ detection = \"200us\", restoration = \"100us\" }}\n{}", storm.changed("5.1ms", "1ms"));
    let world = ended(&text(&watchdog));
    assert!(world.totals().dropped > 0 && of(&world, "dropped_lossless") == world.totals().dropped);
    let kept = world.into_kept().expect("tables");
    let longest = pauses(&kept, "h0->switch0").iter().map(|(start, end)| end - start).max().expect("a pause");
    // The pause may begin between two datagrams, of which the next comes within 3.1 us.
    assert!((200 * US..=204 * US).contains(&longest), "{longest}");
    let pfc = &kept.summary["mechanisms"]["pfc"];
    assert_eq!((pfc["nic_storms"].as_u64(), pfc["nic_storms_over"].as_u64()), (Some(1), Some(1)));
}

/// The watchdog of a NIC counts from the first packet that waits, not from the pause: one that comes while nothing else happens is sent after its
/// time, to the picosecond.
#[test]
fn a_watchdog_counts_from_the_first_packet_that_waits() {
    const US: u64 = 1_000_000;
    let later = cbr(0, 1, 1_472).changed("kind = \"cbr\"", "kind = \"cbr\"\nname = \"later\"\nstart = \"200us\"");
    let set = "[switch]\nbuffer = \"unlimited\"\nmechanisms.pfc = { memory = \"200KB\", classes = [0], xoff = { kind = \"static\", bytes = \"30KB\" } }\n\
               [host]\npause_watchdog = { detection = \"150us\", restoration = \"50us\" }\n\
               storms = [{ hosts = [\"h2\"], classes = [0], start = \"0us\", end = \"1ms\" }]\n";
    // 21 frames are more than XOFF, and have all been sent when it comes.
    let kept = kept(&star(3, &format!("{set}{}{later}", cbr(0, 2, 21 * 1_472))));
    let row = kept.flows.iter().find(|row| row.dst.to_string() == "h1").expect("a row");
    assert_eq!(row.finish_ps, Some(350 * US + 2 * (FULL + DELAY)));
    assert_eq!(kept.summary["mechanisms"]["pfc"]["nic_storms"], 1);
}

/// A burst goes to the wire at once and stands there; of a NIC that may be paused each frame has a turn of its own, at the same time.
#[test]
fn a_burst_is_handed_over_at_once_where_nobody_pauses_it() {
    for (switch, sent) in [("", 45), ("mechanisms.pfc = { memory = \"1MB\", classes = [0] }", 5)] {
        let set = format!("[switch]\nbuffer = \"unlimited\"\n{switch}\n[transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 100\ntso = true\n");
        let mut world = ended(&format!("duration = \"15us\"\n{}", star(2, &format!("{set}{}", flow(0, 1, 45 * 1_448)))));
        let ports = world.ports_now();
        let nic = ports.iter().find(|port| port.name == "h0->switch0").expect("a port");
        // From 10 us on one frame each 1.23 us.
        assert_eq!((world.totals().sent, nic.tx_packets), (sent, 5), "{switch}");
    }
}

/// HPCC learns from what its packets read of queues: those of two senders at one port are short when it has had time, where windows of a
/// bandwidth-delay product each would leave one standing.
#[test]
fn telemetry_reaches_the_endpoints() {
    let set =
        "[switch]\nbuffer = \"unlimited\"\nmechanisms.int = {}\n[transport]\nkind = \"roce\"\ncongestion_control = \"hpcc\"\n";
    let text =
        star(5, &format!("{set}{}{}{}{}", flow(0, 4, 300_000), flow(1, 4, 300_000), flow(2, 4, 300_000), flow(3, 4, 300_000)));
    let kept = kept(&text.changed("sample = \"off\"", "sample = \"50us\""));
    let rows: Vec<u64> =
        kept.ports.iter().filter(|row| row.port.to_string() == "switch0->h4").map(|row| row.queue_bytes).collect();
    // The product is that of the round trip and the rate.
    let product = kept.flows[0].base_rtt_ps / 800;
    assert!(rows.len() > 15, "{rows:?}");
    let later = &rows[8..rows.len() - 3];
    assert!(later.iter().all(|bytes| *bytes < product), "{later:?} of {product}");
}

/// NAPI: one poll takes all packets of its delay, GRO merges consecutive segments up to its bounds, and each merged one is acknowledged once.
#[test]
fn a_poll_merges_what_came_and_is_answered_once() {
    // 34 segments, 17 of which come in 21 us; a poll begins 20 us after the first.
    let acks = |napi: &str| {
        let set = format!(
            "[host]\n{napi}\n[transport]\nkind = \"tcp\"\nprofile = \"linux\"\nhandshake = false\ninitial_window = 34\nreceive_window = {{ kind = \"fixed\", size = \"1MiB\" }}\n"
        );
        let world = ended(&star(2, &format!("{set}{}", flow(0, 1, 34 * 1_448))));
        let sent = world.totals().sent;
        let flow = world.into_kept().expect("tables").flows.remove(0);
        (sent - flow.packets_sent, flow.finish_ps.expect("complete") - flow.start_ps - flow.ideal_ps)
    };
    let napi = |more: &str| format!("receive = {{ kind = \"napi\", interrupt_delay = \"20us\"{more} }}");
    let last = 33 * FULL;
    // The second poll begins 20 us after the first segment that the first did not take, the 18th.
    let late = 17 * FULL + 20_000_000 - last;
    let (none, at) = acks("");
    assert_eq!(at, 0);
    assert!(none >= 17, "{none}");
    let (merged, at) = acks(&napi(""));
    assert_eq!(at, late);
    let (single, at) = acks(&napi(", gro = false"));
    assert_eq!(at, late);
    let (pairs, _) = acks(&napi(", gro_max = \"2900B\""));
    let (budget, _) = acks(&napi(", budget = 2"));
    assert!(merged <= 4 && single >= 17, "{merged} {single}");
    assert_eq!(pairs, budget, "both merge two and two");
    assert!((16..=20).contains(&pairs), "{pairs}");
}

/// Noise delays packets, uniform noise within its bound, and none overtakes another.
#[test]
fn noise_delays_and_keeps_the_order() {
    let run = |noise: &str| {
        let set = format!("[host]\n{noise}\n[transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 100\n");
        let kept = kept(&star(2, &format!("{set}{}", flow(0, 1, 40 * 1_448))));
        let flow = &kept.flows[0];
        assert_eq!((flow.reordered, flow.retransmits, flow.delivered_bytes), (0, 0, 40 * 1_448));
        flow.finish_ps.expect("complete") - flow.start_ps - flow.ideal_ps
    };
    assert_eq!(run(""), 0);
    for (noise, most) in [
        ("noise = { kind = \"uniform\", max = \"50us\" }", 50_000_000),
        ("noise = { kind = \"exponential\", mean = \"10us\" }", u64::MAX),
    ] {
        let late = run(noise);
        assert!(0 < late && late <= most, "{noise}: {late}");
    }
    assert!(run("noise = { kind = \"uniform\", max = \"1ns\" }") <= 1_000);
}

/// A follower starts when the data before it is there; elsewhere, when a smallest frame from there has crossed the idle network.
#[test]
fn flows_follow_what_their_opener_knows() {
    let one = |id: &str, src: u32, dst: u32, more: &str| {
        format!("{{ id = \"{id}\", src = \"h{src}\", dst = \"h{dst}\", size = \"14480B\"{more} }}")
    };
    let flows = [
        one("a", 0, 1, ""),
        one("here", 1, 2, ", after = [\"a\"]"),
        one("later", 1, 2, ", after = [\"a\"], delay = \"7us\""),
        one("there", 3, 2, ", after = [\"a\"]"),
        one("asked", 1, 3, ", request = \"100B\", after = [\"a\"]"),
    ];
    let kept = kept(&star(
        4,
        &format!(
            "[transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 100\n[[traffic]]\nkind = \"flows\"\nflows = [{}]\n",
            flows.join(", ")
        ),
    ));
    let of =
        |id: &str| kept.flows.iter().find(|flow| flow.id.as_ref().is_some_and(|known| known.to_string() == id)).expect("a row");
    let known = of("a").finish_ps.expect("complete");
    let message = 2 * (wire(64) + DELAY);
    assert_eq!(known, 10 * FULL + FULL + 2 * DELAY);
    for (id, later) in [("here", 0), ("later", 7_000_000), ("there", message), ("asked", message)] {
        assert_eq!(of(id).start_ps, known + later, "{id}");
    }
}

/// Each flow has a port of its own, by its entry's name and its number there: flows of one pair take both ways, and another entry moves none.
#[test]
fn flows_of_a_pair_have_ports_of_their_own() {
    let ways = |first: &str| {
        let flows = vec!["{ src = \"h0\", dst = \"h1\", size = \"1000B\" }"; 32].join(", ");
        let text = format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 1\nspines = 2\n\
             host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\n[telemetry]\nsample = \"off\"\n{first}\
             [[traffic]]\nkind = \"flows\"\nname = \"pairs\"\nflows = [{flows}]\n"
        );
        let ports = ended(&text).ports_now();
        [0, 1].map(|spine| ports.iter().find(|port| port.name == format!("leaf0->spine{spine}")).expect("a port").tx_packets)
    };
    let alone = ways("");
    // Of 32 fair draws fewer than six are one side's once in 20,000.
    assert!(alone[0] + alone[1] == 32 && alone.iter().all(|n| *n >= 6), "{alone:?}");
    assert_eq!(ways(&cbr(1, 0, 1_472)), alone);
}

/// A flow that gives up says so to its peer, which is gone a smallest frame's time later: the run ends then. A datagram that is lost leaves its flow
/// incomplete.
#[test]
fn a_flow_that_ends_badly_is_over_at_both_ends() {
    let dead = "[transport]\nkind = \"tcp\"\nhandshake = false\nrto_initial = \"20us\"\nrto_min = \"10us\"\nmax_retries = 1\n\
                [[events]]\nkind = \"down\"\nlinks = [\"switch0->h1\"]\nstart = \"0us\"\nend = \"5ms\"\n";
    let world = ended(&star(2, &format!("{dead}{}", flow(0, 1, 1_000))));
    let (totals, now) = (world.totals(), world.now().ps());
    assert_eq!((totals.started, totals.ended, totals.delivered, totals.stray), (1, 1, 0, 0));
    let kept = world.into_kept().expect("tables");
    let row = &kept.flows[0];
    assert_eq!((row.status.to_string().as_str(), row.timeouts, row.finish_ps), ("aborted", 2, None));
    // Sent at 10 us and again at 30; given up 40 us later. The peer knows when a smallest frame has crossed.
    assert_eq!(now, 70_000_000 + 2 * (wire(64) + DELAY));
    assert_eq!(kept.summary["flows"]["aborted"], 1);

    let text = star(
        3,
        &format!(
            "[switch]\nbuffer = {{ kind = \"static\", per_port = \"4 packets\" }}\n{}{}",
            cbr(0, 2, 29_440),
            cbr(1, 2, 14_720)
        ),
    );
    let world = ended(&text);
    let dropped = world.totals().dropped;
    let kept = world.into_kept().expect("tables");
    let all = kept.drops.len() as u64;
    assert_eq!((dropped, kept.summary["datagrams"]["received"].as_u64()), (all, Some(30 - all)));
    for flow in &kept.flows {
        let lost = kept.drops.iter().filter(|drop| drop.flow == flow.flow).count() as u64;
        let status = if lost == 0 { "complete" } else { "incomplete" };
        assert_eq!((flow.status.to_string().as_str(), flow.delivered_bytes), (status, (flow.packets_sent - lost) * 1_472));
        assert_eq!(flow.finish_ps.is_some(), lost == 0);
    }
}

/// A queue of the host's own loses what does not fit of datagrams: it holds so many besides the one on the wire.
#[test]
fn a_full_queue_of_the_host_loses_datagrams() {
    let twice = |name: &str| cbr(0, 1, 58_880).changed("kind = \"cbr\"", &format!("kind = \"cbr\"\nname = \"{name}\""));
    let mut world =
        ended(&star(2, &format!("[host]\nnic = {{ kind = \"fifo\", txqueuelen = 6 }}\n{}{}", twice("a"), twice("b"))));
    let ports = world.ports_now();
    let port = ports.iter().find(|port| port.name == "h0->switch0").expect("a port");
    // Two come in the time of one: 40 leave while 80 come, and what stands in the queue leaves behind them.
    assert_eq!((port.tx_packets, port.drops), (40 + 6, 80 - 46));
    assert_eq!((world.totals().sent, world.totals().dropped), (80, 34));
    assert!(world.into_kept().expect("tables").drops.iter().all(|row| row.queue_bytes == 6 * 1_518));
}

/// Packets that are sprayed over two ways overtake each other; a host that puts them in order lets its transport see no gap. In order none waits.
#[test]
fn a_host_puts_packets_in_order_within_its_time() {
    let set = "[host]\nreorder = { timeout = \"1ms\" }\n[transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 100\n";
    let alone = kept(&star(2, &format!("{set}{}", flow(0, 1, 40 * 1_448))));
    assert_eq!(alone.summary["reordering"]["buffer"], serde_json::json!({ "waited": 0, "given_up": 0 }));
    let sprayed = kept(&format!(
        "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 2\nspines = 2\n\
         host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [switch]\nrouting = \"spray\"\nbuffer = \"unlimited\"\n{set}[telemetry]\nsample = \"off\"\n{}{}",
        flow(0, 2, 80 * 1_448),
        flow(1, 3, 80 * 1_448)
    ));
    let buffer = &sprayed.summary["reordering"]["buffer"];
    assert!(sprayed.flows.iter().any(|flow| flow.reordered > 0));
    assert!(sprayed.flows.iter().all(|flow| (flow.delivered_bytes, flow.retransmits) == (80 * 1_448, 0)));
    assert!(buffer["waited"].as_u64() > Some(0) && buffer["given_up"] == 0, "{buffer}");
}

/// Losses are counted under their reason.
#[test]
fn losses_have_their_reason() {
    let all = lost(ended(&star(
        3,
        &format!(
            "[switch]\nbuffer = {{ kind = \"static\", per_port = \"4 packets\" }}\n{}{}",
            cbr(0, 2, 29_440),
            cbr(1, 2, 29_440)
        ),
    )));
    assert_eq!(all.into_iter().collect::<Vec<_>>(), [("buffer_full".to_string(), 40 - 20 - 4)]);
}
