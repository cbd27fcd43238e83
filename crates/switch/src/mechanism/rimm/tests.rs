use super::super::testing::{bench, site, Bench};
use super::super::{Frames, Hosts, Network, PortSite, Traffic};
use super::*;
use fanin_packet::Envelope;
use fanin_params::{Node as Doc, Param, Severity, Value};
use fanin_units::{Amount, Bytes, HostId};

const SWITCHES: [PortNo; 3] = [PortNo(0), PortNo(1), PortNo(2)];
const HOST: PortNo = PortNo(3);

fn params(set: &[(&str, Value)]) -> RimmParams {
    let mut cx = Cx::new();
    let table = Value::Table(set.iter().map(|(key, value)| (key.to_string(), value.clone().into())).collect());
    let params = RimmParams::parse(&Doc::from(table), &mut cx).expect("parameters");
    assert!(cx.into_problems().iter().all(|problem| problem.severity != Severity::Error));
    params
}

fn text(text: &str) -> Value {
    Value::Text(text.to_string())
}

/// Three neighbours with RIMM and a host.
fn rimm(set: &[(&str, Value)]) -> Rimm {
    let mut site = site(&["s1", "s2", "s3", "h0"]);
    site.ports.iter_mut().filter(|port| !port.to_host).for_each(|port: &mut PortSite| port.peer_runs = vec!["rimm"]);
    Rimm::new(&params(set), &site).expect("it runs")
}

/// Where a packet was sent on, and with which header.
#[derive(Debug, PartialEq)]
struct Went {
    verdict: Verdict,
    shim: Option<(u16, Vec<u8>)>,
    frame: u16,
    ttl: u8,
}

/// A switch and the packets that come to it.
struct Switch {
    rimm: Rimm,
    node: Bench,
}

impl Switch {
    fn new(set: &[(&str, Value)]) -> Self {
        Switch { rimm: rimm(set), node: bench(4) }
    }

    /// A packet of 1000 B with this hash for a port; it is as it is sent on.
    fn packet(&mut self, id: u32, hash: u32, from: PortNo, to: PortNo, shim: Option<Shim>) -> Went {
        let mut envelope = Envelope { frame: 1000, hash, ttl: 60, dst: HostId(u32::from(to.0)), ..Envelope::default() };
        envelope.set_shim(shim.as_ref());
        self.envelope(id, envelope, from, to, shim)
    }

    fn envelope(&mut self, id: u32, mut envelope: Envelope, from: PortNo, to: PortNo, mut shim: Option<Shim>) -> Went {
        let mut fx = Effects::default();
        let mut p = Arrival { id: PacketId(id), envelope: &mut envelope, from: Some(from), shim: &mut shim };
        let verdict = self.rimm.on_route(&mut self.node, &mut p, to, &mut fx);
        let port = if let Verdict::Detour(port) = verdict { port } else { to };
        if verdict != Verdict::Take {
            self.rimm.on_offer(&mut self.node, &mut p, port, &mut fx);
        }
        let shim = shim.map(|shim| (shim.ether_type, shim.body().to_vec()));
        Went { verdict, shim, frame: envelope.frame, ttl: envelope.ttl }
    }

    /// A neighbour states a depth.
    fn hear(&mut self, from: PortNo, depth: u16) {
        let shim = Shim::new(DEPTH, &depth.to_be_bytes(), 80);
        self.packet(99, 1, from, HOST, Some(shim));
    }

    /// A message about a port is back.
    fn message(&mut self, port: PortNo, crossing: u16, depth: u32) -> Verdict {
        let body = [&[0, 5][..], &port.0.to_be_bytes(), &crossing.to_be_bytes(), &depth.to_be_bytes()].concat();
        let shim = Shim::new(ANSWER, &body, 80);
        self.packet(98, 1, SWITCHES[0], HOST, Some(shim)).verdict
    }

    fn wait(&mut self, ns: u64) {
        self.node.now += Span::from_ns(ns);
    }
}

fn numbered(kind: u16, number: u32) -> Option<(u16, Vec<u8>)> {
    Some((kind, [&[0, 0][..], &number.to_be_bytes()].concat()))
}

fn returned(number: u32) -> Option<Shim> {
    Some(Shim::new(RETURN, &[&[0, 0][..], &number.to_be_bytes()].concat(), 80))
}

