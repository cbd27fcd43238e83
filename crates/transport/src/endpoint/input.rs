//! Input of acknowledgments. Source: RFC 9293 §3.10.7.4, RFC 5681, RFC 3168 §6.1.2.

use super::loss::{AckNews, Repair};
use super::rack::RackNews;
use super::{due, unlikely, Phase, TcpEndpoint, UNTIMED};
use crate::cc::{Ack, Congestion, Controller};
use crate::config::{BackoffReset, RttSampling, Tcp, WindowRules};
use crate::report::Pending;
use crate::segments::{Arrivals, Known};
use fanin_packet::{Segment, TcpFlags};
use fanin_units::{Span, Time};

impl TcpEndpoint {
    /// Fast path of the next data without any news for the sender; other segments are passed on.
    #[inline(always)]
    pub(super) fn on_expected_data(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>) {
        let edge = self.una + (u64::from(p.window) << self.snd_scale);
        let end = self.rcv_nxt + u64::from(p.envelope.payload);
        let other = unlikely(p.seq != self.wire_rcv_nxt())
            || unlikely(end > self.rcv_edge)
            || unlikely(p.envelope.trimmed)
            || unlikely(p.ack != self.wire(self.una))
            || unlikely(edge > self.edge)
            || (!self.bare && self.ooo.as_ref().is_some_and(|ooo| !ooo.is_empty()));
        if other || !self.note_timestamp(p) {
            return self.on_unexpected(cfg, now, p);
        }
        if self.ecn_on {
            self.note_ecn(cfg, p);
        }
        self.on_next_data(cfg, now, p, end);
    }

    /// Fast path of an ACK of new data without data; other segments are passed on.
    #[inline(always)]
    pub(super) fn on_expected_ack(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>) {
        let acked = u64::from(p.ack.wrapping_sub(self.wire(self.una)));
        let ack = self.una + acked;
        if acked == 0 || ack > self.nxt || p.seq != self.wire_rcv_nxt() || !self.note_timestamp(p) {
            return self.on_unexpected(cfg, now, p);
        }
        let ts_echo = p.timestamps().map_or(0, |ts| ts.echo);
        let edge = ack + (u64::from(p.window) << self.snd_scale);
        if self.bare || self.outstanding.is_none() {
            let ece = self.ecn_on && p.flags.has(TcpFlags::ECE);
            self.edge = self.edge.max(edge);
            self.una = ack;
            self.on_fast_ack(cfg, now, (acked, ts_echo), ece, None, true);
        } else {
            self.on_timed_ack(cfg, now, p, (ack, edge, ts_echo));
        }
    }

    /// Records the timestamp of the segment that begins at RCV.NXT. False if it is older than the latest; then nothing has
    /// changed.
    /// Source: RFC 7323 §4.3 (2).
    #[inline(always)]
    fn note_timestamp(&mut self, p: Segment<'_>) -> bool {
        let Some(ts) = p.timestamps() else { return true };
        if (ts.value.wrapping_sub(self.ts_recent) as i32) < 0 {
            return false;
        }
        if self.rcv_nxt <= self.last_ack_sent {
            self.ts_recent = ts.value;
            self.ts_seen = true;
        }
        true
    }

