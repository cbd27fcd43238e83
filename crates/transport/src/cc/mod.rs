//! Congestion control of TCP: controllers that steer the window and never see its contents.
//!
//! A controller sees counts and times, not packets or buffers. Adding one is a source file here, one line in the
//! registry below and a page in `docs/transports/`.

use crate::config::{SlowStart, Tcp};
use fanin_params::{Ground, Setting, Trial};
use fanin_units::{BitRate, Span, Time};

mod bictcp;
mod cubic;
mod dctcp;
mod hystart;
mod hystart_plus_plus;
mod newreno;

pub use cubic::{Cubic, CubicControl};
pub use dctcp::{Dctcp, DctcpArithmetic, DctcpControl};
pub use hystart_plus_plus::HyStartPlusPlus;
pub use newreno::{ClassicRenoControl, NewReno, Reno, RenoControl};

/// Window variables that a controller steers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window, cwnd \[bytes\]. A window below one segment is the fraction of a segment that is sent per RTT.
    pub cwnd: u64,
    /// Slow-start threshold, ssthresh \[bytes\]; [`Window::INFINITE`] before the first reduction.
    pub ssthresh: u64,
    /// Sender maximum segment size, SMSS \[payload bytes\].
    pub mss: u32,
}

impl Window {
    /// Value of ssthresh before the first reduction: "arbitrarily high". Source: RFC 5681 §3.1.
    pub const INFINITE: u64 = 1 << 62;

    /// Size of `n` segments in bytes.
    #[inline(always)]
    pub fn segments(&self, n: u32) -> u64 {
        u64::from(self.mss) * u64::from(n)
    }

    /// True in slow start, while cwnd is below ssthresh. Source: RFC 5681 §3.1.
    #[inline(always)]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: cwnd += min (N, L·SMSS). Returns the bytes that are left for congestion avoidance.
    ///
    /// With L > 1 cwnd stops at ssthresh, as one ACK may cover hundreds of segments after a repaired loss; the rest of it
    /// counts for congestion avoidance. Source: RFC 5681 §3.1 equation 2 (L = 1), RFC 3465 §2.2 (L = 2), Linux
    /// tcp_slow_start (no limit, stops at ssthresh).
    ///
    /// N, "previously unacknowledged bytes", leaves out what SACK blocks acknowledged before: those left the network then. After a
    /// timeout one ACK may cover a window of them, and would let as many segments go at once. With L = 1 it is the same, as such
    /// an ACK also covers a hole. Source: Linux tcp_cong_avoid (acked_sacked).
    #[inline(always)]
    pub fn slow_start(&mut self, ack: &Ack) -> u64 {
        let step = ack.delivered.min(self.segments(ack.slow_start_limit));
        if ack.slow_start_limit == 1 {
            self.cwnd += step;
            return 0;
        }
        let taken = step.min(self.ssthresh - self.cwnd);
        self.cwnd += taken;
        step - taken
    }
}

/// An acknowledgment, as controllers see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    pub now: Time,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes that have newly arrived: `acked` without bytes SACKed before, plus bytes newly SACKed.
    pub delivered: u64,
    /// Bytes that count for congestion avoidance: `acked`, which RFC 5681 §3.1 counts, or `delivered`, which Linux counts
    /// (tcp_cong_avoid); see [`WindowRules`](crate::WindowRules).
    pub credit: u64,
    /// RTT of the newly acknowledged segment that was sent last, measured from its first bit on the host's wire; `None` if
    /// those segments were retransmitted or the controller does not ask for RTTs ([`Controller::needs_rtt`]).
    pub rtt: Option<Span>,
    /// True if no controller in use asks for RTTs; lets the compiler omit the code for them.
    pub untimed: bool,
    /// True if the ACK carries ECE on a connection that negotiated ECN.
    pub ece: bool,
    /// SND.UNA after the ACK, as an offset in the stream.
    pub una: u64,
    /// SND.NXT, as an offset in the stream.
    pub nxt: u64,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// True if the window may grow: it was used up, and neither ECE nor a reduction in progress forbids it.
    pub grow: bool,
    /// L of RFC 3465: limit of slow-start growth per ACK \[segments\].
    pub slow_start_limit: u32,
}

/// A congestion event, as controllers see it.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    pub now: Time,
    /// FlightSize at detection \[bytes\], without segments sent by limited transmit. Source: RFC 5681 §3.2 step 2.
    pub flight: u64,
    /// True if the reduction starts from cwnd, false if from `flight`. Source: Linux tcp_reno_ssthresh.
    pub from_cwnd: bool,
    /// SND.NXT, as an offset in the stream.
    pub nxt: u64,
    /// True if ECN caused a reduction within the window of data to which this event belongs.
    pub after_ecn: bool,
    /// Timeouts only: true if the retransmission timer has not sent the segment before (RFC 5681 §3.1), and no reduction is
    /// in progress that the timeout belongs to (Linux tcp_enter_loss).
    pub first: bool,
}

