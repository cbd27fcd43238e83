//! INT telemetry reports 2.0 in a capture of their datagrams, and the INT-MD 2.1 stacks of the packets in them or beside them.
//!
//! Source: INT, telemetry_report.mdk (group header, individual reports, RepMdBits, inner contents) and INT.mdk (shim, metadata header,
//! instruction bitmap, stack with the last hop on top, all ones for what is not known).
//!
//! Deviation: the port of reports and the mark of INT packets are the operator's; both are recognised by their form. Domain specific
//! metadata are passed over, and so are hop latencies and buffer occupancies: their units are the device's.

use super::captured::{datagram, datagram_in, first_packet, Packets};
use super::repeats::Repeats;
use super::templates::{number, u16_at, u32_at};
use super::{Decode, Feed, PassedOver, Streamed, Tells};
use crate::counters::Interval;
use crate::formats::mapping::{Mapping, Role, Unit};
use crate::input::context::name_of;
use crate::input::problem::Problem;
use fanin_wire::{Headers, LinkType};
use std::collections::BTreeMap;

/// Reports of nodes, in a capture.
pub const REPORTS: Streamed = Streamed { name: "int-report", title: "INT", recognises: is_reports, make, tells: Tells::All };

/// Bytes of the group header, and of the header of a report with the fixed part of its contents.
const GROUP: usize = 8;
const FIXED: usize = 12;
/// Bytes of the INT-MD header.
const MD: usize = 12;
/// Bytes of Ethernet around an IP packet, with the frame check sequence.
const ETHERNET: u64 = 18;
/// Nodes whose numbers are followed, at most.
const NODES: usize = 1 << 16;

/// Bytes of the metadata of each bit of a bitmap, from the highest on.
const SIZES: [usize; 16] = [4, 4, 4, 4, 8, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4];

/// Bytes of metadata of a bitmap.
fn size_of(bits: u16) -> usize {
    SIZES.iter().enumerate().filter(|(bit, _)| bits & 0x8000 >> bit != 0).map(|(_, size)| size).sum()
}

/// Metadata of one hop, as far as they are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hop {
    node: Option<u32>,
    egress: Option<u32>,
    queue: Option<u8>,
    occupancy: Option<u64>,
    stamps: [Option<u64>; 2],
    reason: Option<u8>,
}

/// Reads the metadata of a bitmap; `report`: bit 15 is the reason of a drop, not a checksum.
fn hop(bits: u16, bytes: &[u8], report: bool) -> Hop {
    let (mut hop, mut at) = (Hop::default(), 0);
    for (bit, size) in SIZES.iter().enumerate().filter(|(bit, _)| bits & 0x8000 >> bit != 0) {
        let value = bytes.get(at..at + size).unwrap_or_default();
        at += size;
        // All ones: the node does not know it.
        if value.len() < *size || value.iter().all(|byte| *byte == 0xff) {
            continue;
        }
        match bit {
            0 => hop.node = Some(number(value) as u32),
            1 => hop.egress = Some(number(&value[2..]) as u32),
            3 => (hop.queue, hop.occupancy) = (Some(value[0]), Some(number(&value[1..]))),
            4 | 5 => hop.stamps[bit - 4] = Some(number(value)),
            6 => hop.egress = hop.egress.or(Some(number(&value[4..]) as u32)),
            15 if report => (hop.queue, hop.reason) = (Some(value[0]), Some(value[1])),
            _ => {}
        }
    }
    hop
}

/// Metadata of hops in a packet.
struct Stack<'a> {
    bits: u16,
    /// Bytes of a hop.
    size: usize,
    hops: &'a [u8],
    /// Protocol and ports of the packet as it was before INT.
    protocol: u8,
    ports: Option<(u16, u16)>,
}

