//! The network as checks need it.

use super::largest_frame;
use crate::doc::Parts;
use crate::sites::Grounds;
use fanin_switch::{Site, Switch};
use fanin_topology::{NodeKind, Routes, Topology};
use fanin_traffic::HostInfo;
use fanin_units::{BitRate, Bytes, HostId, LinkId, NodeId, Span};

/// Length of the transport header of an acknowledgment without options.
const ACKNOWLEDGMENT: u16 = 20;

/// An output port with its link, whose id is the port's index.
pub(crate) struct PortSeen {
    pub name: String,
    pub rate: BitRate,
    /// Node to which the port belongs.
    pub from: NodeId,
    /// True if that node is a switch.
    pub of_switch: bool,
}

/// Topology, routes and ports of the network, for checks.
pub(crate) struct Network<'a> {
    pub ports: Vec<PortSeen>,
    topology: &'a Topology,
    routes: &'a Routes,
}

impl<'a> Network<'a> {
    /// Finds the first link with less wire time beyond an IP packet than `header` bytes, and how much it has.
    pub fn headless_link(&self, header: Bytes) -> Option<(String, Bytes)> {
        let mut links = self.topology.links.iter().zip(0u32..);
        links.find_map(|(link, id)| {
            let overhead = link.wire_overhead.filter(|bytes| *bytes < header)?;
            Some((self.topology.link_name(LinkId(id)), overhead))
        })
    }

    pub fn of(topology: &'a Topology, routes: &'a Routes) -> Self {
        let port = |(id, link): (u32, &fanin_topology::Link)| PortSeen {
            name: topology.link_name(LinkId(id)),
            rate: link.rate,
            from: link.from,
            of_switch: topology.host_id(link.from).is_none(),
        };
        Network { ports: (0u32..).zip(&topology.links).map(port).collect(), topology, routes }
    }

    /// Site of a switch: the facts that its mechanisms start from; `runs` gives the keys of the mechanisms at another switch.
    pub fn site(&self, node: NodeId, parts: &Parts, runs: impl Fn(NodeId) -> Vec<&'static str>) -> Option<Site> {
        let (framing, switch, host) = (parts.framing.as_ref()?, parts.switch.as_ref()?, parts.host.as_ref()?);
        let grounds = Grounds {
            topology: self.topology,
            routes: self.routes,
            switch,
            framing: framing.of_packets(),
            trailer: parts.trailer(),
            processing: host.processing_delay,
            largest_frame: largest_frame(parts),
            seed: parts.seed,
        };
        Some(grounds.site(node, runs))
    }

    /// Names of links that form a cycle, in which packets of each continue over the next, if routes have one (a possible PFC
    /// deadlock).
    pub fn circle(&self) -> Option<Vec<String>> {
        let links = self.routes.circle(self.topology)?;
        Some(links.into_iter().map(|link| self.topology.link_name(link)).collect())
    }

