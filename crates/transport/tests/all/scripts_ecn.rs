//! Explicit congestion notification, classic and DCTCP's.

use crate::common::script::{run, run_as};
use fanin_transport::cc::{CongestionControl, Dctcp, NewReno};
use fanin_transport::*;
use fanin_units::{Bytes, Span};

fn base(control: CongestionControl) -> Tcp {
    let mut cfg = Tcp::new(Profile::Rfc, control);
    cfg.handshake = false;
    cfg.mss = Some(1000);
    cfg.timestamps = false;
    cfg.initial_window = Some(10);
    cfg.rto_min = Span::from_ms(200);
    cfg.ack_every = 1;
    cfg.ecn = true;
    cfg.receive_window = ReceiveWindow::Fixed(FixedWindow { size: Bytes(65_535) });
    cfg
}

fn classic() -> Tcp {
    base(CongestionControl::NewReno(NewReno {}))
}

fn dctcp(initial_alpha: f64) -> Tcp {
    base(CongestionControl::Dctcp(Dctcp { g: 0.0625, initial_alpha, ..fanin_params::defaults() }))
}

const TEN: &str = "
    +0 > . 1:1001 ecn ect
    +0 > . 1001:2001 ecn ect
    +0 > . 2001:3001
    +0 > . 3001:4001
    +0 > . 4001:5001
    +0 > . 5001:6001
    +0 > . 6001:7001
    +0 > . 7001:8001
    +0 > . 8001:9001
    +0 > . 9001:10001
";

/// RFC 3168 §6.1.2: ECE halves the window once per window of data; the next new segment carries CWR.
#[test]
fn ece_halves_once_per_window_and_cwr_answers() {
    run(
        &classic(),
        &format!(
            "+0 write 100000
            {TEN}
            +0.1 < .E 1 ack 1001
            +0 = cwnd 5000
            +0 = ssthresh 5000
            +0 < .E 1 ack 2001
            +0 < .E 1 ack 3001
            +0 < .E 1 ack 4001
            +0 < .E 1 ack 5001
            +0 = cwnd 5000
            +0 > none
            +0 < . 1 ack 6001
            +0 > .W 10001:11001
            +0 < . 1 ack 7001
            +0 > . 11001:12001
            +0 < . 1 ack 10001
            +0 > . 12001:13001
            +0 > . 13001:14001
            +0 > . 14001:15001
            # 5000 bytes acknowledged without ECE: congestion avoidance has added a segment.
            +0 = cwnd 6000
            +0 > . 15001:16001
            # Still the window in which it was reduced: what 10001 acknowledges was sent before.
            +0 = reductions 1
            # An ACK of data sent after the reduction: a new window.
            +0.1 < .E 1 ack 11001
            +0 = reductions 2
            +0 = cwnd 3000
            +0 = ssthresh 3000
            +0 < . 1 ack 13001
            +0 > none
            +0 < . 1 ack 14001
            +0 > .W 16001:17001
            +0 = cwnd 4000
            +0 > . 17001:18001"
        ),
    );
}

/// RFC 3168 §6.1.2: a loss in the window that ECN has already halved does not halve it again; DCTCP's does (RFC 8257 §3.5).
#[test]
fn a_loss_after_ecn_in_the_same_window() {
    let script = |first: &str, second: &str| {
        format!(
            "+0 write 10000
            {TEN}
            +0.1 < .E 1 ack 1001
            +0 = cwnd {first}
            +0 < .E 1 ack 1001 sack 2001:5001
            +0 > . 1001:2001
            +0 = cwnd {second}
            +0 = recoveries 1"
        )
    };
    run(&classic(), &script("5000", "5000"));
    run(&dctcp(0.5), &script("7343", "4500")); // alpha = 15/16 · 0.5 + 1/16 after the first ACK
}

