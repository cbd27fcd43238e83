//! Congestion control of RoCEv2: at which rate a queue pair sends, and how much may be outstanding. Never what is in it.
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

/// What a control steers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The rate at which packets leave, all of their bytes on the wire counted; the NIC's at most.
    pub rate: BitRate,
    /// Payload bytes that may be outstanding; one packet always may. [`Sending::UNLIMITED`]: any number.
    pub window: u64,
}

impl Sending {
    /// No window.
    pub const UNLIMITED: u64 = u64::MAX;
}

/// Where a queue pair sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Of the NIC.
    pub line_rate: BitRate,
    /// Round trip of a full packet and its acknowledgment on an idle network.
    pub base_rtt: Span,
    /// Switches on the way of the data.
    pub hops: u32,
    /// Payload bytes of a full packet, and all of its bytes on the wire.
    pub payload: u32,
    pub wire: u32,
}

impl Path {
    /// Payload bytes that fill the path: line rate times base RTT, in whole packets.
    pub fn bdp(&self) -> u64 {
        let packets = self.line_rate.bytes_in(self.base_rtt).get().div_ceil(u64::from(self.wire.max(1)));
        packets.max(1) * u64::from(self.payload)
    }
}

/// An acknowledgment, positive or negative.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feedback<'a> {
    pub now: Time,
    /// Payload bytes newly acknowledged.
    pub acked: u64,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// Places in the stream of the first byte that is not acknowledged, and of the next one that is new.
    pub una: u64,
    pub nxt: u64,
    /// From the first bit of the packet that it answers on the host's wire to its own arrival; none where that packet was sent
    /// again.
    pub rtt: Option<Span>,
    /// For how long the packet waited in its receiver, and the acknowledgment in this host, between NIC and transport; known where the
    /// control asks for it.
    pub at_ends: Span,
    /// What the switches said of themselves, in the order of the way; empty without in-band telemetry.
    pub telemetry: &'a [HopSample],
    /// Where they are: another number means another way.
    pub path: u16,
}

/// What told of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A negative acknowledgment.
    Nak,
    /// The timeout.
    Timeout,
}

/// What a control needs of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Its name, where it works by marks: data is ECN-capable.
    pub marks: Option<&'static str>,
    /// Marks should come by chance, the more the longer the queue.
    pub curve: bool,
    /// Acknowledgments say for how long packets waited at their receiver.
    pub waited: bool,
    /// It holds back packets by a window, so that each packet has to be acknowledged.
    pub window: bool,
    /// Its name, where it works by telemetry of the ports on the way.
    pub telemetry: Option<&'static str>,
}

impl Needs {
    pub const NOTHING: Needs = Needs { marks: None, curve: false, waited: false, window: false, telemetry: None };
}

/// When a receiver sends notifications of marks (CNP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notifying {
    /// One per flow in this time at most.
    pub interval: Span,
    /// From the mark until it leaves.
    pub delay: Span,
}

/// The rules of a control. Each method leaves rate and window as the queue pair shall use them next.
pub trait RateControl {
    const NEEDS: Needs = Needs::NOTHING;

    /// What a scenario gets besides when it is tried there: what its authors had set. One that does not work by marks has switches
    /// that do not mark.
    fn authors(_at: &Ground) -> Vec<Setting> {
        Vec::from_iter(Self::NEEDS.marks.is_none().then(|| ("switch.marking", "\"none\"".to_string())))
    }

    /// Its own keys when it is tried on a scenario, each after a comma: where its defaults do not suit the network.
    fn suited(_at: &Ground) -> String {
        String::new()
    }

