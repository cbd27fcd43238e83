//! Swift: windows that keep the delay of the fabric and that of the hosts at targets. Source: Swift §3, algorithm 1.

use super::{ControlParams, Feedback, Loss, Needs, Path, RateControl, Sending};
use fanin_params::{params, Cx};
use fanin_units::{BitRate, Bytes, Span, Time};

params! {
    /// Swift: windows, in packets, by delays of fabric and hosts. Source: Swift §3.
    pub struct Swift {
        /// Target of the fabric's delay on a path without switches, before scaling. Source: csg-htsim (20 us); the paper has
        /// no number.
        pub base_target: Span = Span::from_us(20), in Span::from_ns(100)..=Span::from_ms(10);
        /// ħ: addition to the target per switch on the path. Source: Swift §3.5 (topology-based scaling); csg-htsim (base /
        /// 6.55).
        pub per_hop: Span = Span::from_us(3), in Span::ZERO..=Span::from_ms(1);
        /// Largest addition to the target for small windows: many flows have small windows and need longer queues. Source:
        /// Swift §3.5 (flow-based scaling), csg-htsim (5 times `base_target`).
        pub flow_scaling: Span = Span::from_us(100), in Span::ZERO..=Span::from_ms(10);
        /// fs_min_cwnd: window up to which `flow_scaling` is added in full. Source: Swift §3.5, csg-htsim (0.1).
        pub scaling_min: f64 = 0.1, in 0.001..=1_000.0;
        /// fs_max_cwnd: window from which on `flow_scaling` adds nothing. Source: Swift §3.5, csg-htsim (100).
        pub scaling_max: f64 = 100.0, in 0.01..=100_000.0;
        /// Target of the endpoints' delay: waits of packets in the receiver, and of acknowledgments in the sender. Source:
        /// Swift §3.2, which has no number.
        pub end_target: Span = Span::from_us(20), in Span::from_ns(100)..=Span::from_ms(10);
        /// α: additive increase \[packets per RTT\]. Source: Swift §3.1; csg-htsim (1).
        pub increase: f64 = 1.0, in 0.001..=1_000.0;
        /// β: decrease per excess over the target. Source: Swift §3.1; csg-htsim (0.8).
        pub beta: f64 = 0.8, in 0.001..=1.0;
        /// max_mdf: largest decrease per RTT. Source: Swift §3.1; csg-htsim (0.5).
        pub max_decrease: f64 = 0.5, in 0.001..=0.999;
        /// Smallest window \[packets\]; a window below one sends a packet every 1/window RTTs. Source: Swift §3.3 (0.001 is
        /// the least that it names).
        pub min_window: f64 = 0.001, in 0.000_1..=1.0;
        /// Largest window \[packets\]; if absent, 10 times the path's bandwidth-delay product.
        pub max_window: Option<f64> = None, in 1.0..=1_000_000.0;
        /// Initial window of a flow \[packets\]; if absent, the path's bandwidth-delay product.
        pub initial_window: Option<f64> = None, in 0.01..=1_000_000.0;
        /// RETX_RESET_THRESHOLD: number of timeouts in a row after which the window is set to the smallest. Source: Swift
        /// algorithm 1; csg-htsim (5).
        pub reset_after: u32 = 5, in 1_u32..=100;
    }
}

impl ControlParams for Swift {
    fn check(&self, cx: &mut Cx) {
        if self.scaling_min >= self.scaling_max {
            cx.error_at("scaling_min", &self.scaling_min, "is not below scaling_max", &format!("below {}", self.scaling_max));
        }
        for (key, window) in [("initial_window", self.initial_window), ("max_window", self.max_window)] {
            if window.is_some_and(|window| window < self.min_window) {
                cx.error_at(key, &window, "is below min_window", &format!("at least {}", self.min_window));
            }
        }
        if let (Some(first), Some(most)) = (self.initial_window, self.max_window) {
            if first > most {
                cx.error_at("initial_window", &first, "is above max_window", &format!("at most {most}"));
            }
        }
    }
}

/// A window and the time of its last reduction, for fabric or endpoint delay. Source: Swift §3.2.
#[derive(Clone, Copy, Debug)]
struct Cwnd {
    packets: f64,
    reduced: Option<Time>,
}

impl Cwnd {
    /// True if an RTT has passed since the last reduction.
    fn can_fall(&self, now: Time, rtt: Span) -> bool {
        self.reduced.is_none_or(|at| now.since(at) >= rtt)
    }

    /// Updates the window for an acknowledgment of `packets`, by algorithm 1.
    fn on_ack(&mut self, p: &Swift, now: Time, (delay, target, rtt): (Span, Span, Span), packets: u32) {
        if delay < target {
            let acked = f64::from(packets) * p.increase;
            self.packets += if self.packets >= 1.0 { acked / self.packets } else { acked };
        } else if self.can_fall(now, rtt) {
            let excess = (delay - target).as_secs_f64() / delay.as_secs_f64();
            self.packets *= (1.0 - p.beta * excess).max(1.0 - p.max_decrease);
            self.reduced = Some(now);
        }
    }

