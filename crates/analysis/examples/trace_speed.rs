//! Writes a result folder with the queue of one 10 Gb/s port and analyses it: records per second, peak memory.
//!
//! `cargo run --release -p fanin-analysis --example trace_speed -- FOLDER RECORDS`; an existing folder is only read.
#![allow(clippy::disallowed_methods)] // It measures.

use fanin_analysis::read::{analyze, Control, Observer, Options, Progress};
use fanin_telemetry::{QueueRow, Table};
use std::path::Path;
use std::time::Instant;

struct Patient;

impl Observer for Patient {
    fn progress(&mut self, _: Progress) -> Control {
        Control::Continue
    }
}

/// Fan-in of 40 flows every 4 ms at 20 Gb/s until 200 packets stand, then one flow at 9 Gb/s.
fn write(folder: &Path, records: u64) {
    std::fs::create_dir_all(folder).unwrap();
    let manifest = r#"{"schema": "manifest/1", "status": "complete", "watched":
        [{"port": "tor->h0", "rate_bps": 10000000000, "overhead_bytes": 20, "buffer_bytes": null, "index": 0}]}"#;
    std::fs::write(folder.join("manifest.json"), manifest).unwrap();
    let mut table = Table::<QueueRow>::file(folder).unwrap();
    let name = fanin_telemetry::Name::from("tor->h0");
    let (mut time, mut queue, mut state, mut ramp) = (0_u64, 0_u64, 1_u64, false);
    let mut start = 0;
    for i in 0..records {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if !ramp && time > start + 4_000_000_000 {
            (ramp, start) = (true, time);
        }
        ramp &= queue < 200 * 1518;
        let gap = if ramp { 615_200 } else { 1_367_000 } + (state >> 50);
        time += gap;
        queue = queue.saturating_sub(gap * 1518 / 1_230_400);
        let flow = if ramp { (state >> 33) as u32 % 40 } else { 40 };
        let row = QueueRow {
            time_ps: time,
            port: name.clone(),
            queue_bytes: queue,
            queue_packets: (queue / 1518) as u32,
            flow,
            frame_bytes: 1518,
            marked: queue > 65 * 1518,
            dropped: false,
            replaced: false,
        };
        table.push(row).unwrap();
        queue += 1518;
        if i % 10_000_000 == 9_999_999 {
            eprintln!("{} M records written", (i + 1) / 1_000_000);
        }
    }
    table.finish().unwrap();
}

/// Seconds of processor time so far: the machine may have other work.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default();
    line.trim_start_matches("VmHWM:").trim().to_string()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(records)) = (arguments.next(), arguments.next().and_then(|n| n.parse().ok())) else {
        eprintln!("trace_speed FOLDER RECORDS");
        std::process::exit(2);
    };
    let folder = Path::new(&folder);
    if !folder.join("queues.parquet").exists() {
        write(folder, records);
    }
    let options = Options { paths: vec![folder.to_path_buf()], ..Options::default() };
    let (start, cpu) = (Instant::now(), cpu_seconds());
    match analyze(&options, &mut Patient) {
        Ok(report) => {
            let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
            let read = report.sources[0].records as f64;
            let bursts = report.ports.iter().map(|p| p.bursts_found).sum::<u64>();
            let speed = read / cpu / 1e6;
            println!("{speed:.1} M records per CPU second, {seconds:.2} s, {bursts} bursts, peak memory {}", peak_memory());
        }
        Err(failure) => {
            eprintln!("{failure}");
            std::process::exit(1);
        }
    }
}
