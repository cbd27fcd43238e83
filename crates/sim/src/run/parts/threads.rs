//! The parts of a run on threads, or one after the other.

use super::barrier::{turn, Barrier, Breaks};
use super::division::{switches_with_hosts, Division};
use super::exchange::{Exchange, MOST_PARTS};
use super::gate::Gate;
use super::gather::gather;
use super::steps::{next, Step};
use crate::ledger::{Destination, Ledger, Tables};
use crate::outside;
use crate::run::folder::{Control, Observer, Progress, RunError};
use crate::run::setup;
use crate::world::part::Status;
use crate::world::World;
use fanin_scenario::{Sampling, Scenario};
use fanin_telemetry::TableError;
use fanin_units::{Purpose, Span, Stream, Time};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// The order in which parts are moved.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// On so many threads at once.
    Threads(usize),
    /// One after the other, in an order drawn anew for each step: for tests.
    Shuffled(u64),
}

/// Reason for a run that is not divided, or has to be done by one world.
#[derive(Clone, Debug, PartialEq)]
pub struct Undivided(pub String);

/// Simulated time between two looks at what parts have recorded and at the world outside, and steps: two at least, so that all have handed
/// over what is looked at.
const LOOK: Span = Span::from_us(64);
const STEPS_TO_A_LOOK: std::ops::RangeInclusive<u64> = 2..=64;

/// Samples that a part takes in one step at most, as the run can be interrupted between steps.
const SAMPLES: u64 = 10_000;

/// Parts, each with its number and its world.
type Share = Vec<(usize, World)>;

/// Simulates a scenario in parts, and winds it up. Gives its world, as if it had simulated all of it, and whether the observer stopped the run;
/// or why one world has to do it, when rows may have been written. A table that cannot be written is a failure of the world.
///
/// # Errors
/// When a part cannot be built.
pub fn run_parts(
    scenario: &Scenario,
    destination: &Destination<'_>,
    division: &Division,
    order: Order,
    observer: &mut dyn Observer,
) -> Result<Result<(World, bool), Undivided>, RunError> {
    if let Some(why) = asks_for_one(scenario).or_else(|| stays_whole(scenario, division)) {
        return Ok(Err(Undivided(why.to_string())));
    }
    let exchange = Exchange::new(division.parts);
    let period = match scenario.doc().telemetry.sample {
        Sampling::Every(period) => period,
        Sampling::Off => Span::MAX,
    };
    let run = Run {
        scenario,
        division,
        exchange: &exchange,
        stop: scenario.stop().unwrap_or(Time::MAX),
        recorded: !matches!(destination, Destination::Nowhere),
        look: (LOOK.ps() / division.window.ps().max(1)).clamp(*STEPS_TO_A_LOOK.start(), *STEPS_TO_A_LOOK.end()),
        longest: period.saturating_mul(SAMPLES),
    };
    let ran = match order {
        Order::Shuffled(seed) => in_turn(run, destination, observer, seed),
        Order::Threads(threads) => on_threads(run, destination, observer, threads),
    };
    let (last, mut parts, books) = match ran {
        Ok(ran) => ran,
        Err(Refused::Undivided(why)) => return Ok(Err(Undivided(why.to_string()))),
        Err(Refused::Error(error)) => return Err(error),
    };
    match last {
        Step::GiveUp(why) => Ok(Err(Undivided(why.to_string()))),
        Step::End { at, barrier, interrupted } => {
            parts.sort_by_key(|(number, _)| *number);
            let mut worlds: Vec<World> = parts.into_iter().map(|(_, world)| world).collect();
            let ends = worlds.iter_mut().map(|world| world.end_part(barrier));
            let now = at.or_else(|| ends.max()).unwrap_or(Time::ZERO);
            let half = Time::from_ps(now.ps() / 2);
            if at.is_none() && worlds.iter().any(|world| !world.traffic.blocked().is_empty()) {
                return Ok(Err(Undivided("flows that wait for others at the end".to_string())));
            }
            if at.is_some() && !interrupted && worlds.iter().any(|world| world.pauses_last(half)) {
                return Ok(Err(Undivided("a pause that lasts, as in a deadlock".to_string())));
            }
            let Books { mut ledger, failure, .. } = books;
            ledger.tables.settle_capture(now);
            let written = wind_up(&mut worlds, now, &mut ledger.tables, &exchange);
            let mut worlds = worlds.into_iter();
            let Some(mut whole) = worlds.next() else { unreachable!("a run of no parts") };
            gather(&mut whole, worlds, ledger);
            whole.core.failure = failure.or(written.err());
            whole.add_ports_to_fingerprint();
            Ok(Ok((whole, interrupted)))
        }
        Step::Run { .. } => unreachable!("the parts stopped before the end"),
    }
}

