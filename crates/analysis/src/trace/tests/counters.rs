//! Tables of counters: columns in, intervals out.

use super::{failure, readings, Folder};
use crate::counters::{Interval, Reading, State};
use crate::trace::{analyze, Control, Level, Observer, Options, Progress, TraceReport};
use fanin_units::BitRate;
use std::path::Path;

struct Never;

impl Observer for Never {
    fn progress(&mut self, _: Progress) -> Control {
        Control::Continue
    }
}

/// Report of a table, with options in JSON.
pub fn report(path: &Path, options: &str) -> Result<TraceReport, String> {
    let options = options.replacen('{', &format!("{{\"paths\": [{:?}],", path.to_str().unwrap()), 1);
    analyze(&Options::from_json(&options).unwrap(), &mut Never).map_err(|failure| failure.to_string())
}

fn intervals(path: &Path, columns: Option<&str>) -> Vec<(String, Interval)> {
    let of = |(port, reading)| match reading {
        Reading::Interval(interval) => Some((port, interval)),
        _ => None,
    };
    readings(path, columns).unwrap().0.into_iter().filter_map(of).collect()
}

const POLLS: &str = "time_s,ifName,ifHCOutOctets,ifOutDiscards
0,Ethernet1,1000,0
0,Ethernet2,77,5
10,Ethernet1,51000,0
10,Ethernet2,77,5
20,Ethernet1,51000,3
20,Ethernet2,60,5
";

#[test]
fn running_counts_are_intervals_of_each_port_and_their_names_are_known() {
    let folder = Folder::new();
    let found = intervals(&folder.file("polls.csv", POLLS), None);
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.end.as_secs_f64(), i.sent, i.dropped, i.state)).collect();
    assert_eq!(
        told,
        [
            ("Ethernet1", 10.0, Some(50_000), Some(0), State::Known),
            ("Ethernet2", 10.0, Some(0), Some(0), State::Known),
            ("Ethernet1", 20.0, Some(0), Some(3), State::Known),
            ("Ethernet2", 20.0, None, Some(0), State::Reset),
        ]
    );
    let (_, notes) = readings(&folder.file("polls.csv", POLLS), None).unwrap();
    assert!(
        notes[0]
            .contains("bytes = 'ifHCOutOctets' [running count of 64 bits], drops = 'ifOutDiscards' [running count of 32 bits]"),
        "{notes:?}"
    );
}

#[test]
fn counts_of_intervals_have_a_length_or_follow_one_another() {
    let folder = Folder::new();
    let rows = "us,b,most\n100,5,9\n200,7,8\n400,1,1\n";
    let path = folder.file("since.csv", rows);
    let columns = "time=us:us,bytes=b:since,watermark=most:segments(100B)";
    let found = intervals(&path, Some(columns));
    let told = |i: &Interval| (i.start.ps() / 1_000_000, i.end.ps() / 1_000_000, i.sent, i.watermark);
    assert_eq!(
        found.iter().map(|(_, i)| told(i)).collect::<Vec<_>>(),
        [(100, 200, Some(7), Some(800)), (200, 400, Some(1), Some(100))]
    );
    let path = folder.file("length.csv", "us,b,most,len\n100,5,9,100\n200,7,8,100\n400,1,1,100\n");
    let found = intervals(&path, Some(&format!("{columns},interval=len:us")));
    assert_eq!(
        found.iter().map(|(_, i)| (told(i), i.state)).collect::<Vec<_>>(),
        [
            ((0, 100, Some(5), Some(900)), State::Known),
            ((100, 200, Some(7), Some(800)), State::Known),
            ((200, 300, None, None), State::Gap),
            ((300, 400, Some(1), Some(100)), State::Known)
        ]
    );
}

