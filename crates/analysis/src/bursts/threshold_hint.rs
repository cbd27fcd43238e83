//! Hint for very many bursts: it tells if a load of random arrivals makes such, and the option that leaves only those that stand
//! out.

use crate::bursts::no_burst_hint::two_digits;
use crate::bursts::port::{PortAnalyzer, Totals};
use crate::display::{percent, rate, size};
use crate::{Burst, Detect};
use fanin_units::{Bytes, Span, BPS};

/// Number of bursts from which a hint is given.
const MANY: u64 = 50;
/// Bursts that a suggestion leaves.
const LEAVES: usize = 10;
/// Load above which queues have no bound that a short trace shows.
const MOST: f64 = 0.95;

/// Rate at which the queue of random arrivals (Poisson, equal frames: M/D/1) becomes rare with its length, per frame: θ > 0 with
/// ρ·(e^θ − 1) = θ. In a frame's time ρ frames arrive on average and one leaves, so the mean of e^(θ·growth) is e^(ρ·(e^θ − 1) − θ), and
/// queues beyond n are as rare as e^(−θn) where that is one (the exponent of Cramér and Lundberg).
fn decay(load: f64) -> f64 {
    let over = |theta: f64| load * libm::expm1(theta) > theta;
    let (mut low, mut high) = (1e-6, 50.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        *(if over(middle) { &mut high } else { &mut low }) = middle;
    }
    low
}

impl PortAnalyzer {
    /// A hint where there are very many bursts. `speed`: on the wire.
    pub(crate) fn many(&self, t: &Totals, speed: Option<f64>) -> Option<String> {
        let time = t.last_first(self)?;
        let bursts: Vec<&Burst> = self.kept.values().map(|closed| &closed.burst).collect();
        if t.bursts < MANY || bursts.is_empty() {
            return None;
        }
        let frame = t.accepted as f64 / (t.records - t.without_frame).max(1) as f64;
        let wire = frame + self.settings.overhead.0 as f64;
        let load = speed.map(|speed| t.accepted as f64 * wire / frame.max(1.0) * BPS / (time as f64 * speed));
        let usual = load.zip(speed).filter(|(load, _)| frame > 0.0 && (1e-3..MOST).contains(load));
        let usual = usual.and_then(|(load, speed)| match self.settings.detect {
            Detect::Queue { .. } => usual_queues(t, &bursts, (load, speed), frame),
            Detect::Rate { .. } => self.usual_windows(t, &bursts, (load, speed), (wire, time)),
        });
        usual.or_else(|| highest(&self.settings.detect, t.bursts, &bursts, speed))
    }

    fn usual_windows(
        &self,
        t: &Totals,
        bursts: &[&Burst],
        (load, speed): (f64, f64),
        (wire, time): (f64, u64),
    ) -> Option<String> {
        let width = self.by_rate.as_ref()?.width;
        let room = speed / BPS * width as f64 / wire;
        let rare = libm::log((time as f64 / width as f64).max(2.0));
        // Of so many windows with frames by chance, the fullest has about so much.
        let bound = load + (2.0 * load * rare / room).sqrt();
        let within = bursts.iter().filter(|b| b.busiest_bps.is_some_and(|bps| bps <= bound * speed)).count() as u64;
        let within = within + (t.bursts - bursts.len() as u64);
        if within * 2 < t.bursts {
            return None;
        }
        let share = libm::ceil(f64::midpoint(load, 1.0) * 100.0) / 100.0;
        let frames = 8.0 * load * rare / ((1.0 - load) * (1.0 - load));
        // In two digits, rounded up.
        let us = libm::ceil(frames.max(room) * wire * BPS / speed / 1e6);
        let step = libm::exp10(libm::floor(libm::log10(us)) - 1.0).max(1.0);
        let window = Span::from_us((libm::ceil(us / step) * step) as u64);
        Some(format!(
            "{} have no more in their busiest window than random arrivals bring at this load ({} of {} on average): \
             --window {window} --share {share} leaves what stands out",
            of(within, t.bursts),
            percent(load),
            rate(speed)
        ))
    }
}

