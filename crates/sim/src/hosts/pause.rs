//! Pauses of a host's NIC by class (priority flow control): what is ready of a closed class waits apart, in its order.

use super::{Hosts, Ready};
use crate::core::Core;
use fanin_packet::PacketId;
use fanin_switch::{Gate, Pause};
use std::collections::VecDeque;

/// The pauses of a NIC.
#[derive(Debug, Default)]
pub struct NicGate {
    gate: Gate,
    /// A bit for each class that waits.
    pub closed: u8,
    /// What has had its turn meanwhile.
    pub held: VecDeque<Ready>,
}

/// What of a host's timers is that of its NIC's pauses: flow 0 has no such timer.
pub const GATE: u64 = 7;

impl Hosts {
    /// The switch asks a host's NIC to pause, or to go on.
    pub fn pause_nic(&mut self, core: &mut Core, host: u32, pause: &Pause) {
        let rate = core.ports[self.hosts[host as usize].nic as usize].rate;
        let Some(gate) = self.hosts[host as usize].gate.as_deref_mut() else { return };
        gate.gate.on_pause(core.now, rate, pause);
        self.update_gate(core, host);
    }

    /// Pauses have begun or may have ended.
    pub fn update_gate(&mut self, core: &mut Core, host: u32) {
        let nic = self.hosts[host as usize].nic as usize;
        let Some(gate) = self.hosts[host as usize].gate.as_deref_mut() else { return };
        if let Some(end) = gate.gate.next_end(core.now) {
            core.set_timer(end, (host, GATE));
        }
        let closed = gate.gate.closed(core.now);
        if closed == gate.closed {
            return;
        }
        let opens = gate.closed & !closed != 0;
        gate.closed = closed;
        core.note_gate(nic, closed);
        if opens {
            let held = std::mem::take(&mut gate.held);
            let (still, again): (VecDeque<Ready>, VecDeque<Ready>) =
                held.into_iter().partition(|ready| closed >> self.class(core, *ready) & 1 != 0);
            let host = &mut self.hosts[host as usize];
            again.into_iter().rev().for_each(|ready| host.ready.push_front(ready));
            if let Some(gate) = host.gate.as_deref_mut() {
                gate.held = still;
            }
        }
        self.run_nic(core, host);
    }

    /// Whether the class of what is next at a NIC waits: it is put aside then.
    pub fn hold_back(&mut self, core: &Core, host: u32, ready: Ready) -> bool {
        let Some(closed) = self.hosts[host as usize].gate.as_deref().map(|gate| gate.closed) else { return false };
        if closed == 0 || closed >> self.class(core, ready) & 1 == 0 {
            return false;
        }
        if let Some(gate) = self.hosts[host as usize].gate.as_deref_mut() {
            gate.held.push_back(ready);
        }
        true
    }

    fn class(&self, core: &Core, ready: Ready) -> u8 {
        let class = match ready {
            Ready::Packet(packet) => core.pool[packet].class,
            Ready::Turn(id) => self.ends[id].class,
        };
        class & 7
    }

    /// Packets that wait for the end of a pause.
    pub fn paused_packets(&self) -> impl Iterator<Item = PacketId> + '_ {
        let held = self.hosts.iter().flat_map(|host| host.gate.as_deref()).flat_map(|gate| &gate.held);
        held.filter_map(|ready| match ready {
            Ready::Packet(packet) => Some(*packet),
            Ready::Turn(_) => None,
        })
    }
}
