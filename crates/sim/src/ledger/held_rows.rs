//! Rows of the parts of a network on their way to the tables of the run, each with the event that has written it.

use super::capture::Pending;
use super::Tables;
use fanin_telemetry::{
    DropRow, FlowRow, Moment, PauseRow, PortRow, QueueRow, Row, StampRow, StateRow, Table, TableError, VoqRow,
};
use fanin_units::Time;

/// Kinds of events, in the order in which those of one time happen.
pub mod kind {
    /// An event of the wheel, by its slot: a departure, or an arrival whose place is still to be drawn.
    pub const SLOT: u64 = 0;
    pub const ARRIVAL: u64 = 1;
    pub const TIMER: u64 = 2;
    /// News of a connection of a job, the start of a flow, and a rank of a job that goes on by itself.
    pub const PROGRESS: u64 = 3;
    pub const START: u64 = 4;
    pub const RANK: u64 = 5;
    pub const SAMPLE: u64 = 6;
    /// The end of the run.
    pub const END: u64 = 7;
}

type Held<R> = Vec<(Moment, R)>;

/// Rows of one part, or of all.
#[derive(Default)]
pub struct HeldRows {
    flows: Held<FlowRow>,
    ports: Held<PortRow>,
    queues: Held<QueueRow>,
    drops: Held<DropRow>,
    pauses: Held<PauseRow>,
    states: Held<StateRow>,
    voqs: Held<VoqRow>,
    stamps: Held<StampRow>,
    frames: Vec<Pending>,
    /// Time up to which all events are in it.
    until: u64,
}

impl HeldRows {
    /// Takes the rows of events up to a time; `place` gives the place of an event of the wheel.
    pub fn take(tables: &mut Tables, until: u64, place: impl Fn(Moment) -> Moment) -> HeldRows {
        fn take<R: Row>(table: &mut Table<R>, until: u64, place: &impl Fn(Moment) -> Moment) -> Held<R> {
            let mut rows = table.take_held(until);
            rows.iter_mut().for_each(|(moment, _)| *moment = place(*moment));
            rows
        }
        let frames = tables.capture.as_deref_mut().map_or_else(Vec::new, |capture| capture.take_held(until, &place));
        HeldRows {
            frames,
            until,
            flows: take(&mut tables.flows, until, &place),
            ports: take(&mut tables.ports, until, &place),
            queues: take(&mut tables.queues, until, &place),
            drops: take(&mut tables.drops, until, &place),
            pauses: take(&mut tables.pauses, until, &place),
            states: take(&mut tables.states, until, &place),
            voqs: take(&mut tables.voqs, until, &place),
            stamps: take(&mut tables.stamps, until, &place),
        }
    }

    /// Adds the rows of another part.
    pub fn append(&mut self, mut other: HeldRows) {
        self.flows.append(&mut other.flows);
        self.ports.append(&mut other.ports);
        self.queues.append(&mut other.queues);
        self.drops.append(&mut other.drops);
        self.pauses.append(&mut other.pauses);
        self.states.append(&mut other.states);
        self.voqs.append(&mut other.voqs);
        self.stamps.append(&mut other.stamps);
        self.frames.append(&mut other.frames);
        self.until = self.until.max(other.until);
    }

    /// Writes all rows in the order of their events.
    ///
    /// # Errors
    /// When a table cannot be written.
    pub fn write(self, tables: &mut Tables) -> Result<(), TableError> {
        fn write<R: Row>(mut rows: Held<R>, table: &mut Table<R>) -> Result<(), TableError> {
            rows.sort_by_key(|(moment, _)| *moment);
            rows.into_iter().try_for_each(|(_, row)| table.push(row))
        }
        if let Some(capture) = tables.capture.as_deref_mut() {
            capture.give_held(self.frames, Time::from_ps(self.until))?;
        }
        write(self.flows, &mut tables.flows)?;
        write(self.ports, &mut tables.ports)?;
        write(self.queues, &mut tables.queues)?;
        write(self.drops, &mut tables.drops)?;
        write(self.pauses, &mut tables.pauses)?;
        write(self.states, &mut tables.states)?;
        write(self.voqs, &mut tables.voqs)?;
        write(self.stamps, &mut tables.stamps)
    }
}
