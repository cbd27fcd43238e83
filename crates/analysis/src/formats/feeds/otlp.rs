//! OTLP metrics: requests of an exporter, in protobuf or as JSON, of SONiC's high-frequency telemetry and of hosts.
//!
//! Source: OTLP, metrics/v1/metrics.proto, common/v1/common.proto, collector/metrics/v1 (fields and numbers; 64-bit numbers of
//! JSON in quotes); SONiC sonic-swss crates/countersyncd message/otel.rs (gauges `sai_counter_type_T_stat_S` with `object_name`,
//! `sai_type_id`, `sai_stat_id`), and the conventions for hosts (`system.network.io`, `.packets`, `.dropped`).
//!
//! The few fields that are read are declared here: the crate `opentelemetry-proto` brings all signals, and the SDK behind them.

use super::documents::{begins, Document, OfDocuments};
use super::looks::{of_sai, Counter, Looks};
use super::{no_columns, Decode, Feed, PassedOver, Streamed, Tells};
use crate::counters::Value;
use crate::formats::mapping::Mapping;
use crate::input::number::DATES;
use crate::input::problem::Problem;
use prost::Message;
use serde_json::Value as Json;

/// Requests in JSON, one a line as the collector's file exporter writes them, or in any other layout.
pub const JSON: Streamed = Streamed { name: "otlp-json", title: "OTLP JSON", recognises: is_json, make: json, tells: Tells::All };

/// Requests in protobuf: one behind another, each behind its length in four bytes or bare.
pub const PROTOBUF: Streamed =
    Streamed { name: "otlp", title: "OTLP", recognises: is_protobuf, make: protobuf, tells: Tells::All };

/// Longest request [bytes]; a longer one is not held.
const LONGEST: usize = 16 << 20;

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
    #[prost(int64, optional, tag = "3")]
    number: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "5")]
    gauge: Option<Numbers>,
    #[prost(message, optional, tag = "7")]
    sum: Option<Numbers>,
}

/// A gauge, or a sum, whose temporality is 1 for differences and 2 for running counts.
#[derive(Clone, PartialEq, Message)]
struct Numbers {
    #[prost(message, repeated, tag = "1")]
    points: Vec<Point>,
    #[prost(int32, tag = "2")]
    temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Point {
    #[prost(fixed64, tag = "3")]
    time: u64,
    #[prost(double, optional, tag = "4")]
    double: Option<f64>,
    #[prost(sfixed64, optional, tag = "6")]
    int: Option<i64>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "8")]
    flags: u32,
}

fn is_json(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    begins(&text) && text.contains("\"resourceMetrics\"")
}

/// Length that a field of bytes with this tag has at the front of bytes, and what is behind it.
fn inner(bytes: &[u8], tag: u8) -> Option<(u64, &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (length, size) = super::lanz::varint(rest).ok().flatten().filter(|_| *found == tag)?;
    Some((length, &rest[size..]))
}

/// Begin of the first request: 4 where its length stands before it.
fn prefix(start: &[u8]) -> usize {
    if matches!(start, [0, _, _, _, 0x0a, ..]) {
        4
    } else {
        0
    }
}

/// True for metrics of a resource that begin with its first attribute, or with a metric's name.
fn is_protobuf(start: &[u8]) -> bool {
    let nested = |tags: [u8; 3]| {
        let (mut rest, mut room) = inner(start.get(prefix(start)..)?, 0x0a).map(|(length, rest)| (rest, length))?;
        for tag in tags {
            let (length, behind) = inner(rest, tag)?;
            if length == 0 || length >= room {
                return None;
            }
            (rest, room) = (behind, length);
        }
        Some(())
    };
    // Resource, attribute, key; scope, metric, name.
    nested([0x0a, 0x0a, 0x0a]).or_else(|| nested([0x12, 0x12, 0x0a])).is_some()
}

fn json(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "OTLP")?;
    Ok(OfDocuments::made(Requests::default()))
}

