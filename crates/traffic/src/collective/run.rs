//! Execution of a job: every rank proceeds through its operations by information of its own host only.
//!
//! A rank is notified of data that has arrived at its host, of acknowledged data that it sent, and of time. It never reads
//! another rank; [`Records`] collects times over all ranks and is read by nobody here.

use super::plan::{Lane, Op, Part};
use super::record::Records;
use crate::generate::{Draft, Generate};
use fanin_units::{HostId, Span, Stream, Time};
use std::collections::{BTreeSet, VecDeque};

/// A persistent connection from one rank to another.
#[derive(Clone, Debug)]
pub(super) struct Conn {
    /// Sending and receiving rank.
    pub ends: [u32; 2],
    pub lane: Lane,
    /// Operations that use the connection, each with its messages per iteration.
    pub plan: Vec<(u16, u32)>,
    /// Total bytes over all iterations.
    pub total: u64,
}

/// The sending side of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Out {
    written: u64,
    /// Messages of the current operation sent so far.
    sent: u32,
    /// Acknowledged bytes for which the rank waits.
    awaits: Option<u64>,
}

/// The receiving side of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct In {
    /// Number of messages that have arrived, and of those that finished operations have consumed.
    arrived: u64,
    taken: u64,
    /// The next message: its iteration, index in the connection's plan, and number there.
    next: (u32, u16, u32),
    /// Bytes of the connection up to the end of the next message.
    mark: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The rank's host does not know yet that the job has begun.
    Absent,
    Computing,
    Communicating,
    Over,
}

/// Progress of a rule.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    fired: u32,
    busy: bool,
}

/// State of one rank.
struct Rank {
    host: HostId,
    stream: Stream,
    state: State,
    iteration: u32,
    op: u16,
    rules: Vec<Progress>,
    /// Remaining firings and steps of the current operation.
    left: u64,
    /// Steps of an exchange that have begun; for each, the connections not yet acknowledged and the messages not yet
    /// received.
    begun: u32,
    steps: Vec<[u32; 2]>,
    /// Steps that have begun and are not fully acknowledged.
    flying: u32,
}

/// Reason of a wake-up: the job begins or a computation ends; n stands for the work of rule n − 1.
const COMPUTED: u32 = 0;

/// A write of an application into an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Connection, as the flow that it is: index of its `[[traffic]]` table and number within that.
    pub entry: u16,
    pub index: u64,
    pub bytes: u64,
    /// True if nothing is written after this.
    pub last: bool,
    /// Acknowledged bytes of the connection about which the application wants to be notified: all written so far.
    pub tells: Option<u64>,
}

/// A running `collective` entry.
pub(crate) struct Job {
    pub(super) ops: Vec<Op>,
    /// Parts by operation, then rank.
    pub(super) parts: Vec<Vec<Part>>,
    pub(super) conns: Vec<Conn>,
    ranks: Vec<Rank>,
    outs: Vec<Out>,
    ins: Vec<In>,
    pub(super) iterations: u32,
    begin: Option<Time>,
    opened: usize,
    /// Ranks that are left to others, in order.
    elsewhere: Vec<u32>,
    wakes: BTreeSet<(Time, u32, u32)>,
    writes: VecDeque<Write>,
    pub(super) records: Records,
}

impl Job {
    /// Number of connections of the job.
    pub(crate) fn connections(&self) -> usize {
        self.conns.len()
    }

    pub(super) fn new(
        ops: Vec<Op>,
        parts: Vec<Vec<Part>>,
        conns: Vec<Conn>,
        ranks: Vec<(HostId, Stream)>,
        iterations: u32,
    ) -> Job {
        let rank = |(host, stream)| Rank {
            host,
            stream,
            state: State::Absent,
            iteration: 0,
            op: 0,
            rules: Vec::new(),
            left: 0,
            begun: 0,
            steps: Vec::new(),
            flying: 0,
        };
        let ranks: Vec<Rank> = ranks.into_iter().map(rank).collect();
        let mut job = Job {
            records: Records::default(),
            outs: vec![Out::default(); conns.len()],
            ins: vec![In::default(); conns.len()],
            ops,
            parts,
            conns,
            ranks,
            iterations,
            begin: None,
            opened: 0,
            elsewhere: Vec::new(),
            wakes: BTreeSet::new(),
            writes: VecDeque::new(),
        };
        for conn in 0..job.ins.len() {
            job.ins[conn].mark = job.bytes(conn, job.conns[conn].plan[0].0, 0);
        }
        job
    }

