//! Scenarios: they are checked, and run in steps.

use fanin_analysis::{FlowInfo, PortAnalyzer, Record, Sender, Settings, AT_HEAD, DROPPED, MARKED, REPLACED};
use fanin_params::{Problem, Severity};
use fanin_scenario::Scenario;
use fanin_sim::{Destination, Kept, Pause, World};
use fanin_telemetry::{FlowRow, Name, QueueRow};
use fanin_units::{BitRate, Bytes, Span, Time};
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Rows of tables that a run may keep: at some 64 B each they are most of the memory of a page.
const ROWS: u64 = 4_000_000;
/// Events between two looks at how many rows there are.
const STRIDE: u64 = 200_000;

/// The engine of a page: at most one run at a time.
#[derive(Default)]
pub struct Engine {
    run: Option<Run>,
}

struct Run {
    world: World,
    /// Kinds of transports, by their names.
    transports: BTreeMap<String, String>,
    watched: Vec<String>,
    stop: Option<Time>,
    done: bool,
}

impl Engine {
    pub fn check(text: &str) -> Value {
        Self::checked(text).1
    }

    fn checked(text: &str) -> (Option<Scenario>, Value) {
        let read = Scenario::from_toml(text, Path::new("."));
        let (problems, scenario) = match read {
            Ok(scenario) => match no_sockets(&scenario) {
                refused if refused.is_empty() => (scenario.warnings().to_vec(), Some(scenario)),
                refused => (refused, None),
            },
            Err(problems) => (problems, None),
        };
        let watched = scenario.as_ref().map(ports).unwrap_or_default();
        let answer = json!({
            "problems": problems.iter().map(problem).collect::<Vec<_>>(),
            "notes": scenario.as_ref().map(|s| s.notes().to_vec()),
            "hash": scenario.as_ref().map(Scenario::hash),
            "watched": watched,
        });
        (scenario, answer)
    }

    pub fn start(&mut self, text: &str) -> Result<Value, String> {
        self.run = None;
        let (scenario, answer) = Self::checked(text);
        let Some(scenario) = scenario else { return Ok(answer) };
        let world = fanin_sim::world(&scenario, &Destination::Memory).map_err(|error| error.to_string())?;
        let kinds = scenario.transports().iter().map(|(name, transport)| (name.clone(), transport.kind().to_string()));
        self.run =
            Some(Run { world, transports: kinds.collect(), watched: ports(&scenario), stop: scenario.stop(), done: false });
        Ok(answer)
    }

    pub fn advance(&mut self, events: u64) -> Result<Value, String> {
        let run = self.run.as_mut().ok_or(NO_RUN)?;
        let mut left = events;
        while left > 0 && !run.done {
            let budget = left.min(STRIDE);
            left -= budget;
            match run.world.advance(budget).map_err(|error| error.to_string())? {
                Pause::Budget => {}
                Pause::Done => run.done = true,
                Pause::Stuck(message) => return Err(message),
            }
            if run.world.rows() > ROWS {
                return Err(format!(
                    "the tables of this run have more than {ROWS} rows, which is as much as a page may hold; record less ([telemetry]), or \
                     run it with `fanin run`"
                ));
            }
        }
        let totals = run.world.totals();
        let ports = run.world.ports_now();
        let hottest = ports.iter().filter(|port| port.switch.is_some()).max_by_key(|port| port.peak_bytes);
        let shown = ports.iter().filter(|port| run.watched.contains(&port.name));
        let shown = shown.chain(hottest.filter(|port| !run.watched.contains(&port.name)));
        Ok(json!({
            "done": run.done,
            "now_ps": run.world.now().ps(),
            "stop_ps": run.stop.map(Time::ps),
            "packet_hops": totals.packet_hops,
            "flows_done": totals.ended,
            "ports": shown.map(|port| json!({
                "name": port.name,
                "queue_bytes": port.queue_bytes,
                "peak_bytes": port.peak_bytes,
                "tx_bytes": port.tx_bytes,
                "drops": port.drops,
                "marks": port.marks,
            })).collect::<Vec<_>>(),
        }))
    }

    pub fn finish(&mut self, points: usize) -> Result<Value, String> {
        let Run { world, transports, watched, .. } = self.run.take().ok_or(NO_RUN)?;
        let mut facts = Map::new();
        world.describe_watched(&mut facts);
        let kept = world.into_kept().map_err(|error| error.to_string())?;
        let flows = Arc::new(known(&kept.flows, &transports));
        let mut ports = Vec::new();
        for (i, name) in watched.iter().enumerate() {
            let port = Name::from(name.as_str());
            let rows: Vec<&QueueRow> = kept.queues.iter().filter(|row| row.port == port).collect();
            let report = report(name, &facts["watched"][i], &rows, flows.clone())?;
            ports.push(json!({ "port": name, "queue": reduced(&rows, points), "report": report }));
        }
        Ok(json!({
            "fingerprint": format!("{:016x}", kept.fingerprint),
            "summary": kept.summary,
            "flows": ended(&kept),
            "ports": ports,
        }))
    }
}

const NO_RUN: &str = "no run is under way: start one first";

