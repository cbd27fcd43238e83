//! Telemetry of further public descriptions: INT, flow records, OTLP, Cisco's bursts, BroadView's buffers; bytes are put together here.

use super::counters::report;
use super::feeds::{intervals, number, text};
use super::{failure, readings, Folder};
use crate::counters::{Reading, State};
use crate::trace::Level;

const S: u64 = 1_000_000_000_000;

pub fn be(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

pub fn shorts(shorts: &[u16]) -> Vec<u8> {
    shorts.iter().flat_map(|short| short.to_be_bytes()).collect()
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2; `length`: the whole, of which only what is here was kept.
pub fn ip(protocol: u8, dscp: u8, length: u16, content: &[u8]) -> Vec<u8> {
    let head =
        [&[0x45, dscp << 2][..], &length.to_be_bytes(), &[0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat();
    [&head[..], content].concat()
}

pub fn tcp(ports: (u16, u16)) -> Vec<u8> {
    [shorts(&[ports.0, ports.1]), vec![0; 8], vec![0x50, 0x10, 0, 0, 0, 0, 0, 0]].concat()
}

fn udp(ports: (u16, u16), content: &[u8]) -> Vec<u8> {
    [shorts(&[ports.0, ports.1, 8 + content.len() as u16, 0]), content.to_vec()].concat()
}

/// A capture (microseconds, big endian) of frames at microseconds after second 1,700,000,000.
pub fn pcap(frames: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = [be(&[0xa1b2_c3d4]), shorts(&[2, 4]), be(&[0, 0, 65_535, 1])].concat();
    for (us, packet) in frames {
        let frame = [&[0; 12][..], &[8, 0], packet].concat();
        file.extend(be(&[1_700_000_000 + us / 1_000_000, us % 1_000_000, frame.len() as u32, frame.len() as u32]));
        file.extend(frame);
    }
    file
}

pub fn datagram(ports: (u16, u16), content: &[u8]) -> Vec<u8> {
    ip(17, 0, 28 + content.len() as u16, &udp(ports, content))
}

/// A report group of node 7 (telemetry_report.mdk): version 2, hardware 1, the number, then reports.
pub fn group(sequence: u32, reports: &[Vec<u8>]) -> Vec<u8> {
    [be(&[2 << 28 | 1 << 22 | sequence, 7]), reports.concat()].concat()
}

/// A report with baseline metadata and a truncated IPv4 packet: flags D, Q, F in the highest bits.
pub fn int(flags: u8, bits: u16, metadata: &[u8], inner: &[u8]) -> Vec<u8> {
    let (own, all) = (metadata.len() / 4, 2 + metadata.len() / 4 + inner.len() / 4);
    [&[0x14, all as u8, own as u8, flags][..], &bits.to_be_bytes(), &[0; 6], metadata, inner].concat()
}

#[test]
fn reports_of_int_tell_queues_and_drops_where_a_packet_found_them() {
    // "Example with Baseline Metadata and Truncated IPv4": interfaces and occupancy, 5 words of IP and 5 of TCP.
    let inner = ip(6, 0, 1_500, &tcp((40_000, 80)));
    let queue = |cells: u32| [shorts(&[1, 2]), be(&[3 << 24 | cells])].concat();
    let lost = [shorts(&[1, 2]), vec![3, 71, 0, 0]].concat();
    let frames = [
        (
            10,
            datagram((5_000, 32_766), &group(5, &[int(0x20, 0x5000, &queue(4), &inner), int(0x60, 0x5000, &queue(900), &inner)])),
        ),
        (20, datagram((5_000, 32_766), &group(6, &[int(0xa0, 0x4001, &lost, &inner)]))),
        (30, datagram((5_000, 32_766), &group(9, &[int(0x20, 0x5000, &[&shorts(&[1, 2])[..], &[0xff; 4]].concat(), &inner)]))),
        (40, datagram((5_000, 9), b"something else that is here")),
    ];
    let folder = Folder::new();
    let path = folder.file("int.pcap", pcap(&frames));
    let asked = failure(&path, None);
    assert!(
        asked.contains("packet 1: queue-occupancy: '4' counts bytes, cells or packets, and a report does not say which"),
        "{asked}"
    );
    assert!(asked.contains("--columns queue=queue-occupancy:cells(208B), or :B"), "{asked}");
    let (found, notes) = intervals(&std::fs::read(&path).unwrap(), "int.pcap", Some("queue=queue-occupancy:cells(208B)"));
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.length(), i.queue, i.dropped)).collect();
    let port = "node 7 port 2 queue 3";
    assert_eq!(told, [(port, 0, Some(4 * 208), None), (port, 0, Some(900 * 208), None), (port, 0, None, Some(1))]);
    let said = notes.join("\n");
    for part in [
        "4 reports of INT",
        "1 of dropped packets, 1 of congested queues",
        "2 reports are missing",
        "1 drops of reason 71",
        "1 packet of the capture was no INT",
    ] {
        assert!(said.contains(part), "{part}\nin\n{said}");
    }
    // Two mirrors: each datagram twice.
    let twice: Vec<_> = frames.iter().flat_map(|frame| [frame.clone(), frame.clone()]).collect();
    let (again, notes) = intervals(&pcap(&twice), "twice.pcap", Some("queue=queue-occupancy:cells(208B)"));
    assert_eq!(format!("{again:?}"), format!("{found:?}"));
    assert!(notes.iter().any(|note| note.contains("3 datagrams came twice, and count once")), "{notes:?}");
    let options = r#"{"rate": "10Gbps", "above": "100KB", "columns": "queue=queue-occupancy:cells(208B)"}"#;
    let told = report(&path, options).unwrap();
    let port = &told.ports[0];
    assert_eq!((port.bursts_found, port.dropped, port.peak_bytes), (1, Some(1), Some(900 * 208)));
    let culprit = &port.bursts[0].indirect[0];
    // 1500 B of IP with Ethernet's 18 B, once for each of the two reports of the burst, or more.
    assert_eq!((culprit.name.as_str(), culprit.bytes % 1_518, culprit.share), ("10.0.0.1:40000 > 10.0.0.2:80 tcp", 0, 1.0));
    let said = failure(&path, Some("queue=depth:B"));
    assert!(said.contains("names no unit that INT leaves open; accepted: queue=queue-occupancy:UNIT"), "{said}");
}

#[test]
fn stacks_of_int_md_tell_each_hop_and_the_packet_as_it_was() {
    // "Example with new UDP header and INT-MD inserted before TCP": node and occupancy of two hops, the last one first.
    let hops = be(&[2, 1 << 24 | 50, 1, 4 << 24 | 7]);
    let shim = [&[0x18, 7, 0, 6][..], &[0x20, 0, 2, 6, 0x90, 0, 0, 0, 0, 0, 0, 0], &hops].concat();
    let packet = |us| (us, ip(17, 0, 300, &udp((999, 5_555), &[&shim[..], &tcp((40_000, 80))].concat())));
    let (found, _) = intervals(&pcap(&[packet(10), packet(20)]), "md.pcap", Some("queue=queue-occupancy:B"));
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.queue)).collect();
    let once = [("node 2 queue 1", Some(50)), ("node 1 queue 4", Some(7))];
    assert_eq!(told, [once, once].concat());
    let folder = Folder::new();
    let path = folder.file("md.pcap", pcap(&[packet(10), packet(20)]));
    let told =
        report(&path, r#"{"rate": "10Gbps", "above": "40B", "until": "1B", "columns": "queue=queue-occupancy:B"}"#).unwrap();
    let port = told.ports.iter().find(|port| port.port == "node 2 queue 1").unwrap();
    assert_eq!(port.bursts[0].indirect[0].name, "10.0.0.1:40000 > 10.0.0.2:80 tcp");
    // A report may bring the stack of the hops before in its packet, and none of its own.
    let inner = ip(6, 0x17, 400, &[&tcp((1, 2))[..], &[0x10, 7, 0, 0], &shim[4..]].concat());
    let inner_only = [&[0x04, (inner.len() / 4) as u8, 0, 0x20][..], &inner].concat();
    let (found, _) =
        intervals(&pcap(&[(5, datagram((1, 2), &group(1, &[inner_only])))]), "in.pcap", Some("queue=queue-occupancy:B"));
    assert_eq!(found.iter().map(|(port, i)| (port.as_str(), i.queue)).collect::<Vec<_>>(), once);
    // Times of the devices: 8 bytes at bit 5, all ones where a node has none.
    let stamped = |ns: u64| [be(&[9]), be(&[77]), ns.to_be_bytes().to_vec()].concat();
    let md = [&[0x10, 7, 0, 0][..], &[0x20, 0, 4, 6, 0x94, 0, 0, 0, 0, 0, 0, 0], &stamped(1_700_000_000_000_000_500)].concat();
    let packet = ip(6, 0x17, 300, &[&tcp((1, 2))[..], &md].concat());
    let columns = Some("queue=queue-occupancy:B,time=egress-timestamp:ns");
    let (found, _) = intervals(&pcap(&[(5, packet)]), "ts.pcap", columns);
    assert_eq!((found.len(), found[0].1.end.ps() % S, found[0].1.queue), (1, 500_000, Some(77)));
}

/// A message of NetFlow 9 of domain 5 (RFC 3954): uptime 1000 s at its export.
pub fn netflow9(sequence: u32, export: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    [shorts(&[9, sets.len() as u16]), be(&[1_000_000, export, sequence, 5]), sets.concat()].concat()
}

pub fn set(id: u16, body: &[u8]) -> Vec<u8> {
    [shorts(&[id, 4 + body.len() as u16]), body.to_vec()].concat()
}

pub const T: u32 = 1_700_000_000;

/// Addresses, ports, protocol, egress interface, bytes, first and last by uptime [ms].
pub const FIELDS_9: [u16; 20] = [256, 9, 8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 14, 2, 1, 4, 22, 4, 21, 4];

pub fn flow9(host: u8, bytes: u32, first: u32, last: u32) -> Vec<u8> {
    [&[10, 0, 0, host, 10, 0, 0, 9][..], &shorts(&[40_000, 80]), &[6], &shorts(&[3]), &be(&[bytes, first, last])].concat()
}

#[test]
fn flow_records_tell_who_talked_in_bytes_by_interval() {
    let records = [
        // 10 s of 1 Gb/s by one host, from T - 100 s on; a tenth of it by another, over twice the time.
        flow9(1, 1_250_000_000, 900_000, 910_000),
        flow9(2, 250_000_000, 900_000, 920_000),
        flow9(2, 1_000, 960_000, 960_000),
    ];
    let stream = [
        netflow9(1, T, &[set(0, &shorts(&FIELDS_9)), set(256, &records.concat())]),
        netflow9(4, T, &[set(0x101, &[1, 2, 3, 4])]),
    ]
    .concat();
    let folder = Folder::new();
    let path = folder.file("flows.nf9", &stream);
    let (found, notes) = readings(&path, None).unwrap();
    let of_intervals: Vec<_> = found
        .iter()
        .filter_map(|(port, reading)| match reading {
            Reading::Interval(i) => Some((port.as_str(), i.length() / S, i.sent, i.state)),
            _ => None,
        })
        .collect();
    let port = "domain 5 if 3";
    assert_eq!(
        of_intervals,
        [
            (port, 10, Some(1_375_000_000), State::Known),
            (port, 10, Some(125_000_000), State::Known),
            // 40 s in which no flow was told.
            (port, 40, None, State::Gap),
            (port, 10, Some(1_000), State::Known),
        ]
    );
    let said = notes.join("\n");
    assert!(said.contains("3 records of flows in 2 messages") && said.contains("2 messages or records are missing"), "{said}");
    assert!(said.contains("sets of template 257, which was not told before: 1"), "{said}");
    let told = report(&path, r#"{"rate": "10Gbps", "share": 0.1}"#).unwrap();
    let port = &told.ports[0];
    assert_eq!((port.bursts_found, port.peak_bytes), (1, None), "nothing of a queue");
    let named: Vec<_> = port.bursts[0].indirect.iter().map(|c| (c.name.as_str(), c.bytes)).collect();
    let (first, second) = ("10.0.0.1:40000 > 10.0.0.9:80 tcp", "10.0.0.2:40000 > 10.0.0.9:80 tcp");
    assert_eq!(named, [(first, 1_250_000_000), (second, 125_000_000)]);
    // Bytes of a record are all told, whatever its time.
    let all: u64 = of_intervals.iter().filter_map(|(_, _, sent, _)| *sent).sum();
    assert_eq!(all, 1_250_000_000 + 250_000_000 + 1_000);
    let twice = pcap(&[1, 2, 3, 4].map(|us| (us, datagram((1_234, 2_055), &stream[..stream.len() - 28]))));
    let (again, notes) = intervals(&twice, "twice.pcap", None);
    assert_eq!(again.iter().filter_map(|(_, interval)| interval.sent).sum::<u64>(), all);
    assert!(notes.iter().any(|note| note.contains("3 messages came twice, and count once")), "{notes:?}");
    // In a capture the exporter has a name.
    let captured = pcap(&[(5, datagram((1_234, 2_055), &stream[..stream.len() - 28]))]);
    let (found, _) = intervals(&captured, "flows.pcap", None);
    assert_eq!(found[0].0, "10.0.0.1 if 3");
}

#[test]
fn flows_of_ipfix_may_have_fields_of_variable_length_and_other_clocks() {
    let message = |sequence: u32, sets: &[Vec<u8>]| {
        let body = sets.concat();
        [shorts(&[10, 16 + body.len() as u16]), be(&[T, sequence, 8]), body].concat()
    };
    // A text of variable length first, IPv6, total octets beside those of the record, milliseconds since 1970, sampling 1 of 100.
    let fields = [300, 9, 82, 65_535, 27, 16, 28, 16, 1, 8, 14, 4, 152, 8, 153, 8, 34, 4, 0x8005, 2];
    let template = [shorts(&fields), be(&[29_305])].concat();
    let record = |name: &[u8], octets: u64| {
        let ms = (u64::from(T) - 5) * 1_000;
        let v6 = |host: u8| [&[0xfd, 0][..], &[0; 13], &[host]].concat();
        let numbers =
            [octets.to_be_bytes().to_vec(), be(&[77]), ms.to_be_bytes().to_vec(), ms.to_be_bytes().to_vec(), be(&[100])];
        [&[name.len() as u8][..], name, &v6(1), &v6(2), &numbers.concat(), &[0, 9]].concat()
    };
    let stream = message(0, &[set(2, &template), set(300, &[record(b"eth0", 500), record(b"", 7)].concat())]);
    let (found, notes) = intervals(&stream, "flows.ipfix", None);
    assert_eq!(found.iter().map(|(port, i)| (port.as_str(), i.sent)).collect::<Vec<_>>(), [("domain 8 if 77", Some(50_700))]);
    assert!(notes.iter().any(|note| note.contains("2 records are of sampled packets")), "{notes:?}");
    let folder = Folder::new();
    let cut = message(0, &[set(2, &template), set(300, &record(b"eth0", 500)[..68])]);
    let said = failure(&folder.file("cut.ipfix", cut), None);
    assert!(said.contains("message 1: template 300: 'field 34' ends within a record"), "{said}");
}

/// A message of IPFIX of domain 8, at second [`T`].
pub fn ipfix(sequence: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let body = sets.concat();
    [shorts(&[10, 16 + body.len() as u16]), be(&[T, sequence, 8]), body].concat()
}

/// Addresses, octets, egress interface, begin and end [s], and others.
pub fn flow_template(id: u16, others: &[u16]) -> Vec<u8> {
    let fields = [8, 4, 12, 4, 1, 4, 14, 4, 150, 4, 151, 4];
    set(2, &shorts(&[&[id, 6 + others.len() as u16 / 2][..], &fields, others].concat()))
}

pub fn flow(octets: u32, (begin, end): (u32, u32), others: &[u32]) -> Vec<u8> {
    [be(&[0x0a00_0001, 0x0a00_0002, octets, 77, begin, end]), be(others)].concat()
}

#[test]
fn sampled_flows_are_multiplied_where_the_record_says_by_what() {
    let sent = |others: &[u16], values: &[u32]| {
        let stream = ipfix(0, &[flow_template(300, others), set(300, &flow(1_000, (T - 5, T - 5), values))]);
        let (found, notes) = intervals(&stream, "flows.ipfix", None);
        (found[0].1.sent.unwrap(), notes.join("\n"))
    };
    // RFC 5477: 10 packets one behind another are counted, then 990 are left out.
    assert_eq!(sent(&[305, 4, 306, 4], &[10, 990]).0, 100_000);
    assert_eq!(sent(&[306, 4, 305, 4], &[0, 10]).0, 1_000);
    assert_eq!(sent(&[34, 4, 305, 4, 306, 4], &[50, 10, 990]).0, 50_000);
    let (bytes, said) = sent(&[305, 4], &[10]);
    assert!(bytes == 1_000 && said.contains("1 record says how many packets were counted one behind another (305)"), "{said}");
    assert!(!said.contains("multiplied"), "{said}");
}

#[test]
fn a_long_flow_is_told_in_the_intervals_that_are_open() {
    let day = 86_400;
    let octets = 864_000_000;
    let stream = ipfix(0, &[flow_template(300, &[]), set(300, &flow(octets, (T - day, T), &[]))]);
    let (found, notes) = intervals(&stream, "flows.ipfix", None);
    // The half hour and the minute before its export, in parts of 10 s.
    let sent: Vec<u64> = found.iter().map(|(_, interval)| interval.sent.unwrap()).collect();
    assert!(sent.len() == 186 && sent.iter().all(|sent| *sent == 100_000), "{} {:?}", sent.len(), sent.first());
    assert!(notes.iter().any(|note| note.contains("8454 parts of records came after")), "{notes:?}");
}

#[test]
fn messages_that_a_capture_cut_are_counted_and_cost_no_other() {
    let of_ipfix = [
        ipfix(0, &[flow_template(300, &[]), set(300, &flow(500, (T - 5, T - 5), &[]))]),
        ipfix(1, &[set(300, &[flow(500, (T - 5, T - 5), &[]), flow(1, (T - 5, T - 5), &[])].concat())]),
        ipfix(3, &[set(300, &flow(7, (T - 5, T - 5), &[]))]),
    ];
    let templates = set(0, &shorts(&FIELDS_9));
    let records = |bytes: u32| set(256, &flow9(1, bytes, 995_000, 995_000));
    let of_9 = [netflow9(0, T, &[templates, records(500)]), netflow9(1, T, &[records(500)]), netflow9(2, T, &[records(7)])];
    for (messages, cut) in [(&of_ipfix, 10), (&of_9, 10), (&of_ipfix, 60), (&of_9, 40)] {
        let mut frames: Vec<(u32, Vec<u8>)> =
            messages.iter().zip(1..).map(|(message, us)| (us, datagram((1_234, 2_055), message))).collect();
        let kept = frames[1].1.len() - cut;
        frames[1].1.truncate(kept);
        let (found, notes) = intervals(&pcap(&frames), "flows.pcap", None);
        assert_eq!(found.iter().map(|(_, interval)| interval.sent).collect::<Vec<_>>(), [Some(507)], "{cut}");
        assert!(notes.iter().any(|note| note.contains("1 message that the capture cut is not read")), "{notes:?}");
    }
}

/// A point of SONiC's exporter (message/otel.rs): object, type, statistic, time, value.
pub fn point(object: &str, sai: (u16, u16), ns: u64, value: i64) -> Vec<u8> {
    let attribute = |key: &str, value: &str| text(7, &[text(1, key.as_bytes()), text(2, &text(1, value.as_bytes()))].concat());
    let fixed = |field: u64, value: u64| {
        [number(field, 0)[..1].iter().map(|tag| tag | 1).collect(), value.to_le_bytes().to_vec()].concat()
    };
    let all = [
        fixed(3, ns),
        fixed(6, value as u64),
        attribute("object_name", object),
        attribute("sai_type_id", &sai.0.to_string()),
        attribute("sai_stat_id", &sai.1.to_string()),
    ];
    let gauge = text(5, &text(1, &all.concat()));
    text(2, &[text(1, format!("sai_counter_type_{}_stat_{}", sai.0, sai.1).as_bytes()), gauge].concat())
}

pub fn request(metrics: &[Vec<u8>]) -> Vec<u8> {
    let service = text(1, &[text(1, b"service.name"), text(2, &text(1, b"countersyncd"))].concat());
    text(1, &[text(1, &service), text(2, &metrics.concat())].concat())
}

#[test]
fn gauges_of_sonic_in_otlp_are_counters_of_ports_and_queues() {
    let at = |ms: u64| 1_700_000_000_000_000_000 + ms * 1_000_000;
    let requests: Vec<Vec<u8>> = [(0, 1_000, 5_000), (1, 9_000, 70_000), (2, 9_500, 6_000)]
        .iter()
        .map(|(ms, octets, most)| {
            request(&[
                point("Ethernet0", (1, 9), at(*ms), *octets),
                point("Ethernet0|3", (21, 0x19), at(*ms), *most),
                point("x", (26, 1), at(*ms), 1),
            ])
        })
        .collect();
    let (found, notes) = intervals(&requests.concat(), "otlp.bin", None);
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.length() / 1_000_000, i.sent, i.watermark)).collect();
    let mut expected = [
        ("Ethernet0", 1_000, Some(8_000), None),
        ("Ethernet0", 1_000, Some(500), None),
        ("Ethernet0|3", 1_000, None, Some(70_000)),
        ("Ethernet0|3", 1_000, None, Some(6_000)),
    ];
    expected.sort_by_key(|row| row.0);
    let mut sorted = told.clone();
    sorted.sort_by_key(|row| row.0);
    assert_eq!(sorted, expected);
    assert!(notes.iter().any(|note| note.contains("points of the metric 'sai_counter_type_26_stat_1': 3")), "{notes:?}");
    // Each behind its length, as a collector's file may have them.
    let framed: Vec<u8> = requests.iter().flat_map(|r| [be(&[r.len() as u32]), r.clone()].concat()).collect();
    assert_eq!(intervals(&framed, "framed.bin", None).0, found);
    let folder = Folder::new();
    let said = failure(&folder.file("bad.bin", [&requests[0][..], &[0x42, 0x01, 0x00]].concat()), None);
    assert!(said.contains("message 2: '0x42' is no field of a request of OTLP metrics"), "{said}");
}

