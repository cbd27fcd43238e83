//! Trace of followed flows (`telemetry.hosts`): actions of their senders, their packets, and the packets' ways through the
//! network. Of others (`telemetry.messages`) messages alone are recorded.
//!
//! A packet is sent because something has happened at its host: a packet has arrived, a timer has expired, the application has
//! written. Hosts report each such input before and after the endpoint has handled it, and each packet that it sends. Nothing is
//! decided here.

use super::messages::Messages;
use super::Tables;
use fanin_packet::{Ecn, Envelope, Header, Packet, PacketId, RoceOp, Side, Syndrome, TcpFlags};
use fanin_params::pattern;
use fanin_telemetry::{self as telemetry, HopRow, HostRow, Limit, MessageRow, Name, SegmentRow, TableError};
use fanin_transport::{Phase, SenderState, Stats, Timer, TIMERS};
use fanin_units::{BitRate, Time};
use std::collections::BTreeMap;

/// The place of a pacing timer among those of [`SenderState`]: each segment sets it anew.
const PACING: usize = 2;

/// Input that an endpoint is about to handle.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    Application,
    /// A packet, by its number.
    Arrival(u64),
    /// A message about a packet of this end.
    Notification(Option<u64>),
    Timeout,
}

/// Cause of a packet's transmission.
#[derive(Clone, Debug)]
struct Cause {
    what: telemetry::Cause,
    at: Time,
    packet: Option<u64>,
    armed: Option<Armed>,
}

/// Start of a timer: the time, and the packet that had started it.
#[derive(Clone, Copy, Debug)]
struct Armed {
    since: Time,
    packet: Option<u64>,
}

/// A timer that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    until: Time,
    armed: Armed,
}

/// An input that is being handled.
#[derive(Clone, Debug)]
struct Handling {
    at: Time,
    input: Input,
    /// State of the endpoint before the input.
    before: Option<SenderState>,
    /// Timers that have expired, each with its start.
    expired: [Option<(Timer, Armed)>; TIMERS],
    /// Start of the pacing timer, where it was running.
    paced: Option<Armed>,
}

/// Cause of pending data or control, and the limit that had kept data from being sent.
#[derive(Clone, Debug)]
struct Ready {
    cause: Cause,
    /// Limit that had kept data from being sent; `None` where it is not data.
    limit: Option<Limit>,
}

/// One end of a followed flow.
#[derive(Debug)]
struct End {
    /// True if rows are written of more than its messages.
    in_full: bool,
    /// True if the end sends data, so that rows of its state are written.
    sends_data: bool,
    /// State of the endpoint as it was last seen, and as it stands in the last row.
    state: Option<SenderState>,
    written: Option<SenderState>,
    stats: Stats,
    running: [Option<Running>; TIMERS],
    handling: Option<Handling>,
    ready: Option<Ready>,
    /// Cause of the last data: a FIN of the same end follows in the same transmission opportunity.
    last: Option<Ready>,
    /// Control packets that wait at the NIC.
    made: BTreeMap<PacketId, (Time, Cause)>,
    /// End of what was sent in the stream, and number of retransmissions by place.
    highest: u64,
    again: BTreeMap<u64, u32>,
    /// Last acknowledgment number that the end has sent.
    acknowledged: u64,
    /// Packets that were dropped or trimmed, by the number on the wire of their first byte.
    lost: BTreeMap<u32, u64>,
}

/// A packet on its way.
#[derive(Debug)]
struct Journey {
    /// True where the flow is followed in full: rows are written of it.
    in_full: bool,
    row: SegmentRow,
    to: Side,
    /// Time at which the packet came to the port at which it is.
    at: Time,
    /// Mechanism that holds or held the packet at its port, from and until: the first of several, and the last time.
    held: Option<(&'static str, Time, Time)>,
}

/// State of an endpoint, as hosts report it after it has handled an input or sent a packet.
pub struct Seen {
    pub state: Option<SenderState>,
    pub stats: Stats,
    /// True if the endpoint would send data if its NIC let it.
    pub ready: bool,
}

/// Trace of followed flows: states of their endpoints, their messages, their packets, and the hops of these.
pub struct Trace {
    wanted: Vec<String>,
    /// Flows whose messages alone are wanted.
    wanted_messages: Vec<String>,
    flows: BTreeMap<u32, [End; 2]>,
    /// Messages that applications have written, by flow.
    pub(super) messages: BTreeMap<u32, Messages>,
    /// Packets on their way, by place in the pool.
    journeys: Vec<Option<Box<Journey>>>,
    packets: u64,
}

/// Name, group and hosts of a flow, by which scenarios select it.
pub struct Known<'a> {
    pub number: u32,
    pub id: Option<&'a str>,
    pub group: &'a str,
    pub hosts: [&'a str; 2],
}

impl Trace {
    /// Follows flows that fit one of `wanted`, and the messages of those that fit one of `messages`; `None` where nothing is wanted.
    pub fn new(wanted: &[String], messages: &[String]) -> Option<Box<Self>> {
        let trace = || Trace {
            wanted: wanted.to_vec(),
            wanted_messages: messages.to_vec(),
            flows: BTreeMap::new(),
            messages: BTreeMap::new(),
            journeys: Vec::new(),
            packets: 0,
        };
        (!wanted.is_empty() || !messages.is_empty()).then(|| Box::new(trace()))
    }

