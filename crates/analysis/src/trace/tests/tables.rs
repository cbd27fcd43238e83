//! What a table does not say, and what it says of connections.

use crate::trace::tests::{all, failure, Folder};
use crate::trace::{analyze, Control, Observer, Options, Progress};
use crate::{NO_DATA, SAMPLE};
use serde_json::{json, Value};
use std::path::Path;

struct Nobody;

impl Observer for Nobody {
    fn progress(&mut self, _: Progress) -> Control {
        Control::Continue
    }
}

/// The report of a file with these settings.
fn report(path: &Path, settings: Value) -> Value {
    let mut all = json!({"paths": [path], "rate": "1Gbps"});
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let options = Options::from_json(&all.to_string()).unwrap_or_else(|p| panic!("{}", crate::trace::tests::message(&p)));
    serde_json::to_value(analyze(&options, &mut Nobody).unwrap_or_else(|f| panic!("{f}"))).unwrap()
}

fn notes(report: &Value) -> String {
    report["notes"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// A burst of 100 frames in 100 us into a port of 1 Gb/s; each with the queue that it finds.
fn burst(columns: &str, more: impl Fn(u64) -> String) -> String {
    let rows = (0..100_u64).map(|i| format!("{},{},1000,{i}{}\n", 1_000 * i, (i * 875).min(60_000), more(i)));
    format!("time_ns,queue_bytes,len,flow{columns}\n{}", rows.collect::<String>())
}

#[test]
fn counts_that_no_column_tells_are_absent_and_a_note_says_so_once() {
    let folder = Folder::new();
    let neither = report(&folder.file("a.csv", burst("", |_| String::new())), json!({}));
    let port = &neither["ports"][0];
    assert_eq!((&port["dropped"], &port["marked"], &port["bursts_found"]), (&Value::Null, &Value::Null, &json!(1)));
    let first = &port["bursts"][0];
    assert!(["dropped_packets", "dropped_bytes", "marked_packets"].iter().all(|key| first[key].is_null()), "{first}");
    let said = notes(&neither);
    let why = "drops and marks are unknown: no column says which packets were dropped or marked; --columns \
               dropped=COLUMN,marked=COLUMN says it";
    assert_eq!(said.matches(why).count(), 1, "{said}");
    assert_eq!(said.matches("unknown").count(), 1, "{said}");

    let drops = report(&folder.file("b.csv", burst(",dropped", |i| format!(",{}", u8::from(i == 99)))), json!({}));
    assert_eq!((&drops["ports"][0]["dropped"], &drops["ports"][0]["marked"]), (&json!(1), &Value::Null));
    assert!(notes(&drops).contains("marks are unknown: no column says which packets were marked"), "{}", notes(&drops));
    let both = report(&folder.file("c.csv", burst(",dropped,ce", |_| ",0,0".into())), json!({}));
    assert_eq!((&both["ports"][0]["dropped"], &both["ports"][0]["marked"]), (&json!(0), &json!(0)));
    assert!(!notes(&both).contains("unknown"), "{}", notes(&both));
    // Of two files with ports of their own, each tells of its port.
    let two = ["d.csv", "e.csv"].map(|name| {
        let more = if name == "d.csv" { (",dropped,port", ",1,x") } else { (",port,ce", ",y,1") };
        folder.file(name, burst(more.0, |_| more.1.into()))
    });
    let two = report(&two[0], json!({"paths": two}));
    let told: Vec<_> = two["ports"].as_array().unwrap().iter().map(|p| (&p["port"], &p["dropped"], &p["marked"])).collect();
    assert!(told.contains(&(&json!("x"), &json!(100), &Value::Null)), "{told:?}");
    assert!(told.contains(&(&json!("y"), &Value::Null, &json!(100))), "{told:?}");
}

#[test]
fn estimated_drops_are_told_and_sentences_say_that_they_are_estimated() {
    let folder = Folder::new();
    let rows: String = (0..400_u64).map(|i| format!("{},1000,{i}\n", 2_000 * i)).collect();
    let path = folder.file("a.csv", format!("time_ns,len,flow\n{rows}"));
    let found = report(&path, json!({"buffer": "100KB", "above": "20KB"}));
    let port = &found["ports"][0];
    assert!(port["estimate"]["used"] == true && port["dropped"].as_u64().unwrap() > 50 && port["marked"].is_null(), "{port}");
    let said = &port["bursts"][0];
    let words = said["law"]["words"].as_str().or(said["words"].as_str()).unwrap();
    assert!(words.starts_with("By the estimated queue (≈): "), "{words}");
    let calm = report(&path, json!({"buffer": "100KB", "above": "5MB"}));
    let words = calm["ports"][0]["nothing"]["words"].as_str().unwrap();
    assert!(words.contains("the largest queue was ≈ 100 KB"), "{words}");
}

#[test]
fn packets_without_payload_bring_no_data_and_a_syn_opens_its_flow() {
    let folder = Folder::new();
    let columns = "time=t:ns,frame=len,flow=f,payload=pay,syn=s";
    let path =
        folder.file("a.csv", "t,len,f,pay,s\n0,64,a,0,1\n5,1000,a,946,0\n6,64,b,0,0\n7,1000,b,946,1\n8,1000,7,,1\n9,64,7,0,\n");
    let (records, ..) = all(&path, Some(columns)).unwrap();
    let without: Vec<bool> = records.iter().map(|r| r.flags & NO_DATA != 0).collect();
    assert_eq!(without, [true, false, true, false, true, true], "by the payload; where it is unknown by the SYN");
    let json = folder.file(
        "a.jsonl",
        "{\"t\":0,\"len\":64,\"f\":\"a\",\"pay\":0,\"s\":true}\n{\"t\":5,\"len\":1000,\"f\":\"a\",\"pay\":946,\"s\":false}\n",
    );
    let (records, ..) = all(&json, Some(columns)).unwrap();
    assert_eq!(records.iter().map(|r| r.flags & NO_DATA != 0).collect::<Vec<_>>(), [true, false]);
    let text = failure(&path, Some("time=t:ns,frame=len,payload=f"));
    assert!(text.contains("f: 'a' is not a number; accepted: a number from 0 to 16777216 B"), "{text}");
}

#[test]
fn columns_that_are_not_used_are_named_and_nested_keys_are_guessed() {
    let folder = Folder::new();
    let lines = "{\"ts_ns\":1000,\"queue\":{\"depth\":100,\"cells\":2},\"len\":1000}\n{\"ts_ns\":2000,\"queue\":{\"depth\":900},\"len\":64}\n";
    let (records, _, notes) = all(&folder.file("a.jsonl", lines), None).unwrap();
    assert_eq!(records.iter().map(|r| r.queue).collect::<Vec<_>>(), [100, 900]);
    let notes = notes.join("\n");
    assert!(notes.contains("queue = 'queue.depth' [B], frame = 'len' [B]; not used: queue.cells; --columns"), "{notes}");
    let csv = folder.file("a.csv", "ts_ns,queue_depth,temperature\n1,2,3\n");
    let (.., notes) = all(&csv, None).unwrap();
    assert!(notes.join("\n").contains("not used: temperature;"), "{notes:?}");
    let (.., notes) = all(&csv, Some("time=ts_ns:ns,queue=queue_depth:B")).unwrap();
    assert!(notes.join("\n").contains("columns that --columns leaves unused: temperature"), "{notes:?}");
}

#[test]
fn a_decimal_comma_is_explained() {
    let folder = Folder::new();
    let text =
        failure(&folder.file("a.csv", "ts_us;qlen_B\n1000,5;1\n1.001.000,5;2\n1,000,000;2\n5,x;2\n1,555;2\n1.000,555;2\n"), None);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("'1000,5' is not a number; accepted: a number; numbers have a decimal point, and nothing between thousands: write 1000.5"), "{text}");
    assert!(lines[1].ends_with("write 1001000.5"), "{text}");
    assert!(lines[2].ends_with("write 1000000"), "{text}");
    assert!(lines[3].ends_with("'5,x' is not a number; accepted: a number"), "{text}");
    assert!(lines[4].ends_with("write 1.555 for decimals, 1555 for thousands"), "{text}");
    assert!(lines[5].ends_with("write 1000.555"), "{text}");
}

/// A running count of drops, of samples and of packets; and the zeros that a loss of power leaves at the end of a file.
#[test]
fn drops_may_be_a_running_count_and_zeros_at_the_end_lose_no_rows() {
    let folder = Folder::new();
    let text = "time_ns,qlen,backlog,drops\n1000,2,3028,7\n2000,3,4542,7\n3000,338,511732,12\n4000,0,0,13\n50";
    let bytes = [text.as_bytes(), &vec![0; 300_000]].concat();
    let (records, _, notes) = all(&folder.file("a.csv", bytes), None).unwrap();
    let dropped: Vec<u64> = records.iter().filter(|r| r.dropped()).map(|r| r.time.ps()).collect();
    assert_eq!(dropped, [3_000_000, 3_000_000, 3_000_000, 3_000_000, 3_000_000, 4_000_000]);
    assert_eq!(records.iter().map(|r| r.queue).max(), Some(511_732));
    assert!(notes.join("\n").contains("the file ends in 300000 zero bytes, as a loss of power leaves it"), "{notes:?}");
    let lines = "{\"t_ns\": 1, \"queue_B\": 5}\n{\"t_ns\": 2, \"queue_B\": 6}\n{\"t_n";
    let bytes = [lines.as_bytes(), &vec![0; 3 << 20]].concat();
    let (records, _, notes) = all(&folder.file("b.jsonl", bytes), None).unwrap();
    assert!(records.len() == 2 && notes.join("\n").contains("3145728 zero bytes"), "{notes:?}");
    let text =
        failure(&folder.file("c.csv", "t_ns,queue_B,d\n1,5,0\n2,5,99999999\n"), Some("time=t_ns,queue=queue_B,dropped=d:total"));
    assert!(text.contains("line 3: '99999999' is a count of drops that rises by more than packets can come"), "{text}");
    // Near the end of 32 bits, too, a fall by more than packets can come is no wrap.
    let text = "t_ns,queue_B,d\n1,5,3500000000\n2,5,3500000002\n3,5,3\n";
    let (records, ..) = all(&folder.file("d.csv", text), Some("time=t_ns,queue=queue_B,dropped=d:total")).unwrap();
    assert_eq!(records.iter().filter(|r| r.dropped()).count(), 5);
}

#[test]
fn bytes_that_are_no_text_are_shown_as_numbers_and_cut() {
    let folder = Folder::new();
    let text = failure(&folder.file("a.bin", [b'f', 0x1b, 0x99, b'Y', b',', 7, 0xff, 0x80, 0x90, 0x91].repeat(400)), None);
    assert!(
        text.contains(
            "is of no kind that is known, and no text: it begins with the bytes 66 1b 99 59 2c 07 ff 80; accepted: a result"
        ),
        "{text}"
    );
    assert!(text.chars().all(|c| !c.is_control()) && text.len() < 500, "{text}");
    let text = failure(&folder.file("b.csv", b"\xff\xfet\0s\0,\0"), None);
    assert!(text.contains("is text in UTF-16: write it in UTF-8"), "{text}");
    assert!(all(&folder.file("c.csv", "ts_ns,qlen_B,größe\n1,2,3\n"), None).is_ok(), "umlauts are text");
}

/// Ten samples of a port, 10 us each, and one of another: its queue grows to 300 KB within the fourth interval and is empty at its end.
fn samples(folder: &Path, rows: &[(u64, &str, u64, u64)]) -> std::path::PathBuf {
    let mut table = fanin_telemetry::Table::<fanin_telemetry::PortRow>::file(folder).unwrap();
    for (time_ps, port, queue_bytes, queue_max_bytes) in rows {
        let row = fanin_telemetry::PortRow {
            time_ps: *time_ps,
            port: (*port).into(),
            tx_bytes: 0,
            tx_packets: 0,
            queue_bytes: *queue_bytes,
            queue_packets: 0,
            queue_max_bytes: *queue_max_bytes,
            held_bytes: 0,
            drops: 0,
            marks: 0,
        };
        table.push(row).unwrap();
    }
    table.finish().unwrap();
    folder.join("ports.parquet")
}

#[test]
fn samples_of_queues_are_records_and_a_burst_within_an_interval_shows_by_its_watermark() {
    let folder = Folder::new();
    let us = 1_000_000;
    let mut rows: Vec<(u64, &str, u64, u64)> = (1..=10).map(|i| (i * 10 * us, "a->b", 0, 1_000)).collect();
    rows[3] = (40 * us, "a->b", 0, 300_000);
    rows[6] = (70 * us, "a->b", 120_000, 120_000);
    rows[7] = (80 * us, "a->b", 60_000, 150_000);
    rows.insert(5, (50 * us, "c->d", 7, 7));
    let path = samples(folder.0.path(), &rows);
    let (records, ports, _) = all(&path, None).unwrap();
    let queues: Vec<u64> = records.iter().zip(&ports).filter(|(_, port)| *port == "c->d").map(|(r, _)| r.queue).collect();
    assert_eq!(queues, [7], "a queue that is its own watermark is one record");
    assert!(records.iter().all(|r| r.flags == SAMPLE | NO_DATA && r.frame == 0 && r.flow == crate::NO_FLOW));
    let options = Options::from_json(&json!({"paths": [path], "rate": "10Gbps", "above": "100KB"}).to_string()).unwrap();
    let report = analyze(&options, &mut Nobody).unwrap();
    assert_eq!(report.sources[0].kind, "samples");
    let port = &report.ports[0];
    let bursts: Vec<_> = port.bursts.iter().map(|b| (b.start_ps, b.duration_ps, b.peak_bytes)).collect();
    assert_eq!((port.port.as_str(), port.peak_bytes, port.dropped), ("a->b", Some(300_000), None));
    assert_eq!(bursts, [(30 * us, 10 * us, Some(300_000)), (60 * us, 30 * us, Some(150_000))]);
    let said = |what: &str| report.notes.iter().any(|note| note.contains(what));
    assert!(said("samples are of queues, not of packets") && said("records are samples: times are ends"), "{:?}", report.notes);
}

#[test]
fn a_packet_without_a_flow_that_is_dropped_at_the_front_leaves_whole() {
    let folder = Folder::new();
    // 1 B/ns. The queue grows by more than arrived, so from then on the speed tells what left; the fourth row finds less than stands there.
    let rows = [
        "0,0,1000,0,0",
        "1,5000,1000,0,0",
        "2,6000,1500,1,1",
        "6002,1500,1500,0,1",
        "7402,1500,1500,0,1",
        "8002,900,1500,0,1",
        "8003,0,1000,0,0",
        "8004,1000,1000,0,0",
    ];
    let file = folder.file("q.csv", format!("time_ns,queue_bytes,frame_bytes,at_head,dropped\n{}\n", rows.join("\n")));
    let report = super::counters::report(&file, r#"{"rate": "8Gbps", "overhead": "0B", "above": "1KB"}"#).unwrap();
    assert_eq!((report.ports[0].records, report.ports[0].dropped, report.ports[0].peak_bytes), (8, Some(4), Some(6_000)));
}

/// Frames of 1518 B from two senders of 10 Gb/s, 650 in 400 us, into a port of 10 Gb/s with a buffer of 400 KB; each row so often.
fn two_at_line_rate(unit: u64, copies: usize) -> String {
    let (mut waiting, mut free, mut rows) = (std::collections::VecDeque::new(), 0_u64, String::new());
    for i in 0..650_u64 {
        let now = (i / 2) * 1_230_400 + (i % 2) * 500_000;
        while waiting.front().is_some_and(|leaves| *leaves <= now) {
            waiting.pop_front();
        }
        let queue = 1_518 * waiting.len() as u64;
        let dropped = queue + 1_518 > 400_000;
        for _ in 0..copies {
            rows += &format!("{},{queue},1518,{},{}\n", now / unit, i % 2, u8::from(dropped));
        }
        if !dropped {
            free = free.max(now) + 1_230_400;
            waiting.push_back(free);
        }
    }
    format!("time_{},queue_bytes,len,flow,dropped\n{rows}", if unit == 1_000_000 { "us" } else { "ns" })
}

fn codes(report: &Value) -> Vec<String> {
    let found = report["plausibility"]["findings"].as_array().unwrap();
    found.iter().map(|f| format!("{} {}", f["code"].as_str().unwrap(), f["level"].as_str().unwrap())).collect()
}

#[test]
fn a_table_is_held_against_the_speed_that_was_given() {
    let folder = Folder::new();
    let path = folder.file("a.csv", two_at_line_rate(1_000, 1));
    for (rate, expected) in
        [("10Gbps", None), ("9.9Gbps", None), ("10.3Gbps", None), ("1Gbps", Some("speed wrong")), ("40Gbps", Some("speed doubt"))]
    {
        let found = codes(&report(&path, json!({"rate": rate})));
        assert_eq!(found, expected.map(String::from).into_iter().collect::<Vec<_>>(), "{rate}");
    }
    let coarse = folder.file("b.csv", two_at_line_rate(1_000_000, 1));
    assert_eq!(codes(&report(&coarse, json!({"rate": "10Gbps"}))), Vec::<String>::new());
    // One row in twenty is missing: where the queue grows by less than a frame at a time, its length does not show it.
    let rows = two_at_line_rate(1_000, 1);
    let some = rows.lines().enumerate().filter(|(i, _)| *i == 0 || i % 10 != 3).map(|(_, row)| format!("{row}\n"));
    let path = folder.file("c.csv", some.collect::<String>());
    let found = codes(&report(&path, json!({"rate": "10Gbps"})));
    assert!(found.iter().any(|code| code.starts_with("speed") || code.starts_with("missing_records")), "{found:?}");
}

#[test]
fn a_table_with_every_row_twice_drops_no_packet_twice() {
    let folder = Folder::new();
    let once = report(&folder.file("a.csv", two_at_line_rate(1_000, 1)), json!({"rate": "10Gbps"}));
    let twice = report(&folder.file("b.csv", two_at_line_rate(1_000, 2)), json!({"rate": "10Gbps"}));
    let drops = |report: &Value| report["ports"][0]["dropped"].as_u64().unwrap();
    assert!(drops(&once) > 50);
    assert_eq!(drops(&once), drops(&twice));
    // Times of whole microseconds cannot tell copies from packets, but the speed does.
    let coarse = report(&folder.file("c.csv", two_at_line_rate(1_000_000, 2)), json!({"rate": "10Gbps"}));
    assert_eq!(codes(&coarse), ["speed wrong"]);
}
