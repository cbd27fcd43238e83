//! Every policy under one set of operations, and the stages' own edges.

use crate::*;
use fanin_packet::{Ecn, Envelope};
use fanin_params::{Cx, Param, Severity, Value};
use fanin_units::{Amount, BitRate, Purpose, QueueClass, Span, Stream, Time, TrafficClass};
use proptest::prelude::*;
use std::collections::VecDeque;

/// The choice of this `kind` with all its defaults.
fn by_default<T: Param>(kind: &str) -> T {
    let mut cx = Cx::new();
    let parsed = T::parse(&Value::Text(kind.into()).into(), &mut cx);
    parsed.unwrap_or_else(|| panic!("{kind}: {:?}", cx.into_problems()))
}

pub(crate) fn packet(frame: u16, ecn: Ecn) -> Envelope {
    let mut p = Envelope::default();
    (p.frame, p.ecn) = (frame, ecn);
    p
}

pub(crate) fn view(queue_packets: u32) -> PortView {
    PortView {
        now: Time::from_ps(1_000_000),
        queue_bytes: u64::from(queue_packets) * 1518,
        queue_packets,
        queue_cells: queue_packets * 19,
        rate: BitRate::from_gbps(10),
        overhead: 20,
        free_at: Time::from_ps(1_000_001),
    }
}

pub(crate) fn stream() -> Stream {
    Stream::new(1, Purpose::Marking, 0)
}

fn messages(check: impl FnOnce(&mut Cx)) -> Vec<(Severity, String)> {
    let mut cx = Cx::new();
    check(&mut cx);
    cx.into_problems().into_iter().map(|p| (p.severity, p.to_string())).collect()
}

#[test]
fn the_threshold_marks_what_finds_more_than_k_and_only_ecn_capable_packets() {
    for k in [Amount::Packets(20), Amount::Bytes(20 * 1518), Amount::Cells(20 * 19)] {
        let params = ThresholdParams { k, at: At::Enqueue };
        let mut marker = Marker::new(&Marking::Threshold(params));
        let mut verdict = |found, ecn| marker.on_enqueue(&view(found), &packet(1518, ecn), &mut stream());
        assert_eq!(verdict(20, Ecn::Ect0), MarkVerdict::Pass);
        assert_eq!(verdict(21, Ecn::Ect0), MarkVerdict::Mark(MarkReason("threshold")));
        assert_eq!(verdict(21, Ecn::Ect1), MarkVerdict::Mark(MarkReason("threshold")));
        assert_eq!(verdict(21, Ecn::NotEct), MarkVerdict::Pass);
        assert_eq!(marker.simple_threshold(), Some((k, At::Enqueue)));
        assert!(marker.acts_at_enqueue() && !marker.acts_at_dequeue() && !marker.needs_rng());
    }
}

#[test]
fn a_threshold_at_dequeue_looks_at_what_is_left_behind() {
    let params = ThresholdParams { k: Amount::Packets(20), at: At::Dequeue };
    let mut marker = Marker::new(&Marking::Threshold(params));
    let p = packet(1518, Ecn::Ect0);
    assert_eq!(marker.on_enqueue(&view(99), &p, &mut stream()), MarkVerdict::Pass);
    assert_eq!(marker.on_dequeue(&view(20), &p, &mut stream()), MarkVerdict::Pass);
    assert_eq!(marker.on_dequeue(&view(21), &p, &mut stream()), MarkVerdict::Mark(MarkReason("threshold")));
    assert!(!marker.acts_at_enqueue() && marker.acts_at_dequeue());
}

#[test]
fn no_marking_has_nothing_to_ask() {
    let marker = Marker::new(&Marking::None(NoMarking {}));
    assert!(!marker.acts_at_enqueue() && !marker.acts_at_dequeue() && marker.simple_threshold().is_none());
}

#[test]
fn frames_take_whole_cells() {
    assert_eq!([1u16, 80, 81, 1518].map(|frame| cells(frame, 80)), [1, 1, 2, 19]);
    assert_eq!([Unit::Bytes, Unit::Packets, Unit::Cells].map(|u| u.size(1518, 80)), [1518, 1, 19]);
}

