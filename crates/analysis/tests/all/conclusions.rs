//! What is concluded: windows and thresholds at any speed, what is said where there is no burst, and the law in words, case by case.

use fanin_analysis::{
    unknown_flows, Background, Burst, Detect, DetectReport, FlowInfo, FlowLookup, PortAnalyzer, PortReport, Record, Sender,
    Settings, NO_DATA, NO_FLOW, NO_QUEUE,
};
use fanin_units::{BitRate, Bytes, Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

const SPEEDS_MBPS: [u64; 9] = [10, 100, 1_000, 2_500, 10_000, 25_000, 40_000, 100_000, 400_000];
const FRAME: u64 = 1518;

fn report(settings: &Settings, records: &[Record], flows: &FlowLookup) -> PortReport {
    let mut analyzer = PortAnalyzer::new(settings, "p", flows.clone());
    for r in records {
        analyzer.push(r).expect("order");
    }
    analyzer.finish()
}

fn by_rate(mbps: u64) -> Settings {
    Settings { rate: Some(BitRate::from_mbps(mbps)), detect: Detect::Rate { window: None, share: 0.5 }, ..Settings::default() }
}

/// Full frames, one every so many ps.
fn paced(step: f64, count: u64) -> Vec<Record> {
    let time = |i: u64| Time::from_ps((i as f64 * step) as u64);
    (0..count).map(|i| Record { time: time(i), queue: NO_QUEUE, frame: FRAME as u32, flow: 1, flags: 0 }).collect()
}

/// What does not change is a load, however high, and said to be one; what is more than the port can send is congestion.
#[test]
fn an_evenly_paced_stream_is_no_burst_below_the_ports_speed() {
    for mbps in SPEEDS_MBPS {
        let wire = BitRate::from_mbps(mbps).time_to_send(Bytes(FRAME + 20)).ps() as f64;
        for load in [0.1, 0.3, 0.45, 0.56, 0.6, 0.75, 0.9, 1.0] {
            // A hundred windows.
            let count = 100.0 * load * 25e6_f64.max(20.0 * wire) / wire;
            let found = report(&by_rate(mbps), &paced(wire / load, count as u64), &unknown_flows());
            assert_eq!(found.bursts_found, u64::from(load == 1.0), "{mbps} Mb/s at {load}");
            let steady = found.steady.as_ref().map_or(0.0, |steady| steady.share);
            assert!(if load > 0.5 && load < 1.0 { (steady - load).abs() < 0.01 } else { steady == 0.0 }, "{load}: {steady}");
            if load < 1.0 {
                let words = found.nothing.expect("no burst").words;
                assert!(words.starts_with("no burst: the load is steady, "), "{words}");
            }
        }
    }
}

/// A stream at the share that makes a burst has windows with a frame more and a frame less: until the load is known to be steady too.
#[test]
fn a_stream_at_the_share_of_a_burst_has_no_bursts() {
    for mbps in [100, 1_000, 10_000] {
        let wire = BitRate::from_mbps(mbps).time_to_send(Bytes(FRAME + 20)).ps() as f64;
        for load in [0.48, 0.5, 0.501, 0.52, 0.54] {
            let count = 150.0 * load * 25e6_f64.max(20.0 * wire) / wire;
            let mut records = paced(wire / load, count as u64);
            // No sender is that even.
            for (i, r) in records.iter_mut().enumerate() {
                r.time = Time::from_ps(r.time.ps() + (i as u64 * 7_919 % 100) * (wire / 150.0) as u64);
            }
            let found = report(&by_rate(mbps), &records, &unknown_flows());
            assert_eq!((found.bursts_found, found.bursts.len(), found.burst_ps), (0, 0, 0), "{mbps} Mb/s at {load}");
            assert!(found.histograms.duration_ps.counts.is_empty(), "{:?}", found.histograms);
        }
    }
}

/// The stream of 60 %, with `extra` frames every 20 ms, 2 us apart.
fn with_bursts(extra: u64) -> Vec<Record> {
    let mut records = paced(1_230_400.0 / 0.6, 60_000);
    let like = records[0];
    let burst = |k: u64| (0..extra).map(move |i| Time::from_ps(5_000_000_000 + k * 20_000_000_000 + i * 2_000_000));
    records.extend((0..5).flat_map(burst).map(|time| Record { time, flow: 2, ..like }));
    records.sort_by_key(|r| r.time);
    records
}

/// 10 Gb/s, windows of 25 us: 120 frames of a second stream in 240 us, on 60 %, are bursts, and what carries them is none.
#[test]
fn bursts_on_a_steady_load_are_found_where_they_are() {
    let found = report(&by_rate(10_000), &with_bursts(120), &unknown_flows());
    assert_eq!(found.bursts_found, 5, "{:?}", found.bursts);
    for (k, burst) in found.bursts.iter().enumerate() {
        let start = 5_000_000_000 + k as u64 * 20_000_000_000;
        assert!(burst.start_ps.abs_diff(start) <= 25_000_000, "{burst:?}");
        assert!(burst.duration_ps.abs_diff(240_000_000) <= 50_000_000, "{burst:?}");
        // 60 %, and a frame of 1538 B each 2 us.
        let offered = 6e9 + 1538.0 * 8.0 / 2e-6;
        assert!(burst.busiest_bps.is_some_and(|bps| (bps / offered - 1.0).abs() < 0.1), "{burst:?}");
    }
    let steady = found.steady.expect("a steady load");
    assert!((steady.share - 0.6).abs() < 0.01 && steady.ps > 100_000_000_000, "{steady:?}");
    assert!(found.notes.iter().any(|note| note.starts_with("the load is steady, 60")), "{:?}", found.notes);
    assert_eq!(report(&by_rate(10_000), &with_bursts(0), &unknown_flows()).bursts_found, 0);
}

/// A burst at full speed that goes over into a steady 60 % was over when that began; and after silence, what lasts is no burst.
#[test]
fn a_burst_ends_where_a_steady_load_begins() {
    let (full, sixty) = (1_230_400.0, 1_230_400.0 / 0.6);
    let mut records = paced(full, 200);
    let end = records[199].time.ps() + full as u64;
    let shifted = |by: u64, r: &Record| Record { time: Time::from_ps(r.time.ps() + by), ..*r };
    records.extend(paced(sixty, 20_000).iter().map(|r| shifted(end, r)));
    let again = records[records.len() - 1].time.ps() + 1_000_000_000_000;
    records.extend(paced(sixty, 20_000).iter().map(|r| shifted(again, r)));
    let found = report(&by_rate(10_000), &records, &unknown_flows());
    assert_eq!(found.bursts_found, 1, "{:?}", found.bursts);
    let burst = &found.bursts[0];
    assert_eq!(burst.start_ps, 0);
    assert!(burst.end_ps.abs_diff(end) <= 25_000_000, "{burst:?} {end}");
    assert!(burst.records.abs_diff(200) <= 20, "{burst:?}");
}

#[test]
fn a_congestion_of_750_ms_at_100_mbps_is_one_burst_and_the_window_is_said() {
    let found = report(&by_rate(100), &paced(123_040_000.0, 6_000), &unknown_flows());
    assert_eq!((found.bursts_found, found.nothing), (1, None));
    assert!(found.bursts[0].duration_ps > 735_000_000_000, "{:?}", found.bursts[0]);
    let DetectReport::Rate { window_ps, words, .. } = &found.detect else { panic!("{:?}", found.detect) };
    assert_eq!(*window_ps, 2_460_800_000);
    assert_eq!(words, "window 2.461 ms (20 frames of 1518 B at 100 Mb/s), more than 50 % of 100 Mb/s");
    // As before from 10 Gb/s on, and as asked.
    let DetectReport::Rate { words, .. } = report(&by_rate(10_000), &[], &unknown_flows()).detect else { panic!() };
    assert_eq!(words, "window 25 us, more than 50 % of 10 Gb/s");
    let asked = Settings { detect: Detect::Rate { window: Some(Span::from_us(25)), share: 0.5 }, ..by_rate(100) };
    let found = report(&asked, &paced(123_040_000.0, 600), &unknown_flows());
    assert!(found.bursts_found > 300, "a window shorter than a frame makes each frame a burst");
    assert!(found.notes.iter().any(|n| n.contains("--window 2.47ms holds 20 of them")), "{:?}", found.notes);
    let far = Settings { rtt: Some(Span::from_ms(40)), ..by_rate(100) };
    let DetectReport::Rate { window_ps, words, .. } = report(&far, &[], &unknown_flows()).detect else { panic!() };
    assert_eq!((window_ps, words.contains("(1/4 of the round trip of 40ms)")), (10_000_000_000, true), "{words}");
}

/// Paced streams of random phases; the queue that each packet finds.
fn streams(mbps: u64, load: f64, count: usize) -> Vec<Record> {
    let wire = BitRate::from_mbps(mbps).time_to_send(Bytes(FRAME + 20)).ps() as f64;
    let period = wire * count as f64 / load;
    let mut state = 7u64;
    let mut arrivals: Vec<(u64, u32)> = Vec::new();
    for flow in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let phase = (state >> 11) as f64 / (1u64 << 53) as f64;
        arrivals.extend((0..200).map(|i| (((f64::from(i) + phase) * period) as u64, flow as u32)));
    }
    arrivals.sort_unstable();
    let mut port = Port::new(BitRate::from_mbps(mbps), u64::MAX);
    for (now, flow) in arrivals {
        port.arrive(now, flow, FRAME, 0);
    }
    port.records
}

