//! Headroom suffices wherever a pause may have to wait: behind frames of any size, behind notifications, inside bursts. Scenarios that
//! lost packets once, and random fabrics.

use crate::common::{property, run_in_steps_of};
use crate::pfc::balance;
use fanin_scenario::Scenario;
use fanin_sim::{Kept, World};
use proptest::prelude::*;
use proptest::sample::select;
use std::path::Path;

/// A scenario that broke something, from `tests/scenarios`.
fn attack(name: &str, changes: &[(&str, &str)]) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut text = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect(name);
    for (before, after) in changes {
        assert!(text.contains(before), "{name}: {before}");
        text = text.replace(before, after);
    }
    Scenario::from_json(&text, &folder).unwrap_or_else(|problems| panic!("{name}: {problems:?}"))
}

/// Runs it to its end, with nothing of a lossless class lost.
fn lossless(scenario: &Scenario) -> World {
    let world = run_in_steps_of(scenario, |_| {});
    assert_eq!(world.counter("pfc", "dropped_lossless"), 0);
    assert!(world.counter("pfc", "xoff") > 10, "{}", world.counter("pfc", "xoff"));
    world
}

fn complete(kept: &Kept) -> bool {
    kept.flows.iter().all(|flow| flow.status.to_string() == "complete")
}

/// A NIC obeys a pause between the frames of a burst. 4, 46 and 5 packets were lost while a burst was one thing.
#[test]
fn bursts_stop_at_a_frame() {
    for name in ["bursts-in-telemetry", "bursts-over-a-line", "bursts-by-class"] {
        let mut world = lossless(&attack(name, &[]));
        balance(&mut world);
        assert_eq!(world.held(), 0);
        assert_eq!(world.totals().dropped, 0, "{name}");
    }
}

/// Segments of TSO are a burst, too.
#[test]
fn segments_of_tso_stop_at_a_frame() {
    let tcp = "\"kind\": \"tcp\", \"congestion_control\": \"dctcp\", \"profile\": \"linux\", \"tso\": true, \"mtu\": 4128";
    let changes = [
        ("\"kind\": \"roce\",\n  \"congestion_control\": \"hpcc\",\n  \"mtu\": 4096,\n  \"recovery\": \"go_back_n\",\n  \"burst\": \"32768B\"", tcp),
        (",\n   \"int\": {\n    \"hops\": 8\n   }", ""),
    ];
    let world = lossless(&attack("bursts-in-telemetry", &changes));
    assert_eq!(world.totals().dropped, 0);
    assert!(complete(&world.into_kept().expect("tables")));
}

/// A pause waits for one frame, not for notifications that came before it: 3 packets were lost, with deeper tables 568.
#[test]
fn a_pause_goes_before_notifications() {
    for cam in ["", "\"cam\": 64"] {
        let changes = [("\"rcm\": {}", &format!("\"rcm\": {{{cam}}}")[..]), ("\"6ms\"", "\"2500us\"")];
        let world = lossless(&attack("pauses-behind-notifications", &changes));
        assert!(world.counter("rcm", "notifications_sent") > 500, "{}", world.counter("rcm", "notifications_sent"));
    }
}

/// Queue pairs with selective repeat fail while they wait for pauses, without a loss: 79 of 426. With the timeout that `check` asks for
/// none does.
#[test]
fn timeouts_that_outlast_pauses_fail_nobody() {
    let name = "selective-repeat-over-pauses";
    let short = attack(name, &[]);
    let said =
        short.warnings().iter().find(|problem| problem.message.contains("fail after 8 timeouts of 100us")).expect("a warning");
    let suggestion = said.suggestion.as_deref().expect("a value");
    let least = suggestion.split("at least ").nth(1).and_then(|rest| rest.split(' ').next()).expect(suggestion);
    let failed = |scenario: &Scenario| {
        let world = lossless(scenario);
        assert_eq!(world.totals().dropped, 0);
        let kept = world.into_kept().expect("tables");
        kept.flows.iter().filter(|flow| flow.status.to_string() != "complete").count()
    };
    assert!(failed(&short) > 20);
    let recovery =
        format!("\"recovery\": {{\"kind\": \"selective_repeat\", \"rto_low\": \"{least}\", \"rto_high\": \"{least}\"}}");
    let long = attack(name, &[("\"recovery\": \"selective_repeat\"", &recovery)]);
    assert!(!long.warnings().iter().any(|problem| problem.message.contains("fail after")));
    assert_eq!(failed(&long), 0);
}

