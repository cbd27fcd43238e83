//! Flows by hand.

use super::*;

const SRC: &str = "h0";

/// A packet over two links of 10 ns serialisation and 100 ns propagation: sent at `sent`, and so long in the switch's queue.
#[derive(Clone)]
struct Sent {
    segment: Segment,
    hops: Vec<Hop>,
}

fn sent(packet: u64, host: &str, payload: u16, sent: u64, wait: u64) -> Sent {
    let port = |n: u8| format!("{host}:{n}");
    let hop = |n, arrived_ps, sent_ps| Hop {
        packet,
        port: port(n),
        arrived_ps,
        sent_ps,
        left_ps: sent_ps + 10,
        reached_ps: sent_ps + 110,
        ..Hop::default()
    };
    let hops = vec![hop(0, sent, sent), hop(1, sent + 110, sent + 110 + wait)];
    let received_ps = Some(hops[1].reached_ps);
    let segment = Segment {
        packet,
        host: host.to_string(),
        seq_bytes: 1000 * packet,
        payload_bytes: payload,
        received_ps,
        cause_ps: sent,
        cause: "application".to_string(),
        ..Segment::default()
    };
    Sent { segment, hops }
}

impl Sent {
    fn because(mut self, cause: &str, packet: Option<u64>, limit: &str) -> Self {
        (self.segment.cause, self.segment.cause_packet, self.segment.limit) = (cause.to_string(), packet, limit.to_string());
        self
    }

    fn timer(mut self, name: &str, armed: u64, packet: Option<u64>) -> Self {
        self.segment.cause = name.to_string();
        (self.segment.armed_ps, self.segment.armed_packet) = (Some(armed), packet);
        self
    }

    fn dropped(mut self, at: &str) -> Self {
        let hop = self.hops.pop().unwrap();
        (self.segment.dropped_ps, self.segment.dropped_at) = (Some(hop.arrived_ps), Some(at.to_string()));
        self.segment.received_ps = None;
        self
    }
}

fn explained(sent: &[Sent], finish_ps: Option<u64>) -> Explanation {
    explained_with(sent, finish_ps, &[])
}

fn explained_with(sent: &[Sent], finish_ps: Option<u64>, pauses: &[Pause]) -> Explanation {
    let segments: Vec<Segment> = sent.iter().map(|s| s.segment.clone()).collect();
    let hops: Vec<Hop> = sent.iter().flat_map(|s| s.hops.clone()).collect();
    let explanation = explain(&Records { src: SRC, start_ps: 0, finish_ps, segments: &segments, hops: &hops, pauses });
    let mut at = explanation.start_ps;
    for step in &explanation.steps {
        assert!(step.from_ps == at && step.to_ps > at, "{explanation:?}");
        at = step.to_ps;
    }
    assert_eq!(at, explanation.end_ps);
    explanation
}

fn times(explanation: &Explanation) -> Vec<(Kind, &str, u64, u64)> {
    explanation.parts.iter().map(|p| (p.kind, p.place.as_str(), p.time_ps, p.times)).collect()
}

#[test]
fn one_packet_crosses_the_network() {
    let explanation = explained(&[sent(0, SRC, 1000, 0, 0)], Some(220));
    assert_eq!(times(&explanation), [(Kind::Path, "", 220, 1)]);
}

/// Two packets directly behind each other at the NIC, others' before the second at the switch.
#[test]
fn own_packets_ahead_are_serialisation_and_others_a_queue() {
    let mut second = sent(1, SRC, 1000, 10, 25);
    second.segment.cause_ps = 0;
    let explanation = explained(&[sent(0, SRC, 1000, 0, 5), second], Some(10 + 110 + 25 + 110));
    // At the switch the first was sent from 115 to 125, others' packets until 145; the first had waited 5 for others'.
    let expected = [(Kind::Path, "", 220, 1), (Kind::Queue, "h0:1", 25, 2), (Kind::Serialisation, "", 10, 1)];
    assert_eq!(times(&explanation), expected);
}

