//! sFlow version 5, with notifications of dropped packets: counters of interfaces, sampled packets, drops.
//!
//! Source: sFlow sflow_version_5.txt (datagram, samples of types 1 to 4, `if_counters`), sflow_drops.txt (type 5, whose source is an
//! expanded one: two words), sflow_transit.txt (depth of the queue that a sampled packet found), and the timestamp of type 1043, all also
//! in sflowtool's sflow.h and sflow_drop.h. Read from a capture of UDP port 6343 (pcap), whose stamps are the times, or from datagrams one
//! behind another, which have the uptime of the agent.
//!
//! sflow-parser 0.7 reads the source of drops as two words as well; it copies each record, and knows no timestamps.

use super::captured::{datagram, datagram_in, first_packet, Packet, Packets};
use super::{Decode, Feed, PassedOver, Streamed, Tells};
use crate::counters::{Interval, Look, Value};
use crate::display::{count as number_of, was};
use crate::formats::mapping::Mapping;
use crate::input::context::name_of;
use crate::input::problem::Problem;
use fanin_units::{BitRate, Time};
use fanin_wire::{Headers, LinkType};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Datagrams, or a capture of them.
pub const SFLOW: Streamed = Streamed { name: "sflow", title: "sFlow 5", recognises: is_sflow, make, tells: Tells::All };

/// UDP port of collectors.
pub const PORT: u16 = 6343;
/// Picoseconds in a millisecond.
const MS: u128 = 1_000_000_000;
/// Samples of a datagram, at most.
const SAMPLES: u32 = 10_000;
/// Agents whose datagrams are followed, at most.
const AGENTS: usize = 4_096;

/// Fields of four bytes in network order, one after another.
#[derive(Clone, Copy)]
struct Words<'a>(&'a [u8]);

/// A message that ends too early.
fn short() -> Problem {
    Problem::new("ends within a field: it was cut, or is no sFlow").accepted("fields as long as they say")
}

impl<'a> Words<'a> {
    fn u32(&mut self) -> Result<u32, Problem> {
        let (word, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*word))
    }

    fn u64(&mut self) -> Result<u64, Problem> {
        Ok(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }

    fn bytes(&mut self, count: u32) -> Result<&'a [u8], Problem> {
        let (bytes, rest) = self.0.split_at_checked(count as usize).ok_or_else(short)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Bytes behind their length, padded to words.
    fn opaque(&mut self) -> Result<&'a [u8], Problem> {
        let length = self.u32()?;
        let bytes = self.bytes(length)?;
        let padding = (4 - length % 4) % 4;
        self.0 = self.0.get(padding as usize..).unwrap_or_default();
        Ok(bytes)
    }

    fn address(&mut self) -> Result<IpAddr, Problem> {
        match self.u32()? {
            1 => Ok(IpAddr::V4(Ipv4Addr::from_bits(self.u32()?))),
            2 => Ok(IpAddr::V6(Ipv6Addr::from_bits(u128::from(self.u64()?) << 64 | u128::from(self.u64()?)))),
            other => {
                Err(Problem::new("is no type of an agent's address").value(other.to_string()).accepted("1 (IPv4), 2 (IPv6)"))
            }
        }
    }
}

/// Length of the datagram at the front of bytes, which have no other end.
///
/// # Errors
/// It has not come whole, or is none.
fn extent(bytes: &[u8]) -> Result<usize, Problem> {
    let mut words = Words(bytes);
    let version = words.u32()?;
    if version != 5 {
        return Err(no_version(version));
    }
    words.address()?;
    words.bytes(12)?;
    let count = words.u32()?;
    if count > SAMPLES {
        return Err(too_many(count));
    }
    for _ in 0..count {
        words.u32()?;
        let length = words.u32()?;
        words.bytes(length)?;
    }
    Ok(bytes.len() - words.0.len())
}

fn no_version(version: u32) -> Problem {
    Problem::new("is no version of sFlow that is read").value(version.to_string()).accepted("5")
}

fn too_many(count: u32) -> Problem {
    Problem::new("is no number of samples in a datagram").value(count.to_string()).accepted(format!("up to {SAMPLES}"))
}

