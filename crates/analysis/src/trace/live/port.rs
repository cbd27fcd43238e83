//! One port of a stream: its analysis, its counts, and what is known of it by stretch of time.

use crate::{Burst, Fates, PortAnalyzer, Record, MARKED, NO_QUEUE};
use serde::Serialize;

/// Steps between samples after which the usual one is known.
const LEARNT: u64 = 16;
/// Usual steps between two samples from which the time between them is a gap.
const MISSED: u64 = 10;

/// Counts of a port since the stream began.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortCounts {
    pub records: u64,
    pub dropped: u64,
    pub marked: u64,
    /// Largest queue; absent where no record has one.
    pub peak_bytes: Option<u64>,
    /// Records that came after a later one, and were left out.
    pub late: u64,
    /// Times in which samples are missing.
    pub gaps: u64,
    pub gap_ps: u64,
    pub bursts: u64,
    pub burst_ps: u64,
}

/// What is known of a port in one stretch of time; there is none where nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Number of the stretch, from second 0 of the stream's clock.
    pub number: u64,
    /// Largest queue; absent where no record has one.
    pub queue: Option<u64>,
    pub records: u64,
    pub bytes: u64,
    pub dropped: u64,
}

/// A stretch of time in which samples of a port are missing [ps].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub from: u64,
    pub to: u64,
}

/// A port that is watched.
pub struct LivePort {
    pub analyzer: PortAnalyzer,
    pub counts: PortCounts,
    /// Counts of the analyzers before this one: bursts and time in them [ps].
    before: (u64, u64),
    /// Records before the port was away.
    earlier: u64,
    /// Queue and time of the last record [ps].
    pub queue: Option<u64>,
    pub last: u64,
    /// Mean step between samples [ps], and their number up to now.
    step: u64,
    steps: u64,
    /// Time after the last record from which the next one ends a gap [ps].
    patience: u64,
    pub cell: Cell,
    /// End of the cell [ps of the analysis].
    pub cell_ends: u64,
    pub gaps: Vec<Gap>,
}

impl LivePort {
    /// `patience`: the gap between records, where the user says it [ps].
    pub fn new(analyzer: PortAnalyzer, patience: Option<u64>) -> Self {
        LivePort {
            analyzer,
            counts: PortCounts::default(),
            before: (0, 0),
            earlier: 0,
            queue: None,
            last: 0,
            step: 0,
            steps: if patience.is_some() { u64::MAX } else { 0 },
            patience: patience.unwrap_or(u64::MAX),
            cell: Cell::default(),
            cell_ends: 0,
            gaps: Vec::new(),
        }
    }

    /// A port that comes back, with its counts.
    pub fn after(mut self, counts: PortCounts) -> Self {
        self.before = (counts.bursts, counts.burst_ps);
        self.counts = PortCounts { records: 0, ..counts };
        self.earlier = counts.records;
        self
    }

    /// Takes a record, whose cell is open.
    #[inline]
    pub fn take(&mut self, record: &Record) {
        let now = record.time.ps();
        if self.counts.records > 0 && now > self.last {
            let step = now - self.last;
            if step > self.patience {
                self.gaps.push(Gap { from: self.last, to: now });
                self.counts.gaps += 1;
                self.counts.gap_ps = self.counts.gap_ps.saturating_add(step);
                self.analyzer.interrupt();
            } else if record.frame == 0 && self.steps < u64::MAX {
                self.learn(step);
            }
        }
        if self.analyzer.push(record).is_err() {
            self.counts.late += 1;
            return;
        }
        self.last = now;
        let (lost, marked) = (u64::from(record.loses()), u64::from(record.flags & MARKED != 0));
        self.counts.records += 1;
        self.counts.dropped += lost;
        self.counts.marked += marked;
        self.cell.records += 1;
        self.cell.bytes += u64::from(record.frame);
        self.cell.dropped += lost;
        if record.queue != NO_QUEUE {
            self.queue = Some(record.queue);
            self.cell.queue = self.cell.queue.max(self.queue);
        }
    }

    /// Learns the usual step between samples: a mean, of the latest ones.
    #[inline]
    fn learn(&mut self, step: u64) {
        self.steps = (self.steps + 1).min(4 * LEARNT);
        self.step = if step >= self.step {
            self.step + (step - self.step) / self.steps
        } else {
            self.step - (self.step - step) / self.steps
        };
        if self.steps >= LEARNT {
            self.patience = self.step.saturating_mul(MISSED).max(1);
        }
    }

    /// Ends the cell that is open, if it has something.
    pub fn close_cell(&mut self) -> Option<Cell> {
        self.counts.peak_bytes = self.counts.peak_bytes.max(self.cell.queue);
        let cell = std::mem::take(&mut self.cell);
        self.cell_ends = 0;
        (cell.records > 0).then_some(cell)
    }

    /// Bursts that have ended since this was last asked.
    pub fn bursts(&mut self, fates: Fates) -> Vec<Burst> {
        let mut bursts = self.analyzer.take_bursts();
        bursts.iter_mut().for_each(|burst| burst.telling(fates));
        bursts
    }

    /// The counts by now.
    pub fn counted(&self) -> PortCounts {
        let (bursts, ps) = self.analyzer.burst_totals();
        PortCounts {
            records: self.earlier + self.counts.records,
            bursts: self.before.0 + bursts,
            burst_ps: self.before.1.saturating_add(u64::try_from(ps).unwrap_or(u64::MAX)),
            peak_bytes: self.counts.peak_bytes.max(self.cell.queue),
            ..self.counts.clone()
        }
    }

    /// Goes on with another analyzer; the bursts of this one must have been taken. `shift`: what is later is earlier by so much [ps].
    pub fn renew(&mut self, analyzer: PortAnalyzer, shift: u64) {
        let counted = self.counted();
        self.before = (counted.bursts, counted.burst_ps);
        self.analyzer = analyzer;
        self.last = self.last.saturating_sub(shift);
        self.cell_ends = self.cell_ends.saturating_sub(shift);
    }
}
