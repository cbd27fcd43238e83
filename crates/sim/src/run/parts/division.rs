//! The division of a network among parts: switches with their hosts stay together.

use fanin_scenario::Scenario;
use fanin_topology::{Link, Topology};
use fanin_units::{LinkId, NodeId, Span};
use std::cmp::Reverse;

/// Hosts and switches by part, and the window that the cut links allow.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// By host and by switch, its part.
    pub hosts: Vec<u32>,
    pub switches: Vec<u32>,
    /// Number of parts, at least one.
    pub parts: usize,
    /// The least time that anything needs to cross the border; [`Span::MAX`] where nothing is cut.
    pub window: Span,
}

impl Division {
    /// Divides the switches of a network, each with its hosts, into up to `parts` parts of about the same work.
    ///
    /// Switches with hosts come in the order of their hosts, so that those of a pod stay together; the others join the part with most of
    /// their links that is not full.
    pub fn balanced(scenario: &Scenario, parts: usize) -> Division {
        let topology = scenario.topology();
        let work = |s: usize| topology.out_links(switch(topology, s)).len() as u64 + 2 * hosts_of(topology, s).count() as u64;
        let count = topology.switch_count();
        let mut with_hosts = switches_with_hosts(topology);
        with_hosts.sort_by_key(|s| (hosts_of(topology, *s).min(), *s));
        let parts = parts.min(with_hosts.len()).max(1);
        let all: u64 = with_hosts.iter().map(|s| work(*s)).sum();
        let mut of: Vec<Option<u32>> = vec![None; count];
        let mut load = vec![0u64; parts];
        let mut done = 0;
        for s in with_hosts {
            // The part in which the middle of its work falls.
            let part = ((done + work(s) / 2) * parts as u64 / all.max(1)).min(parts as u64 - 1) as usize;
            done += work(s);
            load[part] += work(s);
            of[s] = Some(part as u32);
        }
        let total: u64 = (0..count).map(work).sum();
        let full = total.div_ceil(parts as u64) + (0..count).map(work).max().unwrap_or(0);
        let mut left: Vec<usize> = (0..count).filter(|s| of[*s].is_none()).collect();
        let neighbours = |s: usize| {
            let links = topology.out_links(switch(topology, s)).iter();
            links.filter_map(|link| topology.switch_index(topology.link(*link).to))
        };
        let mut known: Vec<usize> = (0..count).map(|s| neighbours(s).filter(|to| of[*to].is_some()).count()).collect();
        // Those that know most of their neighbours' parts go first.
        while let Some((at, _)) = left.iter().enumerate().max_by_key(|(_, s)| (known[**s], Reverse(**s))) {
            let s = left.swap_remove(at);
            let mut ties = vec![0u32; parts];
            neighbours(s).filter_map(|to| of[to]).for_each(|part| ties[part as usize] += 1);
            let open = (0..parts).filter(|part| load[*part] + work(s) <= full);
            let part = open.max_by_key(|part| (ties[*part], Reverse(load[*part]), Reverse(*part))).unwrap_or(0);
            load[part] += work(s);
            of[s] = Some(part as u32);
            neighbours(s).for_each(|to| known[to] += 1);
        }
        Division::of_switches(scenario, of.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// The division of switches into parts, by the number of each; hosts go with their switch. Parts that are not apart in time are one.
    pub fn of_switches(scenario: &Scenario, mut switches: Vec<u32>) -> Division {
        let topology = scenario.topology();
        let host_switch = |h: usize| {
            let link = topology.link(topology.host_link(topology.hosts[h]));
            topology.switch_index(link.to).unwrap_or_default()
        };
        let hosts = |switches: &[u32]| (0..topology.hosts.len()).map(|h| switches[host_switch(h)]).collect::<Vec<u32>>();
        // What is no time apart cannot be cut: one part.
        for (i, link) in topology.links.iter().enumerate() {
            let ends = [link.from, link.to].map(|node| topology.switch_index(node));
            if let [Some(a), Some(b)] = ends {
                let (a, b) = (switches[a], switches[b]);
                if a != b && scenario.hop_delay(LinkId(i as u32)) == Span::ZERO {
                    let (to, from) = (a.min(b), a.max(b));
                    switches.iter_mut().filter(|part| **part == from).for_each(|part| *part = to);
                }
            }
        }
        let mut known: Vec<u32> = switches.clone();
        known.sort_unstable();
        known.dedup();
        switches.iter_mut().for_each(|part| *part = known.binary_search(part).unwrap_or_default() as u32);
        let mut division = Division { hosts: hosts(&switches), switches, parts: known.len().max(1), window: Span::MAX };
        let cut = topology.links.iter().enumerate().filter(|(_, link)| division.cuts(scenario, link));
        division.window = cut.map(|(i, _)| scenario.hop_delay(LinkId(i as u32))).min().unwrap_or(Span::MAX);
        division
    }

    /// True for a link from one part to another.
    pub fn cuts(&self, scenario: &Scenario, link: &Link) -> bool {
        let part = |node| scenario.topology().switch_index(node).map(|s| self.switches[s]);
        matches!([part(link.from), part(link.to)], [Some(a), Some(b)] if a != b)
    }
}

fn switch(topology: &Topology, s: usize) -> NodeId {
    NodeId((topology.hosts.len() + s) as u32)
}

/// Switches that hosts are connected to.
pub fn switches_with_hosts(topology: &Topology) -> Vec<usize> {
    (0..topology.switch_count()).filter(|s| hosts_of(topology, *s).next().is_some()).collect()
}

fn hosts_of(topology: &Topology, s: usize) -> impl Iterator<Item = usize> + '_ {
    let links = topology.out_links(switch(topology, s)).iter();
    links.filter_map(|link| topology.host_id(topology.link(*link).to)).map(|host| host.index())
}
