//! The numbers that summarise a run. The keys are documented in docs/results.md.

use super::collectives;
use super::counters::{MESSAGES, NICS, TRIMMED};
use crate::core::faults::LinkCounts;
use crate::core::port::Owner;
use crate::fabric::combined::Depth;
use crate::hosts::order::{Reordering, THRESHOLD};
use crate::hosts::receive::Receivers;
use crate::ledger::{Aborted, Outcome, SIZES};
use crate::world::World;
use fanin_packet::Header;
use fanin_params::{CounterDef, Counters};
use fanin_switch::MechanismState;
use fanin_traffic::CollectiveJob;
use fanin_transport::AbortReason;
use fanin_units::{BitRate, Bytes, LinkId, Span, SwitchId};
use serde_json::{json, Map, Value};
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

/// Flow sizes that the summary distinguishes: all, then those between [`SIZES`].
const BINS: [(&str, u64, Option<u64>); SIZES.len() + 2] = [
    ("all", 0, None),
    ("<10KB", 0, Some(SIZES[0])),
    ("10KB-100KB", SIZES[0], Some(SIZES[1])),
    ("100KB-1MB", SIZES[1], Some(SIZES[2])),
    (">=1MB", SIZES[2], None),
];

/// Median, 95th and 99th percentile of `n` values in order: the smallest value that at least so many of them do not exceed
/// (nearest rank). `each` is given all values.
fn quantiles<T: Copy>(sorted: impl Iterator<Item = T>, n: usize, mut each: impl FnMut(T)) -> [Option<T>; 3] {
    let ranks = [0.5, 0.95, 0.99].map(|q| (libm::ceil(q * n as f64) as usize).max(1) - 1);
    let mut found = [None; 3];
    for (i, value) in sorted.enumerate() {
        each(value);
        for (found, _) in found.iter_mut().zip(ranks).filter(|(_, rank)| *rank == i) {
            *found = Some(value);
        }
    }
    found
}

/// Mean and quantiles of `n` times in order.
pub(super) fn times(sorted: impl Iterator<Item = u64>, n: usize) -> Map<String, Value> {
    let mut sum = 0;
    let found = quantiles(sorted, n, |time| sum += u128::from(time));
    let mut map = Map::new();
    map.insert("mean_ps".into(), json!((n > 0).then(|| (sum / n as u128) as u64)));
    map.extend(["p50_ps", "p95_ps", "p99_ps"].into_iter().zip(found).map(|(name, time)| (name.into(), json!(time))));
    map
}

/// Mean and quantiles of `n` slowdowns in order.
fn slowdowns(sorted: impl Iterator<Item = f64>, n: usize) -> Map<String, Value> {
    let mut sum = 0.0;
    let found = quantiles(sorted, n, |slowdown| sum += slowdown);
    let mut map = Map::new();
    map.insert("slowdown_mean".into(), json!((n > 0).then(|| sum / n as f64)));
    let names = ["slowdown_p50", "slowdown_p95", "slowdown_p99"];
    map.extend(names.into_iter().zip(found).map(|(name, slowdown)| (name.into(), json!(slowdown))));
    map
}

/// The values of sorted lists, in order.
fn merged<'a, T: Copy>(mut lists: Vec<&'a [T]>, order: fn(&T, &T) -> Ordering) -> impl Iterator<Item = T> + 'a {
    std::iter::from_fn(move || {
        let least = lists.iter_mut().filter(|list| !list.is_empty()).min_by(|a, b| order(&a[0], &b[0]))?;
        let (first, rest) = least.split_first()?;
        *least = rest;
        Some(*first)
    })
}

