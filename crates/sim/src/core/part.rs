//! The part of a network that a world simulates, and what crosses its border.
//!
//! A link between two parts is cut in two. The world of its sender has its port and queue and exports each packet whose serialisation has
//! begun, by value; the world of its receiver has the wire and takes packets off it as they arrive. A packet is under way for the link's
//! delay at least, so that worlds which exchange packets once per such a time miss nothing.

use super::gate::Asks;
use super::link::Entry;
use super::pool::Carried;
use super::port::Owner;
use super::{Core, TimerKey};
use fanin_packet::{Kind, PacketId};
use fanin_telemetry::Stamp;
use fanin_units::{prefetch_lines, HostId, LinkId, SwitchId, Time};

/// Mail of one part of a network for another after a window.
#[derive(Default)]
pub struct Mail {
    /// Packets on links that are cut, each link's in order.
    pub packets: Vec<Crossing>,
    /// Timers of hosts there: news between the two ends of a flow that is no packet.
    pub timers: Vec<(Time, TimerKey)>,
}

impl Mail {
    /// True where there is nothing.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.timers.is_empty()
    }
}

/// A packet on a link that is cut.
pub struct Crossing {
    arrive: Time,
    link: LinkId,
    frame: u16,
    carried: Carried,
    /// Notes that few packets have.
    besides: Option<Box<Besides>>,
}

/// Notes that go with a packet and are not in its frame.
struct Besides {
    stamp: Option<Stamp>,
    /// The reasons of a frame with pauses, for the record.
    asks: Option<Asks>,
}

/// Places by which links and packets that come next are fetched ahead of the one that is looked at: first what is known, then what that leads
/// to. Few of them are in the cache.
const FAR: usize = 16;
const NEAR: usize = 8;

/// A link from here to another part.
struct Cut {
    link: LinkId,
    to: u32,
    /// The first entry of its ring that has not been exported.
    next: u32,
}

/// The part of the network that a world simulates.
pub struct Part {
    /// By host and by switch, the number of the part that has it.
    hosts: Vec<u32>,
    switches: Vec<u32>,
    /// The number of this part.
    pub number: u32,
    cut: Vec<Cut>,
    /// By part, what there is for it.
    pub out: Vec<Mail>,
    /// Packets that are about to be exported, each with its link and the part that this leads to.
    leaving: Vec<(u32, LinkId, Entry)>,
    /// The earliest time of anything in `out`.
    pub earliest: Time,
    /// The earliest departure on a link that is cut which is no event.
    pub lazy: Time,
}

impl Part {
    /// Part `number` of a division of hosts and switches among `parts`; nothing is cut yet.
    pub fn new(hosts: Vec<u32>, switches: Vec<u32>, number: u32, parts: usize) -> Part {
        Part {
            hosts,
            switches,
            number,
            cut: Vec::new(),
            leaving: Vec::new(),
            out: (0..parts).map(|_| Mail::default()).collect(),
            earliest: Time::MAX,
            lazy: Time::MAX,
        }
    }

    /// True for a host that is simulated here.
    pub fn has_host(&self, host: HostId) -> bool {
        self.hosts[host.index()] == self.number
    }

    /// True for a switch that is simulated here.
    pub fn has_switch(&self, switch: SwitchId) -> bool {
        self.switches[switch.index()] == self.number
    }

    /// The part that has a host.
    pub fn of_host(&self, host: HostId) -> u32 {
        self.hosts[host.index()]
    }

    /// Sets a timer of a host in another part.
    pub fn set_timer(&mut self, host: HostId, at: Time, key: TimerKey) {
        self.earliest = self.earliest.min(at);
        let to = self.of_host(host);
        self.out[to as usize].timers.push((at, key));
    }
}

impl Core {
    /// True for a host that this world simulates.
    #[inline]
    pub fn has_host(&self, host: HostId) -> bool {
        self.part.as_deref().is_none_or(|part| part.has_host(host))
    }

    /// True for a port whose node this world simulates.
    #[inline]
    pub fn has_port(&self, l: LinkId) -> bool {
        self.part.as_deref().is_none_or(|part| match self.ports[l].owner {
            Owner::Host(host) => part.has_host(host),
            Owner::Switch(switch, _) => part.has_switch(switch),
        })
    }

    /// Cuts a link that leads to part `to`. A place in its ring is taken for good, so that it never looks idle to its sender, which would
    /// schedule arrivals that happen elsewhere.
    pub fn cut(&mut self, l: LinkId, to: u32) {
        let link = &mut self.links[l];
        debug_assert_eq!((link.head, link.tail), (0, 0), "a link that has been used");
        link.head = link.tail.wrapping_sub(1);
        let next = link.tail;
        if let Some(part) = self.part.as_deref_mut() {
            part.cut.push(Cut { link: l, to, next });
        }
    }

