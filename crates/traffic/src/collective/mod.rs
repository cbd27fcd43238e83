//! Collective operations of training jobs: ranks that forward data they have received.

mod plan;
mod record;
mod run;
mod tree;

pub use record::{CollectiveJob, CollectiveOp, CollectiveRun, Together};
pub(crate) use run::Job;
pub use run::Write;

use crate::context::{Build, LONGEST};
use fanin_params::{choice, names, params};
use fanin_units::{Bytes, HostId, Purpose, Span, Stream};
use plan::{Op, Shape};
use run::Conn;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of parallel connections between two ranks.
const MAX_CHANNELS: u32 = 64;
/// Largest number of bytes of a connection: far below the range of 64-bit sequence numbers.
const MAX_BYTES: u64 = 1 << 60;

names! {
    /// Assignment of hosts to ranks.
    pub enum RankOrder {
        /// Order of `ranks`; within a pattern, of the topology.
        "listed" => Listed,
        /// Order of racks, within a rack as listed.
        "by_rack" => ByRack,
        /// Random order, drawn by the seed.
        "shuffled" => Shuffled,
    }
}
names! {
    /// Algorithm of an all-reduce.
    pub enum AllReduceAlgorithm {
        /// Ring: reduce-scatter, then all-gather, in 2(n − 1) steps of 1/n of the bytes. Source: PATARASUK §3.
        "ring" => Ring,
        /// Tree: up an in-order binary tree to its root, and down again; all bytes cross each edge twice.
        "tree" => Tree,
        /// Two trees with half of the bytes each; a rank with children in one is a leaf in the other. Source: SANDERS-TREES.
        "double_tree" => DoubleTree,
    }
}

