//! The receiver of the `linux` profile: growing window, adaptive delay of ACKs, merged SACKs, D-SACK, PAWS. Functions are those of
//! Linux 5.15 to 6.18.

use crate::common::script::{run, run_as};
use fanin_transport::cc::{CongestionControl, NewReno};
use fanin_transport::*;
use fanin_units::{Bytes, Span};

/// The `linux` profile with segments of 1000 bytes, without timestamps, a fixed window and no SACKs merged.
fn base() -> Tcp {
    let mut cfg = Tcp::new(Profile::Linux, CongestionControl::NewReno(NewReno {}));
    cfg.handshake = false;
    cfg.mss = Some(1000);
    cfg.timestamps = false;
    cfg.rto_initial = Span::from_ms(300);
    cfg.receive_window = ReceiveWindow::Fixed(FixedWindow { size: Bytes(65_535) });
    cfg.sack_compression = SackCompression::None(Uncompressed {});
    cfg
}

/// As [`base`], with one quick ACK instead of 16.
fn calm() -> Tcp {
    Tcp { quick_acks: 1, ..base() }
}

fn auto(buffer: u64, max_buffer: u64, frame_share: Option<f64>) -> ReceiveWindow {
    ReceiveWindow::Auto(GrowingWindow {
        buffer: Bytes(buffer),
        max_buffer: Bytes(max_buffer),
        share: 0.5,
        frame_share,
        growth: WindowGrowth::Linux618,
    })
}

/// The first ACK of data, then `rest`: what follows is delayed.
fn after_first(cfg: &Tcp, rest: &str) {
    run(cfg, &format!("+0 < . 1:1001\n+0 > . 1 ack 1001\n{rest}"));
}

/// __tcp_ack_snd_check: more than one segment of the size seen (rcv_mss) is acknowledged at once, one waits 40 ms (TCP_ATO_MIN). It
/// counts bytes, not packets.
#[test]
fn more_than_one_full_segment_is_acknowledged_at_once() {
    after_first(
        &calm(),
        "
        +0 < . 1001:2001
        +0 > none
        +0.01 < . 2001:3001
        +0 > . 1 ack 3001
        +0 < . 3001:4001
        +0.04 > . 1 ack 4001
        # 999 bytes and 1 byte are no more than a segment. None has PSH, and each is long enough to be taken for a full one.
        +0.01 < . 4001:5000
        +0 > . 1 ack 5000
        +0.01 < . 5000:6000
        +0 > none
        +0.01 < . 6000:7000
        +0 > . 1 ack 7000
        ",
    );
}

/// tcp_event_data_recv, tcp_delack_timer_handler: arrivals 30 ms apart stretch the delay (ato/2 + gap), an ACK that nothing overtook
/// doubles it; it stays below max (SRTT, 40 ms). Here no RTT is known, so the RTT seen as a receiver bounds it.
#[test]
fn the_delay_stays_within_its_bounds() {
    let script = |second: &str| {
        format!(
            "
            +0.05 < . 1001:2001
            +0.04 > . 1 ack 2001
            +0.05 < . 2001:3001
            {second} > . 1 ack 3001
            "
        )
    };
    after_first(&calm(), &script("+0.04"));
    // The handshake has measured an RTT of 90 ms, the doubled delay (80 ms) is below it.
    let cfg = Tcp { handshake: true, ..calm() };
    run_as(
        &cfg,
        Role::Responder,
        "
        +0 < S 0 win 65535 sackok
        +0 > S. 0 ack 1
        +0.09 < . 1 ack 1
        +0 = srtt 0.09
        +0 < . 1:1001 ack 1
        +0 > . 1 ack 1001
        +0.05 < . 1001:2001 ack 1
        +0.04 > . 1 ack 2001
        +0.09 < . 2001:3001 ack 1
        +0.08 > . 1 ack 3001
        ",
    );
}

