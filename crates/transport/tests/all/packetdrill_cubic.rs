//! packetdrill's scripts of CUBIC and HyStart, in our language. Each names its file below google/packetdrill `gtests/net/tcp/cubic`.
//! All is Linux's own: RFC 9438 leaves slow start to others.

use crate::common::packetdrill::{linux, server};
use fanin_transport::{LossDetection, Tcp};

const NEVER: &str = "4611686018427387904";

/// cubic-hystart-delay-rtt-jumps-upward: nine samples of a round, all of them an eighth above the shortest RTT, end slow start.
#[test]
fn hystart_ends_slow_start_when_the_rtt_jumps() {
    let samples: String = (1..=8)
        .map(|n| {
            let wait = if n == 1 { 0.24 } else { 0.001 };
            format!("+{wait} < . 1 ack {}\n+0 = ssthresh {NEVER}\n+0 = cwnd {}\n", 10_001 + 2_000 * n, 20_000 + 2_000 * n)
        })
        .collect();
    server(
        &linux(),
        0.2,
        &format!(
            "+0 write 30000\n+0 > . 1:10001\n+0.2 < . 1 ack 10001\n+0 > . 10001:30001\n+0 = cwnd 20000\n{samples}\
             +0.001 < . 1 ack 28001\n+0 = ssthresh 36000\n+0 = cwnd 36000\n+0.001 < . 1 ack 30001\n+0 = ssthresh 36000\n+0 = cwnd 36000\n"
        ),
    );
}

/// cubic-hystart-delay-min-rtt-jumps-downward: samples that rise by less than an eighth, and a last one that is much shorter, do not.
#[test]
fn hystart_does_not_end_it_when_the_rtt_falls() {
    let samples: String = (1..=10)
        .map(|n| {
            let wait = if n == 1 { 0.02 } else { 0.001 };
            format!("+{wait} < . 1 ack {}\n+0 = ssthresh {NEVER}\n+0 = cwnd {}\n", 10_001 + 2_000 * n, 20_000 + 2_000 * n)
        })
        .collect();
    server(
        &linux(),
        0.2,
        &format!(
            "+0 write 28000\n+0 > . 1:10001\n+0.2 < . 1 ack 10001\n+0 > . 10001:28001\n+0 = cwnd 20000\n\
             +0.18 write 2000\n+0 > . 28001:30001\n{samples}"
        ),
    );
}

/// ACKs of two segments each 100 ms, from one number on to another; what leaves is not compared.
fn slow_acks(text: &mut String, sent: &mut u64, (from, to): (u64, u64), cwnd: impl Fn(u64) -> u64, until: u64) {
    for ack in (from..=to).step_by(2_000) {
        text.push_str(&format!("+0.1 < . 1 ack {ack}\n"));
        let next = (ack + cwnd(ack)).min(until);
        if next > *sent {
            text.push_str(&format!("+0 > . {sent}:{next}\n"));
            *sent = next;
        }
    }
}

/// cubic-bulk-166k: two segments each 100 ms through a queue: the RTT grows with the window, and the ninth sample of a round ends slow start.
/// The original ends it at 48 segments, as kernels do that begin a round only above 16 segments; since Linux 5.16 the first ACK begins
/// one, and it ends at 36.
#[test]
fn hystart_ends_slow_start_at_a_slow_link() {
    let cfg = Tcp { tail_loss_probe: false, ..linux() };
    let (mut text, mut sent) = ("+0 write 400000\n+0 > . 1:10001\n".to_string(), 10_001);
    slow_acks(&mut text, &mut sent, (2_001, 26_001), |ack| 10_000 + ack - 1, 400_001);
    text.push_str(&format!(
        "+0 = cwnd 36000\n+0 = ssthresh {NEVER}\n+0.1 < . 1 ack 28001\n+0 = ssthresh 36000\n+0 > . 62001:64001\n"
    ));
    let tcp = server(&cfg, 0.1, &text);
    assert!((36_000..=37_000).contains(&tcp.cwnd()), "{}", tcp.cwnd());
}

