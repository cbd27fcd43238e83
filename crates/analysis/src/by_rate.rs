//! Detection by arrival rate: windows on a grid that begins at time 0, hot where they are offered more than a share of the speed.

use crate::port::{End, PortAnalyzer, State};
use crate::{Record, NO_QUEUE};

/// The window that is open.
#[derive(Debug)]
pub(crate) struct ByRate {
    pub width: u64,
    /// Wire bytes of a window above which it is hot.
    pub hot: f64,
    pub start: u64,
    pub wire: u64,
    /// Most wire bytes of a window of this burst.
    pub largest: u64,
    /// Most wire bytes of a window of the whole trace, and when it began.
    pub busiest: (u64, u64),
}

impl PortAnalyzer {
    /// Detection by arrival rate.
    #[inline(always)]
    pub(crate) fn step_by_rate(&mut self, r: &Record, now: u64) {
        let queue = if r.queue == NO_QUEUE { 0 } else { r.queue };
        let over = self.by_rate.as_ref().is_some_and(|w| now - w.start >= w.width);
        if over || !self.begun {
            self.roll(now, queue);
        }
        if let Some(w) = &mut self.by_rate {
            w.wire += u64::from(r.frame) + self.settings.overhead.0;
        }
        if r.queue != NO_QUEUE {
            self.may_be_empty(queue);
            if queue > self.candidate.peak {
                self.peak(queue, now);
            }
        }
    }

    /// A window is over.
    #[inline(never)]
    pub(crate) fn roll(&mut self, now: u64, queue: u64) {
        let Some(w) = &mut self.by_rate else { return };
        let (hot, over, wire) = (w.wire as f64 > w.hot, w.start.saturating_add(w.width), w.wire);
        w.start = now / w.width * w.width;
        w.wire = 0;
        let start = w.start;
        if wire > w.busiest.0 {
            w.busiest = (wire, over - w.width);
        }
        if hot && self.begun {
            if self.totals.without_queue == self.totals.records && wire > w.largest {
                w.largest = wire;
                self.candidate.peak_time = over - w.width;
            }
            if self.state == State::Outside {
                self.enter();
            }
            if self.totals.without_queue > 0 {
                self.flows.peak();
                self.candidate.dirty = true;
            }
            self.state = State::Ending;
            if self.candidate.dirty {
                self.settle();
            }
            let c = &self.candidate;
            let at = Some((c.peak, c.peak_time, c.direct.clone(), c.indirect.clone()));
            self.end = Some(End { time: over, counts: self.counts(), at });
        }
        let over = self.end.as_ref().is_some_and(|end| start > end.time && start - end.time >= self.merge);
        if self.state == State::Ending && over {
            self.close(false);
        }
        if self.state == State::Outside {
            if let Some(w) = &mut self.by_rate {
                w.largest = 0;
            }
            if self.totals.without_queue > 0 {
                self.flows.empty();
            }
            self.begin(start, queue, false);
        }
    }
}
