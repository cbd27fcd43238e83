//! `fanin._core`: scenarios in, result folders out. The global interpreter lock is released while a run is under way.

mod analyze;
mod explain;
mod facts;
mod live;
mod sweep;
mod usage;
mod watcher;

use crate::watcher::Watcher;
use fanin_params::{Problem, Severity};
use fanin_scenario::Scenario;
use fanin_sim::{Control, KeepWaiting, Observer, Progress, RunError};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::{Path, PathBuf};
use std::time::Instant;

pyo3::create_exception!(fanin, ScenarioError, PyValueError, "A scenario that cannot be run; `problems` says all that is wrong.");

fn read(text: &str, format: &str, base_dir: &str) -> PyResult<Result<Scenario, Vec<Problem>>> {
    let base = Path::new(base_dir);
    match format {
        "toml" => Ok(Scenario::from_toml(text, base)),
        "json" => Ok(Scenario::from_json(text, base)),
        other => Err(PyValueError::new_err(format!("format is '{other}'; accepted: toml, json"))),
    }
}

fn problem_list<'py>(py: Python<'py>, problems: &[Problem]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for p in problems {
        let entry = PyDict::new(py);
        entry.set_item("severity", if p.severity == Severity::Error { "error" } else { "warning" })?;
        entry.set_item("path", &p.path)?;
        entry.set_item("line", p.line)?;
        entry.set_item("value", &p.value)?;
        entry.set_item("message", &p.message)?;
        entry.set_item("accepted", &p.accepted)?;
        entry.set_item("suggestion", &p.suggestion)?;
        list.append(entry)?;
    }
    Ok(list)
}

fn scenario_error(py: Python<'_>, problems: &[Problem]) -> PyErr {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let text = errors.map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let error = ScenarioError::new_err(text);
    match problem_list(py, problems).and_then(|list| error.value(py).setattr("problems", list)) {
        Ok(()) => error,
        Err(failure) => failure,
    }
}

fn to_python<'py>(py: Python<'py>, value: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (value.to_string(),))
}

/// Reads and validates a scenario.
#[pyfunction]
fn check<'py>(py: Python<'py>, text: &str, format: &str, base_dir: &str) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    let result = read(text, format, base_dir)?;
    let (problems, resolved, hash) = match &result {
        Ok(scenario) => (scenario.warnings(), Some(scenario.resolved().to_string()), Some(scenario.hash())),
        Err(problems) => (problems.as_slice(), None, None),
    };
    answer.set_item("problems", problem_list(py, problems)?)?;
    answer.set_item("notes", result.as_ref().map_or(&[][..], Scenario::notes).to_vec())?;
    answer.set_item("resolved", resolved)?;
    answer.set_item("hash", hash)?;
    answer.set_item("rendered", fanin_scenario::render(problems, "scenario"))?;
    Ok(answer)
}

/// The line of what stands at each path of a document in TOML, or of the nearest table around it.
#[pyfunction]
fn lines(text: &str, paths: Vec<String>) -> Vec<Option<u32>> {
    let (document, _) = fanin_scenario::read_toml(text);
    document.map_or_else(|| vec![None; paths.len()], |document| fanin_scenario::lines(&document, &paths))
}

/// Wall-clock and processor time since it was made.
struct Meter {
    wall: Instant,
    cpu: f64,
}

impl Meter {
    fn start() -> Self {
        Meter { wall: Instant::now(), cpu: usage::cpu_seconds() }
    }

    fn read(&self) -> (f64, f64) {
        (self.wall.elapsed().as_secs_f64(), usage::cpu_seconds() - self.cpu)
    }
}

/// A run that reports to Python.
struct Run {
    meter: Meter,
    watcher: Watcher,
}

impl Observer for Run {
    fn progress(&mut self, progress: &Progress) -> Control {
        let meter = &self.meter;
        let goes_on = self.watcher.goes_on(|report| {
            report.set_item("sim_ps", progress.now.ps())?;
            report.set_item("end_ps", progress.stop.map(|t| t.ps()))?;
            report.set_item("events", progress.totals.events)?;
            report.set_item("packet_hops", progress.totals.packet_hops)?;
            report.set_item("flows_done", progress.totals.ended)?;
            report.set_item("flows_total", progress.flows)?;
            report.set_item("wall_s", meter.read().0)
        });
        if goes_on {
            Control::Continue
        } else {
            Control::Stop
        }
    }

