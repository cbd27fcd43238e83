//! The same scenario gives the same bytes, however it is simulated and whatever is recorded; and nothing is lost on the way.

use crate::common::*;
use crate::random::{classes, fifo, Random};
use fanin_scenario::Scenario;
use fanin_sim::{world_fetching, Destination, Kept, Pause, World};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

pub fn config(cases: u32) -> ProptestConfig {
    property(cases, 20_26)
}

/// Runs a scenario with or without fetching ahead.
pub fn fetching(text: &str, fetches: bool) -> Ran {
    finish(world_fetching(&scenario(text), &Destination::Memory, fetches).expect("a world"))
}

/// What is found out ahead of an arrival is what would be found out at it, whatever chooses the path.
#[test]
fn fetching_ahead_changes_no_path() {
    for routing in ["ecmp", "spray", "round_robin", "flowlet", "drill"] {
        let text = format!(
            r#"
            [topology]
            kind = "fat_tree"
            k = 4
            link = {{ rate = "10Gbps", delay = "1us" }}
            [switch]
            routing = "{routing}"
            buffer = {{ kind = "static", per_port = "20KB" }}
            marking = {{ kind = "threshold", k = "10 packets" }}
            [transport]
            kind = "tcp"
            congestion_control = "dctcp"
            [[traffic]]
            kind = "all_to_all"
            size = "30KB"
            "#
        );
        let [without, with] = [false, true].map(|fetches| fetching(&text, fetches));
        assert!(without.totals.packet_hops > 50_000 && without.totals.dropped > 0, "{:?}", without.totals);
        assert_eq!(without, with, "{routing}");
    }
}

/// Paths of as many links as a packet keeps of its route, and of more, which are looked up at each switch.
#[test]
fn packets_cross_long_paths() {
    for switches in [1, 6, 7, 8, 14, 40] {
        let text = format!(
            r#"
            [topology]
            kind = "chain"
            switches = {switches}
            link = {{ rate = "10Gbps", delay = "1us" }}
            [transport]
            kind = "tcp"
            congestion_control = "dctcp"
            [[traffic]]
            kind = "flows"
            flows = [{{ src = "h0", dst = "h1", size = "100KB" }}]
            "#
        );
        let [without, with] = [false, true].map(|fetches| fetching(&text, fetches));
        assert_eq!(without, with, "{switches} switches");
        assert!(with.totals.sent > 70 && with.totals.dropped == 0, "{:?}", with.totals);
        assert_eq!(with.totals.packet_hops, with.totals.sent * (switches + 1), "{switches} switches");
    }
}

/// Nor does fetching ahead change anything in lossless networks, where packets wait at ports whose departures are events, mechanisms
/// keep something of them, and endpoints of queue pairs keep most apart; with one queue at a port and with several.
#[test]
fn fetching_ahead_changes_nothing_of_lossless_networks() {
    let red = "marking = { kind = \"red\", min = \"8KB\", max = \"32KB\", max_p = 0.2, weight = 1.0, gentle = false, hard_drop = false }";
    for (control, switch) in [
        ("dcqcn", red),
        ("dcqcn", "scheduling = { kind = \"strict\", classes = 2 }"),
        ("hpcc", "mechanisms.int = {}"),
        ("none", ""),
    ] {
        let text = format!(
            r#"
            [topology]
            kind = "fat_tree"
            k = 4
            link = {{ rate = "10Gbps", delay = "1us" }}
            [switch]
            buffer = "unlimited"
            mechanisms.pfc = {{ memory = "1MB", classes = [0], xoff = {{ kind = "static", bytes = "20KB" }} }}
            {switch}
            [transport]
            kind = "roce"
            congestion_control = "{control}"
            [[traffic]]
            kind = "incast"
            receiver = "h0"
            size = "60KB"
            [[traffic]]
            kind = "permutation"
            size = "60KB"
            "#
        );
        let [without, with] = [false, true].map(|fetches| fetching(&text, fetches));
        assert!(without.totals.packet_hops > 4_000, "{control}: {:?}", without.totals);
        assert!(without.kept.pauses.len() > 4, "{control}, {switch}: {} pauses", without.kept.pauses.len());
        assert_eq!(without, with, "{control}, {switch}");
    }
}

