//! Reports progress to Python, and notices Ctrl-C.

use fanin_sim::KeepWaiting;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which progress is reported to Python and Ctrl-C is checked for.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Reports progress to Python, and stops on Ctrl-C or an exception there.
pub struct Watcher {
    last: Instant,
    callback: Option<Py<PyAny>>,
    /// Exception that ended the work from outside: Ctrl-C, or the callback's own error. It may come while the work waits for others, too.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Watcher {
    /// A watcher that calls `callback`, if there is one.
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Watcher { last: Instant::now(), callback, raised: Arc::default() }
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
        if let Err(error) = called {
            *self.kept() = Some(error);
        }
        !self.stopped()
    }

    /// Answers, wherever the work waits for somebody else, whether to wait on; notices Ctrl-C.
    pub fn keep_waiting(&self) -> KeepWaiting {
        let raised = self.raised.clone();
        Arc::new(move || match Python::attach(|py| py.check_signals()) {
            Ok(()) => true,
            Err(error) => {
                *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                false
            }
        })
    }

    fn kept(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the work was ended from outside.
    pub fn stopped(&self) -> bool {
        self.kept().is_some()
    }

    /// Exception that ended the work from outside.
    pub fn raised(self) -> PyErr {
        self.kept().take().unwrap_or_else(|| PyKeyboardInterrupt::new_err("interrupted"))
    }
}