    fn cost(&mut self) -> (f64, f64) {
        self.meter.read()
    }

    fn keep_waiting(&self) -> KeepWaiting {
        self.watcher.keep_waiting()
    }
}

/// Runs a scenario, writes its result folder and returns the summary.
#[pyfunction]
fn run<'py>(
    py: Python<'py>,
    text: &str,
    format: &str,
    base_dir: &str,
    out_dir: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let scenario = read(text, format, base_dir)?.map_err(|problems| scenario_error(py, &problems))?;
    let mut run = Run { meter: Meter::start(), watcher: Watcher::new(progress) };
    let result = py.detach(|| fanin_sim::run(&scenario, Path::new(out_dir), &mut run));
    match result {
        _ if run.watcher.stopped() => Err(run.watcher.raised()),
        Ok(outcome) => to_python(py, &outcome.summary),
        Err(error) => Err(run_error(py, error)),
    }
}

fn run_error(py: Python<'_>, error: RunError) -> PyErr {
    match error {
        RunError::Problems(problems) => scenario_error(py, &problems),
        error @ RunError::Write { .. } => PyOSError::new_err(error.to_string()),
        error @ RunError::Stuck(_) => PyRuntimeError::new_err(error.to_string()),
    }
}

/// The JSON Schema of scenarios.
#[pyfunction]
fn schema() -> String {
    fanin_scenario::json_schema()
}

/// The reference page of scenarios, in Markdown.
#[pyfunction]
fn reference() -> String {
    fanin_scenario::reference()
}

/// The source of the typed classes of scenarios.
#[pyfunction]
fn python_types() -> String {
    fanin_scenario::python_types()
}

/// The counters of mechanisms, by group.
#[pyfunction]
fn counters(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let counter =
        |def: &fanin_params::CounterDef| serde_json::json!({ "name": def.name, "doc": def.doc, "kind": def.kind.name() });
    let group = |group: &fanin_sim::CounterGroup| {
        let counters: Vec<_> = group.counters.iter().chain(group.peaks).map(counter).collect();
        serde_json::json!({ "name": group.name, "doc": group.doc, "counters": counters })
    };
    to_python(py, &fanin_sim::counters().iter().map(group).collect())
}

/// The reference page of counters, in Markdown.
#[pyfunction]
fn counters_page() -> String {
    fanin_sim::counters_page()
}

/// The version of the core.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Names of the features of `W2-128/FEATURE`, and whether each records something, so that the whole run counts.
#[pyfunction]
fn bench_features() -> Vec<(&'static str, bool)> {
    fanin_sim::FEATURES.into_iter().map(|(name, section, _)| (name, section == fanin_sim::Section::Telemetry)).collect()
}

fn known_workloads(name: &str) -> PyErr {
    PyValueError::new_err(format!("'{name}' is not a workload; accepted: {}", fanin_sim::WORKLOADS.join(", ")))
}

/// The scenario of a benchmark workload, with every default filled in: what other simulators are given as the same work.
#[pyfunction]
fn bench_scenario<'py>(py: Python<'py>, workload: &str, scale: f64) -> PyResult<Bound<'py, PyAny>> {
    let found = fanin_sim::workload(workload, scale).ok_or_else(|| known_workloads(workload))?;
    to_python(py, &found.scenario.resolved())
}

/// Runs a benchmark workload and measures it; what it records goes into a folder.
#[pyfunction]
#[pyo3(name = "bench")]
fn run_bench<'py>(py: Python<'py>, workload: &str, scale: f64, folder: PathBuf) -> PyResult<Bound<'py, PyDict>> {
    if !(scale > 0.0 && scale <= 1000.0) {
        return Err(PyValueError::new_err(format!("scale is {scale}; accepted: above 0, at most 1000")));
    }
    let measured = py.detach(|| {
        let meter = Meter::start();
        let workload = fanin_sim::workload(workload, scale)?;
        let measured = fanin_sim::prepare(&workload, &folder).and_then(|world| {
            let (_, setup) = meter.read();
            let meter = Meter::start();
            let measured = fanin_sim::measure(world)?;
            let (wall, cpu) = meter.read();
            Ok((measured, setup, wall, cpu))
        });
        Some(measured)
    });
    let measured = measured.ok_or_else(|| known_workloads(workload))?;
    let (measured, setup, wall, cpu) = measured.map_err(|error| PyOSError::new_err(error.to_string()))?;
    let answer = PyDict::new(py);
    answer.set_item("packet_hops", measured.packet_hops)?;
    answer.set_item("events", measured.events)?;
    answer.set_item("setup_s", setup)?;
    answer.set_item("cpu_s", cpu)?;
    answer.set_item("wall_s", wall)?;
    answer.set_item("hops_per_cpu_s", measured.packet_hops as f64 / cpu.max(1e-6))?;
    answer.set_item("peak_rss_mb", usage::peak_bytes() / 1e6)?;
    answer.set_item("sim_s", measured.now.as_secs_f64())?;
    answer.set_item("fingerprint", format!("{:016x}", measured.fingerprint))?;
    for (name, bytes) in measured.memory {
        answer.set_item(name, bytes)?;
    }
    Ok(answer)
}

