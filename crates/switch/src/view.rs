//! Views of a port, as policies see it.

use fanin_units::{Amount, BitRate, QueueClass, Span, Time};

/// The queue of an output port at one instant.
///
/// The queue is what waits: neither the packet that asks nor the packet being serialised is counted. At enqueue it is the
/// queue that the packet finds, at dequeue the queue that it leaves behind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortView {
    pub now: Time,
    /// Frame bytes that wait at the port.
    pub queue_bytes: u64,
    /// Packets that wait at the port.
    pub queue_packets: u32,
    /// Cells that wait: the sum of [`cells`] over the packets. Kept only where something counts in cells.
    pub queue_cells: u32,
    /// Rate of the port.
    pub rate: BitRate,
    /// Bytes of wire time besides those of a frame: preamble and gap.
    pub overhead: u16,
    /// Time at which the wire became or becomes free. After `now` it is busy, until then at least if nothing waits.
    pub free_at: Time,
}

impl PortView {
    /// True if the wire is free, so that a packet would leave at once.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.free_at <= self.now
    }

    /// Time for which the wire has been free, so that a packet would have left at once; zero where it is not, or something waits.
    #[inline(always)]
    pub fn idle(&self) -> Span {
        if self.queue_packets == 0 {
            self.now.since(self.free_at)
        } else {
            Span::ZERO
        }
    }

    /// The queue counted in `unit`.
    #[inline(always)]
    pub fn queue(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Bytes => self.queue_bytes,
            Unit::Packets => u64::from(self.queue_packets),
            Unit::Cells => u64::from(self.queue_cells),
        }
    }
}

/// A packet at the head of its queue, as policies see it that decide when the port's wire is free.
///
/// Here the packet itself is part of the queue, also where it found the port idle and has not waited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head {
    /// View of the whole port.
    pub port: PortView,
    /// Class of the packet's queue.
    pub class: QueueClass,
    /// Frame bytes of the packet's class.
    pub class_bytes: u64,
    /// Sojourn time of the packet: the time for which it has waited.
    pub waited: Span,
}

/// Unit of an [`Amount`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Bytes,
    Packets,
    Cells,
}

impl Unit {
    /// The unit of an amount.
    pub const fn of(amount: Amount) -> Unit {
        match amount {
            Amount::Bytes(_) => Unit::Bytes,
            Amount::Packets(_) => Unit::Packets,
            Amount::Cells(_) => Unit::Cells,
        }
    }

    /// Size of a frame in this unit, with cells of `cell` bytes.
    #[inline(always)]
    pub fn size(self, frame: u16, cell: u32) -> u64 {
        match self {
            Unit::Bytes => u64::from(frame),
            Unit::Packets => 1,
            Unit::Cells => u64::from(cells(frame, cell)),
        }
    }
}

/// Cells of `cell` bytes that a frame takes: a whole number of them.
///
/// # Panics
/// When `cell` is zero, which [`Switch`](crate::Switch) refuses.
#[inline(always)]
pub fn cells(frame: u16, cell: u32) -> u32 {
    u32::from(frame).div_ceil(cell)
}
