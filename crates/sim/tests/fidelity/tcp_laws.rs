//! Laws of TCP end to end: slow start, Mathis, CUBIC's W(t), DCTCP's sawtooth, RTO back-off, fairness.

use crate::common::*;
use fanin_transport::Phase;
use fanin_transport::Transport as _;
use fanin_units::{Span, Time};

/// One flow from `h0` to `h1` over links of which the second is the slower: sender at 100 Gb/s, `bottleneck` between two
/// switches.
fn long_haul(top: &str, bottleneck: &str, delay: &str, rest: &str) -> String {
    format!(
        "{top}[topology]\nkind = \"dumbbell\"\nleft = 1\nright = 1\nhost_link = {{ rate = \"100Gbps\", delay = \"0ps\" }}\n\
         bottleneck = {{ rate = \"{bottleneck}\", delay = \"{delay}\" }}\n{rest}"
    )
}

/// In slow start the window doubles each round without delayed ACKs, grows by half with one ACK for two segments, and a
/// bottleneck's queue at the end of a round is what the window has grown by in it.
///
/// Each ACK, one per frame time T of the bottleneck, lets 2 (3 for every two) segments out at the sender's higher rate; one
/// (two) of them leave in that time. Source: RFC 5681 §3.1 equation 2; Jacobson 1988 §1 (ACK clock). Rounds are distinguished by
/// the silence between them, as long as the window is below the path's.
///
/// Tolerance: none for windows (with delayed ACKs two segments: the ACK of an odd one arrives in the next round); one frame for
/// the queue, since the first burst of a round meets an idle port.
#[test]
fn slow_start_doubles_and_queues_what_it_grows_by() {
    for (ack_every, factor, delayed) in [(1u32, 2.0, ""), (2, 1.5, "delayed_ack_timeout = \"400ms\"\n")] {
        let ran = run(&long_haul(
            "",
            "10Gbps",
            "1ms",
            &format!(
                "[transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 4\nack_every = {ack_every}\n{delayed}\
                 [switch]\nbuffer = {{ kind = \"unlimited\" }}\n[telemetry]\nqueues = [\"left->right\"]\nsample = \"off\"\n\
                 [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"{}B\" }}]\n",
                1448 * 1500
            ),
        ));
        // (packets, largest queue that one of them found) by round.
        let mut rounds: Vec<(u64, u64)> = Vec::new();
        let mut last = None;
        for row in &ran.kept.queues {
            if last.is_none_or(|at| row.time_ps - at > 500_000_000) {
                rounds.push((0, 0));
            }
            last = Some(row.time_ps);
            let round = rounds.last_mut().expect("one");
            *round = (round.0 + 1, round.1.max(u64::from(row.queue_packets)));
        }
        println!("slow start, an ACK for {ack_every}: {rounds:?}");
        rounds.pop(); // cut short by the flow's end
        assert!(rounds.len() >= 7, "{rounds:?}");
        for w in rounds.windows(2) {
            let (before, (window, queue)) = (w[0].0 as f64, (w[1].0 as f64, w[1].1 as f64));
            let slack = if ack_every == 1 { 0.0 } else { 2.0 };
            assert!((window - factor * before).abs() <= slack, "{rounds:?}");
            assert!((queue - (window - before)).abs() <= 1.0 + slack, "{rounds:?}");
        }
    }
}

