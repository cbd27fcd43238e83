//! Trimming in a network: what is cut is accounted for, headers come when they say, and losses cost no timeout.

use crate::common::*;
use fanin_sim::{Pause, World};
use fanin_telemetry::{DropRow, FlowRow};
use fanin_units::Span;

/// PDN's fan-in, and switches that trim.
fn trimmed_fan_in(n: u32, transport: &str, trimming: &str) -> String {
    let trimming = trimming.trim_start_matches(", ");
    fan_in(n, transport, &format!("mechanisms.trimming = {{ {trimming} }}"))
}

const NACK: &str = "trim_nack = true";
/// Room for all headers that there can be.
const ROOM: &str = ", headers = \"1MB\"";

struct Outcome {
    counts: Trims,
    flows: Vec<FlowRow>,
    drops: Vec<DropRow>,
}

impl Completed for Outcome {
    fn flows(&self) -> &[FlowRow] {
        &self.flows
    }
}

/// What must hold of trimmed packets, NACKs and all packets at any time.
fn balance(world: &mut World) {
    let ports = world.ports_now();
    let (t, c) = (world.totals(), Trims::of(world));
    let (headers, nacks) = world.trimmed_and_signals_on_the_way();
    assert_eq!(c.trimmed, c.headers_gone() + headers, "{c:?}");
    assert_eq!(c.nacked, c.nacks_gone() + nacks, "{c:?}");
    assert!(c.tail_trimmed <= c.trimmed);
    assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
    let exist = ports.iter().map(|p| p.on_wire + p.queue_packets).sum::<u64>() + world.held();
    assert_eq!(world.in_flight(), exist);
    assert_eq!(t.packet_hops, ports.iter().map(|p| p.tx_packets - p.on_wire).sum::<u64>());
}

fn play(text: &str) -> Outcome {
    let world = run_in_steps(text, balance);
    let counts = Trims::of(&world);
    let kept = world.into_kept().expect("tables");
    Outcome { counts, flows: kept.flows, drops: kept.drops }
}

/// Below the collapse nothing is trimmed. Above it, with room for all headers, nothing is dropped: each trimmed packet makes its
/// sender send one segment again, nothing times out, and the transfer is within 3 ms of the best case, as with PDN, and the time
/// that the headers take on the link, 84 B each.
#[test]
fn every_loss_is_trimmed_and_nothing_times_out() {
    let quiet = play(&trimmed_fan_in(40, NACK, ROOM));
    assert_eq!(quiet.counts, Trims::default());
    for cut in ["", ", cut = \"arriving\""] {
        for n in [90, 150] {
            for more in ["", "\ndrop_resend = \"window\"", "\nsack = true"] {
                let transport = format!("{NACK}{more}").replace("sack = true", "");
                let text = trimmed_fan_in(n, &transport, &format!("{ROOM}{cut}"));
                let text = if more.contains("sack") { text.replace("sack = false", "sack = true") } else { text };
                let ran = play(&text);
                let c = ran.counts;
                // All segments are of one size: each cut is a fair coin's, to five standard deviations.
                let (tails, half) = (c.tail_trimmed as f64, c.trimmed as f64 / 2.0);
                let fair = if cut.is_empty() { (tails - half).abs() < 5.0 * (half / 2.0).sqrt() } else { c.tail_trimmed == 0 };
                assert!(c.trimmed > 0 && fair, "{c:?}");
                assert_eq!((c.nack_retransmitted, c.nacked, ran.drops.len()), (c.trimmed, c.trimmed, 0), "{c:?}");
                assert_eq!((ran.timeouts(), ran.retransmits()), (0, c.trimmed), "{n} {more} {cut}");
                let best = Span::from_secs_f64(f64::from(n) * 10_000.0 * 8.0 / 1e9) + Span::from_us(100);
                let headers = Span::from_ns(84 * 8) * c.trimmed;
                println!("{n}{more}{cut}: {} over {best}, {} trimmed", ran.last(), c.trimmed);
                assert!(ran.last() < best + headers + Span::from_ms(3), "{n}: {} over {best}", ran.last());
            }
        }
    }
}

