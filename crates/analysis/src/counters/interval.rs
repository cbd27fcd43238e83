//! Intervals of a port's time, and the state of what is known of them.

use crate::{Record, Sample};
use fanin_units::{BitRate, Time};

/// State of an interval: known, or the reason for which nothing is concluded from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Counters are of this interval.
    #[default]
    Known,
    /// Samples between its ends are missing.
    Gap,
    /// Counters began anew within the interval.
    Reset,
    /// Counters wrapped, and may have wrapped more than once.
    Rollover,
    /// The source sent a sample again.
    Repeated,
    /// Counters contradict one another, the port's speed or its buffer.
    Contradicting,
}

impl State {
    /// All states in which nothing is known.
    pub const UNKNOWN: [State; 5] = [State::Gap, State::Reset, State::Rollover, State::Repeated, State::Contradicting];

    /// Name of the state in reports.
    pub const fn name(self) -> &'static str {
        match self {
            State::Known => "known",
            State::Gap => "gap",
            State::Reset => "reset",
            State::Rollover => "rollover",
            State::Repeated => "repeated",
            State::Contradicting => "contradicting",
        }
    }
}

/// Counters of a port over an interval. What is absent is unknown, and not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    pub start: Time,
    pub end: Time,
    /// Frame bytes that left.
    pub sent: Option<u64>,
    /// Frame bytes that joined the queue; dropped ones are not among them.
    pub arrived: Option<u64>,
    /// Frames that left, for their overhead on the wire.
    pub packets: Option<u64>,
    /// Bytes that waited at the end.
    pub queue: Option<u64>,
    /// Most bytes that waited.
    pub watermark: Option<u64>,
    /// Packets that were dropped.
    pub dropped: Option<u64>,
    /// True if more may have been dropped: a counter began anew.
    pub dropped_at_least: bool,
    /// Packets that were marked.
    pub marked: Option<u64>,
    pub state: State,
    /// True where a count of 64 bits fell as one of 32 bits wraps.
    pub narrow: bool,
}

impl Interval {
    /// An interval in which nothing is known, and the reason.
    pub fn unknown(start: Time, end: Time, state: State) -> Interval {
        Interval { start, end, state, ..Interval::default() }
    }

    /// Length of the interval [ps].
    #[inline]
    pub fn length(&self) -> u64 {
        self.end.ps().saturating_sub(self.start.ps())
    }

    /// Records of the queues in it, for figures: none where nothing is known of them.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let known = self.state == State::Known;
        let (queue, watermark) = (self.queue.filter(|_| known), self.watermark.filter(|_| known));
        Sample { time: self.end, queue, watermark }.records()
    }
}

/// One thing that a source of telemetry tells about a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Counters over an interval; those of a port come in order of time.
    Interval(Interval),
    /// Bytes of a flow that passed or were dropped about a time, estimated from samples or counted by flow records.
    Flow { time: Time, flow: u32, bytes: u64 },
    /// Speed of the port, as its switch says.
    Speed(BitRate),
}

impl Reading {
    /// Time by which the reading is put in order.
    pub fn time(&self) -> Time {
        match self {
            Reading::Interval(interval) => interval.end,
            Reading::Flow { time, .. } => *time,
            Reading::Speed(_) => Time::ZERO,
        }
    }
}
