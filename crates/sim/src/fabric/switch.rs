//! Switches: their state, and the choice of the link by which a packet leaves them.

use super::combined::Crossbar;
use super::failover::Failover;
use super::table::{Fib, NextHop};
use crate::core::link::FarEnd;
use crate::core::network::Network;
use crate::core::port::Owner;
use crate::core::route::Route;
use crate::core::Core;
use fanin_engine::Table;
use fanin_packet::{Envelope, Packet, PacketId, Stack};
use fanin_switch::{DropReason, Effects, Hooks, Links, MechanismState, PathChooser, PortNo, PortView};
use fanin_telemetry::Name;
use fanin_units::{prefetch, HostId, LinkId, NodeId, Stream, SwitchId};
use std::collections::VecDeque;

/// A switch's own state.
pub struct SwitchNode {
    pub name: Name,
    /// Seed of the switch's ECMP hash.
    pub seed: u32,
    pub paths: PathChooser,
    pub rng: Stream,
    pub mechanisms: Vec<MechanismState>,
    /// Hooks of all the switch's mechanisms.
    pub hooks: Hooks,
    /// Number of the only mechanism that has a say in packets before they join a queue, if it has one because of its express
    /// queue alone.
    pub headers: Option<u8>,
    /// Number of the only mechanism that runs when packets are routed, if it has telemetry written and does nothing else there.
    pub stamps: Option<u8>,
    /// Number of the only mechanism that sees packets before they join a queue, if it counts them in memory; none at a
    /// combined switch.
    pub counts: Option<u8>,
    /// Number of the only mechanism that learns of packets which have left their queues.
    pub leaves: Option<u8>,
    /// Outgoing links of the switch, by port.
    pub ports: Vec<LinkId>,
    /// Frame bytes in the switch's memory by the port that they came in by; empty where no mechanism asks for them
    /// ([`Hooks::INPUTS`]).
    pub inputs: Vec<u64>,
    /// Messages that are about to join queues of ports, each with its link.
    pub outbox: VecDeque<(LinkId, PacketId)>,
    /// Packets dropped at the heads of queues, of which mechanisms that send messages have not been told yet.
    pub dropped: VecDeque<(PacketId, Packet, DropReason)>,
}

/// Number of the only mechanism that has any of these hooks.
fn alone(mechanisms: &[MechanismState], hooks: Hooks) -> Option<usize> {
    let mut have = (0..mechanisms.len()).filter(|i| mechanisms[*i].hooks().any(hooks));
    have.next().filter(|_| have.next().is_none())
}

/// Value of [`SwitchNode::stamps`].
pub fn stamps_alone(mechanisms: &[MechanismState]) -> Option<u8> {
    let i = alone(mechanisms, Hooks::ROUTE)?;
    mechanisms[i].telemetry(|_| i as u8)
}

/// Value of [`SwitchNode::counts`].
pub fn counts_alone(mechanisms: &[MechanismState]) -> Option<u8> {
    let i = alone(mechanisms, Hooks::BEFORE_PORTS.with(Hooks::INPUTS))?;
    mechanisms[i].packet_memory(|_| i as u8)
}

/// Value of [`SwitchNode::leaves`].
pub fn leaves_alone(mechanisms: &[MechanismState]) -> Option<u8> {
    alone(mechanisms, Hooks::DEPARTED).map(|i| i as u8)
}

/// All switches and their forwarding tables.
pub struct Fabric {
    pub fib: Fib,
    pub switches: Table<SwitchNode, SwitchId>,
    /// Hosts, which come before switches in the order of timers.
    pub hosts: u32,
    /// Some ports are not on the fast path.
    pub general: bool,
    /// The largest frame that a mechanism wants to see before it joins a queue.
    pub seen_up_to: u16,
    /// True if mechanisms want to see every packet; else only packets that have to wait, or were detoured.
    pub sees_all: bool,
    /// Effects that mechanisms ask for in the present event; empty between events.
    pub effects: Effects,
    /// Crossbar of each switch; empty where switches are output queued.
    pub crossbars: Table<Crossbar, SwitchId>,
    /// Switch and number of each crossbar slot behind the slots of departures.
    pub crossbar_slots: Vec<(SwitchId, u16)>,
    /// True if the packet that is being enqueued was detoured here: a port that refuses it drops it.
    pub detouring: bool,
    /// True while a port has its transmission opportunity: other ports may have theirs at this very instant.
    pub departing: bool,
    /// Ingress port of the switch at the far end of each link; `u16::MAX` where a host is there.
    pub ingress: Table<u16, LinkId>,
    /// Port by which each packet came into its switch, and its frame bytes, while it counts there; empty where nobody asks.
    pub entered: Vec<(u16, u16)>,
    /// Link in the other direction, by link.
    pub reverse: Table<LinkId, LinkId>,
    /// Links that fail, where any do.
    pub failover: Option<Box<Failover>>,
    /// The framing without stamps, for messages alone in a frame.
    pub framing: fanin_packet::Framing,
}

/// Equal-cost links as a path choice sees them.
struct EqualCost<'a> {
    links: &'a [LinkId],
    core: &'a mut Core,
}

impl Links for EqualCost<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.links.len()
    }

    fn number(&self, i: usize) -> u32 {
        self.links[i].0
    }

    fn queue(&mut self, i: usize) -> PortView {
        let l = self.links[i];
        self.core.catch_up(l);
        self.core.view(l)
    }
}

