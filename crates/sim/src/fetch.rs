//! What the next events need is fetched ahead of them, in steps, each a few events after the one it depends on. In large networks a
//! hop is memory latency, and the wheel knows what is next. What a step finds out about an event is kept in its note.
//!
//! | events ahead | arrival at a switch | at a host | departure at a switch | at a host |
//! |---|---|---|---|---|
//! | 10 | link and ring | link and ring | link and ring, port | link and ring, port |
//! | 7 | packet | packet | its queues | host |
//! | 5 | table entry | end, host, header | the queue of the first class | |
//! | 4 | | | its front | end |
//! | 3 | outgoing link and ring, port | what the end keeps apart | packet | the same |
//! | 1 | queues, what mechanisms keep | the same of that, NIC | what mechanisms keep | the same of that |
//!
//! An arrival after which its sender, a host, has its next turn: that host with the packet, and the end whose turn it is with the table
//! entry. Nearly all events are arrivals: only their steps are part of the inner loop, and each instruction in them is one for each hop. A ring
//! that has outgrown its place beside the link ([`links`]) is not fetched: four entries in a row share a line.

use crate::fabric::fifo::Fifo;
use crate::fabric::link::{prefetch, prefetch_lines, FarEnd};
use crate::fabric::links;
use crate::fabric::pool::Pool;
use crate::fabric::port::{Owner, Port};
use crate::fabric::Fabric;
use crate::hosts::ends::EndId;
use crate::hosts::Hosts;
use crate::world::World;
use fanin_engine::{Due, Items};
use fanin_packet::{Envelope, PacketId};

/// In an event's note: the rest is the link by which the packet will leave, or an end. Without them the note is a packet's place + 1.
const OUT: u32 = 1 << 31;
const END: u32 = 1 << 30;

/// The link by which a packet leaves, if that is known ahead.
#[inline(always)]
pub fn outgoing(due: &Due) -> Option<u32> {
    (due.note & OUT != 0).then_some(due.note & !OUT)
}

/// The packet of a note that has one.
#[inline(always)]
fn packet(note: u32) -> Option<PacketId> {
    let packet = note.wrapping_sub(1);
    (packet < END - 1).then_some(packet)
}

/// The end of a note that has one.
#[inline(always)]
fn end(note: u32) -> Option<EndId> {
    (note & (OUT | END) == END).then_some(note & !END)
}

/// So many events ahead is the first step.
const FIRST: usize = 10;

/// All that is looked at on the way.
#[derive(Clone, Copy)]
struct Tables<'a> {
    arrivals: usize,
    links: links::Items<'a>,
    ports: Items<'a, Port>,
    envelopes: Items<'a, Envelope>,
    pool: &'a Pool,
    fabric: &'a Fabric,
    hosts: &'a Hosts,
}

impl World {
    /// Fetches what the events after the present one need.
    #[inline(always)]
    pub(crate) fn prefetch<K: Fifo>(&mut self) {
        let (known, tables) = self.known_and_tables();
        // One comparison for all steps: seldom are fewer events known.
        let Some(known) = known.first_chunk_mut::<{ FIRST + 1 }>() else { return self.prefetch_few::<K>() };
        tables.link(&known[FIRST]);
        tables.packet(&mut known[7]);
        tables.way(&mut known[5]);
        tables.front(&mut known[4]);
        tables.out::<K>(&mut known[3]);
        tables.rest(&known[1]);
    }

    #[inline(always)]
    fn known_and_tables(&mut self) -> (&mut [Due], Tables<'_>) {
        let core = &mut self.core;
        let tables = Tables {
            arrivals: core.arrivals,
            links: core.links.items(),
            ports: core.ports.items(),
            envelopes: core.pool.items(),
            pool: &core.pool,
            fabric: &self.fabric,
            hosts: &self.hosts,
        };
        (core.wheel.known(), tables)
    }

    /// All steps but the first, where fewer events are known than that is ahead.
    #[inline(never)]
    fn prefetch_few<K: Fifo>(&mut self) {
        let (known, tables) = self.known_and_tables();
        for (ahead, due) in known.iter_mut().enumerate() {
            match ahead {
                7 => tables.packet(due),
                5 => tables.way(due),
                4 => tables.front(due),
                3 => tables.out::<K>(due),
                1 => tables.rest(due),
                _ => {}
            }
        }
    }
}

