//! Packets inside packets: tunnels, and packets that switches mirror to a capturing host.
//!
//! Source: RFC 7348 §5 (VXLAN), RFC 8926 §3 (GENEVE), RFC 2784, RFC 2890 and RFC 1701 (GRE), RFC 7637 §3.2 (NVGRE),
//! draft-foschiano-erspan-03 §4 (ERSPAN), RFC 3032 §2.1 and RFC 4448 §4.6 (MPLS), RFC 4023 (MPLS in IP), RFC 2003, RFC 2473 and RFC 4213
//! (IP in IP), RFC 2516 §4 and §7 (PPPoE). Held against tshark's dissection.

use crate::capture::Direction;
use crate::control;
use crate::cooked::Cooked;
use crate::headers::{Headers, LinkType, CONGESTION_EXPERIENCED};

/// Headers that are taken off one another at most, and labels of a stack.
pub(crate) const DEPTH: u8 = 8;
const LABELS: usize = 16;
/// Largest number of entries of a route in GRE.
const ROUTES: usize = 8;
/// Bytes before the EtherType of an Ethernet frame, and bytes of its whole header.
const MACS: usize = 12;
const ETHERNET: usize = 14;
/// Fewer bytes of what is inside show no flow: Ethernet, IPv4 and ports.
const ENOUGH: usize = ETHERNET + 20 + 4;

/// UDP ports of VXLAN: the registered one, and that of Linux where none is set.
const VXLAN: [u16; 2] = [4789, 8472];
const GENEVE: u16 = 6081;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const MPLS: [u16; 2] = [0x8847, 0x8848];
/// EtherType of PPPoE's sessions, and protocols of PPP in them, with the EtherTypes of what they carry.
const PPPOE: u16 = 0x8864;
const PPP: [(u16, u16); 3] = [(0x0021, IPV4), (0x0057, IPV6), (0x0281, MPLS[0])];
/// Protocol type of Ethernet frames in GRE and GENEVE.
const BRIDGED: u16 = 0x6558;
/// Protocol types of ERSPAN: I and II, III.
const ERSPAN: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;

/// A kind of header that a packet is wrapped in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tunnel {
    Vxlan,
    Geneve,
    /// GRE with Ethernet inside, NVGRE among it.
    Gre,
    /// A switch's mirror, types I to III.
    Erspan,
    Mpls,
    IpInIp,
    Pppoe,
}

impl std::fmt::Display for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Tunnel::Vxlan => "VXLAN",
            Tunnel::Geneve => "GENEVE",
            Tunnel::Gre => "GRE",
            Tunnel::Erspan => "ERSPAN",
            Tunnel::Mpls => "MPLS",
            Tunnel::IpInIp => "IP in IP",
            Tunnel::Pppoe => "PPPoE",
        })
    }
}

/// Headers that a packet was wrapped in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrap {
    /// Kind of the outermost tunnel.
    pub kind: Tunnel,
    /// Number of headers that were taken off.
    pub depth: u8,
    /// VNI, key or label: of the innermost that has one.
    pub network: Option<u32>,
    /// VNI or key alone: of the innermost tunnel that has one. Labels of MPLS are others in each direction, and on each link.
    pub tenant: Option<u32>,
    /// End of the outermost datagram in the frame.
    pub outer_end: u32,
    pub mirror: Option<Mirror>,
}

/// A frame that a switch mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Begin of the packet's Ethernet header in the captured frame; `None` where the mirror left that out.
    pub at: Option<u32>,
    /// Bytes that the packet had at the port, without check sequence.
    pub length: u32,
    pub session: Option<u16>,
    /// Direction in which the packet passed the port, where the mirror says.
    pub direction: Option<Direction>,
}

/// Content behind a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Ethernet,
    Type(u16),
}

/// A header that was found, and the place and kind of the next.
#[derive(Clone, Copy, Debug)]
struct Step {
    kind: Tunnel,
    what: What,
    at: usize,
    network: Option<u32>,
    /// Session and direction of a mirror.
    mirror: Option<(Option<u16>, Option<Direction>)>,
}

/// True if another packet may follow these headers.
#[inline]
pub(crate) fn may_follow(headers: &Headers) -> bool {
    match headers.protocol {
        6 => false,
        17 => headers.ports.is_some_and(|(_, to)| to == GENEVE || VXLAN.contains(&to)) && !headers.fragment,
        4 | 41 | 47 | 137 => !headers.fragment,
        _ => false,
    }
}

fn short(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk::<2>().map(|b| u16::from_be_bytes(*b))
}

fn long(frame: &[u8], at: usize) -> Option<u32> {
    frame.get(at..)?.first_chunk::<4>().map(|b| u32::from_be_bytes(*b))
}