/// True for a frame that brings sFlow to a collector.
pub fn is_datagram_of(headers: &Headers, frame: &[u8]) -> bool {
    headers.ports.is_some_and(|ports| ports.1 == PORT) && datagram_in(headers, frame).is_some_and(is_datagram)
}

/// True for the beginning of a datagram: version, type of the agent's address.
pub fn is_datagram(start: &[u8]) -> bool {
    start.starts_with(&[0, 0, 0, 5, 0, 0, 0, 1]) || start.starts_with(&[0, 0, 0, 5, 0, 0, 0, 2])
}

fn is_sflow(start: &[u8]) -> bool {
    if is_datagram(start) {
        return true;
    }
    first_packet(start).and_then(|packet| datagram_of(&packet)).is_some_and(is_datagram)
}

fn make(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    super::no_columns(mapping, "sFlow")?;
    Ok(Box::new(Sflow::default()))
}

/// The sFlow datagram in a packet.
fn datagram_of<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    datagram(packet).filter(|(headers, _)| headers.ports.is_some_and(|ports| ports.1 == PORT)).map(|(_, datagram)| datagram)
}

/// An agent: the numbers that follow one another, and what it tells.
#[derive(Debug, Default)]
struct Agent {
    sequence: Option<u32>,
    /// True once it has told a drop: its counters of drops are those drops again.
    notifies: bool,
    /// Drops that it could not tell, by its own count.
    untold: u32,
}

/// Decoder of datagrams.
#[derive(Default)]
struct Sflow {
    packets: Packets,
    agents: BTreeMap<(IpAddr, u32), Agent>,
    datagrams: u64,
    /// Datagrams that an agent sent and that are not here, and those that came too late.
    missing: u64,
    late: u64,
    reasons: BTreeMap<u32, u64>,
    over: PassedOver,
}

/// A sample's context: the agent, its address, the time.
#[derive(Clone, Copy)]
struct Sample {
    agent: (IpAddr, u32),
    time: Time,
}

/// Reasons of drops that a queue is behind, by sflow_drops.txt: the buffer is full, RED, shaping, others of the buffer.
const OF_QUEUES: [u32; 4] = [259, 260, 261, 287];

impl Sflow {
    fn port(&self, sample: Sample, index: u32, feed: &mut Feed<'_>) -> Result<u32, Problem> {
        feed.port(format!("{} if {index}", sample.agent.0).as_bytes())
    }

    /// Reads a datagram; `captured`: its time, where it was captured.
    fn datagram(&mut self, bytes: &[u8], captured: Option<u128>, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let mut words = Words(bytes);
        let version = words.u32()?;
        if version != 5 {
            return Err(no_version(version));
        }
        let address = words.address()?;
        let (sub, sequence, uptime, count) = (words.u32()?, words.u32()?, words.u32()?, words.u32()?);
        if count > SAMPLES {
            return Err(too_many(count));
        }
        let time = feed.time(captured.unwrap_or(u128::from(uptime) * MS))?;
        let key = (address, sub);
        if self.agents.len() >= AGENTS && !self.agents.contains_key(&key) {
            return Err(Problem::new(format!("is one agent too many: {AGENTS} are accepted")).value(address.to_string()));
        }
        let agent = self.agents.entry(key).or_default();
        let mut is_late = false;
        match agent.sequence.map(|last| sequence.wrapping_sub(last)) {
            None | Some(1) => {}
            // The number begins anew with the agent.
            Some(_) if sequence <= 1 => {}
            Some(ahead @ 2..=0x7fff_ffff) => self.missing += u64::from(ahead - 1),
            Some(_) => {
                self.late += 1;
                is_late = true;
            }
        }
        self.datagrams += 1;
        if !is_late {
            agent.sequence = Some(sequence);
        }
        let sample = Sample { agent: key, time };
        for _ in 0..count {
            let (kind, length) = (words.u32()?, words.u32()?);
            let body = Words(words.bytes(length)?);
            // What comes late has been overtaken by later counters.
            if is_late {
                continue;
            }
            match kind {
                1 => self.flow(body, false, sample, feed)?,
                2 => self.counters(body, false, sample, feed)?,
                3 => self.flow(body, true, sample, feed)?,
                4 => self.counters(body, true, sample, feed)?,
                5 => self.drop(body, sample, feed)?,
                other => self.over.add(|| format!("samples of type {}:{}", other >> 12, other & 0xfff)),
            }
        }
        Ok(())
    }

