//! What a packet is recognised by on both sides of a port: what switches, VLANs, ECN, routers and, step by step, NAT leave alone.

use crate::capture::FlowKey;
use crate::input::context::bytes_of;
use fanin_wire::{Frame, Headers};
use serde::Serialize;
use std::net::IpAddr;

/// Congestion experienced. Source: RFC 3168 §5.
const CE: u8 = 3;
/// Of TCP's flags, those that no device sets or clears on the way.
const SYN_FIN_RST: u8 = 0x07;
/// Bytes of payload that tell packets of other protocols than TCP apart.
const PAYLOAD: usize = 16;

/// What of a packet's addresses must be the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// Addresses and ports.
    Flow,
    /// Ports: addresses are rewritten.
    Ports,
    /// Neither: both are rewritten.
    Contents,
}

/// A packet on one side.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// On the clock of its capture [ps].
    pub time: i128,
    /// Equal for the same packet on the other side.
    pub key: u64,
    /// Distinguishes packets of equal key where it was captured; else 0.
    pub tag: u64,
    /// No other packet near it has its key and tag.
    pub unique: bool,
    /// As the queue counts them.
    pub bytes: u32,
    pub marked: bool,
    /// Hops left.
    pub ttl: u8,
    pub has_data: bool,
    pub flow: FlowKey,
    /// Sender and receiver, as numbers.
    pub hosts: (u64, u64),
    /// The interface that it was captured at, as its capture counts them.
    pub interface: u32,
}

/// Mixes a word into a hash. Equal packets get equal keys on any machine.
fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

fn host(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => mix(4, u64::from(v4.to_bits())),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            mix(mix(6, (bits >> 64) as u64), bits as u64)
        }
    }
}

impl Seen {
    /// A frame with those headers, of an interface or mirror session of that number.
    pub fn of(frame: &Frame<'_>, headers: &Headers, number: Option<u32>, matching: Match, without_fcs: bool) -> Seen {
        let hosts = (host(headers.src), host(headers.dst));
        let mut key = mix(u64::from(headers.protocol) | u64::from(headers.fragment) << 8, u64::from(headers.payload));
        if matching == Match::Flow {
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
            tag = payload.map_or(tag, |bytes| bytes.iter().fold(9, |hash, byte| mix(hash, u64::from(*byte))) | 1);
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
            flow: (headers.src, headers.dst, headers.protocol, headers.ports),
            hosts,
            interface: number.unwrap_or(frame.interface as u32),
        }
    }

    /// What tells it from all packets near it.
    pub fn name(&self) -> u64 {
        mix(self.key, self.tag)
    }
}
