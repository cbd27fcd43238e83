//! Queue over a burst: exact at first, then every n-th record.

use crate::Record;

/// Records kept exactly from a burst's start on.
pub const HEAD: usize = 4096;
/// Number of points that are kept beyond the exact ones.
pub const TAIL: usize = 4096;

/// One record of a burst's beginning.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub record: Record,
    pub slot: u32,
}

/// A point of the queue: time in ps, bytes found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub time: u64,
    pub queue: u64,
}

/// Records of the burst that is open or may begin.
#[derive(Debug, Default)]
pub struct Series {
    pub head: Vec<Entry>,
    tail: Vec<Point>,
    /// Every `2^step`-th record enters the tail.
    step: u32,
    seen: u64,
    /// The latest point of all, wherever it fell.
    last: Option<Point>,
}

impl Series {
    pub fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
        self.step = 0;
        self.seen = 0;
        self.last = None;
    }

    #[inline(always)]
    pub fn push(&mut self, record: &Record, slot: u32) {
        if self.head.len() < HEAD {
            self.head.push(Entry { record: *record, slot });
        } else {
            self.push_tail(record);
        }
    }

    #[inline(never)]
    fn push_tail(&mut self, record: &Record) {
        let point = Point { time: record.time.ps(), queue: record.queue };
        self.last = Some(point);
        if self.seen & ((1 << self.step) - 1) == 0 {
            if self.tail.len() == TAIL {
                let mut keep = false;
                self.tail.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.step += 1;
                if self.seen & ((1 << self.step) - 1) != 0 {
                    self.seen += 1;
                    return;
                }
            }
            self.tail.push(point);
        }
        self.seen += 1;
    }

    /// True if the head holds every record.
    pub fn complete_head(&self) -> bool {
        self.last.is_none()
    }

    /// True if the head holds every record up to `time`.
    pub fn covers(&self, time: u64) -> bool {
        self.complete_head() || self.head.last().is_some_and(|e| e.record.time.ps() >= time)
    }

    /// All points up to `end`, in order.
    pub fn points(&self, end: u64) -> Vec<Point> {
        let mut points = Vec::with_capacity(self.head.len() + self.tail.len() + 1);
        points.extend(self.all().take_while(|p| p.time <= end));
        points
    }

    /// The latest point up to `end`.
    pub fn last_point(&self, end: u64) -> Option<Point> {
        self.all().rev().find(|p| p.time <= end)
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = Point> + '_ {
        let head = self.head.iter().map(|e| Point { time: e.record.time.ps(), queue: e.record.queue });
        let last = self.last.filter(|last| self.tail.last() != Some(last));
        head.chain(self.tail.iter().copied()).chain(last)
    }
}
