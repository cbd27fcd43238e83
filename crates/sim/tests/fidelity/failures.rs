//! Links that fail, flap and come back, and bit errors, held against timelines by hand, an independent model and binomial bounds; and each
//! mechanism that keeps state of a neighbour attacked with them.

use crate::common::*;
use fanin_sim::{LinkCounts, World};
use fanin_units::{Span, Time};
use std::collections::BTreeMap;

/// Datagrams of full frames at 1 Gb/s on the wire: one each 12.304 us, for 10 ms.
fn cbr(src: &str, dst: &str) -> String {
    format!("[[traffic]]\nkind = \"cbr\"\nsrc = \"{src}\"\ndst = \"{dst}\"\nrate = \"1Gbps\"\ncounts = \"wire\"\npacket = \"1472B\"\nsize = \"1196736B\"\n")
}

/// Packets of [`cbr`], and the time from one to the next.
const PACKETS: u64 = 813;
const EVERY: u64 = 12_304_000;

fn star(hosts: u32, more: &str) -> String {
    format!("[topology]\nkind = \"single_switch\"\nhosts = {hosts}\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[telemetry]\nsample = \"off\"\n{more}")
}

fn down(links: &str, start: u64, end: Option<u64>, more: &str) -> String {
    let end = end.map_or(String::new(), |end| format!("end = \"{end}ps\"\n"));
    format!("[[events]]\nkind = \"down\"\nlinks = [\"{links}\"]\nstart = \"{start}ps\"\n{end}{more}\n")
}

fn failover(detect: u64, converge: u64) -> String {
    format!("[failover]\ndetect = \"{detect}ps\"\nconverge = \"{converge}ps\"\n")
}

/// Drops by reason and place.
fn drops(ran: &Ran) -> BTreeMap<(String, String), u64> {
    let mut all = BTreeMap::new();
    for drop in &ran.kept.drops {
        *all.entry((drop.reason.to_string(), drop.port.to_string())).or_default() += 1;
    }
    all
}

fn of(all: &BTreeMap<(String, String), u64>, reason: &str) -> u64 {
    all.iter().filter(|((why, _), _)| why == reason).map(|(_, n)| n).sum()
}

/// One link with a flap beside a model of its own: each datagram by itself, as nothing ever waits. What is on the link while that is down is
/// lost, what reaches the switch while it knows that is dropped, and all else arrives. Tolerance: none.
#[test]
fn a_flap_loses_what_a_model_of_one_link_loses() {
    let (start, lasts, every, times, detect) = (1_000_001u64, 700_000_003u64, 2_100_000_007u64, 3u64, 90_000_011u64);
    let flap = down("h1->switch0", start, Some(start + lasts), &format!("every = \"{every}ps\"\ntimes = {times}"));
    let mut world = make(&star(2, &format!("{}{flap}[failover]\ndetect = \"{detect}ps\"\n", cbr("h0", "h1"))));
    for step in 1..220 {
        advance_to(&mut world, Time::ZERO + Span::from_us(50) * step);
        conserved(&mut world);
    }
    let links: BTreeMap<String, LinkCounts> = world.lossy_links().into_iter().collect();
    let ran = finish(world);
    let (tx, delay) = (tx_ps(WIRE, 10), 1_000_000);
    let (mut lost, mut dropped) = (0, 0);
    for i in 0..PACKETS {
        let first = i * EVERY + tx + delay; // at the switch, and onto the second link at once
        let last = first + tx + delay;
        let outages = || (0..times).map(|n| (start + n * every, start + n * every + lasts));
        if outages().any(|(down, up)| first > down + detect && first < up + detect) {
            dropped += 1;
        } else if outages().any(|(down, up)| first < up && last > down) {
            lost += 1;
        }
    }
    let all = drops(&ran);
    assert!(lost > 20 && dropped > 150, "{lost} {dropped}");
    assert_eq!((of(&all, "link_lost"), of(&all, "link_down"), ran.totals.dropped), (lost, dropped, lost + dropped), "{all:?}");
    let there = links["switch0->h1"];
    assert_eq!((there.lost, there.dropped, there.corrupted), (lost, dropped, 0));
    assert_eq!((links["h1->switch0"], ran.totals.sent), (LinkCounts::default(), PACKETS));
}

