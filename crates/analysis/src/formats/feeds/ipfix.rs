//! High-frequency telemetry of SONiC: IPFIX messages whose templates say which counter of which object stands where.
//!
//! Source: SONiC high-frequency telemetry HLD §7.2 (the enterprise number is the SAI object type and the SAI statistic, the element the
//! index of the object), sonic-swss crates/countersyncd (placeholders of element 0 take bytes; several object types in one template;
//! counters of 1 to 8 bytes), RFC 7011 (messages, sets, templates). The time of a record is element 325 of 8 bytes, or seconds (322) and
//! nanoseconds (325).

use super::looks::{of_sai, Counter, Most, COUNTERS, HELD};
use super::templates::{self, number, set, u16_at, u32_at, FIELDS, HEADER, VARIABLE};
use super::{no_columns, Decode, Feed, PassedOver, Streamed, Tells};
use crate::counters::{Look, Value};
use crate::formats::mapping::Mapping;
use crate::input::problem::Problem;
use std::collections::BTreeMap;

/// Messages one behind another, templates before their data.
pub const SONIC: Streamed =
    Streamed { name: "sonic-ipfix", title: "SONiC's IPFIX", recognises: is_ipfix, make, tells: Tells::All };

/// Fraction of a second that element 325 counts [ps].
const NS: u128 = 1_000;

/// True for a message whose first set, of templates or of data, lies within it.
fn is_ipfix(start: &[u8]) -> bool {
    let header = (u16_at(start, 0), u16_at(start, 2), u16_at(start, 16), u16_at(start, 18));
    let (Some(10), Some(length), Some(set), Some(inner)) = header else { return false };
    let fits = inner >= 4 && usize::from(inner) + HEADER <= usize::from(length);
    fits && (set == 2 || set == 3 || set >= 256)
}

/// True for bytes that are messages, the last of which ends with them: what a datagram holds.
pub fn is_whole(mut bytes: &[u8]) -> bool {
    if !is_ipfix(bytes) {
        return false;
    }
    while let (Some(10), Some(length)) = (u16_at(bytes, 0), u16_at(bytes, 2)) {
        match bytes.get(usize::from(length)..) {
            Some(rest) if usize::from(length) >= HEADER => bytes = rest,
            _ => return false,
        }
    }
    bytes.is_empty()
}

fn make(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "IPFIX")?;
    Ok(Box::new(Sonic::default()))
}

/// Place and length of a field in a record.
type Field = (u16, u8);

/// Counters of one object in a record.
#[derive(Clone, Copy, Debug, Default)]
struct Object {
    kind: u16,
    label: u16,
    /// Places of its counters, by [`Counter`].
    counters: [Option<Field>; COUNTERS],
    /// Index of its port, once it is known.
    port: Option<u32>,
    most: Most,
}

/// A template, as far as it is read.
#[derive(Clone, Debug, Default)]
struct Template {
    length: usize,
    fields: usize,
    seconds: Option<Field>,
    nanoseconds: Option<Field>,
    objects: Vec<Object>,
}

/// SAI object type of a port.
const PORT: u16 = 1;

/// Kinds of counters, in the order of their places in an object.
const KINDS: [Counter; COUNTERS] =
    [Counter::Bytes, Counter::Packets, Counter::Dropped, Counter::Marked, Counter::Queue, Counter::Watermark];

/// Decoder of messages.
#[derive(Default)]
struct Sonic {
    templates: BTreeMap<(u32, u16), Template>,
    messages: u64,
    records: u64,
    held: bool,
    over: PassedOver,
}

impl Sonic {
    fn message(&mut self, message: &[u8], feed: &mut Feed<'_>) -> Result<(), Problem> {
        let domain = u32_at(message, 12).unwrap_or(0);
        let mut rest = &message[HEADER..];
        while let Some((id, body, behind)) = set(rest)? {
            match id {
                2 => self.template_set(body, domain)?,
                256.. => self.data(body, (domain, id), feed)?,
                other => self.over.add(|| format!("sets of the number {other}")),
            }
            rest = behind;
        }
        Ok(())
    }

    fn template_set(&mut self, body: &[u8], domain: u32) -> Result<(), Problem> {
        templates::templates(body, true, |id, fields| {
            let mut template = Template { fields: fields.len(), ..Template::default() };
            for field in fields {
                if field.length == VARIABLE {
                    let problem = Problem::new("has a field of variable length").column(format!("template {id}"));
                    return Err(problem.value(field.element.to_string()).accepted("fields of a fixed length"));
                }
                template.add(field, &mut self.over)?;
            }
            let before = self.templates.remove(&(domain, id));
            if fields.is_empty() {
                // It is withdrawn.
                return Ok(());
            }
            let all: usize = self.templates.values().map(|template| template.fields).sum();
            if all + template.fields > FIELDS {
                return Err(Problem::new(format!("is one field too many: templates may have {FIELDS}")).value(id.to_string()));
            }
            // What a switch says again is the same template, with what is known of its objects.
            let same = before.filter(|before| before.is_like(&template));
            self.templates.insert((domain, id), same.unwrap_or(template));
            Ok(())
        })
    }

