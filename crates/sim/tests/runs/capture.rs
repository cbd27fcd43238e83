//! `telemetry.capture`: frames at NICs agree with what was simulated, and change nothing of it.

use fanin_packet::IpVersion;
use fanin_scenario::Scenario;
use fanin_sim::{world, Destination, Kept, Pause};
use fanin_telemetry::Stamp;
use fanin_units::HostId;
use fanin_wire::notification::{Addresses, Notice};
use fanin_wire::{address, Capture, Direction, Framer, Headers};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

/// The operation of PDN that asks for another acknowledgment.
const ACKNOWLEDGE: u8 = 3;

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml(text, Path::new(".")).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn run(text: &str) -> Kept {
    let mut world = world(&scenario(text), &Destination::Memory).expect("a world");
    while world.advance(100_000).expect("tables in memory") == Pause::Budget {}
    world.into_kept().expect("tables in memory")
}

/// A frame of a capture, taken apart.
#[derive(Debug)]
struct Seen {
    host: String,
    time_ps: u64,
    direction: Direction,
    frame_bytes: u32,
    kept: usize,
    headers: Headers,
    stamp: Option<Stamp>,
}

fn frames(file: &[u8]) -> Vec<Seen> {
    let mut capture = Capture::new(file).unwrap();
    let mut frames = Vec::new();
    loop {
        let Some(frame) = capture.next_frame().unwrap() else { return frames };
        let headers = frame.headers().expect("headers");
        let interface = frame.interface;
        let mut seen = Seen {
            host: String::new(),
            time_ps: u64::try_from(frame.time_ps).unwrap(),
            direction: frame.direction.expect("a direction"),
            frame_bytes: frame.frame_bytes(),
            kept: frame.data.len(),
            headers,
            stamp: frame.stamp(&headers),
        };
        seen.host.push_str(&capture.interfaces()[interface].name);
        frames.push(seen);
    }
}

fn names(file: &[u8]) -> Vec<(String, Option<u64>)> {
    let mut capture = Capture::new(file).unwrap();
    capture.next_frame().unwrap();
    capture.interfaces().iter().map(|i| (i.name.clone(), i.speed)).collect()
}

const PAIR: &str = "[topology]\nkind = \"single_switch\"\nhosts = 3\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n\
                    [[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"\nsize = \"3000B\"\npacket = \"1000B\"\n";

/// Closed form: a datagram of 1000 B is a frame of 1046 B and 1066 B of wire time, which at 10 Gb/s takes 852.8 ns; it goes
/// out at k · 8 µs and is there two such times and two delays later, whatever the host needs to look at it.
#[test]
fn frames_are_captured_when_the_first_bit_goes_and_the_last_has_come() {
    for delay in ["0s", "5us"] {
        let kept = run(&format!(
            "{PAIR}[host]\nprocessing_delay = \"{delay}\"\n[telemetry]\nsample = \"off\"\ncapture = {{ hosts = [\"h1\", \"h0\"] }}\n"
        ));
        assert_eq!(names(&kept.packets), [("h0".into(), Some(10_000_000_000)), ("h1".into(), Some(10_000_000_000))]);
        let frames = frames(&kept.packets);
        let seen: Vec<(&str, u64, Direction)> = frames.iter().map(|f| (f.host.as_str(), f.time_ps, f.direction)).collect();
        let expected: Vec<(&str, u64, Direction)> = (0..3)
            .flat_map(|k| {
                let sent = k * 8_000_000;
                // 2 · 852.8 ns are 1705.6 ns, rounded down to nanoseconds in the file.
                [("h0", sent, Direction::Out), ("h1", sent + 2_000_000 + 1_705_000, Direction::In)]
            })
            .collect();
        assert_eq!(seen, expected);
        for frame in &frames {
            assert_eq!((frame.frame_bytes, frame.headers.payload, frame.stamp), (1046, 1000, None));
            let ttl = if frame.direction == Direction::Out { 64 } else { 63 };
            assert_eq!((frame.headers.ttl, frame.headers.protocol), (ttl, 17));
        }
    }
}

