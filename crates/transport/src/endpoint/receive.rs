//! Input of data. Source: RFC 9293 §3.10.7.4, RFC 5681 §4.2, RFC 3168 §6.1.3, RFC 8257 §3.2.

use super::receiver::{Merging, Receiver};
use super::{due, Sync, TcpEndpoint, NO_FIN};
use crate::config::{DelayedAcks, EcnEcho, Tcp};
use crate::report::Pending;
use fanin_packet::{Ecn, Segment, TcpFlags};
use fanin_units::Time;

impl TcpEndpoint {
    /// Processes a segment with payload.
    #[inline(always)]
    pub(super) fn on_data(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, seq: u64) {
        if self.ecn_on {
            self.note_ecn(cfg, p);
        }
        let end = seq.wrapping_add(u64::from(p.envelope.payload));
        let in_order =
            seq == self.rcv_nxt && end <= self.rcv_edge && (self.bare || self.ooo.as_ref().is_none_or(|o| o.is_empty()));
        if in_order {
            self.on_next_data(cfg, now, p, end);
        } else {
            self.on_unusual_data(cfg, now, p, (seq, end));
        }
    }

    /// Processes the next data, up to `end`, while nothing waits beyond a gap.
    #[inline(always)]
    pub(super) fn on_next_data(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, end: u64) {
        let bytes = u64::from(p.envelope.payload);
        self.rcv_nxt = end;
        self.pending.add(Pending::DELIVERED);
        if !self.bare {
            if self.rx.is_some() {
                return self.on_data_adaptively(cfg, now, p, bytes, false);
            }
            if self.holding || cfg.quick_acks > 0 {
                self.note_arrival(cfg, now, bytes);
            }
        }
        self.unacked += 1;
        if u32::from(self.unacked) >= cfg.ack_every || self.quick > 0 {
            self.due |= due::ACK;
        } else if self.ack_at == Time::MAX {
            self.ack_at = now + cfg.delayed_ack_timeout;
        }
    }

    /// Updates unread data, and quick ACKs after idle time.
    #[inline(never)]
    fn note_arrival(&mut self, cfg: &Tcp, now: Time, bytes: u64) {
        if self.holding {
            self.held += bytes;
            self.note_room();
        }
        // Source: Linux tcp_event_data_recv.
        if now.since(self.last_data) > self.rtt.rto {
            self.quick = cfg.quick_acks as u8;
        }
        self.last_data = now;
    }

    /// Processes a duplicate or out-of-order segment, one beyond the window, or one that fills a gap: each is acknowledged at
    /// once, unless ACKs are merged.
    #[inline(never)]
    fn on_unusual_data(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, (seq, end): (u64, u64)) {
        // Offsets below zero have wrapped: they are far in the past.
        if end <= self.rcv_nxt || seq > 1 << 63 {
            self.due |= due::ACK;
            self.counts.duplicate_bytes += end.wrapping_sub(seq);
            return self.note_duplicate(cfg, (seq, end));
        }
        let end = end.min(self.rcv_edge);
        if seq >= end {
            self.due |= due::ACK;
            return self.start_quick_acks(cfg);
        }
        let mut ooo = self.ooo.take().unwrap_or_default();
        self.bare = false;
        if seq <= self.rcv_nxt {
            self.counts.duplicate_bytes += self.rcv_nxt - seq;
            if let Some(rx) = self.rx.as_deref_mut().filter(|_| cfg.dsack && self.sack_on) {
                let below = (seq < self.rcv_nxt).then_some((seq, self.rcv_nxt));
                below.into_iter().chain(ooo.overlap(seq, end)).for_each(|part| rx.note_duplicate(part));
            }
            let before = self.rcv_nxt;
            self.rcv_nxt = ooo.advance(end);
            let news = self.rcv_nxt - before;
            let filled = ooo.is_empty();
            self.ooo = Some(ooo);
            self.pending.add(Pending::DELIVERED);
            if self.rx.is_some() {
                self.on_data_adaptively(cfg, now, p, news, filled);
            } else {
                self.due |= due::ACK;
                self.note_arrival(cfg, now, news);
            }
        } else {
            if let Some(rx) = self.rx.as_deref_mut().filter(|_| cfg.dsack && self.sack_on) {
                ooo.overlap(seq, end).into_iter().for_each(|part| rx.note_duplicate(part));
            }
            self.counts.duplicate_bytes += end - seq - ooo.insert(seq, end);
            let ranges = ooo.len();
            self.ooo = Some(ooo);
            if cfg.delayed_acks == DelayedAcks::Fixed {
                self.quick = cfg.quick_acks as u8;
            }
            match self.rx.take() {
                Some(mut rx) => {
                    self.on_data_out_of_order(cfg, now, p, &mut rx, ranges);
                    self.rx = Some(rx);
                }
                None => self.due |= due::ACK,
            }
        }
        self.take_fin(cfg, now);
    }

