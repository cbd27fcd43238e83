use crate::config::*;
use crate::draft::Findings;
use crate::import::{parse, Defaults};
use crate::*;
use fanin_params::{Cx, Node as Doc, Param, Problem, Value};
use fanin_units::{BitRate, Bytes, HostId, LinkId, NodeId, Span};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

/// A network of a family with some keys set, as a scenario would.
fn config(kind: &str, keys: &[(&str, Value)]) -> TopologyConfig {
    let mut entries = vec![("kind".to_string(), Doc::from(Value::Text(kind.into())))];
    entries.extend(keys.iter().map(|(k, v)| (k.to_string(), Doc::from(v.clone()))));
    let mut cx = Cx::new();
    let parsed = TopologyConfig::parse(&Value::Table(entries).into(), &mut cx);
    assert!(!cx.failed(), "{:?}", cx.into_problems());
    parsed.unwrap()
}

fn build(kind: &str, keys: &[(&str, Value)]) -> Topology {
    Topology::build(&config(kind, keys), Path::new(".")).unwrap()
}

fn text(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn refused(kind: &str, keys: &[(&str, Value)]) -> String {
    text(&Topology::build(&config(kind, keys), Path::new(".")).unwrap_err())
}

fn int(n: u32) -> Value {
    Value::Int(i64::from(n))
}

/// What holds of every network: both directions alike, hosts with one link, groups that lead nearer and nowhere else.
fn check_invariants(t: &Topology) {
    for (i, link) in t.links.iter().enumerate() {
        let back = t.link(link.reverse);
        assert_eq!(
            (back.from, back.to, back.rate, back.delay, back.reverse),
            (link.to, link.from, link.rate, link.delay, LinkId(i as u32))
        );
        assert_eq!(t.find_link(&t.link_name(LinkId(i as u32))), Some(LinkId(i as u32)));
    }
    let names: BTreeSet<_> = (0..t.links.len() as u32).map(|l| t.link_name(LinkId(l))).collect();
    assert_eq!(names.len(), t.links.len(), "names of links are unique");
    for (h, node) in t.hosts.iter().enumerate() {
        assert_eq!((t.out_links(*node).len(), t.host_id(*node)), (1, Some(HostId(h as u32))));
        assert_eq!(t.host(&t.nodes[node.index()].name), Some(HostId(h as u32)));
    }
    let routes = Routes::shortest(t).unwrap();
    let switches: Vec<_> = (t.hosts.len()..t.nodes.len()).map(|n| NodeId(n as u32)).collect();
    for host in (0..t.hosts.len() as u32).map(HostId) {
        for switch in &switches {
            let hops = routes.next_hops(*switch, host);
            assert!(!hops.is_empty() && hops.windows(2).all(|w| w[0] < w[1]));
            assert!(hops.iter().all(|l| t.link(*l).from == *switch));
            assert_eq!(hops, nearer(t, *switch, host), "all links that lead nearer, and no others");
        }
        let path = routes.path(t, HostId(0), host, |_, n| n - 1);
        assert_eq!(path.last().map(|l| t.link(*l).to), (host.0 > 0).then(|| t.hosts[host.index()]));
    }
}

/// The links of a switch that lead one step nearer to a host, by a search of their own.
fn nearer(t: &Topology, switch: NodeId, host: HostId) -> Vec<LinkId> {
    let mut distance = vec![usize::MAX; t.nodes.len()];
    let mut reached = vec![t.hosts[host.index()]];
    distance[reached[0].index()] = 0;
    for at in 0.. {
        let Some(node) = reached.get(at).copied() else { break };
        for next in t.out_links(node).iter().map(|l| t.link(*l).to) {
            // No host forwards; each has one link.
            if distance[next.index()] == usize::MAX {
                distance[next.index()] = distance[node.index()] + 1;
                reached.push(next);
            }
        }
    }
    let leads = |l: &LinkId| distance[t.link(*l).to.index()] + 1 == distance[switch.index()];
    t.out_links(switch).iter().copied().filter(leads).collect()
}

fn host_pair(t: &Topology, a: &str, b: &str) -> (HostId, HostId) {
    (t.host(a).unwrap(), t.host(b).unwrap())
}

#[test]
fn fat_trees_have_the_counts_and_paths_of_their_formulas() {
    for k in [2u32, 4, 6, 8] {
        let t = build("fat_tree", &[("k", int(k))]);
        let half = (k / 2) as usize;
        assert_eq!(t.hosts.len(), (k * k * k / 4) as usize);
        assert_eq!(t.switch_count(), (5 * k * k / 4) as usize);
        assert_eq!(t.links.len(), 2 * 3 * (k * k * k / 4) as usize);
        check_invariants(&t);
        for switch in t.hosts.len()..t.nodes.len() {
            assert_eq!(t.out_links(fanin_units::NodeId(switch as u32)).len(), k as usize);
        }
        let layers = |layer| t.nodes.iter().filter(|n| n.kind == NodeKind::Switch { layer }).count();
        assert_eq!([layers(0), layers(1), layers(2)], [k as usize * half, k as usize * half, half * half]);

        let routes = Routes::shortest(&t).unwrap();
        let last = HostId(t.hosts.len() as u32 - 1);
        assert_eq!(routes.longest(), 5);
        assert_eq!((routes.path_count(&t, HostId(0), last), routes.hops(&t, HostId(0), last)), ((half * half) as u64, 6));
        if half > 1 {
            let same_pod = HostId(half as u32);
            assert_eq!((routes.path_count(&t, HostId(0), same_pod), routes.hops(&t, HostId(0), same_pod)), (half as u64, 4));
            assert_eq!((routes.path_count(&t, HostId(0), HostId(1)), routes.hops(&t, HostId(0), HostId(1))), (1, 2));
        }
    }
}

#[test]
fn the_tables_of_a_1024_host_fat_tree_are_small() {
    let t = build("fat_tree", &[("k", int(16))]);
    let routes = Routes::shortest(&t).unwrap();
    assert_eq!((t.hosts.len(), t.switch_count(), routes.attachments()), (1024, 320, 128));
    assert!(routes.bytes() < 130_000, "{}", routes.bytes());
}

#[test]
fn leaf_spines_have_full_mesh_and_the_oversubscription_that_was_asked_for() {
    let t = build("leaf_spine", &[]);
    assert_eq!((t.hosts.len(), t.switch_count(), t.links.len()), (144, 13, 2 * (144 + 36)));
    check_invariants(&t);
    let TopologyConfig::LeafSpine(c) = config("leaf_spine", &[("oversubscription", Value::Float(4.0))]) else { panic!() };
    let down = f64::from(c.hosts_per_leaf) * c.host_link.rate.bps() as f64;
    assert_eq!((c.spine_count(), down / (f64::from(c.links_per_pair) * c.uplink.rate.bps() as f64)), (Ok(1), 4.0));
    let t =
        build("leaf_spine", &[("leaves", int(3)), ("hosts_per_leaf", int(2)), ("spines", int(2)), ("links_per_pair", int(2))]);
    assert_eq!((t.switch_count(), t.links.len()), (5, 2 * (6 + 12)));
    check_invariants(&t);
    let routes = Routes::shortest(&t).unwrap();
    // Two links up, times two spines, times two links down.
    assert_eq!((routes.path_count(&t, HostId(0), HostId(5)), routes.hops(&t, HostId(0), HostId(5))), (8, 4));
    assert!(t.find_link("leaf0->spine1").is_some() && t.find_link("leaf0->spine1#1").is_some());
    assert_eq!(t.find_link("leaf0->spine1#2"), None);
}

#[test]
fn an_impossible_oversubscription_is_refused_with_the_possible_ones() {
    let message = refused("leaf_spine", &[("oversubscription", Value::Float(3.0))]);
    assert!(
        message.contains("topology.oversubscription: is 3: it asks for 1.333 spines; accepted: 4 (1 spines), 2 (2 spines)"),
        "{message}"
    );
    let message = refused("leaf_spine", &[("oversubscription", Value::Float(3.0)), ("spines", int(2))]);
    assert!(message.contains("is 3, but 2 spines make it 2.0000"), "{message}");
}

#[test]
fn the_racks_are_the_testbed_of_the_paper() {
    let t = build("racks", &[]);
    assert_eq!((t.hosts.len(), t.switch_count(), t.links.len()), (12, 5, 2 * 16));
    check_invariants(&t);
    let routes = Routes::shortest(&t).unwrap();
    let (a, b) = host_pair(&t, "h0", "h11");
    assert_eq!(routes.hops(&t, a, b), 4);
    // A round trip of 84-byte frames without queueing: about 50 us (8 links of 5 us and 672 ns each).
    let rtt = routes.min_rtt(&t, [a, b], [Bytes(84); 2], Span::ZERO);
    assert_eq!(rtt, Span::from_ns(8 * (5_000 + 672)));
    assert!(t.links.iter().all(|l| l.rate == BitRate::from_gbps(1)));
    assert!(t.find_link("root->tor3").is_some() && t.host("root").is_none());
}

#[test]
fn single_switch_dumbbell_and_chain_have_their_shapes() {
    let t = build("single_switch", &[("hosts", int(41))]);
    assert_eq!((t.hosts.len(), t.switch_count(), t.links.len()), (41, 1, 82));
    check_invariants(&t);
    let t = build("dumbbell", &[("left", int(3)), ("right", int(2))]);
    assert_eq!((t.hosts.len(), t.switch_count(), t.links.len()), (5, 2, 12));
    assert_eq!(t.nodes[t.attachment(HostId(2)).index()].name, "left");
    assert_eq!(t.nodes[t.attachment(HostId(3)).index()].name, "right");
    check_invariants(&t);
    let t = build("chain", &[]);
    assert_eq!((t.hosts.len(), t.switch_count(), t.links.len()), (2, 5, 12));
    let routes = Routes::shortest(&t).unwrap();
    assert_eq!((routes.hops(&t, HostId(0), HostId(1)), routes.longest()), (6, 5));
    check_invariants(&t);
}

#[test]
fn transit_adds_propagation_serialisation_and_latency_and_takes_the_fastest_path() {
    let t = build("dumbbell", &[("left", int(1)), ("right", int(1))]);
    let routes = Routes::shortest(&t).unwrap();
    let transit = routes.transit(&t, HostId(0), HostId(1), Bytes(1538), Span::from_ns(500));
    assert_eq!(transit, Span::from_ps(3 * (1_000_000 + 1_230_400) + 2 * 500_000));
    assert_eq!(routes.transit(&t, HostId(0), HostId(0), Bytes(1538), Span::ZERO), Span::ZERO);
    let diamond = r#"{"links": [
        {"a": "x", "b": "p", "rate": "1Gbps", "delay": "1us"}, {"a": "y", "b": "q", "rate": "1Gbps", "delay": "1us"},
        {"a": "p", "b": "s", "rate": "1Gbps", "delay": "9us"}, {"a": "s", "b": "q", "rate": "1Gbps", "delay": "1us"},
        {"a": "p", "b": "r", "rate": "1Gbps", "delay": "2us"}, {"a": "r", "b": "q", "rate": "1Gbps", "delay": "3us"}]}"#;
    let t = import(FileFormat::EdgeList, diamond).unwrap();
    let routes = Routes::shortest(&t).unwrap();
    assert_eq!(routes.path_count(&t, HostId(0), HostId(1)), 2);
    assert_eq!(routes.transit(&t, HostId(0), HostId(1), Bytes(0), Span::ZERO), Span::from_us(7));
}

