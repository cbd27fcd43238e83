//! Drop notifications, step by step. Source: PDN §IV.

use crate::common::script::{run, run_as};
use crate::common::ten::{after_ten, base, no_sack, rack};
use fanin_transport::cc::{CongestionControl, Cubic, Dctcp};
use fanin_transport::*;
use fanin_units::Span;

fn notified(cfg: Tcp) -> Tcp {
    Tcp { drop_notification: true, ..cfg }
}

/// The bytes are sent again at once, the window halves, recovery lasts until what was outstanding is acknowledged, and
/// duplicate ACKs of the same loss say nothing new: with and without SACK.
#[test]
fn what_was_dropped_is_sent_again_at_once_and_the_window_halves() {
    for cfg in [notified(base()), notified(no_sack())] {
        let sack = |blocks: &str| if cfg.sack { format!("sack {blocks}") } else { String::new() };
        after_ten(
            &cfg,
            100_000,
            &format!(
                "
                +0.01 drop 2001:3001
                +0 > . 2001:3001
                +0 > none
                +0 = outcome retransmitted
                +0 = phase Recovery
                +0 = cwnd 5000
                +0 = ssthresh 5000
                +0 = pipe 10000
                # ACKs of what was sent before it are no partial ACKs: nothing is lost but what was notified.
                +0.09 < . 1 ack 1001
                +0 < . 1 ack 2001
                +0 > none
                +0 = cwnd 5000
                # Seven duplicates. Each takes a segment out of the network: 8 − 4 < 5 lets the fourth send one.
                +0 < . 1 ack 2001 {}
                +0 < . 1 ack 2001 {}
                +0 < . 1 ack 2001 {}
                +0 > none
                +0 < . 1 ack 2001 {}
                +0 > . 10001:11001
                +0 < . 1 ack 2001 {}
                +0 > . 11001:12001
                +0 = phase Recovery
                +0 = recoveries 1
                +0.01 < . 1 ack 10001
                +0 = phase Open
                +0 = retransmits 1
                +0 = cuts 1
                +0 = timeouts 0
                ",
                sack("3001:4001"),
                sack("3001:5001"),
                sack("3001:6001"),
                sack("3001:7001"),
                sack("3001:10001"),
            )
            // With SACK the last block takes three segments at once; without, each duplicate one.
            .replace(
                "+0 > . 11001:12001\n",
                if cfg.sack { "+0 > . 11001:12001\n+0 > . 12001:13001\n+0 > . 13001:14001\n" } else { "+0 > . 11001:12001\n" },
            )
            .replace(
                "+0 = phase Open\n",
                if cfg.sack {
                    "+0 = phase Open\n+0 > . 14001:15001\n"
                } else {
                    "+0 = phase Open\n+0 = cwnd 3000\n+0 > . 12001:13001\n"
                },
            ),
        );
    }
}

/// With `drop_resend = "window"` it waits until the halved window has room, before new data; with nothing in flight it does not.
#[test]
fn what_was_dropped_may_wait_for_the_window() {
    let cfg = Tcp { drop_resend: DropResend::Window, ..notified(base()) };
    after_ten(
        &cfg,
        100_000,
        "
        +0.01 drop 2001:3001
        +0 > none
        +0 = outcome retransmitted
        +0 = cwnd 5000
        +0 = pipe 9000
        +0.09 < . 1 ack 2001
        +0 < . 1 ack 2001 sack 3001:5001
        +0 = pipe 5000
        +0 > none
        +0 < . 1 ack 2001 sack 3001:6001
        +0 > . 2001:3001
        +0 < . 1 ack 2001 sack 3001:7001
        +0 > . 10001:11001
        +0 = retransmits 1
        ",
    );
    let one = Tcp { initial_window: Some(1), ..cfg };
    run(
        &one,
        "+0 write 3000\n+0 > . 1:1001\n+0.01 drop 1:1001\n+0 > . 1:1001\n+0.1 < . 1 ack 1001\n+0 > . 1001:2001\n+0 > . 2001:3001",
    );
}

