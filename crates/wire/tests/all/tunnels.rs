//! Packets in tunnels and mirrors: the same headers as without, by this crate and by tshark, and nothing that a length field asks for.

use crate::common::{pcap, tcp_frame, Order};
use crate::wrapping::{wrap, Wrapping, ALL, NETWORK};
use fanin_wire::{Capture, Direction, Frame, Headers, LinkType, Tunnel};
use proptest::prelude::*;

/// The same segment over IPv6.
fn tcp6_frame() -> Vec<u8> {
    let mut frame = tcp_frame()[..12].to_vec();
    frame.extend([0x86, 0xdd, 0x6b, 0xa0, 0, 0, 0, 30, 6, 63]);
    frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend(&tcp_frame()[34..]);
    frame
}

fn frame(data: &[u8], length: usize) -> Frame<'_> {
    let link = LinkType::Ethernet;
    Frame { offset: 0, interface: 0, link, time_ps: 0, length: length as u32, data, fcs: None, direction: None }
}

/// A frame in all that it can be wrapped in: what is told apart from plain ones is where it lies.
#[test]
fn the_innermost_packet_is_found_in_every_tunnel() {
    for plain in [tcp_frame(), tcp6_frame()] {
        let expected = Headers::parse(LinkType::Ethernet, &plain).unwrap();
        for wrapping in ALL {
            let (bytes, length) = wrap(wrapping, &plain, plain.len());
            let frame = frame(&bytes, length);
            let found = frame.headers().unwrap_or_else(|| panic!("{wrapping:?}"));
            let shift = bytes.len() - plain.len();
            let wrap = found.wrap.unwrap_or_else(|| panic!("{wrapping:?}: {found:?}"));
            let at = |place: usize| (place + bytes.len()) - plain.len();
            let (end, transport_at, payload_at) = (at(expected.end), at(expected.transport_at), at(expected.payload_at));
            assert_eq!(found, Headers { end, transport_at, payload_at, wrap: Some(wrap), ..expected }, "{wrapping:?} {shift}");
            let (kind, depth, network) = match wrapping {
                Wrapping::Vxlan | Wrapping::Vxlan6 => (Tunnel::Vxlan, 1, Some(NETWORK)),
                Wrapping::Geneve => (Tunnel::Geneve, 1, Some(NETWORK)),
                Wrapping::Gre => (Tunnel::Gre, 1, None),
                Wrapping::GreWithAll | Wrapping::Nvgre => (Tunnel::Gre, 1, Some(NETWORK)),
                Wrapping::Erspan1 | Wrapping::Erspan2 | Wrapping::Erspan3 | Wrapping::Erspan3Long => (Tunnel::Erspan, 1, None),
                Wrapping::Mpls | Wrapping::MplsWord | Wrapping::MplsBare => (Tunnel::Mpls, 1, Some(NETWORK)),
                Wrapping::IpInIp | Wrapping::IpInIp6 => (Tunnel::IpInIp, 1, None),
                Wrapping::Pppoe => (Tunnel::Pppoe, 1, None),
                Wrapping::Nested => (Tunnel::Mpls, 3, Some(NETWORK)),
            };
            assert_eq!((wrap.kind, wrap.depth, wrap.network), (kind, depth, network), "{wrapping:?}");
            let mirror = wrap.mirror.map(|mirror| (mirror.at, mirror.length, mirror.session, mirror.direction));
            let mirrored = Some((Some(shift as u32), plain.len() as u32));
            let of = |session, direction| mirrored.map(|(at, length)| (at, length, session, direction));
            let expected = match wrapping {
                Wrapping::Erspan1 => of(None, None),
                Wrapping::Erspan2 => of(Some(0x102), None),
                Wrapping::Erspan3 => of(Some(0x102), Some(Direction::Out)),
                Wrapping::Erspan3Long => of(Some(0x102), Some(Direction::In)),
                _ => None,
            };
            assert_eq!(mirror, expected, "{wrapping:?}");
        }
    }
}

#[test]
fn the_tunnel_itself_stays_in_reach_and_its_mark_counts() {
    let (mut bytes, length) = wrap(Wrapping::Vxlan, &tcp_frame(), tcp_frame().len());
    assert_eq!(frame(&bytes, length).headers().unwrap().ecn, 2);
    bytes[15] |= 3;
    let outer = frame(&bytes, length).outer_headers().unwrap();
    assert_eq!((outer.dst.to_string(), outer.ports, outer.wrap), ("192.0.2.2".into(), Some((50_000, 4789)), None));
    assert_eq!(frame(&bytes, length).headers().unwrap().ecn, 3, "switches mark what they see");
    // What a switch mirrors has its own headers; those of the mirror are another network's.
    let (mut bytes, length) = wrap(Wrapping::Erspan2, &tcp_frame(), tcp_frame().len());
    bytes[15] |= 3;
    assert_eq!(frame(&bytes, length).headers().unwrap().ecn, 2);
}

#[test]
fn a_mirror_that_cuts_frames_keeps_their_length() {
    let mut plain = tcp_frame();
    plain[16..18].copy_from_slice(&1_500_u16.to_be_bytes());
    let (bytes, length) = wrap(Wrapping::Erspan2, &plain, plain.len());
    let headers = frame(&bytes, length).headers().unwrap();
    assert_eq!((headers.wrap.unwrap().mirror.unwrap().length, headers.payload), (1_514, 1_460));
    // A tunnel does not cut: what is longer inside than outside is none.
    let (bytes, length) = wrap(Wrapping::Vxlan, &plain, plain.len());
    let headers = frame(&bytes, length).headers().unwrap();
    assert_eq!((headers.wrap, headers.protocol), (None, 17));
}

