//! Ports that trim: who stands in the queue where packets take the place of the last one.

use crate::common::{analyse, gigabit, simulate};
use fanin_analysis::{unknown_flows, Burst, Culprit, Detect, PortReport, Record, Settings, DROPPED, NO_QUEUE, REPLACED};
use fanin_units::{BitRate, Bytes, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const UNTIL: u64 = 10_000;

/// Sixty senders, one receiver at 10 Gb/s, 100 KB of buffer.
fn incast(cut: &str) -> String {
    format!(
        r#"
        [topology]
        kind = "single_switch"
        hosts = 61
        link = {{ rate = "10Gbps", delay = "1us" }}
        [switch]
        buffer = {{ kind = "static", per_port = "100KB" }}
        mechanisms.trimming = {{ cut = "{cut}" }}
        [transport]
        kind = "tcp"
        congestion_control = "newreno"
        initial_window = 10
        trim_nack = true
        [[traffic]]
        kind = "incast"
        receiver = "h60"
        senders = ["all"]
        size = "60KB"
        repetitions = 2
        gap = "1ms"
        [telemetry]
        sample = "off"
        queues = ["switch0->h60"]
        "#
    )
}

fn settings() -> Settings {
    Settings {
        rate: Some(BitRate::from_gbps(10)),
        rate_of_result: true,
        detect: Detect::Queue { above: Some(Bytes(50_000)), until: Some(Bytes(UNTIL)) },
        top: 1000,
        ..Settings::default()
    }
}

/// Bytes by flow, most first.
pub type ByFlow = Vec<(u32, u64)>;

fn sorted(bytes: &BTreeMap<u32, i64>) -> ByFlow {
    let mut list: ByFlow =
        bytes.iter().filter(|part| *part.1 != 0).map(|(flow, n)| (*flow, u64::try_from(*n).expect("bytes"))).collect();
    list.sort_by_key(|part| (std::cmp::Reverse(part.1), part.0));
    list
}

fn list(culprits: &[Culprit]) -> ByFlow {
    culprits.iter().map(|c| (c.flow, c.bytes)).collect()
}

/// The queue replayed: before each record, who stands in it, and whose bytes it has kept since it was last empty.
pub fn replay(records: &[Record]) -> Vec<(ByFlow, ByFlow)> {
    let (mut queue, mut since) = (VecDeque::<(u32, i64)>::new(), BTreeMap::<u32, i64>::new());
    let (mut bytes, mut largest) = (0, 0);
    let mut out = Vec::new();
    for r in records {
        let frame = i64::from(r.frame);
        largest = largest.max(frame);
        let found = i64::try_from(r.queue).expect("a queue");
        while bytes > found {
            bytes -= queue.pop_front().expect("a packet").1;
        }
        assert_eq!(bytes, found, "the rows account for every byte: {r:?}");
        if found <= largest {
            since.clear();
        }
        let mut standing = BTreeMap::new();
        queue.iter().for_each(|(flow, bytes)| *standing.entry(*flow).or_default() += bytes);
        out.push((sorted(&standing), sorted(&since)));
        if r.dropped() && !r.dropped_at_head() {
            continue;
        }
        if r.flags & REPLACED != 0 {
            let last = queue.pop_back().expect("a last packet");
            assert_eq!(last.1, frame, "of the same size");
            bytes -= frame;
            *since.get_mut(&last.0).expect("its flow") -= frame;
        }
        queue.push_back((r.flow, frame));
        bytes += frame;
        *since.entry(r.flow).or_default() += frame;
    }
    out
}

/// Records of a burst, and the place of the one that found its peak.
fn of_burst<'a>(records: &'a [Record], b: &Burst) -> (&'a [Record], usize) {
    let starts = |r: &Record| r.time.ps() == b.start_ps && r.queue <= UNTIL;
    let from = records.iter().rposition(starts).expect("its start");
    let peak = |r: &Record| r.time.ps() == b.peak_ps && Some(r.queue) == b.peak_bytes;
    let peak = from + records[from..].iter().position(peak).expect("its peak");
    (&records[from..from + usize::try_from(b.records).expect("a number")], peak)
}

pub fn agrees(report: &PortReport, records: &[Record], model: &[(ByFlow, ByFlow)]) -> bool {
    report.bursts.iter().all(|b| {
        let (_, peak) = of_burst(records, b);
        (list(&b.direct), list(&b.indirect)) == model[peak]
    })
}

