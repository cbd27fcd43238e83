//! Tables of a run, and sums for its summary.

use super::capture::Capturing;
use super::fingerprint::Fingerprint;
use fanin_packet::PacketId;
use fanin_switch::DropReason;
use fanin_telemetry::{
    CollectiveRow, DropRow, EventClock, FlowRow, HopRow, HostRow, Keep, Keeper, KeptRows, MessageRow, Moment, Name, PauseRow,
    PortRow, QueryRow, QueueRow, Row, RowNumber, SegmentRow, StampRow, StateRow, Table, TableError, VoqRow,
};
use fanin_traffic::{CollectiveJob, Query};
use fanin_transport::AbortReason;
use fanin_units::{Bytes, Span, Time};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Names of all tables.
pub const TABLES: [&str; 14] = [
    FlowRow::TABLE,
    QueryRow::TABLE,
    CollectiveRow::TABLE,
    PortRow::TABLE,
    QueueRow::TABLE,
    DropRow::TABLE,
    PauseRow::TABLE,
    StateRow::TABLE,
    VoqRow::TABLE,
    StampRow::TABLE,
    HostRow::TABLE,
    MessageRow::TABLE,
    SegmentRow::TABLE,
    HopRow::TABLE,
];

/// Name of captured frames in the manifest.
const PACKETS: &str = "packets";

/// Tables of a run, and sums for its summary.
pub struct Tables {
    pub flows: Table<FlowRow>,
    pub queries: Table<QueryRow>,
    pub collectives: Table<CollectiveRow>,
    pub ports: Table<PortRow>,
    pub queues: Table<QueueRow>,
    pub drops: Table<DropRow>,
    pub pauses: Table<PauseRow>,
    /// States of ports, as mechanisms report them.
    pub states: Table<StateRow>,
    /// Samples of virtual output queues.
    pub voqs: Table<VoqRow>,
    pub stamps: Table<StampRow>,
    /// Tables of followed flows: states of senders, messages, packets, links that these have crossed.
    pub hosts: Table<HostRow>,
    pub messages: Table<MessageRow>,
    pub segments: Table<SegmentRow>,
    pub hops: Table<HopRow>,
    /// Capture of frames at hosts and links.
    pub capture: Option<Box<Capturing>>,
    /// One entry per transfer that completed, by the size of the flow: see [`SIZES`].
    pub outcomes: [Vec<Outcome>; SIZES.len() + 1],
    pub drop_counts: BTreeMap<&'static str, u64>,
    /// Marks by policies that the inner loop does not serve by itself; the rest are by plain thresholds.
    /// Few, and in no order; a reason may stand here twice.
    pub mark_counts: Vec<(&'static str, u64)>,
    /// Sums over transfers that have ended.
    pub sums: FlowSums,
    pub datagram_sums: DatagramSums,
    /// Time at which the last flow ended: all its data had arrived, or its transport or the run gave it up.
    pub flows_until: Time,
    /// The first flows that were aborted, each with its event where rows are held.
    pub aborted: Vec<(Moment, Aborted)>,
    /// The event that is handled, where rows are held.
    pub clock: Option<Arc<EventClock>>,
    pub fingerprint: Fingerprint,
    groups: Vec<Name>,
    /// Names in `states`, which rows share.
    names: BTreeMap<&'static str, Name>,
    answers: Vec<Answers>,
    /// Rows of watched ports on their way to the table.
    /// Each with its event, where rows are held.
    keeper: Keeper<(Moment, QueueRow)>,
    /// Row of each packet at a watched port that marks or drops at dequeue, while the packet waits and its fate is open.
    open: BTreeMap<PacketId, (u32, RowNumber)>,
}

/// Aborted flows that the summary lists.
const ABORTED: usize = 10;

/// A flow that its transport gave up.
#[derive(Clone, Debug, PartialEq)]
pub struct Aborted {
    pub flow: u32,
    pub src: Name,
    pub dst: Name,
    pub size: u64,
    pub reason: AbortReason,
}

/// Bounds between the flow sizes that the summary distinguishes: those that the papers of this field report.
pub const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];

/// Record of a completed transfer for the summary: 16 bytes, so that 50 million of them fit into 1 GB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Completion time of the transfer.
    pub fct: Span,
    /// Completion time over that on an idle network.
    pub slowdown: f64,
}

/// Sums over flows of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramSums {
    pub flows: u64,
    pub sent: u64,
    pub received: u64,
    /// Payload bytes that arrived.
    pub delivered: u64,
}

/// Sums over transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSums {
    pub complete: u64,
    pub incomplete: u64,
    pub aborted: u64,
    pub delivered: u64,
    pub packets_sent: u64,
    pub retransmits: u64,
    pub timeouts: u64,
}

