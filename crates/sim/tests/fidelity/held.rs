//! What mechanisms hold is part of the queue of its port in all results: each beside a sum over the packets' own hops.

use super::common::{run, Ran};
use super::explain::{explained, time};
use fanin_analysis::explain::Kind;
use fanin_telemetry::{HopRow, QueueRow};
use std::collections::BTreeMap;

const PORT: &str = "leaf1->h8";
const OUTPUT_QUEUED: &str = "buffer = \"unlimited\"";
const COMBINED: &str = "architecture = { kind = \"combined\", voq = \"2MB\", output = \"50KB\" }";
/// Marks of what is held are in the rows, too.
const MARKING: &str = "marking = { kind = \"threshold\", k = \"20KB\" }";

/// With memory: an average that is above the limit or below it.
const RED: &str = "marking = { kind = \"red\", min = \"250KB\", max = \"250001B\", max_p = 1.0, weight = 0.25, gentle = false, \
                   hard_drop = false, drop_others = false }";

/// Four senders and a fifth to one host, in two classes if there are any; RCM holds most of it.
fn incast(switch: &str, rcm: &str, more: &str) -> Ran {
    let flow = |i: u32| {
        let class = if switch.contains("classes") { i % 2 } else { 0 };
        format!(
            "[[traffic]]\nkind = \"flows\"\nclass = {class}\nflows = [{{ src = \"h{i}\", dst = \"h8\", size = \"400KB\" }}]\n"
        )
    };
    let flows: String = (0..5).map(flow).collect();
    run(&format!(
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
        {switch}
        mechanisms.pfc = {{ memory = "4MB", classes = [0, 1], xoff = {{ kind = "static", bytes = "400KB" }} }}
        {rcm}
        [transport]
        kind = "roce"
        congestion_control = {{ kind = "dcqcn", profile = "mlx5" }}
        {flows}
        [telemetry]
        sample = "1us"
        hosts = ["*"]
        queues = ["{PORT}"]
        {more}
        "#
    ))
}

/// The frames of a port's packets, with their hops, in order of arrival.
fn crossed(ran: &Ran) -> Vec<(u64, &HopRow)> {
    let frames: BTreeMap<u64, u64> = ran.kept.segments.iter().map(|s| (s.packet, u64::from(s.frame_bytes))).collect();
    let mut hops: Vec<_> =
        ran.kept.hops.iter().filter(|hop| hop.port.to_string() == PORT).map(|hop| (frames[&hop.packet], hop)).collect();
    hops.sort_by_key(|(_, hop)| hop.arrived_ps);
    hops
}

/// The row of each packet, by flow and arrival, with its hop.
fn rows(ran: &Ran) -> Vec<(&QueueRow, &HopRow)> {
    let mut hops: BTreeMap<(u32, u64), &HopRow> = BTreeMap::new();
    for (_, hop) in crossed(ran) {
        assert!(hops.insert((hop.flow, hop.arrived_ps), hop).is_none(), "two packets of a flow at one instant");
    }
    let rows: Vec<_> = ran.kept.queues.iter().map(|row| (row, hops.remove(&(row.flow, row.time_ps)).expect("a hop"))).collect();
    assert!(hops.is_empty(), "{} packets crossed the port and have no row", hops.len());
    rows
}

fn holds(ran: &Ran) -> usize {
    crossed(ran).iter().filter(|(_, hop)| hop.held_by.as_ref().is_some_and(|by| by.to_string() == "rcm")).count()
}

/// Rows of packets that were marked.
fn marked(ran: &Ran) -> u64 {
    ran.kept.queues.iter().filter(|row| row.marked).count() as u64
}

/// Whether a packet is held at a time.
fn held(hop: &HopRow, at: u64) -> bool {
    hop.held_from_ps.is_some_and(|from| from <= at) && hop.held_until_ps.is_some_and(|until| until > at)
}

