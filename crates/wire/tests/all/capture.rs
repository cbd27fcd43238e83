//! Reading well-formed captures of all kinds, and what is said of others.

use crate::common::{block, framed, interface, option, other_frames, packet, pcap, section, tcp_frame, Order};
use fanin_telemetry::Stamp;
use fanin_wire::{Capture, CaptureError, Direction, Format, Frame, Headers, LinkType, Skipped, Trouble};
use std::io::Read;

/// What a test looks at in a frame.
#[derive(Debug, PartialEq)]
struct Seen {
    interface: usize,
    time_ps: i128,
    length: u32,
    data: Vec<u8>,
}

impl From<Frame<'_>> for Seen {
    fn from(frame: Frame<'_>) -> Self {
        Seen { interface: frame.interface, time_ps: frame.time_ps, length: frame.length, data: frame.data.to_vec() }
    }
}

fn read(file: &[u8]) -> Result<Vec<Seen>, CaptureError> {
    let mut capture = Capture::new(file)?;
    let mut seen = Vec::new();
    while let Some(frame) = capture.next_frame()? {
        seen.push(frame.into());
    }
    Ok(seen)
}

fn seen(interface: usize, time_ps: i128, length: u32, data: &[u8]) -> Seen {
    Seen { interface, time_ps, length, data: data.to_vec() }
}

#[test]
fn pcap_in_both_orders_with_microseconds_and_nanoseconds() {
    for order in [Order::Little, Order::Big] {
        for (magic, unit) in [(0xa1b2_c3d4, 1_000_000), (0xa1b2_3c4d, 1_000)] {
            let file = pcap(order, magic, 1, &[(7, 999, 4, &[1, 2, 3, 4]), (1_700_000_000, 1, 9, &[5]), (8, 0, 0, &[])]);
            let second = 1_000_000_000_000;
            let expected = [
                seen(0, 7 * second + 999 * unit, 4, &[1, 2, 3, 4]),
                seen(0, 1_700_000_000 * second + unit, 9, &[5]),
                seen(0, 8 * second, 0, &[]),
            ];
            assert_eq!(read(&file).unwrap(), expected, "{order:?} {magic:x}");
            assert_eq!(Capture::new(&file[..]).unwrap().format(), Format::Pcap);
        }
    }
}

#[test]
fn pcapng_with_sections_of_both_orders_and_an_interface_each() {
    let (le, be) = (Order::Little, Order::Big);
    let file = [
        section(le),
        interface(le, 1, &[option(le, 2, b"eth0"), option(le, 8, &le.u64(25_000_000_000)), option(le, 9, &[9])]),
        interface(le, 1, &[option(le, 9, &[12])]),
        packet(le, 1, 5 << 32 | 3, 3, &[1, 2, 3], &[]),
        packet(le, 0, 77, 60, &[9; 6], &[option(le, 2, &le.u32(2 | 4 << 5))]),
        section(be),
        interface(be, 101, &[option(be, 2, b"ib0"), option(be, 8, &be.u64(100_000_000_000)), option(be, 14, &be.u64(10))]),
        packet(be, 0, 2_000_000, 1, &[4], &[option(be, 2, &be.u32(1))]),
    ]
    .concat();
    let mut capture = Capture::new(&file[..]).unwrap();
    assert_eq!(capture.format(), Format::PcapNg);
    let first = capture.next_frame().unwrap().unwrap();
    assert_eq!((first.offset, first.direction, first.fcs), (28 + 52 + 32, None, None));
    assert_eq!(Seen::from(first), seen(1, (5 << 32) + 3, 3, &[1, 2, 3]));
    let second = capture.next_frame().unwrap().unwrap();
    assert_eq!((second.direction, second.fcs, second.is_cut()), (Some(Direction::Out), Some(4), true));
    assert_eq!(Seen::from(second), seen(0, 77_000, 60, &[9; 6]));
    let third = capture.next_frame().unwrap().unwrap();
    assert_eq!((third.direction, third.link), (Some(Direction::In), LinkType::Raw));
    assert_eq!(Seen::from(third), seen(2, 12_000_000_000_000, 1, &[4]));
    assert!(capture.next_frame().unwrap().is_none());
    let described: Vec<(&str, Option<u64>)> = capture.interfaces().iter().map(|i| (i.name.as_str(), i.speed)).collect();
    assert_eq!(described, [("eth0", Some(25_000_000_000)), ("", None), ("ib0", Some(100_000_000_000))]);
    assert_eq!(capture.skipped(), Skipped::default());
}