/// Test vectors of a mechanism, by its parameters as a JSON object.
#[pyfunction]
fn vectors<'py>(py: Python<'py>, mechanism: &str, params: &str) -> PyResult<Bound<'py, PyAny>> {
    let params = fanin_scenario::read_json(params).map_err(|problems| scenario_error(py, &problems))?;
    let made = fanin_switch::vectors(mechanism, &params).map_err(|problems| scenario_error(py, &problems))?;
    let columns = |columns: &[fanin_switch::Column]| -> serde_json::Value {
        let one = |c: &fanin_switch::Column| {
            serde_json::json!({
                "name": c.name, "role": c.role.name(), "bits": c.bits, "signed": c.signed, "unit": c.unit, "about": c.about,
            })
        };
        columns.iter().map(one).collect()
    };
    let sequences = made.sequences.iter().map(|s| serde_json::json!({ "case": s.case, "settings": s.settings, "rows": s.rows }));
    let document = serde_json::json!({
        "schema": "vectors/1",
        "mechanism": made.mechanism,
        "fanin": version(),
        "cases": made.cases.iter().map(|(name, about)| serde_json::json!({ "case": name, "about": about })).collect::<Vec<_>>(),
        "settings": columns(made.settings),
        "columns": columns(made.columns),
        "sequences": sequences.collect::<Vec<_>>(),
    });
    to_python(py, &document)
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("ScenarioError", m.py().get_type::<ScenarioError>())?;
    m.add("TraceError", m.py().get_type::<analyze::TraceError>())?;
    analyze::keep_damage_quiet();
    m.add_class::<live::Live>()?;
    m.add_function(wrap_pyfunction!(live::quantity, m)?)?;
    m.add_function(wrap_pyfunction!(analyze::analyze, m)?)?;
    m.add_function(wrap_pyfunction!(analyze::explain_capture, m)?)?;
    m.add_function(wrap_pyfunction!(analyze::trace_records, m)?)?;
    m.add_function(wrap_pyfunction!(analyze::parquet_rows, m)?)?;
    m.add_function(wrap_pyfunction!(analyze::trace_formats, m)?)?;
    m.add_function(wrap_pyfunction!(analyze::trace_export, m)?)?;
    m.add_function(wrap_pyfunction!(check, m)?)?;
    m.add_function(wrap_pyfunction!(lines, m)?)?;
    m.add_function(wrap_pyfunction!(explain::explain, m)?)?;
    m.add_function(wrap_pyfunction!(facts::facts, m)?)?;
    m.add_function(wrap_pyfunction!(facts::trials, m)?)?;
    m.add_function(wrap_pyfunction!(facts::build, m)?)?;
    m.add_function(wrap_pyfunction!(facts::costs, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)?;
    m.add_function(wrap_pyfunction!(sweep::check_many, m)?)?;
    m.add_function(wrap_pyfunction!(sweep::summarize, m)?)?;
    m.add_function(wrap_pyfunction!(schema, m)?)?;
    m.add_function(wrap_pyfunction!(reference, m)?)?;
    m.add_function(wrap_pyfunction!(python_types, m)?)?;
    m.add_function(wrap_pyfunction!(counters, m)?)?;
    m.add_function(wrap_pyfunction!(counters_page, m)?)?;
    m.add_function(wrap_pyfunction!(version, m)?)?;
    m.add_function(wrap_pyfunction!(run_bench, m)?)?;
    m.add_function(wrap_pyfunction!(bench_features, m)?)?;
    m.add_function(wrap_pyfunction!(bench_scenario, m)?)?;
    m.add_function(wrap_pyfunction!(vectors, m)?)?;
    Ok(())
}
