//! GraphML.
//!
//! Attributes, by their `attr.name`: of edges `rate` and `delay` (with unit), or `rate_bps` and `delay_ns` (numbers), or
//! `LinkSpeedRaw` (bits per second, as the Internet Topology Zoo writes it); of nodes `kind` (`host` or `switch`). Others,
//! such as labels and coordinates, are ignored. Document types are refused and entities never expanded.
//! Source: GraphML primer.

use super::{quantity, Defaults};
use crate::config::{MAX_LINKS, MAX_NODES};
use crate::draft::{quote, Draft, DraftKind, DraftLink, Findings};
use crate::network::Wire;
use fanin_units::{BitRate, Quantity, Span};
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::BTreeMap;

/// Deepest nesting of elements, since the XML parser recurses.
const MAX_DEPTH: usize = 64;
/// Largest number of attributes of one element.
const MAX_ATTRIBUTES: usize = 256;
/// Largest number of elements, texts and comments.
const MAX_PARTS: u32 = 8_000_000;

/// Declaration of a GraphML attribute.
struct Key<'a> {
    name: &'a str,
    default: Option<&'a str>,
}

struct Reader<'a, 'f> {
    document: &'a Document<'a>,
    keys: BTreeMap<&'a str, Key<'a>>,
    findings: &'f mut Findings,
    /// Position up to which lines are counted, once, as elements come in document order.
    at: usize,
    line: u32,
}

/// Finds text that would cost the XML parser too much: stack grows with depth, time with the square of the attributes of one
/// element. Comments that look like tags can only make it stricter.
fn too_much(text: &str) -> Option<(&'static str, usize)> {
    let mut depth = 0usize;
    for part in text.split('<').skip(1) {
        if part.starts_with(['?', '!']) {
            continue;
        }
        let (mut quote, mut attributes, mut last) = (None, 0, b' ');
        for byte in part.bytes() {
            match (quote, byte) {
                (Some(open), _) if open == byte => quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => attributes += 1,
                (None, b'>') => break,
                (None, _) => {}
            }
            last = byte;
        }
        if attributes > MAX_ATTRIBUTES {
            return Some(("has an element with too many attributes", MAX_ATTRIBUTES));
        }
        if part.starts_with('/') {
            depth = depth.saturating_sub(1);
        } else if last != b'/' {
            depth += 1;
            if depth > MAX_DEPTH {
                return Some(("has elements nested too deep", MAX_DEPTH));
            }
        }
    }
    None
}

pub fn read(text: &str, defaults: Defaults, draft: &mut Draft, findings: &mut Findings) {
    if let Some((message, most)) = too_much(text) {
        return findings.error(None, None, message, Some(format!("at most {most}")));
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_PARTS, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(error) => {
            let line = Some(error.pos().row).filter(|row| *row > 0);
            return findings.error(
                line,
                None,
                format!("cannot be read: {error}"),
                Some("GraphML without a document type".into()),
            );
        }
    };
    let mut reader = Reader { document: &document, keys: BTreeMap::new(), findings, at: 0, line: 1 };
    reader.read(defaults, draft);
}

fn elements<'a>(parent: Node<'a, 'a>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    parent.children().filter(move |n| n.is_element() && n.tag_name().name() == name)
}

