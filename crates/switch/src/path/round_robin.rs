//! Round-robin packet spraying.

use super::hash::{mix32, reduce};
use super::{Chooser, Links};
use fanin_packet::Envelope;
use fanin_params::params;
use fanin_units::{Stream, Time};

params! {
    /// Round robin, without parameters: the packets to one destination take the links in turn.
    pub struct RoundRobinParams { }
}

/// One counter per destination host, grown as destinations appear.
///
/// Each starts at a place of its own, from the switch's seed, so that switches do not march in step. Source: RPS
/// (per-packet round robin, per destination as routers do).
#[derive(Clone, Debug)]
pub struct InTurn {
    next: Vec<u16>,
}

const UNUSED: u16 = u16::MAX;

impl Chooser for InTurn {
    type Params = RoundRobinParams;

    const PER_PACKET: bool = true;

    fn new(_params: &RoundRobinParams) -> Self {
        InTurn { next: Vec::new() }
    }

    #[inline]
    fn pick(&mut self, _now: Time, p: &Envelope, links: &mut impl Links, switch_seed: u32, _rng: &mut Stream) -> usize {
        let (dst, n) = (p.dst.index(), links.count());
        if dst >= self.next.len() {
            self.next.resize(dst + 1, UNUSED);
        }
        let next = &mut self.next[dst];
        let link = match usize::from(*next) {
            link if link < n => link,
            link if link == usize::from(UNUSED) => reduce(mix32(p.dst.0 ^ switch_seed), n),
            _ => 0,
        };
        *next = (link as u16 + 1) % UNUSED;
        link
    }
}