#[test]
fn with_alpha_each_of_n_greedy_queues_gets_its_closed_form_share() {
    // Equilibrium of n saturated queues: each holds α/(1 + n α) of the buffer. Source: DT.
    for (alpha, n) in [(0.5, 1u64), (1.0, 1), (1.0, 3), (2.0, 2), (8.0, 4)] {
        let total = 1_000_000;
        let mut buffer = SharedBuffer::new(&DynamicBuffer { total: Amount::Bytes(total), alpha, reserved: None }, 48, 80);
        let mut queues = vec![0u64; n as usize];
        let mut grew = true;
        while grew {
            grew = false;
            for queue in &mut queues {
                if buffer.check(alpha, *queue, 100).is_ok() {
                    buffer.commit(queue, 100);
                    grew = true;
                }
            }
        }
        let share = alpha * total as f64 / (1.0 + n as f64 * alpha);
        for queue in queues {
            assert!((queue as f64 - share).abs() <= 100.0 * (1.0 + alpha), "alpha {alpha}, n {n}: {queue} vs {share}");
        }
    }
}

#[test]
fn a_reservation_is_there_when_the_shared_part_is_gone() {
    let params = DynamicBuffer { total: Amount::Packets(12), alpha: 100.0, reserved: Some(Amount::Packets(2)) };
    let mut buffer = SharedBuffer::new(&params, 3, 80);
    let mut greedy = 0;
    while buffer.check(100.0, greedy, 64).is_ok() {
        buffer.commit(&mut greedy, 64);
    }
    assert_eq!((greedy, buffer.used(), buffer.free()), (8, 6, 0)); // 2 of its own, 6 = 12 − 3·2 shared
    assert_eq!(buffer.check(100.0, greedy, 64), Err(DropReason::SHARED_BUFFER_FULL));
    let mut queue = 0;
    for _ in 0..2 {
        assert_eq!(buffer.check(100.0, queue, 64), Ok(()));
        buffer.commit(&mut queue, 64);
    }
    assert_eq!(buffer.check(100.0, queue, 64), Err(DropReason::SHARED_BUFFER_FULL));
    buffer.release(&mut greedy, 64);
    assert_eq!((queue, greedy), (2, 7));
    assert_eq!(buffer.check(100.0, queue, 64), Ok(()));
}

#[test]
fn impossible_switches_are_refused_and_idle_thresholds_warned_of() {
    let mut switch: Switch = parse_switch();
    assert_eq!(messages(|cx| switch.check(cx)), []);
    switch.buffer = Buffer::Dynamic(DynamicBuffer { total: Amount::Packets(10), alpha: 1.0, reserved: Some(Amount::Bytes(1)) });
    switch.marking = Marking::Red(RedParams { min: Amount::Packets(9), max: Amount::Bytes(1), ..red_defaults() });
    switch.scheduling = Scheduling::Drr(DrrParams { quanta: vec![fanin_units::Bytes(1); 9] });
    let found = messages(|cx| switch.check(cx));
    for expected in [
        "buffer.reserved: is 1B, but `total` is 10 packets; accepted: the same unit for both",
        "marking.max: is 1B, but `min` is 9 packets",
        "scheduling.quanta: makes 9 classes; accepted: from 1 to 8 classes in all",
    ] {
        assert!(
            found.iter().any(|(severity, m)| *severity == Severity::Error && m.contains(expected)),
            "{expected}\n--\n{found:?}"
        );
    }
    switch = parse_switch();
    for (k, most, warned) in [
        (Amount::Bytes(512_000), Amount::Bytes(512_000), true),
        (Amount::Bytes(511_999), Amount::Bytes(512_000), false),
        (Amount::Packets(8_000), Amount::Bytes(512_000), true), // 64-byte frames
        (Amount::Packets(7_999), Amount::Bytes(512_000), false),
        (Amount::Bytes(800), Amount::Cells(10), true),
        (Amount::Bytes(100_000_000), Amount::Packets(5), false),
    ] {
        switch.buffer = Buffer::Static(StaticBuffer { per_port: most });
        switch.marking = Marking::Threshold(ThresholdParams { k, at: At::Enqueue });
        let found = messages(|cx| switch.check_thresholds(Origins::default(), cx));
        assert_eq!(
            found.iter().any(|(s, m)| *s == Severity::Warning && m.contains("never acts")),
            warned,
            "{k} {most}: {found:?}"
        );
    }
}

