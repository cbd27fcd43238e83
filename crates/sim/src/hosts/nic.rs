//! The NIC that the ends of a host share: the round of ready ends, and the wire.

use super::ends::EndId;
use super::follow::observe_sent;
use super::pause::NicGate;
use super::round::Round;
use super::rules::{Transmit, Used};
use super::tx_queue::{drop_at_host, Queued};
use super::Hosts;
use crate::core::Core;
use crate::ledger::kind;
use fanin_packet::PacketId;
use fanin_units::{HostId, LinkId, Time};

/// Owner of a transmission opportunity at a NIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ready {
    /// A packet that is made already.
    Packet(PacketId),
    /// An end that may send data.
    End(EndId),
}

/// A host's NIC, one cache line.
#[repr(align(64))]
pub struct Host {
    /// The NIC's output port.
    pub nic: LinkId,
    pub ready: Round,
    /// True if the time of the NIC's next transmission opportunity is known: as an event, or because its link is
    /// [followed](crate::core::link::Link::is_followed).
    pub armed: bool,
    /// True if the NIC's transmission opportunities are always events.
    pub watched: bool,
    /// True if the NIC's transmission opportunities are events for now: an end is in the round that may set a timeout before
    /// anybody else would know of its opportunity.
    pub hasty: bool,
    /// Classes that the switch has paused, a bit for each.
    pub closed: u8,
    /// State of pauses, where the switch may pause classes.
    pub gate: Option<Box<NicGate>>,
}

impl Host {
    /// Lets the ends in the round go on when the wire is free, which it is not now.
    ///
    /// That is no event of its own where nothing depends on it before the last packet on the wire arrives, or something else happens at
    /// this host: then it is [caught up with](Hosts::catch_up).
    #[inline(always)]
    pub fn wait_for_wire(&mut self, core: &mut Core) {
        if !self.armed {
            self.armed = true;
            let link = &mut core.links[self.nic];
            if self.watched || self.hasty {
                core.wheel.set(self.nic.0, Time::from_ps(link.free_at));
            } else {
                link.follow();
            }
        }
    }

    /// Adds an end to the round.
    #[inline(always)]
    pub fn join(&mut self, id: EndId) {
        if self.ready.is_empty() {
            self.hasty = false;
        }
        self.ready.push_back(Ready::End(id));
    }

    /// True if the NIC can serve its round now: the wire is free, or ends of paused classes are to be put aside first.
    #[inline(always)]
    pub fn takes_now(&self, core: &Core) -> bool {
        self.closed != 0 || core.links[self.nic].free_at <= core.now.ps()
    }

    /// True where a packet would go onto the wire at once.
    #[inline(always)]
    pub fn is_idle(&self, core: &Core) -> bool {
        self.ready.is_empty() && self.closed == 0 && core.links[self.nic].free_at <= core.now.ps()
    }

    /// Makes transmission opportunities events, until nobody is ready.
    #[cold]
    #[inline(never)]
    pub fn hurry(&mut self, core: &mut Core) {
        self.hasty = true;
        let link = &mut core.links[self.nic];
        if link.is_followed() {
            link.unfollow();
            core.wheel.set(self.nic.0, Time::from_ps(link.free_at));
        }
    }
}

impl Hosts {
    /// Gives an end that found its NIC idle its transmission opportunity.
    #[inline(always)]
    pub(super) fn transmit_at_once(&mut self, core: &mut Core, host: HostId, id: EndId) {
        let used = self.apply_transmit(core, id);
        self.after_transmission(core, host, id, used);
    }

    /// An end that found its NIC idle has had its transmission opportunity.
    #[inline(always)]
    pub(super) fn after_transmission(&mut self, core: &mut Core, host: HostId, id: EndId, used: Used) {
        match used {
            Used::All => {}
            Used::Over => self.end_source(core, id),
            Used::TsqThrottled => self.hosts[host].ready.push_back(Ready::End(id)),
        }
        self.run_nic(core, host);
    }

    /// The transmission opportunity of an end.
    #[inline(always)]
    fn transmit(&mut self, core: &mut Core, id: EndId) -> Used {
        let used = self.apply_transmit(core, id);
        if used == Used::Over {
            self.end_source(core, id);
        }
        used
    }

    /// Applies a transmission opportunity in a function of its own: what callers keep would not stay in registers.
    #[inline(never)]
    fn apply_transmit(&mut self, core: &mut Core, id: EndId) -> Used {
        self.apply(core, id, Transmit)
    }

    /// Lets the NIC send what is ready, as far as the wire has room.
    #[inline(always)]
    pub(super) fn run_nic(&mut self, core: &mut Core, host: HostId) {
        let state = &mut self.hosts[host];
        if state.ready.is_empty() {
            return;
        }
        if self.tx_queues.is_some() || state.takes_now(core) {
            return self.drive_nic(core, host);
        }
        state.wait_for_wire(core);
    }

    /// Uses the transmission opportunities that a host's NIC would have had by now, before anything else happens at the host.
    #[inline(always)]
    pub fn catch_up(&mut self, core: &mut Core, host: HostId) {
        let state = &self.hosts[host];
        if state.armed {
            self.catch_up_turns(core, host);
        }
    }

    /// [`Hosts::catch_up`] of a NIC that waits for its wire.
    #[inline(never)]
    pub fn catch_up_turns(&mut self, core: &mut Core, host: HostId) {
        let nic = self.hosts[host].nic;
        let now = core.now;
        while self.hosts[host].armed {
            let link = &core.links[nic];
            if link.free_at > now.ps() || !link.is_followed() {
                break;
            }
            core.now = Time::from_ps(link.free_at);
            match self.hosts[host].ready.pop_front() {
                None => {}
                Some(Ready::Packet(packet)) => self.transmit_made(core, host, packet),
                Some(Ready::End(id)) => drop(self.transmit(core, id)),
            }
            let state = &mut self.hosts[host];
            if state.ready.is_empty() {
                state.armed = false;
                core.links[nic].unfollow();
            }
        }
        core.now = now;
        debug_assert!(core.timers.next() >= now, "a timeout before the transmission opportunity that set it was noticed");
    }