/// A line of switches with hosts, links of any rate and length.
fn line() -> impl Strategy<Value = String> {
    let rates = || select(vec!["10Gbps", "25Gbps", "40Gbps", "100Gbps", "400Gbps"]);
    let delays = || select(vec!["0ps", "10ns", "500ns", "3us", "20us"]);
    let host = (0..4_usize, rates(), delays());
    (prop::collection::vec((rates(), delays()), 1..4), prop::collection::vec(host, 5..9)).prop_map(|(trunk, hosts)| {
        let link = |a: String, b: String, (rate, delay): (&str, &str)| {
            format!("{{\"a\": \"{a}\", \"b\": \"{b}\", \"rate\": \"{rate}\", \"delay\": \"{delay}\"}}")
        };
        let switches = trunk.len() + 1;
        let trunk = trunk.into_iter().enumerate().map(|(i, of)| link(format!("s{i}"), format!("s{}", i + 1), of));
        let hosts = hosts.into_iter().enumerate().map(|(i, (at, rate, delay))| {
            link(format!("h{i}"), format!("s{}", if i < switches { i } else { at % switches }), (rate, delay))
        });
        let links: Vec<String> = trunk.chain(hosts).collect();
        format!("{{\"links\": [{}]}}", links.join(", "))
    })
}

/// What waits in front of a pause, or makes frames longer.
fn mechanisms() -> impl Strategy<Value = (String, &'static str)> {
    let rcm =
        (select(vec![1_u32, 4, 64]), select(vec!["500B", "4KB"]), select(vec!["2KB", "20KB"])).prop_map(|(cam, period, q_eq)| {
            format!("mechanisms.rcm = {{ cam = {cam}, cam_period = \"{period}\", q_eq = \"{q_eq}\" }}\n")
        });
    let rcm = prop::option::weighted(0.6, rcm).prop_map(Option::unwrap_or_default);
    let int = select(vec![
        ("", "none"),
        ("", "dcqcn"),
        ("", "timely"),
        ("mechanisms.int = { hops = 8 }\n", "hpcc"),
        ("mechanisms.int = {}\n", "powertcp"),
    ]);
    let pdn = select(vec!["", "", "mechanisms.pdn = {}\n", "mechanisms.pdn = { max_frame = \"9400B\" }\n"]);
    (rcm, int, pdn).prop_map(|(rcm, (int, control), pdn)| (format!("{rcm}{int}{pdn}"), control))
}

fn pfc() -> impl Strategy<Value = String> {
    (
        select(vec!["{ kind = \"static\", bytes = \"5KB\" }", "{ kind = \"static\", bytes = \"40KB\" }", "{ kind = \"dynamic\", alpha = 0.02 }"]),
        select(vec!["0B", "500B", "3KB"]),
        select(vec!["0ps", "200ns", "1us"]),
        select(vec![3_000_u32, 65_535]),
        select(vec!["[0]", "[0, 1]", "[0, 1, 2, 3, 4, 5, 6, 7]"]),
    )
        .prop_map(|(xoff, gap, response, quanta, classes)| {
            format!("memory = \"40MB\", classes = {classes}, xoff = {xoff}, xon_gap = \"{gap}\", response = \"{response}\", quanta = {quanta}")
        })
}

