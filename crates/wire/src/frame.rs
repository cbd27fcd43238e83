//! The bytes of a simulated packet.

use crate::{address, notification, roce};
use etherparse::{
    ether_type, ip_number, EtherType, Ethernet2Header, IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header,
    SingleVlanHeader, TcpHeader, UdpHeader, VlanId, VlanPcp,
};
use fanin_packet::{Control, Envelope, Framing, Header, IpVersion, Packet, Segment, Side, TcpFlags};
use fanin_telemetry::Stamp;

/// Frame check sequence: part of a frame's length, and not in captures.
pub const FCS: u16 = 4;
const ETHERNET: u16 = 14;
const TAG: u16 = 4;
/// EtherType of MAC control frames, and the address that pause frames go to: they are never forwarded. Source: IEEE 802.3 §31 and
/// Annex 31A.
const MAC_CONTROL: u16 = 0x8808;
const PAUSE_MAC: [u8; 6] = [0x01, 0x80, 0xC2, 0, 0, 0x01];
/// MAC address of the nearest bridge, for messages that switches send their neighbours and never forward. Source: IEEE 802.1Q
/// §8.6.3; Linux br_handle_frame (01-80-C2-00-00-0E is among those that it does not forward).
const NEIGHBOUR_MAC: [u8; 6] = [0x01, 0x80, 0xC2, 0, 0, 0x0E];
/// The experiment that a NACK option names; not registered with IANA. Source: RFC 6994 §3.
pub const NACK_EXPERIMENT: u16 = 0x4e44;
/// Largest size of a TCP header's options.
const MOST_OPTIONS: usize = 40;

/// Error: frames of the scenario's framing have no bytes, as it is not Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotEthernet;

/// Maker of frames in one framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framer {
    /// True if there is room for a priority tag of IEEE 802.1Q.
    tagged: bool,
    ip: IpVersion,
}

impl Framer {
    /// A framer for this framing: 18 bytes are Ethernet II, 22 bytes have a priority tag besides; the smallest frame is 64 bytes,
    /// or 68 with the tag. Source: IEEE 802.3 §3.1.1 and §3.2.8, IEEE 802.1Q annex G.2.3.
    ///
    /// # Errors
    /// Where it is neither.
    pub fn new(framing: &Framing) -> Result<Framer, NotEthernet> {
        match (framing.header, framing.min_frame) {
            (18, 64) => Ok(Framer { tagged: false, ip: framing.ip }),
            (22, 64 | 68) => Ok(Framer { tagged: true, ip: framing.ip }),
            _ => Err(NotEthernet),
        }
    }

    /// Bytes before the IP header.
    fn header(self) -> u16 {
        ETHERNET + if self.tagged { TAG } else { 0 }
    }

    /// Writes a packet into `bytes` as captures have it: without frame check sequence. `stamp`: what its last eight bytes hold,
    /// where hosts leave room for stamps.
    ///
    /// A control message has a frame of its own, without stamp: padding is behind it, or before a drop notification, which is
    /// read from the end of its frame. Source: IEEE 802.3 §3.2.8.
    ///
    /// A trimmed packet ends behind its TCP header. Lengths and checksums are those that it had with its payload: the switch
    /// cuts, and changes nothing but the hop count and the checksum over it.
    ///
    /// # Panics
    /// When its headers and payload do not fit its `frame` bytes.
    pub fn write(self, p: &Packet, stamp: Option<Stamp>, bytes: &mut Vec<u8>) {
        bytes.clear();
        let envelope = &p.envelope;
        if let Header::Control(control) = &p.header {
            self.write_control(envelope, control, bytes);
            return;
        }
        let ip_type = match self.ip {
            IpVersion::V4 => ether_type::IPV4,
            IpVersion::V6 => ether_type::IPV6,
        };
        let macs = (address::mac(envelope.src), address::mac(envelope.dst));
        self.write_ethernet(envelope, macs, ip_type, bytes);
        let transport = p.header_bytes() + envelope.payload;
        let ip = match self.ip {
            IpVersion::V4 => {
                let header = ipv4(p, transport);
                bytes.extend_from_slice(&header.to_bytes());
                Ip::V4(header)
            }
            IpVersion::V6 => {
                let header = ipv6(p, transport);
                bytes.extend_from_slice(&header.to_bytes());
                Ip::V6(header)
            }
        };
        let ip_at = usize::from(self.header());
        match &p.header {
            Header::Roce(header) => roce::append(envelope, header, bytes, ip_at),
            Header::Tcp(_) => bytes.extend_from_slice(&tcp(p.segment(), &ip).to_bytes()),
            Header::Udp(_) | Header::Control(_) => bytes.extend_from_slice(&udp(p, &ip).to_bytes()),
        }
        let kept = if envelope.trimmed { p.header_bytes() } else { transport };
        let end = usize::from(self.header() + self.ip.header() + kept);
        let room = usize::from(envelope.frame.saturating_sub(FCS)).saturating_sub(stamp.map_or(0, |_| Stamp::BYTES));
        assert!(end <= room, "a frame of {} B for {end} B of packet", envelope.frame);
        bytes.resize(room, 0);
        bytes.extend(stamp.iter().flat_map(Stamp::to_bytes));
    }