#[test]
fn time_resolutions_of_all_kinds() {
    let le = Order::Little;
    let ticks: u64 = 3_000_000_000_000_000_007;
    for (resolution, ps) in [
        (0, i128::from(ticks) * 1_000_000_000_000),
        (6, i128::from(ticks) * 1_000_000),
        (12, i128::from(ticks)),
        (15, i128::from(ticks) / 1000),
        (31, 0),
        (127, 0),
        (0x80, i128::from(ticks) * 1_000_000_000_000),
        (0x80 | 10, i128::from(ticks) * 1_000_000_000_000 / 1024),
        (0xff, 0),
    ] {
        for offset in [0_i64, 1, -1, i64::MIN, i64::MAX] {
            let options = [option(le, 9, &[resolution]), option(le, 14, &le.u64(offset as u64))];
            let file = [section(le), interface(le, 1, &options), packet(le, 0, ticks, 0, &[], &[])].concat();
            let expected = ps + i128::from(offset) * 1_000_000_000_000;
            assert_eq!(read(&file).unwrap(), [seen(0, expected, 0, &[])], "{resolution} {offset}");
        }
    }
}

#[test]
fn other_blocks_are_passed_over_and_losses_counted() {
    for order in [Order::Little, Order::Big] {
        let old_packet = {
            let mut body = [order.u16(0), order.u16(3)].concat();
            for n in [0, 5, 2, 8] {
                body.extend(order.u32(n));
            }
            body.extend([6, 7, 0, 0]);
            block(order, 2, &body)
        };
        let lost = |n: u64| {
            let body = [&order.u32(0)[..], &[0; 8], &option(order, 5, &order.u64(n)), &option(order, 7, &order.u64(1))].concat();
            block(order, 5, &body)
        };
        let file = [
            section(order),
            block(order, 0x8000_0001, &[0; 40]),
            interface(order, 1, &[]),
            block(order, 4, &[1, 0, 8, 0, 10, 0, 0, 1, b'a', b'b', b'c', 0]),
            block(order, 3, &[&order.u32(2)[..], &[1, 2, 0, 0]].concat()),
            old_packet,
            lost(4),
            lost(9),
            packet(order, 0, 6, 1, &[8], &[option(order, 4, &order.u64(2))]),
        ]
        .concat();
        let mut capture = Capture::new(&file[..]).unwrap();
        assert_eq!(Seen::from(capture.next_frame().unwrap().unwrap()), seen(0, 5_000_000, 8, &[6, 7]));
        assert_eq!(Seen::from(capture.next_frame().unwrap().unwrap()), seen(0, 6_000_000, 1, &[8]));
        assert!(capture.next_frame().unwrap().is_none());
        assert_eq!(capture.skipped(), Skipped { blocks: 2, untimed: 1 });
        assert_eq!(capture.interfaces()[0].lost, 10 + 2);
    }
}

fn error(file: &[u8]) -> (Trouble, String) {
    let error = read(file).unwrap_err();
    (error.trouble, error.to_string())
}

