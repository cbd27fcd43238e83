//! Output of control packets and data.

use super::loss::{FRto, Repair};
use super::{due, unlikely, Phase, Sync, TcpEndpoint, UNTIMED};
use crate::cc::Controller;
use crate::config::{DropResend, EctOn, IdleRestart, Tcp};
use fanin_packet::{Ecn, SackBlock, SegmentMut, SynOptions, TcpFlags, Timestamps};
use fanin_units::{BitRate, Bytes, Time};

/// Reason for which a segment is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    New,
    /// Retransmission of a hole, in order: HighRxt follows it.
    Hole,
    /// The rescue retransmission. Source: RFC 6675 §4 NextSeg rule 4.
    Rescue,
    /// Retransmission of a segment named by a drop notification or a NACK.
    Notified,
    /// Tail loss probe that repeats the last segment, which is not lost.
    Probe,
}

/// Next segment to send: the range [from, to) of the stream, the FIN's place included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub from: u64,
    pub to: u64,
    pub reason: Reason,
}

/// Next segment of a connection on the fast path.
enum FastNext {
    New(Next),
    Nothing,
    /// The next segment is not decided: the endpoint is off the fast path, or the receive window is short.
    Unknown,
}

impl TcpEndpoint {
    /// True if [`TcpEndpoint::poll_data`] would yield a segment now.
    #[inline(always)]
    pub(super) fn data_due(&self, cfg: &Tcp, now: Time) -> bool {
        self.next_segment(cfg, now).is_some()
    }

    /// Payload bytes to hand to the NIC back to back now: with TSO up to `tso_max` of new data, otherwise one segment.
    #[inline(never)]
    pub(super) fn tso_bytes(&self, cfg: &Tcp, now: Time) -> u64 {
        match self.next_segment(cfg, now) {
            None => 0,
            Some(next) if next.reason != Reason::New => next.to.min(self.end).saturating_sub(next.from),
            Some(next) if self.burst > 0 => u64::from(self.burst).max(next.to - next.from),
            Some(next) => self.burst_size(cfg).max(next.to - next.from),
        }
    }

    /// Makes the next data segment, new or retransmitted, if window and pacing allow one now.
    #[inline(always)]
    pub(super) fn poll_data(&mut self, cfg: &Tcp, now: Time, out: &mut SegmentMut<'_>) -> bool {
        match self.fast_path_segment(cfg, now) {
            FastNext::New(next) => {
                self.send_new(cfg, now, next, out, true);
                true
            }
            FastNext::Nothing => false,
            FastNext::Unknown => self.poll_data_slowly(cfg, now, out.again()),
        }
    }

    #[inline(never)]
    fn poll_data_slowly(&mut self, cfg: &Tcp, now: Time, mut out: SegmentMut<'_>) -> bool {
        let out = &mut out;
        let Some(next) = self.find_next_segment(cfg, now) else { return false };
        if next.reason == Reason::New {
            self.send_new(cfg, now, next, out, false);
        } else {
            self.retransmit(cfg, now, next, out);
        }
        true
    }

    #[inline(always)]
    pub(super) fn next_segment(&self, cfg: &Tcp, now: Time) -> Option<Next> {
        match self.fast_path_segment(cfg, now) {
            FastNext::New(next) => Some(next),
            FastNext::Nothing => None,
            FastNext::Unknown => self.next_segment_slowly(cfg, now),
        }
    }

    #[inline(always)]
    fn fast_path_segment(&self, cfg: &Tcp, now: Time) -> FastNext {
        if !self.on_fast_path() {
            return FastNext::Unknown;
        }
        let unsent = self.end - self.nxt;
        if unsent == 0 {
            return FastNext::Nothing;
        }
        let to = self.nxt + unsent.min(u64::from(self.w.mss));
        if to > self.edge {
            return FastNext::Unknown;
        }
        if to - self.una > self.w.cwnd {
            return if self.w.cwnd < u64::from(self.w.mss) { FastNext::Unknown } else { FastNext::Nothing };
        }
        if self.held_by_pacing(now) || (unlikely(cfg.tso) && self.burst == 0 && self.defers(cfg, now)) {
            return FastNext::Nothing;
        }
        FastNext::New(Next { from: self.nxt, to, reason: Reason::New })
    }

