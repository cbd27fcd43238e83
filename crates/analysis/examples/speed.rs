//! Records per second of one port's analysis on one core, phases and culprits included.
//!
//! `cargo run --release -p fanin-analysis --example speed`

use fanin_analysis::{unknown_flows, PortAnalyzer, Record, Settings};
use fanin_units::{BitRate, Bytes, Time};

/// A port of 10 Gb/s: `on` packets that arrive at twice its speed, then `off` at a third of it; what a FIFO queue then holds.
fn trace(on: u64, off: u64, flows: u32, records: usize) -> Vec<Record> {
    const FRAME: u64 = 1518;
    const SEND: u64 = 1538 * 800;
    let (mut time, mut work, mut random) = (0u64, 0u64, 1u64);
    let mut out = Vec::with_capacity(records);
    for i in 0..records as u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let jitter = (random >> 33) % SEND;
        let busy = on > 0 && i % (on + off) < on;
        let step = if busy { jitter } else { 2 * SEND + 2 * jitter };
        time += step;
        work = work.saturating_sub(step);
        let queue = work.saturating_sub(SEND) / SEND * FRAME;
        out.push(Record { time: Time::from_ps(time), queue, frame: FRAME as u32, flow: (random >> 40) as u32 % flows, flags: 0 });
        work += SEND;
    }
    out
}

fn noise(records: usize) -> Vec<Record> {
    let mut random = 1u64;
    let each = (0..records as u64).map(|i| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Record {
            time: Time::from_ps(i * 1_230_400),
            queue: (random >> 33) % 300_000,
            frame: 1518,
            flow: (random >> 50) as u32 % 100,
            flags: 0,
        }
    });
    each.collect()
}

/// Processor time of this thread, as Linux reports it, so that other work on the machine does not count.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") / 1e9
}

fn main() {
    const RECORDS: usize = 4_000_000;
    let cases = [
        ("quiet: no burst", trace(0, 1, 100, RECORDS)),
        ("bursts of 1000 packets, 10 % of the records, 100 flows", trace(500, 9_500, 100, RECORDS)),
        ("bursts back to back, 18 flows", trace(500, 500, 18, RECORDS)),
        ("bursts back to back, 5000 flows", trace(500, 500, 5_000, RECORDS)),
        ("a queue of white noise", noise(RECORDS)),
    ];
    let settings = Settings { rate: Some(BitRate::from_gbps(10)), overhead: Bytes(20), ..Settings::default() };
    for (what, records) in cases {
        let begin = processor_seconds();
        let mut analyzer = PortAnalyzer::new(&settings, "port", unknown_flows());
        for r in &records {
            analyzer.push(r).expect("in order");
        }
        let report = analyzer.finish();
        let seconds = processor_seconds() - begin;
        let inside: u64 = report.bursts.iter().map(|b| b.records).sum();
        println!(
            "{:6.2} M records/s  {what}: {} bursts, {:.0} % of the records in those listed",
            RECORDS as f64 / seconds / 1e6,
            report.bursts_found,
            100.0 * inside as f64 / RECORDS as f64
        );
    }
}
