//! Vertigo in a network: what hosts write is on the wire, queues serve the flow with least left, and the packet with most left is deflected.

use crate::common::*;
use crate::rivals::{counts, fabric, most_links};
use fanin_sim::{Kept, World};
use fanin_wire::Capture;
use std::collections::BTreeMap;

/// Frame bytes of the header of hosts.
const HEADER: u64 = 8;
const IN_ORDER: &str = "[host]\nreorder = { timeout = \"1ms\" }";

struct Outcome {
    counts: BTreeMap<&'static str, u64>,
    kept: Kept,
}

impl Outcome {
    fn lost(&self, reasons: &[&str]) -> u64 {
        self.kept.drops.iter().filter(|drop| reasons.contains(&drop.reason.to_string().as_str())).count() as u64
    }

    fn sum(&self, of: fn(&fanin_telemetry::FlowRow) -> u64) -> u64 {
        self.kept.flows.iter().map(of).sum()
    }

    fn complete(&self) -> bool {
        self.kept.flows.iter().all(|flow| flow.status.to_string() == "complete")
    }
}

/// What must hold at any time: all packets, and those that found no room.
fn balance(world: &mut World) {
    conserved(world);
    let c = counts(world, "vertigo");
    assert!(c["displaced"] <= c["deflected"] + c["dropped"], "{c:?}");
}

fn play(text: &str) -> Outcome {
    let world = run_in_steps(text, balance);
    Outcome { counts: counts(&world, "vertigo"), kept: world.into_kept().expect("tables") }
}

fn vertigo(keys: &str) -> String {
    format!("mechanisms.vertigo = {{ {keys} }}")
}

/// What the port alone drops waits elsewhere: nothing is lost, and hosts that put packets in order see no disorder. As the queue turns flows
/// around, a transport without that buffer sends again what is not lost.
#[test]
fn a_burst_is_deflected_and_put_in_order() {
    let basic = play_basic(&fabric("", "", ""));
    assert!(basic > 20, "{basic}");
    let ran = play(&fabric(&vertigo(""), "", IN_ORDER));
    println!("{:?}, reordered {}, retransmitted {}", ran.counts, ran.sum(|f| f.reordered), ran.sum(|f| f.retransmits));
    assert_eq!((ran.kept.drops.len(), ran.sum(|f| f.retransmits), ran.complete()), (0, 0, true));
    assert!(ran.counts["deflected"] > 20 && ran.sum(|f| f.reordered) > 10);
    let disorder = play(&fabric(&vertigo(""), "", ""));
    assert!(disorder.sum(|f| f.retransmits) > 0 && disorder.complete());
    // The header alone, in a queue that serves as packets came, deflects as well.
    let arrival = play(&fabric(&vertigo("serve = \"arrival\""), "", IN_ORDER));
    assert!(arrival.complete() && arrival.counts["deflected"] > 20 && arrival.counts["displaced"] > 0, "{:?}", arrival.counts);
}

fn play_basic(text: &str) -> usize {
    run_in_steps(text, conserved).into_kept().expect("tables").drops.len()
}

/// A short flow that meets long ones at a full port: its packets displace theirs and are served first, so that it ends as on an idle network
/// but for the frame on the wire at each hop. Without Vertigo it waits for the queue, or loses packets.
#[test]
fn the_flow_with_least_left_is_served_first() {
    let short = |switch: &str, host: &str| {
        let more = format!(
            "[[traffic]]\nname = \"short\"\nkind = \"flows\"\nflows = [{{ src = \"h8\", dst = \"h11\", size = \"10KB\", start = \"300us\" }}]\n{host}"
        );
        let kept = run(&fabric(switch, "", &more).replace("20KB", "2MB")).kept;
        let row = kept.flows.iter().find(|flow| flow.group.to_string() == "short").expect("the short flow");
        let fct = row.finish_ps.expect("complete") - row.start_ps;
        fct as f64 / row.ideal_ps as f64
    };
    let (plain, first) = (short("", ""), short(&vertigo(""), IN_ORDER));
    println!("slowdown of a short flow: {plain:.2} without, {first:.2} with Vertigo");
    assert!(first < 1.5 && plain > 3.0, "{first} {plain}");
}