/// The same without anyone who answers: headers come and are counted, and senders wait for RTO_min.
#[test]
fn without_ears_there_are_timeouts() {
    let ran = play(&trimmed_fan_in(90, "", ROOM));
    let c = ran.counts;
    assert!(c.ignored > 0 && c.ignored + c.flow_ended == c.trimmed && c.nacked == 0, "{c:?}");
    assert!(ran.timeouts() > 0 && ran.last() > Span::from_ms(200));
}

/// A queue of headers with room for 15 loses the others, with a reason, and some senders wait for their timers: all ten segments of
/// 150 servers come at once.
#[test]
fn a_full_queue_of_headers_loses_and_counts() {
    let text = trimmed_fan_in(150, &format!("{NACK}\nhandshake = false"), ", headers = \"1KB\"");
    let ran = play(&text.replace("initial_window = 1", "initial_window = 10"));
    let lost: Vec<&DropRow> = ran.drops.iter().filter(|row| row.reason.to_string() == "headers_full").collect();
    assert!(ran.counts.headers_lost > 0 && lost.len() == ran.drops.len());
    assert_eq!(lost.iter().filter(|row| row.payload_bytes > 0).count() as u64, ran.counts.headers_lost);
    assert!(lost.iter().all(|row| row.frame_bytes == 64));
    assert!(ran.timeouts() > 0);
}

/// Two hosts send 30 full segments each to a third; the port holds 20.
fn two_to_one(switch: &str, more: &str) -> String {
    format!(
        r#"
        [topology]
        kind = "single_switch"
        hosts = 3
        link = {{ rate = "1Gbps", delay = "10us" }}
        [switch]
        buffer = {{ kind = "static", per_port = "20 packets" }}
        {switch}
        [transport]
        kind = "tcp"
        timestamps = false
        handshake = false
        initial_window = 30
        trim_nack = true
        [[traffic]]
        kind = "incast"
        receiver = "h2"
        senders = ["h0", "h1"]
        size = "43800B"
        [telemetry]
        sample = "off"
        {more}
        "#
    )
}

/// When the sender is notified, to the picosecond. Of two packets that arrive together the second is cut; its header waits for the
/// packet that has just begun to leave (1538 B of wire time), leaves before all data (84 B), and reaches the receiver just when
/// that has sent an ACK of the data before it (84 B). The NACK, 20 + 20 + 12 + 18 = 70 B in a frame, 90 B of wire time, crosses two links.
#[test]
fn a_nack_comes_as_soon_as_headers_can() {
    let mut world = make(&two_to_one("mechanisms.trimming = { cut = \"arriving\" }", ""));
    let (mut cut, mut heard) = (None, None);
    while heard.is_none() {
        assert_eq!(world.advance(1).expect("tables"), Pause::Budget);
        let c = Trims::of(&world);
        cut = cut.or((c.trimmed == 1).then(|| world.now()));
        heard = (c.nack_retransmitted == 1).then(|| world.now());
    }
    let byte = Span::from_ns(8);
    let way = byte * 1538 + byte * 84 + Span::from_us(10) + (byte * 90 + Span::from_us(10)) * 2;
    assert_eq!(heard.map(|at| at.since(cut.expect("a cut"))), Some(way));
    let ran = finish(world);
    assert!(ran.kept.drops.is_empty() && ran.kept.flows.iter().all(|f| f.timeouts == 0 && f.status.to_string() == "complete"));
}

