//! Jobs on a network that only delays: what ranks end up with, whatever the delays are.

use super::plan::{Shape, DOWN, LANES, UP};
use super::run::Job;
use super::*;
use crate::context::{Directory, HostInfo, TrafficContext};
use crate::generate::Generate;
use fanin_params::Cx;
use fanin_units::{BitRate, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn job(params: &Collective, hosts: usize) -> Result<Job, Vec<String>> {
    let names: Vec<String> = (0..hosts).map(|i| format!("h{i}")).collect();
    let info = |(i, name)| HostInfo { name, rate: BitRate::from_gbps(10), rack: i as u32 % 2 };
    let ctx = TrafficContext {
        hosts: names.iter().map(String::as_str).enumerate().map(info).collect(),
        transports: &[],
        core_rate: None,
        seed: 5,
        duration: None,
        base_dir: ".".as_ref(),
        max_flows: 1_000_000,
    };
    let (directory, mut cx, mut notes) = (Directory::new(&ctx.hosts), Cx::new(), Vec::new());
    let mut build =
        Build { ctx: &ctx, hosts: &directory, cx: &mut cx, notes: &mut notes, name: "job", start: Time::ZERO, stop: None };
    let made = Job::build(&mut build, params);
    made.ok_or_else(|| cx.into_problems().iter().map(ToString::to_string).collect())
}

/// Sets of ranks whose buffers are summed in each part of a rank's buffer; the parts are blocks, or trees, of one channel.
type Buffer = Vec<u64>;

/// A message on its way: when it arrives, its end on the connection, and what it carries.
struct Sent {
    at: u64,
    upto: u64,
    part: usize,
    content: u64,
    replaces: bool,
}

/// One operation of a job on a network where each message takes a time of its own, in order on its connection. Gives what each
/// rank has of each part of each channel in the end. Only whole steps are followed: one message each.
fn run(job: &mut Job, delays: &mut dyn FnMut() -> u64) -> Vec<Vec<Buffer>> {
    let op = job.ops[0].clone();
    let (ranks, n) = (job.parts[0].len(), op.group as usize);
    let parts = if op.shape == Shape::Tree { op.trees.len() } else { n };
    let own = |rank: usize| {
        let (_, position) = op.place(rank as u32);
        let holds = |part| op.collective == "all_reduce" || op.collective == "reduce_scatter" || part == position as usize;
        vec![(0..parts).map(|part| if holds(part) { 1 << position } else { 0 }).collect::<Buffer>(); op.channels as usize]
    };
    let mut state: Vec<Vec<Buffer>> = (0..ranks).map(own).collect();
    let mut lines: BTreeMap<usize, Vec<Sent>> = BTreeMap::new();
    let (mut written, mut counts) = (vec![0; job.conns.len()], vec![0; job.conns.len()]);
    let mut acks: BTreeMap<(u64, usize, u64), ()> = BTreeMap::new();
    job.begin(Time::ZERO);
    while job.pop().is_some() {}
    loop {
        let arrival = lines.iter().filter_map(|(conn, line)| line.first().map(|sent| (sent.at, *conn))).min();
        let ack = acks.keys().next().copied();
        let wake = job.next_wake().map(Time::ps);
        let times = [wake, arrival.map(|(at, _)| at), ack.map(|(at, ..)| at)];
        let Some(now) = times.into_iter().flatten().min() else { return state };
        let at = Time::from_ps(now);
        if wake == Some(now) {
            job.wake(at);
        } else if let Some((_, conn)) = arrival.filter(|(at, _)| *at == now) {
            let sent = lines.get_mut(&conn).expect("a line").remove(0);
            let [_, to] = job.conns[conn].ends;
            let place = &mut state[to as usize][(job.conns[conn].lane / LANES) as usize][sent.part];
            *place = if sent.replaces { sent.content } else { *place | sent.content };
            let next = job.arrived(conn, sent.upto, at);
            assert!(next > sent.upto, "the next message ends behind this one");
            acks.insert((now + delays(), conn, sent.upto), ());
        } else if let Some((at, conn, upto)) = ack {
            acks.remove(&(at, conn, upto));
            job.acknowledged(conn, upto, Time::from_ps(at));
        }
        while let Some(write) = job.pop_write() {
            let conn = write.index as usize;
            let ([from, to], lane) = (job.conns[conn].ends, job.conns[conn].lane);
            let [p, q] = [from, to].map(|rank| op.place(rank).1 as usize);
            let step = counts[conn];
            counts[conn] += 1;
            written[conn] += write.bytes;
            assert_eq!(write.last, written[conn] == job.conns[conn].total);
            let (part, replaces) = match op.shape {
                Shape::Ring { first, .. } => {
                    let gathers = op.collective == "all_gather" || step >= n - 1;
                    ((p + first as usize + 2 * n - step) % n, gathers)
                }
                Shape::Tree => {
                    assert!([UP, DOWN].contains(&(lane % LANES % (UP + DOWN))));
                    ((lane % LANES / (UP + DOWN)) as usize, lane % LANES % (UP + DOWN) == DOWN)
                }
                // What p has for q is part q there; here only that it came from p.
                Shape::Exchange { .. } => (p, true),
            };
            let buffer = &state[from as usize][(lane / LANES) as usize];
            let content = if op.collective == "all_to_all" { 1 << p } else { buffer[part] };
            let line = lines.entry(conn).or_default();
            let after = line.last().map_or(0, |sent| sent.at);
            line.push(Sent { at: after.max(now + delays()), upto: written[conn], part, content, replaces });
            assert!(q < n);
        }
    }
}

fn collective(operation: Operation) -> Collective {
    Collective { ranks: vec!["all".into()], order: RankOrder::Listed, operations: vec![operation], iterations: 1 }
}

fn operation(kind: u8, [group, stride, channels]: [u32; 3], size: u64, [compute, jitter, work]: [u64; 3]) -> Operation {
    let (size, group) = (Bytes(size), Some(group));
    let [compute, jitter, work] = [compute, jitter, work].map(Span::from_ps);
    let algorithms = [AllReduceAlgorithm::Ring, AllReduceAlgorithm::Tree, AllReduceAlgorithm::DoubleTree];
    match kind {
        0..=2 => Operation::AllReduce(AllReduce {
            size,
            algorithm: algorithms[usize::from(kind)],
            message: None,
            channels,
            group,
            stride,
            compute,
            jitter,
            work,
        }),
        3 => Operation::AllGather(AllGather { size, message: None, channels, group, stride, compute, jitter, work }),
        4 => Operation::ReduceScatter(ReduceScatter { size, message: None, channels, group, stride, compute, jitter, work }),
        _ => {
            let concurrent = (kind > 6 && u32::from(kind - 6) < group.unwrap_or(0) - 1).then(|| u32::from(kind - 6));
            Operation::AllToAll(Exchange {
                size,
                staggered: kind == 6,
                concurrent,
                channels,
                group,
                stride,
                compute,
                jitter,
                work,
            })
        }
    }
}

proptest! {
    /// Whatever messages take: after an all-reduce every rank has the sum of all of its group in every part, after an all-gather
    /// all shares, after a reduce-scatter the sum in its share, after an all-to-all something of everyone. Each connection has
    /// carried exactly its bytes, and all ranks are done.
    #[test]
    fn ranks_end_up_with_what_the_operation_promises(
        kind in 0u8..9, group in 2u32..10, stride in 1u32..4, groups in 1u32..3, channels in 1u32..4, extra in 0u64..5000,
        gaps in prop::array::uniform3(0u64..2000), seed in any::<u64>(), most in 1u64..10_000,
    ) {
        let ranks = group * stride * groups;
        let operation = operation(kind, [group, stride, channels], u64::from(group * channels) + extra, gaps);
        let mut job = job(&collective(operation), ranks as usize).expect("a job");
        let mut stream = Stream::new(seed, Purpose::Jitter, 1);
        let state = run(&mut job, &mut || stream.below(most));
        let full = (1u64 << group) - 1;
        for (rank, channels) in (0u32..).zip(&state) {
            let (_, position) = job.ops[0].place(rank);
            for buffer in channels {
                match kind {
                    0..=2 => prop_assert!(buffer.iter().all(|part| *part == full), "{buffer:?}"),
                    4 => prop_assert_eq!(buffer[position as usize], full),
                    _ => prop_assert!((0u32..).zip(buffer).all(|(part, held)| *held == 1 << part), "{buffer:?}"),
                }
            }
        }
        let report = job.report(0);
        prop_assert_eq!(report.iteration.iter().map(|i| i.done).collect::<Vec<_>>(), vec![ranks]);
        prop_assert_eq!(report.runs.len() as u32, ranks / group);
        prop_assert!(report.runs.iter().all(|run| run.together.done == group && run.together.begun == group));
        prop_assert_eq!(job.waiting().count(), 0);
    }

    /// A message is as large as asked for at most, all have bytes, and those of a connection are its total.
    #[test]
    fn messages_are_bounded_and_add_up(kind in 0u8..5, group in 2u32..12, channels in 1u32..5, extra in 0u64..100_000, message in 64u64..3000) {
        let size = u64::from(group * channels) * 65 * 3 + extra;
        let mut operation = operation(kind, [group, 1, channels], size, [0; 3]);
        match &mut operation {
            Operation::AllReduce(o) => o.message = Some(Bytes(message)),
            Operation::AllGather(o) => o.message = Some(Bytes(message)),
            Operation::ReduceScatter(o) => o.message = Some(Bytes(message)),
            Operation::AllToAll(_) => {}
        }
        let Ok(job) = job(&collective(operation), group as usize) else { return Ok(()) }; // larger than a step
        let op = &job.ops[0];
        for conn in &job.conns {
            let sizes: Vec<u64> = (0..conn.plan[0].1).map(|j| op.message(conn.lane, conn.ends, j)).collect();
            prop_assert!(sizes.iter().all(|size| (1..=message).contains(size)), "{sizes:?}");
            prop_assert_eq!(sizes.iter().sum::<u64>(), conn.total);
        }
    }
}

/// Ranks in groups: neighbours by a stride of 1, across them by a larger one.
#[test]
fn groups_are_blocks_with_a_stride() {
    let place = |group, stride, rank| {
        let params = collective(operation(0, [group, stride, 1], 1000, [0; 3]));
        job(&params, 8).expect("a job").ops[0].place(rank)
    };
    assert_eq!([0, 1, 3, 4, 7].map(|rank| place(4, 1, rank)), [(0, 0), (0, 1), (0, 3), (1, 0), (1, 3)]);
    assert_eq!([0, 1, 3, 4, 7].map(|rank| place(2, 4, rank)), [(0, 0), (1, 0), (3, 0), (0, 1), (3, 1)]);
    assert_eq!([0, 1, 2, 4, 7].map(|rank| place(2, 2, rank)), [(0, 0), (1, 0), (0, 1), (2, 0), (3, 1)]);
}

#[test]
fn orders_are_as_listed_by_rack_or_by_the_seed() {
    let order = |order, ranks: &[&str]| {
        let params = Collective {
            order,
            ranks: ranks.iter().map(ToString::to_string).collect(),
            ..collective(operation(0, [2, 1, 1], 1000, [0; 3]))
        };
        let mut job = job(&params, 6).expect("a job");
        job.begin(Time::ZERO);
        let ends: Vec<u32> = std::iter::from_fn(|| job.pop()).map(|draft| draft.src.0).collect();
        ends
    };
    assert_eq!(order(RankOrder::Listed, &["h5", "h0..h2"]), [5, 0, 1, 2]);
    assert_eq!(order(RankOrder::Listed, &["all", "!h3", "!h0"]), [1, 2, 4, 5]);
    assert_eq!(order(RankOrder::Listed, &["!h3", "!h0"]), [1, 2, 4, 5]);
    assert_eq!(order(RankOrder::ByRack, &["h5", "h0..h2"]), [0, 2, 5, 1]);
    let shuffled = order(RankOrder::Shuffled, &["all"]);
    assert_ne!(shuffled, [0, 1, 2, 3, 4, 5]);
    let mut sorted = shuffled;
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
}