/// A burst of drops is one congestion: all are sent again, the window halves once, in whatever order they are notified.
#[test]
fn a_burst_of_drops_halves_once() {
    for cfg in [notified(base()), notified(no_sack())] {
        after_ten(
            &cfg,
            10_000,
            "
            +0.01 drop 7001:8001
            +0 > . 7001:8001
            +0 drop 9001:10001
            +0 > . 9001:10001
            +0 drop 8001:9001
            +0 > . 8001:9001
            +0 = cuts 1
            +0 = cwnd 5000
            +0 = pipe 10000
            +0.1 < . 1 ack 7001
            +0 < . 1 ack 10001
            +0 = phase Open
            +0 = retransmits 3
            +0 = timeouts 0
            ",
        );
    }
}

/// Once per RTT: a drop of what was sent after the reduction, an SRTT or more after it, halves again; sooner, or of what was
/// sent before, it does not.
#[test]
fn the_window_halves_once_per_rtt() {
    // SRTT is 0.1 s from the ACK of the first segment.
    let begin = "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0 = srtt 0.1
        +0 = cwnd 11000
        +0.01 drop 11001:12001
        +0 > . 11001:12001
        +0 = ssthresh 5500
        # The copy is dropped too, 50 ms later.
        +0.05 drop 11001:12001
        +0 > . 11001:12001
        +0 = cuts 1
        ";
    // 99 ms after the reduction: not yet. 101 ms: a segment from before it says nothing new, a copy sent since does.
    after_ten(&notified(base()), 100_000, &format!("{begin} +0.049 drop 11001:12001\n+0 > . 11001:12001\n+0 = cuts 1"));
    let again = "
        +0.051 drop 10001:11001
        +0 > . 10001:11001
        +0 = cuts 1
        +0 drop 11001:12001
        +0 > . 11001:12001
        +0 = cuts 2
        +0 = ssthresh 2750
        +0 = recoveries 1
        ";
    after_ten(&notified(base()), 100_000, &format!("{begin} {again}"));
}

/// The operation "retransmit only": nothing else changes, and duplicate ACKs of the loss change nothing either.
#[test]
fn retransmit_only_leaves_the_window() {
    for cfg in [notified(base()), notified(no_sack())] {
        let sack = |blocks: &str| if cfg.sack { format!("sack {blocks}") } else { String::new() };
        after_ten(
            &cfg,
            10_000,
            &format!(
                "
                +0.01 drop 1:1001 op 2
                +0 > . 1:1001
                +0 = phase Open
                +0 = cwnd 10000
                +0.1 < . 1 ack 1 {}
                +0 < . 1 ack 1 {}
                +0 < . 1 ack 1 {}
                +0 < . 1 ack 1 {}
                +0 > none
                +0 = phase Open
                +0 = recoveries 0
                +0 < . 1 ack 10001
                +0 = cuts 0
                +0 = notices 1
                +0 = retransmits 1
                ",
                sack("1001:2001"),
                sack("1001:3001"),
                sack("1001:4001"),
                sack("1001:5001"),
            ),
        );
    }
}

/// Unknown operations are refused, whatever they point at; an endpoint without notifications says so.
#[test]
fn unknown_operations_are_refused() {
    for (cfg, outcome) in [(notified(base()), "undefined"), (base(), "ignored")] {
        for operation in [0, 4, 255] {
            let text =
                format!("+0 drop 1:1001 op {operation}\n+0 = outcome {outcome}\n+0 > none\n+0 = cwnd 10000\n+0 = notices 0");
            after_ten(&cfg, 10_000, &text);
        }
    }
}

