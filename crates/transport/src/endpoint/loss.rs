//! Loss recovery: detection, fast recovery with and without SACK, timeouts and spurious timeouts.

use super::{due, Phase, Sync, TcpEndpoint};
use crate::cc::{Congestion, Controller};
use crate::config::{SpuriousRto, Tcp, WindowRules};
use crate::notified::Notified;
use crate::report::{AbortReason, Pending};
use crate::scoreboard::Scoreboard;
use fanin_units::{Span, Time};

/// State of F-RTO. Source: RFC 5682 §2.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FRto {
    #[default]
    Off,
    /// The first segment was retransmitted; its ACK is awaited (step 2).
    First,
    /// New data may be sent, this many segments; the next ACK decides (step 3).
    Second(u8),
}

/// State of proportional rate reduction. Source: RFC 6937 §3.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    pub delivered: u64,
    pub out: u64,
    recover_fs: u64,
}

impl Prr {
    /// State at the start of a recovery with `flight` bytes outstanding.
    pub fn over(flight: u64) -> Self {
        Prr { delivered: 0, out: 0, recover_fs: flight.max(1) }
    }

    /// Bytes that may have been sent by now: the share ssthresh / RecoverFS of the delivered bytes, rounded up.
    pub fn share(&self, ssthresh: u64) -> u64 {
        (u128::from(self.delivered) * u128::from(ssthresh)).div_ceil(u128::from(self.recover_fs)) as u64
    }
}

/// Recovery state of a sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Repair {
    pub board: Scoreboard,
    /// Ranges named by drop notifications.
    pub notified: Notified,
    /// True if a drop notification began the recovery and no duplicate ACKs have asked for it.
    pub by_notification: bool,
    /// Time of the last window reduction for a loss, duplicate ACKs and timeouts included.
    pub cut_at: Option<Time>,
    /// RecoveryPoint of RFC 6675, "recover" of RFC 6582: SND.NXT at the last recovery or timeout.
    pub recover: u64,
    /// True if the first retransmission of a recovery is due, which the window does not limit. Source: RFC 6675 §5 step 4.3.
    pub first_due: bool,
    /// RescueRxt: the rescue retransmission is allowed once SND.UNA is above. Source: RFC 6675 §4 NextSeg rule 4.
    pub rescue_rxt: u64,
    /// True once a partial ACK has arrived: further ones do not restart the timer. Source: RFC 6582 §3.2 step 3.
    partial: bool,
    pub prr: Prr,
    /// Bytes sent by limited transmit. Source: RFC 5681 §3.2 step 2.
    pub limited_sent: u64,
    /// SND.UNA at the last timeout.
    rto_una: u64,
    pub f_rto: FRto,
    /// Eifel: timestamp of the first retransmission after a timeout.
    pub eifel: Option<u32>,
    /// Eifel: true if the next retransmission is the first one after the timeout.
    pub eifel_due: bool,
    /// pipe_prev of RFC 4015 §3.2: bytes in flight before the timeout.
    pipe_prev: u64,
}

impl Repair {
    /// Bytes in flight. Source: RFC 6675 §4 SetPipe; data named by a notification is not in the network until it is
    /// retransmitted, and then once, whatever the watermarks of the scoreboard say.
    pub fn pipe(&self, una: u64, nxt: u64) -> u64 {
        let pipe = self.board.pipe(una, nxt);
        if self.notified.is_empty() {
            return pipe;
        }
        let mut pipe = pipe as i64;
        for r in self.notified.iter() {
            let below = |edge: u64| edge.clamp(r.from, r.to).abs_diff(r.from) as i64;
            let (all, sent) = (below(r.to), if r.sent { below(r.to) } else { 0 });
            pipe -= all - below(self.board.lost_edge()) + below(self.board.high_rxt()) - sent;
        }
        debug_assert!(pipe >= 0, "{self:?}");
        pipe as u64
    }

    /// Bytes that duplicate ACKs show to be lost and no notification has named.
    fn lost_not_notified(&self) -> u64 {
        let edge = self.board.lost_edge();
        self.board.lost() - self.notified.iter().map(|r| edge.clamp(r.from, r.to) - r.from).sum::<u64>()
    }

