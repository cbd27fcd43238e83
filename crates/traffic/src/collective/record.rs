//! When operations and iterations began and ended, over all ranks.

use super::plan::Op;
use fanin_units::{BitRate, Bytes, Span, Time};
use std::collections::BTreeMap;

/// What several ranks do together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// Ranks that have begun, and that are done.
    pub begun: u32,
    pub done: u32,
    /// When the first and the last rank began.
    pub start: Time,
    pub ready: Time,
    /// When the last rank that is done was.
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

    /// From the beginning of the first of `ranks` to the end of the last, if all are done.
    pub fn time(&self, ranks: u32) -> Option<Span> {
        (self.done == ranks).then(|| self.finish.since(self.start))
    }
}

/// An operation of a job: the same in each iteration and group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveOp {
    /// `all_reduce`, `all_gather`, `reduce_scatter` or `all_to_all`.
    pub collective: &'static str,
    pub algorithm: &'static str,
    /// Ranks of a group.
    pub ranks: u32,
    /// Bytes of a rank's buffer.
    pub size: Bytes,
}

impl CollectiveOp {
    pub(super) fn of(op: &Op) -> CollectiveOp {
        CollectiveOp { collective: op.collective, algorithm: op.algorithm, ranks: op.group, size: Bytes(op.size) }
    }

    /// Bytes of the buffer over the time. Source: NCCL-TESTS, performance page.
    pub fn algorithm_bandwidth(&self, time: Span) -> BitRate {
        BitRate::of(self.size, time)
    }

    /// What a link of each rank must carry for that: 2(n − 1)/n of it for all-reduce, (n − 1)/n for the others, rounded down.
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
    /// Position among the job's operations.
    pub operation: u16,
    /// Number of the group of ranks.
    pub group: u32,
    pub together: Together,
}

/// A job: what it consists of, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveJob {
    /// Position of the `[[traffic]]` table.
    pub entry: u16,
    pub ranks: u32,
    pub operations: Vec<CollectiveOp>,
    /// Iterations asked for.
    pub iterations: u32,
    /// By iteration: computations included.
    pub iteration: Vec<Together>,
    pub runs: Vec<CollectiveRun>,
}

/// What is written down of a job.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    runs: BTreeMap<(u32, u16, u32), Together>,
    pub iterations: Vec<Together>,
}

impl Records {
    /// A rank enters an iteration.
    pub fn enter(&mut self, iteration: u32, now: Time) {
        if self.iterations.len() <= iteration as usize {
            self.iterations.resize(iteration as usize + 1, Together::default());
        }
        self.iterations[iteration as usize].begin(now);
    }

    /// A rank has done an iteration.
    pub fn leave(&mut self, iteration: u32, now: Time) {
        self.iterations[iteration as usize].end(now);
    }

    /// A rank enters an operation.
    pub fn begin(&mut self, iteration: u32, (number, op): (u16, &Op), rank: u32, now: Time) {
        self.runs.entry((iteration, number, op.place(rank).0)).or_default().begin(now);
    }

    /// A rank has done an operation.
    pub fn end(&mut self, iteration: u32, (number, op): (u16, &Op), rank: u32, now: Time) {
        self.runs.entry((iteration, number, op.place(rank).0)).or_default().end(now);
    }

    /// Everything so far, by iteration, operation and group.
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
