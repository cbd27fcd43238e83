//! RIMM in a network: detours lose and double nothing, flows stay in order where the paper says so, and everything is accounted for.

use crate::common::*;
use crate::random::{classes, fifo};
use fanin_scenario::Scenario;
use fanin_sim::{Kept, Pause, World};
use fanin_units::{Purpose, Span, Stream};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Three leaves of two hosts, two spines. Ports hold 60 packets, and as many more as `room` says.
fn fabric(rimm: &str, more: &str) -> String {
    format!(
        r#"
        duration = "30ms"
        [topology]
        kind = "leaf_spine"
        leaves = 3
        hosts_per_leaf = 2
        spines = 2
        host_link = {{ rate = "10Gbps", delay = "200ns" }}
        uplink = {{ rate = "40Gbps", delay = "200ns" }}
        [switch]
        latency = "300ns"
        buffer = {{ kind = "static", per_port = "60 packets" }}
        mechanisms.rimm = {{ {rimm} }}
        {more}
        [telemetry]
        sample = "off"
        hosts = ["*"]
        "#
    )
}

/// Frame bytes of a header with a number.
const NUMBERED: u16 = 8;

const TCP: &str =
    "[transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 20\nrto_min = \"2ms\"\nrto_initial = \"2ms\"\n";

/// Flows of so many bytes from four hosts to h5.
fn incast(size: &str) -> String {
    format!("{TCP}[[traffic]]\nkind = \"incast\"\nreceiver = \"h5\"\nsenders = [\"h0..h3\"]\nflows_per_sender = 4\nsize = \"{size}\"\n")
}

fn cbr(src: &str, rate: &str) -> String {
    format!("[[traffic]]\nkind = \"cbr\"\nsrc = \"{src}\"\ndst = \"h5\"\nrate = \"{rate}\"\ncounts = \"wire\"\npacket = \"1000B\"\nsize = \"600KB\"\n")
}

fn counts(world: &World) -> BTreeMap<&'static str, u64> {
    let groups = world.mechanism_counts();
    let found = groups.iter().find(|g| g.name == "rimm");
    found.iter().flat_map(|group| group.counters.iter().map(|(def, n)| (def.name, *n))).collect()
}

/// What must hold of packets, detours and messages at any time.
fn balance(world: &mut World) {
    conserved(world);
    let c = counts(world);
    if c.is_empty() {
        return;
    }
    let ended = c["released"] + c["late"] + c["let_go"] + c["astray"] + c["dropped_away"];
    let numbered = world.with_shim(NUMBERED);
    assert!(c["detoured"] == ended + numbered || (ended == 0 && numbered == 0), "{c:?} and {numbered}");
    let over = c["messages_returned"] + c["messages_repeated"] + c["messages_overtaken"] + c["messages_lost"];
    assert_eq!(c["messages_sent"], over + world.messages_on_the_way(), "{c:?}");
}

struct Outcome {
    counts: BTreeMap<&'static str, u64>,
    summary: Value,
    kept: Kept,
}

impl Outcome {
    fn peak(&self, name: &str) -> u64 {
        self.summary["mechanisms"]["rimm"][name].as_u64().expect(name)
    }

    fn complete(&self) -> bool {
        self.kept.flows.iter().all(|flow| flow.status.to_string() == "complete")
    }

    fn zero(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.counts[name] == 0)
    }
}

fn play(text: &str) -> Outcome {
    let mut world = run_in_steps(text, balance);
    let counts = counts(&world);
    assert_eq!(world.with_shim(NUMBERED), 0, "no packet is left on a detour");
    let (summary, _) = fanin_sim::finish(&mut world).expect("tables");
    Outcome { counts, summary, kept: world.into_kept().expect("tables") }
}

type ByFlow<T> = BTreeMap<u32, T>;