    /// Follows a flow from its beginning, if it is wanted: by number, id, traffic entry or host. `sends_data`: by side.
    pub fn start(&mut self, flow: &Known<'_>, sends_data: [bool; 2]) {
        let number = flow.number.to_string();
        let names = [Some(number.as_str()), flow.id, Some(flow.group), Some(flow.hosts[0]), Some(flow.hosts[1])];
        let is_in = |list: &[String]| list.iter().any(|wanted| names.iter().flatten().any(|name| pattern::fits(wanted, name)));
        let in_full = is_in(&self.wanted);
        if in_full || is_in(&self.wanted_messages) {
            self.flows.insert(flow.number, sends_data.map(|sends_data| End::new(sends_data, in_full)));
        }
    }

    /// Ends the trace of a flow and gives its messages. `finish`: the receiver had all; `acked`: the sender knew.
    pub fn forget(&mut self, flow: u32, finish: Option<Time>, acked: Option<Time>) -> Vec<MessageRow> {
        self.flows.remove(&flow);
        self.messages.remove(&flow).map_or_else(Vec::new, |messages| messages.end(finish, acked))
    }

    /// True if a flow is followed.
    pub fn follows(&self, flow: u32) -> bool {
        self.flows.contains_key(&flow)
    }

    fn end(&mut self, flow: u32, side: Side) -> Option<&mut End> {
        self.flows.get_mut(&flow).map(|ends| &mut ends[side as usize])
    }

    /// An end is about to handle something.
    pub fn begin(&mut self, now: Time, flow: u32, side: Side, input: Input) {
        let Some(end) = self.end(flow, side) else { return };
        let mut expired = [None; TIMERS];
        if let (Input::Timeout, Some(state)) = (input, &end.state) {
            for (i, (timer, at)) in state.timers.iter().enumerate().filter(|(_, (_, at))| *at <= now) {
                let armed = end.running[i].map_or(Armed { since: *at, packet: None }, |running| running.armed);
                expired[i] = Some((*timer, armed));
            }
        }
        let paced = end.running[PACING].map(|running| running.armed);
        end.handling = Some(Handling { at: now, input, before: end.state, expired, paced });
    }

    /// Packet that a switch has reported to its sender, by the number on the wire of its first byte.
    pub fn lost(&mut self, flow: u32, side: Side, number: u32) -> Option<u64> {
        self.end(flow, side)?.lost.get(&number).copied()
    }

    /// An end has handled an input. `made`: its control packets that wait at the NIC.
    pub fn settle(&mut self, now: Time, names: (u32, Side, &Name), seen: &Seen, made: &[PacketId]) -> Option<HostRow> {
        let (flow, side, host) = names;
        let end = self.flows.get_mut(&flow).map(|ends| &mut ends[side as usize])?;
        if let Some(messages) = self.messages.get_mut(&flow).filter(|_| !end.sends_data) {
            messages.delivered(now, seen.stats.delivered);
        }
        end.note_timers(now, seen.state.as_ref(), None);
        end.note_ready(seen);
        end.made.retain(|packet, _| made.contains(packet));
        for packet in made.iter().filter(|packet| !end.made.contains_key(packet)).collect::<Vec<_>>() {
            let cause = end.cause(now, true, false);
            end.made.insert(*packet, (now, cause));
        }
        let row = end.in_full.then(|| end.row(now, flow, host, seen)).flatten();
        (end.state, end.stats, end.handling) = (seen.state, seen.stats, None);
        row
    }