#[test]
fn evenly_paced_streams_that_meet_make_no_burst_at_any_speed() {
    for mbps in SPEEDS_MBPS {
        for load in [0.6, 0.8, 0.9] {
            let settings = Settings { rate: Some(BitRate::from_mbps(mbps)), ..Settings::default() };
            let found = report(&settings, &streams(mbps, load, 9), &unknown_flows());
            assert_eq!(found.bursts_found, 0, "{mbps} Mb/s at {load}: {:?}", found.peak_bytes);
            assert!(found.peak_bytes > Some(0) && found.nothing.is_some());
        }
    }
}

#[test]
fn where_there_is_no_burst_the_largest_queue_and_what_shows_it_are_said() {
    // 257 KB at 25 Gb/s, where a burst begins above 312.5 KB.
    let up = (0..200u64).map(|i| i * 1285);
    let queues: Vec<u64> = up.clone().chain([257_000]).chain(up.rev()).collect();
    let record =
        |(i, q): (usize, u64)| Record { time: Time::from_ps(i as u64 * 800_000), queue: q, frame: 1518, flow: 1, flags: 0 };
    let records: Vec<Record> = queues.into_iter().enumerate().map(record).collect();
    let settings = Settings { rate: Some(BitRate::from_gbps(25)), ..Settings::default() };
    let found = report(&settings, &records, &unknown_flows());
    let nothing = found.nothing.expect("no burst");
    assert_eq!((nothing.queue_bytes, nothing.at_ps, nothing.option), (Some(257_000), 160_000_000, Some("above")));
    assert_eq!(
        nothing.words,
        "no burst: the largest queue was 257 KB at 160 us, and a burst begins above 312.5 KB; --above 120KB shows it"
    );
    let value: Bytes = fanin_units::Quantity::read(&nothing.value.expect("a value")).expect("a size");
    let shown = Settings { detect: Detect::Queue { above: Some(value), until: None }, ..settings.clone() };
    assert_eq!(report(&shown, &records, &unknown_flows()).bursts_found, 1);
    // Before the time asked for, and not at all.
    let late = Settings { from: Some(Time::from_ps(250_000_000)), ..settings.clone() };
    let nothing = report(&late, &records, &unknown_flows()).nothing.expect("no burst");
    assert!(nothing.option.is_none() && nothing.words.contains("before it, the largest queue was 257 KB"), "{}", nothing.words);
    let empty: Vec<Record> = records.iter().map(|r| Record { queue: 0, ..*r }).collect();
    let nothing = report(&settings, &empty, &unknown_flows()).nothing.expect("no burst");
    assert_eq!(nothing.words, "no burst: every packet found the queue empty");
    assert_eq!(report(&settings, &[], &unknown_flows()).nothing, None, "no records");
}