impl DatagramSums {
    fn add(&mut self, other: &DatagramSums) {
        self.flows += other.flows;
        self.sent += other.sent;
        self.received += other.received;
        self.delivered += other.delivered;
    }
}

impl FlowSums {
    fn add(&mut self, other: &FlowSums) {
        self.complete += other.complete;
        self.incomplete += other.incomplete;
        self.aborted += other.aborted;
        self.delivered += other.delivered;
        self.packets_sent += other.packets_sent;
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
    }
}

/// Answers that a query has received, and the time of the last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answers {
    pub count: u32,
    pub last: Option<Time>,
}

/// Place to which tables are written.
pub enum Destination<'a> {
    /// No place: the summary is all there is.
    Nowhere,
    /// Tables are kept in memory.
    Memory,
    /// Held, each row with its event, for those of other parts of the network.
    Held(Arc<EventClock>),
    /// Tables are Parquet files in this folder.
    Folder(&'a Path),
}

/// Choice of the tables that are written besides flows and queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// True if some traffic is a job.
    pub collectives: bool,
    pub ports: bool,
    pub queues: bool,
    pub drops: bool,
    /// True if some port may be paused.
    pub pauses: bool,
    /// True if some mechanism records states of ports.
    pub states: bool,
    /// Samples of virtual output queues.
    pub voqs: bool,
    pub stamps: bool,
    /// Tables of followed flows, and messages, which are recorded of other flows, too.
    pub hosts: bool,
    pub messages: bool,
    /// Number of ports whose packets are recorded, and the choice of the records that are kept.
    pub watched: usize,
    pub keep: Keep,
}

impl Tables {
    /// # Errors
    /// When a table cannot be created.
    pub fn new(destination: &Destination<'_>, tables: Wanted, groups: Vec<Name>) -> Result<Self, TableError> {
        fn table<R: fanin_telemetry::Row>(on: bool, destination: &Destination<'_>) -> Result<Table<R>, TableError> {
            match destination {
                _ if !on => Ok(Table::discard()),
                Destination::Nowhere => Ok(Table::discard()),
                Destination::Memory => Ok(Table::keep()),
                Destination::Held(clock) => Ok(Table::held(clock.clone())),
                Destination::Folder(folder) => Table::file(folder),
            }
        }
        Ok(Tables {
            flows: table(true, destination)?,
            queries: table(true, destination)?,
            collectives: table(tables.collectives, destination)?,
            ports: table(tables.ports, destination)?,
            queues: table(tables.queues, destination)?,
            drops: table(tables.drops, destination)?,
            pauses: table(tables.pauses, destination)?,
            states: table(tables.states, destination)?,
            voqs: table(tables.voqs, destination)?,
            stamps: table(tables.stamps, destination)?,
            hosts: table(tables.hosts, destination)?,
            messages: table(tables.messages, destination)?,
            segments: table(tables.hosts, destination)?,
            hops: table(tables.hosts, destination)?,
            capture: None,
            outcomes: Default::default(),
            drop_counts: BTreeMap::new(),
            mark_counts: Vec::new(),
            sums: FlowSums::default(),
            datagram_sums: DatagramSums::default(),
            flows_until: Time::ZERO,
            aborted: Vec::new(),
            clock: match destination {
                Destination::Held(clock) => Some(clock.clone()),
                _ => None,
            },
            fingerprint: Fingerprint::default(),
            groups,
            names: BTreeMap::new(),
            answers: Vec::new(),
            keeper: Keeper::new(tables.keep, tables.watched),
            open: BTreeMap::new(),
        })
    }

    /// The name of a traffic entry.
    pub fn group(&self, entry: u16) -> Name {
        self.groups[usize::from(entry)].clone()
    }

