//! Streams of telemetry, of which the bytes are put together here by the numbers of their public descriptions.

use super::counters::report;
use super::{failure, readings, Folder};
use crate::counters::{Interval, Reading, State};
use crate::trace::Mapping;
use fanin_wire::notification::{Addresses, Notice};

/// A number of 7 bits by byte.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field of protobuf that is a number, and one that is bytes.
pub fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

pub fn text(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// A message behind its length.
fn framed(message: &[u8]) -> Vec<u8> {
    [varint(message.len() as u64), message.to_vec()].concat()
}

/// Configuration as in goarista's lanz/client_test.go: segments of 512 B, thresholds of 50,000 and 25,000 segments. Field numbers: lanz.proto.
pub fn config() -> Vec<u8> {
    let port = [text(1, b"Cpu"), number(2, 2048), number(3, 4096), number(4, 0), number(5, 50_000), number(6, 25_000)].concat();
    let config =
        [number(1, 146_591_697_107_544), number(2, 1), number(3, 146), number(4, 512), number(5, 524_288_000), text(6, &port)];
    framed(&text(1, &config.concat()))
}

pub fn congestion(time: u64, segments: u64, kind: u64, more: &[(u64, u64)]) -> Vec<u8> {
    congestion_at(b"Cpu", time, segments, kind, more)
}

pub fn congestion_at(port: &[u8], time: u64, segments: u64, kind: u64, more: &[(u64, u64)]) -> Vec<u8> {
    let mut record =
        [number(1, time), text(2, port), number(3, 2048), number(4, 4096), number(5, segments), number(6, kind)].concat();
    more.iter().for_each(|(field, value)| record.extend(number(*field, *value)));
    framed(&text(2, &record))
}

pub fn intervals(bytes: &[u8], name: &str, columns: Option<&str>) -> (Vec<(String, Interval)>, Vec<String>) {
    let folder = Folder::new();
    let (found, notes) = readings(&folder.file(name, bytes), columns).unwrap();
    let of = |(port, reading)| match reading {
        Reading::Interval(interval) => Some((port, interval)),
        _ => None,
    };
    (found.into_iter().filter_map(of).collect(), notes)
}

fn us(interval: &Interval, first: u64) -> (u64, u64) {
    let of = |time: fanin_units::Time| time.ps() / 1_000_000 - first;
    (of(interval.start), of(interval.end))
}

#[test]
fn lanz_streams_tell_congestions_in_bytes_by_their_own_segments() {
    // Times of the test values of goarista are in tens of microseconds: 2016, not 1974.
    let at = |tens: u64| 146_591_697_107_546 + tens;
    let stream = [
        config(),
        congestion(at(0), 60_000, 1, &[(10, 0)]),
        congestion(at(50), 80_000, 2, &[(10, 3)]),
        congestion(at(90), 90_000, 3, &[(8, 700), (10, 1)]),
    ]
    .concat();
    let (found, notes) = intervals(&stream, "lanz.bin", None);
    let first = found[0].1.start.ps() / 1_000_000;
    let told: Vec<_> = found.iter().map(|(_, i)| (us(i, first), i.queue, i.watermark, i.dropped)).collect();
    assert_eq!(
        told,
        [
            ((0, 0), Some(0), None, None),
            ((0, 0), Some(60_000 * 512), None, Some(0)),
            ((0, 500), Some(80_000 * 512), None, Some(3)),
            ((500, 900), None, Some(90_000 * 512), Some(1)),
            ((900, 900), Some(0), None, None),
        ]
    );
    assert!(found.iter().all(|(port, i)| port == "Cpu" && i.state == State::Known));
    assert!(notes.iter().any(|note| note.contains("LANZ tells queues above 25600000 B")), "{notes:?}");
    assert!(notes[0].contains("2016-06-14"), "{notes:?}");
    // Whatever bytes come at a time, and whatever is cut off at the end, messages are the same.
    let folder = Folder::new();
    let told = report(&folder.file("cut.bin", &stream[..stream.len() - 3]), r#"{"rate": "10Gbps"}"#).unwrap();
    assert_eq!((told.ports[0].bursts_found, told.ports[0].dropped, told.ports[0].bursts[0].open), (1, Some(3), true));
    let told = report(&folder.file("whole.bin", &stream), r#"{"rate": "10Gbps"}"#).unwrap();
    let burst = &told.ports[0].bursts[0];
    assert_eq!((burst.duration_ps, burst.peak_bytes, burst.dropped_packets), (900_000_000, Some(90_000 * 512), Some(4)));
    assert!(!burst.open && !burst.cut && !burst.counted.as_ref().unwrap().peak_at_least);
}

#[test]
fn lanz_streams_without_their_beginning_have_no_unit() {
    let folder = Folder::new();
    let path = folder.file("lanz.bin", congestion(146_591_697_107_546, 7, 1, &[]));
    let said = failure(&path, None);
    assert!(said.contains("message 1: '7' counts segments, and no configuration before says how large they are"), "{said}");
    assert!(said.contains("capture the stream from its beginning"), "{said}");
    let endless = [config(), vec![0xff; 12]].concat();
    let said = failure(&folder.file("endless.bin", &endless), None);
    assert!(said.contains("message 2: is no length of a message: it does not end"), "{said}");
    let long = [config(), varint(1 << 30)].concat();
    let said = failure(&folder.file("long.bin", &long), None);
    assert!(said.contains("'1073741824' is no length of a LANZ message; accepted: up to 1048576 bytes"), "{said}");
    let said = failure(&folder.file("broken.bin", [config(), framed(&[0x12, 0x05, 0x08])].concat()), None);
    assert!(said.contains("message 2: is no LANZ message"), "{said}");
}

/// Lines of `show queue-monitor length csv` of a 7150 with EOS 4.12, as the mock switch of Arista's tap aggregation page has them.
pub const LANZ_CSV: &str = "\nReport generated at 2013-08-12 21:56:17
Type,Time,Interface,Duration(usecs),Queue-Length,Time-Of-Max-Queue(usecs),Latency(usecs),,Tx-Drops
 S,2013-08-12 21:55:59.53203,Et4(1),N/A,559,N/A,51.875,0
 U,2013-08-12 21:55:59.53213,Et4(1),N/A,888,N/A,82.406,0
 U,2013-08-12 21:55:59.53222,Et4(1),N/A,1184,N/A,109.875,0
 U,2013-08-12 21:55:59.53230,Et4(1),N/A,1502,N/A,139.385,0
 U,2013-08-12 21:55:59.53265,Et4(1),N/A,2725,N/A,252.880,500000
 U,2013-08-12 21:55:59.53274,Et4(1),N/A,3018,N/A,280.070,0
";

#[test]
fn lanz_tables_ask_for_the_size_of_a_segment() {
    let folder = Folder::new();
    let path = folder.file("lanz.csv", LANZ_CSV);
    let asked = failure(&path, None);
    assert!(asked.contains("queue: the queue counts segments, and the table does not say how large they are"), "{asked}");
    assert!(asked.contains("--columns queue=Queue-Length:segments(480B)"), "{asked}");
    let other = failure(&path, Some("time=Time:iso,queue=Queue-Length:segments(480B)"));
    assert!(other.contains("names columns of LANZ's table, which are known"), "{other}");
    let columns = "queue=Queue-Length:segments(480B)";
    assert!(Mapping::read(columns).is_ok());
    let (found, notes) = intervals(LANZ_CSV.as_bytes(), "lanz.csv", Some(columns));
    let first = found[0].1.start.ps() / 1_000_000;
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), us(i, first), i.queue, i.dropped)).collect();
    assert_eq!(told[1], ("Et4(1)", (0, 0), Some(559 * 480), Some(0)));
    assert_eq!(told[2], ("Et4(1)", (0, 100), Some(888 * 480), Some(0)));
    assert_eq!(told[5], ("Et4(1)", (270, 620), Some(2725 * 480), Some(500_000)));
    assert_eq!(told.len(), 7);
    assert!(notes.iter().any(|note| note.contains("no time zone")), "{notes:?}");
    // The newest entry first is the same.
    let mut lines: Vec<&str> = LANZ_CSV.trim_start().lines().collect();
    lines[2..].reverse();
    let turned = intervals((lines.join("\n") + "\n").as_bytes(), "turned.csv", Some(columns)).0;
    assert_eq!(turned, found);
    let wrong = LANZ_CSV.replace(" S,", " X,");
    let said = failure(&folder.file("wrong.csv", &wrong), Some(columns));
    assert!(said.contains("line 4: Type: 'X' is no type of an entry; accepted: S, U, E, P"), "{said}");
}

