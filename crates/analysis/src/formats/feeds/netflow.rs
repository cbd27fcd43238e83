//! Flow records of NetFlow 9 and IPFIX: who talked through which interface, in bytes by interval; nothing of queues.
//!
//! Source: RFC 3954 (NetFlow 9), RFC 7011 (IPFIX), RFC 5102 and IANA's registry of IPFIX elements (octets 1 and 85, addresses 8, 12, 27, 28,
//! ports 7 and 11, protocol 4, egress interface 14, times 21, 22, 150 to 157, sampling 34), RFC 5477 (sampling 305 and 306). Read from messages
//! one behind another, or from a capture of UDP.
//!
//! Deviation: bytes of a flow are spread evenly over its time. netflow_parser decodes each field of each record into values that own their
//! bytes; the templates are those that SONiC's IPFIX needs, too.

use super::captured::{datagram, datagram_in, first_packet, Packets};
use super::repeats::Repeats;
use super::templates::{self, number, set, u16_at, u32_at, Field, FIELDS, HEADER, VARIABLE};
use super::{no_columns, Decode, Feed, PassedOver, Streamed, Tells};
use crate::counters::{Interval, State};
use crate::display::count as number_of;
use crate::formats::mapping::Mapping;
use crate::input::context::name_of;
use crate::input::problem::Problem;
use fanin_units::Time;
use fanin_wire::Headers;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Messages, or a capture of them.
pub const NETFLOW: Streamed = Streamed { name: "netflow", title: "NetFlow", recognises: is_netflow, make, tells: Tells::All };

/// Length of the intervals that bytes are summed over [ps].
const BIN: u128 = 10_000_000_000_000;
/// Time after the end of an interval in which records of it may come: half an hour of active flows, and a minute of export [ps].
const LATE: u128 = 1_860_000_000_000_000;
/// Intervals of one record, at most: a day.
const SPAN: u128 = 8_640;
/// Bytes by flow that are held for intervals that are open, at most.
const HELD: usize = 1 << 20;
/// Exporters whose numbers are followed, and interfaces that are told apart, at most.
const NODES: usize = 1 << 16;
/// Bytes of the header of NetFlow 9.
const HEADER_9: usize = 20;
/// UDP port of collectors, and others at which they listen by custom.
pub const PORT: u16 = 2055;
const PORTS: [u16; 5] = [PORT, 4739, 9555, 9995, 9996];

const MS: u128 = 1_000_000_000;
const S: u128 = 1_000_000_000_000;
/// Milliseconds after which an uptime begins anew.
const TURN: u64 = 1 << 32;

/// True for a message of NetFlow 9 with a set of templates or data.
pub fn is_version_9(start: &[u8]) -> bool {
    u16_at(start, 0) == Some(9) && is_message(start)
}

/// True for a message of flows: NetFlow 9 with a set of templates or data, or IPFIX that begins with a template that has addresses or octets.
fn is_message(start: &[u8]) -> bool {
    match u16_at(start, 0) {
        Some(9) => match (u16_at(start, 2), u16_at(start, HEADER_9), u16_at(start, HEADER_9 + 2)) {
            (Some(1..=1000), Some(0 | 1 | 256..), Some(4..)) => u32_at(start, 8).is_some_and(|seconds| seconds > 978_307_200),
            _ => false,
        },
        Some(10) => {
            let mut flows = false;
            if u16_at(start, HEADER) == Some(2) {
                let rest = start.get(HEADER + 4..).unwrap_or_default();
                let length = u16_at(start, HEADER + 2).unwrap_or(0);
                let body = &rest[..rest.len().min(usize::from(length).saturating_sub(4))];
                let is_flow = |field: &Field| field.enterprise.is_none() && matches!(field.element, 1 | 8 | 27 | 85);
                // A template that goes on behind the start is enough as far as it is there.
                let _ = templates::templates(body, true, |_, fields| {
                    flows |= fields.iter().any(is_flow);
                    Ok(())
                });
                flows |= cut_template_has_flows(body);
            }
            flows
        }
        _ => false,
    }
}

/// True for a frame that brings flows to a collector.
pub fn is_datagram_of(headers: &Headers, frame: &[u8]) -> bool {
    let known = headers.ports.is_some_and(|ports| PORTS.contains(&ports.1));
    known && datagram_in(headers, frame).is_some_and(is_message)
}

