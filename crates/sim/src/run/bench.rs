//! The benchmark's workloads, as scenarios like any other.

use super::folder::RunError;
use crate::ledger::Destination;
use crate::world::{Pause, World};
use fanin_scenario::Scenario;
use fanin_telemetry::TableError;
use std::path::Path;

/// Names of the workloads.
pub const WORKLOADS: [&str; 10] = ["W1", "W2-128", "W2-432", "W2-1024", "W2-3456", "W2-8192", "W3", "L1", "L2", "demo"];

const DEMO: &str = include_str!("../../../../scenarios/demo.toml");

/// Features of workloads `W2-128/FEATURE`: the name, the section of the scenario that it changes, and the change.
#[rustfmt::skip]
pub const FEATURES: [(&str, Section, &str); 22] = [
    ("drop-tail", Section::Marking, "kind = \"none\""),
    ("dequeue", Section::Marking, "kind = \"threshold\", k = \"65 packets\", at = \"dequeue\""),
    ("red", Section::Marking, "kind = \"red\", hard_drop = false"),
    ("codel", Section::Marking, "kind = \"codel\", target = \"20us\", interval = \"400us\", ce_threshold = \"80us\""),
    ("s-ecn", Section::Marking, "kind = \"s_ecn\", k = \"65 packets\""),
    ("s-ecn-probability", Section::Marking, "kind = \"s_ecn\", k = \"65 packets\", form = \"probability\""),
    ("dynamic-buffer", Section::Buffer, "kind = \"dynamic\", total = \"32MB\""),
    ("strict", Section::Switch, "scheduling = { kind = \"strict\", classes = 2 }"),
    ("drr", Section::Switch, "scheduling = \"drr\""),
    ("pdn", Section::Switch, "mechanisms.pdn = {}"),
    ("pdn-drops", Section::Drops, "mechanisms.pdn = {}"),
    ("trimming", Section::Switch, "mechanisms.trimming = {}"),
    ("spray", Section::Switch, "routing = \"spray\""),
    ("flowlet", Section::Switch, "routing = { kind = \"flowlet\", gap = \"50us\" }"),
    ("newreno", Section::Transport, "congestion_control = \"newreno\"\nhandshake = false"),
    ("cubic", Section::Transport, "congestion_control = \"cubic\"\nhandshake = false"),
    ("linux", Section::Transport, "profile = \"linux\""),
    ("pacing", Section::Transport, "congestion_control = \"dctcp\"\nhandshake = false\npacing = \"fq\""),
    ("sample-100us", Section::Telemetry, "sample = \"100us\""),
    ("sample-10us", Section::Telemetry, "sample = \"10us\""),
    ("queues", Section::Telemetry, "sample = \"off\"\nqueues = [\"*\"]"),
    ("registers", Section::Telemetry, "sample = \"off\"\nqueues = [\"*->h*\"]\nregisters = {}"),
];

/// A part of a workload's scenario. Of what changes [`Section::Telemetry`] the whole run counts, not only the inner loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Key `switch.marking`.
    Marking,
    /// Key `switch.buffer`.
    Buffer,
    /// Further keys of `[switch]`.
    Switch,
    /// Further keys of `[switch]`, with buffers that overflow.
    Drops,
    /// Section `[transport]`, without its kind.
    Transport,
    /// `[telemetry]`: the files are written, and count.
    Telemetry,
}

/// A workload: its scenario, and whether records are part of it.
pub struct Workload {
    pub scenario: Scenario,
    /// True if writing records is part of the workload.
    pub records: bool,
}

/// Makes the workload `name`, its flows scaled by `scale`; `None` when there is none of that name.
///
/// W1: 40 → 1 incast through one switch, 10 Gb/s, 10 µs links, DCTCP, K = 65 packets, 10 MB each. W2-n: permutation of n
/// hosts, 2 MB each, DCTCP, per-flow ECMP, 1 µs links, fat tree. W3: line-rate CBR over 6 links, 2 M packets. demo: that of
/// `make demo`, its time scaled. L1, L2: [`lossless`]. `W2-128/FEATURE`: W2-128 with one of [`FEATURES`].
///
/// # Panics
/// When a built-in scenario is refused, which a test excludes.
pub fn workload(name: &str, scale: f64) -> Option<Workload> {
    let bytes = |full: f64| libm::round(full * scale).max(1.0) as u64;
    if name == "demo" {
        let text = DEMO.replace("\"750ms\"", &format!("\"{}us\"", bytes(750e3)));
        return Some(Workload { scenario: read(name, &text), records: true });
    }
    // 65 packets is DCTCP's threshold at 10 Gb/s; the buffer is deep enough never to drop.
    let mut marking = "kind = \"threshold\", k = \"65 packets\"";
    let mut buffer = "kind = \"static\", per_port = \"4MB\"";
    let (mut switch, mut transport) = ("", "congestion_control = \"dctcp\"\nhandshake = false");
    let (mut telemetry, mut records) = ("sample = \"off\"\ndrops = false", false);
    if let Some(feature) = name.strip_prefix("W2-128/") {
        let (_, section, text) = FEATURES.into_iter().find(|(name, ..)| *name == feature)?;
        match section {
            Section::Marking => marking = text,
            Section::Buffer => buffer = text,
            Section::Switch => switch = text,
            Section::Drops => (switch, buffer) = (text, "kind = \"static\", per_port = \"64KB\""),
            Section::Transport => transport = text,
            Section::Telemetry => (telemetry, records) = (text, true),
        }
    }
    let transport = format!("[transport]\nkind = \"tcp\"\n{transport}\n");
    let switch = format!("[switch]\nmarking = {{ {marking} }}\nbuffer = {{ {buffer} }}\n{switch}\n");
    let text = match name {
        "W1" => format!(
            "{transport}{switch}[topology]\nkind = \"single_switch\"\nhosts = 41\nlink = {{ rate = \"10Gbps\", delay = \"10us\" }}\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h40\"\nsize = \"{}B\"\n",
            bytes(10e6)
        ),
        "W3" => format!(
            "[topology]\nkind = \"chain\"\nswitches = 5\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"10Gbps\"\ncounts = \"wire\"\npacket = \"1472B\"\nsize = \"{}B\"\n",
            1472 * bytes(2e6)
        ),
        "L1" | "L2" => lossless(name == "L1", bytes),
        _ => {
            let k = match name.split('/').next() {
                Some("W2-128") => 8,
                Some("W2-432") => 12,
                Some("W2-1024") => 16,
                Some("W2-3456") => 24,
                Some("W2-8192") => 32,
                _ => return None,
            };
            format!(
                "{transport}{switch}[topology]\nkind = \"fat_tree\"\nk = {k}\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"{}B\"\n",
                bytes(2e6)
            )
        }
    };
    let text = format!("name = \"{name}\"\n{text}[telemetry]\n{telemetry}\n");
    Some(Workload { scenario: read(name, &text), records })
}