    /// Processes a segment without SYN and RST on a synchronised connection. False if it is dropped: it is too old, or
    /// acknowledges data that was never sent.
    #[inline(never)]
    pub(super) fn on_segment(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>) -> bool {
        let seq = self.rcv_nxt.wrapping_add_signed(i64::from(p.seq.wrapping_sub(self.wire_rcv_nxt()) as i32));
        let ts_before = self.ts_recent;
        let mut ts_echo = 0;
        if self.ts_on {
            if let Some(ts) = p.timestamps() {
                ts_echo = ts.echo;
                let ticks = ts.value.wrapping_sub(self.ts_recent) as i32;
                if ticks >= 0 || !self.ts_seen {
                    // Source: RFC 7323 §4.3 (2).
                    if seq <= self.last_ack_sent {
                        self.ts_recent = ts.value;
                        self.ts_seen = true;
                    }
                } else if cfg.paws && self.is_too_old(cfg, p, seq, ticks) {
                    return false;
                }
            }
        }
        let una = self.una;
        let ack = una.wrapping_add_signed(i64::from(p.ack.wrapping_sub(self.wire(una)) as i32));
        let edge = ack.wrapping_add(u64::from(p.window) << self.snd_scale);
        if self.on_fast_path() && ack > una && ack <= self.nxt && !p.has_sack() {
            if self.outstanding.is_none() {
                let ece = self.ecn_on && p.flags.has(TcpFlags::ECE);
                self.edge = self.edge.max(edge);
                self.una = ack;
                self.on_fast_ack(cfg, now, (ack - una, ts_echo), ece, None, true);
            } else {
                self.on_timed_ack(cfg, now, p, (ack, edge, ts_echo));
            }
        } else if !(self.on_fast_path() && ack == una && p.envelope.payload > 0 && edge <= self.edge && !p.has_sack()) {
            if ack > self.nxt && ack < 1 << 63 {
                // It acknowledges what was never sent, and nothing of it counts. Source: RFC 9293 §3.10.7.4.
                self.ts_recent = ts_before;
                self.due |= due::ACK;
                return false;
            }
            if ack >= una && ack <= self.nxt {
                self.on_unusual_ack(cfg, now, p, (ack, edge, ts_echo));
            } else if p.has_sack() && self.by_rack() {
                // An ACK that was overtaken may still report something. Source: Linux tcp_ack (old_ack).
                self.on_unusual_ack(cfg, now, p, (una, self.edge, ts_echo));
            }
        }
        if p.envelope.payload > 0 {
            self.on_data(cfg, now, p, seq);
        } else if seq < self.rcv_nxt && !p.flags.has(TcpFlags::FIN) {
            // An empty segment below the window is a probe: it is answered. Source: RFC 9293 §3.10.7.4.
            self.due |= due::ACK;
        }
        true
    }

    /// Processes an ACK on the fast path, after it has advanced SND.UNA.
    #[inline(always)]
    fn on_fast_ack(&mut self, cfg: &Tcp, now: Time, (acked, ts_echo): (u64, u32), ece: bool, rtt: Option<Span>, untimed: bool) {
        let news = AckNews { acked, delivered: acked, duplicate: false, ece, ts_echo, rtt, untimed };
        self.time_new_ack(cfg, now, &news);
        let grow = !ece && (!cfg.cwnd_validation || self.has_used_window());
        let ack = self.ack_of(cfg, now, &news, grow);
        self.cc.on_ack(&mut self.w, &ack);
        if ece && self.una > self.reduced_until && self.reduce_for_ecn(cfg, now, acked) {
            let mut repair = self.repair.take().unwrap_or_default();
            self.begin_cwr(&mut repair, acked);
            self.repair = Some(repair);
        }
        if self.una == self.nxt {
            self.rto_at = Time::MAX;
            self.arm_persist(now);
        } else {
            self.rto_at = now + self.rtt.rto;
        }
    }

    /// Processes an ACK on the fast path of a connection that keeps the times of all segments.
    #[inline(never)]
    fn on_timed_ack(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, (ack, edge, ts_echo): (u64, u64, u32)) {
        if self.by_rack() {
            return self.on_unusual_ack(cfg, now, p, (ack, edge, ts_echo));
        }
        let acked = ack - self.una;
        let ece = self.ecn_on && p.flags.has(TcpFlags::ECE);
        self.edge = self.edge.max(edge);
        self.una = ack;
        let rtt = self.arrivals(cfg, now, (0, 0), ts_echo).latest_rtt(now);
        self.on_fast_ack(cfg, now, (acked, ts_echo), ece, rtt, false);
        if cfg.tso {
            self.note_deferral(cfg, now);
        }
    }

