use super::*;

fn segment(payload: u16, ts: bool) -> Packet {
    let mut p = Packet::of_tcp(TcpFlags::ACK, 1, 2, 3, payload);
    if ts {
        p.segment_mut().set_timestamps(Timestamps { value: 7, echo: 8 });
    }
    p
}

fn wire(p: &Packet) -> u32 {
    Framing::ETHERNET.on_wire(Framing::ETHERNET.frame(p.header_bytes() + p.envelope.payload))
}

#[test]
fn a_full_segment_takes_1538_bytes_of_wire_time_with_and_without_timestamps() {
    assert_eq!(wire(&segment(1448, true)), 1538);
    assert_eq!(wire(&segment(1460, false)), 1538);
}

#[test]
fn a_pure_ack_is_padded_to_the_minimum_frame() {
    assert_eq!(wire(&segment(0, false)), 84); // 20 + 20 + 18 = 58 → 64, + 20
    assert_eq!(wire(&segment(0, true)), 90); // 20 + 32 + 18 = 70, + 20
}

#[test]
fn sack_blocks_fit_three_beside_timestamps_and_four_without() {
    for (ts, room) in [(true, 3), (false, 4)] {
        let mut p = *segment(0, ts).header.tcp();
        assert_eq!(p.sack_room(), room);
        let blocks: Vec<SackBlock> = (0..room as u32).map(|i| SackBlock { start: 10 * i, end: 10 * i + 5 }).collect();
        blocks.iter().for_each(|b| p.push_sack(*b));
        assert_eq!(p.sack().collect::<Vec<_>>(), blocks);
        assert_eq!(p.sack_room(), 0);
        assert_eq!(p.timestamps().is_some(), ts);
        assert!(p.option_bytes() <= 40);
    }
}

#[test]
fn syn_options_round_trip_and_take_their_space() {
    let mut p = TcpHeader::default();
    p.set(TcpFlags::SYN, 9, 0, 65_535);
    p.set_timestamps(Timestamps { value: 1, echo: 0 });
    let syn = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
    p.set_syn_options(syn);
    assert_eq!(p.syn_options(), Some(syn));
    assert_eq!(p.sack().count(), 0);
    assert_eq!(p.option_bytes(), 20);
}

#[test]
fn udp_has_its_own_header() {
    let p = Packet::of_udp(3, 1472);
    assert_eq!((p.header.kind(), p.header_bytes(), wire(&p)), (Kind::Datagram, 8, 1538));
    assert_eq!((p.header.number(), p.header.reference(1472)), (3, None));
}

/// RFC 8200 §3: 40 bytes of header; Ethernet's 38 and the payload besides.
#[test]
fn a_header_of_ipv6_is_twenty_bytes_longer() {
    let ethernet = Framing { ip: IpVersion::V6, ..Framing::ETHERNET };
    let on_wire = |p: &Packet| ethernet.on_wire(ethernet.frame(p.header_bytes() + p.envelope.payload));
    assert_eq!((on_wire(&segment(1428, true)), on_wire(&segment(1440, false))), (1538, 1538));
    assert_eq!(on_wire(&segment(0, false)), 98); // 40 + 20 + 18 = 78, no padding, + 20
    assert_eq!((IpVersion::V4.header(), IpVersion::V6.header()), (20, 40));
}

#[test]
fn a_nack_takes_twelve_bytes_of_options_and_the_room_of_sack_blocks() {
    for (timestamps, room) in [(false, 3), (true, 1)] {
        let mut p = TcpHeader::default();
        p.set(TcpFlags::ACK, 1, 2, 3);
        if timestamps {
            p.set_timestamps(Timestamps { value: 8, echo: 9 });
        }
        assert!(p.is_plain() && p.nack().is_none());
        p.set_nack(Nack { seq: u32::MAX, length: 1448 });
        assert_eq!((p.nack(), p.sack_room()), (Some(Nack { seq: u32::MAX, length: 1448 }), room));
        let without = p.option_bytes();
        assert_eq!(without, 12 + if timestamps { 12 } else { 0 });
        let blocks: Vec<SackBlock> = (0..room as u32).map(|i| SackBlock { start: 10 * i, end: 10 * i + 5 }).collect();
        blocks.iter().for_each(|block| p.push_sack(*block));
        assert_eq!(p.sack().collect::<Vec<_>>(), blocks);
        assert_eq!(p.nack().map(|n| n.length), Some(1448));
        assert_eq!(p.option_bytes(), without + 4 + 8 * room as u16);
        assert!(p.option_bytes() <= 40 && p.sack_room() == 0 && !p.is_plain());
        assert_eq!(p.timestamps().is_some(), timestamps);
    }
}