/// TCP_DELACK_MAX: after a message that may have ended, on a connection that answers, no delay is longer.
#[test]
fn delayed_ack_max_bounds_the_delay() {
    run(
        &Tcp { delayed_ack_max: Span::from_ms(45), delayed_ack_timeout: Span::from_ms(45), ..calm() },
        "+0 < . 1:1001\n+0 > . 1 ack 1001\n+0 < . 1001:2001\n+0.045 > . 1 ack 2001",
    );
    let cfg = Tcp { handshake: true, delayed_ack_max: Span::from_ms(60), ..calm() };
    run_as(
        &cfg,
        Role::Responder,
        "
        +0 < S 0 win 65535 sackok
        +0 > S. 0 ack 1
        +0.09 < . 1 ack 1
        +0 < . 1:1001 ack 1
        +0 > . 1 ack 1001
        +0.05 < . 1001:2001 ack 1
        +0.04 > . 1 ack 2001
        +0.09 < . 2001:3001 ack 1
        +0.06 > . 1 ack 3001
        ",
    );
}

/// tcp_send_delayed_ack: a second short segment when the timer has no more than a quarter of the delay to go is acknowledged at once.
/// The application does not read, or the end of a second message would be acknowledged anyway.
#[test]
fn a_timer_about_to_expire_is_not_waited_for() {
    let script = |wait: f64, then: &str| format!("+0 hold\n+0 < . 1001:1301\n+{wait} < . 1301:1602\n{then}");
    after_first(&calm(), &script(0.029, "+0 > none\n+0.011 > . 1 ack 1602"));
    after_first(&calm(), &script(0.031, "+0 > . 1 ack 1602"));
}

/// tcp_measure_rcv_mss, __tcp_cleanup_rbuf: once the application has read it, the end of a message (a short segment, or PSH) is
/// acknowledged at once, on a connection in one direction.
#[test]
fn the_end_of_a_message_does_not_wait() {
    after_first(
        &calm(),
        "
        +0.01 < P. 1001:1101
        +0 > . 1 ack 1101
        +0.01 < P. 1101:2101
        +0 > . 1 ack 2101
        +0.01 < . 2101:3101
        +0 > none
        +0.04 > . 1 ack 3101
        ",
    );
    // Not read, it waits.
    after_first(&calm(), "+0 hold\n+0.01 < P. 1001:1101\n+0 > none\n+0.04 > . 1 ack 1101");
}

/// tcp_event_data_sent: an end that answers within the delay of an ACK lets the answer carry it (pingpong); an ACK that had to be sent
/// alone ends that (tcp_delack_timer_handler).
#[test]
fn an_answer_carries_the_acknowledgment() {
    after_first(
        &base(),
        "
        +0.01 write 100
        +0 > . 1:101 ack 1001
        +0.1 < P. 1001:1101 ack 101
        +0 > none
        +0.01 write 100
        +0 > . 101:201 ack 1101
        +0.1 < P. 1101:1201 ack 201
        +0.04 > . 201 ack 1201
        +0.1 < P. 1201:1301 ack 201
        +0 > . 201 ack 1301
        ",
    );
}

/// tcp_incr_quickack: at most 16 quick ACKs, and half as many as segments fit into the window; two at least.
#[test]
fn quick_acks_are_half_a_window() {
    for (size, quick) in [(65_535, 16), (8_000, 4), (1_500, 2)] {
        let cfg = Tcp { receive_window: ReceiveWindow::Fixed(FixedWindow { size: Bytes(size) }), ..base() };
        let mut text = String::new();
        for i in 0..quick {
            text += &format!("+0 < . {}:{}\n+0 > . 1 ack {}\n", 1 + 1000 * i, 1001 + 1000 * i, 1001 + 1000 * i);
        }
        run(
            &cfg,
            &format!(
                "{text}+0 < . {}:{}\n+0 > none\n+0.04 > . 1 ack {}",
                1 + 1000 * quick,
                1001 + 1000 * quick,
                1001 + 1000 * quick
            ),
        );
    }
}

/// tcp_enter_quickack_mode after a duplicate; after data out of order the kernel's ACKs are delayed again, those of RFC 5681 are too.
#[test]
fn duplicates_make_acks_quick_and_gaps_do_not() {
    let cfg = Tcp { quick_acks: 1, dsack: false, ..base() };
    after_first(
        &cfg,
        "
        +0 < . 2001:3001
        +0 > . 1 ack 1001 sack 2001:3001
        # It fills the last gap: ICSK_ACK_NOW.
        +0 < . 1001:2001
        +0 > . 1 ack 3001
        +0 < . 3001:4001
        +0 > none
        +0 < . 1:1001
        +0 > . 1 ack 4001
        ",
    );
    let cfg = Tcp { quick_acks: 3, dsack: false, ..base() };
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
        +0 < . 1:1001
        +0 > . 1 ack 4001
        +0 < . 4001:5001
        +0 > . 1 ack 5001
        +0 < . 5001:6001
        +0 > . 1 ack 6001
        +0 < . 6001:7001
        +0 > none
        +0.04 > . 1 ack 7001
        ",
    );
}

