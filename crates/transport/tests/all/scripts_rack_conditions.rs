//! RACK-TLP, condition by condition: each script is one that a changed operator in `endpoint/rack` fails.

use crate::common::script::run;
use crate::common::ten::{after_ten, rack};
use fanin_transport::*;

/// A duplicate ACK without D-SACK says as well that a probe was needless; a D-SACK says so on an ACK with data, too. Source: RFC
/// 8985 §7.4.2.
#[test]
fn a_duplicate_ack_makes_a_probe_needless() {
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 < . 1 ack 9001
        +0.3 > . 9001:10001
        +0.01 < . 1 ack 10001
        +0.09 < . 1 ack 10001
        +0 write 1000
        +0 > . 10001:11001
        +0.1 < . 1 ack 11001
        +0 = ssthresh 4611686018427387904
        ",
    );
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 < . 1 ack 9001
        +0.3 > . 9001:10001
        +0.01 < . 1 ack 10001
        +0.09 < . 1:101 ack 10001 sack 9001:10001
        +0 > . 10001 ack 101
        +0 write 1000
        +0 > . 10001:11001
        +0.1 < . 101 ack 11001
        +0 = ssthresh 4611686018427387904
        ",
    );
}

/// A D-SACK of other data does not make a probe needless: it has repaired a loss.
#[test]
fn a_d_sack_of_something_else_says_nothing_of_a_probe() {
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 < . 1 ack 9001
        +0.3 > . 9001:10001
        +0.01 < . 1 ack 10001
        +0 = ssthresh 4611686018427387904
        +0.09 < . 1:101 ack 10001 sack 8001:9001
        +0 > . 10001 ack 101
        +0 write 1000
        +0 > . 10001:11001
        +0.1 < . 101 ack 11001
        +0 = ssthresh 10000
        ",
    );
}

/// One probe for a flight: when its time comes again, the RTO goes on from when the first segment was sent. Source: Linux
/// tcp_send_loss_probe, tcp_rearm_rto.
#[test]
fn a_flight_has_one_probe() {
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 < . 1 ack 9001
        +0.3 > . 9001:10001
        +0.01 write 1000
        +0 > . 10001:11001
        +0.29 > . 9001:10001
        +0 = timeouts 1
        +0 = tail_probes 1
        ",
    );
}

/// A probe that waits for the NIC still leaves after an ACK that delivers nothing.
#[test]
fn a_duplicate_ack_cancels_no_probe() {
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 < . 1 ack 5001
        +0.2 busy
        +0.01 < . 1 ack 5001
        +0 free
        +0 > . 9001:10001
        +0 = tail_probes 1
        ",
    );
}

/// An ECN echo reduces the window over a round by PRR, once, until an ACK is beyond the data sent before it. Source: RFC 9937;
/// Linux tcp_fastretrans_alert.
#[test]
fn cwr_reduces_over_a_round() {
    after_ten(
        &Tcp { ecn: true, ..rack() },
        100_000,
        "
        +0.1 < .E 1 ack 1001
        +0 = phase Cwr
        +0 = ssthresh 5000
        +0 = reductions 1
        +0 > .W 10001:11001
        +0 < .E 1 ack 2001
        +0 > none
        +0 < .E 1 ack 3001
        +0 > . 11001:12001
        +0 = reductions 1
        +0 < . 1 ack 5001
        +0 > . 12001:13001
        +0 < . 1 ack 9001
        +0 > . 13001:14001
        +0 < . 1 ack 10001
        +0 > . 14001:15001
        +0 = phase Cwr
        +0 = cwnd 5000
        +0 < . 1 ack 11001
        +0 > . 15001:16001
        +0 = phase Open
        +0 > none
        +0 = reductions 1
        ",
    );
}

/// What is in flight stays at ssthresh once it has come there.
#[test]
fn cwr_waits_at_ssthresh() {
    after_ten(
        &Tcp { ecn: true, ..rack() },
        100_000,
        "
        +0.1 < .E 1 ack 1001
        +0 > .W 10001:11001
        +0 < . 1 ack 2001
        +0 > none
        +0 < . 1 ack 3001
        +0 > . 11001:12001
        +0 < . 1 ack 7001
        +0 = pipe 5000
        +0 > none
        +0 = cwnd 5000
        ",
    );
}

/// Without PRR the window falls at once, and once per round: the ACK of the last byte before the reduction belongs to it.
#[test]
fn an_echo_reduces_once_per_round() {
    after_ten(
        &Tcp { ecn: true, prr: false, ..rack() },
        100_000,
        "
        +0.1 < .E 1 ack 1001
        +0 = phase Open
        +0 = ssthresh 5000
        +0 = cwnd 5000
        +0 = reductions 1
        +0 < .E 1 ack 6001
        +0 = reductions 1
        +0 > .W 10001:11001
        +0 < .E 1 ack 10001
        +0 = reductions 1
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 > . 14001:15001
        +0 < .E 1 ack 11001
        +0 = reductions 2
        ",
    );
}

