//! What became of signals of the network at an endpoint.

pub use crate::endpoint::{NotificationCounts, TrimmingCounts};
use fanin_params::{CounterDef, Counters};

/// A group of counters: its name, what it is about, and its counters with their values.
pub type SignalGroup = (&'static str, &'static str, Vec<(&'static CounterDef, u64)>);

/// Counters of both kinds of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalCounts {
    pub notifications: NotificationCounts,
    pub trimming: TrimmingCounts,
}

impl SignalCounts {
    /// All groups.
    pub fn groups(&self) -> Vec<SignalGroup> {
        fn group<C: Counters>(counts: &C) -> SignalGroup {
            (C::GROUP, C::DOC, C::defs().iter().zip(counts.values()).collect())
        }
        vec![group(&self.notifications), group(&self.trimming)]
    }

    /// Adds those of another endpoint.
    pub fn add(&mut self, other: &SignalCounts) {
        self.notifications.add(&other.notifications);
        self.trimming.add(&other.trimming);
    }
}

/// The counters of an endpoint, which take no room until the first signal.
#[derive(Clone, Debug, Default)]
pub struct SignalLog(Option<Box<SignalCounts>>);

impl SignalLog {
    /// The counters, to be counted up.
    pub fn counts(&mut self) -> &mut SignalCounts {
        self.0.get_or_insert_default()
    }

    /// The counters so far.
    pub fn so_far(&self) -> SignalCounts {
        self.0.as_deref().copied().unwrap_or_default()
    }
}