/// A segment whose link is down until 5 ms is sent again after RTOs of 1, 2 and 4 ms, and takes its time from 7 ms on. Tolerance: none.
#[test]
fn tcp_comes_back_at_the_first_timeout_after_the_failure() {
    let tcp = "[transport]\nkind = \"tcp\"\ncongestion_control = \"newreno\"\nhandshake = false\nrto_initial = \"1ms\"\nrto_min = \"1ms\"\nack_every = 1\nclock_granularity = \"1ns\"\n";
    let traffic = "[[traffic]]\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1000B\" }]\n";
    let ran = run(&star(2, &format!("{tcp}{traffic}{}", down("switch0->h1", 0, Some(5_000_000_000), ""))));
    let flow = &ran.kept.flows[0];
    assert_eq!((flow.finish_ps, flow.timeouts), (Some(7_000_000_000 + flow.ideal_ps), 3));
    let reasons: Vec<String> = ran.kept.drops.iter().map(|drop| drop.reason.to_string()).collect();
    assert_eq!(reasons, ["link_lost", "link_down", "link_down"]);
}

fn clos(spines: u32, more: &str) -> String {
    format!("[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 1\nspines = {spines}\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[telemetry]\nsample = \"off\"\n{more}")
}

/// The leaf goes round its own dead uplink as soon as it knows; a dead link behind the spine costs the time in which tables converge as well,
/// and the spine drops for want of a way. When it works again, and tables have it, the old path is taken again. Tolerance: none.
#[test]
fn the_near_end_goes_round_at_once_and_all_others_when_tables_converge() {
    let intact = run(&clos(2, &cbr("h0", "h1")));
    let used = (0..2).find(|spine| intact.port(&format!("leaf0->spine{spine}")).tx_packets > 0).expect("a spine");
    let (tx, delay) = (tx_ps(WIRE, 10), 1_000_000);
    let (start, end, detect, converge) = (1_000_000_001u64, 5_000_000_001u64, 110_000_003u64, 1_700_000_009u64);
    for (far, link, hops) in [(false, format!("leaf0->spine{used}"), 1), (true, format!("spine{used}->leaf1"), 2)] {
        let text = clos(2, &format!("{}{}{}", cbr("h0", "h1"), down(&link, start, Some(end), ""), failover(detect, converge)));
        let ran = run(&text);
        let (mut lost, mut stranded, mut around) = (0, 0, 0);
        for i in 0..PACKETS {
            let leaf = i * EVERY + tx + delay;
            let first = i * EVERY + hops * (tx + delay); // at the switch before the link
            let known = first > start + detect && first < end + detect;
            let table = leaf > start + detect + converge && leaf < end + detect + converge;
            if table || (known && !far) {
                around += 1;
            } else if known {
                stranded += 1;
            } else if first < end && first + tx + delay > start {
                lost += 1;
            }
        }
        let all = drops(&ran);
        assert!(lost > 5 && around > 150 && (stranded > 100) == far, "{lost} {stranded} {around}");
        assert_eq!(
            (of(&all, "link_lost"), of(&all, "no_route"), ran.totals.dropped),
            (lost, stranded, lost + stranded),
            "{all:?}"
        );
        assert_eq!(ran.port(&format!("leaf0->spine{}", 1 - used)).tx_packets, around);
    }
}

/// A failure that nobody can go round: all is dropped until the link is back, and nothing after that.
#[test]
fn without_another_way_packets_are_dropped_until_the_link_is_back() {
    let text = clos(
        1,
        &format!("{}{}{}", cbr("h0", "h1"), down("spine0->leaf1", 2_000_000_001, Some(4_000_000_001), ""), failover(0, 0)),
    );
    let ran = run(&text);
    let all = drops(&ran);
    // The leaf's tables know no way, as soon as they know.
    assert!(all.keys().any(|(why, place)| why == "no_route" && place == "leaf0"), "{all:?}");
    let inside = ran.kept.drops.iter().all(|drop| (2_000_000_001..4_000_010_000).contains(&drop.time_ps));
    assert!(inside && (160..=165).contains(&ran.totals.dropped), "{}", ran.totals.dropped);
}

/// Losses by bit errors are binomial. Bound: four standard deviations on both sides; two directions draw for themselves.
#[test]
fn bit_errors_lose_the_share_that_they_should() {
    let errors = "[[events]]\nkind = \"bit_errors\"\nlinks = [\"h0->switch0\", \"switch0->h1\"]\nrate = 4e-6\n";
    let text = star(2, &format!("{}{errors}", cbr("h0", "h1").replace("1Gbps", "9Gbps").replace("1196736B", "29440000B")));
    let ran = run(&text);
    let p = 1.0 - libm::pow(1.0 - 4e-6, 8.0 * FRAME as f64);
    let all = drops(&ran);
    let mut n = 20_000.0;
    for place in ["h0->switch0", "switch0->h1"] {
        let wrong = all[&("bit_error".to_string(), place.to_string())] as f64;
        let sigma = (n * p * (1.0 - p)).sqrt();
        println!("{place}: {wrong} of {n} wrong, expected {:.1} ± {sigma:.1}", n * p);
        assert!((wrong - n * p).abs() < 4.0 * sigma, "{place}: {wrong} of {n}, expected {} ± {sigma}", n * p);
        n -= wrong;
    }
    assert_eq!(ran.totals.dropped, of(&all, "bit_error"));
}

