//! Jobs in the summary of a run. The keys are documented in docs/results.md.

use super::summary::times;
use fanin_telemetry::Name;
use fanin_traffic::{CollectiveJob, CollectiveOp, Together};
use fanin_units::Span;
use serde_json::{json, Map, Value};

/// Summary of completions: their total, the number that is complete, and the times of these.
fn completions(total: u64, together: impl Iterator<Item = Option<Span>>) -> Map<String, Value> {
    let mut done: Vec<u64> = together.flatten().map(Span::ps).collect();
    done.sort_unstable();
    let n = done.len();
    let mut map = Map::new();
    map.insert("total".into(), json!(total));
    map.insert("complete".into(), json!(n));
    map.extend(times(done.into_iter(), n));
    map
}

/// One operation over all iterations and groups; the bandwidths are of the mean time.
fn operation(job: &CollectiveJob, number: u16, op: &CollectiveOp) -> Value {
    let groups = u64::from(job.ranks / op.ranks);
    let runs = job.runs.iter().filter(|run| run.operation == number).map(|run| run.together.time(op.ranks));
    let mut map = completions(u64::from(job.iterations) * groups, runs);
    let mean = map.get("mean_ps").and_then(Value::as_u64).map(Span::from_ps);
    map.insert("operation".into(), json!(number));
    map.insert("collective".into(), json!(op.collective));
    map.insert("algorithm".into(), json!(op.algorithm));
    map.insert("ranks".into(), json!(op.ranks));
    map.insert("size_bytes".into(), json!(op.size.get()));
    map.insert("algbw_bps".into(), json!(mean.map(|time| op.algorithm_bandwidth(time).bps())));
    map.insert("busbw_bps".into(), json!(mean.map(|time| op.bus_bandwidth(time).bps())));
    Value::Object(map)
}

/// Summary of a job.
pub(super) fn job(job: &CollectiveJob, group: &Name) -> Value {
    let time = |together: &Together| together.time(job.ranks);
    let start = job.iteration.first().map(|first| first.start);
    let last = job.iteration.get(job.iterations as usize - 1).filter(|last| time(last).is_some());
    json!({
        "group": group.to_string(),
        "ranks": job.ranks,
        "start_ps": start.map(|at| at.ps()),
        "finish_ps": last.map(|last| last.finish.ps()),
        "time_ps": last.zip(start).map(|(last, start)| last.finish.since(start).ps()),
        "iterations": completions(u64::from(job.iterations), job.iteration.iter().map(time)),
        "operations": (0u16..).zip(&job.operations).map(|(i, op)| operation(job, i, op)).collect::<Vec<_>>(),
    })
}
