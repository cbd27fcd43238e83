//! What a user asks for, as text and JSON.

use super::mapping::Mapping;
use super::problem::{did_you_mean, listed, Problem, Problems};
use crate::{Detect, Settings};
use fanin_units::{BitRate, Bytes, Quantity, QuantityError, Span, Time};
use serde_json::{json, Value};
use std::path::PathBuf;

/// What a burst is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum By {
    /// By the queue where there is one, by the arrival rate in captures without.
    #[default]
    Auto,
    Queue,
    Rate,
}

/// Everything about one analysis.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files, or one result folder.
    pub paths: Vec<PathBuf>,
    /// Only these ports; all if empty.
    pub ports: Vec<String>,
    pub columns: Option<Mapping>,
    /// Sort the whole trace in memory.
    pub sort: bool,
    pub by: By,
    pub above: Option<Bytes>,
    pub until: Option<Bytes>,
    pub window: Option<Span>,
    pub share: Option<f64>,
    /// Last moment of the trace that is read.
    pub to: Option<Time>,
    /// Everything else; `rate` and `detect` are put in for each port.
    pub settings: Settings,
}

const KEYS: [&str; 20] = [
    "paths",
    "port",
    "columns",
    "sort",
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
    "from",
    "to",
    "schema",
];

/// Shortest time window for detection by rate, and the share of the port's speed.
///
/// Source: IMC17-microbursts §4 (25 us, 50 %).
const WINDOW: Span = Span::from_us(25);
const SHARE: f64 = 0.5;

