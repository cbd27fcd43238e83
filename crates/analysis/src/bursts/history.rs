//! Load of the port shortly before a burst.

use fanin_units::BPS;

/// Windows that are remembered.
const WINDOWS: usize = 16;
/// Number of windows that are asked for.
const ASKED: u64 = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Number of the window, plus 1.
    number: u64,
    wire: u64,
    packets: u64,
    queue: u128,
    queues: u64,
}

/// Means over the time before a burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Before {
    /// Arrivals, bit/s on the wire.
    pub rate_bps: f64,
    /// Queue that arrivals found, bytes.
    pub queue: Option<f64>,
    pub packets: u64,
}

/// The last windows of arrivals.
#[derive(Debug)]
pub struct Recent {
    windows: [Window; WINDOWS],
    width: u64,
    current: u64,
    ends: u64,
}

impl Recent {
    /// Windows that together cover `span`.
    pub fn new(span: u64) -> Self {
        Recent { windows: [Window::default(); WINDOWS], width: (span / ASKED).max(1), current: 0, ends: 0 }
    }

    #[inline(always)]
    pub fn add(&mut self, time: u64, wire: u64, queue: Option<u64>) {
        if time >= self.ends {
            self.roll(time);
        }
        let w = &mut self.windows[self.current as usize % WINDOWS];
        w.wire += wire;
        w.packets += 1;
        if let Some(queue) = queue {
            w.queue += u128::from(queue);
            w.queues += 1;
        }
    }

    #[inline(never)]
    fn roll(&mut self, time: u64) {
        self.current = time / self.width;
        self.ends = (self.current + 1).saturating_mul(self.width);
        self.windows[self.current as usize % WINDOWS] = Window { number: self.current + 1, ..Window::default() };
    }

    /// Contents of the whole windows before `start`, when they are still remembered and the trace had begun (`first`).
    pub fn before(&self, start: u64, first: u64) -> Option<Before> {
        let to = start / self.width;
        let from = to.saturating_sub(ASKED).max(first.div_ceil(self.width));
        if from >= to || self.current >= to + (WINDOWS as u64 - ASKED) {
            return None;
        }
        let (mut wire, mut packets, mut queue, mut queues) = (0u64, 0, 0u128, 0u64);
        for w in self.windows.iter().filter(|w| w.number > from && w.number <= to) {
            wire += w.wire;
            packets += w.packets;
            queue += w.queue;
            queues += w.queues;
        }
        let span = (to - from) as f64 * self.width as f64;
        let queue = (queues > 0).then(|| queue as f64 / queues as f64);
        Some(Before { rate_bps: wire as f64 * BPS / span, queue, packets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_before_a_burst_are_summed_and_no_others() {
        let mut recent = Recent::new(8_000);
        for time in (0..20_000).step_by(100) {
            recent.add(time, if time < 12_000 { 10 } else { 1_000 }, Some(time));
        }
        let b = recent.before(12_000, 0).unwrap();
        assert_eq!(b.packets, 80);
        assert!((b.rate_bps - 80.0 * 10.0 * BPS / 8000.0).abs() < 1.0);
        assert!((b.queue.unwrap() - 7_950.0).abs() < 1.0);
        assert_eq!(recent.before(500, 0), None, "before the first window nothing is known");
    }

    #[test]
    fn windows_that_have_gone_are_not_invented() {
        let mut recent = Recent::new(8_000);
        for time in (0..100_000).step_by(100) {
            recent.add(time, 10, None);
        }
        assert_eq!(recent.before(12_000, 0), None);
    }
}
