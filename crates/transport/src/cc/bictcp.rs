//! CUBIC in Linux's integer arithmetic: whole segments, ticks of the kernel's clock, and 1024ths of a second.

use super::{Cubic, Window};
use fanin_units::{Span, Time};

/// Binary logarithm of the units of K and time per second. Source: Linux BICTCP_HZ (2^10).
const BICTCP_HZ: u32 = 10;
/// Slowest growth before the first loss: one segment per this many acknowledged. Source: Linux bictcp_update (5 % per RTT).
const MOST_BEFORE_LOSS: u64 = 20;
/// Fastest growth: one segment per this many acknowledged, 1.5 times per RTT. Source: Linux bictcp_update.
const LEAST: u64 = 2;

/// State of tcp_cubic.c, without its RTT and HyStart. Source: Linux struct bictcp, kernels 5.15 and later.
#[derive(Clone, Debug)]
pub(super) struct Bictcp {
    /// Tick of the kernel's clock, and ticks per second (HZ).
    tick: Span,
    hz: u64,
    /// bic_scale · 10: the constant C in 1024ths.
    c: u64,
    /// Multiplicative decrease beta in 1024ths.
    beta: u64,
    /// 8 · (1 + beta) / (3 · (1 − beta)): segments acknowledged per cwnd for one more in Reno's estimate, in eighths.
    beta_scale: u64,
    fast_convergence: bool,
    friendly: bool,
    /// Number of acknowledged segments per segment of growth.
    cnt: u64,
    /// last_max_cwnd \[segments\]; zero before the first loss and after a timeout.
    last_max: u64,
    last_cwnd: u64,
    /// Time at which `cnt` was last computed \[ticks\].
    last_time: u64,
    /// Start of the present congestion avoidance \[ticks\].
    epoch: Option<u64>,
    origin: u64,
    /// bic_K \[1024ths of a second\].
    k: u64,
    /// Bytes acknowledged towards the next segment of `tcp_cwnd`.
    ack_cnt: u64,
    /// Window of the Reno estimate \[segments\].
    tcp_cwnd: u64,
    /// Bytes acknowledged towards the next segment of cwnd; snd_cwnd_cnt.
    counted: u64,
}

impl Bictcp {
    /// State at the start of a connection; `tick` is 1 / HZ.
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

    /// Start of the present congestion avoidance, if it has begun.
    pub fn epoch(&self) -> Option<Time> {
        self.epoch.map(|ticks| Time::ZERO + self.tick * ticks)
    }

    /// Share of the window that a reduction leaves: beta. Source: Linux cubictcp_recalc_ssthresh.
    pub fn share(&self) -> f64 {
        self.beta as f64 / 1024.0
    }

    /// Congestion avoidance: grows the window for `acked` bytes. Source: Linux tcp_cong_avoid_ai.
    pub fn avoid(&mut self, w: &mut Window, now: Time, acked: u64, delay_min: Span) {
        let mss = u64::from(w.mss);
        self.update((w.cwnd / mss).max(1), self.ticks(now), acked, mss, delay_min);
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

    /// Recomputes `cnt`, the number of acknowledged segments per segment of growth. Source: Linux bictcp_update.
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

    /// `cnt` of the cubic function, `ticks` after the start of the epoch.
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

    /// Ends the epoch at a reduction, and sets W_max with fast convergence. Source: Linux cubictcp_recalc_ssthresh.
    pub fn remember(&mut self, w: &Window) {
        let cwnd = w.cwnd / u64::from(w.mss);
        self.epoch = None;
        self.counted = 0;
        self.last_max = if self.fast_convergence && cwnd < self.last_max { cwnd * (1024 + self.beta) / 2048 } else { cwnd };
    }

    /// Forgets all state after a timeout. Source: Linux cubictcp_state, bictcp_reset.
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

    /// Moves the epoch by an idle period: time in which nothing was in flight, from `last_sent` to `now`, does not count.
    /// Source: Linux cubictcp_cwnd_event (CA_EVENT_TX_START).
    pub fn idle_end(&mut self, now: Time, last_sent: Time) {
        let (now, idle) = (self.ticks(now), self.ticks(now) - self.ticks(last_sent));
        self.epoch = self.epoch.map(|start| (start + idle).min(now));
    }
}

/// Integer cube root, rounded down.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Ack, Congestion, CongestionControl, Control, Controller};
    use crate::config::{Profile, SlowStart, Tcp};

