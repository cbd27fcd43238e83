//! HyStart++: slow start that slows down when the RTT rises. Source: RFC 9406.

use super::{Ack, Congestion, Control, Controller, Window};
use fanin_units::{BitRate, Span, Time};

/// Source: RFC 9406 §4.3.
const MIN_RTT_THRESH: Span = Span::from_ms(4);
const MAX_RTT_THRESH: Span = Span::from_ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// What slow start does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It doubles the window per round.
    Standard,
    /// Conservative slow start (CSS): the least RTT at which it began, and the rounds in it so far, the first one in part.
    Conservative { baseline: Span, rounds: u32 },
    /// The first slow start is over: later ones end at ssthresh. Source: RFC 9406 §4.3.
    Over,
}

/// HyStart++ around any congestion control: its first slow start goes on at a quarter of the speed once the RTT rises, and
/// ends after five rounds of that.
///
/// Source: RFC 9406 §4.2. Deviation: ACKs that acknowledge selectively only, and segments that were sent again, give no sample.
#[derive(Clone, Debug)]
pub struct HyStartPlusPlus {
    inner: Control,
    stage: Stage,
    /// windowEnd, SND.NXT at the start of the round; zero before the first ACK.
    window_end: u64,
    /// lastRoundMinRTT and currentRoundMinRTT, `Span::MAX` for "infinity".
    last: Span,
    current: Span,
    /// rttSampleCount.
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

    /// An RTT sample may begin or end CSS. Source: RFC 9406 §4.2.
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

    /// All that was outstanding at the start of the round is acknowledged.
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
    #[inline(never)]
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        if self.stage == Stage::Over {
            self.inner.on_ack(w, ack);
        } else if w.in_slow_start() {
            self.in_slow_start(w, ack);
        } else {
            self.stage = Stage::Over;
            self.inner.on_ack(w, ack);
        }
    }

    #[inline(never)]
    fn on_recovery_ack(&mut self, w: &mut Window, ack: &Ack) {
        self.inner.on_recovery_ack(w, ack);
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

    #[inline(never)]
    fn pacing_rate(&self, w: &Window, srtt: Span) -> Option<BitRate> {
        self.inner.pacing_rate(w, srtt)
    }

    fn alpha(&self) -> Option<f64> {
        self.inner.alpha()
    }
}