    /// First hole at or above HighRxt and below `limit` that no notification has named; named ones are retransmitted
    /// separately.
    pub fn next_hole(&self, limit: u64) -> Option<(u64, u64)> {
        let mut at = self.board.high_rxt();
        while let Some((from, to)) = self.board.hole_from(at, limit) {
            if let Some(not_notified) = self.notified.not_notified(from, to) {
                return Some(not_notified);
            }
            at = to;
        }
        None
    }

    /// The next lost hole that has not been retransmitted. Source: RFC 6675 §4 NextSeg rule 1.
    pub fn next_lost(&self) -> Option<(u64, u64)> {
        self.next_hole(self.board.lost_edge())
    }

    /// Advances the cumulative ACK to `una`; returns the number of SACKed bytes that it covers.
    pub fn advance(&mut self, una: u64) -> u64 {
        self.notified.remove(0, una);
        self.board.advance(una)
    }

    /// Records a SACK block; returns the number of newly SACKed bytes.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        self.notified.remove(start, end);
        self.board.insert(start, end)
    }
}

/// News of an ACK for loss recovery.
#[derive(Clone, Copy)]
pub(super) struct AckNews {
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes that have newly left the network, SACKed ones included.
    pub delivered: u64,
    pub duplicate: bool,
    pub ece: bool,
    pub ts_echo: u32,
    /// RTT sample, as [`Ack::rtt`](crate::cc::Ack::rtt).
    pub rtt: Option<Span>,
    /// True if no RTT is needed, as [`Ack::untimed`](crate::cc::Ack::untimed).
    pub untimed: bool,
}

impl TcpEndpoint {
    /// Processes an ACK in loss recovery; true if it restarts the retransmission timer.
    pub(super) fn repair_on_ack(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, news: AckNews) -> bool {
        match self.phase {
            Phase::Recovery => return self.recovery_on_ack(cfg, now, r, &news),
            Phase::Loss => self.loss_on_ack(cfg, now, r, &news),
            Phase::Open | Phase::Cwr => {
                if self.phase == Phase::Cwr {
                    self.cwr_on_ack(r, news.delivered);
                }
                self.new_ack_with(cfg, now, r, &news);
                self.detect_loss(cfg, now, r, &news);
            }
        }
        true
    }

    /// Calls [`TcpEndpoint::on_new_ack`], with the recovery state borrowed.
    fn new_ack_with(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, news: &AckNews) {
        if news.acked > 0 && self.on_new_ack(cfg, now, news) {
            self.begin_cwr(r, news.acked);
        }
    }

    /// Detects a loss by duplicate ACKs or SACK blocks. Source: RFC 5681 §3.2, RFC 6582 §3.2 step 2, RFC 6675 §5.
    fn detect_loss(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, news: &AckNews) {
        if self.una == self.nxt {
            return;
        }
        if self.sack_on {
            r.board.find_lost(cfg.dup_thresh, self.w.mss);
            if news.duplicate && self.loss_beyond_notifications(cfg, r) {
                self.enter_recovery(cfg, now, r, news.delivered);
            }
        } else if news.duplicate && self.dup_acks == cfg.dup_thresh && !r.notified.covers(self.una) {
            // "Careful": duplicates of what a timeout sent again are no losses, by the ACK heuristic of RFC 6582 §4.1.
            let new_loss = self.una > r.recover || r.recover == 0;
            let heuristic = self.w.cwnd > u64::from(self.w.mss) && u64::from(self.last_acked) <= self.w.segments(4);
            if new_loss || heuristic {
                self.enter_recovery(cfg, now, r, news.delivered);
            }
        }
    }

    /// True if duplicate ACKs indicate a loss that no notification has named.
    pub(super) fn loss_beyond_notifications(&self, cfg: &Tcp, r: &Repair) -> bool {
        let by_count = self.dup_acks >= cfg.dup_thresh && !r.notified.covers(self.una);
        by_count || (self.sack_on && r.lost_not_notified() > 0)
    }