    /// Counters of an interface.
    fn counters(&mut self, mut words: Words<'_>, expanded: bool, sample: Sample, feed: &mut Feed<'_>) -> Result<(), Problem> {
        words.u32()?;
        words.bytes(if expanded { 8 } else { 4 })?;
        for _ in 0..words.u32()? {
            let (kind, length) = (words.u32()?, words.u32()?);
            let mut body = Words(words.bytes(length)?);
            if kind != 1 {
                self.over.add(|| format!("counters of type {}:{}", kind >> 12, kind & 0xfff));
                continue;
            }
            let (index, _, speed) = (body.u32()?, body.u32()?, body.u64()?);
            // Direction, status, and seven counters of what came in: the octets of 8 bytes, six of 4.
            body.bytes(8 + 8 + 6 * 4)?;
            let octets = body.u64()?;
            // Unicast, multicast, broadcast.
            let packets = [body.u32()?, body.u32()?, body.u32()?];
            let discards = body.u32()?;
            let port = self.port(sample, index, feed)?;
            if speed > 0 && speed < 100_000_000_000_000 {
                feed.speed(port, BitRate(speed));
            }
            // A counter that the agent does not keep is all ones.
            let known = |value: u32| (value != u32::MAX).then_some(value);
            let notifies = self.agents.get(&sample.agent).is_some_and(|agent| agent.notifies);
            let look = Look {
                time: sample.time,
                sent: (octets != u64::MAX).then_some(Value::Total(octets, Some(64))),
                packets: known(packets[0]).map(|count| Value::Total(count.into(), Some(32))),
                dropped: known(discards).filter(|_| !notifies).map(|count| Value::Total(count.into(), Some(32))),
                ..Look::default()
            };
            feed.look(port, &look);
        }
        Ok(())
    }

    /// A sampled packet.
    fn flow(&mut self, mut words: Words<'_>, expanded: bool, sample: Sample, feed: &mut Feed<'_>) -> Result<(), Problem> {
        words.u32()?;
        words.bytes(if expanded { 8 } else { 4 })?;
        let rate = words.u32()?;
        words.bytes(8)?;
        // Where it leaves: an interface; or it was dropped, or there are several.
        let output = if expanded {
            words.bytes(8)?;
            (words.u32()?, words.u32()?)
        } else {
            words.u32()?;
            let output = words.u32()?;
            (output >> 30, output & 0x3fff_ffff)
        };
        let output = Some(output.1).filter(|index| output.0 == 0 && *index != 0 && *index != 0x3fff_ffff);
        let records = self.records(words, feed)?;
        let Some(port) = output.map(|index| self.port(sample, index, feed)).transpose()? else { return Ok(()) };
        let time = records.time.unwrap_or(sample.time);
        if let Some((flow, bytes)) = records.flow {
            feed.bytes(port, time, flow, bytes.saturating_mul(u64::from(rate.max(1))));
        }
        if let Some(depth) = records.depth {
            feed.interval(port, Interval { start: sample.time, end: sample.time, queue: Some(depth), ..Interval::default() });
        }
        Ok(())
    }

    /// A packet that was dropped.
    fn drop(&mut self, mut words: Words<'_>, sample: Sample, feed: &mut Feed<'_>) -> Result<(), Problem> {
        words.u32()?;
        // The source is an expanded one: its type and its index.
        words.bytes(8)?;
        let (untold, _, output, reason) = (words.u32()?, words.u32()?, words.u32()?, words.u32()?);
        let records = self.records(words, feed)?;
        *self.reasons.entry(reason).or_default() += 1;
        if let Some(agent) = self.agents.get_mut(&sample.agent) {
            agent.notifies = true;
            agent.untold = agent.untold.max(untold);
        }
        if output == 0 || !OF_QUEUES.contains(&reason) {
            return Ok(());
        }
        let port = self.port(sample, output, feed)?;
        if let Some((flow, bytes)) = records.flow {
            feed.bytes(port, sample.time, flow, bytes);
        }
        let dropped = Some(1);
        feed.interval(
            port,
            Interval { start: sample.time, end: sample.time, dropped, queue: records.depth, ..Interval::default() },
        );
        Ok(())
    }

