//! A JSON edge list.
//!
//! ```json
//! {"nodes": [{"id": "h0", "kind": "host"}], "links": [{"a": "h0", "b": "s0", "rate": "10Gbps", "delay": "1us"}]}
//! ```
//! `nodes` may be left out, or name only some: further nodes are those that links name, in that order.

use super::{json, Defaults};
use crate::draft::{quote, Draft, DraftKind, DraftLink, Findings};
use crate::network::Wire;
use fanin_params::{names, params, Cx, Node, Param, Value};
use fanin_units::{BitRate, Bytes, Span};

names! {
    /// Kind of a node in the file.
    pub enum End {
        /// A host: it has one link and forwards nothing.
        "host" => Host,
        /// A switch: it forwards.
        "switch" => Switch,
    }
}

params! {
    /// A node of the edge list.
    pub struct EdgeListNode {
        /// Name of the node.
        pub id: String;
        /// Kind of the node; if absent, a host if it has one link.
        pub kind: Option<End>;
    }
}

params! {
    /// A link of the edge list, with equal rate and delay in both directions.
    pub struct EdgeListLink {
        /// Name of the node at one end.
        pub a: String;
        /// Name of the node at the other end.
        pub b: String;
        /// Rate in each direction.
        pub rate: Option<BitRate>;
        /// Propagation delay.
        pub delay: Option<Span>;
        /// Bytes of wire time beyond the IP packet; if absent, by the scenario's framing.
        pub wire_overhead: Option<Bytes>, in Bytes(0)..=Bytes(1_000);
    }
}

params! {
    /// A network as a list of nodes and links.
    pub struct EdgeList {
        /// Nodes; those that are not listed are known from the links.
        pub nodes: Vec<EdgeListNode> = Vec::new();
        /// Links.
        pub links: Vec<EdgeListLink>;
    }
}

impl From<End> for DraftKind {
    fn from(end: End) -> Self {
        match end {
            End::Host => DraftKind::Host,
            End::Switch => DraftKind::Switch,
        }
    }
}

/// Line numbers of the entries of the list `key`.
fn lines(document: &Node, key: &str) -> Vec<Option<u32>> {
    match document.get(key).map(|n| &n.value) {
        Some(Value::List(items)) => items.iter().map(|item| item.line).collect(),
        _ => Vec::new(),
    }
}

pub fn read(text: &str, defaults: Defaults, draft: &mut Draft, findings: &mut Findings) {
    let document = match json::read(text) {
        Ok(document) => document,
        Err(error) => {
            let accepted = "JSON: {\"nodes\": […], \"links\": […]}".to_string();
            return findings.error(error.line, None, format!("cannot be read: {}", error.message), Some(accepted));
        }
    };
    let mut cx = Cx::new();
    let parsed = EdgeList::parse(&document, &mut cx);
    for problem in cx.into_problems() {
        findings.adopt(problem);
    }
    let Some(list) = parsed else { return };
    for (node, line) in list.nodes.iter().zip(lines(&document, "nodes")) {
        draft.declare(&node.id, node.kind.map_or(DraftKind::Unsaid, DraftKind::from), line, findings);
    }
    for (link, line) in list.links.iter().zip(lines(&document, "links")) {
        let rate = given(link.rate.or(defaults.rate), "rate", line, findings);
        let delay = given(link.delay.or(defaults.delay), "delay", line, findings);
        let ends = [&link.a, &link.b].map(|id| {
            if draft.find(id).is_none() {
                draft.declare(id, DraftKind::Unsaid, line, findings);
            }
            draft.find(id)
        });
        if let ([Some(a), Some(b)], Some(rate), Some(delay)) = (ends, rate, delay) {
            draft.connect(DraftLink { a, b, wire: Wire { rate, delay, overhead: link.wire_overhead }, line }, findings);
        }
    }
}

fn given<T>(value: Option<T>, what: &str, line: Option<u32>, findings: &mut Findings) -> Option<T> {
    if value.is_none() {
        let accepted = format!("the key {} here, or `{what}` in the scenario for all links", quote(what));
        findings.error(line, None, format!("has a link without {what}"), Some(accepted));
    }
    value
}
