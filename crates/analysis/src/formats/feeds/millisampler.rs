//! Runs of Millisampler, of Meta's public data set: bytes that a host received in each millisecond.
//!
//! Source: Millisampler (IMC 2022, "Microscopic view of bursts, buffer contention, and loss in data centers"); the names of the fields as four
//! public readers of the data set use them (`ingressBytes`, `egressBytes`, `inRxmitBytes`, `outRxmitBytes`, `inCongestionExperiencedBytes`,
//! `connections`, `rack_id`, `server_hostname`, `sampling_freq`, `burst_result.ingress` by its start in microseconds). The data set itself
//! could not be had here.

use super::documents::{begins, Document, OfDocuments};
use super::{no_columns, Decode, Feed, Streamed, Tells};
use crate::counters::{Interval, State};
use crate::formats::mapping::Mapping;
use crate::input::number::DATES;
use crate::input::problem::Problem;
use fanin_units::Time;
use serde_json::Value as Json;

/// One run of one host by document.
pub const MILLISAMPLER: Streamed =
    Streamed { name: "millisampler", title: "Millisampler JSON", recognises: is_run, make, tells: Tells::All };

/// Picoseconds in a millisecond.
const MS: u64 = 1_000_000_000;

const LISTS: [&str; 5] = ["ingressBytes", "egressBytes", "inRxmitBytes", "outRxmitBytes", "inCongestionExperiencedBytes"];

fn is_run(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    begins(&text) && (LISTS.iter().any(|key| has(key)) || has("burst_result") || (has("server_hostname") && has("rack_id")))
}

fn make(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "a run of Millisampler")?;
    Ok(OfDocuments::made(Runs::default()))
}

#[derive(Default)]
struct Runs {
    read: u64,
    without: u64,
    samples: u64,
    labels: u64,
    untimed: bool,
}

/// A label of a host or a rack: a number, or text.
fn label(value: &Json) -> Option<String> {
    value.as_str().map(str::to_string).or_else(|| value.as_u64().map(|number| number.to_string()))
}

impl Runs {
    fn run(&mut self, run: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        self.read += 1;
        let Some(values) = run["ingressBytes"].as_array() else {
            // Some hosts have labels only.
            self.without += 1;
            return Ok(());
        };
        // One millisecond, whichever of its names is meant: 1 ms, 1000 Hz, 1000 us.
        let step = &run["sampling_freq"];
        if !step.is_null() && !matches!(step.as_f64(), Some(step) if step == 1.0 || step == 1_000.0) {
            let problem = Problem::new("is in no unit that is known").column("sampling_freq").value(step.to_string());
            return Err(problem.accepted("1 (ms), or 1000 (Hz or us): the data set has one value by millisecond"));
        }
        let starts = run["burst_result"]["ingress"].as_object();
        let start = starts.and_then(|starts| starts.keys().next()?.parse::<u64>().ok());
        let start = start.filter(|us| DATES.contains(&(us / 1_000_000)));
        self.untimed |= start.is_none();
        let bursts = starts.into_iter().flat_map(|starts| starts.values()).filter_map(Json::as_array);
        self.labels += bursts.flatten().filter(|burst| burst.get("Position").is_some()).count() as u64;
        let begin = feed.time(u128::from(start.unwrap_or(0)) * 1_000_000)?;
        let host = label(&run["server_hostname"]).unwrap_or_else(|| self.read.to_string());
        let name = label(&run["rack_id"]).map_or_else(|| format!("host {host}"), |rack| format!("rack {rack} host {host}"));
        let port = feed.port(name.as_bytes())?;
        for (place, value) in values.iter().enumerate() {
            let at = |place: usize| Time::from_ps(begin.ps().saturating_add(place as u64 * MS));
            // A value that is absent, negative or no number is unknown.
            let bytes = value.as_u64().or_else(|| value.as_f64().filter(|v| (0.0..1e15).contains(v)).map(|v| v as u64));
            let state = if bytes.is_some() { State::Known } else { State::Gap };
            feed.interval(port, Interval { start: at(place), end: at(place + 1), sent: bytes, state, ..Interval::default() });
            self.samples += 1;
        }
        Ok(())
    }
}

impl Document for Runs {
    fn document(&mut self, run: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        self.run(run, feed)
    }

    fn notes(&mut self, _: u64, notes: &mut Vec<String>) {
        let Runs { read, without, samples, labels, untimed, .. } = self;
        notes.push(format!(
            "{read} runs of Millisampler, {samples} milliseconds: bytes that a host received are those that left the port to it, losses \
             before it and marks are not read; the data set labels {labels} bursts"
        ));
        if *without > 0 {
            notes.push(format!("{without} runs have no ingressBytes, and were passed over"));
        }
        if *untimed {
            notes.push("runs that do not say when they began count from zero".into());
        }
    }
}
