//! Datagrams: a source that sends on a schedule, and a sink that counts. Source: RFC 768.

use crate::report::{Event, Stats};
use crate::signals::{SignalCounts, SignalLog};
use crate::transport::Kinds;
use fanin_packet::{Ecn, Envelope, Header, Kind, UdpHeader};
use fanin_units::Time;

/// Departure times of datagrams, with their payload bytes.
type Departures = Box<dyn Iterator<Item = (Time, u32)> + Send>;

/// UDP endpoint: one end of a flow of datagrams.
#[derive(Default)]
pub struct UdpEndpoint {
    /// Remaining departures; `None` at a sink.
    departures: Option<Departures>,
    next: Option<(Time, u32)>,
    /// Time of the last poll or timeout: departures up to it are due and need no timeout.
    now: Time,
    received: u64,
    /// True if a datagram has arrived since the last event.
    delivered: bool,
    stats: Stats,
    signals: SignalLog,
}

impl UdpEndpoint {
    /// A source that sends datagrams at these times, in order, or later if the NIC is busy.
    pub fn source(mut departures: Box<dyn Iterator<Item = (Time, u32)> + Send>) -> Self {
        let next = departures.next();
        UdpEndpoint { departures: Some(departures), next, ..UdpEndpoint::default() }
    }

    /// A sink that counts datagrams.
    pub fn sink() -> Self {
        UdpEndpoint::default()
    }

    /// Number of datagrams sent.
    pub fn sent(&self) -> u64 {
        self.stats.packets_sent
    }

    /// Number of datagrams received.
    pub fn received(&self) -> u64 {
        self.received
    }

    #[inline]
    pub(crate) fn on_packet(&mut self, envelope: &Envelope) {
        if envelope.trimmed {
            self.signals.counts().trimming.ignored += 1;
            return;
        }
        self.received += 1;
        self.stats.delivered += u64::from(envelope.payload);
        self.stats.marked += u64::from(envelope.ecn == Ecn::Ce);
        self.delivered = true;
    }

    pub(crate) fn on_signal(&mut self) {
        self.signals.counts().notifications.ignored += 1;
    }

    pub(crate) fn on_timer(&mut self, now: Time) {
        self.now = now;
    }

    #[inline]
    pub(crate) fn next_timeout(&self) -> Time {
        self.next.map_or(Time::MAX, |(at, _)| if at > self.now { at } else { Time::MAX })
    }

    #[inline]
    pub(crate) fn due(&self, now: Time, kinds: Kinds) -> bool {
        kinds.has(Kinds::DATA) && self.next.is_some_and(|(at, _)| at <= now)
    }

    pub(crate) fn poll(&mut self, now: Time, kinds: Kinds, envelope: &mut Envelope, header: &mut Header) -> bool {
        let Some((_, payload)) = self.next.filter(|_| self.due(now, kinds)) else { return false };
        *header = Header::Udp(UdpHeader { number: self.stats.packets_sent as u32 });
        envelope.payload = payload as u16;
        envelope.ecn = Ecn::NotEct;
        envelope.kind = Kind::Datagram;
        envelope.trimmed = false;
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += u64::from(payload);
        self.next = self.departures.as_mut().and_then(Iterator::next);
        self.now = now;
        true
    }

    #[inline]
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        std::mem::take(&mut self.delivered).then_some(Event::Delivered { total: self.stats.delivered })
    }

    /// True if [`UdpEndpoint::poll_event`] has nothing to report.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.delivered
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.next.is_none()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.stats
    }

    pub(crate) fn signals(&self) -> SignalCounts {
        self.signals.so_far()
    }

    pub(crate) fn describe(&self) -> String {
        "sends datagrams".to_string()
    }
}
