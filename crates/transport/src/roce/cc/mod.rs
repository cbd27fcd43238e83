//! Congestion control of RoCEv2: controls that steer a queue pair's rate and window and never see their contents.
//!
//! A control sees counts, times and what the network says of itself, no packets. Adding one is a source file here, one line in the
//! registry below and a page in `docs/transports/`.

use crate::transport::Idle;
use fanin_packet::HopSample;
use fanin_params::{Ground, Setting, Trial};
use fanin_units::{BitRate, Span, Time};

mod dcqcn;
mod hpcc;
mod none;
mod powertcp;
mod swift;
mod telemetry;
mod timely;

pub use dcqcn::{Dcqcn, DcqcnControl, DcqcnProfile};
pub use hpcc::{Hpcc, HpccControl};
pub use none::{NoControl, NoRateControl};
pub use powertcp::{PowerTcp, PowerTcpControl, ThetaPowerTcp, ThetaPowerTcpControl};
pub use swift::{Swift, SwiftControl};
pub use timely::{Timely, TimelyControl};

/// Variables that a control steers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Sending rate, counting all bytes on the wire; the NIC's rate at most.
    pub rate: BitRate,
    /// Payload bytes that may be outstanding, see [`Needs::fills_window`]; one packet always may. [`Sending::UNLIMITED`]: any
    /// number.
    pub window: u64,
}

impl Sending {
    /// Window that allows any number of outstanding bytes.
    pub const UNLIMITED: u64 = u64::MAX;
}

/// Properties of a queue pair's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Line rate of the NIC.
    pub line_rate: BitRate,
    /// Idle RTT of a full packet and its acknowledgment.
    pub base_rtt: Span,
    /// Number of switches on the data's path.
    pub hops: u32,
    /// Payload bytes of a full packet, and its bytes on the wire.
    pub payload: u32,
    pub wire: u32,
}

impl Path {
    /// Bandwidth-delay product in payload bytes: line rate times base RTT, in whole packets.
    pub fn bdp(&self) -> u64 {
        let packets = self.line_rate.bytes_in(self.base_rtt).get().div_ceil(u64::from(self.wire.max(1)));
        packets.max(1) * u64::from(self.payload)
    }
}

/// An acknowledgment, positive or negative, as controls see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feedback<'a> {
    pub now: Time,
    /// Payload bytes newly acknowledged.
    pub acked: u64,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// Offsets in the stream of the first byte not yet acknowledged, and of the next new one.
    pub una: u64,
    pub nxt: u64,
    /// RTT from the first bit of the acknowledged packet on the host's wire to the acknowledgment's arrival; `None` if that
    /// packet was retransmitted.
    pub rtt: Option<Span>,
    /// Time that the packet waited in its receiver, and the acknowledgment in this host, between NIC and transport; known if
    /// the control asks for it.
    pub at_ends: Span,
    /// Telemetry of the switches, in the order of the path; empty without in-band telemetry.
    pub telemetry: &'a [HopSample],
    /// Hash of the ports in `telemetry`: a different value means a different path.
    pub path: u16,
}

/// Event that revealed a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A negative acknowledgment.
    Nak,
    /// Timeout without any acknowledgment.
    Timeout,
}

/// Requirements of a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Name of a control that works by marks: its data is ECN-capable.
    pub marks: Option<&'static str>,
    /// True if marking should be probabilistic, increasing with the queue.
    pub curve: bool,
    /// True if acknowledgments report the packets' waiting time at their receiver.
    pub waited: bool,
    /// True if the control limits packets by a window, so that each packet has to be acknowledged.
    pub window: bool,
    /// True if a packet may leave while less than the window is outstanding, though not all of it fits: on average what is
    /// outstanding is the window then, also where that is few packets.
    pub fills_window: bool,
    /// Name of a control that works by telemetry of the ports on the path.
    pub telemetry: Option<&'static str>,
}

impl Needs {
    pub const NOTHING: Needs =
        Needs { marks: None, curve: false, waited: false, window: false, fills_window: false, telemetry: None };
}

/// Rule by which a receiver sends notifications of marks (CNPs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notifying {
    /// Smallest interval between notifications of a flow.
    pub interval: Span,
    /// Delay from a mark to the notification.
    pub delay: Span,
}

/// Rules of a RoCEv2 congestion control. Each method leaves rate and window as the queue pair shall use them next.
pub trait RateControl {
    const NEEDS: Needs = Needs::NOTHING;

    /// Settings that a trial of the control adds to a scenario, as its authors used them. A control that does not work by
    /// marks gets switches that do not mark.
    fn authors(_at: &Ground) -> Vec<Setting> {
        Vec::from_iter(Self::NEEDS.marks.is_none().then(|| ("switch.marking", "\"none\"".to_string())))
    }

    /// Keys of the control's own table in a trial, each after a comma, if its defaults do not suit the network.
    fn suited(_at: &Ground) -> String {
        String::new()
    }

