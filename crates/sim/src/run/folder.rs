//! A run into a result folder, which is complete or says that it is not. See docs/results.md.

use super::setup;
use super::summary::summary;
use crate::ledger::{Destination, Totals, TABLES};
use crate::outside::{Blocks, KeepWaiting};
use crate::run::parts::{self, Order};
use crate::world::{Pause, World};
use fanin_params::Problem;
use fanin_scenario::Scenario;
use fanin_telemetry::TableError;
use fanin_units::Time;
use fanin_wire::CaptureFile;
use serde_json::{json, Map, Value};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Events between two looks at the outside world: about 20 ms.
const BUDGET: u64 = 200_000;

/// Bytes set aside while a run lasts, for closing its files when the disk is full.
const BALLAST: usize = 4 << 20;

/// Folder inside the result folder into which a run writes until it has ended: a file with a result's name is whole.
pub const WORKING: &str = ".fanin-run";

/// Formats that a table may have been converted to; see docs/results.md.
const FORMATS: [&str; 4] = ["parquet", "csv", "jsonl", "arrow"];

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub now: Time,
    /// Latest time at which the run stops, if that is known.
    pub stop: Option<Time>,
    pub totals: Totals,
    /// Flows in all, if that is known.
    pub flows: Option<u64>,
}

/// The caller's wish after a look at the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    Continue,
    /// End the run now and keep what there is.
    Stop,
}

/// Observer of a run, which may stop it.
pub trait Observer {
    /// Reports the progress, about every 20 ms; the answer may stop the run.
    fn progress(&mut self, progress: &Progress) -> Control;
    /// Wall-clock and processor seconds since the run began. Model crates do not read clocks.
    fn cost(&mut self) -> (f64, f64);
    /// KeepWaiting with a block outside that is silent, while no progress is reported. If not given, the block's timeout alone ends a wait.
    fn keep_waiting(&self) -> KeepWaiting {
        Arc::new(|| true)
    }
}

/// Reason why a run has no complete result.
#[derive(Debug)]
pub enum RunError {
    /// The scenario cannot be built.
    Problems(Vec<Problem>),
    /// A file cannot be written; what was written before stays.
    Write { path: PathBuf, cause: String },
    /// The run cannot go on; the folder is kept and marked partial.
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
    /// True if the observer stopped the run.
    pub interrupted: bool,
    /// The content of summary.json.
    pub summary: Value,
    /// The content of manifest.json.
    pub manifest: Value,
}

/// Runs a scenario into `folder`, which is created if need be; its result files are replaced.
///
/// All but the manifest is written to [`WORKING`] in it, and gets its own name when the run has ended, however it ended; of a run that is
/// killed that folder is left, and the next run removes it.
///
/// # Errors
/// See [`RunError`]. Whatever happens after the start, the manifest says `partial` and why.
pub fn run(scenario: &Scenario, folder: &Path, observer: &mut dyn Observer) -> Result<Outcome, RunError> {
    let fail = |path: &Path, error: &std::io::Error| RunError::Write { path: path.to_path_buf(), cause: error.to_string() };
    // Before anything is replaced: a block that is not there costs no earlier result.
    let outside = Blocks::connect(scenario, &observer.keep_waiting()).map_err(RunError::Problems)?;
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
    // The new manifest first: a run that is killed while it clears must not leave one that says `complete`.
    let earlier = folder.join("manifest.json").exists();
    write_json(folder, "manifest.json", &manifest)?;
    clear(folder, earlier).map_err(|(path, e)| fail(&path, &e))?;
    let working = folder.join(WORKING);
    std::fs::create_dir(&working).map_err(|e| fail(&working, &e))?;
    let ballast = Ballast::new(folder);
    let result = run_inside((scenario, outside), folder, observer, &mut manifest, ballast);
    if let Err(error) = &result {
        // Should even this fail, a manifest written earlier stays: see `rescue`.
        let _ = write_partial(folder, &mut manifest, &error.to_string());
    }
    result
}

