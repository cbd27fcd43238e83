//! Import of flows from HPCC's `flow.txt`.

use super::{decimal, End, Row, Rows};
use crate::context::HostNames;
use crate::lines::{FileError, Lines};
use fanin_params::params;
use fanin_units::{HostId, Span, Time};
use std::io::BufRead;
use std::sync::Arc;

params! {
    /// Flows from HPCC's `flow.txt`: the number of flows N, then N lines `src dst pg dport size start`, the start in
    /// seconds. The rest is ignored, as by HPCC. Hosts are given by name, or by position where no name is a number. `dport`
    /// is ignored: hosts draw their ports. Source: HPCC (the simulator published with it, `simulation/mix/flow.txt`, and
    /// `traffic_gen/traffic_gen.py`, which starts at 2 s).
    pub struct HpccFlows {
        /// Path of the file, relative to the scenario's folder.
        pub path: String;
        /// Time in the file at which the entry starts (2 s in files made by `traffic_gen.py`).
        pub origin: Time = Time::ZERO;
        /// Traffic class: true takes the file's priority group `pg`, false the entry's class.
        pub pg_as_class: bool = false;
    }
}

const ROW: &str = "src dst pg dport size start";
const SECOND: u64 = Span::from_s(1).ps();

pub(crate) struct Reader<R> {
    lines: Lines<R>,
    hosts: Arc<HostNames>,
    origin: Span,
    pg_as_class: bool,
    announced: u64,
    seen: u64,
    broken: bool,
}

impl<R: BufRead> Reader<R> {
    pub fn new(source: R, hosts: Arc<HostNames>, params: &HpccFlows) -> Result<Self, FileError> {
        let mut lines = Lines::new(source);
        let announced = match lines.next()? {
            None => return Err(FileError::whole("is empty", "the number of flows, then a line for each")),
            Some((number, line)) => line
                .parse()
                .map_err(|_| FileError::at(number, line, "is not the number of flows", "an integer alone on the first line"))?,
        };
        Ok(Reader {
            lines,
            hosts,
            origin: params.origin.since(Time::ZERO),
            pg_as_class: params.pg_as_class,
            announced,
            seen: 0,
            broken: false,
        })
    }

    fn parse(&self, number: u32, line: &str) -> Result<Row, FileError> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [src, dst, pg, _port, size, start] = fields[..] else {
            return Err(FileError::at(number, line, &format!("has {} fields", fields.len()), ROW));
        };
        let (src, dst) = ends(&self.hosts, number, src, dst)?;
        let class = if self.pg_as_class { Some(class(number, pg)?) } else { None };
        let absolute = decimal(start, SECOND)
            .ok_or_else(|| FileError::at(number, start, "is not a time", "seconds, such as 2.000000001"))?;
        let Some(start) = absolute.checked_sub(self.origin.ps()) else {
            return Err(FileError::at(
                number,
                start,
                &format!("is before the `origin` {}", self.origin),
                "starts at or after `origin`",
            ));
        };
        Ok(Row {
            line: number,
            src,
            dst,
            size: size_of(number, size)?,
            request: 0,
            start: Span::from_ps(start),
            delay: Span::ZERO,
            class,
            id: None,
            after: Vec::new(),
            trigger: None,
            activates: Vec::new(),
        })
    }
}

impl<R: BufRead + Send> Rows for Reader<R> {
    fn next_row(&mut self) -> Option<Result<Row, FileError>> {
        if self.broken || self.seen == self.announced {
            return None;
        }
        match self.lines.next() {
            Ok(Some((number, line))) => {
                let line = line.to_string();
                self.seen += 1;
                Some(self.parse(number, &line))
            }
            Ok(None) => {
                self.broken = true;
                let message = format!("announces {} flows and has {}", self.announced, self.seen);
                Some(Err(FileError::whole(&message, "as many as its first line says")))
            }
            Err(error) => {
                self.broken = true;
                Some(Err(error))
            }
        }
    }

    fn finish(&mut self) -> Result<End, Vec<FileError>> {
        let mut end = End::default();
        let left = matches!(self.lines.next(), Ok(Some(_)));
        if left && !self.broken && self.seen == self.announced {
            end.notes.push(format!("what follows the announced {} flows is ignored, as HPCC does", self.announced));
        }
        Ok(end)
    }
}

/// Resolves source and destination by name or index; refuses unknown and equal hosts.
pub(super) fn ends(hosts: &HostNames, line: u32, src: &str, dst: &str) -> Result<(HostId, HostId), FileError> {
    let find = |text: &str| {
        hosts.find_number(text).ok_or_else(|| {
            FileError::at(
                line,
                text,
                "is not a host",
                &format!("a host's name, or its position from 0 to {}, where no name is a number", hosts.len().saturating_sub(1)),
            )
        })
    };
    let (from, to) = (find(src)?, find(dst)?);
    if from == to {
        return Err(FileError::at(line, dst, "is the source itself", "another host"));
    }
    Ok((from, to))
}

pub(super) fn size_of(line: u32, text: &str) -> Result<u64, FileError> {
    match text.parse::<u64>() {
        Ok(size) if size > 0 => Ok(size),
        Ok(_) => Err(FileError::at(line, text, "is not a size: a flow has at least 1 byte", "bytes")
            .suggest("where it means a flow without end, give a size larger than the run can carry".to_string())),
        Err(_) if text.starts_with('-') => Err(FileError::at(line, text, "is negative", "bytes, at least 1")),
        Err(_) => Err(FileError::at(line, text, "is not a number of bytes", "an integer of at least 1")),
    }
}

pub(super) fn class(line: u32, text: &str) -> Result<u8, FileError> {
    text.parse::<u8>().ok().filter(|class| *class <= crate::entry::MAX_CLASS).ok_or_else(|| {
        FileError::at(line, text, "is not a traffic class", &format!("an integer from 0 to {}", crate::entry::MAX_CLASS))
    })
}