/// cubic-bulk-166k-idle-restart: the same, then four seconds without data: they are no credit for the window function, which goes on where
/// it was: a segment for twenty (Linux's own: cubictcp_cwnd_event, and the least growth while no loss was seen). With four seconds of
/// credit it would be a segment for two.
#[test]
fn idle_time_is_no_credit() {
    let cfg = Tcp { tail_loss_probe: false, ..linux() };
    let (mut text, mut sent) = ("+0 write 40000\n+0 > . 1:10001\n".to_string(), 10_001);
    slow_acks(&mut text, &mut sent, (2_001, 26_001), |ack| 10_000 + ack - 1, 40_001);
    slow_acks(&mut text, &mut sent, (28_001, 40_001), |_| 36_000, 40_001);
    text.push_str("+0 = inflight 0\n+4 write 160000\n+0 > . 40001:76001\n");
    sent = 76_001;
    slow_acks(&mut text, &mut sent, (42_001, 60_001), |ack| if ack < 46_001 { 36_000 } else { 37_000 }, 200_001);
    let tcp = server(&cfg, 0.1, &text);
    assert_eq!(tcp.cwnd(), 37_000);
}

/// cubic-rto-ss-ca-cwnd-bump: a lost segment, its probe lost too, RTO, slow start up to ssthresh, then congestion avoidance. Linux's own:
/// ssthresh is 0.7 of cwnd (10 segments), of which one was in flight.
#[test]
fn rto_slow_start_congestion_avoidance() {
    let mut text = "
        +0 write 1000
        +0 > . 1:1001
        +0.1 < . 1 ack 1001
        +0 = cwnd 10000
        +0 write 1000
        +0 > . 1001:2001
        # The probe, at the RTO, which would be first.
        +0.3 > . 1001:2001
        +0.3 > . 1001:2001
        +0.1 < . 1 ack 2001
        +0 = cwnd 2000
        +0 = ssthresh 7000
        +0 write 200000
        +0 > . 2001:4001
        +0.1 < . 1 ack 3001
        +0 > . 4001:6001
        +0.002 < . 1 ack 4001
        +0 > . 6001:8001
        +0.098 < . 1 ack 5001
        +0 > . 8001:10001
        +0.002 < . 1 ack 6001
        +0 > . 10001:12001
        +0.002 < . 1 ack 7001
        +0 > . 12001:14001
        +0 = cwnd 7000
        +0.002 < . 1 ack 8001
        +0 > . 14001:15001
    "
    .to_string();
    // One segment for each that is acknowledged, until the window has grown by one.
    for n in 9..=22 {
        let wait = if matches!(n, 9 | 16) { 0.098 } else { 0.002 };
        text.push_str(&format!("+{wait} < . 1 ack {0}001\n+0 > . {1}001:{2}001\n", n, n + 6, n + 7));
    }
    text.push_str("+0.098 < . 1 ack 23001\n+0 > . 29001:31001\n");
    server(&linux(), 0.1, &text);
}

/// cubic-rack-reo-timeout-retrans-failed-incoming-data: after reordering was seen, the waiting is not ended by the number of SACKed
/// segments; the timer ends it. (In the original the retransmission cannot leave its host; here it does.)
#[test]
fn reordering_was_seen() {
    let cfg = linux();
    assert_eq!(cfg.loss_detection, LossDetection::Rack);
    server(
        &cfg,
        0.02,
        "
        +0 write 10000
        +0 > . 1:10001
        +0.02 < . 1 ack 1 sack 9001:10001
        +0 < . 1 ack 1 sack 3001:4001,9001:10001
        +0 < . 1 ack 10001
        +0.02 = cwnd 19000
        +0.005 write 2000
        +0 > . 10001:12001
        +0.02 < . 1 ack 10001 sack 11001:12001
        +0 = phase Open
        +0 = cwnd 19000
        # A quarter of 20 ms, and 2 ms for the timer.
        +0.007 > . 10001:11001
        +0 = phase Recovery
        ",
    );
}
