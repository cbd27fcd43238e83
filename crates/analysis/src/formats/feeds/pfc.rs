//! PFC history of SONiC: how often and for how long each priority of a port was paused by its neighbour.
//!
//! Source: SONiC PFC Historical Statistics HLD (`show pfc counters --history`: transitions, total and recent time of pauses that were
//! received, by port and priority; times are as exact as the switch polls, 1 s by default).

use super::timed::behind_time;
use super::{each_line, no_columns, time_of, Decode, Feed, PassedOver, Streamed, Tells};
use crate::checks::{Finding, Level};
use crate::counters::{Interval, State};
use crate::display::{count, percent, span};
use crate::formats::mapping::Mapping;
use crate::input::problem::Problem;
use std::collections::BTreeMap;

/// Answers of the command, with a line for the time before each.
pub const HISTORY: Streamed =
    Streamed { name: "sonic-pfc", title: "PFC history", recognises: is_history, make, tells: Tells::All };

const HEAD: &str = "RX Pause Transitions";
const HOW: &str = "write the time before each: while sleep 10; do date +%s.%N; show pfc counters --history; done > pauses.txt";
/// Priorities of ports that are followed, and those that are told in notes, at most.
const MOST: usize = 1 << 16;
const TOLD: usize = 20;
/// Time by which a pause may be counted too long: the poll in which it ended [ps].
const POLL: u64 = 1_000_000_000_000;

fn is_history(start: &[u8]) -> bool {
    behind_time(start).lines().next().is_some_and(|line| line.contains(HEAD))
}

fn make(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "the history of pauses")?;
    Ok(Box::new(History::default()))
}

/// Pauses of a priority of a port, as they were counted so far.
#[derive(Clone, Copy, Debug, Default)]
struct Pauses {
    /// Time of the last answer [ps], its transitions and its total [ps].
    last: Option<(u128, u64, u64)>,
    transitions: u64,
    paused: u64,
    known: u64,
    /// Longest pause within one interval, the interval's length and its begin [ps].
    most: (u64, u64, u64),
    resets: u64,
    /// Most by which pauses were longer than their interval [ps], and how often.
    longer: (u64, u64),
}

/// Decoder of answers.
#[derive(Default)]
struct History {
    time: Option<u128>,
    /// Picoseconds of a unit of pauses, by the names of the columns.
    unit: Option<u64>,
    all: BTreeMap<(String, String), Pauses>,
    line: u64,
    answers: u64,
    over: PassedOver,
}

