//! Jobs of ranks against closed forms, and what each rank receives and waits for on any network.

use super::common::*;
use fanin_telemetry::{CollectiveRow, FlowRow, SegmentRow};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;

const MSS: u64 = 1460;
const DELAY: u64 = 1_000_000;

/// `hosts` at one switch over links of 10 Gb/s and 1 us; no acknowledgment but by its timer, which is far off, and windows
/// that hold all there is, so that nothing but data moves.
fn quiet(hosts: u32, operations: &str, job: &str) -> Ran {
    run(&format!(
        "[topology]\nkind = \"single_switch\"\nhosts = {hosts}\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\ntimestamps = false\ninitial_window = 1000\nack_every = 255\n\
         delayed_ack_timeout = \"400ms\"\n[telemetry]\nsample = \"off\"\n\
         [[traffic]]\nkind = \"collective\"\n{job}\noperations = [{operations}]\n"
    ))
}

/// α–β: `segments` full ones cross two links of the same rate and delay, store and forward.
fn step(segments: u64) -> u64 {
    (segments + 1) * tx_ps(WIRE, 10) + 2 * DELAY
}

fn time(row: &CollectiveRow) -> u64 {
    row.finish_ps.expect("complete") - row.start_ps
}

/// On an idle fabric a collective takes what its steps take: rings 2(n − 1) or n − 1 of them, trees up and down again, a direct
/// all-to-all one round of permutations. Exact to the picosecond; headers, preamble and gap included. Source: NCCL-TESTS
/// (bandwidths), PATARASUK (rings); the rest is counting.
#[test]
fn collectives_on_an_idle_network_take_what_their_steps_take() {
    let d = tx_ps(WIRE, 10);
    for (n, segments) in [(2, 1), (4, 5), (7, 3), (8, 16)] {
        let size = |parts: u64| parts * segments * MSS;
        let ring = |kind: &str| format!("{{ kind = \"{kind}\", size = \"{}B\" }}", size(n));
        let cases = [
            (ring("all_reduce"), "ring", 2 * (n - 1) * step(segments), 2.0),
            (ring("all_gather"), "ring", (n - 1) * step(segments), 1.0),
            (ring("reduce_scatter"), "ring", (n - 1) * step(segments), 1.0),
            // All NICs send to each peer in turn, so that what is sent at one time is a permutation.
            (ring("all_to_all"), "direct", step((n - 1) * segments), 1.0),
        ];
        for (operation, algorithm, theory, factor) in cases {
            let ran = quiet(n as u32, &operation, "");
            let [row] = &ran.kept.collectives[..] else { panic!("{:?}", ran.kept.collectives) };
            assert_eq!((time(row), row.algorithm.to_string().as_str()), (theory, algorithm), "{n} ranks, {operation}");
            assert_eq!((row.start_ps, row.ready_ps, row.ranks, row.size_bytes), (0, Some(0), n as u32, size(n)));
            let algbw = size(n) as f64 * 8.0 / theory as f64 * SECOND;
            assert_eq!(row.algbw_bps, Some(algbw as u64));
            let busbw = algbw * factor * (n - 1) as f64 / n as f64;
            assert!((row.busbw_bps.expect("complete") as f64 / busbw - 1.0).abs() < 1e-6, "{row:?}");
        }
    }
    // Four ranks: 1 and 3 are leaves of 2, which is the child of 0. What comes from two at once waits at the switch, and what goes
    // to two at the NIC.
    for segments in [1, 8] {
        let tree = format!("{{ kind = \"all_reduce\", algorithm = \"tree\", size = \"{}B\" }}", segments * MSS);
        let ran = quiet(4, &tree, "");
        assert_eq!(time(&ran.kept.collectives[0]), 2 * step(2 * segments) + 2 * step(segments));
        // Two trees of two ranks are the same pair, once with each as root: all that is sent crosses at once in both directions.
        let double = format!("{{ kind = \"all_reduce\", algorithm = \"double_tree\", size = \"{}B\" }}", 2 * segments * MSS);
        let ran = quiet(2, &double, "");
        assert_eq!(time(&ran.kept.collectives[0]), 2 * step(segments));
    }
    assert_eq!(d, 1_230_400);
}

