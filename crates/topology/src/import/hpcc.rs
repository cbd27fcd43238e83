//! `topology.txt` of the HPCC simulator.
//!
//! ```text
//! NODES SWITCHES LINKS
//! ids of the switches
//! source destination rate delay error_rate      (LINKS times)
//! ```
//! Nodes are numbered from 0; whatever is not a switch is a host. What follows the last link is not read, as there.
//! Source: HPCC, its simulator's `simulation/scratch/third.cc` and `mix/topology.txt`.

use super::quantity;
use crate::config::{MAX_LINKS, MAX_NODES};
use crate::draft::{quote, Draft, DraftKind, DraftLink, Findings};
use crate::network::Wire;
use std::collections::BTreeSet;

const HEADER: &str = "three counts: nodes, switches, links";
const LINK: &str = "source destination rate delay error_rate, such as \"0 320 100Gbps 1000ns 0\"";

/// Non-blank lines, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (u32, Vec<&str>)> {
    text.lines()
        .enumerate()
        .map(|(i, line)| (i as u32 + 1, line.split_whitespace().take(MAX_NODES + 1).collect::<Vec<_>>()))
        .filter(|(_, words)| !words.is_empty())
}

fn count(word: &str, most: usize, line: u32, findings: &mut Findings) -> Option<usize> {
    let value = word.parse().ok().filter(|n| *n <= most);
    if value.is_none() {
        findings.error(Some(line), Some(quote(word)), "is no count", Some(format!("an integer from 0 to {most}")));
    }
    value
}

pub fn read(text: &str, draft: &mut Draft, findings: &mut Findings) {
    let mut lines = lines(text).peekable();
    let Some((line, header)) = lines.next() else {
        return findings.error(None, None, "is empty", Some(HEADER.into()));
    };
    if header.len() != 3 {
        return findings.error(Some(line), None, format!("has {} words", header.len()), Some(HEADER.into()));
    }
    let nodes = count(header[0], MAX_NODES, line, findings);
    let switches = count(header[1], MAX_NODES, line, findings);
    let links = count(header[2], MAX_LINKS, line, findings);
    let (Some(nodes), Some(switches), Some(links)) = (nodes, switches, links) else { return };
    if switches > nodes {
        return findings.error(
            Some(line),
            None,
            format!("counts {switches} switches among {nodes} nodes"),
            Some("at most as many".into()),
        );
    }
    if nodes > links + 1 {
        let message = format!("counts {nodes} nodes but {links} links: some node must be unconnected");
        return findings.error(Some(line), None, message, Some(format!("at least {} links", nodes - 1)));
    }
    let mut ids = BTreeSet::new();
    let mut listed = 0;
    let mut at = line;
    while listed < switches {
        let Some((line, words)) = lines.next() else {
            return findings.error(Some(at), None, format!("ends after {listed} of {switches} switch ids"), None);
        };
        at = line;
        for word in words {
            listed += 1;
            match node(word, nodes, line, findings) {
                Some(id) if !ids.insert(id) => {
                    findings.error(Some(line), Some(quote(word)), "is listed as a switch twice", Some("each switch once".into()));
                }
                _ => {}
            }
        }
        if listed > switches {
            let message = format!("lists {listed} switches, {switches} are announced");
            return findings.error(Some(line), None, message, None);
        }
    }
    let body: Vec<_> = lines.by_ref().take(links).collect();
    if body.len() < links {
        let last = body.last().map_or(at, |(line, _)| *line);
        return findings.error(Some(last), None, format!("ends after {} of {links} links", body.len()), Some(LINK.into()));
    }
    // Not more than one node per link plus one, which stand in the file.
    for id in 0..nodes {
        draft.add(id.to_string(), if ids.contains(&id) { DraftKind::Switch } else { DraftKind::Host });
    }
    for (line, words) in body {
        link(line, &words, nodes, draft, findings);
    }
    if let Some((line, words)) = lines.next() {
        if words.len() == 5 && words[0].parse::<u32>().is_ok() {
            findings
                .warn(Some(line), format!("is a link beyond the {links} that the first line announces: not read, as in HPCC"));
        }
    }
}

fn node(word: &str, nodes: usize, line: u32, findings: &mut Findings) -> Option<usize> {
    let id = word.parse().ok().filter(|id| *id < nodes);
    if id.is_none() {
        let accepted = format!("an integer from 0 to {}", nodes.saturating_sub(1));
        findings.error(Some(line), Some(quote(word)), "is no node", Some(accepted));
    }
    id
}

fn link(line: u32, words: &[&str], nodes: usize, draft: &mut Draft, findings: &mut Findings) {
    let &[a, b, rate, delay, error_rate] = words else {
        return findings.error(Some(line), None, format!("has {} words", words.len()), Some(LINK.into()));
    };
    let (a, b) = (node(a, nodes, line, findings), node(b, nodes, line, findings));
    let rate = quantity(rate, Some(line), "rate", findings);
    let delay = quantity(delay, Some(line), "delay", findings);
    match error_rate.parse::<f64>() {
        Ok(0.0) => {}
        Ok(_) => findings.error(
            Some(line),
            Some(quote(error_rate)),
            "is an error rate of packets, which this import leaves out",
            Some("0, and [[events]] with kind = \"bit_errors\" for links that corrupt".into()),
        ),
        Err(_) => findings.error(Some(line), Some(quote(error_rate)), "is no error rate", Some("0".into())),
    }
    if let (Some(a), Some(b), Some(rate), Some(delay)) = (a, b, rate, delay) {
        draft.connect(DraftLink { a, b, wire: Wire { rate, delay, overhead: None }, line: Some(line) }, findings);
    }
}
