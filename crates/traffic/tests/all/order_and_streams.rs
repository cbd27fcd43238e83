//! Order, determinism, independence of random streams, and dependencies.

use crate::common::{assert_problem, drain, net, run};
use fanin_traffic::{FlowKind, FlowSpec};
use fanin_units::{Span, Time};
use proptest::prelude::*;
use std::collections::BTreeSet;

const MIXED: &str = r#"
    [[traffic]]
    kind = "poisson"
    load = 0.5
    sizes = "hadoop"

    [[traffic]]
    kind = "query"
    per_second = 20_000.0
    total = "100KB"
    fanout = 5
    jitter = "20us"
    request = "50B"

    [[traffic]]
    kind = "incast"
    receiver = "h3"
    size = "64KB"
    repetitions = 10
    interval = "100us"
    jitter = "300us"

    [[traffic]]
    kind = "all_to_all"
    size = "1KB"
    stagger = "10us"
    jitter = "25us"

    [[traffic]]
    kind = "permutation"
    size = "2MB"

    [[traffic]]
    kind = "on_off"
    src = "h0"
    dst = "h1"
    rate = "1Gbps"
    on = "10us"
    off = "20us"
    exponential = true
"#;

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

#[test]
fn mixed_traffic_comes_in_order_and_the_same_every_time() {
    let first = net(4, 4).until_ms(2).flows(MIXED); // `drain` checks the order
    assert_eq!(first, net(4, 4).until_ms(2).flows(MIXED));
    assert_ne!(first, net(4, 4).seed(2).until_ms(2).flows(MIXED));
    let entries: BTreeSet<u16> = first.iter().map(|flow| flow.entry).collect();
    assert_eq!(entries.len(), 6);
    let indices: BTreeSet<(u16, u64)> = first.iter().map(|flow| (flow.entry, flow.index)).collect();
    assert_eq!(indices.len(), first.len(), "(entry, index) names a flow");
}

#[test]
fn another_entry_disturbs_no_flow_of_the_others() {
    let alone = net(4, 4).until_ms(2).flows(MIXED);
    let more = format!("{MIXED}\n[[traffic]]\nkind = \"hot_spot\"\nload = 0.3\nsizes = \"storage\"");
    let with_more: Vec<FlowSpec> = net(4, 4).until_ms(2).flows(&more).into_iter().filter(|flow| flow.entry < 6).collect();
    let unnumbered = |flows: Vec<FlowSpec>| flows.into_iter().map(|flow| FlowSpec { query: None, ..flow }).collect::<Vec<_>>();
    assert_eq!(unnumbered(alone), unnumbered(with_more));
}

#[test]
fn a_named_entry_keeps_its_flows_wherever_it_stands() {
    let named = "[[traffic]]\nname = \"background\"\nkind = \"poisson\"\nload = 0.5\nsizes = \"hadoop\"\n";
    let other = "[[traffic]]\nkind = \"poisson\"\nload = 0.1\nsizes = \"storage\"\n";
    let alone = net(2, 4).until_ms(20).flows(named);
    let second: Vec<FlowSpec> =
        net(2, 4).until_ms(20).flows(&format!("{other}{named}")).into_iter().filter(|f| f.entry == 1).collect();
    assert!(alone.len() > 100);
    assert_eq!(alone, second.into_iter().map(|flow| FlowSpec { entry: 0, ..flow }).collect::<Vec<_>>());
}

#[test]
fn another_host_disturbs_no_arrival_and_no_size_of_the_others() {
    let text = "[[traffic]]\nkind = \"poisson\"\nload = 0.5\nsizes = \"hadoop\"";
    let of = |flows: Vec<FlowSpec>, names: &[String]| -> Vec<(String, Time, u64)> {
        let named = flows.iter().map(|f| (names[f.src.index()].clone(), f.start, f.size));
        named.filter(|(name, ..)| name != "new").collect()
    };
    let small = net(2, 4).until_ms(20);
    let mut large = net(2, 4).until_ms(20);
    large.names.insert(3, "new".into());
    let before = of(small.flows(text), &small.names);
    assert!(before.len() > 100);
    assert_eq!(before, of(large.flows(text), &large.names));
}

