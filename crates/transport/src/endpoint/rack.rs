//! RACK-TLP: loss recovery by the times at which segments were sent, with PRR and undo. Source: RFC 8985, RFC 9937; Linux
//! tcp_input.c (tcp_fastretrans_alert, tcp_process_loss), tcp_recovery.c, tcp_output.c (tcp_schedule_loss_probe).

mod timers;
mod window;

use super::loss::{AckNews, Repair};
use super::output::{Next, Reason};
use super::push::Push;
use super::{Phase, TcpEndpoint};
use crate::cc::Controller;
use crate::config::{SpuriousRto, Tcp};
use crate::report::RackCounts;
use crate::rtt::EveryAck;
use crate::segments::{Arrivals, Segments};
use fanin_units::{Span, Time};

/// State that a sender keeps of outstanding segments.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    pub segments: Segments,
    /// RTT estimator with samples from every ACK.
    pub rtt: EveryAck,
    /// State of RACK, if it detects losses.
    pub rack: Option<Rack>,
    /// State of PSH, if other segments than the last one carry it.
    pub push: Option<Push>,
}

/// Event for which the retransmission timer is set. Source: Linux icsk_pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Rto,
    /// Reordering timeout: segments are lost unless they are acknowledged until then.
    Reorder,
    /// Tail loss probe.
    Probe,
}

/// Largest multiple of the reordering window. Source: Linux tcp_rack_update_reo_wnd.
const MOST_STEPS: u32 = 255;
/// Number of recoveries without D-SACK after which the reordering window is minimal again. Source: RFC 8985 §6.2 step 4.
const PERSIST: u32 = 16;
/// Largest degree of reordering \[segments\]. Source: Linux tcp_max_reordering.
const MAX_REORDERING: u32 = 300;

/// State of RACK-TLP and of undo. Source: RFC 8985 §5.3; Linux struct tcp_sock.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: the segment sent last among those that have arrived.
    newest: (Time, u64),
    /// RACK.rtt: RTT of that segment.
    rtt: Span,
    /// True if `newest` or `rtt` has changed.
    advanced: bool,
    /// RACK.reo_wnd_mult and RACK.reo_wnd_persist.
    steps: u32,
    persist: u32,
    /// RACK.dsack_round: D-SACKs for data below it belong to the round of the last one that counted.
    dsack_round: Option<u64>,
    /// Largest extent of reordering seen \[segments\]; `dup_thresh` at the start.
    reordering: u32,
    reordered: bool,
    timer: Timer,
    /// True if a probe, or the first segment after a timeout, shall leave regardless of the window.
    probe_due: bool,
    head_due: bool,
    /// TLP.end_seq, and true if the probe was a retransmission.
    probe_end: Option<u64>,
    probe_again: bool,
    /// undo_marker: SND.UNA at the beginning of the last reduction.
    undo_from: Option<u64>,
    /// Number of retransmissions that no D-SACK has shown to be needless; `None`: none was sent.
    undo_left: Option<u64>,
    /// Values to restore by undo: ssthresh, unless there is nothing to restore, and cwnd.
    prior_ssthresh: Option<u64>,
    prior_cwnd: u64,
    /// True if a switch has reported the loss, so that the reduction is not undone.
    certain: bool,
    /// Timestamp of the first retransmission of this recovery.
    first_again: Option<u32>,
    f_rto: bool,
    pub counts: RackCounts,
    /// True if F-RTO sends new data before retransmissions. Source: RFC 5682 §3.1 step 2b.
    new_first: bool,
}

