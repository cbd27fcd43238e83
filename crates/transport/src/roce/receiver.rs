//! Receiving half of a queue pair: ordering, acknowledgments, and notifications of marks.

use super::cc::Notifying;
use super::config::Roce;
use crate::report::Stats;
use fanin_packet::{Ecn, Envelope, Header, Kind, RoceHeader, RoceOp, Syndrome};
use fanin_units::{Span, Time, TrafficClass};
use std::collections::VecDeque;

/// Out-of-order packet that has arrived; a placeholder for a missing one if it has no bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Early {
    payload: u16,
    last: bool,
}

/// Sender of notifications of marks, at most one per interval; packets marked in between cause one at its end. Source: DCQCN
/// §3.1 (notification point).
#[derive(Clone, Copy, Debug)]
struct Notifier {
    rule: Notifying,
    /// End of the interval after the last notification.
    quiet_until: Time,
    /// True if a packet of this interval was marked.
    marked: bool,
    /// Departure time of a notification that has been caused.
    due_at: Time,
}

impl Notifier {
    fn on_mark(&mut self, now: Time) {
        if now < self.quiet_until {
            self.marked = true;
        } else {
            self.cause(now);
        }
    }

    fn cause(&mut self, now: Time) {
        self.marked = false;
        self.quiet_until = now.saturating_add(self.rule.interval);
        // One that has not left yet says the same.
        self.due_at = self.due_at.min(now.saturating_add(self.rule.delay));
    }

    fn on_timer(&mut self, now: Time) {
        if self.marked && now >= self.quiet_until {
            self.cause(now);
        }
    }

    fn next_timeout(&self) -> Time {
        if self.marked {
            self.quiet_until.min(self.due_at)
        } else {
            self.due_at
        }
    }
}

/// Receiving half of a queue pair.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Number of the next in-order packet, which is missing.
    expected: u64,
    origin: u32,
    /// Packets received out of order, by distance from the expected one.
    early: VecDeque<Early>,
    /// True if the missing packet has been requested.
    asked: bool,
    /// Number of complete messages.
    msn: u32,
    /// Acknowledgment to send: its syndrome, the out-of-order packet if negative, and the packet's waiting time.
    ack: Option<(Syndrome, Option<u32>, Span)>,
    notifier: Option<Notifier>,
    /// Time of the last input: a notification that is due then needs no timeout.
    now: Time,
}

impl Receiver {
    pub fn new(cfg: &Roce, origin: u32) -> Self {
        let notifier = |rule| Notifier { rule, quiet_until: Time::ZERO, marked: false, due_at: Time::MAX };
        Receiver {
            expected: 0,
            origin,
            early: VecDeque::new(),
            asked: false,
            msn: 0,
            ack: None,
            notifier: cfg.congestion_control.notifying().map(notifier),
            now: Time::ZERO,
        }
    }

    fn psn(&self, packet: u64) -> u32 {
        self.origin.wrapping_add(packet as u32) & RoceHeader::PSN_MASK
    }

    /// Processes a data packet, which `waited` in this host. Returns the bytes that are in order now.
    pub fn on_data(&mut self, cfg: &Roce, now: Time, waited: Span, (e, h): (&Envelope, &RoceHeader), stats: &mut Stats) -> u64 {
        self.on_timer(now);
        if e.ecn == Ecn::Ce {
            stats.marked += 1;
            if let Some(notifier) = &mut self.notifier {
                notifier.on_mark(now);
            }
        }
        let ahead = (h.psn.wrapping_sub(self.psn(self.expected)) << 8) as i32 >> 8;
        if ahead < 0 {
            stats.duplicate_bytes += u64::from(e.payload);
            if h.ack_request {
                self.ack = Some((Syndrome::Ack, None, waited));
            }
            return 0;
        }
        if ahead > 0 {
            self.on_early(cfg, ahead as usize, waited, (e, h), stats);
            return 0;
        }
        let mut bytes = u64::from(e.payload);
        self.take(h.op.is_last());
        // The first place is that of the packet that has come now.
        self.early.pop_front();
        while let Some(next) = self.early.front().copied().filter(|early| early.payload > 0) {
            self.early.pop_front();
            bytes += u64::from(next.payload);
            self.take(next.last);
        }
        self.asked = false;
        if h.ack_request {
            self.ack = Some((Syndrome::Ack, None, waited));
        }
        stats.delivered += bytes;
        bytes
    }