/// The newest acknowledgment is sent again, SACK blocks and all; one whose place a newer one has taken, or will take, is not. It
/// reports nothing of data, so the window stays.
#[test]
fn a_dropped_acknowledgment_is_sent_again_if_it_was_the_newest() {
    run(
        &Tcp { ack_every: 2, ..notified(base()) },
        "
        +0 write 3000
        +0 > . 1:1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0 = cwnd 10000
        +0.1 < . 1:1001 ack 1
        +0 < . 1001:2001 ack 1
        +0 > . 3001 ack 2001
        +0.01 drop ack 2001
        +0 = outcome retransmitted
        +0 > . 3001 ack 2001
        +0 > none
        # Again dropped, again sent.
        +0.01 drop ack 2001
        +0 > . 3001 ack 2001
        # Data has come whose acknowledgment is delayed: it is due.
        +0.01 < . 2001:3001 ack 1
        +0 > none
        +0 drop ack 2001
        +0 = outcome retransmitted
        +0 > . 3001 ack 3001
        +0 drop ack 2001
        +0 = outcome redundant
        +0 > none
        +0 < . 4001:5001 ack 1
        +0 > . 3001 ack 3001 sack 4001:5001
        +0 drop ack 3001
        +0 > . 3001 ack 3001 sack 4001:5001
        +0 drop ack 9001
        +0 = outcome redundant
        +0 drop ack 0
        +0 = outcome redundant
        +0 > none
        +0 = cwnd 10000
        +0 = recoveries 0
        +0 = retransmits 0
        ",
    );
}

/// Of a handshake the third packet: it is an acknowledgment without data. And the last of a connection, from TIME-WAIT.
#[test]
fn acknowledgments_of_the_handshake_and_of_the_end_are_sent_again() {
    run(
        &Tcp { handshake: true, ..notified(base()) },
        "
        +0 write 1000
        +0 close
        +0 > S 0
        +0 drop ack 1
        +0 = outcome unknown
        +0.1 < S. 0 ack 1
        +0 > . 1 ack 1
        +0 > F. 1:1001 ack 1
        +0 drop ack 1
        +0 = outcome retransmitted
        +0 > . 1002 ack 1
        +0.1 < F. 1 ack 1002
        +0 > . 1002 ack 2
        +0 = state TimeWait
        +0 drop ack 2
        +0 = outcome retransmitted
        +0 > . 1002 ack 2
        ",
    );
}

/// Acknowledged, selectively acknowledged, never sent, without data, or repeated before the copy has left: nothing happens.
#[test]
fn a_notification_of_something_else_does_no_harm() {
    after_ten(
        &notified(base()),
        10_000,
        "
        +0.1 < . 1 ack 2001 sack 3001:5001
        # Below SND.UNA, also from before the wrap; SACKed.
        +0 drop 1:1001
        +0 = outcome arrived
        +0 drop 0:1001
        +0 = outcome arrived
        +0 drop 3001:4001
        +0 = outcome arrived
        # Beyond SND.NXT: half, and far away.
        +0 drop 9001:10501
        +0 = outcome unknown
        +0 drop 200000:201000
        +0 = outcome unknown
        +0 drop 3000000000:3000001000
        +0 = outcome arrived
        # No data: a pure ACK, or the place of a FIN that was not sent.
        +0 drop 2001
        +0 = outcome unknown
        +0 drop 10001
        +0 = outcome unknown
        +0 > none
        +0 = cwnd 11000
        +0 = notices 0
        # Half of it SACKed, and from below SND.UNA: the rest is sent, once.
        +0 drop 1501:3501
        +0 > . 2001:3001
        +0 = retransmits 1
        ",
    );
    run(&notified(base()), "+0 drop 1:1001\n+0 = outcome unknown\n+0 write 1000\n+0 > . 1:1001\n+0.1 < . 1 ack 1001");
}