/// The INT-MD stack behind a packet's TCP or UDP header.
fn stack<'a>(headers: &Headers, frame: &'a [u8]) -> Option<Stack<'a>> {
    let at = match headers.protocol {
        17 => headers.transport_at + 8,
        6 => headers.payload_at,
        _ => return None,
    };
    let shim = frame.get(at..at.checked_add(4 + MD)?)?;
    let (kind, next, length) = (shim[0] >> 4, shim[0] >> 2 & 3, usize::from(shim[1]) * 4);
    let (version, size) = (shim[4] >> 4, usize::from(shim[6] & 0x1f) * 4);
    let (bits, domain) = (u16_at(shim, 8)?, u16_at(shim, 12)?);
    // What the nodes of a domain add to the metadata that all know has no size that is known.
    let fits = size_of(bits) == size || (domain != 0 && bits != 0 && size_of(bits) < size);
    if kind != 1 || next > 2 || version != 2 || size == 0 || length < MD || (length - MD) % size != 0 || !fits {
        return None;
    }
    let (end, of_shim) = (at + 4 + length, number(&shim[2..4]) as u16);
    let (protocol, ports) = match next {
        // The port that UDP had, or the transport that follows.
        1 => (headers.protocol, headers.ports.map(|ports| (ports.0, of_shim))),
        2 => (of_shim as u8, u16_at(frame, end).zip(u16_at(frame, end + 2))),
        _ => (headers.protocol, headers.ports),
    };
    Some(Stack { bits, size, hops: frame.get(at + 4 + MD..end.min(frame.len()))?, protocol, ports })
}

/// True for datagrams whose reports fill them, as far as they are there.
fn are_reports(datagram: &[u8]) -> bool {
    if datagram.first().is_none_or(|byte| byte >> 4 != 2) || datagram.len() < GROUP + 4 {
        return false;
    }
    let head = &datagram[GROUP..];
    let (kind, inner) = (head[0] >> 4, head[0] & 0xf);
    let (length, metadata) = (usize::from(head[1]), usize::from(head[2]));
    let content = match inner {
        4 => Some(4),
        5 => Some(6),
        _ => None,
    };
    match kind {
        // The packet that stands in it says that it is IP.
        0 => content.is_some_and(|version| head.get(4).is_some_and(|byte| byte >> 4 == version)) && length >= 5,
        1 => {
            let (Some(bits), Some(special)) = (u16_at(head, 4), u16_at(head, 8)) else { return false };
            let known = size_of(bits) == metadata * 4 || (special != 0 && size_of(bits) < metadata * 4);
            bits & 0x8000 == 0 && known && inner <= 5 && length >= 2 + metadata && bits != 0
        }
        _ => false,
    }
}

/// True for a frame that brings reports to a collector.
pub fn is_datagram_of(headers: &Headers, frame: &[u8]) -> bool {
    datagram_in(headers, frame).is_some_and(are_reports)
}

fn is_reports(start: &[u8]) -> bool {
    let Some(packet) = first_packet(start) else { return false };
    let report = datagram(&packet).is_some_and(|(_, datagram)| are_reports(datagram));
    report || Headers::parse(packet.link, packet.data).is_some_and(|headers| stack(&headers, packet.data).is_some())
}

/// Name of the occupancy and of the times in `--columns`.
const OCCUPANCY: &str = "queue-occupancy";
const STAMPS: [&str; 2] = ["ingress-timestamp", "egress-timestamp"];
const HOW: &str = "ask the switch and say it: --columns queue=queue-occupancy:cells(208B), or :B, or :packets(1518B)";

fn make(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    let mut reports = Reports::default();
    for choice in mapping.map(|mapping| mapping.0.as_slice()).unwrap_or_default() {
        let stamp = STAMPS.iter().position(|name| choice.column.eq_ignore_ascii_case(name));
        match (choice.role, choice.unit, stamp) {
            (Role::Queue, Some(Unit::Steps(bytes)), None) if choice.column.eq_ignore_ascii_case(OCCUPANCY) => {
                reports.unit = Some(bytes);
            }
            (Role::Time, Some(Unit::Steps(ps)), Some(stamp)) => reports.clock = Some((stamp, ps)),
            _ => {
                let problem = Problem::new("names no unit that INT leaves open")
                    .column("columns")
                    .value(mapping.map(Mapping::to_string).unwrap_or_default());
                return Err(problem.accepted(
                    "queue=queue-occupancy:UNIT, time=ingress-timestamp:UNIT or time=egress-timestamp:UNIT, for example :ns",
                ));
            }
        }
    }
    Ok(Box::new(reports))
}

/// Decoder of a capture.
#[derive(Default)]
struct Reports {
    packets: Packets,
    /// Bytes of a unit of occupancy.
    unit: Option<u64>,
    /// Place of the stamps that are times, and their unit [ps].
    clock: Option<(usize, u64)>,
    /// Next number of the reports of each node and hardware.
    next: BTreeMap<(u32, u8), u32>,
    repeats: Repeats<(u32, u8)>,
    reports: u64,
    hops: u64,
    dropped: u64,
    congested: u64,
    missing: u64,
    untimed: u64,
    reasons: BTreeMap<u8, u64>,
    over: PassedOver,
}

