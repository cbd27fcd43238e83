//! Facts about a scenario, the policies that could be tried on it, and this build's features.

use crate::{read, scenario_error, to_python, version};
use fanin_params::Problem;
use fanin_sim::Expected;
use pyo3::prelude::*;

/// Facts about a scenario in numbers: network, idle round trips, load that its traffic puts on each link, and what threads are expected to
/// make of a run.
#[pyfunction]
pub fn facts<'py>(py: Python<'py>, text: &str, format: &str, base_dir: &str) -> PyResult<Bound<'py, PyAny>> {
    let scenario = read(text, format, base_dir)?.map_err(|problems| scenario_error(py, &problems))?;
    let facts = || {
        let (mut facts, traffic, volume) = (scenario.facts()?, scenario.traffic()?, scenario.volume()?);
        let why = fanin_sim::one_thread(&scenario, &traffic);
        let of = |threads: usize| {
            let Expected { parts, window, times } = fanin_sim::expected(&scenario, (&traffic, volume), threads);
            (parts == threads).then(|| serde_json::json!({ "threads": threads, "window_ps": window.ps(), "times": times }))
        };
        let counts: &[usize] = if why.is_none() { &[2, 4, 8, 16] } else { &[] };
        facts["threads"] = counts.iter().copied().filter_map(of).collect();
        facts["threads_why"] = serde_json::json!(why);
        Ok(facts)
    };
    let facts = py.detach(facts).map_err(|problems: Vec<Problem>| scenario_error(py, &problems))?;
    to_python(py, &facts)
}

/// Every policy of the registries, with what a scenario would get to try it.
#[pyfunction]
pub fn trials<'py>(py: Python<'py>, text: &str, format: &str, base_dir: &str) -> PyResult<Bound<'py, PyAny>> {
    let scenario = read(text, format, base_dir)?.map_err(|problems| scenario_error(py, &problems))?;
    let trial = |trial: &fanin_params::Trial| serde_json::json!({ "part": trial.part, "kind": trial.kind, "doc": trial.doc, "settings": trial.settings });
    to_python(py, &scenario.trials().iter().map(trial).collect())
}

/// Costs of a scenario's policies: largest number of header bytes in a frame, and memory at the switch where they take most.
#[pyfunction]
pub fn costs(py: Python<'_>, text: &str, format: &str, base_dir: &str) -> PyResult<(u64, Option<u64>)> {
    let scenario = read(text, format, base_dir)?.map_err(|problems| scenario_error(py, &problems))?;
    Ok((scenario.header_bytes(), scenario.switch_memory().map(fanin_units::Bytes::get)))
}

/// The build of the core: version, target and profile.
#[pyfunction]
pub fn build(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let build = serde_json::json!({
        "version": version(),
        "target": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        "profile": if cfg!(debug_assertions) { "debug, with checks" } else { "release" },
    });
    to_python(py, &build)
}
