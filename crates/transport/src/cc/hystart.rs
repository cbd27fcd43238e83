//! HyStart, which ends slow start before a loss, as in Linux's CUBIC.
//!
//! Source: Linux tcp_cubic.c (hystart_update, hystart_ack_delay), kernels 5.16 and later.

use super::{Ack, Window};
use crate::config::{Pacing, Tcp};
use fanin_units::{Span, Time};

/// Smallest window at which HyStart acts \[segments\]. Source: Linux hystart_low_window.
const LOW_WINDOW: u32 = 16;
/// Largest gap between ACKs of a train. Source: Linux hystart_ack_delta_us.
const ACK_DELTA: Span = Span::from_us(2_000);
/// Number of RTT samples after which the delay of a round counts. Source: Linux HYSTART_MIN_SAMPLES.
const MIN_SAMPLES: u8 = 8;
/// Bounds of the delay increase that ends slow start. Source: Linux HYSTART_DELAY_MIN, HYSTART_DELAY_MAX.
const DELAY_THRESH: (Span, Span) = (Span::from_us(4_000), Span::from_us(16_000));
/// Upper bound of the allowance for segmentation and receive offload. Source: Linux hystart_ack_delay (1 ms).
const MOST_ACK_DELAY: Span = Span::from_us(1_000);
/// Time after the start of a congestion avoidance in which samples are ignored. Source: Linux cubictcp_acked (HZ).
const AFTER_EPOCH: Span = Span::from_s(1);

/// Minimum RTT, and the state of HyStart if slow start uses it. Source: Linux cubictcp_acked.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    /// delay_min, the minimum RTT; zero before the first sample.
    pub min: Span,
    pub hystart: Option<HyStart>,
}

impl Delays {
    /// Takes an RTT sample, and sets ssthresh to cwnd if slow start shall end; `epoch` is the start of the present congestion
    /// avoidance.
    ///
    /// Deviation: retransmitted segments give no sample, where Linux takes the echoed timestamp; nor do ACKs outside
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

    /// Forgets all state after a timeout, so that HyStart may act again. Source: Linux cubictcp_state.
    pub fn reset(&mut self, now: Time, nxt: u64) {
        self.min = Span::ZERO;
        if let Some(hystart) = &mut self.hystart {
            hystart.found = false;
            hystart.begin_round(now, nxt);
        }
    }
}