/// Brings all parts up to the end, and their last rows into the tables.
fn wind_up(worlds: &mut [World], now: Time, tables: &mut Tables, exchange: &Exchange) -> Result<(), TableError> {
    let (mut rows, _) = exchange.take();
    for world in worlds.iter_mut() {
        world.core.now = now;
        world.wind_up_part();
        world.core.ledger.tables.settle()?;
    }
    for number in 0..worlds.len() {
        for (to, end) in worlds[number].take_gone() {
            worlds[to as usize].receive_ends(vec![end], false);
        }
    }
    worlds.iter_mut().for_each(|world| rows.append(world.take_rows(Time::MAX)));
    rows.write(tables)
}

/// Reason for a scenario that is simulated by one world, if there is one.
pub fn asks_for_one(scenario: &Scenario) -> Option<&'static str> {
    let doc = scenario.doc();
    let telemetry = &doc.telemetry;
    if telemetry.follows_messages() {
        Some("telemetry.hosts and telemetry.messages follow packets through the whole network")
    } else if doc.engine.max_events.is_some() {
        Some("engine.max_events counts the events of the whole network")
    } else if outside::asks(scenario) {
        Some("a block outside decides about one packet after the other")
    } else {
        None
    }
}

/// Reason for traffic that is simulated by one world.
pub const ONE_BY_ONE: &str = "flows that are released one by one, in the order of completions at different hosts";

/// Reason for a network that is not divided, if there is one.
pub fn stays_whole(scenario: &Scenario, division: &Division) -> Option<&'static str> {
    if division.parts < 2 {
        Some(match switches_with_hosts(scenario.topology()).len() {
            ..2 => "one switch has all hosts: nothing to divide",
            _ => "links between switches have no delay: nothing to divide",
        })
    } else if division.parts > MOST_PARTS {
        Some("more parts than 64")
    } else {
        None
    }
}

/// Reason for which a part is not built.
enum Refused {
    Error(RunError),
    Undivided(&'static str),
}

impl From<RunError> for Refused {
    fn from(error: RunError) -> Refused {
        Refused::Error(error)
    }
}

/// End of a run in parts: the last step, the parts, and the books.
type Ran = Result<(Step, Share, Books), Refused>;

/// Facts of a run that all threads share.
#[derive(Clone, Copy)]
struct Run<'a> {
    scenario: &'a Scenario,
    division: &'a Division,
    exchange: &'a Exchange,
    stop: Time,
    /// Rows go to tables.
    recorded: bool,
    /// Steps between two looks, and simulated time between two steps at most.
    look: u64,
    longest: Span,
}

/// Books of a run, which the calling thread keeps: the ledger of the whole with its tables, which could not be written if there is a failure.
struct Books {
    ledger: Ledger,
    failure: Option<TableError>,
    /// Flows that the run will have, if that is known.
    flows: Option<u64>,
}

/// The calling thread's own: the books, and the observer of the run.
struct Caller<'a> {
    books: &'a mut Books,
    observer: &'a mut dyn Observer,
}

impl Run<'_> {
    /// Tables of a part.
    fn held(&self) -> Destination<'static> {
        match self.recorded {
            true => Destination::Held(Arc::default()),
            false => Destination::Nowhere,
        }
    }

    /// Builds a part.
    fn build(&self, number: usize) -> Result<World, Refused> {
        self.divide(setup::world(self.scenario, &self.held())?, number)
    }

    /// Builds the first part, and the books.
    fn build_first(&self, destination: &Destination<'_>) -> Result<(World, Books), Refused> {
        let mut world = setup::world(self.scenario, destination)?;
        let ledger = setup::exchange_ledger(&mut world, self.scenario, &self.held())?;
        let books = Books { ledger, failure: None, flows: world.traffic.total_hint() };
        Ok((self.divide(world, 0)?, books))
    }

    /// Makes a part of a world.
    fn divide(&self, mut world: World, number: usize) -> Result<World, Refused> {
        if world.traffic.follows_the_order_of_completions() {
            return Err(Refused::Undivided(ONE_BY_ONE));
        }
        world.become_part(&self.division.hosts, &self.division.switches, number as u32, self.division.parts);
        Ok(world)
    }

    /// The next step of all parts.
    fn next(&self, all: &Status) -> Step {
        next(all, (self.division.window, self.longest), self.stop)
    }

    /// Does a step in one part, which has its mail then.
    fn act(&self, step: Step, (turn, count): (usize, u64), number: usize, world: &mut World, all: &Status) {
        self.exchange.collect(turn, number, world);
        match step {
            Step::Run { start, end, reached } => world.run_window(start, end, reached),
            Step::End { .. } | Step::GiveUp(_) => {}
        }
        if count % self.look == 0 {
            self.exchange.hand_over(number, world, all);
        }
        self.exchange.publish(1 - turn, number, world);
    }
}

