//! DCQCN: the receiver turns marks into notifications; the sender cuts its rate at each and recovers it in steps. Source:
//! DCQCN §3.

use super::{ControlParams, Feedback, Needs, Notifying, Path, RateControl, Sending};
use crate::transport::Idle;
use fanin_params::{names, params, Cx, Ground, Node, Setting};
use fanin_units::{BitRate, Bytes, Span, Time};

names! {
    /// Profile: the set of defaults for keys that are not given.
    pub enum DcqcnProfile {
        /// Defaults of the paper. Source: DCQCN §5.2 and table 14.
        "paper" => Paper,
        /// Defaults of ConnectX adapters. Source: NVIDIA (DCQCN CC Parameters).
        "mlx5" => Mlx5,
    }
}

params! {
    /// DCQCN: rate reductions by notifications of marks. Source: DCQCN §3.
    pub struct Dcqcn over profile_defaults {
        /// Profile that gives the defaults of all other keys.
        pub profile: DcqcnProfile = DcqcnProfile::Paper;
        /// N: smallest interval between a receiver's CNPs for a flow; `mlx5`: 4 us (min_time_between_cnps). Source: DCQCN
        /// §3.1 (50 us).
        pub cnp_interval: Span = Span::from_us(50), in Span::ZERO..=Span::from_ms(10);
        /// Delay of the receiver's NIC from a marked packet to the CNP. Measurements are matched with up to 55 us.
        pub cnp_delay: Span = Span::ZERO, in Span::ZERO..=Span::from_ms(10);
        /// g: weight of a CNP in the average α; `mlx5`: 5/1024 (dce_tcp_g). Source: DCQCN §5.2 (1/256).
        pub g: f64 = 0.003_906_25, in 0.000_01..=1.0;
        /// Initial α, before the first CNP (initial_alpha_value); 1 halves the rate. Source: DCQCN §3.1.
        pub initial_alpha: f64 = 1.0, in 0.0..=1.0;
        /// K: period without a CNP after which α falls by the factor 1 − g; `mlx5`: 1 us (dce_tcp_rtt). Source: DCQCN §3.1
        /// (55 us).
        pub alpha_timer: Span = Span::from_us(55), in Span::from_ns(100)..=Span::from_ms(100);
        /// T: period of the timer at which the rate rises; `mlx5`: 300 us (rpg_time_reset). Source: DCQCN §5.2 (55 us; QCN's
        /// 1.5 ms is found too slow).
        pub rate_timer: Span = Span::from_us(55), in Span::from_ns(100)..=Span::from_ms(100);
        /// B: number of sent bytes after which the rate rises, too; `mlx5`: 32767 B (rpg_byte_reset). Source: DCQCN §5.2 (10
        /// MB; QCN's 150 KB is found unfair).
        pub byte_counter: Bytes = Bytes(10_000_000), in Bytes(1_000)..=Bytes(10_000_000_000);
        /// F: number of steps of fast recovery; `mlx5`: 1 (rpg_threshold). Source: DCQCN §3.1 (5).
        pub fast_recovery: u32 = 5, in 0_u32..=100;
        /// R_AI: step of the target rate in additive increase; `mlx5`: 5 Mb/s (rpg_ai_rate). Source: DCQCN §5.2 (40 Mb/s).
        pub additive_increase: BitRate = BitRate(40_000_000), in BitRate(1_000)..=BitRate(1_000_000_000_000);
        /// R_HAI: step of the target rate in hyper increase, when timer and byte counter are both beyond F; `mlx5`: 50 Mb/s
        /// (rpg_hai_rate).
        /// Source: QCN, ten times R_AI; the paper has no number.
        pub hyper_increase: BitRate = BitRate(400_000_000), in BitRate(1_000)..=BitRate(1_000_000_000_000);
        /// Lower bound of rates; `mlx5`: 1 Mb/s (rpg_min_rate).
        pub min_rate: BitRate = BitRate(10_000_000), in BitRate(1_000)..=BitRate(1_000_000_000_000);
        /// Target clamping: each CNP makes the present rate the target; `mlx5`: only the first one since the rate rose.
        /// Source: DCQCN §3.1; NVIDIA (clamp_tgt_rate).
        pub clamp_target: bool = true;
        /// Smallest interval between rate reductions; α counts every CNP. `mlx5`: 4 us. Source: NVIDIA
        /// (rate_reduce_monitor_period).
        pub decrease_interval: Span = Span::ZERO, in Span::ZERO..=Span::from_ms(10);
        /// Lower bound of the factor by which one CNP reduces the rate. Source: NVIDIA (rpg_min_dec_fac, 50 %); DCQCN §3.1
        /// (α/2).
        pub min_decrease_factor: f64 = 0.5, in 0.0..=1.0;
    }
}