/// A packet dropped at the head of its queue when another port sends: the drop is notified after all departures of that instant, so that
/// the frame goes without the notification whichever port comes first.
#[test]
fn a_head_is_dropped_when_another_port_sends() {
    let text = |ports: &str| {
        format!(
            r#"
            duration = "1ms"
            [topology]
            kind = "single_switch"
            hosts = 6
            link = {{ rate = "10312500Kbps", delay = "0ps" }}
            [switch]
            buffer = {{ kind = "unlimited" }}
            marking = {{ kind = "front_drop", limit = "4 packets" }}
            mechanisms.pdn = {{}}
            [[switch.except]]
            ports = ["*->h5", "*->h1"]
            buffer = "0 packets"
            marking = "none"
            [[switch.except]]
            ports = ["*->h4"]
            marking = "none"
            [framing]
            ip = "v6"
            [transport]
            kind = "tcp"
            handshake = false
            timestamps = false
            [[traffic]]
            kind = "cbr"
            src = "h3"
            dst = "h2"
            rate = "10Gbps"
            counts = "wire"
            packet = "64B"
            size = "7680B"
            [[traffic]]
            kind = "permutation"
            size = "1448B"
            [engine]
            ports = "{ports}"
            "#
        )
    };
    let [auto, explicit] = ["auto", "explicit"].map(|ports| run(&format!("seed = 143{}", text(ports))));
    assert!(explicit.kept.drops.iter().any(|drop| drop.reason.to_string() == "front_drop"));
    assert_eq!((&auto.kept, auto.outcome()), (&explicit.kept, explicit.outcome()));
}

/// Combinations that validation refuses (a setting without effect) are not what is tested here.
pub fn accepted(random: &Random) -> bool {
    Scenario::from_toml(&random.with("auto", true), Path::new(".")).is_ok()
}

proptest! {
    #![proptest_config(config(300))]

    /// Ports of one event per packet and ports with departures as events give the same rows of all tables; with telemetry
    /// off, when FIFO ports take the shortest path through the code, the fingerprint stays. With classes, shared buffers and
    /// mechanisms departures are events from time to time. Tolerance: none.
    #[test]
    fn both_kinds_of_ports_give_the_same_bits(random in prop_oneof![fifo(), classes()]) {
        prop_assume!(accepted(&random));
        let auto = run(&random.with("auto", true));
        let explicit = run(&random.with("explicit", true));
        prop_assert_eq!(&auto.kept.flows, &explicit.kept.flows);
        prop_assert_eq!(&auto.kept.drops, &explicit.kept.drops);
        prop_assert_eq!(&auto.kept.ports, &explicit.kept.ports);
        prop_assert_eq!(&auto.kept.queues, &explicit.kept.queues);
        prop_assert_eq!(&auto.kept, &explicit.kept);
        prop_assert_eq!(auto.outcome(), explicit.outcome());
        for ports in ["auto", "explicit"] {
            prop_assert_eq!(run(&random.with(ports, false)).outcome(), auto.outcome(), "{} without telemetry", ports);
        }
    }
}

proptest! {
    #![proptest_config(config(200))]

    /// Twice the same is the same, tables and all; recording changes nothing. Tolerance: none.
    #[test]
    fn repetition_and_telemetry_change_nothing(random in prop_oneof![fifo(), classes()]) {
        prop_assume!(accepted(&random));
        let first = run(&random.with("auto", true));
        prop_assert_eq!(&run(&random.with("auto", true)), &first);
        prop_assert_eq!(run(&random.with("auto", false)).outcome(), first.outcome());
    }

    /// Fetching ahead, which large networks do, changes nothing. Tolerance: none.
    #[test]
    fn fetching_ahead_changes_nothing(random in prop_oneof![fifo(), classes()]) {
        prop_assume!(accepted(&random));
        let [without, with] = [false, true].map(|fetches| fetching(&random.with("auto", true), fetches));
        prop_assert_eq!(without, with);
    }

    /// At any stop: packets sent = delivered + stray + dropped + in flight; what reached a switch = what it has sent, holds
    /// and has dropped; no queue is above its limit. Tolerance: none.
    #[test]
    fn nothing_is_lost_or_made_up(random in prop_oneof![fifo(), classes()], budgets in prop::collection::vec(1u64..400, 1..40)) {
        prop_assume!(accepted(&random));
        prop_assert_eq!(balanced(&random, &budgets), Pause::Done);
    }
}

