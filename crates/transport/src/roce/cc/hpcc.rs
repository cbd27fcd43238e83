//! HPCC: the window keeps the bytes in flight on the busiest link of the path below its capacity, by telemetry. Source: HPCC
//! §3, Algorithm 1.

use super::telemetry::Ports;
use super::{ControlParams, Feedback, Needs, Path, RateControl, Sending};
use fanin_units::{BitRate, Bytes, Span};

fanin_params::params! {
    /// HPCC: bytes in flight on the busiest link, by telemetry. Source: HPCC §3.2, Algorithm 1; values: HPCC §5.1.
    pub struct Hpcc {
        /// eta: target utilisation of links.
        pub eta: f64 = 0.95, in 0.5..=1.0;
        /// maxStage: RTTs of additive increase before a multiplicative one.
        pub max_stage: u32 = 5, in 0..=100;
        /// W_AI: additive increase per RTT.
        pub increase: Bytes = Bytes(80), in Bytes(0)..=Bytes(1_000_000);
        /// T: base RTT of all flows; if absent, each flow's own on an idle network.
        pub base_rtt: Option<Span> = None, in Span::from_ns(100)..=Span::from_ms(10);
        /// Lower bound of a flow's rate.
        pub min_rate: BitRate = BitRate::from_mbps(100), in BitRate::from_mbps(1)..;
    }
}

impl ControlParams for Hpcc {}

/// HPCC state of a queue pair.
#[derive(Clone, Debug)]
pub struct HpccControl {
    ports: Ports,
    /// eta, W_AI \[B\] and maxStage.
    eta: f64,
    increase: f64,
    max_stage: u32,
    stage: u32,
    /// T, the base RTT \[s\].
    base: f64,
    /// Largest window W_init = line rate · T, and smallest window.
    most: f64,
    least: f64,
    line_rate: BitRate,
    /// U: bytes in flight on the busiest link as a share of its capacity, averaged over a round trip.
    utilisation: f64,
    /// W^c: reference window, from which all acknowledgments of a round trip start.
    reference: f64,
    /// Offset after which acknowledged data changes the reference: data sent after the last change.
    update_from: u64,
}

impl HpccControl {
    pub fn new(params: &Hpcc, path: &Path, s: &mut Sending) -> Self {
        let base = params.base_rtt.unwrap_or(path.base_rtt);
        let most = Path { base_rtt: base, ..*path }.bdp() as f64;
        let share = params.min_rate.bps() as f64 / path.line_rate.bps() as f64;
        s.window = most as u64;
        HpccControl {
            ports: Ports::new(),
            eta: params.eta,
            increase: params.increase.get() as f64,
            max_stage: params.max_stage,
            stage: 0,
            base: base.as_secs_f64(),
            most,
            least: most * share.min(1.0),
            line_rate: path.line_rate,
            utilisation: 1.0,
            reference: most,
            update_from: 0,
        }
    }

    /// Measures utilisation (MeasureInflight). Source: HPCC Algorithm 1, lines 1 to 10. `None` where the acknowledgment says
    /// nothing of it.
    fn measure(&mut self, f: &Feedback<'_>) -> Option<f64> {
        let (mut u, mut tau, base) = (0.0, 0.0, self.base);
        self.ports.since(f, |port| {
            let queue = port.queue[0].min(port.queue[1]);
            let here = queue / (port.rate * base) + port.sent / port.rate;
            if here > u {
                (u, tau) = (here, port.seconds);
            }
        })?;
        let share = (tau / base).min(1.0);
        self.utilisation = (1.0 - share) * self.utilisation + share * u;
        Some(self.utilisation)
    }

    /// Computes window and next stage (ComputeWind). Source: HPCC Algorithm 1, lines 11 to 21.
    fn window(&self, utilisation: f64) -> (f64, u32) {
        if utilisation >= self.eta || self.stage >= self.max_stage {
            (self.reference / (utilisation / self.eta) + self.increase, 0)
        } else {
            (self.reference + self.increase, self.stage + 1)
        }
    }
}

impl RateControl for HpccControl {
    /// Packets leave while less than W is in flight. Source: HPCC §3.2; the authors' simulator does so in RdmaQueuePair::IsWinBound.
    const NEEDS: Needs = Needs { telemetry: Some("HPCC"), window: true, fills_window: true, ..Needs::NOTHING };

    fn apart(&self, fetch: &impl Fn(*const u8)) {
        self.ports.apart(fetch);
    }

