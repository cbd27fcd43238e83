//! Trials: a policy applied to a scenario written for another one, with its authors' settings.
//!
//! Each policy declares its trial settings beside its code, by a function that has a default. Comparisons find all policies
//! and their settings through the registries and name none of them.

use crate::join_docs;
use fanin_units::{Amount, BitRate, Bytes, Span};

/// Properties of the network that a trial's settings may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ground {
    /// Rate of the fastest port that leads to a host.
    pub rate: BitRate,
    /// Longest round-trip time between two hosts on an idle network.
    pub rtt: Span,
    /// Buffer that one switch port may occupy; `None` if unbounded.
    pub buffer: Option<Amount>,
    /// Queue from which ports mark every packet; `None` where they mark none, or senders do not act on marks.
    pub marks: Option<Amount>,
}

impl Ground {
    /// `size` scaled by the ratio of this network's rate to `rate`, at least one byte: a setting published for another line
    /// rate.
    pub fn in_proportion(&self, size: Bytes, rate: BitRate) -> Bytes {
        let scaled = u128::from(size.get()) * u128::from(self.rate.bps()) / u128::from(rate.bps().max(1));
        Bytes(u64::try_from(scaled).unwrap_or(u64::MAX).max(1))
    }
}

/// One setting of a scenario: its path, and its value in TOML syntax.
pub type Setting = (&'static str, String);

/// A policy with the settings that switch it on in a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Scenario path of the choice that the policy replaces, or of the table of mechanisms.
    pub part: &'static str,
    /// The policy's `kind` or key within [`Trial::part`].
    pub kind: &'static str,
    /// The policy's description from the registry.
    pub doc: String,
    /// Settings to apply in this order, as paths and TOML values; the first one selects the policy itself.
    pub settings: Vec<(String, String)>,
}

impl Trial {
    /// A trial that applies the setting `own`, a path and a value, then the policy authors' further settings.
    pub fn new(part: &'static str, kind: &'static str, docs: &[&str], own: (String, String), authors: Vec<Setting>) -> Self {
        let others = authors.into_iter().map(|(path, value)| (path.to_string(), value));
        Trial { part, kind, doc: join_docs(docs), settings: std::iter::once(own).chain(others).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_proportion_to_the_rate() {
        let at = |gbps| Ground { rate: BitRate::from_gbps(gbps), rtt: Span::from_us(10), buffer: None, marks: None };
        assert_eq!(at(40).in_proportion(Bytes(5_000), BitRate::from_gbps(40)), Bytes(5_000));
        assert_eq!(at(100).in_proportion(Bytes(5_000), BitRate::from_gbps(40)), Bytes(12_500));
        assert_eq!(at(0).in_proportion(Bytes(5_000), BitRate::from_gbps(40)), Bytes(1));
    }
}
