//! Reports of an endpoint: events and counters.

/// Reason for which a connection was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortReason {
    /// No answer after `max_retries` (or `syn_retries`) timeouts. Source: RFC 9293 §3.8.3.
    RetriesExhausted,
    /// Reset by the peer (RST).
    Reset,
}

/// Event that the application or the simulation handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Handshake complete. Connections that are open from the start do not report it.
    Connected,
    /// In-order data arrived; `total` bytes since the start.
    Delivered { total: u64 },
    /// Data was acknowledged; `total` bytes since the start.
    Acked { total: u64 },
    /// The peer has closed its direction (FIN, in order).
    PeerClosed,
    /// The connection is closed in both directions; an endpoint in TIME-WAIT still answers a repeated FIN until its timeout.
    Closed,
    /// The connection was aborted.
    Aborted(AbortReason),
}

/// Counters of one endpoint, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments with payload, retransmissions included.
    pub packets_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Application bytes acknowledged by the peer.
    pub acked: u64,
    /// Application bytes received in order.
    pub delivered: u64,
    /// Segments without payload, SYN and FIN included.
    pub control_sent: u64,
    /// Segments with payload that arrived marked CE.
    pub marked: u64,
    /// Segments with payload retransmitted.
    pub retransmits: u64,
    /// Payload bytes that arrived a second time.
    pub duplicate_bytes: u64,
    /// Retransmission timeouts, those of SYN and FIN included.
    pub timeouts: u32,
    /// Fast recoveries entered.
    pub recoveries: u32,
    /// Window reductions caused by ECN.
    pub ecn_reductions: u32,
    /// Duplicate ACKs received.
    pub dup_acks: u32,
    /// Timeouts found to be spurious.
    pub spurious_rtos: u32,
    /// Probes of a closed window.
    pub window_probes: u32,
    /// Drop notifications and NACKs that caused a retransmission.
    pub notices: u32,
    /// Window reductions that drop notifications and NACKs caused.
    pub notice_reductions: u32,
}

/// Counters of [`Stats`] that TCP cannot derive from its state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub marked: u64,
    pub retransmits: u64,
    /// Payload bytes of those retransmissions.
    pub bytes_again: u64,
    pub duplicate_bytes: u64,
    pub timeouts: u32,
    pub recoveries: u32,
    pub ecn_reductions: u32,
    pub dup_acks: u32,
    pub spurious_rtos: u32,
    pub window_probes: u32,
    pub notices: u32,
    pub notice_reductions: u32,
}

/// Counters of RACK-TLP on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RackCounts {
    /// Tail loss probes sent.
    pub tail_probes: u32,
    /// Reductions of the window undone, those of spurious timeouts included.
    pub undos: u32,
    /// Detected losses of retransmissions.
    pub lost_retransmits: u32,
}

/// Events that wait to be polled, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pending(pub u8);

impl Pending {
    pub const CONNECTED: u8 = 1;
    pub const DELIVERED: u8 = 2;
    pub const ACKED: u8 = 4;
    pub const PEER_CLOSED: u8 = 8;
    pub const CLOSED: u8 = 16;
    pub const ABORTED: u8 = 32;

    #[inline(always)]
    pub fn add(&mut self, bit: u8) {
        self.0 |= bit;
    }

    /// Takes the first pending event, in causal order.
    #[inline]
    pub fn take(&mut self) -> u8 {
        let first = self.0 & self.0.wrapping_neg();
        self.0 &= !first;
        first
    }
}
