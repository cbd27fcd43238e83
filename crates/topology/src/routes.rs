//! Shortest paths, as forwarding tables.

use crate::Topology;
use fanin_params::{Problem, Severity};
use fanin_units::{Bytes, HostId, LinkId, NodeId, Span};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Largest number of table entries: switches × attachments.
const MAX_ENTRIES: usize = 1 << 27;
/// Entry of a switch for its own hosts, instead of an offset of a group.
const HERE: u16 = u16::MAX;

/// Forwarding tables of all switches, with all shortest paths by number of hops.
///
/// A switch finds the destination's attachment (the switch that it hangs on), under it a group of equal-cost links, and at the
/// attachment itself the host's own port. Entries are 16-bit offsets into the switch's groups, each group stored once per
/// switch: 115 KB for the 1024 hosts and 320 switches of a fat tree with k = 16.
#[derive(Clone, Debug)]
pub struct Routes {
    hosts: usize,
    /// The switch that each attachment is.
    attachment_nodes: Vec<NodeId>,
    attachment_of: Vec<u16>,
    host_port: Vec<LinkId>,
    /// Offset of the group among the switch's groups, for each switch and attachment.
    entries: Vec<u16>,
    /// Index of the first group of each switch.
    base: Vec<u32>,
    /// Groups of equal-cost links, one after the other: length, then links.
    groups: Vec<LinkId>,
    longest: u32,
}

fn too_large(message: String, accepted: &str) -> Vec<Problem> {
    vec![Problem {
        severity: Severity::Error,
        path: "topology".into(),
        line: None,
        value: None,
        message,
        accepted: Some(accepted.into()),
        suggestion: None,
    }]
}

impl Routes {
    /// Computes all shortest paths by number of hops.
    ///
    /// # Errors
    /// Tables that would be too large to hold.
    pub fn shortest(topology: &Topology) -> Result<Routes, Vec<Problem>> {
        Routes::shortest_without(topology, &BTreeSet::new())
    }

    /// Computes all shortest paths by number of hops over the links that are not `down`. Hosts stay where they are attached, whether their
    /// links are down or not; where a switch has no path to an attachment, it has no links towards it.
    ///
    /// # Errors
    /// Tables that would be too large to hold.
    pub fn shortest_without(topology: &Topology, down: &BTreeSet<LinkId>) -> Result<Routes, Vec<Problem>> {
        let switches = topology.switch_count();
        let mut attachment_nodes: Vec<NodeId> = topology.hosts.iter().map(|h| topology.link(topology.host_link(*h)).to).collect();
        attachment_nodes.sort_unstable();
        attachment_nodes.dedup();
        let attachments = attachment_nodes.len();
        if attachments >= usize::from(u16::MAX) || switches * attachments > MAX_ENTRIES {
            let message = format!("has {switches} switches, {attachments} of them with hosts");
            return Err(too_large(message, "forwarding tables of at most 2^27 entries"));
        }
        let number = |node: NodeId| attachment_nodes.binary_search(&node).unwrap_or_default() as u16;
        let attachment_of = topology.hosts.iter().map(|h| number(topology.link(topology.host_link(*h)).to)).collect();
        let host_port = topology.hosts.iter().map(|h| topology.link(topology.host_link(*h)).reverse).collect();

        let mut entries = vec![HERE; switches * attachments];
        let mut pools: Vec<Pool> = (0..switches).map(|_| Pool::default()).collect();
        let mut search = Search::new(topology, down);
        let mut longest = 0;
        let neighbours: Vec<Vec<NodeId>> = attachment_nodes.iter().map(|node| search.neighbours(*node)).collect();
        let twin = twins(&neighbours);
        let row = |switch: NodeId| switch.index() - topology.hosts.len();
        let mut intern = |switch: NodeId, group: &[LinkId]| {
            pools[row(switch)].intern(group).ok_or_else(|| {
                let message = format!("has the switch \"{}\" with too many groups of links", topology.nodes[switch.index()].name);
                too_large(message, "at most 65534 links in all groups of a switch")
            })
        };
        for (a, node) in attachment_nodes.iter().enumerate().filter(|(a, _)| twin[*a] == *a) {
            search.run(*node);
            let distances = attachment_nodes.iter().map(|other| search.distance[other.index()]).filter(|far| *far != u32::MAX);
            longest = distances.map(|far| far + 1).fold(longest, u32::max);
            for switch in (topology.hosts.len() as u32..topology.nodes.len() as u32).map(NodeId).filter(|switch| switch != node) {
                entries[row(switch) * attachments + a] = intern(switch, search.towards(switch))?;
            }
        }
        for row in entries.chunks_exact_mut(attachments) {
            (0..attachments).for_each(|a| row[a] = row[twin[a]]);
        }
        for (a, node) in attachment_nodes.iter().enumerate().filter(|(a, _)| twin[*a] != *a) {
            entries[row(*node) * attachments + a] = HERE;
            for switch in &neighbours[a] {
                entries[row(*switch) * attachments + a] = intern(*switch, search.links(*switch, |to| to == *node))?;
            }
            // The twin itself is two steps away, over any neighbour.
            let twin = attachment_nodes[twin[a]];
            let group = search.links(twin, |to| topology.host_id(to).is_none());
            entries[row(twin) * attachments + a] = intern(twin, group)?;
        }
        let mut base = Vec::with_capacity(switches);
        let mut groups = Vec::new();
        for pool in pools {
            base.push(groups.len() as u32);
            groups.extend(pool.words);
        }
        Ok(Routes { hosts: topology.hosts.len(), attachment_nodes, attachment_of, host_port, entries, base, groups, longest })
    }

