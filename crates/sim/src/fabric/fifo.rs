//! Kinds of FIFO ports: the path of a packet to its port is compiled for each.

use super::link::{flag, Link};
use super::port::{Found, Owner, Port};
use crate::core::Core;
use fanin_packet::PacketId;
use fanin_switch::{DropReason, Marker};
use std::collections::BTreeMap;

/// A kind of FIFO port: what its code has to do. The inner loop is compiled for each kind that has `FLAGS` of its own, and serves
/// ports of that kind in place; others take a call.
pub trait Fifo {
    /// What of [`flag::SPECIAL`] ports of this kind have.
    const FLAGS: u8;
    /// Any marking policy may decide, not only a threshold at enqueue.
    const POLICY: bool = false;
    /// With a share of the switch's buffer.
    const SHARED: bool = false;
    /// Something happens at dequeue.
    const DEQUEUES: bool = false;
    /// Arrivals are recorded.
    const WATCHED: bool = false;
    /// Express packets may stand in the ring before the others.
    const EXPRESS: bool = false;
    /// With classes: a FIFO port while packets of one class wait.
    const CLASSES: bool = false;
    /// Mechanisms see packets before they are offered, but for those that find their port idle: of these the port disposes alone.
    const OFFERED: bool = false;
    /// None is one: packets come to ports over a crossbar.
    const CROSSES: bool = false;

    /// The marking policy decides about a packet that finds the port so.
    ///
    /// # Errors
    /// With the reason why it drops it.
    #[inline(always)]
    fn mark(core: &mut Core, l: usize, found: Found, packet: PacketId) -> Result<bool, DropReason> {
        core.mark_by_policy::<{ Marker::ANY }>(l, found, packet)
    }
}

/// A threshold at enqueue, or nothing.
pub struct Plain;
impl Fifo for Plain {
    const FLAGS: u8 = 0;
}

/// A marking policy that is more than a threshold, mostly the one of number `N`.
pub struct ByPolicy<const N: u8>;
impl<const N: u8> Fifo for ByPolicy<N> {
    const FLAGS: u8 = flag::POLICY;
    const POLICY: bool = true;

    #[inline(always)]
    fn mark(core: &mut Core, l: usize, found: Found, packet: PacketId) -> Result<bool, DropReason> {
        core.mark_by_policy::<N>(l, found, packet)
    }
}

/// A policy, where mechanisms see packets that have to wait.
pub struct OfferedWaiting;
impl Fifo for OfferedWaiting {
    const FLAGS: u8 = flag::POLICY | flag::OFFERED;
    const POLICY: bool = true;
    const OFFERED: bool = true;
}

/// Something happens to packets that leave; no share of a buffer.
pub struct Dequeues;
impl Fifo for Dequeues {
    const FLAGS: u8 = flag::DEQUEUE;
    const POLICY: bool = true;
    const DEQUEUES: bool = true;
}

/// A share of the switch's buffer; nothing else happens to packets that leave.
pub struct Shared;
impl Fifo for Shared {
    const FLAGS: u8 = flag::DEQUEUE;
    const POLICY: bool = true;
    const SHARED: bool = true;
}

/// Classes, with a threshold at enqueue for the whole port, or nothing.
pub struct Classes;
impl Fifo for Classes {
    const FLAGS: u8 = flag::PIPELINE;
    const CLASSES: bool = true;
}

/// None: all switches are combined input- and output-queued ones, and the loop has their crossbars' events besides.
pub struct Crossing;
impl Fifo for Crossing {
    const FLAGS: u8 = flag::SPECIAL;
    const POLICY: bool = true;
    const SHARED: bool = true;
    const DEQUEUES: bool = true;
    const WATCHED: bool = true;
    const CROSSES: bool = true;
}

/// The kind of FIFO port that the inner loop serves in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FifoKind {
    Plain,
    /// With the number of the policy that most of them have.
    ByPolicy(u8),
    Dequeues,
    Shared,
    Classes,
    OfferedWaiting,
    /// Of no port: switches are combined input- and output-queued.
    Crossing,
}

impl FifoKind {
    /// That of most of the switches' ports. [`Dequeues`] and [`Shared`] have the same flags: where there are both, neither. `at_once`:
    /// a mechanism sees also packets that find their port idle, so that none is [`OfferedWaiting`].
    pub fn of_most<'a>(ports: impl Iterator<Item = (&'a Link, &'a Port)>, at_once: bool) -> FifoKind {
        let mut counts = [0_usize; 7];
        let mut policies = BTreeMap::<u8, usize>::new();
        for (link, port) in ports.filter(|(_, port)| matches!(port.owner, Owner::Switch(..))) {
            let kind = match (link.flags & flag::SPECIAL, port.admission.is_shared(), port.at_dequeue) {
                (Plain::FLAGS, ..) => 0,
                (flag::POLICY, ..) => 1,
                (Dequeues::FLAGS, false, _) => 2,
                (Shared::FLAGS, true, 0) => 3,
                (Shared::FLAGS, true, _) => 4,
                (Classes::FLAGS, ..) => 5,
                (OfferedWaiting::FLAGS, ..) if !at_once => 6,
                _ => continue,
            };
            counts[kind] += 1;
            *policies.entry(port.marker.number()).or_default() += usize::from(kind == 1);
        }
        let policy = policies.into_iter().max_by_key(|(_, n)| *n).map_or(Marker::ANY, |(policy, _)| policy);
        let [plain, by_policy, dequeues, shared, both, classes, waiting] = counts;
        let alone = |n: usize| if n == dequeues + shared + both { n } else { 0 };
        let kinds = [
            (FifoKind::Plain, plain),
            (FifoKind::ByPolicy(policy), by_policy),
            (FifoKind::Dequeues, alone(dequeues)),
            (FifoKind::Shared, alone(shared)),
            (FifoKind::Classes, classes),
            (FifoKind::OfferedWaiting, waiting),
        ];
        kinds.into_iter().rev().max_by_key(|(_, n)| *n).map_or(FifoKind::Plain, |(kind, _)| kind)
    }
}

/// Any.
pub struct Any;
impl Fifo for Any {
    const FLAGS: u8 = flag::SPECIAL;
    const POLICY: bool = true;
    const SHARED: bool = true;
    const DEQUEUES: bool = true;
    const WATCHED: bool = true;
    const EXPRESS: bool = true;
}