#[test]
fn what_is_no_capture_is_named() {
    let cases: [(&[u8], Trouble, &str); 10] = [
        (b"", Trouble::Unsupported, "block 1 at byte 0: the file is empty"),
        (b"\x0a\x0d", Trouble::Truncated, "block 1 at byte 0: the file ends after 2 of 4 bytes"),
        (b"\x1f\x8b\x08\x00", Trouble::Unsupported, "block 1 at byte 0: it is compressed with gzip: unpack it first"),
        (b"PAR1....", Trouble::Unsupported, "block 1 at byte 0: it is a Parquet file"),
        (b"time,queue\n", Trouble::Unsupported, "block 1 at byte 0: neither pcap nor pcapng: the file begins with 74 69 6d 65"),
        (
            &pcap(Order::Big, 0xa1b2_cd34, 1, &[]),
            Trouble::Unsupported,
            "block 1 at byte 0: it is a pcap file of the modified format: convert it to pcapng, for example with editcap",
        ),
        (
            &[0xd4, 0xc3, 0xb2, 0xa1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            Trouble::Unsupported,
            "block 1 at byte 0: pcap of version 1.0; 2 is read",
        ),
        (&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0], Trouble::Truncated, "block 1 at byte 0: the file ends after 6 of 24 bytes"),
        (
            &block(Order::Little, 0x0a0d_0d0a, &[0; 16]),
            Trouble::Malformed,
            "block 1 at byte 0: a section header without a byte-order magic",
        ),
        (&section(Order::Big)[..27], Trouble::Truncated, "block 1 at byte 0: the file ends after 27 of 28 bytes"),
    ];
    for (file, trouble, message) in cases {
        assert_eq!(error(file), (trouble, message.to_string()));
    }
}

#[test]
fn damage_is_named_with_its_place() {
    let le = Order::Little;
    let start = [section(le), interface(le, 1, &[])].concat();
    let with = |bytes: &[u8]| [&start, bytes].concat();
    let mut mismatch = packet(le, 0, 0, 4, &[1, 2, 3, 4], &[]);
    mismatch[36 - 4] = 44;
    let mut long = packet(le, 0, 0, 4, &[1, 2, 3, 4], &[]);
    long[20] = 5;
    let mut huge = packet(le, 0, 0, 4, &[1, 2, 3, 4], &[]);
    huge[20..24].fill(0xff);
    let at = "block 3 at byte 48: ";
    let cases: [(Vec<u8>, Trouble, &str); 11] = [
        (with(&block(le, 99, &[])[..11]), Trouble::Truncated, "the file ends after 11 of 12 bytes"),
        (
            with(&[6, 0, 0, 0, 8, 0, 0, 0]),
            Trouble::Malformed,
            "a block of type 0x6 with a length of 8 B; at least 12 B, a multiple of 4",
        ),
        (
            with(&[6, 0, 0, 0, 33, 0, 0, 0]),
            Trouble::Malformed,
            "a block of type 0x6 with a length of 33 B; at least 12 B, a multiple of 4",
        ),
        (with(&[6, 0, 0, 0, 0, 0, 0, 1, 9]), Trouble::Truncated, "the file ends after 9 of 16777216 bytes"),
        (
            with(&[6, 0, 0, 0, 0, 0, 0, 2, 9]),
            Trouble::Malformed,
            "a enhanced packet block of 33554432 B; at most 16777216 B are read",
        ),
        (with(&mismatch), Trouble::Malformed, "a enhanced packet block of 36 B whose end says 44 B"),
        (with(&long), Trouble::Malformed, "a enhanced packet block cannot be decoded: its fields do not fit its length"),
        (with(&huge), Trouble::Malformed, "a enhanced packet block cannot be decoded: its fields do not fit its length"),
        (with(&packet(le, 1, 0, 0, &[], &[])), Trouble::Malformed, "interface 1 of a section that has described 1"),
        (
            with(&block(le, 6, &[0; 16])),
            Trouble::Malformed,
            "a enhanced packet block cannot be decoded: its fields do not fit its length",
        ),
        (
            with(&block(le, 1, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 200, 0, 3, 0, 0, 0])),
            Trouble::Malformed,
            "a interface description has options that do not fit",
        ),
    ];
    for (file, trouble, message) in cases {
        let message = message.replacen("a enhanced", "an enhanced", 1).replacen("a interface", "an interface", 1);
        assert_eq!(error(&file), (trouble, format!("{at}{message}")));
    }
    let file = pcap(le, 0xa1b2_c3d4, 1, &[(0, 0, 2, &[1, 2]), (0, 0, 1, &[1])]);
    assert_eq!(
        error(&file[..file.len() - 1]),
        (Trouble::Truncated, "block 3 at byte 42: the file ends after 16 of 17 bytes".into())
    );
    let mut file = pcap(le, 0xa1b2_c3d4, 1, &[(0, 0, 2, &[1, 2])]);
    file[24 + 8..24 + 12].fill(0xff);
    let message = "block 2 at byte 24: a packet of 4294967295 captured bytes; at most 16777216 are read";
    assert_eq!(error(&file), (Trouble::Malformed, message.into()));
    // Two files put together, of either order of bytes and unit.
    for (order, magic) in [(le, 0xa1b2_c3d4), (le, 0xa1b2_3c4d), (Order::Big, 0xa1b2_c3d4)] {
        let whole = pcap(le, 0xa1b2_c3d4, 1, &[(0, 0, 2, &[1, 2])]);
        let (trouble, message) = error(&[whole, pcap(order, magic, 1, &[(5, 0, 1, &[1])])].concat());
        assert_eq!(trouble, Trouble::Malformed);
        assert!(message.starts_with("block 3 at byte 42: another capture begins here"), "{message}");
    }
}