impl Reports {
    /// Takes what a hop tells; `flow`: the packet's, with its bytes.
    fn hop(
        &mut self,
        hop: Hop,
        captured: u128,
        (dropped, flow): (bool, Option<(u32, u64)>),
        feed: &mut Feed<'_>,
    ) -> Result<(), Problem> {
        self.hops += 1;
        let stamp = match self.clock {
            None => Some(captured),
            Some((place, ps)) => hop.stamps[place].map(|stamp| u128::from(stamp) * u128::from(ps)),
        };
        let Some(time) = stamp else {
            self.untimed += 1;
            return Ok(());
        };
        let time = feed.time(time)?;
        let part = |name: &str, value: Option<u64>| value.map_or(String::new(), |value| format!(" {name} {value}"));
        let port = format!(
            "node{}{}{}",
            hop.node.map_or(" ?".into(), |node| format!(" {node}")),
            part("port", hop.egress.map(u64::from)),
            part("queue", hop.queue.map(u64::from))
        );
        let port = feed.port(port.as_bytes())?;
        if let Some((flow, bytes)) = flow {
            feed.bytes(port, time, flow, bytes);
        }
        let queue = match (hop.occupancy, self.unit) {
            (None, _) => None,
            (Some(occupancy), Some(unit)) => Some(occupancy.saturating_mul(unit)),
            (Some(occupancy), None) => {
                let what = "counts bytes, cells or packets, and a report does not say which";
                return Err(Problem::new(what).column(OCCUPANCY).value(occupancy.to_string()).asks(HOW));
            }
        };
        if queue.is_some() || dropped {
            let dropped = dropped.then_some(1);
            feed.interval(port, Interval { start: time, end: time, queue, dropped, ..Interval::default() });
        }
        Ok(())
    }

    /// Takes a packet: its flow, and what its INT-MD stack tells.
    fn packet(
        &mut self,
        (link, frame): (LinkType, &[u8]),
        captured: u128,
        feed: &mut Feed<'_>,
    ) -> Result<Option<(u32, u64)>, Problem> {
        let Some(headers) = Headers::parse(link, frame) else { return Ok(None) };
        let around = if link == LinkType::Ethernet { 4 } else { ETHERNET };
        let bytes = headers.end as u64 + around;
        let stack = stack(&headers, frame);
        let (protocol, ports) = stack.as_ref().map_or((headers.protocol, headers.ports), |stack| (stack.protocol, stack.ports));
        let name = name_of((headers.src, headers.dst), ports, protocol, headers.wrap.and_then(|wrap| wrap.tenant));
        let flow = (feed.flow(&name)?, bytes);
        if let Some(stack) = stack {
            for metadata in stack.hops.chunks_exact(stack.size) {
                self.hop(hop(stack.bits, metadata, false), captured, (false, Some(flow)), feed)?;
            }
        }
        Ok(Some(flow))
    }

    fn group(&mut self, datagram: &[u8], captured: u128, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let short = || Problem::new("ends within a report: it was cut, or is none");
        let (first, node) = (u32_at(datagram, 0).ok_or_else(short)?, u32_at(datagram, 4).ok_or_else(short)?);
        let (hardware, sequence) = ((first >> 22 & 0x3f) as u8, first & 0x003f_ffff);
        if self.repeats.has((node, hardware), sequence, datagram) {
            return Ok(());
        }
        if self.next.len() < NODES || self.next.contains_key(&(node, hardware)) {
            let expected = self.next.insert((node, hardware), (sequence + 1) & 0x003f_ffff);
            let lost = expected.map_or(0, |expected| sequence.wrapping_sub(expected) & 0x003f_ffff);
            // A number that goes back begins anew.
            self.missing += if lost < 1 << 21 { u64::from(lost) } else { 0 };
        }
        let mut rest = &datagram[GROUP..];
        while !rest.is_empty() {
            let head = rest.get(..4).ok_or_else(short)?;
            let (kind, inner, flags) = (head[0] >> 4, head[0] & 0xf, head[3]);
            let (length, metadata) = (usize::from(head[1]) * 4, usize::from(head[2]) * 4);
            // 255: to the end of the datagram.
            let end = if head[1] == 0xff { rest.len() } else { 4 + length };
            let report = rest.get(..end).ok_or_else(short)?;
            rest = &rest[end..];
            self.reports += 1;
            self.dropped += u64::from(flags & 0x80 != 0);
            self.congested += u64::from(flags & 0x40 != 0);
            let (hop, begin) = match kind {
                0 => (Hop::default(), 4),
                1 => {
                    let bits = u16_at(report, 4).ok_or_else(short)?;
                    let own = report.get(FIXED..FIXED + metadata).ok_or_else(short)?;
                    (hop(bits, own, true), FIXED + metadata)
                }
                other => {
                    self.over.add(|| format!("reports of type {other}"));
                    continue;
                }
            };
            let link = match inner {
                3 => Some(LinkType::Ethernet),
                4 | 5 => Some(LinkType::Raw),
                _ => None,
            };
            let content = report.get(begin..).ok_or_else(short)?;
            let flow = match link {
                Some(link) => self.packet((link, content), captured, feed)?,
                None => None,
            };
            if let Some(reason) = hop.reason {
                *self.reasons.entry(reason).or_default() += 1;
            }
            if kind == 1 {
                self.hop(Hop { node: Some(node), ..hop }, captured, (flags & 0x80 != 0, flow), feed)?;
            }
        }
        Ok(())
    }
}