fn protobuf(mapping: Option<&Mapping>, _: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "OTLP")?;
    Ok(Box::new(Requests::default()))
}

/// Decoder of requests.
#[derive(Default)]
struct Requests {
    /// Bytes of a length before each request of protobuf, once that is known.
    prefix: Option<usize>,
    looks: Looks,
    messages: u64,
    points: u64,
    over: PassedOver,
}

/// Meaning of a host's metric by its name.
fn of_host(name: &str) -> Option<Counter> {
    match name {
        "system.network.io" => Some(Counter::Bytes),
        "system.network.packets" => Some(Counter::Packets),
        "system.network.dropped" => Some(Counter::Dropped),
        _ => None,
    }
}

/// The number of a text or a number.
fn number(value: &AnyValue) -> Option<u16> {
    value.number.and_then(|number| number.try_into().ok()).or_else(|| value.text.as_ref()?.parse().ok())
}

/// Value of an attribute.
fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a AnyValue> {
    attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    attribute(attributes, key)?.text.as_deref()
}

impl Requests {
    fn resource(&mut self, metrics: &ResourceMetrics, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let of_resource = metrics.resource.as_ref().map(|resource| resource.attributes.as_slice()).unwrap_or_default();
        let host = text(of_resource, "host.name").map_or(String::new(), |host| format!("{host} "));
        for metric in metrics.scopes.iter().flat_map(|scope| &scope.metrics) {
            let (numbers, is_delta) = match (&metric.gauge, &metric.sum) {
                (Some(gauge), _) => (gauge, false),
                (None, Some(sum)) if matches!(sum.temporality, 1 | 2) => (sum, sum.temporality == 1),
                (None, Some(_)) => {
                    let name = crate::input::problem::shortened(&metric.name);
                    self.over.add(|| format!("sums '{name}' that say neither DELTA nor CUMULATIVE (aggregationTemporality)"));
                    continue;
                }
                (None, None) => {
                    self.over.add(|| "metrics that are neither gauges nor sums".into());
                    continue;
                }
            };
            for point in &numbers.points {
                self.point(&metric.name, point, is_delta, &host, feed)?;
            }
        }
        Ok(())
    }

    fn point(&mut self, name: &str, point: &Point, is_delta: bool, host: &str, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let all = point.attributes.as_slice();
        let sai = attribute(all, "sai_type_id").zip(attribute(all, "sai_stat_id"));
        let counter = match sai.map(|(kind, statistic)| (number(kind), number(statistic))) {
            Some((Some(kind), Some(statistic))) => of_sai(kind, statistic),
            // What came in is another queue's.
            _ if matches!(text(all, "direction").or_else(|| text(all, "network.io.direction")), Some("receive")) => return Ok(()),
            _ => of_host(name),
        };
        let Some(counter) = counter else {
            self.over.add(|| format!("points of the metric '{}'", crate::input::problem::shortened(name)));
            return Ok(());
        };
        // Bit 0: there is no value, and what was counted so far is over.
        let value = point.int.and_then(|int| u64::try_from(int).ok());
        let value = value.or_else(|| point.double.filter(|double| (0.0..1e18).contains(double)).map(|double| double as u64));
        let Some(value) = value.filter(|_| point.flags & 1 == 0) else {
            self.over.add(|| "points without a value, or with a negative one".into());
            return Ok(());
        };
        // 0: the time is unknown, says `NumberDataPoint` in metrics.proto.
        if point.time == 0 {
            self.over.add(|| "points without a time".into());
            return Ok(());
        }
        if !DATES.contains(&(point.time / 1_000_000_000)) {
            let problem = Problem::new("is no time from 2001 to 2100").column("timeUnixNano").value(point.time.to_string());
            return Err(problem.accepted("nanoseconds since 1970, for example 1700000000000000000"));
        }
        let label = ["object_name", "device", "network.interface.name"].into_iter().find_map(|key| text(all, key));
        let port = format!("{host}{}", label.unwrap_or("otlp"));
        self.points += 1;
        let value = if is_delta { Value::Since(value) } else { Value::Total(value, Some(64)) };
        self.looks.take(&port, u128::from(point.time) * 1_000, (counter, value), feed)
    }

