//! Drafts: networks under construction, and the checks that every network passes.

use crate::config::{refuse_link, MAX_LINKS, MAX_NODES};
use crate::network::{Link, Node, NodeKind, Topology, Wire};
use fanin_params::{Problem, Severity};
use fanin_units::{LinkId, NodeId};
use std::collections::{BTreeMap, VecDeque};

/// Number of problems that are listed one by one; of further ones only the number.
const LISTED: usize = 100;

/// Problems found in the description of a network, each with its place.
#[derive(Default)]
pub(crate) struct Findings {
    /// The file's path, or the scenario key that describes the network.
    pub source: String,
    problems: Vec<Problem>,
    unlisted: usize,
    pub warnings: Vec<Problem>,
}

impl Findings {
    pub fn of(source: impl Into<String>) -> Self {
        Findings { source: source.into(), ..Self::default() }
    }

    /// Records an error. `value` is shown as written.
    pub fn error(&mut self, line: Option<u32>, value: Option<String>, message: impl Into<String>, accepted: Option<String>) {
        let problem = Problem {
            severity: Severity::Error,
            path: self.source.clone(),
            line,
            value: value.map(|v| shorten(&v)),
            message: message.into(),
            accepted,
            suggestion: None,
        };
        self.push(problem);
    }

    /// Records a problem found by another parser, with this source as its path.
    pub fn adopt(&mut self, mut problem: Problem) {
        problem.path = if problem.path.is_empty() { self.source.clone() } else { format!("{}: {}", self.source, problem.path) };
        self.push(problem);
    }

    fn push(&mut self, problem: Problem) {
        if self.problems.len() < LISTED {
            self.problems.push(problem);
        } else {
            self.unlisted += 1;
        }
    }

    /// Records a warning: something unusual that can be used.
    pub fn warn(&mut self, line: Option<u32>, message: impl Into<String>) {
        self.warnings.push(Problem {
            severity: Severity::Warning,
            path: self.source.clone(),
            line,
            value: None,
            message: message.into(),
            accepted: None,
            suggestion: None,
        });
    }

    pub fn failed(&self) -> bool {
        !self.problems.is_empty()
    }

    /// All recorded errors, with a summary of those beyond the listed ones.
    pub fn into_problems(mut self) -> Vec<Problem> {
        if self.unlisted > 0 {
            let message = format!("has {} more problems", self.unlisted);
            self.problems.push(Problem {
                severity: Severity::Error,
                path: self.source.clone(),
                line: None,
                value: None,
                message,
                accepted: None,
                suggestion: None,
            });
        }
        self.problems
    }
}

/// Quotes text for a message: escaped, on one line.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", text.escape_debug())
}

fn shorten(value: &str) -> String {
    match value.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &value[..at]),
        None => value.to_string(),
    }
}

/// Kind of a node, as far as its description gives it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum DraftKind {
    Host,
    Switch,
    /// The kind was not given: a host if it has one link.
    Unsaid,
}

pub(crate) struct DraftNode {
    pub name: String,
    pub kind: DraftKind,
    pub line: Option<u32>,
}

pub(crate) struct DraftLink {
    pub a: usize,
    pub b: usize,
    pub wire: Wire,
    pub line: Option<u32>,
}

/// A network under construction: nodes and bidirectional links, in the order of their description.
#[derive(Default)]
pub(crate) struct Draft {
    pub nodes: Vec<DraftNode>,
    pub links: Vec<DraftLink>,
    by_name: BTreeMap<String, usize>,
}

impl Draft {
    /// Adds a node whose name is known to be new; returns its index.
    pub fn add(&mut self, name: String, kind: DraftKind) -> usize {
        self.by_name.insert(name.clone(), self.nodes.len());
        self.nodes.push(DraftNode { name, kind, line: None });
        self.nodes.len() - 1
    }

    /// Index of the node with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Adds a node from a file; a name that is taken or not allowed is reported.
    pub fn declare(&mut self, name: &str, kind: DraftKind, line: Option<u32>, findings: &mut Findings) {
        if name.is_empty()
            || name.len() > 128
            || name.contains(|c: char| c.is_whitespace() || c.is_control())
            || name.contains("->")
        {
            let accepted = "1 to 128 characters without spaces and without \"->\"".to_string();
            findings.error(line, Some(quote(name)), "cannot be a node's id", Some(accepted));
        } else if let Some(first) = self.find(name) {
            let before = self.nodes[first].line.map_or(String::new(), |l| format!(" in line {l}"));
            findings.error(
                line,
                Some(quote(name)),
                format!("is also the id of another node{before}"),
                Some("a different id for each node".into()),
            );
        } else {
            let at = self.add(name.to_string(), kind);
            self.nodes[at].line = line;
        }
    }

    /// Adds a link made by a generator.
    pub fn join(&mut self, a: usize, b: usize, wire: Wire) {
        self.links.push(DraftLink { a, b, wire, line: None });
    }

    /// Adds a link from a file; a link that is not allowed is reported.
    pub fn connect(&mut self, link: DraftLink, findings: &mut Findings) {
        if link.a == link.b {
            let name = quote(&self.nodes[link.a].name);
            return findings.error(
                link.line,
                Some(name),
                "is linked to itself",
                Some("links between two different nodes".into()),
            );
        }
        match refuse_link(link.wire.rate, link.wire.delay) {
            Some((value, message, accepted)) => findings.error(link.line, Some(value), message, Some(accepted)),
            None => self.links.push(link),
        }
    }