/// Defaults that a document selects by `profile`.
fn profile_defaults(node: &Node) -> Dcqcn {
    Dcqcn::new(if node.get("profile").and_then(Node::text) == Some("mlx5") { DcqcnProfile::Mlx5 } else { DcqcnProfile::Paper })
}

impl Dcqcn {
    /// Defaults of a profile.
    pub fn new(profile: DcqcnProfile) -> Self {
        let paper = Dcqcn {
            profile,
            cnp_interval: Span::from_us(50),
            cnp_delay: Span::ZERO,
            g: 1.0 / 256.0,
            initial_alpha: 1.0,
            alpha_timer: Span::from_us(55),
            rate_timer: Span::from_us(55),
            byte_counter: Bytes(10_000_000),
            fast_recovery: 5,
            additive_increase: BitRate::from_mbps(40),
            hyper_increase: BitRate::from_mbps(400),
            min_rate: BitRate::from_mbps(10),
            clamp_target: true,
            decrease_interval: Span::ZERO,
            min_decrease_factor: 0.5,
        };
        match profile {
            DcqcnProfile::Paper => paper,
            DcqcnProfile::Mlx5 => Dcqcn {
                cnp_interval: Span::from_us(4),
                g: 5.0 / 1024.0,
                alpha_timer: Span::from_us(1),
                rate_timer: Span::from_us(300),
                byte_counter: Bytes(32_767),
                fast_recovery: 1,
                additive_increase: BitRate::from_mbps(5),
                hyper_increase: BitRate::from_mbps(50),
                min_rate: BitRate::from_mbps(1),
                clamp_target: false,
                decrease_interval: Span::from_us(4),
                ..paper
            },
        }
    }
}

/// Ratio to the paper's recovery time from which a warning is given: the time that one of `SHARING` queue pairs takes to its
/// share of the line, at 40 Gb/s with the paper's values.
const SLOW: u64 = 4;
const SHARING: u64 = 16;
/// Bounds of a simulated recovery, in time and in steps.
const LONGEST: Span = Span::from_s(1);
const STEPS: u32 = 1 << 18;

impl Dcqcn {
    /// Recovery time of a queue pair's rate from 1 % to 90 % of its share of the line (one of `sharing` equal shares), after
    /// notifications that have brought its target down as well: timer and byte counter raise it by R_AI each, and by R_HAI
    /// when both are beyond F. `None`: longer than [`LONGEST`], or more than [`STEPS`].
    pub fn recovery(&self, line: BitRate, sharing: u64) -> Option<Span> {
        let path = Path { line_rate: line, base_rtt: Span::ZERO, hops: 1, payload: 1_024, wire: 1_106 };
        let mut s = Sending { rate: line, window: Sending::UNLIMITED };
        let mut control = DcqcnControl::new(self, &path, &mut s);
        let share = line.bps() as f64 / sharing as f64;
        let low = share / 100.0;
        (control.current, control.target, control.timer_at) = (low, low, Time::ZERO + self.rate_timer);
        let mut now = Time::ZERO;
        for _ in 0..STEPS {
            if control.current >= 0.9 * share || now > Time::ZERO + LONGEST {
                break;
            }
            // The next of the two, one packet of the counter's size for all bytes until then.
            let left = self.byte_counter.get().saturating_sub(control.bytes).max(1);
            let counted = now.saturating_add(BitRate((control.current as u64).max(1)).time_to_send(Bytes(left)));
            let at = counted.min(control.timer_at);
            let sent = BitRate(control.current as u64).bytes_in(at.since(now)).get().min(left);
            now = at;
            if counted <= control.timer_at {
                control.on_sent(&mut s, now, u32::try_from(left).unwrap_or(u32::MAX));
            } else {
                control.bytes += sent;
                control.on_timer(&mut s, now);
            }
        }
        (control.current >= 0.9 * share && now <= Time::ZERO + LONGEST).then(|| now.since(Time::ZERO))
    }
}

