//! Records of one port in order of time: straight through where the file has them so, within a window where receivers are
//! interleaved, all at once where the user asks to sort.

use crate::{PortAnalyzer, Record};
use fanin_units::{Span, Time};

/// Records that may overtake one another.
pub const WINDOW: usize = 1 << 16;

/// Records that are sorted in memory at most (32 B each: 3.2 GB).
pub const MOST: usize = 100_000_000;

/// How records come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each not before the last.
    Sorted,
    /// Each not before the one [`WINDOW`] places ahead of it.
    Nearly,
    /// Anyhow; all are held until the end.
    Any,
}

/// A record that comes too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// What has been handed on already.
    pub after: Time,
    pub time: Time,
}

/// One port's records on their way into the analysis.
pub struct Lane {
    analyzer: PortAnalyzer,
    order: Order,
    held: Vec<Record>,
    /// Whether `held` is in order.
    sorted: bool,
    /// The latest time held or handed on.
    latest: Time,
    released: Time,
    /// Records that came after a later one, and by how much at most.
    pub overtaken: u64,
    pub lag: Span,
}

impl Lane {
    pub fn new(analyzer: PortAnalyzer, order: Order) -> Self {
        Lane {
            analyzer,
            order,
            held: Vec::new(),
            sorted: true,
            latest: Time::ZERO,
            released: Time::ZERO,
            overtaken: 0,
            lag: Span::ZERO,
        }
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// It is too late.
    #[inline]
    pub fn push(&mut self, record: &Record) -> Result<(), Late> {
        if record.time < self.latest {
            self.overtaken += 1;
            self.lag = self.lag.max(self.latest.since(record.time));
            self.sorted = false;
            if record.time < self.released || self.order == Order::Sorted {
                return Err(Late {
                    after: if self.order == Order::Sorted { self.latest } else { self.released },
                    time: record.time,
                });
            }
        } else {
            self.latest = record.time;
        }
        match self.order {
            Order::Sorted => self.hand_on(record),
            Order::Nearly => {
                self.held.push(*record);
                if self.held.len() == 2 * WINDOW {
                    self.release(WINDOW);
                }
            }
            Order::Any => self.held.push(*record),
        }
        Ok(())
    }

    /// Records that are held.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    fn hand_on(&mut self, record: &Record) {
        let taken = self.analyzer.push(record);
        debug_assert!(taken.is_ok(), "the lane is in order");
    }

    /// Hands the `count` earliest records on; of equal times the first to come goes first.
    fn release(&mut self, count: usize) {
        if !self.sorted {
            self.held.sort_by_key(|r| r.time);
            self.sorted = true;
        }
        let held = std::mem::take(&mut self.held);
        held[..count].iter().for_each(|record| self.hand_on(record));
        if let Some(last) = held[..count].last() {
            self.released = last.time;
        }
        self.held = held;
        self.held.drain(..count);
    }

    /// Hands everything on; gives the analysis.
    pub fn finish(mut self) -> PortAnalyzer {
        self.release(self.held.len());
        self.analyzer
    }
}