/// Frames of what the policy that marks at enqueue counts when it decides about the packet of row `i`, as that comes: the queue, and for
/// a packet that is held what is held before it. `None` where something is let go at this very instant, before or after it.
fn before(rows: &[(&QueueRow, &HopRow)], i: usize) -> Option<Vec<(u32, u64)>> {
    let (row, hop) = rows[i];
    let (at, is_held) = (row.time_ps, held(hop, row.time_ps));
    let there = rows[..i].iter().filter(|(_, other)| other.sent_ps > at);
    let clear = is_held || there.clone().all(|(_, other)| other.held_until_ps != Some(at));
    let counts =
        there.filter(|(_, other)| is_held || !held(other, at)).map(|(other, _)| (other.flow, u64::from(other.frame_bytes)));
    clear.then(|| counts.collect())
}

/// Marks are counted once, where a held packet joins the queue of its class or a virtual output queue before it leaves, too.
#[test]
fn a_held_packet_is_marked_once() {
    for switch in [format!("{OUTPUT_QUEUED}\nscheduling = {{ kind = \"strict\", classes = 2 }}"), COMBINED.to_string()] {
        for marking in [MARKING, "marking = { kind = \"s_ecn\", k = \"20KB\" }", RED] {
            let ran = incast(&format!("{switch}\n{marking}"), "mechanisms.rcm = {}", "");
            assert!(holds(&ran) > 100 && marked(&ran) > 100, "{} held, {} marked", holds(&ran), marked(&ran));
            let port = ran.port(PORT);
            assert_eq!(marked(&ran), port.marks, "{switch} {marking}");
        }
    }
}

/// RED's average takes each packet once, as it comes: computed again from the records.
#[test]
fn policies_with_memory_see_each_packet_once() {
    let switch = format!("{OUTPUT_QUEUED}\nscheduling = {{ kind = \"strict\", classes = 2 }}\n{RED}");
    let ran = incast(&switch, "mechanisms.rcm = { sar = false }", "");
    let rows = rows(&ran);
    let (mut average, mut seen, mut marks) = (0.0, 0, 0);
    for (i, (row, _)) in rows.iter().enumerate() {
        let idle = rows[..i].iter().all(|(other, hop)| hop.sent_ps + (u64::from(other.frame_bytes) + 20) * 80 <= row.time_ps);
        let Some(queue) = before(&rows, i).filter(|_| i == 0 || !idle) else { break };
        let bytes: u64 = queue.iter().map(|(_, frame)| frame).sum();
        average += 0.25 * (bytes as f64 - average);
        assert_eq!(row.marked, average >= 250_001.0, "packet {i}: {average} {row:?}");
        (seen, marks) = (seen + 1, marks + u32::from(row.marked));
    }
    assert!(seen > 300 && (50..seen - 50).contains(&marks), "{marks} of {seen} marked");
}

/// A policy of a class sees what of its class is queued, and for a held packet what of it is held.
#[test]
fn policies_of_classes_see_their_class_of_what_is_held() {
    let switch = format!(
        "{OUTPUT_QUEUED}\nscheduling = {{ kind = \"strict\", classes = 2 }}\n{MARKING}\n\
         class_marking = [{{ classes = [1], marking = {{ kind = \"threshold\", k = \"60KB\" }} }}]"
    );
    let ran = incast(&switch, "mechanisms.rcm = { sar = false }", "");
    let classes: BTreeMap<u32, u8> = ran.kept.flows.iter().map(|flow| (flow.flow, flow.class)).collect();
    let rows = rows(&ran);
    let mut others = 0;
    for (i, (row, hop)) in rows.iter().enumerate() {
        let Some(all) = before(&rows, i) else { continue };
        let class = classes[&row.flow];
        let own: u64 = all.iter().filter(|(flow, _)| classes[flow] == class).map(|(_, frame)| frame).sum();
        let k = [20_000, 60_000][usize::from(class)];
        assert_eq!(row.marked, own > k, "class {class}: {own} B of it: {row:?}");
        let port: u64 = all.iter().map(|(_, frame)| frame).sum();
        others += usize::from(held(hop, row.time_ps) && own <= k && port > k);
    }
    assert!(others > 10, "{others} held packets pass for which other classes would have been marked");
}