    /// Records a state of a port by a mechanism: the mechanism's key, the side of the port, the state.
    pub fn state(&mut self, time: Time, port: Name, texts: [&'static str; 3], degree: u32) -> Result<(), TableError> {
        let [mechanism, about, state] = texts.map(|text| self.names.entry(text).or_insert_with(|| text.into()).clone());
        self.states.push(StateRow { time_ps: time.ps(), port, mechanism, about, state, degree })
    }

    /// Counts a flow that its transport gave up; its row is written separately.
    pub fn flow_aborted(&mut self, row: &FlowRow, reason: AbortReason) {
        if self.aborted.len() < ABORTED {
            let (src, dst) = (row.src.clone(), row.dst.clone());
            let moment = self.clock.as_deref().map(EventClock::now).unwrap_or_default();
            self.aborted.push((moment, Aborted { flow: row.flow, src, dst, size: row.size_bytes, reason }));
        }
    }

    /// Records a transfer that has ended, or that the end of the run cuts off.
    pub fn transfer(&mut self, row: FlowRow, fct: Option<Span>) -> Result<(), TableError> {
        self.fingerprint.add_flow(&row);
        let sums = &mut self.sums;
        match row.status.to_string().as_str() {
            "complete" => sums.complete += 1,
            "aborted" => sums.aborted += 1,
            _ => sums.incomplete += 1,
        }
        sums.delivered += row.delivered_bytes;
        sums.packets_sent += row.packets_sent;
        sums.retransmits += row.retransmits;
        sums.timeouts += u64::from(row.timeouts);
        if let Some(fct) = fct {
            let slowdown = fct.ps() as f64 / row.ideal_ps.max(1) as f64;
            self.outcomes[SIZES.partition_point(|size| *size <= row.size_bytes)].push(Outcome { fct, slowdown });
        }
        self.flows.push(row)
    }

    /// Records a flow of datagrams that has ended, or that the end of the run cuts off, with the datagrams received.
    pub fn datagrams(&mut self, row: FlowRow, received: u64) -> Result<(), TableError> {
        self.fingerprint.add_flow(&row);
        let sums = &mut self.datagram_sums;
        sums.flows += 1;
        sums.sent += row.packets_sent;
        sums.received += received;
        sums.delivered += row.delivered_bytes;
        self.flows.push(row)
    }

    /// A response to a query is complete.
    pub fn query_answered(&mut self, query: Option<u32>, now: Time) {
        let Some(query) = query else { return };
        let query = query as usize;
        if self.answers.len() <= query {
            self.answers.resize(query + 1, Answers::default());
        }
        self.answers[query].count += 1;
        self.answers[query].last = Some(now);
    }

    /// Writes the table of queries; gives the completion times of those that were answered in full.
    pub fn finish_queries<'q>(
        &mut self,
        queries: impl Iterator<Item = &'q Query>,
        hosts: &[Name],
    ) -> Result<Vec<Option<Span>>, TableError> {
        let mut times = Vec::new();
        for (i, query) in queries.enumerate() {
            let answers = self.answers.get(i).copied().unwrap_or_default();
            let finish = if answers.count >= query.responses { answers.last } else { None };
            times.push(finish.map(|at| at.since(query.start)));
            self.queries.push(QueryRow {
                query: i as u32,
                group: self.groups[usize::from(query.entry)].clone(),
                client: hosts[query.client.index()].clone(),
                start_ps: query.start.ps(),
                finish_ps: finish.map(Time::ps),
                responses: query.responses,
                size_bytes: query.size,
            })?;
        }
        Ok(times)
    }

    /// Writes the table of collective operations.
    pub fn finish_collectives(&mut self, jobs: &[CollectiveJob]) -> Result<(), TableError> {
        for job in jobs {
            let group = self.groups[usize::from(job.entry)].clone();
            for run in &job.runs {
                let op = &job.operations[usize::from(run.operation)];
                let (together, time) = (run.together, run.together.time(op.ranks));
                self.collectives.push(CollectiveRow {
                    group: group.clone(),
                    iteration: run.iteration,
                    operation: u32::from(run.operation),
                    collective: op.collective.into(),
                    algorithm: op.algorithm.into(),
                    communicator: run.group,
                    ranks: op.ranks,
                    size_bytes: op.size.get(),
                    start_ps: together.start.ps(),
                    ready_ps: (together.begun == op.ranks).then_some(together.ready.ps()),
                    finish_ps: time.map(|_| together.finish.ps()),
                    algbw_bps: time.map(|time| op.algorithm_bandwidth(time).bps()),
                    busbw_bps: time.map(|time| op.bus_bandwidth(time).bps()),
                })?;
            }
        }
        Ok(())
    }

    /// Adds what the tables of another part of the network have counted; rows are no part of it.
    pub fn absorb(&mut self, other: &mut Tables) {
        for (all, more) in self.outcomes.iter_mut().zip(&mut other.outcomes) {
            all.append(more);
        }
        other.drop_counts.iter().for_each(|(reason, n)| *self.drop_counts.entry(reason).or_default() += n);
        self.mark_counts.append(&mut other.mark_counts);
        self.sums.add(&other.sums);
        self.datagram_sums.add(&other.datagram_sums);
        self.flows_until = self.flows_until.max(other.flows_until);
        self.aborted.append(&mut other.aborted);
        self.aborted.sort_by_key(|(moment, _)| *moment);
        self.aborted.truncate(ABORTED);
        self.keeper.absorb(&other.keeper);
        self.fingerprint.absorb(other.fingerprint);
        if self.answers.len() < other.answers.len() {
            self.answers.resize(other.answers.len(), Answers::default());
        }
        for (all, more) in self.answers.iter_mut().zip(&other.answers) {
            all.count += more.count;
            all.last = all.last.max(more.last);
        }
    }

