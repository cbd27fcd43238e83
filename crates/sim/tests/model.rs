//! A model check of how the threads of one run meet: loom runs barrier, border and gate, from the same source files as the simulator, in every
//! order of events that the memory model allows (C11; [`PREEMPTIONS`] bounds how often a thread is interrupted where it need not be). Faults
//! that are put into the primitives are found, so that the check can fail.
//!
//! `make model` tries more.

// Its fewest spins are none here.
#[allow(dead_code, clippy::unnecessary_min_or_max)]
#[path = "../src/run/parts/barrier.rs"]
mod barrier;
#[path = "../src/run/parts/border.rs"]
mod border;
#[path = "../src/run/parts/gate.rs"]
mod gate;

use barrier::{Barrier, Spins};
use border::Border;
use gate::Gate;
use loom::thread::spawn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use sync::Fault;

/// Interruptions of each execution at most, where a thread could go on, and one less behind locks; `FANIN_MODEL` sets another number.
const PREEMPTIONS: usize = 2;

/// Primitives of loom in the place of the system's, with a fault if a test asks for one.
mod sync {
    use std::cell::Cell;
    use std::sync::LockResult;

    pub use loom::hint::spin_loop;
    pub use loom::sync::MutexGuard;
    pub use std::sync::atomic::Ordering;
    pub use std::sync::PoisonError;

    /// At most one look before a thread sleeps, at times none.
    pub const MOST_SPINS: u32 = 1;
    pub const FEWEST_SPINS: u32 = 0;

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Fault {
        None,
        /// No fault, but each atomic behind a lock: loom 0.7.3 forgets who has read a value when another reads it, and misses what happens if
        /// that one comes first and writes. In exchange nothing stale is read.
        Ordered,
        /// Release is Relaxed.
        Stores,
        /// Acquire is Relaxed.
        Loads,
        /// AcqRel is Relaxed.
        Adds,
        /// No fence.
        Fences,
        /// Nobody is woken, or one of all.
        Sleeps,
        WakesOne,
    }

    thread_local! {
        /// The fault of the model that this thread runs, with all threads of the model.
        pub static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
    }

    fn fault(fault: Fault) -> bool {
        FAULT.get() == fault
    }

    fn order(order: Ordering) -> Ordering {
        match (FAULT.get(), order) {
            (Fault::Stores, Ordering::Release) | (Fault::Loads, Ordering::Acquire) | (Fault::Adds, Ordering::AcqRel) => {
                Ordering::Relaxed
            }
            _ => order,
        }
    }

    macro_rules! atomic {
        ($name:ident, $value:ty) => {
            pub struct $name(loom::sync::atomic::$name, loom::sync::Mutex<()>);

            impl Default for $name {
                fn default() -> $name {
                    $name::new(<$value>::default())
                }
            }

            #[allow(dead_code)]
            impl $name {
                pub fn new(value: $value) -> $name {
                    $name(loom::sync::atomic::$name::new(value), loom::sync::Mutex::new(()))
                }

                fn hold(&self) -> Option<MutexGuard<'_, ()>> {
                    fault(Fault::Ordered).then(|| self.1.lock().expect("no panic"))
                }

                pub fn load(&self, at: Ordering) -> $value {
                    let _held = self.hold();
                    self.0.load(order(at))
                }

                pub fn store(&self, value: $value, at: Ordering) {
                    let _held = self.hold();
                    self.0.store(value, order(at));
                }
            }
        };
    }

    atomic!(AtomicBool, bool);
    atomic!(AtomicU64, u64);
    atomic!(AtomicUsize, usize);

    impl AtomicUsize {
        pub fn fetch_add(&self, value: usize, at: Ordering) -> usize {
            let _held = self.hold();
            self.0.fetch_add(value, order(at))
        }

        pub fn fetch_sub(&self, value: usize, at: Ordering) -> usize {
            let _held = self.hold();
            self.0.fetch_sub(value, order(at))
        }
    }

    pub fn fence(at: Ordering) {
        if !fault(Fault::Fences) {
            loom::sync::atomic::fence(at);
        }
    }

    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(T::default()))
        }
    }

    impl<T> Mutex<T> {
        pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            self.0.lock()
        }
    }

    #[derive(Default)]
    pub struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
            self.0.wait(guard)
        }

        pub fn notify_all(&self) {
            match FAULT.get() {
                Fault::Sleeps => {}
                Fault::WakesOne => self.0.notify_one(),
                _ => self.0.notify_all(),
            }
        }
    }
}

