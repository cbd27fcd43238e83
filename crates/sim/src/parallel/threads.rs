//! The parts of a run on threads, or one after the other.

use super::division::Division;
use super::gather::gather;
use super::steps::{next, Step};
use crate::core::part::Mail;
use crate::core::port::Owner;
use crate::hosts::ends::EndGone;
use crate::ledger::{Destination, HeldRows, Totals};
use crate::run::folder::{Control, Observer, Progress, RunError};
use crate::run::setup;
use crate::world::part::Status;
use crate::world::World;
use fanin_scenario::{Keep, Scenario};
use fanin_units::{LinkId, Purpose, Stream, Time};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The order in which parts are moved.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// On so many threads at once.
    Threads(usize),
    /// One after the other, in an order drawn anew for each step: for tests.
    Shuffled(u64),
}

/// Why a run was not divided, or has to be done by one world.
#[derive(Clone, Debug, PartialEq)]
pub struct Undivided(pub String);

/// What parts have for each other after a step.
#[derive(Default)]
struct Post {
    mail: Vec<Mail>,
    gone: Vec<EndGone>,
}

/// Post of two steps, by turns: what is read after one is written again after the next but one, when all have read it.
struct Exchange {
    parts: usize,
    post: [Vec<Mutex<Post>>; 2],
    states: [Vec<Mutex<Status>>; 2],
    /// By part, rows that are complete.
    rows: Vec<Mutex<HeldRows>>,
    /// The run shall end, as its observer wishes or a table cannot be written. Parts say so with their states.
    end: AtomicBool,
}

impl Exchange {
    fn new(parts: usize) -> Exchange {
        let post = || (0..parts * parts).map(|_| Mutex::default()).collect();
        let states = || (0..parts).map(|_| Mutex::default()).collect();
        let rows = (0..parts).map(|_| Mutex::default()).collect();
        Exchange { parts, post: [post(), post()], states: [states(), states()], rows, end: AtomicBool::new(false) }
    }

    /// Hands over what a part has for others, and its state.
    fn publish(&self, turn: usize, number: usize, world: &mut World) {
        // One part alone says it, or some would know before others.
        let interrupted = number == 0 && self.end.load(Ordering::Relaxed);
        let status = Status { interrupted, ..world.status() };
        *lock(&self.states[turn][number]) = status;
        let mut gone: Vec<Vec<EndGone>> = (0..self.parts).map(|_| Vec::new()).collect();
        world.take_gone().into_iter().for_each(|(to, end)| gone[to as usize].push(end));
        let Some(part) = world.core.part.as_deref_mut() else { return };
        part.earliest = Time::MAX;
        for (to, gone) in gone.into_iter().enumerate() {
            let mut post = lock(&self.post[turn][number * self.parts + to]);
            std::mem::swap(&mut post.mail, &mut part.out[to]);
            post.gone = gone;
        }
    }

    /// Takes what others have for a part.
    fn collect(&self, turn: usize, number: usize, world: &mut World) {
        for from in 0..self.parts {
            let mut post = lock(&self.post[turn][from * self.parts + number]);
            world.receive(std::mem::take(&mut post.mail));
            world.receive_ends(std::mem::take(&mut post.gone), true);
        }
    }

    /// Hands over the rows of a part that are complete, as are those of all others: of events of windows before the last, as ends that are
    /// gone elsewhere are reported one window later, and before the first record that is open.
    fn hand_over(&self, number: usize, world: &mut World, states: &[Status]) {
        let open = states.iter().map(|state| state.first_open).min().unwrap_or(Time::MAX);
        let until = world.window_before().min(Time::from_ps(open.ps().saturating_sub(1)));
        lock(&self.rows[number]).append(world.take_rows(until));
    }

    /// Takes the rows that parts have handed over.
    fn take_rows(&self) -> HeldRows {
        let mut rows = HeldRows::default();
        self.rows.iter().for_each(|part| rows.append(std::mem::take(&mut lock(part))));
        rows
    }

