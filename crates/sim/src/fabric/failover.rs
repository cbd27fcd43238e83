//! Links of switches that fail and come back: the reaction of the switches at their ends when they notice, and of all switches
//! when their tables are recomputed.
//!
//! Each switch acts by a timer of its own and changes nothing but its own ports and tables. What happens on the wire meanwhile is found out where
//! frames arrive (`core/faults.rs`).

use super::switch::Fabric;
use super::table::Fib;
use crate::core::marking::Refusal;
use crate::core::queues::Queues;
use crate::core::{Core, TimerKey};
use fanin_packet::{Kind, PacketId};
use fanin_scenario::Notice;
use fanin_switch::DropReason;
use fanin_topology::{Routes, Topology};
use fanin_units::{LinkId, NodeId, SwitchId, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The timer of a switch that notices something about its links, or gets other tables.
pub const FAILOVER: u64 = u64::MAX - 2;
/// Tables for sets of links that are down which are kept, as flaps need the same again and again.
const KEPT: usize = 8;

/// A change of the links between switches that tables learn of.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub at: Time,
    pub links: [LinkId; 2],
    pub up: bool,
}

/// A switch's view of its links.
#[derive(Default)]
struct View {
    /// Changes that the switch will notice at its own ports, in order.
    notices: VecDeque<(LinkId, Notice)>,
    /// Own ports whose links the switch knows to be down.
    down: BTreeSet<LinkId>,
    /// Number of changes that the switch's tables have learned of.
    learned: usize,
}

/// Tables for a set of links that are down.
struct Tables {
    down: BTreeSet<LinkId>,
    routes: Routes,
}

/// Failures during a run: changes to come, and the changes that each switch knows.
pub struct Failover {
    topology: Topology,
    /// The tables at the beginning, in which nothing is down.
    pub intact: Fib,
    changes: Vec<Change>,
    views: Vec<View>,
    tables: VecDeque<Tables>,
    /// Groups of links that were added to switches' tables after failures.
    groups: BTreeMap<Vec<LinkId>, usize>,
}

impl Failover {
    /// State in which all links work. `notices`: at each port of a switch whose link fails, in order of time; `changes`: of links
    /// between switches, in order.
    pub fn new(topology: &Topology, intact: Fib, notices: &[(SwitchId, LinkId, Notice)], changes: Vec<Change>) -> Failover {
        let mut views: Vec<View> = (0..topology.switch_count()).map(|_| View::default()).collect();
        let mut notices = notices.to_vec();
        notices.sort_by_key(|(_, link, notice)| (notice.at, *link));
        notices.into_iter().for_each(|(s, link, notice)| views[s.index()].notices.push_back((link, notice)));
        Failover { topology: topology.clone(), intact, changes, views, tables: VecDeque::new(), groups: BTreeMap::new() }
    }

    /// Time at which a switch acts next, if it has anything left to do.
    fn next(&self, s: SwitchId) -> Option<Time> {
        let view = &self.views[s.index()];
        let noticed = view.notices.front().map(|(_, notice)| notice.at);
        let learned = self.changes.get(view.learned).map(|change| change.at);
        noticed.into_iter().chain(learned).min()
    }

    /// First timer of each switch. `hosts`: hosts come before switches in the order of timers.
    pub fn timers(&self, hosts: u32) -> Vec<(Time, TimerKey)> {
        let switches = (0..self.views.len() as u32).map(SwitchId);
        switches.filter_map(|s| Some((self.next(s)?, (NodeId(hosts + s.0), FAILOVER)))).collect()
    }

    /// Computes the tables after so many changes, and drops earlier ones.
    fn tables_after(&mut self, learned: usize) -> Result<(), String> {
        let mut down = BTreeSet::new();
        for change in &self.changes[..learned] {
            for link in change.links {
                let _ = if change.up { down.remove(&link) } else { down.insert(link) };
            }
        }
        if let Some(known) = self.tables.iter().position(|tables| tables.down == down) {
            self.tables.swap(0, known);
            return Ok(());
        }
        let routes = Routes::shortest_without(&self.topology, &down)
            .map_err(|problems| problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("; "))?;
        self.tables.push_front(Tables { down, routes });
        self.tables.truncate(KEPT);
        Ok(())
    }