/// A threshold in cells counts those of what is held.
#[test]
fn cells_of_what_is_held_count() {
    let switch = format!("{OUTPUT_QUEUED}\ncell = \"200B\"\nmarking = {{ kind = \"threshold\", k = \"600 cells\" }}");
    let ran = incast(&switch, "mechanisms.rcm = { sar = false }", "");
    let rows = rows(&ran);
    let mut marks = 0;
    for (i, (row, hop)) in rows.iter().enumerate() {
        let Some(all) = before(&rows, i) else { continue };
        let cells: u64 = all.iter().map(|(_, frame)| frame.div_ceil(200)).sum();
        assert_eq!(row.marked, cells > 600, "{cells} cells: {row:?}");
        marks += usize::from(row.marked && held(hop, row.time_ps));
    }
    assert!(marks > 100 && marks + 100 < rows.len(), "{marks} held packets of {} marked", rows.len());
}

/// Each packet that reaches the port has one row, and finds what the hops say is there: held or not.
#[test]
fn records_of_a_port_have_what_is_held() {
    let classes = format!("{OUTPUT_QUEUED}\nscheduling = {{ kind = \"strict\", classes = 2 }}\n{MARKING}");
    let dequeue = format!("{OUTPUT_QUEUED}\n{}", MARKING.replace("k =", "at = \"dequeue\", k ="));
    for (switch, rcm) in [
        (format!("{OUTPUT_QUEUED}\n{MARKING}"), "mechanisms.rcm = {}"),
        (OUTPUT_QUEUED.to_string(), "mechanisms.rcm = { when_idle = \"wait\" }"),
        (classes, "mechanisms.rcm = { sar = false }"),
        (dequeue, "mechanisms.rcm = { sar = false }"),
        (OUTPUT_QUEUED.to_string(), ""),
    ] {
        let ran = incast(&switch, rcm, "");
        assert_eq!(ran.totals.dropped, 0);
        assert_eq!(holds(&ran) > 100, !rcm.is_empty(), "{} held", holds(&ran));
        let rows = rows(&ran);
        for (i, (row, hop)) in rows.iter().enumerate() {
            let there: Vec<u64> = rows[..i]
                .iter()
                .filter(|(_, other)| other.sent_ps > row.time_ps)
                .map(|(other, _)| u64::from(other.frame_bytes))
                .collect();
            let found = (there.iter().sum(), there.len() as u32);
            assert_eq!((row.queue_bytes, row.queue_packets), found, "{switch} {rcm}: {row:?} {hop:?}");
        }
        assert_eq!(marked(&ran), ran.port(PORT).marks, "{switch} {rcm}");
        let most = rows
            .iter()
            .filter(|(row, hop)| hop.sent_ps > row.time_ps)
            .map(|(row, _)| row.queue_bytes + u64::from(row.frame_bytes))
            .max();
        assert_eq!(Some(ran.port(PORT).peak_bytes), most, "{switch} {rcm}");
    }
}

/// Samples have what stands there at their time, and how much of it is held; the largest in an interval is that of the records.
#[test]
fn samples_have_what_is_held() {
    let ran = incast(OUTPUT_QUEUED, "mechanisms.rcm = {}", "");
    let hops = crossed(&ran);
    let (mut most, mut last) = (0, 0);
    for row in ran.kept.ports.iter().filter(|row| row.port.to_string() == PORT) {
        let at = row.time_ps;
        let there = || hops.iter().filter(|(_, hop)| hop.arrived_ps <= at && hop.sent_ps > at);
        assert_eq!(row.queue_bytes, there().map(|(frame, _)| frame).sum::<u64>(), "{row:?}");
        assert_eq!(u64::from(row.queue_packets), there().count() as u64);
        assert_eq!(row.held_bytes, there().filter(|(_, hop)| held(hop, at)).map(|(frame, _)| frame).sum::<u64>(), "{row:?}");
        let found = ran.kept.queues.iter().filter(|found| (last + 1..=at).contains(&found.time_ps));
        let largest =
            found.filter(|found| found.queue_bytes > 0).map(|found| found.queue_bytes + u64::from(found.frame_bytes)).max();
        assert!(row.queue_max_bytes >= largest.unwrap_or(0), "{row:?} {largest:?}");
        (most, last) = (row.held_bytes.max(most), at);
    }
    assert!(most > 100_000, "{most} held at most");
}