/// Each message of a followed job has a row: what a rank of a ring sends in its steps, written one after the other as the one before it
/// has come. Exact to the picosecond.
#[test]
fn messages_of_a_job_have_their_times() {
    let (n, segments) = (4_u64, 5);
    let operations = format!("{{ kind = \"all_reduce\", size = \"{}B\" }}", n * segments * MSS);
    let ran = run(&format!(
        "[topology]\nkind = \"single_switch\"\nhosts = {n}\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\ntimestamps = false\ninitial_window = 1000\nack_every = 255\n\
         delayed_ack_timeout = \"400ms\"\n[telemetry]\nsample = \"off\"\nhosts = [\"*\"]\n\
         [[traffic]]\nkind = \"collective\"\noperations = [{operations}]\n"
    ));
    assert_eq!(ran.kept.flows.len() as u64, n);
    for flow in &ran.kept.flows {
        let all: Vec<_> = ran.kept.messages.iter().filter(|row| row.flow == flow.flow).collect();
        assert_eq!(all.len() as u64, 2 * (n - 1));
        for (i, row) in (0..).zip(all) {
            assert_eq!((u64::from(row.message), row.size_bytes, row.packets), (i, segments * MSS, segments as u32));
            assert_eq!((row.posted_ps, row.delivered_ps), (i * step(segments), Some((i + 1) * step(segments))));
        }
    }
}

/// Cut into messages, a ring sends without a break once a message returns before the last of its step has left: the bus bandwidth is the
/// line's. What ranks compute before and work on each message in between adds up; so do iterations, operations and channels.
#[test]
fn messages_overlap_and_computations_add_up() {
    let (n, segments, d) = (4, 4, tx_ps(WIRE, 10));
    let size = |messages: u64| n * messages * segments * MSS;
    let op = |messages: u64, more: &str| {
        format!("{{ kind = \"all_reduce\", size = \"{}B\", message = \"{}B\"{more} }}", size(messages), segments * MSS)
    };
    let ran = quiet(4, &op(2, ""), "");
    assert_eq!(time(&ran.kept.collectives[0]), 2 * (n - 1) * 2 * segments * d + d + 2 * DELAY);
    let one = 2 * (n - 1) * step(segments);
    let plain = format!("kind = \"all_reduce\", size = \"{}B\"", size(1));
    let ran = quiet(4, &format!("{{ {plain}, work = \"3us\" }}"), "");
    assert_eq!(time(&ran.kept.collectives[0]), one + 2 * (n - 1) * 3_000_000);
    let both = format!("{{ {plain}, compute = \"7us\" }}, {{ kind = \"all_gather\", size = \"{}B\" }}", size(1));
    let ran = quiet(4, &both, "iterations = 3");
    let gather = (n - 1) * step(segments);
    let starts: Vec<(u64, u64)> = ran.kept.collectives.iter().map(|row| (row.start_ps, time(row))).collect();
    let period = 7_000_000 + one + gather;
    let theory = (0..3).flat_map(|i| [(i * period + 7_000_000, one), (i * period + 7_000_000 + one, gather)]);
    assert_eq!(starts, theory.collect::<Vec<_>>());
    // Two channels take turns in the first step, half of the segments each. What one has when it ends goes on before the other's,
    // so that from then on each has the link to itself while the other's is on its way.
    let ran = quiet(4, &format!("{{ {plain}, channels = 2 }}"), "");
    assert_eq!(time(&ran.kept.collectives[0]), step(segments) + (2 * (n - 1) - 1) * step(segments / 2));
    assert_eq!(ran.kept.flows.len(), 8);
}

/// Connections stay open: windows go on growing from step to step instead of beginning anew, so the second iteration is faster than the
/// first, and with a handshake there is one for each connection.
#[test]
fn connections_stay_open_over_steps_and_iterations() {
    let ran = run(&format!(
        "[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = {{ rate = \"100Gbps\", delay = \"5us\" }}\n\
         [transport]\nkind = \"tcp\"\ninitial_window = 2\n[telemetry]\nsample = \"off\"\nhosts = [\"*\"]\n\
         [[traffic]]\nkind = \"collective\"\niterations = 4\noperations = [{{ kind = \"all_reduce\", size = \"{}B\" }}]\n",
        4 * 100 * MSS
    ));
    let times: Vec<u64> = ran.kept.collectives.iter().map(time).collect();
    assert!(times[0] > 2 * times[3] && times[2] >= times[3], "{times:?}");
    let of = |kind: &str| ran.kept.segments.iter().filter(|s| s.kind.to_string() == kind).count();
    assert_eq!((ran.kept.flows.len(), of("syn")), (4, 8));
    assert!(ran.kept.flows.iter().all(|flow| flow.status.to_string() == "complete"));
}