    /// Updates RTT, window, ECN and counters after SND.UNA has advanced outside fast recovery. True if the window shall now
    /// fall by PRR.
    #[inline(always)]
    pub(super) fn on_new_ack(&mut self, cfg: &Tcp, now: Time, news: &AckNews) -> bool {
        self.note_new_ack(cfg, now, news);
        let grow = !news.ece && self.may_grow(cfg);
        let ack = self.ack_of(cfg, now, news, grow);
        self.cc.on_ack(&mut self.w, &ack);
        if news.ece && self.una > self.reduced_until {
            return self.reduce_for_ecn(cfg, now, news.acked);
        }
        false
    }

    /// Updates RTT and counters for an ACK of new data.
    #[inline(always)]
    pub(super) fn note_new_ack(&mut self, cfg: &Tcp, now: Time, news: &AckNews) {
        self.time_new_ack(cfg, now, news);
    }

    #[inline(always)]
    fn time_new_ack(&mut self, cfg: &Tcp, now: Time, news: &AckNews) {
        self.last_acked = news.acked as u32;
        if self.una >= self.timed_end {
            self.measure(cfg, now, news.acked, news.ts_echo);
        }
        self.pending.add(Pending::ACKED);
    }

    /// Describes an ACK for the congestion control.
    #[inline(always)]
    pub(super) fn ack_of(&self, cfg: &Tcp, now: Time, news: &AckNews, grow: bool) -> Ack {
        Ack {
            now,
            acked: news.acked,
            delivered: news.delivered,
            credit: if cfg.window_rules == WindowRules::Linux { news.delivered } else { news.acked },
            rtt: news.rtt,
            untimed: news.untimed,
            ece: news.ece,
            una: self.una,
            nxt: self.nxt,
            srtt: self.rtt.srtt,
            grow,
            slow_start_limit: cfg.slow_start_limit,
        }
    }

    /// Data newly acknowledged by the present ACK, on a connection that keeps the times of segments; SND.UNA has advanced.
    /// Takes an RTT sample if every ACK gives one.
    fn arrivals(&mut self, cfg: &Tcp, now: Time, (recover, highest): (u64, u64), ts_echo: u32) -> Arrivals {
        let Some(mut o) = self.outstanding.take() else { return Arrivals::default() };
        o.segments.acknowledged(&Known { now, recover, highest }, self.una);
        let arrivals = o.segments.take_arrivals(now);
        if cfg.times_every_ack() {
            // Source: Linux tcp_ack_update_rtt.
            let by_timestamp = || {
                let ticks = self.ts_clock(cfg, now).wrapping_sub(ts_echo);
                (self.ts_on && self.ts_seen && arrivals.again_acked && (ticks as i32) >= 0)
                    .then(|| cfg.timestamp_tick * u64::from(ticks.max(1)))
            };
            if let Some(rtt) = arrivals.oldest_rtt(now).or_else(by_timestamp) {
                self.rtt.sample_every(cfg, &mut o.rtt, rtt, (self.una, self.nxt));
            }
        }
        self.outstanding = Some(o);
        arrivals
    }

    /// True if the window was used up, so that it may grow. Source: RFC 7661 §4.2; Linux tcp_is_cwnd_limited.
    #[inline(always)]
    pub(super) fn may_grow(&self, cfg: &Tcp) -> bool {
        if !cfg.cwnd_validation || self.phase == Phase::Loss {
            return true;
        }
        if self.phase == Phase::Cwr {
            return false;
        }
        self.has_used_window()
    }

    #[inline(always)]
    fn has_used_window(&self) -> bool {
        self.cwnd_limited || (self.w.in_slow_start() && self.w.cwnd < 2 * self.max_flight)
    }

