//! S-ECN: marking by the slope of the queue.

use super::{At, Policy};
use crate::{MarkReason, MarkVerdict, PortView, Unit};
use fanin_dataplane::s_ecn;
use fanin_packet::{Ecn, Envelope};
use fanin_params::{choice, names, params, Cx};
use fanin_units::{Amount, BitRate, Bytes, Span, Stream, Time};

/// The queue was growing.
const SLOPE: MarkReason = MarkReason("slope");
/// The queue had reached K.
const AT_K: MarkReason = MarkReason("threshold");

names! {
    /// Amount that a mark subtracts from the sum.
    pub enum AfterMark {
        /// Subtracts R·I: on average exactly s/R of the packets are marked.
        "subtract" => Subtract,
        /// Resets the sum to zero: one packet in ⌊R/s⌋ + 1 is marked, at most half of them while s < R.
        "reset" => Reset,
    }
}

params! {
    /// Registers, without randomness: a packet of P wire bytes that arrives I after the one before adds P − R·I to a sum,
    /// and is marked when the sum is above R·I. Adders and a comparator, as in the paper's hardware. Source: S-ECN §IV-C.
    pub struct SlopeParams {
        /// Clock by which intervals are measured; at 20 ns, R of 1.6 Tb/s still fits its register. Source: S-ECN §II-C,
        /// §IV-C (125 MHz).
        pub clock: Span = Span::from_ns(8), in Span::from_ps(100)..=Span::from_ns(20);
        /// Credit earned while idle or draining, for later packets: the sum never falls below minus this, in wire bytes. One
        /// full-size packet absorbs uneven arrivals.
        pub credit: Bytes = Bytes(1538), in Bytes(0)..=Bytes(65_535);
        /// Amount that a mark subtracts from the sum.
        pub after_mark: AfterMark = AfterMark::Subtract;
    }
}
params! {
    /// Probabilistic form: each packet is marked independently with probability (P − R·I)/(R·I). Source: S-ECN §IV-B (1),
    /// §IV-C (2).
    pub struct ByChance { }
}
choice! {
    /// Form in which the slope becomes a mark.
    pub enum SlopeForm {
        /// Registers, without randomness: a packet of P wire bytes that arrives I after the one before adds P − R·I to a
        /// sum, and is marked when the sum is above R·I. Adders and a comparator, as in the paper's hardware. Source: S-ECN
        /// §IV-C.
        "registers" => Registers(SlopeParams),
        /// Probability per packet.
        "probability" => Probability(ByChance),
    }
}
params! {
    /// S-ECN: marks by the slope s of the queue at a port of rate R: no packet for s ≤ 0, a share of s/R for 0 < s < R,
    /// every packet for s ≥ R; and every packet once K waits. Source: S-ECN §IV-B.
    pub struct SEcnParams {
        /// K: queue from which on every ECN-capable packet is marked; if absent, the slope alone decides. Source: S-ECN
        /// §IV-D (32 KB at 1 Gb/s).
        pub k: Option<Amount> = None;
        /// Form of the slope rule: registers or probability.
        pub form: SlopeForm = SlopeForm::Registers(SlopeParams {
            clock: Span::from_ns(8),
            credit: Bytes(1538),
            after_mark: AfterMark::Subtract,
        });
        /// Packet that is marked: the arriving or the leaving one.
        pub at: At = At::Enqueue;
    }
}

/// The register form at a port: [`fanin_dataplane::s_ecn`] in the port's clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlopeRegisters {
    registers: s_ecn::Registers,
    /// Picoseconds of a tick, and the factor by which times are multiplied instead of being divided by them: 2⁶⁴ over it, rounded
    /// up.
    clock: u64,
    reciprocal: u64,
}

/// Registers after one arrival.
pub type SlopeStep = s_ecn::Step;

impl SlopeRegisters {
    /// Fraction bits of `sendable`, `added` and `sum`.
    pub const FRACTION: u32 = s_ecn::FRACTION;
    /// Largest I, in clocks.
    pub const LONGEST: u64 = s_ecn::LONGEST;

    /// Registers of a port of `rate` before the first packet.
    pub fn new(params: &SlopeParams, rate: BitRate) -> Self {
        let rate = rate.bytes_in(params.clock * (1 << s_ecn::FRACTION)).get();
        let after_mark = match params.after_mark {
            AfterMark::Subtract => s_ecn::AfterMark::Subtract,
            AfterMark::Reset => s_ecn::AfterMark::Reset,
        };
        let registers = s_ecn::Registers::new(rate, params.credit.get() as u32, after_mark);
        let clock = params.clock.ps();
        SlopeRegisters { registers, clock, reciprocal: u64::MAX / clock + 1 }
    }

