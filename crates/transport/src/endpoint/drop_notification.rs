//! Drop notifications: messages by which a switch tells the sender of a packet that it dropped it. Source: PDN §IV.

use super::loss::{FRto, Prr, Repair};
use super::rack::Outstanding;
use super::{due, Phase, Sync, TcpEndpoint};
use crate::cc::{Congestion, Controller};
use crate::config::{DropResend, Tcp};
use fanin_packet::{IpVersion, Lost, Part, Reference, Signal};
use fanin_units::{Span, Time};

fanin_params::counters! {
    /// Responses of senders to drop notifications.
    pub struct NotificationCounts in "notifications" {
        /// Notifications that led to a retransmission of the packet.
        retransmitted: success,
        /// Notifications of a loss that the sender knew already.
        redundant,
        /// Notifications of data that had been acknowledged by then, cumulatively or selectively.
        arrived,
        /// Notifications of data that was not in flight: never sent, without data, or the connection was closed.
        unknown,
        /// Notifications with an undefined operation.
        undefined: failure,
        /// Notifications to a sender whose transport does not act on them: set `drop_notification` = true.
        ignored: failure,
    }
}

/// Length of a notification without addresses and ports: sequence number 4, length 2, type 1, operation 1. Source: PDN fig.
/// 3.
const FIELDS: u16 = 8;

/// Bytes that a segment reserves for a notification at the end of its frame: 20, with IPv6 44.
pub(crate) const fn notification_bytes(ip: IpVersion) -> u16 {
    ip.tuple() + FIELDS
}

/// Response of an endpoint to a certain loss of a packet of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Retransmitted,
    Redundant,
    Arrived,
    Unknown,
}

impl TcpEndpoint {
    /// Handles a drop notification: a switch has dropped a packet that this end sent.
    ///
    /// The bytes are retransmitted at once, regardless of window and pacing (or with `drop_resend = "window"`, when the window has
    /// room): they take the place that the dropped packet had.
    /// With `reduce` the congestion control reduces the window as for a loss, and the sender is in
    /// recovery until all that was outstanding is acknowledged. It reduces once per RTT at most: a further drop counts when
    /// SRTT has passed since the last reduction and the packet was sent after it. Duplicate ACKs of data that a
    /// notification has named mean nothing new.
    ///
    /// A notification that arrives late or twice costs one segment at most: it is the same as that of a retransmission
    /// which was dropped again.
    ///
    /// For a dropped pure acknowledgment, the newest one is retransmitted.
    ///
    /// Source: PDN §IV. Deviation: the reduction is the congestion control's (CUBIC's is not by half); cwnd is not below what
    /// it was where a half would be below two segments.
    pub(super) fn on_notification(&mut self, cfg: &Tcp, now: Time, signal: &Signal) {
        if !cfg.drop_notification {
            self.signals.counts().notifications.ignored += 1;
            return;
        }
        let Signal::Lost(lost) = signal else {
            self.signals.counts().notifications.undefined += 1;
            return;
        };
        let outcome = self.on_certain_loss(cfg, now, lost);
        let counts = &mut self.signals.counts().notifications;
        match outcome {
            Outcome::Retransmitted => counts.retransmitted += 1,
            Outcome::Redundant => counts.redundant += 1,
            Outcome::Arrived => counts.arrived += 1,
            Outcome::Unknown => counts.unknown += 1,
        }
    }

    /// Handles a certain loss of a packet of this end, reported by a drop notification or a NACK.
    pub(super) fn on_certain_loss(&mut self, cfg: &Tcp, now: Time, lost: &Lost) -> Outcome {
        let packet = &lost.packet;
        let outcome = match (self.sync, packet.part) {
            (Sync::SynSent | Sync::SynReceived, Part::Data) => self.syn_was_dropped(cfg, now, lost),
            (Sync::Open, Part::Data) => match self.range_of(packet) {
                Ok((from, to)) => self.data_was_dropped(cfg, now, (from, to), lost.reduce),
                Err(outcome) => outcome,
            },
            (Sync::Open | Sync::TimeWait, Part::Acknowledgment) => self.ack_was_dropped(packet),
            _ => Outcome::Unknown,
        };
        self.counts.notices += u32::from(outcome == Outcome::Retransmitted);
        outcome
    }

