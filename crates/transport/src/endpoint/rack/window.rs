//! Window in recovery: reductions, proportional rate reduction, undo. Source: RFC 9937; Linux tcp_init_cwnd_reduction,
//! tcp_cwnd_reduction, tcp_undo_cwnd_reduction.

use super::super::loss::{Prr, Repair};
use super::super::{Phase, TcpEndpoint};
use super::{Outstanding, Rack, PERSIST};
use crate::cc::{Congestion, Controller};
use crate::config::{Tcp, WindowRules};
use crate::segments::Segments;
use fanin_units::Time;

impl TcpEndpoint {
    /// Begins fast recovery; after an ECN echo within the same round, the window is being reduced already.
    /// Source: Linux tcp_enter_recovery.
    pub(super) fn begin_recovery(
        &mut self,
        cfg: &Tcp,
        now: Time,
        r: &mut Repair,
        segments: &Segments,
        rack: &mut Rack,
        ece: bool,
    ) {
        self.counts.recoveries += 1;
        let reducing = self.phase == Phase::Cwr;
        rack.prior_ssthresh = None;
        self.begin_undo(segments, rack);
        if !reducing {
            rack.prior_ssthresh = (!ece).then(|| self.current_ssthresh());
            self.reduce(cfg, now, r, rack, |endpoint, event| endpoint.cc.on_loss(&mut endpoint.w, event));
        }
        self.reduced_by_ecn = false;
        self.phase = Phase::Recovery;
        r.cut_at = Some(now);
        rack.f_rto = false;
        rack.new_first = false;
    }

    /// Reduces the window for a drop notification, and begins recovery or extends it to all data outstanding now. The
    /// reduction is not undone, as the loss is certain.
    pub(in crate::endpoint) fn reduce_for_notification_by_rack(
        &mut self,
        cfg: &Tcp,
        now: Time,
        r: &mut Repair,
        o: &mut Outstanding,
    ) {
        let Some(rack) = &mut o.rack else { return };
        self.counts.notice_reductions += 1;
        let before = self.w.cwnd;
        if self.phase == Phase::Recovery {
            self.w.cwnd = self.w.ssthresh; // the window of a recovery
        }
        self.reduce(cfg, now, r, rack, |endpoint, event| endpoint.cc.on_loss(&mut endpoint.w, event));
        self.w.cwnd = self.w.cwnd.min(before);
        self.reduced_by_ecn = false;
        r.cut_at = Some(now);
        rack.f_rto = false;
        if self.phase == Phase::Loss {
            self.w.cwnd = before.min(self.w.ssthresh);
            return;
        }
        self.begin_undo(&o.segments, rack);
        rack.certain = true;
        if self.phase != Phase::Recovery {
            self.counts.recoveries += 1;
            self.phase = Phase::Recovery;
        }
    }

    /// Begins a reduction for an ECN echo, or for a full transmit queue of the host. Source: Linux tcp_enter_cwr.
    pub(in crate::endpoint) fn begin_cwr_by_rack(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, rack: &mut Rack) {
        rack.undo_from = None;
        rack.prior_ssthresh = None;
        let before = self.w.cwnd;
        self.reduce(cfg, now, r, rack, |endpoint, event| endpoint.cc.on_ecn(&mut endpoint.w, event));
        self.reduced_by_ecn = true;
        if cfg.prr && self.w.ssthresh < before {
            self.phase = Phase::Cwr;
        }
    }

    pub(super) fn congestion(&self, cfg: &Tcp, now: Time, first: bool) -> Congestion {
        let flight = (self.nxt - self.una).min(self.w.cwnd); // limited transmit does not count
        let from_cwnd = cfg.window_rules == WindowRules::Linux;
        Congestion { now, flight, from_cwnd, nxt: self.nxt, after_ecn: false, first }
    }

    /// Begins a window reduction. Source: Linux tcp_init_cwnd_reduction.
    pub(super) fn reduce(
        &mut self,
        cfg: &Tcp,
        now: Time,
        r: &mut Repair,
        rack: &mut Rack,
        ask: impl FnOnce(&mut Self, &Congestion),
    ) {
        let cwnd = self.w.cwnd;
        r.recover = self.nxt;
        r.prr = Prr::over(cwnd);
        rack.probe_end = None;
        rack.prior_cwnd = cwnd;
        ask(self, &self.congestion(cfg, now, true));
        if cfg.prr {
            self.w.cwnd = cwnd; // it falls with the ACKs
        }
        self.reduced_until = self.nxt;
        self.cwr_due = self.ecn_on;
        self.burst = 0;
        self.leave_fast_path();
        self.stop_timing(cfg);
    }

