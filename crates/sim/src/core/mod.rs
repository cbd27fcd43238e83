//! State that fabric and hosts share: the clock, the events, links with their output ports, the packets, and the ledger.

pub mod departures;
pub mod faults;
pub mod gate;
pub mod held;
pub mod link;
pub mod links;
pub mod marking;
pub mod message;
pub mod network;
pub mod part;
pub mod pool;
pub mod port;
pub mod queues;
pub mod route;

use crate::ledger::{Fate, Ledger};
use departures::Departed;
use fanin_engine::{Table, Timers, Wheel};
use fanin_packet::{Packet, PacketId, Shim};
use fanin_switch::{cells, DropReason, PortNo, PortView, SharedBuffer};
use fanin_telemetry::{DropRow, Name, QueueRow, Stamp, TableError};
use fanin_units::{Bytes, HostId, LinkId, NodeId, Span, SwitchId, Time, WireClock};
use faults::Fault;
use gate::PortGate;
use held::Held;
use link::flag;
use links::Links;
use part::Part;
use pool::Pool;
use port::Port;
use std::collections::BTreeMap;

/// Place of a timeout in the order of events: node (hosts, then switches), then its purpose.
pub type TimerKey = (NodeId, u64);

/// The state that fabric and hosts share.
pub struct Core {
    pub now: Time,
    pub wheel: Wheel,
    pub timers: Timers<TimerKey>,
    /// Time of the earliest event that is not in the wheel; the inner loop runs up to it.
    pub barrier: Time,
    /// First slot of arrivals in the wheel: departures have the link's number, crossbars follow.
    pub arrivals: usize,
    pub links: Links,
    pub ports: Table<Port, LinkId>,
    pub pool: Pool,
    /// Buffer that the ports of a switch share, by switch; empty where none do.
    pub shared: Table<SharedBuffer, SwitchId>,
    /// True if switches are combined input- and output-queued ones, whose ports get packets over their crossbars alone.
    pub combined: bool,
    /// Time scale of each switch's crossbar, by switch; empty where switches are output queued.
    pub crossings: Table<WireClock, SwitchId>,
    /// Pauses of ports that may be paused, by link.
    pub gates: BTreeMap<LinkId, PortGate>,
    /// Failures and bit errors, by link, in one direction; links without any are absent.
    pub faults: BTreeMap<LinkId, Fault>,
    /// True if hooked links must record arrivals, or may be down: this is checked before the hooks.
    pub inspects: bool,
    /// Bytes of a buffer cell; zero where nothing counts in cells.
    pub cell: u32,
    /// Packets that mechanisms hold for ports.
    pub held: Held,
    /// Packets that have left their queues and of which mechanisms have not been notified yet; empty between events.
    pub departed: Vec<Departed>,
    pub ledger: Ledger,
    /// The first table error; ends the run.
    pub failure: Option<TableError>,
    /// Reason why the run cannot go on; `None`: it can.
    pub stuck: Option<String>,
    /// The part of the network that is simulated here; `None`: all of it.
    pub part: Option<Box<Part>>,
}

impl Core {
    /// The slot in the wheel of arrivals over a link.
    #[inline(always)]
    pub fn slot_of_arrival(&self, l: LinkId) -> u32 {
        self.arrivals as u32 + l.0
    }

    /// Time from the end of a frame's serialisation on a link until it is at the far end.
    #[inline(always)]
    pub fn delay(&self, l: LinkId) -> Span {
        Span::from_ps(self.links[l].delay())
    }

    /// Cells that a frame takes; zero where nothing counts in cells.
    #[inline(always)]
    pub fn cells(&self, frame: u16) -> u32 {
        if self.cell > 0 {
            cells(frame, self.cell)
        } else {
            0
        }
    }

    /// Remembers the queue of a port on the fast path including a frame that is about to join it, if that is the largest so far.
    #[inline(always)]
    pub fn note_one_more(&mut self, l: LinkId, frame: u16) {
        let link = &mut self.links[l];
        let bytes = link.queue_bytes.saturating_add(u32::from(frame)); // 4 GiB end the run
        if link.may_exceed(bytes) {
            let packets = link.queue_packets() + 1;
            self.ports[l].note_queue(link, self.now, bytes, packets);
        }
    }

    /// True while a port's switch knows its link to be down; such a port is off the fast path.
    #[inline(always)]
    pub fn is_down(&self, l: LinkId) -> bool {
        self.links[l].flags & flag::GENERAL != 0 && self.ports[l].down
    }

    /// Bytes and packets that wait at a port, without trimmed packets in a queue of their own.
    #[inline(always)]
    pub fn queue(&self, l: LinkId) -> (u64, u32) {
        let link = &self.links[l];
        match &self.ports[l].queues {
            Some(queues) if link.flags & flag::GENERAL != 0 => (queues.bytes, queues.packets),
            _ => (u64::from(link.queue_bytes), link.queue_packets()),
        }
    }

    /// The queue of a port as policies see it; the queue must be up to now.
    #[inline(always)]
    pub fn view(&self, l: LinkId) -> PortView {
        let (bytes, packets) = self.queue(l);
        self.ports[l].view(self.now, bytes, packets, Time::from_ps(self.links[l].free_at))
    }