#[test]
fn odd_k_and_a_single_host_are_refused() {
    assert!(refused("fat_tree", &[("k", int(5))]).contains("topology.k: is 5: odd; accepted: an even number, such as 4 or 6"));
    assert!(refused("racks", &[("racks", int(1)), ("hosts_per_rack", int(1))]).contains("has one host"));
}

fn import(format: FileFormat, text: &str) -> Result<Topology, Vec<Problem>> {
    parse(format, text, Defaults { rate: None, delay: None }, Findings::of("net"))
}

fn import_errors(format: FileFormat, source: &str) -> String {
    text(&import(format, source).unwrap_err())
}

fn circle(t: &Topology) -> Option<Vec<String>> {
    Some(Routes::shortest(t).unwrap().circle(t)?.into_iter().map(|link| t.link_name(link)).collect())
}

#[test]
fn networks_of_up_and_down_have_no_circle_of_links() {
    for t in [
        build("fat_tree", &[("k", int(4))]),
        build("leaf_spine", &[("leaves", int(3))]),
        build("chain", &[]),
        build("dumbbell", &[]),
    ] {
        assert_eq!(circle(&t), None);
    }
}

/// In a ring of three all send to their neighbours alone; in one of five the packets of each link go on over the next.
#[test]
fn a_ring_of_five_switches_is_a_circle_of_links() {
    let ring = |n: usize| {
        let link = |a: String, b: String| format!("{{\"a\": \"{a}\", \"b\": \"{b}\", \"rate\": \"10Gbps\", \"delay\": \"1us\"}}");
        let of = |i| [link(format!("h{i}"), format!("s{i}")), link(format!("s{i}"), format!("s{}", (i + 1) % n))];
        let links: Vec<String> = (0..n).flat_map(of).collect();
        import(FileFormat::EdgeList, &format!("{{\"links\": [{}]}}", links.join(", "))).unwrap()
    };
    assert_eq!(circle(&ring(3)), None);
    let found = circle(&ring(5)).unwrap();
    assert_eq!(found.len(), 5, "{found:?}");
    let ends: Vec<(&str, &str)> = found.iter().map(|name| name.split_once("->").unwrap()).collect();
    assert!((0..5).all(|i| ends[i].1 == ends[(i + 1) % 5].0), "{found:?}");
}

