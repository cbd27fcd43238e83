//! Timeouts, real and spurious, step by step.

use crate::common::script::run;
use crate::common::ten::{after_ten, base, no_sack};
use fanin_transport::cc::{CongestionControl, Cubic};
use fanin_transport::*;
use fanin_units::{Bytes, Span};

/// RFC 6298 §5: the timer doubles, the window is one segment, go-back-N in slow start; ssthresh only once (RFC 5681 §3.1).
#[test]
fn timeouts_back_off_and_slow_start_again() {
    after_ten(
        &no_sack(),
        10_000,
        "
        # No sample: 1 s, then 2 s, then 4 s.
        +1 > . 1:1001
        +0 = cwnd 1000
        +0 = ssthresh 5000
        +0 = phase Loss
        +2 > . 1:1001
        +0 = ssthresh 5000
        +4 > . 1:1001
        +0 = rto 8
        +0.1 < . 1 ack 1001
        # Karn: no sample, so the RTO stays doubled (RFC 6298 §5.7).
        +0 = rto 8
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0.1 < . 1 ack 2001
        +0 > . 3001:4001
        +0 > . 4001:5001
        +0 < . 1 ack 3001
        +0 > . 5001:6001
        +0 > . 6001:7001
        +0 = cwnd 4000
        # The receiver has the rest: nothing of it is sent again.
        +0.1 < . 1 ack 10001
        +0 = phase Open
        +0 > none
        +0 = timeouts 3
        +0 = retransmits 9
        +0 write 1000
        +0 > . 10001:11001
        +0.1 < . 1 ack 11001
        # A new segment gives a sample: 0.1 + 4 · 0.05.
        +0 = rto 0.3
        ",
    );
}

/// The `linux` way: any ACK of new data ends the back-off.
#[test]
fn back_off_can_end_with_any_ack() {
    after_ten(
        &Tcp { backoff_reset: BackoffReset::Ack, ..base() },
        10_000,
        "
        +1 > . 1:1001
        +2 > . 1:1001
        +0 = rto 4
        +0.1 < . 1 ack 1001
        +0 = rto 1
        +0 > . 1001:2001
        +0 > . 2001:3001
        ",
    );
}

/// RFC 6675 §5.1: after a timeout what was SACKed is not sent again.
#[test]
fn a_timeout_with_sack_skips_what_arrived() {
    after_ten(
        &base(),
        10_000,
        "
        +0.1 < . 1 ack 1 sack 2001:3001
        +0 < . 1 ack 1 sack 2001:3001,4001:5001
        +0.9 > . 1:1001
        +0 = phase Loss
        +0.1 < . 1 ack 1001 sack 2001:3001,4001:5001
        +0 > . 1001:2001
        +0 > . 3001:4001
        +0 < . 1 ack 3001 sack 4001:5001
        +0 > . 5001:6001
        +0 > . 6001:7001
        +0.1 < . 1 ack 5001
        +0 > . 7001:8001
        +0 > . 8001:9001
        +0 = retransmits 7
        ",
    );
}

/// RFC 6582 §4.1: duplicates that a go-back-N causes are no new loss, unless the ACK heuristic says so.
#[test]
fn duplicates_after_a_timeout_are_not_taken_for_a_loss() {
    let cfg = Tcp { cwnd_validation: false, ..no_sack() };
    after_ten(
        &cfg,
        20_000,
        "
        +1 > . 1:1001
        +0.1 < . 1 ack 1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        # The ACK jumps by 9000 bytes: duplicates that follow are echoes of retransmissions.
        +0 < . 1 ack 10001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0.1 < . 1 ack 10001
        +0 > . 13001:14001
        +0 < . 1 ack 10001
        +0 > . 14001:15001
        +0 < . 1 ack 10001
        +0 = phase Open
        +0 > none
        ",
    );
    after_ten(
        &cfg,
        20_000,
        "
        +1 > . 1:1001
        +0.1 < . 1 ack 1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0 < . 1 ack 3001
        +0 > . 3001:4001
        +0 > . 4001:5001
        +0 > . 5001:6001
        +0 < . 1 ack 6001
        +0 > . 6001:7001
        +0 > . 7001:8001
        +0 > . 8001:9001
        +0 > . 9001:10001
        +0 < . 1 ack 9001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        # It advances by one segment only: duplicates that follow indicate a loss.
        +0 < . 1 ack 10001
        +0 > . 14001:15001
        +0.1 < . 1 ack 10001
        +0 > . 15001:16001
        +0 < . 1 ack 10001
        +0 > . 16001:17001
        +0 < . 1 ack 10001
        +0 > . 10001:11001
        +0 = phase Recovery
        ",
    );
    after_ten(
        &cfg,
        20_000,
        "
        +1 > . 1:1001
        +0.1 < . 1 ack 1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0 < . 1 ack 3001
        +0 > . 3001:4001
        +0 > . 4001:5001
        +0 > . 5001:6001
        +0 < . 1 ack 6001
        +0 > . 6001:7001
        +0 > . 7001:8001
        +0 > . 8001:9001
        +0 > . 9001:10001
        # Four segments are the most after which duplicates indicate a loss.
        +0 < . 1 ack 10001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 > . 14001:15001
        +0.1 < . 1 ack 10001
        +0 > . 15001:16001
        +0 < . 1 ack 10001
        +0 > . 16001:17001
        +0 < . 1 ack 10001
        +0 > . 10001:11001
        +0 = phase Recovery
        ",
    );
}