#[test]
fn two_entries_of_a_kind_draw_differently() {
    let flows = net(2, 4).until_ms(2).flows(&"[[traffic]]\nkind = \"poisson\"\nload = 0.5\nsizes = \"hadoop\"\n".repeat(2));
    let starts = |entry| flows.iter().filter(|f| f.entry == entry).map(|f| f.start).collect::<BTreeSet<_>>();
    assert!(starts(0).is_disjoint(&starts(1)));
}

#[test]
fn entry_names_are_given_or_made_of_the_kind() {
    let text = format!(
        "{}[[traffic]]\nname = \"mine\"\nkind = \"permutation\"\nsize = \"1B\"",
        "[[traffic]]\nkind = \"permutation\"\nsize = \"1B\"\n".repeat(2)
    );
    assert_eq!(net(1, 4).build(&text).entry_names().collect::<Vec<_>>(), ["permutation", "permutation-2", "mine"]);
}

#[test]
fn simultaneous_flows_come_by_entry_and_then_by_index() {
    let text = "[[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsize = \"1KB\"\n";
    let flows = net(1, 4).flows(&text.repeat(2));
    let order: Vec<_> = flows.iter().map(|f| (f.entry, f.index, f.src.0)).collect();
    assert_eq!(order, [(0, 0, 1), (0, 1, 2), (0, 2, 3), (1, 0, 1), (1, 1, 2), (1, 2, 3)]);
}

const CHAIN: &str = r#"
    [[traffic]]
    name = "shuffle"
    kind = "flows"
    start = "5us"
    [[traffic.flows]]
    id = "map"
    src = "h0"
    dst = "h1"
    size = "10KB"
    start = "1us"
    [[traffic.flows]]
    id = "reduce"
    src = "h1"
    dst = "h2"
    size = "20KB"
    request = "100B"
    after = ["map"]
    delay = "3us"

    [[traffic]]
    kind = "incast"
    receiver = "h3"
    size = "1KB"
    after = ["shuffle"]
    delay = "2us"
    class = 3
    transport = "cubic"

    [[traffic]]
    kind = "flows"
    after = ["incast", "map"]
    start = "1ms"
    [[traffic.flows]]
    src = "h2"
    dst = "h0"
    size = "1B"
"#;

#[test]
fn flows_and_entries_start_after_what_they_wait_for() {
    let mut traffic = net(1, 4).build(CHAIN);
    assert_eq!(traffic.total_hint(), Some(6));
    assert_eq!(traffic.next_start(), Some(at_us(6)));
    let map = traffic.pop().unwrap();
    assert_eq!((map.start, map.id.as_deref(), map.request), (at_us(6), Some("map"), 0));
    assert_eq!(traffic.next_start(), None);
    assert_eq!(
        traffic.blocked(),
        [
            "flow 'reduce' waits for flow 'map'",
            "entry 'incast' waits for entry 'shuffle'",
            "entry 'flows' waits for entry 'incast', flow 'map'",
            "entry 'shuffle' has 1 flow under way and more to come after completions",
        ]
    );
    traffic.on_complete(map.completion(at_us(20)));
    let reduce = traffic.pop().unwrap();
    assert_eq!((reduce.start, reduce.id.as_deref(), reduce.request, reduce.class), (at_us(23), Some("reduce"), 100, 0));
    assert_eq!(traffic.next_start(), None);
    traffic.on_complete(reduce.completion(at_us(50)));
    let incast: Vec<FlowSpec> = (0..3).map(|_| traffic.pop().unwrap()).collect();
    assert!(incast.iter().all(|flow| flow.start == at_us(52) && flow.class == 3 && flow.transport == 1 && flow.query == Some(0)));
    assert_eq!(traffic.queries().len(), 1);
    assert_eq!((traffic.queries()[0].responses, traffic.queries()[0].size, traffic.queries()[0].start), (3, 3000, at_us(52)));
    incast.iter().for_each(|flow| traffic.on_complete(flow.completion(at_us(60))));
    let last = traffic.pop().unwrap();
    assert_eq!(last.start, at_us(1000), "an entry does not begin before its own start");
    assert!(!traffic.is_complete());
    traffic.on_complete(last.completion(at_us(1001)));
    assert!(traffic.is_complete() && traffic.blocked().is_empty());
    assert_eq!(traffic.popped(), 6);
}

