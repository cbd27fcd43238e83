//! Transports of the end hosts, sans-IO: time is passed as an argument, effects leave as values.
//!
//! A transport implements [`Transport`], its parameters [`TransportParams`], and one line in `registry.rs` makes it a variant of
//! [`Endpoint`] and [`TransportConfig`]. The caller hands an endpoint packets (`on_packet`), signals (`on_signal`), expired
//! timeouts (`on_timer`) and application calls (`write`, `close`), then polls what is due, reads `poll_event`, and calls
//! `on_timer` at `next_timeout`. Data is counted, not carried. Flow, destination, hash, frame, class and side of a packet are
//! the caller's.

pub mod cc;
mod config;
mod endpoint;
mod notified;
mod reassembly;
mod registry;
mod report;
pub mod roce;
mod rtt;
mod scoreboard;
mod segments;
mod signals;
mod snapshot;
mod transport;
mod udp;

pub use cc::CongestionControl;
pub use config::{
    BackoffReset, CompressedSacks, DelayedAcks, DropResend, EcnEcho, EctOn, FixedWindow, GrowingWindow, HalfWindowPush,
    IdleRestart, InitialWindow, LastPush, LossDetection, Paced, Pacing, Profile, PushBit, ReceiveWindow, RtoFloor, RttSampling,
    SackCompression, SlowStart, SpuriousRto, Tcp, Uncompressed, Unpaced, WindowGrowth, WindowRules,
};
pub use endpoint::{Connection, Phase, Role, TcpEndpoint, TcpState};
pub use registry::{Endpoint, Other, Parameters, TransportConfig};
pub use report::{AbortReason, Event, RackCounts, Stats};
pub use roce::{Roce, RoceEndpoint};
pub use signals::{NotificationCounts, SignalCounts, SignalLog, TrimmingCounts};
pub use snapshot::{SenderState, Timer, TIMERS};
pub use transport::{Act, CheckSite, FailsAfter, Idle, Kinds, LossTimer, Place, Refused, Shape, Transport, TransportParams};
pub use udp::UdpEndpoint;
