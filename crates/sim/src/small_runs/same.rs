//! Runs that come to the same, however ports are simulated, whatever is recorded, whenever the network is looked at, and in parts.

use super::{cbr, flow};
use crate::{
    run_parts, world, world_fetching, Control, Destination, Division, Kept, Observer, Order, Pause, Progress, Totals, World,
};
use fanin_scenario::Scenario;
use fanin_units::Time;
use std::path::Path;

const STAR: &str = "kind = \"single_switch\"\nhosts = 5\nlink = { rate = \"10Gbps\", delay = \"1us\" }";
const SPINES: &str = "kind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 3\nspines = 2\n\
                      host_link = { rate = \"10Gbps\", delay = \"500ns\" }\nuplink = { rate = \"10Gbps\", delay = \"1us\" }";
const TCP: &str = "[transport]\nkind = \"tcp\"\nrto_initial = \"300us\"\nrto_min = \"100us\"\nrto_max = \"1ms\"\nclock_granularity = \"1us\"\nmax_retries = 5\ninitial_window = 20\n";
const ROCE: &str = "[transport]\nkind = \"roce\"\n";

/// A scenario but for `[engine]` and `[telemetry]`: topology, settings of switches, of hosts with the transport, and whether there are classes.
fn text((topology, switch, hosts, classes): (&str, &str, &str, bool)) -> String {
    let class = |class: u8| if classes { format!("class = {class}\n") } else { String::new() };
    let asked = |src: u32, size: u32, request: u32| {
        format!(
            "[[traffic]]\nkind = \"flows\"\nname = \"asked{src}\"\nflows = [{{ src = \"h{src}\", dst = \"h4\", size = \"{size}B\", request = \"{request}B\" }}]\n"
        )
    };
    let job = "[[traffic]]\nkind = \"collective\"\nranks = [\"h0\", \"h1\", \"h3\"]\niterations = 1\n\
               operations = [{ kind = \"all_reduce\", size = \"9001B\", message = \"2KB\" }]\n";
    let request = if hosts.contains("roce") { 0 } else { 300 };
    format!(
        "seed = 3\nduration = \"600us\"\n[topology]\n{topology}\n[switch]\n{switch}\n{hosts}\n{}{}{}{}{}{}{}{job}{}",
        asked(0, 30_000, 0),
        class(1),
        asked(1, 45_001, request),
        class(0),
        flow(2, 4, 25_000),
        class(1),
        cbr(3, 4, 29_440),
        class(0),
    )
}

/// Telemetry that is off; all that parts of a network can record; and all.
const NOTHING: &str = "sample = \"off\"\ndrops = false";
const TABLES: &str = "sample = \"7us\"\nqueues = [\"*\"]\ncapture = { hosts = [\"h1\", \"h4\"] }";
const ALL: &str =
    "sample = \"7us\"\nqueues = [\"*\"]\nhosts = [\"*\"]\nmessages = [\"*\"]\ncapture = { hosts = [\"h1\", \"h4\"] }";

/// A scenario with ports simulated so, and this recorded.
fn with(text: &str, ports: &str, telemetry: &str) -> Scenario {
    let text = format!("{text}[engine]\nports = \"{ports}\"\n[telemetry]\n{telemetry}\n");
    Scenario::from_toml(&text, Path::new(".")).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
}

/// Results that do not depend on what is recorded.
type Outcome = (u64, Totals, Time);

fn outcome(world: &World) -> Outcome {
    (world.fingerprint(), Totals { events: 0, ..world.totals() }, world.now())
}

/// Moves a world to its end in steps of so many events; `look` is called after each.
fn moved(mut world: World, step: u64, mut look: impl FnMut(&mut World)) -> (Outcome, Kept) {
    loop {
        let pause = world.advance(step).expect("tables in memory");
        look(&mut world);
        match pause {
            Pause::Budget => {}
            Pause::Done => break,
            Pause::Stuck(why) => panic!("{why}"),
        }
    }
    (outcome(&world), world.into_kept().expect("tables in memory"))
}

/// Names the table in which two runs differ.
fn compare(found: &Kept, expected: &Kept, about: &str) {
    macro_rules! table {
        ($($name:ident)*) => {
            $(for (i, (found, expected)) in found.$name.iter().zip(&expected.$name).enumerate() {
                assert_eq!(found, expected, "{about}: {}, row {i}", stringify!($name));
            }
            assert_eq!(found.$name.len(), expected.$name.len(), "{about}: {}", stringify!($name));)*
        };
    }
    table!(flows ports queues drops pauses states voqs stamps hosts messages segments hops);
    assert_eq!(found.summary, expected.summary, "{about}");
    // In its first block a capture has the scenario's hash, which is of the way in which ports are simulated, too.
    let blocks = |kept: &Kept| kept.packets.get(200..).unwrap_or_default().to_vec();
    assert!(blocks(found) == blocks(expected), "{about}: packets");
    let rest = |kept: &Kept| (kept.queries.clone(), kept.collectives.clone(), kept.fingerprint);
    assert_eq!(rest(found), rest(expected), "{about}");
}

