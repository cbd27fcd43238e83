use super::*;

fn segment(payload: u16, ts: bool) -> Packet {
    let mut p = Packet::default();
    p.set_tcp(TcpFlags::ACK, 1, 2, 3, payload);
    if ts {
        p.set_timestamps(Timestamps { value: 7, echo: 8 });
    }
    p
}

fn wire(p: &Packet) -> u32 {
    Framing::ETHERNET.on_wire(Framing::ETHERNET.frame(p.transport_header() + p.payload))
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
        let mut p = segment(0, ts);
        assert_eq!(p.sack_room(), room);
        let blocks: Vec<SackBlock> = (0..room as u32).map(|i| SackBlock { start: 10 * i, end: 10 * i + 5 }).collect();
        blocks.iter().for_each(|b| p.push_sack(*b));
        assert_eq!(p.sack().collect::<Vec<_>>(), blocks);
        assert_eq!(p.sack_room(), 0);
        assert_eq!(p.timestamps().is_some(), ts);
        assert!(p.tcp_option_bytes() <= 40);
    }
}

#[test]
fn syn_options_round_trip_and_take_their_space() {
    let mut p = Packet::default();
    p.set_tcp(TcpFlags::SYN, 9, 0, 65_535, 0);
    p.set_timestamps(Timestamps { value: 1, echo: 0 });
    let syn = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
    p.set_syn_options(syn);
    assert_eq!(p.syn_options(), Some(syn));
    assert_eq!(p.sack().count(), 0);
    assert_eq!(p.tcp_option_bytes(), 20);
}

#[test]
fn udp_has_its_own_header() {
    let mut p = Packet::default();
    p.set_udp(3, 1472);
    assert_eq!((p.protocol(), p.transport_header(), wire(&p)), (Protocol::Udp, 8, 1538));
}

/// RFC 8200 §3: 40 bytes of header; Ethernet's 38 and the payload besides.
#[test]
fn a_header_of_ipv6_is_twenty_bytes_longer() {
    let ethernet = Framing { ip: IpVersion::V6, ..Framing::ETHERNET };
    let on_wire = |p: &Packet| ethernet.on_wire(ethernet.frame(p.transport_header() + p.payload));
    assert_eq!((on_wire(&segment(1428, true)), on_wire(&segment(1440, false))), (1538, 1538));
    assert_eq!(on_wire(&segment(0, false)), 98); // 40 + 20 + 18 = 78, no padding, + 20
    assert_eq!((IpVersion::V4.header(), IpVersion::V6.header()), (20, 40));
    assert_eq!((IpVersion::V4.notice(), IpVersion::V6.notice()), (20, 44));
}