#[test]
fn a_row_of_lanz_that_comes_twice_is_no_second_burst() {
    let rows = "Type,Time,Interface,Queue-Length,Time-Of-Max-Queue(usecs),Tx-Drops
S,2026-11-21 08:00:00.00100,Et4,600,N/A,0\nE,2026-11-21 08:00:00.00120,Et4,900,50,3\nE,2026-11-21 08:00:00.00120,Et4,900,50,3\n";
    let folder = Folder::new();
    let options = r#"{"rate": "10Gbps", "above": "100KB", "columns": "queue=Queue-Length:segments(480B)"}"#;
    let port = report(&folder.file("lanz.csv", rows), options).unwrap().ports.remove(0);
    assert_eq!((port.bursts_found, port.dropped, port.bursts[0].peak_bytes), (1, Some(3), Some(900 * 480)));
    let unknown = &port.counted.unwrap().unknown;
    assert_eq!((unknown[0].state, unknown[0].intervals, unknown[0].ps), ("repeated", 1, 0));
}

#[test]
fn a_table_of_lanz_that_lacks_something_says_what() {
    let folder = Folder::new();
    let segments = Some("queue=Queue-Length:segments(480B)");
    let said = failure(&folder.file("a.csv", LANZ_CSV), Some("queue=Queue-Length:B"));
    let part = "queue: 'B' is not its unit: the queue counts segments, and the table does not say how large they are; accepted: segments(SIZE)";
    assert!(said.contains(part), "{said}");
    let said = failure(&folder.file("b.csv", LANZ_CSV.replace("Queue-Length", "Depth")), segments);
    assert!(
        said.contains("line 3: lacks the column 'Queue-Length', by which LANZ tells the queue; the columns are: Type,Time"),
        "{said}"
    );
    let said = failure(&folder.file("c.csv", LANZ_CSV.replace("N/A,888,N/A,82.406,0", "888")), segments);
    assert!(
        said.contains("line 5: 'U,2013-08-12 21:55:59.53213,Et4(1),888' has 4 values; accepted: 9 or 8, as many as"),
        "{said}"
    );
}

