//! Trimmed packets and NACKs, step by step. Source: NDP §3.1, CP.

use crate::common::script::run;
use crate::common::ten::{after_ten, base, no_sack};
use fanin_transport::cc::{CongestionControl, Dctcp};
use fanin_transport::*;
use fanin_units::Span;

fn answers(cfg: Tcp) -> Tcp {
    Tcp { trim_nack: true, ..cfg }
}

/// The receiver answers each trimmed packet at once, also where ACKs are delayed, and delivers nothing of it; blocks of data that
/// came beside it are reported as in any ACK. A FIN on it is as little there as its data.
#[test]
fn each_trimmed_packet_is_answered_at_once() {
    let cfg = Tcp { ack_every: 2, ..answers(base()) };
    run(
        &cfg,
        "
        +0.1 < . 1:1001 ack 1
        +0 > none
        +0.01 < . 1001:2001 ack 1 trimmed
        # It acknowledges what waited for its delayed ACK, and restarts nothing.
        +0 > . 1 ack 1001 nack 1001:2001
        +0.01 < . 2001:3001 ack 1
        +0 > . 1 ack 1001 sack 2001:3001
        +0.01 < F. 3001:3501 ack 1 trimmed
        +0 > . 1 ack 1001 sack 2001:3001 nack 3001:3501
        +0 = delivered 1000
        +0 = state Established
        +0.01 < . 1001:2001 ack 1
        +0 > . 1 ack 3001
        +0.01 < F. 3001:3501 ack 1
        +0 > . 1 ack 3502
        +0 = delivered 3500
        +0.5 > none
        ",
    );
}

/// Beside timestamps and a NACK there is room for one SACK block, without timestamps for three.
#[test]
fn a_nack_leaves_room_for_fewer_blocks() {
    let all = ["1001:2001", "3001:4001", "5001:6001", "7001:8001"];
    for (timestamps, room, beside) in [(true, 3, 1), (false, 4, 3)] {
        let ts = if timestamps { "ts 1,0" } else { "" };
        let mut text = String::new();
        for n in 1..=all.len() {
            let blocks: Vec<&str> = all[..n].iter().rev().copied().take(room).collect();
            text += &format!("+0.1 < . {} ack 1 {ts}\n+0 > . 1 ack 1 sack {}\n", all[n - 1], blocks.join(","));
        }
        let blocks: Vec<&str> = all.iter().rev().copied().take(beside).collect();
        text += &format!("+0 < . 1:1001 ack 1 {ts} trimmed\n+0 > . 1 ack 1 sack {} nack 1:1001", blocks.join(","));
        run(&Tcp { timestamps, ..answers(base()) }, &text);
    }
}

/// Without `trim_nack` a trimmed packet is nothing: no ACK, no data.
#[test]
fn a_receiver_that_does_not_know_them_ignores_them() {
    let tcp = run(&base(), "+0.1 < . 1:1001 ack 1 trimmed\n+0 > none\n+0.1 < . 1001:2001 ack 1\n+0 > . 1 ack 1 sack 1001:2001");
    assert_eq!(tcp.stats().delivered, 0);
}

/// The sender acts as on a drop notification: the bytes are sent again at once, the window halves, and later duplicate ACKs of the
/// same hole mean nothing new. The NACK's own ACK is no duplicate, with and without SACK.
#[test]
fn a_nack_is_a_drop_notification() {
    for cfg in [answers(base()), answers(no_sack())] {
        after_ten(
            &cfg,
            10_000,
            "
            +0.1 < . 1 ack 2001
            +0 < . 1 ack 2001 nack 2001:3001
            +0 > . 2001:3001
            +0 > none
            +0 = dupacks 0
            +0 = notices 1
            +0 = cuts 1
            +0 = phase Recovery
            +0 = ssthresh 4000
            +0 = cwnd 4000
            # A second one within the round trip is the same congestion.
            +0 < . 1 ack 2001 nack 7001:8001
            +0 > . 7001:8001
            +0 = cuts 1
            +0 = dupacks 0
            +0.1 < . 1 ack 10001
            +0 = phase Open
            +0 = retransmits 2
            +0 = timeouts 0
            ",
        );
    }
}

/// Three NACKs alone are no three duplicate ACKs of data that no NACK has reported.
#[test]
fn nacks_do_not_count_towards_fast_retransmit() {
    after_ten(
        &answers(no_sack()),
        10_000,
        "
        +0.1 < . 1 ack 1 nack 3001:4001
        +0 > . 3001:4001
        +0 < . 1 ack 1 nack 4001:5001
        +0 > . 4001:5001
        +0 < . 1 ack 1 nack 5001:6001
        +0 > . 5001:6001
        +0 > none
        +0 = dupacks 0
        # Segments 2 to 10 have left the network; the first is lost without notification.
        +0 < . 1 ack 1
        +0 < . 1 ack 1
        +0 < . 1 ack 1
        +0 > . 1:1001
        +0 = dupacks 3
        ",
    );
}

