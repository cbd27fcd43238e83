//! PowerTCP: the window follows power, the product of the arrival rate at the busiest port and the bytes in its queue and
//! pipe, by telemetry; or by delays alone (theta-PowerTCP). Source: PowerTCP §3.3, Algorithms 1 and 2.

use super::telemetry::Ports;
use super::{ControlParams, Feedback, Needs, Path, RateControl, Sending};
use fanin_params::{Cx, Ground};
use fanin_units::{BitRate, Span, Time};

fanin_params::params! {
    /// PowerTCP: power at the busiest port, by telemetry. Source: PowerTCP §3.3, Algorithm 1; values: the simulations
    /// published with it.
    pub struct PowerTcp {
        /// gamma: weight of a new window against that of the previous RTT.
        pub gamma: f64 = 0.9, in 0.01..=1.0;
        /// eta: target utilisation of links, by which power is divided. The paper has 1.
        pub eta: f64 = 0.95, in 0.5..=1.0;
        /// Lower bound of the current, as a share of the link's rate. The paper has 0.
        pub least_current: f64 = 0.5, in 0.0..=1.0;
        /// N: number of flows that shall share a host's line; beta = line rate · tau / N is the additive increase per RTT.
        pub flows: u32 = 167, in 1..=1_000_000;
        /// tau: base RTT of all flows; if absent, each flow's own on an idle network.
        pub base_rtt: Option<Span> = None, in Span::from_ns(100)..=Span::from_ms(10);
        /// Lower bound of a flow's rate.
        pub min_rate: BitRate = BitRate::from_mbps(100), in BitRate::from_mbps(1)..;
    }
}

fanin_params::params! {
    /// theta-PowerTCP: power by delays, without telemetry. Source: PowerTCP §3.3, Algorithm 2; values: the simulations
    /// published with it.
    pub struct ThetaPowerTcp {
        /// gamma: weight of a new window against that of the previous RTT. The paper has 0.9.
        pub gamma: f64 = 0.7, in 0.01..=1.0;
        /// eta: target of tau over RTT, by which power is divided. The paper has 1.
        pub eta: f64 = 0.95, in 0.5..=1.0;
        /// Lower bound of the current, as a share of the link's rate. The paper has 0.
        pub least_current: f64 = 0.5, in 0.0..=1.0;
        /// N: number of flows that shall share a host's line; beta = line rate · tau / N is the additive increase per RTT.
        pub flows: u32 = 167, in 1..=1_000_000;
        /// tau: base RTT of all flows; if absent, each flow's own on an idle network.
        pub base_rtt: Option<Span> = None, in Span::from_ns(100)..=Span::from_ms(10);
        /// Lower bound of a flow's rate.
        pub min_rate: BitRate = BitRate::from_mbps(100), in BitRate::from_mbps(1)..;
    }
}

impl ControlParams for PowerTcp {}

/// Tolerance of rounding, for numbers near one.
const ROUNDING: f64 = 1e-9;

/// Largest N with which one flow fills its line by itself: 1 / (1 - eta).
fn most_flows(eta: f64) -> u32 {
    (1.0 / (1.0 - eta) + ROUNDING) as u32
}

impl ControlParams for ThetaPowerTcp {
    /// Warns of an N with which one flow cannot fill its line: on an idle path RTT = tau and power is 1, so the window rests
    /// where (1 - eta) · w = beta, below the BDP if N is more than 1 / (1 - eta).
    fn check(&self, cx: &mut Cx) {
        let fill = (1.0 - self.eta) * f64::from(self.flows); // flows that fill the line without a queue
        if fill <= 1.0 + ROUNDING {
            return;
        }
        let message = format!(
            "is too many for eta = {}: n flows of a link use n · {:.0} % of it and no more, as windows rest at beta / (1 - eta)",
            self.eta,
            100.0 / fill
        );
        let most = most_flows(self.eta);
        cx.warn_at("flows", &self.flows, message).suggestion =
            Some(format!("flows = {most} or less, or eta = 1.0, where no link shall stay idle with few flows"));
    }
}

