//! Fixed patterns: permutation and all-to-all.

use crate::context::{Build, LONGEST};
use crate::generate::{Draft, Generate, Pending};
use fanin_params::params;
use fanin_units::{Bytes, HostId, Purpose, Span, Stream, Time};

params! {
    /// Permutation: each host sends one flow and receives one, never its own; drawn uniformly among all such permutations.
    pub struct Permutation {
        /// Participating hosts: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.
        pub hosts: Vec<String> = vec!["all".to_string()];
        /// Size of each flow.
        pub size: Bytes, in Bytes(1)..;
        /// Size of the request that the destination sends first.
        pub request: Bytes = Bytes(0);
        /// Upper bound of each flow's random start delay (uniform).
        pub jitter: Span = Span::ZERO, in Span::ZERO..=LONGEST;
    }
}

params! {
    /// All-to-all: each host sends a flow to each other host. In round r (from 1) host i sends to host i + r, modulo the
    /// number of hosts: each round is a permutation.
    pub struct AllToAll {
        /// Participating hosts: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.
        pub hosts: Vec<String> = vec!["all".to_string()];
        /// Size of each flow.
        pub size: Bytes, in Bytes(1)..;
        /// Size of the request that the destination sends first.
        pub request: Bytes = Bytes(0);
        /// Time from the start of a round to that of the next; zero: all flows start together.
        pub stagger: Span = Span::ZERO, in Span::ZERO..=LONGEST;
        /// Upper bound of each flow's random delay after the start of its round (uniform).
        pub jitter: Span = Span::ZERO, in Span::ZERO..=LONGEST;
    }
}

/// Draws a permutation of `0..n` without fixed points, uniform among them (by rejection, e attempts on average).
pub(crate) fn derangement(stream: &mut Stream, n: usize) -> Vec<u32> {
    let mut images: Vec<u32> = (0..n as u32).collect();
    loop {
        stream.shuffle(&mut images);
        if images.iter().zip(0u32..).all(|(image, i)| *image != i) {
            return images;
        }
    }
}

/// Generator of rounds with one flow per host, each generated when the previous one has started.
pub(crate) struct Pattern {
    hosts: Vec<(HostId, Stream)>,
    /// Destination index of each host in a permutation; `None`: hosts send to the index rotated by the number of the round.
    images: Option<Vec<u32>>,
    rounds: u64,
    round: u64,
    size: u64,
    request: u64,
    stagger: Span,
    jitter: Span,
    begin: Time,
    pending: Pending,
}

impl Pattern {
    pub fn permutation(build: &mut Build, params: &Permutation) -> Option<Pattern> {
        let hosts = Self::hosts(build, &params.hosts)?;
        let mut stream = Stream::new(build.ctx.seed, Purpose::Endpoints, build.entity(""));
        let images = derangement(&mut stream, hosts.len());
        Some(Pattern {
            hosts,
            images: Some(images),
            rounds: 1,
            round: 0,
            size: params.size.get(),
            request: params.request.get(),
            stagger: Span::ZERO,
            jitter: params.jitter,
            begin: Time::ZERO,
            pending: Pending::default(),
        })
    }

    pub fn all_to_all(build: &mut Build, params: &AllToAll) -> Option<Pattern> {
        let hosts = Self::hosts(build, &params.hosts)?;
        let rounds = hosts.len() as u64 - 1;
        if build.too_many("hosts", hosts.len() as f64 * rounds as f64) {
            return None;
        }
        Some(Pattern {
            hosts,
            images: None,
            rounds,
            round: 0,
            size: params.size.get(),
            request: params.request.get(),
            stagger: params.stagger,
            jitter: params.jitter,
            begin: Time::ZERO,
            pending: Pending::default(),
        })
    }

    fn hosts(build: &mut Build, patterns: &[String]) -> Option<Vec<(HostId, Stream)>> {
        let hosts = build.host_set("hosts", patterns)?;
        if hosts.len() < 2 {
            build.error("hosts", Some(format!("{patterns:?}")), "is only one host", Some("at least 2 hosts"));
            return None;
        }
        Some(
            hosts.into_iter().map(|host| (host, Stream::new(build.ctx.seed, Purpose::Jitter, build.host_entity(host)))).collect(),
        )
    }

    fn round_start(&self) -> Time {
        self.begin.saturating_add(self.stagger.saturating_mul(self.round))
    }

    fn fill(&mut self) {
        while self.round < self.rounds {
            let at = self.round_start();
            // Within one instant the order is that of the index, which rises with the round: one round ahead is enough.
            if self.pending.next_start().is_some_and(|next| next < at || (next == at && self.jitter == Span::ZERO)) {
                break;
            }
            let n = self.hosts.len();
            for i in 0..n {
                let to = match &self.images {
                    Some(images) => images[i] as usize,
                    None => (i + self.round as usize + 1) % n,
                };
                let dst = self.hosts[to].0;
                let (src, stream) = &mut self.hosts[i];
                let start = at.saturating_add(Build::jitter(stream, self.jitter));
                let draft = Draft::transfer(*src, dst, self.size, start, self.round * n as u64 + i as u64);
                self.pending.push(draft.request(self.request));
            }
            self.round += 1;
        }
    }
}

impl Generate for Pattern {
    fn begin(&mut self, at: Time) {
        self.begin = at;
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

    fn exhausted(&self) -> bool {
        self.round == self.rounds && self.pending.is_empty()
    }

    fn total(&self) -> Option<u64> {
        Some(self.rounds * self.hosts.len() as u64)
    }
}