#[test]
fn a_released_flow_still_waits_for_its_own_start() {
    let text = |start: &str| {
        format!("[[traffic]]\nkind = \"flows\"\nflows = [{{ id = \"a\", src = \"h0\", dst = \"h1\", size = \"1B\" }}, {{ src = \"h0\", dst = \"h1\", size = \"1B\", after = [\"a\"], start = \"{start}\", delay = \"5us\" }}]")
    };
    let second = |start| run(&mut net(1, 2).build(&text(start)), Span::from_us(10))[1].start;
    assert_eq!((second("12us"), second("90us")), (at_us(15), at_us(90)));
}

#[test]
fn an_entry_that_turns_out_empty_releases_what_waits_for_it() {
    let text = r#"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", size = "1B" }]
        [[traffic]]
        kind = "poisson"
        per_second = 1000.0
        stop = "1us"
        sizes = "storage"
        after = ["flows"]
        [[traffic]]
        name = "last"
        kind = "flows"
        after = ["poisson"]
        flows = [{ src = "h0", dst = "h1", size = "7B" }]
    "#;
    let mut traffic = net(1, 4).build(text);
    let first = traffic.pop().unwrap();
    traffic.on_complete(first.completion(at_us(9)));
    let last = traffic.pop().unwrap();
    assert_eq!((last.size, last.start), (7, at_us(9)));
}

#[test]
fn rounds_of_an_incast_follow_the_clock_or_the_round_before() {
    let text = "[[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsize = \"1KB\"\nrepetitions = 3\n";
    let mut open = net(1, 3).build(&format!("{text}interval = \"100us\""));
    let starts: Vec<Time> = drain(&mut open).iter().map(|flow| flow.start).collect();
    assert_eq!(starts, [0, 0, 100, 100, 200, 200].map(at_us));
    let mut closed = net(1, 3).build(&format!("{text}gap = \"5us\""));
    let flows = run(&mut closed, Span::from_us(30));
    assert_eq!(flows.iter().map(|flow| flow.start).collect::<Vec<_>>(), [0, 0, 35, 35, 70, 70].map(at_us));
    assert_eq!(closed.queries().len(), 3);
    assert!(closed.is_complete());
    let mut stuck = net(1, 3).build(&format!("{text}gap = \"5us\""));
    stuck.pop();
    stuck.pop();
    assert_eq!(stuck.blocked(), ["entry 'incast' has 2 flows under way and more to come after completions"]);
}

#[test]
fn incast_divides_a_total_and_deals_flows_round_robin() {
    let text = "[[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\ntotal = \"1000B\"\nflows_per_sender = 2\nrequest = \"50B\"\n";
    let flows = net(1, 4).flows(text);
    assert_eq!(flows.iter().map(|f| f.size).collect::<Vec<_>>(), [167, 167, 167, 167, 166, 166]);
    assert_eq!(flows.iter().map(|f| f.src.0).collect::<Vec<_>>(), [1, 2, 3, 1, 2, 3]);
    assert!(flows.iter().all(|f| f.request == 50 && f.dst.0 == 0));
    let some = net(4, 8).flows(&format!("{text}count = 7"));
    let senders: BTreeSet<u32> = some.iter().map(|f| f.src.0).collect();
    assert_eq!((senders.len(), some.len()), (7, 14));
    assert!(!senders.contains(&0) && senders.iter().copied().ne(1..8), "chosen at random: {senders:?}");
}

#[test]
fn jitter_is_uniform_below_its_bound() {
    let text = "[[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsize = \"1KB\"\njitter = \"2ms\"\nrepetitions = 1000\ninterval = \"10ms\"\n";
    let delays: Vec<f64> = net(1, 5)
        .flows(text)
        .iter()
        .map(|f| (f.start.ps() % Span::from_ms(10).ps()) as f64 / Span::from_ms(2).ps() as f64)
        .collect();
    assert!(delays.iter().all(|d| *d < 1.0));
    let mean = delays.iter().sum::<f64>() / 4000.0;
    assert!((mean - 0.5).abs() < 3.3 * 0.2887 / libm::sqrt(4000.0), "{mean}");
}

