//! Trimming: names that nobody has, one end without the other, and notifications beside it.

use super::notification::unaware;
use super::transport::{headers, shown, warn, TCP_HEADER};
use super::{at_transport, used_transports, Network};
use crate::doc::Parts;
use fanin_params::Cx;
use fanin_switch::{Buffer, NdpParams, NotificationConfig, Switch, TrimmingConfig};
use fanin_transport::TransportConfig;
use fanin_units::{Bytes, NodeId};

/// Checks trimming as a whole; gives the switches that do not trim, ascending.
pub(super) fn check(parts: &Parts, network: &Network, cx: &mut Cx) -> Vec<NodeId> {
    let Some(switch) = &parts.switch else { return Vec::new() };
    let TrimmingConfig::Ndp(ndp) = &switch.trimming else {
        nobody_trims(parts, cx);
        return Vec::new();
    };
    cx.key("switch", |cx| {
        cx.key("trimming", |cx| {
            what_for(parts, switch, cx);
            room(parts, ndp, cx);
            let nobody = ("switch", "nobody trims", "no trimming");
            let mut names = network.node_names();
            let first = network.switches().next().map_or(names.len(), NodeId::index);
            names[..first].fill(""); // hosts have no queue that trims
            cx.key("unaware", |cx| unaware(&ndp.unaware, names, nobody, network, cx))
        })
    })
}

/// Transports that answer what no switch sends.
fn nobody_trims(parts: &Parts, cx: &mut Cx) {
    for (name, TransportConfig::Tcp(tcp)) in used_transports(parts) {
        if tcp.trim_nack {
            at_transport(cx, name, |cx| {
                warn(cx, "trim_nack", &true, "answers trimmed packets, and no switch trims").suggestion =
                    Some("set switch.trimming = \"ndp\"".to_string());
            });
        }
    }
}

/// Nothing that could be trimmed, or nobody who answers.
fn what_for(parts: &Parts, switch: &Switch, cx: &mut Cx) {
    if !matches!(switch.notification, NotificationConfig::None(_)) {
        let message = "leaves nothing to tell of beside switch.notification: what would be dropped goes on without its payload";
        cx.error(None, message, Some("either switch.notification or switch.trimming".to_string()));
    }
    if matches!(switch.buffer, Buffer::Unlimited(_)) && !switch.marking.drops() {
        cx.warn(None, "has nothing to trim: with an unlimited buffer nothing is refused for want of room", None);
    }
    if parts.all_traffic && !used_transports(parts).iter().any(|(_, TransportConfig::Tcp(tcp))| tcp.trim_nack) {
        cx.warn(None, "is answered by no transport in use", None);
        if let Some(problem) = cx.last() {
            problem.suggestion = Some("set trim_nack = true at a transport".to_string());
        }
    }
}

/// A queue that holds no header.
fn room(parts: &Parts, ndp: &NdpParams, cx: &mut Cx) {
    let Some(framing) = &parts.framing else { return };
    // The longest acknowledgment without SACK blocks of those that are in use.
    let longest = used_transports(parts).iter().map(|(_, TransportConfig::Tcp(tcp))| headers(tcp, parts.ip())).max();
    let longest = longest.unwrap_or(parts.ip().header() + TCP_HEADER);
    let smallest = (framing.header + Bytes(u64::from(longest + parts.trailer()))).max(framing.min_frame);
    if ndp.headers < smallest {
        cx.key("headers", |cx| {
            cx.error(Some(&shown(&ndp.headers)), "has no room for a single header", Some(format!("at least {smallest}"))).severity
        });
    }
}