#[test]
fn a_trimmed_packet_keeps_its_headers_and_says_what_it_had() {
    let mut p = Packet::of_tcp(TcpFlags::ACK, 1, 2, 3, 1448);
    p.envelope.frame = 1506;
    p.envelope.trim(64);
    assert!(p.envelope.trimmed && p.header.tcp().is_plain());
    assert_eq!((p.envelope.frame, p.envelope.payload, p.header_bytes(), p.header.tcp().seq), (64, 1448, 20, 1));
    p.segment_mut().set(TcpFlags::ACK, 1, 2, 3, 0);
    assert!(!p.envelope.trimmed, "a new segment in its place is whole");
}

#[test]
fn packets_are_named_to_their_senders_by_what_can_be_sent_again() {
    let name = |flags: TcpFlags, payload| Packet::of_tcp(flags, 77, 5, 6, payload).header.reference(payload);
    let data = |length| Some(Reference { number: 77, length, part: Part::Data });
    assert_eq!(name(TcpFlags::ACK, 1_000), data(1_000));
    assert_eq!(name(TcpFlags::SYN, 0), data(0));
    assert_eq!(name(TcpFlags::ACK.with(TcpFlags::FIN), 0), data(0));
    assert_eq!(name(TcpFlags::ACK, 0), Some(Reference { number: 5, length: 0, part: Part::Acknowledgment }));
    assert_eq!(name(TcpFlags::ACK.with(TcpFlags::RST), 0), None);
}

#[test]
fn a_control_message_is_the_bytes_that_it_was_made_of() {
    let control = Control::new(0xA800, &[1, 2, 3]);
    assert_eq!((control.body(3), control.body(2)), (&[1, 2, 3][..], &[1, 2][..]));
    assert_eq!(control.body(u8::MAX).len(), CONTROL_BODY);
    assert_eq!((Header::Control(control).bytes(), Header::Control(control).kind()), (0, Kind::Control));
}

#[test]
fn plain_segments_are_those_of_open_connections() {
    for flags in 0..=255u8 {
        let mut p = TcpHeader::default();
        p.set(TcpFlags(flags), 1, 2, 3);
        let f = TcpFlags(flags);
        let unusual = [TcpFlags::SYN, TcpFlags::FIN, TcpFlags::RST].iter().any(|flag| f.has(*flag));
        assert_eq!(p.is_plain(), f.has(TcpFlags::ACK) && !unusual);
    }
}

/// Each condition of Linux tcp_gro_receive by itself.
#[test]
fn a_segment_continues_the_one_before_it() {
    let ack = TcpFlags::ACK;
    let with = |flags, seq, number, window, ts: Option<u32>| {
        let mut p = Packet::of_tcp(flags, seq, number, window, 0);
        if let Some(value) = ts {
            p.segment_mut().set_timestamps(Timestamps { value, echo: 0 });
        }
        p.header
    };
    let first = with(ack, u32::MAX - 99, 7, 500, Some(1));
    let next = with(ack, 900, 7, 500, Some(1));
    let follows = |header: Header, payload, earlier: Header| header.continues(payload, (&earlier, 1000));
    assert!(follows(next, 1000, first));
    assert!(follows(next, 1, first), "a shorter one may end it");
    assert!(!follows(next, 0, first) && !follows(next, 1001, first));
    assert!(!follows(with(ack, 901, 7, 500, Some(1)), 1000, first), "a gap");
    assert!(!follows(with(ack, 900, 8, 500, Some(1)), 1000, first), "another acknowledgment");
    assert!(!follows(with(ack, 900, 7, 501, Some(1)), 1000, first), "another window");
    assert!(!follows(with(ack, 900, 7, 500, Some(2)), 1000, first), "another timestamp");
    assert!(!follows(with(ack, 900, 7, 500, None), 1000, first), "other options");
    for last in [TcpFlags::PSH, TcpFlags::FIN] {
        assert!(follows(with(ack.with(last), 900, 7, 500, Some(1)), 1000, first));
        assert!(!follows(next, 1000, with(ack.with(last), u32::MAX - 99, 7, 500, Some(1))));
    }
    assert!(!follows(with(ack.with(TcpFlags::CWR), 900, 7, 500, Some(1)), 1000, first));
    assert!(follows(next, 1000, with(ack.with(TcpFlags::CWR), u32::MAX - 99, 7, 500, Some(1))));
    assert!(!follows(with(ack.with(TcpFlags::ECE), 900, 7, 500, Some(1)), 1000, first));
    assert!(!follows(Header::Udp(UdpHeader { number: 1 }), 1000, Header::Udp(UdpHeader { number: 0 })));
}
