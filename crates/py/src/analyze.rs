//! Analysis of traces, for Python.

use crate::watcher::Watcher;
use fanin_analysis::trace::{self, Control, Failure, Observer, Options, Problem, Progress};
use fanin_analysis::{MARKED, REPLACED};
use fanin_units::Time;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::PathBuf;
use std::time::Instant;

pyo3::create_exception!(fanin, TraceError, PyValueError, "A trace that cannot be analysed; `problems` says all that is wrong.");

pub fn trace_error(py: Python<'_>, problems: &[Problem]) -> PyErr {
    let error = TraceError::new_err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    let list = || -> PyResult<()> {
        let list = PyList::empty(py);
        for p in problems {
            let entry = PyDict::new(py);
            entry.set_item("file", p.file.as_deref())?;
            entry.set_item("place", p.place.as_deref())?;
            entry.set_item("column", p.column.as_deref())?;
            entry.set_item("value", p.value.as_deref())?;
            entry.set_item("message", &*p.message)?;
            entry.set_item("accepted", p.accepted.as_deref())?;
            entry.set_item("suggestion", p.suggestion.as_deref())?;
            entry.set_item("text", p.to_string())?;
            list.append(entry)?;
        }
        error.value(py).setattr("problems", list)
    };
    match list() {
        Ok(()) => error,
        Err(failure) => failure,
    }
}

/// An analysis that reports to Python.
struct Analysis {
    start: Instant,
    watcher: Watcher,
}

impl Analysis {
    fn new(callback: Option<Py<PyAny>>) -> Self {
        Analysis { start: Instant::now(), watcher: Watcher::new(callback) }
    }

    /// Exception for an analysis that ended early.
    fn failure(self, py: Python<'_>, failure: &Failure) -> PyErr {
        match failure {
            Failure::Problems(problems) => trace_error(py, problems),
            Failure::Stopped => self.watcher.raised(),
        }
    }
}

impl Observer for Analysis {
    fn progress(&mut self, progress: Progress) -> Control {
        let start = self.start;
        let goes_on = self.watcher.goes_on(|report| {
            report.set_item("done", progress.done)?;
            report.set_item("records", progress.records)?;
            report.set_item("wall_s", start.elapsed().as_secs_f64())
        });
        if goes_on {
            Control::Continue
        } else {
            Control::Stop
        }
    }
}

/// Analyses a trace as the settings say; gives the report as JSON.
#[pyfunction]
pub fn analyze(py: Python<'_>, settings: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let options = Options::from_json(settings).map_err(|problems| trace_error(py, &problems))?;
    let mut analysis = Analysis::new(progress);
    match py.detach(|| trace::analyze(&options, &mut analysis)) {
        Ok(report) => serde_json::to_string(&report).map_err(|e| PyRuntimeError::new_err(e.to_string())),
        Err(failure) => Err(analysis.failure(py, &failure)),
    }
}

/// Explains where the time of a transfer in two captures went: of the flow of that name, or the slowest; gives JSON.
#[pyfunction]
pub fn explain_capture(py: Python<'_>, settings: &str, flow: Option<&str>, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let options = Options::from_json(settings).map_err(|problems| trace_error(py, &problems))?;
    let mut analysis = Analysis::new(progress);
    match py.detach(|| trace::explain(&options, flow, &mut analysis)) {
        Ok(found) => serde_json::to_string(&found).map_err(|e| PyRuntimeError::new_err(e.to_string())),
        Err(failure) => Err(analysis.failure(py, &failure)),
    }
}

/// The records of a port in stretches of time [ps], whose ends are included: columns as bytes, in the machine's order.
#[pyfunction]
pub fn trace_records<'py>(
    py: Python<'py>,
    settings: &str,
    port: &str,
    stretches: Vec<(u64, u64)>,
    most: usize,
) -> PyResult<Bound<'py, PyList>> {
    let options = Options::from_json(settings).map_err(|problems| trace_error(py, &problems))?;
    let mut analysis = Analysis::new(None);
    let stretches: Vec<_> = stretches.into_iter().map(|(from, to)| (Time::from_ps(from), Time::from_ps(to))).collect();
    let most = most.clamp(2, 10_000_000);
    let found = match py.detach(|| trace::records(&options, port, &stretches, most, &mut analysis)) {
        Ok(found) => found,
        Err(failure) => return Err(analysis.failure(py, &failure)),
    };
    let answers = found.iter().map(|found| columns(py, found)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, answers)
}

fn columns<'py>(py: Python<'py>, found: &trace::Records) -> PyResult<Bound<'py, PyDict>> {
    let records = &found.records;
    let answer = PyDict::new(py);
    let column = |bytes: Vec<u8>| PyBytes::new(py, &bytes);
    answer.set_item("time_ps", column(records.iter().flat_map(|r| r.time.ps().to_ne_bytes()).collect()))?;
    answer.set_item("queue_bytes", column(records.iter().flat_map(|r| r.queue.to_ne_bytes()).collect()))?;
    answer.set_item("frame_bytes", column(records.iter().flat_map(|r| r.frame.to_ne_bytes()).collect()))?;
    answer.set_item("flow", column(records.iter().flat_map(|r| r.flow.to_ne_bytes()).collect()))?;
    answer.set_item("marked", column(records.iter().map(|r| u8::from(r.flags & MARKED != 0)).collect()))?;
    answer.set_item("dropped", column(records.iter().map(|r| u8::from(r.dropped())).collect()))?;
    answer.set_item("at_head", column(records.iter().map(|r| u8::from(r.dropped_at_head())).collect()))?;
    answer.set_item("replaced", column(records.iter().map(|r| u8::from(r.flags & REPLACED != 0)).collect()))?;
    answer.set_item("count", found.count)?;
    answer.set_item("reduced", found.reduced)?;
    Ok(answer)
}

/// Number of rows in a Parquet file, by its footer; none where that cannot be read.
#[pyfunction]
pub fn parquet_rows(py: Python<'_>, path: PathBuf) -> Option<u64> {
    py.detach(|| trace::parquet_rows(&path).ok())
}

/// Names of all formats of traces.
#[pyfunction]
pub fn trace_formats() -> Vec<&'static str> {
    trace::format_titles()
}

/// Writes the records of a trace to `records.parquet` in a folder; gives how many there are.
#[pyfunction]
pub fn trace_export(py: Python<'_>, settings: &str, folder: &str, progress: Option<Py<PyAny>>) -> PyResult<u64> {
    let options = Options::from_json(settings).map_err(|problems| trace_error(py, &problems))?;
    let mut analysis = Analysis::new(progress);
    match py.detach(|| trace::export(&options, std::path::Path::new(folder), &mut analysis)) {
        Ok(records) => Ok(records),
        Err(failure) => Err(analysis.failure(py, &failure)),
    }
}

/// Panics of the `parquet` crate over damaged files are caught and become errors; nobody is to read of them on standard error.
pub fn keep_damage_quiet() {
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.location().is_some_and(|place| place.file().contains("/parquet-")) {
            otherwise(info);
        }
    }));
}
