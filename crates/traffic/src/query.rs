//! Query and response: partition–aggregate.

use crate::arrivals::{other, poisson_params, Arrivals, Origin};
use crate::context::{Build, LONGEST};
use crate::generate::{Draft, Generate, Pending, QueryDraft};
use crate::incast::Portion;
use fanin_params::params;
use fanin_units::{Bytes, HostId, Purpose, Span, Stream, Time};
use std::collections::{BTreeMap, BTreeSet};

params! {
    /// Result that an aggregator sends on after the last response.
    pub struct Aggregate {
        /// Size of the result.
        pub size: Bytes, in Bytes(1)..;
        /// Possible receivers of the result, one drawn at random, never the aggregator itself.
        pub to: Vec<String> = vec!["all".to_string()];
        /// Delay from the last response to the result.
        pub delay: Span = Span::ZERO, in Span::ZERO..=LONGEST;
    }
}

poisson_params! {
    /// Queries and responses (partition–aggregate): clients ask at random instants, responders answer at once.
    pub struct QueryTraffic {
        /// Hosts that send queries: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.
        pub clients: Vec<String> = vec!["all".to_string()];
        /// Hosts that answer, never the client itself: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these
        /// excludes.
        pub responders: Vec<String> = vec!["all".to_string()];
        /// Number of responders to a query, drawn anew for each; if absent, all of them.
        pub fanout: Option<u32>, in 1u32..;
        /// Size of each response; give this or `total`.
        pub size: Option<Bytes>, in Bytes(1)..;
        /// Total bytes of all responses to a query, divided among the responders.
        pub total: Option<Bytes>, in Bytes(1)..;
        /// Size of the request that the client sends first to each responder.
        pub request: Bytes = Bytes(0);
        /// Upper bound of each response's random delay after the query (uniform).
        pub jitter: Span = Span::ZERO, in Span::ZERO..=LONGEST;
        /// Result that the client sends on after the last response; the query is complete when the result is.
        pub aggregate: Option<Aggregate>;
    }
}

struct Client {
    host: HostId,
    endpoints: Stream,
    jitter: Stream,
    /// Index of the client among the responders, if it is one.
    skip: Option<usize>,
    responses: u64,
    /// Root of the random streams that choose receivers of results: one per query, so that the order of completions affects
    /// no draw.
    onward: u64,
}

struct Onward {
    size: u64,
    to: Vec<HostId>,
    delay: Span,
}

/// Generator of queries at random instants.
pub(crate) struct Queries {
    arrivals: Arrivals,
    clients: Vec<Client>,
    responders: Vec<HostId>,
    portion: Portion,
    request: u64,
    jitter: Span,
    aggregate: Option<Onward>,
    /// Largest number of flows per query: query q has the indices from q · stride on.
    stride: u64,
    made: u64,
    seed: u64,
    /// Queries that await responses before a result must follow: number of missing responses, client, and query.
    open: BTreeMap<u64, (u64, usize, QueryDraft)>,
    pending: Pending,
}

impl Queries {
    pub fn build(build: &mut Build, params: &QueryTraffic) -> Option<Queries> {
        let clients = build.host_set("clients", &params.clients);
        let responders = build.host_set("responders", &params.responders);
        let to = params.aggregate.as_ref().map(|aggregate| build.host_set("aggregate.to", &aggregate.to));
        let (clients, responders) = (clients?, responders?);
        let aggregate = match (&params.aggregate, to) {
            (Some(aggregate), Some(to)) => Some(Onward { size: aggregate.size.get(), to: to?, delay: aggregate.delay }),
            _ => None,
        };
        let mut made = Vec::with_capacity(clients.len());
        let mut most = 0u64;
        for host in &clients {
            let skip = responders.binary_search(host).ok();
            let others = responders.len() - usize::from(skip.is_some());
            let name = build.hosts.info(*host).name;
            if others < params.fanout.map_or(1, |fanout| fanout as usize) {
                let (key, value) =
                    params.fanout.map_or(("responders", format!("{:?}", params.responders)), |f| ("fanout", f.to_string()));
                build.error(
                    key,
                    Some(value),
                    format!("is too much for the client \"{name}\", which has {others} responders"),
                    Some("at least one responder other than each client"),
                );
                return None;
            }
            if aggregate.as_ref().is_some_and(|result| result.to[..] == [*host]) {
                build.error(
                    "aggregate.to",
                    Some(format!("\"{name}\"")),
                    "is the aggregator itself",
                    Some("at least one other host"),
                );
                return None;
            }
            let responses = params.fanout.map_or(others as u64, u64::from);
            most = most.max(responses);
            made.push(Client {
                host: *host,
                endpoints: Stream::new(build.ctx.seed, Purpose::Endpoints, build.host_entity(*host)),
                jitter: Stream::new(build.ctx.seed, Purpose::Jitter, build.host_entity(*host)),
                skip,
                responses,
                onward: build.entity(&format!("\u{0}onward {name}")),
            });
        }
        let portion = Portion::build(build, params.size, params.total, most)?;
        let origins: Vec<Origin> = made.iter().map(|client| Self::origin(build, client, &responders, portion)).collect();
        let stride = most + u64::from(aggregate.is_some());
        let arrivals = Arrivals::build(build, &params.rate(), &origins, stride as f64)?;
        Some(Queries {
            arrivals,
            clients: made,
            responders,
            portion,
            request: params.request.get(),
            jitter: params.jitter,
            aggregate,
            stride,
            made: 0,
            seed: build.ctx.seed,
            open: BTreeMap::new(),
            pending: Pending::default(),
        })
    }