    /// Size of message `j` of an operation on a connection.
    fn bytes(&self, conn: usize, op: u16, j: u32) -> u64 {
        let (op, conn) = (&self.ops[usize::from(op)], &self.conns[conn]);
        op.message(conn.lane, conn.ends.map(|rank| op.place(rank).1), j)
    }

    /// Leaves ranks to others, but those at hosts for which `here` is true. Nothing has happened yet but the beginning.
    pub fn keep_ranks(&mut self, here: &dyn Fn(HostId) -> bool) {
        let ranks = (0u32..).zip(&self.ranks);
        self.elsewhere = ranks.filter(|(_, rank)| !here(rank.host)).map(|(number, _)| number).collect();
        let elsewhere = &self.elsewhere;
        self.wakes.retain(|(_, rank, _)| elsewhere.binary_search(rank).is_err());
    }

    /// Adds the records of the ranks that another has kept.
    pub fn absorb(&mut self, other: &mut Job) {
        self.records.absorb(&other.records);
    }

    /// Time at which the next rank has something to do.
    pub fn next_wake(&self) -> Option<Time> {
        self.wakes.first().map(|(at, ..)| *at)
    }

    /// Host of the next rank to wake, if it begins the job then.
    pub fn begins_next(&self) -> Option<HostId> {
        let (_, rank, _) = self.wakes.first()?;
        let rank = &self.ranks[*rank as usize];
        (rank.state == State::Absent).then_some(rank.host)
    }

    /// Postpones the next wake-up to `at`.
    pub fn put_off(&mut self, at: Time) {
        if let Some((_, rank, what)) = self.wakes.pop_first() {
            self.wakes.insert((at, rank, what));
        }
    }

    /// Wakes the next rank, and gives it.
    pub fn wake(&mut self, now: Time) -> Option<u32> {
        let (_, rank, what) = self.wakes.pop_first()?;
        let r = &mut self.ranks[rank as usize];
        match (r.state, what) {
            (State::Absent, _) => {
                self.records.enter(0, now);
                self.compute(rank, now);
            }
            (State::Computing, _) => self.communicate(rank, now),
            (State::Communicating, what) => {
                let rule = what - 1;
                r.rules[rule as usize].busy = false;
                self.fired(rank, rule);
                self.fire(rank, rule, now);
            }
            (State::Over, _) => {}
        }
        self.finish_operations(rank, now);
        Some(rank)
    }

    /// Takes the next write, in the order in which writes were caused.
    pub fn pop_write(&mut self) -> Option<Write> {
        self.writes.pop_front()
    }

    /// Handles `total` bytes arrived at a connection's receiver; returns the byte count about which it wants to be notified
    /// next.
    pub fn arrived(&mut self, conn: usize, total: u64, now: Time) -> u64 {
        let before = self.ins[conn].arrived;
        while self.ins[conn].mark <= total {
            self.ins[conn].arrived += 1;
            self.expect_next(conn);
        }
        let rank = self.conns[conn].ends[1];
        if self.ins[conn].arrived > before && self.ranks[rank as usize].state == State::Communicating {
            let of_in = &self.part(rank).of_in;
            if let Ok(at) = of_in.binary_search_by_key(&(conn as u32), |(conn, _)| *conn) {
                let rule = of_in[at].1;
                self.fire(rank, rule, now);
                self.finish_operations(rank, now);
            }
        }
        self.ins[conn].mark
    }

    /// Handles `total` bytes acknowledged at a connection's sender.
    pub fn acknowledged(&mut self, conn: usize, total: u64, now: Time) {
        let out = &mut self.outs[conn];
        if out.awaits.is_none_or(|awaits| total < awaits) {
            return;
        }
        out.awaits = None;
        let rank = self.conns[conn].ends[0];
        let of_out = &self.part(rank).of_out;
        let Ok(at) = of_out.binary_search_by_key(&(conn as u32), |(conn, _)| *conn) else { return };
        let step = of_out[at].1 as usize;
        let r = &mut self.ranks[rank as usize];
        r.steps[step][0] -= 1;
        r.flying -= u32::from(r.steps[step][0] == 0);
        self.begin_steps(rank);
        self.finish_operations(rank, now);
    }

