//! Detection by arrival rate: windows on a grid that begins at time 0 are hot where the port is offered more than a share of its
//! speed, and more than its own steady load.

use crate::bursts::port::{End, PortAnalyzer, State};
use crate::display::{percent, rate, span};
use crate::{Record, Settings, Steady, NO_QUEUE};
use fanin_units::{Bytes, BPS};

/// Number of alike windows in a row that make a steady load: that is no burst. Bursts of IMC17-microbursts last 8 windows of
/// theirs at the 90th percentile; this is eight times that.
const STEADY: u64 = 64;
/// Largest distance of a window from the mean of alike ones, as a part of the bytes that the port could send. A window of 20
/// frames of an even stream has one frame more or less, and some such streams together a few.
pub(crate) const ALIKE: f64 = 0.15;
/// Part of its speed from which a port counts as congested, however steady the load.
const SATURATED: f64 = 0.95;

/// The windows of a port.
#[derive(Debug)]
pub(crate) struct ByRate {
    pub width: u64,
    /// Wire bytes that the port could send in a window.
    could: f64,
    share: f64,
    /// The open window: its begin, its first packet and its wire bytes.
    start: u64,
    first: u64,
    wire: u64,
    /// Most wire bytes of a window of this burst.
    largest: u64,
    /// End of the last hot window.
    hot_until: u64,
    /// Most wire bytes of a window of the whole trace, and the begin of that window.
    pub busiest: (u64, u64),
    alike: Alike,
    /// Wire bytes of a window of the last steady load, and the end of the last window that had as much.
    level: Option<(f64, u64)>,
    /// Time of steady load and its wire bytes: any, and above the share.
    any: (u64, f64),
    above: (u64, f64),
}

/// The latest windows, as many as are alike.
#[derive(Debug, Default)]
struct Alike {
    count: u64,
    /// Mean wire bytes of the latest windows.
    mean: f64,
    /// End of the burst that was open before the latest windows.
    before: Option<End>,
    /// Begin of the first of the latest windows, and the bursts that began since then and have ended.
    since: u64,
    ended: Vec<Ended>,
}

/// A burst that has ended, with its share of the counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Height and age, by which the burst is kept.
    pub key: (u64, u64),
    pub duration: u64,
    pub gap: Option<u64>,
    pub peak: Option<u64>,
    /// End of the burst before this one.
    pub previous_end: Option<u64>,
}

impl ByRate {
    pub fn new(settings: &Settings) -> Option<ByRate> {
        let ((window, share), rate) = settings.window().zip(settings.rate)?;
        Some(ByRate {
            width: window.ps(),
            could: rate.bps() as f64 / BPS * window.ps() as f64,
            share,
            start: 0,
            first: 0,
            wire: 0,
            largest: 0,
            hot_until: 0,
            busiest: (0, 0),
            alike: Alike::default(),
            level: None,
            any: (0, 0.0),
            above: (0, 0.0),
        })
    }

    /// Wire bytes of a window above which it is hot: the share, but more than windows of a steady load have; where that is above
    /// the share, half of the rest.
    fn threshold(&self) -> f64 {
        let least = self.share * self.could;
        match self.level {
            Some((level, _)) if level > least => (level + self.could) / 2.0,
            Some((level, _)) => least.max(level + ALIKE * self.could),
            None => least,
        }
    }

    /// True if the window that is open is hot by now.
    pub fn is_hot(&self) -> bool {
        self.wire as f64 > self.threshold()
    }

    pub fn over(&self) -> u64 {
        self.start.saturating_add(self.width)
    }

    /// Takes a window that has ended into the latest ones; true where these are a steady load.
    fn steady(&mut self, before: Option<&End>) -> bool {
        let (wire, over) = (self.wire as f64, self.over());
        let near = |other: f64| (wire - other).abs() <= ALIKE * self.could;
        if self.alike.count > 0 && near(self.alike.mean) {
            self.alike.count += 1;
            self.alike.mean += (wire - self.alike.mean) / self.alike.count.min(STEADY) as f64;
        } else {
            self.alike = Alike { count: 1, mean: wire, before: before.cloned(), since: self.start, ended: Vec::new() };
        }
        match &mut self.level {
            Some((level, until)) if near(*level) => *until = over,
            Some((_, until)) if over - *until > STEADY * self.width => self.level = None,
            _ => {}
        }
        let mean = self.alike.mean;
        if self.alike.count < STEADY || mean >= SATURATED * self.could {
            return false;
        }
        let new = if self.alike.count == STEADY { (STEADY * self.width, STEADY as f64 * mean) } else { (self.width, wire) };
        let add = |sum: &mut (u64, f64)| *sum = (sum.0 + new.0, sum.1 + new.1);
        add(&mut self.any);
        if mean > self.share * self.could {
            add(&mut self.above);
        }
        self.level = Some((mean, over));
        true
    }

