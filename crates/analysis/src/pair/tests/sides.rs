//! What two captures show that cannot be of one port as it was given: its speed, packets that one of them lacks, and the sides of a
//! file that has both.

use super::trust::{codes, random};
use super::*;
use crate::capture::CaptureFile;
use crate::checks::{Level, Trust};
use crate::input::file::{Place, SourceFile};
use crate::pair::identity::Seen;
use crate::pair::rows::{Packets, Paired};
use crate::pair::{join, How};
use fanin_units::Bytes;

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
    let nat = Changed { address: true, hops: 1, ..Changed::default() };
    for (one_in, level, how) in
        [(5, Level::Wrong, Changed::default()), (300, Level::Doubt, Changed::default()), (5, Level::Wrong, nat)]
    {
        let mut below = random(3);
        let kept: Vec<bool> = arrivals.iter().map(|_| below(one_in) > 0).collect();
        let before: Vec<_> = arrivals.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(a, _)| *a).collect();
        let (report, pair) = Captures::new(&before, &behind, how).report(json!({"rate": "1Gbps"}));
        assert_eq!(pair.matched_by, if how.address { Match::Ports } else { Match::Flow });
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
    let share = pair.only_behind as f64 / (pair.only_behind + pair.matched) as f64;
    let expected = if share > 0.1 { vec![("other_ingress", Level::Doubt)] } else { vec![] };
    assert_eq!(codes(&report), expected, "{share}");
    // Most of them: it is another interface that was captured.
    let before: Vec<_> = arrivals.iter().filter(|(_, p)| p.flow % 8 == 0).copied().collect();
    let (report, pair) = Captures::new(&before, &behind, Changed::default()).report(json!({"rate": "1Gbps"}));
    let found = report.plausibility.findings.iter().find(|f| f.code == "other_ingress").unwrap();
    assert_eq!((found.level, found.count, report.plausibility.trust), (Level::Doubt, pair.only_behind, Trust::Limited));
}

/// Packets every 36 us at a port that is busy for 12 us with each, as it is seen from a clock behind that is set at half-time.
#[test]
fn a_clock_that_was_set_between_is_said_and_a_queue_that_stands_is_not() {
    let arrivals: Vec<_> =
        plain(6_000, 7).0.into_iter().enumerate().map(|(i, (_, p))| (1_795_000_000_000_000_000 + i as i64 * 36_000, p)).collect();
    let middle = arrivals[3_000].0;
    for step in [0, 5_000_000, -5_000_000] {
        let behind: Vec<_> = arrivals.iter().map(|(ns, p)| (ns + 700 + if *ns > middle { step } else { 0 }, *p)).collect();
        let (report, pair) = Captures::new(&arrivals, &behind, Changed::default()).report(json!({}));
        let expected = if step == 0 { vec![] } else { vec![("clock_step", Level::Doubt)] };
        let stepped: Vec<_> = codes(&report).into_iter().filter(|(code, _)| *code == "clock_step").collect();
        assert_eq!(stepped, expected, "{step}: {:?}", report.plausibility.findings);
        let still = report.notes.iter().any(|note| note.contains("no queue stood there"));
        assert_eq!((pair.matched, still), (6_000, step == 0), "{:?}", report.notes);
        if step != 0 {
            let words = &report.plausibility.findings.iter().find(|f| f.code == "clock_step").unwrap().words;
            assert!(words.contains(if step > 0 { "5 ms longer" } else { "5 ms less" }), "{words}");
        }
    }
    // From half-time on a few hundred packets stand, more or less.
    let behind: Vec<_> = arrivals
        .iter()
        .enumerate()
        .map(|(i, (ns, p))| (ns + 700 + if *ns > middle { 5_000_000 + (i as i64 / 150 * 7_919 % 100) * 20_000 } else { 0 }, *p))
        .collect();
    let (report, _) = Captures::new(&arrivals, &behind, Changed::default()).report(json!({"sort": true}));
    assert!(codes(&report).iter().all(|(code, _)| *code != "clock_step"), "{:?}", codes(&report));
}

/// A pcapng file of interfaces without names, as `mergecap -I none` writes it: interface, time [ns], packet.
fn write_unnamed(path: &Path, frames: &[(u32, i64, Packet)]) {
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let length = 12 + body.len().next_multiple_of(4) as u32;
        file.extend([kind, length].iter().flat_map(|word| word.to_le_bytes()));
        file.extend(body);
        file.resize(file.len().next_multiple_of(4), 0);
        file.extend(length.to_le_bytes());
    };
    let words = |all: &[u32]| all.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    for _ in 0..2 {
        // Ethernet, everything is kept; option if_tsresol: nanoseconds.
        block(1, &words(&[1, 0, 9 | 1 << 16, 9, 0]));
    }
    for (interface, ns, packet) in frames {
        let bytes = packet.bytes(Changed::default());
        let at = *ns as u64;
        let mut body = words(&[*interface, (at >> 32) as u32, at as u32, bytes.len() as u32, packet.length()]);
        body.extend(bytes);
        block(6, &body);
    }
    std::fs::write(path, file).unwrap();
}

