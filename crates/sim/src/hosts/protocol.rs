//! Interface of an endpoint, together with its parameters, to the rules of its host.

use crate::ledger::Seen;
use fanin_packet::{Envelope, Header, Stack};
use fanin_transport::{Endpoint, Kinds, Parameters, Refused, SenderState, Stats, Transport};
use fanin_units::{Span, Time};

/// Declares the trait `Protocol`, with an implementation for one endpoint and one for any of them.
macro_rules! protocol {
    ($( $(#[$meta:meta])* fn $name:ident($($receiver:tt)+) ( $($arg:ident: $ty:ty),* ) $(-> $out:ty)? ; $this:ident.$with:tt )*) => {
        /// An endpoint with its parameters. Most methods are those of [`Transport`].
        pub trait Protocol {
            $( $(#[$meta])* fn $name($($receiver)+, $($arg: $ty),*) $(-> $out)?; )*

            /// False if the endpoint has no telemetry.
            const HAS_TELEMETRY: bool;

            /// True of a source of datagrams that has sent all.
            fn has_sent_all(&self) -> bool;

            /// Calls [`Transport::may_have_data`].
            fn may_have_data(&self, now: Time) -> bool;

            /// Calls [`Transport::times_out_before`].
            fn times_out_before(&self, at: Time) -> bool;

            /// State of the endpoint as the tables of followed flows show it.
            fn seen(&self, now: Time) -> Seen {
                Seen { state: self.snapshot(), stats: self.stats(), ready: self.due(now, Kinds::DATA) }
            }
        }

        impl<E: Transport> Protocol for Known<'_, E> {
            const HAS_TELEMETRY: bool = E::HAS_TELEMETRY;

            $( #[inline(always)] fn $name($($receiver)+, $($arg: $ty),*) $(-> $out)? { protocol!(@call $this $name $with $($arg),*) } )*

            #[inline(always)]
            fn has_sent_all(&self) -> bool {
                false
            }

            #[inline(always)]
            fn may_have_data(&self, now: Time) -> bool {
                self.end.may_have_data(self.cfg, now)
            }

            #[inline(always)]
            fn times_out_before(&self, at: Time) -> bool {
                self.end.times_out_before(at)
            }
        }

        impl Protocol for Any<'_> {
            const HAS_TELEMETRY: bool = true;

            $( #[inline(always)] fn $name($($receiver)+, $($arg: $ty),*) $(-> $out)? { protocol!(@call $this $name $with $($arg),*) } )*

            #[inline(always)]
            fn has_sent_all(&self) -> bool {
                self.source && self.end.is_over(self.cfg)
            }

            #[inline(always)]
            fn may_have_data(&self, now: Time) -> bool {
                self.due(now, Kinds::DATA)
            }

            #[inline(always)]
            fn times_out_before(&self, at: Time) -> bool {
                self.end.next_timeout() < at
            }
        }
    };
    (@call $self:ident $name:ident with_parameters $($arg:ident),*) => { $self.end.$name($self.cfg, $($arg),*) };
    (@call $self:ident $name:ident alone $($arg:ident),*) => { $self.end.$name($($arg),*) };
}

/// An endpoint whose transport is known, found out once for all calls. Never one of datagrams.
pub struct Known<'a, E: Transport> {
    pub end: &'a mut E,
    pub cfg: &'a E::Params,
}

/// An endpoint of any transport, or of datagrams.
pub struct Any<'a> {
    pub end: &'a mut Endpoint,
    pub cfg: &'a Parameters,
    /// True of a source of datagrams.
    pub source: bool,
}

protocol! {
    /// Calls [`Transport::on_packet`].
    fn on_packet(&mut self)(now: Time, envelope: &Envelope, header: &Header); self.with_parameters
    /// Calls [`Transport::due`].
    fn due(&self)(now: Time, kinds: Kinds) -> bool; self.with_parameters
    /// Calls [`Transport::poll`].
    fn poll(&mut self)(now: Time, kinds: Kinds, envelope: &mut Envelope, header: &mut Header) -> bool; self.with_parameters
    /// Calls [`Transport::burst`].
    fn burst(&self)(now: Time) -> u64; self.with_parameters
    /// Calls [`Transport::output_limit`].
    fn output_limit(&self)(now: Time) -> u64; self.with_parameters
    /// Calls [`Transport::on_refusal`].
    fn on_refusal(&mut self)(now: Time) -> Option<Refused>; self.with_parameters
    /// Calls [`Transport::is_patient`].
    fn is_patient(&self)(span: Span) -> bool; self.with_parameters
    /// Calls [`Transport::is_quiet_below`].
    fn is_quiet_below(&mut self)(delivered: u64, acked: u64) -> bool; self.alone
    /// Calls [`Transport::next_timeout`].
    fn next_timeout(&self)() -> Time; self.alone
    /// Calls [`Transport::sent`].
    fn sent(&self)() -> u32; self.alone
    /// Calls [`Transport::telemetry`].
    fn telemetry(&self)(made: &Header) -> Option<Stack>; self.alone
    /// Calls [`Transport::snapshot`].
    fn snapshot(&self)() -> Option<SenderState>; self.alone
    /// Calls [`Transport::stats`].
    fn stats(&self)() -> Stats; self.alone
}
