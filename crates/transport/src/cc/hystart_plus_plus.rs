//! HyStart++: slow start that slows down when the RTT rises. Source: RFC 9406.

use super::{Ack, Congestion, Control, Controller, Window};
use fanin_units::{Span, Time};

/// Parameters of HyStart++. Source: RFC 9406 §4.3.
const MIN_RTT_THRESH: Span = Span::from_ms(4);
const MAX_RTT_THRESH: Span = Span::from_ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// Stage of the first slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Standard slow start: the window doubles per round.
    Standard,
    /// Conservative slow start (CSS), with the minimum RTT at its beginning and the number of its rounds so far, a partial
    /// first one included.
    Conservative { baseline: Span, rounds: u32 },
    /// The first slow start is over; later ones end at ssthresh. Source: RFC 9406 §4.3.
    Over,
}

/// HyStart++ around any congestion control: once the RTT rises, the first slow start continues at a quarter of its speed, and
/// ends after five rounds of that.
///
/// Source: RFC 9406 §4.2. Deviation: ACKs that acknowledge selectively only, and retransmitted segments, give no sample.
#[derive(Clone, Debug)]
pub struct HyStartPlusPlus {
    inner: Control,
    stage: Stage,
    /// windowEnd: SND.NXT at the start of the round; zero before the first ACK.
    window_end: u64,
    /// lastRoundMinRTT and currentRoundMinRTT, `Span::MAX` for "infinity".
    last: Span,
    current: Span,
    /// rttSampleCount: RTT samples in this round.
    samples: u32,
    /// Quarters of bytes not yet added to cwnd.
    quarters: u64,
}

impl HyStartPlusPlus {
    pub(super) fn new(inner: Control) -> Self {
        HyStartPlusPlus {
            inner,
            stage: Stage::Standard,
            window_end: 0,
            last: Span::MAX,
            current: Span::MAX,
            samples: 0,
            quarters: 0,
        }
    }

    /// Takes an RTT sample, which may begin or end CSS. Source: RFC 9406 §4.2.
    fn sample(&mut self, rtt: Span) {
        self.current = self.current.min(rtt);
        self.samples += 1;
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.stage {
            Stage::Standard if self.last != Span::MAX => {
                let thresh = (self.last / MIN_RTT_DIVISOR).min(MAX_RTT_THRESH).max(MIN_RTT_THRESH);
                if self.current >= self.last + thresh {
                    self.stage = Stage::Conservative { baseline: self.current, rounds: 0 };
                }
            }
            // The rise was a jitter: slow start goes on.
            Stage::Conservative { baseline, .. } if self.current < baseline => self.stage = Stage::Standard,
            _ => {}
        }
    }

    /// Ends a round: all data that was outstanding at its start is acknowledged.
    fn end_round(&mut self, w: &mut Window, nxt: u64) {
        if let Stage::Conservative { rounds, .. } = &mut self.stage {
            *rounds += 1;
            if *rounds >= CSS_ROUNDS {
                self.stage = Stage::Over;
                w.ssthresh = w.cwnd;
            }
        }
        self.last = self.current;
        self.current = Span::MAX;
        self.samples = 0;
        self.window_end = nxt;
    }

    // By value: an `Ack` whose address other controls hand on would be written to memory for all of them.
    #[inline(never)]
    fn take_ack(&mut self, w: &mut Window, ack: Ack) {
        if self.stage == Stage::Over {
            self.inner.on_ack(w, &ack);
        } else if w.in_slow_start() {
            self.in_slow_start(w, &ack);
        } else {
            self.stage = Stage::Over;
            self.inner.on_ack(w, &ack);
        }
    }

    #[inline(never)]
    fn take_recovery_ack(&mut self, w: &mut Window, ack: Ack) {
        self.inner.on_recovery_ack(w, &ack);
    }

