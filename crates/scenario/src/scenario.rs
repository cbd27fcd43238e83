//! The validated scenario, which is all that can be run.

use crate::canonical::{canonical_json, sha256};
use crate::check::{check, core_rate, crossbar_rate, host_infos, largest_frame, Captured, Network};
use crate::doc::{Parts, ScenarioDoc, DEFAULT_TRANSPORT};
use crate::events::{either, Errors, Events, Outage};
use crate::exceptions::Exceptions;
use crate::generate::{sorted, to_json};
use crate::locate::{locate, remove, unused};
use crate::read::{read_json, read_toml, MAX_DOCUMENT};
use crate::sections::Sampling;
use crate::sites::{hop_delay, overhead, Grounds};
use fanin_params::{Cx, Node, Param, Problem, Severity, Value, UNKNOWN_KEY};
use fanin_switch::{Mechanisms, PortSettings, Site};
use fanin_topology::{Routes, Topology, TopologyConfig};
use fanin_traffic::{Sizes, Traffic, TrafficContext, TrafficKind};
use fanin_transport::{TransportConfig, TransportParams};
use fanin_units::{BitRate, Bytes, HostId, LinkId, NodeId, Span, Time};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A scenario without errors: the document, and everything derived from it.
#[derive(Clone, Debug)]
pub struct Scenario {
    doc: ScenarioDoc,
    base_dir: PathBuf,
    topology: Topology,
    routes: Routes,
    largest_frame: Bytes,
    transports: Vec<(String, TransportConfig)>,
    watched: Vec<LinkId>,
    captured: Captured,
    exceptions: Exceptions,
    events: Events,
    warnings: Vec<Problem>,
    notes: Vec<String>,
    files: Vec<(String, String)>,
    /// Paths of defaults that have no effect beside the other settings.
    unused: Vec<String>,
}

/// Drops warnings that may only follow from errors: all of them if something could not be parsed (`read` is false), as
/// defaults may stand in for it; and those of tables that have an error.
fn with_warnings(mut problems: Vec<Problem>, read: bool) -> Vec<Problem> {
    let table = |path: &str| path.rsplit_once('.').map_or(path, |(table, _)| table).to_string();
    let wrong: Vec<String> = problems.iter().filter(|p| p.severity == Severity::Error).map(|p| table(&p.path)).collect();
    let apart = |path: &str| wrong.iter().all(|at| !path.starts_with(at.as_str()) && !at.starts_with(path));
    problems.retain(|p| p.severity == Severity::Error || read && apart(&p.path));
    problems
}

