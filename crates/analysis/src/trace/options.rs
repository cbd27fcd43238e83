//! Options of an analysis, as text and JSON.

use super::source::Source;
use super::time_argument::{self, in_order, looks_like_a_date, Dated};
use crate::bursts::scale::SHARE;
use crate::capture::filter::{CaptureFilter, Target};
use crate::formats::{names as format_names, Mapping, REPORTED};
use crate::input::at::Shelf;
use crate::input::file::Place;
use crate::input::problem::{did_you_mean, listed, Problem, Problems};
use crate::trace::estimate::Buffer;
use crate::{Detect, Settings};
use fanin_units::{BitRate, Bytes, Quantity, QuantityError, Span, Time};
use fanin_wire::Direction;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Quantity by which bursts are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum By {
    /// Detection by the queue where there is one, by the arrival rate in captures without.
    #[default]
    Auto,
    Queue,
    Rate,
}

/// Options of one analysis.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files, or one result folder.
    pub paths: Vec<PathBuf>,
    /// Captures behind the port that `paths` are before.
    pub behind: Vec<PathBuf>,
    /// Interfaces before and behind the port, in captures of several.
    pub before_interface: Option<String>,
    pub behind_interface: Option<String>,
    /// Room of the port: its queue is estimated where the trace knows none, and the estimate compared where it does.
    pub buffer: Option<Buffer>,
    /// Error that the port's speed may have, as a share: the estimate is a range over it.
    pub rate_tolerance: Option<f64>,
    /// True if the port's queue counts frames without their check sequence and padding, as Linux does.
    pub without_fcs: bool,
    /// Place where the files lie.
    pub shelf: Shelf,
    /// Names of files in messages, where they are not the paths.
    pub shown: BTreeMap<PathBuf, PathBuf>,
    /// Ports that are analysed; all if empty.
    pub ports: Vec<String>,
    pub columns: Option<Mapping>,
    /// Sort the whole trace in memory.
    pub sort: bool,
    /// True if the transfers over TCP of captures are listed too.
    pub transfers: bool,
    /// At named interfaces of two captures, frames of both directions count: they are those of two hosts.
    pub both_ways: bool,
    pub by: By,
    pub above: Option<Bytes>,
    pub until: Option<Bytes>,
    pub window: Option<Span>,
    pub share: Option<f64>,
    /// Last moment of the trace that is read.
    pub stop: Option<Time>,
    /// Start of the search for bursts and last moment that is read, as dates of the trace's clock.
    pub dates: [Option<Dated>; 2],
    /// Filter of captures' frames.
    pub filter: CaptureFilter,
    /// Name of the format of all files, where the user says it.
    pub format: Option<&'static str>,
    /// Settings of burst detection; `rate` and `detect` are put in for each port.
    pub settings: Settings,
}

/// Error that a port's speed may have, as a share, unless the user says otherwise: clocks of network cards are within 0.01 %, shapers and what
/// they count of a frame within a percent.
const RATE_TOLERANCE: f64 = 0.01;

const KEYS: [&str; 33] = [
    "paths",
    "port",
    "columns",
    "format",
    "sort",
    "transfers",
    "by",
    "above",
    "until",
    "window",
    "share",
    "rate",
    "overhead",
    "merge",
    "rtt",
    "confidence",
    "top",
    "max_bursts",
    "detailed",
    "start",
    "stop",
    "to",
    "behind",
    "before_interface",
    "behind_interface",
    "buffer",
    "rate_tolerance",
    "fcs",
    "direction",
    "interface",
    "idle_before",
    "schema",
    "shown",
];

impl Options {
    /// Reads the options of an analysis from JSON: an object whose values are text with units, numbers, lists of text.
    ///
    /// # Errors
    /// Everything that is wrong with them, and with the columns of the files.
    pub fn from_json(text: &str) -> Result<Options, Problems> {
        Options::of(text, Shelf::default())
    }