    #[inline(never)]
    fn next_segment_slowly(&self, cfg: &Tcp, now: Time) -> Option<Next> {
        self.find_next_segment(cfg, now)
    }

    /// Finds the next segment in any state of the connection.
    #[inline(always)]
    fn find_next_segment(&self, cfg: &Tcp, now: Time) -> Option<Next> {
        if self.sync != Sync::Open || self.refused {
            return None;
        }
        let held_by_pacing = self.held_by_pacing(now);
        let mss = u64::from(self.w.mss);
        let flight = self.nxt - self.una;
        if let Some((o, rack)) = self.outstanding.as_deref().and_then(|o| Some((o, o.rack.as_ref()?))) {
            return self.rack_next(cfg, o, rack, (now, held_by_pacing));
        }
        let Some(r) = self.repair.as_deref() else {
            return if held_by_pacing { None } else { self.new_data(self.room(flight)) };
        };
        let hole = |(from, to): (u64, u64), reason| Some(Next { from, to: self.segment_end(from, to), reason });
        if let Some((from, to)) = r.notified.next() {
            let next = Next { from, to: self.segment_end(from, to), reason: Reason::Notified };
            let mut pipe = r.pipe(self.una, self.nxt);
            if !self.sack_on && matches!(self.phase, Phase::Open | Phase::Cwr) {
                pipe = pipe.saturating_sub(self.w.segments(self.dup_acks));
            }
            let fits = !held_by_pacing && next.to.min(self.end).saturating_sub(from) <= self.room(pipe);
            if cfg.drop_resend == DropResend::AtOnce || fits || pipe == 0 {
                return Some(next);
            }
            if !r.first_due {
                return None;
            }
        }
        match self.phase {
            Phase::Recovery if r.first_due => r.next_hole(self.nxt).and_then(|first| hole(first, Reason::Hole)),
            _ if held_by_pacing => None,
            Phase::Recovery if self.sack_on => {
                let room = self.room(r.pipe(self.una, self.nxt));
                if room < mss {
                    return None;
                }
                self.next_seg(r, mss, room)
            }
            Phase::Recovery => self.new_data(self.room(flight)),
            Phase::Loss => {
                let room = self.room(r.pipe(self.una, self.nxt));
                match r.f_rto {
                    FRto::Second(0) => return None,
                    FRto::Second(_) => return self.new_data(room),
                    _ => {}
                }
                match r.next_lost() {
                    // A FIN on top of a full segment needs no room.
                    Some(lost) => hole(lost, Reason::Hole).filter(|next| next.to.min(self.end).saturating_sub(next.from) <= room),
                    None => self.new_data(room),
                }
            }
            Phase::Open | Phase::Cwr => {
                let mut pipe = flight;
                if self.sack_on {
                    // SACKed segments make room: limited transmit. Source: RFC 6675 §5 step 3.
                    if cfg.limited_transmit || self.dup_acks == 0 {
                        pipe = r.pipe(self.una, self.nxt);
                    }
                } else if cfg.limited_transmit {
                    // Source: RFC 3042 §2.
                    pipe = pipe.saturating_sub(self.w.segments(self.dup_acks.min(2)));
                }
                self.new_data(self.room(pipe))
            }
        }
    }

    /// Bytes of congestion window left beside `pipe` bytes in flight. A window below one segment has room for one if nothing
    /// is in flight; pacing makes it one per RTT and fraction.
    pub(super) fn room(&self, pipe: u64) -> u64 {
        let mss = u64::from(self.w.mss);
        match pipe {
            0 if self.w.cwnd < mss => mss,
            _ => self.w.cwnd.saturating_sub(pipe),
        }
    }

