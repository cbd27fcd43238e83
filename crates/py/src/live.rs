//! Streams that are analysed as they come, for Python.

use crate::analyze::trace_error;
use fanin_analysis::trace::{self, Options, Problem, Watching};
use fanin_units::{BitRate, Bytes, Quantity, Span};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bursts that are told of at once: each takes some 10 KB as text and as objects of Python.
const PART: usize = 64;

/// A stream that is analysed as it comes: bytes go in, what has ended comes out as JSON.
#[pyclass(module = "fanin._core", frozen)]
pub struct Live(Mutex<trace::Live>);

impl Live {
    fn held(&self) -> MutexGuard<'_, trace::Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, py: Python<'_>, ask: impl Fn(&mut trace::Live) -> Result<(), Vec<Problem>> + Send + Sync) -> PyResult<()> {
        py.detach(|| ask(&mut self.held())).map_err(|problems| trace_error(py, &problems))
    }
}

fn span(name: &str, text: &str) -> PyResult<Span> {
    let span = Span::read(text).map_err(|error| PyValueError::new_err(format!("{name}: '{text}' {error}")))?;
    if span == Span::ZERO {
        return Err(PyValueError::new_err(format!("{name}: '{text}' is no time; accepted: above 0, for example 1s")));
    }
    Ok(span)
}

/// Number of base steps in a text with a unit: bytes of a `size`, bits per second of a `rate`, picoseconds of a `time`.
#[pyfunction]
pub fn quantity(kind: &str, text: &str) -> PyResult<u64> {
    let read = match kind {
        "size" => Bytes::read(text).map(Bytes::get),
        "rate" => BitRate::read(text).map(BitRate::bps),
        "time" => Span::read(text).map(Span::ps),
        other => return Err(PyValueError::new_err(format!("'{other}' is no kind of quantity; accepted: size, rate, time"))),
    };
    read.map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pymethods]
impl Live {
    /// A stream of that name; `settings` are those of an analysis.
    #[new]
    fn new(py: Python<'_>, name: &str, settings: &str, gap: Option<&str>, cell: &str, retire: &str) -> PyResult<Self> {
        let options = Options::from_json(settings).map_err(|problems| trace_error(py, &problems))?;
        let gap = gap.map(|gap| span("gap", gap)).transpose()?;
        let watching = Watching { gap, cell: span("cell", cell)?, retire: span("retire", retire)? };
        Ok(Live(Mutex::new(trace::Live::new(name, &options, watching))))
    }

    /// Takes the next bytes.
    fn push(&self, py: Python<'_>, bytes: PyBackedBytes) -> PyResult<()> {
        self.ask(py, |live| live.push(&bytes))
    }

    /// Takes a datagram that came at a time [ns since 1970].
    fn push_datagram(&self, py: Python<'_>, bytes: PyBackedBytes, ns: u64) -> PyResult<()> {
        self.ask(py, |live| live.push_datagram(&bytes, ns))
    }

    /// Takes bytes that an earlier watch has counted, of a file whose later part cannot be read alone.
    fn replay(&self, py: Python<'_>, bytes: PyBackedBytes) -> PyResult<()> {
        self.ask(py, |live| live.replay(&bytes))
    }

    /// True for a beginning of a file of which a later part cannot be read alone.
    #[staticmethod]
    fn needs_beginning(start: &[u8]) -> bool {
        trace::Live::needs_beginning(start)
    }

    /// Goes on with what there is, if the stream is slow.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, trace::Live::settle)
    }

    /// Ends the present file; another one comes.
    fn reopen(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, trace::Live::reopen)
    }

    /// Ends the stream.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, trace::Live::end)
    }

    /// Ends bursts that are open; an unfinished last line stays unread.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.held().stop());
    }

    /// Remembers the first line of a file that is read on from a later place.
    fn remember_header(&self, line: &[u8]) {
        self.held().remember_header(line);
    }

    /// Bytes of the present file that need not be read again.
    fn used(&self) -> u64 {
        self.held().used()
    }

    /// Takes all that has ended since the last call, as JSON: one part at least, of 64 bursts at most each, in the order of their ends.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let parts = |ended: trace::Ended| ended.parts(PART).map(|part| serde_json::to_string(&part)).collect::<Result<_, _>>();
        py.detach(|| {
            let ended = self.held().take();
            parts(ended)
        })
        .map_err(|error: serde_json::Error| PyValueError::new_err(error.to_string()))
    }

    /// The present state, as JSON.
    fn report(&self, py: Python<'_>) -> String {
        py.detach(|| self.held().report().to_string())
    }
}
