//! A run into a result folder that is complete, or says that it is not. See docs/results.md.

use crate::record::Destination;
use crate::setup;
use crate::summary::summary;
use crate::world::{Pause, Totals, World};
use fanin_params::Problem;
use fanin_scenario::Scenario;
use fanin_telemetry::TableError;
use fanin_units::Time;
use serde_json::{json, Map, Value};
use std::path::{Path, PathBuf};

/// Events between two looks at the outside world: about 20 ms.
const BUDGET: u64 = 200_000;

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub now: Time,
    /// When it stops at the latest, if that is known.
    pub stop: Option<Time>,
    pub totals: Totals,
    /// Flows in all, if that is known.
    pub flows: Option<u64>,
}

/// What the caller wants after a look at the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    Continue,
    /// End the run now and keep what there is.
    Stop,
}

/// Who watches a run from outside.
pub trait Observer {
    /// Called about every 20 ms.
    fn progress(&mut self, progress: &Progress) -> Control;
    /// Wall-clock and processor seconds since the run began. Model crates do not read clocks.
    fn cost(&mut self) -> (f64, f64);
}

/// Why a run has no complete result.
#[derive(Debug)]
pub enum RunError {
    /// The scenario cannot be built.
    Problems(Vec<Problem>),
    /// A file cannot be written; what was written before stays.
    Write { path: PathBuf, cause: String },
    /// It cannot go on; the folder is kept and marked partial.
    Stuck(String),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Problems(problems) => {
                problems.iter().enumerate().try_for_each(|(i, p)| write!(f, "{}{p}", if i > 0 { "\n" } else { "" }))
            }
            Self::Write { path, cause } => write!(f, "{}: cannot be written: {cause}", path.display()),
            Self::Stuck(message) => write!(f, "the run cannot go on: {message}"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<TableError> for RunError {
    fn from(error: TableError) -> Self {
        RunError::Write { path: error.path, cause: error.cause }
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Outcome {
    /// Whether it was stopped by its observer.
    pub interrupted: bool,
    /// The content of summary.json.
    pub summary: Value,
    /// The content of manifest.json.
    pub manifest: Value,
}

/// Runs a scenario into `folder`, which is created if need be; its result files are replaced.
///
/// # Errors
/// See [`RunError`]. Whatever happens after the start, the manifest says `partial` and why.
pub fn run(scenario: &Scenario, folder: &Path, observer: &mut dyn Observer) -> Result<Outcome, RunError> {
    let fail = |path: &Path, error: &std::io::Error| RunError::Write { path: path.to_path_buf(), cause: error.to_string() };
    std::fs::create_dir_all(folder).map_err(|e| fail(folder, &e))?;
    let mut manifest = Map::new();
    manifest.insert("fanin".into(), json!(env!("CARGO_PKG_VERSION")));
    manifest.insert("schema".into(), json!("manifest/1"));
    manifest.insert("status".into(), json!("running"));
    manifest.insert("name".into(), json!(scenario.name()));
    manifest.insert("seed".into(), json!(scenario.seed()));
    manifest.insert("scenario".into(), scenario.resolved());
    manifest.insert("scenario_hash".into(), json!(scenario.hash()));
    manifest.insert("warnings".into(), json!(scenario.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()));
    manifest.insert("notes".into(), json!(scenario.notes()));
    // Nothing of an older result may survive beside a new manifest.
    for name in ["summary.json", "report.html"] {
        match std::fs::remove_file(folder.join(name)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fail(&folder.join(name), &e)),
            _ => {}
        }
    }
    write_json(folder, "manifest.json", &manifest)?;
    let result = run_inside(scenario, folder, observer, &mut manifest);
    if let Err(error) = &result {
        manifest.insert("status".into(), json!("partial"));
        manifest.insert("reason".into(), json!(error.to_string()));
        // Best effort: on a full disk even this may fail, and then the manifest still says `running`.
        let _ = write_json(folder, "manifest.json", &manifest);
    }
    result
}

fn run_inside(
    scenario: &Scenario,
    folder: &Path,
    observer: &mut dyn Observer,
    manifest: &mut Map<String, Value>,
) -> Result<Outcome, RunError> {
    let mut world = setup::world(scenario, &Destination::Folder(folder))?;
    let (interrupted, stuck) = drive(&mut world, observer)?;
    let (summary, rows) = finish(&mut world)?;
    let (wall, cpu) = observer.cost();
    let files: Map<String, Value> = rows.iter().map(|(name, n)| ((*name).to_string(), json!(n))).collect();
    let stuck = stuck.or_else(|| world.traffic.failures().first().cloned());
    let reason = if interrupted { Some("interrupted".to_string()) } else { stuck.clone() };
    manifest.insert("status".into(), json!(if reason.is_some() { "partial" } else { "complete" }));
    if let Some(reason) = reason {
        manifest.insert("reason".into(), json!(reason));
    }
    manifest.insert("fingerprint".into(), json!(format!("{:016x}", world.recorder.fingerprint())));
    manifest.insert("sim_ps".into(), json!(world.now.ps()));
    manifest.insert("wall_s".into(), json!(wall));
    manifest.insert("cpu_s".into(), json!(cpu));
    manifest.insert("packet_hops".into(), json!(world.totals.packet_hops));
    manifest.insert("events".into(), json!(world.totals.events));
    manifest.insert("files".into(), Value::Object(files));
    if let Value::Object(map) = &summary {
        write_json(folder, "summary.json", map)?;
    }
    write_json(folder, "manifest.json", manifest)?;
    if let Some(stuck) = stuck {
        return Err(RunError::Stuck(stuck));
    }
    Ok(Outcome { interrupted, summary, manifest: Value::Object(manifest.clone()) })
}

/// Moves a world to its end. Gives whether the observer stopped it, and why it got stuck, if it did.
///
/// # Errors
/// When a table cannot be written.
pub fn drive(world: &mut World, observer: &mut dyn Observer) -> Result<(bool, Option<String>), TableError> {
    loop {
        match world.advance(BUDGET)? {
            Pause::Budget => {
                let progress = Progress {
                    now: world.now,
                    stop: (world.stop < Time::MAX).then_some(world.stop),
                    totals: world.totals,
                    flows: world.traffic.total_hint(),
                };
                if observer.progress(&progress) == Control::Stop {
                    return Ok((true, None));
                }
            }
            Pause::Done => return Ok((false, None)),
            Pause::Stuck(message) => return Ok((false, Some(message))),
        }
    }
}

/// Tables with their numbers of rows.
pub type Rows = Vec<(&'static str, u64)>;

/// Winds a world up and closes its tables.
///
/// # Errors
/// When a table cannot be written.
pub fn finish(world: &mut World) -> Result<(Value, Rows), TableError> {
    world.wind_up();
    if let Some(error) = world.failure.take() {
        return Err(error);
    }
    let queries = world.recorder.finish_queries(world.traffic.queries().iter(), &world.host_names)?;
    let summary = summary(world, &queries);
    let rows = world.recorder.finish()?;
    Ok((summary, rows))
}

/// Writes a file whole or not at all: beside its place first, then moved.
fn write_json(folder: &Path, name: &str, map: &Map<String, Value>) -> Result<(), RunError> {
    let path = folder.join(name);
    let beside = folder.join(format!(".{name}.new"));
    let text = serde_json::to_string_pretty(map).unwrap_or_default() + "\n";
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, &path))
        .map_err(|e| RunError::Write { path, cause: e.to_string() })
}