impl Totals {
    /// Time from the first record to the last.
    fn last_first(&self, port: &PortAnalyzer) -> Option<u64> {
        port.last_time().checked_sub(self.first).filter(|time| *time > 0)
    }
}

fn of(within: u64, all: u64) -> String {
    if within == all {
        format!("the {all} bursts")
    } else {
        format!("{within} of {all} bursts")
    }
}

fn usual_queues(t: &Totals, bursts: &[&Burst], (load, speed): (f64, f64), frame: f64) -> Option<String> {
    let bound = libm::log(t.records.max(2) as f64) / decay(load) * frame;
    let within = bursts.iter().filter(|b| b.peak_bytes.is_some_and(|peak| peak as f64 <= bound)).count() as u64;
    let within = within + (t.bursts - bursts.len() as u64);
    if within * 2 < t.bursts {
        return None;
    }
    // The bound in two digits, rounded up.
    let down = two_digits(bound as u64);
    let value = Bytes(down + two_digits(bound as u64 / 10).max(1));
    Some(format!(
        "{} are no higher than {}: at this load ({} of {} on average) random arrivals alone make such queues; --above {value} leaves \
         what stands out",
        of(within, t.bursts),
        size(bound),
        percent(load),
        rate(speed)
    ))
}

/// Advice on a threshold that leaves only the highest bursts.
fn highest(detect: &Detect, all: u64, bursts: &[&Burst], speed: Option<f64>) -> Option<String> {
    if all < 2 * MANY || bursts.len() <= LEAVES {
        return None;
    }
    match detect {
        Detect::Queue { .. } => {
            let mut peaks: Vec<u64> = bursts.iter().filter_map(|b| b.peak_bytes).collect();
            peaks.sort_unstable_by(|a, b| b.cmp(a));
            let (half, last) = (*peaks.get(peaks.len() / 2)?, *peaks.get(LEAVES - 1)?);
            let value = Bytes(two_digits(last.saturating_sub(1)));
            // Where they are alike, none stands out.
            (value.0 > half).then(|| {
                format!("{all} bursts, half of them up to {}: --above {value} leaves the highest ones", size(half as f64))
            })
        }
        Detect::Rate { .. } => {
            let mut shares: Vec<f64> =
                bursts.iter().filter_map(|b| b.busiest_bps.zip(speed)).map(|(bps, speed)| bps / speed).collect();
            shares.sort_unstable_by(|a, b| b.total_cmp(a));
            let (half, last) = (*shares.get(shares.len() / 2)?, *shares.get(LEAVES - 1)?);
            let value = libm::floor(last * 100.0 - 0.5) / 100.0;
            (value > half).then(|| {
                format!(
                    "{all} bursts, half of them up to {} of the speed: --share {value} leaves the busiest ones",
                    percent(half)
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_random_arrivals_become_rare() {
        for (load, theta) in [(0.5, 1.2564), (0.9, 0.2071), (0.6, 0.9474)] {
            let found = decay(load);
            assert!((found - theta).abs() < 2e-3, "{load}: {found}");
            assert!((load * libm::expm1(found) - found).abs() < 1e-9);
        }
    }

    /// Frames in an M/D/1 queue as one leaves, by iterating the chain from empty: each of its tail is e^(−θ) as likely as the one before.
    #[test]
    fn the_exponent_is_that_of_the_exact_queue() {
        const STATES: usize = 60;
        for load in [0.3, 0.5, 0.7] {
            let arrive: Vec<f64> =
                std::iter::successors(Some((0.0, libm::exp(-load))), |(k, p)| Some((k + 1.0, p * load / (k + 1.0))))
                    .map(|(_, p)| p)
                    .take(STATES)
                    .collect();
            let mut queue = vec![0.0; STATES];
            queue[0] = 1.0;
            for _ in 0..500 {
                let mut next = vec![0.0; STATES];
                for (q, p) in queue.iter().enumerate() {
                    let stay = q.saturating_sub(1);
                    arrive.iter().take(STATES - stay).enumerate().for_each(|(k, a)| next[stay + k] += p * a);
                }
                queue = next;
            }
            let ratio = queue[21] / queue[20];
            assert!((ratio - libm::exp(-decay(load))).abs() < 1e-6, "{load}: {ratio}");
        }
    }
}