    /// Records a packet that an end has made and gives to its NIC, whose first bit will leave at `start`.
    pub fn sent(
        &mut self,
        (now, start): (Time, Time),
        id: PacketId,
        packet: &Packet,
        host: &Name,
        seen: &Seen,
    ) -> Option<HostRow> {
        let (flow, side) = (packet.envelope.flow.0, packet.envelope.to.other());
        let number = self.packets;
        let end = self.end(flow, side)?;
        let kind = kind(packet);
        let data = packet.envelope.payload > 0;
        let (made, Ready { cause, limit }) = match end.made.remove(&id) {
            Some((at, cause)) => (at, Ready { cause, limit: None }),
            None if data => {
                end.note_ready(&Seen { ready: true, state: seen.state, stats: seen.stats });
                let ready = end.ready.clone().unwrap_or_else(|| Ready { cause: end.cause(now, false, false), limit: None });
                end.last = Some(ready.clone());
                (now, ready)
            }
            None if end.handling.is_some() => (now, Ready { cause: end.cause(now, true, kind == "ack"), limit: None }),
            None => (now, end.last.clone().unwrap_or_else(|| Ready { cause: end.cause(now, true, false), limit: None })),
        };
        let seq = end.place(packet, seen.state.as_ref());
        let again = match data {
            true => end.count(seq, packet.envelope.payload),
            false => 0,
        };
        let ack = end.acknowledgment(packet, seen);
        end.note_timers(now, seen.state.as_ref(), Some(number));
        if !seen.ready {
            end.ready = None;
        }
        let in_full = end.in_full;
        let restarted =
            in_full && end.handling.is_none() && end.state.zip(seen.state).is_some_and(|(old, new)| old.cwnd != new.cwnd);
        end.state = seen.state;
        let sends_data = end.sends_data;
        let row = restarted.then(|| end.row(now, flow, host, seen)).flatten();
        if let Some(messages) = self.messages.get_mut(&flow).filter(|_| data && sends_data) {
            messages.sent(start, seq, packet.envelope.payload, again > 0);
        }
        self.packets += 1;
        let place = id.index();
        if self.journeys.len() <= place {
            self.journeys.resize_with(place + 1, || None);
        }
        let row_of_packet = SegmentRow {
            packet: number,
            flow,
            host: host.clone(),
            kind: kind.into(),
            seq_bytes: seq,
            payload_bytes: packet.envelope.payload,
            ack_bytes: ack,
            frame_bytes: packet.envelope.frame,
            again,
            made_ps: made.ps(),
            sent_ps: start.ps(),
            received_ps: None,
            marked: false,
            trimmed: false,
            dropped_at: None,
            dropped_ps: None,
            cause: cause.what.name().into(),
            cause_ps: cause.at.ps(),
            cause_packet: cause.packet,
            armed_ps: cause.armed.map(|armed| armed.since.ps()),
            armed_packet: cause.armed.and_then(|armed| armed.packet),
            limit: limit.map_or("", Limit::name).into(),
        };
        self.journeys[place] = Some(Box::new(Journey { in_full, row: row_of_packet, to: side.other(), at: now, held: None }));
        row
    }

    /// Records that a packet has crossed a link: it was on the wire from `left - tx` until `left`.
    pub fn crossed(&mut self, now: Time, id: PacketId, port: &Name, [start, left]: [u64; 2]) -> Option<HopRow> {
        let journey = self.journeys.get_mut(id.index())?.as_deref_mut().filter(|journey| journey.in_full)?;
        let held = journey.held.take();
        let row = HopRow {
            packet: journey.row.packet,
            flow: journey.row.flow,
            port: port.clone(),
            arrived_ps: journey.at.ps(),
            sent_ps: start,
            left_ps: left,
            reached_ps: now.ps(),
            held_by: held.map(|(by, ..)| by.into()),
            held_from_ps: held.map(|(_, from, _)| from.ps()),
            held_until_ps: held.map(|(.., until)| until.ps()),
        };
        journey.at = now;
        Some(row)
    }

    /// A mechanism holds a packet from now on.
    pub fn hold(&mut self, now: Time, id: PacketId, by: &'static str) {
        if let Some(journey) = self.journeys.get_mut(id.index()).and_then(Option::as_deref_mut) {
            let (by, from, _) = journey.held.unwrap_or((by, now, now));
            journey.held = Some((by, from, Time::MAX));
        }
    }