/// The staggered form and the bound on peers: a rank's next step waits for the acknowledgment of the one before.
#[test]
fn steps_of_an_all_to_all_wait_for_acknowledgments() {
    let took = |more: &str| {
        let text = format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\ntimestamps = false\nack_every = 1\n[telemetry]\nsample = \"off\"\n\
             [[traffic]]\nkind = \"collective\"\noperations = [{{ kind = \"all_to_all\", size = \"{}B\"{more} }}]\n",
            4 * MSS
        );
        time(&run(&text).kept.collectives[0])
    };
    // One segment there, one acknowledgment back: 40 bytes in a frame of 64, and 20 around it.
    let (d, a) = (tx_ps(WIRE, 10), tx_ps(84, 10));
    let round = 2 * d + 2 * a + 4 * DELAY;
    assert_eq!(took(", staggered = true"), 2 * round + step(1));
    assert_eq!(took(", concurrent = 1"), 2 * round + step(1));
    assert!(took(", concurrent = 2") < took(", concurrent = 1") && took("") <= took(", concurrent = 2"));
}

/// The same over RoCEv2, a queue pair for each pair of ranks and a message of it for each of the ring's: a step takes what such a write takes alone,
/// and the acknowledgment that each rank sends before it passes on what it has.
#[test]
fn a_ring_over_queue_pairs_takes_its_writes() {
    let roce = "[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n\
                [transport]\nkind = \"roce\"\nack_every = 100\n[telemetry]\nsample = \"off\"\n\
                [switch]\nbuffer = \"unlimited\"\nmechanisms.pfc = { memory = \"4MB\", classes = [0] }\n";
    let alone =
        run(&format!("{roce}[[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"10240B\" }}]\n"));
    let write = alone.kept.flows[0].finish_ps.expect("complete");
    let ran = run(&format!(
        "{roce}[[traffic]]\nkind = \"collective\"\niterations = 2\noperations = [{{ kind = \"all_reduce\", size = \"40960B\" }}]\n"
    ));
    let ack = tx_ps(66 + 20, 10);
    let times: Vec<u64> = ran.kept.collectives.iter().map(time).collect();
    assert_eq!(times, [6 * write + 5 * ack, 6 * write + 6 * ack]);
}

/// A job that follows another entry begins at each host when that knows; one that is followed is complete with its last message.
#[test]
fn jobs_take_part_in_dependencies() {
    let ran = run(
        "[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\ntimestamps = false\n[telemetry]\nsample = \"off\"\n\
         [[traffic]]\nname = \"first\"\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1460B\" }]\n\
         [[traffic]]\nname = \"job\"\nkind = \"collective\"\nafter = [\"first\"]\noperations = [{ kind = \"all_gather\", size = \"4000B\" }]\n\
         [[traffic]]\nname = \"last\"\nkind = \"flows\"\nafter = [\"job\"]\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1460B\" }]\n",
    );
    let [row] = &ran.kept.collectives[..] else { panic!("one") };
    let done = ran.kept.flows[0].finish_ps.expect("complete");
    // h1 knows at once, the others when a smallest frame has crossed two links.
    assert_eq!((row.start_ps, row.ready_ps), (done, Some(done + 2 * (tx_ps(84, 10) + DELAY))));
    let last = ran.kept.flows.iter().find(|flow| flow.group.to_string() == "last").expect("a flow");
    assert!(last.start_ps >= row.finish_ps.expect("complete"));
}

/// A random job.
#[derive(Clone, Debug)]
struct Shape {
    kind: &'static str,
    group: u64,
    stride: u64,
    groups: u64,
    channels: u64,
    size: u64,
    message: Option<u64>,
    iterations: u64,
    gaps: &'static str,
}

fn shape() -> impl Strategy<Value = Shape> {
    let kinds = vec!["ring", "tree", "double_tree", "all_gather", "reduce_scatter", "direct", "staggered"];
    let gaps =
        vec!["", ", compute = \"3us\"", ", jitter = \"20us\"", ", work = \"400ns\"", ", compute = \"1us\", work = \"1us\""];
    let of = (select(kinds), 2..5u64, 1..3u64, 1..3u64, 1..4u64);
    (of, 0..60_000u64, prop::option::of(200..4000u64), 1..4u64, select(gaps)).prop_map(
        |((kind, group, stride, groups, channels), extra, message, iterations, gaps)| {
            let size = group * channels * 2 + extra;
            let parts = channels
                * if kind == "tree" {
                    1
                } else if kind == "double_tree" {
                    2
                } else {
                    group
                };
            let message = message.filter(|m| *m < size.div_ceil(parts) && !["direct", "staggered"].contains(&kind));
            Shape { kind, group, stride, groups, channels, size, message, iterations, gaps }
        },
    )
}