/// What cannot be distinguished costs one segment: the notification of a copy that was dropped is the same as a late one.
#[test]
fn a_copy_that_is_dropped_again_is_sent_again() {
    after_ten(
        &notified(base()),
        10_000,
        "
        +0.01 drop 9001:10001
        +0 > . 9001:10001
        +0.01 drop 9001:10001
        +0 > . 9001:10001
        +0.01 drop 9001:10001
        +0 > . 9001:10001
        +0.07 < . 1 ack 9001
        +0 < . 1 ack 10001
        +0 = retransmits 3
        +0 = timeouts 0
        +0 = cuts 1
        ",
    );
}

/// Mixed fabrics: a loss without notification is found by duplicate ACKs within the recovery of one that was notified, and does
/// not halve the window a second time.
#[test]
fn losses_without_notification_are_found_by_duplicate_acks() {
    for cfg in [notified(base()), notified(no_sack())] {
        let sack = |blocks: &str| if cfg.sack { format!("sack {blocks}") } else { String::new() };
        after_ten(
            &cfg,
            10_000,
            &format!(
                "
                # 3001:4001 is notified, 1001:2001 is not.
                +0.01 drop 3001:4001
                +0 > . 3001:4001
                +0 = cwnd 5000
                +0.09 < . 1 ack 1001
                +0 < . 1 ack 1001 {}
                +0 < . 1 ack 1001 {}
                +0 > none
                +0 < . 1 ack 1001 {}
                +0 > . 1001:2001
                +0 > none
                +0 = ssthresh 5000
                +0 = recoveries 1
                # It arrives; the copy of the other is still under way, and is not sent a third time.
                +0.05 < . 1 ack 3001 {}
                +0 > none
                +0.05 < . 1 ack 10001
                +0 = retransmits 2
                +0 = cuts 1
                +0 = phase Open
                +0 = timeouts 0
                ",
                sack("2001:3001"),
                sack("4001:5001,2001:3001"),
                sack("4001:6001,2001:3001"),
                sack("4001:10001"),
            ),
        );
    }
}

/// A notification that arrives after three duplicate ACKs have begun the recovery sends once more and halves nothing.
#[test]
fn a_notification_after_duplicate_acks_does_not_halve_again() {
    after_ten(
        &notified(no_sack()),
        10_000,
        "
        +0.1 < . 1 ack 1
        +0 < . 1 ack 1
        +0 < . 1 ack 1
        +0 > . 1:1001
        +0 = ssthresh 5000
        +0.01 drop 1:1001
        +0 > . 1:1001
        +0 = ssthresh 5000
        +0 = cuts 0
        +0 = recoveries 1
        +0.1 < . 1 ack 10001
        +0 = phase Open
        ",
    );
}

/// After a timeout everything is sent again in order; a notification of what has not had its turn changes nothing, one of a
/// copy that was sent since has it sent again, and the window is one segment anyway.
#[test]
fn a_timeout_and_a_notification_react_once() {
    after_ten(
        &notified(base()),
        10_000,
        "
        +1 > . 1:1001
        +0 = timeouts 1
        +0 = ssthresh 5000
        +0 drop 5001:6001
        +0 = outcome redundant
        +0 > none
        +0.01 drop 1:1001
        +0 > . 1:1001
        +0 = phase Loss
        +0 = cwnd 1000
        +0.09 < . 1 ack 1001
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0 = cwnd 2000
        ",
    );
}

/// The copy of the oldest segment restarts the retransmission timer; that of a later one does not.
#[test]
fn the_timer_is_that_of_the_oldest_segment() {
    let cfg = notified(Tcp { rto_initial: Span::from_ms(200), ..base() });
    after_ten(&cfg, 10_000, "+0.15 drop 1:1001\n+0 > . 1:1001\n+0.19 = timeouts 0\n+0.01 > . 1:1001\n+0 = timeouts 1");
    after_ten(&cfg, 10_000, "+0.15 drop 1001:2001\n+0 > . 1001:2001\n+0.05 > . 1:1001\n+0 = timeouts 1");
}

