//! Micro-burst records of Cisco NX-OS: `show queuing burst-detect detail`, as JSON and as the table of the command line.
//!
//! Source: NX-OS, Command Reference, `show queuing burst-detect` (names and order of the columns) and the QoS configuration guide,
//! Micro-Burst Monitoring (depths in bytes; a burst begins above the rise threshold and ends below the fall threshold; `E` marks an early
//! record of a burst that goes on).

use super::documents::{begins, whole, Document, OfDocuments};
use super::{each_line, no_columns, Decode, Feed, Streamed, Tells};
use crate::checks::{Finding, Level};
use crate::counters::{Interval, State};
use crate::display::{count, span};
use crate::formats::mapping::Mapping;
use crate::input::number::{from_date, from_text};
use crate::input::problem::Problem;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Answers of the switch with `| json`, as NX-API and telemetry have them too.
pub const JSON: Streamed =
    Streamed { name: "nxos-burst", title: "NX-OS JSON", recognises: is_json, make: json, tells: Tells::AtEnd(WORDS) };

/// The table of the command line.
pub const TABLE: Streamed =
    Streamed { name: "nxos-burst-table", title: "NX-OS", recognises: is_table, make: table, tells: Tells::AtEnd(WORDS) };

/// Words for these formats in messages.
const WORDS: &str = "what burst-detect prints";

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

fn json(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, WORDS)?;
    Ok(OfDocuments::made(Bursts::default()))
}

fn table(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, WORDS)?;
    Ok(Box::new(Bursts::default()))
}

/// One burst of a queue: times [ps], depths [bytes].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    start: u128,
    port: String,
    threshold: u64,
    peak: Option<u64>,
    peak_time: Option<u128>,
    end: Option<u128>,
    end_depth: Option<u64>,
    /// Duration that the record states, and its resolution [ps].
    duration: Option<(u128, u128)>,
}

impl Record {
    /// The time from its start to its end, where it says another.
    fn lasts_otherwise(&self) -> Option<u128> {
        let (said, to) = self.duration?;
        let lasted = self.end?.checked_sub(self.start)?;
        // Both times are cut to a microsecond.
        (said.abs_diff(lasted) > to + 2_000_000).then_some(lasted)
    }
}

/// Decoder of records. They come by queue, not by time: they are held until the end.
#[derive(Default)]
struct Bursts {
    records: Vec<Record>,
    line: u64,
    contradictions: u64,
    repeated: u64,
    /// Records that say a peak and not when it was.
    untimed: u64,
    /// True once a time had no zone.
    unzoned: bool,
    /// True once a record was read; lines without bars that name an interface, and the first of them.
    any: bool,
    others: u64,
    other: Option<(u64, String)>,
    /// Records whose duration is not that from start to end, and the first of them in words; those with a duration that is not read.
    otherwise: (u64, String),
    unread_durations: u64,
    /// Times with three digits behind the third colon, the first of them, and those with any other number of digits.
    three_digits: u64,
    three: String,
    /// True once a duration was read, against which start and end are held.
    has_durations: bool,
    other_digits: u64,
}

/// A time as NX-OS writes it, `2026/11/21 08:00:00:123456`, or any other date [ps]; true if it says its zone.
fn time_of(text: &str) -> Option<(u128, bool)> {
    let of_nxos = || {
        let (place, _) = text.match_indices(':').nth(2)?;
        let (second, behind) = (&text[..place], &text[place + 1..]);
        // A number of microseconds, whose leading zeros may be left out.
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let zeros = "0".repeat(if digits == 0 { 0 } else { 6_usize.saturating_sub(digits) });
        from_date(format!("{second}.{zeros}{behind}").as_bytes()).ok()
    };
    from_date(text.as_bytes()).ok().or_else(of_nxos)
}

/// Digits behind the third colon of a time; none where it has no such colon.
fn digits_behind(text: &str) -> Option<usize> {
    let (place, _) = text.match_indices(':').nth(2)?;
    from_date(text.as_bytes()).is_err().then(|| text[place + 1..].bytes().take_while(u8::is_ascii_digit).count())
}

/// A duration, such as `200.00 us`, and the step to which it is given [ps].
fn duration_of(text: &str) -> Option<(u128, u128)> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let unit = match unit.trim() {
        "ns" | "nsec" => 1_000,
        "us" | "usec" | "usecs" | "µs" => 1_000_000,
        "ms" | "msec" | "msecs" => 1_000_000_000,
        "s" | "sec" | "secs" | "seconds" => 1_000_000_000_000_u64,
        _ => return None,
    };
    let places = number.split_once('.').map_or(0, |(_, fraction)| fraction.len().min(12) as u32);
    let ps = from_text(number.as_bytes(), unit).ok()?;
    Some((ps, u128::from(unit / 10_u64.pow(places))))
}