/// A timeout doubles the next, up to RTO_max, and `max_retries` of them end the connection.
///
/// The port is kept busy by datagrams at line rate and has no buffer, so that every segment of the flow is dropped; the
/// drops show when they were sent: RTO·2^k apart, at most RTO_max (and a RST at the end, without payload). Source: RFC 6298 §2.1, §2.5, §5.5; RFC 9293 §3.8.3.
/// Tolerance: none.
#[test]
fn a_timeout_doubles_the_next_one() {
    let ran = run(
        "duration = \"400ms\"\n[topology]\nkind = \"single_switch\"\nhosts = 3\nlink = { rate = \"1Gbps\", delay = \"1us\" }\n\
         [switch]\nbuffer = { kind = \"static\", per_port = \"0 packets\" }\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\nrto_initial = \"2ms\"\nrto_min = \"1ms\"\nrto_max = \"50ms\"\nmax_retries = 9\n\
         [[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h2\"\nrate = \"1Gbps\"\ncounts = \"wire\"\n\
         [[traffic]]\nkind = \"flows\"\nname = \"victim\"\nstart = \"100us\"\nflows = [{ src = \"h1\", dst = \"h2\", size = \"1000B\" }]\n",
    );
    let flow = ran.kept.flows.iter().find(|f| f.group.to_string() == "victim").expect("a row");
    let times: Vec<u64> =
        ran.kept.drops.iter().filter(|d| d.flow == flow.flow && d.payload_bytes > 0).map(|d| d.time_ps).collect();
    let gaps: Vec<u64> = times.windows(2).map(|w| (w[1] - w[0]) / 1_000_000_000).collect();
    println!("RTO back-off [ms]: {gaps:?}");
    assert_eq!(gaps, [2, 4, 8, 16, 32, 50, 50, 50, 50]);
    assert!(times.windows(2).zip(&gaps).all(|(w, ms)| w[1] - w[0] == ms * 1_000_000_000));
    assert_eq!((flow.status.to_string().as_str(), flow.timeouts), ("aborted", 10));
    assert_eq!(ran.kept.drops.iter().filter(|d| d.flow != flow.flow).count(), 0);
    // line rate fits exactly
}

/// CUBIC's window after a loss follows W(t) = C·(t − K)³ + W_max, K = ∛((W_max − cwnd_epoch)/C), through the plateau and
/// beyond.
///
/// One flow at 24 Mb/s with an RTT of 100 ms and a buffer of 50 packets, so that the cubic function and not Reno's estimate
/// rules (K ≈ 5.6 s, 56 RTTs). At time t the sender aims at W(t + SRTT) within a round, so cwnd lies between W(t) and
/// W(t + SRTT). Source: RFC 9438 §4.2, §4.4. Tolerance: one segment beyond that band, since cwnd moves in steps.
#[test]
fn cubic_follows_its_window_function() {
    let mut world = make(&long_haul(
        "duration = \"40s\"\n",
        "24Mbps",
        "50ms",
        "[transport]\nkind = \"tcp\"\ncongestion_control = \"cubic\"\nhandshake = false\nack_every = 1\ninitial_ssthresh = \"230KB\"\n\
         [switch]\nbuffer = { kind = \"static\", per_port = \"50 packets\" }\n[telemetry]\nsample = \"off\"\n\
         [[traffic]]\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1GB\" }]\n",
    ));
    let mss = 1448.0;
    let (mut before, mut w_max) = (0.0, None);
    // Start of congestion avoidance, and cwnd then.
    let mut epoch: Option<(Time, f64)> = None;
    let (mut behind, mut ahead, mut t, mut k) = (0.0f64, 0.0f64, 0.0, 0.0);
    let mut now = Time::ZERO;
    loop {
        now += Span::from_ms(1);
        assert!(advance_to(&mut world, now), "the run ends before the second loss");
        let sender = world.sender(0).expect("a flow");
        let cwnd = sender.cwnd() as f64 / mss;
        let lost = cwnd < 0.9 * before;
        match (w_max, epoch) {
            (None, _) if lost => w_max = Some(before),
            (Some(_), Some(_)) if lost => break,
            (Some(_), None) if sender.phase() == Phase::Open => epoch = Some((now, cwnd)),
            (Some(w_max), Some((start, from))) => {
                k = libm::cbrt((w_max - from) / 0.4);
                let w = |t: f64| 0.4 * (t - k) * (t - k) * (t - k) + w_max;
                t = now.since(start).as_secs_f64();
                behind = behind.max(w(t) - cwnd);
                ahead = ahead.max(cwnd - w(t + sender.srtt().as_secs_f64()));
            }
            _ => {}
        }
        before = cwnd;
    }
    println!("CUBIC: W_max {w_max:?}, K {k:.2} s, loss at {t:.2} s with {before:.1}, below W(t) by {behind:.2}, above W(t + SRTT) by {ahead:.2}");
    assert!(t > 1.8 * k, "not far beyond the plateau");
    assert!(behind < 1.0 && ahead < 1.0);
}

