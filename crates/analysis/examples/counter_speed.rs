//! Speed of the analysis of counters: 512 ports, three counters each, looked at each 100 us, as one switch streams them.
//!
//! `cargo run --release -p fanin-analysis --example counter_speed`. One thread.

use fanin_analysis::counters::{CounterPort, Look, Series, Value};
use fanin_analysis::{Detect, Settings};
use fanin_units::{BitRate, Time};
use std::time::Duration;

const PORTS: usize = 512;
const LOOKS: u64 = 20_000;
/// Bytes that 100 Gb/s carry in 100 us.
const LINE: u64 = 1_250_000;

/// Processor time of this process.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<u64> =
        stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
    Duration::from_millis(fields.iter().sum::<u64>() * 10)
}

fn main() {
    let settings = Settings {
        rate: Some(BitRate::from_gbps(100)),
        detect: Detect::Rate { window: None, share: 0.5 },
        ..Settings::default()
    };
    let rate = settings.rate;
    let mut ports: Vec<(Series, CounterPort, [u64; 2])> =
        (0..PORTS).map(|_| (Series::default(), CounterPort::new(&settings, None), [0; 2])).collect();
    let (mut bursts, mut state) = (0_u64, 1_u64);
    let before = processor_time();
    for look in 0..LOOKS {
        let time = Time::from_ps((look + 1) * 100_000_000);
        for (series, port, totals) in &mut ports {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // One interval of ten is busy.
            let load = if (state >> 60) < 2 { 60 + (state >> 40) % 40 } else { (state >> 40) % 30 };
            totals[0] += LINE * load / 100;
            totals[1] += u64::from(load > 98);
            let look = Look {
                time,
                sent: Some(Value::Total(totals[0], Some(64))),
                dropped: Some(Value::Total(totals[1], Some(64))),
                watermark: Some(load * 1_000),
                ..Look::default()
            };
            for interval in series.look(&look, rate).into_iter().flatten() {
                port.push(&interval, &mut |_| bursts += 1);
            }
        }
    }
    let took = (processor_time() - before).as_secs_f64();
    let values = (PORTS as u64 * LOOKS * 3) as f64;
    println!("{:.1} M values in {took:.2} s of one core: {:.1} M values/s; {bursts} bursts", values / 1e6, values / 1e6 / took);
    println!("{} B by port", std::mem::size_of::<(Series, CounterPort)>());
}
