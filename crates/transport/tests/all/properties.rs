//! Whatever the network does, exactly the bytes written are delivered, once and in order.

use crate::common::{Fate, Net};
use fanin_packet::{Packet, TcpFlags};
use fanin_transport::cc::{CongestionControl, Cubic, Dctcp, NewReno, Reno};
use fanin_transport::*;
use fanin_units::{Bytes, Purpose, Span, Stream, Time};
use proptest::prelude::*;

fn controls() -> impl Strategy<Value = CongestionControl> {
    prop_oneof![
        Just(CongestionControl::NewReno(NewReno {})),
        Just(CongestionControl::Reno(Reno {})),
        Just(CongestionControl::Cubic(Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: true })),
        Just(CongestionControl::Dctcp(Dctcp { g: 0.0625, initial_alpha: 1.0, ..fanin_params::defaults() })),
    ]
}

fn grown(buffer: u64, max: u64, frame_share: Option<f64>) -> ReceiveWindow {
    ReceiveWindow::Auto(GrowingWindow {
        buffer: Bytes(buffer),
        max_buffer: Bytes(max),
        share: 0.5,
        frame_share,
        growth: WindowGrowth::Linux618,
    })
}

prop_compose! {
    /// Configurations over all features.
    fn configs()(
        control in controls(),
        linux in any::<bool>(),
        (handshake, sack, timestamps, prr, limited, tso) in any::<(bool, bool, bool, bool, bool, bool)>(),
        (paced, ecn, classic, rtt_ts, small_window, grow) in any::<(bool, bool, bool, bool, bool, bool)>(),
        (adaptive, merged, dsack, paws) in any::<(bool, bool, bool, bool)>(),
        frames in prop_oneof![Just(None), (0.3..0.9).prop_map(Some)],
        spurious in prop_oneof![Just(SpuriousRto::None), Just(SpuriousRto::FRto), Just(SpuriousRto::Eifel)],
        idle in prop_oneof![Just(IdleRestart::None), Just(IdleRestart::Rfc5681), Just(IdleRestart::Decay)],
        ect in prop_oneof![Just(EctOn::NewData), Just(EctOn::Data), Just(EctOn::All)],
        ack_every in 1u32..4,
        dup_thresh in 2u32..5,
        iw in prop::option::of(1u32..20),
        (notified, rack, probes, undo, every) in any::<(bool, bool, bool, bool, bool)>(),
        window_rules in prop_oneof![Just(WindowRules::Rfc), Just(WindowRules::Linux)],
        slow_start in prop_oneof![Just(SlowStart::Standard), Just(SlowStart::HyStart), Just(SlowStart::HyStartPlusPlus)],
    ) -> Tcp {
        let mut cfg = Tcp::new(if linux { Profile::Linux } else { Profile::Rfc }, control);
        cfg.handshake = handshake;
        cfg.sack = sack;
        cfg.timestamps = timestamps;
        cfg.prr = prr;
        cfg.limited_transmit = limited;
        cfg.tso = tso;
        cfg.ecn |= ecn;
        if classic { cfg.ecn_echo = EcnEcho::Classic }
        if paced { cfg.pacing = Pacing::Fq(Paced { slow_start_gain: 2.0, gain: 1.2 }) }
        if rtt_ts { cfg.rtt_sampling = RttSampling::Timestamps }
        cfg.receive_window = match (small_window, grow) {
            (true, false) => ReceiveWindow::Fixed(FixedWindow { size: Bytes(5_000) }),
            (true, true) => grown(8_192, 600_000, frames),
            (false, false) => cfg.receive_window.clone(),
            (false, true) => grown(131_072, 6_291_456, frames),
        };
        cfg.delayed_acks = if adaptive { DelayedAcks::Adaptive } else { DelayedAcks::Fixed };
        cfg.sack_compression = if merged {
            SackCompression::Timer(CompressedSacks { delay: Span::from_us(200), slack: Span::from_us(20), most: 5 })
        } else {
            SackCompression::None(Uncompressed {})
        };
        (cfg.dsack, cfg.paws) = (dsack, paws);
        cfg.spurious_rto = spurious;
        cfg.idle_restart = idle;
        cfg.ect_on = ect;
        cfg.ack_every = ack_every;
        cfg.dup_thresh = dup_thresh;
        cfg.initial_window = iw;
        cfg.rto_min = Span::from_ms(5);
        cfg.rto_max = Span::from_s(2);
        cfg.rto_initial = Span::from_ms(100);
        cfg.delayed_ack_timeout = Span::from_ms(2);
        cfg.timestamp_tick = Span::from_us(100);
        cfg.max_retries = 200;
        cfg.drop_notification = notified;
        cfg.loss_detection = if rack { LossDetection::Rack } else { LossDetection::Rfc6675 };
        cfg.tail_loss_probe = probes;
        cfg.undo = undo;
        if every { cfg.rtt_sampling = RttSampling::EveryAck }
        cfg.syn_retries = 200;
        cfg.window_rules = window_rules;
        cfg.slow_start = slow_start;
        cfg
    }
}