impl Scenario {
    /// Reads and validates a scenario file: JSON if it ends in `.json`, TOML otherwise. Relative paths in it start from its
    /// folder.
    ///
    /// # Errors
    /// All problems, in order of the file's lines; warnings come only with a scenario that can be run.
    pub fn load(path: &Path) -> Result<Scenario, Vec<Problem>> {
        let text = read_file(path)?;
        let base_dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json")) {
            Scenario::from_json(&text, base_dir)
        } else {
            Scenario::from_toml(&text, base_dir)
        }
    }

    /// Reads and validates a scenario in TOML; relative paths in it start from `base_dir`.
    ///
    /// # Errors
    /// As for [`Scenario::load`].
    pub fn from_toml(text: &str, base_dir: &Path) -> Result<Scenario, Vec<Problem>> {
        let (document, mut problems) = read_toml(text);
        let Some(document) = document else { return Err(problems) };
        if problems.is_empty() {
            return Scenario::from_document(&document, base_dir);
        }
        // What syntax errors left out is neither missing nor wrong; what is left may be.
        if let Err(others) = Scenario::from_document(&document, base_dir) {
            let reported: Vec<Option<u32>> = problems.iter().map(|p| p.line).collect();
            let missing = |p: &Problem| p.message == "is missing" || p.message.contains("is empty");
            problems.extend(others.into_iter().filter(|p| !missing(p) && !reported.contains(&p.line)));
        }
        locate(&document, &mut problems);
        Err(problems)
    }

    /// Reads and validates a scenario in JSON; relative paths in it start from `base_dir`.
    ///
    /// # Errors
    /// As for [`Scenario::load`].
    pub fn from_json(text: &str, base_dir: &Path) -> Result<Scenario, Vec<Problem>> {
        Scenario::from_document(&read_json(text)?, base_dir)
    }

    /// Validates a scenario; relative paths in it start from `base_dir`.
    ///
    /// # Errors
    /// As for [`Scenario::load`].
    pub fn from_document(document: &Node, base_dir: &Path) -> Result<Scenario, Vec<Problem>> {
        if matches!(&document.value, Value::Table(entries) if entries.is_empty()) {
            return Err(vec![empty_document()]);
        }
        let mut cx = Cx::new();
        let doc = ScenarioDoc::parse(document, &mut cx);
        let mut problems = cx.into_problems();
        if let Some(sweep) = problems.iter_mut().find(|problem| problem.path == "sweep") {
            sweep.suggestion = Some("fanin sweep runs a file with a [sweep] table".to_string());
        }
        // Nothing follows from a key that there is not.
        let read = |problem: &&Problem| !problem.message.starts_with(UNKNOWN_KEY);
        let unread: Vec<String> = problems.iter().filter(read).map(|problem| problem.path.clone()).collect();
        let parts = doc.as_ref().map_or_else(|| Parts::salvage(document), Parts::of);

        let topology = match parts.topology.as_ref().map(|config| Topology::build(config, base_dir)) {
            Some(Ok(topology)) => Some(topology),
            Some(Err(found)) => {
                problems.extend(found.into_iter().map(|problem| in_topology_file(problem, &parts)));
                None
            }
            None => None,
        };
        let routes = match topology.as_ref().map(Routes::shortest) {
            Some(Ok(routes)) => Some(routes),
            Some(Err(found)) => {
                problems.extend(found);
                None
            }
            None => None,
        };
        let odd = topology.iter().flat_map(|topology| topology.warnings.iter().cloned());
        problems.extend(odd.map(|problem| in_topology_file(problem, &parts)));
        let network = topology.as_ref().zip(routes.as_ref()).map(|(topology, routes)| Network::of(topology, routes));
        let findings = check(&parts, network.as_ref(), base_dir);
        problems.extend(findings.problems.into_iter().filter(|problem| !follows(problem, &unread)));
        let unused = unused(document, &mut problems);
        locate(document, &mut problems);
        match (doc, topology, routes) {
            (Some(doc), Some(topology), Some(routes)) if problems.iter().all(|p| p.severity == Severity::Warning) => {
                let files = digests(&doc, base_dir)?;
                let named = doc.transports.iter().map(|(name, config)| (name.clone(), config.clone()));
                let transports = std::iter::once((DEFAULT_TRANSPORT.to_string(), doc.transport.clone()))
                    .chain(named)
                    .map(|(name, config)| (name, config.with_mtu_less(doc.telemetry.trailer())))
                    .collect();
                let base_dir = base_dir.to_path_buf();
                Ok(Scenario {
                    doc,
                    base_dir,
                    topology,
                    routes,
                    largest_frame: largest_frame(&parts),
                    transports,
                    watched: findings.watched,
                    captured: findings.captured,
                    exceptions: findings.exceptions,
                    events: findings.events,
                    warnings: problems,
                    notes: findings.notes,
                    files,
                    unused,
                })
            }
            (doc, topology, routes) => {
                let read = doc.is_some() && topology.is_some() && routes.is_some();
                Err(with_warnings(problems, read))
            }
        }
    }

    /// Name of the scenario.
    pub fn name(&self) -> &str {
        &self.doc.name
    }

    /// Seed of all random numbers.
    pub fn seed(&self) -> u64 {
        self.doc.seed
    }

    /// Every parameter of the scenario.
    pub fn doc(&self) -> &ScenarioDoc {
        &self.doc
    }

    /// Folder from which relative paths start.
    pub fn base_dir(&self) -> &Path {
        &self.base_dir
    }

    /// The network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The shortest paths of the network.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Transports by name, "default" first; a flow's `transport` is an index into this list. Their MTU is reduced by the
    /// stamps of [`crate::Telemetry::registers`].
    pub fn transports(&self) -> &[(String, TransportConfig)] {
        &self.transports
    }

    /// Ports that `telemetry.queues` selects, ascending.
    pub fn watched(&self) -> &[LinkId] {
        &self.watched
    }

    /// Settings of a switch port.
    pub fn port(&self, port: LinkId) -> PortSettings<'_> {
        self.doc.switch.port(self.exceptions.port(port))
    }

    /// Mechanisms of a switch.
    pub fn mechanisms(&self, switch: NodeId) -> &Mechanisms {
        self.doc.switch.mechanisms_of(self.exceptions.switch(switch))
    }

    /// Hosts that `telemetry.capture` selects, ascending.
    pub fn captured(&self) -> &[HostId] {
        &self.captured.hosts
    }

    /// Links behind switches on which frames are captured, in order of their ids.
    pub fn captured_links(&self) -> &[LinkId] {
        &self.captured.links
    }

    /// Times at which links are down, for both directions by the smaller of their ids.
    pub fn outages(&self) -> &BTreeMap<LinkId, Vec<Outage>> {
        &self.events.outages
    }

    /// Times at which a link is down.
    pub fn outages_of(&self, link: LinkId) -> &[Outage] {
        self.outages().get(&either(&self.topology, link)).map_or(&[], Vec::as_slice)
    }

    /// Times at which frames arrive over links with bit errors, by direction.
    pub fn bit_errors(&self) -> &BTreeMap<LinkId, Vec<Errors>> {
        &self.events.errors
    }

    /// Time at which the run stops; `None`: when all flows are complete and their senders know it.
    pub fn stop(&self) -> Option<Time> {
        self.doc.duration.map(|duration| Time::ZERO + duration)
    }

    /// Delay from the last bit leaving a port until the node at the far end may act on the packet: propagation, and the
    /// latency of the switch or the processing delay of the host there.
    pub fn hop_delay(&self, link: LinkId) -> Span {
        hop_delay(&self.topology, link, self.doc.switch.latency, self.doc.host.processing_delay)
    }

    /// Rate of each input and output of a switch's crossbar; `None` if switches have none.
    pub fn crossbar_rate(&self, switch: NodeId) -> Option<BitRate> {
        crossbar_rate(&self.topology, &self.doc.switch, switch)
    }

    /// Upper bound of frame sizes of the traffic, with everything that switches may add.
    pub fn largest_frame(&self) -> Bytes {
        self.largest_frame
    }

    /// Wire bytes that a link adds to each frame.
    pub fn overhead(&self, link: LinkId) -> u16 {
        overhead(&self.topology, link, &self.doc.framing.of_packets())
    }

    /// Site of a switch: the facts about it and its network that its mechanisms start from.
    pub fn site(&self, switch: NodeId) -> Site {
        let grounds = Grounds {
            topology: &self.topology,
            routes: &self.routes,
            switch: &self.doc.switch,
            framing: self.doc.framing.of_packets(),
            trailer: self.doc.telemetry.trailer(),
            processing: self.doc.host.processing_delay,
            largest_frame: self.largest_frame,
            seed: self.doc.seed,
        };
        grounds.site(switch, |node| self.mechanisms(node).keys_at(&self.topology.nodes[node.index()].name))
    }

    /// The traffic, from its beginning.
    ///
    /// # Errors
    /// A file of the traffic that has changed since the scenario was validated.
    pub fn traffic(&self) -> Result<Traffic, Vec<Problem>> {
        let names: Vec<String> = self.transports.iter().map(|(name, _)| name.clone()).collect();
        let context = TrafficContext {
            hosts: host_infos(&self.topology, &self.routes),
            transports: &names,
            core_rate: core_rate(&self.topology),
            seed: self.doc.seed,
            duration: self.stop(),
            base_dir: &self.base_dir,
            max_flows: self.doc.engine.max_flows,
        };
        Traffic::new(&self.doc.traffic, &context)
    }

    /// Notes about decisions taken from the content of files, for example that a distribution is given in percent.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Warnings about settings that probably do not do what was meant.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// Document with every parameter that has an effect; parsing it gives an equal scenario.
    pub fn document(&self) -> Node {
        let mut document = self.doc.to_value().into();
        self.unused.iter().for_each(|path| remove(&mut document, path));
        // How a run is carried out, not what is simulated.
        remove(&mut document, "engine.threads");
        document
    }

    /// Resolved scenario: its document as JSON, with sorted keys.
    pub fn resolved(&self) -> serde_json::Value {
        sorted(to_json(&self.document().value))
    }

    /// Files that the scenario reads, each with the SHA-256 of its content.
    pub fn files(&self) -> &[(String, String)] {
        &self.files
    }

    /// Turns off all telemetry that only records: samples, watched packets, followed flows, captures. Stamps stay, as they
    /// take space in frames, and so do the ports that write them; the simulation is unchanged.
    #[must_use]
    pub fn unrecorded(mut self) -> Self {
        let telemetry = &mut self.doc.telemetry;
        telemetry.sample = Sampling::Off;
        telemetry.drops = false;
        telemetry.hosts.clear();
        telemetry.capture = None;
        self.captured = Captured::default();
        if telemetry.registers.is_none() {
            telemetry.queues.clear();
            self.watched.clear();
        }
        self
    }

    /// SHA-256, in hex digits, of the resolved scenario's canonical text ([`canonical_json`]); if the scenario reads files,
    /// of that text followed by a line `PATH SHA-256` for each.
    pub fn hash(&self) -> String {
        let mut text = canonical_json(&self.document());
        for (path, digest) in &self.files {
            text.push_str(&format!("\n{path} {digest}"));
        }
        sha256(text.as_bytes())
    }
}