    fn states(&self, turn: usize) -> Vec<Status> {
        self.states[turn].iter().map(|state| *lock(state)).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Simulates a scenario in parts, and winds `whole` up, a world of it in which nothing has happened: it has all that it would have simulated
/// itself. Gives whether the observer stopped the run, or why one world has to do it; rows may have been written then.
///
/// # Errors
/// When a part cannot be built or a table cannot be written.
pub fn run_parts(
    whole: &mut World,
    scenario: &Scenario,
    division: &Division,
    order: Order,
    observer: &mut dyn Observer,
) -> Result<Result<bool, Undivided>, RunError> {
    if let Some(why) = whole_alone(scenario).or_else(|| stays_whole(whole).map(str::to_string)) {
        return Ok(Err(Undivided(why)));
    }
    let parts = division.parts;
    if parts < 2 {
        return Ok(Err(Undivided("a network that cannot be divided: one switch, or links without delay".to_string())));
    }
    let mut worlds = Vec::with_capacity(parts);
    for number in 0..parts {
        let destination = match whole.core.ledger.tables.flows.is_on() {
            true => Destination::Held(Arc::default()),
            false => Destination::Nowhere,
        };
        let mut world = setup::world(scenario, &destination)?;
        world.become_part(&division.hosts, &division.switches, number as u32, parts);
        worlds.push(world);
    }
    let stop = whole.stop;
    let exchange = Exchange::new(parts);
    let mut run = Run { exchange: &exchange, division, stop, whole, observer };
    let last = match order {
        Order::Shuffled(seed) => in_turn(&mut worlds, &mut run, seed),
        Order::Threads(threads) => on_threads(&mut worlds, &mut run, threads),
    };
    if let Some(error) = run.whole.core.failure.take() {
        return Err(error.into());
    }
    match last {
        Step::GiveUp(why) => Ok(Err(Undivided(why.to_string()))),
        Step::End { at, barrier, interrupted } => {
            let now = match at {
                Some(at) => at,
                None => worlds.iter_mut().map(|world| world.end_part(barrier)).max().unwrap_or(Time::ZERO),
            };
            for world in &mut worlds {
                world.core.now = now;
                world.wind_up_part();
                world.core.ledger.tables.settle()?;
            }
            for number in 0..parts {
                for (to, end) in worlds[number].take_gone() {
                    worlds[to as usize].receive_ends(vec![end], false);
                }
            }
            let mut rows = exchange.take_rows();
            worlds.iter_mut().for_each(|world| rows.append(world.take_rows(Time::MAX)));
            rows.write(&mut whole.core.ledger.tables)?;
            gather(whole, worlds);
            whole.add_ports_to_fingerprint();
            Ok(Ok(interrupted))
        }
        Step::Run(..) | Step::Sample(_) => unreachable!("the parts stopped before the end"),
    }
}

/// Steps between two looks at what parts have recorded and at the world outside.
const LOOK: u64 = 64;

/// What the thread that called has besides its parts.
struct Run<'a> {
    exchange: &'a Exchange,
    division: &'a Division,
    stop: Time,
    whole: &'a mut World,
    observer: &'a mut dyn Observer,
}

impl Run<'_> {
    /// Writes the rows that parts have handed over, and asks the observer; false when the run shall end.
    fn look(&mut self, states: &[Status]) -> bool {
        if let Err(error) = self.exchange.take_rows().write(&mut self.whole.core.ledger.tables) {
            self.whole.core.failure = Some(error);
            return false;
        }
        let mut totals = Totals::default();
        states.iter().for_each(|state| totals.add(&state.totals));
        let now = states.iter().map(|state| state.now).max().unwrap_or(Time::ZERO);
        let stop = (self.stop < Time::MAX).then_some(self.stop);
        let progress = Progress { now, stop, totals, flows: self.whole.traffic.total_hint() };
        self.observer.progress(&progress) == Control::Continue
    }
}

/// Why a scenario is simulated by one world, if it is.
fn whole_alone(scenario: &Scenario) -> Option<String> {
    let doc = scenario.doc();
    let because = |of: bool, why: &str| of.then(|| why.to_string());
    because(!doc.telemetry.hosts.is_empty(), "telemetry.hosts")
        .or_else(|| because(doc.telemetry.capture.is_some(), "telemetry.capture"))
        .or_else(|| because(!scenario.watched().is_empty() && !matches!(doc.telemetry.keep, Keep::All(_)), "telemetry.keep"))
        .or_else(|| because(doc.engine.max_events.is_some(), "engine.max_events"))
}

/// Why a world is not divided, if it is not.
fn stays_whole(world: &World) -> Option<&'static str> {
    let pauses = |l: &LinkId| matches!(world.core.ports[*l].owner, Owner::Switch(..));
    if world.traffic.follows_completions() {
        Some("traffic that starts after completions")
    } else if world.core.gates.keys().any(pauses) {
        Some("pauses between switches, whose deadlocks are looked for in the whole network")
    } else {
        None
    }
}

