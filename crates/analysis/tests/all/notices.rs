//! Drop notifications in captures: what the simulator writes is what it counted, and hostile ones are counted and harm nothing.

use fanin_analysis::trace::{analyze, Control, Failure, Observer, Options, Progress, SourceReport, TraceReport};
use fanin_scenario::Scenario;
use fanin_sim::{finish, world, Destination, Pause};
use fanin_wire::notification::{attach, Addresses, Notice};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

struct Patient;

impl Observer for Patient {
    fn progress(&mut self, _: Progress) -> Control {
        Control::Continue
    }
}

fn report(path: &Path, more: &Value) -> Result<TraceReport, Failure> {
    let mut settings = json!({"paths": [path], "rate": "1Gbps"});
    for (key, value) in more.as_object().into_iter().flatten() {
        settings[key] = value.clone();
    }
    analyze(&Options::from_json(&settings.to_string()).expect("options"), &mut Patient)
}

/// Twelve servers and one port with room for 60 KB, and more on its way to some of them; summary and capture.
fn run(folder: &Path, ip: &str, telemetry: &str) -> (Value, PathBuf) {
    let text = format!(
        r#"
        framing = {{ ip = "{ip}" }}
        [topology]
        kind = "dumbbell"
        left = 12
        right = 1
        host_link = {{ rate = "1Gbps", delay = "10us" }}
        bottleneck = {{ rate = "1Gbps", delay = "10us" }}
        [switch]
        buffer = {{ kind = "static", per_port = "60KB" }}
        mechanisms.pdn = {{}}
        [transport]
        kind = "tcp"
        drop_notification = true
        handshake = false
        initial_window = 20
        rto_min = "200ms"
        [[traffic]]
        kind = "incast"
        receiver = "h12"
        size = "200KB"
        [[traffic]]
        kind = "flows"
        flows = [{{ src = "h12", dst = "h0", size = "500KB" }}, {{ src = "h12", dst = "h5", size = "500KB" }}]
        [engine]
        ties = "by_link"
        [telemetry]
        sample = "off"
        {telemetry}
        "#
    );
    let scenario = Scenario::from_toml(&text, Path::new(".")).expect("a valid scenario");
    let mut world = world(&scenario, &Destination::Folder(folder)).expect("a world");
    while world.advance(100_000).expect("tables") == Pause::Budget {}
    (finish(&mut world).expect("tables").0, folder.join("packets.pcapng"))
}

/// Every host captured: all notifications that reached a host are there, alone or attached, for the right flows; and with
/// registers the bursts of the watched port say how many came in their time.
#[test]
fn a_simulated_capture_shows_what_the_simulator_counted() {
    let stamps = "registers = {}\nqueues = [\"left->right\"]\n";
    for (ip, registers) in [("v4", ""), ("v4", stamps), ("v6", ""), ("v6", stamps)] {
        let folder = tempfile::tempdir().expect("a folder");
        let (summary, path) = run(folder.path(), ip, &format!("{registers}capture = {{ hosts = [\"*\"] }}"));
        let counts = &summary["mechanisms"]["notifications"];
        let report = report(&path, &json!({"top": 3})).unwrap();
        let found = report.notifications.expect("notifications");
        let reached: u64 = ["retransmitted", "redundant", "arrived", "unknown", "flow_ended"]
            .iter()
            .filter_map(|key| counts[key].as_u64())
            .sum();
        assert!(reached > 100 && counts["raised"] == reached, "{counts}");
        assert_eq!((found.frames, found.read, found.cut, found.short), (reached, reached, 0, 0));
        // One link lies between the switch that drops and the servers, so that each crosses one.
        assert_eq!((counts["empty_frames"].as_u64(), counts["attached"].as_u64()), (Some(found.alone), Some(found.attached)));
        assert!(found.alone > 0 && found.attached > 0, "{found:?}");
        assert_eq!(
            found.types.iter().map(|t| (t.value, t.name, t.count)).collect::<Vec<_>>(),
            if ip == "v4" { [(1, Some("drop_ipv4"), reached)] } else { [(2, Some("drop_ipv6"), reached)] }
        );
        let asked: Vec<_> = found.operations.iter().map(|o| (o.name, o.count)).collect();
        let acks = reached - asked[0].1;
        assert_eq!(asked, [(Some("retransmit_and_halve"), reached - acks), (Some("acknowledge"), acks)]);
        // Twelve servers' data, and what two of them acknowledge to the client.
        assert_eq!((found.flows, found.top.len()), (14, 3));
        let (from, to) = if ip == "v4" { ("10.0.0.", " > 10.0.0.13:42000 tcp") } else { ("[", "]:42000 tcp") };
        assert!(found.top[0].name.starts_with(from) && found.top[0].name.ends_with(to), "{found:?}");
        assert!(found.top[0].count >= found.top[1].count && found.top[0].bytes > 0);
        // What was sent again was lost once at least, and each loss is reported once.
        assert!(found.repeated > 0 && found.repeated < reached);
        let stamped = !registers.is_empty();
        let ports: Vec<&str> = report.ports.iter().map(|p| p.port.as_str()).collect();
        if stamped {
            assert_eq!(ports, ["port 0"]);
            let during: u64 = report.ports[0].bursts.iter().filter_map(|b| b.notifications).sum();
            assert!(during > 0 && during <= reached, "{during} of {reached}");
            // No frame of a notification alone is taken for a packet without a stamp.
            let packets = report.notes.iter().find_map(|note| note.split(" of ").nth(1)?.split(' ').next()?.parse::<u64>().ok());
            let all = summary["mechanisms"]["notifications"]["empty_frames"].as_u64().expect("a count");
            assert_eq!(packets.map(|n| n + all), Some(frames(&path)), "{:?}", report.notes);
        } else {
            assert_eq!(packets(&report.sources) + found.alone, frames(&path), "frames with nothing else are no packets");
        }
    }
}