    const MSS: u64 = 1448;
    const RTT: Span = Span::from_ms(13);

    /// A flow of the `linux` profile whose ACKs are spread over each RTT.
    struct Flow {
        control: Control,
        w: Window,
        now: Time,
        rtt: Span,
    }

    impl Flow {
        fn new(cwnd: u64, rtt: Span) -> Self {
            Flow::steep(0.4, cwnd, rtt)
        }

        fn steep(c: f64, cwnd: u64, rtt: Span) -> Self {
            let cubic = Cubic { c, beta: 0.7, fast_convergence: true, reno_friendly: true };
            let mut tcp = Tcp::new(Profile::Linux, CongestionControl::Cubic(cubic));
            tcp.clock_granularity = Span::from_ms(4);
            tcp.slow_start = SlowStart::Standard;
            let w = Window { cwnd: cwnd * MSS, ssthresh: cwnd * MSS, mss: MSS as u32 };
            Flow { control: Control::new(&tcp), w, now: Time::ZERO + Span::from_s(10), rtt }
        }

        fn event(&self) -> Congestion {
            Congestion { now: self.now, flight: self.w.cwnd / 3, from_cwnd: true, nxt: 1, after_ecn: false, first: true }
        }

        fn ack(&mut self) {
            self.now += Span::from_ps(self.rtt.ps() * MSS / self.w.cwnd);
            let ack = Ack {
                now: self.now,
                acked: MSS,
                delivered: MSS,
                credit: MSS,
                rtt: Some(self.rtt),
                srtt: self.rtt,
                grow: true,
                slow_start_limit: 65_535,
                ..Ack::default()
            };
            self.control.on_ack(&mut self.w, &ack);
        }

        fn lose(&mut self) {
            let event = self.event();
            self.control.on_loss(&mut self.w, &event);
        }

        fn until(&mut self, end: Time) -> u64 {
            while self.now < end {
                self.ack();
            }
            self.segments()
        }

        fn rounds(&mut self, n: u64) -> f64 {
            let before = self.segments();
            self.until(self.now + self.rtt * n);
            (self.segments() - before) as f64
        }

        fn segments(&self) -> u64 {
            self.w.cwnd / MSS
        }
    }

    /// A flow of kernel 6.18 through 100 Mb/s (HZ = 250, 12 ms and the queue): its window after a loss each 250 ms, as TCP_INFO
    /// showed it. What it fell from and its RTT were not written down: 111 and 45 ms give all ten values; with 119 the last would
    /// be 114, and below 30 ms Reno's estimate would rule, 8 / 15 of a segment per RTT. The list begins when the window has grown
    /// to its first entry. Tolerance: one segment.
    #[test]
    fn the_curve_is_that_of_a_kernel() {
        const KERNEL: [u64; 10] = [83, 88, 92, 96, 99, 102, 104, 106, 107, 108];
        let mut flow = Flow::new(111, Span::from_ms(45));
        flow.lose();
        assert_eq!((flow.segments(), flow.w.ssthresh), (77, 77 * MSS)); // 111 · 717 / 1024 = 77.7
        while flow.segments() < KERNEL[0] {
            flow.ack();
        }
        let start = flow.now;
        let curve: Vec<u64> = (0..10).map(|i| flow.until(start + Span::from_ms(250) * i)).collect();
        println!("kernel {KERNEL:?}\nhere   {curve:?}");
        assert!(KERNEL.iter().zip(&curve).all(|(kernel, here)| kernel.abs_diff(*here) <= 1), "{curve:?}");
    }

    /// bictcp_update: 5 % per RTT as long as no loss has told a maximum, also where HyStart has ended slow start.
    #[test]
    fn before_the_first_loss_the_window_grows_by_five_percent_per_rtt() {
        let mut flow = Flow::new(200, RTT);
        let grown = flow.rounds(4);
        assert!((40.0..=46.0).contains(&grown), "{grown}");
    }

