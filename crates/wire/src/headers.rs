//! From the first byte of a captured frame to the transport's header.

use crate::cooked::Cooked;
use crate::options::TcpOptions;
use crate::tunnel::{self, Wrap};
use crate::{notification, roce, shim};
use etherparse::{EtherType, LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Link type: the header that a frame begins with. Source: linktypes.
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
    /// Another link type, whose frames are not read.
    Other(u32),
}

impl LinkType {
    /// Link type by its number in files.
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

/// The value of ECN that is a mark. Source: RFC 3168 §5.
pub(crate) const CONGESTION_EXPERIENCED: u8 = 3;

/// Fields of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    pub seq: u32,
    pub ack: u32,
    /// Flags from CWR (0x80) to FIN (0x01).
    pub flags: u8,
    pub window: u16,
}

/// Headers of a frame that carries IP, as far as they were captured; of tunnelled packets, those of the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    pub src: IpAddr,
    pub dst: IpAddr,
    /// Protocol number: 6 for TCP, 17 for UDP, and so on. TCP, 17: UDP, and so on.
    pub protocol: u8,
    /// Source and destination port; `None` where the protocol has none, they were cut off, or it is a later fragment.
    pub ports: Option<(u16, u16)>,
    /// Tag of the outermost VLAN.
    pub vlan: Option<u16>,
    pub dscp: u8,
    /// ECN field; 3: congestion experienced, which switches write to the outermost header of a frame.
    pub ecn: u8,
    /// Hops left (TTL).
    pub ttl: u8,
    /// Identification of the datagram (IPv4); 0 where it has none.
    pub id: u16,
    /// True if the packet is a fragment of a datagram.
    pub fragment: bool,
    /// Bytes that follow the transport's header, by the lengths that the headers give; of other protocols, that follow IP's. Of RoCEv2
    /// what messages carry: nothing in acknowledgments and notifications.
    pub payload: u32,
    pub tcp: Option<Tcp>,
    /// End of the IP datagram in the frame; beyond the frame's end where it was cut, or a switch has trimmed it.
    pub end: usize,
    /// Begin of IP's payload in the frame.
    pub transport_at: usize,
    /// End of the transport's header, or of IP's where it is another protocol's; beyond the frame's end where the frame was cut.
    pub payload_at: usize,
    /// Headers of tunnels that were taken off.
    pub wrap: Option<Wrap>,
    /// True if there is another packet inside of which too little was captured.
    pub inner_cut: bool,
}

impl Headers {
    /// Parses a frame; none where it carries no IP that can be read.
    pub fn parse(link: LinkType, frame: &[u8]) -> Option<Headers> {
        Self::parse_cut(link, frame, frame.len())
    }

    /// Parses a frame that had `length` bytes, of which the first ones were captured.
    pub(crate) fn parse_cut(link: LinkType, frame: &[u8], length: usize) -> Option<Headers> {
        // Nearly all frames: what is read is written where it is wanted.
        if let (LinkType::Ethernet, Some(kind)) = (link, frame.get(12..14)) {
            if let Some(headers) = Self::plain(frame, 14, [kind[0], kind[1]]) {
                if !tunnel::may_follow(&headers) {
                    return Some(headers);
                }
            }
        }
        Self::parse_wrapped(link, frame, length)
    }

    /// Parses a frame whose outermost headers may not be all.
    #[inline(never)]
    fn parse_wrapped(link: LinkType, frame: &[u8], length: usize) -> Option<Headers> {
        let outer = Self::outermost(link, frame, length);
        if outer.as_ref().is_some_and(|headers| !tunnel::may_follow(headers)) {
            return outer;
        }
        tunnel::innermost(link, frame, length, outer)
    }

    /// The outermost headers of IP.
    #[inline(always)]
    pub(crate) fn outermost(link: LinkType, frame: &[u8], length: usize) -> Option<Headers> {
        let plain = match link {
            LinkType::Ethernet => frame.get(12..14).and_then(|kind| Self::plain(frame, 14, [kind[0], kind[1]])),
            _ => Cooked::of(link, frame).and_then(|h| Self::plain(frame, h.size, h.ether_type.to_be_bytes())),
        };
        plain.or_else(|| Self::parse_any(link, frame, length))
    }

