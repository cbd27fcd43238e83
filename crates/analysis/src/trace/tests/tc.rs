//! Output of `tc -s -j qdisc` of a running kernel (6.18; tests/data/tc): a bfifo of 64,000 B behind 1 Mb/s, into which 120 datagrams of 1242 B came at once.

use super::{all, failure, Folder};
use crate::{DROPPED, NO_DATA, SAMPLE};
use std::path::{Path, PathBuf};

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tc").join(name)
}

#[test]
fn a_series_is_samples_of_each_qdisc_in_bytes_with_its_drops() {
    let (records, ports, notes) = all(&kept("series.json"), None).unwrap();
    let of = |name: &str| records.iter().zip(&ports).filter(|(_, port)| *port == name).map(|(r, _)| *r).collect::<Vec<_>>();
    let bfifo = of("series bfifo 2:");
    assert_eq!(bfifo.iter().filter(|r| r.flags & DROPPED != 0).count(), 66, "{notes:?}");
    assert_eq!(bfifo.len(), 40 + 65, "a sample each, one of which is a drop, and the other drops of that moment");
    assert_eq!(bfifo.iter().map(|r| r.queue).max(), Some(59_616));
    assert!(records.iter().all(|r| r.flags & SAMPLE != 0 && r.flags & NO_DATA != 0 && r.frame == 0));
    assert!(bfifo.windows(2).all(|w| w[0].time <= w[1].time));
    // 20 ms and what the commands take.
    let step = bfifo[1].time.since(bfifo[0].time).as_secs_f64();
    assert!((0.02..0.2).contains(&step), "{step}");
    assert!(notes.iter().any(|n| n.contains("the queue is tc's backlog, in bytes (its qlen counts packets)")), "{notes:?}");
}

