//! Packets that mechanisms hold for ports. They take memory of the switch and wait for their port as its queue does, so records,
//! samples and peaks of the queue include them; policies, schedulers and path choices see the queue alone. At a combined switch
//! they wait at their input, and count in its queues.

use super::departures::full_queue;
use super::link::Link;
use super::port::Port;
use super::Core;
use crate::ledger::Fate;
use fanin_packet::PacketId;
use fanin_switch::MarkVerdict;
use fanin_units::{LinkId, QueueClass, Time};
use std::collections::BTreeMap;

/// Packets that are held.
#[derive(Default)]
pub struct Held {
    /// Place of each held packet, by packet. Empty where nothing was ever held.
    at: Vec<At>,
    /// Bytes, packets and cells that are held, by link and class of its queue.
    waits: BTreeMap<(u32, QueueClass), Waits>,
    /// Packets that reached a watched port and are or were held for it, while their fate there is not in their row yet.
    rows: BTreeMap<PacketId, LinkId>,
    /// Decision of a port's marking policy about a packet that is held for that port, by packet.
    decided: Vec<Decided>,
}

/// The port for which a packet is held, and the packet's class and size.
#[derive(Clone, Copy, Default)]
struct At {
    /// Link for which the packet is held, plus one; zero: it is not held.
    link: u32,
    frame: u16,
    /// Class of the packet's queue at that link.
    class: QueueClass,
    /// Zero where nothing counts in cells.
    cells: u32,
}

/// Frame bytes, packets and cells that are held.
#[derive(Clone, Copy, Default)]
pub struct Waits {
    pub bytes: u64,
    pub packets: u32,
    pub cells: u32,
}

/// The decision of a marking policy about a packet before it joins its queue.
#[derive(Clone, Copy, Default)]
struct Decided {
    /// The link, plus one; zero: nothing has been decided.
    by: u32,
    marked: bool,
}

impl Held {
    /// True while a packet is held for a port.
    fn is_held(&self, packet: PacketId) -> bool {
        self.at.get(packet.index()).is_some_and(|at| at.link > 0)
    }

    fn hold(&mut self, l: LinkId, class: QueueClass, packet: PacketId, (frame, cells): (u16, u32)) {
        if self.at.len() <= packet.index() {
            self.at.resize(packet.index() + 1, At::default());
        }
        let at = At { link: l.0 + 1, frame, class, cells };
        self.at[packet.index()] = at;
        let waits = self.waits.entry((at.link, at.class)).or_default();
        waits.bytes += u64::from(frame);
        waits.packets += 1;
        waits.cells += cells;
    }

    /// Removes a packet that is held no longer; gives its link and its frame bytes.
    #[inline]
    fn let_go(&mut self, packet: PacketId) -> Option<(LinkId, u16)> {
        let at = std::mem::take(self.at.get_mut(packet.index())?);
        let l = LinkId(at.link.checked_sub(1)?);
        if let Some(waits) = self.waits.get_mut(&(at.link, at.class)) {
            waits.bytes -= u64::from(at.frame);
            waits.packets -= 1;
            waits.cells -= at.cells;
        }
        Some((l, at.frame))
    }

    /// True while the row of a packet that a mechanism held is still open.
    #[inline]
    pub fn has_open_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// The packets that are held for port `l`.
    pub fn of(&self, l: LinkId) -> Vec<PacketId> {
        (0..).zip(&self.at).filter(|(_, at)| at.link == l.0 + 1).map(|(packet, _)| PacketId(packet)).collect()
    }

    /// Bytes, packets and cells held for port `l` before a packet that has just been held for it: of all classes, or of the
    /// packet's own alone.
    pub fn before(&self, l: LinkId, packet: PacketId, own_class: bool) -> Waits {
        let at = self.at[packet.index()];
        debug_assert!(at.link == l.0 + 1, "a packet that is not held for this port");
        let classes = if own_class { at.class..=at.class } else { QueueClass(0)..=QueueClass(u8::MAX) };
        let mut before = Waits::default();
        for waits in self.waits.range((at.link, *classes.start())..=(at.link, *classes.end())).map(|(_, waits)| waits) {
            before.bytes += waits.bytes;
            before.packets += waits.packets;
            before.cells += waits.cells;
        }
        Waits { bytes: before.bytes - u64::from(at.frame), packets: before.packets - 1, cells: before.cells - at.cells }
    }

