//! Inputs as they come: cut, mixed with others, partly wrong, in other units.

use super::counters::report;
use super::feeds::{counters, datagram as sflow, intervals};
use super::telemetry::{self, be, datagram, flow9, group, int, ip, netflow9, pcap, set, shorts, tcp, BURST, FIELDS_9, T};
use super::{failure, readings, Folder};
use crate::counters::State;

fn says(notes: &[String], part: &str) {
    assert!(notes.iter().any(|note| note.contains(part)), "{part}\nin\n{notes:#?}");
}

const RATES: &str = "time,tx,drops
0,80,0
10,80,0.4
20,NaN,0
30,8.5,
";

#[test]
fn counters_may_be_rates_and_in_any_unit() {
    let folder = Folder::new();
    let sent = |text: &str, column: &str| {
        let (found, notes) = intervals(text.as_bytes(), "t.csv", Some(&format!("time=time:s,bytes=tx:{column}")));
        (found.iter().map(|(_, i)| (i.sent, i.state)).collect::<Vec<_>>(), notes)
    };
    // 80 of a unit each second over 10 s; what an exporter has no value for is unknown.
    for (unit, bytes) in [
        ("bps", 100),
        ("kbps", 100_000),
        ("Mbps", 100_000_000),
        ("Mbit/s", 100_000_000),
        ("B/s", 800),
        ("MB/s", 800_000_000),
        ("KiB/s", 819_200),
    ] {
        let (found, notes) = sent(RATES, &format!("rate({unit})"));
        let last = bytes * 85 / 800;
        let known = State::Known;
        assert_eq!(found, [(Some(bytes), known), (None, known), (Some(if unit == "bps" { 11 } else { last }), known)], "{unit}");
        says(&notes, "each rate in 'tx' is taken as the mean over the time since the row before");
    }
    let (found, _) = intervals(RATES.as_bytes(), "t.csv", Some("time=time:s,bytes=tx:rate(bps),drops=drops:rate"));
    assert_eq!(found.iter().map(|(_, i)| i.dropped).collect::<Vec<_>>(), [Some(4), Some(0), None]);
    let totals = "time,tx\n0,100\n10,180\n20,60\n30,60.5\n";
    for (unit, more, half) in [("kB", 80_000, 500), ("Mbit", 10_000_000, 62_500), ("bit", 10, 0), ("GiB", 80 << 30, 1 << 29)] {
        let (found, _) = sent(totals, &format!("total({unit})"));
        assert_eq!(found, [(Some(more), State::Known), (None, State::Reset), (Some(half), State::Known)], "{unit}");
    }
    let (found, _) = sent(totals, "since(kbit)");
    assert_eq!(found[0], (Some(22_500), State::Known));
    for (unit, said) in [
        ("kB", "'kB' is no unit of it; accepted: total,"),
        ("kB", "write total(kB) of a running count, since(kB) of a count since the row before"),
        ("Mbps", "write rate(Mbps)"),
        ("rate", "say of what: rate(bps), rate(Mbps), rate(B/s)"),
        ("rate(MB)", "a rate is by time: rate(MB/s)"),
        ("total(Mbps)", "that is a rate: rate(Mbps)"),
        ("total(mbit)", "did you mean 'Mbit'?"),
    ] {
        let wrong = crate::trace::Mapping::read(&format!("time=time:s,bytes=tx:{unit}")).unwrap_err();
        assert!(super::message(&wrong).contains(said), "{said}\nin\n{wrong:?}");
    }
    let bits = folder.file("bits.csv", "time_s,tx_bits\n0,1\n1,2\n");
    let said = failure(&bits, None);
    assert!(said.contains("'tx_bits' may be a counter: bytes=tx_bits:total(bit) if it is a running count, since(bit) if each row has its own, rate(bit/s) if it is a rate; the columns are: "), "{said}");
    let said = failure(&folder.file("x.csv", "time_s,Throughput\n0,1\n1,2\n"), None);
    assert!(
        said.contains("'Throughput' may be a counter: bytes=Throughput:total of a running count of bytes, or rate(Mbps)"),
        "{said}"
    );
    let said =
        failure(&folder.file("s.csv", "time_s,tx,line\n0,1,10\n1,2,10\n"), Some("time=time_s:s,bytes=tx:total,speed=line"));
    assert!(said.contains("speed: 'line' has no unit, and its name does not say it"), "{said}");
    let doubts = |columns: &str, name: &str| {
        let path = folder.file("d.csv", format!("time_s,{name}\n0,1\n1,2\n2,3\n"));
        let told =
            report(&path, &format!(r#"{{"rate": "10Gbps", "by": "rate", "columns": "time=time_s:s,bytes={name}:{columns}"}}"#))
                .unwrap();
        told.plausibility.findings.into_iter().map(|finding| format!("{}: {}", finding.words, finding.hint)).collect::<Vec<_>>()
    };
    assert_eq!(
        doubts("total", "tx_bits"),
        ["'tx_bits' is read as bytes, and its name says bits: bytes=tx_bits:total(bit) reads it as its name says"]
    );
    assert_eq!(
        doubts("since", "tx_mbps"),
        ["'tx_mbps' is read as bytes, and its name says mbps: bytes=tx_mbps:rate(Mbit/s) reads it as its name says"]
    );
    assert_eq!(doubts("rate(MB/s)", "tx_mbps").len(), 1);
    assert_eq!(
        doubts("total", "octets_rate"),
        ["'octets_rate' is read as bytes, and its name says a rate: bytes=octets_rate:rate(B/s) reads it as its name says"]
    );
    for (columns, name) in [("rate(Mbps)", "tx_mbps"), ("total(kB)", "tx_kb"), ("total", "tx_bytes"), ("rate(B/s)", "tx_bytes")] {
        assert_eq!(doubts(columns, name), [""; 0], "{name} {columns}");
    }
}

#[test]
fn a_last_line_that_was_cut_is_left_out_and_said() {
    let table = "time_us,queue_bytes\n1,50000\n2,61234\n3,61234\n";
    let rows = |text: &str, name: &str| {
        let folder = Folder::new();
        let (records, _, notes) = super::all(&folder.file(name, text), None).unwrap();
        (records.iter().map(|record| record.queue).collect::<Vec<_>>(), notes)
    };
    assert_eq!(rows(table, "t.csv").0, [50_000, 61_234, 61_234]);
    for cut in 2..8 {
        let (found, notes) = rows(&table[..table.len() - cut], "t.csv");
        assert_eq!(found, [50_000, 61_234], "{cut}");
        says(&notes, if cut == 8 { "" } else { "the file ends within line 4: that row was left out" });
    }
    // All of the number may be there.
    let (found, notes) = rows(&table[..table.len() - 1], "t.csv");
    assert_eq!(found.len(), 3);
    says(&notes, "its last line has no end: if the file was cut there, the last value of that line is a part of one");
    let lines = "{\"time_us\":1,\"queue_bytes\":50000}\n{\"time_us\":2,\"queue_bytes\":61234}\n";
    for cut in 2..30 {
        let (found, notes) = rows(&lines[..lines.len() - cut], "t.jsonl");
        assert_eq!(found, [50_000], "{cut}");
        says(&notes, "the file ends within line 2: that row was left out");
    }
    assert_eq!(rows(lines.trim_end(), "t.jsonl").0, [50_000, 61_234]);
    // Counters that a command prints.
    let polls = "1700000000\nIF-MIB::ifHCOutOctets.3 = Counter64: 12345\n1700000060\nIF-MIB::ifHCOutOctets.3 = Counter64: 99999\n1700000120\nIF-MIB::ifHCOutOctets.3 = Counter64: 123456\n";
    let (found, notes) = intervals(&polls.as_bytes()[..polls.len() - 4], "polls.txt", None);
    assert_eq!(found.iter().map(|(_, i)| i.sent).collect::<Vec<_>>(), [Some(87_654)]);
    says(&notes, "ends within a message or a line: its last 40 bytes are not read");
    // Documents: those that are whole.
    let bursts = format!("[{BURST},\n{}", &BURST[..90]);
    let (found, notes) = intervals(bursts.as_bytes(), "bursts.json", None);
    assert!(!found.is_empty());
    says(&notes, "ends within a message or a line");
    let (_, notes) = intervals(format!("[{BURST},").as_bytes(), "bursts.json", None);
    says(&notes, "the list does not end, as in a file that was cut");
    let folder = Folder::new();
    let said = failure(&folder.file("one.json", &BURST[..120]), None);
    assert!(said.contains("document 1: ends within its only document: it was cut, and nothing in it is whole"), "{said}");
    let tc = "1\n[{\"kind\":\"fq\",\"handle\":\"1:\",\"backlog\":5,\"drops\":0}]\n2\n[{\"kind\":\"fq\",\"hand";
    says(&rows(tc, "tc.json").1, "ends within the document that begins in line 4, which is not read");
}

/// A capture that begins with what is no IP.
fn mixed(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = pcap(&[(1, vec![0; 28])]);
    // ARP, as its type says.
    file[24 + 16 + 12..][..2].copy_from_slice(&[8, 6]);
    file.extend(&pcap(&frames.iter().enumerate().map(|(i, frame)| (10 + i as u32, frame.clone())).collect::<Vec<_>>())[24..]);
    file
}

fn reports() -> Vec<Vec<u8>> {
    let inner = ip(6, 0, 1_500, &tcp((40_000, 80)));
    let metadata = [shorts(&[1, 2]), be(&[3 << 24 | 900])].concat();
    (1..=3).map(|i| datagram((5_000, 32_766), &group(i, &[int(0x20, 0x5000, &metadata, &inner)]))).collect()
}

fn samples() -> Vec<Vec<u8>> {
    (1..=4_u32).map(|i| datagram((9_000, 6_343), &sflow(i, i * 1_000, &[counters(u64::from(i) * 1_000, 0)]))).collect()
}

fn flows() -> Vec<Vec<u8>> {
    let sets = [set(0, &shorts(&FIELDS_9)), set(256, &flow9(1, 1_250_000_000, 900_000, 910_000))];
    (1..=3).map(|i| datagram((1_234, 2_055), &netflow9(i, T, &sets))).collect()
}

#[test]
fn telemetry_behind_other_packets_is_told_and_read_where_it_is_asked_for() {
    let folder = Folder::new();
    for (frames, title, name, more) in [
        (samples(), "sFlow 5", "sflow", ""),
        (flows(), "NetFlow", "netflow", ""),
        (reports(), "INT", "int-report", r#", "columns": "queue=queue-occupancy:B""#),
    ] {
        let path = folder.file("mixed.pcap", mixed(&frames));
        let told = report(&path, r#"{"rate": "10Gbps"}"#).unwrap();
        assert_eq!(told.sources[0].kind, "pcap");
        let note = format!(
            "{} of its packets look like {title}, and count as traffic like the others: --format {name} reads what they say",
            frames.len()
        );
        says(&told.notes, &note);
        let told = report(&path, &format!(r#"{{"rate": "10Gbps", "by": "rate", "format": "{name}"{more}}}"#)).unwrap();
        assert_eq!(told.sources[0].kind, name);
        assert!(told.ports[0].counted.is_some(), "{name}: {:?}", told.notes);
        says(&told.notes, "1 packet of the capture was no ");
        assert!(!told.notes.iter().any(|note| note.contains("look like")));
    }
    // Of another format there is nothing.
    let said = report(&folder.file("mixed.pcap", mixed(&samples())), r#"{"rate": "10Gbps", "format": "netflow"}"#).unwrap_err();
    assert!(said.contains("is no NetFlow: none of its packets is, 5 in all; accepted: captures of datagrams"), "{said}");
    // Two are no sign.
    let told = report(&folder.file("few.pcap", mixed(&samples()[..2])), r#"{"rate": "10Gbps"}"#).unwrap();
    assert!(!told.notes.iter().any(|note| note.contains("look like")), "{:?}", told.notes);
    let path = folder.file("mixed.pcap", mixed(&samples()));
    let options = format!(r#"{{"paths": {:?}, "format": "sflw"}}"#, path.to_str().unwrap());
    let said = super::message(&crate::trace::Options::from_json(&options).unwrap_err());
    assert!(
        said.contains("format: 'sflw' is no format; accepted: result, parquet,") && said.contains("did you mean 'sflow'?"),
        "{said}"
    );
}

/// Frames as a pcapng in one interface with times in nanoseconds, in either order of bytes.
fn pcapng(frames: &[Vec<u8>], big: bool) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let block = |kind: u32, body: &[u8]| {
        let length = word(12 + body.len() as u32);
        [&word(kind)[..], &length, body, &length].concat()
    };
    let mut file = block(0x0a0d_0d0a, &[&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat());
    file.extend(block(1, &[&half(1)[..], &half(0), &word(0), &half(9), &half(1), &[9, 0, 0, 0], &half(0), &half(0)].concat()));
    for (i, packet) in frames.iter().enumerate() {
        let frame = [&[0; 12][..], &[8, 0], packet].concat();
        let ns = 1_700_000_000_000_000_000 + 20_000_000_000 * i as u64;
        let length = word(frame.len() as u32);
        let padding = vec![0; (4 - frame.len() % 4) % 4];
        file.extend(block(
            6,
            &[&word(0)[..], &word((ns >> 32) as u32), &word(ns as u32), &length, &length, &frame, &padding].concat(),
        ));
    }
    file
}

#[test]
fn telemetry_in_pcapng_is_read_as_in_pcap() {
    for big in [false, true] {
        let (found, _) = intervals(&pcapng(&samples(), big), "sflow.pcapng", None);
        let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.length() / 1_000_000_000_000, i.sent)).collect();
        assert_eq!(told, [("10.0.0.1 if 7", 20, Some(1_000)); 3], "{big}");
        let (found, _) = intervals(&pcapng(&reports(), big), "int.pcapng", Some("queue=queue-occupancy:B"));
        assert_eq!(found.iter().map(|(_, i)| i.queue).collect::<Vec<_>>(), [Some(900); 3]);
        let (found, _) = intervals(&pcapng(&flows(), big), "flows.pcapng", None);
        assert!(!found.is_empty());
    }
    // A block that goes on for ever, and one of no length, are no loop.
    for length in [0_u32, 4, u32::MAX] {
        let mut file = pcapng(&samples(), false);
        file[28 + 4..28 + 8].copy_from_slice(&length.to_le_bytes());
        let folder = Folder::new();
        let options = r#"{"rate": "10Gbps", "by": "rate", "format": "sflow"}"#;
        let _ = report(&folder.file("bad.pcapng", &file), options);
    }
}

#[test]
fn a_wrong_datagram_costs_no_other_and_is_named() {
    let unit = Some("queue=queue-occupancy:B");
    // sFlow: a sample longer than its datagram; INT: a report; NetFlow: a set.
    let mut wrong = sflow(1, 1_000, &[counters(2_000, 0)]);
    wrong[32..36].copy_from_slice(&[0, 0, 1, 0]);
    let sflow_wrong = datagram((9_000, 6_343), &wrong);
    let mut int_wrong = reports()[1].clone();
    int_wrong[28 + 9] = 200;
    let netflow_wrong = datagram((1_234, 2_055), &[netflow9(2, T, &[]), shorts(&[256, 900, 1, 1])].concat());
    for (mut frames, wrong, name, columns, said) in [
        (samples(), sflow_wrong, "sflow", None, "ends within a field"),
        (reports(), int_wrong, "int-report", unit, "ends within a report"),
        (flows(), netflow_wrong, "netflow", None, "set 256: '900' is no length of a set"),
    ] {
        let whole = intervals(&pcapng(&frames, false), "whole.pcapng", columns).0.len();
        frames.insert(1, wrong.clone());
        let (found, notes) = intervals(&pcapng(&frames, false), "wrong.pcapng", columns);
        assert_eq!(found.len(), whole, "{name}: {notes:?}");
        says(&notes, "1 datagram is wrong, and not read from that place on; the first: packet 2: ");
        says(&notes, said);
        // Most of them: the file is refused, with the number.
        let folder = Folder::new();
        // One that comes twice counts once: each has a number of its own.
        let number = 28 + if name == "int-report" { 3 } else { 15 };
        let wrong = |i: u8| {
            let mut wrong = wrong.clone();
            wrong[if name == "sflow" { 28 + 19 } else { number }] = i;
            wrong
        };
        let most = [&frames[..1], &[7, 8, 9].map(wrong)[..]].concat();
        let text = report(
            &folder.file("most.pcapng", pcapng(&most, false)),
            &match columns {
                Some(columns) => format!(r#"{{"rate": "10Gbps", "by": "rate", "columns": {columns:?}}}"#),
                None => r#"{"rate": "10Gbps", "by": "rate"}"#.to_string(),
            },
        );
        let text = text.unwrap_err();
        assert!(
            text.contains(said) && text.contains("packet 2: ") && text.contains("3 of 4 datagrams are wrong"),
            "{name}: {text}"
        );
        // Where nothing else is known, that is the reason, not the speed.
        let all = folder.file("all.pcapng", pcapng(&[7, 8].map(wrong), false));
        let text = report(&all, &format!(r#"{{"format": "{name}"}}"#)).unwrap_err();
        assert!(text.contains("2 of 2 datagrams are wrong"), "{name}: {text}");
    }
}

#[test]
fn records_of_nxos_without_the_time_of_their_peak_keep_it_and_flags_are_no_names() {
    let folder = Folder::new();
    let options = r#"{"rate": "10Gbps", "above": "310000B"}"#;
    let bare = BURST.replace("\"peak-time\": \"2026/11/21 08:00:00:081825\",", "").replace("\"U0\"", "\"E U0\"");
    let told = report(&folder.file("bare.json", format!("[{bare}]")), options).unwrap();
    let port = &told.ports[0];
    assert_eq!((port.port.as_str(), port.bursts_found, port.peak_bytes), ("Eth1/36 U0", 1, Some(832_000)));
    assert_eq!(port.bursts[0].duration_ps, 200_000_000);
    says(&told.notes, "1 record says a peak and not when it was: it is told of the whole burst");
    // Nor does an end without a depth lose the end.
    let bare = BURST.replace("\"end-depth\": \"9000\", ", "");
    let told = report(&folder.file("bare.json", format!("[{bare}]")), options).unwrap();
    assert_eq!((told.ports[0].bursts[0].duration_ps, told.ports[0].bursts[0].open), (200_000_000, false));
    let row = "Eth1/36 |E U1 | 310128|2026/11/21 08:00:00:081725| 832000|2026/11/21 08:00:00:081825| 9000|2026/11/21 08:00:00:081925| 200.00 us\n";
    let told = report(&folder.file("t.txt", format!("Microburst Statistics\n{row}")), options).unwrap();
    assert_eq!(told.ports[0].port, "Eth1/36 U1");
}

#[test]
fn values_of_otlp_that_are_none_say_where() {
    let request = |point: &str| {
        format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"system.network.io","sum":{{"aggregationTemporality":2,"dataPoints":[{point}]}}}}]}}]}}]}}"#
        )
    };
    let folder = Folder::new();
    for (point, said) in [
        (r#"{"timeUnixNano":"5","asInt":"many"}"#, "document 1, metric 'system.network.io': asInt: '\"many\"' is no whole number; accepted: a whole number, also in quotes"),
        (r#"{"timeUnixNano":"noon","asInt":"5"}"#, "timeUnixNano: '\"noon\"' is no whole number"),
        (r#"{"timeUnixNano":"-5","asInt":"5"}"#, "timeUnixNano: '\"-5\"' is no time; accepted: nanoseconds since 1970"),
        (r#"{"timeUnixNano":"5","asDouble":"x"}"#, "asDouble: '\"x\"' is no number; accepted: a number, \"NaN\""),
        (r#"{"timeUnixNano":"5","attributes":{}}"#, "attributes: '{}' is no list; accepted: a list of objects"),
    ] {
        let text = failure(&folder.file("otlp.json", request(point)), None);
        assert!(text.contains(said), "{said}\nin\n{text}");
    }
    let text = failure(&folder.file("otlp.json", r#"{"resourceMetrics": {"a": 1}}"#), None);
    assert!(text.contains("document 1: resourceMetrics: '{\"a\":1}' is no list"), "{text}");
}

#[test]
fn flow_records_that_are_left_out_say_why() {
    let uptimes = |first: u32, last: u32| flow9(1, 5_000, first, last);
    let stream = |record: Vec<u8>, fields: &[u16]| netflow9(1, T, &[set(0, &shorts(fields)), set(256, &record)]);
    let mut no_egress = FIELDS_9;
    no_egress[13] = 0;
    let without = [&[10, 0, 0, 1, 10, 0, 0, 9][..], &shorts(&[40_000, 80]), &[6], &be(&[5_000, 900_000, 910_000])].concat();
    for (message, said) in [
        (stream(uptimes(950_000, 940_000), &FIELDS_9), "records that end before they begin: 1, passed over"),
        (
            telemetry::ipfix(0, &[telemetry::flow_template(300, &[]), set(300, &telemetry::flow(1, (T + 50, T + 100), &[]))]),
            "records whose time ends after their export: a clock is wrong: 1, passed over",
        ),
        (stream(without.clone(), &no_egress), "fields of no bytes in templates (element 14 of template 256): 1, passed over"),
        (stream(without, &no_egress), "records without the interface they leave at (14): 1, passed over"),
    ] {
        let folder = Folder::new();
        let (found, notes) = readings(&folder.file("flows.nf9", message), None).unwrap();
        assert!(found.is_empty(), "{said}");
        says(&notes, said);
    }
    // An uptime of 32 bits turns over after 49.7 days: the flow began before that.
    let turned = netflow9(1, T, &[set(0, &shorts(&FIELDS_9)), set(256, &uptimes(u32::MAX - 4_999, 5_000))]);
    let (found, _) = intervals(&turned, "turned.nf9", None);
    assert_eq!(found.iter().filter_map(|(_, i)| i.sent).sum::<u64>(), 5_000);
}

#[test]
fn what_is_no_time_no_record_or_no_counter_says_so() {
    let folder = Folder::new();
    let event = |time: &str| {
        format!(r#"[{{"name":"s","timestamp":{time},"tags":{{"interface_name":"e1"}},"values":{{"/x/out-octets":"1"}}}}]"#)
    };
    let said = failure(&folder.file("s.json", event("1700000000")), None);
    assert!(
        said.contains("document 1: timestamp: '1700000000' is no time from 2001 to 2100; accepted: nanoseconds since 1970"),
        "{said}"
    );
    // A number of 64 bits may stand in quotes.
    let quoted = [event("\"1700000000000000000\""), event("\"1700000001000000000\"")].join("\n");
    assert_eq!(intervals(quoted.as_bytes(), "q.json", None).0.len(), 1);
    let options = r#"{"rate": "10Gbps", "above": "310000B"}"#;
    let bare = "Microburst Statistics\nEth1/36  U1  310128 2026/11/21 08:00:00:081725 832000\n";
    let said = report(&folder.file("t.txt", bare), options).unwrap_err();
    assert!(said.contains("line 2: 'Eth1/36  U1  310128") && said.contains("is no record that is understood"), "{said}");
    let told =
        report(&folder.file("t.txt", "Microburst Statistics\nEthernet|Queue|Threshold|Start Time|Peak\n"), options).unwrap();
    assert_eq!(told.plausibility.findings[0].code, "no_records");
    let nic = |name: &str| format!("NIC statistics:\n     {name}: 5\n");
    let both = format!("1700000000\n{}{}", nic("tx_bytes"), nic("tx_bytes"));
    let said = failure(&folder.file("nics.txt", both), None);
    assert!(said.contains("line 4: 'NIC statistics:' begins statistics behind others under one time"), "{said}");
    let (_, notes) = intervals(format!("1700000000\n{}", nic("rx_bytes")).as_bytes(), "rx.txt", None);
    says(&notes, "none of the counters of what left a port is in it that are read: tx_bytes_phy");
    let rates = folder.file("d.csv", "time_s,drops_per_s\n0,1\n1,2\n");
    let told = report(&rates, r#"{"rate": "10Gbps", "by": "rate", "columns": "time=time_s:s,drops=drops_per_s:total"}"#).unwrap();
    let finding = &told.plausibility.findings[0];
    assert_eq!(finding.words, "'drops_per_s' is read as a count, and its name says a rate");
    assert_eq!(finding.hint, "drops=drops_per_s:rate reads it as its name says");
    // What came in leaves by no port that it is counted at.
    let said = failure(&folder.file("rx.csv", "time_s,rx_bytes\n0,1\n1,2\n"), None);
    assert!(!said.contains("may be a counter"), "{said}");
}
