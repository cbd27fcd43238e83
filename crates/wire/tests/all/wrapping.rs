//! Frames put into tunnels and mirrors, by hand from the RFCs: the outer number is 0, as many devices have it, so that nothing outside
//! tells packets apart.

/// A way to wrap a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    Vxlan,
    /// At Linux' port, over IPv6.
    Vxlan6,
    /// With 12 bytes of options.
    Geneve,
    Gre,
    /// With checksum, key, sequence number and a route.
    GreWithAll,
    Nvgre,
    Erspan1,
    Erspan2,
    /// Seen as it left the port.
    Erspan3,
    /// With a subheader; as it came in.
    Erspan3Long,
    Mpls,
    /// Ethernet over MPLS, with a control word and without.
    MplsWord,
    MplsBare,
    IpInIp,
    IpInIp6,
    Pppoe,
    /// Ethernet in VXLAN in GRE in MPLS.
    Nested,
}

pub const ALL: [Wrapping; 17] = [
    Wrapping::Vxlan,
    Wrapping::Vxlan6,
    Wrapping::Geneve,
    Wrapping::Gre,
    Wrapping::GreWithAll,
    Wrapping::Nvgre,
    Wrapping::Erspan1,
    Wrapping::Erspan2,
    Wrapping::Erspan3,
    Wrapping::Erspan3Long,
    Wrapping::Mpls,
    Wrapping::MplsWord,
    Wrapping::MplsBare,
    Wrapping::IpInIp,
    Wrapping::IpInIp6,
    Wrapping::Pppoe,
    Wrapping::Nested,
];

/// The network, key, label or nothing that [`wrap`] writes.
pub const NETWORK: u32 = 0x1234;

fn ethernet(kind: u16) -> Vec<u8> {
    [&[2, 0, 0, 0, 9, 2, 2, 0, 0, 0, 9, 1][..], &kind.to_be_bytes()].concat()
}

fn ipv4(protocol: u8, length: usize) -> Vec<u8> {
    let [high, low] = (20 + length as u16).to_be_bytes();
    vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]
}

fn ipv6(protocol: u8, length: usize) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend((length as u16).to_be_bytes());
    header.extend([protocol, 64]);
    for end in [1, 2] {
        header.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
    }
    header
}

fn udp(port: u16, length: usize) -> Vec<u8> {
    [&50_000_u16.to_be_bytes()[..], &port.to_be_bytes(), &(8 + length as u16).to_be_bytes(), &[0, 0]].concat()
}

/// A frame of `length` bytes, of which `frame` are there, in another: the bytes that are there then, and its length.
pub fn wrap(wrapping: Wrapping, frame: &[u8], length: usize) -> (Vec<u8>, usize) {
    let kind = u16::from_be_bytes([frame[12], frame[13]]);
    let v6 = kind == 0x86dd;
    let (packet, packet_length) = (&frame[14..], length - 14);
    let network = (NETWORK << 8).to_be_bytes();
    let of = |header: Vec<u8>, inner: &[u8], inner_length: usize| {
        let length = header.len() + inner_length;
        ([&header[..], inner].concat(), length)
    };
    let over4 = |protocol: u8, header: Vec<u8>, inner: &[u8], inner_length: usize| {
        let outer = [ethernet(0x0800), ipv4(protocol, header.len() + inner_length)].concat();
        of([outer, header].concat(), inner, inner_length)
    };
    let labels = [[0, 0, 0x50, 62], [(NETWORK >> 12) as u8, (NETWORK >> 4) as u8, (NETWORK << 4) as u8 | 1, 62]].concat();
    match wrapping {
        Wrapping::Vxlan => {
            let vxlan = [&[8, 0, 0, 0][..], &network].concat();
            over4(17, [udp(4789, 8 + length), vxlan].concat(), frame, length)
        }
        Wrapping::Vxlan6 => {
            let vxlan = [&[8, 0, 0, 0][..], &network].concat();
            let outer = [ethernet(0x86dd), ipv6(17, 16 + length), udp(8472, 8 + length), vxlan].concat();
            of(outer, frame, length)
        }
        Wrapping::Geneve => {
            let geneve = [&[3, 0, 0x65, 0x58][..], &network, &[1, 2, 3, 2, 9, 9, 9, 9, 9, 9, 9, 9]].concat();
            over4(17, [udp(6081, 20 + length), geneve].concat(), frame, length)
        }
        Wrapping::Gre => over4(47, [&[0, 0][..], &kind.to_be_bytes()].concat(), packet, packet_length),
        Wrapping::GreWithAll => {
            let route = [8, 0, 0, 4, 10, 0, 0, 9, 0, 0, 0, 0];
            let gre =
                [&[0xf0, 0][..], &kind.to_be_bytes(), &[9, 9, 0, 0], &NETWORK.to_be_bytes(), &[0, 0, 0, 7], &route].concat();
            over4(47, gre, packet, packet_length)
        }
        Wrapping::Nvgre => over4(47, [&[0x20, 0, 0x65, 0x58][..], &NETWORK.to_be_bytes()].concat(), frame, length),
        Wrapping::Erspan1 => over4(47, vec![0, 0, 0x88, 0xbe], frame, length),
        Wrapping::Erspan2 => over4(47, vec![0x10, 0, 0x88, 0xbe, 0, 0, 0, 5, 0x10, 7, 0x01, 0x02, 0, 0, 0, 3], frame, length),
        Wrapping::Erspan3 => {
            let erspan = vec![0x10, 0, 0x22, 0xeb, 0, 0, 0, 5, 0x20, 7, 0x01, 0x02, 0, 0, 0, 1, 0, 0, 0, 8];
            over4(47, erspan, frame, length)
        }
        Wrapping::Erspan3Long => {
            let erspan = vec![0x10, 0, 0x22, 0xeb, 0, 0, 0, 5, 0x20, 7, 0x01, 0x02, 0, 0, 0, 1, 0, 0, 0, 1];
            over4(47, [erspan, vec![0x0c; 8]].concat(), frame, length)
        }
        Wrapping::Mpls => of([ethernet(0x8847), labels].concat(), packet, packet_length),
        Wrapping::MplsWord => of([ethernet(0x8847), labels, vec![0; 4]].concat(), frame, length),
        Wrapping::MplsBare => of([ethernet(0x8847), labels].concat(), frame, length),
        Wrapping::IpInIp => over4(if v6 { 41 } else { 4 }, Vec::new(), packet, packet_length),
        Wrapping::IpInIp6 => {
            let outer = [ethernet(0x86dd), ipv6(if v6 { 41 } else { 4 }, packet_length)].concat();
            of(outer, packet, packet_length)
        }
        Wrapping::Pppoe => {
            let [high, low] = (2 + packet_length as u16).to_be_bytes();
            of(
                [ethernet(0x8864), vec![0x11, 0, 0, 7, high, low, 0, if v6 { 0x57 } else { 0x21 }]].concat(),
                packet,
                packet_length,
            )
        }
        Wrapping::Nested => {
            let (frame, length) = wrap(Wrapping::Vxlan, frame, length);
            let (frame, length) = wrap(Wrapping::Gre, &frame, length);
            wrap(Wrapping::Mpls, &frame, length)
        }
    }
}