impl Congestion {
    /// ssthresh after a reduction that leaves `share` of the window: of FlightSize (RFC 5681 §3.1 equation 4), or of cwnd in
    /// whole segments (Linux tcp_reno_ssthresh, cubictcp_recalc_ssthresh); two segments at least.
    pub fn reduced(&self, w: &Window, share: f64) -> u64 {
        let mss = u64::from(w.mss);
        let left = if self.from_cwnd {
            libm::floor((w.cwnd / mss) as f64 * share) as u64 * mss
        } else {
            libm::floor(self.flight as f64 * share) as u64
        };
        left.max(w.segments(2))
    }
}

/// Rules of a TCP congestion control. Every method leaves cwnd and ssthresh as the sender shall use them next; loss recovery
/// may hold the window elsewhere meanwhile and returns to ssthresh (RFC 5681, 6675) at its end.
pub trait Controller {
    /// Adapts TCP's other defaults to this controller; keys that the scenario gives take precedence.
    fn suit(_tcp: &mut Tcp) {}

    /// Settings that a trial of the controller adds to a scenario, as its authors used them. A loss-based controller gets
    /// switches that do not mark.
    fn authors(_at: &Ground) -> Vec<Setting> {
        Vec::from_iter(Self::NEEDS_MARKS.is_none().then(|| ("switch.marking", "\"none\"".to_string())))
    }

    /// Reads the settings it needs from TCP's other parameters, at the start of a connection.
    fn fit(&mut self, _tcp: &Tcp) {}

    /// Name of a controller that works by marks, so that ECN must be on; `None` for others.
    const NEEDS_MARKS: Option<&'static str> = None;

    /// Handles new data acknowledged outside fast recovery.
    fn on_ack(&mut self, w: &mut Window, ack: &Ack);
    /// Handles an ACK in fast recovery; `acked` is zero if it acknowledges nothing cumulatively, and `grow` is false. The
    /// window of a recovery is ssthresh: cwnd moves around it and ends there.
    fn on_recovery_ack(&mut self, _w: &mut Window, _ack: &Ack) {}
    /// Handles a loss detected by fast retransmit.
    fn on_loss(&mut self, w: &mut Window, event: &Congestion);
    /// Handles an ECN echo that asks for a reduction, at most once per window of data.
    fn on_ecn(&mut self, w: &mut Window, event: &Congestion);
    /// Handles a timeout of the retransmission timer.
    fn on_rto(&mut self, w: &mut Window, event: &Congestion) {
        if event.first {
            w.ssthresh = event.reduced(w, 0.5);
        }
        w.cwnd = w.segments(1);
    }
    /// Handles a segment sent when nothing was in flight; the previous one was sent at `last_sent`.
    fn on_idle_end(&mut self, _now: Time, _last_sent: Time) {}
    /// Reverts internal state to that before the last reduction, which was a mistake (spurious timeout); the sender restores
    /// cwnd and ssthresh.
    fn undo(&mut self) {}
    /// True if, without SACK, any new ACK ends fast recovery (RFC 5681 §3.2 step 6), not only a full one (RFC 6582).
    fn new_ack_ends_recovery(&self) -> bool {
        false
    }
    /// True if the controller reads [`Ack::rtt`], for which TCP keeps the send times of all outstanding segments.
    fn needs_rtt(&self) -> bool {
        false
    }
    /// Payload rate at which segments leave; `None`: by the setting `pacing`. `srtt` is zero before the first sample.
    fn pacing_rate(&self, _w: &Window, _srtt: Span) -> Option<BitRate> {
        None
    }
    /// DCTCP's estimate alpha of the marked fraction; `None` for other controllers.
    fn alpha(&self) -> Option<f64> {
        None
    }
}

