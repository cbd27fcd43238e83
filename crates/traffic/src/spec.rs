//! What is asked: flows, datagram streams and queries.

use fanin_params::names;
use fanin_units::{BitRate, Bytes, HostId, Purpose, Span, Stream, Time};
use std::sync::Arc;

/// One transfer asked of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Where the data comes from.
    pub src: HostId,
    /// Where it goes to.
    pub dst: HostId,
    /// Application bytes to deliver, at least 1. For [`FlowKind::Datagrams`] 0 means: as many as fit until its end.
    pub size: u64,
    /// Bytes that `dst` sends first to `src` on the same connection; 0: none.
    pub request: u64,
    /// When the application asks.
    pub start: Time,
    /// Position in the scenario's list of transports.
    pub transport: u16,
    /// Traffic class.
    pub class: u8,
    /// Position of the `[[traffic]]` table.
    pub entry: u16,
    /// The flow's number within its entry; (entry, index) names a flow.
    pub index: u64,
    /// The query or incast round that it answers: a position in [`crate::Traffic::queries`].
    pub query: Option<u32>,
    /// The id given in an explicit or imported flow.
    pub id: Option<Box<str>>,
    /// How the bytes are sent.
    pub kind: FlowKind,
    /// A connection that stays open: its application writes message by message, `size` bytes in all, and this is how many bytes the
    /// first message has, which the receiver waits for. See [`crate::Write`].
    pub first: Option<u64>,
    /// It follows completions, each known since then at the host whose application saw it: the host that opens the flow knows
    /// of them when a message from there has reached it.
    pub known: Option<Arc<[(Time, HostId)]>>,
}

impl FlowSpec {
    /// The host that opens the connection: it asks for the data, or sends it unasked.
    pub fn opener(&self) -> HostId {
        match self.kind {
            FlowKind::Transfer if self.request > 0 => self.dst,
            _ => self.src,
        }
    }

    /// The host whose application sees that the flow is complete: it has all the data, or has sent all datagrams.
    pub fn completes_at(&self) -> HostId {
        match self.kind {
            FlowKind::Transfer => self.dst,
            FlowKind::Datagrams(_) => self.src,
        }
    }
}

/// How the bytes of a flow are sent.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowKind {
    /// Reliably, by the flow's transport.
    Transfer,
    /// As datagrams at a rate that ignores the network.
    Datagrams(DatagramSpec),
}

names! {
    /// Which bytes a datagram source's rate counts.
    pub enum RateCounts {
        /// Application bytes only. Source: ns-3 `OnOffApplication::DataRate`.
        "payload" => Payload,
        /// Every byte that occupies the link: headers, preamble and gap too, so that the link's rate fills the link.
        "wire" => Wire,
    }
}

/// A datagram source: constant bit rate, or on–off.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramSpec {
    /// Rate while on.
    pub rate: BitRate,
    /// What `rate` counts.
    pub counts: RateCounts,
    /// Application bytes of one datagram.
    pub packet: Bytes,
    /// Length of an on period, or its mean; `None`: always on.
    pub on: Option<Span>,
    /// Length of an off period, or its mean.
    pub off: Option<Span>,
    /// Whether the periods are exponentially distributed.
    pub exponential: bool,
    /// No datagram leaves at or after this instant.
    pub until: Time,
    /// The entity of the source's random stream.
    pub entity: u64,
}

/// The departure times of a datagram source.
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
    /// Time spent on by the end of the present on period.
    on_until: Span,
    /// Simulated time minus time spent on.
    offset: Time,
}

impl DatagramClock {
    /// `size` and `start` as in the flow's [`FlowSpec`]; `wire` is what a datagram of `spec.packet` occupies on the host's link.
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

    /// A period of the given (mean) length; never zero, so that time passes.
    fn period(&mut self, mean: Span) -> Span {
        let drawn = if self.spec.exponential { Span::from_secs_f64(self.stream.exponential(mean.as_secs_f64())) } else { mean };
        drawn.max(Span::from_ps(1))
    }
}

impl Iterator for DatagramClock {
    /// When a datagram leaves, and its application bytes.
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

/// A query or a round of an incast: flows that are complete only together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Position of the `[[traffic]]` table.
    pub entry: u16,
    /// Who asked.
    pub client: HostId,
    /// When it was asked; jitter delays its flows, not this.
    pub start: Time,
    /// How many flows must complete.
    pub responses: u32,
    /// Application bytes of all of them.
    pub size: u64,
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
