//! Frames byte for byte, and back.

use fanin_packet::{
    Control, Ecn, Envelope, Framing, Header, IpVersion, Kind, Nack, Packet, SackBlock, Side, SynOptions, TcpFlags, Timestamps,
};
use fanin_telemetry::Stamp;
use fanin_units::{BitRate, FlowId, HostId, Time, TrafficClass};
use fanin_wire::{address, Capture, Direction, Encoder, Framer, Headers, LinkType, NotEthernet};
use proptest::prelude::*;

const ETHERNET6: Framing = Framing { ip: IpVersion::V6, ..Framing::ETHERNET };
const TAGGED: Framing = Framing { header: 22, ..Framing::ETHERNET };

/// As hosts do: the frame's length follows from what it holds, and from the room that is left for a stamp.
fn sized(mut p: Packet, framing: Framing, stamp: bool) -> Packet {
    let room = if stamp { Stamp::BYTES as u16 } else { 0 };
    p.envelope.frame = framing.frame(p.header_bytes() + p.envelope.payload + room);
    p
}

fn bytes(p: &Packet, src: u32, framing: Framing, stamp: Option<Stamp>) -> Vec<u8> {
    let mut bytes = vec![1, 2, 3];
    let envelope = Envelope { src: HostId(src), ..p.envelope };
    Framer::new(&framing).unwrap().write(&Packet { envelope, ..*p }, stamp, &mut bytes);
    assert_eq!(bytes.len() + 4, usize::from(p.envelope.frame));
    bytes
}

fn hex(bytes: &[u8]) -> String {
    let rows = bytes.chunks(16).map(|row| row.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" "));
    rows.collect::<Vec<_>>().join("\n")
}

/// Sum of 16-bit words in ones' complement; 0xffff over anything with its checksum. Source: RFC 1071 §1.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Checks the checksums of IP and of the transport, `ip` bytes into a frame. Source: RFC 8200 §8.1 for the pseudo-header of IPv6.
fn assert_checksums(frame: &[u8], ip: usize) {
    if frame[ip] >> 4 == 6 {
        let length = u16::from_be_bytes([frame[ip + 4], frame[ip + 5]]);
        let segment = &frame[ip + 40..][..usize::from(length)];
        let pseudo = [&frame[ip + 8..ip + 40], &[0, 0], &length.to_be_bytes(), &[0, 0, 0, frame[ip + 6]], segment].concat();
        assert_eq!(sum(&pseudo), 0xffff, "transport");
        // RFC 8200 §8.1: a datagram without checksum is none.
        assert!(frame[ip + 6] != 17 || frame[ip + 46..ip + 48] != [0, 0]);
        return;
    }
    let total = usize::from(u16::from_be_bytes([frame[ip + 2], frame[ip + 3]]));
    assert_eq!(sum(&frame[ip..ip + 20]), 0xffff, "IP");
    let segment = &frame[ip + 20..ip + total];
    let pseudo = [&frame[ip + 12..ip + 20], &[0, frame[ip + 9]], &(segment.len() as u16).to_be_bytes(), segment].concat();
    assert_eq!(sum(&pseudo), 0xffff, "transport");
}

fn base(dst: u32, to: Side, flow: u32) -> Packet {
    let mut p = Packet::default();
    let e = &mut p.envelope;
    (e.flow, e.dst, e.to, e.ttl) = (FlowId(flow), HostId(dst), to, 64);
    e.hash = 0x1234_5678_u32.wrapping_add(flow);
    p
}

fn set_udp(p: &mut Packet, number: u32, payload: u16) {
    let udp = Packet::of_udp(number, payload);
    (p.header, p.envelope.kind, p.envelope.payload) = (udp.header, udp.envelope.kind, payload);
}

/// The golden bytes were built by scapy 2.8 from the same fields.
#[test]
fn golden_frames() {
    let ethernet = Framing::ETHERNET;
    let golden = [
        include_str!("../golden/syn.hex"),
        include_str!("../golden/data.hex"),
        include_str!("../golden/ack.hex"),
        include_str!("../golden/udp.hex"),
    ];
    assert_golden(ethernet, golden);
}

/// The same packets in IPv6.
#[test]
fn golden_frames_of_ipv6() {
    let golden = [
        include_str!("../golden/syn6.hex"),
        include_str!("../golden/data6.hex"),
        include_str!("../golden/ack6.hex"),
        include_str!("../golden/udp6.hex"),
    ];
    assert_golden(ETHERNET6, golden);
}

