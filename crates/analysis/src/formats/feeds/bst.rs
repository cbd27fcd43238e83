//! Reports of BroadView's buffer statistics (BST): occupancy of queues and of a port's share of pools, as the agent's REST interface gives them.
//!
//! Source: BroadView (openstack broadview-lib bst_parser.py, BroadView-Instrumentation bst: realms, order of the values, `time-stamp`). Values
//! are cells or bytes (`stats-in-…` of the agent), of now or the largest since they were cleared: both are asked for.

use super::documents::{begins, whole, Document, OfDocuments};
use super::looks::{Counter, Looks};
use super::{Decode, Feed, PassedOver, Streamed, Tells};
use crate::counters::Value;
use crate::formats::mapping::{Mapping, Role, Unit};
use crate::input::number::from_date;
use crate::input::problem::Problem;
use serde_json::Value as Json;

/// Reports one after another, or in a list.
pub const BST: Streamed = Streamed { name: "bst", title: "BST", recognises: is_bst, make, tells: Tells::All };

fn is_bst(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let has = |key: &str| text.contains(key);
    begins(&text) && (has("\"get-bst-report\"") || (has("\"trigger-report\"") && has("\"realm\"")))
}

const COLUMN: &str = "buffer-count";
const HOW: &str = "say whether they are the largest since they were cleared or those of now, and the unit: \
                   --columns watermark=buffer-count:cells(208B), or queue=buffer-count:B";

fn make(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    let choices = mapping.map(|mapping| mapping.0.as_slice()).unwrap_or_default();
    let unit = "the report does not say what its values are";
    let [choice] = choices else {
        let problem = Problem::new(unit).column("columns").suggestion(HOW);
        return Err(if choices.is_empty() {
            problem
        } else {
            problem.value(mapping.map(Mapping::to_string).unwrap_or_default())
        });
    };
    let counter = match choice.role {
        Role::Watermark => Counter::Watermark,
        Role::Queue => Counter::Queue,
        other => {
            return Err(Problem::new("has no meaning here")
                .column(other.name())
                .value(&choice.column)
                .accepted("watermark, queue")
                .suggestion(HOW))
        }
    };
    match choice.unit {
        Some(Unit::Steps(bytes)) if choice.column.eq_ignore_ascii_case(COLUMN) => {
            Ok(OfDocuments::made(Reports { looks: Looks::default(), counter, bytes, values: 0, over: PassedOver::default() }))
        }
        _ => Err(Problem::new(unit).column(choice.role.name()).value(&choice.column).suggestion(HOW)),
    }
}

/// Decoder of reports.
struct Reports {
    looks: Looks,
    counter: Counter,
    /// Bytes of a value's unit.
    bytes: u64,
    values: u64,
    over: PassedOver,
}

/// Realms that are of a port, the name of what they count, and the place of the value behind the label. Those of queues name the port second;
/// the others have a list for each port.
const REALMS: [(&str, &str, usize); 5] = [
    ("egress-uc-queue", "queue", 2),
    ("egress-mc-queue", "multicast queue", 2),
    ("egress-port-service-pool", "pool", 2),
    ("ingress-port-priority-group", "priority group (in)", 1),
    ("ingress-port-service-pool", "pool (in)", 1),
];

impl Reports {
    fn report(&mut self, report: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let stamp = report["time-stamp"].as_str().unwrap_or_default().trim().to_string();
        let plain = stamp.replace(" - ", " ");
        let Ok((time, zoned)) = from_date(plain.as_bytes()) else {
            let problem = Problem::new("is no date and time").column("time-stamp").value(stamp);
            return Err(problem.accepted("for example 2014-11-18 - 00:15:04"));
        };
        if !zoned {
            feed.unzoned();
        }
        let asic = report["asic-id"].as_str().map(str::to_string).or_else(|| whole(&report["asic-id"]).map(|n| n.to_string()));
        let asic = asic.map_or(String::new(), |asic| format!("asic {asic} "));
        for realm in report["report"].as_array().into_iter().flatten() {
            let name = realm["realm"].as_str().unwrap_or_default();
            let Some((_, what, place)) = REALMS.iter().find(|(known, ..)| *known == name) else {
                self.over.add(|| format!("realms '{}'", crate::input::problem::shortened(name)));
                continue;
            };
            for row in realm["data"].as_array().into_iter().flatten() {
                // Of a queue a row with its port, of the rest an object by port with rows.
                let port = text(if row.is_object() { &row["port"] } else { &row[1] });
                let rows =
                    if row.is_object() { row["data"].as_array().map(Vec::as_slice) } else { Some(std::slice::from_ref(row)) };
                for row in rows.unwrap_or_default() {
                    let (Some(label), Some(port)) = (text(&row[0]), &port) else {
                        let problem = Problem::new("has no number of a queue, or no port").column(name);
                        return Err(problem
                            .value(row.to_string())
                            .accepted("[QUEUE, PORT, COUNT], or {port, data: [[POOL, COUNT…]]}"));
                    };
                    let Some(count) = whole(&row[*place]) else {
                        let problem = Problem::new("has no buffer count").column(name).value(row.to_string());
                        return Err(problem.accepted(format!("a whole number in place {} of the row", place + 1)));
                    };
                    self.values += 1;
                    let value = Value::Since(count.saturating_mul(self.bytes));
                    self.looks.take(&format!("{asic}port {port} {what} {label}"), time, (self.counter, value), feed)?;
                }
            }
        }
        Ok(())
    }
}

/// A label: a number, or text.
fn text(value: &Json) -> Option<String> {
    value.as_str().map(|text| text.trim().to_string()).or_else(|| value.as_u64().map(|number| number.to_string()))
}

impl Document for Reports {
    fn document(&mut self, report: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        self.report(report, feed)
    }

    fn end(&mut self, feed: &mut Feed<'_>) -> Result<(), Problem> {
        self.looks.finish(feed)
    }

    fn notes(&mut self, count: u64, notes: &mut Vec<String>) {
        notes.push(format!(
            "{} values in {count} reports of BST: of a queue only its occupancy is told, and drops, bytes and flows are in no report",
            self.values
        ));
        if self.looks.held {
            notes.push(
                "values that stay the same say nothing of the last interval, unless they are cleared with each report".into(),
            );
        }
        self.over.notes(notes);
    }
}
