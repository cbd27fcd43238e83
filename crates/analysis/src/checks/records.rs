//! Checks of a port's records: more than the line carries, running totals instead of queues.

use crate::checks::{Finding, Level};
use crate::display::{rate as rate_of, size, span};
use crate::{Record, NO_QUEUE};
use fanin_units::{BitRate, Bytes, Span};

/// True if stamps are coarser than the frames of a port are long.
pub fn coarse(tick: Span, rate: BitRate, place: &str) -> Option<Finding> {
    let frame = rate.time_to_send(Bytes(1538));
    (tick > frame).then(|| Finding {
        code: "coarse_stamps",
        level: Level::Doubt,
        place: place.to_string(),
        count: 1,
        bytes: None,
        words: format!(
            "times are whole multiples of {}, and a full frame takes {} at {}: what is shorter than some frames cannot be seen",
            span(tick.ps()),
            span(frame.ps()),
            rate_of(rate.bps() as f64)
        ),
        hint: "capture with --time-stamp-precision=nano, and stamps of the NIC if it has them (tcpdump -j adapter_unsynced)"
            .into(),
    })
}

/// Part of all bytes from which those without a record are a doubt.
const MISSING: f64 = 0.05;

/// Finding that so much of a port has no record that drops, lengths and shares of flows are off.
///
/// `missing`: how often the queue grew by more than arrived, the bytes of that, and those that have a record.
pub fn missing_records((times, missing, recorded): (u64, u64, u64), port: &str) -> Option<Finding> {
    let all = missing.saturating_add(recorded);
    (missing as f64 > MISSING * all as f64).then(|| Finding {
        code: "missing_records",
        level: Level::Doubt,
        place: port.to_string(),
        count: times,
        bytes: Some(missing),
        words: format!(
            "{times} times the queue grew by more than arrived: at least {} of {} have no record",
            size(missing as f64),
            size(all as f64)
        ),
        hint:
            "drops among them are not counted, and whose they were is unknown; give the whole trace, or a sample of it as looks \
               at the queue, without the column of the frame"
                .into(),
    })
}

/// Finding that looks at the queue tell of drops and saw no burst: how many, and where they may have been.
pub fn unseen_drops((drops, words): (u64, String), port: &str) -> Finding {
    Finding {
        code: "drops_unseen",
        level: Level::Doubt,
        place: port.to_string(),
        count: drops,
        bytes: None,
        words,
        hint: "they are in no burst, and when in that time they were is unknown: look more often, or lower --above; a policer or a filter \
               drops without a queue"
            .into(),
    }
}

/// Factors of the given speed within which the records' own may lie: above, above for sure, and below.
const SPEEDS: (f64, f64, f64) = (1.02, 1.05, 0.95);

/// Finding that a port sent at another speed than the one given, by the records themselves.
///
/// `given`: that speed on the wire [bit/s]; then low quarter, middle and high quarter of the busy windows, and their number.
pub fn other_speed((given, [low, middle, high], windows): (f64, [f64; 3], u64), port: &str) -> Option<Finding> {
    let (above, surely, below) = SPEEDS;
    let faster = low > above * given;
    if !faster && high >= below * given {
        return None;
    }
    let hint = if faster {
        "check --rate, and --overhead where frames have other lengths; records that stand twice in a trace look the same"
    } else {
        "check --rate; less is sent, too, where records are missing, or where the port was paused, shaped or shared with other queues"
    };
    Some(Finding {
        code: "speed",
        level: if low > surely * given { Level::Wrong } else { Level::Doubt },
        place: port.to_string(),
        count: windows,
        bytes: None,
        words: format!(
            "while packets waited the port sent {}, {:.1} % of {}: what arrived less what the queue grew by",
            rate_of(middle),
            100.0 * middle / given,
            rate_of(given)
        ),
        hint: hint.into(),
    })
}

/// Shortest window in which arrivals are compared with the line, and the full frames that it must have room for.
const WINDOW: Span = Span::from_us(25);
const FRAMES: u64 = 32;
/// Largest plausible speed of the senders' links, as a multiple of the port's.
const FASTER: u64 = 4;

/// Length of the window [ps].
pub fn window_of(rate: BitRate, overhead: Bytes) -> u64 {
    WINDOW.max(rate.time_to_send(Bytes(FRAMES * (1518 + overhead.get())))).ps().max(1)
}