/// Runs a scenario in steps of so many events, and looks after each whether anything was lost or made up; how it has ended.
pub fn balanced(random: &Random, budgets: &[u64]) -> Pause {
    let text = random.with("auto", false);
    let limit = Limit::of(&text);
    let mut world = make(&text);
    let mut budgets = budgets.iter().cycle();
    loop {
        let pause = world.advance(budgets.next().copied().unwrap_or(1)).expect("no tables");
        balance(&mut world, &limit);
        if pause != Pause::Budget {
            return pause;
        }
    }
}

/// The generator's options are valid together, nearly all: what validation refuses is not tested.
#[test]
fn random_scenarios_are_accepted() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::new(config(1));
    let mut refused: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..400 {
        let random = prop_oneof![fifo(), classes()].new_tree(&mut runner).expect("a scenario").current();
        if let Err(problems) = Scenario::from_toml(&random.with("auto", true), Path::new(".")) {
            for problem in problems.iter().filter(|p| p.severity == fanin_params::Severity::Error) {
                *refused.entry(format!("{} {}", problem.path, problem.message)).or_default() += 1;
            }
        }
    }
    println!("{refused:?}");
    assert!(refused.values().sum::<u32>() < 20, "{refused:?}");
}

/// What a scenario's buffer allows.
pub struct Limit {
    /// By link.
    per_port: Vec<Option<fanin_units::Amount>>,
    shared: Option<fanin_units::Amount>,
    /// Packets that may wait in a host.
    txqueuelen: Option<u32>,
}

impl Limit {
    pub fn of(text: &str) -> Limit {
        use fanin_switch::Buffer;
        let scenario = scenario(text);
        let links = (0..scenario.topology().links.len() as u32).map(fanin_units::LinkId);
        let shared = match &scenario.doc().switch.buffer {
            Buffer::Dynamic(b) => Some(b.total),
            _ => None,
        };
        let txqueuelen = match &scenario.doc().host.nic {
            fanin_scenario::Nic::Fifo(nic) => nic.txqueuelen,
            fanin_scenario::Nic::Fair(_) => None,
        };
        Limit { per_port: links.map(|link| scenario.port(link).buffer).collect(), shared, txqueuelen }
    }
}

/// Asserts the identities of conservation.
pub fn balance(world: &mut World, limit: &Limit) {
    use fanin_units::Amount;
    let ports = world.ports_now();
    let t = world.totals();
    let in_flight = world.in_flight();
    assert_eq!(t.sent, t.delivered + t.stray + t.dropped + in_flight, "{t:?}");
    let exist = ports.iter().map(|p| p.on_wire + p.queue_packets).sum::<u64>() + world.held();
    assert_eq!(in_flight + world.control_frames_on_wire(), exist);
    assert_eq!(t.packet_hops, ports.iter().map(|p| p.tx_packets - p.on_wire).sum::<u64>());
    // Mechanisms hold packets, send frames of their own, and detour packets until their hop limit is reached, which is no port's
    // drop: with them the sums over the network are what holds.
    let plain = world.mechanism_counts().is_empty();
    let at_ports = ports.iter().map(|p| p.drops).sum::<u64>();
    assert!(t.dropped == at_ports || (!plain && t.dropped > at_ports), "{t:?}");
    let nics = || ports.iter().filter(|p| p.switch.is_none());
    assert_eq!(t.sent, nics().map(|p| p.tx_packets + p.queue_packets + p.drops).sum::<u64>());
    assert_eq!(nics().map(|p| p.marks).sum::<u64>(), 0, "hosts do not mark");
    assert!(limit.txqueuelen.is_some() || nics().all(|p| p.drops == 0), "only a full queue of a host drops");
    let arrived = |to: Option<u32>| ports.iter().filter(|p| p.leads_to == to).map(|p| p.tx_packets - p.on_wire).sum::<u64>();
    assert!(!plain || t.delivered + t.stray == arrived(None), "{t:?}");
    let switches = ports.iter().filter_map(|p| p.switch).max().map_or(0, |s| s + 1);
    for s in 0..switches {
        let own: Vec<_> = ports.iter().filter(|p| p.switch == Some(s)).collect();
        let left = own.iter().map(|p| p.tx_packets + p.queue_packets + p.drops).sum::<u64>();
        let crossing = world.crossbar_packets().get(s as usize).copied().unwrap_or(0);
        assert!(!plain || arrived(Some(s)) == left + crossing, "switch {s}");
        let held = |amount: Amount| match amount {
            Amount::Bytes(_) => own.iter().map(|p| p.queue_bytes).sum::<u64>(),
            Amount::Packets(_) => own.iter().map(|p| p.queue_packets).sum(),
            Amount::Cells(_) => own.iter().map(|p| p.queue_cells).sum(),
        };
        if let Some(total) = limit.shared {
            assert!(held(total) <= total.count(), "switch {s} holds {} of {total}", held(total));
        }
    }
    for (p, own) in ports.iter().zip(&limit.per_port).filter(|(p, _)| p.switch.is_some()) {
        assert!(p.queue_bytes >= 64 * p.queue_packets && p.tx_bytes >= 64 * p.tx_packets, "{p:?}");
        let (queue, limit) = match *own {
            Some(Amount::Bytes(n)) => (p.queue_bytes.max(p.peak_bytes), n),
            Some(Amount::Packets(n)) => (p.queue_packets, n),
            Some(Amount::Cells(n)) => (p.queue_cells, n),
            None => continue,
        };
        assert!(queue <= limit, "{p:?}: {queue} above {limit}");
    }
}