    /// Reads the options of an analysis whose files lie somewhere else than on this machine.
    ///
    /// # Errors
    /// See [`Options::from_json`].
    pub fn of(text: &str, shelf: Shelf) -> Result<Options, Problems> {
        let document: Value = serde_json::from_str(text).map_err(|e| Problem::new(format!("settings are no JSON: {e}")))?;
        let Value::Object(map) = document else { return Err(Problem::new("settings are no JSON object").into()) };
        let mut reading = Reading { map: &map, problems: Vec::new() };
        for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let problem = Problem::new("is no setting").value(key).accepted(listed(KEYS));
            reading.problems.push(problem.maybe(did_you_mean(key, KEYS)));
        }
        let mut options = Options {
            paths: reading.texts("paths").into_iter().map(PathBuf::from).collect(),
            behind: reading.texts("behind").into_iter().map(PathBuf::from).collect(),
            before_interface: reading.texts("before_interface").into_iter().next(),
            behind_interface: reading.texts("behind_interface").into_iter().next(),
            buffer: reading.buffer(),
            rate_tolerance: reading.number("rate_tolerance"),
            shelf,
            without_fcs: !reading.truth("fcs", true),
            shown: reading.names("shown"),
            ports: reading.texts("port"),
            above: reading.quantity("above"),
            until: reading.quantity("until"),
            window: reading.quantity("window"),
            share: reading.number("share"),
            ..Options::default()
        };
        options.moments_and_settings(&mut reading);
        options.sort = reading.truth("sort", false);
        options.transfers = reading.truth("transfers", false);
        options.by = reading.by();
        options.filter = reading.capture_filter();
        options.format = reading.format();
        options.columns = options.mapping(&mut reading);
        if options.paths.is_empty() {
            reading.problems.push(Problem::new("names no file").column("paths").accepted("a result folder, or files"));
        }
        options.pair(&mut reading.problems);
        options.choose_by(&mut reading.problems);
        reading.problems.extend(in_order(options.settings.from, options.stop));
        let mut problems = reading.problems;
        options.judge(&mut problems);
        if problems.is_empty() {
            Ok(options)
        } else {
            Err(problems)
        }
    }

    /// Takes the stretch of time, and everything that ports have in common.
    fn moments_and_settings(&mut self, reading: &mut Reading<'_>) {
        let (from, start) = reading.moment("start");
        let (stop, last) = reading.moment("stop");
        (self.stop, self.dates) = (stop, [start, last]);
        let defaults = Settings::default();
        self.settings = Settings {
            rate: reading.quantity("rate"),
            overhead: reading.quantity("overhead").unwrap_or(defaults.overhead),
            merge: reading.quantity("merge").unwrap_or(defaults.merge),
            rtt: reading.quantity("rtt"),
            confidence: reading.number("confidence").unwrap_or(defaults.confidence),
            top: reading.count("top").unwrap_or(defaults.top),
            max_bursts: reading.count("max_bursts").unwrap_or(defaults.max_bursts),
            detailed: reading.count("detailed").unwrap_or(defaults.detailed),
            from,
            idle_before: reading.truth("idle_before", false),
            ..defaults
        };
    }

    /// The columns' mapping; where it is wrong, problems with the columns themselves are reported in the same go.
    fn mapping(&self, reading: &mut Reading<'_>) -> Option<Mapping> {
        let columns = match reading.get("columns") {
            None => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Object(roles)) => {
                let parts = roles.iter().map(|(role, column)| match column {
                    Value::String(column) => format!("{role}={column}"),
                    other => format!("{role}={other}"),
                });
                Some(parts.collect::<Vec<_>>().join(","))
            }
            Some(other) => {
                reading.wrong("columns", other, "is neither text nor an object", "\"time=ts:ns,queue=qlen:KB\"");
                None
            }
        };
        columns.map(|text| {
            let (mapping, problems) = Mapping::read_partly(&text);
            if !problems.is_empty() {
                reading.problems.extend(problems);
                // What is wrong with the columns themselves, in the same go.
                let found = self.paths.iter().map(|path| Source::find(&self.place(path), Some(&mapping)));
                let of_columns = found.filter_map(Result::err).flatten().filter(|problem| problem.column.is_some());
                reading.problems.extend(of_columns.take(REPORTED));
            }
            mapping
        })
    }

    /// Settles which captures are before and behind a port.
    fn pair(&mut self, problems: &mut Problems) {
        if self.behind_interface.is_some() && self.before_interface.is_some() && self.behind.is_empty() {
            self.behind.clone_from(&self.paths);
        } else if self.before_interface.is_some() && self.behind.is_empty() {
            let problem = Problem::new("has no effect without a capture behind the port").column("before_interface");
            problems.push(problem.accepted("behind or behind_interface as well"));
        } else if self.behind_interface.is_some() && self.behind.is_empty() {
            let problem = Problem::new("has no effect without a capture before the port").column("behind_interface");
            problems.push(problem.accepted("behind or before_interface as well"));
        }
    }

    /// Settles if bursts are found by the queue or by the rate, from the thresholds that are given.
    fn choose_by(&mut self, problems: &mut Problems) {
        let by_rate = self.window.is_some() || self.share.is_some();
        let by_queue = self.above.is_some() || self.until.is_some();
        if self.by == By::Rate && by_queue {
            problems.push(Problem::new("have no effect where bursts are found by the arrival rate").column("above, until"));
        }
        if self.by == By::Queue && by_rate {
            problems.push(Problem::new("have no effect where bursts are found by the queue").column("window, share"));
        }
        if self.by == By::Auto && by_rate && !by_queue {
            self.by = By::Rate;
        }
        if by_rate && by_queue && self.by == By::Auto {
            problems.push(Problem::new("exclude above and until: a burst is found by rate or by queue").column("window, share"));
        }
    }

    /// Adds problems with the settings of detection.
    fn judge(&self, problems: &mut Problems) {
        if let Some(share) = self.rate_tolerance {
            let problem = Problem::new(if (0.0..=0.5).contains(&share) {
                "has no effect: only an estimate of the queue (buffer) is a range over what the speed may be"
            } else {
                "is no share that a speed may be off by"
            });
            if self.buffer.is_none() || !(0.0..=0.5).contains(&share) {
                problems.push(
                    problem.column("rate_tolerance").value(share.to_string()).accepted("0 to 0.5, for example 0.01, with buffer"),
                );
            }
        }
        // The rate may still come with the trace, so that only what does not depend on it is judged here.
        let judged = Settings { rate: self.settings.rate, ..self.detecting(By::Queue) };
        let reported = judged.problems().into_iter().map(|e| Problem::new(e.message).column(e.setting));
        problems.extend(reported);
        if self.by == By::Rate {
            let judged = Settings { rate: self.settings.rate.or(Some(BitRate(1))), ..self.detecting(By::Rate) };
            let known: Vec<_> = problems.clone();
            problems.extend(
                judged.problems().into_iter().map(|e| Problem::new(e.message).column(e.setting)).filter(|p| !known.contains(p)),
            );
        }
    }

    /// Error that the port's speed may have, as a share.
    pub(super) fn tolerance(&self) -> f64 {
        self.rate_tolerance.unwrap_or(RATE_TOLERANCE)
    }

    /// A file with its name in messages.
    pub(super) fn place(&self, path: &Path) -> Place {
        let shown = self.shown.get(path).map_or(path, PathBuf::as_path);
        Place { path: path.to_path_buf(), shown: shown.to_path_buf(), shelf: self.shelf.clone(), format: self.format }
    }

    /// Settings with the threshold for this kind of detection.
    pub fn detecting(&self, by: By) -> Settings {
        let detect = match by {
            By::Rate => Detect::Rate { window: self.window, share: self.share.unwrap_or(SHARE) },
            By::Auto | By::Queue => Detect::Queue { above: self.above, until: self.until },
        };
        Settings { detect, ..self.settings.clone() }
    }

    /// Options in the report: what was asked, with the defaults that apply to all ports.
    pub fn reported(&self, by: By) -> Value {
        let text = |v: Option<String>| v.map_or(Value::Null, Value::String);
        let s = &self.settings;
        let rate = by == By::Rate;
        let mut reported = json!({
            "by": if rate { "rate" } else { "queue" },
            "port": self.ports,
            "rate_bps": s.rate.map(BitRate::bps),
            "overhead_bytes": s.overhead.get(),
            "above_bytes": if rate { None } else { self.above.map(Bytes::get) },
            "until_bytes": if rate { None } else { self.until.map(Bytes::get) },
            "window_ps": if rate { self.window.map(Span::ps) } else { None },
            "share": rate.then(|| self.share.unwrap_or(SHARE)),
            "merge_ps": s.merge.ps(),
            "rtt_ps": s.rtt.map(Span::ps),
            "confidence": s.confidence,
            "top": s.top,
            "max_bursts": s.max_bursts,
            "detailed": s.detailed,
            "start_ps": s.from.map(Time::ps),
            "stop_ps": self.stop.map(Time::ps),
            "to": self.filter.to.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "direction": self.filter.direction.map(|d| if d == Direction::In { "in" } else { "out" }),
            "interface": self.filter.interfaces,
            "columns": text(self.columns.as_ref().map(ToString::to_string)),
            "sort": self.sort,
            "transfers": self.transfers,
            "behind": self.behind.iter().map(|p| p.display().to_string()).collect::<Vec<_>>(),
            "before_interface": self.before_interface,
            "behind_interface": self.behind_interface,
            "buffer": text(self.buffer.map(|b| b.to_string())),
            "rate_tolerance": self.buffer.map(|_| self.tolerance()),
            "fcs": !self.without_fcs,
            "idle_before": s.idle_before,
        });
        // Named where it is not that which the files show.
        if let Some(format) = self.format {
            reported["format"] = json!(format);
        }
        reported
    }
}