#[test]
fn where_no_window_is_hot_the_busiest_and_the_share_that_shows_it_are_said() {
    // 30 % of 10 Gb/s for 123 us, and then silence.
    let records = paced(1_230_400.0 / 0.3, 30);
    let found = report(&by_rate(10_000), &records, &unknown_flows());
    let nothing = found.nothing.expect("no burst");
    assert!(nothing.share.is_some_and(|share| (share - 0.3).abs() < 0.06), "{nothing:?}");
    assert_eq!(nothing.window_bytes.map(|bytes| bytes % 1538), Some(0));
    assert_eq!(nothing.option, Some("share"));
    let share: f64 = nothing.value.as_ref().expect("a value").parse().expect("a number");
    let shown = Settings { detect: Detect::Rate { window: None, share }, ..by_rate(10_000) };
    assert!(report(&shown, &records, &unknown_flows()).bursts_found > 0, "{}", nothing.words);
}

/// A FIFO port, and what a switch would record of it.
struct Port {
    ps_per_byte: u64,
    limit: u64,
    free: u64,
    /// When each packet begins to be sent, and its size.
    waiting: VecDeque<(u64, u64)>,
    queue: u64,
    records: Vec<Record>,
}

impl Port {
    fn new(rate: BitRate, limit: u64) -> Self {
        let ps_per_byte = rate.time_to_send(Bytes(1)).ps();
        Port { ps_per_byte, limit, free: 0, waiting: VecDeque::new(), queue: 0, records: Vec::new() }
    }