/// __tcp_ecn_check_ce, tcp_ecn_accept_cwr: the first mark makes two ACKs quick, CWR one.
#[test]
fn marks_make_acks_quick() {
    let cfg = Tcp { ecn: true, quick_acks: 2, ..base() };
    run(
        &cfg,
        "
        +0 < . 1:1001 ecn ect
        +0 > . 1 ack 1001
        +0 < . 1001:2001 ecn ect
        +0 > . 1 ack 2001
        +0 < . 2001:3001 ecn ect
        +0 > none
        +0.04 > . 1 ack 3001
        +0 < . 3001:4001 ecn ce
        +0 > E. 1 ack 4001
        +0 < . 4001:5001 ecn ce
        +0 > E. 1 ack 5001
        +0 < . 5001:6001 ecn ce
        +0 > none
        +0.01 < W. 6001:7001 ecn ect
        +0 > . 1 ack 7001
        +0 < . 7001:8001 ecn ect
        +0 > none
        # A retransmission is not ECN-capable, and the window may be small.
        +0.001 < . 8001:9001
        +0 > . 1 ack 9001
        +0 < . 9001:10001 ecn ect
        +0 > . 1 ack 10001
        ",
    );
}

/// tcp_compressed_ack_kick: after three ACKs with the same number at once, those of further segments out of order are merged: 5 % of
/// the RTT, at most 1 ms, and the timer's slack later. What fills the gap is acknowledged at once.
#[test]
fn acks_of_segments_out_of_order_are_merged() {
    let timer = |delay: u64, most: u32| {
        SackCompression::Timer(CompressedSacks { delay: Span::from_us(delay), slack: Span::from_us(100), most })
    };
    let dup = |n: u32| format!("+0 < . {}:{}\n", 2001 + 1000 * n, 3001 + 1000 * n);
    let ack = |n: u32| format!(" > . 1 ack 1001 sack 2001:{}\n", 3001 + 1000 * n);
    let three: String = (0..3).map(|n| format!("{}+0{}", dup(n), ack(n))).collect();
    let with = |compression: SackCompression, rest: &str| {
        let cfg = Tcp { handshake: true, sack_compression: compression, ..calm() };
        run_as(
            &cfg,
            Role::Responder,
            &format!(
                "
                +0 < S 0 win 65535 sackok
                +0 > S. 0 ack 1
                +0.01 < . 1 ack 1
                +0 < . 1:1001 ack 1
                +0 > . 1 ack 1001
                # The window of 65,535 bytes has come within 20 ms at the latest: the RTT of the handshake is less.
                {three}{rest}"
            ),
        );
    };
    // Without an RTT of the receiver's own only the slack remains; the kernel takes the smaller of the two.
    with(timer(1000, 44), &format!("{}{}+0 > none\n+0.0001{}", dup(3), dup(4), ack(4)));
    with(timer(1000, 2), &format!("{}{}+0 > none\n{}+0{}", dup(3), dup(4), dup(5), ack(5)));
    with(timer(1000, 44), &format!("{}+0 > none\n+0 < . 1001:2001\n+0 > . 1 ack 6001\n+0.01 > none", dup(3)));
    with(SackCompression::None(Uncompressed {}), &format!("{}+0{}", dup(3), ack(3)));
}