    /// Number of attachments: switches that have hosts.
    pub fn attachments(&self) -> usize {
        self.attachment_nodes.len()
    }

    /// Attachment of a host.
    #[inline]
    pub fn attachment_of(&self, host: HostId) -> u16 {
        self.attachment_of[host.index()]
    }

    /// The switch that an attachment is.
    pub fn attachment_node(&self, attachment: usize) -> NodeId {
        self.attachment_nodes[attachment]
    }

    /// Link from the attachment of a host to that host.
    #[inline]
    pub fn host_port(&self, host: HostId) -> LinkId {
        self.host_port[host.index()]
    }

    /// All groups of equal-cost links, one after the other: length, then links. Each group is stored once per switch.
    pub fn groups(&self) -> &[LinkId] {
        &self.groups
    }

    /// Index in [`Routes::groups`] of the links that a switch may use towards an attachment; `None` at the attachment itself.
    ///
    /// # Panics
    /// When `switch` is no switch.
    #[inline]
    pub fn group(&self, switch: NodeId, attachment: usize) -> Option<usize> {
        let s = switch.index() - self.hosts;
        let entry = self.entries[s * self.attachments() + attachment];
        (entry != HERE).then(|| self.base[s] as usize + usize::from(entry))
    }

    /// Links that a switch may use towards an attachment, in order of their ids; none at the attachment itself.
    ///
    /// # Panics
    /// When `switch` is no switch.
    #[inline]
    pub fn lookup(&self, switch: NodeId, attachment: usize) -> &[LinkId] {
        self.group(switch, attachment).map_or(&[], |at| &self.groups[at + 1..=at + self.groups[at].index()])
    }

    /// Links that a switch may use towards a host.
    ///
    /// # Panics
    /// When `switch` is no switch.
    #[inline]
    pub fn next_hops(&self, switch: NodeId, host: HostId) -> &[LinkId] {
        let attachment = usize::from(self.attachment_of(host));
        if self.attachment_nodes[attachment] == switch {
            return std::slice::from_ref(&self.host_port[host.index()]);
        }
        self.lookup(switch, attachment)
    }

