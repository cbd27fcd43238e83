//! Queues of hosts in front of the wire, first in, first out: their limits, and packets that are not accepted.
//!
//! The queue is the link's ring; where it is bounded (`txqueuelen`, `small_queues`), what stands in it is kept here, packet by packet.
//! A burst (TSO) is one packet. Source: Linux pfifo_fast, tcp_small_queue_check.

use crate::core::Core;
use fanin_engine::Table;
use fanin_packet::{PacketId, Side};
use fanin_scenario::{Host as Params, Nic};
use fanin_switch::DropReason;
use fanin_transport::{TransportConfig, TransportParams};
use fanin_units::{FlowId, HostId, LinkId, Time};
use std::collections::{BTreeMap, VecDeque};

/// Transmit queue of a host.
#[derive(Clone, Debug)]
pub struct TxQueue {
    /// True if the queue is bounded: only then are its packets known.
    bounded: bool,
    /// Largest number of packets that may wait.
    most: usize,
    packets: VecDeque<Queued>,
    /// Bytes of data, by end.
    bytes: BTreeMap<(FlowId, Side), u32>,
}

/// A packet or burst in a host's queue, or on its wire.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    /// Time at which the first bit leaves \[ps\].
    pub starts: u64,
    /// Time at which the last bit leaves \[ps\].
    pub leaves: u64,
    /// End that sends the packet.
    pub end: (FlowId, Side),
    /// Frame bytes of data; ACKs count for none.
    pub bytes: u32,
}

impl TxQueue {
    /// The queues of all hosts; `None` where NICs pull.
    pub fn of_hosts(params: &Params, transports: &[(String, TransportConfig)], hosts: usize) -> Option<Table<TxQueue, HostId>> {
        let Nic::Fifo(nic) = &params.nic else { return None };
        let small = transports.iter().any(|(_, transport)| transport.keeps_queues_small());
        let queue = TxQueue {
            bounded: small || nic.txqueuelen.is_some(),
            most: nic.txqueuelen.map_or(usize::MAX, |most| most as usize),
            packets: VecDeque::new(),
            bytes: BTreeMap::new(),
        };
        Some(vec![queue; hosts].into())
    }

    /// True where the queue takes nothing more.
    pub fn is_full(&mut self, now: Time) -> bool {
        if self.most == usize::MAX {
            return false;
        }
        self.catch_up(now);
        let on_the_wire = self.packets.front().is_some_and(|queued| queued.starts <= now.ps());
        self.packets.len() - usize::from(on_the_wire) >= self.most
    }

    /// Bytes of an end's data that stand in the queue; zero where the queue is not bounded.
    pub fn bytes_of(&mut self, now: Time, end: (FlowId, Side)) -> u32 {
        self.catch_up(now);
        self.bytes.get(&end).copied().unwrap_or(0)
    }

    /// Appends a packet or burst to the queue.
    pub fn join(&mut self, queued: Queued) {
        if self.bounded {
            self.packets.push_back(queued);
            if queued.bytes > 0 {
                *self.bytes.entry(queued.end).or_default() += queued.bytes;
            }
        }
    }

    /// Time at which the next packet has left the queue.
    pub fn next_departure(&self) -> Option<Time> {
        self.packets.front().map(|queued| Time::from_ps(queued.leaves))
    }

    /// Takes out packets that have left.
    fn catch_up(&mut self, now: Time) {
        while self.packets.front().is_some_and(|queued| queued.leaves <= now.ps()) {
            let Some(gone) = self.packets.pop_front() else { break };
            if let Some(bytes) = self.bytes.get_mut(&gone.end) {
                *bytes -= gone.bytes;
                if *bytes == 0 {
                    self.bytes.remove(&gone.end);
                }
            }
        }
    }
}

/// An ACK or a datagram that a full queue does not accept is lost.
pub fn drop_at_host(core: &mut Core, nic: LinkId, packet: PacketId) {
    core.ledger.totals.sent += 1;
    core.ports[nic].drops += 1;
    core.catch_up(nic);
    let (queue_bytes, _) = core.queue(nic);
    let (dropped, port) = (core.pool.packet(packet), core.ports[nic].name.clone());
    core.record_drop(packet, &dropped, DropReason::TXQUEUE_FULL, port, queue_bytes);
    core.pool.free(packet);
}