impl<'a> Reader<'a, '_> {
    fn line(&mut self, node: Node<'a, 'a>) -> Option<u32> {
        let place = node.range().start;
        let text = self.document.input_text();
        if place < self.at {
            (self.at, self.line) = (0, 1);
        }
        self.line += text.as_bytes()[self.at..place].iter().filter(|b| **b == b'\n').count() as u32;
        self.at = place;
        Some(self.line)
    }

    fn error(&mut self, node: Node<'a, 'a>, value: Option<&str>, message: impl Into<String>, accepted: &str) {
        let line = self.line(node);
        self.findings.error(line, value.map(quote), message, Some(accepted.into()));
    }

    fn read(&mut self, defaults: Defaults, draft: &mut Draft) {
        let root = self.document.root_element();
        if root.tag_name().name() != "graphml" {
            return self.error(root, Some(root.tag_name().name()), "is the outermost element", "graphml");
        }
        for key in elements(root, "key") {
            let default = elements(key, "default").next().and_then(|d| d.text()).map(str::trim);
            if let (Some(id), Some(name)) = (key.attribute("id"), key.attribute("attr.name")) {
                self.keys.insert(id, Key { name, default });
            }
        }
        let graphs: Vec<_> = elements(root, "graph").collect();
        let &[graph] = graphs.as_slice() else {
            return self.error(root, None, format!("has {} graphs", graphs.len()), "one graph");
        };
        if let Some(direction @ "directed") = graph.attribute("edgedefault") {
            return self.error(
                graph,
                Some(direction),
                "is the graph's edgedefault: every link here goes both ways",
                "\"undirected\"",
            );
        }
        let (nodes, edges) = (elements(graph, "node").count(), elements(graph, "edge").count());
        if nodes > MAX_NODES || edges > MAX_LINKS {
            let accepted = format!("at most {MAX_NODES} nodes and {MAX_LINKS} edges");
            return self.error(graph, None, format!("has {nodes} nodes and {edges} edges"), &accepted);
        }
        for element in graph.children().filter(Node::is_element) {
            if !["node", "edge", "data", "desc"].contains(&element.tag_name().name()) {
                self.error(element, Some(element.tag_name().name()), "is an unsupported element", "node, edge, data");
            }
        }
        for node in elements(graph, "node") {
            self.node(node, draft);
        }
        for edge in elements(graph, "edge") {
            self.edge(edge, defaults, draft);
        }
    }

    fn node(&mut self, node: Node<'a, 'a>, draft: &mut Draft) {
        if elements(node, "graph").next().is_some() {
            return self.error(node, node.attribute("id"), "holds a graph of its own", "nodes without inner graphs");
        }
        let Some(id) = node.attribute("id") else {
            return self.error(node, None, "has a node without id", "an id for every node");
        };
        let kind = match self.attributes(node, &["kind"]).map(|(_, text)| text) {
            None => DraftKind::Unsaid,
            Some("host") => DraftKind::Host,
            Some("switch") => DraftKind::Switch,
            Some(other) => return self.error(node, Some(other), "is not a kind of node", "host, switch"),
        };
        let line = self.line(node);
        draft.declare(id, kind, line, self.findings);
    }

    fn edge(&mut self, edge: Node<'a, 'a>, defaults: Defaults, draft: &mut Draft) {
        if edge.attribute("directed") == Some("true") {
            return self.error(edge, None, "has a directed edge: every link here goes both ways", "undirected edges");
        }
        let ends = ["source", "target"].map(|key| match edge.attribute(key) {
            None => {
                self.error(edge, None, format!("has an edge without {key}"), "source and target");
                None
            }
            Some(id) => {
                let node = draft.find(id);
                if node.is_none() {
                    self.error(edge, Some(id), format!("is the {key} of an edge but no node"), "the id of a node");
                }
                node
            }
        });
        let rate = self.value::<BitRate>(edge, &[("rate", ""), ("rate_bps", "bps"), ("LinkSpeedRaw", "bps")], defaults.rate);
        let delay = self.value::<Span>(edge, &[("delay", ""), ("delay_ns", "ns")], defaults.delay);
        let line = self.line(edge);
        if let ([Some(a), Some(b)], Some(rate), Some(delay)) = (ends, rate, delay) {
            draft.connect(DraftLink { a, b, wire: Wire { rate, delay, overhead: None }, line }, self.findings);
        }
    }

    /// Reads a quantity under one of several names, each with the unit that it implies.
    fn value<Q: Quantity>(&mut self, edge: Node<'a, 'a>, names: &[(&str, &str)], default: Option<Q>) -> Option<Q> {
        let accepted: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let Some((name, text)) = self.attributes(edge, &accepted) else {
            if default.is_none() {
                let what = names[0].0;
                let accepted = format!("one of {}, or `{what}` in the scenario for all links", accepted.join(", "));
                self.error(edge, None, format!("has an edge without {what}"), &accepted);
            }
            return default;
        };
        let unit = names.iter().find(|(n, _)| *n == name).map_or("", |(_, unit)| unit);
        let line = self.line(edge);
        quantity(&format!("{text}{unit}"), line, name, self.findings)
    }

    /// The first of the attributes `names` that an element has, or that has a default.
    fn attributes(&self, node: Node<'a, 'a>, names: &[&str]) -> Option<(&'a str, &'a str)> {
        names.iter().find_map(|name| {
            let own = elements(node, "data").find_map(|data| {
                let key = self.keys.get(data.attribute("key")?)?;
                (key.name == *name).then(|| (key.name, data.text().unwrap_or("").trim()))
            });
            own.or_else(|| self.keys.values().find(|k| k.name == *name).and_then(|k| Some((k.name, k.default?))))
        })
    }
}
