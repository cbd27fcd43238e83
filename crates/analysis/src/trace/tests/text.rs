//! Tables in text: what is wrong with them, JSON lines, what is cut short.

use crate::formats::Mapping;
use crate::input::file::Place;
use crate::trace::source::Source;
use crate::trace::tests::{all, failure, Folder, CSV, CSV_MAP};
use std::io::Write;

#[test]
fn every_wrong_value_is_reported_with_line_column_and_what_is_accepted() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "time_ns,queue_bytes,marked\n1,-5,0\nx,1,0\n3,NaN,0\n4,1e30,0\n5,7,maybe\n6,1,1\n");
    let text = failure(&path, None);
    for part in [
        "a.csv: line 2: queue_bytes: '-5' is negative; accepted: a number from 0 to 1 TB",
        "a.csv: line 3: time_ns: 'x' is not a number; accepted: a number",
        "a.csv: line 4: queue_bytes: 'NaN' is not finite",
        "a.csv: line 5: queue_bytes: '1e30' is too large",
        "a.csv: line 6: marked: 'maybe' is neither yes nor no; accepted: 1, 0, true, false, yes, no",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
    assert_eq!(text.lines().count(), 5);
    // All of a line, and lines of another length, the first one too.
    let uneven = folder.file("b.csv", "time_ns,queue_bytes\n1\n1,2\nx,-2\n1,2,3\n\n7,7\n");
    let text = failure(&uneven, None);
    let wanted = [
        "b.csv: line 2: there are 1 values, and 2 in the first line",
        "b.csv: line 4: time_ns: 'x' is not a number; accepted: a number",
        "b.csv: line 4: queue_bytes: '-2' is negative; accepted: a number from 0 to 1 TB",
        "b.csv: line 5: there are 3 values, and 2 in the first line",
    ];
    assert_eq!(text.lines().map(|line| &line[line.find("b.csv").unwrap()..]).collect::<Vec<_>>(), wanted);
    // With what is wrong with the columns.
    let text = failure(&uneven, Some("time=when,queue=queue_bytes"));
    assert!(text.contains("'when' is no column of this file") && text.contains("line 2: there are 1 values"), "{text}");
}

#[test]
fn wrong_columns_and_wrong_units_are_reported_at_once() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "ts,qlen,dev\n1,2,3\n");
    let settings = serde_json::json!({"paths": [path], "columns": "time=ts:nanos,queue=qln:cells,port=dev,flw=x", "rate": "1"});
    let text = crate::trace::tests::message(&crate::trace::Options::from_json(&settings.to_string()).unwrap_err());
    for part in [
        "--columns: time: 'nanos' is no unit of it",
        "--columns: queue: 'cells' is no unit of it",
        "--columns: 'flw' is nothing that a column can mean",
        "a.csv: queue: 'qln' is no column of this file; did you mean 'qlen'?",
        "rate: '1' has no unit",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
    assert_eq!(text.lines().count(), 5, "{text}");
}

#[test]
fn all_files_that_are_wrong_are_reported_at_once() {
    struct Patient;
    impl crate::trace::Observer for Patient {
        fn progress(&mut self, _: crate::trace::Progress) -> crate::trace::Control {
            crate::trace::Control::Continue
        }
    }
    let folder = Folder::new();
    let file = |name: &str, bad: &str| folder.file(name, format!("time_ns,queue_bytes\n1,2\n{bad}\n"));
    let paths = vec![file("a.csv", "x,1"), file("b.csv", "2,3"), file("c.csv", "3,-1"), file("d.csv", "4")];
    let failure = crate::trace::analyze(&crate::trace::Options { paths, ..crate::trace::Options::default() }, &mut Patient)
        .unwrap_err()
        .to_string();
    for part in ["a.csv: line 3: time_ns: 'x'", "c.csv: line 3: queue_bytes: '-1'", "d.csv: line 3: there are 1 values"] {
        assert!(failure.contains(part), "{part} in {failure}");
    }
    assert_eq!(failure.lines().count(), 3, "{failure}");
}

#[test]
fn of_a_million_wrong_values_the_first_are_reported_and_the_others_counted() {
    let folder = Folder::new();
    let path = folder.file("a.csv", format!("time_ns,queue_bytes\n{}1,2,3\n", "1,x\n2,3\n".repeat(100_000)));
    let text = failure(&path, None);
    assert_eq!(text.lines().count(), 21);
    assert!(text.contains("a.csv: line 40: queue_bytes: 'x' is not a number"), "{text}");
    assert!(text.ends_with("a.csv: 99981 more values or lines are wrong, the last in line 200002"), "{text}");
    let path = folder.file("b.jsonl", "{\"time_ns\": 1, \"queue_bytes\": \"x\"}\n{\"time_ns\": 2\n".repeat(50_000));
    let text = failure(&path, None);
    assert_eq!(text.lines().count(), 21);
    assert!(text.contains("b.jsonl: line 1: queue_bytes: 'x' is not a number"), "{text}");
    assert!(text.contains("b.jsonl: line 2: '{\"time_ns\": 2' is no JSON object: it ends too early, at byte 14"), "{text}");
    assert!(text.ends_with("b.jsonl: 99980 more values or lines are wrong, the last in line 100000"), "{text}");
}