/// True if the first template, of which the end may be missing, has an address or octets among its first fields.
fn cut_template_has_flows(body: &[u8]) -> bool {
    let mut at = 4;
    while let Some(element) = u16_at(body, at) {
        if matches!(element, 1 | 8 | 27 | 85) {
            return true;
        }
        at += if element & 0x8000 != 0 { 8 } else { 4 };
    }
    false
}

fn is_netflow(start: &[u8]) -> bool {
    is_message(start)
        || first_packet(start).is_some_and(|packet| {
            Headers::parse(packet.link, packet.data).is_some_and(|headers| is_datagram_of(&headers, packet.data))
        })
}

fn make(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "NetFlow")?;
    Ok(Box::new(Flows::default()))
}

/// Values of one record so far.
#[derive(Clone, Debug, Default)]
struct Record {
    octets: Option<u64>,
    total: bool,
    src: Option<IpAddr>,
    dst: Option<IpAddr>,
    ports: (u16, u16),
    has_ports: bool,
    protocol: u8,
    egress: Option<u32>,
    /// Begin and end [ps]; those by uptime [ms].
    times: [Option<u128>; 2],
    uptimes: [Option<u64>; 2],
    /// One of so many packets is counted.
    sampling: Option<u64>,
    /// Packets that are counted one behind another, and those that are left out behind them.
    counted: Option<u64>,
    left_out: Option<u64>,
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => bytes.first_chunk::<4>().map(|b| IpAddr::V4(Ipv4Addr::from(*b))),
        16 => bytes.first_chunk::<16>().map(|b| IpAddr::V6(Ipv6Addr::from(*b))),
        _ => None,
    }
}

impl Record {
    fn take(&mut self, element: u16, bytes: &[u8]) {
        let value = || if bytes.len() <= 8 { Some(number(bytes)) } else { None };
        let in_units = |unit: u128| value().map(|value| u128::from(value) * unit);
        // Seconds and a fraction of 2^32 (NTP); the times of this century.
        let of_ntp = || {
            let (seconds, fraction) = (u32_at(bytes, 0)?, u32_at(bytes, 4)?);
            let since_1970 = u128::from(seconds).checked_sub(2_208_988_800)?;
            Some(since_1970 * S + ((u128::from(fraction) * S) >> 32))
        };
        match element {
            1 => (self.octets, self.total) = (value(), false),
            85 if self.octets.is_none() => (self.octets, self.total) = (value(), true),
            4 => self.protocol = value().unwrap_or(0) as u8,
            7 => (self.ports.0, self.has_ports) = (value().unwrap_or(0) as u16, true),
            11 => (self.ports.1, self.has_ports) = (value().unwrap_or(0) as u16, true),
            8 | 27 => self.src = address(bytes),
            12 | 28 => self.dst = address(bytes),
            14 => self.egress = value().map(|value| value as u32),
            34 => self.sampling = value().filter(|value| *value > 0),
            305 => self.counted = value().filter(|value| *value > 0),
            306 => self.left_out = value(),
            21 => self.uptimes[1] = value(),
            22 => self.uptimes[0] = value(),
            150 => self.times[0] = in_units(S),
            151 => self.times[1] = in_units(S),
            152 => self.times[0] = in_units(MS),
            153 => self.times[1] = in_units(MS),
            154 | 156 => self.times[0] = of_ntp(),
            155 | 157 => self.times[1] = of_ntp(),
            _ => {}
        }
    }

    /// Bytes of all packets by those of the packets that were counted, as a fraction.
    ///
    /// Source: RFC 5477 §8.2.2 and 8.2.3: of 305 and 306 packets in turn, 305 are counted.
    fn scale(&self) -> (u64, u64) {
        match (self.sampling, self.counted, self.left_out) {
            (Some(one_of), _, _) => (one_of, 1),
            (None, Some(counted), Some(left_out)) => (counted.saturating_add(left_out), counted),
            _ => (1, 1),
        }
    }
}

/// A template: its fields, but for those without bytes, and the fewest bytes of a record.
#[derive(Clone, Debug)]
struct Template {
    fields: Arc<[Field]>,
    shortest: usize,
    /// True if its records tell of the exporter.
    options: bool,
}

impl Template {
    fn of(fields: &[Field], options: bool) -> Template {
        let fields: Arc<[Field]> = fields.iter().copied().filter(|field| field.length > 0).collect();
        let least = |field: &Field| if field.length == VARIABLE { 1 } else { usize::from(field.length) };
        Template { shortest: fields.iter().map(least).sum(), fields, options }
    }