/// Tries every execution of a model whose primitives have a fault, and says how many there are; without one also behind locks.
fn check(about: &str, fault: Fault, model: impl Fn() + Send + Sync + Copy + 'static) {
    let asked = std::env::var("FANIN_MODEL").ok().and_then(|n| n.parse().ok()).unwrap_or(PREEMPTIONS);
    try_all(about, (fault, asked), model);
    if fault == Fault::None {
        try_all(about, (Fault::Ordered, asked - 1), model);
    }
}

fn try_all(about: &str, (fault, preemptions): (Fault, usize), model: impl Fn() + Send + Sync + 'static) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    let mut loom = loom::model::Builder::new();
    loom.preemption_bound = Some(preemptions);
    loom.max_branches = 100_000;
    sync::FAULT.set(fault);
    loom.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let executions = executions.load(Ordering::Relaxed);
    println!("{about}, {fault:?}: {executions} executions");
    assert!(executions > 1, "{about}: {executions} executions");
}

/// A part's state before a step, and its mail for another: none every other time.
fn state(step: u64, from: usize) -> u64 {
    100 * step + from as u64
}

fn has_mail(step: u64, from: usize, to: usize) -> bool {
    from != to && (step + from as u64) % 2 == 0
}

/// One part of the network in so many steps: finds what all others have written for each. `turns`: one instead of two is too early.
fn part(number: usize, steps: u64, turns: usize, barrier: &Barrier, border: &Border<Vec<u64>, 1>) {
    let publish = |turn: usize, step: u64| {
        let mut bits = 0;
        for to in (0..border.parts()).filter(|to| has_mail(step, number, *to)) {
            border.mail(turn % turns, number, to).push(state(step, number));
            bits |= 1 << to;
        }
        border.write(turn % turns, number, [state(step, number)], bits);
    };
    publish(0, 1);
    barrier.steps(|turn, step| {
        for (from, [word]) in border.read(turn % turns).enumerate() {
            assert_eq!(word, state(step, from), "part {from} at step {step}");
        }
        for from in 0..border.parts() {
            let expected = has_mail(step, from, number);
            assert_eq!(border.has_mail(turn % turns, from, number), expected, "mail of {from} at step {step}");
            if expected {
                let mail = std::mem::take(&mut *border.mail(turn % turns, from, number));
                assert_eq!(mail, [state(step, from)], "mail of {from} at step {step}");
            }
        }
        publish(1 - turn, step + 1);
        (step == steps).then_some(())
    });
}

/// So many parts on threads of their own.
fn windows(parts: usize, steps: u64, turns: usize) {
    let shared = Arc::new((Barrier::new(parts), Border::new(parts)));
    let others: Vec<_> = (1..parts)
        .map(|number| {
            let shared = shared.clone();
            spawn(move || part(number, steps, turns, &shared.0, &shared.1))
        })
        .collect();
    part(0, steps, turns, &shared.0, &shared.1);
    others.into_iter().for_each(|other| other.join().expect("no panic"));
}

#[test]
fn all_that_was_written_before_a_step_is_read_in_it() {
    check("two parts, three steps", Fault::None, || windows(2, 3, 2));
    check("three parts, a step", Fault::None, || windows(3, 1, 2));
}

#[test]
#[should_panic(expected = "at step")]
fn a_release_that_is_none_is_found() {
    check("no release", Fault::Stores, || windows(2, 2, 2));
}