/// RoCEv2 over PFC in fat trees at 100 Gb/s: L1, 432 hosts, DCQCN, flows of the enterprise distribution at a load of 0.6 (RED's thresholds as
/// HPCC §5.1 has them for DCQCN at that rate); or L2, a direct all-to-all of 128 hosts with HPCC, 62.5 KB from each to each.
fn lossless(dcqcn: bool, scaled: impl Fn(f64) -> u64) -> String {
    let (k, control, switch) = if dcqcn {
        let red = "min = \"400KB\", max = \"1600KB\", max_p = 0.2, weight = 1.0, gentle = false, hard_drop = false, spacing = \"geometric\"";
        (12, "dcqcn", format!("marking = {{ kind = \"red\", {red} }}"))
    } else {
        (8, "hpcc", "mechanisms.int = {}".to_string())
    };
    let traffic = if dcqcn {
        format!("kind = \"poisson\"\nsizes = \"enterprise\"\nload = 0.6\ncount = {}", scaled(4e4))
    } else {
        format!("kind = \"collective\"\noperations = [{{ kind = \"all_to_all\", size = \"{}B\" }}]", scaled(8e6))
    };
    format!(
        "[transport]\nkind = \"roce\"\ncongestion_control = \"{control}\"\n\
         [switch]\nbuffer = \"unlimited\"\nmechanisms.pfc = {{ memory = \"32MB\", classes = [0] }}\n{switch}\n\
         [topology]\nkind = \"fat_tree\"\nk = {k}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[[traffic]]\n{traffic}\n"
    )
}

fn read(name: &str, text: &str) -> Scenario {
    match Scenario::from_toml(text, Path::new(".")) {
        Ok(scenario) => scenario,
        Err(problems) => panic!("{name}: {}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}

/// Counts of a benchmark run.
pub struct Measured {
    pub packet_hops: u64,
    pub events: u64,
    pub now: fanin_units::Time,
    pub fingerprint: u64,
    /// Bytes by part: name and value.
    pub memory: Vec<(&'static str, f64)>,
}

/// Makes the world of a workload. What it records goes into `folder`.
///
/// # Errors
/// When `folder` cannot be written.
pub fn prepare(workload: &Workload, folder: &Path) -> Result<World, RunError> {
    let destination = if workload.records { Destination::Folder(folder) } else { Destination::Nowhere };
    super::setup::world(&workload.scenario, &destination)
}

/// Runs a workload to its end.
///
/// # Errors
/// When its records cannot be written.
///
/// # Panics
/// When it gets stuck, which would be a defect.
pub fn measure(mut world: World) -> Result<Measured, RunError> {
    let memory = fanin_run_whole(&mut world)?;
    Ok(Measured {
        packet_hops: world.core.ledger.totals.packet_hops,
        events: world.core.ledger.totals.events,
        now: world.core.now,
        fingerprint: world.core.ledger.fingerprint(),
        memory,
    })
}

/// Body of a run in a function with a name of its own that instruction counters find: of workloads that record, the whole counts.
#[no_mangle]
#[inline(never)]
extern "Rust" fn fanin_run_whole(world: &mut World) -> Result<Vec<(&'static str, f64)>, TableError> {
    loop {
        match world.advance(1 << 24)? {
            Pause::Budget => {}
            Pause::Done => break,
            Pause::Stuck(message) => panic!("{message}"),
        }
    }
    let memory = world.memory();
    super::folder::finish(world)?;
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_cannot_be_written_are_an_error() {
        let demo = workload("demo", 0.001).expect("a workload");
        let error = prepare(&demo, Path::new("/nonexistent")).err().expect("an error").to_string();
        assert!(error.starts_with("/nonexistent/") && error.contains("cannot be written"), "{error}");
    }

    #[test]
    fn every_workload_and_feature_is_a_valid_scenario() {
        for name in WORKLOADS {
            assert!(workload(name, 0.001).is_some(), "{name}");
        }
        for (feature, section, _) in FEATURES {
            let made = workload(&format!("W2-128/{feature}"), 0.001).expect("a workload");
            assert_eq!(made.records, section == Section::Telemetry, "{feature}");
        }
        let scenario = |scale| workload("demo", scale).expect("the demo").scenario.resolved();
        assert_ne!(scenario(0.5), scenario(1.0));
        assert!(workload("W9", 1.0).is_none() && workload("W2-128/nothing", 1.0).is_none());
    }
}