/// Bytes that a line carries in a window.
pub fn carried_in(window: u64, rate: BitRate) -> u64 {
    rate.bytes_in(Span::from_ps(window)).get()
}

/// The fullest window of a port.
#[derive(Clone, Copy, Debug)]
struct Crest {
    window: u64,
    overhead: u64,
    start: u64,
    end: u64,
    bytes: u64,
    fullest: (u64, u64),
}

impl Crest {
    pub fn new(rate: BitRate, overhead: Bytes) -> Self {
        Crest { window: window_of(rate, overhead), overhead: overhead.get(), start: 0, end: 0, bytes: 0, fullest: (0, 0) }
    }

    #[inline]
    pub fn see(&mut self, record: &Record) {
        let time = record.time.ps();
        let (start, end) = (self.start.min(time), self.end.max(time));
        if end - start < self.window {
            (self.start, self.end) = (start, end);
        } else if time > self.end {
            (self.start, self.end, self.bytes) = (time, time, 0);
        } else {
            // Late, of a window that is over: it is not counted.
            return;
        }
        self.bytes += u64::from(record.frame) + self.overhead;
        if self.bytes > self.fullest.0 {
            self.fullest = (self.bytes, self.start);
        }
    }

    /// Finding about more bytes than the line carries, with the factor, and if so many `senders` together could have sent them.
    pub fn finding(&self, rate: BitRate, senders: u64, port: &str) -> Option<Finding> {
        let carried = carried_in(self.window, rate);
        let (bytes, at) = self.fullest;
        if bytes <= carried + carried / 10 {
            return None;
        }
        let times = bytes as f64 / carried.max(1) as f64;
        let together = bytes <= carried.saturating_mul(senders);
        // Links of senders may be some times as fast as the port.
        let doubtful = bytes > carried.saturating_mul(senders).saturating_mul(FASTER);
        let words = format!(
            "at {} {} arrived within {}, {times:.1} times what {} carries{}",
            span(at),
            size(bytes as f64),
            span(self.window),
            rate_of(rate.bps() as f64),
            if together {
                format!(": {senders} senders could bring that before the port, nothing behind it")
            } else {
                String::new()
            }
        );
        let hint = if together {
            "if the capture was taken at the port or behind it, the speed or the stamps are wrong: see --rate"
        } else {
            "the speed (--rate) or the stamps are wrong (a NIC that hands frames over in batches: ethtool -C DEV rx-usecs 0), or the capture was taken where links are faster"
        };
        let level = if doubtful { Level::Doubt } else { Level::Note };
        Some(Finding {
            code: "above_line",
            level,
            place: port.to_string(),
            count: 1,
            bytes: Some(bytes),
            words,
            hint: hint.into(),
        })
    }
}

/// Records of a table that show whether a column is a running total.
const ENOUGH: u64 = 100;

/// Checks of the records of one port of a table.
#[derive(Clone, Copy, Debug, Default)]
struct TotalsCheck {
    records: u64,
    last: u64,
    rises: u64,
    falls: u64,
    /// Rises by just the frame of the record before.
    by_frame: u64,
    /// Records that found the queue as the one before did, though that one had joined it.
    still: u64,
    frame: u64,
    /// Records that were dropped since the last one that was not, and the number of such series.
    dropped: u64,
    starts: u64,
}

impl TotalsCheck {
    #[inline]
    pub fn see(&mut self, record: &Record) {
        if record.queue != NO_QUEUE {
            if self.records > 0 {
                self.rises += u64::from(record.queue > self.last);
                self.falls += u64::from(record.queue < self.last);
                self.by_frame += u64::from(record.queue == self.last.wrapping_add(self.frame));
                self.still += u64::from(record.queue == self.last && self.frame > 0 && self.dropped == 0);
            }
            (self.last, self.frame) = (record.queue, u64::from(record.frame));
        }
        self.records += 1;
        self.starts += u64::from(record.dropped() && self.dropped == 0);
        self.dropped = if record.dropped() { self.dropped + 1 } else { 0 };
    }

