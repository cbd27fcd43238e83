//! Pairs whose packets are in tunnels or come from mirrors of switches: outside nothing tells them apart.

use super::trust::codes;
use super::*;
use crate::checks::{Level, Trust};
use std::collections::BTreeSet;
use wrapping::{wrap, Wrapping, ALL, NETWORK};

#[path = "../../../../wire/tests/all/wrapping.rs"]
mod wrapping;

/// Session of a mirror, where other than that of [`wrap`].
type Frames<'a> = (&'a [(i64, Packet)], Option<u8>);

/// A capture of wrapped packets, 200 B of each; gives by how much one is longer.
fn write_wrapped(path: &Path, all: &[Frames<'_>], wrapping: Wrapping, change: impl Fn(&mut Vec<u8>)) -> i64 {
    let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
    let mut frames: Vec<(i64, Vec<u8>, usize)> = Vec::new();
    let mut longer = 0;
    for (packets, session) in all {
        for (ns, packet) in *packets {
            let (mut bytes, length) = wrap(wrapping, &packet.bytes(Changed::default()), packet.length() as usize);
            longer = length as i64 - i64::from(packet.length());
            if let Some(session) = session {
                bytes[45] = *session;
            }
            change(&mut bytes);
            bytes.truncate(length.min(200));
            frames.push((*ns, bytes, length));
        }
    }
    frames.sort_by_key(|(ns, ..)| *ns);
    for (ns, bytes, length) in frames {
        for word in [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, bytes.len() as u32, length as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&bytes);
    }
    std::fs::write(path, file).unwrap();
    longer
}

fn wrapped(
    before: &[(i64, Packet)],
    behind: &[(i64, Packet)],
    wrapping: Wrapping,
    change: impl Fn(&mut Vec<u8>),
) -> (Captures, i64) {
    let folder = tempfile::tempdir().unwrap();
    let longer = write_wrapped(&folder.path().join("in.pcap"), &[(before, None)], wrapping, &change);
    write_wrapped(&folder.path().join("out.pcap"), &[(behind, None)], wrapping, &change);
    (Captures { folder }, longer)
}

fn is_mirror(wrapping: Wrapping) -> bool {
    matches!(wrapping, Wrapping::Erspan1 | Wrapping::Erspan2 | Wrapping::Erspan3 | Wrapping::Erspan3Long)
}

#[test]
fn queue_and_fate_are_those_of_the_port_in_whatever_packets_are() {
    for v6 in [false, true] {
        let arrivals = arrivals(1_500, 7, |_, p| p.v6 = v6);
        let port = port(&arrivals, 60_000);
        let behind = left(&port, 3_000, 0.0);
        let drops = port.all.iter().filter(|p| p.3.is_none()).count() as u64;
        assert!(drops > 10, "{drops}");
        for wrapping in ALL {
            let (captures, longer) = wrapped(&arrivals, &behind, wrapping, |_| {});
            let (report, pair) = captures.report(json!({}));
            assert_eq!((pair.matched, pair.dropped, pair.only_behind), (1_500 - drops, drops, 0), "{wrapping:?} {v6}");
            assert_eq!(pair.matched_by, Match::Flow, "{wrapping:?}");
            // Retransmissions are alike over IPv6, which has no numbers.
            assert!(v6 || !codes(&report).iter().any(|(code, _)| *code == "indistinct"), "{wrapping:?} {v6}");
            assert!(pair.notes.iter().any(|note| note.contains("packets in tunnels were unpacked")), "{:?}", pair.notes);
            let records = captures.records();
            if is_mirror(wrapping) && !v6 {
                // The port saw the mirrored frames.
                holds(&records, &port, 0);
                continue;
            }
            let longer = if is_mirror(wrapping) { 0 } else { longer };
            for (record, (_, packet, queue, start)) in records.iter().zip(&port.all) {
                assert_eq!(i64::from(record.frame) - i64::from(packet.length()), longer, "{wrapping:?}");
                // Of equal retransmissions over IPv6 nothing says which was dropped.
                assert!(v6 || record.dropped() == start.is_none(), "{wrapping:?}");
                let more = record.queue as i64 - *queue as i64;
                assert!(v6 || more >= 0 && if longer == 0 { more == 0 } else { more % longer == 0 }, "{wrapping:?} {more}");
            }
        }
    }
}

#[test]
fn tenants_with_equal_addresses_have_flows_of_their_own() {
    let (arrivals, port) = plain(2_000, 13);
    let behind = left(&port, 3_000, 0.0);
    let drops = port.all.iter().filter(|p| p.3.is_none()).count() as u64;
    let known: BTreeSet<u16> = arrivals.iter().map(|(_, p)| p.flow).collect();
    // The last byte of the VNI is the parity of the number of the datagram inside.
    let tenant = |bytes: &mut Vec<u8>| bytes[48] = bytes[69] & 1;
    let (captures, _) = wrapped(&arrivals, &behind, Wrapping::Vxlan, tenant);
    let (_, pair) = captures.report(json!({"rate": "1Gbps", "top": 100}));
    assert_eq!((pair.matched, pair.dropped, pair.only_behind), (2_000 - drops, drops, 0));
    let flows = pair.waiting.unwrap().flows;
    let named = |last: u32| {
        let end = format!(" tcp vni {}", NETWORK & !0xff | last);
        flows.iter().filter(|flow| flow.name.ends_with(&end)).count()
    };
    assert_eq!([named(0), named(1), flows.len()], [known.len(), known.len(), 2 * known.len()]);
    // Labels are no tenants: they are others on each link.
    let label = |bytes: &mut Vec<u8>| bytes[20] ^= bytes[27] << 4 & 0x10;
    let (captures, _) = wrapped(&arrivals, &behind, Wrapping::Mpls, label);
    let (_, pair) = captures.report(json!({"rate": "1Gbps", "top": 100}));
    assert_eq!((pair.dropped, pair.waiting.unwrap().flows.len()), (drops, known.len()));
}

#[test]
fn tenants_that_send_the_very_same_packets_are_told_apart() {
    // Each packet comes of both tenants, at the port together: within, nothing differs but the VNI.
    let single = arrivals(800, 17, |_, _| {});
    let both: Vec<_> = single.iter().flat_map(|(ns, p)| [(*ns, *p), (*ns + 900, *p)]).collect();
    let mut numbered: Vec<(i64, Packet, u8)> =
        both.iter().zip([0, 1].into_iter().cycle()).map(|((ns, p), t)| (*ns, *p, t)).collect();
    numbered.sort_by_key(|(ns, _, tenant)| (*ns, *tenant));
    let arrivals: Vec<(i64, Packet)> = numbered.iter().map(|(ns, p, _)| (*ns, *p)).collect();
    let port = port(&arrivals, 60_000);
    let drops = port.all.iter().filter(|p| p.3.is_none()).count();
    assert!((50..800).contains(&drops), "{drops}");
    let tenants: [Vec<u8>; 2] = [
        numbered.iter().map(|(_, _, tenant)| *tenant).collect(),
        numbered.iter().zip(&port.all).filter(|(_, p)| p.3.is_some()).map(|((_, _, tenant), _)| *tenant).collect(),
    ];
    let behind = left(&port, 3_000, 0.0);
    for (moves, matching) in [(0, Match::Flow), (2, Match::InnerFlow)] {
        let folder = tempfile::tempdir().unwrap();
        for (side, (name, packets)) in [("in.pcap", &arrivals), ("out.pcap", &behind)].into_iter().enumerate() {
            let next = std::cell::Cell::new(0);
            let name_tenant = |bytes: &mut Vec<u8>| {
                bytes[48] = tenants[side][next.replace(next.get() + 1)] + if side == 1 { moves } else { 0 };
            };
            write_wrapped(&folder.path().join(name), &[(packets, None)], Wrapping::Vxlan, name_tenant);
        }
        let captures = Captures { folder };
        let (report, pair) = captures.report(json!({"rate": "1Gbps"}));
        assert_eq!(pair.matched_by, matching);
        let note = pair.notes.iter().any(|note| note.contains("go on with another number"));
        if moves == 0 {
            assert_eq!((pair.dropped, pair.left_out.copies, pair.only_behind, note), (drops as u64, 0, 0, false));
            assert!(!codes(&report).iter().any(|(code, _)| *code == "indistinct"), "{:?}", codes(&report));
            let fates: Vec<bool> = captures.records().iter().map(crate::Record::dropped).collect();
            assert_eq!(fates, port.all.iter().map(|p| p.3.is_none()).collect::<Vec<_>>());
        } else {
            assert!(note, "{:?}", pair.notes);
        }
    }
}

#[test]
fn a_mirror_of_both_directions_is_one_of_the_direction_that_waits() {
    let (arrivals, port) = plain(2_000, 21);
    let (mut before, mut behind) = (arrivals.clone(), left(&port, 10_000, 0.0));
    let back: Vec<_> = behind.iter().step_by(2).map(|(ns, p)| (*ns + 50_000, Packet { back: true, payload: 0, ..*p })).collect();
    behind.extend(&back);
    before.extend(back.iter().map(|(ns, p)| (ns - 10_000 + 2_000, *p)));
    let drops = port.all.iter().filter(|p| p.3.is_none()).count() as u64;
    for wrapping in [Wrapping::Erspan1, Wrapping::Erspan2, Wrapping::Vxlan] {
        let (captures, _) = wrapped(&before, &behind, wrapping, |_| {});
        let (_, pair) = captures.report(json!({"rate": "1Gbps"}));
        assert_eq!((pair.dropped, pair.only_behind), (drops, 0), "{wrapping:?}");
        assert_eq!(pair.left_out.other_way, 2 * back.len() as u64, "{wrapping:?}");
    }
}

#[test]
fn sessions_of_mirrors_are_told_apart_in_one_file() {
    let (arrivals, port) = plain(2_000, 5);
    let behind = left(&port, 0, 0.0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcap");
    write_wrapped(&path, &[(&arrivals, Some(1)), (&behind, Some(2))], Wrapping::Erspan2, |_| {});
    let captures = Captures { folder };
    // The third byte of the header has the session's high bits, which stay 1: sessions 257 and 258.
    let both = json!({"behind": [&path], "before_interface": "session257", "behind_interface": "session258"});
    let (_, pair) = captures.report(both);
    assert_eq!((pair.dropped, pair.only_behind), (port.all.iter().filter(|p| p.3.is_none()).count() as u64, 0));
    // One session that says the direction itself.
    let both_ways = |packets: &[(i64, Packet)], path: &Path, wrapping| write_wrapped(path, &[(packets, None)], wrapping, |_| {});
    let [into, out] = ["into.pcap", "out.pcap"].map(|name| captures.folder.path().join(name));
    both_ways(&arrivals, &into, Wrapping::Erspan3Long);
    both_ways(&behind, &out, Wrapping::Erspan3);
    let mut joined = std::fs::read(&into).unwrap();
    joined.extend(&std::fs::read(&out).unwrap()[24..]);
    std::fs::write(&path, joined).unwrap();
    let both = json!({"behind": [&path], "before_interface": "session258", "behind_interface": "session258", "sort": true});
    let (_, pair) = captures.report(both);
    assert_eq!((pair.dropped, pair.only_behind), (port.all.iter().filter(|p| p.3.is_none()).count() as u64, 0));
}

#[test]
fn packets_that_nothing_tells_apart_are_a_doubt() {
    let even = arrivals(2_000, 9, |_, p| p.payload = 1_000);
    let even_port = port(&even, 60_000);
    let (arrivals, port) = plain(2_000, 9);
    // VXLAN at a port that is not known: all that is looked at is the same.
    let hide = |bytes: &mut Vec<u8>| bytes[36..38].copy_from_slice(&7_777_u16.to_be_bytes());
    let (captures, _) = wrapped(&arrivals, &left(&port, 0, 0.0), Wrapping::Vxlan, hide);
    let (report, _) = captures.report(json!({"rate": "1Gbps"}));
    assert!(codes(&report).contains(&("indistinct", Level::Doubt)), "{:?}", report.plausibility.findings);
    assert_ne!(report.plausibility.trust, Trust::Good);
    // Nor do lengths and the first bytes of what is inside: nobody knows how many were dropped.
    let same = |bytes: &mut Vec<u8>| {
        hide(bytes);
        bytes[42..].fill(0);
    };
    let (captures, _) = wrapped(&even, &left(&even_port, 0, 0.0), Wrapping::Vxlan, same);
    let (report, _) = captures.report(json!({"rate": "1Gbps"}));
    assert!(codes(&report).contains(&("indistinct", Level::Wrong)), "{:?}", report.plausibility.findings);
    // And what was cut off before it could be seen is said.
    let folder = tempfile::tempdir().unwrap();
    for (name, packets) in [("in.pcap", arrivals.clone()), ("out.pcap", left(&port, 0, 0.0))] {
        write_wrapped(&folder.path().join(name), &[(&packets, None)], Wrapping::Vxlan, |bytes| bytes.truncate(70));
    }
    let (report, _) = Captures { folder }.report(json!({"rate": "1Gbps"}));
    assert!(codes(&report).contains(&("cut_headers", Level::Doubt)), "{:?}", codes(&report));
}

#[test]
fn the_tunnel_s_end_can_be_asked_for() {
    let (arrivals, _) = plain(400, 3);
    let (captures, _) = wrapped(&arrivals, &arrivals, Wrapping::Vxlan, |_| {});
    for (to, records) in [("192.0.2.2", 400), ("192.0.2.2:4789", 400), ("10.0.0.200", 400)] {
        let (path, none) = (captures.folder.path().join("in.pcap"), Vec::<String>::new());
        let settings = json!({"paths": [path], "behind": none, "rate": "1Gbps", "to": [to]});
        let report = analyze(&Options::from_json(&settings.to_string()).unwrap(), &mut Quiet).unwrap();
        assert_eq!(report.ports.iter().map(|port| port.records).sum::<u64>(), records, "{to}");
    }
    let settings = json!({"paths": [captures.folder.path().join("in.pcap")], "rate": "1Gbps", "to": ["192.0.2.9"]});
    let nobody = analyze(&Options::from_json(&settings.to_string()).unwrap(), &mut Quiet).unwrap_err().to_string();
    assert!(nobody.contains("leaves no packet"), "{nobody}");
}
