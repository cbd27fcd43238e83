//! RCM's congestion degree and windows in registers: adders, a small divider and comparators. Source: RCM §3.2 and §3.4.

/// The largest quantised congestion degree: six bits. Source: IEEE 802.1Qau (QntzFb).
pub const MOST: u8 = 63;
/// 1/G_d: the largest degree takes half of the window. Source: RCM formula 4.
const PARTS: u64 = 2 * MOST as u64;
/// Fraction bits of the weight w.
pub const WEIGHT: u32 = 8;
/// Random spread of the sampling interval around its mean, in 1000ths: lower end, and width. Source: IEEE 802.1Qau (0.85 to
/// 1.15).
const SPREAD: (u64, u64) = (850, 301);

/// Parameters of a queue's congestion detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Q_eq, the queue length at equilibrium [B].
    pub q_eq: u32,
    /// w_q, the weight of the queue's growth.
    pub w_q: u32,
    /// Mean bytes between samples while there is no congestion.
    pub base: u32,
}

impl Setting {
    /// F_b,max, the largest congestion value: a queue of twice Q_eq that was empty at the last sample. Source: IEEE 802.1Qau
    /// (cpQSp · (2 · cpW + 1)).
    pub fn most(&self) -> i64 {
        i64::from(self.q_eq) * i64::from(2 * self.w_q + 1)
    }

    /// F_b quantised to six bits: zero exactly where there is no congestion.
    pub fn quantised(&self, fb: i64) -> u8 {
        let (fb, most) = (fb.max(0), self.most().max(1));
        ((fb * i64::from(MOST) + most - 1) / most).min(i64::from(MOST)) as u8
    }

    /// Bytes until the next sample: the interval shortens with the degree in eight steps, to an eighth. Source: IEEE 802.1Qau (the
    /// table of sampling intervals).
    pub fn interval(&self, degree: u8, draw: u32) -> u32 {
        let mean = u64::from(self.base) / (u64::from(degree) / 8 + 1);
        let thousandths = SPREAD.0 + u64::from(draw) % SPREAD.1;
        ((mean * thousandths / 1000) as u32).max(1)
    }
}

/// The detector of one queue. Source: RCM formula 1.
///
/// | register | width | unit |
/// |---|---|---|
/// | left | 32, signed | B until the next sample |
/// | before | 32 | B, Q'_len |
/// | degree | 6 | |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detector {
    left: i64,
    before: u32,
    degree: u8,
}

/// Result of a sample of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Q_off = Q_len − Q_eq, the queue's offset from equilibrium [B].
    pub offset: i64,
    /// Q_delta = Q_len − Q'_len, the queue's growth since the last sample [B].
    pub delta: i64,
    /// F_b = Q_off + w_q · Q_delta, the congestion value [B].
    pub fb: i64,
    /// Congestion degree: F_b quantised to six bits.
    pub degree: u8,
    /// Bytes until the next sample.
    pub next: u32,
}

impl Sample {
    /// The degree of a queue whose degree was `before`: one that shrinks but is still longer than Q_eq keeps the degree 1.
    pub fn lasting(&self, before: u8) -> u8 {
        self.degree.max(u8::from(before > 0 && self.offset > 0))
    }
}

impl Detector {
    /// A detector that takes its first sample after `first` bytes.
    pub fn new(first: u32) -> Detector {
        Detector { left: i64::from(first), before: 0, degree: 0 }
    }

    /// Counts an arriving frame; true if the queue is to be sampled now.
    #[inline]
    pub fn is_due(&mut self, frame: u16) -> bool {
        self.left -= i64::from(frame);
        self.left <= 0
    }

    /// Samples a queue of `queue` bytes. `draw`: a random number.
    pub fn sample(&mut self, setting: &Setting, queue: u32, draw: u32) -> Sample {
        let offset = i64::from(queue) - i64::from(setting.q_eq);
        let delta = i64::from(queue) - i64::from(self.before);
        let fb = offset + i64::from(setting.w_q) * delta;
        let degree = setting.quantised(fb);
        let next = setting.interval(degree, draw);
        (self.left, self.before, self.degree) = (i64::from(next), queue, degree);
        Sample { offset, delta, fb, degree, next }
    }

