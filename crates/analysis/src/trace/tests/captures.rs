//! Captures made by hand: which frames are arrivals at one queue, what is known of their connections, what cannot be.

use crate::capture::filter::CaptureFilter;
use crate::capture::selection::Selection;
use crate::checks::{Level, Plausibility, Trust};
use crate::input::context::Context;
use crate::input::reader::Batch;
use crate::trace::source::{origin, Source};
use crate::trace::{analyze, Control, Observer, Options, Progress};
use crate::{FlowInfo, Record, NO_DATA};
use fanin_packet::IpVersion;
use fanin_units::{BitRate, HostId, Span, Time};
use fanin_wire::{CaptureFile, Direction};
use serde_json::{json, Value};
use std::path::{Path, PathBuf};

mod places;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// Microseconds that captures begin with.
const START: u64 = 1_795_000_000_000_000;
const SERVER: u8 = 99;

/// A TCP segment; hosts are 10.0.0.N with MAC addresses of the same number.
#[derive(Clone, Copy)]
struct Segment {
    us: u64,
    hosts: (u8, u8),
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: u8,
    payload: u16,
    id: u16,
    clock: Option<u32>,
    mss: Option<u16>,
}

/// From a client of that number to the server's port 80.
fn up(us: u64, client: u8) -> Segment {
    let (hosts, ports) = ((client, SERVER), (1000 + u16::from(client), 80));
    Segment { us, hosts, ports, seq: 0, ack: 0, flags: ACK, payload: 0, id: 0, clock: None, mss: None }
}

/// The other direction.
fn down(us: u64, client: u8) -> Segment {
    let up = up(us, client);
    Segment { hosts: (up.hosts.1, up.hosts.0), ports: (up.ports.1, up.ports.0), ..up }
}

impl Segment {
    fn data(self, seq: u32, payload: u16) -> Segment {
        Segment { seq, payload, id: (self.us % 65_000) as u16 + 1, ..self }
    }

    fn of(self, flags: u8, seq: u32, ack: u32) -> Segment {
        Segment { flags, seq, ack, ..self }
    }

    /// From the IP header on; payload is zeros.
    fn ip(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some(mss) = self.mss {
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
        }
        if let Some(clock) = self.clock {
            options.extend([1, 1, 8, 10]);
            options.extend(clock.to_be_bytes());
            options.extend([0; 4]);
        }
        let length = 40 + options.len() as u16 + self.payload;
        let mut bytes = vec![0x45, 0];
        bytes.extend(length.to_be_bytes());
        bytes.extend(self.id.to_be_bytes());
        bytes.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, self.hosts.0, 10, 0, 0, self.hosts.1]);
        bytes.extend(self.ports.0.to_be_bytes());
        bytes.extend(self.ports.1.to_be_bytes());
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend([((20 + options.len()) << 2) as u8, self.flags, 1, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.resize(usize::from(length), 0);
        bytes
    }

    fn ethernet(&self) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, self.hosts.1, 2, 0, 0, 0, 0, self.hosts.0, 8, 0];
        frame.extend(self.ip());
        frame.resize(frame.len().max(60), 0);
        frame
    }

    /// As `tcpdump -i any` keeps it. Types: 0 to us, 3 to another host, 4 from us.
    fn cooked(&self, interface: u32, kind: u8) -> Vec<u8> {
        let mut frame = vec![8, 0, 0, 0];
        frame.extend(interface.to_be_bytes());
        frame.extend([0, 1, kind, 6, 2, 0, 0, 0, 0, self.hosts.0, 0, 0]);
        frame.extend(self.ip());
        frame
    }
}

/// A pcap file of a link type: times [us], frames; `snap` bytes of each.
fn pcap(link: u32, snap: usize, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, snap as u32, link] {
        file.extend(word.to_le_bytes());
    }
    for (us, frame) in frames {
        let us = START + us;
        // Odd nanoseconds: the times are no whole microseconds.
        let kept = &frame[..frame.len().min(snap)];
        for word in [(us / 1_000_000) as u32, (us % 1_000_000 * 1000) as u32 + 7, kept.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(kept);
    }
    file
}

