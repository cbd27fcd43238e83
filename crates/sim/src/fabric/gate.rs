//! Pauses of ports by class: a closed class waits, whatever the wire does.

use super::link::FarEnd;
use super::switch::Fabric;
use crate::core::Core;
use fanin_switch::{Hooks, Pause, PortNo, PRIORITIES};
use fanin_telemetry::PauseRow;
use fanin_topology::circle;
use fanin_units::{Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Why a neighbour asks for a pause.
#[derive(Clone, Copy, Debug)]
struct Ask {
    /// Since when it wants to.
    at: Time,
    /// The link for which most packets waited there, and whether that had been paused since its queue was last empty.
    behind: Option<usize>,
    held_up: bool,
}

/// The pauses of a port that may be paused, a switch's or a NIC.
#[derive(Debug, Default)]
pub struct PortGate {
    /// The link in the other direction, and whether what sends here obeys.
    reverse: usize,
    obeys: bool,
    /// What the neighbour has last asked for, by class; that of frames on their way, in order; and of the last that has arrived.
    asks: [Option<Ask>; PRIORITIES],
    on_the_way: VecDeque<[Option<Ask>; PRIORITIES]>,
    arrived: [Option<Ask>; PRIORITIES],
    /// A bit for each class that waits.
    pub closed: u8,
    /// Since when, why, and the frames that asked for it.
    since: [Time; PRIORITIES],
    why: [Option<Ask>; PRIORITIES],
    frames: [u32; PRIORITIES],
    /// Pauses so far, and their time, by class.
    pub pauses: [u64; PRIORITIES],
    pub paused: [Span; PRIORITIES],
}

/// A pause that has ended.
struct Ended {
    class: usize,
    since: Time,
    ask: Option<Ask>,
    frames: u32,
}

impl PortGate {
    /// A port that nobody has paused yet. `reverse`: the link that leads back.
    pub fn new(reverse: usize, obeys: bool) -> Self {
        PortGate { reverse, obeys, ..PortGate::default() }
    }

    fn pause(&self, class: usize) -> Ended {
        Ended { class, since: self.since[class], ask: self.why[class], frames: self.frames[class] }
    }

    /// Sets which classes wait; gives those that do no longer.
    fn set(&mut self, now: Time, closed: u8) -> Vec<Ended> {
        let mut ended = Vec::new();
        let changed = std::mem::replace(&mut self.closed, closed) ^ closed;
        for class in (0..PRIORITIES).filter(|class| changed >> class & 1 != 0) {
            if closed >> class & 1 != 0 {
                (self.since[class], self.why[class], self.frames[class]) = (now, self.arrived[class], 1);
                self.pauses[class] += 1;
            } else {
                self.paused[class] += now.since(self.since[class]);
                ended.push(self.pause(class));
            }
        }
        ended
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
        for ended in gate.set(self.now, closed) {
            self.write_pause(l, &ended, Some(self.now));
        }
    }

    /// The switch at port `l` wants its neighbour there to pause a class from now on, mostly for what waits at `behind`.
    pub fn note_ask(&mut self, l: usize, class: u8, behind: Option<usize>, held_up: bool) {
        let at = self.now;
        if let Some(gate) = self.gate_of_neighbour(l) {
            gate.asks[usize::from(class)] = Some(Ask { at, behind, held_up });
        }
    }

    /// A frame with the pauses of all classes leaves port `l` for the neighbour there.
    pub fn note_pause_sent(&mut self, l: usize) {
        if let Some(gate) = self.gate_of_neighbour(l).filter(|gate| gate.obeys) {
            gate.on_the_way.push_back(gate.asks);
        }
    }

    /// Such a frame has arrived for port `l`; frames overtake none.
    pub fn note_pause_frame(&mut self, l: usize, pause: &Pause) {
        let Some(gate) = self.gates.get_mut(&l) else { return };
        gate.arrived = gate.on_the_way.pop_front().unwrap_or_default();
        for class in (0..PRIORITIES).filter(|class| pause.0[*class].is_some_and(|quanta| quanta > 0)) {
            gate.frames[class] += u32::from(gate.closed >> class & 1 != 0);
        }
    }

    fn gate_of_neighbour(&mut self, l: usize) -> Option<&mut PortGate> {
        let back = self.gates.get(&l)?.reverse;
        self.gates.get_mut(&back)
    }

    /// Writes pauses that last as the run ends.
    pub fn end_pauses(&mut self) {
        let mut last = Vec::new();
        for (l, gate) in &mut self.gates {
            for class in (0..PRIORITIES).filter(|class| gate.closed >> class & 1 != 0) {
                gate.paused[class] += self.now.since(gate.since[class]);
                last.push((*l, gate.pause(class)));
            }
        }
        last.into_iter().for_each(|(l, pause)| self.write_pause(l, &pause, None));
    }

    fn write_pause(&mut self, l: usize, pause: &Ended, end: Option<Time>) {
        let row = PauseRow {
            port: self.ports[l].name.clone(),
            class: pause.class as u8,
            start_ps: pause.since.ps(),
            end_ps: end.map(Time::ps),
            asked_ps: pause.ask.map(|ask| ask.at.ps()),
            behind: pause.ask.and_then(|ask| ask.behind).map(|l| self.ports[l].name.clone()),
            held_up: pause.ask.is_some_and(|ask| ask.held_up),
            frames: pause.frames,
        };
        let result = self.ledger.tables.pauses.push(row);
        self.check(result);
    }
}

impl Fabric {
    /// Paused ports of switches with packets that wait for each other, the last for the first; none where some may still go on.
    ///
    /// A class of a port is stuck while all that the neighbour counts of it waits for ports that are stuck themselves: what is left when
    /// all others are taken away, again and again.
    pub fn circle_of_pauses(&self, core: &Core) -> Option<Vec<usize>> {
        let mut stuck: BTreeMap<(usize, u8), Vec<(usize, u8)>> = BTreeMap::new();
        for (l, gate) in &core.gates {
            for class in (0..PRIORITIES as u8).filter(|class| gate.closed >> class & 1 != 0) {
                let behind = self.waits_behind(core, *l, class);
                if !behind.is_empty() {
                    stuck.insert((*l, class), behind.into_iter().map(|l| (l, class)).collect());
                }
            }
        }
        loop {
            let open = |behind: &[(usize, u8)]| behind.iter().any(|next| !stuck.contains_key(next));
            let goes_on: Vec<_> = stuck.iter().filter(|(_, behind)| open(behind)).map(|(at, _)| *at).collect();
            if goes_on.is_empty() {
                break;
            }
            goes_on.iter().for_each(|at| drop(stuck.remove(at)));
        }
        let circle = circle(stuck.keys().copied(), |at| stuck.get(&at).cloned().unwrap_or_default())?;
        Some(circle.into_iter().map(|(l, _)| l).collect())
    }

    /// The ports at the far end of a switch's port for which packets of a class wait that came over it; none where the class does not
    /// wait here, or not for ever.
    fn waits_behind(&self, core: &Core, l: usize, class: u8) -> Vec<usize> {
        // NICs have no explicit queue: nobody waits for them.
        let (Some(explicit), FarEnd::Switch(far)) = (core.ports[l].explicit.as_deref(), core.links[l].far_end()) else {
            return Vec::new();
        };
        let (here, port) = core.switch_port(l);
        let own = &self.switches[here as usize].mechanisms;
        let waits = !explicit.queues[explicit.class_of(class)].is_empty() || own.iter().any(|m| m.holds_for(port, class));
        if !waits || own.iter().any(|m| m.breaks_deadlocks()) {
            return Vec::new();
        }
        let far = &self.switches[far as usize];
        let behind = far.mechanisms.iter().flat_map(|m| m.waits_behind(PortNo(self.ingress[l]), class));
        behind.map(|port| far.ports[port.index()] as usize).collect()
    }

    /// From now on these classes of a switch's port wait, and all others may send.
    pub fn gate(&mut self, core: &mut Core, l: usize, closed: u8) {
        core.make_explicit(l);
        core.note_gate(l, closed);
        let free = core.links[l].free_at <= core.now.ps();
        let turns = self.switches[core.switch_port(l).0 as usize].hooks.any(Hooks::TURN);
        let Some(explicit) = core.ports[l].explicit.as_deref_mut() else { return };
        explicit.close(closed);
        if free && !explicit.armed {
            self.departure(core, l);
        } else if turns {
            core.arm(l); // what mechanisms hold may be of a class that goes on
        } else {
            self.arm_if_waiting(core, l);
        }
    }
}
