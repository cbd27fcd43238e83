//! libFuzzer around one of the targets: `FUZZ_TARGET=capture fuzz CORPUS…`; see `make fuzz`.
#![no_main]

use fanin_fuzz::{target, Target, TARGETS};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Ends the process where more is asked for at once than the target may.
struct Bounded;

static MOST: AtomicUsize = AtomicUsize::new(usize::MAX);

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MOST.load(Ordering::Relaxed) {
            MOST.store(usize::MAX, Ordering::Relaxed);
            eprintln!("{} bytes at once", layout.size());
            std::process::abort();
        }
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        System.dealloc(pointer, layout);
    }
}

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

static CHOSEN: OnceLock<&'static Target> = OnceLock::new();

fn choose() {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some(chosen) = target(&name) else {
        eprintln!("FUZZ_TARGET={name} is none of: {}", TARGETS.map(|target| target.name).join(", "));
        std::process::exit(2);
    };
    let _ = CHOSEN.set(chosen);
    // The readers of Parquet catch panics of the library that they use; libFuzzer's hook would not let them.
    std::panic::set_hook(Box::new(|_| {}));
}

libfuzzer_sys::fuzz_target!(init: choose(), |data: &[u8]| {
    let chosen = CHOSEN.get().expect("a target");
    MOST.store(chosen.allocation, Ordering::Relaxed);
    let outcome = std::panic::catch_unwind(|| (chosen.run)(data));
    MOST.store(usize::MAX, Ordering::Relaxed);
    if outcome.is_err() {
        // Again, so that it says what and where.
        let _ = std::panic::take_hook();
        (chosen.run)(data);
    }
});
