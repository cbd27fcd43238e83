//! Random small scenarios: every kind of topology, buffer, marking, path choice, transport and traffic, many events of
//! the same time.

use fanin_params::{Ground, Param, Schema};
use fanin_switch::{Arbitration, Marking, Mechanisms, PathChoice, Scheduling};
use fanin_transport::{CongestionControl, TransportConfig};
use fanin_units::{BitRate, Span};
use proptest::prelude::*;
use proptest::sample::select;

/// What is registered under a key, by kind: each with its defaults.
fn registered<T: Param>() -> Vec<&'static str> {
    match T::schema() {
        Schema::Choice(choice) => choice.variants.iter().map(|variant| variant.kind).collect(),
        other => panic!("no choice: {other:?}"),
    }
}

/// Settings written out, and whatever is registered besides.
fn or_registered<T: Param>(written: &[&str]) -> impl Strategy<Value = String> {
    let kinds: Vec<String> = registered::<T>().iter().map(|kind| format!("\"{kind}\"")).collect();
    let written: Vec<String> = written.iter().map(|text| text.to_string()).collect();
    prop_oneof![3 => select(written), 1 => select(kinds)]
}

/// Marking policies written out, and whatever can be tried besides: all but those that ask a block outside.
fn or_tried(written: &[&str]) -> impl Strategy<Value = String> {
    let ground = Ground { rate: BitRate::from_gbps(10), rtt: Span::from_us(10), buffer: None, marks: None };
    let kinds: Vec<String> = Marking::trials(&ground).iter().map(|trial| format!("\"{}\"", trial.kind)).collect();
    let written: Vec<String> = written.iter().map(|text| text.to_string()).collect();
    prop_oneof![3 => select(written), 1 => select(kinds)]
}

/// Settings of a mechanism that fit buffers and frames of these scenarios, where its defaults would not.
fn fitting(key: &str) -> &'static str {
    match key {
        "rcm" => "q_eq = \"3KB\", sample = \"3KB\", max_frame = \"1600B\", window_min = \"4KB\", window_max = \"20KB\"",
        _ => "",
    }
}

/// Nothing, or one or two of the mechanisms that are registered.
fn mechanisms() -> impl Strategy<Value = String> {
    let keys: Vec<&'static str> = Mechanisms::struct_schema().fields.iter().map(|field| field.name).collect();
    let some = prop::sample::subsequence(keys.clone(), 0..=keys.len().min(2));
    let tables = some.prop_map(|keys| keys.iter().map(|key| format!("mechanisms.{key} = {{{}}}\n", fitting(key))).collect());
    prop_oneof![3 => Just(String::new()), 1 => tables]
}

/// A scenario without its `[engine]` and `[telemetry]` tables.
#[derive(Clone, Debug)]
pub struct Random {
    pub text: String,
}

impl Random {
    /// The same without mechanisms at switches, for tests that bring their own, or none.
    pub fn plain(&self) -> Random {
        let lines = self.text.lines().filter(|line| !line.contains("mechanisms"));
        Random { text: lines.map(|line| format!("{line}\n")).collect() }
    }

