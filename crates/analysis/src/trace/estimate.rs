//! Queue of a port from its arrivals: an estimate, by Lindley's recursion with a drop-tail buffer.
//!
//! A packet begins to leave when it has arrived and the one before it has left: s(k) = max(a(k), s(k−1) + size(k−1)/rate). It waits
//! s(k) − a(k), and finds the bytes of all that have not begun to leave. A packet that the buffer cannot hold beside those is dropped.
//!
//! Source: Lindley 1952 (waiting times of a single server); the limit of bytes or packets is that of Linux's bfifo and pfifo.

use super::line_check::LineCheck;
use super::range::Estimate;
use crate::bursts::{EstimateError, EstimateRange, EstimateReport, Sure};
use crate::checks::Finding;
use crate::counters::Reading;
use crate::input::problem::Problem;
use crate::trace::order::Sink;
use crate::{Record, DROPPED, NO_QUEUE};
use fanin_units::{Amount, BitRate, Bytes, QuantityError, Span, Time, WireClock};
use std::collections::VecDeque;

/// Packets that an unlimited buffer may hold.
pub const MOST_WAITING: usize = 1 << 22;

/// Buffer of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    Bytes(u64),
    Packets(u64),
    Unlimited,
}

impl Buffer {
    /// Reads `512KB`, `1000 packets` or `unlimited`.
    ///
    /// # Errors
    /// As for [`Amount::read`].
    pub fn read(text: &str) -> Result<Buffer, QuantityError> {
        if text.trim() == "unlimited" {
            return Ok(Buffer::Unlimited);
        }
        match Amount::read(text)? {
            Amount::Bytes(bytes) => Ok(Buffer::Bytes(bytes)),
            Amount::Packets(packets) => Ok(Buffer::Packets(packets)),
            Amount::Cells(_) => Err(QuantityError::UnknownUnit("cells".into())),
        }
    }
}

impl std::fmt::Display for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Buffer::Bytes(bytes) => Bytes(*bytes).fmt(f),
            Buffer::Packets(packets) => write!(f, "{packets} packets"),
            Buffer::Unlimited => write!(f, "unlimited"),
        }
    }
}

/// Sums of the comparison.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    records: u64,
    square: f64,
    sum: f64,
    largest: u64,
    peak: u64,
    measured: u64,
    estimated: u64,
    both: u64,
}

/// A port whose queue is calculated.
#[derive(Debug)]
pub struct Lindley {
    rate: BitRate,
    overhead: u64,
    buffer: Buffer,
    clock: WireClock,
    /// Time at which each packet in the queue begins to leave, and its bytes.
    waiting: VecDeque<(u64, u32)>,
    bytes: u64,
    /// Time at which the port has sent all that it accepted [ps].
    free: u64,
    busy: u128,
    first: Option<u64>,
    last: u64,
    records: u64,
    /// Records that the trace knew no queue of.
    unknown: u64,
    unsized_records: u64,
    peak: u64,
    dropped: u64,
    longest: u64,
    compared: Compared,
    line: LineCheck,
    /// First time at which more packets waited than are kept; `None`: never.
    overflow: Option<Time>,
}

impl Lindley {
    pub fn new(rate: BitRate, overhead: Bytes, buffer: Buffer) -> Self {
        Lindley {
            rate,
            overhead: overhead.get(),
            buffer,
            clock: WireClock::new(rate),
            waiting: VecDeque::new(),
            bytes: 0,
            free: 0,
            busy: 0,
            first: None,
            last: 0,
            records: 0,
            unknown: 0,
            unsized_records: 0,
            peak: 0,
            dropped: 0,
            longest: 0,
            compared: Compared::default(),
            line: LineCheck::new(rate, overhead),
            overflow: None,
        }
    }

    /// Estimates the queue that a record found, and its wait; `None` where the trace knows the queue.
    pub fn take(&mut self, record: &Record) -> Option<(Record, Option<u64>)> {
        let now = record.time.ps();
        self.first.get_or_insert(now);
        self.last = now;
        self.records += 1;
        self.unsized_records += u64::from(record.frame == 0);
        while let Some((_, bytes)) = self.waiting.front().filter(|(start, _)| *start <= now) {
            self.bytes -= u64::from(*bytes);
            self.waiting.pop_front();
        }
        let queue = self.bytes;
        self.peak = self.peak.max(queue);
        let measured = record.queue != NO_QUEUE;
        // What is known to be lost before the buffer takes no room in it.
        let lost = !measured && record.dropped();
        let full = match self.buffer {
            Buffer::Bytes(most) => queue + u64::from(record.frame) > most,
            Buffer::Packets(most) => self.waiting.len() as u64 >= most,
            Buffer::Unlimited => false,
        };
        // A port that is idle sends at once, whatever its buffer.
        let idle = self.free <= now;
        let dropped = lost || (full && !idle);
        let wait = (!dropped).then(|| self.accept(now, record.frame));
        self.dropped += u64::from(dropped);
        if measured {
            self.compare(record, queue, dropped);
            return None;
        }
        self.unknown += 1;
        self.line.see(now, u64::from(record.frame) + self.overhead);
        let record = Record { queue, flags: if dropped { record.flags | DROPPED } else { record.flags }, ..*record };
        Some((record, wait))
    }

