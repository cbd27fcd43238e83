//! One run on several cores: the network is divided into parts, each a world of its own, which move on in windows of time that nothing needs
//! to cross a border. What a part does depends on nothing but its own state and what has crossed before, so the division and the number of
//! threads change no result. See docs/parallel.md.

mod barrier;
mod division;
mod exchange;
mod gather;
mod steps;
mod threads;

pub use division::Division;
pub use threads::{run_parts, Order, Undivided};

use super::folder::RunError;
use crate::outside;
use fanin_scenario::Scenario;
use fanin_topology::Link;
use fanin_traffic::Traffic;
use fanin_units::{Bytes, Span};

/// Assumptions about a run that has not begun, for [`expected`]: how much of the links is used; the time that a packet takes per hop, and
/// besides where its link leads to another part; the share by which each part slows all, as they share memory; and the time that a part takes
/// to begin, end and wait for a window. They are calibrated on the tables of docs/parallel.md, which a test holds them against.
const USED: f64 = 0.5;
const HOP: f64 = 90e-9;
const CROSSING: f64 = 150e-9;
const SHARED: f64 = 0.08;
const WINDOW: f64 = 1.5e-6;
/// Gain for which threads are taken, and twice as many of them: a tenth.
const WORTH: f64 = 1.1;

/// Number of threads of a run, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub threads: usize,
    /// Reason for fewer threads than were asked for, or than there are cores.
    pub why: Option<String>,
}

/// Estimate of a run on a number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Parts that the network is divided into: one for each thread, as far as it can be.
    pub parts: usize,
    /// Time between two meetings of all parts.
    pub window: Span,
    /// Speed as a multiple of one thread's, where each thread has a core.
    pub times: f64,
}

/// The number of threads for a run, on a machine with so many `cores`.
///
/// # Errors
/// When the traffic cannot be generated.
pub fn choose(scenario: &Scenario, cores: usize) -> Result<Chosen, RunError> {
    let asked = scenario.doc().engine.threads as usize;
    if asked != 1 && outside::asks(scenario) {
        let why = "a block outside decides about one packet after the other".to_string();
        return Ok(Chosen { threads: 1, why: Some(why) });
    }
    if asked > 0 {
        let why = || format!("{asked} were asked for, and there are {cores} cores");
        return Ok(Chosen { threads: asked.min(cores), why: (asked > cores).then(why) });
    }
    let traffic = scenario.traffic().map_err(RunError::Problems)?;
    let (mut threads, mut times) = (1, 1.0);
    for more in (1..).map(|i| 1 << i).take_while(|more| *more < 2 * cores) {
        let more = cores.min(more);
        let expected = expected(scenario, &traffic, more);
        if expected.parts == more && expected.times >= WORTH * times {
            (threads, times) = (more, expected.times);
        }
    }
    let why = "more are not expected to make it a tenth faster".to_string();
    Ok(Chosen { threads, why: (threads < cores).then_some(why) })
}

/// Estimates a run on a number of threads.
pub fn expected(scenario: &Scenario, traffic: &Traffic, threads: usize) -> Expected {
    let division = Division::balanced(scenario, threads);
    let parts = division.parts;
    if parts < 2 || division.window == Span::MAX {
        return Expected { parts: 1, window: Span::MAX, times: 1.0 };
    }
    // Where flows follow completions, a window ends before each start of another.
    let arrivals = if traffic.follows_completions() { traffic.expected_arrivals() } else { 0.0 };
    let apart = scenario.stop().map_or(u64::MAX, |stop| (stop.ps() as f64 / arrivals.max(f64::MIN_POSITIVE)) as u64);
    let window = division.window.min(Span::from_ps(apart.max(1)));
    let full = |link: &Link| link.rate.time_to_send(Bytes(1538)).ps().max(1) as f64;
    let packets = |link: &Link| USED * window.ps() as f64 / full(link);
    let links = &scenario.topology().links;
    let hops: f64 = links.iter().map(packets).sum();
    let crossings: f64 = links.iter().filter(|link| division.cuts(scenario, link)).map(packets).sum();
    let one = hops * HOP;
    let each = (one + crossings * CROSSING) / parts as f64 * (1.0 + SHARED * parts as f64) + WINDOW;
    Expected { parts, window, times: one / each }
}