    /// The scenario with ports simulated so and telemetry on or off.
    pub fn with(&self, ports: &str, telemetry: bool) -> String {
        let telemetry =
            if telemetry { "sample = \"7us\"\nqueues = [\"*\"]\nhosts = [\"*\"]" } else { "sample = \"off\"\ndrops = false" };
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
    let marking = or_tried(&[
        "\"none\"",
        "{ kind = \"threshold\", k = \"3 packets\" }",
        "{ kind = \"threshold\", k = \"3 packets\", at = \"dequeue\" }",
        "{ kind = \"threshold\", k = \"4000B\" }",
        "{ kind = \"threshold\", k = \"4000B\", at = \"dequeue\" }",
        "{ kind = \"threshold\", k = \"50 cells\" }",
        "{ kind = \"threshold\", k = \"50 cells\", at = \"dequeue\" }",
        "{ kind = \"front_drop\", limit = \"4 packets\" }",
        "{ kind = \"codel\", target = \"2us\", interval = \"20us\" }",
        "{ kind = \"codel\", target = \"1us\", interval = \"10us\", ecn = true, ce_threshold = \"8us\", mtu = \"64B\" }",
        "{ kind = \"front_drop\", limit = \"5KB\" }",
        "{ kind = \"front_drop\", limit = \"60 cells\" }",
        "{ kind = \"red\", min = \"2 packets\", max = \"10 packets\", weight = 0.2 }",
        "{ kind = \"red\", min = \"2KB\", max = \"9KB\", weight = 0.1, spacing = \"geometric\", by_size = true, hard_drop = false }",
        "{ kind = \"red\", min = \"20 cells\", max = \"90 cells\", weight = 1.0, spacing = \"wait\", gentle = false }",
    ]);
    let latency = select(vec!["", "latency = \"500ns\"\n"]);
    (buffer, marking, latency, routing(), mechanisms())
        .prop_map(|(b, m, l, r, more)| format!("buffer = {b}\nmarking = {m}\n{l}routing = {r}\n{more}"))
}

fn routing() -> impl Strategy<Value = String> {
    or_registered::<PathChoice>(&["{ kind = \"flowlet\", gap = \"5us\" }", "\"ecmp\"", "\"spray\""])
}

/// Buffers and schedulers beyond a FIFO port's, and mechanisms.
fn switch_with_classes() -> impl Strategy<Value = String> {
    let buffer = select(vec![
        "{ kind = \"dynamic\", total = \"60KB\", alpha = 1.0 }",
        "{ kind = \"dynamic\", total = \"40 packets\", alpha = 0.5, reserved = \"1 packets\" }",
        "{ kind = \"dynamic\", total = \"600 cells\", alpha = 2.0 }",
        "{ kind = \"static\", per_port = \"15 packets\" }",
    ]);
    let scheduling = or_registered::<Scheduling>(&[
        "\"fifo\"",
        "{ kind = \"strict\", classes = 3 }",
        "{ kind = \"drr\", quanta = [\"1518B\", \"3036B\", \"600B\"] }",
        "{ kind = \"strict_drr\", strict = 1, quanta = [\"1518B\", \"3036B\"] }",
    ]);
    let marking = or_tried(&[
        "\"none\"",
        "{ kind = \"threshold\", k = \"3 packets\" }",
        "{ kind = \"threshold\", k = \"3 packets\", at = \"dequeue\" }",
        "{ kind = \"front_drop\", limit = \"3 packets\" }",
        "{ kind = \"codel\", target = \"2us\", interval = \"20us\" }",
        "{ kind = \"codel\", target = \"1us\", interval = \"10us\", ecn = true, ce_threshold = \"8us\", mtu = \"64B\" }",
        "{ kind = \"red\", min = \"2 packets\", max = \"10 packets\", weight = 0.2 }",
    ]);
    let by_class = select(vec![
        "class_marking = [{ classes = [1], marking = { kind = \"threshold\", k = \"2 packets\" } }]\n",
        "class_marking = [{ classes = [0], marking = { kind = \"red\", min = \"1 packets\", max = \"6 packets\", weight = 0.5 } }, { classes = [1], marking = \"none\" }]\n",
        "class_marking = [{ classes = [1], marking = { kind = \"codel\", target = \"2us\", interval = \"15us\", ecn = true } }, { classes = [2], marking = { kind = \"threshold\", k = \"3000B\", at = \"dequeue\" } }]\n",
    ]);
    let by_class = prop_oneof![3 => Just(""), 1 => by_class];
    (buffer, scheduling, marking, routing(), (mechanisms(), by_class)).prop_map(|(b, s, m, r, (more, c))| {
        let c = if s.starts_with('{') { c } else { "" }; // those have three queues
        format!("buffer = {b}\nscheduling = {s}\nmarking = {m}\n{c}routing = {r}\n{more}")
    })
}

/// Switches of which half have ports with settings of their own, and some no mechanisms next to hosts.
fn with_exceptions(switch: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let room = (select(vec!["0 packets", "7 packets", "9KB"]), select(vec![0.25, 4.0]));
    let marking = select(vec![
        "\"none\"",
        "{ kind = \"threshold\", k = \"2 packets\" }",
        "{ kind = \"threshold\", k = \"3000B\", at = \"dequeue\" }",
        "{ kind = \"red\", min = \"1 packets\", max = \"6 packets\", weight = 0.5 }",
        "{ kind = \"codel\", target = \"2us\", interval = \"15us\", ecn = true }",
    ]);
    let scheduling =
        select(vec!["\"fifo\"", "{ kind = \"strict\", classes = 2 }", "{ kind = \"drr\", quanta = [\"600B\", \"1518B\"] }"]);
    let exceptions = prop::option::of((room, marking.clone(), marking, scheduling, any::<bool>()));
    (switch, exceptions).prop_map(|(switch, exceptions)| {
        let Some(((buffer, alpha), one, other, scheduling, fewer)) = exceptions else { return switch };
        let room = if switch.contains("dynamic") { format!("alpha = {alpha}") } else { format!("buffer = \"{buffer}\"") };
        let fewer = if fewer && switch.contains("mechanisms.") { "[[switch.except]]\ntier = 0\nmechanisms = {}\n" } else { "" };
        format!(
            "{switch}{fewer}[[switch.except]]\nports = [\"*->h5\", \"*->h1\"]\n{room}\nmarking = {one}\n\
             [[switch.except]]\nports = [\"*->h4\"]\ntier = 0\nscheduling = {scheduling}\nmarking = {other}\n"
        )
    })
}

/// A `[transport]` table.
fn transport() -> impl Strategy<Value = String> {
    let others: Vec<&str> = registered::<TransportConfig>().into_iter().filter(|kind| *kind != "tcp").collect();
    let tcp = tcp().prop_map(|keys| format!("kind = \"tcp\"\n{keys}"));
    if others.is_empty() {
        return tcp.boxed();
    }
    prop_oneof![3 => tcp, 1 => select(others).prop_map(|kind| format!("kind = \"{kind}\"\n"))].boxed()
}

fn tcp() -> impl Strategy<Value = String> {
    let registered = registered::<CongestionControl>().into_iter().map(|kind| format!("congestion_control = \"{kind}\""));
    let control = prop_oneof![3 => tcp_control(), 1 => select(registered.collect::<Vec<_>>())];
    (control, any::<bool>(), any::<bool>(), select(vec!["", "mss = 536\n"])).prop_map(|(c, handshake, timestamps, mss)| {
        format!("{c}\nhandshake = {handshake}\ntimestamps = {timestamps}\n{mss}rto_initial = \"300us\"\nrto_min = \"100us\"\nrto_max = \"3ms\"\nclock_granularity = \"1us\"\nmax_retries = 6\n")
    })
}

fn tcp_control() -> impl Strategy<Value = String> {
    select(vec![
        "congestion_control = \"newreno\"",
        "congestion_control = \"reno\"",
        "congestion_control = \"dctcp\"\nect_on = \"all\"",
        "profile = \"linux\"\ncongestion_control = \"cubic\"\necn = true",
        "congestion_control = \"newreno\"\ntso = true\ninitial_window = 40",
        "congestion_control = \"dctcp\"\npacing = \"fq\"",
    ])
    .prop_map(str::to_string)
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
    let job = select(vec![
        "{ kind = \"all_reduce\", size = \"9001B\", channels = 2 }",
        "{ kind = \"all_reduce\", size = \"60KB\", message = \"3KB\", work = \"300ns\" }",
        "{ kind = \"all_reduce\", algorithm = \"double_tree\", size = \"20KB\", jitter = \"5us\" }",
        "{ kind = \"all_to_all\", size = \"30KB\", concurrent = 2 }, { kind = \"reduce_scatter\", size = \"7KB\", group = 3 }",
        "{ kind = \"all_to_all\", size = \"30KB\", staggered = true, compute = \"2us\" }",
    ]);
    let job = job.prop_map(|operations| {
        format!("kind = \"collective\"\nranks = [\"h0..h5\"]\niterations = 3\noperations = [{operations}]\n")
    });
    let one = prop_oneof![3 => incast, 1 => all, 2 => permutation, 2 => poisson, 2 => cbr, 1 => on_off, 2 => job];
    (one, 0..3u8, 0..4u32)
        .prop_map(|(entry, class, start)| format!("[[traffic]]\n{entry}class = {class}\nstart = \"{}us\"\n", start * 5))
}

fn around(switch: impl Strategy<Value = String>, classes: bool) -> impl Strategy<Value = Random> {
    let queue = select(vec!["{ kind = \"fifo\", txqueuelen = 5 }", "{ kind = \"fifo\", txqueuelen = 60 }"]);
    let nic = prop_oneof![2 => Just("\"fair\""), 2 => Just("\"fifo\""), 1 => queue];
    let nic = (nic, select(vec!["v4", "v4", "v6"]));
    (topology(), switch, transport(), prop::collection::vec(traffic(), 1..4), nic, 1..1000u32).prop_map(move |(topology, switch, transport, traffic, (nic, ip), seed)| {
        let mut traffic = traffic.concat();
        if !classes {
            for class in 1..3 {
                traffic = traffic.replace(&format!("class = {class}\n"), "");
            }
        }
        if switch.contains("scheduling = \"drr\"") || switch.contains("scheduling = \"strict_drr\"") {
            traffic = traffic.replace("class = 2\n", "class = 1\n"); // their defaults have two
        }
        let cells = if switch.contains(" cells") { "cell = \"200B\"\n" } else { "" };
        // Telemetry has codes for common rates alone.
        let writes = Mechanisms::that_writes_telemetry().is_some_and(|key| switch.contains(&format!("mechanisms.{key} ")));
        let topology = if writes { topology.replace("56Gbps", "50Gbps").replace("10312500Kbps", "10Gbps") } else { topology };
        let text = format!(
            "seed = {seed}\nduration = \"4ms\"\n[topology]\n{topology}\n[switch]\n{cells}{switch}[host]\nnic = {nic}\n[framing]\nip = \"{ip}\"\n[transport]\n{transport}{traffic}"
        );
        Random { text }
    })
}

/// Scenarios with combined input- and output-queued switches.
pub fn combined() -> impl Strategy<Value = Random> {
    let architecture = (
        select(vec!["4KB", "20KB", "150KB"]),
        select(vec!["4KB", "30KB"]),
        select(vec!["1.0", "1.3", "2.0", "4.0"]),
        or_registered::<Arbitration>(&["{ kind = \"islip\", iterations = 1 }", "\"islip\""]),
    );
    (classes(), architecture).prop_map(|(random, (voq, output, speedup, scheduler))| {
        let voq = if random.text.contains("mechanisms.pfc") { "150KB" } else { voq };
        let mut text = String::new();
        for line in random.text.lines() {
            let key = line.strip_prefix("mechanisms.").and_then(|rest| rest.split(' ').next());
            if line.starts_with("buffer = {") {
                text.push_str(&format!(
                    "architecture = {{ kind = \"combined\", voq = \"{voq}\", output = \"{output}\", speedup = {speedup}, scheduler = {scheduler} }}\n"
                ));
            } else if key == Some("pfc") {
                text.push_str("mechanisms.pfc = { xoff = { kind = \"static\", bytes = \"15KB\" } }\n");
            } else if key.is_none_or(|key| Mechanisms::that_run_at_combined().contains(&key))
                && !line.starts_with("alpha = ")
                && !line.starts_with("buffer = \"")
            {
                text.push_str(&format!("{line}\n"));
            }
        }
        if !text.contains("mechanisms.") {
            text = text.replace("[[switch.except]]\ntier = 0\nmechanisms = {}\n", "");
        }
        Random { text: text.replace("mechanisms = {}\n[[switch.except]]\ntier = 0\nmechanisms = {}", "mechanisms = {}") }
    })
}

/// Scenarios whose ports are FIFO, but for exceptions, so that they can be simulated in both ways.
pub fn fifo() -> impl Strategy<Value = Random> {
    around(with_exceptions(fifo_switch()), false)
}

/// Scenarios with classes and shared buffers.
pub fn classes() -> impl Strategy<Value = Random> {
    around(with_exceptions(switch_with_classes()), true).prop_map(|mut r| {
        if r.text.contains("scheduling = \"fifo\"\nmarking") {
            for class in 1..3 {
                r.text = r.text.replace(&format!("class = {class}\n"), "");
            }
        }
        r
    })
}
