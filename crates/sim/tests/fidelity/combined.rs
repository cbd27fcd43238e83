//! Combined input- and output-queued switches: times to the picosecond, nothing lost but in a full virtual output queue, pauses before
//! that, and with a speedup of two the delays of an output-queued switch.

use crate::common::*;
use crate::determinism::{accepted, balanced, config};
use crate::pfc::{cbr, fabric};
use crate::random::combined;
use fanin_sim::{Pause, World};
use proptest::prelude::*;
use proptest::sample::select;

fn star(hosts: u32, combined: &str, more: &str) -> String {
    format!(
        "[topology]\nkind = \"single_switch\"\nhosts = {hosts}\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [switch]\nlatency = \"300ns\"\narchitecture = {{ kind = \"combined\", {combined} }}\n{more}\n[telemetry]\nsample = \"off\"\n"
    )
}

/// One datagram: link, switch, crossbar, link. A frame of 1518 bytes is 1538 on the wire and 1518 on the crossbar.
#[test]
fn a_packet_alone_takes_links_and_a_crossing() {
    let hop = tx_ps(1538, 10) + 1_000_000;
    for (speedup, crossing) in [(1.0, tx_ps(1518, 10)), (2.0, tx_ps(1518, 20)), (3.0, 404_800), (1.5, 809_600)] {
        let ran = run(&format!("{}{}", star(2, &format!("speedup = {speedup:?}"), ""), cbr("h0", "h1", 0, "1472B")));
        assert_eq!(ran.now.ps(), 2 * hop + 300_000 + crossing, "{speedup}");
        assert_eq!(ran.kept.flows[0].ideal_ps, ran.now.ps(), "{speedup}");
    }
}

/// Two inputs, one output, at one instant: the first crosses, and then the second; on the wire they follow each other without a gap
/// where the crossbar is at least as fast as the wire needs it.
#[test]
fn two_inputs_to_one_output_cross_one_after_the_other() {
    let arrive = tx_ps(1538, 10) + 1_000_000 + 300_000;
    for (speedup, crossing) in [(1.0, tx_ps(1518, 10)), (2.0, tx_ps(1518, 20))] {
        let text = format!(
            "{}{}{}",
            star(3, &format!("speedup = {speedup:?}"), ""),
            cbr("h0", "h2", 0, "1472B"),
            cbr("h1", "h2", 0, "1472B")
        );
        let ran = run(&text);
        let mut at: Vec<u64> = ran.kept.flows.iter().map(|flow| flow.finish_ps.expect("complete")).collect();
        at.sort_unstable();
        let wire = tx_ps(1538, 10);
        assert_eq!(at[0], arrive + crossing + wire + 1_000_000);
        // The second crosses while the first is on the wire, which its preamble and gap make the longer of both.
        assert_eq!(at[1], at[0] + wire);
        // To different outputs both cross at once.
        let both = run(&format!("{}{}", star(4, &format!("speedup = {speedup:?}"), ""), {
            format!("{}{}", cbr("h0", "h2", 0, "1472B"), cbr("h1", "h3", 0, "1472B"))
        }));
        assert!(both.kept.flows.iter().all(|flow| flow.finish_ps == Some(at[0])));
    }
}