/// Removes the files of an `earlier` result: none of them may survive beside a new manifest. A folder that had no manifest was no
/// result, and tables in it are not ours.
fn clear(folder: &Path, earlier: bool) -> Result<(), (PathBuf, std::io::Error)> {
    let mut names = vec!["summary.json".to_string(), "report.html".to_string()];
    if earlier {
        names.push(CaptureFile::NAME.to_string());
        names.extend(TABLES.iter().flat_map(|table| FORMATS.map(|format| format!("{table}.{format}"))));
    }
    for path in names.iter().map(|name| folder.join(name)) {
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err((path, e)),
            _ => {}
        }
    }
    let working = folder.join(WORKING);
    match std::fs::remove_dir_all(&working) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err((working, e)),
        _ => Ok(()),
    }
}

/// Gives all files that were written their own names; files that are still open keep working.
fn name_files(folder: &Path) -> Result<(), RunError> {
    let working = folder.join(WORKING);
    let fail = |path: PathBuf, error: std::io::Error| RunError::Write { path, cause: error.to_string() };
    for entry in std::fs::read_dir(&working).map_err(|e| fail(working.clone(), e))? {
        let entry = entry.map_err(|e| fail(working.clone(), e))?;
        let path = folder.join(entry.file_name());
        std::fs::rename(entry.path(), &path).map_err(|e| fail(path, e))?;
    }
    Ok(())
}

/// Error of a table, with the final name of its file.
fn by_its_name(folder: &Path, error: TableError) -> RunError {
    let name = error.path.strip_prefix(folder.join(WORKING)).map(Path::to_path_buf);
    RunError::from(TableError { path: name.map_or(error.path, |name| folder.join(name)), cause: error.cause })
}

/// Space on the disk that a run sets aside, for use when there is none left. Removed when dropped.
struct Ballast(PathBuf);

impl Ballast {
    /// Reserves the space, or none where there is too little: a small result may fit all the same.
    fn new(folder: &Path) -> Self {
        let ballast = Ballast(folder.join(".ballast"));
        let taken = File::create(&ballast.0).and_then(|mut file| match allocate(&file) {
            true => Ok(()),
            false => fill(&mut file),
        });
        if taken.is_err() {
            let _ = std::fs::remove_file(&ballast.0);
        }
        ballast
    }
}

/// Asks the file system for space, without writing; false where it gives none or only a promise.
#[cfg(target_os = "linux")]
fn allocate(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let allocated = rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, BALLAST as u64);
    allocated.is_ok() && file.metadata().is_ok_and(|metadata| metadata.blocks() * 512 >= BALLAST as u64)
}

/// Stands for the allocation of space on systems without a call for it: space is taken as bytes are written.
#[cfg(not(target_os = "linux"))]
fn allocate(_file: &File) -> bool {
    false
}

/// Takes the space by bytes that no file system compresses away.
fn fill(file: &mut File) -> std::io::Result<()> {
    let mut x = 1_u64;
    let byte = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 56) as u8
    };
    file.write_all(&std::iter::repeat_with(byte).take(BALLAST).collect::<Vec<u8>>())
}