    /// Register R [2⁻²⁰ B per clock].
    pub fn rate(&self) -> u64 {
        self.registers.rate()
    }

    /// Register of the sum [2⁻²⁰ B].
    #[cfg(test)]
    fn sum(&self) -> i64 {
        self.registers.sum()
    }

    /// A packet of `wire` bytes arrives; see [`s_ecn::Registers::on_arrival`].
    #[inline(always)]
    pub fn on_arrival(&mut self, now: Time, wire: u32, markable: bool) -> SlopeStep {
        self.registers.on_arrival(self.clocks(now.ps()), wire, markable)
    }

    /// Number of whole clocks in a time. The product is at most one too many, as the reciprocal is less than one too large.
    #[inline(always)]
    fn clocks(&self, ps: u64) -> u64 {
        let clocks = ((u128::from(ps) * u128::from(self.reciprocal)) >> 64) as u64;
        clocks - u64::from(clocks.wrapping_mul(self.clock) > ps)
    }
}

/// Source of the slope, and the packet that gets the mark.
#[derive(Clone, Debug)]
#[repr(u8)]
enum Slope {
    /// Register form before the first packet, which gives the port's rate and so makes the registers.
    First(SlopeParams, At),
    InRegisters(SlopeRegisters),
    InRegistersAtDequeue(SlopeRegisters),
    /// Form by chance, with the time of the last arrival.
    ByChance(Option<Time>, At),
}

/// S-ECN's state at one port.
///
/// Source: S-ECN §IV-B, §IV-C. Deviation: "larger than" K in the text, "at or above" on the authors' slides: at or above. P is
/// wire bytes, so that back-to-back frames are exactly R. Refused packets count for nothing: they do not make the queue grow.
#[derive(Clone, Debug)]
pub struct SEcn {
    /// The most below K, in `unit`; `u64::MAX` without K.
    below_k: u64,
    unit: Unit,
    slope: Slope,
    /// Marks that arrivals have earned and no departure has taken: at most one for each ECN-capable packet that waits.
    owed: u32,
}

impl SEcn {
    /// The registers, from the first packet on.
    pub(crate) fn registers(&self) -> Option<&SlopeRegisters> {
        match &self.slope {
            Slope::InRegisters(registers) | Slope::InRegistersAtDequeue(registers) => Some(registers),
            Slope::First(..) | Slope::ByChance(..) => None,
        }
    }

    /// Marks that arrivals have earned and no departure has taken.
    pub(crate) fn owed(&self) -> u32 {
        self.owed
    }

    fn at(&self) -> At {
        match self.slope {
            Slope::InRegisters(_) => At::Enqueue,
            Slope::InRegistersAtDequeue(_) => At::Dequeue,
            Slope::First(_, at) | Slope::ByChance(_, at) => at,
        }
    }

    /// The first packet is about to arrive, at a port of this rate.
    #[inline(always)]
    fn begin(&mut self, rate: BitRate) {
        if let Slope::First(params, at) = &self.slope {
            let registers = SlopeRegisters::new(params, rate);
            self.slope = match at {
                At::Enqueue => Slope::InRegisters(registers),
                At::Dequeue => Slope::InRegistersAtDequeue(registers),
            };
        }
    }

    /// True if an arrival of `wire` bytes, `interval` after the one before, earns a mark by chance.
    #[inline(always)]
    fn by_chance(interval: Option<Span>, wire: u32, rate: BitRate, rng: &mut Stream) -> bool {
        // (P − R·I)/(R·I) is (T − I)/I, T being the time to send P.
        let time = rate.time_to_send(Bytes(u64::from(wire)));
        let Some(interval) = interval.filter(|i| *i < time) else { return false };
        rng.unit() * (interval.ps() as f64) < (time - interval).ps() as f64
    }

