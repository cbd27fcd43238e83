//! The numbers that a run comes down to. The keys are documented in docs/results.md.

use crate::flow::Outcome;
use crate::record::Aborted;
use crate::world::World;
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
    let mut reasons = world.recorder.mark_counts.clone();
    let inline = marks - reasons.values().sum::<u64>();
    if inline > 0 {
        *reasons.entry("threshold").or_default() += inline;
    }
    reasons
}

/// What has become of drop notifications; null where switches send none.
fn notifications(world: &World) -> Value {
    let Some(notify) = world.notify.as_deref() else { return Value::Null };
    let c = notify.counts;
    json!({
        "raised": c.raised,
        "attached": c.attached,
        "empty_frames": c.empty_frames,
        "overflowed": c.overflowed,
        "no_way": c.no_way,
        "expired": c.expired,
        "lost": c.lost,
        "on_the_way": notify.on_the_way(),
        "repaired": c.repaired,
        "known": c.known,
        "arrived": c.arrived,
        "unknown": c.unknown,
        "refused": c.refused,
        "unheard": c.unheard,
        "ended": c.ended,
        "largest_queue": notify.peak().map(|(l, bytes)| {
            json!({"port": world.ports[l].name.to_string(), "bytes": bytes.get()})
        }),
    })
}

/// What has become of trimmed packets; null where no switch trims.
fn trimming(world: &World) -> Value {
    let Some(trim) = world.trim.as_deref() else { return Value::Null };
    let c = trim.counts;
    let (headers, nacks) = world.trims_on_the_way();
    json!({
        "trimmed": c.trimmed,
        "tails": c.tails,
        "by_reason": trim.reasons,
        "headers_lost": c.headers_lost,
        "headers_on_the_way": headers,
        "nacked": c.nacked,
        "unheard": c.unheard,
        "not_open": c.not_open,
        "ended": c.ended,
        "nacks_lost": c.nacks_lost,
        "nacks_on_the_way": nacks,
        "nacks_ended": c.nacks_ended,
        "repaired": c.repaired,
        "known": c.known,
        "arrived": c.arrived,
        "unknown": c.unknown,
        "largest_queue": trim.peak().map(|(l, bytes)| {
            json!({"port": world.ports[l].name.to_string(), "bytes": bytes.get()})
        }),
    })
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
    let recorder = &world.recorder;
    let sums = recorder.sums;
    let elapsed = Span::from_ps(world.now.ps());
    let (marks, _) = world.port_totals();
    let hottest = world.hottest_ports();
    let port = |l: usize| {
        let p = &world.ports[l];
        let wire = Bytes(p.tx_bytes + p.tx_packets * u64::from(world.links[l].gap()));
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
        "goodput_bps": BitRate::of(Bytes(sums.delivered), elapsed).bps(),
        "delivered_bytes": sums.delivered,
        "packets_sent": sums.packets_sent,
        "retransmits": sums.retransmits,
        "timeouts": sums.timeouts,
        "marks": marks,
        "drops": recorder.drop_counts.values().sum::<u64>(),
        "marks_by_reason": marks_by_reason(world, marks),
        "drops_by_reason": recorder.drop_counts,
        "notifications": notifications(world),
        "trimming": trimming(world),
        "largest_queue": hottest.first().map(|l| {
            let p = &world.ports[*l];
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