/// Packets of each flow in the order in which they reached the switch of a port for the first time, and in which they left by it.
/// Those that the port did not send are not in either.
fn orders(kept: &Kept, leaf: &str, port: &str) -> Vec<(u32, Vec<u64>, Vec<u64>)> {
    let mut reached: ByFlow<BTreeMap<u64, u64>> = ByFlow::new();
    let mut left: ByFlow<Vec<(u64, u64)>> = ByFlow::new();
    let into = format!("->{leaf}");
    for hop in &kept.hops {
        if hop.port.to_string().ends_with(&into) {
            let first = reached.entry(hop.flow).or_default().entry(hop.packet).or_insert(hop.reached_ps);
            *first = (*first).min(hop.reached_ps);
        }
        if hop.port.to_string() == port {
            left.entry(hop.flow).or_default().push((hop.sent_ps, hop.packet));
        }
    }
    let mut all = Vec::new();
    for (flow, reached) in reached {
        let mut left = left.remove(&flow).unwrap_or_default();
        left.sort_unstable();
        let left: Vec<u64> = left.into_iter().map(|(_, packet)| packet).collect();
        let mut came: Vec<(u64, u64)> = reached.into_iter().map(|(packet, at)| (at, packet)).collect();
        came.sort_unstable();
        let came = came.into_iter().map(|(_, packet)| packet).filter(|packet| left.contains(packet)).collect();
        all.push((flow, came, left));
    }
    all
}

/// How many packets left a port after one that had come later.
fn out_of_order(kept: &Kept, leaf: &str, port: &str) -> usize {
    let late = |(_, came, left): (u32, Vec<u64>, Vec<u64>)| {
        let place: BTreeMap<u64, usize> = came.iter().enumerate().map(|(i, packet)| (*packet, i)).collect();
        let (mut latest, mut late) = (0, 0);
        for packet in &left {
            late += usize::from(place[packet] < latest);
            latest = latest.max(place[packet]);
        }
        late
    };
    orders(kept, leaf, port).into_iter().map(late).sum()
}

/// Two flows of 600 packets each, 20 Gb/s together, for a port of 10 Gb/s that holds 300 packets, and a fabric with room for all, of which
/// both spines have been heard. Data has class 1.
fn burst(rimm: &str, switch: &str) -> String {
    let late = |src| format!("{}class = 1\nstart = \"40us\"\n", cbr(src, "10Gbps"));
    let warm = |(src, i): (&str, u32)| {
        format!("[[traffic]]\nkind = \"cbr\"\nsrc = \"{src}\"\ndst = \"h4\"\nrate = \"1Gbps\"\npacket = \"100B\"\nsize = \"100B\"\nclass = 1\nstart = \"{i}us\"\n")
    };
    let warm: String = ["h0", "h1", "h2", "h3", "h0", "h1", "h2", "h3"].into_iter().zip(0..).map(warm).collect();
    let spines = "[[switch.except]]\ntier = 1\nbuffer = \"2000 packets\"\nmechanisms.rimm = { alpha = \"1900 packets\" }\n";
    let more = format!(
        "{switch}\n[[switch.except]]\nports = [\"*->spine*\"]\nbuffer = \"2000 packets\"\n{spines}{warm}{}{}",
        late("h0"),
        late("h2")
    );
    fabric(rimm, &more).replace("60 packets", "300 packets")
}

const STRICT: &str = "scheduling = { kind = \"strict\", classes = 2 }";