    fn requests(&mut self, bytes: &[u8], feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let before = match self.prefix {
            Some(before) => before,
            None if bytes.len() < 5 => return Ok(0),
            None => *self.prefix.insert(prefix(bytes)),
        };
        let mut at = 0;
        while at < bytes.len() {
            let place = format!("message {}", self.messages + 1);
            let wrong = |what: &str, value: String| Problem::new(what).value(value).place(place.clone());
            let (skip, length) = if before > 0 {
                let Some(length) = super::templates::u32_at(bytes, at) else { break };
                (before, length as usize)
            } else {
                // Of a bare request each part is a message.
                if bytes[at] != 0x0a {
                    let problem = wrong("is no field of a request of OTLP metrics", format!("{:#04x}", bytes[at]));
                    return Err(problem
                        .accepted("0x0a: requests one behind another, each with its length in four bytes before it, or bare"));
                }
                let varint = super::lanz::varint(&bytes[at + 1..]).map_err(|problem| problem.place(place.clone()))?;
                let Some((length, size)) = varint else { break };
                (1 + size, usize::try_from(length).unwrap_or(usize::MAX))
            };
            if length > LONGEST {
                return Err(wrong("is no length of a request", length.to_string()).accepted(format!("up to {LONGEST} bytes")));
            }
            let Some(body) = bytes.get(at + skip..at + skip + length) else { break };
            feed.pass(at + skip + length);
            let broken = |error: prost::DecodeError| {
                wrong("is no request of OTLP metrics", error.to_string()).accepted("an ExportMetricsServiceRequest in protobuf")
            };
            let parts = if before > 0 {
                Request::decode(body).map_err(broken)?.resources
            } else {
                vec![ResourceMetrics::decode(body).map_err(broken)?]
            };
            parts.iter().try_for_each(|part| self.resource(part, feed)).map_err(|problem| problem.place(place.clone()))?;
            self.messages += 1;
            at += skip + length;
        }
        Ok(at)
    }
}

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<ResourceMetrics>,
}

/// A value of JSON that is none of a field.
fn wrong(field: &str, value: &Json, what: &str, accepted: &str) -> Problem {
    Problem::new(what).column(field).value(value.to_string()).accepted(accepted)
}

/// Elements of a field; none where it is not there.
///
/// # Errors
/// It is no list.
fn list<'a>(of: &'a Json, field: &str) -> Result<&'a [Json], Problem> {
    match &of[field] {
        Json::Null => Ok(&[]),
        Json::Array(elements) => Ok(elements),
        other => Err(wrong(field, other, "is no list", "a list of objects")),
    }
}

/// A whole number of a field, which may be negative; none where it is not there.
///
/// # Errors
/// It is none.
fn integer(of: &Json, field: &str) -> Result<Option<i128>, Problem> {
    let value = &of[field];
    let text = || value.as_str().and_then(|text| text.trim().parse().ok());
    match value {
        Json::Null => Ok(None),
        _ => match value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)).or_else(text) {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(
                field,
                value,
                "is no whole number",
                "a whole number, also in quotes, for example \"1795942800000000000\"",
            )),
        },
    }
}

/// A number of a field; none where it is not there, or is said to be none.
///
/// # Errors
/// It is none.
fn double(of: &Json, field: &str) -> Result<Option<f64>, Problem> {
    match &of[field] {
        Json::Null => Ok(None),
        Json::String(text) if matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity") => Ok(None),
        value => match value.as_f64() {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(field, value, "is no number", "a number, \"NaN\", \"Infinity\", \"-Infinity\"")),
        },
    }
}

