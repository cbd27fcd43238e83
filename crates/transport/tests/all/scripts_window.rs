//! The window when nothing is lost: slow start, congestion avoidance, idle time, receive window, pacing, TSO.

use crate::common::script::run;
use fanin_packet::Packet;
use fanin_transport::cc::{CongestionControl, NewReno};
use fanin_transport::*;
use fanin_units::{Bytes, Purpose, Span, Stream, Time};

fn base() -> Tcp {
    let mut cfg = Tcp::new(Profile::Rfc, CongestionControl::NewReno(NewReno {}));
    cfg.handshake = false;
    cfg.mss = Some(1000);
    cfg.timestamps = false;
    cfg.initial_window = Some(2);
    cfg.rto_min = Span::from_ms(200);
    cfg.ack_every = 1;
    cfg.receive_window = ReceiveWindow::Fixed(FixedWindow { size: Bytes(65_535) });
    cfg
}

/// RFC 5681 §3.1: each ACK of new data adds a segment: the window doubles per round.
#[test]
fn slow_start_doubles_per_round() {
    run(
        &base(),
        "
        +0 write 100000
        +0 > . 1:1001
        +0 > . 1001:2001
        +0 > none
        +0.1 < . 1 ack 1001
        +0 > . 2001:3001
        +0 > . 3001:4001
        +0 < . 1 ack 2001
        +0 > . 4001:5001
        +0 > . 5001:6001
        +0 = cwnd 4000
        +0.1 < . 1 ack 3001
        +0 > . 6001:7001
        +0 > . 7001:8001
        +0 < . 1 ack 4001
        +0 > . 8001:9001
        +0 > . 9001:10001
        +0 < . 1 ack 5001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 < . 1 ack 6001
        +0 = cwnd 8000
        +0 > . 12001:13001
        +0 > . 13001:14001
        ",
    );
}

/// RFC 5681 §3.1: an ACK of two segments adds one (L = 1); without the limit, as Linux, two.
#[test]
fn a_delayed_ack_adds_one_segment_or_two() {
    let script = |cwnd: u32| format!("+0 write 2000\n+0 > . 1:1001\n+0 > . 1001:2001\n+0.1 < . 1 ack 2001\n+0 = cwnd {cwnd}");
    run(&base(), &script(3000));
    run(&Tcp { slow_start_limit: 2, ..base() }, &script(4000));
}

/// RFC 5681 §3.1: above ssthresh one segment per window of acknowledged bytes.
#[test]
fn congestion_avoidance_adds_a_segment_per_round() {
    let cfg = Tcp { initial_ssthresh: Some(Bytes(2_000)), ..base() };
    run(
        &cfg,
        "
        +0 write 100000
        +0 > . 1:1001
        +0 > . 1001:2001
        +0.1 < . 1 ack 1001
        +0 = cwnd 2000
        +0 > . 2001:3001
        +0 < . 1 ack 2001
        +0 = cwnd 3000
        +0 > . 3001:4001
        +0 > . 4001:5001
        +0.1 < . 1 ack 3001
        +0 > . 5001:6001
        +0 < . 1 ack 4001
        +0 > . 6001:7001
        +0 = cwnd 3000
        +0 < . 1 ack 5001
        +0 = cwnd 4000
        +0 > . 7001:8001
        +0 > . 8001:9001
        ",
    );
}

/// The window does not grow while the application does not use it. RFC 7661 §4.2.
#[test]
fn an_unused_window_does_not_grow() {
    let script = "
        +0 write 1000
        +0 > . 1:1001
        +0.1 < . 1 ack 1001
        +0 write 1000
        +0 > . 1001:2001
        +0.1 < . 1 ack 2001
        +0 write 1000
        +0 > . 2001:3001
        +0.1 < . 1 ack 3001
    ";
    let cfg = Tcp { initial_window: Some(10), ..base() };
    run(&cfg, &format!("{script}+0 = cwnd 10000"));
    run(&Tcp { cwnd_validation: false, ..cfg }, &format!("{script}+0 = cwnd 13000"));
}

