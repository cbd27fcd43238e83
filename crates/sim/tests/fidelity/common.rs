//! Scenarios from text, run in memory.

use fanin_scenario::Scenario;
use fanin_sim::{world, Destination, Kept, Pause, PortNow, Totals, World};
use fanin_telemetry::FlowRow;
use fanin_units::{Span, Time};
use proptest::test_runner::{Config, RngSeed};
use std::path::Path;

/// Picoseconds in a second.
pub const SECOND: f64 = 1e12;
/// Frame bytes of a full segment, and the wire bytes that it occupies.
pub const FRAME: u64 = 1518;
pub const WIRE: u64 = 1538;

/// Number of cases of each property that `FANIN_SOAK=N` asks for.
pub fn soak() -> Option<u32> {
    std::env::var("FANIN_SOAK").ok().map(|text| text.parse().expect("FANIN_SOAK: a number of cases"))
}

/// Cases of a property: the same ones each time, or, with `FANIN_SOAK=N`, N others (`make soak`).
pub fn property(cases: u32, seed: u64) -> Config {
    let soak = soak();
    Config {
        cases: soak.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: 100,
        max_global_rejects: 1_024.max(100 * soak.unwrap_or(cases)),
        rng_seed: soak.map_or(RngSeed::Fixed(seed), |_| RngSeed::Random),
        ..Config::default()
    }
}

/// A validated scenario.
pub fn scenario(text: &str) -> Scenario {
    match Scenario::from_toml(text, Path::new(".")) {
        Ok(scenario) => scenario,
        Err(problems) => {
            panic!("{}\n{text}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        }
    }
}

/// A world that keeps its tables in memory.
pub fn make(text: &str) -> World {
    world(&scenario(text), &Destination::Memory).expect("a world")
}

/// Moves a world up to a time or its end; true while there is more to do.
pub fn advance_to(world: &mut World, until: Time) -> bool {
    while world.now() < until {
        match world.advance(1).expect("tables in memory") {
            Pause::Budget => {}
            Pause::Done => return false,
            Pause::Stuck(message) => panic!("{message}"),
        }
    }
    true
}

/// A run that has ended.
#[derive(Debug, PartialEq)]
pub struct Ran {
    pub kept: Kept,
    pub ports: Vec<PortNow>,
    pub totals: Totals,
    pub now: Time,
}

impl Ran {
    /// A port by name.
    pub fn port(&self, name: &str) -> &PortNow {
        self.ports.iter().find(|p| p.name == name).expect(name)
    }

    /// The counters that do not depend on how ports are simulated or what is recorded.
    pub fn outcome(&self) -> (u64, [u64; 7], Time) {
        let t = self.totals;
        (self.kept.fingerprint, [t.packet_hops, t.sent, t.delivered, t.stray, t.dropped, t.started, t.ended], self.now)
    }
}

/// Moves a world to its end.
pub fn finish(mut world: World) -> Ran {
    loop {
        match world.advance(1 << 20).expect("tables in memory") {
            Pause::Budget => {}
            Pause::Done => break,
            Pause::Stuck(message) => panic!("{message}"),
        }
    }
    let (ports, totals, now) = (world.ports_now(), world.totals(), world.now());
    Ran { kept: world.into_kept().expect("tables in memory"), ports, totals, now }
}

/// Runs a scenario to its end.
pub fn run(text: &str) -> Ran {
    finish(make(text))
}

/// Runs a scenario to its end in steps of changing size; `balance` is asked after each.
pub fn run_in_steps(text: &str, balance: impl FnMut(&mut World)) -> World {
    run_in_steps_of(&scenario(text), balance)
}

/// [`run_in_steps`] of a validated scenario.
pub fn run_in_steps_of(scenario: &Scenario, mut balance: impl FnMut(&mut World)) -> World {
    let mut world = world(scenario, &Destination::Memory).expect("a world");
    let mut step = 1;
    loop {
        let pause = world.advance(step).expect("tables in memory");
        balance(&mut world);
        match pause {
            Pause::Budget => step = step % 97 + 13,
            Pause::Done => return world,
            Pause::Stuck(message) => panic!("{message}"),
        }
    }
}

/// What must hold of packets at any time: each is somewhere, once.
pub fn conserved(world: &mut World) {
    let (ports, t) = (world.ports_now(), world.totals());
    assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight(), "{t:?}");
    let exist = ports.iter().map(|p| p.on_wire + p.queue_packets).sum::<u64>();
    assert_eq!(exist + world.held(), world.in_flight() + world.messages_on_the_way());
    assert_eq!(t.packet_hops, ports.iter().map(|p| p.tx_packets - p.on_wire).sum::<u64>());
}

/// What must hold at any time where switches count by input port: what waits at an output-queued one counts where it came in, all of it and
/// nothing else.
pub fn inputs_counted(world: &mut World) {
    let ports = world.ports_now();
    for (s, counted) in (0..).zip(world.input_bytes()) {
        let of = ports.iter().filter(|port| port.switch == Some(s));
        let waits: u64 = of.map(|port| port.queue_bytes + port.held_bytes).sum();
        assert!(counted.is_none_or(|counted| counted == waits), "switch {s}: {counted:?} of {waits} at {}", world.now());
    }
}

/// Runs a scenario that gets stuck; gives what it says.
pub fn run_stuck(text: &str, budget: u64) -> (String, World) {
    let mut world = make(text);
    loop {
        match world.advance(budget).expect("tables in memory") {
            Pause::Budget => {}
            Pause::Done => panic!("it ended at {}", world.now()),
            Pause::Stuck(message) => return (message, world),
        }
    }
}

/// Serialisation of `wire` bytes at `gbps`, in picoseconds, where that is a whole number.
pub fn tx_ps(wire: u64, gbps: u64) -> u64 {
    assert_eq!(8_000 % gbps, 0);
    wire * 8_000 / gbps
}

/// Mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Holds a value to what theory says, within a relative tolerance.
#[track_caller]
pub fn near(what: &str, measured: f64, theory: f64, tolerance: f64) {
    println!("{what}: theory {theory:.6}, measured {measured:.6}, off by {:+.4} %", 100.0 * (measured / theory - 1.0));
    assert!((measured / theory - 1.0).abs() <= tolerance, "{what}: theory {theory}, measured {measured}, tolerance {tolerance}");
}

/// `n` servers at the left of a dumbbell send 10 KB each to one client at the right, all at once, as PDN §V has it: 1 Gb/s, a
/// propagation round trip of 100 us, initial window 1. Segments of 1000 B in frames of 1058 B.
pub fn fan_in(n: u32, transport: &str, switch: &str) -> String {
    format!(
        r#"
        [topology]
        kind = "dumbbell"
        left = {n}
        right = 1
        host_link = {{ rate = "1Gbps", delay = "16667ns" }}
        bottleneck = {{ rate = "1Gbps", delay = "16666ns" }}
        [switch]
        buffer = {{ kind = "static", per_port = "300KB" }}
        {switch}
        [transport]
        kind = "tcp"
        congestion_control = "newreno"
        sack = false
        timestamps = false
        mss = 1000
        initial_window = 1
        ack_every = 1
        rto_min = "200ms"
        rto_initial = "200ms"
        {transport}
        [[traffic]]
        kind = "incast"
        receiver = "h{n}"
        senders = ["all"]
        size = "10KB"
        [telemetry]
        sample = "off"
        "#
    )
}

/// Flows that have all completed, together.
pub trait Completed {
    fn flows(&self) -> &[FlowRow];

    /// When the last byte of the last one arrived, since the start.
    fn last(&self) -> Span {
        self.flows().iter().map(|f| Time::from_ps(f.finish_ps.expect("complete")).since(Time::ZERO)).max().expect("flows")
    }
    fn timeouts(&self) -> u64 {
        self.flows().iter().map(|f| u64::from(f.timeouts)).sum()
    }
    fn retransmits(&self) -> u64 {
        self.flows().iter().map(|f| f.retransmits).sum()
    }
}

/// What has become of drop notifications: at switches, on the way, and at senders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    pub raised: u64,
    pub attached: u64,
    pub empty_frames: u64,
    pub overflowed: u64,
    pub next_hop_unaware: u64,
    pub expired: u64,
    pub lost: u64,
    pub retransmitted: u64,
    pub redundant: u64,
    pub arrived: u64,
    pub unknown: u64,
    pub undefined: u64,
    pub ignored: u64,
    pub flow_ended: u64,
}

