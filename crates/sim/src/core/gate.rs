//! Record of pauses: the classes of a port that were paused, the times, and the reasons.

use super::Core;
use crate::ledger::kind;
use fanin_packet::{Header, PacketId};
use fanin_switch::{Mechanisms, Pause, PRIORITIES};
use fanin_telemetry::PauseRow;
use fanin_units::{LinkId, Span, Time, TrafficClass};
use std::collections::VecDeque;

/// A neighbour's request for a pause, and its reason.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Time since which the neighbour wants the pause.
    at: Time,
    /// Link for which most packets waited at the neighbour; `held_up`: that link's class had been paused since its queue was last
    /// empty.
    behind: Option<LinkId>,
    held_up: bool,
}

/// Pauses that a frame asks for, by class, with their reasons.
pub type Asks = [Option<Ask>; PRIORITIES];

/// The pauses of a port that may be paused, a switch's or a NIC.
#[derive(Debug, Default)]
pub struct PortGate {
    /// Link in the other direction, and whether its sender obeys pauses.
    reverse: LinkId,
    obeys: bool,
    /// Pauses that the neighbour asks for, by class: the latest, those of frames on their way, in order, and those of the last
    /// frame that has arrived.
    asks: Asks,
    on_the_way: VecDeque<Asks>,
    arrived: Asks,
    /// A bit for each class that waits.
    pub closed: u8,
    /// Begin of the present pause of each class, its reason, and the frames that asked for it.
    since: [Time; PRIORITIES],
    why: [Option<Ask>; PRIORITIES],
    frames: [u32; PRIORITIES],
    /// Number of pauses so far, and their time, by class.
    pub pauses: [u64; PRIORITIES],
    pub paused: [Span; PRIORITIES],
}

/// A pause that has ended.
struct Ended {
    class: TrafficClass,
    since: Time,
    ask: Option<Ask>,
    frames: u32,
}

impl PortGate {
    /// A port that nobody has paused yet. `reverse`: the link that leads back.
    pub fn new(reverse: LinkId, obeys: bool) -> Self {
        PortGate { reverse, obeys, ..PortGate::default() }
    }

    fn pause(&self, class: TrafficClass) -> Ended {
        Ended { class, since: self.since[class], ask: self.why[class], frames: self.frames[class] }
    }

    /// Sets the classes that are paused; gives the pauses that have ended.
    fn set(&mut self, now: Time, closed: u8) -> Vec<Ended> {
        let mut ended = Vec::new();
        let changed = std::mem::replace(&mut self.closed, closed) ^ closed;
        for class in TrafficClass::all(PRIORITIES).filter(|class| class.is_in(changed)) {
            if class.is_in(closed) {
                (self.since[class], self.why[class], self.frames[class]) = (now, self.arrived[class], 1);
                self.pauses[class] += 1;
            } else {
                self.paused[class] += now.since(self.since[class]);
                ended.push(self.pause(class));
            }
        }
        ended
    }

    /// Time since which the classes that are paused have all been paused.
    pub fn closed_since(&self) -> Time {
        let waiting = TrafficClass::all(PRIORITIES).filter(|class| class.is_in(self.closed));
        waiting.map(|class| self.since[class]).max().unwrap_or(Time::MAX)
    }
}

impl Core {
    /// Notes which classes of a port wait from now on.
    pub fn note_gate(&mut self, l: LinkId, closed: u8) {
        let Some(gate) = self.gates.get_mut(&l) else { return };
        for ended in gate.set(self.now, closed) {
            self.write_pause(l, &ended, Some(self.now));
        }
    }

    /// Notes that the switch at port `l` wants its neighbour there to pause a class, mostly for packets that wait at `behind`.
    pub fn note_ask(&mut self, l: LinkId, class: TrafficClass, behind: Option<LinkId>, held_up: bool) {
        let at = self.now;
        if let Some(gate) = self.gate_of_neighbour(l) {
            gate.asks[class] = Some(Ask { at, behind, held_up });
        }
    }

    /// Notes that a frame with the pauses of all classes is on its way to the neighbour at port `l`. `instead`: it takes the
    /// place of the last one, which has not left.
    pub fn note_pause_sent(&mut self, l: LinkId, instead: bool) {
        let Some(gate) = self.gate_of_neighbour(l).filter(|gate| gate.obeys) else { return };
        if instead {
            gate.on_the_way.pop_back();
        }
        gate.on_the_way.push_back(gate.asks);
    }

    /// Records that a pause frame has arrived for port `l`; frames overtake none.
    pub fn note_pause_frame(&mut self, l: LinkId, pause: &Pause) {
        let Some(gate) = self.gates.get_mut(&l) else { return };
        gate.arrived = gate.on_the_way.pop_front().unwrap_or_default();
        for class in TrafficClass::all(PRIORITIES).filter(|class| pause.0[*class].is_some_and(|quanta| quanta > 0)) {
            gate.frames[class] += u32::from(class.is_in(gate.closed));
        }
    }

    /// Notes that a pause frame does not arrive from port `l`: the first one on the wire, or the one that has `waited` there.
    pub fn note_pause_lost(&mut self, l: LinkId, waited: bool) {
        let Some(gate) = self.gate_of_neighbour(l).filter(|gate| gate.obeys) else { return };
        let _ = if waited { gate.on_the_way.pop_back() } else { gate.on_the_way.pop_front() };
    }

    /// The reasons of a frame with pauses that leaves by port `l` for a neighbour in another part.
    pub fn export_pause(&mut self, l: LinkId, packet: PacketId) -> Option<Asks> {
        let Header::Control(control) = self.pool.header(packet) else { return None };
        Mechanisms::pause(control, self.pool[packet].header)?;
        self.gate_of_neighbour(l).filter(|gate| gate.obeys)?.on_the_way.pop_front()
    }

    /// A frame with pauses is on its way from another part over link `l`.
    pub fn import_pause(&mut self, l: LinkId, asks: Asks) {
        if let Some(gate) = self.gate_of_neighbour(l) {
            gate.on_the_way.push_back(asks);
        }
    }

    fn gate_of_neighbour(&mut self, l: LinkId) -> Option<&mut PortGate> {
        let back = self.gates.get(&l)?.reverse;
        self.gates.get_mut(&back)
    }

    /// Writes pauses that last as the run ends.
    pub fn end_pauses(&mut self) {
        let mut last = Vec::new();
        for (l, gate) in &mut self.gates {
            for class in TrafficClass::all(PRIORITIES).filter(|class| class.is_in(gate.closed)) {
                gate.paused[class] += self.now.since(gate.since[class]);
                last.push((*l, gate.pause(class)));
            }
        }
        for (l, pause) in last {
            self.ledger.note_event(self.now, kind::END, [u64::from(l.0), u64::from(pause.class.0)]);
            self.write_pause(l, &pause, None);
        }
    }

    fn write_pause(&mut self, l: LinkId, pause: &Ended, end: Option<Time>) {
        let row = PauseRow {
            port: self.ports[l].name.clone(),
            class: pause.class.0,
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
