//! Background traffic: flows that start at random instants, to random destinations or to a hot spot.

use crate::arrivals::{other, poisson_params, Arrivals, Origin, RateParams};
use crate::context::Build;
use crate::generate::{Draft, Generate};
use crate::sizes::{SizeDist, Sizes};
use fanin_units::{Bytes, HostId, Purpose, Stream, Time};
use std::collections::BTreeMap;
use std::ops::Range;

poisson_params! {
    /// Poisson background traffic: each source starts flows at random instants, to destinations drawn uniformly.
    pub struct PoissonTraffic {
        /// Sending hosts: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.
        pub sources: Vec<String> = vec!["all".to_string()];
        /// Receiving hosts: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.
        pub destinations: Vec<String> = vec!["all".to_string()];
        /// Distribution of flow sizes: a published one by name, a file, or a parametric one.
        pub sizes: Sizes;
        /// Probability that the destination is in the source's rack; if absent, racks do not matter.
        pub intra_rack: Option<f64>, in 0.0..=1.0;
        /// Size of the request that the destination sends first.
        pub request: Bytes = Bytes(0);
    }
}

poisson_params! {
    /// Hot spot: Poisson traffic of which a fraction goes to a few hot hosts.
    pub struct HotSpot {
        /// Sending hosts: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.
        pub sources: Vec<String> = vec!["all".to_string()];
        /// Receiving hosts of all other flows: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.
        pub destinations: Vec<String> = vec!["all".to_string()];
        /// Hot hosts, in the form of `sources`; if absent, chosen at random.
        pub hot: Option<Vec<String>>;
        /// Number of hot hosts as a fraction of the destinations (one at least), if they are chosen at random. Source: RCM
        /// §4, fig. 8.
        pub hot_hosts: f64 = 0.125, in 0.0..=1.0;
        /// Probability that a flow goes to a hot host; the others go uniformly to all destinations, hot ones included.
        /// Source: RCM §4, fig. 8.
        pub fraction: f64 = 0.15, in 0.0..=1.0;
        /// Distribution of flow sizes: a published one by name, a file, or a parametric one.
        pub sizes: Sizes;
        /// Size of the request that the destination sends first.
        pub request: Bytes = Bytes(0);
    }
}

/// Rule by which a source chooses destinations.
enum Target {
    Uniform,
    /// A host of the source's rack with this probability, else one of another rack.
    Local(f64),
    /// One of the hot hosts with this probability, else any destination.
    Hot(f64, Vec<HostId>),
}

struct Source {
    host: HostId,
    sizes: Stream,
    endpoints: Stream,
    rack: Range<usize>,
}

/// Destinations, ordered by rack.
struct Racks {
    sorted: Vec<HostId>,
    ranges: BTreeMap<u32, Range<usize>>,
}

impl Racks {
    fn new(build: &Build, hosts: &[HostId]) -> Self {
        let rack = |host: &HostId| build.hosts.info(*host).rack;
        let mut sorted = hosts.to_vec();
        sorted.sort_by_key(|host| (rack(host), *host));
        let mut ranges: BTreeMap<u32, Range<usize>> = BTreeMap::new();
        for (i, host) in sorted.iter().enumerate() {
            ranges.entry(rack(host)).or_insert(i..i).end = i + 1;
        }
        Racks { sorted, ranges }
    }

    fn range(&self, rack: u32) -> Range<usize> {
        self.ranges.get(&rack).cloned().unwrap_or(0..0)
    }

    /// Draws a host outside `rack`.
    fn draw_far(&self, stream: &mut Stream, rack: &Range<usize>) -> Option<HostId> {
        let eligible = self.sorted.len() - rack.len();
        if eligible == 0 {
            return None;
        }
        let drawn = stream.below(eligible as u64) as usize;
        Some(self.sorted[if drawn >= rack.start { drawn + rack.len() } else { drawn }])
    }

    /// Draws a host of `rack` other than `host`.
    fn draw_near(&self, stream: &mut Stream, rack: &Range<usize>, host: HostId) -> Option<HostId> {
        let near = &self.sorted[rack.clone()];
        other(stream, near, near.binary_search(&host).ok())
    }
}

/// Generator of Poisson flows.
pub(crate) struct Poisson {
    arrivals: Arrivals,
    sources: Vec<Source>,
    destinations: Vec<HostId>,
    racks: Racks,
    target: Target,
    sizes: SizeDist,
    request: u64,
    index: u64,
}

impl Poisson {
    pub fn background(build: &mut Build, params: &PoissonTraffic) -> Option<Poisson> {
        let target = params.intra_rack.map_or(Target::Uniform, Target::Local);
        let ends =
            Ends { sources: &params.sources, destinations: &params.destinations, sizes: &params.sizes, request: params.request };
        Self::build(build, ends, target, &params.rate())
    }

