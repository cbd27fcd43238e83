//! RACK-TLP, PRR and undoing, step by step: RFC 8985, RFC 9937, RFC 5682 §3, RFC 2883, and what is Linux's own.

use crate::common::ten::{after_ten, rack};
use fanin_transport::*;
use fanin_units::{Bytes, Span};

/// RFC 8985 §6.2: one SACKed segment above a hole is no loss before a quarter of the shortest RTT has passed.
#[test]
fn a_hole_is_lost_after_the_reordering_window() {
    after_ten(
        &rack(),
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 < . 1 ack 1001 sack 2001:3001
        # A SACKed segment makes room for a new one.
        +0 > . 12001:13001
        +0 = phase Open
        # 25 ms, and 2 ms for the timer (Linux TCP_TIMEOUT_MIN_US).
        +0.027 > . 1001:2001
        +0 = phase Recovery
        # Half of 11 segments, in whole segments.
        +0 = ssthresh 5000
        +0 = timeouts 0
        ",
    );
}

/// RFC 8985 §6.2 step 4: with three SACKed segments above, and no reordering seen before, it is lost at once; PRR holds the rest.
#[test]
fn three_sacked_segments_end_the_waiting() {
    after_ten(
        &rack(),
        13_000,
        "
        +0.1 < . 1 ack 1 sack 1001:2001
        +0 > . 10001:11001
        +0 < . 1 ack 1 sack 1001:3001
        +0 > . 11001:12001
        +0 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 = phase Recovery
        # Linux takes half of cwnd (10 segments), where RFC 5681 takes half of FlightSize.
        +0 = ssthresh 5000
        # 8000 in flight and the retransmission; one segment for two that arrive (RFC 9937 §6, pipe above ssthresh).
        +0 = pipe 9000
        +0 < . 1 ack 1 sack 1001:5001
        +0 > none
        +0 < . 1 ack 1 sack 1001:6001
        +0 > . 12001:13001
        +0 < . 1 ack 1 sack 1001:7001
        +0 > none
        # Back to ssthresh, and the ACK that ends the recovery counts for congestion avoidance (Linux tcp_cong_control).
        +0.1 < . 1 ack 13001
        +0 = phase Open
        +0 = cwnd 6000
        +0 = recoveries 1
        +0 = retransmits 1
        ",
    );
}

/// RFC 8985 §6.2: a retransmission is lost when what left after it has arrived; no timeout is needed.
#[test]
fn a_lost_retransmission_is_sent_again() {
    after_ten(
        &rack(),
        14_000,
        "
        # Three arrive at once: half of them, rounded up, may leave.
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 > . 10001:11001
        +0 = phase Recovery
        # 2000 in flight, 7000 more delivered than sent: as much as ssthresh has room for.
        +0.01 < . 1 ack 1 sack 1001:10001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        # The segment that left after the retransmission arrives, the retransmission does not.
        +0.1 < . 1 ack 1 sack 1001:11001
        +0 > . 1:1001
        +0 = lost_retransmits 1
        +0.1 < . 1 ack 14001
        +0 = phase Open
        +0 = timeouts 0
        +0 = recoveries 1
        +0 = retransmits 2
        ",
    );
}

/// RFC 8985 §7.2, §7.3: two RTTs after the last segment, new data are the probe, beyond the window.
#[test]
fn a_probe_of_new_data() {
    after_ten(
        &rack(),
        15_000,
        "
        +0.1 < . 1 ack 2001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 = cwnd 12000
        # 2 · 100 ms and 2 ms after these left would be 0.302; the first segment's RTO (SRTT + 200 ms) is at 0.3.
        +0.2 > . 14001:15001
        +0 = tail_probes 1
        +0 = timeouts 0
        +0.01 < . 1 ack 15001
        +0 = phase Open
        +0 = ssthresh 4611686018427387904
        ",
    );
}

/// RFC 8985 §7.3, §7.4.2: the last segment is the probe where nothing new is left; its repair counts as congestion.
#[test]
fn a_probe_repairs_the_loss_of_the_tail() {
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 < . 1 ack 9001
        # A single segment is in flight: 200 ms are added for a delayed ACK; the RTO of 300 ms is earlier.
        +0.3 > . 9001:10001
        +0 = tail_probes 1
        +0 = timeouts 0
        +0.1 < . 1 ack 10001
        +0 = phase Open
        +0 = tail_probes 1
        +0 write 1000
        +0 > . 10001:11001
        # An ACK beyond the probe: the window has been reduced for the loss that it repaired.
        +0.1 < . 1 ack 11001
        +0 = ssthresh 10000
        +0 = cwnd 10000
        ",
    );
}