/// Declares the controllers: kind, parameters, state.
macro_rules! controllers {
    ($( $(#[doc = $doc:expr])* $kind:literal => $variant:ident($params:ty, $state:ty), )*) => {
        fanin_params::choice! {
            /// Congestion control of TCP.
            pub enum CongestionControl {
                $( $(#[doc = $doc])* $kind => $variant($params), )*
            }
        }

        /// Congestion control state of a connection.
        #[derive(Clone, Debug)]
        #[repr(u8)] // a tag of its own: less to do for each ACK
        pub enum Control {
            $( $variant($state), )*
            /// A controller wrapped in HyStart++.
            HyStartPlusPlus(Box<HyStartPlusPlus>),
        }

        impl Control {
            /// Length of the leading fields that most ACKs update in the common controllers \[bytes\].
            pub(crate) const COUNTED: usize = 8 + DctcpControl::COUNTED;

            /// Congestion control state at the start of a connection.
            pub fn new(tcp: &Tcp) -> Self {
                let mut control = match &tcp.congestion_control {
                    $( CongestionControl::$variant(params) => Self::$variant(<$state>::new(params)), )*
                };
                control.fit(tcp);
                match tcp.slow_start {
                    SlowStart::Standard | SlowStart::HyStart => control,
                    SlowStart::HyStartPlusPlus => Self::HyStartPlusPlus(Box::new(HyStartPlusPlus::new(control))),
                }
            }
        }

        impl CongestionControl {
            /// Adapts TCP's other defaults to the controller of this kind.
            pub(crate) fn suit(kind: &str, tcp: &mut Tcp) {
                match kind {
                    $( $kind => <$state>::suit(tcp), )*
                    _ => {}
                }
            }

            /// One trial for each controller.
            pub(crate) fn trials(at: &Ground) -> Vec<Trial> {
                vec![$( {
                    let table = format!("{{ kind = \"tcp\", congestion_control = {{ kind = {:?} }} }}", $kind);
                    let own = ("transport".to_string(), table);
                    Trial::new("transport.congestion_control", $kind, &[$($doc),*], own, <$state>::authors(at))
                }, )*]
            }

            /// Name of a controller that works by marks, see [`Controller::NEEDS_MARKS`].
            pub fn needs_marks(&self) -> Option<&'static str> {
                match self { $( Self::$variant(_) => <$state>::NEEDS_MARKS, )* }
            }
        }

        impl Controller for Control {
            fn fit(&mut self, tcp: &Tcp) {
                match self { $( Self::$variant(c) => c.fit(tcp), )* Self::HyStartPlusPlus(c) => c.fit(tcp) }
            }
            fn on_idle_end(&mut self, now: Time, last_sent: Time) {
                match self { $( Self::$variant(c) => c.on_idle_end(now, last_sent), )* Self::HyStartPlusPlus(c) => c.on_idle_end(now, last_sent) }
            }
            #[inline(always)]
            fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
                match self { $( Self::$variant(c) => c.on_ack(w, ack), )* Self::HyStartPlusPlus(c) => if !ack.untimed { c.on_ack(w, ack) } }
            }
            fn on_loss(&mut self, w: &mut Window, event: &Congestion) {
                match self { $( Self::$variant(c) => c.on_loss(w, event), )* Self::HyStartPlusPlus(c) => c.on_loss(w, event) }
            }
            fn on_ecn(&mut self, w: &mut Window, event: &Congestion) {
                match self { $( Self::$variant(c) => c.on_ecn(w, event), )* Self::HyStartPlusPlus(c) => c.on_ecn(w, event) }
            }
            fn on_rto(&mut self, w: &mut Window, event: &Congestion) {
                match self { $( Self::$variant(c) => c.on_rto(w, event), )* Self::HyStartPlusPlus(c) => c.on_rto(w, event) }
            }
            fn undo(&mut self) {
                match self { $( Self::$variant(c) => c.undo(), )* Self::HyStartPlusPlus(c) => c.undo() }
            }
            fn new_ack_ends_recovery(&self) -> bool {
                match self { $( Self::$variant(c) => c.new_ack_ends_recovery(), )* Self::HyStartPlusPlus(c) => c.new_ack_ends_recovery() }
            }
            #[inline(always)]
            fn on_recovery_ack(&mut self, w: &mut Window, ack: &Ack) {
                match self { $( Self::$variant(c) => c.on_recovery_ack(w, ack), )* Self::HyStartPlusPlus(c) => if !ack.untimed { c.on_recovery_ack(w, ack) } }
            }
            fn needs_rtt(&self) -> bool {
                match self { $( Self::$variant(c) => c.needs_rtt(), )* Self::HyStartPlusPlus(c) => c.needs_rtt() }
            }
            #[inline(always)]
            fn pacing_rate(&self, w: &Window, srtt: Span) -> Option<BitRate> {
                match self { $( Self::$variant(c) => c.pacing_rate(w, srtt), )* Self::HyStartPlusPlus(c) => c.pacing_rate(w, srtt) }
            }
            fn alpha(&self) -> Option<f64> {
                match self { $( Self::$variant(c) => c.alpha(), )* Self::HyStartPlusPlus(c) => c.alpha() }
            }
        }
    };
}

controllers! {
    /// AIMD with NewReno's fast recovery. Source: RFC 5681, RFC 6582.
    "newreno" => NewReno(NewReno, RenoControl),
    /// AIMD with the fast recovery that the first new ACK ends, without SACK by default. Source: RFC 5681 §3.2.
    "reno" => Reno(Reno, ClassicRenoControl),
    /// CUBIC. Source: RFC 9438 §4, §5.
    "cubic" => Cubic(Cubic, CubicControl),
    /// Data Center TCP: the window shrinks by the fraction of marked bytes. Source: RFC 8257 §3.3, §4.
    "dctcp" => Dctcp(Dctcp, DctcpControl),
}
