//! Round-trip time and retransmission timeout. Source: RFC 6298.

use crate::config::{RtoFloor, Tcp};
use fanin_units::Span;

/// RTT estimator: SRTT, RTTVAR and the RTO derived from them.
#[derive(Clone, Copy, Debug)]
#[repr(C)] // what each segment reads is the second half
pub(crate) struct Rtt {
    pub rttvar: Span,
    /// RTO without back-off.
    base: Span,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Present RTO, back-off included.
    pub rto: Span,
}

/// State of the estimator with samples from every ACK. Source: Linux tcp_rtt_estimator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EveryAck {
    /// Smoothed deviation (mdev).
    deviation: Span,
    /// Four times the largest deviation in this round (mdev_max), and the variance term of the RTO (rttvar).
    most: Span,
    variance: Span,
    /// SND.NXT at the beginning of the round.
    round: u64,
}

/// RTO for data after a SYN that timed out. Source: RFC 6298 §5.7.
const AFTER_SYN_TIMEOUT: Span = Span::from_s(3);

impl Rtt {
    pub fn new(cfg: &Tcp) -> Self {
        let base = cfg.rto_initial.min(cfg.rto_max);
        Rtt { srtt: Span::ZERO, rttvar: Span::ZERO, base, rto: base }
    }

    /// Takes an RTT sample, a picosecond at least; `expected` of them are taken per RTT. Source: RFC 6298 §2.2, §2.3, RFC
    /// 7323 appendix G.
    pub fn sample(&mut self, cfg: &Tcp, rtt: Span, expected: u64) {
        let rtt = rtt.max(Span::from_ps(1));
        if self.srtt > Span::ZERO {
            let deviation = if rtt > self.srtt { rtt - self.srtt } else { self.srtt - rtt };
            self.rttvar = weigh(self.rttvar, deviation, 4 * expected);
            self.srtt = weigh(self.srtt, rtt, 8 * expected);
        } else {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        }
        let variance = (self.rttvar * 4).max(cfg.clock_granularity);
        let rto = match cfg.rto_floor {
            RtoFloor::Rto => (self.srtt + variance).max(cfg.rto_min),
            RtoFloor::Variance => self.srtt + variance.max(cfg.rto_min),
        };
        self.base = rto.round_up(cfg.clock_granularity).min(cfg.rto_max);
        self.rto = self.base;
    }

    /// Takes an RTT sample where every ACK gives one: the variance follows the largest deviation of each round, and falls by
    /// a quarter per round. `una`, `nxt`: SND.UNA and SND.NXT. Source: Linux tcp_rtt_estimator.
    pub fn sample_every(&mut self, cfg: &Tcp, state: &mut EveryAck, rtt: Span, (una, nxt): (u64, u64)) {
        let rtt = rtt.max(Span::from_ps(1));
        let floor = match cfg.rto_floor {
            RtoFloor::Rto => cfg.clock_granularity,
            RtoFloor::Variance => cfg.rto_min.max(cfg.clock_granularity),
        };
        if self.srtt > Span::ZERO {
            let above = rtt >= self.srtt;
            let deviation = if above { rtt - self.srtt } else { self.srtt - rtt };
            // A drop of the RTT widens the variance by an eighth of what a rise does.
            let n = if above || deviation < state.deviation { 4 } else { 32 };
            state.deviation = weigh(state.deviation, deviation, n);
            self.srtt = weigh(self.srtt, rtt, 8);
            let variance = state.deviation * 4;
            if variance > state.most {
                state.most = variance;
                state.variance = state.variance.max(variance);
            }
            if una > state.round {
                if state.most < state.variance {
                    state.variance = state.variance - (state.variance - state.most) / 4;
                }
                state.round = nxt;
                state.most = floor;
            }
        } else {
            self.srtt = rtt;
            state.deviation = rtt / 2;
            state.variance = (rtt * 2).max(floor);
            state.most = state.variance;
            state.round = nxt;
        }
        self.rttvar = state.deviation;
        let rto = match cfg.rto_floor {
            RtoFloor::Rto => (self.srtt + state.variance).max(cfg.rto_min),
            RtoFloor::Variance => self.srtt + state.variance,
        };
        self.base = rto.round_up(cfg.clock_granularity).min(cfg.rto_max);
        self.rto = self.base;
    }

    /// Doubles the RTO. Source: RFC 6298 §5.5.
    pub fn back_off(&mut self, cfg: &Tcp) {
        self.rto = self.rto.saturating_mul(2).min(cfg.rto_max);
    }

