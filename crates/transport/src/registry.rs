//! Registry of transports: one line for each gives its table in scenarios, its variant of [`Endpoint`] and all dispatch.

use crate::config::Tcp;
use crate::endpoint::TcpEndpoint;
use crate::report::{Event, Stats};
use crate::roce::{Roce, RoceEndpoint};
use crate::signals::SignalCounts;
use crate::snapshot::SenderState;
use crate::transport::{Act, CheckSite, FailsAfter, Idle, Kinds, LossTimer, Place, Refused, Shape, Transport, TransportParams};
use crate::udp::UdpEndpoint;
use fanin_packet::{Envelope, Header, IpVersion, Signal, Signals, Stack};
use fanin_params::{Cx, Ground, Trial};
use fanin_units::{Bytes, Span, Stream, Time};

macro_rules! transports {
    ($( $(#[doc = $doc:expr])* $kind:literal => $variant:ident($params:ty, $endpoint:ty), )*) => {
        fanin_params::choice! {
            /// Transport of a flow.
            pub enum TransportConfig, kind "tcp" {
                $( $(#[doc = $doc])* $kind => $variant($params), )*
            }
        }

        impl TransportConfig {
            /// Trials of every transport, one for each of its congestion controls.
            pub fn trials(at: &Ground) -> Vec<Trial> {
                let mut all = Vec::new();
                $( all.extend(<$params as TransportParams>::trials($kind, &[$($doc),*], at)); )*
                all
            }
        }

        impl TransportParams for TransportConfig {
            fn check(&self, cx: &mut Cx, site: &CheckSite) {
                match self { $( Self::$variant(p) => p.check(cx, site), )* }
            }
            fn check_at(&self, at: &Idle, cx: &mut Cx) {
                match self { $( Self::$variant(p) => p.check_at(at, cx), )* }
            }
            fn ecn_remedy(&self) -> Option<&'static str> {
                match self { $( Self::$variant(p) => p.ecn_remedy(), )* }
            }
            fn wants_order(&self) -> Option<&'static str> {
                match self { $( Self::$variant(p) => p.wants_order(), )* }
            }
            fn mtu(&self, ip: IpVersion) -> u16 {
                match self { $( Self::$variant(p) => p.mtu(ip), )* }
            }
            fn with_mtu_less(self, bytes: u16) -> Self {
                match self { $( Self::$variant(p) => Self::$variant(p.with_mtu_less(bytes)), )* }
            }
            fn shape(&self, ip: IpVersion) -> Shape {
                match self { $( Self::$variant(p) => p.shape(ip), )* }
            }
            fn longest_header(&self, ip: IpVersion) -> u16 {
                match self { $( Self::$variant(p) => p.longest_header(ip), )* }
            }
            fn largest_message(&self) -> Option<Bytes> {
                match self { $( Self::$variant(p) => p.largest_message(), )* }
            }
            fn first_window(&self, ip: IpVersion) -> u64 {
                match self { $( Self::$variant(p) => p.first_window(ip), )* }
            }
            fn keeps_queues_small(&self) -> bool {
                match self { $( Self::$variant(p) => p.keeps_queues_small(), )* }
            }
            fn burst(&self) -> Option<(&'static str, Bytes)> {
                match self { $( Self::$variant(p) => TransportParams::burst(p), )* }
            }
            fn receive_window(&self) -> Option<(&'static str, Bytes)> {
                match self { $( Self::$variant(p) => TransportParams::receive_window(p), )* }
            }
            fn loss_timers(&self) -> Vec<LossTimer> {
                match self { $( Self::$variant(p) => p.loss_timers(), )* }
            }
            fn fails_after(&self) -> Option<FailsAfter> {
                match self { $( Self::$variant(p) => p.fails_after(), )* }
            }
            fn uses_ecn(&self) -> bool {
                match self { $( Self::$variant(p) => p.uses_ecn(), )* }
            }
            fn needs_marks(&self) -> Option<&'static str> {
                match self { $( Self::$variant(p) => p.needs_marks(), )* }
            }
            fn marks_by_curve(&self) -> bool {
                match self { $( Self::$variant(p) => p.marks_by_curve(), )* }
            }
            fn needs_telemetry(&self) -> Option<&'static str> {
                match self { $( Self::$variant(p) => p.needs_telemetry(), )* }
            }
            fn wants_lossless(&self) -> Option<&'static str> {
                match self { $( Self::$variant(p) => p.wants_lossless(), )* }
            }
            fn other_classes(&self) -> Vec<(&'static str, u8)> {
                match self { $( Self::$variant(p) => p.other_classes(), )* }
            }
            fn acts_on(&self) -> Signals {
                match self { $( Self::$variant(p) => p.acts_on(), )* }
            }
            fn signal_keys(&self) -> &'static [(Signals, &'static str)] {
                match self { $( Self::$variant(p) => p.signal_keys(), )* }
            }
        }

        /// Parameters of a flow's transport, laid out for its endpoints: each finds its own without testing the transport's
        /// kind, which would happen ten times per packet. Those of the other transports are present with their defaults; all
        /// are in one piece, so that an end has one address for them.
        #[derive(Clone, Debug)]
        #[allow(non_snake_case)] // as the variants
        pub struct Parameters {
            $( $variant: $params, )*
            config: TransportConfig,
        }

        impl From<TransportConfig> for Parameters {
            fn from(config: TransportConfig) -> Self {
                let mut all = Parameters { config: config.clone(), $( $variant: <$params>::default(), )* };
                match config {
                    $( TransportConfig::$variant(params) => all.$variant = params, )*
                }
                all
            }
        }

        ends! { $( $(#[doc = $doc])* $variant($endpoint), )* }
    };
}

/// Declares the endpoints: the first transport is the common one, which dispatch recognises by one comparison.
macro_rules! ends {
    (
        $(#[doc = $doc0:expr])* $first:ident($endpoint0:ty),
        $( $(#[doc = $doc:expr])* $variant:ident($endpoint:ty), )*
    ) => {
        /// One end of a flow of any transport, or of datagrams. Its methods are those of [`Transport`].
        #[allow(clippy::large_enum_variant)] // the large one is the common one
        pub enum Endpoint {
            $(#[doc = $doc0])* $first($endpoint0),
            /// An endpoint of another transport than the common one.
            Other(Other),
        }

        /// One end of a flow of a transport other than the common one.
        pub enum Other {
            $( $(#[doc = $doc])* $variant($endpoint), )*
            /// Endpoint of a datagram flow.
            Udp(UdpEndpoint),
        }

        /// Dispatches a method to the endpoint's transport, or to datagrams.
        macro_rules! dispatch {
            ($end:expr, $cfg:expr, |$e:ident, $c:ident| $body:expr, |$udp:ident| $datagrams:expr) => {
                match $end {
                    Endpoint::$first($e) => {
                        let $c = &$cfg.$first;
                        debug_assert!(matches!($cfg.config, TransportConfig::$first(_)), "parameters of another transport");
                        $body
                    }
                    $( Endpoint::Other(Other::$variant($e)) => {
                        let $c = &$cfg.$variant;
                        debug_assert!(matches!($cfg.config, TransportConfig::$variant(_)), "parameters of another transport");
                        $body
                    } )*
                    Endpoint::Other(Other::Udp($udp)) => $datagrams,
                }
            };
            ($end:expr, |$e:ident| $body:expr, |$udp:ident| $datagrams:expr) => {
                match $end {
                    Endpoint::$first($e) => $body,
                    $( Endpoint::Other(Other::$variant($e)) => $body, )*
                    Endpoint::Other(Other::Udp($udp)) => $datagrams,
                }
            };
        }

        impl Endpoint {
            /// Runs `act` on an endpoint of the common transport; `None` for another transport's.
            #[inline(always)]
            pub fn act<A: Act>(&mut self, cfg: &Parameters, act: A) -> Option<A::Out> {
                match self {
                    Endpoint::$first(end) => Some(act.act(end, &cfg.$first)),
                    Endpoint::Other(_) => None,
                }
            }

            /// Runs `act` on an endpoint of a transport other than the common one, compiled for each: its kind is tested once.
            /// `None` for the common transport's (compiled here too it would be no part of [`Endpoint::act`] any more, which costs each
            /// of its packets eighty instructions), and for one of datagrams.
            #[inline(always)]
            pub fn act_other<A: Act>(&mut self, cfg: &Parameters, act: A) -> Option<A::Out> {
                match self {
                    $( Endpoint::Other(Other::$variant(end)) => Some(act.act(end, &cfg.$variant)), )*
                    _ => None,
                }
            }

            /// The two endpoints of a flow, initiator first.
            pub fn pair(cfg: &Parameters, place: &Place, now: Time, draws: &mut Stream) -> [Endpoint; 2] {
                match &cfg.config {
                    TransportConfig::$first(p) => <$endpoint0>::pair(p, place, now, draws).map(Endpoint::$first),
                    $( TransportConfig::$variant(p) => {
                        <$endpoint>::pair(p, place, now, draws).map(|end| Endpoint::Other(Other::$variant(end)))
                    } )*
                }
            }
        }
    };
}

transports! {
    /// TCP.
    "tcp" => Tcp(Tcp, TcpEndpoint),
    /// RoCEv2.
    "roce" => Roce(Roce, RoceEndpoint),
}

impl Default for TransportConfig {
    fn default() -> Self {
        TransportConfig::Tcp(Tcp::default())
    }
}

impl From<UdpEndpoint> for Endpoint {
    fn from(end: UdpEndpoint) -> Self {
        Endpoint::Other(Other::Udp(end))
    }
}

/// Dereferences to the transport's configuration as the scenario gives it.
impl std::ops::Deref for Parameters {
    type Target = TransportConfig;
    fn deref(&self) -> &TransportConfig {
        &self.config
    }
}

/// Methods of [`Transport`], dispatched; `cfg` must be the parameters with which the endpoint was made.
impl Endpoint {
    /// Dispatches [`Transport::write`]; datagrams leave by their schedule. Datagrams leave by their schedule.
    #[inline(always)]
    pub fn write(&mut self, cfg: &Parameters, now: Time, bytes: u64) {
        dispatch!(self, cfg, |e, c| e.write(c, now, bytes), |_udp| ())
    }

    /// Dispatches [`Transport::close`].
    #[inline(always)]
    pub fn close(&mut self, cfg: &Parameters, now: Time) {
        dispatch!(self, cfg, |e, c| e.close(c, now), |_udp| ())
    }

    /// Dispatches [`Transport::arrived_at`].
    pub fn arrived_at(&mut self, at: Time) {
        dispatch!(self, |e| e.arrived_at(at), |_udp| ())
    }

    /// Dispatches [`Transport::on_packet`].
    #[inline(always)]
    pub fn on_packet(&mut self, cfg: &Parameters, now: Time, envelope: &Envelope, header: &Header) {
        dispatch!(self, cfg, |e, c| e.on_packet(c, now, envelope, header), |udp| udp.on_packet(envelope))
    }

    /// Dispatches [`Transport::on_signal`].
    #[inline(always)]
    pub fn on_signal(&mut self, cfg: &Parameters, now: Time, signal: &Signal) {
        dispatch!(self, cfg, |e, c| e.on_signal(c, now, signal), |udp| udp.on_signal())
    }

    /// Dispatches [`Transport::on_telemetry`].
    pub fn on_telemetry(&mut self, stack: &Stack) {
        dispatch!(self, |e| e.on_telemetry(stack), |_udp| ())
    }

    /// Dispatches [`Transport::telemetry`].
    pub fn telemetry(&self, made: &Header) -> Option<Stack> {
        dispatch!(self, |e| e.telemetry(made), |_udp| None)
    }

    /// Dispatches [`Transport::on_timer`].
    #[inline(always)]
    pub fn on_timer(&mut self, cfg: &Parameters, now: Time) {
        dispatch!(self, cfg, |e, c| e.on_timer(c, now), |udp| udp.on_timer(now))
    }

    /// Dispatches [`Transport::next_timeout`].
    #[inline(always)]
    pub fn next_timeout(&self) -> Time {
        dispatch!(self, |e| e.next_timeout(), |udp| udp.next_timeout())
    }

    /// Dispatches [`Transport::is_patient`]; false for datagrams, whose source has a clock.
    #[inline(always)]
    pub fn is_patient(&self, cfg: &Parameters, span: Span) -> bool {
        dispatch!(self, cfg, |e, c| e.is_patient(c, span), |_udp| false)
    }

    /// Dispatches [`Transport::due`].
    #[inline(always)]
    pub fn due(&self, cfg: &Parameters, now: Time, kinds: Kinds) -> bool {
        dispatch!(self, cfg, |e, c| e.due(c, now, kinds), |udp| udp.due(now, kinds))
    }

    /// Dispatches [`Transport::poll`].
    #[inline(always)]
    pub fn poll(&mut self, cfg: &Parameters, now: Time, kinds: Kinds, envelope: &mut Envelope, header: &mut Header) -> bool {
        dispatch!(self, cfg, |e, c| e.poll(c, now, kinds, envelope, header), |udp| udp.poll(now, kinds, envelope, header))
    }

    /// Dispatches [`Transport::burst`].
    #[inline(always)]
    pub fn burst(&self, cfg: &Parameters, now: Time) -> u64 {
        dispatch!(self, cfg, |e, c| e.burst(c, now), |_udp| 0)
    }

    /// Dispatches [`Transport::output_limit`].
    pub fn output_limit(&self, cfg: &Parameters, now: Time) -> u64 {
        dispatch!(self, cfg, |e, c| e.output_limit(c, now), |_udp| u64::MAX)
    }

    /// Dispatches [`Transport::on_refusal`]; datagrams do not notice.
    pub fn on_refusal(&mut self, cfg: &Parameters, now: Time) -> Option<Refused> {
        dispatch!(self, cfg, |e, c| e.on_refusal(c, now), |_udp| None)
    }

    /// Dispatches [`Transport::poll_event`].
    #[inline(always)]
    pub fn poll_event(&mut self) -> Option<Event> {
        dispatch!(self, |e| e.poll_event(), |udp| udp.poll_event())
    }

    /// Dispatches [`Transport::is_quiet_below`].
    #[inline(always)]
    pub fn is_quiet_below(&mut self, delivered: u64, acked: u64) -> bool {
        dispatch!(self, |e| e.is_quiet_below(delivered, acked), |udp| udp.is_quiet())
    }

    /// Dispatches [`Transport::is_over`].
    #[inline(always)]
    pub fn is_over(&self, cfg: &Parameters) -> bool {
        dispatch!(self, cfg, |e, c| e.is_over(c), |udp| udp.is_over())
    }

    /// Dispatches [`Transport::apart`].
    #[inline(always)]
    pub fn apart(&self, step: usize, fetch: impl Fn(*const u8)) {
        dispatch!(self, |e| e.apart(step, fetch), |_udp| ());
    }

    /// Dispatches [`Transport::stats`].
    pub fn stats(&self) -> Stats {
        dispatch!(self, |e| e.stats(), |udp| udp.stats())
    }

    /// Dispatches [`Transport::sent`].
    #[inline(always)]
    pub fn sent(&self) -> u32 {
        dispatch!(self, |e| e.sent(), |udp| udp.sent() as u32)
    }

    /// Counts a datagram that has reached its sink; true if the flow is one of datagrams.
    #[inline(always)]
    pub fn count_datagram(&mut self, envelope: &Envelope) -> bool {
        let Endpoint::Other(Other::Udp(udp)) = self else { return false };
        udp.on_packet(envelope);
        udp.poll_event().is_some()
    }

    /// Datagrams received; zero for other transports.
    pub fn received(&self) -> u64 {
        match self {
            Endpoint::Other(Other::Udp(udp)) => udp.received(),
            _ => 0,
        }
    }

    /// Dispatches [`Transport::signals`].
    pub fn signals(&self) -> SignalCounts {
        dispatch!(self, |e| e.signals(), |udp| udp.signals())
    }

    /// Dispatches [`Transport::next_place`]; `None` for datagrams, which have no order.
    pub fn next_place(&self) -> Option<u32> {
        dispatch!(self, |e| e.next_place(), |_udp| None)
    }

    /// Dispatches [`Transport::snapshot`]; `None` for datagrams, which have no window.
    pub fn snapshot(&self) -> Option<SenderState> {
        dispatch!(self, |e| e.snapshot(), |_udp| None)
    }

    /// Dispatches [`Transport::describe`].
    pub fn describe(&self) -> String {
        dispatch!(self, |e| e.describe(), |udp| udp.describe())
    }

    /// Dispatches [`Transport::shape`].
    pub fn shape(cfg: &TransportConfig, ip: IpVersion) -> Shape {
        cfg.shape(ip)
    }

    /// The TCP endpoint, if it is one.
    pub fn tcp(&self) -> Option<&TcpEndpoint> {
        match self {
            Endpoint::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }
}