    fn write_control(self, envelope: &Envelope, control: &Control, bytes: &mut Vec<u8>) {
        let kind = EtherType(control.ether_type);
        let at_the_end = notification::is_carrier(control.ether_type);
        if control.ether_type == MAC_CONTROL {
            // Never tagged. Source: IEEE 802.3 §31.4.
            let header = Ethernet2Header { source: address::SWITCH_MAC, destination: PAUSE_MAC, ether_type: kind };
            bytes.extend_from_slice(&header.to_bytes());
        } else {
            let to = if at_the_end { address::mac(envelope.dst) } else { NEIGHBOUR_MAC };
            self.write_ethernet(envelope, (address::SWITCH_MAC, to), kind, bytes);
        }
        let body = control.body(envelope.header);
        let end = usize::from(envelope.frame.saturating_sub(FCS));
        assert!(bytes.len() + body.len() <= end, "a frame of {} B for {} B of message", envelope.frame, body.len());
        if at_the_end {
            bytes.resize(end - body.len(), 0);
        }
        bytes.extend_from_slice(body);
        bytes.resize(end, 0);
    }

    /// Writes the header of the frame.
    fn write_ethernet(self, envelope: &Envelope, (from, to): ([u8; 6], [u8; 6]), kind: EtherType, bytes: &mut Vec<u8>) {
        let payload_type = if self.tagged { EtherType::VLAN_TAGGED_FRAME } else { kind };
        let ethernet = Ethernet2Header { source: from, destination: to, ether_type: payload_type };
        bytes.extend_from_slice(&ethernet.to_bytes());
        if self.tagged {
            let tag = SingleVlanHeader {
                pcp: VlanPcp::try_new(envelope.class.0 & 7).unwrap_or_default(),
                drop_eligible_indicator: false,
                vlan_id: VlanId::default(), // 0: a priority and no VLAN
                ether_type: kind,
            };
            bytes.extend_from_slice(&tag.to_bytes());
        }
    }
}