#[test]
fn a_table_of_lanz_may_be_longer_than_the_longest_message() {
    // 17 MB, the newest entry first.
    let mut rows = String::from("Type,Time,Interface,Queue-Length\n");
    let (count, name) = (40_000_u64, "e".repeat(400));
    for i in (0..count).rev() {
        let (s, tens) = (i / 10_000, i % 10_000 * 10);
        rows.push_str(&format!("P,2026-11-21 08:00:{s:02}.{tens:05},{name}{},{}\n", i % 2, i % 100));
    }
    assert!(rows.len() > 16 << 20, "{}", rows.len());
    let folder = Folder::new();
    let options = r#"{"rate": "10Gbps", "above": "48KB", "columns": "queue=Queue-Length:segments(512B)"}"#;
    let told = report(&folder.file("lanz.csv", rows), options).unwrap();
    assert_eq!(told.ports.iter().map(|port| port.records).sum::<u64>(), count);
    assert_eq!(told.ports[0].peak_bytes, Some(99 * 512));
}

pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

pub fn sample(kind: u32, body: &[u8]) -> Vec<u8> {
    [words(&[kind, body.len() as u32]), body.to_vec()].concat()
}

/// A datagram of agent 10.0.0.1.
pub fn datagram(sequence: u32, uptime: u32, samples: &[Vec<u8>]) -> Vec<u8> {
    [words(&[5, 1, 0x0a00_0001, 0, sequence, uptime, samples.len() as u32]), samples.concat()].concat()
}

/// `if_counters` of interface 7 with 10 Gb/s (sflow_version_5.txt): octets and discards that went out.
pub fn counters(octets: u64, discards: u32) -> Vec<u8> {
    let speed = 10_000_000_000_u64;
    let before = words(&[7, 6, (speed >> 32) as u32, speed as u32, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0]);
    let after = words(&[(octets >> 32) as u32, octets as u32, 100, 0, 0, discards, 0, 0]);
    let record = sample(1, &[before, after].concat());
    assert_eq!(record.len(), 8 + 88);
    sample(2, &[words(&[1, 7, 1]), record].concat())
}

/// An Ethernet frame of 10.0.0.5:40000 to 10.0.0.9:80 over TCP, its first 54 bytes.
fn header() -> Vec<u8> {
    let mut frame = vec![0; 54];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14..34].copy_from_slice(&[0x45, 0, 0x05, 0xdc, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 5, 10, 0, 0, 9]);
    frame[34..38].copy_from_slice(&[0x9c, 0x40, 0, 80]);
    frame[46] = 0x50;
    frame
}

fn header_record() -> Vec<u8> {
    sample(1, &[words(&[1, 1518, 4, 54]), header(), vec![0; 2]].concat())
}

/// A flow sample, one of 1000 packets, of a packet that leaves at interface 7.
fn flow() -> Vec<u8> {
    sample(1, &[words(&[1, 3, 1_000, 5_000, 0, 3, 7, 1]), header_record()].concat())
}

