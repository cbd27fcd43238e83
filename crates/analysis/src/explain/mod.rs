//! Explanation of a flow's completion time: a walk back along its critical path, from the packet that completed it to its start.
//!
//! At each moment one thing was waited for, and it decides what came next: the packet that completed the flow was on a wire, or in
//! a queue behind others; it had been sent because an acknowledgment arrived, which had been sent because other data arrived, or
//! because a timer expired, which had been started by something before. Each step of the walk covers the time from one such moment
//! to the next, so the steps add up to the completion time exactly. What overlapped with them made no difference.
//!
//! The records are those of `telemetry.hosts`; docs/explain.md has the definition of each part, and an example.

mod walk;

pub use walk::explain;

use fanin_telemetry::{HopRow, PauseRow, SegmentRow};
use serde::Serialize;

/// Kind of waiting that time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Before the sender could send data: connection and request cross the network.
    Handshake,
    /// The application had written nothing to send.
    Application,
    /// Packets of the flow leave one directly behind the other: the time that its own bytes take.
    Serialisation,
    /// The last packets cross the network: propagation, and serialisation at each port.
    Path,
    /// Round trips in which the congestion window was used up.
    CongestionWindow,
    /// Round trips in which the receive window was.
    ReceiveWindow,
    /// Round trips until a loss was noticed and repaired: fast recovery, and the time before a timer.
    Recovery,
    /// Round trips after a retransmission timeout, until the data then outstanding had arrived.
    Loss,
    /// Behind packets of other flows, at a port of a switch.
    Queue,
    /// Behind packets of other flows, at a host's NIC.
    Nic,
    /// Behind a pause by the neighbour, at a port of a switch or a NIC.
    Pause,
    /// A mechanism of the switch held the packet for a port ([`Step::by`]).
    Held,
    /// Pacing held the next segment back.
    Pacing,
    /// The retransmission timer ran.
    Rto,
    /// The timer of a tail loss probe ran.
    Tlp,
    /// The timer that waits for reordered packets ran.
    Reordering,
    /// A packet had reached its host, which waited with it: an interrupt, a poll, noise.
    HostReceive,
    /// The receiver waited with its acknowledgment.
    DelayedAck,
    /// The timer that probes a closed receive window ran.
    WindowProbe,
    /// A switch's message about a dropped packet was on its way.
    Notification,
    /// The records do not tell the kind.
    Unknown,
}

/// A stretch of the critical path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    pub from_ps: u64,
    pub to_ps: u64,
    pub kind: Kind,
    /// The port of a queue, pause or hold, the host of a NIC; else empty.
    pub place: String,
    /// The mechanism that held a packet; else empty.
    pub by: String,
    /// Number in `segments` of the packet that the step is about.
    pub packet: Option<u64>,
}

/// All steps of one kind at one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    pub kind: Kind,
    /// The port of a queue, pause or hold, the host of a NIC; else empty.
    pub place: String,
    /// The mechanism that held packets; else empty.
    pub by: String,
    pub time_ps: u64,
    /// Number of round trips, timeouts or waits.
    pub times: u64,
}

/// A timer that was waited for because a packet was lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waited {
    pub kind: Kind,
    pub from_ps: u64,
    pub to_ps: u64,
    /// Packets that had been lost by then, and the place of the first of them in the stream; without a loss zero, and the place
    /// of the retransmitted bytes.
    pub lost_packets: u64,
    pub seq_bytes: u64,
    /// True if the lost packet was a retransmission itself.
    pub sent_again: bool,
    /// Port at which the lost packet was dropped, and the time.
    pub dropped_at: Option<String>,
    pub dropped_ps: Option<u64>,
}

/// Explanation of a flow's completion time, part by part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    pub start_ps: u64,
    /// End of the explained time.
    pub end_ps: u64,
    /// Parts that add up to `end_ps - start_ps`, the longest first.
    pub parts: Vec<Part>,
    /// Steps in order of time, without gaps.
    pub steps: Vec<Step>,
    pub waited: Vec<Waited>,
}

/// A packet of table `segments`, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    pub packet: u64,
    /// Host that sent the packet.
    pub host: String,
    pub seq_bytes: u64,
    pub payload_bytes: u16,
    pub received_ps: Option<u64>,
    pub trimmed: bool,
    pub dropped_at: Option<String>,
    pub dropped_ps: Option<u64>,
    pub cause: String,
    pub cause_ps: u64,
    pub cause_packet: Option<u64>,
    pub armed_ps: Option<u64>,
    pub armed_packet: Option<u64>,
    pub limit: String,
}

/// A hop of table `hops`: a packet that has crossed a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hop {
    pub packet: u64,
    pub port: String,
    pub arrived_ps: u64,
    pub sent_ps: u64,
    pub left_ps: u64,
    pub reached_ps: u64,
    /// Mechanism that held the packet there, and the times from and until.
    pub held_by: Option<String>,
    pub held_from_ps: Option<u64>,
    pub held_until_ps: Option<u64>,
}

impl From<&SegmentRow> for Segment {
    fn from(row: &SegmentRow) -> Self {
        Segment {
            packet: row.packet,
            host: row.host.to_string(),
            seq_bytes: row.seq_bytes,
            payload_bytes: row.payload_bytes,
            received_ps: row.received_ps,
            trimmed: row.trimmed,
            dropped_at: row.dropped_at.as_ref().map(ToString::to_string),
            dropped_ps: row.dropped_ps,
            cause: row.cause.to_string(),
            cause_ps: row.cause_ps,
            cause_packet: row.cause_packet,
            armed_ps: row.armed_ps,
            armed_packet: row.armed_packet,
            limit: row.limit.to_string(),
        }
    }
}

impl From<&HopRow> for Hop {
    fn from(row: &HopRow) -> Self {
        Hop {
            packet: row.packet,
            port: row.port.to_string(),
            arrived_ps: row.arrived_ps,
            sent_ps: row.sent_ps,
            left_ps: row.left_ps,
            reached_ps: row.reached_ps,
            held_by: row.held_by.as_ref().map(ToString::to_string),
            held_from_ps: row.held_from_ps,
            held_until_ps: row.held_until_ps,
        }
    }
}

/// A pause of table `pauses`, of the flow's class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pause {
    pub port: String,
    pub start_ps: u64,
    /// End of the pause; `None`: it lasted as the run ended.
    pub end_ps: Option<u64>,
}

impl From<&PauseRow> for Pause {
    fn from(row: &PauseRow) -> Self {
        Pause { port: row.port.to_string(), start_ps: row.start_ps, end_ps: row.end_ps }
    }
}

/// Records of one flow. Rows of other flows must not be among them.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// Host that sends the data.
    pub src: &'a str,
    pub start_ps: u64,
    /// Time at which the last byte was delivered; `None` for a flow that was not completed, which is explained up to the last
    /// packet with data that arrived.
    pub finish_ps: Option<u64>,
    pub segments: &'a [Segment],
    pub hops: &'a [Hop],
    pub pauses: &'a [Pause],
}

#[cfg(test)]
mod tests;
