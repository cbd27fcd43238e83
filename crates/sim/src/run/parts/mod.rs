//! One run on several cores: the network is divided into parts, each a world of its own, which move on in windows of time that nothing needs
//! to cross a border. What a part does depends on nothing but its own state and what has crossed before, so the division and the number of
//! threads change no result. See docs/parallel.md.

mod barrier;
mod border;
mod division;
mod exchange;
mod gate;
mod gather;
#[cfg(test)]
mod meeting_tests;
mod steps;
mod sync;
mod threads;

pub use division::Division;
pub use threads::{run_parts, Order, Undivided};

use super::folder::RunError;
use exchange::MOST_PARTS;
use fanin_scenario::{Scenario, Volume};
use fanin_topology::Link;
use fanin_traffic::Traffic;
use fanin_units::{Bytes, Span};

/// Assumptions about a run that has not begun, for [`expected`]: how much of the links is used; the time that a packet takes per hop, and
/// besides where its link leads to another part; the share by which each part slows all, as they share memory; the time that a part takes
/// to begin, end and wait for a window; and the time to start a thread. They are calibrated on the tables of docs/parallel.md, which a test holds them against.
const USED: f64 = 0.5;
const HOP: f64 = 90e-9;
const CROSSING: f64 = 150e-9;
const SHARED: f64 = 0.08;
const WINDOW: f64 = 1.5e-6;
const START: f64 = 50e-6;
/// Gain for which threads are taken, and twice as many of them: a tenth.
const WORTH: f64 = 1.1;

/// Division of a run among threads, one for each part, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// `None`: one thread.
    pub division: Option<Division>,
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

/// The division of a run on a machine with so many `cores`.
///
/// # Errors
/// When the traffic cannot be generated.
pub fn choose(scenario: &Scenario, cores: usize) -> Result<Chosen, RunError> {
    let one = |why: Option<String>| Ok(Chosen { division: None, why });
    let asked = scenario.doc().engine.threads as usize;
    if asked == 1 {
        return one(None);
    }
    if let Some(why) = threads::asks_for_one(scenario) {
        return one(Some(why.to_string()));
    }
    if asked > 0 {
        let division = Division::balanced(scenario, asked.min(cores));
        let parts = division.parts;
        let why = if cores > 1 && parts < 2 {
            threads::stays_whole(scenario, &division).map(str::to_string)
        } else if parts < asked.min(cores) {
            Some(format!("{asked} were asked for, and the network has {parts} parts"))
        } else {
            (asked > cores).then(|| format!("{asked} were asked for, and there are {cores} cores"))
        };
        return Ok(Chosen { division: (parts > 1).then_some(division), why });
    }
    let traffic = scenario.traffic().map_err(RunError::Problems)?;
    let volume = scenario.volume().map_err(RunError::Problems)?;
    let (mut threads, mut times) = (1, 1.0);
    for more in (1..).map(|i| 1 << i).take_while(|more| *more < 2 * cores) {
        let more = cores.min(MOST_PARTS).min(more);
        let expected = expected(scenario, (&traffic, volume), more);
        if expected.parts == more && expected.times >= WORTH * times {
            (threads, times) = (more, expected.times);
        }
    }
    let why = "more are not expected to make it a tenth faster".to_string();
    let division = (threads > 1).then(|| Division::balanced(scenario, threads));
    Ok(Chosen { division, why: (threads < cores).then_some(why) })
}

/// Reason for which a run stays on one thread, whatever is asked for, as far as it is known before.
pub fn one_thread(scenario: &Scenario, traffic: &Traffic) -> Option<&'static str> {
    threads::asks_for_one(scenario)
        .or_else(|| traffic.follows_the_order_of_completions().then_some(threads::ONE_BY_ONE))
        .or_else(|| threads::stays_whole(scenario, &Division::balanced(scenario, 2)))
}

/// Estimates a run with so much traffic on a number of threads.
pub fn expected(scenario: &Scenario, (traffic, volume): (&Traffic, Volume), threads: usize) -> Expected {
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
    let most: f64 = links.iter().map(packets).sum();
    let cut: f64 = links.iter().filter(|link| division.cuts(scenario, link)).map(packets).sum();
    // As much as the traffic has, where that is less; of jobs it is not known.
    let (all, seconds) = (volume.packet_hops, volume.seconds.max(f64::MIN_POSITIVE));
    let hops = if all > 0.0 { most.min(all * window.as_secs_f64() / seconds) } else { most };
    let starts = if all > 0.0 { threads as f64 * START * hops / all } else { 0.0 };
    let one = hops * HOP;
    let each = (one + cut / most * hops * CROSSING) / parts as f64 * (1.0 + SHARED * parts as f64) + WINDOW + starts;
    Expected { parts, window, times: one / each }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn fabric(more: &str) -> Scenario {
        let text = "[topology]\nkind = \"leaf_spine\"\nleaves = 4\nhosts_per_leaf = 2\nspines = 2\n\
                    host_link = { rate = \"10Gbps\", delay = \"1us\" }\nuplink = { rate = \"10Gbps\", delay = \"1us\" }\n\
                    [[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
        Scenario::from_toml(&format!("{text}{more}"), Path::new(".")).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    #[test]
    fn fewer_threads_than_were_asked_for_have_a_reason() {
        let of = |more: &str, cores: usize| {
            let Chosen { division, why } = choose(&fabric(more), cores).expect("valid");
            (division.map_or(1, |division| division.parts), why.unwrap_or_default())
        };
        assert_eq!(of("[engine]\nthreads = 1\n", 16), (1, String::new()));
        assert_eq!(of("[engine]\nthreads = 4\n", 16), (4, String::new()));
        assert_eq!(of("[engine]\nthreads = 8\n", 16), (4, "8 were asked for, and the network has 4 parts".to_string()));
        assert_eq!(of("[engine]\nthreads = 8\n", 2), (2, "8 were asked for, and there are 2 cores".to_string()));
        assert_eq!(of("[engine]\nthreads = 8\n", 1), (1, "8 were asked for, and there are 1 cores".to_string()));
        let counts = "engine.max_events counts the events of the whole network".to_string();
        assert_eq!(of("[engine]\nthreads = 0\nmax_events = 1000\n", 16), (1, counts));
        let wide = "[topology]\nkind = \"leaf_spine\"\nleaves = 192\nhosts_per_leaf = 1\nspines = 2\nuplink = { rate = \"400Gbps\", delay = \"1ms\" }\n\
                    host_link = { rate = \"400Gbps\", delay = \"1ms\" }\n[[traffic]]\nkind = \"permutation\"\nsize = \"1GB\"\n[engine]\nthreads = 0\n";
        let wide = Scenario::from_toml(wide, Path::new(".")).unwrap_or_else(|problems| panic!("{problems:?}"));
        let chosen = choose(&wide, 192).expect("valid").division.map(|division| division.parts);
        assert_eq!(chosen, Some(64), "one core for each, and more than a run has parts for");
        let nothing = "more are not expected to make it a tenth faster".to_string();
        assert_eq!(of("[engine]\nthreads = 0\n", 16), (1, nothing), "8 KB in all: no work for two");
    }
}
