//! Facts about a scenario in numbers: the network, idle round trips, and the load that traffic puts on each link.

use crate::canonical::canonical_json;
use crate::check::{flow_volume, with_waiting_flows, Network, ACKS};
use crate::doc::Parts;
use crate::Scenario;
use fanin_params::{shown, Param, Problem};
use fanin_switch::PRIORITIES;
use fanin_topology::NodeKind;
use fanin_traffic::{FlowKind, FlowSpec, Traffic};
use fanin_transport::TransportParams;
use fanin_units::{Bytes, HostId, LinkId, NodeId, Span};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Number of flows in the sample; further flows are assumed to be like them.
const FLOWS: usize = 50_000;
/// Number of switches with hosts up to which all pairs are examined; of more, a sample.
const PAIRS: usize = 48;

/// The first flows of the traffic with those that wait for others, and whether they are all.
fn sample(traffic: &mut Traffic) -> (Vec<FlowSpec>, bool) {
    let sample: Vec<FlowSpec> = std::iter::from_fn(|| traffic.pop()).take(FLOWS).collect();
    let exact = sample.len() < FLOWS;
    (with_waiting_flows(sample, traffic), exact)
}

/// Load that the traffic puts on the network.
struct Asked {
    /// Flows, bytes, data packets, first and last start \[s\] of each entry.
    entries: Vec<[f64; 5]>,
    /// Bits of wire time of each link.
    links: Vec<f64>,
    /// Sum over packets of the links that each crosses, acknowledgments included.
    packet_hops: f64,
    /// Lower bound of the run's simulated time \[s\].
    lasts: f64,
    /// Lower bound of the simulated time until the traffic is over \[s\].
    needs: f64,
    /// For each port to a host: the hosts whose transfers leave by it, by transport.
    senders: BTreeMap<LinkId, BTreeMap<u16, BTreeSet<HostId>>>,
}

/// Amount of traffic of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Volume {
    /// Sum over packets of the links that each crosses, acknowledgments included.
    pub packet_hops: f64,
    /// Lower bound of the simulated time in which they do \[s\].
    pub seconds: f64,
}

/// A setting as JSON.
fn as_json(setting: &impl Param) -> Value {
    serde_json::from_str(&canonical_json(&shown(setting))).unwrap_or(Value::Null)
}

impl Scenario {
    /// Facts about the scenario: network, round trips and load, as a JSON value.
    ///
    /// # Errors
    /// A file of its traffic that has changed since the scenario was validated.
    pub fn facts(&self) -> Result<Value, Vec<Problem>> {
        let mut traffic = self.traffic()?;
        let (sample, exact) = sample(&mut traffic);
        let asked = self.asked(&sample, &traffic);
        let names: Vec<&str> = traffic.entry_names().collect();
        let (shortest, longest) = self.base_rtts();
        let nodes = self.topology().nodes.iter().map(|node| match node.kind {
            NodeKind::Host => json!({"name": node.name, "layer": null}),
            NodeKind::Switch { layer } => json!({"name": node.name, "layer": layer}),
        });
        let switches = || (self.topology().hosts.len() as u32..self.topology().nodes.len() as u32).map(NodeId);
        let runs = switches().flat_map(|switch| self.mechanisms(switch).keys_at(&self.topology().nodes[switch.index()].name));
        let runs: BTreeSet<&str> = runs.collect();
        Ok(json!({
            "nodes": nodes.collect::<Vec<_>>(),
            "links": (0..self.topology().links.len()).map(|i| self.link_facts(LinkId(i as u32), &asked)).collect::<Vec<_>>(),
            "longest_path_switches": self.routes().longest(),
            "base_rtt_ps": [shortest.ps(), longest.ps()],
            "full_frame_bytes": self.full_frame(),
            "mechanisms": runs,
            "sizes": self.sizes_at(switches()),
            "transports": self.used_transports(&sample),
            "traffic": asked.entries.iter().zip(names).map(|([flows, bytes, packets, first, last], name)| json!({
                "name": name, "flows": flows, "bytes": bytes, "packets": packets, "first_s": first, "last_s": last,
            })).collect::<Vec<_>>(),
            "exact": exact,
            "packet_hops": asked.packet_hops,
            "lasts_s": asked.lasts,
        }))
    }

