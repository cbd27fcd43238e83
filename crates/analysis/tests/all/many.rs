//! Very many bursts: what is said of a load of random arrivals, and of bursts that stand out.

use crate::port::{report, thresholds};
use fanin_analysis::{Detect, PortReport, Record, Settings, NO_QUEUE};
use fanin_units::{BitRate, Bytes, Time};

/// Poisson arrivals of equal frames at 100 Mb/s with a FIFO queue, and each `every` packets a batch of so many at once.
fn load(share: f64, packets: usize, (every, batch): (usize, usize), queue: bool) -> Vec<Record> {
    const FRAME: u64 = 1518;
    let send = FRAME * 80_000;
    let (mut time, mut work, mut random) = (0_u64, 0_u64, 7_u64);
    let mut records = Vec::new();
    for i in 0..packets {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let gap = (-libm::log(((random >> 11) as f64 + 1.0) / (1_u64 << 53) as f64) * send as f64 / share) as u64;
        time += gap;
        work = work.saturating_sub(gap);
        let batched = if every > 0 && i % every == every - 1 { batch } else { 1 };
        for _ in 0..batched {
            let waits = work.saturating_sub(send).div_ceil(send) * FRAME;
            let queue = if queue { waits } else { NO_QUEUE };
            records.push(Record { time: Time::from_ps(time), queue, frame: FRAME as u32, flow: (i % 40) as u32, flags: 0 });
            work += send;
        }
    }
    records
}

fn settings(detect: Detect) -> Settings {
    Settings { rate: Some(BitRate::from_mbps(100)), overhead: Bytes(0), detect, ..thresholds(1, 1) }
}

/// What is said of a load, and the value of an option in it.
fn hint<'a>(report: &'a PortReport, option: &str) -> Option<(&'a str, &'a str)> {
    let note = report.notes.iter().find(|note| note.contains(option))?;
    Some((note, note.split(option).nth(1)?.split_whitespace().next()?))
}

#[test]
fn queues_of_a_random_load_are_called_that() {
    let records = load(0.6, 200_000, (0, 0), true);
    let queue = |above: u64| Detect::Queue { above: Some(Bytes(above)), until: None };
    let all = report(&settings(queue(6_000)), &records);
    assert!(all.bursts_found > 500, "{}", all.bursts_found);
    let (note, value) = hint(&all, "--above ").unwrap_or_else(|| panic!("{:?}", all.notes));
    assert!(note.contains("at this load (60") && note.contains("random arrivals alone make such queues"), "{note}");
    let value: u64 = value.trim_end_matches('B').parse().unwrap();
    let left = report(&settings(queue(value)), &records);
    assert!(left.bursts_found <= 2 && left.notes.iter().all(|note| !note.contains("--above")), "{value}: {:?}", left.notes);
    // A batch of 60 packets every 1000 stays.
    let records = load(0.6, 200_000, (1000, 60), true);
    let found = report(&settings(queue(6_000)), &records);
    let (note, value) = hint(&found, "--above ").unwrap();
    let left = report(&settings(queue(value.trim_end_matches('B').parse().unwrap())), &records);
    assert!((190..=210).contains(&left.bursts_found), "{note}: {}", left.bursts_found);
}

#[test]
fn windows_of_a_random_load_are_called_that() {
    let records = load(0.6, 200_000, (0, 0), false);
    let by_rate = |window, share| settings(Detect::Rate { window, share });
    let all = report(&by_rate(None, 0.5), &records);
    assert!(all.bursts_found > 100, "{} {:?}", all.bursts_found, all.notes);
    let (note, window) = hint(&all, "--window ").unwrap_or_else(|| panic!("{:?}", all.notes));
    assert!(note.contains("than random arrivals bring at this load (60"), "{note}");
    let share: f64 = note.split("--share ").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let window = <fanin_units::Span as fanin_units::Quantity>::read(window).unwrap();
    let left = report(&by_rate(Some(window), share), &records);
    assert!(left.bursts_found <= 2, "{note}: {}", left.bursts_found);
}

#[test]
fn of_bursts_that_differ_the_value_that_leaves_the_highest_is_said() {
    // 200 bursts that last, the n-th 100 + n packets high; every tenth is three times as high.
    let mut records = Vec::new();
    for burst in 0..200_u64 {
        let height = (100 + burst) * if burst % 20 == 19 { 3 } else { 1 };
        for i in 0..=height {
            let time = Time::from_ps(burst * 1_000_000_000_000 + i * 60_720_000);
            records.push(Record { time, queue: i * 1518, frame: 1518, flow: (i % 9) as u32, flags: 0 });
        }
        let end = Time::from_ps(burst * 1_000_000_000_000 + 500_000_000_000);
        records.push(Record { time: end, queue: 0, frame: 1518, flow: 1, flags: 0 });
    }
    let queue = |above: u64| Detect::Queue { above: Some(Bytes(above)), until: None };
    let all = report(&settings(queue(12_000)), &records);
    let (note, value) = hint(&all, "--above ").unwrap_or_else(|| panic!("{:?}", all.notes));
    assert!(note.starts_with("200 bursts, half of them up to"), "{note}");
    let left = report(
        &settings(queue(
            value.trim_end_matches("KB").trim_end_matches('B').parse::<u64>().unwrap()
                * if value.contains("KB") { 1000 } else { 1 },
        )),
        &records,
    );
    assert_eq!(left.bursts_found, 10, "{note}");
}
