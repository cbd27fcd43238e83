//! Samples: a row that is not there would be all zeros, and nothing else is missing.

use super::common::{make, property, run};
use super::random::{classes, fifo, Random};
use fanin_scenario::Scenario;
use fanin_sim::{Pause, PortNow};
use fanin_telemetry::PortRow;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The period of [`Random::with`].
const PERIOD: u64 = 7_000_000;

fn row(time_ps: u64, now: &PortNow, before: &PortNow, largest: u64) -> PortRow {
    let queue_max_bytes = largest.max(now.queue_bytes + now.held_bytes);
    PortRow {
        time_ps,
        port: now.name.as_str().into(),
        tx_bytes: now.tx_bytes - before.tx_bytes,
        tx_packets: now.tx_packets - before.tx_packets,
        queue_bytes: now.queue_bytes + now.held_bytes,
        queue_packets: (now.queue_packets + now.held_packets) as u32,
        queue_max_bytes,
        held_bytes: now.held_bytes,
        drops: (now.drops - before.drops) as u32,
        marks: (now.marks - before.marks) as u32,
    }
}

/// A row for every port and sample, from a look at all ports after each event; and the rows of the run's own table.
fn both(text: &str) -> (Vec<PortRow>, Vec<PortRow>) {
    let mut world = make(text);
    let mut all = Vec::new();
    let mut before = world.ports_now();
    let mut last = before.clone();
    let mut largest = vec![0; last.len()];
    let mut next = PERIOD;
    loop {
        let pause = world.advance(1).expect("tables in memory");
        // The last look at the time of a sample is behind it: samples come last.
        if world.now().ps() > next {
            let rows = last.iter().zip(&before).zip(&largest).map(|((now, before), most)| row(next, now, before, *most));
            all.extend(rows);
            largest = last.iter().map(|port| port.queue_bytes + port.held_bytes).collect();
            before = last;
            next += PERIOD;
        }
        last = world.ports_now();
        // Of what waits at a NIC only the ends of an interval are looked at.
        for (most, port) in largest.iter_mut().zip(&last).filter(|(_, port)| port.switch.is_some()) {
            *most = (port.queue_bytes + port.held_bytes).max(*most);
        }
        match pause {
            Pause::Budget => {}
            Pause::Done => break,
            Pause::Stuck(message) => panic!("{message}"),
        }
    }
    let end = world.now().ps();
    all.extend(last.iter().zip(&before).zip(&largest).map(|((now, before), most)| row(end, now, before, *most)));
    (all, world.into_kept().expect("tables in memory").ports)
}

fn is_zero(row: &PortRow) -> bool {
    let PortRow { time_ps, port, .. } = row.clone();
    let (queue_packets, drops, marks) = (0, 0, 0);
    let zero = PortRow {
        time_ps,
        port,
        tx_bytes: 0,
        tx_packets: 0,
        queue_bytes: 0,
        queue_packets,
        queue_max_bytes: 0,
        held_bytes: 0,
        drops,
        marks,
    };
    *row == zero
}

/// The table filled: the ports are those of the first sample, the times go on by its own up to the last row's.
fn filled(rows: &[PortRow]) -> Vec<PortRow> {
    let (first, end) = (rows[0].time_ps, rows[rows.len() - 1].time_ps);
    let ports: Vec<_> = rows.iter().take_while(|row| row.time_ps == first).map(|row| row.port.clone()).collect();
    let there: BTreeMap<_, _> = rows.iter().map(|row| ((row.time_ps, row.port.to_string()), row)).collect();
    assert_eq!(there.len(), rows.len(), "a port has two rows at a time");
    let mut times: BTreeSet<u64> = (1..).map(|k| k * first).take_while(|t| *t < end).collect();
    times.insert(end);
    let none = |time_ps, port| PortRow {
        time_ps,
        port,
        tx_bytes: 0,
        tx_packets: 0,
        queue_bytes: 0,
        queue_packets: 0,
        queue_max_bytes: 0,
        held_bytes: 0,
        drops: 0,
        marks: 0,
    };
    let all = times.into_iter().flat_map(|time| ports.iter().map(move |port| (time, port)));
    all.map(|(time, port)| there.get(&(time, port.to_string())).map_or_else(|| none(time, port.clone()), |row| (*row).clone()))
        .collect()
}

fn accepted(random: &Random) -> bool {
    Scenario::from_toml(&random.with("auto", true), Path::new(".")).is_ok()
}

proptest! {
    #![proptest_config(property(60, 20_30))]

    /// The table, filled with zeros, is what a look after each event finds, for every port at every sample; between the first
    /// and the last sample no row is all zeros. Tolerance: none.
    #[test]
    fn filled_samples_are_what_happened(random in prop_oneof![fifo(), classes()], explicit: bool) {
        prop_assume!(accepted(&random));
        let (reference, rows) = both(&random.with(if explicit { "explicit" } else { "auto" }, true));
        prop_assert_eq!(filled(&rows), reference);
        let ends = [rows[0].time_ps, rows[rows.len() - 1].time_ps];
        let between: Vec<&PortRow> = rows.iter().filter(|row| !ends.contains(&row.time_ps) && is_zero(row)).collect();
        prop_assert!(between.is_empty(), "{:?}", between);
    }
}

/// A network that waits for a timer of 200 ms is sampled 20,000 times and has rows of the time before and after only. What a
/// port of too small a buffer drops while it sends is seen, although nothing waits there.
#[test]
fn an_idle_network_has_no_rows() {
    let ran = run("[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n\
         [switch]\nbuffer = { kind = \"static\", per_port = \"0 packets\" }\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\nrto_initial = \"200ms\"\nrto_min = \"200ms\"\n\
         [telemetry]\nsample = \"10us\"\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h3\"\nsize = \"1000B\"\n");
    let rows = &ran.kept.ports;
    assert!(ran.now.ps() > 200_000_000_000, "{}", ran.now);
    assert!(rows.len() < 100, "{}", rows.len());
    assert_eq!(rows.iter().map(|row| u64::from(row.drops)).sum::<u64>(), ran.totals.dropped);
    for port in &ran.ports {
        let own = || rows.iter().filter(|row| row.port.to_string() == port.name);
        assert_eq!(own().map(|row| row.tx_bytes).sum::<u64>(), port.tx_bytes);
        assert_eq!(own().next_back().map(|row| (row.time_ps, row.queue_bytes)), Some((ran.now.ps(), 0)));
    }
}

/// A run that stops when a sample is due, while a queue stands, has one row for each port of that time, in the order of links.
#[test]
fn the_last_sample_is_taken_once() {
    for sample in ["100us", "1ms"] {
        let ran = run(&format!(
            "duration = \"1ms\"\n[topology]\nkind = \"single_switch\"\nhosts = 9\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = {{ kind = \"static\", per_port = \"400KB\" }}\n[transport]\nkind = \"tcp\"\n\
             [telemetry]\nsample = \"{sample}\"\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsize = \"2MB\"\n"
        ));
        let last: Vec<&PortRow> = ran.kept.ports.iter().filter(|row| row.time_ps == ran.now.ps()).collect();
        let names = |rows: &[&PortRow]| rows.iter().map(|row| row.port.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&last), ran.ports.iter().map(|port| port.name.clone()).collect::<Vec<_>>());
        assert!(last.iter().any(|row| row.queue_bytes > 0), "no queue stands");
        let sent: u64 = ran.kept.ports.iter().map(|row| row.tx_bytes).sum();
        assert_eq!(sent, ran.ports.iter().map(|port| port.tx_bytes).sum::<u64>());
    }
}
