//! Drop notifications in a network: what is raised is accounted for, frames are as long as they say, and losses cost no timeout.

use crate::common::*;
use fanin_sim::{Pause, World};
use fanin_telemetry::FlowRow;
use fanin_units::{Span, Time};

const PDN: &str = "mechanisms.pdn = {}";
const ENABLED: &str = "drop_notification = true";

struct Outcome {
    counts: Notices,
    flows: Vec<FlowRow>,
    end: Time,
    drops: u64,
}

impl Completed for Outcome {
    fn flows(&self) -> &[FlowRow] {
        &self.flows
    }
}

/// What must hold of notifications and packets at any time.
fn balance(world: &mut World) {
    let ports = world.ports_now();
    let (t, c) = (world.totals(), Notices::of(world));
    assert_eq!(c.raised, c.stranded() + world.messages_on_the_way() + c.reached(), "{c:?}");
    assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
    let exist = ports.iter().map(|p| p.on_wire + p.queue_packets).sum::<u64>();
    assert!(world.in_flight() <= exist && exist - world.in_flight() <= world.messages_on_the_way() + c.lost);
    assert_eq!(t.packet_hops, ports.iter().map(|p| p.tx_packets - p.on_wire).sum::<u64>());
}

fn play(text: &str) -> Outcome {
    let world = run_in_steps(text, balance);
    let (counts, end) = (Notices::of(&world), world.now());
    let drops = world.totals().dropped;
    Outcome { counts, flows: world.into_kept().expect("tables").flows, end, drops }
}

/// Below the collapse nothing is dropped or notified. Above it each drop is notified, each notification makes its sender
/// retransmit one segment, nothing times out, and the transfer is within 3 ms of the best case, as the paper says of 150 servers.
#[test]
fn every_drop_is_notified_and_nothing_times_out() {
    let quiet = play(&fan_in(40, ENABLED, PDN));
    assert_eq!((quiet.counts, quiet.drops), (Notices::default(), 0));
    for n in [90, 150] {
        let ran = play(&fan_in(n, ENABLED, PDN));
        let c = ran.counts;
        assert!(c.raised > 0 && c.raised == ran.drops, "{c:?}");
        assert_eq!((c.retransmitted, c.stranded()), (c.raised, 0), "{c:?}");
        assert_eq!((ran.timeouts(), ran.retransmits()), (0, c.raised));
        let best = Span::from_secs_f64(f64::from(n) * 10_000.0 * 8.0 / 1e9) + Span::from_us(100);
        assert!(ran.last() - best < Span::from_ms(3), "{n}: {} over {best}", ran.last());
    }
}

/// The same drops without anyone who listens: notifications come and are counted, and senders wait for RTO_min.
#[test]
fn without_ears_there_are_timeouts() {
    let ran = play(&fan_in(90, "", PDN));
    assert!(ran.counts.ignored > 0 && ran.counts.ignored + ran.counts.flow_ended == ran.counts.raised, "{:?}", ran.counts);
    assert!(ran.timeouts() > 0 && ran.last() > Span::from_ms(200));
    assert!(ran.end >= Time::ZERO + ran.last());
}

/// When the notification is there, to the picosecond: from the drop, serialisation of an empty minimum frame on an idle port,
/// or of the next acknowledgment and 20 bytes, and propagation. The segment leaves at once.
#[test]
fn a_notification_comes_as_soon_as_its_frame() {
    let text = r#"
        [topology]
        kind = "single_switch"
        hosts = 3
        link = { rate = "1Gbps", delay = "10us" }
        [switch]
        buffer = { kind = "static", per_port = "20 packets" }
        mechanisms.pdn = {}
        [transport]
        kind = "tcp"
        timestamps = false
        handshake = false
        initial_window = 30
        drop_notification = true
        [[traffic]]
        kind = "incast"
        receiver = "h2"
        senders = ["h0", "h1"]
        size = "43200B"
        [telemetry]
        sample = "off"
        "#;
    let mut world = make(text);
    let heard = loop {
        assert_eq!(world.advance(1).expect("tables"), Pause::Budget);
        if Notices::of(&world).retransmitted == 1 {
            break world.now();
        }
    };
    // Both senders are active when the first drop happens, and their ACKs of 64 B leave gaps: an empty frame.
    let empty = Span::from_ns((64 + 20) * 8) + Span::from_us(10);
    let ran = finish(world);
    let drop = Time::from_ps(ran.kept.drops[0].time_ps);
    assert_eq!(heard, drop + empty);
    // Full segments are 20 bytes shorter, so that a frame and its notification are 1518 bytes.
    assert_eq!(ran.kept.drops[0].frame_bytes, 1498);
    assert!(ran.kept.flows.iter().all(|f| f.timeouts == 0 && f.status.to_string() == "complete"));
}

