//! Estimate of the port's speed, from the bytes that it sent while it was busy.
//!
//! Between two arrivals of one busy period, bytes sent = bytes accepted − growth of the queue. The error is one frame at each end,
//! so windows last until 64 frames of the largest size have been sent.

use fanin_units::BPS;

/// Number of estimates that are kept.
const KEPT: usize = 1024;
/// Number of frames sent in a window.
const FRAMES: u64 = 64;
/// Fall of the queue, in bytes, over which a lower bound is taken where frames are unknown.
const FALL: u64 = 16 * crate::bursts::scale::FULL_FRAME;

#[derive(Clone, Copy, Debug)]
struct Window {
    time: u64,
    queue: u64,
    accepted: u64,
    departed: u64,
}

/// Low quarter, middle and high quarter of the estimates, bit/s on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
    pub windows: u64,
}

#[derive(Debug, Default)]
pub struct RateEstimator {
    window: Option<Window>,
    rates: Vec<f64>,
    step: u32,
    seen: u64,
    fall: Option<(u64, u64, u64)>,
    steepest: f64,
}

impl RateEstimator {
    /// Takes an arrival at `time` that found `queue`; `accepted` bytes were taken before it and not dropped since, `departed`
    /// packets were sent. `explained`: nothing is missing.
    #[inline(always)]
    pub fn found(
        &mut self,
        time: u64,
        queue: u64,
        accepted: u64,
        departed: u64,
        (largest, overhead, explained): (u64, u64, bool),
    ) {
        if largest == 0 {
            self.fall(time, queue);
            return;
        }
        if queue < 2 * largest || !explained {
            self.window = None;
            return;
        }
        let Some(w) = self.window else {
            self.window = Some(Window { time, queue, accepted, departed });
            return;
        };
        let sent = (accepted + w.queue).saturating_sub(w.accepted + queue);
        if sent >= FRAMES * largest && time > w.time {
            let wire = sent + overhead * (departed - w.departed);
            self.keep(wire as f64 * BPS / (time - w.time) as f64);
            self.window = Some(Window { time, queue, accepted, departed });
        }
    }

    /// Least time of a window at a speed [ps]; `largest`: bytes of the largest frame.
    #[cfg(feature = "files")]
    pub fn shortest(largest: u64, bps: f64) -> f64 {
        (FRAMES * largest) as f64 * BPS / bps
    }

    fn keep(&mut self, rate: f64) {
        if self.seen & ((1 << self.step) - 1) == 0 {
            if self.rates.len() == KEPT {
                let mut keep = false;
                self.rates.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.step += 1;
            }
            self.rates.push(rate);
        }
        self.seen += 1;
    }

    fn fall(&mut self, time: u64, queue: u64) {
        match self.fall {
            Some((since, from, last)) if queue <= last => {
                if from - queue >= FALL && time > since {
                    self.steepest = self.steepest.max((from - queue) as f64 * BPS / (time - since) as f64);
                    self.fall = Some((time, queue, queue));
                } else {
                    self.fall = Some((since, from, queue));
                }
            }
            _ => self.fall = Some((time, queue, queue)),
        }
    }

    /// Estimate of the port's speed. Where records are missing, windows that lack some come out too slow, so the upper part is taken.
    pub fn estimate(&self, holes: bool) -> Option<Estimate> {
        let mut rates = self.rates.clone();
        if rates.is_empty() {
            return None;
        }
        rates.sort_by(f64::total_cmp);
        let at = |q: f64| rates[((rates.len() - 1) as f64 * q) as usize];
        let middle = if holes { at(0.9) } else { at(0.5) };
        Some(Estimate { low: at(0.25).min(middle), middle, high: at(0.75).max(middle), windows: self.seen })
    }

    /// Lower bound of the port's speed, by the steepest fall of its queue; for traces without frames.
    pub fn lower_bound(&self) -> Option<f64> {
        (self.steepest > 0.0).then_some(self.steepest)
    }
}
