//! Two captures of one port, before and behind it: every packet's queue, wait and fate.
//!
//! Three readings: [`coarse`] finds how packets match and which way leads to the port, [`align`] what the clocks are apart,
//! [`reader`] makes the records. docs/analysis-methods.md says how.

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

pub use identity::{FlowKey, Match};
pub use reader::{PairReader, NO_WAIT};
pub use report::{ClockReport, LeftOut, PairReport};
pub use waits::{FlowWait, WaitReport};

use super::options::Options;
use super::packets::Connections;
use super::problem::{Problem, Problems};
use super::source::{Kind, Source};
use super::trace::Failure;
use align::Alignment;
use coarse::Coarse;
use fanin_units::{BitRate, Time};
use fanin_wire::Direction;
use side::{How, Place, Side};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Packets between both captures that are held at once.
const MOST_HELD: usize = 1 << 20;

/// Says how far the reading is, 0 … 1; false: it is to end.
pub type Tick<'a> = &'a mut dyn FnMut(f64) -> bool;

/// The captures of both sides, the earliest of each first.
pub struct Files {
    before: Arc<[Source]>,
    behind: Arc<[Source]>,
    places: [Option<Place>; 2],
    without_fcs: bool,
    sorted: bool,
}

impl Files {
    /// The packets before (0) or behind (1), from the start.
    fn side(&self, index: usize, matching: Match, behind: Arc<BTreeSet<u64>>) -> Side {
        let files = if index == 0 { &self.before } else { &self.behind };
        let place = self.places[index].clone();
        let how = How { matching, without_fcs: self.without_fcs, sorted: self.sorted, behind, place };
        Side::new(files.clone(), how)
    }

    fn names(&self) -> (Vec<String>, Vec<String>) {
        let names = |sources: &[Source]| sources.iter().map(|s| s.given.display().to_string()).collect();
        (names(&self.before), names(&self.behind))
    }
}

/// Both captures, inspected and aligned.
pub struct Pair {
    files: Files,
    coarse: Coarse,
    alignment: Alignment,
    connections: Connections,
    /// The port's name: the interface behind it, or the capture.
    port: String,
    rate: Option<BitRate>,
    overhead: u64,
    top: usize,
    /// From when to when it is counted [time of the trace].
    window: (Time, Time),
}

impl Pair {
    /// First time before [ps].
    fn start(&self) -> i128 {
        self.first().and_then(|first| i128::try_from(first).ok()).unwrap_or(0)
    }

    /// The earliest time of the capture before [ps].
    pub fn first(&self) -> Option<u128> {
        self.files.before.iter().filter_map(|s| s.first).min()
    }

    /// Steps in which its times are [ps].
    pub fn tick(&self) -> Option<u64> {
        self.alignment.tick
    }

    /// The capture before, and bytes to read.
    pub fn before(&self) -> &Source {
        &self.files.before[0]
    }

    /// The capture behind.
    pub fn behind(&self) -> &[Source] {
        &self.files.behind
    }
}

/// Makes one source of the captures before and behind a port.
///
/// # Errors
/// They are no captures, cannot be read, or have no packet in common.
pub fn join(mut before: Vec<Source>, mut behind: Vec<Source>, options: &Options, tick: Tick<'_>) -> Result<Source, Failure> {
    let mut problems: Problems = Vec::new();
    for source in before.iter().chain(&behind) {
        if !matches!(source.kind, Kind::Pcap | Kind::PcapNg) {
            let problem = Problem::new("is no capture, in which packets could be found again").file(&source.path);
            problems.push(problem.column("behind").accepted("pcap, pcapng"));
        } else if source.first.is_none() {
            problems.push(Problem::new("has no packets").file(&source.path));
        }
    }
    let two = options.before_interface.is_some() && options.behind_interface.is_some();
    if let Some(twice) = behind.iter().find(|s| !two && before.iter().any(|b| b.path == s.path)) {
        let problem = Problem::new("is given both as the capture before the port and as the one behind it")
            .file(&twice.path)
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
    before.sort_by_key(|s| s.first);
    behind.sort_by_key(|s| s.first);
    let place = |interface: &Option<String>, direction| interface.clone().map(|interface| Place { interface, direction });
    let places = [place(&options.before_interface, Direction::In), place(&options.behind_interface, Direction::Out)];
    let port = match &options.behind_interface {
        Some(number) if number.bytes().all(|b| b.is_ascii_digit()) => format!("if{number}"),
        Some(name) => name.clone(),
        None => behind[0].port_name(),
    };
    let mut connections = Connections::default();
    for source in &before {
        if !connections.read(&source.path, (Box::new(source.opened()?.0), source.size()), tick)? {
            return Err(Failure::Stopped);
        }
    }
    let (without_fcs, sorted) = (options.without_fcs, options.sort);
    let files = Files { places, before: before.into(), behind: behind.into(), without_fcs, sorted };
    let coarse = coarse::look(&files, tick)?;
    let alignment = align::align(&files, &coarse, options.settings.rate, tick)?;
    let settings = &options.settings;
    Ok(Source::of_pair(Arc::new(Pair {
        files,
        coarse,
        alignment,
        connections,
        port,
        rate: settings.rate,
        overhead: settings.overhead.get(),
        top: settings.top,
        window: (settings.from.unwrap_or(Time::ZERO), options.stop.unwrap_or(Time::MAX)),
    })))
}
