//! Bursts, lower bounds, unknown time and contradictions of one port, from invented intervals.

use super::{CounterBurst, CounterPort, CounterReport, Interval, Reading, State};
use crate::{unknown_flows, Detect, PortReport, Settings};
use fanin_units::{BitRate, Bytes, Span, Time};

/// 10 Gb/s: 125,000 B in 100 us.
const LINE: u64 = 125_000;
const STEP: u64 = 100_000_000;

fn by_rate() -> Settings {
    let detect = Detect::Rate { window: None, share: 0.5 };
    Settings { rate: Some(BitRate::from_gbps(10)), detect, ..Settings::default() }
}

fn by_queue() -> Settings {
    let detect = Detect::Queue { above: Some(Bytes(50_000)), until: Some(Bytes(10_000)) };
    Settings { rate: Some(BitRate::from_gbps(10)), detect, ..Settings::default() }
}

/// Interval `i` of 100 us.
fn of(i: u64) -> Interval {
    Interval { start: Time::from_ps(i * STEP), end: Time::from_ps((i + 1) * STEP), ..Interval::default() }
}

fn sent(i: u64, percent: u64) -> Interval {
    Interval { sent: Some(LINE * percent / 100), ..of(i) }
}

fn bursts(settings: &Settings, buffer: Option<Bytes>, intervals: impl IntoIterator<Item = Interval>) -> Vec<CounterBurst> {
    let mut port = CounterPort::new(settings, buffer);
    let mut found = Vec::new();
    intervals.into_iter().for_each(|interval| port.push(&interval, &mut |burst| found.push(burst)));
    port.finish(&mut |burst| found.push(burst));
    found
}

fn report(settings: &Settings, readings: impl IntoIterator<Item = Reading>) -> (PortReport, Vec<&'static str>) {
    let mut report = CounterReport::new(settings, Some(Bytes(400_000)), "p", unknown_flows());
    readings.into_iter().for_each(|reading| report.take(&reading));
    let (report, findings) = report.finish();
    (report, findings.into_iter().map(|finding| finding.code).collect())
}

fn span(burst: &CounterBurst) -> (u64, u64) {
    (burst.start.ps() / STEP, burst.end.ps() / STEP)
}

#[test]
fn intervals_above_the_share_in_a_row_are_a_burst() {
    let loads = [10, 90, 100, 60, 20, 0, 0, 70, 10];
    let found = bursts(&by_rate(), None, loads.iter().enumerate().map(|(i, load)| sent(i as u64, *load)));
    assert_eq!(found.iter().map(span).collect::<Vec<_>>(), [(1, 4), (7, 8)]);
    let first = &found[0];
    assert_eq!((first.intervals, first.within, first.sent), (3, STEP, Some(LINE * 250 / 100)));
    assert!(first.shown.rate && !first.shown.drops && !first.cut && !first.open && first.queue.is_none());
    let busiest = first.busiest_bps.unwrap();
    assert!((9.99e9..=10.01e9).contains(&busiest), "{busiest}");
}

#[test]
fn bursts_closer_than_the_merge_are_one() {
    let loads = [0, 90, 10, 90, 10, 10, 10, 90, 10];
    let settings = Settings { merge: Span::from_us(150), ..by_rate() };
    let found = bursts(&settings, None, loads.iter().enumerate().map(|(i, load)| sent(i as u64, *load)));
    assert_eq!(found.iter().map(span).collect::<Vec<_>>(), [(1, 4), (7, 8)]);
}