/// Windows of one and two segments do not grow by being halved.
#[test]
fn a_window_of_one_stays_one() {
    let cfg = notified(Tcp { initial_window: Some(1), ..base() });
    run(
        &cfg,
        "
        +0 write 3000
        +0 > . 1:1001
        +0.01 drop 1:1001
        +0 > . 1:1001
        +0 = cwnd 1000
        +0 = ssthresh 2000
        +0.1 < . 1 ack 1001
        +0 = phase Open
        +0 = cwnd 2000
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0.1 < . 1 ack 3001
        ",
    );
}

/// Each congestion control takes its own step for a loss: CUBIC to 0.7, DCTCP to a half whatever alpha is.
#[test]
fn the_reduction_is_the_congestion_controls() {
    let cubic = CongestionControl::Cubic(Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: true });
    let dctcp = CongestionControl::Dctcp(Dctcp { g: 0.0625, initial_alpha: 0.25, ..fanin_params::defaults() });
    for (control, cwnd) in [(cubic, 7000), (dctcp, 5000)] {
        let cfg = notified(Tcp { congestion_control: control, ..base() });
        let text = format!("+0.01 drop 9001:10001\n+0 > . 9001:10001\n+0 = cwnd {cwnd}\n+0 = ssthresh {cwnd}");
        after_ten(&cfg, 10_000, &text);
    }
}

/// PRR: the reduction is spread over the round, the copy of the dropped segment counted.
#[test]
fn prr_spreads_the_reduction() {
    after_ten(
        &notified(Tcp { prr: true, ..base() }),
        100_000,
        "
        +0.01 drop 1:1001
        +0 > . 1:1001
        +0 = ssthresh 5000
        +0 > none
        # ssthresh / RecoverFS = 1/2 of what is delivered, less the copy: after four, one new segment.
        +0.09 < . 1 ack 1 sack 1001:2001
        +0 < . 1 ack 1 sack 1001:3001
        +0 > none
        +0 < . 1 ack 1 sack 1001:4001
        +0 > none
        +0 < . 1 ack 1 sack 1001:5001
        +0 > . 10001:11001
        +0 < . 1 ack 1 sack 1001:6001
        +0 > none
        # pipe has come to ssthresh: each that is delivered sends one.
        +0 < . 1 ack 1 sack 1001:7001
        +0 = pipe 5000
        +0 > none
        +0 < . 1 ack 1 sack 1001:8001
        +0 > . 11001:12001
        ",
    );
}

/// SYN and SYN/ACK: sent again without back-off; the initial window is one segment, or unchanged with "retransmit only".
#[test]
fn a_dropped_syn_is_sent_again() {
    for (operation, segments) in [(1, 1), (2, 2)] {
        let cfg = notified(Tcp { handshake: true, initial_window: Some(2), rto_initial: Span::from_s(1), ..base() });
        let rest = if segments == 2 { "+0 > . 1001:2001" } else { "+0 > none" };
        run(
            &cfg,
            &format!(
                "
                +0 write 10000
                +0 > S 0
                +0.01 drop 0 op {operation}
                +0 > S 0
                # The timer runs from the copy: no back-off, RTO still the initial one.
                +0.99 = timeouts 0
                +0 < S. 0 ack 1 mss 1000
                +0 > . 1 ack 1
                +0 > . 1:1001
                {rest}
                +0 = rto 1
                # Late.
                +0 drop 0
                +0 = outcome unknown
                "
            ),
        );
    }
    let cfg = notified(Tcp { handshake: true, ..base() });
    run_as(&cfg, Role::Responder, "+0 drop 0\n+0 = outcome unknown\n+0 < S 0 mss 1000\n+0 > S. 0 ack 1\n+0.01 drop 0\n+0 > S. 0 ack 1\n+0 drop 1\n+0 = outcome unknown");
}