const HPCC: &str = "5 2 4\n3 4\n0 3 100Gbps 1000ns 0.000000\n1 3 100Gbps 0.001ms 0\n2 4 25Gbps 1us 0\n3 4 400Gbps 1us 0\n";

#[test]
fn hpcc_files_are_read_and_what_follows_the_last_link_is_passed_over() {
    let t = import(FileFormat::Hpcc, &format!("{HPCC}\nFirst line: total node #, switch node #, link #\n")).unwrap();
    assert_eq!((t.hosts.len(), t.switch_count(), t.links.len(), t.warnings.len()), (3, 2, 8, 0));
    assert_eq!(t.link(t.find_link("3->1").unwrap()).delay, Span::from_us(1));
    assert_eq!(t.link(t.find_link("4->2").unwrap()).rate, BitRate::from_gbps(25));
    check_invariants(&t);
    let t = import(FileFormat::Hpcc, &format!("{HPCC}0 4 100Gbps 1us 0\n")).unwrap();
    assert!(text(&t.warnings).contains("net, line 7: is a link beyond the 4 that the first line announces"));
}

#[test]
fn every_problem_of_an_hpcc_file_is_named_with_its_line() {
    let found = import_errors(
        FileFormat::Hpcc,
        "5 2 5\n3 4\n0 3 100Gbs 1000ns 0\n1 9 100Gbps 1 0.01\n2 2 25Gbps 1us 0\n3 4 0Gbps 1us 0\n3 4 25Gbps\n",
    );
    for expected in [
        "net, line 3: \"100Gbs\" is no rate: it has the unknown unit 'Gbs'",
        "net, line 4: \"9\" is no node; accepted: an integer from 0 to 4",
        "net, line 4: \"1\" is no delay: it has no unit",
        "net, line 4: \"0.01\" is an error rate of packets, which this import leaves out; accepted: 0, and [[events]] with kind = \"bit_errors\" for links that corrupt",
        "net, line 5: \"2\" is linked to itself",
        "net, line 6: 0bps is a rate of zero",
        "net, line 7: has 3 words",
    ] {
        assert!(found.contains(expected), "{expected}\n--\n{found}");
    }
    for (source, expected) in [
        ("", "is empty"),
        ("5 2\n", "line 1: has 2 words; accepted: three counts"),
        ("4000000000 1 2\n0\n", "\"4000000000\" is no count; accepted: an integer from 0 to 1000000"),
        ("900000 1 2\n0\n", "some node must be unconnected"),
        ("3 1 2\n0\n0 1 1Gbps 1us 0\n", "ends after 1 of 2 links"),
        ("3 4 3\n0\n", "counts 4 switches among 3 nodes"),
        ("3 2 2\n0 0\n0 1 1Gbps 1us 0\n0 2 1Gbps 1us 0\n", "\"0\" is listed as a switch twice"),
        ("3 2 2\n0\n", "ends after 1 of 2 switch ids"),
    ] {
        assert!(
            import_errors(FileFormat::Hpcc, source).contains(expected),
            "{expected}\n--\n{}",
            import_errors(FileFormat::Hpcc, source)
        );
    }
}

