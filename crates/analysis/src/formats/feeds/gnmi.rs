//! Updates of gNMI subscriptions as gnmic prints them: `--format event` (lists of events) and `--format json` (one object by message).
//!
//! Source: gnmic docs/user_guide/event_processors/intro.md (an event has `name`, `timestamp` in ns, `tags`, `values` by path); OpenConfig
//! openconfig-interfaces (`out-octets`, `out-pkts`, `out-unicast-pkts`, `out-discards`) and openconfig-qos (`transmit-octets`,
//! `transmit-pkts`, `dropped-pkts`, `max-queue-len` in bytes).

use super::{no_columns, Decode, Feed, Most, Streamed};
use crate::counters::{Look, Value};
use crate::formats::mapping::Mapping;
use crate::input::problem::Problem;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Events, or messages.
pub const GNMI: Streamed = Streamed { name: "gnmi", title: "gnmic JSON", recognises: is_gnmi, make };

/// Ports that are followed, at most: queues of interfaces are ports of their own.
const PORTS: usize = 1 << 16;

fn is_gnmi(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    let is_event = text.starts_with('[') && has("name") && has("timestamp") && (has("tags") || has("values"));
    let is_message = text.starts_with('{') && has("timestamp") && (has("subscription-name") || has("updates"));
    is_event || is_message
}

fn make(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "what gnmic prints")?;
    Ok(Box::new(Gnmi::default()))
}

/// The look that is being collected of a port: its parts may come in several messages of one time.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    time: u128,
    look: Look,
    most: Most,
    any: bool,
}

#[derive(Default)]
struct Gnmi {
    pending: BTreeMap<String, Pending>,
    documents: u64,
    updates: u64,
    unread: u64,
    held: bool,
}

/// A number that stands for itself, or in quotes as JSON_IETF has those of 64 bits.
fn number(value: &Json) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The last part of a path, without its module and its keys.
fn leaf(path: &str) -> &str {
    let last = path.rsplit('/').next().unwrap_or(path);
    last.rsplit(':').next().unwrap_or(last)
}

/// Keys in a path: `interface[name=ethernet-1/1]/…/queue[name=3]` is `ethernet-1/1` and `3`.
fn keys(path: &str) -> Vec<&str> {
    path.split('[').skip(1).filter_map(|part| part.split(']').next()?.split_once('=')).map(|(_, value)| value).collect()
}

impl Gnmi {
    /// Takes the value of a leaf at a port.
    fn leaf(&mut self, port: &str, time: u128, name: &str, value: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let known = matches!(
            name,
            "out-octets"
                | "transmit-octets"
                | "out-pkts"
                | "transmit-pkts"
                | "out-unicast-pkts"
                | "out-discards"
                | "dropped-pkts"
                | "max-queue-len"
        );
        if !known {
            self.unread += 1;
            return Ok(());
        }
        let Some(count) = number(value) else {
            return Err(Problem::new("is no counter")
                .column(name)
                .value(value.to_string())
                .accepted("a whole number, also in quotes"));
        };
        self.updates += 1;
        if !self.pending.contains_key(port) {
            if self.pending.len() >= PORTS {
                return Err(Problem::new(format!("is one port too many: {PORTS} are accepted")).value(port));
            }
            self.pending.insert(port.to_string(), Pending { time, ..Pending::default() });
        }
        if self.pending.get(port).is_some_and(|pending| pending.any && pending.time != time) {
            self.flush(port, feed)?;
        }
        let Some(pending) = self.pending.get_mut(port) else { return Ok(()) };
        (pending.time, pending.any) = (time, true);
        let total = Some(Value::Total(count, Some(64)));
        let look = &mut pending.look;
        match name {
            "out-octets" | "transmit-octets" => look.sent = total,
            "out-pkts" | "transmit-pkts" => look.packets = total,
            // Where all packets are counted, those are.
            "out-unicast-pkts" => look.packets = look.packets.or(total),
            "out-discards" | "dropped-pkts" => look.dropped = total,
            _ => {
                look.watermark = pending.most.of_interval(count);
                self.held |= look.watermark.is_none();
            }
        }
        Ok(())
    }