/// Rows of a watched port are of the data's queue: one, whole, for each arrival there, dropped where it was cut. Headers have none.
/// So what was accepted is what the port sends besides headers, and tails, which were cut afterwards.
#[test]
fn rows_of_a_watched_port_are_of_its_data() {
    for (cut, tails) in [("arriving", false), ("either", true)] {
        let trimming = format!("mechanisms.trimming = {{ cut = \"{cut}\" }}");
        let text = two_to_one(&trimming, "queues = [\"switch0->h2\"]");
        let mut world = make(&text);
        while world.advance(64).expect("tables") == Pause::Budget {}
        let c = Trims::of(&world);
        let ran = run(&text);
        let rows = &ran.kept.queues;
        let port = ran.port("switch0->h2");
        assert!(c.trimmed > 0 && (c.tail_trimmed > 0) == tails && ran.kept.drops.is_empty() && port.drops == 0, "{c:?}");
        assert_eq!(rows.len() as u64, port.tx_packets);
        assert!(rows
            .iter()
            .all(|row| row.frame_bytes > 64 && row.queue_packets <= 20 && (!row.dropped || row.queue_packets == 20)));
        assert_eq!(rows.iter().filter(|row| row.dropped).count() as u64, c.trimmed - c.tail_trimmed);
        let accepted = rows.iter().filter(|row| !row.dropped).map(|row| u64::from(row.frame_bytes)).sum::<u64>();
        assert_eq!(rows.iter().filter(|row| row.replaced).count() as u64, c.tail_trimmed);
        assert!(rows.iter().all(|row| !row.replaced || (row.queue_packets == 20 && !row.dropped)));
        assert_eq!(accepted + (c.trimmed - c.tail_trimmed) * 64, port.tx_bytes + c.tail_trimmed * (1518 - 64));
    }
}

/// Headers carry stamps as data do, of the data's queue, though they have no rows; those that come as headers too.
#[test]
fn headers_are_stamped_without_a_row() {
    let more = "queues = [\"switch0->h2\"]\nregisters = {}";
    let ran = run(&two_to_one("mechanisms.trimming = { cut = \"arriving\" }", more).replace("20 packets", "30360B"));
    let headers: Vec<_> = ran.kept.stamps.iter().filter(|row| row.frame_bytes < 100).collect();
    assert!(!headers.is_empty() && headers.iter().all(|row| row.stamp_length == (30_360_u64 / 8) as u16), "{headers:?}");
    assert_eq!(ran.kept.stamps.len(), ran.kept.queues.len());
    assert_eq!(headers.len(), ran.kept.queues.iter().filter(|row| row.dropped).count());
}

/// What takes the last place of a queue is marked as what is admitted: by the queue without the packet whose place it takes, at
/// enqueue or at dequeue. Headers are not marked, here or in the rows of a port that shares the pool of packets with others.
#[test]
fn what_takes_the_last_place_is_marked_as_others_are() {
    for (k, at) in [(3, "enqueue"), (4, "enqueue"), (2, "dequeue")] {
        let switch =
            format!("marking = {{ kind = \"threshold\", k = \"{k} packets\", at = \"{at}\" }}\nmechanisms.trimming = {{}}");
        let back = "queues = [\"switch0->h2\"]\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsize = \"2MB\"";
        let text = two_to_one(&switch, back)
            .replace("timestamps = false", "timestamps = false\necn = true\nect_on = \"data\"")
            .replace("20 packets", "5 packets")
            .replace("43800B", "2MB");
        let mut world = make(&text);
        while world.advance(64).expect("tables") == Pause::Budget {
            balance(&mut world);
        }
        let c = Trims::of(&world);
        assert!(c.tail_trimmed > 10 && c.tail_trimmed + 10 < c.trimmed, "{c:?}");
        let ran = run(&text);
        // Acknowledgments of what h2 sends have no rows.
        assert!(ran.kept.queues.iter().all(|row| row.frame_bytes > 100 && !(row.marked && row.dropped)));
        let data: Vec<_> = ran.kept.queues.iter().filter(|row| !row.dropped).collect();
        if at == "enqueue" {
            // What finds five packets takes the place of one of them: it has found four.
            assert!(data.iter().all(|row| row.marked == (row.queue_packets.min(4) > k)));
        }
        let marked = data.iter().filter(|row| row.marked).count() as u64;
        assert!(marked == ran.port("switch0->h2").marks && (marked > 10 || k == 4), "{k} {at}: {marked}");
    }
}