/// One flow through an alert: numbered and sent around, again while it lasts, then released in turn without header to the host.
#[test]
fn a_flow_goes_around_and_on_in_order() {
    let mut s = Switch::new(&[]);
    s.hear(SWITCHES[0], 5);
    s.hear(SWITCHES[1], 3);
    let before = s.packet(1, 7, SWITCHES[2], HOST, None);
    assert_eq!(before, Went { verdict: Verdict::Pass, shim: None, frame: 1000, ttl: 60 });
    assert!(s.rimm.pairs.is_empty(), "no memory of flows without an alert");
    assert_eq!(s.message(HOST, 1, 20_000), Verdict::Take);
    for number in 0..3 {
        let went = s.packet(10 + number, 7, SWITCHES[2], HOST, None);
        let expected = Went { verdict: Verdict::Detour(SWITCHES[1]), shim: numbered(DETOUR, number), frame: 1008, ttl: 60 };
        assert_eq!(went, expected);
    }
    let again = s.packet(10, 7, SWITCHES[1], HOST, returned(0));
    assert_eq!((again.verdict, again.shim, again.frame), (Verdict::Detour(SWITCHES[1]), numbered(DETOUR, 0), 1008));
    s.message(HOST, 2, 19_999);
    s.wait(700);
    let early = s.packet(11, 7, SWITCHES[1], HOST, returned(1));
    assert_eq!((early.verdict, early.shim), (Verdict::Detour(SWITCHES[1]), numbered(DETOUR, 1)));
    let new = s.packet(13, 7, SWITCHES[2], HOST, None);
    assert_eq!(new.shim, numbered(DETOUR, 3), "behind the others");
    let other = s.packet(14, 1 << 31, SWITCHES[2], HOST, None);
    assert_eq!(other.verdict, Verdict::Pass, "a flow without a detour");
    for number in 0..4 {
        let went = s.packet(10 + number, 7, SWITCHES[1], HOST, returned(number));
        assert_eq!(went, Went { verdict: Verdict::Pass, shim: None, frame: 1000, ttl: 60 });
    }
    assert_eq!(s.packet(15, 7, SWITCHES[2], HOST, None).verdict, Verdict::Pass);
    let c = s.rimm.counts;
    assert_eq!((c.detoured, c.redetoured, c.released, c.alerts, c.messages_returned), (4, 2, 4, 1, 2));
    assert_eq!(s.rimm.peaks()[..4], [700_000, 0, 2, 4]);
}

