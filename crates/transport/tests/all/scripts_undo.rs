//! Undoing with RACK, condition by condition: reductions and timeouts that were a mistake, and those that were none.

use crate::common::ten::{after_ten, rack};
use fanin_transport::*;
use fanin_units::Span;

/// A D-SACK undoes a reduction before the recovery is over (Linux tcp_try_undo_dsack); where data is lost, another begins.
#[test]
fn d_sack_undoes_before_the_end() {
    after_ten(
        &rack(),
        11_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 > . 10001:11001
        +0 = phase Recovery
        +0.01 < . 1 ack 4001
        +0 = phase Recovery
        +0 > none
        +0 < . 1 ack 5001 sack 1:1001
        +0 = phase Open
        +0 = undos 1
        +0 = ssthresh 4611686018427387904
        ",
    );
    after_ten(
        &rack(),
        11_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 > . 10001:11001
        +0.01 < . 1 ack 4001
        +0 = recoveries 1
        +0 < . 1 ack 4001 sack 1:1001,5001:8001
        +0 = undos 1
        +0 = phase Recovery
        +0 = recoveries 2
        +0 > . 4001:5001
        ",
    );
}

/// A probe in flight when the recovery begins is one of the retransmissions whose D-SACKs undo the reduction, and counts once. Source:
/// Linux tcp_init_undo.
#[test]
fn d_sacks_of_probe_and_retransmission_undo() {
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 < . 1 ack 8001
        +0.202 > . 9001:10001
        # The last segment overtook the one before it, and both were late.
        +0.1 < . 1 ack 8001 sack 9001:10001
        +0 > . 8001:9001
        +0 = phase Recovery
        +0.01 < . 1 ack 10001
        +0 = undos 0
        +0.01 < . 1 ack 10001 sack 9001:10001
        +0 = undos 0
        +0.01 < . 1 ack 10001 sack 8001:9001
        +0 = undos 1
        +0 = ssthresh 4611686018427387904
        ",
    );
}

/// A probe after a recovery is none of its retransmissions: D-SACKs of those alone undo it. Source: Linux tcp_send_loss_probe.
#[test]
fn a_later_probe_hinders_no_undo() {
    after_ten(
        &rack(),
        11_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 > . 10001:11001
        +0.01 < . 1 ack 10001
        +0 = phase Open
        +0 write 1000
        +0 > . 11001:12001
        +0.202 > . 11001:12001
        +0 = tail_probes 1
        +0.01 < . 1 ack 10001 sack 1:1001
        +0 = undos 1
        ",
    );
}

/// Nothing is undone where `undo` is off.
#[test]
fn undo_can_be_off() {
    after_ten(
        &Tcp { undo: false, ..rack() },
        11_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 > . 10001:11001
        +0 = phase Recovery
        +0.01 < . 1 ack 4001
        +0.01 < . 1 ack 10001 sack 1:1001
        +0 = phase Open
        +0 = undos 0
        +0 = ssthresh 5000
        ",
    );
}

/// A timeout after an undo is a new reduction, although data from before the recovery is outstanding.
#[test]
fn a_timeout_after_an_undo_reduces() {
    after_ten(
        &Tcp { tail_loss_probe: false, spurious_rto: SpuriousRto::None, ..rack() },
        11_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 > . 10001:11001
        +0 = phase Recovery
        +0.01 < . 1 ack 4001
        +0 < . 1 ack 5001 sack 1:1001
        +0 = phase Open
        +0 = ssthresh 4611686018427387904
        +0 = cwnd 11000
        +0.302 > . 5001:6001
        +0 = phase Loss
        +0 = ssthresh 5000
        ",
    );
}

/// A partial ACK that echoes a time before the first retransmission undoes the reduction; a duplicate does not, nor does it while
/// another retransmission is in flight. Source: Linux tcp_try_undo_partial.
#[test]
fn a_partial_ack_of_something_late_undoes() {
    after_ten(
        &Tcp { timestamps: true, timestamp_tick: Span::from_ms(1), ..rack() },
        11_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001 ts 5,0
        +0 > . 1:1001
        +0 > . 10001:11001
        +0 = phase Recovery
        +0.01 < . 1 ack 1 sack 1001:5001 ts 6,0
        +0 = undos 0
        +0 = phase Recovery
        +0.02 < . 1 ack 5001 ts 7,0
        +0 = undos 1
        +0 = phase Open
        +0 = ssthresh 4611686018427387904
        ",
    );
    after_ten(
        &Tcp { timestamps: true, timestamp_tick: Span::from_ms(1), ..rack() },
        10_000,
        "
        +0.1 < . 1 ack 1 sack 2001:7001 ts 5,0
        +0 > . 1:1001
        +0 > . 1001:2001
        +0 = phase Recovery
        +0.02 < . 1 ack 1001 sack 2001:7001 ts 6,0
        +0 = undos 0
        +0 = phase Recovery
        +0 < . 1 ack 7001 ts 7,0
        +0 = undos 1
        +0 = phase Open
        ",
    );
}