/// Rows without the flow's number, which counts flows in order of their start.
fn by_id(kept: &Kept) -> BTreeMap<String, String> {
    kept.flows
        .iter()
        .map(|row| {
            let id = row.id.as_ref().map_or_else(|| format!("{} {} {}", row.group, row.src, row.start_ps), ToString::to_string);
            (id, format!("{:?}", fanin_telemetry::FlowRow { flow: 0, ..row.clone() }))
        })
        .collect()
}

/// A flow between other hosts over other links changes no other flow's row, nor any queue that it does not meet, although
/// flows after it get other numbers. Per-flow ECMP over four spines: paths depend on the port numbers that hosts draw.
/// Tolerance: none.
#[test]
fn an_unrelated_flow_changes_nothing_else() {
    let text = |more: &str| {
        format!(
            "seed = 3\n[topology]\nkind = \"leaf_spine\"\nleaves = 3\nhosts_per_leaf = 4\nspines = 4\n\
             host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = {{ kind = \"static\", per_port = \"12 packets\" }}\nmarking = {{ kind = \"red\", min = \"2 packets\", max = \"9 packets\", weight = 0.2 }}\n\
             [transport]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\nhandshake = true\nrto_min = \"1ms\"\nclock_granularity = \"10us\"\n\
             [telemetry]\nsample = \"off\"\nqueues = [\"leaf0->*\", \"spine*->leaf1\"]\n{more}\
             [[traffic]]\nkind = \"flows\"\nname = \"main\"\nstart = \"10us\"\nflows = [{}]\n\
             [[traffic]]\nkind = \"poisson\"\nname = \"background\"\nstart = \"10us\"\nsources = [\"rack:0\"]\ndestinations = [\"rack:1\"]\nsizes = \"web-search\"\nper_second = 40000\ncount = 30\n",
            (0..16).map(|i| format!("{{ id = \"f{i}\", src = \"h{}\", dst = \"h{}\", size = \"{}KB\" }}", i % 4, 4 + (i * 7) % 4, 50 + i)).collect::<Vec<_>>().join(", ")
        )
    };
    let alone = run(&text(""));
    // Two hosts of the third rack: neither their links nor their leaf's ports are used by anyone else.
    let more = "[[traffic]]\nkind = \"flows\"\nname = \"other\"\nflows = [{ id = \"other0\", src = \"h8\", dst = \"h9\", size = \"1MB\" }, { id = \"other1\", src = \"h9\", dst = \"h8\", size = \"1MB\" }]\n";
    let beside = run(&text(more));
    assert!(alone.totals.dropped > 0 && alone.kept.flows.iter().any(|f| f.marked > 0), "nothing happens in it");
    let (a, mut b) = (by_id(&alone.kept), by_id(&beside.kept));
    b.retain(|id, _| !id.starts_with("other"));
    assert_eq!(a, b);
    let times = |ran: &Ran| {
        ran.kept
            .queues
            .iter()
            .map(|r| (r.time_ps, r.port.to_string(), r.queue_bytes, r.frame_bytes, r.marked, r.dropped))
            .collect::<Vec<_>>()
    };
    assert_eq!(times(&alone), times(&beside));
}

