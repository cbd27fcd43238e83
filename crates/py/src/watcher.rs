//! Reports progress to Python, and notices Ctrl-C.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::{Duration, Instant};

/// Interval at which progress is reported to Python and Ctrl-C is checked for.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Reports progress to Python, and stops on Ctrl-C or an exception there.
pub struct Watcher {
    last: Instant,
    callback: Option<Py<PyAny>>,
    /// Exception that ended the work from outside: Ctrl-C, or the callback's own error.
    raised: Option<PyErr>,
}

impl Watcher {
    /// A watcher that calls `callback`, if there is one.
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Watcher { last: Instant::now(), callback, raised: None }
    }

    /// Reports what `fill` writes to Python, if it is time to; returns whether to go on.
    pub fn goes_on(&mut self, fill: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>) -> bool {
        if self.last.elapsed() < REPORT_EVERY {
            return true;
        }
        self.last = Instant::now();
        let called = Python::attach(|py| {
            py.check_signals()?;
            let Some(callback) = &self.callback else { return Ok(()) };
            let report = PyDict::new(py);
            fill(&report)?;
            callback.call1(py, (report,)).map(|_| ())
        });
        self.raised = called.err();
        self.raised.is_none()
    }

    /// True if the work was ended from outside.
    pub fn stopped(&self) -> bool {
        self.raised.is_some()
    }

    /// Exception that ended the work from outside.
    pub fn raised(self) -> PyErr {
        self.raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err("interrupted"))
    }
}