    fn enter_recovery(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, delivered: u64) {
        let flight = (self.nxt - self.una).saturating_sub(r.limited_sent);
        let after_ecn = self.reduced_by_ecn && self.una < self.reduced_until;
        let from_cwnd = cfg.window_rules == WindowRules::Linux;
        self.cc.on_loss(&mut self.w, &Congestion { now, flight, from_cwnd, nxt: self.nxt, after_ecn, first: true });
        self.counts.recoveries += 1;
        self.reduced_until = self.nxt;
        self.reduced_by_ecn = false;
        self.phase = Phase::Recovery;
        self.burst = 0;
        self.stop_timing(cfg);
        r.cut_at = Some(now);
        r.by_notification = false;
        r.recover = self.nxt;
        r.first_due = true;
        r.partial = false;
        r.limited_sent = 0;
        r.board.begin(self.una);
        if !self.sack_on {
            // Source: RFC 5681 §3.2 step 3.
            self.w.cwnd = self.w.ssthresh + self.w.segments(cfg.dup_thresh);
        } else if cfg.prr {
            r.prr = Prr::over(self.nxt - self.una);
            self.prr_on_ack(r, delivered);
        }
    }

    /// Updates the window by PRR for an ACK. Source: RFC 6937 §3, with the slow-start reduction bound.
    pub(super) fn prr_on_ack(&mut self, r: &mut Repair, delivered: u64) {
        let pipe = r.pipe(self.una, self.nxt);
        let prr = &mut r.prr;
        prr.delivered += delivered;
        let ssthresh = self.w.ssthresh;
        let count = if pipe > ssthresh {
            prr.share(ssthresh).saturating_sub(prr.out)
        } else {
            let limit = prr.delivered.saturating_sub(prr.out).max(delivered) + u64::from(self.w.mss);
            (ssthresh - pipe).min(limit)
        };
        self.w.cwnd = (pipe + count).max(u64::from(self.w.mss).min(ssthresh));
    }

    /// Begins a reduction to ssthresh over a round, by PRR. Source: RFC 6937; Linux tcp_enter_cwr.
    pub(super) fn begin_cwr(&mut self, r: &mut Repair, acked: u64) {
        r.advance(self.una);
        r.prr = Prr::over(self.nxt - self.una + acked);
        r.recover = self.nxt;
        self.phase = Phase::Cwr;
        self.leave_fast_path();
        self.prr_on_ack(r, acked);
    }

    fn cwr_on_ack(&mut self, r: &mut Repair, delivered: u64) {
        if self.una >= r.recover {
            self.phase = Phase::Open;
            self.w.cwnd = self.w.ssthresh;
        } else {
            self.prr_on_ack(r, delivered);
        }
    }

    fn recovery_on_ack(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, news: &AckNews) -> bool {
        let mss = u64::from(self.w.mss);
        if news.acked > 0 {
            self.note_new_ack(cfg, now, news);
        }
        let ack = self.ack_of(cfg, now, news, false);
        let ssthresh = self.w.ssthresh;
        self.cc.on_recovery_ack(&mut self.w, &ack);
        if self.w.ssthresh != ssthresh && self.sack_on {
            self.w.cwnd = self.w.ssthresh; // Source: RFC 6675 §5 step 4.2
        }
        let reno = !self.sack_on && self.cc.new_ack_ends_recovery() && !r.by_notification;
        if self.una >= r.recover || (reno && news.acked > 0) {
            self.phase = Phase::Open;
            r.first_due = false;
            // SACK: RFC 6675 §5 leaves cwnd as set at the start. NewReno: RFC 6582 §3.2 step 3 option 1.
            // Reno: RFC 5681 §3.2 step 6.
            self.w.cwnd = self.w.ssthresh;
            if !self.sack_on && !reno {
                self.w.cwnd = self.w.ssthresh.min((self.nxt - self.una).max(mss) + mss);
            }
            r.board.find_lost(cfg.dup_thresh, self.w.mss);
            return true;
        }
        if r.by_notification {
            return self.notified_recovery_on_ack(cfg, r, news);
        }
        if self.sack_on {
            r.board.find_lost(cfg.dup_thresh, self.w.mss);
            if cfg.prr {
                self.prr_on_ack(r, news.delivered);
            }
            return true;
        }
        if news.acked > 0 {
            // A partial ACK. Source: RFC 6582 §3.2 step 3. What a notification has named is on its way again.
            r.board.begin(self.una);
            r.first_due = !r.notified.covers(self.una);
            self.w.cwnd = self.w.cwnd.saturating_sub(news.acked);
            if news.acked >= mss {
                self.w.cwnd += mss;
            }
            self.w.cwnd = self.w.cwnd.max(mss);
            let restart = !r.partial;
            r.partial = true;
            return restart;
        }
        if news.duplicate {
            self.w.cwnd += mss; // Source: RFC 5681 §3.2 step 4.
        }
        true
    }

