//! Endpoints as a host drives them, whatever the transport.

use crate::common::place;
use fanin_packet::{Ecn, Envelope, Header, IpVersion, Kind, Lost, Packet, Part, Reference, Signal, Signals};
use fanin_params::Counters;
use fanin_transport::*;
use fanin_units::{Purpose, Span, Stream, Time};

fn open() -> Parameters {
    TransportConfig::Tcp(Tcp { handshake: false, ..Tcp::default() }).into()
}

fn pair(cfg: &Parameters) -> [Endpoint; 2] {
    Endpoint::pair(cfg, &place(), Time::ZERO, &mut Stream::new(1, Purpose::Transport, 1))
}

/// Sends what is due at one end to the other, until nothing is due at either; gives the packets.
fn exchange(cfg: &Parameters, ends: &mut [Endpoint; 2], now: Time) -> Vec<Packet> {
    let mut sent = Vec::new();
    let mut p = Packet::default();
    for from in [0, 1, 0, 1, 0] {
        while ends[from].due(cfg, now, Kinds::ALL) {
            assert!(ends[from].poll(cfg, now, Kinds::ALL, &mut p.envelope, &mut p.header));
            ends[1 - from].on_packet(cfg, now, &p.envelope, &p.header);
            sent.push(p);
        }
    }
    sent
}

#[test]
fn a_flow_in_a_few_lines() {
    let cfg = Parameters::from(TransportConfig::default());
    let mut ends = pair(&cfg);
    let now = Time::ZERO + Span::from_us(5);
    ends[0].write(&cfg, now, 3_000);
    ends[0].close(&cfg, now);
    exchange(&cfg, &mut ends, now);
    let events: Vec<Event> = std::iter::from_fn(|| ends[1].poll_event()).collect();
    assert_eq!(events, [Event::Connected, Event::Delivered { total: 3_000 }, Event::PeerClosed]);
    assert!(!ends[0].is_over(&cfg) && !ends[1].is_over(&cfg));
    ends[1].close(&cfg, now);
    exchange(&cfg, &mut ends, now);
    assert!(ends.iter().all(|end| end.is_over(&cfg)));
    assert_eq!(ends[0].tcp().map(TcpEndpoint::state), Some(TcpState::TimeWait));
    assert_eq!(ends[1].describe(), "Closed, 0 B in flight, 0 B unsent, cwnd 4345 B, RTO 1s");
}

/// Control packets are due alone as soon as they are; data is polled by itself.
#[test]
fn a_mask_chooses_what_is_polled() {
    let cfg = open();
    let [mut a, mut b] = pair(&cfg);
    let now = Time::ZERO;
    a.write(&cfg, now, 3_000);
    assert!(!a.due(&cfg, now, Kinds::CONTROL) && a.due(&cfg, now, Kinds::DATA) && a.due(&cfg, now, Kinds::ALL));
    let mut p = Packet::of_udp(1, 2); // what was in its place before
    p.envelope.trimmed = true;
    assert!(!a.poll(&cfg, now, Kinds::CONTROL, &mut p.envelope, &mut p.header));
    for _ in 0..2 {
        assert!(a.poll(&cfg, now, Kinds::DATA, &mut p.envelope, &mut p.header));
        assert_eq!((p.envelope.kind, p.envelope.trimmed, p.envelope.payload), (Kind::Reliable, false, 1448));
        b.on_packet(&cfg, now, &p.envelope, &p.header);
    }
    assert!(b.due(&cfg, now, Kinds::CONTROL) && !b.due(&cfg, now, Kinds::DATA));
    assert!(!a.is_over(&cfg) && b.is_over(&cfg));
    assert_eq!((a.burst(&cfg, now), Kinds::CONTROL.with(Kinds::DATA)), (0, Kinds::ALL));
}

/// TCP's draws: initial sequence numbers, then timestamp offsets, initiator first.
#[test]
fn random_numbers_are_the_flows_own() {
    let cfg = Parameters::from(TransportConfig::default());
    let mut draws = Stream::new(1, Purpose::Transport, 1);
    let iss = [draws.next_u32(), draws.next_u32()];
    let [mut a, _] = pair(&cfg);
    let mut p = Packet::default();
    a.poll(&cfg, Time::ZERO, Kinds::ALL, &mut p.envelope, &mut p.header);
    assert_eq!((p.header.number(), p.header.tcp().timestamps().unwrap().value), (iss[0], draws.next_u32()));
}

