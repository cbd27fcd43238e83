//! NICs that ask for pauses without need (PFC storms), what stops them, and NICs that do not wait for ever.

use crate::common::*;
use crate::pfc::{balance, cbr, star};
use fanin_sim::{Pause, World};
use fanin_telemetry::PauseRow;
use serde_json::Value;

/// From the moment at which an idle NIC asks until its switch has the frame: 84 bytes at 10 Gb/s, 1 us of link, 300 ns of switch.
const FRAME: u64 = 67_200 + 1_000_000 + 300_000;
const US: u64 = 1_000_000;

const PFC: &str = "memory = \"500KB\", classes = [0], xoff = { kind = \"static\", bytes = \"30KB\" }";

struct Outcome {
    ran: Ran,
    summary: Value,
}

impl Outcome {
    fn pfc(&self, name: &str) -> u64 {
        self.summary["mechanisms"]["pfc"][name].as_u64().expect(name)
    }

    fn pauses(&self, port: &str) -> Vec<&PauseRow> {
        self.ran.kept.pauses.iter().filter(|row| row.port.to_string() == port).collect()
    }
}

/// Packets to h2 and h1 from h0, at half of the line's rate each, beside a storm of h2.
fn storm(duration: &str, host: &str, pfc: &str) -> Outcome {
    let half = |dst: &str| cbr("h0", dst, 0, "1MB").replace("rate = \"10Gbps\"", "rate = \"4Gbps\"");
    let duration = if duration.is_empty() { String::new() } else { format!("duration = \"{duration}\"\n") };
    let text = format!("{duration}[host]\n{host}\n{}{}{}", star(3, pfc, ""), half("h2"), half("h1"));
    let mut world = make(&text);
    let mut step = 1;
    let pause = loop {
        let pause = world.advance(step).expect("tables in memory");
        balance(&mut world);
        if pause != Pause::Budget {
            break pause;
        }
        step = step % 97 + 13;
    };
    assert_eq!(pause, Pause::Done);
    finished(world)
}

fn finished(mut world: World) -> Outcome {
    let (ports, totals, now) = (world.ports_now(), world.totals(), world.now());
    let (summary, _) = fanin_sim::finish(&mut world).expect("tables");
    Outcome { ran: Ran { kept: world.into_kept().expect("tables"), ports, totals, now }, summary }
}

/// A storm pauses the port of the switch to the picosecond, for as long as it lasts, by frames as often as pauses have to be asked for
/// again; the pause spreads to who sends there, and nothing is lost. Source: IEEE 802.3 §31B.2, IEEE 802.1Q §36.
#[test]
fn a_storm_pauses_its_port_and_spreads() {
    let ran = storm("", "storms = [{ hosts = [\"h2\"], classes = [0], start = \"100us\", end = \"5.1ms\" }]", PFC);
    let [pause] = ran.pauses("switch0->h2")[..] else { panic!("{:?}", ran.ran.kept.pauses) };
    assert_eq!((pause.start_ps, pause.end_ps), (100 * US + FRAME, Some(5_100 * US + FRAME)));
    assert_eq!((pause.asked_ps, &pause.behind, pause.held_up, pause.frames), (Some(100 * US), &None, false, 3));
    // A pause of 65,535 quanta at 10 Gb/s lasts 3.355 ms: asked for again after half of it, twice in 5 ms; then it is ended.
    assert_eq!((ran.pfc("nic_frames_sent"), ran.pfc("frames_received")), (4, 4));
    let spread = ran.pauses("h0->switch0");
    assert!(!spread.is_empty(), "the memory of the switch is full");
    let behind = spread[0].behind.as_ref().expect("a port").to_string();
    assert_eq!((behind.as_str(), spread[0].held_up), ("switch0->h2", true));
    assert_eq!((ran.ran.totals.dropped, ran.pfc("nic_storms"), ran.pfc("storms")), (0, 0, 0));
    assert!(ran.ran.kept.flows.iter().all(|flow| flow.status.to_string() == "complete"));
    assert!(ran.ran.now.ps() > 5_100 * US);
}

