//! Records of one port in order of time: straight through where the file has them so, within a window where receivers are
//! interleaved, all at once where the user asks to sort.

use crate::counters::Reading;
use crate::input::sorter::{Sorter, Stored};
use crate::{PortAnalyzer, Record};
use fanin_units::{Span, Time};
use std::io::Error;

/// Records that may overtake one another.
pub const WINDOW: usize = 1 << 16;

/// Number of records of a port that are handed on together where they come in order: its analysis then stays in the cache.
const TOGETHER: usize = 256;

/// Records of a port that are sorted in memory at a time (48 B each: 6 MB); runs of so many are merged.
const SORTED: usize = 1 << 17;

/// Order in which records come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each record not before the last.
    Sorted,
    /// Each not before the one [`WINDOW`] places ahead of it.
    Nearly,
    /// Anyhow; all are sorted before the first is handed on.
    Any,
}

/// A record that arrives too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Time of the last record that was handed on.
    pub after: Time,
    pub time: Time,
}

/// A record on its way, and its wait [ps], where waits are measured.
#[derive(Clone, Copy, Debug)]
struct Timed(Record, Option<Option<u64>>);

impl Stored for Timed {
    const BYTES: usize = 34;

    fn time(&self) -> i128 {
        self.0.time.ps().into()
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let Timed(record, wait) = self;
        for word in [record.time.ps(), record.queue, wait.flatten().unwrap_or(0)] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(record.frame.to_le_bytes());
        bytes.extend(record.flow.to_le_bytes());
        bytes.extend([record.flags, wait.map_or(0, |wait| 1 + u8::from(wait.is_some()))]);
    }

    fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b));
        let half = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b));
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let (time, flags) = (Time::from_ps(word(0)), byte(32));
        let wait = [None, Some(None), Some(Some(word(16)))][usize::from(byte(33)).min(2)];
        Timed(Record { time, queue: word(8), frame: half(24), flow: half(28), flags }, wait)
    }
}

/// Receiver of the records of a port, in order of time.
pub trait Sink {
    fn take(&mut self, record: &Record);
    /// Takes a record of a packet whose wait [ps] was measured; none if it never left.
    #[inline]
    fn take_measured(&mut self, record: &Record, _wait: Option<u64>) {
        self.take(record);
    }
    /// Takes a record whose queue and wait [ps] are estimates.
    #[inline]
    fn take_estimated(&mut self, record: &Record, _wait: Option<u64>) {
        self.take(record);
    }
    /// Takes a reading of counters: the queues in it, where it is not said otherwise.
    fn take_reading(&mut self, reading: &Reading) {
        if let Reading::Interval(interval) = reading {
            interval.records().for_each(|record| self.take(&record));
        }
    }
}

impl Sink for PortAnalyzer {
    #[inline]
    fn take(&mut self, record: &Record) {
        self.take_measured(record, None);
    }

    #[inline]
    fn take_measured(&mut self, record: &Record, wait: Option<u64>) {
        let taken = self.push_waited(record, wait);
        debug_assert!(taken.is_ok(), "the lane is in order");
    }

    #[inline]
    fn take_estimated(&mut self, record: &Record, wait: Option<u64>) {
        self.take_measured(record, wait);
    }
}

/// Records of one port on their way to be handed on in order.
pub struct Lane<S> {
    sink: S,
    order: Order,
    held: Vec<Record>,
    /// Waits of the held records [ps], where they are measured: empty, or as many.
    waits: Vec<Option<u64>>,
    /// Records so far, where all are sorted.
    sorter: Result<Sorter<Timed>, Error>,
    /// True if `held` is in order.
    sorted: bool,
    /// The latest time held or handed on.
    latest: Time,
    released: Time,
    /// Records that came after a later one, and by how much at most.
    pub overtaken: u64,
    pub lag: Span,
}

impl<S: Sink> Lane<S> {
    pub fn new(sink: S, order: Order) -> Self {
        Lane {
            sink,
            order,
            held: Vec::new(),
            waits: Vec::new(),
            sorter: Ok(Sorter::new(SORTED)),
            sorted: true,
            latest: Time::ZERO,
            released: Time::ZERO,
            overtaken: 0,
            lag: Span::ZERO,
        }
    }

