//! Reno and NewReno: additive increase, multiplicative decrease. Source: RFC 5681.

use super::{Ack, Congestion, Controller, Window};
use crate::config::Tcp;

fanin_params::params! {
    /// NewReno congestion control, which has no parameters of its own.
    pub struct NewReno { }
}
fanin_params::params! {
    /// Reno congestion control, which has no parameters of its own.
    pub struct Reno { }
}

/// NewReno state of a connection: additive increase by counted bytes, halving.
#[derive(Clone, Debug, Default)]
pub struct RenoControl {
    /// Bytes acknowledged towards the next increase.
    counted: u64,
}

impl RenoControl {
    pub fn new(_: &NewReno) -> Self {
        RenoControl::default()
    }

    /// Congestion avoidance: one SMSS per cwnd bytes acknowledged, at most one SMSS per RTT.
    ///
    /// Source: RFC 5681 §3.1 ("count the number of bytes acknowledged"), RFC 3465 §2.1. Deviation: none.
    #[inline(always)]
    pub(super) fn additive_increase(&mut self, w: &mut Window, acked: u64) {
        self.counted += acked;
        if self.counted >= w.cwnd {
            self.counted -= w.cwnd;
            w.cwnd += u64::from(w.mss);
            self.counted = self.counted.min(w.cwnd);
        }
    }

    /// Begins to count anew towards the next increase. Source: Linux tcp_init_cwnd_reduction (snd_cwnd_cnt).
    pub(super) fn count_anew(&mut self) {
        self.counted = 0;
    }

    pub(super) fn halve(&mut self, w: &mut Window, event: &Congestion) {
        self.counted = 0;
        w.ssthresh = event.reduced(w, 0.5);
        w.cwnd = w.ssthresh;
    }
}

impl Controller for RenoControl {
    #[inline(always)]
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        if !ack.grow {
            return;
        }
        let acked = if w.in_slow_start() { w.slow_start(ack) } else { ack.credit };
        if acked > 0 {
            self.additive_increase(w, acked);
        }
    }

    /// Halves the window, once per window of data for losses and marks together.
    fn on_loss(&mut self, w: &mut Window, event: &Congestion) {
        if !event.after_ecn {
            self.halve(w, event);
        } else {
            w.cwnd = w.ssthresh;
        }
    }

    /// Halves the window for an ECN echo, as for a loss. Source: RFC 3168 §6.1.2.
    ///
    /// Deviation: two segments are the floor (RFC 5681 equation 4), where RFC 3168 allows one.
    fn on_ecn(&mut self, w: &mut Window, event: &Congestion) {
        self.halve(w, event);
    }
}

/// Reno, in which the first new ACK ends fast recovery. Source: RFC 5681 §3.2.
#[derive(Clone, Debug, Default)]
pub struct ClassicRenoControl(RenoControl);

impl ClassicRenoControl {
    pub fn new(_: &Reno) -> Self {
        ClassicRenoControl::default()
    }
}

impl Controller for ClassicRenoControl {
    fn suit(tcp: &mut Tcp) {
        tcp.sack = false;
    }

    #[inline(always)]
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        self.0.on_ack(w, ack);
    }

    fn on_loss(&mut self, w: &mut Window, event: &Congestion) {
        self.0.on_loss(w, event);
    }

    fn on_ecn(&mut self, w: &mut Window, event: &Congestion) {
        self.0.on_ecn(w, event);
    }

    fn new_ack_ends_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Time;

    const MSS: u64 = 1000;

    fn window(cwnd: u64, ssthresh: u64) -> Window {
        Window { cwnd: cwnd * MSS, ssthresh: ssthresh * MSS, mss: 1000 }
    }
    fn ack(acked: u64) -> Ack {
        Ack { acked, delivered: acked, credit: acked, grow: true, slow_start_limit: 1, ..Ack::default() }
    }
    fn event(flight: u64) -> Congestion {
        Congestion { now: Time::ZERO, flight, from_cwnd: false, nxt: 0, after_ecn: false, first: true }
    }

    #[test]
    fn slow_start_adds_at_most_l_segments_per_ack() {
        let (mut w, mut c) = (window(2, 100), RenoControl::default());
        c.on_ack(&mut w, &ack(MSS));
        assert_eq!(w.cwnd, 3 * MSS);
        c.on_ack(&mut w, &ack(2 * MSS)); // a delayed ACK: L = 1
        assert_eq!(w.cwnd, 4 * MSS);
        c.on_ack(&mut w, &Ack { slow_start_limit: 2, ..ack(2 * MSS) });
        assert_eq!(w.cwnd, 6 * MSS);
        c.on_ack(&mut w, &ack(100));
        assert_eq!(w.cwnd, 6 * MSS + 100);
    }

    #[test]
    fn slow_start_without_a_limit_stops_at_ssthresh_and_the_rest_counts_for_avoidance() {
        // The ACK after a repaired loss covers 300 segments: cwnd must not jump over ssthresh.
        let (mut w, mut c) = (window(1, 40), RenoControl::default());
        c.on_ack(&mut w, &Ack { slow_start_limit: 65_535, ..ack(300 * MSS) });
        assert_eq!(w.cwnd, 41 * MSS); // 39 to ssthresh, then one for the window that 261 more cover
        let (mut w, mut c) = (window(38, 40), RenoControl::default());
        c.on_ack(&mut w, &Ack { slow_start_limit: 65_535, ..ack(3 * MSS) });
        assert_eq!((w.cwnd, c.counted), (40 * MSS, MSS));
    }

    #[test]
    fn congestion_avoidance_adds_one_segment_per_window_with_and_without_delayed_acks() {
        for per_ack in [1, 2] {
            let (mut w, mut c) = (window(10, 10), RenoControl::default());
            for round in 0..5u64 {
                let before = w.cwnd;
                for _ in 0..before / MSS / per_ack {
                    c.on_ack(&mut w, &ack(per_ack * MSS));
                }
                let grown = (w.cwnd - before) / MSS;
                assert!(grown <= 1 && w.cwnd / MSS + 1 >= 11 + round, "round {round}: {before} → {}", w.cwnd);
            }
        }
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let (mut w, mut c) = (window(10, 100), RenoControl::default());
        c.on_ack(&mut w, &Ack { grow: false, ..ack(MSS) });
        assert_eq!(w.cwnd, 10 * MSS);
    }

    #[test]
    fn a_loss_halves_the_flight_and_a_second_signal_of_the_window_does_not() {
        let (mut w, mut c) = (window(20, 100), RenoControl::default());
        c.on_loss(&mut w, &event(16 * MSS));
        assert_eq!((w.cwnd, w.ssthresh), (8 * MSS, 8 * MSS));
        c.on_loss(&mut w, &Congestion { after_ecn: true, ..event(8 * MSS) });
        assert_eq!((w.cwnd, w.ssthresh), (8 * MSS, 8 * MSS));
        c.on_loss(&mut w, &event(3 * MSS));
        assert_eq!(w.cwnd, 2 * MSS);
    }

    #[test]
    fn a_repeated_timeout_keeps_ssthresh() {
        let (mut w, mut c) = (window(20, 100), RenoControl::default());
        c.on_rto(&mut w, &event(20 * MSS));
        assert_eq!((w.cwnd, w.ssthresh), (MSS, 10 * MSS));
        c.on_rto(&mut w, &Congestion { first: false, ..event(MSS) });
        assert_eq!((w.cwnd, w.ssthresh), (MSS, 10 * MSS));
    }
}