/// Nothing is done below α. Above it nothing is lost with detours, and all stays in order, whether the ingress knows at once, by
/// messages that go first, or by such that wait behind the detours. A plain detour keeps no order.
#[test]
fn a_burst_is_kept_in_the_neighbours() {
    let basic = play(&burst("alpha = \"301 packets\"", STRICT));
    assert!(basic.kept.drops.len() > 200 && basic.zero(&["detoured", "messages_sent"]), "{}", basic.kept.drops.len());
    let rimm = "alpha = \"250 packets\", give_up = \"3ms\", hops = \"restored\"";
    for how in ["alert = \"at_once\"", "message_class = 0", ""] {
        let ran = play(&burst(&format!("{rimm}, {how}"), STRICT));
        println!("{how}: {:?} {:#} {} drops", ran.counts, ran.summary["mechanisms"], ran.kept.drops.len());
        let detoured = ran.counts["detoured"];
        assert!(detoured > 300 && ran.counts["released"] == detoured, "{:?}", ran.counts);
        assert_eq!(ran.kept.drops.len(), 0);
        assert_eq!(out_of_order(&ran.kept, "leaf2", "leaf2->h5"), 0);
        let sent = orders(&ran.kept, "leaf2", "leaf2->h5");
        assert!(sent.iter().filter(|(_, _, left)| !left.is_empty()).all(|(_, came, left)| came == left && left.len() == 600));
    }
    let plain = play(&burst("alpha = \"250 packets\", release = \"unordered\", give_up = \"3ms\", message_class = 0", STRICT));
    println!("plain: {:?} {} drops", plain.counts, plain.kept.drops.len());
    assert!(out_of_order(&plain.kept, "leaf2", "leaf2->h5") > 50 && plain.counts["detoured"] > 300);
}

/// When the ingress knows: the message has crossed two links of 40 Gb/s, 200 ns and 300 ns each, as a frame of 64 B and 12 B of header,
/// 20 B of gap, and has waited for at most one packet at each of them.
#[test]
fn the_alert_comes_with_its_message() {
    let text = fabric("alpha = \"20 packets\"", &format!("{}{}", cbr("h0", "10Gbps"), cbr("h2", "10Gbps")));
    let mut world = make(&text);
    let (mut crossed, mut known) = (None, None);
    while known.is_none() {
        assert_eq!(world.advance(1).expect("tables"), Pause::Budget);
        let c = counts(&world);
        crossed = crossed.or((c["messages_sent"] == 1).then(|| world.now()));
        known = (c["alerts"] == 1).then(|| world.now());
    }
    let way = (Span::from_ps((76 + 20) * 200) + Span::from_ns(500)) * 2;
    let waits = Span::from_ps((1046 + 8 + 20) * 200) * 2;
    let took = known.expect("an alert").since(crossed.expect("a crossing"));
    println!("{took}, at least {way}");
    assert!(took >= way && took <= way + waits, "{took} {way}");
}

/// Small buffers everywhere: detours are dropped, leave holes, pairs are given up; flows complete all the same. Where being out counts, no
/// packet is away for longer than `give_up` and one more way to the neighbour and back, whose queues of 60 packets take 18.5 us each.
#[test]
fn holes_last_until_detours_are_given_up() {
    let flowlet = "release = { kind = \"flowlet\", chi = \"30us\" }, ";
    for (rimm, hops, when) in [
        ("", "spent", "outstanding"),
        (flowlet, "spent", "outstanding"),
        ("", "restored", "outstanding"),
        ("", "restored", "stalled"),
    ] {
        let ran = play(&fabric(
            &format!("{rimm}alpha = \"30 packets\", give_up = \"200us\", give_up_when = \"{when}\", hops = \"{hops}\""),
            &incast("100KB"),
        ));
        let c = &ran.counts;
        println!("{rimm}{hops}: {c:?} {:#}", ran.summary["mechanisms"]);
        assert!(c["dropped_away"] > 0 && c["given_up"] > 0 && c["late"] > 0 && ran.complete(), "{c:?}");
        assert!(c["dropped_away"] <= ran.kept.drops.len() as u64);
        let loop_time = Span::from_ns(2 * (18_500 + 500 + 400));
        let within = ran.peak("longest_detour_ps") <= (Span::from_us(200) + loop_time).ps();
        assert!(within || when == "stalled", "{}", ran.peak("longest_detour_ps"));
        // From 64 hops: two switches before the first detour, and at least eight are left when the last one begins.
        assert!(hops == "restored" || ran.peak("most_detours") <= 28, "{}", ran.peak("most_detours"));
    }
}

