//! What a switch does with a packet: route → admit → mark → queue. Only here are verdicts carried out and counted.

use super::link::{flag, FarEnd};
use super::table::{Fib, NextHop};
use crate::core::Core;
use crate::ledger::Fate;
use fanin_engine::Table;
use fanin_packet::{Ecn, Envelope, PacketId};
use fanin_switch::{cells, DropReason, Effects, Hooks, MarkVerdict, MechanismState, PathChooser, PortView, SharedBuffer};
use fanin_telemetry::Name;
use fanin_units::{HostId, Stream, Time};

/// A switch's own state.
pub struct SwitchNode {
    pub name: Name,
    /// Seed of its ECMP hash.
    pub seed: u32,
    pub paths: PathChooser,
    pub rng: Stream,
    /// The buffer that its ports share, if they do.
    pub shared: Option<SharedBuffer>,
    pub mechanisms: Vec<MechanismState>,
    /// Those of all its mechanisms.
    pub hooks: Hooks,
    /// Its outgoing links, by port.
    pub ports: Vec<u32>,
}

/// All switches and their forwarding tables.
pub struct Fabric {
    pub fib: Fib,
    pub switches: Table<SwitchNode>,
    /// Hosts, which come before switches in the order of timers.
    pub hosts: u32,
    /// Where mechanisms write what shall happen; empty between events.
    pub effects: Effects,
    /// The packet that is being offered was detoured here: a port that refuses it drops it.
    pub detouring: bool,
    /// By link, the ingress port of the switch at its far end; `u16::MAX` where a host is there.
    pub ingress: Vec<u16>,
    /// The framing without stamps, for messages alone in a frame.
    pub framing: fanin_packet::Framing,
}

impl SwitchNode {
    /// The link by which it would forward a packet now.
    #[inline(always)]
    pub fn next_hop(&mut self, fib: &Fib, s: u32, now: Time, envelope: &Envelope) -> Option<usize> {
        match fib.lookup(s, envelope.dst) {
            NextHop::One(link) => Some(link as usize),
            NextHop::Several(links) => {
                Some(links[self.paths.pick(now, envelope, links.len(), self.seed, &mut self.rng)] as usize)
            }
            NextHop::None => None,
        }
    }
}

impl SwitchNode {
    /// The link by which it will forward a packet, if that is settled before the packet arrives.
    #[inline(always)]
    pub fn foresee(&self, fib: &Fib, s: u32, envelope: &Envelope) -> Option<u32> {
        match fib.lookup(s, envelope.dst) {
            NextHop::One(link) => Some(link),
            NextHop::Several(links) => self.paths.foresee(envelope, links.len(), self.seed).map(|i| links[i]),
            NextHop::None => None,
        }
    }
}

impl Fabric {
    /// A packet has reached a switch over link `via`; `out`: the link by which it leaves, where that was found out ahead.
    #[inline(always)]
    pub fn forward(&mut self, core: &mut Core, s: u32, via: usize, packet: PacketId, out: Option<u32>) {
        let envelope = &mut core.pool[packet];
        envelope.ttl -= 1;
        if envelope.ttl == 0 {
            return self.drop_at_switch(core, s, packet, DropReason::TTL);
        }
        let next_hop = match out {
            Some(out) => Some(out as usize),
            None => self.switches[s as usize].next_hop(&self.fib, s, core.now, envelope),
        };
        match next_hop {
            Some(out) => self.offer(core, out, Some(via), packet),
            None => self.drop_at_switch(core, s, packet, DropReason::NO_ROUTE),
        }
    }

    /// Offers a packet to a switch's output port; `via`: the link that it came by, if it came by one.
    ///
    /// The common port, inline: FIFO, with a static limit and a marking threshold at enqueue, in bytes or packets.
    #[inline(always)]
    pub fn offer(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        let link = &mut core.links[l];
        if link.flags & flag::SPECIAL != 0 {
            return self.offer_special(core, l, via, packet);
        }
        let now = core.now;
        let envelope = &mut core.pool[packet];
        let frame = envelope.frame;
        if link.free_at > now.ps() {
            while link.next_departure(&core.rings, now).is_some() {}
            let packets = link.queue_packets();
            let bytes = link.queue_bytes.saturating_add(u32::from(frame)); // 4 GiB end the run
            let would = if link.flags & flag::LIMIT_PACKETS != 0 { packets + 1 } else { bytes };
            if would > link.limit {
                return self.drop_packet(core, l, packet, DropReason::BUFFER_FULL);
            }
            let found = if link.flags & flag::MARK_PACKETS != 0 { packets } else { link.queue_bytes };
            if found > link.threshold && envelope.ecn != Ecn::NotEct {
                envelope.ecn = Ecn::Ce;
                core.ports[l].marks += 1;
            }
            if link.may_exceed(bytes) {
                core.ports[l].note_queue(link, now, bytes, packets + 1);
            }
        } else {
            link.note_idle();
        }
        core.push(l, packet, frame);
    }

