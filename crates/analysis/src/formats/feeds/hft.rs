//! Arrow files of SONiC's high-frequency telemetry: raw values of SAI counters, in lists.
//!
//! Source: SONiC sonic-swss crates/countersyncd actor/local_storage.rs (format `sonic-hft-arrow-v5`: notes of the schema, two lists in each
//! record batch: T times in ns, and C·T values, those of each series one behind another).

use super::looks::{of_sai_name, Counter, Most, HELD};
use super::Feed;
use crate::counters::{Look, Series, Value};
use crate::formats::arrow::ArrowFile;
use crate::formats::{Mapping, OpenRows, RowsFile};
use crate::input::context::Context;
use crate::input::facts::{Facts, Shape};
use crate::input::file::SourceFile;
use crate::input::problem::{Problem, Problems};
use crate::input::reader::{Batch, TraceReader, BATCH};
use crate::Fates;
use fanin_units::BitRate;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Note of the schema that says the format, and what it begins with.
pub const VERSION: &str = "format_version";
pub const NAME: &str = "sonic-hft-arrow-";
const KNOWN: &str = "sonic-hft-arrow-v5";

/// Values of a list, at most: the writer's blocks have 16 MiB.
const VALUES: u64 = 1 << 22;
/// Series of a file, at most.
const SERIES: usize = 1 << 20;
/// Picoseconds in a nanosecond.
const NS: u128 = 1_000;

/// A port, and the places of its counters among the series.
#[derive(Clone, Debug)]
struct Object {
    name: String,
    counters: Vec<(usize, Counter)>,
    most: Most,
}

/// A file that has been inspected.
pub struct HftFile;

/// Objects of the series in a schema, the number of series, and of those that are not read.
fn objects(file: &ArrowFile, path: &std::path::Path) -> Result<(Vec<Object>, usize, usize), Problem> {
    let version = file.note(VERSION).unwrap_or_default();
    if version != KNOWN {
        let problem = Problem::new("is no version of SONiC's Arrow files that is read").file(path).column(VERSION);
        return Err(problem.value(version).accepted(KNOWN));
    }
    for (key, known) in [("timestamp_unit", "ns"), ("matrix_order", "series-major")] {
        let found = file.note(key).unwrap_or_default();
        if found != known {
            return Err(Problem::new("is not what the format says").file(path).column(key).value(found).accepted(known));
        }
    }
    let wrong = |what: String| Problem::new(format!("is no list of series: {what}")).file(path).column("series");
    let series: Json = serde_json::from_str(&file.note("series").unwrap_or_default()).map_err(|e| wrong(e.to_string()))?;
    let series = series.as_array().filter(|series| series.len() <= SERIES).ok_or_else(|| wrong("it is no array".into()))?;
    let (mut by_name, mut unread) = (BTreeMap::new(), 0);
    let mut objects: Vec<Object> = Vec::new();
    for (place, one) in series.iter().enumerate() {
        let (Some(name), Some(statistic)) = (one["object_name"].as_str(), one["stat_name"].as_str()) else {
            return Err(wrong("an object lacks object_name or stat_name".into()).value(one.to_string()));
        };
        let Some(counter) = of_sai_name(statistic) else {
            unread += 1;
            continue;
        };
        let index = *by_name.entry(name.to_string()).or_insert(objects.len());
        if index == objects.len() {
            objects.push(Object { name: name.to_string(), counters: Vec::new(), most: Most::default() });
        }
        objects[index].counters.push((place, counter));
    }
    Ok((objects, series.len(), unread))
}

impl HftFile {
    /// Finds out facts about a file.
    ///
    /// # Errors
    /// It is of another version, or damaged; a mapping has no meaning.
    pub fn inspect(file: SourceFile, mapping: Option<&Mapping>) -> Result<RowsFile, Problems> {
        super::no_columns(mapping, "SONiC's Arrow file").map_err(|problem| problem.file(&file.path))?;
        let mut arrow = ArrowFile::open(&file.place)?;
        let (objects, count, unread) = objects(&arrow, &file.path)?;
        let has = |of: &[Counter]| objects.iter().flat_map(|object| &object.counters).any(|(_, counter)| of.contains(counter));
        let first = arrow.lists(VALUES)?.and_then(|lists| lists.first()?.iter().min().map(|ns| u128::from(*ns) * NS));
        let facts = Facts {
            has_queue: has(&[Counter::Queue, Counter::Watermark]),
            fates: Fates { drops: has(&[Counter::Dropped]), marks: has(&[Counter::Marked]) },
            first,
            ..Facts::of("arrow", Shape::Counters)
        };
        let read = count - unread;
        let notes =
            vec![format!("{read} series of SAI counters at {} objects; {unread} of other counters are not read", objects.len())];
        Ok(RowsFile { file, facts, notes, rows: Box::new(HftFile) })
    }
}

impl OpenRows for HftFile {
    fn open(&self, file: &SourceFile) -> Result<Box<dyn TraceReader>, Problems> {
        let arrow = ArrowFile::open(&file.place)?;
        let (objects, series, _) = objects(&arrow, &file.path)?;
        Ok(Box::new(Hft {
            arrow,
            file: file.path.clone(),
            objects,
            series,
            times: Vec::new(),
            values: Vec::new(),
            at: 0,
            ports: Vec::new(),
            held: false,
        }))
    }
}

/// A file that is being read.
struct Hft {
    arrow: ArrowFile,
    file: std::path::PathBuf,
    objects: Vec<Object>,
    series: usize,
    /// The present record batch, and the next of its times.
    times: Vec<u64>,
    values: Vec<u64>,
    at: usize,
    ports: Vec<(Series, Option<BitRate>)>,
    held: bool,
}

impl TraceReader for Hft {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        let mut any = false;
        while batch.readings.len() < BATCH {
            let Some(time) = self.times.get(self.at).copied() else {
                let Some(lists) = self.arrow.lists(VALUES)? else { break };
                let mut lists = lists.into_iter();
                (self.times, self.values, self.at) = (lists.next().unwrap_or_default(), lists.next().unwrap_or_default(), 0);
                if self.values.len() != self.times.len() * self.series {
                    let (values, times, series) = (self.values.len(), self.times.len(), self.series);
                    let what = format!("is damaged: {values} values are not {times} times {series} series");
                    return Err(Problem::new(what).file(&self.file).into());
                }
                any = true;
                continue;
            };
            let mut feed = Feed {
                context: &mut *context,
                batch: &mut *batch,
                ports: &mut self.ports,
                seen: None,
                path: &self.file,
                passed: 0,
            };
            let at = feed.time(u128::from(time) * NS).map_err(|problem| problem.file(&self.file))?;
            for object in &mut self.objects {
                let mut look = Look { time: at, ..Look::default() };
                for (series, counter) in &object.counters {
                    let value = self.values[series * self.times.len() + self.at];
                    self.held |= counter.put(Value::Total(value, Some(64)), &mut object.most, &mut look);
                }
                let port = feed.port(object.name.as_bytes()).map_err(|problem| problem.file(&self.file))?;
                feed.look(port, &look);
            }
            self.at += 1;
            any = true;
        }
        Ok(any)
    }

    fn place(&self, row: u64) -> String {
        format!("reading {row}")
    }

    fn progress(&self) -> f64 {
        self.arrow.progress()
    }

    fn finish(&mut self, context: &mut Context) {
        let file = self.file.display();
        if self.held {
            context.note(format!("{file}: {HELD}"));
        }
        context.notes.extend(self.arrow.ended().map(|ended| format!("{file}: {ended}")));
    }
}