    /// Takes the next in-order packet.
    fn take(&mut self, last: bool) {
        self.expected += 1;
        self.msn = self.msn.wrapping_add(u32::from(last));
    }

    /// Processes an out-of-order packet.
    fn on_early(&mut self, cfg: &Roce, ahead: usize, waited: Span, (e, h): (&Envelope, &RoceHeader), stats: &mut Stats) {
        if !cfg.selective() {
            // One NAK until the missing packet comes. Source: IBTA §9.7.5.1.4.
            if !std::mem::replace(&mut self.asked, true) {
                self.ack = Some((Syndrome::SequenceError, None, waited));
            }
            return;
        }
        if self.early.len() <= ahead {
            self.early.resize(ahead + 1, Early::default());
        }
        let place = &mut self.early[ahead];
        if place.payload > 0 {
            stats.duplicate_bytes += u64::from(e.payload);
        }
        *place = Early { payload: e.payload, last: h.op.is_last() };
        self.ack = Some((Syndrome::SequenceError, Some(h.psn), waited));
    }

    /// True if an acknowledgment or notification is to be sent.
    #[inline]
    pub fn due(&self, now: Time) -> bool {
        self.ack.is_some() || self.notifier.as_ref().is_some_and(|notifier| notifier.due_at <= now)
    }

    /// Makes an acknowledgment or a notification that is due.
    pub fn poll(&mut self, cfg: &Roce, now: Time, stats: &mut Stats, envelope: &mut Envelope, header: &mut Header) -> bool {
        self.now = now;
        let roce = if let Some((syndrome, early, waited)) = self.ack.take() {
            let psn = match syndrome {
                Syndrome::Ack => self.psn(self.expected.wrapping_sub(1)),
                Syndrome::SequenceError => self.psn(self.expected),
            };
            let waited = cfg.congestion_control.needs().waited.then(|| (waited.ps() / 1_000) as u32);
            let msn = self.msn & RoceHeader::PSN_MASK;
            RoceHeader {
                op: RoceOp::Acknowledge,
                psn,
                syndrome,
                early,
                waited,
                msn,
                class: cfg.ack_class.map(TrafficClass),
                ..RoceHeader::default()
            }
        } else if let Some(notifier) = self.notifier.as_mut().filter(|notifier| notifier.due_at <= now) {
            notifier.due_at = Time::MAX;
            RoceHeader { op: RoceOp::Notification, class: cfg.cnp_class.map(TrafficClass), ..RoceHeader::default() }
        } else {
            return false;
        };
        *header = Header::Roce(roce);
        envelope.payload = 0;
        envelope.ecn = Ecn::NotEct;
        envelope.kind = Kind::Reliable;
        envelope.trimmed = false;
        stats.control_sent += 1;
        true
    }

    pub fn on_timer(&mut self, now: Time) {
        self.now = now;
        if let Some(notifier) = &mut self.notifier {
            notifier.on_timer(now);
        }
    }