/// What a NACK acknowledges counts as ever: RTT sample, window growth, new data, the timer.
#[test]
fn the_acknowledgment_of_a_nack_counts() {
    after_ten(
        &answers(base()),
        100_000,
        "
        +0.1 < . 1 ack 2001 nack 2001:3001
        +0 = srtt 0.1
        +0 = acked 2000
        +0 > . 2001:3001
        +0 > none
        +0 = phase Recovery
        +0 = ssthresh 4000
        ",
    );
}

/// With `drop_resend = "window"` the copy waits for room.
#[test]
fn the_copy_may_wait_for_the_window() {
    let cfg = Tcp { drop_resend: DropResend::Window, ..answers(base()) };
    after_ten(
        &cfg,
        10_000,
        "
        +0.1 < . 1 ack 2001 nack 2001:3001
        +0 > none
        +0 = cwnd 4000
        +0 = pipe 7000
        +0 < . 1 ack 2001 sack 3001:6001
        +0 > none
        +0 < . 1 ack 2001 sack 3001:7001
        +0 > . 2001:3001
        ",
    );
}

/// NACKs of what has arrived, was never sent, or arrives again do no harm; a repeated one is taken for that of the copy.
#[test]
fn stale_nacks_do_no_harm() {
    after_ten(
        &answers(base()),
        10_000,
        "
        +0.1 < . 1 ack 3001 nack 1001:2001
        +0 > none
        +0 < . 1 ack 3001 nack 10001:11001
        +0 > none
        +0 < . 1 ack 3001 nack 900001:901001
        +0 > none
        +0 = notices 0
        +0 = cwnd 11000
        +0 < . 1 ack 3001 nack 3001:4001
        +0 > . 3001:4001
        +0 < . 1 ack 3001 nack 3001:4001
        +0 > . 3001:4001
        +0 = notices 2
        +0 = cuts 1
        ",
    );
}

/// An end without `trim_nack` takes nothing from a NACK.
#[test]
fn a_sender_that_does_not_know_them_takes_the_rest_as_an_ack() {
    after_ten(&base(), 10_000, "+0.1 < . 1 ack 2001 nack 2001:3001\n+0 > none\n+0 = notices 0\n+0 = acked 2000");
}

/// A mark on a header is echoed as one on data: the queue that marked it held it whole. DCTCP reports the change at once, first
/// what came before it.
#[test]
fn marks_on_headers_are_echoed() {
    let classic = Tcp { ecn: true, ..answers(base()) };
    run(
        &classic,
        "
        +0.1 < . 1:1001 ack 1 ecn ce trimmed
        +0 > E. 1 ack 1 nack 1:1001
        +0.1 < . 1:1001 ack 1 ecn ect
        +0 > E. 1 ack 1001
        +0.1 < W. 1001:2001 ack 1 ecn ect trimmed
        +0 > . 1 ack 1001 nack 1001:2001
        +0 = marked 1
        ",
    );
    let control = CongestionControl::Dctcp(Dctcp { g: 0.0625, initial_alpha: 1.0, ..fanin_params::defaults() });
    let ten = answers(base());
    let mut dctcp = Tcp::new(Profile::Rfc, control);
    dctcp = Tcp { mss: ten.mss, handshake: false, timestamps: false, trim_nack: true, ack_every: 2, ..dctcp };
    run(
        &dctcp,
        "
        +0.1 < . 1:1001 ack 1 ecn ect
        +0 > none
        +0 < . 1001:2001 ack 1 ecn ce trimmed
        +0 > . 1 ack 1001
        +0 > E. 1 ack 1001 nack 1001:2001
        # Headers without a mark end nothing: their packet was cut on arrival, where none could be set.
        +0 < . 2001:3001 ack 1 ecn ect trimmed
        +0 > E. 1 ack 1001 nack 2001:3001
        +0 < . 1001:2001 ack 1 ecn ect
        +0 > . 1 ack 2001
        ",
    );
}

/// Where the ACK of a handshake was lost, the headers of the first data open the connection, and are answered.
#[test]
fn headers_open_a_connection_whose_ack_was_lost() {
    let cfg = Tcp { handshake: true, rto_initial: Span::from_s(1), ..answers(base()) };
    crate::common::script::run_as(
        &cfg,
        Role::Responder,
        "
        +0 < S 0 mss 1000 sackok wscale 0
        +0 > S. 0 ack 1 mss 1000
        +0.1 < . 1:1001 ack 1 trimmed
        +0 ! Connected
        +0 > . 1 ack 1 nack 1:1001
        +0 = state Established
        ",
    );
}