/// The delay of merged SACKs is 5 % of the RTT that the receiver has measured, here 10 ms by timestamps, and `delay` at most.
#[test]
fn merged_sacks_wait_for_a_twentieth_of_the_rtt() {
    for (delay, wait) in [(1000, 0.0006), (200, 0.0003)] {
        let compression =
            SackCompression::Timer(CompressedSacks { delay: Span::from_us(delay), slack: Span::from_us(100), most: 44 });
        let cfg = Tcp { timestamps: true, sack_compression: compression, ..base() };
        run(
            &cfg,
            "
            +0.005 < . 1:1001 ts 5,0
            +0 > . 1 ack 1001 ts 5,5
            +0.01 < . 1001:2001 ts 15,5
            +0 > . 1 ack 2001 ts 15,15
            +0 < . 3001:4001 ts 15,5
            +0 > . 1 ack 2001 sack 3001:4001
            +0 < . 4001:5001 ts 15,5
            +0 > . 1 ack 2001 sack 3001:5001
            +0 < . 5001:6001 ts 15,5
            +0 > . 1 ack 2001 sack 3001:6001
            # Quick ACKs are not merged: 11 of 16 are left.
            +0 < . 6001:7001 ts 15,5
            +0 > . 1 ack 2001 sack 3001:7001
            ",
        );
        let mut text = "+0.005 < . 1:1001 ts 5,0\n+0 > . 1 ack 1001\n+0.01 < . 1001:2001 ts 15,5\n+0 > none\n+0 < . 3001:4001 ts 15,5\n+0 > . 1 ack 2001 sack 3001:4001\n".to_string();
        for n in 4..6 {
            text += &format!("+0 < . {n}001:{}001 ts 15,5\n+0 > . 1 ack 2001 sack 3001:{}001\n", n + 1, n + 1);
        }
        text += &format!("+0 < . 6001:7001 ts 15,5\n+0 > none\n+{wait} > . 1 ack 2001 sack 3001:7001\n");
        run(&Tcp { quick_acks: 1, ..cfg }, &text);
    }
}

/// TCP_SACK_BLOCKS_EXPECTED: a third range of data does not wait for the timer, or an ACK would have no room for it.
#[test]
fn a_third_range_is_not_merged() {
    let compression = SackCompression::Timer(CompressedSacks { delay: Span::from_ms(1), slack: Span::from_us(100), most: 44 });
    after_first(
        &Tcp { sack_compression: compression, ..calm() },
        "
        +0 < . 2001:3001
        +0 > . 1 ack 1001 sack 2001:3001
        +0 < . 3001:4001
        +0 > . 1 ack 1001 sack 2001:4001
        +0 < . 4001:5001
        +0 > . 1 ack 1001 sack 2001:5001
        +0 < . 6001:7001
        +0 > none
        +0 < . 8001:9001
        +0 > . 1 ack 1001 sack 8001:9001,6001:7001,2001:5001
        ",
    );
}

/// RFC 2883 §4.1, §4.2: the first block reports what arrived twice, below the acknowledgment or within a later block; it is reported
/// once.
#[test]
fn duplicates_are_reported_in_the_first_block() {
    let cfg = base();
    run(
        &cfg,
        "
        +0 < . 1:1001
        +0 > . 1 ack 1001
        +0 < . 1001:2001
        +0 > . 1 ack 2001
        # §4.1.1: a whole segment below the acknowledgment.
        +0 < . 1:1001
        +0 > . 1 ack 2001 sack 1:1001
        +0 < . 3001:4001
        +0 > . 1 ack 2001 sack 3001:4001
        # §4.1.3: out of order, and received before; the range follows.
        +0 < . 3001:4001
        +0 > . 1 ack 2001 sack 3001:4001,3001:4001
        # §4.2: partly.
        +0 < . 3501:4501
        +0 > . 1 ack 2001 sack 3501:4001,3001:4501
        +0 < . 6001:7001
        +0 > . 1 ack 2001 sack 6001:7001,3001:4501
        # Partly below the acknowledgment.
        +0 < . 1501:2501
        +0 > . 1 ack 2501 sack 1501:2001,6001:7001,3001:4501
        # It fills the gap and reaches into what waited (tcp_ofo_queue).
        +0 < . 2501:3501
        +0 > . 1 ack 4501 sack 3001:3501,6001:7001
        +0 < . 4501:5501
        +0 > . 1 ack 5501 sack 6001:7001
        ",
    );
    run(&Tcp { dsack: false, ..cfg.clone() }, "+0 < . 1:1001\n+0 > . 1 ack 1001\n+0 < . 1:1001\n+0 > . 1 ack 1001");
    run(&Tcp { sack: false, ..cfg }, "+0 < . 1:1001\n+0 > . 1 ack 1001\n+0 < . 1:1001\n+0 > . 1 ack 1001");
}

