//! Where along a packet's way mechanisms are asked.

/// Hooks of a mechanism that do something; the others are not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hooks(u32);

impl Hooks {
    pub const NONE: Hooks = Hooks(0);
    pub const ROUTE: Hooks = Hooks(1 << 1);
    pub const OFFER: Hooks = Hooks(1 << 2);
    pub const REFUSAL: Hooks = Hooks(1 << 3);
    pub const DROP: Hooks = Hooks(1 << 4);
    pub const DEPARTURE: Hooks = Hooks(1 << 5);
    /// [`Mechanism::on_turn`].
    pub const TURN: Hooks = Hooks(1 << 6);
    /// It sends messages, and gets those of others of its kind.
    pub const MESSAGES: Hooks = Hooks(1 << 7);
    /// [`Mechanism::on_egress`].
    pub const EGRESS: Hooks = Hooks(1 << 8);
    /// It puts headers into frames, into which ports write what they leave behind ([`Shim::unit`], [`Shim::add_record`]).
    pub const SHIMS: Hooks = Hooks(1 << 9);
    /// It pauses classes of its ports ([`Effect::Gate`]) and NICs of its hosts ([`Mechanism::pause`]).
    pub const GATES: Hooks = Hooks(1 << 10);
    /// [`Mechanism::rank`]: packets of a class leave by rank.
    pub const RANKS: Hooks = Hooks(1 << 11);
    /// [`Mechanism::on_refusal`] also for packets that were detoured to the port; others are not asked about them.
    pub const DETOURED: Hooks = Hooks(1 << 12);
    /// [`Mechanism::on_offer`], but for packets that find their port idle and no class of it paused: those leave at once, and it has
    /// nothing to say of them.
    pub const QUEUE: Hooks = Hooks(1 << 13);
    /// It asks for bytes by the port that they came in by ([`Node::input_bytes`]). With [`Hooks::EGRESS`]. Crossbars know them anyway.
    pub const INPUTS: Hooks = Hooks(1 << 14);
    /// [`Mechanism::on_crossing`].
    pub const CROSSING: Hooks = Hooks(1 << 16);
    /// [`Mechanism::on_departed`].
    pub const DEPARTED: Hooks = Hooks(1 << 15);
    /// Not of a mechanism: the switch is a combined input- and output-queued one, whose ports get packets over its crossbar alone.
    pub const COMBINED: Hooks = Hooks(1 << 17);
    /// Any by which packets are seen before they are offered to a port.
    pub const BEFORE_PORTS: Hooks = Hooks::OFFER.with(Hooks::QUEUE).with(Hooks::RANKS);

    /// Those of the first that are not in the second.
    #[must_use]
    pub const fn without(self, other: Hooks) -> Hooks {
        Hooks(self.0 & !other.0)
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Hooks) -> Hooks {
        Hooks(self.0 | other.0)
    }

    /// Whether one of `other` is in it.
    #[inline(always)]
    pub const fn any(self, other: Hooks) -> bool {
        self.0 & other.0 != 0
    }
}