/// F-RTO (RFC 5682 §2.1): two ACKs that advance, the second over data never sent again, mean the timeout was spurious.
#[test]
fn f_rto_finds_a_spurious_timeout() {
    for cfg in [base(), no_sack()] {
        let cfg = Tcp { spurious_rto: SpuriousRto::FRto, initial_ssthresh: Some(Bytes(20_000)), ..cfg };
        after_ten(
            &cfg,
            100_000,
            "
            # The whole flight is delayed by more than the RTO.
            +1 > . 1:1001
            +0 = cwnd 1000
            +0 = ssthresh 5000
            +0.2 < . 1 ack 1001
            # Step 2b: two new segments instead of retransmissions.
            +0 > . 10001:11001
            +0 > . 11001:12001
            +0 < . 1 ack 2001
            # Step 3b: spurious. RFC 4015: cwnd = flight + min (acked, IW), ssthresh = pipe_prev.
            +0 = spurious 1
            +0 = phase Open
            +0 = ssthresh 20000
            +0 = cwnd 11000
            +0 > . 12001:13001
            +0 < . 1 ack 3001
            +0 = retransmits 1
            +0 > . 13001:14001
            +0 > . 14001:15001
            ",
        );
    }
}

/// CUBIC forgets a spurious timeout: time goes on in the old epoch. RFC 9438 §4.9.
#[test]
fn cubic_goes_on_after_a_spurious_timeout() {
    let cubic = Cubic { c: 1000.0, beta: 0.7, fast_convergence: true, reno_friendly: true };
    let cfg = Tcp {
        congestion_control: CongestionControl::Cubic(cubic),
        spurious_rto: SpuriousRto::FRto,
        initial_ssthresh: Some(Bytes(10_000)),
        ..base()
    };
    after_ten(
        &cfg,
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0.3 > . 1001:2001
        +0.1 < . 1 ack 2001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 < . 1 ack 3001
        +0 = spurious 1
        +0 = cwnd 11000
        +0 > . 13001:14001
        # W_cubic is far above after 0.5 s with this C: 1.5 cwnd is the target. A new epoch would stand at cwnd.
        +0.1 < . 1 ack 4001
        +0 = cwnd 11500
        +0 > . 14001:15001
        ",
    );
}

/// RFC 5682 §2.1 waits for acknowledgments: data of the other side with an old one decides nothing, neither first nor second.
#[test]
fn f_rto_waits_through_data_of_the_other_side() {
    let cfg = Tcp { spurious_rto: SpuriousRto::FRto, initial_ssthresh: Some(Bytes(20_000)), ..no_sack() };
    after_ten(
        &cfg,
        100_000,
        "
        +1 > . 1:1001
        +0.1 < . 1:101 ack 1
        +0 > . 10001 ack 101
        +0.1 < . 101 ack 1001
        +0 > . 10001:11001 ack 101
        +0 > . 11001:12001 ack 101
        +0 < . 101:201 ack 1001
        +0 > . 12001 ack 201
        +0 = spurious 0
        +0 < . 201 ack 2001
        +0 > . 12001:13001 ack 201
        +0 = spurious 1
        +0 = phase Open
        +0 = retransmits 1
        ",
    );
}