#[test]
fn nothing_is_read_after_an_error_and_all_before_it_is() {
    let le = Order::Little;
    let one = packet(le, 0, 0, 1, &[1], &[]);
    let file = [section(le), interface(le, 1, &[]), one.clone(), vec![6, 0, 0, 0, 8, 0, 0, 0], one].concat();
    let mut capture = Capture::new(&file[..]).unwrap();
    assert!(capture.next_frame().unwrap().is_some());
    assert_eq!(capture.next_frame().unwrap_err().block, 4);
    assert!(capture.next_frame().unwrap().is_none());
}

/// Gives a byte at a time, then fails.
struct Drop(Vec<u8>, usize);

impl Read for Drop {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(byte) = self.0.get(self.1) else { return Err(std::io::Error::other("the disk has gone")) };
        buffer[0] = *byte;
        self.1 += 1;
        Ok(1)
    }
}

#[test]
fn readers_may_give_little_and_fail() {
    let le = Order::Little;
    let file = [section(le), interface(le, 1, &[]), packet(le, 0, 0, 1, &[1], &[])].concat();
    let mut capture = Capture::new(Drop(file, 0)).unwrap();
    assert_eq!(capture.next_frame().unwrap().unwrap().data, [1]);
    let error = capture.next_frame().unwrap_err();
    assert_eq!((error.trouble, error.offset), (Trouble::Io, 84));
    assert_eq!(error.to_string(), "block 4 at byte 84: cannot be read: the disk has gone");
}

#[test]
fn frame_bytes_are_those_of_a_queue() {
    let le = Order::Little;
    let flags = |fcs: u32| vec![option(le, 2, &le.u32(fcs << 5))];
    let sizes = [(1514, 0, 1518), (1518, 4, 1518), (42, 0, 64), (60, 0, 64), (64, 4, 64), (u32::MAX, 0, u32::MAX)];
    let mut file = [section(le), interface(le, 1, &[])].concat();
    for (length, fcs, _) in sizes {
        file.extend(packet(le, 0, 0, length, &[], &flags(fcs)));
    }
    let mut capture = Capture::new(&file[..]).unwrap();
    for (_, _, expected) in sizes {
        assert_eq!(capture.next_frame().unwrap().unwrap().frame_bytes(), expected);
    }
}

