//! Sites: the facts about each switch that its mechanisms start from.

use fanin_packet::Framing;
use fanin_switch::{Mechanisms, PortNo, PortSite, Site, Switch};
use fanin_topology::{Routes, Topology};
use fanin_units::{Bytes, LinkId, NodeId, Span};

/// Properties of network and hosts that all sites depend on.
pub(crate) struct Grounds<'a> {
    pub topology: &'a Topology,
    pub routes: &'a Routes,
    pub switch: &'a Switch,
    pub framing: Framing,
    /// Bytes of each frame behind the IP packet.
    pub trailer: u16,
    /// Processing delay of hosts, from the last bit of a packet until they act on it.
    pub processing: Span,
    /// Upper bound of the traffic's frame sizes.
    pub largest_frame: Bytes,
    pub seed: u64,
}

/// Wire bytes that a link adds to each frame.
pub(crate) fn overhead(topology: &Topology, link: LinkId, framing: &Framing) -> u16 {
    topology.links[link.index()].wire_overhead.map_or(framing.gap, |bytes| (bytes.get() as u16).saturating_sub(framing.header))
}

/// Delay from the last bit leaving a port until the node at the far end may act on the packet: propagation, and the latency
/// of the switch (`latency`) or the processing delay of the host there.
pub(crate) fn hop_delay(topology: &Topology, link: LinkId, latency: Span, processing: Span) -> Span {
    let link = topology.link(link);
    link.delay + if topology.host_id(link.to).is_some() { processing } else { latency }
}

impl Grounds<'_> {
    /// Ports whose neighbours send back whatever leaves by a port, for each port of a switch.
    fn back(&self, node: NodeId) -> Vec<Vec<PortNo>> {
        let (links, routes) = (self.topology.out_links(node), self.routes);
        let attachments = || 0..routes.attachments();
        let is_for = |link: LinkId, to: usize| match self.topology.host_id(self.topology.link(link).to) {
            Some(_) => routes.attachment_node(to) == node,
            None => routes.lookup(node, to).contains(&link),
        };
        // Attachments, a bit for each, that a port is for, and that the neighbour behind it reaches over this switch alone.
        let bits = |set: &dyn Fn(usize) -> bool| {
            let mut words = vec![0u64; routes.attachments().div_ceil(64)];
            attachments().filter(|to| set(*to)).for_each(|to| words[to / 64] |= 1 << (to % 64));
            words
        };
        let wanted: Vec<Vec<u64>> = links.iter().map(|link| bits(&|to| is_for(*link, to))).collect();
        let returned: Vec<Option<Vec<u64>>> = links
            .iter()
            .map(|link| {
                let wire = self.topology.link(*link);
                let only = [wire.reverse];
                self.topology.host_id(wire.to).is_none().then(|| bits(&|to| routes.lookup(wire.to, to) == only))
            })
            .collect();
        let covers = |all: &[u64], part: &[u64]| part.iter().zip(all).all(|(part, all)| part & !all == 0);
        let of = |(port, wanted): (usize, &Vec<u64>)| {
            let others = (0..).map(PortNo).zip(&returned).filter(|(other, _)| other.index() != port);
            others.filter(|(_, all)| all.as_ref().is_some_and(|all| covers(all, wanted))).map(|(other, _)| other).collect()
        };
        wanted.iter().enumerate().map(of).collect()
    }

    /// Site of a switch; `runs` gives the keys of the mechanisms at another switch.
    pub fn site(&self, node: NodeId, runs: impl Fn(NodeId) -> Vec<&'static str>) -> Site {
        let topology = self.topology;
        let send_back = Mechanisms::that_send_back();
        let mut back =
            if runs(node).iter().any(|key| send_back.contains(key)) { self.back(node) } else { Vec::new() }.into_iter();
        let port = |link: &LinkId| {
            let wire = topology.link(*link);
            let there = |link| hop_delay(topology, link, self.switch.latency, self.processing);
            PortSite {
                link: *link,
                rate: wire.rate,
                overhead: overhead(topology, *link, &self.framing),
                peer: topology.nodes[wire.to.index()].name.clone(),
                to_host: topology.host_id(wire.to).is_some(),
                peer_runs: if topology.host_id(wire.to).is_some() { Vec::new() } else { runs(wire.to) },
                round_trip: there(*link) + there(wire.reverse),
                back: back.next().unwrap_or_default(),
            }
        };
        let sets = || {
            let elsewhere = self.switch.except.iter().filter_map(|entry| entry.mechanisms.as_ref());
            std::iter::once(&self.switch.mechanisms).chain(elsewhere)
        };
        Site {
            name: topology.nodes[node.index()].name.clone(),
            ports: topology.out_links(node).iter().map(port).collect(),
            framing: self.framing,
            trailer: self.trailer,
            ttl: self.switch.ttl,
            cell: self.switch.cell_bytes(),
            largest_frame: self.largest_frame,
            attached_frame: sets().filter_map(|mechanisms| mechanisms.largest_frame()).max().unwrap_or(Bytes(0)),
            growth: sets().map(|mechanisms| mechanisms.growth()).max().unwrap_or(0),
            combined: self.switch.architecture.combined().is_some(),
            seed: self.seed,
        }
    }
}