#[test]
fn json_lines_have_counters_too_and_an_empty_value_is_unknown() {
    let folder = Folder::new();
    let lines = "{\"ts\":1,\"q\":{\"max\":3000},\"out\":\"18446744073709551615\"}\n{\"ts\":2,\"q\":{\"max\":null},\"out\":9}\n{\"ts\":3,\"q\":{\"max\":5},\"out\":10}\n";
    let found = intervals(&folder.file("a.jsonl", lines), Some("time=ts:ms,watermark=q.max:B,bytes=out:total(64)"));
    let told: Vec<_> = found.iter().map(|(_, i)| (i.sent, i.watermark, i.state)).collect();
    assert_eq!(told, [(Some(10), None, State::Known), (Some(1), Some(5), State::Known)]);
}

#[test]
fn units_are_asked_for_and_never_guessed() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "time_s,octets,depth\n0,1,2\n1,2,3\n");
    for (columns, said) in [
        ("time=time_s,bytes=octets", "bytes: 'octets' has no unit, and its name does not say it: a running count or a count of the interval; accepted: total, total(32), total(64) (a running count of bytes), since"),
        ("time=time_s,watermark=depth", "watermark: 'depth' has no unit"),
        ("time=time_s,bytes=octets:total,interval=depth", "interval: 'depth' has no unit"),
    ] {
        let text = failure(&path, Some(columns));
        assert!(text.contains(said) && text.contains("write "), "{text}");
    }
    let problems = crate::formats::Mapping::read("time=t:s,watermark=w:segments,bytes=b:cells(5),drops=d:flag").unwrap_err();
    let text = super::message(&problems);
    assert!(text.contains("watermark: 'segments' is no unit of it") && text.contains("for example segments(512B)"), "{text}");
    assert!(text.contains("bytes: 'cells(5)' is no unit of it") && text.contains("drops: 'flag' is no unit of it"), "{text}");
}

#[test]
fn wrong_values_are_told_with_their_lines() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "time_s,tx_bytes,len_ms\n0,-1,5\n1,x,5\n2,5,0\n3,99999999999999999999,90000000\n");
    let text = failure(&path, Some("time=time_s,bytes=tx_bytes,interval=len_ms"));
    for part in [
        "line 2: tx_bytes: '-1' is negative; accepted: a whole number from 0 to 2^64 - 1",
        "line 3: tx_bytes: 'x' is not a number",
        "line 4: len_ms: '0' is negative; accepted: a length of time, above 0 and up to a day",
        "line 5: tx_bytes: '99999999999999999999' is too large",
        "line 5: len_ms: '90000000' is too large",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
}

#[test]
fn columns_beside_queues_of_packets_are_left_as_they_were() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "time_us,queue_bytes,tx_bytes\n1,5,100\n2,6,200\n");
    let (records, _, notes) = super::all(&path, None).unwrap();
    assert_eq!(records.iter().map(|r| r.queue).collect::<Vec<_>>(), [5, 6]);
    assert!(notes[0].contains("not used: tx_bytes"), "{notes:?}");
}