    fn flush(&mut self, port: &str, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let Some(pending) = self.pending.get_mut(port).filter(|pending| pending.any) else { return Ok(()) };
        let look = Look { time: feed.time(pending.time)?, ..std::mem::take(&mut pending.look) };
        pending.any = false;
        let index = feed.port(port.as_bytes())?;
        feed.look(index, &look);
        Ok(())
    }

    /// Walks down a value to its leaves.
    fn walk(&mut self, (port, time): (&str, u128), path: &str, value: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        match value {
            Json::Object(fields) => fields.iter().try_for_each(|(key, value)| self.walk((port, time), key, value, feed)),
            Json::Array(_) => Ok(()),
            value => self.leaf(port, time, leaf(path), value, feed),
        }
    }

    fn event(&mut self, event: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let Some(time) = event["timestamp"].as_u64() else {
            return Err(Problem::new("has no timestamp")
                .value(event["timestamp"].to_string())
                .accepted("nanoseconds since 1970"));
        };
        let tags = event["tags"].as_object();
        let tag = |name: &str| tags.and_then(|tags| tags.get(name)?.as_str());
        let source = tag("source").or_else(|| event["source"].as_str()).unwrap_or_default();
        let interface = ["interface_name", "interface_interface-id", "interface-id", "name"].into_iter().find_map(tag);
        let queue = ["queue_name", "queue"].into_iter().find_map(tag);
        let name = |parts: &[&str]| parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ");
        let time = u128::from(time) * 1_000;
        if let Some(values) = event["values"].as_object() {
            let queue = queue.map_or(String::new(), |queue| format!("queue {queue}"));
            let port = name(&[source, interface.unwrap_or_default(), &queue]);
            let port = if port.is_empty() { "gnmi".to_string() } else { port };
            for (path, value) in values {
                self.walk((&port, time), path, value, feed)?;
            }
        }
        let prefix = event["prefix"].as_str().unwrap_or_default();
        for update in event["updates"].as_array().into_iter().flatten() {
            let path = format!("{prefix}/{}", update["Path"].as_str().unwrap_or_default());
            let mut parts = vec![source];
            let queue = keys(&path).get(1).map_or(String::new(), |queue| format!("queue {queue}"));
            parts.extend(keys(&path).first());
            parts.push(&queue);
            let port = name(&parts);
            let port = if port.is_empty() { "gnmi".to_string() } else { port };
            for (path, value) in update["values"].as_object().into_iter().flatten() {
                self.walk((&port, time), path, value, feed)?;
            }
        }
        Ok(())
    }
}

impl Decode for Gnmi {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let skipped = bytes.len() - text.len();
        let mut documents = serde_json::Deserializer::from_slice(text).into_iter::<Json>();
        let mut used = 0;
        loop {
            let place = format!("document {}", self.documents + 1);
            let document = match documents.next() {
                None => break,
                Some(Ok(document)) => document,
                Some(Err(error)) if error.is_eof() && !end => break,
                Some(Err(error)) => {
                    // Behind the line in which it begins.
                    let begin = used + text[used..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                    feed.pass(memchr::memchr(b'\n', &text[begin..]).map_or(0, |line| skipped + begin + line + 1));
                    return Err(Problem::new(format!("is no JSON: {error}")).place(place));
                }
            };
            used = documents.byte_offset();
            feed.pass(skipped + used);
            self.documents += 1;
            let done = match &document {
                Json::Array(events) => events.iter().try_for_each(|event| self.event(event, feed)),
                Json::Object(_) => self.event(&document, feed),
                _ => Err(Problem::new("is neither an event nor a message").value(document.to_string())),
            };
            // Messages that tell only that all initial values were sent have nothing to read.
            if document.get("sync-response").is_none() {
                done.map_err(|problem| problem.place(place))?;
            }
        }
        if end {
            for port in self.pending.keys().cloned().collect::<Vec<_>>() {
                self.flush(&port, feed)?;
            }
            used = text.len();
        }
        Ok(skipped + used)
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        notes.push(format!(
            "{} counters in {} documents of gnmic; {} values are no counters that are read",
            self.updates, self.documents, self.unread
        ));
        if self.held {
            notes.push("max-queue-len is the largest queue since the switch began to count: where it stays, the largest of the interval is unknown".into());
        }
    }
}
