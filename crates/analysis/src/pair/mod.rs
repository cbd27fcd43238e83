//! Two captures of one port, before and behind it: every packet's queue, wait and fate.
//!
//! [`coarse`] looks at the first packets and finds how they match and which way leads to the port; [`align`] reads both captures, finds
//! what the clocks are apart, and keeps the packets as [`rows`]; [`reader`] makes the records of those. docs/dev/analysis-steps.md says how.

mod align;
mod both_ways;
mod checks;
mod coarse;
mod envelope;
mod flight;
mod flows;
mod identity;
mod idle;
mod matching;
mod reader;
mod report;
mod rows;
mod side;
#[cfg(test)]
mod tests;
mod waiting;
mod waits;

pub use both_ways::{BothWays, Passing};
pub use identity::Match;
pub use reader::PairReader;
pub use report::{ClockReport, LeftOut, PairReport};
pub use waits::{FlowWait, WaitReport};

use crate::capture::survey::Survey;
use crate::capture::{CaptureFile, Connections};
use crate::input::problem::{Failure, Problem, Problems};
use align::{Aligned, Alignment};
use coarse::Coarse;
use fanin_units::{BitRate, Bytes, Time};
use fanin_wire::Direction;
use matching::Matching;
use rows::Packets;
use side::{Place, Side};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Packets between both captures that are held at once.
const MOST_HELD: usize = 1 << 20;

/// Function that is told the progress of the reading, 0 … 1; false: it is to end.
pub type Tick<'a> = &'a mut dyn FnMut(f64) -> bool;

/// The captures of both sides, the earliest of each first.
pub struct Files {
    before: Arc<[CaptureFile]>,
    behind: Arc<[CaptureFile]>,
    places: [Option<Place>; 2],
    without_fcs: bool,
    sorted: bool,
}

impl Files {
    /// The packets before (0) or behind (1), from the start.
    fn side(&self, index: usize, matching: Match, behind: Arc<BTreeSet<u64>>) -> Side {
        let files = if index == 0 { &self.before } else { &self.behind };
        let place = self.places[index].clone();
        let how = side::How { matching, without_fcs: self.without_fcs, sorted: self.sorted, behind, place };
        Side::new(files.clone(), how)
    }

    /// Both sides, whose packets are to be matched, from the start.
    fn matching(&self, coarse: &Coarse) -> Matching {
        let side = |index: usize| self.side(index, coarse.matching, coarse.hosts[index].clone());
        Matching::new(side(0), side(1), coarse.shift)
    }

    fn names(&self) -> (Vec<String>, Vec<String>) {
        let names = |captures: &[CaptureFile]| captures.iter().map(|c| c.file.given.display().to_string()).collect();
        (names(&self.before), names(&self.behind))
    }
}

/// Two captures of one port, inspected and aligned.
pub struct Pair {
    files: Files,
    coarse: Coarse,
    alignment: Alignment,
    /// The packets of both sides, where there was room for them.
    rows: Option<[Arc<rows::Rows>; 2]>,
    connections: Connections,
    /// Name of the port: the interface behind it, or the capture.
    port: String,
    rate: Option<BitRate>,
    overhead: u64,
    top: usize,
    /// Time window that is counted [time of the trace].
    window: (Time, Time),
    /// The report, once the packets have been read.
    report: Mutex<Option<PairReport>>,
}

/// Settings of the reading of two captures.
pub struct How {
    /// Interfaces before and behind the port, in captures of several.
    pub interfaces: [Option<String>; 2],
    /// Frames count without check sequence and padding.
    pub without_fcs: bool,
    /// True if packets are sorted first.
    pub sorted: bool,
    /// Transfers over TCP are told apart.
    pub transfers: bool,
    /// At the interfaces that are named, frames of both directions count, as at a host's.
    pub both_ways: bool,
    pub rate: Option<BitRate>,
    pub overhead: Bytes,
    /// Largest number of flows that are listed.
    pub top: usize,
    /// Waits are counted from the first time to the second.
    pub window: (Time, Time),
}

impl Pair {
    /// First time of the capture before [ps].
    fn start(&self) -> i128 {
        self.first().and_then(|first| i128::try_from(first).ok()).unwrap_or(0)
    }