/// Names of the ports that a scenario watches.
fn ports(scenario: &Scenario) -> Vec<String> {
    scenario.watched().iter().map(|link| scenario.topology().link_name(*link)).collect()
}

/// A page has no sockets: what a block outside decides cannot run here.
fn no_sockets(scenario: &Scenario) -> Vec<Problem> {
    let refused = |path: String| Problem {
        severity: Severity::Error,
        path,
        line: None,
        value: None,
        message: "asks a block at a socket, which a page cannot reach".to_string(),
        accepted: Some("any other policy".to_string()),
        suggestion: Some("run it by the command fanin".to_string()),
    };
    fanin_sim::asked_at(scenario).into_iter().map(refused).collect()
}

fn problem(p: &Problem) -> Value {
    json!({
        "severity": if p.severity == Severity::Error { "error" } else { "warning" },
        "path": p.path,
        "line": p.line,
        "value": p.value,
        "message": p.message,
        "accepted": p.accepted,
        "suggestion": p.suggestion,
        "text": p.to_string(),
    })
}

/// Flows for the analysis, as it reads them of a result.
fn known(flows: &[FlowRow], transports: &BTreeMap<String, String>) -> BTreeMap<u32, FlowInfo> {
    let sender = |name: &str| match transports.get(name).map(String::as_str) {
        Some("tcp") => Sender::SlowStart,
        Some(kind) => Sender::Other(kind.into()),
        None if name == "udp" => Sender::Other("udp".into()),
        None => Sender::Unknown,
    };
    let info = |row: &FlowRow| FlowInfo {
        src: Some(row.src.to_string().into()),
        dst: Some(row.dst.to_string().into()),
        start: Some(Time::from_ps(row.start_ps)),
        base_rtt: Some(Span::from_ps(row.base_rtt_ps)),
        sender: sender(&row.transport.to_string()),
        name: match &row.id {
            Some(id) => format!("{id}: {} → {}", row.src, row.dst).into(),
            None => format!("{}: {} → {}", row.flow, row.src, row.dst).into(),
        },
        ..FlowInfo::default()
    };
    flows.iter().map(|row| (row.flow, info(row))).collect()
}

/// Bursts of a port, with their phases and laws.
fn report(port: &str, facts: &Value, rows: &[&QueueRow], flows: Arc<BTreeMap<u32, FlowInfo>>) -> Result<Value, String> {
    let settings = Settings {
        rate: facts["rate_bps"].as_u64().map(BitRate),
        rate_of_result: true,
        overhead: facts["overhead_bytes"].as_u64().map_or(Settings::default().overhead, Bytes),
        ..Settings::default()
    };
    let mut analyzer = PortAnalyzer::new(&settings, port, Arc::new(move |flow| flows.get(&flow).cloned().unwrap_or_default()));
    for row in rows {
        analyzer.push(&record(row)).map_err(|disorder| disorder.to_string())?;
    }
    serde_json::to_value(analyzer.finish()).map_err(|error| error.to_string())
}

fn record(row: &QueueRow) -> Record {
    let flag = |on, flag| if on { flag } else { 0 };
    let dropped = flag(row.dropped, DROPPED) | flag(row.at_head, AT_HEAD);
    Record {
        time: Time::from_ps(row.time_ps),
        queue: row.queue_bytes,
        frame: u32::from(row.frame_bytes),
        flow: row.flow,
        flags: dropped | flag(row.marked, MARKED) | flag(row.replaced, REPLACED),
    }
}

/// A port's queue over time: all records, or of each of `points` / 2 stretches of equally many records its lowest and its highest. Drops
/// and marks are those since the point before.
fn reduced(rows: &[&QueueRow], points: usize) -> Value {
    let stretch = if rows.len() <= points.max(2) { 1 } else { (2 * rows.len()).div_ceil(points.max(2)) };
    let (mut time, mut queue, mut drops, mut marks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for part in rows.chunks(stretch) {
        let (low, high) = (part.iter().min_by_key(|r| r.queue_bytes), part.iter().max_by_key(|r| r.queue_bytes));
        let mut chosen: Vec<&QueueRow> = low.into_iter().chain(high).copied().collect();
        chosen.sort_by_key(|row| row.time_ps);
        chosen.dedup_by_key(|row| row.time_ps);
        let (mut dropped, mut marked) = (0, 0);
        part.iter().for_each(|row| (dropped, marked) = (dropped + u32::from(row.dropped), marked + u32::from(row.marked)));
        for row in chosen {
            time.push(row.time_ps);
            queue.push(row.queue_bytes);
            drops.push(std::mem::take(&mut dropped));
            marks.push(std::mem::take(&mut marked));
        }
    }
    json!({ "time_ps": time, "queue_bytes": queue, "dropped": drops, "marked": marks, "records": rows.len() })
}

/// Completion times \[ps\] of the flows that are complete, and how many are not.
fn ended(kept: &Kept) -> Value {
    let times: Vec<u64> = kept.flows.iter().filter_map(|row| Some(row.finish_ps? - row.start_ps)).collect();
    json!({ "fct_ps": times, "unfinished": kept.flows.len() - times.len() })
}