/// A NIC that stops asking after a time ends its own storm, whatever it asks for. Source: NVIDIA.
#[test]
fn stall_prevention_ends_a_storm() {
    let host = "stall_prevention = \"400us\"\nstorms = [{ hosts = [\"h*\"], classes = [0], start = \"100us\" }]";
    let ran = storm("20ms", host, PFC);
    for port in ["switch0->h0", "switch0->h1", "switch0->h2"] {
        let [pause] = ran.pauses(port)[..] else { panic!("{port}: {:?}", ran.pauses(port)) };
        let lasted = pause.end_ps.expect("it ended") - pause.start_ps;
        // The frame of h0, which sends, may wait for one of its own: 1538 bytes at 10 Gb/s.
        assert!(lasted.abs_diff(400 * US) <= if port.ends_with("h0") { 1_230_400 } else { 0 }, "{port}: {lasted}");
    }
    assert_eq!((ran.pfc("nic_frames_sent"), ran.ran.totals.dropped), (6, 0));
    assert!(ran.ran.kept.flows.iter().all(|flow| flow.status.to_string() == "complete"));
}

/// A NIC with a watchdog sends after `detection`, to the picosecond after the first packet that waits, and what its switch has no room for
/// is lost; one without waits to the end. When it has not been paused for `restoration`, all is as before.
#[test]
fn a_nic_does_not_wait_for_ever() {
    let storms = "storms = [{ hosts = [\"h2\"], classes = [0], start = \"100us\", end = \"1ms\" }]";
    let without = storm("", storms, PFC);
    let longest = without.pauses("h0->switch0").iter().filter_map(|row| Some(row.end_ps? - row.start_ps)).max();
    assert!(longest > Some(700 * US), "{longest:?}");
    let watchdog = "pause_watchdog = { detection = \"200us\", restoration = \"100us\" }";
    let ran = storm("", &format!("{watchdog}\n{storms}"), PFC);
    let pauses = ran.pauses("h0->switch0");
    let first = pauses[0].end_ps.expect("it ended") - pauses[0].start_ps;
    // The pause may begin between two packets, which come 3 us apart at most, as 1538 bytes at 4 Gb/s.
    assert!((200 * US..=203 * US + 76_000).contains(&first), "{first}");
    assert!(pauses.iter().all(|row| row.end_ps.is_some_and(|end| end - row.start_ps <= 204 * US)), "{pauses:?}");
    assert_eq!((ran.pfc("nic_storms"), ran.pfc("nic_storms_over"), ran.pfc("storms")), (1, 1, 0));
    assert!(ran.pfc("dropped_lossless") > 0 && ran.ran.totals.dropped == ran.pfc("dropped_lossless"));
    // Those to h1 do not wait behind those to h2 any more.
    let finish =
        |ran: &Outcome| ran.ran.kept.flows.iter().find(|flow| flow.dst.to_string() == "h1").and_then(|flow| flow.finish_ps);
    assert!(finish(&ran).is_none_or(|at| Some(at) < finish(&without)), "{:?} {:?}", finish(&ran), finish(&without));
}

/// The watchdog of the switch and a storm that never ends: the class of that port is dropped from `detection` on, and the other flow goes on.
#[test]
fn the_watchdog_of_a_switch_cuts_a_storm_off() {
    let watchdog = "watchdog = { detection = \"200us\", restoration = \"200us\" }";
    let storms = "storms = [{ hosts = [\"h2\"], classes = [0], start = \"100us\" }]";
    let ran = storm("20ms", storms, &format!("{PFC}, {watchdog}"));
    assert_eq!((ran.pfc("storms"), ran.pfc("storms_over")), (1, 0));
    assert!(ran.ran.totals.dropped > 0 && ran.ran.totals.dropped == ran.pfc("dropped_watchdog"));
    let to = |dst: &str| ran.ran.kept.flows.iter().find(|flow| flow.dst.to_string() == dst).expect("a flow").delivered_bytes;
    assert_eq!(to("h1"), 1_000_000);
    assert!(to("h2") < 1_000_000);
}

/// A NIC that is a queue does not obey pauses, and can ask for them all the same.
#[test]
fn a_nic_that_is_a_queue_can_storm() {
    let host = "nic = \"fifo\"\nstorms = [{ hosts = [\"h2\"], classes = [0], start = \"100us\", end = \"300us\" }]";
    let ran = storm("", host, PFC);
    let [pause] = ran.pauses("switch0->h2")[..] else { panic!("{:?}", ran.ran.kept.pauses) };
    assert_eq!((pause.start_ps, pause.end_ps), (100 * US + FRAME, Some(300 * US + FRAME)));
}