    /// Accepts a packet into the queue; gives its wait.
    fn accept(&mut self, now: u64, frame: u32) -> u64 {
        let wire = u32::try_from(u64::from(frame) + self.overhead).unwrap_or(u32::MAX);
        let time = self.clock.tx(wire).ps();
        let start = self.free.max(now);
        self.free = start.saturating_add(time);
        self.busy += u128::from(self.free - start);
        self.longest = self.longest.max(start - now);
        if start > now {
            if self.waiting.len() == MOST_WAITING {
                self.overflow.get_or_insert(Time::from_ps(now));
                return start - now;
            }
            self.waiting.push_back((start, frame));
            self.bytes += u64::from(frame);
        }
        start - now
    }

    fn compare(&mut self, record: &Record, queue: u64, dropped: bool) {
        let c = &mut self.compared;
        let error = queue as f64 - record.queue as f64;
        c.records += 1;
        c.sum += error;
        c.square += error * error;
        c.largest = c.largest.max(queue.abs_diff(record.queue));
        c.peak = c.peak.max(record.queue);
        c.measured += u64::from(record.loses());
        c.estimated += u64::from(dropped);
        c.both += u64::from(dropped && record.loses());
    }

    /// Finding that the arrivals cannot have met the estimated queue, if so.
    pub fn finding(&self, port: &str) -> Option<Finding> {
        self.line.finding(self.rate, port)
    }

    /// Report of the estimate, notes, and a problem if it is impossible.
    pub fn finish(&self) -> (EstimateReport, Vec<String>, Option<Problem>) {
        let used = self.unknown > 0;
        let span = self.first.map_or(0, |first| self.last - first);
        let c = self.compared;
        let n = c.records.max(1) as f64;
        let report = EstimateReport {
            used,
            buffer: self.buffer.to_string(),
            rate_bps: self.rate.bps(),
            overhead_bytes: self.overhead,
            records: self.records,
            peak_bytes: self.peak,
            dropped: Some(self.dropped),
            longest_wait_ps: self.longest,
            rate_tolerance: 0.0,
            range: EstimateRange::default(),
            confirmed: None,
            sure: Sure::Unchecked,
            busy_share: (span > 0).then(|| (self.busy as f64 / span as f64).min(1.0)),
            error: (c.records > 0).then(|| EstimateError {
                records: c.records,
                rms_bytes: (c.square / n).sqrt(),
                mean_bytes: c.sum / n,
                largest_bytes: c.largest,
                measured_peak_bytes: c.peak,
                measured_dropped: c.measured,
                estimated_dropped: c.estimated,
                dropped_in_both: c.both,
            }),
        };
        let mut notes = Vec::new();
        if used {
            notes.push(format!(
                "queue and drops are an estimate: what arrived, through a port of {} with a drop-tail buffer of {}; \
                 other traffic of the port, pauses and other ways to drop are not in it",
                self.rate, self.buffer
            ));
        }
        if let Some(error) = &report.error {
            notes.push(format!(
                "an estimate from the arrivals alone (buffer of {}) is off by {} (RMS; mean {:+.0} B, at most {}); \
                 it drops {}, the port dropped {}, {} of them the same",
                self.buffer,
                Bytes(libm::round(error.rms_bytes) as u64),
                error.mean_bytes,
                Bytes(error.largest_bytes),
                error.estimated_dropped,
                error.measured_dropped,
                error.dropped_in_both
            ));
        }
        let problem = if let Some(at) = self.overflow {
            let what = format!("more than {MOST_WAITING} packets would wait at {}", Span::from_ps(at.ps()));
            Some(Problem::new(what).column("buffer").value(self.buffer.to_string()).suggestion("is the rate that of the port?"))
        } else if self.unsized_records > 0 {
            let what =
                format!("{} of {} records have no size, by which the queue is calculated", self.unsized_records, self.records);
            let suggestion = "looks at a queue need no estimate: leave the buffer away";
            let suggestion = match self.buffer {
                Buffer::Bytes(bytes) => {
                    format!("{suggestion}; fanin whatif is told how large it is by --set switch.buffer.per_port={}", Bytes(bytes))
                }
                _ => suggestion.into(),
            };
            Some(Problem::new(what).column("buffer").value(self.buffer.to_string()).suggestion(suggestion))
        } else {
            None
        };
        (report, notes, problem)
    }
}

