//! A queue pair as its host sees it: packets, events, telemetry, state.

use super::cc::{NoRateControl, RoceControl, Swift, Timely};
use super::*;
use fanin_packet::{Departure, IpVersion, Record, Syndrome};
use fanin_params::defaults;
use fanin_units::{BitRate, Bytes, Purpose};

/// Two ends at 10 Gb/s, 10 us apart and back, whose hosts take 2 us for each packet; they have written nothing yet.
fn pair(cfg: &Roce) -> [RoceEndpoint; 2] {
    let way = Place::new(IpVersion::V4, BitRate::from_gbps(10), Span::from_us(10));
    let place = Place { processing: Span::from_us(2), ..way };
    RoceEndpoint::pair(cfg, &place, Time::ZERO, &mut Stream::new(7, Purpose::Transport, 1))
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn next(end: &mut RoceEndpoint, cfg: &Roce, us: u64) -> Option<(Envelope, Header)> {
    let (mut envelope, mut header) = (Envelope::default(), Header::default());
    end.poll(cfg, at(us), Kinds::ALL, &mut envelope, &mut header).then_some((envelope, header))
}

fn roce(header: &Header) -> RoceHeader {
    match header {
        Header::Roce(roce) => *roce,
        other => panic!("{other:?}"),
    }
}

/// The receiver says how long a packet took in its host: where it waited and what the host takes for each. Source: Swift §3.1
/// (t_remote-queuing).
#[test]
fn a_packet_that_waited_in_the_host_is_acknowledged_with_that_time() {
    let cfg = Roce { congestion_control: RoceControl::Swift(defaults()), ..Roce::default() };
    let [mut a, mut b] = pair(&cfg);
    a.write(&cfg, at(0), 2_048);
    for (arrived, wanted) in [(Some(10), 5_000), (None, 2_000)] {
        let (envelope, header) = next(&mut a, &cfg, 0).expect("data");
        arrived.into_iter().for_each(|us| b.arrived_at(at(us)));
        b.on_packet(&cfg, at(13), &envelope, &header);
        let (_, ack) = next(&mut b, &cfg, 13).expect("an acknowledgment");
        assert_eq!(roce(&ack).waited, Some(wanted));
    }
}

/// Telemetry goes with data, comes back with the acknowledgment, and steers the window. Source: HPCC §3.1.
#[test]
fn telemetry_goes_there_and_back() {
    let cfg = Roce { congestion_control: RoceControl::Hpcc(defaults()), ..Roce::default() };
    let [mut a, mut b] = pair(&cfg);
    a.write(&cfg, at(0), 1 << 20);
    let before = a.snapshot().expect("a sender").cwnd;
    for round in 1..=2 {
        let (envelope, header) = next(&mut a, &cfg, 10 * round).expect("data");
        assert_eq!(a.telemetry(&header), Some(Stack::EMPTY));
        // 12,500 B are what the line takes in 10 us: so much waits, and as much has left.
        let departure = Departure { at: at(10 * round), queue_bytes: 12_500, sent_bytes: 12_500 * round, code: 5 };
        let mut shim = Stack::EMPTY.shim();
        shim.add_hop(0x123);
        let mut records = Stack::EMPTY.places();
        records[0] = Record::of(&departure);
        b.on_telemetry(&Stack::of(&shim, records).expect("telemetry"));
        b.on_packet(&cfg, at(10 * round + 1), &envelope, &header);
        let (envelope, header) = next(&mut b, &cfg, 10 * round + 1).expect("an acknowledgment");
        let back = b.telemetry(&header).expect("what has come");
        assert!(back.echo && back.records().len() == 1);
        assert_eq!(a.snapshot().expect("a sender").cwnd, before, "the first says nothing yet");
        a.on_telemetry(&back);
        a.on_packet(&cfg, at(10 * round + 5), &envelope, &header);
    }
    // U = 2, in units of 80 and 128 B; the line takes 12 packets in 10 us.
    let expected = before as f64 * 0.95 / 2.0 + 80.0;
    let cwnd = a.snapshot().expect("a sender").cwnd as f64;
    assert!((cwnd / expected - 1.0).abs() < 0.02, "{cwnd}, by hand {expected}");
    let plain = pair(&Roce::default());
    let header = Header::Roce(RoceHeader::default());
    assert_eq!([plain[0].telemetry(&header), a.telemetry(&Header::default())], [None, None]);
}

/// A queue pair does nothing with a packet that a switch has trimmed, and says how many there were.
#[test]
fn trimmed_packets_are_counted_and_ignored() {
    let cfg = Roce::default();
    let [mut a, mut b] = pair(&cfg);
    a.write(&cfg, at(0), 1_024);
    let (envelope, header) = next(&mut a, &cfg, 0).expect("data");
    for count in 1..=2 {
        b.on_packet(&cfg, at(5), &Envelope { trimmed: true, ..envelope }, &header);
        assert_eq!((b.signals().trimming.ignored, b.signal_log().counts().trimming.ignored), (count, count));
    }
    assert_eq!((b.poll_event(), b.stats().delivered, next(&mut b, &cfg, 5)), (None, 0, None));
}

/// Events and places count what is in order; a packet that comes twice is no event.
#[test]
fn what_comes_in_order_is_an_event_and_nothing_else_is() {
    let cfg = Roce::default();
    let [mut a, mut b] = pair(&cfg);
    a.write(&cfg, at(0), 3_000);
    let packets: Vec<_> = std::iter::from_fn(|| next(&mut a, &cfg, 0)).collect();
    assert_eq!((packets.len(), a.is_over(&cfg)), (3, false));
    let mut total = 0;
    for (envelope, header) in &packets {
        assert_eq!(b.next_place(), Some(roce(header).place));
        for again in [false, true] {
            b.on_packet(&cfg, at(5), envelope, header);
            total += if again { 0 } else { u64::from(envelope.payload) };
            assert_eq!(b.poll_event(), (!again).then_some(Event::Delivered { total }));
            assert_eq!((b.next_place(), b.poll_event()), (Some(total as u32), None));
        }
        let (envelope, ack) = next(&mut b, &cfg, 5).expect("an acknowledgment");
        a.on_packet(&cfg, at(10), &envelope, &ack);
        assert_eq!((a.poll_event(), a.poll_event()), (Some(Event::Acked { total }), None));
    }
    assert_eq!((total, a.is_over(&cfg), b.stats().duplicate_bytes), (3_000, true, 3_000));
}

/// News below what the application waits for is dropped without an event, and anything else stays.
#[test]
fn news_that_nobody_waits_for_is_no_event() {
    let cfg = Roce::default();
    let [mut a, mut b] = pair(&cfg);
    assert!(a.is_quiet_below(0, 0), "nothing has happened");
    a.write(&cfg, at(0), 3_000);
    for (waits_for, total) in [(1_025, 1_024), (2_048, 2_048), (u64::MAX, 3_000)] {
        let (envelope, header) = next(&mut a, &cfg, 0).expect("data");
        b.on_packet(&cfg, at(5), &envelope, &header);
        let (envelope, ack) = next(&mut b, &cfg, 5).expect("an acknowledgment");
        a.on_packet(&cfg, at(10), &envelope, &ack);
        let heard = total >= waits_for;
        assert_eq!((b.is_quiet_below(waits_for, 0), a.is_quiet_below(0, waits_for)), (!heard, !heard), "{total}");
        assert_eq!(b.poll_event(), heard.then_some(Event::Delivered { total }));
        assert_eq!(a.poll_event(), heard.then_some(Event::Acked { total }));
    }
    a.fail();
    assert!(!a.is_quiet_below(u64::MAX, u64::MAX), "it has failed");
}

/// The state that telemetry records, in the terms of TCP: places begin at 1, as sequence numbers do behind a SYN.
#[test]
fn a_snapshot_says_where_the_sender_is() {
    let cfg = Roce::default();
    let [mut a, b] = pair(&cfg);
    a.write(&cfg, at(0), 5 * 1_024);
    let first = roce(&next(&mut a, &cfg, 0).expect("data").1).psn;
    (0..3).for_each(|_| assert!(next(&mut a, &cfg, 0).is_some()));
    let ack = |psn, syndrome| Header::Roce(RoceHeader { op: RoceOp::Acknowledge, psn, syndrome, ..RoceHeader::default() });
    a.on_packet(&cfg, at(20), &Envelope::default(), &ack(first, Syndrome::Ack));
    let s = a.snapshot().expect("a sender");
    assert_eq!((s.acked, s.next, s.pipe, s.unsent, s.mss), (1 + 1_024, 1 + 4 * 1_024, 3 * 1_024, 1_024, 1_024));
    assert_eq!((s.srtt, s.rate, s.window, s.cwnd), (Span::from_us(20), Some(BitRate::from_gbps(10)), u64::MAX - 1_024, u64::MAX));
    assert_eq!((s.phase, s.origins[0], s.established), (Phase::Open, first, true));
    let theirs = b.snapshot().expect("a sender").origins;
    assert_eq!([theirs[1], theirs[0]], s.origins);
    assert!(s.origins.iter().all(|origin| *origin <= RoceHeader::PSN_MASK), "24 bits: {:x?}", s.origins);
    assert_eq!(a.describe(), "3072 B in flight, 1024 B unsent, at 10Gbps");
    // 4.096 us · 2^14 after the acknowledgment. Source: IBTA §9.7.6.1.3.
    let timeout = Span::from_ns(4_096 << 14);
    assert_eq!((s.rto, s.timers[0]), (timeout, (Timer::Retransmission, at(20) + timeout)));
    a.on_packet(&cfg, at(21), &Envelope::default(), &ack(first.wrapping_add(2) & RoceHeader::PSN_MASK, Syndrome::SequenceError));
    assert_eq!(a.snapshot().expect("a sender").phase, Phase::Recovery, "packet 2 is sent again");
    let later = a.next_timeout();
    a.on_timer(&cfg, later);
    assert_eq!(a.snapshot().expect("a sender").phase, Phase::Loss);
}

/// A failed queue pair says so once, sends nothing more and waits for nothing.
#[test]
fn a_queue_pair_that_fails_says_so_once() {
    let cfg = Roce { retry_count: 0, ..Roce::default() };
    let [mut a, _] = pair(&cfg);
    a.write(&cfg, at(0), 2_048);
    assert!(next(&mut a, &cfg, 0).is_some());
    let due = |a: &RoceEndpoint| [Kinds::CONTROL, Kinds::DATA, Kinds::ALL].map(|kinds| a.due(&cfg, at(1), kinds));
    assert_eq!(due(&a), [false, true, true]);
    let timeout = a.next_timeout();
    a.on_timer(&cfg, timeout);
    assert_eq!((a.poll_event(), a.poll_event()), (Some(Event::Aborted(AbortReason::RetriesExhausted)), None));
    assert_eq!((due(&a), next(&mut a, &cfg, 1), a.next_timeout()), ([false; 3], None, Time::MAX));
}

/// The NIC takes a burst at once where the rate limiter works; at the rate of the line it takes single packets.
#[test]
fn bursts_are_those_of_the_rate_limiter() {
    let burst = |rate, burst| {
        let control = RoceControl::None(NoRateControl { rate: Some(BitRate::from_gbps(rate)) });
        let cfg = Roce { congestion_control: control, burst, ..Roce::default() };
        pair(&cfg)[0].burst(&cfg, at(0))
    };
    assert_eq!([burst(5, Some(Bytes(4_096))), burst(10, Some(Bytes(4_096))), burst(5, None)], [4_096, 0, 0]);
}

/// Controls hear how many packets an acknowledgment covers and up to which byte of the stream it goes. Source: Swift algorithm 1
/// (num_acked), TIMELY §4.1 (completions of segments).
#[test]
fn controls_hear_of_packets_and_places() {
    let acknowledge = |control, acks: &[u32]| {
        let cfg = Roce { congestion_control: control, ..Roce::default() };
        let [mut a, _] = pair(&cfg);
        a.write(&cfg, at(0), 8 * 1_024);
        let first = roce(&next(&mut a, &cfg, 0).expect("data").1).psn;
        (1..6).for_each(|packet| assert!(next(&mut a, &cfg, 10 * packet).is_some()));
        let seen = |packet: &u32| {
            let psn = first.wrapping_add(*packet) & RoceHeader::PSN_MASK;
            let header = RoceHeader { op: RoceOp::Acknowledge, psn, syndrome: Syndrome::Ack, ..RoceHeader::default() };
            let us = 10 * u64::from(*packet) + 25;
            a.on_packet(&cfg, at(us.max(51)), &Envelope::default(), &Header::Roce(header));
            let s = a.snapshot().expect("a sender");
            (s.cwnd, s.rate.map_or(0, |rate| rate.bps() / 1_000_000))
        };
        acks.iter().map(seen).collect::<Vec<_>>()
    };
    let swift = Swift { initial_window: Some(10.0), base_target: Span::from_ms(1), increase: 1.0, ..defaults() };
    let swift = acknowledge(RoceControl::Swift(Swift { end_target: Span::from_ms(1), ..swift }), &[0, 2]);
    // 10 + 1/10 packets, and 2/10.1 more.
    assert_eq!(swift.iter().map(|seen| seen.0).collect::<Vec<_>>(), [10_342, 10_545]);
    let rates = Timely { t_low: Span::from_ms(1), t_high: Span::from_ms(2), delta: BitRate::from_mbps(10), ..defaults() };
    let timely = Timely { segment: Bytes(2_048), initial_rate: Some(BitRate::from_gbps(1)), ..rates };
    let timely = acknowledge(RoceControl::Timely(timely), &[0, 1, 2, 3, 4, 5]);
    // The first completion gives no difference; the others raise the rate.
    assert_eq!(timely.iter().map(|seen| seen.1).collect::<Vec<_>>(), [1_000, 1_000, 1_000, 1_010, 1_010, 1_020]);
}