#[test]
fn signals_are_counted_by_what_they_led_to() {
    let lost = Signal::Lost(Lost { packet: Reference { number: 0, length: 10, part: Part::Data }, reduce: true });
    let cfg = open();
    let [mut a, _] = pair(&cfg);
    assert_eq!(a.signals(), SignalCounts::default());
    a.on_signal(&cfg, Time::ZERO, &lost);
    let mut p = Packet::of_tcp(fanin_packet::TcpFlags::ACK, 0, 0, 0, 100);
    p.envelope.trim(64);
    a.on_packet(&cfg, Time::ZERO, &p.envelope, &p.header);
    let mut counts = a.signals();
    assert_eq!((counts.notifications.ignored, counts.trimming.ignored), (1, 1));
    let mut udp = Endpoint::from(UdpEndpoint::sink());
    udp.on_signal(&cfg, Time::ZERO, &Signal::Undefined);
    udp.on_packet(&cfg, Time::ZERO, &p.envelope, &p.header);
    counts.add(&udp.signals());
    assert_eq!((counts.notifications.ignored, counts.trimming.ignored), (2, 2));
    assert_eq!(counts.notifications.values().iter().sum::<u64>() + counts.trimming.values().iter().sum::<u64>(), 4);
    assert_eq!((NotificationCounts::GROUP, TrimmingCounts::GROUP), ("notifications", "trimming"));
}

#[test]
fn datagrams_leave_by_their_schedule_and_are_counted() {
    let cfg = Parameters::from(TransportConfig::default());
    let at = |us| Time::ZERO + Span::from_us(us);
    let departures = vec![(at(1), 100), (at(3), 200), (at(3), 300)];
    let mut source = Endpoint::from(UdpEndpoint::source(Box::new(departures.into_iter())));
    let mut sink = Endpoint::from(UdpEndpoint::sink());
    assert_eq!((source.next_timeout(), source.due(&cfg, at(0), Kinds::ALL)), (at(1), false));
    source.on_timer(&cfg, at(1));
    assert_eq!((source.next_timeout(), source.due(&cfg, at(1), Kinds::ALL)), (Time::MAX, true));
    assert!(!source.due(&cfg, at(1), Kinds::CONTROL) && !source.is_over(&cfg));
    let mut p = Packet { envelope: Envelope { ecn: Ecn::Ce, trimmed: true, ..Envelope::default() }, ..Packet::default() };
    for (now, number, payload, next) in [(at(2), 0, 100, at(3)), (at(9), 1, 200, Time::MAX), (at(9), 2, 300, Time::MAX)] {
        assert!(source.poll(&cfg, now, Kinds::DATA, &mut p.envelope, &mut p.header));
        assert_eq!((p.header.number(), p.envelope.payload, p.envelope.ecn), (number, payload, Ecn::NotEct));
        assert!(matches!(p.header, Header::Udp(_)) && p.envelope.kind == Kind::Datagram && !p.envelope.trimmed);
        assert_eq!(source.next_timeout(), next);
        if number == 2 {
            p.envelope.ecn = Ecn::Ce;
        }
        sink.on_packet(&cfg, now, &p.envelope, &p.header);
    }
    assert!(!source.poll(&cfg, at(9), Kinds::ALL, &mut p.envelope, &mut p.header) && source.is_over(&cfg));
    assert_eq!((sink.poll_event(), sink.poll_event()), (Some(Event::Delivered { total: 600 }), None));
    let (Endpoint::Other(Other::Udp(source)), Endpoint::Other(Other::Udp(sink))) = (source, sink) else { unreachable!() };
    assert_eq!((source.sent(), sink.received()), (3, 3));
    let stats = |udp: UdpEndpoint| Endpoint::from(udp).stats();
    let (tx, rx) = (stats(source), stats(sink));
    assert_eq!((tx.packets_sent, tx.bytes_sent, rx.delivered, rx.marked), (3, 600, 600, 1));
}

/// What a scenario asks of a transport, whichever it is.
#[test]
fn parameters_answer_for_their_transport() {
    let tcp = Tcp { handshake: true, drop_notification: true, ..Tcp::default() };
    let cfg = Parameters::from(TransportConfig::Tcp(tcp));
    let shape = Shape { payload: 1428, header: 32, first: 0, opening: Some(40) };
    assert_eq!((cfg.shape(IpVersion::V4), Endpoint::shape(&cfg, IpVersion::V4)), (shape, shape));
    assert_eq!(open().shape(IpVersion::V6), Shape { payload: 1428, header: 32, first: 0, opening: None });
    assert_eq!((cfg.mtu(IpVersion::V6), cfg.longest_header(IpVersion::V6), cfg.uses_ecn()), (1500, 72, false));
    assert_eq!(TransportConfig::clone(&cfg).with_mtu_less(8).shape(IpVersion::V4).payload, 1420);
    assert_eq!((cfg.acts_on(), cfg.key_of(Signals::TRIMMED)), (Signals::LOST, Some("trim_nack")));
    assert_eq!(cfg.first_window(IpVersion::V4), 3 * 1428);
}

#[test]
fn an_endpoint_of_any_transport_takes_no_more_than_tcps() {
    assert_eq!(std::mem::size_of::<Endpoint>(), std::mem::size_of::<TcpEndpoint>());
}