/// A packet that was dropped at interface 7 (sflow_drops.txt): the source is of two words.
fn drop(reason: u32, untold: u32) -> Vec<u8> {
    sample(5, &[words(&[1, 0, 3, untold, 3, 7, reason, 1]), header_record()].concat())
}

#[test]
fn sflow_tells_counters_who_talked_and_drops() {
    // 1 s of 10 Gb/s are 1.25 GB: 10 %, 80 %, 10 %.
    let datagrams = [
        datagram(1, 1_000, &[counters(0, 5)]),
        datagram(2, 2_000, &[counters(125_000_000, 5)]),
        datagram(3, 2_400, &[flow(), flow()]),
        datagram(4, 3_000, &[counters(1_125_000_000, 25)]),
        datagram(6, 4_000, &[counters(1_250_000_000, 25)]),
    ];
    let folder = Folder::new();
    let told = report(&folder.file("sflow.bin", datagrams.concat()), "{\"sort\": false}").unwrap();
    let port = &told.ports[0];
    assert_eq!((port.port.as_str(), port.rate_bps, port.bursts_found), ("10.0.0.1 if 7", Some(10_000_000_000), 1));
    let burst = &port.bursts[0];
    let second = 1_000_000_000_000;
    assert_eq!((burst.start_ps, burst.end_ps, burst.dropped_packets), (2 * second, 3 * second, Some(20)));
    assert_eq!(burst.indirect[0].name, "10.0.0.5:40000 > 10.0.0.9:80 tcp");
    assert_eq!((burst.indirect[0].bytes, burst.indirect[0].share), (2 * 1_518_000, 1.0));
    let said = told.notes.join("\n");
    assert!(said.contains("5 datagrams of sFlow from 1 agent") && said.contains("1 datagram is missing"), "{said}");
}

#[test]
fn drops_that_sflow_tells_are_of_a_flow_and_have_a_reason() {
    let datagrams = [
        datagram(1, 1_000, &[counters(0, 0)]),
        datagram(2, 2_000, &[counters(125_000_000, 0), drop(259, 0), drop(260, 4), drop(258, 4)]),
        datagram(3, 3_000, &[counters(250_000_000, 9)]),
    ];
    let folder = Folder::new();
    let told = report(&folder.file("sflow.bin", datagrams.concat()), r#"{"rate": "10Gbps"}"#).unwrap();
    let port = &told.ports[0];
    // Two of a queue; the counter is the same drops again, and the ACL is no queue.
    assert_eq!((port.dropped, port.bursts_found), (Some(2), 1));
    let burst = &port.bursts[0];
    assert_eq!((burst.dropped_packets, burst.counted.as_ref().unwrap().shown_by.as_slice()), (Some(2), &["drops"][..]));
    assert_eq!((burst.indirect[0].name.as_str(), burst.indirect[0].bytes), ("10.0.0.5:40000 > 10.0.0.9:80 tcp", 2 * 1_518));
    let said = told.notes.join("\n");
    for part in [
        "1 drop that agents told: no buffer space (259)",
        "RED (260)",
        "ACL (258), which no queue is behind",
        "4 more drops that agents did not tell",
    ] {
        assert!(said.contains(part), "{part}\nin\n{said}");
    }
}

#[test]
fn looks_within_an_interval_are_of_one_source() {
    let folder = Folder::new();
    let mixed = |name: &str, bytes: Vec<u8>| {
        let told = report(&folder.file(name, bytes), r#"{"rate": "10Gbps"}"#).unwrap();
        told.plausibility.findings.iter().any(|finding| finding.code == "mixed_sources")
    };
    // Drops between two counters, and a queue that is polled while a congestion lasts.
    let datagrams = [
        datagram(1, 1_000, &[counters(0, 0)]),
        datagram(2, 1_500, &[drop(259, 0)]),
        datagram(3, 2_000, &[counters(125_000_000, 0)]),
    ];
    assert!(!mixed("sflow.bin", datagrams.concat()));
    let at = |tens: u64| 146_591_697_107_546 + tens;
    let stream = [(0, 1), (20, 4), (50, 2), (90, 3)].map(|(tens, kind)| congestion(at(tens), 60_000, kind, &[]));
    assert!(!mixed("lanz.bin", [config(), stream.concat()].concat()));
}

#[test]
fn sflow_in_a_capture_has_the_times_of_the_capture() {
    let mut pcap = [0xa1b2_c3d4_u32.to_be_bytes().to_vec(), vec![0, 2, 0, 4], words(&[0, 0, 65_535, 1])].concat();
    for (second, sequence, octets) in [(1_700_000_000_u32, 1, 0_u64), (1_700_000_020, 2, 25_000_000_000)] {
        let payload = datagram(sequence, 9, &[counters(octets, 0)]);
        let length = 28 + payload.len() as u16;
        let mut frame = vec![0; 42];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&length.to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..40].copy_from_slice(&[0x20, 0, 0x18, 0xc7, (length >> 8) as u8, length as u8 - 20]);
        frame[38..40].copy_from_slice(&(length - 20).to_be_bytes());
        frame.extend(payload);
        pcap.extend(words(&[second, 0, frame.len() as u32, frame.len() as u32]));
        pcap.extend(frame);
    }
    let (found, notes) = intervals(&pcap, "sflow.pcap", None);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].1.length(), found[0].1.sent, found[0].1.packets), (20_000_000_000_000, Some(25_000_000_000), Some(0)));
    assert!(notes[0].contains("2023-11-14"), "{notes:?}");
}

