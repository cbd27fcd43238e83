//! The parts of a run that has ended, put together: one world, as if it had simulated the whole network.

use crate::ledger::Ledger;
use crate::world::World;
use fanin_params::Counters;
use fanin_units::{LinkId, SwitchId};

/// Puts all parts into the first, with a ledger of the whole. All are wound up.
pub fn gather(whole: &mut World, others: impl Iterator<Item = World>, ledger: Ledger) {
    let mut own = std::mem::replace(&mut whole.core.ledger, ledger);
    whole.core.ledger.absorb(&mut own);
    for mut part in others {
        take_nodes(whole, &mut part);
        whole.core.ledger.absorb(&mut part.core.ledger);
        for (l, fault) in &part.core.faults {
            if let Some(known) = whole.core.faults.get_mut(l) {
                known.counts.add(&fault.counts);
            }
        }
        whole.hosts.absorb(&mut part.hosts);
        whole.core.pool.absorb(&part.core.pool);
        // All have generated the same flows, each with the ranks of its hosts.
        whole.traffic.absorb_jobs(&mut part.traffic);
    }
    whole.core.part = None;
}

fn take_nodes(whole: &mut World, part: &mut World) {
    for l in (0..whole.core.links.len() as u32).map(LinkId) {
        if part.core.has_port(l) {
            std::mem::swap(&mut whole.core.ports[l], &mut part.core.ports[l]);
            whole.core.links.take_counters(l, &part.core.links[l]);
            if let Some(gate) = part.core.gates.remove(&l) {
                whole.core.gates.insert(l, gate);
            }
        }
    }
    for s in (0..whole.fabric.switches.len() as u32).map(SwitchId) {
        if part.core.part.as_deref().is_some_and(|part| part.has_switch(s)) {
            std::mem::swap(&mut whole.fabric.switches[s], &mut part.fabric.switches[s]);
            if !whole.fabric.crossbars.is_empty() {
                std::mem::swap(&mut whole.fabric.crossbars[s], &mut part.fabric.crossbars[s]);
            }
        }
    }
}
