//! Pauses of a host's NIC by class (priority flow control): ready ends and packets of a closed class wait apart, in order.

use super::{Hosts, Ready};
use crate::core::Core;
use fanin_packet::PacketId;
use fanin_switch::{Gate, Pause, Waiting, Watch, WatchdogTimes};
use fanin_units::{HostId, NodeId, TrafficClass};
use std::collections::VecDeque;

/// The pauses of a NIC.
#[derive(Debug, Default)]
pub struct NicGate {
    gate: Gate,
    /// Ends and packets of paused classes that are ready, in order.
    pub held: VecDeque<Ready>,
    /// Number of held ends and packets when the watchdog last looked.
    seen: usize,
    /// Pauses that do not end, where the NIC has a watchdog.
    watch: Watch,
}

/// Counts of the pauses of all NICs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NicCounts {
    /// Storms: times that a watchdog found a class paused for too long, and that such a pause was over.
    pub storms: u64,
    pub storms_over: u64,
    /// Frames that asked switches for pauses, or ended them.
    pub frames: u64,
}

/// The timer of a host for the pauses of its NIC; flow 0 has no such timer.
pub const GATE: u64 = 7;
/// The timer of a host for changes of its link; flow 2 has no such timer.
pub const LINK: u64 = 19;
/// The timer of a host for its NIC's watchdog; flow 1 has no such timer.
pub const WATCH: u64 = 15;

impl Hosts {
    /// The switch asks a host's NIC to pause, or to go on.
    pub fn pause_nic(&mut self, core: &mut Core, host: HostId, pause: &Pause) {
        let rate = core.ports[self.hosts[host].nic].rate;
        core.note_pause_frame(self.hosts[host].nic, pause);
        let Some(gate) = self.hosts[host].gate.as_deref_mut() else { return };
        gate.gate.on_pause(core.now, rate, pause);
        self.update_gate(core, host);
    }

    /// Pauses have begun or may have ended.
    pub fn update_gate(&mut self, core: &mut Core, host: HostId) {
        let nic = self.hosts[host].nic;
        let Some(gate) = self.hosts[host].gate.as_deref_mut() else { return };
        if let Some(end) = gate.gate.next_end(core.now) {
            core.set_timer(end, (NodeId(host.0), GATE));
        }
        let paused = gate.gate.closed(core.now);
        let closed = match self.watchdog_times {
            Some(watchdog_times) => self.watch_pauses(core, host, watchdog_times, paused),
            None => paused,
        };
        let before = std::mem::replace(&mut self.hosts[host].closed, closed);
        if closed == before {
            return;
        }
        core.note_gate(nic, closed);
        if before & !closed != 0 {
            // Those that open go first; what is paused still is put aside again.
            let state = &mut self.hosts[host];
            let held = state.gate.as_deref_mut().map(|gate| std::mem::take(&mut gate.held)).unwrap_or_default();
            held.into_iter().rev().for_each(|ready| state.ready.push_front(ready));
        }
        self.run_nic(core, host);
    }

    /// Handles a change of its link that a host notices: when that is down, nobody pauses its NIC any more. What is ready is sent
    /// all the same and lost, as by a Linux host, whose queueing discipline then is one that drops. Source: Linux
    /// net/sched/sch_generic.c (`dev_deactivate`, `noop_enqueue`). Deviation: Linux's TCP also enters CWR (`__tcp_transmit_skb`),
    /// which halves a window that a timeout is about to take.
    #[cold]
    pub fn notice_link(&mut self, core: &mut Core, host: HostId) {
        let Some(notices) = self.notices.get_mut(&host) else { return };
        let mut down = false;
        while let Some(notice) = notices.front().copied().filter(|notice| notice.at <= core.now) {
            notices.pop_front();
            down |= !notice.up;
        }
        if let Some(next) = notices.front() {
            core.set_timer(next.at, (NodeId(host.0), LINK));
        }
        if let Some(gate) = self.hosts[host].gate.as_deref_mut().filter(|_| down) {
            gate.gate = Gate::default();
            self.update_gate(core, host);
        }
    }

