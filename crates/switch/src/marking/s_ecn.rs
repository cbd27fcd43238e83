//! S-ECN: marking by the slope of the queue.

use super::{At, Policy};
use crate::{MarkReason, MarkVerdict, PortView, Unit};
use fanin_packet::{Ecn, Packet};
use fanin_params::{choice, names, params, Cx};
use fanin_units::{Amount, BitRate, Bytes, Span, Stream, Time};

/// The queue was growing.
const SLOPE: MarkReason = MarkReason("slope");
/// The queue had reached K.
const AT_K: MarkReason = MarkReason("threshold");

names! {
    /// What a mark takes from the sum.
    pub enum AfterMark {
        /// R·I, what this packet's share of marks stands for: the marked share is s/R, on the average exactly.
        "subtract" => Subtract,
        /// All of it, as a counter of unmarked packets that starts again: one packet in ⌊R/s⌋ + 1, so never more than half
        /// of them while s < R.
        "reset" => Reset,
    }
}

params! {
    /// Adders and a comparator, as in the paper's hardware: each packet adds P − R·I to a sum; a packet is marked when the sum
    /// is above R·I. Source: S-ECN §IV-C.
    pub struct SlopeParams {
        /// Clock in which intervals are counted; at 20 ns R still fits its register at 1.6 Tb/s. Source: S-ECN §II-C, §IV-C
        /// (125 MHz).
        pub clock: Span = Span::from_ns(8), in Span::from_ps(100)..=Span::from_ns(20);
        /// What idle time and draining may pay in for later packets: the sum is never below minus this. Wire bytes; one
        /// full-size packet is what arrivals that are merely uneven need.
        pub credit: Bytes = Bytes(1538), in Bytes(0)..=Bytes(65_535);
        /// What a mark takes from the sum.
        pub after_mark: AfterMark = AfterMark::Subtract;
    }
}
params! {
    /// By chance: each packet for itself with probability (P − R·I)/(R·I). Source: S-ECN §IV-B (1), §IV-C (2).
    pub struct ByChance { }
}
choice! {
    /// How the slope becomes a mark.
    pub enum SlopeForm {
        /// A sum, without chance.
        "registers" => Registers(SlopeParams),
        /// By chance.
        "probability" => Probability(ByChance),
    }
}
params! {
    /// By the slope s of the queue: no packet for s ≤ 0, a share of s/R for 0 < s < R, every packet for s ≥ R; and every
    /// packet once K waits. Source: S-ECN §IV-B.
    pub struct SEcnParams {
        /// Every ECN-capable packet that finds K or more is marked. Absent: the slope alone decides. Source: S-ECN §IV-D
        /// (32 KB at 1 Gb/s).
        pub k: Option<Amount> = None;
        /// Registers or chance.
        pub form: SlopeForm = SlopeForm::Registers(SlopeParams {
            clock: Span::from_ns(8),
            credit: Bytes(1538),
            after_mark: AfterMark::Subtract,
        });
        /// Which packet gets the mark: the one that arrives, or the one that leaves.
        pub at: At = At::Enqueue;
    }
}

/// Fraction bits of bytes in the registers: R is exact to 0.01 % from 10 Mb/s and 8 ns on.
const FRACTION: u32 = 20;
/// The longest interval that the registers tell apart, in clocks: 134 ms at 8 ns, in which 10 Mb/s send 167 KB.
const LONGEST: u64 = (1 << 24) - 1;

/// The register form: two adders, a multiplier and comparators.
///
/// I clocks after the packet before, a packet of P wire bytes arrives:
/// sum ← max (sum + P − R·I, −credit); marked when P > R·I and sum > R·I; then sum ← min (sum − R·I, R·I).
///
/// | register | width | unit |
/// |---|---|---|
/// | R | 32 | 2⁻²⁰ B per clock |
/// | I | 24, saturating | clocks |
/// | P, credit | 16 | B |
/// | R·I | 56 | 2⁻²⁰ B |
/// | sum | 37, signed | 2⁻²⁰ B |
///
/// The sum needs no more than 37 bits: while P > R·I it ends at R·I < 2¹⁶ B at most, otherwise it falls.
///
/// Source: S-ECN §IV-C. What the paper leaves open: docs/switch/s-ecn.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlopeRegisters {
    /// R [2⁻²⁰ B per clock].
    rate: u64,
    credit: i64,
    after_mark: AfterMark,
    clock: Span,
    /// Clock of the last arrival.
    last: Option<u64>,
    sum: i64,
}

/// What one arrival made of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlopeStep {
    /// I [clocks].
    pub interval: u64,
    /// R·I [2⁻²⁰ B].
    pub sendable: i64,
    /// The sum before the mark takes its part [2⁻²⁰ B].
    pub added: i64,
    /// The sum afterwards [2⁻²⁰ B].
    pub sum: i64,
    /// Whether the slope asks for a mark.
    pub mark: bool,
}

impl SlopeRegisters {
    /// Fraction bits of `sendable`, `added` and `sum`.
    pub const FRACTION: u32 = FRACTION;
    /// The largest I [clocks].
    pub const LONGEST: u64 = LONGEST;