    /// Part of [`FIELDS`]: a template without fields takes room, too.
    fn room(&self) -> usize {
        1 + self.fields.len()
    }
}

/// Bytes of flows at a port in the intervals that are open, by the number of the interval; and the end of the last one that was told.
#[derive(Clone, Debug, Default)]
struct Bins {
    open: BTreeMap<u64, BTreeMap<u32, u64>>,
    told: Option<u64>,
}

/// Decoder of messages.
#[derive(Default)]
struct Flows {
    packets: Packets,
    templates: BTreeMap<(Source, u16), Template>,
    /// Room of all templates.
    room: usize,
    ports: BTreeMap<String, Bins>,
    held: usize,
    /// Latest time of export [ps]; intervals before this number are over.
    latest: u128,
    over_before: u64,
    messages: u64,
    records: u64,
    late: u64,
    /// Expected numbers of messages, and those that are missing.
    next: BTreeMap<Source, u32>,
    missing: u64,
    repeats: Repeats<Source>,
    /// True once there were records of IPFIX that were not counted.
    uncounted: bool,
    sampled: u64,
    unscaled: u64,
    /// Messages of which a capture has only the beginning.
    cut: u64,
    over: PassedOver,
}

/// An exporter: its address where it was captured, its domain, the version.
type Source = (Option<IpAddr>, u32, u16);

/// A message's times: that of its export [ps], and when the exporter was switched on [ps].
#[derive(Clone, Copy)]
struct Clock {
    export: u128,
    boot: Option<u128>,
    /// Time since then, of 32 bits [ms].
    uptime: u64,
}

impl Flows {
    /// Length of the message at the front of bytes; none where more has to come.
    fn length(bytes: &[u8], end: bool) -> Result<Option<usize>, Problem> {
        let (Some(version), Some(count)) = (u16_at(bytes, 0), u16_at(bytes, 2)) else { return Ok(None) };
        match version {
            10 if usize::from(count) < HEADER => {
                let problem = Problem::new("is no length of an IPFIX message").column("length").value(count.to_string());
                Err(problem.accepted("16 bytes and more"))
            }
            10 => Ok(Some(usize::from(count)).filter(|length| *length <= bytes.len())),
            9 => {
                // NetFlow 9 does not say its length: its sets end where another message or the bytes do.
                let mut behind = HEADER_9;
                while let (Some(id), Some(size)) = (u16_at(bytes, behind), u16_at(bytes, behind + 2)) {
                    if matches!(id, 9 | 10) {
                        break;
                    }
                    if size < 4 {
                        let problem = Problem::new("is no length of a set").column(format!("set {id}")).value(size.to_string());
                        return Err(problem.accepted("4 bytes and more"));
                    }
                    behind += usize::from(size);
                }
                let is_whole = behind <= bytes.len() && bytes.len() - behind >= 4;
                Ok(if is_whole || (end && bytes.len() >= HEADER_9) { Some(behind.min(bytes.len())) } else { None })
            }
            other => {
                let problem = Problem::new("is no version of NetFlow that is read").column("version").value(other.to_string());
                Err(problem.accepted("9, 10 (IPFIX)"))
            }
        }
    }

    /// Reads a whole message.
    fn message(&mut self, message: &[u8], source: Option<IpAddr>, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let word = |at: usize| u32_at(message, at).unwrap_or(0);
        let version = u16_at(message, 0).unwrap_or(0);
        let export = u128::from(word(if version == 10 { 4 } else { 8 })) * S;
        let (source, clock, sequence, header) = if version == 10 {
            ((source, word(12), 10), Clock { export, boot: None, uptime: 0 }, word(8), HEADER)
        } else {
            let boot = export.checked_sub(u128::from(word(4)) * MS);
            ((source, word(16), 9), Clock { export, boot, uptime: word(4).into() }, word(12), HEADER_9)
        };
        if self.repeats.has(source, sequence, message) {
            return Ok(());
        }
        let before = self.records;
        self.latest = self.latest.max(clock.export);
        let mut rest = &message[header..];
        while let Some((id, body, behind)) = set(rest)? {
            match (version, id) {
                (10, 2) | (9, 0) => self.template_set(body, source)?,
                (10, 3) | (9, 1) => self.options_set(body, source)?,
                (_, 256..) => self.data(body, (source, id), clock, feed)?,
                (_, other) => self.over.add(|| format!("sets of the number {other}")),
            }
            rest = behind;
        }
        // IPFIX counts records, NetFlow 9 messages.
        let step = if version == 10 { (self.records - before) as u32 } else { 1 };
        if self.next.len() < NODES || self.next.contains_key(&source) {
            let expected = self.next.insert(source, sequence.wrapping_add(step));
            let lost = expected.map_or(0, |expected| sequence.wrapping_sub(expected));
            let is_counted = lost < 1 << 31 && (version == 9 || !self.uncounted);
            self.missing += if is_counted { u64::from(lost) } else { 0 };
        }
        self.messages += 1;
        self.emit(false, feed)
    }

