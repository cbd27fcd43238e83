//! A barrier at which threads spin, then sleep.

use super::sync::{fence, spin_loop, AtomicBool, AtomicUsize, Condvar, Mutex, Ordering, PoisonError, FEWEST_SPINS, MOST_SPINS};

/// Waits in a row in which a thread has spun and slept all the same, after which it spins as long as it may once more.
const RETRIED_AFTER: u32 = 256;

/// A value with cache lines of its own: two, as processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

/// Spins of a thread at a barrier: more where that has paid, and fewer where another has no core to come on, as with more threads than cores
/// and on a machine with other work.
pub struct Spins {
    most: u32,
    /// Waits in a row that ended asleep.
    failed: u32,
}

impl Default for Spins {
    fn default() -> Spins {
        Spins { most: MOST_SPINS, failed: 0 }
    }
}

impl Spins {
    fn paid(&mut self) {
        (self.most, self.failed) = (MOST_SPINS.min(2 * self.most), 0);
    }

    fn failed(&mut self) {
        self.failed += 1;
        self.most = FEWEST_SPINS.max(self.most / 2);
        if self.failed % RETRIED_AFTER == 0 {
            self.most = MOST_SPINS;
        }
    }
}

/// Threads wait here until all have come.
pub struct Barrier {
    threads: usize,
    arrived: Apart<AtomicUsize>,
    round: Apart<AtomicUsize>,
    /// Number of threads that sleep or are about to.
    asleep: Apart<AtomicUsize>,
    mutex: Mutex<()>,
    wakes: Condvar,
    /// A thread has panicked: nobody waits for it.
    broken: AtomicBool,
}

impl Barrier {
    /// A barrier for so many threads.
    pub fn new(threads: usize) -> Barrier {
        Barrier {
            threads,
            arrived: Apart::default(),
            round: Apart::default(),
            asleep: Apart::default(),
            mutex: Mutex::default(),
            wakes: Condvar::default(),
            broken: AtomicBool::new(false),
        }
    }

    /// Does a step after each meeting of all threads until one is the last, which gives something. Steps count from one, and alternate between
    /// two turns: what a step of one turn writes is read in the next step, of the other.
    ///
    /// # Panics
    /// When another thread has.
    pub fn steps<T>(&self, mut step: impl FnMut(usize, u64) -> Option<T>) -> T {
        let mut spins = Spins::default();
        for count in 1u64.. {
            assert!(self.passes(&mut spins), "another part of the network has failed");
            if let Some(last) = step(turn(count), count) {
                return last;
            }
        }
        unreachable!("steps without end")
    }

    /// Returns when all threads have come here; what each has written before is seen by all then. False: one of them never will.
    pub fn passes(&self, spins: &mut Spins) -> bool {
        let before = self.round.0.load(Ordering::Acquire);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.0.store(0, Ordering::Relaxed);
            self.round.0.store(before.wrapping_add(1), Ordering::Release);
            // Who is not counted here has a fence behind this one: it looks at the round once more, and finds that it is another.
            fence(Ordering::SeqCst);
            if self.asleep.0.load(Ordering::Relaxed) > 0 {
                self.wake();
            }
            return true;
        }
        for _ in 0..spins.most {
            if let Some(over) = self.is_over(before) {
                spins.paid();
                return over;
            }
            spin_loop();
        }
        spins.failed();
        self.asleep.0.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let over = loop {
            match self.is_over(before) {
                Some(over) => break over,
                None => guard = self.wakes.wait(guard).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(guard);
        self.asleep.0.fetch_sub(1, Ordering::Relaxed);
        over
    }

    /// True when the round has ended for which a thread waits, and false if it never will; else none.
    #[inline]
    fn is_over(&self, round: usize) -> Option<bool> {
        if self.round.0.load(Ordering::Acquire) != round {
            return Some(true);
        }
        self.broken.load(Ordering::Relaxed).then_some(false)
    }

    /// Sends all home that wait here or will.
    #[cold]
    pub fn fall(&self) {
        self.broken.store(true, Ordering::Relaxed);
        self.wake();
    }

    #[cold]
    fn wake(&self) {
        drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        self.wakes.notify_all();
    }
}

/// The turn of a step, of which the first reads what was written with turn 0 before it.
pub fn turn(count: u64) -> usize {
    (count % 2) as usize ^ 1
}

/// Breaks the barrier when its thread panics.
pub struct Breaks<'a>(pub &'a Barrier);

impl Drop for Breaks<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fall();
        }
    }
}
