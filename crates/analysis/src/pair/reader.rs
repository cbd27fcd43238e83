//! Second pass over two captures: every arrival with the queue that it found, in order of time, while only packets in flight are
//! held.

use super::align::{float, Alignment};
use super::checks::{Checks, Known};
use super::flows::Flows;
use super::identity::Seen;
use super::idle::Idle;
use super::matching::SLACK;
use super::report::{PairReport, Sums};
use super::rows::{Packets, Paired};
use super::side::{Passed, NEVER};
use super::waiting::{Held, Waiting};
use super::waits::Waits;
use super::{Pair, MOST_HELD};
use crate::input::context::name_of;
use crate::input::context::Context;
use crate::input::number::NumberError;
use crate::input::problem::{Problem, Problems};
use crate::input::reader::{Batch, BATCH};
use crate::input::reader::{TraceReader, NO_WAIT};
use crate::{Record, DROPPED, MARKED, NO_DATA, NO_FLOW};
use fanin_units::Span;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Packets of one batch that are read, at most.
const STEPS: usize = 1 << 14;

/// Queues and waits are compared where the port was busy: of packets that waited [ps].
const WAITED: i128 = 1_000_000;

/// Packets left together where one takes so many times as long on the wire as passed between them.
const TOGETHER: f64 = 4.0;

/// Facts about a packet that are known when it arrives.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// Slot of the packet's flow.
    flow: u32,
    bytes: u32,
    /// True if the packet was marked when it arrived; after it has left: if the port marked it.
    marked: bool,
    ttl: u8,
    has_data: bool,
}

/// A packet that has left.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    pub arrived: i128,
    pub left: i128,
    pub bytes: u32,
}

/// A packet that was captured behind only.
#[derive(Clone, Copy, Debug)]
struct Stranger {
    time: i128,
    left: i128,
    arrival: Arrival,
}

/// Packets in the queue: the time at which each leaves it, and its bytes.
#[derive(Debug, Default)]
struct Queue {
    /// Packets that leave after those that came before them, as nearly all do, and others.
    in_order: VecDeque<(i128, u32)>,
    others: BinaryHeap<Reverse<(i128, u32)>>,
    bytes: u64,
}

impl Queue {
    /// Adds a packet that leaves then.
    fn push(&mut self, leaves: i128, bytes: u32) {
        self.bytes += u64::from(bytes);
        if self.in_order.back().is_none_or(|(last, _)| *last <= leaves) {
            self.in_order.push_back((leaves, bytes));
        } else {
            self.others.push(Reverse((leaves, bytes)));
        }
    }

    /// Bytes of the packets that leave later; all others go.
    fn at(&mut self, time: i128) -> u64 {
        while let Some((_, bytes)) = self.in_order.front().copied().filter(|(leaves, _)| *leaves <= time) {
            self.in_order.pop_front();
            self.bytes -= u64::from(bytes);
        }
        while let Some(Reverse((_, bytes))) = self.others.peek().copied().filter(|Reverse((leaves, _))| *leaves <= time) {
            self.others.pop();
            self.bytes -= u64::from(bytes);
        }
        self.bytes
    }
}

/// Reader that makes records of two captures.
pub struct PairReader {
    packets: Packets,
    port: Port,
    /// Time of the next packet behind, by its frame's end, on the clock before [ps]; none: not asked for yet.
    leaves: Option<i128>,
    ended: bool,
    given: u64,
}

/// The port between two captures, as far as it has been read.
struct Port {
    pair: Arc<Pair>,
    waiting: Waiting<Arrival>,
    strangers: VecDeque<Stranger>,
    queue: Queue,
    previous: Option<Left>,
    /// Latest time behind, on the clock before [ps].
    now: i128,
    /// Number of the port in the trace.
    number: Option<u32>,
    flows: Flows,
    sums: Sums,
    waits: Waits,
    checks: Checks,
    known: Known,
    idle: Idle,
    /// Time that a byte takes [ps].
    byte: f64,
    /// First and last arrival that is counted [ps].
    window: (i128, i128),
    /// Arrival of the last record [ps].
    latest: i128,
}

impl PairReader {
    pub fn new(pair: Arc<Pair>) -> PairReader {
        PairReader { packets: pair.packets(), port: Port::new(pair), leaves: None, ended: false, given: 0 }
    }