    /// Takes ends and packets of paused classes out of the NIC's round.
    #[cold]
    #[inline(never)]
    pub fn put_paused_aside(&mut self, core: &mut Core, host: HostId) {
        let closed = self.hosts[host].closed;
        let ready = std::mem::take(&mut self.hosts[host].ready);
        let (held, open): (VecDeque<Ready>, VecDeque<Ready>) =
            ready.iter().partition(|ready| self.class(core, *ready).is_in(closed));
        let state = &mut self.hosts[host];
        state.ready = open.into_iter().collect();
        let mut changed = !held.is_empty();
        if let Some(gate) = state.gate.as_deref_mut() {
            changed |= gate.held.len() != gate.seen; // some of them have gone
            gate.held.extend(held);
        }
        if let Some(watchdog_times) = self.watchdog_times.filter(|_| changed) {
            self.watch_waiting(core, host, watchdog_times);
        }
    }

    /// Shows the watchdog which classes are paused; gives the ends and packets that wait for it.
    fn watch_pauses(&mut self, core: &mut Core, host: HostId, watchdog_times: WatchdogTimes, paused: u8) -> u8 {
        if let Some(gate) = self.hosts[host].gate.as_deref_mut() {
            gate.watch.paused(paused);
        }
        self.watch_waiting(core, host, watchdog_times);
        let storm = self.hosts[host].gate.as_deref().map_or(0, |gate| gate.watch.storm());
        paused & !storm
    }

    /// Shows the watchdog which classes wait.
    fn watch_waiting(&mut self, core: &mut Core, host: HostId, watchdog_times: WatchdogTimes) {
        let waiting = self.waiting(core, host);
        let Some(gate) = self.hosts[host].gate.as_deref_mut() else { return };
        gate.seen = gate.held.len();
        if let Some(look) = gate.watch.update(watchdog_times, core.now, &waiting) {
            core.set_timer(look, (NodeId(host.0), WATCH));
        }
    }

    /// Lets the watchdog check for a pause that has lasted too long, or a storm that is over.
    pub fn look_at_pauses(&mut self, core: &mut Core, host: HostId) {
        let Some(watchdog_times) = self.watchdog_times else { return };
        let waiting = self.waiting(core, host);
        let Some(gate) = self.hosts[host].gate.as_deref_mut() else { return };
        let (found, look) = gate.watch.look(watchdog_times, core.now, &waiting);
        self.pause_counts.storms += u64::from(found.begun.count_ones());
        self.pause_counts.storms_over += u64::from(found.over.count_ones());
        if let Some(look) = look {
            core.set_timer(look, (NodeId(host.0), WATCH));
        }
        self.update_gate(core, host);
    }

    /// Number of ready ends and packets at a NIC, by class.
    fn waiting(&self, core: &Core, host: HostId) -> Waiting {
        let state = &self.hosts[host];
        let held = state.gate.as_deref().into_iter().flat_map(|gate| &gate.held);
        let mut waiting = Waiting::default();
        for ready in held.copied().chain(state.ready.iter()) {
            waiting[self.class(core, ready)] += 1;
        }
        waiting
    }

    fn class(&self, core: &Core, ready: Ready) -> TrafficClass {
        let class = match ready {
            Ready::Packet(packet) => core.pool[packet].class,
            Ready::End(id) => self.ends[id].sends.class,
        };
        TrafficClass(class.0 & 7)
    }

    /// Packets that wait for the end of a pause.
    pub fn paused_packets(&self) -> impl Iterator<Item = PacketId> + '_ {
        let held = self.hosts.iter().flat_map(|host| host.gate.as_deref()).flat_map(|gate| &gate.held);
        held.filter_map(|ready| match ready {
            Ready::Packet(packet) => Some(*packet),
            Ready::End(_) => None,
        })
    }
}
