//! packetdrill's scripts of slow start, in our language. Each names its file below google/packetdrill `gtests/net/tcp/slow_start`.

use crate::common::packetdrill::{linux, segments, server, server_with};
use crate::common::script::run_as;
use fanin_transport::{IdleRestart, Role, Tcp};

/// slow-start-ack-per-1pkt: a segment more for each that is acknowledged (RFC 5681 §3.1).
#[test]
fn ack_per_1_segment() {
    let rest: String = (1..=10)
        .map(|n| {
            let wait = [0.105, 0.0, 0.005, 0.0, 0.005, 0.0, 0.005, 0.0, 0.005, 0.0][n - 1];
            format!("+{wait} < . 1 ack {}\n+0 > . {}:{}\n", 1000 * n + 1, 8001 + 2000 * n, 10_001 + 2000 * n)
        })
        .collect();
    server(&linux(), 0.1, &format!("+0 write 30000\n+0 > . 1:10001\n+0 = cwnd 10000\n{rest}+0 = cwnd 20000\n"));
}

/// slow-start-ack-per-2pkt: with delayed ACKs too, since bytes are counted (RFC 3465; the limit of two segments is not Linux's).
#[test]
fn ack_per_2_segments() {
    server(
        &linux(),
        0.1,
        "
        +0 write 30000
        +0 > . 1:10001
        +0.105 < . 1 ack 2001
        +0 > . 10001:14001
        +0.005 < . 1 ack 4001
        +0 > . 14001:18001
        +0.005 < . 1 ack 6001
        +0 > . 18001:22001
        +0.005 < . 1 ack 8001
        +0 > . 22001:26001
        +0.005 < . 1 ack 10001
        +0 > . 26001:30001
        +0 = cwnd 20000
        ",
    );
}

/// slow-start-ack-per-4pkt: four segments for one ACK count as four (Linux's own: RFC 5681 §3.1 counts one, RFC 3465 two).
#[test]
fn ack_per_4_segments() {
    server(
        &linux(),
        0.1,
        "
        +0 write 30000
        +0 > . 1:10001
        +0.11 < . 1 ack 4001
        +0 > . 10001:18001
        +0.01 < . 1 ack 8001
        +0 > . 18001:26001
        +0.005 < . 1 ack 10001
        +0 > . 26001:30001
        +0 = cwnd 20000
        ",
    );
}

/// slow-start-ack-per-2pkt-send-5pkt: half of the window in flight is no reason to let it grow. Linux's own (tcp_is_cwnd_limited: cwnd <
/// 2 · the most in flight).
#[test]
fn five_segments_in_flight_do_not_raise_the_window() {
    server(
        &linux(),
        0.0,
        "
        +0 write 5000
        +0 > . 1:5001
        +0 < . 1 ack 2001
        +0 = cwnd 10000
        +0 < . 1 ack 4001
        +0 = cwnd 10000
        +0 < . 1 ack 5001
        +0 = cwnd 10000
        ",
    );
}

/// slow-start-ack-per-2pkt-send-6pkt: six are, until cwnd is twice as many. Linux's own, as above.
#[test]
fn six_segments_in_flight_raise_it_to_twelve() {
    server(
        &linux(),
        0.0,
        "
        +0 write 6000
        +0 > . 1:6001
        +0 = cwnd 10000
        +0 < . 1 ack 2001
        +0 = cwnd 12000
        +0 < . 1 ack 4001
        +0 = cwnd 12000
        +0 < . 1 ack 6001
        +0 = cwnd 12000
        ",
    );
}

/// slow-start-app-limited: ten segments let the window grow to twenty.
#[test]
fn ten_segments_in_flight_raise_it_to_twenty() {
    server(
        &linux(),
        0.1,
        "
        +0 write 10000
        +0 > . 1:10001
        +0.105 < . 1 ack 2001
        +0 = cwnd 12000
        +0.005 < . 1 ack 4001
        +0 = cwnd 14000
        +0.005 < . 1 ack 6001
        +0 = cwnd 16000
        +0.005 < . 1 ack 8001
        +0 = cwnd 18000
        +0.005 < . 1 ack 10001
        +0 = cwnd 20000
        ",
    );
}

/// slow-start-app-limited-9-packets-out: nine let it grow to eighteen. Linux's own, as above.
#[test]
fn nine_segments_in_flight_raise_it_to_eighteen() {
    server(
        &linux(),
        0.1,
        "
        +0 write 9000
        +0 > . 1:9001
        +0.105 < . 1 ack 2001
        +0 = cwnd 12000
        +0.005 < . 1 ack 4001
        +0 = cwnd 14000
        +0.005 < . 1 ack 6001
        +0 = cwnd 16000
        +0.005 < . 1 ack 8001
        +0 = cwnd 18000
        +0.005 < . 1 ack 9001
        +0 = cwnd 18000
        ",
    );
}

fn after_idle() -> Tcp {
    Tcp { idle_restart: IdleRestart::Decay, ..linux() }
}

/// slow-start-after-idle: two seconds of silence take the window back to the initial one. Linux's own: halved once per RTO (RFC 2861 §3.1),
/// where RFC 5681 §4.1 takes it back at once. (The original has five of ten segments leave: its TSO.)
#[test]
fn after_two_idle_seconds_the_window_is_the_initial_one() {
    server(
        &after_idle(),
        0.1,
        "
        +0 write 26000
        +0 > . 1:10001
        +0 = cwnd 10000
        +0.1 < . 1 ack 10001
        +0 = cwnd 20000
        +0 > . 10001:26001
        +0.1 < . 1 ack 26001
        +0 = cwnd 36000
        +2 write 20000
        +0 > . 26001:36001
        +0 = cwnd 10000
        ",
    );
}

/// slow-start-after-win-update: the same where the receiver had no room: probes of the window do not keep it, and do not change it. (In the
/// original the window shrinks, which Linux takes as it comes; here what was promised can be sent, RFC 9293 §3.8.6, so that it closes.)
#[test]
fn after_a_closed_window_too() {
    let text = "
        +0 < S 0 win 26000 mss 1000 sackok
        +0 > S. 0 ack 1
        +0.1 < . 1 ack 1 win 26000
        +0 write 26000
        +0 > . 1:10001
        +0.1 < . 1 ack 10001 win 16000
        +0 > . 10001:26001
        +0.1 < . 1 ack 26001 win 0
        +0 = cwnd 36000
        +0 write 20000
        +0.3 > . 26000
        +0 = cwnd 36000
        +0.6 > . 26000
        +0 = cwnd 36000
        +1.2 > . 26000
        +0 = cwnd 36000
        +0.9 < . 1 ack 26001 win 65000
        +0 > . 26001:36001
        +0 = cwnd 10000
    ";
    run_as(&after_idle(), Role::Responder, &segments(text, 1000));
}

/// slow-start-fq-ack-per-2pkt: the window grows as without pacing. (The original's departures follow from TSO of two segments and the
/// credit of fq, which are not here; with fq the bursts of the initial window leave at once.)
#[test]
fn pacing_does_not_hinder_growth() {
    let cwnd: String =
        (1..=5).map(|n| format!("+0.005 < . 1 ack {}\n+0 = cwnd {}\n", 2920 * n + 1, 1460 * (10 + 2 * n))).collect();
    let text = format!("+0 write 14600\n+0 > . 1:14601\n+0.1 = cwnd 14600\n{cwnd}");
    server_with(&linux(), 0.1, "mss 1460 sackok wscale 7", 1460, &text);
}
