//! Streams of telemetry that are read as they come: from connections, datagrams, and files that grow.

use super::counters::report;
use super::feeds::{config, congestion, congestion_at, counters, datagram, field, ipfix, template, LANZ_CSV};
use super::telemetry::{self, T};
use super::Folder;
use crate::trace::{Live, Options, Watching};
use serde_json::{json, Value};

fn live(more: &Value) -> Live {
    let mut settings = json!({ "paths": ["stream"], "rate": "10Gbps" });
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Live::new("stream", &Options::from_json(&settings.to_string()).unwrap(), Watching::default())
}

/// Ports and their bursts, as the analysis of a file has them.
fn of_file(bytes: &[u8], more: &Value) -> Vec<(String, Value)> {
    let folder = Folder::new();
    let mut settings = json!({ "rate": "10Gbps" });
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let found = report(&folder.file("stream", bytes), &settings.to_string()).unwrap();
    let of = |port: &crate::PortReport| {
        let bursts: Vec<Value> = port.bursts.iter().map(|burst| serde_json::to_value(burst).unwrap()).collect();
        bursts.into_iter().map(|burst| (port.port.clone(), burst)).collect::<Vec<_>>()
    };
    found.ports.iter().flat_map(of).collect()
}

fn taken(live: &mut Live) -> Vec<(String, Value)> {
    let taken = serde_json::to_value(live.take()).unwrap();
    let list = taken["bursts"].as_array().unwrap();
    list.iter().map(|one| (one["port"].as_str().unwrap().to_string(), one["burst"].clone())).collect()
}

fn records(live: &Live) -> u64 {
    live.report()["ports"].as_array().unwrap().iter().map(|port| port["records"].as_u64().unwrap()).sum()
}

/// Congestions of LANZ: each starts, grows and ends within a millisecond.
fn lanz(congestions: u64) -> Vec<u8> {
    let mut stream = config();
    for i in 0..congestions {
        let at = 146_591_697_107_546 + 1_000 * i;
        stream.extend(congestion(at, 60_000, 1, &[(10, 0)]));
        stream.extend(congestion(at + 50, 80_000 + i, 2, &[(10, 3)]));
        stream.extend(congestion(at + 90, 90_000 + i, 3, &[(8, 700), (10, 1)]));
    }
    stream
}

/// A port of SONiC: a template, then a record each 100 us, of which some are busy.
fn sonic(records: u64) -> Vec<u8> {
    let mut stream = template(300, &[field(325, 8, None), field(2, 8, Some((1, 9))), field(2, 8, Some((1, 95)))]);
    let mut total = 0_u64;
    for i in 0..records {
        let busy = i % 20 < 3;
        total += if busy { 120_000 } else { 10_000 };
        let time = 1_700_000_000_000_000_000 + i * 100_000;
        let queue = if busy { 90_000 + i } else { 0 };
        stream.extend(ipfix(300, &[time, total, queue].map(u64::to_be_bytes).concat()));
    }
    stream
}

/// Datagrams of an agent, one each second; each tenth second is busy.
fn sflow(seconds: u32) -> Vec<Vec<u8>> {
    let mut octets = 0;
    let of = |second: u32| {
        octets += if second % 10 == 5 { 1_200_000_000 } else { 10_000_000 };
        datagram(second + 1, 1_000 * (second + 1), &[counters(octets, 0)])
    };
    (0..seconds).map(of).collect()
}