    /// [`Hosts::catch_up`] of all hosts; true where any had a transmission opportunity.
    pub fn catch_up_all(&mut self, core: &mut Core) -> bool {
        let sent = core.ledger.totals.sent;
        let hosts = (0..self.hosts.len() as u32).map(HostId);
        if core.ledger.tables.clock.is_some() {
            hosts.for_each(|host| {
                core.ledger.note_event(core.now, kind::END, [u64::from(host.0), 0]);
                self.catch_up(core, host);
            });
        } else {
            hosts.for_each(|host| self.catch_up(core, host)); // many samples of an idle network: each instruction counts
        }
        core.ledger.totals.sent > sent
    }

    /// Uses the transmission opportunities that NICs have until `end`, where nothing else happens any more: the time of the last
    /// of them becomes the present.
    pub fn finish_turns(&mut self, core: &mut Core, end: Time) {
        loop {
            let nics = self.hosts.iter().map(|host| &core.links[host.nic]);
            let due = nics.filter(|nic| nic.is_followed() && nic.free_at <= end.ps()).map(|nic| nic.free_at);
            let Some(last) = due.max() else { return };
            core.now = core.now.max(Time::from_ps(last));
            self.catch_up_all(core);
        }
    }

    /// Handles the departure event of a NIC, whose wire is free.
    pub fn departure(&mut self, core: &mut Core, host: HostId) {
        let state = &mut self.hosts[host];
        state.armed = false;
        if !state.ready.is_empty() {
            self.drive_nic(core, host);
        }
    }

    /// Serves the NIC's round: one entry after the other while its wire is free, or all where it queues packets.
    #[inline(never)]
    pub(super) fn drive_nic(&mut self, core: &mut Core, host: HostId) {
        if self.hosts[host].closed != 0 {
            self.put_paused_aside(core, host);
        }
        let queues = self.tx_queues.is_some();
        let nic = self.hosts[host].nic;
        let mut tsq_throttled = Vec::new();
        while queues || core.links[nic].free_at <= core.now.ps() {
            match self.hosts[host].ready.pop_front() {
                None => return self.wait_for_departure(core, host, tsq_throttled),
                Some(Ready::Packet(packet)) => self.transmit_made(core, host, packet),
                Some(Ready::End(id)) => {
                    if self.transmit(core, id) == Used::TsqThrottled {
                        tsq_throttled.push(Ready::End(id));
                    }
                }
            }
        }
        let state = &mut self.hosts[host];
        if !state.ready.is_empty() {
            state.wait_for_wire(core);
        }
    }

    /// Makes the next departure from a host's queue an event, for which TSQ-throttled ends wait.
    fn wait_for_departure(&mut self, core: &mut Core, host: HostId, tsq_throttled: Vec<Ready>) {
        if tsq_throttled.is_empty() {
            return;
        }
        let state = &mut self.hosts[host];
        state.ready = tsq_throttled.into_iter().collect();
        let next = self.tx_queues.as_ref().and_then(|queues| queues[host].next_departure());
        if let (false, Some(next)) = (state.armed, next) {
            state.armed = true;
            core.wheel.set(state.nic.0, next);
        }
    }

    /// Puts a packet that is made already onto the wire, or into the host's queue.
    #[inline(always)]
    fn transmit_made(&mut self, core: &mut Core, host: HostId, packet: PacketId) {
        let nic = self.hosts[host].nic;
        if self.tx_queues.is_some() {
            return self.queue_made(core, host, nic, packet);
        }
        core.ledger.totals.sent += 1;
        if !self.pulls_untapped {
            self.on_transmit(core, host, nic, packet);
        }
        let frame = core.pool[packet].frame;
        core.send_idle(nic, packet, frame);
    }

    /// A packet that is made already joins the host's queue, or is lost.
    #[inline(never)]
    fn queue_made(&mut self, core: &mut Core, host: HostId, nic: LinkId, packet: PacketId) {
        let Some(queues) = self.tx_queues.as_mut() else { return };
        if queues[host].is_full(core.now) {
            return drop_at_host(core, nic, packet);
        }
        let starts = core.links[nic].free_at.max(core.now.ps());
        let end = (core.pool[packet].flow, core.pool[packet].to.other());
        core.ledger.totals.sent += 1;
        self.on_transmit(core, host, nic, packet);
        core.catch_up(nic);
        let frame = core.pool[packet].frame;
        core.send(nic, packet, frame);
        let leaves = core.links[nic].free_at;
        if let Some(queues) = self.tx_queues.as_mut() {
            queues[host].join(Queued { starts, leaves, end, bytes: 0 });
        }
    }

    /// Hands a packet to the NIC: the host writes its header, where hosts put any into frames, and the packet is observed.
    #[cold]
    #[inline(never)]
    fn on_transmit(&mut self, core: &mut Core, host: HostId, nic: LinkId, packet: PacketId) {
        let envelope = &core.pool[packet];
        let id = self.ends.of(envelope.flow, envelope.to.other());
        if self.headers.is_some() {
            let size = id.map_or(0, |id| self.bytes_to_send(id));
            if let Some(headers) = self.headers.as_deref_mut() {
                headers.put(core, packet, size);
            }
        }
        if core.ledger.observed {
            let now = core.now;
            observe_sent(core, host, nic, packet, || id.map(|id| self.seen(now, id)));
        }
    }
}
