//! The end of slow start, what makes the window grow, and what reductions start from: Linux and the RFCs.

use crate::common::script::run;
use crate::common::ten::{after_ten, base};
use fanin_transport::cc::{CongestionControl, Cubic};
use fanin_transport::*;
use fanin_units::Bytes;

fn cubic(c: f64) -> CongestionControl {
    CongestionControl::Cubic(Cubic { c, beta: 0.7, fast_convergence: true, reno_friendly: true })
}

/// NewReno with the window arithmetic of Linux and no limit in slow start.
fn linux() -> Tcp {
    Tcp { window_rules: WindowRules::Linux, slow_start_limit: 65_535, ..base() }
}

/// Lines for segments `from` to `to` of 1000 bytes that leave now.
fn leave(from: u32, to: u32) -> String {
    (from..to).map(|i| format!("+0 > . {}:{}\n", 1000 * i + 1, 1000 * i + 1001)).collect()
}

/// The clump after a timeout: forty segments, all SACKed but the first, whose retransmission is lost too. The ACK that comes at last
/// covers forty segments, of which one is news: two may leave, not as many as ssthresh has room for.
///
/// Source: Linux tcp_cong_avoid (acked_sacked), tcp_slow_start; RFC 5681 §3.1: "previously unacknowledged".
#[test]
fn an_ack_over_what_was_sacked_long_ago_lets_two_segments_go() {
    for window_rules in [WindowRules::Linux, WindowRules::Rfc] {
        let cfg = Tcp { initial_window: Some(40), window_rules, ..linux() };
        run(
            &cfg,
            &format!(
                "+0 write 40000
                {}
                +0.1 < . 1 ack 1 sack 1001:40001
                +0 > . 1:1001
                +0 = ssthresh 20000
                +0 = phase Recovery
                # One RTO later: RFC 6298 §5.4.
                +0.9 > . 1:1001
                +0 = phase Loss
                +0 write 100000
                +0 > none
                +0 = cwnd 1000
                +0.1 < . 1 ack 40001
                +0 = cwnd 2000
                +0 = phase Open
                {}
                +0 > none
                ",
                leave(0, 40),
                leave(40, 42)
            ),
        );
    }
}

/// A timeout within a recovery leaves ssthresh as the recovery has set it. Source: Linux tcp_enter_loss. RFC 5681 §3.1 reduces
/// whenever the segment was not sent by the timer before.
#[test]
fn a_timeout_in_recovery_reduces_once_more_only_by_the_rfc() {
    for (window_rules, after) in [(WindowRules::Linux, 5000), (WindowRules::Rfc, 2500)] {
        after_ten(
            &Tcp { window_rules, ..linux() },
            10_000,
            &format!(
                "+0.1 < . 1 ack 1 sack 1001:10001
                +0 > . 1:1001
                +0 = ssthresh 5000
                +0.9 > . 1:1001
                +0 = ssthresh {after}
                # The next one belongs to the same reduction: RFC 5681 §3.1, Linux icsk_retransmits.
                +2 > . 1:1001
                +0 = ssthresh {after}
                "
            ),
        );
    }
}

/// Six segments in flight under a window of ten, seven: half of cwnd in whole segments, or of FlightSize.
/// Source: Linux tcp_reno_ssthresh; RFC 5681 §3.1 equation 4.
#[test]
fn a_loss_takes_half_of_cwnd_or_of_flight_size() {
    for (window_rules, iw, ssthresh) in
        [(WindowRules::Linux, 10, 5000), (WindowRules::Linux, 7, 3000), (WindowRules::Rfc, 10, 3000)]
    {
        run(
            &Tcp { window_rules, initial_window: Some(iw), ..linux() },
            &format!(
                "+0 write 6000
                {}
                +0.1 < . 1 ack 1 sack 2001:6001
                +0 > . 1:1001
                +0 = ssthresh {ssthresh}
                +0 > . 1001:2001
                ",
                leave(0, 6)
            ),
        );
    }
}

/// The same for an ECN echo and for a timeout. Source: Linux tcp_enter_cwr, tcp_enter_loss.
#[test]
fn ecn_and_timeouts_take_half_of_cwnd_or_of_flight_size() {
    for (window_rules, ecn, rto) in [(WindowRules::Linux, 5000, 5000), (WindowRules::Rfc, 3000, 3000)] {
        let cfg = Tcp { window_rules, ..linux() };
        run(
            &Tcp { ecn: true, ..cfg.clone() },
            &format!("+0 write 6000\n{}\n+0.1 < .E 1 ack 1001\n+0 = ssthresh {ecn}", leave(0, 6)),
        );
        run(&cfg, &format!("+0 write 6000\n{}\n+1 > . 1:1001\n+0 = ssthresh {rto}", leave(0, 6)));
    }
}

