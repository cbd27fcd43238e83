//! Flows listed one by one: in the scenario, or in a file that fits memory.

use crate::context::{Build, LONGEST};
use crate::generate::{Draft, Generate};
use fanin_params::params;
use fanin_units::{Bytes, HostId, Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

params! {
    /// A flow of the list.
    pub struct ListedFlow {
        /// Name of the flow in `after` and in the results.
        pub id: Option<String>;
        /// Sending host.
        pub src: String;
        /// Receiving host.
        pub dst: String;
        /// Size of the flow.
        pub size: Bytes, in Bytes(1)..;
        /// Size of the request that the destination sends first.
        pub request: Bytes = Bytes(0);
        /// Start, from the start of the entry.
        pub start: Span = Span::ZERO, in Span::ZERO..=LONGEST;
        /// Ids of flows, and names of entries, that must be complete before the flow starts.
        pub after: Vec<String> = Vec::new();
        /// Delay from the last of these completions to the start of the flow.
        pub delay: Span = Span::ZERO, in Span::ZERO..=LONGEST;
    }
}

params! {
    /// Flows listed one by one.
    pub struct FlowList {
        /// Flows of the list.
        pub flows: Vec<ListedFlow>;
    }
}

/// Dependency of flows of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wait {
    pub on: On,
    /// Indices of the flows that wait.
    pub targets: Vec<u32>,
    /// True if each completion releases one more target; false if the last one releases all.
    pub one_by_one: bool,
    /// Place at which the dependency is written, for messages.
    pub place: Place,
}

/// Place at which a dependency is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// A key of the entry.
    Key(String),
    /// A line of the entry's file.
    Line(String, u32),
}

/// Completions that a dependency waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum On {
    /// Flow ids or entry names.
    Names(Vec<String>),
    /// Indices of flows in the same list.
    Flows(Vec<u32>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Gate {
    Open,
    Waiting,
    /// The flow was released at this time.
    Released(Time),
}

/// A flow of a list, as generated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    pub src: HostId,
    pub dst: HostId,
    pub size: u64,
    pub request: u64,
    /// Offset from the beginning of the entry.
    pub start: Span,
    /// Delay from the release.
    pub delay: Span,
    pub class: Option<u8>,
    pub id: Option<Box<str>>,
    pub gate: Gate,
}

/// Generator of a list of flows.
pub(crate) struct List {
    pub flows: Vec<Listed>,
    pub waits: Vec<Wait>,
    begun: Option<Time>,
    ready: BinaryHeap<Reverse<(Time, u32)>>,
    waiting: usize,
}

impl List {
    pub fn new(mut flows: Vec<Listed>, waits: Vec<Wait>) -> Self {
        for target in waits.iter().flat_map(|wait| &wait.targets) {
            flows[*target as usize].gate = Gate::Waiting;
        }
        let waiting = flows.iter().filter(|flow| flow.gate == Gate::Waiting).count();
        List { flows, waits, begun: None, ready: BinaryHeap::new(), waiting }
    }

    pub fn build(build: &mut Build, params: &FlowList) -> Option<List> {
        if params.flows.is_empty() {
            build.error("flows", None, "is empty", Some("at least one flow"));
            return None;
        }
        if build.too_many("flows", params.flows.len() as f64) {
            return None;
        }
        let mut waits = Vec::new();
        let mut flows = Vec::with_capacity(params.flows.len());
        for (i, flow) in (0u32..).zip(&params.flows) {
            let place = format!("flows[{i}].");
            if let Some((src, dst)) = build.ends(&place, &flow.src, &flow.dst) {
                flows.push(Listed {
                    src,
                    dst,
                    size: flow.size.get(),
                    request: flow.request.get(),
                    start: flow.start,
                    delay: flow.delay,
                    class: None,
                    id: flow.id.as_deref().map(Box::from),
                    gate: Gate::Open,
                });
            }
            if flow.start >= build.too_late() {
                build.warn(
                    &format!("{place}start"),
                    Some(flow.start.to_string()),
                    "is not before the end of the run: the flow never starts",
                );
            }
            if flow.after.is_empty() && flow.delay != Span::ZERO {
                build.error(
                    &format!("{place}delay"),
                    Some(flow.delay.to_string()),
                    "has no effect without `after`",
                    Some("`start`, or `after` and `delay`"),
                );
            }
            if !flow.after.is_empty() {
                waits.push(Wait {
                    on: On::Names(flow.after.clone()),
                    targets: vec![i],
                    one_by_one: false,
                    place: Place::Key(format!("{place}after")),
                });
            }
        }
        if flows.len() == params.flows.len() {
            return Some(List::new(flows, waits));
        }
        // Sound lists are compared with all other names later on; this one will not get there.
        let mut seen = BTreeSet::new();
        for (i, id) in params.flows.iter().enumerate().filter_map(|(i, flow)| Some((i, flow.id.as_deref()?))) {
            if !seen.insert(id) {
                let message = "is also the name of another entry or flow";
                build.error(&format!("flows[{i}].id"), Some(format!("\"{id}\"")), message, Some("ids that differ"));
            }
        }
        None
    }

    fn schedule(&mut self, index: u32) {
        let (Some(begin), flow) = (self.begun, &self.flows[index as usize]) else { return };
        let own = begin.saturating_add(flow.start);
        let start = match flow.gate {
            Gate::Open => own,
            Gate::Released(at) => own.max(at.saturating_add(flow.delay)),
            Gate::Waiting => return,
        };
        self.ready.push(Reverse((start, index)));
    }
}

impl Generate for List {
    fn begin(&mut self, at: Time) {
        self.begun = Some(at);
        for index in 0..self.flows.len() as u32 {
            self.schedule(index);
        }
    }

    fn next_start(&self) -> Option<Time> {
        self.ready.peek().map(|next| next.0 .0)
    }

    fn pop(&mut self) -> Option<Draft> {
        let Reverse((start, index)) = self.ready.pop()?;
        let flow = &mut self.flows[index as usize];
        let draft = Draft::transfer(flow.src, flow.dst, flow.size, start, u64::from(index)).request(flow.request);
        Some(Draft { class: flow.class, id: flow.id.clone(), ..draft })
    }

    fn release(&mut self, index: u64, now: Time) {
        let Ok(index) = u32::try_from(index) else { return };
        let flow = &mut self.flows[index as usize];
        if flow.gate == Gate::Waiting {
            flow.gate = Gate::Released(now);
            self.waiting -= 1;
            self.schedule(index);
        }
    }

    fn exhausted(&self) -> bool {
        self.begun.is_some() && self.waiting == 0 && self.ready.is_empty()
    }

    fn total(&self) -> Option<u64> {
        Some(self.flows.len() as u64)
    }
}