    /// Records that a mechanism releases a packet, if one holds it.
    pub fn let_go(&mut self, now: Time, id: PacketId) {
        if let Some((.., until)) = self.journeys.get_mut(id.index()).and_then(|journey| journey.as_mut()?.held.as_mut()) {
            *until = now.min(*until);
        }
    }

    /// Ends the way of a packet that has reached its host; gives its number, and its row where the flow is followed in full.
    pub fn received(&mut self, now: Time, id: PacketId, envelope: &Envelope) -> Option<(u64, Option<SegmentRow>)> {
        let mut journey = self.journeys.get_mut(id.index())?.take()?;
        journey.row.received_ps = Some(now.ps());
        journey.row.marked = envelope.ecn == Ecn::Ce;
        journey.row.trimmed = envelope.trimmed;
        Some((journey.row.packet, journey.in_full.then_some(journey.row)))
    }

    /// Ends the way of a packet that was dropped; gives its row.
    pub fn dropped(&mut self, now: Time, id: PacketId, packet: &Packet, port: &Name) -> Option<SegmentRow> {
        let mut journey = self.journeys.get_mut(id.index())?.take()?;
        let (flow, number) = (journey.row.flow, journey.row.packet);
        if let Some(end) = self.end(flow, journey.to.other()) {
            end.lost.insert(packet.header.number(), number);
        }
        (journey.row.dropped_at, journey.row.dropped_ps) = (Some(port.clone()), Some(now.ps()));
        journey.row.trimmed = packet.envelope.trimmed;
        journey.in_full.then_some(journey.row)
    }

    /// Rows of packets that are still on their way when the run ends, in order of sending.
    pub fn on_the_way(&mut self) -> Vec<SegmentRow> {
        let in_full = self.journeys.drain(..).flatten().filter(|journey| journey.in_full);
        let mut rows: Vec<SegmentRow> = in_full.map(|journey| journey.row).collect();
        rows.sort_unstable_by_key(|row| row.packet);
        rows
    }
}

impl Tables {
    /// Writes rows of followed flows.
    pub fn follow(&mut self, host: Option<HostRow>, segment: Option<SegmentRow>, hop: Option<HopRow>) -> Result<(), TableError> {
        host.map_or(Ok(()), |row| self.hosts.push(row))?;
        segment.map_or(Ok(()), |row| self.segments.push(row))?;
        hop.map_or(Ok(()), |row| self.hops.push(row))
    }
}

impl End {
    fn new(sends_data: bool, in_full: bool) -> Self {
        End {
            in_full,
            sends_data,
            state: None,
            written: None,
            stats: Stats::default(),
            running: [None; TIMERS],
            handling: None,
            ready: None,
            last: None,
            made: BTreeMap::new(),
            highest: 0,
            again: BTreeMap::new(),
            acknowledged: 0,
            lost: BTreeMap::new(),
        }
    }

    /// Notes timers that were set anew: by the packet `sent`, or by the input that is being handled. One that is set by its own
    /// expiry (back-off) runs since the first of them.
    fn note_timers(&mut self, now: Time, state: Option<&SenderState>, sent: Option<u64>) {
        let Some(state) = state else { return };
        for (i, (_, until)) in state.timers.iter().enumerate() {
            if *until == Time::MAX {
                self.running[i] = None;
                continue;
            }
            if self.running[i].is_some_and(|running| running.until == *until) {
                continue;
            }
            let packet = match &self.handling {
                Some(handling) if i != PACING || sent.is_none() => match (handling.expired[i], handling.input) {
                    (Some((_, armed)), _) => {
                        self.running[i] = Some(Running { until: *until, armed });
                        continue;
                    }
                    (None, Input::Arrival(packet)) => Some(packet),
                    (None, Input::Notification(_)) => sent,
                    _ => sent,
                },
                _ => sent,
            };
            self.running[i] = Some(Running { until: *until, armed: Armed { since: now, packet } });
        }
    }

    /// Notes if the endpoint has data for its NIC, and the cause where that is new.
    fn note_ready(&mut self, seen: &Seen) {
        if !seen.ready {
            self.ready = None;
        } else if self.ready.is_none() {
            if let Some(handling) = &self.handling {
                let cause = self.cause(handling.at, false, false);
                self.ready = Some(Ready { cause, limit: Some(self.limit(seen.state.as_ref())) });
            }
        }
    }