#[test]
fn messages_come_in_pieces_and_bursts_are_those_of_the_file() {
    let streams = [(lanz(40), 40, 200), (sonic(400), 20, 399), (sflow(60).concat(), 6, 59)];
    for (bytes, count, readings) in streams {
        let more = if readings == 399 { json!({ "above": "20KB" }) } else { json!({}) };
        let expected = of_file(&bytes, &more);
        assert_eq!(expected.len(), count);
        for chunk in [1, 7, 1_000, bytes.len()] {
            let mut live = live(&more);
            let mut found = Vec::new();
            for (turn, part) in bytes.chunks(chunk).enumerate() {
                live.push(part).unwrap();
                if chunk > 7 || turn % 100 == 99 {
                    live.settle().unwrap();
                    found.extend(taken(&mut live));
                }
            }
            (0..2).for_each(|_| live.settle().unwrap());
            assert_eq!(live.used(), bytes.len() as u64, "all messages are whole");
            found.extend(taken(&mut live));
            assert!(found.len() + 1 >= count, "bursts come while the stream does: {}", found.len());
            live.end().unwrap();
            found.extend(taken(&mut live));
            assert_eq!(found, expected, "chunks of {chunk}");
            assert_eq!((records(&live), live.report()["refused"].as_u64()), (readings, Some(0)), "chunks of {chunk}");
        }
    }
}

#[test]
fn a_wrong_message_costs_no_other() {
    let bytes = lanz(20);
    // A type of a record that does not end, in a message of three bytes.
    let at = config().len() + (bytes.len() - config().len()) / 20 * 10;
    let wrong = [&bytes[..at], &[3, 0x12, 0x05, 0x08], &bytes[at..]].concat();
    let expected = of_file(&bytes, &json!({}));
    for chunk in [1, 1_000, wrong.len()] {
        let mut live = live(&json!({}));
        live.push(&bytes[..config().len() + 200]).unwrap();
        (0..2).for_each(|_| live.settle().unwrap());
        wrong[config().len() + 200..].chunks(chunk).for_each(|part| live.push(part).unwrap());
        live.end().unwrap();
        assert_eq!((taken(&mut live), live.report()["refused"].as_u64()), (expected.clone(), Some(1)), "chunks of {chunk}");
        assert!(live.report()["problems"][0].as_str().unwrap().contains("is no LANZ message"));
    }
    // Many wrong ones, and what stands behind them, are taken when they come.
    let mut many = live(&json!({}));
    many.push(&bytes[..at]).unwrap();
    (0..2).for_each(|_| many.settle().unwrap());
    many.push(&[&[3, 0x12, 0x05, 0x08].repeat(2_000), &bytes[at..]].concat()).unwrap();
    assert_eq!((records(&many), many.report()["refused"].as_u64()), (100, Some(2_000)));
    // Behind a length that is none, nothing can be told apart: until the next connection.
    let mut live = live(&json!({}));
    live.push(&bytes).unwrap();
    (0..2).for_each(|_| live.settle().unwrap());
    let error = live.push(&[0xff; 12]).unwrap_err();
    assert!(error[0].to_string().contains("message 62: is no length of a message: it does not end"), "{error:?}");
    live.push(b"what comes of it is passed over\n").unwrap();
    assert!(live.reopen().is_ok());
    let later = lanz(21)[config().len() + (bytes.len() - config().len())..].to_vec();
    live.push(&[config(), later].concat()).unwrap();
    live.end().unwrap();
    assert_eq!(taken(&mut live).len(), 21);
}