    /// Handles an acknowledgment (NewAck). Source: HPCC Algorithm 1, lines 22 to 30.
    fn on_ack(&mut self, s: &mut Sending, f: &Feedback<'_>) {
        let update = f.una > self.update_from;
        if let Some(utilisation) = self.measure(f) {
            let (window, stage) = self.window(utilisation);
            let window = window.clamp(self.least, self.most);
            if update {
                (self.reference, self.stage) = (window, stage);
            }
            s.window = window as u64;
            s.rate = BitRate((self.line_rate.bps() as f64 * (window / self.most)) as u64);
        }
        if update {
            self.update_from = f.nxt;
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

    fn control(increase: u64, max_stage: u32) -> (HpccControl, Sending) {
        let path = Path { line_rate: BitRate::from_gbps(100), base_rtt: Span::from_us(T), hops: 1, payload: 1_000, wire: 1_000 };
        let params = Hpcc { eta: 0.95, max_stage, increase: Bytes(increase), base_rtt: None, min_rate: BitRate::from_gbps(1) };
        let mut sending = Sending { rate: path.line_rate, window: Sending::UNLIMITED };
        (HpccControl::new(&params, &path, &mut sending), sending)
    }

    /// A port and the acknowledgments of what passed it, a round trip apart.
    #[derive(Default)]
    struct Round {
        number: u64,
        sent: u64,
    }

    impl Round {
        /// It has sent `share` of its rate for `n` round trips, and kept a queue.
        fn go_on(&mut self, c: &mut HpccControl, s: &mut Sending, n: u64, share: f64, queue: u64) {
            for _ in 0..n {
                self.number += 1;
                self.sent += (BDP as f64 * share) as u64;
                let (una, us) = (BDP * self.number + 1, T * self.number);
                c.on_ack(s, &feedback(us, una, una + BDP - 1, &[sample(us, queue, self.sent)]));
            }
        }
    }

    #[test]
    fn a_queue_of_a_bdp_halves_the_window_in_one_round_trip() {
        let (mut c, mut s) = control(0, 5);
        assert_eq!((s.window, s.rate), (BDP, BitRate::from_gbps(100)));
        let mut port = Round::default();
        port.go_on(&mut c, &mut s, 1, 1.0, BDP);
        assert_eq!(s.window, BDP, "the first says nothing yet");
        port.go_on(&mut c, &mut s, 1, 1.0, BDP);
        assert_eq!(s.window, (BDP as f64 * 0.95 / 2.0) as u64);
        assert_eq!(s.rate, BitRate(47_500_000_000));
    }

    #[test]
    fn stages_are_additive_and_then_it_takes_what_is_free_at_once() {
        let (mut c, mut s) = control(100, 5);
        let mut port = Round::default();
        port.go_on(&mut c, &mut s, 2, 1.0, 3 * BDP);
        let start = s.window; // a quarter of 0.95
        assert_eq!(start, (BDP as f64 * 0.95 / 4.0 + 100.0) as u64);
        let mut windows = Vec::new();
        for _ in 0..6 {
            port.go_on(&mut c, &mut s, 1, 0.5, 0);
            windows.push(s.window);
        }
        // The queue was there at the beginning of the first of them: its smaller end counts.
        assert_eq!(windows[..5], [1, 2, 3, 4, 5].map(|i| start + 100 * i));
        assert!(windows[5].abs_diff(((start + 500) as f64 * 0.95 / 0.5) as u64 + 100) <= 1, "{windows:?}");
    }

    #[test]
    fn acknowledgments_of_a_round_trip_start_from_the_same_window() {
        let (mut c, mut s) = control(0, 5);
        let at = |us: u64| sample(us, BDP, BDP / T * us);
        for us in 1..=T {
            c.on_ack(&mut s, &feedback(us, 1, BDP, &[at(us)])); // una stays below what was sent at the first
        }
        // Nine of ten steps to U = 2 from 1, each from the same reference.
        let u = 2.0 - libm::pow(0.9, 9.0);
        assert!((c.utilisation - u).abs() < 1e-9 && c.reference == BDP as f64, "{}", c.utilisation);
        assert!(s.window.abs_diff((BDP as f64 * 0.95 / u) as u64) <= 1);
        c.on_ack(&mut s, &feedback(T + 1, BDP + 1, 2 * BDP, &[at(T + 1)]));
        assert_eq!(c.reference as u64, s.window);
    }

    /// The reference changes with the acknowledgment of data sent after its last change, not with that of the last byte before.
    /// Source: HPCC Algorithm 1, line 25 (ack.seq > lastUpdateSeq).
    #[test]
    fn the_reference_changes_once_per_round_trip() {
        let (mut c, mut s) = control(0, 5);
        c.on_ack(&mut s, &feedback(T, 1, BDP, &[sample(T, BDP, 0)]));
        assert_eq!(c.update_from, BDP);
        c.on_ack(&mut s, &feedback(2 * T, BDP, 2 * BDP, &[sample(2 * T, BDP, BDP)]));
        assert_eq!((c.update_from, c.reference as u64, s.window), (BDP, BDP, (BDP as f64 * 0.95 / 2.0) as u64));
        c.on_ack(&mut s, &feedback(3 * T, BDP + 1, 2 * BDP, &[sample(3 * T, BDP, 2 * BDP)]));
        assert_eq!((c.update_from, c.reference as u64), (2 * BDP, (BDP as f64 * 0.95 / 2.0) as u64));
    }

    /// Of links that are equally busy the first one says over which time to average. Source: HPCC Algorithm 1, line 7 (u' > u).
    #[test]
    fn the_first_of_equally_busy_links_counts() {
        let (mut c, mut s) = control(0, 5);
        c.on_ack(&mut s, &feedback(T, 1, BDP, &[sample(T, BDP, 0), sample(T, BDP, 0)]));
        let next = [sample(T + 2, BDP, BDP / T * 2), sample(T + 4, BDP, BDP / T * 4)];
        c.on_ack(&mut s, &feedback(T + 5, 2, BDP, &next));
        assert!((c.utilisation - (0.8 + 0.2 * 2.0)).abs() < 1e-3, "{}", c.utilisation);
    }

    #[test]
    fn the_busiest_link_counts_and_the_smaller_end_of_its_queue() {
        let (mut c, mut s) = control(0, 5);
        let hops = |i: u64, queue: u64| [sample(T * i, 0, BDP * i / 10), sample(T * i + 1, queue, BDP * i)];
        c.on_ack(&mut s, &feedback(T, 1, BDP, &hops(1, 10 * BDP)));
        c.on_ack(&mut s, &feedback(2 * T, BDP + 1, 2 * BDP, &hops(2, BDP / 2)));
        assert!((c.utilisation - 1.5).abs() < 2e-3, "{}", c.utilisation); // counters count 128 B
        assert!(s.window.abs_diff((BDP as f64 * 0.95 / 1.5) as u64) < 200);
    }

    #[test]
    fn windows_stay_between_the_least_rate_and_the_line_rate() {
        let (mut c, mut s) = control(1_000, 0);
        let mut port = Round::default();
        port.go_on(&mut c, &mut s, 40, 1.0, 4 * BDP);
        assert!(s.rate >= BitRate::from_gbps(1) && s.rate < BitRate::from_gbps(2), "{}", s.rate);
        port.go_on(&mut c, &mut s, 40, 0.1, 0);
        assert_eq!((s.window, s.rate), (BDP, BitRate::from_gbps(100)));
    }

    /// The stage ends at the target itself and after `max_stage` round trips. Source: HPCC Algorithm 1, line 12 (U ≥ η or incStage ≥
    /// maxStage).
    #[test]
    fn the_target_itself_ends_the_stage() {
        let (mut c, _) = control(100, 5);
        let (reference, next) = (c.reference, |c: &HpccControl, u| c.window(u));
        assert_eq!((next(&c, 0.95), next(&c, 0.9)), ((reference + 100.0, 0), (reference + 100.0, 1)));
        c.stage = 4;
        assert_eq!(next(&c, 0.475), (reference + 100.0, 5));
        c.stage = 5;
        assert_eq!(next(&c, 0.475), (reference * 2.0 + 100.0, 0));
    }

    /// A least rate above the line's is the line's.
    #[test]
    fn the_least_window_is_a_share_of_the_largest() {
        let path = Path { line_rate: BitRate::from_gbps(100), base_rtt: Span::from_us(T), hops: 1, payload: 1_000, wire: 1_000 };
        let least = |gbps| {
            let params = Hpcc { min_rate: BitRate::from_gbps(gbps), ..fanin_params::defaults() };
            let mut s = Sending { rate: path.line_rate, window: Sending::UNLIMITED };
            HpccControl::new(&params, &path, &mut s).least
        };
        assert_eq!((least(25), least(400)), (BDP as f64 / 4.0, BDP as f64));
    }
}