    fn loss_on_ack(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, news: &AckNews) {
        let over = self.una >= r.recover;
        if news.acked > 0 && self.is_spurious(cfg, r, news) {
            self.undo_timeout(cfg, now, r, news);
            return;
        }
        if r.f_rto != FRto::Off {
            self.f_rto_on_ack(r, news);
        }
        if over {
            self.phase = Phase::Open;
            r.f_rto = FRto::Off;
            r.eifel = None;
        }
        if news.acked > 0 {
            r.eifel = None;
        }
        self.new_ack_with(cfg, now, r, news);
        if over {
            self.detect_loss(cfg, now, r, news);
        }
    }

    /// True if this ACK, which advances SND.UNA, shows the timeout to have been spurious.
    fn is_spurious(&self, cfg: &Tcp, r: &Repair, news: &AckNews) -> bool {
        match cfg.spurious_rto {
            SpuriousRto::None => false,
            // Source: RFC 5682 §2.1 step 3b.
            SpuriousRto::FRto => matches!(r.f_rto, FRto::Second(_)),
            // Source: RFC 3522 §3.2 step 4.
            SpuriousRto::Eifel => r.eifel.is_some_and(|sent| (news.ts_echo.wrapping_sub(sent) as i32) < 0),
        }
    }

    /// Advances F-RTO for an ACK. Source: RFC 5682 §2.1 steps 2 and 3a.
    fn f_rto_on_ack(&mut self, r: &mut Repair, news: &AckNews) {
        r.f_rto = match r.f_rto {
            FRto::First if news.acked > 0 && r.board.high_rxt() <= self.una && self.can_send_new() => FRto::Second(2),
            FRto::Second(_) if news.acked == 0 && news.duplicate => {
                self.w.cwnd = self.w.segments(3);
                FRto::Off
            }
            FRto::First if news.acked > 0 || news.duplicate => FRto::Off,
            unchanged => unchanged, // an ACK of new data in the second place has ended the loss: is_spurious
        };
    }

    /// True if there is new data, and receive window for it.
    fn can_send_new(&self) -> bool {
        self.nxt < self.end && self.edge > self.nxt
    }

    /// Reverts a spurious timeout. Source: RFC 4015 §3.2 steps 4 and 5.
    ///
    /// Deviation: SRTT and RTTVAR are not re-initialised (step 6 to 8).
    fn undo_timeout(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, news: &AckNews) {
        self.counts.spurious_rtos += 1;
        self.cc.undo();
        self.phase = Phase::Open;
        r.f_rto = FRto::Off;
        r.eifel = None;
        r.board.none_lost();
        self.new_ack_with(cfg, now, r, news);
        let flight = r.pipe(self.una, self.nxt);
        let acked = news.acked.min(cfg.initial_window_bytes(self.w.mss));
        self.w.cwnd = (flight + acked).max(u64::from(self.w.mss));
        self.w.ssthresh = r.pipe_prev;
    }