fn assert_golden(ethernet: Framing, golden: [&str; 4]) {
    let mut syn = base(9, Side::Responder, 4097);
    syn.segment_mut().set(TcpFlags::SYN.with(TcpFlags::ECE).with(TcpFlags::CWR), 0, 99, 65_535, 0);
    syn.segment_mut().set_timestamps(Timestamps { value: 0x0102_0304, echo: 0 });
    syn.segment_mut().set_syn_options(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true });
    let syn = bytes(&sized(syn, ethernet, false), 0, ethernet, None);

    let mut data = base(9, Side::Responder, 4097);
    data.segment_mut().set(TcpFlags::ACK.with(TcpFlags::PSH), 1, 1, 502, 20);
    data.segment_mut().set_timestamps(Timestamps { value: 5, echo: 6 });
    (data.envelope.ecn, data.envelope.class, data.envelope.ttl) = (Ecn::Ce, TrafficClass(3), 61);
    let stamp = Stamp { port: 2, length: 0x1234, time: 0xdead_beef };
    let data = bytes(&sized(data, ethernet, true), 0, ethernet, Some(stamp));

    let mut ack = base(0, Side::Initiator, 4097);
    ack.segment_mut().set(TcpFlags::ACK.with(TcpFlags::ECE), 1, 21, 501, 0);
    ack.segment_mut().set_timestamps(Timestamps { value: 8, echo: 5 });
    ack.segment_mut().push_sack(SackBlock { start: 1469, end: 2917 });
    ack.segment_mut().push_sack(SackBlock { start: 4365, end: 5813 });
    ack.envelope.ecn = Ecn::Ect0;
    let ack = bytes(&sized(ack, ethernet, false), 9, ethernet, None);

    let mut udp = base(300, Side::Responder, 5);
    set_udp(&mut udp, 65_538, 3);
    let udp = bytes(&sized(udp, ethernet, true), 0, ethernet, Some(Stamp::EMPTY));

    for (frame, golden) in [syn, data, ack, udp].into_iter().zip(golden) {
        assert_checksums(&frame, 14);
        assert_eq!(hex(&frame), golden.trim_end());
    }
}

/// RFC 6437 §2: a label is uniform in 1 to 0xFFFFF and the same for all packets of a flow in one direction.
#[test]
fn flows_have_labels() {
    let label = |hash, seq| {
        let mut p = base(1, Side::Responder, 0);
        p.segment_mut().set(TcpFlags::ACK, seq, 1, 1, 10);
        p.envelope.hash = hash;
        let frame = bytes(&sized(p, ETHERNET6, false), 0, ETHERNET6, None);
        u32::from_be_bytes([0, frame[15] & 15, frame[16], frame[17]])
    };
    assert_eq!(label(77, 1), label(77, 2));
    assert_eq!([0, 1, 0xf_fffe, 0xf_ffff, u32::MAX].map(|hash| label(hash, 1)), [1, 2, 0xf_ffff, 1, 4096]);
}

/// The same for a packet whose payload of 1000 B a switch has cut off, with the checksum that it had, and for the NACK of it.
#[test]
fn golden_frames_of_trimming() {
    for (ethernet, frame, golden) in [
        (Framing::ETHERNET, 64, [include_str!("../golden/trimmed.hex"), include_str!("../golden/nack.hex")]),
        (ETHERNET6, 78, [include_str!("../golden/trimmed6.hex"), include_str!("../golden/nack6.hex")]),
    ] {
        let mut trimmed = base(9, Side::Responder, 4097);
        trimmed.segment_mut().set(TcpFlags::ACK.with(TcpFlags::PSH), 70_001, 1, 502, 1000);
        (trimmed.envelope.ecn, trimmed.envelope.class, trimmed.envelope.ttl) = (Ecn::Ce, TrafficClass(3), 62);
        trimmed.envelope.trim(frame);
        let trimmed = bytes(&trimmed, 0, ethernet, None);
        let headers = 14 + usize::from(ethernet.ip.header()) + 20;
        assert_checksums(&[&trimmed[..headers], &[0; 1000]].concat(), 14);

        let mut nack = base(0, Side::Initiator, 4097);
        nack.segment_mut().set(TcpFlags::ACK, 1, 60_001, 501, 0);
        nack.segment_mut().set_timestamps(Timestamps { value: 8, echo: 5 });
        nack.segment_mut().set_nack(Nack { seq: 70_001, length: 1000 });
        nack.segment_mut().push_sack(SackBlock { start: 61_001, end: 62_001 });
        let nack = bytes(&sized(nack, ethernet, false), 9, ethernet, None);
        assert_checksums(&nack, 14);
        assert_eq!([hex(&trimmed), hex(&nack)], golden.map(str::trim_end));
    }
}