/// After more than an RTO of silence: RFC 5681 §4.1, or Linux' halving per RTO.
#[test]
fn idle_time_takes_the_window_back() {
    let script = |wait: f64, cwnd: u32| {
        format!(
            "
            +0 write 8000
            +0 > . 1:1001
            +0 > . 1001:2001
            +0.1 < . 1 ack 2001
            +0 > . 2001:3001
            +0 > . 3001:4001
            +0 > . 4001:5001
            +0 > . 5001:6001
            +0.1 < . 1 ack 6001
            +0 > . 6001:7001
            +0 > . 7001:8001
            +0.1 < . 1 ack 8001
            +0 = cwnd 8000
            +0 = rto 0.213
            +{wait} write 1000
            +0 > . 8001:9001
            +0 = cwnd {cwnd}
            "
        )
    };
    let cfg = Tcp { slow_start_limit: 9, ..base() };
    // The last data left 0.1 s before the pause.
    for (idle_restart, wait, cwnd) in [
        (IdleRestart::Rfc5681, 0.1, 8000),
        (IdleRestart::Rfc5681, 0.2, 2000),
        (IdleRestart::None, 10.0, 8000),
        (IdleRestart::Decay, 0.2, 4000),
        (IdleRestart::Decay, 10.0, 2000),
    ] {
        let cfg = Tcp { idle_restart, ..cfg.clone() };
        run(&cfg, &script(wait, cwnd));
    }
}

/// Nothing is sent beyond the receive window; a zero window is probed with growing pauses. RFC 9293 §3.8.6.1.
#[test]
fn a_zero_window_is_probed_until_it_opens() {
    let cfg = Tcp { receive_window: ReceiveWindow::Fixed(FixedWindow { size: Bytes(2_500) }), ..base() };
    run(
        &cfg,
        "
        +0 write 10000
        +0 > . 1:1001
        +0 > . 1001:2001
        # 500 bytes of window are left: less than half the largest, and something is in flight.
        +0.1 < . 1 ack 1001 win 1500
        +0 > none
        +0 < . 1 ack 2001 win 500
        +0 > . 2001:2501
        +0.1 < . 1 ack 2501 win 0
        +0 > none
        +0 = rto 0.25
        # The probe is an empty segment below the window.
        +0.25 > . 2500
        +0 = probes 1
        +0 < . 1 ack 2501 win 0
        +0.5 > . 2500
        +1 > . 2500
        +0 = timeouts 0
        # Open again, after more than an RTO of silence: the restart window. RFC 5681 §4.1.
        +0.1 < . 1 ack 2501 win 3000
        +0 > . 2501:3501
        +0 > . 3501:4501
        +0 > none
        +0.1 < . 1 ack 4501 win 1000
        +0 > . 4501:5501
        # A window never shrinks: what was promised can be sent. RFC 9293 §3.8.6.
        +0.1 < . 1 ack 5501 win 0
        +0 > none
        +0.05 < . 1 ack 5501 win 65535
        +0 > . 5501:6501
        +0 > . 6501:7501
        +0 > . 7501:8501
        +0.1 < . 1 ack 8501 win 65535
        +0 > . 8501:9501
        +0 > . 9501:10001
        +0.1 < . 1 ack 10001 win 65535
        +9 > none
        ",
    );
}

/// The window that a reader who stops leaves, and the update when it opens again. RFC 9293 §3.8.6.2.2.
#[test]
fn a_reader_that_stops_closes_the_window() {
    let cfg = Tcp { receive_window: ReceiveWindow::Fixed(FixedWindow { size: Bytes(3_000) }), ..base() };
    run(
        &cfg,
        "
        +0 hold
        +0 < . 1:1001
        +0 > . 1 ack 1001 win 2000
        +0 < . 1001:3001
        +0 > . 1 ack 3001 win 0
        # Beyond the window: refused, and acknowledged.
        +0 < . 3001:4001
        +0 > . 1 ack 3001 win 0
        +0 = delivered 3000
        # A probe is answered.
        +1 < . 3000
        +0 > . 1 ack 3001 win 0
        +0 read 900
        +0 > none
        +0 read 100
        +0 > . 1 ack 3001 win 1000
        +0 read 2000
        +0 > . 1 ack 3001 win 3000
        ",
    );
}

/// Probes that are answered go on for ever; unanswered ones end the connection. RFC 9293 §3.8.6.1.
#[test]
fn only_unanswered_probes_end_the_connection() {
    let cfg = Tcp { receive_window: ReceiveWindow::Fixed(FixedWindow { size: Bytes(1_500) }), max_retries: 2, ..base() };
    run(
        &cfg,
        "
        +0 write 10000
        +0 > . 1:1001
        +0.1 < . 1 ack 1001 win 500
        +0 > . 1001:1501
        +0.1 < . 1 ack 1501 win 0
        +0.25 > . 1500
        +0 < . 1 ack 1501 win 0
        +0.5 > . 1500
        +0 < . 1 ack 1501 win 0
        +1 > . 1500
        +0 < . 1 ack 1501 win 0
        +2 > . 1500
        +4 > . 1500
        +8 > none
        +0 = state Closed
        +0 = probes 5
        ",
    );
}

