//! Records that the analysis reads: packets that arrived at a port, and samples of its queue.

use fanin_units::Time;

/// The flow of a record that names none.
pub const NO_FLOW: u32 = u32::MAX;
/// Queue of a record that tells none: only detection by arrival rate works then.
pub const NO_QUEUE: u64 = u64::MAX;
/// The packet was marked (ECN).
pub const MARKED: u8 = 1;
/// The packet was dropped: it never stood in the queue, unless [`AT_HEAD`] is set too.
pub const DROPPED: u8 = 2;

/// The packet took the place of the last one in the queue, which lost its payload: the queue stays as long as it was.
pub const REPLACED: u8 = 4;

/// The packet was dropped at the head of the queue: it stood in the queue until then, and took no time on the wire.
pub const AT_HEAD: u8 = 16;

/// The record is a [`Sample`] of the queue and no packet: it has no frame, no flow and no payload.
pub const SAMPLE: u8 = 32;

/// A running count of drops began anew since the record before: more may have been dropped than the records tell.
pub const ANEW: u8 = 64;

/// The packet carries no payload: a SYN, a FIN, an acknowledgment alone. It takes room in the queue like any other, but it begins no
/// round and makes no flow a background flow.
pub const NO_DATA: u8 = 8;

/// One arrival at a port, or one value of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Arrival of the packet, or time of the sample.
    pub time: Time,
    /// Bytes that the packet found waiting, without the packet on the wire; [`NO_QUEUE`]: unknown.
    pub queue: u64,
    /// Bytes of the frame as the queue counts them; 0: unknown.
    pub frame: u32,
    /// Flow of the packet; [`NO_FLOW`]: unknown. Small numbers are fastest.
    pub flow: u32,
    /// [`MARKED`], [`DROPPED`], [`REPLACED`], [`AT_HEAD`], [`NO_DATA`], [`SAMPLE`], [`ANEW`].
    pub flags: u8,
}

impl Record {
    /// True if the packet was dropped, on its arrival or later.
    #[inline(always)]
    pub fn dropped(&self) -> bool {
        self.flags & (DROPPED | AT_HEAD) != 0
    }

    /// True if the packet stood in the queue, and left it without having been sent.
    #[inline(always)]
    pub fn dropped_at_head(&self) -> bool {
        self.flags & AT_HEAD != 0
    }

    /// True if the queue grew by this packet.
    #[inline(always)]
    pub fn joins(&self) -> bool {
        !self.loses() || self.dropped_at_head()
    }

    /// True if the packet brought payload, as far as known.
    #[inline(always)]
    pub fn has_data(&self) -> bool {
        self.flags & NO_DATA == 0
    }

    /// True if a packet is lost by this arrival: the arriving one, at once or later, or the one whose place it takes.
    #[inline(always)]
    pub fn loses(&self) -> bool {
        self.flags & (DROPPED | REPLACED | AT_HEAD) != 0
    }
}

/// A sample of a port's queue, as switches give them: of an instant, or of the interval before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// End of the interval.
    pub time: Time,
    /// Bytes that wait at `time`; None: unknown.
    pub queue: Option<u64>,
    /// Most bytes that waited in the interval; None: unknown.
    pub watermark: Option<u64>,
}

impl Sample {
    /// Records that a sample stands for: first the watermark, which was reached in the interval and is known at its end, then the
    /// queue, if that has fallen since.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let time = self.time;
        let watermark = self.watermark.filter(|most| self.queue.is_none_or(|queue| queue < *most));
        let record = move |queue| Record { time, queue, frame: 0, flow: NO_FLOW, flags: SAMPLE | NO_DATA };
        watermark.into_iter().chain(self.queue).map(record)
    }
}

/// Fates of packets that the records of a trace can tell: without them, a count of zero means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fates {
    /// True if records tell which packets were dropped.
    pub drops: bool,
    /// True if records tell which packets were marked.
    pub marks: bool,
}

impl Fates {
    /// Fates of a port that reports everything.
    pub const ALL: Fates = Fates { drops: true, marks: true };
}

/// Error: a record is earlier than the one before it, so the trace must be sorted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disorder {
    /// Time of the record before.
    pub after: Time,
    /// Time of this record.
    pub time: Time,
}

impl std::fmt::Display for Disorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a record at {} follows one at {}: records of a port must be in order of time", self.time, self.after)
    }
}

impl std::error::Error for Disorder {}
