//! Check that arrivals at a port whose queue is estimated can have met that queue: behind a bottleneck they cannot.
//!
//! A port that is busy sends frames one right after another, so behind it they come at just its speed, and hardly one of them would
//! wait at a port that is a little faster: by so much that a few bytes of overhead more or less do not matter. Before it, several senders that
//! fill a line get in one another's way: at 86 % of what a port carries (90 % of the line) a packet of random arrivals waits for two to three
//! frames in the mean (M/D/1), and for more where packets come in groups.

use crate::checks::records::{carried_in, window_of};
use crate::checks::{Finding, Level};
use crate::display::{rate as rate_of, span};
use fanin_units::{BitRate, Bytes};

/// Share of the line, about 1, that counts as just its speed.
const NEAR: f64 = 0.1;
/// Windows at that speed that are needed.
const ENOUGH: u64 = 8;
/// Speed of the port that the check supposes, as a multiple of its own.
const FASTER: f64 = 1.05;
/// Backlog behind a busy port that inexact stamps explain [bytes], and the share of packets that may find more.
const FRAMES: f64 = 2.0 * 1538.0;
const FEW: u64 = 50;

/// Windows of arrivals.
#[derive(Clone, Copy, Debug)]
pub struct LineCheck {
    window: u64,
    carried: f64,
    start: u64,
    bytes: u64,
    /// Backlog of a port that is a little faster [bytes], and its time.
    backlog: f64,
    last: u64,
    /// Packets of the window, and those of them that found more than can wait behind a busy port.
    packets: u64,
    waiting: u64,
    /// Sums of all windows at the speed of the line, and their number.
    all: (u64, u64, u64),
}

impl LineCheck {
    pub fn new(rate: BitRate, overhead: Bytes) -> Self {
        let window = window_of(rate, overhead);
        let carried = carried_in(window, rate) as f64;
        LineCheck { window, carried, start: 0, bytes: 0, backlog: 0.0, last: 0, packets: 0, waiting: 0, all: (0, 0, 0) }
    }

    /// Takes the arrival of a packet of `wire` bytes on the wire.
    #[inline]
    pub fn see(&mut self, time: u64, wire: u64) {
        if time - self.start >= self.window {
            if (self.bytes as f64 / self.carried - 1.0).abs() <= NEAR {
                self.all = (self.all.0 + self.packets, self.all.1 + self.waiting, self.all.2 + 1);
            }
            let start = time - time % self.window;
            *self = LineCheck { start, bytes: 0, packets: 0, waiting: 0, ..*self };
        }
        let sent = (time - self.last) as f64 * self.carried / self.window as f64 * FASTER;
        let found = (self.backlog - sent).max(0.0);
        (self.backlog, self.last) = (found + wire as f64, time);
        self.bytes += wire;
        self.packets += 1;
        self.waiting += u64::from(found > FRAMES);
    }

    pub fn finding(&self, rate: BitRate, port: &str) -> Option<Finding> {
        let (packets, waiting, windows) = self.all;
        if windows < ENOUGH || waiting * FEW > packets {
            return None;
        }
        Some(Finding {
            code: "behind_port",
            level: Level::Doubt,
            place: port.to_string(),
            count: windows,
            bytes: None,
            words: format!(
                "in {windows} windows of {} packets come at just {}, and hardly one of them would wait: so frames leave a port that is busy, \
                 and the queue was before this capture",
                span(self.window),
                rate_of(rate.bps() as f64)
            ),
            hint: "capture before the port: behind it, its queue and drops cannot be estimated. Right before it, a single sender whose link \
                   is as fast as the port looks the same, and has its queue at the sender"
                .into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::estimate::{Buffer, Lindley};
    use crate::{Record, NO_FLOW, NO_QUEUE};
    use fanin_units::Time;

    const RATE: BitRate = BitRate::from_gbps(1);

    /// Arrivals [ps] of full frames, as the estimate sees them.
    fn doubted(times: impl Iterator<Item = u64>) -> bool {
        let mut port = Lindley::new(RATE, Bytes(20), Buffer::Unlimited);
        for time in times {
            port.take(&Record { time: Time::from_ps(time), queue: NO_QUEUE, frame: 1518, flow: NO_FLOW, flags: 0 });
        }
        port.finding("p").is_some()
    }

    const FRAME: u64 = 1538 * 8_000;

    #[test]
    fn trains_at_the_speed_of_the_line_come_from_behind_a_port() {
        // One after another, with what stamps are off by, and pauses.
        let train = |i: u64| i * FRAME + (i * 7_919 % 2_000_000) + i / 100 * 50 * FRAME;
        assert!(doubted((0..1_000).map(train)));
        // Of frames that are counted with more bytes than they take.
        assert!(doubted((0..2_000).map(|i| i * FRAME * 984 / 1_000)));
        // The same too short to say so, and at half of the speed.
        assert!(!doubted((0..200).map(train)));
        assert!(!doubted((0..1_000).map(|i| 2 * i * FRAME)));
    }

    #[test]
    fn senders_that_fill_a_line_wait_for_one_another() {
        // 16 senders at 6 % of the line each, none in step with another.
        let mut random = 1_u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        let mut times: Vec<u64> =
            (0..16).flat_map(|_| (0..500).map(|i| (i * 16 + below(32)) * FRAME * 100 / 96).collect::<Vec<_>>()).collect();
        times.sort_unstable();
        assert!(!doubted(times.into_iter()));
        // A burst every 100 frames.
        assert!(!doubted((0..5_000).map(|i| i / 100 * 100 * FRAME + i % 100 * FRAME / 10)));
    }
}