    /// Takes an RTT sample.
    #[inline(never)]
    pub(super) fn measure(&mut self, cfg: &Tcp, now: Time, acked: u64, ts_echo: u32) {
        if cfg.rtt_sampling == RttSampling::Timestamps && self.ts_on {
            // Source: RFC 7323 §4.1, appendix G. A sample below one tick counts as one.
            let ticks = self.ts_clock(cfg, now).wrapping_sub(ts_echo);
            if self.ts_seen && (ticks as i32) >= 0 {
                let flight = self.nxt - self.una + acked;
                let expected = flight.div_ceil(2 * u64::from(self.w.mss)).max(1);
                self.rtt.sample(cfg, cfg.timestamp_tick * u64::from(ticks.max(1)), expected);
            }
        } else {
            self.rtt.sample(cfg, now.since(self.timed_at).max(Span::from_ps(1)), 1);
            self.timed_end = UNTIMED;
        }
    }

    /// Reduces the window for an ECN echo. Source: RFC 3168 §6.1.2, RFC 8257 §3.3.
    #[inline(never)]
    pub(super) fn reduce_for_ecn(&mut self, cfg: &Tcp, now: Time, acked: u64) -> bool {
        let before = self.w.cwnd;
        let event = Congestion {
            now,
            flight: self.nxt - self.una + acked,
            from_cwnd: cfg.window_rules == WindowRules::Linux,
            nxt: self.nxt,
            after_ecn: false,
            first: true,
        };
        self.cc.on_ecn(&mut self.w, &event);
        self.counts.ecn_reductions += 1;
        self.reduced_until = self.nxt;
        self.reduced_by_ecn = true;
        self.cwr_due = true;
        self.burst = 0;
        cfg.prr && self.phase == Phase::Open && self.w.cwnd < before
    }

    /// Processes an ACK that is not the plain next one: duplicate, with SACK blocks, during recovery, or a window update.
    #[inline(never)]
    fn on_unusual_ack(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, (ack, edge, ts_echo): (u64, u64, u32)) {
        self.refused = false;
        let mut repair = self.repair.take().unwrap_or_default();
        let acked = ack - self.una;
        let ece = self.ecn_on && p.flags.has(TcpFlags::ECE);
        let una_before = self.una;
        let highest = repair.board.highest();
        let covered = repair.advance(ack);
        let mut sacked = 0;
        let mut dsack = None;
        if self.sack_on && self.outstanding.is_some() {
            (sacked, dsack) = self.note_blocks(now, p, &mut repair, (ack, highest));
        } else if self.sack_on {
            let number = self.wire(ack);
            for block in p.sack() {
                let at = |wire: u32| ack.wrapping_add_signed(i64::from(wire.wrapping_sub(number) as i32));
                let (start, end) = (at(block.start), at(block.end));
                if start < end && start > ack && end <= self.nxt {
                    sacked += repair.insert(start, end);
                }
            }
        }
        let window_moved = edge > self.edge;
        self.edge = self.edge.max(edge);
        self.una = ack;
        let outstanding = self.nxt > ack;
        // Source: RFC 5681 §2 "duplicate acknowledgment"; with SACK, RFC 6675 §2: new SACK information makes one, also on an
        // ACK that is cumulative, and then (§5) it counts after the reset. One with a NACK was not caused by data that arrived.
        let plain = acked == 0 && p.envelope.payload == 0 && !window_moved && !p.flags.has(TcpFlags::FIN) && p.nack().is_none();
        let duplicate = outstanding && if self.sack_on { sacked > 0 } else { plain };
        if acked > 0 {
            self.retries = 0;
            self.dup_acks = 0;
            repair.limited_sent = 0;
            if cfg.backoff_reset == BackoffReset::Ack {
                self.rtt.reset_back_off();
            }
        } else if !duplicate && self.una == self.nxt {
            self.retries = 0; // a probe was answered
        }
        if duplicate {
            self.dup_acks += 1;
            self.counts.dup_acks += 1;
        }
        let delivered = acked - covered + sacked;
        let mut news = AckNews { acked, delivered, duplicate, ece, ts_echo, rtt: None, untimed: false };
        let restart = if self.outstanding.is_none() {
            self.repair_on_ack(cfg, now, &mut repair, news)
        } else {
            let arrivals = self.arrivals(cfg, now, (repair.recover, highest), ts_echo);
            news.rtt = arrivals.latest_rtt(now);
            if self.by_rack() {
                let nothing_new = plain && sacked == 0;
                self.rack_on_ack(cfg, now, &mut repair, &news, &RackNews { arrivals, dsack, nothing_new, una_before });
                self.repair = Some(repair);
                if acked > 0 {
                    self.fin_acked(cfg, now);
                }
                return self.after_ack(cfg, now, outstanding, window_moved);
            }
            self.repair_on_ack(cfg, now, &mut repair, news)
        };
        self.repair = Some(repair);
        if acked > 0 {
            if !outstanding {
                self.rto_at = Time::MAX;
            } else if restart {
                self.rto_at = now + self.rtt.rto;
            }
            self.fin_acked(cfg, now);
        }
        self.after_ack(cfg, now, outstanding, window_moved);
    }

