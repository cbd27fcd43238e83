//! Scenario documents: the table of all settings, and their salvage from documents with errors.

use crate::events::{Failover, LinkEvent};
use crate::locate::{exact, remove};
use crate::sections::{Engine, Framing, Host, Telemetry};
use fanin_packet::IpVersion;
use fanin_params::{params, Cx, Node, Param, Value};
use fanin_switch::Switch;
use fanin_topology::TopologyConfig;
use fanin_traffic::Entry;
use fanin_transport::TransportConfig;
use fanin_units::Span;
use std::collections::BTreeMap;

params! {
    /// A scenario: every setting that a run depends on.
    pub struct ScenarioDoc {
        /// Name of the scenario, shown in results.
        pub name: String = "scenario".to_string();
        /// Purpose of the scenario, in free text.
        pub description: Option<String>;
        /// Seed of all random numbers; equal seeds give equal runs.
        pub seed: u64 = 1, in 0..=SEED_MAX;
        /// Time at which the run stops. If absent, it stops when all flows are complete and their senders know it, including
        /// the timers that this takes.
        pub duration: Option<Span>, in Span::from_ps(1)..=fanin_traffic::LONGEST;
        /// Topology: hosts, switches and links.
        pub topology: TopologyConfig;
        /// Framing: the bytes that link layer and IP add to each packet.
        pub framing: Framing = all_defaults();
        /// Settings of all switches.
        pub switch: Switch = all_defaults();
        /// Settings of all hosts.
        pub host: Host = all_defaults();
        /// Default transport, for traffic that names none; called "default" in results.
        pub transport: TransportConfig = TransportConfig::default();
        /// Further transports by name, for `[[traffic]]` tables to refer to.
        pub transports: BTreeMap<String, TransportConfig> = BTreeMap::new();
        /// Traffic: the flows, datagram streams and queries of the applications.
        pub traffic: Vec<Entry>;
        /// Events of links during the run: failures, flaps, bit errors.
        pub events: Vec<LinkEvent> = Vec::new();
        /// Failover: how ends of links and switches react to failures.
        pub failover: Failover = all_defaults();
        /// Telemetry: the data that is recorded.
        pub telemetry: Telemetry = all_defaults();
        /// Engine: execution of the simulation.
        pub engine: Engine = all_defaults();
    }
}

/// Largest seed that a document can write.
const SEED_MAX: u64 = i64::MAX as u64;

/// Name of the transport in `[transport]`, in results.
pub const DEFAULT_TRANSPORT: &str = "default";

/// The default of a table all of whose keys have defaults.
pub(crate) fn all_defaults<T: Param>() -> T {
    let empty: Node = Value::Table(Vec::new()).into();
    T::parse(&empty, &mut Cx::new()).expect("every key has a default")
}

/// Parts of a document that could be parsed, each by itself, so that an error in one hides none in another.
pub(crate) struct Parts {
    pub topology: Option<TopologyConfig>,
    pub framing: Option<Framing>,
    pub switch: Option<Switch>,
    pub host: Option<Host>,
    /// Transports by name: the default one first, then in order of names.
    pub transports: Vec<(String, Option<TransportConfig>)>,
    /// True if a named transport has the name of the default one.
    pub default_named: bool,
    /// Entries that could be parsed, with their index in the document.
    pub traffic: Vec<(usize, Entry)>,
    /// True if every entry could be parsed.
    pub all_traffic: bool,
    /// Events that could be parsed, with their index in the document.
    pub events: Vec<(usize, LinkEvent)>,
    /// True if every event could be parsed.
    pub all_events: bool,
    pub failover: Option<Failover>,
    pub telemetry: Option<Telemetry>,
    pub engine: Option<Engine>,
    pub duration: Option<Span>,
    pub seed: u64,
}

impl Parts {
    /// Takes the parts from a document without errors.
    pub fn of(doc: &ScenarioDoc) -> Self {
        let others = doc.transports.iter().filter(|(name, _)| *name != DEFAULT_TRANSPORT);
        let named = others.map(|(name, config)| (name.clone(), Some(config.clone())));
        let default = (DEFAULT_TRANSPORT.to_string(), Some(doc.transport.clone()));
        Parts {
            topology: Some(doc.topology.clone()),
            framing: Some(doc.framing.clone()),
            switch: Some(doc.switch.clone()),
            host: Some(doc.host.clone()),
            transports: std::iter::once(default).chain(named).collect(),
            default_named: doc.transports.contains_key(DEFAULT_TRANSPORT),
            traffic: doc.traffic.iter().cloned().enumerate().collect(),
            all_traffic: true,
            events: doc.events.iter().cloned().enumerate().collect(),
            all_events: true,
            failover: Some(doc.failover.clone()),
            telemetry: Some(doc.telemetry.clone()),
            engine: Some(doc.engine.clone()),
            duration: doc.duration,
            seed: doc.seed,
        }
    }

