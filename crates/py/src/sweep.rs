//! Many scenarios: checked on all cores, and run without a result folder.

use crate::watcher::Watcher;
use crate::{problem_list, read, run_error, scenario_error, to_python, Meter, Run};
use fanin_params::Problem;
use fanin_scenario::Scenario;
use fanin_sim::Outcome;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// A document's hash, or what is wrong with it; and what it warns of.
type Checked = (Result<String, Vec<Problem>>, Vec<Problem>);

fn checked(text: &str, base_dir: &Path) -> Checked {
    match Scenario::from_json(text, base_dir) {
        Ok(scenario) => (Ok(scenario.hash()), scenario.warnings().to_vec()),
        Err(problems) => (Err(problems), Vec::new()),
    }
}

/// Checks documents in JSON on some threads: for each its hash, or none, and its problems.
#[pyfunction]
pub fn check_many<'py>(py: Python<'py>, texts: Vec<String>, base_dir: &str, threads: usize) -> PyResult<Bound<'py, PyList>> {
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<(usize, Checked)>> = Mutex::new(Vec::with_capacity(texts.len()));
    let work = || loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        let Some(text) = texts.get(i) else { return };
        let found = checked(text, Path::new(base_dir));
        all.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((i, found));
    };
    py.detach(|| {
        std::thread::scope(|scope| {
            for _ in 1..threads.clamp(1, 256).min(texts.len().max(1)) {
                scope.spawn(work);
            }
            work();
        });
    });
    let mut all = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.sort_unstable_by_key(|(i, _)| *i);
    let answers = PyList::empty(py);
    for (_, (found, warnings)) in all {
        let (hash, problems) = match found {
            Ok(hash) => (Some(hash), warnings),
            Err(problems) => (None, problems),
        };
        answers.append((hash, problem_list(py, &problems)?))?;
    }
    Ok(answers)
}

/// Runs a scenario without writing anything; the summary as JSON, and what the manifest of a result folder says of a run.
#[pyfunction]
pub fn summarize<'py>(
    py: Python<'py>,
    text: &str,
    format: &str,
    base_dir: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = read(text, format, base_dir)?.map_err(|problems| scenario_error(py, &problems))?;
    let mut run = Run { meter: Meter::start(), watcher: Watcher::new(progress) };
    let result = py.detach(|| fanin_sim::summarize(scenario, &mut run));
    match result {
        _ if run.watcher.stopped() => Err(run.watcher.raised()),
        Ok(Outcome { summary, manifest, .. }) => {
            let answer = to_python(py, &manifest)?.cast_into::<PyDict>()?;
            answer.set_item("summary", to_python(py, &summary)?)?;
            Ok(answer)
        }
        Err(error) => Err(run_error(py, error)),
    }
}
