//! Prefetching: memory that the next events need is fetched ahead of them, in steps, each a few events after the one it depends
//! on. In large networks a hop is memory latency, and the wheel knows the next events. A step keeps its findings about an event
//! in the event's note.
//!
//! | events ahead | arrival at a switch | at a host | departure at a switch | at a host |
//! |---|---|---|---|---|
//! | 10 | link and ring | link and ring | link and ring, port | link and ring, port |
//! | 7 | packet | packet | its queues | host |
//! | 5 | outgoing link and ring, port | end, host, header | the queue of the first class | end |
//! | 3 | | what the end keeps apart, NIC | its front | what the end keeps apart, NIC |
//! | 1 | queues, what mechanisms keep | the same of what it keeps | packet, what mechanisms keep | the same of what it keeps |
//!
//! By which link a packet leaves a switch is its source route ([`Route`](crate::core::route::Route)) where it has one; for others
//! tables are asked, where they alone decide.
//!
//! An arrival after which its sender, a host, has its next turn: that host with the packet, and the end whose turn it is with the
//! outgoing link. Nearly all events are arrivals: only their steps are part of the inner loop, and each instruction in them is one for each hop. A ring
//! that has outgrown its place beside the link ([`links`]) is not fetched: four entries in a row share a line.

use super::World;
use crate::core::link::{flag, FarEnd, Link};
use crate::core::links;
use crate::core::pool::{Outer, Pool};
use crate::core::port::{Owner, Port};
use crate::fabric::Fabric;
use crate::hosts::ends::EndId;
use crate::hosts::{Hosts, NO_HOST};
use fanin_engine::{Due, Items};
use fanin_packet::PacketId;
use fanin_units::{prefetch, prefetch_lines, LinkId};

/// Flags in an event's note: the rest is an end, or the link by which a packet leaves. Without one the note is a packet's place + 1, or
/// nothing. Places are below 2^30: as many packets take 128 GiB.
const END: u32 = 1 << 31;
const OUT: u32 = 1 << 30;

/// The packet of a note that has one.
#[inline(always)]
fn packet(note: u32) -> Option<PacketId> {
    let packet = note.wrapping_sub(1);
    (packet < OUT - 1).then_some(PacketId(packet))
}

/// The link of a note that has one.
#[inline(always)]
fn out(note: u32) -> Option<LinkId> {
    (note & (END | OUT) == OUT).then_some(LinkId(note & !OUT))
}

/// The end of a note that has one.
#[inline(always)]
fn end(note: u32) -> Option<EndId> {
    (note & END != 0).then_some(EndId(note & !END))
}

/// Cache lines of a port that a packet needs if the port has a policy or mechanisms.
const PORT: usize = 3;

/// Events ahead of the present one at which the first step is taken.
const FIRST: usize = 10;

/// Tables that prefetching reads.
#[derive(Clone, Copy)]
struct Tables<'a> {
    arrivals: usize,
    links: links::Items<'a>,
    ports: Items<'a, Port, LinkId>,
    packets: Items<'a, Outer>,
    pool: &'a Pool,
    fabric: &'a Fabric,
    hosts: &'a Hosts,
}

impl World {
    /// Fetches what the events after the present one need.
    #[inline(always)]
    pub(crate) fn prefetch(&mut self) {
        let (known, tables) = self.known_and_tables();
        // One comparison for all steps: seldom are fewer events known.
        let Some(known) = known.first_chunk_mut::<{ FIRST + 1 }>() else { return self.prefetch_few() };
        tables.link(&known[FIRST]);
        tables.ring(&known[8]);
        tables.packet(&mut known[7]);
        tables.way(&mut known[5]);
        tables.apart(&known[3]);
        tables.rest(&known[1]);
    }

    #[inline(always)]
    fn known_and_tables(&mut self) -> (&mut [Due], Tables<'_>) {
        let core = &mut self.core;
        let tables = Tables {
            arrivals: core.arrivals,
            links: core.links.items(),
            ports: core.ports.items(),
            packets: core.pool.items(),
            pool: &core.pool,
            fabric: &self.fabric,
            hosts: &self.hosts,
        };
        (core.wheel.known(), tables)
    }

    /// Takes all steps but the first, where fewer events are known than the first needs.
    #[inline(never)]
    fn prefetch_few(&mut self) {
        let (known, tables) = self.known_and_tables();
        for (ahead, due) in known.iter_mut().enumerate() {
            match ahead {
                8 => tables.ring(due),
                7 => tables.packet(due),
                5 => tables.way(due),
                3 => tables.apart(due),
                1 => tables.rest(due),
                _ => {}
            }
        }
    }
}