    /// Links of one path from host to host; `choose` picks one of n equal-cost links at a switch.
    ///
    /// # Panics
    /// When `choose` picks a link that does not exist.
    pub fn path(
        &self,
        topology: &Topology,
        from: HostId,
        to: HostId,
        mut choose: impl FnMut(NodeId, usize) -> usize,
    ) -> Vec<LinkId> {
        if from == to {
            return Vec::new();
        }
        let mut path = vec![topology.host_link(topology.hosts[from.index()])];
        loop {
            let here = topology.link(path[path.len() - 1]).to;
            if topology.host_id(here).is_some() {
                return path;
            }
            let links = self.next_hops(here, to);
            path.push(if links.len() == 1 { links[0] } else { links[choose(here, links.len())] });
        }
    }

    /// Number of shortest paths from one host to another, saturating.
    pub fn path_count(&self, topology: &Topology, from: HostId, to: HostId) -> u64 {
        let (paths, _) = self.sweep(topology, from, to, 1u64, |paths, _| *paths, |a, b| a.saturating_add(b));
        paths
    }

    /// Largest number of switches on a shortest path between any two hosts.
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// Number of links on a shortest path between two different hosts.
    pub fn hops(&self, topology: &Topology, from: HostId, to: HostId) -> usize {
        self.path(topology, from, to, |_, _| 0).len()
    }

    /// Smallest one-way time of a packet of `wire` bytes on an idle network, over all shortest paths: propagation,
    /// serialisation at every hop, and `latency` at each switch.
    pub fn transit(&self, topology: &Topology, from: HostId, to: HostId, wire: Bytes, latency: Span) -> Span {
        if from == to {
            return Span::ZERO;
        }
        let cost = |link: LinkId| {
            let link = topology.link(link);
            link.delay + link.rate.time_to_send(wire)
        };
        let first = cost(topology.host_link(topology.hosts[from.index()]));
        let (span, hops) = self.sweep(topology, from, to, first, |span, link| *span + cost(link), |a, b| a.min(b));
        span + latency * (hops as u64 - 1)
    }

    /// Smallest round-trip time on an idle network: `data` wire bytes there, `ack` wire bytes back.
    pub fn min_rtt(&self, topology: &Topology, [a, b]: [HostId; 2], [data, ack]: [Bytes; 2], latency: Span) -> Span {
        self.transit(topology, a, b, data, latency) + self.transit(topology, b, a, ack, latency)
    }

    /// Propagates a value along all shortest paths at once, joining where they meet; also returns the number of links.
    fn sweep<T>(
        &self,
        topology: &Topology,
        from: HostId,
        to: HostId,
        first: T,
        step: impl Fn(&T, LinkId) -> T,
        join: impl Fn(T, T) -> T,
    ) -> (T, usize) {
        let goal = topology.hosts[to.index()];
        let mut level = BTreeMap::from([(topology.attachment(from), first)]);
        let mut hops = 1;
        loop {
            // All shortest paths reach the goal at the same level.
            if let Some(value) = level.remove(&goal) {
                return (value, hops);
            }
            let mut next: BTreeMap<NodeId, T> = BTreeMap::new();
            for (node, value) in &level {
                for link in self.next_hops(*node, to) {
                    let there = topology.link(*link).to;
                    let mine = step(value, *link);
                    let joined = match next.remove(&there) {
                        Some(other) => join(other, mine),
                        None => mine,
                    };
                    next.insert(there, joined);
                }
            }
            level = next;
            hops += 1;
        }
    }

    /// Memory of the tables \[bytes\].
    pub fn bytes(&self) -> usize {
        2 * self.entries.len()
            + 4 * (self.base.len() + self.groups.len() + self.host_port.len() + self.attachment_nodes.len())
            + 2 * self.attachment_of.len()
    }
}

