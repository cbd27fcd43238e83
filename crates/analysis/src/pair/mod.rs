//! Two captures of one port, before and behind it: every packet's queue, wait and fate.
//!
//! Three readings: [`coarse`] finds how packets match and which way leads to the port, [`align`] what the clocks are apart,
//! [`reader`] makes the records. docs/dev/analysis-steps.md says how.

mod align;
mod checks;
mod coarse;
mod envelope;
mod flight;
mod identity;
mod reader;
mod report;
mod side;
#[cfg(test)]
mod tests;
mod waits;

pub use identity::Match;
pub use reader::PairReader;
pub use report::{ClockReport, LeftOut, PairReport};
pub use waits::{FlowWait, WaitReport};

use crate::capture::survey::Survey;
use crate::capture::{CaptureFile, Connections};
use crate::input::problem::{Failure, Problem, Problems};
use align::Alignment;
use coarse::Coarse;
use fanin_units::{BitRate, Bytes, Time};
use fanin_wire::Direction;
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
    /// Sides that are sorted already, for the first that reads them.
    again: Mutex<align::Again>,
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

    /// The packets before (0) or behind (1), from the start.
    fn side(&self, index: usize) -> Side {
        let again = self.again.lock().unwrap_or_else(PoisonError::into_inner)[index].take();
        again.unwrap_or_else(|| self.files.side(index, self.coarse.matching, self.coarse.hosts[index].clone()))
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
    let How { interfaces: [before_interface, behind_interface], without_fcs, sorted, transfers, rate, overhead, top, window } =
        how;
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
    let place = |interface: Option<String>, direction| interface.map(|interface| Place { interface, direction });
    let places = [place(before_interface, Direction::In), place(behind_interface, Direction::Out)];
    let mut connections = Connections::default();
    for CaptureFile { file, .. } in &before {
        if !connections.read(&file.path, ((Box::new(file.open()?.0), file.size), transfers), tick)? {
            return Err(Failure::Stopped);
        }
    }
    let files = Files { places, before: before.into(), behind: behind.into(), without_fcs, sorted };
    let coarse = coarse::look(&files, tick)?;
    let (alignment, again) = align::align(&files, &coarse, rate, tick)?;
    let (overhead, report, again) = (overhead.get(), Mutex::new(None), Mutex::new(again));
    Ok(Arc::new(Pair { files, coarse, alignment, again, connections, port, rate, overhead, top, window, report }))
}