/// A window of two segments is not reduced, so that there is no reduction to wait for.
#[test]
fn the_least_window_is_not_reduced() {
    run(
        &Tcp { ecn: true, initial_window: Some(2), ..rack() },
        "
        +0 write 100000
        +0 > . 1:1001
        +0 > . 1001:2001
        +0.1 < .E 1 ack 1001
        +0 = reductions 1
        +0 = phase Open
        +0 = cwnd 2000
        +0 > .W 2001:3001
        ",
    );
}

/// An ACK that delivers nothing finds no loss before the timer does. Source: RFC 8985 §6.2 step 5; Linux tcp_rack_mark_lost.
#[test]
fn losses_are_looked_for_when_something_arrives() {
    after_ten(
        &rack(),
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 < . 1 ack 1001 sack 2001:3001
        +0 > . 12001:13001
        +0.026 < . 1 ack 1001
        +0 > none
        +0.001 > . 1001:2001
        ",
    );
}

/// Without limited transmit SACKed data makes no room for new data in the open state.
#[test]
fn without_limited_transmit_cwnd_bounds_what_is_outstanding() {
    after_ten(
        &Tcp { limited_transmit: false, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 2001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 = cwnd 12000
        +0 < . 1 ack 2001 sack 3001:4001
        +0 > none
        +0 = phase Open
        +0.001 < . 1 ack 4001
        +0 > . 14001:15001
        +0 > . 15001:16001
        +0 > . 16001:17001
        ",
    );
    after_ten(
        &Tcp { limited_transmit: false, ..rack() },
        10_000,
        "
        +0.1 < . 1 ack 5001
        +0 = cwnd 15000
        +0 < . 1 ack 5001 sack 6001:7001
        +0 = phase Open
        +0 write 20000
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 > . 14001:15001
        +0 > . 15001:16001
        +0 > . 16001:17001
        +0 > . 17001:18001
        +0 > . 18001:19001
        +0 > . 19001:20001
        +0 > none
        ",
    );
}

/// A probe that repeats the last segment is not in flight twice. Source: Linux tcp_send_loss_probe, which leaves retrans_out alone.
#[test]
fn a_retransmitted_probe_takes_no_room() {
    after_ten(
        &Tcp { limited_transmit: false, ..rack() },
        10_000,
        "
        +0.1 < . 1 ack 5001
        +0.202 > . 9001:10001
        +0 = pipe 5000
        +0 = cwnd 15000
        +0 write 11000
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 > . 14001:15001
        +0 > . 15001:16001
        +0 > . 16001:17001
        +0 > . 17001:18001
        +0 > . 18001:19001
        +0 > . 19001:20001
        +0 > none
        ",
    );
}

/// Without PRR the window is ssthresh during recovery.
#[test]
fn without_prr_the_window_falls_at_once() {
    after_ten(
        &Tcp { prr: false, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 = phase Recovery
        +0 = cwnd 5000
        +0 > none
        +0 < . 1 ack 1 sack 1001:6001
        +0 > . 1:1001
        +0 = cwnd 5000
        +0 = pipe 5000
        ",
    );
}

/// By the rules of the RFC ssthresh is half of what is in flight (RFC 5681 §3.1), not half of cwnd.
#[test]
fn rfc_rules_halve_what_is_in_flight() {
    after_ten(
        &Tcp { window_rules: WindowRules::Rfc, ..rack() },
        10_000,
        "
        +0.1 < . 1 ack 4001
        +0 = cwnd 14000
        +0 < . 1 ack 4001 sack 5001:8001
        +0 > . 4001:5001
        +0 = ssthresh 3000
        ",
    );
}

/// RFC 5682 §3.1: an ACK that reports nothing decides nothing, before and after the new data.
#[test]
fn f_rto_goes_on_after_a_plain_duplicate() {
    after_ten(
        &Tcp { tail_loss_probe: false, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.3 > . 1001:2001
        +0 = phase Loss
        +0.02 < . 1 ack 1001
        +0 > none
        +0.03 < . 1 ack 2001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 < . 1 ack 3001
        +0 = spurious 1
        +0 = phase Open
        +0 > . 14001:15001
        ",
    );
    after_ten(
        &Tcp { tail_loss_probe: false, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.3 > . 1001:2001
        +0.05 < . 1 ack 2001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0.01 < . 1 ack 2001
        +0 > none
        +0 = phase Loss
        +0.01 < . 1 ack 3001
        +0 = spurious 1
        +0 = phase Open
        +0 > . 14001:15001
        ",
    );
}

/// RFC 5682 §3.1 step 3a: a SACK of the new data alone means that the loss was real.
#[test]
fn f_rto_ends_with_a_sack_of_new_data() {
    after_ten(
        &Tcp { tail_loss_probe: false, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.3 > . 1001:2001
        +0.05 < . 1 ack 2001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0.1 < . 1 ack 2001 sack 12001:13001
        +0 = phase Loss
        +0 = spurious 0
        +0 > . 2001:3001
        +0.01 < . 1 ack 3001 sack 12001:13001
        +0 = spurious 0
        +0 > . 3001:4001
        +0 > . 4001:5001
        ",
    );
}

/// RFC 5682 §3.1 step 2b: what the application has written until the ACK comes is new data.
#[test]
fn f_rto_takes_new_data_when_the_ack_comes() {
    after_ten(
        &Tcp { tail_loss_probe: false, ..rack() },
        10_000,
        "
        +0.1 < . 1 ack 1001
        +0.3 > . 1001:2001
        +0.02 < . 1 ack 1001
        +0 write 10000
        +0 > none
        +0.03 < . 1 ack 2001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 = phase Loss
        ",
    );
}

/// An ACK of all that was outstanding ends the loss, and F-RTO is not tried.
#[test]
fn a_timeout_of_the_last_segment_ends_with_its_ack() {
    after_ten(
        &Tcp { tail_loss_probe: false, ..rack() },
        10_000,
        "
        +0.1 < . 1 ack 9001
        +0.3 > . 9001:10001
        +0 = phase Loss
        +0 write 20000
        +0 > none
        +0.1 < . 1 ack 10001
        +0 = phase Open
        +0 > . 10001:11001
        +0 > . 11001:12001
        ",
    );
}

/// A timeout after progress is another one, and reduces ssthresh again. Source: RFC 5681 §3.1.
#[test]
fn a_second_timeout_reduces_again() {
    after_ten(
        &Tcp { tail_loss_probe: false, spurious_rto: SpuriousRto::None, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.3 > . 1001:2001
        +0 = ssthresh 5000
        +0.1 < . 1 ack 2001
        +0 > . 2001:3001
        +0 > . 3001:4001
        +0 = cwnd 2000
        +0 = rto 0.3
        +0.3 > . 2001:3001
        +0 = timeouts 2
        +0 = ssthresh 2000
        ",
    );
}

/// A timeout within a recovery belongs to its reduction, and F-RTO is not tried. Source: Linux tcp_enter_loss.
#[test]
fn a_timeout_in_recovery_is_no_second_reduction() {
    after_ten(
        &Tcp { tail_loss_probe: false, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1 sack 2001:7001
        +0 > . 1:1001
        +0 > . 1001:2001
        +0 = phase Recovery
        +0 = ssthresh 5000
        +0.3 > . 1:1001
        +0 = phase Loss
        +0 = ssthresh 5000
        +0.05 < . 1 ack 1001 sack 2001:7001
        +0 > . 1001:2001
        +0 > . 7001:8001
        +0 = phase Loss
        ",
    );
}

/// A retransmission that is lost after a timeout begins a recovery. Source: Linux FLAG_LOST_RETRANS.
#[test]
fn a_lost_retransmission_after_a_timeout_begins_a_recovery() {
    after_ten(
        &Tcp { tail_loss_probe: false, spurious_rto: SpuriousRto::None, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.3 > . 1001:2001
        +0 = phase Loss
        +0.1 < . 1 ack 2001
        +0 > . 2001:3001
        +0 > . 3001:4001
        +0 = phase Loss
        +0.1 < . 1 ack 2001 sack 3001:4001
        +0 = phase Recovery
        +0 = lost_retransmits 1
        +0 = recoveries 1
        +0 > . 2001:3001
        ",
    );
}

/// What has arrived while the NIC was busy is not sent again after the timeout.
#[test]
fn nothing_is_sent_again_that_has_arrived() {
    after_ten(
        &Tcp { tail_loss_probe: false, spurious_rto: SpuriousRto::None, ..rack() },
        12_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.25 busy
        +0.1 < . 1 ack 12001
        +0 = timeouts 1
        +0 write 2000
        +0 free
        +0 > . 12001:13001
        +0 > . 13001:14001
        ",
    );
}

/// SACKs of segments that were sent before the last retransmission of the first one restart the timer. Source: Linux
/// tcp_clean_rtx_queue.
#[test]
fn sacks_of_earlier_segments_restart_the_timer() {
    after_ten(
        &Tcp { tail_loss_probe: false, ..rack() },
        11_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 > . 10001:11001
        +0 = rto 0.3
        +0.05 < . 1 ack 1 sack 1001:5001
        +0 = rto 0.307
        +0.306 > none
        +0.001 > . 1:1001
        ",
    );
}

/// An ACK of new data is an event, a SACK is none.
#[test]
fn only_acks_of_new_data_are_events() {
    after_ten(
        &rack(),
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 ! Acked 1000
        +0 ! none
        +0 < . 1 ack 1001 sack 2001:3001
        +0 > . 12001:13001
        +0 ! none
        +0 < . 1 ack 3001
        +0 ! Acked 3000
        +0 > . 13001:14001
        +0 > . 14001:15001
        ",
    );
}
