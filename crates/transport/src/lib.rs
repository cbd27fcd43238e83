//! Transports of the end hosts, sans-IO: time comes in as an argument, effects leave as values.
//!
//! [`TcpEndpoint`] is one end of a full-duplex connection that carries counts instead of bytes. The caller hands it packets
//! (`on_packet`), expired timeouts (`on_timer`) and application calls (`write`, `close`), then drains `poll_control`, pulls
//! `poll_data` whenever its NIC has room, reads `poll_event`, and calls `on_timer` at `next_timeout`. It fills the transport
//! fields of a packet only; flow, destination, hash, frame, class and side are the caller's.

pub mod cc;
mod config;
mod endpoint;
mod noticed;
mod reassembly;
mod report;
mod rtt;
mod scoreboard;

pub use cc::CongestionControl;
pub use config::{
    BackoffReset, DropResend, EcnEcho, EctOn, FixedWindow, GrowingWindow, IdleRestart, InitialWindow, Paced, Pacing, Profile,
    ReceiveWindow, RtoFloor, RttSampling, SpuriousRto, Tcp, TransportConfig, Unpaced,
};
pub use endpoint::{Connection, NoticeOutcome, Phase, Role, TcpEndpoint, TcpState, TrimOutcome};
pub use report::{AbortReason, TcpEvent, TcpStats};
