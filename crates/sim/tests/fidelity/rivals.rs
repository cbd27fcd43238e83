//! DIBS, PABO, Vertigo, DRILL and the buffer of hosts that puts packets in order, in a network: a detour loses and doubles nothing, ends by the time to live, and is accounted for.

use crate::common::*;
use crate::random::{classes, fifo};
use fanin_scenario::Scenario;
use fanin_sim::{Kept, Pause, World};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::path::Path;

/// Three leaves of four hosts, three spines; ports hold 60 packets. 8 hosts send to h11, whose port is the bottleneck.
pub fn fabric(switch: &str, transport: &str, more: &str) -> String {
    format!(
        r#"
        duration = "60ms"
        [topology]
        kind = "leaf_spine"
        leaves = 3
        hosts_per_leaf = 4
        spines = 3
        host_link = {{ rate = "10Gbps", delay = "200ns" }}
        uplink = {{ rate = "40Gbps", delay = "200ns" }}
        [switch]
        latency = "300ns"
        buffer = {{ kind = "static", per_port = "60 packets" }}
        {switch}
        [transport]
        kind = "tcp"
        handshake = false
        initial_window = 20
        rto_min = "5ms"
        delayed_ack_timeout = "500us"
        rto_initial = "5ms"
        {transport}
        [[traffic]]
        kind = "incast"
        receiver = "h11"
        senders = ["h0..h7"]
        size = "20KB"
        {more}
        [telemetry]
        sample = "off"
        hosts = ["*"]
        "#
    )
}

pub fn counts(world: &World, group: &str) -> BTreeMap<&'static str, u64> {
    let groups = world.mechanism_counts();
    let found = groups.iter().find(|g| g.name == group);
    found.iter().flat_map(|group| group.counters.iter().map(|(def, n)| (def.name, *n))).collect()
}

struct Outcome {
    dibs: BTreeMap<&'static str, u64>,
    pabo: BTreeMap<&'static str, u64>,
    kept: Kept,
}

impl Outcome {
    fn complete(&self) -> bool {
        self.kept.flows.iter().all(|flow| flow.status.to_string() == "complete")
    }

    fn sum(&self, of: fn(&fanin_telemetry::FlowRow) -> u64) -> u64 {
        self.kept.flows.iter().map(of).sum()
    }
}

fn play(text: &str) -> Outcome {
    let world = run_in_steps(text, conserved);
    let (dibs, pabo) = (counts(&world, "dibs"), counts(&world, "pabo"));
    Outcome { dibs, pabo, kept: world.into_kept().expect("tables") }
}

/// The most links that a packet has crossed.
pub fn most_links(kept: &Kept) -> u32 {
    let mut crossed: BTreeMap<u64, u32> = BTreeMap::new();
    kept.hops.iter().for_each(|hop| *crossed.entry(hop.packet).or_default() += 1);
    crossed.into_values().max().unwrap_or(0)
}

/// What the port alone drops, 8 · 14 packets less the 60 that it holds and what it sends meanwhile, is kept in other queues; nothing is
/// lost, and with duplicate ACKs ignored nothing is sent twice.
#[test]
fn a_burst_spreads_over_the_buffers_of_others() {
    let basic = play(&fabric("", "", ""));
    assert!(basic.kept.drops.len() > 20 && basic.dibs.is_empty(), "{}", basic.kept.drops.len());
    for mechanism in ["dibs = {}", "pabo = { lower = \"20 packets\", upper = \"50 packets\" }"] {
        let ran = play(&fabric(&format!("mechanisms.{mechanism}"), "dup_thresh = 255", ""));
        println!("{mechanism}: {:?} {:?}, reordered {}", ran.dibs, ran.pabo, ran.sum(|f| f.reordered));
        assert_eq!((ran.kept.drops.len(), ran.sum(|f| f.retransmits), ran.complete()), (0, 0, true), "{mechanism}");
        let detours = if ran.dibs.is_empty() { ran.pabo["bounced"] } else { ran.dibs["detoured"] };
        assert!(detours > 20 && ran.sum(|f| f.reordered) > 10, "{detours}");
        let three = play(&fabric(&format!("mechanisms.{mechanism}"), "dup_thresh = 3", ""));
        assert!(three.sum(|f| f.retransmits) > 0, "duplicate ACKs are taken for losses");
    }
}