/// Words about a line that is no record.
const FORMS: &str =
    "INTERFACE | QUEUE | THRESHOLD | START | PEAK | ITS TIME | DEPTH AT THE END | END, with '|' between and times as \
    2026/11/21 08:00:00:123456; the JSON of the command has names, and no bars";

impl Bursts {
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
        for text in ["start-time", "peak-time", "end-time"].map(&value) {
            match digits_behind(text.trim()) {
                Some(3) => {
                    self.three_digits += 1;
                    if self.three.is_empty() {
                        self.three = text.trim().to_string();
                    }
                }
                Some(_) => self.other_digits += 1,
                None => {}
            }
        }
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
        // A flag may stand before interface or queue: `E U1` is an early record of U1.
        let port = value("if-str");
        let port = port.strip_prefix("E ").unwrap_or(&port).trim().to_string();
        if port.is_empty() {
            let problem = Problem::new("names no interface").column("if-str").value(value("start-time"));
            return Err(problem.accepted("for example Ethernet1/25"));
        }
        let Some(start) = time("start-time")? else {
            return Err(Problem::new("says no time at which the burst began").column("start-time").value(port).accepted(FORM));
        };
        let queue = value("queue");
        let queue = queue.strip_prefix("E ").unwrap_or(&queue).trim().to_string();
        let queue = Some(queue).filter(is_there).map_or(String::new(), |queue| format!(" {queue}"));
        let record = Record {
            start,
            port: format!("{port}{queue}"),
            threshold: depth("threshold")?.unwrap_or(0),
            peak: depth("peak")?,
            peak_time: time("peak-time")?,
            end: time("end-time")?,
            end_depth: depth("end-depth")?,
            duration: Some(value("duration")).filter(is_there).and_then(|text| {
                let duration = duration_of(text.trim());
                self.unread_durations += u64::from(duration.is_none());
                self.has_durations |= duration.is_some();
                duration
            }),
        };
        if self.records.len() == RECORDS {
            return Err(Problem::new(format!("is one record too many: {RECORDS} are accepted")));
        }
        self.unzoned |= unzoned;
        feed.time(start)?;
        self.any = true;
        self.records.push(record);
        Ok(())
    }

    /// Takes a line of the table: interface, queue, then depths and times in turn, and how long it lasted.
    fn line(&mut self, text: &str, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let text = text.trim();
        let cells: Vec<&str> = text.strip_prefix('|').unwrap_or(text).split('|').map(str::trim).collect();
        // Interfaces are letters and numbers: Eth1/36, Ethernet1/36/1, Po7, port-channel7, mgmt0. Names of columns have no numbers.
        let first = cells[0].strip_prefix("E ").unwrap_or(cells[0]).trim();
        let names_a_port = first.starts_with(|c: char| c.is_ascii_alphabetic()) && first.contains(|c: char| c.is_ascii_digit());
        if cells.len() < 5 || !names_a_port {
            // Names of the columns, lines between them, other answers.
            if text.starts_with("Eth") && text.contains(|c: char| c.is_ascii_digit()) {
                self.others += 1;
                self.other.get_or_insert_with(|| (self.line, text.to_string()));
            }
            return Ok(());
        }
        const NAMES: [&str; 9] =
            ["if-str", "queue", "threshold", "start-time", "peak", "peak-time", "end-depth", "end-time", "duration"];
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
            let otherwise = record.lasts_otherwise();
            let Record { start, port, threshold, peak, peak_time, end, end_depth, duration } = record;
            if let Some((lasted, (said, _))) = otherwise.zip(duration) {
                let [lasted, said] = [lasted, said].map(|ps| span(u64::try_from(ps).unwrap_or(u64::MAX)));
                if self.otherwise.0 == 0 {
                    self.otherwise.1 = format!("that of {port} says {said} and lasts {lasted} from its start to its end");
                }
                self.otherwise.0 += 1;
            }
            let port = feed.port(port.as_bytes())?;
            let begin = feed.time(start)?;
            let peak_time = peak_time.filter(|_| peak.is_some());
            let last = end.or(peak_time).unwrap_or(start);
            let top = peak.unwrap_or(threshold);
            let is_behind = over.get(&port).is_none_or(|over| *over <= start);
            let is_right = is_behind
                && start <= last
                && otherwise.is_none()
                && peak_time.is_none_or(|time| (start..=last).contains(&time))
                && top >= threshold;
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
            match peak {
                Some(depth) => {
                    self.untimed += u64::from(peak_time.is_none());
                    let watermark = Some(depth);
                    let mut from = begin;
                    if let Some(time) = peak_time {
                        let time = feed.time(time)?;
                        feed.interval(port, Interval { start: begin, end: time, watermark, ..Interval::default() });
                        from = time;
                    }
                    // Without its time the peak is of the whole burst.
                    if end.is_some() || peak_time.is_none() {
                        let over = feed.time(end.unwrap_or(start))?;
                        let queue = end_depth.filter(|_| end.is_some());
                        feed.interval(port, Interval { start: from, end: over, queue, watermark, ..Interval::default() });
                    }
                }
                None => at(feed, Some(threshold), begin),
            }
            if let Some(over) = end {
                // Below the fall threshold, which is all that is known of it: for the burst that is over.
                let over = feed.time(over)?;
                at(feed, Some(0), over);
            }
        }
        Ok(())
    }
}

