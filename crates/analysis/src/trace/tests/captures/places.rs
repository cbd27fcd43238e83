//! One flow at several interfaces, and one capture in several files.

use super::*;

/// A connection whose packets leave a switch by two uplinks in turn, and whose answers come by both as well.
fn sprayed() -> Vec<(u64, Vec<u8>)> {
    let mut frames = vec![
        (0, Segment { mss: Some(1460), ..up(0, 1).of(SYN, 0, 0) }.cooked(4, 4)),
        (50, down(50, 1).of(SYN | ACK, 0, 1).cooked(5, 3)),
    ];
    for i in 0..200_u32 {
        let us = 100 + 10 * u64::from(i);
        frames.push((us, up(us, 1).data(1 + 1000 * i, 1000).cooked(4 + i % 2, 4)));
        if i % 2 == 1 {
            frames.push((us + 5, down(us + 5, 1).of(ACK, 1, 1001 + 1000 * i).cooked(4 + i / 2 % 2, 3)));
        }
    }
    frames
}

#[test]
fn packets_of_a_flow_at_several_uplinks_are_no_copies() {
    let spread = found("any.pcap", &pcap(276, 65_535, &sprayed()));
    assert_eq!(spread.ports(), [("if4 out".into(), 101), ("if5 out".into(), 100)]);
    assert_eq!(spread.taken.streams[1].why, "other packets, with at least half as many bytes: a queue of its own");
    // It was captured whole, from its SYN on.
    assert_eq!(spread.codes(), []);
    let opened: Vec<_> = spread.records.iter().map(|(_, _, info)| info.opened).collect();
    assert!(opened.iter().all(|at| at.is_some() && *at == opened[0]), "{opened:?}");
    // A packet less is one that passed elsewhere.
    let mut less = sprayed();
    let gone = less.iter().position(|(us, _)| *us == 100 + 10 * 77).unwrap();
    less.remove(gone);
    assert_eq!(found("any.pcap", &pcap(276, 65_535, &less)).codes(), [("acked_unseen", Level::Doubt, 1, Some(1000))]);
    // Packets that pass one interface after another are the same.
    let twice: Vec<_> = sprayed()
        .into_iter()
        .flat_map(|(us, frame)| {
            let mut later = frame.clone();
            later[7] = 9;
            // A router has taken a hop.
            later[20 + 8] -= 1;
            [(us, frame), (us + 1, later)]
        })
        .collect();
    let twice = found("any.pcap", &pcap(276, 65_535, &twice));
    assert!(twice.ports().iter().all(|(port, _)| port == "if9 out"), "{:?}", twice.ports());
    assert!(twice.why().contains(&("the same packets at another interface", 101)), "{:?}", twice.why());
}

#[test]
fn a_packet_that_comes_back_after_a_detour_is_no_copy() {
    let mut frames = Vec::new();
    for (i, segment) in incast().iter().filter(|s| s.payload > 0).enumerate() {
        let frame = segment.cooked(4, 4);
        frames.push((segment.us, frame.clone()));
        let mut again = frame;
        // Out and back: two hops. A router between two places of capture takes one at most.
        again[20 + 8] -= if i % 3 == 0 { 2 } else { 1 };
        frames.push((segment.us + 3, again));
    }
    let found = found("any.pcap", &pcap(276, 65_535, &frames));
    assert_eq!(found.ports(), [("if4 out".into(), 40)]);
    assert!(found.codes().contains(&("duplicates", Level::Note, 20, Some(20 * 1058))), "{:?}", found.codes());
}

/// Analyses files together.
fn together(folder: &Folder, files: &[(&str, Vec<u8>)], more: &Value) -> Value {
    let paths: Vec<_> = files.iter().map(|(name, bytes)| folder.file(name, bytes)).collect();
    let mut settings = json!({"paths": paths, "rate": "1Gbps"});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::to_value(analyze(&Options::from_json(&settings.to_string()).unwrap(), &mut Patient).unwrap()).unwrap()
}