/// The choice follows the depths, packet by packet; never the port itself, one in alert, or one without room.
#[test]
fn the_neighbour_with_the_least_depth_gets_the_detour() {
    let mut s = Switch::new(&[("room", text("8000B"))]);
    s.message(HOST, 1, 30_000);
    // A message says a depth too: that of its sender.
    assert_eq!(s.packet(1, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(SWITCHES[0]));
    let went = |s: &mut Switch, depths: [u16; 3]| {
        SWITCHES.into_iter().zip(depths).for_each(|(port, depth)| {
            let shim = Shim::new(DEPTH, &depth.to_be_bytes(), 80);
            s.packet(99, u32::MAX, port, SWITCHES[2], Some(shim));
        });
        s.packet(1, 7, HOST, HOST, None).verdict
    };
    assert_eq!(went(&mut s, [9, 8, 7]), Verdict::Detour(SWITCHES[2]));
    assert_eq!(went(&mut s, [9, 9, 9]), Verdict::Detour(SWITCHES[0]));
    assert_eq!(went(&mut s, [100, 99, 100]), Verdict::Detour(SWITCHES[1]));
    s.message(SWITCHES[1], 1, 20_000);
    assert_eq!(went(&mut s, [99, 0, 100]), Verdict::Detour(SWITCHES[0]));
    assert_eq!(went(&mut s, [100, 0, 100]), Verdict::Pass, "no room");
    assert_eq!((s.rimm.counts.stayed, s.rimm.by_reason()), (1, vec![("no_neighbour", 1)]));
    s.message(HOST, 2, 0);
}

/// A neighbour behind a dead link gets no detours until it is heard again, and the alert of the port is over; a link that works again is no news.
#[test]
fn a_dead_link_leads_to_no_neighbour() {
    let mut s = Switch::new(&[]);
    s.message(HOST, 1, 30_000);
    assert_eq!(s.packet(1, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(SWITCHES[0]));
    let link = |s: &mut Switch, port, up| s.rimm.on_link(&mut s.node, port, up, &mut Effects::default());
    link(&mut s, SWITCHES[0], true);
    assert_eq!(s.packet(2, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(SWITCHES[0]));
    link(&mut s, SWITCHES[0], false);
    let others = s.rimm.qdm.iter().flatten().count();
    assert_ne!(s.packet(3, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(SWITCHES[0]));
    s.hear(SWITCHES[0], 0);
    assert_eq!(s.rimm.qdm.iter().flatten().count(), others + 1);
    link(&mut s, HOST, false);
    assert!(!s.rimm.ports[HOST.index()].alert.is_on());
}

#[test]
fn without_a_neighbour_that_was_heard_packets_stay() {
    let mut s = Switch::new(&[("alert", text("at_once")), ("alpha", text("1 packets"))]);
    s.node.free_at = Time::MAX;
    assert!(s.rimm.alpha == 1 && s.packet(1, 7, SWITCHES[2], HOST, None).verdict == Verdict::Pass);
    assert_eq!(s.rimm.counts.alerts, 0, "the queue of the bench is empty");
    let mut s = Switch::new(&[]);
    s.rimm.ports[HOST.index()].alert.set(20_000, 20_000, 0);
    let went = s.packet(1, 7, SWITCHES[2], HOST, None);
    assert_eq!((went.verdict, went.shim, s.rimm.counts.stayed), (Verdict::Pass, None, 1));
}

/// A packet with fewer than eight hops left, or too long for two more headers, takes no detour; one that is back then goes on.
#[test]
fn hops_and_frames_bound_detours() {
    let mut s = Switch::new(&[("max_frame", text("1100B"))]);
    s.hear(SWITCHES[0], 0);
    s.message(HOST, 1, 20_000);
    let mut went = |ttl, frame| {
        let envelope = Envelope { frame, hash: 7, ttl, ..Envelope::default() };
        s.envelope(1, envelope, SWITCHES[1], HOST, None).verdict
    };
    assert_eq!([went(7, 500), went(8, 1093)], [Verdict::Pass; 2]);
    assert_eq!(went(8, 1092), Verdict::Detour(SWITCHES[0]));
    let mut envelope = Envelope { frame: 500, hash: 7, ttl: 7, ..Envelope::default() };
    envelope.set_shim(returned(0).as_ref());
    let back = s.envelope(1, envelope, SWITCHES[0], HOST, returned(0));
    assert_eq!(back, Went { verdict: Verdict::Pass, shim: None, frame: 500, ttl: 7 });
    assert_eq!((s.rimm.counts.let_go, s.rimm.by_reason()), (1, vec![("out_of_hops", 2), ("too_long", 1)]));
    // A frame that has no room for a depth goes without.
    let envelope = Envelope { frame: 1097, ..Envelope::default() };
    assert_eq!(s.envelope(2, envelope, HOST, SWITCHES[0], None).shim, None);
    let mut s = Switch::new(&[("hops", text("restored"))]);
    s.hear(SWITCHES[0], 0);
    s.message(HOST, 1, 20_000);
    s.packet(1, 7, SWITCHES[1], HOST, None);
    let mut envelope = Envelope { frame: 500, hash: 7, ttl: 58, ..Envelope::default() };
    envelope.set_shim(returned(0).as_ref());
    assert_eq!(s.envelope(1, envelope, SWITCHES[0], HOST, returned(0)).ttl, 60);
}

/// A neighbour sends numbers and messages back over the port that they came by, and takes them off where its way is another.
#[test]
fn a_neighbour_returns_what_leads_back() {
    let mut s = Switch::new(&[]);
    s.rimm.ports[SWITCHES[0].index()].alert.set(20_000, 20_000, 0);
    s.hear(SWITCHES[2], 0);
    let out = Some(Shim::new(DETOUR, &[0, 9, 0, 0, 0, 5], 80));
    let back = s.packet(1, 7, SWITCHES[0], SWITCHES[0], out);
    assert_eq!((back.verdict, back.shim, back.frame), (Verdict::Pass, numbered(RETURN, 5), 1008));
    assert_eq!(s.rimm.qdm[0], Some(9));
    let astray = s.packet(1, 7, SWITCHES[0], SWITCHES[1], out);
    assert_eq!((astray.verdict, astray.shim, astray.frame), (Verdict::Pass, Some((DEPTH, vec![0, 0])), 1004));
    assert_eq!(s.packet(1, 7, SWITCHES[0], HOST, out).shim, None);
    assert_eq!((s.rimm.counts.astray, s.rimm.counts.detoured), (2, 0));
    let shim = Shim::new(MESSAGE, &[0, 9, 0, 3, 0, 1, 0, 0, 0x4E, 0x20], 80);
    let message = Some(shim);
    let back = s.packet(1, 7, SWITCHES[0], SWITCHES[0], message);
    assert_eq!(back.shim, Some((ANSWER, vec![0, 0, 0, 3, 0, 1, 0, 0, 0x4E, 0x20])));
    let lost = s.packet(1, 7, SWITCHES[0], SWITCHES[1], message);
    assert_eq!(lost.verdict, Verdict::Drop(DropReason::NO_WAY_BACK));
    s.rimm.on_lost(&shim, DropReason::NO_WAY_BACK);
    assert_eq!(s.rimm.counts.messages_lost, 1);
}

/// A lost packet is a hole: nothing behind it is released until the pair is given up; what comes back then is late.
#[test]
fn a_hole_holds_the_flow_until_it_is_given_up() {
    let mut s = Switch::new(&[]);
    s.hear(SWITCHES[0], 0);
    s.message(HOST, 1, 20_000);
    s.packet(1, 7, SWITCHES[2], HOST, None);
    s.packet(2, 7, SWITCHES[2], HOST, None);
    s.message(HOST, 2, 0);
    s.wait(999_999);
    assert!(matches!(s.packet(2, 7, SWITCHES[0], HOST, returned(1)).verdict, Verdict::Detour(_)));
    assert!(matches!(s.packet(3, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(_)), "new ones stay behind");
    s.wait(1);
    s.message(HOST, 3, 20_000);
    let late = s.packet(2, 7, SWITCHES[0], HOST, returned(1)).verdict;
    assert!(matches!(late, Verdict::Detour(_)), "late, but not while the queue is above alpha");
    s.message(HOST, 4, 0);
    assert_eq!(s.packet(2, 7, SWITCHES[0], HOST, returned(1)).verdict, Verdict::Pass);
    assert_eq!(s.packet(4, 7, SWITCHES[2], HOST, None).verdict, Verdict::Pass);
    assert_eq!(s.packet(3, 7, SWITCHES[0], HOST, returned(2)).verdict, Verdict::Pass);
    let c = s.rimm.counts;
    assert_eq!((c.given_up, c.late, c.released, c.outlived, c.overlong), (1, 2, 0, 0, 0));
}

/// Releases go on and new packets join behind, long after the alert: the detour ends all the same. With `longest` so does one whose
/// alerts go on; new packets then meet the queue, and what is out comes back to it.
#[test]
fn a_detour_that_outlives_its_alert_ends() {
    let mut s = Switch::new(&[]);
    s.hear(SWITCHES[0], 0);
    s.message(HOST, 1, 20_000);
    (0..4).for_each(|id| drop(s.packet(id, 7, SWITCHES[2], HOST, None)));
    s.message(HOST, 2, 19_999);
    s.wait(2_000_000);
    assert_eq!(s.packet(9, 7, SWITCHES[0], HOST, returned(9)).verdict, Verdict::Pass, "late: it has stalled, and nothing else");
    assert_eq!((s.rimm.counts.given_up, s.rimm.counts.outlived), (1, 0));
    let mut s = Switch::new(&[]);
    s.hear(SWITCHES[0], 0);
    s.message(HOST, 1, 20_000);
    (0..4).for_each(|id| drop(s.packet(id, 7, SWITCHES[2], HOST, None)));
    s.message(HOST, 2, 19_999);
    for number in 0..30 {
        s.wait(100_000);
        let (back, new) = (number, number + 4);
        assert_eq!(s.packet(back, 7, SWITCHES[0], HOST, returned(back)).verdict, Verdict::Pass);
        assert!(matches!(s.packet(new, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(_)), "the port is busy");
    }
    s.message(HOST, 3, 0);
    for number in 30..39 {
        s.wait(100_000);
        assert_eq!(s.packet(number, 7, SWITCHES[0], HOST, returned(number)).verdict, Verdict::Pass);
        assert!(matches!(s.packet(number + 4, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(_)));
    }
    s.wait(100_000);
    assert_eq!(s.packet(20, 7, SWITCHES[2], HOST, None).verdict, Verdict::Pass);
    assert_eq!(
        s.packet(11, 7, SWITCHES[0], HOST, returned(11)),
        Went { verdict: Verdict::Pass, shim: None, frame: 1000, ttl: 60 }
    );
    let c = s.rimm.counts;
    assert_eq!((c.released, c.late, c.given_up, c.outlived, c.overlong), (39, 1, 1, 1, 0));
    assert_eq!(s.rimm.peaks()[1], 1_000_000_000);

    let mut s = Switch::new(&[("longest", text("2ms"))]);
    s.hear(SWITCHES[0], 0);
    for i in 0..10 {
        s.message(HOST, 2 * i + 1, 20_000);
        assert!(matches!(s.packet(0, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(_)));
        s.message(HOST, 2 * i + 2, 0);
        s.packet(0, 7, SWITCHES[0], HOST, returned(u32::from(i)));
        s.packet(1, 7, SWITCHES[2], HOST, None);
        s.wait(200_000);
    }
    assert_eq!(s.rimm.counts.given_up, 0, "Sa = Sf between alerts");
    let mut s = Switch::new(&[("longest", text("2ms"))]);
    s.hear(SWITCHES[0], 0);
    for i in 0..11 {
        s.message(HOST, 2 * i + 1, 20_000);
        s.packet(u32::from(i), 7, SWITCHES[2], HOST, None);
        if i > 0 && i < 10 {
            s.message(HOST, 2 * i + 2, 0);
            s.packet(u32::from(i), 7, SWITCHES[0], HOST, returned(u32::from(i) - 1));
        }
        s.wait(200_000);
    }
    let c = s.rimm.counts;
    assert_eq!((c.detoured, c.released, c.given_up, c.overlong), (10, 9, 1, 1));
    assert_eq!(s.packet(1, 7, SWITCHES[0], HOST, returned(9)).verdict, Verdict::Pass, "released, whatever the alert");
}

/// Neighbours that give a packet back follow from the routes: a port of which none does has no detours, and no messages.
#[test]
fn detours_keep_to_neighbours_that_send_back() {
    let play = |detours: &str| {
        let mut site = site(&["s1", "s2", "s3", "h0"]);
        site.ports.iter_mut().filter(|port| !port.to_host).for_each(|port| port.peer_runs = vec!["rimm"]);
        site.ports[0].back = vec![];
        site.ports[3].back = vec![SWITCHES[1]];
        let rimm = Rimm::new(&params(&[("alpha", text("1000B")), ("detours", text(detours))]), &site).expect("it runs");
        let mut s = Switch { rimm, node: bench(4) };
        (0..3).for_each(|i| s.hear(SWITCHES[i], [5, 9, 2][i]));
        [HOST, SWITCHES[0]].map(|port| {
            let mut fx = Effects::default();
            s.rimm.on_egress(&mut At(bench(4), 2_000), PacketId(5), port, &mut fx);
            let told = fx.list.first().map(|(_, effect)| if let Effect::Clone { port, .. } = effect { *port } else { port });
            s.message(port, 1, 30_000);
            (told, s.packet(1, 7, SWITCHES[2], port, None).verdict)
        })
    };
    assert_eq!(play("returning"), [(Some(SWITCHES[1]), Verdict::Detour(SWITCHES[1])), (None, Verdict::Pass)]);
    assert_eq!(play("all")[0], (Some(SWITCHES[2]), Verdict::Detour(SWITCHES[2])));
    assert_eq!(play("all")[1], (Some(SWITCHES[2]), Verdict::Detour(SWITCHES[2])));
}

/// A port of which no neighbour gives a packet back is in no alert, also where the queue itself is looked at: none is counted.
#[test]
fn a_port_without_detours_has_no_alerts() {
    let mut site = site(&["s1", "s2", "s3", "h0"]);
    site.ports.iter_mut().filter(|port| !port.to_host).for_each(|port| port.peer_runs = vec!["rimm"]);
    site.ports.iter_mut().for_each(|port| port.back = vec![]);
    site.ports[3].back = vec![SWITCHES[1]];
    let set = [("alpha", text("1000B")), ("detours", text("returning")), ("alert", text("at_once"))];
    let mut rimm = Rimm::new(&params(&set), &site).expect("it runs");
    assert_eq!([0, 1, 2, 3].map(|port| rimm.has_detours(PortNo(port))), [false, false, false, true]);
    let mut long = At(bench(4), 2_000);
    assert_eq!(rimm.alert(&mut long, SWITCHES[0]), ((false, false), false));
    assert_eq!((rimm.counts.alerts, rimm.ports[0].alert.is_on()), (0, false));
    assert_eq!(rimm.alert(&mut long, HOST), ((true, true), false));
    assert_eq!((rimm.counts.alerts, rimm.ports[3].alert.is_on()), (1, true));
}

/// The "below" of crossing 2 was lost: without its number the ingress would take the next burst for the same alert, which has lasted too
/// long.
#[test]
fn a_lost_message_does_not_cost_the_next_burst_its_detours() {
    let mut s = Switch::new(&[]);
    s.hear(SWITCHES[0], 0);
    s.message(HOST, 1, 20_000);
    s.wait(5_000_000);
    assert_eq!(s.packet(1, 7, SWITCHES[2], HOST, None).verdict, Verdict::Pass);
    s.message(HOST, 3, 20_000);
    assert!(matches!(s.packet(1, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(_)));
    s.message(HOST, 3, 20_000);
    s.message(HOST, 2, 0);
    let c = s.rimm.counts;
    assert_eq!((c.alerts, c.messages_returned, c.messages_repeated, c.messages_missed, c.messages_overtaken), (2, 2, 1, 1, 1));
}

/// Releases and alerts 900 us apart: none of the waits lasts for 1 ms, but packets are out for longer.
#[test]
fn a_pair_that_moves_is_not_given_up_unless_being_out_counts() {
    let play = |when: &str| {
        let mut s = Switch::new(&[("give_up_when", text(when))]);
        s.hear(SWITCHES[0], 0);
        s.message(HOST, 1, 20_000);
        (0..3).for_each(|number| drop(s.packet(number, 7, SWITCHES[2], HOST, None)));
        s.message(HOST, 2, 19_999);
        for number in 0..3 {
            s.wait(900_000);
            s.packet(number, 7, SWITCHES[0], HOST, returned(number));
            if number < 2 {
                s.message(HOST, 2 * number as u16 + 3, 20_000);
                s.packet(number + 1, 7, SWITCHES[0], HOST, returned(number + 1)); // of a busy port
                s.message(HOST, 2 * number as u16 + 4, 19_999);
            }
        }
        (s.rimm.counts.released, s.rimm.counts.given_up, s.rimm.counts.late)
    };
    assert_eq!((play("stalled"), play("outstanding")), ((3, 0, 0), (1, 1, 3)));
}

/// The neighbour of a flow stays until none of its packets is out, or it has no room; another flow has another one.
#[test]
fn a_flow_keeps_its_neighbour() {
    let mut s = Switch::new(&[("neighbour", text("per_flow")), ("room", text("8000B"))]);
    s.hear(SWITCHES[0], 5);
    s.hear(SWITCHES[1], 3);
    s.message(HOST, 1, 20_000);
    let mut went = |id, hash, heard: [u16; 2]| {
        SWITCHES.into_iter().zip(heard).for_each(|(port, depth)| s.hear(port, depth));
        s.packet(id, hash, SWITCHES[2], HOST, None).verdict
    };
    assert_eq!(went(0, 7, [5, 3]), Verdict::Detour(SWITCHES[1]));
    assert_eq!(went(1, 7, [5, 90]), Verdict::Detour(SWITCHES[1]), "although another one has less");
    assert_eq!(went(2, 1 << 31, [5, 90]), Verdict::Detour(SWITCHES[0]));
    assert_eq!(went(3, 7, [5, 100]), Verdict::Detour(SWITCHES[0]), "no room");
    s.hear(SWITCHES[0], 5);
    s.hear(SWITCHES[1], 1);
    s.rimm.pairs[0].give_up();
    assert_eq!(s.packet(4, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(SWITCHES[1]), "none is out: anew");
}

/// Acknowledgments that share a burst's pair and leave by another port do not wait behind it: they would not come back.
#[test]
fn a_packet_for_another_port_does_not_join_the_detour() {
    let mut s = Switch::new(&[("hash_bits", Value::Int(0))]);
    s.hear(SWITCHES[0], 0);
    s.message(HOST, 1, 20_000);
    s.packet(0, 7, SWITCHES[2], HOST, None);
    s.message(HOST, 2, 0);
    assert_eq!(s.packet(1, 8, HOST, SWITCHES[1], None).verdict, Verdict::Pass);
    assert_eq!(s.packet(2, 9, SWITCHES[2], HOST, None).verdict, Verdict::Detour(SWITCHES[0]), "for the same port: behind it");
}

/// A port whose alert lasts has no detours any more, until the next alert.
#[test]
fn congestion_ends_the_detours_of_a_port() {
    let mut s = Switch::new(&[("give_up", text("10us"))]);
    s.hear(SWITCHES[0], 0);
    s.message(HOST, 1, 20_000);
    s.packet(1, 7, SWITCHES[2], HOST, None);
    s.wait(10_000);
    assert_eq!(s.packet(2, 7, SWITCHES[2], HOST, None).verdict, Verdict::Pass);
    assert_eq!(s.packet(1, 7, SWITCHES[0], HOST, returned(0)).verdict, Verdict::Pass);
    s.wait(5_000);
    assert_eq!(s.packet(3, 9 << 20, SWITCHES[2], HOST, None).verdict, Verdict::Pass);
    s.message(HOST, 2, 0);
    s.message(HOST, 3, 30_000);
    assert!(matches!(s.packet(4, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(_)));
    assert_eq!((s.rimm.counts.given_up, s.rimm.counts.late, s.rimm.counts.alerts), (1, 1, 2));
}

/// At an egress only crossings make messages: the port, the number of the crossing, the depth, to the best neighbour.
#[test]
fn crossings_at_egress_make_messages() {
    let mut s = Switch::new(&[("alpha", text("1000B"))]);
    s.hear(SWITCHES[1], 4);
    let egress = |s: &mut Switch, port: PortNo, queue: u64| {
        let mut fx = Effects::default();
        let mut node = At(bench(4), queue);
        node.0.now = s.node.now;
        s.rimm.on_egress(&mut node, PacketId(5), port, &mut fx);
        fx.list.into_iter().map(|(_, effect)| effect).collect::<Vec<_>>()
    };
    assert_eq!(egress(&mut s, HOST, 999), []);
    let shim = Shim::new(MESSAGE, &[0, 0, 0, 3, 0, 1, 0, 0, 3, 0xE8], 80);
    assert_eq!(
        egress(&mut s, HOST, 1_000),
        [Effect::Clone { packet: PacketId(5), port: SWITCHES[1], ttl: 64, class: None, shim }]
    );
    assert_eq!(egress(&mut s, HOST, 5_000), []);
    s.wait(100_000);
    assert_eq!(egress(&mut s, HOST, 5_000).len(), 1, "again after 100 us");
    assert_eq!(egress(&mut s, HOST, 0).len(), 1);
    // Where the only neighbour that was heard is the port itself, nobody brings it back.
    assert_eq!(egress(&mut s, SWITCHES[1], 1_000), []);
    assert_eq!((s.rimm.counts().messages_sent, s.rimm.counts().messages_unsent), (3, 1));
    // A queue that may be above α when the next packet leaves is watched.
    let watch = |alert, frame| {
        let mut s = Switch::new(&[("alpha", text("1000B")), ("alert", text(alert))]);
        let (mut envelope, mut shim, mut fx) = (Envelope { frame, ..Envelope::default() }, None, Effects::default());
        let mut p = Arrival { id: PacketId(1), envelope: &mut envelope, from: None, shim: &mut shim };
        s.rimm.on_offer(&mut s.node, &mut p, HOST, &mut fx);
        fx.list
    };
    assert_eq!(["message", "at_once"].map(|alert| watch(alert, 999)), [vec![], vec![]]);
    assert_eq!(["message", "at_once"].map(|alert| watch(alert, 1_000)), [vec![(0, Effect::Watch(HOST))], vec![]]);
}

/// A switch whose queues hold so many bytes.
struct At(Bench, u64);

impl Node for At {
    fn now(&self) -> Time {
        self.0.now
    }
    fn view(&mut self, port: PortNo) -> PortView {
        PortView { queue_bytes: self.1, ..self.0.view(port) }
    }
    fn route(&mut self, envelope: &Envelope) -> Option<PortNo> {
        self.0.route(envelope)
    }
}

/// Without numbers a packet is new each time, and goes on as soon as the alert is off.
#[test]
fn a_plain_detour_has_no_numbers() {
    let unordered = [("release", text("unordered"))];
    let mut s = Switch::new(&unordered);
    s.hear(SWITCHES[0], 0);
    s.message(HOST, 1, 20_000);
    let went = s.packet(1, 7, SWITCHES[2], HOST, None);
    assert_eq!((went.verdict, went.shim, went.frame), (Verdict::Detour(SWITCHES[0]), Some((DEPTH, vec![0, 0])), 1004));
    s.message(HOST, 2, 0);
    assert_eq!(s.packet(2, 7, SWITCHES[2], HOST, None).verdict, Verdict::Pass);
    assert!(s.rimm.pairs.is_empty() && s.rimm.counts.detoured == 1);
}

/// 4·n + 32 KiB is the paper's; ours has the clocks, the alerts and the detectors besides.
#[test]
fn the_state_is_stated() {
    let state = |set: &[(&str, Value)]| rimm(set).peaks()[4..].to_vec();
    assert_eq!(state(&[]), [90_624 + 59, 16 + 32_768]); // 4 · 117 bits are 58.5 B
    assert_eq!(state(&[("release", text("flowlet"))]), [107_520 + 59, 16 + 32_768]);
    assert_eq!(state(&[("neighbour", text("per_flow"))]), [98_816 + 59, 16 + 32_768]);
    assert_eq!(state(&[("hash_bits", Value::Int(4))]), [354 + 59, 16 + 128]);
}

#[test]
fn what_has_no_effect_is_said() {
    let limits = [Amount::Bytes(512_000)];
    let switch = crate::tests::parse_switch();
    let said = |set: &[(&str, Value)], switches: &[&str], buffers: &[Amount]| -> Vec<String> {
        let mut cx = Cx::new();
        let port = switch.port(crate::Origins::default());
        let ports: Vec<_> = buffers.iter().map(|buffer| crate::PortSettings { buffer: Some(*buffer), ..port }).collect();
        let context = Context {
            mechanisms: &switch.mechanisms,
            switch: &switch,
            ports: &ports,
            frames: Frames { framing: fanin_packet::Framing::ETHERNET, trailer: 0, header_bytes: 8 },
            hosts: Hosts::default(),
            traffic: Traffic { classes: &[], transports: &[], is_complete: true, datagram: 0 },
            network: Network { sites: &[], switches, nodes: &[], longest_path: 0, circle: &|| None, rerouted: &|| None },
            duration: None,
        };
        Rimm::check(&params(set), &context, &mut cx);
        cx.into_problems().iter().map(ToString::to_string).collect()
    };
    let two = &["s0", "s1"];
    assert!(said(&[], two, &[]).is_empty());
    let found = said(&[], two, &limits);
    assert!(found.len() == 1 && found[0].contains("alpha") && found[0].contains("there are no detours"), "{found:?}");
    assert!(said(&[("alpha", text("512000B"))], two, &limits).is_empty());
    let flowlet = Value::Table([("kind".to_string(), text("flowlet").into()), ("chi".to_string(), text("5ms").into())].into());
    assert!(said(&[("release", flowlet.clone())], two, &[]).is_empty(), "a gap of 5 ms ends a detour before 10 ms do");
    let short = said(&[("release", flowlet.clone()), ("longest", text("5ms"))], two, &[]);
    assert!(short.len() == 1 && short[0].contains("has no effect: after longest, 5ms"), "{short:?}");
    let letter = ("give_up_when", text("outstanding"));
    assert!(said(&[("release", flowlet), letter.clone()], two, &[])[0].contains("after give_up, 1ms"));
    assert!(said(&[("longest", text("500us"))], two, &[])[0].contains("is below give_up, 1ms"));
    assert!(said(&[("longest", text("2ms")), letter], two, &[])[0].contains("has no effect: with give_up_when"));
    assert!(said(&[("repeat", text("1ms")), ("alert", text("at_once"))], two, &[])[0].contains("there are no messages"));
    let plain =
        [("release", text("unordered")), ("hops", text("restored")), ("hash_bits", Value::Int(3)), ("longest", text("2ms"))];
    let found = said(&plain, two, &[]);
    assert!(found.len() == 3 && found.iter().all(|problem| problem.contains("has no effect")), "{found:?}");
    let found = said(&[("message_class", Value::Int(0))], two, &[]);
    assert!(found.len() == 1 && found[0].contains("no port has queues for several classes"), "{found:?}");
    assert!(said(&[("alpha", text("0B"))], two, &[])[0].contains("is no depth"));
    assert_eq!(in_bytes(Amount::Cells(7)), Bytes(560));
}

/// A frame has 64 B at least: bytes have room for so many packets, each of which may begin a cell of its own.
#[test]
fn buffers_in_the_unit_of_alpha() {
    let [bytes, packets, cells] = [Amount::Bytes(1), Amount::Packets(1), Amount::Cells(1)];
    let cases = [
        (bytes, Amount::Cells(10), Amount::Bytes(800)),
        (bytes, Amount::Bytes(10), Amount::Bytes(10)),
        (packets, Amount::Bytes(6_400), Amount::Packets(100)),
        (packets, Amount::Cells(10), Amount::Packets(10)),
        (cells, Amount::Bytes(6_400), Amount::Cells(80 + 100)),
        (cells, Amount::Cells(10), Amount::Cells(10)),
    ];
    for (alpha, buffer, wanted) in cases {
        assert_eq!(settings::in_unit_of(alpha, buffer, 80), wanted);
    }
}

fn in_bytes(amount: Amount) -> Bytes {
    match settings::in_unit_of(Amount::Bytes(0), amount, 80) {
        Amount::Bytes(n) => Bytes(n),
        other => panic!("{other}"),
    }
}

/// What a frame has in front of it when it leaves: to a neighbour with RIMM what it came with, or a depth where that fits; to any other
/// nothing, and messages do not go there.
#[test]
fn headers_follow_what_the_far_end_understands() {
    let shim = |kind: u16| {
        let rest = match kind {
            DEPTH => 0,
            DETOUR | RETURN => 4,
            _ => 8,
        };
        Shim::new(kind, &[&[0, 9][..], &[1; 8][..rest]].concat(), 80)
    };
    let offered = |port: PortNo, kind: Option<u16>, frame: u16| {
        let mut s = Switch::new(&[("max_frame", text("1522B"))]);
        let mut shim = kind.map(shim);
        let mut envelope = Envelope { frame, ..Envelope::default() };
        envelope.set_shim(shim.as_ref());
        let mut p = Arrival { id: PacketId(1), envelope: &mut envelope, from: Some(SWITCHES[2]), shim: &mut shim };
        let verdict = s.rimm.on_offer(&mut s.node, &mut p, port, &mut Effects::default());
        (verdict, shim.map(|shim| shim.ether_type), s.rimm.counts.astray)
    };
    let dropped = Verdict::Drop(DropReason::NO_WAY_BACK);
    for kind in [MESSAGE, ANSWER] {
        assert_eq!(offered(SWITCHES[0], Some(kind), 1_000), (Verdict::Pass, Some(kind), 0));
        assert_eq!(offered(HOST, Some(kind), 1_000).0, dropped);
    }
    for (kind, astray) in [(DETOUR, 1), (RETURN, 1), (DEPTH, 0)] {
        assert_eq!(offered(SWITCHES[0], Some(kind), 1_000), (Verdict::Pass, Some(kind), 0));
        assert_eq!(offered(HOST, Some(kind), 1_000), (Verdict::Pass, None, astray));
    }
    assert_eq!(offered(SWITCHES[0], None, 1_518), (Verdict::Pass, Some(DEPTH), 0), "1522 B with it");
    assert_eq!(offered(SWITCHES[0], None, 1_519), (Verdict::Pass, None, 0));
    assert_eq!(offered(HOST, None, 1_000), (Verdict::Pass, None, 0));
}

/// A packet with a number that is dropped was away; one with a depth alone was not, nor was a message.
#[test]
fn drops_of_packets_that_were_away_are_counted() {
    let mut s = Switch::new(&[]);
    let mut counted = |kind: Kind, shim: Option<Shim>| {
        let mut envelope = Envelope { kind, ..Envelope::default() };
        envelope.set_shim(shim.as_ref());
        let dropped = Dropped { packet: PacketId(1), envelope: &envelope, reference: None, reason: DropReason::BUFFER_FULL };
        s.rimm.on_drop(&mut s.node, &dropped, &mut Effects::default());
        s.rimm.counts.dropped_away
    };
    let depth = || Some(Shim::new(DEPTH, &[0, 9], 80));
    let data = Envelope::default().kind;
    assert_eq!([counted(data, None), counted(data, depth()), counted(Kind::Control, returned(1))], [0; 3]);
    assert_eq!([counted(data, returned(1)), counted(data, depth()), counted(data, returned(2))], [1, 1, 2]);
}

/// Without a neighbour to go around by again a packet goes on: let go where its number was out, late where it was not.
#[test]
fn what_cannot_go_around_again_goes_on() {
    let mut s = Switch::new(&[]);
    s.hear(SWITCHES[0], 0);
    s.message(HOST, 1, 20_000);
    (0..3).for_each(|id| assert!(matches!(s.packet(id, 7, SWITCHES[2], HOST, None).verdict, Verdict::Detour(_))));
    s.rimm.on_link(&mut s.node, SWITCHES[0], false, &mut Effects::default());
    // Its header says that the neighbour is there, but with no room.
    let full = |number: u32| Some(Shim::new(RETURN, &[&u16::MAX.to_be_bytes()[..], &number.to_be_bytes()].concat(), 80));
    let mut back = |number: u32| {
        assert_eq!(s.packet(number, 7, SWITCHES[0], HOST, full(number)).verdict, Verdict::Pass);
        (s.rimm.counts.let_go, s.rimm.counts.late, s.rimm.counts.released)
    };
    assert_eq!([back(1), back(0), back(9)], [(1, 0, 0), (2, 0, 0), (2, 1, 0)], "9 was never out");
}

/// The amounts that its settings name are held against buffers and marks.
#[test]
fn alpha_is_claimed() {
    let claims = Rimm::claims(&params(&[("alpha", text("5000B"))]));
    assert_eq!(claims.amounts, [Amount::Bytes(5_000)]);
}

/// The paper's α of a buffer, in each unit, whole packets and bytes. Source: RIMM §IV.
#[test]
fn alpha_is_five_sixths_of_the_buffer() {
    let all = [Amount::Bytes(1_500), Amount::Packets(61), Amount::Cells(24_000)];
    assert_eq!(all.map(settings::five_sixths), [Amount::Bytes(1_250), Amount::Packets(50), Amount::Cells(20_000)]);
}

/// By hand: 117 bits of each of four ports, and of each pair 177 bits, 210 with gaps between flowlets, none without numbers.
#[test]
fn memory_is_that_of_ports_and_pairs() {
    let site = site(&["s1", "s2", "s3", "h0"]);
    for (release, pair) in [("drained", 177), ("flowlet", 210), ("unordered", 0)] {
        let settings = params(&[("release", text(release)), ("hash_bits", Value::Int(5))]);
        assert_eq!(Rimm::memory(&settings, &site), Some(Bytes((4 * 117 + 32 * pair as u64).div_ceil(8))), "{release}");
    }
}