/// What was taken and what was left out.
fn packets(sources: &[SourceReport]) -> u64 {
    let taken = sources[0].taken.as_ref().expect("no stamps");
    taken.streams.iter().chain(&taken.left_out).map(|stream| stream.packets).sum()
}

fn frames(path: &Path) -> u64 {
    let file = std::fs::read(path).expect("a capture");
    let mut capture = fanin_wire::Capture::new(&file[..]).expect("a capture");
    let mut n = 0;
    while capture.next_frame().expect("a frame").is_some() {
        n += 1;
    }
    n
}

/// Of a capture that cuts frames, the report counts those that carried one, and nothing that cannot be known.
#[test]
fn what_a_snap_cuts_off_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (summary, path) = run(folder.path(), "v4", "capture = { hosts = [\"*\"], snap = \"64B\" }");
    let found = report(&path, &json!({})).unwrap().notifications.expect("notifications");
    assert_eq!(Some(found.frames), summary["mechanisms"]["notifications"]["raised"].as_u64());
    // A frame with nothing else is short enough.
    assert_eq!((found.read, found.cut), (found.alone, found.attached));
    assert!(found.cut > 0 && found.alone > 0, "{found:?}");
    assert_eq!(summary["mechanisms"]["notifications"]["empty_frames"].as_u64(), Some(found.alone));
}

#[test]
fn a_capture_without_says_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = pcap(folder.path(), &[(1, packet())]);
    let report = report(&path, &json!({})).unwrap();
    assert!(report.notifications.is_none());
    assert_eq!(serde_json::to_value(&report).expect("JSON")["notifications"], Value::Null);
}

/// An IPv4 packet of a TCP connection, 1000 B long, in Ethernet.
fn packet() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(1_000_u16.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x13, 0x88, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.resize(1_014, 0);
    frame
}

fn notice(port: u16, seq: u32) -> Notice {
    let addresses = Addresses::V4 { src: Ipv4Addr::new(10, 0, 0, 2), dst: Ipv4Addr::new(10, 0, 0, 1) };
    Notice { addresses, ports: (80, port), seq, length: 1_000, operation: 1 }
}

/// A pcap file of Ethernet frames without check sequence, at these microseconds.
fn pcap(folder: &Path, frames: &[(u32, Vec<u8>)]) -> PathBuf {
    let mut out: Vec<u8> = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1].iter().flat_map(|w| w.to_le_bytes()).collect();
    for (us, frame) in frames {
        for word in [0, *us, frame.len() as u32, frame.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(frame);
    }
    let path = folder.join("uplink.pcap");
    std::fs::write(&path, out).expect("a file");
    path
}

