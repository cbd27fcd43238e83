//! NICs that ask their switch for pauses without need, as the scenario says: PFC storms. Source: RDMA-at-scale §4.3.

use super::Hosts;
use crate::core::message::packet_alone;
use crate::core::Core;
use fanin_scenario::Asking;
use fanin_switch::{Mechanisms, Pause, PRIORITIES};
use fanin_units::{HostId, NodeId, Time, TrafficClass};
use std::collections::{BTreeMap, VecDeque};

/// The timer of a host for its storm; flow 1 has no such timer.
pub const STORM: u64 = 11;

/// A NIC that asks for pauses.
#[derive(Debug)]
pub struct Storm {
    /// Times at which the NIC changes the classes for which it asks for pauses, each with these classes, in order.
    changes: VecDeque<Asking>,
    /// Classes for which it asks, a bit for each, and when it asks again.
    asked: u8,
    again: Time,
}

/// Storms by host.
pub type Storms = BTreeMap<HostId, Storm>;

impl Storm {
    /// The storm of a host, and the time when it begins.
    pub fn new(changes: Vec<Asking>) -> Option<(Time, Storm)> {
        let first = changes.first()?.0;
        Some((first, Storm { changes: changes.into(), asked: 0, again: Time::MAX }))
    }

    /// Moves the storm on to `now`: classes for which the NIC asked before, and those for which it asks now; `None`: nothing is
    /// due.
    fn advance(&mut self, now: Time) -> Option<(u8, u8)> {
        let before = self.asked;
        let mut due = self.again <= now;
        while let Some((_, asked)) = self.changes.front().copied().filter(|(at, _)| *at <= now) {
            self.changes.pop_front();
            (self.asked, due) = (asked, true);
        }
        due.then_some((before, self.asked))
    }
}

impl Hosts {
    /// Moves a storm at a host on: its NIC asks for other pauses, or repeats its request.
    pub fn storm(&mut self, core: &mut Core, host: HostId) {
        let nic = self.hosts[host].nic;
        let Some(storm) = self.storms.get_mut(&host) else { return };
        let Some((before, asked)) = storm.advance(core.now) else { return };
        let lasts = Pause::lasts(u16::MAX, core.ports[nic].rate);
        storm.again = if asked == 0 { Time::MAX } else { core.now + lasts / 2 };
        let next = storm.changes.front().map_or(Time::MAX, |(at, _)| *at).min(storm.again);
        if next < Time::MAX {
            core.set_timer(next, (NodeId(host.0), STORM));
        }
        let mut pause = Pause::default();
        for class in TrafficClass::all(PRIORITIES).filter(|class| class.is_in(before | asked)) {
            pause.0[class] = Some(if class.is_in(asked) { u16::MAX } else { 0 });
            if class.is_in(asked & !before) {
                core.note_ask(nic, class, None, false);
            }
        }
        self.ask_for(core, host, &pause);
    }

    /// Sends a frame that asks the switch for pauses, before all packets that wait at the NIC.
    fn ask_for(&mut self, core: &mut Core, host: HostId, pause: &Pause) {
        let Some(message) = Mechanisms::ask(pause) else { return };
        let nic = self.hosts[host].nic;
        self.pause_counts.frames += 1;
        let packet = core.pool.take_message(&packet_alone(&self.framing, &message));
        let start = Time::from_ps(core.links[nic].free_at.max(core.now.ps()));
        let (now, copy) = (core.now, core.pool.packet(packet));
        if let Some(capture) = core.ledger.tables.capture.as_deref_mut() {
            let result = capture.sent((now, start), host, &copy, None);
            core.check(result);
        }
        core.note_pause_sent(nic, false);
        core.catch_up(nic);
        let frame = core.pool[packet].frame;
        core.send(nic, packet, frame);
    }
}