    /// Adds a timeout, which the inner loop must not pass.
    #[inline]
    pub fn set_timer(&mut self, at: Time, key: TimerKey) {
        self.timers.push(at, key);
        self.barrier = self.barrier.min(at);
    }

    /// Notifies the host of the other end of a flow at a time, by its timer.
    pub fn notify_peer(&mut self, at: Time, host: HostId, key: TimerKey) {
        match self.part.as_deref_mut().filter(|part| !part.has_host(host)) {
            Some(part) => part.set_timer(host, at, key),
            None => self.set_timer(at, key),
        }
    }

    /// Records the first table error; the run ends as soon as the inner loop does.
    pub fn check(&mut self, result: Result<(), TableError>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
            self.barrier = Time::ZERO;
        }
    }

    /// The switch that a port belongs to, and the port's number there.
    #[inline]
    pub fn switch_port(&self, l: LinkId) -> (SwitchId, PortNo) {
        self.ports[l].switch()
    }

    /// Records an arrival at a watched port: the packet's fate at a queue of `found` bytes and packets, besides what is held;
    /// `frame`: its bytes.
    pub fn record_arrival(&mut self, l: LinkId, found: (u64, u32), packet: PacketId, frame: u16, (marked, fate): (bool, Fate)) {
        let port = &self.ports[l];
        let Some(number) = port.watched else { return };
        let found = (found.0 + u64::from(port.held_bytes), found.1 + port.held_packets);
        let later = fate != Fate::Refused && self.decides_later(l);
        if self.held.has_open_rows() && self.record_again(l, packet, (marked, fate), later) {
            return;
        }
        if fate != Fate::Refused && self.ledger.stamps.is_some() {
            self.ledger.stamp(packet, number, self.now, Bytes(found.0));
        }
        let row = self.queue_row(l, found, packet, frame, (marked, fate));
        let result = self.ledger.tables.queue(number, row, later.then_some(packet));
        self.check(result);
    }

    /// The row of a packet that reaches a watched port.
    pub fn queue_row(
        &self,
        l: LinkId,
        found: (u64, u32),
        packet: PacketId,
        frame: u16,
        (marked, fate): (bool, Fate),
    ) -> QueueRow {
        QueueRow {
            time_ps: self.now.ps(),
            port: self.ports[l].name.clone(),
            queue_bytes: found.0,
            queue_packets: found.1,
            flow: self.pool[packet].flow.0,
            frame_bytes: frame,
            marked,
            dropped: fate == Fate::Refused,
            replaced: fate == Fate::Replaces,
            at_head: false,
        }
    }

    /// Removes a message that travels as packets do at the end of its way; gives its shim.
    pub fn end_clone(&mut self, packet: PacketId) -> Option<Shim> {
        let shim = self.pool.shim(packet);
        if let Some(stamps) = &mut self.ledger.stamps {
            stamps.clear(packet);
        }
        self.pool.free_message(packet);
        shim
    }

    /// Writes the registers of port `l` into a packet that passes it, where it is watched.
    pub fn stamp_at(&mut self, l: LinkId, packet: PacketId) {
        if let Some(number) = self.ports[l].watched {
            self.catch_up(l);
            let queue = Bytes(self.standing(l).0);
            self.ledger.stamp(packet, number, self.now, queue);
        }
    }

    /// Records that a packet has come to the far end of link `l`, where its flow is followed or the link is captured.
    #[inline]
    pub fn trace_crossing(&mut self, l: LinkId, packet: PacketId) {
        if self.ledger.tables.capture.is_some() {
            self.capture_crossing(l, packet);
        }
        let Some(trace) = self.ledger.trace.as_deref_mut() else { return };
        let link = &self.links[l];
        let left = self.now.ps() - link.delay();
        let row = trace.crossed(self.now, packet, &self.ports[l].name, [left - link.tx(self.pool[packet].frame), left]);
        let result = self.ledger.tables.follow(None, None, row);
        self.check(result);
    }

    /// Records a packet at the far end of a link that is captured.
    #[inline(never)]
    fn capture_crossing(&mut self, l: LinkId, id: PacketId) {
        let Some(capture) = self.ledger.tables.capture.as_deref_mut() else { return };
        let Some(interface) = capture.interface_of(l) else { return };
        let left = Time::from_ps(self.now.ps() - self.links[l].delay());
        let stamp = self.ledger.stamps.as_ref().map_or(Stamp::EMPTY, |stamps| stamps.of(id));
        let besides = (self.pool.shim_on_wire(id), stamp, self.pool.message(id));
        let result = capture.crossed((self.now, left), interface, self.pool.packet(id), besides);
        self.check(result);
    }

    /// Records and counts a drop.
    pub fn record_drop(&mut self, packet: PacketId, dropped: &Packet, reason: DropReason, port: Name, queue_bytes: u64) {
        let row = DropRow {
            time_ps: self.now.ps(),
            port,
            flow: dropped.envelope.flow.0,
            frame_bytes: dropped.envelope.frame,
            payload_bytes: dropped.envelope.payload,
            seq: dropped.header.number(),
            reason: reason.name().into(),
            queue_bytes,
        };
        let result = self.ledger.record_drop(packet, dropped, row, reason);
        self.check(result);
    }
}