    /// Estimates the amount of traffic.
    ///
    /// # Errors
    /// A file of its traffic that has changed since the scenario was validated.
    pub fn volume(&self) -> Result<Volume, Vec<Problem>> {
        let mut traffic = self.traffic()?;
        let (sample, _) = sample(&mut traffic);
        let Asked { packet_hops, needs, .. } = self.asked(&sample, &traffic);
        Ok(Volume { packet_hops, seconds: needs })
    }

    /// Wire bytes of a full frame of the default transport, that of [`Scenario::base_rtts`].
    fn full_frame(&self) -> u32 {
        let framing = self.doc().framing.of_packets();
        let packet = self.transports()[0].1.mtu(framing.ip);
        framing.on_wire(framing.frame(packet - framing.ip.header()))
    }

    /// Sizes of mechanisms, the least and the largest of all switches and ports.
    fn sizes_at(&self, switches: impl Iterator<Item = NodeId>) -> Vec<Value> {
        let mut all: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
        let runs = |switch: &NodeId| !self.mechanisms(*switch).keys_at(&self.topology().nodes[switch.index()].name).is_empty();
        for switch in switches.filter(runs) {
            for (key, name, Bytes(bytes)) in self.mechanisms(switch).sizes(&self.site(switch)) {
                let [least, most] = all.entry((key, name)).or_insert([bytes, bytes]);
                (*least, *most) = ((*least).min(bytes), (*most).max(bytes));
            }
        }
        all.into_iter().map(|((key, name), bytes)| json!({"mechanism": key, "name": name, "bytes": bytes})).collect()
    }

    fn link_facts(&self, id: LinkId, asked: &Asked) -> Value {
        let link = self.topology().link(id);
        let most = link.rate.bps() as f64 * asked.lasts;
        let port = self.port(id);
        json!({
            "name": self.topology().link_name(id),
            "from": link.from.index(),
            "to": link.to.index(),
            "rate_bps": link.rate.bps(),
            "delay_ps": link.delay.ps(),
            "load": if most > 0.0 { asked.links[id.index()] / most } else { 0.0 },
            "marks": port.markings().iter().any(|(_, marking)| marking.marks()),
            "markings": port.markings().into_iter().map(|(classes, marking)| json!({
                "classes": (0..PRIORITIES as u8).filter(|class| classes >> class & 1 == 1).collect::<Vec<_>>(),
                "marking": as_json(marking),
            })).collect::<Vec<_>>(),
            "senders": asked.senders.get(&id).into_iter().flatten().map(|(transport, from)| {
                (self.transports()[usize::from(*transport)].0.clone(), json!(from.len()))
            }).collect::<serde_json::Map<_, _>>(),
        })
    }

    /// Names of the transports that sampled transfers use.
    fn used_transports(&self, sample: &[FlowSpec]) -> Vec<&str> {
        let used: BTreeSet<u16> =
            sample.iter().filter(|flow| flow.kind == FlowKind::Transfer).map(|flow| flow.transport).collect();
        used.into_iter().map(|number| self.transports()[usize::from(number)].0.as_str()).collect()
    }

    /// Shortest and longest idle RTT between two hosts, of a full packet of the default transport and its acknowledgment.
    pub(crate) fn base_rtts(&self) -> (Span, Span) {
        let (topology, routes) = (self.topology(), self.routes());
        let parts = Parts::of(self.doc());
        let network = Network::of(topology, routes);
        // The first and the last host of each switch with hosts.
        let mut ends: Vec<[Option<HostId>; 2]> = vec![[None; 2]; routes.attachments()];
        for host in (0..topology.hosts.len() as u32).map(HostId) {
            let [first, last] = &mut ends[usize::from(routes.attachment_of(host))];
            let place = if first.is_none() { first } else { last };
            *place = Some(host);
        }
        let step = ends.len().div_ceil(PAIRS);
        let all: Vec<HostId> = ends.iter().flatten().flatten().copied().collect();
        let from: Vec<HostId> = ends.iter().step_by(step).filter_map(|[first, _]| *first).collect();
        let mtu = self.transports()[0].1.mtu(parts.ip());
        let pairs = from.iter().flat_map(|a| all.iter().map(move |b| [*a, *b])).filter(|[a, b]| a != b);
        let mut found = pairs.filter_map(|pair| network.base_rtt(pair, &parts, mtu));
        let Some(first) = found.next() else { return (Span::ZERO, Span::ZERO) };
        found.fold((first, first), |(least, most), rtt| (least.min(rtt), most.max(rtt)))
    }

