use super::*;
use crate::counters::{Interval, Reading, State};
use crate::trace::{analyze, Control, Observer, Progress};
use crate::Burst;
use std::fmt::Write;

struct Unseen;

impl Observer for Unseen {
    fn progress(&mut self, _: Progress) -> Control {
        Control::Continue
    }
}

fn options(path: &str, more: Value) -> Options {
    let mut settings = json!({ "paths": [path], "rate": "10Gbps", "above": "20KB" });
    let (Value::Object(all), Value::Object(more)) = (&mut settings, more) else { panic!("objects") };
    all.extend(more);
    Options::from_json(&settings.to_string()).unwrap()
}

/// Bursts of 30 packets back to back at two ports, and a packet alone every 40 µs.
fn table(bursts: u64) -> String {
    let mut rows = Vec::new();
    for port in 0..2 {
        for burst in 0..bursts {
            let start = 1_000_000 * (burst + 1) + 400_000 * port;
            for i in 0..=30 {
                let queue = if i == 30 { 0 } else { i * 1_500 };
                rows.push((start + i * 100 + 200 * (i / 30), port, queue, burst * 10 + i % 4));
            }
            rows.extend((0..20).map(|i| (start + 40_000 + 15_000 * i, port, 0, 7)));
        }
    }
    rows.sort_unstable();
    let mut text = String::from("time_ns,port,queue_bytes,frame_bytes,flow\n");
    for (time, port, queue, flow) in rows {
        writeln!(text, "{time},eth{port},{queue},1500,f{flow}").unwrap();
    }
    text
}

fn live(more: Value) -> Live {
    Live::new("stream", &options("stream", more), Watching::default())
}

/// All that has ended, as JSON.
fn take(live: &mut Live) -> Value {
    serde_json::to_value(live.take()).unwrap()
}

fn told(burst: &Burst) -> Value {
    serde_json::to_value(burst).unwrap()
}

/// Bursts that came out, by port.
fn bursts(taken: &Value) -> Vec<(String, Value)> {
    let list = taken["bursts"].as_array().unwrap();
    list.iter().map(|one| (one["port"].as_str().unwrap().to_string(), one["burst"].clone())).collect()
}

fn of_file(text: &str, name: &str) -> Vec<(String, Value)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let report = analyze(&options(path.to_str().unwrap(), json!({})), &mut Unseen).unwrap();
    let mut found = Vec::new();
    for port in report.ports {
        found.extend(port.bursts.iter().map(|burst| (port.port.clone(), told(burst))));
    }
    found
}

#[test]
fn bursts_of_a_stream_are_those_of_the_file_however_the_bytes_come() {
    let text = table(20);
    let mut expected = of_file(&text, "stream.csv");
    expected.sort_by_key(|(port, burst)| (port.clone(), burst["index"].as_u64()));
    assert_eq!(expected.len(), 40);
    for chunk in [1, 37, 4_096, text.len()] {
        let mut live = live(json!({}));
        let mut found = Vec::new();
        for (turn, part) in text.as_bytes().chunks(chunk).enumerate() {
            live.push(part).unwrap();
            if turn % 1_000 == 3 {
                live.settle().unwrap();
                found.extend(bursts(&take(&mut live)));
            }
        }
        live.end().unwrap();
        found.extend(bursts(&take(&mut live)));
        found.sort_by_key(|(port, burst)| (port.clone(), burst["index"].as_u64()));
        assert_eq!(found, expected, "chunks of {chunk}");
        let report = live.report();
        let records: u64 = report["ports"].as_array().unwrap().iter().map(|port| port["records"].as_u64().unwrap()).sum();
        assert_eq!((records, report["refused"].as_u64()), (text.lines().count() as u64 - 1, Some(0)));
        assert_eq!(report["ports"][0]["dropped"], Value::Null, "no column says what was dropped");
    }
}

