//! Flows from files of every format, good, bad and hostile.

use crate::common::{assert_problem, net, run};
use fanin_traffic::FlowSpec;
use fanin_units::{Span, Time};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::PathBuf;

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn scratch(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("imports-{name}"));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn import(format: &str) -> String {
    format!("[[traffic]]\nkind = \"file\"\nformat = {{ {format} }}\n")
}

/// The problems of a file of `content`.
fn problems(name: &str, format: &str, content: &[u8]) -> Vec<String> {
    let dir = scratch(name);
    std::fs::write(dir.join("f"), content).unwrap();
    net(1, 4).dir(&dir).problems(&import(&format!("{format}, path = \"f\"")))
}

const CSV: &str = "kind = \"csv\"";
const HPCC: &str = "kind = \"hpcc_flow\"";
const HTSIM: &str = "kind = \"htsim_cm\", time_unit = \"ps\"";

#[test]
fn csv_flows_have_units_dependencies_and_classes() {
    let text = format!(
        "{}\n[[traffic]]\nname = \"other\"\nkind = \"flows\"\nflows = [{{ src = \"h3\", dst = \"h0\", size = \"1B\", start = \"9us\" }}]",
        import("kind = \"csv\", path = \"flows.csv\"")
    );
    let flows = run(&mut net(1, 4).build(&text), Span::from_us(20));
    let seen: Vec<_> = flows.iter().map(|f| (f.src.0, f.dst.0, f.size, f.start, f.request, f.class, f.id.as_deref())).collect();
    assert_eq!(
        seen,
        [
            (0, 1, 1000, at_us(0), 0, 0, Some("a")),
            (1, 2, 2500, Time::ZERO + Span::from_ns(1500), 50, 2, None),
            (3, 0, 1, at_us(9), 0, 0, None),
            (2, 0, 3000, at_us(31), 0, 0, Some("b")),
        ]
    );
}

#[test]
fn hpcc_flows_start_at_their_origin() {
    let text = import("kind = \"hpcc_flow\", path = \"flow.txt\", origin = \"2s\", pg_as_class = true");
    let net = net(1, 4);
    let flows = net.flows(&text);
    let seen: Vec<_> = flows.iter().map(|f| (f.src.0, f.dst.0, f.size, f.start, f.class)).collect();
    assert_eq!(
        seen,
        [
            (0, 1, 200_000_000, Time::ZERO, 3),
            (2, 3, 5000, Time::ZERO + Span::from_ns(1), 3),
            (1, 0, 10_000_000, Time::ZERO + Span::from_ms(500), 3),
        ]
    );
    assert_eq!(net.build(&text).notes(), ["file: flow.txt: what follows the announced 3 flows is ignored, as HPCC does"]);
    let short = crate::common::net(1, 4).until_ms(100).build(&text);
    let warnings: Vec<String> = short.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["traffic[0].format.path: \"flow.txt\" has 1 of 3 flows that would start at or after the end of the run: they never do"]
    );
    let plain = net.flows(&import("kind = \"hpcc_flow\", path = \"flow.txt\""));
    assert!(plain[0].start == Time::ZERO + Span::from_s(2) && plain[0].class == 0);
}

#[test]
fn numbers_name_hosts_by_position_only_where_no_name_is_a_number() {
    let dir = scratch("numbers");
    std::fs::write(dir.join("f"), "1\n5 7 3 100 1 0\n").unwrap();
    let mut net = net(1, 3).dir(&dir);
    net.names = ["7", "6", "5"].map(String::from).to_vec();
    let flows = net.flows(&import("kind = \"hpcc_flow\", path = \"f\""));
    assert_eq!((flows[0].src.0, flows[0].dst.0), (2, 0));
    std::fs::write(dir.join("f"), "1\n0 7 3 100 1 0\n").unwrap();
    assert_problem(
        &net.problems(&import("kind = \"hpcc_flow\", path = \"f\"")),
        "traffic[0].format.path (f), line 2: \"0\" is not a host",
    );
}