/// The steps of prefetching. None is a call that takes the tables: they stay in registers.
impl Tables<'_> {
    #[inline(always)]
    fn is_arrival(&self, due: &Due) -> bool {
        due.slot as usize >= self.arrivals
    }

    /// The link of an arrival.
    #[inline(always)]
    fn of_arrival(&self, due: &Due) -> LinkId {
        LinkId(due.slot - self.arrivals as u32)
    }

    #[inline(always)]
    fn link(&self, due: &Due) {
        let slot = LinkId(due.slot);
        if self.is_arrival(due) {
            self.links.prefetch(self.of_arrival(due));
        } else {
            self.links.prefetch(slot);
            prefetch_lines::<2, _>(self.ports.address(slot));
        }
    }

    /// Fetches the next entry of a ring that has moved away from its link: long or fast wires need such, and lossless networks
    /// have them.
    #[inline(always)]
    fn ring(&self, due: &Due) {
        if self.fabric.general && self.is_arrival(due) {
            self.links.at(self.of_arrival(due)).prefetch_long_ring(self.links.rings);
        }
    }

    #[inline(always)]
    fn packet(&self, due: &mut Due) {
        if !self.is_arrival(due) {
            return owner_of(self.ports, self.hosts, LinkId(due.slot));
        }
        let link = self.links.at(self.of_arrival(due));
        let packet = link.front(self.links.rings).packet;
        due.note = packet.0 + 1;
        prefetch(self.packets.address(packet.index()));
        if self.fabric.general && link.has_departed_unnoted() {
            prefetch_lines::<PORT, _>(self.ports.address(self.of_arrival(due)));
            self.pool.prefetch_leaving(packet);
        }
        if link.is_hooked_or_followed() {
            if link.has_ingress_hook() {
                self.pool.prefetch_shim(packet);
            }
            if link.is_followed() {
                self.sender(self.of_arrival(due));
            }
        }
    }

    #[inline(always)]
    fn way(&self, due: &mut Due) {
        // Those without are departures, or ends: an event that another was put before is here twice.
        let Some(packet) = packet(due.note) else { return self.departure(due) };
        let via = self.of_arrival(due);
        let link = self.links.at(via);
        let outer = self.packets.at(packet.index());
        if !link.leads_to_a_host_or_is_followed() {
            return self.out(due, link, (outer, packet), via);
        }
        if link.is_followed() {
            self.sender_next(via);
        }
        match link.far_end() {
            FarEnd::Switch(_) => self.out(due, link, (outer, packet), via),
            FarEnd::Host(host) => {
                prefetch(self.pool.header(packet));
                prefetch(&self.hosts.hosts[host]);
                due.note = self.hosts.ends.prefetch(outer.envelope.flow, outer.envelope.to).map_or(0, |id| id.0 | END);
            }
        }
    }

    /// Fetches the outgoing link of a packet. Where ports are off the fast path later steps need more of that link, and find it in
    /// the note: to find it again in each was a sixth of all fetching.
    #[inline(always)]
    fn out(&self, due: &mut Due, link: &Link, (outer, packet): (&Outer, PacketId), via: LinkId) {
        let next = match outer.next(via) {
            Some(next) => next,
            None => match by_tables(self.fabric, link, outer) {
                Some(next) => next,
                None => return,
            },
        };
        self.links.prefetch(next);
        if self.fabric.general {
            prefetch_lines::<PORT, _>(self.ports.address(next));
            self.pool.prefetch_note(packet);
            due.note = OUT | next.0;
        }
    }

    /// Fetches memory that an end keeps apart, and its route; at a port, the front of its queue.
    #[inline(always)]
    fn apart(&self, due: &Due) {
        if let Some(id) = end(due.note) {
            if let Some(host) = self.hosts.ends.prefetch_apart(id, 0) {
                self.links.prefetch(self.hosts.hosts[host].nic);
            }
        } else if due.note == 0 && !self.is_arrival(due) {
            front_of(self.ports, LinkId(due.slot));
        } else if self.fabric.general {
            self.queues(due);
        }
    }

    /// Fetches the queues of the port off the fast path that a packet is about to join, or the packets that leave its ring before
    /// that.
    #[inline(always)]
    fn queues(&self, due: &Due) {
        let Some(next) = out(due.note) else { return };
        let (via, out) = (self.of_arrival(due), self.links.at(next));
        if out.flags & flag::GENERAL == 0 {
            if out.flags & flag::DEQUEUE != 0 {
                out.prefetch_leaving(self.links.rings);
            }
        } else if out.is_followed() || out.free_at > due.time().ps() {
            self.ports.at(next).prefetch_queues();
        }
        if self.links.at(via).is_followed() && self.hosts.feeders[via] == NO_HOST {
            self.ports.at(via).prefetch_next();
        }
    }

    #[inline(always)]
    fn rest(&self, due: &Due) {
        if let Some(id) = end(due.note) {
            self.hosts.ends.prefetch_apart(id, 1);
        } else if due.note == 0 && !self.is_arrival(due) {
            next_of(self.ports, self.pool, self.fabric, LinkId(due.slot));
        } else if self.fabric.general {
            self.before_queue(due);
        }
    }

    /// Fetches what mechanisms need of a packet that is about to join a queue off the fast path.
    #[inline(always)]
    fn before_queue(&self, due: &Due) {
        let Some(next) = out(due.note) else { return };
        let (via, out) = (self.of_arrival(due), self.links.at(next));
        let flags = out.flags;
        if flags & (flag::GENERAL | flag::DEQUEUE) == flag::DEQUEUE {
            if let Some(leaving) = out.next_to_leave(self.links.rings) {
                self.pool.prefetch_leaving(leaving);
            }
        }
        if flags & (flag::GENERAL | flag::MECHANISMS) == 0 || !out.is_followed() && out.free_at <= due.time().ps() {
            return;
        }
        let port = self.ports.at(next);
        if flags & flag::GENERAL != 0 {
            port.prefetch_next();
        }
        if let (Owner::Switch(s, to), true) = (port.owner, flags & flag::MECHANISMS != 0) {
            self.fabric.switches[s].prefetch_kept(Some(self.fabric.ingress[via]), to);
        }
    }

    /// The sender of a link goes on.
    #[inline(always)]
    fn sender(&self, l: LinkId) {
        match self.hosts.feeders[l] {
            NO_HOST => prefetch_lines::<PORT, _>(self.ports.address(l)),
            host => prefetch(&self.hosts.hosts[host]),
        }
    }

    /// The end or the queue with which the sender of a link goes on.
    #[inline(always)]
    fn sender_next(&self, l: LinkId) {
        match self.hosts.feeders[l] {
            NO_HOST => self.ports.at(l).prefetch_queues(),
            host => drop(self.hosts.prefetch_next(host)),
        }
    }

    #[inline(always)]
    fn departure(&self, due: &mut Due) {
        if due.note == 0 && !self.is_arrival(due) {
            due.note = queue_or_turn(self.ports, self.hosts, LinkId(due.slot));
        }
    }
}