    #[inline]
    pub fn next_timeout(&self) -> Time {
        match &self.notifier {
            Some(notifier) => {
                let at = notifier.next_timeout();
                if at > self.now {
                    at
                } else {
                    Time::MAX
                }
            }
            None => Time::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roce::cc::RoceControl;
    use fanin_params::defaults;

    /// Swift's acknowledgment says in nanoseconds how long the packet waited here; others say nothing.
    #[test]
    fn acknowledgments_say_how_long_the_packet_waited() {
        for (congestion_control, wanted) in [(RoceControl::Swift(defaults()), Some(7)), (RoceControl::Dcqcn(defaults()), None)] {
            let cfg = Roce { congestion_control, ..Roce::default() };
            let mut receiver = Receiver::new(&cfg, 0);
            let data = RoceHeader { ack_request: true, ..RoceHeader::default() };
            let envelope = Envelope { payload: 1_024, ..Envelope::default() };
            receiver.on_data(&cfg, Time::ZERO, Span::from_ps(7_999), (&envelope, &data), &mut Stats::default());
            let (mut envelope, mut header) = (Envelope::default(), Header::default());
            assert!(receiver.poll(&cfg, Time::ZERO, &mut Stats::default(), &mut envelope, &mut header));
            assert!(matches!(header, Header::Roce(roce) if roce.waited == wanted), "{header:?}");
        }
    }

    /// A marked packet is notified at once if the last notification left N ago; an acknowledgment and a notification are due each by
    /// itself, in this order. Source: DCQCN §3.1 (no CNP in the last N microseconds).
    #[test]
    fn a_mark_at_the_end_of_the_interval_is_notified_at_once() {
        let cfg = Roce { congestion_control: RoceControl::Dcqcn(defaults()), ..Roce::default() };
        let mut receiver = Receiver::new(&cfg, 0);
        let mut arrive = |us, psn, ack_request| {
            let now = Time::ZERO + Span::from_us(us);
            let data = RoceHeader { psn, ack_request, ..RoceHeader::default() };
            let envelope = Envelope { payload: 1_024, ecn: Ecn::Ce, ..Envelope::default() };
            receiver.on_data(&cfg, now, Span::ZERO, (&envelope, &data), &mut Stats::default());
            let mut ops = Vec::new();
            while receiver.due(now) {
                let (mut envelope, mut header) = (Envelope::default(), Header::default());
                assert!(receiver.poll(&cfg, now, &mut Stats::default(), &mut envelope, &mut header));
                ops.extend(if let Header::Roce(roce) = header { Some(roce.op) } else { None });
            }
            ops
        };
        assert_eq!(arrive(0, 0, true), [RoceOp::Acknowledge, RoceOp::Notification]);
        assert_eq!(arrive(49, 1, true), [RoceOp::Acknowledge]);
        assert_eq!(arrive(50, 2, false), [RoceOp::Notification], "of the mark before");
        assert_eq!(arrive(100, 3, false), [RoceOp::Notification]);
    }

    /// A packet that comes early twice is a duplicate, and what is due now needs no timeout.
    #[test]
    fn an_early_packet_that_comes_twice_is_a_duplicate() {
        let recovery = super::super::config::RoceRecovery::SelectiveRepeat(defaults());
        let cfg = Roce { recovery, congestion_control: RoceControl::Dcqcn(defaults()), ..Roce::default() };
        let (mut receiver, mut stats) = (Receiver::new(&cfg, 0), Stats::default());
        let mut arrive = |psn, ecn| {
            let envelope = Envelope { payload: 1_024, ecn, ..Envelope::default() };
            let data = RoceHeader { psn, ..RoceHeader::default() };
            let bytes = receiver.on_data(&cfg, Time::ZERO, Span::ZERO, (&envelope, &data), &mut stats);
            (bytes, stats.duplicate_bytes, receiver.next_timeout())
        };
        assert_eq!(arrive(2, Ecn::Ect0), (0, 0, Time::MAX));
        assert_eq!(arrive(2, Ecn::Ect0), (0, 1_024, Time::MAX));
        assert_eq!(arrive(1, Ecn::Ce), (0, 1_024, Time::MAX), "the notification is due at once");
        assert_eq!(arrive(0, Ecn::Ect0), (3 * 1_024, 1_024, Time::MAX));
    }
}