/// Declares a `params!` table with the keys common to all operations.
macro_rules! operation {
    ($(#[doc = $doc:expr])* pub struct $name:ident { $($own:tt)* }) => {
        params! {
            $(#[doc = $doc])*
            pub struct $name {
                /// Bytes of each rank's buffer, as nccl-tests counts them: all that is reduced, gathered, scattered or sent,
                /// the rank's own share included. Of a remainder the first parts get a byte each.
                pub size: Bytes, in Bytes(1)..;
                $($own)*
                /// Parallel connections from rank to rank, with equal shares of the bytes.
                pub channels: u32 = 1, in 1..=MAX_CHANNELS;
                /// Number of ranks in a group, which performs the operation by itself. If absent, all ranks.
                pub group: Option<u32>, in 2u32..;
                /// Distance of consecutive ranks of a group; 1: groups of neighbours.
                pub stride: u32 = 1, in 1u32..;
                /// Computation time of each rank before it enters the operation.
                pub compute: Span = Span::ZERO, in Span::ZERO..=LONGEST;
                /// Upper bound of an extra computation time, uniform in [0, `jitter`), drawn for each rank and iteration.
                pub jitter: Span = Span::ZERO, in Span::ZERO..=LONGEST;
                /// Processing time of each received message (reduction or copy) before it counts and is forwarded; one after
                /// the other on a connection.
                pub work: Span = Span::ZERO, in Span::ZERO..=LONGEST;
            }
        }
        impl $name {
            fn common(&self) -> Common {
                Common {
                    size: self.size,
                    channels: self.channels,
                    group: self.group,
                    stride: self.stride,
                    compute: self.compute,
                    jitter: self.jitter,
                    work: self.work,
                }
            }
        }
    };
}

/// The keys that [`operation!`] declares, for the common code.
struct Common {
    size: Bytes,
    channels: u32,
    group: Option<u32>,
    stride: u32,
    compute: Span,
    jitter: Span,
    work: Span,
}

operation! {
    /// All-reduce: every rank gets the sum of all ranks' buffers.
    pub struct AllReduce {
        /// Algorithm of the all-reduce.
        pub algorithm: AllReduceAlgorithm = AllReduceAlgorithm::Ring;
        /// Largest message: a step's data is cut into messages of at most this size, each forwarded once it has arrived. If
        /// absent, one per step.
        pub message: Option<Bytes>, in Bytes(64)..;
    }
}
operation! {
    /// All-gather around a ring: every rank gets the shares of all ranks.
    pub struct AllGather {
        /// Largest message: a step's data is cut into messages of at most this size, each forwarded once it has arrived. If
        /// absent, one per step.
        pub message: Option<Bytes>, in Bytes(64)..;
    }
}
operation! {
    /// Reduce-scatter around a ring: every rank gets its share of the sum of all ranks' buffers.
    pub struct ReduceScatter {
        /// Largest message: a step's data is cut into messages of at most this size, each forwarded once it has arrived. If
        /// absent, one per step.
        pub message: Option<Bytes>, in Bytes(64)..;
    }
}
operation! {
    /// All-to-all: every rank sends each other rank its share; in step i to rank + i, modulo the ranks of the group.
    pub struct Exchange {
        /// Staggered steps: a step begins when the data sent in the previous step is acknowledged and the data received in it
        /// has arrived.
        pub staggered: bool = false;
        /// Largest number of peers at once: a further step begins when the data sent in a current one is acknowledged. If
        /// absent, all at once.
        pub concurrent: Option<u32>, in 1u32..;
    }
}

choice! {
    /// A collective operation.
    pub enum Operation {
        /// All-reduce: every rank gets the sum of all ranks' buffers.
        "all_reduce" => AllReduce(AllReduce),
        /// All-gather around a ring: every rank gets the shares of all ranks.
        "all_gather" => AllGather(AllGather),
        /// Reduce-scatter around a ring: every rank gets its share of the sum of all ranks' buffers.
        "reduce_scatter" => ReduceScatter(ReduceScatter),
        /// All-to-all: every rank sends each other rank its share; in step i to rank + i, modulo the ranks of the group.
        "all_to_all" => AllToAll(Exchange),
    }
}

params! {
    /// Training job: ranks perform collective operations in a loop, over connections that stay open. A rank enters the next
    /// operation when it has itself finished the previous one.
    pub struct Collective {
        /// Hosts of the job, each once, one rank each: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.
        pub ranks: Vec<String> = vec!["all".to_string()];
        /// Assignment of the hosts to ranks.
        pub order: RankOrder = RankOrder::Listed;
        /// Operations of each iteration, in sequence.
        pub operations: Vec<Operation>;
        /// Number of iterations.
        pub iterations: u32 = 1, in 1..=10_000_000;
    }
}

impl Collective {
    /// Upper bound of one rank's computation time over the whole job.
    pub(crate) fn computes(&self) -> Span {
        let each = self.operations.iter().map(|operation| {
            let c = operation.common();
            c.compute.ps().saturating_add(c.jitter.ps())
        });
        Span::from_ps(each.fold(0, u64::saturating_add)).saturating_mul(u64::from(self.iterations))
    }
}

impl Operation {
    fn common(&self) -> Common {
        match self {
            Operation::AllReduce(o) => o.common(),
            Operation::AllGather(o) => o.common(),
            Operation::ReduceScatter(o) => o.common(),
            Operation::AllToAll(o) => o.common(),
        }
    }

    fn message(&self) -> Option<Bytes> {
        match self {
            Operation::AllReduce(o) => o.message,
            Operation::AllGather(o) => o.message,
            Operation::ReduceScatter(o) => o.message,
            Operation::AllToAll(_) => None,
        }
    }

    /// Algorithm, message pattern in a group of `n`, and number of trees of the operation.
    fn shape(&self, n: u32) -> (&'static str, Shape, u32) {
        match self {
            Operation::AllReduce(o) => match o.algorithm {
                AllReduceAlgorithm::Ring => ("ring", Shape::Ring { steps: (n - 1).saturating_mul(2), first: 0 }, 0),
                AllReduceAlgorithm::Tree => ("tree", Shape::Tree, 1),
                AllReduceAlgorithm::DoubleTree => ("double_tree", Shape::Tree, 2),
            },
            Operation::AllGather(_) => ("ring", Shape::Ring { steps: n - 1, first: 0 }, 0),
            Operation::ReduceScatter(_) => ("ring", Shape::Ring { steps: n - 1, first: n - 1 }, 0),
            Operation::AllToAll(o) => {
                let limit = if o.staggered { 1 } else { o.concurrent.unwrap_or(n - 1) };
                (if o.staggered { "staggered" } else { "direct" }, Shape::Exchange { limit, staggered: o.staggered }, 0)
            }
        }
    }

    /// Validates the operation for `found` ranks and builds it. If the ranks could not be read, it is validated for as many
    /// as it asks for.
    fn build(&self, build: &mut Build, key: &str, found: Option<u32>) -> Option<Op> {
        let c = self.common();
        let before = build.cx.count();
        let ranks = found.unwrap_or_else(|| c.group.unwrap_or(2).saturating_mul(c.stride));
        let (group, stride) = (c.group.unwrap_or(ranks), c.stride);
        let span = u64::from(group) * u64::from(stride);
        if group > ranks {
            let accepted = format!("2 to {ranks}");
            build.error(
                &format!("{key}.group"),
                Some(group.to_string()),
                format!("is more than the {ranks} ranks"),
                Some(&accepted),
            );
        } else if c.group.is_none() && stride > 1 {
            let message = "has no effect without `group`: all ranks are one group";
            build.error(&format!("{key}.stride"), Some(stride.to_string()), message, Some("`group` and `stride`, or neither"));
        } else if u64::from(ranks) % span != 0 {
            let message =
                format!("ranks, {stride} apart, do not divide {ranks} ranks into groups: they would overlap, or leave ranks out");
            let accepted = format!("`group` times `stride` a divisor of {ranks}");
            build.error(&format!("{key}.group"), Some(group.to_string()), message, Some(&accepted));
        }
        if let Operation::AllToAll(Exchange { staggered, concurrent: Some(limit), .. }) = self {
            let concurrent = format!("{key}.concurrent");
            if *staggered {
                let message = "has no effect with `staggered`: one step after the other";
                build.error(&concurrent, Some(limit.to_string()), message, Some("either `staggered` or `concurrent`"));
            } else if *limit >= group - 1 {
                let message = format!("has no effect: a rank has {} peers", group - 1);
                build.error(&concurrent, Some(limit.to_string()), message, Some("fewer than that, or absent: all at once"));
            }
        }
        let (algorithm, shape, trees) = self.shape(group);
        let parts = u64::from(c.channels) * if shape == Shape::Tree { u64::from(trees) } else { u64::from(group) };
        if c.size.get() < parts {
            let message = format!("is less than a byte for each of {parts} parts");
            build.error(&format!("{key}.size"), Some(c.size.to_string()), message, Some(&format!("at least {parts}B")));
        }
        let largest = c.size.get().div_ceil(parts);
        if let Some(message) = self.message().filter(|message| message.get() >= largest) {
            let why = format!("has no effect: a rank sends at most {} in a step", Bytes(largest));
            build.error(
                &format!("{key}.message"),
                Some(message.to_string()),
                why,
                Some("less than that, or absent: one message"),
            );
        }
        let messages = self.message().map_or(1, |message| largest.div_ceil(message.get()));
        if messages.saturating_mul(u64::from(group)) > u64::from(u32::MAX / 4) {
            let message = "makes too many messages of a step";
            build.error(&format!("{key}.message"), self.message().map(|m| m.to_string()), message, Some("larger messages"));
        }
        (found.is_some() && build.cx.count() == before).then(|| Op {
            collective: self.kind(),
            algorithm,
            shape,
            size: c.size.get(),
            channels: c.channels,
            group,
            stride,
            messages: messages as u32,
            compute: c.compute,
            jitter: c.jitter,
            work: c.work,
            trees: (0..trees).map(|number| tree::tree(group, number)).collect(),
        })
    }
}

impl Job {
    pub fn build(build: &mut Build, params: &Collective) -> Option<Job> {
        let ranks = ranks(build, params);
        if params.operations.is_empty() {
            build.error("operations", None, "is empty", Some("at least one operation"));
        }
        let number = ranks.as_ref().map(|ranks| ranks.len() as u32);
        let ops: Vec<Option<Op>> = params
            .operations
            .iter()
            .enumerate()
            .map(|(i, operation)| operation.build(build, &format!("operations[{i}]"), number))
            .collect();
        let ops: Vec<Op> = ops.into_iter().collect::<Option<_>>()?;
        let ranks = ranks.filter(|_| !ops.is_empty())?;
        // At least: before memory is asked for.
        let peers = |op: &Op| if op.direct() { f64::from(op.group - 1) } else { 1.0 };
        let least = ops.iter().map(|op| f64::from(op.channels) * ranks.len() as f64 * peers(op)).fold(0.0, f64::max);
        if build.too_many("ranks", least) {
            return None;
        }
        let (parts, conns) = connect(&ops, ranks.len() as u32, params.iterations);
        if build.too_many("ranks", conns.len() as f64) {
            return None;
        }
        if let Some(conn) = conns.iter().max_by_key(|conn| conn.total).filter(|conn| conn.total > MAX_BYTES) {
            let message = format!("make connections of {}", Bytes(conn.total));
            build.error(
                "iterations",
                Some(params.iterations.to_string()),
                message,
                Some(&format!("at most {}", Bytes(MAX_BYTES))),
            );
            return None;
        }
        let seeded = |host: HostId| (host, Stream::new(build.ctx.seed, Purpose::Jitter, build.host_entity(host)));
        Some(Job::new(ops, parts, conns, ranks.into_iter().map(seeded).collect(), params.iterations))
    }

    /// Description and progress of the job, for the results.
    pub fn report(&self, entry: u16) -> CollectiveJob {
        CollectiveJob {
            entry,
            ranks: self.parts.first().map_or(0, Vec::len) as u32,
            operations: self.ops.iter().map(CollectiveOp::of).collect(),
            iterations: self.iterations,
            iteration: self.records.iterations.clone(),
            runs: self.records.runs(),
        }
    }
}

/// Hosts of the job in the order of their ranks.
fn ranks(build: &mut Build, params: &Collective) -> Option<Vec<HostId>> {
    let before = build.cx.count();
    let chosen: BTreeSet<HostId> = build.host_set("ranks", &params.ranks)?.into_iter().collect();
    let mut ranks: Vec<HostId> = Vec::with_capacity(chosen.len());
    let mut seen = BTreeSet::new();
    for (i, pattern) in params.ranks.iter().enumerate().filter(|(_, pattern)| !pattern.starts_with('!')) {
        let named = build.host_set(&format!("ranks[{i}]"), std::slice::from_ref(pattern))?;
        let again: Vec<&str> =
            named.iter().filter(|host| !seen.insert(**host)).map(|host| build.hosts.info(*host).name).collect();
        if let Some(first) = again.first() {
            let others = if again.len() > 1 { format!(" and {} more", again.len() - 1) } else { String::new() };
            let message = format!("names {first}{others} again: a host is one rank of a job");
            build.error(&format!("ranks[{i}]"), Some(format!("\"{pattern}\"")), message, Some("each host once"));
        }
        ranks.extend(named.into_iter().filter(|host| chosen.contains(host)));
    }
    if ranks.is_empty() {
        ranks.extend(&chosen); // all but those that are taken away
    }
    if build.cx.count() > before {
        return None;
    }
    if ranks.len() < 2 {
        build.error("ranks", Some(format!("{:?}", params.ranks)), "is only one host", Some("at least 2 hosts"));
        return None;
    }
    match params.order {
        RankOrder::Listed => {}
        RankOrder::ByRack => ranks.sort_by_key(|host| build.hosts.info(*host).rack),
        RankOrder::Shuffled => Stream::new(build.ctx.seed, Purpose::Endpoints, build.entity("")).shuffle(&mut ranks),
    }
    Some(ranks)
}

/// Builds every rank's part in every operation, and their connections: one for each pair of ranks and lane in use.
fn connect(ops: &[Op], ranks: u32, iterations: u32) -> (Vec<Vec<plan::Part>>, Vec<Conn>) {
    let mut numbers = BTreeMap::new();
    for op in ops {
        for rank in 0..ranks {
            op.part(rank, &mut |ends, lane| {
                numbers.insert((ends, lane), 0);
                0
            });
        }
    }
    for (number, entry) in (0u32..).zip(numbers.values_mut()) {
        *entry = number;
    }
    let parts: Vec<Vec<plan::Part>> =
        ops.iter().map(|op| (0..ranks).map(|rank| op.part(rank, &mut |ends, lane| numbers[&(ends, lane)])).collect()).collect();
    let mut conns: Vec<Conn> = numbers.into_keys().map(|(ends, lane)| Conn { ends, lane, plan: Vec::new(), total: 0 }).collect();
    for (number, (op, parts)) in (0u16..).zip(ops.iter().zip(&parts)) {
        for (conn, messages) in parts.iter().flat_map(plan::Part::outs) {
            let conn = &mut conns[conn as usize];
            let ends = conn.ends.map(|rank| op.place(rank).1);
            let bytes: u64 = (0..messages).map(|j| op.message(conn.lane, ends, j)).fold(0, u64::saturating_add);
            conn.plan.push((number, messages));
            conn.total = conn.total.saturating_add(bytes.saturating_mul(u64::from(iterations)));
        }
    }
    (parts, conns)
}

#[cfg(test)]
mod tests;