    /// Checks the network and numbers its nodes: hosts first, then switches, each in the order of the draft.
    ///
    /// # Errors
    /// Every problem found.
    pub fn finish(mut self, mut findings: Findings) -> Result<Topology, Vec<Problem>> {
        if findings.failed() {
            return Err(findings.into_problems());
        }
        if self.nodes.len() > MAX_NODES || self.links.len() > MAX_LINKS {
            let message = format!("has {} nodes and {} links", self.nodes.len(), self.links.len());
            findings.error(None, None, message, Some(format!("at most {MAX_NODES} nodes and {MAX_LINKS} links")));
            return Err(findings.into_problems());
        }
        self.settle_kinds();
        self.check_hosts(&mut findings);
        self.check_connected(&mut findings);
        if findings.failed() {
            return Err(findings.into_problems());
        }
        let mut topology = self.number();
        topology.warnings = findings.warnings;
        Ok(topology)
    }

    fn degrees(&self) -> Vec<u32> {
        let mut degree = vec![0; self.nodes.len()];
        for link in &self.links {
            degree[link.a] += 1;
            degree[link.b] += 1;
        }
        degree
    }

    fn settle_kinds(&mut self) {
        for (node, degree) in self.degrees().into_iter().enumerate() {
            if self.nodes[node].kind == DraftKind::Unsaid {
                self.nodes[node].kind = if degree == 1 { DraftKind::Host } else { DraftKind::Switch };
            }
        }
    }

    fn check_hosts(&self, findings: &mut Findings) {
        let hosts = self.nodes.iter().filter(|n| n.kind == DraftKind::Host).count();
        if hosts < 2 {
            findings.error(None, None, format!("has {hosts} hosts"), Some("at least two; a host is a node with one link".into()));
        }
        for (node, degree) in self.nodes.iter().zip(self.degrees()) {
            if node.kind == DraftKind::Host && degree > 1 {
                let message = format!("is a host with {degree} links");
                findings.error(node.line, Some(quote(&node.name)), message, Some("one link per host, to a switch".into()));
            }
        }
        for link in &self.links {
            let (a, b) = (&self.nodes[link.a], &self.nodes[link.b]);
            if a.kind == DraftKind::Host && b.kind == DraftKind::Host {
                let value = format!("{} -- {}", quote(&a.name), quote(&b.name));
                findings.error(link.line, Some(value), "joins two hosts", Some("a switch between them".into()));
            }
        }
    }

    /// Reports all nodes outside the largest connected part.
    fn check_connected(&self, findings: &mut Findings) {
        let mut neighbours = vec![Vec::new(); self.nodes.len()];
        for link in &self.links {
            neighbours[link.a].push(link.b);
            neighbours[link.b].push(link.a);
        }
        let mut part = vec![usize::MAX; self.nodes.len()];
        let mut sizes: Vec<usize> = Vec::new();
        for start in 0..self.nodes.len() {
            if part[start] != usize::MAX {
                continue;
            }
            let mut queue = VecDeque::from([start]);
            part[start] = sizes.len();
            let mut size = 0;
            while let Some(node) = queue.pop_front() {
                size += 1;
                for next in &neighbours[node] {
                    if part[*next] == usize::MAX {
                        part[*next] = sizes.len();
                        queue.push_back(*next);
                    }
                }
            }
            sizes.push(size);
        }
        let Some(main) = (0..sizes.len()).max_by_key(|p| (sizes[*p], usize::MAX - p)) else { return };
        for (node, draft) in self.nodes.iter().enumerate() {
            if part[node] == main {
                continue;
            }
            let what = if draft.kind == DraftKind::Host { "host" } else { "switch" };
            let message = if neighbours[node].is_empty() {
                format!("is a {what} without a link")
            } else {
                format!("is a {what} that cannot be reached: the network has {} unconnected parts", sizes.len())
            };
            findings.error(draft.line, Some(quote(&draft.name)), message, Some("a connected network".into()));
        }
    }

    fn number(self) -> Topology {
        let count = self.nodes.len();
        let is_host = |node: &usize| self.nodes[*node].kind == DraftKind::Host;
        let order: Vec<usize> = (0..count).filter(|n| is_host(n)).chain((0..count).filter(|n| !is_host(n))).collect();
        let hosts = (0..count).filter(is_host).count();
        let mut id = vec![NodeId(0); count];
        for (new, old) in order.iter().enumerate() {
            id[*old] = NodeId(new as u32);
        }
        let mut links = Vec::with_capacity(2 * self.links.len());
        for draft in &self.links {
            let (forth, back) = (LinkId(links.len() as u32), LinkId(links.len() as u32 + 1));
            let (a, b) = (id[draft.a], id[draft.b]);
            let Wire { rate, delay, overhead: wire_overhead } = draft.wire;
            links.push(Link { from: a, to: b, rate, delay, wire_overhead, reverse: back });
            links.push(Link { from: b, to: a, rate, delay, wire_overhead, reverse: forth });
        }
        let mut drafts: Vec<Option<DraftNode>> = self.nodes.into_iter().map(Some).collect();
        let nodes = order
            .iter()
            .filter_map(|old| drafts[*old].take())
            .map(|d| Node {
                name: d.name,
                kind: if d.kind == DraftKind::Host { NodeKind::Host } else { NodeKind::Switch { layer: 0 } },
            })
            .collect();
        Topology::assemble(nodes, links, hosts)
    }
}