    /// When the packet has left; none if it is dropped.
    fn arrive(&mut self, now: u64, flow: u32, frame: u64, flags: u8) -> Option<u64> {
        while let Some(&(_, gone)) = self.waiting.front().filter(|first| first.0 <= now) {
            self.waiting.pop_front();
            self.queue -= gone;
        }
        let dropped = self.queue + frame > self.limit;
        let flags = flags | if dropped { fanin_analysis::DROPPED } else { 0 };
        self.records.push(Record { time: Time::from_ps(now), queue: self.queue, frame: frame as u32, flow, flags });
        if dropped {
            return None;
        }
        let start = self.free.max(now);
        self.waiting.push_back((start, frame));
        self.queue += frame;
        self.free = start + (frame + 20) * self.ps_per_byte;
        Some(self.free)
    }
}

/// Flows through one port: each packet that leaves is acknowledged after a round trip, and each acknowledgement releases two packets in slow
/// start, else one.
struct Senders {
    rate: BitRate,
    rtt: u64,
    flows: u32,
    window: u64,
    limit: u64,
    /// Largest window, packets; and the queueing delay that ends slow start, ps.
    largest: u64,
    delay: u64,
    /// First data, and what came before: time, flow, frame, flags.
    start: u64,
    before: Vec<(u64, u32, u64, u8)>,
    stop: u64,
}

const RTT: u64 = 100_000_000;

impl Senders {
    /// 18 flows of 3 packets each through 1 Gb/s, 100 us there and back, one after the other within 0.36 ms.
    fn new() -> Self {
        Senders {
            rate: BitRate::from_gbps(1),
            rtt: RTT,
            flows: 18,
            window: 3,
            limit: 512_000,
            largest: u64::MAX,
            delay: u64::MAX,
            start: 10_000_000_000,
            before: Vec::new(),
            stop: 30_000_000_000,
        }
    }

    fn run(&self) -> Vec<Record> {
        let mut port = Port::new(self.rate, self.limit);
        let mut arrivals = BinaryHeap::new();
        let mut order = 0u64;
        let mut send = |arrivals: &mut BinaryHeap<_>, at: u64, flow: u32, frame: u64, flags: u8, clocked: bool| {
            order += 1;
            arrivals.push(Reverse((at, order, flow, frame, flags, clocked)));
        };
        for &(at, flow, frame, flags) in &self.before {
            send(&mut arrivals, at, flow, frame, flags, false);
        }
        for flow in 0..self.flows {
            for packet in 0..self.window {
                send(&mut arrivals, self.start + u64::from(flow) * 20_000_000 + packet * 12_304_000, flow, FRAME, 0, true);
            }
        }
        let mut windows: BTreeMap<u32, (u64, bool)> = (0..self.flows).map(|flow| (flow, (self.window, true))).collect();
        while let Some(Reverse((now, _, flow, frame, flags, clocked))) = arrivals.pop() {
            let left = port.arrive(now, flow, frame, flags);
            if now > self.stop {
                break;
            }
            let Some(left) = left.filter(|_| clocked) else { continue };
            let (window, slow_start) = windows.entry(flow).or_insert((1, false));
            *slow_start &= *window < self.largest && left - now < self.delay;
            send(&mut arrivals, left + self.rtt, flow, FRAME, 0, true);
            if *slow_start {
                *window += 1;
                send(&mut arrivals, left + self.rtt, flow, FRAME, 0, true);
            }
        }
        port.records
    }
}