/// CUBIC too, 717/1024 of whole segments. Source: Linux cubictcp_recalc_ssthresh.
#[test]
fn cubic_takes_seven_tenths_of_whole_segments() {
    for (window_rules, ssthresh) in [(WindowRules::Linux, 7000), (WindowRules::Rfc, 6300)] {
        run(
            &Tcp { window_rules, congestion_control: cubic(0.4), initial_window: Some(11), ..linux() },
            &format!(
                "+0 write 9000
                {}
                +0.1 < . 1 ack 1 sack 1001:9001
                +0 = ssthresh {ssthresh}
                +0 > . 1:1001
                ",
                leave(0, 9)
            ),
        );
    }
}

/// Congestion avoidance: reordered segments that were SACKed do not count again when the ACK covers them.
/// Source: Linux tcp_cong_avoid (acked_sacked); RFC 5681 §3.1, which counts what is acknowledged cumulatively.
#[test]
fn avoidance_counts_what_is_delivered_or_acknowledged() {
    for (window_rules, cwnd) in [(WindowRules::Linux, 10_000), (WindowRules::Rfc, 11_000)] {
        let cfg = Tcp { window_rules, initial_ssthresh: Some(Bytes(10_000)), dup_thresh: 20, limited_transmit: false, ..linux() };
        after_ten(
            &cfg,
            10_000,
            &format!(
                "+0.1 < . 1 ack 1 sack 1001:10001
                +0 = phase Open
                +0 < . 1 ack 10001
                +0 = cwnd {cwnd}
                "
            ),
        );
    }
}

/// HyStart's ACK train: the least RTT is 10 ms, ACKs are 1 ms apart, offload accounts for 1 ms more; (10 + 1) / 2 ms are exceeded 6 ms
/// after the first ACK of the round, when the window is 16 + 6. Source: Linux hystart_update.
#[test]
fn an_ack_train_ends_slow_start() {
    let cfg = Tcp { congestion_control: cubic(0.4), slow_start: SlowStart::HyStart, initial_window: Some(16), ..linux() };
    let mut text = format!("+0 write 100000\n{}\n+0.009 > none\n", leave(0, 16));
    for i in 0..6 {
        text += &format!("+0.001 < . 1 ack {}\n{}", 1000 * i + 1001, leave(16 + 2 * i, 18 + 2 * i));
    }
    let endless = 1u64 << 62;
    text += &format!("+0 = cwnd 22000\n+0 = ssthresh {endless}\n+0.001 < . 1 ack 7001\n+0 = ssthresh 22000\n+0 = cwnd 22000\n");
    text += &leave(28, 29);
    run(&cfg, &text);
    // Without it slow start goes on.
    let cfg = Tcp { slow_start: SlowStart::Standard, ..cfg };
    let text = text.replace("+0 = ssthresh 22000\n+0 = cwnd 22000", "+0 = cwnd 23000");
    run(&cfg, &(text + &leave(29, 30)));
}

/// HyStart below 16 segments does nothing. Source: Linux hystart_low_window.
#[test]
fn a_train_in_a_small_window_does_not() {
    let cfg = Tcp { congestion_control: cubic(0.4), slow_start: SlowStart::HyStart, initial_window: Some(4), ..linux() };
    let mut text = format!("+0 write 100000\n{}\n+0.009 > none\n", leave(0, 4));
    for i in 0..10 {
        text += &format!("+0.001 < . 1 ack {}\n{}", 1000 * i + 1001, leave(4 + 2 * i, 6 + 2 * i));
    }
    run(&cfg, &format!("{text}\n+0 = cwnd 14000"));
}

/// Ten seconds without anything in flight do not count for CUBIC's curve. Source: Linux cubictcp_cwnd_event.
#[test]
fn idle_time_does_not_count_for_cubic() {
    let cfg = Tcp {
        congestion_control: cubic(1.0),
        initial_ssthresh: Some(Bytes(10_000)),
        idle_restart: IdleRestart::None,
        cwnd_validation: false,
        ..linux()
    };
    let ten = leave(0, 10);
    let acks = |from: u32| (from..from + 10).map(|i| format!("+0 < . 1 ack {}\n", 1000 * i + 1001)).collect::<String>();
    // 5 % before the first loss; the curve of an epoch of 10 s would be far above, one segment for two.
    run(
        &cfg,
        &format!(
            "+0 write 10000\n{ten}+0.1 > none\n{}+0 = cwnd 10000\n+10 write 10000\n{}+0.1 > none\n{}+0 = cwnd 11000\n",
            acks(0),
            leave(10, 20),
            acks(10)
        ),
    );
}
