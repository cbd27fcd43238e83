//! Import of flows from htsim's connection matrix, `.cm`.

use super::hpcc::{ends, size_of};
use super::{decimal, End, Row, Rows};
use crate::context::HostNames;
use crate::lines::{FileError, Lines};
use fanin_params::{names, params};
use fanin_units::Span;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

names! {
    /// Unit of start times in a connection matrix.
    pub enum TimeUnit {
        /// Picoseconds.
        "ps" => Picoseconds,
        /// Nanoseconds.
        "ns" => Nanoseconds,
        /// Microseconds.
        "us" => Microseconds,
        /// Milliseconds.
        "ms" => Milliseconds,
        /// Seconds.
        "s" => Seconds,
    }
}

impl TimeUnit {
    /// Length of the unit.
    pub fn span(self) -> Span {
        match self {
            TimeUnit::Picoseconds => Span::from_ps(1),
            TimeUnit::Nanoseconds => Span::from_ns(1),
            TimeUnit::Microseconds => Span::from_us(1),
            TimeUnit::Milliseconds => Span::from_ms(1),
            TimeUnit::Seconds => Span::from_s(1),
        }
    }
}

params! {
    /// Flows from htsim's connection matrix: `Nodes N`, `Connections M`, `Triggers T`, then lines `src->dst [id I] start
    /// T|trigger X size S [send_done_trigger X] [recv_done_trigger X] [prio P]` and `trigger id X oneshot|multishot|barrier
    /// [count C]`. Triggers become dependencies: `oneshot` releases its flows on its one activation, `barrier` on the last
    /// of C, `multishot` one flow per activation, in file order. Source: csg-htsim, `sim/datacenter/connection_matrix.cpp`
    /// and `sim/trigger.cpp`. Deviation: "send done" and "receive done" are both the completion of the flow; `prio` is
    /// ignored, and said so; size 0 (a flow without end) and `failure` lines are refused.
    pub struct HtsimMatrix {
        /// Path of the file, relative to the scenario's folder.
        pub path: String;
        /// Unit of start times in the file. No default: htsim reads picoseconds, but writes microseconds.
        pub time_unit: TimeUnit;
    }
}

/// A trigger that the file defines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trigger {
    pub id: u32,
    pub line: u32,
    pub one_by_one: bool,
}

enum Mode {
    OneShot,
    MultiShot,
    Barrier(u64),
}

/// References to a flow or trigger from other lines.
#[derive(Default)]
struct Use {
    activations: u64,
    targets: u64,
    first_line: u32,
}

const TOKENS: &str = "id, start, size, trigger, send_done_trigger, recv_done_trigger, prio";

pub(crate) struct Reader<R> {
    lines: Lines<R>,
    hosts: Arc<HostNames>,
    unit: Span,
    nodes: Option<u64>,
    connections: Option<u64>,
    triggers: Option<u64>,
    seen: u64,
    ids: BTreeMap<u32, u32>,
    defined: BTreeMap<u32, (Mode, u32)>,
    used: BTreeMap<u32, Use>,
    priorities: u64,
    broken: bool,
}

impl<R: BufRead> Reader<R> {
    pub fn new(source: R, hosts: Arc<HostNames>, params: &HtsimMatrix) -> Self {
        Reader {
            lines: Lines::new(source),
            hosts,
            unit: params.time_unit.span(),
            nodes: None,
            connections: None,
            triggers: None,
            seen: 0,
            ids: BTreeMap::new(),
            defined: BTreeMap::new(),
            used: BTreeMap::new(),
            priorities: 0,
            broken: false,
        }
    }

    /// Parses a line; `None` if it defines no flow.
    fn parse(&mut self, number: u32, line: &str) -> Result<Option<Row>, FileError> {
        let tokens: Vec<&str> = line.split_whitespace().collect();
        let Some((first, rest)) = tokens.split_first() else { return Ok(None) };
        if let Some((src, dst)) = first.split_once("->") {
            return self.connection(number, (src, dst), rest).map(Some);
        }
        match *first {
            "Nodes" => {
                let nodes = header(number, line, rest)?;
                if nodes > self.hosts.len() as u64 {
                    let accepted = format!("at most the {} hosts of this network", self.hosts.len());
                    return Err(FileError::at(number, line, "are more than there are hosts", &accepted));
                }
                self.nodes = Some(nodes);
            }
            "Connections" => self.connections = Some(header(number, line, rest)?),
            "Triggers" => self.triggers = Some(header(number, line, rest)?),
            "Failures" if header(number, line, rest)? == 0 => {}
            "Failures" | "failure" => {
                return Err(FileError::at(number, line, "is a link failure, which is not traffic", "a file without failures"));
            }
            "trigger" => self.trigger(number, line, rest)?,
            other => {
                return Err(FileError::at(
                    number,
                    other,
                    "does not begin a known kind of line",
                    "Nodes, Connections, Triggers, SRC->DST, trigger",
                ))
            }
        }
        Ok(None)
    }

