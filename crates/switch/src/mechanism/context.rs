//! Context of a mechanism's checks: the parts of a scenario that they need, and checks that several mechanisms share.

use super::{names_it, Mechanisms, PortSite, Site};
use crate::{Buffer, PortSettings, Scheduling, Switch};
use fanin_packet::{Framing, Signals};
use fanin_params::{pattern, Cx, Node as Value, Param};
use fanin_units::{Amount, Bytes, Span};

/// The scenario around a set of mechanisms.
pub struct Context<'a> {
    /// The set of mechanisms itself: checks ask here for the capabilities of the others.
    pub mechanisms: &'a Mechanisms,
    /// Settings of switches.
    pub switch: &'a Switch,
    /// Settings of the ports of the switches that have this set, each combination once.
    pub ports: &'a [PortSettings<'a>],
    /// Frames of the traffic.
    pub frames: Frames,
    /// Hosts around the switches.
    pub hosts: Hosts,
    /// Packets that hosts send.
    pub traffic: Traffic<'a>,
    /// Nodes and routes.
    pub network: Network<'a>,
    /// Longest time that the run may take, where the scenario gives one.
    pub duration: Option<Span>,
}

/// Frames of the traffic.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// Framing of packets.
    pub framing: Framing,
    /// Bytes of each frame behind the IP packet.
    pub trailer: u16,
    /// Bytes that headers of mechanisms, at whatever switch, add to a frame at most.
    pub header_bytes: u16,
}

/// Hosts around mechanisms.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hosts {
    /// True if NICs are queues, first in, first out.
    pub fifo_nics: bool,
    /// True if hosts have a reordering buffer before their transports.
    pub puts_in_order: bool,
}

/// Packets that hosts send.
#[derive(Clone, Copy, Debug)]
pub struct Traffic<'a> {
    /// Classes of the traffic that could be read.
    pub classes: &'a [u8],
    /// Transports in use.
    pub transports: &'a [TransportInUse<'a>],
    /// True if all traffic could be read, so that no other transport is in use.
    pub is_complete: bool,
    /// Bytes of the largest IP packet of sources of datagrams; zero without.
    pub datagram: u64,
}

/// Nodes and routes; all empty where the topology could not be built.
#[derive(Clone, Copy)]
pub struct Network<'a> {
    /// Sites of the switches that have this set of mechanisms.
    pub sites: &'a [Site],
    /// Names of the switches that have this set of mechanisms.
    pub switches: &'a [&'a str],
    /// All nodes by name, with true for switches.
    pub nodes: &'a [(&'a str, bool)],
    /// Most switches on a path between two hosts.
    pub longest_path: u32,
    /// Names of links in a circle, the packets of each going on over the next; none where routes have no circle.
    pub circle: &'a dyn Fn() -> Option<Vec<String>>,
    /// Names of links that are down together during the run, and of links in a circle that the tables without them have, where the intact
    /// network has none.
    pub rerouted: &'a dyn Fn() -> Option<[Vec<String>; 2]>,
}

/// A transport in use.
#[derive(Clone, Copy, Debug)]
pub struct TransportInUse<'a> {
    pub name: &'a str,
    /// Signals on which the transport acts.
    pub acts_on: Signals,
    /// Signals on which the transport could act, each with the key that switches it on.
    pub keys: &'a [(Signals, &'a str)],
    /// Bytes of the transport's largest IP packet.
    pub mtu: u16,
    /// Bytes of IP and transport header of a packet without data.
    pub headers: u16,
    /// True if the transport's packets may be marked, and it acts on marks.
    pub uses_ecn: bool,
    /// Largest payload that the transport hands to the NIC at once, and the key that says so; `None`: a packet.
    pub burst: Option<(&'static str, Bytes)>,
    /// Bytes of telemetry in the transport's largest frame; zero where it asks for none.
    pub telemetry: u16,
    /// Retries after which the transport's flows fail without a loss; `None`: nothing makes them fail.
    pub retries: Option<Retries>,
}

/// A timeout without progress, and the number of them in a row that a flow survives.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    /// Key of the timeout, the shortest of several.
    pub key: &'static str,
    pub timeout: Span,
    /// Exponent n of a timeout that doubles with each, if the key has that.
    pub exponent: Option<u32>,
    /// Timeouts in a row with which a flow fails.
    pub times: u32,
    /// Keys to raise for longer ones.
    pub raise: &'static str,
}