fn settings() -> Settings {
    Settings { rate: Some(BitRate::from_gbps(1)), rate_of_result: true, ..Settings::default() }
}

fn rtts() -> FlowLookup {
    Arc::new(|_| FlowInfo { base_rtt: Some(Span::from_ps(RTT)), ..FlowInfo::default() })
}

/// The highest burst, and all that is said of it.
fn highest(settings: &Settings, records: &[Record], flows: &FlowLookup) -> (Burst, String) {
    let found = report(settings, records, flows);
    let burst = found.bursts.into_iter().max_by_key(|b| b.peak_bytes).expect("a burst");
    let words = burst.law.as_ref().map_or_else(|| burst.words.clone(), |law| Some(law.words.clone())).expect("words");
    (burst, words)
}

/// All of a text's parts, in order.
fn says(words: &str, parts: &[&str]) {
    let mut rest = words;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("'{part}' in: {words}"));
        rest = &rest[at + part.len()..];
    }
    assert!(words.ends_with('.') && !words.contains(".."), "{words}");
}

/// A flow of another host sends now and then from the beginning on, so that the trace has a past.
fn past() -> Vec<(u64, u32, u64, u8)> {
    vec![(0, 99, 200, 0)]
}

#[test]
fn law_1_holds_and_why_no_other_applies_is_said() {
    let (burst, words) = highest(&settings(), &Senders { before: past(), ..Senders::new() }.run(), &rtts());
    let law = burst.law.expect("a law");
    assert_eq!((law.law, law.background, law.holds), (1, Background::None, Some(true)), "{words}");
    says(
        &words,
        &[
            "From ",
            " times the port's speed in frame bytes (987 Mb/s)",
            "Law 1 (slope = port speed) holds: no flow had been sending here before.",
            "Laws 2 and 3 need background flows.",
            "18 new flows are in slow start",
            "packets were dropped, the first ",
            "mark at the slope (S-ECN)",
        ],
    );
}

/// Handshakes long before the data: flows were not there before, and no round begins with them, whether the trace says what has payload or
/// frames are so small that there can be none.
#[test]
fn handshakes_are_no_background_and_no_round() {
    for flag in [0, NO_DATA] {
        let handshake =
            |flow: u32| [(u64::from(flow) * 1_000_000, flow, 78, flag), (u64::from(flow) * 1_000_000 + RTT, flow, 70, flag)];
        // And one acknowledgment just before the data, as a request is.
        let ack = |flow: u32| (9_990_000_000 + u64::from(flow), flow, 70, flag);
        let before = (0..18).flat_map(handshake).chain((0..18).map(ack)).collect();
        let (burst, words) = highest(&settings(), &Senders { before, ..Senders::new() }.run(), &rtts());
        let law = burst.law.clone().expect("a law");
        assert_eq!((law.law, law.background_flows, law.holds), (1, 0, Some(true)), "{words}");
        let (without, _) = highest(&settings(), &Senders { before: past(), ..Senders::new() }.run(), &rtts());
        let counts = |b: &Burst| b.rounds.iter().map(|r| (r.packets, r.bytes)).take(3).collect::<Vec<_>>();
        assert_eq!(counts(&burst), counts(&without));
    }
}

