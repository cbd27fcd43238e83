//! Queueing disciplines of NICs: the packets that a NIC takes from the ends of its host, and the times.
//!
//! A NIC that pulls takes one packet or burst each time its wire is free, from each end in turn. A NIC that is first, in first out, takes all
//! at once, as far as its queue and TCP small queues let it. Pauses are no discipline but a state of the [`Host`](super::Host): what is ready
//! of a paused class waits apart.

use super::follow::observe_sent;
use super::header::Headers;
use super::protocol::Protocol;
use super::tx_queue::{Queued, TxQueue};
use crate::core::Core;
use fanin_packet::{PacketId, Side};
use fanin_units::{FlowId, HostId, LinkId, Time};

/// Queueing discipline of a NIC.
pub trait Discipline {
    /// True if the NIC accepts packets while its wire is busy.
    const QUEUES: bool;

    /// A packet of an end goes to the NIC.
    fn on_transmit(&mut self, core: &mut Core, host: HostId, nic: LinkId, packet: PacketId, end: &impl Protocol);

    /// True if the NIC's queue accepts nothing more.
    fn is_full(&mut self, _now: Time) -> bool {
        false
    }

    /// Bytes of an end's data in the NIC's queue, where these are counted.
    fn bytes_of(&mut self, _now: Time, _end: (FlowId, Side)) -> u32 {
        0
    }

    /// Records that a packet or burst has joined the NIC's queue.
    fn join(&mut self, _queued: Queued) {}
}

/// A NIC that pulls, with nothing put into frames or observed there.
pub struct Pull;

impl Discipline for Pull {
    const QUEUES: bool = false;

    #[inline(always)]
    fn on_transmit(&mut self, _core: &mut Core, _host: HostId, _nic: LinkId, _packet: PacketId, _end: &impl Protocol) {}
}

/// A NIC that is first, in first out.
pub struct Fifo<'a>(pub &'a mut TxQueue);

impl Discipline for Fifo<'_> {
    const QUEUES: bool = true;

    fn on_transmit(&mut self, _core: &mut Core, _host: HostId, _nic: LinkId, _packet: PacketId, _end: &impl Protocol) {}

    fn is_full(&mut self, now: Time) -> bool {
        self.0.is_full(now)
    }

    fn bytes_of(&mut self, now: Time, end: (FlowId, Side)) -> u32 {
        self.0.bytes_of(now, end)
    }

    fn join(&mut self, queued: Queued) {
        self.0.join(queued);
    }
}

/// A NIC of either kind at which headers are put into frames, or packets are observed.
pub struct Tapped<'a, D> {
    pub nic: D,
    pub headers: Option<&'a mut Headers>,
    /// Bytes that the end has to send in all, for the headers that hosts write.
    pub size: u64,
}

impl<D: Discipline> Discipline for Tapped<'_, D> {
    const QUEUES: bool = D::QUEUES;

    fn on_transmit(&mut self, core: &mut Core, host: HostId, nic: LinkId, packet: PacketId, end: &impl Protocol) {
        if let Some(headers) = self.headers.as_deref_mut() {
            headers.put(core, packet, self.size);
        }
        if core.ledger.observed {
            let now = core.now;
            observe_sent(core, host, nic, packet, || Some(end.seen(now)));
        }
    }

    fn is_full(&mut self, now: Time) -> bool {
        self.nic.is_full(now)
    }

    fn bytes_of(&mut self, now: Time, end: (FlowId, Side)) -> u32 {
        self.nic.bytes_of(now, end)
    }

    fn join(&mut self, queued: Queued) {
        self.nic.join(queued);
    }
}
