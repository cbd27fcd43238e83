//! From the first byte of a captured frame to the transport's header.

use crate::notification;
use etherparse::{EtherType, LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a frame begins with. Source: linktypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    Ethernet,
    /// An IP packet and nothing before it.
    Raw,
    /// Four bytes, then an IP packet (BSD loopback).
    Loopback,
    /// Linux "cooked" captures, of several interfaces at once.
    LinuxSll,
    LinuxSll2,
    /// Another one, whose frames are not looked into.
    Other(u32),
}

impl LinkType {
    /// From its number in files.
    pub fn of(number: u32) -> LinkType {
        match number {
            1 => LinkType::Ethernet,
            12 | 14 | 101 | 228 | 229 => LinkType::Raw,
            0 | 108 => LinkType::Loopback,
            113 => LinkType::LinuxSll,
            276 => LinkType::LinuxSll2,
            other => LinkType::Other(other),
        }
    }
}

/// Bytes of the header of a [`LinkType::LinuxSll2`] frame; the first two are its EtherType.
const SLL2_HEADER: usize = 20;

/// What a TCP header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    pub seq: u32,
    pub ack: u32,
    /// From CWR (0x80) to FIN (0x01).
    pub flags: u8,
    pub window: u16,
}

/// Headers of a frame that carries IP, as far as they were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    pub src: IpAddr,
    pub dst: IpAddr,
    /// 6: TCP, 17: UDP, and so on.
    pub protocol: u8,
    /// None where the protocol has none, they were cut off, or it is a later fragment.
    pub ports: Option<(u16, u16)>,
    /// The outermost VLAN.
    pub vlan: Option<u16>,
    pub dscp: u8,
    /// 3: congestion experienced.
    pub ecn: u8,
    /// Hops left.
    pub ttl: u8,
    /// Bytes that follow the transport's header, by the lengths that the headers give; of other protocols, that follow IP's.
    pub payload: u32,
    pub tcp: Option<Tcp>,
    /// Where the IP datagram ends in the frame; beyond the frame's end where it was cut, or a switch has trimmed it.
    pub end: usize,
    /// Where the transport's header ends, or IP's where it is another protocol's; beyond the frame's end likewise.
    pub payload_at: usize,
}

impl Headers {
    /// Parses a frame; none where it carries no IP that can be read.
    pub fn parse(link: LinkType, frame: &[u8]) -> Option<Headers> {
        let packet = match link {
            LinkType::Ethernet => match notification::carrier(frame) {
                Some((start, ether_type)) => LaxSlicedPacket::from_ether_type(EtherType(ether_type), &frame[start..]),
                None => LaxSlicedPacket::from_ethernet(frame).ok()?,
            },
            LinkType::Raw => LaxSlicedPacket::from_ip(frame).ok()?,
            LinkType::Loopback => LaxSlicedPacket::from_ip(frame.get(4..)?).ok()?,
            LinkType::LinuxSll => {
                let (header, rest) = frame.split_first_chunk::<16>()?;
                LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes([header[14], header[15]])), rest)
            }
            LinkType::LinuxSll2 => {
                let (header, rest) = frame.split_first_chunk::<SLL2_HEADER>()?;
                LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes([header[0], header[1]])), rest)
            }
            LinkType::Other(_) => return None,
        };
        let vlan = packet.link_exts.iter().find_map(|ext| match ext {
            LaxLinkExtSlice::Vlan(vlan) => Some(vlan.vlan_identifier().value()),
            _ => None,
        });
        let at = |inner: &[u8]| (inner.as_ptr() as usize).saturating_sub(frame.as_ptr() as usize);
        let (mut headers, datagram, payload, first) = match packet.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let (header, payload) = (ip.header(), ip.payload());
                let start = at(header.slice());
                let headers = Headers {
                    src: IpAddr::V4(Ipv4Addr::from(header.source())),
                    dst: IpAddr::V4(Ipv4Addr::from(header.destination())),
                    protocol: payload.ip_number.0,
                    ports: None,
                    vlan,
                    dscp: header.dcp().value(),
                    ecn: header.ecn().value(),
                    ttl: header.ttl(),
                    payload: 0,
                    tcp: None,
                    end: 0,
                    payload_at: 0,
                };
                let datagram = Some(usize::from(header.total_len())).filter(|bytes| *bytes > 0).map(|bytes| start + bytes);
                (headers, datagram, payload, header.fragments_offset().value() == 0)
            }
            LaxNetSlice::Ipv6(ip) => {
                let (header, payload) = (ip.header(), ip.payload());
                let start = at(header.slice());
                // etherparse 0.21 reads beyond the end of extension headers that were cut when it iterates over them, so that the
                // first fragment is not distinguished from later ones, and its ports are not read either.
                let first = !payload.fragmented;
                let headers = Headers {
                    src: IpAddr::V6(Ipv6Addr::from(header.source())),
                    dst: IpAddr::V6(Ipv6Addr::from(header.destination())),
                    protocol: payload.ip_number.0,
                    ports: None,
                    vlan,
                    dscp: header.traffic_class() >> 2,
                    ecn: header.traffic_class() & 3,
                    ttl: header.hop_limit(),
                    payload: 0,
                    tcp: None,
                    end: 0,
                    payload_at: 0,
                };
                let datagram = Some(usize::from(header.payload_length())).filter(|bytes| *bytes > 0);
                (headers, datagram.map(|bytes| start + header.slice().len() + bytes), payload, first)
            }
            LaxNetSlice::Arp(_) => return None,
        };
        let start = at(payload.payload);
        // Where segmentation is left to the NIC, the length is 0, and the captured bytes give the end.
        headers.end = datagram.map_or(start + payload.payload.len(), |datagram| datagram.max(start));
        headers.payload_at = start + headers.transport(payload.payload, headers.end - start, first);
        Some(headers)
    }

    /// Reads the fixed part of the transport's header, and gives the bytes of all of it: options may be cut off.
    fn transport(&mut self, bytes: &[u8], length: usize, first: bool) -> usize {
        let short = |at: usize| bytes.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
        let long = |at: usize| Some(u32::from(short(at)?) << 16 | u32::from(short(at + 2)?));
        let mut header = 0;
        if first && matches!(self.protocol, 6 | 17) {
            self.ports = short(0).zip(short(2));
            header = 8;
        }
        if first && self.protocol == 6 {
            let offset = bytes.get(12).map_or(20, |b| usize::from(b >> 4) * 4);
            header = offset.max(20);
            if let (Some(seq), Some(ack), Some(flags), Some(window)) = (long(4), long(8), bytes.get(13), short(14)) {
                self.tcp = Some(Tcp { seq, ack, flags: *flags, window });
            }
        }
        self.payload = u32::try_from(length.saturating_sub(header)).unwrap_or(u32::MAX);
        header
    }
}