fn attributes_of(of: &Json) -> Result<Vec<KeyValue>, Problem> {
    let pair = |pair: &Json| {
        let number = integer(&pair["value"], "intValue")?.and_then(|number| number.try_into().ok());
        let text = pair["value"]["stringValue"].as_str().map(str::to_string);
        Ok(KeyValue { key: pair["key"].as_str().unwrap_or_default().to_string(), value: Some(AnyValue { text, number }) })
    };
    list(of, "attributes")?.iter().map(pair).collect()
}

fn numbers_of(of: &Json) -> Result<Option<Numbers>, Problem> {
    let point = |point: &Json| {
        Ok(Point {
            time: match integer(point, "timeUnixNano")?.unwrap_or_default().try_into() {
                Ok(time) => time,
                Err(_) => return Err(wrong("timeUnixNano", &point["timeUnixNano"], "is no time", "nanoseconds since 1970")),
            },
            double: double(point, "asDouble")?,
            // Numbers beyond 2^63 stand as negative ones, which count as unknown.
            int: integer(point, "asInt")?.and_then(|number| number.try_into().ok()),
            attributes: attributes_of(point)?,
            flags: integer(point, "flags")?.and_then(|flags| flags.try_into().ok()).unwrap_or_default(),
        })
    };
    if of.is_null() {
        return Ok(None);
    }
    let temporality = match &of["aggregationTemporality"] {
        Json::String(name) => match name.as_str() {
            "AGGREGATION_TEMPORALITY_DELTA" => 1,
            "AGGREGATION_TEMPORALITY_CUMULATIVE" => 2,
            _ => 0,
        },
        _ => integer(of, "aggregationTemporality")?.and_then(|number| number.try_into().ok()).unwrap_or_default(),
    };
    Ok(Some(Numbers { points: list(of, "dataPoints")?.iter().map(point).collect::<Result<_, Problem>>()?, temporality }))
}

/// Parts of a request in JSON, as protobuf has them.
///
/// # Errors
/// A field that is read is of another kind.
fn of_json(request: &Json) -> Result<Vec<ResourceMetrics>, Problem> {
    let metric = |metric: &Json| {
        let name = metric["name"].as_str().unwrap_or_default().to_string();
        let named = |problem: Problem| problem.place(format!("metric '{}'", crate::input::problem::shortened(&name)));
        let (gauge, sum) = (numbers_of(&metric["gauge"]).map_err(named)?, numbers_of(&metric["sum"]).map_err(named)?);
        Ok(Metric { name, gauge, sum })
    };
    let scope =
        |scope: &Json| Ok(ScopeMetrics { metrics: list(scope, "metrics")?.iter().map(metric).collect::<Result<_, Problem>>()? });
    let resource = |resource: &Json| {
        Ok(ResourceMetrics {
            resource: Some(Resource { attributes: attributes_of(&resource["resource"])? }),
            scopes: list(resource, "scopeMetrics")?.iter().map(scope).collect::<Result<_, Problem>>()?,
        })
    };
    list(request, "resourceMetrics")?.iter().map(resource).collect()
}

impl Document for Requests {
    fn document(&mut self, request: &Json, feed: &mut Feed<'_>) -> Result<(), Problem> {
        self.messages += 1;
        of_json(request)?.iter().try_for_each(|part| self.resource(part, feed))
    }

    fn end(&mut self, feed: &mut Feed<'_>) -> Result<(), Problem> {
        self.looks.finish(feed)
    }

    fn notes(&mut self, _: u64, notes: &mut Vec<String>) {
        notes.push(format!("{} points in {} requests of OTLP", self.points, self.messages));
        notes.extend(self.looks.note());
        self.over.notes(notes);
    }
}

impl Decode for Requests {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let used = self.requests(bytes, feed)?;
        if end {
            self.looks.finish(feed)?;
        }
        Ok(used)
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        self.notes(0, notes);
    }
}