#[test]
fn the_report_tells_bursts_by_rate_and_what_is_unknown() {
    // 10 ms each at 1 Gb/s: 1.25 MB is the line. Two intervals above half of it, one above the line, one missing.
    let loads = [10, 20, 90, 80, 10, 900, 10, 10];
    let mut total = 0_u64;
    let mut rows = String::from("time_ms,port,tx_bytes\n0,swp1,0\n");
    for (i, load) in loads.iter().enumerate() {
        total += 12_500 * load;
        rows.push_str(&format!("{},swp1,{total}\n", (i + 1) * 10));
    }
    rows.push_str(&format!("200,swp1,{}\n", total + 125_000));
    let folder = Folder::new();
    let path = folder.file("polls.csv", &rows);
    let told = report(&path, r#"{"rate": "1Gbps"}"#).unwrap();
    let port = &told.ports[0];
    assert_eq!((port.port.as_str(), port.bursts_found, port.dropped, port.peak_bytes), ("swp1", 1, None, None));
    let burst = &port.bursts[0];
    let ms = 1_000_000_000;
    assert_eq!((burst.start_ps, burst.end_ps, burst.records), (20 * ms, 40 * ms, 2));
    let counted = burst.counted.as_ref().unwrap();
    assert_eq!(
        (counted.within_ps, counted.sent_bytes, counted.shown_by.as_slice()),
        (10 * ms, Some(12_500 * 170), &["rate"][..])
    );
    let unknown: Vec<_> = port.counted.as_ref().unwrap().unknown.iter().map(|u| (u.state, u.ps / ms)).collect();
    assert_eq!(unknown, [("gap", 120), ("contradicting", 10)]);
    let finding = &told.plausibility.findings[0];
    assert_eq!((finding.code, finding.level, finding.place.as_str()), ("counters_above_line", Level::Doubt, "swp1"));
    assert!(finding.words.contains("9 Gb/s on a port of 1 Gb/s"), "{}", finding.words);
    assert!(
        told.notes.iter().any(|note| note.contains("drops and marks are unknown: no counter of them is in what was read")),
        "{:?}",
        told.notes
    );
    assert_eq!(told.sources[0].records, Some(9));
    // Without a speed there is nothing that a load could be compared with.
    let asked = report(&path, "{\"sort\": false}").unwrap_err();
    assert!(asked.contains("the speed of the port is not known") && asked.contains("--rate 10Gbps"), "{asked}");
}

#[test]
fn a_table_may_say_the_speed_of_each_port() {
    let folder = Folder::new();
    let rows = "time_ms,port,tx_bytes,mbps\n0,a,0,1000\n0,b,0,10000\n10,a,1000000,1000\n10,b,1000000,10000\n";
    let path = folder.file("speeds.csv", rows);
    let columns = "time=time_ms,port=port,bytes=tx_bytes,speed=mbps:Mbps";
    let (told, _) = readings(&path, Some(columns)).unwrap();
    assert_eq!(told.iter().filter(|(_, r)| matches!(r, Reading::Speed(rate) if *rate == BitRate::from_gbps(1))).count(), 1);
    let told = report(&path, &format!(r#"{{"columns": "{columns}", "by": "rate", "share": 0.5}}"#));
    let told = told.unwrap();
    let found: Vec<_> = told.ports.iter().map(|p| (p.port.as_str(), p.rate_bps, p.bursts_found)).collect();
    assert_eq!(found, [("a", Some(1_000_000_000), 1), ("b", Some(10_000_000_000), 0)]);
}

fn example(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

/// Largest queues of the four bursts of the port that `examples/switch_feeds.py` simulates, and their drops.
const TRUTH: [(u64, u64); 4] = [(82_250, 0), (165_528, 0), (263_626, 0), (399_630, 39)];

#[test]
fn what_is_told_of_a_known_port_is_true() {
    let columns = "time=time_ms:ms,port=ifName,bytes=tx_bytes:total,drops=tx_dropped:total,watermark=watermark_bytes:B";
    let told =
        report(&example("counters.csv"), &format!(r#"{{"rate": "10Gbps", "above": "50KB", "columns": "{columns}"}}"#)).unwrap();
    let of = |told: &TraceReport| {
        let bursts = told.ports[0].bursts.iter();
        bursts.map(|b| (b.peak_bytes.unwrap(), b.dropped_packets.unwrap(), b.start_ps / 10_000_000_000)).collect::<Vec<_>>()
    };
    // A burst each 10 ms, the largest queue exact.
    let expected: Vec<_> = TRUTH.iter().zip(0..).map(|((peak, drops), place)| (*peak, *drops, place)).collect();
    assert_eq!(of(&told), expected);
    // LANZ counts segments of 480 B, rounded up, and tells nothing of the burst below its threshold.
    let lanz = r#"{"rate": "10Gbps", "above": "120KB", "columns": "queue=Queue-Length:segments(480B)"}"#;
    let told = of(&report(&example("lanz.csv"), lanz).unwrap());
    assert_eq!(told.len(), 3);
    for ((peak, drops, _), (true_peak, true_drops)) in told.iter().zip(&TRUTH[1..]) {
        assert!((*true_peak..true_peak + 480).contains(peak) && drops == true_drops, "{peak} {drops}");
    }
    // sFlow tells each drop, and that was all.
    let told = report(&example("sflow.pcap"), r#"{"share": 0.05}"#).unwrap();
    let port = &told.ports[0];
    assert_eq!((port.port.as_str(), port.rate_bps, port.dropped), ("10.7.0.1 if 25", Some(10_000_000_000), Some(39)));
    let dropping = port.bursts.iter().filter(|b| b.dropped_packets > Some(0));
    assert!(dropping.clone().count() >= 1 && dropping.flat_map(|b| &b.indirect).any(|c| c.name.ends_with("> 10.7.0.25:80 tcp")));
}

#[test]
fn a_restart_and_lost_polls_are_unknown_minutes() {
    let columns = "time=time,port=ifName,bytes=ifHCOutOctets:total(64),drops=ifOutDiscards:total(32),speed=ifHighSpeed:Mbps";
    let told = report(&example("minutes.csv"), &format!(r#"{{"by": "rate", "columns": "{columns}"}}"#)).unwrap();
    let counted = told.ports[0].counted.as_ref().unwrap();
    let minute = 60_000_000_000_000;
    let unknown: Vec<_> = counted.unknown.iter().map(|u| (u.state, u.intervals, u.ps / minute)).collect();
    assert_eq!((unknown, counted.known_ps / minute), (vec![("gap", 1, 6), ("reset", 1, 1)], 112));
    let signs: Vec<&str> = told.ports[0].bursts.iter().flat_map(|b| b.counted.as_ref().unwrap().shown_by.clone()).collect();
    assert!(signs.contains(&"drops") && signs.contains(&"rate"), "{signs:?}");
}

#[test]
fn a_port_of_which_all_time_is_unknown_says_so_instead_of_no_burst() {
    let folder = Folder::new();
    // Ten times the line in each interval.
    let rows: String = (0..5).map(|i| format!("{},swp1,{}\n", i * 10, i * 12_500_000)).collect();
    let path = folder.file("a.csv", format!("time_ms,port,tx_bytes\n{rows}"));
    let port = report(&path, r#"{"rate": "1Gbps"}"#).unwrap().ports.remove(0);
    assert_eq!((port.bursts_found, port.counted.as_ref().unwrap().known_ps), (0, 0));
    assert_eq!(port.nothing.unwrap().words, "whether there was a burst is unknown: all of its time is (contradicting)");
}

#[test]
fn drops_stand_with_what_makes_a_burst_where_they_are_counted() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "time_s,tx_bytes,tx_dropped\n0,0,0\n1,9,4\n2,18,4\n");
    let told = report(&path, r#"{"rate": "1Gbps", "by": "rate"}"#).unwrap();
    let words = serde_json::to_value(&told.ports[0].detect).unwrap()["words"].to_string();
    assert_eq!((told.ports[0].bursts_found, words.as_str()), (1, "\"an interval with more than 50 % of 1 Gb/s, or with drops\""));
    let path = folder.file("b.csv", "time_s,tx_bytes\n0,0\n1,9\n2,18\n");
    let told = report(&path, r#"{"rate": "1Gbps", "by": "rate"}"#).unwrap();
    let words = serde_json::to_value(&told.ports[0].detect).unwrap()["words"].to_string();
    assert_eq!(words, "\"an interval with more than 50 % of 1 Gb/s\"");
}

#[test]
fn a_time_or_a_size_in_another_unit_than_its_name_says_raises_a_doubt() {
    let folder = Folder::new();
    let doubts = |name: &str, text: &str, columns: &str| {
        let path = folder.file(name, text);
        let told = report(&path, &format!(r#"{{"rate": "1Gbps", "by": "rate", "columns": "{columns}"}}"#)).unwrap();
        let found = told.plausibility.findings.into_iter().filter(|f| f.level == Level::Doubt);
        found.map(|f| (f.code, format!("{}; {}", f.words, f.hint))).collect::<Vec<_>>()
    };
    let text = "time_ms,b\n0,0\n1,9\n2,18\n";
    let found = doubts("a.csv", text, "time=time_ms:s,bytes=b:total");
    let said = "'time_ms' is read as s, and its name says ms; time=time_ms:ms reads it as its name says".to_string();
    assert_eq!(found, [("unit_contradicts_name", said)]);
    assert_eq!(doubts("b.csv", text, "time=time_ms:ms,bytes=b:total"), []);
    assert_eq!(doubts("c.csv", "time_us,max_KB,b\n0,1,1\n1,2,2\n2,3,3\n", "time=time_us,watermark=max_KB:KiB,bytes=b:total"), []);
    let found = doubts("f.csv", "time_s,tx_kbytes\n0,0\n1,9\n2,18\n", "time=time_s,bytes=tx_kbytes:total");
    assert!(found.len() == 1 && found[0].1.starts_with("'tx_kbytes' is read as bytes, and its name says kbytes"), "{found:?}");
    let text = "time_s,tx_bits_total,ifHighSpeed\n0,0,10000\n1,9,10000\n2,18,10000\n";
    let found = doubts("g.csv", text, "time=time_s,bytes=tx_bits_total:total,speed=ifHighSpeed:Gbps");
    let said: Vec<&str> =
        found.iter().filter(|f| f.0 == "unit_contradicts_name").map(|f| f.1.split(';').next().unwrap()).collect();
    assert_eq!(
        said,
        ["'tx_bits_total' is read as bytes, and its name says bits", "'ifHighSpeed' is read as Gbps, and its name says Mbps"]
    );
    assert_eq!(
        doubts("h.csv", "time_s,tx_bytes,speed_mbps\n0,0,1000\n1,9,1000\n", "time=time_s,bytes=tx_bytes:total,speed=speed_mbps"),
        []
    );
    // Microseconds since 1970 that are read as milliseconds.
    let rows: String = (0..3).map(|i| format!("{},{}\n", 1_700_000_000_000_000_u64 + i * 1_000_000, i * 9)).collect();
    let found = doubts("d.csv", &format!("when,b\n{rows}"), "time=when:ms,bytes=b:total");
    let said = "its times begin in the year 55840; in a unit that is 1000 times smaller they are dates of this century: ns, us, ms or s behind the time's column";
    assert_eq!(found, [("time_beyond_dates", said.to_string())]);
    assert_eq!(doubts("e.csv", &format!("when,b\n{rows}"), "time=when:us,bytes=b:total"), []);
}

#[test]
fn the_speed_that_a_table_has_is_found_by_its_name_or_suggested() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "time_s,ifHCOutOctets,ifHighSpeed\n0,0,10000\n60,70000000000,10000\n");
    let told = report(&path, r#"{"by": "rate"}"#).unwrap();
    assert_eq!((told.ports[0].rate_bps, told.ports[0].bursts_found), (Some(10_000_000_000), 1));
    let said = report(&path, r#"{"by": "rate", "columns": "time=time_s,bytes=ifHCOutOctets"}"#).unwrap_err();
    assert!(said.contains("give it, for example --rate 10Gbps, or speed=ifHighSpeed:Mbps in --columns"), "{said}");
    let line = r#"{"time_s": 0, "ifHCOutOctets": 5, "ifHighSpeed": 10000}"#;
    let said =
        report(&folder.file("a.jsonl", line), r#"{"by": "rate", "columns": "time=time_s,bytes=ifHCOutOctets"}"#).unwrap_err();
    assert!(said.contains("speed=ifHighSpeed:Mbps in --columns"), "{said}");
}

#[test]
fn a_queue_that_is_not_seen_for_a_day_is_no_burst_of_a_day() {
    let folder = Folder::new();
    let options = r#"{"rate": "10Gbps", "above": "100KB", "until": "25KB"}"#;
    for (name, head, tail) in [("samples.csv", "", ""), ("packets.csv", ",frame", ",1500")] {
        let queue = |i: u64| if (20..30).contains(&(i % 40)) { 200_000 } else { 0 };
        let time = |i: u64| 10 * i + if i < 25 { 0 } else { 86_400_000_000 };
        let rows: String = (0..40).map(|i| format!("{},{}{tail}\n", time(i), queue(i))).collect();
        let told = report(&folder.file(name, format!("time_us,queue_B{head}\n{rows}")), options).unwrap().ports.remove(0);
        let found: Vec<_> = told.bursts.iter().map(|b| (b.duration_ps / 1_000_000, b.open, b.cut)).collect();
        assert!(found.len() == 2 && (found[0].1, found[0].2, found[1].1, found[1].2) == (true, false, false, true), "{found:?}");
        assert!(found.iter().all(|burst| (40..=300).contains(&burst.0)), "{name}: {found:?}");
        assert_eq!(told.unknown_ps, 86_400_000_010_000_000, "{name}");
        assert!(told.notes.iter().any(|note| note.starts_with("records are missing for 86400 s (1 hole)")), "{:?}", told.notes);
    }
}

#[test]
fn a_count_of_64_bits_that_wraps_at_32_is_told() {
    let folder = Folder::new();
    let of = |name: &str, step: u64| {
        let rows: String = (0..40).map(|i| format!("{i},{},1000\n", (3_000_000_000 + i * step) % (1 << 32))).collect();
        let path = folder.file(name, format!("time_s,ifHCOutOctets,ifHighSpeed\n{rows}"));
        let told =
            report(&path, r#"{"by": "rate", "columns": "time=time_s,bytes=ifHCOutOctets:total(64),speed=ifHighSpeed:Mbps"}"#);
        let told = told.unwrap();
        let found = |code: &str| {
            let finding = told.plausibility.findings.iter().find(|finding| finding.code == code);
            finding.map(|finding| (finding.level, finding.count, finding.words.clone()))
        };
        (found("narrow_counter"), found("mixed_sources"), told.ports[0].unknown_ps)
    };
    // 0.8 Gb/s wrap 32 bits each 43 s.
    let words = "1 time a count of 64 bits fell by nearly 2^32, as one of 32 bits does that wraps: first at 13 s";
    assert_eq!(of("a.csv", 100_000_000), (Some((Level::Doubt, 1, words.into())), None, 1_000_000_000_000));
    // A fall that the line cannot explain is a reset and no more.
    let (narrow, mixed, _) = of("b.csv", 700_000_000);
    assert_eq!((narrow, mixed), (None, None));
}

#[test]
fn two_sources_under_one_name_are_a_doubt_and_no_bursts() {
    let folder = Folder::new();
    let rows: String =
        (0..40_u64).map(|i| format!("{},e1,{}\n", i * 10, i * 1_000 + if i % 2 == 0 { 0 } else { 70_000_000_000 })).collect();
    let path = folder.file("a.csv", format!("time_ms,port,tx_bytes\n{rows}"));
    let told = report(&path, r#"{"rate": "1Gbps", "by": "rate"}"#).unwrap();
    let found = told.plausibility.findings.iter().find(|finding| finding.code == "mixed_sources").unwrap();
    assert_eq!((found.level, found.count, told.ports[0].bursts_found), (Level::Doubt, 19, 0));
    assert!(found.words.starts_with("running counts fall in 19 of 39 intervals"), "{}", found.words);
    let mixed = |paths: &[std::path::PathBuf]| {
        let paths = serde_json::to_string(paths).unwrap();
        let options = format!(r#"{{"paths": {paths}, "rate": "1Gbps", "by": "rate"}}"#);
        let told = analyze(&Options::from_json(&options).unwrap(), &mut Never).unwrap();
        told.plausibility.findings.iter().find(|finding| finding.code == "mixed_sources").map(|found| found.words.clone())
    };
    // Two that are polled at one time.
    let rows: String = (0..40_u64).map(|i| format!("{},e1,{}\n", i / 2 * 10, i / 2 * 1_000 + i % 2 * 70_000)).collect();
    let path = folder.file("b.csv", format!("time_ms,port,tx_bytes\n{rows}"));
    assert_eq!(mixed(&[path]), Some("20 looks say something else than the one before of the same time".into()));
    // Two files, of which one counts five times as much.
    let of = |name: &str, times: u64| {
        let rows: String = (0..40_u64).map(|i| format!("{},e1,{}\n", i * 10, i * 1_000 * times)).collect();
        folder.file(name, format!("time_ms,port,tx_bytes\n{rows}"))
    };
    let paths = [of("c.csv", 1), of("d.csv", 5)];
    assert_eq!(mixed(&paths[..1]), None);
    let words = "39 intervals begin before the end of the one before, and 39 of the same time have other bytes: what they count is added up";
    assert_eq!(mixed(&paths), Some(words.into()));
}

/// Intervals of a length that is given, while polls are early or late by part of it.
#[test]
fn polls_that_are_not_on_time_are_of_one_source() {
    let folder = Folder::new();
    let mixed = |path: &std::path::Path, options: &str| {
        let told = report(path, options).unwrap();
        told.plausibility.findings.iter().any(|finding| finding.code == "mixed_sources")
    };
    // Each other poll is early by so many milliseconds of its second.
    let late = |ms: u64| {
        let rows: String = (1..41_u64).map(|i| format!("{},e1,1000,1\n", i * 1_000 - i % 2 * ms)).collect();
        let path = folder.file("a.csv", format!("time_ms,port,tx_bytes,interval_s\n{rows}"));
        mixed(
            &path,
            r#"{"rate": "1Gbps", "by": "rate", "columns": "time=time_ms,port=port,bytes=tx_bytes:since,interval=interval_s"}"#,
        )
    };
    assert_eq!([late(1), late(100), late(400)], [false, false, true]);
}

#[test]
fn powers_of_two_under_a_name_for_thousands_are_told() {
    let folder = Folder::new();
    let found = |name: &str, unit: &str| {
        let path = folder.file("a.csv", format!("time_s,{name}\n0,0\n1,9\n2,18\n"));
        let options = format!(r#"{{"rate": "1Gbps", "by": "rate", "columns": "time=time_s,bytes={name}:total({unit})"}}"#);
        let told = report(&path, &options).unwrap();
        told.plausibility.findings.iter().find(|f| f.code == "unit_contradicts_name").map(|f| (f.level, f.hint.clone()))
    };
    let hint = |name: &str, unit: &str| format!("bytes={name}:total({unit}) reads it as its name says");
    assert_eq!(found("tx_KB", "KiB"), Some((Level::Note, hint("tx_KB", "kB"))));
    assert_eq!(found("tx_KiB", "kB"), Some((Level::Doubt, hint("tx_KiB", "KiB"))));
    assert_eq!((found("tx_KB", "kB"), found("tx_KiB", "KiB")), (None, None));
}

#[test]
fn dates_with_the_day_first_are_asked_for_in_another_form() {
    let folder = Folder::new();
    for columns in ["", r#", "columns": "time=time,port=port,bytes=tx_bytes:total""#] {
        let path = folder.file("a.csv", "time,port,tx_bytes\n21/11/2026 08:00:00,e1,5\n21/11/2026 08:00:01,e1,9\n");
        let said = report(&path, &format!(r#"{{"rate": "1Gbps", "by": "rate"{columns}}}"#)).unwrap_err();
        assert!(said.contains("time: '21/11/2026 08:00:00' is no date of a form that is read"), "{said}");
        assert!(said.contains("write year, month and day, in this order") && !said.contains("time:ns"), "{said}");
    }
}