    /// The earliest time of the capture before [ps].
    pub fn first(&self) -> Option<u128> {
        self.files.before.iter().filter_map(|c| c.facts.first).min()
    }

    /// Step of the times [ps].
    pub fn tick(&self) -> Option<u64> {
        self.alignment.tick
    }

    /// The first capture before the port.
    pub fn before(&self) -> &CaptureFile {
        &self.files.before[0]
    }

    /// The least time that a packet of so many bytes takes between the captures, beyond that of all [ps].
    pub fn least_of(&self, bytes: u32) -> u64 {
        self.alignment.least_of(bytes).unsigned_abs()
    }

    /// Time of a byte at the fastest that the port sent [ps]; 0: unknown.
    pub fn pace(&self) -> f64 {
        if self.alignment.rate > 0.0 {
            fanin_units::BPS / self.alignment.rate
        } else {
            0.0
        }
    }

    /// Names of both places: their interfaces, or their captures.
    pub fn place_names(&self) -> [String; 2] {
        let captures = [&self.files.before[0], &self.files.behind[0]];
        let name = |side: usize| {
            let interface = self.files.places[side].as_ref().map(|place| place.interface.clone());
            interface.unwrap_or_else(|| captures[side].file.port_name())
        };
        [name(0), name(1)]
    }

    /// The captures behind the port.
    pub fn behind(&self) -> &[CaptureFile] {
        &self.files.behind
    }

    /// Surveys of the captures before the port, with their transfers, if those were asked for.
    pub fn with_transfers(&self) -> &[Survey] {
        &self.connections.with_transfers
    }

    /// The report, once the packets have been read.
    pub fn report(&self) -> Option<PairReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The packets of both sides, from the start.
    fn packets(&self) -> Packets {
        Packets::new(self.rows.clone(), || self.files.matching(&self.coarse))
    }

    fn reported(&self, report: PairReport) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}

/// Aligns the captures before and behind a port.
///
/// # Errors
/// They cannot be read, or have no packet in common.
pub fn join(mut before: Vec<CaptureFile>, mut behind: Vec<CaptureFile>, how: How, tick: Tick<'_>) -> Result<Arc<Pair>, Failure> {
    let How {
        interfaces: [before_interface, behind_interface],
        without_fcs,
        sorted,
        transfers,
        rate,
        overhead,
        top,
        window,
        both_ways,
    } = how;
    let mut problems: Problems = Vec::new();
    for capture in before.iter().chain(&behind).filter(|capture| capture.facts.first.is_none()) {
        problems.push(Problem::new("has no packets").file(&capture.file.path));
    }
    let two = before_interface.is_some() && behind_interface.is_some();
    let is_before = |capture: &CaptureFile| before.iter().any(|b| b.file.path == capture.file.path);
    if let Some(twice) = behind.iter().find(|capture| !two && is_before(capture)) {
        let problem = Problem::new("is given both as the capture before the port and as the one behind it")
            .file(&twice.file.path)
            .column("behind");
        problems.push(
            problem.accepted("another capture; or one of several interfaces, with --before-interface and --behind-interface"),
        );
    }
    if before.is_empty() {
        problems.push(Problem::new("has no capture before the port").column("behind"));
    }
    if !problems.is_empty() {
        return Err(problems.into());
    }
    before.sort_by_key(|c| c.facts.first);
    behind.sort_by_key(|c| c.facts.first);
    let port = match &behind_interface {
        Some(number) if number.bytes().all(|b| b.is_ascii_digit()) => format!("if{number}"),
        Some(name) => name.clone(),
        None => behind[0].file.port_name(),
    };
    let place = |interface: Option<String>, direction| {
        interface.map(|interface| Place { interface, direction: (!both_ways).then_some(direction) })
    };
    let places = [place(before_interface, Direction::In), place(behind_interface, Direction::Out)];
    let files = Files { places, before: before.into(), behind: behind.into(), without_fcs, sorted };
    let coarse = coarse::look(&files, tick)?;
    let Aligned { alignment, connections, rows } = align::align(&files, &coarse, (rate, transfers), tick)?;
    let (overhead, report) = (overhead.get(), Mutex::new(None));
    Ok(Arc::new(Pair { files, coarse, alignment, rows, connections, port, rate, overhead, top, window, report }))
}