    fn in_slow_start(&mut self, w: &mut Window, ack: &Ack) {
        if self.window_end == 0 {
            self.window_end = ack.nxt.max(ack.una);
        }
        if let Some(rtt) = ack.rtt {
            self.sample(rtt);
        }
        let before = w.cwnd;
        self.inner.on_ack(w, ack);
        if matches!(self.stage, Stage::Conservative { .. }) && w.cwnd > before {
            self.quarters += w.cwnd - before;
            w.cwnd = before + self.quarters / CSS_GROWTH_DIVISOR;
            self.quarters %= CSS_GROWTH_DIVISOR;
        }
        if ack.una >= self.window_end {
            self.end_round(w, ack.nxt);
        }
    }
}

impl Controller for HyStartPlusPlus {
    #[inline(always)]
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        self.take_ack(w, *ack);
    }

    #[inline(always)]
    fn on_recovery_ack(&mut self, w: &mut Window, ack: &Ack) {
        self.take_recovery_ack(w, *ack);
    }

    fn on_loss(&mut self, w: &mut Window, event: &Congestion) {
        self.stage = Stage::Over;
        self.inner.on_loss(w, event);
    }

    fn on_ecn(&mut self, w: &mut Window, event: &Congestion) {
        self.stage = Stage::Over;
        self.inner.on_ecn(w, event);
    }

    fn on_rto(&mut self, w: &mut Window, event: &Congestion) {
        self.stage = Stage::Over;
        self.inner.on_rto(w, event);
    }

    fn on_idle_end(&mut self, now: Time, last_sent: Time) {
        self.inner.on_idle_end(now, last_sent);
    }

    fn undo(&mut self) {
        self.inner.undo();
    }

    fn new_ack_ends_recovery(&self) -> bool {
        self.inner.new_ack_ends_recovery()
    }

    fn needs_rtt(&self) -> bool {
        true
    }

    fn alpha(&self) -> Option<f64> {
        self.inner.alpha()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{CongestionControl, NewReno};
    use crate::config::{Profile, SlowStart, Tcp};

    const MSS: u64 = 1000;

    struct Rounds {
        control: Control,
        w: Window,
        una: u64,
    }

    impl Rounds {
        fn new(segments: u64) -> Self {
            let mut tcp = Tcp::new(Profile::Rfc, CongestionControl::NewReno(NewReno {}));
            tcp.slow_start = SlowStart::HyStartPlusPlus;
            let w = Window { cwnd: segments * MSS, ssthresh: Window::INFINITE, mss: MSS as u32 };
            Rounds { control: Control::new(&tcp), w, una: 1 }
        }

        fn state(&self) -> &HyStartPlusPlus {
            match &self.control {
                Control::HyStartPlusPlus(h) => h,
                _ => panic!("HyStart++"),
            }
        }

        fn stage(&self) -> Stage {
            self.state().stage
        }

        fn ack(&mut self, ms: u64) {
            let nxt = self.una + self.w.cwnd;
            self.una += MSS;
            let ack = Ack {
                acked: MSS,
                delivered: MSS,
                credit: MSS,
                rtt: Some(Span::from_ms(ms)),
                una: self.una,
                nxt,
                grow: true,
                slow_start_limit: 8,
                ..Ack::default()
            };
            self.control.on_ack(&mut self.w, &ack);
        }

        /// A round of ACKs with this RTT; by how much the window has grown for each segment acknowledged.
        fn round(&mut self, ms: u64) -> f64 {
            let (una, cwnd, end) = (self.una, self.w.cwnd, self.state().window_end);
            self.ack(ms);
            let end = if end == 0 { self.state().window_end } else { end };
            while self.una < end {
                self.ack(ms);
            }
            (self.w.cwnd - cwnd) as f64 / (self.una - una) as f64
        }
    }

    /// When recovery ends and what α is are the control's below: Reno's ends with the first new ACK, NewReno's does not.
    #[test]
    fn the_control_below_decides_when_recovery_ends() {
        let ends = |control| {
            let tcp = Tcp { slow_start: SlowStart::HyStartPlusPlus, ..Tcp::new(Profile::Rfc, control) };
            let control = Control::new(&tcp);
            assert!(control.needs_rtt());
            (control.new_ack_ends_recovery(), control.alpha())
        };
        assert_eq!(ends(CongestionControl::Reno(crate::cc::Reno {})), (true, None));
        assert_eq!(ends(CongestionControl::NewReno(NewReno {})), (false, None));
        let dctcp = crate::cc::Dctcp { initial_alpha: 0.5, ..fanin_params::defaults() };
        assert_eq!(ends(CongestionControl::Dctcp(dctcp)), (false, Some(0.5)));
    }

    /// RFC 9406 §4.2: a rise by max (4 ms, an eighth), CSS at a quarter of the speed, its partial round counted, congestion
    /// avoidance after five.
    #[test]
    fn a_risen_rtt_slows_slow_start_down_and_ends_it_after_five_rounds() {
        let mut r = Rounds::new(16);
        assert_eq!(r.round(10), 1.0);
        assert_eq!(r.round(13), 1.0); // less than 4 ms above
        let segments = (r.state().window_end - r.una) as f64 / MSS as f64;
        let grown = r.round(17);
        assert_eq!(grown, (7.0 + (segments - 7.0) / 4.0) / segments); // 7 ACKs at full speed, the others at a quarter
        assert!(matches!(r.stage(), Stage::Conservative { rounds: 1, .. }), "{:?}", r.stage());
        for rounds in 2..=4 {
            let grown = r.round(18);
            assert!((grown - 0.25).abs() < 0.01, "{grown}");
            assert!(matches!(r.stage(), Stage::Conservative { rounds: n, .. } if n == rounds), "{:?}", r.stage());
        }
        assert!(r.round(18) > 0.24);
        assert_eq!((r.stage(), r.w.ssthresh), (Stage::Over, r.w.cwnd));
        let cwnd = r.w.cwnd;
        (0..cwnd / MSS).for_each(|_| r.ack(18));
        assert!(r.w.cwnd <= cwnd + MSS);
    }

    /// RFC 9406 §4.2: a round of CSS below the RTT at which it began resumes slow start.
    #[test]
    fn a_jitter_does_not_end_slow_start() {
        let mut r = Rounds::new(16);
        r.round(10);
        r.round(20);
        assert!(matches!(r.stage(), Stage::Conservative { .. }));
        let grown = r.round(12);
        assert!(grown > 0.8, "{grown}");
        assert_eq!(r.stage(), Stage::Standard);
    }

    /// RFC 9406 §4.3: an eighth of the RTT between 4 and 16 ms.
    #[test]
    fn the_threshold_is_an_eighth_of_the_rtt_within_bounds() {
        for (rtt, thresh) in [(1, 4), (80, 10), (200, 16)] {
            let mut r = Rounds::new(16);
            r.round(rtt);
            r.round(rtt + thresh - 1);
            assert_eq!(r.stage(), Stage::Standard);
            let mut r = Rounds::new(16);
            r.round(rtt);
            r.round(rtt + thresh);
            assert!(matches!(r.stage(), Stage::Conservative { .. }), "{rtt}");
        }
    }

    /// Fewer than eight samples say nothing.
    #[test]
    fn short_rounds_are_left_alone() {
        let mut r = Rounds::new(3);
        r.round(10);
        r.round(50); // 6 samples
        assert_eq!(r.stage(), Stage::Standard);
    }

    /// RFC 9406 §4.3: after the first congestion event slow start is the standard one.
    #[test]
    fn a_congestion_event_ends_it_for_good() {
        let event = Congestion { now: Time::ZERO, flight: 64 * MSS, from_cwnd: false, nxt: 1, after_ecn: false, first: true };
        for signal in [Control::on_loss, Control::on_ecn, Control::on_rto] {
            let mut r = Rounds::new(16);
            r.round(10);
            signal(&mut r.control, &mut r.w, &event);
            assert_eq!((r.stage(), r.w.ssthresh), (Stage::Over, 32 * MSS));
        }
    }
}
