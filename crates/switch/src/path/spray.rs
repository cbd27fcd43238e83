//! Random packet spraying. Source: RPS.

use super::hash::reduce;
use super::{Chooser, Links};
use fanin_packet::Envelope;
use fanin_params::params;
use fanin_units::{Bytes, Stream, Time};

params! {
    /// Spraying, without parameters: every packet draws a random link.
    pub struct Spray { }
}

/// No state but the switch's stream.
#[derive(Clone, Debug)]
pub struct AtRandom;

impl Chooser for AtRandom {
    type Params = Spray;

    const PER_PACKET: bool = true;

    /// No memory: nothing is kept between packets.
    fn memory(_params: &Spray) -> Option<Bytes> {
        Some(Bytes(0))
    }

    fn new(_params: &Spray) -> Self {
        AtRandom
    }

    #[inline]
    fn pick(&mut self, _now: Time, _p: &Envelope, links: &mut impl Links, _switch_seed: u32, rng: &mut Stream) -> usize {
        reduce(rng.next_u32(), links.count())
    }
}
