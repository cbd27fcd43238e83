//! Micro-burst records of Cisco NX-OS: `show queuing burst-detect detail`, as JSON and as the table of the command line.
//!
//! Source: NX-OS, Command Reference, `show queuing burst-detect` (names and order of the columns) and the QoS configuration guide,
//! Micro-Burst Monitoring (depths in bytes; a burst begins above the rise threshold and ends below the fall threshold; `E` marks an early
//! record of a burst that goes on).

use super::documents::{begins, whole, Documents};
use super::{each_line, no_columns, Decode, Feed, Streamed};
use crate::counters::{Interval, State};
use crate::formats::mapping::Mapping;
use crate::input::number::from_date;
use crate::input::problem::Problem;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Answers of the switch with `| json`, as NX-API and telemetry have them too.
pub const JSON: Streamed = Streamed { name: "nxos-burst", title: "NX-OS JSON", recognises: is_json, make: json };

/// The table of the command line.
pub const TABLE: Streamed = Streamed { name: "nxos-burst-table", title: "NX-OS", recognises: is_table, make: table };

/// Records that are held, at most.
const RECORDS: usize = 1 << 20;

const FORM: &str = "for example 2026/11/21 08:00:00:123456";

fn is_json(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    begins(&text) && (text.contains("\"TABLE_instance\"") || text.contains("\"if-str\""))
}

fn is_table(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let names_columns = |line: &str| ["|", "Threshold", "Peak"].iter().all(|name| line.contains(name));
    text.contains("Microburst Statistics")
        || text.lines().take(3).any(|line| line.contains("queuing burst-detect"))
        || text.lines().take(8).any(names_columns)
}

fn json(mapping: Option<&Mapping>, name: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "what burst-detect prints")?;
    Ok(Box::new(Bursts::new(Some(Documents::default()), name)))
}

fn table(mapping: Option<&Mapping>, name: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "what burst-detect prints")?;
    Ok(Box::new(Bursts::new(None, name)))
}

/// One burst of a queue: times [ps], depths [bytes].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    start: u128,
    port: String,
    threshold: u64,
    peak: Option<(u128, u64)>,
    end: Option<(u128, u64)>,
}

/// Decoder of records. They come by queue, not by time: they are held until the end.
struct Bursts {
    documents: Option<Documents>,
    file: String,
    records: Vec<Record>,
    line: u64,
    contradictions: u64,
    repeated: u64,
    /// True once a time had no zone.
    unzoned: bool,
}

/// A time as NX-OS writes it, `2026/11/21 08:00:00:123456`, or any other date [ps]; true if it says its zone.
fn time_of(text: &str) -> Option<(u128, bool)> {
    let of_nxos = || {
        let (place, _) = text.match_indices(':').nth(2)?;
        from_date(format!("{}.{}", &text[..place], &text[place + 1..]).as_bytes()).ok()
    };
    from_date(text.as_bytes()).ok().or_else(of_nxos)
}

impl Bursts {
    fn new(documents: Option<Documents>, name: &str) -> Self {
        Bursts { documents, file: name.to_string(), records: Vec::new(), line: 0, contradictions: 0, repeated: 0, unzoned: false }
    }

    /// Takes the values of a record by their names; `value`: the text of one, empty where it is not there.
    fn record(&mut self, value: impl Fn(&str) -> String, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let is_there = |text: &String| !text.is_empty() && !matches!(text.as_str(), "N/A" | "NA" | "-" | "--");
        let depth = |name: &str| match Some(value(name)).filter(is_there) {
            None => Ok(None),
            Some(text) => text
                .parse::<u64>()
                .map(Some)
                .map_err(|_| Problem::new("is no number of bytes").column(name).value(text).accepted("a whole number")),
        };
        let mut unzoned = false;
        let mut time = |name: &str| match Some(value(name)).filter(is_there) {
            None => Ok(None),
            Some(text) => match time_of(text.trim()) {
                Some((ps, zoned)) => {
                    unzoned |= !zoned;
                    Ok(Some(ps))
                }
                None => Err(Problem::new("is no date and time").column(name).value(text).accepted(FORM)),
            },
        };
        let port = value("if-str");
        if port.is_empty() {
            return Err(Problem::new("names no interface").column("if-str"));
        }
        let Some(start) = time("start-time")? else {
            return Err(Problem::new("has no time at which the burst began").column("start-time").value(port).accepted(FORM));
        };
        let queue = Some(value("queue")).filter(is_there).map_or(String::new(), |queue| format!(" {queue}"));
        let record = Record {
            start,
            port: format!("{port}{queue}"),
            threshold: depth("threshold")?.unwrap_or(0),
            peak: time("peak-time")?.zip(depth("peak")?),
            end: time("end-time")?.zip(depth("end-depth")?),
        };
        if self.records.len() == RECORDS {
            return Err(Problem::new(format!("is one record too many: {RECORDS} are accepted")));
        }
        self.unzoned |= unzoned;
        feed.time(start)?;
        feed.see(true, false, false);
        self.records.push(record);
        Ok(())
    }

