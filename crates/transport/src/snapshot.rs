//! What a sender is doing at one moment, for telemetry: a copy that decides nothing.

use crate::endpoint::Phase;
use crate::report::RackCounts;
use fanin_units::{BitRate, Span, Time};

/// A timer of an endpoint, by what its expiry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Sends again what is outstanding. Source: RFC 6298 §5.
    Retransmission,
    /// Sends a tail loss probe. Source: RFC 8985 §7.
    TailProbe,
    /// What has waited for reordered segments is lost. Source: RFC 8985 §6.2.
    Reordering,
    /// Probes a closed receive window. Source: RFC 9293 §3.8.6.1.
    WindowProbe,
    /// Acknowledges what has waited for a second segment. Source: RFC 9293 §3.8.6.3.
    DelayedAck,
    /// Lets the next paced segment go.
    Pacing,
}

/// Timers that an endpoint has, each in a place of its own: the first is that of the oldest segment.
pub const TIMERS: usize = 3;

/// See the module. Places in the stream are offsets: the SYN is 0, the first byte 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderState {
    /// The connection is open: data may be sent.
    pub established: bool,
    /// Sequence numbers on the wire of place 0 in the stream that it sends, and in the one that it receives.
    pub origins: [u32; 2],
    /// SND.UNA and SND.NXT.
    pub acked: u64,
    pub next: u64,
    /// Bytes.
    pub cwnd: u64,
    /// Bytes; none before the first reduction.
    pub ssthresh: Option<u64>,
    /// Zero before the first sample.
    pub srtt: Span,
    pub rttvar: Span,
    /// Back-off included.
    pub rto: Span,
    /// What it may send at, where something limits that besides windows: a rate limiter, pacing that a control asks for.
    pub rate: Option<BitRate>,
    /// Of DCTCP.
    pub alpha: Option<f64>,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Bytes believed to be in the network. Source: RFC 6675 §4.
    pub pipe: u64,
    /// Bytes written and not yet sent.
    pub unsent: u64,
    /// Bytes that the other end accepts beyond `acked`.
    pub window: u64,
    pub phase: Phase,
    /// Of RACK-TLP.
    pub rack: RackCounts,
    /// `Time::MAX`: off.
    pub timers: [(Timer, Time); TIMERS],
}

impl SenderState {
    /// Bytes sent and not cumulatively acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.next - self.acked
    }
}