/// A header of IP, which checksums of transports cover a part of.
enum Ip {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

/// Source: RFC 791 §3.1, RFC 3168 §5, RFC 2474 §4.2.2.
fn ipv4(p: &Packet, transport: u16) -> Ipv4Header {
    let envelope = &p.envelope;
    let mut ip = Ipv4Header {
        dscp: IpDscp::try_new((envelope.class.0 & 7) << 3).unwrap_or_default(),
        ecn: IpEcn::try_new(envelope.ecn as u8).unwrap_or_default(),
        total_len: IpVersion::V4.header() + transport,
        // RFC 6864 §4.1: of a datagram that is not fragmented it means nothing.
        identification: match p.header {
            Header::Udp(udp) => udp.number as u16,
            Header::Tcp(_) | Header::Roce(_) | Header::Control(_) => 0,
        },
        dont_fragment: true,
        time_to_live: envelope.ttl,
        protocol: ip_number(&p.header),
        source: address::ipv4(envelope.src).octets(),
        destination: address::ipv4(envelope.dst).octets(),
        ..Ipv4Header::default()
    };
    ip.header_checksum = ip.calc_header_checksum();
    ip
}

/// IPv6 header of a packet. Source: RFC 8200 §3 and §7.
fn ipv6(p: &Packet, transport: u16) -> Ipv6Header {
    let envelope = &p.envelope;
    Ipv6Header {
        traffic_class: (envelope.class.0 & 7) << 5 | envelope.ecn as u8,
        flow_label: flow_label(envelope.hash),
        payload_length: transport,
        next_header: ip_number(&p.header),
        hop_limit: envelope.ttl,
        source: address::ipv6(envelope.src).octets(),
        destination: address::ipv6(envelope.dst).octets(),
    }
}

fn ip_number(header: &Header) -> IpNumber {
    match header {
        Header::Tcp(_) => ip_number::TCP,
        Header::Udp(_) | Header::Roce(_) | Header::Control(_) => ip_number::UDP,
    }
}

/// One label for all packets of a flow in one direction, from the hash of its 5-tuple; never zero, which is no label.
/// Source: RFC 6437 §3.
fn flow_label(hash: u32) -> Ipv6FlowLabel {
    Ipv6FlowLabel::try_new(1 + hash % Ipv6FlowLabel::MAX_U32).unwrap_or_default()
}

/// Zeroes to compute checksums over.
const PAYLOAD: &[u8] = &[0; u16::MAX as usize];

fn ports(envelope: &Envelope) -> (u16, u16) {
    let (client, server) = address::ports(envelope.flow);
    match envelope.to {
        Side::Responder => (client, server),
        Side::Initiator => (server, client),
    }
}

fn udp(p: &Packet, ip: &Ip) -> UdpHeader {
    let (source_port, destination_port) = ports(&p.envelope);
    let length = p.header_bytes() + p.envelope.payload;
    let mut udp = UdpHeader { source_port, destination_port, length, checksum: 0 };
    let payload = &PAYLOAD[..usize::from(p.envelope.payload)];
    let checksum = match ip {
        Ip::V4(ip) => udp.calc_checksum_ipv4(ip, payload),
        Ip::V6(ip) => udp.calc_checksum_ipv6(ip, payload),
    };
    udp.checksum = checksum.unwrap_or_default();
    udp
}

fn tcp(p: Segment<'_>, ip: &Ip) -> TcpHeader {
    let (source, destination) = ports(p.envelope);
    let mut tcp = TcpHeader::new(source, destination, p.seq, p.window);
    tcp.acknowledgment_number = if p.flags.has(TcpFlags::ACK) { p.ack } else { 0 };
    tcp.fin = p.flags.has(TcpFlags::FIN);
    tcp.syn = p.flags.has(TcpFlags::SYN);
    tcp.rst = p.flags.has(TcpFlags::RST);
    tcp.psh = p.flags.has(TcpFlags::PSH);
    tcp.ack = p.flags.has(TcpFlags::ACK);
    tcp.ece = p.flags.has(TcpFlags::ECE);
    tcp.cwr = p.flags.has(TcpFlags::CWR);
    let (options, n) = options(p.tcp);
    let fits = tcp.set_options_raw(&options[..n]).is_ok();
    debug_assert!(fits && n == usize::from(p.option_bytes()));
    let payload = &PAYLOAD[..usize::from(p.envelope.payload)];
    let checksum = match ip {
        Ip::V4(ip) => tcp.calc_checksum_ipv4(ip, payload),
        Ip::V6(ip) => tcp.calc_checksum_ipv6(ip, payload),
    };
    tcp.checksum = checksum.unwrap_or_default();
    tcp
}

/// Options in the order and with the padding of Linux; a NACK before SACK blocks. Source: RFC 9293 §3.1 (kinds 0 to 2),
/// RFC 7323 §2.2 and §3.2, RFC 2018 §2 and §3, RFC 6994 §3, Linux tcp_options_write.
fn options(p: &fanin_packet::TcpHeader) -> ([u8; MOST_OPTIONS], usize) {
    const NOP: u8 = 1;
    const MSS: u8 = 2;
    const WINDOW_SCALE: u8 = 3;
    const SACK_PERMITTED: u8 = 4;
    const SACK: u8 = 5;
    const TIMESTAMPS: u8 = 8;
    const EXPERIMENT: u8 = 253;
    let mut bytes = [0; MOST_OPTIONS];
    let mut n = 0;
    let mut put = |more: &[u8]| {
        if let Some(place) = bytes.get_mut(n..n + more.len()) {
            place.copy_from_slice(more);
            n += more.len();
        }
    };
    let syn = p.syn_options();
    let permits = syn.is_some_and(|syn| syn.sack_permitted);
    if let Some(syn) = syn {
        let [high, low] = syn.mss.to_be_bytes();
        put(&[MSS, 4, high, low]);
    }
    match (p.timestamps(), permits) {
        (None, false) => {}
        (None, true) => put(&[NOP, NOP, SACK_PERMITTED, 2]),
        (Some(ts), permits) => {
            put(if permits { &[SACK_PERMITTED, 2] } else { &[NOP, NOP] });
            put(&[TIMESTAMPS, 10]);
            put(&ts.value.to_be_bytes());
            put(&ts.echo.to_be_bytes());
        }
    }
    if let Some(shift) = syn.and_then(|syn| syn.window_scale) {
        put(&[NOP, WINDOW_SCALE, 3, shift]);
    }
    if let Some(nack) = p.nack() {
        put(&[NOP, NOP, EXPERIMENT, 10]);
        put(&NACK_EXPERIMENT.to_be_bytes());
        put(&nack.seq.to_be_bytes());
        put(&nack.length.to_be_bytes());
    }
    if p.sack_len() > 0 {
        put(&[NOP, NOP, SACK, 2 + 8 * p.sack_len() as u8]);
        for block in p.sack() {
            put(&block.start.to_be_bytes());
            put(&block.end.to_be_bytes());
        }
    }
    (bytes, n)
}