/// For each attachment, the first one with equal neighbours (its twin); itself if there is none before it.
///
/// Such twins are equally far from all else, and all but the neighbours reach both over the same links: the edge switches of a
/// pod, the leaves of a fabric. One search does for all of them; without this a fat tree costs its edge switches × links.
fn twins(neighbours: &[Vec<NodeId>]) -> Vec<usize> {
    let mut first: BTreeMap<&[NodeId], usize> = BTreeMap::new();
    neighbours.iter().enumerate().map(|(a, around)| *first.entry(around).or_insert(a)).collect()
}

/// Groups of one switch, each stored once.
#[derive(Default)]
struct Pool {
    words: Vec<LinkId>,
    known: BTreeMap<Vec<LinkId>, u16>,
}

impl Pool {
    fn intern(&mut self, group: &[LinkId]) -> Option<u16> {
        if let Some(at) = self.known.get(group) {
            return Some(*at);
        }
        let at = u16::try_from(self.words.len()).ok().filter(|at| *at != HERE)?;
        self.words.push(LinkId(group.len() as u32));
        self.words.extend(group);
        self.known.insert(group.to_vec(), at);
        Some(at)
    }
}

/// Breadth-first search from an attachment outwards, over switches only.
///
/// A graph library would give distances by the same ten lines; what is wanted are all links that lead one step nearer.
struct Search<'a> {
    topology: &'a Topology,
    down: &'a BTreeSet<LinkId>,
    distance: Vec<u32>,
    queue: VecDeque<NodeId>,
    group: Vec<LinkId>,
}

impl<'a> Search<'a> {
    fn new(topology: &'a Topology, down: &'a BTreeSet<LinkId>) -> Self {
        Search { topology, down, distance: Vec::new(), queue: VecDeque::new(), group: Vec::new() }
    }

    fn run(&mut self, from: NodeId) {
        let topology = self.topology;
        self.distance.clear();
        self.distance.resize(topology.nodes.len(), u32::MAX);
        self.distance[from.index()] = 0;
        self.queue.push_back(from);
        while let Some(node) = self.queue.pop_front() {
            for link in topology.out_links(node).iter().filter(|link| !self.down.contains(link)) {
                let to = topology.link(*link).to;
                if topology.host_id(to).is_none() && self.distance[to.index()] == u32::MAX {
                    self.distance[to.index()] = self.distance[node.index()] + 1;
                    self.queue.push_back(to);
                }
            }
        }
    }

    /// Links of `switch` that lead one step nearer to the attachment.
    fn towards(&mut self, switch: NodeId) -> &[LinkId] {
        let distance = std::mem::take(&mut self.distance);
        let here = distance[switch.index()];
        self.links(switch, |to| distance[to.index()] != u32::MAX && distance[to.index()] + 1 == here);
        self.distance = distance;
        &self.group
    }

    /// Links of `switch` whose far ends are `wanted`.
    fn links(&mut self, switch: NodeId, wanted: impl Fn(NodeId) -> bool) -> &[LinkId] {
        let topology = self.topology;
        self.group.clear();
        let up = topology.out_links(switch).iter().copied().filter(|link| !self.down.contains(link));
        self.group.extend(up.filter(|link| wanted(topology.link(*link).to)));
        &self.group
    }

    /// Switches that `switch` has links to, each once, ascending.
    fn neighbours(&self, switch: NodeId) -> Vec<NodeId> {
        let up = self.topology.out_links(switch).iter().filter(|link| !self.down.contains(link));
        let ends = up.map(|link| self.topology.link(*link).to);
        let mut found: Vec<NodeId> = ends.filter(|end| self.topology.host_id(*end).is_none()).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_search_does_for_all_with_the_same_neighbours() {
        let node = |names: &[u32]| names.iter().map(|n| NodeId(*n)).collect::<Vec<_>>();
        let around = [node(&[1, 2]), node(&[3]), node(&[1, 2]), node(&[]), node(&[3]), node(&[1])];
        assert_eq!(twins(&around), [0, 1, 0, 3, 1, 5]);
    }
}