    /// Selects the next segment of a SACK recovery (NextSeg). Source: RFC 6675 §4.
    ///
    /// Deviation: the rescue is not spent on a segment that this recovery has already retransmitted.
    fn next_seg(&self, r: &Repair, mss: u64, room: u64) -> Option<Next> {
        let hole = |(from, to): (u64, u64), reason| Some(Next { from, to: self.segment_end(from, to), reason });
        if let Some(lost) = r.next_lost() {
            return hole(lost, Reason::Hole);
        }
        if let Some(new) = self.new_data(room) {
            return Some(new);
        }
        if r.by_notification {
            return None; // no duplicate ACKs speak of a loss: what is open is on its way
        }
        if let Some(open) = r.next_hole(r.board.highest()) {
            return hole(open, Reason::Hole);
        }
        let sent_again = |last: &(u64, u64)| last.1 <= r.board.high_rxt() || r.notified.covers(last.1 - 1);
        let last = r.board.last_hole(self.nxt, mss).filter(|last| self.una > r.rescue_rxt && !sent_again(last))?;
        Some(Next { from: last.0, to: last.1, reason: Reason::Rescue })
    }

    /// End of the segment that starts at `from` in a hole that ends at `to`: a FIN belongs to the last one.
    fn segment_end(&self, from: u64, to: u64) -> u64 {
        let end = (from + u64::from(self.w.mss)).min(to);
        if end == self.end && to > end {
            to
        } else {
            end
        }
    }

    /// Selects new data, if `room` bytes of congestion window are left; small receive windows follow the sender's
    /// silly-window rule.
    ///
    /// Source: RFC 9293 §3.8.6.2.1 without Nagle. Deviation: its override timeout is zero when nothing is in flight.
    pub(super) fn new_data(&self, room: u64) -> Option<Next> {
        let unsent = self.end.saturating_sub(self.nxt);
        if unsent == 0 || self.fin_sent {
            return None;
        }
        let mut len = unsent.min(u64::from(self.w.mss));
        let window = self.edge.saturating_sub(self.nxt);
        if window < len {
            if window == 0 || (window < self.max_window / 2 && self.nxt > self.una) {
                return None;
            }
            len = window;
        }
        (len <= room).then_some(Next { from: self.nxt, to: self.nxt + len, reason: Reason::New })
    }

    /// Sends new data; `fits`: the connection is on the fast path, and the window has room for the segment.
    #[inline(always)]
    fn send_new(&mut self, cfg: &Tcp, now: Time, next: Next, out: &mut SegmentMut<'_>, fits: bool) {
        if self.nxt == self.una {
            self.cc.on_idle_end(now, self.last_sent);
            if now.since(self.last_sent) > self.rtt.rto {
                self.restart_after_idle(cfg, now);
            }
        }
        let len = next.to - next.from;
        if !fits && !self.on_fast_path() {
            self.count_new_in_recovery(len);
        }
        if self.timed_end == UNTIMED && self.phase == Phase::Open {
            self.timed_end = next.to;
            self.timed_at = now;
        }
        if self.rto_at == Time::MAX {
            self.rto_at = now + self.rtt.rto;
        }
        if cfg.tso {
            let left = if self.burst > 0 { u64::from(self.burst) } else { self.burst_size(cfg) };
            self.burst = left.saturating_sub(len) as u32;
        }
        self.nxt = next.to;
        self.last_sent = now;
        // Source: Linux tcp_cwnd_validate.
        let flight = self.nxt - self.una;
        let limited = flight + u64::from(self.w.mss) > self.w.cwnd;
        if limited || self.una >= self.usage_end || (!self.cwnd_limited && flight > self.max_flight) {
            self.cwnd_limited = limited;
            self.max_flight = flight;
            self.usage_end = self.nxt;
        }
        let mut flags = TcpFlags::ACK;
        if self.nxt == self.end {
            flags = flags.with(TcpFlags::PSH);
            if self.fin_wanted {
                flags = flags.with(TcpFlags::FIN);
                self.mark_fin_sent();
            }
        }
        if self.cwr_due {
            flags = flags.with(TcpFlags::CWR);
            self.cwr_due = false;
        }
        if !self.bare && self.outstanding.is_some() && self.note_sent(cfg, now, next.from) {
            flags = flags.with(TcpFlags::PSH);
        }
        self.fill(cfg, now, out, (flags, next.from, len as u16));
        out.envelope.ecn = if self.ecn_on { Ecn::Ect0 } else { Ecn::NotEct };
        self.count_data(cfg, now, len, fits);
    }

