//! What a switch does with a packet: route → admit → mark → queue. Only here are verdicts carried out and counted.

use super::link::{flag, FarEnd};
use super::table::{Fib, NextHop};
use crate::core::Core;
use crate::ledger::Fate;
use fanin_engine::Table;
use fanin_packet::{Ecn, Envelope, PacketId};
use fanin_switch::{Admission, DropReason, Effects, Hooks, MarkVerdict, MechanismState, PathChooser, PortView};
use fanin_telemetry::Name;
use fanin_units::{HostId, Stream, Time};

/// A switch's own state.
pub struct SwitchNode {
    pub name: Name,
    /// Seed of its ECMP hash.
    pub seed: u32,
    pub paths: PathChooser,
    pub rng: Stream,
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
        if link.catch_up(&core.rings, now) {
            let packets = link.queue_packets();
            let bytes = link.queue_bytes.saturating_add(u32::from(frame)); // 4 GiB end the run
            let would = if link.flags & flag::LIMIT_PACKETS != 0 { packets + 1 } else { bytes };
            if would > link.limit {
                return self.refuse_for_room(core, l, via, packet, DropReason::BUFFER_FULL);
            }
            let found = if link.flags & flag::MARK_PACKETS != 0 { packets } else { link.queue_bytes };
            if found > link.threshold && envelope.ecn != Ecn::NotEct {
                envelope.ecn = Ecn::Ce;
                core.ports[l].marks += 1;
            }
            if link.may_exceed(bytes) {
                core.ports[l].note_queue(link, now, bytes, packets + 1);
            }
        }
        core.push(l, packet, frame);
    }

    /// Offers a packet to a port that does more than the straight path.
    #[inline(always)]
    fn offer_special(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        match core.links[l].flags {
            flags if flags & (flag::PIPELINE | flag::EXPLICIT) != 0 => self.offer_by_pipeline(core, l, via, packet),
            flags if flags & flag::DEQUEUE != 0 => self.offer_with_dequeues(core, l, via, packet),
            _ => self.offer_by_policy(core, l, via, packet),
        }
    }

    /// To a FIFO port with a shared buffer, or that marks at dequeue.
    #[inline(never)]
    fn offer_with_dequeues(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        self.offer_fifo::<true>(core, l, via, packet);
    }

    /// To a FIFO port with a marking policy that is more than a threshold.
    #[inline(never)]
    fn offer_by_policy(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        self.offer_fifo::<false>(core, l, via, packet);
    }

    /// The straight path with any marking policy; `DEQUEUES`: with a shared buffer and what happens at dequeue. Compiled twice.
    #[inline(always)]
    fn offer_fifo<const DEQUEUES: bool>(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId) {
        let now = core.now;
        if DEQUEUES {
            core.catch_up_dequeues(l);
        }
        let (link, port) = (&mut core.links[l], &mut core.ports[l]);
        let waits = link.catch_up(&core.rings, now);
        let (bytes, packets, frame) = (link.queue_bytes, link.queue_packets(), core.pool[packet].frame);
        let view = port.view(now, u64::from(bytes), packets, link.wire_free_at(&core.rings));
        let would = bytes.saturating_add(u32::from(frame)); // 4 GiB end the run
        let books = DEQUEUES && port.admission.keeps_books();
        if waits {
            if (if link.flags & flag::LIMIT_PACKETS != 0 { packets + 1 } else { would }) > link.limit {
                return self.refuse_for_room(core, l, via, packet, DropReason::BUFFER_FULL);
            }
            if books {
                if let Err(reason) = self.check_shared(core, l, 0, &view, frame) {
                    return self.refuse_for_room(core, l, via, packet, reason);
                }
            }
        }
        let port = &mut core.ports[l];
        match port.marker.on_enqueue(&view, &core.pool[packet], &mut port.rng) {
            MarkVerdict::Pass => {}
            MarkVerdict::Mark(reason) => {
                core.mark(l, packet, reason);
            }
            MarkVerdict::Drop(reason) => {
                return self.refuse(core, l, 0, &view, via, packet, Refusal { reason, room: false });
            }
        }
        if waits {
            let (link, port) = (&mut core.links[l], &mut core.ports[l]);
            if books {
                let (s, _) = port.switch();
                port.admission.joined(&mut core.shared[s as usize], 0, frame);
            }
            port.note_queue(link, now, would, packets + 1);
        }
        core.push(l, packet, frame);
        if DEQUEUES && !waits {
            core.after_dequeue(l, now, packet, None);
        }
    }

    /// A FIFO port has no room for a packet.
    #[cold]
    #[inline(never)]
    fn refuse_for_room(&mut self, core: &mut Core, l: usize, via: Option<usize>, packet: PacketId, reason: DropReason) {
        let view = core.view(l);
        self.refuse(core, l, 0, &view, via, packet, Refusal { reason, room: true });
    }

    /// The whole pipeline of a port: admission, marking, record. `view` is the queue that the packet finds, up to now.
    ///
    /// A packet that finds the port idle goes onto the wire at once and takes no buffer.
    ///
    /// # Errors
    /// With the reason where the port does not accept it; nothing is recorded then.
    #[inline(always)]
    pub fn admit(&mut self, core: &mut Core, l: usize, class: usize, view: &PortView, packet: PacketId) -> Result<(), Refusal> {
        let port = &mut core.ports[l];
        let envelope = &core.pool[packet];
        let frame = envelope.frame;
        if !view.is_idle() {
            let room = match &port.admission {
                Admission::Shared { .. } => self.check_shared(core, l, class, view, frame),
                own => own.check(view, None, (class, frame, core.cell)),
            };
            if let Err(reason) = room {
                return Err(Refusal { reason, room: true });
            }
        }
        let port = &mut core.ports[l];
        let marked = match port.marker.on_enqueue(view, &core.pool[packet], &mut port.rng) {
            MarkVerdict::Pass => false,
            MarkVerdict::Mark(reason) => core.mark(l, packet, reason),
            MarkVerdict::Drop(reason) => return Err(Refusal { reason, room: false }),
        };
        if !view.is_idle() {
            core.ports[l].queue_cells += core.cells(frame);
        }
        if core.ports[l].watched.is_some() {
            core.record_arrival(l, view, packet, frame, (marked, Fate::Taken));
        }
        Ok(())
    }

    /// Whether the buffer that the switch's ports share has room.
    ///
    /// What other ports have sent since they were last read still counts as used, so that a frame which fits now fits all the
    /// more then; only one that does not makes the switch read all its ports.
    fn check_shared(&self, core: &mut Core, l: usize, class: usize, view: &PortView, frame: u16) -> Result<(), DropReason> {
        let (s, _) = core.switch_port(l);
        let check = |core: &Core| core.ports[l].admission.check(view, Some(&core.shared[s as usize]), (class, frame, core.cell));
        check(core).or_else(|_| {
            self.switches[s as usize].ports.iter().for_each(|port| core.catch_up(*port as usize));
            check(core)
        })
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
