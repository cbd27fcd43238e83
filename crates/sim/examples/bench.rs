//! Runs a benchmark workload without Python: `cargo run --release -p fanin-sim --example bench -- W2-128 1.0`, also under
//! `valgrind --tool=callgrind --toggle-collect=fanin_run_loop`. A third argument is the folder for what a workload records.

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "W2-128".to_string());
    let scale = args.next().and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let folder = args.next().map_or_else(std::env::temp_dir, std::path::PathBuf::from);
    #[allow(clippy::disallowed_methods)] // A benchmark reads the clock.
    let now = std::time::Instant::now;
    let start = now();
    let Some(workload) = fanin_sim::workload(&name, scale) else {
        let features = fanin_sim::FEATURES.map(|(feature, ..)| format!("W2-128/{feature}")).join(", ");
        eprintln!("'{name}' is not a workload; accepted: {}, {features}", fanin_sim::WORKLOADS.join(", "));
        std::process::exit(2);
    };
    let world = fanin_sim::prepare(&workload, &folder).expect("a folder that can be written");
    let set_up = start.elapsed().as_secs_f64();
    let start = now();
    let m = fanin_sim::measure(world).expect("records that can be written");
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
