//! Telemetry: ports that match nothing, samples that miss what they are taken for.

use super::switch::port_buffer;
use super::transport::warn;
use super::Network;
use crate::doc::Parts;
use crate::pattern;
use crate::sections::Sampling;
use fanin_params::{Cx, Node, Value};
use fanin_units::LinkId;

/// The ports that `telemetry.queues` names, in order of their ids.
pub(super) fn watched(parts: &Parts, network: &Network, cx: &mut Cx) -> Vec<LinkId> {
    let Some(telemetry) = &parts.telemetry else { return Vec::new() };
    let mut chosen = vec![false; network.ports.len()];
    let names: Vec<&str> = network.ports.iter().map(|port| port.name.as_str()).collect();
    for (i, wanted) in telemetry.queues.iter().enumerate() {
        let mut any = false;
        for (port, chosen) in network.ports.iter().zip(&mut chosen) {
            if pattern::fits(wanted, &port.name) {
                any = true;
                *chosen = true;
            }
        }
        if !any {
            cx.key("telemetry", |cx| cx.key("queues", |cx| cx.index(i, |cx| unknown(wanted, &names, cx))));
        }
    }
    (0u32..).zip(&chosen).filter(|(_, chosen)| **chosen).map(|(i, _)| LinkId(i)).collect()
}

/// A name or pattern of ports that is none of `names`.
pub(super) fn unknown(wanted: &str, names: &[&str], cx: &mut Cx) {
    let node: Node = Value::Text(wanted.to_string()).into();
    cx.unknown(Some(&node), "port", wanted, names);
    if let Some(problem) = cx.last() {
        problem.line = None;
        problem.message = if wanted.contains('*') { "matches no port".to_string() } else { "is no port".to_string() };
        let few: Vec<&str> = names.iter().take(4).copied().collect();
        let more = if names.len() > few.len() { format!(", … ({} ports)", names.len()) } else { String::new() };
        problem.accepted = Some(format!("names and patterns such as \"leaf0->*\"; the ports are {}{more}", few.join(", ")));
    }
}

/// A period in which the largest burst that a port can hold comes and goes.
pub(super) fn sampling(parts: &Parts, network: &Network, cx: &mut Cx) {
    let (Some(telemetry), Some(switch)) = (&parts.telemetry, &parts.switch) else { return };
    let Sampling::Every(period) = telemetry.sample else { return };
    let Some(buffer) = port_buffer(switch) else { return };
    // The slowest port drains its buffer last: where even its bursts are too short, all are.
    let Some(slowest) = network.ports.iter().filter(|port| port.of_switch).map(|port| port.rate).min() else { return };
    let drain = slowest.time_to_send(buffer);
    if period > drain {
        cx.key("telemetry", |cx| {
            let message = format!(
                "is above {drain}, in which a full buffer of {buffer} drains at {slowest}: bursts fall between two samples"
            );
            warn(cx, "sample", &telemetry.sample, message).suggestion =
                Some("a shorter period, or list ports in telemetry.queues to record each packet".to_string());
        });
    }
}