    /// Takes the next record, whose wait was measured, as that of all records of the port.
    ///
    /// # Errors
    /// It is too late.
    pub fn push_measured(&mut self, record: &Record, wait: Option<u64>) -> Result<(), Late> {
        if self.order != Order::Any {
            self.waits.push(wait);
        }
        self.add(record, Some(wait))
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// It is too late.
    #[inline]
    pub fn push(&mut self, record: &Record) -> Result<(), Late> {
        self.add(record, None)
    }

    #[inline]
    fn add(&mut self, record: &Record, wait: Option<Option<u64>>) -> Result<(), Late> {
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
        if self.order == Order::Any {
            if let Ok(sorter) = &mut self.sorter {
                if let Err(error) = sorter.push(Timed(*record, wait)) {
                    self.sorter = Err(error);
                }
            }
            return Ok(());
        }
        self.held.push(*record);
        match self.order {
            Order::Sorted if self.held.len() == TOGETHER => self.release(TOGETHER),
            Order::Nearly if self.held.len() == 2 * WINDOW => self.release(WINDOW),
            _ => {}
        }
        Ok(())
    }

    /// Takes a reading of counters, which a source gives in order of time.
    pub fn push_reading(&mut self, reading: &Reading) {
        self.sink.take_reading(reading);
    }

    /// Error because of which records cannot be sorted.
    pub fn unsorted(&self) -> Option<&Error> {
        self.sorter.as_ref().err()
    }

    /// Hands the `count` earliest records on; of equal times the first to come goes first.
    fn release(&mut self, count: usize) {
        if !self.sorted {
            self.sort();
        }
        let held = std::mem::take(&mut self.held);
        if self.waits.is_empty() {
            held[..count].iter().for_each(|record| self.sink.take(record));
        } else {
            let waits = self.waits.drain(..count);
            held[..count].iter().zip(waits).for_each(|(record, wait)| self.sink.take_measured(record, wait));
        }
        if let Some(last) = held[..count].last() {
            self.released = last.time;
        }
        self.held = held;
        self.held.drain(..count);
    }

    fn sort(&mut self) {
        if !self.waits.is_empty() {
            let mut order: Vec<usize> = (0..self.held.len()).collect();
            order.sort_by_key(|i| self.held[*i].time);
            self.waits = order.into_iter().map(|i| self.waits[i]).collect();
        }
        self.held.sort_by_key(|r| r.time);
        self.sorted = true;
    }

    /// Hands all records on; gives the sink.
    ///
    /// # Errors
    /// What was sorted cannot be read.
    pub fn finish(mut self) -> Result<S, Error> {
        self.release(self.held.len());
        let mut sorted = self.sorter?.finish()?;
        while let Some(Timed(record, wait)) = sorted.next()? {
            match wait {
                Some(wait) => self.sink.take_measured(&record, wait),
                None => self.sink.take(&record),
            }
        }
        Ok(self.sink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NO_QUEUE;

    impl Sink for Vec<Record> {
        fn take(&mut self, record: &Record) {
            self.push(*record);
        }
    }

    fn at(ps: u64, flow: u32) -> Record {
        Record { time: Time::from_ps(ps), queue: 0, frame: 0, flow, flags: 0 }
    }

    #[test]
    fn interleaved_receivers_are_put_in_order_and_equal_times_stay_as_they_came() {
        let mut lane = Lane::new(Vec::new(), Order::Nearly);
        let count = 5 * WINDOW as u64 + 3;
        // Groups of thirty come backwards, two of each time.
        for i in 0..count {
            let group = i / 30;
            lane.push(&at(1_000 * group + (29 - i % 30) / 2, i as u32)).unwrap();
        }
        assert!(lane.overtaken > 0 && lane.lag == Span::from_ps(14));
        let records = lane.finish().unwrap();
        assert_eq!(records.len() as u64, count);
        assert!(records.windows(2).all(|w| (w[0].time, w[0].flow) < (w[1].time, w[1].flow) || w[0].time < w[1].time));
    }

    #[test]
    fn more_disorder_than_the_window_holds_is_an_error_unless_all_is_sorted() {
        let mut nearly = Lane::new(Vec::new(), Order::Nearly);
        let mut any = Lane::new(Vec::new(), Order::Any);
        for i in 0..2 * WINDOW as u64 {
            nearly.push(&at(10 + i, 0)).unwrap();
            any.push(&at(10 + i, 0)).unwrap();
        }
        let released = Time::from_ps(10 + WINDOW as u64 - 1);
        assert_eq!(nearly.push(&at(3, 0)), Err(Late { after: released, time: Time::from_ps(3) }));
        any.push(&at(3, 7)).unwrap();
        let sorted = any.finish().unwrap();
        assert_eq!((sorted.len(), sorted[0].flow), (2 * WINDOW + 1, 7));
        assert!(sorted.windows(2).all(|w| w[0].time <= w[1].time));
        let mut sorted = Lane::new(Vec::new(), Order::Sorted);
        sorted.push(&at(5, 0)).unwrap();
        assert_eq!(sorted.push(&at(4, 0)), Err(Late { after: Time::from_ps(5), time: Time::from_ps(4) }));
    }

    #[test]
    fn what_is_stored_while_it_is_sorted_is_read_again() {
        for wait in [None, Some(None), Some(Some(0)), Some(Some(u64::MAX))] {
            let timed = Timed(Record { queue: NO_QUEUE, frame: 9, flags: 0xa5, ..at(1 << 60, 77) }, wait);
            let mut bytes = Vec::new();
            timed.write(&mut bytes);
            assert_eq!((bytes.len(), format!("{:?}", Timed::read(&bytes))), (Timed::BYTES, format!("{timed:?}")));
        }
    }
}