/// News of an ACK for RACK, beside [`AckNews`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RackNews {
    pub arrivals: Arrivals,
    /// Range that arrived twice, as the ACK's D-SACK block reports. Source: RFC 2883.
    pub dsack: Option<(u64, u64)>,
    /// True if the ACK is neither data, window update nor acknowledgment of anything new.
    pub nothing_new: bool,
    /// SND.UNA before the ACK.
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

    /// Present size of the reordering window. Source: RFC 8985 §6.2 step 4; Linux tcp_rack_reo_wnd.
    fn window(&self, phase: Phase, sacked_segments: u64, (least, srtt): (Span, Span)) -> Span {
        let repairing = matches!(phase, Phase::Recovery | Phase::Loss);
        if !self.reordered && (repairing || sacked_segments >= u64::from(self.reordering)) {
            return Span::ZERO;
        }
        (least / 4).saturating_mul(u64::from(self.steps)).min(srtt)
    }

    /// Widens the reordering window for D-SACKs, once per round. Source: RFC 8985 §6.2 step 4.
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

    /// Records reordering by `segments` segments. Source: Linux tcp_check_sack_reordering.
    fn note_reordering(&mut self, segments: u64) {
        self.reordering = self.reordering.max(segments.min(u64::from(MAX_REORDERING)) as u32);
        self.reordered = true;
    }

    /// True if there is a reduction that may be undone.
    fn undoes(&self) -> bool {
        self.undo_from.is_some() && !self.certain
    }

    /// True if the timestamp echo, or D-SACKs of all retransmissions, show that nothing was lost. Source: Linux tcp_may_undo.
    fn may_undo(&self, echo: Option<u32>) -> bool {
        self.undoes() && (self.undo_left == Some(0) || self.echo_is_older(echo))
    }

    /// True if the ACK was caused by data sent before the first retransmission, or none has been sent yet. Source: RFC 3522
    /// §3.2; Linux tcp_packet_delayed.
    fn echo_is_older(&self, echo: Option<u32>) -> bool {
        self.first_again.is_none_or(|sent| echo.is_some_and(|echo| (echo.wrapping_sub(sent) as i32) < 0))
    }
}

impl Outstanding {
    /// State for a new connection; `None` if its parameters need none.
    pub fn new(cfg: &Tcp, control_needs_rtt: bool) -> Option<Box<Self>> {
        let rack = cfg.uses_rack().then(|| Rack::new(cfg));
        let push = Push::new(cfg);
        if rack.is_none() && push.is_none() && !control_needs_rtt && !cfg.times_every_ack() && !cfg.tso {
            return None;
        }
        Some(Box::new(Outstanding { segments: Segments::new(0), rtt: EveryAck::default(), rack, push }))
    }

    /// Notes that the handshake is over. RACK needs SACK. Source: RFC 8985 §4.
    pub fn established(&mut self, una: u64, sack: bool) {
        self.segments.restart(una);
        if !sack {
            self.rack = None;
        }
    }

    /// True if only new data is in flight, and no probe or first segment after a timeout is due.
    pub fn is_calm(&self) -> bool {
        match &self.rack {
            None => true,
            Some(rack) => self.segments.is_plain() && !rack.probe_due && !rack.head_due,
        }
    }
}

impl TcpEndpoint {
    /// Counters of RACK-TLP; zero if it is off.
    pub fn rack_counts(&self) -> RackCounts {
        self.outstanding.as_ref().and_then(|o| o.rack.as_ref()).map_or(RackCounts::default(), |rack| rack.counts)
    }

    /// True if RACK detects losses on this connection.
    pub(super) fn by_rack(&self) -> bool {
        self.outstanding.as_ref().is_some_and(|o| o.rack.is_some())
    }

    /// Processes an ACK, after scoreboard, SND.UNA and send window have been updated.
    pub(super) fn rack_on_ack(&mut self, cfg: &Tcp, now: Time, r: &mut Repair, news: &AckNews, more: &RackNews) {
        let Some(mut o) = self.outstanding.take() else { return };
        if let Some(mut rack) = o.rack.take() {
            self.process(cfg, now, r, (&mut o.segments, &mut rack), news, more);
            o.rack = Some(rack);
        }
        self.outstanding = Some(o);
    }

