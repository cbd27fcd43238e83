//! packetdrill's scripts of ECN, opening and closing, checks of segments, and D-SACK, in our language. Each names its file below
//! google/packetdrill `gtests/net/tcp`, or the kernel's `tools/testing/selftests/net/packetdrill`.

use crate::common::packetdrill::{linux, server};
use crate::common::script::{run, run_as};
use fanin_transport::{Role, Tcp};
use fanin_units::Span;

/// ecn/ecn-uses-ect0: the SYN offers ECN (RFC 3168 §6.1.1), data are ECT.
#[test]
fn ecn_uses_ect0() {
    run(
        &Tcp { ecn: true, ..linux() },
        "
        +0 > SEW 0
        +0.002 < SE. 0 ack 1 mss 1000 wscale 6 sackok
        +0 > . 1 ack 1
        +0.002 write 1000
        +0 > . 1:1001 ack 1 ecn ect
        ",
    );
}

/// cwnd_moderation/cwnd-moderation-ecn-enter-cwr-no-moderation-700: ECE with four segments in flight: the window is reduced by PRR (Linux's
/// own: RFC 3168 §6.1.2 halves it at once), ssthresh from cwnd. The original has 4: since Linux 6.0 an ACK that makes progress lets one more
/// leave (RFC 9937 §6), as here.
#[test]
fn ecn_reduces_by_prr() {
    run_as(
        &Tcp { ecn: true, ..linux() },
        Role::Responder,
        "
        +0 < SEW 0 mss 1000 sackok wscale 7
        +0 > SE. 0 ack 1
        +0.1 < . 1 ack 1
        +0 write 4000
        +0 > . 1:1001 ecn ect
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0 > . 3001:4001
        +0.005 = cwnd 10000
        +0.095 < E. 1 ack 1001
        +0.005 = reductions 1
        +0 = ssthresh 7000
        +0 = cwnd 5000
        ",
    );
}

/// close/close-local-close-then-remote-fin.
#[test]
fn close_here_then_there() {
    run(
        &linux(),
        "
        +0 > S 0
        +0.01 < S. 0 ack 1 mss 1000 wscale 6 sackok
        +0 > . 1 ack 1
        +0 write 1000
        +0 > . 1:1001
        +0 < . 1 ack 1001
        +0 close
        +0 > F. 1001 ack 1
        +0 < . 1 ack 1002
        +0 < F. 1 ack 1002
        +0 > . 1002 ack 2
        +0 = state TimeWait
        ",
    );
}

/// close/close-remote-fin-then-close.
#[test]
fn close_there_then_here() {
    run(
        &linux(),
        "
        +0 > S 0
        +0.01 < S. 0 ack 1 mss 1000 wscale 6 sackok
        +0 > . 1 ack 1
        +0 write 1000
        +0 > . 1:1001
        +0 < . 1 ack 1001
        +0 < F. 1 ack 1001
        +0 > . 1001 ack 2
        +0 close
        +0 > F. 1001 ack 2
        +0 < . 2 ack 1002
        +0 = state Closed
        ",
    );
}

/// ts_recent/invalid_ack: a FIN that acknowledges what was never sent is dropped (RFC 9293 §3.10.7.4), and its timestamp with it.
#[test]
fn an_ack_of_the_future_changes_nothing() {
    run_as(
        &Tcp { timestamps: true, ..linux() },
        Role::Responder,
        "
        +0.1 < S 0 mss 1000 sackok ts 100,0
        +0 > S. 0 ack 1 ts 100,100
        +0.1 < . 1 ack 1 ts 200,100
        +0 < F. 1 ack 9999 ts 200000,100
        # It is answered, as RFC 9293 asks; Linux drops it silently.
        +0 > . 1 ack 1 ts 200,200
        +0 = state Established
        +0 < . 1:1001 ack 1 ts 201,100
        +0 > . 1 ack 1001 ts 200,201
        ",
    );
}

/// validate/validate-established-no-flags: a segment without ACK is dropped (RFC 9293 §3.10.7.4).
#[test]
fn a_segment_without_ack_is_dropped() {
    server(
        &linux(),
        0.01,
        "
        +0.01 < - 1:1001
        +0 > none
        +0 = delivered 0
        +0.01 < . 1:1001 ack 1
        +0 = delivered 1000
        +0 > . 1 ack 1001
        ",
    );
}

/// The kernel's tcp_dsack_mult: SACK blocks newest first, those next to each other merged (RFC 2018 §4); what comes twice is reported
/// first (RFC 2883 §4).
#[test]
fn dsack_mult() {
    server(
        &Tcp { sack_compression: fanin_transport::SackCompression::None(fanin_transport::Uncompressed {}), ..linux() },
        0.1,
        "
        +0 < . 1001:2001 ack 1
        +0 > . 1 ack 1 sack 1001:2001
        +0 < . 2001:3001 ack 1
        +0 > . 1 ack 1 sack 1001:3001
        +0 < . 4001:5001 ack 1
        +0 > . 1 ack 1 sack 4001:5001,1001:3001
        +0 < . 7001:8001 ack 1
        +0 > . 1 ack 1 sack 7001:8001,4001:5001,1001:3001
        +0 < . 1:6001 ack 1
        +0 > . 1 ack 6001 sack 1001:3001,7001:8001
        +0 < . 6001:8001 ack 1
        +0 > . 1 ack 8001 sack 7001:8001
        +0 < . 1:1001 ack 1
        +0 > . 1 ack 8001 sack 1:1001
        ",
    );
}

/// The kernel's tcp_rto_synack_rto_max, without Fast Open: the largest RTO holds for SYN/ACKs too.
#[test]
fn the_largest_rto_holds_for_syn_acks() {
    run_as(
        &Tcp { rto_max: Span::from_s(1), ..linux() },
        Role::Responder,
        "
        +0 < S 0 mss 1460 sackok
        +0 > S. 0 ack 1
        +1 > S. 0 ack 1
        +1 > S. 0 ack 1
        +1 > S. 0 ack 1
        +0 < . 1 ack 1
        +0 = state Established
        ",
    );
}