/// What becomes of notifications around one switch, with `duration` and more besides.
fn around_a_switch(duration: &str, notification: &str, more: &str) -> Notices {
    let notification = notification.trim_start_matches(", ");
    let text = format!(
        r#"
        duration = "{duration}"
        [topology]
        kind = "single_switch"
        hosts = 5
        link = {{ rate = "1Gbps", delay = "5us" }}
        [switch]
        buffer = {{ kind = "static", per_port = "30KB" }}
        mechanisms.pdn = {{ {notification} }}
        [transport]
        kind = "tcp"
        timestamps = false
        handshake = false
        initial_window = 60
        drop_notification = true
        [telemetry]
        sample = "off"
        {more}
        "#
    );
    let mut world = make(&text);
    while world.advance(10).expect("tables") == Pause::Budget {
        balance(&mut world);
    }
    Notices::of(&world)
}

/// A busy port attaches: frames on their way to the sender carry notifications of other packets. Hosts send
/// in a circle, and three flows to one of them.
#[test]
fn a_busy_port_attaches() {
    let flows = [("h0", "h1"), ("h2", "h1"), ("h1", "h2"), ("h0", "h2"), ("h1", "h0"), ("h2", "h0"), ("h3", "h0")];
    let flows = flows.map(|(src, dst)| format!("{{ src = \"{src}\", dst = \"{dst}\", size = \"10MB\" }}")).join(", ");
    let c = around_a_switch("100ms", "", &format!("[[traffic]]\nkind = \"flows\"\nflows = [{flows}]"));
    assert!(c.raised > 20 && c.attached > c.empty_frames && c.overflowed == 0, "{c:?}");
    assert!(c.retransmitted + 5 > c.raised, "{c:?}");
}

/// Full frames of senders that leave no room keep a port busy: notifications wait for the few frames that have some. A queue of
/// 20 bytes holds one, and those that arrive while it waits are lost and counted. Of packets that arrive together h0's is first,
/// so that the drops are h3's.
#[test]
fn a_full_notification_queue_loses_and_counts() {
    let more = r#"
        [[traffic]]
        kind = "cbr"
        src = "h2"
        dst = "h3"
        rate = "600Mbps"
        counts = "wire"
        packet = "1472B"
        [[traffic]]
        kind = "cbr"
        src = "h4"
        dst = "h3"
        rate = "600Mbps"
        counts = "wire"
        packet = "1472B"
        [[traffic]]
        kind = "incast"
        receiver = "h1"
        senders = ["h0", "h3"]
        size = "200KB"
        start = "100us"
        "#;
    let one = around_a_switch("20ms", ", queue = \"20B\"", more);
    let many = around_a_switch("20ms", ", queue = \"20KB\"", more);
    assert!(one.overflowed > 0 && many.overflowed == 0, "{one:?}\n{many:?}");
}

/// A switch that is unaware of notifications sends none and carries none; a host that is unaware receives none. A sender that
/// is not notified times out.
#[test]
fn mixed_fabrics_lose_notifications_and_count_them() {
    let with = |unaware: &str| format!("mechanisms.pdn = {{ unaware = [{unaware}] }}");
    // The drops are at the left switch: its own notifications go straight to the servers.
    let right = play(&fan_in(90, ENABLED, &with("\"right\"")));
    assert!(right.counts.raised > 0 && right.counts.stranded() == 0 && right.timeouts() == 0, "{:?}", right.counts);
    let left = play(&fan_in(90, ENABLED, &with("\"left\"")));
    assert!(left.counts.raised == 0 && left.drops > 0 && left.timeouts() > 0, "{:?}", left.counts);
    let hosts = play(&fan_in(90, ENABLED, &with("\"h*\"")));
    assert!(
        hosts.counts.raised > 0 && hosts.counts.next_hop_unaware == hosts.counts.raised && hosts.timeouts() > 0,
        "{:?}",
        hosts.counts
    );
    let some = play(&fan_in(90, ENABLED, &with("\"h1\", \"h2*\"")));
    assert!(some.counts.retransmitted > 0 && some.counts.next_hop_unaware > 0, "{:?}", some.counts);
    // Drops at the right switch have to cross the left one.
    let slow = |unaware: &str| {
        fan_in(90, ENABLED, &with(unaware)).replace("bottleneck = { rate = \"1Gbps\"", "bottleneck = { rate = \"10Gbps\"")
    };
    let across = play(&slow("\"left\""));
    assert!(across.counts.raised > 0 && across.counts.next_hop_unaware == across.counts.raised, "{:?}", across.counts);
    let through = play(&slow("\"h90\""));
    assert!(through.counts.retransmitted == through.counts.raised && through.timeouts() == 0, "{:?}", through.counts);
}