    /// Describes in words each rank that has begun an operation and not finished it.
    pub fn waiting(&self) -> impl Iterator<Item = String> + '_ {
        let open = (0..).zip(&self.ranks).filter(|(_, r)| r.state == State::Communicating);
        open.map(|(number, r)| {
            let (op, part) = (&self.ops[usize::from(r.op)], self.part(number));
            let missing = part.rules.iter().zip(&r.rules).find(|(rule, progress)| progress.fired < rule.firings);
            let from = missing.and_then(|(rule, progress)| {
                let lacks = |conn: &&u32| self.available(**conn as usize) <= u64::from(progress.fired);
                rule.ins.iter().find(lacks).map(|conn| self.conns[*conn as usize].ends[0])
            });
            let what = from.map_or("its own messages to be acknowledged".to_string(), |from| format!("rank {from}"));
            format!("rank {number} waits for {what} (iteration {}, operation {}, {})", r.iteration, r.op, op.collective)
        })
    }

    fn part(&self, rank: u32) -> &Part {
        &self.parts[usize::from(self.ranks[rank as usize].op)][rank as usize]
    }

    /// Number of messages that have arrived for the current operation and were not consumed before.
    fn available(&self, conn: usize) -> u64 {
        self.ins[conn].arrived - self.ins[conn].taken
    }

    /// Advances a connection's `mark` to the end of its following message.
    fn expect_next(&mut self, conn: usize) {
        let (mut iteration, mut place, mut j) = self.ins[conn].next;
        let plan = &self.conns[conn].plan;
        j += 1;
        if j == plan[usize::from(place)].1 {
            (place, j) = (place + 1, 0);
        }
        if usize::from(place) == plan.len() {
            (iteration, place) = (iteration + 1, 0);
        }
        let bytes = if iteration < self.iterations { self.bytes(conn, plan[usize::from(place)].0, j) } else { u64::MAX };
        let into = &mut self.ins[conn];
        (into.next, into.mark) = ((iteration, place, j), into.mark.saturating_add(bytes));
    }

    /// Starts the computation in front of an operation.
    fn compute(&mut self, rank: u32, now: Time) {
        let r = &mut self.ranks[rank as usize];
        let op = &self.ops[usize::from(r.op)];
        let jitter = if op.jitter == Span::ZERO { Span::ZERO } else { Span::from_ps(r.stream.below(op.jitter.ps())) };
        r.state = State::Computing;
        let until = now.saturating_add(op.compute).saturating_add(jitter);
        if until > now {
            self.wakes.insert((until, rank, COMPUTED));
        } else {
            self.communicate(rank, now);
        }
    }

    /// Enters the operation: sends initial messages and begins steps, and fires rules for messages that have arrived already.
    fn communicate(&mut self, rank: u32, now: Time) {
        let r = &self.ranks[rank as usize];
        let (op, iteration) = (r.op, r.iteration);
        let part = &self.parts[usize::from(op)][rank as usize];
        let channels = self.ops[usize::from(op)].channels;
        let r = &mut self.ranks[rank as usize];
        r.state = State::Communicating;
        r.rules = vec![Progress::default(); part.rules.len()];
        r.left = part.length();
        (r.begun, r.flying) = (0, 0);
        r.steps = vec![[channels; 2]; part.steps.len()];
        self.records.begin(iteration, (op, &self.ops[usize::from(op)]), rank, now);
        for rule in 0..self.part(rank).rules.len() as u32 {
            let initial = self.part(rank).rules[rule as usize].initial;
            (0..initial).for_each(|_| self.send(rank, rule));
        }
        self.begin_steps(rank);
        for rule in 0..self.part(rank).rules.len() as u32 {
            self.fire(rank, rule, now);
        }
    }

    /// Fires a rule as often as its inputs allow.
    fn fire(&mut self, rank: u32, rule: u32, now: Time) {
        let work = self.ops[usize::from(self.ranks[rank as usize].op)].work;
        loop {
            let r = &self.part(rank).rules[rule as usize];
            let progress = self.ranks[rank as usize].rules[rule as usize];
            let ready = r.ins.iter().map(|conn| self.available(*conn as usize)).min().unwrap_or(0);
            if progress.busy || progress.fired == r.firings || ready <= u64::from(progress.fired) {
                return;
            }
            if work > Span::ZERO {
                self.ranks[rank as usize].rules[rule as usize].busy = true;
                self.wakes.insert((now.saturating_add(work), rank, rule + 1));
                return;
            }
            self.fired(rank, rule);
        }
    }

    /// Completes a firing: the rule has consumed a message of each of its connections, and its work is done.
    fn fired(&mut self, rank: u32, rule: u32) {
        let r = &mut self.ranks[rank as usize];
        r.rules[rule as usize].fired += 1;
        r.left -= 1;
        let channels = self.ops[usize::from(r.op)].channels;
        if let Some(step) = r.steps.get_mut((rule / channels) as usize) {
            step[1] -= 1;
            self.begin_steps(rank);
        } else {
            self.send(rank, rule);
        }
    }

    /// Sends the next message of a rule, if there is one.
    fn send(&mut self, rank: u32, rule: u32) {
        let part = &self.parts[usize::from(self.ranks[rank as usize].op)][rank as usize];
        let rule = &part.rules[rule as usize];
        let outs: Vec<u32> = rule.outs.iter().filter(|out| self.outs[**out as usize].sent < rule.sends).copied().collect();
        outs.into_iter().for_each(|out| self.write(out, false));
    }

    /// Begins all steps of an exchange that may begin now.
    fn begin_steps(&mut self, rank: u32) {
        loop {
            let r = &self.ranks[rank as usize];
            let super::plan::Shape::Exchange { limit, staggered } = self.ops[usize::from(r.op)].shape else { return };
            let number = r.begun as usize;
            if number == r.steps.len() || r.flying >= limit || (staggered && number > 0 && r.steps[number - 1][1] > 0) {
                return;
            }
            let all = self.part(rank).steps.len() as u32;
            let tells = limit < all;
            let outs = self.part(rank).steps[number].clone();
            outs.into_iter().for_each(|out| self.write(out, tells));
            let r = &mut self.ranks[rank as usize];
            (r.begun, r.left) = (r.begun + 1, r.left - 1);
            r.flying += u32::from(tells);
        }
    }

    fn write(&mut self, conn: u32, tells: bool) {
        let conn = conn as usize;
        let rank = &self.ranks[self.conns[conn].ends[0] as usize];
        let bytes = self.bytes(conn, rank.op, self.outs[conn].sent);
        let out = &mut self.outs[conn];
        (out.written, out.sent) = (out.written + bytes, out.sent + 1);
        out.awaits = tells.then_some(out.written);
        let write = Write { entry: 0, index: conn as u64, bytes, last: out.written == self.conns[conn].total, tells: out.awaits };
        self.writes.push_back(write);
    }

    /// Finishes an operation with nothing left to do, and goes on to the next one or the next iteration.
    fn finish_operations(&mut self, rank: u32, now: Time) {
        while self.ranks[rank as usize].state == State::Communicating && self.ranks[rank as usize].left == 0 {
            let (op, iteration) = (self.ranks[rank as usize].op, self.ranks[rank as usize].iteration);
            let part = &self.parts[usize::from(op)][rank as usize];
            for (conn, messages) in part.ins() {
                self.ins[conn as usize].taken += u64::from(messages);
            }
            for (conn, _) in part.outs() {
                (self.outs[conn as usize].sent, self.outs[conn as usize].awaits) = (0, None);
            }
            self.records.end(iteration, (op, &self.ops[usize::from(op)]), rank, now);
            let r = &mut self.ranks[rank as usize];
            r.op += 1;
            if usize::from(r.op) == self.ops.len() {
                self.records.leave(iteration, now);
                (r.op, r.iteration) = (0, iteration + 1);
                if r.iteration == self.iterations {
                    r.state = State::Over;
                    return;
                }
                self.records.enter(iteration + 1, now);
            }
            self.compute(rank, now);
        }
    }
}

impl Generate for Job {
    fn begin(&mut self, at: Time) {
        self.begin = Some(at);
        let elsewhere = &self.elsewhere;
        let here = (0..self.ranks.len() as u32).filter(|rank| elsewhere.binary_search(rank).is_err());
        self.wakes.extend(here.map(|rank| (at, rank, COMPUTED)));
    }

    fn next_start(&self) -> Option<Time> {
        self.begin.filter(|_| self.opened < self.conns.len())
    }

    /// The flows of the job are its connections, all of which are opened when it begins.
    fn pop(&mut self) -> Option<Draft> {
        let (begin, conn) = (self.begin?, self.conns.get(self.opened)?);
        let [src, dst] = conn.ends.map(|rank| self.ranks[rank as usize].host);
        let draft = Draft::transfer(src, dst, conn.total, begin, self.opened as u64);
        let first = Some(self.ins[self.opened].mark);
        self.opened += 1;
        Some(Draft { first, ..draft })
    }

    fn total(&self) -> Option<u64> {
        Some(self.conns.len() as u64)
    }

    fn job(&self) -> Option<&Job> {
        Some(self)
    }

    fn job_mut(&mut self) -> Option<&mut Job> {
        Some(self)
    }
}
