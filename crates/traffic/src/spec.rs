//! Specifications that traffic hands to the simulator: flows, datagram streams and queries.

use fanin_params::names;
use fanin_units::{BitRate, Bytes, HostId, Purpose, Span, Stream, Time};
use std::sync::Arc;

/// A transfer that an application asks of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Host that sends the data.
    pub src: HostId,
    /// Host that receives the data.
    pub dst: HostId,
    /// Application bytes to deliver, at least 1. For [`FlowKind::Datagrams`] zero means: as many as fit until its end.
    pub size: u64,
    /// Size of the request that `dst` first sends to `src` on the same connection; 0: none.
    pub request: u64,
    /// Time at which the application asks for the transfer.
    pub start: Time,
    /// Index in the scenario's list of transports.
    pub transport: u16,
    /// Traffic class.
    pub class: u8,
    /// Index of the `[[traffic]]` table.
    pub entry: u16,
    /// Number of the flow within its entry; (entry, index) identifies a flow.
    pub index: u64,
    /// Query or incast round that the flow answers: an index into [`crate::Traffic::queries`].
    pub query: Option<u32>,
    /// Id given to the flow by the scenario or an imported file.
    pub id: Option<Box<str>>,
    /// Delivery of the bytes: reliable transfer or datagrams.
    pub kind: FlowKind,
    /// Size of the first message, if the application writes message by message into a connection that stays open, `size`
    /// bytes in all; the receiver waits for it. See [`crate::Write`].
    pub first: Option<u64>,
    /// Completions that the flow follows, each with the host that knows of it and since when. The host that opens the flow
    /// knows of them when a message from there has reached it.
    pub known: Option<Arc<[(Time, HostId)]>>,
}

impl FlowSpec {
    /// Host that opens the connection: the one that requests the data, or sends it unrequested.
    pub fn opener(&self) -> HostId {
        match self.kind {
            FlowKind::Transfer if self.request > 0 => self.dst,
            _ => self.src,
        }
    }

    /// The completion of the flow at a time.
    pub fn completion(&self, at: Time) -> Completion {
        Completion { entry: self.entry, index: self.index, host: self.completes_at(), at }
    }

    /// Host whose application sees the completion: it has all the data, or has sent all datagrams.
    pub fn completes_at(&self) -> HostId {
        match self.kind {
            FlowKind::Transfer => self.dst,
            FlowKind::Datagrams(_) => self.src,
        }
    }
}

/// Completion of a flow, which others may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Index of the `[[traffic]]` table, and number of the flow within it.
    pub entry: u16,
    pub index: u64,
    /// Host whose application sees the completion.
    pub host: HostId,
    pub at: Time,
}

/// Kind of delivery of a flow's bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowKind {
    /// Reliable delivery, by the flow's transport.
    Transfer,
    /// Datagrams at a rate that ignores congestion.
    Datagrams(DatagramSpec),
}

names! {
    /// Bytes that a datagram source's rate counts.
    pub enum RateCounts {
        /// Application bytes only. Source: ns-3 `OnOffApplication::DataRate`.
        "payload" => Payload,
        /// Every byte on the wire: headers, preamble and gap, too, so that the link's rate fills the link.
        "wire" => Wire,
    }
}

/// Parameters of a datagram source: constant bit rate, or on–off.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramSpec {
    /// Rate during on periods.
    pub rate: BitRate,
    /// Bytes that `rate` counts.
    pub counts: RateCounts,
    /// Application bytes of one datagram.
    pub packet: Bytes,
    /// Length of on periods, or their mean; `None`: always on.
    pub on: Option<Span>,
    /// Length of off periods, or their mean.
    pub off: Option<Span>,
    /// True if the lengths of periods are exponentially distributed, false if they are constant.
    pub exponential: bool,
    /// End of the source: no datagram leaves at or after this instant.
    pub until: Time,
    /// Entity number of the source's random stream.
    pub entity: u64,
}

/// Iterator over the departure times of a datagram source.
///
/// Datagram k leaves when the source has been on for k · bytes / rate (rounded up to a picosecond once, so nothing drifts);
/// an off period interrupts that clock and does not reset it, as in ns-3's `OnOffApplication`. The mean rate is therefore
/// exactly rate · on / (on + off). Deviation from ns-3: the source starts with an on period.
#[derive(Clone, Debug)]
pub struct DatagramClock {
    spec: DatagramSpec,
    stream: Stream,
    counted: Bytes,
    sent: u64,
    left: Option<u64>,
    /// Total on time at the end of the current on period.
    on_until: Span,
    /// Simulated time minus total on time.
    offset: Time,
}

impl DatagramClock {
    /// Starts the clock of a source. `size` and `start` are those of the flow's [`FlowSpec`]; `wire` is the wire size of a
    /// datagram of `spec.packet` on the host's link.
    pub fn new(spec: &DatagramSpec, flow: &FlowSpec, wire: Bytes, seed: u64) -> Self {
        let counted = match spec.counts {
            RateCounts::Payload => spec.packet,
            RateCounts::Wire => wire,
        };
        let mut clock = DatagramClock {
            spec: spec.clone(),
            stream: Stream::new(seed, Purpose::Jitter, spec.entity),
            counted,
            sent: 0,
            left: (flow.size > 0).then_some(flow.size),
            on_until: Span::ZERO,
            offset: flow.start,
        };
        clock.on_until = clock.spec.on.map_or(Span::MAX, |on| clock.period(on));
        clock
    }

    /// Draws the length of a period of mean `mean`; never zero, so that time passes.
    fn period(&mut self, mean: Span) -> Span {
        let drawn = if self.spec.exponential { Span::from_secs_f64(self.stream.exponential(mean.as_secs_f64())) } else { mean };
        drawn.max(Span::from_ps(1))
    }
}

impl Iterator for DatagramClock {
    /// Departure time of a datagram, and its application bytes.
    type Item = (Time, u32);

    fn next(&mut self) -> Option<(Time, u32)> {
        let payload = self.left.map_or(self.spec.packet.get(), |left| left.min(self.spec.packet.get()));
        let payload = u32::try_from(payload).ok().filter(|bytes| *bytes > 0)?;
        let before = Bytes(self.counted.get().checked_mul(self.sent)?);
        let on_for = self.spec.rate.time_to_send(before);
        while on_for >= self.on_until {
            let (on, off) = (self.spec.on?, self.spec.off.unwrap_or(Span::ZERO));
            let silent = if off == Span::ZERO { off } else { self.period(off) };
            self.offset = self.offset.saturating_add(silent);
            let on = self.period(on);
            self.on_until = Span::from_ps(self.on_until.ps().saturating_add(on.ps()));
            if self.offset >= self.spec.until {
                return None;
            }
        }
        let at = self.offset.saturating_add(on_for);
        if at >= self.spec.until {
            return None;
        }
        self.sent += 1;
        if let Some(left) = &mut self.left {
            *left -= u64::from(payload);
        }
        Some((at, payload))
    }
}

/// A query, or a round of an incast: flows that count as complete only together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Index of the `[[traffic]]` table.
    pub entry: u16,
    /// Host that asked.
    pub client: HostId,
    /// Time of the query; jitter delays its flows, not this.
    pub start: Time,
    /// Number of flows that must complete.
    pub responses: u32,
    /// Application bytes of all of its flows.
    pub size: u64,
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