    /// Handles an acknowledgment.
    fn on_ack(&mut self, _s: &mut Sending, _feedback: &Feedback<'_>) {}
    /// Handles a congestion notification (CNP).
    fn on_cnp(&mut self, _s: &mut Sending, _now: Time) {}
    /// Handles a detected loss.
    fn on_loss(&mut self, _s: &mut Sending, _now: Time, _loss: Loss) {}
    /// Handles a packet sent, of `_wire` bytes on the wire.
    fn on_sent(&mut self, _s: &mut Sending, _now: Time, _wire: u32) {}
    /// Handles the expiry of the control's own timer.
    fn on_timer(&mut self, _s: &mut Sending, _now: Time) {}
    /// Expiry of the control's own timer; `Time::MAX`: not set.
    fn next_timeout(&self) -> Time {
        Time::MAX
    }
    /// Shows `fetch` the memory that the control keeps apart and reads at each acknowledgment, line by line.
    fn apart(&self, _fetch: &impl Fn(*const u8)) {}
    /// Estimate of congestion (DCQCN's α); `None` for controls without one.
    fn alpha(&self) -> Option<f64> {
        None
    }
}

/// Declares the controls: kind, parameters, state.
macro_rules! controls {
    ($( $(#[doc = $doc:expr])* $kind:literal => $variant:ident($params:ty, $state:ty), )*) => {
        fanin_params::choice! {
            /// Congestion control of RoCEv2.
            pub enum RoceControl {
                $( $(#[doc = $doc])* $kind => $variant($params), )*
            }
        }

        /// Congestion control state of a queue pair.
        #[derive(Clone, Debug)]
        pub enum Control {
            $( $variant($state), )*
        }

        impl RoceControl {
            /// One trial for each control.
            pub(crate) fn trials(at: &Ground) -> Vec<Trial> {
                vec![$( {
                    let table = format!("{{ kind = \"roce\", congestion_control = {{ kind = {:?}{} }} }}", $kind, <$state>::suited(at));
                    let own = ("transport".to_string(), table);
                    Trial::new("transport.congestion_control", $kind, &[$($doc),*], own, <$state>::authors(at))
                }, )*]
            }

            /// Requirements of the control.
            pub fn needs(&self) -> Needs {
                match self { $( Self::$variant(_) => <$state>::NEEDS, )* }
            }

            /// Rule by which receivers notify senders of marks; `None` if they do not.
            pub fn notifying(&self) -> Option<Notifying> {
                match self { $( Self::$variant(params) => params.notifying(), )* }
            }

            /// Reports contradictory values; `cx` is at the control's table.
            pub fn check(&self, cx: &mut fanin_params::Cx) {
                match self { $( Self::$variant(params) => params.check(cx), )* }
            }
        }

        impl RoceControl {
            /// Reports values that do not suit the network; `cx` is at the control's table.
            pub fn check_at(&self, at: &Idle, cx: &mut fanin_params::Cx) {
                match self { $( Self::$variant(params) => params.check_at(at, cx), )* }
            }
        }

        impl Control {
            /// State of a queue pair that has sent nothing yet, and its initial rate and window.
            pub fn new(params: &RoceControl, path: &Path) -> (Self, Sending) {
                let mut sending = Sending { rate: path.line_rate, window: Sending::UNLIMITED };
                let control = match params {
                    $( RoceControl::$variant(params) => Self::$variant(<$state>::new(params, path, &mut sending)), )*
                };
                (control, sending)
            }
        }

        impl RateControl for Control {
            fn on_ack(&mut self, s: &mut Sending, feedback: &Feedback<'_>) {
                match self { $( Self::$variant(c) => c.on_ack(s, feedback), )* }
            }
            fn on_cnp(&mut self, s: &mut Sending, now: Time) {
                match self { $( Self::$variant(c) => c.on_cnp(s, now), )* }
            }
            fn on_loss(&mut self, s: &mut Sending, now: Time, loss: Loss) {
                match self { $( Self::$variant(c) => c.on_loss(s, now, loss), )* }
            }
            fn on_sent(&mut self, s: &mut Sending, now: Time, wire: u32) {
                match self { $( Self::$variant(c) => c.on_sent(s, now, wire), )* }
            }
            fn on_timer(&mut self, s: &mut Sending, now: Time) {
                match self { $( Self::$variant(c) => c.on_timer(s, now), )* }
            }
            fn next_timeout(&self) -> Time {
                match self { $( Self::$variant(c) => c.next_timeout(), )* }
            }
            fn apart(&self, fetch: &impl Fn(*const u8)) {
                match self { $( Self::$variant(c) => c.apart(fetch), )* }
            }
            fn alpha(&self) -> Option<f64> {
                match self { $( Self::$variant(c) => c.alpha(), )* }
            }
        }
    };
}

/// Checks and notification rule of a control's parameters.
pub trait ControlParams {
    /// Rule of notifications, see [`RoceControl::notifying`].
    fn notifying(&self) -> Option<Notifying> {
        None
    }
    /// Reports contradictory values, see [`RoceControl::check`].
    fn check(&self, _cx: &mut fanin_params::Cx) {}
    /// Reports values that do not suit the network, see [`RoceControl::check_at`].
    fn check_at(&self, _at: &Idle, _cx: &mut fanin_params::Cx) {}
}

controls! {
    /// No congestion control: each queue pair sends at its rate, limited by pauses alone.
    "none" => None(NoRateControl, NoControl),
    /// HPCC: bytes in flight on the busiest link, by telemetry. Source: HPCC §3.2, Algorithm 1; values: HPCC §5.1.
    "hpcc" => Hpcc(Hpcc, HpccControl),
    /// PowerTCP: power at the busiest port, by telemetry. Source: PowerTCP §3.3, Algorithm 1; values: the simulations
    /// published with it.
    "powertcp" => PowerTcp(PowerTcp, PowerTcpControl),
    /// theta-PowerTCP: power by delays, without telemetry. Source: PowerTCP §3.3, Algorithm 2; values: the simulations
    /// published with it.
    "theta_powertcp" => ThetaPowerTcp(ThetaPowerTcp, ThetaPowerTcpControl),
    /// DCQCN: rate reductions by notifications of marks. Source: DCQCN §3.
    "dcqcn" => Dcqcn(Dcqcn, DcqcnControl),
    /// TIMELY: rate by the gradient of the RTT. Source: TIMELY §4.3.
    "timely" => Timely(Timely, TimelyControl),
    /// Swift: windows, in packets, by delays of fabric and hosts. Source: Swift §3.
    "swift" => Swift(Swift, SwiftControl),
}
