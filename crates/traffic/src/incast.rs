//! Incast: many senders answer one receiver at once.

use crate::context::{Build, LONGEST};
use crate::generate::{share, Draft, Generate, Pending, QueryDraft};
use fanin_params::params;
use fanin_units::{Bytes, HostId, Purpose, Span, Stream, Time};

params! {
    /// Incast: many senders answer one receiver, simultaneously or within `jitter`, once or repeatedly. Each round counts as
    /// a query.
    pub struct Incast {
        /// Receiving host.
        pub receiver: String;
        /// Sending hosts, without the receiver: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.
        pub senders: Vec<String> = vec!["all".to_string()];
        /// Number of senders, drawn from these once; if absent, all of them.
        pub count: Option<u32>, in 1u32..;
        /// Number of flows of each sender in a round.
        pub flows_per_sender: u32 = 1, in 1u32..;
        /// Bytes of each flow; give this or `total`.
        pub size: Option<Bytes>, in Bytes(1)..;
        /// Total bytes of a round, divided among its flows; of a remainder the first flows get a byte each.
        pub total: Option<Bytes>, in Bytes(1)..;
        /// Size of the request that the receiver sends first for each flow.
        pub request: Bytes = Bytes(0);
        /// Upper bound of each flow's random delay after the start of its round (uniform).
        pub jitter: Span = Span::ZERO, in Span::ZERO..=LONGEST;
        /// Number of rounds.
        pub repetitions: u32 = 1, in 1u32..;
        /// Time from the start of a round to that of the next, complete or not; several rounds need this or `gap`.
        pub interval: Option<Span>, in Span::from_ps(1)..=LONGEST;
        /// Time from the completion of a round's last flow to the start of the next round.
        pub gap: Option<Span>, in Span::ZERO..=LONGEST;
    }
}

/// Size of each flow, or a total to divide.
#[derive(Clone, Copy)]
pub(crate) enum Portion {
    Each(u64),
    Divided(u64),
}

impl Portion {
    /// Reads the sizes: exactly one of `size` and `total` must be given, and suffice for `flows`.
    pub fn build(build: &mut Build, size: Option<Bytes>, total: Option<Bytes>, flows: u64) -> Option<Portion> {
        match (size, total) {
            (Some(size), None) => Some(Portion::Each(size.get())),
            (None, Some(total)) if total.get() < flows => {
                build.error(
                    "total",
                    Some(total.to_string()),
                    format!("is less than a byte for each of {flows} flows"),
                    Some(&format!("at least {flows}B")),
                );
                None
            }
            (None, Some(total)) => Some(Portion::Divided(total.get())),
            (Some(_), Some(total)) => {
                build.error(
                    "total",
                    Some(total.to_string()),
                    "cannot be given together with `size`",
                    Some("either `size` or `total`"),
                );
                None
            }
            (None, None) => {
                build.error(
                    "size",
                    None,
                    "is missing",
                    Some("either `size` (of each flow) or `total` (divided among the flows)"),
                );
                None
            }
        }
    }

    pub fn of(self, flows: u64, flow: u64) -> u64 {
        match self {
            Portion::Each(size) => size,
            Portion::Divided(total) => share(total, flows, flow),
        }
    }

    pub fn sum(self, flows: u64) -> u64 {
        match self {
            Portion::Each(size) => size.saturating_mul(flows),
            Portion::Divided(total) => total,
        }
    }
}

enum Pace {
    Once,
    Every(Span),
    After(Span),
}

/// Generator of the rounds of an incast.
pub(crate) struct Rounds {
    receiver: HostId,
    senders: Vec<(HostId, Stream)>,
    flows_per_sender: u64,
    portion: Portion,
    request: u64,
    jitter: Span,
    pace: Pace,
    left: u64,
    round: u64,
    next_round: Option<Time>,
    open: u64,
    pending: Pending,
    /// Completion of the last round at the receiver, if the next round follows it.
    known: Option<(Time, HostId)>,
}

