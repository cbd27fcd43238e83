//! The complete, checked network.

use crate::config::TopologyConfig;
use crate::{generate, import};
use fanin_params::{Cx, Problem};
use fanin_units::{BitRate, Bytes, HostId, LinkId, NodeId, Span};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// Kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// A host, which has one link.
    Host,
    /// A switch. `layer` is its distance to the nearest host less one: 0 for a ToR, leaf or edge switch, 1 for a spine, root
    /// or aggregation switch, 2 for a core switch.
    Switch { layer: u8 },
}

/// A host or a switch of the network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Unique name of the node.
    pub name: String,
    pub kind: NodeKind,
}

/// Properties that the two directions of a link share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wire {
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Span,
    /// Bytes of wire time beyond the IP packet; `None`: by the scenario's framing.
    pub overhead: Option<Bytes>,
}

/// One direction of a link, with the output port that feeds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    pub from: NodeId,
    pub to: NodeId,
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Span,
    /// Bytes of wire time beyond the IP packet; `None`: by the scenario's framing.
    pub wire_overhead: Option<Bytes>,
    /// The opposite direction of this link.
    pub reverse: LinkId,
}

/// The network: hosts, switches and links. Hosts are the first nodes: host `h` is node `h`.
#[derive(Clone, Debug)]
pub struct Topology {
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    /// Node id of each host, indexed by host id.
    pub hosts: Vec<NodeId>,
    /// Warnings: unusual parts of the description that were accepted.
    pub warnings: Vec<Problem>,
    /// Links ordered by the node that they leave, and the index of each node's first one.
    out: Vec<LinkId>,
    out_start: Vec<u32>,
    by_name: BTreeMap<String, NodeId>,
    /// Rank of each link among the parallel links between the same two nodes.
    parallel: Vec<u32>,
}

impl Topology {
    /// Builds and checks the network that `config` describes; relative paths start at `base_dir`.
    ///
    /// # Errors
    /// Every problem found, each with its place: the key, or file and line.
    pub fn build(config: &TopologyConfig, base_dir: &Path) -> Result<Topology, Vec<Problem>> {
        let mut cx = Cx::new();
        cx.key("topology", |cx| config.check(cx));
        if cx.failed() {
            return Err(cx.into_problems());
        }
        match config {
            TopologyConfig::SingleSwitch(t) => generate::single_switch(t),
            TopologyConfig::Dumbbell(t) => generate::dumbbell(t),
            TopologyConfig::Racks(t) => generate::racks(t),
            TopologyConfig::LeafSpine(t) => generate::leaf_spine(t),
            TopologyConfig::FatTree(t) => generate::fat_tree(t),
            TopologyConfig::Chain(t) => generate::chain(t),
            TopologyConfig::File(t) => import::read(t, base_dir),
        }
    }

    /// Builds the network from numbered nodes, the first `hosts` of which are hosts.
    pub(crate) fn assemble(nodes: Vec<Node>, links: Vec<Link>, hosts: usize) -> Topology {
        let mut out_start = vec![0u32; nodes.len() + 1];
        for link in &links {
            out_start[link.from.index() + 1] += 1;
        }
        for i in 1..out_start.len() {
            out_start[i] += out_start[i - 1];
        }
        let mut next = out_start.clone();
        let mut out = vec![LinkId(0); links.len()];
        let mut seen: BTreeMap<(NodeId, NodeId), u32> = BTreeMap::new();
        let mut parallel = Vec::with_capacity(links.len());
        for (i, link) in links.iter().enumerate() {
            let slot = &mut next[link.from.index()];
            out[*slot as usize] = LinkId(i as u32);
            *slot += 1;
            let count = seen.entry((link.from, link.to)).or_default();
            parallel.push(*count);
            *count += 1;
        }
        let by_name = nodes.iter().enumerate().map(|(i, node)| (node.name.clone(), NodeId(i as u32))).collect();
        let hosts = (0..hosts as u32).map(NodeId).collect();
        let mut topology = Topology { nodes, links, hosts, warnings: Vec::new(), out, out_start, by_name, parallel };
        topology.set_layers();
        topology
    }

    fn set_layers(&mut self) {
        let mut distance = vec![u32::MAX; self.nodes.len()];
        let mut queue: VecDeque<NodeId> = self.hosts.iter().copied().collect();
        for host in &self.hosts {
            distance[host.index()] = 0;
        }
        while let Some(node) = queue.pop_front() {
            for link in self.out_links(node).to_vec() {
                let to = self.links[link.index()].to;
                if distance[to.index()] == u32::MAX {
                    distance[to.index()] = distance[node.index()] + 1;
                    queue.push_back(to);
                }
            }
        }
        for (node, distance) in self.nodes.iter_mut().zip(distance) {
            if let NodeKind::Switch { layer } = &mut node.kind {
                *layer = u8::try_from(distance.saturating_sub(1)).unwrap_or(u8::MAX);
            }
        }
    }

    /// Number of switches, which are the nodes after the hosts.
    pub fn switch_count(&self) -> usize {
        self.nodes.len() - self.hosts.len()
    }

    /// Index of a switch among the switches; `None` for a host.
    pub fn switch_index(&self, node: NodeId) -> Option<usize> {
        node.index().checked_sub(self.hosts.len())
    }

    /// Id of a host among the hosts; `None` for a switch.
    pub fn host_id(&self, node: NodeId) -> Option<HostId> {
        (node.index() < self.hosts.len()).then_some(HostId(node.0))
    }

    /// Links that leave a node, in order of their ids.
    pub fn out_links(&self, node: NodeId) -> &[LinkId] {
        &self.out[self.out_start[node.index()] as usize..self.out_start[node.index() + 1] as usize]
    }

    /// The link with this id.
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()]
    }

    /// The link that leaves a host.
    ///
    /// # Panics
    /// When `host` is no host.
    pub fn host_link(&self, host: NodeId) -> LinkId {
        assert!(host.index() < self.hosts.len(), "node {host} is no host");
        self.out_links(host)[0]
    }

    /// The switch to which a host is attached.
    ///
    /// # Panics
    /// When there is no such host.
    pub fn attachment(&self, host: HostId) -> NodeId {
        self.link(self.host_link(self.hosts[host.index()])).to
    }

    /// The node with this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// The host with this name.
    pub fn host(&self, name: &str) -> Option<HostId> {
        self.node(name).and_then(|node| self.host_id(node))
    }

    /// Name of a host.
    ///
    /// # Panics
    /// When there is no such host.
    pub fn host_name(&self, host: HostId) -> &str {
        &self.nodes[self.hosts[host.index()].index()].name
    }

    /// Name of a link: `leaf0->h3`; of parallel links the second is `leaf0->spine1#1`.
    pub fn link_name(&self, id: LinkId) -> String {
        let link = self.link(id);
        let (from, to) = (&self.nodes[link.from.index()].name, &self.nodes[link.to.index()].name);
        match self.parallel[id.index()] {
            0 => format!("{from}->{to}"),
            n => format!("{from}->{to}#{n}"),
        }
    }

    /// The link with this name.
    pub fn find_link(&self, name: &str) -> Option<LinkId> {
        let (from, rest) = name.split_once("->")?;
        let from = self.node(from)?;
        let matching = |to: NodeId, n: u32| {
            self.out_links(from).iter().copied().find(|l| self.link(*l).to == to && self.parallel[l.index()] == n)
        };
        if let Some(to) = self.node(rest) {
            return matching(to, 0);
        }
        let (to, n) = rest.rsplit_once('#')?;
        matching(self.node(to)?, n.parse().ok()?)
    }
}