    /// Reverts the last doubling of the RTO.
    pub fn undo_back_off(&mut self) {
        self.rto = (self.rto / 2).max(self.base);
    }

    /// Resets the RTO to the value that the samples give.
    pub fn reset_back_off(&mut self) {
        self.rto = self.base;
    }

    /// Ends the handshake; `timed_out`: the SYN was retransmitted. Source: RFC 6298 §5.7.
    pub fn handshake_done(&mut self, cfg: &Tcp, timed_out: bool) {
        if timed_out && self.srtt == Span::ZERO {
            self.base = AFTER_SYN_TIMEOUT.max(cfg.rto_initial).min(cfg.rto_max);
        }
        self.reset_back_off();
    }
}

/// Moves `old` by one `n`th towards `new`, exactly rounded down.
fn weigh(old: Span, new: Span, n: u64) -> Span {
    Span::from_ps(((u128::from(old.ps()) * u128::from(n - 1) + u128::from(new.ps())) / u128::from(n)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cfg() -> Tcp {
        Tcp { rto_min: Span::from_ms(10), clock_granularity: Span::from_us(1), ..Tcp::default() }
    }

    #[test]
    fn the_estimator_is_rfc_6298s() {
        let cfg = cfg();
        let mut r = Rtt::new(&cfg);
        assert_eq!((r.rto, r.srtt), (Span::from_s(1), Span::ZERO));
        r.sample(&cfg, Span::from_ms(100), 1);
        assert_eq!((r.srtt, r.rttvar, r.rto), (Span::from_ms(100), Span::from_ms(50), Span::from_ms(300)));
        r.sample(&cfg, Span::from_ms(60), 1);
        // RTTVAR = 3/4·50 + 1/4·40, SRTT = 7/8·100 + 1/8·60, with the old SRTT in RTTVAR.
        assert_eq!((r.srtt, r.rttvar, r.rto), (Span::from_ms(95), Span::from_us(47_500), Span::from_ms(285)));
    }

    #[test]
    fn rto_min_bounds_the_rto_or_its_variance() {
        let mut cfg = cfg();
        let mut r = Rtt::new(&cfg);
        r.sample(&cfg, Span::from_us(100), 1);
        assert_eq!(r.rto, Span::from_ms(10));
        cfg.rto_floor = RtoFloor::Variance;
        r.sample(&cfg, Span::from_us(100), 1);
        assert_eq!(r.rto, Span::from_us(10_100));
    }

    #[test]
    fn granularity_is_the_least_variance_and_the_step_of_the_rto() {
        let cfg = Tcp { rto_min: Span::ZERO, clock_granularity: Span::from_ms(1), ..Tcp::default() };
        let mut r = Rtt::new(&cfg);
        r.sample(&cfg, Span::from_us(100), 1);
        assert_eq!(r.rto, Span::from_ms(2)); // 0.1 ms + max (1 ms, 0.2 ms), rounded up
    }

    #[test]
    fn back_off_doubles_up_to_rto_max_and_a_sample_ends_it() {
        let cfg = cfg();
        let mut r = Rtt::new(&cfg);
        let seen: Vec<u64> = (0..8)
            .map(|_| {
                r.back_off(&cfg);
                r.rto.ps() / 1_000_000_000_000
            })
            .collect();
        assert_eq!(seen, [2, 4, 8, 16, 32, 60, 60, 60]);
        r.sample(&cfg, Span::from_ms(1), 1);
        assert_eq!(r.rto, Span::from_ms(10));
    }

    #[test]
    fn a_lost_syn_makes_the_first_rto_three_seconds() {
        let cfg = cfg();
        let mut r = Rtt::new(&cfg);
        r.back_off(&cfg);
        r.handshake_done(&cfg, true);
        assert_eq!(r.rto, Span::from_s(3));
    }

    #[test]
    fn many_samples_per_rtt_weigh_as_much_as_one() {
        let cfg = cfg();
        let (mut one, mut many) = (Rtt::new(&cfg), Rtt::new(&cfg));
        one.sample(&cfg, Span::from_ms(100), 1);
        many.sample(&cfg, Span::from_ms(100), 1);
        one.sample(&cfg, Span::from_ms(50), 1);
        for _ in 0..10 {
            many.sample(&cfg, Span::from_ms(50), 10);
        }
        let gap = one.srtt.as_secs_f64() - many.srtt.as_secs_f64();
        assert!(gap.abs() < 0.001, "{gap}");
    }
}
