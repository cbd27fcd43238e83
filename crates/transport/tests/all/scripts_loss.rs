//! Loss recovery, step by step.

use crate::common::script::run;
use crate::common::ten::{after_ten, base, no_sack};
use fanin_transport::cc::{CongestionControl, Cubic, Reno};
use fanin_transport::*;
use fanin_units::Bytes;

/// RFC 5681 §3.2: limited transmit on the first two duplicates, fast retransmit on the third, inflation, deflation.
#[test]
fn fast_retransmit_and_fast_recovery_without_sack() {
    after_ten(
        &no_sack(),
        100_000,
        "
        # RFC 3042: one new segment for each of the first two.
        +0.1 < . 1 ack 1
        +0 > . 10001:11001
        +0 = cwnd 10000
        +0 < . 1 ack 1
        +0 > . 11001:12001
        # The third: ssthresh = FlightSize/2 without what limited transmit sent; cwnd = ssthresh + 3.
        +0 < . 1 ack 1
        +0 > . 1:1001
        +0 = ssthresh 5000
        +0 = cwnd 8000
        +0 = phase Recovery
        # Each further duplicate inflates; at 13000 a new segment fits beside the 12000 in flight.
        +0 < . 1 ack 1
        +0 < . 1 ack 1
        +0 < . 1 ack 1
        +0 < . 1 ack 1
        +0 > none
        +0 < . 1 ack 1
        +0 > . 12001:13001
        +0 < . 1 ack 1
        +0 > . 13001:14001
        # A full ACK (RFC 6582 §3.2 step 3, option 1): min (ssthresh, max (FlightSize, SMSS) + SMSS).
        +0.1 < . 1 ack 12001
        +0 = cwnd 3000
        +0 = phase Open
        +0 > . 14001:15001
        +0 = retransmits 1
        +0 = recoveries 1
        ",
    );
}

/// RFC 6582 §3.2 step 3: a partial ACK sends the next hole at once and deflates by what it covers, plus one segment.
#[test]
fn newreno_partial_acks() {
    after_ten(
        &no_sack(),
        10_000,
        "
        +0.1 < . 1 ack 1
        +0 < . 1 ack 1
        +0 < . 1 ack 1
        +0 > . 1:1001
        +0 = cwnd 8000
        # Segments 4 and 7 are lost as well.
        +0.1 < . 1 ack 3001
        +0 > . 3001:4001
        +0 = cwnd 6000
        +0 = phase Recovery
        +0.1 < . 1 ack 6001
        +0 > . 6001:7001
        +0 = cwnd 4000
        +0.1 < . 1 ack 10001
        +0 = phase Open
        # No data in flight: one segment more than SMSS.
        +0 = cwnd 2000
        +0 = ssthresh 5000
        +0 = timeouts 0
        +0 = retransmits 3
        ",
    );
}

/// RFC 6582 §3.2 step 3, the impatient variant: only the first partial ACK restarts the retransmission timer.
#[test]
fn only_the_first_partial_ack_restarts_the_timer() {
    after_ten(
        &no_sack(),
        10_000,
        "
        +0.1 < . 1 ack 1001
        # SRTT 100 ms, RTTVAR 50 ms: RTO 300 ms, until 0.4 s.
        +0 = rto 0.3
        +0 < . 1 ack 1001
        +0 < . 1 ack 1001
        +0 < . 1 ack 1001
        +0 > . 1001:2001
        +0.1 < . 1 ack 3001
        +0 > . 3001:4001
        # Restarted at 0.2: until 0.5. The next one does not.
        +0.1 < . 1 ack 6001
        +0 > . 6001:7001
        +0.2 > . 6001:7001
        +0 = timeouts 1
        +0 = cwnd 1000
        ",
    );
}

/// RFC 5681 §3.2 step 6: Reno leaves fast recovery at the first new ACK, and needs another three duplicates.
#[test]
fn reno_leaves_at_the_first_new_ack() {
    let mut cfg = no_sack();
    cfg.congestion_control = CongestionControl::Reno(Reno {});
    after_ten(
        &cfg,
        10_000,
        "
        +0.1 < . 1 ack 1
        +0 < . 1 ack 1
        +0 < . 1 ack 1
        +0 > . 1:1001
        +0.1 < . 1 ack 3001
        +0 = phase Open
        +0 = cwnd 5000
        +0 > none
        +0 < . 1 ack 3001
        +0 < . 1 ack 3001
        +0 > none
        +0 < . 1 ack 3001
        +0 > . 3001:4001
        +0 = ssthresh 3500
        +0 = recoveries 2
        ",
    );
}

