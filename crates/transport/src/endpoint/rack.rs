//! Loss recovery by the times at which segments left: RACK-TLP, with PRR and with undoing. Source: RFC 8985, RFC 9937; Linux
//! tcp_input.c (tcp_fastretrans_alert, tcp_process_loss), tcp_recovery.c, tcp_output.c (tcp_schedule_loss_probe).

use super::loss::{AckNews, Prr, Repair};
use super::output::{Next, Why};
use super::{Phase, TcpEndpoint};
use crate::cc::{Congestion, Controller};
use crate::config::{SpuriousRto, Tcp, WindowRules};
use crate::report::RackCounts;
use crate::rtt::EveryAck;
use crate::segments::{Arrivals, Segments};
use fanin_units::{Span, Time};

/// What a sender keeps of outstanding segments.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    pub segments: Segments,
    /// For RTT samples from every ACK.
    pub rtt: EveryAck,
    /// Losses are found by RACK.
    pub rack: Option<Rack>,
}

/// What the retransmission timer is set for. Source: Linux icsk_pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Rto,
    /// Segments are lost unless they are acknowledged until then.
    Reorder,
    /// Tail loss probe.
    Probe,
}

/// Most by which the reordering window is multiplied. Source: Linux tcp_rack_update_reo_wnd.
const MOST_STEPS: u32 = 255;
/// Recoveries without D-SACK after which the reordering window is the smallest again. Source: RFC 8985 §6.2 step 4.
const PERSIST: u32 = 16;
/// Largest degree of reordering \[segments\]. Source: Linux tcp_max_reordering.
const MAX_REORDERING: u32 = 300;

/// The state of RACK-TLP and of undoing. Source: RFC 8985 §5.3; Linux struct tcp_sock.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: of what has arrived, the segment that left last.
    newest: (Time, u64),
    /// RACK.rtt.
    rtt: Span,
    /// `newest` or `rtt` has news.
    advanced: bool,
    /// RACK.reo_wnd_mult and RACK.reo_wnd_persist.
    steps: u32,
    persist: u32,
    /// RACK.dsack_round: D-SACKs below belong to the round of the last one that counted.
    dsack_round: Option<u64>,
    /// Largest extent of reordering seen \[segments\]; `dup_thresh` at the start.
    reordering: u32,
    reordered: bool,
    timer: Timer,
    /// A probe shall leave, or the first segment after a timeout, whatever the window.
    probe_due: bool,
    head_due: bool,
    /// TLP.end_seq, and whether the probe was a retransmission.
    probe_end: Option<u64>,
    probe_again: bool,
    /// undo_marker: SND.UNA when the last reduction began.
    undo_from: Option<u64>,
    /// Retransmissions of which no D-SACK has said that they were needless; `None`: none has left.
    undo_left: Option<u64>,
    /// What undoing restores: ssthresh, unless nothing is to be restored, and cwnd.
    prior_ssthresh: Option<u64>,
    prior_cwnd: u64,
    /// A switch has said that something was lost: the reduction is no mistake.
    certain: bool,
    /// The timestamp of the first retransmission of this recovery.
    first_again: Option<u32>,
    f_rto: bool,
    pub counts: RackCounts,
    /// F-RTO sends new data before retransmissions. Source: RFC 5682 §3.1 step 2b.
    new_first: bool,
}

/// What an ACK means to RACK, beside [`AckNews`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RackNews {
    pub arrivals: Arrivals,
    /// It reports data that arrived twice, as a D-SACK block. Source: RFC 2883.
    pub dsack: Option<(u64, u64)>,
    /// It is neither data, window update nor acknowledgment of anything new.
    pub nothing_new: bool,
    /// SND.UNA before it.
    pub una_before: u64,
}

impl Rack {
    fn new(cfg: &Tcp) -> Self {
        Rack {
            newest: (Time::ZERO, 0),
            rtt: Span::ZERO,
            advanced: false,
            steps: 1,
            persist: 0,
            dsack_round: None,
            reordering: cfg.dup_thresh,
            reordered: false,
            timer: Timer::Rto,
            probe_due: false,
            head_due: false,
            probe_end: None,
            probe_again: false,
            undo_from: None,
            undo_left: None,
            prior_ssthresh: None,
            prior_cwnd: 0,
            certain: false,
            first_again: None,
            f_rto: false,
            counts: RackCounts::default(),
            new_first: false,
        }
    }