#[test]
fn datagrams_are_read_one_by_one_and_have_the_times_at_which_they_came() {
    let second = 1_000_000_000;
    let start = 1_700_000_000 * second;
    let mut of_sflow = live(&json!({}));
    let mut wrong = 0;
    for (i, datagram) in sflow(60).into_iter().enumerate() {
        let now = start + i as u64 * second;
        of_sflow.push_datagram(&datagram, now).unwrap();
        if i == 30 {
            // Cut, of another kind, of none, empty, a capture.
            for other in [&datagram[..datagram.len() - 9], b"text\n", &[1, 2, 3], b"", &[0xd4, 0xc3, 0xb2, 0xa1, 0, 0, 0, 0]] {
                of_sflow.push_datagram(other, now + 1).unwrap();
                wrong += 1;
            }
        }
        of_sflow.settle().unwrap();
    }
    of_sflow.end().unwrap();
    assert_eq!(
        (of_sflow.report()["refused"].as_u64(), of_sflow.report()["origin_s"].as_u64()),
        (Some(wrong), Some(1_699_999_999))
    );
    let found = taken(&mut of_sflow);
    assert_eq!(found.len(), 6);
    // The counters of second 14 are those of second 15, which is busy.
    let times: Vec<_> = found.iter().map(|(_, burst)| burst["end_ps"].as_u64().unwrap() / 1_000_000_000_000).collect();
    assert_eq!(times, [6, 16, 26, 36, 46, 56]);
    assert_eq!(found[0].0, "10.0.0.1 if 7");

    let above = json!({ "above": "20KB" });
    let mut of_ipfix = live(&above);
    let bytes = sonic(400);
    let mut rest = &bytes[..];
    let mut count = 0;
    while !rest.is_empty() {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        of_ipfix.push_datagram(&rest[..length], start).unwrap();
        if count % 100 == 5 {
            of_ipfix.push_datagram(&rest[..length - 3], start).unwrap();
            of_ipfix.settle().unwrap();
        }
        (rest, count) = (&rest[length..], count + 1);
    }
    of_ipfix.end().unwrap();
    assert_eq!((taken(&mut of_ipfix), of_ipfix.report()["refused"].as_u64()), (of_file(&bytes, &above), Some(4)));
    assert_eq!(records(&of_ipfix), 399);
}

#[test]
fn a_stray_datagram_at_the_start_deafens_nothing() {
    let start = 1_700_000_000_000_000_000;
    let table = vec!["time_s,queue_bytes\n1700000000,1", "1700000001,2"];
    for (strays, refused) in [(vec!["hello"], 1), (table, 16)] {
        let mut live = live(&json!({}));
        for stray in strays {
            live.push_datagram(stray.as_bytes(), start).unwrap();
        }
        (0..3).for_each(|_| live.settle().unwrap());
        for (i, datagram) in sflow(60).into_iter().enumerate() {
            live.push_datagram(&datagram, start + i as u64 * 1_000_000_000).unwrap();
            live.settle().unwrap();
        }
        live.end().unwrap();
        let report = live.report();
        assert_eq!((report["refused"].as_u64(), &report["kind"]), (Some(refused), &json!("sflow")), "{report}");
    }
}

#[test]
fn a_port_of_which_lanz_is_silent_is_below_its_threshold() {
    let mut stream = config();
    let congested = |port: &[u8], i: u64| {
        let at = 146_591_697_107_546 + 5_000 * i;
        let entries = [(0, 60_000, 1), (2_000, 80_000, 2), (4_000, 9_000, 3)];
        entries.map(|(after, segments, kind)| congestion_at(port, at + after, segments, kind, &[])).concat()
    };
    (0..50).for_each(|i| stream.extend([congested(b"Et1", i), congested(b"Et2", i)].concat()));
    // From here on one port alone is congested, for ten seconds.
    (50..2_050).for_each(|i| stream.extend(congested(b"Et1", i)));
    let mut live = live(&json!({}));
    live.push(&stream).unwrap();
    (0..2).for_each(|_| live.settle().unwrap());
    let report = live.report();
    let told = |port: usize| ["port", "bursts", "queue_bytes", "unknown_now"].map(|key| report["ports"][port][key].clone());
    assert_eq!(told(1), [json!("Et2"), json!(50), json!(0), Value::Null]);
    assert_eq!((&told(0)[0], &told(0)[3]), (&json!("Et1"), &Value::Null));
}