/// State of HyStart.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// True once HyStart has ended slow start.
    pub found: bool,
    samples: u8,
    /// True if pacing spreads the segments of a round.
    paced: bool,
    /// Gains of the pacing rate in slow start and near its end; Linux computes that rate without pacing, too.
    gains: (f64, f64),
    /// Largest packet that the host hands to its NIC \[bytes\].
    gso_max: f64,
    round_start: Time,
    /// End of the round as an offset in the stream.
    round_end: u64,
    /// Time of the last ACK of the train.
    last_ack: Time,
    /// Minimum RTT in this round.
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

    /// Begins a round. Source: Linux bictcp_hystart_reset.
    fn begin_round(&mut self, now: Time, nxt: u64) {
        self.round_start = now;
        self.last_ack = now;
        self.round_end = nxt;
        self.least = Span::MAX;
        self.samples = 0;
    }

    /// Checks the ACK train and the delay increase. Source: Linux hystart_update.
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

    /// Time by which segmentation and receive offload may lengthen a train: four of the largest packets at the pacing rate, 1
    /// ms at most.
    /// Source: Linux hystart_ack_delay, tcp_update_pacing_rate.
    fn ack_delay(&self, w: &Window, ack: &Ack) -> Span {
        let gain = if w.cwnd < w.ssthresh / 2 { self.gains.0 } else { self.gains.1 };
        let window = w.cwnd.max(ack.nxt - ack.una) as f64;
        let seconds = 4.0 * self.gso_max * ack.srtt.as_secs_f64() / (gain * window);
        MOST_ACK_DELAY.min(Span::from_secs_f64(seconds.min(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{CongestionControl, Cubic};
    use crate::config::{Paced, Profile};

    const MSS: u64 = 1448;
    /// A pacing rate so high that offload adds nothing to a train.
    const NO_OFFLOAD: Span = Span::ZERO;

    fn us(us: u64) -> Span {
        Span::from_us(us)
    }

    /// Rounds of ACKs of one segment each.
    struct Rounds {
        delays: Delays,
        w: Window,
        now: Time,
        una: u64,
        srtt: Span,
    }

    impl Rounds {
        fn new(segments: u64, pacing: Option<Paced>, srtt: Span) -> Self {
            let cubic = Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: true };
            let mut tcp = Tcp::new(Profile::Linux, CongestionControl::Cubic(cubic));
            if let Some(paced) = pacing {
                tcp.pacing = Pacing::Fq(paced);
            }
            let w = Window { cwnd: segments * MSS, ssthresh: Window::INFINITE, mss: MSS as u32 };
            let delays = Delays { min: Span::ZERO, hystart: Some(HyStart::new(&tcp)) };
            Rounds { delays, w, now: Time::ZERO + us(10_000), una: 1, srtt }
        }

        /// A round of `n` ACKs `gap` apart, each with an RTT of `rtt`; how many came before slow start ended, if it did. The window
        /// stays, so that thresholds do.
        fn round(&mut self, n: u64, gap: Span, rtt: Span) -> Option<u64> {
            let end = self.una + n * MSS;
            for i in 1..=n {
                self.una += MSS;
                let ack = Ack { now: self.now, una: self.una, nxt: end + (i - 1) * MSS, srtt: self.srtt, ..Ack::default() };
                self.delays.sample(&mut self.w, &ack, rtt, None);
                if self.w.ssthresh == self.w.cwnd {
                    return Some(i);
                }
                self.now += gap;
            }
            self.now += Span::from_ms(50);
            None
        }
    }

    /// hystart_update: a train longer than half the least RTT. At 10 ms and ACKs 100 us apart that is the 52nd of the round, 5.1 ms
    /// after the first.
    #[test]
    fn a_train_of_half_the_least_rtt_ends_slow_start() {
        let mut rounds = Rounds::new(40, None, NO_OFFLOAD);
        assert_eq!(rounds.round(40, us(100), us(10_000)), None);
        assert_eq!(rounds.round(60, us(100), us(10_000)), Some(52));
        assert_eq!(rounds.w.ssthresh, 40 * MSS);
    }

    /// With pacing the whole least RTT: the segments of a round are spread over half of it by themselves.
    #[test]
    fn with_pacing_a_train_may_be_twice_as_long() {
        let mut rounds = Rounds::new(40, Some(Paced { slow_start_gain: 2.0, gain: 1.2 }), NO_OFFLOAD);
        assert_eq!(rounds.round(40, us(100), us(10_000)), None);
        assert_eq!(rounds.round(150, us(100), us(10_000)), Some(102));
    }

    /// hystart_ack_delay: 4 · 64 KiB at the pacing rate of 2 · 400 segments per ms, 226 us, of which the unpaced sender takes half.
    #[test]
    fn offload_lengthens_the_train() {
        let mut rounds = Rounds::new(400, None, us(1_000));
        assert_eq!(rounds.round(40, us(10), us(1_000)), None);
        assert_eq!(rounds.round(400, us(10), us(1_000)), Some(63)); // (1000 + 226) / 2 = 613 us
    }

    /// The pacing rate goes by what is in flight where that is more than cwnd. Source: Linux tcp_update_pacing_rate (max (cwnd,
    /// packets_out)).
    #[test]
    fn offload_goes_by_what_is_in_flight() {
        let rounds = Rounds::new(400, None, us(1_000));
        let delay = |flight: u64| {
            let ack = Ack { una: 1_000 * MSS, nxt: (1_000 + flight) * MSS, srtt: us(1_000), ..Ack::default() };
            rounds.delays.hystart.as_ref().map_or(0, |h| h.ack_delay(&rounds.w, &ack).ps())
        };
        assert_eq!([delay(1), delay(400)], [delay(300); 2]);
        assert!(delay(400).abs_diff(2 * delay(800)) <= 2, "{} and {}", delay(400), delay(800));
    }

    /// A gap of more than 2 ms ends the train for the rest of the round. Source: Linux hystart_ack_delta_us.
    #[test]
    fn sparse_acks_are_no_train() {
        let mut rounds = Rounds::new(40, None, NO_OFFLOAD);
        for _ in 0..3 {
            assert_eq!(rounds.round(40, us(2_001), us(10_000)), None);
        }
    }

    /// hystart_update: the least of nine samples of a round exceeds delay_min by max (delay_min / 8, 4 ms), 16 ms at most.
    #[test]
    fn a_risen_rtt_ends_slow_start() {
        for (least, thresh) in [(10_000, 4_000), (80_000, 10_000), (400_000, 16_000)] {
            let mut rounds = Rounds::new(40, None, NO_OFFLOAD);
            assert_eq!(rounds.round(40, us(3_000), us(least)), None);
            assert_eq!(rounds.round(40, us(3_000), us(least + thresh)), None);
            assert_eq!(rounds.round(40, us(3_000), us(least + thresh + 1)), Some(9));
        }
    }

    /// One low sample of the round suffices for going on.
    #[test]
    fn the_least_rtt_of_a_round_counts() {
        let mut rounds = Rounds::new(40, None, NO_OFFLOAD);
        rounds.round(40, us(3_000), us(10_000));
        let ack = Ack { now: rounds.now, una: rounds.una + MSS, nxt: rounds.una + 60 * MSS, ..Ack::default() };
        rounds.una += MSS;
        rounds.delays.sample(&mut rounds.w, &ack, us(11_000), None);
        rounds.now += us(3_000);
        let una = rounds.una;
        for i in 1..30 {
            let ack = Ack { now: rounds.now, una: una + i * MSS, nxt: una + 60 * MSS, ..Ack::default() };
            rounds.delays.sample(&mut rounds.w, &ack, us(30_000), None);
            rounds.now += us(3_000);
        }
        assert!(rounds.w.in_slow_start());
    }

    /// Below 16 segments nothing ends slow start. Source: Linux hystart_low_window.
    #[test]
    fn small_windows_are_left_alone() {
        let mut rounds = Rounds::new(15, None, NO_OFFLOAD);
        rounds.round(40, us(100), us(1_000));
        assert_eq!(rounds.round(40, us(100), us(60_000)), None);
    }

    /// cubictcp_acked: no samples in the second after the start of a congestion avoidance; cubictcp_state: a timeout forgets all.
    #[test]
    fn the_least_rtt_is_kept_until_a_timeout() {
        let mut delays = Delays { min: Span::ZERO, hystart: None };
        let mut w = Window { cwnd: MSS, ssthresh: MSS, mss: MSS as u32 };
        let at = |ms: u64| Ack { now: Time::ZERO + Span::from_ms(ms), ..Ack::default() };
        delays.sample(&mut w, &at(10), us(700), None);
        delays.sample(&mut w, &at(1_500), us(500), Some(Time::ZERO + Span::from_ms(501)));
        assert_eq!(delays.min, us(700));
        delays.sample(&mut w, &at(1_501), us(500), Some(Time::ZERO + Span::from_ms(501)));
        delays.sample(&mut w, &at(1_600), us(900), None);
        assert_eq!(delays.min, us(500));
        delays.reset(Time::ZERO, 1);
        assert_eq!(delays.min, Span::ZERO);
    }
}
