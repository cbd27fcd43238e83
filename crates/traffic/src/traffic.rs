//! Merge of all entries in order of time, with their dependencies.

use crate::assemble::{assemble, describe};
use crate::collective::{CollectiveJob, Job, Write};
use crate::context::TrafficContext;
use crate::depend::{Dependencies, Known, Node, Target};
use crate::entry::Entry;
use crate::generate::{Generate, QueryDraft};
use crate::spec::{Completion, FlowSpec, Query};
use fanin_params::Problem;
use fanin_units::{HostId, Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Run-time state of one entry.
struct Running {
    name: String,
    transport: u16,
    class: u8,
    /// Earliest beginning of the entry.
    start: Time,
    delay: Span,
    /// Number of flows that the entry will yield, exact or expected.
    expected: Option<f64>,
    generate: Box<dyn Generate>,
    begun: bool,
    complete: bool,
    /// Number of flows taken and not complete.
    open: u64,
    /// Start of the entry's next flow; an item of the merge queue with another time is stale.
    head: Option<Time>,
    /// Hosts that know of the entry's completions, if something waits for the entry.
    known: Known,
    /// Time of the latest of its completions so far.
    latest: Time,
    /// Hosts that know of the completions after which the entry began.
    after: Known,
    /// Queries of which some flows have not been taken: number within the entry → (number, flows left).
    queries: BTreeMap<u64, (u32, u32)>,
}

/// Traffic of a scenario: every entry's flows in order of start, generated when they are needed.
pub struct Traffic {
    entries: Vec<Running>,
    merge: BinaryHeap<Reverse<(Time, u16)>>,
    dependencies: Dependencies,
    /// Hosts that know of the completions that released a flow.
    released: BTreeMap<(u16, u64), Known>,
    /// Names of flows that others wait for, for messages.
    flow_names: BTreeMap<(u16, u32), Box<str>>,
    queries: Vec<Query>,
    /// Indices of entries that are collective jobs.
    jobs: Vec<u16>,
    popped: u64,
    warnings: Vec<Problem>,
    notes: Vec<String>,
}

impl Traffic {
    /// Checks every entry, opens every file, and prepares the generators.
    ///
    /// # Errors
    /// All problems of all entries, at once; paths begin with `traffic[N]`.
    pub fn new(entries: &[Entry], ctx: &TrafficContext) -> Result<Traffic, Vec<Problem>> {
        let assembled = assemble(entries, ctx)?;
        let made = assembled.made.into_iter().zip(entries.iter().zip(assembled.names));
        let running = made.map(|((made, transport), (entry, name))| Running {
            name,
            transport,
            class: entry.class,
            start: entry.start,
            delay: entry.delay,
            expected: made.generate.expected(),
            generate: made.generate,
            begun: false,
            complete: false,
            open: 0,
            head: None,
            known: Known::new(),
            latest: Time::ZERO,
            after: Known::new(),
            queries: BTreeMap::new(),
        });
        let entries_running: Vec<Running> = running.collect();
        let jobs = (0u16..).zip(&entries_running).filter(|(_, running)| running.generate.job().is_some()).map(|(i, _)| i);
        let mut traffic = Traffic {
            jobs: jobs.collect(),
            entries: entries_running,
            merge: BinaryHeap::new(),
            dependencies: assembled.dependencies,
            released: BTreeMap::new(),
            flow_names: assembled.flow_names,
            queries: Vec::new(),
            popped: 0,
            warnings: assembled.warnings,
            notes: assembled.notes,
        };
        for (i, entry) in (0u16..).zip(entries) {
            if entry.after.is_empty() {
                traffic.begin(i, entry.start);
            }
        }
        Ok(traffic)
    }

    /// Start of the next flow that is ready; `None` at the end, and while all remaining flows wait for completions.
    pub fn next_start(&self) -> Option<Time> {
        self.merge.peek().map(|next| next.0 .0)
    }

    /// Takes the next flow. Start times never decrease; at one instant the order is that of the entries, then of the flows'
    /// indices.
    pub fn pop(&mut self) -> Option<FlowSpec> {
        let Reverse((start, i)) = self.merge.pop()?;
        let running = &mut self.entries[usize::from(i)];
        let draft = running.generate.pop()?;
        debug_assert_eq!(draft.start, start, "an entry's next start is that of its next flow");
        self.popped += 1;
        running.open += 1;
        let query = draft.query.map(|query| query_number(&mut self.queries, running, i, query));
        let mut known = running.after.clone();
        known.extend(self.released.remove(&(i, draft.index)).unwrap_or_default());
        known.extend(draft.known.map(|(time, host)| (host, time)));
        let flow = FlowSpec {
            src: draft.src,
            dst: draft.dst,
            size: draft.size,
            request: draft.request,
            start: draft.start,
            transport: running.transport,
            class: draft.class.unwrap_or(running.class),
            entry: i,
            index: draft.index,
            query,
            id: draft.id,
            kind: draft.kind,
            first: draft.first,
            known: (!known.is_empty()).then(|| known.into_iter().map(|(host, time)| (time, host)).collect()),
        };
        running.head = None;
        self.refresh(i);
        Some(flow)
    }

    /// Completes a flow that was taken; flows that waited for it become visible through [`Traffic::next_start`], never before
    /// the completion. Completions at different hosts may be reported in any order.
    ///
    /// # Panics
    /// When more flows of an entry complete than were taken.
    pub fn on_complete(&mut self, completion: Completion) {
        let Completion { entry, index, host, at } = completion;
        let running = &mut self.entries[usize::from(entry)];
        assert!(running.open > 0, "flow {index} of '{}' completes, and none is open", running.name);
        running.open -= 1;
        running.generate.on_complete(index, at);
        running.latest = running.latest.max(at);
        if self.dependencies.is_awaited(Node::Entry(entry)) {
            let known = running.known.entry(host).or_default();
            *known = at.max(*known);
        }
        let mut done = VecDeque::new();
        if let Ok(index) = u32::try_from(index) {
            done.push_back((Node::Flow(entry, index), Known::from([(host, at)]), at));
        }
        self.refresh(entry);
        done.extend(self.completed(entry));
        self.propagate(done);
    }

    /// Time at which the next rank of a collective job has something to do. Flows that start at that time come first.
    #[inline]
    pub fn next_wake(&self) -> Option<Time> {
        if self.jobs.is_empty() {
            return None; // asked at every timer
        }
        self.next_wake_of_jobs()
    }

    fn next_wake_of_jobs(&self) -> Option<Time> {
        self.jobs.iter().filter_map(|i| self.job(*i)?.next_wake()).min()
    }

    /// Wakes the rank of a collective job that is due now, and gives it and its entry. A job that follows completions begins at
    /// each host when that host knows of them: `informed` gives the time, from the hosts that know of each completion and since
    /// when.
    pub fn wake(&mut self, now: Time, informed: impl Fn(HostId, &[(Time, HostId)]) -> Time) -> Option<(u16, u32)> {
        let due = |i: &u16| self.job(*i).and_then(Job::next_wake).is_some_and(|at| at <= now);
        let entry = self.jobs.iter().copied().find(due)?;
        let running = &mut self.entries[usize::from(entry)];
        let job = running.generate.job_mut()?;
        if let Some(host) = job.begins_next() {
            let known: Vec<(Time, HostId)> = running.after.iter().map(|(host, time)| (*time, *host)).collect();
            let at = informed(host, &known);
            if at > now {
                job.put_off(at);
                return None;
            }
        }
        job.wake(now).map(|rank| (entry, rank))
    }

    /// Takes the next write of a rank of a collective job.
    pub fn pop_write(&mut self) -> Option<Write> {
        let entries = &mut self.entries;
        let mut writes = self.jobs.iter().filter_map(|i| {
            let write = entries[usize::from(*i)].generate.job_mut()?.pop_write()?;
            Some(Write { entry: *i, ..write })
        });
        writes.next()
    }

    /// Handles `total` bytes of a connection arrived at the receiving application; returns the byte count about which it
    /// wants to be notified next.
    pub fn arrived(&mut self, (entry, index): (u16, u64), total: u64, now: Time) -> u64 {
        let job = self.entries[usize::from(entry)].generate.job_mut();
        job.map_or(u64::MAX, |job| job.arrived(index as usize, total, now))
    }

    /// Handles `total` bytes of a connection acknowledged at its sender.
    pub fn acknowledged(&mut self, (entry, index): (u16, u64), total: u64, now: Time) {
        if let Some(job) = self.entries[usize::from(entry)].generate.job_mut() {
            job.acknowledged(index as usize, total, now);
        }
    }

    /// Description and progress of the collective jobs.
    pub fn jobs(&self) -> Vec<CollectiveJob> {
        self.jobs.iter().filter_map(|i| Some(self.job(*i)?.report(*i))).collect()
    }

    /// Number of connections of collective jobs, which stay open.
    pub fn connections(&self) -> usize {
        self.jobs.iter().filter_map(|i| self.job(*i)).map(Job::connections).sum()
    }

    fn job(&self, i: u16) -> Option<&Job> {
        self.entries[usize::from(i)].generate.job()
    }

    /// All queries so far; flows refer to them by index.
    pub fn queries(&self) -> &[Query] {
        &self.queries
    }

    /// Describes in words the entries and flows that still wait, and for what.
    pub fn blocked(&self) -> Vec<String> {
        let names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        let mut lines = Vec::new();
        for (target, missing) in self.dependencies.waiting() {
            let node = match target {
                Target::Entry(entry) => Node::Entry(entry),
                Target::Flow(entry, flow) => Node::Flow(entry, flow),
            };
            let missing: Vec<String> = missing.iter().map(|node| describe(*node, &names, &self.flow_names)).collect();
            lines.push(format!("{} waits for {}", describe(node, &names, &self.flow_names), missing.join(", ")));
        }
        for entry in &self.entries {
            let ranks = entry.generate.job().into_iter().flat_map(Job::waiting);
            lines.extend(ranks.map(|rank| format!("'{}': {rank}", entry.name)));
            if entry.begun && !entry.complete && entry.head.is_none() && entry.open > 0 && !entry.generate.exhausted() {
                let flows = if entry.open == 1 { "flow" } else { "flows" };
                lines.push(format!(
                    "entry '{}' has {} {flows} under way and more to come after completions",
                    entry.name, entry.open
                ));
            }
        }
        lines
    }

    /// True if any flow or entry starts after completions: then not all starts are known without the network.
    pub fn follows_completions(&self) -> bool {
        let entries = self.entries.iter();
        self.dependencies.waiting().next().is_some() || entries.map(|entry| &entry.generate).any(|g| g.follows_completions())
    }

    /// Expected number of random arrivals, each at a time of its own.
    pub fn expected_arrivals(&self) -> f64 {
        self.entries.iter().map(|entry| entry.generate.arrivals()).sum()
    }

    /// True if the order of completions at different hosts decides which flow starts.
    pub fn follows_the_order_of_completions(&self) -> bool {
        self.dependencies.any_one_by_one()
    }

    /// Leaves ranks of collective jobs to others, but those at hosts for which `here` is true. Nothing has happened yet.
    pub fn keep_ranks(&mut self, here: impl Fn(HostId) -> bool) {
        self.entries.iter_mut().filter_map(|running| running.generate.job_mut()).for_each(|job| job.keep_ranks(&here));
    }

    /// Adds the progress of collective jobs at the ranks that another has kept ([`Traffic::keep_ranks`]).
    pub fn absorb_jobs(&mut self, other: &mut Traffic) {
        for i in &self.jobs {
            let jobs = [&mut self.entries, &mut other.entries].map(|entries| entries[usize::from(*i)].generate.job_mut());
            if let [Some(job), Some(other)] = jobs {
                job.absorb(other);
            }
        }
    }

    /// Number of flows, if known before the run.
    pub fn total_hint(&self) -> Option<u64> {
        self.entries.iter().map(|entry| entry.generate.total()).try_fold(0u64, |sum, total| Some(sum.saturating_add(total?)))
    }

    /// Expected number of flows of an entry: exact if known, a mean if random.
    ///
    /// # Panics
    /// When there is no such entry.
    pub fn expected_flows(&self, entry: u16) -> Option<f64> {
        self.entries[usize::from(entry)].expected
    }

    /// Number of flows taken so far.
    pub fn popped(&self) -> u64 {
        self.popped
    }

    /// True if every flow there will ever be has been taken and is complete.
    pub fn is_complete(&self) -> bool {
        self.entries.iter().all(|entry| entry.complete)
    }

    /// Name of each entry: the given one, or its kind, numbered from the second entry of a kind on.
    pub fn entry_names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// Warnings about settings that probably do not do what was meant.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// Notes about decisions taken from the content of files, to be shown to the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Errors of files that occurred while their flows were read; empty in a sound run.
    pub fn failures(&self) -> Vec<String> {
        self.entries.iter().filter_map(|entry| entry.generate.failure()).collect()
    }

    fn begin(&mut self, i: u16, at: Time) {
        let running = &mut self.entries[usize::from(i)];
        running.begun = true;
        running.generate.begin(at);
        self.refresh(i);
        let done = self.completed(i).into_iter().collect();
        self.propagate(done);
    }

    /// Puts the start of the entry's next flow into the merge queue.
    fn refresh(&mut self, i: u16) {
        let running = &mut self.entries[usize::from(i)];
        if running.begun {
            let head = running.generate.next_start();
            if head != running.head {
                running.head = head;
                self.merge.extend(head.map(|start| Reverse((start, i))));
            }
        }
        while let Some(Reverse((start, i))) = self.merge.peek() {
            if self.entries[usize::from(*i)].head == Some(*start) {
                break;
            }
            self.merge.pop();
        }
    }

    /// Marks the entry complete and returns its node, with the time of its completion, the first time that all its flows are.
    fn completed(&mut self, i: u16) -> Option<(Node, Known, Time)> {
        let running = &mut self.entries[usize::from(i)];
        let now_complete = running.begun && !running.complete && running.open == 0 && running.generate.exhausted();
        running.complete |= now_complete;
        now_complete.then(|| (Node::Entry(i), std::mem::take(&mut running.known), running.latest))
    }

    fn propagate(&mut self, mut done: VecDeque<(Node, Known, Time)>) {
        while let Some((node, known, at)) = done.pop_front() {
            for (target, known, at) in self.dependencies.complete(node, &known, at) {
                match target {
                    Target::Flow(i, flow) => {
                        self.released.insert((i, u64::from(flow)), known);
                        self.entries[usize::from(i)].generate.release(u64::from(flow), at);
                        self.refresh(i);
                    }
                    Target::Entry(i) => {
                        let running = &mut self.entries[usize::from(i)];
                        running.begun = true;
                        running.after = known;
                        running.latest = running.latest.max(at);
                        running.generate.begin(running.start.max(at.saturating_add(running.delay)));
                        self.refresh(i);
                        done.extend(self.completed(i));
                    }
                }
            }
        }
    }
}

fn query_number(queries: &mut Vec<Query>, running: &mut Running, entry: u16, draft: QueryDraft) -> u32 {
    let (number, left) = running.queries.entry(draft.number).or_insert_with(|| {
        let number = u32::try_from(queries.len()).expect("fewer queries than flows, and those are bounded");
        queries.push(Query { entry, client: draft.client, start: draft.start, responses: draft.responses, size: draft.size });
        (number, draft.responses)
    });
    *left -= 1;
    let (number, left) = (*number, *left);
    if left == 0 {
        running.queries.remove(&draft.number);
    }
    number
}
