//! CUBIC in the integers of Linux: whole segments, ticks of the kernel's clock, and 1024ths of a second.

use super::{Ack, Cubic, Window};
use fanin_units::{Span, Time};

/// Units of K and of time per second. Source: Linux BICTCP_HZ (2^10).
const BICTCP_HZ: u32 = 10;
/// One segment for this many acknowledged, at most, before the first loss. Source: Linux bictcp_update (5 % per RTT).
const MOST_BEFORE_LOSS: u64 = 20;
/// One segment for this many acknowledged at least: 1.5 times per RTT. Source: Linux bictcp_update.
const LEAST: u64 = 2;

/// The state of tcp_cubic.c, less its RTT and HyStart. Source: Linux struct bictcp, kernels 5.15 and later.
#[derive(Clone, Debug)]
pub(super) struct Bictcp {
    /// A tick of the kernel's clock, and how many make a second (HZ).
    tick: Span,
    hz: u64,
    /// bic_scale · 10, C in 1024ths.
    c: u64,
    /// beta in 1024ths.
    beta: u64,
    /// 8 · (1 + beta) / (3 · (1 − beta)): segments acknowledged per cwnd for one more in Reno's estimate, in eighths.
    beta_scale: u64,
    fast_convergence: bool,
    friendly: bool,
    /// One segment is added for this many acknowledged.
    cnt: u64,
    /// last_max_cwnd \[segments\]; zero before the first loss and after a timeout.
    last_max: u64,
    last_cwnd: u64,
    /// When `cnt` was computed last \[ticks\].
    last_time: u64,
    /// Start of the present congestion avoidance \[ticks\].
    epoch: Option<u64>,
    origin: u64,
    /// bic_K \[1024ths of a second\].
    k: u64,
    /// Bytes acknowledged towards the next segment of `tcp_cwnd`.
    ack_cnt: u64,
    /// The window that Reno would have \[segments\].
    tcp_cwnd: u64,
    /// Bytes acknowledged towards the next segment of cwnd; snd_cwnd_cnt.
    counted: u64,
}

impl Bictcp {
    /// `tick`: 1 / HZ.
    pub fn new(params: &Cubic, tick: Span) -> Self {
        let tick = tick.max(Span::from_us(1));
        let in_1024ths = |x: f64| libm::round(x * 1024.0) as u64;
        let beta = in_1024ths(params.beta);
        Bictcp {
            tick,
            hz: (Span::from_s(1).ps() / tick.ps()).max(1),
            c: in_1024ths(params.c).max(1),
            beta,
            beta_scale: 8 * (1024 + beta) / 3 / (1024 - beta),
            fast_convergence: params.fast_convergence,
            friendly: params.reno_friendly,
            cnt: 0,
            last_max: 0,
            last_cwnd: 0,
            last_time: 0,
            epoch: None,
            origin: 0,
            k: 0,
            ack_cnt: 0,
            tcp_cwnd: 0,
            counted: 0,
        }
    }

    fn ticks(&self, at: Time) -> u64 {
        at.ps() / self.tick.ps()
    }

    /// Start of the present congestion avoidance.
    pub fn epoch(&self) -> Option<Time> {
        self.epoch.map(|ticks| Time::ZERO + self.tick * ticks)
    }

    /// What a reduction leaves: beta in 1024ths. Source: Linux cubictcp_recalc_ssthresh.
    pub fn share(&self) -> f64 {
        self.beta as f64 / 1024.0
    }

    /// Congestion avoidance by `acked` bytes. Source: Linux tcp_cong_avoid_ai.
    pub fn avoid(&mut self, w: &mut Window, ack: &Ack, acked: u64, delay_min: Span) {
        let mss = u64::from(w.mss);
        self.update((w.cwnd / mss).max(1), self.ticks(ack.now), acked, mss, delay_min);
        let enough = self.cnt * mss;
        if self.counted >= enough {
            self.counted = 0;
            w.cwnd += mss;
        }
        self.counted += acked;
        let segments = self.counted / enough;
        self.counted -= segments * enough;
        w.cwnd += segments * mss;
    }