    /// Retransmits the newest acknowledgment; older ones, which newer ones have replaced, are not. A delayed acknowledgment
    /// is sent now, since the peer has waited for the previous one.
    ///
    /// If other acknowledgments of the same number have arrived (of data beyond a hole), the copy is one duplicate more.
    fn ack_was_dropped(&mut self, packet: &Reference) -> Outcome {
        if packet.number != self.wire_rcv_nxt() && self.unacked == 0 {
            return Outcome::Redundant;
        }
        self.due |= due::ACK;
        Outcome::Retransmitted
    }

    /// Retransmits the SYN or SYN/ACK and restarts the timer; it has not expired, so its back-off and RFC 6298 §5.7 do not
    /// apply. With a reduction the initial window is one segment. Source: RFC 5681 §3.1.
    fn syn_was_dropped(&mut self, cfg: &Tcp, now: Time, lost: &Lost) -> Outcome {
        let packet = &lost.packet;
        if packet.number != self.wire(0) || packet.length != 0 {
            return Outcome::Unknown;
        }
        if self.due & due::SYN != 0 {
            return Outcome::Redundant;
        }
        self.syn_dropped |= lost.reduce;
        self.stop_timing(cfg);
        self.due |= due::SYN;
        self.rto_at = now + self.rtt.rto;
        Outcome::Retransmitted
    }

    /// Range of the stream that was dropped, cut to its unacknowledged part; a FIN belongs to the last byte.
    fn range_of(&self, packet: &Reference) -> Result<(u64, u64), Outcome> {
        let from = self.una as i64 + i64::from(packet.number.wrapping_sub(self.wire(self.una)) as i32);
        let mut to = from + i64::from(packet.length);
        let (una, nxt, end) = (self.una as i64, self.nxt as i64, self.end as i64);
        if self.fin_sent && to == end {
            to = nxt;
        }
        if from == to || to > nxt {
            return Err(Outcome::Unknown);
        }
        if to <= una {
            return Err(Outcome::Arrived);
        }
        Ok((from.max(una) as u64, to as u64))
    }

    fn data_was_dropped(&mut self, cfg: &Tcp, now: Time, (from, to): (u64, u64), reduce: bool) -> Outcome {
        let mut r = self.repair.take().unwrap_or_default();
        r.advance(self.una);
        let outcome = match self.outstanding.take() {
            Some(mut o) if o.rack.is_some() => {
                let outcome = self.note_drop_by_rack(cfg, now, &mut r, &mut o, (from, to), reduce);
                self.outstanding = Some(o);
                outcome
            }
            o => {
                self.outstanding = o;
                self.note_drop(cfg, now, &mut r, (from, to), reduce)
            }
        };
        self.repair = Some(r);
        self.enter_fast_path();
        outcome
    }

    /// Records a dropped range on a connection with RACK, which detects a second loss of the retransmission.
    fn note_drop_by_rack(
        &mut self,
        cfg: &Tcp,
        now: Time,
        r: &mut Repair,
        o: &mut Outstanding,
        (from, to): (u64, u64),
        reduce: bool,
    ) -> Outcome {
        let at_once = cfg.drop_resend == DropResend::AtOnce;
        let Some((news, again)) = o.segments.name_lost(from, to, at_once) else { return Outcome::Arrived };
        if news == 0 {
            return Outcome::Redundant;
        }
        self.burst = 0;
        self.stop_timing(cfg);
        let rtt = self.rtt.srtt;
        let rtt_over = r.cut_at.is_none_or(|at| now >= at + rtt);
        if reduce && rtt_over && (from >= self.reduced_until || (again && rtt > Span::ZERO)) {
            self.reduce_for_notification_by_rack(cfg, now, r, o);
        }
        Outcome::Retransmitted
    }

