//! Traces in, reports out.

use fanin_analysis::read::{self, Control, Failure, Observer, Options, Problem, Progress};
use fanin_analysis::MARKED;
use fanin_units::Time;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::time::{Duration, Instant};

pyo3::create_exception!(_core, TraceError, PyValueError, "A trace that cannot be analysed; `problems` says all that is wrong.");

/// How often Python hears of progress, and looks for Ctrl-C.
const REPORT_EVERY: Duration = Duration::from_millis(100);

fn trace_error(py: Python<'_>, problems: &[Problem]) -> PyErr {
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

/// Tells Python about an analysis, and listens to it.
struct Watcher {
    start: Instant,
    last: Instant,
    callback: Option<Py<PyAny>>,
    /// What ended it from outside: Ctrl-C, or the callback's own error.
    raised: Option<PyErr>,
}

impl Watcher {
    fn tell(&self, py: Python<'_>, progress: Progress) -> PyResult<()> {
        py.check_signals()?;
        let Some(callback) = &self.callback else { return Ok(()) };
        let report = PyDict::new(py);
        report.set_item("done", progress.done)?;
        report.set_item("records", progress.records)?;
        report.set_item("wall_s", self.start.elapsed().as_secs_f64())?;
        callback.call1(py, (report,))?;
        Ok(())
    }
}

impl Observer for Watcher {
    fn progress(&mut self, progress: Progress) -> Control {
        if self.last.elapsed() < REPORT_EVERY {
            return Control::Continue;
        }
        self.last = Instant::now();
        match Python::attach(|py| self.tell(py, progress)) {
            Ok(()) => Control::Continue,
            Err(error) => {
                self.raised = Some(error);
                Control::Stop
            }
        }
    }
}

/// Analyses a trace as the settings say; gives the report as JSON.
#[pyfunction]
pub fn analyze(py: Python<'_>, settings: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let options = Options::from_json(settings).map_err(|problems| trace_error(py, &problems))?;
    let now = Instant::now();
    let mut watcher = Watcher { start: now, last: now, callback: progress, raised: None };
    match py.detach(|| read::analyze(&options, &mut watcher)) {
        Ok(report) => serde_json::to_string(&report).map_err(|e| PyRuntimeError::new_err(e.to_string())),
        Err(Failure::Problems(problems)) => Err(trace_error(py, &problems)),
        Err(Failure::Stopped) => Err(watcher.raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err("interrupted"))),
    }
}

/// The records of a port between two times [ps], both included: columns as bytes, in the machine's order.
#[pyfunction]
pub fn trace_records<'py>(
    py: Python<'py>,
    settings: &str,
    port: &str,
    from_ps: u64,
    to_ps: u64,
    most: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Options::from_json(settings).map_err(|problems| trace_error(py, &problems))?;
    let now = Instant::now();
    let mut watcher = Watcher { start: now, last: now, callback: None, raised: None };
    let window = (Time::from_ps(from_ps), Time::from_ps(to_ps));
    let most = most.clamp(2, 10_000_000);
    let found = match py.detach(|| read::records(&options, port, window, most, &mut watcher)) {
        Ok(found) => found,
        Err(Failure::Problems(problems)) => return Err(trace_error(py, &problems)),
        Err(Failure::Stopped) => return Err(watcher.raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err("interrupted"))),
    };
    let records = &found.records;
    let answer = PyDict::new(py);
    let column = |bytes: Vec<u8>| PyBytes::new(py, &bytes);
    answer.set_item("time_ps", column(records.iter().flat_map(|r| r.time.ps().to_ne_bytes()).collect()))?;
    answer.set_item("queue_bytes", column(records.iter().flat_map(|r| r.queue.to_ne_bytes()).collect()))?;
    answer.set_item("frame_bytes", column(records.iter().flat_map(|r| r.frame.to_ne_bytes()).collect()))?;
    answer.set_item("flow", column(records.iter().flat_map(|r| r.flow.to_ne_bytes()).collect()))?;
    answer.set_item("marked", column(records.iter().map(|r| u8::from(r.flags & MARKED != 0)).collect()))?;
    answer.set_item("dropped", column(records.iter().map(|r| u8::from(r.dropped())).collect()))?;
    answer.set_item("count", found.count)?;
    answer.set_item("reduced", found.reduced)?;
    Ok(answer)
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
