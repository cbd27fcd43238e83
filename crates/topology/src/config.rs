//! Parameters of networks.

use crate::network::Wire;
use fanin_params::{choice, names, params, Cx};
use fanin_units::{BitRate, Bytes, Span};
use std::ops::Bound;

/// Largest number of nodes in a network.
pub const MAX_NODES: usize = 1_000_000;
/// Largest number of links in a network, both directions counted as one.
pub const MAX_LINKS: usize = 2_000_000;

/// Lowest accepted rate; with [`LONGEST`], bounds beyond which no data center has a link (clocks would not overflow).
const SLOWEST: BitRate = BitRate(1_000);
/// Highest accepted rate: rates are counted in [`STEP`]s, in 32 bits, up to 4.29 Tb/s, of which this is the round part.
const FASTEST: BitRate = BitRate(4_000_000_000_000);
/// Granularity of rates: each is a multiple of this.
const STEP: BitRate = BitRate(1_000);
const LONGEST: Span = Span::from_s(10);

params! {
    /// A link with equal rate and delay in both directions.
    pub struct LinkParams {
        /// Rate in each direction.
        pub rate: BitRate = BitRate::from_gbps(10), in SLOWEST..=FASTEST;
        /// Propagation delay.
        pub delay: Span = Span::from_us(1), in Span::ZERO..=LONGEST;
        /// Bytes that a packet takes on this link beyond its IP packet: `framing.header` at least, the rest as gap. If
        /// absent, framing's header and gap (Ethernet: 38 B).
        pub wire_overhead: Option<Bytes>, in Bytes(0)..=Bytes(1_000);
    }
}

params! {
    /// A link between switches with equal rate and delay in both directions.
    pub struct UplinkParams {
        /// Rate in each direction.
        pub rate: BitRate = BitRate::from_gbps(40), in SLOWEST..=FASTEST;
        /// Propagation delay.
        pub delay: Span = Span::from_us(1), in Span::ZERO..=LONGEST;
        /// Bytes that a packet takes on this link beyond its IP packet: `framing.header` at least, the rest as gap. If
        /// absent, framing's header and gap (Ethernet: 38 B).
        pub wire_overhead: Option<Bytes>, in Bytes(0)..=Bytes(1_000);
    }
}

params! {
    /// A link of the testbed of racks, with equal rate and delay in both directions.
    pub struct RackLinkParams {
        /// Rate in each direction. Source: S-ECN §III-A (1 Gb/s).
        pub rate: BitRate = BitRate::from_gbps(1), in SLOWEST..=FASTEST;
        /// Propagation delay. Source: S-ECN §III-A (about 50 us for a round trip between racks: eight links of 5 us, and
        /// serialisation of small frames).
        pub delay: Span = Span::from_us(5), in Span::ZERO..=LONGEST;
        /// Bytes that a packet takes on this link beyond its IP packet: `framing.header` at least, the rest as gap. If
        /// absent, framing's header and gap (Ethernet: 38 B).
        pub wire_overhead: Option<Bytes>, in Bytes(0)..=Bytes(1_000);
    }
}

impl LinkParams {
    pub(crate) fn wire(&self) -> Wire {
        Wire { rate: self.rate, delay: self.delay, overhead: self.wire_overhead }
    }
}

impl UplinkParams {
    pub(crate) fn wire(&self) -> Wire {
        Wire { rate: self.rate, delay: self.delay, overhead: self.wire_overhead }
    }
}

impl RackLinkParams {
    pub(crate) fn wire(&self) -> Wire {
        Wire { rate: self.rate, delay: self.delay, overhead: self.wire_overhead }
    }
}

params! {
    /// One switch `switch0` with all hosts `h0`, `h1`, ….
    pub struct SingleSwitch {
        /// Number of hosts.
        pub hosts: u32 = 8, in 2..=65_535;
        /// Link of each host.
        pub link: LinkParams = LinkParams { rate: BitRate::from_gbps(10), delay: Span::from_us(1), wire_overhead: None };
    }
}