impl Decode for Reports {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let mut packets = std::mem::take(&mut self.packets);
        let read = packets.read(bytes, (end, "INT"), feed, |packet, feed| {
            let report = datagram(packet).map(|(_, datagram)| datagram).filter(|datagram| are_reports(datagram));
            if let Some(report) = report {
                return self.group(report, packet.time, feed).map(|()| true);
            }
            let has_stack =
                Headers::parse(packet.link, packet.data).is_some_and(|headers| stack(&headers, packet.data).is_some());
            if has_stack {
                self.packet((packet.link, packet.data), packet.time, feed)?;
            }
            Ok(has_stack)
        });
        self.packets = packets;
        // Reports alone do not say where they end.
        Ok(read?.unwrap_or(bytes.len()))
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        let Reports { reports, hops, dropped, congested, .. } = self;
        notes.push(format!(
            "{reports} reports of INT and {hops} hops in them: {dropped} of dropped packets, {congested} of congested queues; packets that \
             nobody reported are unknown, and a queue is known where a reported packet found it"
        ));
        for (count, what) in [
            (self.missing, "reports are missing, by their numbers"),
            (self.repeats.count, "datagrams came twice, and count once"),
            (self.untimed, "hops have no timestamp, and were passed over"),
        ] {
            notes.extend((count > 0).then(|| format!("{count} {what}")));
        }
        self.packets.notes("INT", notes);
        for (reason, count) in &self.reasons {
            notes.push(format!("{count} drops of reason {reason}, which the device's own list explains"));
        }
        self.over.notes(notes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_a_domain_stand_beside_those_of_the_bitmap() {
        let report = |bits: u16, domain: u16, words: u8| {
            let group = [&[0x20, 0, 0, 0, 0, 0, 0, 7, 0x10, 2 + words, words, 0][..], &bits.to_be_bytes(), &[0, 0]].concat();
            [&group[..], &domain.to_be_bytes(), &[0; 4]].concat()
        };
        // Interfaces and occupancy: two words, and what a domain adds.
        for (bits, domain, words, right) in
            [(0x5000, 0, 2, true), (0x5000, 0, 3, false), (0x5000, 9, 3, true), (0x5000, 9, 1, false), (0, 9, 3, false)]
        {
            assert_eq!(are_reports(&report(bits, domain, words)), right, "{bits:#x} {domain} {words}");
        }
        let stacked = |bits: u16, domain: u16| {
            let md =
                [&[0x10, 5, 0, 0, 0x20, 0, 2, 6][..], &bits.to_be_bytes(), &[0; 2], &domain.to_be_bytes(), &[0; 10]].concat();
            let tcp = [&[0; 12][..], &[0x50, 0x10, 0, 0, 0, 0, 0, 0]].concat();
            let ip = [0x45, 0, 0, 64, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            let frame = [&ip[..], &tcp, &md].concat();
            Headers::parse(LinkType::Raw, &frame).is_some_and(|headers| stack(&headers, &frame).is_some())
        };
        let found = [(0x9000, 0), (0x8000, 0), (0x8000, 9), (0, 9), (0xff00, 9)].map(|(bits, domain)| stacked(bits, domain));
        assert_eq!(found, [true, false, true, false, false]);
    }
}