#[test]
fn a_stamp_is_found_where_the_whole_frame_was_kept() {
    let le = Order::Little;
    let stamp = Stamp { port: 1, length: 2, time: 3 };
    let frame = [&tcp_frame()[..], &stamp.to_bytes()].concat();
    let fcs = [&frame[..], &[0xde, 0xad, 0xbe, 0xef]].concat();
    let right = [&frame[..], &crc32fast::hash(&frame).to_le_bytes()].concat();
    let file = [
        section(le),
        interface(le, 1, &[]),
        packet(le, 0, 0, 72, &frame, &[]),
        packet(le, 0, 0, 76, &fcs, &[option(le, 2, &le.u32(4 << 5))]),
        packet(le, 0, 0, 76, &right, &[]), // nothing says so, but its CRC
        packet(le, 0, 0, 76, &fcs, &[]),   // four bytes of something
        packet(le, 0, 0, 73, &frame, &[]),
        packet(le, 0, 0, 64, &tcp_frame(), &[]),
    ]
    .concat();
    let mut capture = Capture::new(&file[..]).unwrap();
    for (expected, bytes) in [(Some(stamp), 76), (Some(stamp), 76), (Some(stamp), 76), (None, 80), (None, 77), (None, 68)] {
        let frame = capture.next_frame().unwrap().unwrap();
        assert_eq!((frame.stamp(&frame.headers().unwrap()), frame.frame_bytes()), (expected, bytes));
    }
}

/// Ports, payload, VLAN, ECN and sequence number of the frames of all kinds, whatever the link.
#[test]
fn headers_behind_tags_extensions_and_other_links() {
    let port = Some((1000, 80));
    let expected = [
        Some((6, port, 10, None, Some(9))),
        Some((6, None, 30, None, None)), // a fragment of IPv6: not looked into
        Some((6, None, 30, None, None)),
        Some((17, Some((53, 54)), 0, None, None)),
        Some((6, port, 10, Some(5), Some(9))),
        Some((6, port, 10, Some(5), Some(9))),
        Some((6, None, 30, None, None)), // a later fragment has no ports
        None,
        Some((6, port, 10, None, Some(9))),
        None,
    ];
    for link in [1, 113, 276] {
        for ((ether_type, packet), expected) in other_frames().into_iter().zip(&expected) {
            let frame = framed(link, ether_type, &packet);
            let headers = Headers::parse(LinkType::of(link), &frame);
            let found = headers.map(|h| (h.protocol, h.ports, h.payload, h.vlan, h.tcp.map(|t| t.seq)));
            assert_eq!(found, *expected, "{link} {ether_type:x}");
            if let Some(h) = headers {
                assert_eq!((h.dscp, h.ecn, h.end), (46, 2, frame.len()), "{link} {ether_type:x}");
            }
        }
    }
    for link in [0, 101] {
        let headers = Headers::parse(LinkType::of(link), &framed(link, 0x0800, &tcp_frame()[14..])).unwrap();
        assert_eq!((headers.ports, headers.payload, headers.ttl), (port, 10, 64));
        assert_eq!(headers.tcp.unwrap().flags, 0x18);
    }
    assert_eq!(Headers::parse(LinkType::of(105), &tcp_frame()), None);
}

/// Fields that were kept are reported, those that were cut off are not.
#[test]
fn headers_that_were_cut() {
    let frame = tcp_frame();
    let parse = |kept: usize| Headers::parse(LinkType::Ethernet, &frame[..kept]);
    assert_eq!(parse(33), None);
    for (kept, ports, tcp) in [(34, false, false), (38, true, false), (49, true, false), (50, true, true), (54, true, true)] {
        let headers = parse(kept).unwrap();
        assert_eq!(
            (headers.ports.is_some(), headers.tcp.is_some(), headers.payload, headers.end),
            (ports, tcp, 10, 64),
            "{kept}"
        );
    }
}

/// A NIC that segments by itself captures datagrams without a length.
#[test]
fn a_length_of_0_is_that_of_the_captured_bytes() {
    let mut frame = tcp_frame();
    frame[16..18].fill(0);
    let headers = Headers::parse(LinkType::Ethernet, &frame).unwrap();
    assert_eq!((headers.payload, headers.end), (10, 64));
}