/// Culprits, arrivals and drops are those of the queue, replayed record by record; what arrived and was not dropped is no more than
/// the port could send meanwhile. Without the flag they would be others.
#[test]
fn culprits_and_arrivals_are_those_of_the_queue() {
    for cut in ["arriving", "either"] {
        let trace = simulate(&incast(cut), "switch0->h60");
        let records = &trace.records;
        let model = replay(records);
        let report = analyse(&settings(), records, &trace.flows);
        assert_eq!((report.jumps, report.missing_bytes, report.duplicates), (0, 0, 0));
        assert_eq!(report.dropped, Some(records.iter().filter(|r| r.loses()).count() as u64));
        let replaced = records.iter().filter(|r| r.flags & REPLACED != 0).count();
        assert!(report.dropped > Some(500) && (replaced > 250) == (cut == "either"), "{cut}: {:?} {replaced}", report.dropped);
        assert!(report.bursts.len() >= 2, "{}", report.bursts.len());
        let mut most = 0.0_f64;
        for b in &report.bursts {
            let (own, peak) = of_burst(records, b);
            assert_eq!((list(&b.direct), list(&b.indirect)), model[peak], "{cut}");
            assert_eq!((b.direct_unattributed_bytes, b.indirect_unattributed_bytes), (0, 0));
            let sum = |of: &dyn Fn(&Record) -> bool| own.iter().filter(|r| of(r)).map(|r| u64::from(r.frame)).sum::<u64>();
            let (arrived, dropped) = (b.arrived_bytes.expect("sizes"), b.dropped_bytes.expect("known"));
            assert_eq!((arrived, dropped), (sum(&|_| true), sum(&Record::loses)));
            assert_eq!(b.dropped_packets, Some(own.iter().filter(|r| r.loses()).count() as u64));
            // A burst may end long after its last packet.
            let sent = (own[own.len() - 1].time.ps() - b.start_ps) / 800;
            assert!(arrived - dropped <= sent + 100_000 + 2 * 1518, "{cut}: {arrived} - {dropped}, {sent}");
            most = most.max(arrived as f64 / (sent + 100_000) as f64);
        }
        assert!(most > 2.0, "{cut}: {most}");
        let unflagged: Vec<Record> = records.iter().map(|r| Record { flags: r.flags & !REPLACED, ..*r }).collect();
        let unflagged = analyse(&settings(), &unflagged, &trace.flows);
        assert_eq!(agrees(&unflagged, records, &model), cut == "arriving");
    }
}

fn record(us: u64, queue: u64, flow: u32, flags: u8) -> Record {
    Record { time: Time::from_ps(us * 1_000_000), queue, frame: 1000, flow, flags }
}

fn small(records: &[Record]) -> PortReport {
    let detect = Detect::Queue { above: Some(Bytes(2500)), until: Some(Bytes(500)) };
    analyse(&Settings { overhead: Bytes(0), detect, ..gigabit() }, records, &unknown_flows())
}

/// At a peak stands who stood there then, whoever takes a place later; at a higher one, who has taken it.
#[test]
fn a_place_that_is_taken_after_the_peak_counts_at_the_next() {
    let mut records: Vec<Record> = (0..4).map(|i| record(i, i * 1000, 1, 0)).collect();
    records.extend([record(4, 4000, 2, REPLACED), record(5, 4000, 3, REPLACED)]);
    let ended = [records.clone(), vec![record(100, 0, 9, 0)]].concat();
    let b = &small(&ended).bursts[0];
    assert_eq!((b.peak_bytes, list(&b.direct), list(&b.indirect)), (Some(4000), vec![(1, 4000)], vec![(1, 3000)]));
    records.extend([record(6, 4000, 1, 0), record(7, 5000, 4, DROPPED), record(100, 0, 9, 0)]);
    let r = small(&records);
    let b = &r.bursts[0];
    assert_eq!((b.peak_bytes, list(&b.direct)), (Some(5000), vec![(1, 4000), (3, 1000)]));
    assert_eq!(
        list(&b.indirect),
        [(1, 3000), (3, 1000)],
        "flow 2 has kept nothing; the first packet was in front of an empty queue"
    );
    assert_eq!((r.dropped, b.dropped_packets, b.dropped_bytes), (Some(3), Some(3), Some(3000)));
}

/// The last one is among packets without a record, or there is none: the bytes stay what the queue says.
#[test]
fn what_nobody_knows_can_be_replaced() {
    let records = [record(0, 0, 1, REPLACED), record(1, 5000, 2, REPLACED), record(2, 6000, 3, 0), record(100, 0, 9, 0)];
    let r = small(&records);
    let b = &r.bursts[0];
    assert_eq!((list(&b.direct), b.direct_unattributed_bytes), (vec![(1, 1000), (2, 1000)], 4000));
    assert_eq!((list(&b.indirect), b.indirect_unattributed_bytes), (vec![(1, 1000), (2, 1000)], 4000));
    assert_eq!(r.dropped, Some(2));
}

/// Two packets that take the same place one after the other find the same queue: not the same packet twice.
#[test]
fn places_can_be_taken_twice_at_once() {
    let records = [record(0, 0, 1, 0), record(1, 1000, 2, REPLACED), record(1, 1000, 2, REPLACED)];
    let r = small(&records);
    assert_eq!((r.duplicates, r.dropped, r.records), (0, Some(2), 3));
}

proptest! {
    /// Whatever the flags say, the culprits of a peak are as many bytes as the queue there.
    #[test]
    fn any_flags_leave_the_bytes_what_the_queue_says(
        rows in prop::collection::vec((0_u64..20, prop_oneof![0_u64..9_000, Just(NO_QUEUE)], 0_u32..2_000, 0_u32..5, 0_u8..8), 1..200),
    ) {
        let mut now = 0;
        let records: Vec<Record> = rows
            .into_iter()
            .map(|(gap, queue, frame, flow, flags)| {
                now += gap * 1_000_000;
                Record { time: Time::from_ps(now), queue, frame, flow, flags }
            })
            .collect();
        for b in &small(&records).bursts {
            let direct = b.direct.iter().map(|c| c.bytes).sum::<u64>() + b.direct_unattributed_bytes;
            prop_assert_eq!(Some(direct), b.peak_bytes);
        }
    }
}
