//! Data Center TCP. Source: RFC 8257.

use super::{newreno::RenoControl, Ack, Congestion, Controller, NewReno, Window};
use crate::config::{EcnEcho, EctOn, Profile, Tcp};
use fanin_params::{names, Ground, Setting};
use fanin_units::{BitRate, Bytes};

names! {
    /// Arithmetic of DCTCP's alpha and reductions.
    pub enum DctcpArithmetic {
        /// Alpha as a real number, windows in bytes. Source: RFC 8257 §3.3.
        "exact" => Exact,
        /// Alpha in units of 1/1024, windows in whole segments, products rounded down; after a reduction the count towards
        /// the next increase begins anew. Source: Linux dctcp_update_alpha, dctcp_ssthresh, tcp_init_cwnd_reduction.
        "linux" => Linux,
    }
}

fanin_params::params! {
    /// Data Center TCP: the window shrinks by the fraction of marked bytes. Source: RFC 8257 §3.3, §4.
    pub struct Dctcp {
        /// g: weight of the newest window in the average of the marked fraction. Source: RFC 8257 §3.3, §4 (1/16).
        pub g: f64 = 0.0625, in 0.0001..=1.0;
        /// Initial alpha, the estimated fraction of marked bytes. Source: RFC 8257 §3.3 (1).
        pub initial_alpha: f64 = 1.0, in 0.0..=1.0;
        /// Smallest window to which marks reduce, in segments. Source: Linux tcp_dctcp.c (2); RFC 3168 §6.1.2 has 1.
        pub min_window: u32 = 2, in 1..=64;
        /// Arithmetic of alpha and reductions. Below ten segments they differ: Linux keeps a window of four until alpha is a
        /// half. See docs/linux-dataplane.md.
        pub arithmetic: DctcpArithmetic = DctcpArithmetic::Exact;
    }
}

/// Value of alpha = 1 in Linux, which has it in ten bits. Source: Linux DCTCP_MAX_ALPHA.
const ONE: f64 = 1024.0;

/// DCTCP state of a connection: alpha, and the counters of the present observation window.
#[derive(Clone, Debug)]
#[repr(C)] // what each ACK counts comes first
pub struct DctcpControl {
    bytes_acked: u64,
    bytes_marked: u64,
    window_end: u64,
    reno: RenoControl,
    alpha: f64,
    g: f64,
    min_window: u32,
    /// Alpha and reductions in whole numbers, as in Linux.
    whole: bool,
}

impl DctcpControl {
    /// Length of the leading fields that every ACK updates \[bytes\].
    pub(super) const COUNTED: usize = std::mem::offset_of!(DctcpControl, alpha);

    pub fn new(params: &Dctcp) -> Self {
        let whole = params.arithmetic == DctcpArithmetic::Linux;
        DctcpControl {
            g: params.g,
            alpha: if whole { libm::floor(params.initial_alpha * ONE) / ONE } else { params.initial_alpha },
            bytes_acked: 0,
            bytes_marked: 0,
            window_end: 0,
            reno: RenoControl::new(&NewReno {}),
            min_window: params.min_window,
            whole,
        }
    }

    #[inline(always)]
    fn count(&mut self, ack: &Ack) {
        self.bytes_acked += ack.acked;
        if ack.ece {
            self.bytes_marked += ack.acked;
        }
        if ack.una > self.window_end {
            self.end_of_window(ack.nxt);
        }
    }

    /// Updates alpha at the end of an observation window: alpha = alpha·(1 − g) + g·M. Source: RFC 8257 §3.3 steps 5 to 8.
    #[inline(never)]
    fn end_of_window(&mut self, nxt: u64) {
        if self.bytes_acked > 0 {
            let marked = self.bytes_marked as f64 / self.bytes_acked as f64;
            self.alpha = match self.whole {
                true => self.whole_alpha(marked),
                false => self.alpha * (1.0 - self.g) + self.g * marked,
            };
        }
        self.window_end = nxt;
        self.bytes_acked = 0;
        self.bytes_marked = 0;
    }
}

