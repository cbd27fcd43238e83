//! Random small scenarios: every kind of topology, buffer, marking, path choice, transport and traffic, many events of
//! the same time.

use proptest::prelude::*;
use proptest::sample::select;

/// A scenario without its `[engine]` and `[telemetry]` tables.
#[derive(Clone, Debug)]
pub struct Random {
    pub text: String,
}

impl Random {
    /// The scenario with ports simulated so and telemetry on or off.
    pub fn with(&self, ports: &str, telemetry: bool) -> String {
        let telemetry = if telemetry { "sample = \"7us\"\nqueues = [\"*\"]" } else { "sample = \"off\"\ndrops = false" };
        format!("{}[engine]\nports = \"{ports}\"\n[telemetry]\n{telemetry}\n", self.text)
    }
}

fn link() -> impl Strategy<Value = String> {
    // Equal rates make many events fall on the same picosecond, inexact ones (56 Gb/s, 10.3125 Gb/s) none.
    let rate = select(vec!["10Gbps", "10Gbps", "1Gbps", "25Gbps", "56Gbps", "10312500Kbps"]);
    (rate, select(vec!["0ps", "1us", "1230400ps", "333ns"])).prop_map(|(r, d)| format!("{{ rate = \"{r}\", delay = \"{d}\" }}"))
}

fn topology() -> impl Strategy<Value = String> {
    (0..4u8, link(), link()).prop_map(|(kind, a, b)| match kind {
        0 => format!("kind = \"single_switch\"\nhosts = 6\nlink = {a}"),
        1 => format!("kind = \"dumbbell\"\nleft = 3\nright = 3\nhost_link = {a}\nbottleneck = {b}"),
        2 => format!("kind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 3\nspines = 2\nhost_link = {a}\nuplink = {b}"),
        _ => format!("kind = \"racks\"\nracks = 3\nhosts_per_rack = 2\nhost_link = {a}\nroot_link = {b}"),
    })
}

/// Buffers and marking that a FIFO port of either kind can have.
fn fifo_switch() -> impl Strategy<Value = String> {
    let buffer = select(vec![
        "{ kind = \"unlimited\" }",
        "{ kind = \"static\", per_port = \"0 packets\" }",
        "{ kind = \"static\", per_port = \"5 packets\" }",
        "{ kind = \"static\", per_port = \"30 packets\" }",
        "{ kind = \"static\", per_port = \"20KB\" }",
        "{ kind = \"static\", per_port = \"150 cells\" }",
    ]);
    let marking = select(vec![
        "\"none\"",
        "{ kind = \"threshold\", k = \"3 packets\" }",
        "{ kind = \"threshold\", k = \"3 packets\", at = \"dequeue\" }",
        "{ kind = \"threshold\", k = \"4000B\" }",
        "{ kind = \"threshold\", k = \"4000B\", at = \"dequeue\" }",
        "{ kind = \"threshold\", k = \"50 cells\" }",
        "{ kind = \"threshold\", k = \"50 cells\", at = \"dequeue\" }",
        "{ kind = \"red\", min = \"2 packets\", max = \"10 packets\", weight = 0.2 }",
        "{ kind = \"red\", min = \"2KB\", max = \"9KB\", weight = 0.1, spacing = \"geometric\", by_size = true, hard_drop = false }",
        "{ kind = \"red\", min = \"20 cells\", max = \"90 cells\", weight = 1.0, spacing = \"wait\", gentle = false }",
    ]);
    let latency = select(vec!["", "latency = \"500ns\"\n"]);
    (buffer, marking, latency, routing()).prop_map(|(b, m, l, r)| format!("buffer = {b}\nmarking = {m}\n{l}routing = {r}\n"))
}

fn routing() -> impl Strategy<Value = &'static str> {
    select(vec!["\"ecmp\"", "\"spray\"", "\"round_robin\"", "{ kind = \"flowlet\", gap = \"5us\" }"])
}

/// Buffers and schedulers that only ports with explicit departures have.
fn explicit_switch() -> impl Strategy<Value = String> {
    let buffer = select(vec![
        "{ kind = \"dynamic\", total = \"60KB\", alpha = 1.0 }",
        "{ kind = \"dynamic\", total = \"40 packets\", alpha = 0.5, reserved = \"1 packets\" }",
        "{ kind = \"dynamic\", total = \"600 cells\", alpha = 2.0 }",
        "{ kind = \"static\", per_port = \"15 packets\" }",
    ]);
    let scheduling = select(vec![
        "\"fifo\"",
        "{ kind = \"strict\", classes = 3 }",
        "{ kind = \"drr\", quanta = [\"1518B\", \"3036B\", \"600B\"] }",
        "{ kind = \"strict_drr\", strict = 1, quanta = [\"1518B\", \"3036B\"] }",
    ]);
    let marking = select(vec![
        "\"none\"",
        "{ kind = \"threshold\", k = \"3 packets\" }",
        "{ kind = \"threshold\", k = \"3 packets\", at = \"dequeue\" }",
        "{ kind = \"red\", min = \"2 packets\", max = \"10 packets\", weight = 0.2 }",
    ]);
    (buffer, scheduling, marking, routing())
        .prop_map(|(b, s, m, r)| format!("buffer = {b}\nscheduling = {s}\nmarking = {m}\nrouting = {r}\n"))
}