    /// The reordering window. Source: RFC 8985 §6.2 step 4; Linux tcp_rack_reo_wnd.
    fn window(&self, phase: Phase, sacked_segments: u64, (least, srtt): (Span, Span)) -> Span {
        let repairing = matches!(phase, Phase::Recovery | Phase::Loss);
        if !self.reordered && (repairing || sacked_segments >= u64::from(self.reordering)) {
            return Span::ZERO;
        }
        (least / 4).saturating_mul(u64::from(self.steps)).min(srtt)
    }

    /// D-SACKs widen the reordering window, once per round. Source: RFC 8985 §6.2 step 4.
    fn adapt_window(&mut self, dsack: bool, una: u64, nxt: u64) {
        if self.dsack_round.is_some_and(|end| una >= end) {
            self.dsack_round = None;
        }
        if dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(nxt);
            self.steps = (self.steps + 1).min(MOST_STEPS);
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Reordering of `segments` was seen. Source: Linux tcp_check_sack_reordering.
    fn note_reordering(&mut self, segments: u64) {
        self.reordering = self.reordering.max(segments.min(u64::from(MAX_REORDERING)) as u32);
        self.reordered = true;
    }

    /// Whether there is a reduction that may be undone.
    fn undoes(&self) -> bool {
        self.undo_from.is_some() && !self.certain
    }

    /// Whether the timestamp echo, or D-SACKs of all retransmissions, show that nothing was lost. Source: Linux tcp_may_undo.
    fn may_undo(&self, echo: Option<u32>) -> bool {
        self.undoes() && (self.undo_left == Some(0) || self.echo_is_older(echo))
    }

    /// The ACK was caused by what left before the first retransmission, as when none has left yet. Source: RFC 3522 §3.2; Linux
    /// tcp_packet_delayed.
    fn echo_is_older(&self, echo: Option<u32>) -> bool {
        self.first_again.is_none_or(|sent| echo.is_some_and(|echo| (echo.wrapping_sub(sent) as i32) < 0))
    }
}

impl Outstanding {
    /// For a connection of which SND.UNA is `una`, where its parameters ask for it.
    pub fn new(cfg: &Tcp, control_needs_rtt: bool) -> Option<Box<Self>> {
        let rack = cfg.uses_rack().then(|| Rack::new(cfg));
        if rack.is_none() && !control_needs_rtt && !cfg.times_every_ack() && !cfg.tso {
            return None;
        }
        Some(Box::new(Outstanding { segments: Segments::new(0), rtt: EveryAck::default(), rack }))
    }

    /// The handshake is over. RACK needs SACK. Source: RFC 8985 §4.
    pub fn established(&mut self, una: u64, sack: bool) {
        self.segments.restart(una);
        if !sack {
            self.rack = None;
        }
    }

    /// Whether only new data is in flight, and nothing else shall leave.
    pub fn is_calm(&self) -> bool {
        match &self.rack {
            None => true,
            Some(rack) => self.segments.is_plain() && !rack.probe_due && !rack.head_due,
        }
    }
}

impl TcpEndpoint {
    /// What RACK-TLP has done, zero where it is off.
    pub fn rack_counts(&self) -> RackCounts {
        self.outstanding.as_ref().and_then(|o| o.rack.as_ref()).map_or(RackCounts::default(), |rack| rack.counts)
    }

    /// What the timer of outstanding segments is set for.
    pub(super) fn loss_timer(&self) -> crate::Timer {
        match self.outstanding.as_ref().and_then(|o| o.rack.as_ref()).map(|rack| rack.timer) {
            Some(Timer::Probe) => crate::Timer::TailProbe,
            Some(Timer::Reorder) => crate::Timer::Reordering,
            Some(Timer::Rto) | None => crate::Timer::Retransmission,
        }
    }

    /// Whether losses are found by RACK on this connection.
    pub(super) fn by_rack(&self) -> bool {
        self.outstanding.as_ref().is_some_and(|o| o.rack.is_some())
    }