#[test]
fn queries_choose_responders_and_aggregate_when_all_have_answered() {
    let text = r#"
        [[traffic]]
        kind = "query"
        clients = ["h0", "h1"]
        fanout = 3
        size = "2KB"
        per_second = 1000.0
        count = 200
        [traffic.aggregate]
        size = "5KB"
        to = ["h9", "h0"]
        delay = "7us"
    "#;
    let mut traffic = net(2, 6).build(text);
    assert_eq!(traffic.total_hint(), Some(800));
    let latency = Span::from_us(40);
    let flows = run(&mut traffic, latency);
    assert_eq!((flows.len(), traffic.queries().len()), (800, 200));
    assert!(traffic.is_complete());
    let mut responders = BTreeSet::new();
    for (number, query) in (0u32..).zip(traffic.queries()) {
        let of: Vec<&FlowSpec> = flows.iter().filter(|f| f.query == Some(number)).collect();
        let (answers, result) = of.split_at(3);
        let from: BTreeSet<u32> = answers.iter().map(|f| f.src.0).collect();
        assert!(from.len() == 3 && !from.contains(&query.client.0));
        assert!(answers.iter().all(|f| f.dst == query.client && f.start == query.start && f.size == 2000));
        responders.extend(from);
        assert_eq!(
            (result[0].src, result[0].size, result[0].start),
            (query.client, 5000, query.start + latency + Span::from_us(7))
        );
        assert!(result[0].dst != query.client && [0, 9].contains(&result[0].dst.0));
        assert_eq!((query.responses, query.size), (4, 11_000));
    }
    assert_eq!(responders.len(), 12, "every host answers some query");
}

#[test]
fn where_results_go_does_not_depend_on_the_network() {
    let text = "[[traffic]]\nkind = \"query\"\nclients = [\"h2\"]\nsize = \"2KB\"\nper_second = 1e4\ncount = 100\naggregate = { size = \"5KB\" }";
    let to = |latency| {
        let mut results: Vec<_> =
            run(&mut net(2, 6).build(text), latency).into_iter().filter(|f| f.size == 5000).map(|f| (f.index, f.dst)).collect();
        results.sort();
        results
    };
    assert_eq!(to(Span::from_us(10)).len(), 100);
    assert_eq!(to(Span::from_us(10)).iter().map(|(_, dst)| dst).collect::<BTreeSet<_>>().len(), 11, "drawn anew for each query");
    assert_eq!(to(Span::from_us(10)), to(Span::from_ms(50)));
}

#[test]
fn all_to_all_is_every_pair_once_in_rounds_that_are_permutations() {
    let flows = net(1, 5).flows("[[traffic]]\nkind = \"all_to_all\"\nsize = \"1KB\"\nstagger = \"10us\"");
    assert_eq!(flows.iter().map(|f| (f.src, f.dst)).collect::<BTreeSet<_>>().len(), 20);
    for (round, flows) in flows.chunks(5).enumerate() {
        assert!(flows.iter().all(|f| f.start == at_us(10 * round as u64) && f.src != f.dst));
        assert_eq!(flows.iter().map(|f| f.dst).collect::<BTreeSet<_>>().len(), 5);
    }
}