/// Notifications cross three tiers to the senders of an incast, by any choice of paths, and nothing times out.
#[test]
fn notifications_cross_three_tiers() {
    for routing in ["ecmp", "spray"] {
        let ran = play(&format!(
            r#"
            [topology]
            kind = "fat_tree"
            k = 4
            [switch]
            buffer = {{ kind = "static", per_port = "60KB" }}
            mechanisms.pdn = {{}}
            routing = "{routing}"
            [transport]
            kind = "tcp"
            drop_notification = true
            handshake = false
            initial_window = 20
            rto_min = "200ms"
            ack_every = 1
            [[traffic]]
            kind = "incast"
            receiver = "h15"
            size = "100KB"
            [telemetry]
            sample = "off"
            "#
        ));
        let c = ran.counts;
        assert!(c.raised > 0 && c.raised == ran.drops && c.retransmitted == c.raised && c.stranded() == 0, "{routing}: {c:?}");
        // Most senders are in other pods: up to five links lie on the way.
        assert!(c.attached + c.empty_frames > 3 * c.raised, "{routing}: {c:?}");
        assert_eq!(ran.timeouts(), 0, "{routing}");
    }
}

/// Where every notification is lost, losses are found as without any: by timeouts where windows are small, by duplicate ACKs where
/// they are not.
#[test]
fn when_all_are_lost_it_is_as_without() {
    let deaf = play(&fan_in(90, ENABLED, "mechanisms.pdn = { loss = 1.0 }"));
    assert!(deaf.counts.raised > 0 && deaf.counts.lost == deaf.counts.raised, "{:?}", deaf.counts);
    assert!(deaf.timeouts() > 0 && deaf.last() > Span::from_ms(200));
    // A long flow with SACK, ten times as fast as the bottleneck in slow start.
    let long = |switch| {
        let text = fan_in(1, ENABLED, switch).replace("\"10KB\"", "\"10MB\"").replace("sack = false", "sack = true");
        finish(make(&text.replace("host_link = { rate = \"1Gbps\"", "host_link = { rate = \"10Gbps\""))).kept.flows[0].clone()
    };
    let (lost, without) = (long("mechanisms.pdn = { loss = 1.0 }"), long(""));
    let repairs = |f: &FlowRow| (f.retransmits, f.recoveries, f.timeouts, f.packets_sent);
    assert!(without.retransmits > 100 && without.recoveries > 0 && without.timeouts == 0, "{without:?}");
    assert_eq!(repairs(&lost), repairs(&without));
}

/// `loss` is the share of link crossings, over one link and over two, and what was lost costs timeouts.
#[test]
fn loss_is_a_share_of_crossings() {
    for (share, fast) in [(0.01, false), (0.1, false), (0.1, true), (0.5, true)] {
        let text = fan_in(150, ENABLED, &format!("mechanisms.pdn = {{ loss = {share} }}"));
        let uplink = "bottleneck = { rate = \"1Gbps\"";
        // The drops are then at the right switch, and the left one is on the way.
        let ran = play(&if fast { text.replace(uplink, "bottleneck = { rate = \"10Gbps\"") } else { text });
        let c = ran.counts;
        let crossings = (c.attached + c.empty_frames) as f64;
        let deviation = (crossings * share * (1.0 - share)).sqrt();
        println!("{share}: {} of {crossings} lost, {} raised, {} timeouts", c.lost, c.raised, ran.timeouts());
        assert!((c.lost as f64 - crossings * share).abs() < 4.0 * deviation, "{share}: {c:?}");
        assert_eq!(c.stranded(), c.lost, "{c:?}");
        assert!(if fast { crossings > c.raised as f64 } else { crossings == c.raised as f64 }, "{c:?}");
        assert!(ran.timeouts() > 0);
    }
}