    /// Updates counters and pacing for a segment with `len` payload bytes.
    #[inline(always)]
    fn count_data(&mut self, cfg: &Tcp, now: Time, len: u64, fits: bool) {
        self.packets_sent += 1;
        let rate = self.cc.pacing_rate(&self.w, self.rtt.srtt);
        if rate.is_some() || (!fits && len > self.w.cwnd) || matches!(cfg.pacing, crate::Pacing::Fq(_)) {
            self.pace(cfg, now, len, rate);
        }
    }

    /// Counts new data sent during a recovery for limited transmit, PRR and F-RTO.
    fn count_new_in_recovery(&mut self, len: u64) {
        let (phase, dup_acks) = (self.phase, self.dup_acks);
        if let Some(r) = self.repair.as_deref_mut() {
            match phase {
                Phase::Open if dup_acks > 0 => r.limited_sent += len,
                Phase::Recovery | Phase::Cwr => r.prr.out += len,
                _ => {}
            }
            if let FRto::Second(left) = r.f_rto {
                r.f_rto = FRto::Second(left.saturating_sub(1));
            }
        }
    }

    /// Sends a retransmission.
    #[inline(never)]
    fn retransmit(&mut self, cfg: &Tcp, now: Time, next: Next, out: &mut SegmentMut<'_>) {
        let clock = self.ts_clock(cfg, now);
        if let Some(r) = self.repair.as_deref_mut() {
            if next.reason == Reason::Notified {
                r.notified.sent_again(next.from, next.to);
            } else if r.first_due {
                // Source: RFC 6675 §5 step 4.3.
                r.first_due = false;
                r.rescue_rxt = next.to;
            }
            match next.reason {
                Reason::Rescue => r.rescue_rxt = r.recover,
                Reason::New | Reason::Hole => r.board.sent_again(next.to),
                Reason::Notified | Reason::Probe => {}
            }
            if next.reason != Reason::Probe {
                r.prr.out += next.to - next.from;
            }
            if r.eifel_due {
                r.eifel = Some(clock);
                r.eifel_due = false;
            }
        }
        if let Some(o) = &mut self.outstanding {
            o.segments.sent_again(now, next.from, next.to);
            self.rack_sent_again(cfg, now, &next, clock);
        }
        // The timer is the oldest segment's, which is in the network from now on.
        let oldest_notified = next.reason == Reason::Notified && next.from == self.una;
        if self.rto_at == Time::MAX || oldest_notified {
            self.rto_at = now + self.rtt.rto;
        }
        self.last_sent = now;
        let payload = next.to.min(self.end) - next.from;
        let fin = self.fin_sent && next.to > self.end;
        let mut flags = if payload > 0 && next.to >= self.end { TcpFlags::ACK.with(TcpFlags::PSH) } else { TcpFlags::ACK };
        if fin {
            flags = flags.with(TcpFlags::FIN);
        }
        self.fill(cfg, now, out, (flags, next.from, payload as u16));
        let capable = match cfg.ect_on {
            EctOn::NewData => false,
            EctOn::Data => payload > 0,
            EctOn::All => true,
        };
        out.envelope.ecn = if self.ecn_on && capable { Ecn::Ect0 } else { Ecn::NotEct };
        if payload > 0 {
            self.counts.retransmits += 1;
            self.counts.bytes_again += payload;
            self.count_data(cfg, now, payload, false);
        } else {
            self.control_sent += 1;
        }
    }

    /// Reduces the window after an idle period. Source: RFC 5681 §4.1; Linux tcp_cwnd_restart.
    #[inline(never)]
    fn restart_after_idle(&mut self, cfg: &Tcp, now: Time) {
        let restart = cfg.initial_window_bytes(self.w.mss).min(self.w.cwnd);
        match cfg.idle_restart {
            IdleRestart::None => {}
            IdleRestart::Rfc5681 => self.w.cwnd = restart,
            IdleRestart::Decay => {
                self.w.ssthresh = self.w.ssthresh.max(self.w.cwnd / 4 * 3);
                let mut idle = now.since(self.last_sent);
                while idle > self.rtt.rto && self.w.cwnd > restart {
                    idle = idle - self.rtt.rto;
                    self.w.cwnd /= 2;
                }
                self.w.cwnd = self.w.cwnd.max(restart);
            }
        }
    }

