//! RoCEv2 byte for byte, and back.

use fanin_packet::{Ecn, Envelope, Framing, Header, IpVersion, Packet, RoceHeader, RoceOp, Side, Syndrome};
use fanin_units::{FlowId, HostId, TrafficClass};
use fanin_wire::{Framer, Headers, LinkType};
use proptest::prelude::*;

const FLOW: u32 = 4_097;

fn packet(from: u32, to: u32, side: Side, header: RoceHeader, payload: u16) -> Packet {
    let mut p = Packet::of_roce(header, payload);
    let e = &mut p.envelope;
    (e.flow, e.src, e.dst, e.to, e.hash) = (FlowId(FLOW), HostId(from), HostId(to), side, 0x1234_5678 + FLOW);
    p
}

fn frame(mut p: Packet, framing: Framing) -> Vec<u8> {
    p.envelope.frame = framing.frame(p.header_bytes() + p.envelope.payload);
    let mut bytes = Vec::new();
    Framer::new(&framing).unwrap().write(&p, None, &mut bytes);
    assert_eq!(bytes.len() + 4, usize::from(p.envelope.frame));
    bytes
}

fn hex(bytes: &[u8]) -> String {
    let rows = bytes.chunks(16).map(|row| row.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" "));
    rows.collect::<Vec<_>>().join("\n")
}

fn first() -> Packet {
    let header = RoceHeader {
        op: RoceOp::WriteFirst,
        psn: 0xab_cdef,
        reth: true,
        place: 0x1122_3344,
        message: 5_000,
        ..RoceHeader::default()
    };
    let mut p = packet(0, 9, Side::Responder, header, 64);
    (p.envelope.ecn, p.envelope.class, p.envelope.ttl) = (Ecn::Ce, TrafficClass(3), 61);
    p
}

/// The golden bytes, ICRCs with them, were built by scapy 2.8 (contrib.roce) from the same fields.
#[test]
fn golden_frames() {
    let last = RoceHeader { op: RoceOp::WriteLast, psn: 0xab_cdf0, ack_request: true, pad: 3, ..RoceHeader::default() };
    let mut last = packet(0, 9, Side::Responder, last, 5);
    last.envelope.ecn = Ecn::Ect0;
    let ack = RoceHeader { op: RoceOp::Acknowledge, psn: 0xab_cdf0, msn: 1, ..RoceHeader::default() };
    let nak = RoceHeader { op: RoceOp::Acknowledge, psn: 0xab_cdef, syndrome: Syndrome::SequenceError, ..RoceHeader::default() };
    let [ack, nak] = [ack, nak].map(|header| packet(9, 0, Side::Initiator, header, 0));
    let cnp = RoceHeader { op: RoceOp::Notification, ..RoceHeader::default() };
    let mut cnp = packet(9, 0, Side::Initiator, cnp, 0);
    cnp.envelope.class = TrafficClass(6);
    let golden = [
        include_str!("../golden/roce_first.hex"),
        include_str!("../golden/roce_last.hex"),
        include_str!("../golden/roce_ack.hex"),
        include_str!("../golden/roce_nak.hex"),
        include_str!("../golden/roce_cnp.hex"),
    ];
    for (p, golden) in [first(), last, ack, nak, cnp].into_iter().zip(golden) {
        assert_eq!(hex(&frame(p, Framing::ETHERNET)), golden.trim_end());
    }
}

/// What switches may change is not covered: hops, DSCP and ECN; anything else is.
#[test]
fn the_icrc_covers_what_no_switch_changes() {
    for framing in [Framing::ETHERNET, Framing { ip: IpVersion::V6, ..Framing::ETHERNET }] {
        let crc = |p: Packet| frame(p, framing).split_off(14 + usize::from(framing.ip.header()) + 40 + 64 - 4);
        let whole = crc(first());
        let mut changed = first();
        (changed.envelope.ttl, changed.envelope.class, changed.envelope.ecn) = (7, TrafficClass(1), Ecn::Ect0);
        assert_eq!(crc(changed), whole);
        let mut other = first();
        other.envelope.dst = HostId(8);
        assert_ne!(crc(other), whole);
        let Header::Roce(mut header) = first().header else { panic!() };
        header.psn += 1;
        assert_ne!(crc(Packet { header: Header::Roce(header), ..first() }), whole);
    }
}

/// A trimmed packet has its headers, and zeroes where padding and ICRC were.
#[test]
fn a_trimmed_packet_ends_behind_its_headers() {
    let mut p = first();
    let whole = frame(p, Framing::ETHERNET);
    p.envelope.trim(Framing::ETHERNET.frame(p.header_bytes()));
    let mut bytes = Vec::new();
    Framer::new(&Framing::ETHERNET).unwrap().write(&p, None, &mut bytes);
    let headers = 14 + 20 + 8 + 12 + 16;
    assert_eq!((&bytes[..headers], &bytes[headers..]), (&whole[..headers], &[0; 4][..]));
}

proptest! {
    /// Of what a frame carries its reader sees the payload, and none in acknowledgments and notifications.
    #[test]
    fn payload_is_read_back(
        op in prop::sample::select(vec![
            RoceOp::WriteFirst, RoceOp::WriteMiddle, RoceOp::WriteLast, RoceOp::WriteOnly, RoceOp::Acknowledge, RoceOp::Notification,
        ]),
        payload in 1_u16..4_096,
        six in any::<bool>(),
        early in prop::option::of(0_u32..1 << 24),
        psn in 0_u32..1 << 24,
    ) {
        let framing = Framing { ip: if six { IpVersion::V6 } else { IpVersion::V4 }, ..Framing::ETHERNET };
        let payload = if op.is_data() { payload } else { 0 };
        let early = early.filter(|_| op == RoceOp::Acknowledge);
        let pad = RoceHeader::pad_of(payload);
        let p = packet(1, 2, Side::Responder, RoceHeader { op, psn, reth: op.is_first(), pad, early, ..RoceHeader::default() }, payload);
        let bytes = frame(p, framing);
        let headers = Headers::parse(LinkType::Ethernet, &bytes).expect("headers");
        prop_assert_eq!((headers.protocol, headers.payload, headers.ports.map(|(_, to)| to)), (17, u32::from(payload), Some(4_791)));
        // Cut behind UDP's header, only lengths are left.
        let cut = Headers::parse(LinkType::Ethernet, &bytes[..14 + usize::from(framing.ip.header()) + 8]).expect("headers");
        prop_assert_eq!(cut.payload, u32::from(p.header_bytes() + payload - 8));
    }

    /// Bytes of any kind behind port 4791 are no trouble.
    #[test]
    fn anything_may_follow(bytes in prop::collection::vec(any::<u8>(), 0..40), seed in 0_usize..64) {
        let mut frame = frame(first(), Framing::ETHERNET);
        let at = (42 + seed).min(frame.len());
        frame.truncate(at);
        frame.extend(bytes);
        let _ = Headers::parse(LinkType::Ethernet, &frame);
    }
}

/// An envelope says which queue pair a packet goes to: two for each flow.
#[test]
fn each_end_of_a_flow_is_a_queue_pair() {
    let qp = |side, flow| {
        let mut p = first();
        p.envelope = Envelope { to: side, flow: FlowId(flow), ..p.envelope };
        let bytes = frame(p, Framing::ETHERNET);
        u32::from_be_bytes([0, bytes[47], bytes[48], bytes[49]])
    };
    assert_eq!([qp(Side::Initiator, 0), qp(Side::Responder, 0), qp(Side::Initiator, 1)], [2, 3, 4]);
}
