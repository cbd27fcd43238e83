//! Random early detection. Source: RED.

use super::Policy;
use crate::{DropReason, MarkReason, MarkVerdict, PortView, Unit};
use fanin_packet::{Ecn, Envelope};
use fanin_params::{names, params, Cx};
use fanin_units::{Amount, BitRate, Bytes, Span, Stream};
use std::ops::Bound;

/// Reason of marks by chance.
const MARK_BY_CHANCE: MarkReason = MarkReason("red");
/// Reason of marks: the average queue is above the upper limit.
const MARK_FORCED: MarkReason = MarkReason("red_forced");
/// Reason of drops by chance, of packets that could not be marked.
const DROP_BY_CHANCE: DropReason = DropReason("red");
/// Reason of drops: the average queue is above the upper limit.
const DROP_FORCED: DropReason = DropReason("red_forced");

names! {
    /// Spacing of marks at a given marking probability.
    pub enum Spacing {
        /// Geometric gaps: each packet is marked independently. Source: RED §7, method 1.
        "geometric" => Geometric,
        /// Uniform gaps from 1 to 1/p_b − 1: the paper's algorithm counts the arriving packet, its text (1 to 1/p_b) does
        /// not. Source: RED §7, method 2, as in its fig. 2.
        "uniform" => Uniform,
        /// Uniform gaps from 1/p_b to 2/p_b − 1. Source: ns-2 2.35, `queue/red.cc` (`wait_`).
        "wait" => Wait,
    }
}

params! {
    /// Random early detection (RED): marks or drops with a probability that grows with the average queue.
    pub struct RedParams {
        /// Lower threshold of the average queue, in packets, bytes or cells: the unit of the average, too. Source:
        /// RED-parameters (5 packets).
        pub min: Amount = Amount::Packets(5);
        /// Upper threshold, in the same unit. Source: RED-parameters (three times `min`).
        pub max: Amount = Amount::Packets(15);
        /// Marking probability when the average reaches `max`. Source: RED-parameters (0.1).
        pub max_p: f64 = 0.1, in (Bound::Excluded(0.0), Bound::Included(1.0));
        /// w_q: weight of one sample in the average; 1 uses the instantaneous queue. Source: RED §6 (0.002).
        pub weight: f64 = 0.002, in (Bound::Excluded(0.0), Bound::Included(1.0));
        /// Gentle RED: between `max` and twice `max` the probability rises from `max_p` to 1; if false, it jumps to 1.
        /// Source: gentle-RED.
        pub gentle: bool = true;
        /// Spacing of marks. Source: RED §7 (uniform).
        pub spacing: Spacing = Spacing::Uniform;
        /// ECN: ECN-capable packets are marked; if false, they are dropped as others are. Source: RFC 3168 §5.
        pub ecn: bool = true;
        /// Hard drop: above the upper limit ECN-capable packets are dropped, too. Source: RFC 3168 §7 (recommended). DCTCP
        /// wants them marked: `false`.
        pub hard_drop: bool = true;
        /// Drop of packets that are not ECN-capable, where others are marked. If false, they pass up to the limit of
        /// `hard_drop`, as at lossless queues; RoCEv2's acknowledgments and CNPs are such packets.
        pub drop_others: bool = true;
        /// Byte mode: the probability is proportional to the frame's size, if the unit is bytes or cells. Source: RED §4.
        pub by_size: bool = false;
        /// Typical frame size: an idle port counts one sample per serialisation time of it, and `by_size` is relative to it.
        pub mean_packet: Bytes = Bytes(1518), in Bytes(1)..;
    }
}

/// RED's state at one port.
///
/// On each arrival, q being the queue that the packet finds:
/// avg ← (1 − w_q) avg + w_q q, after an idle time t first avg ← (1 − w_q)^(t/s) avg with s the serialisation of
/// `mean_packet`; p_b = max_p (avg − min)/(max − min) for min ≤ avg < max; p_a = p_b / (1 − count · p_b).
///
/// Source: RED §4, fig. 2. Deviation: after an idle time the arriving packet also is a sample of the empty queue
/// (ns-2 does the same); without it a port whose queue is empty but whose wire is busy would never forget.
#[derive(Clone, Debug)]
pub struct Red {
    params: RedParams,
    min: f64,
    max: f64,
    unit: Unit,
    /// ln(1 − w_q)/s [1/ps]: the change of ln avg by an idle time. From the first idle time on, which gives the port's rate.
    forgets: Option<f64>,
    /// Weight 1 − w_q of the old average.
    keeps: f64,
    avg: f64,
    /// Packets since the last mark while avg ≥ min, including the arriving one; −1 below min.
    count: i64,
}

/// Verdict for an average queue of `min` or more.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Zone {
    /// Mark with this probability before spacing.
    Between(f64),
    Above,
}

impl Red {
    /// The average after an arrival that finds the queue of `view`.
    #[inline(always)]
    fn average(&mut self, view: &PortView) -> f64 {
        let (mut avg, idle) = (self.avg, view.idle());
        if idle > Span::ZERO && avg > 0.0 {
            avg = self.after_idle(idle, view.rate);
        }
        match view.queue(self.unit) {
            0 => self.keeps * avg,
            q => self.keeps * avg + self.params.weight * q as i64 as f64, // one instruction; no queue has 2^63
        }
    }