    /// Counts a drop that no port made.
    pub fn count_drop(&mut self, reason: DropReason) {
        *self.drop_counts.entry(reason.name()).or_default() += 1;
    }

    /// A packet was dropped at a port.
    pub fn drop(&mut self, row: DropRow, reason: DropReason) -> Result<(), TableError> {
        self.count_drop(reason);
        if self.drops.is_on() {
            self.drops.push(row)
        } else {
            Ok(())
        }
    }

    /// A packet has reached watched port number `port`. `later`: it is that packet, and whether it is marked or
    /// dropped is decided when it is dequeued.
    #[inline(always)]
    pub fn queue(&mut self, port: u32, row: QueueRow, later: Option<PacketId>) -> Result<(), TableError> {
        if later.is_none() && self.keeper.lets_pass(port as usize) {
            self.queues.push(row)
        } else {
            self.queue_kept(port, row, later)
        }
    }

    /// Records a packet at a watched port whose row may have to wait.
    #[inline(never)]
    fn queue_kept(&mut self, port: u32, row: QueueRow, later: Option<PacketId>) -> Result<(), TableError> {
        let found = (Time::from_ps(row.time_ps), Bytes(row.queue_bytes));
        let queues = &mut self.queues;
        let moment = self.clock.as_deref().map(EventClock::now).unwrap_or_default();
        let number =
            self.keeper.push(port as usize, found, ((moment, row), later.is_some()), &mut |(at, row)| queues.push_at(at, row))?;
        if let Some(packet) = later {
            self.open.insert(packet, (port, number));
        }
        Ok(())
    }

    /// Completes the row of a packet that has left the queue of a port that marks or drops then; the port need not be watched.
    /// Classes may overtake one another. `dropped`: it is dropped, and whether it was in the queue until then.
    pub fn queue_dequeued(&mut self, packet: PacketId, marked: bool, dropped: Option<bool>) -> Result<(), TableError> {
        let Some((port, number)) = self.open.remove(&packet) else { return Ok(()) };
        let queues = &mut self.queues;
        let settle = |(_, row): &mut (Moment, QueueRow)| {
            row.marked |= marked;
            (row.dropped, row.at_head) = (dropped.is_some(), dropped == Some(true));
        };
        self.keeper.close(port as usize, number, settle, &mut |(at, row)| queues.push_at(at, row))
    }

    /// Changes the row of a packet, which stays open.
    pub fn queue_changed(&mut self, packet: PacketId, change: impl FnOnce(&mut QueueRow)) {
        if let Some((port, number)) = self.open.get(&packet) {
            self.keeper.change(*port as usize, *number, |(_, row)| change(row));
        }
    }

    /// Settles all rows that are still open: they are written as they are.
    pub fn settle(&mut self) -> Result<(), TableError> {
        self.open.clear();
        let queues = &mut self.queues;
        self.keeper.finish(&mut |(at, row)| queues.push_at(at, row))
    }

    /// Records of watched ports that wait for what becomes of them, or of those before them: how many, and the first time of which one may
    /// still be written. `now`: the time reached.
    pub fn open_records(&self, now: Time) -> (usize, Time) {
        let (waiting, first) = self.keeper.waiting();
        let first = first.map_or(Time::MAX, |(moment, _)| Time::from_ps(moment.time));
        let back = match self.keeper.keep() {
            Keep::Around { before, .. } => Time::from_ps(now.ps().saturating_sub(before.ps())),
            Keep::All | Keep::Last { .. } => Time::MAX,
        };
        (waiting, first.min(back))
    }

    /// Writes records of watched ports that need not wait any longer.
    pub fn write_decided(&mut self, now: Time) -> Result<(), TableError> {
        let queues = &mut self.queues;
        self.keeper.give(now, &mut |(at, row)| queues.push_at(at, row))
    }

    /// Choice of the records of watched ports that are kept.
    pub fn keep(&self) -> Keep {
        self.keeper.keep()
    }

    /// Counts of the rows of each watched port, kept and not.
    pub fn kept_rows(&self) -> Vec<KeptRows> {
        self.keeper.rows().collect()
    }