/// Percentages of packets dropped, duplicated, delayed out of order, marked.
fn troubles() -> impl Strategy<Value = [u64; 4]> {
    prop_oneof![
        3 => [0u64..25, 0u64..10, 0u64..25, 0u64..50],
        1 => Just([0, 0, 0, 0]),
        1 => [0u64..1, 0u64..1, 0u64..60, 0u64..1],
    ]
}

fn misfortune(seed: u64, troubles: [u64; 4]) -> impl FnMut(Time, usize, &fanin_packet::Packet) -> Fate {
    let mut random = Stream::new(seed, Purpose::Jitter, 0);
    move |_, _, _| {
        let mut one = |percent: u64| random.below(100) < percent;
        let (drop, twice, late, mark) = (one(troubles[0]), one(troubles[1]), one(troubles[2]), one(troubles[3]));
        let mut delay = Span::from_us(100);
        if late {
            delay += Span::from_us(random.below(2_000));
        }
        Fate { delay, drop, again: twice.then(|| Span::from_us(50 + random.below(5_000))), mark, ..Fate::default() }
    }
}

/// The same, and senders are notified of drops: percentages of drops that are notified, of those notified twice, of packets
/// that arrive and are notified nevertheless, and of operations other than the first.
fn notified(seed: u64, troubles: [u64; 4], percent: [u64; 4]) -> impl FnMut(Time, usize, &fanin_packet::Packet) -> Fate {
    let mut fate = misfortune(seed, troubles);
    let mut random = Stream::new(seed, Purpose::Jitter, 1);
    move |now, from, p| {
        let mut fate = fate(now, from, p);
        let mut one = |percent: u64| random.below(100) < percent;
        let (known, twice, wrong, other) = (one(percent[0]), one(percent[1]), one(percent[2]), one(percent[3]));
        if if fate.drop { known } else { wrong } {
            fate.notified[0] = Some(Span::from_us(1 + random.below(200)));
            fate.notified[1] = twice.then(|| Span::from_us(1 + random.below(20_000)));
        }
        fate.operation = if other { random.below(4) as u8 } else { 1 };
        fate
    }
}

/// Writes at both ends, with the network going on between; then both close, until nothing happens any more. Bytes written by each.
fn exchange<F: FnMut(Time, usize, &Packet) -> Fate>(net: &mut Net<F>, writes: Vec<(usize, u64)>) -> [u64; 2] {
    let mut written = [0, 0];
    for (end, bytes) in writes {
        net.write(end, bytes);
        written[end] += bytes;
        for _ in 0..bytes % 40 {
            net.step();
        }
    }
    for end in 0..2 {
        net.close(end);
    }
    net.run(Span::from_s(4_000), 400_000);
    written
}