/// RFC 6675 §5 with SACK: pipe decides, holes go in order, the second hole needs no ACK of the first.
#[test]
fn sack_recovery_fills_all_holes_in_one_round() {
    after_ten(
        &base(),
        100_000,
        "
        # Segments 1, 3 and 5 are lost. SACKed bytes leave the pipe: limited transmit.
        +0.1 < . 1 ack 1 sack 1001:2001
        +0 > . 10001:11001
        +0 = pipe 10000
        +0 < . 1 ack 1 sack 3001:4001,1001:2001
        +0 > . 11001:12001
        # Third duplicate: recovery. FlightSize 10000 (limited transmit not counted).
        +0 < . 1 ack 1 sack 5001:6001,3001:4001,1001:2001
        +0 > . 1:1001
        +0 = ssthresh 5000
        +0 = cwnd 5000
        +0 = phase Recovery
        # 12 outstanding, 3 SACKed, the first lost and sent again: 9.
        +0 = pipe 9000
        +0 < . 1 ack 1 sack 5001:7001,3001:4001,1001:2001
        # 3000 bytes are SACKed above 2001: the second hole is lost too. 12 − 4 SACKed − 2 lost + 1.
        +0 = pipe 7000
        +0 < . 1 ack 1 sack 5001:8001,3001:4001,1001:2001
        # 3000 bytes above 4001: the third is lost.
        +0 = pipe 5000
        +0 > none
        +0 < . 1 ack 1 sack 5001:9001,3001:4001,1001:2001
        +0 > . 2001:3001
        +0 < . 1 ack 1 sack 5001:10001,3001:4001,1001:2001
        +0 > . 4001:5001
        +0 < . 1 ack 1 sack 5001:11001,3001:4001,1001:2001
        +0 > . 12001:13001
        +0 = pipe 5000
        +0.1 < . 1 ack 2001 sack 5001:11001,3001:4001
        +0 > . 13001:14001
        +0 < . 1 ack 12001
        +0 = phase Open
        +0 = cwnd 5000
        +0 > . 14001:15001
        +0 > . 15001:16001
        +0 > . 16001:17001
        +0 = retransmits 3
        +0 = timeouts 0
        ",
    );
}

/// RFC 6675 §4 IsLost: more than (DupThresh − 1) segments of SACKed bytes above mean a loss before three duplicates do.
#[test]
fn enough_sacked_bytes_mean_a_loss() {
    after_ten(
        &base(),
        10_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 = phase Recovery
        +0 = dupacks 1
        ",
    );
}

/// RFC 6675 §2, §5: an ACK with new SACK information is a duplicate "regardless of its status as a cumulative
/// acknowledgment": the first of these three counts, although it advances SND.UNA.
#[test]
fn a_cumulative_ack_with_new_sack_information_is_a_duplicate() {
    after_ten(
        &base(),
        10_000,
        "
        +0.1 < . 1 ack 1001 sack 2001:2101
        +0 = dupacks 1
        +0 < . 1 ack 1001 sack 2001:2201
        +0 = phase Open
        +0 < . 1 ack 1001 sack 2001:2301
        +0 = dupacks 3
        +0 = phase Recovery
        +0 > . 1001:2001
        ",
    );
}

/// RFC 6675 §4 NextSeg rule 3: what is not lost yet goes after new data; rule 4: the tail is rescued once, after SND.UNA has
/// passed the first retransmission.
#[test]
fn next_seg_rules_three_and_four() {
    after_ten(
        &base(),
        10_000,
        "
        # Segments 1, 8 and 10 are lost. No new data.
        +0.1 < . 1 ack 1 sack 1001:2001
        +0 < . 1 ack 1 sack 1001:3001
        +0 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 < . 1 ack 1 sack 1001:7001
        +0 = pipe 4000
        # Room for one, but nothing is lost, new, or a hole below the highest SACKed byte; too early for the rescue.
        +0 > none
        +0 < . 1 ack 1 sack 8001:9001,1001:7001
        # Rule 3.
        +0 > . 7001:8001
        +0.1 < . 1 ack 7001 sack 8001:9001
        # Rule 4.
        +0 > . 9001:10001
        +0.1 < . 1 ack 9001
        +0 > none
        +0 < . 1 ack 10001
        +0 = timeouts 0
        +0 = retransmits 3
        +0 = phase Open
        ",
    );
}