    /// Handles the first arrival, and arrivals that may get the mark of another packet; `queue`: the queue that it finds.
    #[inline(never)]
    fn otherwise(&mut self, now: Time, rate: BitRate, wire: u32, queue: u64, p: &Envelope, rng: &mut Stream) -> MarkVerdict {
        let markable = p.ecn != Ecn::NotEct;
        self.begin(rate);
        let (slope, at) = match &mut self.slope {
            Slope::InRegisters(registers) => (registers.on_arrival(now, wire, markable).mark, At::Enqueue),
            Slope::InRegistersAtDequeue(registers) => (registers.on_arrival(now, wire, markable).mark, At::Dequeue),
            Slope::ByChance(last, at) => {
                let interval = last.replace(now).map(|last| now.since(last));
                (markable && Self::by_chance(interval, wire, rate, rng), *at)
            }
            Slope::First(..) => return MarkVerdict::Pass,
        };
        match at {
            At::Enqueue => self.verdict(queue, slope, p),
            At::Dequeue => {
                self.owed += u32::from(slope && markable);
                MarkVerdict::Pass
            }
        }
    }

    /// About a packet that arrives, or, where that gets the mark, leaves. `slope`: it takes a mark for that.
    #[inline(always)]
    fn verdict(&self, queue: u64, slope: bool, p: &Envelope) -> MarkVerdict {
        match (queue > self.below_k, slope) {
            (false, false) => MarkVerdict::Pass,
            _ if p.ecn == Ecn::NotEct => MarkVerdict::Pass,
            (true, _) => MarkVerdict::Mark(AT_K),
            (false, true) => MarkVerdict::Mark(SLOPE),
        }
    }
}

impl Policy for SEcn {
    type Params = SEcnParams;

    /// R of 32 bits, the clock of the last arrival of 24; a sum of 37: the registers of `fanin_dataplane::s_ecn`. Source: S-ECN §IV-C.
    fn memory(params: &SEcnParams) -> Option<Bytes> {
        let bits: u64 = match params.form {
            SlopeForm::Registers(_) => 32 + 24 + 37,
            SlopeForm::Probability(_) => 32 + 24,
        };
        Some(Bytes(bits.div_ceil(Bytes(1).bits())))
    }

    fn new(params: &SEcnParams) -> Self {
        // K is more than zero; so an idle port need not be compared.
        let (below_k, unit) = params.k.map_or((u64::MAX, Unit::Bytes), |k| (k.count().saturating_sub(1), Unit::of(k)));
        let slope = match &params.form {
            SlopeForm::Registers(registers) => Slope::First(registers.clone(), params.at),
            SlopeForm::Probability(_) => Slope::ByChance(None, params.at),
        };
        SEcn { below_k, unit, slope, owed: 0 }
    }

    fn check(params: &SEcnParams, cx: &mut Cx) {
        if params.k.is_some_and(|k| k.count() == 0) {
            let accepted = "more than zero: at zero each packet would be marked; no k: the slope alone decides";
            cx.key("k", |cx| cx.error(None, "is zero", Some(accepted.into())).severity);
        }
    }

    fn idle_below(_params: &SEcnParams) -> bool {
        false
    }

    fn amounts(params: &SEcnParams) -> Vec<Amount> {
        params.k.into_iter().collect()
    }

    /// Takes an arrival into the slope, and decides about its mark; the slope needs every arrival.
    #[inline(always)]
    fn on_enqueue(&mut self, view: &PortView, p: &Envelope, rng: &mut Stream) -> MarkVerdict {
        let (wire, queue) = (u32::from(p.frame) + u32::from(view.overhead), view.queue(self.unit));
        let markable = p.ecn != Ecn::NotEct;
        let slope = match &mut self.slope {
            Slope::InRegisters(registers) => registers.on_arrival(view.now, wire, markable).mark,
            Slope::ByChance(last, At::Enqueue) => {
                let interval = last.replace(view.now).map(|last| view.now.since(last));
                markable && Self::by_chance(interval, wire, view.rate, rng)
            }
            _ => return self.otherwise(view.now, view.rate, wire, queue, p, rng),
        };
        self.verdict(queue, slope, p)
    }

    #[inline(always)]
    fn on_dequeue(&mut self, view: &PortView, p: &Envelope, _rng: &mut Stream) -> MarkVerdict {
        if self.at() == At::Enqueue || p.ecn == Ecn::NotEct {
            return MarkVerdict::Pass;
        }
        let slope = self.owed > 0;
        self.owed -= u32::from(slope);
        self.verdict(view.queue(self.unit), slope, p)
    }

    #[inline(always)]
    fn acts_at_dequeue(&self) -> bool {
        self.at() == At::Dequeue
    }

    fn needs_rng(&self) -> bool {
        matches!(self.slope, Slope::ByChance(..))
    }
}

#[cfg(test)]
#[path = "s_ecn_tests.rs"]
mod tests;