/// How many cases of each property: 2,000, or what PROPTEST_CASES says, which a number given here would hide.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn exactly_the_bytes_written_arrive(
        cfg in configs(),
        seed in any::<u64>(),
        troubles in troubles(),
        iss in prop_oneof![any::<[u32; 2]>(), Just([u32::MAX - 5_000, u32::MAX]), Just([1 << 31, (1 << 31) - 1_000])],
        writes in prop::collection::vec((0usize..2, 0u64..60_000), 0..6),
        tx in 0u64..3,
    ) {
        let closing = cfg.handshake;
        let mut net = Net::new(cfg, iss, Span::from_us(tx), misfortune(seed, troubles));
        let written = exchange(&mut net, writes);
        for (end, written) in written.into_iter().enumerate() {
            let (me, other) = (&net.ends[end], &net.ends[1 - end]);
            prop_assert!(!me.aborted && me.connected, "{:?}\nOTHER {:?}", me.tcp, other.tcp);
            prop_assert_eq!(other.delivered, written, "{:?}", me.tcp);
            // The last ACK of an end that closed actively may be lost for good.
            prop_assert_eq!(me.acked, written);
            prop_assert_eq!(me.tcp.unsent(), 0);
            let stats = me.tcp.stats();
            prop_assert!(stats.bytes_sent >= written);
            prop_assert_eq!(stats.acked, written);
            if closing {
                prop_assert!(me.peer_closed && me.closed, "{:?}", me.tcp.state());
                prop_assert_eq!(me.tcp.state(), TcpState::Closed);
            } else {
                prop_assert_eq!(me.tcp.state(), TcpState::Established);
                prop_assert!(me.tcp.is_idle(), "{:?}", me.tcp);
            }
        }
        if troubles == [0, 0, 0, 0] {
            for (end, written) in written.into_iter().enumerate() {
                let (tcp, stats) = (&net.ends[end].tcp, net.ends[end].tcp.stats());
                prop_assert_eq!(stats.timeouts, 0);
                // A probe may come before a delayed ACK.
                prop_assert!(stats.retransmits <= u64::from(tcp.rack_counts().tail_probes));
                prop_assert!(stats.retransmits > 0 || stats.bytes_sent == written);
            }
        }
    }

    /// Drop notifications, true or false, early or late, once or twice, with good and with unknown operations, harm nothing;
    /// without losses they cost one segment each.
    #[test]
    fn notifications_do_no_harm(
        cfg in configs(),
        seed in any::<u64>(),
        troubles in troubles(),
        percent in prop_oneof![Just([100, 0, 0, 0]), [0u64..101, 0u64..60, 0u64..40, 0u64..60]],
        iss in prop_oneof![any::<[u32; 2]>(), Just([u32::MAX - 5_000, u32::MAX]), Just([1 << 31, (1 << 31) - 1_000])],
        writes in prop::collection::vec((0usize..2, 0u64..60_000), 1..6),
        tx in 0u64..3,
    ) {
        let cfg = Tcp { drop_notification: true, ..cfg };
        let quiet = troubles == [0, 0, 0, 0];
        let mut net = Net::new(cfg, iss, Span::from_us(tx), notified(seed, troubles, percent));
        let written = exchange(&mut net, writes);
        for (end, written) in written.into_iter().enumerate() {
            let (me, other) = (&net.ends[end], &net.ends[1 - end]);
            prop_assert!(!me.aborted && me.connected, "{:?}\nOTHER {:?}", me.tcp, other.tcp);
            prop_assert_eq!(other.delivered, written, "{:?}", me.tcp);
            prop_assert_eq!(me.acked, written);
            let stats = me.tcp.stats();
            prop_assert!(stats.notice_reductions <= stats.notices);
            if quiet && percent[2] == 0 {
                prop_assert!(stats.retransmits <= u64::from(me.tcp.rack_counts().tail_probes));
                prop_assert_eq!(stats.notices, 0);
            }
        }
    }

    /// When every drop is notified at once and packets keep their order, no timer is needed: nothing times out, and each drop costs
    /// one segment exactly.
    #[test]
    fn with_every_drop_notified_nothing_times_out(
        cfg in configs(),
        seed in any::<u64>(),
        percent in 0u64..30,
        bytes in 1u64..300_000,
        after in 1u64..150,
        by_window in any::<bool>(),
    ) {
        let mut cfg = Tcp { drop_notification: true, spurious_rto: SpuriousRto::None, tail_loss_probe: false, ..cfg };
        cfg.delayed_ack_max = cfg.delayed_ack_timeout; // below the RTO
        cfg.sack_compression = SackCompression::None(Uncompressed {}); // SACKs that wait come after NACKs of later data
        cfg.receive_window = Tcp::default().receive_window; // a window probe is no data
        if by_window && cfg.sack {
            // Without SACK it is not known what has left the network: the timer may be all that gives a copy its place.
            cfg.drop_resend = DropResend::Window;
        }
        let mut random = Stream::new(seed, Purpose::Jitter, 0);
        let mut net = Net::new(cfg, [u32::MAX - 9_000, 7], Span::from_us(1), move |_, _, p| {
            let counts = p.envelope.payload > 0 || p.header.tcp().flags.0 & (TcpFlags::SYN.0 | TcpFlags::FIN.0) != 0;
            let drop = counts && random.below(100) < percent;
            let notified = [drop.then(|| Span::from_us(after)), None];
            Fate { delay: Span::from_us(100), drop, notified, operation: 1, ..Fate::default() }
        });
        net.write(0, bytes);
        net.close(0);
        net.close(1);
        net.run(Span::from_s(100), 400_000);
        prop_assert_eq!(net.ends[1].delivered, bytes);
        for end in &net.ends {
            let stats = end.tcp.stats();
            prop_assert_eq!(stats.timeouts, 0, "{:?}", end.tcp);
            prop_assert!(stats.retransmits <= u64::from(stats.notices), "{:?}", end.tcp);
            prop_assert_eq!(stats.duplicate_bytes, 0);
        }
    }

    /// When packets lose their payload instead of being dropped, no timer is needed: nothing times out, nothing arrives twice, and
    /// each trimmed packet costs one segment exactly. Headers overtake data.
    #[test]
    fn with_every_loss_trimmed_nothing_times_out(
        cfg in configs(),
        seed in any::<u64>(),
        percent in 0u64..30,
        bytes in 1u64..300_000,
        header_takes in 1u64..=100,
        by_window in any::<bool>(),
    ) {
        let mut cfg = Tcp { trim_nack: true, drop_notification: false, tail_loss_probe: false, ..cfg };
        cfg.spurious_rto = SpuriousRto::None;
        cfg.delayed_ack_max = cfg.delayed_ack_timeout; // below the RTO
        cfg.sack_compression = SackCompression::None(Uncompressed {}); // SACKs that wait come after NACKs of later data
        cfg.receive_window = Tcp::default().receive_window; // a window probe is no data
        if by_window && cfg.sack {
            // Without SACK it is not known what has left the network: the timer may be all that gives a copy its place.
            cfg.drop_resend = DropResend::Window;
        }
        let mut random = Stream::new(seed, Purpose::Jitter, 0);
        let mut net = Net::new(cfg, [u32::MAX - 9_000, 7], Span::from_us(1), move |_, _, p| {
            let trim = p.envelope.payload > 0 && random.below(100) < percent;
            Fate { delay: Span::from_us(if trim { header_takes } else { 100 }), trim, ..Fate::default() }
        });
        net.write(0, bytes);
        net.close(0);
        net.close(1);
        net.run(Span::from_s(100), 400_000);
        prop_assert_eq!(net.ends[1].delivered, bytes);
        for end in &net.ends {
            let stats = end.tcp.stats();
            prop_assert_eq!(stats.timeouts, 0, "{:?}", end.tcp);
            prop_assert_eq!(stats.retransmits, u64::from(stats.notices), "{:?}", end.tcp);
            prop_assert_eq!(stats.duplicate_bytes, 0);
        }
    }

    /// Whatever is trimmed, answered or not, dropped besides, late or twice: exactly the bytes written are delivered.
    #[test]
    fn trimming_does_no_harm(
        cfg in configs(),
        (answered, by_window) in any::<(bool, bool)>(),
        seed in any::<u64>(),
        troubles in troubles(),
        percent in 0u64..50,
        iss in prop_oneof![any::<[u32; 2]>(), Just([u32::MAX - 5_000, u32::MAX]), Just([1 << 31, (1 << 31) - 1_000])],
        writes in prop::collection::vec((0usize..2, 0u64..60_000), 1..6),
        tx in 0u64..3,
    ) {
        let drop_resend = if by_window { DropResend::Window } else { DropResend::AtOnce };
        let cfg = Tcp { trim_nack: answered, drop_notification: false, drop_resend, ..cfg };
        let mut misfortune = misfortune(seed, troubles);
        let mut random = Stream::new(seed, Purpose::Jitter, 1);
        let mut net = Net::new(cfg, iss, Span::from_us(tx), move |now, from, p| {
            Fate { trim: random.below(100) < percent, ..misfortune(now, from, p) }
        });
        let written = exchange(&mut net, writes);
        for (end, written) in written.into_iter().enumerate() {
            let (me, other) = (&net.ends[end], &net.ends[1 - end]);
            prop_assert!(!me.aborted && me.connected, "{:?}\nOTHER {:?}", me.tcp, other.tcp);
            prop_assert_eq!(other.delivered, written, "{:?}", me.tcp);
            prop_assert_eq!(me.acked, written);
            prop_assert!(answered || me.tcp.stats().notices == 0);
        }
    }

    /// A reader that stops and goes: the window closes and opens, and nothing beyond it is ever sent.
    #[test]
    fn a_slow_reader_is_not_overrun(
        cfg in configs(),
        seed in any::<u64>(),
        troubles in troubles(),
        reads in prop::collection::vec(1u64..30_000, 1..8),
    ) {
        let mut cfg = cfg;
        cfg.handshake = false;
        let mut net = Net::new(cfg, [1, 2], Span::ZERO, misfortune(seed, troubles));
        net.ends[1].tcp.hold_reads(true);
        net.write(0, 100_000);
        for bytes in reads {
            for _ in 0..200 {
                net.step();
            }
            let cfg = net.cfg.clone();
            let now = net.now;
            net.ends[1].tcp.read(&cfg, now, bytes);
            net.write(1, 0); // drains
        }
        net.ends[1].tcp.hold_reads(false);
        let (cfg, now) = (net.cfg.clone(), net.now);
        net.ends[1].tcp.read(&cfg, now, 100_000);
        net.write(1, 0);
        net.run(Span::from_s(10_000), 400_000);
        prop_assert_eq!(net.ends[1].delivered, 100_000, "{:?}", net.ends[0].tcp);
        prop_assert!(net.ends[0].tcp.is_idle());
    }
}