fn made(scenario: &Scenario) -> World {
    world(scenario, &Destination::Memory).expect("a world")
}

struct Patient;

impl Observer for Patient {
    fn progress(&mut self, _: &Progress) -> Control {
        Control::Continue
    }
    fn cost(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }
}

const RUNS: &[(&str, &str, &str, bool)] = &[
    (STAR, "buffer = { kind = \"static\", per_port = \"12 packets\" }\nmarking = { kind = \"threshold\", k = \"3 packets\" }", "dctcp", false),
    (STAR, "buffer = { kind = \"static\", per_port = \"20KB\" }\nmarking = { kind = \"threshold\", k = \"4000B\", at = \"dequeue\" }", "dctcp", false),
    (STAR, "cell = \"200B\"\nbuffer = { kind = \"static\", per_port = \"100 cells\" }", "fifo", false),
    (STAR, "marking = { kind = \"front_drop\", limit = \"6 packets\" }", "queue", false),
    (STAR, "marking = { kind = \"codel\", target = \"2us\", interval = \"20us\", ecn = true }", "napi", false),
    (STAR, "buffer = { kind = \"dynamic\", total = \"60KB\", alpha = 1.0 }\nscheduling = { kind = \"strict\", classes = 2 }", "tcp", true),
    (STAR, "buffer = { kind = \"dynamic\", total = \"40 packets\", alpha = 0.5, reserved = \"1 packets\" }\nscheduling = { kind = \"drr\", quanta = [\"1518B\", \"600B\"] }\nclass_marking = [{ classes = [1], marking = { kind = \"threshold\", k = \"2 packets\" } }]", "dctcp", true),
    (STAR, "buffer = \"unlimited\"\nmechanisms.pfc = { memory = \"1MB\", classes = [0], xoff = { kind = \"static\", bytes = \"9KB\" } }", "dcqcn", false),
    (STAR, "buffer = \"unlimited\"\nscheduling = { kind = \"strict\", classes = 2 }\nmechanisms.pfc = { memory = \"1MB\", classes = [0, 1], xoff = { kind = \"static\", bytes = \"6KB\" } }", "tso", true),
    (STAR, "buffer = { kind = \"static\", per_port = \"8 packets\" }\nmechanisms.trimming = {}", "nack", false),
    (STAR, "buffer = { kind = \"static\", per_port = \"8 packets\" }\nmechanisms.pdn = {}", "tcp", false),
    (STAR, "architecture = { kind = \"combined\", voq = \"12KB\", output = \"8KB\", speedup = 1.3 }\nscheduling = { kind = \"strict\", classes = 2 }", "tcp", true),
    (STAR, "architecture = { kind = \"combined\", voq = \"150KB\", output = \"6KB\", speedup = 2.0 }\nmechanisms.pfc = { classes = [0], xoff = { kind = \"static\", bytes = \"15KB\" } }", "roce", false),
    (STAR, "architecture = { kind = \"combined\", voq = \"150KB\", output = \"6KB\" }\nmechanisms.rcm = { q_eq = \"3KB\", sample = \"3KB\", max_frame = \"1600B\", window_min = \"4KB\", window_max = \"20KB\" }", "tcp", false),
    (SPINES, "routing = \"spray\"\nbuffer = { kind = \"static\", per_port = \"15 packets\" }", "reorder", false),
    (SPINES, "routing = { kind = \"flowlet\", gap = \"5us\" }\nbuffer = { kind = \"static\", per_port = \"15 packets\" }\nmechanisms.rimm = { alpha = \"8 packets\" }", "paced", false),
    (SPINES, "ttl = 60\nbuffer = { kind = \"static\", per_port = \"8 packets\" }\nmechanisms.dibs = {}", "tcp", false),
    (SPINES, "ttl = 60\nbuffer = { kind = \"static\", per_port = \"8 packets\" }\nmechanisms.vertigo = {}", "queue", false),
    (SPINES, "buffer = \"unlimited\"\nmechanisms.int = {}", "hpcc", false),
    (SPINES, "buffer = { kind = \"static\", per_port = \"20 packets\" }", "down", false),
    (SPINES, "buffer = { kind = \"static\", per_port = \"15 packets\" }\nmechanisms.rcm = { q_eq = \"3KB\", sample = \"3KB\", max_frame = \"1600B\", window_min = \"4KB\", window_max = \"20KB\" }", "tcp", false),
    (SPINES, "buffer = { kind = \"static\", per_port = \"8 packets\" }\nmechanisms.pabo = {}", "tcp", false),
    (STAR, "buffer = \"unlimited\"\nmechanisms.pfc = { memory = \"200KB\", classes = [0], xoff = { kind = \"static\", bytes = \"9KB\" }, watchdog = { detection = \"100us\", restoration = \"100us\" } }", "storm", false),
    (SPINES, "buffer = { kind = \"dynamic\", total = \"60KB\", alpha = 1.0 }\nscheduling = { kind = \"strict\", classes = 2 }", "down", true),
];

