//! Static tables: the destination alone decides, at every switch alike.

use super::{Chooser, Links};
use fanin_packet::Envelope;
use fanin_params::params;
use fanin_units::{Bytes, HostId, Stream, Time};

params! {
    /// Path choice by destination, without parameters: the destination's number modulo the number of links, as tables for
    /// single addresses are filled (D-mod-k).
    pub struct ByDestinationParams { }
}

/// State of the choice by destination: none. Source: RIMM §IV, whose basic forwarding is that of P4's tutorials: one next hop for
/// each destination address. Which one a table names is open: here in turn.
#[derive(Clone, Debug)]
pub struct ByDestination;

fn link(dst: HostId, n: usize) -> usize {
    dst.index() % n
}

impl Chooser for ByDestination {
    type Params = ByDestinationParams;

    /// No memory: nothing is kept between packets.
    fn memory(_params: &ByDestinationParams) -> Option<Bytes> {
        Some(Bytes(0))
    }

    fn new(_params: &ByDestinationParams) -> Self {
        ByDestination
    }

    #[inline(always)]
    fn foresee(&self, dst: HostId, _hash: u32, n: usize, _switch_seed: u32) -> Option<usize> {
        Some(link(dst, n))
    }

    #[inline]
    fn pick(&mut self, _now: Time, p: &Envelope, links: &mut impl Links, _switch_seed: u32, _rng: &mut Stream) -> usize {
        link(p.dst, links.count())
    }
}