/// The header that follows IP's, or UDP's.
fn behind(headers: &Headers, frame: &[u8]) -> Option<Step> {
    let at = if headers.protocol == 17 { headers.payload_at } else { headers.transport_at };
    let step = |kind, what, at, network| Some(Step { kind, what, at, network, mirror: None });
    match (headers.protocol, headers.ports) {
        (4, _) => step(Tunnel::IpInIp, What::Type(IPV4), at, None),
        (41, _) => step(Tunnel::IpInIp, What::Type(IPV6), at, None),
        (47, _) => gre(frame, at),
        (137, _) => labels(frame, at, headers.end),
        (17, Some((_, GENEVE))) => {
            let first = *frame.get(at)?;
            let what = match short(frame, at + 2)? {
                BRIDGED => What::Ethernet,
                kind => What::Type(kind),
            };
            let known = first >> 6 == 0;
            let network = long(frame, at + 4)? >> 8;
            known.then(|| step(Tunnel::Geneve, what, at + 8 + usize::from(first & 0x3f) * 4, Some(network)))?
        }
        (17, Some((_, to))) if VXLAN.contains(&to) => {
            let network = (*frame.get(at)? & 0x08 > 0).then(|| long(frame, at + 4))?? >> 8;
            step(Tunnel::Vxlan, What::Ethernet, at + 8, Some(network))
        }
        _ => None,
    }
}

fn gre(frame: &[u8], at: usize) -> Option<Step> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    let (flags, kind) = (short(frame, at)?, short(frame, at + 2)?);
    // Another version is PPTP's.
    if flags & 7 != 0 {
        return None;
    }
    let mut at = at + 4 + if flags & (CHECKSUM | ROUTING) > 0 { 4 } else { 0 };
    let mut network = None;
    if flags & KEY > 0 {
        network = Some(long(frame, at)?);
        at += 4;
    }
    at += if flags & SEQUENCE > 0 { 4 } else { 0 };
    if flags & ROUTING > 0 {
        let mut entries = 0..ROUTES;
        loop {
            entries.next()?;
            let entry = frame.get(at..)?.first_chunk::<4>()?;
            at += 4 + usize::from(entry[3]);
            if *entry == [0, 0, entry[2], 0] {
                break;
            }
        }
    }
    let tunnel = |what| Some(Step { kind: Tunnel::Gre, what, at, network, mirror: None });
    match kind {
        BRIDGED => tunnel(What::Ethernet),
        // Type I has no header, and GRE then no sequence number.
        ERSPAN if flags & SEQUENCE == 0 => {
            Some(Step { kind: Tunnel::Erspan, what: What::Ethernet, at, network: None, mirror: Some((None, None)) })
        }
        ERSPAN | ERSPAN_III => erspan(frame, at),
        kind => tunnel(What::Type(kind)),
    }
}

/// The header of ERSPAN II or III.
fn erspan(frame: &[u8], at: usize) -> Option<Step> {
    let head = frame.get(at..)?.first_chunk::<8>()?;
    let session = Some(u16::from_be_bytes([head[2] & 3, head[3]]));
    let found = |what, at, direction| Step { kind: Tunnel::Erspan, what, at, network: None, mirror: Some((session, direction)) };
    match head[0] >> 4 {
        1 => Some(found(What::Ethernet, at + 8, None)),
        2 => {
            let more = short(frame, at + 10)?;
            let end = at + 12 + if more & 1 > 0 { 8 } else { 0 };
            let direction = if more & 8 > 0 { Direction::Out } else { Direction::In };
            let what = match more >> 10 & 0x1f {
                0 => What::Ethernet,
                2 if *frame.get(end)? >> 4 == 6 => What::Type(IPV6),
                2 => What::Type(IPV4),
                _ => return None,
            };
            Some(found(what, end, Some(direction)))
        }
        _ => None,
    }
}

/// A stack of labels, and what follows: IP by its first bits, or an Ethernet frame, with a control word before it or without.
fn labels(frame: &[u8], mut at: usize, end: usize) -> Option<Step> {
    for _ in 0..LABELS {
        let entry = long(frame, at)?;
        at += 4;
        if entry & 0x100 == 0 {
            continue;
        }
        let fits = |bytes: usize| at + bytes <= end;
        let first = *frame.get(at)?;
        let what = match first >> 4 {
            4 if first & 15 >= 5 && short(frame, at + 2).is_some_and(|length| fits(length.into())) => What::Type(IPV4),
            6 if short(frame, at + 4).is_some_and(|length| fits(40 + usize::from(length))) => What::Type(IPV6),
            _ => What::Ethernet,
        };
        // A control word begins with zeros, as many an address does.
        let known = |kind| matches!(kind, IPV4 | IPV6 | 0x8100 | 0x88a8) || MPLS.contains(&kind);
        let word = what == What::Ethernet && first >> 4 == 0 && short(frame, at + 4 + MACS).is_some_and(known);
        let at = at + if word { 4 } else { 0 };
        return Some(Step { kind: Tunnel::Mpls, what, at, network: Some(entry >> 12), mirror: None });
    }
    None
}