/// RFC 2018 §3: with timestamps there is room for three blocks, and the duplicate takes one.
#[test]
fn with_timestamps_three_blocks_fit() {
    run(
        &Tcp { timestamps: true, ..base() },
        "
        +0 < . 2001:3001 ts 1,0
        +0 > . 1 ack 1 sack 2001:3001
        +0 < . 4001:5001 ts 1,0
        +0 > . 1 ack 1 sack 4001:5001,2001:3001
        +0 < . 6001:7001 ts 1,0
        +0 > . 1 ack 1 sack 6001:7001,4001:5001,2001:3001
        +0 < . 8001:9001 ts 1,0
        +0 > . 1 ack 1 sack 8001:9001,6001:7001,4001:5001
        +0 < . 2001:3001 ts 1,0
        +0 > . 1 ack 1 sack 2001:3001,2001:3001,8001:9001
        ",
    );
}

/// RFC 2883 §4: a sender that does not act on duplicates must not take such a block for a loss or a delivery, below the
/// acknowledgment or within a block above it.
#[test]
fn a_reported_duplicate_is_no_news_to_the_sender() {
    let cfg = Tcp { initial_window: Some(4), ..base() };
    run(
        &cfg,
        "
        +0 write 4000
        +0 > . 1:1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0 > . 3001:4001
        +0.01 < . 1 ack 1001
        +0 < . 1 ack 1001 sack 1:1001
        +0 = dupacks 0
        +0 = pipe 3000
        +0 < . 1 ack 1001 sack 2001:3001
        +0 = dupacks 1
        +0 = pipe 2000
        +0 < . 1 ack 1001 sack 2001:3001,2001:3001
        +0 = dupacks 1
        +0 = pipe 2000
        ",
    );
}

/// RFC 7323 §5.3 R1, tcp_paws_discard: a segment with a timestamp more than a tick older than TS.Recent is dropped and acknowledged;
/// one tick is allowed (TCP_PAWS_WINDOW).
#[test]
fn segments_from_the_past_are_dropped() {
    let script = |value: u32, then: &str| {
        format!(
            "
            +0 < . 1:1001 ts 100,0
            +0 > . 1 ack 1001 ts 0,100
            +0 < . 1001:2001 ts {value},0
            {then}
            "
        )
    };
    let cfg = Tcp { timestamps: true, ..base() };
    run(&cfg, &script(99, "+0 > . 1 ack 2001 ts 0,100\n+0 = delivered 2000"));
    run(&cfg, &script(98, "+0 > . 1 ack 1001 ts 0,100\n+0 = delivered 1000"));
    run(&Tcp { paws: false, ..cfg.clone() }, &script(98, "+0 > . 1 ack 2001 ts 0,100\n+0 = delivered 2000"));
    // A FIN from the past is not taken, either; data received before is reported.
    run(
        &Tcp { handshake: true, ..cfg },
        "
        +0 > S 0
        +0.1 < S. 0 ack 1 ts 100,0 sackok
        +0 > . 1 ack 1
        +0 < . 1:1001 ack 1 ts 100,100
        +0 > . 1 ack 1001
        +0 < F. 1001 ack 1 ts 90,100
        +0 > . 1 ack 1001
        +0 = state Established
        +0 < . 1:1001 ack 1 ts 90,100
        +0 > . 1 ack 1001 sack 1:1001
        ",
    );
}

/// tcp_disordered_ack: an ACK that was overtaken is no segment from the past while it says nothing new; one that opens the window is.
#[test]
fn an_overtaken_duplicate_ack_is_taken() {
    let cfg = Tcp { timestamps: true, initial_window: Some(2), ..base() };
    run(
        &cfg,
        "
        +0 write 2000
        +0 > . 1:1001
        +0 > . 1001:2001
        +0.1 < . 1 ack 1001 ts 200,0 win 1000
        +0 < . 1 ack 1001 ts 190,0 win 1000
        +0 > none
        +0 < . 1 ack 2001 ts 190,0 win 1000
        +0 > . 2001 ack 1 ts 100,200
        +0 = acked 1000
        +0 < . 1 ack 1001 ts 190,0
        +0 > . 2001 ack 1 ts 100,200
        +0 < . 1 ack 2001 ts 200,0
        +0 = acked 2000
        ",
    );
}