/// Scenarios are equal if their documents and the contents of the files that they read are.
impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.doc == other.doc && self.files == other.files
    }
}

/// True if a problem may only follow from a value that could not be parsed: it is at the key of that value, or mentions it.
fn follows(problem: &Problem, unread: &[String]) -> bool {
    let speaks_of = |key: &str| {
        let texts = [Some(&problem.message), problem.accepted.as_ref(), problem.suggestion.as_ref()];
        let word = |c: char| !c.is_alphanumeric() && c != '_';
        texts.into_iter().flatten().any(|text| text.split(word).any(|part| part == key))
    };
    unread
        .iter()
        .any(|path| *path == problem.path || path.rsplit('.').next().is_some_and(|key| !key.is_empty() && speaks_of(key)))
}

/// Moves a problem of a topology file, reported under the file's name, to the key that names the file.
fn in_topology_file(mut problem: Problem, parts: &Parts) -> Problem {
    let Some(TopologyConfig::File(file)) = &parts.topology else { return problem };
    if let Some(rest) = problem.path.strip_prefix(&file.path) {
        let inside = rest.strip_prefix(": ").map_or(String::new(), |rest| format!(" {rest}"));
        let whole = problem.line.is_none() && problem.value.is_none() && inside.is_empty();
        if whole {
            problem.value = Some(format!("\"{}\"", file.path));
        }
        problem.path = if whole { "topology.path".to_string() } else { format!("topology.path ({}){inside}", file.path) };
    }
    problem
}

