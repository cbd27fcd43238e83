//! Sites: the facts about each switch that its mechanisms start from.

use fanin_packet::Framing;
use fanin_switch::{PortSite, Site, Switch};
use fanin_topology::Topology;
use fanin_units::{Bytes, LinkId, NodeId, Span};

/// Properties of network and hosts that all sites depend on.
pub(crate) struct Grounds<'a> {
    pub topology: &'a Topology,
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
    /// Site of a switch; `runs` gives the keys of the mechanisms at another switch.
    pub fn site(&self, node: NodeId, runs: impl Fn(NodeId) -> Vec<&'static str>) -> Site {
        let topology = self.topology;
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