/// Hosts that put packets in order hide detours from their transport; with a shorter time than detours take they do not. What is lost is
/// retransmitted nevertheless.
#[test]
fn hosts_that_put_packets_in_order_hide_detours() {
    let dibs = |timeout: &str| {
        let ran = play(&fabric("mechanisms.dibs = {}", "", &format!("[host]\nreorder = {{ timeout = \"{timeout}\" }}")));
        println!(
            "{timeout}: {:?}, reordered {}, retransmitted {}",
            ran.dibs,
            ran.sum(|f| f.reordered),
            ran.sum(|f| f.retransmits)
        );
        assert!(ran.complete() && ran.sum(|f| f.reordered) > 10);
        ran.sum(|f| f.retransmits)
    };
    assert_eq!(dibs("1ms"), 0);
    assert!(dibs("1ns") > 0);
    let lossy = play(&fabric("", "", "[host]\nreorder = { timeout = \"100us\" }"));
    assert!(lossy.kept.drops.len() > 20 && lossy.complete());
    assert_eq!(lossy.sum(|f| f.reordered), 0);
}

/// Ports of one packet everywhere: what finds no room at all is dropped and counted as such, and so is what has crossed as many switches as
/// it may. No packet crosses more.
#[test]
fn no_room_and_no_hops_end_a_detour() {
    for (ttl, room) in [(5, 12), (20, 12), (64, 3)] {
        let switch = format!("ttl = {ttl}\nmechanisms.dibs = {{}}");
        let ran = play(&fabric(&switch, "", "").replace("60 packets", &format!("{room} packets")));
        let by = |reason: &str| ran.kept.drops.iter().filter(|drop| drop.reason.to_string() == reason).count() as u64;
        println!("ttl {ttl}, {room} packets: {:?}, {} drops", ran.dibs, ran.kept.drops.len());
        assert_eq!((by("buffer_full"), by("ttl")), (ran.dibs["no_room"], ran.dibs["out_of_hops"]));
        assert_eq!(ran.kept.drops.len() as u64, ran.dibs["no_room"] + ran.dibs["out_of_hops"]);
        assert!(ran.dibs["detoured"] > 0 && most_links(&ran.kept) <= ttl, "{}", most_links(&ran.kept));
        assert!(if room == 3 { by("buffer_full") > 0 } else { by("ttl") > 0 }, "{:?}", ran.dibs);
    }
}

/// Bounces go up to the sender's edge switch and no further: with queues that are never short a packet is at its edge after one bounce from
/// the spine, two from the leaf beyond, and hosts get no headers.
#[test]
fn bounces_end_at_the_edge_and_with_the_hops() {
    let switch = "mechanisms.pabo = { lower = \"1 packets\", upper = \"2 packets\" }";
    let ran = play(&fabric(switch, "dup_thresh = 255", ""));
    println!("{:?}, {} drops, {} links", ran.pabo, ran.kept.drops.len(), most_links(&ran.kept));
    assert!(ran.pabo["again"] > 0 && ran.pabo["at_edge"] > 0 && ran.complete(), "{:?}", ran.pabo);
    // From 64 hops: with seven left none is bounced, and four more links lead to any host.
    assert!(most_links(&ran.kept) <= 64, "{}", most_links(&ran.kept));
    let longest = |to: &str| {
        let there = ran.kept.hops.iter().filter(|hop| hop.port.to_string().contains(to));
        there.map(|hop| hop.left_ps - hop.sent_ps).max().expect("hops")
    };
    assert_eq!((longest("->h11"), longest("->spine")), (tx_ps(WIRE, 10), tx_ps(WIRE + 4, 40)));
}

/// Switches without the mechanism forward what is detoured to them as ever.
#[test]
fn mixed_fabrics_detour_where_it_is_known() {
    let dibs = play(&fabric("mechanisms.dibs = { unaware = [\"spine*\"] }", "", ""));
    assert!(dibs.dibs["detoured"] > 0 && dibs.complete(), "{:?}", dibs.dibs);
    let pabo = "mechanisms.pabo = { lower = \"20 packets\", upper = \"50 packets\", unaware = [\"spine*\"] }";
    let pabo = play(&fabric(pabo, "", ""));
    assert!(pabo.pabo["bounced"] == 0 && pabo.pabo["no_room"] > 0 && pabo.complete(), "{:?}", pabo.pabo);
}