impl ControlParams for Dcqcn {
    /// Warns of steps that are small compared with the line rate: the line stays underused for long after a congestion.
    fn check_at(&self, at: &Idle, cx: &mut Cx) {
        let line = at.line;
        if !self.clamp_target {
            return; // a target that notifications leave where it is is found again in steps of a half
        }
        let usual = Dcqcn::new(DcqcnProfile::Paper).recovery(BitRate::from_gbps(40), SHARING).unwrap_or(LONGEST);
        let takes = self.recovery(line, SHARING);
        if takes.is_some_and(|takes| takes <= usual * SLOW) {
            return;
        }
        let step = line.bps() / 1_000;
        let ms = |span: Span| span.ps() / 1_000_000_000;
        let message = format!(
            "is small compared with {line}: one of {SHARING} queue pairs takes {} ms to reach its share; with the paper's values at 40 Gb/s, {} ms",
            takes.map_or_else(|| format!("more than {}", ms(LONGEST)), |takes| ms(takes).to_string()),
            ms(usual)
        );
        let values = format!(
            "additive_increase = \"{}\", hyper_increase = \"{}\": line rate / 1000, and ten times that",
            BitRate(step),
            BitRate(10 * step)
        );
        cx.warn_at("additive_increase", &self.additive_increase, message).suggestion = Some(values);
    }

    fn notifying(&self) -> Option<Notifying> {
        Some(Notifying { interval: self.cnp_interval, delay: self.cnp_delay })
    }
}

/// Reaction point: DCQCN state of one queue pair.
#[derive(Clone, Debug)]
pub struct DcqcnControl {
    params: Box<Dcqcn>,
    line: f64,
    /// R_C and R_T, the current and the target rate \[b/s\].
    current: f64,
    target: f64,
    alpha: f64,
    /// Time at which α was last updated: a whole number of its timer's periods since the last notification.
    alpha_at: Time,
    /// Expiry of the rate timer; `Time::MAX`: off, as before the first notification and when the rate is the line's again.
    timer_at: Time,
    /// T and BC: expiries of timer and byte counter since the last notification, and bytes sent towards the next expiry.
    expiries: u32,
    rounds: u32,
    bytes: u64,
    decreased_at: Option<Time>,
}

impl DcqcnControl {
    pub fn new(params: &Dcqcn, path: &Path, _s: &mut Sending) -> Self {
        let line = path.line_rate.bps() as f64;
        DcqcnControl {
            params: Box::new(params.clone()),
            line,
            current: line,
            target: line,
            alpha: params.initial_alpha,
            alpha_at: Time::ZERO,
            timer_at: Time::MAX,
            expiries: 0,
            rounds: 0,
            bytes: 0,
            decreased_at: None,
        }
    }

    /// True if a notification has come, and the rate is not the line's again.
    fn is_limited(&self) -> bool {
        self.timer_at < Time::MAX
    }

    /// Ages α: α = (1 − g)·α for each period without notification. Source: DCQCN §3.1 equation 2.
    fn age(&mut self, now: Time) {
        if !self.is_limited() && self.decreased_at.is_none() {
            return; // before the first notification
        }
        let period = self.params.alpha_timer.ps();
        let periods = now.since(self.alpha_at).ps() / period;
        if periods > 0 {
            self.alpha *= libm::pow(1.0 - self.params.g, periods as f64);
            self.alpha_at += Span::from_ps(periods * period);
        }
    }

    /// Raises the rate after an expiry of timer or byte counter. Source: DCQCN §3.1 equations 3 and 4, figure 7.
    fn increase(&mut self, s: &mut Sending) {
        let f = self.params.fast_recovery;
        if self.expiries.max(self.rounds) >= f {
            let step =
                if self.expiries.min(self.rounds) > f { self.params.hyper_increase } else { self.params.additive_increase };
            self.target = (self.target + step.bps() as f64).min(self.line);
        }
        self.current = f64::midpoint(self.target, self.current);
        if self.current >= 0.999_999 * self.line {
            (self.current, self.timer_at, self.bytes) = (self.line, Time::MAX, 0);
        }
        self.set(s);
    }