/// Completion times and slowdowns of all flows and by their sizes. The outcomes are sorted where they are: there may be millions.
fn fct(outcomes: &mut [Vec<Outcome>; SIZES.len() + 1]) -> Vec<Value> {
    let by_time = |a: &Outcome, b: &Outcome| a.fct.cmp(&b.fct);
    outcomes.iter_mut().for_each(|some| some.sort_unstable_by(by_time));
    let mut bins = Vec::new();
    for (i, (name, from, to)) in BINS.into_iter().enumerate() {
        let (lists, flows) = bin(outcomes, i);
        let mut map = times(merged(lists, by_time).map(|outcome| outcome.fct.ps()), flows);
        map.insert("bin".into(), json!(name));
        map.insert("from_bytes".into(), json!(from));
        map.insert("to_bytes".into(), json!(to));
        map.insert("flows".into(), json!(flows));
        bins.push(map);
    }
    let by_slowdown = |a: &Outcome, b: &Outcome| a.slowdown.total_cmp(&b.slowdown);
    outcomes.iter_mut().for_each(|some| some.sort_unstable_by(by_slowdown));
    for (i, map) in bins.iter_mut().enumerate() {
        let (lists, flows) = bin(outcomes, i);
        map.extend(slowdowns(merged(lists, by_slowdown).map(|outcome| outcome.slowdown), flows));
    }
    bins.into_iter().map(Value::Object).collect()
}

/// The outcomes of a bin, and their number.
fn bin(outcomes: &[Vec<Outcome>], bin: usize) -> (Vec<&[Outcome]>, usize) {
    let chosen = if bin == 0 { outcomes } else { &outcomes[bin - 1..bin] };
    (chosen.iter().map(Vec::as_slice).collect(), chosen.iter().map(Vec::len).sum())
}

/// Marks by reason: those that the pipeline counted, and the rest, which the inner loop made by plain thresholds.
fn marks_by_reason(world: &World, marks: u64) -> BTreeMap<&'static str, u64> {
    let mut reasons = BTreeMap::new();
    for (reason, count) in &world.core.ledger.tables.mark_counts {
        *reasons.entry(*reason).or_default() += count;
    }
    let inline = marks - reasons.values().sum::<u64>();
    if inline > 0 {
        *reasons.entry("threshold").or_default() += inline;
    }
    reasons
}

fn add<const N: usize>(group: &mut Map<String, Value>, defs: [CounterDef; N], counts: [u64; N]) {
    group.extend(defs.iter().zip(counts).map(|(def, n)| (def.name.to_string(), json!(n))));
}

