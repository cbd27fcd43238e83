//! Places of rows in a table to which several worlds contribute: by the event that has written each.

use std::sync::atomic::{AtomicU64, Ordering};

/// Place of an event in the order of a run: its time, its kind, and what orders events of the same time and kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Time \[ps\].
    pub time: u64,
    pub kind: u64,
    pub place: [u64; 2],
}

/// The event that is handled now, as the tables of a world know it. One thread writes and reads it.
#[derive(Debug, Default)]
pub struct EventClock([AtomicU64; 4]);

impl EventClock {
    /// Another event is handled from now on.
    #[inline(always)]
    pub fn set(&self, Moment { time, kind, place }: Moment) {
        // One by one: each event pays for it.
        let [at, of, first, second] = &self.0;
        at.store(time, Ordering::Relaxed);
        of.store(kind, Ordering::Relaxed);
        first.store(place[0], Ordering::Relaxed);
        second.store(place[1], Ordering::Relaxed);
    }

    /// The event that is handled now.
    pub fn now(&self) -> Moment {
        let [time, kind, a, b] = [0, 1, 2, 3].map(|i: usize| self.0[i].load(Ordering::Relaxed));
        Moment { time, kind, place: [a, b] }
    }
}
