//! Runs a benchmark workload without Python: `cargo run --release -p fanin-sim --example bench -- W2-128 1.0`, also under
//! `valgrind --tool=callgrind --toggle-collect=fanin_run_loop`. With a folder and lines of `[telemetry]` it writes a result
//! there: `bench W2-128 1.0 out/w2 'sample = "10us"'`.

use fanin_sim::{Control, Observer, Progress, Workload};

/// Lets a run go on, and does not look at clocks: results are the same bytes.
struct Patient;

impl Observer for Patient {
    fn progress(&mut self, _: &Progress) -> Control {
        Control::Continue
    }
    fn cost(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "W2-128".to_string());
    let scale = args.next().and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let recording = args.next().map(|folder| (folder, args.collect::<Vec<_>>().join("\n")));
    #[allow(clippy::disallowed_methods)] // A benchmark reads the clock.
    let now = std::time::Instant::now;
    let start = now();
    let workload = match &recording {
        Some((_, telemetry)) => fanin_sim::workload_recording(&name, scale, telemetry),
        None => fanin_sim::workload(&name, scale),
    };
    let Some(workload) = workload else {
        eprintln!("'{name}' is not a workload; accepted: {}", fanin_sim::WORKLOADS.join(", "));
        std::process::exit(2);
    };
    if let Some((folder, _)) = recording {
        return record(&workload, &folder, || start.elapsed().as_secs_f64());
    }
    let world = fanin_sim::prepare(&workload);
    let set_up = start.elapsed().as_secs_f64();
    let start = now();
    let m = fanin_sim::measure(world);
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name}: {} packet-hops, {} events, {set_up:.3} + {seconds:.3} s, {:.2} M hops/s, {} simulated, fingerprint {:016x}",
        m.packet_hops,
        m.events,
        m.packet_hops as f64 / seconds / 1e6,
        m.now,
        m.fingerprint
    );
    for (part, bytes) in m.memory {
        println!("  {part}: {bytes:.0}");
    }
}

/// Runs a workload into a result folder and says what is in it.
fn record(workload: &Workload, folder: &str, elapsed: impl Fn() -> f64) {
    let folder = std::path::Path::new(folder);
    match fanin_sim::run(&workload.scenario, folder, &mut Patient) {
        Ok(outcome) => {
            let manifest = &outcome.manifest;
            println!("{} packet-hops, fingerprint {}, {:.3} s", manifest["packet_hops"], manifest["fingerprint"], elapsed());
            for (table, rows) in manifest["files"].as_object().into_iter().flatten() {
                let bytes = std::fs::metadata(folder.join(format!("{table}.parquet"))).map_or(0, |file| file.len());
                println!("  {table}: {rows} rows, {bytes} B");
            }
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