    fn set(&self, s: &mut Sending) {
        s.rate = BitRate(self.current as u64);
    }
}

impl RateControl for DcqcnControl {
    const NEEDS: Needs = Needs { marks: Some("DCQCN"), curve: true, ..Needs::NOTHING };

    /// The authors' marking curve: K_min = 5 KB, K_max = 200 KB and P_max = 1 % at 40 Gb/s, at other rates in proportion.
    /// Source: DCQCN §5.2.
    fn authors(at: &Ground) -> Vec<Setting> {
        let [min, max] = [5_000, 200_000].map(|size| at.in_proportion(Bytes(size), BitRate::from_gbps(40)).get());
        let curve = format!("min = \"{min}B\", max = \"{max}B\", max_p = 0.01");
        let queue_as_it_is = "weight = 1.0, gentle = false, hard_drop = false, drop_others = false, spacing = \"geometric\"";
        vec![("switch.marking", format!("{{ kind = \"red\", {curve}, {queue_as_it_is} }}"))]
    }

    /// Cuts the rate for a notification: R_T = R_C, R_C = R_C·(1 − α/2), α = (1 − g)·α + g. Source: DCQCN §3.1 equation 1.
    fn on_cnp(&mut self, s: &mut Sending, now: Time) {
        self.age(now);
        let p = &self.params;
        let cuts = self.decreased_at.is_none_or(|at| now.since(at) >= p.decrease_interval);
        if cuts {
            let risen = self.expiries + self.rounds > 0 || self.decreased_at.is_none();
            if p.clamp_target || risen {
                self.target = self.current;
            }
            let factor = (1.0 - self.alpha / 2.0).max(p.min_decrease_factor);
            self.current = (self.current * factor).max((p.min_rate.bps() as f64).min(self.line));
            self.decreased_at = Some(now);
        }
        self.alpha = (1.0 - p.g) * self.alpha + p.g;
        self.alpha_at = now;
        if cuts {
            (self.expiries, self.rounds, self.bytes) = (0, 0, 0);
            self.timer_at = now + self.params.rate_timer;
        }
        self.set(s);
    }

    fn on_ack(&mut self, _s: &mut Sending, feedback: &Feedback<'_>) {
        self.age(feedback.now);
    }

    fn on_sent(&mut self, s: &mut Sending, _now: Time, wire: u32) {
        if !self.is_limited() {
            return;
        }
        self.bytes += u64::from(wire);
        if self.bytes >= self.params.byte_counter.get() {
            self.bytes = 0;
            self.rounds += 1;
            self.increase(s);
        }
    }

    fn on_timer(&mut self, s: &mut Sending, now: Time) {
        if self.timer_at <= now {
            self.timer_at = now + self.params.rate_timer;
            self.expiries += 1;
            self.increase(s);
        }
    }

    fn next_timeout(&self) -> Time {
        self.timer_at
    }