fn empty_document() -> Problem {
    Problem {
        severity: Severity::Error,
        path: String::new(),
        line: None,
        value: None,
        message: "the scenario is empty".to_string(),
        accepted: Some("at least [topology] and [[traffic]]".to_string()),
        suggestion: Some("docs/scenario.md begins with an example".to_string()),
    }
}

fn unreadable(path: &Path, cause: &str) -> Vec<Problem> {
    let mut problem = empty_document();
    problem.value = Some(format!("\"{}\"", path.display()));
    problem.message = format!("cannot be read: {cause}");
    (problem.accepted, problem.suggestion) = (None, None);
    vec![problem]
}

fn read_file(path: &Path) -> Result<String, Vec<Problem>> {
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error.to_string()))?;
    if !metadata.is_file() && !metadata.is_dir() {
        // To open it would wait for ever where nobody writes into a named pipe.
        return Err(unreadable(path, "it is a pipe or a device, not a file"));
    }
    let size = metadata.len();
    if size > MAX_DOCUMENT.get() {
        return Err(unreadable(
            path,
            &format!("it has {size} bytes, and a scenario has at most {MAX_DOCUMENT}; put long lists of flows into a CSV file"),
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| unreadable(path, &format!("byte {} is not UTF-8", error.utf8_error().valid_up_to())))
}

/// Files that a document names, each with the digest of its content, in order of their paths.
fn digests(doc: &ScenarioDoc, base_dir: &Path) -> Result<Vec<(String, String)>, Vec<Problem>> {
    let mut paths: Vec<&str> = Vec::new();
    if let TopologyConfig::File(file) = &doc.topology {
        paths.push(&file.path);
    }
    for entry in &doc.traffic {
        match &entry.kind {
            TrafficKind::File(file) => paths.push(file.format.path()),
            TrafficKind::Poisson(poisson) => paths.extend(size_file(&poisson.sizes)),
            TrafficKind::HotSpot(hot_spot) => paths.extend(size_file(&hot_spot.sizes)),
            _ => {}
        }
    }
    paths.sort_unstable();
    paths.dedup();
    let digest = |path: &str| {
        let full = base_dir.join(path);
        let bytes = std::fs::read(&full).map_err(|error| unreadable(&full, &error.to_string()))?;
        Ok((path.to_string(), sha256(&bytes)))
    };
    paths.into_iter().map(digest).collect()
}

fn size_file(sizes: &Sizes) -> Option<&str> {
    match sizes {
        Sizes::File(file) => Some(&file.path),
        _ => None,
    }
}