    /// Reads the packet that comes first; false at the end.
    fn step(&mut self) -> Result<bool, Problems> {
        let PairReader { packets, port, leaves, .. } = self;
        let now = match *leaves {
            Some(now) => now,
            None => {
                let Some(Paired { seen, .. }) = packets.first(1)? else {
                    self.ended = true;
                    return Ok(false);
                };
                // A frame's start is known with its size only; by its end it is late by less than what is held ahead.
                *leaves.insert(port.alignment().left(seen.time, 0))
            }
        };
        if let Some(Paired { seen, .. }) = packets.first(0)?.filter(|paired| paired.seen.time <= now + SLACK) {
            port.arrive(seen)?;
            packets.skip(0);
        } else if let Some(paired) = packets.first(1)? {
            port.leave(paired, now);
            packets.skip(1);
            *leaves = None;
        }
        Ok(true)
    }
}

impl Port {
    fn new(pair: Arc<Pair>) -> Port {
        Port {
            waiting: Waiting::default(),
            strangers: VecDeque::new(),
            queue: Queue::default(),
            previous: None,
            now: NEVER,
            number: None,
            flows: Flows::default(),
            sums: Sums::default(),
            waits: Waits::default(),
            checks: Checks::default(),
            known: Known::new(pair.coarse.matching),
            idle: Idle::new(pair.alignment.behind, pair.alignment.tick, pair.pace(), pair.overhead),
            byte: pair.pace(),
            window: (NEVER, -NEVER),
            latest: NEVER,
            pair,
        }
    }

    fn alignment(&self) -> &Alignment {
        &self.pair.alignment
    }

    /// A packet was captured before.
    fn arrive(&mut self, seen: &Seen) -> Result<(), Problem> {
        let flow = self.flows.take(seen);
        if self.flows.may_be_new(flow) {
            self.known.before(seen);
        }
        let Seen { bytes, marked, ttl, has_data, .. } = *seen;
        self.waiting.push(seen.time, Arrival { flow, bytes, marked, ttl, has_data });
        if self.waiting.len() > MOST_HELD {
            return Err(self.too_many(seen.time));
        }
        Ok(())
    }

    fn too_many(&self, time: i128) -> Problem {
        let longest = Span::from_ps(u64::try_from(self.alignment().longest).unwrap_or(u64::MAX));
        let since = u64::try_from(time - self.pair.start()).unwrap_or(0);
        Problem::new(format!("more than {MOST_HELD} packets are between both captures, {} after the start", Span::from_ps(since)))
            .file(&self.pair.files.before[0].file.path)
            .suggestion(format!("the longest wait is {longest}: is it one port?"))
    }

    /// A packet was captured behind, whose frame ended `now`.
    fn leave(&mut self, Paired { seen, partner }: &Paired, now: i128) {
        self.now = self.now.max(now);
        let at = if self.alignment().by_byte == 0.0 { now } else { self.alignment().left(seen.time, seen.bytes) };
        let (before, overtaken) = (self.waiting.last, self.waiting.overtaken);
        let found = partner.and_then(|partner| self.waiting.leave(partner, at)).map(|held| {
            let was = held.what.marked;
            held.what.marked = seen.marked && !was;
            (held.time, held.what, was)
        });
        let Some((arrived, what, was_marked)) = found else {
            self.checks.interrupted();
            self.stranger(seen, at);
            return;
        };
        let left = Left { arrived, left: at.max(arrived), bytes: what.bytes };
        if !self.counts(arrived) {
            self.checks.interrupted();
            self.previous = Some(left);
            return;
        }
        if at < arrived {
            self.sums.negative += 1;
            self.sums.most_negative = self.sums.most_negative.max(arrived - at);
        }
        self.sums.matched += 1;
        self.known.found(seen);
        self.sums.overtaken += self.waiting.overtaken - overtaken;
        if let Some(late) = self.flows.left(what.flow, arrived) {
            self.checks.behind_own_flow(late);
        }
        self.idle.leaves(left);
        self.sums.marked += u64::from(what.marked);
        self.checks.unmarked += u64::from(was_marked && !seen.marked);
        self.checks.risen += u64::from(seen.ttl > what.ttl);
        match (before, self.waiting.last) {
            (Some(before), Some(last)) if before < last => {
                let (overhead, there) = (self.pair.overhead, &self.alignment().destinations);
                let flows = &self.flows;
                let here = |what: &&Arrival| there.as_ref().is_none_or(|there| there.contains(&flows.receiver(what.flow)));
                let unseen = self.waiting.unseen(before + 1, last).filter(here);
                let missing = unseen.fold((0, 0), |(bytes, n), what| (bytes + u64::from(what.bytes) + overhead, n + 1));
                self.checks.leaves(last, left, overhead, missing);
            }
            _ => self.checks.interrupted(),
        }
        self.sends(left);
    }