/// Sink of the records of a port, behind an estimate of its queue where one was asked for.
pub struct Estimated<S> {
    pub sink: S,
    pub estimate: Option<Box<Estimate>>,
}

impl<S: Sink> Sink for Estimated<S> {
    #[inline]
    fn take(&mut self, record: &Record) {
        match self.estimate.as_mut().and_then(|estimate| estimate.take(record)) {
            Some((record, wait)) => self.sink.take_estimated(&record, wait),
            None => self.sink.take(record),
        }
    }

    fn take_measured(&mut self, record: &Record, wait: Option<u64>) {
        match self.estimate.as_mut().and_then(|estimate| estimate.take(record)) {
            Some((record, wait)) => self.sink.take_estimated(&record, wait),
            None => self.sink.take_measured(record, wait),
        }
    }

    fn take_reading(&mut self, reading: &Reading) {
        self.sink.take_reading(reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MARKED, NO_FLOW};

    fn at(ns: u64, frame: u32) -> Record {
        Record { time: Time::from_ps(ns * 1_000), queue: NO_QUEUE, frame, flow: NO_FLOW, flags: 0 }
    }

    /// 1 Gb/s: a byte takes 8 ns.
    fn port(buffer: Buffer) -> Lindley {
        Lindley::new(BitRate::from_gbps(1), Bytes(0), buffer)
    }

    #[test]
    fn a_packet_finds_what_has_not_begun_to_leave() {
        let mut port = port(Buffer::Unlimited);
        let found = |port: &mut Lindley, ns| port.take(&at(ns, 1_000)).unwrap().0.queue;
        assert_eq!(found(&mut port, 0), 0, "an empty port");
        assert_eq!(found(&mut port, 1), 0, "the first is on the wire");
        assert_eq!(found(&mut port, 2), 1_000);
        assert_eq!(found(&mut port, 8_000), 1_000, "the second has begun to leave");
        assert_eq!(found(&mut port, 7 * 8_000), 0);
        let (report, notes, problem) = port.finish();
        assert_eq!((report.peak_bytes, report.dropped, report.longest_wait_ps), (1_000, Some(0), 16_000_000));
        assert!(report.used && problem.is_none() && notes[0].contains("an estimate"), "{notes:?}");
        assert_eq!(report.busy_share, Some(1.0f64.min(40_000.0 / 56_000.0)));
    }

    #[test]
    fn a_full_buffer_drops_by_bytes_or_by_packets_but_never_at_an_idle_port() {
        for (buffer, kept) in
            [(Buffer::Bytes(2_999), 3), (Buffer::Bytes(3_000), 4), (Buffer::Packets(3), 4), (Buffer::Bytes(0), 1)]
        {
            let mut port = port(buffer);
            let dropped: Vec<bool> = (0..10).map(|i| port.take(&at(i, 1_000)).unwrap().0.dropped()).collect();
            assert_eq!(dropped, (0..10).map(|i| i >= kept).collect::<Vec<_>>(), "{buffer}");
        }
    }

    #[test]
    fn where_the_queue_is_known_it_stays_and_is_compared() {
        let mut port = port(Buffer::Bytes(1_000));
        let known = [(0, 0, 0), (1, 500, 0), (2, 1_000, DROPPED | MARKED), (3, 1_000, 0)];
        for (ns, queue, flags) in known {
            let record = Record { queue, flags, ..at(ns, 1_000) };
            assert_eq!(port.take(&record), None);
        }
        let (report, notes, problem) = port.finish();
        let error = report.error.unwrap();
        assert!(!report.used && problem.is_none());
        assert_eq!((error.measured_dropped, error.estimated_dropped, error.dropped_in_both), (1, 2, 1));
        assert_eq!((error.rms_bytes, error.mean_bytes, error.largest_bytes), (250.0, -125.0, 500));
        assert!(
            notes[0].contains("off by 250B (RMS; mean -125 B, at most 500B); it drops 2, the port dropped 1"),
            "{}",
            notes[0]
        );
    }

    #[test]
    fn without_sizes_there_is_no_estimate() {
        let mut port = port(Buffer::Unlimited);
        port.take(&at(0, 0));
        let problem = port.finish().2.unwrap().to_string();
        assert!(problem.contains("'unlimited' 1 of 1 records have no size"), "{problem}");
    }

    #[test]
    fn buffers_are_read_with_their_units() {
        assert_eq!(Buffer::read("512KB").unwrap(), Buffer::Bytes(512_000));
        assert_eq!(Buffer::read("1000 packets").unwrap(), Buffer::Packets(1_000));
        assert_eq!(Buffer::read("unlimited").unwrap().to_string(), "unlimited");
        assert!(Buffer::read("5 cells").is_err() && Buffer::read("5").is_err());
    }
}
