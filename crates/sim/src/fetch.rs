//! What the next events need is fetched ahead of them, in steps, each a few events after the one it depends on. In large networks a
//! hop is memory latency, and the wheel knows what is next. What a step finds out about an event is kept in its note.
//!
//! | events ahead | arrival at a switch | at a host | departure at a switch | at a host |
//! |---|---|---|---|---|
//! | 10 | link | link | link, port | link, port |
//! | 7 | ring entry | ring entry | its queues | host |
//! | 5 | packet | packet | the queue of the first class | ring, ready list |
//! | 4 | table entry | end, host, header | its front | end |
//! | 3 | outgoing link and port | what the end keeps apart | packet | the same |
//! | 1 | ring, queues, what mechanisms keep | the same of that, NIC | what mechanisms keep | the same of that |

use crate::fabric::fifo::Fifo;
use crate::fabric::link::{prefetch, prefetch_lines, FarEnd, Link, RingEntries};
use crate::fabric::pool::Pool;
use crate::fabric::port::{Owner, Port};
use crate::fabric::Fabric;
use crate::hosts::ends::EndId;
use crate::hosts::Hosts;
use crate::world::World;
use fanin_engine::{Due, Items};
use fanin_packet::PacketId;

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

/// All that is looked at on the way.
struct Tables<'a> {
    arrivals: usize,
    links: Items<'a, Link>,
    ports: Items<'a, Port>,
    rings: RingEntries<'a>,
    pool: &'a Pool,
    fabric: &'a Fabric,
    hosts: &'a Hosts,
}

impl World {
    /// Fetches what the events after the present one need.
    #[inline(always)]
    pub(crate) fn prefetch<K: Fifo>(&mut self) {
        let core = &mut self.core;
        let tables = Tables {
            arrivals: core.arrivals,
            links: core.links.items(),
            ports: core.ports.items(),
            rings: core.rings.entries(),
            pool: &core.pool,
            fabric: &self.fabric,
            hosts: &self.hosts,
        };
        let known = core.wheel.known();
        if let Some(due) = known.get(10) {
            tables.first(due);
        }
        if let Some(due) = known.get(7) {
            tables.second(due);
        }
        if let Some(due) = known.get_mut(5) {
            tables.third(due);
        }
        if let Some(due) = known.get_mut(4) {
            tables.fourth(due);
        }
        if let Some(due) = known.get_mut(3) {
            tables.fifth::<K>(due);
        }
        if let Some(due) = known.get(1) {
            tables.sixth(due);
        }
    }
}

impl Tables<'_> {
    #[inline(always)]
    fn first(&self, due: &Due) {
        let slot = due.slot as usize;
        if slot >= self.arrivals {
            prefetch(self.links.address(slot - self.arrivals));
        } else {
            prefetch(self.links.address(slot));
            prefetch_lines::<2, _>(self.ports.address(slot));
        }
    }

    #[inline(always)]
    fn second(&self, due: &Due) {
        let slot = due.slot as usize;
        if slot >= self.arrivals {
            self.links.at(slot - self.arrivals).prefetch_front(self.rings);
        } else {
            self.second_of_departure(slot);
        }
    }

    #[inline(always)]
    fn second_of_departure(&self, slot: usize) {
        let port = self.ports.at(slot);
        match port.owner {
            Owner::Host(host) => prefetch(&self.hosts.hosts[host as usize]),
            Owner::Switch(..) => port.prefetch_queues(),
        }
    }

    #[inline(always)]
    fn third(&self, due: &mut Due) {
        let slot = due.slot as usize;
        if slot >= self.arrivals {
            let link = self.links.at(slot - self.arrivals);
            let packet = link.front_of(self.rings).packet;
            due.note = packet + 1;
            self.pool.prefetch(packet);
            if link.has_ingress_hook() {
                self.pool.prefetch_shim(packet);
            }
        } else {
            self.third_of_departure(slot);
        }
    }

    #[inline(always)]
    fn third_of_departure(&self, slot: usize) {
        self.links.at(slot).prefetch_back(self.rings);
        let port = self.ports.at(slot);
        match port.owner {
            Owner::Host(host) => self.hosts.prefetch_ready(host),
            Owner::Switch(..) => port.prefetch_queue(),
        }
    }

    #[inline(always)]
    fn fourth(&self, due: &mut Due) {
        let slot = due.slot as usize;
        if slot >= self.arrivals {
            let Some(packet) = packet(due.note) else { return };
            match self.links.at(slot - self.arrivals).far_end() {
                FarEnd::Switch(s) => self.fabric.fib.prefetch(s, self.pool[packet].dst),
                FarEnd::Host(host) => {
                    prefetch(self.pool.header(packet));
                    prefetch(&self.hosts.hosts[host as usize]);
                    let envelope = &self.pool[packet];
                    // Once only: an event that another was put before is here twice.
                    due.note = self.hosts.ends.prefetch(envelope.flow, envelope.to).map_or(0, |id| id | END);
                }
            }
        } else {
            self.fourth_of_departure(due);
        }
    }

    #[inline(always)]
    fn fourth_of_departure(&self, due: &mut Due) {
        let port = self.ports.at(due.slot as usize);
        match port.owner {
            Owner::Host(host) => due.note = self.hosts.prefetch_turn(host).map_or(0, |id| id | END),
            Owner::Switch(..) => port.prefetch_next(),
        }
    }

    #[inline(always)]
    fn fifth<K: Fifo>(&self, due: &mut Due) {
        let slot = due.slot as usize;
        if let Some(id) = end(due.note) {
            self.hosts.ends.prefetch_apart(id, 0);
        } else if slot >= self.arrivals {
            let Some(packet) = packet(due.note) else { return };
            due.note = 0; // once only here, too
            let link = self.links.at(slot - self.arrivals);
            let FarEnd::Switch(s) = link.far_end() else { return };
            if let Some(next) = self.fabric.switches[s as usize].foresee(&self.fabric.fib, s, &self.pool[packet]) {
                due.note = next | OUT;
                prefetch(self.links.address(next as usize));
                if K::POLICY || link.has_ingress_hook() {
                    prefetch_lines::<3, _>(self.ports.address(next as usize));
                }
            }
        } else if let Some(packet) = self.ports.at(slot).next() {
            due.note = packet + 1;
            self.pool.prefetch(packet);
            self.pool.prefetch_shim(packet);
        }
    }

    #[inline(always)]
    fn sixth(&self, due: &Due) {
        let slot = due.slot as usize;
        if let Some(next) = outgoing(due) {
            let link = self.links.at(next as usize);
            link.prefetch_back(self.rings);
            if link.is_offered(due.time()) {
                self.before_offer(slot - self.arrivals, next as usize);
            }
        } else if let Some(id) = end(due.note) {
            if let Some(host) = self.hosts.ends.prefetch_apart(id, 1) {
                prefetch(self.links.address(self.hosts.hosts[host as usize].nic as usize));
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
            let packet = self.links.at(via).front_of(self.rings).packet;
            self.fabric.switches[s as usize].prefetch_kept(packet, Some(self.fabric.ingress[via]), to);
        }
    }
}
