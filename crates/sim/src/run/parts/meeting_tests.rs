//! Threads that meet, on this machine's cores; `tests/model.rs` tries every order of events.

use super::barrier::{Barrier, Breaks};
use super::gate::Gate;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn nobody_passes_before_all_have_come() {
    const ROUNDS: usize = 500;
    // The last are more threads than many a machine has cores.
    for threads in [1, 2, 3, 8] {
        let (barrier, count) = (Barrier::new(threads), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    count.fetch_add(1, Ordering::Relaxed);
                    barrier.steps(|turn, step| {
                        // Every other time nobody counts, so that each sees what all have.
                        if turn == 1 {
                            count.fetch_add(1, Ordering::Relaxed);
                            return None;
                        }
                        assert_eq!(count.load(Ordering::Relaxed), step.div_ceil(2) as usize * threads);
                        (step > 2 * ROUNDS as u64).then_some(())
                    });
                });
            }
        });
    }
}

#[test]
fn nobody_waits_for_a_thread_that_has_panicked() {
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| barrier.steps(|_, _| None::<()>));
        let fails = scope.spawn(|| {
            let _breaks = Breaks(&barrier);
            // By then the other one sleeps.
            std::thread::sleep(std::time::Duration::from_millis(20));
            panic!("on purpose");
        });
        assert!(fails.join().is_err() && waits.join().is_err());
    });
}

#[test]
fn all_that_wait_at_a_gate_go_or_all_go_home() {
    for go in [true, false] {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| gate.wait())).collect();
            gate.open(go);
            assert!(waiting.into_iter().all(|thread| thread.join().is_ok_and(|said| said == go)));
        });
    }
}