params! {
    /// Two switches and a link between them: hosts `h0` … at `left`, the rest at `right`.
    pub struct Dumbbell {
        /// Number of hosts at the left switch.
        pub left: u32 = 8, in 1..=32_767;
        /// Number of hosts at the right switch.
        pub right: u32 = 8, in 1..=32_767;
        /// Link of each host.
        pub host_link: LinkParams = LinkParams { rate: BitRate::from_gbps(10), delay: Span::from_us(1), wire_overhead: None };
        /// Link between the two switches.
        pub bottleneck: LinkParams = LinkParams { rate: BitRate::from_gbps(10), delay: Span::from_us(1), wire_overhead: None };
    }
}

params! {
    /// Racks joined by one root switch: hosts `h0` …, switches `tor0` … and `root`. Source: S-ECN §III-A, fig. 3.
    pub struct Racks {
        /// Number of racks. Source: S-ECN §III-A (4).
        pub racks: u32 = 4, in 1..=4_096;
        /// Hosts in each rack. Source: S-ECN §III-A (3).
        pub hosts_per_rack: u32 = 3, in 1..=4_096;
        /// Link of each host.
        pub host_link: RackLinkParams = RackLinkParams { rate: BitRate::from_gbps(1), delay: Span::from_us(5), wire_overhead: None };
        /// Link of each rack to the root switch.
        pub root_link: RackLinkParams = RackLinkParams { rate: BitRate::from_gbps(1), delay: Span::from_us(5), wire_overhead: None };
    }
}

params! {
    /// Leaf–spine, every leaf joined to every spine: hosts `h0` …, switches `leaf0` …, `spine0` …. Source: pFabric §5 (the
    /// defaults: 144 hosts, 9 leaves, 4 spines, 10 and 40 Gb/s).
    pub struct LeafSpine {
        /// Number of leaves.
        pub leaves: u32 = 9, in 1..=4_096;
        /// Hosts at each leaf.
        pub hosts_per_leaf: u32 = 16, in 1..=4_096;
        /// Number of spines; if absent, derived from `oversubscription`.
        pub spines: Option<u32>, in 1u32..=4_096;
        /// Oversubscription of a leaf: rate of its host links over that of its uplinks; 1 if neither this nor `spines` is
        /// given.
        pub oversubscription: Option<f64>, in (Bound::Excluded(0.0), Bound::Included(1_000.0));
        /// Number of parallel links between each leaf and each spine.
        pub links_per_pair: u32 = 1, in 1..=64;
        /// Link of each host.
        pub host_link: LinkParams = LinkParams { rate: BitRate::from_gbps(10), delay: Span::from_us(1), wire_overhead: None };
        /// Link between a leaf and a spine.
        pub uplink: UplinkParams = UplinkParams { rate: BitRate::from_gbps(40), delay: Span::from_us(1), wire_overhead: None };
        /// Links that are missing: routes go around them. Each is named by either of its ports (`agg0_0->core0`); `*` stands
        /// for anything.
        pub failed: Vec<String> = Vec::new();
    }
}

params! {
    /// Fat tree of switches with k ports: k³/4 hosts `h0` … by pod and edge switch, 5k²/4 switches `edge0_0` (pod, place),
    /// `agg0_0`, `core0`. Source: fat-tree.
    pub struct FatTree {
        /// Number of ports of every switch; even.
        pub k: u32 = 4, in 2..=64;
        /// Link between each pair of neighbouring switches, and of each host.
        pub link: LinkParams = LinkParams { rate: BitRate::from_gbps(10), delay: Span::from_us(1), wire_overhead: None };
        /// Links that are missing: routes go around them. Each is named by either of its ports (`agg0_0->core0`); `*` stands
        /// for anything.
        pub failed: Vec<String> = Vec::new();
    }
}

params! {
    /// Line of n switches `switch0` … and n + 1 links, with host `h0` at its start and `h1` at its end.
    pub struct Chain {
        /// Number of switches.
        pub switches: u32 = 5, in 1..=1_024;
        /// Link between each pair of neighbouring switches, and of each host.
        pub link: LinkParams = LinkParams { rate: BitRate::from_gbps(10), delay: Span::from_us(1), wire_overhead: None };
    }
}