#[test]
fn a_trace_that_begins_with_the_burst_needs_syns_or_a_word() {
    let senders = Senders { start: 1_000_000, stop: 12_000_000_000, ..Senders::new() };
    let records = senders.run();
    let (burst, words) = highest(&settings(), &records, &rtts());
    assert!(burst.law.is_none());
    says(&words, &["No law can be judged: the trace begins ", "18 of 18 flows had been sending before", "--idle-before"]);
    let holds = |settings: &Settings, flows: &FlowLookup| {
        let (burst, words) = highest(settings, &records, flows);
        let law = burst.law.unwrap_or_else(|| panic!("{words}"));
        assert_eq!((law.law, law.holds), (1, Some(true)), "{words}");
    };
    holds(&Settings { idle_before: true, ..settings() }, &rtts());
    let syns = |_| FlowInfo { base_rtt: Some(Span::from_ps(RTT)), opened: Some(Time::from_ps(1_000)), ..FlowInfo::default() };
    holds(&settings(), &(Arc::new(syns) as FlowLookup));
    let asked = |_| FlowInfo { base_rtt: Some(Span::from_ps(RTT)), start: Some(Time::from_ps(0)), ..FlowInfo::default() };
    holds(&settings(), &(Arc::new(asked) as FlowLookup));
    // Without round trips either: what would help is said.
    let (_, words) = highest(&settings(), &records, &unknown_flows());
    says(&words, &["--idle-before", "--rtt gives them", "after 1 ms of activity"]);
}

/// Connections that are open: they answered a request before, for 120 round trips, and paused. A pause of a few round trips makes them new;
/// one that sends on is background.
#[test]
fn a_flow_that_paused_for_a_few_round_trips_is_new() {
    let answered = |until: u64| {
        (0..18u32)
            .flat_map(move |flow| (0..30u64).map(move |k| (until - 4 * k * RTT - u64::from(flow) * 20_000_000, flow, FRAME, 0)))
    };
    for pause in [8, 30, 100] {
        let start = 40_000_000_000;
        let before = past().into_iter().chain(answered(start - pause * RTT)).collect();
        let (burst, words) =
            highest(&settings(), &Senders { start, before, stop: start + 20_000_000_000, ..Senders::new() }.run(), &rtts());
        let law = burst.law.unwrap_or_else(|| panic!("{words}"));
        assert_eq!((law.law, law.background_flows, law.holds), (1, 0, Some(true)), "pause of {pause} RTT: {words}");
    }
    let on = (0..200u64).map(|k| (k * RTT, 50, FRAME, 0)).chain((0..200).map(|k| (k * RTT + 1_000_000, 51, FRAME, 0)));
    let before = past().into_iter().chain(on).collect();
    let (burst, words) = highest(&settings(), &Senders { before, ..Senders::new() }.run(), &rtts());
    let law = burst.law.expect("a law");
    assert_eq!((law.law, law.background, law.background_flows), (2, Background::SameHop, 2), "{words}");
    says(
        &words,
        &["Law 2 (slope < port speed)", "2 background flows shared this port before", "Law 1 needs a port without background"],
    );
}

#[test]
fn slow_start_that_is_left_by_delay_is_said() {
    // From a queueing delay of 1.5 ms on, one packet for one: the queue grows no more; so a few flows stay in slow start for longer.
    let senders = Senders { before: past(), limit: u64::MAX, delay: 1_500_000_000, ..Senders::new() };
    let mut records = senders.run();
    let (_, words) = highest(&settings(), &records, &rtts());
    says(&words, &["Law 1 (slope = port speed) holds", "the queue stayed at ", "though no drop or mark is recorded"]);
    assert!(!words.contains("To stop it"), "{words}");
    // The same with a slow growth after it, as congestion avoidance has: 40 Mb/s.
    let peak = records.iter().position(|r| r.queue > 180_000).expect("a queue");
    let since = records[peak].time.ps();
    for r in &mut records[peak..] {
        r.queue += (r.time.ps() - since) / 200_000;
    }
    let (burst, words) = highest(&settings(), &records, &rtts());
    assert_eq!(burst.law.and_then(|law| law.holds), Some(true), "{words}");
    says(&words, &["Law 1 (slope = port speed) holds", "it grew by 4", " Mb/s only", "slow start was left by HyStart"]);
}

#[test]
fn windows_that_are_full_are_said() {
    let (_, words) = highest(&settings(), &Senders { before: past(), largest: 12, ..Senders::new() }.run(), &rtts());
    says(&words, &["the queue stayed at ", "the senders' windows are full (receive window, send buffer)"]);
    // Where a trace shows no drops, the buffer may be full.
    let unsaid = Settings { rate_of_result: false, ..settings() };
    let (_, words) = highest(&unsaid, &Senders { before: past(), largest: 12, ..Senders::new() }.run(), &rtts());
    says(&words, &["the buffer is full (this trace shows no drops at all)"]);
}

