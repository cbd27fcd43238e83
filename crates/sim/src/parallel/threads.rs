//! The parts of a run on threads, or one after the other.

use super::division::Division;
use super::gather::gather;
use super::steps::{next, Step};
use crate::core::part::Mail;
use crate::core::port::Owner;
use crate::hosts::ends::EndGone;
use crate::ledger::Destination;
use crate::run::folder::RunError;
use crate::run::setup;
use crate::world::part::Status;
use crate::world::World;
use fanin_scenario::Scenario;
use fanin_units::{LinkId, Stream, Time};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

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
}

impl Exchange {
    fn new(parts: usize) -> Exchange {
        let post = || (0..parts * parts).map(|_| Mutex::default()).collect();
        let states = || (0..parts).map(|_| Mutex::default()).collect();
        Exchange { parts, post: [post(), post()], states: [states(), states()] }
    }

    /// Hands over what a part has for others, and its state.
    fn publish(&self, turn: usize, number: usize, world: &mut World) {
        let status = world.status();
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
    fn collect(&self, turn: usize, number: usize, world: &mut World, by_themselves: bool) {
        for from in 0..self.parts {
            let mut post = lock(&self.post[turn][from * self.parts + number]);
            world.receive(std::mem::take(&mut post.mail));
            world.receive_ends(std::mem::take(&mut post.gone), by_themselves);
        }
    }

    fn states(&self, turn: usize) -> Vec<Status> {
        self.states[turn].iter().map(|state| *lock(state)).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs the parts of a scenario to their end; gives the whole world, wound up but for its tables.
pub fn run_parts(
    scenario: &Scenario,
    division: &Division,
    order: Order,
) -> Result<Result<World, Undivided>, RunError> {
    if let Some(why) = whole_alone(scenario) {
        return Ok(Err(Undivided(why)));
    }
    let parts = division.parts;
    let mut worlds = Vec::with_capacity(parts);
    for number in 0..parts {
        let mut world = setup::world(scenario, &Destination::Nowhere)?;
        if let Some(why) = stays_whole(&world) {
            return Ok(Err(Undivided(why.to_string())));
        }
        world.become_part(&division.hosts, &division.switches, number as u32, parts);
        worlds.push(world);
    }
    let stop = worlds[0].stop;
    let exchange = Exchange::new(parts);
    let last = match order {
        Order::Shuffled(seed) => in_turn(&mut worlds, &exchange, division, stop, seed),
        Order::Threads(threads) => on_threads(&mut worlds, &exchange, division, stop, threads),
    };
    match last {
        Step::GiveUp(why) => Ok(Err(Undivided(why.to_string()))),
        Step::End { at, barrier } => {
            let mut now = at.unwrap_or(Time::ZERO);
            if at.is_none() {
                now = worlds.iter_mut().map(|world| world.end_part(barrier)).max().unwrap_or(Time::ZERO);
            }
            for world in &mut worlds {
                world.core.now = now;
                world.wind_up_part();
            }
            for number in 0..parts {
                let gone = worlds[number].take_gone();
                for (to, end) in gone {
                    worlds[to as usize].receive_ends(vec![end], false);
                }
            }
            let mut world = gather(worlds);
            world.add_ports_to_fingerprint();
            Ok(Ok(world))
        }
        Step::Run(..) | Step::Sample(_) => unreachable!("the parts stopped before the end"),
    }
}

/// Why a scenario is simulated by one world, if it is.
fn whole_alone(scenario: &Scenario) -> Option<String> {
    let doc = scenario.doc();
    let because = |of: bool, why: &str| of.then(|| why.to_string());
    because(!doc.telemetry.hosts.is_empty(), "telemetry.hosts")
        .or_else(|| because(doc.telemetry.capture.is_some(), "telemetry.capture"))
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

fn in_turn(worlds: &mut [World], exchange: &Exchange, division: &Division, stop: Time, seed: u64) -> Step {
    let mut draws = Stream::new(seed, fanin_units::Purpose::Ties, 1);
    let mut turn = 0;
    worlds.iter_mut().enumerate().for_each(|(number, world)| exchange.publish(turn, number, world));
    loop {
        let step = next(&exchange.states(turn), division.window, stop);
        let mut order: Vec<usize> = (0..worlds.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, draws.below(i as u64 + 1) as usize);
        }
        if matches!(step, Step::End { .. } | Step::GiveUp(_)) {
            order.iter().for_each(|number| exchange.collect(turn, *number, &mut worlds[*number], true));
            return step;
        }
        for number in order {
            let world = &mut worlds[number];
            exchange.collect(turn, number, world, true);
            act(world, step);
            exchange.publish(1 - turn, number, world);
        }
        turn = 1 - turn;
    }
}

/// Where threads wait for each other: each after its step.
struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
}

/// Looks before a thread that waits gives its core away, and before it sleeps.
const SPINS: u32 = 4_000;
const YIELDS: u32 = 200;

impl Barrier {
    fn new(threads: usize) -> Barrier {
        Barrier { threads, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0) }
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

fn on_threads(worlds: &mut [World], exchange: &Exchange, division: &Division, stop: Time, threads: usize) -> Step {
    let threads = threads.clamp(1, worlds.len());
    let barrier = Barrier::new(threads);
    let mut shares: Vec<Vec<(usize, &mut World)>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, world) in worlds.iter_mut().enumerate() {
        shares[number % threads].push((number, world));
    }
    let work = |mut share: Vec<(usize, &mut World)>| {
        let mut turn = 0;
        share.iter_mut().for_each(|(number, world)| exchange.publish(turn, *number, world));
        loop {
            barrier.wait();
            let step = next(&exchange.states(turn), division.window, stop);
            for (number, world) in &mut share {
                exchange.collect(turn, *number, world, true);
                act(world, step);
            }
            if matches!(step, Step::End { .. } | Step::GiveUp(_)) {
                return step;
            }
            turn = 1 - turn;
            share.iter_mut().for_each(|(number, world)| exchange.publish(turn, *number, world));
        }
    };
    std::thread::scope(|scope| {
        let own = shares.remove(0);
        let others: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| work(share))).collect();
        let step = work(own);
        for other in others {
            if let Err(panic) = other.join() {
                std::panic::resume_unwind(panic);
            }
        }
        step
    })
}