names! {
    /// Format of a network file.
    pub enum FileFormat {
        /// GraphML: undirected edges with the attributes `rate` and `delay`, nodes with the attribute `kind`.
        "graphml" => Graphml,
        /// JSON: `{"nodes": [{"id": "h0", "kind": "host"}], "links": [{"a": "h0", "b": "s0", "rate": "10Gbps", "delay": "1us"}]}`.
        "edge_list" => EdgeList,
        /// `topology.txt` of the HPCC simulator.
        "hpcc" => Hpcc,
    }
}

params! {
    /// Network read from a file. Nodes keep their ids as names; a node without a kind is a host if it has one link.
    pub struct FromFile {
        /// Path of the file, relative to the scenario's folder.
        pub path: String;
        /// Format of the file; if absent, by its ending: `.graphml`, `.json`, `.txt`.
        pub format: Option<FileFormat>;
        /// Rate of links without one in the file; if absent, the file must give it.
        pub rate: Option<BitRate>, in SLOWEST..=FASTEST;
        /// Propagation delay of links without one in the file; if absent, the file must give it.
        pub delay: Option<Span>, in Span::ZERO..=LONGEST;
    }
}

choice! {
    /// The network's topology.
    pub enum TopologyConfig {
        /// One switch `switch0` with all hosts `h0`, `h1`, ….
        "single_switch" => SingleSwitch(SingleSwitch),
        /// Two switches and a link between them: hosts `h0` … at `left`, the rest at `right`.
        "dumbbell" => Dumbbell(Dumbbell),
        /// Racks joined by one root switch: hosts `h0` …, switches `tor0` … and `root`. Source: S-ECN §III-A, fig. 3.
        "racks" => Racks(Racks),
        /// Leaf–spine, every leaf joined to every spine: hosts `h0` …, switches `leaf0` …, `spine0` …. Source: pFabric §5
        /// (the defaults: 144 hosts, 9 leaves, 4 spines, 10 and 40 Gb/s).
        "leaf_spine" => LeafSpine(LeafSpine),
        /// Fat tree of switches with k ports: k³/4 hosts `h0` … by pod and edge switch, 5k²/4 switches `edge0_0` (pod,
        /// place), `agg0_0`, `core0`. Source: fat-tree.
        "fat_tree" => FatTree(FatTree),
        /// Line of n switches `switch0` … and n + 1 links, with host `h0` at its start and `h1` at its end.
        "chain" => Chain(Chain),
        /// Network read from a file. Nodes keep their ids as names; a node without a kind is a host if it has one link.
        "file" => File(FromFile),
    }
}

/// Reason to refuse a link read from a file (value, message, accepted values); `None` if it is fine.
pub(crate) fn refuse_link(rate: BitRate, delay: Span) -> Option<(String, &'static str, String)> {
    if rate.bps() == 0 {
        Some((rate.to_string(), "is a rate of zero", format!("a rate of at least {SLOWEST}")))
    } else if rate < SLOWEST {
        Some((rate.to_string(), "is too slow", format!("a rate of at least {SLOWEST}")))
    } else if rate > FASTEST {
        Some((rate.to_string(), "is too fast", format!("a rate of at most {FASTEST}")))
    } else if let Some((message, accepted)) = refuse_step(rate) {
        Some((rate.to_string(), message, accepted))
    } else if delay > LONGEST {
        Some((delay.to_string(), "is too long", format!("a delay of at most {LONGEST}")))
    } else {
        None
    }
}

/// Reason to refuse a rate within the range (message, accepted values): ports count in kb/s; `None` if it is fine.
fn refuse_step(rate: BitRate) -> Option<(&'static str, String)> {
    let fraction = rate.bps() % STEP.bps() != 0;
    fraction.then(|| ("is not a multiple of 1Kbps", format!("a multiple of {STEP}, at most {FASTEST}")))
}

