//! Snapshot of a sender for telemetry: a copy that decides nothing.

use crate::endpoint::Phase;
use crate::report::RackCounts;
use fanin_units::{BitRate, Span, Time};

/// A timer of an endpoint, by what its expiry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Retransmission timer of outstanding data. Source: RFC 6298 §5.
    Retransmission,
    /// Tail loss probe timer. Source: RFC 8985 §7.
    TailProbe,
    /// Reordering timer: at its expiry, segments that waited for reordered ones are lost. Source: RFC 8985 §6.2.
    Reordering,
    /// Persist timer, which probes a closed receive window. Source: RFC 9293 §3.8.6.1.
    WindowProbe,
    /// Delayed-ACK timer. Source: RFC 9293 §3.8.6.3.
    DelayedAck,
    /// Pacing timer of the next segment.
    Pacing,
}

/// Number of timers of an endpoint, each with a fixed index: the first is that of the oldest segment.
pub const TIMERS: usize = 3;

/// State of a sender at one moment; positions in the stream are offsets: the SYN is 0, the first byte 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderState {
    /// True if the connection is open, so that data may be sent.
    pub established: bool,
    /// Sequence numbers on the wire of offset 0 in the sent stream and in the received one.
    pub origins: [u32; 2],
    /// SND.UNA and SND.NXT.
    pub acked: u64,
    pub next: u64,
    /// Congestion window \[bytes\].
    pub cwnd: u64,
    /// Slow-start threshold \[bytes\]; `None` before the first reduction.
    pub ssthresh: Option<u64>,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    pub rttvar: Span,
    /// Present RTO, back-off included.
    pub rto: Span,
    /// Sending rate, if something besides windows limits it: a rate limiter, or pacing by a congestion control.
    pub rate: Option<BitRate>,
    /// DCTCP's alpha.
    pub alpha: Option<f64>,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Bytes believed to be in the network. Source: RFC 6675 §4.
    pub pipe: u64,
    /// Bytes written and not yet sent.
    pub unsent: u64,
    /// Bytes that the receive window allows beyond `acked`.
    pub window: u64,
    pub phase: Phase,
    /// Counters of RACK-TLP.
    pub rack: RackCounts,
    /// Expiry of each timer; `Time::MAX`: off.
    pub timers: [(Timer, Time); TIMERS],
}

impl SenderState {
    /// FlightSize: bytes sent and not cumulatively acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.next - self.acked
    }
}
