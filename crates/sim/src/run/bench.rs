//! The benchmark's workloads, as scenarios like any other.

use crate::world::World;
use fanin_scenario::Scenario;
use std::path::Path;

/// Names of the workloads.
pub const WORKLOADS: [&str; 7] = ["W1", "W2-128", "W2-432", "W2-1024", "W2-3456", "W2-8192", "W3"];

/// A workload: what it takes to run it.
pub struct Workload {
    pub scenario: Scenario,
}

/// Makes the workload `name`, its flows scaled by `scale`; `None` when there is none of that name.
///
/// W1: 40 → 1 incast through one switch, 10 Gb/s, 10 µs links, DCTCP, K = 65 packets, 10 MB each. W2-n: permutation of n
/// hosts, 2 MB each, DCTCP, per-flow ECMP, 1 µs links, fat tree. W3: line-rate CBR over 6 links, 2 M packets.
///
/// # Panics
/// When a built-in scenario is refused, which a test excludes.
pub fn workload(name: &str, scale: f64) -> Option<Workload> {
    workload_recording(name, scale, "sample = \"off\"\ndrops = false\n")
}

/// The same with `telemetry`, lines of that section of a scenario.
///
/// # Panics
/// When the section is refused.
pub fn workload_recording(name: &str, scale: f64, telemetry: &str) -> Option<Workload> {
    let bytes = |full: f64| libm::round(full * scale).max(1.0) as u64;
    let tcp = "[transport]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\nhandshake = false\n";
    let switch =
        "[switch]\nmarking = { kind = \"threshold\", k = \"65 packets\" }\nbuffer = { kind = \"static\", per_port = \"4MB\" }\n";
    // 65 packets is DCTCP's threshold at 10 Gb/s; the buffer is deep enough never to drop.
    let text = match name {
        "W1" => format!(
            "name = \"W1\"\n{tcp}{switch}[topology]\nkind = \"single_switch\"\nhosts = 41\nlink = {{ rate = \"10Gbps\", delay = \"10us\" }}\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h40\"\nsize = \"{}B\"\n",
            bytes(10e6)
        ),
        "W2-128" | "W2-432" | "W2-1024" | "W2-3456" | "W2-8192" => {
            let k = match name {
                "W2-128" => 8,
                "W2-432" => 12,
                "W2-1024" => 16,
                "W2-3456" => 24,
                _ => 32,
            };
            format!(
                "name = \"{name}\"\n{tcp}{switch}[topology]\nkind = \"fat_tree\"\nk = {k}\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"{}B\"\n",
                bytes(2e6)
            )
        }
        "W3" => format!(
            "name = \"W3\"\n[topology]\nkind = \"chain\"\nswitches = 5\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"10Gbps\"\ncounts = \"wire\"\npacket = \"1472B\"\nsize = \"{}B\"\n",
            1472 * bytes(2e6)
        ),
        _ => return None,
    };
    let text = format!("{text}[telemetry]\n{telemetry}");
    match Scenario::from_toml(&text, Path::new(".")) {
        Ok(scenario) => Some(Workload { scenario }),
        Err(problems) => panic!("{name}: {}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}

/// What a benchmark run did.
pub struct Measured {
    pub packet_hops: u64,
    pub events: u64,
    pub now: fanin_units::Time,
    pub fingerprint: u64,
    /// Bytes by part: name and value.
    pub memory: Vec<(&'static str, f64)>,
}

/// Sets a workload up, recording nothing.
///
/// # Panics
/// When it cannot be, which a test excludes.
pub fn prepare(workload: &Workload) -> World {
    match super::setup::world(&workload.scenario, &crate::ledger::Destination::Nowhere) {
        Ok(world) => world,
        Err(error) => panic!("{error}"),
    }
}

/// Runs a workload to its end.
///
/// # Panics
/// When it gets stuck, which would be a defect.
pub fn measure(mut world: World) -> Measured {
    loop {
        match world.advance(1 << 24) {
            Ok(crate::world::Pause::Budget) => {}
            Ok(crate::world::Pause::Done) => break,
            Ok(crate::world::Pause::Stuck(message)) => panic!("{message}"),
            Err(error) => panic!("{error}"),
        }
    }
    let memory = world.memory();
    world.wind_up();
    Measured {
        packet_hops: world.core.ledger.totals.packet_hops,
        events: world.core.ledger.totals.events,
        now: world.core.now,
        fingerprint: world.core.ledger.fingerprint(),
        memory,
    }
}