fn traffic() -> impl Strategy<Value = (String, u32)> {
    let mtus = select(vec![(256_u32, 256_u32), (1_024, 1_500), (2_048, 4_000), (4_096, 9_000)]);
    let burst = select(vec!["", "burst = \"16384B\"\n", "burst = \"65536B\"\n"]);
    let flows = prop::collection::vec((0..5_u32, 0..5_u32, 0..2_u8, 1..400_u32, 0..4_u32), 2..8);
    (mtus, burst, flows, 20..120_u32, any::<bool>()).prop_map(|((mtu, datagram), burst, flows, incast, datagrams)| {
        let mut text = String::new();
        for (i, (src, dst, class, packets, at)) in flows.into_iter().enumerate() {
            let dst = if src == dst { (dst + 1) % 5 } else { dst };
            text += &if datagrams && i % 2 == 0 {
                let size = packets * (datagram - 60);
                format!("[[traffic]]\nkind = \"cbr\"\nname = \"{i}\"\nsrc = \"h{src}\"\ndst = \"h{dst}\"\nrate = \"10Gbps\"\ncounts = \"wire\"\npacket = \"{}B\"\nsize = \"{size}B\"\nclass = {class}\nstart = \"{at}us\"\n", datagram - 60)
            } else {
                format!("[[traffic]]\nkind = \"flows\"\nname = \"{i}\"\nclass = {class}\nflows = [{{ src = \"h{src}\", dst = \"h{dst}\", size = \"{}B\", start = \"{at}us\" }}]\n", packets * mtu)
            };
        }
        for class in 0..2 {
            text += &format!("[[traffic]]\nkind = \"incast\"\nname = \"incast{class}\"\nreceiver = \"h4\"\nsenders = [\"h0..h3\"]\nsize = \"{}B\"\nclass = {class}\nrepetitions = 2\ngap = \"5us\"\n", incast * mtu);
        }
        (format!("mtu = {mtu}\n{burst}{text}"), mtu)
    })
}

/// A scenario with the smallest `max_frame` that `check` accepts.
fn tight(text: &str, folder: &Path) -> Scenario {
    let problems = match Scenario::from_toml(&text.replace("MAX_FRAME", "64B"), folder) {
        Ok(_) => panic!("frames of 64 B"),
        Err(problems) => problems,
    };
    let accepted =
        problems.iter().find(|problem| problem.path.ends_with("max_frame")).and_then(|problem| problem.accepted.clone());
    let bytes = accepted
        .as_deref()
        .and_then(|accepted| accepted.strip_prefix("at least ")?.strip_suffix(" B"))
        .unwrap_or_else(|| panic!("{problems:?}\n{text}"));
    Scenario::from_toml(&text.replace("MAX_FRAME", &format!("{bytes}B")), folder)
        .unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
}

proptest! {
    #![proptest_config(property(48, 30_30))]

    /// Nothing of a lossless class is ever lost: RCM with tables of any depth, telemetry, drop notifications, either version of IP, packets
    /// of 256 to 9,000 bytes with any gap between them, bursts, links of any rate and length, one class or all.
    #[test]
    fn nothing_lossless_is_lost_in_random_fabrics(
        links in line(),
        (mechanisms, control) in mechanisms(),
        pfc in pfc(),
        (traffic, _mtu) in traffic(),
        scheduling in select(vec!["{ kind = \"strict\", classes = 8 }", "{ kind = \"drr\", quanta = [\"9018B\", \"300B\"] }"]),
        framing in select(vec!["ip = \"v4\"", "ip = \"v6\"", "ip = \"v6\"\ngap = \"0B\"", "ip = \"v4\"\ngap = \"3B\"\nmin_frame = \"0B\""]),
        latency in select(vec!["0ps", "300ns", "1us"]),
        seed in 1..1_000_u32,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("net.json"), links).expect("a file");
        let text = format!(
            "seed = {seed}\nduration = \"40ms\"\n[topology]\nkind = \"file\"\npath = \"net.json\"\n[framing]\n{framing}\n[telemetry]\nsample = \"off\"\n\
             [switch]\nlatency = \"{latency}\"\nbuffer = \"unlimited\"\nscheduling = {scheduling}\n{mechanisms}mechanisms.pfc = {{ {pfc}, max_frame = \"MAX_FRAME\" }}\n\
             [transport]\nkind = \"roce\"\ncongestion_control = \"{control}\"\n{traffic}"
        );
        let scenario = tight(&text, folder.path());
        let world = run_in_steps_of(&scenario, balance);
        println!("{} pauses, {} notifications", world.counter("pfc", "xoff"), world.counter("rcm", "notifications_sent"));
        prop_assert_eq!(world.counter("pfc", "dropped_lossless"), 0, "{}\n{}", text, std::fs::read_to_string(folder.path().join("net.json")).unwrap_or_default());
    }
}