/// What rounding by the window scale takes from the window later is still accepted: it was promised. RFC 7323 §2.4.
#[test]
fn a_promised_window_is_kept() {
    let cfg = Tcp { receive_window: ReceiveWindow::Fixed(FixedWindow { size: Bytes(70_000) }), ..base() };
    run(
        &cfg,
        "
        +0 hold
        +0 < . 1:2
        +0 > . 1 ack 2 win 34999
        +0 < . 2:60002
        +0 > . 1 ack 60002 win 4999
        +0 < . 60002:70001
        +0 > . 1 ack 70001 win 0
        ",
    );
}

/// Delayed ACKs: every second segment, or the timer. RFC 5681 §4.2.
#[test]
fn delayed_acks_by_count_and_by_time() {
    run(
        &Tcp { ack_every: 2, delayed_ack_timeout: Span::from_ms(40), ..base() },
        "
        +0 < . 1:1001
        +0 > none
        +0.01 < . 1001:2001
        +0 > . 1 ack 2001
        +0 < . 2001:3001
        +0 > none
        +0.04 > . 1 ack 3001
        # Data takes the ACK along.
        +0 < . 3001:4001
        +0.01 write 500
        +0 > . 1:501 ack 4001
        +0.1 > none
        # Out of order, a duplicate, and what fills a gap: at once.
        +0 < . 5001:6001
        +0 > . 501 ack 4001 sack 5001:6001
        +0 < . 6001:7001
        +0 > . 501 ack 4001 sack 5001:7001
        +0 < . 8001:9001
        +0 > . 501 ack 4001 sack 8001:9001,5001:7001
        +0 < . 4001:5001
        +0 > . 501 ack 7001 sack 8001:9001
        +0 < . 7001:8001
        +0 > . 501 ack 9001
        +0 < . 7001:8001
        +0 > . 501 ack 9001
        +0 < . 9001:10001 ack 501
        +0 > none
        +0.04 > . 501 ack 10001
        ",
    );
}

/// Linux' quick ACKs: at the start, after out-of-order data, after idle time.
#[test]
fn quick_acks_are_not_delayed() {
    let cfg =
        Tcp { ack_every: 2, delayed_ack_timeout: Span::from_ms(40), quick_acks: 3, rto_initial: Span::from_ms(300), ..base() };
    run(
        &cfg,
        "
        +0 < . 1:1001
        +0 > . 1 ack 1001
        +0 < . 1001:2001
        +0 > . 1 ack 2001
        +0 < . 2001:3001
        +0 > . 1 ack 3001
        +0 < . 3001:4001
        +0 > none
        +0.04 > . 1 ack 4001
        # More than an RTO later.
        +1 < . 4001:5001
        +0 > . 1 ack 5001
        +0 < . 5001:6001
        +0 > . 1 ack 6001
        +0 < . 6001:7001
        +0 > . 1 ack 7001
        +0 < . 7001:8001
        +0 > none
        +0.04 > . 1 ack 8001
        # Out of order, and the gap filled: two of the three.
        +0 < . 9001:10001
        +0 > . 1 ack 8001 sack 9001:10001
        +0 < . 8001:9001
        +0 > . 1 ack 10001
        +0 < . 10001:11001
        +0 > . 1 ack 11001
        +0 < . 11001:12001
        +0 > none
        +0.04 > . 1 ack 12001
        ",
    );
}

/// Pacing: gain · cwnd / SRTT once there is an SRTT.
#[test]
fn pacing_spreads_the_window_over_the_round_trip() {
    let cfg =
        Tcp { pacing: Pacing::Fq(Paced { slow_start_gain: 2.0, gain: 1.25 }), initial_ssthresh: Some(Bytes(4_000)), ..base() };
    run(
        &cfg,
        "
        +0 write 100000
        +0 > . 1:1001
        +0 > . 1001:2001
        +0.1 < . 1 ack 2001
        +0 = srtt 0.1
        # cwnd 3000, ssthresh 4000: gain 1.25, 0.1 · 1000/(1.25 · 3000) s apart.
        +0 > . 2001:3001
        +0.026666666667 > . 3001:4001
        +0.026666666667 > . 4001:5001
        +0.046666666666 < . 1 ack 5001
        +0 = cwnd 4000
        +0 > . 5001:6001
        +0.02 > . 6001:7001
        +0.02 > . 7001:8001
        +0.02 > . 8001:9001
        +0.03 > none
        ",
    );
}