#[test]
fn rates_that_no_port_counts_are_refused_wherever_they_come_from() {
    let hpcc = |rate: &str| format!("3 1 2\n2\n0 2 {rate} 1us 0\n1 2 1Gbps 1us 0\n");
    let list = |rate: &str| {
        format!(
            r#"{{"links": [{{"a": "x", "b": "s", "rate": "{rate}", "delay": "1us"}}, {{"a": "y", "b": "s", "rate": "1Gbps", "delay": "1us"}}]}}"#
        )
    };
    let graph = |rate: &str| {
        format!(
            r#"<graphml><key id="r" for="edge" attr.name="rate" attr.type="string"/><key id="d" for="edge" attr.name="delay" attr.type="string"><default>1us</default></key>
<graph edgedefault="undirected"><node id="x"/><node id="y"/><node id="s"/>
<edge source="x" target="s"><data key="r">{rate}</data></edge><edge source="y" target="s"><data key="r">1Gbps</data></edge></graph></graphml>"#
        )
    };
    type Source<'a> = (FileFormat, &'a dyn Fn(&str) -> String);
    let sources: [Source; 3] = [(FileFormat::Hpcc, &hpcc), (FileFormat::EdgeList, &list), (FileFormat::Graphml, &graph)];
    for (format, source) in sources {
        let refused = |rate: &str| import_errors(format, &source(rate));
        assert!(refused("1500bps").contains("is not a multiple of 1Kbps; accepted: a multiple of 1Kbps, at most 4Tbps"));
        assert!(refused("4.3Tbps").contains("is too fast; accepted: a rate of at most 4Tbps"));
        assert!(refused("999bps").contains("is too slow"));
        for sound in ["1Kbps", "4Tbps", "1001Kbps"] {
            assert!(import(format, &source(sound)).is_ok(), "{sound}");
        }
    }
    let odd = LinkParams { rate: BitRate(1_000_001), delay: Span::from_us(1), wire_overhead: None };
    let found = Topology::build(&TopologyConfig::Chain(Chain { switches: 2, link: odd }), Path::new(".")).unwrap_err();
    assert_eq!(
        text(&found).trim_end(),
        "topology.link.rate: \"1000001bps\" is not a multiple of 1Kbps; accepted: a multiple of 1Kbps, at most 4Tbps"
    );
}