/// A packet that waits 25 at the switch, from 110 on: 4 in the queue, then held for 16, of which 6 paused, then 5 in the queue again.
#[test]
fn what_a_mechanism_holds_is_a_part_of_its_own() {
    let mut one = sent(0, SRC, 1000, 0, 25);
    let hop = &mut one.hops[1];
    (hop.held_by, hop.held_from_ps, hop.held_until_ps) = (Some("some".to_string()), Some(114), Some(130));
    let pause = Pause { port: "h0:1".to_string(), start_ps: 110, end_ps: Some(120) };
    let explanation = explained_with(&[one.clone()], Some(245), &[]);
    assert_eq!(times(&explanation), [(Kind::Path, "", 220, 1), (Kind::Held, "h0:1", 16, 1), (Kind::Queue, "h0:1", 9, 2)]);
    assert_eq!(explanation.parts.iter().map(|part| part.by.as_str()).collect::<Vec<_>>(), ["", "some", ""]);
    let explanation = explained_with(&[one], Some(245), &[pause]);
    let paused =
        [(Kind::Path, "", 220, 1), (Kind::Pause, "h0:1", 10, 1), (Kind::Held, "h0:1", 10, 1), (Kind::Queue, "h0:1", 5, 1)];
    assert_eq!(times(&explanation), paused);
}

/// A packet that waits 25 at the switch, from 110 on; a pause covers 10 of them, another begins as it is sent, a third was over before.
#[test]
fn what_is_waited_while_a_port_is_paused_is_a_pause() {
    let pause = |port: &str, start_ps, end_ps| Pause { port: port.to_string(), start_ps, end_ps };
    let pauses =
        [pause("h0:1", 120, Some(130)), pause("h0:1", 135, None), pause("h0:1", 50, Some(110)), pause("h0:0", 0, Some(500))];
    let explanation = explained_with(&[sent(0, SRC, 1000, 0, 25)], Some(245), &pauses);
    assert_eq!(times(&explanation), [(Kind::Path, "", 220, 1), (Kind::Queue, "h0:1", 15, 2), (Kind::Pause, "h0:1", 10, 1)]);
    // At the NIC from 0 to 40, of which the pause takes 30 at the end.
    let mut late = sent(0, SRC, 1000, 40, 0);
    late.segment.cause_ps = 0;
    let explanation = explained_with(&[late], Some(260), &[pause("h0:0", 10, Some(40)), pause("h0:1", 0, Some(150))]);
    assert_eq!(times(&explanation), [(Kind::Path, "", 220, 1), (Kind::Pause, "h0:0", 30, 1), (Kind::Nic, "h0", 10, 1)]);
}

/// One packet in each round trip: the window is one segment.
#[test]
fn a_window_costs_round_trips() {
    let data = |packet, at| sent(packet, SRC, 1000, at, 0);
    let ack = |packet, at, of| sent(packet, "h1", 0, at, 0).because("packet", Some(of), "");
    let flow = [
        data(0, 0),
        ack(1, 220, 0),
        data(2, 440).because("packet", Some(1), "cwnd"),
        ack(3, 700, 2).timer("delayed_ack", 660, Some(2)),
        data(4, 920).because("packet", Some(3), "receive_window"),
    ];
    let explanation = explained(&flow, Some(1140));
    let expected = [
        (Kind::ReceiveWindow, "", 440, 1),
        (Kind::CongestionWindow, "", 440, 1),
        (Kind::Path, "", 220, 1),
        (Kind::DelayedAck, "", 40, 1),
    ];
    let mut found = times(&explanation);
    found.sort_by_key(|(kind, ..)| expected.iter().position(|e| e.0 == *kind));
    assert_eq!(found, expected);
}