impl History {
    fn line(&mut self, line: &str, feed: &mut Feed<'_>) -> Result<(), Problem> {
        if let Some(time) = time_of(line) {
            self.time = Some(time);
            return Ok(());
        }
        if line.contains(HEAD) {
            self.answers += 1;
            self.unit = match (line.contains("Pause Time US"), line.contains("Pause Time MS")) {
                (true, _) => Some(1_000_000),
                (_, true) => Some(1_000_000_000),
                _ => return Err(Problem::new("says no unit of pauses").value(line).accepted("Total RX Pause Time US, … MS")),
            };
            if self.time.is_none() && self.answers > 1 {
                return Err(Problem::new("has no time before it, and it is not the only answer").suggestion(HOW));
            }
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [port, priority, transitions, total, ..] = words.as_slice() else { return Ok(()) };
        if !priority.starts_with("PFC") {
            if !port.starts_with('-') {
                self.over.add(|| "lines that are no pauses".into());
            }
            return Ok(());
        }
        let Some(unit) = self.unit else {
            return Err(Problem::new("stands before the names of the columns")
                .value(line)
                .accepted(format!("a line with '{HEAD}' before the counts")));
        };
        let number = |text: &str, column: &str| match text.replace(',', "").parse::<u64>() {
            Ok(number) => Ok(Some(number)),
            // A priority that the switch does not follow.
            Err(_) if text == "N/A" => Ok(None),
            Err(_) => Err(Problem::new("is no count of pauses").column(column).value(text).accepted("for example 12,000,000")),
        };
        let counts = number(transitions, HEAD)?.zip(number(total, "Total RX Pause Time")?);
        let Some((transitions, total)) = counts else { return Ok(()) };
        let key = ((*port).to_string(), (*priority).to_string());
        if self.all.len() >= MOST && !self.all.contains_key(&key) {
            return Err(Problem::new(format!("is one priority too many: {MOST} are accepted")).value(line));
        }
        let now = (self.time.unwrap_or(0), transitions, total.saturating_mul(unit));
        let pauses = self.all.entry(key).or_default();
        let Some(last) = pauses.last.replace(now) else {
            feed.time(now.0)?;
            return Ok(());
        };
        let index = feed.port(format!("{port} {priority}").as_bytes())?;
        let (start, end) = (feed.time(last.0)?, feed.time(now.0)?);
        // Of its queue nothing is told, paused or not.
        let mut state = State::Gap;
        let length = end.ps().saturating_sub(start.ps());
        if now.1 < last.1 || now.2 < last.2 {
            state = State::Reset;
            pauses.resets += 1;
        } else if length == 0 {
            state = State::Repeated;
        } else {
            let paused = now.2 - last.2;
            pauses.transitions += now.1 - last.1;
            pauses.known += length;
            if paused > length + POLL {
                state = State::Contradicting;
                pauses.longer = (pauses.longer.0.max(paused - length), pauses.longer.1 + 1);
            }
            let paused = paused.min(length);
            pauses.paused += paused;
            if u128::from(paused) * u128::from(pauses.most.1) > u128::from(pauses.most.0) * u128::from(length)
                || pauses.most.1 == 0
            {
                pauses.most = (paused, length, start.ps());
            }
        }
        feed.interval(index, Interval::unknown(start, end.max(start), state));
        Ok(())
    }
}

impl Decode for History {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let mut line = self.line;
        let at = each_line(bytes, &mut line, feed, |text, feed| self.line(text, feed));
        self.line = line;
        let at = at?;
        if end {
            for ((port, priority), pauses) in &self.all {
                let (most, cases) = pauses.longer;
                if cases > 0 {
                    feed.finding(Finding {
                        code: "pauses_longer_than_time",
                        level: Level::Doubt,
                        place: format!("{port} {priority}"),
                        count: cases,
                        bytes: None,
                        words: format!("{} with longer pauses than time, by up to {}", count(cases, "interval"), span(most)),
                        hint: "the times before the answers, or the switch's estimate of pauses, are wrong".into(),
                    });
                }
            }
        }
        Ok(at)
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        notes.push(format!(
            "{} of PFC: how long neighbours paused each priority, to the second or so; how long a queue was meanwhile is unknown",
            count(self.answers, "answer")
        ));
        if self.answers == 1 {
            notes.push(format!("one answer shows nothing: a series has a time before each; {HOW}"));
        }
        let mut paused: Vec<_> = self.all.iter().filter(|(_, pauses)| pauses.transitions > 0 || pauses.paused > 0).collect();
        paused.sort_by_key(|((port, priority), pauses)| (std::cmp::Reverse(pauses.paused), port.clone(), priority.clone()));
        for ((port, priority), pauses) in paused.iter().take(TOLD) {
            let (most, length, at) = pauses.most;
            notes.push(format!(
                "{port} {priority}: paused {} in {} ({}), begun {}; most from {} on: {} of {}",
                span(pauses.paused),
                span(pauses.known),
                percent(pauses.paused as f64 / pauses.known.max(1) as f64),
                count(pauses.transitions, "time"),
                span(at),
                span(most),
                span(length)
            ));
        }
        let more = paused.len().saturating_sub(TOLD);
        notes.extend((more > 0).then(|| format!("{more} more priorities were paused for less")));
        let resets: u64 = self.all.values().map(|pauses| pauses.resets).sum();
        notes.extend(
            (resets > 0)
                .then(|| format!("{} in which counts began anew: pauses of these are unknown", count(resets, "interval"))),
        );
        self.over.notes(notes);
    }
}
