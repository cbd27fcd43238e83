//! Resolution of `switch.except`: the ports and switches that each entry selects.

use super::names::{unknown, PORT, SWITCH};
use super::Network;
use crate::doc::Parts;
use crate::exceptions::Exceptions;
use fanin_params::{pattern, Cx, Param};
use fanin_switch::{Except, Setting};
use fanin_units::{BitRate, LinkId, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// Resolves the selectors of all entries to ports and switches. Selectors without a match, and a setting that two entries
/// give for one port, are errors.
pub(super) fn resolve(parts: &Parts, network: &Network, cx: &mut Cx) -> Exceptions {
    let mut found = Exceptions::default();
    let Some(switch) = parts.switch.as_ref().filter(|switch| !switch.except.is_empty()) else { return found };
    let fabric = Fabric::of(network);
    for (i, entry) in switch.except.iter().enumerate().filter(|(_, entry)| entry.selects()) {
        cx.key("switch", |cx| cx.key("except", |cx| cx.index(i, |cx| fabric.place(entry, i, &mut found, cx))));
    }
    found
}

/// A port of a switch with the properties that selectors test.
struct Port<'a> {
    link: LinkId,
    name: &'a str,
    rate: BitRate,
    switch: NodeId,
}

struct Fabric<'a> {
    ports: Vec<Port<'a>>,
    port_names: Vec<&'a str>,
    /// Switches by name, with their tier.
    switches: Vec<(NodeId, &'a str, u8)>,
    switch_names: Vec<&'a str>,
    rates: BTreeSet<BitRate>,
    tiers: BTreeSet<u8>,
}

impl<'a> Fabric<'a> {
    fn of(network: &'a Network) -> Self {
        let port = |(link, port): (LinkId, &'a super::network::PortSeen)| Port {
            link,
            name: port.name.as_str(),
            rate: port.rate,
            switch: port.from,
        };
        let ports: Vec<Port> = network.switch_ports().map(port).collect();
        let names = network.node_names();
        let switches: Vec<(NodeId, &str, u8)> =
            network.switches().map(|node| (node, names[node.index()], network.tier(node))).collect();
        Fabric {
            port_names: ports.iter().map(|port| port.name).collect(),
            rates: ports.iter().map(|port| port.rate).collect(),
            switch_names: switches.iter().map(|(_, name, _)| *name).collect(),
            tiers: switches.iter().map(|(_, _, tier)| *tier).collect(),
            ports,
            switches,
        }
    }

    /// Records the settings of an entry at the ports and switches that it selects; `cx` is at the entry.
    fn place(&self, entry: &Except, i: usize, found: &mut Exceptions, cx: &mut Cx) {
        if !self.check_selectors(entry, cx) {
            return;
        }
        let named = |patterns: &Option<Vec<String>>, name: &str| {
            patterns.as_ref().is_none_or(|patterns| patterns.iter().any(|wanted| pattern::fits(wanted, name)))
        };
        let selects = |(_, name, tier): &&(NodeId, &str, u8)| {
            named(&entry.switches, name) && entry.tier.is_none_or(|wanted| wanted == *tier)
        };
        let switches: Vec<(NodeId, &str)> = self.switches.iter().filter(selects).map(|(node, name, _)| (*node, *name)).collect();
        let chosen: BTreeSet<NodeId> = switches.iter().map(|(node, _)| *node).collect();
        let ports: Vec<&Port> = self
            .ports
            .iter()
            .filter(|port| chosen.contains(&port.switch))
            .filter(|port| named(&entry.ports, port.name) && entry.rate.is_none_or(|rate| rate == port.rate))
            .collect();
        if ports.is_empty() {
            let message = "selects no port: each selector matches some, and no port meets all of them";
            cx.error(None, message, Some("selectors with a port in common".to_string()));
            return;
        }
        for setting in Setting::ALL.into_iter().filter(|setting| entry.sets(*setting)) {
            let mut twice: BTreeMap<usize, &str> = BTreeMap::new();
            for port in &ports {
                let origins = found.ports.entry(port.link).or_default();
                if let Some(earlier) = origins.set(setting, i) {
                    twice.entry(earlier).or_insert(port.name);
                }
            }
            set_twice(setting.key(), &twice, "port", cx);
        }
        if entry.mechanisms.is_some() && entry.selects_switches() {
            let mut twice: BTreeMap<usize, &str> = BTreeMap::new();
            for (node, name) in switches {
                if let Some(earlier) = found.switches.insert(node, i) {
                    twice.entry(earlier).or_insert(name);
                }
            }
            set_twice("mechanisms", &twice, "switch", cx);
        }
    }

    /// True if each selector of the entry matches something by itself; reports those that do not.
    fn check_selectors(&self, entry: &Except, cx: &mut Cx) -> bool {
        let before = cx.count();
        let lists =
            [("ports", &entry.ports, &self.port_names, &PORT), ("switches", &entry.switches, &self.switch_names, &SWITCH)];
        for (key, patterns, names, what) in lists {
            for (j, wanted) in patterns.iter().flatten().enumerate() {
                if !names.iter().any(|name| pattern::fits(wanted, name)) {
                    cx.key(key, |cx| cx.index(j, |cx| unknown(what, wanted, names, cx)));
                }
            }
        }
        known("rate", entry.rate, &self.rates, "is the rate of no port of a switch", cx);
        known("tier", entry.tier, &self.tiers, "is no tier of this topology", cx);
        let empty = |names: &Option<Vec<String>>| names.as_ref().is_some_and(Vec::is_empty);
        cx.count() == before && !empty(&entry.ports) && !empty(&entry.switches)
    }
}

/// Refuses a selector's value that no port or switch has.
fn known<T: Param + Display + Ord + Copy>(key: &str, wanted: Option<T>, all: &BTreeSet<T>, message: &str, cx: &mut Cx) {
    let Some(wanted) = wanted.filter(|wanted| !all.contains(wanted)) else { return };
    let accepted: Vec<String> = all.iter().map(ToString::to_string).collect();
    cx.error_at(key, &wanted, message, &accepted.join(", "));
}

/// Refuses a setting that earlier entries give for some of the selected ports or switches; names one of them.
fn set_twice(key: &str, twice: &BTreeMap<usize, &str>, what: &str, cx: &mut Cx) {
    for (earlier, name) in twice {
        cx.key(key, |cx| {
            let message = format!("is also set for {name} by switch.except[{earlier}]");
            cx.error(None, message, Some(format!("one entry for each setting of a {what}"))).severity
        });
    }
}