/// The echo is compared with the first retransmission of the present recovery.
#[test]
fn each_recovery_has_a_first_retransmission() {
    after_ten(
        &Tcp { timestamps: true, timestamp_tick: Span::from_ms(1), ..rack() },
        17_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001 ts 5,0
        +0 > . 1:1001 ts 100,5
        +0 > . 10001:11001
        +0.1 < . 1 ack 11001 ts 6,100
        +0 = phase Open
        +0 = undos 0
        +0 > . 11001:12001 ts 200,6
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 > . 14001:15001
        +0 > . 15001:16001
        +0 > . 16001:17001
        +0.1 < . 1 ack 11001 sack 12001:15001 ts 7,200
        +0 > . 11001:12001 ts 300,7
        +0 = phase Recovery
        +0.02 < . 1 ack 15001 ts 8,200
        +0 = undos 1
        +0 = phase Open
        ",
    );
}

/// A probe of new data is not among the retransmissions that D-SACKs have to report.
#[test]
fn a_probe_of_new_data_is_no_retransmission() {
    after_ten(
        &rack(),
        15_000,
        "
        +0.1 < . 1 ack 2001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0.2 > . 14001:15001
        +0.01 < . 1 ack 2001 sack 3001:14001
        +0 = phase Recovery
        +0 > . 2001:3001
        +0.01 < . 1 ack 15001 sack 2001:3001
        +0 = undos 1
        ",
    );
}

/// While the NIC is busy nothing has been sent again, and nothing is undone.
#[test]
fn undo_waits_for_the_retransmission() {
    after_ten(
        &rack(),
        10_000,
        "
        +0.1 busy
        +0 < . 1 ack 1 sack 1001:4001
        +0 < . 1 ack 1 sack 1001:5001
        +0 = undos 0
        +0 = phase Recovery
        +0 free
        +0 > . 1:1001
        ",
    );
}

/// Zeros in place of an echo would be older than any retransmission: a peer without timestamps undoes nothing.
#[test]
fn a_peer_without_timestamps_echoes_nothing() {
    after_ten(
        &Tcp { timestamps: true, timestamp_tick: Span::from_ms(1), tail_loss_probe: false, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001 nots
        +0 > . 1:1001
        +0 > . 10001:11001
        +0 = phase Recovery
        +0.1 < . 1 ack 4001 nots
        +0 = phase Recovery
        +0 = undos 0
        +0 > . 4001:5001
        +0 > . 5001:6001
        ",
    );
}

/// A timeout that was spurious, as the echo of the ACK behind it is from before the retransmission; and the end.
fn an_old_echo_after_a_timeout(cfg: Tcp, end: &str) {
    after_ten(
        &Tcp { timestamps: true, timestamp_tick: Span::from_ms(1), tail_loss_probe: false, ..cfg },
        100_000,
        &format!(
            "
        +0.1 < . 1 ack 1001 ts 5,0
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.3 > . 1001:2001 ts 400,5
        +0 = phase Loss
        +0.05 < . 1 ack 2001 ts 6,100
        +0 > . 12001:13001
        +0 > . 13001:14001
        {end}
        "
        ),
    );
}

/// The Eifel response to a timeout is a choice of its own beside `undo`.
#[test]
fn eifel_needs_no_undo() {
    let cfg = Tcp { spurious_rto: SpuriousRto::Eifel, undo: false, ..rack() };
    an_old_echo_after_a_timeout(cfg, "+0 = spurious 1\n+0 = phase Open");
}

/// An echo from before the retransmission shows a timeout to have been spurious, unless `undo` is off.
#[test]
fn an_old_echo_undoes_a_timeout() {
    an_old_echo_after_a_timeout(rack(), "+0 = spurious 1\n+0 = phase Open");
    an_old_echo_after_a_timeout(Tcp { undo: false, ..rack() }, "+0 = spurious 0\n+0 = phase Loss");
}

/// RFC 3522 §3.2: a duplicate decides nothing, whatever it echoes; the first ACK of new data does.
#[test]
fn a_duplicate_does_not_undo_a_timeout() {
    after_ten(
        &Tcp {
            timestamps: true,
            timestamp_tick: Span::from_ms(1),
            tail_loss_probe: false,
            spurious_rto: SpuriousRto::Eifel,
            ..rack()
        },
        100_000,
        "
        +0.1 < . 1 ack 1001 ts 5,0
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.3 > . 1001:2001 ts 400,5
        +0.02 < . 1 ack 1001 ts 6,0
        +0 = spurious 0
        +0 = phase Loss
        +0.03 < . 1 ack 2001 ts 7,100
        +0 = spurious 1
        +0 = phase Open
        +0 > . 12001:13001
        +0 > . 13001:14001
        ",
    );
}
