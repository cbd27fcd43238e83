//! Per-flow equal-cost multipath. Source: RFC 2992 §1 (hash of the flow, so that a flow keeps its path).

use super::hash::{mix32, reduce};
use super::{Chooser, Links};
use fanin_packet::Envelope;
use fanin_params::params;
use fanin_units::{Bytes, HostId, Stream, Time};

params! {
    /// ECMP, without parameters: its hash is seeded per switch from the run's seed.
    pub struct Ecmp { }
}

/// The link, out of `0..n`, of a flow with this 5-tuple hash at a switch with this seed.
///
/// The seed enters before mixing, so that the choices of two switches are unrelated; a fabric whose switches hash alike uses
/// a fraction of its paths (polarisation).
#[inline(always)]
pub fn ecmp(hash: u32, switch_seed: u32, n: usize) -> usize {
    reduce(mix32(hash ^ switch_seed), n)
}

/// State of ECMP: none.
#[derive(Clone, Debug)]
pub struct ByHash;

impl Chooser for ByHash {
    type Params = Ecmp;

    /// No memory: nothing is kept between packets.
    fn memory(_params: &Ecmp) -> Option<Bytes> {
        Some(Bytes(0))
    }

    fn new(_params: &Ecmp) -> Self {
        ByHash
    }

    #[inline(always)]
    fn foresee(&self, _dst: HostId, hash: u32, n: usize, switch_seed: u32) -> Option<usize> {
        Some(ecmp(hash, switch_seed, n))
    }

    #[inline(always)]
    fn pick(&mut self, _now: Time, p: &Envelope, links: &mut impl Links, switch_seed: u32, _rng: &mut Stream) -> usize {
        ecmp(p.hash, switch_seed, links.count())
    }
}
