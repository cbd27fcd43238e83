//! Primitives by which threads meet, and how long they spin. `tests/model.rs` puts others in their place, and tries every order of events.

pub use std::hint::spin_loop;
pub use std::sync::atomic::{fence, AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Spins before a thread that waits goes to sleep, at most: some hundred microseconds, many times what it takes to be woken; and at least.
pub const MOST_SPINS: u32 = 8_000;
pub const FEWEST_SPINS: u32 = 30;