/// Values being read from an object.
struct Reading<'a> {
    map: &'a serde_json::Map<String, Value>,
    problems: Problems,
}

impl<'a> Reading<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|v| !v.is_null())
    }

    fn wrong(&mut self, key: &str, value: &Value, message: &str, accepted: &str) {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        self.problems.push(Problem::new(message).column(key).value(shown).accepted(accepted));
    }

    fn quantity<Q: Quantity>(&mut self, key: &str) -> Option<Q> {
        let accepted = format!("{} such as {}", Q::WHAT, Q::EXAMPLES);
        match self.get(key)? {
            Value::String(text) => match Q::read(text) {
                Ok(quantity) => return Some(quantity),
                Err(error) => {
                    let value = Value::String(text.clone());
                    if text.trim_start().starts_with('-') {
                        self.wrong(key, &value, "is negative", &accepted);
                        return None;
                    }
                    self.wrong(key, &value, &error.to_string(), &accepted);
                    if let (QuantityError::UnknownUnit(unit), Some(problem)) = (error, self.problems.last_mut()) {
                        let meant = Q::UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&unit));
                        problem.suggestion = meant.map(|(name, _)| format!("did you mean '{name}'?").into());
                    }
                }
            },
            other @ Value::Number(_) => self.wrong(key, other, "has no unit", &accepted),
            other => self.wrong(key, other, "is no text with a unit", &accepted),
        }
        None
    }

    /// Queue or rate, by which bursts are found.
    fn by(&mut self) -> By {
        match self.get("by") {
            None => By::Auto,
            Some(Value::String(by)) if by == "queue" => By::Queue,
            Some(Value::String(by)) if by == "rate" => By::Rate,
            Some(other) => {
                self.wrong("by", other, "is nothing that bursts are found by", "queue, rate");
                By::Auto
            }
        }
    }

    /// The frames of captures that are asked for.
    fn capture_filter(&mut self) -> CaptureFilter {
        let mut filter = CaptureFilter::default();
        for text in self.texts("to") {
            match Target::read(&text) {
                Ok(target) => filter.to.push(target),
                Err(problem) => self.problems.push(problem),
            }
        }
        filter.interfaces = self.texts("interface");
        filter.direction = match self.get("direction") {
            None => None,
            Some(Value::String(way)) if way == "in" => Some(Direction::In),
            Some(Value::String(way)) if way == "out" => Some(Direction::Out),
            Some(other) => {
                self.wrong("direction", other, "is no direction", "in, out");
                None
            }
        };
        filter
    }

    /// Reads a time after time 0 of the trace, or a date.
    fn moment(&mut self, key: &str) -> (Option<Time>, Option<Dated>) {
        let text = match self.get(key) {
            None => return (None, None),
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                let other = other.clone();
                let why = if other.is_number() { "has no unit" } else { "is no text" };
                self.wrong(key, &other, why, time_argument::ACCEPTED);
                return (None, None);
            }
        };
        if let Some(dated) = Dated::read(&text) {
            return (None, Some(dated));
        }
        let value = Value::String(text.clone());
        match Span::read(&text) {
            Ok(span) => return (Some(Time::from_ps(span.ps())), None),
            Err(_) if looks_like_a_date(&text) => {
                self.wrong(key, &value, "is no date of the calendar with a time", time_argument::ACCEPTED)
            }
            Err(_) if text.trim_start().starts_with('-') => self.wrong(key, &value, "is negative", time_argument::ACCEPTED),
            Err(error) => self.wrong(key, &value, &error.to_string(), time_argument::ACCEPTED),
        }
        (None, None)
    }

    fn format(&mut self) -> Option<&'static str> {
        let value = self.get("format")?;
        let known = format_names();
        let found = value.as_str().and_then(|name| known.iter().find(|known| **known == name).copied());
        if found.is_none() {
            let problem = Problem::new("is no format")
                .column("format")
                .value(value.as_str().map_or_else(|| value.to_string(), str::to_string));
            let meant = did_you_mean(value.as_str().unwrap_or_default(), known.iter().copied());
            self.problems.push(problem.accepted(listed(known)).maybe(meant));
        }
        found
    }

    fn buffer(&mut self) -> Option<Buffer> {
        let accepted = "a size such as 512KB, 1000 packets, unlimited";
        match self.get("buffer")? {
            Value::String(text) => match Buffer::read(text) {
                Ok(buffer) => return Some(buffer),
                Err(error) => self.wrong("buffer", &Value::String(text.clone()), &error.to_string(), accepted),
            },
            other => self.wrong("buffer", other, "is no text with a unit", accepted),
        }
        None
    }

    fn truth(&mut self, key: &str, otherwise: bool) -> bool {
        match self.get(key) {
            None => otherwise,
            Some(Value::Bool(truth)) => *truth,
            Some(other) => {
                self.wrong(key, other, "is neither true nor false", "true, false");
                otherwise
            }
        }
    }

    fn number(&mut self, key: &str) -> Option<f64> {
        let value = self.get(key)?;
        let number = value.as_f64();
        if number.is_none() {
            self.wrong(key, value, "is no number", "a number, for example 0.95");
        }
        number
    }

    fn count(&mut self, key: &str) -> Option<usize> {
        let value = self.get(key)?;
        let count = value.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= 10_000_000);
        if count.is_none() {
            self.wrong(key, value, "is no count", "a whole number from 0 to 10000000");
        }
        count
    }

    /// Texts by text, from a key of the options.
    fn names(&mut self, key: &str) -> BTreeMap<PathBuf, PathBuf> {
        match self.get(key) {
            None => BTreeMap::new(),
            Some(Value::Object(names)) if names.values().all(Value::is_string) => {
                names.iter().filter_map(|(path, name)| Some((PathBuf::from(path), PathBuf::from(name.as_str()?)))).collect()
            }
            Some(other) => {
                self.wrong(key, other, "is no object of texts", "{\"/dev/fd/9\": \"stdin\"}");
                BTreeMap::new()
            }
        }
    }

    /// One text or a list of them.
    fn texts(&mut self, key: &str) -> Vec<String> {
        match self.get(key) {
            None => Vec::new(),
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
                items.iter().filter_map(|v| v.as_str().map(str::to_string)).collect()
            }
            Some(other) => {
                self.wrong(key, other, "is neither text nor a list of texts", "\"a\" or [\"a\", \"b\"]");
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Options::from_json(text).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn options_are_read_with_their_units() {
        let options = Options::from_json(
            r#"{"paths": "a.csv", "port": ["x"], "rate": "10Gbps", "above": "50KB", "rtt": "40us", "top": 3, "sort": true,
                "columns": {"time": "ts:ns", "queue": "q:KB"}, "start": "1ms", "stop": "2ms",
                "to": "10.0.0.0/24", "direction": "in", "interface": ["eth0"]}"#,
        )
        .unwrap();
        assert_eq!(options.settings.rate, Some(BitRate::from_gbps(10)));
        assert_eq!((options.above, options.until), (Some(Bytes(50_000)), None));
        assert_eq!((options.settings.top, options.sort, options.by), (3, true, By::Auto));
        assert_eq!(options.columns.as_ref().unwrap().to_string(), "queue=q:KB,time=ts:ns");
        let reported = options.reported(By::Queue);
        assert_eq!(reported["above_bytes"], 50_000);
        assert_eq!(reported["start_ps"], 1_000_000_000_u64);
        let by_rate = Options::from_json(r#"{"paths": ["a"], "window": "10us"}"#).unwrap();
        assert_eq!(by_rate.by, By::Rate);
        assert_eq!(by_rate.detecting(By::Rate).detect, Detect::Rate { window: Some(Span::from_us(10)), share: 0.5 });
    }

    #[test]
    fn all_that_is_wrong_is_reported_at_once() {
        let text = wrong(
            r#"{"above": 5, "until": "3 kb", "rate": "-1Gbps", "rtt": "5", "top": -1, "confidence": 2, "by": "x", "sort": 1,
                "columns": "tme=a", "abov": 1, "port": [1],
                "start": "2026-11-31T02:23:12.80Z", "stop": "noon"}"#,
        );
        for part in [
            "'abov' is no setting; accepted: paths, port,",
            "did you mean 'above'?",
            "above: '5' has no unit; accepted: a size such as",
            "until: '3 kb' has the unknown unit 'kb'",
            "did you mean 'KB'?",
            "rate: '-1Gbps' is negative",
            "rtt: '5' has no unit",
            "top: '-1' is no count",
            "confidence: is 2; accepted: above 0 and below 1",
            "by: 'x' is nothing that bursts are found by; accepted: queue, rate",
            "sort: '1' is neither true nor false",
            "'tme' is nothing that a column can mean",
            "port: '[1]' is neither text nor a list of texts",
            "paths: names no file",
            "start: '2026-11-31T02:23:12.80Z' is no date of the calendar with a time; accepted: a time such as 1.5ms, or a date such as",
            "stop: 'noon' is no",
        ] {
            assert!(text.contains(part), "{part}\nin\n{text}");
        }
    }

    #[test]
    fn settings_without_effect_are_errors() {
        assert!(wrong(r#"{"paths": "a", "by": "rate", "above": "1KB"}"#).contains("have no effect"));
        assert!(wrong(r#"{"paths": "a", "by": "queue", "share": 0.5}"#).contains("have no effect"));
        assert!(wrong(r#"{"paths": "a", "window": "1us", "above": "1KB"}"#).contains("exclude"));
        assert!(wrong(r#"{"paths": "a", "above": "1KB", "until": "2KB"}"#).contains("before it begins"));
        assert!(wrong(r#"{"paths": "a", "start": "2ms", "stop": "2ms"}"#)
            .contains("stop: '2ms' is not after 'start'; accepted: more than 2ms"));
    }
}