    /// Bytes of each frame behind the IP packet and its padding.
    pub fn trailer(&self) -> u16 {
        self.telemetry.as_ref().map_or(0, Telemetry::trailer)
    }

    /// Version of IP of all hosts.
    pub fn ip(&self) -> IpVersion {
        self.framing.as_ref().map_or(IpVersion::default(), Framing::version)
    }

    /// Parses the parts of a document with errors, which were reported when it was parsed as a whole.
    pub fn salvage(document: &Node) -> Self {
        let mut transports =
            vec![(DEFAULT_TRANSPORT.to_string(), part(document, "transport").or_else(|| absent(document, "transport")))];
        if let Some(Value::Table(named)) = document.get("transports").map(|node| &node.value) {
            let others = named.iter().filter(|(name, _)| name != DEFAULT_TRANSPORT);
            let mut named: Vec<(String, Option<TransportConfig>)> =
                others.map(|(name, node)| (name.clone(), parse_quietly(node))).collect();
            named.sort_by(|a, b| a.0.cmp(&b.0));
            transports.extend(named);
        }
        let entries = list(document, "traffic");
        let events: Vec<(usize, LinkEvent)> =
            list(document, "events").iter().enumerate().filter_map(|(i, node)| Some((i, parse_quietly(node)?))).collect();
        let traffic: Vec<(usize, Entry)> =
            entries.iter().enumerate().filter_map(|(i, node)| Some((i, parse_quietly(node)?))).collect();
        Parts {
            topology: document.get("topology").and_then(|node| TopologyConfig::parse(node, &mut Cx::new())), // its numbers name hosts
            framing: or_defaults(document, "framing"),
            switch: or_defaults(document, "switch"),
            host: or_defaults(document, "host"),
            transports,
            default_named: document.get("transports").is_some_and(|named| named.get(DEFAULT_TRANSPORT).is_some()),
            all_traffic: traffic.len() == entries.len() && !entries.is_empty(),
            traffic,
            all_events: events.len() == list(document, "events").len(),
            events,
            failover: or_defaults(document, "failover"),
            telemetry: telemetry(document),
            engine: or_defaults(document, "engine"),
            duration: part(document, "duration"),
            seed: part(document, "seed").unwrap_or(1),
        }
    }
}

/// Parses a part without reporting problems: malformed numbers and sizes are treated as absent, so that the rest is checked.
/// Malformed names are not, as other checks depend on them.
fn parse_quietly<T: Param>(node: &Node) -> Option<T> {
    let mut cx = Cx::new();
    if let Some(read) = T::parse(node, &mut cx) {
        return Some(read);
    }
    let mut rest = node.clone();
    for problem in cx.into_problems() {
        let leaf = |node: &Node| !matches!(node.value, Value::Table(_) | Value::List(_));
        if !problem.message.contains("is not a known") && exact(node, &problem.path).is_some_and(leaf) {
            remove(&mut rest, &problem.path);
        }
    }
    T::parse(&rest, &mut Cx::new())
}

/// Parses telemetry as far as possible, so that an error in one of its keys hides none in another.
fn telemetry(document: &Node) -> Option<Telemetry> {
    let Some(mut rest) = document.get("telemetry").cloned() else { return Some(all_defaults()) };
    let mut cx = Cx::new();
    Telemetry::parse(&rest, &mut cx);
    for problem in cx.into_problems() {
        let key = problem.path.split(['.', '[']).next().unwrap_or_default();
        let Value::Table(entries) = &mut rest.value else { return None };
        for (_, node) in entries.iter_mut().filter(|(name, _)| name == key) {
            replace_malformed(node);
        }
    }
    parse_quietly(&rest).or_else(|| {
        let Value::Table(entries) = &mut rest.value else { return None };
        entries.retain(|(key, _)| matches!(key.as_str(), "queues" | "hosts"));
        parse_quietly(&rest)
    })
}

/// Replaces malformed entries of a list of patterns by `*`, which matches everything, so that the other entries keep their
/// index.
fn replace_malformed(node: &mut Node) {
    if let Value::List(items) = &mut node.value {
        items.iter_mut().filter(|item| item.text().is_none()).for_each(|item| item.value = Value::Text("*".into()));
    }
}

/// The items of a list; none where there is no such list.
fn list<'a>(document: &'a Node, key: &str) -> &'a [Node] {
    match document.get(key).map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

fn part<T: Param>(document: &Node, key: &str) -> Option<T> {
    parse_quietly(document.get(key)?)
}

fn or_defaults<T: Param>(document: &Node, key: &str) -> Option<T> {
    match document.get(key) {
        Some(node) => parse_quietly(node),
        None => Some(all_defaults()),
    }
}

fn absent(document: &Node, key: &str) -> Option<TransportConfig> {
    document.get(key).is_none().then(TransportConfig::default)
}
