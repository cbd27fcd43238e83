//! Verdicts of policies on packets, with reasons of drops and marks. Everything that happens to a packet has a reason.

/// Reason for which a packet was dropped, as results write it. A policy that drops declares its own reasons in its own file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DropReason(pub &'static str);

impl DropReason {
    /// The port's own buffer had no room.
    pub const BUFFER_FULL: DropReason = DropReason("buffer_full");
    /// The virtual output queue of a combined switch had no room.
    pub const VOQ_FULL: DropReason = DropReason("voq_full");
    /// The queue had reached its share of the free shared buffer.
    pub const DYNAMIC_THRESHOLD: DropReason = DropReason("dynamic_threshold");
    /// The shared buffer had no room at all.
    pub const SHARED_BUFFER_FULL: DropReason = DropReason("shared_buffer_full");
    /// The queue of the sending host had no room.
    pub const TXQUEUE_FULL: DropReason = DropReason("txqueue_full");
    /// The packet had crossed as many switches as it may.
    pub const TTL: DropReason = DropReason("ttl");
    /// The port's link was down, and the switch knew.
    pub const LINK_DOWN: DropReason = DropReason("link_down");
    /// The link was down while a part of the frame was on it.
    pub const LINK_LOST: DropReason = DropReason("link_lost");
    /// The frame arrived with bit errors, and its receiver discarded it.
    pub const BIT_ERROR: DropReason = DropReason("bit_error");
    /// The switch knows no way to the destination.
    pub const NO_ROUTE: DropReason = DropReason("no_route");

    /// Name of the reason in results.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// Reason for which a packet was marked. A policy declares its own reasons in its own file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MarkReason(pub &'static str);

/// Verdict of a marking policy on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkVerdict {
    /// The packet passes unchanged.
    Pass,
    /// The packet is marked with CE. Only said of ECN-capable packets.
    Mark(MarkReason),
    /// The packet is dropped. Never said of a packet that is being sent already: see `Policy::on_dequeue` and `Policy::on_head`.
    Drop(DropReason),
    /// No decision has come, and none will: the run cannot go on. Only a policy that asks outside says so.
    Undecided,
}