    /// True once the policy of port `l` has decided about a packet.
    pub fn is_decided(&self, l: LinkId, packet: PacketId) -> bool {
        self.decided.get(packet.index()).is_some_and(|decided| decided.by == l.0 + 1)
    }

    /// Records the decision of port `l`'s marking policy about a held packet.
    pub fn decide(&mut self, l: LinkId, packet: PacketId, marked: bool) {
        if self.decided.len() <= packet.index() {
            self.decided.resize(packet.index() + 1, Decided::default());
        }
        self.decided[packet.index()] = Decided { by: l.0 + 1, marked };
    }

    /// Takes the decision of port `l`'s marking policy about a packet that was held for it and is now accepted: whether it was
    /// marked.
    #[inline]
    pub fn take_decision(&mut self, l: LinkId, packet: PacketId) -> Option<bool> {
        let decided = std::mem::take(self.decided.get_mut(packet.index())?);
        (decided.by == l.0 + 1).then_some(decided.marked)
    }

    /// Forgets the decision about a packet that is gone, or goes elsewhere.
    #[inline]
    pub fn forget_decision(&mut self, packet: PacketId) {
        if let Some(decided) = self.decided.get_mut(packet.index()) {
            *decided = Decided::default();
        }
    }
}

impl Port {
    /// Remembers the queue together with what is held, if that is the largest so far.
    #[cold]
    #[inline(never)]
    pub fn note_with_held(&mut self, now: Time, bytes: u32, packets: u32) {
        let bytes = bytes.saturating_add(self.held_bytes); // 4 GiB end the run
        self.held_max = self.held_max.max(bytes);
        if bytes > self.peak_bytes {
            (self.peak_bytes, self.peak_packets, self.peak_time) = (bytes, packets + self.held_packets, now);
        }
    }

    /// The largest queue since the last sample.
    pub fn most(&self) -> u32 {
        self.interval_max.max(self.held_max)
    }

    /// Sets the largest queue since the last sample, and the length below which the link need not ask the port: zero while
    /// anything is held.
    pub fn set_most(&mut self, link: &mut Link, most: u32) {
        (self.interval_max, self.held_max) = if self.held_packets > 0 { (0, most) } else { (most, 0) };
        link.set_peak(self.interval_max);
    }
}

impl Core {
    /// Bytes and packets that wait for a port: its queue, and what is held for it.
    #[inline]
    pub fn standing(&self, l: LinkId) -> (u64, u32) {
        let ((bytes, packets), port) = (self.queue(l), &self.ports[l]);
        (bytes + u64::from(port.held_bytes), packets + port.held_packets)
    }

    /// A mechanism holds a packet that was about to be offered to port `l`.
    #[inline(never)]
    pub fn hold(&mut self, l: LinkId, packet: PacketId, mechanism: &'static str) {
        if let Some(trace) = self.ledger.trace.as_deref_mut() {
            trace.hold(self.now, packet, mechanism);
        }
        self.stamp_at(l, packet);
        let (class, frame) = (self.class_of(l, &self.pool[packet]), self.pool[packet].frame);
        self.held.hold(l, class, packet, (frame, self.cells(frame)));
        if !self.combined {
            self.hold_in_queue(l, packet, frame);
        }
    }

    fn hold_in_queue(&mut self, l: LinkId, packet: PacketId, frame: u16) {
        self.catch_up(l);
        if self.ports[l].watched.is_some() && self.held.rows.get(&packet) != Some(&l) {
            self.record_held(l, packet, frame);
        }
        let (queue, packets) = self.queue(l);
        let (link, port) = (&mut self.links[l], &mut self.ports[l]);
        let (held, full) = port.held_bytes.overflowing_add(u32::from(frame));
        (port.held_bytes, port.held_packets) = (held, port.held_packets + 1);
        if full {
            full_queue(port, &mut self.stuck, &mut self.barrier);
        }
        port.set_most(link, port.most());
        port.note_with_held(self.now, queue as u32, packets);
    }