/// RFC 9293 §3.10.7.4: an ACK of data that was never sent is answered, and its segment dropped, with its data and its FIN.
#[test]
fn a_fin_with_an_ack_of_what_was_never_sent_is_dropped() {
    for profile in [Profile::Linux, Profile::Rfc] {
        let mut cfg = Tcp::new(profile, CongestionControl::NewReno(NewReno {}));
        cfg.timestamps = false;
        run(
            &cfg,
            "
            +0 > S 0
            +0.1 < S. 0 ack 1 sackok
            +0 > . 1 ack 1
            +0 < F. 1:101 ack 5000
            +0 > . 1 ack 1
            +0 = state Established
            +0 = delivered 0
            +0 < F. 1:101 ack 1
            +0 > . 1 ack 102
            +0 = state CloseWait
            ",
        );
    }
}

/// RFC 5961 §4: a SYN on an open connection is answered with an ACK (a challenge), whatever its number.
#[test]
fn a_syn_on_an_open_connection_is_challenged() {
    run(&base(), "+0 < S 5000\n+0 > . 1 ack 1\n+0 = state Established");
}

/// tcp_select_initial_window, tcp_init_buffer_space: of 131,072 bytes half is window; a SYN offers whole segments of it, an open
/// connection a segment less, rounded up to the scale of 7 that 6 MiB need: the windows 64,240 and 501 · 128 of every trace.
#[test]
fn the_first_windows_are_those_of_the_kernel() {
    let cfg = Tcp { handshake: true, timestamps: true, mss: None, receive_window: auto(131_072, 6_291_456, None), ..base() };
    // Deviation: the kernel's SYN does not know yet that 12 bytes of options follow, and offers 64,240; its SYN/ACK 65,160, as here.
    run_as(
        &cfg,
        Role::Responder,
        "
        +0 < S 0 win 65535 wscale 7 sackok
        +0 > S. 0 ack 1 win 65160
        +0.1 < . 1 ack 1
        +0 < . 1:1449 ack 1
        # 65,160 were promised, of which 63,712 are left.
        +0 > . 1 ack 1449 win 501
        ",
    );
    let cfg = Tcp { handshake: false, ..cfg };
    assert_eq!((cfg.window_scale(), cfg.opening_window(1448)), (7, 64_128));
    run(&cfg, "+0 < . 1:1449\n+0 > . 1 ack 1449 win 501\n+0 < . 1449:2897\n+0 > . 1 ack 2897 win 501");
}

/// tcp_measure_rcv_mss in 6.12: the first full segment shows how much of the memory is payload; 160/256 of 131,072 are 81,920 bytes,
/// to which two segments are earned by each (tcp_grow_window), each of which is acknowledged at once.
#[test]
fn the_first_full_segment_sets_the_share_of_memory() {
    let script = "
        +0 < . 1:201
        +0 > . 1 ack 201 win 505
        +0 < . 201:1201
        +0 > . 1 ack 1201 win 521
        +0 < . 1201:2201
        +0 > . 1 ack 2201 win 537
        ";
    // 65,536 less a segment: 64,536 bytes are 505 · 128, which are earned as they were offered (tcp_set_window_clamp). With 5.15 they
    // stay.
    let cfg = Tcp { receive_window: auto(131_072, 6_291_456, Some(0.625)), ..base() };
    run(&cfg, script);
    let cfg = Tcp { receive_window: auto(131_072, 6_291_456, None), ..base() };
    run(&cfg, &script.replace("win 521", "win 505").replace("win 537", "win 505"));
    // A share that is smaller takes the window back; what was promised is kept.
    let cfg = Tcp { receive_window: auto(131_072, 6_291_456, Some(0.25)), ..base() };
    run(&cfg, "+0 < . 1:1001\n+0 > . 1 ack 1001 win 498\n+0 < . 1001:2001\n+0 > . 1 ack 2001 win 491");
}