/// The order of flows that start at the same time at different hosts decides their numbers and nothing else. (At one
/// host it also decides who goes first at the NIC.) Tolerance: none.
#[test]
fn the_order_of_simultaneous_flows_of_different_hosts_changes_only_their_numbers() {
    let text = |order: &[u32]| {
        format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 9\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = {{ kind = \"static\", per_port = \"20 packets\" }}\n[transport]\nkind = \"tcp\"\nrto_min = \"1ms\"\nclock_granularity = \"10us\"\n\
             [telemetry]\nqueues = [\"*->h8\"]\n{}",
            order
                .iter()
                .map(|i| format!("[[traffic]]\nkind = \"flows\"\nname = \"e{i}\"\nflows = [{{ id = \"f{i}\", src = \"h{i}\", dst = \"h8\", size = \"{}KB\" }}]\n", 60 + i))
                .collect::<String>()
        )
    };
    let first = run(&text(&[0, 1, 2, 3, 4, 5, 6, 7]));
    assert!(first.totals.dropped > 0);
    let queues = |ran: &Ran| {
        let ids: BTreeMap<u32, String> =
            ran.kept.flows.iter().map(|f| (f.flow, f.id.as_ref().expect("an id").to_string())).collect();
        ran.kept.queues.iter().map(|r| (r.time_ps, ids[&r.flow].clone(), r.queue_bytes, r.dropped)).collect::<Vec<_>>()
    };
    for order in [[7, 6, 5, 4, 3, 2, 1, 0], [3, 1, 4, 0, 5, 2, 7, 6]] {
        let other = run(&text(&order));
        assert_eq!(by_id(&first.kept), by_id(&other.kept));
        assert_eq!(queues(&first), queues(&other));
        assert_eq!(first.kept.ports, other.kept.ports);
        assert_ne!(first.kept.flows, other.kept.flows); // the numbers
    }
}

/// A link delivers in the order in which its port sent: what two ports in a row see is the same sequence. Mixed sizes, so
/// that overtaking would show.
#[test]
fn packets_stay_in_order_on_a_link() {
    for scheduling in ["\"fifo\"", "{ kind = \"strict\", classes = 2 }"] {
        let rates = [(64, "900Mbps"), (1472, "4Gbps"), (700, "3Gbps"), (300, "5Gbps")];
        let sources: String = rates
            .iter()
            .enumerate()
            .map(|(i, (packet, rate))| {
                let class = if scheduling.contains("strict") { i % 2 } else { 0 };
                format!("[[traffic]]\nkind = \"cbr\"\nname = \"s{i}\"\nclass = {class}\nsrc = \"h{i}\"\ndst = \"h4\"\nrate = \"{rate}\"\npacket = \"{packet}B\"\nsize = \"{}B\"\n", packet * 300)
            })
            .collect();
        let ran = run(&format!(
            "[topology]\nkind = \"dumbbell\"\nleft = 4\nright = 1\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nbottleneck = {{ rate = \"10Gbps\", delay = \"3us\" }}\n\
             [switch]\nscheduling = {scheduling}\nbuffer = {{ kind = \"unlimited\" }}\n[telemetry]\nqueues = [\"left->right\", \"right->h4\"]\n{sources}"
        ));
        for flow in 0..4 {
            let seen = |port: &str| {
                ran.kept
                    .queues
                    .iter()
                    .filter(|r| r.port.to_string() == port && r.flow == flow)
                    .map(|r| (r.flow, r.frame_bytes))
                    .collect::<Vec<_>>()
            };
            assert_eq!(seen("left->right").len(), 300);
            assert_eq!(seen("left->right"), seen("right->h4"));
        }
        if scheduling == "\"fifo\"" {
            let seen = |port: &str| {
                ran.kept.queues.iter().filter(|r| r.port.to_string() == port).map(|r| (r.flow, r.frame_bytes)).collect::<Vec<_>>()
            };
            assert_eq!(seen("left->right"), seen("right->h4"));
        }
    }
}