    /// Resets the detector for an empty queue, which has no congestion.
    pub fn clear(&mut self) {
        (self.before, self.degree) = (0, 0);
    }

    /// Congestion degree at the last sample.
    pub fn degree(&self) -> u8 {
        self.degree
    }
}

/// The degree passed upstream: F_b' = (1 − w) · F_b + w · F_br, rounded up. `w` \[2⁻⁸\]. Source: RCM formula 2.
pub fn passed_on(local: u8, remote: Option<u8>, w: u32) -> u8 {
    let Some(remote) = remote else { return local.min(MOST) };
    let (w, one) = (w.min(1 << WEIGHT), 1 << WEIGHT);
    let sum = (one - w) * u32::from(local.min(MOST)) + w * u32::from(remote.min(MOST));
    sum.div_ceil(one) as u8
}

/// Bounds of a port's windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Smallest and largest W [B].
    pub least: u32,
    pub most: u32,
    /// Lower bound of W_c [B]: a frame fits into each window.
    pub floor: u32,
}

/// The window of a congested port, measured and running. Source: RCM formulas 3 to 6.
///
/// | register | width | unit |
/// |---|---|---|
/// | W, W_c, measured | 32 | B |
/// | used, used_c | 32 | B |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    bounds: Bounds,
    /// W, the bytes of a whole window.
    w: u32,
    /// W_c, the bytes of harmful flows: as measured, and at present.
    measured: u32,
    c: u32,
    /// Bytes sent in this window, of W and of W_c.
    used: u32,
    used_c: u32,
}

/// Share of the window that a sent frame uses up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Frame of a harmful flow, within W_c.
    Congested,
    /// Frame of a harmful flow beyond W_c, sent because no other flow had anything to send; uses up W_nc.
    Spare,
    /// Frame of another flow.
    Other,
}

impl Window {
    /// A window measured from the bytes that harmful and other flows have sent since congestion was detected. A longer one is
    /// scaled down, a shorter one up, with the same shares.
    pub fn measured(bounds: Bounds, harmful: u32, others: u32) -> Window {
        let sum = u64::from(harmful) + u64::from(others);
        let w = sum.clamp(u64::from(bounds.least), u64::from(bounds.most)).max(1);
        let share = (u64::from(harmful) * w).checked_div(sum).unwrap_or(w);
        let measured = (share as u32).max(bounds.floor).min(w as u32).max(1);
        let bounds = Bounds { floor: bounds.floor.max(1), ..bounds };
        Window { bounds, w: w as u32, measured, c: measured, used: 0, used_c: 0 }
    }

    /// Reduces harmful flows' share: W_c ← W_c · (1 − F_b · G_d), W_nc ← W − W_c. `again`: from the present W_c; else from
    /// the measured one.
    pub fn reduce(&mut self, degree: u8, again: bool) {
        let from = u64::from(if again { self.c } else { self.measured });
        let taken = (from * u64::from(degree.min(MOST))).div_ceil(PARTS);
        self.c = ((from - taken) as u32).max(self.bounds.floor).min(self.w).max(1);
    }

    /// True if harmful flows may still send in this window (used_c < W_c).
    #[inline]
    pub fn is_open(&self) -> bool {
        self.used_c < self.c
    }

    /// True if harmful flows may still send in this window when its share is not reduced: applies while the buffer for their
    /// waiting frames is full.
    #[inline]
    pub fn is_open_in_full(&self) -> bool {
        self.used_c < self.measured.max(self.c)
    }

    /// Bytes of harmful flows beyond this window's share; carried into the next one, less than a frame so that it begins
    /// open.
    fn beyond(&self) -> u32 {
        self.used_c.saturating_sub(self.c).min(self.bounds.floor.min(self.c) - 1)
    }

    /// Accounts for a sent frame. True where the next window begins: bytes beyond this one count in the next.
    pub fn sent(&mut self, frame: u16, share: Share) -> bool {
        self.used += u32::from(frame);
        self.used_c += if share == Share::Congested { u32::from(frame) } else { 0 };
        if self.used < self.w {
            return false;
        }
        self.used = (self.used - self.w).min(self.w - 1);
        self.used_c = self.beyond();
        true
    }

