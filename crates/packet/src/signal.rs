//! Signals from the network to the ends of a flow, besides packets of the peer, in terms that no mechanism owns.

/// Reference by which a switch names a packet to the host that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Sequence number of the packet's first byte; for a pure acknowledgment, its acknowledgment number.
    pub number: u32,
    /// Payload bytes of the packet.
    pub length: u16,
    pub part: Part,
}

/// Role of a packet for its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Data, SYN or FIN, which the sender can retransmit.
    Data,
    /// Pure acknowledgment, in place of which the sender can send a newer one.
    Acknowledgment,
}

/// Notification that a packet of this end was dropped in the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost {
    pub packet: Reference,
    /// True if the sender shall reduce its window as for a loss.
    pub reduce: bool,
}

/// Signal that a host hands to the endpoint of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    Lost(Lost),
    /// Message of undefined meaning, which an endpoint counts and ignores.
    Undefined,
}

/// A set of ways to notify the ends of a flow of congestion, besides ECN marks: those that a mechanism uses, or those that a
/// transport acts on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signals(u8);

impl Signals {
    pub const NONE: Signals = Signals(0);
    /// Drop notifications ([`Signal::Lost`]).
    pub const LOST: Signals = Signals(1);
    /// Trimmed packets, whose payload was cut off ([`Envelope::trimmed`](crate::Envelope::trimmed)).
    pub const TRIMMED: Signals = Signals(2);

    /// True if this set contains all of `other`.
    pub const fn has(self, other: Signals) -> bool {
        self.0 & other.0 == other.0
    }

    /// Union of the two sets.
    pub const fn with(self, other: Signals) -> Signals {
        Signals(self.0 | other.0)
    }

    /// Intersection of the two sets.
    pub const fn and(self, other: Signals) -> Signals {
        Signals(self.0 & other.0)
    }

    /// Set difference: the signals of this set that are not in `other`.
    pub const fn without(self, other: Signals) -> Signals {
        Signals(self.0 & !other.0)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