#[test]
fn edge_lists_are_read_with_kinds_given_or_inferred() {
    let source = r#"{"nodes": [{"id": "s"}, {"id": "z", "kind": "host"}],
        "links": [{"a": "z", "b": "s", "rate": "10Gbps", "delay": "1us"}, {"a": "s", "b": "y"}]}"#;
    let defaults = Defaults { rate: Some(BitRate::from_gbps(40)), delay: Some(Span::from_us(2)) };
    let t = parse(FileFormat::EdgeList, source, defaults, Findings::of("net")).unwrap();
    assert_eq!((t.host_name(HostId(0)), t.host_name(HostId(1)), t.switch_count()), ("z", "y", 1));
    let link = t.link(t.find_link("y->s").unwrap());
    assert_eq!((link.rate, link.delay), (BitRate::from_gbps(40), Span::from_us(2)));
    check_invariants(&t);
}

#[test]
fn every_problem_of_an_edge_list_is_named_with_its_line() {
    let found = import_errors(
        FileFormat::EdgeList,
        "{\"nodes\": [{\"id\": \"a\"},\n {\"id\": \"a\"},\n {\"id\": \"b\", \"kin\": \"host\"}],\n\"links\": [\n{\"a\": \"a\", \"b\": \"s\", \"rate\": 10, \"delay\": \"1us\"}]}",
    );
    for expected in [
        "net: nodes[2].kin, line 3: \"kin\" is not a known key; accepted: id, kind; did you mean 'kind'?",
        "net: links[0].rate, line 5: 10 has no unit",
    ] {
        assert!(found.contains(expected), "{expected}\n--\n{found}");
    }
    for (source, expected) in [
        ("{\"links\": [\n{\"a\": \"a\",\n}]}", "net, line 3: cannot be read"),
        ("{\"links\": null}", "net, line 1: cannot be read: a null"),
        ("{\"links\": [], \"links\": []}", "the key \"links\" is given twice"),
        ("{\"links\": []}", "has 0 hosts"),
        (
            "{\"nodes\": [{\"id\": \"a\"},\n{\"id\": \"a\"}], \"links\": []}",
            "net, line 2: \"a\" is also the id of another node in line 1",
        ),
        ("{\"nodes\": [{\"id\": \"a b\"}], \"links\": []}", "\"a b\" cannot be a node's id"),
        (
            "{\"links\": [{\"a\": \"a\", \"b\": \"s\", \"delay\": \"1us\"}]}",
            "line 1: has a link without rate; accepted: the key \"rate\" here",
        ),
        (
            "{\"links\": [{\"a\": \"a\", \"b\": \"b\", \"rate\": \"1Gbps\", \"delay\": \"1us\"}]}",
            "\"a\" -- \"b\" joins two hosts",
        ),
        ("{\"links\": [{\"a\": \"a\", \"b\": \"b\", \"rate\": \"1Gbps\", \"delay\": \"1h\"}]}", "has the unknown unit 'h'"),
        (
            "{\"links\": [{\"a\": \"a\", \"b\": \"b\", \"rate\": \"1Gbps\", \"delay\": \"20s\"}]}",
            "20s is too long; accepted: a delay of at most 10s",
        ),
    ] {
        assert!(
            import_errors(FileFormat::EdgeList, source).contains(expected),
            "{expected}\n--\n{}",
            import_errors(FileFormat::EdgeList, source)
        );
    }
}

fn edges(list: &[(&str, &str)]) -> String {
    let links: Vec<String> =
        list.iter().map(|(a, b)| format!("{{\"a\":\"{a}\",\"b\":\"{b}\",\"rate\":\"1Gbps\",\"delay\":\"1us\"}}")).collect();
    links.join(",")
}

#[test]
fn networks_with_holes_are_refused() {
    let two_parts = format!("{{\"links\": [{}]}}", edges(&[("a", "s"), ("b", "s"), ("c", "s"), ("x", "t"), ("y", "t")]));
    let found = import_errors(FileFormat::EdgeList, &two_parts);
    assert_eq!(found.lines().count(), 3, "{found}");
    assert!(found.contains("\"t\" is a switch that cannot be reached: the network has 2 unconnected parts"), "{found}");
    let lonely =
        format!("{{\"nodes\": [{{\"id\": \"q\", \"kind\": \"host\"}}], \"links\": [{}]}}", edges(&[("a", "s"), ("b", "s")]));
    assert!(
        import_errors(FileFormat::EdgeList, &lonely).contains("\"q\" is a host without a link; accepted: a connected network")
    );
    let two_links = format!(
        "{{\"nodes\": [{{\"id\": \"a\", \"kind\": \"host\"}}], \"links\": [{}]}}",
        edges(&[("a", "s"), ("a", "s"), ("b", "s")])
    );
    assert!(import_errors(FileFormat::EdgeList, &two_links)
        .contains("\"a\" is a host with 2 links; accepted: one link per host, to a switch"));
}