/// The session of PPPoE in front of a packet. Its number is of the subscriber's line, and says nothing that addresses do not.
fn session(frame: &[u8], at: usize) -> Option<Step> {
    const HEADER: usize = 6;
    // Version and type 1, code 0: data of a session.
    if short(frame, at)? != 0x1100 {
        return None;
    }
    let protocol = short(frame, at + HEADER)?;
    let (_, kind) = PPP.into_iter().find(|(known, _)| *known == protocol)?;
    Some(Step { kind: Tunnel::Pppoe, what: What::Type(kind), at: at + HEADER + 2, network: None, mirror: None })
}

/// The stack of labels or the session of PPPoE that a frame begins with.
fn bare(link: LinkType, frame: &[u8], length: usize) -> Option<Step> {
    let (at, kind) = match link {
        LinkType::Ethernet => control::ether_type(frame).map(|(at, kind)| (at + 2, kind))?,
        _ => Cooked::of(link, frame).map(|cooked| (cooked.size, cooked.ether_type))?,
    };
    match kind {
        PPPOE => session(frame, at),
        kind if MPLS.contains(&kind) => labels(frame, at, length),
        _ => None,
    }
}

/// The packet that a step leads to, or the next step.
fn enter(frame: &[u8], step: &Step, end: usize) -> Option<Result<Headers, Step>> {
    let ether_type = match step.what {
        What::Ethernet => None,
        What::Type(kind) => Some(kind),
    };
    let stacked = match ether_type {
        Some(kind) => MPLS.contains(&kind).then_some(step.at),
        None => frame
            .get(step.at..)
            .and_then(control::ether_type)
            .filter(|(_, kind)| MPLS.contains(kind))
            .map(|(at, _)| step.at + at + 2),
    };
    if let Some(at) = stacked {
        return labels(frame, at, end).map(Err);
    }
    Headers::carried(frame, step.at, end, ether_type).map(Ok)
}

/// Headers of the innermost packet of a frame whose outermost are `outer`; none where it begins with labels or a session.
pub(crate) fn innermost(link: LinkType, frame: &[u8], length: usize, outer: Option<Headers>) -> Option<Headers> {
    let mut step = match &outer {
        Some(headers) => behind(headers, frame),
        None => bare(link, frame, length),
    };
    let outer_end = outer.map_or(length, |headers| headers.end);
    let (mut found, mut wrap, mut kept) = (outer, None::<Wrap>, None);
    let mut marked = outer.is_some_and(|headers| headers.ecn == CONGESTION_EXPERIENCED);
    let mut depth = 0;
    // Cut off before it could be seen what is inside.
    let lacks = |at: usize| frame.len() < length && frame.len() < at + ENOUGH;
    let mut cut = step.is_none() && outer.is_some_and(|headers| lacks(headers.payload_at.min(headers.transport_at + 8)));
    while let Some(this) = step.filter(|_| depth < DEPTH) {
        depth += 1;
        let end = found.map_or(length, |headers| headers.end.min(length));
        let before = wrap.get_or_insert(Wrap {
            kind: this.kind,
            depth,
            network: None,
            tenant: None,
            outer_end: outer_end as u32,
            mirror: None,
        });
        before.depth = depth;
        before.network = this.network.or(before.network);
        before.tenant = this.network.filter(|_| this.kind != Tunnel::Mpls).or(before.tenant);
        let mirrors = this.mirror.filter(|_| before.mirror.is_none());
        if let Some((session, direction)) = mirrors {
            let ethernet = this.what == What::Ethernet;
            let missing = if ethernet { 0 } else { ETHERNET };
            let length = (end.saturating_sub(this.at) + missing) as u32;
            before.mirror = Some(Mirror { at: ethernet.then_some(this.at as u32), length, session, direction });
        }
        step = match enter(frame, &this, end) {
            // A mirror may cut, and nothing else has more in it than it is long.
            Some(Ok(inner)) if inner.end <= end || before.mirror.is_some() => {
                if let (Some(mirror), true) = (&mut before.mirror, mirrors.is_some()) {
                    let missing = if mirror.at.is_some() { 0 } else { ETHERNET };
                    mirror.length = mirror.length.max((inner.end.saturating_sub(this.at) + missing) as u32);
                    marked = false;
                }
                marked |= inner.ecn == CONGESTION_EXPERIENCED;
                found = Some(Headers { vlan: inner.vlan.or(found.and_then(|headers| headers.vlan)), ..inner });
                kept = wrap;
                let next = may_follow(&inner).then(|| behind(&inner, frame));
                cut = next.is_some_and(|next| next.is_none() && lacks(inner.transport_at + 8));
                next.flatten()
            }
            Some(Err(stack)) => Some(stack),
            _ => {
                cut = lacks(this.at);
                None
            }
        };
    }
    let headers = found?;
    let ecn = if marked { CONGESTION_EXPERIENCED } else { headers.ecn };
    Some(Headers { ecn, wrap: kept, inner_cut: cut, ..headers })
}