#[test]
fn json_lines_and_tc_series_come_in_pieces() {
    let (mut lines, mut tc) = (String::new(), String::new());
    for i in 0..200_u64 {
        let queue = if (50..60).contains(&i) { 90_000 } else { 0 };
        writeln!(lines, r#"{{"time_us": {}, "queue": {{"bytes": {queue}}}}}"#, 1_000 + i * 100).unwrap();
        writeln!(tc, "{}.{:03}", 1_700_000_000 + i / 1000, i % 1000).unwrap();
        writeln!(tc, r#"[{{"kind":"fq","handle":"1:","dev":"eth0","backlog":{queue},"drops":{}}}"#, i / 55).unwrap();
        writeln!(tc, "]").unwrap();
    }
    let with_columns = json!({ "columns": "time=time_us:us,queue=queue.bytes:B" });
    for (text, more, records) in [(&lines, with_columns, 200), (&tc, json!({}), 203 - 3)] {
        for chunk in [5, 1_000] {
            let mut live = live(more.clone());
            for part in text.as_bytes().chunks(chunk) {
                live.push(part).unwrap();
                live.settle().unwrap();
                assert!(live.used() <= text.len() as u64);
            }
            assert_eq!(live.used(), text.len() as u64);
            live.end().unwrap();
            let report = live.report();
            assert_eq!((bursts(&take(&mut live)).len(), report["refused"].as_u64()), (1, Some(0)), "{report}");
            let dropped = report["ports"][0]["dropped"].as_u64().unwrap_or(0);
            assert_eq!(report["ports"][0]["records"].as_u64(), Some(records + dropped.saturating_sub(3)));
        }
    }
}

#[test]
fn wrong_rows_are_passed_over_and_counted_and_late_records_too() {
    let mut text = table(3);
    text.push_str(
        "soon,eth0,1,1500,f1\n9000000,eth0,0,1500\n9000000,eth0,0,1500,f1\n8000000,eth0,0,1500,f1\n9100000,eth0,0,1500,f1\n",
    );
    let mut live = live(json!({}));
    for part in text.as_bytes().chunks(100) {
        live.push(part).unwrap();
        live.settle().unwrap();
    }
    live.end().unwrap();
    let report = live.report();
    assert_eq!((report["refused"].as_u64(), report["ports"][0]["late"].as_u64()), (Some(2), Some(1)));
    let problems = report["problems"].to_string();
    assert!(problems.contains("time_ns: 'soon' is not a number") && problems.contains("there are 4 values"), "{problems}");
    let first = report["ports"][0]["records"].as_u64().unwrap();
    assert_eq!(first, 3 * 51 + 2);
}

#[test]
fn missing_samples_end_a_burst_and_are_no_empty_queue() {
    let mut text = String::from("time_us,queue_bytes\n");
    let mut add = |from: u64, to: u64, queue: u64| (from..to).for_each(|i| writeln!(text, "{},{queue}", i * 100).unwrap());
    add(0, 100, 0);
    add(100, 110, 80_000);
    // 20 ms of nothing, in the middle of a burst.
    add(310, 320, 80_000);
    add(320, 400, 0);
    let mut live = live(json!({}));
    live.push(text.as_bytes()).unwrap();
    live.end().unwrap();
    let taken = take(&mut live);
    let found = bursts(&taken);
    assert_eq!(found.len(), 2, "{taken}");
    let times =
        |burst: &Value| (burst["start_ps"].as_u64(), burst["end_ps"].as_u64(), burst["open"].as_bool(), burst["cut"].as_bool());
    let ms = |ms: f64| Some((ms * 1e9) as u64);
    assert_eq!(times(&found[0].1), (ms(9.9), ms(10.9), Some(true), Some(false)));
    assert_eq!(times(&found[1].1), (ms(31.0), ms(31.964), Some(false), Some(true)), "80 KB drain in 64 us");
    assert_eq!(taken["gaps"], json!([{ "port": "stream", "origin_s": 0, "from_ps": ms(10.9), "to_ps": ms(31.0), "why": "gap" }]));
    let report = live.report();
    assert_eq!((&report["ports"][0]["gaps"], &report["ports"][0]["gap_ps"]), (&json!(1), &json!(ms(20.1))));
}

#[test]
fn what_is_missing_is_the_same_of_a_stream_and_of_its_file_and_slower_looks_become_usual() {
    // Each 100 us, then 20 ms of nothing in a burst, then each 30 ms for good, with bursts of ten looks.
    let looks = (0..100).map(|i| i * 100).chain((0..10).map(|i| 30_000 + i * 100)).chain((0..200).map(|i| 60_000 + i * 30_000));
    let mut text = String::from("time_us,queue_bytes\n");
    looks.enumerate().for_each(|(i, at)| writeln!(text, "{at},{}", if i % 50 >= 40 { 80_000 } else { 0 }).unwrap());
    // Packets that find a queue, of which a second is missing.
    let mut packets = String::from("time_ns,queue_bytes,frame_bytes,flow\n");
    (0..60_u64).for_each(|i| writeln!(packets, "{},{},1500,f", i * 100 + i / 30 * 1_000_000_000, i % 59 * 1_500).unwrap());
    for (text, holes) in [(text, 4..=6), (packets, 1..=1)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("looks.csv");
        std::fs::write(&path, &text).unwrap();
        let of_file = analyze(&options(path.to_str().unwrap(), json!({})), &mut Unseen).unwrap();
        let mut live = live(json!({}));
        live.push(text.as_bytes()).unwrap();
        live.end().unwrap();
        let (taken, report) = (take(&mut live), live.report());
        for (port, expected) in report["ports"].as_array().unwrap().iter().zip(&of_file.ports) {
            let (gaps, gap_ps) = (port["gaps"].as_u64().unwrap(), port["gap_ps"].as_u64().unwrap());
            let told = format!("({})", crate::display::count(gaps, "hole"));
            let told = format!("records are missing for {} {told}: that time is unknown", crate::display::span(gap_ps));
            assert!(
                holes.contains(&gaps) && expected.notes.iter().any(|note| note.contains(&told)),
                "{told} {:?}",
                expected.notes
            );
            let found = bursts(&taken).into_iter().filter(|(name, _)| port["port"] == name.as_str()).map(|(_, burst)| burst);
            assert_eq!(found.collect::<Vec<_>>(), expected.bursts.iter().map(self::told).collect::<Vec<_>>());
        }
    }
}

#[test]
fn another_file_goes_on_with_the_ports_and_its_names_of_columns_may_be_missing() {
    let text = table(10);
    let (header, rows) = text.split_once('\n').unwrap();
    let half = rows[..rows.len() / 2].rfind('\n').unwrap() + 1;
    let (first, second) = rows.split_at(half);
    let mut expected = of_file(&text, "stream.csv");
    expected.sort_by_key(|(port, burst)| (port.clone(), burst["index"].as_u64()));
    for again in [format!("{header}\n{second}"), second.to_string()] {
        let mut live = live(json!({}));
        live.push(format!("{header}\n{first}").as_bytes()).unwrap();
        live.reopen().unwrap();
        live.push(again.as_bytes()).unwrap();
        (0..9).for_each(|_| live.settle().unwrap());
        assert_eq!(live.used(), again.len() as u64);
        live.end().unwrap();
        let mut found = bursts(&take(&mut live));
        found.sort_by_key(|(port, burst)| (port.clone(), burst["index"].as_u64()));
        assert_eq!(found, expected);
    }
    // A new process that begins in the middle.
    let mut live = live(json!({}));
    live.remember_header(format!("{header}\n").as_bytes());
    live.push(second.as_bytes()).unwrap();
    live.end().unwrap();
    assert_eq!(live.report()["refused"], json!(0));
    let records: u64 = live.report()["ports"].as_array().unwrap().iter().map(|port| port["records"].as_u64().unwrap()).sum();
    assert_eq!(records, second.lines().count() as u64);
}

#[test]
fn months_later_times_have_another_origin_and_nothing_is_counted_twice() {
    let mut text = String::from("time_s,queue_bytes,flow\n");
    for day in 0..400_u64 {
        let at = 1_700_000_000 + day * 86_400;
        writeln!(text, "{at}.000,0,a\n{at}.001,90000,b\n{at}.002,0,a").unwrap();
    }
    let mut live = live(json!({}));
    let mut found = Vec::new();
    for part in text.as_bytes().chunks(64) {
        live.push(part).unwrap();
        live.settle().unwrap();
        let taken = take(&mut live);
        for one in taken["bursts"].as_array().unwrap() {
            let seconds = one["origin_s"].as_u64().unwrap() + one["burst"]["end_ps"].as_u64().unwrap() / SECOND as u64;
            found.push(seconds);
        }
    }
    let report = live.report();
    assert_eq!(report["renewals"], json!(7), "every 53 days");
    assert_eq!(found, (0..400).map(|day| 1_700_000_000 + day * 86_400).collect::<Vec<_>>());
    assert_eq!((&report["ports"][0]["records"], &report["ports"][0]["bursts"]), (&json!(1_200), &json!(400)));
    assert_eq!((&report["refused"], &report["ports"][0]["late"]), (&json!(0), &json!(0)));
}

/// Samples of two ports each 10 ms from a second on, of which some are replaced.
fn ticks(from_s: u64, count: u64, wrong: impl Fn(u64, u64) -> Option<u64>) -> String {
    let mut text = String::new();
    for i in 0..count {
        for port in 0..2 {
            let right = from_s * 1_000 + 10 * i;
            writeln!(text, "{},eth{port},{}", wrong(i, port).unwrap_or(right), if i % 100 < 10 { 90_000 } else { 0 }).unwrap();
        }
    }
    text
}

fn counts(live: &Live, port: usize, names: [&str; 5]) -> [u64; 5] {
    let report = live.report();
    names.map(|name| report["ports"][port][name].as_u64().unwrap())
}

const TIMES: [&str; 5] = ["records", "late", "far", "set_back", "bursts"];
const NAMES: &str = "time_ms,port,queue_bytes\n";

#[test]
fn one_row_far_ahead_costs_itself_and_nothing_else() {
    let day = 86_400_000;
    let text = ticks(1_700_000_000, 1_000, |i, port| (i == 300 && port == 0).then_some(1_700_000_000_000 + day));
    for chunk in [1_000, 20_000, usize::MAX] {
        let mut live = live(json!({}));
        live.push(NAMES.as_bytes()).unwrap();
        for part in text.as_bytes().chunks(chunk) {
            live.push(part).unwrap();
            (0..2).for_each(|_| live.settle().unwrap());
            live.take();
        }
        live.end().unwrap();
        assert_eq!(counts(&live, 0, TIMES), [999, 0, 1, 0, 10], "chunks of {chunk}");
        assert_eq!(counts(&live, 1, TIMES), [1_000, 0, 0, 0, 10], "the other port goes on");
        assert_eq!(live.report()["latest_ps"], json!(10_990_000_000_000_u64), "the strip is not moved");
    }
}

#[test]
fn a_leap_that_more_rows_confirm_is_believed_and_nothing_of_it_is_lost() {
    // A day of nothing; then the last row of all is a day later, with nothing behind it.
    let text = [ticks(1_700_000_000, 500, |_, _| None), ticks(1_700_086_400, 500, |_, _| None)].concat();
    let mut live = live(json!({}));
    live.push(format!("{NAMES}{text}1700200000000,eth1,0\n").as_bytes()).unwrap();
    live.end().unwrap();
    assert_eq!(counts(&live, 0, TIMES), [1_000, 0, 0, 0, 10]);
    assert_eq!(counts(&live, 1, TIMES), [1_001, 0, 0, 0, 10]);
    let gaps = |port: usize| live.report()["ports"][port]["gaps"].as_u64();
    assert_eq!((gaps(0), gaps(1)), (Some(2), Some(2)), "of the first one nothing is known since then, either");
}

#[test]
fn a_clock_that_is_set_back_is_followed_after_some_rows() {
    let text = [ticks(1_700_007_200, 500, |_, _| None), ticks(1_700_000_000, 500, |_, _| None)].concat();
    let mut live = live(json!({}));
    live.push(format!("{NAMES}{text}").as_bytes()).unwrap();
    live.end().unwrap();
    for port in 0..2 {
        assert_eq!(counts(&live, port, TIMES), [985, 15, 0, 1, 9], "the burst of the first rows is among those that were late");
    }
    assert_eq!(live.report()["latest_ps"].as_u64().unwrap() % SECOND as u64, 990_000_000_000);
}

#[test]
fn a_first_row_of_another_age_does_not_refuse_all_that_come_after() {
    for first in [4_000_000_000_000_u64, 5] {
        let text = ticks(1_700_000_000, 1_000, |i, port| (i + port == 0).then_some(first));
        let mut live = live(json!({}));
        // The first row comes alone: nothing else shows the time.
        let (row, rest) = text.split_once('\n').unwrap();
        live.push(format!("{NAMES}{row}\n").as_bytes()).unwrap();
        (0..9).for_each(|_| live.settle().unwrap());
        for part in rest.as_bytes().chunks(1_000) {
            live.push(part).unwrap();
            (0..2).for_each(|_| live.settle().unwrap());
            live.take();
        }
        assert_eq!(live.used(), rest.len() as u64 + NAMES.len() as u64 + row.len() as u64 + 1);
        live.end().unwrap();
        let (refused, records) =
            (live.report()["refused"].as_u64().unwrap(), counts(&live, 0, TIMES)[0] + counts(&live, 1, TIMES)[0]);
        assert!((64..=200).contains(&refused), "{refused}");
        assert_eq!(records + refused, 2_000);
        assert_eq!(live.report()["origin_s"].as_u64().unwrap() / 10, 170_000_000);
    }
}

#[test]
fn a_port_without_records_gives_its_memory_back_and_may_return() {
    let mut text = String::from("time_s,port,queue_bytes\n");
    for i in 0..10 {
        writeln!(text, "{i},a,0\n{i},b,0").unwrap();
    }
    (10..5_000).for_each(|i| writeln!(text, "{i},a,0").unwrap());
    let mut live = live(json!({}));
    live.push(text.as_bytes()).unwrap();
    live.settle().unwrap();
    live.take();
    let retired =
        |live: &Live| live.report()["ports"].as_array().unwrap().iter().map(|port| port["retired"] == true).collect::<Vec<_>>();
    assert_eq!(retired(&live), [false, true]);
    live.push(b"5001,b,3\n").unwrap();
    assert_eq!((retired(&live), &live.report()["ports"][1]["records"]), (vec![false, false], &json!(11)));
}

#[test]
fn a_table_without_rows_is_waited_for_and_no_error_at_its_end() {
    let header = "time_s,queue_bytes\n";
    let mut live = live(json!({}));
    live.push(header.as_bytes()).unwrap();
    (0..20).for_each(|_| live.settle().unwrap());
    live.reopen().unwrap();
    live.push(header.as_bytes()).unwrap();
    live.push(b"1700000000,1\n1700000001,2\n").unwrap();
    (0..3).for_each(|_| live.settle().unwrap());
    let report = live.report();
    assert_eq!(
        (&report["ports"][0]["records"], &report["origin_s"], &report["refused"]),
        (&json!(2), &json!(1_699_999_999), &json!(0))
    );
}

#[test]
fn what_is_no_stream_of_rows_is_refused_with_what_reads_it() {
    for (bytes, what) in
        [(&b"PAR1____\n"[..], "is Parquet"), (b"\x1f\x8b\x08\n", "is packed with gzip"), (b"a,b\nc,d\n", "stream: ")]
    {
        let mut live = live(json!({}));
        live.push(bytes).unwrap();
        let error = live.end().unwrap_err();
        assert!(error[0].to_string().contains(what), "{error:?}");
    }
}

/// Reader of counters that a test makes: 100 intervals of a port, one burst, then nothing known, then a queue.
struct Counters(u64);

impl TraceReader for Counters {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        let port = context.ports.index(b"eth0")?;
        let us = |us: u64| Time::from_ps(us * 1_000_000);
        for i in self.0..(self.0 + 50).min(100) {
            let (start, end) = (us(100 * i), us(100 * i + 100));
            let known = Interval {
                start,
                end,
                sent: Some(1_000),
                queue: Some(if (20..25).contains(&i) { 90_000 } else { 0 }),
                dropped: Some(u64::from(i == 22)),
                ..Interval::default()
            };
            let unknown = (23..40).contains(&i);
            let interval = if unknown { Interval::unknown(start, end, State::Gap) } else { known };
            batch.readings.push((port, Reading::Interval(interval)));
        }
        self.0 += 50;
        Ok(self.0 <= 100)
    }
    fn place(&self, row: u64) -> String {
        format!("sample {row}")
    }
    fn progress(&self) -> f64 {
        0.0
    }
    fn finish(&mut self, _: &mut Context) {}
}

#[test]
fn counters_are_bursts_and_what_they_leave_unknown_is_neither_a_burst_nor_a_zero() {
    let mut live = live(json!({}));
    let facts = Facts { fates: Fates { drops: true, marks: false }, ..Facts::of("made", crate::input::facts::Shape::Counters) };
    live.known = Some(Arc::new(Known { facts, by: By::Queue }));
    live.reader = Some(Box::new(Counters(0)));
    live.read().unwrap();
    let taken = take(&mut live);
    let found = bursts(&taken);
    assert_eq!(found.len(), 1, "{taken}");
    let burst = &found[0].1;
    let ms = |tenths: u64| json!(tenths * 100_000_000);
    assert_eq!((&burst["start_ps"], &burst["end_ps"], &burst["open"]), (&ms(20), &ms(23), &json!(true)));
    assert_eq!((&burst["peak_bytes"], &burst["dropped_packets"]), (&json!(90_000), &json!(1)));
    assert_eq!(taken["gaps"], json!([{ "port": "eth0", "origin_s": 0, "from_ps": ms(23), "to_ps": ms(40), "why": "gap" }]));
    let port = &live.report()["ports"][0];
    assert_eq!((&port["unknown_ps"], &port["gap_ps"]), (&json!({ "gap": 1_700_000_000_u64 }), &ms(17)));
    assert_eq!((&port["records"], &port["queue_bytes"], &port["dropped"]), (&json!(100), &json!(0), &json!(1)));
    assert_eq!((&port["peak_bytes"], &port["peak_at_least"]), (&json!(90_000), &json!(true)), "no counter of the largest queue");
}

#[test]
fn what_no_connection_has_counted_is_a_gap_and_joins_no_bursts() {
    // Two connections of which nothing is known in between, then one that goes on where the last one ended.
    let rows = |from: u64, count: u64| -> String { (from..from + count).map(|s| format!("{s},eth0,1000000000\n")).collect() };
    let names = "t,p,b\n";
    let parts = [rows(0, 30), rows(100, 30), rows(200, 30)];
    let of = |files: &[String]| {
        let columns = json!({ "columns": "time=t:s,port=p,bytes=b:since", "rate": "10Gbps", "above": null });
        let mut live = live(columns);
        for file in files {
            live.push(format!("{names}{file}").as_bytes()).unwrap();
            live.reopen().unwrap();
        }
        live.end().unwrap();
        let taken = take(&mut live);
        let port = live.report()["ports"][0].clone();
        let spans = |list: &str, of: &dyn Fn(&Value) -> Value| taken[list].as_array().unwrap().iter().map(of).collect::<Vec<_>>();
        let found = spans("bursts", &|one| json!([one["burst"]["start_ps"], one["burst"]["end_ps"]]));
        let gaps = spans("gaps", &|gap| json!([gap["from_ps"], gap["to_ps"], gap["why"]]));
        (found, gaps, port["gaps"].clone(), port["gap_ps"].clone(), port["unknown_ps"].clone())
    };
    let whole = of(&[parts.concat()]);
    assert_eq!((whole.0.len(), &whole.2, &whole.3), (3, &json!(2), &json!(142 * SECOND as u64)), "{whole:?}");
    assert_eq!(of(&parts), whole);
}

#[test]
fn a_line_that_is_too_long_is_one_wrong_row_and_ends_nothing() {
    let text = table(2);
    let mut live = live(json!({}));
    live.push(text.as_bytes()).unwrap();
    (0..3).for_each(|_| live.settle().unwrap());
    live.push(format!("{}\n9000000,eth0,0,1500,f1\n", "x".repeat(1_200_000)).as_bytes()).unwrap();
    live.push(b"9000100,eth0,0,1500,f1\n").unwrap();
    live.end().unwrap();
    let report = live.report();
    let records: u64 = report["ports"].as_array().unwrap().iter().map(|port| port["records"].as_u64().unwrap()).sum();
    assert_eq!((report["refused"].as_u64(), records), (Some(1), text.lines().count() as u64 + 1), "{}", report["problems"]);
}

#[test]
fn a_row_ahead_by_less_than_a_leap_makes_no_later_one_late_for_long() {
    // Half a minute ahead: no leap, as nothing may come as long; but sixteen rows go on where the port was before.
    let text = ticks(1_700_000_000, 1_000, |i, port| (i == 300 && port == 0).then_some(1_700_000_033_000));
    let mut live = live(json!({}));
    live.push(format!("{NAMES}{text}").as_bytes()).unwrap();
    live.end().unwrap();
    assert_eq!(counts(&live, 0, TIMES), [985, 15, 0, 1, 10], "of the burst there one row is left");
    assert_eq!(counts(&live, 1, TIMES), [1_000, 0, 0, 0, 10], "the other port goes on");
    assert_eq!(live.report()["latest_ps"], json!(10_990_000_000_000_u64), "the strip is not moved");
}

#[test]
fn a_log_in_descending_order_is_late_and_says_so() {
    let mut text = String::from("1700000000000,eth1,0\n");
    (0..2_000).for_each(|i| writeln!(text, "{},eth0,0", 1_700_000_020_000_u64 - 10 * i).unwrap());
    let mut live = live(json!({}));
    live.push(format!("{NAMES}{text}").as_bytes()).unwrap();
    (0..2).for_each(|_| live.settle().unwrap());
    // Its first row may have gone ahead alone; the rows after the sixteenth did not.
    assert_eq!(counts(&live, 1, TIMES), [2, 1_998, 0, 1, 0]);
    assert_eq!(live.report()["ports"][1]["unknown_now"], json!("late"));
}

#[test]
fn a_port_whose_rows_are_late_or_are_missing_is_unknown_by_now() {
    let now = |live: &Live| -> Vec<Value> {
        live.report()["ports"].as_array().unwrap().iter().map(|port| port["unknown_now"].clone()).collect()
    };
    let mut stream = live(json!({}));
    stream.push(format!("{NAMES}{}", ticks(1_700_000_000, 500, |_, _| None)).as_bytes()).unwrap();
    (0..2).for_each(|_| stream.settle().unwrap());
    assert_eq!(now(&stream), [Value::Null, Value::Null]);
    // A clock that is set back by less than a leap: what comes may be a repetition, and counts once.
    stream.push(ticks(1_700_000_001, 100, |_, _| None).as_bytes()).unwrap();
    assert_eq!(now(&stream), [json!("late"), json!("late")]);
    assert_eq!(
        (counts(&stream, 0, TIMES)[..2].to_vec(), &stream.report()["ports"][0]["open_since_ps"]),
        (vec![500, 100], &Value::Null)
    );
    // One port goes on, the other one does not: from ten steps and a column of the strip on nothing is known of it.
    let one = ticks(1_700_000_005, 200, |_, _| None).replace("eth1", "eth2");
    let (at_once, rest) = one.split_at(one.len() / 2);
    stream.push(at_once.as_bytes()).unwrap();
    assert_eq!(now(&stream)[..2], [Value::Null, json!("late")]);
    stream.push(rest.as_bytes()).unwrap();
    assert_eq!(now(&stream)[..2], [Value::Null, json!("late")]);
    stream.push(b"1700000007000,eth1,0\n").unwrap();
    assert_eq!(now(&stream), [const { Value::Null }; 3]);
    stream.push(ticks(1_700_000_007, 200, |_, _| None).replace("eth1", "eth2").as_bytes()).unwrap();
    assert_eq!(now(&stream), [Value::Null, json!("gap"), Value::Null]);
    let port = &stream.report()["ports"][1];
    // The rows that were late, then the gap up to 7 s, and since then up to now.
    let (late, gap) = (990_000_000_000_u64, 2_010_000_000_000_u64 + 1_990_000_000_000);
    assert_eq!((&port["unknown_ps"], port["gap_ps"].as_u64()), (&json!({ "gap": gap, "late": late }), Some(gap)));
}

#[test]
fn a_port_that_vanishes_is_unknown_in_every_sum_and_no_less_when_it_returns() {
    let told = |live: &Live| {
        let port = &live.report()["ports"][1];
        (port["unknown_ps"].clone(), port["gaps"].as_u64().unwrap(), port["gap_ps"].as_u64().unwrap())
    };
    let seconds = |count: u64| (json!({ "gap": count * SECOND as u64 }), 1, count * SECOND as u64);
    for (retire, gap) in [(3_600, None), (60, None), (60, Some(5)), (3_600, Some(5))] {
        let watching = Watching {
            retire: Span::from_ps(retire * SECOND as u64),
            gap: gap.map(|s| Span::from_ps(s * SECOND as u64)),
            ..Watching::default()
        };
        let mut live = Live::new("stream", &options("stream", json!({})), watching);
        let both: String = (0..40).map(|i| format!("{i},a,0\n{i},b,0\n")).collect();
        live.push(format!("time_s,port,queue_bytes\n{both}").as_bytes()).unwrap();
        (0..2).for_each(|_| live.settle().unwrap());
        assert_eq!(told(&live), (json!({}), 0, 0));
        live.push((40..140).map(|i| format!("{i},a,0\n")).collect::<String>().as_bytes()).unwrap();
        live.take();
        assert_eq!(live.report()["ports"][1]["retired"], json!(retire < 100));
        assert_eq!(told(&live), seconds(100), "a retirement after {retire} s");
        // It comes back, and is known again; what was told stays.
        live.push(b"140,b,0\n140,a,0\n141,b,0\n141,a,0\n").unwrap();
        assert_eq!(told(&live), seconds(101), "a retirement after {retire} s");
        live.push(b"142,b,0\n142,a,0\n").unwrap();
        live.end().unwrap();
        assert_eq!((told(&live), &live.report()["ports"][1]["unknown_now"]), (seconds(101), &Value::Null));
    }
}

#[test]
fn a_few_late_rows_are_unknown_for_as_long_as_they_go_on() {
    let unknown = |rows: &str, more: Value, names: &str| {
        let mut live = live(more);
        live.push(format!("{names}{rows}").as_bytes()).unwrap();
        live.end().unwrap();
        live.report()["ports"][0]["unknown_ps"].clone()
    };
    let row = |s: &u64| format!("{s},0\n");
    let of = |late: &[u64]| {
        unknown(
            &[&(0..30).collect::<Vec<_>>()[..], late, &[30, 31]].concat().iter().map(row).collect::<String>(),
            json!({}),
            "time_s,queue_bytes\n",
        )
    };
    assert_eq!(of(&[]), json!({}));
    assert_eq!(of(&[20]), json!({}), "a row in between two that are known");
    let late = |s: u64| json!({ "late": s * SECOND as u64 });
    assert_eq!(of(&[20, 21, 22, 23]), late(3));
    assert_eq!(of(&[23, 22, 21, 20]), late(3), "in descending order");
    assert_eq!(of(&[20, 10, 20, 10]), late(10), "no more than from the earliest to the latest");
    // Counters tell of intervals.
    let columns = json!({ "columns": "time=t:s,bytes=b:since", "rate": "10Gbps", "above": null });
    let rows: String = (0..30).chain(20..24).chain([30]).map(|s| format!("{s},1000\n")).collect();
    let late = unknown(&rows, columns, "t,b\n")["late"].as_u64().unwrap();
    assert!((3 * SECOND as u64..=4 * SECOND as u64).contains(&late), "{late}");
}

#[test]
fn formats_say_what_they_are_and_a_stream_knows_none_by_name() {
    let source = [include_str!("mod.rs"), include_str!("port.rs"), include_str!("report.rs"), include_str!("clock.rs")].concat();
    let named: Vec<_> = crate::formats::names().into_iter().filter(|name| source.contains(&format!("\"{name}\""))).collect();
    assert!(named.is_empty(), "{named:?}");
}

#[test]
fn wrong_rows_name_no_ports_and_one_port_too_many_costs_no_other() {
    let mut text = String::new();
    for i in 0..2_u64 {
        (0..5_200).for_each(|port| writeln!(text, "{},p{port},0", 1 + i).unwrap());
    }
    let mut live = live(json!({}));
    // More than four thousand wrong rows, each of which would be a port.
    live.push(NAMES.as_bytes()).unwrap();
    live.push((0..2_100).map(|i| format!("soon,x{i},0\n1,y{i},soon\n")).collect::<String>().as_bytes()).unwrap();
    live.push(text.as_bytes()).unwrap();
    live.end().unwrap();
    let report = live.report();
    let ports = report["ports"].as_array().unwrap();
    assert_eq!((ports.len(), ports.iter().filter(|port| port["records"] == 2).count()), (4_096, 4_096));
    assert_eq!(report["refused"], json!(4_200 + 2 * (5_200 - 4_096)));
    let problems = report["problems"].to_string();
    assert!(problems.contains("is one port too many: 4096 are accepted"), "{problems}");
}

#[test]
fn what_counters_contradict_is_told_with_the_time_that_it_leaves_unknown() {
    let mut text = String::from("t,p,b\n");
    (0..40).for_each(|i| writeln!(text, "{i},eth0,{}", if i < 20 { 1_000 } else { 2_000_000_000_u64 }).unwrap());
    let mut live = live(json!({ "columns": "time=t:s,port=p,bytes=b:since", "rate": "10Gbps", "above": null }));
    live.push(text.as_bytes()).unwrap();
    live.end().unwrap();
    let report = live.report();
    assert_eq!(report["ports"][0]["unknown_ps"], json!({ "contradicting": 20 * SECOND as u64 }));
    let said = report["contradictions"][0].as_array().unwrap();
    assert_eq!((said.len(), &said[0], &said[1]), (4, &json!("counters_above_line"), &json!("eth0")));
    assert!(said[2].as_str().unwrap().starts_with("20 intervals above what the line carries: 2 GB within 1 s"), "{said:?}");
}

#[test]
fn the_largest_queue_is_known_behind_a_still_look_that_contradicts_itself() {
    let columns = json!({ "columns": "time=t:ms,port=p,bytes=b:total,queue=q:B,watermark=w:B" });
    let mut live = live(columns);
    live.push(b"t,p,b,q,w\n0,e,0,0,0\n1,e,500000,0,0\n2,e,500000,3000,1000\n3,e,1500000,300000,400000\n4,e,2000000,0,0\n")
        .unwrap();
    live.end().unwrap();
    assert_eq!(live.report()["ports"][0]["peak_bytes"], 400_000);
}

#[test]
fn drops_of_mixed_sources_stay_unknown_when_their_port_is_retired() {
    let columns = json!({ "columns": "time=t:s,port=p,bytes=b:total,dropped=d:total", "above": null });
    let watching = Watching { retire: Span::from_ps(60 * SECOND as u64), ..Watching::default() };
    let mut live = Live::new("stream", &options("stream", columns), watching);
    let rows = |i: u64| format!("{i},a,{},{}\n{i},b,{i},0\n", 1_000 * i + i % 2 * 1_000_000, i + i % 2 * 500);
    live.push(format!("t,p,b,d\n{}", (0..40).map(rows).collect::<String>()).as_bytes()).unwrap();
    (0..2).for_each(|_| live.settle().unwrap());
    let port = |live: &Live| (live.report()["ports"][0]["retired"].clone(), live.report()["ports"][0]["dropped"].clone());
    assert_eq!(port(&live), (json!(false), Value::Null));
    live.push((40..140).map(|i| format!("{i},b,{i},0\n")).collect::<String>().as_bytes()).unwrap();
    live.take();
    assert_eq!(port(&live), (json!(true), Value::Null));
}

#[test]
fn drops_that_looks_and_counters_tell_of_one_port_are_never_summed() {
    let look =
        |s: u64| format!("{s}\n[{{\"kind\":\"bfifo\",\"handle\":\"2:\",\"dev\":\"e\",\"drops\":{},\"backlog\":0}}]\n", 3 * s);
    let row = |s: u64| format!("{s},e bfifo 2:,{},{}\n", s * 1_000, s * 4);
    let mut live = live(json!({ "above": null }));
    let drops =
        |live: &Live| (live.report()["ports"][0]["dropped"].clone(), live.report()["ports"][0]["dropped_at_least"].clone());
    live.push((1..5).map(look).collect::<String>().as_bytes()).unwrap();
    live.reopen().unwrap();
    assert_eq!(drops(&live), (json!(9), json!(false)));
    let table: String = (4..9).map(row).collect();
    live.push(format!("time_s,ifName,ifHCOutOctets,ifOutDiscards\n{table}").as_bytes()).unwrap();
    live.end().unwrap();
    assert_eq!(drops(&live), (json!(16), json!(true)));
}

#[test]
fn drops_of_bursts_are_unknown_once_sources_are_mixed() {
    let looks = |from: u64, to: u64| -> String {
        let look = |i: u64| {
            let (queue, other) = (if i % 10 < 2 { 50_000 } else { 0 }, i % 2 * 1_000_000);
            format!(
                "{i}\n[{{\"kind\":\"bfifo\",\"handle\":\"2:\",\"bytes\":{},\"drops\":{},\"backlog\":{queue}}}]\n",
                i + other,
                i % 2 * 9
            )
        };
        (from..to).map(look).collect()
    };
    let mut live = live(json!({}));
    live.push(looks(0, 40).as_bytes()).unwrap();
    (0..2).for_each(|_| live.settle().unwrap());
    live.take();
    live.push(looks(40, 80).as_bytes()).unwrap();
    live.end().unwrap();
    let later = bursts(&take(&mut live));
    assert!(!later.is_empty() && later.iter().all(|(_, burst)| burst["dropped_packets"].is_null()), "{later:?}");
    let report = live.report();
    assert_eq!(report["ports"][0]["dropped"], Value::Null);
    assert_eq!(report["contradictions"].as_array().unwrap().iter().map(|found| &found[0]).collect::<Vec<_>>(), ["mixed_sources"]);
}

#[test]
fn a_port_of_which_nothing_was_known_yet_says_so() {
    let known = |rows: &str| {
        let mut live = live(json!({ "columns": "time=t:s,port=p,bytes=b:total", "rate": "1Gbps", "above": null }));
        live.push(format!("t,p,b\n{rows}").as_bytes()).unwrap();
        live.end().unwrap();
        live.report()["ports"][0]["known"].clone()
    };
    let above_the_line = "0,e,0\n1,e,1250000000\n2,e,2500000000\n";
    assert_eq!(known(above_the_line), json!(false));
    assert_eq!(known(&format!("{above_the_line}3,e,2500000001\n4,e,2500000009\n")), json!(true));
}

#[test]
fn what_no_counter_told_is_unknown_and_no_zero() {
    let mut live =
        live(json!({ "columns": "time=t:s,port=p,bytes=b:total,drops=d:total,marks=m:total", "rate": "1Gbps", "above": null }));
    let told = |live: &Live| {
        let port = &live.report()["ports"][0];
        (port["dropped"].clone(), port["marked"].clone())
    };
    live.push(b"t,p,b,d,m\n0,e,0,,\n1,e,8,,\n2,e,16,,\n").unwrap();
    live.settle().unwrap();
    assert_eq!(told(&live), (Value::Null, Value::Null));
    live.push(b"3,e,24,5,0\n4,e,32,5,0\n5,e,40,7,0\n").unwrap();
    live.end().unwrap();
    assert_eq!(told(&live), (json!(2), json!(0)));
}

#[test]
fn drops_of_rows_that_come_late_are_a_lower_bound() {
    for (row, at_least) in [("4,e,0,0\n", false), ("2,e,0,1\n", true)] {
        let mut live = live(json!({ "columns": "time=t:ms,port=p,queue=q:B,dropped=d" }));
        live.push(format!("t,p,q,d\n1,e,0,0\n2,e,0,0\n3,e,0,1\n{row}5,e,0,0\n").as_bytes()).unwrap();
        live.end().unwrap();
        let port = live.report()["ports"][0].clone();
        assert_eq!((&port["dropped"], &port["dropped_at_least"]), (&json!(1), &json!(at_least)));
    }
}

#[test]
fn a_dense_stream_that_leaps_says_so_and_a_sparse_one_does_not() {
    for (rows, leaps) in [(ticks(1_700_000_000, 500, |_, _| None), 1), ("1700000000000,eth0,0\n1700000030000,eth0,0\n".into(), 0)]
    {
        let mut live = live(json!({}));
        live.push(format!("{NAMES}{rows}{}", ticks(1_700_003_600, 9, |_, _| None)).as_bytes()).unwrap();
        live.end().unwrap();
        assert_eq!((live.report()["leaps"].as_u64(), live.report()["ports"][1]["far"].as_u64()), (Some(leaps), Some(0)));
    }
}

#[test]
fn drops_of_a_gap_are_of_no_burst() {
    let look = |s: u64, queue: u64, drops: u64| {
        format!("{s}\n[{{\"kind\":\"bfifo\",\"handle\":\"2:\",\"dev\":\"e\",\"drops\":{drops},\"backlog\":{queue}}}]\n")
    };
    // The look behind the gap sees a burst, or none: what was dropped meanwhile is of neither.
    for queue in [0, 60_000] {
        let mut live = Live::new(
            "stream",
            &options("stream", json!({})),
            Watching { gap: Some(Span::from_us(5_000_000)), ..Watching::default() },
        );
        let looks = [(8, 0, 0), (9, 0, 0), (10, 60_000, 0), (60, queue, 7), (61, 0, 7)];
        live.push(looks.map(|(s, queue, drops)| look(s, queue, drops)).concat().as_bytes()).unwrap();
        live.end().unwrap();
        let of_bursts: Vec<Value> =
            bursts(&take(&mut live)).into_iter().map(|(_, burst)| burst["dropped_packets"].clone()).collect();
        assert!(of_bursts.iter().all(|drops| *drops == 0), "{queue}: {of_bursts:?}");
        let report = live.report();
        let codes: Vec<&Value> = report["contradictions"].as_array().unwrap().iter().map(|found| &found[0]).collect();
        assert_eq!((&report["ports"][0]["dropped"], codes), (&json!(7), vec![&json!("drops_unseen")]), "{queue}");
    }
}
