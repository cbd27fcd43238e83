//! Drop notifications: names that nobody has, and one end without the other.

use super::transport::{shown, warn};
use super::{at_transport, used_transports, Network};
use crate::doc::Parts;
use crate::pattern;
use fanin_params::{Cx, Node, Value};
use fanin_switch::{Buffer, NotificationConfig, PdnParams};
use fanin_transport::TransportConfig;
use fanin_units::{Bytes, NodeId};

/// Checks notifications as a whole; gives the nodes that know nothing of them, ascending.
pub(super) fn check(parts: &Parts, network: &Network, cx: &mut Cx) -> Vec<NodeId> {
    let pdn = match parts.switch.as_ref().map(|switch| &switch.notification) {
        Some(NotificationConfig::Pdn(pdn)) => pdn,
        Some(NotificationConfig::None(_)) => {
            nobody_tells(parts, cx);
            return Vec::new();
        }
        None => return Vec::new(),
    };
    cx.key("switch", |cx| {
        cx.key("notification", |cx| {
            who_is_told(parts, pdn, cx);
            room(parts, pdn, cx);
            let nobody = ("switch and no host", "nobody sends notifications", "no notification");
            let found = cx.key("unaware", |cx| unaware(&pdn.unaware, network.node_names(), nobody, network, cx));
            let hosts = network.switches().next().map_or(0, NodeId::index);
            if hosts > 0 && (0..hosts).all(|host| found.iter().any(|node| node.index() == host)) {
                cx.key("unaware", |cx| {
                    cx.warn(None, "names every host: no sender is told of a drop", None);
                });
            }
            found
        })
    })
}

/// Transports that wait for notifications which nobody sends.
fn nobody_tells(parts: &Parts, cx: &mut Cx) {
    for (name, TransportConfig::Tcp(tcp)) in used_transports(parts) {
        if tcp.drop_notification {
            at_transport(cx, name, |cx| {
                warn(cx, "drop_notification", &true, "waits for notifications that no switch sends").suggestion =
                    Some("set switch.notification = \"pdn\"".to_string());
            });
        }
    }
}

/// Notifications that nobody reads, or that have nothing to tell, or find no room in the frames that they shall go with.
fn who_is_told(parts: &Parts, pdn: &PdnParams, cx: &mut Cx) {
    if matches!(parts.switch.as_ref().map(|switch| &switch.buffer), Some(Buffer::Unlimited(_))) {
        cx.warn(None, "has nothing to tell: with an unlimited buffer nothing is dropped for want of room", None);
    }
    if pdn.loss == 1.0 {
        warn(cx, "loss", &pdn.loss, "loses every notification: no sender is told of a drop");
    }
    let used = used_transports(parts);
    if parts.all_traffic && !used.iter().any(|(_, TransportConfig::Tcp(tcp))| tcp.drop_notification) {
        cx.warn(None, "is heeded by no transport in use", None);
        if let Some(problem) = cx.last() {
            problem.suggestion = Some("set drop_notification = true at a transport".to_string());
        }
    }
    let header = parts.framing.as_ref().map_or(0, |framing| framing.header.get());
    for (name, TransportConfig::Tcp(tcp)) in used {
        let full = u64::from(tcp.mtu) + header;
        if tcp.drop_notification && full > pdn.max_frame.get() {
            let message =
                format!("has no room for a notification in a full frame of transport {name}: it takes {full} B with it");
            warn(cx, "max_frame", &pdn.max_frame, message).suggestion = Some(format!("at least {full} B"));
        }
    }
}

/// A queue with room for not even one: the parameter accepts 20 B, as one of IPv4 takes, and one of IPv6 takes more.
fn room(parts: &Parts, pdn: &PdnParams, cx: &mut Cx) {
    let bytes = Bytes(u64::from(parts.ip().notice()));
    if pdn.queue < bytes {
        let accepted = Some(format!("at least {bytes}"));
        cx.key("queue", |cx| cx.error(Some(&shown(&pdn.queue)), "has no room for one notification of IPv6", accepted).severity);
    }
}

/// The nodes that `unaware` names; `names` are those of the nodes that it may, by their ids, and empty of others. Words: what is
/// none of them, what it means to name every switch, and what to write instead.
pub(super) fn unaware(
    patterns: &[String],
    names: Vec<&str>,
    (none, nobody, instead): (&str, &str, &str),
    network: &Network,
    cx: &mut Cx,
) -> Vec<NodeId> {
    let mut chosen = vec![false; names.len()];
    for (i, wanted) in patterns.iter().enumerate() {
        let mut any = false;
        for (chosen, _) in chosen.iter_mut().zip(&names).filter(|(_, name)| !name.is_empty() && pattern::fits(wanted, name)) {
            *chosen = true;
            any = true;
        }
        if !any {
            cx.index(i, |cx| unknown(wanted, &names, none, cx));
        }
    }
    if network.switches().all(|switch| chosen[switch.index()]) {
        let accepted = format!("at least one switch that is not in it, or {instead}");
        cx.error(Some(&shown(&patterns.to_vec())), format!("names every switch: {nobody}"), Some(accepted));
    }
    (0u32..).zip(&chosen).filter(|(_, chosen)| **chosen).map(|(i, _)| NodeId(i)).collect()
}

fn unknown(wanted: &str, names: &[&str], none: &str, cx: &mut Cx) {
    let names: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
    let node: Node = Value::Text(wanted.to_string()).into();
    cx.unknown(Some(&node), "node", wanted, &names);
    if let Some(problem) = cx.last() {
        problem.line = None;
        problem.message = format!("{} no {none}", if wanted.contains('*') { "matches" } else { "is" });
        let few: Vec<&str> = names.iter().rev().take(4).copied().collect();
        let more = if names.len() > few.len() { format!(", … ({} in all)", names.len()) } else { String::new() };
        problem.accepted = Some(format!("names and patterns such as \"leaf*\"; there are {}{more}", few.join(", ")));
    }
}
