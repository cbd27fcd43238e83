//! Checks of telemetry: patterns without a match, sampling too coarse for its purpose, registers that overflow.

use super::names::{unknown, FLOW, PORT};
use super::settings::Settings;
use super::transport::{shown, warn};
use super::{used_transports, Network};
use crate::doc::Parts;
use crate::sections::{Keep, Registers, Sampling, STAMP_BYTES};
use fanin_params::pattern;
use fanin_params::{Cx, Node, Value};
use fanin_traffic::{Entry, Traffic, TrafficKind};
use fanin_transport::TransportParams;
use fanin_units::{Bytes, LinkId, Span};

/// Number of ports that a stamp can distinguish: 255 means that no port has filled it in.
const MOST_STAMPING: usize = 255;

/// Number of records in memory, at 72 B each, from which a warning tells the memory they take.
const MANY_RECORDS: u64 = 25_000_000;

/// Switch ports that `telemetry.queues` selects, in order of ids.
pub(super) fn watched(parts: &Parts, network: &Network, cx: &mut Cx) -> Vec<LinkId> {
    let Some(telemetry) = &parts.telemetry else { return Vec::new() };
    let mut links = Vec::new();
    let why = "no queue is watched: data waits in its socket";
    cx.key("telemetry", |cx| links = ports_of_switches("queues", &telemetry.queues, why, network, cx));
    links
}

/// Resolves the patterns under `key` to switch ports, in order of ids. `why`: message for ports of hosts.
pub(super) fn ports_of_switches(key: &str, patterns: &[String], why: &str, network: &Network, cx: &mut Cx) -> Vec<LinkId> {
    let mut chosen = vec![false; network.ports.len()];
    let names: Vec<&str> = network.ports.iter().map(|port| port.name.as_str()).collect();
    for (i, wanted) in patterns.iter().enumerate() {
        let (mut any, mut of_host) = (false, false);
        for (port, chosen) in network.ports.iter().zip(&mut chosen) {
            if pattern::fits(wanted, &port.name) {
                any |= port.of_switch;
                of_host |= !port.of_switch;
                *chosen |= port.of_switch;
            }
        }
        if !any {
            let body = |cx: &mut Cx| if of_host { hosts_only(wanted, why, cx) } else { unknown(&PORT, wanted, &names, cx) };
            cx.key(key, |cx| cx.index(i, body));
        }
    }
    (0u32..).zip(&chosen).filter(|(_, chosen)| **chosen).map(|(i, _)| LinkId(i)).collect()
}

fn hosts_only(wanted: &str, why: &str, cx: &mut Cx) {
    let node: Node = Value::Text(wanted.to_string()).into();
    let is = if wanted.contains('*') { "matches ports of hosts only" } else { "is the port of a host" };
    cx.error(Some(&node), format!("{is}, where {why}"), Some("ports of switches".to_string()));
}

/// Checks that each pattern of `telemetry.hosts` and `telemetry.messages` matches a host, an entry or a flow. Ids in files are not looked up, nor is
/// the number of flows known.
pub(super) fn followed(parts: &Parts, network: &Network, traffic: &Traffic, cx: &mut Cx) {
    let Some(telemetry) = &parts.telemetry else { return };
    let listed = |entry: &Entry| match &entry.kind {
        TrafficKind::Flows(list) => list.flows.iter().filter_map(|flow| flow.id.clone()).collect(),
        _ => Vec::new(),
    };
    let ids: Vec<String> = parts.traffic.iter().flat_map(|(_, entry)| listed(entry)).collect();
    let from_file = parts.traffic.iter().any(|(_, entry)| matches!(entry.kind, TrafficKind::File(_)));
    let hosts = network.host_infos();
    let names: Vec<&str> =
        traffic.entry_names().chain(ids.iter().map(String::as_str)).chain(hosts.iter().map(|host| host.name)).collect();
    let hosts = telemetry.hosts.iter().enumerate().map(|(i, wanted)| ("hosts", i, wanted));
    let messages = telemetry.messages.iter().enumerate().map(|(i, wanted)| ("messages", i, wanted));
    for (key, i, wanted) in hosts.chain(messages) {
        let number = !wanted.is_empty() && wanted.bytes().all(|byte| byte.is_ascii_digit() || byte == b'*');
        if !number && !from_file && !names.iter().any(|name| pattern::fits(wanted, name)) {
            cx.key("telemetry", |cx| cx.key(key, |cx| cx.index(i, |cx| unknown(&FLOW, wanted, &names, cx))));
        }
    }
}

/// Warns of a sampling period in which the largest burst that a port can hold builds up and drains unseen.
pub(super) fn sampling(parts: &Parts, settings: &Settings, network: &Network, cx: &mut Cx) {
    let Some(telemetry) = &parts.telemetry else { return };
    let Sampling::Every(period) = telemetry.sample else { return };
    // Where even the burst that takes longest to drain is too short, all are.
    let mut longest = None;
    for (link, port) in network.switch_ports() {
        let Some(buffer) = settings.most(link) else { return };
        longest = longest.max(Some((port.rate.time_to_send(buffer), std::cmp::Reverse(port.rate), buffer)));
    }
    let Some((drain, std::cmp::Reverse(rate), buffer)) = longest else { return };
    if period > drain {
        cx.key("telemetry", |cx| {
            let message =
                format!("is above {drain}, in which a full buffer of {buffer} drains at {rate}: bursts fall between two samples");
            warn(cx, "sample", &telemetry.sample, message).suggestion =
                Some("a shorter period, or list ports in telemetry.queues to record each packet".to_string());
        });
    }
}