/// RFC 8985 §7.4.2: a D-SACK of the probe says that nothing was lost.
#[test]
fn a_needless_probe_reduces_nothing() {
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 < . 1 ack 9001
        +0.3 > . 9001:10001
        +0.01 < . 1 ack 10001
        +0.09 < . 1 ack 10001 sack 9001:10001
        +0 write 1000
        +0 > . 10001:11001
        +0.1 < . 1 ack 11001
        +0 = ssthresh 4611686018427387904
        ",
    );
}

/// The probe's selective acknowledgment lets RACK find the losses before it.
#[test]
fn a_probe_starts_the_recovery_of_a_lost_tail() {
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 < . 1 ack 5001
        +0.202 > . 9001:10001
        +0.1 < . 1 ack 5001 sack 9001:10001
        # Four segments were lost; all left more than an RTT before the probe.
        +0 = phase Recovery
        # The probe was SACKed, and never counted as a retransmission (Linux tcp_send_loss_probe): the first of four is in flight.
        +0 = pipe 1000
        +0 > . 5001:6001
        +0.1 < . 1 ack 6001 sack 9001:10001
        +0 > . 6001:7001
        +0 > . 7001:8001
        +0.1 < . 1 ack 8001 sack 9001:10001
        +0 > . 8001:9001
        +0.1 < . 1 ack 10001
        +0 = phase Open
        +0 = timeouts 0
        ",
    );
}