    /// Moves the window towards ssthresh with each ACK. `safe`: the ACK is cumulative and reports no loss.
    /// Source: RFC 9937 §6; Linux tcp_cwnd_reduction, which counts whole segments.
    pub(super) fn proportional(&mut self, cfg: &Tcp, r: &mut Repair, segments: &Segments, delivered: u64, safe: bool) {
        if !cfg.prr || delivered == 0 {
            return;
        }
        let mss = u64::from(self.w.mss);
        let pipe = segments.pipe(self.nxt);
        let prr = &mut r.prr;
        prr.delivered += delivered;
        let mut count = if pipe > self.w.ssthresh {
            prr.share(self.w.ssthresh).next_multiple_of(mss).saturating_sub(prr.out)
        } else {
            let room = prr.delivered.saturating_sub(prr.out).max(delivered) + if safe { mss } else { 0 };
            room.min(self.w.ssthresh - pipe)
        };
        if prr.out == 0 {
            count = count.max(mss); // the fast retransmit
        }
        self.w.cwnd = (pipe + count).max(mss.min(self.w.ssthresh));
    }

    /// Ends a window reduction. Source: Linux tcp_end_cwnd_reduction.
    pub(super) fn end_reduction(&mut self, rack: &Rack) {
        if self.phase == Phase::Cwr || rack.undo_from.is_some() {
            self.w.cwnd = self.w.ssthresh;
        }
        self.phase = Phase::Open;
    }

    /// ssthresh as if the congestion control had to compute it now. Source: Linux tcp_current_ssthresh.
    pub(super) fn current_ssthresh(&self) -> u64 {
        match self.phase {
            Phase::Cwr | Phase::Recovery => self.w.ssthresh,
            Phase::Open | Phase::Loss => self.w.ssthresh.max(self.w.cwnd / 4 * 3),
        }
    }

    /// Begins to count which retransmissions were needless, for undo. Source: Linux tcp_init_undo.
    pub(super) fn begin_undo(&self, segments: &Segments, rack: &mut Rack) {
        rack.undo_from = Some(self.una);
        rack.certain = false;
        let again = segments.again().div_ceil(u64::from(self.w.mss));
        if again == 0 {
            rack.first_again = None;
        }
        let left = again + u64::from(rack.probe_end.is_some() && rack.probe_again);
        rack.undo_left = (left > 0).then_some(left);
    }

    /// Undoes the reduction, which was a mistake. Source: Linux tcp_undo_cwnd_reduction.
    pub(super) fn undo(&mut self, segments: &mut Segments, rack: &mut Rack, nothing_lost: bool) {
        rack.counts.undos += 1;
        if nothing_lost {
            segments.none_lost();
        }
        if let Some(ssthresh) = rack.prior_ssthresh {
            self.cc.undo();
            self.w.cwnd = self.w.cwnd.max(rack.prior_cwnd);
            if ssthresh > self.w.ssthresh {
                self.w.ssthresh = ssthresh;
                self.cwr_due = false;
            }
        }
        rack.undo_from = None;
        rack.advanced = true; // losses are searched anew
    }

    /// Undoes the reduction at the end of a recovery, if nothing was lost. Source: Linux tcp_try_undo_recovery.
    pub(super) fn undo_at_end(&mut self, cfg: &Tcp, segments: &mut Segments, rack: &mut Rack, echo: Option<u32>) {
        if cfg.undo && rack.may_undo(echo) {
            self.undo(segments, rack, false);
        } else {
            rack.persist = rack.persist.saturating_sub(1);
        }
    }

    /// Undoes the reduction if D-SACKs have reported all retransmissions. Source: Linux tcp_try_undo_dsack.
    pub(super) fn undo_by_dsack(&mut self, cfg: &Tcp, segments: &mut Segments, rack: &mut Rack) -> bool {
        if !cfg.undo || !rack.undoes() || rack.undo_left != Some(0) {
            return false;
        }
        rack.persist = PERSIST.min(rack.persist + 1);
        self.undo(segments, rack, false);
        true
    }
}