#[test]
fn host_sets_name_racks_ranges_and_exceptions() {
    let hosts = |set: &str| {
        let flows = net(3, 4).flows(&format!("[[traffic]]\nkind = \"all_to_all\"\nsize = \"1KB\"\nhosts = {set}"));
        flows.iter().map(|f| f.src.0).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(hosts(r#"["rack:1", "h9"]"#), [4, 5, 6, 7, 9]);
    assert_eq!(hosts(r#"["h2..h5", "!h3"]"#), [2, 4, 5]);
    assert_eq!(hosts(r#"["!rack:0", "!rack:2"]"#), [4, 5, 6, 7]);
}

#[test]
fn datagram_flows_carry_their_specification() {
    let text = "[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"4Gbps\"\ncounts = \"wire\"\nstart = \"3us\"\nsize = \"1MB\"";
    let flows = net(1, 2).until_ms(1).flows(text);
    let [flow] = &flows[..] else { panic!("{flows:?}") };
    let FlowKind::Datagrams(spec) = &flow.kind else { panic!() };
    assert_eq!((flow.start, flow.size, spec.until, spec.on), (at_us(3), 1_000_000, at_us(1000), None));
}

#[test]
fn circles_of_waiting_are_refused() {
    let problems = net(1, 4).problems(
        r#"
        [[traffic]]
        name = "a"
        kind = "permutation"
        size = "1KB"
        after = ["b"]
        [[traffic]]
        name = "b"
        kind = "flows"
        flows = [{ id = "x", src = "h0", dst = "h1", size = "1B", after = ["y"] }, { id = "y", src = "h0", dst = "h1", size = "1B", after = ["a"] }]
        [[traffic]]
        name = "free"
        kind = "permutation"
        size = "1KB"
    "#,
    );
    assert_problem(
        &problems,
        "traffic[0].after: makes a dependency cycle: entry 'a', flow 'x', flow 'y' could never start; accepted: no cycles",
    );
    let own = net(1, 4).problems(
        "[[traffic]]\nname = \"a\"\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1B\", after = [\"a\"] }]",
    );
    assert_problem(&own, "makes a dependency cycle: flow 0 of 'a'");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever the network does, starts never fall, everything that is asked for starts, and nothing starts before what it waits for.
    #[test]
    fn dependencies_hold_under_any_latency(latency_us in 1u64..3000, seed in 0u64..1000) {
        let text = format!("{MIXED}\n{}", CHAIN.replace("\"incast\", \"map\"", "\"incast-2\", \"map\""));
        let mut traffic = net(4, 4).seed(seed).until_ms(1).build(&text);
        let flows = run(&mut traffic, Span::from_us(latency_us));
        prop_assert!(traffic.is_complete() && traffic.blocked().is_empty());
        prop_assert_eq!(flows.len() as u64, traffic.popped());
        let by_id = |id: &str| flows.iter().find(|f| f.id.as_deref() == Some(id)).unwrap().start;
        prop_assert_eq!(by_id("reduce"), by_id("map") + Span::from_us(latency_us + 3));
        let last = flows.iter().find(|f| f.entry == 8).unwrap().start;
        let expected = by_id("reduce") + Span::from_us(2 * latency_us + 2);
        prop_assert_eq!(last, expected.max(at_us(1000)));
    }

    /// A permutation: everybody sends once, receives once, never from itself.
    #[test]
    fn a_permutation_is_a_derangement(racks in 1u32..6, per_rack in 2u32..9, seed in any::<u64>()) {
        let flows = net(racks, per_rack).seed(seed).flows("[[traffic]]\nkind = \"permutation\"\nsize = \"2MB\"");
        let n = (racks * per_rack) as usize;
        prop_assert_eq!(flows.len(), n);
        prop_assert!(flows.iter().all(|f| f.src != f.dst && f.size == 2_000_000));
        prop_assert_eq!(flows.iter().map(|f| f.src).collect::<BTreeSet<_>>().len(), n);
        prop_assert_eq!(flows.iter().map(|f| f.dst).collect::<BTreeSet<_>>().len(), n);
    }
}

#[test]
fn all_derangements_are_equally_likely() {
    let mut counts = std::collections::BTreeMap::new();
    for seed in 0..9000 {
        let flows = net(1, 4).seed(seed).flows("[[traffic]]\nkind = \"permutation\"\nsize = \"1B\"");
        *counts.entry(flows.iter().map(|f| f.dst.0).collect::<Vec<_>>()).or_insert(0u32) += 1;
    }
    assert_eq!(counts.len(), 9, "there are 9 derangements of 4");
    // χ² with 8 degrees of freedom: 26.1 is exceeded with probability 0.001.
    let chi: f64 = counts.values().map(|c| (f64::from(*c) - 1000.0) * (f64::from(*c) - 1000.0) / 1000.0).sum();
    assert!(chi < 26.1, "{chi}: {counts:?}");
}

#[test]
fn no_parameter_is_without_effect() {
    let bases = [
        ("poisson", "load = 0.5\nsizes = \"hadoop\"\n"),
        ("hot_spot", "load = 0.5\nsizes = \"hadoop\"\n"),
        ("query", "load = 0.2\nsize = \"5KB\"\n"),
        ("incast", "receiver = \"h0\"\nsize = \"5KB\"\n"),
        ("permutation", "size = \"5KB\"\n"),
        ("all_to_all", "size = \"5KB\"\n"),
        ("cbr", "src = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"\n"),
        ("on_off", "src = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"\non = \"10us\"\noff = \"20us\"\n"),
    ];
    // One other value of every optional key; a key that is not listed here fails the test below.
    let others = [
        ("sources", "[\"rack:0\"]"),
        ("destinations", "[\"rack:0\"]"),
        ("intra_rack", "0.1"),
        ("request", "\"50B\""),
        ("load_of", "\"core\""),
        ("stop", "\"500us\""),
        ("count", "3"),
        ("hot", "[\"h2\"]"),
        ("hot_hosts", "0.5"),
        ("fraction", "0.9"),
        ("clients", "[\"h2\"]"),
        ("responders", "[\"rack:0\"]"),
        ("fanout", "2"),
        ("jitter", "\"10us\""),
        ("aggregate", "{ size = \"1KB\" }"),
        ("senders", "[\"rack:0\"]"),
        ("flows_per_sender", "2"),
        ("repetitions", "2\ninterval = \"5us\""),
        ("interval", "\"7us\"\nrepetitions = 2"),
        ("gap", "\"7us\"\nrepetitions = 2"),
        ("hosts", "[\"rack:0\"]"),
        ("stagger", "\"5us\""),
        ("counts", "\"wire\""),
        ("packet", "\"500B\""),
        ("size", "\"9KB\""),
        ("exponential", "true"),
        ("class", "3"),
        ("transport", "\"cubic\""),
        ("start", "\"3us\""),
        ("name", "\"another\""),
        // Instead of what the base says.
        ("total", "\"70KB\""),
        ("per_second", "5000.0"),
        ("after", "[\"first\"]"),
        ("delay", "\"3us\"\nafter = [\"first\"]"),
    ];
    let net = net(2, 4).until_ms(1);
    let first = "[[traffic]]\nname = \"first\"\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h7\", size = \"1B\" }]\n";
    let flows = |kind: &str, text: &str| {
        let mut traffic = net.build(&format!("{first}[[traffic]]\nkind = \"{kind}\"\n{text}"));
        let flows = run(&mut traffic, Span::from_us(30));
        (flows, traffic.queries().len(), traffic.entry_names().map(String::from).collect::<Vec<_>>())
    };
    let fanin_params::Schema::Choice(schema) = <fanin_traffic::Entry as fanin_params::Param>::schema() else { panic!() };
    for (kind, base) in bases {
        let before = flows(kind, base);
        let variant = schema.variants.iter().find(|variant| variant.kind == kind).unwrap();
        for field in &variant.body.fields {
            let key = field.name;
            if field.default.is_none() || (key == "transport" && ["cbr", "on_off"].contains(&kind)) {
                continue; // must be given, so it is in the base; or is refused (refusals.rs)
            }
            if base.contains(&format!("{key} =")) && key != "size" {
                continue; // given by the base
            }
            let (_, value) =
                others.iter().find(|(other, _)| *other == key).unwrap_or_else(|| panic!("{kind}.{key} is not tested"));
            let replaced = match key {
                "total" | "size" => base.lines().filter(|line| !line.starts_with("size")).collect::<Vec<_>>().join("\n"),
                "per_second" => base.lines().filter(|line| !line.starts_with("load")).collect::<Vec<_>>().join("\n"),
                _ => base.to_string(),
            };
            let after = flows(kind, &format!("{replaced}\n{key} = {value}"));
            assert_ne!(before, after, "{kind}.{key} has no effect");
        }
    }
}

#[test]
fn traffic_can_move_to_another_thread() {
    let mut traffic = net(1, 4).build(CHAIN);
    let first = std::thread::spawn(move || traffic.pop()).join().unwrap();
    assert_eq!(first.unwrap().id.as_deref(), Some("map"));
}