    fn on_loss(&mut self, p: &Swift, now: Time, rtt: Span) {
        if self.can_fall(now, rtt) {
            self.packets *= 1.0 - p.max_decrease;
            self.reduced = Some(now);
        }
    }
}

/// Swift state of a queue pair.
#[derive(Clone, Debug)]
pub struct SwiftControl {
    params: Box<Swift>,
    path: Path,
    most: f64,
    fabric: Cwnd,
    ends: Cwnd,
    /// Last measured RTT.
    rtt: Span,
    timeouts: u32,
}

impl SwiftControl {
    pub fn new(params: &Swift, path: &Path, s: &mut Sending) -> Self {
        let fills = path.bdp() as f64 / f64::from(path.payload);
        let most = params.max_window.unwrap_or(10.0 * fills);
        let first = Cwnd { packets: params.initial_window.unwrap_or(fills).clamp(params.min_window, most), reduced: None };
        let control = SwiftControl {
            params: Box::new(params.clone()),
            path: *path,
            most,
            fabric: first,
            ends: first,
            rtt: path.base_rtt,
            timeouts: 0,
        };
        control.set(s);
        control
    }

    /// Target of the fabric delay: base + hops·ħ + max (0, min (a/√cwnd + b, range)). Source: Swift §3.5.
    fn target(&self) -> Span {
        let p = &self.params;
        let [low, high] = [p.scaling_min, p.scaling_max].map(libm::sqrt);
        let range = p.flow_scaling.as_secs_f64();
        let a = range / (1.0 / low - 1.0 / high);
        let scaled = (a / libm::sqrt(self.fabric.packets) - a / high).clamp(0.0, range);
        p.base_target + p.per_hop * u64::from(self.path.hops) + Span::from_secs_f64(scaled)
    }

    /// Applies the smaller window; below one packet, packets leave RTT / cwnd apart. Source: Swift §3.3.
    fn set(&self, s: &mut Sending) {
        let window = self.fabric.packets.min(self.ends.packets);
        if window >= 1.0 {
            s.window = (window * f64::from(self.path.payload)) as u64;
            s.rate = self.path.line_rate;
        } else {
            s.window = u64::from(self.path.payload);
            let apart = Span::from_secs_f64(self.rtt.as_secs_f64() / window);
            s.rate = BitRate::of(Bytes(u64::from(self.path.wire)), apart).max(BitRate(1)).min(self.path.line_rate);
        }
    }

    fn keep_within(&mut self) {
        for cwnd in [&mut self.fabric, &mut self.ends] {
            cwnd.packets = cwnd.packets.clamp(self.params.min_window, self.most);
        }
    }
}

impl RateControl for SwiftControl {
    const NEEDS: Needs = Needs { waited: true, window: true, ..Needs::NOTHING };

    fn on_ack(&mut self, s: &mut Sending, feedback: &Feedback<'_>) {
        self.timeouts = 0;
        let Some(rtt) = feedback.rtt else { return };
        self.rtt = rtt;
        let at_ends = feedback.at_ends.min(rtt);
        let target = self.target();
        self.fabric.on_ack(&self.params, feedback.now, (rtt - at_ends, target, rtt), feedback.packets);
        self.ends.on_ack(&self.params, feedback.now, (at_ends, self.params.end_target, rtt), feedback.packets);
        self.keep_within();
        self.set(s);
    }