/// A hole above RecoveryPoint is repaired within the recovery too (NextSeg rule 1); the next recovery begins with a duplicate ACK,
/// not with the ACK that ends the last one. RFC 6675 §5.
#[test]
fn losses_of_data_sent_during_recovery() {
    after_ten(
        &Tcp { limited_transmit: false, ..base() },
        100_000,
        "
        +0.1 < . 1 ack 1 sack 1001:2001
        +0 < . 1 ack 1 sack 1001:3001
        +0 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 < . 1 ack 1 sack 1001:10001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        # 10001:11001 is lost.
        +0.1 < . 1 ack 1 sack 11001:14001,1001:10001
        +0 > . 10001:11001
        +0 > . 14001:15001
        +0 > . 15001:16001
        +0 < . 1 ack 10001 sack 11001:14001
        +0 = phase Open
        +0 = recoveries 1
        +0 = cwnd 5000
        +0 > . 16001:17001
        +0 > . 17001:18001
        +0.1 < . 1 ack 14001
        +0 = phase Open
        +0 = retransmits 2
        +0 > . 18001:19001
        ",
    );
}

/// The rescue is not for a segment that this recovery has sent again already.
#[test]
fn what_was_sent_again_is_not_rescued() {
    after_ten(
        &base(),
        10_000,
        "
        # Segments 1, 2 and 10 are lost; the last is known to be lost only by a timeout.
        +0.1 < . 1 ack 1 sack 2001:5001
        +0 > . 1:1001
        +0 < . 1 ack 1 sack 2001:9001
        +0 > . 1001:2001
        +0.1 < . 1 ack 1001 sack 2001:9001
        +0 > none
        +0 < . 1 ack 9001
        +0 > . 9001:10001
        +0.1 < . 1 ack 10001
        +0 = retransmits 3
        ",
    );
    // Segments 1 and 10: the second is SACKed about, sent again by rule 1 and not a third time.
    after_ten(
        &base(),
        10_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 < . 1 ack 1 sack 1001:6001,7001:10001
        +0 > . 6001:7001
        +0.1 < . 1 ack 6001 sack 7001:10001
        +0 > none
        +0 < . 1 ack 10001
        +0 = retransmits 2
        ",
    );
}

/// What limited transmit sent counts for the loss that follows only. RFC 5681 §3.2 step 2.
#[test]
fn limited_transmit_is_forgotten_when_it_was_reordering() {
    after_ten(
        &no_sack(),
        12_000,
        "
        +0.1 < . 1 ack 1
        +0 > . 10001:11001
        +0 < . 1 ack 1
        +0 > . 11001:12001
        +0 < . 1 ack 2001
        +0 < . 1 ack 2001
        +0 < . 1 ack 2001
        +0 < . 1 ack 2001
        +0 > . 2001:3001
        +0 = ssthresh 5000
        ",
    );
}

/// RFC 3042 off: nothing new before recovery.
#[test]
fn limited_transmit_can_be_off() {
    for cfg in [Tcp { limited_transmit: false, ..no_sack() }, Tcp { limited_transmit: false, ..base() }] {
        let sack = |blocks: &str| if cfg.sack { format!("sack {blocks}") } else { String::new() };
        after_ten(
            &cfg,
            100_000,
            &format!(
                "
                +0.1 < . 1 ack 1 {}
                +0 > none
                +0 < . 1 ack 1 {}
                +0 > none
                +0 < . 1 ack 1 {}
                +0 > . 1:1001
                +0 = ssthresh 5000
                ",
                sack("1001:2001"),
                sack("1001:3001"),
                sack("1001:4001")
            ),
        );
    }
}

/// The reordering threshold is a parameter: with five, three duplicates are reordering.
#[test]
fn dup_thresh_five_tolerates_reordering() {
    after_ten(
        &Tcp { dup_thresh: 5, ..base() },
        10_000,
        "
        +0.1 < . 1 ack 1 sack 1001:2001
        +0 < . 1 ack 1 sack 1001:3001
        +0 < . 1 ack 1 sack 1001:4001
        +0 < . 1 ack 1 sack 1001:5001
        +0 > none
        +0 < . 1 ack 5001
        +0 = phase Open
        +0 = recoveries 0
        +0 = retransmits 0
        ",
    );
}

