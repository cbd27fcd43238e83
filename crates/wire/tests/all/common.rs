//! Captures made by hand, in either byte order.

/// A writer of numbers in one byte order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, value: u16) -> [u8; 2] {
        if self == Order::Big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    pub fn u32(self, value: u32) -> [u8; 4] {
        if self == Order::Big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    pub fn u64(self, value: u64) -> [u8; 8] {
        if self == Order::Big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }
}

pub fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}

pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = order.u32(12 + body.len() as u32);
    [&order.u32(kind)[..], &length, body, &length].concat()
}

pub fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    [&order.u16(code)[..], &order.u16(value.len() as u16), &padded(value)].concat()
}

pub fn section(order: Order) -> Vec<u8> {
    let body = [&order.u32(0x1a2b_3c4d)[..], &order.u16(1), &order.u16(0), &order.u64(u64::MAX)].concat();
    block(order, 0x0a0d_0d0a, &body)
}

pub fn interface(order: Order, link: u16, options: &[Vec<u8>]) -> Vec<u8> {
    let mut body = [&order.u16(link)[..], &[0, 0], &order.u32(0)].concat();
    body.extend(options.concat());
    if !options.is_empty() {
        body.extend([0; 4]);
    }
    block(order, 1, &body)
}

pub fn packet(order: Order, interface: u32, ticks: u64, length: u32, data: &[u8], options: &[Vec<u8>]) -> Vec<u8> {
    let numbers = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, length];
    let mut body: Vec<u8> = numbers.iter().flat_map(|n| order.u32(*n)).collect();
    body.extend(padded(data));
    body.extend(options.concat());
    if !options.is_empty() {
        body.extend([0; 4]);
    }
    block(order, 6, &body)
}

pub fn pcap(order: Order, magic: u32, link: u32, records: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
    let mut file = [&order.u32(magic)[..], &order.u16(2), &order.u16(4), &[0; 8], &order.u32(65535), &order.u32(link)].concat();
    for (seconds, fraction, length, data) in records {
        for number in [*seconds, *fraction, data.len() as u32, *length] {
            file.extend(order.u32(number));
        }
        file.extend_from_slice(data);
    }
    file
}

/// An Ethernet frame with IPv4 and TCP, 10 bytes of payload, by hand: 10.0.0.1:1000 to 10.0.0.2:80, ECT(0), DSCP 46.
pub fn tcp_frame() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 46 << 2 | 2, 0, 50, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x03, 0xe8, 0, 80, 0, 0, 0, 9, 0, 0, 0, 8, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    frame.extend([0; 10]);
    frame
}

/// Frames of other kinds, as what follows an Ethernet header, with their EtherType: tags, extension headers, other protocols.
pub fn other_frames() -> Vec<(u16, Vec<u8>)> {
    let segment = tcp_frame()[34..].to_vec();
    let ipv6 = |next: u8, rest: &[u8]| {
        let mut packet = vec![0x6b, 0xa0, 0, 0]; // DSCP 46, ECT(0)
        packet.extend((rest.len() as u16).to_be_bytes());
        packet.extend([next, 63]);
        packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend(rest);
        packet
    };
    let hop_by_hop = |next: u8| vec![next, 0, 1, 4, 0, 0, 0, 0];
    let routing = |next: u8| vec![next, 2, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2];
    let fragment = |next: u8, offset: u16| [&[next, 0][..], &(offset << 3 | 1).to_be_bytes(), &[0, 0, 0, 9]].concat();
    let authentication = |next: u8| vec![next, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 9, 9, 9, 9];
    let tagged = |inner: u16, rest: &[u8]| [&[0xa0, 5][..], &inner.to_be_bytes(), rest].concat();
    let ipv4 = tcp_frame()[14..].to_vec();
    let mut fragment4 = ipv4.clone();
    fragment4[7] = 3;
    vec![
        (0x86dd, ipv6(6, &segment)),
        (0x86dd, ipv6(0, &[hop_by_hop(43), routing(44), fragment(6, 0), segment.clone()].concat())),
        (0x86dd, ipv6(44, &[fragment(6, 7), segment.clone()].concat())),
        (0x86dd, ipv6(51, &[authentication(60), hop_by_hop(17), vec![0, 53, 0, 54, 0, 8, 0, 0]].concat())),
        (0x8100, tagged(0x0800, &ipv4)),
        (0x88a8, tagged(0x8100, &tagged(0x86dd, &ipv6(6, &segment)))),
        (0x0800, fragment4),
        (0x0806, [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[7; 20]].concat()),
        (0x88e5, [&[0x20, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 0][..], &ipv4].concat()),
        (0x0026, vec![0xaa; 38]),
    ]
}

/// A frame with the header of one of the link types that are looked into.
pub fn framed(link: u32, ether_type: u16, packet: &[u8]) -> Vec<u8> {
    let kind = ether_type.to_be_bytes();
    let header: Vec<u8> = match link {
        1 => [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind].concat(),
        113 => [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &kind].concat(),
        276 => [&kind[..], &[0; 18]].concat(),
        0 => vec![24, 0, 0, 0],
        _ => vec![],
    };
    [&header[..], packet].concat()
}