    fn alpha(&self) -> Option<f64> {
        Some(self.alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 40_000_000_000;

    fn control(params: Dcqcn) -> (DcqcnControl, Sending) {
        let path = Path { line_rate: BitRate(LINE), base_rtt: Span::from_us(10), hops: 1, payload: 1_024, wire: 1_106 };
        let mut s = Sending { rate: path.line_rate, window: Sending::UNLIMITED };
        (DcqcnControl::new(&params, &path, &mut s), s)
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn mbps(s: &Sending) -> u64 {
        s.rate.bps() / 1_000_000
    }

    /// A trial marks as the paper does, in proportion to the line. Source: DCQCN §5.2.
    #[test]
    fn a_trial_marks_in_proportion_to_the_line() {
        for (gbps, curve) in [(40, "min = \"5000B\", max = \"200000B\""), (100, "min = \"12500B\", max = \"500000B\"")] {
            let at = Ground { rate: BitRate::from_gbps(gbps), rtt: Span::from_us(10), buffer: None, marks: None };
            let [(path, value)] = &DcqcnControl::authors(&at)[..] else { panic!("one setting") };
            assert_eq!(*path, "switch.marking");
            assert!(value.starts_with(&format!("{{ kind = \"red\", {curve}, max_p = 0.01, weight = 1.0, ")), "{value}");
        }
    }

    /// By hand, from the equations: 40 → 20 at α = 1, back by halves of the gap, then by R_AI and R_HAI.
    #[test]
    fn a_cut_fast_recovery_and_additive_increase() {
        let (mut c, mut s) = control(Dcqcn::new(DcqcnProfile::Paper));
        assert_eq!(c.next_timeout(), Time::MAX);
        c.on_cnp(&mut s, at(100));
        assert_eq!(mbps(&s), 20_000);
        c.on_cnp(&mut s, at(150));
        assert_eq!((mbps(&s), c.alpha), (10_000, 1.0));
        let mut seen = Vec::new();
        for i in 1..=7 {
            assert_eq!(c.next_timeout(), at(150 + 55 * i));
            c.on_timer(&mut s, at(150 + 55 * i));
            seen.push(s.rate.bps() / 10_000);
        }
        // Four steps towards R_T = 20 Gb/s; from the fifth expiry on R_T rises by 40 Mb/s first: max (T, BC) < F ends.
        assert_eq!(seen, [1_500_000, 1_750_000, 1_875_000, 1_937_500, 1_970_750, 1_989_375, 2_000_687]);
        // Bytes count by themselves; with both beyond F the target rises by R_HAI.
        for _ in 0..5 {
            for _ in 0..9_042 {
                c.on_sent(&mut s, at(550), 1_106);
            }
        }
        assert_eq!((c.expiries, c.rounds), (7, 5));
        let before = c.target;
        for _ in 0..9_042 {
            c.on_sent(&mut s, at(550), 1_106);
        }
        assert_eq!(c.target - before, 400e6);
        // A notification begins anew.
        c.on_cnp(&mut s, at(560));
        assert_eq!((c.expiries, c.rounds, c.bytes, c.next_timeout()), (0, 0, 0, at(615)));
    }

    #[test]
    fn alpha_falls_by_g_in_each_period_without_notification() {
        let (mut c, mut s) = control(Dcqcn { g: 0.25, ..Dcqcn::new(DcqcnProfile::Paper) });
        c.on_cnp(&mut s, at(0));
        c.on_ack(&mut s, &Feedback { now: at(54), ..Feedback::default() });
        assert_eq!(c.alpha, 1.0);
        c.on_ack(&mut s, &Feedback { now: at(55), ..Feedback::default() });
        assert_eq!((c.alpha, RateControl::alpha(&c)), (0.75, Some(0.75)));
        c.on_ack(&mut s, &Feedback { now: at(165), ..Feedback::default() });
        assert_eq!(c.alpha, 0.75 * 0.75 * 0.75);
        let (alpha, rate) = (c.alpha, c.current);
        c.on_cnp(&mut s, at(166));
        assert_eq!((c.current, c.alpha), (rate * (1.0 - alpha / 2.0), 0.75 * alpha + 0.25));
    }

    /// Without the clamp the target stays where it was before a row of cuts, and cuts are as far apart as they have to be.
    #[test]
    fn a_row_of_cuts_keeps_the_first_target_where_targets_are_not_clamped() {
        let (mut c, mut s) = control(Dcqcn::new(DcqcnProfile::Mlx5));
        c.on_cnp(&mut s, at(100));
        c.on_cnp(&mut s, at(103));
        assert_eq!(mbps(&s), 20_000);
        c.on_cnp(&mut s, at(104));
        assert!(mbps(&s) < 11_000 && c.target == LINE as f64, "{}", s.rate);
        c.on_timer(&mut s, at(404));
        c.on_cnp(&mut s, at(405));
        assert!(c.target < LINE as f64);
        let (mut low, mut s) = control(Dcqcn { min_rate: BitRate::from_mbps(900), ..Dcqcn::new(DcqcnProfile::Paper) });
        for i in 0..50 {
            low.on_cnp(&mut s, at(i));
        }
        assert_eq!(mbps(&s), 900);
    }

    /// What the reference shows as defaults are those of the paper's profile.
    #[test]
    fn defaults_are_the_papers() {
        use fanin_params::{Param, Value};
        let Value::Table(paper) = Dcqcn::new(DcqcnProfile::Paper).to_value() else { panic!("a table") };
        for field in Dcqcn::struct_schema().fields {
            let value = paper.iter().find(|(key, _)| key == field.name).map(|(_, node)| node.value.clone());
            assert_eq!(field.default, value, "{}", field.name);
        }
    }

    /// A way back that takes longer than is looked at has no time; what a byte counter would take may be beyond all time.
    #[test]
    fn no_recovery_is_followed_for_ever() {
        let slow = |byte_counter: u64| Dcqcn {
            additive_increase: BitRate(1_000),
            hyper_increase: BitRate(1_000),
            byte_counter: Bytes(byte_counter),
            ..Dcqcn::new(DcqcnProfile::Paper)
        };
        assert_eq!(slow(1).recovery(BitRate::from_gbps(400), SHARING), None);
        // What a byte counter would take is beyond all time; five steps by the timer and one more than the line.
        for (line, counter) in [(BitRate(1_000), 10_000_000_000), (BitRate(7), 1 << 33)] {
            assert_eq!(slow(counter).recovery(line, SHARING), Some(Span::from_us(5 * 55)), "{line}");
        }
    }

    /// Against the closed form while only the timer counts: (0.9 − 0.01) C T / R_AI; and R_AI in proportion keeps it.
    #[test]
    fn recovery_takes_what_steps_take() {
        let params = |mbps: u64, bytes: u64| Dcqcn {
            additive_increase: BitRate::from_mbps(mbps),
            hyper_increase: BitRate::from_mbps(10 * mbps),
            byte_counter: Bytes(bytes),
            ..Dcqcn::new(DcqcnProfile::Paper)
        };
        let ms = |span: Option<Span>| span.expect("within a second").ps() as f64 / 1e9;
        let by_timer = ms(params(40, 10_000_000_000).recovery(BitRate(LINE), 1));
        let theory = 0.89 * 40_000.0 / 40.0 * 0.055;
        assert!((by_timer / theory - 1.0).abs() < 0.02, "{by_timer} {theory}");
        for n in [1, 16] {
            let paper = |mbps, gbps| ms(params(mbps, 10_000_000).recovery(BitRate::from_gbps(gbps), n));
            let (at_40, at_100, at_400) = (paper(40, 40), paper(40, 100), paper(40, 400));
            println!(
                "1 of {n}: 40 Gb/s {at_40:.1}, 100 Gb/s {at_100:.1}, 400 Gb/s {at_400:.1} ms; in proportion {:.1}",
                paper(400, 400)
            );
            let mlx5 = |gbps| ms(Dcqcn::new(DcqcnProfile::Mlx5).recovery(BitRate::from_gbps(gbps), n));
            println!("mlx5: 25 Gb/s {:.1}, 100 Gb/s {:.1}, 400 Gb/s {:.1} ms", mlx5(25), mlx5(100), mlx5(400));
            assert!(paper(400, 400) <= at_40 * 1.01 && at_100 > at_40 && at_400 > at_100);
        }
    }

    /// Bytes that leave while the timer runs count towards the byte counter: with both, the way back is as short as packet by packet.
    #[test]
    fn recovery_counts_bytes_between_expiries() {
        let params = Dcqcn { additive_increase: BitRate::from_mbps(400), ..Dcqcn::new(DcqcnProfile::Paper) };
        let estimate = params.recovery(BitRate(LINE), 1).expect("within a second");
        let (mut c, mut s) = control(params.clone());
        let low = LINE as f64 / 100.0;
        (c.current, c.target, c.timer_at) = (low, low, Time::ZERO + params.rate_timer);
        let mut now = Time::ZERO;
        while c.current < 0.9 * LINE as f64 {
            let next = now + BitRate(c.current as u64).time_to_send(Bytes(1_000));
            if c.next_timeout() <= next {
                let expiry = c.next_timeout();
                c.on_timer(&mut s, expiry);
            }
            now = next;
            c.on_sent(&mut s, now, 1_000);
        }
        let ratio = estimate.ps() as f64 / now.since(Time::ZERO).ps() as f64;
        assert!((0.99..1.01).contains(&ratio), "{estimate:?} {now:?}");
    }

    /// At the line's rate again, nothing is left to do.
    #[test]
    fn the_way_back_ends() {
        let (mut c, mut s) = control(Dcqcn::new(DcqcnProfile::Paper));
        c.on_cnp(&mut s, at(0));
        let mut expiries = 0;
        while c.next_timeout() < Time::MAX {
            c.on_timer(&mut s, c.next_timeout());
            expiries += 1;
        }
        assert_eq!((s.rate.bps(), c.next_timeout()), (LINE, Time::MAX));
        assert!((10..40).contains(&expiries), "{expiries}");
    }

    /// Nothing is counted before the first notification, and α keeps its initial value: the first cut halves the rate whenever it comes.
    /// Source: DCQCN §3.1 (the rate limiter begins with the first notification).
    #[test]
    fn nothing_ages_or_counts_before_the_first_notification() {
        let (mut c, mut s) = control(Dcqcn { byte_counter: Bytes(1_000), ..Dcqcn::new(DcqcnProfile::Paper) });
        c.on_ack(&mut s, &Feedback { now: at(1_000), ..Feedback::default() });
        c.on_sent(&mut s, at(1_000), 5_000);
        c.on_timer(&mut s, at(1_000));
        assert_eq!((c.alpha, c.bytes, c.rounds, c.expiries, c.next_timeout()), (1.0, 0, 0, 0, Time::MAX));
        c.on_cnp(&mut s, at(1_010));
        assert_eq!(mbps(&s), 20_000);
    }

    /// α goes on falling when the rate is the line's again: (1 − g)^100 after a hundred periods.
    #[test]
    fn alpha_ages_at_the_rate_of_the_line() {
        let (mut c, mut s) = control(Dcqcn { g: 0.25, ..Dcqcn::new(DcqcnProfile::Paper) });
        c.on_cnp(&mut s, at(0));
        while c.next_timeout() < Time::MAX {
            c.on_timer(&mut s, c.next_timeout());
        }
        c.on_ack(&mut s, &Feedback { now: at(5_500), ..Feedback::default() });
        assert_eq!(c.alpha, libm::pow(0.75, 100.0));
    }

    /// The byte counter expires with its last byte, the timer not before its time.
    #[test]
    fn counter_and_timer_expire_when_they_are_full() {
        let (mut c, mut s) = control(Dcqcn { byte_counter: Bytes(2_212), ..Dcqcn::new(DcqcnProfile::Paper) });
        c.on_cnp(&mut s, at(0));
        c.on_timer(&mut s, at(54));
        c.on_sent(&mut s, at(54), 1_106);
        assert_eq!((c.expiries, c.rounds, c.bytes, mbps(&s), c.next_timeout()), (0, 0, 1_106, 20_000, at(55)));
        c.on_sent(&mut s, at(54), 1_106);
        assert_eq!((c.expiries, c.rounds, c.bytes, mbps(&s)), (0, 1, 0, 30_000));
    }

    /// Hyper increase begins when both are beyond F, not at it: min (T, BC) > F. Source: DCQCN figure 7.
    #[test]
    fn hyper_increase_begins_beyond_f() {
        let (mut c, mut s) = control(Dcqcn { byte_counter: Bytes(1_000), ..Dcqcn::new(DcqcnProfile::Paper) });
        c.on_cnp(&mut s, at(0));
        (c.expiries, c.rounds, c.target, c.current) = (7, 3, 10e9, 10e9);
        let mut steps = |c: &mut DcqcnControl| {
            let before = c.target;
            c.on_sent(&mut s, at(1), 1_000);
            (c.rounds, c.target - before)
        };
        assert_eq!([steps(&mut c), steps(&mut c), steps(&mut c)], [(4, 40e6), (5, 40e6), (6, 400e6)]);
        (c.expiries, c.rounds, c.target) = (0, 3, 10e9);
        assert_eq!([steps(&mut c), steps(&mut c)], [(4, 0.0), (5, 40e6)], "fast recovery up to F");
    }
}
