//! Queue pairs packet by packet: what is on the wire, repair, limits, notifications.

use crate::common::place;
use fanin_packet::{Ecn, Header, Packet, RoceHeader, RoceOp, Syndrome};
use fanin_transport::roce::cc::{Dcqcn, DcqcnProfile, NoRateControl, RoceControl};
use fanin_transport::roce::{BdpWindow, FixedRoceWindow, GoBackN, RoceRecovery, RoceWindow, SelectiveRepeat};
use fanin_transport::*;
use fanin_units::{BitRate, Bytes, Purpose, Span, Stream, Time, TrafficClass};
use proptest::prelude::*;

/// A NIC sends a packet in this time, and it arrives this much later.
const TX: Span = Span::from_ns(88);
const DELAY: Span = Span::from_us(5);

#[derive(Clone, Copy, Default)]
struct Fate {
    drop: bool,
    mark: bool,
    later: Span,
}

/// A packet as seen on the wire: when it left, from which end, and itself.
type Seen = (Time, usize, Packet);

struct Net<F: FnMut(usize, &Packet) -> Fate> {
    cfg: Roce,
    ends: [RoceEndpoint; 2],
    free: [Time; 2],
    now: Time,
    flying: Vec<(Time, u64, usize, Packet)>,
    count: u64,
    fate: F,
    seen: Vec<Seen>,
    delivered: [u64; 2],
    acked: [u64; 2],
    failed: bool,
}

impl<F: FnMut(usize, &Packet) -> Fate> Net<F> {
    fn new(cfg: Roce, fate: F) -> Self {
        let ends = RoceEndpoint::pair(&cfg, &place(), Time::ZERO, &mut Stream::new(7, Purpose::Transport, 1));
        let seen = Vec::new();
        Net {
            cfg,
            ends,
            free: [Time::ZERO; 2],
            now: Time::ZERO,
            flying: Vec::new(),
            count: 0,
            fate,
            seen,
            delivered: [0; 2],
            acked: [0; 2],
            failed: false,
        }
    }

    fn write(&mut self, bytes: u64) {
        self.ends[0].write(&self.cfg, self.now, bytes);
        self.drain(0);
    }

    fn put(&mut self, from: usize, p: Packet) {
        self.seen.push((self.now, from, p));
        let fate = (self.fate)(from, &p);
        let mut p = p;
        if fate.mark && p.envelope.ecn != Ecn::NotEct {
            p.envelope.ecn = Ecn::Ce;
        }
        self.count += 1;
        if !fate.drop {
            self.flying.push((self.now + DELAY + fate.later, self.count, 1 - from, p));
        }
    }

