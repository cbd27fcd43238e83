//! Pauses of switch ports by class: a closed class waits, whatever the wire does; and deadlocks, paused ports that wait for each other.

use super::Fabric;
use crate::core::link::{flag, FarEnd};
use crate::core::Core;
use fanin_switch::{Hooks, PortNo, PRIORITIES};
use fanin_topology::circle;
use fanin_units::{LinkId, TrafficClass};
use std::collections::BTreeMap;

impl Fabric {
    /// Paused ports of switches whose packets wait for each other in a circle, the last for the first; `None`: some may still go
    /// on.
    ///
    /// A class of a port is stuck while all that the neighbour counts of it waits for ports that are stuck themselves: what is left when
    /// all others are taken away, again and again.
    pub fn circle_of_pauses(&mut self, core: &mut Core) -> Option<Vec<LinkId>> {
        core.links.ids().for_each(|l| core.catch_up(l));
        self.notify(core);
        let mut stuck: BTreeMap<(LinkId, TrafficClass), Vec<(LinkId, TrafficClass)>> = BTreeMap::new();
        for (l, gate) in &core.gates {
            for class in TrafficClass::all(PRIORITIES).filter(|class| class.is_in(gate.closed)) {
                let behind = self.waits_behind(core, *l, class);
                if !behind.is_empty() {
                    stuck.insert((*l, class), behind.into_iter().map(|l| (l, class)).collect());
                }
            }
        }
        loop {
            let open = |behind: &[(LinkId, TrafficClass)]| behind.iter().any(|next| !stuck.contains_key(next));
            let goes_on: Vec<_> = stuck.iter().filter(|(_, behind)| open(behind)).map(|(at, _)| *at).collect();
            if goes_on.is_empty() {
                break;
            }
            goes_on.iter().for_each(|at| drop(stuck.remove(at)));
        }
        let circle = circle(stuck.keys().copied(), |at| stuck.get(&at).cloned().unwrap_or_default())?;
        Some(circle.into_iter().map(|(l, _)| l).collect())
    }

    /// Ports at the far end of a switch's port for which packets of a class wait that came over it; none where the class does not
    /// wait here, or not for ever.
    fn waits_behind(&self, core: &Core, l: LinkId, class: TrafficClass) -> Vec<LinkId> {
        // NICs have no such queues: nobody waits for them.
        let at = &core.ports[l];
        let (Some(queues), FarEnd::Switch(far)) = (at.queues.as_deref(), core.links[l].far_end()) else { return Vec::new() };
        let (here, port) = core.switch_port(l);
        let own = &self.switches[here].mechanisms;
        let waits = !queues.of(at.class_of(class)).is_empty()
            || own.iter().any(|m| m.holds(|m| m.holds_for(port, class)).unwrap_or(false));
        if !waits || own.iter().any(|m| m.packet_memory(|m| m.breaks_deadlocks()).unwrap_or(false)) {
            return Vec::new();
        }
        let far = &self.switches[far];
        let behind = far
            .mechanisms
            .iter()
            .flat_map(|m| m.packet_memory(|m| m.waits_behind(PortNo(self.ingress[l]), class)).unwrap_or_default());
        behind.map(|port| far.ports[port.index()]).collect()
    }

    /// Pauses these classes of a switch's port, and lets all others send.
    pub fn gate(&mut self, core: &mut Core, l: LinkId, closed: u8) {
        let hooks = self.switches[core.switch_port(l).0].hooks;
        if hooks.any(Hooks::EGRESS) {
            core.make_events(l); // departures from a paused port are seen
        } else {
            core.leave_fast_path(l);
        }
        core.note_gate(l, closed);
        let (free, events) = (core.links[l].free_at <= core.now.ps(), core.links[l].flags & flag::EVENTS != 0);
        let port = &mut core.ports[l];
        port.close(closed);
        let armed = port.queues.as_deref().is_some_and(|queues| queues.armed);
        if !events {
            core.go_on(l);
        } else if free && !armed {
            self.departure(core, l);
        } else if hooks.any(Hooks::TURN) {
            core.arm(l); // what mechanisms hold may be of a class that goes on
        } else {
            self.arm_if_waiting(core, l);
        }
        self.notify(core);
    }
}
