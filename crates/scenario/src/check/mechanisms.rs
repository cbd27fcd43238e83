//! Checks of mechanisms against the rest of the scenario: each mechanism checks itself; classes without the needed protection
//! are found here.

use super::events::circle_of_tables;
use super::pauses::pausing;
use super::settings::{at_setting, Settings};
use super::transport::warn;
use super::{at_transport, datagrams, ip_and_udp, used_transports, Network, OfTraffic};
use crate::doc::Parts;
use crate::events::Events;
use crate::sections::Nic;
use fanin_packet::{Signals, Stack, MAX_HOPS};
use fanin_params::Cx;
use fanin_switch::{Context, Frames, Hosts, Mechanisms, PortSettings, Retries, Site, Traffic, TransportInUse};
use fanin_transport::{FailsAfter, TransportParams};
use fanin_units::NodeId;

/// Checks the mechanisms of `parts`; names of nodes only if the network could be built.
pub(super) fn check(
    parts: &Parts,
    settings: &Settings,
    (network, events, traffic): (Option<&Network>, &Events, &OfTraffic),
    cx: &mut Cx,
) {
    let Some(framing) = &parts.framing else { return };
    let used = used_transports(parts);
    let longest_path = network.map_or(0, Network::longest);
    let records = (longest_path as usize).min(MAX_HOPS);
    let transports: Vec<TransportInUse> = used
        .iter()
        .map(|(name, config)| TransportInUse {
            name,
            acts_on: config.acts_on(),
            keys: config.signal_keys(),
            mtu: config.mtu(parts.ip()),
            headers: config.longest_header(parts.ip()),
            uses_ecn: config.uses_ecn(),
            burst: config.burst(),
            telemetry: config.needs_telemetry().map_or(0, |_| Stack::bytes(records)),
            retries: config.fails_after().map(|FailsAfter { timer, times, raise }| Retries {
                key: timer.key,
                timeout: timer.value,
                exponent: timer.exponent,
                times,
                raise,
            }),
        })
        .collect();
    let first = network.and_then(|network| network.switches().next()).map_or(0, NodeId::index);
    let names = network.map(Network::node_names).unwrap_or_default();
    let nodes: Vec<(&str, bool)> = names.into_iter().enumerate().map(|(i, name)| (name, i >= first)).collect();
    let classes: Vec<u8> = traffic.in_use(parts).into_iter().collect();
    let runs = |node: NodeId| {
        let mechanisms = settings.switch.mechanisms_of(settings.exceptions.switch(node));
        mechanisms.keys_at(nodes.get(node.index()).map_or("", |(name, _)| *name))
    };
    let (mut sent, mut telemetry) = (Signals::NONE, false);
    let header_bytes = settings.mechanisms().iter().map(|(_, mechanisms)| mechanisms.header_bytes()).max().unwrap_or(0);
    let headers = settings.mechanisms().into_iter().find_map(|(entry, mechanisms)| Some((entry, mechanisms.with_headers()?)));
    for (entry, mechanisms) in settings.mechanisms() {
        let here = |node: &NodeId| settings.exceptions.switch(*node) == entry;
        let switches: Vec<&str> =
            network.iter().flat_map(|network| network.switches()).filter(here).map(|node| nodes[node.index()].0).collect();
        let sites: Vec<Site> = network
            .iter()
            .flat_map(|network| network.switches().filter(here).filter_map(|node| network.site(node, parts, runs)))
            .collect();
        let ports: Vec<PortSettings> = settings.ports_with(entry).collect();
        let context = Context {
            mechanisms,
            switch: settings.switch,
            ports: &ports,
            frames: Frames { framing: framing.of_packets(), trailer: parts.trailer(), header_bytes },
            hosts: Hosts {
                fifo_nics: parts.host.as_ref().is_some_and(|host| matches!(host.nic, Nic::Fifo(_))),
                puts_in_order: parts.host.as_ref().is_some_and(|host| host.reorder.is_some()),
            },
            traffic: Traffic {
                classes: &classes,
                transports: &transports,
                is_complete: parts.all_traffic,
                datagram: datagrams(parts).map(|(_, packet)| packet.get() + ip_and_udp(parts)).max().unwrap_or(0),
            },
            network: fanin_switch::Network {
                sites: &sites,
                switches: &switches,
                nodes: &nodes,
                longest_path,
                circle: &|| network?.circle(),
                rerouted: &|| circle_of_tables(events, parts, network?),
            },
            duration: parts.duration,
        };
        at_setting(entry, "mechanisms", cx, |cx| {
            mechanisms.check(&context, cx);
            if let (Some((_, first)), Some(key)) = (headers.filter(|(other, _)| *other != entry), mechanisms.with_headers()) {
                if first != key {
                    let message =
                        format!("puts headers into frames, as {first} does at other switches, and a frame can hold only one");
                    cx.key(key, |cx| cx.error(None, message, Some(format!("{first} or {key} at all switches"))).severity);
                }
            }
        });
        sent = sent.with(mechanisms.signals());
        telemetry |= mechanisms.telemetry();
    }
    lossy(parts, settings, traffic, cx);
    for (name, config) in used {
        if let Some(what) = config.needs_telemetry().filter(|_| !telemetry) {
            let accepted = Mechanisms::that_writes_telemetry().map(|key| format!("switches with [switch.mechanisms.{key}]"));
            at_transport(cx, name, |cx| {
                cx.error(None, format!("is controlled by {what}, which needs telemetry, and no switch writes any"), accepted);
            });
        }
        for (signal, key) in config.signal_keys() {
            if !config.acts_on().has(*signal) || sent.has(*signal) {
                continue;
            }
            let senders = Mechanisms::that_signal(*signal);
            at_transport(cx, name, |cx| {
                warn(cx, key, &true, "acts on signals that no switch sends").suggestion =
                    senders.first().map(|sender| format!("add [switch.mechanisms.{sender}]"));
            });
        }
    }
}