    fn asked(&self, sample: &[FlowSpec], traffic: &Traffic) -> Asked {
        let parts = Parts::of(self.doc());
        let stop = parts.duration.map(Span::as_secs_f64);
        let mut entries = vec![[0.0, 0.0, 0.0, f64::INFINITY, 0.0]; traffic.entry_names().count()];
        for flow in sample {
            let [flows, .., first, last] = &mut entries[usize::from(flow.entry)];
            let at = flow.start.as_secs_f64();
            *flows += 1.0;
            (*first, *last) = (first.min(at), last.max(at));
        }
        // For how many flows one that is seen stands.
        let seen: Vec<f64> = entries.iter().map(|entry| entry[0]).collect();
        let weight =
            |entry: u16| traffic.expected_flows(entry).map_or(1.0, |all| (all / seen[usize::from(entry)].max(1.0)).max(1.0));
        let mut links = vec![0.0; self.topology().links.len()];
        let mut packet_hops = 0.0;
        let mut senders: BTreeMap<LinkId, BTreeMap<u16, BTreeSet<HostId>>> = BTreeMap::new();
        let mut between: BTreeMap<(u16, u16), (HostId, f64)> = BTreeMap::new();
        let mut starts: f64 = 0.0;
        for flow in sample {
            let Some((packets, bytes)) = flow_volume(&parts, flow, stop) else { continue };
            let weight = weight(flow.entry);
            let entry = &mut entries[usize::from(flow.entry)];
            entry[1] += weight * bytes;
            entry[2] += weight * packets;
            starts = starts.max(entry[3] + (entry[4] - entry[3]) * weight);
            let each = self.wire_bytes_per_packet(flow);
            let acks = if flow.kind == FlowKind::Transfer { ACKS } else { 0.0 };
            packet_hops += weight * packets * (1.0 + acks) * self.routes().hops(self.topology(), flow.src, flow.dst) as f64;
            let bits = weight * (bytes + packets * each) * Bytes(1).bits() as f64;
            let topology = self.topology();
            links[topology.host_link(topology.hosts[flow.src.index()]).index()] += bits;
            let port = self.routes().host_port(flow.dst);
            links[port.index()] += bits;
            if flow.kind == FlowKind::Transfer {
                senders.entry(port).or_default().entry(flow.transport).or_default().insert(flow.src);
            }
            let [from, to] = [flow.src, flow.dst].map(|host| self.routes().attachment_of(host));
            between.entry((from, to)).or_insert((flow.dst, 0.0)).1 += bits;
        }
        for ((from, to), (dst, bits)) in between {
            self.spread(
                self.routes().attachment_node(usize::from(from)),
                (self.routes().attachment_node(usize::from(to)), dst),
                bits,
                &mut links,
            );
        }
        for (entry, seen) in entries.iter_mut().zip(&seen) {
            entry[0] = if *seen > 0.0 { entry[0] } else { 0.0 };
            entry[3] = if *seen > 0.0 { entry[3] } else { 0.0 };
        }
        for (number, entry) in (0u16..).zip(&mut entries) {
            entry[0] *= weight(number);
        }
        let busy = links.iter().zip(&self.topology().links).map(|(bits, link)| bits / link.rate.bps() as f64);
        let needs = busy.fold(starts, f64::max);
        let lasts = stop.unwrap_or(needs);
        Asked { entries, links, packet_hops, lasts, needs: needs.min(lasts), senders }
    }

    /// Spreads the bits from one switch to another one's host over the links between, in equal parts over all shortest paths.
    fn spread(&self, from: NodeId, (to, host): (NodeId, HostId), bits: f64, links: &mut [f64]) {
        let mut level = BTreeMap::from([(from, bits)]);
        while !level.is_empty() {
            let mut next: BTreeMap<NodeId, f64> = BTreeMap::new();
            for (node, bits) in level.into_iter().filter(|(node, _)| *node != to) {
                let ways = self.routes().next_hops(node, host);
                for link in ways {
                    let part = bits / ways.len() as f64;
                    links[link.index()] += part;
                    *next.entry(self.topology().link(*link).to).or_default() += part;
                }
            }
            level = next;
        }
    }

    /// Wire bytes of a full packet beyond its payload.
    fn wire_bytes_per_packet(&self, flow: &FlowSpec) -> f64 {
        let framing = self.doc().framing.of_packets();
        let header = match &flow.kind {
            FlowKind::Transfer => self.transports()[usize::from(flow.transport)].1.shape(framing.ip).header,
            FlowKind::Datagrams(_) => 8,
        };
        f64::from(header + framing.ip.header() + framing.header + framing.gap)
    }
}