    fn note_drop(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, (from, to): (u64, u64), reduce: bool) -> Outcome {
        // After a timeout everything is lost, and sent again in order: this says something new only below.
        let limit = if self.phase == Phase::Loss { to.min(r.board.high_rxt()) } else { to };
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let Some(first) = r.board.hole_from(from, to) else { return Outcome::Arrived };
        let new = first.0 >= self.reduced_until;
        let mut again = repairing && first.0 < r.board.high_rxt();
        let (mut at, mut news) = (from, 0);
        while let Some((a, b)) = r.board.hole_from(at, limit) {
            again |= r.notified.covers(a);
            news += r.notified.lose(a, b);
            at = b;
        }
        if news == 0 {
            return Outcome::Redundant;
        }
        self.burst = 0;
        self.stop_timing(cfg);
        if self.phase == Phase::Loss {
            r.f_rto = FRto::Off; // a loss it was
            r.eifel = None;
        }
        // What was sent before the last reduction belongs to it. As long as no RTT is known, so does what was sent again.
        let rtt = self.rtt.srtt;
        let rtt_over = r.cut_at.is_none_or(|at| now >= at + rtt);
        if reduce && rtt_over && (new || (again && rtt > Span::ZERO)) {
            self.reduce_for_notification(cfg, now, r);
        }
        Outcome::Retransmitted
    }

    /// Reduces the window as for a loss, and begins recovery or extends it to all data outstanding now.
    fn reduce_for_notification(&mut self, cfg: &Tcp, now: Time, r: &mut Repair) {
        let before = self.w.cwnd;
        let flight = self.nxt - self.una;
        // In recovery the window is ssthresh; cwnd moves around it. What limited transmit sent does not count.
        let window = if self.phase == Phase::Recovery { self.w.ssthresh } else { before };
        let flight = flight.saturating_sub(r.limited_sent).min(window);
        // Without SACK, duplicate ACKs show how many segments have left the network. Source: RFC 5681 §3.2 steps 3 and 4.
        let left = match self.phase {
            _ if self.sack_on => 0,
            Phase::Recovery => before.saturating_sub(self.w.ssthresh),
            Phase::Loss => 0,
            Phase::Open | Phase::Cwr => self.w.segments(self.dup_acks),
        };
        let after_ecn = self.reduced_by_ecn && self.una < self.reduced_until;
        self.cc.on_loss(&mut self.w, &Congestion { now, flight, from_cwnd: false, nxt: self.nxt, after_ecn, first: true });
        self.w.cwnd = self.w.cwnd.min(before) + left;
        self.counts.notice_reductions += 1;
        self.reduced_until = self.nxt;
        self.reduced_by_ecn = false;
        r.cut_at = Some(now);
        r.limited_sent = 0;
        if self.phase == Phase::Loss {
            return;
        }
        if self.phase != Phase::Recovery {
            self.counts.recoveries += 1;
            self.phase = Phase::Recovery;
            r.by_notification = true;
            r.first_due = false;
            r.board.begin(self.una);
        }
        r.recover = self.nxt;
        if self.sack_on && cfg.prr {
            r.prr = Prr::over(self.nxt - self.una);
            self.prr_on_ack(r, 0);
        }
    }

    /// Handles an ACK in a recovery that a notification began, before its end: data before the hole may still arrive, so a
    /// partial ACK indicates no loss, and the window is not below ssthresh.
    pub(super) fn notified_recovery_on_ack(&mut self, cfg: &Tcp, r: &mut Repair, news: &super::loss::AckNews) -> bool {
        let mss = u64::from(self.w.mss);
        if self.sack_on {
            r.board.find_lost(cfg.dup_thresh, self.w.mss);
            if cfg.prr {
                self.prr_on_ack(r, news.delivered);
            }
        } else if news.acked > 0 {
            // Source: RFC 6582 §3.2 step 3, as far as duplicate ACKs have inflated it.
            let deflated = self.w.cwnd.saturating_sub(news.acked) + mss.min(news.acked);
            self.w.cwnd = deflated.max(self.w.cwnd.min(self.w.ssthresh));
        } else if news.duplicate {
            self.w.cwnd += mss; // Source: RFC 5681 §3.2 step 4.
        }
        if news.duplicate && self.loss_beyond_notifications(cfg, r) {
            // A loss that no switch has notified of: the rest is ordinary recovery, within the same reduction.
            r.by_notification = false;
            r.first_due = true;
            r.board.begin(self.una);
        }
        true
    }
}