    /// True if packets that arrive at this time are counted.
    fn counts(&self, arrived: i128) -> bool {
        (self.window.0..=self.window.1).contains(&arrived)
    }

    /// Counts a packet that has left right behind the one before as time in which the port was busy.
    fn sends(&mut self, left: Left) {
        if let Some(previous) = self.previous.filter(|p| left.arrived <= p.left && left.left >= p.left) {
            self.sums.busy += 1;
            self.sums.busy_bytes += u128::from(previous.bytes);
            self.sums.busy_wire += u128::from(previous.bytes) + u128::from(self.pair.overhead);
            let time = left.left - previous.left;
            self.sums.busy_time += time.unsigned_abs();
            self.sums.together += u64::from(TOGETHER * float(time) < f64::from(previous.bytes) * self.byte);
        }
        self.previous = Some(left);
    }

    /// Queue and wait of a packet that was captured behind only: it waited as long as the one in front of it if it left right
    /// behind that, else not.
    fn stranger(&mut self, seen: &Seen, left: i128) {
        let Some(previous) = self.previous else {
            // It may have been there before the capture began.
            self.queue.push(left, seen.bytes);
            self.sums.left_out.behind_at_start += 1;
            return;
        };
        if seen.time > self.alignment().last_match && left > self.alignment().before_ends {
            self.sums.left_out.behind_at_end += 1;
            return;
        }
        let sent = (f64::from(previous.bytes) * self.byte) as i128;
        let follows = left - previous.left <= sent + sent / 2;
        let time = if follows { previous.arrived + (left - previous.left) } else { left };
        let latest = self.strangers.back().map_or(self.latest, |last| last.time);
        let time = time.max(latest).min(left);
        let flow = self.flows.take(seen);
        let arrival = Arrival { flow, bytes: seen.bytes, marked: false, ttl: seen.ttl, has_data: seen.has_data };
        self.strangers.push_back(Stranger { time, left, arrival });
        let left = Left { arrived: time, left, bytes: seen.bytes };
        self.idle.stranger(left);
        if self.counts(time) {
            self.sums.only_behind += 1;
            self.sums.only_behind_bytes += u64::from(seen.bytes);
            self.known.behind_only(seen.flow);
            self.sends(left);
        } else {
            self.previous = Some(left);
        }
    }

    /// True if later packets have left that this one would not have let pass.
    fn is_passed(&self, number: u64) -> bool {
        self.waiting.last.is_some_and(|last| number + self.alignment().late < last)
    }

    /// True if the fate of a packet is known.
    fn is_decided(&self, number: u64, held: &Held<Arrival>) -> bool {
        let alignment = self.alignment();
        held.is_out() || self.is_passed(number) || self.now - held.time > alignment.longest
    }

    /// Hands over packets whose fate is known; that of all is, once the captures have ended.
    fn emit(&mut self, ended: bool, context: &mut Context, batch: &mut Batch) -> Result<(), Problems> {
        while batch.records.len() < BATCH {
            let head = self.waiting.front();
            let stranger = self.strangers.front().filter(|s| head.as_ref().is_none_or(|(_, held)| s.time <= held.time));
            if let Some(Stranger { time, left, arrival }) = stranger.copied() {
                self.strangers.pop_front();
                self.record((time, Some(left)), &arrival, context, batch)?;
                self.flows.leave(arrival.flow);
                continue;
            }
            let Some((number, held)) = head else { return Ok(()) };
            if !ended && !self.is_decided(number, held) {
                return Ok(());
            }
            let (time, out, what) = (held.time, held.out(), held.what);
            let passed = self.is_passed(number);
            self.waiting.pop();
            if out.is_some() || !self.is_left_out(time, &what, passed) {
                self.record((time, out), &what, context, batch)?;
            }
            self.flows.leave(what.flow);
        }
        Ok(())
    }

    /// True if a packet that never came out is none of this port, or came when the capture behind did not run.
    fn is_left_out(&mut self, time: i128, what: &Arrival, passed: bool) -> bool {
        let alignment = &self.pair.alignment;
        let out = &mut self.sums.left_out;
        let counter = if alignment.destinations.as_ref().is_some_and(|there| !there.contains(&self.flows.receiver(what.flow))) {
            &mut out.elsewhere
        } else if time < alignment.behind.0 {
            &mut out.at_start
        } else if time > alignment.behind.1 - alignment.longest && !passed {
            &mut out.at_end
        } else {
            return false;
        };
        *counter += 1;
        true
    }