/// Drawing whether notifications are lost disturbs nothing: a probability that is never met gives the same run, to the bit, with
/// paths, marks and starts at random.
#[test]
fn loss_disturbs_no_other_draw() {
    let text = |loss: &str| {
        let loss = loss.trim_start_matches(", ");
        format!(
            r#"
            [topology]
            kind = "fat_tree"
            k = 4
            [switch]
            buffer = {{ kind = "static", per_port = "60KB" }}
            marking = {{ kind = "red", min = "5 packets", max = "30 packets", weight = 0.2 }}
            mechanisms.pdn = {{ {loss} }}
            routing = "spray"
            [transport]
            kind = "tcp"
            drop_notification = true
            handshake = false
            initial_window = 20
            [[traffic]]
            kind = "incast"
            receiver = "h15"
            size = "100KB"
            jitter = "50us"
            "#
        )
    };
    let without = run(&text(""));
    assert!(without.totals.dropped > 0);
    assert_eq!(without, run(&text(", loss = 0")));
    assert_eq!(without, run(&text(", loss = 1e-300")));
    let lossy = run(&text(", loss = 0.2"));
    assert_ne!(without.kept.fingerprint, lossy.kept.fingerprint);
    assert_eq!(lossy, run(&text(", loss = 0.2")));
}

/// Two incasts in opposite directions over one link: acknowledgments of each find the port full of the other's data. Notified,
/// none costs a timeout; with `acks = false` those that were the last of their window do.
#[test]
fn acknowledgments_that_are_dropped_are_notified() {
    let text = |acks: bool| {
        format!(
            r#"
            [topology]
            kind = "dumbbell"
            left = 40
            right = 40
            [switch]
            buffer = {{ kind = "static", per_port = "40 packets" }}
            mechanisms.pdn = {{ acks = {acks} }}
            [transport]
            kind = "tcp"
            drop_notification = true
            handshake = false
            initial_window = 10
            rto_min = "200ms"
            ack_every = 1
            [[traffic]]
            kind = "incast"
            senders = ["h0..h39"]
            receiver = "h79"
            size = "30KB"
            [[traffic]]
            kind = "incast"
            senders = ["h40..h78"]
            receiver = "h0"
            size = "30KB"
            [telemetry]
            sample = "off"
            "#
        )
    };
    let notified = play(&text(true));
    let c = notified.counts;
    assert_eq!((c.raised, c.retransmitted + c.redundant, notified.timeouts()), (notified.drops, c.raised, 0), "{c:?}");
    assert!(c.retransmitted > notified.retransmits(), "some were acknowledgments: {c:?}");
    let silent = play(&text(false));
    assert!(silent.counts.raised < silent.drops && silent.timeouts() > 0, "{:?}", silent.counts);
}

/// The operation "retransmit": the same segments come again, and no window falls.
#[test]
fn retransmit_only_keeps_the_window() {
    let ran = play(&fan_in(90, ENABLED, "mechanisms.pdn = { operation = \"retransmit\" }"));
    assert!(ran.counts.retransmitted == ran.counts.raised && ran.timeouts() == 0);
    assert_eq!(ran.flows.iter().map(|f| f.recoveries).sum::<u32>(), 0);
}

mod random {
    use super::*;
    use crate::random::{classes, fifo};
    use fanin_scenario::Scenario;
    use proptest::prelude::*;
    use proptest::sample::select;
    use std::path::Path;

    proptest! {
        #![proptest_config(property(150, 20_30))]

        /// In any network, with any buffer, scheduler, marking and transport: every notification is accounted for, every packet
        /// too, twice the same is the same, and notifications that are ignored change no transport's decision.
        #[test]
        fn notifications_are_accounted_for(random in prop_oneof![fifo(), classes()], queue in 1u32..4, loss in select(vec![0.0, 0.02, 0.5, 1.0]), all in any::<bool>(), budgets in prop::collection::vec(1u64..400, 1..20)) {
            let unaware = if all { "" } else { "\"h1\"" };
            let bytes = if random.text.contains("ip = \"v6\"") { 44 } else { 20 };
            let notification = format!("[switch]\nmechanisms.pdn = {{ queue = \"{}B\", loss = {loss}, unaware = [{unaware}] }}\n", bytes * queue);
            let text = random.plain().with("auto", true).replace("[switch]\n", &notification).replace("kind = \"tcp\"\n", "kind = \"tcp\"\ndrop_notification = true\n");
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
            let kept = world.into_kept().expect("tables in memory");
            prop_assert_eq!(run(&text).kept, kept);
        }
    }
}