    /// Starts a new window, as the time of this one is over.
    pub fn restart(&mut self) {
        self.used = 0;
        self.used_c = self.beyond();
    }

    /// W, the bytes of a whole window.
    pub fn whole(&self) -> u32 {
        self.w
    }

    /// W_c, the bytes of harmful flows per window.
    pub fn congested(&self) -> u32 {
        self.c
    }

    /// Bytes sent in this window, of W and of W_c.
    pub fn used(&self) -> (u32, u32) {
        (self.used, self.used_c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: Setting = Setting { q_eq: 26_000, w_q: 2, base: 150_000 };

    /// Formula 1 by hand: 40 KB after 30 KB is 14 KB off and 10 KB more: F_b = 34 KB of 130 KB, 16.5 of 63.
    #[test]
    fn the_degree_is_offset_and_growth() {
        let mut detector = Detector::new(1_500);
        assert!(detector.is_due(1_500));
        let first = detector.sample(&SETTING, 30_000, 150);
        assert_eq!((first.offset, first.delta, first.fb, first.degree), (4_000, 30_000, 64_000, 32));
        let second = detector.sample(&SETTING, 40_000, 150);
        assert_eq!((second.offset, second.delta, second.fb, second.degree), (14_000, 10_000, 34_000, 17));
        let third = detector.sample(&SETTING, 25_000, 150);
        assert_eq!((third.fb, third.degree, third.next), (-31_000, 0, 150_000));
        assert_eq!((third.lasting(17), second.lasting(40)), (0, 17));
        let falling = detector.sample(&SETTING, 60_000, 150);
        assert_eq!(falling.degree, 51);
        let falling = detector.sample(&SETTING, 30_000, 150);
        assert_eq!((falling.fb, falling.degree, falling.lasting(51), falling.lasting(0)), (-56_000, 0, 1, 0));
    }

    /// Between samples bytes are counted, and a sample begins the count anew; the degree stays until the next, or until the queue is empty.
    #[test]
    fn a_detector_samples_after_its_interval_and_keeps_the_degree() {
        let mut detector = Detector::new(3_000);
        assert_eq!([1_500, 1_499, 1].map(|frame| detector.is_due(frame)), [false, false, true]);
        let setting = Setting { base: 8_000, ..SETTING };
        let sample = detector.sample(&setting, 30_000, 150);
        assert_eq!((sample.degree, sample.next, detector.degree()), (32, 1_600, 32));
        assert_eq!([1_500, 99, 1].map(|frame| detector.is_due(frame)), [false, false, true]);
        detector.clear();
        assert_eq!(detector.degree(), 0);
        let after = detector.sample(&setting, 1_000, 150);
        assert_eq!((after.delta, after.degree), (1_000, 0), "grown from nothing");
        assert_eq!(detector.sample(&setting, 60_000, 150).degree, detector.degree());
    }

    /// F_b,max by hand: 26,000 · (2 · w_q + 1).
    #[test]
    fn the_most_is_twice_the_equilibrium_out_of_nothing() {
        let most = |w_q: u32| Setting { w_q, ..SETTING }.most();
        assert_eq!([0, 1, 2, 3].map(most), [26_000, 78_000, 130_000, 182_000]);
        let full = |w_q: u32| {
            let setting = Setting { w_q, ..SETTING };
            let sample = Detector::new(1).sample(&setting, 2 * setting.q_eq, 150);
            (sample.fb, sample.degree)
        };
        assert_eq!([2, 3].map(full), [(130_000, MOST), (182_000, MOST)]);
    }

    /// A queue that shrinks keeps the degree 1 while it is longer than Q_eq, and only then, and only if it had one.
    #[test]
    fn a_degree_lasts_while_the_queue_is_longer_than_it_should_be() {
        let sample = |offset: i64, degree: u8| Sample { offset, delta: -1_000, fb: -1, degree, next: 1 };
        assert_eq!([-1, 0, 1].map(|offset| sample(offset, 0).lasting(5)), [0, 0, 1]);
        assert_eq!([0, 1, 63].map(|before| sample(1, 0).lasting(before)), [0, 1, 1]);
        assert_eq!((sample(1, 7).lasting(0), sample(1, 7).lasting(63), sample(-1, 7).lasting(63)), (7, 7, 7));
    }

    /// The eight intervals of 802.1Qau at 150 KB.
    #[test]
    fn the_interval_shortens_to_an_eighth() {
        let means: [u32; 8] = core::array::from_fn(|i| SETTING.interval(8 * i as u8, 150));
        assert_eq!(means, [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_428, 18_750]);
        assert_eq!((SETTING.interval(0, 0), SETTING.interval(0, 300)), (127_500, 172_500));
        assert_eq!((SETTING.interval(0, 301), SETTING.interval(63, 451)), (127_500, 18_750), "draws are taken modulo 301");
        assert_eq!([7, 8, 15, 16].map(|degree| SETTING.interval(degree, 150)), [150_000, 75_000, 75_000, 50_000]);
        assert_eq!(Setting { base: 1, ..SETTING }.interval(63, 0), 1, "never none");
    }

    #[test]
    fn any_congestion_has_a_degree_and_the_most_is_63() {
        assert_eq!(
            [-1, 0, 1, 2_063, 2_064, 129_999, 130_000, 1 << 40].map(|fb| SETTING.quantised(fb)),
            [0, 0, 1, 1, 2, 63, 63, 63]
        );
    }

    #[test]
    fn degrees_are_weighed_and_never_vanish() {
        assert_eq!(passed_on(10, None, 128), 10);
        assert_eq!(passed_on(10, Some(30), 128), 20);
        assert_eq!((passed_on(10, Some(30), 0), passed_on(10, Some(30), 256)), (10, 30));
        assert_eq!(passed_on(0, Some(1), 1), 1);
        assert_eq!((passed_on(99, None, 0), passed_on(99, Some(0), 0), passed_on(0, Some(99), 256)), (MOST, MOST, MOST));
        assert_eq!(passed_on(3, Some(20), 64), 8, "2.25 and 5, up");
        assert_eq!(passed_on(10, Some(30), 300), 30, "w is 1 at most");
    }

    /// Half of the port to harmful flows; the largest degree leaves them a quarter of it: fig. 6's 25 Gb/s of 100.
    #[test]
    fn the_largest_degree_halves_the_share() {
        let bounds = Bounds { least: 1_000, most: 100_000, floor: 100 };
        let mut window = Window::measured(bounds, 20_000, 20_000);
        window.reduce(63, false);
        assert_eq!((window.whole(), window.congested()), (40_000, 10_000));
        window.reduce(63, false);
        assert_eq!(window.congested(), 10_000);
        window.reduce(63, true);
        assert_eq!(window.congested(), 5_000);
        window.reduce(21, false); // a third of the way to half: a sixth less
        assert_eq!(window.congested(), 16_666);
    }

    #[test]
    fn beyond_its_share_harmful_traffic_waits_for_the_next_window() {
        let bounds = Bounds { least: 10_000, most: 100_000, floor: 1_500 };
        let mut window = Window::measured(bounds, 1_500, 1_500);
        assert_eq!((window.whole(), window.congested()), (10_000, 5_000));
        window.reduce(63, false);
        assert!(window.is_open() && !window.sent(1_500, Share::Congested));
        assert!(window.is_open() && !window.sent(1_500, Share::Congested));
        assert!(!window.is_open());
        assert!(!window.sent(1_500, Share::Spare) && !window.sent(5_000, Share::Other));
        assert!(window.sent(1_000, Share::Other));
        assert_eq!((window.used(), window.is_open()), ((500, 500), true));
    }

    const BOUNDS: Bounds = Bounds { least: 10_000, most: 100_000, floor: 1_500 };

    /// Shares by hand: as measured within the bounds of W, scaled beyond them; a frame at least, and no more than W.
    #[test]
    fn a_window_has_the_shares_that_were_measured() {
        let of = |harmful, others| {
            let window = Window::measured(BOUNDS, harmful, others);
            (window.whole(), window.congested())
        };
        assert_eq!(of(9_000, 21_000), (30_000, 9_000));
        assert_eq!(of(1_000, 3_000), (10_000, 2_500));
        assert_eq!(of(150_000, 50_000), (100_000, 75_000));
        assert_eq!((of(100, 29_900), of(0, 30_000)), ((30_000, 1_500), (30_000, 1_500)), "a frame");
        assert_eq!((of(30_000, 0), of(0, 0)), ((30_000, 30_000), (10_000, 10_000)), "all, where nothing was measured");
        // Without bounds there is still a byte of each.
        let mut none = Window::measured(Bounds { least: 0, most: 100_000, floor: 0 }, 0, 5_000);
        assert_eq!((none.whole(), none.congested(), none.is_open()), (5_000, 1, true));
        assert!(none.sent(6_000, Share::Congested));
        assert_eq!((none.used(), none.is_open()), ((1_000, 0), true));
        let small = Window::measured(Bounds { least: 0, most: 100, floor: 1_500 }, 50, 50);
        assert_eq!((small.whole(), small.congested()), (100, 100), "a frame may be longer than W");
    }

    #[test]
    fn a_reduced_share_is_a_frame_at_least() {
        let mut window = Window::measured(BOUNDS, 4_000, 6_000);
        for expected in [2_000, 1_500, 1_500] {
            window.reduce(255, true);
            assert_eq!(window.congested(), expected, "a degree beyond the largest counts as that");
        }
        window.reduce(0, false);
        assert_eq!(window.congested(), 4_000);
        window.reduce(1, false); // 4000 / 126 = 31.7, up
        assert_eq!(window.congested(), 3_968);
        // Never more than W, nor nothing.
        let mut tight = Window::measured(Bounds { least: 0, most: 100, floor: 1_500 }, 50, 50);
        tight.reduce(63, false);
        assert_eq!(tight.congested(), 100);
        let mut bare = Window::measured(Bounds { least: 0, most: 100_000, floor: 0 }, 1, 4_999);
        bare.reduce(63, true);
        assert_eq!((bare.congested(), bare.is_open()), (1, true));
    }

    /// Open below W_c, closed at it; while the buffer is full by what was measured.
    #[test]
    fn a_window_is_open_below_its_share() {
        let mut window = Window::measured(BOUNDS, 4_000, 6_000);
        window.reduce(63, false);
        window.sent(1_999, Share::Congested);
        assert!(window.is_open() && window.is_open_in_full());
        window.sent(1, Share::Congested);
        assert!(!window.is_open() && window.is_open_in_full());
        window.sent(1_999, Share::Congested);
        assert!(window.is_open_in_full());
        window.sent(1, Share::Congested);
        assert!(!window.is_open_in_full());
        assert_eq!(window.used(), (4_000, 4_000));
    }

    /// A window ends with its last byte; bytes beyond it count in the next, harmful ones up to a frame less one, so that it is open.
    #[test]
    fn what_is_beyond_a_window_counts_in_the_next() {
        let mut window = Window::measured(BOUNDS, 4_000, 6_000);
        window.reduce(63, false); // W_c 2000
        assert!(!window.sent(9_999, Share::Other) && window.sent(1, Share::Other));
        assert_eq!(window.used(), (0, 0));
        for (harmful, beyond) in [(2_000, 0), (2_001, 1), (3_499, 1_499), (3_500, 1_499), (9_000, 1_499)] {
            let mut window = window.clone();
            assert!(!window.sent(harmful, Share::Congested) && window.sent(10_500 - harmful, Share::Spare));
            assert_eq!((window.used(), window.is_open()), ((500, beyond), true), "{harmful}");
        }
        assert!(window.sent(25_000, Share::Other));
        assert_eq!(window.used(), (9_999, 0), "one window at most, which any frame ends");
        assert!(window.sent(1, Share::Other));
    }

    /// With a share of less than a frame what is beyond stays below that.
    #[test]
    fn a_small_share_begins_open_too() {
        let mut window = Window::measured(Bounds { least: 0, most: 100, floor: 1_500 }, 50, 50);
        assert!(window.sent(1_500, Share::Congested));
        assert_eq!((window.used(), window.is_open()), ((99, 99), true));
    }

    #[test]
    fn a_window_restarts_with_what_was_beyond_it() {
        let mut window = Window::measured(BOUNDS, 4_000, 6_000);
        window.reduce(63, false);
        window.sent(2_700, Share::Congested);
        assert!(!window.is_open());
        window.restart();
        assert_eq!((window.used(), window.is_open()), ((0, 700), true));
        window.restart();
        assert_eq!(window.used(), (0, 0));
    }
}