#[test]
fn bytes_tell_the_rate_between_documents_and_a_speed_that_is_wrong() {
    let (_, _, notes) = all(&kept("series.json"), None).unwrap();
    let note = notes.iter().find(|note| note.contains("series bfifo 2:: sent ")).unwrap();
    let number: String = note.split("sent ").nth(1).unwrap().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    assert!(note.contains(" Mb/s at most") && (0.9..1.6).contains(&number.parse::<f64>().unwrap()), "1 Mb/s: {note}");
    let findings = |rate: &str| {
        let told = super::counters::report(&kept("series.json"), &format!(r#"{{"rate": "{rate}"}}"#)).unwrap();
        let of = |finding: &crate::checks::Finding| (finding.code, finding.place.clone(), finding.bytes);
        told.plausibility.findings.iter().map(of).filter(|found| found.0 == "counters_above_line").collect::<Vec<_>>()
    };
    assert_eq!(findings("10Mbps"), []);
    // Most of what is sent between two documents, on a line of a tenth of that.
    let folder = Folder::new();
    let text: String = (0..4)
        .map(|i: u64| {
            format!("{i}\n[{{\"kind\":\"bfifo\",\"handle\":\"2:\",\"bytes\":{},\"drops\":0,\"backlog\":0}}]\n", i * i * 100_000)
        })
        .collect();
    let told = super::counters::report(&folder.file("fast.json", text), r#"{"rate": "1Mbps", "above": "1KB"}"#).unwrap();
    let finding = told.plausibility.findings.iter().find(|finding| finding.code == "counters_above_line").unwrap();
    assert_eq!((finding.count, finding.bytes), (2, Some(500_000)));
    assert!(finding.words.ends_with("500 KB within 1 s at 2 s, 4 Mb/s on a port of 1 Mb/s"), "{}", finding.words);
    // What two of the largest frames explain is not above the line, however quick it was.
    let text: String = [(0, 0), (10, 4_500), (510, 129_500)]
        .map(|(ms, bytes)| {
            format!(
                "{}\n[{{\"kind\":\"bfifo\",\"handle\":\"2:\",\"bytes\":{bytes},\"drops\":0,\"backlog\":0}}]\n",
                f64::from(ms) / 1e3
            )
        })
        .concat();
    let told = super::counters::report(&folder.file("slow.json", text), r#"{"rate": "1Mbps", "above": "1KB"}"#).unwrap();
    let finding = told.plausibility.findings.iter().find(|finding| finding.code == "counters_above_line").unwrap();
    assert!(finding.words.ends_with("125 KB within 500 ms at 10 ms, 2 Mb/s on a port of 1 Mb/s"), "{}", finding.words);
}

#[test]
fn one_document_is_one_look_and_says_what_was_dropped_before() {
    let (records, ports, notes) = all(&kept("one.json"), None).unwrap();
    assert_eq!((records.len(), ports), (2, vec!["one htb 1:".to_string(), "one bfifo 2:".into()]));
    assert!(records.iter().all(|r| r.flags & DROPPED == 0));
    let said = notes.join("\n");
    assert!(
        said.contains("one look at the queues") && said.contains("one bfifo 2:: 66 packets had been dropped before"),
        "{said}"
    );
    let folder = Folder::new();
    let of_all = r#"[{"kind":"mq","handle":"0:","dev":"eth0","root":true,"drops":0,"backlog":5,"qlen":1},
        {"kind":"fq_codel","handle":"0:","dev":"eth0","parent":":1","drops":0,"backlog":1500,"qlen":1}]"#;
    let (records, ports, _) = all(&folder.file("a.json", of_all), None).unwrap();
    assert_eq!((records[1].queue, ports), (1_500, vec!["eth0 mq 0:".to_string(), "eth0 fq_codel 0: at :1".into()]));
}

#[test]
fn what_is_wrong_with_a_series_is_said_with_its_line() {
    let folder = Folder::new();
    let qdisc = |backlog: &str, drops: &str| format!(r#"[{{"kind":"bfifo","handle":"2:","backlog":{backlog},"drops":{drops}}}]"#);
    let fails = |text: String, parts: &[&str]| {
        let said = failure(&folder.file("a.json", text), None);
        parts.iter().for_each(|part| assert!(said.contains(part), "{part}\nin\n{said}"));
    };
    fails(format!("{}\n{}\n", qdisc("1", "0"), qdisc("2", "0")), &["line 2: has no time before it", "date +%s.%N"]);
    fails(format!("1\n{}\nnoon\n{}\n", qdisc("1", "0"), qdisc("2", "0")), &["line 3: 'noon' is neither a time nor a list"]);
    fails(format!("1\n{}\n2\n{}\n", qdisc("1", "0"), qdisc("2", "99999999")), &["line 4", "rises by more"]);
    fails(format!("1\n{}\n", qdisc("-5", "0")), &["without a backlog in bytes", "tc -s -j qdisc"]);
    fails("1\n[{\"kind\":\"bfifo\",\"handle\":\"2:\"".into(), &["begins a list that does not end"]);
    // A counter that began anew, and a file that lost its end.
    let text =
        format!("1\n{}\n2\n{}\n3\n{}\n4\n[{{\"kind\"{}", qdisc("1", "9"), qdisc("2", "2"), qdisc("3", "3"), "\0".repeat(700));
    let (records, _, notes) = all(&folder.file("b.json", text), None).unwrap();
    assert_eq!(records.iter().filter(|r| r.flags & DROPPED != 0).count(), 3, "{records:?}");
    assert!(notes.iter().any(|n| n.contains("the file ends in 700 zero bytes")), "{notes:?}");
}

#[test]
fn a_clock_that_was_set_back_between_documents_is_a_doubt() {
    let folder = Folder::new();
    let text: String = [0, 10, 20, 30, 15, 25, 35, 45]
        .map(|ms| {
            format!("{}\n[{{\"kind\":\"bfifo\",\"handle\":\"2:\",\"drops\":0,\"backlog\":{}}}]\n", f64::from(ms) / 1e3, ms * 100)
        })
        .concat();
    let told = super::counters::report(&folder.file("back.json", text), r#"{"rate": "1Gbps", "above": "1KB"}"#).unwrap();
    let finding = told.plausibility.findings.iter().find(|finding| finding.code == "clock_back").unwrap();
    assert_eq!((finding.level, finding.count), (crate::checks::Level::Doubt, 2));
    assert!(finding.words.starts_with("2 documents are earlier than one before, by 15 ms at most"), "{}", finding.words);
}

/// A series of looks at one qdisc: time [ms], backlog, drops up to then.
fn looks(looks: impl IntoIterator<Item = (u64, u64, u64)>) -> String {
    let one = |(ms, backlog, drops)| {
        let time = ms as f64 / 1e3;
        format!("{time}\n[{{\"kind\":\"bfifo\",\"handle\":\"2:\",\"drops\":{drops},\"backlog\":{backlog}}}]\n")
    };
    looks.into_iter().map(one).collect()
}

#[test]
fn drops_in_time_without_looks_are_no_burst_and_leave_no_trust() {
    let folder = Folder::new();
    let of =
        |text: String| super::counters::report(&folder.file("hole.json", text), r#"{"rate": "1Gbps", "above": "20KB"}"#).unwrap();
    let found = |told: &crate::trace::TraceReport| {
        let finding = told.plausibility.findings.iter().find(|finding| finding.code == "drops_unseen");
        finding.map(|finding| (finding.count, finding.words.clone()))
    };
    // Looks each 10 ms, then none for half of a second, in which 70 packets are dropped.
    let hole = |backlog: u64| {
        let before = (0..30).map(|n| (n * 10, 0, 4));
        before.chain((80..100).map(move |n| (n * 10, if n == 80 { backlog } else { 0 }, 74)))
    };
    let told = of(looks(hole(0)));
    let nothing = told.ports[0].nothing.as_ref().unwrap();
    assert!(nothing.words.starts_with("whether there was a burst is unknown: 70 packets were dropped"), "{}", nothing.words);
    let words = "70 packets were dropped while no look saw a burst, between 290 ms and 800 ms, where looks are missing";
    assert_eq!(found(&told), Some((70, words.into())));
    assert_eq!((told.ports[0].dropped, told.plausibility.trust), (Some(70), crate::checks::Trust::Limited));
    // A burst that stands at the end of the hole need not have dropped them.
    let told = of(looks(hole(50_000)));
    assert_eq!((told.ports[0].bursts.len(), told.ports[0].bursts[0].dropped_packets), (1, Some(0)));
    assert_eq!(found(&told), Some((70, words.into())));
    // Between two looks that are no further apart than usual nobody saw what filled the queue either.
    let told = of(looks((0..30).map(|n| (n * 10, 0, if n < 20 { 0 } else { 5 }))));
    assert_eq!(found(&told), Some((5, "5 packets were dropped while no look saw a burst, between 190 ms and 200 ms".into())));
    assert!(told.ports[0].nothing.as_ref().unwrap().words.starts_with("whether there was a burst is unknown"));
    // Next to a look with a high queue they are of its burst.
    for at in [20, 21] {
        let told = of(looks((0..30).map(|n| (n * 10, if n == 20 { 50_000 } else { 0 }, if n < at { 0 } else { 5 }))));
        assert_eq!(found(&told), None, "{at}");
    }
    // The same looks as a table.
    let rows: String = hole(0).map(|(ms, backlog, drops)| format!("{ms},{backlog},{drops}\n")).collect();
    let options = r#"{"rate": "1Gbps", "above": "20KB", "columns": "time=t:ms,queue=q:B,dropped=d:total"}"#;
    let told = super::counters::report(&folder.file("hole.csv", format!("t,q,d\n{rows}")), options).unwrap();
    assert_eq!(found(&told), Some((70, words.into())));
}

#[test]
fn a_date_that_is_no_time_before_documents_names_the_one_that_is() {
    let folder = Folder::new();
    let qdisc = r#"[{"kind":"bfifo","handle":"2:","backlog":1,"drops":0}]"#;
    let said = failure(&folder.file("a.json", format!("Sat Nov 28 14:27:49 UTC 2026\n{qdisc}\n")), None);
    assert!(said.contains("line 1: 'Sat Nov 28 14:27:49 UTC 2026' is neither a time nor a list of qdiscs"), "{said}");
    assert!(said.contains("date +%s.%N"), "{said}");
    // The same before blocks of other commands.
    for text in ["IF-MIB::ifHCOutOctets.3 = Counter64: 12\n", "NIC statistics:\n     tx_bytes: 12\n"] {
        let (_, _, notes) = all(&folder.file("b.txt", format!("Sat Nov 28 14:27:49 UTC 2026\n{text}")), None).unwrap();
        assert!(notes.iter().any(|note| note.contains("one look at the counters") && note.contains("date +%s.%N")), "{notes:?}");
    }
    let options = r#"{"rate": "1Gbps", "buffer": "128KB"}"#;
    let said = super::counters::report(&folder.file("c.json", format!("1\n{qdisc}\n2\n{qdisc}\n")), options).unwrap_err();
    assert!(said.contains("leave the buffer away") && said.contains("--set switch.buffer.per_port=128KB"), "{said}");
}

#[test]
fn a_queue_longer_than_its_bfifo_is_a_doubt() {
    let folder = Folder::new();
    let found = |kind: &str| {
        let one = |n: u64| {
            let backlog = if n == 3 { 70_000 } else { 64_000 };
            format!("{n}\n[{{\"kind\":\"{kind}\",\"handle\":\"2:\",\"options\":{{\"limit\":64000}},\"drops\":0,\"backlog\":{backlog}}}]\n")
        };
        let text: String = (0..6).map(one).collect();
        let told = super::counters::report(&folder.file("q.json", text), r#"{"rate": "1Gbps", "above": "90KB"}"#).unwrap();
        let finding = told.plausibility.findings.iter().find(|finding| finding.code == "queue_above_buffer");
        finding.map(|finding| (finding.count, finding.words.clone()))
    };
    let words = "1 look with a queue longer than the buffer: 70 KB at 3 s, in q bfifo 2: with a limit of 64 KB";
    assert_eq!(found("bfifo"), Some((1, words.into())));
    assert_eq!(found("pfifo"), None, "its limit is of packets");
}