#[test]
fn otlp_in_json_has_sonics_gauges_and_sums_of_hosts() {
    let gauge = |ns: u64, value: u64| {
        format!(r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"host.name","value":{{"stringValue":"h1"}}}}]}},"scopeMetrics":[{{"metrics":[
        {{"name":"sai_counter_type_1_stat_12","gauge":{{"dataPoints":[{{"timeUnixNano":"{ns}","asInt":"{value}","attributes":[{{"key":"object_name","value":{{"stringValue":"Ethernet4"}}}},{{"key":"sai_type_id","value":{{"stringValue":"1"}}}},{{"key":"sai_stat_id","value":{{"stringValue":"12"}}}}]}}]}}}},
        {{"name":"system.network.io","sum":{{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[{{"timeUnixNano":"{ns}","asInt":"{value}000","attributes":[{{"key":"device","value":{{"stringValue":"eth0"}}}},{{"key":"direction","value":{{"stringValue":"transmit"}}}}]}},{{"timeUnixNano":"{ns}","asInt":"5","attributes":[{{"key":"device","value":{{"stringValue":"eth0"}}}},{{"key":"direction","value":{{"stringValue":"receive"}}}}]}}]}}}}]}}]}}]}}"#)
        .replace('\n', "")
    };
    let lines: String = (0..3).map(|i| gauge(1_700_000_000_000_000_000 + i * 1_000_000_000, 7 + i * i) + "\n").collect();
    let (mut found, notes) = intervals(lines.as_bytes(), "metrics.json", None);
    found.sort_by_key(|(port, i)| (port.clone(), i.end));
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.sent, i.dropped)).collect();
    let (switch, host) = ("h1 Ethernet4", "h1 eth0");
    assert_eq!(told, [(switch, None, Some(1)), (switch, None, Some(3)), (host, Some(1_000), None), (host, Some(3_000), None)]);
    assert!(notes.iter().any(|note| note.contains("6 points in 3 requests of OTLP")), "{notes:?}");
}