#[test]
fn a_table_of_lanz_grows() {
    let columns = json!({ "columns": "queue=Queue-Length:segments(480B)", "above": "1MB" });
    let whole = format!("{LANZ_CSV} E,2013-08-12 21:55:59.53284,Et4(1),81,3020,9,280.070,0\n");
    let expected = of_file(whole.as_bytes(), &columns);
    assert_eq!(expected.len(), 1);
    for chunk in [50, 300, whole.len()] {
        let mut live = live(&columns);
        let mut seen = Vec::new();
        for part in whole.as_bytes().chunks(chunk) {
            live.push(part).unwrap();
            live.settle().unwrap();
            seen.push(records(&live));
        }
        live.settle().unwrap();
        assert_eq!(records(&live), 9, "the last row is told without an end");
        assert!(chunk > 50 || seen.windows(2).filter(|pair| pair[0] < pair[1]).count() >= 5, "{seen:?}");
        // Another report of the switch, with the newest entry first.
        let (before, rows) = whole.split_once("Tx-Drops\n").unwrap();
        let later = rows.replace("21:55", "21:56");
        let mut rows: Vec<&str> = later.lines().collect();
        rows.reverse();
        live.push(format!("{before}Tx-Drops\n{}\n", rows.join("\n")).as_bytes()).unwrap();
        live.end().unwrap();
        let found = taken(&mut live);
        assert_eq!((found.len(), &found[0], live.report()["refused"].as_u64()), (2, &expected[0], Some(0)), "chunks of {chunk}");
        assert_eq!(found[1].1["peak_bytes"], expected[0].1["peak_bytes"]);
    }
}

#[test]
fn a_new_start_reads_what_was_counted_for_its_templates_and_counts_it_once() {
    for bytes in [lanz(40), sonic(400), sflow(60).concat()] {
        assert!(Live::needs_beginning(&bytes));
        let expected = of_file(&bytes, &json!({}));
        let mut first = live(&json!({}));
        // In the middle of a message.
        let half = bytes.len() / 2 + 3;
        first.push(&bytes[..half]).unwrap();
        (0..2).for_each(|_| first.settle().unwrap());
        let used = first.used() as usize;
        assert!(used < half && used > half - 200, "{used} of {half}");
        first.stop();
        let mut second = live(&json!({}));
        for part in bytes[..used].chunks(100) {
            second.replay(part).unwrap();
        }
        assert_eq!((records(&second), second.used()), (0, used as u64));
        second.push(&bytes[used..]).unwrap();
        second.end().unwrap();
        assert_eq!(second.used(), 0, "the file is over");
        let whole = {
            let mut live = live(&json!({}));
            live.push(&bytes).unwrap();
            live.end().unwrap();
            records(&live)
        };
        assert_eq!(records(&first) + records(&second), whole);
        let found: Vec<_> = [taken(&mut first), taken(&mut second)].concat();
        assert!((expected.len()..=expected.len() + 1).contains(&found.len()), "one may be cut in two");
        assert_eq!((first.report()["refused"].as_u64(), second.report()["refused"].as_u64()), (Some(0), Some(0)));
    }
    assert!(!Live::needs_beginning(b"time_ns,queue_bytes\n1,2\n"));
}

#[test]
fn other_telemetry_is_told_as_it_comes() {
    // One port that is busy from time to time, as each of these sources tells of it.
    let ns = |i: u64| u64::from(T) * 1_000_000_000 + i * 1_000_000;
    let busy = |i: u64| if i % 10 < 3 { 90_000 + i } else { 10 };
    let reports = telemetry::pcap(
        &(0..60)
            .map(|i| {
                let queue = [telemetry::shorts(&[1, 2]), telemetry::be(&[3 << 24 | busy(i.into()) as u32])].concat();
                let inner = telemetry::ip(6, 0, 1_500, &telemetry::tcp((40_000, 80)));
                let group = telemetry::group(i, &[telemetry::int(0x20, 0x5000, &queue, &inner)]);
                (10 * i, telemetry::datagram((5_000, 32_766), &group))
            })
            .collect::<Vec<_>>(),
    );
    let flows: Vec<u8> = [telemetry::ipfix(0, &[telemetry::flow_template(300, &[])])]
        .into_iter()
        .chain((0..600_u32).map(|i| {
            let end = T + 10 * i;
            let octets = if i % 10 < 3 { 4_000_000_000 } else { 1_000 };
            let mut message = telemetry::ipfix(i, &[telemetry::set(300, &telemetry::flow(octets, (end - 5, end - 5), &[]))]);
            message[4..8].copy_from_slice(&end.to_be_bytes());
            message
        }))
        .flatten()
        .collect();
    let otlp: Vec<u8> =
        (0..60).flat_map(|i| telemetry::request(&[telemetry::point("Ethernet0|3", (21, 0x18), ns(i), busy(i) as i64)])).collect();
    let json: String = (0..60)
        .map(|i| {
            let (time, value) = (ns(i), busy(i));
            format!(
                r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"sai_counter","gauge":{{"dataPoints":[{{"timeUnixNano":"{time}","asInt":"{value}","attributes":[{{"key":"object_name","value":{{"stringValue":"q"}}}},{{"key":"sai_type_id","value":{{"stringValue":"21"}}}},{{"key":"sai_stat_id","value":{{"stringValue":"24"}}}}]}}]}}}}]}}]}}]}}
