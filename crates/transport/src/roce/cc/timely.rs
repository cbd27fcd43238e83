//! TIMELY: a rate that follows the gradient of the RTT. Source: TIMELY §4.3, algorithm 1.

use super::{ControlParams, Feedback, Path, RateControl, Sending};
use crate::transport::Idle;
use fanin_params::{params, Cx, Ground};
use fanin_units::{BitRate, Bytes, Span};

params! {
    /// TIMELY: rate by the gradient of the RTT. Source: TIMELY §4.3.
    pub struct Timely {
        /// T_low: RTT below which the rate rises, regardless of the gradient. Source: TIMELY §6.1 (50 us).
        pub t_low: Span = Span::from_us(50), in Span::from_ns(100)..=Span::from_ms(100);
        /// T_high: RTT above which the rate falls, regardless of the gradient. Source: TIMELY §6.1 (500 us).
        pub t_high: Span = Span::from_us(500), in Span::from_ns(100)..=Span::from_ms(100);
        /// D_minRTT: divisor of gradients; if absent, the flow's base RTT. Source: TIMELY §4.3 (20 us in its testbed).
        pub min_rtt: Option<Span> = None, in Span::from_ns(100)..=Span::from_ms(100);
        /// δ: additive increase per completed segment. Source: TIMELY §6.1 (10 Mb/s).
        pub delta: BitRate = BitRate(10_000_000), in BitRate(1_000)..=BitRate(1_000_000_000_000);
        /// β: multiplicative decrease factor. Source: TIMELY §6.1 (0.8).
        pub beta: f64 = 0.8, in 0.001..=1.0;
        /// α: weight of the newest difference of RTTs in the average. Source: TIMELY §6.1 (0.875).
        pub alpha: f64 = 0.875, in 0.001..=1.0;
        /// Number of completed segments in a row without rising RTT after which the rate rises by N·δ (hyperactive increase,
        /// HAI). Source: TIMELY §4.3.2 (5).
        pub hai_after: u32 = 5, in 1_u32..=1_000;
        /// N: factor of δ in hyperactive increase. Source: TIMELY §4.3.2 (5).
        pub hai: u32 = 5, in 1_u32..=100;
        /// Payload bytes of a segment, whose completion gives an RTT. Source: TIMELY §3.1 (16 to 64 KB).
        pub segment: Bytes = Bytes(16_384), in Bytes(256)..=Bytes(1_048_576);
        /// Initial rate of a flow; if absent, the line's. Source: TIMELY §4.2 has the line's rate over the number of the
        /// host's flows plus one.
        pub initial_rate: Option<BitRate> = None, in BitRate(1_000_000)..=BitRate(10_000_000_000_000);
        /// Lower bound of rates.
        pub min_rate: BitRate = BitRate(10_000_000), in BitRate(1_000)..=BitRate(1_000_000_000_000);
    }
}

impl ControlParams for Timely {
    fn check(&self, cx: &mut Cx) {
        if self.t_low > self.t_high {
            cx.error_at("t_low", &self.t_low, "is above t_high", &format!("at most {}", self.t_high));
        }
    }

    /// Warns if the paper's values, which are for 10 Gb/s and base RTTs of some 20 us, do not suit the network. Source: TIMELY
    /// §6.1; HPCC (its simulator's attributes TimelyTLow to TimelyMinRtt have the same values, and its run.py scales δ by the
    /// rate over 10 Gb/s).
    fn check_at(&self, at: &Idle, cx: &mut Cx) {
        let share = at.line.bps() / STEPS;
        if self.delta.bps().saturating_mul(FEW) < share {
            let doubles = f64::from(u32::try_from(self.segment.get()).unwrap_or(u32::MAX)) * 8.0 / self.delta.bps() as f64;
            let message = format!(
                "is small compared with {}: a rate that has fallen doubles in {:.1} ms at the earliest, whatever the line (segment / delta · ln 2)",
                at.line,
                doubles * std::f64::consts::LN_2 * 1e3
            );
            cx.warn_at("delta", &self.delta, message).suggestion =
                Some(format!("delta = \"{}\": line rate / {STEPS}, as the paper has it at 10 Gb/s", BitRate(share)));
        }
        let Some(rtt) = at.base_rtt.filter(|rtt| self.t_low > rtt.saturating_mul(FEW)) else { return };
        let queue = at.line.bytes_in(self.t_low - rtt);
        let message = format!(
            "is far above the base RTT of {}: rates rise, whatever the gradient, until {queue} wait at {}",
            Span::from_ns(rtt.ps() / 1_000),
            at.line
        );
        let (low, high) = thresholds(rtt);
        cx.warn_at("t_low", &self.t_low, message).suggestion =
            Some(format!("t_low = \"{low}\", t_high = \"{high}\": as the paper has them at 20 us"));
    }
}

