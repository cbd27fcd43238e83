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

use fanin_scenario::Scenario;
use fanin_traffic::Traffic;
use fanin_units::{Bytes, Span};

/// Time that the work of a window takes at least where a further thread pays: waiting for others takes a few microseconds.
const LEAST_WORK: f64 = 10e-6;
/// Time that a packet takes per hop, and how much of the links is used: what is assumed of a run that has not begun.
const HOP: f64 = 100e-9;
const USED: f64 = 0.3;

/// Number of threads of a run, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub threads: usize,
    /// Reason for fewer threads than cores.
    pub why: Option<String>,
}

/// The number of threads for a run, on a machine with so many `cores`.
pub fn choose(scenario: &Scenario, traffic: &Traffic, cores: usize) -> Chosen {
    let asked = scenario.doc().engine.threads as usize;
    if asked > 0 {
        return Chosen { threads: asked, why: None };
    }
    let pays = |threads: &usize| work(scenario, traffic, &Division::balanced(scenario, *threads)) >= LEAST_WORK;
    let threads = (2..=cores).rev().find(pays).unwrap_or(1);
    let why = format!("a window of more parts has less than {:.0} us of work for each", LEAST_WORK * 1e6);
    Chosen { threads, why: (threads < cores).then_some(why) }
}

/// Time \[s\] that each part is expected to work in a window.
fn work(scenario: &Scenario, traffic: &Traffic, division: &Division) -> f64 {
    if division.parts < 2 || division.window == Span::MAX {
        return 0.0;
    }
    // Where flows follow completions, a window ends before each start of another.
    let arrivals = if traffic.follows_completions() { traffic.expected_arrivals() } else { 0.0 };
    let apart = scenario.stop().map_or(f64::MAX, |stop| stop.ps() as f64 / arrivals.max(f64::MIN_POSITIVE));
    let window = (division.window.ps() as f64).min(apart);
    let full = |link: &fanin_topology::Link| link.rate.time_to_send(Bytes(1538)).ps().max(1) as f64;
    let packets: f64 = scenario.topology().links.iter().map(|link| window / full(link)).sum();
    packets * USED * HOP / division.parts as f64
}