impl Rounds {
    pub fn build(build: &mut Build, params: &Incast) -> Option<Rounds> {
        let receiver = build.host("receiver", &params.receiver);
        let senders = build.host_set("senders", &params.senders);
        let pace = match (params.repetitions, params.interval, params.gap) {
            (_, Some(_), Some(gap)) => {
                build.error(
                    "gap",
                    Some(gap.to_string()),
                    "cannot be given together with `interval`",
                    Some("either `interval` or `gap`"),
                );
                None
            }
            (1, None, None) => Some(Pace::Once),
            (1, interval, _) => {
                let key = if interval.is_some() { "interval" } else { "gap" };
                build.error(key, None, "has no effect with one round", Some("`repetitions` of at least 2"));
                None
            }
            (_, Some(interval), None) => Some(Pace::Every(interval)),
            (_, None, Some(gap)) => Some(Pace::After(gap)),
            (repetitions, None, None) => {
                build.error("interval", None, format!("is missing for {repetitions} rounds"), Some("either `interval` or `gap`"));
                None
            }
        };
        let (receiver, mut senders, pace) = (receiver?, senders?, pace?);
        senders.retain(|sender| *sender != receiver);
        if senders.is_empty() {
            build.error(
                "senders",
                Some(format!("{:?}", params.senders)),
                "has no host but the receiver",
                Some("at least one other host"),
            );
            return None;
        }
        if let Some(count) = params.count {
            if count as usize > senders.len() {
                let accepted = format!("at most {}, the number of senders; `flows_per_sender` gives each several", senders.len());
                build.error("count", Some(count.to_string()), "is more than there are senders", Some(&accepted));
                return None;
            }
            Stream::new(build.ctx.seed, Purpose::Endpoints, build.entity("")).shuffle(&mut senders);
            senders.truncate(count as usize);
            senders.sort();
        }
        let flows = senders.len() as u64 * u64::from(params.flows_per_sender);
        let portion = Portion::build(build, params.size, params.total, flows)?;
        if build.too_many("repetitions", flows as f64 * f64::from(params.repetitions)) {
            return None;
        }
        let stream = |host: HostId| (host, Stream::new(build.ctx.seed, Purpose::Jitter, build.host_entity(host)));
        Some(Rounds {
            receiver,
            senders: senders.into_iter().map(stream).collect(),
            flows_per_sender: u64::from(params.flows_per_sender),
            portion,
            request: params.request.get(),
            jitter: params.jitter,
            pace,
            left: u64::from(params.repetitions),
            round: 0,
            next_round: None,
            open: 0,
            pending: Pending::default(),
            known: None,
        })
    }

    /// Generates every round that starts before the next flow.
    fn fill(&mut self) {
        while let Some(at) = self.next_round {
            if self.pending.next_start().is_some_and(|next| next < at) {
                break;
            }
            self.next_round = None;
            self.make_round(at);
            if let (Pace::Every(interval), true) = (&self.pace, self.left > 0) {
                self.next_round = Some(at.saturating_add(*interval));
            }
        }
    }

    fn make_round(&mut self, at: Time) {
        let flows = self.senders.len() as u64 * self.flows_per_sender;
        let query = QueryDraft {
            number: self.round,
            client: self.receiver,
            start: at,
            responses: u32::try_from(flows).unwrap_or(u32::MAX),
            size: self.portion.sum(flows),
        };
        // Dealt round-robin, so that the flows of one sender do not all come first in a tie.
        for repeat in 0..self.flows_per_sender {
            for slot in 0..self.senders.len() {
                let flow = repeat * self.senders.len() as u64 + slot as u64;
                let (sender, stream) = &mut self.senders[slot];
                let start = at.saturating_add(Build::jitter(stream, self.jitter));
                let draft =
                    Draft::transfer(*sender, self.receiver, self.portion.of(flows, flow), start, self.round * flows + flow);
                self.pending.push(Draft { query: Some(query), known: self.known, ..draft.request(self.request) });
            }
        }
        self.open += flows;
        self.left -= 1;
        self.round += 1;
    }
}

impl Generate for Rounds {
    fn begin(&mut self, at: Time) {
        self.next_round = (self.left > 0).then_some(at);
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

    fn on_complete(&mut self, _index: u64, now: Time) {
        self.open = self.open.saturating_sub(1);
        if let Pace::After(gap) = self.pace {
            if self.open == 0 && self.left > 0 {
                self.next_round = Some(now.saturating_add(gap));
                self.known = Some((now, self.receiver));
                self.fill();
            }
        }
    }

    fn follows_completions(&self) -> bool {
        matches!(self.pace, Pace::After(_))
    }

    fn exhausted(&self) -> bool {
        self.left == 0 && self.pending.is_empty()
    }

    fn total(&self) -> Option<u64> {
        Some((self.left + self.round).saturating_mul(self.senders.len() as u64 * self.flows_per_sender))
    }
}