    fn drain(&mut self, end: usize) {
        let mut p = Packet::default();
        while self.ends[end].poll(&self.cfg, self.now, Kinds::CONTROL, &mut p.envelope, &mut p.header) {
            self.put(end, p);
        }
        assert!(!self.ends[end].due(&self.cfg, self.now, Kinds::CONTROL));
        while self.now >= self.free[end] {
            let wanted = self.ends[end].due(&self.cfg, self.now, Kinds::DATA);
            let got = self.ends[end].poll(&self.cfg, self.now, Kinds::DATA, &mut p.envelope, &mut p.header);
            assert_eq!(wanted, got, "due is exact");
            if !got {
                break;
            }
            self.free[end] = self.now + TX;
            self.put(end, p);
        }
        while let Some(event) = self.ends[end].poll_event() {
            match event {
                Event::Delivered { total } => self.delivered[end] = total,
                Event::Acked { total } => self.acked[end] = total,
                Event::Aborted(reason) => {
                    assert_eq!(reason, AbortReason::RetriesExhausted);
                    self.failed = true;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(self.acked[0] <= self.delivered[1] && self.delivered[1] <= 1 << 40);
    }

    fn step(&mut self) -> bool {
        let packet = self.flying.iter().enumerate().min_by_key(|(_, f)| (f.0, f.1)).map(|(i, f)| (f.0, i));
        let timer = (0..2).map(|e| (self.ends[e].next_timeout(), e)).min().unwrap();
        let nic = (0..2).filter(|e| self.free[*e] > self.now).map(|e| (self.free[e], e)).min().unwrap_or((Time::MAX, 0));
        let at = packet.map_or(Time::MAX, |p| p.0).min(timer.0).min(nic.0);
        if at == Time::MAX {
            return false;
        }
        assert!(at >= self.now, "time goes back");
        self.now = at;
        if let Some((_, i)) = packet.filter(|p| p.0 == at) {
            let (_, _, to, p) = self.flying.swap_remove(i);
            self.ends[to].on_packet(&self.cfg, at, &p.envelope, &p.header);
            self.drain(to);
        } else if nic.0 == at {
            self.drain(nic.1);
        } else {
            self.ends[timer.1].on_timer(&self.cfg, at);
            self.drain(timer.1);
            assert!(self.ends[timer.1].next_timeout() > at, "a timeout that does not go away");
        }
        true
    }

    fn run(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 2_000_000, "it does not end");
        }
    }

    /// Headers of what left one end, in order.
    fn headers(&self, end: usize) -> Vec<RoceHeader> {
        self.seen.iter().filter(|(_, from, _)| *from == end).map(|(_, _, p)| roce(p)).collect()
    }

    /// Packets of data by their numbers from the first, in order of leaving.
    fn sent(&self) -> Vec<u32> {
        let headers = self.headers(0);
        let first = headers[0].psn;
        headers.iter().map(|h| h.psn.wrapping_sub(first) & RoceHeader::PSN_MASK).collect()
    }
}

fn roce(p: &Packet) -> RoceHeader {
    match p.header {
        Header::Roce(roce) => roce,
        other => panic!("{other:?}"),
    }
}

fn fine(_: usize, _: &Packet) -> Fate {
    Fate::default()
}

fn selective() -> Roce {
    let repeat = SelectiveRepeat { rto_low: Span::from_us(100), rto_high: Span::from_us(320), few: 3 };
    Roce { recovery: RoceRecovery::SelectiveRepeat(repeat), ..Roce::default() }
}

/// Timeouts of 4.096 us · 2^5 = 131 us.
fn back() -> Roce {
    Roce { recovery: RoceRecovery::GoBackN(GoBackN { ack_timeout: 5 }), ..Roce::default() }
}

#[test]
fn a_write_becomes_messages_and_packets() {
    let mut net = Net::new(Roce { message: Some(Bytes(3_072)), ..Roce::default() }, fine);
    net.write(5_000);
    net.run();
    assert_eq!((net.delivered[1], net.acked[0]), (5_000, 5_000));
    let seen: Vec<_> = net.headers(0).iter().map(|h| (h.op, h.bytes(), h.ack_request, h.place, h.message, h.pad)).collect();
    // UDP 8, BTH 12, ICRC 4; RETH 16.
    let expected = [
        (RoceOp::WriteFirst, 40, true, 0, 3_072, 0),
        (RoceOp::WriteMiddle, 24, true, 1_024, 3_072, 0),
        (RoceOp::WriteLast, 24, true, 2_048, 3_072, 0),
        (RoceOp::WriteFirst, 40, true, 3_072, 1_928, 0),
        (RoceOp::WriteLast, 24, true, 4_096, 1_928, 0),
    ];
    assert_eq!(seen, expected);
    let acks = net.headers(1);
    assert_eq!(acks.iter().map(|h| (h.op, h.syndrome, h.msn, h.bytes())).collect::<Vec<_>>(), {
        let ack = |msn| (RoceOp::Acknowledge, Syndrome::Ack, msn, 28);
        [ack(0), ack(0), ack(1), ack(1), ack(2)]
    });
    assert_eq!(acks[4].psn, net.headers(0)[4].psn);
    let (sent, got) = (net.ends[0].stats(), net.ends[1].stats());
    assert_eq!((sent.packets_sent, sent.bytes_sent, sent.acked, got.delivered, got.control_sent), (5, 5_000, 5_000, 5_000, 5));
    assert_eq!([net.ends[0].sent(), net.ends[1].sent()], [5, 0]);
}

/// Numbers go through zero, payloads of any length are padded to four bytes, and acknowledgments are asked for at every third
/// packet and at the end.
#[test]
fn padding_numbers_and_coalesced_acknowledgments() {
    let mut net = Net::new(Roce { ack_every: 3, mtu: 256, ..Roce::default() }, fine);
    net.write(256 * 7 + 1);
    net.run();
    let headers = net.headers(0);
    assert_eq!(headers.iter().map(|h| h.ack_request).collect::<Vec<_>>(), [false, false, true, false, false, true, false, true]);
    assert_eq!((headers[7].pad, headers[7].bytes(), net.headers(1).len()), (3, 27, 3));
    let origin = headers[0].psn;
    // As many packets as bring the numbers beyond 2^24.
    let many = u64::from((1 << 24) - origin) + 1_000;
    let mut net = Net::new(Roce { ack_every: 256, mtu: 256, ..Roce::default() }, fine);
    net.ends[0].write(&net.cfg, Time::ZERO, 256 * many.min(40_000));
    net.drain(0);
    net.run();
    assert_eq!(net.delivered[1], 256 * many.min(40_000));
}

#[test]
fn go_back_n_sends_again_from_the_packet_that_is_missing() {
    let mut lost = false;
    let mut net = Net::new(back(), move |from, p| {
        let hit = from == 0 && roce(p).place == 2_048 && !lost;
        lost |= hit;
        Fate { drop: hit, ..Fate::default() }
    });
    net.write(5 * 1_024);
    net.run();
    assert_eq!(net.sent(), [0, 1, 2, 3, 4, 2, 3, 4]);
    let naks: Vec<_> = net.headers(1).iter().map(|h| (h.syndrome, h.early)).collect();
    let ack = (Syndrome::Ack, None);
    assert_eq!(naks, [ack, ack, (Syndrome::SequenceError, None), ack, ack, ack], "one NAK, for all that came early");
    let (sent, got) = (net.ends[0].stats(), net.ends[1].stats());
    assert_eq!((sent.retransmits, sent.recoveries, sent.timeouts, got.delivered, got.duplicate_bytes), (3, 1, 0, 5 * 1_024, 0));
}

#[test]
fn selective_repeat_sends_again_what_is_missing() {
    let mut lost = 0;
    let mut net = Net::new(selective(), move |from, p| {
        let hit = from == 0 && [1_024, 3_072].contains(&roce(p).place) && lost < 2;
        lost += u32::from(hit);
        Fate { drop: hit, ..Fate::default() }
    });
    net.write(6 * 1_024);
    net.run();
    assert_eq!(net.sent(), [0, 1, 2, 3, 4, 5, 1, 3]);
    assert!(net.headers(0).iter().all(|h| h.reth && h.bytes() == 40), "each says where it belongs");
    let early: Vec<_> = net.headers(1).iter().filter_map(|h| h.early).map(|psn| psn - net.headers(0)[0].psn).collect();
    assert_eq!(early, [2, 4, 5, 4, 5].split_at(3).0, "each packet that came early is named");
    assert_eq!(net.headers(1)[1].bytes(), 32);
    let (sent, got) = (net.ends[0].stats(), net.ends[1].stats());
    assert_eq!((sent.retransmits, sent.recoveries, sent.timeouts), (2, 1, 0));
    assert_eq!((got.delivered, got.duplicate_bytes), (6 * 1_024, 0));
}

/// A lost end is found by the timeout: RTO_low where few are outstanding, RTO_high otherwise.
#[test]
fn a_lost_end_costs_a_timeout() {
    for (packets, lost, us) in [(3, 2, 100), (8, 4, 320)] {
        let mut drops = 0;
        let mut net = Net::new(selective(), move |from, p| {
            let hit = from == 0 && roce(p).place >= 1_024 * lost && drops < packets - lost;
            drops += u32::from(hit);
            Fate { drop: hit, ..Fate::default() }
        });
        net.write(u64::from(packets) * 1_024);
        net.run();
        assert_eq!((net.delivered[1], net.ends[0].stats().timeouts > 0), (u64::from(packets) * 1_024, true));
        let again = net.seen.iter().filter(|(_, from, _)| *from == 0).nth(packets as usize).unwrap().0;
        // The last acknowledgment: packet `lost` − 1, there and back.
        let from = Time::ZERO + TX * u64::from(lost - 1) + DELAY * 2;
        let few = packets - lost <= 3;
        assert_eq!(again.since(from), Span::from_us(if few { 100 } else { us }));
    }
}

/// A queue pair that hears nothing gives up when its first packet has been sent `retry_count` times again.
#[test]
fn retries_end() {
    for cfg in [back(), selective()] {
        let cfg = Roce { retry_count: 3, ..cfg };
        let mut net = Net::new(cfg, |_, _| Fate { drop: true, ..Fate::default() });
        net.write(1_024);
        net.run();
        assert_eq!((net.sent(), net.failed), (vec![0; 4], true));
        assert_eq!(net.ends[0].stats().timeouts, 4);
        assert!(!net.ends[0].due(&net.cfg, Time::MAX, Kinds::ALL));
    }
    let mut net =
        Net::new(Roce { retry_count: 0, ..back() }, |from, p| Fate { drop: from == 0 && roce(p).place == 0, ..Fate::default() });
    net.write(4_096);
    net.run();
    assert!(net.failed, "the first negative acknowledgment is one too many");
}

#[test]
fn windows_hold_packets_back() {
    let outstanding = |cfg: Roce| {
        let mut net = Net::new(cfg, fine);
        net.write(1_000_000);
        while net.now < Time::ZERO + Span::from_us(9) && net.step() {}
        let early = |seen: &&Seen| seen.0 < Time::ZERO + Span::from_us(9) && seen.1 == 0;
        net.seen.iter().filter(early).count()
    };
    let window = |size| Roce { window: RoceWindow::Fixed(FixedRoceWindow { size: Bytes(size) }), ..Roce::default() };
    assert_eq!([1, 2_047, 2_048, 10_240].map(|size| outstanding(window(size))), [1, 1, 2, 10]);
    // 10 us at 100 Gb/s are 125,000 B on the wire; a packet has 1024 + 24 + 58 there.
    assert_eq!(outstanding(Roce { window: RoceWindow::Bdp(BdpWindow { factor: 0.5 }), ..Roce::default() }), 57);
    let whole = outstanding(Roce::default());
    assert_eq!(whole, 103, "9 us of packets, each 88 ns");
}

/// At 10 Gb/s a packet of 1106 B (1122 the first) leaves each 884.8 ns; four back to back, four times as long a pause.
#[test]
fn the_rate_limiter_keeps_its_rate() {
    let rate = BitRate::from_gbps(10);
    let times = |burst: Option<Bytes>| {
        let control = RoceControl::None(NoRateControl { rate: Some(rate) });
        let mut net = Net::new(Roce { congestion_control: control, burst, ..Roce::default() }, fine);
        net.write(40 * 1_024);
        net.run();
        net.seen.iter().filter(|(_, from, _)| *from == 0).map(|(at, _, _)| at.ps()).collect::<Vec<_>>()
    };
    let paced = times(None);
    let first = 1_122 * 800;
    assert_eq!((paced[1], paced[2] - paced[1], paced[39]), (first, 1_106 * 800, first + 38 * 1_106 * 800));
    let bursts = times(Some(Bytes(4_096)));
    assert_eq!(bursts[..5], [0, 88_000, 176_000, 264_000, first + 3 * 1_106 * 800]);
    assert_eq!(bursts[36], first + 35 * 1_106 * 800);
}

/// A receiver sends one notification per interval, later by the delay of its generation; marks in between cause one at its end.
#[test]
fn notifications_keep_their_interval_and_delay() {
    let control = Dcqcn { cnp_delay: Span::from_us(7), ..Dcqcn::new(DcqcnProfile::Paper) };
    let cfg = Roce { congestion_control: RoceControl::Dcqcn(control), cnp_class: Some(6), ack_class: Some(5), ..Roce::default() };
    // 2,000 packets in 176 us at line rate; the first 600 are marked.
    let mut net = Net::new(cfg, |from, p| Fate { mark: from == 0 && roce(p).place < 600 * 1_024, ..Fate::default() });
    net.write(2_000 * 1_024);
    net.run();
    let (cnps, acks): (Vec<_>, Vec<_>) =
        net.seen.iter().filter(|(_, from, _)| *from == 1).partition(|(_, _, p)| roce(p).op == RoceOp::Notification);
    let times: Vec<u64> = cnps.iter().map(|(at, _, _)| (at.ps()) / 1_000_000).collect();
    // The first mark arrives after 5 us. The rate is halved from 17 us on: marks end before 150 us.
    assert_eq!(times[..2], [12, 62]);
    assert!(times.windows(2).all(|two| two[1] - two[0] >= 50), "{times:?}");
    assert!(cnps
        .iter()
        .all(|(_, _, p)| (roce(p).class, roce(p).bytes(), p.envelope.ecn) == (Some(TrafficClass(6)), 40, Ecn::NotEct)));
    assert!(acks.iter().all(|(_, _, p)| roce(p).class == Some(TrafficClass(5))));
    assert!(net.seen.iter().all(|(_, from, p)| *from == 1 || p.envelope.ecn == Ecn::Ect0));
    assert_eq!(u64::from(net.ends[0].stats().ecn_reductions), cnps.len() as u64);
    assert_eq!(net.ends[1].stats().marked, 600);
}

/// The marks of the last interval cause a notification though no packet follows.
#[test]
fn marks_cause_a_notification_when_nothing_follows() {
    let control = Dcqcn { cnp_interval: Span::from_us(50), ..Dcqcn::new(DcqcnProfile::Paper) };
    let cfg = Roce { congestion_control: RoceControl::Dcqcn(control), ..Roce::default() };
    let mut net = Net::new(cfg, |_, _| Fate { mark: true, ..Fate::default() });
    net.write(2 * 1_024);
    net.run();
    let cnps: Vec<u64> =
        net.seen.iter().filter(|(_, _, p)| roce(p).op == RoceOp::Notification).map(|(at, _, _)| at.ps() / 1_000_000).collect();
    assert_eq!(cnps, [5, 55]);
}

fn config() -> impl Strategy<Value = Roce> {
    let control = prop_oneof![
        Just(RoceControl::None(NoRateControl { rate: None })),
        Just(RoceControl::None(NoRateControl { rate: Some(BitRate::from_gbps(7)) })),
        Just(RoceControl::Dcqcn(Dcqcn::new(DcqcnProfile::Mlx5))),
    ];
    let window = prop_oneof![
        Just(RoceWindow::None(fanin_transport::roce::NoRoceWindow {})),
        Just(RoceWindow::Bdp(BdpWindow { factor: 0.2 })),
        (1_u64..20_000).prop_map(|size| RoceWindow::Fixed(FixedRoceWindow { size: Bytes(size) })),
    ];
    let message = prop_oneof![Just(None), (1_u64..9).prop_map(|n| Some(Bytes(n * 512)))];
    (control, window, message, any::<bool>(), 1_u32..9, prop_oneof![Just(None), Just(Some(Bytes(3_000)))]).prop_map(
        |(congestion_control, window, message, repeat, ack_every, burst)| {
            let windowed = !matches!(window, RoceWindow::None(_)) || repeat;
            let base = if repeat { selective() } else { back() };
            let ack_every = if windowed { 1 } else { ack_every };
            Roce { congestion_control, window, message, ack_every, burst, mtu: 512, retry_count: 7, ..base }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    /// Whatever is lost, marked and delayed for a while: all bytes arrive once, in order, and both ends know.
    #[test]
    fn everything_arrives_once(
        cfg in config(),
        writes in prop::collection::vec(1_u64..30_000, 1..4),
        fates in prop::collection::vec((0_u8..8, 0_u8..6, 0_u8..10), 0..200),
    ) {
        let mut turn = 0;
        let mut net = Net::new(cfg, move |_, _| {
            let (drop, mark, late) = fates.get(turn).copied().unwrap_or((1, 1, 0));
            turn += 1;
            Fate { drop: drop == 0, mark: mark == 0, later: Span::from_us(if late > 7 { u64::from(late) } else { 0 }) }
        });
        let total: u64 = writes.iter().sum();
        for bytes in writes {
            net.write(bytes);
        }
        net.run();
        if net.failed {
            // Only where one packet was lost again and again.
            prop_assert!(net.ends[0].stats().timeouts + net.ends[0].stats().recoveries > 7);
        } else {
            prop_assert_eq!((net.delivered[1], net.acked[0]), (total, total));
            let (sent, got) = (net.ends[0].stats(), net.ends[1].stats());
            prop_assert_eq!(got.delivered, total);
            prop_assert_eq!(sent.bytes_sent - total > 0, sent.retransmits > 0);
            prop_assert!(net.ends[0].is_over(&net.cfg));
        }
        prop_assert_eq!(net.ends[0].next_timeout().min(net.ends[1].next_timeout()), Time::MAX);
    }
}