impl SwitchNode {
    /// Link by which the switch would forward a packet now.
    #[inline(always)]
    pub fn next_hop(&mut self, core: &mut Core, fib: &Fib, s: SwitchId, envelope: &Envelope) -> Option<LinkId> {
        match fib.lookup(s, envelope.dst) {
            NextHop::One(link) => Some(link),
            NextHop::Several(links) => {
                let now = core.now;
                let mut equal = EqualCost { links, core };
                Some(links[self.paths.pick(now, envelope, &mut equal, self.seed, &mut self.rng)])
            }
            NextHop::None => None,
        }
    }
}

impl SwitchNode {
    /// Hints that the switch's mechanisms are asked about a packet soon, which came in by port `from` and is about to be enqueued
    /// at `port`, or to leave it.
    #[inline(always)]
    pub fn prefetch_kept(&self, from: Option<u16>, port: PortNo) {
        if let Some(i) = self.leaves {
            self.mechanisms[usize::from(i)].packet_memory(|m| m.kept(from.map(PortNo), port, &prefetch));
        }
    }
}

impl Fabric {
    /// The node of a switch in the order of timers.
    pub fn node(&self, s: SwitchId) -> NodeId {
        NodeId(self.hosts + s.0)
    }

    /// Forwards a packet that has reached a switch over link `via`.
    #[inline(always)]
    pub fn forward(&mut self, core: &mut Core, s: SwitchId, via: LinkId, packet: PacketId) {
        if let Some(out) = self.take_hop(core, s, via, packet) {
            self.enqueue(core, out, Some(via), packet);
        }
    }

    /// Takes a hop from a packet that has reached a switch over link `via`, and gives the link by which it leaves. Without any
    /// hop left it is dropped.
    #[inline(always)]
    pub fn take_hop(&mut self, core: &mut Core, s: SwitchId, via: LinkId, packet: PacketId) -> Option<LinkId> {
        let outer = core.pool.outer(packet);
        let settled = outer.next(via);
        outer.envelope.ttl -= 1;
        debug_assert_eq!(core.pool.note(packet), 0, "packet {packet} is still known elsewhere");
        let outer = core.pool.outer(packet);
        if outer.envelope.ttl == 0 {
            self.drop_at_switch(core, s, packet, DropReason::TTL);
            return None;
        }
        match settled {
            Some(out) => {
                debug_assert!(self.is_by_tables(core, s, packet, out));
                Some(out)
            }
            None => self.look_up(core, s, packet),
        }
    }

    /// Link by which a packet leaves a switch according to its tables and its path choice. Without any it is dropped.
    #[inline(never)]
    fn look_up(&mut self, core: &mut Core, s: SwitchId, packet: PacketId) -> Option<LinkId> {
        let envelope = core.pool[packet];
        let out = self.switches[s].next_hop(core, &self.fib, s, &envelope);
        self.notify(core);
        if out.is_none() {
            self.drop_at_switch(core, s, packet, DropReason::NO_ROUTE);
        }
        out
    }

    /// True if a switch's tables lead a packet by a link, as its source route does.
    fn is_by_tables(&self, core: &Core, s: SwitchId, packet: PacketId, out: LinkId) -> bool {
        let Envelope { dst, hash, .. } = core.pool[packet];
        self.foresee(s, dst, hash) == Some(out)
    }

    /// Link by which a switch forwards packets to a host with this hash, if nothing but its tables, the host and the hash decide
    /// it.
    pub fn foresee(&self, s: SwitchId, dst: HostId, hash: u32) -> Option<LinkId> {
        let switch = &self.switches[s];
        match self.fib.lookup(s, dst) {
            NextHop::One(link) => Some(link),
            NextHop::Several(links) => switch.paths.foresee(dst, hash, links.len(), switch.seed).map(|i| links[i]),
            NextHop::None => None,
        }
    }

    /// Links of a path that begins with `nic`, until no switch gives a next one, or it goes in circles.
    fn walk(&self, core: &Core, nic: LinkId, next: impl Fn(SwitchId) -> Option<LinkId>) -> Vec<LinkId> {
        let mut path = vec![nic];
        while let FarEnd::Switch(s) = core.links[path[path.len() - 1]].far_end() {
            match next(s) {
                Some(link) if path.len() <= self.switches.len() => path.push(link),
                _ => break,
            }
        }
        path
    }
}

impl Network for Fabric {
    fn path(&self, core: &Core, nic: LinkId, to: HostId, hash: u32) -> Vec<LinkId> {
        // Ends know paths of the intact network.
        let fib = self.failover.as_deref().map_or(&self.fib, |failover| &failover.intact);
        self.walk(core, nic, |s| match fib.lookup(s, to) {
            NextHop::One(link) => Some(link),
            NextHop::Several(links) => Some(links[fanin_switch::ecmp(hash, self.switches[s].seed, links.len())]),
            NextHop::None => None,
        })
    }

    fn source_route(&self, core: &Core, nic: LinkId, envelope: &Envelope) -> Route {
        if self.failover.is_some() {
            return Route::NONE; // tables change
        }
        let path = self.walk(core, nic, |s| self.foresee(s, envelope.dst, envelope.hash));
        match core.links[path[path.len() - 1]].far_end() {
            FarEnd::Host(_) => Route::along(&path, envelope.ttl),
            FarEnd::Switch(_) => Route::NONE,
        }
    }

    fn telemetry(&self, core: &Core, path: &[LinkId]) -> Vec<u16> {
        let mut records = 0;
        let bytes = |l: &LinkId| {
            if let Owner::Switch(s, _) = core.ports[*l].owner {
                let limit = self.switches[s].mechanisms.iter().filter_map(|m| m.telemetry(|m| m.records())).max();
                records += usize::from(limit.is_some_and(|limit| records < limit));
            }
            Stack::bytes(records)
        };
        path.iter().map(bytes).collect()
    }
}