    /// The average after an idle time.
    #[inline(never)]
    fn after_idle(&mut self, idle: Span, rate: BitRate) -> f64 {
        let forgets = *self.forgets.get_or_insert_with(|| {
            let s = rate.time_to_send(self.params.mean_packet);
            libm::log1p(-self.params.weight) / s.ps() as f64
        });
        self.avg * libm::exp(forgets * idle.ps() as f64)
    }

    #[inline]
    fn zone(&self, avg: f64, frame: u16) -> Zone {
        let max_p = self.params.max_p;
        let pb = if avg < self.max {
            max_p * (avg - self.min) / (self.max - self.min)
        } else if self.params.gentle && avg < 2.0 * self.max {
            max_p + (1.0 - max_p) * (avg - self.max) / self.max
        } else {
            return Zone::Above;
        };
        let by_size = self.params.by_size && self.unit != Unit::Packets;
        Zone::Between(if by_size { pb * f64::from(frame) / self.params.mean_packet.0 as f64 } else { pb })
    }

    /// About a packet that finds an average of `min` or more.
    #[inline(never)]
    fn decide(&mut self, p: &Envelope, rng: &mut Stream) -> MarkVerdict {
        let markable = self.params.ecn && p.ecn != Ecn::NotEct;
        match self.zone(self.avg, p.frame) {
            Zone::Between(pb) => {
                self.count += 1;
                let chance = self.chance(pb, self.count);
                if chance < 1.0 && rng.unit() >= chance {
                    return MarkVerdict::Pass;
                }
                if !markable && !self.params.drop_others {
                    return MarkVerdict::Pass;
                }
                self.count = 0;
                if markable {
                    MarkVerdict::Mark(MARK_BY_CHANCE)
                } else {
                    MarkVerdict::Drop(DROP_BY_CHANCE)
                }
            }
            Zone::Above => {
                self.count = 0;
                if markable && !self.params.hard_drop {
                    MarkVerdict::Mark(MARK_FORCED)
                } else if !self.params.drop_others && !self.params.hard_drop {
                    MarkVerdict::Pass
                } else {
                    MarkVerdict::Drop(DROP_FORCED)
                }
            }
        }
    }

    /// p_a: the chance of this packet, `count` after the last mark.
    fn chance(&self, pb: f64, count: i64) -> f64 {
        let passed = count as f64 * pb;
        let pa = match self.params.spacing {
            Spacing::Geometric => pb,
            Spacing::Uniform if passed < 1.0 => pb / (1.0 - passed),
            Spacing::Wait if passed < 1.0 => 0.0,
            Spacing::Wait if passed < 2.0 => pb / (2.0 - passed),
            Spacing::Uniform | Spacing::Wait => 1.0,
        };
        pa.min(1.0)
    }
}

impl Policy for Red {
    type Params = RedParams;

    /// Average of 32 bits, packets since the last mark of 16, begin of the idle time of 32. Source: RED fig. 2, its saved variables;
    /// their widths are ours.
    fn memory(_params: &RedParams) -> Option<Bytes> {
        Some(Bytes((32 + 16 + 32) / Bytes(1).bits()))
    }

    fn new(params: &RedParams) -> Self {
        Red {
            params: params.clone(),
            min: params.min.count() as f64,
            max: params.max.count() as f64,
            unit: Unit::of(params.min),
            forgets: None,
            keeps: 1.0 - params.weight,
            avg: 0.0,
            count: -1,
        }
    }

    fn check(params: &RedParams, cx: &mut Cx) {
        let (min, max) = (params.min, params.max);
        if Unit::of(min) != Unit::of(max) {
            cx.key("max", |cx| {
                cx.error(None, format!("is {max}, but `min` is {min}"), Some("the same unit for both".into())).severity
            });
        } else if max.count() < min.count() || max.count() == 0 {
            cx.key("max", |cx| {
                cx.error(None, format!("is {max}"), Some(format!("more than zero, and at least `min`, {min}"))).severity
            });
        }
        if params.by_size && Unit::of(min) == Unit::Packets {
            cx.key("by_size", |cx| cx.warn(None, "has no effect: `min` counts packets", None).severity);
        }
        if !params.ecn && !params.hard_drop {
            cx.key("hard_drop", |cx| cx.warn(None, "has no effect: without `ecn` nothing is marked", None).severity);
        }
        if !params.ecn && !params.drop_others {
            let message = "leaves nothing to do below the limit: without `ecn` nothing is marked";
            cx.error_at("drop_others", &params.drop_others, message, "true, or ecn = true");
        }
    }

    fn amounts(params: &RedParams) -> Vec<Amount> {
        vec![params.min, params.max]
    }

    fn marks(params: &RedParams) -> bool {
        params.ecn
    }

    fn drops(params: &RedParams) -> bool {
        params.drop_others || params.hard_drop
    }

    #[inline(always)]
    fn on_enqueue(&mut self, view: &PortView, p: &Envelope, rng: &mut Stream) -> MarkVerdict {
        self.avg = self.average(view);
        if self.avg < self.min {
            self.count = -1;
            return MarkVerdict::Pass;
        }
        self.decide(p, rng)
    }

    fn on_refused(&mut self, view: &PortView, _p: &Envelope) {
        self.avg = self.average(view);
        self.count = if self.avg < self.min { -1 } else { 0 };
    }

    fn needs_rng(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "red_tests.rs"]
mod tests;