/// RFC 3168 §6.1.3: the receiver echoes until CWR arrives.
#[test]
fn the_classic_echo_latches() {
    run(
        &classic(),
        "
        +0 < . 1:1001 ecn ect
        +0 > . 1 ack 1001
        +0 < . 1001:2001 ecn ce
        +0 > .E 1 ack 2001
        +0 < . 2001:3001 ecn ect
        +0 > .E 1 ack 3001
        +0 write 100
        +0 > .E 1:101 ack 3001
        +0 < .W 3001:4001 ecn ect
        +0 > . 101 ack 4001
        # CWR on a marked segment: the mark is a new one.
        +0 < .W 4001:5001 ecn ce
        +0 > .E 101 ack 5001
        +0 = marked 2
        ",
    );
}

/// RFC 8257 §3.2: with delayed ACKs, a change of the CE state is reported exactly, in two ACKs.
#[test]
fn the_dctcp_ce_state_machine() {
    run(
        &Tcp { ack_every: 2, delayed_ack_timeout: Span::from_ms(40), ..dctcp(1.0) },
        "
        +0 < . 1:1001 ecn ect
        +0 > none
        # CE sets in with a segment pending: it is acknowledged unmarked, the marked one at once.
        +0 < . 1001:2001 ecn ce
        +0 > . 1 ack 1001
        +0 > .E 1 ack 2001
        # While CE stays, every second segment again.
        +0 < . 2001:3001 ecn ce
        +0 > none
        +0 < . 3001:4001 ecn ce
        +0 > .E 1 ack 4001
        # CE ends with nothing pending: one ACK, unmarked.
        +0 < . 4001:5001 ecn ect
        +0 > . 1 ack 5001
        +0 < . 5001:6001 ecn ect
        +0.04 > . 1 ack 6001
        # CE ends with one pending: reported with ECE.
        +0 < . 6001:7001 ecn ce
        +0 > .E 1 ack 7001
        +0 < . 7001:8001 ecn ce
        +0 < . 8001:9001 ecn ect
        +0 > .E 1 ack 8001
        +0 > . 1 ack 9001
        +0 = marked 5
        ",
    );
}

/// RFC 8257 §3.3: alpha per window, the window shrinks by alpha/2, at most once per window.
#[test]
fn dctcp_reduces_by_half_of_alpha() {
    run(
        &dctcp(0.0),
        &format!(
            "+0 write 100000
            {TEN}
            # The first ACK ends an empty window; then 4 of 9 segments are marked.
            +0.1 < . 1 ack 1001
            +0 = alpha 0
            +0 > . 10001:11001
            +0 > . 11001:12001
            +0 < .E 1 ack 2001
            # alpha is 0 still: no reduction, but slow start ends.
            +0 = cwnd 11000
            +0 = ssthresh 11000
            +0 = reductions 1
            +0 > .W 12001:13001
            +0 < .E 1 ack 3001
            +0 > . 13001:14001
            +0 < .E 1 ack 4001
            +0 > . 14001:15001
            +0 < .E 1 ack 5001
            +0 > . 15001:16001
            +0 < . 1 ack 6001
            +0 < . 1 ack 7001
            +0 < . 1 ack 8001
            +0 < . 1 ack 9001
            +0 < . 1 ack 10001
            +0 > . 16001:17001
            +0 > . 17001:18001
            +0 > . 18001:19001
            +0 > . 19001:20001
            +0 > . 20001:21001
            +0 = alpha 0
            +0.1 < . 1 ack 11001
            # 4 of 10 segments: alpha = 4/10 / 16.
            +0 = alpha 0.025
            +0 > . 21001:22001"
        ),
    );
}

/// A full mark with alpha 1 halves; alpha decays by 15/16 per clean window.
#[test]
fn dctcp_starts_as_careful_as_tcp() {
    run(
        &dctcp(1.0),
        &format!(
            "+0 write 10000
            {TEN}
            +0.1 < .E 1 ack 1001
            +0 = alpha 1
            +0 = cwnd 5000
            +0 < .E 1 ack 10001
            +0 = reductions 1
            +0 = cwnd 5000"
        ),
    );
}