#[test]
fn one_flow_and_one_window_have_no_law() {
    let one = Senders { flows: 1, window: 60, before: past(), ..Senders::new() };
    let (burst, words) = highest(&settings(), &one.run(), &rtts());
    assert!(burst.law.is_none(), "{words}");
    let several = Senders { window: 10, limit: 150_000, before: past(), ..Senders::new() };
    // Of TCP the first round trip is the first windows; where nothing tells the protocol, it may be anything.
    for (sender, why) in [
        (Sender::Tcp, "No law applies: most of that is the first windows (until "),
        (Sender::Unknown, "No law is stated: the laws are of senders in slow start, and nothing here shows it"),
    ] {
        let lookup: FlowLookup =
            Arc::new(move |_| FlowInfo { base_rtt: Some(Span::from_ps(RTT)), sender: sender.clone(), ..FlowInfo::default() });
        let (burst, words) = highest(&settings(), &several.run(), &lookup);
        assert!(burst.law.is_none(), "{words}");
        says(
            &words,
            &[
                "after the burst's start (phase",
                "the queue grew by ",
                "times the port's speed in frame bytes (987 Mb/s). It rose from ",
                "with 18 new flows.",
                why,
                "Growth after the first drop",
                "senders that recover losses are not in slow start",
            ],
        );
    }
}

/// A slope without an explanation: the table has no flows, or its flows are at a steady rate all along.
#[test]
fn a_growth_at_one_slope_is_measured_and_not_explained() {
    // An evenly rising series: 2 KB each 20 us, which is 800 Mb/s; then it drains.
    let rise = (0..200u64).map(|i| (i * 20_000_000, i * 2_000));
    let drain = (0..200u64).map(|i| (4_000_000_000 + i * 20_000_000, 400_000 - i * 2_000));
    let series: Vec<Record> = rise
        .chain(drain)
        .map(|(time, queue)| Record { time: Time::from_ps(time), queue, frame: 0, flow: NO_FLOW, flags: 0 })
        .collect();
    let (burst, words) = highest(&settings(), &series, &unknown_flows());
    assert!(burst.law.is_none() && burst.phases.len() == 2, "{words} {:?}", burst.phases);
    says(
        &words,
        &["(phase 1), the queue grew by 800 Mb/s", "0.80 times the port's speed", "who sent it is unknown. No law is stated"],
    );
    // Two senders of a port's speed each, from nothing on.
    let rate = BitRate::from_gbps(1);
    let mut port = Port::new(rate, 2_000_000);
    for i in 0..1_000u64 {
        port.arrive(10_000_000_000 + i * (FRAME + 20) * 4_000, (i % 2) as u32, FRAME, 0);
    }
    for (name, rtt) in [("udp", None), ("roce", Some(Span::from_ps(RTT))), ("roce", Some(Span::from_ms(5)))] {
        let lookup: FlowLookup = Arc::new(move |flow| FlowInfo {
            src: Some(format!("h{flow}").into()),
            base_rtt: rtt,
            sender: Sender::Other(name.into()),
            ..FlowInfo::default()
        });
        // What was before the trace changes nothing: no law is of such senders.
        for idle_before in [true, false] {
            let (burst, words) = highest(&Settings { idle_before, ..settings() }, &port.records, &lookup);
            assert!(burst.law.is_none(), "{words}");
            says(
                &words,
                &["1.00 times the port's speed", "2 new flows of 2 hosts", &format!("slow start, and 2 of these are {name}.")],
            );
            for guess in ["window", "acknowledgement", "pacing", "recover losses", "HyStart", "--idle-before", "--rtt"] {
                assert!(!words.contains(guess), "{name} {rtt:?}: {guess}: {words}");
            }
        }
    }
}

#[test]
fn senders_that_were_on_their_way_are_judged_from_the_start_of_the_burst() {
    // Far away: the first windows drain before their acknowledgements come, and the next round is a burst of its own.
    let far = Senders { rtt: 700_000_000, before: past(), stop: 20_000_000_000, limit: u64::MAX, ..Senders::new() };
    let lookup: FlowLookup = Arc::new(|_| FlowInfo { base_rtt: Some(Span::from_us(700)), ..FlowInfo::default() });
    let records = far.run();
    let found = report(&Settings { idle_before: true, ..settings() }, &records, &lookup);
    let second = &found.bursts[1];
    let law = second.law.as_ref().unwrap_or_else(|| panic!("{:?}", second.words));
    assert_eq!((law.law, law.phase, law.holds), (1, 0, Some(true)), "{} {:?} {:?}", law.words, second.phases, second.rounds);
}