"#
            )
        })
        .collect();
    let bst: String = (0..50)
        .map(|i| {
            let value = busy(i);
            format!(
                r#"{{"method": "get-bst-report", "asic-id": "20", "time-stamp": "2014-11-18 - 00:15:{i:02}", "report": [{{"realm": "egress-uc-queue", "data": [[6, "2", {value}]]}}]}}
"#
            )
        })
        .collect();
    let runs: String = (0..3_u64)
        .map(|run| {
            let values: Vec<String> = (0..20).map(|i| (if i < 15 && i % 10 < 3 { 1_200_000 } else { 10 }).to_string()).collect();
            let start = ns(20 * run) / 1_000;
            format!(
                r#"{{"server_hostname": 1, "rack_id": 2, "burst_result": {{"ingress": {{"{start}": []}}}}, "ingressBytes": [{}]}}
"#,
                values.join(", ")
            )
        })
        .collect();
    let queue = |columns: &str| json!({ "above": "50KB", "columns": columns });
    let streams = [
        ("INT", reports, queue("queue=queue-occupancy:B"), 6, 59),
        // As late as records may come.
        ("NetFlow", flows, json!({ "share": 0.2 }), 60, 410),
        ("OTLP", otlp, json!({ "above": "50KB" }), 6, 50),
        ("OTLP JSON", json.into_bytes(), json!({ "above": "50KB" }), 6, 50),
        ("BST", bst.into_bytes(), queue("queue=buffer-count:B"), 5, 40),
        ("Millisampler", runs.into_bytes(), json!({ "share": 0.5 }), 6, 50),
    ];
    for (what, bytes, more, bursts, soon) in streams {
        let expected = of_file(&bytes, &more);
        assert_eq!(expected.len(), bursts, "{what}");
        for chunk in [97, bytes.len()] {
            let mut live = live(&more);
            for part in bytes.chunks(chunk) {
                live.push(part).unwrap();
                live.settle().unwrap();
            }
            (0..2).for_each(|_| live.settle().unwrap());
            assert!(records(&live) >= soon, "{what}: {} records before the end", records(&live));
            live.end().unwrap();
            assert_eq!((taken(&mut live), live.report()["refused"].as_u64()), (expected.clone(), Some(0)), "{what} by {chunk}");
        }
    }
}