#[test]
fn htsim_triggers_are_dependencies() {
    let text = import("kind = \"htsim_cm\", path = \"triggers.cm\", time_unit = \"ps\"");
    let mut traffic = net(1, 4).build(&text);
    assert_eq!(traffic.notes(), ["file: triggers.cm: `prio` of 1 connections is ignored"]);
    assert_eq!(traffic.total_hint(), Some(7));
    let flows = run(&mut traffic, Span::from_us(10));
    assert!(traffic.is_complete());
    let start = |id: &str| flows.iter().find(|f| f.id.as_deref() == Some(id)).unwrap().start;
    assert_eq!((start("3"), start("1")), (at_us(0), at_us(1)));
    assert_eq!(start("7"), Time::ZERO + Span::from_ns(2500));
    assert_eq!(start("2"), at_us(11), "one shot: when flow 1 is complete");
    assert_eq!(start("4"), at_us(21), "barrier: when flows 2 and 3 are");
    assert_eq!(
        (start("5"), start("6")),
        (at_us(10), Time::ZERO + Span::from_ns(12_500)),
        "one by one: at each completion of 3 and 7"
    );
}

#[test]
fn the_unit_of_htsim_times_must_be_given_and_is_obeyed() {
    assert_problem(
        &net(1, 4).problems(&import("kind = \"htsim_cm\", path = \"triggers.cm\"")),
        "traffic[0].format.time_unit: is missing",
    );
    let us = net(1, 4).build(&import("kind = \"htsim_cm\", path = \"triggers.cm\", time_unit = \"us\""));
    let mut us = us;
    let starts: Vec<Time> = (0..2).map(|_| us.pop().unwrap().start).collect();
    assert_eq!(starts, [Time::ZERO, Time::ZERO + Span::from_s(1)]);
}