pub const BURST: &str = r#"{"if-str": "Eth1/36", "queue": "U0", "threshold": "310128", "start-time": "2026/11/21 08:00:00:081725",
    "peak": "832000", "peak-time": "2026/11/21 08:00:00:081825", "end-depth": "9000", "end-time": "2026/11/21 08:00:00:081925", "duration": "200.00 us"}"#;

#[test]
fn micro_bursts_of_nxos_are_bursts_with_their_peak() {
    let folder = Folder::new();
    let early = r#"{"if-str": "Eth1/36", "queue": "U0", "threshold": "310128", "start-time": "2026/11/21 08:00:00:081725"}"#;
    let again = BURST.replace(":0819", ":0919").replace(":0818", ":0918").replace(":0817", ":0917");
    let answer = |rows: &[&str]| {
        format!(r#"{{"TABLE_module": {{"ROW_module": {{"TABLE_instance": {{"ROW_instance": [{}]}}}}}}}}"#, rows.join(","))
    };
    let text = [answer(&[early]), answer(&[&again, BURST])].join("\n");
    let path = folder.file("bursts.json", &text);
    let told = report(&path, r#"{"rate": "10Gbps", "above": "310000B"}"#).unwrap();
    let port = &told.ports[0];
    assert_eq!((port.port.as_str(), port.bursts_found, port.peak_bytes), ("Eth1/36 U0", 2, Some(832_000)));
    for burst in &port.bursts {
        assert_eq!(
            (burst.duration_ps, burst.peak_ps - burst.start_ps, burst.peak_bytes),
            (200_000_000, 100_000_000, Some(832_000))
        );
        assert!(!burst.open && !burst.counted.as_ref().unwrap().peak_at_least);
    }
    assert!(told.notes.iter().any(|note| note.contains("1 record stands in several answers")), "{:?}", told.notes);
    // The table of the command line says the same.
    let row = |us: u32| {
        format!("Eth1/36     | U0  |   310128|2026/11/21 08:00:00:{:06}|   832000|2026/11/21 08:00:00:{:06}|     9000|2026/11/21 08:00:00:{:06}| 200.00 us", us, us + 100, us + 200)
    };
    let table = format!("slot  1\n=======\n{}\n          Microburst Statistics\n  Flags: E - Early start record, U - Unicast, M - Multicast\nEthernet |Queue|Threshold|Start Time|Peak|Peak Time|End|End Time|Duration\n{}\n{}\n", "-".repeat(60), row(91_725), row(81_725));
    let other = report(&folder.file("bursts.txt", table), r#"{"rate": "10Gbps", "above": "310000B"}"#).unwrap();
    let spans = |report: &crate::trace::TraceReport| {
        report.ports[0].bursts.iter().map(|b| (b.start_ps, b.end_ps, b.peak_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(spans(&other), spans(&told));
    // Nor do bars around each row change it, with nothing before the names of the columns.
    let barred = format!("|Ethernet|Queue|Threshold|Start Time|Peak|Peak Time|\n|{}|\n|{}|\n", row(91_725), row(81_725));
    let other = report(&folder.file("barred.txt", barred), r#"{"rate": "10Gbps", "above": "310000B"}"#).unwrap();
    assert_eq!(spans(&other), spans(&told));
    // A record that contradicts itself is unknown, and no burst.
    let wrong = BURST.replace("\"peak\": \"832000\"", "\"peak\": \"100\"");
    let told = report(&folder.file("wrong.json", answer(&[&wrong])), r#"{"rate": "10Gbps", "above": "310000B"}"#).unwrap();
    let unknown = &told.ports[0].counted.as_ref().unwrap().unknown;
    assert_eq!((told.ports[0].bursts_found, unknown[0].state, unknown[0].ps), (0, "contradicting", 200_000_000));
    let said = failure(&folder.file("bad.json", answer(&[&BURST.replace("2026/11/21 08:00:00:081725", "yesterday")])), None);
    assert!(
        said.contains(
            "document 1: start-time: 'yesterday' is no date and time; accepted: for example 2026/11/21 08:00:00:123456"
        ),
        "{said}"
    );
}

#[test]
fn rows_of_nxos_that_are_not_understood_are_told() {
    let folder = Folder::new();
    let options = r#"{"rate": "10Gbps", "above": "310000B"}"#;
    let row = |port: &str, start: &str, duration: &str| {
        format!("{port} | U0 | 310128 |2026/11/21 {start}| 832000 |2026/11/21 08:00:00:81825| 9000 |2026/11/21 08:00:00:81925| {duration}\n")
    };
    let table = |rows: &[String]| folder.file("bursts.txt", format!("Microburst Statistics\n{}", rows.concat()));
    // Microseconds without their leading zeros are no fractions; any interface has bursts.
    let right = |port: &str| row(port, "08:00:00:81725", "200.00 us");
    for port in ["Eth1/36", "Ethernet1/36/1", "Po7", "port-channel7", "mgmt0"] {
        let told = report(&table(&[right(port)]), options).unwrap();
        let found = &told.ports[0];
        assert_eq!((found.port.as_str(), found.bursts_found), (&*format!("{port} U0"), 1));
        assert_eq!((found.bursts[0].start_ps, found.bursts[0].duration_ps), (81_725_000_000, 200_000_000), "{port}");
        assert!(told.plausibility.findings.is_empty(), "{:?}", told.plausibility.findings);
    }
    // A date of another form beside others that are read.
    let said = failure(&table(&[right("Eth1/36"), right("Po7").replace("2026/11/21 08:00:00:81725", "Nov 21 08:00:00")]), None);
    assert!(
        said.contains("line 3: start-time: 'Nov 21 08:00:00' is no date and time; accepted: for example 2026/11/21"),
        "{said}"
    );
    // What lasts otherwise than it says is no burst.
    let told = report(&table(&[row("Eth1/36", "08:00:00:081725", "4.50 ms"), right("Eth1/37")]), options).unwrap();
    let found: Vec<_> = told.ports.iter().map(|port| (port.port.as_str(), port.bursts_found)).collect();
    assert_eq!(found, [("Eth1/37 U0", 1), ("Eth1/36 U0", 0)]);
    let finding = &told.plausibility.findings[0];
    assert_eq!((finding.code, finding.count), ("duration_contradicts", 1));
    assert!(finding.words.contains("that of Eth1/36 U0 says 4.5 ms and lasts 200 us"), "{}", finding.words);
    let told = report(&table(&[row("Eth1/36", "08:00:00:081725", "0:00:00.2")]), options).unwrap();
    assert_eq!(told.ports[0].bursts_found, 1);
    assert!(told.notes.iter().any(|note| note.contains("1 record with a duration that is not read")), "{:?}", told.notes);
}

#[test]
fn reports_of_bst_ask_what_their_counts_are() {
    // The form of broadview-lib's own test, with three times.
    let one = |second: u32, cells: u32| {
        format!(
            r#"{{"jsonrpc": "2.0", "method": "get-bst-report", "asic-id": "20", "version": "1", "time-stamp": "2014-11-18 - 00:15:{second:02} ",
            "report": [{{"realm": "device", "data": 46}}, {{"realm": "egress-uc-queue", "data": [[6, "2", {cells}]]}},
            {{"realm": "ingress-port-priority-group", "data": [{{"port": "3", "data": [[5, {}, 44450]]}}]}}]}}"#,
            cells / 2
        )
    };
    let reports = [one(4, 10), one(5, 1_111), one(6, 300)].join("\n");
    let folder = Folder::new();
    let path = folder.file("bst.json", &reports);
    let asked = failure(&path, None);
    assert!(
        asked.contains("the report does not say what its values are") && asked.contains("watermark=buffer-count:cells(208B)"),
        "{asked}"
    );
    let (found, notes) = intervals(reports.as_bytes(), "bst.json", Some("watermark=buffer-count:cells(208B)"));
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.length() / S, i.watermark, i.queue)).collect();
    let queue = "asic 20 port 2 queue 6";
    assert_eq!(told[..2].iter().filter(|row| row.0 == queue).count() + told[2..].iter().filter(|row| row.0 == queue).count(), 2);
    assert!(told.contains(&(queue, 1, Some(1_111 * 208), None)) && told.contains(&(queue, 1, Some(300 * 208), None)), "{told:?}");
    assert!(told.contains(&("asic 20 port 3 priority group (in) 5", 1, Some(555 * 208), None)), "{told:?}");
    assert!(notes.iter().any(|note| note.contains("realms 'device': 3")), "{notes:?}");
    let (found, _) = intervals(reports.as_bytes(), "bst.json", Some("queue=buffer-count:B"));
    assert!(found.iter().any(|(port, i)| port == queue && i.queue == Some(1_111) && i.watermark.is_none()));
    let options = r#"{"rate": "10Gbps", "above": "100KB", "buffer": "200KB", "columns": "watermark=buffer-count:cells(208B)"}"#;
    let told = report(&path, options).unwrap();
    let codes: Vec<_> = told.plausibility.findings.iter().filter(|f| f.level == Level::Doubt).map(|f| f.code).collect();
    assert_eq!(codes, ["queue_above_buffer"], "1111 cells of 208 B are more than 200 KB");
}

#[test]
fn arrow_files_of_sonic_are_series_of_counters() {
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/arrow/hft.arrows");
    let bytes = std::fs::read(&kept).unwrap();
    let (found, notes) = intervals(&bytes, "hft.arrow", None);
    let told: Vec<_> = found.iter().map(|(port, i)| (port.as_str(), i.length() / 1_000_000, i.sent, i.watermark)).collect();
    let (port, queue) = ("Ethernet0", "Ethernet0|3");
    assert_eq!(
        told,
        [
            (port, 100, Some(1_000), None),
            (queue, 100, None, Some(70_000)),
            (port, 100, Some(88_000), None),
            (queue, 100, None, Some(6_000)),
            // From one record batch to the next.
            (port, 100, Some(500), None),
            (queue, 100, None, Some(5_000)),
        ]
    );
    let said = notes.join("\n");
    assert!(said.contains("2 series of SAI counters at 2 objects; 1 of other counters are not read"), "{said}");
    let folder = Folder::new();
    let told = report(&folder.file("hft.arrow", &bytes), r#"{"rate": "10Gbps", "above": "50KB"}"#).unwrap();
    let port = told.ports.iter().find(|port| port.port == queue).unwrap();
    assert_eq!((port.bursts_found, port.bursts[0].peak_bytes, port.bursts[0].duration_ps), (1, Some(70_000), 100_000_000));
    // Whatever is cut off, what is whole is read.
    for cut in [40, 200, 400] {
        let (found, notes) = intervals(&bytes[..bytes.len() - cut], "cut.arrow", None);
        assert!(found.len() == 4 && notes.iter().any(|note| note.contains("cut short")), "{cut}: {notes:?}");
    }
    let said = failure(&folder.file("mapped.arrow", &bytes), Some("time=timestamps_ns:ns,queue=values:B"));
    assert!(said.contains("has no effect: SONiC's Arrow file has no columns"), "{said}");
    let other: Vec<u8> = String::from_utf8_lossy(&bytes).find("arrow-v5").map_or_else(Vec::new, |_| {
        let at = bytes.windows(8).position(|part| part == b"arrow-v5").unwrap();
        [&bytes[..at], b"arrow-v9", &bytes[at + 8..]].concat()
    });
    let said = failure(&folder.file("v9.arrow", other), None);
    assert!(said.contains("format_version: 'sonic-hft-arrow-v9' is no version of SONiC's Arrow files that is read; accepted: sonic-hft-arrow-v5"), "{said}");
}

#[test]
fn pauses_of_sonics_history_are_told_by_priority_and_are_no_bursts() {
    // The form of the design's own example.
    let answer = |time: u64, unit: &str, rows: &[(&str, &str, &str)]| {
        let head = format!("     Port    Priority    RX Pause Transitions    Total RX Pause Time {unit}    Recent RX Pause Time {unit}    Recent RX Pause Timestamp");
        let rows: String =
            rows.iter().map(|(p, t, u)| format!("Ethernet0  {p}  {t}  {u}  1,200  01/10/2008, 21:20:00\n")).collect();
        format!("{time}\n{head}\n--------  ------  ----\n{rows}\n")
    };
    let first = 1_700_000_000;
    let series = [
        answer(first, "MS", &[("PFC0", "12", "12,000"), ("PFC3", "5", "7"), ("PFC4", "N/A", "N/A")]),
        answer(first + 10, "MS", &[("PFC0", "12", "12,000"), ("PFC3", "9", "4,007")]),
        answer(first + 20, "MS", &[("PFC0", "0", "0"), ("PFC3", "9", "24,007")]),
    ]
    .concat();
    let folder = Folder::new();
    let told = report(&folder.file("pauses.txt", &series), r#"{"rate": "10Gbps"}"#).unwrap();
    let said = told.notes.join("\n");
    for part in [
        "3 answers of PFC",
        "Ethernet0 PFC3: paused 14 s in 20 s (70 %), begun 4 times; most from 11 s on: 10 s of 10 s",
        "1 interval in which counts began anew",
    ] {
        assert!(said.contains(part), "{part}\nin\n{said}");
    }
    assert!(!said.contains("Ethernet0 PFC0:"), "{said}");
    let port = told.ports.iter().find(|port| port.port == "Ethernet0 PFC3").unwrap();
    assert_eq!((port.bursts_found, port.counted.as_ref().unwrap().known_ps), (0, 0));
    assert!(port.nothing.as_ref().unwrap().words.starts_with("whether there was a burst is unknown"));
    let found: Vec<_> = told.plausibility.findings.iter().map(|f| (f.code, f.place.as_str(), f.count)).collect();
    assert!(found.contains(&("pauses_longer_than_time", "Ethernet0 PFC3", 1)), "{found:?}");
    let said = failure(&folder.file("bad.txt", series.replace("4,007", "4.007x")), None);
    assert!(said.contains("Total RX Pause Time: '4.007x' is no count of pauses; accepted: for example 12,000,000"), "{said}");
    let said = failure(&folder.file("unit.txt", series.replace("Time MS", "Time")), None);
    assert!(said.contains("says no unit of pauses; accepted: Total RX Pause Time US"), "{said}");
}

#[test]
fn points_of_otlp_without_a_time_are_counted_and_a_length_ends() {
    let ns = 1_700_000_000_000_000_000;
    let of = |ns: u64, octets| request(&[point("Ethernet0", (1, 9), ns, octets)]);
    let stream = [of(ns, 1), of(0, 2), of(ns + 1_000_000, 3)].concat();
    let line = |ns: u64, value: u64| {
        format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"system.network.io","sum":{{"aggregationTemporality":2,"dataPoints":[{{"timeUnixNano":"{ns}","asInt":"{value}","attributes":[{{"key":"device","value":{{"stringValue":"eth0"}}}}]}}]}}}}]}}]}}]}}