    fn data(&mut self, body: &[u8], key: (u32, u16), feed: &mut Feed<'_>) -> Result<(), Problem> {
        let Some(template) = self.templates.get_mut(&key) else {
            self.over.add(|| format!("sets of template {}, which was not told before", key.1));
            return Ok(());
        };
        if template.objects.is_empty() {
            self.over.add(|| format!("sets of template {}, which has no counter that is read", key.1));
            return Ok(());
        }
        let Some(nanoseconds) = template.nanoseconds else {
            let problem = Problem::new("has no time in its records").column("template").value(key.1.to_string());
            return Err(problem.accepted("element 325 of 8 bytes, or 322 and 325"));
        };
        let (seconds, length) = (template.seconds, template.length);
        for record in body.chunks_exact(length) {
            let value =
                |(at, size): Field| number(record.get(usize::from(at)..usize::from(at) + usize::from(size)).unwrap_or_default());
            let ps =
                seconds.map_or(0, |field| u128::from(value(field)) * 1_000_000_000_000) + u128::from(value(nanoseconds)) * NS;
            let time = feed.time(ps)?;
            self.records += 1;
            for object in &mut template.objects {
                let port = match object.port {
                    Some(port) => port,
                    None => {
                        let kind = if object.kind == PORT { "port" } else { "queue" };
                        *object.port.insert(feed.port(format!("{kind} {}", object.label).as_bytes())?)
                    }
                };
                let mut look = Look { time, ..Look::default() };
                for (kind, field) in KINDS.into_iter().zip(object.counters) {
                    // A counter that is shorter than 8 bytes wraps as early as that.
                    let Some(field) = field else { continue };
                    self.held |= kind.put(Value::Total(value(field), Some(field.1 * 8)), &mut object.most, &mut look);
                }
                feed.look(port, &look);
            }
        }
        Ok(())
    }
}

impl Template {
    fn add(&mut self, field: &templates::Field, over: &mut PassedOver) -> Result<(), Problem> {
        let templates::Field { element, enterprise, length } = *field;
        let at = self.length;
        self.length += usize::from(length);
        let (Ok(at), Ok(size @ 1..=8)) = (u16::try_from(at), u8::try_from(length)) else {
            // A record is no longer than its message, and no number longer than 8 bytes.
            if self.length > usize::from(u16::MAX) {
                return Err(Problem::new("is longer than a message can be").column("template").value(self.length.to_string()));
            }
            return Ok(());
        };
        let field = (at, size);
        match enterprise {
            None if element == 322 => self.seconds = Some(field),
            None if element == 325 => self.nanoseconds = Some(field),
            None => {}
            // A placeholder: it only takes room.
            Some(_) if element == 0 => {}
            Some(enterprise) => {
                // Extension flags stand in the highest bits of both halves.
                let (kind, statistic) = ((enterprise >> 16) as u16, enterprise as u16);
                let Some(counter) = of_sai(kind, statistic) else {
                    over.add(|| format!("counters of SAI object type {kind}, statistic {statistic}, in templates"));
                    return Ok(());
                };
                let known = self.objects.iter().position(|other| (other.kind, other.label) == (kind, element));
                let place = known.unwrap_or_else(|| {
                    self.objects.push(Object { kind, label: element, ..Object::default() });
                    self.objects.len() - 1
                });
                self.objects[place].counters[counter as usize] = Some(field);
            }
        }
        Ok(())
    }

    fn is_like(&self, other: &Template) -> bool {
        let form = |template: &Template| {
            let objects = template.objects.iter();
            objects.map(|o| (o.kind, o.label, o.counters)).collect::<Vec<_>>()
        };
        (self.length, self.seconds, self.nanoseconds) == (other.length, other.seconds, other.nanoseconds)
            && form(self) == form(other)
    }
}

impl Decode for Sonic {
    fn decode(&mut self, bytes: &[u8], _end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let mut at = 0;
        while let (Some(version), Some(length)) = (u16_at(bytes, at), u16_at(bytes, at + 2)) {
            let place = format!("message {}", self.messages + 1);
            let length = usize::from(length);
            if version != 10 || length < HEADER {
                let problem =
                    Problem::new("is no header of an IPFIX message").value(format!("version {version}, {length} bytes"));
                return Err(problem.accepted("version 10, 16 bytes and more").place(place));
            }
            let Some(message) = bytes.get(at..at + length) else { break };
            feed.pass(at + length);
            self.message(message, feed).map_err(|problem| problem.place(place))?;
            self.messages += 1;
            at += length;
        }
        Ok(at)
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        let (messages, records) = (self.messages, self.records);
        notes.push(format!(
            "{records} records in {messages} messages of IPFIX: ports go by the numbers of their objects, whose names are in the switch's STATE_DB"
        ));
        notes.extend(self.held.then(|| HELD.to_string()));
        self.over.notes(notes);
    }
}