/// Largest buffer of the watched ports.
#[derive(Clone, Copy)]
pub(super) enum Largest {
    /// Unknown: no port is watched, or the switches could not be parsed.
    Unknown,
    Unlimited,
    Of(Bytes),
}

/// Computes the largest buffer of a watched port.
pub(super) fn largest_buffer(settings: &Settings, watched: &[LinkId]) -> Largest {
    let mut largest = Largest::Unknown;
    for buffer in watched.iter().map(|port| settings.most(*port)) {
        largest = match (largest, buffer) {
            (Largest::Unlimited, _) | (_, None) => Largest::Unlimited,
            (Largest::Of(one), Some(other)) => Largest::Of(one.max(other)),
            (Largest::Unknown, Some(one)) => Largest::Of(one),
        };
    }
    largest
}

/// Checks `telemetry.keep`: rules without records, thresholds that are never crossed, rings that take much memory.
pub(super) fn keep(parts: &Parts, watched: &[LinkId], buffer: Largest, cx: &mut Cx) {
    let Some(telemetry) = &parts.telemetry else { return };
    let records = match &telemetry.keep {
        Keep::All(_) => return,
        Keep::Last(keep) => keep.records,
        Keep::Around(keep) => keep.records,
    };
    cx.key("telemetry", |cx| {
        if telemetry.queues.is_empty() {
            let message = "has no effect: no port is watched";
            let accepted = "ports in telemetry.queues, or no keep".to_string();
            cx.key("keep", |cx| cx.error(Some(&shown(&telemetry.keep.kind().to_string())), message, Some(accepted)).severity);
            return;
        }
        let most = u64::from(records).saturating_mul(watched.len() as u64);
        if most > MANY_RECORDS {
            cx.key("keep", |cx| {
                let message = format!(
                    "holds up to {most} records of {} ports in memory, about {} GB",
                    watched.len(),
                    most * 72 / 1_000_000_000
                );
                warn(cx, "records", &records, message).suggestion =
                    Some("fewer records, or fewer ports in telemetry.queues".to_string());
            });
        }
        let Keep::Around(keep) = &telemetry.keep else { return };
        let Largest::Of(buffer) = buffer else { return };
        if keep.above >= buffer {
            cx.key("keep", |cx| {
                let message = format!("is never crossed: a port holds at most {buffer}");
                warn(cx, "above", &keep.above, message).suggestion = Some("a lower threshold, or keep = \"all\"".to_string());
            });
        }
    });
}

/// Checks `telemetry.registers`: too short for the longest wait or buffer, or without any port; notes their cost.
pub(super) fn registers(parts: &Parts, watched: &[LinkId], buffer: Largest, (notes, cx): (&mut Vec<String>, &mut Cx)) {
    let Some(telemetry) = &parts.telemetry else { return };
    let Some(registers) = &telemetry.registers else { return };
    cx.key("telemetry", |cx| {
        if telemetry.queues.is_empty() {
            let message = "are filled by no port";
            let accepted = "ports in telemetry.queues, or no registers".to_string();
            cx.key("registers", |cx| cx.error(None, message, Some(accepted)).severity);
        }
        if watched.len() > MOST_STAMPING {
            cx.key("queues", |cx| {
                let message = format!("names {} ports, more than a stamp can distinguish", watched.len());
                cx.error(None, message, Some(format!("at most {MOST_STAMPING} ports with telemetry.registers"))).severity
            });
        }
        cx.key("registers", |cx| short(registers, buffer, parts, cx));
    });
    for (name, config) in used_transports(parts) {
        let without = config.shape(parts.ip()).payload;
        let with = config.clone().with_mtu_less(STAMP_BYTES).shape(parts.ip()).payload;
        let less = if with < without {
            format!(
                "a full segment carries {with} B instead of {without} B, {:.2} % less",
                100.0 * (without - with) as f64 / without as f64
            )
        } else {
            format!("full segments still carry {with} B")
        };
        notes.push(format!("telemetry.registers takes {STAMP_BYTES} B of every frame: with transport {name}, {less}; other frames are {STAMP_BYTES} B longer"));
    }
}

fn short(registers: &Registers, buffer: Largest, parts: &Parts, cx: &mut Cx) {
    let longest = Bytes(registers.unit.get() * u64::from(u16::MAX));
    match buffer {
        Largest::Of(buffer) if buffer > longest => {
            let message = format!("cannot report queues above {longest} (65535 units), and a port holds {buffer}");
            warn(cx, "unit", &registers.unit, message).suggestion =
                Some(format!("\"{}\"", Bytes(buffer.get().div_ceil(u64::from(u16::MAX)))));
        }
        Largest::Unlimited => {
            let message = format!("cannot report queues above {longest} (65535 units), and the buffer is unlimited");
            warn(cx, "unit", &registers.unit, message);
        }
        _ => {}
    }
    let wrap = registers.tick.saturating_mul(1 << 32);
    if parts.duration.is_some_and(|duration| duration > wrap / 2) {
        let message = format!("makes the time register wrap around every {}: packets of a port that are half of that apart cannot be distinguished from earlier ones without the receiver's clock", seconds(wrap));
        warn(cx, "tick", &registers.tick, message).suggestion = Some("a longer tick".to_string());
    }
}

/// Prints a time in seconds.
fn seconds(span: Span) -> String {
    format!("{:.1} s", span.as_secs_f64())
}