    fn template_set(&mut self, body: &[u8], source: Source) -> Result<(), Problem> {
        templates::templates(body, source.2 == 10, |id, fields| {
            for field in fields.iter().filter(|field| field.length == 0 && field.enterprise.is_none()) {
                self.over.add(|| format!("fields of no bytes in templates (element {} of template {id})", field.element));
            }
            self.keep((source, id), (!fields.is_empty()).then(|| Template::of(fields, false)))
        })
    }

    /// Templates of options are only known by number: their records are not read.
    fn options_set(&mut self, body: &[u8], source: Source) -> Result<(), Problem> {
        self.uncounted = true;
        match u16_at(body, 0) {
            Some(id @ 256..) => self.keep((source, id), Some(Template::of(&[], true))),
            _ => Ok(()),
        }
    }

    /// Keeps a template in place of the one before, or none.
    fn keep(&mut self, key: (Source, u16), template: Option<Template>) -> Result<(), Problem> {
        self.room -= self.templates.remove(&key).map_or(0, |before| before.room());
        let Some(template) = template else { return Ok(()) };
        if self.room + template.room() > FIELDS {
            return Err(Problem::new(format!("is one field too many: templates may have {FIELDS}")).value(key.1.to_string()));
        }
        self.room += template.room();
        self.templates.insert(key, template);
        Ok(())
    }

    fn data(&mut self, mut body: &[u8], key: (Source, u16), clock: Clock, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let Some(template) = self.templates.get(&key) else {
            self.uncounted = true;
            self.over.add(|| format!("sets of template {}, which was not told before", key.1));
            return Ok(());
        };
        let shortest = template.shortest;
        if template.options || shortest == 0 || body.len() < shortest {
            return Ok(());
        }
        let fields = template.fields.clone();
        // What is shorter than a record is padding. Each field has a byte and more, which bounds what a message costs.
        while body.len() >= shortest {
            let (mut record, mut at) = (Record::default(), 0);
            for field in &*fields {
                let length = match (field.length, body.get(at)) {
                    (VARIABLE, Some(255)) => {
                        at += 3;
                        u16_at(body, at - 2).map(usize::from)
                    }
                    (VARIABLE, Some(length)) => {
                        at += 1;
                        Some(usize::from(*length))
                    }
                    (VARIABLE, None) => None,
                    (length, _) => Some(usize::from(length)),
                };
                let Some(value) = length.and_then(|length| body.get(at..at + length)) else {
                    let problem = Problem::new("ends within a record").column(format!("template {}", key.1));
                    return Err(problem
                        .value(format!("field {}", field.element))
                        .accepted("fields of the length that the template or the record says"));
                };
                at += value.len();
                if field.enterprise.is_none() {
                    record.take(field.element, value);
                }
            }
            body = &body[at..];
            self.records += 1;
            self.record(&record, key.0, clock, feed)?;
        }
        Ok(())
    }