    pub fn findings(&self, port: &str, findings: &mut Vec<Finding>) {
        let mut say = |code, level, count, words: String, hint: &str| {
            findings.push(Finding { code, level, place: port.to_string(), count, bytes: None, words, hint: hint.into() });
        };
        let by_frame = self.by_frame * 10 >= self.rises * 9;
        // A total grows with each frame; a queue into which two senders send at the port's speed, with every other.
        let in_balance = by_frame && self.still * 4 >= self.rises;
        if self.falls == 0 && self.rises >= ENOUGH && !in_balance {
            let hint = "give the column of the queue's length (--columns queue=...), not a counter of bytes";
            let words = format!("the queue never falls in {} records and rises {} times", self.records, self.rises);
            if by_frame {
                say(
                    "cumulative_queue",
                    Level::Wrong,
                    self.rises,
                    format!("{words}, by just the frame before: it is a running total"),
                    hint,
                );
            } else {
                say("cumulative_queue", Level::Doubt, self.rises, format!("{words}: it may be a running total"), hint);
            }
        }
        if self.starts == 1 && self.dropped >= ENOUGH && self.dropped < self.records {
            let words =
                format!("the last {} records are all dropped, and none before: it is a running count, perhaps", self.dropped);
            let hint = "give a column that says of each packet alone whether it was dropped (0 or 1), or say that it is a running count: dropped=COLUMN:total";
            say("cumulative_dropped", Level::Wrong, self.dropped, words, hint);
        }
    }
}

/// All checks of a port's records.
pub struct PortChecks {
    /// Speed of the port, on which estimates and detection by arrival rate depend.
    rate: Option<BitRate>,
    crest: Option<Crest>,
    totals: Option<TotalsCheck>,
}

impl PortChecks {
    /// `rate`: the port's speed, where bursts are those of the arrival rate (`by_rate`) or its queue is estimated; `table`: others wrote
    /// its columns.
    pub fn new(rate: Option<BitRate>, overhead: Bytes, (by_rate, table): (bool, bool)) -> Self {
        let crest = rate.filter(|_| by_rate).map(|rate| Crest::new(rate, overhead));
        PortChecks { rate, crest, totals: table.then(TotalsCheck::default) }
    }

    /// True if there is nothing to check.
    pub fn is_empty(&self) -> bool {
        self.crest.is_none() && self.totals.is_none()
    }

    #[inline]
    pub fn see(&mut self, record: &Record) {
        if let Some(crest) = &mut self.crest {
            crest.see(record);
        }
        if let Some(totals) = &mut self.totals {
            totals.see(record);
        }
    }