impl DctcpControl {
    /// Alpha after a window of which the share M was marked, in units of 1/1024: both products are rounded down, and a decay that would be
    /// less than one unit takes all that is left. Source: Linux tcp_dctcp.c dctcp_update_alpha.
    fn whole_alpha(&self, marked: f64) -> f64 {
        let before = self.alpha * ONE;
        let decay = libm::floor(before * self.g);
        let left = if decay > 0.0 { before - decay } else { 0.0 };
        (left + libm::floor(ONE * self.g * marked)).min(ONE) / ONE
    }

    /// The window after a reduction: cwnd − cwnd·alpha/2, in segments with the product rounded down. Source: Linux tcp_dctcp.c
    /// dctcp_ssthresh.
    fn whole_segments(&self, w: &Window) -> u64 {
        let segments = w.cwnd / u64::from(w.mss);
        let taken = (segments * (self.alpha * ONE) as u64) >> 11;
        (segments - taken) * u64::from(w.mss)
    }
}

impl Controller for DctcpControl {
    const NEEDS_MARKS: Option<&'static str> = Some("DCTCP");

    /// The authors' marking threshold K: 20 packets at 1 Gb/s and below, 65 at 10 Gb/s, beyond in proportion. Source: DCTCP
    /// §3.5, "Practical considerations". Deviation: the paper stops at 10 Gb/s.
    fn authors(at: &Ground) -> Vec<Setting> {
        let (slow, common) = (BitRate::from_gbps(1), BitRate::from_gbps(10));
        let k = if at.rate <= slow { 20 } else { at.in_proportion(Bytes(65), common).get().max(20) };
        vec![("switch.marking", format!("{{ kind = \"threshold\", k = \"{k} packets\" }}"))]
    }

    fn suit(tcp: &mut Tcp) {
        tcp.ecn = true;
        tcp.ecn_echo = EcnEcho::Dctcp;
        if tcp.profile == Profile::Linux {
            tcp.ect_on = EctOn::All;
        }
    }