    /// Spreads the bytes of a record over its time.
    fn record(&mut self, record: &Record, source: Source, clock: Clock, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let Some(octets) = record.octets.filter(|_| !record.total) else {
            let what = if record.total { ", only since the flow began (85)" } else { "" };
            self.over.add(|| format!("records without octets since the one before (1){what}"));
            return Ok(());
        };
        let (Some(src), Some(dst)) = (record.src, record.dst) else {
            self.over.add(|| "records without addresses (8 and 12, or 27 and 28)".into());
            return Ok(());
        };
        let Some(egress) = record.egress else {
            self.over.add(|| "records without the interface they leave at (14)".into());
            return Ok(());
        };
        // Times by uptime turn over after 49.7 days; a record is of a time before its export.
        let by_uptime = |place: usize| {
            let uptime = record.uptimes[place]?;
            let turned = if uptime.saturating_sub(clock.uptime) > TURN / 2 { u128::from(TURN) * MS } else { 0 };
            (clock.boot? + u128::from(uptime) * MS).checked_sub(turned)
        };
        let [begin, end] = [0, 1].map(|place| record.times[place].or_else(|| by_uptime(place)));
        let Some(end) = end.or(begin) else {
            self.over.add(|| "records without a time (21, 22, 150 to 157)".into());
            return Ok(());
        };
        let begin = begin.unwrap_or(end);
        if begin > end {
            self.over.add(|| "records that end before they begin".into());
            return Ok(());
        }
        // An interval ends before its last moment, which begins the next one.
        let (first, last) = (begin / BIN, end.max(begin + 1).saturating_sub(1) / BIN);
        if end > clock.export + 60 * S {
            self.over.add(|| "records whose time ends after their export: a clock is wrong".into());
            return Ok(());
        }
        if last - first > SPAN {
            self.over.add(|| "records that last longer than a day".into());
            return Ok(());
        }
        // Intervals that are over, or will be behind this message, are not walked through.
        let from = first.max(u128::from(self.over_before)).max(self.latest.saturating_sub(LATE) / BIN);
        self.late += (from.min(last + 1) - first) as u64;
        if from > last {
            return Ok(());
        }
        // The earliest is the beginning of the trace; one that is earlier still, as a stream brings it, comes too late.
        if feed.time(from * BIN).is_err() {
            self.late += 1;
            return Ok(());
        }
        let (all, counted) = record.scale();
        self.sampled += u64::from(all > counted);
        self.unscaled += u64::from(record.sampling.is_none() && record.counted.is_some() && record.left_out.is_none());
        let octets = u64::try_from(u128::from(octets) * u128::from(all) / u128::from(counted)).unwrap_or(u64::MAX);
        let ports = record.has_ports.then_some(record.ports);
        let flow = feed.flow(&name_of((src, dst), ports, record.protocol, None))?;
        let exporter = source.0.map_or_else(|| format!("domain {}", source.1), |address| address.to_string());
        let name = format!("{exporter} if {egress}");
        if self.ports.len() >= NODES && !self.ports.contains_key(&name) {
            self.over.add(|| format!("records of further interfaces than {NODES}"));
            return Ok(());
        }
        let bins = self.ports.entry(name).or_default();
        let length = end - begin;
        // Bytes before a time within the record.
        let before = |time: u128| if time < end { (u128::from(octets) * (time - begin) / length) as u64 } else { octets };
        let mut told = if from > first { before(from * BIN) } else { 0 };
        for bin in from..=last {
            let share = before((bin + 1) * BIN);
            let (bytes, number) = (share - told, bin as u64);
            told = share;
            let is_open = bins.open.get(&number).is_some_and(|flows| flows.contains_key(&flow));
            if !is_open && self.held >= HELD {
                self.over.add(|| "parts of flows: too many are open at once".into());
                continue;
            }
            self.held += usize::from(!is_open);
            let sum = bins.open.entry(number).or_default().entry(flow).or_default();
            *sum = sum.saturating_add(bytes);
        }
        Ok(())
    }

    /// Tells the intervals that are over; `all`: nothing more comes.
    fn emit(&mut self, all: bool, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let before = if all { u64::MAX } else { (self.latest.saturating_sub(LATE) / BIN) as u64 };
        if before <= self.over_before {
            return Ok(());
        }
        self.over_before = before;
        for (name, bins) in &mut self.ports {
            let open = bins.open.split_off(&before);
            for (bin, flows) in std::mem::replace(&mut bins.open, open) {
                self.held -= flows.len();
                let [start, end] = [u128::from(bin), u128::from(bin) + 1].map(|bin| feed.time(bin * BIN));
                let (start, end): (Time, Time) = (start?, end?);
                let port = feed.port(name.as_bytes())?;
                if let Some(told) = bins.told.replace(bin + 1).filter(|told| *told < bin) {
                    // No flow was told: that is no zero.
                    let since = feed.time(u128::from(told) * BIN)?;
                    feed.interval(port, Interval::unknown(since, start, State::Gap));
                }
                let sent = flows.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
                for (flow, bytes) in flows {
                    feed.bytes(port, start, flow, bytes);
                }
                feed.interval(port, Interval { start, end, sent: Some(sent), state: State::Known, ..Interval::default() });
            }
        }
        Ok(())
    }
}

