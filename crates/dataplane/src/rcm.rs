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

    /// The eight intervals of 802.1Qau at 150 KB.
    #[test]
    fn the_interval_shortens_to_an_eighth() {
        let means: [u32; 8] = core::array::from_fn(|i| SETTING.interval(8 * i as u8, 150));
        assert_eq!(means, [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_428, 18_750]);
        assert_eq!((SETTING.interval(0, 0), SETTING.interval(0, 300)), (127_500, 172_500));
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
}
