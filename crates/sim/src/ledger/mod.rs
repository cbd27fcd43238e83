//! Ledger of a run: counts, tables, captures, stamps, and the fingerprint. It sees everything and decides nothing.

mod capture;
mod fingerprint;
mod held_rows;
mod messages;
mod stamps;
mod tables;
mod trace;

pub use capture::Capturing;
use capture::ShimBytes;
pub use held_rows::{kind, HeldRows};
pub use stamps::Stamps;
pub use tables::{Aborted, Destination, Outcome, Tables, Wanted, SIZES, TABLES};
pub use trace::{Input, Known, Seen, Trace};

use fanin_packet::{Ecn, Packet, PacketId};
use fanin_switch::{DropReason, MarkReason};
use fanin_telemetry::{DropRow, EventClock, Moment, Name, Stamp, StampRow, TableError};
use fanin_units::{Bytes, HostId, LinkId, Time};

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that crossed a link.
    pub packet_hops: u64,
    /// Events handled.
    pub events: u64,
    /// Departures among the events of the present budget.
    pub(crate) departures: u64,
    /// Packets that hosts gave to their NICs.
    pub sent: u64,
    /// Packets that reached their endpoint.
    pub delivered: u64,
    /// Packets that reached a host at which their flow had ended.
    pub stray: u64,
    /// Trimmed packets among the stray ones.
    pub stray_trimmed: u64,
    /// Stray packets with a signal for their receiver (a NACK).
    pub stray_signals: u64,
    /// Packets dropped, all reasons.
    pub dropped: u64,
    /// Dropped packets with a signal for their receiver.
    pub dropped_signals: u64,
    /// Flows started.
    pub started: u64,
    /// Flows ended: complete or aborted.
    pub ended: u64,
}

impl Totals {
    /// Adds the counts of another part of the network.
    pub fn add(&mut self, other: &Totals) {
        let pairs: [(&mut u64, u64); 11] = [
            (&mut self.packet_hops, other.packet_hops),
            (&mut self.events, other.events),
            (&mut self.sent, other.sent),
            (&mut self.delivered, other.delivered),
            (&mut self.stray, other.stray),
            (&mut self.stray_trimmed, other.stray_trimmed),
            (&mut self.stray_signals, other.stray_signals),
            (&mut self.dropped, other.dropped),
            (&mut self.dropped_signals, other.dropped_signals),
            (&mut self.started, other.started),
            (&mut self.ended, other.ended),
        ];
        pairs.into_iter().for_each(|(sum, n)| *sum += n);
    }
}

/// Decision of a port's queue about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The packet was accepted.
    Taken,
    /// The packet was accepted in the place of the last one.
    Replaces,
    /// The packet was not accepted.
    Refused,
}

/// Counts, tables, captures and stamps of a run.
pub struct Ledger {
    pub tables: Tables,
    pub totals: Totals,
    /// True if anything is recorded of packets that reach hosts or are dropped.
    pub observed: bool,
    /// Followed flows, where there are any.
    pub trace: Option<Box<Trace>>,
    /// Stamps, where packets carry them.
    pub stamps: Option<Box<Stamps>>,
    /// Watched ports by their numbers, with their names.
    pub watched: Vec<(LinkId, Name)>,
    pub host_names: Vec<Name>,
}

impl Ledger {
    /// A packet was marked by a policy that the fast path does not serve by itself.
    pub fn count_mark(&mut self, reason: MarkReason) {
        let counts = &mut self.tables.mark_counts;
        match counts.iter_mut().find(|(known, _)| std::ptr::eq(*known, reason.0)) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason.0, 1)),
        }
    }

    /// A packet was accepted at watched port number `port`, where it found `queue`.
    #[inline(never)]
    pub fn stamp(&mut self, packet: PacketId, port: u32, now: Time, queue: Bytes) {
        if let Some(stamps) = &mut self.stamps {
            let stamp = stamps.registers.read(port as u8, now, queue);
            stamps.write(packet, stamp);
        }
    }

    /// Records that a packet was dropped.
    pub fn record_drop(
        &mut self,
        packet: PacketId,
        dropped: &Packet,
        row: DropRow,
        reason: DropReason,
    ) -> Result<(), TableError> {
        self.totals.dropped += 1;
        self.totals.dropped_signals += u64::from(dropped.header.carries_signal());
        if let Some(stamps) = &mut self.stamps {
            stamps.clear(packet);
        }
        if let Some(trace) = &mut self.trace {
            let lost = trace.dropped(Time::from_ps(row.time_ps), packet, dropped, &row.port);
            self.tables.follow(None, lost, None)?;
        }
        self.tables.drop(row, reason)
    }

    /// Records a packet that has reached a host, before anything else happens to it.
    #[cold]
    #[inline(never)]
    pub fn record_delivery(
        &mut self,
        now: Time,
        host: HostId,
        (id, packet): (PacketId, &Packet),
        shim: Option<ShimBytes>,
    ) -> Result<(), TableError> {
        let stamp = self.stamps.as_ref().map_or(Stamp::EMPTY, |stamps| stamps.of(id));
        if let Some(capture) = self.tables.capture.as_deref_mut() {
            capture.received(now, host, packet, (shim, stamp))?;
        }
        let Some(stamps) = self.stamps.as_mut().filter(|_| stamp.is_stamped()) else { return Ok(()) };
        stamps.clear(id);
        let row = StampRow {
            received_ps: now.ps(),
            host: self.host_names[host.index()].clone(),
            port: self.watched[usize::from(stamp.port)].1.clone(),
            stamp_time: stamp.time,
            stamp_length: stamp.length,
            flow: packet.envelope.flow.0,
            frame_bytes: packet.envelope.frame,
            marked: packet.envelope.ecn == Ecn::Ce,
        };
        self.tables.stamps.push(row)
    }

    /// Another event is handled from now on, which rows are to know where they are held.
    #[inline]
    pub fn note_event(&self, at: Time, kind: u64, place: [u64; 2]) {
        if let Some(clock) = self.tables.clock.as_deref() {
            clock.set(Moment { time: at.ps(), kind, place });
        }
    }

    /// The event that is handled, where rows are held, or its time alone.
    pub fn moment(&self, now: Time) -> Moment {
        let clock = self.tables.clock.as_deref();
        clock.map_or(Moment { time: now.ps(), ..Moment::default() }, EventClock::now)
    }

    /// Adds what the ledger of another part of the network holds.
    pub fn absorb(&mut self, other: &mut Ledger) {
        self.totals.add(&other.totals);
        self.tables.absorb(&mut other.tables);
    }

    /// The fingerprint so far.
    pub fn fingerprint(&self) -> u64 {
        self.tables.fingerprint.value()
    }
}