const GRAPHML: &str = r#"<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="edge" attr.name="rate" attr.type="string"><default>10Gbps</default></key>
  <key id="d1" for="edge" attr.name="delay_ns" attr.type="double"/>
  <key id="d2" for="node" attr.name="kind" attr.type="string"/>
  <key id="d3" for="node" attr.name="label" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="a"><data key="d3">Athens</data></node><node id="b"/><node id="s"><data key="d2">switch</data></node>
    <edge source="a" target="s"><data key="d1">1500</data></edge>
    <edge source="b" target="s"><data key="d0">25Gbps</data><data key="d1">2e</data></edge>
  </graph>
</graphml>"#;

#[test]
fn graphml_is_read_with_attributes_and_their_defaults() {
    let t = import(FileFormat::Graphml, &GRAPHML.replace("2e", "0.5")).unwrap();
    let link = |name| *t.link(t.find_link(name).unwrap());
    assert_eq!((link("a->s").rate, link("a->s").delay), (BitRate::from_gbps(10), Span::from_ns(1500)));
    assert_eq!((link("s->b").rate, link("s->b").delay), (BitRate::from_gbps(25), Span::from_ps(500)));
    check_invariants(&t);
}

#[test]
fn every_problem_of_a_graphml_file_is_named_with_its_line() {
    for (from, to, expected) in [
        ("", "", "net, line 10: \"2ens\" is no delay_ns: it has the unknown unit 'ens'"),
        ("undirected", "directed", "net, line 7: \"directed\" is the graph's edgedefault"),
        ("target=\"s\"", "target=\"q\"", "net, line 9: \"q\" is the target of an edge but no node"),
        ("<node id=\"b\"/>", "<node id=\"a\"/>", "net, line 8: \"a\" is also the id of another node in line 8"),
        ("switch<", "router<", "net, line 8: \"router\" is not a kind of node; accepted: host, switch"),
        ("delay_ns", "latency", "net, line 9: has an edge without delay; accepted: one of delay, delay_ns"),
        ("<graph ", "<graph><graph/></graph><graph ", "has 2 graphs; accepted: one graph"),
        ("<?xml version=\"1.0\"?>", "<!DOCTYPE g [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>", "net, line 1: cannot be read: "),
        ("</graphml>", "", "cannot be read: "),
        ("<node id=\"b\"/>", "<node id=\"b\"/><hyperedge/>", "line 8: \"hyperedge\" is an unsupported element"),
    ] {
        let found = import_errors(FileFormat::Graphml, &GRAPHML.replace(from, to));
        assert!(found.contains(expected), "{expected}\n--\n{found}");
    }
}

#[test]
fn a_document_that_nests_without_end_is_refused_not_followed() {
    let deep = "<a>".repeat(5_000_000);
    assert!(import_errors(FileFormat::Graphml, &deep).contains("nested too deep"));
    let deep = format!("{{\"links\": {}{}}}", "[".repeat(5_000_000), "]".repeat(5_000_000));
    assert!(import_errors(FileFormat::EdgeList, &deep).contains("net, line 1: cannot be read: it nests deeper than 16 levels"));
}

#[test]
fn documents_of_unreasonable_breadth_are_refused_in_reasonable_time() {
    let wide = format!("{{\"links\": [{}0]}}", "0,".repeat(5_000_000));
    assert!(import_errors(FileFormat::EdgeList, &wide).contains("it has more than 4000000 values"));
    let attributes: String = (0..300_000).map(|i| format!(" a{i} = '>'")).collect();
    assert!(import_errors(FileFormat::Graphml, &format!("<graphml{attributes}/>"))
        .contains("has an element with too many attributes"));
}

#[test]
fn a_thousand_problems_are_cut_to_a_hundred_and_a_count() {
    let links: String = (0..1_000).map(|_| "0 0 1Gbps 1us 0\n").collect();
    let found = import(FileFormat::Hpcc, &format!("3 1 1000\n0\n{links}")).unwrap_err();
    assert_eq!(found.len(), 101);
    assert!(found[100].message.contains("has 900 more problems"));
}

