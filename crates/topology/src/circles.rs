//! Circular waits (buffer deadlocks): cycles of links each of which may have to wait for the next, so that lossless ports can
//! block each other for ever.

use crate::{Routes, Topology};
use fanin_units::{LinkId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

impl Routes {
    /// Finds a cycle of links between switches in which packets of each continue over the next; `None`: there is none, so PFC
    /// cannot deadlock. Source: channel-dependencies.
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
        let group = |at: usize| &self.groups()[at + 1..=at + self.groups()[at].index()];
        let after = |link: LinkId| next.get(&link).into_iter().flatten().flat_map(|at| group(*at)).copied().collect();
        circle(next.keys().copied(), after)
    }
}

/// Finds a cycle in a graph: its nodes, each followed by the next and the last by the first. `after`: the successors of a
/// node; the search starts at each of `starts`, in order.
pub fn circle<T: Copy + Ord>(starts: impl IntoIterator<Item = T>, after: impl Fn(T) -> Vec<T>) -> Option<Vec<T>> {
    let mut done: BTreeSet<T> = BTreeSet::new();
    for start in starts {
        // Depth first, on a stack of our own: each node with those that follow it and were not visited yet.
        let mut way: Vec<(T, Vec<T>)> = Vec::new();
        let mut on_it: BTreeSet<T> = BTreeSet::new();
        if !done.contains(&start) {
            way.push((start, after(start)));
            on_it.insert(start);
        }
        while let Some((node, left)) = way.last_mut() {
            match left.pop() {
                Some(further) if on_it.contains(&further) => {
                    let circle = way.iter().map(|(node, _)| *node).skip_while(|node| *node != further);
                    return Some(circle.collect());
                }
                Some(further) if done.contains(&further) => {}
                Some(further) => {
                    on_it.insert(further);
                    way.push((further, after(further)));
                }
                None => {
                    done.insert(*node);
                    on_it.remove(node);
                    way.pop();
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::circle;

    #[test]
    fn a_circle_behind_a_dead_end_and_a_join_is_found() {
        // 0 → 1 → 2, 1 → 3 → 4 → 1; 5 joins at 3.
        let after = |node: u32| match node {
            0 => vec![1],
            1 => vec![3, 2],
            3 => vec![4],
            4 => vec![1],
            5 => vec![3],
            _ => vec![],
        };
        assert_eq!(circle([2, 0], after), Some(vec![1, 3, 4]));
        assert_eq!(circle([5], after), Some(vec![3, 4, 1]));
        assert_eq!(circle([0, 5], |node| if node == 4 { vec![2] } else { after(node) }), None);
    }
}