fn ports(document: &Value) -> Vec<(String, u64)> {
    let ports = document["ports"].as_array().unwrap().iter();
    ports.map(|p| (p["port"].as_str().unwrap().to_string(), p["records"].as_u64().unwrap())).collect()
}

/// Three clients with handshakes, and their data; the answers of all are in the second half.
fn rotated() -> Vec<Segment> {
    let mut segments: Vec<Segment> = (1..=3).flat_map(|client| connection(u64::from(client) * 20, client)).collect();
    segments.extend((0..300_u32).flat_map(|i| {
        let us = 10_000 + 50 * u64::from(i);
        let client = 1 + (i % 3) as u8;
        let data = up(us, client).data(10_002 + 1000 * (i / 3), 1000);
        [Some(data), (i > 150).then(|| down(us + 9, client).of(ACK, 1, 10_002))].into_iter().flatten()
    }));
    segments.sort_by_key(|s| s.us);
    segments
}

#[test]
fn files_that_one_capture_was_written_to_in_turn_are_one_port() {
    let (folder, segments) = (Folder::new(), rotated());
    let whole = together(&folder, &[("whole.pcap", plain(&segments))], &json!({}));
    let third = segments.len() / 3;
    let parts: Vec<Vec<u8>> = segments.chunks(third + 1).map(plain).collect();
    for names in
        [["x.pcap", "x.pcap1", "x.pcap2"], ["y.pcap00", "y.pcap01", "y.pcap02"], ["z-1159.pcap", "z-1200.pcap", "z-1201.pcap"]]
    {
        let files: Vec<_> = names.into_iter().zip(parts.clone()).rev().collect();
        let document = together(&folder, &files, &json!({}));
        let stem = names[0].split('.').next().unwrap();
        let records = whole["ports"][0]["records"].as_u64().unwrap();
        assert_eq!(ports(&document), [(format!("{stem} to 10.0.0.99"), records)]);
        for key in ["first_ps", "last_ps", "bursts_found", "burst_ps"] {
            assert_eq!(document["ports"][0][key], whole["ports"][0][key], "{key}");
        }
        assert_eq!(document["plausibility"], whole["plausibility"], "no flow is without its SYN");
        assert_eq!(document["plausibility"]["findings"], json!([]));
        let notes = document["notes"].to_string();
        assert!(notes.contains("3 files follow one another and are one capture"), "{notes}");
        let taken: Vec<&Value> =
            document["sources"].as_array().unwrap().iter().map(|s| &s["taken"]).filter(|t| !t.is_null()).collect();
        assert_eq!(
            (taken.len(), &taken[0]["streams"][0]["packets"]),
            (1, &whole["sources"][0]["taken"]["streams"][0]["packets"])
        );
    }
    // Captures of one time are of several interfaces, and so are those of other names.
    let halves: Vec<Vec<u8>> = [0, 1]
        .map(|odd| plain(&segments.iter().enumerate().filter(|(i, _)| i % 2 == odd).map(|(_, s)| *s).collect::<Vec<_>>()))
        .into();
    let two = together(&folder, &[("eth0.pcap", halves[0].clone()), ("eth1.pcap", halves[1].clone())], &json!({}));
    assert_eq!(ports(&two).len(), 2);
    let two = together(&folder, &[("a.pcap", parts[0].clone()), ("b.pcap", parts[1].clone())], &json!({}));
    assert_eq!(ports(&two).len(), 2);
}

#[test]
fn what_was_taken_is_counted_as_the_queue_counts() {
    let folder = Folder::new();
    for (more, frame) in [(json!({}), 1058), (json!({"fcs": false}), 1054)] {
        let document = together(&folder, &[("tap.pcap", plain(&incast()))], &more);
        let stream = &document["sources"][0]["taken"]["streams"][0];
        assert_eq!((&stream["packets"], &stream["bytes"]), (&json!(30), &json!(30 * frame)));
    }
}