/// Ports of few packets: every packet that is lost was counted, no packet is deflected with `choices` = 0, and none crosses more switches than
/// it may.
#[test]
fn what_finds_no_room_is_counted_and_hops_are_bounded() {
    for (ttl, room, keys) in [(5, 12, ""), (64, 3, ""), (64, 12, "choices = 0"), (20, 3, "serve = \"arrival\", boost = 1")] {
        let switch = format!("ttl = {ttl}\n{}", vertigo(keys));
        let ran = play(&fabric(&switch, "", IN_ORDER).replace("60 packets", &format!("{room} packets")));
        println!("ttl {ttl}, {room} packets, {keys}: {:?}, {} drops", ran.counts, ran.kept.drops.len());
        let c = &ran.counts;
        assert_eq!(ran.lost(&["buffer_full", "displaced"]), c["dropped"], "{c:?}");
        assert_eq!(ran.lost(&["ttl"]), c["out_of_hops"], "{c:?}");
        assert_eq!(ran.kept.drops.len() as u64, c["dropped"] + c["out_of_hops"]);
        assert!(most_links(&ran.kept) <= ttl, "{}", most_links(&ran.kept));
        assert_eq!(c["deflected"] == 0, keys == "choices = 0", "{c:?}");
        assert!(c["dropped"] > 0 || c["out_of_hops"] > 0);
        assert!(room != 3 || c["forced"] > 0, "deflected packets take the room of others: {c:?}");
    }
}

/// Each frame of each link is longer by the header, and its bytes say what is left of the flow, and how often the packet was sent before.
#[test]
fn headers_are_on_every_wire() {
    // Two ports of the fabric are lossy, so that something is sent again.
    let text = fabric(&vertigo("choices = 0"), "", IN_ORDER).replace("60 packets", "20 packets");
    let text = text
        .replace("sample = \"off\"", "sample = \"off\"\ncapture = { hosts = [\"h0\", \"h11\"], links = [\"leaf0->spine*\"] }");
    let world = run_in_steps(&text, balance);
    let kept = world.into_kept().expect("tables");
    let longest = |to: &str| {
        let there = kept.hops.iter().filter(|hop| hop.port.to_string().contains(to));
        there.map(|hop| hop.left_ps - hop.sent_ps).max().expect("hops")
    };
    let [first, between, last] = [longest("h0->leaf0"), longest("->spine"), longest("->h11")];
    assert_eq!([first, between, last], [10, 40, 10].map(|gbps| tx_ps(WIRE + HEADER, gbps)));

    let mut capture = Capture::new(&kept.packets[..]).expect("a capture");
    // By capture point and port: by sequence number, bytes left and times sent before of each copy.
    type Sent = BTreeMap<u32, Vec<(u32, u8)>>;
    let mut places: BTreeMap<(usize, u16), Sent> = BTreeMap::new();
    let (mut acks, mut again) = (0, 0);
    while let Some(frame) = capture.next_frame().expect("a frame") {
        assert_eq!(frame.data[12..14], [0xA8, 0xF8]);
        let left = u32::from_be_bytes(*frame.data[14..].first_chunk().expect("four bytes"));
        let headers = frame.headers().expect("IP behind the header");
        let payload = frame.data.len() - headers.payload_at;
        let tcp = &frame.data[22 + 20..];
        let seq = u32::from_be_bytes(*tcp[4..].first_chunk().expect("four bytes"));
        if left == 0 {
            acks += 1;
            assert!(payload < 46, "{payload}"); // padding
            continue;
        }
        again += u32::from(frame.data[18] > 0);
        let (port, _) = headers.ports.expect("ports");
        places.entry((frame.interface, port)).or_default().entry(seq).or_default().push((left, frame.data[18]));
    }
    assert!(acks > 20 && again > 5, "{acks} {again}");
    for flow in places.values() {
        let (first, sent) = flow.first_key_value().expect("a packet");
        let total = sent[0].0 + first;
        assert!(flow.iter().all(|(seq, sent)| sent.iter().all(|(left, _)| left + seq == total)), "{flow:?}");
        assert!(flow.len() < 2 || flow.values().any(|sent| sent[0].1 == 0));
    }
    let sender = capture.interfaces().iter().position(|i| i.name == "h0").expect("h0");
    let counted = places.iter().filter(|((interface, _), _)| *interface == sender).flat_map(|(_, flow)| flow.values());
    for sent in counted {
        assert!(sent.iter().map(|(_, again)| *again).eq((0..).take(sent.len())), "counts up: {sent:?}");
    }
}

/// Retransmissions are boosted: with `boost` = 256 what is sent again is never displaced by new packets of flows of the same size.
#[test]
fn boosts_let_retransmissions_pass() {
    let timeouts = |boost: u32| {
        let text = fabric(&vertigo(&format!("choices = 0, boost = {boost}")), "", IN_ORDER).replace("60 packets", "6 packets");
        let text = text.replace("20KB", "60KB");
        play(&text).sum(|f| f.retransmits)
    };
    let (without, with) = (timeouts(1), timeouts(256));
    println!("retransmissions: {without} without a boost, {with} with 256");
    assert!(with < without, "{with} {without}");
}