    /// Writes the tables of a switch: shortest paths after the changes that it has learned of, without its own ports that it
    /// knows to be down.
    fn write(&mut self, fib: &mut Fib, s: SwitchId) -> Result<(), String> {
        let learned = self.views[s.index()].learned;
        self.tables_after(learned)?;
        let (view, routes) = (&self.views[s.index()], &self.tables[0].routes);
        let node = NodeId((self.topology.hosts.len() + s.index()) as u32);
        for attachment in (0..routes.attachments()).filter(|attachment| routes.attachment_node(*attachment) != node) {
            let links = routes.lookup(node, attachment).iter().copied().filter(|link| !view.down.contains(link));
            let links: Vec<LinkId> = links.collect();
            let group = *self.groups.entry(links).or_insert_with_key(|links| fib.add_group(links));
            fib.set(s.index(), attachment, group);
        }
        Ok(())
    }
}

impl Fabric {
    /// Carries out all changes that a switch notices about its links now, or that its tables learn now.
    #[cold]
    pub fn fail_over(&mut self, core: &mut Core, s: SwitchId) {
        while let Some((l, up)) = self.next_notice(core.now, s) {
            if up {
                self.bring_up(core, l);
            } else {
                self.take_down(core, l);
            }
            self.tell_of_link(core, l, up);
        }
        let Some(failover) = self.failover.as_deref_mut() else { return };
        let due = failover.changes.iter().skip(failover.views[s.index()].learned).take_while(|change| change.at <= core.now);
        failover.views[s.index()].learned += due.count();
        if let Err(message) = failover.write(&mut self.fib, s) {
            core.stuck.get_or_insert(format!("{} gets no tables after a failure: the network {message}", self.switches[s].name));
            core.barrier = Time::ZERO;
        }
        if let Some(next) = failover.next(s) {
            core.set_timer(next, (self.node(s), FAILOVER));
        }
    }

    /// Next change that a switch notices at this instant: its link, and whether that works again.
    fn next_notice(&mut self, now: Time, s: SwitchId) -> Option<(LinkId, bool)> {
        let view = &mut self.failover.as_deref_mut()?.views[s.index()];
        view.notices.front().filter(|(_, notice)| notice.at <= now)?;
        let (l, notice) = view.notices.pop_front()?;
        let _ = if notice.up { view.down.remove(&l) } else { view.down.insert(l) };
        Some((l, notice.up))
    }

    /// Takes down a port whose link is known to have failed: packets that wait for it are dropped, wherever they wait.
    fn take_down(&mut self, core: &mut Core, l: LinkId) {
        core.make_events(l);
        core.ports[l].down = true;
        while let Some(frame) = core.ports[l].queues.as_deref_mut().and_then(Queues::pop_control) {
            let message = core.pool.free_message(frame);
            core.lose_message(l, &message, DropReason::LINK_DOWN);
        }
        while let Some(packet) = core.pop_express(l, false) {
            self.drop_packet(core, l, packet, DropReason::LINK_DOWN);
        }
        for packet in core.held.of(l) {
            core.let_go(packet);
            self.drop_packet(core, l, packet, DropReason::LINK_DOWN);
        }
        let closed = core.ports[l].closed;
        core.ports[l].close(u8::MAX);
        self.flush(core, l, u8::MAX, DropReason::LINK_DOWN);
        core.ports[l].close(closed);
    }

    /// Brings a port up whose link works again.
    fn bring_up(&mut self, core: &mut Core, l: LinkId) {
        core.ports[l].down = false;
        core.arm(l); // what mechanisms have for it has waited
    }

    /// Drops a packet that is about to be enqueued at a port whose link is known to be down.
    #[cold]
    #[inline(never)]
    pub fn refuse_at_dead_port(&mut self, core: &mut Core, l: LinkId, packet: PacketId) {
        if core.pool[packet].kind != Kind::Control {
            core.catch_up(l);
            let (view, frame) = (core.view(l), core.pool[packet].frame);
            core.note_refusal(l, &view, packet, frame, Refusal { reason: DropReason::LINK_DOWN, room: false });
        }
        self.drop_packet(core, l, packet, DropReason::LINK_DOWN);
    }
}