impl LeafSpine {
    /// Number of spines: as given, or derived from the oversubscription.
    ///
    /// # Errors
    /// Message and accepted values, if no whole number of spines has the oversubscription, or both keys are given and
    /// disagree.
    pub fn spine_count(&self) -> Result<u32, (String, String)> {
        let down = f64::from(self.hosts_per_leaf) * self.host_link.rate.bps() as f64;
        let per_spine = f64::from(self.links_per_pair) * self.uplink.rate.bps() as f64;
        let ratio_with = |spines: f64| down / (spines * per_spine);
        let same = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b;
        if let Some(spines) = self.spines {
            let ratio = ratio_with(f64::from(spines));
            return match self.oversubscription {
                Some(wanted) if !same(ratio, wanted) => Err((
                    format!("is {wanted}, but {spines} spines make it {ratio:.4}"),
                    "`spines` or `oversubscription`, not both".to_string(),
                )),
                _ => Ok(spines),
            };
        }
        let wanted = self.oversubscription.unwrap_or(1.0);
        let spines = down / (wanted * per_spine);
        let whole = spines.round();
        if (1.0..=4_096.0).contains(&whole) && same(ratio_with(whole), wanted) {
            return Ok(whole as u32);
        }
        let near: Vec<String> = [spines.floor(), spines.ceil()]
            .iter()
            .filter(|n| (1.0..=4_096.0).contains(*n))
            .map(|n| format!("{} ({n} spines)", ratio_with(*n)))
            .collect();
        let accepted =
            if near.is_empty() { "another ratio, or `spines`".to_string() } else { format!("{}, or `spines`", near.join(", ")) };
        Err((format!("is {wanted}: it asks for {spines:.3} spines"), accepted))
    }
}

impl TopologyConfig {
    /// Rates in this configuration, each with the key of its link; a file's only key is `rate` itself.
    fn rates(&self) -> Vec<(Option<&'static str>, BitRate)> {
        match self {
            TopologyConfig::SingleSwitch(t) => vec![(Some("link"), t.link.rate)],
            TopologyConfig::Dumbbell(t) => vec![(Some("host_link"), t.host_link.rate), (Some("bottleneck"), t.bottleneck.rate)],
            TopologyConfig::Racks(t) => vec![(Some("host_link"), t.host_link.rate), (Some("root_link"), t.root_link.rate)],
            TopologyConfig::LeafSpine(t) => vec![(Some("host_link"), t.host_link.rate), (Some("uplink"), t.uplink.rate)],
            TopologyConfig::FatTree(t) => vec![(Some("link"), t.link.rate)],
            TopologyConfig::Chain(t) => vec![(Some("link"), t.link.rate)],
            TopologyConfig::File(t) => t.rate.iter().map(|rate| (None, *rate)).collect(),
        }
    }

    /// Records problems that a single key cannot show, at the current path of `cx`.
    pub fn check(&self, cx: &mut Cx) {
        for (link, rate) in self.rates() {
            let Some((message, accepted)) = refuse_step(rate) else { continue };
            let record = |cx: &mut Cx| {
                cx.key("rate", |cx| cx.error(None, message, Some(accepted)).value = Some(format!("\"{rate}\"")));
            };
            match link {
                Some(link) => cx.key(link, record),
                None => record(cx),
            }
        }
        let (nodes, links): (u64, u64) = match self {
            TopologyConfig::FatTree(t) if t.k % 2 == 1 => {
                let accepted = format!("an even number, such as {} or {}", t.k - 1, t.k + 1);
                cx.key("k", |cx| cx.error(None, format!("is {}: odd", t.k), Some(accepted)).severity);
                return;
            }
            TopologyConfig::LeafSpine(t) => match t.spine_count() {
                Ok(spines) => {
                    let (leaves, hosts) = (u64::from(t.leaves), u64::from(t.leaves) * u64::from(t.hosts_per_leaf));
                    (hosts + leaves + u64::from(spines), hosts + leaves * u64::from(spines) * u64::from(t.links_per_pair))
                }
                Err((message, accepted)) => {
                    cx.key("oversubscription", |cx| cx.error(None, message, Some(accepted)).severity);
                    return;
                }
            },
            TopologyConfig::Racks(t) => {
                let hosts = u64::from(t.racks) * u64::from(t.hosts_per_rack);
                if hosts < 2 {
                    cx.error(None, "has one host", Some("at least two".into()));
                }
                (hosts + u64::from(t.racks) + 1, hosts + u64::from(t.racks))
            }
            _ => return,
        };
        if nodes > MAX_NODES as u64 || links > MAX_LINKS as u64 {
            cx.error(
                None,
                format!("has {nodes} nodes and {links} links"),
                Some(format!("at most {MAX_NODES} nodes and {MAX_LINKS} links")),
            );
        }
    }
}