/// Link by which a packet without a source route leaves the switch that `link` leads to, where tables alone decide.
#[inline(never)]
fn by_tables(fabric: &Fabric, link: &Link, outer: &Outer) -> Option<LinkId> {
    let FarEnd::Switch(s) = link.far_end() else { return None };
    fabric.foresee(s, outer.envelope.dst, outer.envelope.hash)
}

/// Fetches the owner of a port that has a departure: later steps are calls, and take little.
#[inline(never)]
fn owner_of(ports: Items<'_, Port, LinkId>, hosts: &Hosts, l: LinkId) {
    let port = ports.at(l);
    match port.owner {
        Owner::Host(host) => prefetch(&hosts.hosts[host]),
        Owner::Switch(..) => port.prefetch_queues(),
    }
}

/// Gives the note of the event.
#[inline(never)]
fn queue_or_turn(ports: Items<'_, Port, LinkId>, hosts: &Hosts, l: LinkId) -> u32 {
    let port = ports.at(l);
    match port.owner {
        Owner::Host(host) => hosts.prefetch_next(host).map_or(0, |id| id.0 | END),
        Owner::Switch(..) => {
            port.prefetch_next();
            0
        }
    }
}

#[inline(never)]
fn front_of(ports: Items<'_, Port, LinkId>, l: LinkId) {
    ports.at(l).prefetch_next();
}

/// Fetches the packet that is about to leave a port, with the state that mechanisms keep of it.
#[inline(never)]
fn next_of(ports: Items<'_, Port, LinkId>, pool: &Pool, fabric: &Fabric, l: LinkId) {
    let port = ports.at(l);
    if let (Some(packet), Owner::Switch(s, no)) = (port.next(), port.owner) {
        pool.prefetch_all(packet);
        pool.prefetch_note(packet);
        fabric.switches[s].prefetch_kept(None, no);
    }
}
