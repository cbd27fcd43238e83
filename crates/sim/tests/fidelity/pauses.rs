//! Pauses in `fanin explain`: the time that a flow's packets stood paused, exact where a closed form knows it, and beside the rows of
//! `pauses` and `hops` everywhere.

use crate::common::*;
use crate::explain::{config, explained, time};
use crate::pfc::{cbr, fabric, star, switch};
use fanin_analysis::explain::Kind;
use fanin_telemetry::PauseRow;
use proptest::prelude::*;
use proptest::sample::select;

/// The scenario with one datagram of a full frame from one host to another.
fn packet(src: &str, dst: &str, start: u64) -> String {
    let name = format!("{src}-{dst}");
    cbr(src, dst, 0, "1472B")
        .replace("kind = \"cbr\"", &format!("kind = \"cbr\"\nstart = \"{start}ps\""))
        .replace(&format!("{name}-0"), &name)
}

/// Two packets for h2: the second comes 100 ns after the first and waits until that has been sent. It is XOFF and, when it leaves, XON,
/// so h1 is paused for a frame less 100 ns. A packet of h1 for h3, which is idle, is there 50 ns after the pause has begun: it waits for the
/// rest of it and for nothing else.
#[test]
fn a_victim_waits_for_what_is_left_of_the_pause() {
    let (frame, pfc, link, latency) = (tx_ps(1538, 10), tx_ps(84, 10), 1_000_000, 300_000);
    let came = frame + link + latency;
    let [begin, end] = [came + 100_000, came + frame].map(|asked| asked + pfc + link);
    let start = begin + 50_000;
    let pfc = "memory = \"500KB\", classes = [0], xoff = { kind = \"static\", bytes = \"1B\" }, xon_gap = \"1B\"";
    let text = format!(
        "{}hosts = [\"*\"]\n{}{}{}",
        star(4, pfc, ""),
        packet("h0", "h2", 0),
        packet("h1", "h2", 100_000),
        packet("h1", "h3", start)
    );
    let ran = run(&text);
    let rows: Vec<(String, u64, Option<u64>, Option<u64>)> =
        ran.kept.pauses.iter().map(|row| (row.port.to_string(), row.start_ps, row.end_ps, row.asked_ps)).collect();
    assert_eq!(rows, [("h1->switch0".to_string(), begin, Some(end), Some(came + 100_000))]);
    let victim = ran.kept.flows.iter().find(|row| row.dst.to_string() == "h3").expect("the victim");
    let explanation = explained(&ran, victim.flow);
    assert_eq!(time(&explanation, Kind::Pause), end - start);
    assert_eq!(victim.finish_ps, Some(end + 2 * (frame + link) + latency));
    assert_eq!(time(&explanation, Kind::Queue) + time(&explanation, Kind::Nic), 0);
    assert_eq!(explanation.parts[1].place, "h1->switch0");
    // The packet that made the neighbour ask was in the queue, which nobody had paused.
    let second = ran.kept.flows.iter().find(|row| row.src.to_string() == "h1" && row.dst.to_string() == "h2").expect("a flow");
    let explanation = explained(&ran, second.flow);
    assert_eq!((time(&explanation, Kind::Queue), time(&explanation, Kind::Pause)), (frame - 100_000, 0));
}

/// What two stretches have in common.
fn overlap(a: (u64, u64), b: (u64, u64)) -> u64 {
    a.1.min(b.1).saturating_sub(a.0.max(b.0))
}

proptest! {
    #![proptest_config(config(20))]

    /// Whatever the traffic: parts add up, steps called a pause are time in which the port was paused for that class, and no step in a
    /// queue or at a NIC is.
    #[test]
    fn waits_are_pauses_just_where_ports_were_paused(
        topology in fabric(),
        xoff in select(vec!["3KB", "20KB"]),
        classes in select(vec![1_u8, 3]),
        flows in prop::collection::vec((0..6_u32, 0..6_u32, 0..3_u8, 5..80_u32), 3..8),
    ) {
        let pfc = format!("memory = \"3MB\", classes = [0, 1, 2], xoff = {{ kind = \"static\", bytes = \"{xoff}\" }}");
        let scheduling = if classes == 1 { "" } else { "scheduling = { kind = \"strict\", classes = 3 }" };
        let transport = "[transport]\nkind = \"tcp\"\ninitial_window = 40\n";
        let mut text = format!("[topology]\n{topology}\n{}hosts = [\"*\"]\n{transport}", switch(&pfc, scheduling));
        for (i, (src, dst, class, kilobytes)) in flows.iter().enumerate() {
            let dst = if src == dst { (dst + 1) % 6 } else { *dst };
            let flow = format!("{{ src = \"h{src}\", dst = \"h{dst}\", size = \"{kilobytes}KB\" }}");
            text.push_str(&format!("[[traffic]]\nkind = \"flows\"\nname = \"{i}\"\nclass = {}\nflows = [{flow}]\n", class % classes));
        }
        let ran = run(&text);
        prop_assert_eq!(ran.totals.dropped, 0);
        for row in &ran.kept.flows {
            let explanation = explained(&ran, row.flow);
            let packet = |packet| ran.kept.segments.iter().find(|s| Some(s.packet) == packet).expect("a packet");
            for step in &explanation.steps {
                prop_assert!(step.kind != Kind::Unknown, "{step:?}\n{text}");
                let paused = |port: &str| {
                    let of_port = |pause: &&PauseRow| pause.port.to_string() == port && pause.class == row.class;
                    let rows = ran.kept.pauses.iter().filter(of_port);
                    rows.map(|pause| overlap((step.from_ps, step.to_ps), (pause.start_ps, pause.end_ps.unwrap_or(u64::MAX)))).sum::<u64>()
                };
                match step.kind {
                    Kind::Pause => prop_assert_eq!(paused(&step.place), step.to_ps - step.from_ps),
                    Kind::Queue => prop_assert_eq!(paused(&step.place), 0),
                    Kind::Nic => {
                        let nic = ran.kept.hops.iter().find(|hop| hop.packet == packet(step.packet).packet).expect("a hop");
                        prop_assert_eq!(paused(&nic.port.to_string()), 0);
                    }
                    _ => {}
                }
            }
        }
    }
}