    /// Takes a line of the table: interface, queue, then depths and times in turn, and how long it lasted.
    fn line(&mut self, text: &str, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let text = text.trim();
        let cells: Vec<&str> = text.strip_prefix('|').unwrap_or(text).split('|').map(str::trim).collect();
        if cells.len() < 5 || cells[0].is_empty() || time_of(cells.get(3).copied().unwrap_or_default()).is_none() {
            // Names of the columns, lines between them, other answers.
            return Ok(());
        }
        const NAMES: [&str; 8] = ["if-str", "queue", "threshold", "start-time", "peak", "peak-time", "end-depth", "end-time"];
        let value = |name: &str| {
            let place = NAMES.iter().position(|known| *known == name);
            place.and_then(|place| cells.get(place)).map_or(String::new(), |cell| (*cell).to_string())
        };
        self.record(value, feed)
    }

    /// Walks down to the rows of a document.
    fn rows(&mut self, json: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        match json {
            Json::Object(fields) if fields.contains_key("if-str") => {
                let text = |value: &Json| {
                    value.as_str().map_or_else(|| whole(value).map_or(String::new(), |n| n.to_string()), str::to_string)
                };
                self.record(|name| fields.get(name).map_or(String::new(), text).trim().to_string(), feed)
            }
            Json::Object(fields) => fields.values().try_for_each(|value| self.rows(value, feed)),
            Json::Array(values) => values.iter().try_for_each(|value| self.rows(value, feed)),
            _ => Ok(()),
        }
    }

    /// Tells all records in order of time.
    fn tell(&mut self, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let mut records = std::mem::take(&mut self.records);
        records.sort();
        let all = records.len();
        // Each answer shows the records of those before it, and an early record its burst once more: the fullest counts.
        records.reverse();
        records.dedup_by(|later, kept| (later.start, &later.port) == (kept.start, &kept.port));
        records.reverse();
        self.repeated += (all - records.len()) as u64;
        let mut over = BTreeMap::new();
        for record in records {
            let Record { start, port, threshold, peak, end } = record;
            let port = feed.port(port.as_bytes())?;
            let begin = feed.time(start)?;
            let last = end.or(peak).map_or(start, |(time, _)| time);
            let top = peak.map_or(threshold, |(_, depth)| depth);
            let is_behind = over.get(&port).is_none_or(|over| *over <= start);
            let is_right =
                is_behind && start <= last && peak.is_none_or(|(time, _)| (start..=last).contains(&time)) && top >= threshold;
            if !is_right {
                self.contradictions += 1;
                // What begins within the burst before has no time of its own.
                if is_behind {
                    let upto = feed.time(last.max(start))?;
                    feed.interval(port, Interval::unknown(begin, upto, State::Contradicting));
                    over.insert(port, last.max(start));
                }
                continue;
            }
            over.insert(port, last);
            let at = |feed: &mut Feed<'_>, queue: Option<u64>, time| {
                feed.interval(port, Interval { start: time, end: time, queue, ..Interval::default() });
            };
            // Below the rise threshold until now.
            at(feed, Some(0), begin);
            match (peak, end) {
                (Some((time, depth)), end) => {
                    let time = feed.time(time)?;
                    feed.interval(port, Interval { start: begin, end: time, watermark: Some(depth), ..Interval::default() });
                    if let Some((over, queue)) = end {
                        let over = feed.time(over)?;
                        let (queue, watermark) = (Some(queue), Some(depth));
                        feed.interval(port, Interval { start: time, end: over, queue, watermark, ..Interval::default() });
                    }
                }
                (None, _) => at(feed, Some(threshold), begin),
            }
            if let Some((over, _)) = end {
                // Below the fall threshold, which is all that is known of it: for the burst that is over.
                let over = feed.time(over)?;
                at(feed, Some(0), over);
            }
        }
        Ok(())
    }
}

impl Decode for Bursts {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let used = if let Some(mut documents) = self.documents.take() {
            let used = documents.read(bytes, end, feed, |document, feed| self.rows(&document, feed));
            self.documents = Some(documents);
            used?
        } else {
            let mut line = self.line;
            let at = each_line(bytes, (end, &mut line), feed, |text, feed| self.line(text, feed));
            self.line = line;
            at?
        };
        if end {
            if self.unzoned {
                feed.unzoned(&self.file);
            }
            self.tell(feed)?;
        }
        Ok(used)
    }

    fn is_read_whole(&self) -> bool {
        true
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        notes.push("of a queue below its rise threshold nothing is told; drops and flows are in no record".into());
        if self.repeated > 0 {
            notes.push(format!("{} records stand in several answers, and count once", self.repeated));
        }
        if self.contradictions > 0 {
            notes.push(format!(
                "{} records contradict themselves (times out of order, a peak below the start) and are unknown",
                self.contradictions
            ));
        }
    }
}