    /// Grows the window as RFC 5681 does, and counts marked bytes. Source: RFC 8257 §3.3 steps 1 to 4.
    #[inline(always)]
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        self.reno.on_ack(w, ack);
        self.count(ack);
    }

    /// Counts marked bytes during recovery.
    fn on_recovery_ack(&mut self, _: &mut Window, ack: &Ack) {
        if ack.acked > 0 {
            self.count(ack);
        }
    }

    /// Reduces the window at a loss as conventional TCP does, even after marks. Source: RFC 8257 §3.5.
    fn on_loss(&mut self, w: &mut Window, event: &Congestion) {
        self.reno.halve(w, event);
    }

    /// Reduces the window for marks: cwnd = cwnd·(1 − alpha/2), ssthresh with it; in the arithmetic of Linux in whole segments. Source:
    /// RFC 8257 §3.3 step 9; Linux dctcp_ssthresh.
    fn on_ecn(&mut self, w: &mut Window, _: &Congestion) {
        let reduced = match self.whole {
            true => {
                self.reno.count_anew();
                self.whole_segments(w)
            }
            false => libm::floor(w.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64,
        };
        w.cwnd = reduced.max(w.segments(self.min_window)).min(w.cwnd);
        w.ssthresh = w.cwnd;
    }

    fn alpha(&self) -> Option<f64> {
        Some(self.alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Time;

    const EXACT: Dctcp = Dctcp { g: 0.0625, initial_alpha: 1.0, min_window: 2, arithmetic: DctcpArithmetic::Exact };

    fn ack(una: u64, nxt: u64, ece: bool) -> Ack {
        Ack { acked: 1000, delivered: 1000, credit: 1000, ece, una, nxt, slow_start_limit: 1, ..Ack::default() }
    }

    #[test]
    fn alpha_follows_the_marked_fraction_window_by_window() {
        let mut w = Window { cwnd: 4000, ssthresh: 4000, mss: 1000 };
        let mut c = DctcpControl::new(&Dctcp { g: 0.25, ..EXACT });
        c.on_ack(&mut w, &ack(1001, 4001, false)); // the first ACK ends the empty first window: M = 0
        assert_eq!(c.alpha, 0.75);
        for i in 2..=4 {
            c.on_ack(&mut w, &ack(1 + 1000 * i, 4001, i % 2 == 0)); // up to WindowEnd: nothing yet
            assert_eq!(c.alpha, 0.75);
        }
        c.on_ack(&mut w, &ack(5001, 9001, false)); // 4 bytes in 1000s acked, 2 marked
        assert_eq!(c.alpha, 0.75 * 0.75 + 0.25 * 0.5);
    }

    /// The kernel's own arithmetic, written as it has it, beside ours: any window, any alpha, any share of marks.
    #[test]
    fn in_the_arithmetic_of_linux_alpha_and_reductions_are_whole_numbers() {
        let mut c = DctcpControl::new(&Dctcp { arithmetic: DctcpArithmetic::Linux, ..EXACT });
        let (mut alpha, mut seen, mut cut) = (1024u32, std::collections::BTreeSet::new(), 0);
        for step in 0u32..4_000 {
            let delivered = 1 + step * 7 % 23;
            let marked = if step / 500 % 2 == 1 { 0 } else { step * 5 % (delivered + 1) };
            let decay = alpha >> 4;
            alpha -= if decay == 0 { alpha } else { decay };
            if marked > 0 {
                alpha = (alpha + (marked << 6) / delivered).min(1024);
            }
            (c.bytes_acked, c.bytes_marked) = (u64::from(delivered) * 1448, u64::from(marked) * 1448);
            c.end_of_window(0);
            assert_eq!(c.alpha * ONE, f64::from(alpha), "step {step}");
            seen.insert(alpha);
            for segments in 1u32..60 {
                let mut w =
                    Window { cwnd: u64::from(segments) * 1448 + u64::from(step % 1448), ssthresh: Window::INFINITE, mss: 1448 };
                let before = w.cwnd;
                let event = Congestion { now: Time::ZERO, flight: 0, from_cwnd: true, nxt: 0, after_ecn: false, first: true };
                c.on_ecn(&mut w, &event);
                let expected = (segments - ((segments * alpha) >> 11)).max(2);
                assert_eq!(w.cwnd, (u64::from(expected) * 1448).min(before), "{segments} segments, alpha {alpha}");
                cut += u32::from(expected < segments);
            }
        }
        assert!(seen.contains(&0) && seen.len() > 100 && cut > 50_000, "{} values of alpha, {cut} reductions", seen.len());
        // What was counted towards an increase before a reduction is gone after it.
        let mut w = Window { cwnd: 8 * 1448, ssthresh: 8 * 1448, mss: 1448 };
        let event = Congestion { now: Time::ZERO, flight: 0, from_cwnd: true, nxt: 0, after_ecn: false, first: true };
        (c.alpha, c.bytes_acked) = (0.0, 0);
        let acked = |acked| Ack { acked, delivered: acked, credit: acked, grow: true, slow_start_limit: 1, ..Ack::default() };
        c.on_ack(&mut w, &acked(7 * 1448));
        c.on_ecn(&mut w, &event);
        c.on_ack(&mut w, &acked(7 * 1448));
        assert_eq!(w.cwnd, 8 * 1448);
        c.on_ack(&mut w, &acked(1448));
        assert_eq!(w.cwnd, 9 * 1448);
        // A window of four loses nothing until alpha is a half.
        for (alpha, left) in [(511.0, 4), (512.0, 3), (1023.0, 3), (1024.0, 2)] {
            c.alpha = alpha / ONE;
            assert_eq!(c.whole_segments(&Window { cwnd: 4 * 1448, ssthresh: 0, mss: 1448 }), left * 1448);
        }
    }

    #[test]
    fn the_window_shrinks_by_half_of_alpha_with_a_floor() {
        let mut w = Window { cwnd: 100_000, ssthresh: Window::INFINITE, mss: 1000 };
        let mut c = DctcpControl::new(&Dctcp { initial_alpha: 0.5, ..EXACT });
        let event = Congestion { now: Time::ZERO, flight: 100_000, from_cwnd: false, nxt: 0, after_ecn: false, first: true };
        c.on_ecn(&mut w, &event);
        assert_eq!((w.cwnd, w.ssthresh), (75_000, 75_000));
        w.cwnd = 2_000;
        c.on_ecn(&mut w, &event);
        assert_eq!(w.cwnd, 2_000);
        c.on_loss(&mut w, &Congestion { after_ecn: true, flight: 60_000, ..event });
        assert_eq!(w.cwnd, 30_000);
    }
}