impl Decode for Flows {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let mut packets = std::mem::take(&mut self.packets);
        let read = packets.read(bytes, (end, "NetFlow"), feed, |packet, feed| {
            let known = |ports: (u16, u16)| PORTS.contains(&ports.1);
            let Some((headers, datagram)) = datagram(packet).filter(|(headers, _)| headers.ports.is_some_and(known)) else {
                return Ok(false);
            };
            let length = if headers.end > packet.data.len() { None } else { Self::length(datagram, true)? };
            match length {
                Some(length) => self.message(&datagram[..length], Some(headers.src), feed)?,
                None => self.cut += 1,
            }
            Ok(true)
        });
        self.packets = packets;
        let used = match read? {
            Some(used) => used,
            None => {
                let placed = |problem: Problem, messages: u64| problem.place(format!("message {}", messages + 1));
                let mut at = 0;
                while let Some(length) = Self::length(&bytes[at..], end).map_err(|problem| placed(problem, self.messages))? {
                    feed.pass(at + length);
                    let read = self.message(&bytes[at..at + length], None, feed).map(|()| true);
                    self.packets.wrong.take(read.map_err(|problem| placed(problem, self.messages)), feed)?;
                    at += length;
                }
                if end {
                    self.packets.wrong.end()?;
                }
                at
            }
        };
        if end {
            self.emit(true, feed)?;
        }
        Ok(used)
    }

    fn is_read_whole(&self) -> bool {
        true
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        notes.push(format!(
            "{} of flows in {}, spread over their time and summed over 10 s: loads are means, of queues nothing is known, and \
             an interval in which no flow was told is unknown",
            number_of(self.records, "record"),
            number_of(self.messages, "message")
        ));
        for (count, one, many) in [
            (
                self.missing,
                "message or record is missing, by the numbers: loads are lower bounds",
                "messages or records are missing, by their numbers: loads are lower bounds",
            ),
            (self.repeats.count, "message came twice, and counts once", "messages came twice, and count once"),
            (
                self.late,
                "part of a record came after its interval was told, and was passed over",
                "parts of records came after their interval was told, and were passed over",
            ),
            (
                self.sampled,
                "record is of sampled packets, and was multiplied by the rate that it says",
                "records are of sampled packets, and were multiplied by the rate that they say",
            ),
            (
                self.unscaled,
                "record says how many packets were counted one behind another (305), not how many were left out (306): its bytes are those of the \
                 packets that were counted",
                "records say how many packets were counted one behind another (305), not how many were left out (306): their bytes are those of \
                 the packets that were counted",
            ),
            (self.cut, "message that the capture cut is not read", "messages that the capture cut are not read"),
        ] {
            notes.extend((count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many })));
        }
        self.packets.notes("flows", notes);
        self.over.notes(notes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_bounds_and_a_refused_one_costs_nothing() {
        let mut flows = Flows::default();
        let fields = vec![Field { element: 210, enterprise: None, length: 1 }; 16_000];
        let key = |id: u16| ((None, 0, 10), id);
        let most = FIELDS / (fields.len() + 1);
        for id in 0..most as u16 {
            flows.keep(key(id), Some(Template::of(&fields, false))).unwrap();
        }
        let full = flows.room;
        assert!(flows.keep(key(999), Some(Template::of(&fields, false))).is_err());
        assert_eq!((flows.room, flows.templates.len()), (full, most));
        // One that is told again, or withdrawn, gives its room back.
        flows.keep(key(0), Some(Template::of(&fields, false))).unwrap();
        flows.keep(key(0), None).unwrap();
        flows.keep(key(999), Some(Template::of(&fields, false))).unwrap();
        assert_eq!(flows.room, full);
        // Those of options take room, too.
        let mut options = (1_000..).map_while(|id| flows.keep(key(id), Some(Template::of(&[], true))).ok());
        assert_eq!(options.by_ref().count(), FIELDS - full);
    }

    #[test]
    fn fields_without_bytes_are_left_out_so_that_a_byte_costs_a_field_at_most() {
        let field = |element: u16, length: u16| Field { element, enterprise: None, length };
        let template = Template::of(&[field(1, 4), field(14, 0), field(82, VARIABLE)], false);
        assert_eq!((&*template.fields, template.shortest), (&[field(1, 4), field(82, VARIABLE)][..], 5));
        assert_eq!(Template::of(&[field(14, 0)], false).shortest, 0);
    }

    #[test]
    fn a_beginning_of_any_length_is_looked_at() {
        let start = [&[0, 10, 0, 60][..], &[0; 12], &[0, 2, 0, 44, 1, 0, 0, 1, 0, 8, 0, 4]].concat();
        let seen: Vec<bool> = (0..=start.len()).map(|length| is_netflow(&start[..length])).collect();
        assert_eq!((seen[19], seen[start.len()]), (false, true));
    }
}