/// An incast with drops, marks, retransmissions, and ports that stamp.
fn incast(telemetry: &str, host: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 5\n\
         [switch]\nbuffer = {{ kind = \"static\", per_port = \"30KB\" }}\nmarking = {{ kind = \"threshold\", k = \"15KB\" }}\n\
         [transport]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\nrto_min = \"5ms\"\n[host]\n{host}\n\
         [telemetry]\nqueues = [\"leaf1->h9\", \"leaf0->spine0\"]\nregisters = {{}}\nsample = \"off\"\n{telemetry}\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h9\"\nsize = \"300KB\"\nrepetitions = 2\ninterval = \"20ms\"\n"
    )
}

#[test]
fn what_a_receiver_captures_is_what_its_tables_say() {
    for (host, ip) in [
        ("", IpVersion::V4),
        ("nic = \"fifo\"\nprocessing_delay = \"3us\"", IpVersion::V4),
        ("", IpVersion::V6),
        ("nic = \"fifo\"\nprocessing_delay = \"3us\"", IpVersion::V6),
    ] {
        let version = if ip == IpVersion::V6 { "[framing]\nip = \"v6\"\n" } else { "" };
        let kept = run(&(incast("capture = { hosts = [\"*\"] }", host) + version));
        let frames = frames(&kept.packets);
        assert!(frames.windows(2).all(|pair| pair[0].time_ps <= pair[1].time_ps), "in order of time");

        // Stamp by stamp: registers, flow, size and mark.
        let received = |f: &&Seen| f.host == "h9" && f.direction == Direction::In;
        let processing = if host.is_empty() { 0 } else { 3_000_000 };
        let stamped = frames.iter().filter(received).filter(|f| f.stamp.is_some_and(|s| s.is_stamped()));
        let from_frames: Vec<_> = stamped
            .map(|f| {
                let (source, destination) = f.headers.ports.unwrap();
                let flow = address::flow(source, destination).unwrap().0 .0;
                let stamp = f.stamp.unwrap();
                (f.time_ps, stamp.time, stamp.length, flow, f.frame_bytes, f.headers.ecn == 3)
            })
            .collect();
        let from_table: Vec<_> = kept
            .stamps
            .iter()
            .filter(|row| row.host.to_string() == "h9")
            .map(|row| {
                let arrived = (row.received_ps - processing) / 1000 * 1000;
                (arrived, row.stamp_time, row.stamp_length, row.flow, u32::from(row.frame_bytes), row.marked)
            })
            .collect();
        assert!(from_table.len() > 3000 && from_table.iter().any(|row| row.5), "{}", from_table.len());
        assert_eq!(from_frames, from_table);

        // Every frame has room for a stamp, which no port fills before the first.
        assert!(frames.iter().all(|f| f.stamp.is_some()));
        assert!(frames.iter().filter(|f| f.direction == Direction::Out).all(|f| f.stamp == Some(Stamp::EMPTY)));
        assert!(frames.iter().any(|f| f.frame_bytes == 1518) && frames.iter().all(|f| f.frame_bytes <= 1518));

        // What is sent with data arrives once or is dropped; a packet loses one hop at each switch.
        let key = |f: &Seen| (f.headers.src, f.headers.ports, f.headers.tcp.map(|t| (t.seq, t.flags)));
        let mut balance: BTreeMap<_, i64> = BTreeMap::new();
        let (mut sent, mut arrived) = (0, 0);
        let h9 = address::ip(HostId(9), ip);
        for f in frames.iter().filter(|f| f.headers.dst == h9 && f.headers.payload > 0) {
            let out = f.direction == Direction::Out;
            let far = address::host(f.headers.src).unwrap().0 < 5;
            assert_eq!(f.headers.ttl, if out { 64 } else { 64 - if far { 3 } else { 1 } });
            let count = balance.entry(key(f)).or_default();
            *count += if out { 1 } else { -1 };
            assert!(*count >= 0, "received before it was sent: {f:?}");
            *(if out { &mut sent } else { &mut arrived }) += 1;
        }
        let dropped = kept.drops.iter().filter(|d| d.payload_bytes > 0).count() as u64;
        assert!(dropped > 0);
        assert_eq!((sent, sent - arrived), (kept.flows.iter().map(|f| f.packets_sent).sum::<u64>(), dropped));

        // No one sends to himself, packets of flows that have ended included.
        assert!(frames.iter().all(|f| f.headers.src != f.headers.dst));
    }
}

#[test]
fn a_capture_changes_nothing() {
    let without = run(&incast("", ""));
    let with = run(&incast("capture = { hosts = [\"*\"], snap = \"94B\" }", ""));
    assert_eq!((without.fingerprint, &without.flows, &without.queues), (with.fingerprint, &with.flows, &with.queues));
    assert_eq!((without.stamps, without.packets.len()), (with.stamps, 0));
    let frames = frames(&with.packets);
    assert!(frames.iter().all(|f| f.kept == (f.frame_bytes as usize - 4).min(94)));
    assert!(frames.iter().any(|f| f.kept < f.frame_bytes as usize - 4 && f.stamp.is_none() && f.headers.tcp.is_some()));
}

/// A FIFO NIC knows beforehand when it will send: what it would have sent after the end was not sent.
#[test]
fn nothing_is_captured_after_the_end() {
    let text = incast("capture = { hosts = [\"h0\"] }", "nic = \"fifo\"");
    let all = frames(&run(&text).packets);
    let times: Vec<u64> = all.iter().filter(|f| f.direction == Direction::Out).map(|f| f.time_ps).collect();
    let middle = times[10];
    let cut = frames(&run(&format!("duration = \"{}ps\"\n{text}", middle + 999)).packets);
    let expected = all.iter().filter(|f| f.time_ps <= middle).count();
    assert_eq!(cut.len(), expected);
    assert!(expected > 10 && expected < all.len());
}

/// The scenario refuses what has no bytes, and nothing else: it cannot ask the crate that makes them.
#[test]
fn scenario_and_frames_agree_on_what_is_ethernet() {
    for header in [0_u16, 4, 14, 18, 20, 22, 26] {
        for min_frame in [0_u16, 60, 64, 68, 84] {
            let text = format!(
                "{PAIR}[framing]\nheader = \"{header}B\"\nmin_frame = \"{min_frame}B\"\n[telemetry]\ncapture = {{ hosts = [\"h0\"] }}\n"
            );
            let valid = Scenario::from_toml(&text, Path::new(".")).is_ok();
            let framing = fanin_packet::Framing { header, min_frame, ..fanin_packet::Framing::ETHERNET };
            assert_eq!(valid, Framer::new(&framing).is_ok(), "{header} {min_frame}");
            if valid {
                let frames = frames(&run(&text).packets);
                assert_eq!(frames.len(), 3);
                assert!(frames.iter().all(|f| f.frame_bytes == 1028 + u32::from(header)));
            }
        }
    }
}

fn addresses(notice: &Notice) -> [IpAddr; 2] {
    match notice.addresses {
        Addresses::V4 { src, dst } => [src.into(), dst.into()],
        Addresses::V6 { src, dst } => [src.into(), dst.into()],
    }
}

/// Drop notifications are in the capture of the host that they are for, each once, behind a packet or alone; taken off, the
/// packets are those of the same capture without them, and stamps are where they were.
#[test]
fn notifications_are_captured_where_they_arrive() {
    let text = |ip: &str, more: &str| {
        format!(
            "[framing]\nip = \"{ip}\"\n[topology]\nkind = \"single_switch\"\nhosts = 3\nlink = {{ rate = \"1Gbps\", delay = \"10us\" }}\n[switch]\n\
             buffer = {{ kind = \"static\", per_port = \"20 packets\" }}\nmechanisms.pdn = {{}}\n[transport]\nkind = \"tcp\"\nhandshake = false\n\
             initial_window = 30\ndrop_notification = true\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h2\"\nsize = \"60KB\"\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsize = \"90KB\"\n\
             [telemetry]\nsample = \"off\"\nqueues = [\"switch0->*\"]\n{more}\n"
        )
    };
    for (ip, registers) in [("v4", ""), ("v4", "registers = {}"), ("v6", ""), ("v6", "registers = {}")] {
        let kept = run(&text(ip, &format!("{registers}\ncapture = {{ hosts = [\"h*\"] }}")));
        let mut capture = Capture::new(&kept.packets[..]).unwrap();
        let (mut alone, mut behind, mut notified, mut acks) = (0, 0, Vec::new(), 0);
        while let Some(frame) = capture.next_frame().unwrap() {
            let Some(notice) = frame.notice() else {
                assert!(frame.headers().is_some());
                continue;
            };
            assert_eq!(frame.direction, Some(Direction::In));
            if notice.operation == ACKNOWLEDGE {
                assert_eq!(notice.length, 0);
                acks += 1;
            } else {
                notified.push(notice.seq);
            }
            assert_eq!(
                (notice.size(), &frame.data[12..14]),
                if ip == "v4" { (20, &[0xA8, 0x00][..]) } else { (44, &[0xA6, 0xDD][..]) }
            );
            assert!(addresses(&notice).map(address::host).iter().all(|host| host.is_some_and(|host| host.0 < 3)));
            let mut bytes = frame.data.to_vec();
            assert_eq!(fanin_wire::notification::detach(&mut bytes), Ok(Some(notice)));
            match frame.headers() {
                Some(headers) => {
                    behind += 1;
                    assert_eq!(frame.stamp(&headers).is_some(), !registers.is_empty());
                    assert_eq!(Headers::parse(fanin_wire::LinkType::Ethernet, &bytes), Some(headers));
                }
                None => {
                    alone += 1;
                    assert_eq!((frame.data.len(), frame.frame_bytes()), (60, 64));
                }
            }
        }
        let mut dropped: Vec<u32> = kept.drops.iter().filter(|row| row.payload_bytes > 0).map(|row| row.seq).collect();
        dropped.sort_unstable();
        notified.sort_unstable();
        assert!(alone > 0 && behind > 0, "{alone} alone, {behind} behind a packet");
        assert_eq!((notified.len() + acks, notified), (kept.drops.len(), dropped));
        assert!(acks > 0);
    }
}

/// Trimmed packets are in the capture of their receiver as short frames whose headers show what they had, with the stamp where it
/// was; and NACKs, of the same bytes, in that of their sender.
#[test]
fn trimmed_packets_and_nacks_are_captured() {
    let text = |more: &str| {
        format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 3\nlink = {{ rate = \"1Gbps\", delay = \"10us\" }}\n[switch]\n\
             buffer = {{ kind = \"static\", per_port = \"10 packets\" }}\nmechanisms.trimming = {{}}\n[transport]\nkind = \"tcp\"\nhandshake = false\n\
             initial_window = 30\ntrim_nack = true\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h2\"\nsize = \"60KB\"\n\
             [telemetry]\nsample = \"off\"\nqueues = [\"switch0->*\"]\n{more}\n"
        )
    };
    for registers in ["", "registers = {}"] {
        let text = text(&format!("{registers}\ncapture = {{ hosts = [\"h*\"] }}"));
        let mut world = world(&scenario(&text), &Destination::Memory).expect("a world");
        while world.advance(100_000).expect("tables in memory") == Pause::Budget {}
        let (nacked, trimmed_there) = (world.signals().trimming.nacked, world.counter("trimming", "trimmed"));
        let kept = world.into_kept().expect("tables in memory");
        let mut capture = Capture::new(&kept.packets[..]).unwrap();
        let (mut trimmed, mut nacks) = (Vec::new(), Vec::new());
        while let Some(frame) = capture.next_frame().unwrap() {
            let headers = frame.headers().unwrap();
            let stamp = frame.stamp(&headers);
            assert_eq!(stamp.is_some(), !registers.is_empty());
            if frame.is_trimmed(&headers) {
                assert_eq!(frame.direction, Some(Direction::In));
                assert!(headers.payload > 0 && stamp.is_none_or(|stamp| stamp.is_stamped()));
                assert_eq!(frame.frame_bytes(), 20 + 32 + 18 + if registers.is_empty() { 0 } else { 8 });
                trimmed.push((headers.dst, headers.tcp.unwrap().seq, headers.payload));
            }
            let tcp = &frame.data[34..headers.payload_at];
            if let (Some(at), Some(Direction::Out)) = (tcp.windows(4).position(|w| w == [253, 10, 0x4e, 0x44]), frame.direction) {
                let seq = u32::from_be_bytes(*tcp[at + 4..].first_chunk().unwrap());
                let length = u16::from_be_bytes(*tcp[at + 8..].first_chunk().unwrap());
                nacks.push((headers.src, seq, u32::from(length)));
            }
        }
        assert_eq!((trimmed.len() as u64, nacked), (trimmed_there, trimmed_there));
        assert!(trimmed.len() > 5);
        assert_eq!(trimmed, nacks);
    }
}

/// Every frame of the captured links is there, with the headers that switches put into it, and as long as its port says: so many
/// with a number as there were detours, so many messages as were sent.
#[test]
fn links_show_what_switches_put_into_frames() {
    for (ip, registers) in [("v4", ""), ("v6", "registers = {}\n")] {
        let text = format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nhost_link = {{ rate = \"10Gbps\", delay = \"200ns\" }}\n\
             uplink = {{ rate = \"40Gbps\", delay = \"300ns\" }}\n[framing]\nip = \"{ip}\"\n\
             [switch]\nbuffer = {{ kind = \"static\", per_port = \"3000 packets\" }}\nmechanisms.rimm = {{ alpha = \"40 packets\" }}\nmechanisms.pdn = {{}}\n\
             [[switch.except]]\ntier = 1\nmechanisms.rimm = {{ alpha = \"2000 packets\" }}\nmechanisms.pdn = {{}}\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\ndrop_notification = true\nrto_min = \"5ms\"\n\
             [telemetry]\nqueues = [\"leaf2->h5\", \"leaf2->spine*\"]\nsample = \"off\"\n{registers}capture = {{ links = [\"leaf*->spine*\", \"spine*\"], hosts = [\"h5\"] }}\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h5\"\nsenders = [\"h0..h3\"]\nflows_per_sender = 3\nsize = \"300KB\"\n"
        );
        let mut world = world(&scenario(&text), &Destination::Memory).expect("a world");
        while world.advance(100_000).expect("tables in memory") == Pause::Budget {}
        let count = |name| world.counter("rimm", name);
        let [detours, messages] = [count("detoured") + count("redetoured"), count("messages_sent")];
        assert!(detours > 50 && messages > 1 && count("dropped_away") == 0, "{detours} {messages}");
        let [astray, lost, rest] = [count("astray"), count("messages_lost"), world.in_flight()];
        let ports: BTreeMap<String, (u64, u64)> =
            world.ports_now().into_iter().map(|port| (port.name, (port.tx_packets - port.on_wire, port.tx_bytes))).collect();
        let kept = world.into_kept().expect("tables");
        assert_eq!(rest, 0);

        let mut capture = Capture::new(&kept.packets[..]).unwrap();
        let mut kinds: BTreeMap<u16, u64> = BTreeMap::new();
        let mut seen: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut last = 0;
        while let Some(frame) = capture.next_frame().unwrap() {
            assert!(frame.time_ps >= last, "in order of time");
            last = frame.time_ps;
            let (interface, bytes) = (frame.interface, frame.data.len() as u64 + 4);
            let kind = u16::from_be_bytes([frame.data[12], frame.data[13]]);
            if kind != 0xA800 && kind != 0xA6DD || frame.data.len() > 60 {
                let headers = frame.headers().expect("IP behind whatever header");
                assert!(headers.ports.is_some() && headers.protocol == 6);
            }
            let name = capture.interfaces()[interface].name.clone();
            if name == "h5" {
                assert!(!(0xA8F0..=0xA8F4).contains(&kind), "hosts see none of it");
                continue;
            }
            *kinds.entry(kind).or_default() += 1;
            let port = seen.entry(name).or_default();
            *port = (port.0 + 1, port.1 + bytes);
        }
        for (name, frames) in &seen {
            let to_host = name.contains("->h");
            assert!(to_host || ports[name] == *frames, "{name}: {frames:?}, and the port says {:?}", ports[name]);
        }
        assert_eq!((kinds[&0xA8F1], kinds[&0xA8F2]), (detours, detours - astray));
        // The last message may be on its way when the run ends.
        assert!(kinds[&0xA8F3] == messages && messages - lost - kinds[&0xA8F4] <= 1, "{kinds:?}, {messages} and {lost}");
        assert!(kinds[&0xA8F0] > 1_000);
    }
}

const ROCE: &str = r#"
[topology]
kind = "single_switch"
hosts = 3
[transport]
kind = "roce"
congestion_control = "dcqcn"
recovery = { kind = "go_back_n", ack_timeout = 6 }
[switch]
buffer = { kind = "static", per_port = "15KB" }
marking = { kind = "threshold", k = "10KB" }
[[traffic]]
kind = "incast"
receiver = "h2"
size = "300KB"
[telemetry]
sample = "off"
capture = { hosts = ["h2"] }
"#;

/// Wireshark's words for what a queue pair sends, where it is installed: opcodes, lengths, and not one malformed packet.
#[test]
fn wireshark_reads_queue_pairs() {
    let kept = run(ROCE);
    let mut payload = 0;
    for seen in frames(&kept.packets) {
        assert!(seen.headers.protocol == 17 && seen.headers.ports.is_some_and(|(_, to)| to == 4_791));
        if seen.direction == Direction::In {
            payload += u64::from(seen.headers.payload);
        } else {
            assert_eq!(seen.headers.payload, 0, "acknowledgments and notifications");
        }
    }
    let arrived: u64 = kept.flows.iter().map(|f| f.delivered_bytes).sum();
    assert!(payload > arrived && arrived == 600_000, "{payload}: what was sent again arrives twice, or too early");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("packets.pcapng");
    std::fs::write(&file, &kept.packets).expect("a file");
    let fields =
        ["infiniband.bth.opcode", "infiniband.bth.p_key", "infiniband.aeth.syndrome", "infiniband.reth.dmalen", "_ws.malformed"];
    let mut tshark = std::process::Command::new("tshark");
    tshark.arg("-r").arg(&file).args(["-T", "fields"]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let Ok(output) = tshark.output() else {
        return println!("tshark is not installed");
    };
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), frames(&kept.packets).len());
    let count = |opcode: &str| rows.iter().filter(|row| row[0] == opcode).count();
    let data: usize = ["6", "7", "8", "10"].map(count).iter().sum();
    let incoming = frames(&kept.packets).iter().filter(|seen| seen.direction == Direction::In).count();
    assert_eq!((data, count("17") + count("129")), (incoming, rows.len() - incoming));
    assert!(count("6") >= 2 && count("8") >= 2 && count("129") > 0, "{:?}", rows.first());
    assert!(rows.iter().all(|row| row[4].is_empty() && row[1] == "65535" || row[1] == "0xffff"), "{:?}", rows.first());
    assert!(rows.iter().filter(|row| row[0] == "6").all(|row| row[3] == "300000"), "{:?}", rows.first());
    assert!(rows.iter().any(|row| row[0] == "17" && ["96", "0x60"].contains(&row[2])), "a NAK");
}