    fn origin(build: &Build, client: &Client, responders: &[HostId], portion: Portion) -> Origin {
        let rack = build.hosts.info(client.host).rack;
        let remote = responders.iter().filter(|host| build.hosts.info(**host).rack != rack).count();
        let others = responders.len() - usize::from(client.skip.is_some());
        let mean_bytes = portion.sum(client.responses) as f64;
        Origin { host: client.host, mean_bytes, inter_rack: mean_bytes * remote as f64 / others as f64 }
    }

    fn fill(&mut self) {
        while let Some((at, _)) = self.arrivals.peek() {
            if self.pending.next_start().is_some_and(|next| next < at) {
                break;
            }
            let Some((at, slot)) = self.arrivals.pop() else { break };
            self.ask(at, slot as usize);
        }
    }

    fn ask(&mut self, at: Time, slot: usize) {
        let number = self.made;
        self.made += 1;
        let client = &mut self.clients[slot];
        let flows = client.responses;
        let others = self.responders.len() - usize::from(client.skip.is_some());
        let chosen = sample(&mut client.endpoints, others, flows as usize);
        let result = self.aggregate.as_ref();
        let query = QueryDraft {
            number,
            client: client.host,
            start: at,
            responses: u32::try_from(flows + u64::from(result.is_some())).unwrap_or(u32::MAX),
            size: self.portion.sum(flows).saturating_add(result.map_or(0, |r| r.size)),
        };
        for (i, position) in (0u64..).zip(chosen) {
            let src = self.responders[position + usize::from(client.skip.is_some_and(|skip| position >= skip))];
            let start = at.saturating_add(Build::jitter(&mut client.jitter, self.jitter));
            let draft = Draft::transfer(src, client.host, self.portion.of(flows, i), start, number * self.stride + i);
            self.pending.push(Draft { query: Some(query), ..draft.request(self.request) });
        }
        if result.is_some() {
            self.open.insert(number, (flows, slot, query));
        }
    }
}

/// Draws `count` of the numbers below `of`, ascending, each set equally likely (Floyd's algorithm).
fn sample(stream: &mut Stream, of: usize, count: usize) -> Vec<usize> {
    if count >= of {
        return (0..of).collect();
    }
    let mut chosen = BTreeSet::new();
    for i in of - count..of {
        let drawn = stream.below(i as u64 + 1) as usize;
        if !chosen.insert(drawn) {
            chosen.insert(i);
        }
    }
    chosen.into_iter().collect()
}

impl Generate for Queries {
    fn begin(&mut self, at: Time) {
        self.arrivals.begin(at);
        self.fill();
    }

    fn next_start(&self) -> Option<Time> {
        self.pending.next_start()
    }

    fn pop(&mut self) -> Option<Draft> {
        let draft = self.pending.pop();
        self.fill();
        draft
    }

    fn follows_completions(&self) -> bool {
        self.aggregate.is_some()
    }

    fn on_complete(&mut self, index: u64, now: Time) {
        let Some(result) = &self.aggregate else { return };
        let number = index / self.stride;
        let Some((missing, slot, query)) = self.open.get_mut(&number) else { return };
        *missing -= 1;
        if *missing > 0 {
            return;
        }
        let (slot, query) = (*slot, *query);
        self.open.remove(&number);
        let client = &self.clients[slot];
        let mut stream = Stream::new(self.seed, Purpose::Endpoints, client.onward.wrapping_add(number));
        let skip = result.to.binary_search(&client.host).ok();
        if let Some(dst) = other(&mut stream, &result.to, skip) {
            let draft =
                Draft::transfer(client.host, dst, result.size, now.saturating_add(result.delay), (number + 1) * self.stride - 1);
            self.pending.push(Draft { query: Some(query), ..draft });
        }
    }

    fn exhausted(&self) -> bool {
        self.open.is_empty() && self.pending.is_empty() && self.arrivals.peek().is_none()
    }

    fn total(&self) -> Option<u64> {
        let mut per_query = self.clients.iter().map(|client| client.responses);
        let first = per_query.next()?;
        per_query.all(|n| n == first).then(|| self.arrivals.total())?.map(|queries| queries * self.stride)
    }

    fn arrivals(&self) -> f64 {
        self.arrivals.expected()
    }

    fn expected(&self) -> Option<f64> {
        // The clients differ by what they ask of, not by how often they do, or hardly.
        let results = u64::from(self.aggregate.is_some());
        let flows: u64 = self.clients.iter().map(|client| client.responses + results).sum();
        Some(self.arrivals.expected() * flows as f64 / self.clients.len() as f64)
    }
}