/// Ports of different rates: the crossbar has one rate, a multiple of the fastest port's.
#[test]
fn a_slow_port_gets_its_packets_at_the_rate_of_the_crossbar() {
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\nleft = 1\nright = 1\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         bottleneck = {{ rate = \"40Gbps\", delay = \"1us\" }}\n[switch]\narchitecture = \"combined\"\n{}",
        cbr("h0", "h1", 0, "1472B")
    );
    let ran = run(&text);
    assert_eq!(ran.now.ps(), 2 * tx_ps(1538, 10) + tx_ps(1538, 40) + 3_000_000 + 2 * tx_ps(1518, 80));
}

/// Nothing is lost inside: with four senders at line rate the output queue fills to its limit and no further, virtual output queues
/// behind it, and then those drop, each for its own reason.
#[test]
fn only_a_full_virtual_output_queue_drops() {
    let senders = ["h0", "h1", "h2", "h3"].map(|src| cbr(src, "h4", 0, "600KB")).concat();
    let mut world = run_in_steps(&format!("{}{senders}", star(5, "voq = \"50KB\", output = \"30KB\"", "")), conserved);
    let port = world.ports_now().into_iter().find(|port| port.name == "switch0->h4").expect("the port");
    assert!((30_000 - 2 * 1518 + 1..=30_000).contains(&port.peak_bytes), "{port:?}");
    let t = world.totals();
    let (summary, _) = fanin_sim::finish(&mut world).expect("tables");
    assert_eq!(summary["drops_by_reason"]["voq_full"].as_u64(), Some(t.dropped), "{}", summary["drops_by_reason"]);
    // 4 x 408 packets come at 4 times the rate that they leave at: what is not dropped is what left meanwhile, and what waited.
    let waited = (4 * 50_000 + 30_000) / 1518;
    let expected = 4 * 408 - 408 - waited;
    assert!(t.dropped.abs_diff(expected) <= 8, "{} of {expected}", t.dropped);
    // Each input has its turn.
    let kept = world.into_kept().expect("tables");
    let got: Vec<u64> = kept.flows.iter().map(|flow| flow.delivered_bytes / 1472).collect();
    assert!(got.iter().max().expect("flows") - got.iter().min().expect("flows") <= 1, "{got:?}");
}

const PFC: &str = "mechanisms.pfc = { memory = \"2MB\", classes = [0], xoff = { kind = \"static\", bytes = \"30KB\" } }";

fn lossless(world: &mut World) {
    crate::pfc::balance(world);
    assert_eq!(world.totals().dropped, 0);
}

/// PFC counts what waits at the input: it asks for the first pause when the output queue is full and the virtual output queues behind it
/// have reached XOFF, no sooner; and nothing is lost.
#[test]
fn pauses_begin_when_the_output_queue_is_full_and_an_input_has_reached_xoff() {
    let first_pause = |output: &str| {
        let combined = format!("output = \"{output}\"");
        let text = format!("{}{}{}", star(3, &combined, PFC), cbr("h0", "h2", 0, "2MB"), cbr("h1", "h2", 0, "2MB"));
        let mut world = run_in_steps(&text, lossless);
        let peak = world.ports_now().into_iter().find(|port| port.name == "switch0->h2").expect("the port").peak_bytes;
        assert!(world.counter("pfc", "xoff") > 3 && world.counter("pfc", "xoff") == world.counter("pfc", "xon"));
        let now = world.now();
        let kept = world.into_kept().expect("tables");
        // The line never idles.
        let packets = 2 * 2_000_000_u64.div_ceil(1472);
        near("time of both", now.ps() as f64, (packets * tx_ps(1538, 10)) as f64, 0.005);
        (kept.pauses.iter().map(|row| row.start_ps).min().expect("a pause"), peak)
    };
    // The output queue takes what comes beyond the wire's rate, 10 Gb/s; then the inputs, 30 KB each.
    let rate = 10e9 / 8.0 * 1518.0 / 1538.0;
    for (output, bytes) in [("20KB", 20e3), ("100KB", 100e3)] {
        let (first, peak) = first_pause(output);
        assert!(peak as f64 <= bytes && peak as f64 > bytes - 2.0 * 1518.0, "{peak} of {bytes}");
        near("first pause", first as f64, (bytes + 2.0 * 30e3) / rate * 1e12, 0.05);
    }
}

/// The headroom that PFC computes suffices, and what was used of it does; a byte less loses. Nothing else does: virtual output queues of
/// XOFF and headroom are never full.
#[test]
fn headroom_in_use_suffices_and_a_byte_less_loses() {
    let run = |headroom: &str, voq: u64| {
        let pfc = PFC.replace("}\u{20}}", &format!("}}{headroom} }}"));
        let combined = format!("output = \"20KB\", voq = \"{voq}B\"");
        let text = format!("{}{}{}", star(3, &combined, &pfc), cbr("h0", "h2", 0, "2MB"), cbr("h1", "h2", 0, "2MB"));
        let mut world = run_in_steps(&text, crate::pfc::balance);
        let dropped = world.totals().dropped;
        let (summary, _) = fanin_sim::finish(&mut world).expect("tables");
        let peak = summary["mechanisms"]["pfc"]["headroom_peak_bytes"].as_u64().expect("a peak");
        (dropped, peak, summary["drops_by_reason"]["headroom_full"].as_u64().unwrap_or(0))
    };
    let (dropped, used, _) = run("", 100_000);
    assert!(dropped == 0 && used > 3_000);
    assert_eq!(run(&format!(", headroom = \"{used}B\""), 30_000 + used), (0, used, 0));
    let (dropped, _, full) = run(&format!(", headroom = \"{}B\"", used - 1), 100_000);
    assert!(dropped > 0 && dropped == full);
}

/// With a speedup of two a combined switch behaves nearly as one whose packets wait at outputs alone: the mean time of packets
/// of random sizes from seven hosts to seven others differs by the crossing and little more; without speedup it differs by far more.
#[test]
fn a_speedup_of_two_is_nearly_output_queued() {
    let mean_of = |switch: &str| {
        let ran = run(&format!(
            "seed = 4\n[topology]\nkind = \"single_switch\"\nhosts = 12\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [switch]\n{switch}\n[telemetry]\nsample = \"off\"\n[transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 10\n\
             [[traffic]]\nkind = \"poisson\"\nload = 0.85\nsizes = {{ kind = \"uniform\", min = \"1000B\", max = \"1448B\" }}\ncount = 20000\n"
        ));
        assert_eq!(ran.totals.dropped, 0);
        let waits: Vec<f64> =
            ran.kept.flows.iter().map(|f| (f.finish_ps.expect("complete") - f.start_ps - f.ideal_ps) as f64 / 1e6).collect();
        mean(&waits)
    };
    let combined = |speedup: &str| {
        mean_of(&format!("architecture = {{ kind = \"combined\", voq = \"1MB\", output = \"1MB\", speedup = {speedup} }}"))
    };
    let (output, two, one) = (mean_of("buffer = \"unlimited\""), combined("2.0"), combined("1.0"));
    println!("mean wait: output queued {output:.3} us, combined with speedup 2 {two:.3} us, with 1 {one:.3} us");
    assert!((two / output - 1.0).abs() < 0.06, "{two} and {output}");
    assert!(one > 1.2 * output, "{one} and {output}");
}

/// Samples of virtual output queues: what waits by input, never more than fits, and every drop once; the summary has the same. A packet
/// of a followed flow spends its time in them at the port that it waits for.
#[test]
fn tables_show_what_waits_at_inputs() {
    let more = "queues = [\"switch0->h2\"]\nhosts = [\"h0-h2-0\"]";
    let text = format!(
        "{}{}{}",
        star(3, "voq = \"50KB\", output = \"20KB\"", ""),
        cbr("h0", "h2", 0, "400KB"),
        cbr("h1", "h2", 0, "400KB")
    );
    let mut world = run_in_steps(&text.replace("sample = \"off\"", &format!("sample = \"20us\"\n{more}")), conserved);
    let dropped = world.totals().dropped;
    let (summary, _) = fanin_sim::finish(&mut world).expect("tables");
    let kept = world.into_kept().expect("tables");
    assert!(dropped > 10 && kept.voqs.len() > 20);
    assert_eq!(kept.voqs.iter().map(|row| u64::from(row.drops)).sum::<u64>(), dropped);
    for row in &kept.voqs {
        let input = row.input.as_ref().expect("a port").to_string();
        assert!(["h0->switch0", "h1->switch0"].contains(&input.as_str()) && row.port.to_string() == "switch0->h2", "{row:?}");
        assert!(row.queue_bytes <= row.queue_max_bytes && row.queue_max_bytes <= 50_000, "{row:?}");
        assert!(u64::from(row.queue_packets) * 1518 >= row.queue_bytes, "{row:?}");
    }
    let peak = |input: &str| {
        let rows = kept.voqs.iter().filter(|row| row.input.as_ref().is_some_and(|name| name.to_string() == input));
        rows.map(|row| row.queue_max_bytes).max()
    };
    let inputs = summary["input_ports"].as_array().expect("inputs");
    for row in &inputs[..2] {
        let input = row["input"].as_str().expect("a name");
        assert_eq!(row["max_bytes"].as_u64(), peak(input), "{input}");
    }
    assert_eq!(inputs.iter().filter_map(|row| row["drops"].as_u64()).sum::<u64>(), dropped);
    // Followed packets: the first crosses at once, and later ones wait for both queues at the port.
    let waits: Vec<u64> =
        kept.hops.iter().filter(|hop| hop.port.to_string() == "switch0->h2").map(|hop| hop.sent_ps - hop.arrived_ps).collect();
    let (crossing, full) = (tx_ps(1518, 20), (50_000 + 20_000 + 50_000) / 1518 * tx_ps(1538, 10));
    assert!(waits[0] == crossing || waits[0] == 2 * crossing || waits[0] == crossing + tx_ps(1538, 10), "{}", waits[0]);
    near("longest wait", *waits.iter().max().expect("packets") as f64, full as f64, 0.05);
    // Records of a watched port are those of its output queue.
    assert!(kept.queues.iter().all(|row| row.queue_bytes <= 20_000 && !row.dropped));
}

proptest! {
    #![proptest_config(config(100))]

    /// What holds of output-queued switches holds of combined ones: at any stop packets sent = delivered + stray + dropped + in flight,
    /// and what reached a switch = what it has sent, holds and has dropped; no queue is above its limit. Tolerance: none.
    #[test]
    fn nothing_is_lost_or_made_up(random in combined(), budgets in prop::collection::vec(1u64..400, 1..40)) {
        prop_assume!(accepted(&random));
        prop_assert_eq!(balanced(&random, &budgets), Pause::Done);
    }

    /// Twice the same is the same, tables and all; neither recording nor the way ports are simulated changes anything. Tolerance: none.
    #[test]
    fn repetition_telemetry_and_ports_change_nothing(random in combined()) {
        prop_assume!(accepted(&random));
        let first = run(&random.with("auto", true));
        prop_assert_eq!(&run(&random.with("explicit", true)), &first);
        prop_assert_eq!(run(&random.with("auto", false)).outcome(), first.outcome());
    }
}

proptest! {
    #![proptest_config(property(60, 20_30))]

    /// With PFC nothing is lost, whatever the traffic, speedup and arbiter, and everything ends.
    #[test]
    fn a_lossless_fabric_never_drops(
        topology in fabric(),
        scheduling in select(vec!["\"fifo\"", "{ kind = \"strict\", classes = 3 }", "{ kind = \"drr\", quanta = [\"1518B\", \"3036B\", \"600B\"] }"]),
        xoff in select(vec!["3KB", "40KB"]),
        speedup in select(vec!["1.0", "2.0"]),
        scheduler in select(vec!["\"islip\"", "{ kind = \"islip\", iterations = 1 }", "\"round_robin\""]),
        output in select(vec!["2KB", "40KB", "100KB"]),
        flows in prop::collection::vec((0..6_u32, 0..6_u32, 0..3_u8, 20..200_u32), 2..7),
    ) {
        let classes = if scheduling.contains("fifo") { 1 } else { 3 };
        let mut text = format!(
            "[topology]\n{topology}\n[switch]\nlatency = \"300ns\"\nscheduling = {scheduling}\n\
             architecture = {{ kind = \"combined\", output = \"{output}\", speedup = {speedup}, scheduler = {scheduler} }}\n\
             mechanisms.pfc = {{ memory = \"3MB\", classes = [0, 1, 2], xoff = {{ kind = \"static\", bytes = \"{xoff}\" }} }}\n[telemetry]\nsample = \"off\"\n"
        );
        for (i, (src, dst, class, kilobytes)) in flows.iter().enumerate() {
            let dst = if src == dst { (dst + 1) % 6 } else { *dst };
            text.push_str(&cbr(&format!("h{src}"), &format!("h{dst}"), class % classes, &format!("{kilobytes}KB")).replace("name = \"", &format!("name = \"{i}-")));
        }
        let world = run_in_steps(&text, lossless);
        prop_assert_eq!(world.counter("pfc", "xoff"), world.counter("pfc", "xon"));
        let kept = world.into_kept().expect("tables");
        prop_assert!(kept.flows.iter().all(|flow| flow.status.to_string() == "complete"));
    }
}