    /// Cause of a packet that is made now. Of several timers that expire together, data takes that of retransmission first, an
    /// acknowledgment its own.
    fn cause(&self, now: Time, control: bool, ack: bool) -> Cause {
        let plain = |what, packet| Cause { what, at: now, packet, armed: None };
        let Some(handling) = &self.handling else { return plain(telemetry::Cause::Turn, None) };
        match handling.input {
            Input::Application => plain(telemetry::Cause::Application, None),
            Input::Arrival(packet) => plain(telemetry::Cause::Packet, Some(packet)),
            Input::Notification(packet) => plain(telemetry::Cause::Notification, packet),
            Input::Timeout => {
                let order: [usize; TIMERS] = match (control, ack) {
                    (true, true) => [1, 0, 2],
                    (true, false) => [0, 1, 2],
                    (false, _) => [0, 2, 1],
                };
                match order.iter().find_map(|i| handling.expired[*i]) {
                    Some((timer, armed)) => Cause { what: expiry(timer), at: now, packet: None, armed: Some(armed) },
                    // A timer of the control has raised the rate, so that the wait for its turn is over.
                    None if handling.paced.is_some() => {
                        Cause { what: telemetry::Cause::Pacing, at: now, packet: None, armed: handling.paced }
                    }
                    None => plain(telemetry::Cause::Application, None), // datagrams leave by their schedule
                }
            }
        }
    }

    /// Limit that has kept data from being sent until now.
    fn limit(&self, after: Option<&SenderState>) -> Limit {
        let before = self.handling.as_ref().map_or(self.state, |handling| handling.before);
        let (Some(before), Some(after)) = (before, after) else { return Limit::Application };
        let phases = [before.phase, after.phase];
        if !before.established {
            Limit::Handshake
        } else if phases.contains(&Phase::Loss) {
            Limit::Loss
        } else if phases.contains(&Phase::Recovery) {
            Limit::Recovery
        } else if before.unsent == 0 {
            Limit::Application
        } else if before.window.saturating_sub(before.in_flight()) < before.unsent.min(u64::from(before.mss)) {
            Limit::ReceiveWindow
        } else {
            Limit::CongestionWindow
        }
    }

    /// The place of a packet's first byte in the stream.
    fn place(&self, packet: &Packet, state: Option<&SenderState>) -> u64 {
        match (&packet.header, state) {
            (Header::Tcp(tcp), Some(state)) => {
                let acked = state.origins[0].wrapping_add(state.acked as u32);
                state.acked.wrapping_add_signed(i64::from(tcp.seq.wrapping_sub(acked) as i32)).saturating_sub(1)
            }
            (Header::Roce(roce), Some(state)) if roce.op.is_data() => {
                let acked = state.acked.saturating_sub(1);
                acked.wrapping_add_signed(i64::from(roce.place.wrapping_sub(acked as u32) as i32))
            }
            _ => self.highest,
        }
    }

    /// Counts data that is sent; gives the number of earlier transmissions of its first byte.
    fn count(&mut self, seq: u64, payload: u16) -> u32 {
        let before = self.highest;
        self.highest = self.highest.max(seq + u64::from(payload));
        if seq >= before {
            return 0;
        }
        let again = self.again.entry(seq).or_default();
        *again += 1;
        *again
    }

    /// Bytes that a packet acknowledges.
    fn acknowledgment(&mut self, packet: &Packet, seen: &Seen) -> u64 {
        if let Header::Roce(_) = &packet.header {
            return seen.stats.delivered; // its numbers are those of packets
        }
        if let (Header::Tcp(tcp), Some(state)) = (&packet.header, &seen.state) {
            if tcp.flags.has(TcpFlags::ACK) {
                let last = state.origins[1].wrapping_add(self.acknowledged as u32);
                self.acknowledged = self.acknowledged.wrapping_add_signed(i64::from(tcp.ack.wrapping_sub(last) as i32));
            }
        }
        self.acknowledged.saturating_sub(1)
    }

