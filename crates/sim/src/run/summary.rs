//! The numbers that summarise a run. The keys are documented in docs/results.md.

use super::counters::{MESSAGES, TRIMMED};
use crate::ledger::{Aborted, Outcome};
use crate::world::World;
use fanin_packet::Header;
use fanin_params::CounterDef;
use fanin_transport::AbortReason;
use fanin_units::{BitRate, Bytes, Span};
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;

/// Flow-size bins: those in which the papers of this field report. kB = 1000.
const BINS: [(&str, u64, u64); 5] = [
    ("all", 0, u64::MAX),
    ("<10KB", 0, 10_000),
    ("10KB-100KB", 10_000, 100_000),
    ("100KB-1MB", 100_000, 1_000_000),
    (">=1MB", 1_000_000, u64::MAX),
];

/// The `q`-quantile of a sorted list: the smallest value that at least `q` of them do not exceed (nearest rank).
fn quantile<T: Copy>(sorted: &[T], q: f64) -> Option<T> {
    let rank = libm::ceil(q * sorted.len() as f64) as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Mean and quantiles of times.
fn times(mut all: Vec<u64>) -> Map<String, Value> {
    all.sort_unstable();
    let mut map = Map::new();
    let mean = (!all.is_empty()).then(|| all.iter().map(|t| u128::from(*t)).sum::<u128>() / all.len() as u128);
    map.insert("mean_ps".into(), json!(mean.map(|m| m as u64)));
    for (name, q) in [("p50_ps", 0.5), ("p95_ps", 0.95), ("p99_ps", 0.99)] {
        map.insert(name.into(), json!(quantile(&all, q)));
    }
    map
}

fn bin(name: &str, from: u64, to: u64, outcomes: &[Outcome]) -> Value {
    let inside = || outcomes.iter().filter(|o| (from..to).contains(&o.size) || (o.size == to && to == u64::MAX));
    let done: Vec<(u64, f64)> =
        inside().filter_map(|o| o.fct.map(|fct| (fct.ps(), fct.ps() as f64 / o.ideal.ps().max(1) as f64))).collect();
    let mut map = Map::new();
    map.insert("bin".into(), json!(name));
    map.insert("from_bytes".into(), json!(from));
    map.insert("to_bytes".into(), if to == u64::MAX { Value::Null } else { json!(to) });
    map.insert("flows".into(), json!(done.len()));
    map.extend(times(done.iter().map(|d| d.0).collect()));
    let mut slowdowns: Vec<f64> = done.iter().map(|d| d.1).collect();
    slowdowns.sort_unstable_by(f64::total_cmp);
    let mean = (!slowdowns.is_empty()).then(|| slowdowns.iter().sum::<f64>() / slowdowns.len() as f64);
    map.insert("slowdown_mean".into(), json!(mean));
    for (key, q) in [("slowdown_p50", 0.5), ("slowdown_p95", 0.95), ("slowdown_p99", 0.99)] {
        map.insert(key.into(), json!(quantile(&slowdowns, q)));
    }
    Value::Object(map)
}

/// Marks by reason: what the pipeline counted, and the rest, which the inner loop made by plain thresholds.
fn marks_by_reason(world: &World, marks: u64) -> BTreeMap<&'static str, u64> {
    let mut reasons = world.core.ledger.tables.mark_counts.clone();
    let inline = marks - reasons.values().sum::<u64>();
    if inline > 0 {
        *reasons.entry("threshold").or_default() += inline;
    }
    reasons
}

fn add<const N: usize>(group: &mut Map<String, Value>, defs: [CounterDef; N], counts: [u64; N]) {
    group.extend(defs.iter().zip(counts).map(|(def, n)| (def.name.to_string(), json!(n))));
}

/// What the mechanisms of switches and the signals at hosts have counted, by group; those that run.
fn mechanisms(world: &World) -> Value {
    let mut groups = Map::new();
    for group in world.mechanism_counts() {
        let counters = group.counters.iter().map(|(def, n)| (def.name.to_string(), json!(n)));
        groups.insert(group.name.to_string(), Value::Object(counters.collect()));
    }
    for (name, _, counters) in world.signals().groups() {
        let Some(Value::Object(group)) = groups.get_mut(name) else { continue };
        group.extend(counters.into_iter().map(|(def, n)| (def.name.to_string(), json!(n))));
    }
    let states = || (0..).zip(world.fabric.switches.iter()).flat_map(|(s, switch)| switch.mechanisms.iter().map(move |m| (s, m)));
    for (name, group) in &mut groups {
        let Value::Object(group) = group else { continue };
        let ours = || states().filter(|(_, m)| m.counts().name == name);
        let Some((_, first)) = ours().next() else { continue };
        if first.sends_messages() {
            let waiting: u64 = ours().map(|(_, m)| m.messages()).sum();
            let travelling = world.existing(|envelope, header| {
                matches!(header, Header::Control(c) if first.owns(c.ether_type)) && envelope.ttl > 0
            });
            add(group, MESSAGES, [world.after_end(name), waiting + travelling]);
        }
        if first.signals().has(fanin_packet::Signals::TRIMMED) {
            let (headers, signals) = world.trimmed_and_signals_on_the_way();
            let totals = world.totals();
            add(group, TRIMMED, [totals.stray_trimmed, headers, totals.dropped_signals, totals.stray_signals, signals]);
        }
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        ours().flat_map(|(_, m)| m.by_reason()).for_each(|(reason, n)| *reasons.entry(reason).or_default() += n);
        if !reasons.is_empty() {
            group.insert("by_reason".into(), json!(reasons));
        }
        let link = |s: usize, port: fanin_switch::PortNo| world.fabric.switches[s].ports[port.index()] as usize;
        let peaks = ours().filter_map(|(s, m)| m.peak().map(|(port, bytes)| (link(s, port), bytes)));
        let largest = peaks.min_by_key(|(l, bytes)| (std::cmp::Reverse(*bytes), *l));
        group.insert(
            "largest_queue".into(),
            json!(largest.map(|(l, bytes)| json!({"port": world.core.ports[l].name.to_string(), "bytes": bytes.get()}))),
        );
    }
    Value::Object(groups)
}