    /// Processes an ACK with the state borrowed. Source: Linux tcp_ack.
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
        let dubious = news.duplicate || news.ece || more.dsack.is_some() || more.nothing_new;
        if dubious || self.phase != Phase::Open || !segments.is_plain() {
            self.alert(cfg, now, r, (segments, rack), news, more, &mut set_timer);
        }
        if set_timer {
            self.set_loss_timer(cfg, now, segments, rack);
        }
        let newly_lost = segments.found_lost() > lost;
        let reducing = matches!(self.phase, Phase::Cwr | Phase::Recovery);
        if !news.ece && news.delivered > 0 {
            // Source: Linux tcp_may_raise_cwnd.
            let in_order = news.acked > 0 || rack.reordering > cfg.dup_thresh;
            self.congestion_on_ack(cfg, now, news, in_order && !reducing);
        }
        if reducing {
            self.proportional(cfg, r, segments, news.delivered, news.acked > 0 && !newly_lost);
        }
    }

    /// Passes an ACK to the congestion control.
    fn congestion_on_ack(&mut self, cfg: &Tcp, now: Time, news: &AckNews, grow: bool) {
        let ack = self.ack_of(cfg, now, news, grow && self.may_grow(cfg));
        if self.phase == Phase::Recovery {
            self.cc.on_recovery_ack(&mut self.w, &ack);
        } else if news.acked > 0 || grow {
            self.cc.on_ack(&mut self.w, &ack);
        }
    }

    /// Notes a D-SACK, which shows a retransmission to have been needless. Source: Linux tcp_sacktag_write_queue,
    /// tcp_check_dsack.
    fn note_dsack(&self, rack: &mut Rack, more: &RackNews) {
        let Some((start, end)) = more.dsack else { return };
        if let (Some(from), Some(left)) = (rack.undo_from, rack.undo_left) {
            if end > from {
                rack.undo_left = Some(left.saturating_sub((end - start).div_ceil(u64::from(self.w.mss))));
            }
        }
    }

    /// True if selective acknowledgments restart the timer: those of segments sent after the first one do not.
    /// Source: Linux tcp_clean_rtx_queue.
    fn timer_follows_sack(&self, segments: &Segments, arrivals: &Arrivals, now: Time) -> bool {
        match (arrivals.sack_rtt(now), segments.head_sent()) {
            (Some(rtt), Some(head)) => rtt > now.since(head),
            _ => false,
        }
    }

    /// Advances the state machine of loss recovery. Source: Linux tcp_fastretrans_alert.
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
                    self.counts.ecn_reductions += 1;
                    self.begin_cwr_by_rack(cfg, now, r, rack);
                }
            }
        }
    }

    fn echo_of(&self, cfg: &Tcp, news: &AckNews) -> Option<u32> {
        (self.ts_on && self.ts_seen && (cfg.undo || cfg.spurious_rto == SpuriousRto::Eifel)).then_some(news.ts_echo)
    }

    /// Marks segments lost by RACK: those sent long enough before a segment that has arrived. Source: RFC 8985 §6.2 step 5.
    fn find_lost(&mut self, cfg: &Tcp, now: Time, segments: &mut Segments, rack: &mut Rack, set_timer: &mut bool) {
        if !rack.advanced || self.una == self.nxt {
            return;
        }
        rack.advanced = false;
        if let Some(wait) = self.detect(segments, rack, now) {
            let wait = (wait + cfg.timer_slack).round_up(cfg.clock_granularity).min(self.rtt.rto);
            rack.timer = Timer::Reorder;
            self.rto_at = cfg.tick(now + wait);
            *set_timer = false;
        }
    }

    /// Runs RACK's loss detection; returns the time until further segments count as lost.
    fn detect(&self, segments: &mut Segments, rack: &mut Rack, now: Time) -> Option<Span> {
        let sacked = segments.sacked() / u64::from(self.w.mss);
        let again = segments.again();
        let least = segments.least_rtt().unwrap_or(Span::ZERO);
        let wait = segments.find_lost(now, rack.newest, rack.rtt + rack.window(self.phase, sacked, (least, self.rtt.srtt)));
        rack.counts.lost_retransmits += u32::from(segments.again() < again);
        wait
    }

    /// Advances loss recovery after a timeout. Source: RFC 5682 §3.1 (with SACK); Linux tcp_process_loss.
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
            self.counts.spurious_rtos += 1;
            self.undo(segments, rack, true);
            self.retries = 0;
            rack.f_rto = false;
            self.phase = Phase::Open;
            return;
        }
        if rack.f_rto {
            if self.nxt > r.recover {
                if news.duplicate {
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

    /// Selects the next segment of a connection with RACK.
    pub(super) fn rack_next(&self, cfg: &Tcp, o: &Outstanding, rack: &Rack, (now, held_by_pacing): (Time, bool)) -> Option<Next> {
        let segments = &o.segments;
        let pipe = segments.pipe(self.nxt);
        let room = self.room(pipe);
        let again = |(from, to): (u64, u64), reason| Next { from, to, reason };
        if let Some(named) = segments.next_at_once() {
            return Some(again(named, Reason::Notified));
        }
        if rack.head_due {
            return segments.first().map(|first| again(first, Reason::Hole));
        }
        if rack.probe_due {
            // New data if there is any and the other end has room. Source: RFC 8985 §7.3.
            return self.new_data(u64::MAX).or_else(|| segments.last().map(|last| again(last, Reason::Probe)));
        }
        if held_by_pacing {
            return None;
        }
        let new = || self.new_data(room).filter(|_| !(cfg.tso && self.burst == 0 && self.defers(cfg, now)));
        if rack.new_first {
            return new();
        }
        if let Some(lost) = segments.next_lost() {
            // A FIN on top of a full segment needs no room.
            return Some(again(lost, Reason::Hole)).filter(|next| next.to.min(self.end).saturating_sub(next.from) <= room);
        }
        if !cfg.limited_transmit && self.phase == Phase::Open && segments.sacked() > 0 {
            return self.new_data(self.room(self.nxt - self.una));
        }
        new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;
    use crate::{Connection, Role};

    fn linux() -> Tcp {
        Tcp::new(Profile::Linux, crate::cc::CongestionControl::NewReno(fanin_params::defaults()))
    }

    fn reduced(cfg: &Tcp) -> Rack {
        Rack { undo_from: Some(5_000), ..Rack::new(cfg) }
    }

    /// A reduction is undone where D-SACKs have reported all retransmissions, or the echo is of something sent before the first of them;
    /// not where a switch has reported the loss. Source: Linux tcp_may_undo, RFC 3522 §3.2 (the echo is less, not equal).
    #[test]
    fn what_may_be_undone() {
        let cfg = linux();
        let may = |left, first_again, echo| {
            let rack = Rack { undo_left: left, first_again, ..reduced(&cfg) };
            let certain = Rack { certain: true, ..rack.clone() };
            let none = Rack { undo_from: None, ..rack.clone() };
            assert!(!certain.may_undo(echo) && !none.may_undo(echo));
            rack.may_undo(echo)
        };
        assert!(may(Some(0), Some(100), Some(200)) && may(Some(0), Some(100), None));
        assert!(may(Some(1), Some(100), Some(99)) && !may(Some(1), Some(100), Some(100)) && !may(Some(1), Some(100), Some(101)));
        assert!(!may(Some(1), Some(100), None) && !may(None, Some(100), None));
        assert!(may(None, None, None), "nothing has been sent again");
        assert!(may(Some(1), Some(5), Some(u32::MAX - 5)) && !may(Some(1), Some(u32::MAX - 5), Some(5)), "clocks wrap");
    }

    /// The reordering window is a quarter of the shortest RTT, a quarter more for each round with a D-SACK, and SRTT at most. Before
    /// reordering has been seen there is none in a recovery, nor above enough SACKed segments. Source: RFC 8985 §6.2 step 4.
    #[test]
    fn the_reordering_window() {
        let mut rack = Rack::new(&linux());
        let window =
            |rack: &Rack, phase, sacked| rack.window(phase, sacked, (Span::from_us(100), Span::from_us(60))).ps() / 1_000_000;
        let calm = |rack: &Rack| [Phase::Open, Phase::Cwr].map(|phase| [2, 3].map(|sacked| window(rack, phase, sacked)));
        assert_eq!(calm(&rack), [[25, 0], [25, 0]]);
        assert_eq!([Phase::Recovery, Phase::Loss].map(|phase| window(&rack, phase, 0)), [0, 0]);
        rack.note_reordering(2);
        assert_eq!((rack.reordering, window(&rack, Phase::Recovery, 9), window(&rack, Phase::Open, 9)), (3, 25, 25));
        let widened = |steps| window(&Rack { steps, ..rack.clone() }, Phase::Open, 0);
        assert_eq!([1, 2, 3].map(widened), [25, 50, 60]);
        let degree = |segments| {
            let mut rack = rack.clone();
            rack.note_reordering(segments);
            rack.reordering
        };
        assert_eq!([3, 4, 300, 301].map(degree), [3, 4, 300, 300]);
    }

    /// D-SACKs widen the reordering window once per round, and sixteen recoveries without one make it minimal again. Source: RFC 8985
    /// §6.2 step 4.
    #[test]
    fn d_sacks_widen_the_reordering_window() {
        let mut rack = Rack::new(&linux());
        let mut after = |dsack, una, nxt| {
            rack.adapt_window(dsack, una, nxt);
            (rack.steps, rack.persist)
        };
        assert_eq!(after(false, 0, 5_000), (1, 0));
        assert_eq!([after(true, 1_000, 5_000), after(true, 4_999, 6_000)], [(2, 16), (2, 16)]);
        assert_eq!([after(true, 5_000, 7_000), after(false, 8_000, 9_000)], [(3, 16), (3, 16)]);
        rack.persist = 0;
        rack.adapt_window(false, 8_000, 9_000);
        assert_eq!(rack.steps, 1);
        (0..300).for_each(|round| rack.adapt_window(true, 9_000 + round, 9_001 + round));
        assert_eq!(rack.steps, 255);
    }

    /// A D-SACK counts for the segments that it covers, where it ends above the beginning of the reduction. Source: Linux tcp_check_dsack
    /// (after(end_seq_0, undo_marker)).
    #[test]
    fn d_sacks_count_retransmissions_that_were_needless() {
        let cfg = linux();
        let conn = Connection {
            role: Role::Initiator,
            open: true,
            iss: 0,
            irs: 0,
            ts_offset: 0,
            mtu: cfg.mtu,
            ip: fanin_packet::IpVersion::V4,
        };
        let tcp = TcpEndpoint::new(&cfg, conn, Time::ZERO);
        let mss = u64::from(tcp.w.mss);
        let left = |before, dsack| {
            let mut rack = Rack { undo_left: before, ..reduced(&cfg) };
            tcp.note_dsack(&mut rack, &RackNews { dsack, ..RackNews::default() });
            rack.undo_left
        };
        assert_eq!(left(Some(3), Some((5_000, 5_000 + mss))), Some(2));
        assert_eq!(left(Some(3), Some((5_000, 5_000 + 2 * mss))), Some(1));
        assert_eq!(left(Some(3), Some((5_000, 5_001 + mss))), Some(1), "a part of a segment counts as one");
        assert_eq!(left(Some(1), Some((5_000, 5_000 + 3 * mss))), Some(0));
        assert_eq!(left(Some(3), Some((4_000, 5_000))), Some(3), "what was acknowledged before the reduction");
        assert_eq!(left(Some(3), Some((4_000, 5_001))), Some(2));
        assert_eq!((left(Some(3), None), left(None, Some((5_000, 6_000)))), (Some(3), None));
    }
}
