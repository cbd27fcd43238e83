//! CUBIC congestion control. Source: RFC 9438.

use super::bictcp::Bictcp;
use super::hystart::{Delays, HyStart};
use super::{Ack, Congestion, CongestionControl, Controller, Window};
use crate::config::{Profile, SlowStart, Tcp, WindowRules};
use fanin_units::{Span, Time};

fanin_params::params! {
    /// CUBIC. Source: RFC 9438 §4, §5.
    pub struct Cubic {
        /// C: steepness of the cubic window function \[segments/s³\]. Source: RFC 9438 §5.1 (0.4).
        pub c: f64 = 0.4, in 0.0001..=1000.0;
        /// beta_cubic: share of the window that a reduction leaves. Source: RFC 9438 §4.6 (0.7).
        pub beta: f64 = 0.7, in 0.1..=0.95;
        /// Fast convergence: releases bandwidth sooner where the window stayed below the last maximum. Source: RFC 9438
        /// §4.7.
        pub fast_convergence: bool = true;
        /// Reno-friendly region: grows at least as fast as Reno would. Source: RFC 9438 §4.3.
        pub reno_friendly: bool = true;
    }
}

/// The window function's shape, in segments and seconds as RFC 9438 writes it.
#[derive(Clone, Debug)]
struct Epoch {
    /// W_max: window at the last reduction.
    w_max: f64,
    /// cwnd_prior: cwnd before the last reduction.
    cwnd_prior: f64,
    /// K: time from the start of the epoch until W_max is reached \[s\].
    k: f64,
    /// W_est: window of the Reno estimate.
    w_est: f64,
    /// Start of the present congestion avoidance, moved by the time in which the window was not used; `Time::MAX` before it
    /// begins.
    start: Time,
    /// Time of the last ACK that was allowed to grow the window.
    last: Time,
    /// Fraction of a byte not yet added to cwnd.
    fraction: f64,
    /// True after a timeout: the congestion avoidance starts with K = 0. Source: RFC 9438 §4.8.
    after_rto: bool,
}

/// CUBIC state of a connection.
#[derive(Clone, Debug)]
pub struct CubicControl {
    c: f64,
    beta: f64,
    epoch: Box<Epoch>,
    before: Option<Box<Epoch>>,
    /// State of Linux's integer arithmetic, which is used instead of `epoch` if present.
    linux: Option<Box<Bictcp>>,
    /// Minimum RTT, if Linux's arithmetic or HyStart needs it.
    delays: Option<Box<Delays>>,
    fast_convergence: bool,
    reno_friendly: bool,
}

impl CubicControl {
    pub fn new(params: &Cubic) -> Self {
        let epoch = Epoch {
            w_max: 0.0,
            cwnd_prior: 0.0,
            k: 0.0,
            w_est: 0.0,
            start: Time::MAX,
            last: Time::ZERO,
            fraction: 0.0,
            after_rto: false,
        };
        CubicControl {
            c: params.c,
            beta: params.beta,
            epoch: Box::new(epoch),
            before: None,
            linux: None,
            delays: None,
            fast_convergence: params.fast_convergence,
            reno_friendly: params.reno_friendly,
        }
    }

    /// W_cubic(t) = C·(t − K)³ + W_max \[segments\]. Source: RFC 9438 §4.2 equation 1.
    fn w_cubic(&self, t: Span) -> f64 {
        let d = t.as_secs_f64() - self.epoch.k;
        self.c * d * d * d + self.epoch.w_max
    }

    /// Starts a congestion avoidance. Source: RFC 9438 §4.2 equation 2, §4.8, §4.10.
    fn start_epoch(&mut self, now: Time, cwnd: f64) {
        let e = &mut self.epoch;
        if e.after_rto || e.w_max < cwnd {
            // Slow start without a reduction before (§4.10), a timeout (§4.8), or already above W_max: K = 0.
            e.w_max = cwnd;
            e.k = 0.0;
        } else {
            e.k = libm::cbrt((e.w_max - cwnd) / self.c);
        }
        e.after_rto = false;
        e.w_est = cwnd;
        e.start = now;
        e.last = now;
        e.fraction = 0.0;
    }