#[test]
fn sflow_that_is_cut_or_lies_says_where() {
    let folder = Folder::new();
    let whole = datagram(1, 1_000, &[counters(0, 0)]);
    let mut long = whole.clone();
    long[32..36].copy_from_slice(&[0xff; 4]);
    let mut many = whole.clone();
    many[24..28].copy_from_slice(&[0x7f; 4]);
    for (bytes, said) in [
        (whole[..50].to_vec(), "datagram 1: ends within a field"),
        (long, "datagram 1: ends within a field"),
        (many, "datagram 1: '2139062143' is no number of samples in a datagram; accepted: up to 10000"),
        (
            [&whole[..], &words(&[4, 1, 2, 3, 4, 5, 6])].concat(),
            "datagram 2: '4' is no version of sFlow that is read; accepted: 5",
        ),
    ] {
        let text = failure(&folder.file("sflow.bin", &bytes), None);
        assert!(text.contains(said), "{said}\nin\n{text}");
    }
}

#[test]
fn snmp_series_are_read_by_name_by_number_and_by_index() {
    let names = "IF-MIB::ifName[3] = STRING: Ethernet3\nIF-MIB::ifHighSpeed[3] = Gauge32: 10000\n";
    let poll = |time: u64, octets: u64, drops: u64| {
        format!("{time}\nIF-MIB::ifOutOctets[3] = Counter32: {}\nIF-MIB::ifHCOutOctets[3] = Counter64: {octets}\nIF-MIB::ifOutDiscards[3] = Counter32: {drops}\nIF-MIB::ifInErrors[3] = Counter32: 4\n", octets as u32)
    };
    let polls = [
        poll(1_700_000_000, 5_000_000_000, 0),
        names.into(),
        poll(1_700_000_060, 80_000_000_000, 0),
        poll(1_700_000_120, 81_000_000_000, 4),
    ]
    .concat();
    let (found, _) = intervals(polls.as_bytes(), "polls.txt", None);
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.length() / 1_000_000_000_000, i.sent, i.dropped)).collect();
    assert_eq!(told, [("Ethernet3", 60, Some(75_000_000_000), Some(0)), ("Ethernet3", 60, Some(1_000_000_000), Some(4))]);
    // 75 GB in a minute are 10 Gb/s: the speed is in the table.
    let folder = Folder::new();
    let report = report(&folder.file("polls.txt", &polls), r#"{"by": "rate"}"#).unwrap();
    let port = &report.ports[0];
    assert_eq!((port.rate_bps, port.bursts_found, port.dropped), (Some(10_000_000_000), 1, Some(4)));
    assert!(port.notes.iter().any(|note| note.contains("intervals of 60 s show load, not microbursts")), "{:?}", port.notes);
    // Numbers instead of names, and an index behind a dot.
    let numbers = "2023-11-14T22:13:20Z\n.1.3.6.1.2.1.31.1.1.1.10.7 = Counter64: 5\n2023-11-14T22:14:20Z\niso.3.6.1.2.1.31.1.1.1.10.7 = Counter64: 9\n";
    let (found, _) = intervals(numbers.as_bytes(), "polls.txt", None);
    assert_eq!(found.iter().map(|(port, i)| (port.as_str(), i.sent)).collect::<Vec<_>>(), [("if 7", Some(4))]);
    let untimed = "IF-MIB::ifHCOutOctets.3 = Counter64: 5\n1700000000\nIF-MIB::ifHCOutOctets.3 = Counter64: x\n";
    let said = failure(&folder.file("untimed.txt", untimed), None);
    assert!(said.contains("line 3: 'Counter64: x' is no counter; accepted: for example Counter64: 12345"), "{said}");
}