/// In slow start, far below ssthresh, the other gain counts.
#[test]
fn pacing_has_a_gain_for_slow_start() {
    let cfg = Tcp { pacing: Pacing::Fq(Paced { slow_start_gain: 2.0, gain: 1.25 }), ..base() };
    run(
        &cfg,
        "
        +0 write 100000
        +0 > . 1:1001
        +0 > . 1001:2001
        +0.09 < . 1 ack 2001
        +0 = cwnd 3000
        +0 > . 2001:3001
        +0.015 > . 3001:4001
        +0.015 > . 4001:5001
        ",
    );
}

/// A sender with TSO, nine segments of window in congestion avoidance, all of them sent at once.
fn offloading(more: Tcp) -> Tcp {
    Tcp { tso: true, initial_window: Some(9), cwnd_validation: true, initial_ssthresh: Some(Bytes(9_000)), ..more }
}

fn nine() -> String {
    (0..9).map(|i| format!("+0 > . {}:{}\n", 1 + 1000 * i, 1001 + 1000 * i)).collect()
}

/// A burst waits for a third of the window while ACKs are about to make room for it. Source: Linux tcp_tso_should_defer.
#[test]
fn tso_waits_for_a_worthwhile_burst() {
    run(
        &offloading(base()),
        &format!(
            "+0 write 100000
            {}
            +0.0005 < . 1 ack 1001
            +0 > none
            +0.0001 < . 1 ack 2001
            +0 > none
            +0.0001 < . 1 ack 3001
            +0 > . 9001:10001
            +0 > . 10001:11001
            +0 > . 11001:12001
            +0 > none
            +0.0001 < . 1 ack 4001
            +0 > none",
            nine()
        ),
    );
}

/// It does not wait when the next ACK is far: when the oldest segment has left less than half an RTT ago, or nothing for a
/// millisecond. Source: Linux tcp_tso_should_defer.
#[test]
fn tso_does_not_wait_for_an_ack_that_is_far() {
    run(
        &offloading(base()),
        &format!(
            "+0 write 100000
            {}
            +0.0005 < . 1 ack 3001
            +0 > . 9001:10001
            +0 > . 10001:11001
            +0 > . 11001:12001
            +0.0006 < . 1 ack 4001
            +0 > none
            +0.0006 < . 1 ack 5001
            +0 > . 12001:13001
            +0 > . 13001:14001",
            nine()
        ),
    );
    run(
        &offloading(base()),
        &format!(
            "+0 write 100000
            {}
            +0.0005 < . 1 ack 3001
            +0 > . 9001:10001
            +0 > . 10001:11001
            +0 > . 11001:12001
            +0.0002 < . 1 ack 9001
            +0 > . 12001:13001
            +0 > . 13001:14001
            +0 > . 14001:15001
            +0 > . 15001:16001
            +0 > . 16001:17001
            +0 > . 17001:18001
            +0 > . 18001:19001
            +0 > none",
            nine()
        ),
    );
}

/// A window that bursts leave a segment of room in is used up all the same, if that room is what the next burst waits for: it grows by
/// a segment for each window that is acknowledged. Source: Linux tcp_tso_should_defer, tcp_cwnd_validate.
#[test]
fn a_burst_that_waits_shows_that_the_window_is_used_up() {
    let burst = |from: u64, n: u64| -> String {
        (from..from + n).map(|i| format!("+0 > . {}:{}\n", 1 + 1000 * i, 1001 + 1000 * i)).collect()
    };
    run(
        &offloading(base()),
        &format!(
            "+0 write 100000
            {}
            +0.0005 < . 1 ack 5001
            # Half of the window; one more segment would fit.
            {}
            +0 > none
            +0.0005 < . 1 ack 9001
            +0 = cwnd 10000
            {}
            +0 > none
            +0.0005 < . 1 ack 14001
            {}
            +0 > none
            +0.0005 < . 1 ack 19001
            +0 = cwnd 11000
            {}
            +0 > none",
            nine(),
            burst(9, 4),
            burst(13, 5),
            burst(18, 5),
            burst(23, 5),
        ),
    );
}