    /// True if pacing delays the next segment; a burst is not interrupted.
    #[inline(always)]
    fn held_by_pacing(&self, now: Time) -> bool {
        unlikely(self.pace_at != Time::MAX) && now < self.pace_at && self.burst == 0
    }

    fn pacing_gain(&self, cfg: &Tcp) -> f64 {
        match self.paced(cfg) {
            // Source: Linux tcp_update_pacing_rate.
            Some(paced) if self.w.cwnd < self.w.ssthresh / 2 => paced.slow_start_gain,
            Some(paced) => paced.gain,
            None => 1.0,
        }
    }

    /// Sets the departure time of the next paced segment: by the controller's rate; else by cwnd / SRTT if cwnd is less than
    /// this segment; else by gain · cwnd / SRTT.
    #[inline(never)]
    pub(super) fn pace(&mut self, cfg: &Tcp, now: Time, len: u64, rate: Option<BitRate>) {
        let srtt = self.rtt.srtt;
        let gap = match (rate, self.paced(cfg)) {
            (Some(rate), _) => rate.time_to_send(Bytes(len)),
            (None, _) if len > self.w.cwnd => srtt.scale(len as f64 / self.w.cwnd.max(1) as f64),
            (None, None) => return,
            (None, Some(_)) => srtt.scale(len as f64 / (self.pacing_gain(cfg) * self.w.cwnd as f64)),
        };
        let from = if self.pace_at == Time::MAX { now } else { self.pace_at.max(now) };
        self.pace_at = from.saturating_add(gap);
    }

    /// Makes a control packet, one of which is due: SYN, ACK, FIN, RST or a window probe.
    #[inline(always)]
    pub(super) fn poll_control(&mut self, cfg: &Tcp, now: Time, out: &mut SegmentMut<'_>) {
        out.envelope.ecn = Ecn::NotEct;
        if self.due == due::ACK {
            self.due = 0;
            self.fill_ack(cfg, now, out);
        } else {
            self.poll_unusual(cfg, now, out.again());
        }
        if self.ecn_on && cfg.ect_on == EctOn::All {
            out.envelope.ecn = Ecn::Ect0;
        }
        self.control_sent += 1;
    }

    #[inline(always)]
    fn fill_ack(&mut self, cfg: &Tcp, now: Time, out: &mut SegmentMut<'_>) {
        self.fill_bare_ack(cfg, now, out);
        self.push_blocks(out);
    }

    #[inline(always)]
    fn fill_bare_ack(&mut self, cfg: &Tcp, now: Time, out: &mut SegmentMut<'_>) {
        if unlikely(self.quick > 0) {
            self.quick -= 1;
        }
        self.fill(cfg, now, out, (TcpFlags::ACK, self.nxt, 0));
    }

    #[inline(always)]
    fn push_blocks(&mut self, out: &mut SegmentMut<'_>) {
        if !self.bare && self.sack_on && self.ooo.is_some() {
            self.push_sack(out.again());
        }
    }

    /// Adds SACK blocks: the duplicate to report, then the ranges received out of order, as many as fit. Source: RFC 2018 §4,
    /// RFC 2883 §4.
    #[inline(never)]
    fn push_sack(&mut self, mut out: SegmentMut<'_>) {
        let duplicate = self.rx.as_deref_mut().and_then(|rx| rx.duplicate.take());
        for (start, end) in duplicate.into_iter().chain(self.ooo.iter().flat_map(|o| o.blocks())) {
            if out.sack_room() > 0 {
                out.push_sack(SackBlock { start: self.irs.wrapping_add(start as u32), end: self.irs.wrapping_add(end as u32) });
            }
        }
    }