    /// Congestion avoidance: grows the window along the cubic function. Source: RFC 9438 §4.2 to §4.5.
    ///
    /// Deviation: none.
    #[inline(never)]
    fn avoid(&mut self, w: &mut Window, (now, srtt): (Time, Span), acked: u64) {
        if let Some(linux) = &mut self.linux {
            let least = self.delays.as_ref().map_or(Span::ZERO, |d| d.min);
            return linux.avoid(w, now, acked, least);
        }
        let mss = f64::from(w.mss);
        let cwnd = w.cwnd as f64 / mss;
        if self.epoch.start == Time::MAX {
            self.start_epoch(now, cwnd);
        }
        let t = now.since(self.epoch.start);
        self.epoch.last = now;
        let segments_acked = acked as f64 / mss;
        // alpha_cubic (§4.3 equation 4), 1 once W_est has reached cwnd_prior.
        let alpha = if self.epoch.w_est >= self.epoch.cwnd_prior { 1.0 } else { 3.0 * (1.0 - self.beta) / (1.0 + self.beta) };
        self.epoch.w_est += alpha * segments_acked / cwnd;
        if self.reno_friendly && self.w_cubic(t) < self.epoch.w_est {
            // The Reno-friendly region (§4.3).
            let grown = libm::floor(self.epoch.w_est * mss) as u64;
            w.cwnd = w.cwnd.max(grown);
            return;
        }
        // The concave and the convex region (§4.4, §4.5).
        let target = self.w_cubic(t + srtt).clamp(cwnd, 1.5 * cwnd);
        let bytes = self.epoch.fraction + (target - cwnd) / cwnd * segments_acked * mss;
        let whole = libm::floor(bytes);
        self.epoch.fraction = bytes - whole;
        w.cwnd += whole as u64;
    }

    /// Excludes time in which the window is not used from the epoch. Source: RFC 9438 §4.2, §5.8.
    fn pass(&mut self, now: Time) {
        if self.epoch.start != Time::MAX {
            self.epoch.start += now.since(self.epoch.last);
            self.epoch.last = now;
        }
    }

    /// Takes an RTT sample for the minimum RTT and for HyStart.
    #[inline(never)]
    fn sample(&mut self, w: &mut Window, ack: Ack, rtt: Span) {
        if let Some(delays) = &mut self.delays {
            let epoch = match &self.linux {
                Some(linux) => linux.epoch(),
                None => Some(self.epoch.start).filter(|start| *start != Time::MAX),
            };
            delays.sample(w, &ack, rtt, epoch);
        }
    }

    /// Sets W_max at a reduction, with fast convergence. Source: RFC 9438 §4.7.
    fn remember(&mut self, w: &Window) {
        if let Some(linux) = &mut self.linux {
            return linux.remember(w);
        }
        self.before = Some(self.epoch.clone());
        let cwnd = w.cwnd as f64 / f64::from(w.mss);
        let e = &mut self.epoch;
        e.w_max = if self.fast_convergence && cwnd < e.w_max { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd };
        e.cwnd_prior = cwnd;
        e.start = Time::MAX;
    }

    /// Multiplicative decrease of FlightSize or cwnd. Source: RFC 9438 §4.6, Linux cubictcp_recalc_ssthresh.
    fn decrease(&mut self, w: &mut Window, event: &Congestion) {
        self.remember(w);
        self.epoch.after_rto = false;
        w.ssthresh = event.reduced(w, self.linux.as_ref().map_or(self.beta, |linux| linux.share()));
        w.cwnd = w.ssthresh;
    }
}

impl Controller for CubicControl {
    fn suit(tcp: &mut Tcp) {
        if tcp.profile == Profile::Linux {
            tcp.slow_start = SlowStart::HyStart;
        }
    }