#[test]
fn counters_of_32_bits_on_a_fast_port_are_unknown_each_minute() {
    let poll = |time: u64, octets: u64| {
        format!("{time}\nIF-MIB::ifOutOctets.3 = Counter32: {octets}\nIF-MIB::ifHighSpeed.3 = Gauge32: 10000\n")
    };
    let polls: String = (0..4).map(|i| poll(1_700_000_000 + 60 * i, 4_000_000_000 - 900_000_000 * i)).collect();
    let folder = Folder::new();
    let told = report(&folder.file("polls.txt", &polls), r#"{"by": "rate"}"#).unwrap();
    let port = &told.ports[0];
    let unknown = &port.counted.as_ref().unwrap().unknown;
    assert_eq!((port.bursts_found, unknown[0].state, unknown[0].intervals), (0, "rollover", 3));
}

#[test]
fn statistics_of_a_nic_are_those_of_its_port_before_those_of_its_queues() {
    let look = |time: &str, phy: u64, queue: u64, drops: u64| {
        format!("{time}\nNIC statistics:\n     rx_bytes: 9\n     tx_bytes: {queue}\n     tx_discards_phy: {drops}\n     tx_bytes_phy: {phy}\n     tx0_bytes: 5\n")
    };
    let series = [look("1700000000.25", 100, 7, 0), look("1700000000.75", 900, 8, 2)].concat();
    let (found, _) = intervals(series.as_bytes(), "eth0.txt", None);
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.length(), i.sent, i.dropped)).collect();
    assert_eq!(told, [("eth0", 500_000_000_000, Some(800), Some(2))]);
    let folder = Folder::new();
    let said = failure(
        &folder.file("eth0.txt", "NIC statistics:\n  tx_bytes: 5\n1700000000\nNIC statistics:\n  tx_bytes: five\n"),
        None,
    );
    assert!(said.contains("line 5: tx_bytes: 'five' is no counter"), "{said}");
    let (_, notes) = intervals(b"NIC statistics:\n     tx_bytes: 5\n", "eth0.txt", None);
    assert!(notes[0].contains("one look at the counters, which shows nothing"), "{notes:?}");
}