/// The counts of mechanisms that run and of signals at hosts, by group.
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
    let states = || {
        (0..)
            .map(SwitchId)
            .zip(world.fabric.switches.iter())
            .flat_map(|(s, switch)| switch.mechanisms.iter().map(move |m| (s, m)))
    };
    for (name, group) in &mut groups {
        let Value::Object(group) = group else { continue };
        let ours = || states().filter(|(_, m)| m.counts().name == name);
        let Some((_, first)) = ours().next() else { continue };
        let profile = first.kind().profile;
        if profile.pauses().is_some() {
            let nics = &world.hosts.pause_counts;
            add(group, NICS, [nics.frames, nics.storms, nics.storms_over]);
        }
        if profile.messages.is_some() {
            let waiting: u64 = ours().filter_map(|(_, m)| m.attaches(|m| m.messages())).sum();
            let travelling = world.existing(|envelope, header| {
                matches!(header, Header::Control(c) if profile.owns(c.ether_type)) && envelope.ttl > 0
            });
            add(group, MESSAGES, [world.after_end(name), waiting + travelling]);
        }
        if profile.signals.has(fanin_packet::Signals::TRIMMED) {
            let (headers, signals) = world.trimmed_and_signals_on_the_way();
            let totals = world.totals();
            add(group, TRIMMED, [totals.stray_trimmed, headers, totals.dropped_signals, totals.stray_signals, signals]);
        }
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        ours().flat_map(|(_, m)| m.by_reason()).for_each(|(reason, n)| *reasons.entry(reason).or_default() += n);
        if !reasons.is_empty() {
            group.insert("by_reason".into(), json!(reasons));
        }
        for (def, value) in ours().flat_map(|(_, m)| m.largest_values()) {
            let most = group.get(def.name).and_then(Value::as_u64).unwrap_or(0);
            group.insert(def.name.to_string(), json!(most.max(value)));
        }
        let link = |s: SwitchId, port: fanin_switch::PortNo| world.fabric.switches[s].ports[port.index()];
        let longest = |s: SwitchId, m: &MechanismState| match m.overtakes(|_| ()) {
            Some(()) => world.fabric.switches[s].express_peak(&world.core),
            None => m.peaks(|m| m.longest_queue()).flatten(),
        };
        let peaks = ours().filter_map(|(s, m)| longest(s, m).map(|(port, bytes)| (link(s, port), bytes)));
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

/// Summary of reordering over all flows, of packets with payload. Shares are of the packets. `buffered`: packets that waited in
/// hosts until they were in order, and gaps given up there.
fn reordering(r: &Reordering, buffered: Option<(u64, u64)>) -> Value {
    let share = |n: u64| if r.packets == 0 { 0.0 } else { n as f64 / r.packets as f64 };
    let displaced: u64 = r.displaced.values().sum();
    let in_place = r.packets - displaced - r.beyond;
    let mut density: BTreeMap<i32, u64> = r.displaced.clone();
    if in_place > 0 {
        density.insert(0, in_place);
    }
    let mut all = json!({
        "packets": r.packets,
        "reordered": r.reordered,
        "reordered_share": share(r.reordered),
        "reordered_3": r.three,
        "flows": r.flows_reordered,
        "extent_max": r.extent_max,
        "late_max_ps": r.late_max.ps(),
        "extents": r.extents.iter().map(|(upto, n)| json!({"upto": upto, "packets": n})).collect::<Vec<_>>(),
        "density": {
            "threshold": THRESHOLD,
            "beyond": r.beyond,
            "displacements": density.iter().map(|(by, n)| json!({"displacement": by, "packets": n, "share": share(*n)})).collect::<Vec<_>>(),
        },
    });
    if let Some((waited, given_up)) = buffered {
        all["buffer"] = json!({"waited": waited, "given_up": given_up});
    }
    all
}

/// The content of summary.json.
pub(crate) fn summary(
    world: &World,
    (queries, jobs): (&[Option<Span>], &[CollectiveJob]),
    outcomes: &mut [Vec<Outcome>; SIZES.len() + 1],
) -> Value {
    let recorder = &world.core.ledger.tables;
    let (sums, datagrams) = (recorder.sums, recorder.datagram_sums);
    // What follows the last flow, such as a wait for delayed acknowledgments, would only dilute what is per time.
    let elapsed = Span::from_ps(recorder.flows_until.ps());
    let (marks, _) = world.port_totals();
    let hottest = world.hottest_ports();
    let port = |l: LinkId| {
        let (p, link) = (&world.core.ports[l], &world.core.links[l]);
        let [tx_bytes, tx_packets] = p.sent(link);
        let wire = Bytes(tx_bytes + tx_packets * u64::from(link.gap()));
        let used = if elapsed == Span::ZERO { 0.0 } else { p.rate.time_to_send(wire).ps() as f64 / elapsed.ps() as f64 };
        let mut row = json!({
            "port": p.name.to_string(),
            "tx_bytes": tx_bytes,
            "drops": p.drops,
            "pauses": world.core.gates.get(&l).map_or(0, |gate| gate.pauses.iter().sum::<u64>()),
            "paused_ps": world.core.gates.get(&l).map_or(0, |gate| gate.paused.iter().map(|paused| paused.ps()).sum::<u64>()),
            "utilisation": used,
        });
        // The largest queue of a host's NIC is not recorded, and it marks nothing.
        if matches!(p.owner, Owner::Switch(..)) {
            row["max_bytes"] = json!(p.peak_bytes);
            row["max_packets"] = json!(p.peak_packets);
            row["marks"] = json!(p.marks);
        }
        row
    };
    let mut query_times = Map::new();
    query_times.insert("total".into(), json!(queries.len()));
    query_times.insert("complete".into(), json!(queries.iter().flatten().count()));
    let mut answered: Vec<u64> = queries.iter().flatten().map(|t| t.ps()).collect();
    answered.sort_unstable();
    let n = answered.len();
    query_times.extend(times(answered.into_iter(), n));
    let mut all = json!({
        "flows": {
            "total": sums.complete + sums.incomplete + sums.aborted,
            "complete": sums.complete,
            "incomplete": sums.incomplete,
            "aborted": sums.aborted,
        },
        "aborted": recorder.aborted.iter().map(|(_, flow)| aborted(flow)).collect::<Vec<_>>(),
        "fct": fct(outcomes),
        "queries": query_times,
        "collectives": jobs.iter().map(|job| collectives::job(job, &recorder.group(job.entry))).collect::<Vec<_>>(),
        "datagrams": {
            "flows": datagrams.flows,
            "sent": datagrams.sent,
            "received": datagrams.received,
            "delivered_bytes": datagrams.delivered,
        },
        "flows_until_ps": elapsed.ps(),
        "goodput_bps": BitRate::of(Bytes(sums.delivered + datagrams.delivered), elapsed).bps(),
        "delivered_bytes": sums.delivered + datagrams.delivered,
        "packets_sent": sums.packets_sent,
        "retransmits": sums.retransmits,
        "timeouts": sums.timeouts,
        "reordering": reordering(&world.hosts.reordering, world.hosts.receivers.as_deref().and_then(Receivers::put_in_order)),
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
        "host_ports": world.troubled_hosts().iter().take(16).map(|l| port(*l)).collect::<Vec<_>>(),
    });
    if !world.core.faults.is_empty() {
        all["links"] = world
            .core
            .faults
            .iter()
            .map(|(l, fault)| lossy_link(&world.core.ports[*l].name.to_string(), &fault.counts))
            .collect();
    }
    if !world.fabric.crossbars.is_empty() {
        all["input_ports"] = input_ports(world);
    }
    all
}

/// Losses on a link with events, and at its port.
fn lossy_link(name: &str, counts: &LinkCounts) -> Value {
    let mut row = json!({ "link": name });
    for (def, count) in LinkCounts::defs().iter().zip(counts.values()) {
        row[def.name] = json!(count);
    }
    row
}

/// The inputs of combined switches in which most has waited, by the links that come in.
fn input_ports(world: &World) -> Value {
    let crossbars = (0..).map(SwitchId).zip(world.fabric.crossbars.iter());
    let mut inputs: Vec<(LinkId, Depth)> =
        crossbars.flat_map(|(s, x)| x.depths().map(move |(port, depth)| (world.link_into(s, port), depth))).collect();
    inputs.sort_by_key(|(l, depth)| (Reverse(depth.peak), *l));
    let row = |(l, depth): &(LinkId, Depth)| json!({ "input": world.core.ports[*l].name.to_string(), "max_bytes": depth.peak, "drops": depth.drops });
    inputs.iter().take(16).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_flow_is_small() {
        assert_eq!(std::mem::size_of::<Outcome>(), 16, "50 million flows shall fit into 1 GB");
    }

    #[test]
    fn quantiles_are_nearest_rank() {
        let of = |n: u64| quantiles(1..=n, n as usize, |_| ());
        assert_eq!(of(100), [Some(50), Some(95), Some(99)]);
        assert_eq!(of(1), [Some(1); 3]);
        assert_eq!(of(0), [None; 3]);
    }

    #[test]
    fn bins_hold_their_flows_and_all_holds_them_in_order() {
        let o = |fct: u64, slowdown: f64| Outcome { fct: Span::from_ps(fct), slowdown };
        let mut outcomes = [vec![o(40, 1.0), o(20, 2.0)], vec![o(30, 4.0)], vec![], vec![o(10, 3.0)]];
        let fct = fct(&mut outcomes);
        assert_eq!(fct.iter().map(|bin| bin["flows"].as_u64().unwrap()).collect::<Vec<_>>(), [4, 2, 1, 0, 1]);
        assert_eq!((&fct[0]["p50_ps"], &fct[0]["p99_ps"], &fct[0]["mean_ps"]), (&json!(20), &json!(40), &json!(25)));
        assert_eq!((&fct[0]["slowdown_p50"], &fct[0]["slowdown_mean"]), (&json!(2.0), &json!(2.5)));
        assert_eq!((&fct[1]["p50_ps"], &fct[1]["slowdown_p95"]), (&json!(20), &json!(2.0)));
        assert_eq!((&fct[3]["mean_ps"], &fct[3]["slowdown_mean"]), (&Value::Null, &Value::Null));
        let bounds: Vec<_> = fct.iter().map(|bin| (bin["from_bytes"].as_u64().unwrap(), bin["to_bytes"].as_u64())).collect();
        let kilobytes = [(0, None), (0, Some(10)), (10, Some(100)), (100, Some(1000)), (1000, None)];
        assert_eq!(bounds, kilobytes.map(|(from, to)| (from * 1000, to.map(|to| to * 1000))));
    }
}