fn aborted(flow: &Aborted) -> Value {
    let reason = match flow.reason {
        AbortReason::RetriesExhausted => "retries_exhausted",
        AbortReason::Reset => "reset",
    };
    json!({
        "flow": flow.flow,
        "src": flow.src.to_string(),
        "dst": flow.dst.to_string(),
        "size_bytes": flow.size,
        "reason": reason,
    })
}

/// The content of summary.json.
pub(crate) fn summary(world: &World, queries: &[Option<Span>]) -> Value {
    let recorder = &world.core.ledger.tables;
    let (sums, datagrams) = (recorder.sums, recorder.datagram_sums);
    let elapsed = Span::from_ps(world.core.now.ps());
    let (marks, _) = world.port_totals();
    let hottest = world.hottest_ports();
    let port = |l: usize| {
        let p = &world.core.ports[l];
        let wire = Bytes(p.tx_bytes + p.tx_packets * u64::from(world.core.links[l].gap()));
        let used = if elapsed == Span::ZERO { 0.0 } else { p.rate.time_to_send(wire).ps() as f64 / elapsed.ps() as f64 };
        json!({
            "port": p.name.to_string(),
            "max_bytes": p.peak_bytes,
            "max_packets": p.peak_packets,
            "tx_bytes": p.tx_bytes,
            "drops": p.drops,
            "marks": p.marks,
            "utilisation": used,
        })
    };
    let mut query_times = Map::new();
    query_times.insert("total".into(), json!(queries.len()));
    query_times.insert("complete".into(), json!(queries.iter().flatten().count()));
    query_times.extend(times(queries.iter().flatten().map(|t| t.ps()).collect()));
    json!({
        "flows": {
            "total": sums.complete + sums.incomplete + sums.aborted,
            "complete": sums.complete,
            "incomplete": sums.incomplete,
            "aborted": sums.aborted,
        },
        "aborted": recorder.aborted.iter().map(aborted).collect::<Vec<_>>(),
        "fct": BINS.iter().map(|(name, from, to)| bin(name, *from, *to, &recorder.outcomes)).collect::<Vec<_>>(),
        "queries": query_times,
        "datagrams": {
            "flows": datagrams.flows,
            "sent": datagrams.sent,
            "received": datagrams.received,
            "delivered_bytes": datagrams.delivered,
        },
        "goodput_bps": BitRate::of(Bytes(sums.delivered + datagrams.delivered), elapsed).bps(),
        "delivered_bytes": sums.delivered + datagrams.delivered,
        "packets_sent": sums.packets_sent,
        "retransmits": sums.retransmits,
        "timeouts": sums.timeouts,
        "marks": marks,
        "drops": recorder.drop_counts.values().sum::<u64>(),
        "marks_by_reason": marks_by_reason(world, marks),
        "drops_by_reason": recorder.drop_counts,
        "mechanisms": mechanisms(world),
        "largest_queue": hottest.first().map(|l| {
            let p = &world.core.ports[*l];
            json!({"port": p.name.to_string(), "bytes": p.peak_bytes, "packets": p.peak_packets, "time_ps": p.peak_time.ps()})
        }),
        "ports": hottest.iter().take(16).map(|l| port(*l)).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_rank() {
        let v: Vec<u64> = (1..=100).collect();
        assert_eq!(quantile(&v, 0.5), Some(50));
        assert_eq!(quantile(&v, 0.99), Some(99));
        assert_eq!(quantile(&v[..1], 0.99), Some(1));
        assert_eq!(quantile::<u64>(&[], 0.5), None);
    }

    #[test]
    fn bins_hold_their_flows_and_incomplete_ones_do_not_count() {
        let o = |size, fct: Option<u64>| Outcome { size, fct: fct.map(Span::from_ps), ideal: Span::from_ps(10) };
        let all = [o(9_999, Some(20)), o(10_000, Some(40)), o(10_000, None), o(u64::MAX, Some(10))];
        assert_eq!(bin("a", 0, 10_000, &all)["flows"], 1);
        let middle = bin("b", 10_000, 100_000, &all);
        assert_eq!((middle["flows"].as_u64(), middle["slowdown_mean"].as_f64()), (Some(1), Some(4.0)));
        assert_eq!(bin("all", 0, u64::MAX, &all)["flows"], 3);
    }
}