/// Settings of hosts, by name.
fn hosts(name: &str) -> String {
    match name {
        "dctcp" => format!("{TCP}congestion_control = \"dctcp\"\n"),
        "fifo" => format!("[host]\nnic = \"fifo\"\n{TCP}"),
        "queue" => format!("[host]\nnic = {{ kind = \"fifo\", txqueuelen = 5 }}\n{TCP}profile = \"linux\"\n"),
        "napi" => format!("[host]\nreceive = {{ kind = \"napi\", interrupt_delay = \"8us\" }}\nnoise = {{ kind = \"uniform\", max = \"2us\" }}\n{TCP}"),
        "reorder" => format!("[host]\nreorder = {{ timeout = \"20us\" }}\n{TCP}"),
        "paced" => format!("{TCP}congestion_control = \"dctcp\"\npacing = \"fq\"\n"),
        "tso" => format!("{TCP}tso = true\n"),
        "storm" => format!("[host]\npause_watchdog = {{ detection = \"150us\", restoration = \"50us\" }}\nstorms = [{{ hosts = [\"h4\"], classes = [0], start = \"30us\", end = \"300us\" }}]\n{TCP}"),
        "nack" => format!("{TCP}trim_nack = true\n"),
        "down" => format!(
            "{TCP}[failover]\ndetect = \"10us\"\nconverge = \"40us\"\n\
             [[events]]\nkind = \"down\"\nlinks = [\"leaf0->spine0\"]\nstart = \"20us\"\nend = \"90us\"\n\
             [[events]]\nkind = \"down\"\nlinks = [\"leaf1->h4\"]\nstart = \"40us\"\nend = \"60us\"\n"
        ),
        "tcp" => TCP.to_string(),
        "roce" => ROCE.to_string(),
        control => format!("{ROCE}congestion_control = \"{control}\"\n"),
    }
}

/// Departures that are events give the rows of all tables that those which are not give; recording, the size of steps, a look at all ports after
/// each, and memory that is fetched ahead change nothing; nor do two parts.
#[test]
fn a_run_is_the_same_however_it_is_simulated() {
    for (topology, switch, name, classes) in RUNS {
        let text = text((topology, switch, &hosts(name), *classes));
        let about = format!("{switch}, {name}");
        let recorded = with(&text, "auto", ALL);
        let (expected, kept) = moved(made(&recorded), 1 << 20, |_| {});
        assert!(expected.1.sent > 100 && kept.flows.len() > 4, "{about}: {expected:?}");
        let explicit = moved(made(&with(&text, "explicit", ALL)), 1 << 20, |_| {});
        assert_eq!(explicit.0, expected, "{about}: departures as events");
        compare(&explicit.1, &kept, &format!("{about}: departures as events"));
        for ports in ["auto", "explicit"] {
            let silent = with(&text, ports, NOTHING);
            assert_eq!(moved(made(&silent), 1 << 20, |_| {}).0, expected, "{about}: {ports}, nothing recorded");
            assert_eq!(moved(made(&silent), 13, super::looked_at).0, expected, "{about}: {ports}, looked at");
        }
        let fetches = world_fetching(&with(&text, "auto", NOTHING), &Destination::Memory, true).expect("a world");
        assert_eq!(moved(fetches, 1 << 20, |_| {}).0, expected, "{about}: fetching ahead");
        if *topology == SPINES {
            let tables = with(&text, "auto", TABLES);
            let (whole, kept) = moved(made(&tables), 1 << 20, |_| {});
            assert_eq!(whole, expected, "{about}: tables alone");
            let division = Division::balanced(&tables, 2);
            let run =
                run_parts(&tables, &Destination::Memory, &division, Order::Shuffled(3), &mut Patient).expect("tables in memory");
            let (world, _) = run.unwrap_or_else(|why| panic!("{about}: {why:?}"));
            let (found, whole) = (outcome(&world), whole);
            assert_eq!((found.1, found.2), (whole.1, whole.2), "{about}: two parts");
            compare(&world.into_kept().expect("tables in memory"), &kept, &format!("{about}: two parts"));
        }
    }
}