    fn fit(&mut self, tcp: &Tcp) {
        let CongestionControl::Cubic(params) = &tcp.congestion_control else { return };
        self.linux = (tcp.window_rules == WindowRules::Linux).then(|| Box::new(Bictcp::new(params, tcp.clock_granularity)));
        let hystart = (tcp.slow_start == SlowStart::HyStart).then(|| HyStart::new(tcp));
        if self.linux.is_some() || hystart.is_some() {
            self.delays = Some(Box::new(Delays { min: Span::ZERO, hystart }));
        }
    }

    #[inline(always)]
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample(w, *ack, rtt);
        }
        if !ack.grow {
            self.pass(ack.now);
            return;
        }
        let acked = if w.in_slow_start() { w.slow_start(ack) } else { ack.credit };
        if acked > 0 {
            self.avoid(w, (ack.now, ack.srtt), acked);
        }
    }

    fn on_recovery_ack(&mut self, w: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample(w, *ack, rtt);
        }
        if ack.acked > 0 {
            self.pass(ack.now);
        }
    }

    fn on_loss(&mut self, w: &mut Window, event: &Congestion) {
        if !event.after_ecn {
            self.decrease(w, event);
        } else {
            w.cwnd = w.ssthresh;
        }
    }

    fn on_ecn(&mut self, w: &mut Window, event: &Congestion) {
        self.decrease(w, event);
    }

    /// Reduces the window at a timeout. Source: RFC 9438 §4.8; Linux cubictcp_state.
    fn on_rto(&mut self, w: &mut Window, event: &Congestion) {
        if event.first {
            self.decrease(w, event);
        }
        self.epoch.start = Time::MAX;
        self.epoch.after_rto = true;
        if let Some(linux) = &mut self.linux {
            linux.reset();
        }
        if let Some(delays) = &mut self.delays {
            delays.reset(event.now, event.nxt);
        }
        w.cwnd = w.segments(1);
    }

    fn on_idle_end(&mut self, now: Time, last_sent: Time) {
        if let Some(linux) = &mut self.linux {
            linux.idle_end(now, last_sent);
        }
    }

    fn needs_rtt(&self) -> bool {
        self.delays.is_some()
    }

    /// Restores the state before the last reduction. Source: RFC 9438 §4.9.
    fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            self.epoch = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn defaults() -> Cubic {
        Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: true }
    }

    fn event(flight: u64) -> Congestion {
        Congestion { now: Time::ZERO, flight, from_cwnd: false, nxt: 0, after_ecn: false, first: true }
    }

    /// The ACK of a segment.
    fn ack_of(now: Time, srtt: Span) -> Ack {
        Ack { now, acked: MSS, delivered: MSS, credit: MSS, srtt, grow: true, slow_start_limit: 1, ..Ack::default() }
    }

    /// One window of ACKs per RTT from `w`, giving (t, cwnd in segments) after each round.
    fn rounds(c: &mut CubicControl, w: &mut Window, rtt: Span, n: u64) -> Vec<(f64, f64)> {
        let start = Time::from_ps(1);
        (1..=n)
            .map(|round| {
                let segments = w.cwnd / MSS;
                for i in 0..segments {
                    let now = start + rtt * (round - 1) + Span::from_ps(rtt.ps() * i / segments);
                    let ack = ack_of(now, rtt);
                    c.on_ack(w, &ack);
                }
                ((rtt * round).as_secs_f64(), w.cwnd as f64 / MSS as f64)
            })
            .collect()
    }

    #[test]
    fn the_window_follows_w_cubic_of_t() {
        // 1000 segments, 100 ms: the cubic function rules, not Reno's.
        let mut w = Window { cwnd: 1000 * MSS, ssthresh: 1000 * MSS, mss: MSS as u32 };
        let mut c = CubicControl::new(&defaults());
        c.on_loss(&mut w, &event(1000 * MSS));
        assert_eq!((w.cwnd, w.ssthresh), (700 * MSS, 700 * MSS));
        let k = libm::cbrt(300.0 / 0.4);
        for (t, cwnd) in rounds(&mut c, &mut w, Span::from_ms(100), 150) {
            // RFC 9438 §4.4: at time t the window aims at W_cubic (t + RTT); it gets there within the round.
            let expected = |t: f64| 0.4 * (t - k) * (t - k) * (t - k) + 1000.0;
            assert!(cwnd >= expected(t) - 1.0 && cwnd <= expected(t + 0.1) + 1.0, "t {t}: {cwnd}, {}", expected(t));
        }
        assert!(c.epoch.k > 9.0 && w.cwnd > 1000 * MSS); // through the plateau into the convex region
    }

    #[test]
    fn at_small_windows_and_short_rtts_it_grows_as_reno_does() {
        let mut w = Window { cwnd: 20 * MSS, ssthresh: 20 * MSS, mss: MSS as u32 };
        let mut c = CubicControl::new(&defaults());
        c.on_loss(&mut w, &event(20 * MSS));
        let grown = rounds(&mut c, &mut w, Span::from_us(100), 60);
        // alpha_cubic = 0.529 per RTT up to cwnd_prior = 20, then 1 per RTT. Source: RFC 9438 §4.3.
        assert!((grown[9].1 - (14.0 + 10.0 * 0.529)).abs() < 0.3, "{:?}", grown[9]);
        let late = grown[59].1 - grown[49].1;
        assert!((late - 10.0).abs() < 0.6, "{late}");
    }

    #[test]
    fn fast_convergence_lowers_w_max_when_the_last_one_was_not_reached() {
        let mut w = Window { cwnd: 1000 * MSS, ssthresh: 1000 * MSS, mss: MSS as u32 };
        let mut c = CubicControl::new(&defaults());
        c.on_loss(&mut w, &event(1000 * MSS));
        assert_eq!(c.epoch.w_max, 1000.0);
        c.on_loss(&mut w, &event(700 * MSS));
        assert!((c.epoch.w_max - 700.0 * 0.85).abs() < 1e-9);
        let mut c = CubicControl::new(&Cubic { fast_convergence: false, ..defaults() });
        c.on_loss(&mut w, &event(490 * MSS));
        w.cwnd = 400 * MSS;
        c.on_loss(&mut w, &event(400 * MSS));
        assert_eq!(c.epoch.w_max, 400.0);
    }

    #[test]
    fn after_a_timeout_k_is_zero_and_ssthresh_uses_beta() {
        let mut w = Window { cwnd: 100 * MSS, ssthresh: Window::INFINITE, mss: MSS as u32 };
        let mut c = CubicControl::new(&defaults());
        c.on_rto(&mut w, &event(100 * MSS));
        assert_eq!((w.cwnd, w.ssthresh), (MSS, 70 * MSS));
        w.cwnd = 70 * MSS;
        rounds(&mut c, &mut w, Span::from_ms(10), 1);
        assert_eq!((c.epoch.k, c.epoch.w_max), (0.0, 70.0));
    }

    #[test]
    fn time_in_which_the_window_is_not_used_does_not_count() {
        let mut w = Window { cwnd: 1000 * MSS, ssthresh: 1000 * MSS, mss: MSS as u32 };
        let mut c = CubicControl::new(&defaults());
        c.on_loss(&mut w, &event(1000 * MSS));
        rounds(&mut c, &mut w, Span::from_ms(100), 5);
        let before = c.epoch.start;
        let idle = Ack { grow: false, ..ack_of(c.epoch.last + Span::from_s(3), Span::ZERO) };
        c.on_ack(&mut w, &idle);
        assert_eq!(c.epoch.start, before + Span::from_s(3));
        assert_eq!(c.epoch.last, idle.now);
    }

    #[test]
    fn a_spurious_timeout_is_forgotten() {
        let mut w = Window { cwnd: 100 * MSS, ssthresh: 50 * MSS, mss: MSS as u32 };
        let mut c = CubicControl::new(&defaults());
        rounds(&mut c, &mut w, Span::from_ms(10), 3);
        let before = (c.epoch.w_max, c.epoch.k, c.epoch.start);
        c.on_rto(&mut w, &event(100 * MSS));
        c.undo();
        assert_eq!((c.epoch.w_max, c.epoch.k, c.epoch.start), before);
    }
}