fn plain(segments: &[Segment]) -> Vec<u8> {
    let frames: Vec<_> = segments.iter().map(|s| (s.us, s.ethernet())).collect();
    pcap(1, 65_535, &frames)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

struct Patient;

impl Observer for Patient {
    fn progress(&mut self, now: Progress) -> Control {
        assert!((0.0..=1.0).contains(&now.done));
        Control::Continue
    }
}

/// What is read of a capture.
struct Found {
    /// With their ports and flows.
    records: Vec<(Record, String, FlowInfo)>,
    taken: Selection,
    notes: Vec<String>,
    plausibility: Plausibility,
}

impl Found {
    /// Ports with their records.
    fn ports(&self) -> Vec<(String, usize)> {
        self.taken
            .streams
            .iter()
            .map(|s| {
                let port = s.port.clone().unwrap();
                let records = self.records.iter().filter(|r| r.1 == port).count();
                (port, records)
            })
            .collect()
    }

    fn why(&self) -> Vec<(&str, u64)> {
        self.taken.left_out.iter().map(|s| (s.why.as_str(), s.packets)).collect()
    }

    fn codes(&self) -> Vec<(&'static str, Level, u64, Option<u64>)> {
        self.plausibility.findings.iter().map(|f| (f.code, f.level, f.count, f.bytes)).collect()
    }
}

fn read(path: &Path, filter: &CaptureFilter) -> Result<Found, String> {
    let text = |problems: Vec<crate::trace::Problem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let mut sources = [Source::find(&crate::input::file::Place::of(path), None).map_err(text)?];
    let mut captures: Vec<_> = sources.iter_mut().filter_map(Source::capture_mut).collect();
    assert!(crate::capture::chains::survey(&mut captures, (filter, false, false), &mut |_| true).map_err(text)?);
    let taken = sources[0].selection().unwrap();
    let mut context = Context { origin: origin(&sources), ..Context::default() };
    let mut reader = sources[0].open(&mut context).map_err(text)?;
    let mut batch = Batch::default();
    let (mut records, lookup) = (Vec::new(), context.flows.lookup());
    while reader.next(&mut context, &mut batch).map_err(text)? {
        for (record, port) in batch.records.iter().zip(&batch.ports) {
            records.push((*record, context.ports.names()[*port as usize].clone(), lookup(record.flow)));
        }
    }
    reader.finish(&mut context);
    let plausibility = Plausibility::of(context.findings);
    Ok(Found { records, taken, notes: context.notes, plausibility })
}

fn found(name: &str, file: &[u8]) -> Found {
    read(&Folder::new().file(name, file), &CaptureFilter::default()).unwrap()
}

fn filtered(name: &str, file: &[u8], settings: Value) -> Result<Found, String> {
    let mut settings = settings;
    settings["paths"] = json!(["x"]);
    let filter = Options::from_json(&settings.to_string()).unwrap().filter;
    read(&Folder::new().file(name, file), &filter)
}

/// Three clients send 10 packets each; the server acknowledges every second one.
fn incast() -> Vec<Segment> {
    let mut segments = Vec::new();
    for i in 0..10 {
        for client in 1..=3 {
            let us = 100 * u64::from(i) + u64::from(client) * 10;
            segments.push(up(us, client).data(1 + 1000 * i, 1000));
            if i % 2 == 1 {
                segments.push(down(us + 5, client).of(ACK, 1, 1001 + 1000 * i));
            }
        }
    }
    segments
}

#[test]
fn acknowledgments_are_no_arrivals_at_the_queue_of_the_data() {
    let found = found("tap.pcap", &plain(&incast()));
    assert_eq!(found.ports(), [("tap to 10.0.0.99".into(), 30)]);
    let stream = &found.taken.streams[0];
    assert_eq!((stream.packets, stream.bytes, stream.flows, stream.hosts), (30, 30 * 1058, 3, 1));
    assert_eq!(stream.why, "the busiest, 97 % of the bytes");
    assert_eq!(found.why(), [("the other direction", 15)]);
    assert_eq!((found.taken.left_out[0].bytes, found.taken.left_out[0].hosts), (15 * 64, 3));
    assert!(found.records.iter().all(|(record, _, info)| record.frame == 1058 && info.dst.as_deref() == Some("10.0.0.99")));
    let note = found.taken.note().unwrap();
    assert!(
        note.starts_with("taken: to 10.0.0.99 (30 packets, 31.74 KB, 3 flows): the busiest, 97 % of the bytes; left out: to 3 hosts (15 packets, 960 B, 3 flows): the other direction; --to,"),
        "{note}"
    );
}

#[test]
fn a_capture_of_one_direction_is_a_port_by_the_files_name() {
    let data: Vec<Segment> = incast().into_iter().filter(|s| s.payload > 0).collect();
    let found = found("port7.pcap", &plain(&data));
    assert_eq!((found.ports(), found.taken.note()), (vec![("port7".into(), 30)], None));
    assert_eq!(found.taken.streams[0].why, "everything");
}

#[test]
fn directions_that_carry_similar_bytes_are_two_ports() {
    let mut segments = incast();
    segments.extend((0..20).map(|i| down(2_000 + 10 * i, 1).data(1 + 1000 * i as u32, 1000)));
    let found = found("tap.pcap", &plain(&segments));
    assert_eq!(found.ports(), [("tap to 10.0.0.99".into(), 30), ("tap to 3 hosts".into(), 35)]);
    assert!(found.taken.streams[1].why.contains("the other direction, with at least half as many bytes"));
}

#[test]
fn to_chooses_the_receiver() {
    let file = plain(&incast());
    for (to, port, records) in [
        (json!("10.0.0.2"), "tap to 10.0.0.2", 5),
        (json!("10.0.0.0/30"), "tap to 10.0.0.0/30", 15),
        (json!(["10.0.0.1:1001", "10.0.0.3"]), "tap to 10.0.0.1:1001, 10.0.0.3", 10),
        (json!("10.0.0.99:80"), "tap to 10.0.0.99:80", 30),
    ] {
        let found = filtered("tap.pcap", &file, json!({"to": to})).unwrap();
        assert_eq!(found.ports(), [(port.to_string(), records)]);
        assert_eq!(found.why(), [("not asked for", 45 - records as u64)]);
    }
    let nothing = filtered("tap.pcap", &file, json!({"to": "10.1.0.0/16"})).unwrap();
    assert!(nothing.records.is_empty() && nothing.taken.note().unwrap().starts_with("nothing was taken; left out: the rest (45"));
    let error = filtered("tap.pcap", &file, json!({"direction": "in", "interface": "eth0"})).err().unwrap();
    assert!(error.contains("direction: cannot be told: this capture does not say which way frames went; name the receiver: --to"));
    assert!(error.contains("interface: 'eth0' is no interface of this capture; it names none"), "{error}");
}

/// Frames of a switch: into an uplink (4), out of it to a port (6), where every fifth is dropped, answers on another (7).
fn switch() -> Vec<(u64, Vec<u8>)> {
    let mut frames = Vec::new();
    for (i, segment) in incast().iter().enumerate() {
        if segment.payload == 0 {
            frames.push((segment.us, segment.cooked(7, 3)));
            continue;
        }
        frames.push((segment.us, segment.cooked(u32::from(segment.hosts.0) + 10, 3)));
        frames.push((segment.us, segment.cooked(4, 3)));
        if i % 5 > 0 {
            frames.push((segment.us + 1, segment.cooked(6, 4)));
        }
    }
    frames
}

#[test]
fn a_packet_that_passes_several_interfaces_counts_once() {
    let file = pcap(276, 65_535, &switch());
    let found = found("any.pcap", &file);
    assert_eq!(found.ports(), [("if4 in".into(), 30)]);
    assert_eq!(found.taken.streams[0].bytes, 30 * 1058, "the cooked header is no part of the frame");
    let left: Vec<(&str, &str, &str)> =
        (found.taken.left_out.iter()).map(|s| (s.interface.as_deref().unwrap(), s.direction.unwrap(), s.why.as_str())).collect();
    let same = "the same packets at another interface";
    assert_eq!(
        left,
        [
            ("if6", "out", same),
            ("if11", "in", same),
            ("if12", "in", same),
            ("if13", "in", same),
            ("if7", "in", "the other direction")
        ]
    );
    // What is asked for is taken.
    let out = filtered("any.pcap", &file, json!({"direction": "out"})).unwrap();
    assert_eq!(out.ports(), [("if6 out".into(), 24)]);
    let two = filtered("any.pcap", &file, json!({"interface": ["if6", "if4"]})).unwrap();
    assert_eq!(two.ports(), [("if4 in".into(), 30), ("if6 out".into(), 24)]);
    let to = filtered("any.pcap", &file, json!({"to": "10.0.0.1"})).unwrap();
    assert_eq!(to.ports(), [("if7 in".into(), 5)]);
    // So are ports by their names, as reports have them.
    let ports = filtered("any.pcap", &file, json!({"interface": ["if6 out", "if4 in"]})).unwrap();
    assert_eq!(ports.ports(), two.ports());
    assert_eq!(filtered("any.pcap", &file, json!({"interface": "if6 out"})).unwrap().ports(), [("if6 out".into(), 24)]);
    assert!(filtered("any.pcap", &file, json!({"interface": "if6 up"})).err().unwrap().contains("'if6 up' is no interface"));
    let error = filtered("any.pcap", &file, json!({"interface": "if5"})).err().unwrap();
    assert!(
        error.contains("'if5' is no interface of this capture; accepted: if11, if12, if13, if4, if6, if7; did you mean"),
        "{error}"
    );
}

#[test]
fn interfaces_with_packets_of_their_own_are_ports_of_their_own() {
    let mut file = CaptureFile::keep("test", "", None);
    for host in 0..3 {
        file.interface((HostId(host), IpVersion::V4), &format!("eth{host}"), BitRate::from_gbps(10));
    }
    for (i, segment) in incast().iter().enumerate() {
        // To the server on two links by turns, answers on a third.
        let (interface, direction) =
            if segment.payload > 0 { (segment.hosts.0 as u32 % 2, Direction::In) } else { (2, Direction::Out) };
        file.frame(interface, Time::from_ps(i as u64 * 1_234_567), &segment.ethernet(), direction).unwrap();
    }
    file.finish().unwrap();
    let found = found("bond.pcapng", file.kept());
    assert_eq!(found.ports(), [("eth1 in".into(), 20), ("eth0 in".into(), 10)]);
    assert_eq!(found.why(), [("the other direction", 15)]);
    let out = filtered("bond.pcapng", file.kept(), json!({"direction": "out", "interface": "eth2"})).unwrap();
    assert_eq!(out.ports(), [("eth2 out".into(), 15)]);
}

#[test]
fn a_mirror_of_several_ports_gives_the_busiest_receiver() {
    let segment = |us, from, to, seq| Segment { hosts: (from, to), ..up(us, 1).data(seq, 500) };
    let around = |i: u64| {
        let at = 100 * i;
        let seq = 1 + 500 * i as u32;
        [segment(at, 1, 2, seq), segment(at + 1, 2, 3, seq), segment(at + 2, 3, 1, seq), segment(at + 3, 4, 3, seq)]
    };
    let found = found("span.pcap", &plain(&(0..10).flat_map(around).collect::<Vec<_>>()));
    assert_eq!(found.ports(), [("span to 10.0.0.3".into(), 20)]);
    assert_eq!(found.why(), [("to other receivers", 20)]);
    assert!(
        found.notes.iter().any(|n| n.contains("do not pass from one side to another") && n.contains("10.0.0.3")),
        "{:?}",
        found.notes
    );
}

#[test]
fn hosts_that_exchange_nothing_are_on_no_known_side() {
    let mut segments = incast();
    for i in 0..10 {
        let other = Segment { hosts: (50, 51), ..up(50 + 100 * i, 9) };
        segments.push(other.data(1 + 1000 * i as u32, 1000));
        segments.push(Segment { hosts: (51, 50), ports: (80, 1009), ..other }.of(ACK, 1, 1001 + 1000 * i as u32));
    }
    segments.sort_by_key(|s| s.us);
    let found = found("trunk.pcap", &plain(&segments));
    assert_eq!(found.ports(), [("trunk to 2 hosts".into(), 40)]);
    assert!(found.notes.iter().any(|n| n.contains("2 groups of hosts exchange nothing")), "{:?}", found.notes);
}

#[test]
fn loopback_is_sorted_by_ports() {
    let same: Vec<_> = incast().into_iter().map(|s| Segment { hosts: (1, 1), ..s }).collect();
    let found = found("lo.pcap", &plain(&same));
    assert_eq!(found.ports(), [("lo to 10.0.0.1".into(), 30)]);
    assert_eq!(found.why(), [("the other direction", 15)]);
}

/// A handshake with that client, and 10 packets after it: at the client, with an RTT of 2 ms.
fn connection(us: u64, client: u8) -> Vec<Segment> {
    let syn = Segment { mss: Some(1000), ..up(us, client).of(SYN, 0, 0) };
    let answer = Segment { mss: Some(1000), ..down(us + 1_990, client).of(SYN | ACK, 0, 1) };
    let mut segments = vec![syn, answer, up(us + 2_000, client).of(ACK, 1, 1)];
    segments.extend((0..10).map(|i| up(us + 5_000 + 100 * i, client).data(1 + 1000 * i as u32, 1000)));
    segments.push(down(us + 8_000, client).of(ACK, 1, 10_001));
    segments.push(up(us + 9_000, client).of(FIN | ACK, 10_001, 1));
    segments
}

#[test]
fn a_handshake_gives_the_round_trip_and_when_the_flow_began() {
    for one_way in [false, true] {
        let segments: Vec<_> = connection(10, 1).into_iter().filter(|s| !one_way || s.hosts.1 == SERVER).collect();
        let found = found("a.pcap", &plain(&segments));
        let stream = &found.taken.streams[0];
        let rtt = Some(Span::from_ms(2).ps());
        assert_eq!((stream.round_trips, stream.rtt_low_ps, stream.rtt_high_ps), (1, rtt, rtt));
        let data: Vec<bool> = found.records.iter().map(|(record, ..)| record.has_data()).collect();
        assert_eq!(data, [&[false; 2][..], &[true; 10], &[false]].concat(), "SYN, ACK, data, FIN");
        let (first, _, info) = &found.records[0];
        assert_eq!(info.opened, Some(first.time));
        assert_eq!(info.base_rtt, Some(Span::from_ms(2)), "one way: {one_way}");
        assert_eq!((info.src.as_deref(), info.dst.as_deref()), (Some("10.0.0.1"), Some("10.0.0.99")));
    }
    // What the server sends began with its SYN/ACK.
    let answers: Vec<_> = connection(10, 1).into_iter().map(|s| Segment { payload: 0, ..s }).collect();
    let mut answers: Vec<_> = answers.into_iter().filter(|s| s.us < 3_000).collect();
    answers.extend((0..10).map(|i| down(5_000 + i, 1).data(1 + 1000 * i as u32, 1000)));
    let found = found("a.pcap", &plain(&answers));
    let (first, port, info) = &found.records[0];
    assert_eq!((port.as_str(), info.opened, info.base_rtt), ("a to 10.0.0.1", Some(first.time), Some(Span::from_ms(2))));
    assert_eq!(first.flags, NO_DATA);
    assert!(found.plausibility.findings.is_empty(), "{:?}", found.codes());
}

#[test]
fn the_shortest_handshake_of_two_hosts_counts_and_repeated_ones_do_not() {
    let rtts = |segments: Vec<Segment>| {
        let found = found("a.pcap", &plain(&segments));
        let mut rtts: Vec<_> = found.records.iter().map(|r| (r.2.name.to_string(), r.2.opened.is_some(), r.2.base_rtt)).collect();
        rtts.sort();
        rtts.dedup();
        rtts.into_iter().map(|(_, opened, rtt)| (opened, rtt.map(|rtt| rtt.ps() / 1_000_000))).collect::<Vec<_>>()
    };
    // The SYN was lost and came again after 200 ms: its answer could be to either.
    let mut again = connection(200_010, 1);
    again.insert(0, Segment { us: 10, ..again[0] });
    assert_eq!(rtts(again.clone()), [(true, None)]);
    // Another connection of the same hosts, whose handshake waited 3 ms in a queue, and one that did not.
    let other = |us: u64, port: u16, more: u64| {
        let shift = move |s: Segment| {
            let ports = if s.hosts.1 == SERVER { (port, 80) } else { (80, port) };
            Segment { us: s.us + if s.us > us { more } else { 0 }, ports, ..s }
        };
        connection(us, 1).into_iter().map(shift).collect::<Vec<_>>()
    };
    let mut all = [again, other(300_000, 7, 3_000), other(400_000, 8, 0)].concat();
    all.sort_by_key(|s| s.us);
    assert_eq!(rtts(all), [(true, Some(2_000)); 3]);
    // Longer than a second is no round trip.
    assert_eq!(rtts(other(0, 7, 1_000_000)), [(true, None)]);
    // A flow that was there before has no beginning, and a port that is used again begins no flow anew.
    let mut old = vec![up(1, 1).data(77, 1000)];
    old.extend(connection(10, 1));
    assert_eq!(rtts(old), [(false, Some(2_000))]);
    // The same SYN captured twice is one.
    let mut twice = connection(10, 1);
    twice.insert(1, Segment { us: 20, ..twice[0] });
    assert_eq!(rtts(twice), [(true, Some(2_000))]);
}

#[test]
fn payload_is_counted_by_the_headers_not_by_what_was_kept() {
    let frames: Vec<_> = connection(10, 1).iter().map(|s| (s.us, s.ethernet())).collect();
    let whole = found("a.pcap", &pcap(1, 65_535, &frames));
    let cut = found("a.pcap", &pcap(1, 68, &frames));
    let records = |found: &Found| found.records.iter().map(|r| r.0).collect::<Vec<_>>();
    assert_eq!(records(&whole), records(&cut));
    assert!(cut.plausibility.findings.is_empty());
}

#[test]
fn what_a_host_has_put_together_is_no_packet() {
    let mut segments = connection(10, 1);
    for segment in segments.iter_mut().filter(|s| s.payload > 0) {
        segment.payload = 3_000;
        segment.seq = (segment.seq - 1) * 3 + 1;
    }
    let found = found("a.pcap", &plain(&segments));
    assert_eq!(found.codes()[..1], [("super_frames", Level::Doubt, 10, Some(10 * 3_058))]);
    let words = &found.plausibility.findings[0];
    assert!(
        words.words.contains("10 of 13 frames are longer than a packet on the wire (up to 3.058 KB)")
            && words.hint.contains("gro off"),
        "{words:?}"
    );
    // Without a handshake, by the usual segments; one of 3,000 bytes may be a jumbo frame.
    for (payload, codes) in [(2 * 1448, 1), (3_000, 0)] {
        let data: Vec<_> = (0..10).map(|i| up(10 * i, 1).data(1 + i as u32 * u32::from(payload), payload)).collect();
        let found = crate::trace::tests::captures::found("a.pcap", &plain(&data));
        assert_eq!(found.codes().iter().filter(|c| c.0 == "super_frames").count(), codes, "{payload}");
    }
}

#[test]
fn cut_headers_are_named() {
    let frames: Vec<_> = connection(10, 1).iter().map(|s| (s.us, s.ethernet())).collect();
    for (snap, port) in [(36, "a"), (46, "a to 10.0.0.99")] {
        let mut file = pcap(1, snap, &frames);
        // A tool that cuts later leaves the header's length as it was.
        file[16..20].copy_from_slice(&262_144_u32.to_le_bytes());
        let found = found("a.pcap", &file);
        let (code, level, count, _) = found.codes()[0];
        assert_eq!((code, level), ("cut_headers", Level::Doubt), "{snap}");
        assert!(count >= 13 && found.ports()[0].0.starts_with(port), "{count} {:?}", found.ports());
        let words = |words: &str| found.plausibility.findings[0].words.contains(words);
        assert!(
            words(&format!("keeps {snap} B of each frame, though its header says 262144 B")),
            "{:?}",
            found.plausibility.findings
        );
    }
}

#[test]
fn copies_are_left_out() {
    let mut segments = incast();
    let copies: Vec<_> = segments.iter().filter(|s| s.payload > 0).map(|s| Segment { us: s.us + 3, ..*s }).collect();
    segments.extend(copies);
    segments.sort_by_key(|s| s.us);
    let found = found("a.pcap", &plain(&segments));
    assert_eq!(found.ports(), [("a to 10.0.0.99".into(), 30)]);
    assert_eq!(found.codes()[0], ("duplicates", Level::Note, 30, Some(30 * 1058)));
    // Without numbers, as IPv6 has none, where all come twice. A few that are sent again at once are no copies.
    let unnumbered = |twice: usize| {
        let mut segments: Vec<_> = incast().into_iter().map(|s| Segment { id: 0, ..s }).collect();
        let again: Vec<_> =
            segments.iter().filter(|s| s.payload > 0).take(twice).map(|s| Segment { us: s.us + 3, ..*s }).collect();
        segments.extend(again);
        segments.sort_by_key(|s| s.us);
        crate::trace::tests::captures::found("a.pcap", &plain(&segments)).ports()[0].1
    };
    assert_eq!((unnumbered(30), unnumbered(10)), (30, 40));
    // Sent again is another packet: it has another number.
    let again = [incast(), incast().into_iter().map(|s| Segment { us: s.us + 3, id: s.id + 7, ..s }).collect()].concat();
    let found = crate::trace::tests::captures::found("a.pcap", &plain(&again));
    assert_eq!(found.ports(), [("a to 10.0.0.99".into(), 60)]);
}

#[test]
fn what_was_acknowledged_was_there() {
    let all = connection(10, 1);
    let without = |left_out: &[usize]| {
        let kept: Vec<_> = all.iter().enumerate().filter(|(i, _)| !left_out.contains(i)).map(|(_, s)| *s).collect();
        found("a.pcap", &plain(&kept)).codes()
    };
    assert_eq!(without(&[]), []);
    assert_eq!(without(&[5, 6, 8]), [("acked_unseen", Level::Doubt, 2, Some(3_000))], "two gaps");
    assert_eq!(without(&[12]), [("acked_unseen", Level::Doubt, 1, Some(1_000))], "the last");
    // What was lost on the way and sent again was no fault of the capture.
    let mut again = all.clone();
    again[6] = Segment { us: 7_000, ..again[6] };
    again.sort_by_key(|s| s.us);
    assert_eq!(found("a.pcap", &plain(&again)).codes(), []);
}

#[test]
fn steps_of_the_clock_are_found() {
    let clocked = |jump: u64, from: usize, tick: u32| {
        let segments = connection(10, 1).into_iter().enumerate().map(|(i, s)| {
            let clock = Some((s.us / 1000) as u32 + if i >= from { tick } else { 0 });
            Segment { us: s.us + if i >= from { jump } else { 0 }, clock, ..s }
        });
        found("a.pcap", &plain(&segments.collect::<Vec<_>>())).codes()
    };
    assert_eq!(clocked(0, 5, 0), []);
    assert_eq!(clocked(3_600_000_000, 7, 0), [("clock_forth", Level::Doubt, 1, None)]);
    assert_eq!(clocked(3_600_000_000, 7, 3_600_000), [], "an hour of silence, which the sender's clock shows too");
    let mut back = connection(10_000_000, 1);
    back.iter_mut().skip(8).for_each(|s| s.us -= 5_000_000);
    assert_eq!(found("a.pcap", &plain(&back)).codes(), [("clock_back", Level::Doubt, 1, None)]);
}

/// Frames of several queues stand behind later ones again and again: the clock goes on, and is not said to step.
#[test]
fn local_disorder_is_no_step_of_the_clock() {
    let mut all: Vec<Segment> = (0..2_000).map(|i| up(i * 100, 1).data(1 + i as u32 * 100, 100)).collect();
    for i in (40..1_960).step_by(40) {
        // 3 ms late.
        let late = all.remove(i);
        all.insert(i + 30, late);
    }
    let codes = found("a.pcap", &plain(&all)).codes();
    assert!(
        codes.iter().any(|c| (c.0, c.1) == ("disorder", Level::Note)) && codes.iter().all(|c| c.0 != "clock_back"),
        "{codes:?}"
    );
    // A clock that is set by 50 ms in the midst of a capture stays behind.
    let mut set: Vec<Segment> = (0..2_000).map(|i| up(1_000_000 + i * 100, 1).data(1 + i as u32 * 100, 100)).collect();
    set.iter_mut().skip(1_000).for_each(|s| s.us -= 50_000);
    let codes = found("a.pcap", &plain(&set)).codes();
    assert!(codes.contains(&("clock_back", Level::Doubt, 1, None)) && codes.iter().all(|c| c.0 != "disorder"), "{codes:?}");
}

/// What a loss of power leaves at the end of a file, and a file of nothing but its header.
#[test]
fn zeros_at_the_end_lose_no_packets_and_a_header_alone_is_not_trusted() {
    let whole = plain(&incast());
    let packets = found("a.pcap", &whole).records.len();
    for zeros in [16, 100, 5_000] {
        let found = found("a.pcap", &[whole.clone(), vec![0; zeros]].concat());
        assert_eq!(found.records.len(), packets, "{zeros}");
        let from = format!("from byte {} on the file has zeros in the place of packets", whole.len());
        assert!(found.notes.iter().any(|n| n.contains(&from)), "{zeros}: {:?}", found.notes);
    }
    let folder = Folder::new();
    let path = folder.file("empty.pcap", &whole[..24]);
    let settings = json!({"paths": [path], "rate": "1Gbps"}).to_string();
    let report = analyze(&Options::from_json(&settings).unwrap(), &mut Patient).unwrap();
    assert_eq!((report.plausibility.trust, report.plausibility.findings[0].code), (Trust::Poor, "no_records"));
}

#[test]
fn what_the_capturing_side_lost_and_flows_without_a_beginning() {
    // An enhanced packet block says how many were lost before it; made by hand, for our writer loses none.
    let found = found("a.pcap", &plain(&incast()));
    assert_eq!(found.codes(), [("no_syn", Level::Note, 3, None)]);
    assert_eq!(found.plausibility.trust, Trust::Good);
    // Of a file that is not in order of time, the earliest frame counts.
    let mut backwards = connection(10, 1);
    backwards.reverse();
    let codes = crate::trace::tests::captures::found("a.pcap", &plain(&backwards)).codes();
    assert!(codes.iter().all(|(code, ..)| *code != "no_syn"), "{codes:?}");
    let mut file = CaptureFile::keep("test", "", None);
    file.interface((HostId(0), IpVersion::V4), "eth0", BitRate::from_gbps(10));
    for segment in connection(10, 1) {
        file.frame(0, Time::from_ps(segment.us * 1_000_000), &segment.ethernet(), Direction::In).unwrap();
    }
    file.finish().unwrap();
    let mut bytes = file.kept().to_vec();
    // An interface statistics block: 5 lost.
    let body = [&[0; 12][..], &[5, 0, 8, 0], &5_u64.to_le_bytes(), &[0; 4]].concat();
    let length = (12 + body.len() as u32).to_le_bytes();
    bytes.extend([&5_u32.to_le_bytes()[..], &length, &body, &length].concat());
    assert_eq!(crate::trace::tests::captures::found("a.pcapng", &bytes).codes(), [("lost", Level::Doubt, 5, None)]);
}

#[test]
fn a_report_says_what_was_taken_and_how_far_to_trust_it() {
    let folder = Folder::new();
    let report = |path: &Path, more: Value| {
        let mut settings = json!({"paths": [path], "rate": "10Gbps"});
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let options = Options::from_json(&settings.to_string()).unwrap();
        analyze(&options, &mut Patient).map(|r| serde_json::to_value(r).unwrap()).map_err(|e| e.to_string())
    };
    let path = folder.file("tap.pcap", &plain(&incast()));
    let document = report(&path, json!({})).unwrap();
    assert_eq!(document["sources"][0]["records"], 30);
    assert_eq!(document["sources"][0]["taken"]["streams"][0]["port"], "tap to 10.0.0.99");
    assert_eq!(document["sources"][0]["taken"]["left_out"][0]["packets"], 15);
    assert_eq!(document["plausibility"]["trust"], "good");
    assert_eq!(document["settings"]["to"], json!([]));
    let notes = document["notes"].to_string();
    assert!(notes.contains("taken: to 10.0.0.99 (30 packets"), "{notes}");
    // All at once: more than any such port carries.
    let at_once: Vec<_> = (0..2_000).map(|i| up(0, 1 + (i % 3) as u8).data(1 + 1000 * (i / 3), 1000)).collect();
    let document = report(&folder.file("b.pcap", &plain(&at_once)), json!({})).unwrap();
    assert_eq!(document["plausibility"]["trust"], "limited");
    assert_eq!(document["plausibility"]["findings"][0]["code"], "above_line");
    // Options of captures have no effect on tables.
    let table = folder.file("a.csv", b"time_ns,queue_bytes\n1,2\n");
    let error = report(&table, json!({"to": "10.0.0.1"})).unwrap_err();
    assert!(error.contains("a.csv: to, direction, interface: have no effect: it is no capture"), "{error}");
    // A counter of bytes in the place of the queue.
    let lines: String = (0..300).map(|i| format!("{},{},1000\n", 1000 * i, 1000 * i)).collect();
    let table = folder.file("c.csv", format!("time_ns,queue_bytes,frame_bytes\n{lines}").as_bytes());
    let document = report(&table, json!({})).unwrap();
    assert_eq!(
        (&document["plausibility"]["trust"], &document["plausibility"]["findings"][0]["code"]),
        (&json!("poor"), &json!("cumulative_queue"))
    );
}
