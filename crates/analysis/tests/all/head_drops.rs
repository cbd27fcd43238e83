//! Ports that drop packets at the head of their queue (CoDel, front drop): these stood in it, and took no time on the wire.

use crate::common::{analyse, simulate};
use crate::trimmed::{agrees, replay};
use fanin_analysis::{Detect, RateFrom, Record, Settings, AT_HEAD, DROPPED};
use fanin_units::{BitRate, Bytes, Stream};

/// Senders to one receiver over a port that drops at the head, and may be full at the tail as well; anything drawn.
fn scenario(random: &mut Stream) -> (String, BitRate) {
    let gbps = [1, 10][random.below(2) as usize];
    let limit = 8_000 + 1_000 * random.below(60);
    let policy = match random.below(3) {
        0 => format!(r#"{{ kind = "front_drop", limit = "{limit}B" }}"#),
        1 => format!(r#"{{ kind = "front_drop", limit = "{} packets" }}"#, limit / 1_500),
        _ => format!(
            r#"{{ kind = "codel", target = "{}us", interval = "{}us", ecn = {} }}"#,
            13 + random.below(60) * 10 / gbps,
            200 + random.below(600),
            random.below(2) == 0
        ),
    };
    let (senders, seed) = (4 + random.below(28), 1 + random.below(1000));
    let (size, window) = (40 + random.below(400), 2 + random.below(12));
    let buffer = limit + random.below(80_000);
    let text = format!(
        r#"
        seed = {seed}
        duration = "30ms"
        [topology]
        kind = "single_switch"
        hosts = {}
        link = {{ rate = "{gbps}Gbps", delay = "2us" }}
        [switch]
        buffer = {{ kind = "static", per_port = "{buffer}B" }}
        marking = {policy}
        [transport]
        kind = "tcp"
        initial_window = {window}
        handshake = {}
        rto_min = "1ms"
        rto_initial = "2ms"
        clock_granularity = "100us"
        [[traffic]]
        kind = "incast"
        receiver = "h0"
        senders = ["all"]
        size = "{size}KB"
        jitter = "20us"
        repetitions = 2
        gap = "2ms"
        [telemetry]
        sample = "off"
        queues = ["switch0->h0"]
        "#,
        senders + 1,
        random.below(2) == 0
    );
    (text, BitRate::from_gbps(gbps))
}

/// In random runs the queue that rows rebuild is the switch's own, byte by byte, culprits are who stood in it, and the port's speed is
/// estimated from what it sent. Taken for refused, as they once were, the drops leave bytes that no row explains.
#[test]
fn the_queue_is_that_of_the_switch() {
    let mut random = Stream::new(7, fanin_units::Purpose::Transport, 1);
    let (mut at_head, mut at_tail, mut bursts, mut estimates) = (0, 0, 0, 0);
    for round in 0..20 {
        let (text, rate) = scenario(&mut random);
        let trace = simulate(&text, "switch0->h0");
        let records = &trace.records;
        let heads = records.iter().filter(|r| r.dropped_at_head()).count();
        at_head += heads;
        at_tail += records.iter().filter(|r| r.dropped() && !r.dropped_at_head()).count();
        let model = replay(records); // asserts that rows account for every byte
        let detect = Detect::Queue { above: Some(Bytes(12_000)), until: Some(Bytes(10_000)) };
        let known = Settings { rate: Some(rate), rate_of_result: true, detect, top: 1000, ..Settings::default() };
        let report = analyse(&known, records, &trace.flows);
        assert_eq!((report.jumps, report.missing_bytes, report.duplicates), (0, 0, 0), "{round}: {text}");
        assert_eq!(report.dropped, Some(records.iter().filter(|r| r.loses()).count() as u64));
        assert!(agrees(&report, records, &model), "{round}: {text}");
        bursts += report.bursts.len();
        let unknown = analyse(&Settings { rate: None, rate_of_result: false, ..known.clone() }, records, &trace.flows);
        if let (RateFrom::Estimated, Some(found)) = (unknown.rate_from, unknown.rate_bps) {
            let off = found as f64 / rate.bps() as f64;
            assert!((0.97..1.03).contains(&off), "{round}: {off} {text}");
            estimates += 1;
        }
        let refused: Vec<Record> = records.iter().map(|r| Record { flags: r.flags & !AT_HEAD, ..*r }).collect();
        let wrong = analyse(&known, &refused, &trace.flows);
        assert!(heads < 20 || wrong.jumps > 0, "{round}: {heads} drops at the head and nothing missing");
        assert!(records.iter().all(|r| !r.dropped_at_head() || r.flags & DROPPED != 0));
    }
    println!("{at_head} dropped at the head, {at_tail} refused, {bursts} bursts, {estimates} estimates of the rate");
    assert!(at_head > 1_000 && at_tail > 100 && bursts > 20 && estimates > 10);
}
