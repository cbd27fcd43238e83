//! Ends of bursts: with the next arrival that finds the queue low, or earlier, when the queue was empty.

use crate::bursts::burst::{close, Context};
use crate::bursts::by_rate::Ended;
use crate::bursts::port::{Counts, End, PortAnalyzer, State};
use crate::{Record, NO_QUEUE};
use fanin_units::BPS;

/// The last packet that joined the queue: once it leaves, and no other has come, the queue is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastIn {
    pub time: u64,
    /// Queue that the packet found; [`NO_QUEUE`]: unknown.
    pub queue: u64,
    pub frame: u64,
    /// Time that the packet waited, where the trace says.
    pub wait: Option<u64>,
    /// Start of the packet's transmission, from the port's speed and all arrivals; 0 where that speed was not given.
    pub turn: u64,
}

impl PortAnalyzer {
    /// The queue is low at `r`: the burst ends here, or when the queue was empty.
    #[inline(never)]
    pub(crate) fn is_low(&mut self, r: &Record, now: u64) {
        let emptied = self.emptied(r.queue, now);
        let (end, queue) = emptied.map_or((now, r.queue), |at| (at, 0));
        self.series.push(&Record { time: fanin_units::Time::from_ps(end), queue, ..*r }, crate::bursts::flows::UNKNOWN);
        self.may_end(end, emptied.map(|_| (self.last.time.ps(), self.last.queue)).filter(|last| last.1 != NO_QUEUE));
        if now - end >= self.merge {
            self.close(false);
            self.begin(now, r.queue, false);
        }
    }

    /// Time at which the queue was empty, before an arrival at `now` found `queue`; `None`: it was not empty, or only about now.
    ///
    /// It is known by the wait of the last packet that joined it; else what that one found drains at the port's speed, given, estimated, or
    /// as far as this burst shows it. Without any, the burst is over with its last record. One frame may be a packet of the same instant,
    /// or the one that found it; where records are missing, more may have come since.
    fn emptied(&self, queue: u64, now: u64) -> Option<u64> {
        let last = &self.last_in;
        if (queue > self.one_frame() && !self.standing.holes) || last.time < self.candidate.start {
            return None;
        }
        let at = match last.wait {
            Some(wait) => last.time.saturating_add(wait),
            None => self.drained(last),
        };
        Some(at.max(self.last_time())).filter(|at| *at < now)
    }

    /// Time at which the queue that the last packet found had been sent, by the port's speed.
    fn drained(&self, last: &LastIn) -> u64 {
        if last.queue == NO_QUEUE {
            return last.time.max(last.turn);
        }
        let counts = &self.candidate.counts;
        let frame = counts.bytes as f64 / (counts.records - counts.unsized_packets).max(1) as f64;
        let overhead = self.settings.overhead.0 as f64;
        let wire = |bytes: f64| if frame > 0.0 { bytes * (1.0 + overhead / frame) } else { bytes };
        let ps = |bytes: f64, rate: f64| (bytes * BPS / rate) as u64;
        if let Some(rate) = self.rate() {
            // Before it, the rest of a frame was on the wire.
            let least = last.time.saturating_add(ps(wire(last.queue as f64), rate));
            let most = least.saturating_add(ps(self.totals.largest_frame as f64 + overhead, rate));
            return if last.turn == 0 { most } else { last.turn.clamp(least, most) };
        }
        // The port is at least as fast as it was in this burst.
        let c = &self.candidate;
        let kept = c.start_queue.saturating_add(counts.bytes).saturating_sub(counts.dropped_bytes).saturating_sub(last.frame);
        // But for the frame that was on the wire.
        let sent = kept.saturating_sub(last.queue).saturating_sub(self.totals.largest_frame) as f64;
        if counts.unsized_packets > 0 || sent <= 0.0 {
            return last.time;
        }
        let drained = last.queue as f64 / sent * (last.time - c.start) as f64;
        last.time.saturating_add(drained as u64)
    }

    /// The port's speed on the wire, given or estimated by now.
    fn rate(&self) -> Option<f64> {
        let given = self.settings.rate.map(|rate| rate.bps() as f64);
        given.or_else(|| self.estimator.estimate(self.standing.holes).map(|e| e.middle))
    }

    fn may_end(&mut self, time: u64, drained: Option<(u64, u64)>) {
        if self.candidate.dirty {
            self.settle();
        }
        self.state = State::Ending;
        self.end = Some(End { time, counts: self.counts(), at: None, drained, busiest: 0 });
    }

    /// Ends the burst; `open`: the trace ended inside.
    pub(crate) fn close(&mut self, open: bool) {
        let Some(mut end) = self.end.take() else { return };
        if self.candidate.dirty {
            self.settle();
        }
        if let Some(at) = end.at.take() {
            let c = &mut self.candidate;
            (c.peak, c.peak_time, c.direct, c.indirect) = at;
        }
        self.state = State::Outside;
        let index = self.totals.bursts;
        self.totals.bursts += 1;
        let start = self.candidate.start;
        self.totals.burst_ps += u128::from(end.time - start);
        self.durations.add(end.time - start);
        let gap = self.previous_end.map(|previous| start.saturating_sub(previous));
        if let Some(gap) = gap {
            self.gaps.add(gap);
        }
        let previous_end = self.previous_end.replace(end.time);
        let has_queue = self.totals.without_queue < self.totals.records;
        if has_queue {
            self.peaks.add(self.candidate.peak);
        }
        let height = if has_queue { self.candidate.peak } else { end.counts.bytes };
        let key = (height, u64::MAX - index);
        if let Some(w) = &mut self.by_rate {
            let peak = has_queue.then_some(self.candidate.peak);
            w.ended(start, Ended { key, duration: end.time - start, gap, peak, previous_end });
        }
        if self.kept.len() >= self.settings.max_bursts {
            if self.kept.first_key_value().is_some_and(|(lowest, _)| *lowest > key) {
                return;
            }
            // The lowest of all has detail only where all have.
            if let Some((lowest, _)) = self.kept.pop_first() {
                self.detailed.remove(&lowest);
            }
        }
        let context = Context {
            settings: &self.settings,
            lookup: &self.lookup,
            rate: self.rate(),
            first: self.totals.first,
            largest: self.totals.largest_frame,
            has_queue,
            window: self.by_rate.as_ref().map(|w| w.width),
        };
        let detailed = self.detailed.len() < self.settings.detailed || self.detailed.first().is_some_and(|lowest| *lowest < key);
        if detailed {
            self.detailed.insert(key);
            if self.detailed.len() > self.settings.detailed {
                if let Some(kept) = self.detailed.pop_first().and_then(|lowest| self.kept.get_mut(&lowest)) {
                    kept.forget_detail();
                }
            }
        }
        let closed = close(&context, &mut self.candidate, &end, (index, gap, open, detailed), (&self.series, &mut self.flows));
        self.kept.insert(key, closed);
    }

    /// The trace has ended: a burst that is open is closed.
    pub(crate) fn end_of_trace(&mut self) {
        let last = self.last.time.ps();
        if self.by_rate.is_some() && self.begun {
            let (over, inside) = self.by_rate.as_ref().map_or((last, false), |w| (w.over(), w.is_hot()));
            self.roll(over, 0);
            if let (true, Some(end)) = (inside, &mut self.end) {
                end.time = end.time.min(last.max(self.candidate.start));
                end.counts = Counts { flows: self.candidate.flows.len(), ..self.candidate.counts };
            }
            self.close(inside);
        } else if self.state == State::Inside {
            self.may_end(last, None);
            self.close(true);
        } else {
            self.close(false);
        }
    }
}