    pub fn hot_spot(build: &mut Build, params: &HotSpot) -> Option<Poisson> {
        let hot = match &params.hot {
            Some(patterns) => build.host_set("hot", patterns)?,
            None => {
                let mut hosts = build.host_set("destinations", &params.destinations)?;
                let wanted = (libm::round(hosts.len() as f64 * params.hot_hosts) as usize).max(1);
                Stream::new(build.ctx.seed, Purpose::Endpoints, build.entity("\u{0}hot")).shuffle(&mut hosts);
                hosts.truncate(wanted);
                hosts.sort();
                let names: Vec<&str> = hosts.iter().take(16).map(|host| build.hosts.info(*host).name).collect();
                let more = if hosts.len() > names.len() { ", …" } else { "" };
                build.notes.push(format!(
                    "{}: {} hot hosts, chosen at random: {}{more}",
                    build.name,
                    hosts.len(),
                    names.join(", ")
                ));
                hosts
            }
        };
        if let (Some(_), false) = (&params.hot, params.hot_hosts == 0.125) {
            build.error(
                "hot_hosts",
                Some(params.hot_hosts.to_string()),
                "has no effect when `hot` lists the hosts",
                Some("either `hot` or `hot_hosts`"),
            );
        }
        if params.fraction == 0.0 {
            build.error(
                "fraction",
                Some("0".into()),
                "makes no hot spot",
                Some("above 0, at most 1; kind = \"poisson\" for uniform traffic"),
            );
            return None;
        }
        let ends =
            Ends { sources: &params.sources, destinations: &params.destinations, sizes: &params.sizes, request: params.request };
        Self::build(build, ends, Target::Hot(params.fraction, hot), &params.rate())
    }

    fn build(build: &mut Build, ends: Ends, target: Target, rate: &RateParams) -> Option<Poisson> {
        let sources = build.host_set("sources", ends.sources);
        let destinations = build.host_set("destinations", ends.destinations);
        let sizes = SizeDist::build(ends.sizes, build);
        let (sources, destinations, sizes) = (sources?, destinations?, sizes?);
        let racks = Racks::new(build, &destinations);
        let mut origins = Vec::with_capacity(sources.len());
        let mut made = Vec::with_capacity(sources.len());
        for host in sources {
            let rack = build.hosts.info(host).rack;
            let local = |other: &HostId| build.hosts.info(*other).rack == rack;
            let range = racks.range(rack);
            let near = range.len() - usize::from(destinations.binary_search(&host).is_ok());
            let far = destinations.len() - range.len();
            let name = build.hosts.info(host).name;
            let missing = match &target {
                Target::Local(p) if near == 0 && *p > 0.0 => Some("in its rack"),
                Target::Local(p) if far == 0 && *p < 1.0 => Some("outside its rack"),
                Target::Hot(p, hot) if hot[..] == [host] && *p == 1.0 => Some("other than itself"),
                _ if near == 0 && far == 0 => Some("other than itself"),
                _ => None,
            };
            if let Some(place) = missing {
                let key = if place == "other than itself" { "destinations" } else { "intra_rack" };
                build.error(
                    key,
                    Some(format!("\"{name}\"")),
                    format!("as a source has no destination {place}"),
                    Some("hosts that leave each source a destination"),
                );
                return None;
            }
            let uniform = far as f64 / (near + far) as f64;
            let inter_rack = match &target {
                Target::Uniform => uniform,
                Target::Local(p) => 1.0 - p,
                Target::Hot(p, hot) => {
                    let others = hot.iter().filter(|h| **h != host).count();
                    let remote = hot.iter().filter(|h| !local(h)).count();
                    let hot_remote = if others == 0 { uniform } else { remote as f64 / others as f64 };
                    p * hot_remote + (1.0 - p) * uniform
                }
            };
            let mean_bytes = sizes.mean();
            origins.push(Origin { host, mean_bytes, inter_rack: inter_rack * mean_bytes });
            made.push(Source {
                host,
                sizes: Stream::new(build.ctx.seed, Purpose::Sizes, build.host_entity(host)),
                endpoints: Stream::new(build.ctx.seed, Purpose::Endpoints, build.host_entity(host)),
                rack: range,
            });
        }
        let arrivals = Arrivals::build(build, rate, &origins, 1.0)?;
        Some(Poisson { arrivals, sources: made, destinations, racks, target, sizes, request: ends.request.get(), index: 0 })
    }

    fn destination(&mut self, slot: usize) -> Option<HostId> {
        let source = &mut self.sources[slot];
        let stream = &mut source.endpoints;
        let among = |stream: &mut Stream, set: &[HostId]| other(stream, set, set.binary_search(&source.host).ok());
        match &self.target {
            Target::Uniform => among(stream, &self.destinations),
            Target::Local(p) => {
                if stream.unit() < *p {
                    self.racks.draw_near(stream, &source.rack, source.host)
                } else {
                    self.racks.draw_far(stream, &source.rack)
                }
            }
            Target::Hot(p, hot) => {
                let chosen = if stream.unit() < *p { among(stream, hot) } else { None };
                chosen.or_else(|| among(stream, &self.destinations))
            }
        }
    }
}

struct Ends<'a> {
    sources: &'a [String],
    destinations: &'a [String],
    sizes: &'a Sizes,
    request: Bytes,
}

impl Generate for Poisson {
    fn begin(&mut self, at: Time) {
        self.arrivals.begin(at);
    }

    fn next_start(&self) -> Option<Time> {
        self.arrivals.peek().map(|(at, _)| at)
    }

    fn pop(&mut self) -> Option<Draft> {
        let (at, slot) = self.arrivals.pop()?;
        let dst = self.destination(slot as usize)?;
        let source = &mut self.sources[slot as usize];
        let size = self.sizes.draw(&mut source.sizes);
        let index = self.index;
        self.index += 1;
        Some(Draft::transfer(source.host, dst, size, at, index).request(self.request))
    }

    fn total(&self) -> Option<u64> {
        self.arrivals.total()
    }

    fn arrivals(&self) -> f64 {
        self.arrivals.expected()
    }

    fn expected(&self) -> Option<f64> {
        Some(self.arrivals.expected())
    }
}
