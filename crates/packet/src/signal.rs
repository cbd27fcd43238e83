//! What the network signals to the ends of a flow besides packets of the other end, in terms that no mechanism owns.

/// How a switch names a packet to the host that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Sequence number of its first byte; of an acknowledgment without data, its acknowledgment number.
    pub number: u32,
    /// Its payload bytes.
    pub length: u16,
    pub part: Part,
}

/// What a packet was for its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Data, or the opening or closing of a connection: its sender has it still.
    Data,
    /// An acknowledgment without data: its sender can make a newer one.
    Acknowledgment,
}

/// A packet of this end was dropped on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost {
    pub packet: Reference,
    /// The sender shall reduce its window as for a loss.
    pub reduce: bool,
}

/// What a host hands to the endpoint of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    Lost(Lost),
    /// A message whose meaning is not defined.
    Undefined,
}

/// A set of ways in which the network may notify the ends of a flow of congestion, besides marks: what a mechanism sends
/// and what a transport acts on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signals(u8);

impl Signals {
    pub const NONE: Signals = Signals(0);
    /// [`Signal::Lost`].
    pub const LOST: Signals = Signals(1);
    /// Packets whose payload was cut off ([`Envelope::trimmed`](crate::Envelope::trimmed)).
    pub const TRIMMED: Signals = Signals(2);

    /// Whether all of `other` are in it.
    pub const fn has(self, other: Signals) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    pub const fn with(self, other: Signals) -> Signals {
        Signals(self.0 | other.0)
    }

    /// Those that are in both.
    pub const fn and(self, other: Signals) -> Signals {
        Signals(self.0 & other.0)
    }

    /// Those that are not in `other`.
    pub const fn without(self, other: Signals) -> Signals {
        Signals(self.0 & !other.0)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