    /// The records of a sampled or dropped packet.
    fn records(&mut self, mut words: Words<'_>, feed: &mut Feed<'_>) -> Result<Records, Problem> {
        let mut records = Records::default();
        for _ in 0..words.u32()? {
            let (kind, length) = (words.u32()?, words.u32()?);
            let mut body = Words(words.bytes(length)?);
            match kind {
                // Header: its protocol (1: Ethernet), the frame's length, bytes taken off, the bytes.
                1 => {
                    let (protocol, frame, _) = (body.u32()?, body.u32()?, body.u32()?);
                    let header = body.opaque()?;
                    let link = if protocol == 1 { LinkType::Ethernet } else { LinkType::Raw };
                    let headers = Headers::parse(link, header);
                    let name = headers.map(|h| name_of((h.src, h.dst), h.ports, h.protocol, h.wrap.and_then(|wrap| wrap.tenant)));
                    if let Some(name) = name {
                        records.flow = Some((feed.flow(&name)?, u64::from(frame)));
                    }
                }
                1040 => records.depth = Some(u64::from(body.u32()?)),
                1043 => records.time = Some(feed.time(u128::from(body.u64()?) * 1_000)?),
                _ => {}
            }
        }
        Ok(records)
    }
}

/// Facts about a packet.
#[derive(Default)]
struct Records {
    /// The flow, and bytes of the frame.
    flow: Option<(u32, u64)>,
    depth: Option<u64>,
    time: Option<Time>,
}

impl Decode for Sflow {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let mut packets = std::mem::take(&mut self.packets);
        let read = packets.read(bytes, (end, "sFlow"), feed, |packet, feed| match datagram_of(packet) {
            Some(datagram) => self.datagram(datagram, Some(packet.time), feed).map(|()| true),
            None => Ok(false),
        });
        self.packets = packets;
        if let Some(used) = read? {
            return Ok(used);
        }
        let mut at = 0;
        while at < bytes.len() {
            match extent(&bytes[at..]) {
                Ok(length) => {
                    feed.pass(at + length);
                    let read = self.datagram(&bytes[at..at + length], None, feed).map(|()| true);
                    let place = format!("datagram {}", self.datagrams.max(1));
                    self.packets.wrong.take(read.map_err(|problem| problem.place(place)), feed)?;
                    at += length;
                }
                // The rest is still to come, or was cut.
                Err(problem) if problem == short() && (!end || self.datagrams > 0) => break,
                Err(problem) => return Err(problem.place(format!("datagram {}", self.datagrams + 1))),
            }
        }
        if end {
            self.packets.wrong.end()?;
        }
        Ok(at)
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        let agents = self.agents.len();
        notes.push(format!(
            "{} of sFlow from {}: counters are as old as an agent keeps them (up to a second), and flows are samples",
            number_of(self.datagrams, "datagram"),
            number_of(agents as u64, "agent")
        ));
        if self.missing > 0 || self.late > 0 {
            notes.push(format!(
                "{} {} missing, and {} came too late and {} passed over",
                number_of(self.missing, "datagram"),
                if self.missing == 1 { "is" } else { "are" },
                self.late,
                was(self.late)
            ));
        }
        self.packets.notes("sFlow", notes);
        for (reason, count) in &self.reasons {
            let is_queue = OF_QUEUES.contains(reason);
            let kind = if is_queue { "" } else { ", which no queue is behind" };
            notes.push(format!("{} that agents told: {}{kind}", number_of(*count, "drop"), reason_name(*reason)));
        }
        let untold: u64 = self.agents.values().map(|agent| u64::from(agent.untold)).sum();
        if untold > 0 {
            notes.push(format!(
                "{untold} more {} that agents did not tell, as they were too many",
                if untold == 1 { "drop" } else { "drops" }
            ));
        }
        self.over.notes(notes);
    }
}

/// Name of a reason, by sflow_drops.txt.
fn reason_name(reason: u32) -> String {
    let name = match reason {
        256 => "unknown",
        257 => "TTL exceeded",
        258 => "ACL",
        259 => "no buffer space",
        260 => "RED",
        261 => "traffic shaping",
        262 => "packet too big",
        287 => "buffer",
        _ => return format!("reason {reason}"),
    };
    format!("{name} ({reason})")
}