    fn connection(&mut self, number: u32, (src, dst): (&str, &str), rest: &[&str]) -> Result<Row, FileError> {
        let (from, to) = ends(&self.hosts, number, src, dst)?;
        if let Some(nodes) = self.nodes {
            for text in [src, dst] {
                if text.parse::<u64>().is_ok_and(|position| position >= nodes) {
                    return Err(FileError::at(
                        number,
                        text,
                        "is not among the file's nodes",
                        &format!("from 0 to {}", nodes.saturating_sub(1)),
                    ));
                }
            }
        }
        let (mut id, mut start, mut size, mut trigger, mut activates) = (None, None, None, None, Vec::new());
        let mut tokens = rest.iter();
        while let Some(token) = tokens.next() {
            let mut value = || tokens.next().copied().ok_or_else(|| FileError::at(number, token, "has no value", TOKENS));
            match *token {
                "id" => id = Some(natural(number, value()?)?),
                "size" => size = Some(size_of(number, value()?)?),
                "start" => {
                    let text = value()?;
                    let at = decimal(text, self.unit.ps())
                        .ok_or_else(|| FileError::at(number, text, "is not a time", "a number that is not negative"))?;
                    start = Some(Span::from_ps(at));
                }
                "trigger" => trigger = Some(natural(number, value()?)?),
                "send_done_trigger" | "recv_done_trigger" => {
                    let activated = natural(number, value()?)?;
                    if !activates.contains(&activated) {
                        activates.push(activated);
                    }
                }
                "prio" => {
                    value()?;
                    self.priorities += 1;
                }
                other => return Err(FileError::at(number, other, "is not a known word of a connection", TOKENS)),
            }
        }
        let missing = |what: &str, accepted: &str| FileError { value: None, ..FileError::at(number, "", what, accepted) };
        let start = match (start, trigger) {
            (Some(_), Some(_)) => return Err(missing("gives both a start and a trigger", "either `start T` or `trigger X`")),
            (None, None) => return Err(missing("gives neither a start nor a trigger", "either `start T` or `trigger X`")),
            (start, _) => start.unwrap_or(Span::ZERO),
        };
        let size = size.ok_or_else(|| missing("gives no size", "`size S`"))?;
        if let Some(before) = id.and_then(|id| self.ids.insert(id, number)) {
            return Err(FileError::at(
                number,
                &id.unwrap_or(0).to_string(),
                &format!("is also the id of line {before}"),
                "ids that differ",
            ));
        }
        for used in trigger.iter().chain(&activates) {
            self.used.entry(*used).or_insert_with(|| Use { first_line: number, ..Use::default() });
        }
        if let Some(entry) = trigger.and_then(|t| self.used.get_mut(&t)) {
            entry.targets += 1;
        }
        for activated in &activates {
            if let Some(entry) = self.used.get_mut(activated) {
                entry.activations += 1;
            }
        }
        Ok(Row {
            line: number,
            src: from,
            dst: to,
            size,
            request: 0,
            start,
            delay: Span::ZERO,
            class: None,
            id: id.map(|id| id.to_string().into()),
            after: Vec::new(),
            trigger,
            activates,
        })
    }