/// Flows whose last packet is on a detour: it comes back, is released, and nothing of the flow stays.
#[test]
fn flows_that_end_on_a_detour_leave_nothing() {
    for release in ["drained", "flowlet"] {
        let ran = play(&fabric(&format!("alpha = \"2 packets\", release = \"{release}\""), &incast("1448B")));
        assert!(ran.counts["detoured"] > 0 && ran.complete() && ran.zero(&["stayed", "let_go"]), "{:?}", ran.counts);
        assert_eq!(ran.counts["released"] + ran.counts["late"] + ran.counts["astray"], ran.counts["detoured"]);
    }
}

/// A switch without RIMM gets no headers, no detours and no messages: leaf2 has one neighbour left, or none.
#[test]
fn mixed_fabrics_detour_where_both_ends_know_it() {
    let one = play(&fabric("alpha = \"30 packets\", unaware = [\"spine1\"]", &incast("100KB")));
    assert!(one.counts["detoured"] > 0 && one.complete());
    let via = |port: &str| one.kept.hops.iter().filter(|hop| hop.port.to_string() == port).count();
    assert!(via("leaf2->spine0") > 4 * via("leaf2->spine1"), "{} {}", via("leaf2->spine0"), via("leaf2->spine1"));
    let none = play(&fabric("alpha = \"30 packets\", unaware = [\"spine*\"]", &incast("100KB")));
    assert!(none.zero(&["detoured", "messages_sent"]) && none.counts["messages_unsent"] > 0 && none.complete());
}

fn rimm() -> impl Strategy<Value = String> {
    let alpha = select(vec!["1 packets", "3 packets", "4000B", "60 cells"]);
    let release = select(vec!["\"drained\"", "{ kind = \"flowlet\", chi = \"5us\" }", "\"unordered\""]);
    let (alert, give_up) = (select(vec!["message", "message", "at_once"]), select(vec!["5us", "60us", "1ms"]));
    let besides = (
        select(vec![0u8, 2, 12]),
        (select(vec!["spent", "restored"]), select(vec!["stalled", "outstanding"]), select(vec!["per_packet", "per_flow"])),
        (
            select(vec!["", ", room = \"1KB\"", ", max_frame = \"600B\""]),
            select(vec!["20us", "2ms"]),
            select(vec!["returning", "all"]),
        ),
    );
    (alpha, release, alert, give_up, besides).prop_map(
        |(alpha, release, alert, give_up, (bits, (hops, when, neighbour), (more, longest, detours)))| {
            let longest = if when == "stalled" { format!(", longest = \"{longest}\"") } else { String::new() };
            let repeat = if alert == "message" { ", repeat = \"3us\"" } else { "" };
            let numbers = if release.contains("unordered") {
                String::new()
            } else {
                format!(", hash_bits = {bits}, hops = \"{hops}\", give_up_when = \"{when}\", neighbour = \"{neighbour}\"{longest}")
            };
            format!("alpha = \"{alpha}\", release = {release}, alert = \"{alert}\", give_up = \"{give_up}\", detours = \"{detours}\"{repeat}{numbers}{more}")
        },
    )
}

fn config(cases: u32) -> ProptestConfig {
    property(cases, 20_14)
}