/// F-RTO step 3a: a duplicate in the second place means a real loss.
#[test]
fn f_rto_goes_back_to_slow_start_after_a_real_loss() {
    after_ten(
        &Tcp { spurious_rto: SpuriousRto::FRto, ..no_sack() },
        100_000,
        "
        +1 > . 1:1001
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.1 < . 1 ack 1001
        +0 = phase Loss
        +0 = spurious 0
        # Three segments: the two new ones and the first hole.
        +0 = cwnd 3000
        +0 > . 1001:2001
        +0 < . 1 ack 1001
        +0 > none
        +0.1 < . 1 ack 2001
        +0 = cwnd 4000
        +0 > . 2001:3001
        +0 > . 3001:4001
        ",
    );
}

/// Eifel (RFC 3522): the echo of a timestamp older than the retransmission's means the original arrived.
#[test]
fn eifel_finds_a_spurious_timeout_by_the_timestamp() {
    let cfg = Tcp {
        spurious_rto: SpuriousRto::Eifel,
        timestamps: true,
        timestamp_tick: Span::from_ms(1),
        initial_ssthresh: Some(Bytes(20_000)),
        ..base()
    };
    let spurious = "
        +1 > . 1:1001 ts 1000,0
        +0.2 < . 1 ack 1001 ts 5,0
        +0 = spurious 1
        +0 = ssthresh 20000
        +0 = cwnd 10000
        +0 > . 10001:11001
    ";
    after_ten(&cfg, 100_000, spurious);
    let real = "
        +1 > . 1:1001 ts 1000,0
        +0.2 < . 1 ack 1001 ts 5,1000
        +0 = spurious 0
        +0 = phase Loss
        +0 > . 1001:2001
        +0 > . 2001:3001
    ";
    after_ten(&cfg, 100_000, real);
}

/// A loss in the tail that no duplicate ACK reports: only the timer can.
#[test]
fn a_tail_loss_waits_for_the_timer() {
    after_ten(
        &base(),
        10_000,
        "
        +0.1 < . 1 ack 9001
        +0 = rto 0.3
        +0.3 > . 9001:10001
        +0 = timeouts 1
        +0.1 < . 1 ack 10001
        +0 = phase Open
        +5 > none
        ",
    );
}

/// RFC 5682 §2.1 step 2b needs new data and room in the receive window: where one of them is missing, the retransmissions go on.
#[test]
fn f_rto_without_new_data_or_room_goes_on_with_retransmissions() {
    let receive_window = ReceiveWindow::Fixed(FixedWindow { size: Bytes(10_000) });
    let cfg = Tcp { spurious_rto: SpuriousRto::FRto, receive_window, ..no_sack() };
    for (write, ack) in [(10_000, "ack 1001 win 65535"), (100_000, "ack 1001 win 9000")] {
        after_ten(
            &cfg,
            write,
            &format!(
                "
                +1 > . 1:1001
                +0.1 < . 1 {ack}
                +0 > . 1001:2001
                +0 > . 2001:3001
                +0 = phase Loss
                +0 = spurious 0
                "
            ),
        );
    }
}

/// RFC 5682 §2.1 step 2a: a duplicate in the first place ends F-RTO, and so does an ACK after which nothing new could be sent: what the
/// application writes later changes nothing.
#[test]
fn f_rto_has_one_try() {
    let cfg = Tcp { spurious_rto: SpuriousRto::FRto, ..no_sack() };
    after_ten(
        &cfg,
        100_000,
        "
        +1 > . 1:1001
        +0.1 < . 1 ack 1
        +0 > none
        +0.1 < . 1 ack 1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0 < . 1 ack 2001
        +0 = phase Loss
        +0 = spurious 0
        +0 > . 3001:4001
        +0 > . 4001:5001
        ",
    );
    after_ten(
        &cfg,
        10_000,
        "
        +1 > . 1:1001
        +0.1 < . 1 ack 1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0 write 5000
        +0 > none
        # Slow start by one segment for an ACK (RFC 5681 §3.1): three may leave.
        +0.1 < . 1 ack 3001
        +0 > . 3001:4001
        +0 > . 4001:5001
        +0 > . 5001:6001
        ",
    );
}

/// RFC 5682 §2.1 step 1 tries F-RTO for a timeout within a fast recovery, but not for one within the recovery from a timeout.
#[test]
fn f_rto_is_tried_once_for_a_loss() {
    let cfg = Tcp { spurious_rto: SpuriousRto::FRto, ..base() };
    after_ten(
        &cfg,
        100_000,
        "
        +0.1 < . 1 ack 1 sack 1001:2001
        +0 > . 10001:11001
        +0 < . 1 ack 1 sack 1001:3001
        +0 > . 11001:12001
        +0 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 = phase Recovery
        +0.9 > . 1:1001
        +0 = phase Loss
        +0.1 < . 1 ack 4001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 < . 1 ack 5001
        +0 = spurious 1
        +0 = phase Open
        # RFC 4015 §3.2: as much as has arrived may leave.
        +0 > . 14001:15001
        ",
    );
    after_ten(
        &cfg,
        100_000,
        "
        +1 > . 1:1001
        +2 > . 1:1001
        +0.1 < . 1 ack 1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0 = phase Loss
        +0 = spurious 0
        ",
    );
}