#[test]
fn a_front_drop_cuts_at_the_limit_with_the_packet_counted() {
    let p = packet(1518, Ecn::Ect0);
    for (limit, size) in [(Amount::Packets(20), 1), (Amount::Bytes(20 * 1518), 1518), (Amount::Cells(20 * 19), 19)] {
        let mut marker = Marker::new(&Marking::FrontDrop(FrontDropParams { limit }));
        let mut verdict =
            |depth| marker.on_head(&Head { port: view(depth), class: QueueClass::FIRST, class_bytes: 0, waited: Span::ZERO }, &p);
        assert_eq!(
            [19, 20, 21].map(&mut verdict),
            [19, 20, 21].map(|depth| match depth {
                19 => MarkVerdict::Pass,
                _ => MarkVerdict::Drop(DropReason("front_drop")),
            })
        );
        assert!(marker.decides_at_head() && !marker.acts_at_enqueue() && !marker.acts_at_dequeue());
        // A buffer that holds just as much lets the queue reach the limit, one that holds less does not.
        let mut switch = parse_switch();
        switch.marking = Marking::FrontDrop(FrontDropParams { limit });
        for (less, warned) in [(0, false), (size, true)] {
            let most = match limit {
                Amount::Bytes(n) => Amount::Bytes(n - less),
                Amount::Packets(n) => Amount::Packets(n - less),
                Amount::Cells(n) => Amount::Cells(n - less),
            };
            switch.buffer = Buffer::Static(StaticBuffer { per_port: most });
            let found = messages(|cx| switch.check_thresholds(Origins::default(), cx));
            assert_eq!(found.len(), usize::from(warned), "{limit} {most}: {found:?}");
        }
    }
    for (limit, refused) in
        [(Amount::Packets(1), true), (Amount::Packets(2), false), (Amount::Bytes(64), true), (Amount::Bytes(65), false)]
    {
        let found = messages(|cx| Marking::FrontDrop(FrontDropParams { limit }).check(cx));
        assert_eq!(found.len(), usize::from(refused), "{limit}: {found:?}");
    }
}

pub(crate) fn parse_switch() -> Switch {
    let parsed = Switch::parse(&Value::Table(Vec::new()).into(), &mut Cx::new());
    parsed.expect("all keys have defaults")
}

fn red_defaults() -> RedParams {
    match by_default("red") {
        Marking::Red(params) => params,
        _ => unreachable!("red"),
    }
}

/// What may happen at a port.
#[derive(Clone, Debug)]
enum Op {
    Arrive { port: usize, class: u8, frame: u16, ecn: Ecn },
    Depart { port: usize },
    Wait { ns: u64 },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ce]);
    let arrive =
        (0..3usize, 0..9u8, 64..1519u16, ecn).prop_map(|(port, class, frame, ecn)| Op::Arrive { port, class, frame, ecn });
    let op = prop_oneof![5 => arrive, 3 => (0..3usize).prop_map(|port| Op::Depart { port }), 1 => (1..5_000u64).prop_map(|ns| Op::Wait { ns })];
    prop::collection::vec(op, 1..400)
}

/// A port as the pipeline has it: queues by class, the wire always busy. Frames with the times at which they came.
struct Port {
    queues: Vec<VecDeque<(u16, Time)>>,
    scheduler: Scheduler,
    marker: Marker,
    rng: Stream,
}

impl Port {
    fn queued(&self, unit: Unit) -> u64 {
        self.queues.iter().flatten().map(|(frame, _)| unit.size(*frame, 80)).sum()
    }

    fn view(&self, now: Time) -> PortView {
        PortView {
            now,
            queue_bytes: self.queued(Unit::Bytes),
            queue_packets: self.queued(Unit::Packets) as u32,
            queue_cells: self.queued(Unit::Cells) as u32,
            rate: BitRate::from_gbps(10),
            overhead: 20,
            free_at: now + Span::from_ns(1),
        }
    }
}

