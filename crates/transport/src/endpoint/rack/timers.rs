//! Timer of outstanding segments: tail loss probes, reordering timeouts, the RTO. Source: RFC 8985 §7, RFC 6298 §5; Linux
//! tcp_schedule_loss_probe, tcp_rack_reo_timeout, tcp_enter_loss.

use super::super::loss::Repair;
use super::super::output::{Next, Reason};
use super::super::{Phase, TcpEndpoint};
use super::{Rack, RackNews, Timer};
use crate::cc::Controller;
use crate::config::{PushBit, SpuriousRto, Tcp};
use crate::segments::Segments;
use fanin_units::{Span, Time};

impl TcpEndpoint {
    /// Event for which the timer of outstanding segments is set.
    pub(in crate::endpoint) fn loss_timer(&self) -> crate::Timer {
        match self.outstanding.as_ref().and_then(|o| o.rack.as_ref()).map(|rack| rack.timer) {
            Some(Timer::Probe) => crate::Timer::TailProbe,
            Some(Timer::Reorder) => crate::Timer::Reordering,
            Some(Timer::Rto) | None => crate::Timer::Retransmission,
        }
    }

    /// Handles the answer to a tail loss probe, which tells if something was lost. Source: RFC 8985 §7.4.2; Linux
    /// tcp_process_tlp_ack.
    pub(super) fn end_probe(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, rack: &mut Rack, more: &RackNews) {
        let Some(end) = rack.probe_end else { return };
        if self.una < end {
            return;
        }
        let needless = more.dsack.is_some_and(|(_, dsack)| dsack == end) || (more.nothing_new && self.una == end);
        if !rack.probe_again || needless {
            rack.probe_end = None;
        } else if self.una > end {
            // The probe has repaired a loss, which counts as congestion.
            if matches!(self.phase, Phase::Open | Phase::Cwr) {
                self.phase = Phase::Open;
                self.reduce(cfg, now, r, rack, |endpoint, event| endpoint.cc.on_loss(&mut endpoint.w, event));
                self.w.cwnd = self.w.ssthresh;
            }
            rack.probe_end = None;
        }
    }

    /// Sets the timer to a probe or to the RTO. Source: Linux tcp_set_xmit_timer.
    pub(super) fn set_loss_timer(&mut self, cfg: &Tcp, now: Time, segments: &Segments, rack: &mut Rack) {
        if self.una == self.nxt {
            rack.timer = Timer::Rto;
            self.rto_at = Time::MAX;
        } else if !self.arm_probe(cfg, now, segments, rack, now + self.rtt.rto) {
            self.rearm_rto(cfg, now, segments, rack);
        }
    }

    /// Sets the timer to the RTO of the first segment, from now on; after another kind of timer, from the time at which that
    /// segment was sent. Source: Linux tcp_rearm_rto.
    pub(super) fn rearm_rto(&mut self, cfg: &Tcp, now: Time, segments: &Segments, rack: &mut Rack) {
        let from_head = rack.timer != Timer::Rto;
        rack.timer = Timer::Rto;
        self.rto_at = cfg.tick(match segments.head_sent() {
            Some(head) if from_head => (head + self.rtt.rto).max(now + Span::from_ps(1)),
            _ => now + self.rtt.rto,
        });
    }

    /// Arms a tail loss probe after two RTTs, if the RTO is not earlier. Source: RFC 8985 §7.2; Linux
    /// tcp_schedule_loss_probe.
    ///
    /// Deviation: for a single segment in flight RTO_min is added for a delayed ACK, as Linux does, where RFC 8985 has the
    /// longest ACK delay of the other end.
    pub(super) fn arm_probe(&mut self, cfg: &Tcp, now: Time, segments: &Segments, rack: &mut Rack, rto_at: Time) -> bool {
        if !cfg.tail_loss_probe
            || self.una == self.nxt
            || !matches!(self.phase, Phase::Open | Phase::Cwr)
            || segments.sacked() > 0
        {
            return false;
        }
        let srtt = self.rtt.srtt;
        let timeout = if srtt > Span::ZERO {
            let extra = if segments.is_single() { cfg.rto_min } else { cfg.timer_slack };
            (srtt * 2 + extra).round_up(cfg.clock_granularity)
        } else {
            cfg.rto_initial
        };
        rack.timer = Timer::Probe;
        self.rto_at = cfg.tick((now + timeout).min(rto_at.max(now + Span::from_ps(1))));
        true
    }

    /// Notes that new data from `from` to SND.NXT was sent. True if it carries PSH although more has been written.
    #[inline(never)] // nothing outstanding is kept where neither RACK nor the congestion control asks for it
    pub(in crate::endpoint) fn note_sent(&mut self, cfg: &Tcp, now: Time, from: u64) -> bool {
        let Some(mut o) = self.outstanding.take() else { return false };
        o.segments.sent(now, self.nxt);
        if let Some(rack) = &mut o.rack {
            if rack.probe_due {
                rack.probe_due = false;
                rack.probe_end = Some(self.nxt);
                rack.probe_again = false;
                rack.counts.tail_probes += 1;
            } else {
                if from == self.una || rack.timer == Timer::Probe {
                    self.rearm_rto(cfg, now, &o.segments, rack);
                }
                let rto_at = o.segments.head_sent().map_or(now, |head| head) + self.rtt.rto;
                if rack.timer == Timer::Rto {
                    self.arm_probe(cfg, now, &o.segments, rack, rto_at);
                }
            }
        }
        let push = match (&mut o.push, &cfg.push) {
            (Some(push), PushBit::HalfWindow(params)) => {
                push.sent(params, self.nxt, self.ends_socket_buffer(cfg), self.max_window)
            }
            _ => false,
        };
        self.outstanding = Some(o);
        if cfg.tso {
            self.note_deferral(cfg, now);
        }
        push
    }