    /// An ACK, after the scoreboard has been brought up to date and SND.UNA and the window with it.
    pub(super) fn rack_on_ack(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, news: &AckNews, more: &RackNews) {
        let Some(mut o) = self.outstanding.take() else { return };
        if let Some(mut rack) = o.rack.take() {
            self.process(cfg, now, r, (&mut o.segments, &mut rack), news, more);
            o.rack = Some(rack);
        }
        self.outstanding = Some(o);
    }

    /// Source: Linux tcp_ack.
    fn process(
        &mut self,
        cfg: &Tcp,
        now: Time,
        r: &mut Repair,
        (segments, rack): (&mut Segments, &mut Rack),
        news: &AckNews,
        more: &RackNews,
    ) {
        let arrivals = &more.arrivals;
        let mss = u64::from(self.w.mss);
        if news.delivered > 0 {
            rack.probe_due = false;
            rack.head_due = false;
        }
        if let Some((at, end)) = arrivals.newest {
            rack.advanced = true;
            rack.rtt = arrivals.rtt;
            rack.newest = rack.newest.max((at, end));
        }
        if let Some(low) = arrivals.reordered {
            rack.note_reordering(r.board.highest().saturating_sub(low).div_ceil(mss));
        }
        self.note_dsack(rack, more);
        rack.adapt_window(more.dsack.is_some() && rack.probe_end.is_none(), self.una, self.nxt);
        if news.acked > 0 {
            self.note_new_ack(cfg, now, news);
        }
        if news.ece {
            // Marked bytes count before the reduction that they ask for. Source: Linux in_ack_event.
            self.congestion_on_ack(cfg, now, news, false);
        }
        self.end_probe(cfg, now, r, rack, more);
        let lost = segments.found_lost();
        let mut set_timer = news.acked > 0 || self.timer_follows_sack(segments, arrivals, now);
        let dubious = news.delivered > news.acked || news.duplicate || news.ece || more.dsack.is_some() || more.nothing_new;
        if dubious || self.phase != Phase::Open || !segments.is_plain() {
            self.alert(cfg, now, r, (segments, rack), news, more, &mut set_timer);
        }
        if set_timer {
            self.set_loss_timer(cfg, now, segments, rack);
        }
        let newly_lost = segments.found_lost() > lost;
        let reducing = matches!(self.phase, Phase::Cwr | Phase::Recovery);
        if !news.ece && (news.acked > 0 || news.delivered > 0) {
            // Source: Linux tcp_may_raise_cwnd.
            let in_order = news.acked > 0 || rack.reordering > cfg.dup_thresh;
            self.congestion_on_ack(cfg, now, news, in_order && !reducing);
        }
        if reducing {
            self.proportional(cfg, r, segments, news.delivered, news.acked > 0 && !newly_lost);
        }
    }

    /// The congestion control sees an ACK.
    fn congestion_on_ack(&mut self, cfg: &Tcp, now: Time, news: &AckNews, grow: bool) {
        let ack = self.ack_of(cfg, now, news, grow && self.may_grow(cfg));
        if self.phase == Phase::Recovery {
            self.cc.on_recovery_ack(&mut self.w, &ack);
        } else if news.acked > 0 || grow {
            self.cc.on_ack(&mut self.w, &ack);
        }
    }

    /// D-SACK: a retransmission was needless. Source: Linux tcp_sacktag_write_queue, tcp_check_dsack.
    fn note_dsack(&self, rack: &mut Rack, more: &RackNews) {
        let Some((start, end)) = more.dsack else { return };
        if let (Some(from), Some(left)) = (rack.undo_from, rack.undo_left) {
            if end > from {
                rack.undo_left = Some(left.saturating_sub((end - start).div_ceil(u64::from(self.w.mss))));
            }
        }
    }

    /// Whether the timer starts anew by selective acknowledgments: those of what left after the first segment do not count.
    /// Source: Linux tcp_clean_rtx_queue.
    fn timer_follows_sack(&self, segments: &Segments, arrivals: &Arrivals, now: Time) -> bool {
        match (arrivals.sack_rtt(now), segments.head_sent()) {
            (Some(rtt), Some(head)) => rtt > now.since(head),
            _ => false,
        }
    }