    fn on_loss(&mut self, s: &mut Sending, now: Time, loss: Loss) {
        if loss == Loss::Timeout {
            self.timeouts += 1;
        } else {
            self.timeouts = 0;
        }
        for cwnd in [&mut self.fabric, &mut self.ends] {
            if self.timeouts >= self.params.reset_after {
                cwnd.packets = self.params.min_window;
            } else {
                cwnd.on_loss(&self.params, now, self.rtt);
            }
        }
        self.keep_within();
        self.set(s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path =
        Path { line_rate: BitRate::from_gbps(100), base_rtt: Span::from_us(10), hops: 2, payload: 1_000, wire: 1_250 };

    fn params() -> Swift {
        Swift {
            base_target: Span::from_us(20),
            per_hop: Span::from_us(3),
            flow_scaling: Span::from_us(100),
            scaling_min: 0.1,
            scaling_max: 100.0,
            end_target: Span::from_us(20),
            increase: 1.0,
            beta: 0.8,
            max_decrease: 0.5,
            min_window: 0.01,
            max_window: None,
            initial_window: Some(10.0),
            reset_after: 2,
        }
    }

    fn control(params: Swift) -> (SwiftControl, Sending) {
        let mut s = Sending { rate: PATH.line_rate, window: Sending::UNLIMITED };
        (SwiftControl::new(&params, &PATH, &mut s), s)
    }

    fn ack(now: u64, rtt: u64, at_ends: u64) -> Feedback<'static> {
        let [now, rtt, at_ends] = [now, rtt, at_ends].map(Span::from_us);
        Feedback { now: Time::ZERO + now, acked: 1_000, packets: 1, rtt: Some(rtt), at_ends, ..Feedback::default() }
    }

    /// By hand: 20 us + 2·3 us + (a/√10 − a/10), a = 100 us / (1/√0.1 − 1/10) = 32.6534 us: 7.06 us.
    #[test]
    fn the_target_grows_with_hops_and_as_windows_shrink() {
        let (mut c, _) = control(params());
        assert!((c.target().as_secs_f64() * 1e6 - (26.0 + 7.0606)).abs() < 1e-3, "{}", c.target());
        for (packets, us) in [(100.0, 26.0), (1_000.0, 26.0), (0.1, 126.0), (0.01, 126.0)] {
            c.fabric.packets = packets;
            assert!((c.target().as_secs_f64() * 1e6 - us).abs() < 1e-3, "{packets}: {}", c.target());
        }
    }

    #[test]
    fn windows_rise_below_the_target_and_fall_once_per_rtt_above() {
        let (mut c, mut s) = control(params());
        assert_eq!((s.window, s.rate), (10_000, PATH.line_rate));
        c.on_ack(&mut s, &ack(0, 30, 0));
        assert_eq!((c.fabric.packets, c.ends.packets, s.window), (10.1, 10.1, 10_100));
        let target = c.target().as_secs_f64();
        c.on_ack(&mut s, &ack(10, 60, 0));
        let expected = 10.1 * (1.0 - 0.8 * (60e-6 - target) / 60e-6);
        assert!((c.fabric.packets - expected).abs() < 1e-9 && c.ends.packets > 10.1);
        c.on_ack(&mut s, &ack(69, 60, 0)); // within an RTT
        assert!((c.fabric.packets - expected).abs() < 1e-9);
        c.on_ack(&mut s, &ack(1_010, 1_000, 0)); // max_mdf
        assert!((c.fabric.packets - 0.5 * expected).abs() < 1e-9);
        // What waits at the ends is no delay of the fabric, and the ends have a window of their own.
        let (mut c, mut s) = control(params());
        c.on_ack(&mut s, &ack(0, 60, 40));
        assert_eq!((c.fabric.packets, c.ends.packets), (10.1, 10.0 * (1.0 - 0.8 * 0.5)));
        assert_eq!(s.window, 6_000);
    }

    /// Below one packet: 1250 B each 20 us / 0.5.
    #[test]
    fn a_window_below_a_packet_is_a_rate() {
        let (mut c, mut s) = control(Swift { initial_window: Some(0.5), ..params() });
        c.on_loss(&mut s, Time::ZERO, Loss::Nak);
        assert_eq!((c.fabric.packets, s.window), (0.25, 1_000));
        c.on_ack(&mut s, &ack(5, 20, 0));
        assert_eq!((c.fabric.packets, s.window), (1.25, 1_250));
        c.fabric.packets = 0.5;
        c.set(&mut s);
        assert_eq!(s.rate, BitRate(1_250 * 8 * 1_000_000 / 40));
    }

    #[test]
    fn timeouts_in_a_row_reset_the_window() {
        let (mut c, mut s) = control(params());
        let at = |us| Time::ZERO + Span::from_us(us);
        c.on_loss(&mut s, at(0), Loss::Timeout);
        assert_eq!(c.fabric.packets, 5.0);
        c.on_loss(&mut s, at(5), Loss::Nak); // within an RTT of the last reduction
        assert_eq!(c.fabric.packets, 5.0);
        c.on_loss(&mut s, at(100), Loss::Timeout);
        assert_eq!(c.fabric.packets, 2.5);
        c.on_loss(&mut s, at(101), Loss::Timeout);
        assert_eq!(c.fabric.packets, 0.01);
    }

    /// A delay of exactly the target lets a window neither rise nor fall, and counts as the reduction of this RTT. Source: Swift
    /// algorithm 1 (delay < target).
    #[test]
    fn at_the_target_a_window_stays() {
        let (mut c, mut s) = control(params());
        c.on_ack(&mut s, &ack(7, 40, 20));
        assert_eq!((c.ends.packets, c.ends.reduced), (10.0, Some(Time::ZERO + Span::from_us(7))));
    }

    /// Windows end at the largest one: 10 BDP unless it is given. Here 125,000 B of line, 100 packets of 1250 B.
    #[test]
    fn windows_end_at_the_largest() {
        let (c, s) = control(Swift { initial_window: None, ..params() });
        assert_eq!((c.fabric.packets, c.most, s.window), (100.0, 1_000.0, 100_000));
        let (mut c, mut s) = control(Swift { max_window: Some(10.05), ..params() });
        c.on_ack(&mut s, &ack(0, 20, 0));
        assert_eq!((c.fabric.packets, c.ends.packets, s.window), (10.05, 10.05, 10_050));
        let (c, _) = control(Swift { max_window: Some(5.0), ..params() });
        assert_eq!((c.fabric.packets, c.ends.packets), (5.0, 5.0));
    }
}