impl Context<'_> {
    /// True if nothing is dropped for want of room.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.ports.iter().all(PortSettings::is_unlimited)
    }

    /// Bounds of each port, where all of them have a buffer of their own; else none.
    pub(crate) fn buffers(&self) -> Vec<Amount> {
        self.ports.iter().map(|port| port.buffer).collect::<Option<Vec<Amount>>>().unwrap_or_default()
    }

    /// Room of a virtual output queue of an input, at combined input- and output-queued switches.
    pub(crate) fn voq(&self) -> Option<Bytes> {
        self.switch.architecture.combined().map(|combined| combined.voq)
    }

    /// Bytes of a buffer cell.
    pub(crate) fn cell(&self) -> u32 {
        self.switch.cell_bytes()
    }

    /// True if some port has queues for several classes.
    pub(crate) fn has_classes(&self) -> bool {
        self.ports.iter().any(|port| !matches!(port.scheduling, Scheduling::Fifo(_)))
    }

    /// Number of queues of the port that has most of them.
    pub(crate) fn most_queues(&self) -> usize {
        self.ports.iter().map(|port| port.scheduling.classes()).max().unwrap_or(1)
    }

    /// The most that queues of each port may hold, reservations included; `None`: without bound.
    pub(crate) fn most_of_ports(&self) -> Vec<Option<Amount>> {
        let shared = |alpha: f64| match &self.switch.buffer {
            Buffer::Dynamic(shared) => Some(shared.most(alpha)),
            _ => None,
        };
        self.ports.iter().map(|port| port.buffer.or_else(|| port.alpha.and_then(shared))).collect()
    }

    /// Names of two links that packets on detours go around, if a mechanism sends packets to neighbours that send them back. A neighbour sends
    /// back what leaves a switch by any port but the right one, as its ways to what is behind the switch lead over that.
    pub(crate) fn circle_of_detours(&self) -> Option<[String; 2]> {
        let strays = self.mechanisms.that_stray(!self.is_unlimited());
        let runs = |site: &Site| {
            let to_it =
                self.network.sites.iter().flat_map(|other| &other.ports).find(|port| !port.to_host && port.peer == site.name);
            to_it.is_some_and(|port| port.peer_runs.iter().any(|key| strays.contains(key)))
        };
        let there = |site: &Site| {
            let back = site.ports.iter().flat_map(|port| &port.back);
            let sends_back = back.map(|port| &site.ports[port.index()]).find(|port| Mechanisms::sends_back_at(&port.peer_runs));
            let astray = || site.ports.iter().find(|port| !port.to_host).filter(|_| !strays.is_empty() && runs(site));
            let peer = sends_back.or_else(astray)?;
            Some([format!("{}->{}", site.name, peer.peer), format!("{}->{}", peer.peer, site.name)])
        };
        self.network.sites.iter().find_map(there)
    }

    /// Shortest queues at which ports mark, each with its classes, a bit for each; of policies that mark nothing below one.
    pub(crate) fn marks_from(&self) -> Vec<(u8, Amount)> {
        let markings = self.ports.iter().flat_map(PortSettings::markings);
        markings.filter_map(|(classes, marking)| Some((classes, marking.marks_from()?))).collect()
    }

    /// Classes whose packets a marking policy drops, a bit for each.
    pub(crate) fn marking_drops(&self) -> u8 {
        let markings = self.ports.iter().flat_map(PortSettings::markings);
        markings.filter(|(_, marking)| marking.drops()).fold(0, |all, (classes, _)| all | classes)
    }

    /// True if a mechanism keeps packets of the traffic from being dropped for want of room.
    pub(crate) fn is_lossless(&self) -> bool {
        let lossless = self.mechanisms.lossless();
        self.traffic.classes.iter().any(|class| lossless >> (*class).min(7) & 1 != 0)
    }

    /// True if a mechanism drops packets of the traffic, whatever room ports have.
    pub(crate) fn mechanisms_drop(&self) -> bool {
        self.mechanisms.drop_any_of(self.traffic.classes)
    }

    /// Warns where no transport in use acts on the signals that the mechanism sends.
    pub(crate) fn check_signals(&self, signals: Signals, what: &str, cx: &mut Cx) {
        if !self.traffic.is_complete || self.traffic.transports.iter().any(|t| t.acts_on.has(signals)) {
            return;
        }
        cx.warn(None, format!("no transport in use acts on {what}"), None);
        let key = self.traffic.transports.iter().flat_map(|t| t.keys).find(|(signal, _)| *signal == signals);
        if let (Some(problem), Some((_, key))) = (cx.last(), key) {
            problem.suggestion = Some(format!("set {key} = true at a transport"));
        }
    }

    /// Warns of switches that run a mechanism and have no neighbour to send packets to. `needs`: the key of what a neighbour must run
    /// for that; `None`: any switch will do.
    pub(crate) fn check_neighbours(&self, runs: impl Fn(&str) -> bool, needs: Option<&str>, cx: &mut Cx) {
        let usable = |port: &PortSite| !port.to_host && needs.is_none_or(|key| port.peer_runs.contains(&key));
        let running: Vec<&Site> = self.network.sites.iter().filter(|site| runs(&site.name)).collect();
        let alone: Vec<&str> =
            running.iter().filter(|site| !site.ports.iter().any(usable)).map(|site| site.name.as_str()).collect();
        let Some(first) = alone.first() else { return };
        let where_ = match (alone.len(), running.len()) {
            (n, all) if n == all => "has no effect".to_string(),
            (1, _) => format!("has no effect at {first}"),
            (n, _) => format!("has no effect at {first} and {} others", n - 1),
        };
        let next_to_it = running.iter().flat_map(|site| &site.ports).any(|port| !port.to_host);
        let why = match needs {
            Some(key) if next_to_it => format!("no neighbour has {key}, so that none gets packets"),
            _ => "no neighbour is a switch".to_string(),
        };
        cx.warn(None, format!("{where_}: {why}"), None).suggestion = match needs {
            Some(key) if next_to_it => Some(format!("{key} at both ends of a link between switches")),
            _ => None,
        };
    }

    /// Warns where the time to live ends before any packet may take a detour, for which it must have `least` hops left.
    pub(crate) fn check_hops(&self, least: u8, cx: &mut Cx) {
        let Some(ttl) = self.network.sites.first().map(|site| site.ttl).filter(|ttl| *ttl <= least) else { return };
        let message = format!("has no effect: a packet must have {least} hops left, and hosts send with switch.ttl = {ttl}");
        let enough = format!(
            "switch.ttl = {} at the first switch of a way, one more for each further one, and two for each further detour",
            least + 1
        );
        cx.warn(None, message, None).suggestion = Some(enough);
    }

    /// Refuses patterns that name nobody, and such that name every switch.
    pub(crate) fn check_unaware(&self, patterns: &[String], hosts: bool, (nobody, instead): (&str, &str), cx: &mut Cx) {
        if self.network.nodes.is_empty() {
            return;
        }
        let allowed: Vec<&str> =
            self.network.nodes.iter().filter(|(_, switch)| *switch || hosts).map(|(name, _)| *name).collect();
        let none = if hosts { "switch and no host" } else { "switch" };
        for (i, wanted) in patterns.iter().enumerate() {
            if !allowed.iter().any(|name| pattern::fits(wanted, name)) {
                cx.index(i, |cx| unknown(wanted, &allowed, none, cx));
            }
        }
        if !self.network.switches.is_empty() && self.network.switches.iter().all(|name| names_it(patterns, name)) {
            let accepted = format!("at least one switch that is not in it, or {instead}");
            let value: Value = patterns.to_vec().to_value().into();
            let everywhere = self.network.switches.len() == self.network.nodes.iter().filter(|(_, switch)| *switch).count();
            let message =
                if everywhere { format!("names every switch: {nobody}") } else { "names every switch that has it".to_string() };
            cx.error(Some(&value), message, Some(accepted));
        }
    }
}

fn unknown(wanted: &str, names: &[&str], none: &str, cx: &mut Cx) {
    let node: Value = wanted.to_string().to_value().into();
    cx.unknown(Some(&node), "node", wanted, names);
    if let Some(problem) = cx.last() {
        problem.line = None;
        problem.message = format!("{} no {none}", if wanted.contains('*') { "matches" } else { "is" });
        let few: Vec<&str> = names.iter().rev().take(4).copied().collect();
        let more = if names.len() > few.len() { format!(", … ({} in all)", names.len()) } else { String::new() };
        problem.accepted = Some(format!("names and patterns such as \"leaf*\"; there are {}{more}", few.join(", ")));
    }
}
