//! A burst ends when its queue is empty, whenever the next packet comes: by what each kind of trace knows.

use crate::port::{fifo, record, report, thresholds};
use fanin_analysis::{unknown_flows, PortAnalyzer, PortReport, Record, Settings, DROPPED, NO_QUEUE};
use fanin_units::{Span, Time};

const US: u64 = 1_000_000;
const SECOND: u64 = 1_000_000 * US;

/// 1000 B every 2 us, of which the port of 1 Gb/s sends one in 8 us, and a packet a second later.
fn incast(count: u64, limit: u64) -> Vec<Record> {
    let mut arrivals: Vec<(u64, u32, u32)> = (0..count).map(|i| (i * 2 * US, (i % 10) as u32, 1000)).collect();
    arrivals.push((SECOND, 3, 1000));
    fifo(&arrivals, limit)
}

/// When the turn of the last packet that was taken has come: 8 us for each before it.
fn empty(records: &[Record]) -> u64 {
    let taken = records[..records.len() - 1].iter().filter(|r| r.flags & DROPPED == 0).count() as u64;
    (taken - 1) * 8 * US
}

fn near(found: u64, expected: u64, slack: u64) {
    assert!(found.abs_diff(expected) <= slack, "{found} instead of {expected}");
}

#[test]
fn with_the_ports_speed_a_burst_lasts_until_the_queue_is_empty() {
    for limit in [u64::MAX, 300_000] {
        let records = incast(500, limit);
        let found = report(&thresholds(50_000, 12_500), &records);
        let burst = &found.bursts[0];
        let above = records.iter().position(|r| r.queue > 50_000).expect("a burst");
        let low = records[..above].iter().rfind(|r| r.queue <= 12_500).expect("a beginning");
        assert_eq!((burst.start_ps, burst.end_ps), (low.time.ps(), empty(&records)), "{limit}");
        assert_eq!((found.bursts_found, found.burst_ps, burst.open), (1, burst.duration_ps, false));
        let last = burst.phases.last().expect("phases");
        assert_eq!((last.end_ps, last.end_bytes, last.records), (burst.end_ps, 0.0, 0));
        assert!((last.slope_bps / -1e9 - 1.0).abs() < 0.02, "{last:?}");
        let rise = &burst.phases[0];
        assert!((rise.slope_bps / 3e9 - 1.0).abs() < 0.02, "4 Gb/s come and 1 leaves: {rise:?}");
        assert!((burst.fall_bps.expect("a fall") / -1e9 - 1.0).abs() < 0.02 || limit != u64::MAX, "{:?}", burst.fall_bps);
    }
}

#[test]
fn without_the_ports_speed_what_the_burst_shows_of_it_ends_it() {
    let unknown = Settings { rate: None, ..thresholds(50_000, 12_500) };
    // Enough for an estimate; enough for a bound; nothing that left.
    let records = incast(500, u64::MAX);
    near(report(&unknown, &records).bursts[0].end_ps, empty(&records), empty(&records) / 50);
    let records = incast(90, u64::MAX);
    let end = report(&unknown, &records).bursts[0].end_ps;
    assert!(end >= empty(&records) && end < 2 * empty(&records), "{end}");
    let arrivals: Vec<(u64, u32, u32)> = (0..90).map(|i| (i, 1, 1000)).chain([(SECOND, 1, 1000)]).collect();
    let burst = &report(&unknown, &fifo(&arrivals, u64::MAX)).bursts[0];
    assert_eq!((burst.end_ps, burst.fall_bps), (89, None), "nothing is known of its fall");
    let unsized_records: Vec<Record> = incast(90, u64::MAX).iter().map(|r| Record { frame: 0, ..*r }).collect();
    assert_eq!(report(&unknown, &unsized_records).bursts[0].end_ps, 89 * 2 * US);
}

fn waited(settings: &Settings, records: &[(Record, Option<u64>)]) -> PortReport {
    let mut analyzer = PortAnalyzer::new(settings, "p", unknown_flows());
    for (record, wait) in records {
        analyzer.push_waited(record, *wait).expect("order");
    }
    analyzer.finish()
}