    /// Starts the receiver's functions when the connection opens.
    pub(super) fn open_receiver(&mut self, cfg: &Tcp, now: Time) {
        if let Some(rx) = &mut self.rx {
            let window = cfg.opening_window(self.w.mss);
            rx.open(cfg, now, self.w.mss, window);
            if rx.window.is_some() {
                self.buffer = window;
                self.note_room();
            }
        }
    }

    /// Records that data has arrived twice. Source: Linux tcp_data_queue, tcp_send_dupack.
    fn note_duplicate(&mut self, cfg: &Tcp, part: (u64, u64)) {
        self.start_quick_acks(cfg);
        if !cfg.dsack || !self.sack_on {
            return;
        }
        if let Some(rx) = &mut self.rx {
            rx.note_duplicate(part);
            self.ooo.get_or_insert_default(); // where SACK blocks come from
        }
    }

    /// Disables delays of the next ACKs, if their delay is adaptive. Source: Linux tcp_enter_quickack_mode.
    fn start_quick_acks(&mut self, cfg: &Tcp) {
        let window = self.rcv_edge - self.last_ack_sent;
        if let Some(rx) = self.rx.as_deref_mut().filter(|_| cfg.adapts_acks()) {
            self.quick = self.quick.max(rx.start_quick_acks(cfg, cfg.quick_acks, window));
        }
    }

    /// Processes in-order data, `news` bytes together with the data that waited for it, at a receiver with functions beyond
    /// RFC 9293. `at_once`: it has filled the last gap. Source: Linux tcp_rcv_established, tcp_data_queue,
    /// tcp_event_data_recv, __tcp_ack_snd_check.
    #[inline(never)]
    fn on_data_adaptively(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, news: u64, at_once: bool) {
        let Some(mut rx) = self.rx.take() else { return };
        self.unacked = self.unacked.saturating_add(1);
        self.note_echo(cfg, now, p, &mut rx);
        if self.holding {
            self.held += news;
            self.note_room();
        }
        let offered = self.rcv_edge - self.last_ack_sent; // Linux rcv_wnd
        let (len, mss) = (u32::from(p.envelope.payload), self.w.mss);
        let push = p.flags.has(TcpFlags::PSH) || p.flags.has(TcpFlags::FIN);
        let again = rx.note_size((len, u32::from(p.tcp.bytes())), self.rcv_nxt, push, (self.last_ack_sent, offered), mss);
        rx.note_window(now, self.rcv_nxt, offered);
        let mut at_once = at_once;
        if cfg.adapts_acks() {
            let quick = rx.note_gap(cfg, now.since(self.last_data), self.rtt.rto, offered);
            self.quick = self.quick.max(quick);
            at_once |= self.quick_acks_for_ecn(cfg, p, &mut rx);
        } else if now.since(self.last_data) > self.rtt.rto {
            self.quick = cfg.quick_acks as u8;
        }
        self.last_data = now;
        let (beyond, ahead) = self.beyond_gap();
        if let Some(window) = &mut rx.window {
            // What has just come is in memory too, although an application that does not hold back will have read it at once.
            let unread = if self.holding { self.held } else { news };
            if window.grow(len, mss, unread + beyond) && cfg.adapts_acks() {
                self.quick |= 1;
            }
        }
        self.offer_more(&mut rx, offered);
        let waiting = self.ooo.as_ref().is_some_and(|ooo| !ooo.is_empty());
        self.check_ack(cfg, now, &mut rx, waiting, at_once);
        if !self.holding {
            if let Some(window) = &mut rx.window {
                window.on_read(now, self.unread(ahead), rx.rtt, mss);
            }
            if cfg.adapts_acks() && rx.ends_message(self.last_ack_sent, again) {
                self.due |= due::ACK;
            }
        }
        self.rx = Some(rx);
    }