/// Thirty hosts send at once: the port sends one packet, holds eight and is left with the headers of the others. Ten of
/// them leave for each data packet, or as many as `ratio` says, as long as both wait.
#[test]
fn headers_and_data_take_turns() {
    for ratio in [10, 3] {
        let ran = run(&format!(
            r#"
            [topology]
            kind = "single_switch"
            hosts = 31
            link = {{ rate = "1Gbps", delay = "1ms" }}
            [switch]
            buffer = {{ kind = "static", per_port = "8 packets" }}
            mechanisms.trimming = {{ ratio = {ratio} }}
            [transport]
            kind = "tcp"
            timestamps = false
            handshake = false
            initial_window = 2
            trim_nack = true
            [[traffic]]
            kind = "incast"
            receiver = "h30"
            size = "2920B"
            [telemetry]
            sample = "off"
            capture = {{ hosts = ["h30"] }}
            "#
        ));
        let mut capture = fanin_wire::Capture::new(&ran.kept.packets[..]).expect("a capture");
        let mut order = String::new();
        while let Some(frame) = capture.next_frame().expect("a frame") {
            if frame.direction == Some(fanin_wire::Direction::In) {
                let headers = frame.headers().expect("headers");
                assert_eq!(headers.payload, 1460);
                order.push(if frame.frame_bytes() == 64 { 'h' } else { 'D' });
            }
        }
        // Of the first window, 60 packets in two rounds of 30, before any copy can come: nine are data, one of them sent at once.
        let mut expected = String::from("D");
        let mut headers = 51;
        for _ in 0..8 {
            let turn = headers.min(ratio);
            expected += &"h".repeat(turn);
            expected.push('D');
            headers -= turn;
        }
        expected += &"h".repeat(headers);
        assert_eq!(order[..60], expected);
    }
}

/// Datagrams are dropped as ever, since nobody sends them again; packets of TCP beside them are trimmed.
#[test]
fn datagrams_are_not_trimmed() {
    let more = "\n[[traffic]]\nkind = \"cbr\"\nsrc = \"h1\"\ndst = \"h2\"\nrate = \"900Mbps\"\ncounts = \"wire\"\npacket = \"1000B\"\nsize = \"100KB\"";
    let ran = play(&two_to_one("mechanisms.trimming = {}", more));
    assert!(ran.counts.trimmed > 0 && !ran.drops.is_empty());
    assert!(ran.drops.iter().all(|row| row.payload_bytes == 1000 && row.reason.to_string() == "buffer_full"));
    assert_eq!(ran.timeouts(), 0);
}

/// Switches that do not trim drop; headers cross them as packets like others.
#[test]
fn mixed_fabrics_drop_where_they_do_not_trim() {
    let right = play(&trimmed_fan_in(90, NACK, &format!("{ROOM}, unaware = [\"right\"]")));
    assert!(
        right.counts.nack_retransmitted == right.counts.trimmed && right.drops.is_empty() && right.timeouts() == 0,
        "{:?}",
        right.counts
    );
    let left = play(&trimmed_fan_in(90, NACK, &format!("{ROOM}, unaware = [\"left\"]")));
    assert!(left.counts.trimmed == 0 && !left.drops.is_empty() && left.timeouts() > 0, "{:?}", left.counts);
    assert!(left.drops.iter().all(|row| row.reason.to_string() == "buffer_full"));
}

