//! Capabilities of mechanisms, each a trait of its own. The registry says which mechanism has which.
//!
//! A switch asks for one by its name, with what it wants of it: `mechanism.ranks(|m| m.rank(envelope, shim))`. That is a match over all
//! mechanisms in which those without the capability are `None`. The trait object never leaves its arm, so that the call is static.

use super::{dispatch, Arrival, Effects, MechanismState, Message, Node, PortNo, Turn, Verdict};
use crate::{DropReason, ExpressParams};
use fanin_packet::{Envelope, PacketId, Shim};
use fanin_units::{Bytes, TrafficClass};

macro_rules! capabilities {
    ($( $(#[doc = $doc:expr])* $trait:ident => $name:ident, $name_mut:ident; )*) => {
        /// Access to the capabilities of a mechanism; absent ones are `None`. The registry implements it.
        pub trait Provides {
            $(
                $(#[doc = $doc])*
                fn $name(&self) -> Option<&dyn $trait> {
                    None
                }

                $(#[doc = $doc])*
                fn $name_mut(&mut self) -> Option<&mut dyn $trait> {
                    None
                }
            )*
        }

        /// Inside an implementation of [`Provides`]: the mechanism has this capability.
        macro_rules! provide {
            $( ($trait) => {
                #[inline(always)]
                fn $name(&self) -> Option<&dyn $trait> {
                    Some(self)
                }

                #[inline(always)]
                fn $name_mut(&mut self) -> Option<&mut dyn $trait> {
                    Some(self)
                }
            }; )*
        }

        impl MechanismState {
            $(
                $(#[doc = $doc])*
                #[inline(always)]
                pub fn $name<T>(&self, ask: impl FnOnce(&dyn $trait) -> T) -> Option<T> {
                    dispatch!(self, m => Provides::$name(&**m).map(ask))
                }

                $(#[doc = $doc])*
                #[inline(always)]
                pub fn $name_mut<T>(&mut self, ask: impl FnOnce(&mut dyn $trait) -> T) -> Option<T> {
                    dispatch!(self, m => Provides::$name_mut(&mut **m).map(ask))
                }
            )*
        }
    };
}

capabilities! {
    /// Sends packets or messages of its own when the wire of a port is free.
    Sends => sends, sends_mut;
    /// Puts messages at the end of frames.
    Attaches => attaches, attaches_mut;
    /// Receives messages of its own kind.
    Listens => listens, listens_mut;
    /// Acts at times that it has set.
    Timed => timed, timed_mut;
    /// Holds packets back from ports.
    Holds => holds, holds_mut;
    /// Counts packets in memory by the port that they came in by.
    PacketMemory => packet_memory, packet_memory_mut;
    /// Sees frames leave.
    Watches => watches, watches_mut;
    /// Lets packets of a class leave by rank.
    Ranks => ranks, ranks_mut;
    /// Lets packets leave a queue to make room for others.
    Displaces => displaces, displaces_mut;
    /// Sends messages that are forwarded as packets are.
    Clones => clones, clones_mut;
    /// Lets ports write telemetry into frames.
    Telemetry => telemetry, telemetry_mut;
    /// Keeps largest values besides counters.
    Peaks => peaks, peaks_mut;
    /// Has a queue at each port whose packets overtake all others.
    Overtakes => overtakes, overtakes_mut;
}
// The registry is in another module, so that this is no import of what is here already.
#[allow(clippy::single_component_path_imports)]
pub(super) use provide;

/// Sends packets or messages of its own when the wire of a port is free. With [`super::Hooks::TURN`].
pub trait Sends {
    /// Takes the transmission opportunity of a port whose wire is free. `data`: the scheduler has a packet that may be sent. Only
    /// run while something waits there, and for data alone not always: then it answers `Pass`.
    fn on_turn(&mut self, node: &mut dyn Node, port: PortNo, data: bool, fx: &mut Effects) -> Turn;

    /// True if the mechanism has something to send at a port, by `on_turn` or [`Attaches::on_departure`]. It says so by
    /// [`super::Effect::Arm`] from the first moment on: until then the port may do without departures as events.
    fn waits(&self, _port: PortNo) -> bool {
        false
    }
}

/// Puts messages at the end of frames. With [`Sends`].
pub trait Attaches {
    /// Message for the end of a frame whose first bit is about to leave a port. Only run while the mechanism waits there
    /// ([`Sends::waits`]).
    fn on_departure(&mut self, port: PortNo, envelope: &Envelope) -> Option<Message>;

    /// True if the message that leaves by a port, at the end of a frame or in one of its own, is lost on the link. The frame
    /// arrives.
    fn loses(&mut self, port: PortNo) -> bool;

    /// Messages that wait at this switch.
    fn messages(&self) -> u64;
}

/// Receives messages of its own kind. With [`super::Hooks::MESSAGES`].
pub trait Listens {
    /// Handles a message of one of the mechanism's EtherTypes that has arrived.
    fn on_message(&mut self, node: &mut dyn Node, from: PortNo, message: &Message, fx: &mut Effects);
}

/// Acts at times that it has set.
pub trait Timed {
    /// A timer of [`super::Effect::Timer`] has expired.
    fn on_timer(&mut self, node: &mut dyn Node, fx: &mut Effects);
}

/// Holds packets back from ports ([`Verdict::Hold`]).
pub trait Holds {
    /// Packets that the mechanism holds.
    fn held(&self) -> Vec<PacketId>;

    /// True if the mechanism holds packets of a class for a port.
    fn holds_for(&self, port: PortNo, class: TrafficClass) -> bool;
}

/// Counts packets in memory by the port that they came in by, from their wait here until they are gone.
pub trait PacketMemory {
    /// Counts a packet that another mechanism has taken before it was enqueued at a port, to hold it or let it overtake. The
    /// packet waits, whether the wire is free or not. Anything but `Pass` is `Drop`.
    fn on_taken(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, fx: &mut Effects) -> Verdict;

    /// Counts a packet without a note that came in by port `from` and has to wait for another, where nothing follows from that but a
    /// note to be kept with it. `None`: nothing is counted, and `on_offer` decides.
    fn take_calmly(&mut self, envelope: &Envelope, from: PortNo, port: PortNo) -> Option<u64>;

    /// Ends the count of a packet that has left its queue and had this note (zero: none), where nothing follows from that; the note is taken off
    /// the packet then. False: nothing has changed, and `on_departed` decides.
    fn leave_calmly(&mut self, note: u64) -> bool;

    /// Moves the count of a packet that came in by `from`, leaves its virtual output queue and crosses to port `to`, at a
    /// combined input- and output-queued switch. There `on_offer` is asked before it joins that queue, and marking decides when
    /// it has crossed. With [`super::Hooks::CROSSING`].
    fn on_crossing(&mut self, node: &mut dyn Node, packet: PacketId, from: PortNo, to: PortNo, fx: &mut Effects);

    /// Ends the count of a packet that has left its queue, or that found the wire of its port free where departures are events.
    /// `node.now()` is when it did; where departures are no events this runs later, and nothing that the hook wants of others may
    /// depend on it ([`Node::next_departed`]). With [`super::Hooks::DEPARTED`].
    fn on_departed(&mut self, node: &mut dyn Node, packet: PacketId, fx: &mut Effects);

    /// Shows `fetch` the memory in which the mechanism keeps what it knows of a packet that is about to be enqueued at a port, or
    /// to leave it: a line each. `from`: the port that the packet came in by, if it is about to be enqueued.
    fn kept(&self, from: Option<PortNo>, port: PortNo, fetch: &dyn Fn(*const u8));

    /// Ports for which packets of a class wait that came in by port `from`.
    fn waits_behind(&self, from: PortNo, class: TrafficClass) -> Vec<PortNo>;

    /// True if a class of a port that is paused for too long is served all the same, so that no deadlock lasts.
    fn breaks_deadlocks(&self) -> bool;
}

/// Sees frames leave ports whose departures are events ([`super::Effect::Watch`]). With [`super::Hooks::EGRESS`].
pub trait Watches {
    /// A frame's first bit has left a port. `packet` stands for it until the hook's effects are carried out.
    fn on_egress(&mut self, node: &mut dyn Node, packet: PacketId, port: PortNo, fx: &mut Effects);
}

/// Lets packets of a class leave by rank. With [`super::Hooks::RANKS`].
pub trait Ranks {
    /// Rank of a packet among those of its class at a port: the smallest leaves first, of equal ones the first that came.
    fn rank(&self, envelope: &Envelope, shim: Option<&Shim>) -> u32;
}

/// Lets packets leave a queue to make room for others ([`Verdict::Displace`]).
pub trait Displaces {
    /// Decides about a packet of a queue that has made room for another. `for_detoured`: for one that was detoured there, so that
    /// this one cannot be.
    fn on_displaced(
        &mut self,
        node: &mut dyn Node,
        p: &mut Arrival<'_>,
        port: PortNo,
        for_detoured: bool,
        fx: &mut Effects,
    ) -> Verdict;
}

/// Sends messages that are forwarded as packets are ([`super::Effect::Clone`]).
pub trait Clones {
    /// A message that this mechanism sent was dropped at this switch.
    fn on_lost(&mut self, shim: &Shim, reason: DropReason);
}

/// Lets ports write telemetry into frames. With [`super::Hooks::SHIMS`].
pub trait Telemetry {
    /// Records that a frame may hold behind this switch.
    fn records(&self) -> usize;

    /// Adds room for the record of port `to`, by which a frame is to leave, to the header in the frame; false where it stays as it
    /// is. All that the mechanism's `on_route` does.
    fn stamp(&mut self, shim: &mut Shim, to: PortNo) -> bool;
}

/// Keeps largest values besides counters.
pub trait Peaks {
    /// Largest values so far, one for each of [`super::Profile::peaks`].
    fn peaks(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Port with the longest queue of the mechanism's own so far, and its bytes.
    fn longest_queue(&self) -> Option<(PortNo, Bytes)> {
        None
    }
}

/// Has a queue at each port whose packets overtake all others ([`Verdict::Express`], [`Turn::Express`]). With [`Sends`].
pub trait Overtakes {
    /// Room and weight of the express queue.
    fn express(&self) -> ExpressParams;

    /// True if a packet is for the express queue: it goes straight onto an idle wire, waits in that queue, or is dropped where
    /// that has no room. That is all that the mechanism's `on_offer` does.
    fn is_express(&self, envelope: &Envelope) -> bool;

    /// Largest frame of a packet for the express queue.
    fn largest(&self) -> u16;
}
