//! Generators: every kind of traffic yields its flows one by one, in order of start.

use crate::collective::Job;
use crate::spec::FlowKind;
use fanin_units::{HostId, Time};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A flow as its entry generates it; [`crate::Traffic`] adds the settings common to the entry.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub src: HostId,
    pub dst: HostId,
    pub size: u64,
    pub request: u64,
    pub start: Time,
    pub index: u64,
    pub class: Option<u8>,
    pub query: Option<QueryDraft>,
    pub id: Option<Box<str>>,
    pub kind: FlowKind,
    /// Completion that the flow follows: the host that knows of it, and since when.
    pub known: Option<(Time, HostId)>,
    /// Bytes of the first message, for an application that writes message by message.
    pub first: Option<u64>,
}

impl Draft {
    /// Makes a plain transfer.
    pub fn transfer(src: HostId, dst: HostId, size: u64, start: Time, index: u64) -> Self {
        Draft {
            src,
            dst,
            size,
            request: 0,
            start,
            index,
            class: None,
            query: None,
            id: None,
            kind: FlowKind::Transfer,
            known: None,
            first: None,
        }
    }

    pub fn request(mut self, bytes: u64) -> Self {
        self.request = bytes;
        self
    }
}

/// The query that a flow belongs to, equal in each of the query's flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryDraft {
    /// Number of the query within its entry.
    pub number: u64,
    pub client: HostId,
    pub start: Time,
    pub responses: u32,
    pub size: u64,
}

/// Lazy generator of one entry's flows.
pub(crate) trait Generate: Send {
    /// Begins the entry: no flow starts before `at`.
    fn begin(&mut self, at: Time);

    /// Start time of the next flow that is ready.
    fn next_start(&self) -> Option<Time>;

    /// Takes the next flow; start times never decrease.
    fn pop(&mut self) -> Option<Draft>;

    /// Handles the completion of a flow that was taken.
    fn on_complete(&mut self, _index: u64, _now: Time) {}

    /// Releases flow `index`, whose dependencies are complete.
    fn release(&mut self, _index: u64, _now: Time) {}

    /// True if flows come after completions of others of the entry.
    fn follows_completions(&self) -> bool {
        false
    }

    /// True if no further flow will come, whatever completes.
    fn exhausted(&self) -> bool {
        self.next_start().is_none()
    }

    /// Number of flows, if known in advance.
    fn total(&self) -> Option<u64>;

    /// Expected number of flows before the first one is taken: exact if known, a mean if random.
    fn expected(&self) -> Option<f64> {
        self.total().map(|total| total as f64)
    }

    /// Expected number of random arrivals, each at a time of its own.
    fn arrivals(&self) -> f64 {
        0.0
    }

    /// The collective job behind the entry, whose connections are written to message by message.
    fn job(&self) -> Option<&Job> {
        None
    }

    /// Mutable access to the collective job behind the entry.
    fn job_mut(&mut self) -> Option<&mut Job> {
        None
    }

    /// Error that occurred while a file was read during the run.
    fn failure(&self) -> Option<String> {
        None
    }
}

struct Waiting(Draft);

impl Waiting {
    fn key(&self) -> (Time, u64) {
        (self.0.start, self.0.index)
    }
}
impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    /// Orders flows in reverse, so that the heap's greatest is the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Flows generated ahead of time, by start and then index.
#[derive(Default)]
pub(crate) struct Pending {
    heap: BinaryHeap<Waiting>,
}

impl Pending {
    pub fn push(&mut self, draft: Draft) {
        self.heap.push(Waiting(draft));
    }

    pub fn pop(&mut self) -> Option<Draft> {
        self.heap.pop().map(|waiting| waiting.0)
    }

    pub fn next_start(&self) -> Option<Time> {
        self.heap.peek().map(|waiting| waiting.0.start)
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

/// Size of the `part`-th of `parts` equal shares of `total`; the first ones are a byte larger if it does not divide evenly.
pub(crate) fn share(total: u64, parts: u64, part: u64) -> u64 {
    total / parts + u64::from(part < total % parts)
}