/// Duplicates must be duplicates: data, a moved window or nothing outstanding do not count. RFC 5681 §2.
#[test]
fn what_is_no_duplicate_ack() {
    after_ten(
        &no_sack(),
        10_000,
        "
        +0.1 < . 1:101 ack 1
        +0 > . 10001 ack 101
        +0 < . 101:201 ack 1
        +0 > . 10001 ack 201
        +0 < . 201:301 ack 1
        +0 > . 10001 ack 301
        +0 = dupacks 0
        +0.1 < . 301 ack 10001
        +0 < . 301 ack 10001
        +0 < . 301 ack 10001
        +0 < . 301 ack 10001
        +0 = dupacks 0
        +0 = phase Open
        ",
    );
    // A window update is none.
    after_ten(
        &Tcp { receive_window: ReceiveWindow::Fixed(FixedWindow { size: Bytes(20_000) }), ..no_sack() },
        10_000,
        "
        +0.1 < . 1 ack 1 win 30000
        +0 < . 1 ack 1 win 40000
        +0 < . 1 ack 1 win 50000
        +0 = dupacks 0
        +0 < . 1 ack 1 win 50000
        +0 = dupacks 1
        +0 = phase Open
        ",
    );
    // A repeated SACK block reports nothing new. RFC 6675 §2.
    after_ten(
        &base(),
        10_000,
        "
        +0.1 < . 1 ack 1 sack 1001:2001
        +0 < . 1 ack 1 sack 1001:2001
        +0 < . 1 ack 1 sack 1001:2001
        +0 = dupacks 1
        +0 = phase Open
        ",
    );
}

/// PRR (RFC 6937 §3.1): ssthresh/RecoverFS of what is delivered is sent, so that pipe falls to ssthresh over the round.
#[test]
fn prr_spreads_the_reduction_over_the_round() {
    let cfg = Tcp { prr: true, limited_transmit: false, initial_window: Some(20), ..base() };
    let twenty: String = (0..20).map(|i| format!("+0 > . {}:{}\n", 1 + 1000 * i, 1001 + 1000 * i)).collect();
    let mut text =
        format!("+0 write 100000\n{twenty}+0.1 < . 1 ack 1 sack 1001:2001\n+0 < . 1 ack 1 sack 1001:3001\n+0 > none\n");
    // The third duplicate: RecoverFS 20000, ssthresh 10000. From then on every second delivered segment sends one, until
    // pipe has come to ssthresh; then each does.
    text += "+0 < . 1 ack 1 sack 1001:4001\n+0 > . 1:1001\n+0 = ssthresh 10000\n+0 = pipe 17000\n";
    let sends = [(7, 20), (9, 21), (11, 22), (13, 23), (16, 24), (17, 25), (18, 26), (19, 27), (20, 28)];
    for sacked in 5..=20 {
        text += &format!("+0 < . 1 ack 1 sack 1001:{}001\n", sacked);
        match sends.iter().find(|s| s.0 == sacked) {
            Some((_, segment)) => text += &format!("+0 > . {segment}001:{}001\n", segment + 1),
            None => text += "+0 > none\n",
        }
    }
    text += "+0 = pipe 10000\n+0.1 < . 1 ack 20001\n+0 = cwnd 10000\n+0 = phase Open\n+0 > . 29001:30001\n";
    run(&cfg, &text);
}

/// PRR rounds its share up (RFC 6937 §3: CEIL). Half of an odd flight is rounded down, so two delivered segments earn a byte less
/// than one of them: without the ceiling each new segment would leave one ACK later.
#[test]
fn prr_rounds_its_share_up() {
    let cfg = Tcp { mss: Some(999), prr: true, limited_transmit: false, initial_window: Some(21), ..base() };
    let at = |segment: u64| 1 + 999 * segment;
    let mut text = "+0 write 100000\n".to_string();
    for i in 0..21 {
        text += &format!("+0 > . {}:{}\n", at(i), at(i + 1));
    }
    text += &format!("+0 > none\n+0.1 < . 1 ack 1 sack {0}:{1}\n+0 < . 1 ack 1 sack {0}:{2}\n", at(1), at(2), at(3));
    // The third duplicate: RecoverFS 20979, ssthresh 10489. It has delivered one segment: CEIL(999 × 10489 / 20979) = 500.
    text += &format!("+0 < . 1 ack 1 sack {}:{}\n+0 = ssthresh 10489\n+0 > . 1:1000\n", at(1), at(4));
    // Each ACK delivers a segment. The first copy has left already; what the share allows beyond it, until a full segment may leave.
    for (sacked, allowed) in [(5, 0), (6, 500), (7, 999), (8, 500), (9, 999), (10, 500), (11, 999)] {
        text += &format!("+0 < . 1 ack 1 sack {}:{}\n", at(1), at(sacked));
        let new = (sacked - 5) / 2;
        if allowed == 999 {
            text += &format!("+0 > . {}:{}\n", at(20 + new), at(21 + new));
        }
        // 21 segments without the SACKed ones, of which the first was lost and sent again, and the new ones.
        let pipe = 999 * (21 - (sacked - 1) + new);
        text += &format!("+0 > none\n+0 = pipe {pipe}\n+0 = cwnd {}\n", pipe + allowed % 999);
    }
    run(&cfg, &text);
}