/// By hand: sizes without the notification, none of a packet that is not there; types and operations that are not defined; IPv6.
#[test]
fn everything_is_counted_for_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let with = |notice: &Notice| {
        let mut frame = packet();
        attach(&mut frame, notice).expect("room");
        frame
    };
    let mut odd = with(&notice(5_000, 7));
    let at = odd.len() - 2;
    odd[at] = 9; // the type
    let short = [&packet()[..12], &[0xA8, 0x00], &[1; 6]].concat();
    let v6 = Notice {
        addresses: Addresses::V6 { src: Ipv6Addr::LOCALHOST, dst: Ipv6Addr::UNSPECIFIED },
        operation: 77,
        ..notice(5_000, 1)
    };
    let mut trace = [
        (1, packet()),
        (2, with(&notice(5_000, 1))),
        (3, notice(5_000, 1).alone([2; 6], [2; 6])),
        (4, notice(5_001, 1).alone([2; 6], [2; 6])),
        (5, v6.alone([2; 6], [2; 6])),
        (6, odd),
        (7, short),
        (8, with(&notice(5_001, 2))),
        (9, notice(5_001, 1).alone([2; 6], [2; 6])),
        (10, packet()),
    ];
    // Packets have numbers of their own: none is a copy.
    for (us, frame) in trace.iter_mut().filter(|(_, frame)| frame.get(14) == Some(&0x45)) {
        frame[19] = *us as u8;
    }
    let path = pcap(folder.path(), &trace);
    let whole = report(&path, &json!({"window": "25us"})).unwrap();
    let found = whole.notifications.expect("notifications");
    assert_eq!((found.frames, found.alone, found.attached, found.read, found.short, found.cut), (8, 4, 4, 6, 1, 0));
    let values = |of: &[fanin_analysis::NoticeValue]| of.iter().map(|v| (v.value, v.name, v.count)).collect::<Vec<_>>();
    assert_eq!(values(&found.types), [(1, Some("drop_ipv4"), 5), (2, Some("drop_ipv6"), 1), (9, None, 1)]);
    assert_eq!(values(&found.operations), [(1, Some("retransmit_and_halve"), 5), (77, None, 1)]);
    assert_eq!((found.repeated, found.flows, found.told_bytes), (2, 3, 6_000));
    assert_eq!((found.first_ps, found.last_ps), (Some(2_000_000), Some(9_000_000)));
    let top: Vec<_> = found.top.iter().map(|f| (f.name.as_str(), f.count, f.repeated, f.bytes)).collect();
    let one = "10.0.0.2:80 > 10.0.0.1:5001 tcp";
    assert_eq!(top[..2], [(one, 3, 1, 3_000), ("10.0.0.2:80 > 10.0.0.1:5000 tcp", 2, 1, 2_000)]);
    assert_eq!(top[2].0, "[::1]:80 > [::]:5000 tcp");
    // Records: the packets, and the frame that is too short for what it says; sizes as in a queue.
    let port = &whole.ports[0];
    assert_eq!(port.records, 6);
    let burst = &port.bursts[0];
    assert_eq!((burst.notifications, burst.flows), (Some(8), 1));
    // 1018 B each; the notification of a type that is not defined has a length that is not known; the short one is 64 B.
    assert_eq!(burst.arrived_bytes, Some(4 * 1_018 + 1_038 + 64));
    let half = report(&path, &json!({"stop": "4us"})).unwrap().notifications.expect("notifications");
    assert_eq!((half.frames, half.last_ps), (3, Some(4_000_000)), "no more is read than was asked for");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Notifications with bytes changed, added and cut: read or refused, and each is accounted for.
    #[test]
    fn damaged_notifications_are_accounted_for(
        frames in prop::collection::vec((any::<bool>(), any::<bool>(), 0u16..3, 0u32..3, prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), prop::option::of(any::<prop::sample::Index>())), 1..20)
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut trace = Vec::new();
        for (i, (alone, six, port, seq, changes, cut)) in frames.iter().enumerate() {
            let mut notification = notice(*port, *seq);
            if *six {
                notification.addresses = Addresses::V6 { src: Ipv6Addr::LOCALHOST, dst: Ipv6Addr::LOCALHOST };
            }
            let mut frame = if *alone { notification.alone([2; 6], [2; 6]) } else { packet() };
            if !alone {
                attach(&mut frame, &notification).expect("room");
            }
            for (at, value) in changes {
                // Most damage goes where it matters: to the last bytes, or the first.
                let n = frame.len();
                frame[if *value % 2 == 0 { n - 1 - at.index(48) } else { at.index(n.min(40)) }] = *value;
            }
            if let Some(cut) = cut {
                frame.truncate(cut.index(frame.len() + 1));
            }
            trace.push((i as u32, frame));
        }
        let report = report(&pcap(folder.path(), &trace), &json!({})).expect("a report");
        let records = packets(&report.sources);
        let Some(found) = report.notifications else {
            prop_assert_eq!(records, frames.len() as u64);
            return Ok(());
        };
        let undefined: u64 = found.types.iter().filter(|t| t.name.is_none()).map(|t| t.count).sum();
        prop_assert_eq!(found.frames, found.read + found.cut + found.short + undefined);
        prop_assert_eq!(found.frames, found.alone + found.attached);
        prop_assert_eq!(records + found.alone, frames.len() as u64);
        prop_assert_eq!(found.operations.iter().map(|o| o.count).sum::<u64>(), found.read);
        prop_assert_eq!(found.top.iter().map(|f| f.count).sum::<u64>(), if found.flows <= 10 { found.read } else { found.top.iter().map(|f| f.count).sum() });
        prop_assert!(found.repeated <= found.read && found.flows <= found.read);
    }
}