/// Does a step in one part.
fn act(world: &mut World, step: Step) {
    match step {
        Step::Run(start, end) => world.run_window(start, end),
        Step::Sample(at) => world.sample_at(at),
        Step::End { .. } | Step::GiveUp(_) => {}
    }
}

fn in_turn(worlds: &mut [World], run: &mut Run<'_>, seed: u64) -> Step {
    let mut draws = Stream::new(seed, Purpose::Ties, 1);
    let mut turn = 0;
    let exchange = run.exchange;
    worlds.iter_mut().enumerate().for_each(|(number, world)| exchange.publish(turn, number, world));
    for count in 1.. {
        let states = exchange.states(turn);
        let step = next(&states, run.division.window, run.stop);
        let mut order: Vec<usize> = (0..worlds.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, draws.below(i as u64 + 1) as usize);
        }
        for number in order {
            let world = &mut worlds[number];
            exchange.collect(turn, number, world);
            act(world, step);
            if count % LOOK == 0 {
                exchange.hand_over(number, world, &states);
            }
            exchange.publish(1 - turn, number, world);
        }
        if matches!(step, Step::End { .. } | Step::GiveUp(_)) {
            return step;
        }
        if count % LOOK == 0 && !run.look(&states) {
            exchange.end.store(true, Ordering::Relaxed);
        }
        turn = 1 - turn;
    }
    unreachable!("a run without end")
}

/// Where threads wait for each other: each after its step.
struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// A thread has panicked: nobody waits for it.
    broken: AtomicBool,
}

/// Looks before a thread that waits gives its core away, and before it sleeps.
const SPINS: u32 = 4_000;
const YIELDS: u32 = 200;

impl Barrier {
    fn new(threads: usize) -> Barrier {
        Barrier { threads, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    /// Returns when all threads have come here.
    fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut looks = 0u32;
        while self.round.load(Ordering::Acquire) == round {
            assert!(!self.broken.load(Ordering::Relaxed), "another part of the network has failed");
            looks = looks.saturating_add(1);
            if looks < SPINS {
                std::hint::spin_loop();
            } else if looks < SPINS + YIELDS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        }
    }
}

/// Breaks the barrier when its thread panics.
struct Breaks<'a>(&'a Barrier);

impl Drop for Breaks<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

fn on_threads(worlds: &mut [World], run: &mut Run<'_>, threads: usize) -> Step {
    let threads = threads.clamp(1, worlds.len());
    let barrier = Barrier::new(threads);
    let mut shares: Vec<Vec<(usize, &mut World)>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, world) in worlds.iter_mut().enumerate() {
        shares[number % threads].push((number, world));
    }
    let (exchange, division, stop) = (run.exchange, run.division, run.stop);
    let work = |mut share: Vec<(usize, &mut World)>, mut run: Option<&mut Run<'_>>| {
        let _breaks = Breaks(&barrier);
        let mut turn = 0;
        share.iter_mut().for_each(|(number, world)| exchange.publish(turn, *number, world));
        for count in 1.. {
            barrier.wait();
            let states = exchange.states(turn);
            let step = next(&states, division.window, stop);
            for (number, world) in &mut share {
                exchange.collect(turn, *number, world);
                act(world, step);
                if count % LOOK == 0 {
                    exchange.hand_over(*number, world, &states);
                }
                exchange.publish(1 - turn, *number, world);
            }
            if matches!(step, Step::End { .. } | Step::GiveUp(_)) {
                return step;
            }
            // What was handed over a while ago: the others go on meanwhile.
            if count % LOOK == LOOK / 2 && run.as_deref_mut().is_some_and(|run| !run.look(&states)) {
                exchange.end.store(true, Ordering::Relaxed);
            }
            turn = 1 - turn;
        }
        unreachable!("a run without end")
    };
    std::thread::scope(|scope| {
        let own = shares.remove(0);
        let name = |share: &[(usize, &mut World)]| {
            let parts: Vec<String> = share.iter().map(|(number, _)| number.to_string()).collect();
            std::thread::Builder::new().name(format!("part {} of the network", parts.join(", ")))
        };
        let spawn = |share: Vec<_>| name(&share).spawn_scoped(scope, || work(share, None)).expect("the system gives threads");
        let others: Vec<_> = shares.into_iter().map(spawn).collect();
        let step = work(own, Some(run));
        for other in others {
            if let Err(panic) = other.join() {
                std::panic::resume_unwind(panic);
            }
        }
        step
    })
}