/// The example of docs/failures.md: all flows complete, and each kind of loss is where it belongs.
#[test]
fn the_example_of_the_page_completes() {
    let text = std::fs::read_to_string("../../scenarios/link-failure.toml").expect("the example");
    let ran = run(&text);
    assert!(ran.kept.flows.len() == 16 && ran.kept.flows.iter().all(|flow| flow.status.to_string() == "complete"));
    let all = drops(&ran);
    let [from, to] = ["[[events]]", "[telemetry]"].map(|table| text.find(table).expect("a table"));
    let intact = run(&(text[..from].to_string() + &text[to..]));
    let last = |ran: &Ran| ran.kept.flows.iter().map(|flow| flow.finish_ps.expect("complete")).max();
    println!("last at {:?}, intact {:?}; {all:?}", last(&ran), last(&intact));
    assert!(intact.totals.dropped == 0 && last(&intact) < last(&ran), "{:?}", intact.totals);
    let at = |reason: &str, place: &str| all.get(&(reason.to_string(), place.to_string())).copied().unwrap_or(0);
    assert!(at("link_lost", "leaf0->spine0") > 20 && at("link_lost", "spine0->leaf0") > 20, "{all:?}");
    assert!(at("no_route", "spine0") > 0 && at("no_route", "leaf0") == 0, "only the far end has no other way: {all:?}");
    assert!(at("bit_error", "leaf2->spine1") > 0 && of(&all, "bit_error") == at("bit_error", "leaf2->spine1"), "{all:?}");
}

/// RoCEv2 over pauses and a flapping bottleneck: each flow completes, by either kind of repair, and nothing but the link loses anything.
#[test]
fn lossless_fabrics_lose_on_the_link_alone_and_queue_pairs_repair_it() {
    for recovery in [
        "{ kind = \"go_back_n\", ack_timeout = 6 }",
        "{ kind = \"selective_repeat\", rto_low = \"200us\", rto_high = \"400us\" }",
    ] {
        let text = format!(
            r#"
            [topology]
            kind = "dumbbell"
            left = 4
            right = 4
            host_link = {{ rate = "10Gbps", delay = "1us" }}
            bottleneck = {{ rate = "10Gbps", delay = "1us" }}
            [switch]
            buffer = "unlimited"
            mechanisms.pfc = {{ memory = "1MB", classes = [0], xoff = {{ kind = "static", bytes = "20KB" }} }}
            [transport]
            kind = "roce"
            recovery = {recovery}
            [[traffic]]
            kind = "flows"
            flows = [{}]
            {}
            [failover]
            detect = "20us"
            [telemetry]
            sample = "off"
            "#,
            (0..4).map(|h| format!("{{ src = \"h{h}\", dst = \"h{}\", size = \"1MB\" }}", h + 4)).collect::<Vec<_>>().join(", "),
            down("left->right", 300_000_001, Some(420_000_001), "every = \"900us\"\ntimes = 3"),
        );
        let world = run_in_steps(&text, crate::pfc::balance);
        assert!(world.counter("pfc", "xoff") > 5 && world.counter("pfc", "dropped_lossless") == 0);
        let ran = Ran { totals: world.totals(), now: world.now(), ports: Vec::new(), kept: world.into_kept().expect("tables") };
        assert!(ran.kept.flows.iter().all(|flow| flow.status.to_string() == "complete" && flow.delivered_bytes == 1_000_000));
        let all = drops(&ran);
        assert!(of(&all, "link_lost") > 30 && of(&all, "link_down") > 10, "{all:?}");
        let on_links = of(&all, "link_lost") + of(&all, "link_down") + of(&all, "no_route");
        assert_eq!(on_links, ran.totals.dropped, "{all:?}");
    }
}

/// As in `pauses.rs`: h1 is paused from `BEGIN` on because of its packet for h2, which another one holds up, and the frame that lets it go on
/// does not arrive.
const PAUSED: &str =
    "memory = \"500KB\", classes = [0], quanta = 1000, xoff = { kind = \"static\", bytes = \"1B\" }, xon_gap = \"1B\"";