    /// A row of the sender's state, if it has changed.
    fn row(&mut self, now: Time, flow: u32, host: &Name, seen: &Seen) -> Option<HostRow> {
        let state = seen.state.filter(|_| self.sends_data)?;
        // Timers run on without changing what the sender may do.
        let new = |old: &SenderState| SenderState { timers: state.timers, origins: state.origins, ..*old } != state;
        if !self.written.as_ref().is_none_or(new) && self.stats == seen.stats {
            return None;
        }
        let event = self.event(&state, &seen.stats);
        let packet = match self.handling.as_ref().map(|handling| handling.input) {
            Some(Input::Arrival(packet)) => Some(packet),
            _ => None,
        };
        self.written = Some(state);
        Some(HostRow {
            time_ps: now.ps(),
            flow,
            host: host.clone(),
            event: event.into(),
            packet,
            phase: phase(state.phase).into(),
            cwnd_bytes: state.cwnd,
            ssthresh_bytes: state.ssthresh,
            srtt_ps: Some(state.srtt.ps()).filter(|srtt| *srtt > 0),
            rttvar_ps: Some(state.rttvar.ps()).filter(|_| state.srtt.ps() > 0),
            rto_ps: state.rto.ps(),
            alpha_ppm: state.alpha.map(|alpha| libm::round(alpha * 1e6) as u32),
            acked_bytes: state.acked.saturating_sub(1),
            sent_bytes: state.next.saturating_sub(1),
            in_flight_bytes: state.in_flight(),
            pipe_bytes: state.pipe,
            unsent_bytes: state.unsent,
            window_bytes: state.window,
            rate_bps: state.rate.map(BitRate::bps),
        })
    }

    /// Name of the event that has changed the state, the most telling first.
    fn event(&self, state: &SenderState, stats: &Stats) -> &'static str {
        let before = self.handling.as_ref().map_or(self.state, |handling| handling.before);
        let (old, before) = (&self.stats, before.map(|state| state.phase));
        let left = |phase| before == Some(phase) && state.phase != phase;
        let probes = self.written.map_or(state.rack, |written| written.rack);
        let application = self.handling.as_ref().is_some_and(|handling| matches!(handling.input, Input::Application));
        if stats.timeouts > old.timeouts {
            "timeout"
        } else if stats.spurious_rtos > old.spurious_rtos || state.rack.undos > probes.undos {
            "undo"
        } else if stats.recoveries > old.recoveries {
            "fast_retransmit"
        } else if stats.notice_reductions > old.notice_reductions || stats.notices > old.notices {
            "notification"
        } else if stats.ecn_reductions > old.ecn_reductions {
            "ecn"
        } else if state.phase == Phase::Cwr && before.is_some_and(|phase| phase != Phase::Cwr) {
            "host_queue"
        } else if state.rack.tail_probes > probes.tail_probes {
            "tail_probe"
        } else if stats.window_probes > old.window_probes {
            "window_probe"
        } else if left(Phase::Recovery) {
            "recovery_end"
        } else if left(Phase::Loss) {
            "loss_end"
        } else if left(Phase::Cwr) {
            "cwr_end"
        } else if self.handling.is_none() {
            "idle_restart"
        } else if application {
            "application"
        } else if stats.acked > old.acked {
            "ack"
        } else if stats.dup_acks > old.dup_acks {
            "dup_ack"
        } else if self.handling.as_ref().is_some_and(|handling| matches!(handling.input, Input::Timeout)) {
            "timer"
        } else {
            "packet"
        }
    }
}

/// Name of a timer's expiry in tables.
fn expiry(timer: Timer) -> telemetry::Cause {
    match timer {
        Timer::Retransmission => telemetry::Cause::Rto,
        Timer::TailProbe => telemetry::Cause::Tlp,
        Timer::Reordering => telemetry::Cause::Reordering,
        Timer::WindowProbe => telemetry::Cause::WindowProbe,
        Timer::DelayedAck => telemetry::Cause::DelayedAck,
        Timer::Pacing => telemetry::Cause::Pacing,
    }
}

/// Name of a phase in tables.
fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Open => "open",
        Phase::Cwr => "cwr",
        Phase::Recovery => "recovery",
        Phase::Loss => "loss",
    }
}

/// Kind of a packet in tables.
fn kind(packet: &Packet) -> &'static str {
    let tcp = match &packet.header {
        Header::Tcp(tcp) => tcp,
        Header::Roce(roce) => {
            return match (roce.op, roce.syndrome) {
                (RoceOp::Acknowledge, Syndrome::Ack) => "ack",
                (RoceOp::Acknowledge, Syndrome::SequenceError) => "nack",
                (RoceOp::Notification, _) => "cnp",
                _ => "data",
            }
        }
        Header::Udp(_) | Header::Control(_) => return "datagram",
    };
    if tcp.flags.has(TcpFlags::SYN) {
        "syn"
    } else if tcp.flags.has(TcpFlags::RST) {
        "rst"
    } else if packet.envelope.payload > 0 {
        "data"
    } else if tcp.flags.has(TcpFlags::FIN) {
        "fin"
    } else if tcp.nack().is_some() {
        "nack"
    } else {
        "ack"
    }
}
