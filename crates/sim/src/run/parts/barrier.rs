//! A barrier at which threads spin, then sleep.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Spins before a thread that waits goes to sleep, at most: some hundred microseconds, many times what it takes to be woken; and at least.
const MOST_SPINS: u32 = 8_000;
const FEWEST_SPINS: u32 = 30;
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

    /// Returns when all threads have come here; what each has written before is seen by all then.
    ///
    /// # Panics
    /// When another thread has.
    pub fn wait(&self, spins: &mut Spins) {
        let before = self.round.0.load(Ordering::Acquire);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.0.store(0, Ordering::Relaxed);
            self.round.0.store(before.wrapping_add(1), Ordering::SeqCst);
            // Who is not counted here looks at the round once more, and finds that it is another.
            if self.asleep.0.load(Ordering::SeqCst) > 0 {
                self.wake();
            }
            return;
        }
        for _ in 0..spins.most {
            if self.is_over(before) {
                return spins.paid();
            }
            std::hint::spin_loop();
        }
        spins.failed();
        self.asleep.0.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_over(before) {
            guard = self.wakes.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        drop(guard);
        self.asleep.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// True where the round has ended for which a thread waits.
    #[inline]
    fn is_over(&self, round: usize) -> bool {
        let over = self.round.0.load(Ordering::SeqCst) != round;
        assert!(over || !self.broken.load(Ordering::Relaxed), "another part of the network has failed");
        over
    }

    #[cold]
    fn wake(&self) {
        drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        self.wakes.notify_all();
    }
}

/// Breaks the barrier when its thread panics.
pub struct Breaks<'a>(pub &'a Barrier);

impl Drop for Breaks<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_before_all_have_come() {
        const ROUNDS: usize = 500;
        // The last are more threads than many a machine has cores.
        for threads in [1, 2, 3, 8] {
            let (barrier, count) = (Barrier::new(threads), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let mut spins = Spins::default();
                        for round in 1..=ROUNDS {
                            count.fetch_add(1, Ordering::Relaxed);
                            barrier.wait(&mut spins);
                            assert_eq!(count.load(Ordering::Relaxed), round * threads);
                            barrier.wait(&mut spins);
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn nobody_waits_for_a_thread_that_has_panicked() {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait(&mut Spins::default()));
            let fails = scope.spawn(|| {
                let _breaks = Breaks(&barrier);
                // By then the other one sleeps.
                std::thread::sleep(std::time::Duration::from_millis(20));
                panic!("on purpose");
            });
            assert!(fails.join().is_err() && waits.join().is_err());
        });
    }
}