/// A batch of packets, as a delay line or a paused host lets go at once, at the beginning of a burst that acknowledgements clock.
#[test]
fn a_batch_before_the_growth_is_not_judged_and_no_window_is_called_full() {
    let lookup: FlowLookup =
        Arc::new(|_| FlowInfo { base_rtt: Some(Span::from_us(700)), sender: Sender::SlowStart, ..FlowInfo::default() });
    let idle = Settings { idle_before: true, ..settings() };
    let far = |batch: u64, at: u64| {
        let flows = (0..batch).map(|k| (at + k * 1_000_000, (k % 18) as u32, FRAME, 0));
        let before = past().into_iter().chain(flows).collect();
        Senders { rtt: 700_000_000, before, stop: 20_000_000_000, limit: u64::MAX, ..Senders::new() }.run()
    };
    let start = report(&idle, &far(0, 0), &lookup).bursts[1].start_ps;
    let found = report(&idle, &far(150, start), &lookup);
    let second = &found.bursts[1];
    let law = second.law.as_ref().unwrap_or_else(|| panic!("{:?} {:?}", second.words, second.phases));
    assert_eq!((law.law, law.holds), (1, Some(true)), "{} {:?}", law.words, second.phases);
    assert!(law.phase > 0 && second.phases[0].slope_bps > 5e9, "{:?}", second.phases);
    says(
        &law.words,
        &[
            "What it grew before (phases 1 to 2, from 0 ns to ",
            "is not judged: that is more than acknowledgements release",
            "holds",
        ],
    );
    assert!(!law.words.contains("windows are full"), "{}", law.words);
    // The first windows lie under the batch: without the transport's name nothing shows slow start.
    let unnamed: FlowLookup = Arc::new(|_| FlowInfo { base_rtt: Some(Span::from_us(700)), ..FlowInfo::default() });
    let found = report(&idle, &far(150, start), &unnamed);
    let words = found.bursts[1].words.as_ref().unwrap_or_else(|| panic!("{:?}", found.bursts[1].law));
    says(words, &["1.00 times the port's speed", "18 new flows began to send here. No law is stated", "nothing here shows it"]);
}

/// Senders at a steady rate that together send twice what the port does: the slope is the port's speed, and no law says so.
#[test]
fn senders_at_a_steady_rate_get_no_law_and_no_remedy() {
    let rate = BitRate::from_gbps(1);
    let steady = |senders: u64| {
        let mut port = Port::new(rate, 2_000_000);
        let each = (FRAME + 20) * 8_000 * senders / 2;
        for i in 0..2 * senders * 1_000 / senders {
            let (turn, sender) = (i / senders, i % senders);
            port.arrive(10_000_000_000 + turn * each + sender * each / senders, sender as u32, FRAME, 0);
        }
        port.records
    };
    let named = |sender: Sender| -> FlowLookup {
        Arc::new(move |flow| FlowInfo {
            src: Some(format!("h{flow}").into()),
            base_rtt: Some(Span::from_ps(RTT)),
            sender: sender.clone(),
            ..FlowInfo::default()
        })
    };
    let idle = Settings { idle_before: true, ..settings() };
    for senders in [2, 16] {
        for sender in [Sender::Other("udp".into()), Sender::Other("roce".into()), Sender::Tcp, Sender::Unknown] {
            let (burst, words) = highest(&idle, &steady(senders), &named(sender.clone()));
            assert!(burst.law.is_none(), "{sender:?}: {words}");
            for remedy in ["pacing", "To stop it", "mark at", "are in slow start:", "HyStart"] {
                assert!(!words.contains(remedy), "{sender:?}: {words}");
            }
            if let Some(growth) = words.find("the queue grew by") {
                says(&words[growth..], &["1.00 times the port's speed", &format!("{senders} new flows of {senders} hosts")]);
                says(&words, &["No law is stated: the laws are of senders in slow start"]);
            }
        }
    }
}