#[test]
fn unknown_time_ends_a_burst_at_no_known_time_and_is_no_zero() {
    let unknown = |i: u64, state| Interval { state, ..sent(i, 100) };
    let intervals = [sent(0, 10), sent(1, 90), unknown(2, State::Gap), sent(3, 90), sent(4, 10), unknown(5, State::Reset)];
    let found = bursts(&by_rate(), None, intervals);
    assert_eq!(
        found.iter().map(|b| (span(b), b.cut, b.open)).collect::<Vec<_>>(),
        [((1, 2), false, true), ((3, 4), true, false)]
    );
    // Known before and behind, a repetition between them changes nothing.
    let again = Interval::unknown(Time::from_ps(2 * STEP), Time::from_ps(2 * STEP), State::Repeated);
    let found = bursts(&by_rate(), None, [sent(0, 10), sent(1, 90), again, sent(2, 90), sent(3, 10)]);
    assert_eq!(found.iter().map(span).collect::<Vec<_>>(), [(1, 3)]);
    // The first interval may have been preceded by anything, the last one be followed.
    let found = bursts(&by_rate(), None, [sent(0, 90)]);
    assert!(found.len() == 1 && found[0].cut && found[0].open);
}

#[test]
fn looks_that_say_the_same_again_are_a_finding() {
    let again = Interval::unknown(Time::from_ps(2 * STEP), Time::from_ps(2 * STEP), State::Repeated);
    let (report, findings) = report(&by_rate(), [sent(0, 10), sent(1, 10), again, sent(2, 10)].map(Reading::Interval));
    assert_eq!((findings, report.counted.unwrap().known_ps), (vec!["repeated_looks"], 3 * STEP));
}

#[test]
fn drops_are_a_lower_bound_where_counts_began_anew() {
    let reset = Interval { state: State::Reset, dropped: Some(7), dropped_at_least: true, ..of(1) };
    let dropped = |i| Interval { dropped: Some(0), ..sent(i, 10) };
    let (told, _) = report(&by_rate(), [dropped(0), reset, dropped(2)].map(Reading::Interval));
    assert!(told.dropped == Some(7) && told.dropped_at_least);
    let words = told.nothing.unwrap().words;
    assert!(words.starts_with("whether there was a burst is unknown: at least 7 packets were dropped"), "{words}");
    let (told, _) = report(&by_rate(), [dropped(0), dropped(1)].map(Reading::Interval));
    assert!(told.dropped == Some(0) && !told.dropped_at_least);
}

#[test]
fn what_is_absent_is_unknown() {
    let (report, _) = report(&by_rate(), [sent(0, 10), of(1), sent(2, 10)].map(Reading::Interval));
    let counted = report.counted.unwrap();
    assert_eq!(counted.known_ps, 2 * STEP);
    assert_eq!(counted.unknown.iter().map(|u| (u.state, u.intervals, u.ps)).collect::<Vec<_>>(), [("gap", 1, STEP)]);
    assert!(report
        .notes
        .iter()
        .any(|note| note == "100 us of 300 us are unknown, neither bursts nor zeros: gap 100 us (1 interval)"));
    assert_eq!((report.dropped, report.marked, report.peak_bytes), (None, None, None));
}

#[test]
fn what_arrived_and_cannot_have_left_waits() {
    let arrived = |i, bytes| Interval { arrived: Some(bytes), ..of(i) };
    // 100 KB more than the line carries, then half of the line, then nothing.
    let intervals =
        [arrived(0, 10_000), arrived(1, LINE + 60_000), arrived(2, LINE + 40_000), arrived(3, LINE / 2), arrived(4, 0)];
    let found = bursts(&by_queue(), None, intervals);
    assert_eq!(found.iter().map(span).collect::<Vec<_>>(), [(1, 4)]);
    assert_eq!((found[0].queue, found[0].at_least), (Some(100_000 - 1_518), true));
    assert!(found[0].shown.queue && !found[0].shown.rate);
    // What is unknown between them bounds nothing.
    let gap = Interval { state: State::Gap, ..arrived(2, LINE + 40_000) };
    let found = bursts(&by_queue(), None, [intervals[0], intervals[1], gap, arrived(3, LINE + 60_000), arrived(4, 0)]);
    assert_eq!(found.iter().map(|b| b.queue).collect::<Vec<_>>(), [Some(60_000 - 1_518); 2]);
}