    /// Keys of bursts that have ended and may still turn out to be steady load.
    pub fn pending(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.alike.ended.iter().map(|burst| burst.key)
    }

    /// A burst has ended that began at `start`.
    pub fn ended(&mut self, start: u64, burst: Ended) {
        if start >= self.alike.since && self.alike.count > 0 {
            self.alike.ended.push(burst);
        }
    }

    /// The steady load above the share, if there was some; `any`: also below.
    pub fn steady_load(&self, speed: f64, any: bool) -> Option<Steady> {
        let (ps, wire) = if any { self.any } else { self.above };
        let share = wire / (ps as f64 / self.width as f64 * self.could);
        let needs = percent(self.share.max(f64::midpoint(share, 1.0)));
        let of = format!("the load is steady, {} of {} for {}", percent(share), rate(speed), span(ps));
        let words =
            if share > self.share { format!("{of}: that is no burst, and one on top of it needs more than {needs}") } else { of };
        (ps > 0).then_some(Steady { ps, share, words })
    }
}

impl PortAnalyzer {
    /// Takes back bursts of windows that turn out to be steady load: they had no more than a frame above the share.
    fn take_back(&mut self) {
        let ended = self.by_rate.as_mut().map(|w| std::mem::take(&mut w.alike.ended)).unwrap_or_default();
        if let Some(first) = ended.first() {
            self.previous_end = first.previous_end;
        }
        for burst in ended {
            self.totals.bursts -= 1;
            self.totals.burst_ps -= u128::from(burst.duration);
            self.durations.remove(burst.duration);
            burst.gap.into_iter().for_each(|gap| self.gaps.remove(gap));
            burst.peak.into_iter().for_each(|peak| self.peaks.remove(peak));
            self.kept.remove(&burst.key);
            self.detailed.remove(&burst.key);
        }
    }

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

    /// Ends a window, and begins another with its first packet.
    #[inline(never)]
    pub(crate) fn roll(&mut self, now: u64, queue: u64) {
        let Some(w) = &mut self.by_rate else { return };
        let (hot, over, wire, first) = (w.is_hot(), w.over(), w.wire, w.first);
        let open = if self.state == State::Outside { None } else { self.end.as_ref() };
        let steady = self.begun && w.steady(open);
        let start = now / w.width * w.width;
        if start > over {
            w.alike = Alike::default();
        }
        (w.start, w.first, w.wire) = (start, now, 0);
        if wire > w.busiest.0 {
            w.busiest = (wire, first);
        }
        if hot && self.begun {
            w.hot_until = over;
            if wire > w.largest {
                w.largest = wire;
                if self.totals.without_queue == self.totals.records {
                    self.candidate.peak_time = first;
                }
            }
            let (largest, width) = (w.largest, w.width);
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
            // Until the last packet has left.
            let frame = Bytes(u64::from(self.last.frame) + self.settings.overhead.0);
            let left = self.settings.rate.map_or(0, |rate| rate.time_to_send(frame).ps());
            let time = self.last.time.ps().saturating_add(left).min(over.saturating_add(width));
            self.end = Some(End { time, counts: self.counts(), at, drained: None, busiest: largest });
        }
        if steady && self.state == State::Ending {
            // The burst was over before the load became steady, or there was none.
            self.end = self.by_rate.as_mut().and_then(|w| w.alike.before.take());
            self.close(false);
            self.state = State::Outside;
        }
        if steady {
            self.take_back();
        }
        let hot_until = self.by_rate.as_ref().map_or(0, |w| w.hot_until);
        let over = self.end.as_ref().is_some_and(|end| start > hot_until && now - end.time >= self.merge);
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
            self.begin(now, queue, false);
        }
    }
}