    /// Parses nearly all frames directly: a segment or datagram in IP without options, extensions, fragments or padding of its
    /// length, `at` the frame's start. What [`Self::parse_any`] gives, in a tenth of the time.
    #[inline(always)]
    fn plain(frame: &[u8], at: usize, ether_type: [u8; 2]) -> Option<Headers> {
        let (header, length, protocol, id, src, dst);
        let (class, ttl);
        match ether_type {
            [0x08, 0x00] => {
                let h = frame.get(at..)?.first_chunk::<20>()?;
                // No options; no fragment, nor the first of some.
                if h[0] != 0x45 || h[6] & 0x3f != 0 || h[7] != 0 {
                    return None;
                }
                length = usize::from(u16::from_be_bytes([h[2], h[3]]));
                (header, protocol, id) = (20, h[9], u16::from_be_bytes([h[4], h[5]]));
                (class, ttl) = (h[1], h[8]);
                src = IpAddr::V4(Ipv4Addr::new(h[12], h[13], h[14], h[15]));
                dst = IpAddr::V4(Ipv4Addr::new(h[16], h[17], h[18], h[19]));
            }
            [0x86, 0xdd] => {
                let h = frame.get(at..)?.first_chunk::<40>()?;
                if h[0] >> 4 != 6 {
                    return None;
                }
                length = 40 + usize::from(u16::from_be_bytes([h[4], h[5]]));
                (header, protocol, id) = (40, h[6], 0);
                (class, ttl) = (h[0] << 4 | h[1] >> 4, h[7]);
                let address = |at: usize| h[at..].first_chunk::<16>().map(|a| IpAddr::V6(Ipv6Addr::from(*a)));
                (src, dst) = (address(8)?, address(24)?);
            }
            _ => return None,
        }
        if length <= header || !matches!(protocol, 4 | 6 | 17 | 41 | 47 | 137) {
            return None;
        }
        let (start, end) = (at + header, at + length);
        let mut headers = Headers {
            src,
            dst,
            protocol,
            ports: None,
            vlan: None,
            dscp: class >> 2,
            ecn: class & 3,
            ttl,
            id,
            fragment: false,
            payload: 0,
            tcp: None,
            end,
            transport_at: start,
            payload_at: 0,
            wrap: None,
            inner_cut: false,
        };
        headers.payload_at = start + headers.transport(&frame[start..end.min(frame.len())], end - start, true);
        Some(headers)
    }

    /// Parses the headers of any frame.
    fn parse_any(link: LinkType, frame: &[u8], length: usize) -> Option<Headers> {
        let packet = match link {
            LinkType::Ethernet => match notification::carrier(frame).or_else(|| shim::carrier(frame)) {
                Some((start, ether_type)) => LaxSlicedPacket::from_ether_type(EtherType(ether_type), &frame[start..]),
                None => LaxSlicedPacket::from_ethernet(frame).ok()?,
            },
            LinkType::Raw => LaxSlicedPacket::from_ip(frame).ok()?,
            LinkType::Loopback => LaxSlicedPacket::from_ip(frame.get(4..)?).ok()?,
            LinkType::LinuxSll | LinkType::LinuxSll2 => {
                let cooked = Cooked::of(link, frame)?;
                LaxSlicedPacket::from_ether_type(EtherType(cooked.ether_type), &frame[cooked.size..])
            }
            LinkType::Other(_) => return None,
        };
        Self::of_packet(&packet, frame, length)
    }

    /// Headers of a packet that begins in `frame` at `at`, or of the Ethernet frame there if it has no EtherType, and ends at `end`.
    pub(crate) fn carried(frame: &[u8], at: usize, end: usize, ether_type: Option<u16>) -> Option<Headers> {
        let inside = frame.get(at..end.min(frame.len()))?;
        let plain = match ether_type {
            Some(kind) => Self::plain(inside, 0, kind.to_be_bytes()),
            None => inside.get(12..14).and_then(|kind| Self::plain(inside, 14, [kind[0], kind[1]])),
        };
        let headers = plain.or_else(|| {
            let packet = match ether_type {
                Some(kind) => LaxSlicedPacket::from_ether_type(EtherType(kind), inside),
                None => LaxSlicedPacket::from_ethernet(inside).ok()?,
            };
            Self::of_packet(&packet, inside, end - at)
        })?;
        let (end, transport_at, payload_at) = (at + headers.end, at + headers.transport_at, at + headers.payload_at);
        Some(Headers { end, transport_at, payload_at, ..headers })
    }