impl Caller<'_> {
    /// Writes the rows that parts have handed over, and asks the observer; the run ends early if it shall.
    fn look(&mut self, run: Run<'_>, now: Time) {
        let (rows, totals) = run.exchange.take();
        let written = rows.write(&mut self.books.ledger.tables);
        let stop = (run.stop < Time::MAX).then_some(run.stop);
        let progress = Progress { now, stop, totals, flows: self.books.flows };
        let goes_on = written.is_ok() && self.observer.progress(&progress) == Control::Continue;
        if let Err(error) = written {
            self.books.failure = Some(error);
        }
        if !goes_on {
            run.exchange.end.store(true, Ordering::Relaxed);
        }
    }
}

fn in_turn(run: Run<'_>, destination: &Destination<'_>, observer: &mut dyn Observer, seed: u64) -> Ran {
    let mut draws = Stream::new(seed, Purpose::Ties, 1);
    let (first, mut books) = run.build_first(destination)?;
    let others = (1..run.division.parts).map(|number| Ok((number, run.build(number)?)));
    let mut share = std::iter::once(Ok((0, first))).chain(others).collect::<Result<Share, Refused>>()?;
    let mut caller = Caller { books: &mut books, observer };
    share.iter_mut().for_each(|(number, world)| run.exchange.publish(0, *number, world));
    for count in 1u64.. {
        let turn = turn(count);
        let all = run.exchange.read(turn);
        let step = run.next(&all);
        for i in (1..share.len()).rev() {
            share.swap(i, draws.below(i as u64 + 1) as usize);
        }
        share.iter_mut().for_each(|(number, world)| run.act(step, (turn, count), *number, world, &all));
        if step.is_last() {
            return Ok((step, share, books));
        }
        if count % run.look == 0 {
            caller.look(run, all.now);
        }
    }
    unreachable!("a run without end")
}

/// The work of one thread: some of the parts, from the beginning to the last step. `caller`: on the thread that called.
fn work(
    run: Run<'_>,
    mut caller: Option<Caller<'_>>,
    parts: impl Iterator<Item = (usize, Result<World, Refused>)>,
    barrier: &Barrier,
) -> Result<(Step, Share), Refused> {
    let (mut share, mut error) = (Share::new(), None);
    for (number, built) in parts {
        match built {
            Ok(mut world) => {
                run.exchange.publish(0, number, &mut world);
                share.push((number, world));
            }
            Err(why) => {
                run.exchange.give_up(0, number);
                error = Some(why);
            }
        }
    }
    let last = barrier.steps(|turn, count| {
        let all = run.exchange.read(turn);
        let step = run.next(&all);
        share.iter_mut().for_each(|(number, world)| run.act(step, (turn, count), *number, world, &all));
        if step.is_last() {
            return Some(step);
        }
        // What was handed over a while ago: the others go on meanwhile.
        if let Some(caller) = caller.as_mut().filter(|_| count % run.look == run.look / 2) {
            caller.look(run, all.now);
        }
        None
    });
    error.map_or(Ok((last, share)), Err)
}

fn on_threads(run: Run<'_>, destination: &Destination<'_>, observer: &mut dyn Observer, threads: usize) -> Ran {
    let parts = run.division.parts;
    let threads = threads.clamp(1, parts);
    let (barrier, gate) = (Barrier::new(threads), Gate::default());
    let shares: Vec<Vec<usize>> = (0..threads).map(|t| (t..parts).step_by(threads).collect()).collect();
    std::thread::scope(|scope| {
        let (barrier, gate) = (&barrier, &gate);
        let mut others = Vec::new();
        for numbers in &shares[1..] {
            let name = format!("parts {numbers:?} of the network");
            let build = move |number: &usize| (*number, run.build(*number));
            let work = move || {
                gate.wait().then(|| {
                    let _breaks = Breaks(barrier);
                    work(run, None, numbers.iter().map(build), barrier)
                })
            };
            match std::thread::Builder::new().name(name).spawn_scoped(scope, work) {
                Ok(spawned) => others.push(spawned),
                // Fewer than there are parts: nobody begins.
                Err(_) => {
                    gate.open(false);
                    return Err(Refused::Undivided("the system gives no more threads"));
                }
            }
        }
        gate.open(true);
        let _breaks = Breaks(barrier);
        // The others build theirs meanwhile.
        let (first, mut books) = match run.build_first(destination) {
            Ok((world, books)) => (Ok(world), Some(books)),
            Err(why) => (Err(why), None),
        };
        let caller = books.as_mut().map(|books| Caller { books, observer });
        let rest = shares[0][1..].iter().map(|number| (*number, run.build(*number)));
        let ran = work(run, caller, std::iter::once((0, first)).chain(rest), barrier);
        let mut all = Share::new();
        for other in others {
            if let Some(done) = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                all.extend(done?.1);
            }
        }
        let (step, share) = ran?;
        all.extend(share);
        let Some(books) = books else { unreachable!("a first part without books") };
        Ok((step, all, books))
    })
}
