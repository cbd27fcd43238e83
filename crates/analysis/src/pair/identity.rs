//! Identity of a packet on both sides of a port: fields that switches, VLANs, ECN, routers and, step by step, NAT leave alone.

use crate::capture::FlowKey;
use crate::input::context::bytes_of;
use crate::input::sorter::Stored;
use fanin_wire::{Frame, Headers};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};

/// Congestion experienced. Source: RFC 3168 §5.
const CE: u8 = 3;
/// Flags of TCP that no device sets or clears on the way.
const SYN_FIN_RST: u8 = 0x07;
/// Bytes of payload that tell packets of other protocols than TCP apart.
const PAYLOAD: usize = 16;

/// Part of a packet's addresses that must be the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// Addresses and ports, and the tenant (VNI, key of GRE) where they are in a tunnel.
    Flow,
    /// Addresses and ports: the tunnel ends at the port, or goes on with another number.
    InnerFlow,
    /// Ports alone, as addresses are rewritten.
    Ports,
    /// No addresses or ports, as both are rewritten: contents alone.
    Contents,
}

/// A packet on one side.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Time on the clock of the packet's capture [ps].
    pub time: i128,
    /// Hash that is equal for the same packet on the other side.
    pub key: u64,
    /// Hash that distinguishes packets of equal key on the side where it was captured; else 0.
    pub tag: u64,
    /// True if no other packet near this one has its key and tag.
    pub unique: bool,
    /// Bytes of the packet as the queue counts them.
    pub bytes: u32,
    pub marked: bool,
    /// Hops left (TTL).
    pub ttl: u8,
    pub has_data: bool,
    pub flow: FlowKey,
    /// Sender and receiver, as numbers.
    pub hosts: (u64, u64),
    /// Interface at which the packet was captured, as its capture counts them.
    pub interface: u32,
}

impl Seen {
    /// No packet: fields for those that are not known.
    pub const NONE: Seen = Seen {
        time: 0,
        key: 0,
        tag: 0,
        unique: false,
        bytes: 0,
        marked: false,
        ttl: 0,
        has_data: false,
        flow: (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0, None, None),
        hosts: (0, 0),
        interface: 0,
    };
}

/// Mixes a word into a hash. Equal packets get equal keys on any machine.
fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// A number that hosts differ by.
pub fn host(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => mix(4, u64::from(v4.to_bits())),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            mix(mix(6, (bits >> 64) as u64), bits as u64)
        }
    }
}

/// Number by which flows differ, from their hosts and ports: for places in small tables.
pub fn spread(hosts: (u64, u64), ports: Option<(u16, u16)>) -> u64 {
    let (from, to) = ports.unwrap_or_default();
    hosts.0 ^ hosts.1.rotate_left(7) ^ u64::from(from ^ to.rotate_left(5))
}

impl Seen {
    /// A frame with those headers, of an interface or mirror session of that number.
    pub fn of(frame: &Frame<'_>, headers: &Headers, number: Option<u32>, matching: Match, without_fcs: bool) -> Seen {
        let hosts = (host(headers.src), host(headers.dst));
        let mut key = mix(u64::from(headers.protocol) | u64::from(headers.fragment) << 8, u64::from(headers.payload));
        let tenant = headers.wrap.and_then(|wrap| wrap.tenant);
        if let Some(tenant) = tenant.filter(|_| matching == Match::Flow) {
            key = mix(key, u64::from(tenant) | 1 << 32);
        }
        if matching <= Match::InnerFlow {
            key = mix(mix(key, hosts.0), hosts.1);
        }
        if matching <= Match::Ports {
            let ports = headers.ports.map_or(u64::MAX, |(from, to)| u64::from(from) << 16 | u64::from(to));
            key = mix(key, ports);
        }
        // Many senders give all packets that must not be fragmented the number 0.
        let id = Some(headers.id).filter(|id| *id != 0);
        key = mix(key, id.map_or(1 << 16, u64::from));
        let mut tag = 0;
        if let Some(tcp) = &headers.tcp {
            key = mix(key, u64::from(tcp.seq) << 32 | u64::from(tcp.ack));
            key = mix(key, u64::from(tcp.flags & SYN_FIN_RST));
            tag = headers.tcp_options(frame.data).timestamp.map_or(0, |ts| mix(8, u64::from(ts)) | 1);
        } else {
            let wanted = (headers.payload as usize).min(PAYLOAD);
            let payload = frame.data.get(headers.payload_at..headers.payload_at + wanted).filter(|bytes| !bytes.is_empty());
            tag = payload.map_or(tag, |bytes| {
                // The length is in the key.
                let mut words = [0; PAYLOAD];
                words[..bytes.len()].copy_from_slice(bytes);
                let words = u128::from_le_bytes(words);
                mix(mix(9, words as u64), (words >> 64) as u64) | 1
            });
        }
        Seen {
            time: frame.time_ps,
            key,
            tag,
            unique: id.is_some() && !headers.fragment,
            bytes: bytes_of(frame, Some(headers), without_fcs),
            marked: headers.ecn == CE,
            ttl: headers.ttl,
            has_data: headers.tcp.is_none() || headers.payload > 0,
            flow: (headers.src, headers.dst, headers.protocol, headers.ports, tenant),
            hosts,
            interface: number.unwrap_or(frame.interface as u32),
        }
    }

