//! Generators of the topology families.

use crate::config::{Chain, Dumbbell, FatTree, LeafSpine, Racks, SingleSwitch};
use crate::draft::{Draft, DraftKind, Findings};
use crate::network::Topology;
use fanin_params::Problem;

type Built = Result<Topology, Vec<Problem>>;

fn nodes(draft: &mut Draft, kind: DraftKind, prefix: &str, count: u32) -> Vec<usize> {
    (0..count).map(|i| draft.add(format!("{prefix}{i}"), kind)).collect()
}

fn finish(draft: Draft) -> Built {
    draft.finish(Findings::of("topology"))
}

pub fn single_switch(t: &SingleSwitch) -> Built {
    let mut draft = Draft::default();
    let hosts = nodes(&mut draft, DraftKind::Host, "h", t.hosts);
    let switch = draft.add("switch0".into(), DraftKind::Switch);
    for host in hosts {
        draft.join(host, switch, t.link.wire());
    }
    finish(draft)
}

pub fn dumbbell(t: &Dumbbell) -> Built {
    let mut draft = Draft::default();
    let hosts = nodes(&mut draft, DraftKind::Host, "h", t.left + t.right);
    let left = draft.add("left".into(), DraftKind::Switch);
    let right = draft.add("right".into(), DraftKind::Switch);
    for (i, host) in hosts.into_iter().enumerate() {
        draft.join(host, if i < t.left as usize { left } else { right }, t.host_link.wire());
    }
    draft.join(left, right, t.bottleneck.wire());
    finish(draft)
}

pub fn racks(t: &Racks) -> Built {
    let mut draft = Draft::default();
    let hosts = nodes(&mut draft, DraftKind::Host, "h", t.racks * t.hosts_per_rack);
    let tors = nodes(&mut draft, DraftKind::Switch, "tor", t.racks);
    let root = draft.add("root".into(), DraftKind::Switch);
    for (i, host) in hosts.into_iter().enumerate() {
        draft.join(host, tors[i / t.hosts_per_rack as usize], t.host_link.wire());
    }
    for tor in tors {
        draft.join(tor, root, t.root_link.wire());
    }
    finish(draft)
}

pub fn leaf_spine(t: &LeafSpine) -> Built {
    let mut draft = Draft::default();
    let spines = t.spine_count().unwrap_or(0);
    let hosts = nodes(&mut draft, DraftKind::Host, "h", t.leaves * t.hosts_per_leaf);
    let leaves = nodes(&mut draft, DraftKind::Switch, "leaf", t.leaves);
    let spines = nodes(&mut draft, DraftKind::Switch, "spine", spines);
    for (i, host) in hosts.into_iter().enumerate() {
        draft.join(host, leaves[i / t.hosts_per_leaf as usize], t.host_link.wire());
    }
    for leaf in leaves {
        for spine in &spines {
            for _ in 0..t.links_per_pair {
                draft.join(leaf, *spine, t.uplink.wire());
            }
        }
    }
    finish(draft.without(&t.failed)?)
}

/// Builds a fat tree: core switch (i, j) joins aggregation switch i of every pod. Source: fat-tree.
pub fn fat_tree(t: &FatTree) -> Built {
    let mut draft = Draft::default();
    let (k, half) = (t.k as usize, t.k as usize / 2);
    let wire = t.link.wire();
    let hosts = nodes(&mut draft, DraftKind::Host, "h", t.k * t.k * t.k / 4);
    let tier = |draft: &mut Draft, name: &str| -> Vec<usize> {
        (0..k * half).map(|i| draft.add(format!("{name}{}_{}", i / half, i % half), DraftKind::Switch)).collect()
    };
    let edges = tier(&mut draft, "edge");
    let aggs = tier(&mut draft, "agg");
    let cores = nodes(&mut draft, DraftKind::Switch, "core", t.k * t.k / 4);
    for (i, host) in hosts.into_iter().enumerate() {
        draft.join(host, edges[i / half], wire);
    }
    for pod in 0..k {
        for edge in 0..half {
            for agg in 0..half {
                draft.join(edges[pod * half + edge], aggs[pod * half + agg], wire);
            }
        }
        for agg in 0..half {
            for j in 0..half {
                draft.join(aggs[pod * half + agg], cores[agg * half + j], wire);
            }
        }
    }
    finish(draft.without(&t.failed)?)
}

pub fn chain(t: &Chain) -> Built {
    let mut draft = Draft::default();
    let hosts = nodes(&mut draft, DraftKind::Host, "h", 2);
    let switches = nodes(&mut draft, DraftKind::Switch, "switch", t.switches);
    let line: Vec<usize> = [hosts[0]].into_iter().chain(switches).chain([hosts[1]]).collect();
    for pair in line.windows(2) {
        draft.join(pair[0], pair[1], t.link.wire());
    }
    finish(draft)
}
