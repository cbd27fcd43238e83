//! Counters of the network's signals at an endpoint.

pub use crate::endpoint::{NotificationCounts, TrimmingCounts};
use fanin_params::{CounterDef, Counters};

/// A group of counters: its name, its description, and its counters with their values.
pub type SignalGroup = (&'static str, &'static str, Vec<(&'static CounterDef, u64)>);

/// Counters of drop notifications and of trimmed packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalCounts {
    pub notifications: NotificationCounts,
    pub trimming: TrimmingCounts,
}

impl SignalCounts {
    /// All groups of counters.
    pub fn groups(&self) -> Vec<SignalGroup> {
        fn group<C: Counters>(counts: &C) -> SignalGroup {
            (C::GROUP, C::DOC, C::defs().iter().zip(counts.values()).collect())
        }
        vec![group(&self.notifications), group(&self.trimming)]
    }

    /// Adds the counts of another endpoint.
    pub fn add(&mut self, other: &SignalCounts) {
        self.notifications.add(&other.notifications);
        self.trimming.add(&other.trimming);
    }
}

/// Counters of an endpoint, which take no memory until the first signal.
#[derive(Clone, Debug, Default)]
pub struct SignalLog(Option<Box<SignalCounts>>);

impl SignalLog {
    /// Mutable access to the counters, allocated at the first call.
    pub fn counts(&mut self) -> &mut SignalCounts {
        self.0.get_or_insert_default()
    }

    /// Present values of the counters.
    pub fn so_far(&self) -> SignalCounts {
        self.0.as_deref().copied().unwrap_or_default()
    }
}