    /// Processes data beyond a gap; `ranges` of such data wait now. Source: Linux tcp_data_queue_ofo.
    fn on_data_out_of_order(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, rx: &mut Receiver, ranges: usize) {
        let offered = self.rcv_edge - self.last_ack_sent;
        self.note_echo(cfg, now, p, rx);
        let mut at_once = cfg.adapts_acks() && self.quick_acks_for_ecn(cfg, p, rx);
        let (beyond, ahead) = self.beyond_gap();
        if let Some(window) = &mut rx.window {
            // It is not counted before it has been queued.
            let len = p.envelope.payload;
            let grown =
                self.sack_on && window.grow(u32::from(len), self.w.mss, self.held + beyond.saturating_sub(u64::from(len)));
            window.on_gap(ahead);
            if grown && cfg.adapts_acks() {
                self.quick |= 1;
            }
            self.offer_more(rx, offered);
        }
        // More ranges than an ACK has room for, once it carries timestamps and a duplicate: what waits must not be lost.
        // Source: Linux tcp_sack_compress_send_ack, TCP_SACK_BLOCKS_EXPECTED. Deviation: the new range is in that ACK.
        at_once |= ranges > 2 && rx.is_merging();
        self.check_ack(cfg, now, rx, true, at_once);
    }

    /// Unread data: its start, its length, and the extent of the data beyond a gap.
    fn unread(&self, ahead: u64) -> (u64, u64, u64) {
        (self.rcv_nxt - self.held, self.held, ahead)
    }

    /// Bytes that wait beyond a gap, and their extent.
    #[inline(always)]
    fn beyond_gap(&self) -> (u64, u64) {
        self.ooo.as_ref().map_or((0, 0), |ooo| (ooo.bytes(), ooo.end(self.rcv_nxt) - self.rcv_nxt))
    }

    /// Measures the receiver's RTT by the timestamp that a segment echoes.
    fn note_echo(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, rx: &mut Receiver) {
        let Some(ts) = p.timestamps().filter(|_| self.ts_on) else { return };
        rx.note_echo(ts.echo, u32::from(p.envelope.payload), self.held, cfg.timestamp_tick, || {
            let ticks = self.ts_clock(cfg, now).wrapping_sub(ts.echo);
            (ticks as i32 >= 0).then(|| cfg.timestamp_tick * u64::from(ticks))
        });
    }

    /// Enables quick ACKs for marks; true if this very segment is to be acknowledged at once, since it carries CWR.
    /// Source: Linux __tcp_ecn_check_ce, tcp_ecn_accept_cwr.
    fn quick_acks_for_ecn(&mut self, cfg: &Tcp, p: Segment<'_>, rx: &mut Receiver) -> bool {
        if !self.ecn_on {
            return false;
        }
        let ecn = p.envelope.ecn;
        let odd = rx.is_urgent_for_ecn(ecn != Ecn::NotEct, ecn == Ecn::Ce && cfg.ecn_echo == EcnEcho::Classic, self.echo);
        if odd {
            let window = self.rcv_edge - self.last_ack_sent;
            self.quick = self.quick.max(rx.start_quick_acks(cfg, 2, window));
        }
        p.flags.has(TcpFlags::CWR)
    }

    /// Updates the window that the next segment offers.
    fn offer_more(&mut self, rx: &mut Receiver, offered: u64) {
        if let Some(window) = &rx.window {
            let (window, short) = window.select(self.held + self.beyond_gap().0, self.rcv_scale, rx.mss, offered);
            self.buffer = self.held + window;
            self.note_room();
            if short {
                self.quick = 0;
            }
        }
    }

    /// Decides if the ACK of a segment is sent now, later, or merged with others. `waiting`: there is data beyond a gap.
    /// Source: Linux __tcp_ack_snd_check.
    fn check_ack(&mut self, cfg: &Tcp, now: Time, rx: &mut Receiver, waiting: bool, at_once: bool) {
        if self.ack_at == Time::MAX {
            rx.forget_merged(); // an ACK has left
        }
        let adaptive = cfg.adapts_acks();
        let many = if adaptive {
            let enough = self.rcv_nxt - self.last_ack_sent > u64::from(cfg.ack_every - 1) * u64::from(rx.mss);
            // An application that does not read will open the window, and with that acknowledge.
            enough && (!self.holding || self.announceable() >= self.rcv_edge - self.last_ack_sent)
        } else {
            u32::from(self.unacked) >= cfg.ack_every
        };
        let quick = self.quick > 0 && (!adaptive || rx.may_ack_quickly());
        if at_once || many || (quick && (adaptive || !waiting || !cfg.merges_sacks())) {
            self.due |= due::ACK;
        } else if waiting {
            let merged = if self.sack_on { rx.merge(cfg, now, self.rcv_nxt, self.rtt.srtt) } else { Merging::Now };
            match merged {
                Merging::Now => self.due |= due::ACK,
                Merging::At(at) => self.ack_at = self.ack_at.min(at),
            }
        } else {
            self.delay_ack(cfg, now, rx);
        }
    }