    /// The state machine of loss recovery. Source: Linux tcp_fastretrans_alert.
    #[allow(clippy::too_many_arguments)]
    fn alert(
        &mut self,
        cfg: &Tcp,
        now: Time,
        r: &mut Repair,
        (segments, rack): (&mut Segments, &mut Rack),
        news: &AckNews,
        more: &RackNews,
        set_timer: &mut bool,
    ) {
        let echo = self.echo_of(cfg, news);
        if news.ece {
            rack.prior_ssthresh = None; // an ECN echo forbids undoing
        }
        if self.una >= r.recover {
            match self.phase {
                // CWR reaches the receiver with data above. Source: Linux tcp_fastretrans_alert.
                Phase::Cwr if self.una > r.recover => self.end_reduction(rack),
                Phase::Recovery => {
                    self.undo_at_end(cfg, segments, rack, echo);
                    self.end_reduction(rack);
                }
                _ => {}
            }
        }
        match self.phase {
            Phase::Recovery => {
                if news.acked > 0 && cfg.undo && rack.undoes() && rack.echo_is_older(echo) {
                    // A partial ACK of what had only been late. Source: Linux tcp_try_undo_partial.
                    rack.note_reordering(r.board.highest().saturating_sub(more.una_before).div_ceil(u64::from(self.w.mss)));
                    if segments.again() > 0 {
                        return;
                    }
                    self.undo(segments, rack, true);
                    self.phase = Phase::Open;
                }
                if self.undo_by_dsack(cfg, segments, rack) {
                    self.phase = Phase::Open;
                }
                self.find_lost(cfg, now, segments, rack, set_timer);
                if self.phase != Phase::Recovery && segments.found_lost() > 0 {
                    self.begin_recovery(cfg, now, r, segments, rack, news.ece);
                }
            }
            Phase::Loss => {
                self.in_loss(cfg, r, (segments, rack), news, more, echo);
                let again = segments.again();
                self.find_lost(cfg, now, segments, rack, set_timer);
                // A lost retransmission begins a recovery. Source: Linux FLAG_LOST_RETRANS.
                let lost_again = segments.again() < again;
                if (self.phase == Phase::Open || lost_again) && segments.found_lost() > 0 {
                    self.begin_recovery(cfg, now, r, segments, rack, news.ece);
                }
            }
            Phase::Open | Phase::Cwr => {
                self.undo_by_dsack(cfg, segments, rack);
                self.find_lost(cfg, now, segments, rack, set_timer);
                if segments.found_lost() > 0 {
                    self.begin_recovery(cfg, now, r, segments, rack, news.ece);
                } else if news.ece && self.phase == Phase::Open && self.una > self.reduced_until {
                    self.begin_cwr_by_rack(cfg, now, r, rack);
                }
            }
        }
    }

    fn echo_of(&self, cfg: &Tcp, news: &AckNews) -> Option<u32> {
        (self.ts_on && self.ts_seen && (cfg.undo || cfg.spurious_rto == SpuriousRto::Eifel)).then_some(news.ts_echo)
    }

    /// RACK: what left long enough before something that has arrived is lost. Source: RFC 8985 §6.2 step 5.
    fn find_lost(&mut self, cfg: &Tcp, now: Time, segments: &mut Segments, rack: &mut Rack, set_timer: &mut bool) {
        if !rack.advanced || self.una == self.nxt {
            return;
        }
        rack.advanced = false;
        if let Some(wait) = self.detect(segments, rack, now) {
            let wait = (wait + cfg.timer_slack).round_up(cfg.clock_granularity).min(self.rtt.rto);
            rack.timer = Timer::Reorder;
            self.rto_at = now + wait;
            *set_timer = false;
        }
    }

    /// Gives how long the rest has to wait.
    fn detect(&self, segments: &mut Segments, rack: &mut Rack, now: Time) -> Option<Span> {
        let sacked = segments.sacked() / u64::from(self.w.mss);
        let again = segments.again();
        let least = segments.least_rtt().unwrap_or(Span::ZERO);
        let wait = segments.find_lost(now, rack.newest, rack.rtt + rack.window(self.phase, sacked, (least, self.rtt.srtt)));
        rack.counts.lost_retransmits += u32::from(segments.again() < again);
        wait
    }