/// A FIN, alone or on the last segment.
#[test]
fn a_dropped_fin_is_sent_again() {
    let cfg = notified(Tcp { handshake: true, initial_window: Some(1), ..base() });
    let open = "+0 > S 0\n+0.1 < S. 0 ack 1 mss 1000\n+0 > . 1 ack 1\n";
    run(
        &cfg,
        &format!(
            "{open}
            +0 write 2000
            +0 > . 1:1001
            +0 close
            +0.1 < . 1 ack 1001
            +0 > F. 1001:2001
            +0.01 drop 1001:2001
            +0 > F. 1001:2001
            +0 = pipe 1001
            +0.1 < . 1 ack 2002
            +0 = state FinWait2
            +0 = timeouts 0
            +0 drop 1001:2001
            +0 = outcome arrived
            "
        ),
    );
    run(
        &cfg,
        &format!(
            "{open}
            +0 write 1000
            +0 > . 1:1001
            +0 close
            +0 > F. 1001
            +0.01 drop 1001
            +0 > F. 1001
            +0.1 < . 1 ack 1002
            +0 = state FinWait2
            +0 = timeouts 0
            "
        ),
    );
}

/// Segments leave room for a notification: 20 bytes less, or 44 with IPv6, announced and sent; a smaller `mss` stays.
#[test]
fn segments_leave_room_for_a_notification() {
    use fanin_packet::IpVersion::{V4, V6};
    let mut cfg = notified(Tcp { handshake: true, mss: None, ..base() });
    assert_eq!((cfg.payload(1500, V4, false), cfg.payload(1500, V4, true), cfg.announced_mss(1500, V4)), (1440, 1428, 1440));
    assert_eq!((cfg.payload(1500, V6, false), cfg.payload(1500, V6, true), cfg.announced_mss(1500, V6)), (1396, 1384, 1396));
    run(&cfg, "+0 > S 0 mss 1440\n+0.1 < S. 0 ack 1 mss 1460\n+0 > . 1 ack 1\n+0 = mss 1440\n+0 write 2000\n+0 > . 1:1441\n+0 > . 1441:2001");
    cfg.mss = Some(1000);
    assert_eq!(cfg.payload(1500, V4, true), 1000);
}

/// With RACK a notification begins a recovery whose reduction is not undone, whatever D-SACKs say.
#[test]
fn rack_halves_at_a_notification() {
    after_ten(
        &Tcp { drop_notification: true, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.01 drop 1001:2001
        +0 = cuts 1
        +0 = recoveries 1
        +0 = phase Recovery
        +0 = ssthresh 5000
        +0 > . 1001:2001
        +0.09 < . 1 ack 1001 sack 2001:3001
        +0 > none
        +0.1 < . 1 ack 12001 sack 1001:2001
        +0 = undos 0
        +0 = phase Open
        +0 = ssthresh 5000
        +0 > . 12001:13001
        +0 > . 13001:14001
        +0 > . 14001:15001
        +0 > . 15001:16001
        +0 > . 16001:17001
        +0 > . 17001:18001
        ",
    );
}

/// After a timeout with RACK the window stays, in a recovery it is reduced from ssthresh.
#[test]
fn rack_answers_in_loss_and_recovery() {
    after_ten(
        &Tcp { drop_notification: true, tail_loss_probe: false, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1001
        +0 > . 10001:11001
        +0 > . 11001:12001
        +0.3 > . 1001:2001
        +0 = phase Loss
        +0 = ssthresh 5000
        +0.1 drop 1001:2001
        +0 = cuts 1
        +0 > . 1001:2001
        +0 = phase Loss
        +0 = cwnd 1000
        ",
    );
    after_ten(
        &Tcp { drop_notification: true, ..rack() },
        100_000,
        "
        +0.1 < . 1 ack 1 sack 1001:4001
        +0 > . 1:1001
        +0 > . 10001:11001
        +0 = phase Recovery
        +0 = ssthresh 5000
        +0.1 drop 10001:11001
        +0 = cuts 1
        +0 > . 10001:11001
        +0 = phase Recovery
        +0 = recoveries 1
        +0 = ssthresh 2000
        ",
    );
}