fn packet(src: &str, dst: &str, start: u64) -> String {
    format!("[[traffic]]\nkind = \"cbr\"\nsrc = \"{src}\"\ndst = \"{dst}\"\nrate = \"10Gbps\"\ncounts = \"wire\"\npacket = \"1472B\"\nsize = \"1472B\"\nstart = \"{start}ps\"\n")
}

fn begin() -> u64 {
    tx_ps(WIRE, 10) + 1_000_000 + 300_000 + 100_000 + tx_ps(84, 10) + 1_000_000
}

fn pause_of_h1(event: &str) -> Vec<(String, u64, Option<u64>)> {
    let text = format!("{}{}{}{event}", crate::pfc::star(4, PAUSED, ""), packet("h0", "h2", 0), packet("h1", "h2", 100_000));
    let ran = run(&format!("{text}{}", packet("h1", "h3", 60_000_000)));
    assert_eq!(ran.kept.flows.iter().filter(|flow| flow.delivered_bytes == 1472).count(), ran.kept.flows.len());
    ran.kept.pauses.iter().map(|row| (row.port.to_string(), row.start_ps, row.end_ps)).collect()
}

/// A pause whose end is lost lasts as long as its frame said, and not for ever: 1,000 quanta of 51.2 ns. Tolerance: none.
#[test]
fn a_pause_whose_end_is_lost_ends_by_its_own_time() {
    let begin = begin();
    let errors =
        format!("[[events]]\nkind = \"bit_errors\"\nlinks = [\"switch0->h1\"]\nstart = \"{}ps\"\nrate = 0.01\n", begin + 1);
    assert_eq!(pause_of_h1(&errors), [("h1->switch0".to_string(), begin, Some(begin + 51_200_000))]);
}

/// Nor does it outlive the link: when the NIC notices that this is down, it is paused no longer. Tolerance: none.
#[test]
fn a_pause_ends_with_the_link() {
    let (begin, detect) = (begin(), 5_000_000);
    let event = down("h1->switch0", begin + 10, Some(begin + 20_000_000), "") + &format!("[failover]\ndetect = \"{detect}ps\"\n");
    assert_eq!(pause_of_h1(&event), [("h1->switch0".to_string(), begin, Some(begin + 10 + detect))]);
}

fn sum(world: &World, of: fn(&LinkCounts) -> u64) -> u64 {
    world.lossy_links().iter().map(|(_, counts)| of(counts)).sum()
}

/// Detours over a link that dies: the switch stops taking them as soon as it knows, what was away is lost and no more, messages are accounted
/// for, and all flows complete.
#[test]
fn detours_over_a_dying_link_are_lost_and_end() {
    // When each is busy: the first windows have left their hosts after 98 us.
    let dying = [
        ("leaf0->spine0", 60, ""),
        ("spine0->leaf2", 60, ""),
        ("leaf2->spine*", 150, "every = \"700us\"\ntimes = 3"),
        ("leaf2->h5", 150, ""),
    ];
    for ((link, us, more), detours) in dying.into_iter().flat_map(|link| ["returning", "all"].map(|detours| (link, detours))) {
        let text = format!(
            r#"
            duration = "80ms"
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
            mechanisms.rimm = {{ alpha = "15 packets", detours = "{detours}" }}
            [telemetry]
            sample = "off"
            [transport]
            kind = "tcp"
            handshake = false
            initial_window = 20
            rto_min = "2ms"
            rto_initial = "2ms"
            [[traffic]]
            kind = "incast"
            receiver = "h5"
            senders = ["h0..h3"]
            flows_per_sender = 4
            size = "200KB"
            {}{}
            "#,
            down(link, us * 1_000_000 + 1, Some(400_000_001), more),
            failover(30_000_000, 100_000_000),
        );
        let world = run_in_steps(&text, |world| {
            conserved(world);
            let count = |name| world.counter("rimm", name);
            let ended: u64 = ["released", "late", "let_go", "astray", "dropped_away"].map(count).iter().sum();
            let (away, gone) = (world.with_shim(8), sum(world, |counts| counts.lost));
            assert!(ended + away <= count("detoured") && count("detoured") <= ended + away + gone, "{ended} {away} {gone}");
            let over = ["messages_returned", "messages_repeated", "messages_overtaken", "messages_lost"].map(count);
            let over: u64 = over.iter().sum();
            assert_eq!(count("messages_sent"), over + world.messages_on_the_way());
        });
        assert!(world.counter("rimm", "detoured") > 20, "{link}: {}", world.counter("rimm", "detoured"));
        assert!(sum(&world, |counts| counts.lost) > 0, "{link} {detours}: {:?}", world.lossy_links());
        assert_eq!(world.with_shim(8), 0, "{link}: nothing is on a detour for ever");
        let kept = world.into_kept().expect("tables");
        assert!(kept.flows.iter().all(|flow| flow.status.to_string() == "complete"), "{link}");
    }
}

