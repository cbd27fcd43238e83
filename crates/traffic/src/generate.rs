//! What every kind of traffic does: give its flows one by one, in order of start.

use crate::collective::Job;
use crate::spec::FlowKind;
use fanin_units::{HostId, Time};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A flow as its entry sees it; [`crate::Traffic`] adds what is common.
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
    /// It follows a completion that is known at this host since then.
    pub known: Option<(Time, HostId)>,
    /// The application writes message by message; bytes of the first one.
    pub first: Option<u64>,
}

impl Draft {
    /// A plain transfer.
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

/// The query that a flow belongs to; the same in each of its flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryDraft {
    /// Number within the entry.
    pub number: u64,
    pub client: HostId,
    pub start: Time,
    pub responses: u32,
    pub size: u64,
}

/// One entry's flows, lazily.
pub(crate) trait Generate: Send {
    /// The entry begins: nothing starts before this.
    fn begin(&mut self, at: Time);

    /// Start of the next flow that is ready.
    fn next_start(&self) -> Option<Time>;

    /// The next flow; starts never fall.
    fn pop(&mut self) -> Option<Draft>;

    /// A popped flow is complete.
    fn on_complete(&mut self, _index: u64, _now: Time) {}

    /// What flow `index` waits for has happened.
    fn release(&mut self, _index: u64, _now: Time) {}

    /// Nothing will come any more, whatever completes.
    fn exhausted(&self) -> bool {
        self.next_start().is_none()
    }

    /// Number of flows, if known.
    fn total(&self) -> Option<u64>;

    /// Number of flows to be expected before the first one is given: exact where it is known, a mean where chance decides.
    fn expected(&self) -> Option<f64> {
        self.total().map(|total| total as f64)
    }

    /// The job behind it, where its connections are written to message by message.
    fn job(&self) -> Option<&Job> {
        None
    }

    /// The same, to go on.
    fn job_mut(&mut self) -> Option<&mut Job> {
        None
    }

    /// What went wrong while reading, if something did.
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
    /// The earliest is the greatest, for the heap.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Flows already made, by start and then index.
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

/// The `part`-th of `parts` equal shares of `total`; the first ones are a byte larger where it does not divide.
pub(crate) fn share(total: u64, parts: u64, part: u64) -> u64 {
    total / parts + u64::from(part < total % parts)
}