    /// The first link from number `i` on, of those that are cut and lead from here, over which anything that has not been exported goes or may
    /// go; `i` is its number then. What follows is fetched.
    #[inline]
    pub fn cut_link(&self, i: &mut usize) -> Option<LinkId> {
        let cut = &self.part.as_deref()?.cut;
        let links = self.links.items();
        loop {
            let Cut { link, next, .. } = cut.get(*i)?;
            if let Some(soon) = cut.get(*i + FAR) {
                links.prefetch_link(soon.link);
            }
            if let Some(Cut { link, next, .. }) = cut.get(*i + NEAR) {
                links.at(*link).prefetch(links.rings, *next);
            }
            let of = links.at(*link);
            if of.tail != *next || of.is_followed() {
                return Some(*link);
            }
            *i += 1;
        }
    }

    /// Forgets what was known of departures that are no events.
    pub fn begin_export(&mut self) {
        if let Some(part) = self.part.as_deref_mut() {
            part.lazy = Time::MAX;
        }
    }

    /// Notes which packets have begun serialisation on link number `i` of those that are cut, whose port is up to now.
    #[inline]
    pub fn note_leaving(&mut self, i: usize) {
        let Some(part) = self.part.as_deref_mut() else { return };
        let Cut { link: l, to, next } = &mut part.cut[i];
        let (link, rings) = self.links.with_rings(*l);
        let rings = rings.read();
        while *next != link.served {
            let entry = link.at(rings, *next);
            // The last one exported stays where the ring begins.
            link.head = *next;
            *next = next.wrapping_add(1);
            self.pool.prefetch_whole(entry.packet);
            part.leaving.push((*to, *l, entry));
        }
        if link.is_followed() || link.queue_packets() > 0 {
            part.lazy = part.lazy.min(link.wire_free_at(rings));
        }
    }

    /// Exports the packets that have been noted.
    pub fn export(&mut self) {
        let Some(mut part) = self.part.take() else { return };
        let Part { out, earliest, leaving, .. } = &mut *part;
        for (to, link, Entry { arrive, packet, frame }) in leaving.drain(..) {
            let arrive = Time::from_ps(arrive);
            *earliest = (*earliest).min(arrive);
            let besides = self.besides(link, packet);
            out[to as usize].packets.push(Crossing { arrive, link, frame, carried: self.pool.lift(packet), besides });
        }
        self.part = Some(part);
    }

    /// Puts packets that another part has exported onto their wires.
    pub fn import_all(&mut self, packets: &mut Vec<Crossing>) {
        for i in 0..packets.len() {
            if let Some(soon) = packets.get(i + FAR) {
                prefetch_lines::<3, _>(soon);
            }
            if let Some(next) = packets.get(i + NEAR) {
                self.links.prefetch(next.link);
                self.pool.prefetch_place(NEAR);
            }
            self.import(&mut packets[i]);
        }
        packets.clear();
    }

    /// Notes that go with a packet over link `l` and are not in its frame.
    #[inline]
    fn besides(&mut self, l: LinkId, packet: PacketId) -> Option<Box<Besides>> {
        match self.pool[packet].kind == Kind::Control || self.ledger.stamps.is_some() {
            true => Some(self.existing_besides(l, packet)),
            false => None,
        }
    }

    #[inline(never)]
    fn existing_besides(&mut self, l: LinkId, packet: PacketId) -> Box<Besides> {
        let stamp = self.ledger.stamps.as_deref_mut().map(|stamps| stamps.take(packet));
        Box::new(Besides { stamp, asks: self.export_pause(l, packet) })
    }

    /// Puts a packet that another part has exported onto its wire.
    #[inline]
    fn import(&mut self, crossing: &mut Crossing) {
        let Crossing { link: l, arrive, frame, .. } = *crossing;
        debug_assert!(arrive > self.now, "a packet over {l} that arrives at {arrive}, after {}", self.now);
        let packet = self.pool.land(&mut crossing.carried);
        if let Some(besides) = crossing.besides.take() {
            self.import_besides(l, packet, *besides);
        }
        if self.links.import(l, Entry { arrive: arrive.ps(), packet, frame }) {
            self.wheel.set(self.slot_of_arrival(l), arrive);
        }
    }

    #[inline(never)]
    fn import_besides(&mut self, l: LinkId, packet: PacketId, Besides { stamp, asks }: Besides) {
        if let (Some(stamps), Some(stamp)) = (self.ledger.stamps.as_deref_mut(), stamp) {
            stamps.write(packet, stamp);
        }
        if let Some(asks) = asks {
            self.import_pause(l, asks);
        }
    }
}