#[test]
fn a_watermark_is_the_largest_queue_and_lies_within_its_interval() {
    let intervals = [0, 3_000, 80_000, 20_000, 2_000].iter().enumerate();
    let intervals = intervals.map(|(i, watermark)| Interval { watermark: Some(*watermark), ..of(i as u64) });
    let found = bursts(&by_queue(), None, intervals.clone());
    assert_eq!(found.iter().map(|b| (span(b), b.queue, b.at_least)).collect::<Vec<_>>(), [((2, 4), Some(80_000), false)]);
    let (report, findings) = report(&by_queue(), intervals.map(Reading::Interval));
    assert!(findings.is_empty());
    assert_eq!((report.peak_bytes, report.peak_ps), (Some(80_000), Some(3 * STEP)));
    let counted = report.bursts[0].counted.clone().unwrap();
    assert_eq!((counted.peak_at_least, counted.within_ps, counted.shown_by), (false, STEP, vec!["queue"]));
}

#[test]
fn drops_are_a_burst_whatever_the_mean_load() {
    let drops = Interval { dropped: Some(7), marked: Some(3), ..sent(1, 12) };
    let none = |i| Interval { dropped: Some(0), marked: Some(0), ..sent(i, 5) };
    let found = bursts(&by_rate(), None, [none(0), drops, none(2)]);
    assert_eq!(found.iter().map(|b| (span(b), b.dropped, b.marked)).collect::<Vec<_>>(), [((1, 2), Some(7), Some(3))]);
    assert!(found[0].shown.drops && !found[0].shown.rate);
}

#[test]
fn contradictions_are_findings_and_never_bursts() {
    // 500 Gb/s on a port of 10, a queue longer than the buffer, drops without a queue, a queue above its own watermark.
    let above = sent(1, 5_000);
    let long = Interval { watermark: Some(900_000), ..sent(3, 10) };
    let dry = Interval { watermark: Some(0), dropped: Some(4), ..sent(5, 10) };
    let odd = Interval { watermark: Some(5), queue: Some(90_000), ..sent(7, 10) };
    let all = [sent(0, 10), above, sent(2, 10), long, sent(4, 10), dry, sent(6, 10), odd, sent(8, 10)];
    let (report, findings) = report(&by_rate(), all.map(Reading::Interval));
    assert_eq!(report.bursts_found, 0);
    assert_eq!(findings, ["counters_above_line", "queue_above_buffer", "queue_above_watermark", "drops_without_queue"]);
    let counted = report.counted.unwrap();
    assert_eq!(counted.unknown.iter().map(|u| (u.state, u.intervals)).collect::<Vec<_>>(), [("contradicting", 4)]);
    assert_eq!(counted.known_ps, 5 * STEP);
}

#[test]
fn the_finding_says_how_fast_the_line_would_have_been() {
    let mut report = CounterReport::new(&by_rate(), None, "Ethernet7", unknown_flows());
    [sent(0, 10), sent(1, 5_000)].iter().for_each(|interval| report.take(&Reading::Interval(*interval)));
    let (_, findings) = report.finish();
    assert_eq!(
        findings[0].words,
        "1 interval above what the line carries: 6.25 MB within 100 us at 100 us, 500 Gb/s on a port of 10 Gb/s"
    );
    assert_eq!((findings[0].place.as_str(), findings[0].count, findings[0].bytes), ("Ethernet7", 1, Some(6_250_000)));
}

#[test]
fn counters_that_stand_still_and_then_jump_are_a_mean_over_that_time() {
    // Renewed each 400 us, asked each 100: 30 % of the line in the mean, and 120 % of an interval.
    let stale = |i: u64| sent(i, if i % 4 == 3 { 120 } else { 0 });
    let (steady, findings) = report(&by_rate(), (0..20).map(stale).map(Reading::Interval));
    assert_eq!((steady.bursts_found, findings), (0, vec!["stale_counters"]));
    assert_eq!(steady.counted.unwrap().unknown, []);
    // 60 % in the mean is a burst, of all of the time.
    let found = bursts(&by_rate(), None, (0..8).map(|i| sent(i, if i % 4 == 3 { 240 } else { 0 })));
    assert_eq!(found.iter().map(span).collect::<Vec<_>>(), [(0, 8)]);
    // Bursts between times of silence stay as they are.
    let found = bursts(&by_rate(), None, (0..8).map(|i| sent(i, if i % 4 == 3 { 100 } else { 0 })));
    assert_eq!(found.iter().map(span).collect::<Vec<_>>(), [(3, 4), (7, 8)]);
}