impl Drop for Ballast {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn run_inside(
    (scenario, outside): (&Scenario, Blocks),
    folder: &Path,
    observer: &mut dyn Observer,
    manifest: &mut Map<String, Value>,
    ballast: Ballast,
) -> Result<Outcome, RunError> {
    let working = folder.join(WORKING);
    let (mut world, driven) = simulate((scenario, outside), &Destination::Folder(&working), observer)?;
    let mut wound_up = false;
    let ended = driven.and_then(|(ended, threads)| {
        wound_up = true;
        manifest.insert("threads".into(), threads);
        finish(&mut world).map(|(summary, rows)| (ended, summary, rows))
    });
    drop(ballast);
    let ((interrupted, stuck), summary, rows) = match ended {
        Ok(ended) => ended,
        Err(error) => {
            let error = by_its_name(folder, error);
            manifest.insert("sim_ps".into(), json!(world.core.now.ps()));
            manifest.insert("files".into(), files(world.core.ledger.tables.seal()));
            let _ = name_files(folder).and_then(|()| write_partial(folder, manifest, &error.to_string()));
            manifest.insert("files".into(), files(rescue(&mut world, wound_up)));
            let _ = name_files(folder);
            let _ = std::fs::remove_dir(&working);
            world.describe_watched(manifest);
            return Err(error);
        }
    };
    let stuck = stuck.or_else(|| world.traffic.failures().first().cloned());
    let reason = if interrupted { Some("interrupted".to_string()) } else { stuck.clone() };
    manifest.insert("status".into(), json!(if reason.is_some() { "partial" } else { "complete" }));
    if let Some(reason) = reason {
        manifest.insert("reason".into(), json!(reason));
    }
    describe_run(&world, observer, manifest);
    world.describe_watched(manifest);
    manifest.insert("files".into(), files(rows));
    name_files(folder)?;
    std::fs::remove_dir(&working).map_err(|e| RunError::Write { path: working, cause: e.to_string() })?;
    if let Value::Object(map) = &summary {
        write_json(folder, "summary.json", map)?;
    }
    write_json(folder, "manifest.json", manifest)?;
    if let Some(stuck) = stuck {
        return Err(RunError::Stuck(stuck));
    }
    Ok(Outcome { interrupted, summary, manifest: Value::Object(manifest.clone()) })
}

/// Runs a scenario for its summary alone: no folder, no tables, nothing recorded. The manifest holds what it says of a run, not
/// of files.
///
/// # Errors
/// See [`RunError`]; nothing is written that could fail.
pub fn summarize(scenario: Scenario, observer: &mut dyn Observer) -> Result<Outcome, RunError> {
    let hash = scenario.hash();
    let outside = Blocks::connect(&scenario, &observer.keep_waiting()).map_err(RunError::Problems)?;
    let (mut world, driven) = simulate((&scenario.unrecorded(), outside), &Destination::Nowhere, observer)?;
    let ((interrupted, stuck), _) = driven?;
    let (summary, _) = finish(&mut world)?;
    if let Some(stuck) = stuck.or_else(|| world.traffic.failures().first().cloned()) {
        return Err(RunError::Stuck(stuck));
    }
    let mut manifest = Map::new();
    manifest.insert("scenario_hash".into(), json!(hash));
    describe_run(&world, observer, &mut manifest);
    Ok(Outcome { interrupted, summary, manifest: Value::Object(manifest) })
}

/// The outcome of a run and its cost.
fn describe_run(world: &World, observer: &mut dyn Observer, manifest: &mut Map<String, Value>) {
    let (wall, cpu) = observer.cost();
    manifest.insert("fingerprint".into(), json!(format!("{:016x}", world.core.ledger.fingerprint())));
    manifest.insert("sim_ps".into(), json!(world.core.now.ps()));
    manifest.insert("wall_s".into(), json!(wall));
    manifest.insert("cpu_s".into(), json!(cpu));
    manifest.insert("packet_hops".into(), json!(world.core.ledger.totals.packet_hops));
    manifest.insert("events".into(), json!(world.core.ledger.totals.events));
    if let Some(outside) = world.outside.describe() {
        manifest.insert("outside".into(), outside);
    }
}

fn files(rows: Rows) -> Value {
    Value::Object(rows.into_iter().map(|(name, n)| (name.to_string(), json!(n))).collect())
}

/// Saves what can be saved when a table could not be written: there is a little space now, and each table tries to write the rows
/// that it still holds. Gives the numbers of rows that are in the files.
fn rescue(world: &mut World, wound_up: bool) -> Rows {
    if !wound_up {
        world.wind_up();
    }
    world.core.failure = None;
    if world.core.ledger.tables.queries.rows() == 0 {
        // A failure here is met again when the table is closed.
        let _ = world.core.ledger.tables.finish_queries(world.traffic.queries().iter(), &world.core.ledger.host_names);
    }
    if world.core.ledger.tables.collectives.rows() == 0 {
        let _ = world.core.ledger.tables.finish_collectives(&world.traffic.jobs());
    }
    world.core.ledger.tables.rescue()
}

fn write_partial(folder: &Path, manifest: &mut Map<String, Value>, reason: &str) -> Result<(), RunError> {
    manifest.insert("status".into(), json!("partial"));
    manifest.insert("reason".into(), json!(reason));
    write_json(folder, "manifest.json", manifest)
}

/// The end of a run: whether the observer stopped it, why it got stuck, if it did; and what the manifest says of its threads.
type Driven = Result<((bool, Option<String>), Value), TableError>;

/// Simulates a scenario, on as many threads as it asks for.
fn simulate(
    (scenario, outside): (&Scenario, Blocks),
    destination: &Destination<'_>,
    observer: &mut dyn Observer,
) -> Result<(World, Driven), RunError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts::Chosen { division, mut why } = parts::choose(scenario, cores)?;
    if let Some(division) = division {
        match parts::run_parts(scenario, destination, &division, Order::Threads(division.parts), observer)? {
            Ok((world, interrupted)) => return Ok((world, Ok(((interrupted, None), of_threads(division.parts, why))))),
            Err(undivided) => why = Some(undivided.0),
        }
    }
    let mut world = setup::world_asking(scenario, destination, outside)?;
    let driven = drive(&mut world, observer);
    Ok((world, driven.map(|ended| (ended, of_threads(1, why)))))
}