/// RFC 3522 §3.2 step 4: the first ACK of new data decides; duplicates before it do not, whatever they echo, nor ACKs after it.
#[test]
fn eifel_decides_by_the_first_acknowledgment_of_new_data() {
    let cfg = Tcp {
        spurious_rto: SpuriousRto::Eifel,
        timestamps: true,
        timestamp_tick: Span::from_ms(1),
        initial_ssthresh: Some(Bytes(20_000)),
        ..base()
    };
    after_ten(
        &cfg,
        100_000,
        "
        +1 > . 1:1001 ts 1000,0
        +0.1 < . 1 ack 1 ts 5,0
        +0 = spurious 0
        +0 = phase Loss
        +0.1 < . 1 ack 1001 ts 6,0
        +0 = spurious 1
        +0 = phase Open
        +0 > . 10001:11001
        ",
    );
    after_ten(
        &cfg,
        100_000,
        "
        +1 > . 1:1001 ts 1000,0
        +0.2 < . 1 ack 1001 ts 5,1000
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0.01 < . 1 ack 2001 ts 6,0
        +0 = spurious 0
        +0 = phase Loss
        +0 > . 3001:4001
        +0 > . 4001:5001
        ",
    );
}

/// RFC 5681 §3.1 equation 4: half of FlightSize; again after progress, from the window of slow start.
#[test]
fn a_timeout_halves_what_is_in_flight() {
    after_ten(
        &base(),
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.3 > . 1001:2001
        +0 = ssthresh 5500
        ",
    );
    after_ten(
        &base(),
        100_000,
        "
        +1 > . 1:1001
        +0 = ssthresh 5000
        +0.1 < . 1 ack 1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +2 > . 1001:2001
        +0 = timeouts 2
        +0 = ssthresh 2000
        ",
    );
}

/// RFC 5682 §2.1 step 2a: an ACK of a part of the retransmission ends F-RTO.
#[test]
fn f_rto_needs_an_ack_of_the_whole_retransmission() {
    after_ten(
        &Tcp { spurious_rto: SpuriousRto::FRto, ..no_sack() },
        100_000,
        "
        +1 > . 1:1001
        +0.1 < . 1 ack 501
        +0 > . 1001:2001
        +0 = phase Loss
        ",
    );
}

/// A duplicate ends F-RTO also while the retransmission waits for the NIC.
#[test]
fn a_duplicate_ends_f_rto_before_the_retransmission() {
    after_ten(
        &Tcp { spurious_rto: SpuriousRto::FRto, ..no_sack() },
        100_000,
        "
        +0.9 busy
        +0.2 < . 1 ack 1
        +0 free
        +0 > . 1:1001
        +0.1 < . 1 ack 1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0 = phase Loss
        ",
    );
}

/// RFC 3522 §3.2: the time of the first retransmission alone is kept, and none without timestamps.
#[test]
fn eifel_is_for_the_first_timeout() {
    after_ten(
        &Tcp { spurious_rto: SpuriousRto::Eifel, timestamps: true, timestamp_tick: Span::from_ms(1), ..base() },
        100_000,
        "
        +1 > . 1:1001 ts 1000,0
        +2 > . 1:1001 ts 3000,0
        +0.1 < . 1 ack 1001 ts 5,1000
        +0 = spurious 0
        +0 = phase Loss
        +0 > . 1001:2001
        +0 > . 2001:3001
        ",
    );
    run(
        &Tcp { spurious_rto: SpuriousRto::Eifel, timestamps: true, timestamp_tick: Span::from_ms(1), handshake: true, ..base() },
        "
        +0 > S 0
        +0.1 < S. 0 ack 1 mss 1000 sackok nots
        +0 > . 1 ack 1
        +0 write 3000
        +0 > . 1:1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0.3 > . 1:1001
        +0 = phase Loss
        +0.1 < . 1 ack 1001 nots
        +0 = spurious 0
        +0 = phase Loss
        +0 > . 1001:2001
        +0 > . 2001:3001
        ",
    );
}
