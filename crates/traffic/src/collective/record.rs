//! Times at which operations and iterations began and ended, over all ranks.

use super::plan::Op;
use fanin_units::{BitRate, Bytes, Span, Time};
use std::collections::BTreeMap;

/// Progress of several ranks in a common operation or iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// Number of ranks that have begun, and of those that are done.
    pub begun: u32,
    pub done: u32,
    /// Times at which the first and the last rank began.
    pub start: Time,
    pub ready: Time,
    /// Time at which the latest rank was done, so far.
    pub finish: Time,
}

impl Together {
    fn begin(&mut self, now: Time) {
        if self.begun == 0 {
            self.start = now;
        }
        (self.begun, self.ready) = (self.begun + 1, now);
    }

    fn end(&mut self, now: Time) {
        (self.done, self.finish) = (self.done + 1, now);
    }

    /// Adds the progress of other ranks.
    fn absorb(&mut self, other: &Together) {
        if self.begun == 0 || (other.begun > 0 && other.start < self.start) {
            self.start = other.start;
        }
        (self.begun, self.done) = (self.begun + other.begun, self.done + other.done);
        (self.ready, self.finish) = (self.ready.max(other.ready), self.finish.max(other.finish));
    }

    /// Duration from the first rank's beginning to the last one's end; `None` until all `ranks` are done.
    pub fn time(&self, ranks: u32) -> Option<Span> {
        (self.done == ranks).then(|| self.finish.since(self.start))
    }
}

/// An operation of a job, common to all iterations and groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveOp {
    /// Name of the operation: `all_reduce`, `all_gather`, `reduce_scatter` or `all_to_all`.
    pub collective: &'static str,
    pub algorithm: &'static str,
    /// Number of ranks in a group.
    pub ranks: u32,
    /// Bytes of a rank's buffer.
    pub size: Bytes,
}

impl CollectiveOp {
    pub(super) fn of(op: &Op) -> CollectiveOp {
        CollectiveOp { collective: op.collective, algorithm: op.algorithm, ranks: op.group, size: Bytes(op.size) }
    }

    /// Algorithm bandwidth: bytes of the buffer over the time. Source: NCCL-TESTS, performance page.
    pub fn algorithm_bandwidth(&self, time: Span) -> BitRate {
        BitRate::of(self.size, time)
    }

    /// Bus bandwidth: the load on each rank's link, which is 2(n − 1)/n of the algorithm bandwidth for all-reduce, (n − 1)/n
    /// for the others, rounded down.
    /// Source: NCCL-TESTS, performance page.
    pub fn bus_bandwidth(&self, time: Span) -> BitRate {
        let n = u128::from(self.ranks);
        let times = if self.collective == "all_reduce" { 2 } else { 1 };
        let moved = u128::from(self.size.get()) * times * (n - 1) / n;
        BitRate::of(Bytes(u64::try_from(moved).unwrap_or(u64::MAX)), time)
    }
}

/// One operation of one group in one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveRun {
    pub iteration: u32,
    /// Index of the operation within the job.
    pub operation: u16,
    /// Index of the group of ranks.
    pub group: u32,
    pub together: Together,
}

/// Description and progress of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveJob {
    /// Index of the job's `[[traffic]]` table.
    pub entry: u16,
    pub ranks: u32,
    pub operations: Vec<CollectiveOp>,
    /// Number of iterations asked for.
    pub iterations: u32,
    /// Progress of each iteration, computations included.
    pub iteration: Vec<Together>,
    pub runs: Vec<CollectiveRun>,
}

/// Times recorded while a job runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    runs: BTreeMap<(u32, u16, u32), Together>,
    pub iterations: Vec<Together>,
}

impl Records {
    /// Records that a rank begins an iteration.
    pub fn enter(&mut self, iteration: u32, now: Time) {
        if self.iterations.len() <= iteration as usize {
            self.iterations.resize(iteration as usize + 1, Together::default());
        }
        self.iterations[iteration as usize].begin(now);
    }

    /// Records that a rank has finished an iteration.
    pub fn leave(&mut self, iteration: u32, now: Time) {
        self.iterations[iteration as usize].end(now);
    }

    /// Records that a rank enters an operation.
    pub fn begin(&mut self, iteration: u32, (number, op): (u16, &Op), rank: u32, now: Time) {
        self.runs.entry((iteration, number, op.place(rank).0)).or_default().begin(now);
    }

    /// Records that a rank has finished an operation.
    pub fn end(&mut self, iteration: u32, (number, op): (u16, &Op), rank: u32, now: Time) {
        self.runs.entry((iteration, number, op.place(rank).0)).or_default().end(now);
    }

    /// Adds the records of other ranks.
    pub fn absorb(&mut self, other: &Records) {
        for (key, together) in &other.runs {
            self.runs.entry(*key).or_default().absorb(together);
        }
        if self.iterations.len() < other.iterations.len() {
            self.iterations.resize(other.iterations.len(), Together::default());
        }
        self.iterations.iter_mut().zip(&other.iterations).for_each(|(all, more)| all.absorb(more));
    }

    /// All records so far, by iteration, operation and group.
    pub fn runs(&self) -> Vec<CollectiveRun> {
        let run = |((iteration, operation, group), together): (&(u32, u16, u32), &Together)| CollectiveRun {
            iteration: *iteration,
            operation: *operation,
            group: *group,
            together: *together,
        };
        self.runs.iter().map(run).collect()
    }
}