/// The same flows, written in each format.
fn written(flows: &[(u32, u32, u64, u64)]) -> [(&'static str, String); 3] {
    let (mut csv, mut hpcc, mut htsim) =
        ("start_ps,size,dst,src\n".to_string(), format!("{}\n", flows.len()), format!("Nodes 4\nConnections {}\n", flows.len()));
    for (src, dst, size, ps) in flows {
        writeln!(csv, "{ps},{size}B,h{dst},h{src}").unwrap();
        writeln!(hpcc, "{src} {dst} 3 100 {size} {}.{:012}", ps / 1_000_000_000_000, ps % 1_000_000_000_000).unwrap();
        writeln!(htsim, "{src}->{dst} start {ps} size {size}").unwrap();
    }
    [(CSV, csv), (HPCC, hpcc), (HTSIM, htsim)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_format_gives_back_what_was_written(
        flows in prop::collection::vec((0u32..4, 1u32..4, 1u64..1 << 40, 0u64..5_000_000_000_000), 1..30)
    ) {
        let flows: Vec<_> = flows.into_iter().map(|(src, step, size, ps)| (src, (src + step) % 4, size, ps)).collect();
        let mut sorted = flows.clone();
        sorted.sort_by_key(|flow| flow.3);
        let dir = scratch("round-trip");
        for (format, content) in written(&flows) {
            std::fs::write(dir.join("f"), content).unwrap();
            let read = net(1, 4).dir(&dir).flows(&import(&format!("{format}, path = \"f\"")));
            let read: Vec<_> = read.iter().map(|f| (f.src.0, f.dst.0, f.size, f.start.ps())).collect();
            prop_assert_eq!(&read, &sorted);
        }
    }

    /// Whatever a file holds, the answer is flows or problems.
    #[test]
    fn hostile_files_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        tokens in prop::collection::vec(prop::sample::select(vec![
            "0", "1", "-1", "3", "h0", "h1", "->", "0->1", "1->0", "id", "start", "size", "trigger", "barrier", "oneshot", "multishot", "count",
            "send_done_trigger", "Nodes", "Connections", "Triggers", "src", "dst", "size", "start", "after", "\"", ",", ",,", "\n", "\n", "\n", " ", " ",
            "1e400", "9999999999999999999999", "1e-5", "0.5", "#", "\u{feff}", "nan", "5us", "_us", "100",
        ]), 0..80),
    ) {
        let dir = scratch("hostile");
        for content in [bytes, tokens.concat().into_bytes(), tokens.join(" ").into_bytes()] {
            std::fs::write(dir.join("f"), &content).unwrap();
            let net = net(1, 4).dir(&dir);
            for format in [CSV, HPCC, HTSIM] {
                if let Ok(mut traffic) = net.try_build(&import(&format!("{format}, path = \"f\""))) {
                    run(&mut traffic, Span::from_us(1));
                    prop_assert!(traffic.is_complete());
                }
            }
            for probability in ["auto", "percent"] {
                let sizes = format!("sizes = {{ kind = \"file\", path = \"f\", probability = \"{probability}\" }}");
                if let Ok(mut traffic) = net.try_build(&format!("[[traffic]]\nkind = \"poisson\"\nper_second = 1000\ncount = 20\n{sizes}")) {
                    prop_assert!(crate::common::drain(&mut traffic).iter().all(|flow| flow.size >= 1));
                }
            }
        }
    }
}

#[test]
fn a_large_sorted_file_is_streamed_and_an_unsorted_one_refused() {
    let dir = scratch("large");
    let n = 1_000_500u64;
    let mut content = format!("{n}\n");
    (0..n).for_each(|i| writeln!(content, "{} {} 3 100 {} {}.{:09}", i % 4, (i + 1) % 4, i + 1, i / 1000, i % 1000).unwrap());
    std::fs::write(dir.join("f"), &content).unwrap();
    let net = net(1, 4).dir(&dir);
    let text = import("kind = \"hpcc_flow\", path = \"f\"");
    let mut traffic = net.build(&text);
    assert_eq!(traffic.total_hint(), Some(n));
    let first: Vec<FlowSpec> = (0..3).map(|_| traffic.pop().unwrap()).collect();
    assert_eq!(
        first.iter().map(|f| (f.src.0, f.size, f.start.ps())).collect::<Vec<_>>(),
        [(0, 1, 0), (1, 2, 1000), (2, 3, 2000)]
    );
    let rest = crate::common::drain(&mut traffic);
    assert_eq!(rest.len() as u64, n - 3);
    assert!(traffic.failures().is_empty());

    let mut interrupted = net.build(&text);
    std::fs::write(dir.join("f"), "nothing").unwrap();
    let read = crate::common::drain(&mut interrupted).len() as u64;
    assert!(read < n);
    assert_eq!(interrupted.failures().len(), 1);
    assert!(interrupted.failures()[0].starts_with("f changed while it was read"), "{:?}", interrupted.failures());

    std::fs::write(dir.join("f"), &content).unwrap();
    let mut reordered = net.build(&text);
    std::fs::write(dir.join("f"), content.replacen(" 900.000000500\n", " 000.000000500\n", 1)).unwrap();
    assert_eq!(crate::common::drain(&mut reordered).len(), 900_500, "starts never fall, whatever happens to the file");
    assert_eq!(reordered.failures(), ["f changed while it was read: its remaining flows are missing"]);

    let swapped = content.replacen(".000000500\n", ".999999999\n", 1);
    std::fs::write(dir.join("f"), swapped).unwrap();
    assert_problem(&net.problems(&text), "has more than 1000000 flows that are not in order of start or have ids or dependencies; accepted: a file sorted by start, without ids");
    let mut few = net;
    few.max_flows = 1000;
    assert_problem(&few.problems(&text), "\"f\" has too many flows; accepted: at most 1000 in a run");
    std::fs::remove_file(dir.join("f")).unwrap();
}

#[test]
fn bad_csv_files_are_refused_with_line_and_reason() {
    let at = "traffic[0].format.path (f), line ";
    let head = "src,dst,size_B,start_us\n";
    let bad = |content: &str| problems("csv", CSV, content.as_bytes());
    assert_problem(
        &bad("src,dst,size,begin\n"),
        &format!("{at}1: \"begin\" is not a known column; accepted: src, dst, size, start"),
    );
    assert_problem(
        &bad("src,dst,size_furlong,start\n"),
        &format!("{at}1: \"size_furlong\" has an unknown unit; accepted: B, KB"),
    );
    assert_problem(&bad("src,dst,size\nh0,h1,1B\n"), &format!("{at}1: has no column `start`"));
    assert_problem(&bad("src,src,size,start\n"), &format!("{at}1: \"src\" is a duplicate column"));
    assert_problem(
        &bad("src,dst,size,start\nh0,h1,1000,1us\n"),
        &format!("{at}2: \"1000\" has no unit; accepted: a size such as"),
    );
    assert_problem(&bad(&format!("{head}h0,h1,-5,1\n")), &format!("{at}2: \"-5\" is not a number that fits"));
    assert_problem(&bad(&format!("{head}h0,h1,0,1\n")), &format!("{at}2: \"0\" is not a size: a flow has at least 1 byte"));
    assert_problem(&bad(&format!("{head}h0,h0,1,1\n")), &format!("{at}2: \"h0\" is the source itself"));
    assert_problem(&bad(&format!("{head}h0,h9,1,1\n")), &format!("{at}2: \"h9\" is not a host"));
    assert_problem(&bad(&format!("{head}h0,h1,1\n")), &format!("{at}2: has 3 fields; accepted: 4 as the heading has"));
    assert_problem(
        &bad("src,dst,size_B,start_us,after\nh0,h1,1,1,ghost\n"),
        "traffic[0].format.path (f)[0], line 2: \"ghost\" is not a known flow id or entry name",
    );
    assert_problem(
        &bad("src,dst,size_B,start_us,delay_us\nh0,h1,1,1,5\n"),
        &format!("{at}2: \"5us\" is a delay without `after`"),
    );
    assert_problem(
        &bad("src,dst,size_B,start_us,id\nh0,h1,1,1,x\nh1,h0,1,1,x\n"),
        "traffic[0].format.path (f): \"x\" is also the name of another entry or flow",
    );
    assert_problem(
        &bad("src,dst,size_B,start_us,class\nh0,h1,1,1,8\n"),
        &format!("{at}2: \"8\" is not a traffic class; accepted: an integer from 0 to 7"),
    );
    assert_problem(&bad(head), "\"f\" has no flow; accepted: at least one");
    assert_eq!(bad(&format!("{head}h0,h0,1,1\nh0,h1,1,1\nh0,h9,1,1\nh0,h1,x,1\n")).len(), 3, "all lines at once");
    let endless = format!("{head}\"{}", "x\n".repeat(200_000));
    assert_problem(&bad(&endless), "a record is longer than 65536 bytes");
    assert_eq!(bad(&format!("{head}{}", "h0,h0,1,1\n".repeat(1000))).len(), 20, "and no more than twenty");
    assert_problem(
        &net(1, 4).problems(&import("kind = \"csv\", path = \"gone.csv\"")),
        "traffic[0].format.path: \"gone.csv\" cannot be read: No such file",
    );
}

#[test]
fn bad_hpcc_files_are_refused_with_line_and_reason() {
    let at = "traffic[0].format.path (f), line ";
    let bad = |content: &str| problems("hpcc", HPCC, content.as_bytes());
    assert_problem(&bad("many\n"), &format!("{at}1: \"many\" is not the number of flows"));
    assert_problem(&bad("2\n0 1 3 100 5 0\n"), "traffic[0].format.path: \"f\" announces 2 flows and has 1");
    assert_problem(
        &bad("1\n0 1 3 100 5\n"),
        &format!("{at}2: \"0 1 3 100 5\" has 5 fields; accepted: src dst pg dport size start"),
    );
    assert_problem(&bad("1\n0 1 3 100 -5 0\n"), &format!("{at}2: \"-5\" is negative; accepted: bytes, at least 1"));
    assert_problem(
        &bad("1\n0 1 3 100 5 soon\n"),
        &format!("{at}2: \"soon\" is not a time; accepted: seconds, such as 2.000000001"),
    );
    assert_problem(
        &bad("1\n0 4 3 100 5 0\n"),
        &format!("{at}2: \"4\" is not a host; accepted: a host's name, or its position from 0 to 3"),
    );
    assert_problem(&bad("0\n"), "\"f\" has no flow");
    assert_problem(&bad(""), "\"f\" is empty");
    let early = problems("hpcc", "kind = \"hpcc_flow\", origin = \"2s\"", b"1\n0 1 3 100 5 1.9\n");
    assert_problem(&early, &format!("{at}2: \"1.9\" is before the `origin` 2s; accepted: starts at or after `origin`"));
    assert_problem(&problems("hpcc", HPCC, &[b'1'; 70_000]), &format!("{at}1: \"\" is longer than 65536 bytes"));
}

#[test]
fn bad_htsim_files_are_refused_with_line_and_reason() {
    let at = "traffic[0].format.path (f), line ";
    let bad = |content: &str| problems("htsim", HTSIM, content.as_bytes());
    assert_problem(
        &bad("Nodes 5\nConnections 0\n"),
        &format!("{at}1: \"Nodes 5\" are more than there are hosts; accepted: at most the 4 hosts"),
    );
    assert_problem(
        &bad("Nodes 2\nConnections 1\n0->3 start 0 size 1\n"),
        &format!("{at}3: \"3\" is not among the file's nodes; accepted: from 0 to 1"),
    );
    assert_problem(&bad("Connections 2\n0->1 start 0 size 1\n"), "\"f\" announces 2 connections and has 1");
    assert_problem(&bad("0->1 start 0 size 1\n"), "\"f\" has no line `Connections M`");
    assert_problem(
        &bad("Connections 1\n0->1 start 0 size 0\n"),
        "\"0\" is not a size: a flow has at least 1 byte; accepted: bytes; where it means a flow without end",
    );
    assert_problem(&bad("Connections 1\n0->1 size 5\n"), &format!("{at}2: gives neither a start nor a trigger"));
    assert_problem(&bad("Connections 1\n0->1 start 0\n"), &format!("{at}2: gives no size; accepted: `size S`"));
    assert_problem(
        &bad("Connections 1\n0->1 start 0 size 5 colour red\n"),
        &format!("{at}2: \"colour\" is not a known word of a connection; accepted: id, start"),
    );
    assert_problem(&bad("Connections 1\n0->1 start -1 size 5\n"), &format!("{at}2: \"-1\" is not a time"));
    assert_problem(
        &bad("Connections 1\n0->1 trigger 4 size 5\n"),
        &format!("{at}2: \"4\" is a trigger that the file does not define; accepted: a line `trigger id 4 oneshot`"),
    );
    assert_problem(
        &bad("Connections 1\nTriggers 1\n0->1 trigger 4 size 5\ntrigger id 4 oneshot\n"),
        &format!("{at}4: \"trigger 4\" is activated by 0 flows, so what it starts would never start"),
    );
    let twice = "Connections 3\nTriggers 1\n0->1 trigger 4 size 5\n1->2 start 0 size 1 send_done_trigger 4\n1->3 start 0 size 1 send_done_trigger 4\ntrigger id 4 oneshot\n";
    assert_problem(
        &bad(twice),
        &format!("{at}6: \"trigger 4\" is activated by 2 flows, so what it starts would start again; accepted: 1 flows"),
    );
    assert_problem(
        &bad("Connections 2\n0->1 id 3 start 0 size 1\n0->2 id 3 start 0 size 1\n"),
        &format!("{at}3: \"3\" is also the id of line 2"),
    );
    assert_problem(
        &bad("Connections 0\nfailure switch_type TOR switch_id 0 link_id 1\n"),
        "is a link failure, which is not traffic",
    );
    let circle = "Connections 2\nTriggers 2\n0->1 id 1 trigger 1 size 5 send_done_trigger 2\n1->0 id 2 trigger 2 size 5 send_done_trigger 1\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n";
    assert_problem(&bad(circle), "traffic[0].after: makes a dependency cycle");
}
