//! Circles of waiting: links of which each may have to wait for the next, so that lossless ports can block each other for ever.

use crate::{Routes, Topology};
use fanin_units::{LinkId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

impl Routes {
    /// A circle of links between switches in which packets of each go on over the next; `None`: there is none, so pauses cannot
    /// block each other for ever. Source: channel-dependencies.
    ///
    /// All hosts are taken to send to all others.
    pub fn circle(&self, topology: &Topology) -> Option<Vec<LinkId>> {
        let mut next: BTreeMap<LinkId, BTreeSet<usize>> = BTreeMap::new();
        for to in 0..self.attachments() {
            let mut seen = vec![false; topology.nodes.len()];
            let mut open: Vec<NodeId> =
                (0..self.attachments()).filter(|from| *from != to).map(|from| self.attachment_node(from)).collect();
            open.iter().for_each(|node| seen[node.index()] = true);
            while let Some(node) = open.pop() {
                for link in self.lookup(node, to) {
                    let there = topology.link(*link).to;
                    if let Some(group) = self.group(there, to) {
                        next.entry(*link).or_default().insert(group);
                    }
                    if !std::mem::replace(&mut seen[there.index()], true) {
                        open.push(there);
                    }
                }
            }
        }
        self.first_circle(&next)
    }

    /// A circle in the graph of links: depth first, on a stack of our own.
    fn first_circle(&self, next: &BTreeMap<LinkId, BTreeSet<usize>>) -> Option<Vec<LinkId>> {
        let group = |at: usize| &self.groups()[at + 1..=at + self.groups()[at].index()];
        let after =
            |link: &LinkId| next.get(link).into_iter().flatten().flat_map(|at| group(*at)).copied().collect::<Vec<LinkId>>();
        let mut done: BTreeSet<LinkId> = BTreeSet::new();
        for start in next.keys() {
            let mut way: Vec<(LinkId, Vec<LinkId>)> = Vec::new();
            let mut on_it: BTreeSet<LinkId> = BTreeSet::new();
            if !done.contains(start) {
                way.push((*start, after(start)));
                on_it.insert(*start);
            }
            while let Some((link, left)) = way.last_mut() {
                match left.pop() {
                    Some(further) if on_it.contains(&further) => {
                        let circle = way.iter().map(|(link, _)| *link).skip_while(|link| *link != further);
                        return Some(circle.collect());
                    }
                    Some(further) if done.contains(&further) => {}
                    Some(further) => {
                        on_it.insert(further);
                        way.push((further, after(&further)));
                    }
                    None => {
                        done.insert(*link);
                        on_it.remove(link);
                        way.pop();
                    }
                }
            }
        }
        None
    }
}