/// The smallest number of servers at which something is dropped.
fn collapse(text: impl Fn(u32) -> String, (mut fits, mut drops): (u32, u32)) -> u32 {
    while drops - fits > 1 {
        let n = u32::midpoint(fits, drops);
        if finish(make(&text(n))).totals.dropped > 0 {
            drops = n;
        } else {
            fits = n;
        }
    }
    drops
}

/// Segments that each of many servers has outstanding when most are: in slow start from a window of `window`, of a response of `n`.
///
/// With k acknowledged it is min (window + k, n − k). The servers go through k together, but not one segment at a time: what one
/// ACK has released stands together in the queue, 2^r segments in round r, `window` such groups for each server.
fn most_outstanding(window: u64, n: u64) -> u64 {
    let boundaries = (0..8).flat_map(|r| (0..=window).map(move |g| (window * ((1 << r) - 1)) + (g << r)));
    boundaries.filter(|k| *k <= n).map(|k| (window + k).min(n - k)).max().expect("k = 0")
}

/// Where fan-in collapses, from the windows. Of c·N segments outstanding those are not in the queue that began to leave it within the
/// last round trip without a queue: the one whose first bit leaves now is replaced that much later. The port holds ⌊B/frame⌋ waiting
/// segments, so N ≥ (⌊B/frame⌋ + RTT/tx)/c is too many. Tolerance: one server, of the segments of one ACK. PDN §V
/// has 72 for 300 KB and windows from 1; with its frames of 1054 B, and nothing away from the queue, 300 KB / 1054 B / 4 = 71.2.
#[test]
fn fan_in_collapses_where_the_windows_say() {
    for (buffer, mss, window, segments, handshake) in [
        (300_000u64, 1_000u64, 1, 10, true), // PDN §V
        (150_000, 1_000, 1, 10, true),
        (600_000, 1_000, 1, 10, true),
        (300_000, 500, 1, 10, true),
        (300_000, 1_460, 1, 10, true),
        (300_000, 1_000, 1, 20, true),
        (300_000, 1_000, 1, 10, false),
        (300_000, 1_000, 2, 10, false),
        (300_000, 1_000, 3, 12, false),
        (300_000, 1_000, 4, 10, false),
        (200_000, 700, 2, 14, false),
    ] {
        let text = |n: u32| {
            fan_in(n, &format!("handshake = {handshake}"), "")
                .replace("300KB", &format!("{buffer}B"))
                .replace("mss = 1000", &format!("mss = {mss}"))
                .replace("initial_window = 1", &format!("initial_window = {window}"))
                .replace("size = \"10KB\"", &format!("size = \"{}B\"", mss * segments))
        };
        let (frame, ack) = (mss + 58, 64);
        // Three links of data and of ACK, and 100 us.
        let tx = |frame: u64| (frame + 20) as f64 * 8.0 / 1e9;
        let waiting = buffer / frame;
        let away = (3.0 * tx(frame) + 3.0 * tx(ack) + 100e-6) / tx(frame);
        let c = most_outstanding(window, segments);
        let expected = (waiting as f64 + away) / c as f64;
        let found = collapse(text, (2, 400));
        println!("{buffer} B, {mss} B, window {window}, {segments} segments: c {c}, {found}, expected {expected:.1}");
        assert!((f64::from(found) - expected.ceil()).abs() <= 1.0, "{buffer} {mss} {window} {segments}: {found}, {expected}");
    }
}

/// Heads that are dropped at an instant at which packets come and go: memory is counted once for each, also where notifications are sent because
/// of them. Links without delay, so that the place of a packet that was dropped is used again at once.
#[test]
fn memory_is_given_back_once_where_heads_are_dropped_and_notified() {
    let text = r#"
        duration = "4ms"
        [topology]
        kind = "dumbbell"
        left = 3
        right = 3
        host_link = { rate = "25Gbps", delay = "0ps" }
        bottleneck = { rate = "10Gbps", delay = "0ps" }
        [switch]
        buffer = { kind = "dynamic", total = "60KB", alpha = 1.0 }
        marking = { kind = "front_drop", limit = "3 packets" }
        mechanisms.pdn = {}
        mechanisms.pfc = {}
        [transport]
        kind = "tcp"
        handshake = false
        timestamps = false
        rto_initial = "300us"
        rto_min = "100us"
        [[traffic]]
        kind = "all_to_all"
        size = "1000B"
        "#;
    let mut world = make(text);
    while world.advance(1).expect("tables") == Pause::Budget {}
    assert!(world.counter("notifications", "raised") > 5);
    assert_eq!(world.in_flight(), 0);
}
