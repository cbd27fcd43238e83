//! A barrier at which threads spin, then sleep.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Looks before a thread that waits goes to sleep, at most: some hundred microseconds, many times what it takes to be woken; and at least.
const LOOKS: u32 = 8_000;
const FEWEST: u32 = 30;
/// Waits in a row in which a thread has looked in vain, after which it looks as often as it may once more.
const IN_VAIN: u32 = 256;

/// A value with cache lines of its own: two, as processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

/// Patience of a thread at a barrier: it looks more often where that has paid, and less often where another has no core to come on, as on a
/// machine with other work.
pub struct Patience {
    looks: u32,
    in_vain: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { looks: LOOKS, in_vain: 0 }
    }
}

impl Patience {
    fn paid(&mut self) {
        (self.looks, self.in_vain) = (LOOKS.min(2 * self.looks), 0);
    }

    fn in_vain(&mut self) {
        self.in_vain += 1;
        self.looks = FEWEST.max(self.looks / 2);
        if self.in_vain % IN_VAIN == 0 {
            self.looks = LOOKS;
        }
    }
}

/// Threads wait here until all have come.
pub struct Barrier {
    threads: usize,
    /// There are fewer cores than threads: nobody looks, as the others need the core.
    crowded: bool,
    arrived: Apart<AtomicUsize>,
    round: Apart<AtomicUsize>,
    /// Number of threads that sleep or are about to.
    asleep: Apart<AtomicUsize>,
    bed: Mutex<()>,
    wakes: Condvar,
    /// A thread has panicked: nobody waits for it.
    broken: AtomicBool,
}

impl Barrier {
    /// A barrier for so many threads on so many cores.
    pub fn new(threads: usize, cores: usize) -> Barrier {
        Barrier {
            threads,
            crowded: threads > cores,
            arrived: Apart::default(),
            round: Apart::default(),
            asleep: Apart::default(),
            bed: Mutex::default(),
            wakes: Condvar::default(),
            broken: AtomicBool::new(false),
        }
    }

    /// Returns when all threads have come here; what each has written before is seen by all then.
    ///
    /// # Panics
    /// When another thread has.
    pub fn wait(&self, patience: &mut Patience) {
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
        for _ in 0..if self.crowded { 0 } else { patience.looks } {
            if self.is_over(before) {
                return patience.paid();
            }
            std::hint::spin_loop();
        }
        patience.in_vain();
        self.asleep.0.fetch_add(1, Ordering::SeqCst);
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_over(before) {
            bed = self.wakes.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        drop(bed);
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
        drop(self.bed.lock().unwrap_or_else(PoisonError::into_inner));
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
        // On as many cores as threads, and on fewer: then they sleep.
        for (threads, cores) in [(1, 1), (2, 2), (3, 2), (5, 8), (5, 1)] {
            let (barrier, count) = (Barrier::new(threads, cores), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let mut patience = Patience::default();
                        for round in 1..=ROUNDS {
                            count.fetch_add(1, Ordering::Relaxed);
                            barrier.wait(&mut patience);
                            assert_eq!(count.load(Ordering::Relaxed), round * threads);
                            barrier.wait(&mut patience);
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn nobody_waits_for_a_thread_that_has_panicked() {
        for cores in [1, 2] {
            let barrier = Barrier::new(2, cores);
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| barrier.wait(&mut Patience::default()));
                let fails = scope.spawn(|| {
                    let _breaks = Breaks(&barrier);
                    // By then the other one sleeps, where it does.
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    panic!("on purpose");
                });
                assert!(fails.join().is_err() && waits.join().is_err());
            });
        }
    }
}