    /// Fast recovery begins; after an ECN echo within the same round, the window is being reduced already.
    /// Source: Linux tcp_enter_recovery.
    fn begin_recovery(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, segments: &Segments, rack: &mut Rack, ece: bool) {
        self.stats.recoveries += 1;
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

    /// The window falls as for a loss, and recovery begins or goes on to what is outstanding now. It is not undone: what was
    /// dropped was lost.
    pub(super) fn reduce_for_notification_by_rack(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, o: &mut Outstanding) {
        let Some(rack) = &mut o.rack else { return };
        self.stats.notice_reductions += 1;
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
            self.stats.recoveries += 1;
            self.phase = Phase::Recovery;
        }
    }

    /// The window falls for an ECN echo. Source: Linux tcp_enter_cwr.
    fn begin_cwr_by_rack(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, rack: &mut Rack) {
        self.stats.ecn_reductions += 1;
        rack.undo_from = None;
        rack.prior_ssthresh = None;
        let before = self.w.cwnd;
        self.reduce(cfg, now, r, rack, |endpoint, event| endpoint.cc.on_ecn(&mut endpoint.w, event));
        self.reduced_by_ecn = true;
        if cfg.prr && self.w.ssthresh < before {
            self.phase = Phase::Cwr;
        }
    }

    fn congestion(&self, cfg: &Tcp, now: Time, first: bool) -> Congestion {
        let flight = (self.nxt - self.una).min(self.w.cwnd); // limited transmit does not count
        let from_cwnd = cfg.window_rules == WindowRules::Linux;
        Congestion { now, flight, from_cwnd, nxt: self.nxt, after_ecn: false, first }
    }

    /// Source: Linux tcp_init_cwnd_reduction.
    fn reduce(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, rack: &mut Rack, ask: impl FnOnce(&mut Self, &Congestion)) {
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
        self.calm = false;
        self.untime(cfg);
    }