impl Notices {
    pub fn of(world: &World) -> Notices {
        let at_switches = |name| world.counter("notifications", name);
        let at_senders = world.signals().notifications;
        Notices {
            raised: at_switches("raised"),
            attached: at_switches("attached"),
            empty_frames: at_switches("empty_frames"),
            overflowed: at_switches("overflowed"),
            next_hop_unaware: at_switches("next_hop_unaware"),
            expired: at_switches("expired"),
            lost: at_switches("lost"),
            retransmitted: at_senders.retransmitted,
            redundant: at_senders.redundant,
            arrived: at_senders.arrived,
            unknown: at_senders.unknown,
            undefined: at_senders.undefined,
            ignored: at_senders.ignored,
            flow_ended: world.after_end("notifications"),
        }
    }

    /// Those that reached the host of the packet's sender.
    pub fn reached(&self) -> u64 {
        self.retransmitted + self.redundant + self.arrived + self.unknown + self.undefined + self.ignored + self.flow_ended
    }

    /// Those that never reach a host.
    pub fn stranded(&self) -> u64 {
        self.overflowed + self.next_hop_unaware + self.expired + self.lost
    }
}

/// What has become of trimmed packets and of NACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trims {
    pub trimmed: u64,
    pub tail_trimmed: u64,
    pub headers_lost: u64,
    pub nacked: u64,
    pub ignored: u64,
    pub not_open: u64,
    pub flow_ended: u64,
    pub nacks_lost: u64,
    pub nacks_flow_ended: u64,
    pub nack_retransmitted: u64,
    pub nack_redundant: u64,
    pub nack_arrived: u64,
    pub nack_unknown: u64,
}

impl Trims {
    pub fn of(world: &World) -> Trims {
        let at_switches = |name| world.counter("trimming", name);
        let (ends, totals) = (world.signals().trimming, world.totals());
        Trims {
            trimmed: at_switches("trimmed"),
            tail_trimmed: at_switches("tail_trimmed"),
            headers_lost: at_switches("headers_lost"),
            nacked: ends.nacked,
            ignored: ends.ignored,
            not_open: ends.not_open,
            flow_ended: totals.stray_trimmed,
            nacks_lost: totals.dropped_signals,
            nacks_flow_ended: totals.stray_signals,
            nack_retransmitted: ends.nack_retransmitted,
            nack_redundant: ends.nack_redundant,
            nack_arrived: ends.nack_arrived,
            nack_unknown: ends.nack_unknown,
        }
    }

    /// Trimmed packets that are no longer on the way.
    pub fn headers_gone(&self) -> u64 {
        self.headers_lost + self.nacked + self.ignored + self.not_open + self.flow_ended
    }

    /// NACKs that are no longer on the way.
    pub fn nacks_gone(&self) -> u64 {
        let answered = self.nack_retransmitted + self.nack_redundant + self.nack_arrived + self.nack_unknown;
        self.nacks_lost + self.nacks_flow_ended + answered
    }
}