/// At a combined switch what is held stands at its input: virtual output queues, crossbar and port together have all that has arrived and
/// not left.
#[test]
fn virtual_output_queues_have_what_is_held() {
    let ran = incast(COMBINED, "mechanisms.rcm = {}", "");
    assert!(holds(&ran) > 100);
    let hops = crossed(&ran);
    let inputs: u64 = 10;
    let mut held = 0;
    for row in ran.kept.ports.iter().filter(|row| row.port.to_string() == PORT) {
        let at = row.time_ps;
        assert_eq!(row.held_bytes, 0, "nothing is held at the output");
        let voqs = || ran.kept.voqs.iter().filter(|voq| voq.time_ps == at && voq.port.to_string() == PORT);
        let waits = row.queue_bytes + voqs().map(|voq| voq.queue_bytes).sum::<u64>();
        let there: u64 = hops.iter().filter(|(_, hop)| hop.arrived_ps <= at && hop.sent_ps > at).map(|(frame, _)| frame).sum();
        assert!(waits <= there && there - waits <= inputs * 2_000, "{waits} of {there}: the rest crosses");
        held = held.max(voqs().map(|voq| voq.held_bytes).sum());
        assert!(voqs().all(|voq| voq.held_bytes <= voq.queue_bytes && voq.queue_bytes <= voq.queue_max_bytes));
    }
    assert!(held > 100_000, "{held} held at most");
    assert_eq!(ran.kept.queues.len(), hops.len(), "a packet reaches the port when it has crossed");
}

/// The time in which packets are held is a part of its own, by the mechanism's key, and is that of the hops on the way.
#[test]
fn held_time_is_explained() {
    for switch in [OUTPUT_QUEUED, COMBINED] {
        let ran = incast(switch, "mechanisms.rcm = {}", "");
        let mut sum = 0;
        for row in &ran.kept.flows {
            let explanation = explained(&ran, row.flow);
            sum += time(&explanation, Kind::Held);
            assert!(
                explanation.parts.iter().all(|part| (part.kind == Kind::Held) == (part.by == "rcm")),
                "{:?}",
                explanation.parts
            );
            for step in explanation.steps.iter().filter(|step| step.kind == Kind::Held) {
                let hop = ran.kept.hops.iter().find(|hop| Some(hop.packet) == step.packet && hop.port.to_string() == step.place);
                let hop = hop.expect("a hop");
                assert!(hop.held_from_ps <= Some(step.from_ps) && Some(step.to_ps) <= hop.held_until_ps, "{step:?} {hop:?}");
            }
        }
        let alone = incast(switch, "", "");
        assert!(alone.kept.hops.iter().all(|hop| hop.held_by.is_none()));
        assert!(sum > 100_000_000, "{sum} ps");
    }
}

/// Recording changes nothing: the flows are the same with and without, also with a ring that forgets records of what is still held.
#[test]
fn records_of_what_is_held_change_nothing() {
    let text = format!("{OUTPUT_QUEUED}\n{MARKING}");
    let all = incast(&text, "mechanisms.rcm = {}", "");
    let ring = incast(&text, "mechanisms.rcm = {}", "keep = { kind = \"last\", records = 20 }");
    assert_eq!((&all.kept.flows, all.outcome()), (&ring.kept.flows, ring.outcome()));
    assert_eq!(all.kept.queues[all.kept.queues.len() - 20..], ring.kept.queues[..]);
}
