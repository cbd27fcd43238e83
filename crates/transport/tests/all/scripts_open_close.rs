//! Handshake and close, with losses. RFC 9293 §3.5, §3.6.

use crate::common::script::{run, run_as};
use fanin_transport::cc::{CongestionControl, NewReno};
use fanin_transport::*;
use fanin_units::{Bytes, Span};

fn base() -> Tcp {
    let mut cfg = Tcp::new(Profile::Rfc, CongestionControl::NewReno(NewReno {}));
    cfg.initial_window = Some(10);
    cfg.rto_min = Span::from_ms(200);
    cfg.ack_every = 1;
    cfg.timestamps = false;
    cfg.receive_window = ReceiveWindow::Fixed(FixedWindow { size: Bytes(1_000_000) });
    cfg
}

#[test]
fn an_initiator_opens_sends_and_closes() {
    run(
        &base(),
        "
        +0 > S 0 win 65535 mss 1460
        +0 = state SynSent
        +0 write 2000
        +0 > none
        +0.1 < S. 0 ack 1 mss 1460 wscale 4 sackok win 10000
        +0 ! Connected
        +0 = state Established
        +0 > . 1 ack 1 win 62500
        +0 > . 1:1461 ack 1
        +0 > . 1461:2001
        # The SYN is the first RTT sample.
        +0 = srtt 0.1
        +0 close
        +0 > F. 2001 ack 1
        +0 = state FinWait1
        +0.1 < . 1 ack 2001 win 1000
        +0 < . 1 ack 2002 win 1000
        +0 = state FinWait2
        +0 ! Acked 2000
        +0 < . 1:101 ack 2002
        +0 > . 2002 ack 101
        +0 < F. 101 ack 2002
        +0 > . 2002 ack 102
        +0 = state TimeWait
        +0 ! Delivered 100
        +0 ! PeerClosed
        +0 ! Closed
        +0 ! none
        # A FIN that arrives again is answered and restarts 2 MSL.
        +100 < F. 101 ack 2002
        +0 > . 2002 ack 102
        +239 = state TimeWait
        +1 = state Closed
        ",
    );
}

#[test]
fn a_responder_accepts_and_closes_last() {
    run_as(
        &base(),
        Role::Responder,
        "
        +0 = state Listen
        +1 < S 0 mss 1000 wscale 2 sackok win 20000
        +0 > S. 0 ack 1 mss 1460
        +0 = state SynReceived
        +0.1 < . 1:501 ack 1 win 5000
        +0 ! Connected
        +0 > . 1 ack 501
        +0 = mss 1000
        +0 write 1500
        +0 > . 1:1001
        +0 > . 1001:1501
        +0 < F. 501 ack 1501
        +0 > . 1501 ack 502
        +0 = state CloseWait
        +0 close
        +0 > F. 1501 ack 502
        +0 = state LastAck
        +0.1 < . 502 ack 1502
        +0 = state Closed
        ",
    );
}

/// FIN rides on the last segment when the application closes before it is sent.
#[test]
fn fin_rides_on_the_last_segment() {
    run(
        &base(),
        "
        +0 > S 0
        +0 write 2920
        +0 close
        +0.1 < S. 0 ack 1 mss 1460 wscale 0 sackok
        +0 > . 1 ack 1
        +0 > . 1:1461
        +0 > F. 1461:2921 ack 1
        # Both are lost, and go again: the FIN still rides, on a full segment too.
        +0.3 > . 1:1461
        +0.1 < . 1 ack 1461
        +0 > F. 1461:2921
        +0.1 < . 1 ack 2922
        +0 = state FinWait2
        +0 = acked 2920
        ",
    );
}

/// A lost SYN goes again after 1 s, 2 s …; then the window is one segment and the first RTO 3 s. RFC 6298 §5.7, RFC 5681 §3.1.
#[test]
fn a_lost_syn_is_sent_again() {
    run(
        &base(),
        "
        +0 > S 0
        +0 write 5000
        +1 > S 0
        +2 > S 0
        +0.1 < S. 0 ack 1 mss 1460
        +0 > . 1 ack 1
        +0 > . 1:1461
        +0 = cwnd 1460
        +0 = rto 3
        +0 = timeouts 2
        +3 > . 1:1461
        ",
    );
}