/// None of this is a call that takes the tables: they stay in registers.
impl Tables<'_> {
    #[inline(always)]
    fn is_arrival(&self, due: &Due) -> bool {
        due.slot as usize >= self.arrivals
    }

    /// The link of an arrival.
    #[inline(always)]
    fn of_arrival(&self, due: &Due) -> usize {
        due.slot as usize - self.arrivals
    }

    #[inline(always)]
    fn link(&self, due: &Due) {
        let slot = due.slot as usize;
        if self.is_arrival(due) {
            self.links.prefetch(self.of_arrival(due));
        } else {
            self.links.prefetch(slot);
            prefetch_lines::<2, _>(self.ports.address(slot));
        }
    }

    #[inline(always)]
    fn packet(&self, due: &mut Due) {
        if !self.is_arrival(due) {
            return self.owner_of(due.slot as usize);
        }
        let link = self.links.at(self.of_arrival(due));
        let packet = link.front(self.links.rings).packet;
        due.note = packet + 1;
        prefetch(self.envelopes.address(packet as usize));
        if link.has_ingress_hook() {
            self.pool.prefetch_shim(packet);
        }
        if link.is_followed() {
            prefetch(&self.hosts.hosts[self.hosts.feeders[self.of_arrival(due)] as usize]);
        }
    }

    #[inline(always)]
    fn way(&self, due: &mut Due) {
        if !self.is_arrival(due) {
            return self.ports.at(due.slot as usize).prefetch_queue();
        }
        let Some(packet) = packet(due.note) else { return };
        let envelope = self.envelopes.at(packet as usize);
        let link = self.links.at(self.of_arrival(due));
        if link.is_followed() {
            self.hosts.prefetch_turn(self.hosts.feeders[self.of_arrival(due)]);
        }
        match link.far_end() {
            FarEnd::Switch(s) => self.fabric.fib.prefetch(s, envelope.dst),
            FarEnd::Host(host) => {
                prefetch(self.pool.header(packet));
                prefetch(&self.hosts.hosts[host as usize]);
                // Once only: an event that another was put before is here twice.
                due.note = self.hosts.ends.prefetch(envelope.flow, envelope.to).map_or(0, |id| id | END);
            }
        }
    }

    #[inline(always)]
    fn out<K: Fifo>(&self, due: &mut Due) {
        if !self.is_arrival(due) {
            return self.next_of(due);
        }
        let Some(packet) = packet(due.note) else { return self.kept_apart(due) };
        due.note = 0; // once only here, too
        let link = self.links.at(self.of_arrival(due));
        let FarEnd::Switch(s) = link.far_end() else { return };
        let envelope = self.envelopes.at(packet as usize);
        if let Some(next) = self.fabric.switches[s as usize].foresee(&self.fabric.fib, s, envelope) {
            due.note = next | OUT;
            self.links.prefetch(next as usize);
            if K::POLICY || link.has_ingress_hook() {
                prefetch_lines::<3, _>(self.ports.address(next as usize));
            }
        }
    }

    /// What an end keeps apart, if the note has one.
    #[inline(always)]
    fn kept_apart(&self, due: &Due) {
        if let Some(id) = end(due.note) {
            self.hosts.ends.prefetch_apart(id, 0);
        }
    }

    #[inline(always)]
    fn rest(&self, due: &Due) {
        if let Some(id) = end(due.note) {
            if let Some(host) = self.hosts.ends.prefetch_apart(id, 1) {
                self.links.prefetch(self.hosts.hosts[host as usize].nic as usize);
            }
        } else if self.fabric.offered_up_to > 0 {
            self.before_mechanisms(due);
        }
    }

    /// Mechanisms are about to see a packet: one that is offered to a port, or leaves it.
    #[inline(always)]
    fn before_mechanisms(&self, due: &Due) {
        let slot = due.slot as usize;
        if let Some(next) = outgoing(due) {
            if self.links.at(next as usize).is_offered(due.time()) {
                self.before_offer(slot - self.arrivals, next as usize);
            }
        } else if slot < self.arrivals {
            if let (Some(packet), Owner::Switch(s, port)) = (packet(due.note), self.ports.at(slot).owner) {
                self.fabric.switches[s as usize].prefetch_kept(packet, None, port);
            }
        }
    }

    /// A packet that came over link `via` is about to be offered to port `l`, where mechanisms see it before.
    #[inline(always)]
    fn before_offer(&self, via: usize, l: usize) {
        let port = self.ports.at(l);
        if let Owner::Switch(s, to) = port.owner {
            port.prefetch_queues();
            let packet = self.links.at(via).front(self.links.rings).packet;
            self.fabric.switches[s as usize].prefetch_kept(packet, Some(self.fabric.ingress[via]), to);
        }
    }
}

/// Steps of departures.
impl Tables<'_> {
    #[inline(always)]
    fn owner_of(&self, l: usize) {
        let port = self.ports.at(l);
        match port.owner {
            Owner::Host(host) => prefetch(&self.hosts.hosts[host as usize]),
            Owner::Switch(..) => port.prefetch_queues(),
        }
    }

    #[inline(always)]
    fn front(&self, due: &mut Due) {
        if self.is_arrival(due) {
            return;
        }
        let port = self.ports.at(due.slot as usize);
        match port.owner {
            Owner::Host(host) => due.note = self.hosts.prefetch_turn(host).map_or(0, |id| id | END),
            Owner::Switch(..) => port.prefetch_next(),
        }
    }

    #[inline(always)]
    fn next_of(&self, due: &mut Due) {
        if due.note != 0 {
            self.kept_apart(due);
        } else if let Some(packet) = self.ports.at(due.slot as usize).next() {
            due.note = packet + 1;
            self.pool.prefetch_all(packet);
        }
    }
}
