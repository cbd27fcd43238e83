//! HyStart: the end of slow start before a loss, as CUBIC has it in Linux.
//!
//! Source: Linux tcp_cubic.c (hystart_update, hystart_ack_delay), kernels 5.16 and later.

use super::{Ack, Window};
use crate::config::{Pacing, Tcp};
use fanin_units::{Span, Time};

/// Below this window it does nothing \[segments\]. Source: Linux hystart_low_window.
const LOW_WINDOW: u32 = 16;
/// ACKs at most this far apart make a train. Source: Linux hystart_ack_delta_us.
const ACK_DELTA: Span = Span::from_us(2_000);
/// Samples before the delay of a round counts. Source: Linux HYSTART_MIN_SAMPLES.
const MIN_SAMPLES: u8 = 8;
/// Bounds of the increase of the delay that ends slow start. Source: Linux HYSTART_DELAY_MIN, HYSTART_DELAY_MAX.
const DELAY_THRESH: (Span, Span) = (Span::from_us(4_000), Span::from_us(16_000));
/// Bound of the allowance for segmentation and receive offload. Source: Linux hystart_ack_delay (1 ms).
const MOST_ACK_DELAY: Span = Span::from_us(1_000);
/// Samples that follow the start of a congestion avoidance within this time are not taken. Source: Linux cubictcp_acked (HZ).
const AFTER_EPOCH: Span = Span::from_s(1);

/// The least RTT, and HyStart where slow start has it. Source: Linux cubictcp_acked.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    /// delay_min; zero before the first sample.
    pub min: Span,
    pub hystart: Option<HyStart>,
}

impl Delays {
    /// An RTT sample; `epoch`: the start of the present congestion avoidance. ssthresh falls to cwnd where slow start shall end.
    ///
    /// Deviation: segments that were sent again give no sample, where Linux takes the echoed timestamp; nor do ACKs outside
    /// recovery that acknowledge selectively only.
    #[inline(never)]
    pub fn sample(&mut self, w: &mut Window, ack: &Ack, rtt: Span, epoch: Option<Time>) {
        if epoch.is_some_and(|start| ack.now.since(start) < AFTER_EPOCH) {
            return;
        }
        let rtt = rtt.max(Span::from_ps(1));
        if self.min == Span::ZERO || rtt < self.min {
            self.min = rtt;
        }
        if let Some(hystart) = self.hystart.as_mut().filter(|h| !h.found && w.in_slow_start()) {
            hystart.update(w, ack, rtt, self.min);
        }
    }

    /// A timeout: all is forgotten, and slow start may end by itself again. Source: Linux cubictcp_state.
    pub fn reset(&mut self, now: Time, nxt: u64) {
        self.min = Span::ZERO;
        if let Some(hystart) = &mut self.hystart {
            hystart.found = false;
            hystart.begin_round(now, nxt);
        }
    }
}

/// The state of HyStart.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// Slow start has been ended.
    pub found: bool,
    samples: u8,
    /// Whether pacing spreads the segments of a round.
    paced: bool,
    /// Gains of the pacing rate in slow start and near its end; Linux computes that rate without pacing too.
    gains: (f64, f64),
    /// The largest packet that the host hands to its NIC \[bytes\].
    gso_max: f64,
    round_start: Time,
    /// End of the round in the stream.
    round_end: u64,
    /// The last ACK of the train.
    last_ack: Time,
    /// The least RTT in this round.
    least: Span,
}

impl HyStart {
    pub fn new(tcp: &Tcp) -> Self {
        let gains = match &tcp.pacing {
            Pacing::Fq(paced) => (paced.slow_start_gain, paced.gain),
            Pacing::None(_) => (2.0, 1.2),
        };
        HyStart {
            found: false,
            samples: 0,
            paced: matches!(tcp.pacing, Pacing::Fq(_)),
            gains,
            gso_max: tcp.tso_max.get() as f64,
            round_start: Time::ZERO,
            round_end: 1,
            last_ack: Time::ZERO,
            least: Span::MAX,
        }
    }

    /// Source: Linux bictcp_hystart_reset.
    fn begin_round(&mut self, now: Time, nxt: u64) {
        self.round_start = now;
        self.last_ack = now;
        self.round_end = nxt;
        self.least = Span::MAX;
        self.samples = 0;
    }

    /// Source: Linux hystart_update.
    fn update(&mut self, w: &mut Window, ack: &Ack, rtt: Span, delay_min: Span) {
        if ack.una > self.round_end {
            self.begin_round(ack.now, ack.nxt);
        }
        if w.cwnd < w.segments(LOW_WINDOW) {
            return;
        }
        if ack.now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = ack.now;
            let mut threshold = delay_min + self.ack_delay(w, ack);
            if !self.paced {
                threshold = threshold / 2;
            }
            self.found |= ack.now.since(self.round_start) > threshold;
        }
        self.least = self.least.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let (least, most) = DELAY_THRESH;
            self.found |= self.least > delay_min + (delay_min / 8).clamp(least, most);
        }
        if self.found {
            w.ssthresh = w.cwnd;
        }
    }

    /// What segmentation and receive offload may add to a train: four of the largest packets at the pacing rate, 1 ms at most.
    /// Source: Linux hystart_ack_delay, tcp_update_pacing_rate.
    fn ack_delay(&self, w: &Window, ack: &Ack) -> Span {
        let gain = if w.cwnd < w.ssthresh / 2 { self.gains.0 } else { self.gains.1 };
        let window = w.cwnd.max(ack.nxt - ack.una) as f64;
        let seconds = 4.0 * self.gso_max * ack.srtt.as_secs_f64() / (gain * window);
        MOST_ACK_DELAY.min(Span::from_secs_f64(seconds.min(1.0)))
    }
}