/// tcp_rcv_space_adjust: more than ten segments in an RTT, 20 here, make room for twice as many and twice the growth (20/10 − 1) on
/// top. The window follows by two segments for each that arrives (tcp_grow_window). How far: scripts_linux_flow.
#[test]
fn the_window_follows_what_arrives_in_a_round_trip() {
    let cfg = Tcp { timestamps: true, receive_window: auto(131_072, 6_291_456, None), quick_acks: 1, ..base() };
    let mut text = "+0.01 < . 1:1001 ts 10,0\n+0 > . 1 ack 1001 win 505\n".to_string();
    // The echo of that ACK shows an RTT of 10 ms.
    for n in 1..20 {
        let wait = if n == 1 { 0.01 } else { 0.0 };
        text += &format!("+{wait} < . {n}001:{}001 ts 20,10\n", n + 1);
        if n % 2 == 0 {
            text += &format!("+0 > . 1 ack {}001 win 505\n", n + 1);
        }
    }
    // Here the round ends: 21 segments since it began with the first; from here on each one is acknowledged.
    text += "+0.01 < . 20001:21001 ts 30,20\n+0 > . 1 ack 21001 win 505\n";
    text += "+0 < . 21001:22001 ts 30,20\n+0 > . 1 ack 22001 win 520\n";
    text += "+0 < . 22001:23001 ts 30,20\n+0 > . 1 ack 23001 win 536\n";
    text += "+0 < . 23001:23101 ts 30,20\n+0 > . 1 ack 23101 win 536\n";
    text += "+0 < . 23101:23231 ts 30,20\n+0 > . 1 ack 23231 win 552\n";
    run(&cfg, &text);
}

/// The RTT of the receiver is the lowest at once and others by an eighth (tcp_rcv_rtt_update): under a queue, the round in which bytes
/// are counted is the present RTT, so that the window grows with it.
#[test]
fn the_receivers_rtt_follows_a_queue() {
    // After 5 ms: an RTT of 5 ms; then 13 ms: 5 + (13 - 5)/8 = 6 ms. Merged SACKs wait for a twentieth of it.
    let compression = SackCompression::Timer(CompressedSacks { delay: Span::from_ms(1), slack: Span::ZERO, most: 44 });
    let cfg = Tcp { timestamps: true, sack_compression: compression, quick_acks: 1, ..base() };
    let mut text = "
        +0.005 < . 1:1001 ts 5,0
        +0 > . 1 ack 1001 ts 5,5
        +0.005 < . 1001:2001 ts 10,5
        +0 > none
        +0.001 < . 2001:3001 ts 10,5
        +0 > . 1 ack 3001 ts 11,10
        +0.013 < . 3001:4001 ts 24,11
        +0 > none
        +0 < . 5001:6001 ts 24,11
        +0 > . 1 ack 4001 sack 5001:6001
        "
    .to_string();
    for n in 6..8 {
        text += &format!("+0 < . {n}001:{}001 ts 24,11\n+0 > . 1 ack 4001 sack 5001:{}001\n", n + 1, n + 1);
    }
    text += "+0 < . 8001:9001 ts 24,11\n+0.0003 > . 1 ack 4001 sack 5001:9001\n";
    run(&cfg, &text);
}

/// __tcp_select_window, __tcp_cleanup_rbuf: a reader that stops closes the window; below a segment, or a sixteenth of the memory, it
/// is zero. It is announced again once it has doubled.
#[test]
fn a_slow_reader_closes_a_growing_window() {
    let cfg = Tcp { receive_window: auto(16_000, 16_000, None), ..base() };
    // 8000 bytes of window, 7000 on an open connection; no scale, so whole segments are offered.
    run(
        &cfg,
        "
        +0 hold
        +0 < . 1:1001
        +0 > . 1 ack 1001 win 7000
        +0 < . 1001:2001
        +0 > . 1 ack 2001 win 6000
        # Less than half is free: ACKs are no longer quick.
        +0 < . 2001:5001
        +0 > none
        +0.04 > . 1 ack 5001 win 3000
        +0 < . 5001:6001
        +0 > none
        +0.04 > . 1 ack 6001 win 2000
        # Of 8000 bytes 300 are free: less than a segment. What was promised is kept, and no more.
        +0 < . 6001:7701
        # The RTT is now known to be at most 80 ms: a window came in that time.
        +0.08 > . 1 ack 7701 win 300
        +0 read 900
        +0 > none
        +0 read 3000
        +0 > . 1 ack 7701 win 4000
        ",
    );
}

/// What is set and does nothing beside the rest of the configuration has no test of its own: see `config::check`.
#[test]
fn a_receiver_without_any_of_it_keeps_nothing() {
    let rfc = Tcp { handshake: false, timestamps: false, mss: Some(1000), ..Tcp::default() };
    let text = format!("{:?}", run(&rfc, "+0 < . 1:1001\n+0 > none\n+0.2 > . 1 ack 1001"));
    assert!(text.contains("rx: None"), "{text}");
}
