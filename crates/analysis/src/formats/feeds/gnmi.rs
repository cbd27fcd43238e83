//! Updates of gNMI subscriptions as gnmic prints them: `--format event` (lists of events) and `--format json` (one object by message).
//!
//! Source: gnmic docs/user_guide/event_processors/intro.md (an event has `name`, `timestamp` in ns, `tags`, `values` by path); OpenConfig
//! openconfig-interfaces (`out-octets`, `out-pkts`, `out-unicast-pkts`, `out-discards`) and openconfig-qos (`transmit-octets`,
//! `transmit-pkts`, `dropped-pkts`, `max-queue-len` in bytes).

use super::documents::{whole, Document, OfDocuments};
use super::looks::{Counter, Looks};
use super::{no_columns, Decode, Feed, Streamed, Tells};
use crate::counters::Value;
use crate::formats::mapping::Mapping;
use crate::input::number::DATES;
use crate::input::problem::Problem;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Events, or messages.
pub const GNMI: Streamed = Streamed { name: "gnmi", title: "gnmic JSON", recognises: is_gnmi, make, tells: Tells::All };

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
    Ok(OfDocuments::made(Gnmi::default()))
}

#[derive(Default)]
struct Gnmi {
    looks: Looks,
    updates: u64,
    unread: u64,
    /// Ports of which all packets are counted, not those to one receiver alone.
    all_packets: BTreeSet<String>,
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
        let counter = match name {
            "out-octets" | "transmit-octets" => Counter::Bytes,
            // Where all packets are counted, those are.
            "out-unicast-pkts" if self.all_packets.contains(port) => return Ok(()),
            "out-pkts" | "transmit-pkts" | "out-unicast-pkts" => Counter::Packets,
            "out-discards" | "dropped-pkts" => Counter::Dropped,
            "max-queue-len" => Counter::Watermark,
            _ => {
                self.unread += 1;
                return Ok(());
            }
        };
        let Some(count) = whole(value) else {
            return Err(Problem::new("is no counter")
                .column(name)
                .value(value.to_string())
                .accepted("a whole number, also in quotes"));
        };
        self.updates += 1;
        self.looks.take(port, time, (counter, Value::Total(count, Some(64))), feed)?;
        // Of a port that is taken: there are so many at most.
        if matches!(name, "out-pkts" | "transmit-pkts") && !self.all_packets.contains(port) {
            self.all_packets.insert(port.to_string());
        }
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
        let Some(time) = whole(&event["timestamp"]).filter(|ns| DATES.contains(&(ns / 1_000_000_000))) else {
            let problem = Problem::new("is no time from 2001 to 2100").column("timestamp").value(event["timestamp"].to_string());
            return Err(problem.accepted("nanoseconds since 1970, for example 1700000000000000000"));
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

impl Document for Gnmi {
    fn document(&mut self, event: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        // Messages that tell only that all initial values were sent have nothing to read.
        if event.get("sync-response").is_some() {
            return Ok(());
        }
        self.event(event, feed)
    }

    fn end(&mut self, feed: &mut Feed<'_>) -> Result<(), Problem> {
        self.looks.finish(feed)
    }

    fn notes(&mut self, count: u64, notes: &mut Vec<String>) {
        notes.push(format!(
            "{} counters in {count} documents of gnmic; {} values are no counters that are read",
            self.updates, self.unread
        ));
        if self.looks.held {
            notes.push("max-queue-len is the largest queue since the switch began to count: where it stays, the largest of the interval is unknown".into());
        }
    }
}
