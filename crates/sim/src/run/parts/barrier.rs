//! A barrier at which threads spin, then yield, then sleep.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Looks before a thread that waits gives its core away, and before it sleeps: cores may be shared.
const SPINS: u32 = 4_000;
const YIELDS: u32 = 200;

/// A value with cache lines of its own: two, as processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

/// Threads wait here until all have come.
pub struct Barrier {
    threads: usize,
    arrived: Apart<AtomicUsize>,
    round: Apart<AtomicUsize>,
    /// A thread has panicked: nobody waits for it.
    broken: AtomicBool,
}

impl Barrier {
    pub fn new(threads: usize) -> Barrier {
        Barrier { threads, arrived: Apart::default(), round: Apart::default(), broken: AtomicBool::new(false) }
    }

    /// Returns when all threads have come here; what each has written before is seen by all then.
    ///
    /// # Panics
    /// When another thread has.
    pub fn wait(&self) {
        let (arrived, round) = (&self.arrived.0, &self.round.0);
        let before = round.load(Ordering::Acquire);
        if arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            arrived.store(0, Ordering::Relaxed);
            round.store(before.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut looks = 0u32;
        while round.load(Ordering::Acquire) == before {
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
pub struct Breaks<'a>(pub &'a Barrier);

impl Drop for Breaks<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_before_all_have_come() {
        const ROUNDS: usize = 500;
        for threads in [1, 2, 3, 5] {
            let (barrier, count) = (Barrier::new(threads), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for round in 1..=ROUNDS {
                            count.fetch_add(1, Ordering::Relaxed);
                            barrier.wait();
                            assert_eq!(count.load(Ordering::Relaxed), round * threads);
                            barrier.wait();
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
            let fails = scope.spawn(|| {
                let _breaks = Breaks(&barrier);
                panic!("on purpose");
            });
            let waits = scope.spawn(|| barrier.wait());
            assert!(fails.join().is_err() && waits.join().is_err());
        });
    }
}