/// Reno's rate is (MSS/RTT)·√(3/(2p)) without delayed ACKs, p the losses that it reacts to per packet.
///
/// N flows through one port with RED that drops, so that losses are spread out. p = recoveries / packets sent: the law
/// counts a round with several losses once. RTT = propagation, serialisation and the mean wait of the recorded queue.
/// Source: Mathis.
///
/// Tolerance: 12 % for the rate. The law's own error: it takes losses as periodic; with independent ones the constant
/// 1.22 becomes 1.31 (+7 %; Ott, Kemperman, Mathis 1996), and it leaves out the round that fast recovery takes without
/// growth, which costs about 1/(W/2 + 1), 4 to 9 % here. And 0.06 for the exponent of p between the two loads, 0.5 in the law, since those errors
/// differ between them by as much.
#[test]
fn reno_obeys_the_square_root_of_loss() {
    let mut points = Vec::new();
    for n in [6u32, 20] {
        let delay_ps = 4_000_000_000u64;
        let mut world = make(&format!(
            "duration = \"42s\"\n[topology]\nkind = \"dumbbell\"\nleft = {n}\nright = {n}\nhost_link = {{ rate = \"10Gbps\", delay = \"0ps\" }}\n\
             bottleneck = {{ rate = \"400Mbps\", delay = \"4ms\" }}\n\
             [switch]\nbuffer = {{ kind = \"unlimited\" }}\nmarking = {{ kind = \"red\", min = \"20 packets\", max = \"400 packets\", max_p = 0.03, ecn = false }}\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\nack_every = 1\nrto_min = \"200ms\"\ninitial_ssthresh = \"60KB\"\n\
             [telemetry]\nqueues = [\"left->right\"]\nsample = \"off\"\n{}",
            (0..n)
                .map(|i| format!("[[traffic]]\nkind = \"flows\"\nname = \"f{i}\"\nstart = \"{i}ms\"\nflows = [{{ src = \"h{i}\", dst = \"h{}\", size = \"10GB\" }}]\n", n + i))
                .collect::<String>()
        ));
        let (from, to) = (Time::from_ps(2_000_000_000_000), Time::from_ps(42_000_000_000_000));
        let sums = |world: &fanin_sim::World| {
            (0..n).map(|f| world.sender(f).expect("a flow").stats()).fold([0u64; 4], |s, t| {
                [s[0] + t.acked, s[1] + t.packets_sent, s[2] + u64::from(t.recoveries), s[3] + u64::from(t.timeouts)]
            })
        };
        advance_to(&mut world, from);
        let early = sums(&world);
        advance_to(&mut world, to);
        let late = sums(&world);
        let [acked, sent, recoveries, timeouts] = std::array::from_fn(|i| late[i] - early[i]);
        let kept = world.into_kept().expect("tables in memory");
        let waits: Vec<f64> = kept
            .queues
            .iter()
            .filter(|r| r.time_ps >= from.ps())
            .map(|r| (r.queue_bytes + u64::from(r.queue_packets) * 20) as f64)
            .collect();
        let t = 8.0 * WIRE as f64 / 400e6;
        let rtt = 2.0 * delay_ps as f64 / SECOND + t + (mean(&waits) * 8.0 / 400e6) + t / 2.0;
        let p = recoveries as f64 / sent as f64;
        let rate = acked as f64 / f64::from(n) / to.since(from).as_secs_f64();
        let law = 1448.0 / rtt * (1.5 / p).sqrt();
        println!(
            "Mathis, {n} flows: p {p:.5} ({recoveries} recoveries), RTT {:.3} ms, W {:.1}, {timeouts} timeouts",
            1e3 * rtt,
            rate * rtt / 1448.0
        );
        assert!(recoveries > 500 && timeouts * 50 < recoveries, "{timeouts} timeouts");
        near(&format!("Mathis, {n} flows [B/s]"), rate, law, 0.12);
        points.push((p, rate * rtt));
    }
    let exponent = libm::log(points[1].1 / points[0].1) / libm::log(points[0].0 / points[1].0);
    println!("Mathis, exponent of p: theory -0.5, measured {:.3}", -exponent);
    assert!((exponent - 0.5).abs() < 0.06, "{exponent}");
}