    /// Notes a retransmission; `clock` is its timestamp. A probe is none that an undo waits for. Source: Linux
    /// tcp_send_loss_probe, which calls __tcp_retransmit_skb and not tcp_retransmit_skb.
    pub(in crate::endpoint) fn rack_sent_again(&mut self, cfg: &Tcp, now: Time, next: &Next, clock: u32) {
        let una = self.una;
        let rto = self.rtt.rto;
        let Some(o) = &mut self.outstanding else { return };
        let Some(rack) = &mut o.rack else { return };
        rack.probe_due = false;
        if next.reason == Reason::Probe {
            rack.probe_end = Some(self.nxt);
            rack.probe_again = true;
            rack.counts.tail_probes += 1;
            return;
        }
        rack.head_due = false;
        if next.from == una && rack.timer != Timer::Reorder {
            rack.timer = Timer::Rto;
            self.rto_at = cfg.tick(now + rto);
        }
        rack.undo_left = Some(rack.undo_left.unwrap_or(0) + 1);
        rack.first_again = rack.first_again.or(Some(clock));
    }

    /// Handles the expiry of a probe or reordering timeout; false: it is the RTO.
    pub(in crate::endpoint) fn rack_on_timer(&mut self, cfg: &Tcp, now: Time) -> bool {
        let Some(mut o) = self.outstanding.take() else { return false };
        let mut done = false;
        if let Some(rack) = o.rack.as_mut().filter(|rack| rack.timer != Timer::Rto) {
            done = true;
            if rack.timer == Timer::Probe {
                // One probe per flight at most. Source: RFC 8985 §7.3; Linux tcp_send_loss_probe.
                if rack.probe_end.is_none() {
                    rack.probe_due = true;
                    self.leave_fast_path();
                    rack.timer = Timer::Rto; // anew from now on
                }
            } else {
                self.reorder_timeout(cfg, now, &mut o.segments, rack);
            }
            self.rearm_rto(cfg, now, &o.segments, rack);
        }
        self.outstanding = Some(o);
        done
    }

    /// Handles a reordering timeout. Source: Linux tcp_rack_reo_timeout.
    pub(super) fn reorder_timeout(&mut self, cfg: &Tcp, now: Time, segments: &mut Segments, rack: &mut Rack) {
        let mut r = self.repair.take().unwrap_or_default();
        let before = segments.pipe(self.nxt);
        self.detect(segments, rack, now);
        if segments.pipe(self.nxt) != before {
            if self.phase != Phase::Recovery {
                self.begin_recovery(cfg, now, &mut r, segments, rack, false);
                self.proportional(cfg, &mut r, segments, u64::from(self.w.mss), false);
            }
            self.leave_fast_path();
        }
        self.repair = Some(r);
    }

    /// Handles a retransmission timeout. Source: Linux tcp_enter_loss.
    pub(in crate::endpoint) fn rack_time_out(&mut self, cfg: &Tcp, now: Time) {
        let mut r = self.repair.take().unwrap_or_default();
        let Some(mut o) = self.outstanding.take() else { return };
        if let Some(rack) = &mut o.rack {
            r.advance(self.una);
            let fresh = matches!(self.phase, Phase::Open | Phase::Cwr);
            o.segments.lose_old(now, rack.rtt);
            let first = self.phase == Phase::Open || self.una >= r.recover || (self.phase == Phase::Loss && self.retries == 0);
            if first {
                rack.prior_ssthresh = Some(self.current_ssthresh());
                rack.prior_cwnd = self.w.cwnd;
            }
            let event = self.congestion(cfg, now, first);
            self.cc.on_rto(&mut self.w, &event);
            if first {
                self.begin_undo(&o.segments, rack);
            }
            if fresh && o.segments.sacked() >= self.w.segments(cfg.dup_thresh) {
                rack.reordering = rack.reordering.min(cfg.dup_thresh);
            }
            self.w.cwnd = o.segments.pipe(self.nxt) + u64::from(self.w.mss);
            // Source: RFC 5682 §3.1 step 1.
            rack.f_rto = cfg.spurious_rto == SpuriousRto::FRto && (fresh || self.retries > 0);
            rack.new_first = false;
            rack.head_due = true;
            rack.probe_due = false;
            rack.probe_end = None;
            rack.timer = Timer::Rto;
        }
        self.outstanding = Some(o);
        r.recover = self.nxt;
        r.cut_at = Some(now);
        self.repair = Some(r);
        self.phase = Phase::Loss;
        self.dup_acks = 0;
        self.burst = 0;
        self.leave_fast_path();
        self.reduced_until = self.nxt;
        self.reduced_by_ecn = false;
        self.cwr_due = self.ecn_on;
        self.stop_timing(cfg);
    }
}