/// Headers and NACKs cross three tiers in a fabric where all hosts send to one and one to all, by any choice of paths: what is
/// trimmed at one port meets full queues at others, as do the NACKs on their way back. Nothing is lost, nothing times out.
#[test]
fn headers_and_nacks_cross_three_tiers() {
    for (routing, control) in [("ecmp", "newreno"), ("spray", "newreno"), ("ecmp", "dctcp"), ("spray", "cubic")] {
        let ran = play(&format!(
            r#"
            [topology]
            kind = "fat_tree"
            k = 4
            [switch]
            buffer = {{ kind = "static", per_port = "8 packets" }}
            marking = {{ kind = "threshold", k = "4 packets" }}
            mechanisms.trimming = {{ headers = "200KB" }}
            routing = "{routing}"
            [transport]
            kind = "tcp"
            congestion_control = "{control}"
            trim_nack = true
            handshake = false
            ecn = true
            initial_window = 20
            rto_min = "200ms"
            ack_every = 1
            [[traffic]]
            kind = "incast"
            receiver = "h15"
            size = "100KB"
            [[traffic]]
            kind = "all_to_all"
            size = "30KB"
            [telemetry]
            sample = "off"
            "#
        ));
        let c = ran.counts;
        assert!(c.trimmed > 1_000 && c.nacked == c.trimmed && ran.drops.is_empty(), "{routing} {control}: {c:?}");
        // Without reordering no copy is sent for nothing; spraying makes duplicate ACKs that indicate no loss.
        if routing == "ecmp" {
            assert_eq!((c.nack_retransmitted, ran.retransmits()), (c.trimmed, c.trimmed), "{control}: {c:?}");
        }
        assert_eq!((ran.timeouts(), c.nacks_gone()), (0, c.nacked), "{routing} {control}");
    }
}

mod random {
    use super::*;
    use crate::random::{classes, fifo};
    use fanin_scenario::Scenario;
    use proptest::prelude::*;
    use std::path::Path;

    proptest! {
        #![proptest_config(property(150, 20_30))]

        /// In any network, with any buffer, scheduler, marking and transport: every trimmed packet, every NACK and every packet is
        /// accounted for, datagrams are not trimmed, twice the same is the same, and so it is whether ports are watched or not, and whether
        /// headers stand in the ring before data, where they may, or departures are always events.
        #[test]
        fn what_is_trimmed_is_accounted_for(
            random in prop_oneof![fifo(), classes()],
            (headers, ratio) in (128u32..2_000, 1u32..12),
            (either, all, heard) in (any::<bool>(), any::<bool>(), any::<bool>()),
            budgets in prop::collection::vec(1u64..400, 1..20),
        ) {
            let unaware = if all { "" } else { "\"*0\", \"left\"" };
            let cut = if either { "either" } else { "arriving" };
            let trimming = format!("[switch]\nmechanisms.trimming = {{ headers = \"{headers}B\", ratio = {ratio}, cut = \"{cut}\", unaware = [{unaware}] }}\n");
            let by = |ports, telemetry| random.plain().with(ports, telemetry).replace("[switch]\n", &trimming).replace("kind = \"tcp\"\n", &format!("kind = \"tcp\"\ntrim_nack = {heard}\n"));
            let text = by("auto", true);
            prop_assume!(Scenario::from_toml(&text, Path::new(".")).is_ok());
            let mut world = make(&text);
            for budget in budgets.iter().cycle() {
                let pause = world.advance(*budget).expect("tables in memory");
                balance(&mut world);
                if pause != Pause::Budget {
                    prop_assert_eq!(pause, Pause::Done);
                    break;
                }
            }
            let c = Trims::of(&world);
            prop_assert!(heard || c.nacked == 0);
            prop_assert!(either || c.tail_trimmed == 0);
            let kept = world.into_kept().expect("tables in memory");
            prop_assert_eq!(&run(&text).kept, &kept);
            prop_assert_eq!(&run(&by("explicit", true)).kept, &kept);
            prop_assert_eq!(run(&by("auto", false)).kept.fingerprint, kept.fingerprint);
        }
    }
}