impl Document for Bursts {
    fn document(&mut self, document: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        self.rows(document, feed)
    }

    fn end(&mut self, feed: &mut Feed<'_>) -> Result<(), Problem> {
        if let (Some((line, text)), false) = (&self.other, self.any) {
            let problem = Problem::new("is no record that is understood, and no other line is").place(format!("line {line}"));
            return Err(problem.value(text).accepted(FORMS));
        }
        // A switch that recorded no burst tells of queues, too.
        feed.see(true, false, false);
        if self.unzoned {
            feed.unzoned();
        }
        self.tell(feed)?;
        // Of a thousand numbers of microseconds one has three digits, and each number of milliseconds written in full.
        if self.three_digits > self.other_digits && !self.has_durations {
            feed.finding(Finding {
                code: "digits_of_times",
                level: Level::Doubt,
                place: "burst-detect".into(),
                count: self.three_digits,
                bytes: None,
                words: format!(
                    "{} with three digits behind the third colon, as '{}', read as microseconds: they may be milliseconds",
                    if self.three_digits == 1 { "1 time is".into() } else { format!("{} times are", self.three_digits) },
                    self.three
                ),
                hint:
                    "of milliseconds, write a point for the third colon (08:00:00.123); records with a duration would show which"
                        .into(),
            });
        }
        let (records, first) = &self.otherwise;
        if *records > 0 {
            feed.finding(Finding {
                code: "duration_contradicts",
                level: Level::Doubt,
                place: "burst-detect".into(),
                count: *records,
                bytes: None,
                words: format!("{} whose duration is not the time from start to end: {first}", count(*records, "record")),
                hint: "times or duration are in another form than is assumed (docs/formats/nxos-burst.md)".into(),
            });
        }
        Ok(())
    }

    fn is_read_whole(&self) -> bool {
        true
    }

    fn notes(&mut self, _: u64, notes: &mut Vec<String>) {
        notes.push("of a queue below its rise threshold nothing is told; drops and flows are in no record".into());
        if let Some((line, text)) = &self.other {
            notes.push(format!(
                "{} that begin with an interface are no records; the first is {line}, '{text}'",
                count(self.others, "line")
            ));
        }
        if self.unread_durations > 0 {
            notes.push(format!("{} with a duration that is not read, as 200.00 us is", count(self.unread_durations, "record")));
        }
        if self.repeated > 0 {
            notes.push(match self.repeated {
                1 => "1 record stands in several answers, and counts once".into(),
                many => format!("{many} records stand in several answers, and count once"),
            });
        }
        if self.untimed > 0 {
            let say = if self.untimed == 1 { "1 record says".into() } else { format!("{} records say", self.untimed) };
            notes.push(format!("{say} a peak and not when it was: it is told of the whole burst"));
        }
        if self.contradictions > 0 {
            let why = "(times out of order, another duration, a peak below the start)";
            notes.push(match self.contradictions {
                1 => format!("1 record contradicts itself {why} and is unknown"),
                many => format!("{many} records contradict themselves {why} and are unknown"),
            });
        }
    }
}

impl Decode for Bursts {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let mut line = self.line;
        let at = each_line(bytes, &mut line, feed, |text, feed| {
            self.line += 1;
            self.line(text, feed)
        });
        self.line = line;
        let at = at?;
        if end {
            Document::end(self, feed)?;
        }
        Ok(at)
    }

    fn is_read_whole(&self) -> bool {
        true
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        self.notes(0, notes);
    }
}