#[test]
fn a_framing_of_22_bytes_has_a_priority_tag() {
    let mut p = base(1, Side::Responder, 0);
    p.segment_mut().set(TcpFlags::ACK, 1, 1, 1, 0);
    p.envelope.class = TrafficClass(5);
    let frame = bytes(&sized(p, TAGGED, false), 0, TAGGED, None);
    assert_eq!(frame[12..18], [0x81, 0x00, 5 << 5, 0, 0x08, 0x00]);
    assert_checksums(&frame, 18);
    let headers = Headers::parse(LinkType::Ethernet, &frame).unwrap();
    assert_eq!((headers.vlan, headers.dscp, headers.payload), (Some(0), 40, 0));
}

/// A message alone in its frame is the end of it, and a drop notification reads back.
#[test]
fn a_control_message_has_a_frame_of_its_own() {
    for (framing, tag) in [(Framing::ETHERNET, &[][..]), (TAGGED, &[0x81, 0, 0, 0][..])] {
        let mut p = base(1, Side::Initiator, 0);
        let body: Vec<u8> = (0..18).chain([1, 2]).collect();
        p.header = Header::Control(Control::new(0xA800, &body));
        (p.envelope.kind, p.envelope.header, p.envelope.frame) = (Kind::Control, 20, 68);
        let mut frame = bytes(&p, 7, framing, None);
        assert_eq!(frame[..12], [address::mac(HostId(1)), address::SWITCH_MAC].concat());
        assert_eq!(frame[12..14 + tag.len()], [tag, &[0xA8, 0x00]].concat());
        assert!(frame[14 + tag.len()..44].iter().all(|byte| *byte == 0) && frame[44..] == body);
        let notice = fanin_wire::notification::detach(&mut frame).unwrap().unwrap();
        assert_eq!((notice.length, notice.operation), (0x1011, 2));
    }
}