    /// Opens the row of a packet that is held as it reaches a watched port, until it leaves.
    fn record_held(&mut self, l: LinkId, packet: PacketId, frame: u16) {
        let Some(number) = self.ports[l].watched else { return };
        self.settle_held(packet, None); // a row at another port
        let row = self.queue_row(l, self.standing(l), packet, frame, (false, Fate::Taken));
        let result = self.ledger.tables.queue(number, row, Some(packet));
        self.check(result);
        self.held.rows.insert(packet, l);
    }

    /// Releases a packet from the hold of a mechanism, if one holds it.
    #[inline]
    pub fn let_go(&mut self, packet: PacketId) {
        if let Some(trace) = self.ledger.trace.as_deref_mut() {
            trace.let_go(self.now, packet);
        }
        let Some((l, frame)) = self.held.let_go(packet).filter(|_| !self.combined) else { return };
        let (link, port) = (&mut self.links[l], &mut self.ports[l]);
        port.held_bytes = port.held_bytes.wrapping_sub(u32::from(frame)); // wraps where it has passed 4 GiB
        port.held_packets -= 1;
        port.set_most(link, port.most());
    }

    /// Asks the marking policy about a packet that a mechanism holds for a port, as if packets held before it were in the queue;
    /// nothing is dropped. It is not asked again when the packet joins the queue.
    #[inline(never)]
    pub fn mark_held(&mut self, l: LinkId, packet: PacketId) {
        if self.held.is_decided(l, packet) {
            return;
        }
        self.catch_up(l);
        let (by_class, class) = (self.ports[l].by_class, self.class_of(l, &self.pool[packet]));
        let before = self.held.before(l, packet, by_class);
        let mut found = self.policy_view(l, class, &self.view(l));
        found.queue_bytes += before.bytes;
        found.queue_packets += before.packets;
        found.queue_cells += if by_class { 0 } else { before.cells }; // by class none are counted
        let verdict = self.ask_at_enqueue(l, class, &found, packet);
        let marked = match verdict {
            MarkVerdict::Mark(reason) => self.mark(l, packet, reason),
            MarkVerdict::Undecided => self.undecided(l, class),
            MarkVerdict::Pass | MarkVerdict::Drop(_) => false,
        };
        if marked {
            self.marked_while_held(packet);
        }
        self.held.decide(l, packet, marked);
    }

    /// Records that a packet was marked while it was held.
    fn marked_while_held(&mut self, packet: PacketId) {
        if self.held.rows.contains_key(&packet) {
            self.ledger.tables.queue_changed(packet, |row| row.marked = true);
        }
    }

    /// Completes the row at watched port `l` of a packet that was held for it; `later`: the row stays open until the packet
    /// leaves the queue.
    pub fn record_again(&mut self, l: LinkId, packet: PacketId, (marked, fate): (bool, Fate), later: bool) -> bool {
        match self.held.rows.get(&packet) {
            Some(at) if *at == l => self.held.rows.remove(&packet),
            Some(_) => {
                self.settle_held(packet, None); // it went to this port instead
                return false;
            }
            None => return false,
        };
        self.ledger
            .tables
            .queue_changed(packet, |row| (row.marked, row.replaced) = (row.marked | marked, fate == Fate::Replaces));
        if !later {
            let dropped = (fate == Fate::Refused).then_some(true);
            let result = self.ledger.tables.queue_dequeued(packet, false, dropped);
            self.check(result);
        }
        true
    }

    /// Closes the row of a packet that was held and went past the queue or to another port. `dropped`: whether it had been taken
    /// before.
    pub fn settle_held(&mut self, packet: PacketId, dropped: Option<bool>) {
        if !self.held.has_open_rows() || self.held.is_held(packet) {
            return;
        }
        if self.held.rows.remove(&packet).is_some() {
            let result = self.ledger.tables.queue_dequeued(packet, false, dropped);
            self.check(result);
        }
    }
}