    /// Handles the expiry of the timer of SYN, data, FIN, probes or TIME-WAIT.
    #[inline(never)]
    pub(super) fn on_rto_timer(&mut self, cfg: &Tcp, now: Time) {
        self.rto_at = Time::MAX;
        self.refused = false;
        match self.sync {
            Sync::Listen | Sync::Closed => return,
            Sync::TimeWait => {
                self.sync = Sync::Closed;
                return;
            }
            Sync::SynSent | Sync::SynReceived => {
                self.counts.timeouts += 1;
                if u32::from(self.retries) >= cfg.syn_retries {
                    self.abort(AbortReason::RetriesExhausted);
                    return;
                }
                self.syn_again = true;
                self.stop_timing(cfg);
                self.due |= due::SYN;
            }
            Sync::Open if self.una == self.nxt => {
                if self.end == self.nxt || self.edge > self.nxt {
                    return;
                }
                if u32::from(self.retries) >= cfg.max_retries {
                    self.abort(AbortReason::RetriesExhausted);
                    return;
                }
                self.due |= due::PROBE;
                self.counts.window_probes += 1;
                self.leave_fast_path();
            }
            Sync::Open => {
                if self.rack_on_timer(cfg, now) {
                    return;
                }
                self.counts.timeouts += 1;
                if u32::from(self.retries) >= cfg.max_retries {
                    self.abort(AbortReason::RetriesExhausted);
                    self.due |= due::RST;
                    return;
                }
                if self.by_rack() {
                    self.rack_time_out(cfg, now);
                } else {
                    self.time_out(cfg, now);
                }
            }
        }
        self.retries += 1;
        self.rtt.back_off(cfg);
        self.rto_at = cfg.tick(now + self.rtt.rto);
    }

    /// Handles a retransmission timeout. Source: RFC 6298 §5.4, RFC 5681 §3.1, RFC 6675 §5.1, RFC 6582 §3.2 step 4.
    ///
    /// Where losses are found by RACK, [`TcpEndpoint::rack_time_out`] takes its place.
    fn time_out(&mut self, cfg: &Tcp, now: Time) {
        let mut r = self.repair.take().unwrap_or_default();
        let flight = self.nxt - self.una;
        let again = self.phase == Phase::Loss && self.una < r.recover;
        let from_cwnd = cfg.window_rules == WindowRules::Linux;
        // In Linux a timeout within a reduction belongs to it. Source: Linux tcp_enter_loss.
        let in_reduction = from_cwnd && matches!(self.phase, Phase::Recovery | Phase::Cwr) && self.una < r.recover;
        let sent_by_timer = again && r.rto_una == self.una;
        let first = !in_reduction && !sent_by_timer;
        r.pipe_prev = flight.max(self.w.ssthresh);
        // FlightSize counts what is SACKed or buffered at the receiver: after a long recovery, far more than cwnd. Half of
        // it would be a burst once the hole is filled. Source: RFC 5681 §3.1 equation 4 ("no more than"), Linux
        // tcp_enter_loss, which halves cwnd.
        let flight = flight.min(self.w.cwnd);
        let event = Congestion { now, flight, from_cwnd, nxt: self.nxt, after_ecn: false, first };
        self.cc.on_rto(&mut self.w, &event);
        r.advance(self.una);
        r.board.all_lost(self.una, self.nxt);
        r.notified.clear();
        r.by_notification = false;
        r.cut_at = Some(now);
        r.recover = self.nxt;
        r.rto_una = self.una;
        r.first_due = false;
        r.limited_sent = 0;
        // Source: RFC 5682 §2.1 step 1.
        r.f_rto = if cfg.spurious_rto == SpuriousRto::FRto && !again { FRto::First } else { FRto::Off };
        r.eifel = None;
        r.eifel_due = cfg.spurious_rto == SpuriousRto::Eifel && self.ts_on && first;
        self.repair = Some(r);
        self.phase = Phase::Loss;
        self.dup_acks = 0;
        self.burst = 0;
        self.leave_fast_path();
        self.reduced_until = self.nxt;
        self.reduced_by_ecn = false;
        self.stop_timing(cfg);
    }

    /// Aborts the connection.
    pub(super) fn abort(&mut self, reason: AbortReason) {
        self.sync = Sync::Closed;
        self.aborted = Some(reason);
        self.leave_fast_path();
        self.due = 0;
        self.rto_at = Time::MAX;
        self.ack_at = Time::MAX;
        self.pace_at = Time::MAX;
        self.pending.add(Pending::ABORTED);
    }
}