    /// Registers of a port of `rate` before the first packet.
    pub fn new(params: &SlopeParams, rate: BitRate) -> Self {
        SlopeRegisters {
            rate: rate.bytes_in(params.clock * (1 << FRACTION)).get(),
            credit: (params.credit.get() as i64) << FRACTION,
            after_mark: params.after_mark,
            clock: params.clock,
            last: None,
            sum: 0,
        }
    }

    /// R [2⁻²⁰ B per clock].
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// A packet of `wire` bytes, preamble and gap included, arrives. `markable`: only a packet that can carry a mark takes
    /// from the sum what a mark stands for.
    pub fn on_arrival(&mut self, now: Time, wire: u32, markable: bool) -> SlopeStep {
        let clock = now.ps() / self.clock.ps();
        let interval = self.last.map_or(LONGEST, |last| (clock - last).min(LONGEST));
        self.last = Some(clock);
        let sendable = (self.rate * interval) as i64;
        let arrived = i64::from(wire) << FRACTION;
        let added = (self.sum + arrived - sendable).max(-self.credit);
        let mark = arrived > sendable && added > sendable;
        self.sum = match (mark, markable, self.after_mark) {
            (false, ..) => added,
            // It waits for the next packet that can be marked, and no more than that.
            (true, false, _) => sendable,
            (true, true, AfterMark::Subtract) => (added - sendable).min(sendable),
            (true, true, AfterMark::Reset) => 0,
        };
        SlopeStep { interval, sendable, added, sum: self.sum, mark }
    }
}

/// S-ECN's state at one port.
///
/// Source: S-ECN §IV-B, §IV-C. Deviation: "larger than" K in the text, "at or above" on the authors' slides: at or above. P is
/// wire bytes, so that back-to-back frames are exactly R. Refused packets count for nothing: they do not make the queue grow.
#[derive(Clone, Debug)]
pub struct SEcn {
    params: SEcnParams,
    /// From the first packet on, which tells the port's rate.
    registers: Option<SlopeRegisters>,
    /// The last arrival, for marks by chance.
    last: Option<Time>,
    /// Marks that arrivals have earned and no departure has taken: at most one for each ECN-capable packet that waits.
    owed: u32,
}

impl SEcn {
    /// The registers, from the first packet on.
    pub(crate) fn registers(&self) -> Option<&SlopeRegisters> {
        self.registers.as_ref()
    }

    /// Marks that arrivals have earned and no departure has taken.
    pub(crate) fn owed(&self) -> u32 {
        self.owed
    }

    /// Whether the arrival of `p` earns a mark by the slope; every arrival has to pass here.
    fn slope(&mut self, view: &PortView, p: &Packet, rng: &mut Stream) -> bool {
        let (wire, markable) = (u32::from(p.frame) + u32::from(view.overhead), p.ecn != Ecn::NotEct);
        match &self.params.form {
            SlopeForm::Registers(params) => {
                let registers = self.registers.get_or_insert_with(|| SlopeRegisters::new(params, view.rate));
                registers.on_arrival(view.now, wire, markable).mark && markable
            }
            SlopeForm::Probability(_) => {
                let interval = self.last.map(|last| view.now.since(last));
                self.last = Some(view.now);
                // (P − R·I)/(R·I) is (T − I)/I, T being the time to send P.
                let time = view.rate.time_to_send(Bytes(u64::from(wire)));
                let Some(interval) = interval.filter(|i| *i < time && markable) else { return false };
                rng.unit() * (interval.ps() as f64) < (time - interval).ps() as f64
            }
        }
    }

    fn at_k(&self, view: &PortView) -> bool {
        self.params.k.is_some_and(|k| view.queue(Unit::of(k)) >= k.count())
    }

    fn verdict(&self, at_k: bool, slope: bool, p: &Packet) -> MarkVerdict {
        match (at_k, slope) {
            _ if p.ecn == Ecn::NotEct => MarkVerdict::Pass,
            (true, _) => MarkVerdict::Mark(AT_K),
            (false, true) => MarkVerdict::Mark(SLOPE),
            (false, false) => MarkVerdict::Pass,
        }
    }
}

impl Policy for SEcn {
    type Params = SEcnParams;

    fn new(params: &SEcnParams) -> Self {
        SEcn { params: params.clone(), registers: None, last: None, owed: 0 }
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

    fn on_enqueue(&mut self, view: &PortView, p: &Packet, rng: &mut Stream) -> MarkVerdict {
        let slope = self.slope(view, p, rng);
        match self.params.at {
            At::Enqueue => self.verdict(self.at_k(view), slope, p),
            At::Dequeue => {
                self.owed += u32::from(slope);
                MarkVerdict::Pass
            }
        }
    }

    fn on_dequeue(&mut self, view: &PortView, p: &Packet, _rng: &mut Stream) -> MarkVerdict {
        if self.params.at == At::Enqueue || p.ecn == Ecn::NotEct {
            return MarkVerdict::Pass;
        }
        let slope = self.owed > 0;
        self.owed -= u32::from(slope);
        self.verdict(self.at_k(view), slope, p)
    }

    fn acts_at_dequeue(&self) -> bool {
        self.params.at == At::Dequeue
    }

    fn needs_rng(&self) -> bool {
        matches!(self.params.form, SlopeForm::Probability(_))
    }
}

#[cfg(test)]
#[path = "s_ecn_tests.rs"]
mod tests;