#[test]
fn what_is_cut_inside_a_tunnel_is_known_to_be() {
    for wrapping in ALL {
        let (bytes, length) = wrap(wrapping, &tcp_frame(), tcp_frame().len());
        let whole = frame(&bytes, length).headers().unwrap();
        for kept in 0..bytes.len() {
            let Some(headers) = frame(&bytes[..kept], length).headers() else { continue };
            let all = headers.ports == whole.ports && headers.src == whole.src;
            // That UDP carries a tunnel is known by its port.
            let said = headers.inner_cut || headers.protocol == 17 && headers.ports.is_none();
            assert!(all || said || headers.src == whole.src, "{wrapping:?} {kept}: {headers:?}");
            assert!(!(all && headers.tcp.is_some() && headers.inner_cut), "{wrapping:?} {kept}");
        }
    }
}

#[test]
fn packets_are_unpacked_eight_times_at_most() {
    let mut bytes = tcp_frame();
    for depth in 1..=12 {
        let length = bytes.len();
        bytes = wrap(Wrapping::IpInIp, &bytes, length).0;
        let headers = frame(&bytes, bytes.len()).headers().unwrap();
        assert_eq!((headers.wrap.unwrap().depth, headers.protocol), (depth.min(8), if depth > 8 { 4 } else { 6 }));
    }
    // Labels without end.
    let mut labels = [&[2; 12][..], &[0x88, 0x47]].concat();
    labels.extend([0, 0, 0x10, 0].repeat(10_000));
    assert_eq!(Headers::parse(LinkType::Ethernet, &labels), None);
}

/// What tshark finds innermost is what is found here.
#[test]
fn tshark_finds_the_same_packet() {
    let frames: Vec<Vec<u8>> =
        [tcp_frame(), tcp6_frame()].iter().flat_map(|plain| ALL.map(|wrapping| wrap(wrapping, plain, plain.len()).0)).collect();
    let records: Vec<(u32, u32, u32, &[u8])> = frames.iter().map(|f| (1, 0, f.len() as u32, f.as_slice())).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tunnels.pcap");
    std::fs::write(&path, pcap(Order::Little, 0xa1b2_c3d4, 1, &records)).unwrap();
    let mut tshark = std::process::Command::new("tshark");
    // Linux' own port for VXLAN, and Ethernet over MPLS by its control word, are settings there.
    tshark.arg("-r").arg(&path).args(["-d", "udp.port==8472,vxlan", "-T", "fields", "-E", "aggregator=,"]);
    for field in ["frame.protocols", "ip.src", "ipv6.src", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "erspan.spanid"] {
        tshark.args(["-e", field]);
    }
    let Ok(output) = tshark.output() else { return println!("tshark is not installed") };
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    let file = std::fs::read(&path).unwrap();
    let mut capture = Capture::new(&file[..]).unwrap();
    let (mut rows, mut compared) = (text.lines(), 0);
    while let Some(frame) = capture.next_frame().unwrap() {
        let row: Vec<&str> = rows.next().expect("a row for each frame").split('\t').collect();
        let headers = frame.headers().unwrap();
        // It takes Ethernet over MPLS for what its settings say.
        if !row[0].ends_with("tcp") && !row[0].contains(":tcp:") {
            assert!(row[0].contains("mpls"), "{row:?}");
            continue;
        }
        let last = |at: usize| row[at].rsplit(',').next().unwrap_or_default().to_string();
        let source = if headers.src.is_ipv4() { last(1) } else { last(2) };
        let (from, to) = headers.ports.unwrap();
        let seq = headers.tcp.unwrap().seq;
        let expected = (headers.src.to_string(), from.to_string(), to.to_string(), seq.to_string());
        assert_eq!((source, last(3), last(4), last(5)), expected, "{row:?}");
        let session = headers.wrap.and_then(|wrap| wrap.mirror?.session).map_or(String::new(), |session| session.to_string());
        assert_eq!(row[6], session, "{row:?}");
        compared += 1;
    }
    assert!(compared >= 2 * ALL.len() - 4, "{compared}");
}

proptest! {
    /// Damaged tunnels: no panic, nothing beyond the frame, and headers that lie in order.
    #[test]
    fn damaged_tunnels_are_read_or_not(
        which in 0..ALL.len(), v6: bool, hits in prop::collection::vec((0..160_usize, any::<u8>()), 0..6), kept in 0..220_usize, more in 0..3_usize,
    ) {
        let plain = if v6 { tcp6_frame() } else { tcp_frame() };
        let (mut bytes, length) = wrap(ALL[which], &plain, plain.len());
        for (at, byte) in hits {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(kept.max(1));
        let length = length.max(bytes.len()) + more * 700;
        if let Some(headers) = frame(&bytes, length).headers() {
            prop_assert!(headers.transport_at <= headers.payload_at && headers.transport_at <= headers.end);
            if let Some(wrap) = headers.wrap {
                prop_assert!(wrap.depth <= 8 && headers.transport_at <= bytes.len());
                prop_assert!(wrap.mirror.is_none_or(|mirror| mirror.length <= 66_000 + length as u32));
                prop_assert!(frame(&bytes, length).outer_headers().is_some() || matches!(wrap.kind, Tunnel::Mpls | Tunnel::Pppoe));
            }
        }
    }
}