/// An ACK counts once towards alpha, marked or not, where RACK finds the losses.
#[test]
fn with_rack_a_marked_ack_counts_once() {
    let rack = LossDetection::Rack;
    run(
        &Tcp { loss_detection: rack, window_rules: WindowRules::Linux, rtt_sampling: RttSampling::EveryAck, ..dctcp(0.0) },
        &format!(
            "+0 write 11000
            {TEN}
            # The first ACK ends an empty window; then 4 of 10 segments are marked.
            +0.1 < . 1 ack 1001
            +0 = alpha 0
            +0 > . 10001:11001
            +0 < .E 1 ack 2001
            +0 < .E 1 ack 3001
            +0 < .E 1 ack 4001
            +0 < .E 1 ack 5001
            +0 < . 1 ack 10001
            +0 < . 1 ack 11001
            +0 = alpha 0.025"
        ),
    );
}

/// PRR spreads an ECN reduction over the round, as Linux does (tcp_enter_cwr).
#[test]
fn with_prr_an_ecn_reduction_is_spread() {
    run(
        &Tcp { prr: true, ..classic() },
        &format!(
            "+0 write 100000
            {TEN}
            # ssthresh 5000, RecoverFS 10000: one segment for every second delivered.
            +0.1 < .E 1 ack 1001
            +0 = phase Cwr
            +0 = ssthresh 5000
            +0 > none
            +0 < .E 1 ack 2001
            +0 > .W 10001:11001
            +0 < .E 1 ack 3001
            +0 > none
            +0 < .E 1 ack 4001
            +0 > . 11001:12001
            +0 < . 1 ack 5001
            +0 > none
            +0 < . 1 ack 6001
            +0 > . 12001:13001
            +0 < . 1 ack 7001
            +0 > none
            # pipe has come to ssthresh: from here each delivered segment sends one.
            +0 < . 1 ack 8001
            +0 = pipe 5000
            +0 > none
            +0 < . 1 ack 9001
            +0 > . 13001:14001
            +0 < . 1 ack 10001
            +0 > . 14001:15001
            +0 = cwnd 5000
            +0 = phase Open
            +0 = reductions 1"
        ),
    );
}

/// Which packets are ECN-capable. RFC 3168 §6.1.4, §6.1.5.
#[test]
fn ect_on_new_data_on_data_or_on_all() {
    for (ect_on, retransmission, ack) in [(EctOn::NewData, "not", "not"), (EctOn::Data, "ect", "not"), (EctOn::All, "ect", "ect")]
    {
        run(
            &Tcp { ect_on, ..classic() },
            &format!(
                "+0 write 1000
                +0 > . 1:1001 ecn ect
                +0 < . 1:101 ecn ect
                +0 > . 1001 ack 101 ecn {ack}
                +1 > . 1:1001 ecn {retransmission}"
            ),
        );
    }
}

/// A connection without ECN neither marks nor listens.
#[test]
fn without_ecn_nothing_is_echoed() {
    run(
        &Tcp { ecn: false, ..classic() },
        "
        +0 write 1000
        +0 > . 1:1001 ecn not
        +0 < . 1:101 ecn ce
        +0 > . 1001 ack 101
        +0.1 < .E 101 ack 1001
        +0 = reductions 0
        +0 = cwnd 10000
        ",
    );
}

/// RFC 3168 §6.1.1: ECN is used when SYN and SYN/ACK agree on it.
#[test]
fn ecn_is_negotiated_by_the_handshake() {
    let cfg = Tcp { handshake: true, ..classic() };
    for (answer, ect) in [("S.E", "ect"), ("S.", "not"), ("S.EW", "not")] {
        run(
            &cfg,
            &format!(
                "+0 > SEW 0 ecn not
                +0.1 < {answer} 0 ack 1
                +0 > . 1 ack 1
                +0 write 100
                +0 > . 1:101 ecn {ect}"
            ),
        );
    }
    for (syn, answer) in [("SEW", "S.E"), ("S", "S."), ("SE", "S.")] {
        run_as(&cfg, Role::Responder, &format!("+0 < {syn} 0\n+0 > {answer} 0 ack 1\n+0.1 < . 1 ack 1\n+0 = state Established"));
    }
    run_as(&Tcp { ecn: false, ..cfg }, Role::Responder, "+0 < SEW 0\n+0 > S. 0 ack 1");
}