    /// How many acknowledged segments one more of cwnd takes. Source: Linux bictcp_update.
    ///
    /// Deviation: the cube root is exact, where Linux is off by 0.2 % on average; bytes are counted, where Linux counts segments.
    fn update(&mut self, cwnd: u64, now: u64, acked: u64, mss: u64, delay_min: Span) {
        self.ack_cnt += acked;
        if self.last_cwnd == cwnd && now - self.last_time <= self.hz / 32 {
            return;
        }
        if self.epoch.is_none() || now != self.last_time {
            self.last_cwnd = cwnd;
            self.last_time = now;
            let epoch = *self.epoch.get_or_insert_with(|| {
                self.ack_cnt = acked;
                self.tcp_cwnd = cwnd;
                let below = self.last_max.saturating_sub(cwnd);
                self.k = cubic_root((u128::from(below) << 40) / u128::from(self.c));
                self.origin = self.last_max.max(cwnd);
                now
            });
            let ticks = now - epoch + delay_min.ps().div_ceil(self.tick.ps());
            self.cnt = self.cubic_cnt(cwnd, ticks);
        }
        if self.friendly {
            let per_segment = (cwnd * self.beta_scale / 8).max(1) * mss;
            let steps = self.ack_cnt.saturating_sub(1) / per_segment;
            self.ack_cnt -= steps * per_segment;
            self.tcp_cwnd += steps;
            if self.tcp_cwnd > cwnd {
                self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
            }
        }
        self.cnt = self.cnt.max(LEAST);
    }

    /// `cnt` by the cubic function, `ticks` after the start of the epoch.
    fn cubic_cnt(&self, cwnd: u64, ticks: u64) -> u64 {
        let second = u128::from(Span::from_s(1).ps());
        let t = ((u128::from(ticks) * u128::from(self.tick.ps())) << BICTCP_HZ) / second;
        let offset = t.abs_diff(u128::from(self.k)).min(1 << 32);
        let delta = ((u128::from(self.c) * offset * offset * offset) >> (10 + 3 * BICTCP_HZ)) as u64;
        let target = if t < u128::from(self.k) { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) };
        let cnt = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 {
            cnt.min(MOST_BEFORE_LOSS)
        } else {
            cnt
        }
    }

    /// A reduction: the epoch ends, W_max by fast convergence. Source: Linux cubictcp_recalc_ssthresh.
    pub fn remember(&mut self, w: &Window) {
        let cwnd = w.cwnd / u64::from(w.mss);
        self.epoch = None;
        self.counted = 0;
        self.last_max = if self.fast_convergence && cwnd < self.last_max { cwnd * (1024 + self.beta) / 2048 } else { cwnd };
    }

    /// A timeout: nothing is remembered. Source: Linux cubictcp_state, bictcp_reset.
    pub fn reset(&mut self) {
        self.cnt = 0;
        self.last_max = 0;
        self.last_cwnd = 0;
        self.last_time = 0;
        self.epoch = None;
        self.origin = 0;
        self.k = 0;
        self.ack_cnt = 0;
        self.tcp_cwnd = 0;
        self.counted = 0;
    }

    /// Nothing was in flight since `last_sent`, or some time after it: that time does not count. Source: Linux cubictcp_cwnd_event
    /// (CA_EVENT_TX_START).
    pub fn idle_end(&mut self, now: Time, last_sent: Time) {
        let (now, idle) = (self.ticks(now), self.ticks(now) - self.ticks(last_sent));
        self.epoch = self.epoch.map(|start| (start + idle).min(now));
    }

    #[cfg(test)]
    pub fn last_max(&self) -> u64 {
        self.last_max
    }
}

/// The cube root, rounded down.
fn cubic_root(x: u128) -> u64 {
    let mut root = libm::floor(libm::cbrt(x as f64)) as u128;
    while root * root * root > x {
        root -= 1;
    }
    while (root + 1) * (root + 1) * (root + 1) <= x {
        root += 1;
    }
    root as u64
}
