//! Drops at the head of a long queue.

use super::Policy;
use crate::config::MIN_FRAME;
use crate::{DropReason, Head, MarkVerdict, Unit};
use fanin_packet::Envelope;
use fanin_params::{params, Cx};
use fanin_units::{Amount, Bytes};

/// The queue had reached the limit when the packet came to its head.
const FRONT_DROP: DropReason = DropReason("front_drop");

params! {
    /// Front drop: no marks; the packet at the head of a queue that has reached a limit is dropped instead of sent.
    pub struct FrontDropParams {
        /// Limit: a packet is dropped when at least this much waits, itself included.
        pub limit: Amount = Amount::Bytes(512_000);
    }
}

/// Drops at or above the limit.
///
/// A packet joins its queue as `switch.buffer` says. When its turn comes the depth of its port is read, the packet itself
/// counted; at or above the limit it is dropped in no time, and the next one's turn comes. So the queue is cut from the front
/// until it is below the limit, and what was just below it is sent.
///
/// A programmable switch (Tofino) that bounds a queue in its egress pipeline does this: it has the packet's queue depth in its
/// metadata there, and the traffic manager has admitted the packet already. Deviation: a dropped packet takes no time of the
/// egress pipeline, which runs at several times the rate of a port.
#[derive(Clone, Debug)]
pub struct FrontDrop {
    limit: Amount,
}

impl Policy for FrontDrop {
    type Params = FrontDropParams;

    /// Memory: none, as the queue is compared with counts that ports keep anyway.
    fn memory(_params: &FrontDropParams) -> Option<Bytes> {
        Some(Bytes(0))
    }

    fn new(params: &FrontDropParams) -> Self {
        FrontDrop { limit: params.limit }
    }

    fn check(params: &FrontDropParams, cx: &mut Cx) {
        let least = if Unit::of(params.limit) == Unit::Bytes { MIN_FRAME } else { 1 };
        if params.limit.count() <= least {
            let message = format!("is {}: no packet would ever be sent", params.limit);
            cx.key("limit", |cx| cx.error(None, message, Some("more than the smallest packet takes".into())).severity);
        }
    }

    fn amounts(params: &FrontDropParams) -> Vec<Amount> {
        vec![params.limit]
    }

    fn counts_itself(_params: &FrontDropParams) -> bool {
        true
    }

    fn marks(_params: &FrontDropParams) -> bool {
        false
    }

    fn drops(_params: &FrontDropParams) -> bool {
        true
    }

    fn on_head(&mut self, head: &Head, _p: &Envelope) -> MarkVerdict {
        if head.port.queue(Unit::of(self.limit)) >= self.limit.count() {
            MarkVerdict::Drop(FRONT_DROP)
        } else {
            MarkVerdict::Pass
        }
    }

    fn acts_at_enqueue(&self) -> bool {
        false
    }

    fn decides_at_head(&self) -> bool {
        true
    }
}