/// Notifications on a bad link: those that arrive with errors are lost, each of them is accounted for, and a timeout does what the
/// notification would have done. Drops at a dead port are notified as any other.
#[test]
fn lost_notifications_cost_a_timeout_and_no_more() {
    // Switches to hosts: what travels there are notifications and acknowledgments.
    let errors = "[[events]]\nkind = \"bit_errors\"\nlinks = [\"left->h*\"]\nrate = 2e-4\n";
    let dead = down("right->h150", 2_000_000_001, Some(9_000_000_001), "");
    for (event, notified) in [(errors.to_string(), false), (format!("{dead}[failover]\ndetect = \"50us\"\n"), true)] {
        let text = format!("{}{event}", fan_in(150, "drop_notification = true", "mechanisms.pdn = {}"));
        let world = run_in_steps(&text, |world| {
            let (t, c) = (world.totals(), Notices::of(world));
            let on_links = sum(world, |counts| counts.messages_lost + counts.messages_corrupted + counts.messages_unsent);
            assert_eq!(c.raised, c.stranded() + world.messages_on_the_way() + c.reached() + on_links, "{c:?} {on_links}");
            assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
        });
        let on_links = sum(&world, |counts| counts.messages_corrupted);
        let at_port = sum(&world, |counts| counts.dropped);
        assert!(if notified { at_port > 20 && on_links == 0 } else { on_links > 3 && at_port == 0 }, "{on_links} {at_port}");
        let kept = world.into_kept().expect("tables");
        assert!(kept.flows.iter().all(|flow| flow.status.to_string() == "complete"));
    }
}

/// A region of RCM over lossless links, one of which flaps within it: nothing is held for a dead port, what is held elsewhere goes on, and no
/// packet is lost but on the link or at its port.
#[test]
fn a_region_outlives_none_of_its_links() {
    for architecture in ["buffer = \"unlimited\"", "architecture = { kind = \"combined\", voq = \"200KB\", output = \"100KB\" }"]
    {
        for link in ["leaf0->spine0", "spine0->leaf1", "leaf1->h15"] {
            let burst = |name: &str, src: &str, dst: &str, gbps: u32| {
                format!("[[traffic]]\nkind = \"cbr\"\nname = \"{name}\"\nsrc = \"{src}\"\ndst = \"{dst}\"\nrate = \"{gbps}Gbps\"\ncounts = \"wire\"\npacket = \"1000B\"\nsize = \"1500KB\"\n")
            };
            let text = format!(
                r#"
                duration = "4ms"
                [topology]
                kind = "leaf_spine"
                leaves = 2
                hosts_per_leaf = 8
                spines = 2
                host_link = {{ rate = "100Gbps", delay = "500ns" }}
                uplink = {{ rate = "100Gbps", delay = "500ns" }}
                [switch]
                latency = "300ns"
                {architecture}
                mechanisms.pfc = {{ memory = "4MB", classes = [0], xoff = {{ kind = "static", bytes = "100KB" }} }}
                mechanisms.rcm = {{ sar = true }}
                [telemetry]
                sample = "off"
                {}{}{}{}{}
                "#,
                burst("a", "h0", "h15", 60),
                burst("b", "h1", "h15", 60),
                burst("c", "h2", "h15", 60),
                burst("victim", "h3", "h14", 30),
                down(link, 60_000_001, Some(130_000_001), "every = \"110us\"\ntimes = 2\ndetect = \"10us\"")
                    + "[failover]\nconverge = \"20us\"\n",
            );
            let world = run_in_steps(&text, |world| {
                conserved_with_messages(world);
                assert_eq!(world.down_ports_with_packets(), Vec::<String>::new(), "{link}");
            });
            assert!(world.counter("rcm", "held") > 50 && world.counter("pfc", "dropped_lossless") == 0, "{link} {architecture}");
            assert_eq!((world.in_flight(), world.held()), (0, 0), "{link}: nothing waits for ever");
        }
    }
}

/// As [`conserved`], where frames with nothing but a message wait, too.
fn conserved_with_messages(world: &mut World) {
    let (ports, t) = (world.ports_now(), world.totals());
    assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
    let exist = ports.iter().map(|p| p.on_wire + p.queue_packets).sum::<u64>() + world.held();
    assert_eq!(world.in_flight() + world.control_frames_on_wire(), exist);
    inputs_counted(world);
}