/// PRR with heavy loss: below ssthresh it grows by slow start, one segment more than delivered (SSRB).
#[test]
fn prr_is_bounded_by_slow_start_below_ssthresh() {
    after_ten(
        &Tcp { prr: true, limited_transmit: false, ..base() },
        100_000,
        "
        # Only the last segment arrives: nine are lost.
        +0.1 < . 1 ack 1 sack 9001:10001
        +0 > none
        +0 < . 1 ack 1 sack 8001:10001
        +0 > none
        +0 < . 1 ack 1 sack 7001:10001
        # pipe 0 after IsLost, 7000 lost: DeliveredData + SMSS = 2000.
        +0 > . 1:1001
        +0 > . 1001:2001
        +0 = ssthresh 5000
        +0 = pipe 2000
        +0.1 < . 1 ack 1001 sack 7001:10001
        +0 > . 2001:3001
        +0 > . 3001:4001
        +0 = pipe 3000
        +0 < . 1 ack 2001 sack 7001:10001
        +0 > . 4001:5001
        +0 > . 5001:6001
        +0 = pipe 4000
        ",
    );
}

/// CUBIC (RFC 9438 §4.6, §4.8): 0.7 of the flight after a loss.
#[test]
fn cubic_reduces_to_seven_tenths() {
    let cubic = Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: true };
    let cfg = Tcp { congestion_control: CongestionControl::Cubic(cubic), ..base() };
    after_ten(
        &cfg,
        10_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 = ssthresh 7000
        +0 = cwnd 7000
        +0.1 < . 1 ack 10001
        +0 = cwnd 7000
        ",
    );
}

/// ACKs of new data are events in recovery, too; duplicates are none.
#[test]
fn acks_in_recovery_are_events() {
    after_ten(
        &base(),
        100_000,
        "
        +0.1 < . 1 ack 1 sack 1001:2001
        +0 > . 10001:11001
        +0 < . 1 ack 1 sack 1001:3001
        +0 > . 11001:12001
        +0 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 = phase Recovery
        +0 < . 1 ack 1 sack 1001:5001
        +0 ! none
        +0.1 < . 1 ack 5001
        +0 ! Acked 5000
        ",
    );
}

/// RFC 6582 §3.2 step 2: beyond the last recovery three duplicates suffice, however far the ACK before them advanced.
#[test]
fn a_later_loss_needs_no_heuristic() {
    after_ten(
        &no_sack(),
        100_000,
        "
        +0.1 < . 1 ack 1
        +0 > . 10001:11001
        +0 < . 1 ack 1
        +0 > . 11001:12001
        +0 < . 1 ack 1
        +0 > . 1:1001
        +0.1 < . 1 ack 12001
        +0 = phase Open
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0.1 < . 1 ack 14001
        +0 > . 14001:15001
        +0 > . 15001:16001
        +0 > . 16001:17001
        +0.1 < . 1 ack 17001
        +0 > . 17001:18001
        +0 > . 18001:19001
        +0 > . 19001:20001
        +0 > . 20001:21001
        +0.1 < . 1 ack 21001
        +0 > . 21001:22001
        +0 > . 22001:23001
        +0 > . 23001:24001
        +0 > . 24001:25001
        +0 > . 25001:26001
        +0.1 < . 1 ack 26001
        +0 > . 26001:27001
        +0 > . 27001:28001
        +0 > . 28001:29001
        +0 > . 29001:30001
        +0 > . 30001:31001
        +0 > . 31001:32001
        +0.1 < . 1 ack 26001
        +0 > . 32001:33001
        +0 < . 1 ack 26001
        +0 > . 33001:34001
        +0 < . 1 ack 26001
        +0 > . 26001:27001
        +0 = phase Recovery
        +0 = recoveries 2
        ",
    );
}

/// Reno leaves at the first ACK of new data, not at a duplicate. Source: RFC 5681 §3.2 step 4.
#[test]
fn a_duplicate_does_not_end_renos_recovery() {
    after_ten(
        &Tcp { congestion_control: CongestionControl::Reno(Reno {}), ..no_sack() },
        10_000,
        "
        +0.1 < . 1 ack 1
        +0 < . 1 ack 1
        +0 < . 1 ack 1
        +0 > . 1:1001
        +0 < . 1 ack 1
        +0 = phase Recovery
        +0 = cwnd 9000
        ",
    );
}