/// Ratio of the line's rate to delta in the paper, at 10 Gb/s.
const STEPS: u64 = 1_000;
/// Ratio to the paper's values from which a warning is given.
const FEW: u64 = 4;

/// T_low and T_high scaled to a base RTT, from 50 and 500 us at 20 us; in whole microseconds.
fn thresholds(rtt: Span) -> (Span, Span) {
    let us = Span::from_us(1).ps();
    let low = Span::from_us((rtt.ps() * 5 / 2).div_ceil(us));
    (low, low.saturating_mul(10))
}

/// TIMELY state of a queue pair.
#[derive(Clone, Debug)]
pub struct TimelyControl {
    params: Box<Timely>,
    line: f64,
    /// Present rate \[b/s\].
    rate: f64,
    /// D_minRTT, and time of a full packet on the host's wire, which is no part of an RTT \[s\].
    min_rtt: f64,
    packet: Span,
    /// RTT of the last completion \[s\].
    previous: Option<f64>,
    /// Moving average of RTT differences \[s\].
    difference: f64,
    /// Number of completions in a row without a rising RTT.
    calm: u32,
    /// End of the present segment, as an offset in the stream.
    ends: u64,
}

impl TimelyControl {
    pub fn new(params: &Timely, path: &Path, s: &mut Sending) -> Self {
        s.rate = params.initial_rate.unwrap_or(path.line_rate).min(path.line_rate);
        TimelyControl {
            params: Box::new(params.clone()),
            line: path.line_rate.bps() as f64,
            rate: s.rate.bps() as f64,
            min_rtt: params.min_rtt.unwrap_or(path.base_rtt).as_secs_f64(),
            packet: path.line_rate.time_to_send(Bytes(u64::from(path.wire))),
            previous: None,
            difference: 0.0,
            calm: 0,
            ends: params.segment.get(),
        }
    }

    /// Updates the rate at a completion, by algorithm 1.
    fn complete(&mut self, rtt: f64) {
        let p = &self.params;
        let Some(previous) = self.previous.replace(rtt) else { return };
        self.difference = (1.0 - p.alpha) * self.difference + p.alpha * (rtt - previous);
        let gradient = self.difference / self.min_rtt;
        let delta = p.delta.bps() as f64;
        let high = p.t_high.as_secs_f64();
        if rtt < p.t_low.as_secs_f64() {
            self.calm = 0;
            self.rate += delta;
        } else if rtt > high {
            self.calm = 0;
            self.rate *= 1.0 - p.beta * (1.0 - high / rtt);
        } else if gradient <= 0.0 {
            self.calm += 1;
            self.rate += if self.calm >= p.hai_after { f64::from(p.hai) } else { 1.0 } * delta;
        } else {
            self.calm = 0;
            self.rate *= (1.0 - p.beta * gradient).max(0.0);
        }
        self.rate = self.rate.clamp((p.min_rate.bps() as f64).min(self.line), self.line);
    }
}

impl RateControl for TimelyControl {
    /// Thresholds and delta scaled from the paper's 10 Gb/s and 20 us.
    fn suited(at: &Ground) -> String {
        let (low, high) = thresholds(at.rtt);
        let delta = BitRate((at.rate.bps() / STEPS).max(1_000));
        let idle = Idle { line: at.rate, base_rtt: Some(at.rtt) };
        let mut cx = Cx::new();
        ControlParams::check_at(&fanin_params::defaults::<Timely>(), &idle, &mut cx);
        if cx.into_problems().is_empty() {
            return String::new();
        }
        format!(", delta = \"{delta}\", t_low = \"{low}\", t_high = \"{high}\"")
    }

