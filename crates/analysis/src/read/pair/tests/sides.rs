//! What two captures show that cannot be of one port as it was given: its speed, packets that one of them lacks, and the sides of a
//! file that has both.

use super::trust::{codes, random};
use super::*;
use crate::read::plausibility::{Level, Trust};

#[test]
fn a_port_that_sends_at_another_speed_than_its_own_is_doubted() {
    let (arrivals, port) = plain(4_000, 7);
    let captures = Captures::new(&arrivals, &left(&port, 3_000, 0.0), Changed::default());
    for (rate, level, trust) in [
        ("500Mbps", Some(Level::Wrong), Trust::Poor),
        ("970Mbps", Some(Level::Doubt), Trust::Limited),
        ("1Gbps", None, Trust::Good),
        ("1.5Gbps", None, Trust::Good),
        ("2.5Gbps", Some(Level::Doubt), Trust::Limited),
    ] {
        let (report, pair) = captures.report(json!({"rate": rate}));
        let expected: Vec<_> = level.map(|level| ("speed", level)).into_iter().collect();
        assert_eq!((codes(&report), report.plausibility.trust), (expected, trust), "{rate}");
        let off = pair.notes.iter().any(|note| note.contains("of the speed given"));
        assert_eq!(off, ["1.5Gbps", "2.5Gbps"].contains(&rate), "{rate}");
        if rate == "500Mbps" {
            let words = &report.plausibility.findings[0].words;
            assert!(words.contains("sent 1 Gb/s on the wire, 200.00 % of the speed given, and no port"), "{words}");
        }
    }
}

#[test]
fn packets_that_the_capture_before_lost_are_counted_and_other_traffic_is_not() {
    let (arrivals, port) = plain(6_000, 7);
    let behind = left(&port, 0, 0.0);
    let all = port.all.iter().filter(|p| p.3.is_none()).count() as u64;
    for (one_in, level) in [(5, Level::Wrong), (300, Level::Doubt)] {
        let mut below = random(3);
        let kept: Vec<bool> = arrivals.iter().map(|_| below(one_in) > 0).collect();
        let before: Vec<_> = arrivals.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(a, _)| *a).collect();
        let (report, pair) = Captures::new(&before, &behind, Changed::default()).report(json!({"rate": "1Gbps"}));
        let found = report.plausibility.findings.iter().find(|f| f.code == "lost_before").unwrap();
        let lost = port.all.iter().zip(&kept).filter(|(p, kept)| p.3.is_some() && !**kept).count() as u64;
        assert!(found.count.abs_diff(lost) <= 2 && found.level == level, "{one_in}: {} of {lost}", found.count);
        if one_in == 5 {
            let about = found.words.split("about ").nth(1).and_then(|w| w.split(',').next()).unwrap().parse::<u64>().unwrap();
            assert!((pair.dropped + about).abs_diff(all) * 5 < all, "{} and {about} of {all}", pair.dropped);
        }
    }
    // Flows that come another way.
    let before: Vec<_> = arrivals.iter().filter(|(_, p)| p.flow % 8 > 0).copied().collect();
    let (report, pair) = Captures::new(&before, &behind, Changed::default()).report(json!({"rate": "1Gbps"}));
    assert!(pair.only_behind > 500, "{}", pair.only_behind);
    assert!(codes(&report).iter().all(|(code, _)| *code != "lost_before"), "{:?}", codes(&report));
}

/// Each packet that left is acknowledged from behind the port; captures of both directions, before and behind.
fn both_ways(port: &Port) -> [Vec<(i64, Packet)>; 2] {
    let mut sides = [port.all.iter().map(|p| (p.0, p.1)).collect::<Vec<_>>(), left(port, 0, 0.0)];
    for (i, (time, packet)) in sides[1].clone().into_iter().enumerate() {
        let answer = Packet { back: true, payload: 0, seq: i as u32, id: i as u16, ..packet };
        sides[1].push((time + 30_000, answer));
        sides[0].push((time + 32_000 + i as i64 % 300, answer));
    }
    sides.iter_mut().for_each(|side| side.sort_by_key(|(time, _)| *time));
    sides
}