    /// Names of all nodes, indexed by id: hosts first.
    pub fn node_names(&self) -> Vec<&'a str> {
        self.topology.nodes.iter().map(|node| node.name.as_str()).collect()
    }

    /// All switches.
    pub fn switches(&self) -> impl Iterator<Item = NodeId> {
        (self.topology.hosts.len() as u32..self.topology.nodes.len() as u32).map(NodeId)
    }

    /// The network itself.
    pub fn topology(&self) -> &Topology {
        self.topology
    }

    /// All ports of switches.
    pub fn switch_ports(&self) -> impl Iterator<Item = (LinkId, &PortSeen)> {
        (0u32..).map(LinkId).zip(&self.ports).filter(|(_, port)| port.of_switch)
    }

    /// The switch port that leads to a host.
    pub fn port_to(&self, host: HostId) -> LinkId {
        self.topology.link(self.topology.host_link(self.topology.hosts[host.index()])).reverse
    }

    /// Tier of a switch: its distance from the nearest host, less one; 0 for a host.
    pub fn tier(&self, node: NodeId) -> u8 {
        match self.topology.nodes[node.index()].kind {
            NodeKind::Switch { layer } => layer,
            NodeKind::Host => 0,
        }
    }

    /// Properties of the hosts that traffic uses.
    pub fn host_infos(&self) -> Vec<HostInfo<'a>> {
        host_infos(self.topology, self.routes)
    }

    /// Largest number of switches on a shortest path between two hosts.
    pub fn longest(&self) -> u32 {
        self.routes.longest()
    }

    pub fn core_rate(&self) -> Option<BitRate> {
        core_rate(self.topology)
    }

    /// True if any packet has several shortest paths.
    pub fn multipath(&self) -> bool {
        self.switches().any(|switch| (0..self.routes.attachments()).any(|to| self.routes.lookup(switch, to).len() > 1))
    }

    /// Idle RTT: time from a full-size packet's departure to the arrival of its acknowledgment.
    pub fn base_rtt(&self, [src, dst]: [HostId; 2], parts: &Parts, mtu: u16) -> Option<Span> {
        let (framing, switch, host) = (parts.framing.as_ref()?, parts.switch.as_ref()?, parts.host.as_ref()?);
        let frame = |ip_bytes: u64| Bytes(ip_bytes + framing.header.get()).max(framing.min_frame);
        let frames = [frame(u64::from(mtu)), frame(u64::from(parts.ip().header() + ACKNOWLEDGMENT))];
        let sizes = frames.map(|frame| frame + framing.gap);
        let rtt = self.routes.min_rtt(self.topology, [src, dst], sizes, switch.latency) + host.delay().saturating_mul(2);
        let [there, back] =
            [([src, dst], frames[0]), ([dst, src], frames[1])].map(|(ends, frame)| self.crossbars(switch, ends, frame));
        Some(rtt + there + back)
    }

    /// Time in which a frame crosses the crossbars on its path, if switches have them, store-and-forward as on a link.
    fn crossbars(&self, switch: &Switch, ends: [HostId; 2], frame: Bytes) -> Span {
        if switch.architecture.combined().is_none() {
            return Span::ZERO;
        }
        let rates =
            self.path(ends, 0).into_iter().filter_map(|link| crossbar_rate(self.topology, switch, self.topology.link(link).from));
        rates.fold(Span::ZERO, |sum, rate| sum + rate.time_to_send(frame))
    }

    /// One of the shortest paths between two hosts; `number` selects it.
    pub fn path(&self, [src, dst]: [HostId; 2], number: usize) -> Vec<LinkId> {
        self.routes.path(self.topology, src, dst, |node, links| (number + node.index()) % links)
    }

    /// Rate of the slowest link on a shortest path.
    pub fn bottleneck(&self, src: HostId, dst: HostId) -> Option<BitRate> {
        let path = self.routes.path(self.topology, src, dst, |_, _| 0);
        path.iter().map(|link| self.topology.link(*link).rate).min()
    }
}

/// Rate of each input and output of a switch's crossbar; `None` for a host, and if switches have no crossbar.
pub(crate) fn crossbar_rate(topology: &Topology, switch: &Switch, node: NodeId) -> Option<BitRate> {
    let combined = switch.architecture.combined().filter(|_| topology.host_id(node).is_none())?;
    let fastest = topology.out_links(node).iter().map(|link| topology.link(*link).rate).max()?;
    Some(fastest.scale(combined.speedup))
}

/// Properties of the hosts that traffic uses; the hosts of one switch form a rack.
pub(crate) fn host_infos<'a>(topology: &'a Topology, routes: &Routes) -> Vec<HostInfo<'a>> {
    let host = |id: HostId| HostInfo {
        name: topology.host_name(id),
        rate: topology.link(topology.host_link(topology.hosts[id.index()])).rate,
        rack: u32::from(routes.attachment_of(id)),
    };
    (0..topology.hosts.len() as u32).map(|id| host(HostId(id))).collect()
}

/// Sum of the rates of all links from switches with hosts to other switches, in one direction; `None` if there are none.
pub(crate) fn core_rate(topology: &Topology) -> Option<BitRate> {
    let into_fabric = topology.links.iter().filter(|link| {
        topology.nodes[link.from.index()].kind == NodeKind::Switch { layer: 0 } && topology.host_id(link.to).is_none()
    });
    let sum = into_fabric.fold(0u64, |sum, link| sum.saturating_add(link.rate.bps()));
    (sum > 0).then_some(BitRate(sum))
}