/// State common to PowerTCP and theta-PowerTCP: windows and smoothed power.
#[derive(Clone, Debug)]
struct Power {
    params: PowerTcp,
    /// beta, the additive increase \[B\].
    increase: f64,
    /// tau, the base RTT \[s\].
    base: f64,
    /// Largest window, which fills the line, and smallest one.
    most: f64,
    least: f64,
    line_rate: BitRate,
    window: f64,
    /// Window one round trip ago, from which all acknowledgments of this one start.
    reference: f64,
    /// Offset whose acknowledgment begins the next round trip.
    round_to: u64,
    /// Normalised power, averaged over a round trip.
    smooth: f64,
}

impl Power {
    fn new(params: &PowerTcp, path: &Path, s: &mut Sending) -> Self {
        let base = params.base_rtt.unwrap_or(path.base_rtt);
        let most = Path { base_rtt: base, ..*path }.bdp() as f64;
        s.window = most as u64;
        Power {
            params: params.clone(),
            increase: most / f64::from(params.flows),
            base: base.as_secs_f64(),
            most,
            least: most * (params.min_rate.bps() as f64 / path.line_rate.bps() as f64).min(1.0),
            line_rate: path.line_rate,
            window: most,
            reference: most,
            round_to: 0,
            smooth: 1.0,
        }
    }

    /// Adds power over `seconds` to the average. Source: PowerTCP Algorithm 1 (NORMPOWER, its last lines).
    fn smoothen(&mut self, power: f64, seconds: f64) {
        let share = (seconds / self.base).min(1.0);
        self.smooth = (1.0 - share) * self.smooth + share * power;
    }

    /// Updates window and rate (UPDATEWINDOW). Source: PowerTCP Algorithm 1.
    /// Deviation: both terms start from the window of one round trip ago, as in the simulations published with it. With the present
    /// window in the second one, each acknowledgment goes nine tenths of what is left of the way, and the loop oscillates.
    fn update_window(&mut self, s: &mut Sending) {
        let PowerTcp { gamma, eta, .. } = self.params;
        // Rounding may make power zero or less, which asks for any window.
        let wanted = if self.smooth > 0.0 { self.reference / (self.smooth / eta) + self.increase } else { self.most };
        let window = gamma * wanted + (1.0 - gamma) * self.reference;
        self.window = window.clamp(self.least, self.most);
        s.window = self.window as u64;
        s.rate = BitRate((self.line_rate.bps() as f64 * (self.window / self.most)) as u64);
    }

    /// True if this acknowledgment ends a round trip.
    fn ends_round(&self, f: &Feedback<'_>) -> bool {
        f.una > self.round_to
    }

    /// Records the window once per round trip (UPDATEOLD).
    fn begin_round(&mut self, f: &Feedback<'_>) {
        (self.reference, self.round_to) = (self.window, f.nxt);
    }
}

/// PowerTCP state of a queue pair.
#[derive(Clone, Debug)]
pub struct PowerTcpControl {
    power: Box<Power>,
    ports: Ports,
}

impl PowerTcpControl {
    pub fn new(params: &PowerTcp, path: &Path, s: &mut Sending) -> Self {
        PowerTcpControl { power: Box::new(Power::new(params, path, s)), ports: Ports::new() }
    }
}

impl RateControl for PowerTcpControl {
    const NEEDS: Needs = Needs { telemetry: Some("PowerTCP"), window: true, fills_window: true, ..Needs::NOTHING };

    fn apart(&self, fetch: &impl Fn(*const u8)) {
        self.ports.apart(fetch);
    }

    /// Handles an acknowledgment (NEWACK, NORMPOWER). Source: PowerTCP Algorithm 1, lines 1 to 25.
    fn on_ack(&mut self, s: &mut Sending, f: &Feedback<'_>) {
        let (tau, least) = (self.power.base, self.power.params.least_current);
        let (mut most, mut seconds) = (0.0, 0.0);
        let measured = self.ports.since(f, |port| {
            let gradient = (port.queue[1] - port.queue[0]) / port.seconds;
            let current = (gradient + port.sent).max(least * port.rate);
            let voltage = port.queue[1] + port.rate * tau;
            let normalised = current * voltage / (port.rate * port.rate * tau);
            if normalised > most {
                (most, seconds) = (normalised, port.seconds);
            }
        });
        if measured.is_some() {
            self.power.smoothen(most, seconds);
            self.power.update_window(s);
        }
        if self.power.ends_round(f) {
            self.power.begin_round(f);
        }
    }
}

