//! Hooks: places along a packet's way at which mechanisms are asked.

/// Hooks of a mechanism that do something; others are not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hooks(u32);

impl Hooks {
    pub const NONE: Hooks = Hooks(0);
    pub const ROUTE: Hooks = Hooks(1 << 1);
    pub const OFFER: Hooks = Hooks(1 << 2);
    pub const REFUSAL: Hooks = Hooks(1 << 3);
    pub const DROP: Hooks = Hooks(1 << 4);
    pub const DEPARTURE: Hooks = Hooks(1 << 5);
    /// Hooks of [`super::Sends`].
    pub const TURN: Hooks = Hooks(1 << 6);
    /// Messages of the mechanism's own, to be sent and received ([`super::Listens`]).
    pub const MESSAGES: Hooks = Hooks(1 << 7);
    /// Hooks of [`super::Watches`].
    pub const EGRESS: Hooks = Hooks(1 << 8);
    /// Headers in frames, into which ports write when the frames leave: a depth, or a record of telemetry.
    pub const SHIMS: Hooks = Hooks(1 << 9);
    /// Pauses of classes of the switch's ports ([`super::Effect::Gate`]), and of NICs of its hosts ([`super::PauseFrames`]).
    pub const GATES: Hooks = Hooks(1 << 10);
    /// Packets of a class leave by rank ([`super::Ranks`]).
    pub const RANKS: Hooks = Hooks(1 << 11);
    /// Refusal also of packets that were detoured to the port; mechanisms without it are not asked about them.
    pub const DETOURED: Hooks = Hooks(1 << 12);
    /// Offer, but for packets that find their port idle and no class of it paused: those leave at once without a question.
    pub const QUEUE: Hooks = Hooks(1 << 13);
    /// Count of bytes by the port that they came in by ([`super::Node::input_bytes`]). With [`Hooks::EGRESS`]. Crossbars know
    /// them anyway.
    pub const INPUTS: Hooks = Hooks(1 << 14);
    /// [`super::PacketMemory::on_crossing`].
    pub const CROSSING: Hooks = Hooks(1 << 16);
    /// [`super::PacketMemory::on_departed`].
    pub const DEPARTED: Hooks = Hooks(1 << 15);
    /// Flag of switches, not a hook: the switch is a combined input- and output-queued one, whose ports get packets over its
    /// crossbar alone.
    pub const COMBINED: Hooks = Hooks(1 << 17);
    /// Hooks by which packets are seen before they are enqueued at a port.
    pub const BEFORE_PORTS: Hooks = Hooks::OFFER.with(Hooks::QUEUE).with(Hooks::RANKS);

    /// Hooks of `self` that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Hooks) -> Hooks {
        Hooks(self.0 & !other.0)
    }

    /// Hooks of `self` and of `other`.
    #[must_use]
    pub const fn with(self, other: Hooks) -> Hooks {
        Hooks(self.0 | other.0)
    }

    /// True if any hook of `other` is in the set.
    #[inline(always)]
    pub const fn any(self, other: Hooks) -> bool {
        self.0 & other.0 != 0
    }
}