    fn trigger(&mut self, number: u32, line: &str, rest: &[&str]) -> Result<(), FileError> {
        const ACCEPTED: &str = "trigger id X oneshot|multishot|barrier [count C]";
        let (mut id, mut mode, mut count) = (None, None, None);
        let mut tokens = rest.iter();
        while let Some(token) = tokens.next() {
            let mut value = || tokens.next().copied().ok_or_else(|| FileError::at(number, token, "has no value", ACCEPTED));
            match *token {
                "id" => id = Some(natural(number, value()?)?),
                "count" => count = Some(u64::from(natural(number, value()?)?)),
                "oneshot" => mode = Some(Mode::OneShot),
                "multishot" => mode = Some(Mode::MultiShot),
                "barrier" => mode = Some(Mode::Barrier(0)),
                other => return Err(FileError::at(number, other, "is not a known word of a trigger", ACCEPTED)),
            }
        }
        let (Some(id), Some(mode)) = (id, mode) else {
            return Err(FileError::at(number, line, "is an incomplete trigger", ACCEPTED));
        };
        let mode = match (mode, count) {
            (Mode::Barrier(_), Some(count)) => Mode::Barrier(count),
            (Mode::Barrier(_), None) => return Err(FileError::at(number, line, "is a barrier without a count", ACCEPTED)),
            (mode, _) => mode,
        };
        match self.defined.insert(id, (mode, number)) {
            Some((_, before)) => {
                Err(FileError::at(number, &id.to_string(), &format!("is also the trigger of line {before}"), "ids that differ"))
            }
            None => Ok(()),
        }
    }

    /// Reports triggers that are activated too seldom or too often for their kind, or never defined.
    fn check_triggers(&self) -> Vec<FileError> {
        let mut errors = Vec::new();
        for (id, used) in &self.used {
            let Some((mode, line)) = self.defined.get(id) else {
                let message = "is a trigger that the file does not define";
                errors.push(FileError::at(
                    used.first_line,
                    &id.to_string(),
                    message,
                    &format!("a line `trigger id {id} oneshot`"),
                ));
                continue;
            };
            let needed = match mode {
                Mode::OneShot => 1,
                Mode::MultiShot => used.targets,
                Mode::Barrier(count) => *count,
            };
            let sound = match mode {
                Mode::MultiShot => used.activations >= needed,
                Mode::OneShot | Mode::Barrier(_) => used.activations == needed,
            };
            if used.targets > 0 && !sound {
                let message = format!(
                    "is activated by {} flows, so what it starts would {}",
                    used.activations,
                    if used.activations < needed { "never start" } else { "start again" }
                );
                errors.push(FileError::at(*line, &format!("trigger {id}"), &message, &format!("{needed} flows that name it")));
            }
        }
        errors.truncate(FileError::MOST);
        errors
    }
}

impl<R: BufRead + Send> Rows for Reader<R> {
    fn next_row(&mut self) -> Option<Result<Row, FileError>> {
        while !self.broken {
            match self.lines.next() {
                Ok(Some((number, line))) => {
                    let line = line.to_string();
                    match self.parse(number, &line) {
                        Ok(None) => {}
                        Ok(Some(row)) => {
                            self.seen += 1;
                            return Some(Ok(row));
                        }
                        Err(error) => return Some(Err(error)),
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    self.broken = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    fn finish(&mut self) -> Result<End, Vec<FileError>> {
        let mut errors = self.check_triggers();
        let mut compare = |what: &str, announced: Option<u64>, seen: u64| match announced {
            Some(announced) if announced != seen => {
                errors.push(FileError::whole(
                    &format!("announces {announced} {what} and has {seen}"),
                    "as many as its heading says",
                ));
            }
            _ => {}
        };
        compare("connections", self.connections, self.seen);
        compare("triggers", self.triggers, self.defined.len() as u64);
        if self.connections.is_none() {
            errors.push(FileError::whole("has no line `Connections M`", "htsim's connection matrix"));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut end = End::default();
        if self.priorities > 0 {
            end.notes.push(format!("`prio` of {} connections is ignored", self.priorities));
        }
        let live = self.defined.iter().filter(|(id, _)| self.used.get(id).is_some_and(|used| used.targets > 0));
        end.triggers = live
            .map(|(id, (mode, line))| Trigger { id: *id, line: *line, one_by_one: matches!(mode, Mode::MultiShot) })
            .collect();
        Ok(end)
    }
}

fn header(number: u32, line: &str, rest: &[&str]) -> Result<u64, FileError> {
    match rest {
        [count] => count.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| FileError::at(number, line, "is not a heading with a number", "Nodes N, Connections M, Triggers T"))
}

fn natural(number: u32, text: &str) -> Result<u32, FileError> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| FileError::at(number, text, "is not a number", "an integer of at least 1"))
}