impl Shape {
    fn ranks(&self) -> u64 {
        self.group * self.stride * self.groups
    }

    fn text(&self, fabric: &str) -> String {
        let kind = match self.kind {
            "ring" | "tree" | "double_tree" => format!("kind = \"all_reduce\", algorithm = \"{}\"", self.kind),
            "direct" => "kind = \"all_to_all\"".to_string(),
            "staggered" => "kind = \"all_to_all\", staggered = true".to_string(),
            other => format!("kind = \"{other}\""),
        };
        let message = self.message.map_or(String::new(), |m| format!(", message = \"{m}B\""));
        let (group, stride, channels, size) = (self.group, self.stride, self.channels, self.size);
        let stride = if group == self.ranks() { String::new() } else { format!(", group = {group}, stride = {stride}") };
        format!(
            "{fabric}[[traffic]]\nkind = \"collective\"\nranks = [\"h0..h{}\"]\niterations = {}\n\
             operations = [{{ {kind}, size = \"{size}B\", channels = {channels}{message}{stride}{} }}]\n",
            self.ranks() - 1,
            self.iterations,
            self.gaps
        )
    }

    /// Bytes of a part of the buffer on one channel.
    fn part(&self, channel: u64, parts: u64, part: u64) -> u64 {
        share(share(self.size, self.channels, channel), parts, part)
    }

    /// What a rank at `position` of its group receives in one iteration.
    fn receives(&self, position: u64) -> u64 {
        let n = self.group;
        let blocks = |except: &[u64]| -> u64 {
            let of = |c| (0..n).filter(|b| !except.contains(b)).map(|b| self.part(c, n, b)).sum::<u64>();
            (0..self.channels).map(of).sum()
        };
        match self.kind {
            "ring" => blocks(&[position]) + blocks(&[(position + 1) % n]),
            "all_gather" => blocks(&[position]),
            // The last block that comes is its own; the one that it sends first never comes back.
            "reduce_scatter" => blocks(&[(position + n - 1) % n]),
            _ => (n - 1) * share(self.size, n, position),
        }
    }

    fn position(&self, host: &str) -> u64 {
        let rank: u64 = host[1..].parse().expect("a host");
        rank % (self.group * self.stride) / self.stride
    }
}

fn share(total: u64, parts: u64, part: u64) -> u64 {
    total / parts + u64::from(part < total % parts)
}

fn fabric() -> impl Strategy<Value = String> {
    let topology = select(vec![
        "kind = \"single_switch\"\nhosts = 16",
        "kind = \"leaf_spine\"\nleaves = 4\nhosts_per_leaf = 4\nspines = 2",
        "kind = \"fat_tree\"\nk = 4",
    ]);
    let buffer = select(vec!["{ kind = \"unlimited\" }", "{ kind = \"static\", per_port = \"12 packets\" }"]);
    let transport = select(vec![
        "congestion_control = \"dctcp\"\nhandshake = false",
        "congestion_control = \"newreno\"",
        "profile = \"linux\"\nrto_min = \"1ms\"",
    ]);
    (topology, buffer, transport, 1..1000u32).prop_map(|(topology, buffer, transport, seed)| {
        format!(
            "seed = {seed}\n[topology]\n{topology}\n[switch]\nbuffer = {buffer}\nmarking = {{ kind = \"threshold\", k = \"8 packets\" }}\n\
             [transport]\nkind = \"tcp\"\n{transport}\n[telemetry]\nsample = \"off\"\nhosts = [\"*\"]\n"
        )
    })
}

/// When the first `bytes` of a connection had all arrived, and when the byte behind them was first sent.
struct Line {
    sent: BTreeMap<u64, u64>,
    received: BTreeMap<u64, (u64, u64)>,
}

impl Line {
    fn of(flow: &FlowRow, segments: &[SegmentRow]) -> Line {
        let mut line = Line { sent: BTreeMap::new(), received: BTreeMap::new() };
        for s in segments.iter().filter(|s| s.flow == flow.flow && s.host == flow.src && s.payload_bytes > 0) {
            let sent = line.sent.entry(s.seq_bytes).or_insert(u64::MAX);
            *sent = (*sent).min(s.sent_ps);
            if let Some(at) = s.received_ps {
                let got = line.received.entry(s.seq_bytes).or_insert((u64::MAX, 0));
                *got = (got.0.min(at), got.1.max(s.seq_bytes + u64::from(s.payload_bytes)));
            }
        }
        line
    }