#[test]
fn interfaces_without_names_are_chosen_by_their_place_in_the_file() {
    let (arrivals, port) = plain(3_000, 7);
    let behind = left(&port, 3_000, 0.0);
    let captures = Captures::new(&arrivals, &behind, Changed::default());
    let (_, apart) = captures.report(json!({"rate": "1Gbps"}));
    let mut both: Vec<(u32, i64, Packet)> = arrivals.iter().map(|(ns, p)| (0, *ns, *p)).collect();
    both.extend(behind.iter().map(|(ns, p)| (1, *ns, *p)));
    both.sort_by_key(|(_, ns, _)| *ns);
    let path = captures.folder.path().join("merged.pcapng");
    write_unnamed(&path, &both);
    let asked = |more: Value| {
        let mut settings = json!({"paths": [path], "rate": "1Gbps", "fcs": false, "overhead": "0B"});
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        analyze(&Options::from_json(&settings.to_string()).unwrap(), &mut Quiet)
    };
    let report = asked(json!({"before_interface": "#0", "behind_interface": "#1"})).unwrap();
    let pair = report.pair.unwrap();
    assert_eq!((pair.matched, pair.dropped), (apart.matched, apart.dropped));
    assert_eq!(report.ports[0].port, "#1");
    let wrong = asked(json!({"before_interface": "#0", "behind_interface": "#2"})).unwrap_err().to_string();
    assert!(
        wrong.contains("no packet crosses from interface '#0' to '#2'") && wrong.contains("place in the file (#0, #1)"),
        "{wrong}"
    );
    let other = captures.folder.path().join("out.pcap");
    let wrong = asked(json!({"behind": [other]})).unwrap_err().to_string();
    let named = format!("accepted: #0 ({} packets), #1 ({} packets)", arrivals.len(), behind.len());
    assert!(wrong.contains(&named) && wrong.contains("--before-interface"), "{wrong}");
    // Alone, each is a port of its own by its place.
    let alone = asked(json!({"interface": "#1"})).unwrap();
    assert_eq!((alone.ports[0].records, alone.ports.len()), (behind.len() as u64, 1));
}

#[test]
fn start_and_stop_may_be_dates() {
    let (arrivals, port) = plain(2_000, 7);
    let captures = Captures::new(&arrivals, &left(&port, 3_000, 0.0), Changed::default());
    let zero = 1_795_000_000_000_000_000_i64;
    let (from, to) = (arrivals[500].0, arrivals[1_500].0);
    let span = json!({"start": format!("{}ns", from - zero), "stop": format!("{}ns", to - zero), "rate": "1Gbps"});
    // 1,795,000,000 s after 1970, in a zone of its own.
    let date = |ns: i64| format!("2026-11-18 13:06:40.{:09}+02:00", ns - zero);
    let dates = json!({"start": date(from), "stop": date(to), "rate": "1Gbps"});
    let ((spans, first), (dated, second)) = (captures.report(span), captures.report(dates));
    assert_eq!((first.matched, first.dropped), (second.matched, second.dropped));
    assert_eq!((&spans.settings, &spans.ports), (&dated.settings, &dated.ports));
    let early = captures.try_report(json!({"stop": "2026-11-18T11:06:39Z"})).unwrap_err().to_string();
    assert!(
        early.contains("stop: '2026-11-18T11:06:39Z' is before the trace begins; accepted: dates after 2026-11-18T11:06:"),
        "{early}"
    );
    let order = captures.try_report(json!({"start": date(to), "stop": date(from)})).unwrap_err().to_string();
    assert!(order.contains("is not after 'start'"), "{order}");
    let table = captures.folder.path().join("a.csv");
    std::fs::write(&table, "time_ns,queue_bytes,flow\n1000,2,3\n2000,5,3\n").unwrap();
    let settings = json!({"paths": [table], "start": "2026-11-18T11:06:39Z"});
    let none = analyze(&Options::from_json(&settings.to_string()).unwrap(), &mut Quiet).unwrap_err().to_string();
    assert!(none.contains("is a date, and the times of this trace are none"), "{none}");
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

/// Without room for rows the captures are read again, and give the same packets.
#[test]
fn rows_have_the_packets_of_the_captures() {
    let (mut arrivals, port) = plain(3_000, 11);
    // Copies, and packets out of order.
    arrivals.insert(50, arrivals[49]);
    arrivals.swap(100, 140);
    let captures = Captures::new(&arrivals, &left(&port, 5_000, 20.0), Changed { vlan: true, ..Changed::default() });
    for sorted in [false, true] {
        let inspect = |name: &str| {
            let path = captures.folder.path().join(name);
            let file = SourceFile::new(&Place::of(&path), std::fs::metadata(&path).unwrap().len());
            vec![CaptureFile::inspect(file, "pcap", |_, _| None).unwrap()]
        };
        let how = How {
            interfaces: [None, None],
            without_fcs: true,
            sorted,
            transfers: false,
            both_ways: false,
            rate: None,
            overhead: Bytes(0),
            top: 3,
            window: (Time::ZERO, Time::MAX),
        };
        let pair = join(inspect("in.pcap"), inspect("out.pcap"), how, &mut |_| true).unwrap();
        assert!(pair.rows.is_some());
        let (mut kept, mut read) = (pair.packets(), Packets::new(None, || pair.files.matching(&pair.coarse)));
        for side in [0, 1] {
            let mut packets = 0;
            while let Some(Paired { seen, partner }) = read.first(side).unwrap() {
                let seen = Seen { unique: false, interface: 0, key: 0, tag: 0, ..*seen };
                let expected = Paired { seen, partner: *partner };
                assert_eq!(format!("{:?}", kept.first(side).unwrap().unwrap()), format!("{expected:?}"), "{packets}");
                kept.skip(side);
                read.skip(side);
                packets += 1;
            }
            assert!(kept.first(side).unwrap().is_none() && packets > 2_000, "{packets}");
            assert!(kept.passed()[side].copies == u64::from(side == 0), "{:?}", kept.passed());
        }
        assert_eq!(format!("{:?}", kept.passed()), format!("{:?}", read.passed()));
    }
}