#[test]
fn drops_that_agents_tell_stand_beside_notifications() {
    // The capture of the examples, and in its last burst notifications of the drops, as a mirror of the agent's port shows both.
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/sflow.pcap");
    let mut bytes = std::fs::read(path).unwrap();
    let record = |seq: u32| {
        let addresses = Addresses::V4 { src: [10, 7, 0, 24].into(), dst: [10, 7, 0, 25].into() };
        let frame = Notice { addresses, ports: (40_095, 80), seq, length: 1_000, operation: 1 }.alone([2; 6], [4; 6]);
        let words = [1_795_219_200, 34_000_000 + seq, frame.len() as u32, frame.len() as u32];
        [words.map(u32::to_le_bytes).concat(), frame].concat()
    };
    let all: Vec<u8> = (0..7).flat_map(record).collect();
    bytes.extend(&all);
    let folder = Folder::new();
    let told = report(&folder.file("both.pcap", &bytes), r#"{"share": 0.05}"#).unwrap();
    let notices = told.notifications.unwrap();
    assert_eq!((notices.frames, notices.alone, notices.told_bytes, notices.flows), (7, 7, 7_000, 1));
    let port = &told.ports[0];
    let drops: Vec<_> = port.bursts.iter().map(|burst| (burst.dropped_packets, burst.notifications)).collect();
    assert_eq!((port.dropped, drops), (Some(39), vec![(Some(0), Some(0)), (Some(0), Some(0)), (Some(39), Some(7))]));
    assert!(!told.notes.iter().any(|note| note.contains("are no sFlow")), "{:?}", told.notes);
}

/// Events in the form of gnmic's documentation of event processors.
fn event(ns: u64, values: &str) -> String {
    format!(
        r#"[{{"name":"sub1","timestamp":{ns},"tags":{{"interface_name":"ethernet-1/1","queue_name":"3","source":"leaf1:57400","subscription-name":"sub1"}},"values":{{{values}}}}}]"#
    )
}

#[test]
fn gnmi_events_and_messages_are_counters_of_queues() {
    let most = "/qos/interfaces/interface/output/queues/queue/state/max-queue-len";
    let octets = "/qos/interfaces/interface/output/queues/queue/state/transmit-octets";
    let at = |i: u64| 1_700_000_000_000_000_000 + i * 1_000_000_000;
    let stream = [
        event(at(0), &format!(r#""{octets}":"1000","{most}":500"#)),
        // Parts of one look may come in several messages.
        event(at(1), &format!(r#""{octets}":"3000""#)),
        event(at(1), &format!(r#""{most}":90000,"/x/dropped-pkts":0"#)),
        event(at(2), &format!(r#""{octets}":"3500","{most}":90000,"/x/dropped-pkts":4,"/x/other":"text""#)),
    ]
    .join("\n");
    let (found, notes) = intervals(stream.as_bytes(), "events.json", None);
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.sent, i.watermark, i.dropped)).collect();
    let port = "leaf1:57400 ethernet-1/1 queue 3";
    assert_eq!(told, [(port, Some(2_000), Some(90_000), None), (port, Some(500), None, Some(4))]);
    assert!(
        notes.iter().any(|note| note.contains("max-queue-len is the largest queue since the switch began to count")),
        "{notes:?}"
    );
    let message = |i: u64, octets: u64| {
        format!("{{\n \"source\": \"leaf1\",\n \"subscription-name\": \"s\",\n \"timestamp\": {},\n \"updates\": [{{\"Path\": \"interfaces/interface[name=Ethernet5]/state/counters\", \"values\": {{\"interfaces/interface/state/counters\": {{\"openconfig-interfaces:out-octets\": \"{octets}\", \"in-octets\": \"1\"}}}}}}]\n}}\n", at(i))
    };
    let messages = [message(0, 10), "{\"sync-response\": true}\n".into(), message(1, 30)].concat();
    let (found, _) = intervals(messages.as_bytes(), "messages.json", None);
    assert_eq!(found.iter().map(|(port, i)| (port.as_str(), i.sent)).collect::<Vec<_>>(), [("leaf1 Ethernet5", Some(20))]);
    let folder = Folder::new();
    let said = failure(&folder.file("bad.json", stream.replace("\"3500\"", "\"many\"")), None);
    assert!(said.contains(r#"document 4: transmit-octets: '"many"' is no counter"#), "{said}");
    let (found, notes) = intervals(&stream.as_bytes()[..stream.len() - 2], "cut.json", None);
    assert_eq!(found.len(), 1, "what is whole is read");
    assert!(notes.iter().any(|note| note.contains("ends within a message")), "{notes:?}");
}

/// An IPFIX message of domain 7 with one set (RFC 7011).
pub fn ipfix(set: u16, body: &[u8]) -> Vec<u8> {
    let lengths = [(20 + body.len()) as u16, (4 + body.len()) as u16].map(u16::to_be_bytes);
    [&[0, 10][..], &lengths[0], &[0; 8], &[0, 0, 0, 7], &set.to_be_bytes(), &lengths[1], body].concat()
}

/// A field of a template: element, length, and SAI object type and statistic (SONiC's high-frequency telemetry, §7.2.2).
pub fn field(element: u16, length: u16, sai: Option<(u16, u16)>) -> Vec<u8> {
    let bit = if sai.is_some() { 0x8000 } else { 0 };
    let mut field = [(element | bit).to_be_bytes(), length.to_be_bytes()].concat();
    if let Some((kind, statistic)) = sai {
        field.extend([kind.to_be_bytes(), statistic.to_be_bytes()].concat());
    }
    field
}

pub fn template(id: u16, fields: &[Vec<u8>]) -> Vec<u8> {
    ipfix(2, &[&id.to_be_bytes()[..], &(fields.len() as u16).to_be_bytes(), &fields.concat()].concat())
}

#[test]
fn sonic_records_are_read_by_their_templates() {
    // Ports and a queue in one template (MIXED), a placeholder of 4 bytes, counters of 8, 4 and 2 bytes.
    let fields = [
        field(325, 8, None),
        field(0, 4, Some((0, 0))),
        field(2, 8, Some((1, 9))),
        field(2, 2, Some((1, 12))),
        field(5, 4, Some((1, 9))),
        field(7, 4, Some((21, 0x19))),
        field(7, 8, Some((21, 1))),
        field(9, 8, Some((24, 1))),
    ];
    let record = |us: u64, counts: (u64, u16, u32), queue: (u32, u64)| {
        let time = 1_700_000_000_000_000_000 + us * 1_000;
        let parts = [&time.to_be_bytes()[..], &[0xde, 0xad, 0xbe, 0xef], &counts.0.to_be_bytes(), &counts.1.to_be_bytes()];
        let more = [&counts.2.to_be_bytes()[..], &queue.0.to_be_bytes(), &queue.1.to_be_bytes(), &[0; 8]];
        [parts.concat(), more.concat()].concat()
    };
    let stream = [
        ipfix(300, &record(0, (1, 1, 1), (1, 1))),
        template(300, &fields),
        ipfix(300, &[record(100, (1_000, 65_535, u32::MAX - 99), (500, 10)), record(200, (9_000, 2, 300), (7_000, 30))].concat()),
        template(300, &fields),
        ipfix(300, &record(300, (9_000, 2, 300), (7_000, 70))),
    ]
    .concat();
    let (found, notes) = intervals(&stream, "hft.bin", None);
    let told: Vec<_> =
        found.iter().map(|(port, i)| (port.as_str(), i.length() / 1_000_000, i.sent, i.dropped, i.watermark)).collect();
    assert_eq!(
        told,
        [
            ("port 2", 100, Some(8_000), Some(3), None),
            ("port 5", 100, Some(400), None, None),
            ("queue 7", 100, Some(20), None, Some(7_000)),
            ("port 2", 100, Some(0), Some(0), None),
            ("port 5", 100, Some(0), None, None),
            ("queue 7", 100, Some(40), None, None),
        ]
    );
    let said = notes.join("\n");
    assert!(said.contains("sets of template 300, which was not told before: 1") && said.contains("object type 24"), "{said}");
    assert!(said.contains("3 records in 5 messages"), "{said}");
}

#[test]
fn sonic_times_may_be_of_two_elements() {
    let fields = [field(322, 4, None), field(325, 4, None), field(1, 8, Some((1, 9)))];
    let record =
        |seconds: u32, ns: u32, octets: u64| [&seconds.to_be_bytes()[..], &ns.to_be_bytes(), &octets.to_be_bytes()].concat();
    let data = [record(1_700_000_000, 999_999_000, 5), record(1_700_000_001, 1_000, 9)].concat();
    let stream = [template(256, &fields), ipfix(256, &data)].concat();
    let (found, _) = intervals(&stream, "hft.bin", None);
    assert_eq!(
        found.iter().map(|(port, i)| (port.as_str(), i.length(), i.sent)).collect::<Vec<_>>(),
        [("port 1", 2_000_000, Some(4))]
    );
}

#[test]
fn sonic_messages_that_lie_say_where() {
    let folder = Folder::new();
    let good = template(256, &[field(325, 8, None), field(1, 8, Some((1, 9)))]);
    let untimed = [template(257, &[field(1, 8, Some((1, 9)))]), ipfix(257, &[0; 8])].concat();
    let mut long = good.clone();
    long[18] = 0xff;
    for (bytes, said) in [
        (
            [&good[..], &[0, 9, 0, 20], &[0; 16]].concat(),
            "message 2: 'version 9, 20 bytes' is no header of an IPFIX message; accepted: version 10",
        ),
        ([&good[..], &long].concat(), "message 2: set 2: '65300' is no length of a set"),
        (untimed, "message 2: template: '257' has no time in its records; accepted: element 325 of 8 bytes, or 322 and 325"),
        (template(256, &[field(82, u16::MAX, None)]), "template 256: '82' has a field of variable length"),
    ] {
        let text = failure(&folder.file("hft.bin", &bytes), None);
        assert!(text.contains(said), "{said}\nin\n{text}");
    }
}

#[test]
fn runs_of_millisampler_are_milliseconds_of_a_host() {
    let run = r#"{"rack_id": 1156, "server_hostname": 106088, "sampling_freq": 1000, "egressBytes": [1, 1, 1, 1, 1],
        "burst_result": {"ingress": {"1650000000123456": [{"Position": 1, "Length": 2}]}}, "ingressBytes": [100000, 1500000, 1200000, null, 90000]}"#;
    let (found, notes) = intervals(run.as_bytes(), "run.txt", None);
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.length() / 1_000_000_000, i.sent, i.state)).collect();
    let port = "rack 1156 host 106088";
    assert_eq!(told[0], (port, 1, Some(100_000), State::Known));
    assert_eq!(told[3], (port, 1, None, State::Gap));
    assert_eq!((told.len(), told[4]), (5, (port, 1, Some(90_000), State::Known)));
    assert!(
        notes[0].contains("2022-04-15") && notes.iter().any(|note| note.contains("the data set labels 1 bursts")),
        "{notes:?}"
    );
    let folder = Folder::new();
    let told = report(&folder.file("run.txt", run), r#"{"rate": "12500Mbps"}"#).unwrap();
    let burst = &told.ports[0].bursts[0];
    assert_eq!((told.ports[0].bursts_found, burst.records, burst.open), (1, 2, true));
    let other = run.replace("\"sampling_freq\": 1000", "\"sampling_freq\": 100");
    let said = failure(&folder.file("other.txt", &other), None);
    assert!(said.contains("document 1: sampling_freq: '100' is in no unit that is known; accepted: 1 (ms), or 1000"), "{said}");
}