    fn record(
        &mut self,
        (time, left): (i128, Option<i128>),
        arrival: &Arrival,
        context: &mut Context,
        batch: &mut Batch,
    ) -> Result<(), Problems> {
        let queue = self.queue.at(time);
        self.sums.peak = self.sums.peak.max(queue);
        let late = |_: NumberError| {
            let file = &self.pair.files.before[0].file.path;
            Problem::new("is before the start of the trace, or more than 106 days after it")
                .file(file)
                .value(format!("{time} ps"))
        };
        let at = context.origin.time(u128::try_from(time).unwrap_or(0)).map_err(late)?;
        let connections = &self.pair.connections;
        let flow = self.flows.number(arrival.flow, |key| {
            let name = name_of((key.0, key.1), key.3, key.2, key.4);
            context.flows.lock().connected(name.as_bytes(), || connections.of(key, context.origin))
        })?;
        let port = match self.number {
            Some(port) => port,
            None => *self.number.insert(context.ports.index(self.pair.port.as_bytes())?),
        };
        let mut flags = if arrival.has_data { 0 } else { NO_DATA };
        let wait = left.map(|left| left.max(time) - time);
        if let Some(wait) = wait {
            flags |= if arrival.marked { MARKED } else { 0 };
            if wait > 0 {
                self.queue.push(time + wait, arrival.bytes);
            }
            if wait > WAITED && self.counts(time) {
                let (w, q) = (float(wait), queue as f64);
                let sums = [1.0, w * w, w * q, q * q];
                self.sums.pairs.iter_mut().zip(sums).for_each(|(sum, x)| *sum += x);
            }
            if self.counts(time) {
                self.waits.add(flow, u64::try_from(wait).unwrap_or(u64::MAX - 1), at.ps());
            }
        } else {
            flags |= DROPPED;
            if self.counts(time) {
                self.sums.dropped += 1;
                self.checks.at_empty += u64::from(queue == 0);
                if arrival.has_data && connections.acknowledged() {
                    self.known.dropped(self.flows.key(arrival.flow), arrival.bytes);
                }
                self.waits.dropped(flow);
            }
        }
        if self.counts(time) {
            self.sums.first.get_or_insert(time);
            self.sums.last = time;
        }
        self.latest = time;
        batch.records.push(Record { time: at, queue, frame: arrival.bytes, flow, flags });
        batch.ports.push(port);
        batch.waits.push(wait.map_or(NO_WAIT, |wait| u64::try_from(wait).unwrap_or(NO_WAIT - 1)));
        Ok(())
    }
}

impl TraceReader for PairReader {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        batch.first_row = self.given;
        self.port.window = context.origin.window(self.port.pair.window);
        let mut steps = 0;
        loop {
            self.port.emit(self.ended, context, batch)?;
            if batch.records.len() >= BATCH || steps == STEPS {
                break;
            }
            steps += 1;
            if !self.ended && self.step()? {
                continue;
            }
            // Whatever arrives now is not seen behind any more.
            if self.port.waiting.len() + self.port.strangers.len() == 0 {
                if self.packets.first(0)?.is_none() {
                    break;
                }
                self.packets.skip(0);
                self.port.sums.left_out.at_end += 1;
            }
        }
        self.given += batch.records.len() as u64;
        Ok(!batch.records.is_empty() || steps == STEPS)
    }

    fn place(&self, row: u64) -> String {
        format!("arrival {row}")
    }

    fn progress(&self) -> f64 {
        0.5 + self.packets.progress() / 2.0
    }

    fn finish(&mut self, context: &mut Context) {
        self.port.finish(self.packets.passed(), context);
    }
}

impl Port {
    /// Reports what was found, and how far it can be trusted.
    fn finish(&mut self, passed: [&Passed; 2], context: &mut Context) {
        self.sums.alike = self.waiting.alike;
        let lookup = context.flows.lookup();
        let waiting = self.waits.finish((self.pair.top, !self.pair.with_transfers().is_empty()), &|flow| {
            if flow == NO_FLOW {
                String::new()
            } else {
                lookup(flow).name.to_string()
            }
        });
        let pair = &self.pair;
        let mut report = PairReport::new(pair.files.names(), (&pair.coarse, &pair.alignment), &self.sums, passed, waiting);
        let names = [report.before.as_slice(), report.behind.as_slice()];
        let mut findings = Vec::new();
        self.checks.findings(names, (pair, &self.sums, &self.known, &self.idle), passed, &mut findings);
        let swapped = findings.iter().any(|finding| finding.code == "swapped");
        report.judge(pair.rate, passed, self.waits.never_left(), swapped);
        context.findings.append(&mut findings);
        context.notes.extend(report.notes.iter().cloned());
        pair.reported(report);
    }
}