#[test]
fn bursts_of_nxos_are_refused_as_they_come() {
    let mut live = live(&json!({}));
    let answer = format!(r#"{{"TABLE_instance": {{"ROW_instance": [{}]}}}}"#, telemetry::BURST.replace('\n', ""));
    live.push(format!("{answer}\n").as_bytes()).unwrap();
    let said = (0..20).find_map(|_| live.settle().err()).unwrap()[0].to_string();
    assert!(
        said.contains("is what burst-detect prints, which cannot be read as it comes") && said.contains("fanin analyze"),
        "{said}"
    );
}

#[test]
fn a_wrong_datagram_of_flows_costs_no_template() {
    let start = u64::from(T) * 1_000_000_000;
    let record = |octets: u32| telemetry::flow(octets, (T - 5, T - 5), &[]);
    let mut live = live(&json!({}));
    let first = telemetry::ipfix(0, &[telemetry::flow_template(300, &[]), telemetry::flow_template(301, &[82, 65_535])]);
    let right = |sequence: u32, octets: u32| telemetry::ipfix(sequence, &[telemetry::set(300, &record(octets))]);
    live.push_datagram(&first, start).unwrap();
    live.push_datagram(&right(0, 1_000), start).unwrap();
    (0..3).for_each(|_| live.settle().unwrap());
    // Its text is longer than the set.
    let wrong = telemetry::ipfix(1, &[telemetry::set(301, &[&record(1)[..], &[200, 1]].concat())]);
    live.push_datagram(&wrong, start).unwrap();
    live.push_datagram(&right(1, 500), start).unwrap();
    live.end().unwrap();
    let report = live.report();
    assert_eq!((report["refused"].as_u64(), records(&live)), (Some(1), 1), "{report}");
    assert!(report["problems"][0].as_str().unwrap().contains("ends within a record"), "{report}");
}

#[test]
fn netflow_9_in_datagrams_is_that_of_a_file() {
    let start = u64::from(T) * 1_000_000_000;
    let sets = [
        telemetry::set(0, &telemetry::shorts(&telemetry::FIELDS_9)),
        telemetry::set(256, &telemetry::flow9(1, 1_000, 900_000, 910_000)),
    ];
    let mut live = live(&json!({}));
    for number in 1..=3 {
        live.push_datagram(&telemetry::netflow9(number, T, &sets), start + u64::from(number)).unwrap();
    }
    // A set that is longer than its message: that one alone is refused.
    let mut wrong = telemetry::netflow9(4, T, &[telemetry::set(256, &[0, 1, 0, 1])]);
    wrong[22..24].copy_from_slice(&900_u16.to_be_bytes());
    live.push_datagram(&wrong, start + 4).unwrap();
    live.push_datagram(&telemetry::netflow9(5, T, &sets[1..]), start + 5).unwrap();
    live.end().unwrap();
    let report = live.report();
    assert_eq!((report["refused"].as_u64(), records(&live)), (Some(1), 1), "{report}");
    assert!(report["problems"][0].as_str().unwrap().contains("set 256: '900' is no length of a set"), "{report}");
}

#[test]
fn a_capture_most_of_which_is_wrong_is_refused_at_its_end_as_by_an_analysis() {
    for (wrong, refused) in [(59, None), (60, Some("60 of 120 datagrams are wrong"))] {
        let mut frames = Vec::new();
        for (i, whole) in (0..).zip(sflow(60)) {
            frames.push((1_000_000 * i, telemetry::datagram((9_000, 6_343), &whole)));
            if i < wrong {
                frames.push((1_000_000 * i + 1, telemetry::datagram((9_000, 6_343), &whole[..whole.len() - 9])));
            }
        }
        let bytes = telemetry::pcap(&frames);
        let of_file = report(&Folder::new().file("s.pcap", &bytes), r#"{"rate": "10Gbps"}"#);
        let mut live = live(&json!({}));
        for part in bytes.chunks(1_000) {
            live.push(part).unwrap();
            live.settle().unwrap();
        }
        assert_eq!((records(&live), live.report()["refused"].as_u64()), (59, Some(wrong.into())), "what can be read is");
        let of_stream = live.end().map_err(|problems| problems[0].to_string());
        match refused {
            Some(said) => assert!(of_stream.unwrap_err().contains(said) && of_file.unwrap_err().contains(said)),
            None => assert!(of_stream.is_ok() && of_file.is_ok()),
        }
        assert_eq!(live.report()["refused"].as_u64(), Some(wrong.into()), "the refusal is no row");
        // The next file is read as if nothing had been.
        live.push(&telemetry::pcap(&[(61_000_000, telemetry::datagram((9_000, 6_343), &sflow(61)[60]))])).unwrap();
        assert!(live.reopen().is_ok());
    }
}
