//! Pauses of ports by class: a closed class waits, whatever the wire does.

use super::link::FarEnd;
use super::switch::Fabric;
use crate::core::Core;
use fanin_switch::PRIORITIES;
use fanin_telemetry::PauseRow;
use fanin_topology::circle;
use fanin_units::{Span, Time};

/// The pauses of a port that may be paused, a switch's or a NIC.
#[derive(Debug, Default)]
pub struct PortGate {
    /// A bit for each class that waits.
    pub closed: u8,
    /// Since when.
    since: [Time; PRIORITIES],
    /// Pauses so far, and their time, by class.
    pub pauses: [u64; PRIORITIES],
    pub paused: [Span; PRIORITIES],
}

impl PortGate {
    /// Sets which classes wait; `ended` gets each that does no longer, and since when it has.
    fn set(&mut self, now: Time, closed: u8, mut ended: impl FnMut(usize, Time)) {
        let changed = std::mem::replace(&mut self.closed, closed) ^ closed;
        for class in (0..PRIORITIES).filter(|class| changed >> class & 1 != 0) {
            if closed >> class & 1 != 0 {
                self.since[class] = now;
                self.pauses[class] += 1;
            } else {
                self.paused[class] += now.since(self.since[class]);
                ended(class, self.since[class]);
            }
        }
    }

    /// Since when the classes that wait have all been waiting.
    pub fn closed_since(&self) -> Time {
        let waiting = (0..PRIORITIES).filter(|class| self.closed >> class & 1 != 0);
        waiting.map(|class| self.since[class]).max().unwrap_or(Time::MAX)
    }
}

impl Core {
    /// Notes which classes of a port wait from now on.
    pub fn note_gate(&mut self, l: usize, closed: u8) {
        let Some(gate) = self.gates.get_mut(&l) else { return };
        let mut rows = Vec::new();
        gate.set(self.now, closed, |class, since| rows.push((class, since)));
        for (class, since) in rows {
            self.write_pause(l, class, since, Some(self.now));
        }
    }

    /// Writes pauses that last as the run ends.
    pub fn end_pauses(&mut self) {
        let mut last = Vec::new();
        for (l, gate) in &mut self.gates {
            for class in (0..PRIORITIES).filter(|class| gate.closed >> class & 1 != 0) {
                gate.paused[class] += self.now.since(gate.since[class]);
                last.push((*l, class, gate.since[class]));
            }
        }
        last.into_iter().for_each(|(l, class, since)| self.write_pause(l, class, since, None));
    }

    fn write_pause(&mut self, l: usize, class: usize, since: Time, end: Option<Time>) {
        let row =
            PauseRow { port: self.ports[l].name.clone(), class: class as u8, start_ps: since.ps(), end_ps: end.map(Time::ps) };
        let result = self.ledger.tables.pauses.push(row);
        self.check(result);
    }
}

impl Fabric {
    /// Paused ports of switches with packets that wait, each of which leads to the switch of the next, and the last to that of the
    /// first; none where there is no such circle.
    pub fn circle_of_pauses(&self, core: &Core) -> Option<Vec<usize>> {
        let waits = |l: usize| {
            let explicit = core.ports[l].explicit.as_deref();
            explicit.is_some_and(|explicit| explicit.closed != 0 && explicit.packets > 0 && !explicit.has_next())
        };
        let after = |l: usize| match core.links[l].far_end() {
            FarEnd::Switch(s) => self.switches[s as usize].ports.iter().map(|l| *l as usize).filter(|l| waits(*l)).collect(),
            FarEnd::Host(_) => Vec::new(),
        };
        circle((0..core.ports.len()).filter(|l| waits(*l)), after)
    }

    /// From now on these classes of a switch's port wait, and all others may send.
    pub fn gate(&mut self, core: &mut Core, l: usize, closed: u8) {
        core.make_explicit(l);
        core.note_gate(l, closed);
        let free = core.links[l].free_at <= core.now.ps();
        let Some(explicit) = core.ports[l].explicit.as_deref_mut() else { return };
        explicit.close(closed);
        if free && !explicit.armed {
            self.departure(core, l);
        } else {
            self.arm_if_waiting(core, l);
        }
    }
}