/// A port that sends half of what it is said to: what its packets waited goes before that.
#[test]
fn waits_that_were_measured_end_a_burst() {
    let slow: Vec<(Record, Option<u64>)> = (0..200u64)
        .map(|i| {
            let (now, turn) = (i * 2 * US, i * 16 * US);
            let queue = (i - i.min(now.div_ceil(16 * US))) * 1000;
            (Record { time: Time::from_ps(now), queue, ..record(0, 0, 1) }, Some(turn - now))
        })
        .chain([(record(1_000_000, 0, 1), Some(0))])
        .collect();
    for rate in [None, thresholds(1, 1).rate] {
        let found = waited(&Settings { rate, ..thresholds(50_000, 12_500) }, &slow);
        assert_eq!(found.bursts[0].end_ps, 199 * 16 * US);
    }
}

#[test]
fn a_queue_that_was_not_empty_and_arrivals_that_come_before_it_is_end_no_burst() {
    // A port that pauses: after a second, half of what stood there still does.
    let mut records = incast(500, u64::MAX);
    let last = records.len() - 1;
    records[last].queue = 10_000;
    assert_eq!(report(&thresholds(50_000, 12_500), &records).bursts[0].end_ps, SECOND);
    // Arrivals go on while it drains.
    let mut arrivals: Vec<(u64, u32, u32)> = (0..500).map(|i| (i * 2 * US, 1, 1000)).collect();
    arrivals.extend((1..400).map(|i| (1000 * US + i * 16 * US, 1, 1000)));
    let records = fifo(&arrivals, u64::MAX);
    let low = records.iter().skip(100).find(|r| r.queue <= 12_500).expect("a low arrival");
    assert_eq!(report(&thresholds(50_000, 12_500), &records).bursts[0].end_ps, low.time.ps());
}

#[test]
fn idle_time_counts_for_what_is_merged() {
    let two = |gap: u64| {
        let mut arrivals: Vec<(u64, u32, u32)> = Vec::new();
        for start in [0, 4_000 * US + gap] {
            arrivals.extend((0..500).map(|i| (start + i * 2 * US, (i % 10) as u32, 1000)));
        }
        arrivals.push((SECOND, 3, 1000));
        report(&Settings { merge: Span::from_us(100), ..thresholds(50_000, 12_500) }, &fifo(&arrivals, u64::MAX))
    };
    // The queue of the first is empty after 3992 us.
    let (apart, merged) = (two(200 * US), two(50 * US));
    assert_eq!((apart.bursts_found, merged.bursts_found), (2, 1));
    assert_eq!(apart.bursts.iter().map(|b| b.end_ps).collect::<Vec<_>>(), [3_992 * US, 8_192 * US]);
    assert_eq!(apart.bursts[1].gap_ps, Some(apart.bursts[1].start_ps - 3_992 * US));
    assert_eq!(merged.bursts[0].end_ps, 8_042 * US);
}

#[test]
fn by_the_rate_a_burst_lasts_from_its_first_packet_until_its_last_has_left() {
    let settings =
        Settings { detect: fanin_analysis::Detect::Rate { window: Some(Span::from_us(25)), share: 0.5 }, ..thresholds(1, 1) };
    // From 107 us on, every 5 us, in windows that begin at 100 us, the last one alone in its window; and a packet a second later.
    let burst = (0..40u64).map(|i| Record { queue: NO_QUEUE, ..record(107 + 5 * i, 0, 1) });
    let records: Vec<Record> = burst.chain([Record { queue: NO_QUEUE, ..record(1_000_000, 0, 1) }]).collect();
    let found = report(&settings, &records);
    assert_eq!(found.bursts_found, 1);
    let burst = &found.bursts[0];
    assert_eq!((burst.start_ps, burst.end_ps, burst.records), (107 * US, (297 + 8) * US, 39));
    assert!(burst.peak_ps >= burst.start_ps);
}