#[test]
fn files_are_found_by_path_and_their_problems_named() {
    let file = |path: &str| config("file", &[("path", Value::Text(path.into()))]);
    let missing = text(&Topology::build(&file("no/such.json"), Path::new("/tmp")).unwrap_err());
    assert!(
        missing.contains("no/such.json: cannot be read: No such file or directory") && missing.contains("/tmp/no/such.json"),
        "{missing}"
    );
    let unknown = text(&Topology::build(&file("net.xyz"), Path::new("/tmp")).unwrap_err());
    assert!(unknown.contains("does not indicate its format; accepted: a file ending in .graphml, .json or .txt"), "{unknown}");
    let folder = text(
        &Topology::build(
            &config("file", &[("path", Value::Text(".".into())), ("format", Value::Text("hpcc".into()))]),
            Path::new("/tmp"),
        )
        .unwrap_err(),
    );
    assert!(folder.contains("is not a regular file"), "{folder}");
    let dir = std::env::temp_dir().join(format!("fanin-topology-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("net.txt"), HPCC).unwrap();
    std::fs::write(dir.join("bad.txt"), b"5 2 \xff").unwrap();
    assert_eq!(Topology::build(&file("net.txt"), &dir).unwrap().hosts.len(), 3);
    assert!(
        text(&Topology::build(&file("bad.txt"), &dir).unwrap_err()).contains("bad.txt: is not UTF-8 text: the byte at 4 is not")
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn every_family_is_documented_and_has_a_shape_by_default() {
    for kind in TopologyConfig::KINDS.iter().filter(|k| **k != "file") {
        let t = build(kind, &[]);
        assert!(t.hosts.len() >= 2 && t.warnings.is_empty());
    }
    let fanin_params::Schema::Choice(schema) = TopologyConfig::schema() else { panic!() };
    for variant in schema.variants {
        assert!(!variant.doc.is_empty());
        assert!(variant.body.fields.iter().all(|f| !f.doc.is_empty()), "{}", variant.kind);
    }
}

/// Any small graph, as an edge list over nodes n0 … n7.
fn any_graph() -> impl Strategy<Value = String> {
    prop::collection::vec((0..8u8, 0..8u8), 0..24).prop_map(|pairs| {
        let named: Vec<(String, String)> = pairs.iter().map(|(a, b)| (format!("n{a}"), format!("n{b}"))).collect();
        let named: Vec<(&str, &str)> = named.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        format!("{{\"links\": [{}]}}", edges(&named))
    })
}

proptest! {
    #[test]
    fn importers_refuse_any_text_without_a_panic(text in "\\PC{0,200}", which in 0..3usize) {
        let format = [FileFormat::Graphml, FileFormat::EdgeList, FileFormat::Hpcc][which];
        prop_assert!(import(format, &text).is_err());
    }

    #[test]
    fn importers_survive_any_damage_to_a_good_file(cut in 0usize..2000, put in "[\\PC\n]{0,12}", len in 0usize..20, which in 0..3usize) {
        let json = format!("{{\"nodes\": [{{\"id\": \"a\", \"kind\": \"host\"}}],\n\"links\": [{}]}}", edges(&[("a", "s"), ("b", "s")]));
        let (format, good) = match which {
            0 => (FileFormat::Graphml, GRAPHML.replace("2e", "5")),
            1 => (FileFormat::EdgeList, json),
            _ => (FileFormat::Hpcc, HPCC.to_string()),
        };
        let start = cut % (good.len() + 1);
        let end = (start + len).min(good.len());
        let damaged = format!("{}{put}{}", &good[..start], &good[end..]);
        match import(format, &damaged) {
            Ok(t) => check_invariants(&t),
            Err(problems) => prop_assert!(problems.iter().all(|p| !p.message.is_empty() && p.path.starts_with("net"))),
        }
    }

    #[test]
    fn any_graph_is_routed_or_refused(source in any_graph()) {
        match import(FileFormat::EdgeList, &source) {
            Ok(t) => check_invariants(&t),
            Err(problems) => prop_assert!(!problems.is_empty()),
        }
    }
}

fn names(patterns: &[&str]) -> Value {
    Value::List(patterns.iter().map(|name| Doc::from(Value::Text((*name).into()))).collect())
}

#[test]
fn failed_links_are_not_there_and_routes_go_around() {
    let whole = build("fat_tree", &[("k", int(4))]);
    let failed = build("fat_tree", &[("k", int(4)), ("failed", names(&["agg0_0->core0", "core3->agg1_*"]))]);
    check_invariants(&failed);
    assert_eq!(failed.links.len() + 4, whole.links.len(), "two links, both directions of each");
    assert!(failed.find_link("agg0_0->core0").is_none() && failed.find_link("core0->agg0_0").is_none());
    assert!(failed.find_link("agg1_1->core3").is_none() && failed.find_link("agg1_1->core2").is_some());
    // Nobody sends to pod 0 by core0 any more, which would have to come back up.
    let (routes, far) = (Routes::shortest(&failed).unwrap(), failed.host("h0").unwrap());
    let hops = routes.next_hops(failed.node("agg3_0").unwrap(), far);
    assert_eq!(hops.iter().map(|l| failed.link_name(*l)).collect::<Vec<_>>(), ["agg3_0->core1"]);
}

#[test]
fn of_parallel_links_one_may_fail() {
    let keys = [("leaves", int(2)), ("spines", int(1)), ("hosts_per_leaf", int(1)), ("links_per_pair", int(3))];
    let failed = build("leaf_spine", &[&keys[..], &[("failed", names(&["leaf0->spine0#1"]))]].concat());
    check_invariants(&failed);
    assert_eq!(failed.out_links(failed.node("leaf0").unwrap()).len(), 3, "a host and two of three spines");
    assert_eq!(failed.out_links(failed.node("leaf1").unwrap()).len(), 4);
}

#[test]
fn failed_links_that_are_none_are_refused_all_at_once() {
    let found = refused("fat_tree", &[("k", int(4)), ("failed", names(&["agg0_0->core9", "agg0_0->core0", "spine*->*"]))]);
    for part in [
        "topology.failed[0]: \"agg0_0->core9\" is no link",
        "topology.failed[2]: \"spine*->*\" matches no link",
        "did you mean 'agg0_0->core",
    ] {
        assert!(found.contains(part), "{part:?} in:\n{found}");
    }
    assert!(!found.contains("failed[1]"), "{found}");
    let found = refused("leaf_spine", &[("leaves", int(2)), ("failed", names(&["leaf0->h0"]))]);
    assert!(found.contains("\"h0\" is a host without a link"), "{found}");
}

/// Paths of the links that are left are those of a network that was built without the others.
#[test]
fn routes_without_links_are_those_of_a_network_without_them() {
    for (kind, keys, failed) in [
        ("fat_tree", vec![("k", int(4))], vec!["agg0_0->core0", "core3->agg1_*", "edge2_0->agg2_1"]),
        (
            "leaf_spine",
            vec![("leaves", int(3)), ("spines", int(2)), ("hosts_per_leaf", int(2)), ("links_per_pair", int(2))],
            vec!["leaf0->spine0*"],
        ),
        (
            "leaf_spine",
            vec![("leaves", int(3)), ("spines", int(2)), ("hosts_per_leaf", int(2)), ("links_per_pair", int(2))],
            vec!["spine1->leaf2#1"],
        ),
    ] {
        let whole = build(kind, &keys);
        let less = build(kind, &[&keys[..], &[("failed", names(&failed))]].concat());
        let named = |t: &Topology, l: LinkId| t.link_name(l);
        let left: BTreeSet<String> = (0..less.links.len() as u32).map(|l| named(&less, LinkId(l))).collect();
        let kept = |l: &LinkId| left.contains(&named(&whole, *l));
        let down: BTreeSet<LinkId> = (0..whole.links.len() as u32).map(LinkId).filter(|l| !kept(l)).collect();
        let (routes, expected) = (Routes::shortest_without(&whole, &down).unwrap(), Routes::shortest(&less).unwrap());
        assert_eq!(down.len() + less.links.len(), whole.links.len(), "{failed:?}");
        for node in whole.nodes.iter().skip(whole.hosts.len()) {
            for host in (0..whole.hosts.len() as u32).map(HostId) {
                let [a, b] = [(&whole, &routes), (&less, &expected)].map(|(t, routes)| {
                    let hops = routes.next_hops(t.node(&node.name).unwrap(), host).iter();
                    let mut hops: Vec<String> = hops.map(|l| t.nodes[t.link(*l).to.index()].name.clone()).collect();
                    hops.sort_unstable();
                    hops
                });
                assert_eq!(a, b, "{} to {host:?} without {failed:?}", node.name);
            }
        }
    }
}

/// Where no link is left, switches have no links towards what is behind.
#[test]
fn a_switch_that_is_cut_off_is_unreachable_and_nothing_else_is() {
    let whole = build("leaf_spine", &[("leaves", int(3)), ("spines", int(2)), ("hosts_per_leaf", int(1))]);
    let leaf = whole.node("leaf1").unwrap();
    let uplinks = whole.out_links(leaf).iter().filter(|l| whole.host_id(whole.link(**l).to).is_none());
    let down: BTreeSet<LinkId> = uplinks.flat_map(|l| [*l, whole.link(*l).reverse]).collect();
    let routes = Routes::shortest_without(&whole, &down).unwrap();
    let host = |name: &str| whole.host(name).unwrap();
    for name in ["leaf0", "leaf2", "spine0", "spine1"] {
        assert!(routes.next_hops(whole.node(name).unwrap(), host("h1")).is_empty(), "{name}");
    }
    assert!(routes.next_hops(leaf, host("h0")).is_empty() && routes.next_hops(leaf, host("h1")).len() == 1);
    assert_eq!(routes.next_hops(whole.node("leaf0").unwrap(), host("h2")).len(), 2);
}
