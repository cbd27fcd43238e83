//! Hosts with a queue of their own in front of the wire, first in, first out: what may stand there, and what is not accepted.
//!
//! The queue is the link's ring; where it is bounded (`txqueuelen`, `small_queues`), what stands in it is kept here, packet by packet.
//! A burst (TSO) is one packet. Source: Linux pfifo_fast, tcp_small_queue_check.

use super::ends::{side, EndId};
use super::{Hosts, Ready};
use crate::core::Core;
use fanin_engine::Table;
use fanin_packet::{PacketId, Side};
use fanin_scenario::{Host as Params, Nic};
use fanin_switch::DropReason;
use fanin_telemetry::DropRow;
use fanin_transport::{Kinds, Refused, TransportConfig, TransportParams};
use fanin_units::{FlowId, LinkId, Time};
use std::collections::VecDeque;

/// What stands in hosts.
pub struct Standing {
    /// Packets that may wait.
    most: usize,
    hosts: Table<VecDeque<Standee>>,
}

/// A packet that stands in a host, or is on its wire.
struct Standee {
    /// When its first and its last bit leave \[ps\].
    starts: u64,
    leaves: u64,
    flow: FlowId,
    from: Side,
    /// Frame bytes of data; ACKs count for none.
    bytes: u32,
}

impl Standing {
    /// `None` where nothing bounds what stands in hosts.
    pub fn new(params: &Params, transports: &[(String, TransportConfig)], hosts: usize) -> Option<Box<Standing>> {
        let Nic::Fifo(nic) = &params.nic else { return None };
        let small = transports.iter().any(|(_, transport)| transport.keeps_queues_small());
        let most = nic.txqueuelen.map_or(usize::MAX, |most| most as usize);
        let queues = || (0..hosts).map(|_| VecDeque::new()).collect::<Vec<_>>().into();
        (small || nic.txqueuelen.is_some()).then(|| Box::new(Standing { most, hosts: queues() }))
    }
}

impl Hosts {
    /// Lets a NIC that is first in, first out take what is ready.
    #[inline(never)]
    pub(super) fn drive_fifo(&mut self, core: &mut Core, host: u32) {
        let nic = self.hosts[host as usize].nic;
        let mut held_back = Vec::new();
        while let Some(ready) = self.hosts[host as usize].ready.pop_front() {
            match ready {
                Ready::Packet(packet) => self.transmit_fifo(core, host, nic, packet),
                Ready::Turn(id) if self.is_held_back(core, host, id) => held_back.push(ready),
                Ready::Turn(id) => {
                    if self.turn_fifo(core, host, nic, id) {
                        held_back.push(ready);
                    }
                }
            }
        }
        if !held_back.is_empty() {
            self.hosts[host as usize].ready = held_back.into_iter().collect();
            self.wake(core, host, nic);
        }
    }

    /// The turn of an end that found nobody else waiting.
    #[inline(never)]
    pub(super) fn turn_fifo_at_once(&mut self, core: &mut Core, host: u32, nic: LinkId, id: EndId) {
        if self.turn_fifo(core, host, nic, id) {
            self.hosts[host as usize].ready.push_back(Ready::Turn(id));
        }
        self.run_nic(core, host);
    }

    /// Ends wait until something of theirs has left the host: the next departure is an event.
    fn wake(&mut self, core: &mut Core, host: u32, nic: LinkId) {
        let next = self.standing.as_deref().and_then(|standing| standing.hosts[host as usize].front());
        let state = &mut self.hosts[host as usize];
        if let (false, Some(next)) = (state.armed, next) {
            state.armed = true;
            core.wheel.set(nic.0, Time::from_ps(next.leaves));
        }
    }

    /// All that an end may send, burst by burst. True where more shall leave when something of it has left the host.
    pub(super) fn turn_fifo(&mut self, core: &mut Core, host: u32, nic: LinkId, id: EndId) -> bool {
        loop {
            if self.is_full(core, host) && self.refuse(core, nic, id) {
                break;
            }
            if !self.burst_fifo(core, host, nic, id) {
                break;
            }
            if self.is_held_back(core, host, id) {
                self.ends[id].queued = true;
                self.arm(core, id, host);
                return true;
            }
        }
        self.after_turn(core, host, id);
        false
    }