    #[inline(never)]
    fn poll_unusual(&mut self, cfg: &Tcp, now: Time, mut out: SegmentMut<'_>) {
        let out = &mut out;
        let first = self.due & self.due.wrapping_neg();
        self.due &= !first;
        match first {
            due::SYN => self.fill_syn(cfg, now, out),
            due::RST => {
                self.due = 0;
                let flags = TcpFlags::RST.with(TcpFlags::ACK);
                out.set(flags, self.wire(self.nxt), self.wire_rcv_nxt(), 0, 0);
            }
            due::PRIOR_ACK => {
                // Source: RFC 8257 §3.2: with the state before the change.
                self.fill_ack(cfg, now, out);
                out.ack = self.prior_ack;
                let others = out.flags.0 & !TcpFlags::ECE.0;
                out.flags = TcpFlags(if self.echo { others } else { others | TcpFlags::ECE.0 });
            }
            due::ACK => self.fill_ack(cfg, now, out),
            due::NACK => {
                self.fill_bare_ack(cfg, now, out);
                out.set_nack(self.nack);
                self.push_blocks(out);
            }
            // Below the window: the other end must answer. Source: Linux tcp_xmit_probe_skb.
            due::PROBE => self.fill(cfg, now, out, (TcpFlags::ACK, self.una - 1, 0)),
            _ => self.fill(cfg, now, out, (TcpFlags::ACK.with(TcpFlags::FIN), self.end, 0)),
        }
    }

    fn fill_syn(&mut self, cfg: &Tcp, now: Time, out: &mut SegmentMut<'_>) {
        let answer = self.sync == Sync::SynReceived;
        let ecn = if answer { self.ecn_on } else { cfg.ecn };
        let mut flags = TcpFlags::SYN;
        if answer {
            flags = flags.with(TcpFlags::ACK);
        }
        if ecn {
            flags = flags.with(TcpFlags::ECE);
            if !answer {
                flags = flags.with(TcpFlags::CWR);
            }
        }
        let window = self.buffer.min(u64::from(u16::MAX)) as u16;
        let ack = if answer { self.wire_rcv_nxt() } else { 0 };
        out.set(flags, self.wire(0), ack, window, 0);
        if if answer { self.ts_on } else { cfg.timestamps } {
            let value = self.ts_clock(cfg, now);
            out.set_timestamps(Timestamps { value, echo: self.ts_recent });
        }
        out.set_syn_options(SynOptions {
            mss: cfg.announced_mss(self.mtu, self.ip),
            window_scale: Some(cfg.window_scale()),
            sack_permitted: if answer { self.sack_on } else { cfg.sack },
        });
    }

    /// Window left of the one that was promised; a growing window rounds it up, and promises the rest as well.
    /// Source: RFC 9293 §3.8.6, Linux tcp_select_window.
    #[inline(never)]
    fn promised_window(&mut self) -> u16 {
        let left = self.rcv_edge - self.rcv_nxt;
        if self.rx.as_ref().is_none_or(|rx| rx.window.is_none()) {
            return (left >> self.rcv_scale).min(u64::from(u16::MAX)) as u16;
        }
        let steps = left.div_ceil(1 << self.rcv_scale).min(u64::from(u16::MAX));
        self.rcv_edge = self.rcv_edge.max(self.rcv_nxt + (steps << self.rcv_scale));
        steps as u16
    }

    /// Fills in the header of a segment: acknowledgment, window, echo, timestamps. The segment also serves as a pending delayed ACK.
    #[inline(always)]
    fn fill(&mut self, cfg: &Tcp, now: Time, out: &mut SegmentMut<'_>, (flags, from, payload): (TcpFlags, u64, u16)) {
        let offer = self.announceable();
        let edge = self.rcv_nxt + offer;
        let window = if edge >= self.rcv_edge {
            self.rcv_edge = edge;
            (offer >> self.rcv_scale) as u16
        } else {
            self.promised_window()
        };
        let flags = if self.echo { flags.with(TcpFlags::ECE) } else { flags };
        out.set(flags, self.wire(from), self.wire_rcv_nxt(), window, payload);
        if self.ts_on {
            let value = self.ts_clock(cfg, now);
            out.set_timestamps(Timestamps { value, echo: self.ts_recent });
        }
        self.last_ack_sent = self.rcv_nxt;
        self.unacked = 0;
        self.ack_at = Time::MAX;
    }
}