    /// Offers a packet to a port that does more than the straight path.
    #[inline(never)]
    fn offer_special(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        if core.links[l].flags & flag::EXPLICIT != 0 {
            return self.offer_explicit(core, l, via, packet);
        }
        core.catch_up(l);
        let link = &core.links[l];
        let view = PortView {
            free_at: link.wire_free_at(&core.rings),
            ..core.ports[l].view(core.now, u64::from(link.queue_bytes), link.queue_packets(), Time::ZERO)
        };
        if let Err(refusal) = self.admit(core, l, 0, &view, packet) {
            return self.drop_refused(core, l, &view, packet, refusal);
        }
        core.send(l, packet, None);
        let link = &core.links[l];
        let (bytes, packets) = (link.queue_bytes, link.queue_packets());
        core.note_queue(l, bytes, packets);
    }

    /// The whole pipeline of a port: admission, marking, record. `view` is the queue that the packet finds, up to now.
    ///
    /// A packet that finds the port idle goes onto the wire at once and takes no buffer.
    ///
    /// # Errors
    /// With the reason where the port does not accept it; nothing is recorded then.
    #[inline]
    pub fn admit(&mut self, core: &mut Core, l: usize, class: usize, view: &PortView, packet: PacketId) -> Result<(), Refusal> {
        let port = &mut core.ports[l];
        let envelope = &mut core.pool[packet];
        let frame = envelope.frame;
        let waits = !view.is_idle();
        if waits {
            let shared = if port.admission.keeps_books() {
                let (s, _) = port.switch();
                self.switches[s as usize].shared.as_ref()
            } else {
                None
            };
            if let Err(reason) = port.admission.check(view, shared, (class, frame, core.cell)) {
                return Err(Refusal { reason, room: true });
            }
        }
        let marked = match port.marker.on_enqueue(view, envelope, &mut port.rng) {
            MarkVerdict::Pass => false,
            MarkVerdict::Mark(reason) => core.mark(l, packet, reason),
            MarkVerdict::Drop(reason) => return Err(Refusal { reason, room: false }),
        };
        let port = &mut core.ports[l];
        if waits && core.links[l].flags & flag::DEQUEUE != 0 {
            port.queue_cells += cells(frame, core.cell);
        }
        if port.watched.is_some() {
            core.record_arrival(l, view, packet, frame, (marked, Fate::Taken));
        }
        Ok(())
    }

    /// A packet that a port does not accept, and for which nobody has another use.
    #[cold]
    #[inline(never)]
    pub fn drop_refused(&mut self, core: &mut Core, l: usize, view: &PortView, packet: PacketId, refusal: Refusal) {
        core.note_refusal(l, view, packet, core.pool[packet].frame, refusal.room);
        self.drop_packet(core, l, packet, refusal.reason);
    }

    /// Counts and records a packet that is dropped at a port, and takes it out of the world.
    #[cold]
    #[inline(never)]
    pub fn drop_packet(&mut self, core: &mut Core, l: usize, packet: PacketId, reason: DropReason) {
        core.ports[l].drops += 1;
        let (s, _) = core.switch_port(l);
        let (queue_bytes, _) = core.queue(l);
        let port = core.ports[l].name.clone();
        self.drop_with(core, s, packet, reason, port, queue_bytes);
    }

    /// The same for a packet that no port of the switch can take; its place is the switch.
    #[cold]
    #[inline(never)]
    pub fn drop_at_switch(&mut self, core: &mut Core, s: u32, packet: PacketId, reason: DropReason) {
        let name = self.switches[s as usize].name.clone();
        self.drop_with(core, s, packet, reason, name, 0);
    }

    fn drop_with(&mut self, core: &mut Core, s: u32, packet: PacketId, reason: DropReason, port: Name, queue_bytes: u64) {
        let dropped = core.pool.packet(packet);
        core.record_drop(packet, &dropped, reason, port, queue_bytes);
        core.pool.free(packet);
        if self.switches[s as usize].hooks.any(Hooks::DROP) {
            self.run_drop_hooks(core, s, &dropped, reason);
        }
    }

    /// The links from one host to another for a packet with this hash, as per-flow ECMP would choose them; the first is
    /// the host's own.
    pub fn path(&self, core: &Core, nic: u32, to: HostId, hash: u32) -> Vec<u32> {
        let mut path = vec![nic];
        while let FarEnd::Switch(s) = core.links[path[path.len() - 1] as usize].far_end() {
            match self.fib.lookup(s, to) {
                NextHop::One(link) => path.push(link),
                NextHop::Several(links) => {
                    let i = fanin_switch::ecmp(hash, self.switches[s as usize].seed, links.len());
                    path.push(links[i]);
                }
                NextHop::None => break,
            }
            if path.len() > self.switches.len() + 1 {
                break;
            }
        }
        path
    }
}

/// Why a port does not accept a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: DropReason,
    /// For want of room; else marking drops it.
    pub room: bool,
}