    /// Records the SACK blocks of an ACK up to `ack`, on a connection that keeps the times of segments; `highest` is the end
    /// of the highest SACKed range so far. Returns the number of newly SACKed bytes, and the range that arrived twice.
    #[inline(never)]
    fn note_blocks(
        &mut self,
        now: Time,
        p: Segment<'_>,
        repair: &mut Repair,
        (ack, highest): (u64, u64),
    ) -> (u64, Option<(u64, u64)>) {
        let number = self.wire(ack);
        let at = |wire: u32| ack.wrapping_add_signed(i64::from(wire.wrapping_sub(number) as i32));
        let mut blocks = p.sack().map(|block| (at(block.start), at(block.end)));
        // Source: RFC 2883 §4.
        let dsack = blocks.next().filter(|&(start, end)| {
            let within = |(from, to): (u64, u64)| from <= start && end <= to;
            start < end && (end <= ack || blocks.next().is_some_and(within))
        });
        let mut sacked = 0;
        let Some(o) = &mut self.outstanding else { return (0, dsack) };
        let known = Known { now, recover: repair.recover, highest };
        for block in p.sack() {
            let (mut start, mut end) = (at(block.start), at(block.end));
            if start < end && start > ack && end <= self.nxt {
                if o.rack.is_some() {
                    // Receivers here report a FIN only cumulatively; it rides on the last byte.
                    (start, end) = o.segments.whole(start, if end == self.end { self.nxt } else { end });
                }
                for (from, to) in repair.board.holes(start, end) {
                    o.segments.arrived(&known, from, to);
                }
                sacked += repair.insert(start, end);
            }
        }
        (sacked, dsack)
    }

    /// Completes the processing of an ACK: a window that has opened, or is still closed.
    fn after_ack(&mut self, cfg: &Tcp, now: Time, outstanding: bool, window_moved: bool) {
        if !outstanding && self.rto_at != Time::MAX && window_moved && self.sync == super::Sync::Open {
            self.rto_at = Time::MAX; // no more probes
            self.rtt.reset_back_off();
        }
        self.arm_persist(now);
        self.enter_fast_path();
        if cfg.tso {
            self.note_deferral(cfg, now);
        }
    }

    /// Arms the persist timer if data waits for a closed window. Source: RFC 9293 §3.8.6.1.
    #[inline]
    pub(super) fn arm_persist(&mut self, now: Time) {
        if self.una == self.nxt && self.end > self.nxt && self.edge <= self.nxt && self.rto_at == Time::MAX && self.nxt > 0 {
            self.rto_at = now + self.rtt.rto;
        }
    }
}