fn transport() -> impl Strategy<Value = String> {
    let control = select(vec![
        "congestion_control = \"newreno\"",
        "congestion_control = \"reno\"",
        "congestion_control = \"dctcp\"\nect_on = \"all\"",
        "profile = \"linux\"\ncongestion_control = \"cubic\"\necn = true",
        "congestion_control = \"newreno\"\ntso = true\ninitial_window = 40",
        "congestion_control = \"dctcp\"\npacing = \"fq\"",
    ]);
    (control, any::<bool>(), any::<bool>(), select(vec!["", "mss = 536\n"])).prop_map(|(c, handshake, timestamps, mss)| {
        format!("{c}\nhandshake = {handshake}\ntimestamps = {timestamps}\n{mss}rto_initial = \"300us\"\nrto_min = \"100us\"\nrto_max = \"3ms\"\nclock_granularity = \"1us\"\nmax_retries = 6\n")
    })
}

fn traffic() -> impl Strategy<Value = String> {
    let incast = (1..4u32, select(vec![100u32, 1448, 20_000, 90_000]), 0..3u32, select(vec!["0B", "200B"])).prop_map(|(flows, size, jitter, request)| {
        format!("kind = \"incast\"\nreceiver = \"h5\"\nflows_per_sender = {flows}\nsize = \"{size}B\"\njitter = \"{jitter}us\"\nrequest = \"{request}\"\n")
    });
    let all = select(vec![1000u32, 1460, 30_000]).prop_map(|size| format!("kind = \"all_to_all\"\nsize = \"{size}B\"\n"));
    let permutation = select(vec![1448u32, 100_000]).prop_map(|size| format!("kind = \"permutation\"\nsize = \"{size}B\"\n"));
    let poisson = select(vec![0.1f64, 0.5]).prop_map(|load| {
        format!("kind = \"poisson\"\nsizes = {{ kind = \"uniform\", min = \"1B\", max = \"20KB\" }}\nload = {load}\ncount = 40\n")
    });
    let cbr = (select(vec![64u32, 700, 1472]), select(vec!["10Gbps", "3Gbps", "900Mbps"]), 0..6u8).prop_map(|(packet, rate, dst)| {
        format!("kind = \"cbr\"\nsrc = \"h{}\"\ndst = \"h{dst}\"\nrate = \"{rate}\"\ncounts = \"wire\"\npacket = \"{packet}B\"\nsize = \"{}B\"\n", (dst + 1) % 6, packet * 120)
    });
    let on_off = select(vec![true, false]).prop_map(|e| {
        format!("kind = \"on_off\"\nsrc = \"h0\"\ndst = \"h4\"\nrate = \"5Gbps\"\non = \"6us\"\noff = \"9us\"\nexponential = {e}\npacket = \"512B\"\nsize = \"60KB\"\n")
    });
    let one = prop_oneof![3 => incast, 1 => all, 2 => permutation, 2 => poisson, 2 => cbr, 1 => on_off];
    (one, 0..3u8, 0..4u32)
        .prop_map(|(entry, class, start)| format!("[[traffic]]\n{entry}class = {class}\nstart = \"{}us\"\n", start * 5))
}

fn around(switch: impl Strategy<Value = String>, classes: bool) -> impl Strategy<Value = Random> {
    let nic = (select(vec!["fair", "fifo"]), select(vec!["v4", "v4", "v6"]));
    (topology(), switch, transport(), prop::collection::vec(traffic(), 1..4), nic, 1..1000u32).prop_map(move |(topology, switch, transport, traffic, (nic, ip), seed)| {
        let mut traffic = traffic.concat();
        if !classes {
            for class in 1..3 {
                traffic = traffic.replace(&format!("class = {class}\n"), "");
            }
        }
        let cells = if switch.contains(" cells") { "cell = \"200B\"\n" } else { "" };
        let text = format!(
            "seed = {seed}\nduration = \"4ms\"\n[topology]\n{topology}\n[switch]\n{cells}{switch}[host]\nnic = \"{nic}\"\n[framing]\nip = \"{ip}\"\n[transport]\nkind = \"tcp\"\n{transport}{traffic}"
        );
        Random { text }
    })
}

/// Scenarios whose ports are FIFO, so that they can be simulated in both ways.
pub fn fifo() -> impl Strategy<Value = Random> {
    around(fifo_switch(), false)
}

/// Scenarios with classes and shared buffers.
pub fn classes() -> impl Strategy<Value = Random> {
    around(explicit_switch(), true).prop_map(|mut r| {
        if r.text.contains("scheduling = \"fifo\"") {
            for class in 1..3 {
                r.text = r.text.replace(&format!("class = {class}\n"), "");
            }
        }
        r
    })
}