    /// Measures the RTT of a segment: completion − (sent + size / line rate), which is that of its last packet without its
    /// time on the host's wire. Source: TIMELY §4.1.
    fn on_ack(&mut self, s: &mut Sending, feedback: &Feedback<'_>) {
        if feedback.una < self.ends {
            return;
        }
        let segment = self.params.segment.get();
        self.ends += (feedback.una - self.ends) / segment * segment + segment;
        if let Some(rtt) = feedback.rtt {
            self.complete((rtt - rtt.min(self.packet)).as_secs_f64());
            s.rate = BitRate(self.rate as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(params: Timely) -> (TimelyControl, Sending) {
        let path = Path { line_rate: BitRate::from_gbps(10), base_rtt: Span::from_us(20), hops: 1, payload: 1_024, wire: 1_250 };
        let mut s = Sending { rate: path.line_rate, window: Sending::UNLIMITED };
        (TimelyControl::new(&params, &path, &mut s), s)
    }

    fn params() -> Timely {
        Timely {
            t_low: Span::from_us(50),
            t_high: Span::from_us(500),
            min_rtt: None,
            delta: BitRate::from_mbps(10),
            beta: 0.8,
            alpha: 0.875,
            hai_after: 5,
            hai: 5,
            segment: Bytes(16_384),
            initial_rate: Some(BitRate::from_gbps(1)),
            min_rate: BitRate::from_mbps(10),
        }
    }

    /// Completions of whole segments with these RTTs [us], packet time excluded: rates after each [Mb/s].
    fn rates(c: &mut TimelyControl, s: &mut Sending, rtts: &[u64]) -> Vec<u64> {
        let mut una = c.ends - c.params.segment.get();
        rtts.iter()
            .map(|us| {
                una += c.params.segment.get();
                let rtt = Some(Span::from_us(*us + 1)); // 1250 B at 10 Gb/s
                let f = Feedback { packets: 1, una, nxt: una, rtt, ..Feedback::default() };
                c.on_ack(s, &f);
                s.rate.bps() / 1_000_000
            })
            .collect()
    }

    /// By hand from algorithm 1, δ = 10 Mb/s.
    #[test]
    fn below_between_and_above_the_thresholds() {
        let (mut c, mut s) = control(params());
        // The first completion gives no difference; below T_low +δ, also when RTTs rise.
        assert_eq!(rates(&mut c, &mut s, &[30, 40, 49]), [1_000, 1_010, 1_020]);
        // Between: the difference was 0.125·8.75 + 0.875·9 = 8.96875 us; now 0.125·8.96875 + 0.875·2 = 2.87109 us, gradient
        // 0.143555: rate · (1 − 0.8 · 0.143555) = 902.86.
        assert_eq!(rates(&mut c, &mut s, &[51]), [902]);
        // Falls by 1: 0.125·2.87109 − 0.875 = −0.51611: +δ, four times, then 5·δ.
        assert_eq!(rates(&mut c, &mut s, &[50]), [912]);
        assert_eq!(rates(&mut c, &mut s, &[50, 50, 50, 50, 50]), [922, 932, 942, 992, 1_042]);
        // Above T_high: 1 − 0.8·(1 − 500/1000) = 0.6 times.
        assert_eq!(rates(&mut c, &mut s, &[1_000]), [625]);
    }

    #[test]
    fn rates_keep_between_the_least_and_the_lines() {
        let (mut c, mut s) = control(params());
        rates(&mut c, &mut s, &[100, 400, 100, 400]);
        assert_eq!(s.rate, BitRate::from_mbps(10));
        let (mut c, mut s) = control(Timely { delta: BitRate::from_gbps(6), ..params() });
        assert_eq!(rates(&mut c, &mut s, &[20, 20, 20]), [1_000, 7_000, 10_000]);
    }

    /// The paper's values are for 10 Gb/s and 20 us: δ is a thousandth of the line, T_low and T_high are 2.5 and 25 base RTTs.
    /// Source: TIMELY §6.1.
    #[test]
    fn a_trial_scales_the_papers_values_to_the_network() {
        let suited = |gbps, us| {
            let (rate, rtt) = (BitRate::from_gbps(gbps), Span::from_us(us));
            TimelyControl::suited(&Ground { rate, rtt, buffer: None, marks: None })
        };
        assert_eq!(suited(10, 20), "", "as in the paper");
        assert_eq!(suited(400, 20), ", delta = \"400Mbps\", t_low = \"50us\", t_high = \"500us\"");
        assert_eq!(suited(10, 4), ", delta = \"10Mbps\", t_low = \"10us\", t_high = \"100us\"");
        assert_eq!(suited(100, 11), ", delta = \"100Mbps\", t_low = \"28us\", t_high = \"280us\"", "in whole microseconds");
    }

    /// TIMELY estimates no congestion, and its trial gets switches that do not mark.
    #[test]
    fn rtts_need_no_marks() {
        assert_eq!(RateControl::alpha(&control(params()).0), None);
        let at = Ground { rate: BitRate::from_gbps(10), rtt: Span::from_us(20), buffer: None, marks: None };
        assert_eq!(TimelyControl::authors(&at), [("switch.marking", "\"none\"".to_string())]);
    }

    /// Acknowledgments within a segment say nothing; one that covers several completes once.
    #[test]
    fn only_completions_count() {
        let (mut c, mut s) = control(params());
        let mut feed = |una, us| {
            let rtt = Some(Span::from_us(us));
            let f = Feedback { acked: 1, packets: 1, una, nxt: una, rtt, ..Feedback::default() };
            c.on_ack(&mut s, &f);
            (c.ends, c.previous.is_some())
        };
        assert_eq!(feed(16_383, 30), (16_384, false));
        assert_eq!(feed(16_384, 30), (32_768, true));
        assert_eq!(feed(70_000, 30).0, 81_920);
    }

    /// An RTT of T_high is not above it: its gradient decides, here zero. Source: TIMELY algorithm 1 (new_rtt > T_high).
    #[test]
    fn the_upper_threshold_itself_goes_by_the_gradient() {
        let (mut c, mut s) = control(params());
        assert_eq!(rates(&mut c, &mut s, &[500, 500]), [1_000, 1_010]);
        assert_eq!(c.calm, 1);
    }
}