    /// One burst of an end. False when there is nothing to send.
    fn burst_fifo(&mut self, core: &mut Core, host: u32, nic: LinkId, id: EndId) -> bool {
        let end = &self.ends[id];
        let limit = end.protocol.burst(&end.params, core.now);
        let (mut payload, mut bytes) = (0, 0);
        let starts = core.links[nic].free_at.max(core.now.ps());
        let full = self.is_full(core, host); // datagrams
        while let Some(packet) = self.next_packet(core, id, Kinds::DATA) {
            payload += u64::from(core.pool[packet].payload);
            if full {
                drop_at_host(core, nic, packet);
            } else {
                self.transmit(core, host, nic, packet);
                bytes += u32::from(core.pool[packet].frame);
            }
            if payload >= limit {
                break;
            }
        }
        let flow = self.ends[id].flow();
        if bytes > 0 && self.standing.is_some() {
            self.ends[id].standing += bytes;
            self.stands(core, host, nic, Standee { starts, leaves: 0, flow, from: side(id), bytes });
        }
        payload > 0
    }

    /// A packet that is made already joins the queue.
    fn transmit_fifo(&mut self, core: &mut Core, host: u32, nic: LinkId, packet: PacketId) {
        if self.is_full(core, host) {
            return drop_at_host(core, nic, packet);
        }
        let starts = core.links[nic].free_at.max(core.now.ps());
        let (flow, to) = (core.pool[packet].flow, core.pool[packet].to);
        self.transmit(core, host, nic, packet);
        self.stands(core, host, nic, Standee { starts, leaves: 0, flow, from: to.other(), bytes: 0 });
    }

    /// The last packet given to the NIC stands in the host from now on.
    fn stands(&mut self, core: &Core, host: u32, nic: LinkId, standee: Standee) {
        if let Some(standing) = self.standing.as_deref_mut() {
            standing.hosts[host as usize].push_back(Standee { leaves: core.links[nic].free_at, ..standee });
        }
    }

    /// Takes out what has left a host.
    fn catch_up_standing(&mut self, now: Time, host: u32) {
        let Some(standing) = self.standing.as_deref_mut() else { return };
        let queue = &mut standing.hosts[host as usize];
        while queue.front().is_some_and(|standee| standee.leaves <= now.ps()) {
            let Some(gone) = queue.pop_front() else { break };
            if gone.bytes == 0 {
                continue;
            }
            if let Some(id) = self.ends.of(gone.flow, gone.from) {
                self.ends[id].standing -= gone.bytes;
            }
        }
    }

    /// Whether a host's queue takes nothing more.
    fn is_full(&mut self, core: &Core, host: u32) -> bool {
        if self.standing.as_deref().is_none_or(|standing| standing.most == usize::MAX) {
            return false;
        }
        self.catch_up_standing(core.now, host);
        self.standing.as_deref().is_some_and(|standing| {
            let queue = &standing.hosts[host as usize];
            let on_the_wire = queue.front().is_some_and(|standee| standee.starts <= core.now.ps());
            queue.len() - usize::from(on_the_wire) >= standing.most
        })
    }

    /// Whether so much of an end stands in its host that it shall send no more.
    fn is_held_back(&mut self, core: &Core, host: u32, id: EndId) -> bool {
        if self.standing.is_none() {
            return false;
        }
        self.catch_up_standing(core.now, host);
        let end = &self.ends[id];
        end.standing > 0 && u64::from(end.standing) > end.protocol.output_limit(&end.params, core.now) && self.has_data(core, id)
    }

    /// A full queue does not accept the data of an end, which keeps it; false where it has none, or does not notice.
    fn refuse(&mut self, core: &mut Core, nic: LinkId, id: EndId) -> bool {
        let end = &mut self.ends[id];
        let cfg = &end.params;
        let Some(refused) = end.protocol.on_refusal(cfg, core.now) else { return false };
        let Refused { number, header, payload } = refused;
        let flow = end.flow();
        core.catch_up(nic);
        let row = DropRow {
            time_ps: core.now.ps(),
            port: core.ports[nic].name.clone(),
            flow: flow.0,
            frame_bytes: self.framing.frame(header + payload),
            payload_bytes: payload,
            seq: number,
            reason: DropReason::TXQUEUE_FULL.name().into(),
            queue_bytes: core.queue(nic).0,
        };
        core.ports[nic].drops += 1;
        core.ledger.totals.sent += 1;
        core.ledger.totals.dropped += 1;
        let result = core.ledger.tables.drop(row, DropReason::TXQUEUE_FULL);
        core.check(result);
        true
    }
}

/// An ACK or a datagram that a full queue does not accept is lost.
fn drop_at_host(core: &mut Core, nic: LinkId, packet: PacketId) {
    core.ledger.totals.sent += 1;
    core.ports[nic].drops += 1;
    core.catch_up(nic);
    let (queue_bytes, _) = core.queue(nic);
    let (dropped, port) = (core.pool.packet(packet), core.ports[nic].name.clone());
    core.record_drop(packet, &dropped, DropReason::TXQUEUE_FULL, port, queue_bytes);
    core.pool.free(packet);
}