    /// The window falls to ssthresh with the ACKs. `safe`: the ACK is cumulative and reports no loss.
    /// Source: RFC 9937 §6; Linux tcp_cwnd_reduction, which counts whole segments.
    fn proportional(&mut self, cfg: &Tcp, r: &mut Repair, segments: &Segments, delivered: u64, safe: bool) {
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

    /// Source: Linux tcp_end_cwnd_reduction.
    fn end_reduction(&mut self, rack: &Rack) {
        if self.phase == Phase::Cwr || rack.undo_from.is_some() {
            self.w.cwnd = self.w.ssthresh;
        }
        self.phase = Phase::Open;
    }

    /// Source: Linux tcp_current_ssthresh.
    fn current_ssthresh(&self) -> u64 {
        match self.phase {
            Phase::Cwr | Phase::Recovery => self.w.ssthresh,
            Phase::Open | Phase::Loss => self.w.ssthresh.max(self.w.cwnd / 4 * 3),
        }
    }

    /// From now on it is counted whether retransmissions were needless. Source: Linux tcp_init_undo.
    fn begin_undo(&self, segments: &Segments, rack: &mut Rack) {
        rack.undo_from = Some(self.una);
        rack.certain = false;
        let probe = u64::from(rack.probe_end.is_some() && rack.probe_again);
        let left = segments.again().div_ceil(u64::from(self.w.mss)) + probe;
        rack.undo_left = (left > 0).then_some(left);
        if left == 0 {
            rack.first_again = None;
        }
    }

    /// The reduction was a mistake. Source: Linux tcp_undo_cwnd_reduction.
    fn undo(&mut self, segments: &mut Segments, rack: &mut Rack, nothing_lost: bool) {
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

    /// At the end of a recovery. Source: Linux tcp_try_undo_recovery.
    fn undo_at_end(&mut self, cfg: &Tcp, segments: &mut Segments, rack: &mut Rack, echo: Option<u32>) {
        if cfg.undo && rack.may_undo(echo) {
            self.undo(segments, rack, false);
        } else {
            rack.persist = rack.persist.saturating_sub(1);
        }
    }

    /// D-SACKs of all retransmissions. Source: Linux tcp_try_undo_dsack.
    fn undo_by_dsack(&mut self, cfg: &Tcp, segments: &mut Segments, rack: &mut Rack) -> bool {
        if !cfg.undo || !rack.undoes() || rack.undo_left != Some(0) {
            return false;
        }
        rack.persist = PERSIST.min(rack.persist + 1);
        self.undo(segments, rack, false);
        true
    }

    /// After a timeout. Source: RFC 5682 §3.1 (with SACK); Linux tcp_process_loss.
    fn in_loss(
        &mut self,
        cfg: &Tcp,
        r: &mut Repair,
        (segments, rack): (&mut Segments, &mut Rack),
        news: &AckNews,
        more: &RackNews,
        echo: Option<u32>,
    ) {
        let recovered = self.una >= r.recover;
        rack.new_first = false;
        let undone = match cfg.spurious_rto {
            _ if news.acked == 0 => false,
            SpuriousRto::Eifel => rack.undoes() && rack.echo_is_older(echo),
            _ => cfg.undo && rack.may_undo(echo),
        };
        // Step 3b: something that was never retransmitted has arrived.
        let by_f_rto = rack.f_rto && more.arrivals.original;
        if undone || by_f_rto {
            self.stats.spurious_rtos += 1;
            self.undo(segments, rack, true);
            self.retries = 0;
            rack.f_rto = false;
            self.phase = Phase::Open;
            return;
        }
        if rack.f_rto {
            if self.nxt > r.recover {
                if news.delivered > news.acked || news.duplicate {
                    rack.f_rto = false; // step 3a: the loss was real
                }
            } else if news.acked > 0 && !recovered {
                r.recover = self.nxt;
                rack.f_rto = self.nxt < self.end && self.edge > self.nxt;
                rack.new_first = rack.f_rto; // step 2b
                if rack.new_first {
                    return;
                }
            }
        }
        if recovered {
            self.undo_at_end(cfg, segments, rack, echo);
            rack.f_rto = false;
            self.phase = Phase::Open;
        }
    }

    /// A tail loss probe is answered: was something lost? Source: RFC 8985 §7.4.2; Linux tcp_process_tlp_ack.
    fn end_probe(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, rack: &mut Rack, more: &RackNews) {
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
    fn set_loss_timer(&mut self, cfg: &Tcp, now: Time, segments: &Segments, rack: &mut Rack) {
        if self.una == self.nxt {
            rack.timer = Timer::Rto;
            self.rto_at = Time::MAX;
        } else if !self.arm_probe(cfg, now, segments, rack, now + self.rtt.rto) {
            self.rearm_rto(now, segments, rack);
        }
    }

    /// The timer is the RTO of the first segment, from now on; after another timer, of when it left. Source: Linux tcp_rearm_rto.
    fn rearm_rto(&mut self, now: Time, segments: &Segments, rack: &mut Rack) {
        let from_head = rack.timer != Timer::Rto;
        rack.timer = Timer::Rto;
        self.rto_at = match segments.head_sent() {
            Some(head) if from_head => (head + self.rtt.rto).max(now + Span::from_ps(1)),
            _ => now + self.rtt.rto,
        };
    }

    /// A probe after two RTTs, if the RTO is not earlier. Source: RFC 8985 §7.2; Linux tcp_schedule_loss_probe.
    ///
    /// Deviation: for a single segment in flight RTO_min is added for a delayed ACK, as Linux does, where RFC 8985 has the
    /// longest ACK delay of the other end.
    fn arm_probe(&mut self, cfg: &Tcp, now: Time, segments: &Segments, rack: &mut Rack, rto_at: Time) -> bool {
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
        self.rto_at = (now + timeout).min(rto_at.max(now + Span::from_ps(1)));
        true
    }

    /// What begins at `from` and ends at SND.NXT has left, for the first time.
    #[inline(never)] // nothing outstanding is kept where neither RACK nor the congestion control asks for it
    pub(super) fn note_sent(&mut self, cfg: &Tcp, now: Time, from: u64) {
        let Some(mut o) = self.outstanding.take() else { return };
        o.segments.sent(now, self.nxt);
        if let Some(rack) = &mut o.rack {
            if rack.probe_due {
                rack.probe_due = false;
                rack.probe_end = Some(self.nxt);
                rack.probe_again = false;
                rack.counts.tail_probes += 1;
            } else {
                if from == self.una || rack.timer == Timer::Probe {
                    self.rearm_rto(now, &o.segments, rack);
                }
                let rto_at = o.segments.head_sent().map_or(now, |head| head) + self.rtt.rto;
                if rack.timer == Timer::Rto {
                    self.arm_probe(cfg, now, &o.segments, rack, rto_at);
                }
            }
        }
        self.outstanding = Some(o);
    }

    /// What begins at `from` has left again; `clock`: its timestamp.
    pub(super) fn rack_sent_again(&mut self, now: Time, from: u64, clock: u32) {
        let una = self.una;
        let rto = self.rtt.rto;
        let Some(o) = &mut self.outstanding else { return };
        let Some(rack) = &mut o.rack else { return };
        if rack.probe_due {
            rack.probe_due = false;
            rack.probe_end = Some(self.nxt);
            rack.probe_again = true;
            rack.counts.tail_probes += 1;
        } else {
            rack.head_due = false;
            if from == una && rack.timer != Timer::Reorder {
                rack.timer = Timer::Rto;
                self.rto_at = now + rto;
            }
        }
        rack.undo_left = Some(rack.undo_left.unwrap_or(0) + 1);
        rack.first_again = rack.first_again.or(Some(clock));
    }

    /// The timer of a probe or of reordering has expired; false: it is the RTO.
    pub(super) fn rack_on_timer(&mut self, cfg: &Tcp, now: Time) -> bool {
        let Some(mut o) = self.outstanding.take() else { return false };
        let mut done = false;
        if let Some(rack) = o.rack.as_mut().filter(|rack| rack.timer != Timer::Rto) {
            done = true;
            if rack.timer == Timer::Probe {
                // One probe per flight at most. Source: RFC 8985 §7.3; Linux tcp_send_loss_probe.
                if rack.probe_end.is_none() {
                    rack.probe_due = true;
                    self.calm = false;
                    rack.timer = Timer::Rto; // anew from now on
                }
            } else {
                self.reorder_timeout(cfg, now, &mut o.segments, rack);
            }
            self.rearm_rto(now, &o.segments, rack);
        }
        self.outstanding = Some(o);
        done
    }

    /// Source: Linux tcp_rack_reo_timeout.
    fn reorder_timeout(&mut self, cfg: &Tcp, now: Time, segments: &mut Segments, rack: &mut Rack) {
        let mut r = self.repair.take().unwrap_or_default();
        let before = segments.pipe(self.nxt);
        self.detect(segments, rack, now);
        if segments.pipe(self.nxt) != before {
            if self.phase != Phase::Recovery {
                self.begin_recovery(cfg, now, &mut r, segments, rack, false);
                self.proportional(cfg, &mut r, segments, u64::from(self.w.mss), false);
            }
            self.calm = false;
        }
        self.repair = Some(r);
    }

    /// A retransmission timeout. Source: Linux tcp_enter_loss.
    pub(super) fn rack_time_out(&mut self, cfg: &Tcp, now: Time) {
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
        self.calm = false;
        self.reduced_until = self.nxt;
        self.reduced_by_ecn = false;
        self.cwr_due = self.ecn_on;
        self.untime(cfg);
    }

    /// What leaves next.
    pub(super) fn rack_next(&self, cfg: &Tcp, o: &Outstanding, rack: &Rack, (now, paced_out): (Time, bool)) -> Option<Next> {
        let segments = &o.segments;
        let pipe = segments.pipe(self.nxt);
        let room = self.room(pipe);
        let again = |(from, to): (u64, u64), why| Next { from, to, why };
        if let Some(named) = segments.next_at_once() {
            return Some(again(named, Why::Notified));
        }
        if rack.head_due {
            return segments.first().map(|first| again(first, Why::Hole));
        }
        if rack.probe_due {
            // New data if there is any and the other end has room. Source: RFC 8985 §7.3.
            return self.new_data(u64::MAX).or_else(|| segments.last().map(|last| again(last, Why::Hole)));
        }
        if paced_out {
            return None;
        }
        let new = || self.new_data(room).filter(|_| !(cfg.tso && self.burst == 0 && self.defers(cfg, now)));
        if rack.new_first {
            return new();
        }
        if let Some(lost) = segments.next_lost() {
            // A FIN on top of a full segment needs no room.
            return Some(again(lost, Why::Hole)).filter(|next| next.to.min(self.end).saturating_sub(next.from) <= room);
        }
        if !cfg.limited_transmit && self.phase == Phase::Open && segments.sacked() > 0 {
            return self.new_data(self.room(self.nxt - self.una));
        }
        new()
    }
}