/// A message to a neighbour begins behind the EtherType, and the padding is behind it; no bridge forwards its address.
#[test]
fn a_message_to_a_neighbour_is_padded_behind_it() {
    for (framing, tag) in [(Framing::ETHERNET, &[][..]), (TAGGED, &[0x81, 0, 0, 0][..])] {
        let mut p = base(1, Side::Initiator, 0);
        p.header = Header::Control(Control::new(0xA8F9, &[1, 63, 0, 2]));
        (p.envelope.kind, p.envelope.header, p.envelope.frame) = (Kind::Control, 4, 68);
        let frame = bytes(&p, 0, framing, None);
        assert_eq!(frame[..12], [[0x01, 0x80, 0xC2, 0, 0, 0x0E], address::SWITCH_MAC].concat());
        assert_eq!(frame[12..18 + tag.len()], [tag, &[0xA8, 0xF9, 1, 63, 0, 2]].concat());
        assert!(frame.len() == 64 && frame[18 + tag.len()..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn other_framings_are_refused() {
    for (header, min_frame) in [(0, 0), (18, 0), (18, 84), (22, 60), (26, 64)] {
        assert_eq!(Framer::new(&Framing { header, min_frame, ..Framing::ETHERNET }), Err(NotEthernet));
    }
    assert!(Framer::new(&Framing { gap: 0, ..Framing::ETHERNET }).is_ok(), "the gap is not in the frame");
}

#[test]
#[should_panic(expected = "a frame of 64 B for 94 B of packet")]
fn a_frame_that_is_too_short_is_a_broken_invariant() {
    let mut p = base(1, Side::Responder, 0);
    p.segment_mut().set(TcpFlags::ACK, 1, 1, 1, 40);
    p.envelope.frame = 64;
    bytes(&p, 0, Framing::ETHERNET, None);
}

#[test]
fn the_largest_packets_have_their_bytes() {
    for framing in [Framing::ETHERNET, ETHERNET6] {
        let mut p = base(1, Side::Responder, 0);
        p.segment_mut().set(TcpFlags::ACK, 1, 1, 1, u16::MAX - 18 - framing.ip.header() - 20 - 8);
        let p = sized(p, framing, true);
        assert_eq!(p.envelope.frame, u16::MAX);
        assert_checksums(&bytes(&p, 0, framing, Some(Stamp::EMPTY)), 14);
    }
}

fn packets() -> impl Strategy<Value = Packet> {
    let fields = (any::<(u32, u32, u32, u32, u16)>(), 0..=7_u8, 1..=255_u8, any::<bool>(), 0..3_u8, 0..9000_u16);
    let options = (any::<Option<(u32, u32)>>(), proptest::collection::vec(any::<(u32, u32)>(), 0..=4), any::<u8>());
    let syn = (any::<u16>(), proptest::option::of(0..=14_u8), any::<bool>());
    let nack = proptest::option::of(any::<(u32, u16)>());
    (fields, options, syn, nack).prop_map(|(fields, (ts, sacks, flags), (mss, window_scale, sack_permitted), nack)| {
        let ((flow, dst, seq, ack, window), class, ttl, initiator, kind, payload) = fields;
        let to = if initiator { Side::Initiator } else { Side::Responder };
        let mut p = base(dst % address::MOST_HOSTS, to, flow);
        (p.envelope.class, p.envelope.ttl) = (TrafficClass(class), ttl);
        p.envelope.ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][usize::from(flags >> 6)];
        if kind == 0 {
            set_udp(&mut p, seq, payload);
            return p;
        }
        let flags = TcpFlags(flags & !TcpFlags::SYN.0 & !0x20);
        let flags = if kind == 1 { flags.with(TcpFlags::SYN) } else { flags };
        p.segment_mut().set(flags, seq, ack, window, payload);
        if let Some((value, echo)) = ts {
            p.segment_mut().set_timestamps(Timestamps { value, echo });
        }
        if kind == 1 {
            p.segment_mut().set_syn_options(SynOptions { mss, window_scale, sack_permitted });
        } else {
            if let Some((seq, length)) = nack {
                p.segment_mut().set_nack(Nack { seq, length });
            }
            for (start, end) in sacks.into_iter().take(p.header.tcp().sack_room()) {
                p.segment_mut().push_sack(SackBlock { start, end });
            }
        }
        p
    })
}

/// Options of a TCP header by kind, without padding.
fn options(header: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = &header[20..];
    while let [kind, tail @ ..] = rest {
        match kind {
            0 => break,
            1 => rest = tail,
            _ => {
                let length = usize::from(tail[0]);
                found.push((*kind, rest[2..length].to_vec()));
                rest = &rest[length..];
            }
        }
    }
    found
}

fn expected_options(p: &Packet) -> Vec<(u8, Vec<u8>)> {
    let p = p.header.tcp();
    let mut expected = Vec::new();
    if let Some(syn) = p.syn_options() {
        expected.push((2, syn.mss.to_be_bytes().to_vec()));
        expected.extend(syn.sack_permitted.then(|| (4, vec![])));
        expected.extend(syn.window_scale.map(|shift| (3, vec![shift])));
    }
    expected.extend(p.timestamps().map(|ts| (8, [ts.value.to_be_bytes(), ts.echo.to_be_bytes()].concat())));
    if let Some(nack) = p.nack() {
        expected.push((253, [&[0x4e, 0x44][..], &nack.seq.to_be_bytes(), &nack.length.to_be_bytes()].concat()));
    }
    if p.sack_len() > 0 {
        expected.push((5, p.sack().flat_map(|b| [b.start.to_be_bytes(), b.end.to_be_bytes()].concat()).collect()));
    }
    expected.sort();
    expected
}

proptest! {
    /// What a packet says is in its bytes, in a capture, and is read back.
    #[test]
    fn round_trip(
        p in packets(), src in 0..address::MOST_HOSTS, stamp: Option<(u8, u16, u32)>,
        (tagged, trimmed, sent, v6) in any::<(bool, bool, bool, bool)>(), ps: u64,
    ) {
        let version = if v6 { IpVersion::V6 } else { IpVersion::V4 };
        let framing = Framing { ip: version, ..if tagged { TAGGED } else { Framing::ETHERNET } };
        let stamp = stamp.map(|(port, length, time)| Stamp { port, length, time });
        let mut p = sized(p, framing, stamp.is_some());
        let mut bare = p;
        bare.envelope.payload = 0;
        let bare = sized(bare, framing, stamp.is_some()).envelope.frame;
        // With a stamp, eight bytes of payload would not be seen to be missing: switches do not trim them.
        let trailer = if stamp.is_some() { Stamp::BYTES as u16 } else { 0 };
        if trimmed && bare + trailer < p.envelope.frame && p.envelope.kind == Kind::Reliable {
            p.envelope.trim(bare);
        }
        let frame = bytes(&p, src, framing, stamp);
        let ip = usize::from(framing.header) - 4;
        let headers_end = ip + usize::from(version.header() + p.header_bytes());
        let mut whole = frame.clone();
        if p.envelope.trimmed {
            whole.truncate(headers_end);
            whole.resize(headers_end + usize::from(p.envelope.payload), 0);
        }
        assert_checksums(&whole, ip);

        let mut file = Vec::new();
        let mut encoder = Encoder(&mut file);
        let direction = if sent { Direction::Out } else { Direction::In };
        encoder.section("fanin", "a test");
        encoder.interface((HostId(src), version), "h", BitRate::from_gbps(10), None);
        encoder.packet(0, Time::from_ps(ps), &frame, None, direction);
        let mut capture = Capture::new(&file[..]).unwrap();
        let back = capture.next_frame().unwrap().unwrap();
        prop_assert_eq!(back.data, &frame[..]);
        prop_assert_eq!((back.time_ps, back.direction), (i128::from(ps / 1000 * 1000), Some(direction)));
        prop_assert_eq!(back.frame_bytes(), u32::from(p.envelope.frame).max(64));

        let headers = back.headers().unwrap();
        prop_assert_eq!(back.stamp(&headers), stamp);
        prop_assert_eq!((back.is_trimmed(&headers), headers.payload_at), (p.envelope.trimmed, headers_end));
        prop_assert_eq!((headers.src, headers.dst), (address::ip(HostId(src), version), address::ip(p.envelope.dst, version)));
        prop_assert_eq!((headers.ecn, headers.dscp, headers.ttl), (p.envelope.ecn as u8, p.envelope.class.0 * 8, p.envelope.ttl));
        prop_assert_eq!((headers.vlan, headers.payload), (tagged.then_some(0), u32::from(p.envelope.payload)));
        let (source, destination) = headers.ports.unwrap();
        let (flow, to) = address::flow(source, destination).unwrap();
        prop_assert_eq!((flow.0, to), (p.envelope.flow.0 % 77_824_000, p.envelope.to));
        match &p.header {
            Header::Roce(_) => unreachable!("tests of their own"),
            Header::Udp(udp) => {
                prop_assert_eq!((headers.protocol, headers.tcp), (17, None));
                prop_assert!(v6 || frame[ip + 4..ip + 6] == (udp.number as u16).to_be_bytes());
            }
            Header::Tcp(sent) => {
                let tcp = headers.tcp.unwrap();
                let ack = if sent.flags.has(TcpFlags::ACK) { sent.ack } else { 0 };
                prop_assert_eq!((headers.protocol, tcp.seq, tcp.ack), (6, sent.seq, ack));
                prop_assert_eq!((tcp.flags, tcp.window), (sent.flags.0, sent.window));
                let mut found = options(&frame[ip + usize::from(version.header())..][..usize::from(p.header_bytes())]);
                found.sort();
                prop_assert_eq!(found, expected_options(&p));
            }
            Header::Control(_) => unreachable!("no strategy makes one"),
        }
    }
}

#[test]
fn interfaces_are_described_and_frames_cut() {
    let mut file = Vec::new();
    let mut encoder = Encoder(&mut file);
    encoder.section("fanin", &"ä".repeat(40_000)); // longer than an option may be
    encoder.interface((HostId(3), IpVersion::V4), "leaf0-h3", BitRate::from_gbps(400), Some(5));
    encoder.packet(0, Time::from_ps(1), &[1, 2, 3, 4, 5, 6, 7, 8], Some(5), Direction::In);
    let mut capture = Capture::new(&file[..]).unwrap();
    let frame = capture.next_frame().unwrap().unwrap();
    assert_eq!((frame.data, frame.length, frame.is_cut(), frame.fcs), (&[1, 2, 3, 4, 5][..], 8, true, Some(0)));
    let interface = &capture.interfaces()[0];
    assert_eq!((interface.name.as_str(), interface.speed), ("leaf0-h3", Some(400_000_000_000)));
}
