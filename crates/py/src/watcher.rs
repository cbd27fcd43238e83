//! What is under way tells Python how far it is, and hears of Ctrl-C.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::{Duration, Instant};

/// How often Python hears of progress, and looks for Ctrl-C.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Tells Python about what is under way, and listens to it.
pub struct Watcher {
    last: Instant,
    callback: Option<Py<PyAny>>,
    /// What ended it from outside: Ctrl-C, or the callback's own error.
    raised: Option<PyErr>,
}

impl Watcher {
    /// A watcher that tells `callback`, if there is one.
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Watcher { last: Instant::now(), callback, raised: None }
    }

    /// Tells Python what `fill` writes, if it is time to; gives whether to go on.
    pub fn goes_on(&mut self, fill: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>) -> bool {
        if self.last.elapsed() < REPORT_EVERY {
            return true;
        }
        self.last = Instant::now();
        let told = Python::attach(|py| {
            py.check_signals()?;
            let Some(callback) = &self.callback else { return Ok(()) };
            let report = PyDict::new(py);
            fill(&report)?;
            callback.call1(py, (report,)).map(|_| ())
        });
        self.raised = told.err();
        self.raised.is_none()
    }

    /// Whether it was ended from outside.
    pub fn stopped(&self) -> bool {
        self.raised.is_some()
    }

    /// What ended it from outside.
    pub fn raised(self) -> PyErr {
        self.raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err("interrupted"))
    }
}