#[test]
fn swapped_captures_of_both_directions_are_recognised_by_which_of_them_waits() {
    let (_, port) = plain(4_000, 7);
    let [before, behind] = both_ways(&port);
    let (report, pair) = Captures::new(&before, &behind, Changed::default()).report(json!({"rate": "1Gbps"}));
    let dropped = port.all.iter().filter(|p| p.3.is_none()).count() as u64;
    assert_eq!((codes(&report), pair.dropped), (vec![], dropped));
    assert!(pair.left_out.other_way > 7_000, "{:?}", pair.left_out);
    let (report, _) = Captures::new(&behind, &before, Changed::default()).report(json!({"rate": "1Gbps"}));
    assert_eq!((codes(&report), report.plausibility.trust), (vec![("swapped", Level::Wrong)], Trust::Poor));
    assert!(report.plausibility.findings[0].words.contains("so it is that which waits"));
}

/// A capture of all interfaces of a host (LINUX_SLL2): 4 in front of the port and 6 behind it.
fn all_interfaces(path: &Path, [before, behind]: &[Vec<(i64, Packet)>; 2]) {
    let mut frames: Vec<_> = before.iter().map(|f| (f, 4, false)).chain(behind.iter().map(|f| (f, 6, true))).collect();
    frames.sort_by_key(|((time, _), _, _)| *time);
    let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 20, 1, 0, 0];
    for ((ns, packet), interface, out) in frames {
        let bytes = packet.bytes(Changed::default());
        let direction = if out == packet.back { 0 } else { 4 };
        let header = [8, 0, 0, 0, 0, 0, 0, interface, 0, 1, direction, 6, 2, 2, 2, 2, 2, 2, 0, 0];
        let lengths = [header.len() + bytes.len() - 14, packet.length() as usize + 6].map(|n| n as u32);
        for word in [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, lengths[0].min(lengths[1]), lengths[1]] {
            file.extend(word.to_le_bytes());
        }
        let end = file.len() + lengths[0].min(lengths[1]) as usize;
        file.extend(header);
        file.extend(&bytes[14..]);
        file.truncate(end);
    }
    std::fs::write(path, file).unwrap();
}

#[test]
fn a_capture_of_both_sides_is_one_side_of_a_pair_only_with_its_interface() {
    let (_, port) = plain(4_000, 7);
    let sides = both_ways(&port);
    let captures = Captures::new(&sides[0], &sides[1], Changed::default());
    let any = captures.folder.path().join("any.pcap");
    all_interfaces(&any, &sides);
    let dropped = port.all.iter().filter(|p| p.3.is_none()).count() as u64;
    for (side, interface, option) in [("paths", "4", "before_interface"), ("behind", "6", "behind_interface")] {
        let error = match captures.try_report(json!({side: [&any]})) {
            Err(Failure::Problems(problems)) => problems.iter().map(ToString::to_string).collect::<String>(),
            other => panic!("{other:?}"),
        };
        assert!(error.contains(&format!("any.pcap: {option}")) && error.contains("holds both sides of a queue"), "{error}");
        assert!(error.contains("if4 (") && error.contains("if6 (") && error.contains("--before-interface"), "{error}");
        let (report, pair) = captures.report(json!({side: [&any], option: interface, "rate": "1Gbps"}));
        assert_eq!((codes(&report), pair.dropped, pair.only_behind), (vec![], dropped, 0), "{side}");
    }
    let (_, pair) = captures.report(json!({"paths": [&any], "behind": [&any], "before_interface": "4", "behind_interface": "6"}));
    assert_eq!((pair.dropped, pair.only_behind), (dropped, 0));
}
