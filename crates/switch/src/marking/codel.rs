//! Controlled delay. Source: RFC 8289.

use super::Policy;
use crate::{DropReason, Head, MarkReason, MarkVerdict};
use fanin_packet::{Ecn, Envelope};
use fanin_params::{params, Cx};
use fanin_units::{Bytes, Span, Time};

/// Reason of drops: the control law.
const DROP: DropReason = DropReason("codel");
/// Reason of marks: the control law, where the packet is ECN-capable and is marked instead of dropped.
const MARK: MarkReason = MarkReason("codel");
/// Reason of marks: the packet had waited longer than `ce_threshold`.
const MARK_BY_WAIT: MarkReason = MarkReason("codel_ce_threshold");

params! {
    /// Controlled delay (CoDel): drops or marks at the head of a queue whose packets have all waited too long for an
    /// interval.
    pub struct CodelParams {
        /// Target: acceptable wait in a standing queue. Source: RFC 8289 §4.3 (5 ms).
        pub target: Span = Span::from_ms(5), in Span::from_ns(1)..=Span::from_s(10);
        /// Interval in which all packets must have waited longer than `target` before one is dropped; about the longest RTT.
        /// Source: RFC 8289 §4.2 (100 ms).
        pub interval: Span = Span::from_ms(100), in Span::from_ns(1)..=Span::from_s(100);
        /// Smallest backlog: nothing is dropped while no more than this waits behind the packet. Source: Linux
        /// codel_should_drop (the device's MTU with its header); RFC 8289 §5.5 (the largest packet so far).
        pub mtu: Bytes = Bytes(1518), in Bytes(64)..=Bytes(65_535);
        /// ECN: ECN-capable packets are marked instead of dropped. Source: Linux sch_codel (off).
        pub ecn: bool = false;
        /// Step marking: every ECN-capable packet that has waited longer than this is marked, by its wait alone; if absent,
        /// none. Source: Linux sch_codel (meant for DCTCP).
        pub ce_threshold: Option<Span>;
    }
}

/// CoDel's state at one port: each class has its own. Source: RFC 8289 §4.4.
///
/// A packet that is about to be sent has waited for t. While t ≥ `target` and more than `mtu` waits behind it, for more than
/// `interval`, it may be dropped. The first one that may is; the n-th of a series `interval`/√n after the one before.
/// A series that begins within 16 `interval` of the last one's next drop begins with the n that the last one had gained.
///
/// Source: RFC 8289 §5.5 and §5.6; Linux codel_dequeue, where they differ: "after" an interval rather than at it, `mtu`, marks.
/// Deviation from Linux: 1/√n is exact where Linux takes one Newton step from its last value in 16 bits (0.500 for n = 2, where
/// 1/√2 = 0.707); time counts in picoseconds, not in units of 1024 ns, and does not wrap.
#[derive(Clone, Debug)]
pub struct Codel {
    params: CodelParams,
    classes: Vec<Class>,
}

/// State of the control law for one class, with the names of RFC 8289 §5.2.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// Time after which a packet may be dropped: an interval after waits reached the target; `None`: the last packet waited less.
    first_above: Option<Time>,
    dropping: bool,
    /// Time of the next drop of a series; after the series, the time at which its next drop was due.
    drop_next: Time,
    /// Packets dropped in this series: n.
    count: u32,
    /// `count` at the beginning of the series.
    lastcount: u32,
    /// True if the previous packet was dropped and the next drop has no time yet.
    dropped: bool,
}

/// Intervals since a drop series after which the next series starts anew. Source: Linux codel_dequeue; RFC 8289 §5.5.
const FORGET: u64 = 16;

impl Class {
    /// True if a packet may be dropped. Source: RFC 8289 §5.6 (dodequeue), Linux codel_should_drop.
    fn may_drop(&mut self, params: &CodelParams, now: Time, waited: Span, behind: u64) -> bool {
        if waited < params.target || behind <= params.mtu.0 {
            self.first_above = None;
            return false;
        }
        let first_above = *self.first_above.get_or_insert(now + params.interval);
        now > first_above
    }

    /// The time of the next drop after one at `at`. Source: RFC 8289 §5.6 (control_law).
    fn control_law(&self, params: &CodelParams, at: Time) -> Time {
        at + Span::from_ps((params.interval.ps() as f64 / libm::sqrt(f64::from(self.count))) as u64)
    }

    /// True if the packet is to be dropped, or marked instead. Source: Linux codel_dequeue, packet by packet.
    fn acts(&mut self, params: &CodelParams, now: Time, waited: Span, behind: u64, markable: bool) -> bool {
        let may_drop = self.may_drop(params, now, waited, behind);
        if !self.dropping {
            if may_drop {
                self.begin(params, now);
            }
            return may_drop;
        }
        if !may_drop {
            (self.dropping, self.dropped) = (false, false);
            return false;
        }
        if std::mem::take(&mut self.dropped) {
            self.drop_next = self.control_law(params, self.drop_next);
        }
        if now < self.drop_next {
            return false;
        }
        self.count = self.count.saturating_add(1);
        if markable {
            self.drop_next = self.control_law(params, self.drop_next);
        } else {
            // Scheduled when the next packet may be dropped too: if not, the series ends and `drop_next` stays.
            self.dropped = true;
        }
        true
    }

    /// Begins a series of drops.
    fn begin(&mut self, params: &CodelParams, now: Time) {
        let gained = self.count - self.lastcount;
        let soon = now < self.drop_next + params.interval * FORGET;
        self.count = if gained > 1 && soon { gained } else { 1 };
        self.lastcount = self.count;
        self.dropping = true;
        self.drop_next = self.control_law(params, now);
    }
}

impl Policy for Codel {
    type Params = CodelParams;

    fn new(params: &CodelParams) -> Self {
        Codel { params: params.clone(), classes: Vec::new() }
    }

    fn check(params: &CodelParams, cx: &mut Cx) {
        if params.target >= params.interval {
            let message =
                format!("is not below `interval`, {}: the shortest wait of an interval says nothing then", params.interval);
            cx.key("target", |cx| cx.warn(None, message, None).suggestion = Some("5 to 10 % of `interval`".into()));
        }
    }

    fn marks(params: &CodelParams) -> bool {
        params.ecn || params.ce_threshold.is_some()
    }

    fn drops(_params: &CodelParams) -> bool {
        true
    }

    fn on_head(&mut self, head: &Head, p: &Envelope) -> MarkVerdict {
        if self.classes.len() <= head.class.index() {
            self.classes.resize(head.class.index() + 1, Class::default());
        }
        let (params, class) = (&self.params, &mut self.classes[head.class]);
        let behind = head.class_bytes - u64::from(p.frame);
        let ect = p.ecn != Ecn::NotEct;
        let markable = params.ecn && ect;
        match class.acts(params, head.port.now, head.waited, behind, markable) {
            true if markable => MarkVerdict::Mark(MARK),
            true => MarkVerdict::Drop(DROP),
            false if ect && params.ce_threshold.is_some_and(|threshold| head.waited > threshold) => {
                MarkVerdict::Mark(MARK_BY_WAIT)
            }
            false => MarkVerdict::Pass,
        }
    }

    fn acts_at_enqueue(&self) -> bool {
        false
    }

    fn decides_at_head(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "codel_tests.rs"]
mod tests;