impl Options {
    /// Reads the options of an analysis from JSON: an object whose values are text with units, numbers, lists of text.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn from_json(text: &str) -> Result<Options, Problems> {
        let document: Value = serde_json::from_str(text).map_err(|e| Problem::new(format!("settings are no JSON: {e}")))?;
        let Value::Object(map) = document else { return Err(Problem::new("settings are no JSON object").into()) };
        let mut reading = Reading { map: &map, problems: Vec::new() };
        for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let problem = Problem::new("is no setting").value(key).accepted(listed(KEYS));
            reading.problems.push(problem.maybe(did_you_mean(key, KEYS)));
        }
        let mut options = Options {
            paths: reading.texts("paths").into_iter().map(PathBuf::from).collect(),
            ports: reading.texts("port"),
            above: reading.quantity("above"),
            until: reading.quantity("until"),
            window: reading.quantity("window"),
            share: reading.number("share"),
            to: reading.quantity::<Span>("to").map(|s| Time::from_ps(s.ps())),
            ..Options::default()
        };
        let defaults = Settings::default();
        options.settings = Settings {
            rate: reading.quantity("rate"),
            overhead: reading.quantity("overhead").unwrap_or(defaults.overhead),
            merge: reading.quantity("merge").unwrap_or(defaults.merge),
            rtt: reading.quantity("rtt"),
            confidence: reading.number("confidence").unwrap_or(defaults.confidence),
            top: reading.count("top").unwrap_or(defaults.top),
            max_bursts: reading.count("max_bursts").unwrap_or(defaults.max_bursts),
            detailed: reading.count("detailed").unwrap_or(defaults.detailed),
            from: reading.quantity::<Span>("from").map(|s| Time::from_ps(s.ps())),
            ..defaults
        };
        options.sort = match reading.get("sort") {
            None => false,
            Some(Value::Bool(sort)) => *sort,
            Some(other) => {
                reading.wrong("sort", other, "is neither true nor false", "true, false");
                false
            }
        };
        options.by = match reading.get("by") {
            None => By::Auto,
            Some(Value::String(by)) if by == "queue" => By::Queue,
            Some(Value::String(by)) if by == "rate" => By::Rate,
            Some(other) => {
                reading.wrong("by", other, "is nothing that bursts are found by", "queue, rate");
                By::Auto
            }
        };
        options.columns = match reading.get("columns") {
            None => None,
            Some(Value::String(text)) => Mapping::read(text).map_err(|p| reading.problems.extend(p)).ok(),
            Some(Value::Object(roles)) => {
                let parts = roles.iter().map(|(role, column)| match column {
                    Value::String(column) => format!("{role}={column}"),
                    other => format!("{role}={other}"),
                });
                Mapping::read(&parts.collect::<Vec<_>>().join(",")).map_err(|p| reading.problems.extend(p)).ok()
            }
            Some(other) => {
                reading.wrong("columns", other, "is neither text nor an object", "\"time=ts:ns,queue=qlen:KB\"");
                None
            }
        };
        if options.paths.is_empty() {
            reading.problems.push(Problem::new("names no file").column("paths").accepted("a result folder, or files"));
        }
        let by_rate = options.window.is_some() || options.share.is_some();
        let by_queue = options.above.is_some() || options.until.is_some();
        if options.by == By::Rate && by_queue {
            reading
                .problems
                .push(Problem::new("have no effect where bursts are found by the arrival rate").column("above, until"));
        }
        if options.by == By::Queue && by_rate {
            reading.problems.push(Problem::new("have no effect where bursts are found by the queue").column("window, share"));
        }
        if options.by == By::Auto && by_rate && !by_queue {
            options.by = By::Rate;
        }
        if by_rate && by_queue && options.by == By::Auto {
            reading
                .problems
                .push(Problem::new("exclude above and until: a burst is found by rate or by queue").column("window, share"));
        }
        if let (Some(from), Some(to)) = (options.settings.from, options.to) {
            if to <= from {
                let problem = Problem::new("is not after 'from'").column("to").value(Span::from_ps(to.ps()).to_string());
                reading.problems.push(problem.accepted(format!("more than {}", Span::from_ps(from.ps()))));
            }
        }
        let mut problems = reading.problems;
        // The rate may still come with the trace, so that only what does not depend on it is judged here.
        let judged = Settings { rate: options.settings.rate, ..options.detecting(By::Queue) };
        let reported = judged.problems().into_iter().map(|e| Problem::new(e.message).column(e.setting));
        problems.extend(reported);
        if options.by == By::Rate {
            let judged = Settings { rate: options.settings.rate.or(Some(BitRate(1))), ..options.detecting(By::Rate) };
            let known: Vec<_> = problems.clone();
            problems.extend(
                judged.problems().into_iter().map(|e| Problem::new(e.message).column(e.setting)).filter(|p| !known.contains(p)),
            );
        }
        if problems.is_empty() {
            Ok(options)
        } else {
            Err(problems)
        }
    }

    /// The settings with what bursts are found by.
    pub fn detecting(&self, by: By) -> Settings {
        let detect = match by {
            By::Rate => Detect::Rate { window: self.window.unwrap_or(WINDOW), share: self.share.unwrap_or(SHARE) },
            By::Auto | By::Queue => Detect::Queue { above: self.above, until: self.until },
        };
        Settings { detect, ..self.settings.clone() }
    }

    /// As the report gives them: what was asked, with the defaults that apply to all ports.
    pub fn reported(&self, by: By) -> Value {
        let text = |v: Option<String>| v.map_or(Value::Null, Value::String);
        let s = &self.settings;
        let rate = by == By::Rate;
        json!({
            "by": if rate { "rate" } else { "queue" },
            "port": self.ports,
            "rate_bps": s.rate.map(BitRate::bps),
            "overhead_bytes": s.overhead.get(),
            "above_bytes": if rate { None } else { self.above.map(Bytes::get) },
            "until_bytes": if rate { None } else { self.until.map(Bytes::get) },
            "window_ps": rate.then(|| self.window.unwrap_or(WINDOW).ps()),
            "share": rate.then(|| self.share.unwrap_or(SHARE)),
            "merge_ps": s.merge.ps(),
            "rtt_ps": s.rtt.map(Span::ps),
            "confidence": s.confidence,
            "top": s.top,
            "max_bursts": s.max_bursts,
            "detailed": s.detailed,
            "from_ps": s.from.map(Time::ps),
            "to_ps": self.to.map(Time::ps),
            "columns": text(self.columns.as_ref().map(ToString::to_string)),
            "sort": self.sort,
        })
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
                "columns": {"time": "ts:ns", "queue": "q:KB"}, "from": "1ms", "to": "2ms"}"#,
        )
        .unwrap();
        assert_eq!(options.settings.rate, Some(BitRate::from_gbps(10)));
        assert_eq!((options.above, options.until), (Some(Bytes(50_000)), None));
        assert_eq!((options.settings.top, options.sort, options.by), (3, true, By::Auto));
        assert_eq!(options.columns.as_ref().unwrap().to_string(), "queue=q:KB,time=ts:ns");
        let reported = options.reported(By::Queue);
        assert_eq!(reported["above_bytes"], 50_000);
        assert_eq!(reported["from_ps"], 1_000_000_000_u64);
        let by_rate = Options::from_json(r#"{"paths": ["a"], "window": "10us"}"#).unwrap();
        assert_eq!(by_rate.by, By::Rate);
        assert_eq!(by_rate.detecting(By::Rate).detect, Detect::Rate { window: Span::from_us(10), share: 0.5 });
    }

    #[test]
    fn all_that_is_wrong_is_reported_at_once() {
        let text = wrong(
            r#"{"above": 5, "until": "3 kb", "rate": "-1Gbps", "rtt": "5", "top": -1, "confidence": 2, "by": "x", "sort": 1,
                "columns": "tme=a", "abov": 1, "port": [1]}"#,
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
        assert!(wrong(r#"{"paths": "a", "from": "2ms", "to": "2ms"}"#)
            .contains("to: '2ms' is not after 'from'; accepted: more than 2ms"));
    }
}