    /// Hash that tells the packet from all packets near it.
    pub fn name(&self) -> u64 {
        mix(self.key, self.tag)
    }
}

/// Bits of the byte that stores the facts about a packet.
const UNIQUE: u8 = 1;
const MARKED: u8 = 2;
const HAS_DATA: u8 = 4;
const PORTS: u8 = 8;
const V6: u8 = 16;
const TENANT: u8 = 32;

impl Stored for Seen {
    const BYTES: usize = 100;

    fn time(&self) -> i128 {
        self.time
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let (src, dst, protocol, ports, tenant) = self.flow;
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        let flags = flag(self.unique, UNIQUE)
            | flag(self.marked, MARKED)
            | flag(self.has_data, HAS_DATA)
            | flag(ports.is_some(), PORTS)
            | flag(tenant.is_some(), TENANT)
            | flag(src.is_ipv6(), V6);
        bytes.extend(self.time.to_le_bytes());
        for address in [src, dst] {
            bytes.extend(match address {
                IpAddr::V4(v4) => u128::from(v4.to_bits()).to_le_bytes(),
                IpAddr::V6(v6) => v6.to_bits().to_le_bytes(),
            });
        }
        for word in [self.key, self.tag, self.hosts.0, self.hosts.1] {
            bytes.extend(word.to_le_bytes());
        }
        let (from, to) = ports.unwrap_or_default();
        for word in [self.bytes, self.interface, u32::from(from) << 16 | u32::from(to)] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([flags, protocol, self.ttl, 0]);
        bytes.extend(tenant.unwrap_or_default().to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        let long = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u128::from_le_bytes(*b));
        let word = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b));
        let half = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b));
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let is = |bit: u8| byte(92) & bit > 0;
        let address = |at: usize| if is(V6) { IpAddr::V6(long(at).into()) } else { IpAddr::V4((long(at) as u32).into()) };
        let ports = half(88);
        Seen {
            time: long(0) as i128,
            key: word(48),
            tag: word(56),
            unique: is(UNIQUE),
            bytes: half(80),
            marked: is(MARKED),
            ttl: byte(94),
            has_data: is(HAS_DATA),
            flow: (
                address(16),
                address(32),
                byte(93),
                is(PORTS).then_some(((ports >> 16) as u16, ports as u16)),
                is(TENANT).then_some(half(96)),
            ),
            hosts: (word(64), word(72)),
            interface: half(84),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_again() {
        for (src, dst, ports) in [("10.0.0.1", "255.1.2.3", Some((1, 65_535))), ("fd00::1", "::", None)] {
            for bits in 0..8_u8 {
                let seen = Seen {
                    time: -(1 << 100) - 7,
                    key: u64::MAX - 3,
                    tag: 9,
                    unique: bits & 1 > 0,
                    bytes: 70_000,
                    marked: bits & 2 > 0,
                    ttl: 63,
                    has_data: bits & 4 > 0,
                    flow: (src.parse().unwrap(), dst.parse().unwrap(), 17, ports, ports.map(|_| u32::MAX - 9)),
                    hosts: (1, u64::MAX),
                    interface: 1 << 31,
                };
                let mut bytes = vec![];
                seen.write(&mut bytes);
                assert_eq!((bytes.len(), format!("{:?}", Seen::read(&bytes))), (Seen::BYTES, format!("{seen:?}")));
            }
        }
    }
}