    /// At the latest of all that begins below `bytes`: each byte arrived first by one of the segments with it.
    fn had(&self, bytes: u64) -> u64 {
        let (mut at, mut upto) = (0, 0);
        while upto < bytes {
            let with = self.received.range(..=upto).filter(|(_, (_, end))| *end > upto);
            let (time, end) = with.map(|(_, (time, end))| (*time, *end)).min().expect("it arrived");
            (at, upto) = (at.max(time), end);
        }
        at
    }

    /// When byte number `from` was first sent.
    fn sends(&self, from: u64) -> u64 {
        self.sent.range(..=from).next_back().map_or(0, |(_, at)| *at)
    }
}

proptest! {
    #![proptest_config(property(40, 20_30))]
    /// On any fabric, with losses and marks: every rank receives exactly the bytes of its collective, all complete, no rank of a ring
    /// sends a block on before it has it, and a run is the same again and with other ports.
    #[test]
    fn ranks_get_their_bytes_and_wait_for_them(shape in shape(), fabric in fabric()) {
        let text = shape.text(&fabric);
        let ran = run(&text);
        let (rows, flows) = (&ran.kept.collectives, &ran.kept.flows);
        prop_assert_eq!(rows.len() as u64, shape.iterations * shape.groups * shape.stride);
        prop_assert!(rows.iter().all(|row| row.finish_ps.is_some() && row.start_ps <= row.ready_ps.unwrap_or(0)));
        let mut received: BTreeMap<String, u64> = BTreeMap::new();
        for flow in flows {
            prop_assert_eq!((flow.status.to_string(), flow.delivered_bytes), ("complete".to_string(), flow.size_bytes));
            *received.entry(flow.dst.to_string()).or_default() += flow.delivered_bytes;
        }
        if !shape.kind.contains("tree") {
            for (host, bytes) in &received {
                prop_assert_eq!(*bytes, shape.iterations * shape.receives(shape.position(host)), "{}", host);
            }
        } else {
            // Each edge of a tree carries everything up and down again.
            let all: u64 = received.values().sum();
            prop_assert_eq!(all, shape.iterations * 2 * (shape.group - 1) * shape.size * shape.groups * shape.stride);
        }
        if ["ring", "all_gather", "reduce_scatter"].contains(&shape.kind) {
            // Flows are numbered in order of ends and channels, so those into a rank are in the order of those out of it.
            let mut flows = flows.clone();
            flows.sort_by_key(|flow| flow.flow);
            let lines: Vec<Line> = flows.iter().map(|flow| Line::of(flow, &ran.kept.segments)).collect();
            for (i, flow) in flows.iter().enumerate() {
                let channel = flows[..i].iter().filter(|f| (&f.src, &f.dst) == (&flow.src, &flow.dst)).count();
                let before = |f: &&(usize, &FlowRow)| f.1.dst == flow.src;
                let into: Vec<(usize, &FlowRow)> = flows.iter().enumerate().collect();
                let (j, _) = *into.iter().filter(before).nth(channel).expect("a ring");
                let (n, p) = (shape.group, shape.position(&flow.src.to_string()));
                let steps = if shape.kind == "ring" { 2 * (n - 1) } else { n - 1 };
                let first = if shape.kind == "reduce_scatter" { n - 1 } else { 0 };
                let messages = shape.message.map_or(1, |m| shape.part(0, n, 0).div_ceil(m));
                let message = |p: u64, i: u64| {
                    let block = shape.part(channel as u64, n, (p + first + 2 * n - i / messages % steps) % n);
                    share(block, messages, i % messages)
                };
                let ends = |p: u64, count: u64| (0..count).map(|i| message(p, i)).sum::<u64>();
                let each = steps * messages;
                for i_message in messages..each * shape.iterations {
                    // The message of the step before, or at the beginning of an iteration all of the one before.
                    let number = i_message % each;
                    let needs = if number < messages { i_message - number } else { i_message - messages + 1 };
                    let (sends, had) = (lines[i].sends(ends(p, i_message)), lines[j].had(ends((p + n - 1) % n, needs)));
                    prop_assert!(sends >= had, "flow {} message {}: {} < {}", flow.flow, i_message, sends, had);
                }
            }
        }
        let again = run(&text);
        prop_assert_eq!(&again, &ran);
        let explicit = run(&format!("{text}[engine]\nports = \"explicit\"\n"));
        prop_assert_eq!(explicit.kept.fingerprint, ran.kept.fingerprint);
        prop_assert_eq!(&explicit.kept.collectives, rows);
    }
}