/// The rate limiter's timer is set anew by its control while it runs, by no packet: it has run since the packet before.
#[test]
fn a_rate_that_changes_meanwhile_is_pacing_all_along() {
    let flow = [
        sent(0, SRC, 1000, 0, 0),
        sent(1, SRC, 1000, 500, 0).timer("pacing", 0, Some(0)),
        sent(2, SRC, 1000, 1500, 0).timer("pacing", 1200, None),
    ];
    let explanation = explained(&flow, Some(1720));
    assert_eq!(times(&explanation), [(Kind::Pacing, "", 1500, 2), (Kind::Path, "", 220, 1)]);
    // Without a packet before, nothing is known of it.
    let alone = sent(0, SRC, 1000, 500, 0).timer("pacing", 100, None);
    assert_eq!(
        times(&explained(&[alone], Some(720))),
        [(Kind::Pacing, "", 400, 1), (Kind::Path, "", 220, 1), (Kind::Unknown, "", 100, 1)]
    );
}

/// The last packet is lost; the timer runs since the ACK of the one before.
#[test]
fn a_lost_tail_waits_for_the_timer() {
    let mut lost = sent(1, SRC, 1000, 10, 0);
    lost.segment.cause_ps = 0;
    let mut again = sent(3, SRC, 1000, 200_440, 0).timer("rto", 440, Some(2));
    again.segment.seq_bytes = 1000;
    let flow = [sent(0, SRC, 1000, 0, 0), lost.dropped("s0->h1"), sent(2, "h1", 0, 220, 0).because("packet", Some(0), ""), again];
    let explanation = explained(&flow, Some(200_660));
    let expected = [(Kind::Rto, "", 200_000, 1), (Kind::Recovery, "", 440, 1), (Kind::Path, "", 220, 1)];
    assert_eq!(times(&explanation), expected);
    let waited = &explanation.waited[0];
    assert_eq!((waited.dropped_at.as_deref(), waited.dropped_ps), (Some("s0->h1"), Some(120)));
    assert_eq!((waited.from_ps, waited.to_ps, waited.seq_bytes, waited.lost_packets), (440, 200_440, 1000, 1));
}

/// A switch reports a drop.
#[test]
fn a_notification_leads_back_to_the_dropped_packet() {
    let lost = sent(0, SRC, 1000, 0, 0).dropped("s0->h1");
    let mut again = sent(1, SRC, 1000, 250, 0).because("notification", Some(0), "recovery");
    again.segment.seq_bytes = 0;
    let explanation = explained(&[lost, again], Some(470));
    let expected = [(Kind::Path, "", 220, 1), (Kind::Notification, "", 140, 1), (Kind::Recovery, "", 110, 1)];
    assert_eq!(times(&explanation), expected);
}

/// Nothing hangs, panics or is lost where records are missing or contradict one another.
#[test]
fn what_records_do_not_say_is_unknown() {
    assert_eq!(times(&explained(&[], Some(7))), [(Kind::Unknown, "", 7, 1)]);
    assert!(explained(&[], None).parts.is_empty());
    let from_nowhere = sent(0, SRC, 1000, 500, 0).because("packet", Some(9), "cwnd");
    assert_eq!(times(&explained(&[from_nowhere], Some(720))), [(Kind::Unknown, "", 500, 1), (Kind::Path, "", 220, 1)]);
    let circle = sent(0, SRC, 1000, 500, 0).because("packet", Some(0), "cwnd");
    assert_eq!(explained(&[circle], Some(720)).end_ps, 720);
}

#[test]
fn a_flow_that_was_not_completed_is_explained_up_to_its_last_arrival() {
    let explanation = explained(&[sent(0, SRC, 1000, 0, 0), sent(1, SRC, 1000, 300, 0).dropped("s0->h1")], None);
    assert_eq!((explanation.end_ps, times(&explanation)), (220, vec![(Kind::Path, "", 220, 1)]));
}