/// The largest queue of an uplink under a permutation of long flows: shorter with DRILL(2, 1) than with spraying, and with that than with
/// one path for each flow.
#[test]
fn uplinks_share_the_load_the_better_the_more_is_known() {
    let largest = |routing: &str| {
        let ran = run(&format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 4\nhosts_per_leaf = 8\nspines = 8\n\
             host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [switch]\nrouting = {routing}\nbuffer = {{ kind = \"unlimited\" }}\n[transport]\nkind = \"tcp\"\nhandshake = false\n\
             [[traffic]]\nkind = \"all_to_all\"\nsize = \"100KB\"\n"
        ));
        let uplinks = ran.ports.iter().filter(|p| p.name.starts_with("leaf") && p.name.contains("->spine"));
        uplinks.map(|p| p.peak_bytes).max().expect("uplinks")
    };
    let [ecmp, spray, random, drill] = ["\"ecmp\"", "\"spray\"", "{ kind = \"drill\", d = 1, m = 0 }", "\"drill\""].map(largest);
    println!("largest queue of an uplink: ECMP {ecmp} B, spraying {spray} B, DRILL(1, 0) {random} B, DRILL(2, 1) {drill} B");
    assert!(2 * drill < spray && spray < ecmp);
    assert_eq!(random, spray, "DRILL(1, 0) is spraying, draw by draw");
}

fn rivals() -> impl Strategy<Value = String> {
    let unaware = select(vec!["", "unaware = [\"s0\", \"*1\"]"]);
    let pabo = (
        select(vec![("0 packets", "1 packets"), ("2 packets", "9 packets"), ("1KB", "20KB"), ("10 cells", "90 cells")]),
        select(vec!["\"linear\"", "\"exponential\"", "{ kind = \"exponential\", lambda = 0.5 }", "\"saturating\""]),
    );
    let pabo = pabo.prop_map(|((lower, upper), growth)| format!("lower = \"{lower}\", upper = \"{upper}\", growth = {growth}"));
    let vertigo = (select(vec![0, 1, 2, 9]), select(vec![1, 2, 16]), select(vec!["least_left", "arrival"]), unaware.clone());
    let vertigo = vertigo.prop_map(|(choices, boost, serve, unaware)| {
        format!(
            "choices = {choices}, boost = {boost}, serve = \"{serve}\"{}{unaware}",
            if unaware.is_empty() { "" } else { ", " }
        )
    });
    prop_oneof![
        1 => unaware.prop_map(|keys| format!("dibs = {{ {keys} }}")),
        1 => pabo.prop_map(|keys| format!("pabo = {{ {keys} }}")),
        2 => vertigo.prop_map(|keys| format!("vertigo = {{ {keys} }}")),
    ]
    .prop_map(|table| format!("mechanisms.{table}\n"))
}

proptest! {
    #![proptest_config(property(220, 20_17))]

    /// In any network, with any buffer, scheduler, marking, path choice and transport: every packet is accounted for after each step and
    /// crosses no more switches than it may, twice the same is the same, and ports whose departures are always events give the same bits.
    /// Tolerance: none.
    #[test]
    fn detours_lose_and_double_nothing(
        random in prop_oneof![fifo(), classes()],
        rival in rivals(),
        ttl in select(vec![4u32, 9, 64]),
        (drill, reorder) in (any::<bool>(), select(vec!["", "reorder = { timeout = \"1ns\" }\n", "reorder = { timeout = \"40us\" }\nreceive = \"napi\"\n"])),
        budgets in prop::collection::vec(1u64..400, 1..20),
    ) {
        let switch = format!("[switch]\nttl = {ttl}\n{rival}");
        let text = |ports: &str, telemetry| {
            let text = random.plain().with(ports, telemetry).replace("[switch]\n", &switch);
            let text = text.replace("[host]\n", &format!("[host]\n{reorder}"));
            if drill { text.replace("routing = \"ecmp\"", "routing = \"drill\"") } else { text }
        };
        prop_assume!(Scenario::from_toml(&text("auto", true), Path::new(".")).is_ok());
        let mut world = make(&text("auto", true));
        for budget in budgets.iter().cycle() {
            let pause = world.advance(*budget).expect("tables in memory");
            conserved(&mut world);
            if pause != Pause::Budget {
                prop_assert_eq!(pause, Pause::Done);
                break;
            }
        }
        let kept = world.into_kept().expect("tables in memory");
        prop_assert!(most_links(&kept) <= ttl);
        prop_assert_eq!(&run(&text("auto", true)).kept, &kept);
        prop_assert_eq!(&run(&text("explicit", true)).kept, &kept);
        prop_assert_eq!(run(&text("auto", false)).kept.fingerprint, kept.fingerprint);
    }
}