#[test]
#[should_panic(expected = "at step")]
fn an_acquire_that_is_none_is_found() {
    check("no acquire", Fault::Loads, || windows(2, 2, 2));
}

#[test]
#[should_panic(expected = "at step")]
fn arrivals_that_order_nothing_are_found() {
    check("relaxed arrivals", Fault::Adds, || windows(2, 2, 2));
}

#[test]
#[should_panic(expected = "at step")]
fn boards_that_are_written_again_too_early_are_found() {
    check("one turn", Fault::None, || windows(2, 2, 1));
}

#[test]
#[should_panic(expected = "deadlock")]
fn fences_that_are_missing_are_found() {
    check("no fences", Fault::Fences, || windows(2, 2, 2));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_is_missing_is_found() {
    check("no wake-up", Fault::Sleeps, || windows(2, 2, 2));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_of_one_among_three_is_found() {
    check("one is woken", Fault::WakesOne, || windows(3, 1, 2));
}

/// Ctrl-C at any time: the first part says so with its state, and all leave in one step. `asks`: each part asks itself.
fn interrupted(asks: bool) {
    let shared = Arc::new((Barrier::new(2), Border::<Vec<u64>, 1>::new(2), loom::sync::atomic::AtomicBool::new(false)));
    let work = |number: usize| {
        let shared = shared.clone();
        move || {
            let (barrier, border, end) = &*shared;
            let asked = || u64::from((asks || number == 0) && end.load(Ordering::Relaxed));
            border.write(0, number, [asked()], 0);
            barrier.steps(|turn, step| {
                let ends = if asks { asked() > 0 } else { border.read(turn).any(|[word]| word > 0) };
                border.write(1 - turn, number, [asked()], 0);
                (ends || step == 3).then_some(step)
            })
        }
    };
    let other = spawn(work(1));
    let signal = spawn({
        let shared = shared.clone();
        move || shared.2.store(true, Ordering::Relaxed)
    });
    let last = work(0)();
    assert_eq!(other.join().expect("no panic"), last, "both leave in one step");
    signal.join().expect("no panic");
}

#[test]
fn all_leave_in_one_step_when_a_run_is_interrupted() {
    check("Ctrl-C", Fault::None, || interrupted(false));
}

#[test]
#[should_panic]
fn parts_that_ask_for_themselves_are_found() {
    check("Ctrl-C, each for itself", Fault::None, || interrupted(true));
}

/// One thread fails instead of coming for the second time: nobody waits for it, whether spinning, asleep or on the way.
fn failing(threads: usize) {
    let barrier = Arc::new(Barrier::new(threads));
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let barrier = barrier.clone();
            spawn(move || {
                let mut spins = Spins::default();
                barrier.passes(&mut spins) && barrier.passes(&mut spins)
            })
        })
        .collect();
    // The others may see that it has failed before they see that all have met.
    assert!(barrier.passes(&mut Spins::default()));
    barrier.fall();
    assert!(others.into_iter().all(|other| !other.join().expect("no panic")), "the second meeting has taken place");
}

#[test]
fn nobody_waits_for_a_thread_that_fails() {
    check("a failure among two", Fault::None, || failing(2));
    check("a failure among three", Fault::None, || failing(3));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_failure_that_wakes_nobody_is_found() {
    check("a failure, no wake-up", Fault::Sleeps, || failing(2));
}

fn at_the_gate(go: bool) {
    let gate = Arc::new(Gate::default());
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            spawn({
                let gate = gate.clone();
                move || gate.wait()
            })
        })
        .collect();
    gate.open(go);
    assert!(waiting.into_iter().all(|thread| thread.join().expect("no panic") == go));
}

#[test]
fn all_that_wait_at_a_gate_go_or_all_go_home() {
    check("a gate", Fault::None, || at_the_gate(true));
    check("a gate, home", Fault::None, || at_the_gate(false));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_gate_that_wakes_one_is_found() {
    check("a gate, one is woken", Fault::WakesOne, || at_the_gate(true));
}