/// A lost SYN/ACK is retransmitted; a lost ACK of it is made up by a SYN/ACK that arrives again, or by data.
#[test]
fn a_lost_syn_ack_or_its_ack() {
    run_as(
        &base(),
        Role::Responder,
        "
        +0 < S 0 mss 1460
        +0 > S. 0 ack 1
        +1 > S. 0 ack 1
        +0.5 < S 0 mss 1460
        +0 > S. 0 ack 1
        +0.1 < . 1:101 ack 1
        +0 = state Established
        +0 > . 1 ack 101
        ",
    );
    run(
        &base(),
        "
        +0 > S 0
        +0.1 < S. 0 ack 1 mss 1460
        +0 > . 1 ack 1
        +1 < S. 0 ack 1 mss 1460
        +0 > . 1 ack 1
        +0 = state Established
        ",
    );
}

/// A lost FIN goes again by the timer.
#[test]
fn a_lost_fin_is_sent_again() {
    run(
        &base(),
        "
        +0 > S 0
        +0.1 < S. 0 ack 1 mss 1460
        +0 > . 1 ack 1
        +0 close
        +0 > F. 1 ack 1
        +0.3 > F. 1 ack 1
        +0.6 > F. 1 ack 1
        +0.1 < F. 1 ack 2
        +0 > . 2 ack 2
        +0 = state TimeWait
        +0 = retransmits 0
        ",
    );
}

/// Both close at once: CLOSING, then TIME-WAIT. RFC 9293 §3.6 figure 13.
#[test]
fn a_simultaneous_close() {
    run(
        &base(),
        "
        +0 > S 0
        +0.1 < S. 0 ack 1 mss 1460
        +0 > . 1 ack 1
        +0 close
        +0 > F. 1 ack 1
        +0 < F. 1 ack 1
        +0 > . 2 ack 2
        +0 = state Closing
        +0.1 < . 2 ack 2
        +0 = state TimeWait
        ",
    );
}

/// Options are used only when both ends offer them. RFC 7323 §2.2, §3.2, RFC 2018 §2, RFC 6691.
#[test]
fn options_need_both_ends() {
    let cfg = Tcp { timestamps: true, ..base() };
    run(
        &Tcp { timestamps: true, ..base() },
        "
        +0 > S 0 mss 1460 ts 0,0
        +0.1 < S. 0 ack 1 mss 1460 wscale 4 sackok ts 77,0
        +0 > . 1 ack 1 ts 100,77
        +0 = mss 1448
        ",
    );
    // An MSS of 1000 leaves 988 beside timestamps.
    run(
        &cfg,
        "
        +0 > S 0
        +0.1 < S. 0 ack 1 mss 1000 ts 77,0
        +0 > . 1 ack 1
        +0 = mss 988
        # No SACK was agreed on: blocks are not sent.
        +0 < . 101:201 ack 1 ts 78,100
        +0 > . 1 ack 1
        ",
    );
}

/// RST ends the connection; a stray packet afterwards is answered with RST.
#[test]
fn a_reset_ends_the_connection() {
    run(
        &base(),
        "
        +0 > S 0
        +0.1 < S. 0 ack 1 mss 1460
        +0 > . 1 ack 1
        +0 ! Connected
        +0 < R. 1 ack 1
        +0 ! Aborted Reset
        +0 = state Closed
        +0 < . 1:101 ack 1
        +0 > R. 1
        ",
    );
}

/// Nothing returns: the connection is aborted, with RST.
#[test]
fn retries_run_out() {
    run(
        &Tcp { max_retries: 2, ..base() },
        "
        +0 > S 0
        +0.1 < S. 0 ack 1 mss 1460
        +0 > . 1 ack 1
        +0 ! Connected
        +0 write 100
        +0 > . 1:101
        +0.3 > . 1:101
        +0.6 > . 1:101
        +1.2 > R. 101
        +0 ! Aborted RetriesExhausted
        +100 > none
        ",
    );
}

/// Data that arrives after a hole, FIN with it: PeerClosed only when the hole is filled.
#[test]
fn a_fin_waits_for_its_turn() {
    run(
        &base(),
        "
        +0 > S 0
        +0.1 < S. 0 ack 1 mss 1460 sackok
        +0 > . 1 ack 1
        +0 ! Connected
        +0 < F. 101:201 ack 1
        +0 > . 1 ack 1 sack 101:201
        +0 ! none
        +0 < . 1:101 ack 1
        +0 > . 1 ack 202
        +0 ! Delivered 200
        +0 ! PeerClosed
        ",
    );
}

/// Acknowledging what was never sent is answered and ignored. RFC 9293 §3.10.7.4.
#[test]
fn an_ack_of_unsent_data_is_refused() {
    run(
        &Tcp { handshake: false, ..base() },
        "
        +0 write 100
        +0 > . 1:101
        +0 < . 1 ack 5000
        +0 > . 101 ack 1
        +0 = acked 0
        ",
    );
}