/// Segments of the burst that a sender would start when all of a window of `cwnd` has been acknowledged after an RTT.
fn burst_of(cfg: &Tcp, cwnd: u32, rtt: Span) -> u64 {
    let cfg = Tcp { initial_window: Some(cwnd), initial_ssthresh: Some(Bytes(1_000 * u64::from(cwnd))), ..cfg.clone() };
    let mut draws = Stream::new(1, Purpose::Transport, 1);
    let mut ends = TcpEndpoint::pair(&cfg, &crate::common::place(), Time::ZERO, &mut draws);
    ends[0].write(&cfg, Time::ZERO, 1 << 30);
    let mut p = Packet::default();
    let mut sent = Vec::new();
    while ends[0].poll(&cfg, Time::ZERO, Kinds::DATA, &mut p.envelope, &mut p.header) {
        sent.push(p);
    }
    assert_eq!(sent.len(), cwnd as usize);
    let now = Time::ZERO + rtt;
    for data in &sent {
        ends[1].on_packet(&cfg, now, &data.envelope, &data.header);
        while ends[1].poll(&cfg, now, Kinds::ALL, &mut p.envelope, &mut p.header) {
            ends[0].on_packet(&cfg, now, &p.envelope, &p.header);
        }
    }
    ends[0].burst(&cfg, now) / 1_000
}

/// A burst is what cwnd / SRTT · 1.2 sends in 1/1024 s, at least two segments, at most 64 KiB and half of the window; where the
/// RTT is short, longer. Source: Linux tcp_tso_autosize.
#[test]
fn tso_bursts_are_a_millisecond_of_the_rate() {
    let wide = Tcp { receive_window: ReceiveWindow::Fixed(FixedWindow { size: Bytes(16_777_216) }), ..base() };
    let (on, off) = (offloading(wide.clone()), offloading(Tcp { tso_rtt_log: 0, ..wide }));
    let ms = Span::from_ms;
    assert_eq!(burst_of(&off, 130, ms(10)), 15); // 1.2 · 131 · 0.9766 / 10
    assert_eq!(burst_of(&off, 130, ms(100)), 2);
    assert_eq!(burst_of(&off, 390, ms(1)), 65);
    assert_eq!(burst_of(&off, 65, ms(1)), 33); // half of the window of 66
    assert_eq!(burst_of(&off, 100, ms(1)), 30); // up to the end of the second socket buffer of 65 segments
    assert_eq!(burst_of(&on, 130, ms(20)), 7); // 7.7, and nothing more at this RTT
    assert_eq!(burst_of(&off, 130, ms(3)), 51); // 51.2
    assert_eq!(burst_of(&on, 130, ms(3)), 53); // 2 KiB more: 64 KiB >> (3000 >> 9)
}

/// Timestamps take 12 bytes of each segment, tick, and are echoed by the rule of RFC 7323 §4.3.
#[test]
fn timestamps_are_echoed_from_the_first_unacknowledged_segment() {
    let cfg = Tcp { timestamps: true, mss: None, ack_every: 2, ..base() };
    run(
        &cfg,
        "
        +0.0105 write 1448
        +0 > . 1:1449 ts 10,0
        +0.01 < . 1:101 ack 1449 ts 500,10
        +0 > none
        +0 < . 101:201 ack 1449 ts 501,10
        # Last.ACK.sent is 1: the first of the two is echoed.
        +0 > . 1449 ack 201 ts 20,500
        # Out of order: TS.Recent stays.
        +0 < . 301:401 ack 1449 ts 502,20
        +0 > . 1449 ack 201 ts 20,500 sack 301:401
        +0 < . 201:301 ack 1449 ts 503,20
        +0 > . 1449 ack 401 ts 20,503
        ",
    );
}

/// RTT from timestamps: each ACK is a sample in ticks. RFC 7323 §4.1.
#[test]
fn rtt_can_come_from_timestamps() {
    let cfg = Tcp { timestamps: true, rtt_sampling: RttSampling::Timestamps, timestamp_tick: Span::from_ms(10), ..base() };
    run(
        &cfg,
        "
        +0.005 write 1000
        +0 > . 1:1001 ts 0,0
        +0.102 < . 1 ack 1001 ts 1,0
        +0 = srtt 0.1
        ",
    );
}

/// Without Nagle's algorithm small writes leave at once.
#[test]
fn small_segments_are_not_held_back() {
    run(
        &Tcp { initial_window: Some(10), ..base() },
        "
        +0 write 10
        +0 > . 1:11
        +0 write 20
        +0 > . 11:31
        +0 write 1005
        +0 > . 31:1031
        +0 > . 1031:1036
        ",
    );
}

/// Events come in causal order, each once.
#[test]
fn events_tell_totals() {
    run(
        &base(),
        "
        +0 write 1500
        +0 > . 1:1001
        +0 > . 1001:1501
        +0 ! none
        +0.1 < . 1:301 ack 1501
        +0 > . 1501 ack 301
        +0 ! Delivered 300
        +0 ! Acked 1500
        +0 ! none
        ",
    );
}