/// More than 2^32 bytes: sequence numbers wrap, counters do not.
#[test]
fn ten_gigabytes_wrap_the_sequence_space_twice() {
    let mut cfg = Tcp::new(Profile::Rfc, CongestionControl::NewReno(NewReno {}));
    cfg.handshake = false;
    cfg.mtu = 65_000;
    cfg.initial_window = Some(20);
    let mut random = Stream::new(3, Purpose::Jitter, 0);
    let mut net = Net::new(cfg, [u32::MAX - 100_000, 5], Span::from_us(1), move |_, from, p| Fate {
        delay: Span::from_us(10),
        drop: from == 0 && p.envelope.payload > 0 && random.below(5_000) == 0,
        ..Fate::default()
    });
    let bytes = 10_000_000_000;
    net.write(0, bytes);
    net.run(Span::from_s(1_000), 2_000_000);
    assert_eq!(net.ends[1].delivered, bytes);
    assert_eq!(net.ends[0].acked, bytes);
    assert!(net.ends[0].tcp.stats().recoveries > 10);
}

/// Nothing ever returns: the connection is given up, with RST, and says so.
#[test]
fn a_dead_network_ends_in_aborted() {
    for handshake in [true, false] {
        let cfg = Tcp { handshake, ..Tcp::default() };
        let mut net = Net::new(cfg, [1, 2], Span::ZERO, |_, _, _| Fate { drop: true, ..Fate::default() });
        net.write(0, 1000);
        net.run(Span::from_s(100_000), 10_000);
        assert!(net.ends[0].aborted);
        assert_eq!(net.ends[0].tcp.state(), TcpState::Closed);
        let timeouts = net.ends[0].tcp.stats().timeouts;
        assert_eq!(timeouts, if handshake { 9 } else { 16 }); // the retries and the last straw
    }
}