    fn of_packet(packet: &LaxSlicedPacket<'_>, frame: &[u8], length: usize) -> Option<Headers> {
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
                    id: header.identification(),
                    fragment: payload.fragmented,
                    payload: 0,
                    tcp: None,
                    end: 0,
                    transport_at: 0,
                    payload_at: 0,
                    wrap: None,
                    inner_cut: false,
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
                    id: 0,
                    fragment: payload.fragmented,
                    payload: 0,
                    tcp: None,
                    end: 0,
                    transport_at: 0,
                    payload_at: 0,
                    wrap: None,
                    inner_cut: false,
                };
                let datagram = Some(usize::from(header.payload_length())).filter(|bytes| *bytes > 0);
                (headers, datagram.map(|bytes| start + header.slice().len() + bytes), payload, first)
            }
            LaxNetSlice::Arp(_) => return None,
        };
        let start = at(payload.payload);
        // Where segmentation is left to the NIC, the length is 0, and the frame's own gives the end.
        let cut = length.saturating_sub(frame.len());
        headers.end = datagram.map_or(start + payload.payload.len() + cut, |datagram| datagram.max(start));
        headers.transport_at = start;
        headers.payload_at = start + headers.transport(payload.payload, headers.end - start, first);
        Some(headers)
    }

    /// Options of the TCP header, as far as `frame`, from which the headers were parsed, has them.
    pub fn tcp_options(&self, frame: &[u8]) -> TcpOptions {
        let end = self.payload_at.min(frame.len());
        let options = self.tcp.and_then(|_| frame.get(self.transport_at + 20..end));
        options.map(TcpOptions::read).unwrap_or_default()
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
        let mut behind = 0;
        if self.protocol == 17 && self.ports.is_some_and(|(_, to)| to == roce::PORT) {
            let inner = bytes.get(header..).and_then(|inner| roce::overhead(inner, length.saturating_sub(header)));
            if let Some((own, more)) = inner {
                (header, behind) = (header + own, more);
            }
        }
        self.payload = u32::try_from(length.saturating_sub(header + behind)).unwrap_or(u32::MAX);
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading directly and parsing give the same headers: of whole frames, of damaged ones and of truncated ones.
    #[test]
    fn what_is_read_directly_is_what_is_parsed() {
        let segment = |protocol: u8| {
            let mut v4 = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0xba, 0, 64, 0, 7, 0x40, 0, 64, protocol, 0, 0];
            v4.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            let mut v6 = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x6b, 0xa0, 0, 0, 0, 44, protocol, 63];
            v6.extend((0..32).map(|i| if i % 16 == 0 { 0xfd } else { i }));
            let tcp = [0x03, 0xe8, 0, 80, 0, 0, 0, 9, 0, 0, 0, 8, 0x80, 0x18, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1];
            [v4, v6].map(|ip| [&ip[..], &tcp, &[7; 16]].concat())
        };
        let mut state = 1_u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut directly = 0;
        for good in [6, 17, 1, 4, 47].into_iter().flat_map(segment) {
            for turn in 0..60_000 {
                let mut frame = good.clone();
                if turn > 0 {
                    for _ in 0..1 + random(3) {
                        // The headers' first bytes decide most.
                        let at = if random(2) == 0 { 12 + random(14) } else { random(frame.len()) };
                        frame[at] = [0, 1, 0x45, 0x46, 0x08, 0xff, random(256) as u8][random(7)];
                    }
                    if random(3) == 0 {
                        frame.truncate(random(frame.len() + 1));
                    }
                }
                let length = frame.len() + random(3) * 20;
                let kind = frame.get(12..14).map_or([0, 0], |kind| [kind[0], kind[1]]);
                if let Some(headers) = Headers::plain(&frame, 14, kind) {
                    assert_eq!(Some(headers), Headers::parse_any(LinkType::Ethernet, &frame, length), "{frame:02x?}");
                    directly += 1;
                }
            }
        }
        assert!(directly > 60_000, "{directly}");
    }
}