"#
        )
    };
    let lines = [line(ns, 1), line(0, 2), line(ns + 1_000_000, 3)].concat();
    for (bytes, name) in [(&stream[..], "otlp.bin"), (lines.as_bytes(), "otlp.json")] {
        let (found, notes) = intervals(bytes, name, None);
        assert_eq!(found.iter().map(|(_, interval)| interval.sent).collect::<Vec<_>>(), [Some(2)], "{name}");
        assert!(notes.iter().any(|note| note.contains("points without a time: 1, passed over")), "{notes:?}");
    }
    // A sum that says neither is no running count.
    for unsaid in [lines.replace(":2,", ":0,"), lines.replace("\"aggregationTemporality\":2,", "")] {
        let (found, notes) = intervals(unsaid.as_bytes(), "otlp.json", None);
        assert!(found.is_empty(), "{found:?}");
        assert!(notes.iter().any(|note| note.contains("'system.network.io' that say neither DELTA nor CUMULATIVE")), "{notes:?}");
    }
    let folder = Folder::new();
    let said = failure(&folder.file("endless.bin", [&of(ns, 1)[..], &[0x0a], &[0xff; 12]].concat()), None);
    assert!(said.contains("message 2: is no length of a message: it does not end"), "{said}");
}

#[test]
fn times_of_nxos_may_say_their_zone() {
    let folder = Folder::new();
    let row = |zone: &str| {
        let burst = BURST.replace("2026/11/21 08:00:00:", "2026-11-21T08:00:00.").replace("725\"", &format!("725{zone}\""));
        burst.replace("825\"", &format!("825{zone}\"")).replace("925\"", &format!("925{zone}\""))
    };
    let told = |zone: &str| {
        let path = folder.file("bursts.json", format!(r#"{{"TABLE_instance": {{"ROW_instance": [{}]}}}}"#, row(zone)));
        report(&path, r#"{"rate": "10Gbps", "above": "310000B"}"#).unwrap()
    };
    let (zoned, bare) = (told("+01:00"), told(""));
    assert_eq!((zoned.ports[0].bursts[0].duration_ps, zoned.ports[0].peak_bytes), (200_000_000, Some(832_000)));
    let says = |report: &crate::trace::TraceReport| report.notes.iter().any(|note| note.contains("no time zone"));
    assert_eq!((says(&zoned), says(&bare)), (false, true));
}

#[test]
fn a_stream_that_ends_within_a_message_says_so() {
    let ns = 1_700_000_000_000_000_000;
    let otlp = [0u64, 1, 2].map(|i| request(&[point("Ethernet0", (1, 9), ns + i * 1_000_000, 1_000 * i as i64)])).concat();
    let inner = ip(6, 0, 1_500, &tcp((40_000, 80)));
    let report = |us: u32| {
        let metadata = [shorts(&[1, 2]), be(&[3 << 24 | 900])].concat();
        (us, datagram((5_000, 32_766), &group(us, &[int(0x20, 0x5000, &metadata, &inner)])))
    };
    let cells = Some("queue=queue-occupancy:cells(208B)");
    for (bytes, name, columns) in [(otlp, "cut.bin", None), (pcap(&[report(1), report(2), report(3)]), "cut.pcap", cells)] {
        let cut =
            |notes: &[String]| notes.iter().filter(|note| note.contains("ends within a message")).cloned().collect::<Vec<_>>();
        assert_eq!(cut(&intervals(&bytes, name, columns).1), [""; 0], "{name}, whole");
        let (found, notes) = intervals(&bytes[..bytes.len() - 3], name, columns);
        assert!(!found.is_empty(), "{name}: what came before is read");
        let said = cut(&notes);
        assert!(said.len() == 1 && said[0].contains("bytes are not read"), "{name}: {notes:?}");
    }
}

#[test]
fn three_digits_behind_the_third_colon_of_nxos_are_doubted() {
    let folder = Folder::new();
    let found = |times: [&str; 3], duration: &str| {
        let [start, peak, end] = times.map(|digits| format!("2026/11/21 08:00:00:{digits}"));
        let row = format!("Eth1/36 | U0 | 310128 |{start}| 832000 |{peak}| 9000 |{end}|{duration}\n");
        let path = folder.file("bursts.txt", format!("Microburst Statistics\n{row}"));
        let told = report(&path, r#"{"rate": "10Gbps", "above": "310000B"}"#).unwrap();
        let finding = told.plausibility.findings.iter().find(|finding| finding.code == "digits_of_times");
        finding.map(|finding| (finding.level, finding.words.clone()))
    };
    let words = "3 times are with three digits behind the third colon, as '2026/11/21 08:00:00:123', read as microseconds: they may be milliseconds";
    assert_eq!(found(["123", "223", "323"], ""), Some((Level::Doubt, words.into())));
    assert_eq!(found(["123", "223", "323"], " 200.00 us"), None, "the duration shows it");
    assert_eq!(found(["123", "1223", "1323"], ""), None);
}