/// The manifest's entry for a number of threads, and the reason for no more.
fn of_threads(count: usize, why: Option<String>) -> Value {
    match why {
        Some(why) => json!({ "count": count, "why": why }),
        None => json!({ "count": count }),
    }
}

/// Runs a world to its end. Gives whether the observer stopped it, and why it got stuck, if it did.
///
/// # Errors
/// When a table cannot be written.
pub fn drive(world: &mut World, observer: &mut dyn Observer) -> Result<(bool, Option<String>), TableError> {
    loop {
        match world.advance(BUDGET)? {
            Pause::Budget => {
                let progress = Progress {
                    now: world.core.now,
                    stop: (world.stop < Time::MAX).then_some(world.stop),
                    totals: world.core.ledger.totals,
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
    if let Some(error) = world.core.failure.take() {
        return Err(error);
    }
    let queries = world.core.ledger.tables.finish_queries(world.traffic.queries().iter(), &world.core.ledger.host_names)?;
    let jobs = world.traffic.jobs();
    world.core.ledger.tables.finish_collectives(&jobs)?;
    let mut outcomes = std::mem::take(&mut world.core.ledger.tables.outcomes);
    let summary = summary(world, (&queries, &jobs), &mut outcomes);
    let rows = world.core.ledger.tables.finish()?;
    Ok((summary, rows))
}

/// Writes a file whole or not at all: first beside its place, then moved there.
fn write_json(folder: &Path, name: &str, map: &Map<String, Value>) -> Result<(), RunError> {
    let path = folder.join(name);
    let beside = folder.join(format!(".{name}.new"));
    let text = serde_json::to_string_pretty(map).unwrap_or_default() + "\n";
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, &path))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&beside);
        })
        .map_err(|e| RunError::Write { path, cause: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn nothing_of_an_older_result_survives_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let old = ["flows.csv", "queues.jsonl", "drops.arrow", "ports.parquet", "summary.json", "report.html"];
        for name in old.iter().chain(&["mine.csv"]) {
            std::fs::write(at(name), "x").unwrap();
        }
        clear(folder.path(), false).unwrap();
        assert!(at("flows.csv").exists(), "without a manifest it is not a result");
        clear(folder.path(), true).unwrap();
        assert!(old.iter().all(|name| !at(name).exists()));
        assert!(at("mine.csv").exists());
    }

    struct Patient;

    impl Observer for Patient {
        fn progress(&mut self, _: &Progress) -> Control {
            Control::Continue
        }
        fn cost(&mut self) -> (f64, f64) {
            (0.0, 0.0)
        }
    }

    /// A round trip of 2 s, and three timeouts of 10 ms, 20 ms and 40 ms at most.
    #[test]
    fn the_summary_names_flows_that_were_aborted() {
        let text = "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = { rate = \"10Gbps\", delay = \"500ms\" }\n\
                    [transport]\nkind = \"tcp\"\nhandshake = false\nmax_retries = 2\nrto_initial = \"10ms\"\nrto_min = \"10ms\"\n\
                    [[traffic]]\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1000B\" }]\n";
        let scenario = Scenario::from_toml(text, Path::new(".")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let summary = run(&scenario, folder.path(), &mut Patient).unwrap().summary;
        let aborted = json!([{"flow": 0, "src": "h0", "dst": "h1", "size_bytes": 1000, "reason": "retries_exhausted"}]);
        assert_eq!((&summary["aborted"], &summary["flows"]["aborted"]), (&aborted, &json!(1)));
        assert!(!folder.path().join(".ballast").exists());
    }

    /// Names in a folder.
    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Looks at the folder while a run lasts, then stops it or kills it.
    struct Watching<'a>(&'a Path, bool, bool);

    impl Observer for Watching<'_> {
        fn progress(&mut self, _: &Progress) -> Control {
            self.1 = true;
            assert_eq!(names(self.0), [".ballast", WORKING, "manifest.json", "mine.txt"]);
            let there = names(&self.0.join(WORKING));
            assert!(["flows.parquet", "queues.parquet"].iter().all(|name| there.contains(&(*name).to_string())), "{there:?}");
            assert!(!self.2, "killed");
            Control::Stop
        }
        fn cost(&mut self) -> (f64, f64) {
            (0.0, 0.0)
        }
    }

    #[test]
    fn no_file_has_its_name_before_the_run_has_ended() {
        let text = "[topology]\nkind = \"single_switch\"\nhosts = 3\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n\
                    [transport]\nkind = \"tcp\"\n[telemetry]\nqueues = [\"*->h0\"]\n\
                    [[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsize = \"200MB\"\n";
        let scenario = Scenario::from_toml(text, Path::new(".")).unwrap_or_else(|problems| panic!("{problems:?}"));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.txt"), "x").unwrap();
        let mut killed = Watching(folder.path(), false, true);
        let run_and_die = std::panic::AssertUnwindSafe(|| run(&scenario, folder.path(), &mut killed).map(|_| ()));
        assert!(std::panic::catch_unwind(run_and_die).is_err(), "it was killed");
        let left = names(folder.path());
        assert!(left.contains(&WORKING.to_string()) && !left.iter().any(|name| name.ends_with(".parquet")), "{left:?}");
        // The next run knows nothing of it; it is stopped, and what there is has its names.
        let mut stopped = Watching(folder.path(), false, false);
        let outcome = run(&scenario, folder.path(), &mut stopped).unwrap();
        assert!(outcome.interrupted && stopped.1);
        let left = names(folder.path());
        assert!(!left.contains(&WORKING.to_string()) && left.contains(&"queues.parquet".to_string()), "{left:?}");
    }

    #[test]
    fn ballast_is_there_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let ballast = Ballast::new(folder.path());
        let metadata = std::fs::metadata(folder.path().join(".ballast")).unwrap();
        assert_eq!(metadata.len(), BALLAST as u64);
        assert!(metadata.blocks() * 512 >= BALLAST as u64, "{} blocks: the space is promised, not taken", metadata.blocks());
        drop(ballast);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// `allocate` may say no anywhere; `fill` takes the space everywhere, whatever compresses files there.
    #[test]
    fn where_space_cannot_be_allocated_it_is_filled() {
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(BALLAST as u64).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 < BALLAST as u64, "a hole takes no space");
        fill(&mut file).unwrap();
        file.sync_all().unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 >= BALLAST as u64);
        let read_only = File::open("/dev/null").unwrap();
        assert!(!allocate(&read_only));
    }
}