/// RFC 8985 §6.3, Linux tcp_timeout_mark_lost: a timeout loses the first segment, and only what left an RTT ago besides. The
/// window is one segment more than what is in flight.
#[test]
fn a_timeout_loses_what_is_old() {
    after_ten(
        &Tcp { tail_loss_probe: false, spurious_rto: SpuriousRto::None, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 2001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 = rto 0.3
        # The other eight left at 0, these four at 0.1: 300 ms after the ACK all are older than an RTT.
        +0.3 > . 2001:3001
        +0 = phase Loss
        +0 = timeouts 1
        +0 = ssthresh 6000
        +0 = cwnd 1000
        +0 = pipe 1000
        # Everything had been delayed: without F-RTO and timestamps the sender repeats in slow start.
        +0.01 < . 1 ack 4001
        +0 > . 4001:5001
        +0 > . 5001:6001
        +0 > . 6001:7001
        +0 = cwnd 3000
        +0.1 < . 1 ack 14001
        +0 = phase Open
        +0 > . 14001:15001
        +0 > . 15001:16001
        +0 > . 16001:17001
        +0 > . 17001:18001
        +0 > . 18001:19001
        +0 > . 19001:20001
        # Slow start as far as ssthresh, and a segment of congestion avoidance for the rest of the ACK.
        +0 > . 20001:21001
        +0 > none
        +0 = cwnd 7000
        ",
    );
}

/// RFC 5682 §3.1 step 3b: after the first ACK two new segments leave, and a SACK of what was never sent again ends the loss.
#[test]
fn f_rto_with_sack_undoes_a_spurious_timeout() {
    after_ten(
        &Tcp { tail_loss_probe: false, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 = cwnd 11000
        # All is late, and the first is sent again.
        +0.3 > . 1001:2001
        +0 = phase Loss
        # Half of 11 segments, in whole segments.
        +0 = ssthresh 5000
        # Its original arrives: step 2b, new data.
        +0.05 < . 1 ack 2001
        +0 > . 12001:13001
        +0 > . 13001:14001
        # The next original: nothing was lost.
        +0 < . 1 ack 3001
        +0 = phase Open
        +0 = spurious 1
        +0 = undos 1
        # cwnd is what it was, and slow start goes on.
        +0 = ssthresh 4611686018427387904
        +0 > . 14001:15001
        +0 = cwnd 12000
        +0 = retransmits 1
        ",
    );
}

/// RFC 2883, Linux tcp_try_undo_dsack: D-SACKs of every retransmission undo the reduction.
#[test]
fn d_sack_undoes_a_reduction_for_reordering() {
    after_ten(
        &rack(),
        11_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 > . 10001:11001
        +0 = phase Recovery
        +0 = ssthresh 5000
        # The segment was late, not lost.
        +0.01 < . 1 ack 4001
        # And its copy arrives.
        +0.01 < . 1 ack 10001 sack 1:1001
        +0 = phase Open
        +0 = undos 1
        +0 = ssthresh 4611686018427387904
        # What it was before the reduction, and slow start for the six that this ACK delivers.
        +0 = cwnd 16000
        ",
    );
}

/// RFC 8985 §6.2 step 4: once reordering was seen, three SACKed segments end the waiting no more; D-SACKs widen the window.
#[test]
fn reordering_makes_the_sender_wait() {
    after_ten(
        &rack(),
        13_000,
        "
        # The second came before the first: reordering.
        +0.1 < . 1 ack 1 sack 1001:2001
        +0 > . 10001:11001
        +0.001 < . 1 ack 2001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 < . 1 ack 2001 sack 3001:9001
        +0 = phase Open
        ",
    );
}

/// RFC 3522 §3.2 with RACK: an ACK that echoes the time of the retransmission means a real loss.
#[test]
fn an_echo_of_the_retransmission_undoes_nothing() {
    after_ten(
        &Tcp {
            tail_loss_probe: false,
            spurious_rto: SpuriousRto::Eifel,
            timestamps: true,
            timestamp_tick: Span::from_ms(1),
            ..rack()
        },
        10_000,
        "
        +1 > . 1:1001 ts 1000,0
        +0.2 < . 1 ack 1001 ts 5,1000
        +0 = spurious 0
        +0 = phase Loss
        +0 > . 1001:2001
        +0 > . 2001:3001
        ",
    );
}

/// An undo brings back what ssthresh was: three quarters of a window that had grown past it. Source: Linux tcp_current_ssthresh.
#[test]
fn an_undone_reduction_leaves_three_quarters_of_the_window() {
    after_ten(
        &Tcp { initial_ssthresh: Some(Bytes(4_000)), ..rack() },
        11_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 > . 10001:11001
        +0 = ssthresh 5000
        +0.01 < . 1 ack 4001
        +0.01 < . 1 ack 10001 sack 1:1001
        +0 = undos 1
        +0 = ssthresh 7500
        ",
    );
}

/// RFC 5682 §3.1 step 2b needs new data: where the application has none, the retransmissions go on instead of waiting for the timer.
#[test]
fn f_rto_without_new_data_goes_on_with_retransmissions() {
    after_ten(
        &Tcp { tail_loss_probe: false, ..rack() },
        10_000,
        "
        +0.1 < . 1 ack 1001
        +0 = rto 0.3
        +0.3 > . 1001:2001
        +0 = phase Loss
        +0.1 < . 1 ack 2001
        +0 > . 2001:3001
        +0 > . 3001:4001
        +0 = phase Loss
        +0 = timeouts 1
        ",
    );
}

/// RFC 5682 §3.1 step 2b needs room in the receive window, too.
#[test]
fn f_rto_without_receive_window_goes_on_with_retransmissions() {
    let receive_window = ReceiveWindow::Fixed(FixedWindow { size: Bytes(10_000) });
    after_ten(
        &Tcp { tail_loss_probe: false, receive_window, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1001 win 9000
        +0 = rto 0.3
        +0.3 > . 1001:2001
        +0 = phase Loss
        +0.1 < . 1 ack 2001 win 8000
        +0 > . 2001:3001
        +0 > . 3001:4001
        +0 = phase Loss
        +0 = timeouts 1
        ",
    );
}

/// What a spurious timeout is undone to is what was before the first of several: Linux tcp_enter_loss keeps prior_ssthresh where
/// icsk_retransmits counts already, and F-RTO is tried again.
#[test]
fn several_spurious_timeouts_are_undone_at_once() {
    after_ten(
        &Tcp { tail_loss_probe: false, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 = cwnd 11000
        +0.3 > . 1001:2001
        +0 = ssthresh 5000
        +0.6 > . 1001:2001
        +0 = phase Loss
        +0 = timeouts 2
        +0 = ssthresh 5000
        +0.05 < . 1 ack 2001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 < . 1 ack 3001
        +0 = phase Open
        +0 = spurious 1
        +0 = ssthresh 4611686018427387904
        +0 > . 14001:15001
        +0 = cwnd 12000
        +0 = retransmits 2
        ",
    );
}

/// A recovery is not undone before its first retransmission has left, whatever further segments are SACKed meanwhile.
#[test]
fn nothing_is_undone_before_the_first_retransmission() {
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 < . 1 ack 1 sack 1001:5001
        +0 < . 1 ack 1 sack 1001:6001
        +0 = phase Recovery
        +0 = undos 0
        +0 = ssthresh 5000
        +0 > . 1:1001
        ",
    );
}