/// theta-PowerTCP state of a queue pair.
#[derive(Clone, Debug)]
pub struct ThetaPowerTcpControl {
    power: Box<Power>,
    /// Last measured RTT \[s\], and its time.
    before: Option<(f64, Time)>,
}

impl ThetaPowerTcpControl {
    pub fn new(params: &ThetaPowerTcp, path: &Path, s: &mut Sending) -> Self {
        let ThetaPowerTcp { gamma, eta, least_current, flows, base_rtt, min_rate } = params.clone();
        let params = PowerTcp { gamma, eta, least_current, flows, base_rtt, min_rate };
        ThetaPowerTcpControl { power: Box::new(Power::new(&params, path, s)), before: None }
    }
}

impl RateControl for ThetaPowerTcpControl {
    const NEEDS: Needs = Needs { window: true, fills_window: true, ..Needs::NOTHING };

    /// Number of flows with which one flow fills its line.
    fn suited(_at: &Ground) -> String {
        format!(", flows = {}", most_flows(fanin_params::defaults::<ThetaPowerTcp>().eta))
    }

    /// Computes power by the RTT and its gradient; the window changes once per round trip. Source: PowerTCP Algorithm 2.
    fn on_ack(&mut self, s: &mut Sending, f: &Feedback<'_>) {
        if let Some(rtt) = f.rtt.map(Span::as_secs_f64) {
            let before = self.before.filter(|(_, at)| *at < f.now);
            if let Some((last, at)) = before {
                let seconds = f.now.since(at).as_secs_f64();
                let gradient = (rtt - last) / seconds;
                let current = (gradient + 1.0).max(self.power.params.least_current);
                self.power.smoothen(current * rtt / self.power.base, seconds);
            }
            if before.is_some() || self.before.is_none() {
                self.before = Some((rtt, f.now));
            }
        }
        if self.power.ends_round(f) {
            if self.before.is_some() {
                self.power.update_window(s);
            }
            self.power.begin_round(f);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::telemetry::tests::{feedback, sample};
    use super::*;

    const T: u64 = 10;
    /// 100 Gb/s for 10 us.
    const BDP: u64 = 125_000;

    fn path() -> Path {
        Path { line_rate: BitRate::from_gbps(100), base_rtt: Span::from_us(T), hops: 1, payload: 1_000, wire: 1_000 }
    }

    fn control(gamma: f64, flows: u32) -> (PowerTcpControl, Sending) {
        let mut sending = Sending { rate: path().line_rate, window: Sending::UNLIMITED };
        let params = PowerTcp { gamma, eta: 1.0, least_current: 0.0, flows, base_rtt: None, min_rate: BitRate::from_gbps(1) };
        (PowerTcpControl::new(&params, &path(), &mut sending), sending)
    }

    fn theta(gamma: f64, flows: u32) -> (ThetaPowerTcpControl, Sending) {
        let mut sending = Sending { rate: path().line_rate, window: Sending::UNLIMITED };
        let params =
            ThetaPowerTcp { gamma, eta: 1.0, least_current: 0.0, flows, base_rtt: None, min_rate: BitRate::from_gbps(1) };
        (ThetaPowerTcpControl::new(&params, &path(), &mut sending), sending)
    }

    #[test]
    fn power_is_current_times_voltage() {
        let (mut c, mut s) = control(1.0, 1_000_000);
        assert_eq!((s.window, s.rate), (BDP, BitRate::from_gbps(100)));
        c.on_ack(&mut s, &feedback(1, 1, BDP, &[sample(1, 0, 0)]));
        assert_eq!(s.window, BDP, "the first says nothing yet");
        // A full line and a queue that grows at its rate too, to one BDP: power is 2 · 2.
        c.on_ack(&mut s, &feedback(11, 2, BDP, &[sample(11, BDP, BDP)]));
        assert!((c.power.smooth - 4.0).abs() < 1e-3, "{}", c.power.smooth);
        assert!(s.window.abs_diff(BDP / 4) < 20 && s.rate < BitRate(25_100_000_000), "{s:?}");
    }

    #[test]
    fn current_counts_as_half_of_the_rate_and_power_is_divided_by_the_target() {
        let (mut c, mut s) = control(1.0, 1_000_000);
        (c.power.params.least_current, c.power.params.eta) = (0.5, 0.95);
        c.on_ack(&mut s, &feedback(1, 1, BDP, &[sample(1, 4 * BDP, 0)]));
        // It drains at twice the rate of the line, to two BDP: current 0 counts as a half, voltage is 3.
        c.on_ack(&mut s, &feedback(11, 2, BDP, &[sample(11, 2 * BDP, BDP)]));
        assert!((c.power.smooth - 1.5).abs() < 1e-9, "{}", c.power.smooth);
        assert!(s.window.abs_diff((BDP as f64 * 0.95 / 1.5) as u64) <= 1, "{s:?}");
    }

    /// Of ports with equal power the first one says over which time to average, and power is that of the busiest. Source:
    /// PowerTCP Algorithm 1 (NORMPOWER, Γ' > Γ).
    #[test]
    fn the_first_of_equally_busy_ports_counts() {
        // A full line over one BDP that waits: power 2, over a fifth or two fifths of a round trip; or none waits: 1.
        for (queues, wanted) in [([BDP, BDP], 1.2), ([0, BDP], 1.4), ([BDP, 0], 1.2)] {
            let (mut c, mut s) = control(1.0, 1_000_000);
            let port = |i: usize, us, sent| sample(us, queues[i], sent);
            c.on_ack(&mut s, &feedback(T, 1, BDP, &[port(0, T, 0), port(1, T, 0)]));
            let next = [port(0, T + 2, BDP / T * 2), port(1, T + 4, BDP / T * 4)];
            c.on_ack(&mut s, &feedback(T + 5, 2, BDP, &next));
            assert!((c.power.smooth - wanted).abs() < 1e-3, "{queues:?}: {}", c.power.smooth);
        }
    }

    /// Two acknowledgments at one time give no gradient, and the later one is not remembered. Source: PowerTCP Algorithm 2 (dt).
    #[test]
    fn acknowledgments_at_one_time_give_no_gradient() {
        let (mut c, mut s) = theta(1.0, 1_000_000);
        let mut ack = |c: &mut ThetaPowerTcpControl, us, rtt| {
            c.on_ack(&mut s, &Feedback { rtt: Some(Span::from_us(rtt)), ..feedback(us, 0, BDP, &[]) });
            (c.power.smooth, c.before.map(|(rtt, _)| (rtt * 1e6).round() as u64))
        };
        assert_eq!(ack(&mut c, 10, 20), (1.0, Some(20)));
        assert_eq!(ack(&mut c, 10, 30), (1.0, Some(20)));
        // Half a round trip later: gradient (25 − 20) / 5 = 1, power 2 · 2.5.
        let (smooth, before) = ack(&mut c, 15, 25);
        assert!((smooth - (0.5 + 0.5 * 5.0)).abs() < 1e-9 && before == Some(25), "{smooth}");
    }

    #[test]
    fn a_queue_that_drains_lets_the_window_stay() {
        let (mut c, mut s) = control(1.0, 1_000_000);
        c.on_ack(&mut s, &feedback(1, 1, BDP, &[sample(1, BDP, 0)]));
        // It drains by half at the rate of the line: current 1/2, voltage 3/2.
        c.on_ack(&mut s, &feedback(11, 2, BDP, &[sample(11, BDP / 2, BDP)]));
        assert!((c.power.smooth - 0.75).abs() < 1e-3, "{}", c.power.smooth);
        assert_eq!(s.window, BDP);
    }

    #[test]
    fn windows_of_a_round_trip_start_from_that_of_the_round_trip_before() {
        let (mut c, mut s) = control(0.9, 1_000_000);
        for us in 1..=20 {
            // The line is full and one BDP waits: power 2.
            c.on_ack(&mut s, &feedback(us, 1, BDP, &[sample(us, BDP, BDP / T * us)]));
        }
        let power = 2.0 - libm::pow(0.9, 19.0);
        assert!((c.power.smooth - power).abs() < 1e-2, "{}", c.power.smooth);
        let window = BDP as f64 * (0.9 / power + 0.1);
        assert!((s.window as f64 - window).abs() < 20.0, "{s:?}");
        assert!(c.power.reference == BDP as f64 && c.power.round_to == BDP);
        c.on_ack(&mut s, &feedback(21, BDP + 1, 2 * BDP, &[sample(21, BDP, BDP / T * 21)]));
        assert!(c.power.reference == c.power.window && c.power.round_to == 2 * BDP);
    }

    /// In equilibrium power is 1 + q / BDP and w = w / power + beta: q = BDP · beta / (w − beta).
    #[test]
    fn the_queue_rests_at_the_sum_of_additive_increases() {
        let (mut c, mut s) = control(0.9, 10);
        let (mut sent, mut queue) = (0.0, 0.0);
        for i in 1..4_000 {
            // One flow whose window is all that is in flight: what does not fit the pipe waits.
            let hops = [sample(i, queue as u64, sent as u64)];
            let una = i * BDP / T;
            let f = feedback(i, una, una + s.window, &hops);
            c.on_ack(&mut s, &f);
            queue = (s.window as f64 + BDP as f64 / 10.0 - BDP as f64).max(0.0);
            sent += BDP as f64 / T as f64;
        }
        assert!((0.05..=0.15).contains(&(queue / BDP as f64)), "{queue}");
    }

    #[test]
    fn by_delay_the_window_changes_once_per_round_trip() {
        let (mut c, mut s) = theta(1.0, 1_000_000);
        let mut ack = |c: &mut ThetaPowerTcpControl, us, una, rtt| {
            c.on_ack(&mut s, &Feedback { rtt: Some(Span::from_us(rtt)), ..feedback(us, una, BDP + una, &[]) });
            s.window
        };
        assert_eq!(ack(&mut c, 10, 1, 20), BDP);
        assert_eq!(ack(&mut c, 15, 2, 20), BDP, "within a round trip");
        assert_eq!(ack(&mut c, 20, 3, 25), BDP);
        // Half of a round trip at power 2, then half at twice 2.5: 1 → 1.5 → 3.25; a round trip later all of it is 2.5.
        assert!((c.power.smooth - 3.25).abs() < 1e-9, "{}", c.power.smooth);
        let window = ack(&mut c, 30, BDP + 2, 25);
        assert!((c.power.smooth - 2.5).abs() < 1e-9 && window == (BDP as f64 / 2.5) as u64, "{window}");
    }

    /// With the flows that it is tried with, one fills its line; with one more, none does alone.
    #[test]
    fn it_is_tried_with_as_many_flows_as_leave_no_link_idle() {
        let problems = |eta: f64, flows: u32| {
            let mut cx = Cx::new();
            ControlParams::check(&ThetaPowerTcp { eta, flows, ..fanin_params::defaults() }, &mut cx);
            cx.into_problems().len()
        };
        for eta in [0.5, 0.8, 0.9, 0.95, 0.98] {
            let most = most_flows(eta);
            assert_eq!((problems(eta, most), problems(eta, most + 1)), (0, 1), "{eta}: {most}");
        }
    }

    #[test]
    fn windows_stay_between_the_least_rate_and_the_line_rate() {
        let (mut c, mut s) = theta(0.9, 167);
        for i in 1..300 {
            c.on_ack(&mut s, &Feedback { rtt: Some(Span::from_us(100)), ..feedback(10 * i, i, i, &[]) });
        }
        assert!(s.rate >= BitRate::from_gbps(1) && s.rate < BitRate::from_gbps(2), "{}", s.rate);
        for i in 300..900 {
            c.on_ack(&mut s, &Feedback { rtt: Some(Span::from_us(5)), ..feedback(10 * i, i, i, &[]) });
        }
        assert_eq!((s.window, s.rate), (BDP, BitRate::from_gbps(100)));
    }

    /// Power that rounding has made zero asks for the largest window, of which gamma counts; β is the largest window over N, and the
    /// least one a share of it.
    #[test]
    fn no_power_asks_for_the_largest_window() {
        let (mut c, mut s) = control(0.9, 10);
        let p = &mut c.power;
        assert_eq!((p.increase, p.least, p.most), (BDP as f64 / 10.0, BDP as f64 / 100.0, BDP as f64));
        (p.smooth, p.reference) = (0.0, BDP as f64 / 2.0);
        p.update_window(&mut s);
        assert_eq!((s.window, s.rate), ((BDP as f64 * 0.95) as u64, BitRate::from_gbps(95)));
    }
}