    fn delay_ack(&mut self, cfg: &Tcp, now: Time, rx: &Receiver) {
        if !cfg.adapts_acks() {
            self.ack_at = self.ack_at.min(now + cfg.delayed_ack_timeout);
            return;
        }
        let wait = rx.delay(cfg, self.rtt.srtt, self.last_ack_sent);
        if self.ack_at != Time::MAX && self.ack_at <= now + wait / 4 {
            self.due |= due::ACK; // the timer is about to expire
        } else {
            self.ack_at = self.ack_at.min(cfg.tick(now + wait));
        }
    }

    /// PAWS: true if a segment that is `-ticks` older than the timestamp to be echoed is to be dropped; then it is
    /// acknowledged. An old ACK without news may have been overtaken. Source: RFC 7323 §5.3; Linux tcp_paws_discard,
    /// tcp_disordered_ack, tcp_send_dupack.
    #[inline(never)]
    pub(super) fn is_too_old(&mut self, cfg: &Tcp, p: Segment<'_>, seq: u64, ticks: i32) -> bool {
        /// Age in ticks that PAWS tolerates. Source: Linux TCP_PAWS_WINDOW.
        const ALLOWED: i32 = -1;
        if ticks >= ALLOWED {
            return false;
        }
        let len = u64::from(p.envelope.payload);
        if len == 0 && !p.flags.has(TcpFlags::FIN) {
            let una = self.una;
            let plain = seq == self.rcv_nxt && p.ack == self.wire(una);
            let opens = una + (u64::from(p.window) << self.snd_scale) > self.edge;
            let recent = cfg.timestamp_tick * u64::from(ticks.unsigned_abs()) <= self.rtt.rto;
            if plain && !opens && recent {
                return false;
            }
        } else if seq < self.rcv_nxt && len > 0 {
            let end = (seq + len).min(self.rcv_nxt);
            self.counts.duplicate_bytes += end - seq;
            self.note_duplicate(cfg, (seq, end));
        }
        self.due |= due::ACK;
        true
    }

    /// Processes marks and CWR. Source: RFC 3168 §6.1.3, RFC 8257 §3.2.
    #[inline(always)]
    pub(super) fn note_ecn(&mut self, cfg: &Tcp, p: Segment<'_>) {
        let ce = p.envelope.ecn == Ecn::Ce;
        if ce {
            self.counts.marked += 1;
        }
        match cfg.ecn_echo {
            EcnEcho::Classic => {
                if p.flags.has(TcpFlags::CWR) {
                    self.echo = false;
                }
                self.echo |= ce;
            }
            EcnEcho::Dctcp => {
                if ce != self.echo {
                    self.ce_changed(ce);
                }
            }
        }
    }

    /// Handles a change of DCTCP.CE: unacknowledged segments received under the old state are acknowledged with it, and this
    /// segment at once with the new one.
    #[inline(never)]
    fn ce_changed(&mut self, ce: bool) {
        if self.unacked > 0 {
            self.prior_ack = self.wire_rcv_nxt();
            self.due |= due::PRIOR_ACK;
        }
        self.echo = ce;
        self.due |= due::ACK;
    }

    /// Reads `bytes` of unread data; notifies the peer when the window opens by a segment or half the buffer, a
    /// growing one when it doubles. Source: RFC 9293 §3.8.6.2.2; Linux __tcp_cleanup_rbuf.
    pub fn read(&mut self, _cfg: &Tcp, now: Time, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
        self.note_room();
        let mut announces = false;
        if let Some(mut rx) = self.rx.take() {
            let offered = self.rcv_edge - self.rcv_nxt;
            if let Some(window) = &mut rx.window {
                let ahead = self.beyond_gap().1;
                window.on_read(now, self.unread(ahead), rx.rtt, self.w.mss);
                announces = true;
            }
            self.offer_more(&mut rx, offered);
            if announces {
                let opens = rx.window.as_ref().is_some_and(|w| w.should_announce(self.announceable(), offered));
                if opens && self.sync == Sync::Open {
                    self.due |= due::ACK;
                }
            }
            self.rx = Some(rx);
        }
        let offer = (self.rcv_nxt + self.buffer.saturating_sub(self.held)).max(self.rcv_edge);
        if !announces && offer - self.rcv_edge >= u64::from(self.w.mss).min(self.buffer / 2) && self.sync == Sync::Open {
            self.due |= due::ACK;
        }
    }

    /// Processes a FIN that is next in order.
    pub(super) fn take_fin(&mut self, cfg: &Tcp, now: Time) {
        if self.peer_fin == NO_FIN || self.rcv_nxt != self.peer_fin {
            return;
        }
        self.rcv_nxt += 1;
        self.passive_close = !self.fin_sent;
        self.pending.add(Pending::PEER_CLOSED);
        self.due |= due::ACK;
        self.check_closed(cfg, now);
    }
}
