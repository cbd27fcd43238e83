//! Poisson arrivals: one process per host, with rates derived from the offered load.

use crate::context::{Build, LONGEST};
use fanin_params::names;
use fanin_units::{BitRate, Bytes, HostId, Purpose, Span, Stream, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

names! {
    /// Capacity of which `load` is a fraction. Load counts application bytes, as in DCTCP, pFabric and HPCC; headers come on
    /// top (0.6 in full segments of 1460 B takes 0.632 of a link).
    pub enum LoadOf {
        /// Rates of the links of the entry's sources (of queries: clients), in one direction.
        "host_links" => HostLinks,
        /// Rates of all links from ToRs into the fabric, in one direction; only bytes between racks count.
        "core" => Core,
    }
}

/// Declares a `params!` table with the keys common to all Poisson processes.
macro_rules! poisson_params {
    ($(#[doc = $doc:expr])* pub struct $name:ident { $($own:tt)* }) => {
        fanin_params::params! {
            $(#[doc = $doc])*
            pub struct $name {
                $($own)*
                /// Offered load as a fraction of the capacity `load_of`; give this or `per_second`.
                pub load: Option<f64>, in 0.0..=100.0;
                /// Capacity of which `load` is a fraction.
                pub load_of: $crate::arrivals::LoadOf = $crate::arrivals::LoadOf::HostLinks;
                /// Arrivals per second of the whole entry, divided equally among its hosts.
                pub per_second: Option<f64>, in 0.0..=1e12;
                /// End of arrivals: none at or after this instant; if absent, the end of the run.
                pub stop: Option<fanin_units::Time>, in fanin_units::Time::ZERO..=$crate::context::LATEST;
                /// Largest number of arrivals; if absent, no limit.
                pub count: Option<u64>, in 1u64..;
            }
        }
        impl $name {
            pub(crate) fn rate(&self) -> $crate::arrivals::RateParams {
                $crate::arrivals::RateParams {
                    load: self.load,
                    load_of: self.load_of,
                    per_second: self.per_second,
                    stop: self.stop,
                    count: self.count,
                }
            }
        }
    };
}
pub(crate) use poisson_params;

/// The keys that [`poisson_params!`] declares, for the common code.
pub(crate) struct RateParams {
    pub load: Option<f64>,
    pub load_of: LoadOf,
    pub per_second: Option<f64>,
    pub stop: Option<Time>,
    pub count: Option<u64>,
}

/// One host's share of a Poisson process.
pub(crate) struct Origin {
    pub host: HostId,
    /// Mean application bytes of an arrival at this host.
    pub mean_bytes: f64,
    /// Fraction of those bytes that crosses racks.
    pub inter_rack: f64,
}

struct Process {
    stream: Stream,
    mean_gap: f64,
}

/// Independent Poisson processes, merged in order of time.
pub(crate) struct Arrivals {
    processes: Vec<Process>,
    next: BinaryHeap<Reverse<(Time, u32)>>,
    stop: Time,
    left: u64,
    total: Option<u64>,
    expected: f64,
}

impl Arrivals {
    /// Derives each origin's arrival rate from the entry's parameters:
    /// - `load_of = "host_links"`: λ_s = load · R_s / (8 · E[bytes_s]), R_s the rate of the origin's link;
    /// - `load_of = "core"`: λ_s = load · C · w_s / (8 · Σ_s w_s · E[inter-rack bytes_s]), w_s = R_s / Σ R;
    /// - `per_second`: λ_s = per_second / number of origins.
    ///
    /// `flows` is how many flows one arrival makes.
    pub fn build(build: &mut Build, params: &RateParams, origins: &[Origin], flows: f64) -> Option<Arrivals> {
        let rate_of = |origin: &Origin| build.hosts.info(origin.host).rate.bps() as f64;
        let all_rates: f64 = origins.iter().map(rate_of).sum();
        let rates: Vec<f64> = match (params.load, params.per_second) {
            (Some(load), None) => {
                if load == 0.0 {
                    build.error("load", Some("0".into()), "offers nothing", Some("above 0"));
                    return None;
                }
                if load > 1.0 {
                    build.warn(
                        "load",
                        Some(load.to_string()),
                        "is more than the network can carry: queues and completion times grow with the run",
                    );
                }
                match params.load_of {
                    LoadOf::HostLinks => {
                        let weights: Vec<(f64, f64)> = origins.iter().map(|o| (rate_of(o), o.mean_bytes)).collect();
                        weights.into_iter().map(|(rate, bytes)| arrivals_per_second(load * rate, bytes)).collect()
                    }
                    LoadOf::Core => {
                        let weights: Vec<f64> = origins.iter().map(|o| rate_of(o) / all_rates).collect();
                        let crossing: f64 = origins.iter().zip(&weights).map(|(o, w)| w * o.inter_rack).sum();
                        let Some(core) = build.ctx.core_rate.filter(|core| *core > BitRate(0)) else {
                            build.error(
                                "load_of",
                                Some("\"core\"".into()),
                                "has no meaning here: no links leave the racks",
                                Some("\"host_links\""),
                            );
                            return None;
                        };
                        if crossing <= 0.0 {
                            build.error(
                                "load_of",
                                Some("\"core\"".into()),
                                "has no meaning here: no flow of this entry leaves its rack",
                                Some("\"host_links\""),
                            );
                            return None;
                        }
                        let all = arrivals_per_second(load * core.bps() as f64, crossing);
                        weights.into_iter().map(|weight| all * weight).collect()
                    }
                }
            }
            (None, Some(per_second)) => {
                if per_second == 0.0 {
                    build.error("per_second", Some("0".into()), "offers nothing", Some("above 0"));
                    return None;
                }
                let value = Some(format!("\"{}\"", params.load_of.name()));
                let (message, remedy) = ("has no effect with `per_second`", "`load` instead of `per_second`");
                if params.load_of != LoadOf::HostLinks {
                    build.error("load_of", value, message, Some(remedy));
                    return None;
                }
                build.unused("load_of", value, message, remedy);
                vec![per_second / origins.len() as f64; origins.len()]
            }
            (given, _) => {
                let message = if given.is_some() { "cannot be given together with `per_second`" } else { "is missing" };
                build.error("load", given.map(|load| load.to_string()), message, Some("either `load` or `per_second`"));
                return None;
            }
        };
        let stop = build.end(params.stop, params.count.is_some(), ["these arrivals", "count"])?;
        if let (None, Some(count)) = (stop, params.count) {
            let lasts = count as f64 / rates.iter().sum::<f64>();
            if lasts > LONGEST.as_secs_f64() {
                let accepted = format!("arrivals within {LONGEST}, or a `stop`");
                build.error("count", Some(count.to_string()), format!("arrivals take about {lasts:.3e} s"), Some(&accepted));
                return None;
            }
        }
        let expected = stop.map_or(f64::INFINITY, |stop| stop.since(build.start).as_secs_f64() * rates.iter().sum::<f64>());
        let expected = params.count.map_or(expected, |count| expected.min(count as f64));
        if build.too_many(if params.load.is_some() { "load" } else { "per_second" }, expected * flows) {
            return None;
        }
        let processes = origins.iter().zip(&rates).map(|(origin, rate)| Process {
            stream: Stream::new(build.ctx.seed, Purpose::Arrivals, build.host_entity(origin.host)),
            mean_gap: 1.0 / rate,
        });
        Some(Arrivals {
            processes: processes.collect(),
            next: BinaryHeap::new(),
            stop: stop.unwrap_or(Time::MAX),
            left: params.count.unwrap_or(u64::MAX),
            total: params.count.filter(|_| stop.is_none()),
            expected,
        })
    }

    pub fn begin(&mut self, at: Time) {
        for slot in 0..self.processes.len() as u32 {
            self.schedule(slot, at);
        }
    }

    fn schedule(&mut self, slot: u32, after: Time) {
        let process = &mut self.processes[slot as usize];
        let at = after.saturating_add(Span::from_secs_f64(process.stream.exponential(process.mean_gap)));
        if at < self.stop {
            self.next.push(Reverse((at, slot)));
        }
    }

    /// Time of the next arrival, and the index of its origin.
    pub fn peek(&self) -> Option<(Time, u32)> {
        if self.left == 0 {
            None
        } else {
            self.next.peek().map(|next| next.0)
        }
    }

    pub fn pop(&mut self) -> Option<(Time, u32)> {
        let (at, slot) = self.peek()?;
        self.next.pop();
        self.left -= 1;
        self.schedule(slot, at);
        Some((at, slot))
    }

    /// Expected number of arrivals.
    pub fn expected(&self) -> f64 {
        self.expected
    }

    /// Exact number of arrivals, if nothing but `count` ends them.
    pub fn total(&self) -> Option<u64> {
        self.total
    }
}

const BITS_PER_BYTE: f64 = Bytes(1).bits() as f64;

/// Arrival rate at which arrivals of `bytes` on average make `bits_per_second`.
fn arrivals_per_second(bits_per_second: f64, bytes: f64) -> f64 {
    bits_per_second / (BITS_PER_BYTE * bytes)
}

/// A host drawn uniformly from `set`, except the one at index `skip`; `None` if there is none.
pub(crate) fn other(stream: &mut Stream, set: &[HostId], skip: Option<usize>) -> Option<HostId> {
    let eligible = set.len() - usize::from(skip.is_some());
    if eligible == 0 {
        return None;
    }
    let drawn = stream.below(eligible as u64) as usize;
    Some(set[drawn + usize::from(skip.is_some_and(|skip| drawn >= skip))])
}