    /// cubictcp_state, bictcp_reset: a timeout forgets the maximum and the least RTT, so that growth is 5 % per RTT at least.
    #[test]
    fn a_timeout_forgets_everything() {
        let mut flow = Flow::new(200, RTT);
        flow.lose();
        let event = Congestion { first: false, ..flow.event() };
        flow.control.on_rto(&mut flow.w, &event);
        assert_eq!((flow.w.cwnd, flow.w.ssthresh), (MSS, 140 * MSS)); // the reduction of the recovery stays
        while flow.w.in_slow_start() {
            flow.ack();
        }
        let grown = flow.rounds(2);
        assert!((13.0..=17.0).contains(&grown), "{grown}");
    }

    /// bictcp_update: one segment for two at most, exp (1/2) per RTT where ACKs come the faster the larger the window.
    #[test]
    fn the_window_grows_by_half_per_rtt_at_most() {
        let mut flow = Flow::steep(1000.0, 100, Span::from_s(1));
        flow.lose();
        let rounds: Vec<f64> = (0..10).map(|_| (flow.segments() as f64, flow.rounds(1))).map(|(w, grown)| grown / w).collect();
        let most = rounds.iter().copied().fold(0.0, f64::max);
        assert!((0.6..=0.66).contains(&most), "{rounds:?}");
    }

    /// bictcp_update, "TCP friendly": 8/15 of a segment per RTT; unlike RFC 9438 §4.3, no faster beyond the last maximum.
    #[test]
    fn where_the_curve_is_flat_it_grows_by_eight_fifteenths_of_a_segment() {
        let mut flow = Flow::new(30, Span::from_ms(20));
        flow.lose();
        assert_eq!(flow.segments(), 21);
        for _ in 0..3 {
            let grown = flow.rounds(30);
            assert!((grown - 16.0).abs() <= 1.0, "{grown}");
        }
    }

    /// bictcp_update computes `cnt` once per tick, and within the tick it can only fall: at short RTTs the window leaps for a
    /// tick of 4 ms, 40 RTTs, and then stands.
    #[test]
    fn at_short_rtts_it_grows_in_leaps() {
        let mut flow = Flow::new(30, Span::from_us(100));
        flow.lose();
        let (leap, rest) = (flow.rounds(40), flow.rounds(80));
        assert!(leap > 80.0 && rest <= 1.0, "{leap}, {rest}");
    }

    /// Fast convergence: 0.85 of a window that is below the last maximum. Two segments are the floor.
    #[test]
    fn the_maximum_falls_when_it_was_not_reached_again() {
        let mut linux = Bictcp::new(&Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: true }, Span::from_ms(1));
        let window = |cwnd: u64| Window { cwnd: cwnd * MSS + 700, ssthresh: 0, mss: MSS as u32 };
        linux.remember(&window(100));
        assert_eq!(linux.last_max, 100);
        linux.remember(&window(80));
        assert_eq!(linux.last_max, 68);
        let mut flow = Flow::new(2, RTT);
        flow.lose();
        assert_eq!(flow.w.ssthresh, 2 * MSS);
    }

    /// cubictcp_cwnd_event: idle time does not count, and the epoch never lies ahead.
    #[test]
    fn the_epoch_moves_by_idle_time() {
        let curve = |idle: Span| {
            let mut flow = Flow::new(300, RTT);
            flow.lose();
            flow.until(flow.now + Span::from_ms(500));
            let last = flow.now;
            flow.now += idle;
            flow.control.on_idle_end(flow.now, last);
            flow.rounds(20)
        };
        assert!((curve(Span::ZERO) - curve(Span::from_s(30))).abs() <= 1.0);
        let mut linux = Bictcp::new(&Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: true }, Span::from_ms(4));
        linux.epoch = Some(linux.ticks(Time::from_ps(3_000_000_000_000)));
        linux.idle_end(Time::from_ps(4_000_000_000_000), Time::from_ps(1_000_000_000_000));
        assert_eq!(linux.epoch(), Some(Time::from_ps(4_000_000_000_000)));
    }

    #[test]
    fn cube_roots_are_whole_numbers_rounded_down() {
        for x in (0..3_000u128).chain([1 << 40, (1 << 60) - 1, 1_000_000_007 * 1_000_003]) {
            let root = u128::from(cubic_root(x));
            assert!(root.pow(3) <= x && (root + 1).pow(3) > x, "{x}: {root}");
        }
    }
}