const JSON: &str = concat!(
    "\u{feff}{\"at\": {\"ts\": 1.5}, \"ifname\": \"Eth1/1\", \"qlen\": 10, \"five tuple\": \"a>b\", \"len\": 1518, \"ecn\": 3, \"drop\": false, \"repl\": true}\r\n",
    "\n{\"at\": {\"ts\": 2}, \"ifname\": \"Eth1/1\", \"qlen\": null, \"five tuple\": \"a>b\", \"ecn\": 3}\n",
    "{\"qlen\": \"11\", \"at\": {\"ts\": 2.5, \"host\": [1]}, \"ifname\": \"Eth1\\/2\", \"five tuple\": \"c;d\", \"ecn\": 0, \"drop\": 1}",
);

/// The same rows as in CSV.
#[test]
fn json_lines_are_read_as_csv_is() {
    let folder = Folder::new();
    let (wanted, ports, _) = all(&folder.file("a.txt", CSV), Some(CSV_MAP)).unwrap();
    let map = CSV_MAP.replace("time=ts:", "time=at.ts:");
    let path = folder.file("a.jsonl", JSON);
    let (records, named, notes) = all(&path, Some(&map)).unwrap();
    assert_eq!((records, named), (wanted.clone(), ports.clone()));
    assert!(notes[1].contains("1 row passed over, for lack of a value that is needed; first 'qlen' in line 3"), "{notes:?}");
    assert_eq!(Source::find(&Place::of(&path), Some(&Mapping::read(&map).unwrap())).unwrap().facts().kind, "jsonl");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(JSON.as_bytes()).unwrap();
    assert_eq!(all(&folder.file("a.json.gz", gzip.finish().unwrap()), Some(&map)).unwrap().0, wanted);
    let zstd = zstd::stream::encode_all(JSON.as_bytes(), 3).unwrap();
    assert_eq!(all(&folder.file("a.zst", zstd), Some(&map)).unwrap().0, wanted);
}

#[test]
fn json_lines_guess_their_columns_and_keep_all_digits() {
    let folder = Folder::new();
    let line = |fraction: &str, flow: &str| {
        format!("{{\"timestamp\":1795372415.{fraction},\"queue_bytes\":5e3,\"flow\":{flow},\"port\":3}}\n")
    };
    let path = folder.file("a.json", line("311008235", "18446744073709551615") + &line("311008236", "\"18446744073709551616\""));
    let (records, ports, notes) = all(&path, None).unwrap();
    assert_eq!(records[1].time.since(records[0].time).ps(), 1_000);
    assert_eq!((records[0].queue, ports[0].as_str()), (5_000, "3"));
    assert_ne!(records[0].flow, records[1].flow);
    assert!(notes.iter().any(|n| n.contains("columns were guessed by their names: time = 'timestamp' [s]")), "{notes:?}");
    let odd = folder.file("b.json", "{\"time_ns\": 1, \"queue_bytes\": [5]}\n{\"time_ns\": {\"a\": 1}, \"queue_bytes\": 1}\n");
    let text = failure(&odd, None);
    assert!(text.contains("b.json: line 1: queue_bytes: is a list; accepted: one value by row"), "{text}");
    assert!(text.contains("b.json: line 2: time_ns: is an object"), "{text}");
    let pretty = folder.file("c.json", "{\n \"time_ns\": 1,\n \"queue_bytes\": 2\n}\n");
    let text = failure(&pretty, None);
    let wanted = "c.json: line 1: '{' is no JSON object: it ends too early, at byte 2; accepted: an object in each line; jq -c writes it so";
    assert!(text.ends_with(wanted), "{text}");
    let long = folder.file("d.json", format!("{{\"time_ns\":1,\"queue_bytes\":2}}\n{{\"a\":\"{}\"}}\n[]\n", "x".repeat(3 << 20)));
    let text = failure(&long, None);
    assert!(text.contains("d.json: line 2: is longer than 1048576 bytes\n"), "{text}");
    assert!(
        text.contains("d.json: line 3: '[]' is no JSON object: invalid type: sequence, expected an object, at byte 1"),
        "{text}"
    );
}

#[test]
fn a_truncated_gzip_keeps_what_it_has_and_a_damaged_one_says_where() {
    let folder = Folder::new();
    let rows: String = (0..50_000_u64).map(|i| format!("{},{}\n", 1_000 * i, i.wrapping_mul(0x9e37_79b9) % 100_003)).collect();
    let csv = format!("time_ns,queue_bytes\n{rows}");
    let (wanted, ..) = all(&folder.file("a.csv", &csv), None).unwrap();
    let json: String = (0..50_000_u64)
        .map(|i| format!("{{\"time_ns\":{},\"queue_bytes\":{}}}\n", 1_000 * i, i.wrapping_mul(0x9e37_79b9) % 100_003))
        .collect();
    for (name, text) in [("a.csv.gz", csv), ("a.jsonl.gz", json)] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        for end in [gzip.len() / 3, gzip.len() / 2 + 1, gzip.len() - 3] {
            let (records, _, notes) = all(&folder.file(name, &gzip[..end]), None).unwrap();
            assert!(records.len() > 10_000 && wanted.starts_with(&records), "{name} {end}: {} records", records.len());
            let said = format!("{name}: the file is cut short: its gzip data end at byte {end}, inside a block; the ");
            assert!(notes.iter().any(|note| note.contains(&said)), "{notes:?}");
        }
        let mut bad = gzip.clone();
        let at = bad.len() / 2;
        bad[at..at + 200].fill(0xff);
        let text = failure(&folder.file(name, bad), None);
        assert!(text.contains("cannot be read: its gzip data are damaged near byte "), "{text}");
    }
}