    /// Rows of all tables so far.
    pub fn rows(&self) -> u64 {
        let of_flows = self.flows.rows() + self.messages.rows() + self.segments.rows() + self.hops.rows();
        let of_ports = self.ports.rows() + self.queues.rows() + self.drops.rows() + self.stamps.rows();
        of_flows + of_ports + self.pauses.rows() + self.states.rows() + self.voqs.rows() + self.hosts.rows()
    }

    /// Notes that the run has ended at `now`: no later frame becomes known.
    pub fn settle_capture(&mut self, now: Time) {
        if let Some(capture) = self.capture.as_deref_mut() {
            capture.settle(now);
        }
    }

    /// Closes all tables; gives their names and numbers of rows.
    pub fn finish(&mut self) -> Result<Vec<(&'static str, u64)>, TableError> {
        self.settle()?;
        let mut rows = vec![
            (FlowRow::TABLE, self.flows.finish()?),
            (QueryRow::TABLE, self.queries.finish()?),
            (CollectiveRow::TABLE, self.collectives.finish()?),
            (PortRow::TABLE, self.ports.finish()?),
            (QueueRow::TABLE, self.queues.finish()?),
            (DropRow::TABLE, self.drops.finish()?),
            (PauseRow::TABLE, self.pauses.finish()?),
            (StateRow::TABLE, self.states.finish()?),
            (VoqRow::TABLE, self.voqs.finish()?),
            (StampRow::TABLE, self.stamps.finish()?),
            (HostRow::TABLE, self.hosts.finish()?),
            (MessageRow::TABLE, self.messages.finish()?),
            (SegmentRow::TABLE, self.segments.finish()?),
            (HopRow::TABLE, self.hops.finish()?),
        ];
        if let Some(capture) = &mut self.capture {
            rows.push((PACKETS, capture.finish()?));
        }
        Ok(rows)
    }

    /// Makes all tables readable as far as they have been written; gives their names and numbers of rows.
    pub fn seal(&mut self) -> Vec<(&'static str, u64)> {
        let mut rows = vec![
            (FlowRow::TABLE, self.flows.seal().unwrap_or(0)),
            (QueryRow::TABLE, self.queries.seal().unwrap_or(0)),
            (CollectiveRow::TABLE, self.collectives.seal().unwrap_or(0)),
            (PortRow::TABLE, self.ports.seal().unwrap_or(0)),
            (QueueRow::TABLE, self.queues.seal().unwrap_or(0)),
            (DropRow::TABLE, self.drops.seal().unwrap_or(0)),
            (PauseRow::TABLE, self.pauses.seal().unwrap_or(0)),
            (StateRow::TABLE, self.states.seal().unwrap_or(0)),
            (VoqRow::TABLE, self.voqs.seal().unwrap_or(0)),
            (StampRow::TABLE, self.stamps.seal().unwrap_or(0)),
            (HostRow::TABLE, self.hosts.seal().unwrap_or(0)),
            (MessageRow::TABLE, self.messages.seal().unwrap_or(0)),
            (SegmentRow::TABLE, self.segments.seal().unwrap_or(0)),
            (HopRow::TABLE, self.hops.seal().unwrap_or(0)),
        ];
        rows.extend(self.capture.as_ref().map(|capture| (PACKETS, capture.written())));
        rows
    }

    /// Closes all tables; a table that does not fit is closed without the rows that do not. The most valuable and smallest go
    /// first.
    pub fn rescue(&mut self) -> Vec<(&'static str, u64)> {
        fn close<R: Row>(table: &mut Table<R>) -> u64 {
            table.finish().or_else(|_| table.seal()).unwrap_or(0)
        }
        // A failure here is met again when the table is closed.
        let _ = self.settle();
        let mut rows = vec![
            (FlowRow::TABLE, close(&mut self.flows)),
            (QueryRow::TABLE, close(&mut self.queries)),
            (CollectiveRow::TABLE, close(&mut self.collectives)),
            (PortRow::TABLE, close(&mut self.ports)),
            (DropRow::TABLE, close(&mut self.drops)),
            (PauseRow::TABLE, close(&mut self.pauses)),
            (StateRow::TABLE, close(&mut self.states)),
            (VoqRow::TABLE, close(&mut self.voqs)),
            (StampRow::TABLE, close(&mut self.stamps)),
            (HostRow::TABLE, close(&mut self.hosts)),
            (MessageRow::TABLE, close(&mut self.messages)),
            (SegmentRow::TABLE, close(&mut self.segments)),
            (HopRow::TABLE, close(&mut self.hops)),
            (QueueRow::TABLE, close(&mut self.queues)),
        ];
        rows.extend(self.capture.as_mut().map(|capture| (PACKETS, capture.finish().unwrap_or_else(|_| capture.written()))));
        rows
    }
}