#[test]
fn a_steady_load_is_no_burst_and_one_on_top_of_it_is() {
    let load = |i: u64| match i {
        0..10 => 5,
        10..12 => 90,
        150..153 => 97,
        _ => 60 + i % 3,
    };
    let (report, _) = report(&by_rate(), (0..300).map(|i| Reading::Interval(sent(i, load(i)))));
    let found: Vec<_> = report.bursts.iter().map(|b| (b.start_ps / STEP, b.end_ps / STEP)).collect();
    assert_eq!(found, [(10, 12), (150, 153)]);
    let steady = report.steady.unwrap();
    assert!((0.59..=0.63).contains(&steady.share) && steady.ps >= 150 * STEP, "{steady:?}");
}

#[test]
fn flows_of_a_burst_are_those_of_its_intervals() {
    let flow = |i: u64, flow, bytes| Reading::Flow { time: Time::from_ps(i * STEP + 1), flow, bytes };
    let readings = [
        flow(0, 9, 1_000_000),
        Reading::Interval(sent(0, 10)),
        flow(1, 1, 300),
        Reading::Interval(sent(1, 90)),
        flow(2, 2, 600),
        flow(2, 1, 100),
        Reading::Interval(sent(2, 90)),
        flow(3, 9, 1_000_000),
        Reading::Interval(sent(3, 10)),
    ];
    let (report, _) = report(&by_rate(), readings);
    let burst = &report.bursts[0];
    let culprits: Vec<_> = burst.indirect.iter().map(|c| (c.flow, c.bytes, c.share)).collect();
    assert_eq!(culprits, [(2, 600, 0.6), (1, 400, 0.4)]);
    assert_eq!((burst.flows, burst.indirect_unattributed_bytes, burst.direct.len()), (2, 0, 0));
}

#[test]
fn the_speed_that_a_switch_tells_is_that_of_the_port_unless_another_was_given() {
    let told = Reading::Speed(BitRate::from_gbps(100));
    let all = || [told, Reading::Interval(sent(0, 90)), Reading::Interval(sent(1, 10))];
    let (port, findings) = report(&by_rate(), all());
    assert_eq!((port.rate_bps, port.bursts_found, findings), (Some(10_000_000_000), 1, vec!["speed_contradicts"]));
    let (port, findings) = report(&Settings { rate_of_result: true, ..by_rate() }, all());
    assert_eq!((port.rate_bps, port.bursts_found, findings), (Some(100_000_000_000), 0, vec![]));
}

#[test]
fn a_port_takes_half_a_kilobyte() {
    assert!((300..=1_024).contains(&std::mem::size_of::<CounterPort>()), "{}", std::mem::size_of::<CounterPort>());
    assert!((150..=512).contains(&std::mem::size_of::<super::Series>()), "{}", std::mem::size_of::<super::Series>());
}

#[test]
fn flows_of_more_bytes_than_a_number_holds_have_shares_up_to_one() {
    let flow = |flow| Reading::Flow { time: Time::ZERO, flow, bytes: u64::MAX };
    let readings = [flow(1), flow(2), Reading::Interval(sent(0, 90))];
    let burst = report(&by_rate(), readings).0.bursts.remove(0);
    assert_eq!(burst.indirect.iter().map(|culprit| (culprit.flow, culprit.share)).collect::<Vec<_>>(), [(1, 1.0), (2, 1.0)]);
}