/// Drives one combination of policies and checks after each operation what must hold of all.
fn drive(marking: &Marking, scheduling: &Scheduling, buffer: &DynamicBuffer, ops: &[Op]) {
    let mut shared = SharedBuffer::new(buffer, 3, 80);
    let mut ports: Vec<Port> = (0..3u64)
        .map(|i| Port {
            queues: vec![VecDeque::new(); scheduling.classes()],
            scheduler: Scheduler::new(scheduling),
            marker: Marker::new(marking),
            rng: Stream::new(7, Purpose::Marking, i),
        })
        .collect();
    let (mut now, mut offered, mut sent, mut dropped) = (Time::ZERO, 0u64, 0u64, 0u64);
    for op in ops {
        match *op {
            Op::Wait { ns } => now += Span::from_ns(ns),
            Op::Arrive { port, class, frame, ecn } => {
                offered += 1;
                let port = &mut ports[port];
                let (view, p) = (port.view(now), packet(frame, ecn));
                let mut queued = port.queued(shared.unit());
                if shared.check(buffer.alpha, queued, frame).is_err() {
                    port.marker.on_refused(&view, &p);
                    dropped += 1;
                    continue;
                }
                match port.marker.on_enqueue(&view, &p, &mut port.rng) {
                    MarkVerdict::Drop(_) => {
                        dropped += 1;
                        continue;
                    }
                    MarkVerdict::Mark(_) => assert_ne!(ecn, Ecn::NotEct, "marked what is not ECN-capable"),
                    MarkVerdict::Undecided => assert_eq!(marking.kind(), "external", "nobody was brought to it"),
                    MarkVerdict::Pass => {}
                }
                let class = port.scheduler.class_of(TrafficClass(class));
                shared.commit(&mut queued, frame);
                port.queues[class].push_back((frame, now));
                port.scheduler.enqueue(class, frame);
            }
            Op::Depart { port } => {
                let port = &mut ports[port];
                let mut left = port.queues.iter().map(VecDeque::len).sum::<usize>();
                loop {
                    let Some(class) = port.scheduler.next() else {
                        assert_eq!(left, 0, "{} is not work conserving", scheduling.kind());
                        break;
                    };
                    assert_eq!(port.scheduler.next(), Some(class), "asking changes nothing");
                    let mut queued = port.queued(shared.unit());
                    let class_bytes = port.queues[class].iter().map(|(frame, _)| u64::from(*frame)).sum();
                    let view = PortView { free_at: now, ..port.view(now) };
                    let (frame, joined) = port.queues[class].pop_front().expect("the class that is next has packets");
                    let head = Head { port: view, class, class_bytes, waited: now.since(joined) };
                    shared.release(&mut queued, frame);
                    left -= 1;
                    let p = packet(frame, Ecn::Ect0);
                    if port.marker.decides_at_head() && matches!(port.marker.on_head(&head, &p), MarkVerdict::Drop(_)) {
                        port.scheduler.dropped(class, frame);
                        dropped += 1;
                        continue;
                    }
                    port.scheduler.dequeued(class, frame);
                    let verdict = port.marker.on_dequeue(&port.view(now), &p, &mut port.rng);
                    assert!(!matches!(verdict, MarkVerdict::Drop(_)), "dropped on its way out");
                    sent += 1;
                    break;
                }
            }
        }
        let waiting: u64 = ports.iter().map(|p| p.queued(Unit::Packets)).sum();
        assert_eq!(offered, sent + dropped + waiting, "a packet is lost or made");
        let reserved = buffer.reserved.map_or(0, Amount::count);
        let in_shared: u64 = ports.iter().map(|p| p.queued(shared.unit()).saturating_sub(reserved)).sum();
        assert_eq!(shared.used(), in_shared, "the buffer is not the sum of its queues");
    }
    for port in &mut ports {
        while let Some(class) = port.scheduler.next() {
            let (frame, _) = port.queues[class].pop_front().expect("the class that is next has packets");
            port.scheduler.dequeued(class, frame);
        }
        assert_eq!(port.queued(Unit::Packets), 0, "{} forgot a packet", scheduling.kind());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_combination_of_policies_keeps_the_books(ops in ops(), unit in 0..3usize, alpha in 0.1..8.0f64, reserve in any::<bool>()) {
        let (total, reserved) = [
            (Amount::Bytes(60_000), Amount::Bytes(3_000)),
            (Amount::Packets(40), Amount::Packets(2)),
            (Amount::Cells(700), Amount::Cells(40)),
        ][unit];
        let buffer = DynamicBuffer { total, alpha, reserved: reserve.then_some(reserved) };
        for marking in Marking::KINDS {
            for scheduling in Scheduling::KINDS {
                drive(&by_default(marking), &by_default(scheduling), &buffer, &ops);
            }
        }
    }

    #[test]
    fn red_without_memory_is_a_threshold(queues in prop::collection::vec(0..60u32, 1..100), k in 1..50u64) {
        let red = RedParams {
            min: Amount::Packets(k + 1), max: Amount::Packets(k + 1), weight: 1.0, gentle: false, hard_drop: false, ..red_defaults()
        };
        let mut red = Marker::new(&Marking::Red(red));
        let mut threshold = Marker::new(&Marking::Threshold(ThresholdParams { k: Amount::Packets(k), at: At::Enqueue }));
        for found in queues {
            let p = packet(1518, Ecn::Ect0);
            let marks = |v| matches!(v, MarkVerdict::Mark(_));
            prop_assert_eq!(
                marks(red.on_enqueue(&view(found), &p, &mut stream())),
                marks(threshold.on_enqueue(&view(found), &p, &mut stream()))
            );
        }
    }
}