    /// An acknowledgment has come.
    fn on_ack(&mut self, _s: &mut Sending, _feedback: &Feedback<'_>) {}
    /// A notification has come (CNP).
    fn on_cnp(&mut self, _s: &mut Sending, _now: Time) {}
    /// Something was lost.
    fn on_loss(&mut self, _s: &mut Sending, _now: Time, _loss: Loss) {}
    /// A packet leaves, of so many bytes on the wire.
    fn on_sent(&mut self, _s: &mut Sending, _now: Time, _wire: u32) {}
    /// A timeout of its own.
    fn on_timer(&mut self, _s: &mut Sending, _now: Time) {}
    /// When that is; `Time::MAX`: there is none.
    fn next_timeout(&self) -> Time {
        Time::MAX
    }
    /// Its estimate of congestion, where it has one: DCQCN's α.
    fn alpha(&self) -> Option<f64> {
        None
    }
}

/// One list of the controls: kind, parameters, state.
macro_rules! controls {
    ($( $(#[doc = $doc:expr])* $kind:literal => $variant:ident($params:ty, $state:ty), )*) => {
        fanin_params::choice! {
            /// How a queue pair finds its rate.
            pub enum RoceControl {
                $( $(#[doc = $doc])* $kind => $variant($params), )*
            }
        }

        /// The state of one queue pair's control.
        #[derive(Clone, Debug)]
        pub enum Control {
            $( $variant($state), )*
        }

        impl RoceControl {
            /// Each as it is tried on a scenario.
            pub(crate) fn trials(at: &Ground) -> Vec<Trial> {
                vec![$( {
                    let table = format!("{{ kind = \"roce\", congestion_control = {{ kind = {:?}{} }} }}", $kind, <$state>::suited(at));
                    let own = ("transport".to_string(), table);
                    Trial::new("transport.congestion_control", $kind, &[$($doc),*], own, <$state>::authors(at))
                }, )*]
            }

            /// See [`Needs`].
            pub fn needs(&self) -> Needs {
                match self { $( Self::$variant(_) => <$state>::NEEDS, )* }
            }

            /// When receivers notify senders of marks; none where they do not.
            pub fn notifying(&self) -> Option<Notifying> {
                match self { $( Self::$variant(params) => params.notifying(), )* }
            }

            /// Values that contradict each other; `cx` is at its table.
            pub fn check(&self, cx: &mut fanin_params::Cx) {
                match self { $( Self::$variant(params) => params.check(cx), )* }
            }
        }

        impl RoceControl {
            /// Values that do not suit the network; `cx` is at its table.
            pub fn check_at(&self, at: &Idle, cx: &mut fanin_params::Cx) {
                match self { $( Self::$variant(params) => params.check_at(at, cx), )* }
            }
        }

        impl Control {
            /// The state of a queue pair that has sent nothing yet, and what it starts with.
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
            fn alpha(&self) -> Option<f64> {
                match self { $( Self::$variant(c) => c.alpha(), )* }
            }
        }
    };
}

/// What a control's parameters say besides their values.
pub trait ControlParams {
    /// See [`RoceControl::notifying`].
    fn notifying(&self) -> Option<Notifying> {
        None
    }
    /// See [`RoceControl::check`].
    fn check(&self, _cx: &mut fanin_params::Cx) {}
    /// See [`RoceControl::check_at`].
    fn check_at(&self, _at: &Idle, _cx: &mut fanin_params::Cx) {}
}

controls! {
    /// None: each queue pair sends at its rate, and pauses hold it back.
    "none" => None(NoRateControl, NoControl),
    /// What is in flight on the busiest link, by telemetry. Source: HPCC §3.
    "hpcc" => Hpcc(Hpcc, HpccControl),
    /// Power at the busiest port, by telemetry. Source: PowerTCP §3.3.
    "powertcp" => PowerTcp(PowerTcp, PowerTcpControl),
    /// Power, by delays. Source: PowerTCP §3.3.
    "theta_powertcp" => ThetaPowerTcp(ThetaPowerTcp, ThetaPowerTcpControl),
    /// DCQCN: by notifications of marks. Source: DCQCN.
    "dcqcn" => Dcqcn(Dcqcn, DcqcnControl),
    /// TIMELY: by the gradient of the RTT. Source: TIMELY.
    "timely" => Timely(Timely, TimelyControl),
    /// Swift: by delays of fabric and hosts. Source: Swift.
    "swift" => Swift(Swift, SwiftControl),
}