#[test]
fn what_lies_before_what_was_told_changes_no_burst() {
    let high = |i| Interval { queue: Some(60_000), ..of(i) };
    let back =
        Interval { start: Time::from_ps(9 * STEP), end: Time::from_ps(8 * STEP), queue: Some(90_000), ..Interval::default() };
    let readings = [high(5), high(6), high(1), back, high(7)].map(Reading::Interval);
    let (told, _) = report(&by_queue(), readings);
    assert_eq!((told.bursts_found, told.peak_bytes, told.records), (1, Some(60_000), 5));
    assert_eq!((told.bursts[0].start_ps, told.bursts[0].end_ps), (5 * STEP, 8 * STEP));
    let unknown = &told.counted.unwrap().unknown;
    assert_eq!((unknown[0].state, unknown[0].intervals, unknown[0].ps), ("contradicting", 2, 0));
}

#[test]
fn drops_behind_a_clock_that_leapt_ahead_are_counted_and_doubted() {
    let drops = |i| Interval { start: of(i).end, dropped: Some(1), ..of(i) };
    let readings = [sent(0, 10), Interval::unknown(of(0).end, of(900_000).end, State::Gap), drops(3), drops(4)];
    let (told, findings) = report(&by_rate(), readings.map(Reading::Interval));
    assert_eq!((told.dropped, told.bursts_found, findings), (Some(2), 0, vec!["clock_back"]));
    let words = told.nothing.unwrap().words;
    assert!(words.starts_with("whether there was a burst is unknown: 2 packets were dropped"), "{words}");
}

#[test]
fn drops_are_a_lower_bound_where_a_clock_was_set_back_for_good() {
    let dropped = |i, dropped| Reading::Interval(Interval { dropped: Some(dropped), ..sent(i, 10) });
    let passed = |i| Reading::Interval(Interval::unknown(of(i).end, of(i).end, State::Contradicting));
    for (last, bound) in [(passed(3), (Some(7), true)), (dropped(7, 2), (Some(9), false))] {
        let (told, findings) = report(&by_rate(), [dropped(5, 7), dropped(6, 0), passed(2), last]);
        assert_eq!(((told.dropped, told.dropped_at_least), findings), (bound, vec!["clock_back"]));
    }
}

#[test]
fn drops_are_a_burst_also_where_the_length_of_the_queue_is_refuted() {
    let zero = |i: u64| Interval { start: of(i).end, queue: Some(0), ..of(i) };
    let dropped = |i: u64, dropped| Interval { queue: Some(900_000), dropped: Some(dropped), ..of(i) };
    let readings = [zero(0), dropped(1, 0), dropped(2, 39), zero(3)];
    let (told, findings) = report(&by_queue(), readings.map(Reading::Interval));
    assert_eq!((told.bursts_found, told.dropped, findings), (1, Some(39), vec!["queue_above_buffer"]));
    assert_eq!((told.bursts[0].dropped_packets, told.bursts[0].peak_bytes), (Some(39), None));
    // Without them nothing is known, and a lower bound of nothing is no length.
    let (told, _) = report(&by_queue(), [zero(0), dropped(1, 0), zero(3)].map(Reading::Interval));
    assert_eq!((told.bursts_found, told.peak_bytes, told.unknown_ps), (0, None, STEP));
}

#[test]
fn time_without_looks_at_a_queue_is_unknown_and_no_burst() {
    let look =
        |ps: u64| Interval { start: Time::from_ps(ps), end: Time::from_ps(ps), queue: Some(60_000), ..Interval::default() };
    let readings = (0..40).map(|i| Reading::Interval(look(i * 1_000 + if i < 20 { 0 } else { 86_400 * STEP })));
    let (told, _) = report(&by_queue(), readings);
    assert_eq!(told.bursts.iter().map(|b| (b.duration_ps, b.open, b.cut)).collect::<Vec<_>>(), [(19_000, true, true); 2]);
    assert_eq!((told.unknown_ps, told.burst_ps), (86_400 * STEP + 1_000, 38_000));
}
