//! One `[[traffic]]` table of a scenario.

use crate::collective::{Collective, Job};
use crate::context::{Build, LATEST, LONGEST};
use crate::datagrams::{Cbr, OnOff, OneFlow};
use crate::generate::Generate;
use crate::import::{FlowFile, Import, ImportedFlows};
use crate::incast::{Incast, Rounds};
use crate::list::{FlowList, List, Wait};
use crate::pattern::{AllToAll, Pattern, Permutation};
use crate::poisson::{HotSpot, Poisson, PoissonTraffic};
use crate::query::{Queries, QueryTraffic};
use fanin_params::{choice, params};
use fanin_units::{Span, Time};

/// Highest traffic class. Source: IEEE 802.1Q, eight priority code points.
pub const MAX_CLASS: u8 = 7;

params! {
    /// One source of traffic: its flows, their time, and their transport.
    pub struct Entry, with kind: TrafficKind {
        /// Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
        /// the entry's random streams: a named entry keeps them when others are added or moved.
        pub name: Option<String>;
        /// Name of the transport; if absent, the scenario's `transport`.
        pub transport: Option<String>;
        /// Traffic class. Source: IEEE 802.1Q, eight priority code points.
        pub class: u8 = 0, in 0..=MAX_CLASS;
        /// Start of the entry.
        pub start: Time = Time::ZERO, in Time::ZERO..=LATEST;
        /// Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
        /// its flows are.
        pub after: Vec<String> = Vec::new();
        /// Delay from the last of these completions to the start of the entry.
        pub delay: Span = Span::ZERO, in Span::ZERO..=LONGEST;
    }
}

choice! {
    /// Kind of traffic.
    pub enum TrafficKind {
        /// Flows listed one by one.
        "flows" => Flows(FlowList),
        /// Incast: many senders answer one receiver, simultaneously or within `jitter`, once or repeatedly. Each round
        /// counts as a query.
        "incast" => Incast(Incast),
        /// Queries and responses (partition–aggregate): clients ask at random instants, responders answer at once.
        "query" => Query(QueryTraffic),
        /// Poisson background traffic: each source starts flows at random instants, to destinations drawn uniformly.
        "poisson" => Poisson(PoissonTraffic),
        /// Permutation: each host sends one flow and receives one, never its own; drawn uniformly among all such
        /// permutations.
        "permutation" => Permutation(Permutation),
        /// All-to-all: each host sends a flow to each other host. In round r (from 1) host i sends to host i + r, modulo the
        /// number of hosts: each round is a permutation.
        "all_to_all" => AllToAll(AllToAll),
        /// Hot spot: Poisson traffic of which a fraction goes to a few hot hosts.
        "hot_spot" => HotSpot(HotSpot),
        /// Collective operations of a training job: all-reduce, all-gather, reduce-scatter, all-to-all.
        "collective" => Collective(Collective),
        /// Datagrams at a constant rate, without any congestion control.
        "cbr" => Cbr(Cbr),
        /// Datagrams at a constant rate during on periods, none during off periods; the first period is on.
        "on_off" => OnOff(OnOff),
        /// Flows from a file.
        "file" => File(ImportedFlows),
    }
}

impl TrafficKind {
    /// Key and length of the interval over which the entry's starts are spread, for kinds in which many short times can sum
    /// up to a long one.
    pub(crate) fn spread(&self, hosts: u64) -> Option<(&'static str, Span)> {
        match self {
            TrafficKind::Incast(incast) => {
                let rounds = u64::from(incast.repetitions) - 1;
                let gap = incast.gap.map(|gap| ("gap", gap.saturating_mul(rounds)));
                incast.interval.map(|interval| ("interval", interval.saturating_mul(rounds))).or(gap)
            }
            TrafficKind::AllToAll(pattern) => Some(("stagger", pattern.stagger.saturating_mul(hosts.saturating_sub(2)))),
            TrafficKind::Collective(job) => Some(("operations", job.computes())),
            TrafficKind::Flows(list) => {
                let sum = list.flows.iter().fold(0u64, |sum, flow| sum.saturating_add(flow.delay.ps()));
                Some(("flows", Span::from_ps(sum)))
            }
            _ => None,
        }
    }
}

/// An entry that has been checked and can generate its flows.
pub(crate) struct Built {
    pub generate: Box<dyn Generate>,
    pub waits: Vec<Wait>,
    /// Flow ids that others may wait for, with the flow's index in the entry.
    pub ids: Vec<(Box<str>, u32)>,
    /// Path of the file that the entry reads, if any.
    pub file: Option<String>,
}

impl Built {
    fn simple(generate: impl Generate + 'static) -> Built {
        Built { generate: Box::new(generate), waits: Vec::new(), ids: Vec::new(), file: None }
    }

    fn list(mut list: List, global_ids: bool) -> Built {
        let waits = std::mem::take(&mut list.waits);
        let named = (0u32..).zip(&list.flows).filter_map(|(i, flow)| Some((flow.id.clone()?, i)));
        let ids = if global_ids { named.collect() } else { Vec::new() };
        Built { generate: Box::new(list), waits, ids, file: None }
    }
}

/// Builds the generator of an entry of `kind`; problems are reported to `build`.
pub(crate) fn build(build: &mut Build, kind: &TrafficKind) -> Option<Built> {
    Some(match kind {
        TrafficKind::Flows(params) => Built::list(List::build(build, params)?, true),
        TrafficKind::Incast(params) => Built::simple(Rounds::build(build, params)?),
        TrafficKind::Query(params) => Built::simple(Queries::build(build, params)?),
        TrafficKind::Poisson(params) => Built::simple(Poisson::background(build, params)?),
        TrafficKind::Permutation(params) => Built::simple(Pattern::permutation(build, params)?),
        TrafficKind::AllToAll(params) => Built::simple(Pattern::all_to_all(build, params)?),
        TrafficKind::HotSpot(params) => Built::simple(Poisson::hot_spot(build, params)?),
        TrafficKind::Collective(params) => Built::simple(Job::build(build, params)?),
        TrafficKind::Cbr(params) => Built::simple(OneFlow::cbr(build, params)?),
        TrafficKind::OnOff(params) => Built::simple(OneFlow::on_off(build, params)?),
        TrafficKind::File(params) => match Import::build(build, params)? {
            // htsim numbers flows within its file; only the ids of our own format are names for others.
            Import::List(list) => {
                let csv = matches!(params.format, FlowFile::Csv(_));
                Built { file: Some(params.format.path().to_string()), ..Built::list(list, csv) }
            }
            Import::Stream(stream) => Built::simple(stream),
        },
    })
}
