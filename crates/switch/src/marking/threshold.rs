//! Marking by the instantaneous queue.

use super::Policy;
use crate::{MarkReason, MarkVerdict, PortView, Unit};
use fanin_packet::{Ecn, Envelope};
use fanin_params::{names, params, Ground, Setting};
use fanin_units::{Amount, BitRate, Bytes, Stream};

/// The queue was above the threshold.
const ABOVE_K: MarkReason = MarkReason("threshold");

names! {
    /// Time at which a packet is compared with the threshold.
    pub enum At {
        /// On arrival: the queue that the packet finds counts.
        "enqueue" => Enqueue,
        /// On departure: the queue that the packet leaves behind counts; the signal is fresher by the queueing delay.
        /// Source: ECN-tuning.
        "dequeue" => Dequeue,
    }
}

params! {
    /// Threshold: an ECN-capable packet is marked when the queue is above K.
    pub struct ThresholdParams {
        /// K: a packet is marked when more than K waits, without itself and the packet being sent. Source: DCTCP §3.1 (1)
        /// ("greater than K upon its arrival"); DCTCP §3.5, "Practical considerations" (65 packets at 10 Gb/s, 20 at 1
        /// Gb/s).
        pub k: Amount = Amount::Packets(65);
        /// Moment at which the queue is measured.
        pub at: At = At::Enqueue;
    }
}

/// State of threshold marking at one port.
///
/// Source: DCTCP §3.1 (1). Packets that are not ECN-capable pass; a full buffer drops them. Deviation: none; "the queue
/// occupancy" is what waits, so that K does not shift with the size of the packet on the wire.
#[derive(Clone, Debug)]
pub struct Threshold {
    k: Amount,
    at: At,
}

impl Threshold {
    #[inline(always)]
    fn verdict(&self, view: &PortView, p: &Envelope) -> MarkVerdict {
        if view.queue(Unit::of(self.k)) > self.k.count() && p.ecn != Ecn::NotEct {
            MarkVerdict::Mark(ABOVE_K)
        } else {
            MarkVerdict::Pass
        }
    }
}

impl Policy for Threshold {
    type Params = ThresholdParams;

    /// 20 packets at 1 Gb/s and below, 65 at 10 Gb/s, beyond in proportion. Source: DCTCP §3.5, "Practical considerations".
    /// Deviation: the paper stops at 10 Gb/s.
    fn authors(at: &Ground) -> Vec<Setting> {
        let k =
            if at.rate <= BitRate::from_gbps(1) { 20 } else { at.in_proportion(Bytes(65), BitRate::from_gbps(10)).get().max(20) };
        vec![("switch.marking.k", format!("\"{k} packets\""))]
    }

    /// Memory: none, as the queue is compared with counts that ports keep anyway.
    fn memory(_params: &ThresholdParams) -> Option<Bytes> {
        Some(Bytes(0))
    }

    fn new(params: &ThresholdParams) -> Self {
        Threshold { k: params.k, at: params.at }
    }

    fn amounts(params: &ThresholdParams) -> Vec<Amount> {
        vec![params.k]
    }

    #[inline(always)]
    fn on_enqueue(&mut self, view: &PortView, p: &Envelope, _rng: &mut Stream) -> MarkVerdict {
        if self.at == At::Enqueue {
            self.verdict(view, p)
        } else {
            MarkVerdict::Pass
        }
    }

    #[inline(always)]
    fn on_dequeue(&mut self, view: &PortView, p: &Envelope, _rng: &mut Stream) -> MarkVerdict {
        if self.at == At::Dequeue {
            self.verdict(view, p)
        } else {
            MarkVerdict::Pass
        }
    }

    fn acts_at_enqueue(&self) -> bool {
        self.at == At::Enqueue
    }

    #[inline(always)]
    fn acts_at_dequeue(&self) -> bool {
        self.at == At::Dequeue
    }

    fn simple_threshold(&self) -> Option<(Amount, At)> {
        Some((self.k, self.at))
    }
}