/// Warns of transports whose acknowledgments or notifications travel in a class that may be dropped while their data's class
/// may not.
fn lossy_answers(parts: &Parts, traffic: &OfTraffic, is_lossy: impl Fn(u8) -> bool, cx: &mut Cx) {
    for (name, config) in used_transports(parts) {
        let classes = traffic.of_transport(parts, name);
        if classes.is_empty() || classes.into_iter().any(&is_lossy) {
            continue;
        }
        for (key, class) in config.other_classes().into_iter().filter(|(_, class)| is_lossy(*class)) {
            at_transport(cx, name, |cx| {
                let message =
                    "is a class that may drop packets, while the data's class may not: the sender waits for packets lost there";
                warn(cx, key, &class, message).suggestion = Some(format!("no {key}, or class {class} among the lossless ones"));
            });
        }
    }
}

/// Warns of loss-sensitive transports in classes whose packets may be dropped.
fn lossy(parts: &Parts, settings: &Settings, traffic: &OfTraffic, cx: &mut Cx) {
    if settings.unlimited() && settings.mechanisms().iter().all(|(_, mechanisms)| mechanisms.lossless() == 0) {
        return; // queues without bound drop nothing
    }
    let lossless = settings.lossless();
    let is_lossy = |class: u8| lossless >> (class & 7) & 1 == 0;
    lossy_answers(parts, traffic, is_lossy, cx);
    for (name, config) in used_transports(parts) {
        let Some(remedy) = config.wants_lossless() else { continue };
        let classes = traffic.of_transport(parts, name);
        let Some(class) = classes.into_iter().find(|class| is_lossy(*class)) else { continue };
        let message =
            format!("is in class {class}, which may drop packets: after each loss all packets behind it are retransmitted");
        at_transport(cx, name, |cx| {
            cx.warn(None, message, None).suggestion = Some(format!("{} with class {class}, or {remedy}", pausing()));
        });
    }
}