proptest! {
    #![proptest_config(config(150))]

    /// In any network, with any buffer, scheduler, marking and transport: every packet, detour and message is accounted for after
    /// each step, twice the same is the same, and ports whose departures are always events give the same bits. Tolerance: none.
    #[test]
    fn detours_are_accounted_for(random in prop_oneof![fifo(), classes()], rimm in rimm(), budgets in prop::collection::vec(1u64..400, 1..20)) {
        let rimm = format!("[switch]\nmechanisms.rimm = {{ {rimm} }}\n");
        let text = |ports: &str, telemetry| random.plain().with(ports, telemetry).replace("[switch]\n", &rimm);
        prop_assume!(Scenario::from_toml(&text("auto", true), Path::new(".")).is_ok());
        let mut world = make(&text("auto", true));
        for budget in budgets.iter().cycle() {
            let pause = world.advance(*budget).expect("tables in memory");
            balance(&mut world);
            if pause != Pause::Budget {
                prop_assert_eq!(pause, Pause::Done);
                break;
            }
        }
        let kept = world.into_kept().expect("tables in memory");
        prop_assert_eq!(&run(&text("auto", true)).kept, &kept);
        prop_assert_eq!(&run(&text("explicit", true)).kept, &kept);
        prop_assert_eq!(run(&text("auto", false)).kept.fingerprint, kept.fingerprint);
    }
}

/// With `drained`, flows leave the congested port in the order in which they came to its switch: whatever the loads, the number of
/// spines, and the flows that share a pair; as long as nothing was given up, let go, dropped on a detour, or found no neighbour, and
/// neighbours send all of it back. Of flows with one path to the switch that is the order of their senders.
#[test]
fn order_holds_where_the_paper_says_so() {
    let mut rng = Stream::new(14, Purpose::Arrivals, 0);
    let mut pick = |n: u64| rng.below(n) as usize;
    let (mut clean, mut detoured) = (0, 0);
    for case in 0..40 {
        let flow = |pick: &mut dyn FnMut(u64) -> usize| {
            let rate = ["10Gbps", "6Gbps", "6Gbps", "3Gbps"][pick(4)];
            let entry = cbr(&format!("h{}", pick(4)), rate).replace("600KB", "100KB");
            format!("{entry}start = \"{}us\"\n", 20 + pick(40))
        };
        let mut traffic: String = (0..4 + pick(3)).map(|_| flow(&mut pick)).collect();
        if pick(3) == 0 {
            traffic = format!("{}{traffic}", incast("20KB"));
        }
        let (alpha, bits, spines) = (100 + pick(100), [0, 1, 12][pick(3)], 1 + pick(3));
        let rimm = format!("alpha = \"{alpha} packets\", hash_bits = {bits}, hops = \"restored\", give_up = \"4ms\"");
        // Spines have room for all that there is, and no alert.
        let spines_only = "[[switch.except]]\ntier = 1\nmechanisms.rimm = { alpha = \"50000 packets\" }\n";
        let text = fabric(&rimm, &format!("{spines_only}{traffic}")).replace("spines = 2", &format!("spines = {spines}"));
        let ran = play(&format!("seed = {}\n{}", case + 1, text.replace("60 packets", "90000 packets")));
        detoured += ran.counts["detoured"];
        if ran.zero(&["given_up", "late", "let_go", "stayed", "astray", "dropped_away"]) {
            clean += u32::from(ran.counts["detoured"] > 20);
            assert_eq!(out_of_order(&ran.kept, "leaf2", "leaf2->h5"), 0, "{rimm} {traffic} {:?}", ran.counts);
        } else {
            println!("case {case}, {alpha} packets, {spines} spines: {:?}", ran.counts);
        }
    }
    println!("{clean} of 40 with detours and nothing given up; {detoured} detours in all");
    assert!(clean >= 12, "{clean}");
}

/// With one pair for all flows each of them is still in order.
#[test]
fn flows_that_share_a_pair_stay_in_order() {
    let ran =
        play(&burst("alpha = \"250 packets\", hash_bits = 0, hops = \"restored\", give_up = \"3ms\", message_class = 0", STRICT));
    assert!(
        ran.counts["detoured"] > 300 && ran.zero(&["given_up", "let_go", "stayed", "dropped_away", "astray"]),
        "{:?}",
        ran.counts
    );
    assert_eq!(out_of_order(&ran.kept, "leaf2", "leaf2->h5"), 0);
    assert!(ran.peak("longest_detour_ps") > 0 && ran.peak("most_out") > 30);
}
