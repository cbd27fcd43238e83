//! How a policy is tried on a scenario that was written for another: with what its authors set.
//!
//! Each policy says so beside its code, by a function that has a default. So whoever compares policies finds all of them, and their
//! settings, through the registries, and knows none by name.

use crate::join_docs;
use fanin_units::{Amount, BitRate, Bytes, Span};

/// The network that a policy is tried on, as far as settings depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ground {
    /// Of the fastest port that leads to a host.
    pub rate: BitRate,
    /// The longest round trip between two hosts on an idle network.
    pub rtt: Span,
    /// What one port of a switch may hold; `None`: without bound.
    pub buffer: Option<Amount>,
}

impl Ground {
    /// A size that is in proportion to the rate, `size` at `rate`; at least one byte.
    pub fn in_proportion(&self, size: Bytes, rate: BitRate) -> Bytes {
        let scaled = u128::from(size.get()) * u128::from(self.rate.bps()) / u128::from(rate.bps().max(1));
        Bytes(u64::try_from(scaled).unwrap_or(u64::MAX).max(1))
    }
}

/// A value of a scenario: its path, and the value as TOML has it.
pub type Setting = (&'static str, String);

/// A policy as it is tried on a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// What it takes the place of: the path of a choice, or of the tables of mechanisms.
    pub part: &'static str,
    /// Its kind or key there.
    pub kind: &'static str,
    /// What it is, from its line in the registry.
    pub doc: String,
    /// What the scenario gets, in this order: paths, and values as TOML has them. The first one is the policy itself.
    pub settings: Vec<(String, String)>,
}

impl Trial {
    /// A policy that `own`, a path and its value, switches on, with what its authors had set besides.
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
        let at = |gbps| Ground { rate: BitRate::from_gbps(gbps), rtt: Span::from_us(10), buffer: None };
        assert_eq!(at(40).in_proportion(Bytes(5_000), BitRate::from_gbps(40)), Bytes(5_000));
        assert_eq!(at(100).in_proportion(Bytes(5_000), BitRate::from_gbps(40)), Bytes(12_500));
        assert_eq!(at(0).in_proportion(Bytes(5_000), BitRate::from_gbps(40)), Bytes(1));
    }
}