    /// Adds the findings about a port. `senders`: hosts that sent to it; `tick`: step of the times.
    pub fn findings(&self, port: &str, senders: u64, tick: Span, findings: &mut Vec<Finding>) {
        if let Some(rate) = self.rate {
            findings.extend(self.crest.and_then(|crest| crest.finding(rate, senders, port)));
            findings.extend(coarse(tick, rate, port));
        }
        if let Some(totals) = &self.totals {
            totals.findings(port, findings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Time;

    fn record(time: u64, queue: u64, frame: u32, flags: u8) -> Record {
        Record { time: Time::from_ps(time), queue, frame, flow: 0, flags }
    }

    #[test]
    fn a_port_that_sent_faster_or_slower_than_given_is_said() {
        let of = |low, middle, high| other_speed((10e9, [low, middle, high], 5), "p").map(|found| found.level);
        assert_eq!(of(9.9e9, 10e9, 10.1e9), None);
        assert_eq!(of(9.0e9, 9.4e9, 9.6e9), None, "windows reach the speed");
        assert_eq!(of(8.8e9, 9.0e9, 9.4e9), Some(Level::Doubt));
        assert_eq!(of(10.3e9, 10.3e9, 10.3e9), Some(Level::Doubt));
        let found = other_speed((10e9, [19e9, 20e9, 21e9], 5), "p").unwrap();
        assert_eq!((found.code, found.level, found.count), ("speed", Level::Wrong, 5));
        assert!(found.words.contains("the port sent 20 Gb/s, 200.0 % of 10 Gb/s"), "{}", found.words);
    }

    #[test]
    fn five_megabytes_in_25_us_are_no_10_gigabits() {
        let rate = BitRate::from_gbps(10);
        let mut crest = Crest::new(rate, Bytes(20));
        let window = crest.window;
        // At the line, and in batches of 64 KB as a NIC hands them over: no finding.
        (0..10_000).for_each(|i| crest.see(&record(i * 1_230_400, NO_QUEUE, 1518, 0)));
        assert_eq!(crest.finding(rate, 1, "p"), None);
        // The same bytes at once.
        (0..3_822).for_each(|_| crest.see(&record(20_000_000_000, NO_QUEUE, 1518, 0)));
        let found = crest.finding(rate, 18, "p").unwrap();
        assert_eq!((found.code, found.level, found.bytes), ("above_line", Level::Doubt, Some(3_822 * 1538)));
        assert!(
            found.words.starts_with("at 20 ms 5.878 MB arrived within 39.37 us, 119.4 times what 10 Gb/s carries"),
            "{}",
            found.words
        );
        assert_eq!(crest.finding(rate, 120, "p").unwrap().level, Level::Note, "so many could");
        // In any order they are the same.
        let mut shuffled = Crest::new(rate, Bytes(20));
        let times = (0..3_822).map(|i| 20_000_000_000 + 3_000 * (i * 1_009 % 3_822));
        times.clone().for_each(|time| shuffled.see(&record(time, NO_QUEUE, 1518, 0)));
        let mut sorted = Crest::new(rate, Bytes(20));
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        times.into_iter().for_each(|time| sorted.see(&record(time, NO_QUEUE, 1518, 0)));
        assert_eq!(shuffled.finding(rate, 18, "p").unwrap().words, sorted.finding(rate, 18, "p").unwrap().words);
        // At 100 Mb/s the window has room for frames.
        assert!(Crest::new(BitRate::from_mbps(100), Bytes(20)).window > 50 * window);
    }

    #[test]
    fn counters_are_not_queues() {
        let findings = |records: &[Record]| {
            let mut check = TotalsCheck::default();
            records.iter().for_each(|r| check.see(r));
            let mut found = Vec::new();
            check.findings("p", &mut found);
            found.into_iter().map(|f| (f.code, f.level)).collect::<Vec<_>>()
        };
        let total: Vec<Record> = (0..200).map(|i| record(i, i * 1000, 1000, 0)).collect();
        assert_eq!(findings(&total), [("cumulative_queue", Level::Wrong)]);
        let ramp: Vec<Record> = (0..200).map(|i| record(i, i * 300, 1000, 0)).collect();
        assert_eq!(findings(&ramp), [("cumulative_queue", Level::Doubt)]);
        // Two senders at the port's speed: one frame leaves as two arrive. A total of what is sent stands where a frame was dropped.
        let ramp: Vec<Record> = (0..400).map(|i| record(i, i / 2 * 1000, 1000, 0)).collect();
        assert_eq!(findings(&ramp), []);
        let lossy: Vec<Record> =
            (0..400).map(|i| record(i, i.div_ceil(2) * 1000, 1000, if i % 2 == 1 { crate::DROPPED } else { 0 })).collect();
        assert_eq!(findings(&lossy), [("cumulative_queue", Level::Wrong)]);
        let queue: Vec<Record> = (0..200).map(|i| record(i, if i == 150 { 7 } else { i * 300 }, 1000, 0)).collect();
        assert_eq!(findings(&queue), []);
        let dropped = |from: u64, to: u64| {
            let flags = move |i| if (from..to).contains(&i) { crate::DROPPED } else { 0 };
            (0..400).map(|i| record(i, i % 7, 1000, flags(i))).collect::<Vec<_>>()
        };
        assert_eq!(findings(&dropped(200, 400)), [("cumulative_dropped", Level::Wrong)]);
        assert_eq!(findings(&dropped(200, 399)), []);
        assert_eq!(findings(&dropped(350, 400)), []);
    }

    #[test]
    fn over_a_twentieth_without_a_record_is_a_doubt() {
        assert_eq!(missing_records((0, 0, 0), "p"), None);
        assert_eq!(missing_records((3, 5_000, 95_000), "p"), None);
        let found = missing_records((3, 5_001, 95_000), "p").unwrap();
        assert_eq!((found.code, found.level, found.count, found.bytes), ("missing_records", Level::Doubt, 3, Some(5_001)));
        assert!(
            found.words.starts_with("3 times the queue grew by more than arrived: at least 5.001 KB of 100 KB"),
            "{}",
            found.words
        );
    }

    #[test]
    fn microseconds_are_coarse_at_100_gigabits_and_not_at_10() {
        assert!(coarse(Span::from_us(1), BitRate::from_gbps(10), "p").is_none());
        let found = coarse(Span::from_us(1), BitRate::from_gbps(100), "p").unwrap();
        assert!(
            found.words.starts_with("times are whole multiples of 1 us, and a full frame takes 123 ns at 100 Gb/s"),
            "{}",
            found.words
        );
    }
}
